"""The parts of a session: the accounts that its charges must fit over successive windows, and the effects of another policy."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.clinic import build
from support.places import CLINIC

from dpsql.errors.exceptions import Error, refuse
from dpsql.ledger import open_ledger, windows
from dpsql.ledger.ledger import Ledger
from dpsql.policy.check import parse_policy
from dpsql.pricing.options import Options
from dpsql.privacy.accounting import make_accountant
from dpsql.session.context import Accounts, SessionContext
from dpsql.session.session import open_session

POLICY = CLINIC.replace("session: {epsilon: 1}", "session: {epsilon: 1}\nprojects: {flu: {epsilon: 2}}")
MONTHLY = POLICY.replace("accountant: zcdp", "accountant: pure, every: month")
LIFETIME = POLICY.replace("accountant: zcdp", "accountant: pure, every: month, lifetime: {epsilon: 40, delta: 2e-6}")
ASKED = Options.of_policy(parse_policy(POLICY))
UNIT = 10**18
OCTOBER, NOVEMBER = "window:2026-10-01", "window:2026-11-01"


class Clock:
    """A clock for the session; it returns the given `days` one after another and then the last one forever."""

    def __init__(self) -> None:
        self.days = [date(2026, 10, 31)]

    def __call__(self) -> date:
        return self.days.pop(0) if len(self.days) > 1 else self.days[0]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(windows, "today", clock)
    monkeypatch.setattr(windows, "require_clock", lambda connection: None)  # it would read the clock once more
    return clock


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}", "clinic", create=True, state=tmp_path / "state")
    yield opened
    opened.close()


def accounts(ledger: Ledger, text: str = POLICY, analyst: str | None = "research") -> Accounts:
    policy = parse_policy(text)
    limit = policy.budget
    planner: Any = SimpleNamespace(accountant=make_accountant(limit.accountant, limit.epsilon, limit.delta))
    return Accounts(policy, planner, ledger, analyst, "s1")


def names(opened: Accounts, project: str | None = None) -> list[str]:
    return [scope.name for scope in opened.scopes(project)]


# --- accounts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "limit"), [(MONTHLY, 10), (LIFETIME, 40)], ids=["without a limit", "with one"])
def test_a_window_is_opened_with_the_limits_below_it(ledger: Ledger, clock: Clock, text: str, limit: int) -> None:
    """Without a limit over all windows, the data set may spend at most what the window still allows."""
    opened = accounts(ledger, text)
    assert names(opened) == ["dataset", OCTOBER, f"{OCTOBER}:analyst:research", "session:s1"]
    assert {name: account.limits["epsilon"] // UNIT for name, account in ledger.accounts().items()} == {
        "dataset": limit,
        OCTOBER: 10,
        f"{OCTOBER}:analyst:research": 3,
        "session:s1": 1,
    }


def failing(slug: str, times: int) -> tuple[list[int], Callable[[], str]]:
    """Return a step that fails `times` times and then succeeds, and the list of its calls."""
    calls: list[int] = []

    def step() -> str:
        calls.append(len(calls))
        if len(calls) <= times:
            raise refuse(slug, start="2026-10-01", latest="2026-11-01") if slug == "window_closed" else refuse(slug)
        return "done"

    return calls, step


BEFORE, AFTER = date(2026, 10, 31), date(2026, 11, 1)


@pytest.mark.parametrize(
    ("slug", "times", "days", "expected"),
    [
        ("window_closed", 0, [BEFORE], 1),
        ("window_closed", 1, [BEFORE, AFTER], 2),
        ("window_closed", 2, [BEFORE, AFTER, AFTER, date(2026, 11, 2)], 3),
    ],
)
def test_a_step_is_taken_again_where_midnight_closed_its_window(
    ledger: Ledger, clock: Clock, slug: str, times: int, days: list[date], expected: int
) -> None:
    clock.days = days
    calls, step = failing(slug, times)
    assert accounts(ledger, MONTHLY).in_present_window(step) == "done" and len(calls) == expected


@pytest.mark.parametrize(
    ("slug", "days"), [("window_closed", [BEFORE]), ("ledger_head_missing", [BEFORE, AFTER])], ids=["day", "fault"]
)
def test_other_failures_are_raised_at_once(ledger: Ledger, clock: Clock, slug: str, days: list[date]) -> None:
    clock.days = days
    calls, step = failing(slug, 1)
    with pytest.raises(Error) as error:
        accounts(ledger, MONTHLY).in_present_window(step)
    assert error.value.slug == slug and len(calls) == 1


def test_the_budget_is_read_from_the_ledger_or_from_a_reservation(ledger: Ledger) -> None:
    opened = accounts(ledger, POLICY.replace("zcdp", "pure"))
    assert opened.budget(replace(ASKED, project="flu")).spent.keys() == {
        "dataset", "analyst:research", "project:flu", "session:s1",
    }  # fmt: skip
    assert opened.budget(ASKED).spent["dataset"]["epsilon"] == "0" and opened.budget(ASKED).in_a_year == ""
    reserved = {
        name: replace(account, spent={"epsilon": UNIT // 4, "delta": 0}) for name, account in ledger.accounts().items()
    }
    assert opened.budget(ASKED, reserved).spent["dataset"]["epsilon"] == "0.25"


def test_the_budget_after_a_charge_is_that_of_its_window_even_past_midnight(ledger: Ledger, clock: Clock) -> None:
    opened = accounts(ledger, MONTHLY)
    opened.scopes(None)
    reserved = ledger.accounts()
    clock.days = [AFTER]
    assert OCTOBER in opened.budget(ASKED, reserved).spent
    assert NOVEMBER in opened.budget(ASKED).spent
    assert opened.budget(ASKED).in_a_year.startswith("each month (UTC) has a budget of its own")


# --- the context ------------------------------------------------------------------------------------------------------


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SessionContext]:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    with open_session(build(tmp_path), analyst="research", create_ledger=True) as session:
        yield session.context


def test_under_another_policy_the_asker_the_data_and_the_accounts_stay(context: SessionContext) -> None:
    other = replace(context.policy, per_query=replace(context.policy.per_query, epsilon=Fraction(1, 7)))
    changed = context.under(other)
    assert changed.policy is other and changed.planner.policy is other
    new = {
        entry.name
        for entry in fields(SessionContext)
        if getattr(changed, entry.name) is not getattr(context, entry.name)
    }
    assert new == {"policy", "planner", "index", "stored_releases"}
