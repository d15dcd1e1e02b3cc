"""Casts of literals: refused exactly where a row with that text would have no value, whatever the question reads."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from dpsql.errors.exceptions import Error
from dpsql.sql.parse import parse


@pytest.mark.parametrize("text", ["inf", "-Infinity", " NaN ", "+inf"])
def test_texts_of_numbers_that_are_not_finite_are_reals_and_no_integers(text: str) -> None:
    parse(f"SELECT '{text}'::double")
    with pytest.raises(Error, match="is not an integer"):
        parse(f"SELECT '{text}'::int")


def test_try_cast_and_other_types_are_left_alone() -> None:
    parse("SELECT TRY_CAST('4O' AS INT), 'x'::text, 'abc' || 'd'")


def test_reals_of_single_precision_are_double() -> None:
    tree = parse("SELECT x::float, CAST(y AS REAL), z::float4, w::double FROM t").query
    assert tree is not None
    assert {cast.to.this for cast in tree.find_all(exp.Cast)} == {exp.DType.DOUBLE}
    assert parse_one("x::float", dialect="duckdb").to.this is exp.DType.FLOAT  # type: ignore[attr-defined]
