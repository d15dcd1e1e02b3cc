"""SQL text of the bounded view of a protected table: at most `max_rows` rows of each unit (privacy.md 2).

The first rows in the order of a keyed hash of their unit and content stay; the content itself breaks ties. Which rows
stay depends only on the unit's own rows and the key, so adding a unit never changes the contribution of another unit;
rows that tie are equal in everything that a question can see. The content is every column of the policy, whatever the
question reads: there is one view for all questions, the same whether a window computes it or the contribution index has
stored it. The hash reads the declared primary key, or at most `MOST_HASHED` columns, so that a question over a wide table
does not read all of it. Nothing rests on the choice: rows of a unit with equal hashes are ordered by a hash of their whole
content unless there is a declared key, and then by the content.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpsql.engine.dialect import Dialect
from dpsql.engine.emit.quantization import integer_type, kept_integers, row_integer, value_text
from dpsql.engine.query import RowsRead, Source
from dpsql.plan.intervals import Type
from dpsql.plan.plan import UNIT
from dpsql.policy import Policy
from dpsql.storage.records import dataclass

RANK, ROWS_OF_UNIT, ROW, IS_BEYOND = '"#rank"', '"#rows of unit"', '"#row"', '"#is beyond"'
MOST_HASHED = 8
"""Most columns that are read to order the rows of units, as long as their hashes differ."""
_COUNT, _HASH, _HEAVY, _COUNTS, _LIMITED = '"#count"', '"#hash"', '"#heavy unit"', '"#counts"', '"#limited"'
_NUMBER, _ROW_HASH, _LIMIT = '"#number"', '"#row hash"', '"#limit of hashes"'
_HASHED, _LIMITS = '"#hashed"', '"#limits of numbers"'
_DEVIATIONS = 6
"""Standard deviations by which the limit of hashes exceeds the mean number of rows below it."""


@dataclass(frozen=True)
class BoundedView:
    """The texts of one table's view.

    `every`: a SELECT of `names` (quoted columns of the policy, in its types) and the unit's key for every row; `rows`:
    the same for the rows that have a unit; `alone`: the table, without the tables on its path to the unit; `content`: the
    columns by which rows are ordered, and `hashed` those that each of their hashes reads; `most`: max_rows; `joined`: whether
    other tables are read to find the unit; `integers`: select items over `names`, the integers that questions sum
    (`quantization.kept_integers`); `narrow`: the same in the narrow types of a copy; `units`: whether rows have units;
    `is_snapshot`: that of all tables that are read; `numbered`: `rows` with the number of each in its table (`ROW`), or "".
    Under row privacy `rows` is `every`, `units` is False and `most` is 1.
    """

    table: str
    every: str
    rows: str
    alone: str
    names: tuple[str, ...]
    content: tuple[str, ...]
    hashed: tuple[tuple[str, ...], ...]
    most: int
    joined: bool
    integers: tuple[str, ...]
    narrow: tuple[str, ...]
    units: bool
    dialect: Dialect
    is_snapshot: bool = False
    numbered: str = ""

    def bounded(self, key: str, hidden: tuple[str, ...], part: RowsRead = RowsRead.KEPT) -> str:
        """Return a SELECT of the rows of a part of the whole table, with their `hidden` columns.

        Thresholds are counted in the same statement if all its readings see the same rows. If they did not, a unit that has
        few rows where they are counted, and many where they are used, would keep all of these.
        """
        if not self.is_snapshot or part is RowsRead.ALL:
            return self.part(part, key, hidden)
        limits = self.dialect.identifier("#limits")
        return f"WITH {limits} AS MATERIALIZED ({self.thresholds(key)}) {self.part(part, key, hidden, limits)}"

    def part(self, part: RowsRead, key: str, hidden: tuple[str, ...], thresholds: str = "") -> str:
        """Return a SELECT of the rows of a part. `thresholds`: a table as for `within_thresholds`; "": all rows are ranked."""
        if part is RowsRead.KEPT:
            within = self.within_thresholds if thresholds else self.within_max_rows
            return within(thresholds or self.rows, key, hidden)
        columns = ", ".join([*self.names, *hidden])
        if part is RowsRead.ALL:
            return f"SELECT {columns} FROM {self.dialect.derived(self.rows)}"
        if thresholds:
            return self._beyond_thresholds(thresholds, key, columns)
        return f"SELECT {columns} FROM {self.dialect.derived(self.ranked(self.rows, key))} WHERE {RANK} > {self.most}"

    def within_max_rows(self, rows: str, key: str, hidden: tuple[str, ...]) -> str:
        """Return a SELECT of the rows within max_rows, with their `hidden` columns. `rows` contains all rows of a unit
        or none."""
        return self._within(self.ranked(rows, key), hidden)

    def within_max_rows_by_counts(self, rows: str, key: str, hidden: tuple[str, ...]) -> str:
        """Return a SELECT of the same rows as `within_max_rows` that hashes only the rows of units that have too many.

        A first window counts the rows of each unit. All rows of a unit with at most `most` rows are within `most`, whatever
        their order; the rows of other units are ordered as in `ranked`.
        """
        unit = self.dialect.identifier(UNIT)
        counted = f"SELECT *, count(*) OVER (PARTITION BY {unit}) AS {_COUNT} FROM {self.dialect.derived(rows)}"
        order = [self._hash(key), *self._ties(key)]
        needed = [f"CASE WHEN {_COUNT} > {self.most} THEN {term} END" for term in order]
        position = _row_number([unit], needed)
        return self._within(f"SELECT *, {position} AS {RANK} FROM {self.dialect.derived(counted)}", hidden)

    def thresholds(self, key: str) -> str:
        """Return a SELECT of the units that have too many rows, each with the hash of its first row that is left out, and how
        many rows with this hash stay (`#count`). `within_thresholds` keeps the rows of `ranked` by it."""
        steps = ", ".join(f"{table} AS MATERIALIZED ({select})" for table, select in self.counting(key).items())
        return f"WITH {steps} {self.of_units()}"

    def of_units(self) -> str:
        """Return the SELECT of `thresholds` where the tables of `counting` exist."""
        unit = self.dialect.identifier(UNIT)
        units = self.dialect.derived(f"SELECT {_HEAVY} AS {unit}, {_NUMBER} FROM {_COUNTS}")
        return f"SELECT {unit}, {_HASH}, {_COUNT} FROM {units} {self._joined_with_limits(_LIMITS, _NUMBER)}"

    def counting(self, key: str) -> dict[str, str]:
        """Return SELECTs, each by the name of the table that later ones read: units that have too many rows, numbered; the hashes
        of their rows (the only other reading of the table, in which each row is hashed once); and the thresholds of the numbers.

        Only numbers and hashes are sorted, and of a unit with many rows only the hashes below a limit that probably leaves a few
        more than `most` + 1. If at least that many are below it, the hash of rank `most` + 1 among them is that among all rows,
        whatever the limit is. Units with fewer, such as those whose rows are equal, have all their rows sorted.
        """
        unit, rows, most = self.dialect.identifier(UNIT), self.dialect.derived(self.rows), self.most
        rows_below = self.dialect.constant(most + 1 + _DEVIATIONS * math.sqrt(most + 1))
        limit = self.dialect.order_below(f"least(1.0, {rows_below} / {_COUNT})")
        heavy = f"SELECT {unit} AS {_HEAVY}, count(*) AS {_COUNT} FROM {rows} GROUP BY {unit} HAVING count(*) > {most}"
        number = f"CAST(row_number() OVER () AS INTEGER) AS {_NUMBER}"
        # Without a condition of the hash: it would be tested in the join, which takes longer where units are dense integers.
        hashed = f"SELECT {f'{ROW}, ' * bool(self.numbered)}{_NUMBER}, {self._hash(key)} AS {_ROW_HASH}"
        below = f"{_HASHED} JOIN {_COUNTS} USING ({_NUMBER}) WHERE {_ROW_HASH} <= {_LIMIT}"
        unlimited = f"SELECT {_NUMBER} FROM {_COUNTS} WHERE {_NUMBER} NOT IN (SELECT {_NUMBER} FROM {_LIMITED})"
        all_hashed = f"{_HASHED} WHERE {_NUMBER} IN ({unlimited})"
        numbered = self.dialect.derived(self.numbered or self.rows)
        counts = self.dialect.derived(f"SELECT * FROM {_COUNTS}", "#heavy")  # a table of DuckDB also has a column rowid
        return {
            _COUNTS: f"SELECT *, {limit} AS {_LIMIT}, {number} FROM {self.dialect.derived(heavy)}",
            _HASHED: f"{hashed} FROM {numbered} JOIN {counts} ON {unit} = {_HEAVY}",
            _LIMITED: self._left_out_first(below),
            _LIMITS: f"SELECT * FROM {_LIMITED} UNION ALL {self._left_out_first(all_hashed)}",
        }

    def _left_out_first(self, hashed: str) -> str:
        """Return a SELECT of the thresholds of the units that have more than `most` rows in `hashed`, an item of FROM."""
        window = f"OVER (PARTITION BY {_NUMBER} ORDER BY {_ROW_HASH})"
        ranks = f"row_number() {window} AS {RANK}, {self.most} + 1 - rank() {window} AS {_COUNT}"
        ranked = f"SELECT {_NUMBER}, {_ROW_HASH} AS {_HASH}, {ranks} FROM {hashed}"
        return f"SELECT {_NUMBER}, {_HASH}, {_COUNT} FROM {self.dialect.derived(ranked)} WHERE {RANK} = {self.most} + 1"

    def within_thresholds(self, thresholds: str, key: str, hidden: tuple[str, ...]) -> str:
        """Return a SELECT of the same rows as `within_max_rows` of the whole table. `thresholds`: a table with the result of
        `thresholds` over the same rows.

        Rows of units without a threshold are at most `most`, and all stay: no hash is computed for them. Of the rows of another
        unit those with a smaller hash stay, which are at most `most` because the row of rank `most` + 1 has the threshold;
        rows with an equal hash fill up what is left of `most` in the order of their content.
        """
        columns, heavy = ", ".join([*self.names, *hidden]), self._joined_with_limits(thresholds)
        condition = f"CASE WHEN {_HEAVY} IS NULL THEN true ELSE {self._hash(key)} < {_HASH} END"
        below = f"SELECT {columns} FROM {self.dialect.derived(self.rows)} LEFT {heavy} WHERE {condition}"
        return f"{below} UNION ALL SELECT {columns} FROM {self._equal(heavy, key)} WHERE {RANK} <= {_COUNT}"

    def _beyond_thresholds(self, thresholds: str, key: str, columns: str) -> str:
        """Return a SELECT of the rows that have a unit and that `within_thresholds` leaves out.

        Only units with a threshold have such rows, so the engine reads the other columns, and hashes them, for these units alone.
        The row that has the threshold is left out; it is among the rows with an equal hash where some of these stay.
        """
        heavy = self._joined_with_limits(thresholds)
        above = f"{self.dialect.derived(self.rows)} {heavy} WHERE {_beyond(self._hash(key))}"
        equal = f"{self._equal(heavy, key)} WHERE {RANK} > {_COUNT}"
        return f"SELECT {columns} FROM {above} UNION ALL SELECT {columns} FROM {equal}"

    def left_out(self, key: str) -> str:
        """Return a SELECT of the numbers of rows, and whether `within_thresholds` leaves a row out: one that is listed twice is
        left out if one of both says so. A row that is not listed stays. It reads the tables of `counting`, and the table itself
        only for rows with the hash of their unit's threshold, where some of these stay."""
        hashed = f"{_HASHED} {self._joined_with_limits(_LIMITS, _NUMBER)}"
        same = f'SELECT {ROW} AS "#equal", {_COUNT} FROM {hashed} WHERE {_COUNT} > 0 AND {_ROW_HASH} = {_HASH}'
        equal = f'{self.dialect.derived(self.numbered)} JOIN {self.dialect.derived(same)} ON {ROW} = "#equal"'
        return (
            f"SELECT {ROW}, {_beyond(_ROW_HASH)} AS {IS_BEYOND} FROM {hashed} "
            f"UNION ALL SELECT {ROW}, {RANK} > {_COUNT} AS {IS_BEYOND} FROM {self._ranked_ties(equal, key)}"
        )

    def _joined_with_limits(self, thresholds: str, column: str = "") -> str:
        """Return a JOIN with thresholds by a column of theirs and of the rows ("": the unit)."""
        column = column or self.dialect.identifier(UNIT)
        heavy = self.dialect.derived(f"SELECT {column} AS {_HEAVY}, {_HASH}, {_COUNT} FROM {thresholds}", "#heavy")
        return f"JOIN {heavy} ON {column} = {_HEAVY}"

    def _equal(self, heavy: str, key: str) -> str:
        """Return the rows with the hash of their unit's threshold, where some of these stay, with their ranks among them."""
        same = f"{self.dialect.derived(self.rows)} {heavy} WHERE {_COUNT} > 0 AND {self._hash(key)} = {_HASH}"
        return self._ranked_ties(same, key)

    def _ranked_ties(self, rows: str, key: str) -> str:
        position = _row_number([self.dialect.identifier(UNIT)], self._ties(key))
        return self.dialect.derived(f"SELECT *, {position} AS {RANK} FROM {rows}")

    def row_counts(self) -> str:
        """Return a SELECT of the number of rows of each unit within max_rows: whichever rows stay, they are as many."""
        unit, counted = self.dialect.identifier(UNIT), f"least(count(*), {self.dialect.constant(self.most)})"
        return f"SELECT {counted} AS {ROWS_OF_UNIT} FROM {self.dialect.derived(self.rows)} GROUP BY {unit}"

    def _within(self, ranked: str, hidden: tuple[str, ...]) -> str:
        columns = ", ".join([*self.names, *hidden])
        return f"SELECT {columns} FROM {self.dialect.derived(ranked)} WHERE {RANK} <= {self.most}"

    def ranked(self, rows: str, key: str) -> str:
        """Return a SELECT of `rows` (as for `within_max_rows`) with the rank of each row within its unit."""
        position = _row_number([self.dialect.identifier(UNIT)], [self._hash(key), *self._ties(key)])
        return f"SELECT *, {position} AS {RANK} FROM {self.dialect.derived(rows)}"

    def _hash(self, key: str) -> str:
        return keyed_order(self.dialect, key, self.hashed[0])

    def _ties(self, key: str) -> list[str]:
        """Return the order of rows of one unit whose first hashes are equal."""
        return [*(keyed_order(self.dialect, key, columns) for columns in self.hashed[1:]), *self.content]


