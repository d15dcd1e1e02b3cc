"""One name for conditions that keep the same rows: `year(d) = 2024`, `d BETWEEN '2024-01-01' AND '2024-12-31'`; `n IN (2, 3)`,
`n > 1 AND n <= 3`; `left(t, 2) = 'ab'`, `starts_with(t, 'ab')`.

Only the name of a release is made of this form, and the order of keys and measures. A plan keeps the
conditions as they are: `year(d) = 2024` leaves the key year(d) one value, and is a slice of what was released by years.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, chain
from operator import is_
from typing import Any

from dpsql.functions.canonical_conditions import (
    EXACT_REALS,
    canonical_condition,
    filter_condition,
    is_present,
)
from dpsql.functions.evaluate import evaluate
from dpsql.functions.signatures import call
from dpsql.functions.values import MONTHS_OF, lower, next_start, truncated
from dpsql.functions.written_times import PARTS, of_strftime, of_written_time
from dpsql.plan.canonical_text import canonical_text
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import (
    Call,
    Column,
    Expr,
    Filter,
    Literal,
    Measure,
    SemiJoin,
    Term,
    TermKind,
    Union_,
    UnitAggregate,
    Window,
    filled,
    literal,
)
from dpsql.plan.stability import flat
from dpsql.storage.records import dataclass, replace

Spans = tuple[tuple[int, int], ...]
"""Numbers from the first to below the second, in order and with gaps between them."""
_DAY = 86_400 * 10**6
_DAYS = date.max.toordinal()
_NUMBERS = {
    Type.INTEGER: (int, -(2**63), 2**63), Type.DATE: (date, 0, _DAYS), Type.TIMESTAMP: (datetime, 0, _DAYS * _DAY),
}  # fmt: skip
"""Types whose values are numbered, with the first number and that after the last. Days and moments outside the years 1 to 9999
are NULL on every engine."""
_MOST_DAYS = 36_600
"""Days in whose months conditions on months are written out."""
_MOST_FACTORED = 40
"""Tests of a condition of which common parts are taken out, one at a time."""
_STEPS = ("floor", "ceil", "round", "to_integer", "to_real", "div", "mul")
"""Functions that never fall as their first argument rises, where the others are literals above 0."""
_MOST_STEPS = 20
"""Most functions that are compared with items of one condition, each counted once for each item."""
_FROM_START = re.compile(r"\^(?:\((?:\?:)?(?P<several>[\w |-]+)\)|(?P<alone>[\w -]+))(?:(?P<end>\$)|\.\*)?")
_ARITHMETIC = ("add", "sub", "neg", "abs", "mul", "intdiv")
_SPANNING = ("eq", "ne", "in", "lt", "le", "gt", "ge")
_COMPARING = (*_SPANNING, "like", "ilike", "starts_with", "ends_with", "contains", "regexp_matches")


@dataclass(frozen=True)
class _Within:
    """The condition that the number of a value lies in one of some spans."""

    value: Expr
    spans: Spans
    condition: Expr | None = None
    """The comparison that says so in the form of `_written`, if it is one."""


def named_rows(part: Any) -> Any:
    """Return a part of a block in which conditions that keep the same rows are the same, and so are unions in any order."""
    return filled(part, _named)


def name_of(part: Any) -> str:
    """Return a text that parts of blocks with the same meaning have in common, by which they are put in one order."""
    return canonical_text(named_rows(part))


_CONDITIONED = frozenset({Term, Call, Filter, SemiJoin, Measure, Window, UnitAggregate, Union_})
"""Parts that may have a condition, or an order."""


def _named(part: Any) -> Any:
    if type(part) not in _CONDITIONED:
        return part
    if isinstance(part, Term) and part.kind in (TermKind.PRODUCT_PART, TermKind.PAIR_PART):
        return _part_of_pair(part)
    if isinstance(part, Call):
        return canonical_condition(_in_cases(part))
    if isinstance(part, Filter):
        return Filter(named_rows(part.source), row_condition(part.predicate))
    if isinstance(part, SemiJoin) and part.condition is not None:
        return replace(named_rows(replace(part, condition=None)), condition=row_condition(part.condition))
    if isinstance(part, (Term, Measure, Window)) and part.filter is not None:
        return replace(named_rows(replace(part, filter=None)), filter=row_condition(part.filter))
    if isinstance(part, UnitAggregate):
        columns = tuple(
            (name, word, named_rows(value), tested and row_condition(tested), facts)
            for name, word, value, tested, facts in part.columns
        )
        return UnitAggregate(named_rows(part.source), named_rows(part.keys), columns)
    if isinstance(part, Union_):
        return Union_(tuple(sorted(map(named_rows, part.sources), key=canonical_text)))
    return part


def _part_of_pair(term: Term) -> Term:
    """Return the part with its factors in their order: `place` counts by it, and numbers by another order have another name."""
    assert isinstance(term.value, Call)
    value = replace(term.value, arguments=named_rows(term.value.arguments))
    return replace(term, value=value, filter=term.filter and row_condition(term.filter))


def _in_cases(value: Expr) -> Expr:
    """Return an expression with the conditions of CASE in the form of those that keep the same rows, and tests of the start of a
    text (`t ~ '^ab'`, `left(t, 2) = 'ab'`) in the one that is NULL for the same rows, too."""
    if not isinstance(value, Call):
        return value
    tested = len(value.arguments) - (value.function == "case") if value.function in ("case", "is_true") else 0
    arguments = [
        row_condition(part) if number < tested and number % 2 == 0 else _in_cases(part)
        for number, part in enumerate(value.arguments)
    ]
    same = all(map(is_, arguments, value.arguments))
    return _of_start(value if same else replace(value, arguments=tuple(arguments)))


def _of_start(test: Call) -> Expr:
    if test.function == "regexp_matches":
        form = _of_regular_expression(test)
        return _of_start(form) if isinstance(form, Call) and form.function == "starts_with" else form or test
    if test.function == "starts_with":
        return _of_whole_text(test)
    part, *items = test.arguments if test.function in ("eq", "in") else (None,)
    if not isinstance(part, Call) or part.function != "left" or not all(map(is_present, items)):
        return test
    return _start_of_text(part, [item.value for item in items if isinstance(item, Literal)], False) or test


def row_condition(condition: Expr) -> Expr:
    """Return the form that all conditions have which keep the same rows by their comparisons with literals."""
    canonical = _in_cases(condition)
    canonical = condition if canonical is condition else canonical_condition(canonical)
    plain = _plain(canonical)
    named = _written(_read(plain if plain is canonical else filter_condition(plain)))
    return named if named is condition else filter_condition(named)


def _read(condition: Expr) -> Expr | _Within:
    if not isinstance(condition, Call) or condition.function not in ("and", "or"):
        return _comparison(condition) or condition
    numbered: dict[Expr, list[_Within]] = {}
    unnumbered: list[Expr] = []
    for part in map(_read, condition.arguments):
        if isinstance(part, _Within):
            numbered.setdefault(part.value, []).append(part)
        else:
            unnumbered.append(part)
    combined = _common if condition.function == "and" else _either
    within = {
        value: tests[0] if len(tests) == 1 else _Within(value, combined(*(test.spans for test in tests)))
        for value, tests in numbered.items()
    }
    if condition.function == "and":
        _put_months_in_spans(within)
    parts = [*within.values(), *unnumbered]
    if len(parts) == 1:
        return parts[0]
    written = tuple(map(_written, parts))
    size = _count_tests(condition)
    factored = _factored(condition.function, written) if size <= _MOST_FACTORED else None
    if factored is not None and _count_tests(factored) < size:  # so that it comes to an end
        return _read(factored)
    old = set(map(id, condition.arguments))
    same = len(written) == len(condition.arguments) and old.issuperset(map(id, written))
    return condition if same else call(condition.function, *written)


def _count_tests(condition: Expr) -> int:
    if not isinstance(condition, Call) or condition.function not in ("and", "or"):
        return 1
    return sum(map(_count_tests, condition.arguments))


def _factored(word: str, parts: Sequence[Expr]) -> Expr | None:
    """Return `a AND (b OR c)` for `a AND b OR a AND c`, and `a OR b AND c` alike; None if no two parts have one in common."""
    other = "and" if word == "or" else "or"
    if not any(isinstance(part, Call) and part.function == other for part in parts):
        return None
    lists = [list(flat(other, (part,))) for part in parts]
    counts = Counter(item for items in lists for item in items)
    most = max(counts.values())
    if most < 2:
        return None
    shared: Expr = min((item for item, count in counts.items() if count == most), key=canonical_text)
    left = [part for part, items in zip(parts, lists, strict=True) if shared not in items]
    rests = [[item for item in items if item != shared] for items in lists if shared in items]
    if all(rests):
        shared = call(other, shared, call(word, *(call(other, *rest) if len(rest) > 1 else rest[0] for rest in rests)))
    return filter_condition(call(word, shared, *left) if left else shared)


def _put_months_in_spans(within: dict[Expr, _Within]) -> None:
    """Read `year(d) = 2024 AND month(d) = 5` as days of that month: put conditions on months and quarters into the spans of the
    day or moment, if these are few months."""
    for value, part in list(within.items()):
        unit = value.arguments[0] if isinstance(value, Call) and value.function == "date_part" else None
        if not isinstance(value, Call) or not isinstance(unit, Literal) or unit.value not in ("month", "quarter"):
            continue
        moment = value.arguments[1]
        while isinstance(moment, Call) and moment.function == "to_date" and moment.arguments[0].facts.type.temporal:
            moment = moment.arguments[0]
        read = within.get(moment)
        type_ = moment.facts.type
        if read is None or sum(high - low for low, high in read.spans) > _MOST_DAYS * (_number_of_day(type_)):
            continue
        width = MONTHS_OF[unit.value]
        months = tuple(span for low, high in read.spans for span in _months(low, high, type_, width, part.spans))
        within[moment] = _Within(moment, _common(read.spans, _joined(months)))
        del within[value]


def _number_of_day(type_: Type) -> int:
    return _DAY if type_ is Type.TIMESTAMP else 1


def _months(low: int, high: int, type_: Type, width: int, numbers: Spans) -> Iterator[tuple[int, int]]:
    """Yield the spans of the months between two numbers whose number in the year, in steps of `width` months, is asked for."""
    day = _number_of_day(type_)
    first, last = date.fromordinal(low // day + 1), date.fromordinal((high - 1) // day + 1)
    for month in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
        if any(start <= month % 12 // width + 1 < end for start, end in numbers):
            yield _first_of_month(month) * day, _first_of_month(month + 1) * day


def _first_of_month(month: int) -> int:
    """Return the number of the first day of a month, counted from that of the year 0."""
    return _DAYS if month >= 12 * (date.max.year + 1) else date(month // 12, month % 12 + 1, 1).toordinal() - 1


def _either(*several: Spans) -> Spans:
    return _joined(tuple(chain.from_iterable(several)))


def _common(*several: Spans) -> Spans:
    ends = sorted((end, step) for span in chain.from_iterable(several) for end, step in zip(span, (1, -1), strict=True))
    around = list(accumulate(step for _, step in ends))
    return tuple((ends[number][0], ends[number + 1][0]) for number, count in enumerate(around) if count == len(several))


def _joined(spans: Spans) -> Spans:
    joined: list[tuple[int, int]] = []
    for low, high in sorted(span for span in spans if span[0] < span[1]):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


# --- conditions in plainer words ---------------------------------------------------------------------------------------


def _plain(condition: Expr) -> Expr:
    """Return a condition without ILIKE, IS NOT TRUE, COALESCE and the like around what is compared with literals."""
    if not isinstance(condition, Call):
        return condition
    if condition.function in ("and", "or"):
        parts = tuple(map(_plain, condition.arguments))
        return condition if all(map(is_, parts, condition.arguments)) else call(condition.function, *parts)
    negated = condition.function == "not"
    inner = condition.arguments[0] if negated else condition
    if not isinstance(inner, Call):
        return condition
    if negated and inner.function in ("is_true", "is_false", "not_distinct"):
        tested = call("eq", *inner.arguments) if inner.function == "not_distinct" else inner.arguments[0]
        values = set(map(_decided_by, flat("and", (tested,)) if inner.function == "is_false" else (tested,)))
        read = values.pop()
        if read is None or values:
            return condition
        either = tested if inner.function == "is_false" else call("not", tested)
        return _plain(canonical_condition(call("or", either, call("is_null", read))))
    if _decided_by(inner) is None:
        return condition
    form = _of_spans(condition) if isinstance(inner.arguments[0], Call) else None
    if form is None and (form := _compared(inner)) is not None and negated:
        form = call("not", form)
    return condition if form is None else _plain(canonical_condition(form))


def _of_spans(condition: Expr) -> Expr | None:
    """Return a condition on COALESCE(x, 0), b::INTEGER or length(t), also computed with, in plainer words; None for others."""
    within = _comparison(condition)
    value = within.value if isinstance(within, _Within) else None
    if not isinstance(within, _Within) or not isinstance(value, Call) or not value.arguments:
        return None

    def has(number: int) -> bool:
        return any(low <= number < high for low, high in within.spans)

    read, *constants = value.arguments
    is_pair = value.function == "coalesce" and len(constants) == 1
    if is_pair and isinstance(constants[0], Literal) and is_present(constants[0]) and _alike(value):
        compared = _written(_Within(read, within.spans))
        return call("or", compared, call("is_null", read)) if has(_number(constants[0].value)) else compared
    if value.function == "to_integer" and read.facts.type is Type.BOOLEAN and has(0) is not has(1):
        return read if has(1) else call("not", read)
    spans = _common(within.spans, ((0, 2**63),)) if value.function == "length" else ()
    word = "eq" if spans == ((0, 1),) else "ne" if spans == ((1, 2**63),) else ""
    return call(word, read, literal("")) if word else None


def _decided_by(condition: Expr) -> Expr | None:
    """Return the value for whose NULL alone a comparison with literals, or a truth value, is NULL; None for other conditions."""
    if not isinstance(condition, Call):
        return condition if isinstance(condition, Column) else None
    if condition.function not in _COMPARING:
        return None
    operand, *items = condition.arguments
    if any(not isinstance(item, Literal) or item.value is None for item in items):
        return None
    while isinstance(operand, Call) and operand.function in ("left", "lower", "upper"):
        operand = operand.arguments[0]
    return operand


def _compared(test: Call) -> Expr | None:
    """Return a comparison with literals in plainer words, which is true, false and NULL for the same rows, or None."""
    operand, *items = test.arguments
    values = [item.value for item in items if isinstance(item, Literal)]
    if test.function == "regexp_matches":
        return _of_regular_expression(test)
    if test.function == "ilike" and isinstance(values[0], str):
        return call("like", call("lower", operand), literal(lower(values[0])))
    if not isinstance(operand, Call) or test.function not in _SPANNING:
        return None
    is_pair = operand.function == "coalesce" and len(operand.arguments) == 2
    if is_pair and isinstance(operand.arguments[-1], Literal) and _alike(operand):
        value, constant = operand.arguments
        compared, missing = call(test.function, value, *items), call("is_null", value)
        if evaluate(call(test.function, constant, *items), {}):
            return call("or", compared, missing)
        return call("and", compared, call("not", missing))
    if operand.function == "strpos" and (test.function, values) == ("eq", [1]) and _is_text(operand.arguments[1]):
        return call("starts_with", *operand.arguments)
    written = operand.function == "strftime" and test.function in ("eq", "ne", "in")
    return of_strftime(test.function, operand, values) if written else None


def _alike(first: Call) -> bool:
    """Return whether COALESCE leaves its first value as it is: beside a real number an integer is compared as one."""
    return first.facts.type is first.arguments[0].facts.type


def _is_text(part: Expr) -> bool:
    return isinstance(part, Literal) and bool(part.value)


def _of_regular_expression(test: Call) -> Expr | None:
    """Return `t ~ '^ab'` as starts_with(t, 'ab'), and `t ~ '^(ab|c)$'` as t IN ('ab', 'c')."""
    text, pattern, *options = test.arguments
    searched = pattern.value if isinstance(pattern, Literal) and not options else None
    match = _FROM_START.fullmatch(searched) if isinstance(searched, str) else None
    if match is None:
        return None
    texts = (match["several"] or match["alone"]).split("|")
    if not all(texts):
        return None
    if match["end"]:
        return call("in", text, *map(literal, texts))
    tests: list[Expr] = [call("starts_with", text, literal(each)) for each in texts]
    return tests[0] if len(tests) == 1 else call("or", *tests)


# --- comparisons as spans ---------------------------------------------------------------------------------------------


def _comparison(condition: Expr) -> Expr | _Within | None:
    """Return what a comparison with literals says of the value that decides it; None for other conditions."""
    negated = isinstance(condition, Call) and condition.function == "not"
    inner = condition.arguments[0] if isinstance(condition, Call) and negated else condition
    if isinstance(inner, Call) and inner.function in ("starts_with", "like"):
        test = _of_whole_text(inner)
        if (period := _of_text_of_time(test)) is not None:
            return _read(call("not", period) if negated else period)
        if negated and test.function == "not":  # NOT LIKE '%' is never true: it is NULL for NULL
            return literal(False)
        return call("not", test) if negated else test
    if not isinstance(inner, Call) or inner.function not in ("eq", "ne", "in", "lt", "le", "gt", "ge"):
        return None
    operand, *items = inner.arguments
    values = [item.value if isinstance(item, Literal) else None for item in items]
    if not values:
        return None
    negated = negated is not (inner.function == "ne")
    if isinstance(operand, Call) and operand.function == "left" and inner.function in ("eq", "ne", "in"):
        return _start_of_text(operand, values, negated)
    if (within := _of_steps(inner, negated)) is not None:
        return within
    kind, first, end = _NUMBERS.get(operand.facts.type, (None, 0, 0))
    if any(type(value) is not kind for value in values):
        return None
    numbers = [_number(value) for value in values]
    spans = {
        "lt": ((first, numbers[0]),), "le": ((first, numbers[0] + 1),), "gt": ((numbers[0] + 1, end),),
        "ge": ((numbers[0], end),),
    }.get(inner.function, tuple((number, number + 1) for number in numbers))  # fmt: skip
    spans = _complement(_joined(spans), first, end) if negated else _joined(spans)
    within = _of_argument(operand, spans)
    usual = ("eq", "ne", "ge", "lt" if operand.facts.type is Type.TIMESTAMP else "le")
    widths = {high - low for low, high in within.spans} - {end - first}
    as_usual = inner.function in ("eq", "ne") or (widths and 1 not in widths)
    same = as_usual and within.value is operand and within.spans == spans and inner.function in usual
    return replace(within, condition=condition) if same else within


def _of_text_of_time(test: Call) -> Expr | None:
    """Return `d::TEXT LIKE '2024-05%'` as a comparison of the start of the month."""
    text = test.arguments[0]
    if test.function != "starts_with" or not isinstance(text, Call) or text.function != "to_text":
        return None
    searched = test.arguments[1]
    (moment,), start = text.arguments, str(searched.value) if isinstance(searched, Literal) else ""
    form = {4: "%Y", 5: "%Y-", 7: "%Y-%m", 8: "%Y-%m-", 10: "%Y-%m-%d"}.get(len(start), "")
    is_time = moment.facts.type.temporal and start.endswith("-") is form.endswith("-")
    return of_written_time("eq", moment, form.rstrip("-"), [start.rstrip("-")]) if is_time else None


def _complement(spans: Spans, first: int, end: int) -> Spans:
    """Return the spans of all other numbers from `first` to below `end`."""
    ends = [first, *(number for span in spans for number in span), end]
    return _joined(tuple(zip(ends[::2], ends[1::2], strict=True)))


def _number(value: Any) -> int:
    if isinstance(value, datetime):
        return (value - datetime.min) // timedelta(microseconds=1)
    return value.toordinal() - 1 if isinstance(value, date) else int(value)


def _value(number: int, type_: Type) -> Any:
    if type_ is Type.TIMESTAMP:
        return datetime.min + timedelta(microseconds=number)
    return date.fromordinal(number + 1) if type_ is Type.DATE else number


def _of_argument(value: Expr, spans: Spans) -> _Within:
    """Return the spans of a year, or of the start of a period, as those of the day or moment of which it is computed."""
    if isinstance(value, Call) and value.function in _ARITHMETIC and value.facts.type is Type.INTEGER:
        return _of_operand(value, spans)
    if not isinstance(value, Call) or value.function not in ("date_part", "date_trunc", "to_date"):
        return _Within(value, spans)
    argument, type_ = value.arguments[-1], value.arguments[-1].facts.type
    unit = value.arguments[0].value if isinstance(value.arguments[0], Literal) else "day"
    is_year = value.function == "date_part"
    if type_ not in (Type.DATE, Type.TIMESTAMP) or (is_year and unit != "year"):
        return _of_part(value, unit, spans)
    end = _NUMBERS[type_][2]
    starts = tuple((_first(low, value, unit, type_), _first(high, value, unit, type_)) for low, high in spans)
    return _of_argument(argument, _joined(tuple((low, min(high, end)) for low, high in starts)))


def _of_part(value: Call, unit: str, spans: Spans) -> _Within:
    """Return the spans of a part of a time within its range; the day of the week counts from Monday, 1."""
    whole = PARTS.get(unit)
    if value.function != "date_part" or whole is None:
        return _Within(value, spans)
    spans = _common(spans, (whole,))
    if unit == "dow":
        whole, value = PARTS["isodow"], call("date_part", literal("isodow"), value.arguments[1])
        days = (day for low, high in spans for day in range(low, high))
        spans = _joined(tuple((day or 7, (day or 7) + 1) for day in days))
    _, first, end = _NUMBERS[Type.INTEGER]
    return _Within(value, ((first, end),) if spans == (whole,) else spans)


def _of_operand(value: Call, spans: Spans) -> _Within:
    """Return the spans of x + 1, 7 - x, -x, 2 * x or x // 10 as those of x: a result beyond 64 bits is NULL, and in no span."""
    operands = [part for part in value.arguments if not isinstance(part, Literal)]
    constants = [part.value for part in value.arguments if isinstance(part, Literal)]
    whole = all(type(constant) is int for constant in constants) and len(operands) == 1
    if not whole or operands[0].facts.type is not Type.INTEGER or (value.function == "intdiv" and constants == [0]):
        return _Within(value, spans)
    (operand,), constant = operands, constants[0] if constants else 0
    turned = value.function == "neg" or (value.function == "sub" and value.arguments[1] is operand)
    if value.function in ("mul", "intdiv"):
        turned, scale = constant < 0, abs(constant)
        if not scale or (value.function == "intdiv" and value.arguments[0] is not operand):
            return _Within(value, spans)
        divided = value.function == "mul"
        spans = _turned(spans, 0) if turned else spans
        moved = tuple((_least(low, scale, divided), _least(high, scale, divided)) for low, high in spans)
    elif value.function == "abs":
        spans = _common(spans, ((0, 2**63),))
        moved = (*spans, *_turned(spans, 0))
    elif turned:
        moved = _turned(spans, constant)
    else:
        shift = -constant if value.function == "add" else constant
        moved = tuple((low + shift, high + shift) for low, high in spans)
    return _of_argument(operand, _common(_joined(moved), ((-(2**63), 2**63),)))


