"""Vectorised results equal the sandbox's bit by bit; unsupported operations go to the sandbox."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sql.corpus import ACCEPTED, Case
from support.corpus_neighbours import Hospital
from support.released_blocks import T0, T1, gaussian_noise, remainder

from dpsql.plan.formulas import Element, Formula, Number, greatest, null_if, whole
from dpsql.plan.intervals import Type
from dpsql.planning.planner import Planned
from dpsql.pricing.pricing import ARROW
from dpsql.privacy.mechanisms.local_sensitivity import LocalSensitivityPlan
from dpsql.privacy.mechanisms.most_frequent import EndKey, EndRowsPlan, MostFrequentPlan
from dpsql.privacy.mechanisms.rank_histogram import RankHistogramPlan
from dpsql.privacy.mechanisms.sample_values import SampleMeanPlan
from dpsql.release.error_bars.answers import _Run
from dpsql.release.remainder import ReleasedBlock, Remainder
from dpsql.release.sandbox import Sandbox


@dataclass(frozen=True)
class Term:
    """A released term with numbers that a test chooses."""

    name: str
    values: np.ndarray
    noise: Any = field(default_factory=lambda: gaussian_noise("0.5"))
    noise_unit: float = 1.0
    whole: bool = False

    def half_width(self, confidence: float) -> float:
        return 1.0

    def standard_deviation(self) -> float:
        return 1.0


def checked(sandbox: Sandbox, asked: Remainder) -> pa.Table | None:
    """Return the vectorised rows after checking that they equal the sandbox's, or None if the remainder is left to the
    sandbox."""
    run = _Run(sandbox, asked, 0.95)
    mine = run.directly()
    if mine is None:
        return None
    theirs = run.in_sandbox()
    assert mine[0].schema == theirs[0].schema
    assert [column.to_pylist() for column in mine[0].columns] == [column.to_pylist() for column in theirs[0].columns]
    assert mine[1] is not None and theirs[1] is not None and mine[1].tolist() == theirs[1].tolist()
    return mine[0]


# --- every formula, every question of the corpus ----------------------------------------------------------------------

NUMBERS = {
    "ordinary": lambda draw, rows: draw.normal(50, 400, rows),
    "ties": lambda draw, rows: draw.integers(-2, 3, rows) / 2,
    "halves": lambda draw, rows: np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 4503599627370497.5])[:rows],
    "large": lambda draw, rows: draw.normal(0, 1, rows) * 10.0 ** draw.integers(0, 18, rows),
}
KEYS: dict[Type, list[object]] = {
    Type.INTEGER: [3, None, -5, 2**40, 0, 7, 8], Type.REAL: [0.5, -1.0, None, 1e9, 2.0, 3.0, -0.0],
    Type.TEXT: ["b", "a", None, "", "\u00e9", "Z", "zz"], Type.BOOLEAN: [True, False, None, True, False, True, None],
}  # fmt: skip


@lru_cache(maxsize=1)
def hospital() -> Hospital:
    return Hospital("hospital")


def planned(case: Case) -> Planned:
    with hospital().none.options(case.marks.get("set", [])):
        session = hospital().none.session
        return session.plan(session.planner.parse(case.sql, case.parameters), case.parameters)


def answered(one: Planned, numbers: str, rows: int) -> Remainder:
    """Return the remainder of a query over blocks that hold `numbers`."""
    draw, blocks = np.random.default_rng(7), []
    for priced in one.price.blocks:
        types = [key.expression.facts.type for key in priced.block.keys]
        keys = {f"k{at}": pa.array(KEYS.get(t, [None] * 7)[:rows], ARROW[t]) for at, t in enumerate(types)}
        terms = tuple(Term(term.name, NUMBERS[numbers](draw, rows)) for term in priced.noise.terms)
        for histogram in priced.noise.measurements:
            kinds = (RankHistogramPlan, MostFrequentPlan, EndRowsPlan, LocalSensitivityPlan, SampleMeanPlan)
            assert isinstance(histogram, kinds)
            law = histogram.law if isinstance(histogram, EndRowsPlan) else None
            choices = law.keys if isinstance(law, EndKey) else histogram.cells
            cells = (draw.integers(0, choices, rows).astype(float) for _ in histogram.laws)
            terms += tuple(Term(name, cell) for (name, _), cell in zip(histogram.laws, cells, strict=True))
        blocks.append(ReleasedBlock(priced.block.name, pa.table(keys), terms, priced.block.formulas, rows))
    return Remainder(one.plan.remainder, one.plan.output_names, tuple(blocks), {}, one.text)


@pytest.mark.parametrize("numbers", sorted(NUMBERS))
def test_the_corpus_is_answered_alike(sandbox: Sandbox, numbers: str) -> None:
    direct = 0
    for case in ACCEPTED:
        one = planned(case)
        if one.plan.results or one.plan.public_inputs:
            continue
        for rows in (0, 1, 7):
            taken = checked(sandbox, answered(one, numbers, rows)) is not None
            direct += taken and rows == 7
    assert direct > 0.7 * len(ACCEPTED)


def test_a_rehearsal_has_the_types_of_the_answer(sandbox: Sandbox) -> None:
    for case in ACCEPTED:
        one = planned(case)
        if one.plan.results or one.plan.public_inputs:
            continue
        empty, later = (checked(sandbox, answered(one, "ordinary", rows)) for rows in (0, 7))
        assert empty is None or later is None or empty.schema == later.schema, case.id


@pytest.mark.parametrize("number", [Number(1), T0], ids=["constant", "term"])
def test_lists_that_python_takes_for_equal_keep_their_types_one_after_the_other(
    sandbox: Sandbox, number: Formula
) -> None:
    block = table(values=(0, 1, 0, 1, 0, 1, 0))
    kinds = ((0, 1), (False, True), (0.0, 1.0)), (Type.INTEGER, Type.BOOLEAN, Type.REAL)
    for values, type_ in zip(*kinds, strict=True):
        formula = Element(values, number)
        assert formula != Element(kinds[0][0], number) or type_ is Type.INTEGER
        one = ReleasedBlock("dp_0", block.keys, block.terms, (("m0", formula, type_),), block.rows)
        rows = _Run(sandbox, remainder("SELECT m0 FROM dp_0", [one]), 0.95).in_sandbox()[0]
        assert rows.schema.field(0).type == ARROW[type_]
        assert rows.column(0).to_pylist()[:2] == [values[0] if number is T0 else values[1], values[1]]


# --- orders and limits ------------------------------------------------------------------------------------------------


def table(
    rows: int = 7, *, nulls: bool = False, values: tuple[float, ...] = (3, 1, 2, 1, 3, -0.0, 0.0)
) -> ReleasedBlock:
    labels: list[str | None] = ["b", "a", "\u00e9", "Z", "a", None if nulls else "y", ""]
    keys = pa.table(
        {"k0": pa.array(labels[:rows], pa.string()), "k1": pa.array([5, 4, 5, 4, 5, 4, 5][:rows], pa.int32())}
    )
    terms = (Term("t0", np.array(values[:rows])), Term("t1", np.array([0.25, 0.5, -1, 8, 2, 2, 2][:rows])))
    formulas = (("m0", whole(T0), Type.INTEGER), ("m1", T1 / greatest(T0, 1), Type.REAL),
                ("m2", T1.at_least(0.5), Type.BOOLEAN), ("m3", T0, Type.REAL))  # fmt: skip
    return ReleasedBlock("dp_0", keys, terms, formulas, rows)


TAKEN = (
    "SELECT k0, m0 FROM dp_0", "SELECT m1 AS k0, k0 AS m1 FROM dp_0 ORDER BY k0", "SELECT m0, m0, k1 FROM dp_0 ORDER BY 1",
    "SELECT k0 AS region, m0 AS n FROM dp_0 ORDER BY n DESC", "SELECT k0, m1 FROM dp_0 ORDER BY m0, k0 DESC",
    "SELECT k0 AS a, m2 FROM dp_0 ORDER BY m2 DESC, a LIMIT 3", "SELECT k0, m3 FROM dp_0 ORDER BY 2 DESC LIMIT 3 OFFSET 2",
    "SELECT k1 FROM dp_0 LIMIT 4", "SELECT k1 FROM dp_0 LIMIT 0", "SELECT k1 FROM dp_0 OFFSET 5", "SELECT k1 FROM dp_0 OFFSET 50",
    "SELECT x.k0, x.m0 FROM dp_0 AS x ORDER BY m1", "SELECT k0 AS K1, m3 FROM dp_0 ORDER BY k1 DESC NULLS FIRST",
    "SELECT k0 AS region, m0 AS n FROM dp_0 ORDER BY (m0) DESC", "SELECT k0, m3 AS m0 FROM dp_0 ORDER BY ((m0)) DESC",
)  # fmt: skip
NOT_TAKEN = (
    "SELECT k0, m0 + 1 AS n FROM dp_0", "SELECT k0 FROM dp_0 WHERE m0 > 1", "SELECT DISTINCT m0 FROM dp_0",
    "SELECT k0, m0 FROM dp_0 ORDER BY m0 + m1", "SELECT k0 FROM dp_0 LIMIT 1 + 1", "SELECT k0 FROM dp_0 ORDER BY (1)", "SELECT sum(m0) AS n FROM dp_0",
    "SELECT k0, row_number() OVER (ORDER BY m0) AS n FROM dp_0", "SELECT k0 FROM (SELECT k0 FROM dp_0 LIMIT 3) AS s",
    "SELECT k0, dp_error(m0) AS e FROM dp_0", "SELECT k0 FROM dp_0 QUALIFY row_number() OVER () = 1", "SELECT 1 AS one FROM dp_0",
    "SELECT a.m0 FROM dp_0 AS a, dp_0 AS b", "SELECT m0 AS n, m1 AS n FROM dp_0 ORDER BY n", "SELECT k0 FROM dp_0 ORDER BY ALL",
    "SELECT k0 FROM dp_0 LIMIT 50 PERCENT", "SELECT k0 FROM dp_0 USING SAMPLE 2 ROWS", "SELECT k0 FROM dp_0 AS d(a, b)",
)  # fmt: skip


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("sql", TAKEN)
def test_orders_and_limits_are_computed_as_in_the_sandbox(sandbox: Sandbox, sql: str, rows: int) -> None:
    assert checked(sandbox, remainder(sql, [table(rows)])) is not None


@pytest.mark.parametrize("sql", NOT_TAKEN)
def test_anything_else_goes_to_the_sandbox(sandbox: Sandbox, sql: str) -> None:
    assert checked(sandbox, remainder(sql, [table()])) is None


# --- unsupported numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 2.0**63, -(2.0**64), 1e300])
def test_numbers_that_fit_no_integer_are_refused_by_the_sandbox(sandbox: Sandbox, value: float) -> None:
    assert checked(sandbox, remainder("SELECT m0 FROM dp_0", [table(values=(value, 1, 2, 3, 4, 5, 6))])) is None


def test_the_largest_integers_are_computed_directly(sandbox: Sandbox) -> None:
    assert (
        checked(sandbox, remainder("SELECT m0 FROM dp_0", [table(values=(2.0**63 - 1024, -(2.0**63), 1, 2, 3, 4, 5))]))
        is not None
    )


@pytest.mark.parametrize("formula", [null_if(T0, 3), Number(7), T1 / (T0 - 3), whole(T0 * 1e300)], ids=str)
def test_a_formula_without_a_finite_number_in_each_row_is_left_to_the_sandbox(
    sandbox: Sandbox, formula: Formula
) -> None:
    block = table()
    other = ReleasedBlock("dp_0", block.keys, block.terms, (("m0", formula, Type.INTEGER),), block.rows)
    assert checked(sandbox, remainder("SELECT m0 FROM dp_0", [other])) is None
