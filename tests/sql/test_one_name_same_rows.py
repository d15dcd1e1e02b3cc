"""Conditions that name one release keep the same rows: otherwise a stored answer would be given to another question."""

import math
import random
from collections import defaultdict
from datetime import date, datetime, time
from typing import Any

import duckdb
import pytest
from support.effort import night, slow
from support.plain_duckdb import insert

from sql.test_same_question import keys, whole

DAYS = [date(2024, 1, 1), date(2024, 1, 31), date(2024, 2, 29), date(2024, 12, 31), date(1, 1, 1), date(9999, 12, 31)]
VALUES: dict[str, list[Any]] = {
    "nights": [0, 1, 2, 3, 4, -1, 2**62, -(2**63), None], "cost": [0.0, 0.5, 2.0, 3.0, 2.5, math.inf, math.nan, None],
    "ward": ["", "e", "er", "err", "E", "icu", "f%", "İ", None], "day": [*DAYS, None],
    "seen": [None, *(datetime.combine(day, clock) for day in DAYS for clock in (time(0), time(23, 59, 59, 999_999)))],
    "smoker": [True, False, None],
}  # fmt: skip
LITERALS = {
    "nights": ["0", "1", "2", "3", "2.5", "3.0", "30"], "cost": ["0", "0.5", "2", "3", "2.5"],
    "ward": ["''", "'e'", "'er'", "'E'", "'f%'"], "day": [f"DATE '{day}'" for day in DAYS],
    "seen": [f"TIMESTAMP '{day} {clock}'" for day in DAYS for clock in ("00:00:00", "12:00:00")],
}  # fmt: skip
PATTERNS = ["'%'", "'e+%'", "'e%'", "''", "'_'", "'%r'", "'e_'", "'%e%'", "'%%'", "'er'"]
EXPRESSIONS = ["'^e'", "'^er$'", "'^(e|er)$'", "'^(?:er|E)'", "'^e.*'", "'e'", "'^e.*$'", "'^e|r'", "'^(e|)$'", "'^e+'"]
WRITTEN = [
    ("%A", "Monday"),
    ("%a", "Mon"),
    ("%B", "January"),
    ("%b", "Feb"),
    ("%m", "02"),
    ("%d", "31"),
    ("%H", "23"),
    ("%m", "2"),
]
STARTS = ["2024", "2024-", "2024-0", "2024-02", "2024-02-", "2024-02-29", "0001", "9999", "999"]
MEASURES = (
    "COUNT(*)",
    "COUNT(cost)",
    "COUNT(ward)",
    "COUNT(DISTINCT ward)",
    "SUM(cost)",
    "AVG(cost)",
    "MEDIAN(cost)",
    "SUM(nights)",
)
TESTS = (
    "nights IS NOT NULL",
    "cost IS NOT NULL",
    "ward IS NOT NULL",
    "nights > 1",
    "cost > 0.5",
    "ward = 'er'",
    "nights + 1 IS NOT NULL",
)
UNITS = ["year", "quarter", "month", "week", "day"]
OPERATORS = ["=", "<>", "<", ">", "<=", ">="]


def _of_one_column(rng: random.Random) -> str:
    """Return a condition on one column; with few literals, so that many of them mean the same."""
    column = rng.choice(list(VALUES))
    negation, operator, number = rng.choice(["", "NOT "]), rng.choice(OPERATORS), rng.choice([-2, -1, 0, 1, 2, 3])
    if column == "smoker":
        ways = ["smoker", "NOT smoker", "smoker IS NOT TRUE", "smoker IS FALSE", "coalesce(smoker, TRUE)"]
        return rng.choice([*ways, "smoker IS NOT FALSE", f"smoker::INT {operator} {number}"])
    a, b = rng.choices(LITERALS[column], k=2)
    ways = [f"{column} {operator} {a}"] * 2
    ways += [
        f"{column} {negation}IN ({a}, {b})",
        f"{column} {negation}BETWEEN {a} AND {b}",
        f"{column} IS {negation}NULL",
    ]
    ways += [f"{column} IS {negation}DISTINCT FROM {a}", f"coalesce({column}, {a}) {operator} {b}"]
    if column == "nights":
        computed = [
            f"nights + {number}",
            f"{number} - nights",
            "-nights",
            f"nights * {number}",
            f"nights // {number or 4}",
        ]
        steps = [
            f"floor(nights / {abs(number) or 10})",
            "ceil(nights / 2.5) * 3",
            "round(nights / 3)",
            "trunc(nights / 10)",
            "CAST(nights / 4 AS BIGINT)",
        ]
        ways += [f"{rng.choice(steps)} {operator} {rng.choice(['0', '1', '2', '0.5', '2.0', '3'])}" for _ in range(3)]
        ways += [f"{rng.choice(steps)} {negation}IN (0, 1, {rng.choice(['2', '2.5', 'NULL'])})"]
        ways += [f"TRY({rng.choice(computed)}) {operator} {rng.choice(['0', '0', '1', '2', '3'])}" for _ in range(4)]
    if column == "ward":
        ways += [
            f"ward {negation}ILIKE {rng.choice(PATTERNS)}",
            f"lower(ward) {negation}LIKE {rng.choice(PATTERNS)}",
            f"lower(ward) {operator} {a}",
            f"length(ward) {operator} {number}",
            f"strpos(ward, {a}) {operator} 1",
            f"ward {negation}LIKE {rng.choice(PATTERNS)}",
            f"{negation}starts_with(ward, {a})",
            f"strpos(ward, {a}) > 0",
        ]
        ways += [f"{negation}regexp_matches(ward, {rng.choice(EXPRESSIONS)})"] * 2
        ways += [f"{rng.choice(['left', 'right'])}(ward, {rng.randint(1, 3)}) {operator} {a}"]
    if column in ("day", "seen"):
        ways += [f"year({column}) {operator} {rng.choice(['2023', '2024', '9999', '1'])}"]
        ways += [f"date_trunc('{rng.choice(UNITS)}', {column}) {operator} {rng.choice(LITERALS['day'])}"]
        part = f"{rng.choice(['month', 'quarter', 'isodow', 'dayofweek'])}({column}) {operator} {rng.choice(['1', '2', '4', '7'])}"
        ways += [part, f"year({column}) {rng.choice(OPERATORS)} 2024 AND {part}"]
        written = rng.choice(["0001-01", "2024-01", "2024-02", "2024-1", "9999-12"])
        ways += [f"strftime({column}, '%Y-%m') {rng.choice(['=', '<>'])} '{written}'"]
        part, text = rng.choice(WRITTEN)
        ways += [f"strftime({column}, '{part}') {rng.choice(['=', '<>', 'IN'])} ('{text}')"]
        ways += [
            f"CAST(strftime({column}, '%{rng.choice('Ymd')}') AS INT) {operator} {rng.choice(['2024', '2', '31'])}"
        ]
        ways += [] if column == "seen" else [f"CAST({column} AS TEXT) {negation}LIKE '{rng.choice(STARTS)}%'"]
        ways += [f"CAST({column} AS DATE) {operator} {rng.choice(LITERALS['day'])}"]
    return rng.choice(ways)


