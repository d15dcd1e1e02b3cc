"""All values that a column may hold, cut into cells: single values, intervals between them, any other text, NULL."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from dpsql.functions.calendar import truncated
from dpsql.functions.possible_values import ANYTHING, EITHER, Possible, single
from dpsql.plan.intervals import Facts, Type

MOST_POINTS = 4_000
STEPS: dict[Type, Any] = {Type.INTEGER: 1, Type.DATE: timedelta(days=1), Type.TIMESTAMP: timedelta(microseconds=1)}


def cut(facts: Facts, literals: Iterable[Any], inside: bool) -> list[Possible]:
    """Return all possible values of a column's type, in cells. With `inside`, values that the policy names are separate cells."""
    if facts.type is Type.BOOLEAN:
        return [*(single(value) for value in EITHER), single(None)]
    points = {point for value in literals if (point := typed(value, facts.type)) is not None}
    if inside:
        points |= _inside(facts)
    if facts.type is Type.TEXT:
        return [*map(single, points), Possible(null=False, excluded=frozenset(points)), single(None)]
    if facts.type is Type.NULL:
        return [ANYTHING]
    ordered = sorted(points)
    cells = [single(None), *map(single, ordered)]
    for low, high in zip([None, *ordered], [*ordered, None], strict=True):
        below = None if low is None else _next(low, 1, facts.type)
        above = None if high is None else _next(high, -1, facts.type)
        beyond_calendar = (low is not None and below is None) or (high is not None and above is None)
        if not beyond_calendar and (below is None or above is None or below <= above):
            cells.append(Possible(None, below, above, null=False))
    return cells


def _next(value: Any, direction: int, type_: Type) -> Any:
    """Return the next value of the type, up or down; None beyond the calendar, where there is none."""
    if type_ is Type.REAL:
        return math.nextafter(value, direction * math.inf)
    try:
        return value + direction * STEPS[type_]
    except OverflowError:
        return None


def typed(value: Any, type_: Type) -> Any:
    """Return a literal as a point of a column's type, None if it has no such point. For a fraction between two integers, it is
    the lower one, so that cells are cut next to it."""
    if type_ is Type.TEXT:
        return value if isinstance(value, str) else None
    if isinstance(value, (bool, str)) or value is None:
        return None
    if type_.numeric:
        if isinstance(value, date):
            return None
        number = float(value)
        if not math.isfinite(number):
            return None
        return number if type_ is Type.REAL else math.floor(value)
    if not isinstance(value, date):
        return None
    if type_ is Type.DATE:
        return value.date() if isinstance(value, datetime) else value
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def _inside(facts: Facts) -> set[Any]:
    """Return the values that the policy names, or the integers or days between its bounds; empty if there are too many."""
    if facts.values is not None:
        listed = facts.values[:MOST_POINTS]
        return {point for value in listed if (point := typed(value, facts.type)) is not None}
    if facts.type.temporal and facts.bounded:
        return _days(facts.lower, facts.upper)
    size = facts.size()
    return set(facts.domain() or ()) if size is not None and size <= MOST_POINTS else set()


def _days(lower: Any, upper: Any) -> set[Any]:
    """Return the days (in the type of the bounds) of all years from that of `lower` to that of `upper`, and the day after; empty
    if there are too many."""
    first, last = truncated("year", lower), truncated("day", upper)
    if last.year < date.max.year:
        last = last.replace(year=last.year + 1, month=1, day=1)
    days = (last - first).days
    return {first + timedelta(days=index) for index in range(days + 1)} if days <= MOST_POINTS else set()


def named_cells(facts: Facts, literals: Iterable[Any]) -> list[tuple[Possible, bool]]:
    """Return all values that a column may hold, in few cells, each with whether the policy names all values in it."""
    missing = facts.nullable or None in (facts.values or ())
    if facts.type is Type.BOOLEAN:
        return [(Possible(EITHER, null=False), True), (single(None), missing)]
    listed = {point for value in facts.values or () if (point := typed(value, facts.type)) is not None}
    ends = (facts.lower, facts.upper) if facts.values is None and facts.bounded else ()
    written = {point for value in (*literals, *ends) if (point := typed(value, facts.type)) is not None}
    low, high = (typed(end, facts.type) for end in ends) if ends else (None, None)

    def inside(cell: Possible) -> bool:
        least, most = cell.ends
        if least is None or most is None:
            return False
        return low <= least and most <= high if ends else cell.values is not None and cell.values <= listed

    cells = cut(replace(facts, values=None, lower=None, upper=None), {*written, *listed}, False)
    apart = [cell for cell in cells if cell.values is None or not cell.values <= listed - written]
    rest = Possible(frozenset(listed - written), null=False)
    named = [(cell, inside(cell)) for cell in (*apart, *([rest] if rest.values else ()))]
    return [*named, (single(None), missing)]
