"""One name for conditions that keep the same rows: `year(d) = 2024`, `d BETWEEN '2024-01-01' AND '2024-12-31'`; `n IN (2, 3)`,
`n > 1 AND n <= 3`; `left(t, 2) = 'ab'`, `starts_with(t, 'ab')`.

Only the name of a release is made of this form, and the order of keys and measures. A plan keeps the
conditions as they are: `year(d) = 2024` leaves the key year(d) one value, and is a slice of what was released by years.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from operator import is_
from typing import Any

from dpsql.functions.canonical_conditions import canonical_condition, filter_condition
from dpsql.functions.signatures import call
from dpsql.functions.values import moved_by_months, truncated
from dpsql.plan.canonical_text import canonical_text
from dpsql.plan.intervals import Type
from dpsql.plan.plan import (
    Call,
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

Spans = tuple[tuple[int, int], ...]
"""Numbers from the first to below the second, in order and with gaps between them."""
_DAY = 86_400 * 10**6
_DAYS = date.max.toordinal()
_NUMBERS = {
    Type.INTEGER: (int, -(2**63), 2**63), Type.DATE: (date, 0, _DAYS), Type.TIMESTAMP: (datetime, 0, _DAYS * _DAY),
}  # fmt: skip
"""Types whose values are numbered, with the first number and that after the last. Days and moments outside the years 1 to 9999
are NULL on every engine."""
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_TIMES = {
    "week": timedelta(weeks=1), "day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
}  # fmt: skip


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


def _named(part: Any) -> Any:
    if isinstance(part, Term) and part.kind in (TermKind.PRODUCT_PART, TermKind.PAIR_PART):
        return _part_of_pair(part)
    if isinstance(part, Call):
        return canonical_condition(_in_cases(part))
    if isinstance(part, Filter):
        return Filter(named_rows(part.source), _row_condition(part.predicate))
    if isinstance(part, SemiJoin) and part.condition is not None:
        return replace(named_rows(replace(part, condition=None)), condition=_row_condition(part.condition))
    if isinstance(part, (Term, Measure, Window)) and part.filter is not None:
        return replace(named_rows(replace(part, filter=None)), filter=_row_condition(part.filter))
    if isinstance(part, UnitAggregate):
        columns = tuple(
            (name, word, named_rows(value), tested and _row_condition(tested), facts)
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
    return replace(term, value=value, filter=term.filter and _row_condition(term.filter))


def _in_cases(value: Expr) -> Expr:
    """Return an expression with the conditions of CASE in the form of those that keep the same rows."""
    if not isinstance(value, Call):
        return value
    arguments = list(map(_in_cases, value.arguments))
    if value.function in ("case", "is_true"):
        conditions = range(0, len(arguments) - (value.function == "case"), 2)
        for number in conditions:
            arguments[number] = _row_condition(arguments[number])
    same = all(map(is_, arguments, value.arguments))
    return value if same else replace(value, arguments=tuple(arguments))


def _row_condition(condition: Expr) -> Expr:
    """Return the form that all conditions have which keep the same rows by their comparisons with literals."""
    canonical = _in_cases(condition)
    canonical = condition if canonical is condition else canonical_condition(canonical)
    named = _written(_read(canonical))
    return named if named is condition else filter_condition(named)


def _read(condition: Expr) -> Expr | _Within:
    if not isinstance(condition, Call) or condition.function not in ("and", "or"):
        return _comparison(condition) or condition
    within: dict[Expr, _Within] = {}
    unnumbered: list[Expr] = []
    combined = _common if condition.function == "and" else _either
    for part in map(_read, condition.arguments):
        if not isinstance(part, _Within):
            unnumbered.append(part)
        elif part.value not in within:
            within[part.value] = part
        else:
            within[part.value] = _Within(part.value, combined(within[part.value].spans, part.spans))
    parts = [*within.values(), *unnumbered]
    if len(parts) == 1:
        return parts[0]
    written = tuple(map(_written, parts))
    same = len(written) == len(condition.arguments) and all(
        any(part is old for old in condition.arguments) for part in written
    )
    return condition if same else call(condition.function, *written)


def _either(first: Spans, second: Spans) -> Spans:
    return _joined((*first, *second))


def _common(first: Spans, second: Spans) -> Spans:
    both = ((max(a, c), min(b, d)) for a, b in first for c, d in second)
    return tuple((low, high) for low, high in both if low < high)


def _joined(spans: Spans) -> Spans:
    joined: list[tuple[int, int]] = []
    for low, high in sorted(span for span in spans if span[0] < span[1]):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


# --- comparisons as spans ---------------------------------------------------------------------------------------------


def _comparison(condition: Expr) -> Expr | _Within | None:
    """Return what a comparison with literals says of the value that decides it; None for other conditions."""
    negated = isinstance(condition, Call) and condition.function == "not"
    inner = condition.arguments[0] if isinstance(condition, Call) and negated else condition
    if isinstance(inner, Call) and inner.function in ("starts_with", "like"):
        test = _of_whole_text(inner)
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
    kind, first, end = _NUMBERS.get(operand.facts.type, (None, 0, 0))
    if any(type(value) is not kind for value in values):
        return None
    numbers = [_number(value) for value in values]
    spans = {
        "lt": ((first, numbers[0]),), "le": ((first, numbers[0] + 1),), "gt": ((numbers[0] + 1, end),),
        "ge": ((numbers[0], end),),
    }.get(inner.function, tuple((number, number + 1) for number in numbers))  # fmt: skip
    within = _of_argument(operand, _complement(_joined(spans), first, end) if negated else _joined(spans))
    usual = ("eq", "ne", "ge", "lt" if operand.facts.type is Type.TIMESTAMP else "le")
    widths = {high - low for low, high in within.spans} - {end - first}
    as_usual = inner.function in ("eq", "ne") or (widths and 1 not in widths)
    same = as_usual and within.value is operand and inner.function in usual
    return replace(within, condition=condition) if same else within


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
    if not isinstance(value, Call) or value.function not in ("date_part", "date_trunc", "to_date"):
        return _Within(value, spans)
    argument, type_ = value.arguments[-1], value.arguments[-1].facts.type
    unit = value.arguments[0].value if isinstance(value.arguments[0], Literal) else "day"
    is_year = value.function == "date_part"
    if type_ not in (Type.DATE, Type.TIMESTAMP) or (is_year and unit != "year"):
        return _Within(value, spans)
    end = _NUMBERS[type_][2]
    starts = tuple((_first(low, value, unit, type_), _first(high, value, unit, type_)) for low, high in spans)
    return _of_argument(argument, _joined(tuple((low, min(high, end)) for low, high in starts)))


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
        after = moved_by_months(start, _MONTHS[unit]) if unit in _MONTHS else start + _TIMES[unit]
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
        _of_whole_text(call("starts_with", text, literal(value)))
        if len(value) == most
        else _written(_read(call("eq", text, literal(value))))
        for value in values
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
