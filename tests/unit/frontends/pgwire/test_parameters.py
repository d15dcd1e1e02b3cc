"""A parameter without a declared type has the type of the value that it is compared with, and values become the literals they
denote."""

from datetime import date, datetime, time
from decimal import Decimal

import pytest
from sqlglot import exp
from support.places import CLINIC

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.parameters import (
    MOST_PARAMETERS,
    dummies,
    parameter_types,
    read_postgres,
)
from dpsql.policy import parse_policy
from dpsql.sql.lexer import POSTGRESQL, read_script

POLICY = parse_policy(CLINIC)
LISTS = {element: e.ARRAY_OF[element] for element in (e.INT4, e.INT8, e.FLOAT8, e.TEXT, e.DATE)}


def parsed(sql: str) -> exp.Expr:
    (piece,) = read_script(sql, POSTGRESQL).pieces
    tree = read_postgres(piece)
    assert tree is not None
    return tree


def inferred(sql: str, *declared: int) -> tuple[int, ...]:
    return parameter_types(parsed(sql), declared, POLICY)


@pytest.mark.parametrize(
    ("written", "oid"),
    [
        ("int4", e.INT4), ("int", e.INT4), ("bigint", e.INT8), ("INT4[]", LISTS[e.INT4]), ("text[]", LISTS[e.TEXT]),
        ("pg_catalog.int2", e.INT2), ("varchar(10)", e.VARCHAR), ("numeric(10, 2)", e.NUMERIC), ("nothing", e.TEXT),
        ("char", e.BPCHAR), ('"char"', e.CHAR), ("double precision", e.FLOAT8), ("timestamptz", e.TIMESTAMPTZ),
        ("regclass", e.TEXT), ("regtype", e.TEXT), ("regproc", e.TEXT), ("unknown", e.TEXT), ("nothing[]", LISTS[e.TEXT]),
        ("oid", e.OID),
    ],
)  # fmt: skip
def test_a_cast_says_the_type(written: str, oid: int) -> None:
    """A text may be any regclass: the type itself would be a number on the wire."""
    assert inferred(f"SELECT $1::{written}") == inferred(f"SELECT CAST(-($1) AS {written})") == (oid,)


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_declared_types_come_before_inferred_ones() -> None:
    sql = "SELECT COUNT(*) FROM patients WHERE age = $1 AND weight = $2"
    assert inferred(sql, e.INT2) == (e.INT2, e.FLOAT8)
    assert inferred(sql, 0, e.INT4, e.DATE, 0) == (e.INT8, e.INT4, e.DATE, e.TEXT)
    assert inferred(sql, e.UNKNOWN, e.NAMED["regclass"]) == (e.INT8, e.TEXT)


@pytest.mark.parametrize("name", ["0", "abc", "a1"])
def test_a_parameter_has_a_number_from_1(name: str) -> None:
    with pytest.raises(Error) as caught:
        inferred(f"SELECT ${name}")
    assert (caught.value.slug, caught.value.message) == ("parameter_none", f"there is no parameter ${name}")


@pytest.mark.parametrize("number", [str(MOST_PARAMETERS + 1), "1" * 5_000])
def test_the_number_of_parameters_is_bounded(number: str) -> None:
    assert len(inferred(f"SELECT ${MOST_PARAMETERS}")) == MOST_PARAMETERS
    with pytest.raises(Error) as caught:
        inferred(f"SELECT ${number}")
    assert (caught.value.slug, caught.value.sqlstate) == ("wire_limit", "54000")
    assert "parameters" in caught.value.message and str(MOST_PARAMETERS) in caught.value.message


# --- values -----------------------------------------------------------------------------------------------------------


def test_stand_ins_have_the_type_that_they_stand_in_for() -> None:
    expected: dict[int, type] = {
        e.BOOL: bool, e.INT2: int, e.INT4: int, e.INT8: int, e.OID: int, e.FLOAT4: float, e.FLOAT8: float,
        e.NUMERIC: Decimal, e.DATE: date, e.TIME: time, e.TIMESTAMP: datetime, e.TIMESTAMPTZ: datetime, e.TEXT: str,
        e.VARCHAR: str, e.NAMED["regclass"]: str, 999_999: str, LISTS[e.INT8]: list, LISTS[e.TEXT]: list,
    }  # fmt: skip
    for values in dummies(list(expected)):
        assert [type(value) for value in values] == list(expected.values())
    assert dummies([]) == [[]]
