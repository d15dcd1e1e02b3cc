"""Columns that are said to be weighted sums of noisy numbers are such sums, whatever the noise is, and common ones are recognised."""

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.plain_duckdb import plain_duckdb
from support.released_blocks import (
    T0,
    T1,
    block,
    count_of,
    counts,
    covered,
    gaussian_noise,
    laplace_noise,
    release,
    remainder,
)
from support.seeds import seeds

from dpsql.noise.perturb import NoisyTerm
from dpsql.plan.formulas import Formula, NoisyValue, Number, Operation, Operator, greatest, least, square_root, whole
from dpsql.plan.intervals import GroupFacts, Type
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.release.error_bars.column_facts import Form, RelationFacts, column_facts
from dpsql.release.error_bars.laws import half_widths
from dpsql.release.formulas import Linear, Part, linear, numbers
from dpsql.release.remainder import ReleasedBlock, runnable
from dpsql.release.sandbox import Sandbox

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


# --- Formulas that are weighted sums of noisy terms are distinguished from others, and their bars are quantiles of the weighted noise ---


LAPLACE = laplace_noise("1")
K = NoisyValue("k")
"""A column without noise."""


def term(name: str, noise: Noise = LAPLACE, *, whole: bool = True) -> NoisyTerm:
    return NoisyTerm(name, np.zeros(1), 2.0**noise.shift, noise, 0, whole)


def rounded(formula: Formula) -> Formula:
    """Return a formula rounded by an analyst."""
    return Operation(Operator.ROUND, (formula,))


def form(formula: Formula, k: float = 3.0) -> Linear | None:
    return linear(formula, frozenset({"t0", "t1"}), frozenset({"t0"}), {"k": np.float64(k)})


def away_from_zero(number: float) -> float:
    return math.copysign(math.floor(abs(number) + 0.5), number)


def noisy_share(parts: Linear, point: dict[str, float]) -> float:
    """Return the number that the parts represent according to their docstring."""
    total = 0.0
    for part in parts:
        inner = sum(weight * point[name] for name, weight in part.weights.items())
        total += part.factor * (away_from_zero(inner) if part.rounded else inner)
    return total


LINEAR = (
    T0, T1, -T0, T0 + T1, T0 - T1, Number(3) - T0, T0 - K, K * T0, T0 * K, T0 / K, K * K * T0, T0 + T0, T0 - T0 + T1,
    (T0 + T1) * K - T1 / 4, -(2 * T0 - T1 / 4) * K + 7, whole(T1), whole(T0 + T1 / 2), -whole(T1 / 2),
    K * whole(T1 / 2) + T1, whole(T0 / 2) - whole(T1 / 4), whole(T1) / K + whole(T1) * 3, K - whole(3 * T0 - T1),
    rounded(T0), square_root(K * K) * T0, T1 + least(K, 2),
)  # fmt: skip
OTHERS = (
    T0 * T1, T0 * T0, K / T0, T0 / T1, square_root(T0), square_root(T0) + T1, T1 - greatest(T0, 0), -square_root(T0),
    square_root(T0) * K, K * square_root(T0), whole(square_root(T0)), rounded(T1), rounded(T1 / 10),
    Operation(Operator.WHOLE, (whole(T1) / 2,)), whole(T0 + whole(T1)), least(T0, K), T0.at_least(3),
)  # fmt: skip


@pytest.mark.parametrize("formula", LINEAR)
def test_the_parts_change_with_the_terms_as_the_formula_does(formula: Formula) -> None:
    for k in (-2.0, 0.5, 4.0):
        parts = form(formula, k)
        assert parts
        rest = set()
        for t0, t1 in product((-7.0, 0.0, 3.0), (-3.0, 0.5, 6.25)):
            point = {"k": k, "t0": t0, "t1": t1}
            value = float(numbers(formula, {name: np.float64(number) for name, number in point.items()}))
            rest.add(round(value - noisy_share(parts, point), 9))
        assert len(rest) == 1


