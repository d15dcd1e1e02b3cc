"""Columns that are said to be weighted sums of noisy numbers are such sums, whatever the noise is, and common ones are recognised."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.plain_duckdb import plain_duckdb
from support.released_blocks import T0, T1, block, count_of, gaussian_noise, remainder
from support.seeds import seeds

from dpsql.noise.perturb import NoisyTerm
from dpsql.plan.formulas import greatest
from dpsql.plan.intervals import GroupFacts, Type
from dpsql.release.error_bars.column_facts import Form, RelationFacts, column_facts
from dpsql.release.remainder import ReleasedBlock, runnable

PUBLIC = {"p": pa.table({"X": [1, 2]})}
NOISE = gaussian_noise("1/200")
VALUES = np.array([[40.0, 90.0, 10.0], [64.0, -8.0, 26.0]])
"""Numbers of the two terms for three groups; all draws are even, so that the middle of two draws is whole as well."""


def released(draw: np.ndarray) -> ReleasedBlock:
    """Return a count m0, a sum m1, a mean m2, and a rounded sum of two terms, m3."""
    terms = [NoisyTerm(f"t{at}", values, 1.0, NOISE, 0, at == 0) for at, values in enumerate(draw)]
    formulas = [count_of(T0), (T1 * 2, Type.REAL), (5 + T1 / greatest(T0, 1), Type.REAL), count_of(T1 + 60 * T0)]
    return block({"k0": ["a", "b", "c"], "k1": [1, 1, 2]}, terms, formulas)


BLOCK = released(VALUES)


def facts_of(sql: str, made: ReleasedBlock = BLOCK) -> RelationFacts:
    return column_facts(remainder("SELECT 1", [made], PUBLIC), remainder(sql, [made]).tree)


def rows_of(sql: str, draw: np.ndarray) -> list[tuple[Any, ...]]:
    made, connection = released(draw), plain_duckdb()
    connection.register("dp_0", made.table({}))
    connection.register("p", PUBLIC["p"])
    question = remainder(sql, [made], PUBLIC)
    return connection.execute(runnable(question.tree.copy(), question, {})).fetchall()


class Remainders:
    """A generator of queries over the block, in which exact and noisy numbers stand wherever a number can."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self) -> str:
        shapes: tuple[Callable[[], str], ...] = (
            lambda: f"SELECT k0, {self.value()} AS k1 FROM dp_0{self.where()}{self.cut('k0', 'k1', '2')}",
            lambda: f"SELECT k1, {self.total(self.value())} FROM dp_0{self.where()} GROUP BY k1{self.having()}",
            lambda: self.cut_rows(self.choice("n", "k1")),
            lambda: f"SELECT k0, {self.window()} FROM dp_0",
            lambda: f"SELECT k0, {self.value()} FROM dp_0{self.where()} UNION ALL SELECT k0, {self.value()} FROM dp_0{self.where()}",
            lambda: f"SELECT a.k0, {self.choice('a.m0 - b.m1', 'a.m0 * b.k1', 'a.m0 * b.m0')} FROM dp_0 AS a {self.join()}",
            lambda: f"SELECT k0, {self.value()} + (SELECT {self.total(self.value())} FROM dp_0{self.where()}) FROM dp_0",
            lambda: f"WITH q(g, n) AS (SELECT k1, {self.value()} FROM dp_0) SELECT g, {self.total('n')} FROM q GROUP BY {self.choice('g', '1', 'ALL')}",
            lambda: f"SELECT {self.choice('DISTINCT', '')} {self.value()} FROM dp_0, p WHERE {self.choice('x > 1', 'm0 > x', 'k1 = x')}",
        )  # fmt: skip
        return self.random.choice(shapes)()

    def cut_rows(self, name: str) -> str:
        rows = f"SELECT k0, {self.value()} AS {name} FROM dp_0{self.where()}{self.cut('k0', name)}"
        return f"SELECT {self.total(name)} FROM ({rows}) AS q"

    def choice(self, *texts: str) -> str:
        return self.random.choice(texts)

    def value(self, depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.3:
            return self.choice("m0", "m0", "m0", "m1", "m1", "m2", "m3", "k1", "2", "0.5")
        left, right = self.value(depth - 1), self.value(depth - 1)
        return self.choice(
            *[f"({left} + {right})", f"({left} - {right})"] * 3, f"({left} * {right})", f"({left} / {right})", f"-({left})",
            f"coalesce({left}, 0)", f"CASE WHEN {self.condition()} THEN {left} ELSE {right} END", f"{left}::DOUBLE",
            f"{left}::BIGINT", f"round({left})", f"greatest({left}, {right})", f"abs({left})", f"nullif({left}, 40)",
        )  # fmt: skip

    def condition(self) -> str:
        return self.choice("k1 = 1", "k0 <> 'a'", "k1 < 2", "m0 > 45", "m1 > m0")

    def where(self) -> str:
        return self.choice("", "", f" WHERE {self.condition()}")

    def having(self) -> str:
        return self.choice("", "", " HAVING k1 > 0", " HAVING sum(m0) > 99")

    def cut(self, *orders: str) -> str:
        return self.choice("", f" ORDER BY {self.choice(*orders)} DESC LIMIT 1")

    def total(self, value: str) -> str:
        return f"{self.choice('sum', 'sum', 'avg', 'max', 'count', 'median')}({value})"

    def window(self) -> str:
        frame = self.choice(
            "ORDER BY k0", "ORDER BY m0", "PARTITION BY k1 ORDER BY k0", "PARTITION BY m0 > 45 ORDER BY k0"
        )
        return (
            f"{self.choice('sum(m0)', 'lag(m1, 1)', 'first_value(m0)', 'm0 - lag(m0, 1, 0)', 'max(m0)')} OVER ({frame})"
        )

    def join(self) -> str:
        return self.choice(
            "JOIN dp_0 AS b ON a.k1 = b.k1 + 1", "LEFT JOIN dp_0 AS b ON a.m0 = b.m0 + 50", "JOIN dp_0 AS b USING (k0)"
        )


@pytest.mark.parametrize("seed", seeds(8, 1))
def test_what_is_said_of_a_column_holds_for_any_noise(seed: int) -> None:
    """In the middle of two draws a weighted sum is in the middle of its values; rows that noise decides have no such middle."""
    questions, draws = Remainders(seed), np.random.default_rng(seed)
    said = dict.fromkeys(Form, 0)
    for _ in range(100):
        sql = questions.one()
        facts = facts_of(sql)
        if not facts.settled:
            continue
        first, second = VALUES, VALUES + 2 * draws.integers(-40, 40, VALUES.shape)
        exact = [at for at, column in enumerate(facts.columns) if column.form is Form.EXACT]
        answers = [
            sorted(rows_of(sql, draw), key=lambda row: [str(row[at]) for at in exact])
            for draw in (first, second, (first + second) / 2)
        ]
        assert len({len(rows) for rows in answers}) == 1, sql
        for at, column in enumerate(facts.columns):
            said[column.form] += 1
            for one, other, middle in zip(*([row[at] for row in rows] for rows in answers), strict=True):
                if column.form is Form.EXACT:
                    assert one == other == middle, sql
                elif column.form in (Form.WHOLE, Form.LINEAR):
                    assert (one is None) == (other is None) == (middle is None), sql
                    if one is not None:
                        assert float(middle) == pytest.approx((float(one) + float(other)) / 2, rel=1e-9, abs=1e-9), sql
                        assert column.form is Form.LINEAR or float(one - other).is_integer(), sql
    assert said[Form.WHOLE] + said[Form.LINEAR] >= 10 <= said[Form.EXACT], said


@pytest.mark.parametrize("sql", [
    "SELECT x FROM elsewhere",
    "SELECT k0 FROM dp_0 AS q, p AS q",
    "SELECT k0 FROM dp_0 TABLESAMPLE (1 ROWS)",
    "SELECT k0 FROM dp_0 ASOF JOIN p ON k1 >= x",
    "SELECT k0 FROM dp_0 NATURAL JOIN p",
    "WITH RECURSIVE q AS (SELECT m0 AS n FROM dp_0) SELECT n FROM q",
    "SELECT k0 FROM dp_0 INTERSECT SELECT k0 FROM dp_0",
    "SELECT sum(k1) FROM dp_0 GROUP BY ROLLUP (m0)",
    "SELECT k0, m0 FROM dp_0 ORDER BY 2 OFFSET 1",
])  # fmt: skip
def test_nothing_is_said_of_sources_and_clauses_that_are_not_listed(sql: str) -> None:
    assert not facts_of(sql).settled


@pytest.mark.parametrize(
    "changes",
    [
        {"shown_from": {"t0": 5.0}},
        {"groups": GroupFacts(chosen=frozenset({"m0"}))},
        {"groups": GroupFacts(ends=(("m0", T0, T0, Fraction(19, 20)),))},
    ],
    ids=["groups chosen by its noise", "chosen", "ends measured"],
)
def test_a_measure_whose_error_is_no_sum_of_noise_may_be_anything(changes: dict[str, object]) -> None:
    columns = facts_of("SELECT m0, m1 FROM dp_0", replace(BLOCK, **changes)).columns  # type: ignore[arg-type]
    assert [column.form for column in columns] == [Form.ANY, Form.LINEAR]
