"""Formulas mean the same in SQL and in vectors, and keep their meaning when they are written over other terms."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from dpsql.plan.formulas import (
    Formula,
    NoisyValue,
    Number,
    Operator,
    date,
    formula,
    greatest,
    least,
    null_if,
    square_root,
    substituted,
    terms_of,
    timestamp,
    whole,
    within,
)
from dpsql.plan.intervals import Type
from dpsql.release.error_bars.simulation import typed
from dpsql.release.error_bars.vectors import counted, vector
from dpsql.release.formulas import formula_sql, formula_values
from dpsql.release.sandbox import Sandbox

A, B = NoisyValue("a"), NoisyValue("b")
EXAMPLES: dict[Operator, Formula] = {
    Operator.ADD: A + B,
    Operator.SUBTRACT: 5 + A - B - (A - B),
    Operator.MULTIPLY: 1e-7 * A * (B + 3),
    Operator.DIVIDE: A / (B * B + 1) / 3,
    Operator.NEGATE: -(-A - B),
    Operator.LEAST: least(A, B, -2.5),
    Operator.GREATEST: greatest(A, B, 1e300),
    Operator.SQUARE_ROOT: square_root(A * A + B * B),
    Operator.NULL_IF: null_if(A, 1e-9),
    Operator.WHOLE: whole(A * 0.5),
    Operator.DATE: date(within(A * 0.5, -50_000, 50_000)),
    Operator.TIMESTAMP: timestamp(within(A * 1.7, -4e9, 4e9)),
    Operator.AT_LEAST: (A + B).at_least(0.5),
    Operator.LESS: A.below(B),
}
RARE = [0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 4503599627370497.5, 1e-310, -1e17, 1 / 3]


def rows() -> dict[str, np.ndarray]:
    """Return special doubles combined with each other, and random ones."""
    drawn = np.random.default_rng(11).normal(0, 1, (2, 500)) * 10.0 ** np.random.default_rng(12).integers(
        -9, 16, (2, 500)
    )
    pairs = np.array([(left, right) for left in RARE for right in RARE]).T
    return {name: np.concatenate([drawn[at], pairs[at]]) for at, name in enumerate("ab")}


def test_every_operator_has_an_example() -> None:
    assert set(EXAMPLES) == set(Operator)


@pytest.mark.parametrize("operator", Operator)
def test_the_sandbox_and_the_vectors_agree_to_the_last_bit(sandbox: Sandbox, operator: Operator) -> None:
    numbers = rows()
    sql = f"SELECT {formula_sql(EXAMPLES[operator]).sql(dialect='duckdb')} AS v FROM numbers ORDER BY i"
    order = pa.array(range(len(numbers["a"])))
    theirs = sandbox.query(sql, {"numbers": pa.table({**numbers, "i": order})}).column(0)
    ours = formula_values(EXAMPLES[operator], numbers)
    assert theirs.null_count == 0
    assert np.asarray(theirs.to_numpy()).dtype == ours.dtype
    assert np.asarray(theirs.to_numpy()).tobytes() == ours.tobytes()


@pytest.mark.parametrize("operator", Operator)
def test_the_simulation_of_error_bars_has_every_operator(operator: Operator) -> None:
    rng = np.random.default_rng(7)
    terms = {name: np.ravel(rng.uniform(-2000, 2000, 50)) for name in ("a", "b")}
    simulated = vector(counted(formula_sql(EXAMPLES[operator])))
    assert simulated is not None
    types = {Operator.DATE: Type.DATE, Operator.TIMESTAMP: Type.TIMESTAMP}
    wanted = formula_values(EXAMPLES[operator], terms)
    values = typed(np.asarray(simulated(terms), dtype=np.float64), types.get(operator, Type.REAL)).to_numpy(False)
    assert np.array_equal(values, wanted.astype(values.dtype))


def test_a_null_is_left_to_the_sandbox_and_to_nobody_else(sandbox: Sandbox) -> None:
    table = pa.table({"a": [1.0, 2.0]})
    text = formula_sql(null_if(A, 2)).sql(dialect="duckdb")
    assert sandbox.query(f"SELECT {text} AS v FROM t", {"t": table}).column(0).to_pylist() == [1.0, None]
    with pytest.raises(FloatingPointError):
        formula_values(null_if(A, 2), {"a": np.array([1.0, 2.0])})


@pytest.mark.parametrize("value", [2.0**63, -(2.0**64)])
def test_a_number_beyond_64_bits_is_no_whole_number(value: float) -> None:
    with pytest.raises(FloatingPointError):
        formula_values(whole(A), {"a": np.array([value])})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_of_a_formula_is_finite(value: float) -> None:
    with pytest.raises(ValueError, match="in a formula"):
        Number(value)


def test_zero_has_one_sign() -> None:
    assert np.signbit(Number(-0.0).value) == np.signbit(0.0)


def test_terms_are_replaced_wherever_they_stand() -> None:
    asked = within(A / greatest(B, 1), -1, 1)
    over_parts = substituted(asked, {"a": 2 * formula("x") + formula("y"), "b": formula("y")})
    assert terms_of(asked) == {"a", "b"}
    assert over_parts == within((2 * formula("x") + formula("y")) / greatest(formula("y"), 1), -1, 1)
    with pytest.raises(KeyError):
        substituted(asked, {"a": A})


def test_a_formula_survives_pickling_without_the_hash_of_its_process() -> None:
    asked = within(A / greatest(B, 1), -1, 1)
    hash(asked)
    assert pickle.loads(pickle.dumps(asked)) == asked
    assert b"#hash" not in pickle.dumps(asked)
