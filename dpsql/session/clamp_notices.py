"""Notices in EXPLAIN about values that the policy's bounds clamp: a value beyond them counts as the nearest bound."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from dpsql.aggregates.contract import aggregate_of
from dpsql.functions.sample_statistics import parts_of, statistic_of
from dpsql.functions.signatures import WrongArguments, call
from dpsql.plan.expression_text import column_texts, expression_text
from dpsql.plan.intervals import Facts, hull
from dpsql.plan.plan import (
    Call,
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
    Literal,
    Measure,
    Plan,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    Window,
)
from dpsql.plan.stability import parts
from dpsql.policy import Policy
from dpsql.privacy.loss import plain_decimal
from dpsql.release.shape import Clamp
from dpsql.storage.records import replace

_MOST_LINES = 5
_CLAMPED_OF_UNIT = ("sum", "avg")
"""Aggregates of one unit's rows that sum integers on a grid between the bounds of their argument."""
_COMPARISONS = {"lt": ("<", 1), "le": ("<=", 1), "gt": (">", -1), "ge": (">=", -1), "eq": ("=", 0), "in": ("=", 0)}
"""Comparisons of a column with a value: their sign, and the side of the bounds (below: -1) on which a value lets all pass."""
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
_VALUES_OF_ROWS = ("min", "max", "lag", "lead", "first_value")
"""Aggregates and windows of one unit's rows whose result is one of the stored values of their argument."""


Clamps = Mapping[tuple[str, str], tuple[Clamp, ...]]
"""What the policy's bounds clamp in the arguments of each measure, by the names of its block and its own."""


def clamps_of(plan: Plan, policy: Policy) -> Clamps:
    """Return the clamps of measures. Blocks that choose a bound on totals (`planning.total_cuts`) are left out: the sum itself
    names their values."""
    choosing = {cut.block for cut in plan.cuts}
    return {
        (block.name, measure.name): _clamps(_measured(measure, block.source), policy)
        for block in plan.blocks if block.name not in choosing for measure in block.measures
    }  # fmt: skip


def clamp_notices(plan: Plan, policy: Policy, clamps: Clamps) -> tuple[str, ...]:
    """Return notices of values that would count as the policy's bounds in sums, means, and choices among values.

    The notices follow only from policy and text: whether such values exist must not be revealed. Bounds that follow from the
    question, such as those of CASE with two numbers, clamp nothing and are not named.
    """
    choosing = {cut.block for cut in plan.cuts}
    notices = dict.fromkeys(
        clamp.sentence
        for block in plan.blocks if block.name not in choosing
        for clamp in (
            *(clamp for measure in block.measures for clamp in clamps[block.name, measure.name]),
            *_clamps(_summed_within(block.source), policy),
        )
    )  # fmt: skip
    lines = list(notices)
    more = len(lines) - _MOST_LINES
    return (
        *lines[:_MOST_LINES],
        *([f"{more} more expressions are kept within the policy's bounds"] if more > 0 else []),
    )


def bound_notices(plan: Plan, policy: Policy) -> tuple[str, ...]:
    """Return notices of comparisons with a number or day outside of the policy's bounds of a column. No value within the bounds
    passes them, or every one does; rows may still be beyond their bounds, which are no promise about them."""
    compared = (
        notice
        for block in plan.blocks
        for condition, relation in _conditions(block.measures, [key.expression for key in block.keys], block.source)
        for notice in _outside(condition, relation, policy)
    )
    return tuple(dict.fromkeys(compared))[:_MOST_LINES]


def _conditions(
    measures: tuple[Measure, ...], keys: Iterable[Expr], source: Relation
) -> Iterator[tuple[Expr, Relation]]:
    """Yield the expressions of a block in which a column may be compared, with the relation of their columns."""
    for expression in (*(part for measure in measures for part in (*measure.arguments, measure.filter)), *keys):
        if expression is not None:
            yield expression, source
    if isinstance(source, Filter):
        yield source.predicate, source.source
    elif isinstance(source, Project):
        yield from ((expression, source.source) for _, expression in source.columns)
    for below in parts(source):
        yield from _conditions((), (), below)


