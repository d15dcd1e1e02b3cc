"""Aggregates inside a private block: sqlglot nodes become measures, whose arguments must be bounded as each aggregate needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from sqlglot import exp

from dpsql.aggregates.contract import Aggregate, Arguments, aggregate_of, spelled
from dpsql.aggregates.moments import can_be_missing
from dpsql.errors.exceptions import refuse
from dpsql.functions.canonical_measures import filter_of_case, without_case
from dpsql.functions.numeric import call
from dpsql.functions.sample_statistics import SPELLED
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Block, Column, Distinct, Expr, Measure, Relation, UnitAggregate, literal
from dpsql.plan.stability import owned, parts, rows_per_unit
from dpsql.policy import Policy
from dpsql.privacy.loss import exact_number
from dpsql.sql.binder.equal_keys import kind
from dpsql.sql.binder.quantiles import (
    bind_end_row,
    bind_mode,
    bind_quantile,
    bind_sample_aggregate,
    check_bounded,
    counted,
    operands_of,
    spelling,
)
from dpsql.sql.binder.scalars import MissingArgument, Scalars, moments_of
from dpsql.sql.binder.scope import Kind, lacks_argument, only, sql_text, sql_word, wrong_call
from dpsql.sql.lexer import place
from dpsql.sql.rewrites.bigquery import PER_GROUP
from dpsql.storage.records import dataclass, replace

# --- bounds and least numbers of privacy units in each group ----------------------------------------------------------
# Aggregates with contribution_bounds_per_group => (low, high): each unit's contribution to a group is clamped to both.
#
# The rows of a unit in a group first become one row (`UnitAggregate`, by the unit and the query's keys), whose value is
# the unit's sum, count or average there. It is clamped to the bounds, and summed (averages: averaged) over units. A
# unit has at most one such row in a group of the answer, so it changes the group's sum by at most max(|low|, |high|),
# however many rows it has; pricing learns this from `stability.rows_in_group`. Everything else is as in the same query
# written with GROUP BY the unit's key in FROM: its relation, clamp and sums.
#
# By the rule `min_units`, groups that too few privacy units share are not shown. Every SELECT that aggregates protected
# rows also measures the number of units in each group, COUNT(DISTINCT unit), with noise and at its usual price, and its
# groups are filtered by that released number as by HAVING. So the rule is a function of released numbers and needs no
# separate privacy argument: differential privacy is closed under post-processing (Dwork and Roth, The Algorithmic
# Foundations of Differential Privacy, 2014, Proposition 2.1). Private keys are admitted by a threshold tau on the same
# noisy number (`partition_selection.Threshold`), so that they are shown from max(tau, min_units) on.
#
# Under row privacy, rows are the units, and the rows of a group are counted. (A row of SELECT DISTINCT then represents
# at least one unit.) Under entity privacy, the owner of a row of SELECT DISTINCT is unknown, so that is refused.

_OVER_UNITS = {"sum": "sum", "count": "sum", "avg": "avg"}
"""Aggregates over units that combine the results of single units, keyed by the aggregate within a unit."""
_EXAMPLE = "SUM(x, contribution_bounds_per_group => (0, 100))"


def within_group_bounds(measure: Measure, node: exp.Expr, bounds: exp.Tuple, per_unit: bool) -> Measure:
    """Return the measure of a call with both bounds. Refuses (group_bounds) other aggregates than SUM, COUNT and AVG."""
    position = place(node)
    if per_unit:
        reason, hint = "these are the rows of one unit already", "write clamp(SUM(x), 0, 100)"
        raise refuse("group_bounds", reason=reason, way=hint, position=position)
    if measure.aggregate not in _OVER_UNITS or measure.distinct:
        reason = "an aggregate of distinct values is not made of what single units add"
        raise refuse("group_bounds", reason=reason, way="leave DISTINCT or the bounds out", position=position)
    low, high = (_number(part) for part in bounds.expressions)
    if low > high:
        raise refuse("group_bounds", reason="the lower bound stands first", way=f"write {_EXAMPLE}", position=position)
    whole = low.denominator == high.denominator == 1
    ends = (int(low), int(high)) if whole else (low, high)
    literals = [literal(end) for end in ends]
    return replace(measure, per_group=(literals[0], literals[1]))


def _number(node: exp.Expr) -> Fraction:
    """Return the number of a literal with any minus signs in front of it."""
    if isinstance(node, exp.Neg):
        return -_number(node.this)
    text = str(node.this).replace("_", "")
    try:
        number = exact_number(text)
    except ValueError:
        raise refuse("bad_number", text=text, position=place(node)) from None
    if abs(number) >= 2**63:
        raise refuse("bad_number", text=text, position=place(node))
    return number


def of_units(block: Block, policy: Policy, position: int | None) -> Block:
    """Return the block over one row for each unit and group if a measure has bounds per group, else the block itself.

    Refuses (group_bounds) rows that belong to no unit. Of measures without bounds, only the number of units may accompany them.
    """
    if all(measure.per_group is None for measure in block.measures):
        return block
    if policy.privacy_unit is None and rows_per_unit(block.source, policy) == 1 and not _has_distinct(block.source):
        return replace(block, measures=tuple(_of_row(measure, position) for measure in block.measures))
    if not owned(block.source, policy):
        reason, hint = "these rows belong to no unit", "write clamp(x, low, high), which bounds each row"
        raise refuse("group_bounds", reason=reason, way=hint, position=position)
    most = rows_per_unit(block.source, policy)
    columns: list[tuple[str, str, Expr | None, Expr | None, Facts]] = []
    measures = []
    for measure in block.measures:
        if measure.per_group is None:
            if measure.aggregate != "count_units" or measure.filter is not None:
                reason = "another aggregate of this SELECT has no such bounds"
                hint = "give all of them bounds, COUNT(*, contribution_bounds_per_group => (0, 10)) too, or ask apart"
                raise refuse("group_bounds", reason=reason, way=hint, position=position)
            measures.append(measure)
            continue
        of_unit = aggregate_of(measure.aggregate).of_unit
        assert of_unit is not None
        facts = of_unit(measure, most)
        name = f"a{len(columns)}"
        argument = measure.arguments[0] if measure.arguments else None
        columns.append((name, measure.aggregate, argument, measure.filter, facts))
        value = call("clamp", Column(name, facts), *measure.per_group)
        measures.append(Measure(measure.name, _OVER_UNITS[measure.aggregate], (value,), False, None))
    keys = tuple((f"g{number}", key.expression) for number, key in enumerate(block.keys))
    source = UnitAggregate(block.source, keys, tuple(columns))
    of_keys = tuple(
        replace(key, expression=Column(name, key.expression.facts))
        for key, (name, _) in zip(block.keys, keys, strict=True)
    )
    return replace(block, source=source, keys=of_keys, measures=tuple(measures))


def _has_distinct(relation: Relation) -> bool:
    return isinstance(relation, Distinct) or any(map(_has_distinct, parts(relation)))


def _of_row(measure: Measure, position: int | None) -> Measure:
    """Return a measure whose bounds per group bound single rows, because each row is a unit of its own. Refuses (group_bounds)
    bounds that change what a row adds to a count."""
    if measure.per_group is None:
        return measure
    low, high = measure.per_group
    if measure.aggregate == "count":
        if not low.value <= 1 <= high.value:
            reason, hint = "a row adds 1 to a count", "write bounds with 1 between them"
            raise refuse("group_bounds", reason=reason, way=hint, position=position)
        return replace(measure, per_group=None)
    return replace(measure, arguments=(call("clamp", measure.arguments[0], low, high),), per_group=None)


_UNITS = Measure("", "count_units", (), True, None)
_ROWS = Measure("", "count", (), False, None)


def with_unit_count(
    select: exp.Select, source: Relation, measures: Sequence[Measure], least: int, policy: Policy, position: int | None
) -> tuple[Measure, ...]:
    """Return `measures` including a count of the units of a group, and add to `select` (over the block) the condition that this
    count is at least `least`. Refuses (min_units) rows that belong to no unit."""
    if policy.privacy_unit is not None and not owned(source, policy):
        raise refuse("min_units", reason="nothing says whose rows of SELECT DISTINCT are", position=position)
    counted = _ROWS if policy.privacy_unit is None else _UNITS
    name = next((entered.name for entered in measures if replace(counted, name=entered.name) == entered), "")
    if not name:
        name = f"m{len(measures)}"
        measures = (*measures, replace(counted, name=name))
    condition: exp.Expr = exp.GTE(this=exp.column(name, quoted=True), expression=exp.Literal.number(least))
    if (where := select.args.get("where")) is not None:
        condition = exp.And(this=exp.Paren(this=where.this), expression=condition)
    select.set("where", exp.Where(this=condition))
    return tuple(measures)


# --- aggregates inside a private block --------------------------------------------------------------------------------

_LISTS = (exp.ArrayAgg, exp.GroupConcat, exp.JSONObjectAgg)
LEAKING = (*_LISTS, exp.AnyValue, exp.First, exp.Last)


def function_name(spelling: str) -> str:
    """Return the SQL name of the aggregate registered under `spelling`."""
    if spelling[0].islower():
        return spelling
    call = getattr(exp, spelling)(this=exp.column("x"))
    return str(call.sql(dialect="duckdb")).split("(", maxsplit=1)[0].lower()


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is an aggregate call (with or without FILTER or WITHIN GROUP)."""
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return is_aggregate(node.this)
    if isinstance(node, exp.Anonymous):
        return spelled(spelling(node)) is not None
    return isinstance(node, exp.AggFunc) and not isinstance(node, exp.Grouping)