@pytest.mark.parametrize("formula", OTHERS)
def test_what_is_not_linear_has_no_parts(formula: Formula) -> None:
    assert form(formula) is None


@pytest.mark.parametrize("written", ["round(m0 / 10)", "CAST(round(m0 / 10) AS BIGINT)", "round(m0 / 10) * 1.0"])
def test_bars_of_a_rounding_that_an_analyst_writes_hold(sandbox: Sandbox, written: str) -> None:
    """49.4 is rounded to 49, and to 50 as soon as noise adds 1 to 494: the bar must not be 0 as for an integer."""
    sql = f"SELECT k0, {written} AS r FROM dp_0"
    found = release(sandbox, sql, [counts(np.full(400, 494.0), laplace_noise("4/5"), "x0")])
    assert covered(found, 1, np.full(400, 49.0)).mean() >= 0.95


# --- half widths ------------------------------------------------------------------------------------------------------


def probabilities(scale: float = 1.0) -> dict[int, float]:
    """Return the law of discrete Laplace noise, from its definition: P(Z = z) proportional to exp(-|z| / scale)."""
    weights = {z: math.exp(-abs(z) / scale) for z in range(-80, 81)}
    total = sum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


def quantile(errors: dict[float, float], confidence: float) -> float:
    """Return the smallest h with P(|error| <= h) >= confidence."""
    total = 0.0
    by_size: Counter[float] = Counter()
    for error, probability in errors.items():
        by_size[abs(error)] += probability
    for size in sorted(by_size):
        total += by_size[size]
        if total >= confidence:
            return size
    raise AssertionError("probabilities do not add up")


def weights(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=np.float64)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_the_bar_of_one_term_is_the_quantile_of_its_law(confidence: float) -> None:
    weighed = Part({"t0": weights(1, -2, 0, 3)}, weights(1, 1, 5, -4), False)
    (half,) = [half_widths((weighed,), {"t0": term("t0")}, confidence)]
    exact = quantile({float(z): p for z, p in probabilities().items()}, confidence)
    assert half is not None
    # The law's own quantile is an upper bound that may be one step too wide.
    step = half[0] - exact
    assert 0 <= step <= 1
    assert half.tolist() == [exact + step, 2 * (exact + step), 0, 12 * (exact + step)]


@pytest.mark.parametrize(("confidence", "sigmas"), [(0.9, 1.6448536), (0.95, 1.9599640), (0.99, 2.5758293)])
def test_the_bar_of_a_sum_of_normal_noise_is_a_multiple_of_its_deviation(confidence: float, sigmas: float) -> None:
    noise = gaussian_noise("1/200")  # sigma 10
    terms = {name: term(name, noise, whole=False) for name in ("t0", "t1", "t2")}
    weighed = Part({"t0": weights(1, 3), "t1": weights(2, -4), "t2": weights(2, 0)}, weights(1, -2), False)
    half = half_widths((weighed,), terms, confidence)
    assert noise.standard_deviation() == pytest.approx(10)
    assert half is not None and half == pytest.approx([sigmas * 30, sigmas * 100], rel=1e-6)


def test_terms_of_one_name_share_their_noise_between_parts() -> None:
    """t0 - t0, written as two parts, has no error."""
    weighed = [Part({"t0": weights(1)}, weights(1), False), Part({"t0": weights(1)}, weights(-1), True)]
    half = half_widths(tuple(weighed), {"t0": term("t0")}, 0.99)
    assert half is not None and half.tolist() == [0.0]


@pytest.mark.parametrize(("weightings", "computed"), [(64, True), (65, False)])
def test_more_than_64_different_weights_are_left_to_simulation(weightings: int, computed: bool) -> None:
    numbers = np.repeat(np.arange(1.0, weightings + 1), 2)
    weighed = Part({"t0": numbers, "t1": numbers}, np.ones_like(numbers), False)
    half = half_widths((weighed,), {"t0": term("t0"), "t1": term("t1")}, 0.9)
    assert (half is not None) is computed
    if half is not None:
        assert half == pytest.approx(half[0] * numbers)
