"""Clocks that jump: no window is opened by one, and the owner's word repairs what one did; each window is spent once."""

from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from support.ledger_homes import EPSILON, Home, charge

from dpsql.errors.exceptions import BudgetRefusal, Error
from dpsql.ledger import accounts, windows
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.windows import BudgetWindow, of_present, window_scope

TODAY = date(2026, 11, 20)
LIMIT = {"epsilon": 3 * EPSILON, "delta": 0}


class Clock:
    """The clock of this machine, and whether the ledger's server shares it."""

    def __init__(self) -> None:
        self.day = TODAY
        self.server: date | None = None

    def window(self) -> BudgetWindow:
        """Return the window of the present month."""
        return BudgetWindow(self.day.replace(day=1).isoformat(), "pure", LIMIT, None)

    def ask(self, ledger: Ledger, name: str) -> None:
        """Charge epsilon 1 as a question does: open the present window, then reserve."""
        ledger.open_window(self.window())
        ledger.reserve(charge(name, scopes=("dataset", window_scope(self.window().start)))).commit()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    real = windows.require_server_clock
    monkeypatch.setattr(windows, "today", lambda: clock.day)
    monkeypatch.setattr(accounts, "now", lambda: f"{clock.day}T12:00:00.000+00:00")
    monkeypatch.setattr(windows, "require_server_clock", lambda connection, day: clock.server and real(connection, day))
    yield clock


@pytest.mark.parametrize("days", [36, 365, 70 * 365])
def test_a_clock_that_is_ahead_opens_no_window(home: Home, clock: Clock, days: int) -> None:
    ledger = home.open(create=True)
    clock.ask(ledger, "before")
    before = len(list(ledger.history()))
    clock.day = TODAY + timedelta(days=days)
    with pytest.raises(Error) as error:
        clock.ask(ledger, "ahead")
    assert (
        error.value.slug == "clock_jumped"
        and str(clock.day) in error.value.message
        and str(TODAY) in error.value.message
    )
    assert not error.value.charged and len(list(ledger.history())) == before
    clock.day = TODAY
    clock.ask(ledger, "after")
    assert ledger.verify().sound


def test_a_clock_that_is_behind_opens_no_first_window(home: Home, clock: Clock) -> None:
    ledger = home.open(create=True)
    clock.day = date(1970, 1, 1)
    with pytest.raises(Error, match="20777 days after that"):
        clock.ask(ledger, "behind")
    clock.day = TODAY
    clock.ask(ledger, "right")


@pytest.mark.parametrize("days", [1, 35])
def test_a_pause_of_a_month_needs_no_owner(home: Home, clock: Clock, days: int) -> None:
    ledger = home.open(create=True)
    clock.ask(ledger, "before")
    clock.day = TODAY + timedelta(days=days)
    clock.ask(ledger, "after")


def test_after_a_long_pause_the_owner_states_the_day_once(home: Home, clock: Clock) -> None:
    ledger = home.open(create=True)
    clock.ask(ledger, "before")
    clock.day = date(2027, 6, 10)
    with pytest.raises(Error, match="clock says 2027-06-10"):
        clock.ask(ledger, "after")
    ledger.state_day(clock.window(), "nobody asked in the winter")
    clock.ask(ledger, "after")
    clock.day = date(2027, 7, 1)
    clock.ask(ledger, "a month later")
    (stated,) = (entry.facts for entry in ledger.history() if entry.kind == "clock")
    assert (stated["day"], stated["window"], stated["reason"]) == (
        "2027-06-10",
        "2027-06-01",
        "nobody asked in the winter",
    )
    assert ledger.verify().sound


def test_the_owner_sets_back_a_window_that_was_opened_too_soon(home: Home, clock: Clock) -> None:
    ledger, elsewhere = home.open(create=True), home.open()
    clock.ask(ledger, "november 1")
    clock.day = date(2026, 12, 24)  # a clock that is 34 days ahead
    clock.ask(ledger, "december 1")
    clock.day = TODAY
    with pytest.raises(Error) as closed:
        clock.ask(ledger, "closed")
    assert closed.value.slug == "window_closed"
    ledger.state_day(clock.window(), "the clock of one host was ahead")
    clock.ask(elsewhere, "november 2")
    clock.ask(ledger, "november 3")
    with pytest.raises(BudgetRefusal):
        clock.ask(ledger, "november 4")
    with pytest.raises(Error) as late:  # the host whose clock is still ahead
        ledger.reserve(charge("too soon", scopes=("dataset", window_scope("2026-12-01"))))
    assert late.value.slug == "window_closed"
    assert set(of_present(ledger.accounts())) == {"dataset", window_scope("2026-11-01")}
    clock.day = date(2026, 12, 1)
    for name in ("december 2", "december 3"):
        clock.ask(ledger, name)
    with pytest.raises(BudgetRefusal):  # what the clock that was ahead spent stays spent
        clock.ask(ledger, "december 4")
    assert ledger.spent() == {"epsilon": 6 * EPSILON, "delta": 0} and ledger.verify().sound


def test_a_first_window_of_the_future_is_set_back(home: Home, clock: Clock) -> None:
    clock.day = date(2096, 1, 1)
    ledger = home.open(create=True)
    for number in range(3):
        clock.ask(ledger, f"ahead {number}")
    clock.day = TODAY
    ledger.state_day(clock.window(), "the clock was 70 years ahead when the ledger was created")
    clock.ask(ledger, "right")
    clock.day = date(2096, 1, 2)
    ledger.state_day(clock.window(), "seventy years later")
    with pytest.raises(BudgetRefusal):
        clock.ask(ledger, "that budget was spent")
    assert ledger.verify().sound


def test_the_server_of_the_ledger_has_the_same_day(postgres_home: Home, clock: Clock) -> None:
    ledger = postgres_home.open(create=True)
    clock.server = clock.day = date.today() + timedelta(days=400)
    for step in (lambda: clock.ask(ledger, "ahead"), lambda: ledger.state_day(clock.window(), "it is right")):
        with pytest.raises(Error, match="the ledger's database says"):
            step()
    clock.day = date.today()
    ledger.state_day(clock.window(), "the ledger was created by a clock that was behind")
    clock.ask(ledger, "right")
