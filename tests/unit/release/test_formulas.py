"""Formulas mean the same in SQL and in vectors, and keep their meaning when they are written over other terms."""

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from support.plain_duckdb import plain_duckdb

from dpsql.plan.formulas import (
    Formula,
    NoisyValue,
    Number,
    Operation,
    Operator,
    date,
    greatest,
    least,
    null_if,
    square_root,
    timestamp,
    whole,
    within,
)
from dpsql.plan.intervals import Type
from dpsql.release.formulas import EVERYTHING, formula_sql, formula_values, interval, numbers, read
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
    Operator.ROUND: Operation(Operator.ROUND, (A * 0.5,)),
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


TYPES = {
    Operator.WHOLE: Type.INTEGER, Operator.DATE: Type.DATE, Operator.TIMESTAMP: Type.TIMESTAMP,
    Operator.AT_LEAST: Type.BOOLEAN, Operator.LESS: Type.BOOLEAN,
}  # fmt: skip


def test_every_operator_has_an_example() -> None:
    assert set(EXAMPLES) == set(Operator)


@pytest.mark.parametrize("operator", Operator)
def test_the_sandbox_and_the_vectors_agree_to_the_last_bit(sandbox: Sandbox, operator: Operator) -> None:
    numbers = rows()
    sql = f"SELECT {formula_sql(EXAMPLES[operator]).sql(dialect='duckdb')} AS v FROM numbers ORDER BY i"
    order = pa.array(range(len(numbers["a"])))
    theirs = sandbox.query(sql, {"numbers": pa.table({**numbers, "i": order})}).column(0)
    ours = formula_values(EXAMPLES[operator], TYPES.get(operator, Type.REAL), numbers)
    assert ours is not None and theirs.null_count == 0 and theirs.type == ours.type
    assert np.asarray(theirs.to_numpy()).tobytes() == ours.to_numpy(False).tobytes()


@pytest.mark.parametrize("operator", Operator)
def test_no_value_leaves_the_interval(operator: Operator) -> None:
    draw = np.random.default_rng(5)
    for low_a, high_a, low_b, high_b in ((-3.0, 2.0, 1.0, 4.0), (0.5, 2.5, -2.0, -1.0), (-4.0, -1.0, -1.0, 3.0)):
        extents = {"a": (low_a, high_a), "b": (low_b, high_b)}
        low, high = interval(EXAMPLES[operator], extents.__getitem__)
        ends = [
            np.append(draw.uniform(first, last, 200), [first, last, min(max(first, 0), last)])
            for first, last in extents.values()
        ]
        every = {name: np.ravel(grid) for name, grid in zip("ab", np.meshgrid(*ends), strict=True)}
        values = numbers(EXAMPLES[operator], every)
        values = values[np.isfinite(values)]
        assert (values >= low - 1e-9 * abs(low)).all() and (values <= high + 1e-9 * abs(high)).all()


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (A * A, (0.0, 9.0)), (A * B, (-12.0, 8.0)), (A / B, (-3.0, 2.0)), (B / A, EVERYTHING), (A / 2, (-1.5, 1.0)),
        (within(A, -1, 1), (-1.0, 1.0)), (within(A, -B, B) / null_if(B, 0), (-1.0, 1.0)),
        (within(A, -B, B) / B, (-3.0, 2.0)), (within(A, -A, B) / null_if(B, 0), (-2.0, 3.0)),
        (square_root(B), (1.0, 2.0)), (whole(A * 0.5), (-2.0, 1.0)), (null_if(A, 0) - B, (-7.0, 1.0)),
        (greatest(A, B, 3.5), (3.5, 4.0)), (-A, (-2.0, 3.0)),
    ],
)  # fmt: skip
def test_intervals_are_no_wider_than_the_bounds_permit(formula: Formula, expected: tuple[float, float]) -> None:
    assert interval(formula, {"a": (-3.0, 2.0), "b": (1.0, 4.0)}.__getitem__) == pytest.approx(expected)


# --- expressions of analysts ------------------------------------------------------------------------------------------

READ = (
    "a", "(a)", "-a", "a + b", "a - b", "a * b", "a / b", "3", "0.5 * a", "round(a)", "round(a * 3)", "sqrt(b * b)",
    "nullif(a, 1)", "nullif(a, b)", "b / nullif(a, 0)", "least(a, b)", "greatest(a, b)", "least(a, 1, b)",
    "greatest(a, -1, b, 2)", "least(greatest(a, -1), 1)", "CAST(a AS DOUBLE) * 2", "CAST(a + b AS DOUBLE)",
    "CAST(round(a) AS BIGINT) + b", "a + a - b * (a + b)", "a - b - a", "b / 4 / b", "a + 1 - 1.0",
)  # fmt: skip
LEFT = (
    "a % b", "abs(a)", "'3'", "round(a, 1)", "CAST(a AS BIGINT)", "CAST(a AS VARCHAR)", "CAST(round(a) AS INT)", "a > b",
    "a = b", "ln(a)", "a + abs(b)", "coalesce(a, 0)", "CASE WHEN a < 1 THEN b END", "a // b", "a IS NULL",
)  # fmt: skip


def read_text(text: str) -> Formula | None:
    tree = sqlglot.parse_one(text, read="duckdb")
    return read(tree, lambda node: NoisyValue(node.name) if isinstance(node, exp.Column) else None)


@pytest.mark.parametrize("text", READ)
def test_a_formula_read_from_sql_has_the_numbers_of_duckdb(text: str) -> None:
    """NaN is NULL."""
    a = np.array([0.0, 1.0, -1.0, 2.5, -2.5, 3.75, -0.25, 0.5, -0.5, 7.0, np.nan, 4.0])
    columns = {"a": a, "b": np.array([1.0, 1.0, 2.0, -2.5, 4.0, 0.5, 8.0, 0.25, -0.5, 7.0, 2.0, np.nan])}
    asked = read_text(text)
    assert asked is not None
    connection = plain_duckdb()
    connection.register("numbers", pa.table({name: pa.array(part, from_pandas=True) for name, part in columns.items()}))
    rows = connection.execute(f"SELECT ({text})::DOUBLE FROM numbers").fetchall()
    expected = np.array([np.nan if row[0] is None else row[0] for row in rows])
    np.testing.assert_array_equal(np.broadcast_to(numbers(asked, columns), a.shape), expected)


@pytest.mark.parametrize("text", LEFT)
def test_other_operations_are_not_read(text: str) -> None:
    assert read_text(text) is None


def test_a_null_is_left_to_the_sandbox_and_to_nobody_else(sandbox: Sandbox) -> None:
    table = pa.table({"a": [1.0, 2.0]})
    text = formula_sql(null_if(A, 2)).sql(dialect="duckdb")
    assert sandbox.query(f"SELECT {text} AS v FROM t", {"t": table}).column(0).to_pylist() == [1.0, None]
    assert formula_values(null_if(A, 2), Type.REAL, {"a": np.array([1.0, 2.0])}) is None
    assert formula_values(null_if(A, 2).below(1), Type.BOOLEAN, {"a": np.array([1.0, 2.0])}) is None


def test_zero_has_one_sign() -> None:
    assert np.signbit(Number(-0.0).value) == np.signbit(0.0)
