"""Renewing budgets: the calendar, the window of a query, and the information in each front end."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from support.clinic import build

import dpsql
from dpsql.errors.exceptions import BudgetRefusal
from dpsql.frontends.cli import status_of
from dpsql.ledger import accounts, windows
from dpsql.ledger.ledger import Ledger, forecasts
from dpsql.policy import load_policy
from dpsql.privacy.ledger_units import EVERY, next_start, window_start, windows_in_a_year
from dpsql.session.budget import windows_in_words
from dpsql.session.row_export import RowExport
from dpsql.session.session import open_session

COUNT = "SELECT COUNT(*) AS n FROM patients WHERE age < {}"
PURE = "budget: {epsilon: 3, delta: 1e-6, accountant: pure, every: month"
ZCDP = "budget: {epsilon: 12, delta: 1e-6, accountant: zcdp, every: month"


class Clock:
    """The day for the session."""

    def __init__(self) -> None:
        self.day = date(2026, 10, 30)

    def __call__(self) -> date:
        return self.day


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(windows, "today", clock)
    monkeypatch.setattr(accounts, "now", lambda: f"{clock.day}T12:00:00.000+00:00")
    return clock


def clinic(folder: Path, budget: str = PURE) -> Path:
    path = build(folder)
    text = path.read_text().replace("budget: {epsilon: 1000, delta: 1e-6, accountant: pure", budget)
    path.write_text(text.replace("research: {epsilon: 1000}", "research: {epsilon: 2}"))
    assert budget in path.read_text()
    return path


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    return clinic(tmp_path)


@pytest.fixture
def ages() -> Iterator[int]:
    """Yield ages that no query has used yet, to make each query new."""
    return iter(range(20, 120))


def asked(session: object, ages: Iterator[int], most: int = 40) -> int:
    """Return how many of `most` different queries were answered."""
    number = 0
    for _ in range(most):
        try:
            session.execute(COUNT.format(next(ages)))  # type: ignore[attr-defined]
            number += 1
        except BudgetRefusal:
            break
    return number


# --- the calendar -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", EVERY)
def test_windows_cover_the_calendar_without_gaps_and_overlaps(every: str) -> None:
    day, last, starts = date(2023, 12, 1), date(2029, 2, 1), set[date]()
    start = window_start(every, day)
    while day < last:
        assert window_start(every, day) in (start, day)
        start = window_start(every, day)
        assert window_start(every, start) == start <= day
        starts.add(start)
        day += timedelta(days=1)
    assert 0 <= sum(2024 <= start.year <= 2028 for start in starts) - 5 * windows_in_a_year(every) <= 2  # two leap days


# --- what may be asked --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [PURE, ZCDP])
def test_a_month_ends_and_the_next_has_a_budget_of_its_own(
    policy: Path, clock: Clock, ages: Iterator[int], budget: str
) -> None:
    clinic_policy = policy
    text = clinic_policy.read_text().replace(PURE, budget)
    clinic_policy.write_text(text)
    with open_session(clinic_policy, create_ledger=True) as session:
        first = asked(session, ages)
        assert (first == 3 if budget == PURE else first > 1) and asked(session, ages) == 0
        clock.day = date(2026, 10, 31)
        assert asked(session, ages) == 0
        clock.day = date(2026, 11, 1)
        assert asked(session, ages) == first
        spent, limits = session.ledger.spent(), session.ledger.limits(windows.window_scope("2026-11-01"))
        assert all(spent[name] <= 2 * limits[name] for name in limits)
        assert session.ledger.verify().sound


def test_an_analyst_has_a_part_of_each_window(policy: Path, clock: Clock, ages: Iterator[int]) -> None:
    with open_session(policy, analyst="research", create_ledger=True) as session:
        assert asked(session, ages) == 2
        clock.day = date(2026, 11, 24)
        assert asked(session, ages) == 2
    with open_session(policy) as owner:
        assert asked(owner, ages) == 1


def test_a_question_that_is_charged_at_midnight_belongs_to_the_window_it_was_charged_to(
    policy: Path, clock: Clock, ages: Iterator[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_session(policy, create_ledger=True) as session:
        reserve = session.ledger.reserve

        def reserve_late(request: object) -> object:
            reservation = reserve(request)  # type: ignore[arg-type]
            clock.day = date(2026, 11, 1)
            return reservation

        monkeypatch.setattr(session.ledger, "reserve", reserve_late)
        release = session.execute(COUNT.format(next(ages)))
        assert set(release.remaining) == {"dataset", "window:2026-10-01"}
        assert "window:2026-11-01" not in session.ledger.accounts()


MIDNIGHT = date(2026, 11, 1)


def test_a_question_that_meets_midnight_before_its_charge_is_charged_to_the_next_window(
    policy: Path, clock: Clock, ages: Iterator[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process opens the next window after this one has read the clock."""
    with open_session(policy, analyst="research", create_ledger=True) as session, open_session(policy) as other:
        asked(session, ages, 1)
        reserve = session.ledger.reserve

        def opened_meanwhile(request: object) -> object:
            if clock.day < MIDNIGHT:
                clock.day = MIDNIGHT
                assert asked(other, ages, 1) == 1
            return reserve(request)  # type: ignore[arg-type]

        monkeypatch.setattr(session.ledger, "reserve", opened_meanwhile)
        release = session.execute(COUNT.format(next(ages)))
        assert set(release.remaining) == {"dataset", "window:2026-11-01", "window:2026-11-01:analyst:research"}
        assert session.ledger.spent("window:2026-10-01")["epsilon"] == 10**18
        assert session.ledger.spent("window:2026-11-01")["epsilon"] == 2 * 10**18
        assert session.ledger.spent()["epsilon"] == 3 * 10**18 and session.ledger.verify().sound


