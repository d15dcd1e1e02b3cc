"""Questions about public values: which values do expressions have over tables of candidates, in rows that satisfy conditions?

An engine computes them set-wise (`planning.planner`); small ones, and those for which there is no engine, are computed row
by row from the meaning of each function. Nothing in a question comes from protected rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from itertools import chain, product
from math import prod
from typing import Any

from dpsql.functions.evaluate import evaluate
from dpsql.functions.signatures import REGISTRY
from dpsql.plan.plan import Call, Expr, ReleasedValue, names_read

MOST_ASKED = 5_000_000
"""Largest number of combinations of candidates in one question."""
MOST_EVALUATED = 20_000
"""Largest number of calls that are evaluated where there is no engine to ask."""
FEW = 1_000
"""Questions with at most this many calls are evaluated here: an engine takes longer to read its text."""


@dataclass(frozen=True)
class Span:
    """All integers or days from `first` to `last`."""

    first: Any
    last: Any

    def __len__(self) -> int:
        days = isinstance(self.first, date)
        return int((self.last - self.first).days if days else self.last - self.first) + 1

    def __iter__(self) -> Iterator[Any]:
        step = timedelta(days=1) if isinstance(self.first, date) else 1
        return (self.first + index * step for index in range(len(self)))


@dataclass(frozen=True)
class Candidates:
    """Rows of public values: `names` of its columns; `rows`, and for a single column all values of `span`."""

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    span: Span | None = None

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.rows) + (0 if self.span is None else len(self.span))

    def values(self) -> Iterator[tuple[Any, ...]]:
        """Return all rows."""
        return chain(self.rows, () if self.span is None else ((value,) for value in self.span))


@dataclass(frozen=True)
class ValueQuestion:
    """The different combinations of values of `keys`, over all combinations of candidates that satisfy all `conditions`."""

    keys: tuple[Expr, ...]
    tables: tuple[Candidates, ...]
    conditions: tuple[Expr, ...]

    @property
    def size(self) -> int:
        """Return the number of combinations of candidates."""
        return prod(table.size for table in self.tables)

    @property
    def work(self) -> int:
        """Return the number of calls in all combinations."""
        return self.size * sum(1 + _calls(part) for part in (*self.keys, *self.conditions))


Rows = tuple[tuple[Any, ...], ...]
Engine = Callable[[ValueQuestion], Rows]
"""Function that answers a question by an engine. Raises Unanswered."""


class Unanswered(Exception):
    """A question takes too much work, or an expression in it has no value that an engine could compute."""


@dataclass(frozen=True)
class PublicValues:
    """The way in which questions are answered: by `engine` (None: evaluated here). `functions`: the functions whose values the
    source's engine shares with it (None: all)."""

    engine: Engine | None = None
    functions: frozenset[str] | None = None

    def rows(self, question: ValueQuestion) -> Rows:
        """Return the combinations of the keys' values, each once. Raises Unanswered."""
        if question.work <= FEW or (self.engine is None and question.work <= MOST_EVALUATED):
            return _evaluated(question)
        if self.engine is None or question.size > MOST_ASKED:
            raise Unanswered
        return self.engine(question)

    def shares(self, expression: Expr) -> bool:
        """Return whether an expression has a value for each row, and the source's engine computes the same one."""
        if not isinstance(expression, Call):
            return True
        listed = REGISTRY if self.functions is None else self.functions
        return expression.function in listed and all(map(self.shares, expression.arguments))


EVALUATED = PublicValues()


@lru_cache(maxsize=256)
def _evaluated(question: ValueQuestion) -> Rows:
    names = [name for table in question.tables for name in table.names]
    combinations: dict[tuple[Any, ...], None] = {}
    for rows in product(*(list(table.values()) for table in question.tables)):
        row = dict(zip(names, chain.from_iterable(rows), strict=True))
        if all(evaluate(condition, row) is True for condition in question.conditions):
            combinations[tuple(evaluate(key, row) for key in question.keys)] = None
    return tuple(combinations)


def _calls(expression: Expr) -> int:
    return 1 + sum(map(_calls, expression.arguments)) if isinstance(expression, Call) else 0


# --- parts of expressions ---------------------------------------------------------------------------------------------


def reads_result(expression: Expr) -> bool:
    """Return whether an expression reads a value that is not released yet."""
    if isinstance(expression, Call):
        return any(map(reads_result, expression.arguments))
    return isinstance(expression, ReleasedValue)


def is_result(expression: Expr) -> bool:
    """Return whether an expression is made of results and constants alone, so that it is the same for every row."""
    return reads_result(expression) and not names_read(expression)


def rewritten(expression: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Return an expression in which every topmost part for which `change` returns something is replaced by that."""
    new = change(expression)
    if new is not None:
        return new
    return inside(expression, change)


def inside(expression: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Return an expression with the parts of its arguments `rewritten`."""
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(rewritten(argument, change) for argument in expression.arguments)
    if all(new is old for new, old in zip(arguments, expression.arguments, strict=True)):
        return expression
    return Call(expression.function, arguments, expression.facts)