def _outside(condition: Expr, relation: Relation, policy: Policy) -> Iterator[str]:
    if not isinstance(condition, Call):
        return
    column, *values = condition.arguments or (condition,)
    function = condition.function
    if isinstance(column, Literal) and len(values) == 1 and function in _TURNED:
        function, column, values = _TURNED[function], values[0], [column]
    if function in _COMPARISONS and isinstance(column, Column) and column.facts.bounded:
        stored = _column(column, relation, policy)
        if isinstance(stored, Column) and not stored.facts.bounded:  # a column of a protected table as it is
            word, side_passed = _COMPARISONS[function]
            for value in values:
                side = _side(value, column.facts)
                if side:
                    which = "every value" if side == side_passed else "no value"
                    lower, upper = _end_text(column.facts.lower), _end_text(column.facts.upper)
                    yield (
                        f"{stored.name} {word} {expression_text(value)}: {which} within the policy's bounds of {stored.name}"
                        f" ({lower} to {upper}) passes; bounds are no promise about rows, which may lie beyond them"
                    )
    for argument in condition.arguments:
        yield from _outside(argument, relation, policy)


def _side(value: Expr, facts: Facts) -> int:
    """Return -1 for a number or day below the bounds, 1 for one above them, 0 for any other expression."""
    if not isinstance(value, Literal) or not (facts.type.numeric or facts.type.temporal):
        return 0
    number = value.facts.lower if facts.type.numeric else value.value
    if number is None or (facts.type.temporal and type(number) is not type(facts.lower)):
        return 0
    return -1 if number < facts.lower else int(number > facts.upper)


def _end_text(end: Any) -> str:
    return plain_decimal(Fraction(end)) if isinstance(end, (int, Fraction)) else str(end)


def _clamps(values: Iterable[tuple[Expr, Relation]], policy: Policy) -> tuple[Clamp, ...]:
    clamps = (_clamp(value, _stored(value, source, policy)) for value, source in values)
    return tuple(clamp for clamp in clamps if clamp is not None)


def _measured(measure: Measure, source: Relation) -> Iterator[tuple[Expr, Relation]]:
    """Yield the values that a measure of a block clamps, with the relation over which they are computed."""
    if not aggregate_of(measure.aggregate).counts:
        for argument in measure.arguments:
            for value in _of_samples(argument):
                yield value, source


def _of_samples(argument: Expr) -> Iterator[Expr]:
    """Yield the values that statistics of samples sum; yield an argument without statistics unchanged."""
    statistics = list(_statistics(argument))
    if not statistics:
        yield argument
    for statistic_call in statistics:
        statistic = statistic_of(statistic_call)
        if statistic is not None and statistic.power:
            yield from parts_of(statistic_call)[0]


def _statistics(expression: Expr) -> Iterator[Call]:
    if statistic_of(expression) is not None:
        assert isinstance(expression, Call)
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _statistics(argument)


def _summed_within(relation: Relation) -> Iterator[tuple[Expr, Relation]]:
    """Yield the values that exact sums of one unit's rows clamp, anywhere in a relation."""
    for below in parts(relation):
        yield from _summed_within(below)
    if isinstance(relation, UnitAggregate):
        for _, word, argument, _, _ in relation.columns:
            if word in _CLAMPED_OF_UNIT and argument is not None:
                yield argument, relation.source
    elif isinstance(relation, UnitWindow):
        for window in relation.windows:
            if window.word in _CLAMPED_OF_UNIT and window.argument is not None:
                yield window.argument, relation.source


