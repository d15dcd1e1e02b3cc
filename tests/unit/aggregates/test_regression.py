"""Lines through points without spread have no correlation and no fit. (SQL calls a fit to equal values perfect; a noisy spread of
0 may be due to noise, so it is uninformative here.)"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from support.aggregate_calls import create
from support.exact_session import exact_session, rows_of

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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, x: str, y: str, expected: tuple[float | None, ...]
) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path))
    connection = duckdb.connect()
    create(connection)
    connection.execute(f"INSERT INTO t SELECT i, 'a', {x}, {y}, 0.5, true FROM range(-10, 11) r(i)")
    session = exact_session("numbers", connection, tmp_path / "numbers.db")
    (found,) = rows_of(session.execute(f"SELECT {CALLS} FROM t"))
    session.close()
    assert found == pytest.approx(expected, abs=1e-9)
