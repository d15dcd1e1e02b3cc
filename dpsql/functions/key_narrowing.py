"""Public keys that the question's own conditions leave: a value goes when no row of its group can pass them.

This is decided from the text alone. Conditions see columns as they are stored, so a column may hold anything here, inside
or outside the policy's bounds and lists: its possible values are cut into cells (single values, intervals between them,
any other text, NULL), and conditions and keys are evaluated over each cell (`dpsql.functions.possible_values`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any

from dpsql.functions.calendar import truncated
from dpsql.functions.evaluate import evaluate
from dpsql.functions.possible_values import ANYTHING, EITHER, Possible, possible, single
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.origins import Branch, Unknown, branches
from dpsql.plan.plan import Call, Column, Expr, Literal, Relation, ReleasedValue

MOST_CELLS = 20_000
"""Evaluations of a call for one key. Where they would be more, cells are wider, and more values may stay."""
MOST_POINTS = 4_000
_STEPS: dict[Type, Any] = {Type.INTEGER: 1, Type.DATE: timedelta(days=1), Type.TIMESTAMP: timedelta(microseconds=1)}
_KEY = "#key"
_RESULT = "#result "
_COMPUTED = ("u", "w")
"""How the ways of columns end that are computed per unit (`origins`)."""

Values = tuple[Any, ...]


def remaining(source: Relation, keys: Sequence[tuple[Expr, Values]], more: Sequence[Expr]) -> list[Values]:
    """Of each key (expression over `source`, values) the values that some row of `source` may have which also fulfils the
    conditions `more` on keys. In the order they have."""
    try:
        found = branches(source)
        return [_of_key(found, [one for one, _ in keys], at, values, more) for at, (_, values) in enumerate(keys)]
    except Unknown:
        return [values for _, values in keys]


def leaves_out(source: Relation, key: Expr, values: Values) -> bool:
    """Whether some row of `source` may have a key that is none of `values`. True where that is not known."""
    try:
        found = branches(source)
        written = [
            (branch.written(key), [part for one in branch.conditions for part in _conjuncts(one)]) for branch in found
        ]
    except Unknown:
        return True
    return any(_Search(expression, values, conditions).leaves_out() for expression, conditions in written)


def _of_key(found: list[Branch], keys: list[Expr], at: int, values: Values, more: Sequence[Expr]) -> Values:
    kept: set[int] = set()
    for branch in found:
        key = branch.written(keys[at])
        conditions = [part for one in (*branch.conditions, *map(branch.written, more)) for part in _conjuncts(one)]
        kept |= _Search(key, values, conditions).kept()
        if len(kept) == len(values):
            break
    return tuple(value for number, value in enumerate(values) if number in kept)


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, Call) and condition.function == "and":
        for argument in condition.arguments:
            yield from _conjuncts(argument)
    else:
        yield condition


@dataclass
class _Search:
    """One key and the conditions of one branch."""

    key: Expr
    values: Values
    conditions: list[Expr]

    def kept(self) -> set[int]:
        """Positions of the values that may stay."""
        every = set(range(len(self.values)))
        alone = [one for one in self.conditions if not _names(one)]
        if any(not possible(one, {}).holds(True) for one in alone):
            return set()
        own, linked = self._linked()
        if not own:
            return {at for at in every if possible(self.key, {}).holds(self.values[at])}
        if not any(_names(one) & own.keys() for one in self.conditions):
            return every
        for columns, wide in ((linked, False), (own, False), (own, True)):
            conditions = [one for one in self.conditions if _names(one) & columns.keys()]
            cells = self._cells(columns, own, wide)
            weight = sum(map(_calls, [*conditions, self.key]))
            if math.prod(map(len, cells.values())) * weight <= MOST_CELLS:
                return self._over(cells, conditions)
        return every

    def leaves_out(self) -> bool:
        """Whether a row that meets the conditions may have none of the values."""
        own, _ = self._linked()
        if any(not possible(one, {}).holds(True) for one in self.conditions if not _names(one)):
            return False
        if not own:
            return not self._holds_all(possible(self.key, {}), frozenset(self.values))
        if all(name.rpartition(".")[0].endswith(_COMPUTED) for name in own):
            return False
        for wide in (False, True):
            conditions = [one for one in self.conditions if _names(one) & own.keys()]
            cells = self._cells(own, own, wide)
            if math.prod(map(len, cells.values())) * sum(map(_calls, [*conditions, self.key]), 1) <= MOST_CELLS:
                return self._misses(cells, conditions)
        return True

    def _misses(self, cells: dict[str, list[Possible]], conditions: list[Expr]) -> bool:
        tests, every = [_Test(one) for one in conditions], frozenset(self.values)
        for combination in product(*cells.values()):
            row = dict(zip(cells, combination, strict=True))
            known = {name: value for name, cell in row.items() for value in cell.listed or ()}
            met = all(test.may_be_true(row, known) for test in tests)
            if met and not self._holds_all(self._key_over(row, known), every):
                return True
        return False

    def _key_over(self, row: dict[str, Possible], known: dict[str, Any]) -> Possible:
        """What the key may be where columns are what `row` says; `known` are those that are one value."""
        exact = _names(self.key) <= known.keys()
        return single(evaluate(self.key, known)) if exact else possible(self.key, row)

    def _holds_all(self, found: Possible, every: frozenset[Any]) -> bool:
        """Whether every value that is possible is one of the key's."""
        if found.null and None not in every:
            return False
        if found.values is not None:
            return found.values <= every
        step, low, high = _STEPS.get(self.key.facts.type), found.lower, found.upper
        if step is None or low is None or high is None:
            return False
        inside = sum(1 for value in every if value is not None and low <= value <= high)
        return self.key.facts.type is not Type.TIMESTAMP and inside == (high - low) // step + 1

    def _linked(self) -> tuple[dict[str, Column], dict[str, Column]]:
        """The columns of the key, and with them those that conditions compare with them."""
        own = {column.name: column for column in _columns(self.key)}
        linked = dict(own)
        for _ in range(2):
            for condition in self.conditions:
                names = {column.name: column for column in _columns(condition)}
                if names.keys() & linked.keys():
                    linked |= names
        return own, linked

    # --- cells --------------------------------------------------------------------------------------------------------

    def _cells(self, columns: dict[str, Column], own: dict[str, Column], wide: bool) -> dict[str, list[Possible]]:
        literals = [value for one in (self.key, *self.conditions) for value in _literals(one)]
        if isinstance(self.key, Column):
            literals += [value for value in self.values if value is not None]
        return {name: _cut(column.facts, literals, inside=name in own and not wide) for name, column in columns.items()}

    def _over(self, cells: dict[str, list[Possible]], conditions: list[Expr]) -> set[int]:
        """Over all combinations of cells."""
        kept: set[int] = set()
        place = {value: at for at, value in enumerate(self.values)}
        in_key = [written for one in conditions if (written := _with_key(one, self.key)) != one]
        tests = [_Test(one) for one in conditions]
        for combination in product(*cells.values()):
            row = dict(zip(cells, combination, strict=True))
            known = {name: value for name, cell in row.items() for value in cell.listed or ()}
            if not all(test.may_be_true(row, known) for test in tests):
                continue
            exact = len(known) == len(row)
            found = self._key_over(row, known)
            if found.values is not None:
                candidates = [place[value] for value in found.values if value in place]
                candidates += [place[None]] if found.null and None in place else []
            else:
                candidates = [at for at, value in enumerate(self.values) if at not in kept and found.holds(value)]
            for at in candidates:
                # What is known of the key itself, where conditions name the whole of it.
                alone = {**row, _KEY: single(self.values[at])}
                if at not in kept and (exact or all(possible(one, alone).holds(True) for one in in_key)):
                    kept.add(at)
            if len(kept) == len(self.values):
                break
        return kept


