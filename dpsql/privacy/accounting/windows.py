"""Budgets that are renewed: the calendar of their windows.

A window is a part of the calendar (UTC) with its own limit. Each window's limit is a filter for adaptively chosen mechanisms, and
the losses of windows add up in the ledger's dimensions: n windows lose at most n times the limit. So a window bounds what is
learned in that time, and only a limit on all windows together (`lifetime`) bounds what is learned in total.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

_CALENDAR: dict[str, tuple[Callable[[date], date], int]] = {
    "day": (lambda day: day, 365),
    "week": (lambda day: day - timedelta(days=day.weekday()), 52),
    "month": (lambda day: day.replace(day=1), 12),
    "quarter": (lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1), 4),
    "year": (lambda day: day.replace(month=1, day=1), 1),
}
EVERY = tuple(_CALENDAR)
"""Names of the window lengths; a week begins on Monday."""


def window_start(every: str, day: date) -> date:
    """Return the first day of the window of length `every` that contains `day`."""
    return _CALENDAR[every][0](day)


def windows_in_a_year(every: str) -> int:
    """Return how many whole windows a year has."""
    return _CALENDAR[every][1]
