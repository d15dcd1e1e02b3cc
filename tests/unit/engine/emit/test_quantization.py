"""The integer that the engine adds for a row equals Python's and never exceeds the magnitude for which the noise is scaled."""

import math
import random
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from support.plain_duckdb import plain_duckdb
from support.postgres_source import Server, server

from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.engine.emit.quantization import integer_type, row_integer, value_text
from dpsql.engine.postgresql.dialect import PostgreSQLDialect
from dpsql.functions.numeric import call
from dpsql.plan.intervals import INT64, Facts, Type
from dpsql.plan.plan import Column, Term
from dpsql.pricing.sum_terms import GRID_BITS, KEPT_BITS, clipped, grid_value, summed

__all__ = ["server"]
POSTGRESQL = PostgreSQLDialect()
BOUNDS = [
    ("0", "1"), ("-1", "1"), ("0", "0"), ("5", "5"), ("-3.5", "-3.5"), ("0.1", "0.3"), ("1e-300", "2e-300"),
    ("-1e-300", "1e-300"),
    ("0", "5e-324"), ("0", "1e15"), ("-1e15", "1e15"), ("1e15", "1000000000000001"), ("-1e300", "1e300"), ("1e300",
    "1.7e308"),
    ("-1.7e308", "1.7e308"), ("0", "250000"), ("-40", "60.25"), ("1e-9", "1e9"), ("-1e-5", "3"), ("1e16",
    "10000000000000004"),
]  # fmt: skip
WHOLE = [
    (0, 1), (-5, 5), (7, 7), (0, 0), (0, 2**52 - 1), (0, 2**52), (-(2**52), 2**52), (2**62, 2**63 - 1), (-(2**63),
    2**63 - 1),
    (-(2**63), -(2**63)), (2**63 - 1, 2**63 - 1), (-3, 2**40),
]  # fmt: skip


def terms() -> Iterator[Term]:
    for centred in (False, True):
        for low, high in BOUNDS:
            for bits in (None, GRID_BITS):
                yield summed(Column("x", Facts(Type.REAL, Fraction(low), Fraction(high))), None, centred, bits)[0]
        for least, most in WHOLE:
            yield summed(Column("x", Facts(Type.INTEGER, Fraction(least), Fraction(most))), None, centred)[0]


TERMS = list(terms())


def values(rng: random.Random, term: Term) -> list[Any]:
    """Return values within, at, near and far beyond the bounds."""
    lower, upper = term.lower, term.upper
    if term.value is not None and term.value.facts.type is Type.INTEGER:
        low, high = int(term.value.facts.lower), int(term.value.facts.upper)
        near = [end + step for end in (low, high) for step in (-1, 0, 1)]
        far = [int(INT64[0]), int(INT64[1]), 0, 1, -1, 2**53 + 1]
        inside = [rng.randint(low, high) for _ in range(30)]
        return [None, *(v for v in near + far + inside if INT64[0] <= v <= INT64[1])]
    near = [f(end, toward) for end in (lower, upper) for f in (math.nextafter,) for toward in (-math.inf, math.inf)]
    far = [math.inf, -math.inf, 1.7976931348623157e308, -1.7976931348623157e308, 0.0, -0.0, 5e-324, -5e-324, 1.0, -1.0]
    inside = [
        lower + (upper - lower) * rng.random() if math.isfinite(upper - lower) else rng.uniform(-1e300, 1e300)
        for _ in range(30)
    ]
    steps = [math.ldexp(n + 0.5, -term.grid) + term.centre for n in (0, 1, -1, 2, 7, -4)]
    return [None, math.nan, lower, upper, *near, *far, *inside, *(s for s in steps if math.isfinite(s))]


