"""Rows that conditions leave, distinguished only as far as keys need: a small join over cells of columns and public rows.

A row of the search represents many rows of the data: for some columns it has the value, for others a cell. Columns are bound one
after the other, conditions are tested as soon as their columns are bound, and columns that nothing needs are then dropped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from operator import itemgetter
from types import NoneType
from typing import Any

from dpsql.functions.column_cells import typed
from dpsql.functions.evaluate import evaluate
from dpsql.functions.possible_values import Possible, possible, single
from dpsql.plan.plan import Call, Column, Expr, Literal, ReleasedValue

MOST_WORK = 20_000
"""Largest number of evaluated calls in one search. If it takes more, less is considered, and more keys may remain."""
MOST_PUBLIC_WORK = 60_000
_RESULT = "#result "


class TooMany(Exception):
    """A search takes more work than it may."""


@dataclass(frozen=True)
class Row:
    """One row of the search. `values`: of columns with a single value; `cells`: of other columns. `named`: the policy names all
    these values and cells."""

    values: Mapping[str, Any] = field(default_factory=dict)
    cells: Mapping[str, Possible] = field(default_factory=dict)
    named: bool = True

    def image(self, expression: Expr) -> Possible:
        """Return the values that an expression may have in this row."""
        names = names_of(expression)
        if names <= self.values.keys():
            return single(evaluate(expression, self.values))
        cells = {name: single(self.values[name]) for name in names & self.values.keys()}
        return possible(expression, {**cells, **self.cells})

    @property
    def is_first(self) -> bool:
        """Return whether nothing is bound yet, so that a join with another row is that row."""
        return self.named and not self.values and not self.cells

    def joined_with(self, other: Row) -> Row:
        """Return the combination of two rows without a common column."""
        return Row({**self.values, **other.values}, {**self.cells, **other.cells}, self.named and other.named)

    def has(self, expression: Expr) -> bool:
        """Return whether the row has a single value for every column of an expression."""
        return names_of(expression) <= self.values.keys()


def cell_row(name: str, cell: Possible, named: bool = True) -> Row:
    """Return a row of one column."""
    values = cell.values
    if values is not None and len(values) + cell.null == 1:
        return Row({name: next(iter(values), None)}, {}, named)
    return Row({}, {name: cell}, named)


@dataclass(frozen=True)
class Variable:
    """Columns that are bound together, and the rows that they may form."""

    names: frozenset[str]
    rows: Sequence[Row]


@dataclass(frozen=True)
class ListedTable:
    """A scan of a public table whose rows are all known: its base columns, and their values in each row."""

    names: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def distinct(self, names: Container[str]) -> tuple[list[str], Mapping[tuple[Any, ...], None]]:
        """Return the columns that are among `names`, and their distinct combinations of values."""
        places = [place for place, name in enumerate(self.names) if name in names]
        pick = itemgetter(*places) if len(places) > 1 else lambda row: tuple(row[place] for place in places)
        return [self.names[place] for place in places], dict.fromkeys(map(pick, self.rows))


class SearchBudget:
    """Counter of the evaluations that a search may still do."""

    def __init__(self, most: int) -> None:
        self._left = most

    def spend(self, work: int) -> None:
        """Subtract `work` from the rest; raise TooMany if more was done than is allowed."""
        self._left -= work
        if self._left < 0:
            raise TooMany


def search(
    variables: Sequence[Variable], conditions: Sequence[Expr], needed: frozenset[str], budget: SearchBudget
) -> list[Row]:
    """Return the rows over all variables that may satisfy the conditions, reduced to the columns `needed`, each once. Columns of
    no variable may have any value. Raises TooMany beyond the budget."""
    every = frozenset[str]().union(*(variable.names for variable in variables))
    pending = [_Test(condition, every) for condition in conditions]
    left = [_filtered(variable, pending, budget) for variable in variables]
    pending = [test for test in pending if not any(test.bound <= variable.names for variable in variables)]
    rows, bound = [Row()], frozenset[str]()
    while left:
        chosen = min(left, key=lambda variable: (not _linked(variable, bound, pending), len(variable.rows)))
        left.remove(chosen)
        bound |= chosen.names
        due = [test for test in pending if test.bound <= bound]
        pending = [test for test in pending if not test.bound <= bound]
        rows = _paired(rows, chosen, due, budget)
        bound &= needed.union(*(test.bound for test in pending))
        rows = _distinct(rows, bound)
    return rows


def _linked(variable: Variable, bound: frozenset[str], pending: Sequence[_Test]) -> bool:
    return any(test.bound & bound and test.bound & variable.names for test in pending)


def _filtered(variable: Variable, tests: Iterable[_Test], budget: SearchBudget) -> Variable:
    """Return a variable with only the rows that may satisfy the conditions on that variable alone."""
    rows: Sequence[Row] = variable.rows
    for test in tests:
        if test.bound <= variable.names and test.bound:
            budget.spend(len(rows) * test.work)
            rows = [row for row in rows if test.may_be_true(row)]
    return Variable(variable.names, rows)


def _paired(rows: list[Row], variable: Variable, tests: list[_Test], budget: SearchBudget) -> list[Row]:
    """Pair each row with each row of `variable` for which all conditions on both may be true."""
    partners, work = _partners(variable, tests), 1 + sum(test.work for test in tests)
    if partners is None:
        budget.spend(len(rows) * len(variable.rows) * work)
    pairs = []
    for row in rows:
        candidates = variable.rows if partners is None else partners(row)
        if partners is not None:
            budget.spend(len(candidates) * work)
        for other in candidates:
            both = other if row.is_first else row.joined_with(other)
            if all(test.may_be_true(both) for test in tests):
                pairs.append(both)
    return pairs


def _partners(variable: Variable, tests: list[_Test]) -> Callable[[Row], Sequence[Row]] | None:
    """Return a function from a row to the rows of a variable with which it may be paired: those with an equal value, if a
    condition demands that. None: all rows."""
    for test in tests:
        mine, other = test.equal(variable.names)
        if mine is None or other is None or not all(mine in row.values for row in variable.rows):
            continue
        by_value: dict[Any, list[Row]] = {}
        for row in variable.rows:
            by_value.setdefault(row.values[mine], []).append(row)
        name, index = other, by_value
        return lambda row: index.get(row.values[name], []) if name in row.values else variable.rows
    return None


def _distinct(rows: Sequence[Row], names: frozenset[str]) -> list[Row]:
    """Return the rows reduced to the columns `names`, each once."""
    order = sorted(names)
    distinct_rows: dict[Any, Row] = {}
    for row in rows:
        whole = not row.cells and row.values.keys() >= names
        # The two kinds of marks differ in length, which is 2 or odd.
        mark: Any = (
            (tuple(map(row.values.__getitem__, order)), row.named)
            if whole
            else (*map(row.values.get, order), *map(row.cells.get, order), row.named)
        )
        if mark in distinct_rows:
            continue
        if whole and len(row.values) == len(order):
            distinct_rows[mark] = row
            continue
        values = {name: row.values[name] for name in order if name in row.values}
        distinct_rows[mark] = Row(values, {name: row.cells[name] for name in order if name in row.cells}, row.named)
    return list(distinct_rows.values())


class _Test:
    """One condition, tested on many rows. A column that equals itself is not NULL. Comparisons of one column with literals have
    the same result for all values between two neighbouring literals, so one result is stored for all of them, provided that
    every literal is a point of the column's type (TRUE, infinity and NaN are not) and the value is ordered (NaN is not)."""

    def __init__(self, condition: Expr, every: frozenset[str]) -> None:
        self._condition = condition
        self._names = names_of(condition)
        self.bound = frozenset(self._names & every)
        self.work = max(1, calls(condition))
        self._points: list[Any] | None = None
        self._remembered: dict[tuple[int, int], bool] = {}
        self._by_value: dict[tuple[type, Any], bool] = {}
        pair = equal_columns(condition)
        self._present = pair[0].name if pair is not None and pair[0].name == pair[1].name else None
        columns = {column.name: column for column in columns_of(condition)}
        if len(columns) == 1 == len(self._names) and compares_literals(condition):
            (column,) = columns.values()
            literals = {value for value in literals_of(condition) if value is not None}
            points = {typed(value, column.facts.type) for value in literals}
            self._points = None if None in points else sorted(points)

    def may_be_true(self, row: Row) -> bool:
        """Return whether the condition may be true in a row."""
        if not self._names <= row.values.keys():
            return row.image(self._condition).holds(True)
        if self._present is not None:
            return row.values[self._present] is not None
        if len(self._names) != 1:
            return evaluate(self._condition, row.values) is True
        value = row.values[next(iter(self._names))]
        if value is None or value != value or self._points is None:
            return self._of_value(value, row)
        between = (bisect_left(self._points, value), bisect_right(self._points, value))
        if between not in self._remembered:
            self._remembered[between] = evaluate(self._condition, row.values) is True
        return self._remembered[between]

    def _of_value(self, value: Any, row: Row) -> bool:
        """Return whether the condition is true for `value` of its only column, which `row` has. The result is stored for types
        whose equal values give equal results in every function; for -0.0 and 0.0 that is not so."""
        if type(value) not in (str, int, bool, date, NoneType):
            return evaluate(self._condition, row.values) is True
        key = (type(value), value)
        if key not in self._by_value:
            self._by_value[key] = evaluate(self._condition, row.values) is True
        return self._by_value[key]

    def equal(self, names: frozenset[str]) -> tuple[str | None, str | None]:
        """Return a column of `names` and another column of its type that the condition equates; (None, None) if there is none."""
        pair = equal_columns(self._condition)
        if pair is None:
            return None, None
        a, b = (column.name for column in pair)
        if a in names and b not in names:
            return a, b
        return (b, a) if b in names and a not in names else (None, None)