def _beyond(row_hash: str) -> str:
    """Return the condition for the rows that a threshold leaves out, but for those of equal hashes where some of them stay."""
    return f"CASE WHEN {_COUNT} > 0 THEN {row_hash} > {_HASH} ELSE {row_hash} >= {_HASH} END"


def rank(
    dialect: Dialect, key: str, partition: list[str], content: tuple[str, ...], function: str = "row_number"
) -> str:
    """Return a window rank within `partition`, in keyed-hash order of `content`; the content itself breaks ties of the hash,
    without the columns of the partition, which are equal in it."""
    ties = [column for column in content if column not in partition]
    return _row_number(partition, [keyed_order(dialect, key, content), *ties], function)


def _row_number(partition: list[str], order: list[str], function: str = "row_number") -> str:
    return f"{function}() OVER (PARTITION BY {', '.join(partition)} ORDER BY {', '.join(order)})"


def keyed_order(dialect: Dialect, key: str, content: tuple[str, ...]) -> str:
    """Return the keyed hash by which rows of one unit are ordered.

    The unit's key is hashed together with the content: otherwise all units would keep and drop the same values, and whole
    groups would be empty.
    """
    return dialect.keyed_order(key, [dialect.identifier(UNIT), *content])


def bounded_view(dialect: Dialect, policy: Policy, source: Callable[[str], Source], table: str) -> BoundedView:
    """Return the texts of a protected table."""
    columns, most = policy.tables[table].columns.values(), policy.tables[table].bounds.max_rows
    scanned = source(table)
    items = [
        f"{_typed(dialect, policy, 's0', table, column.name, scanned)} AS {dialect.identifier(column.name)}"
        for column in columns
    ]
    names = tuple(dialect.identifier(column.name) for column in columns)
    stored = [(dialect.identifier(name), term) for column in columns for name, term in kept_integers(column).items()]
    row = [row_integer(term, f"({value_text(term, dialect)})", dialect) for _, term in stored]
    integers = tuple(f"{value} AS {name}" for value, (name, _) in zip(row, stored, strict=True))
    # The integers are in range by construction, so these casts cannot fail.
    narrow = tuple(
        f"CAST({value} AS {integer_type(term)}) AS {name}" for value, (name, term) in zip(row, stored, strict=True)
    )
    if policy.privacy_unit is None:
        every = f"SELECT {', '.join(items)} FROM {scanned.sql} AS s0"
        return BoundedView(
            table, every, every, scanned.sql, names, names, (names,), 1, False, integers, narrow, False, dialect
        )
    assert most is not None
    tables, unit, is_snapshot = _unit_path(dialect, policy, source, table)
    every = f"SELECT {', '.join([*items, f'{unit} AS {dialect.identifier(UNIT)}'])} FROM {tables}"
    # 0.0 and -0.0 are equal for the hash and the order, but a question can tell them apart (1 / x).
    signs = tuple(dialect.sign_of(dialect.identifier(column.name)) for column in columns if column.type == "real")
    rows = f"{every} WHERE {unit} IS NOT NULL"
    numbered_tables = (scanned.numbered or scanned.sql) + tables.removeprefix(scanned.sql)
    number = f", s0.{scanned.row_number} AS {ROW} FROM {numbered_tables} WHERE {unit} IS NOT NULL"
    numbered = every.removesuffix(f" FROM {tables}") + number if scanned.row_number else ""
    joined = bool(policy.unit_joins(table))
    content = names + signs
    hashed = _hashed(dialect, policy, table, content)
    return BoundedView(
        table, every, rows, scanned.sql, names, content, hashed, most, joined, integers, narrow, True, dialect,
        is_snapshot, numbered,
    )  # fmt: skip


