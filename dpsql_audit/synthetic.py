"""Databases made from a policy alone: a crowd of privacy units, and one more unit that is built to move an answer far.

The values are those that break naive code: bounds and values beyond them, NaN, infinities, NULL, texts that differ in case or
blanks, and keys outside every list. Promises of the policy that are checked before an answer (unique keys, the path to the
privacy unit) are kept; bounds, domains, `nullable` and `max_rows` are broken on purpose, because dpsql enforces them. The rows of
a unit depend on its number and profile alone, so that the database without the unit is a neighbour.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from dpsql.engine.duckdb.literals import TYPES
from dpsql.media.text import sql_name
from dpsql.plan.intervals import Type
from dpsql.policy import Policy, PolicyColumn, Table

Rows = list[dict[str, Any]]
Data = dict[str, Rows]
ARROW = {
    "integer": pa.int64(), "real": pa.float64(), "text": pa.string(), "boolean": pa.bool_(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}  # fmt: skip
CROWD, MANY, MOST_OF_MANY = 12, 60, 30
"""Number of privacy units besides the one that is added or removed; number of units where the order of rows is compared, and the
most rows of each of these."""
EACH = 4096
"""Number of different reals that spread over the range of a column."""
CROWD_SHARES = (0.0, 0.1, 0.1, 1.0)
PUBLIC_ROWS = 8
MOST_ROWS = 3_000
"""The most rows of one unit in one table. Larger bounds are not reached, which the report shows as a low tightness."""
NEWCOMER = 900


@dataclass(frozen=True)
class Profile:
    """The content of the rows of one unit.

    `values`: by "table.column", a value, or a list whose values the rows take in turn. `default`: the kind of every other value.
    `share`: the unit's number of rows as a multiple of the policy's bound (3: three times as many), at most `most`.
    """

    name: str
    default: str
    share: float = 1.0
    values: Mapping[str, Any] = field(default_factory=dict)
    most: int = MOST_ROWS


PROFILES = (
    Profile("upper bounds, one key", "high"),
    Profile("upper bounds, many keys", "high spread"),
    Profile("a value for each row", "each"),
    Profile("odd values", "odd"),
    Profile("far beyond the bounds, thrice the rows", "beyond", 3.0),
    Profile("lower bounds, one key", "low"),
    Profile("far below the bounds, many keys", "below spread"),
    Profile("many keys that no list names", "unlisted spread"),
    Profile("both bounds in turn", "turn spread"),
    Profile("lower bounds, many keys", "low spread"),
    Profile("no values", "null", 0.5),
    Profile("one row", "high", 0.0),
)
"""The fixed profiles in the order in which they are tried: first those that found most of the planted bugs."""


def drawn(*place: object) -> int:
    """Return a pseudorandom number below 2**64 that is a function of `place` (SHA-256), the same on every machine and release."""
    return int.from_bytes(hashlib.sha256("/".join(map(str, place)).encode()).digest()[:8])


class Synthetic:
    """Data of one policy: the crowd, one unit of a profile, and the public tables, which are always the same."""

    def __init__(self, policy: Policy, seed: int = 0) -> None:
        """`seed` chooses the crowd's values."""
        self.policy, self.seed = policy, seed
        self.protected = sorted(
            (n for n in policy.tables if policy.is_protected(n)), key=lambda n: (_depth(policy, n), n)
        )
        self.public: Data = {n: _public_rows(policy, t) for n, t in policy.tables.items() if t.public}
        self.crowd: Data = {name: [] for name in self.protected}
        for number in range(1, CROWD + 1):
            profile = PROFILES[drawn(seed, number, "profile") % len(PROFILES)]
            profile = replace(profile, share=CROWD_SHARES[drawn(seed, number, "share") % len(CROWD_SHARES)])
            _merge(self.crowd, self.unit(profile, number))

    def unit(self, profile: Profile, number: int = NEWCOMER) -> Data:
        """Return all rows of the privacy unit `number`, by table; under row privacy, one row of each table."""
        unit_rows: Data = {}
        for name in self.protected:
            unit_rows[name] = self._rows(profile, name, number, unit_rows)
        return unit_rows

    def _rows(self, profile: Profile, name: str, number: int, unit_rows: Data) -> Rows:
        policy, table = self.policy, self.policy.tables[name]
        unit = policy.privacy_unit
        column = None if unit is None or policy.unit_joins(name) else policy.unit_column(name)
        is_units_table = unit is not None and unit.table == name and table.is_unique((unit.column,))
        count = 1 if unit is None or is_units_table else _count(profile, table)
        rows: Rows = []
        for index in range(count):
            row = {c.name: _value(profile, f"{name}.{c.name}", c, index, number) for c in table.columns.values()}
            if not self._refer(row, table, unit_rows, index):
                continue
            for keys in (table.primary_key, *table.unique):
                _make_unique(row, table, keys, number, index)
            if column is not None:
                row[column] = _unit_key(table.columns[column], number)
            rows.append(row)
        return rows

    def _refer(self, row: dict[str, Any], table: Table, unit_rows: Data, index: int) -> bool:
        """Set the foreign keys of `row`: they refer to rows of the same unit, or to the public rows in turn.

        Return False if there is no row to refer to.
        """
        for key, (parent, parent_column) in table.foreign_keys.items():
            if parent in self.public:
                row[key] = self.public[parent][index % PUBLIC_ROWS].get(parent_column)
            elif parent != table.name:
                mine = unit_rows.get(parent, [])
                if not mine and self.policy.privacy_unit is not None:
                    return False
                row[key] = mine[index % len(mine)].get(parent_column) if mine else row[key]
        return True

    def many(self) -> Data:
        """Return the rows of many units with arbitrary values: enough rows that a sum of floats would not be exact."""
        data: Data = {}
        for number in range(CROWD + 1, MANY + 1):
            _merge(data, self.unit(Profile("any values", "any spread", 1.5, most=MOST_OF_MANY), number))
        return data

    def rows(self, name: str) -> Rows:
        """Return the rows of a table: the public ones, or those of the crowd."""
        return self.public[name] if name in self.public else self.crowd[name]

    def database(self, *parts: Data, order: str = "") -> dict[str, pa.Table]:
        """Return the tables with the rows of all parts, in a pseudorandom order that does not show which part a row comes from.

        Each word `order` selects a different order.
        """
        merged: Data = {name: [] for name in self.policy.tables}
        for part in (self.public, *parts):
            _merge(merged, part)
        for name, rows in merged.items():
            places = sorted(range(len(rows)), key=lambda index: drawn(name + order, len(rows), index))
            merged[name] = [rows[index] for index in places]
        return {name: _arrow(table, merged[name]) for name, table in self.policy.tables.items()}


