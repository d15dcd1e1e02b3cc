"""Casts of literals: refused exactly where a row with that text would have no value, whatever the question reads."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from dpsql.errors.exceptions import Error
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import call
from dpsql.plan.intervals import literal_facts
from dpsql.plan.plan import Literal
from dpsql.sql.parse import parse

TEXTS = (
    "40", "-12", "+3", " 7 ", "4O", "40.0", "5,5", "1e3", "1.5e3", ".5", "5.", "", " ", "0x10", "1_000", "9223372036854775807",
    "9223372036854775808", "1e400", "true", "t", "yes", "y", "1", "0", "f", "no", "n", "FALSE", "on", "maybe", "NULL", "½", "٣",
)  # fmt: skip
TYPES = {
    "int": "integer",
    "bigint": "integer",
    "double": "real",
    "float4": "real",
    "numeric": "real",
    "boolean": "boolean",
}


@pytest.mark.parametrize("type_", TYPES)
def test_a_literal_is_read_exactly_where_a_row_with_its_text_has_a_value(type_: str) -> None:
    for text in TEXTS:
        has_value = evaluate(call(f"to_{TYPES[type_]}", Literal(text, literal_facts(text))), {}) is not None
        for query in (f"SELECT '{text}'::{type_}", f"SELECT COUNT(*) FROM t WHERE CAST(('{text}') AS {type_}) > x"):
            try:
                parse(query)
                read = True
            except Error as error:
                assert (error.slug, error.sqlstate) == ("unreadable_literal", "22P02")
                assert error.position == query.index(f"'{text}'") + 1
                read = False
            assert read is has_value, (text, type_)


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
