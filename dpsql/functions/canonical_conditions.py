"""One form for expressions that mean the same: `3 < x`, `x >= 4`, `NOT x <= 3`; `x = 1 OR x = 2`, `x IN (2, 1)`; `1 = 1 AND c`;
`a + b`, `b + a`; COALESCE and CASE WHEN x IS NULL.

People and tools write the same filter in many ways: around every condition, in the order of clicks, with parameters of other
types. In one form the query equals the one that was asked before, and is free. An expression and its form have the same value for
every row (NULL, NaN, the largest integer): sums are turned and never grouped anew, because a part of them may overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from fractions import Fraction
from itertools import zip_longest
from math import ceil, floor
from typing import Any

from dpsql.functions.evaluate import evaluate
from dpsql.functions.public_domains import labelled_column
from dpsql.functions.signatures import REGISTRY, call, formed_once
from dpsql.functions.text import MOST_PARTS
from dpsql.functions.written_times import day_of_moment, part_of_day
from dpsql.plan.canonical_text import canonical_text
from dpsql.plan.intervals import Type
from dpsql.plan.plan import (
    Call,
    Expr,
    Filter,
    Join,
    Key,
    Literal,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    Union_,
    columns_read,
    filled,
    literal,
    results_read,
)
from dpsql.plan.stability import conjuncts, flat
from dpsql.storage.records import replace

_MIRRORED = {"eq": "eq", "ne": "ne", "not_distinct": "not_distinct", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "and": "or", "or": "and"}
_EQUATING = ("eq", "ne", "not_distinct")
_FOUND = {("ge", 1): True, ("gt", 0): True, ("ne", 0): True, ("eq", 0): False, ("le", 0): False, ("lt", 1): False}
"""Comparisons of strpos(t, u) that say whether u is in t."""
_TESTS = frozenset((*_MIRRORED, "in", "is_null", "is_true", "is_false"))
FOLDED = (Type.TEXT, Type.INTEGER, Type.DATE, Type.TIMESTAMP)
"""Types of constants that are computed here. Reals are not: engines may differ from Python in their last bit."""
NO_VALUE = literal(None)
_TRUTHS = (literal(True), literal(False))
_NUMBERED = {"%Y": "year", "%m": "month", "%d": "day"}
EXACT_REALS = 2**52
"""Smaller doubles are compared exactly with every integer of 64 bits, although that is cast to a double."""


def in_canonical_form(part: Any) -> Any:
    """Return a part of a plan, such as a relation, with every expression in its canonical form; itself if nothing changes."""
    return filled(part, _Forms())


def filter_condition(condition: Expr) -> Expr:
    """Return the canonical form of a condition that decides which rows stay, so that FALSE and NULL mean the same. A condition
    whose parts exclude each other is FALSE."""
    forms = vars(condition)  # binding asks for the form of one condition several times
    if "#filter" not in forms:
        canonical = _where_true(canonical_condition(condition))
        form = literal(False) if _is_excluded((canonical,)) else canonical
        forms["#filter"] = None if form is condition else form
    return forms["#filter"] or condition


def has_no_rows(relation: Relation) -> bool:
    """Return whether a relation with canonical conditions has no rows, whatever the data are."""
    if isinstance(relation, Union_):
        return all(map(has_no_rows, relation.sources))
    if isinstance(relation, Join):
        return has_no_rows(relation.left) or (relation.kind == "inner" and has_no_rows(relation.right))
    if isinstance(relation, SemiJoin):
        unmatched = _is_false(relation.condition) or has_no_rows(relation.right)
        return has_no_rows(relation.left) or (unmatched and not relation.negated)
    if isinstance(relation, (Scan, ReleasedRows)):
        return False
    conditions: list[Expr] = []
    inner: Relation = relation
    while isinstance(inner, Filter):
        conditions.append(inner.predicate)
        inner = inner.source
    return _is_excluded(conditions) or has_no_rows(inner if conditions else relation.source)


_MOST_TRIED = 10_000


def leave_no_value(source: Relation, keys: Iterable[Key]) -> bool:
    """Return whether a condition on one key, with a value that was looked up in public rows, is true for none of its values;
    False beyond `_MOST_TRIED` values."""
    listed = {key.expression: key.values for key in keys}
    left = _MOST_TRIED
    while isinstance(source, Filter):
        for part in conjuncts(source.predicate):
            read = set(columns_read(part))
            column = read.pop() if len(read) == 1 and not results_read(part) else None
            values = None if column is None else listed.get(column)
            if column is None or values is None or (left := left - len(values)) < 0:
                continue
            if not any(evaluate(part, {column.name: value}) for value in values):
                return True
        source = source.source
    return False


@formed_once
def canonical_condition(condition: Expr) -> Expr:
    """Return the canonical form of a condition; its value (true, false or NULL) is the same on every row.

    Constants are evaluated. Parts of AND and OR that have no effect are dropped, and the others are sorted. NOT stands only
    before what has no opposite. A literal stands on the right of a comparison. Whole numbers and dates are compared with
    literals by `=`, `<>`, `<=` and `>=`. Several equalities of one operand are one IN with a sorted list. See `_FORMS` too.
    A column as a key with a label (`as_key`) is left as it is, by which it is known.
    """
    if not isinstance(condition, Call) or labelled_column(condition) is not None:
        return condition
    word = condition.function
    if word in ("and", "or"):
        return _joined(word, condition)
    if word == "not":
        return _negated(canonical_condition(condition.arguments[0]), condition)
    arguments = tuple(map(canonical_condition, condition.arguments))
    if word not in REGISTRY:
        return condition  # statistics of samples, which only their aggregates have
    if any(a is not b for a, b in zip(arguments, condition.arguments, strict=True)):
        condition = call(word, *arguments)
    if (word in _TESTS or condition.facts.type in FOLDED) and all(isinstance(p, Literal) for p in condition.arguments):
        constant = literal(evaluate(condition, {}))
        return constant if word in _TESTS or constant != NO_VALUE else condition
    form = _FORMS.get(word)
    if form is None:
        return condition
    after = form(condition)
    # What does not change is not built again; an expression of another type is none that means the same.
    return condition if after == condition or after.facts.type is not condition.facts.type else after


def _negated(inner: Expr, negation: Call) -> Expr:
    """Return the canonical form of NOT `inner`, which is canonical itself."""
    if isinstance(inner, Literal):
        return literal(None if inner.value is None else not inner.value)
    if isinstance(inner, Call):
        if inner.function == "not":
            return inner.arguments[0]
        if inner.function in ("and", "or"):
            parts = tuple(_negated(part, call("not", part)) for part in inner.arguments)
            return _joined(_OPPOSITE[inner.function], call(_OPPOSITE[inner.function], *parts))
        if inner.function in _OPPOSITE:
            return canonical_condition(call(_OPPOSITE[inner.function], *inner.arguments))
    return negation if inner is negation.arguments[0] else call("not", inner)


def _joined(word: str, condition: Call) -> Expr:
    """Return the canonical form of AND or OR. A constant that decides the whole is the whole."""
    deciding = word == "or"
    undecided: dict[str, Expr] = {}
    for part in flat(word, map(canonical_condition, condition.arguments)):
        value = part.value if isinstance(part, Literal) else None
        if value is deciding:
            return literal(deciding)
        if value is None:
            undecided.setdefault(canonical_text(part), part)
    undecided = _with_lists(word, undecided)
    parts = tuple(undecided[text] for text in sorted(undecided))
    if len(parts) < 2:
        return parts[0] if parts else literal(not deciding)
    same = len(parts) == len(condition.arguments) and all(
        a is b for a, b in zip(parts, condition.arguments, strict=True)
    )
    return condition if same else call(word, *parts)


def _with_lists(word: str, parts: dict[str, Expr]) -> dict[str, Expr]:
    """Return the parts of OR with one IN for all equalities of one operand with literals; of AND alike, with NOT IN."""
    lists: dict[str, dict[str, Call]] = {}
    for text, part in parts.items():
        equality = part if word == "or" else _without_not(part)
        if isinstance(equality, Call) and equality.function in ("eq", "in"):
            operand, *literals = equality.arguments
            if all(isinstance(literal, Literal) for literal in literals) and not _as_doubles(operand, literals):
                lists.setdefault(canonical_text(operand), {})[text] = equality
    several = [equalities for equalities in lists.values() if len(equalities) > 1]
    left = {text: part for text, part in parts.items() if not any(text in equalities for equalities in several)}
    for equalities in several:
        operand = next(iter(equalities.values())).arguments[0]
        listed = _listed(call("in", operand, *(item for each in equalities.values() for item in each.arguments[1:])))
        part = listed if word == "or" else _negated(listed, call("not", listed))
        left[canonical_text(part)] = part
    return left


def _as_doubles(operand: Expr, literals: Iterable[Expr]) -> bool:
    """Return whether the engine compares whole numbers with one of these literals, and so with a whole list, as doubles."""
    return operand.facts.type is Type.INTEGER and any(
        not isinstance(_as_compared(operand, literal).value, int | None) for literal in literals
    )


def _without_not(part: Expr) -> Expr | None:
    """Return the equality of which a condition is the opposite; None for any other condition."""
    if isinstance(part, Call) and part.function == "not":
        return part.arguments[0]
    return call("eq", *part.arguments) if isinstance(part, Call) and part.function == "ne" else None


def _listed(condition: Call) -> Expr:
    """Return x IN (literals) with each literal once, in the order of their texts; of one literal x = literal."""
    operand, *items = condition.arguments
    if operand.facts.type is Type.BOOLEAN:
        return _joined("or", call("or", *(call("eq", operand, item) for item in items)))
    literals = (_as_compared(operand, item) for item in items)
    once = {canonical_text(item): item for item in literals}
    listed = [once[text] for text in sorted(once)]
    return _comparison(call("eq", operand, *listed)) if len(listed) == 1 else call("in", operand, *listed)


def _comparison(condition: Call) -> Expr:
    word, (left, right) = condition.function, condition.arguments
    if isinstance(left, Literal) or (not isinstance(right, Literal) and _is_turned(word, left, right)):
        word, left, right = _MIRRORED[word], right, left
    if not isinstance(right, Literal):
        return call(word, left, right)
    if isinstance(left, Call) and left.function == "case":
        *branches, other = left.arguments
        results = [*branches[1::2], other]
        if all(isinstance(result, Literal) for result in results):
            compared = [literal(evaluate(call(word, result, right), {})) for result in results]
            pairs = zip(branches[::2], compared[:-1], strict=True)
            return _chosen(_case(pairs, compared[-1]))
    if isinstance(right.value, bool) and left.facts.type is Type.BOOLEAN and word in ("eq", "ne"):
        return left if right.value is (word == "eq") else canonical_condition(call("not", left))
    right = _as_compared(left, right)
    bound, type_ = right.value, left.facts.type
    if (
        isinstance(left, Call)
        and left.function == "strpos"
        and (word, bound) in _FOUND
        and is_present(left.arguments[1])
    ):
        contained = call("contains", *left.arguments)
        return contained if _FOUND[word, bound] else call("not", contained)
    if word in _EQUATING:
        return call(word, left, right)
    rises = word in ("ge", "gt")
    if type_ is Type.INTEGER and _is_real(bound):  # it is no whole number
        return call("ge" if rises else "le", left, literal(ceil(bound) if rises else floor(bound)))
    if word in ("gt", "lt"):
        if type_ is Type.INTEGER and type(bound) is int and abs(bound) < 2**63 - 1:
            return call("ge" if rises else "le", left, literal(bound + (1 if rises else -1)))
        if type_ is Type.DATE and type(bound) is date and date.min < bound < date.max:
            return call("ge" if rises else "le", left, literal(bound + timedelta(days=1 if rises else -1)))
    return call(word, left, right)


def _is_turned(word: str, left: Expr, right: Expr) -> bool:
    """Return whether a comparison without a literal is the mirrored form of its canonical one."""
    return word in ("gt", "ge") or (word in _EQUATING and canonical_text(right) < canonical_text(left))


def _as_compared(operand: Expr, compared: Expr) -> Literal:
    """Return a number in the type of the operand with which it is compared, where that changes no comparison."""
    assert isinstance(compared, Literal)
    value, type_ = compared.value, operand.facts.type
    if type_ is Type.INTEGER and _is_real(value):
        double = Fraction(float(value))  # the value that the engine compares
        return literal(int(double) if double.denominator == 1 else double)
    if type_ is Type.REAL and type(value) is int and abs(value) < EXACT_REALS:
        return literal(Fraction(value))
    return compared


def _is_real(value: Any) -> bool:
    return isinstance(value, Fraction) and abs(value) < EXACT_REALS


def _where_true(condition: Expr) -> Expr:
    """Return a condition that is true on the same rows, without IS TRUE or IS FALSE around it or around parts of its ANDs and
    ORs, and without IS NOT NULL beside a part that is never true for NULL; FALSE for what is NULL on all rows."""
    if not isinstance(condition, Call):
        return condition
    if NO_VALUE in needed(condition):
        return literal(False)
    if condition.function in ("is_true", "is_false"):
        (tested,) = condition.arguments
        return filter_condition(tested if condition.function == "is_true" else call("not", tested))
    if condition.function == "not_distinct" and is_present(condition.arguments[1]):
        return filter_condition(call("eq", *condition.arguments))
    if condition.function == "case" and NO_VALUE in condition.arguments[1::2] + condition.arguments[-1:]:
        return filter_condition(
            call("case", *(_TRUTHS[1] if part == NO_VALUE else part for part in condition.arguments))
        )
    if condition.function == "in" and NO_VALUE in condition.arguments:
        return filter_condition(call("in", *(part for part in condition.arguments if part != NO_VALUE)))
    if condition.function in ("and", "or"):
        parts = tuple(map(_where_true, condition.arguments))
        if condition.function == "and":
            parts = _without_presence(parts)
        if any(a is not b for a, b in zip_longest(parts, condition.arguments)):
            return filter_condition(call(condition.function, *parts) if len(parts) > 1 else parts[0])
    return condition


def _without_presence(parts: tuple[Expr, ...]) -> tuple[Expr, ...]:
    tests = {part: tested for part in parts if (tested := tested_for_null(part)) is not None}
    if not tests:
        return parts
    read = {value for part in parts if part not in tests for value in needed(part)}
    return tuple(part for part in parts if part not in tests or tests[part] not in read)


def tested_for_null(part: Expr) -> Expr | None:
    """Return x of `x IS NOT NULL`; None for other conditions."""
    test = _without_not(part)
    return test.arguments[0] if isinstance(test, Call) and test.function == "is_null" else None


def needed(part: Expr) -> Iterator[Expr]:
    """Yield an expression, and its parts without which it is NULL."""
    yield part
    if not isinstance(part, Call):
        return
    function = REGISTRY.get(part.function)
    if part.function == "in":  # its items are constants
        yield from needed(part.arguments[0])
    elif function is not None and function.meaning is not None:  # it is NULL for a NULL argument
        for argument in part.arguments:
            yield from needed(argument)


class _Forms:
    """Canonical forms of the parts of a plan, without conditions that are always true, for `filled`, which continues inside parts
    that are returned unchanged."""

    def __init__(self) -> None:
        self._formed: dict[int, Expr] = {}
        """Expressions in their form by identity, so that their parts are not judged again."""

    def __call__(self, part: Any) -> Any:
        if isinstance(part, Call):
            if id(part) in self._formed:
                return part
            return self._noted(canonical_condition(part))
        if isinstance(part, Filter):
            predicate = self._noted(filter_condition(part.predicate))
            if _is_true(predicate):
                return filled(part.source, self)
            return part if predicate is part.predicate else Filter(filled(part.source, self), predicate)
        if isinstance(part, SemiJoin) and part.condition is not None:
            condition = self._noted(filter_condition(part.condition))
            if condition is not part.condition:
                return filled(replace(part, condition=None if _is_true(condition) else condition), self)
        return part

    def _noted(self, form: Expr) -> Expr:
        waiting = [form]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Call) and id(part) not in self._formed:
                self._formed[id(part)] = part
                waiting += part.arguments
        return form


def _is_true(condition: Expr) -> bool:
    return isinstance(condition, Literal) and condition.value is True


def _is_false(condition: Expr | None) -> bool:
    return isinstance(condition, Literal) and not condition.value


# --- Forms of other expressions ---


def is_present(value: Expr) -> bool:
    return isinstance(value, Literal) and value.value is not None


def _never_null(value: Expr) -> bool:
    """Return whether a value is never NULL, whatever is stored: numbers beyond their bounds may overflow, and a column may have
    NULL although the policy says that it has none."""
    if isinstance(value, Call):
        return value.function in ("is_null", "is_true", "is_false", "not_distinct") or (
            value.function in ("and", "or", "not", "in", "like", "ilike", *_MIRRORED)
            and all(map(_never_null, value.arguments))
        )
    return is_present(value)


def _in_any_order(value: Call) -> Expr:
    """Return a sum, a product, LEAST or GREATEST with its arguments in the order of their texts, constants last. LEAST of 0.0 and
    -0.0 is the first of them."""
    if value.function in ("least", "greatest") and value.facts.type is Type.REAL:
        return value
    ordered = sorted(value.arguments, key=lambda part: (isinstance(part, Literal), canonical_text(part)))
    word, last = value.function, ordered[-1]
    for factor, other in (ordered, ordered[::-1]) if word == "mul" else ():
        if isinstance(factor, Literal) and factor.value == 1:
            return other if value.facts.type is other.facts.type else call("to_real", other)
    if word == "add" and isinstance(last, Literal) and last.value is not None and -(2**62) < last.value < 0:
        return call("sub", ordered[0], literal(-last.value))
    return call(word, *ordered)


def _quotient(value: Call) -> Expr:
    """Return `x / 10.0` as x / 10: both divide real numbers."""
    left, right = value.arguments
    whole = isinstance(right, Literal) and _is_real(right.value) and right.value.denominator == 1
    return call("div", left, literal(int(right.value))) if whole and isinstance(right, Literal) else value


def _rounded(value: Call) -> Expr:
    return call("round", value.arguments[0]) if value.arguments[1:] == (literal(0),) else value


def _difference(value: Call) -> Expr:
    left, right = value.arguments
    if isinstance(right, Literal) and right.value is not None and -(2**62) < right.value < 0:
        return _in_any_order(call("add", left, literal(-right.value)))
    return value


def _first_value(value: Call) -> Expr:
    """Return the form of COALESCE: without COALESCE inside, and without what comes after a value that is never NULL."""
    written = list(flat("coalesce", value.arguments))
    end = next((number for number, part in enumerate(written, 1) if _never_null(part)), len(written))
    parts = [part for part in dict.fromkeys(written[:end]) if part != NO_VALUE]
    if len(parts) == 2 and isinstance(parts[1], Literal) and isinstance(parts[1].value, bool):
        test = canonical_condition(call("is_false" if parts[1].value else "is_true", parts[0]))
        return _negated(test, call("not", test)) if parts[1].value else test
    return call("coalesce", *parts) if len(parts) > 1 else parts[0] if parts else NO_VALUE


def _chosen(value: Call) -> Expr:
    """Return the form of CASE: without CASE in its ELSE, without branches that are never chosen, and with one branch for several
    of one value."""
    *written, other = value.arguments
    branches = list(zip(written[::2], written[1::2], strict=True))
    test = filter_condition(written[0]) if len(written) == 2 else None
    other = _where_present(test, other)
    if isinstance(test, Call) and test.function in ("eq", "is_null") and other in test.arguments:
        if test.function == "is_null":
            return _first_value(call("coalesce", other, written[1]))
        if written[1] == NO_VALUE:
            return call("nullif", other, test.arguments[test.arguments[0] == other])
    if isinstance(other, Call) and other.function == "case" and labelled_column(other) is None:
        *written, other = other.arguments
        branches += zip(written[::2], written[1::2], strict=True)
    if tested_for_null(filter_condition(branches[0][0])) == branches[0][1]:
        later = _chosen(_case(branches[1:], other)) if branches[1:] else other
        return _first_value(call("coalesce", branches[0][1], later))
    chosen, other = _may_be_chosen([*branches, (literal(True), other)])
    while chosen and chosen[-1][1] == other:
        chosen.pop()
    if len(chosen) == 1:
        return _either(*chosen[0], other)
    return _case(chosen, other) if chosen else other


def _may_be_chosen(branches: Iterable[tuple[Expr, Expr]]) -> tuple[list[tuple[Expr, Expr]], Expr]:
    """Return the branches of CASE that may be chosen before one that always is where it is reached, and its value. Tests of one
    value are joined when another value comes: joining them one by one would take a square of their number."""
    chosen: list[tuple[list[Expr], Expr]] = []
    earlier: set[Expr] = {literal(False)}
    for condition, result in ((filter_condition(written), result) for written, result in branches):
        tests, before = chosen[-1] if chosen else ([], None)
        if len(tests) > 1 and (before != result or all(map(_never_null, tests))):
            tests[:] = [filter_condition(call("or", *tests))]
        is_rest = len(tests) == 1 and _never_null(tests[0]) and condition == _opposite(tests[0])
        if is_rest or _is_true(condition):
            break
        if condition in earlier or [condition] == tests:
            continue
        if before == result:
            tests.append(condition)
        else:
            earlier.update(tests)
            chosen.append(([condition], result))
    return [(tests[0], value) for tests, value in chosen], result


def _where_present(test: Expr | None, other: Expr) -> Expr:
    """Return ELSE of CASE WHEN x IS NULL, in which COALESCE(x, ...) is x."""
    if not isinstance(test, Call) or test.function != "is_null" or not isinstance(other, Call):
        return other
    first = other.arguments[0] if other.function == "coalesce" else None
    return first if first is not None and first == test.arguments[0] else other


def _case(branches: Iterable[tuple[Expr, Expr]], other: Expr) -> Call:
    return call("case", *(part for branch in branches for part in branch), other)


def _opposite(condition: Expr) -> Expr:
    """Return the opposite of a condition that is never NULL, as a condition: it may be NULL where it is not true."""
    return filter_condition(call("not", condition))


def _either(condition: Expr, value: Expr, other: Expr) -> Expr:
    """Return the form of CASE WHEN condition THEN value ELSE other END."""
    if (extreme := _extreme(condition, value, other)) is not None:
        return extreme
    if (value, other) in (_TRUTHS, _TRUTHS[::-1]):
        test = canonical_condition(call("is_true", condition))
        return test if value == _TRUTHS[0] else _negated(test, call("not", test))
    if _never_null(condition):
        if _is_false(opposite := _opposite(condition)):
            return value
        before = (_place_in_case(value), canonical_text(condition))
        behind = (_place_in_case(other), canonical_text(opposite))
        if behind < before:
            turned = _case([(opposite, other)], value)
            return _chosen(turned) if isinstance(value, Call) and value.function == "case" else turned
    return _case([(condition, value)], other)


def _extreme(condition: Expr, value: Expr, other: Expr) -> Expr | None:
    """Return GREATEST(x, 5) for CASE WHEN x > 5 THEN x ELSE 5 END, which is 5 for NULL too, and LEAST alike; None for others."""
    word = {"ge": "greatest", "le": "least"}.get(condition.function) if isinstance(condition, Call) else None
    if word is None or not isinstance(condition, Call) or condition.arguments[0] != value or not is_present(other):
        return None
    bound = condition.arguments[1]
    types = {part.facts.type for part in (value, other, bound)}
    if types not in ({Type.INTEGER}, {Type.DATE}):
        return None
    if not isinstance(bound, Literal) or not isinstance(other, Literal):
        return None
    low, high = (other.value, bound.value) if word == "greatest" else (bound.value, other.value)
    step = (high - low).days if value.facts.type is Type.DATE else high - low
    return call(word, value, other) if step in (0, 1) else None


def _place_in_case(value: Expr) -> int:
    """Return the place of a value among the two of a CASE whose condition may as well be its opposite: NULL stands in ELSE."""
    is_case = isinstance(value, Call) and value.function == "case"
    return 3 if value == NO_VALUE else 2 if is_case else 1 if isinstance(value, Literal) else 0


def _unequal(value: Call) -> Expr:
    """Return the form of NULLIF, whose second argument is a literal as it is compared."""
    left, right = value.arguments
    return call("nullif", left, _as_compared(left, right)) if is_present(right) else value


def _joined_text(value: Call) -> Expr:
    """Return the form of a concatenation: without one inside, and neighbouring constants as one."""
    parts: list[Expr] = []
    for part in flat("concat", value.arguments):
        before = parts[-1] if parts else None
        if isinstance(before, Literal) and isinstance(part, Literal) and None not in (before.value, part.value):
            parts[-1] = literal(before.value + part.value)
        else:
            parts.append(part)
    return call("concat", *parts) if len(parts) <= MOST_PARTS else value


def _part_of_text(value: Call) -> Expr:
    text, start, *length = value.arguments
    return call("left", text, *length) if length and start == literal(1) else value


def _pattern(value: Call) -> Expr:
    """Return the form of LIKE: without wildcards that of =, and with % at the ends alone a search for start, end or part."""
    text, pattern = value.arguments
    searched = pattern.value if isinstance(pattern, Literal) else None
    if not isinstance(searched, str) or "_" in searched:
        return value
    inside, starts, ends = searched.strip("%"), not searched.startswith("%"), not searched.endswith("%")
    if "%" in inside or (searched and not inside):
        return value
    if starts and ends:
        if isinstance(text, Call) and text.function == "left" and (text.arguments[1].facts.lower or 0) > len(inside):
            text = text.arguments[0]  # the longest text that LIKE reads
        return canonical_condition(call("eq", text, literal(inside)))
    word = "starts_with" if starts else "ends_with" if ends else "contains"
    return canonical_condition(call(word, text, literal(inside)))


def _cast(value: Call) -> Expr:
    """Return the form of a cast: without one to the type that the value has, and with the numbers of truth values in CASE."""
    (inner,) = value.arguments
    type_ = inner.facts.type
    if type_ is value.facts.type:
        return inner
    if value.function == "to_integer" and isinstance(inner, Call) and inner.function == "strftime":
        moment, form = inner.arguments
        part = _NUMBERED.get(form.value) if isinstance(form, Literal) else None
        return value if part is None else call("date_part", literal(part), moment)
    if value.function == "to_integer" and type_ is Type.BOOLEAN and _never_null(inner):
        return _chosen(call("case", inner, literal(1), literal(0)))
    return day_of_moment(value) if value.function == "to_date" else value


def _is_truth(value: Call) -> Expr:
    (inner,) = value.arguments
    test = inner if value.function == "is_true" else _negated(inner, call("not", inner))
    return test if _never_null(inner) else value


_FORMS: dict[str, Callable[[Call], Expr]] = {
    "in": _listed, **dict.fromkeys(_MIRRORED, _comparison), **dict.fromkeys(("is_true", "is_false"), _is_truth),
    **dict.fromkeys(("add", "mul", "least", "greatest"), _in_any_order), "sub": _difference, "div": _quotient, "round": _rounded,
    "coalesce": _first_value, "case": _chosen, "nullif": _unequal, "concat": _joined_text, "substr": _part_of_text,
    "like": _pattern, "date_part": part_of_day,
    **{f"to_{type_.value}": _cast for type_ in Type if type_ is not Type.NULL},
}  # fmt: skip


# --- Conditions that no row satisfies ---


def _is_excluded(parts: Iterable[Expr]) -> bool:
    """Return whether canonical conditions are never true together, by their constants alone.

    The values of each operand that satisfy its comparisons with literals are bounded by an interval, or listed. An operand is
    NULL, or it is compared. Of OR every branch must be excluded beside the other conditions.
    """
    joined = list(flat("and", parts))
    either = [part for part in joined if isinstance(part, Call) and part.function == "or"]
    single = [part for part in joined if not (isinstance(part, Call) and part.function == "or")]
    if any(map(_is_false, single)) or _contradict(single):
        return True
    return any(all(_is_excluded((*single, branch)) for branch in part.arguments) for part in either)


def _contradict(parts: list[Expr]) -> bool:
    """Return whether conditions without AND and OR are never true together."""
    every = set(parts)
    tests: dict[Expr, list[tuple[str, Expr, list[Any]]]] = {}
    for part in parts:
        if not isinstance(part, Call):
            continue
        word, (operand, *items) = part.function, part.arguments
        if word in ("not", "is_false"):
            if operand in every:
                return True
            if word == "not" and isinstance(operand, Call) and operand.function == "in":
                word, (operand, *items) = "not_in", operand.arguments
        values = [item.value for item in items if isinstance(item, Literal)]
        if word in (*_MIRRORED, "in", "not_in", "is_null") and len(values) == len(items):
            tests.setdefault(operand, []).append((word, operand, values))
    return any(map(_no_value, tests.values()))


def _no_value(tests: list[tuple[str, Expr, list[Any]]]) -> bool:
    """Return whether no value of an operand passes all tests, each a word, the operand and the values it is compared with.

    Numbers are compared as doubles where one of them is no whole number; a whole number as a double may then equal another.
    """
    null = [word == "is_null" or (word == "not_distinct" and None in values) for word, _, values in tests]
    type_ = tests[0][1].facts.type
    every = [value for _, _, values in tests for value in values if value is not None]
    exact = type_ is not Type.INTEGER or all(type(value) is int for value in every)
    if any(null) or (len({type(value) for value in every}) > 1 and not type_.numeric):
        return not all(null) and any(null)
    low: list[tuple[Any, bool]] = []
    high: list[tuple[Any, bool]] = []
    listed: list[set[Any]] = []
    excluded: set[Any] = set()
    for word, _, written in tests:
        values = [
            value
            for value in written
            if value is not None and not (type_ is Type.INTEGER and _is_real(value) and value.denominator != 1)
        ]
        if type_ is Type.REAL or not exact:
            values = [float(value) for value in values]
        if word in ("eq", "in", "not_distinct"):
            listed.append(set(values))
        elif None in written:
            return True
        elif word in ("ne", "not_in"):
            excluded |= set(values) if exact else set()
        elif values and type_ is not Type.TEXT:  # the order of texts is the engine's own
            (low if word in ("ge", "gt") else high).append((values[0], word in ("gt", "lt") and exact))

    def passes(value: Any) -> bool:
        above = all(value > end or (value == end and not strict) for end, strict in low)
        below = all(value < end or (value == end and not strict) for end, strict in high)
        return above and below and value not in excluded

    if listed:
        return not any(map(passes, set.intersection(*listed)))
    ends = {end for end, _ in low} & {end for end, _ in high}
    return any(first > last for first, _ in low for last, _ in high) or not all(map(passes, ends))