def equal_columns(condition: Expr) -> tuple[Column, Column] | None:
    """Return the two columns of the same type that a condition sets equal, so that their values are identical bit by bit."""
    if not isinstance(condition, Call) or condition.function != "eq":
        return None
    a, b = condition.arguments
    alike = isinstance(a, Column) and isinstance(b, Column) and a.facts.type is b.facts.type
    return (a, b) if alike and a.facts.type.value not in ("real", "null") else None  # type: ignore[return-value]


def compares_literals(condition: Expr) -> bool:
    """Return whether a condition consists of comparisons of plain columns with literals."""
    if not isinstance(condition, Call):
        return isinstance(condition, Literal)
    if condition.function in ("and", "or", "not"):
        return all(map(compares_literals, condition.arguments))
    first, *rest = condition.arguments
    if condition.function in ("eq", "ne", "lt", "le", "gt", "ge", "in") and isinstance(first, Literal):
        first, *rest = [*rest, first]
    return (
        condition.function in ("eq", "ne", "lt", "le", "gt", "ge", "in", "is_null")
        and isinstance(first, Column)
        and all(isinstance(other, Literal) for other in rest)
    )


# --- parts of expressions ---------------------------------------------------------------------------------------------


def columns_of(expression: Expr) -> Iterator[Column]:
    """Yield the columns of an expression, repeated ones as well."""
    if isinstance(expression, Column):
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from columns_of(argument)


def names_of(expression: Expr) -> set[str]:
    """Return the names of an expression's columns, and of its values that have not been released yet."""
    if isinstance(expression, ReleasedValue):
        return {_RESULT + expression.name}
    if isinstance(expression, Call):
        return set().union(*map(names_of, expression.arguments))
    return {expression.name} if isinstance(expression, Column) else set()


def literals_of(expression: Expr) -> Iterator[Any]:
    """Yield the values of the literals of an expression."""
    if isinstance(expression, Literal):
        yield evaluate(expression, {})
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from literals_of(argument)


def calls(expression: Expr) -> int:
    """Return the number of function calls in an expression."""
    return 1 + sum(map(calls, expression.arguments)) if isinstance(expression, Call) else 0
