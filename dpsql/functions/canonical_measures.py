"""One form for measures that mean the same: a count and a sum of ones, FILTER and CASE, in the order of their texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from dpsql.functions.canonical_conditions import (
    EXACT_REALS,
    NO_VALUE,
    canonical_condition,
    filter_condition,
    in_canonical_form,
    needed,
    tested_for_null,
)
from dpsql.functions.kept_rows import name_of, named_rows, row_condition
from dpsql.functions.numeric import DECIMAL, nearest_decimal
from dpsql.functions.public_domains import domain_of
from dpsql.functions.signatures import call
from dpsql.plan.canonical_text import canonical_text, fingerprint
from dpsql.plan.intervals import Type
from dpsql.plan.measurements import RankHistogram
from dpsql.plan.plan import (
    Block,
    BoundedBlock,
    Call,
    Column,
    Expr,
    Filter,
    Join,
    Key,
    Literal,
    Measure,
    Relation,
    Term,
    TermKind,
    UnitAggregate,
    filled,
    literal,
)
from dpsql.plan.stability import flat, relations
from dpsql.storage.records import replace

TRUE, FALSE = literal(True), literal(False)


def with_canonical_conditions(block: Block) -> Block:
    """Return the block with every expression in its canonical form; the same object if nothing changes."""
    source, keys = in_canonical_form(block.source), in_canonical_form(block.keys)
    if any(isinstance(part, UnitAggregate) for part in relations(source)):
        source = filled(source, _of_units)
    measures = _sorted(map(canonical_measure, block.measures))
    same = source is block.source and keys is block.keys
    same = same and all(a is b for a, b in zip(measures, block.measures, strict=True))
    return block if same else replace(block, source=source, keys=keys, measures=measures)


def _sorted(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """Return measures in the order of their texts: that of the SELECT list is no other question. Counts and sums come first:
    sums that share each row then give counts with the smaller errors."""
    listed = tuple(measures)
    first = [measure for measure in listed if measure.aggregate in ("count", "sum")]
    remaining = [measure for measure in listed if measure.aggregate not in ("count", "sum")]
    if len(first) > 1 or len(remaining) > 1:
        common = set.intersection(*(set(_parts(measure.filter)) for measure in listed))
        for part in (first, remaining):
            if len(part) > 1:
                part.sort(key=partial(_name, common))
    return (*first, *remaining)


def _name(common: Collection[Expr], measure: Measure) -> str:
    """Return the text of a measure; whether `common` conditions stand in the FILTER of all, or in WHERE, has no part in it."""
    if common:
        measure = replace(measure, filter=_all([part for part in _parts(measure.filter) if part not in common]))
    return name_of(replace(measure, name=""))


def canonical_measure(measure: Measure) -> Measure:
    """Return a measure of canonical expressions, without a condition that is always true."""
    condition = None if measure.filter is None else _both(None, measure.filter)
    read = nearest_decimal if measure.distinct else _as_computed
    form = canonical_condition if measure.aggregate in ("count", "sum", *_OF_REALS) else _not_constant
    arguments = tuple(map(form, map(read, measure.arguments)))
    if measure.aggregate in _OF_REALS and not measure.distinct and measure.per_group is None:
        arguments = (_in_whole_numbers(arguments[0]),)
    if measure.aggregate == "sum" and condition is not None and condition == FALSE and measure.per_group is None:
        arguments, condition = (literal(0 if arguments[0].facts.type is Type.INTEGER else Fraction(0)),), None
    same = condition is measure.filter and all(a is b for a, b in zip(arguments, measure.arguments, strict=True))
    return without_case(measure if same else replace(measure, arguments=arguments, filter=condition))


_OF_REALS = ("avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp")
"""Aggregates whose result is real, whatever the numbers are."""

_SKIP_NULL = {"count", "count_distinct", "sum", "min", "max", "quantile_cont", "quantile_disc", "mode", *_OF_REALS}
"""Aggregates of one value that do not see rows where it is NULL."""


def without_case(measure: Measure) -> Measure:
    """Return f(x) FILTER (WHERE c) for f(CASE WHEN c THEN x END), wherever the CASE is written: in the call or in a subquery."""
    if not measure.arguments or measure.aggregate not in _SKIP_NULL:
        return measure
    value, condition = filter_of_case(measure.arguments[0], measure.filter)
    if value is measure.arguments[0]:
        return measure
    is_one = measure.aggregate == "count" and isinstance(value, Literal) and value.value is not None
    return replace(measure, arguments=() if is_one else (value, *measure.arguments[1:]), filter=condition)


def filter_of_case(value: Expr, condition: Expr | None) -> tuple[Expr, Expr | None]:
    """Return x, and `condition` and c, for the value CASE WHEN c THEN x END of rows that meet `condition`; else what is given."""
    while isinstance(value, Call) and value.function == "case" and len(value.arguments) == 3:
        chosen, result, other = value.arguments
        if isinstance(result, Literal) and result.value is None:
            is_true = call("is_true", chosen) if chosen.facts.nullable else chosen
            chosen, result, other = call("not", is_true), other, result
        if not isinstance(other, Literal) or other.value is not None or result.facts.type is not value.facts.type:
            break
        value, condition = result, _both(condition, chosen)
    return value, condition


def _of_units(part: Any) -> Any:
    """Return aggregates over the rows of each unit without the CASE that their value is, as in `without_case`."""
    if not isinstance(part, UnitAggregate):
        return part
    columns = tuple(
        (name, word, *(filter_of_case(value, condition) if value and word in _SKIP_NULL else (value, condition)), facts)
        for name, word, value, condition, facts in part.columns
    )
    return part if columns == part.columns else filled(replace(part, columns=columns), _of_units)


def _not_constant(value: Expr) -> Expr:
    """Return the canonical form of a value of rows that an aggregate chooses from; one that is a constant stays as it is written,
    because a constant has neither a list of values nor bounds."""
    form = canonical_condition(value)
    return value if isinstance(form, Literal) else form


def _as_computed(value: Expr) -> Expr:
    """Return a decimal without roundings to the nearest one: a subquery has them and a sum needs none (`sum_terms.in_steps`)."""
    if not isinstance(value, Call) or value.facts.scale is None:
        return value
    if value.function == "round" and nearest_decimal(value.arguments[0]) == value:
        return _as_computed(value.arguments[0])
    return call(value.function, *map(_as_computed, value.arguments)) if value.function in DECIMAL else value


def _in_whole_numbers(value: Expr) -> Expr:
    """Return a real that is always a whole number as one: CASE of 1.0 and 0, and x::DOUBLE of whole numbers within its bounds."""
    if isinstance(value, Literal):
        return _as_whole(value) or value
    if not isinstance(value, Call) or value.facts.type is not Type.REAL:
        return value
    if value.function == "to_real" and value.arguments[0].facts.type is Type.INTEGER:
        low, high = value.facts.lower, value.facts.upper
        return value.arguments[0] if low is not None and high is not None and max(-low, high) < EXACT_REALS else value
    if value.function != "case":
        return value
    *branches, other = value.arguments
    results = [whole for part in (*branches[1::2], other) if (whole := _as_whole(part)) is not None]
    if len(results) <= len(branches) // 2:
        return value
    pairs = zip(branches[::2], results[:-1], strict=True)
    return canonical_condition(call("case", *(part for pair in pairs for part in pair), results[-1]))


def _as_whole(value: Expr) -> Expr | None:
    if not isinstance(value, Literal) or value.value is None:
        return value if isinstance(value, Literal) else None
    is_whole = value.value == int(value.value) and abs(value.value) < EXACT_REALS
    return literal(int(value.value)) if is_whole else None


def with_counts(block: Block) -> Block:
    """Return the block with COUNT(*) FILTER (WHERE c) for SUM(CASE WHEN c THEN 1 ELSE 0 END), SUM(c::INTEGER) and the like, and
    with SUM(x) FILTER (WHERE c) for SUM(CASE WHEN c THEN x ELSE 0 END): a SUM over no rows is shown as 0 too. A sum that another
    aggregate reads (AVG) stays: it costs nothing more. The number of units, COUNT(*) FROM (SELECT DISTINCT unit FROM t), is
    COUNT(DISTINCT unit) FROM t."""
    shared = [measure.arguments for measure in block.measures if measure.aggregate not in ("sum", "count")]
    measures = tuple(m if m.arguments in shared else _chosen_sum(counted(m)) for m in block.measures)
    same = all(a is b for a, b in zip(measures, block.measures, strict=True))
    measures = block.measures if same else _sorted(measures)
    rows = block.source
    if isinstance(rows, UnitAggregate) and not rows.keys and not block.keys and all(map(_is_number_of_rows, measures)):
        of_units = (Measure(measure.name, "count_units", (), True, None) for measure in measures)
        return replace(block, source=rows.source, measures=tuple(of_units))
    return block if same else replace(block, measures=measures)


def _is_number_of_rows(measure: Measure) -> bool:
    return measure == Measure(measure.name, "count", (), False, None)


def _chosen_sum(measure: Measure) -> Measure:
    """Return SUM(x) FILTER (WHERE c) for a sum of x where c is true and of 0 for all else, and SUM(x) for SUM(COALESCE(x, 0)), if
    bounds of x change no 0."""
    value = measure.arguments[0] if measure.aggregate == "sum" and not measure.distinct else None
    chosen_of = {"case": 3, "coalesce": 2}
    if not isinstance(value, Call) or len(value.arguments) != chosen_of.get(value.function) or measure.per_group:
        return measure
    condition, chosen, other = value.arguments if value.function == "case" else (TRUE, *value.arguments)
    low, high = chosen.facts.lower, chosen.facts.upper
    bounded = low is not None and high is not None and low <= 0 <= high
    if not bounded or not isinstance(other, Literal) or other.value != 0 or chosen.facts.type is not value.facts.type:
        return measure
    return canonical_measure(replace(measure, arguments=(chosen,), filter=_both(measure.filter, condition)))


def _both(condition: Expr | None, other: Expr) -> Expr | None:
    both = filter_condition(other if condition is None else call("and", condition, other))
    return None if both == TRUE else both


def counted(measure: Measure) -> Measure:
    """Return COUNT(*) FILTER (WHERE c) for a sum of 1 where c is true and of 0 or NULL for all else; other measures stay."""
    if measure.aggregate != "sum" or measure.distinct or measure.per_group is not None:
        return measure
    condition = _indicated(measure.arguments[0])
    if condition is None:
        return measure
    return replace(measure, aggregate="count", arguments=(), filter=_both(measure.filter, condition))


def _indicated(value: Expr) -> Expr | None:
    """Return the condition for which a whole number is 1, if it is 0 or NULL for all else; None for other values."""
    if isinstance(value, Literal):
        return literal(value.value == 1) if type(value.value) is int and value.value in (0, 1) else None
    if not isinstance(value, Call) or value.facts.type is not Type.INTEGER:
        return None
    if value.function == "to_integer" and value.arguments[0].facts.type is Type.BOOLEAN:
        return value.arguments[0]
    if value.function != "case":
        return None
    conditions, chosen = value.arguments[:-1:2], (*value.arguments[1:-1:2], value.arguments[-1])
    numbers = [part.value if isinstance(part, Literal) else 2 for part in chosen]
    if numbers[:-1] == [1] * len(conditions) and numbers[-1] in (0, None):
        return conditions[0] if len(conditions) == 1 else call("or", *conditions)
    if numbers != [0, 1]:
        return None
    return call("not", call("is_true", conditions[0]) if conditions[0].facts.nullable else conditions[0])


# --- names of blocks ---


def named_block(block: BoundedBlock) -> BoundedBlock:
    """Return the block as the name of its release has it: conditions that keep the same rows are the same, those of all its terms
    (in FILTER, or as COUNT(x)) stand in WHERE, and those that the terms imply are left out (`x IS NOT NULL` beside AVG(x)). WHERE
    stays where it decides which groups there are, or which rows of a unit are kept."""
    block = named_rows(_with_first_of_equals(block))
    summed = {term.value for term in block.terms if term.kind is TermKind.SUM}
    block = replace(block, terms=tuple(_with_least_filter(term, summed) for term in block.terms))
    is_public = block.selection_term is None and all(key.values is not None for key in block.keys)
    adds_up = bool(block.terms or block.measurements) and all(type(m) is RankHistogram for m in block.measurements)
    return _filtered_once(block) if is_public and adds_up and not block.caps.bounds.drops_rows_by_group else block


def _with_first_of_equals(block: BoundedBlock) -> BoundedBlock:
    """Return the block with the first of two columns that an inner join sets equal in keys and conditions above the join. Sums
    keep theirs, by whose bounds they are clamped."""
    if not (firsts := _firsts(block.source)):
        return block

    def renamed(part: Any) -> Any:
        if isinstance(part, Call) and part.function == "eq" and len(set(map(renamed, part.arguments))) == 1:
            return replace(part)  # the equality of the join itself stays
        return firsts.get(part.name, part) if isinstance(part, Column) else part

    keys = tuple(_of_expression(key, filled(key.expression, renamed)) for key in block.keys)
    terms = tuple(replace(term, filter=filled(term.filter, renamed)) for term in block.terms)
    conditions, rows = list[Expr](), block.source
    while isinstance(rows, Filter):
        conditions.append(filled(rows.predicate, renamed))
        rows = rows.source
    for condition in reversed(conditions):
        rows = Filter(rows, condition)
    return replace(block, source=rows, keys=keys, terms=terms)


def _of_expression(key: Key, expression: Expr) -> Key:
    """Return a key of an equal expression where it has the same values, from which and from `left` the groups follow, in the
    order of that expression; otherwise the key itself."""
    values, renamed = domain_of(key.expression) or (), domain_of(expression) or ()
    if expression == key.expression or set(values) != set(renamed) or (key.values is None) != (not values):
        return key
    if not key.left:
        return replace(key, expression=expression, values=renamed or None)
    left = tuple(value for value in renamed if value in (key.values or ()))
    if key.left != fingerprint(key.values) or len(left) != len(key.values or ()):
        return key
    return replace(key, expression=expression, values=left, left=fingerprint(left))


def _firsts(relation: Relation) -> dict[str, Column]:
    """Return, by the names of columns, the first of those that inner joins set equal to them."""
    while isinstance(relation, Filter):
        relation = relation.source
    if not isinstance(relation, Join) or relation.kind != "inner":
        return {}
    firsts = {
        prefix + name: replace(first, name=prefix + first.name)
        for prefix, side in (("a.", relation.left), ("b.", relation.right))
        for name, first in _firsts(side).items()
    }
    for left, right in relation.keys:
        if (
            isinstance(left, Column)
            and isinstance(right, Column)
            and left.facts.type is right.facts.type is not Type.REAL
        ):
            firsts[right.name] = firsts.get(left.name, left)
    return firsts


def _with_least_filter(term: Term, summed: Collection[Expr | None]) -> Term:
    """Return COUNT(x) as COUNT(*) FILTER (WHERE x IS NOT NULL), except beside SUM(x) and where x may be NaN; with
    FILTER (WHERE FALSE) what reads NULL alone; and other terms without conditions that they imply."""
    if term.value is not None and NO_VALUE in needed(term.value):
        return replace(term, filter=literal(False))
    value = term.value if term.kind is TermKind.COUNT and term.value not in summed else None
    if value is not None and value.facts.type is not Type.REAL:
        present = filter_condition(call("not", call("is_null", value)))
        return replace(term, value=None, filter=_all([*_parts(term.filter), present]))
    if term.filter is None:
        return term
    return _with_filter(term, _without_implied(_parts(term.filter), [replace(term, filter=None)]))


def _filtered_once(block: BoundedBlock) -> BoundedBlock:
    """Return the block with the conditions that all terms have in WHERE, and with those there that no term implies."""
    source, measured = block.source, [measurement.term for measurement in block.measurements]
    inner, where = (source.source, _parts(source.predicate)) if isinstance(source, Filter) else (source, [])
    filters = [set(_parts(term.filter)) for term in (*block.terms, *measured)]
    common = set.intersection(*filters).difference(where)
    if common and (not measured or literal(False) in common):
        where += sorted(common, key=canonical_text)
    stated = set(where)
    terms = tuple(
        _with_filter(term, [part for part in _parts(term.filter) if part not in stated]) if filters[number] else term
        for number, term in enumerate(block.terms)
    )
    least = _without_implied(where, [*terms, *measured])
    if common or len(least) < len(where):
        condition = _all(least)
        source = inner if condition is None else Filter(inner, condition)
    return replace(block, source=source, terms=terms)


def _without_implied(parts: list[Expr], terms: list[Term]) -> list[Expr]:
    """Return conditions without x IS NOT NULL where without x a row adds nothing to each of the terms."""
    if all(tested_for_null(part) is None for part in parts):
        return parts
    needs = [set(_needed(term)) for term in terms]
    return [part for part in parts if not all(tested_for_null(part) in values for values in needs)]


def _needed(term: Term) -> Iterator[Expr]:
    """Yield the values without which a row adds nothing to a term."""
    if term.value is not None and not term.absent:
        yield from needed(term.value)
    for part in _parts(term.filter):
        yield from needed(part)
        if (tested := tested_for_null(part)) is not None:
            yield from needed(tested)


def _with_filter(term: Term, parts: list[Expr]) -> Term:
    return term if parts == _parts(term.filter) else replace(term, filter=_all(parts))


def _parts(condition: Expr | None) -> list[Expr]:
    return [] if condition is None else list(flat("and", (condition,)))


def _all(parts: Sequence[Expr]) -> Expr | None:
    return row_condition(filter_condition(call("and", *parts)) if len(parts) > 1 else parts[0]) if parts else None
