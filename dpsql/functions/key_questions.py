"""Questions about public values: which values do expressions have over tables of candidates, in rows that satisfy conditions?

An engine computes them set-wise (`planning.planner`); small ones, and those for which there is no engine, are computed row
by row from the meaning of each function. Nothing in a question comes from protected rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import lru_cache
from itertools import chain, product
from math import prod
from typing import Any

from dpsql.functions.evaluate import evaluate
from dpsql.functions.public_domains import calls
from dpsql.functions.signatures import REGISTRY
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Expr, Literal, Relation, ReleasedValue, literal, names_read
from dpsql.storage.records import dataclass, field

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
        return len(self.rows) + (0 if self.span is None else len(self.span))

    def values(self) -> Iterator[tuple[Any, ...]]:
        return chain(self.rows, () if self.span is None else ((value,) for value in self.span))


@dataclass(frozen=True)
class ValueQuestion:
    """The different combinations of values of `keys`, over all combinations of candidates that satisfy all `conditions`."""

    keys: tuple[Expr, ...]
    tables: tuple[Candidates, ...]
    conditions: tuple[Expr, ...]

    @property
    def size(self) -> int:
        return prod(table.size for table in self.tables)

    @property
    def work(self) -> int:
        """Return the number of calls in all combinations."""
        return self.size * sum(1 + calls(part) for part in (*self.keys, *self.conditions))


Rows = tuple[tuple[Any, ...], ...]
Engine = Callable[[ValueQuestion], Rows]
"""Function that answers a question by an engine. Raises Unanswered."""


class Unanswered(Exception):
    """A question takes too much work, or an expression in it has no value that an engine could compute."""


@dataclass(frozen=True)
class PublicValues:
    """The way in which questions are answered: by `engine` (None: evaluated here). `functions`: the functions whose values the
    source's engine shares with it (None: all). `agreeing`: a function that counts in the source how many rows of a relation over
    public tables agree on columns, the most of them (None: nothing is counted)."""

    engine: Engine | None = None
    functions: frozenset[str] | None = None
    agreeing: Callable[[Relation, tuple[str, ...]], int] | None = None

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
        alike = self.functions is None or expression.function not in _OF_CASE or _is_ascii(expression)
        return alike and expression.function in listed and all(map(self.shares, expression.arguments))


_OF_CASE = ("lower", "upper", "ilike")
"""Functions that change letters, by other rules on other engines where these are beyond ASCII."""


def _is_ascii(expression: Expr) -> bool:
    """Return whether all texts that an expression reads are known, and none has a letter beyond ASCII."""
    if isinstance(expression, Call):
        return all(map(_is_ascii, expression.arguments))
    values = (expression.value,) if isinstance(expression, Literal) else expression.facts.values
    return expression.facts.type is not Type.TEXT or (
        values is not None and all(str(each).isascii() for each in values)
    )


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


# --- conditions of which a part is unknown, weakened ------------------------------------------------------------------
# The result is true wherever the condition can be true.
#
# Negations are pushed down to the atoms by De Morgan's laws, which hold in three-valued logic; AND and OR are monotone
# in "is true", so an unknown atom may be replaced by TRUE there. Inside CASE, COALESCE, IS and comparisons of truth
# values that would be wrong: there, the innermost unknown predicates become variables that are TRUE, FALSE or NULL, and
# equal predicates are one variable.

MOST_VARIABLES = 5
VARIABLE = "#truth "
"""Prefix of the names of variables."""
UNKNOWN = "#unknown "
"""Prefix of the name of a column where it is read in a way in which its candidates do not stand for it."""
_TWO_VALUED = frozenset(("is_null", "is_true", "is_false", "not_distinct"))
_MEETS_NULL = frozenset((
    "and", "or", "not", "is_null", "is_true", "is_false", "in", "not_distinct", "case", "coalesce", "nullif", "least",
    "greatest", "concat_ws",
))  # fmt: skip
"""Functions that may have a value although an argument is NULL."""
_TRUTH = Facts(Type.BOOLEAN)
TRUE = literal(True)


@dataclass
class Weakening:
    """Weakening of conditions in which what `is_unknown` says is unknown. `variables`: those introduced so far, by predicate.
    `believed`: predicates are NULL only where their facts say so, as in keys, which read no value outside its domain."""

    is_unknown: Callable[[Expr], bool]
    variables: dict[Expr, Column] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    believed: bool = False

    def tables(self) -> list[Candidates]:
        """Return the values of the variables."""
        values = ((True,), (False,), (None,))
        return [Candidates((name,), values[:size]) for name, size in self.sizes.items()]

    def weak(self, condition: Expr, negated: bool = False) -> Expr:
        """Return a condition that is true wherever `condition` (negated: NOT `condition`) can be true."""
        if isinstance(condition, Call):
            if condition.function == "not":
                return self.weak(condition.arguments[0], not negated)
            if condition.function in ("and", "or"):
                parts = tuple(self.weak(part, negated) for part in condition.arguments)
                return _joined("and" if (condition.function == "and") != negated else "or", parts)
            if condition.function == "is_true" and not negated:
                return self.weak(condition.arguments[0])
        if self.is_unknown(condition):
            if condition not in self.variables and _is_leaf(condition):
                return self._operands_present(condition)
            before = dict(self.variables), dict(self.sizes)
            condition = self.freed(condition)
            if self.is_unknown(condition) or len(self.variables) > MOST_VARIABLES:
                self.variables, self.sizes = before
                return TRUE
        return Call("not", (condition,), _TRUTH) if negated else condition

    def _operands_present(self, atom: Expr) -> Expr:
        """Return the condition that none of the known columns is NULL without which an unknown atom is neither true nor false."""
        columns = {column.name: column for column in _strictly_read(atom) if not self.is_unknown(column)}
        present = (Call("not", (Call("is_null", (column,), _TRUTH),), _TRUTH) for column in columns.values())
        return _joined("and", tuple(present))

    def freed(self, expression: Expr) -> Expr:
        """Return an expression in which unknown predicates are variables, the innermost ones if that leaves nothing unknown."""
        return rewritten(expression, self._freed)

    def _freed(self, part: Expr) -> Expr | None:
        if part.facts.type is not Type.BOOLEAN or isinstance(part, Literal) or not self.is_unknown(part):
            return None
        if not _is_leaf(part):
            before = dict(self.variables), dict(self.sizes)
            tried = inside(part, self._freed)
            if not self.is_unknown(tried):
                return tried
            self.variables, self.sizes = before
        if part not in self.variables:
            column = Column(f"{VARIABLE}{len(self.variables)}", _TRUTH)
            self.variables[part] = column
            two = isinstance(part, Call) and part.function in _TWO_VALUED
            self.sizes[column.name] = 2 if two or (self.believed and not part.facts.nullable) else 3
        return self.variables[part]


def _strictly_read(expression: Expr) -> Iterator[Column]:
    """Yield the columns without which an expression has no value."""
    if isinstance(expression, Column):
        yield Column(expression.name.removeprefix(UNKNOWN), expression.facts)
    elif isinstance(expression, Call) and (expression.function == "in" or expression.function not in _MEETS_NULL):
        arguments = expression.arguments[:1] if expression.function == "in" else expression.arguments
        for argument in arguments:
            yield from _strictly_read(argument)


def _is_leaf(expression: Expr) -> bool:
    """Return whether no predicate is inside `expression`."""
    if not isinstance(expression, Call):
        return True
    return not any(map(_holds_predicate, expression.arguments))


def _holds_predicate(expression: Expr) -> bool:
    if isinstance(expression, Literal):
        return False
    if expression.facts.type is Type.BOOLEAN:
        return True
    return isinstance(expression, Call) and any(map(_holds_predicate, expression.arguments))


def _joined(function: str, parts: tuple[Expr, ...]) -> Expr:
    deciding = function == "or"
    undecided = tuple(part for part in parts if part != TRUE)
    if len(undecided) < len(parts) and deciding:
        return TRUE
    if len(undecided) < 2:
        return undecided[0] if undecided else TRUE
    return Call(function, undecided, _TRUTH)


def _is_null(expression: Expr) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def folded(expression: Expr) -> Expr:
    """Return an expression in which calls of constants, and calls that are NULL whatever their columns, are constants."""
    if not isinstance(expression, Call) or expression.function not in REGISTRY:
        return expression
    arguments = tuple(map(folded, expression.arguments))
    if any(new is not old for new, old in zip(arguments, expression.arguments, strict=True)):
        expression = Call(expression.function, arguments, expression.facts)
    null = expression.function not in _MEETS_NULL and any(map(_is_null, arguments))
    null |= expression.function == "in" and all(_is_null(item) for item in arguments[1:])
    if not null and not all(isinstance(part, Literal) for part in arguments):
        return expression
    return Literal(None if null else evaluate(expression, {}), expression.facts)