def _hashed(dialect: Dialect, policy: Policy, table: str, content: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the columns that each hash of a row reads. Of a wide table without a declared key the first hash reads those that
    probably distinguish a unit's rows: numbers and times, then texts, and last columns with a domain."""
    declared = policy.tables[table]
    if declared.primary_key:
        return (tuple(map(dialect.identifier, declared.primary_key)),)
    columns = [column for column in declared.columns.values() if column.name != policy.unit_column(table)]
    if len(columns) < MOST_HASHED:
        return (content,)
    columns.sort(key=lambda column: (column.domain is not None, column.type in ("text", "boolean")))
    return tuple(dialect.identifier(column.name) for column in columns[:MOST_HASHED]), content


def _unit_path(dialect: Dialect, policy: Policy, source: Callable[[str], Source], start: str) -> tuple[str, str, bool]:
    """Return the FROM text that leads from `start` along its foreign keys to the unit's key, the text of that key, and whether
    all of these tables are snapshots.

    Parent keys are unique (declared, and checked against the data), so a row matches at most one parent; a row
    without a parent belongs to no unit and is dropped (privacy.md 2).
    """
    table, last, reached = start, "s0", source(start)
    tables, is_snapshot = f"{reached.sql} AS s0", reached.is_snapshot
    for number, (child, column, parent, parent_column) in enumerate(policy.unit_joins(start), 1):
        above, alias = source(parent), f"s{number}"
        keys = [
            _typed(dialect, policy, last, child, column, reached),
            _typed(dialect, policy, alias, parent, parent_column, above),
        ]
        tables += f" JOIN {above.sql} AS {alias} ON {keys[0]} = {keys[1]}"
        last, reached, table, is_snapshot = alias, above, parent, is_snapshot and above.is_snapshot
    key = policy.unit_column(start)
    assert key is not None
    return tables, _typed(dialect, policy, last, table, key, reached), is_snapshot


def _typed(dialect: Dialect, policy: Policy, alias: str, table: str, column: str, source: Source) -> str:
    """Return a column in the type that the policy gives it, so that equal keys of two tables compare as equal."""
    type_ = Type(policy.tables[table].columns[column].type)
    return dialect.cast_column(f"{alias}.{dialect.identifier(column)}", type_, source.types[column])