def in_aggregate(node: exp.Expr, select: exp.Select) -> bool:
    """Return whether a part of a SELECT is inside an argument of an aggregate, or inside a subquery."""
    around = node.parent
    while around is not None and around is not select:
        if is_aggregate(around) or isinstance(around, exp.Query):
            return True
        around = around.parent
    return False


def counts_rows(node: exp.Expr) -> bool:
    """Return whether an aggregate call is 0 over no rows; every other aggregate is NULL there."""
    if isinstance(node, (exp.Filter, exp.WithinGroup)):
        return counts_rows(node.this)
    entry = spelled(spelling(node))
    return entry is not None and entry[0].counts


WHOLE = "whole"
"""The mark of `mark_whole` in the metadata of a SELECT."""


def aggregates(node: exp.Select) -> bool:
    """Return whether a SELECT groups rows: GROUP BY, DISTINCT, HAVING, or an aggregate outside windows and subqueries."""
    return any(node.args.get(clause) is not None for clause in ("group", "distinct", "having")) or measures(node)


def measures(node: exp.Select) -> bool:
    """Return whether a SELECT has an aggregate in its outputs or ORDER BY, outside windows and subqueries."""
    order = node.args.get("order")
    return any(has_aggregate(part) for part in [*node.expressions, *(order.expressions if order else [])])


