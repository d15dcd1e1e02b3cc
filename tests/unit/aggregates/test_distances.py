"""Expressions that may be NULL in some rows: rows without a value are in counts of rows and in no sum."""

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from support.aggregate_calls import create
from support.exact_session import exact_session, rows_of
from support.gates import NoiselessGate
from support.joint_rows import session_over, terms

from dpsql.session.session import Session

ROWS = (
    "SELECT 1 AS cell, 0.5 AS x, 1.5 AS y, 3 AS z, CASE WHEN i % 5 = 0 THEN -1 ELSE 1 + i % 4 END AS w, i % 3 AS u, 0.55 AS v, "
    "'even' AS part, 'a' AS name FROM range(100) AS r(i)"
)
"""w is -1 in a fifth of the rows, although the policy bounds it between 0 and 5."""
CHOSEN = [
    "count(*), avg(100 // (w + 1))",
    "count(100 // (w + 1)), sum(100 // (w + 1)), count(*)",
    "count(*), count(u % (w + 1)), avg(u % (w + 1))",
    "count(*), var_pop(100 // (w + 1))",
    "count(*), covar_pop(100 // (w + 1), u), avg(u)",
]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Return a noiseless session."""
    opened = session_over(tmp_path, ROWS, "pure")
    opened.context = replace(opened.context, gate=NoiselessGate())
    opened.execute("SET dp.shrinkage = off")  # estimates depend on the claimed noise
    return opened


@pytest.mark.parametrize("reuse", ["off", "derive"])
@pytest.mark.parametrize("chosen", CHOSEN)
def test_a_divisor_out_of_its_bounds_leaves_no_row_out_of_the_count(session: Session, chosen: str, reuse: str) -> None:
    session.execute(f"SET dp.reuse = {reuse}")
    if reuse == "derive":
        session.execute("SELECT covar_pop(100 // (w + 1), u), avg(u % (w + 1)) FROM t")
    answered = next(iter(session.execute(f"SELECT {chosen} FROM t").rows()))
    with duckdb.connect() as plain:
        (expected,) = plain.execute(
            f"SELECT {chosen} FROM ({ROWS}) AS t".replace("(w + 1)", "nullif(w + 1, 0)")
        ).fetchall()
    assert answered == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("argument", ["w + 1", "w * u", "100 // (u * u + 1)", "greatest(w, 1) - u"])
def test_what_always_has_a_value_shares_its_count_with_that_of_rows(session: Session, argument: str) -> None:
    assert len(terms(session, f"SELECT count(*), avg({argument}) FROM t")) == 2


# --- Lines through points without spread have no correlation and no fit. (SQL calls a fit to equal values perfect; a noisy spread of 0 may be due to noise, so it is uninformative here.) ---


CALLS = "CORR(y, x), REGR_SLOPE(y, x), REGR_INTERCEPT(y, x), REGR_R2(y, x)"


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ("i", "25", (None, 0.0, 25.0, None)),
        ("10", "i", (None, None, None, None)),
        ("10", "25", (None, None, None, None)),
        ("i", "3 * i", (1.0, 3.0, 0.0, 1.0)),
        ("i", "-3 * i", (-1.0, -3.0, 0.0, 1.0)),
    ],
)
def test_what_does_not_spread_has_no_correlation(
    tmp_path: Path, x: str, y: str, expected: tuple[float | None, ...]
) -> None:
    connection = duckdb.connect()
    create(connection)
    connection.execute(f"INSERT INTO t SELECT i, 'a', {x}, {y}, 0.5, true FROM range(-10, 11) r(i)")
    session = exact_session("numbers", connection, tmp_path / "numbers.db")
    (found,) = rows_of(session.execute(f"SELECT {CALLS} FROM t"))
    session.close()
    assert found == pytest.approx(expected, abs=1e-9)