@lru_cache(maxsize=1000)
def _of_steps(test: Call, negated: bool) -> _Within | None:
    """Return `floor(x / 10) = 2` as x BETWEEN 20 AND 29: a function that never falls is compared for some whole numbers x."""
    steps: Expr
    steps, *items = test.arguments
    path: list[Call] = []
    while isinstance(steps, Call):
        inner = _truncated(steps)
        if inner is None and not (steps.function in _STEPS and all(map(_is_above_zero, steps.arguments[1:]))):
            break
        path.append(steps)
        steps = steps.arguments[0] if inner is None else inner
    most_items = _MOST_STEPS // max(1, len(path))
    if not path or steps.facts.type is not Type.INTEGER or len(items) > most_items or not all(map(is_present, items)):
        return None
    number: Expr = Column("x", Facts(Type.INTEGER))
    for part in reversed(path):
        number = (
            call(part.function, number, *part.arguments[1:])
            if part.function != "case"
            else call("case", call("lt", number, literal(0)), call("ceil", number), call("floor", number))
        )
    if any(abs(item.value) >= EXACT_REALS for item in items if isinstance(item, Literal)):
        return None  # engines compare the nearest doubles, where one side is real
    _, first, end = _NUMBERS[Type.INTEGER]
    if any(evaluate(number, {"x": x}) is None for x in (first, 0, end - 1)):
        return None

    def least(word: str, item: Expr) -> int:
        compared, low, high = call(word, number, item), -1, 1
        while low > first and evaluate(compared, {"x": low}):
            low *= 2
        while high < end and not evaluate(compared, {"x": high}):
            high *= 2
        if low == first and evaluate(compared, {"x": low}):
            return first
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if evaluate(compared, {"x": middle}) else (middle, high)
        return high

    spans = {
        "lt": lambda item: (first, least("ge", item)), "le": lambda item: (first, least("gt", item)),
        "gt": lambda item: (least("gt", item), end), "ge": lambda item: (least("ge", item), end),
    }.get(test.function, lambda item: (least("ge", item), least("gt", item)))  # fmt: skip
    included = _joined(tuple(map(spans, items)))
    return _of_argument(steps, _complement(included, first, end) if negated else included)