def _clamp(value: Expr, stored: Expr) -> Clamp | None:
    """Return how values of `stored` are clamped to the bounds of `value`; None if there can be none beyond them."""
    facts, without = value.facts, stored.facts
    if not (facts.type.numeric or facts.type.temporal) or not facts.bounded:
        return None
    lower, upper = (
        end if end != other else None for end, other in ((facts.lower, without.lower), (facts.upper, without.upper))
    )
    if lower is None and upper is None:
        return None
    width = float(facts.upper - facts.lower) if facts.type.numeric else math.inf
    return Clamp(expression_text(stored), lower, upper, width)


def _stored(expression: Expr, relation: Relation, policy: Policy) -> Expr:
    """Return an expression over the columns of tables, with its facts if these columns may be beyond their bounds."""
    if isinstance(expression, Column):
        return _column(expression, relation, policy)
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(_stored(argument, relation, policy) for argument in expression.arguments)
    try:
        return call(expression.function, *arguments)
    except (WrongArguments, KeyError):
        return replace(expression, arguments=arguments)


def _column(column: Column, relation: Relation, policy: Policy) -> Expr:
    """Return a column of a relation as an expression over the columns of tables."""
    if isinstance(relation, Scan):
        return replace(column, facts=_unbounded(column.facts)) if policy.is_protected(relation.table) else column
    if isinstance(relation, Join):
        side = relation.left if column.name.startswith("a.") else relation.right
        return _column(replace(column, name=column.name[2:]), side, policy)
    if isinstance(relation, SemiJoin):
        return _column(column, relation.left, policy)
    if isinstance(relation, (Filter, Distinct)):
        return _column(column, relation.source, policy)
    if isinstance(relation, Project):
        return _stored(dict(relation.columns)[column.name], relation.source, policy)
    if isinstance(relation, Union_):
        sides = [_of_position(column, relation, source, policy) for source in relation.sources]
        return replace(sides[0], facts=hull([side.facts for side in sides], column.facts.type))
    if isinstance(relation, UnitWindow):
        window = next((window for window in relation.windows if window.name == column.name), None)
        return _column(column, relation.source, policy) if window is None else _of_window(window, relation, policy)
    if isinstance(relation, UnitAggregate):
        return _of_unit(column, relation, policy)
    return replace(column, name=column_texts(relation).get(column.name, column.name))


def _of_position(column: Column, union: Union_, source: Relation, policy: Policy) -> Expr:
    """Return a column of a UNION ALL as an expression over one of its sources, in which it has the same position."""
    first = union.sources[0]
    if not isinstance(first, Project) or not isinstance(source, Project):
        return column
    place = [name for name, _ in first.columns].index(column.name)
    return _stored(source.columns[place][1], source.source, policy)


def _of_unit(column: Column, relation: UnitAggregate, policy: Policy) -> Expr:
    """Return a column of an aggregation by unit, key or aggregate, as an expression over the columns of tables."""
    keys = dict(relation.keys)
    if column.name in keys:
        return _stored(keys[column.name], relation.source, policy)
    if (value := relation.value(column.name)) is not None:
        return _stored(value, relation.source, policy)
    for name, word, argument, _, _ in relation.columns:
        if name == column.name:
            return _value_of_rows(column, word, argument, relation.source, policy)
    return column


def _of_window(window: Window, relation: UnitWindow, policy: Policy) -> Expr:
    column = Column(window.name, window.facts)
    return _value_of_rows(column, window.word, window.argument, relation.source, policy)


def _value_of_rows(column: Column, word: str, argument: Expr | None, below: Relation, policy: Policy) -> Expr:
    """Return a call of `word` with the facts of its argument if the result is one of the argument's values; else with the
    facts of `column`, whose bounds hold."""
    if argument is None:
        return Call(word, (), column.facts)
    stored = _stored(argument, below, policy)
    return Call(word, (stored,), stored.facts if word in _VALUES_OF_ROWS else column.facts)


def _unbounded(facts: Facts) -> Facts:
    return replace(facts, lower=None, upper=None, values=None)
