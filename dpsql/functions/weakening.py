"""Conditions of which a part is unknown, weakened: the result is true wherever the condition can be true.

Negations are pushed down to the atoms by De Morgan's laws, which hold in three-valued logic; AND and OR are monotone in "is
true", so an unknown atom may be replaced by TRUE there. Inside CASE, COALESCE, IS and comparisons of truth values that would be
wrong: there, the innermost unknown predicates become variables that are TRUE, FALSE or NULL, and equal predicates are one
variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dpsql.functions.evaluate import evaluate
from dpsql.functions.key_questions import Candidates, inside, reads_result, rewritten
from dpsql.functions.signatures import REGISTRY
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Expr, Literal, literal, names_read

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
    if not null and (names_read(expression) or reads_result(expression)):
        return expression
    return Literal(None if null else evaluate(expression, {}), expression.facts)
