"""Questions about a policy's tables, made from the policy: each kind of measure, key, bound and relation that it allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dpsql.policy import Column, Policy, Table

MOST_OF_A_TABLE = 36


@dataclass(frozen=True)
class Question:
    """A statement and the options that are set before it (`dp.max_groups = 2`). `origin`: where it comes from."""

    sql: str
    settings: tuple[str, ...] = ()
    origin: str = "made from the policy"


def questions_of(policy: Policy) -> list[Question]:
    """Questions about every protected table, at most `MOST_OF_A_TABLE` of each."""
    found: dict[tuple[str, tuple[str, ...]], Question] = {}
    for name in policy.tables:
        if policy.is_protected(name):
            for question in islice(_of_table(policy, policy.tables[name]), MOST_OF_A_TABLE):
                found.setdefault((question.sql, question.settings), question)
    return list(found.values())


def _of_table(policy: Policy, table: Table) -> Iterator[Question]:
    numbers = [c for c in table.columns.values() if _is_bounded_number(c) and c.name not in table.foreign_keys]
    listed = [c for c in table.columns.values() if _has_public_keys(c)]
    private = [c for c in table.columns.values() if c.type == "text" and c.domain is None]
    unit = policy.unit_column(table.name)
    name, keys = _name(table.name), [_name(c.name) for c in listed]
    yield Question(f"SELECT COUNT(*) AS n FROM {name}")
    yield Question(f"SELECT COUNT(*) AS n FROM {name}", ("dp.mechanism = 'gaussian'",))
    if unit is not None and not policy.unit_joins(table.name):
        yield Question(f"SELECT COUNT(DISTINCT {_name(unit)}) AS n FROM {name}")
    yield from _sums(name, numbers[:3], keys[:2])
    for key in keys[:3]:
        yield Question(f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}")
    yield from _bounded(name, numbers[:1], keys[:1], table.bounds.max_rows or 1)
    if len(keys) > 1:
        yield Question(f"SELECT {keys[0]}, {keys[1]}, COUNT(*) AS n FROM {name} GROUP BY ROLLUP({keys[0]}, {keys[1]})")
    for column in private[:1]:
        yield Question(f"SELECT {_name(column.name)}, COUNT(*) AS n FROM {name} GROUP BY {_name(column.name)}")
        yield Question(f"SELECT COUNT(DISTINCT {_name(column.name)}) AS n FROM {name}")
    if unit is not None and not policy.unit_joins(table.name):
        yield from _per_unit(name, _name(unit), keys[:1])
    yield from _joined(policy, table)
    yield Question(f"SELECT COUNT(*) AS n FROM (SELECT 1 AS one FROM {name} UNION ALL SELECT 2 AS one FROM {name})")


def _sums(name: str, numbers: list[Column], keys: list[str]) -> Iterator[Question]:
    for column in numbers:
        value = _name(column.name)
        yield Question(f"SELECT SUM({value}) AS s FROM {name}")
        yield Question(f"SELECT COUNT(*) AS n, SUM({value}) AS s, AVG({value}) AS m FROM {name}")
        yield Question(f"SELECT STDDEV({value}) AS d FROM {name} WHERE {value} > {_middle(column)}")
        yield Question(f"SELECT SUM({value} - {_number(column, column.upper)}) AS s FROM {name}")
        for key in keys[:1]:
            yield Question(f"SELECT {key}, AVG({value}) AS m FROM {name} GROUP BY {key}")
            yield Question(f"SELECT {key}, SUM({value} * 2 + 1) AS s FROM {name} GROUP BY {key}")
    if len(numbers) > 1:
        first, second = (_name(column.name) for column in numbers[:2])
        yield Question(f"SELECT CORR({first}, {second}) AS c FROM {name}")


def _bounded(name: str, numbers: list[Column], keys: list[str], rows: int) -> Iterator[Question]:
    """Contribution bounds of a question, where a unit may have more than one row."""
    for key in keys if rows > 1 else []:
        yield Question(f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}", ("dp.max_groups = 1",))
        yield Question(f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}", ("dp.max_rows_per_group = 1",))
        yield Question(f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}", ("dp.max_count = 2",))
        yield Question(
            f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}", ("dp.max_count = 2", "dp.mechanism = 'gaussian'")
        )
        for column in numbers:
            most = max(abs(float(column.lower or 0)), abs(float(column.upper or 0)))  # type: ignore[arg-type]
            settings = (f"dp.max_total = {most:g}",)
            yield Question(f"SELECT {key}, SUM({_name(column.name)}) AS s FROM {name} GROUP BY {key}", settings)


def _per_unit(name: str, unit: str, keys: list[str]) -> Iterator[Question]:
    """Subqueries and windows per privacy unit, and rows of one unit met with each other."""
    yield Question(f"SELECT AVG(n) AS mean FROM (SELECT {unit}, COUNT(*) AS n FROM {name} GROUP BY {unit})")
    numbered = (
        f"SELECT {unit}, row_number() OVER (PARTITION BY {unit} ORDER BY {keys[0] if keys else unit}) AS r FROM {name}"
    )
    yield Question(f"SELECT COUNT(*) AS n FROM ({numbered}) WHERE r <= 2")
    yield Question(f"SELECT COUNT(*) AS n FROM {name} AS a JOIN {name} AS b ON a.{unit} = b.{unit}")
    for key in keys:
        each = f"SELECT {unit}, {key}, COUNT(*) AS n FROM {name} GROUP BY {unit}, {key}"
        yield Question(f"SELECT COUNT(*) AS n FROM ({each})")


def _joined(policy: Policy, table: Table) -> Iterator[Question]:
    for key, (parent, parent_key) in table.foreign_keys.items():
        on = f"a.{_name(key)} = b.{_name(parent_key)}"
        yield Question(f"SELECT COUNT(*) AS n FROM {_name(table.name)} AS a JOIN {_name(parent)} AS b ON {on}")
        listed = [c for c in policy.tables[parent].columns.values() if _has_public_keys(c)]
        for column in listed[:1]:
            text = f"b.{_name(column.name)}"
            yield Question(
                f"SELECT {text}, COUNT(*) AS n FROM {_name(table.name)} AS a JOIN {_name(parent)} AS b ON {on} GROUP BY {text}"
            )


def _is_bounded_number(column: Column) -> bool:
    return column.type in ("integer", "real") and column.lower is not None and column.upper is not None


def _has_public_keys(column: Column) -> bool:
    return column.domain is not None or column.type == "boolean"


def _middle(column: Column) -> str:
    return _number(column, (float(column.lower or 0) + float(column.upper or 0)) / 2)  # type: ignore[arg-type]


def _number(column: Column, value: Any) -> str:
    return f"{int(value)}" if column.type == "integer" else f"{float(value):.17g}"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