class _Test:
    """One condition, tried on many cells. Comparisons of one column with literals are the same for all values between
    two neighbouring literals, so that the result for one of them is remembered for the others."""

    def __init__(self, condition: Expr) -> None:
        self._condition = condition
        self._names = _names(condition)
        self._points: list[Any] | None = None
        self._remembered: dict[tuple[int, int], bool] = {}
        columns = {column.name: column for column in _columns(condition)}
        if len(columns) == 1 == len(self._names) and _compares_literals(condition):
            (column,) = columns.values()
            typed = (_typed(value, column.facts.type) for value in _literals(condition))
            self._points = sorted({point for point in typed if point is not None})

    def may_be_true(self, row: dict[str, Possible], known: dict[str, Any]) -> bool:
        """Whether the condition may be true in a row of cells; `known`: columns of which the cell is one value."""
        if not self._names <= known.keys():
            return possible(self._condition, row).holds(True)
        value = known[next(iter(self._names))] if self._points is not None else None
        if value is None or self._points is None:
            return evaluate(self._condition, known) is True
        between = (bisect_left(self._points, value), bisect_right(self._points, value))
        if between not in self._remembered:
            self._remembered[between] = evaluate(self._condition, known) is True
        return self._remembered[between]


def _compares_literals(condition: Expr) -> bool:
    """Whether a condition is made of comparisons of columns, as they are, with literals."""
    if not isinstance(condition, Call):
        return isinstance(condition, Literal)
    if condition.function in ("and", "or", "not"):
        return all(map(_compares_literals, condition.arguments))
    first, *others = condition.arguments
    if condition.function in ("eq", "ne", "lt", "le", "gt", "ge", "in") and isinstance(first, Literal):
        first, *others = [*others, first]
    return (
        condition.function in ("eq", "ne", "lt", "le", "gt", "ge", "in", "is_null")
        and isinstance(first, Column)
        and all(isinstance(other, Literal) for other in others)
    )