def _condition(rng: random.Random, depth: int) -> str:
    if not depth or rng.random() < 0.35:
        return _of_one_column(rng)
    first, second = (_condition(rng, depth - 1) for _ in range(2))
    third = _of_one_column(rng)
    return rng.choice([
        f"({first} AND {second} OR {first} AND {third})", f"(({first} OR {second}) AND ({first} OR {third}))",
        f"({first} AND {second})", f"({first} OR {second})", f"NOT ({first})", f"({first}) IS NOT TRUE",
        f"CASE WHEN {first} THEN TRUE ELSE {second} END",
    ])  # fmt: skip


def _fill(connection: duckdb.DuckDBPyConnection, rng: random.Random) -> None:
    rows = [[rng.choice(values) for values in VALUES.values()] for _ in range(1_000)]
    types = "nights INT8, cost FLOAT8, ward TEXT, day DATE, seen TIMESTAMP, smoker BOOL"
    connection.execute(f"CREATE TABLE visits ({types})")
    insert(connection, "visits", rows)


@pytest.mark.parametrize("seed", [0, *map(slow, range(1, 4)), *map(night, range(4, 20))])
def test_conditions_that_name_one_release_keep_the_same_rows(seed: int) -> None:
    rng = random.Random(seed)
    kept: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    with duckdb.connect(config={"threads": 1}) as connection:
        _fill(connection, rng)
        for _ in range(600):
            text = _condition(rng, rng.choice([0, 0, 1, 2]))
            (found,) = connection.execute(f"SELECT list(rowid ORDER BY rowid) FROM visits WHERE {text}").fetchall()
            kept[keys(text.replace("TRY(", "("))].setdefault(str(found), text)
    assert [list(texts.values()) for texts in kept.values() if len(texts) > 1] == []


@pytest.mark.parametrize("seed", [0, *map(slow, range(1, 4)), *map(night, range(4, 20))])
def test_measures_that_name_one_release_have_the_same_values(seed: int) -> None:
    """Whether their conditions stand in WHERE, in FILTER, or in the arguments."""
    rng = random.Random(seed)
    answers: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    texts: dict[tuple[str, ...], set[str]] = defaultdict(set)
    with duckdb.connect(config={"threads": 1}) as connection:
        _fill(connection, rng)
        connection.execute("DELETE FROM visits WHERE nights IS NULL")  # the policy says that there is none
        for _ in range(600):
            where, *filters = (" AND ".join(rng.sample(TESTS, rng.choice([0, 1, 1, 2]))) for _ in range(3))
            measures = rng.sample(MEASURES, rng.choice([1, 1, 2]))
            filtered = zip(measures, filters, strict=False)
            listed = [measure + (f" FILTER (WHERE {tested})" if tested else "") for measure, tested in filtered]
            text = f"SELECT {', '.join(listed)} FROM visits" + (f" WHERE {where}" if where else "")
            as_here = text.replace("COUNT(cost)", "COUNT(nullif(cost, 'nan'))")  # in aggregates NaN is NULL
            (values,) = connection.execute(as_here).fetchall()
            name = (*whole(text), *sorted({measure.replace("COUNT(cost)", "COUNT(*)") for measure in measures}))
            answers[name].setdefault(str(sorted(str(value or 0) for value in values)), text)
            texts[name].add(text)
    assert [list(each.values()) for each in answers.values() if len(each) > 1] == []
    assert sum(len(each) > 1 for each in texts.values()) > 20
