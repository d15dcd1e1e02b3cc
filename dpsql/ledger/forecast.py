"""Forecast, for the owner, of how long the budget lasts at the rate of the last week.

Times in the ledger are only informative (clocks jump), so nothing depends on a forecast.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dpsql.ledger.ledger import Ledger
from dpsql.ledger.records import Entry, Units, decimal_text, from_text
from dpsql.ledger.windows import of_present
from dpsql.privacy.accounting.ledger_units import DECIMALS

WEEK = timedelta(days=7)
_FARTHEST = timedelta(days=365 * 100)


@dataclass(frozen=True)
class Forecast:
    """The forecast of one scope: charges of the last 7 days and remaining amounts, in ledger units by dimension.

    `until`: the time at which the first dimension runs out if every week is like the last one; None if nothing was
    charged, or if that time is more than a century away.
    """

    scope: str
    charged: Units
    remaining: Units
    until: datetime | None

    def words(self) -> str:
        """Return a sentence such as "dataset: at this week's rate (epsilon 2) the budget lasts until 2026-12-24"."""
        if not any(self.charged.values()):
            return f"{self.scope}: nothing was charged this week"
        parts = [f"{name} {decimal_text(name, self.charged[name])}" for name in DECIMALS if self.charged.get(name)]
        end = "for more than a century" if self.until is None else f"until {self.until:%Y-%m-%d}"
        return f"{self.scope}: at this week's rate ({', '.join(parts)}) the budget lasts {end}"


def forecasts(ledger: Ledger, now: datetime | None = None) -> list[Forecast]:
    """Return the forecasts of all accounts except those of sessions and of closed windows, the dataset first.

    `now`: an aware datetime, by default the time of the clock.
    """
    now = datetime.now(UTC) if now is None else now
    present = of_present(ledger.accounts())
    accounts = {scope: account for scope, account in present.items() if not scope.startswith("session:")}
    charged = _charged_since(ledger.history(), now - WEEK)
    listed = []
    for scope in sorted(accounts, key=lambda name: (name != "dataset", name)):
        left = accounts[scope].remaining
        week = {dimension: charged.get((scope, dimension), 0) for dimension in left}
        listed.append(Forecast(scope, week, left, _end(week, left, now)))
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