def expected(term: Term, value: Any) -> int | None:
    """Return the result of clamping, shifting to the centre, scaling, and rounding half to even, computed exactly."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(term.lower, int):
        return int(min(max(value, term.lower), term.upper) - term.centre)
    clamped = min(max(float(value), term.lower), term.upper)
    if clamped in (term.lower, term.upper):
        return grid_value(clamped, float(term.centre), term.grid)
    return round(Fraction(math.ldexp(clamped - term.centre, term.grid)))


def table(term: Term, rows: list[Any]) -> pa.Table:
    integer = term.value is not None and term.value.facts.type is Type.INTEGER
    return pa.table({"x": pa.array(rows, pa.int64() if integer else pa.float64())})


@pytest.mark.parametrize("at", range(len(TERMS)))
def test_each_row_has_the_integer_of_the_formula(at: int) -> None:
    term = TERMS[at]
    rows = values(random.Random(at), term)
    given = table(term, rows)
    connection = plain_duckdb()
    connection.register("given", given)
    text = row_integer(term, "v", DUCKDB)
    found = [
        row[0]
        for row in connection.execute(
            f"SELECT CAST({text} AS {integer_type(term)}) FROM (SELECT {value_text(term, DUCKDB)} AS v FROM given)"
        ).fetchall()
    ]
    assert found == [expected(term, value) for value in rows]
    assert all(abs(q) <= term.magnitude for q in found if q is not None)
    assert max(abs(q) for q in found if q is not None) == term.magnitude
    assert term.magnitude <= 2**GRID_BITS


def test_each_row_has_the_same_integer_on_postgresql(server: Server) -> None:
    for number, term in enumerate(TERMS):
        rows = values(random.Random(number), term)
        whole = term.value is not None and term.value.facts.type is Type.INTEGER
        given = f"unnest(CAST(%s AS {'bigint' if whole else 'double precision'}[])) AS given (x)"
        integer = row_integer(term, "v", POSTGRESQL)
        text = f"SELECT {integer} FROM (SELECT {value_text(term, POSTGRESQL)} AS v FROM {given}) AS moved"
        found = [row[0] for row in server.admin.execute(text, (rows,)).fetchall()]
        assert found == [expected(term, value) for value in rows], (number, term)


@pytest.mark.parametrize("at", range(0, len(TERMS), 3))
def test_the_sum_is_exact_in_any_order(at: int) -> None:
    """Six thousand copies of the ends and of random rows, shuffled, on four threads, give one integer."""
    term, rng = TERMS[at], random.Random(at)
    rows = values(rng, term) * 100
    total = sum(q for q in (expected(term, value) for value in rows) if q is not None)
    for _ in range(2):
        rng.shuffle(rows)
        connection = duckdb.connect(config={"threads": 4})
        given = table(term, rows)
        connection.register("given", given)
        ((found,),) = connection.execute(
            f"SELECT sum({row_integer(term, 'v', DUCKDB)}) FROM (SELECT {value_text(term, DUCKDB)} AS v FROM given)"
        ).fetchall()
        assert Decimal(found) == total


@pytest.mark.parametrize("bits", [KEPT_BITS, GRID_BITS])
@pytest.mark.parametrize("centred", [False, True])
def test_the_answer_is_near_the_true_sum(centred: bool, bits: int) -> None:
    """Half a step per row at most, and 2**-bits of what a row may add: one bit less, or no centre, would fail."""
    rng = random.Random(5)
    # 64.5 from the centre, or from zero: the grid is nearly as coarse as possible.
    low, high = (-69, 60) if centred else (-9, Fraction(129, 2))
    term = summed(Column("x", Facts(Type.REAL, Fraction(low), Fraction(high))), None, centred, bits)[0]
    rows = [rng.uniform(low, float(high)) for _ in range(1000)]
    total = sum(expected(term, value) or 0 for value in rows)
    answer = Fraction(total) / 2**term.grid + Fraction(term.centre) * len(rows)
    error = abs(answer - sum(map(Fraction, rows)))
    assert error <= Fraction(len(rows), 2 ** (term.grid + 1))
    assert Fraction(1, 2 ** (term.grid + 1)) <= Fraction(129, 2) / 2**bits
    assert 2 ** (bits - 1) <= term.magnitude <= 2**bits
    assert integer_type(term) == ("INTEGER" if bits == KEPT_BITS else "BIGINT")


def test_columns_are_kept_narrow_and_expressions_are_not() -> None:
    """Squares, computed expressions, and a clip below what one row may add have more bits; those of clips also have 20 finer
    ones, of the 62 that 60 rows share."""
    column = Column("x", Facts(Type.REAL, Fraction(0), Fraction(500)))
    bits = {None: summed(column, None, False)[0], "square": summed(call("mul", column, column), None, True)[0]}
    bits |= {total: clipped(column, None, Fraction(total), 60) for total in (499, 500)}
    found = {name: (term.magnitude >> term.finer).bit_length() for name, term in bits.items()}
    assert found == {None: 30, "square": 52, 499: 36, 500: 30}
    assert {name: term.finer for name, term in bits.items()} == {None: 0, "square": 0, 499: 20, 500: 20}


def test_the_widest_integers_that_fit_are_kept_narrow() -> None:
    def kept(low: int, high: int, centred: bool = False) -> str:
        return integer_type(summed(Column("x", Facts(Type.INTEGER, Fraction(low), Fraction(high))), None, centred)[0])

    assert kept(0, 2**31 - 1) == kept(1 - 2**31, 0) == kept(0, 2**31, centred=True) == "INTEGER"
    assert kept(0, 2**31) == kept(-(2**31), 0) == kept(0, 2**33, centred=True) == "BIGINT"