def mark_whole(query: exp.Expr, entries: dict[str, exp.Expr] | None = None) -> None:
    """Mark the SELECTs whose groups a statement shows and does not aggregate again: itself, sides of set operations, and what the
    FROM of such a SELECT names. `entries`: those of WITH that are not marked yet (None: all)."""
    entries = {entry.alias.lower(): entry.this for entry in query.find_all(exp.CTE)} if entries is None else entries
    query = query.unnest()
    query.meta[WHOLE] = True
    sides = [query.this, query.expression] if isinstance(query, exp.SetOperation) else []
    if isinstance(query, exp.Select) and not aggregates(query):
        clauses = [query.args.get("from_"), *(query.args.get("joins") or ())]
        sources = [clause.this for clause in clauses if clause is not None]
        named = [
            entries.pop(source.name.lower(), None)
            for source in sources
            if isinstance(source, exp.Table) and not source.db
        ]
        sides = [*filter(None, named), *(source for source in sources if isinstance(source, exp.Subquery))]
    for side in sides:
        mark_whole(side, entries)


def has_aggregate(node: exp.Expr) -> bool:
    """Return whether an expression contains an aggregate, outside of subqueries; in a window, the window's function itself does
    not count, only its arguments, PARTITION BY and ORDER BY."""
    if isinstance(node, (exp.Subquery, exp.Select, exp.SetOperation)):
        return False
    if isinstance(node, exp.Window):
        function, inside = node.this, list[exp.Expr]()
        while isinstance(function, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
            inside += [function.expression] if isinstance(function, exp.Filter) else []
            function = function.this
        inside += function.iter_expressions()
        inside += [part for name in ("partition_by", "order") for part in _listed(node.args.get(name))]
        return any(has_aggregate(part) for part in inside)
    return is_aggregate(node) or any(has_aggregate(part) for part in node.iter_expressions())


def _listed(value: object) -> list[exp.Expr]:
    return value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []


def bind_measure(name: str, node: exp.Expr, scalars: Scalars, per_unit: bool = False) -> Measure:
    """Return the measure of an aggregate call. Refuses aggregates and arguments that are not bounded.

    `per_unit`: inside a per-unit aggregation, where MIN and MAX of any value are exact functions of the unit's rows.
    """
    try:
        return _measure(name, node, scalars, per_unit)
    except MissingArgument:
        raise lacks_argument(node) from None


@dataclass(frozen=True)
class _Call:
    """A call of an aggregate to be bound. `operands`: its arguments in the order of the text."""

    name: str
    node: exp.Expr
    operands: tuple[exp.Expr, ...]
    aggregate: Aggregate
    scalars: Scalars
    condition: Expr | None
    per_unit: bool


def _measure(name: str, node: exp.Expr, scalars: Scalars, per_unit: bool) -> Measure:
    condition: Expr | None = None
    inner = node
    if isinstance(inner, exp.Filter):
        only(inner, "this", "expression")
        condition = scalars.boolean(inner.expression.this)
        inner = inner.this
    bounds = inner.args.get(PER_GROUP)
    if bounds is not None:
        inner = type(inner)(**{slot: part for slot, part in inner.args.items() if slot != PER_GROUP})
    entry = spelled(spelling(inner.this if isinstance(inner, exp.WithinGroup) else inner))
    if entry is None or (isinstance(inner, exp.WithinGroup) and entry[1] is not Arguments.QUANTILE):
        raise _unknown(inner.this if isinstance(inner, exp.WithinGroup) else inner)
    aggregate, arguments = entry
    call = _Call(name, inner, operands_of(inner), aggregate, scalars, condition, per_unit)
    measure = without_case(RULES[arguments](call))
    return measure if bounds is None else within_group_bounds(measure, node, bounds, per_unit)


def _value(inner: exp.Expr) -> exp.Expr | None:
    """Return the argument whose NULLs a call skips, x in f(x), f(DISTINCT x) and f(q) WITHIN GROUP (ORDER BY x); else None."""
    value = inner.expression if isinstance(inner, exp.WithinGroup) else inner.this
    if isinstance(value, (exp.Order, exp.Distinct)):
        value = value.expressions[0] if len(value.expressions) == 1 else None
    value = value.this if isinstance(value, exp.Ordered) else value
    return value if isinstance(value, exp.Expr) else None


def _only_branch(value: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """Return condition and value of CASE WHEN condition THEN value [ELSE NULL] END, or of IF with two arguments; else None."""
    if isinstance(value, exp.Case) and value.this is None and len(value.args["ifs"]) == 1:
        choice, other = value.args["ifs"][0], value.args.get("default")
    elif isinstance(value, exp.If):
        choice, other = value, value.args.get("false")
    else:
        return None
    if other is not None and not isinstance(other.unnest(), exp.Null):
        return None
    return choice.this, choice.args["true"]


_OF_INTERVALS = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.WithinGroup, exp.Quantile, exp.ApproxQuantile,
                 exp.PercentileCont, exp.PercentileDisc)  # fmt: skip


def in_seconds(node: exp.Expr, scalars: Scalars) -> exp.Expr | None:
    """Return AVG(EXTRACT(EPOCH FROM s - t)) for AVG(s - t) of timestamps, and the like; None for other aggregates."""
    value = _interval(node)
    if value is None or moments_of(scalars, value) is None:
        return None
    copied = node.copy()
    value = _interval(copied)
    assert value is not None
    value.replace(exp.Extract(this=exp.var("EPOCH"), expression=value.copy()))
    return copied


def _interval(node: exp.Expr) -> exp.Expr | None:
    """Return the value that an aggregate reads if it is one of `_OF_INTERVALS`."""
    call = node.this if isinstance(node, exp.Filter) else node
    value = _value(call) if isinstance(call, _OF_INTERVALS) else None
    while value is not None and (branch := _only_branch(value.unnest())) is not None:
        value = branch[1]
    return value


OF_ONE_PERSON = "COUNT, SUM, AVG, MIN and MAX are computed for each person"
"""Hint where another aggregate is asked for over the rows of one privacy unit."""


def _unknown(node: exp.Expr, where: str = "") -> Exception:
    if isinstance(node, LEAKING):
        hint = (
            None
            if isinstance(node, _LISTS)
            else "MODE(x) is the most frequent of few values, QUANTILE_DISC(x, 0.5) the middle"
        )
        return refuse("row_list", function=f"{sql_word(node)}{where}", position=place(node), hint=hint)
    hint = OF_ONE_PERSON if where else None
    if not where and spelling(node) in SPELLED:
        hint = (
            f"SAMPLE_AGGREGATE({node.sql('duckdb')}, lower, upper) is the median of it over samples of the rows, between "
            "bounds that you give; `dpsql help sql` has more"
        )
    return refuse("unknown_aggregate", function=f"{sql_word(node)}{where}", position=place(node), hint=hint)


# --- a rule for each way of reading arguments -----------------------------------------------------------------------


def _rows(call: _Call) -> Measure:
    """Return the measure of COUNT(*), COUNT(x) or COUNT(DISTINCT x). With the unit's key as x, each unit counts once."""
    value, distinct = counted(call.node)
    if value is None:
        return Measure(call.name, "count", (), False, call.condition)
    if isinstance(value, exp.Column) and isinstance(value.this, exp.Star) and not distinct:
        hint = f"COUNT(*) counts rows; beside an outer join, COUNT({value.table}.its_key) counts those of one table"
        raise refuse("raw_rows", position=place(value), hint=hint)
    argument, condition = filter_of_case(call.scalars.bind(value), call.condition)
    if not distinct:
        arguments = (argument,) if can_be_missing(argument) else ()
        return Measure(call.name, "count", arguments, False, condition)
    unit_kind = kind(argument, call.scalars.scope)
    if unit_kind is Kind.PARTIAL:
        present = call.scalars.call("not", call.node, call.scalars.call("is_null", call.node, argument))
        condition = present if condition is None else call.scalars.call("and", call.node, condition, present)
    if unit_kind >= Kind.PARTIAL:
        return Measure(call.name, "count_units", (), True, condition)
    return Measure(call.name, "count_distinct", (argument,), True, condition)


def _counted_condition(call: _Call) -> Measure:
    only(call.node, "this")
    condition = call.scalars.boolean(call.node.this)
    if call.condition is not None:
        condition = call.scalars.call("and", call.node, call.condition, condition)
    return Measure(call.name, call.aggregate.word, (), False, condition)


def _condition(call: _Call) -> Measure:
    only(call.node, "this")
    return Measure(call.name, call.aggregate.word, (call.scalars.boolean(call.node.this),), False, call.condition)


def _unit_value(call: _Call) -> Measure:
    if not call.per_unit:
        return bind_quantile(call.name, "quantile_disc", call.node, call.scalars, call.condition)
    only(call.node, "this")
    return Measure(call.name, call.aggregate.word, (call.scalars.bind(call.node.this),), False, call.condition)


def _quantile(call: _Call) -> Measure:
    if call.per_unit:
        raise _unknown(
            call.node.this if isinstance(call.node, exp.WithinGroup) else call.node, " over one person's rows"
        )
    return bind_quantile(call.name, call.aggregate.word, call.node, call.scalars, call.condition)


def _among_rows(bind: Callable[..., Measure]) -> Callable[[_Call], Measure]:
    """Return the rule of an aggregate that cannot be computed exactly over the rows of one unit."""

    def rule(call: _Call) -> Measure:
        if call.per_unit:
            raise _unknown(call.node, " over one person's rows")
        return bind(call.name, call.aggregate.word, call.node, call.scalars, call.condition)

    return rule


def _numbers(call: _Call, count: int) -> Measure:
    """Return the measure of an aggregate of `count` numbers. Refuses numbers without known bounds."""
    word, node = call.aggregate.word.upper(), call.node
    if not isinstance(node, exp.Anonymous):
        only(node, "this", "expression")
    operands, distinct = call.operands, bool(call.operands) and isinstance(call.operands[0], exp.Distinct)
    if distinct:
        only(operands[0], "expressions")
        if not call.aggregate.distinct or count != 1 or len(operands) != 1 or len(operands[0].expressions) != 1:
            raise refuse("sum_distinct", function=word, position=place(node))
        operands = tuple(operands[0].expressions)
    if not operands:
        raise MissingArgument
    arguments = tuple(_as_number(call, part) for part in operands[:count])
    if len(operands) != count:
        raise wrong_call(word, f"takes {count} argument{'s' if count > 1 else ''}", node)
    for argument, part in zip(arguments, operands, strict=True):
        if not argument.facts.type.numeric:
            raise wrong_call(word, f"takes numbers, not {argument.facts.type.value}", part)
        check_bounded(word, argument, part, call.scalars)
    return Measure(call.name, call.aggregate.word, arguments, distinct, call.condition)


def _as_number(call: _Call, part: exp.Expr) -> Expr:
    """Return a numeric argument; SUM, and no other aggregate, counts a condition as 1 if true and 0 if false, as in DuckDB."""
    argument, word = call.scalars.bind(part), call.aggregate.word.upper()
    if argument.facts.type is not Type.BOOLEAN:
        return argument
    if word != "SUM":
        reason, hint = "takes numbers, not boolean", f"write {word}(CAST({sql_text(part)} AS INTEGER))"
        raise wrong_call(word, reason, part, hint=hint)
    return call.scalars.call("to_integer", part, argument)


RULES: dict[Arguments, Callable[[_Call], Measure]] = {
    Arguments.ROWS: _rows,
    Arguments.CONDITION: _condition,
    Arguments.COUNTED_CONDITION: _counted_condition,
    Arguments.NUMBER: lambda call: _numbers(call, 1),
    Arguments.PAIR: lambda call: _numbers(call, 2),
    Arguments.UNIT_VALUE: _unit_value,
    Arguments.QUANTILE: _quantile,
    Arguments.MODE: _among_rows(bind_mode),
    Arguments.END_ROW: _among_rows(bind_end_row),
    Arguments.SAMPLES: _among_rows(bind_sample_aggregate),
}
