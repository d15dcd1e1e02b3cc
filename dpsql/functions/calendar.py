"""Functions of single dates and timestamps: starts of units, differences, months. They are also applied to policy bounds."""

from __future__ import annotations

import calendar
import math
from datetime import date, datetime, time, timedelta
from typing import Any


def midnight(value: Any) -> Any:
    """Return the midnight of a date; a timestamp unchanged."""
    return datetime.combine(value, datetime.min.time()) if type(value) is date else value


def truncated(unit: str, value: Any) -> Any:
    """Return the start of the year, quarter, ... or second in which a date or timestamp lies; weeks start on Monday."""
    day = value.date() if isinstance(value, datetime) else value
    if unit in ("hour", "minute", "second"):
        fields = {"hour": (0, 0), "minute": (value.minute, 0), "second": (value.minute, value.second)}[unit]
        return value.replace(minute=fields[0], second=fields[1], microsecond=0)
    month = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1}.get(unit, day.month)
    back = {"day": 0, "week": day.weekday()}.get(unit)
    start = day.replace(month=month, day=1) if back is None else day - timedelta(days=back)
    return midnight(start) if isinstance(value, datetime) else start


def difference(unit: str, start: Any, end: Any) -> int:
    """Return the number of boundaries of `unit` from start to end (two dates or two timestamps). Weeks are whole 7-day periods,
    as in DuckDB."""
    months = {"year": 12, "quarter": 3, "month": 1}.get(unit)
    if months is not None:
        return int((end.year * 12 + end.month - 1) // months - (start.year * 12 + start.month - 1) // months)
    if unit == "week":
        days: timedelta = truncated("day", midnight(end)) - truncated("day", midnight(start))
        return math.trunc(days / timedelta(weeks=1))
    seconds = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}[unit]
    apart: timedelta = truncated(unit, midnight(end)) - truncated(unit, midnight(start))
    return int(apart.days * 86400 + apart.seconds) // seconds


def moved_by_months(value: Any, months: int) -> Any:
    """Return the same day `months` later, or that month's last day. Raises ValueError outside the years 1 to 9999."""
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1] if 1 <= year <= 9999 else value.day
    return value.replace(year=year, month=month + 1, day=min(value.day, last))


def around_month_ends(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return ends that include all timestamps of an interval after it has been moved by months, given its moved ends.

    The last days of a long month become the last day of a short one and keep their times of day: 30 March 04:00 less one month
    is before 29 March 23:00 less one month. So an end on the last day of a month is widened to the whole day.
    """
    if isinstance(lower, datetime) and lower.date() == last_day(lower):
        lower = datetime.combine(lower.date(), time.min)
    if isinstance(upper, datetime) and upper.date() == last_day(upper):
        upper = datetime.combine(upper.date(), time.max)
    return lower, upper


EPOCH = datetime(1970, 1, 1)
BUCKETS = datetime(2000, 1, 3)
"""Default origin of time buckets: a Monday, as in DuckDB."""


def microseconds(value: Any) -> int:
    """Return the microseconds from 1970 to a date or timestamp."""
    return int((midnight(value) - EPOCH) // timedelta(microseconds=1))


def bucket(value: Any, seconds: int, origin: datetime) -> Any:
    """Return the start of the bucket of `seconds` in which a date or timestamp lies. Raises OverflowError before the year 1."""
    width = timedelta(seconds=seconds)
    start = origin + (midnight(value) - origin) // width * width
    return start if isinstance(value, datetime) else start.date()


def last_day(value: Any) -> date:
    """Return the last day of the month of a date or timestamp."""
    return date(value.year, value.month, calendar.monthrange(value.year, value.month)[1])