def _with_key(condition: Expr, key: Expr) -> Expr:
    """A condition with a column in place of the key."""
    if condition == key:
        return Column(_KEY, key.facts)
    if isinstance(condition, Call):
        parts = tuple(_with_key(argument, key) for argument in condition.arguments)
        return Call(condition.function, parts, condition.facts)
    return condition


def _cut(facts: Facts, literals: Iterable[Any], inside: bool) -> list[Possible]:
    """All that a column of a type can be, in cells; `inside`: what the policy names stands in cells of its own."""
    if facts.type is Type.BOOLEAN:
        return [*(single(value) for value in EITHER), single(None)]
    points = {typed for value in literals if (typed := _typed(value, facts.type)) is not None}
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
        if below is None or above is None or below <= above:
            cells.append(Possible(None, below, above, null=False))
    return cells


def _next(value: Any, way: int, type_: Type) -> Any:
    """The next value of the type, up or down; None (no end) beyond the calendar."""
    if type_ is Type.REAL:
        return math.nextafter(value, way * math.inf)
    try:
        return value + way * _STEPS[type_]
    except OverflowError:
        return None


def _typed(value: Any, type_: Type) -> Any:
    """A literal as a point of a column's type, None where it is none of it. A point between two others cuts there."""
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
    """The values that the policy names, or the points between its bounds: whole numbers, days."""
    if facts.values is not None:
        listed = facts.values[:MOST_POINTS]
        return {typed for value in listed if (typed := _typed(value, facts.type)) is not None}
    if facts.type.temporal and facts.bounded:
        return _days(facts.lower, facts.upper)
    size = facts.size()
    return set(facts.domain() or ()) if size is not None and size <= MOST_POINTS else set()


def _days(lower: Any, upper: Any) -> set[Any]:
    """The days (as the type of the bounds) of all years that two moments lie in."""
    first, last = truncated("year", lower), truncated("day", upper)
    if last.year < date.max.year:
        last = last.replace(year=last.year + 1, month=1, day=1)
    days = (last - first).days
    return {first + timedelta(days=at) for at in range(days + 1)} if days <= MOST_POINTS else set()


# --- parts of expressions ---------------------------------------------------------------------------------------------


def _columns(expression: Expr) -> Iterator[Column]:
    if isinstance(expression, Column):
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _columns(argument)


def _names(expression: Expr) -> set[str]:
    """Names of columns, and of values that are not released yet."""
    if isinstance(expression, ReleasedValue):
        return {_RESULT + expression.name}
    if isinstance(expression, Call):
        return set().union(*map(_names, expression.arguments))
    return {expression.name} if isinstance(expression, Column) else set()


def _literals(expression: Expr) -> Iterator[Any]:
    if isinstance(expression, Literal):
        yield evaluate(expression, {})
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _literals(argument)


def _calls(expression: Expr) -> int:
    return 1 + sum(map(_calls, expression.arguments)) if isinstance(expression, Call) else 0