def load(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]) -> None:
    """Create the tables in the connection, in place of earlier ones of the same names."""
    for name, rows in tables.items():
        connection.register("rows", rows)
        connection.execute(f"CREATE OR REPLACE TABLE {sql_name(name)} AS SELECT * FROM rows")
    connection.unregister("rows")


def as_sql(policy: Policy, tables: Mapping[str, pa.Table]) -> list[str]:
    """Return the statements that recreate the tables in DuckDB, row by row in their order, for the report of a finding."""
    statements = []
    for name, rows in tables.items():
        columns = policy.tables[name].columns
        typed = ", ".join(f"{sql_name(c.name)} {TYPES[Type(c.type)]}" for c in columns.values())
        statements.append(f"CREATE TABLE {sql_name(name)} ({typed});")
        for row in rows.to_pylist():
            values = ", ".join(_sql(row[c]) for c in columns)
            statements.append(f"INSERT INTO {sql_name(name)} VALUES ({values});")
    return statements


def _sql(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).upper() if value is not None else "NULL"
    if isinstance(value, float):
        return f"'{value!r}'::DOUBLE"
    return repr(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def _merge(data: Data, more: Mapping[str, Rows]) -> None:
    for name, rows in more.items():
        data.setdefault(name, []).extend(rows)


def _depth(policy: Policy, name: str) -> int:
    """Return the length of the longest chain of foreign keys from a table through its protected parents."""
    parents = {table for table, _ in policy.tables[name].foreign_keys.values() if policy.is_protected(table)} - {name}
    return max((1 + _depth(policy, parent) for parent in parents), default=0)


def _count(profile: Profile, table: Table) -> int:
    most = table.bounds.max_rows or 1
    return max(1, min(profile.most, math.ceil(most * profile.share)))


def _arrow(table: Table, rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema([(c.name, ARROW[c.type]) for c in table.columns.values()]))


# --- values ---------------------------------------------------------------------------------------------------------


def _value(profile: Profile, place: str, column: PolicyColumn, index: int, number: int = 0) -> Any:
    if place in profile.values:
        value = profile.values[place]
        return value[index % len(value)] if isinstance(value, list) else value
    kind = profile.default
    if kind == "null":
        return None
    if kind == "each" and column.lower is not None and column.upper is not None and column.domain is None:
        return _each(column, index)
    if column.type == "boolean":
        return index % 2 == 0 if "spread" in kind else True
    if kind == "odd":
        return _odd(column)[index % len(_odd(column))]
    if "unlisted" in kind and column.domain is not None:
        return _unlisted(column, index)
    if column.domain is not None:
        return column.domain[index % len(column.domain)] if "spread" in kind else column.domain[0]
    if column.lower is None or column.upper is None:
        return _free(column, index if "spread" in kind else 0)
    return _between_bounds(column, kind, index, drawn(place, number, index))


def _between_bounds(column: PolicyColumn, kind: str, index: int, word: int) -> Any:
    """Return a value for a column with bounds: one of the bounds, a value between them, or one far outside. `word`: the 64 bits
    that select an arbitrary value."""
    far = {"beyond": _beyond, "below": _below}.get(kind.split(maxsplit=1)[0])
    if far is not None:
        return far(column)
    if "any" in kind:
        return _any(column, word)
    if "turn" in kind:
        return _typed(column, column.lower if index % 3 else column.upper)
    if "spread" in kind and column.type in ("date", "integer", "timestamp") and index % 2:
        return _between(column, index)
    return _typed(column, column.lower if "low" in kind else column.upper)


def _typed(column: PolicyColumn, value: Any) -> Any:
    return float(value) if column.type == "real" else int(value) if column.type == "integer" else value


def _between(column: PolicyColumn, index: int) -> Any:
    """Return the value number `index` of those from the lower to the upper bound, which repeat."""
    low: Any = column.lower
    high: Any = column.upper
    if column.type == "integer":
        return int(low) + index % (int(high) - int(low) + 1)
    return low + timedelta(days=index % ((high - low).days + 1))


def _each(column: PolicyColumn, index: int) -> Any:
    """Return a value for each row that differs from those of other rows and is as near to the upper bound as possible."""
    high: Any = column.upper
    low: Any = column.lower
    if column.type == "integer":
        return int(high) - index % (int(high) - int(low) + 1)
    if column.type == "real":
        return float(high) - (float(high) - float(low)) * (index % EACH) / EACH
    return high - timedelta(days=index % ((high - low).days + 1))


def _any(column: PolicyColumn, word: int) -> Any:
    """Return the value within the bounds that a 64-bit word selects."""
    low, high = column.lower, column.upper
    if column.type == "real":
        return float(low) + (float(high) - float(low)) * word / 2**64  # type: ignore[arg-type]
    return _between(column, word)


def _beyond(column: PolicyColumn) -> Any:
    if column.type == "integer":
        return 2**62
    if column.type == "real":
        return 1e308
    return date(2999, 1, 1) if column.type == "date" else datetime(2999, 1, 1) if column.type == "timestamp" else "zzz"


def _below(column: PolicyColumn) -> Any:
    """Return a value far below the lower bound of a column that has one."""
    if column.type in ("integer", "real"):
        return -_beyond(column)
    return date(1, 1, 1) if column.type == "date" else datetime(1, 1, 1)


def _free(column: PolicyColumn, index: int) -> Any:
    """Return a value for a column that has neither bounds nor a list of values."""
    if column.type == "integer":
        return index
    if column.type == "real":
        return index + 0.5
    if column.type == "text":
        return f"t{index}"
    day = datetime(2024, 1, 1) + timedelta(days=index)
    return day.date() if column.type == "date" else day


def _odd(column: PolicyColumn) -> Sequence[Any]:
    if column.type == "real":
        return (math.nan, math.inf, -math.inf, -0.0, 5e-324, None)
    if column.type == "integer":
        return (-(2**62), 2**62, 0, None)
    if column.type == "text":
        listed = str(next((v for v in column.domain or () if v is not None), "a"))
        return (listed.upper(), f"{listed} ", "", None, "\u00e9\u4e2d", "9" * 30, "2024-02-30")
    return (None, _beyond(column))


def _unlisted(column: PolicyColumn, index: int) -> Any:
    """Return a value outside the column's list, different for each index."""
    if column.type == "text":
        return f"no such key {index}"
    beyond = _beyond(column)
    return beyond - (timedelta(days=index) if column.type in ("date", "timestamp") else index)


def _unit_key(column: PolicyColumn, number: int) -> Any:
    return number if column.type == "integer" else f"unit {number}"


def _make_unique(row: dict[str, Any], table: Table, keys: tuple[str, ...], number: int, index: int) -> None:
    """Give the columns of a unique key that are no foreign keys values that no other row has."""
    for key in keys:
        column = table.columns[key]
        if key in table.foreign_keys and len(keys) > 1:
            continue
        if column.type == "integer":
            row[key] = number * 10_000 + index
        elif column.type == "real":
            row[key] = number * 10_000.0 + index
        elif column.type == "text":
            row[key] = f"{number}-{index}"
        else:
            moment = datetime(2000, 1, 1) + timedelta(days=number * 300 + index)
            row[key] = moment.date() if column.type == "date" else moment


def _public_rows(policy: Policy, table: Table) -> Rows:
    """Return rows that respect unique keys and `max_multiplicity`, and contain the values in the domains of other tables."""
    profile, rows = Profile("public", "high spread"), list[dict[str, Any]]()
    for index in range(PUBLIC_ROWS):
        row = {c.name: _value(profile, c.name, c, index) for c in table.columns.values()}
        unique = dict.fromkeys((table.primary_key, *table.unique), 1)
        for keys, most in {**table.max_multiplicity, **unique}.items():
            for key in keys:
                listed, number = _referred(policy, table, key), index // most
                row[key] = listed[number] if number < len(listed) else _distinct(table.columns[key], number)
        rows.append(row)
    return rows


def _referred(policy: Policy, table: Table, key: str) -> list[Any]:
    """Return the values in the column's own domain, and in the domains of columns that refer to it or have its name."""
    domains = [table.columns[key].domain or ()]
    for other in policy.tables.values():
        if key in other.columns and other.columns[key].type == table.columns[key].type:
            domains.append(other.columns[key].domain or ())
        children = [child for child, parent in other.foreign_keys.items() if parent == (table.name, key)]
        domains += [other.columns[child].domain or () for child in children]
    return list(dict.fromkeys(value for domain in domains for value in domain if value is not None))


def _distinct(column: PolicyColumn, index: int) -> Any:
    if column.lower is not None and column.type == "integer":
        return int(column.lower) + index  # type: ignore[arg-type]
    return _free(column, index)


# --- sharper units --------------------------------------------------------------------------------------------------


def sharpened(profile: Profile, candidates: Mapping[str, Sequence[Any]]) -> Iterator[Profile]:
    """Yield variants of `profile`: one for each candidate value of each column, and some with other numbers of rows."""
    for place, values in candidates.items():
        for value in values:
            yield replace(
                profile, name=f"{profile.name}, {place} = {value!r}"[:120], values={**profile.values, place: value}
            )
    for share in (0.0, 0.5, 3.0):
        yield replace(profile, name=f"{profile.name}, {share} of the rows", share=share)
