"""Numbers so large that their squares overflow a double: their errors are computed without squares."""

from __future__ import annotations

import pytest

from dpsql.session.session import Session


@pytest.mark.parametrize("sql", [
    "SELECT SUM(s) AS v FROM (SELECT region, SUM(clamp(age, 0, 100) * 1e300) AS s FROM patients GROUP BY region) AS t",
    "SELECT SUM(clamp(age, 0, 100) * 1e300) AS v FROM patients GROUP BY ROLLUP(region)",
    "SELECT AVG(clamp(age, 0, 100) * 1e300) AS v FROM patients",
    "SELECT SUM(clamp(age, 0, 100) * 1e200) - 2 * SUM(clamp(age, 0, 50) * 1e200) AS v FROM patients",
])  # fmt: skip
def test_numbers_without_squares_have_error_bars(session: Session, sql: str) -> None:
    """Squares would overflow after the charge; the repeated query is answered from the store."""
    session.execute("SELECT region, SUM(clamp(age, 0, 100) * 1e300) AS s FROM patients GROUP BY region")
    session.execute("SET dp.reuse = derive")
    for _ in range(2):
        bars = session.execute(sql).bars
        (low, *_), (high, *_) = (ends.column("v").to_pylist() for ends in (bars.low, bars.high))
        assert low < high