def test_rows_that_meet_midnight_are_charged_to_the_next_window(
    policy: Path, clock: Clock, ages: Iterator[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with open_session(policy, create_ledger=True) as session, open_session(policy) as other:
        export = RowExport(session, "patients", ("region",), Fraction(1, 2))
        asked(session, ages, 1)
        reserve = session.ledger.reserve

        def opened_meanwhile(request: object) -> object:
            if clock.day < MIDNIGHT:
                clock.day = MIDNIGHT
                assert asked(other, ages, 1) == 1
            return reserve(request)  # type: ignore[arg-type]

        monkeypatch.setattr(session.ledger, "reserve", opened_meanwhile)
        receipt = export.write(tmp_path / "rows.parquet")
        assert "window:2026-11-01" in receipt.remaining


def test_a_session_that_meets_midnight_while_it_opens_has_the_next_window(
    policy: Path, clock: Clock, ages: Iterator[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_window = Ledger.open_window
    with open_session(policy, create_ledger=True) as other:

        def opened_meanwhile(ledger: Ledger, window: windows.BudgetWindow) -> None:
            if clock.day < MIDNIGHT:
                clock.day = MIDNIGHT
                assert asked(other, ages, 1) == 1
            open_window(ledger, window)

        monkeypatch.setattr(Ledger, "open_window", opened_meanwhile)
        with open_session(policy) as session:
            assert [count.left for count in session.budget().questions({"epsilon": 10**18})] == [2]
            assert set(session.execute(COUNT.format(next(ages))).remaining) == {"dataset", "window:2026-11-01"}


def test_a_lifetime_ends_all_windows(tmp_path: Path, clock: Clock) -> None:
    path = clinic(tmp_path, f"{PURE}, lifetime: {{epsilon: 4}}")
    ages = iter(range(20, 120))
    with open_session(path, create_ledger=True) as session:
        assert asked(session, ages) == 3
        clock.day = date(2026, 11, 1)
        assert asked(session, ages) == 1
        clock.day = date(2026, 12, 1)
        assert asked(session, ages) == 0
        assert session.left_text() == "dataset 0 questions, this month 3, each of epsilon 1"


def test_a_forecast_ends_with_its_window(policy: Path, clock: Clock, ages: Iterator[int]) -> None:
    price = {"epsilon": 10**18}
    with open_session(policy, create_ledger=True) as session:
        assert asked(session, ages, 1) == 1
        (_, window) = forecasts(session.ledger, every="month")
    assert (window.closes, window.account.remaining["epsilon"]) == (date(2026, 11, 1), 2 * 10**18)
    for until, end in (
        (datetime(2026, 10, 20, tzinfo=UTC), "(1) they last until 2026-10-20; a new budget begins on 2026-11-01"),
        (datetime(2026, 11, 9, tzinfo=UTC), "(1) they last beyond 2026-11-01, when a new budget begins"),
    ):
        assert (
            replace(window, charged=price, now=until - timedelta(weeks=2))
            .words(price)
            .endswith(f"2 questions are left; at this week's rate {end}")
        )
    assert (
        replace(window, charged={})
        .words(price)
        .endswith("nothing was charged this week; a new budget begins on 2026-11-01")
    )
    spent = replace(window, charged=price, account=window.account.after(9, limits=window.account.spent))
    assert spent.words(price).endswith(" 0 questions are left; a new budget begins on 2026-11-01")
    assert next_start("week", date(2026, 10, 26)) == date(2026, 11, 2) and next_start(
        "day", date(2026, 12, 31)
    ) == date(2027, 1, 1)


# --- what is said -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (PURE, "12 months amount to epsilon 36 at delta 1.2e-05, and nothing limits what all of them add up to"),
        (PURE.replace("month", "year"), "one year amounts to epsilon 3 at delta 1e-06, and nothing limits"),
        (PURE.replace("month", "day"), "365 days amount to epsilon 1100 at delta"),
        (f"{PURE}, lifetime: {{epsilon: 20}}", "and all that are ever opened to at most epsilon 20 at delta 1e-06"),
    ],
)
def test_what_windows_add_up_to_is_said_at_every_door(
    policy: Path, clock: Clock, capsys: pytest.CaptureFixture[str], budget: str, words: str
) -> None:
    policy.write_text(policy.read_text().replace(PURE, budget))
    assert words in windows_in_words(load_policy(policy).budget)
    assert status_of(["check", "--create-ledger", "-p", str(policy)]) == 0
    assert words in capsys.readouterr().out
    assert status_of(["explain", "-p", str(policy), "SELECT COUNT(*) FROM patients"]) == 0
    assert words in capsys.readouterr().out
    assert status_of(["budget", "show", "-p", str(policy)]) == 0
    assert words in capsys.readouterr().err
    assert status_of(["budget", "forecast", "-p", str(policy)]) == 0
    assert ("dataset" in capsys.readouterr().out) == ("lifetime" in budget)
    connection = dpsql.connect(policy)
    assert words in connection.budget.text()
    connection.close()


def test_the_sum_of_a_year_under_zcdp_is_below_twelve_times_and_above_one_month(policy: Path) -> None:
    policy.write_text(policy.read_text().replace(PURE, ZCDP))
    words = windows_in_words(load_policy(policy).budget)
    epsilon = Fraction(words.split("epsilon ")[1].split(" ")[0])
    assert 12 * 12**0.5 <= epsilon < 12 * 12
    assert windows_in_words(load_policy(policy).budget.__class__(Fraction(3), Fraction(0), "pure")) == ""
