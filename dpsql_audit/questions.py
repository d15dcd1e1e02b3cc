"""Questions about the tables of a policy, generated from it: every kind of measure, key, bound and relation that it allows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from dpsql.media.text import sql_name
from dpsql.policy import Policy, PolicyColumn, Table
from dpsql.pricing.running_totals import LEAST_VALUES
from dpsql.privacy.mechanisms.registry import askable

MOST_OF_A_TABLE, MOST_OF_A_KIND = 80, 2
"""The most questions about one table, and the most of one kind among them."""
MOST_PAST, LONGEST_LOGGED = 40, 2_000
"""The most earlier questions taken from the audit log, and the length at which the log truncates a text."""
MEASURED_AS_ONE = "measured as one"
SERIES = 40
"""Number of values of an ordered key whose running totals are asked for."""
SEEN_ONLY = ("failing", "refused")
"""Kinds of questions that are asked to compare what is visible over different data, not how far their numbers move."""


@dataclass(frozen=True)
class Question:
    """A statement and the options that are set before it (`dp.max_groups = 2`).

    `origin`: where it comes from. `kind`: questions of one kind rest on the same argument in docs/privacy.md. A question of the
    kind `MEASURED_AS_ONE` holds several statements that are measured together, as `dpsql run --workload` does; its answer is that
    of the first one.
    """

    sql: str
    settings: tuple[str, ...] = ()
    origin: str = "made from the policy"
    kind: str = "own"


def questions_of(policy: Policy) -> list[Question]:
    """Return questions about every protected table, at most `MOST_OF_A_TABLE` for each: first one of every kind, then a second
    one of every kind, so that all kinds are tried even if time is short."""
    questions: dict[tuple[str, tuple[str, ...]], Question] = {}
    for name in policy.tables:
        if policy.is_protected(name):
            of_table = [
                Question(sql, tuple(settings), kind=kind)
                for kind, sql, *settings in _of_table(policy, policy.tables[name])
            ]
            count: Counter[str] = Counter()
            for question in _by_kind(of_table)[:MOST_OF_A_TABLE]:
                count[question.kind] += 1
                if question.kind in SEEN_ONLY or count[question.kind] <= MOST_OF_A_KIND:
                    questions.setdefault((question.sql, question.settings), question)
    return _by_kind(list(questions.values()))


def past_questions(log: Path) -> list[Question]:
    """Return the latest distinct questions of an audit log that contains their texts (`log_sql`), newest first, without truncated
    ones.

    Lines that are not events are skipped; a missing log has no questions.
    """
    texts: dict[str, None] = {}
    with suppress(FileNotFoundError), log.open(encoding="ascii", errors="replace") as lines:
        for line in lines:
            try:
                text = json.loads(line).get("sql")
            except (ValueError, AttributeError):
                continue
            if isinstance(text, str) and text.strip() and len(text) < LONGEST_LOGGED:
                texts.pop(text, None)
                texts[text] = None
    return [Question(text.strip().rstrip(";"), (), "asked before") for text in list(reversed(texts))[:MOST_PAST]]


def _by_kind(questions: list[Question]) -> list[Question]:
    count: Counter[str] = Counter()
    turns = []
    for question in questions:
        turns.append(count[question.kind])
        count[question.kind] += 1
    return [question for _, question in sorted(zip(turns, questions, strict=True), key=lambda pair: pair[0])]


def _of_table(policy: Policy, table: Table) -> Iterator[tuple[str, ...]]:
    """Yield kind, SQL and settings of every question about one table."""
    numbers = [c for c in table.columns.values() if _is_bounded_number(c) and c.name not in table.foreign_keys]
    numbers.sort(key=lambda c: (not _has_two_signs(c), c.type != "real"))
    listed = [c for c in table.columns.values() if _has_public_keys(c)]
    private = [c for c in table.columns.values() if c.type == "text" and c.domain is None]
    bounded = [c for c in table.columns.values() if c.lower is not None and c.upper is not None]
    unit = policy.unit_column(table.name)
    name, keys = sql_name(table.name), [sql_name(c.name) for c in listed]
    yield "count", f"SELECT COUNT(*) AS n FROM {name}"
    yield "gaussian", f"SELECT COUNT(*) AS n FROM {name}", "dp.mechanism = 'gaussian'"
    yield "laplace", f"SELECT COUNT(*) AS n FROM {name}", "dp.mechanism = 'laplace'"
    for key in keys[:1]:
        yield "laplace", f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}", "dp.mechanism = 'laplace'"
        yield from _of_shared_noise(name, key)
    if unit is not None and not policy.unit_joins(table.name):
        yield "units", f"SELECT COUNT(DISTINCT {sql_name(unit)}) AS n FROM {name}"
        for key in keys[:1]:
            yield "units", f"SELECT {key}, COUNT(DISTINCT {sql_name(unit)}) AS n FROM {name} GROUP BY {key}"
    yield from _sums(name, numbers[:3], keys[:2])
    for column in bounded[:3]:
        yield from _quantiles(name, sql_name(column.name), keys[:1])
    for key in keys[:2]:
        yield from _listed(name, key, [sql_name(column.name) for column in bounded[:1]], keys[:1])
    yield from _running(name, [c for c in bounded if c.name != unit], (table.bounds.max_rows or 1) > 1)
    for key in keys[:3]:
        yield "public keys", f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}"
    if (table.bounds.max_rows or 1) > 1:
        yield from _bounded(name, numbers[:2], keys[:1])
    if len(keys) > 1:
        yield "rollup", f"SELECT {keys[0]}, {keys[1]}, COUNT(*) AS n FROM {name} GROUP BY ROLLUP({keys[0]}, {keys[1]})"
    for column in private[:2]:
        yield from _private(name, sql_name(column.name), numbers[:1])
    if unit is not None and not policy.unit_joins(table.name):
        yield from _per_unit(name, sql_name(unit), keys[:1], numbers[:1])
        most = table.bounds.max_rows or 1
        sizes = f"SELECT *, COUNT(*) OVER (PARTITION BY {sql_name(unit)}) AS size FROM {name}"
        # This holds for every unit. If the size counted the rows of all units, one more unit would flip it for every row.
        yield "window size", f"SELECT COUNT(*) AS n FROM ({sizes}) WHERE (size - 1) % {2 * most} < {most}"
    for number, key in enumerate(keys[1:2], 1):
        sums = [f"SUM({sql_name(column.name)}) AS s" for column in numbers[:1]] or ["COUNT(*) AS n"]
        for measure in ("COUNT(*) AS n", *sums):
            tables = [f"SELECT {each}, {measure} FROM {name} GROUP BY {each}" for each in (keys[number - 1], key)]
            yield MEASURED_AS_ONE, ";\n".join([*tables, f"SELECT {measure} FROM {name}"])
    yield from _joined(policy, table)
    yield from _stages(name, keys[:1], numbers[:1])
    yield "union", f"SELECT COUNT(*) AS n FROM (SELECT 1 AS one FROM {name} UNION ALL SELECT 2 AS one FROM {name})"
    yield from _failing(name, table)


def _of_shared_noise(name: str, key: str) -> Iterator[tuple[str, ...]]:
    for mechanism in askable():
        counted = f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}", f"dp.mechanism = '{mechanism.word}'"
        if mechanism.shared:
            yield "correlated noise", *counted
        if mechanism.correlated is not None:
            yield "correlated noise", *counted, "dp.correlation = 0.5"


def _sums(name: str, numbers: list[PolicyColumn], keys: list[str]) -> Iterator[tuple[str, ...]]:
    for column in numbers:
        value = sql_name(column.name)
        yield "sum", f"SELECT SUM({value}) AS s FROM {name}"
        yield "joint sums", f"SELECT COUNT(*) AS n, SUM({value}) AS s, AVG({value}) AS m FROM {name}"
        yield "deviation", f"SELECT STDDEV({value}) AS d FROM {name} WHERE {value} > {_between(column, 1, 2)}"
        yield "expression", f"SELECT SUM({value} - {_between(column, 3, 4)}) AS s FROM {name}"
        yield "filter", f"SELECT COUNT(*) AS n FROM {name} WHERE {value} > {_between(column, 1, 1)}"
        yield "distinct values", f"SELECT SUM(DISTINCT {value}) AS s FROM {name}"
        yield "ratio", f"SELECT SUM(clamp({value} / ({value} - {_between(column, 1, 2)}), -9, 9)) AS s FROM {name}"
        low, high = _between(column, 0, 1), _between(column, 1, 1)
        if float(low) < float(high):
            yield "samples", f"SELECT SAMPLE_AGGREGATE(AVG({value}), {low}, {high}, 20) AS v FROM {name}"
        for key in keys[:1]:
            if float(high) > 0:
                spread = f"SAMPLE_AGGREGATE(MAX({value}) - MIN({value}), 0, {high}, 5)"
                yield "samples", f"SELECT {key}, {spread} AS v FROM {name} GROUP BY {key}"
            yield "mean by key", f"SELECT {key}, AVG({value}) AS m FROM {name} GROUP BY {key}"
            yield "expression", f"SELECT {key}, SUM({value} * 2 + 1) AS s FROM {name} GROUP BY {key}"
            yield (
                "filter",
                f"SELECT {key}, SUM({value}) FILTER (WHERE {value} > {_between(column, 1, 2)}) AS s FROM {name} GROUP BY {key}",
            )
    if len(numbers) > 1:
        first, second = (sql_name(column.name) for column in numbers[:2])
        yield "correlation", f"SELECT CORR({first}, {second}) AS c FROM {name}"


def _quantiles(name: str, value: str, keys: list[str]) -> Iterator[tuple[str, ...]]:
    yield "median", f"SELECT MEDIAN({value}) AS m FROM {name}"
    parts = ", ".join(
        f"QUANTILE_DISC({value}, {part}) AS q{number}" for number, part in enumerate((0.1, 0.25, 0.5, 0.9))
    )
    yield "quantiles", f"SELECT {parts} FROM {name}"
    yield "extremes", f"SELECT MIN({value}) AS least, MAX({value}) AS most FROM {name}"
    for key in keys:
        yield "median", f"SELECT {key}, QUANTILE_DISC({value}, 0.9) AS q FROM {name} GROUP BY {key}"
    smooth, proposed = ("dp.mechanism = 'smooth_sensitivity'",), ("dp.mechanism = 'propose_test_release'",)
    yield "local sensitivity", f"SELECT MEDIAN({value}) AS m FROM {name}", *smooth
    yield "local sensitivity", f"SELECT AVG({value}) AS m FROM {name}", *proposed, "dp.proposed_sensitivity = 0.5"
    for key in keys:
        yield "local sensitivity", f"SELECT {key}, MEDIAN({value}) AS m FROM {name} GROUP BY {key}", *smooth


def _listed(name: str, value: str, orders: list[str], keys: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield questions whose answer is chosen among the values of a list."""
    yield "mode", f"SELECT MODE({value}) AS m FROM {name}"
    yield "extremes", f"SELECT MIN({value}) AS least FROM {name}"
    for key in keys:
        yield "mode", f"SELECT {key}, MODE({value}) AS m FROM {name} GROUP BY {key}"
    for order in orders:
        yield "extreme rows", f"SELECT ARG_MAX({value}, {order}) AS k FROM {name}"


