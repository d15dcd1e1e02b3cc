"""Forecast, for the owner, of how long the budget lasts at the rate of the last week.

Times in the ledger are only informative (clocks jump), so nothing depends on a forecast.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from dpsql.ledger.ledger import Ledger
from dpsql.ledger.records import Entry, Units, decimal_text, from_text
from dpsql.ledger.windows import in_words, of_present, parts
from dpsql.privacy.ledger_units import DECIMALS, next_start

WEEK = timedelta(days=7)
_FARTHEST = timedelta(days=365 * 100)


@dataclass(frozen=True)
class Forecast:
    """The forecast of one scope: charges of the last 7 days and remaining amounts, in ledger units by dimension.

    `until`: the time at which the first dimension runs out if every week is like the last one; None if nothing was
    charged, or if that time is more than a century away. `closes`: the day on which the window of the account ends and another
    one begins, None for an account of all time.
    """

    scope: str
    charged: Units
    remaining: Units
    until: datetime | None
    closes: date | None = None

    def words(self, price: Units) -> str:
        """Return a sentence in questions at a price, such as "dataset: 31 questions are left; at this week's rate (12) they last
        until 2026-12-24"."""
        left = min((self.remaining[name] // amount for name, amount in price.items() if amount), default=0)
        rate = max((self.charged.get(name, 0) / amount for name, amount in price.items() if amount), default=0.0)
        questions = f"{in_words(self.scope)}: {'1 question is' if left == 1 else f'{left:,} questions are'} left"
        if not rate or not left:
            return f"{questions}{'' if rate else '; nothing was charged this week'}{self._window()}"
        return f"{questions}; at this week's rate ({rate:.3g}) they last {self._end()}"

    def exact_words(self) -> str:
        """Return a sentence such as "dataset: at this week's rate (epsilon 2) the budget lasts until 2026-12-24"."""
        if not any(self.charged.values()):
            return f"{self.scope}: nothing was charged this week{self._window()}"
        amounts = [f"{name} {decimal_text(name, self.charged[name])}" for name in DECIMALS if self.charged.get(name)]
        return f"{self.scope}: at this week's rate ({', '.join(amounts)}) the budget lasts {self._end()}"

    def _end(self) -> str:
        if self.closes is not None and (self.until is None or self.until.date() >= self.closes):
            return f"beyond {self.closes}, when a new budget begins"
        return "for more than a century" if self.until is None else f"until {self.until:%Y-%m-%d}{self._window()}"

    def _window(self) -> str:
        return "" if self.closes is None else f"; a new budget begins on {self.closes}"


def forecasts(ledger: Ledger, now: datetime | None = None, every: str | None = None) -> list[Forecast]:
    """Return the forecasts of all accounts except those of sessions and of closed windows, the dataset first. `now`: an aware
    datetime, by default the time of the clock; `every`: the length of the windows of the policy."""
    now = datetime.now(UTC) if now is None else now
    present = of_present(ledger.accounts())
    accounts = {scope: account for scope, account in present.items() if not scope.startswith("session:")}
    charged = _charged_since(ledger.history(), now - WEEK)
    listed = []
    for scope in sorted(accounts, key=lambda name: (name != "dataset", name)):
        left = accounts[scope].remaining
        week = {dimension: charged.get((scope, dimension), 0) for dimension in left}
        start = parts(scope)[0]
        closes = next_start(every, date.fromisoformat(start)) if start is not None and every is not None else None
        listed.append(Forecast(scope, week, left, _end(week, left, now), closes))
    return listed


def _charged_since(entries: Iterable[Entry], start: datetime) -> dict[tuple[str, str], int]:
    total: dict[tuple[str, str], int] = {}
    for entry in entries:
        facts = entry.facts
        if entry.kind != "charge" or datetime.fromisoformat(facts["time"]) < start:
            continue
        for scope in facts["scopes"]:
            for dimension, amount in from_text(facts["charge"]).items():
                total[scope, dimension] = total.get((scope, dimension), 0) + amount
    return total


def _end(week: Units, left: Units, now: datetime) -> datetime | None:
    """Return the time at which a budget is used up (None: not in sight); the first dimension to run out decides."""
    seconds = int(WEEK.total_seconds())
    spans = [left[name] * seconds // amount for name, amount in week.items() if _reachable(left[name], amount)]
    return now + timedelta(seconds=min(spans)) if spans else None


def _reachable(left: int, weekly: int) -> bool:
    return weekly > 0 and left // weekly < _FARTHEST // WEEK