def _truncated(value: Call) -> Expr | None:
    """Return x of trunc(x), as it is bound; None for others."""
    upper = value.arguments[1] if value.function == "case" else None
    inner = upper.arguments[0] if isinstance(upper, Call) and upper.function == "ceil" else None
    if inner is None or value.arguments[1:] != (upper, call("floor", inner)):
        return None
    negative = canonical_condition(call("lt", inner, literal(0)))
    return inner if value.arguments[0] in (negative, row_condition(negative)) else None


def _is_above_zero(part: Expr) -> bool:
    return isinstance(part, Literal) and isinstance(part.value, int | Fraction) and part.value > 0


def _turned(spans: Spans, constant: int) -> Spans:
    """Return the spans of constant - x for those of x."""
    return _joined(tuple((constant - high + 1, constant - low + 1) for low, high in spans))


def _least(number: int, scale: int, divided: bool) -> int:
    """Return the least x for which x * scale (`divided`), or else x // scale toward zero, is at least a number."""
    if divided:
        return -(-number // scale)
    return number * scale if number > 0 else (number - 1) * scale + 1


def _first(number: int, value: Call, unit: str, type_: Type) -> int:
    """Return the number of the first day or moment whose year or period has at least this number."""
    end = _NUMBERS[type_][2]
    if value.function == "date_part":
        moment = date if type_ is Type.DATE else datetime
        return 0 if number < 1 else end if number > date.max.year else _number(moment(number, 1, 1))
    if value.function == "to_date":
        return number * _DAY if type_ is Type.TIMESTAMP else number
    if number >= end:
        return end
    written = _value(number, type_)
    start = truncated(unit, written)
    try:
        after = next_start(unit, start)
    except (OverflowError, ValueError):
        return end if start != written else number
    return number if start == written else _number(after)


def _start_of_text(part: Call, values: list[Any], negated: bool) -> Expr | None:
    """Return `left(t, 2) = 'ab'` as starts_with(t, 'ab'), and `left(t, 9) = 'ab'` as t = 'ab'."""
    text, length = part.arguments
    most = length.value if isinstance(length, Literal) else None
    if type(most) is not int or most < 1 or any(not isinstance(value, str) or len(value) > most for value in values):
        return None
    tests: list[Expr] = [
        _written(_read(call("starts_with" if len(value) == most else "eq", text, literal(value)))) for value in values
    ]
    either = tests[0] if len(tests) == 1 else call("or", *tests)
    return call("not", either) if negated else either


def _of_whole_text(test: Call) -> Call:
    """Return a test that a long text has a start, or is any text (`LIKE '%'`), without `left`, which takes what LIKE reads."""
    text, searched = test.arguments
    if not isinstance(text, Call) or text.function != "left" or not isinstance(searched, Literal) or not searched.value:
        return test
    length = text.arguments[1].facts.lower or 0
    if test.function == "like":
        any_text = not searched.value.strip("%") and length > 0
        return call("not", call("is_null", text.arguments[0])) if any_text else test
    whole = call("starts_with", text.arguments[0], searched)
    return _of_whole_text(whole) if length >= len(searched.value) else test


# --- spans as conditions ----------------------------------------------------------------------------------------------


def _written(condition: Expr | _Within) -> Expr:
    """Return spans as the comparisons that are usual for them."""
    if not isinstance(condition, _Within):
        return condition
    if condition.condition is not None:
        return condition.condition
    value, spans = condition.value, condition.spans
    type_ = value.facts.type
    _, first, end = _NUMBERS[type_]
    left_out = _complement(spans, first, end)
    if not left_out:
        return call("not", call("is_null", value))
    if all(high == low + 1 for low, high in left_out):
        return call("not", _one_of(value, [low for low, _ in left_out]))
    parts: list[Expr] = [call("and", *_between(value, span)) for span in spans if span[1] > span[0] + 1]
    points = [low for low, high in spans if high == low + 1]
    parts += [_one_of(value, points)] if points else []
    return call("or", *parts) if len(parts) > 1 else parts[0] if parts else literal(False)


def _one_of(value: Expr, numbers: list[int]) -> Expr:
    return call("in", value, *(literal(_value(number, value.facts.type)) for number in numbers))


def _between(value: Expr, span: tuple[int, int]) -> list[Expr]:
    type_ = value.facts.type
    _, first, end = _NUMBERS[type_]
    low, high = span
    comparisons: list[Expr] = [call("ge", value, literal(_value(low, type_)))] if low > first else []
    if high < end:
        moment = type_ is Type.TIMESTAMP
        comparisons.append(call("lt" if moment else "le", value, literal(_value(high - (not moment), type_))))
    return comparisons