def _private(name: str, key: str, numbers: list[PolicyColumn]) -> Iterator[tuple[str, ...]]:
    yield "private keys", f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}"
    yield "private keys", f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}", "dp.max_groups = 1"
    yield "distinct values", f"SELECT COUNT(DISTINCT {key}) AS n FROM {name}"
    yield "texts", f"SELECT COUNT(*) AS n FROM {name} WHERE upper({key}) = {key}"
    for column in numbers:
        value = sql_name(column.name)
        yield "private keys", f"SELECT {key}, SUM({value}) AS s, AVG({value}) AS m FROM {name} GROUP BY {key}"
        different = f"(SELECT DISTINCT {key}, {value} FROM {name})"
        yield "rows of nobody", f"SELECT {key}, COUNT(*) AS n FROM {different} GROUP BY {key}"
        yield "keys of nobody", f"SELECT {key}, SUM({value}) AS s FROM {different} GROUP BY {key}"


def _bounded(name: str, numbers: list[PolicyColumn], keys: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield questions with contribution bounds of their own, for a table in which a unit may have more than one row."""
    yield "max_count", f"SELECT COUNT(*) AS n FROM {name}", "dp.max_count = 2"
    for column in numbers:
        most = max(abs(float(column.lower or 0)), abs(float(column.upper or 0))) or 1.0  # type: ignore[arg-type]
        settings = (f"dp.max_total = {most:g}",)
        yield "max_total", f"SELECT SUM({sql_name(column.name)}) AS s FROM {name}", *settings
        if column is numbers[0]:
            yield "max_total", f"SELECT SUM({sql_name(column.name)}) AS s FROM {name}", "dp.max_total = auto"
        for key in keys:
            yield "max_total", f"SELECT {key}, SUM({sql_name(column.name)}) AS s FROM {name} GROUP BY {key}", *settings
    for key in keys:
        counted = f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}"
        yield "max_groups", counted, "dp.max_groups = 1"
        yield "max_rows_per_group", counted, "dp.max_rows_per_group = 1"
        yield "max_count", counted, "dp.max_count = 2"
        yield "max_values", f"SELECT COUNT(DISTINCT {key}) AS n FROM {name}", "dp.max_values = 1"
        for column in numbers[:1]:
            different = f"SELECT {key}, COUNT(DISTINCT {sql_name(column.name)}) AS n FROM {name} GROUP BY {key}"
            yield "max_values", different, "dp.max_values = 2"
            yield "places that are chosen", different, "dp.max_values = auto"
        yield "max_count", counted, "dp.max_count = 2", "dp.mechanism = 'gaussian'"


def _running(name: str, columns: list[PolicyColumn], many_rows: bool) -> Iterator[tuple[str, ...]]:
    """Yield counts by the first ordered key, with noise that nearly cancels in running totals."""
    for column in [column for column in columns if _has_places(column)][:1]:
        key = sql_name(column.name)
        inside = f"{key} BETWEEN {_place(column, 0)} AND {_place(column, SERIES - 1)}"
        counted = f"SELECT {key}, COUNT(*) AS n FROM {name} WHERE {inside} GROUP BY {key}"
        running = (counted, "dp.workload = running", "dp.mechanism = 'gaussian'")
        yield "running totals", *running
        if many_rows:
            yield "running totals", *running, "dp.max_groups = 2", "dp.max_rows_per_group = 1"


def _per_unit(name: str, unit: str, keys: list[str], numbers: list[PolicyColumn]) -> Iterator[tuple[str, ...]]:
    """Yield questions with subqueries and windows per privacy unit, and with self-joins of one unit's rows."""
    yield "per unit", f"SELECT AVG(n) AS mean FROM (SELECT {unit}, COUNT(*) AS n FROM {name} GROUP BY {unit})"
    order = keys[0] if keys else unit
    numbered = f"SELECT *, row_number() OVER (PARTITION BY {unit} ORDER BY {order}) AS r FROM {name}"
    yield "window", f"SELECT COUNT(*) AS n FROM ({numbered}) WHERE r <= 2"
    yield "window", f"SELECT COUNT(*) AS n FROM ({numbered}) WHERE r < 2"
    first = numbered.replace(f"BY {unit} ORDER", f"BY {unit}, {order} ORDER")
    yield "window by key", f"SELECT COUNT(*) AS n FROM ({first}) WHERE r = 1"
    for column in numbers:
        by_value = numbered.replace(f"ORDER BY {order}", f"ORDER BY {sql_name(column.name)}")
        for key in keys:
            yield "window by key", f"SELECT {key}, COUNT(*) AS n FROM ({by_value}) WHERE r <= 2 GROUP BY {key}"
    yield "self join", f"SELECT COUNT(*) AS n FROM {name} AS a JOIN {name} AS b ON a.{unit} = b.{unit}"
    for column in numbers:
        value = sql_name(column.name)
        yield "window sum", f"SELECT SUM({value}) AS s FROM ({numbered}) WHERE r <= 2"
        each = f"SELECT {unit}, SUM({value}) AS s FROM {name} GROUP BY {unit}"
        yield "per unit", f"SELECT SUM(s) AS s FROM ({each})"
    for key in keys:
        each = f"SELECT {unit}, {key}, COUNT(*) AS n FROM {name} GROUP BY {unit}, {key}"
        yield "per unit and key", f"SELECT COUNT(*) AS n FROM ({each})"


def _joined(policy: Policy, table: Table) -> Iterator[tuple[str, ...]]:
    for key, (parent, parent_key) in table.foreign_keys.items():
        on = f"a.{sql_name(key)} = b.{sql_name(parent_key)}"
        both = f"{sql_name(table.name)} AS a JOIN {sql_name(parent)} AS b ON {on}"
        yield "join", f"SELECT COUNT(*) AS n FROM {both}"
        yield (
            "outer join",
            f"SELECT COUNT(*) AS n FROM {sql_name(table.name)} AS a LEFT JOIN {sql_name(parent)} AS b ON {on}",
        )
        if policy.is_protected(parent):
            yield (
                "outer join",
                f"SELECT COUNT(*) AS n FROM {sql_name(parent)} AS b LEFT JOIN {sql_name(table.name)} AS a ON {on}",
            )
        listed = [c for c in policy.tables[parent].columns.values() if _has_public_keys(c)]
        for column in listed[:1]:
            text = f"b.{sql_name(column.name)}"
            yield "join", f"SELECT {text}, COUNT(*) AS n FROM {both} GROUP BY {text}"
    for other in policy.tables.values():
        for keys in other.max_multiplicity if other.public else ():
            shared = [k for k in keys if k in table.columns and table.columns[k].type == other.columns[k].type]
            if len(shared) == len(keys):
                on = " AND ".join(f"a.{sql_name(k)} = b.{sql_name(k)}" for k in keys)
                yield (
                    "repeating join",
                    f"SELECT COUNT(*) AS n FROM {sql_name(table.name)} AS a JOIN {sql_name(other.name)} AS b ON {on}",
                )


def _stages(name: str, keys: list[str], numbers: list[PolicyColumn]) -> Iterator[tuple[str, ...]]:
    """Yield questions with blocks that read the release of an earlier block."""
    for key in keys:
        often = f"SELECT {key} FROM {name} GROUP BY {key} HAVING COUNT(*) < 60"
        yield "stages", f"SELECT COUNT(*) AS n FROM {name} WHERE {key} IN ({often})"
    for column in numbers:
        value = sql_name(column.name)
        yield "stages", f"SELECT COUNT(*) AS n FROM {name} WHERE {value} > (SELECT AVG({value}) FROM {name})"


def _failing(name: str, table: Table) -> Iterator[tuple[str, ...]]:
    """Yield questions with expressions on which an engine may fail for some rows, and questions that are refused."""
    yield "refused", f"SELECT * FROM {name}"
    for column in table.columns.values():
        value = sql_name(column.name)
        if column.type in ("integer", "real"):
            yield (
                "failing",
                f"SELECT COUNT(*) AS n FROM {name} WHERE 1 / {value} > 0 AND {value} * 9000000000000000000 > 0",
            )
        elif column.type == "text":
            yield (
                "failing",
                f"SELECT COUNT(CAST({value} AS INTEGER)) AS n, COUNT(CAST({value} AS DATE)) AS d FROM {name}",
            )
        else:
            yield "failing", f"SELECT COUNT(*) AS n FROM {name} WHERE CAST({value} AS TEXT) > '0'"


def _is_bounded_number(column: PolicyColumn) -> bool:
    return column.type in ("integer", "real") and column.lower is not None and column.upper is not None


def _has_public_keys(column: PolicyColumn) -> bool:
    return column.domain is not None or column.type == "boolean"


def _has_places(column: PolicyColumn) -> bool:
    """Return whether a column has days or integers between its bounds, and enough of them for the noise of running totals."""
    return column.type in ("integer", "date") and _distance(column) >= LEAST_VALUES - 1


def _distance(column: PolicyColumn) -> int:
    """Return the index of the last value between the bounds of a column, counted from 0."""
    width: Any = column.upper - column.lower  # type: ignore[operator]
    return int(width.days if column.type == "date" else width)


def _place(column: PolicyColumn, place: int) -> str:
    """Return the value at index `place` between the bounds, or the last value if there are fewer."""
    inside: Any = min(place, _distance(column))
    value: Any = column.lower + (timedelta(days=inside) if column.type == "date" else inside)  # type: ignore[operator]
    return f"DATE '{value}'" if column.type == "date" else f"{value}"


def _has_two_signs(column: PolicyColumn) -> bool:
    return float(column.lower or 0) < 0 < float(column.upper or 0)  # type: ignore[arg-type]


def _between(column: PolicyColumn, part: int, parts: int) -> str:
    """Return the value at `part` / `parts` of the way from the lower bound to the upper bound."""
    low, high = float(column.lower or 0), float(column.upper or 0)  # type: ignore[arg-type]
    return _number(column, low + (high - low) * part / parts)


def _number(column: PolicyColumn, value: Any) -> str:
    return f"{int(value)}" if column.type == "integer" else f"{float(value):.17g}"
