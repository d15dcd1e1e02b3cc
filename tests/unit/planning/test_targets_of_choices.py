"""`dp.target_error` of quantiles and most frequent values: a number of rows of rank in the worst case, at the least epsilon."""

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from support.clinic import build

from dpsql.session.session import Session, open_session

BY_REGION = "SELECT region, MEDIAN(age) AS m FROM patients GROUP BY region"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Return a session over 500 patients, one row each, in each of two regions."""
    with open_session(build(tmp_path), create_ledger=True) as opened:
        yield opened


def epsilon(session: Session, sql: str) -> Fraction:
    return Fraction(session.explain(sql).loss.epsilon or 0)


@pytest.mark.parametrize(
    ("number", "parts", "most_move"),
    [("MEDIAN(age)", 1, 0.5), ("QUANTILE_DISC(age, 0.1)", 1, 0.9), ("MEDIAN(age), QUANTILE_DISC(age, 0.1)", 2, 0.9)],
)
def test_the_least_epsilon_that_reaches_the_rank_error_is_charged(
    session: Session, number: str, parts: int, most_move: float
) -> None:
    """By hand: permute-and-flip is off by more than d rows with probability at most cells / 2 exp(-epsilon_0 d / (2 M))."""
    cells = int(re.findall("over ([0-9]+) cells", session.explain(f"SELECT {number} FROM patients").to_text())[0])
    session.execute("SET dp.target_error = 25")
    charged = float(epsilon(session, f"SELECT {number} FROM patients"))
    least = parts * 2 * most_move * math.log(cells / 2 / 0.05) / 25
    assert least <= charged * (1 + 1e-9)
    assert charged <= least * 1.003


def test_the_smallest_value_is_within_so_many_rows_of_the_first(session: Session) -> None:
    """Its target rank and the error in rank together."""
    session.execute("SET dp.target_error = 60")
    text = session.explain("SELECT MIN(age) AS low FROM patients").to_text()
    rank = int(re.findall("smallest value number ([0-9]+), inside the data in at least 95% of cases", text)[0])
    error = float(re.findall(r"rank error of at most ([0-9.]+) rows", text)[0])
    assert 57 < rank + error <= 60


def test_stored_quantiles_that_are_farther_off_are_not_used(session: Session) -> None:
    session.execute("SET dp.reuse = derive")
    paid = session.execute("SELECT region, QUANTILE_DISC(age, [0.5, 0.9]) AS q FROM patients GROUP BY region")
    (note,) = (note for note in session.execute(BY_REGION).receipt.notices if "comes from the release" in note)
    (error,) = (float(rows) for rows in re.findall(r"at most ([0-9.]+) rows", note))
    session.execute(f"SET dp.target_error = {error * 1.01:.4f}")
    assert session.explain(BY_REGION).charged.epsilon == 0
    session.execute(f"SET dp.target_error = {error * 0.99:.4f}")
    assert Fraction(session.explain(BY_REGION).charged.epsilon or 0) > 0
    assert paid.loss.epsilon
