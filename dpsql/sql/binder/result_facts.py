"""Facts about a result before it is released: types and intervals of its columns, and which of them are unique.

All of them follow from the text and the policy, so that neither the plan nor the price of a later block depends on
released numbers. Only a join can multiply rows in the remainder, and its nodes are listed (`allow_list`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from itertools import product

from sqlglot import exp

from dpsql.aggregates.contract import aggregate_of, spelled
from dpsql.errors.exceptions import Error, refuse
from dpsql.functions.canonical_conditions import filter_condition
from dpsql.functions.public_domains import domain_of
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Facts, Type, hull
from dpsql.plan.plan import Call, Column, Expr, Key, Literal, Measure, ReleasedRows, literal, names_read
from dpsql.sql.binder.aggregates import has_aggregate
from dpsql.sql.binder.quantiles import spelling
from dpsql.sql.binder.scalars import WHOLE, Scalars
from dpsql.sql.binder.scope import Protected, Released, Scope, using
from dpsql.sql.binder.trees import SQL_TYPES, condition_of, conjuncts, is_constantly_false, literal_limit, rebuild
from dpsql.sql.lexer import place
from dpsql.storage.records import dataclass, replace

Sources = Sequence[tuple[str, Released]]
Unique = frozenset[frozenset[int]]
ONE_ROW: Unique = frozenset({frozenset()})
MOST_UNIQUE = 16
_RANKING = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
_REAL = (exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentRank, exp.CumeDist)
_SELECTING = (exp.AnyValue, exp.First, exp.Last, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
"""Functions over results that return one of their argument's values."""


@dataclass(frozen=True)
class Output:
    """One column of a SELECT over results: its facts (None: not known), the name of the source column that it repeats unchanged
    (empty: none), and whether it is `exact` as in `Released`."""

    facts: Facts | None
    origin: str = ""
    exact: bool = False


# --- facts ----------------------------------------------------------------------------------------------------------


def key_facts(key: Key, listed: bool = True) -> Facts:
    """Return the facts of a released group key. With `listed`, public keys keep their list, so that they are public keys again.

    The policy's bound on a unit's total (`max_total`) is dropped: it does not hold for a result.
    """
    facts = replace(key.expression.facts, max_total=None)
    if not listed:
        return replace(facts, values=None, nullable=True)
    computed = isinstance(key.expression, Call)
    if key.values is None:
        return replace(facts, values=None) if computed else facts
    nullable = None in key.values
    whole = not computed and facts.size() == len(key.values) - nullable
    return replace(facts, values=facts.values if whole else key.values, nullable=nullable)


def scope_of(sources: Sources, merged: frozenset[str], preserved: Mapping[str, str]) -> Scope:
    """Return the scope of results, in which "n.m" is column m of source n. Columns of unknown type cannot be named."""
    named = [(alias, visible(source, f"{number}.")) for number, (alias, source) in enumerate(sources)]
    scope = Scope(named, merged, preserved)
    scope.estimates = frozenset(
        f"{number}.{position}"
        for number, (_, source) in enumerate(sources)
        for position in range(len(source.columns))
        if position not in source.exact
    )
    return scope


def scope_over(node: exp.Select, sources: Sources) -> Scope:
    """Return the scope of a SELECT over results."""
    joins = node.args.get("joins") or []
    return scope_of(_with_absent(node, sources), *using(joins, [alias for alias, _ in sources]))


def whole_quotient(node: exp.Div, scope: Scope, special: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr | None:
    """Return a quotient of exact integers in a dialect where it is whole; None for others. `special`: of `rebuild`."""
    if not node.meta_get(WHOLE) or node.find(exp.Query) is not None:
        return None
    bound = _bound(node, scope)
    if not isinstance(bound, Call) or bound.function != "intdiv":
        return None
    sides = (rebuild(side, special) for side in (node.this, node.expression))
    return exp.IntDiv(**dict(zip(("this", "expression"), sides, strict=True)))


def visible(source: Released, prefix: str) -> Protected:
    """Return the columns of a result whose types are known, named by `prefix` and position."""
    named = [
        (position, label, facts)
        for position, (label, facts) in enumerate(zip(source.columns, source.column_facts, strict=True))
    ]
    columns = tuple(
        (label, Column(f"{prefix}{position}", facts)) for position, label, facts in named if facts is not None
    )
    untyped = frozenset(label.lower() for _, label, facts in named if facts is None)
    return Protected(ReleasedRows("", (), (), ""), columns, untyped=untyped)


def output(node: exp.Expr, scope: Scope) -> Output:
    """Return the facts of one item of a SELECT over results, and the source column it repeats, if any."""
    bound = _bound(node, scope)
    if bound is None:
        return Output(_typed(node, scope))
    exact = scope.estimates.isdisjoint(names_read(bound))
    if isinstance(bound, Column):
        return Output(bound.facts, bound.name, exact)
    facts = bound.facts
    if facts.type is Type.NULL:
        return Output(None)
    return Output(replace(facts, values=domain_of(bound)) if isinstance(bound, Call) else facts, exact=exact)


def _exact(outputs: Sequence[Output]) -> frozenset[int]:
    return frozenset(position for position, column in enumerate(outputs) if column.exact)


def _check_parts(expression: exp.Expr, scope: Scope, written: exp.Expr) -> None:
    """Refuse (not_boolean) parts of AND, OR, NOT and CASE over results that are known to be no truth values. `written`: what the
    expression stands for in the question."""
    for node in expression.find_all(exp.And, exp.Or, exp.Not, exp.If):
        compared = isinstance(node.parent, exp.Case) and node.parent.this is not None
        if not compared and node.find_ancestor(exp.Subquery) is expression.find_ancestor(exp.Subquery):
            for part in (node.this, node.expression) if isinstance(node, exp.Connector) else (node.this,):
                _check_truth(part, scope, part if place(part) else written)


def _check_truth(condition: exp.Expr, scope: Scope, node: exp.Expr) -> None:
    """Refuse (not_boolean) a condition over results, written as `node`, that is known to be no truth value."""
    if isinstance(condition.unnest(), (exp.Connector, exp.Not)):  # whose parts are looked at one by one
        return
    facts = output(condition, scope).facts
    if facts is not None and facts.type not in (Type.BOOLEAN, Type.NULL):
        raise refuse("not_boolean", type=facts.type.value, position=place(node))


def _check_possible(node: exp.Select, condition: exp.Expr, scope: Scope, written: exp.Expr) -> None:
    """Refuse (no_rows) a whole statement whose condition over results is never true (n > NULL), unless its text says outright
    that it asks for no rows (1 = 0, LIMIT 0)."""
    parts = [bound for part in conjuncts(condition) if (bound := _bound(part, scope)) is not None]
    if not parts or literal_limit(node) == 0 or any(map(is_constantly_false, conjuncts(written))):
        return
    if filter_condition(call("and", *parts) if len(parts) > 1 else parts[0]) == literal(False):
        raise refuse("no_rows", position=place(written))


def _bound(node: exp.Expr, scope: Scope) -> Expr | None:
    if isinstance(node, exp.Column) and not scope.has(node):
        return None
    try:
        return Scalars(scope).bind(node)
    except Error:
        return None


def _typed(node: exp.Expr, scope: Scope) -> Facts | None:
    """Return the facts of aggregates and windows over results and of arithmetic with them; None for other expressions. What a
    window or FILTER selects is NULL where it leaves no row."""
    partial = False
    while isinstance(node, (exp.Paren, exp.Alias, exp.Window, exp.Filter)):
        partial = partial or isinstance(node, (exp.Window, exp.Filter))
        node = node.this
    if isinstance(node, (exp.Cast, exp.TryCast)):
        cast = node.copy()
        cast.set("this", exp.null())
        bound = _bound(cast, scope)
        return None if bound is None else Facts(bound.facts.type)
    if isinstance(node, _REAL):
        return Facts(Type.REAL)
    entry = spelled(spelling(node))
    if entry is not None:
        aggregate, _ = entry
        facts = aggregate.over(None if aggregate.type is not None else output(node.this, scope).facts)
        partial = partial or node.args.get("expression") is not None  # ARG_MAX(x, y) is NULL if every y is
        return replace(facts, nullable=True) if partial and facts is not None else facts
    if isinstance(node, _RANKING):
        return Facts(Type.INTEGER)
    if isinstance(node, _SELECTING):
        facts, default = output(node.this, scope).facts, node.args.get("default")
        if facts is None or default is None:
            return facts if facts is None else replace(facts, nullable=facts.nullable or partial)
        return _both([facts, output(default, scope).facts]) or Facts(facts.type)
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        sides = [output(side, scope).facts for side in (node.this, node.expression)]
        if not all(side is not None and side.type.numeric for side in sides):
            return None
        whole = not isinstance(node, exp.Div) and all(side is not None and side.type is Type.INTEGER for side in sides)
        return Facts(Type.INTEGER if whole else Type.REAL)
    return None


RowFacts = tuple[
    tuple[tuple[str, ...], ...],
    tuple[tuple[tuple[str, ...], int], ...],
    tuple[tuple[tuple[str, ...], str, str], ...],
]
"""`unique`, `repeats` and `promised` of a `Result`."""


def rows_of(bound: Released, typed: Collection[int], null_safe: Collection[int] = ()) -> RowFacts:
    """Return what is known about the rows of a result, in terms of its columns at the positions `typed`, named c0, c1, ...,
    and of those for a comparison with NULL at the positions `null_safe`."""
    promised = {(_names(key), table, named) for key, table, named in bound.declared if key <= set(typed)}
    unique = {_names(key) for key in bound.unique if key <= set(typed)} | {names for names, _, _ in promised}
    if not bound.null_repeats:
        whole = [key for key in bound.unique if key <= set(typed) and len(key) <= _MOST_NULL_SAFE]
        unique |= {
            _names(key, compared) for key in whole for compared in product(*((-1, index) for index in null_safe))
        }
    repeats = {(_names(key), most) for key, most in bound.repeats if key <= set(typed)}
    return tuple(sorted(unique)), tuple(sorted(repeats)), tuple(sorted(promised))


def _names(positions: frozenset[int], null_safe: Collection[int] = ()) -> tuple[str, ...]:
    of_columns = (names_with_null(f"c{index}") if index in null_safe else (f"c{index}",) for index in sorted(positions))
    return tuple(name for names in of_columns for name in names)


_MOST_NULL_SAFE = 6
STAND_IN = {
    Type.INTEGER: 0, Type.REAL: Fraction(0), Type.TEXT: "", Type.BOOLEAN: False, Type.DATE: date(1970, 1, 1),
    Type.TIMESTAMP: datetime(1970, 1, 1),
}  # fmt: skip
"""For each type a value in place of NULL where `x IS NOT DISTINCT FROM y` is written as two equalities that engines can hash:
`(x IS NULL) = (y IS NULL) AND coalesce(x, v) = coalesce(y, v)`."""


def names_with_null(name: str) -> tuple[str, str]:
    """Return the names of the two columns of a result that stand for one compared with NULL as a value."""
    return f"{name}_null", f"{name}_value"


def null_safe_columns(column: Column) -> list[Column]:
    """Return the two columns of a result: whether `column` is NULL, and its value, which is `STAND_IN` for NULL."""
    types = (Type.BOOLEAN, column.facts.type)
    named = zip(names_with_null(column.name), types, strict=True)
    return [Column(name, Facts(type_, nullable=False)) for name, type_ in named]


def null_safe_items(index: int, type_: Type) -> list[exp.Expr]:
    """Return the items of these columns. A value that does not fit the type of the column is NULL and equals nothing."""
    column, missing = exp.column(f"c{index}"), exp.Is(this=exp.column(f"c{index}"), expression=exp.Null())
    stand_in, value = (
        exp.TryCast(this=part, to=exp.DataType.build(SQL_TYPES[type_]))
        for part in (exp.Literal.string(str(STAND_IN[type_])), column)
    )
    either = exp.Case(ifs=[exp.If(this=missing.copy(), true=stand_in)], default=value)
    names = names_with_null(f"c{index}")
    return [exp.alias_(item, name) for item, name in zip((missing, either), names, strict=True)]


# --- SELECTs --------------------------------------------------------------------------------------------------------


def over_block(
    select: exp.Select,
    written: exp.Select,
    rows: Scope,
    keys: Sequence[Key],
    measures: Sequence[Measure],
    sets: int,
    alike: int,
    decides: bool,
) -> Released:
    """Return the facts and unique columns of a SELECT over one private block (`sets` > 1: over the union of several), which
    stands for the one that was `written` over `rows`. `alike`: the number of groups that are assumed to share a value of a
    private key. Refuses (not_boolean) its conditions that are no truth values. `decides`: as in `over_results`.

    A block has one row for each group, the groups of its keys are disjoint (equal reals are one group, and so is NaN), and
    HAVING, QUALIFY, ORDER BY and LIMIT above it only remove rows.
    """
    columns = [(key.name, Column(key.name, key_facts(key, sets == 1))) for key in keys]
    columns += [
        (measure.name, Column(measure.name, aggregate_of(measure.aggregate).result(measure))) for measure in measures
    ]
    scope = Scope([("", Protected(ReleasedRows("", (), (), ""), tuple(columns)))])
    scope.estimates = frozenset(measure.name for measure in measures)
    for clause, original in (("where", "having"), ("qualify", "qualify")):
        if (condition := condition_of(select, clause)) is not None and written.args.get(original) is not None:
            _check_truth(condition, scope, written.args[original].this)
            _check_parts(condition, scope, written.args[original].this)
            if decides:
                _check_possible(written, condition, scope, written.args[original].this)
    for item, original_item in zip(select.expressions, written.expressions, strict=True):
        _check_parts(item, scope, original_item)
    outputs = [output(item.unalias(), scope) for item in select.expressions]
    fixed, where = frozenset[str](), written.args.get("where")
    if where is not None and where.find(exp.EQ) is not None:
        fixed = _fixed(written, rows)
    open_keys = frozenset(
        key.name
        for key in keys
        if not (len(key.values) == 1 if key.values is not None else fixed and _is_of(key.expression, fixed))
    )
    told_apart = {open_keys} if sets == 1 else set()
    unique = _output_positions(told_apart, outputs)
    if select.find(exp.Window) is not None:
        unique |= _numbered(select, select.expressions, outputs, scope, told_apart)
    public = frozenset(key.name for key in keys if key.values is not None)
    private = [key.name for key in keys if key.values is None] if sets == 1 else []
    agreeing = [*((public | {name}, 1) for name in private), *((frozenset({name}), alike) for name in private)]
    facts = tuple(column.facts for column in outputs)
    return Released(
        exp.Select(), (), facts, unique, exact=_exact(outputs),
        agreeing=tuple((moved, most) for names, most in agreeing for moved in _output_positions({names}, outputs)),
    )  # fmt: skip


def over_results(node: exp.Select, sources: Sources, starred: Sequence[exp.Expr], decides: bool) -> Released:
    """Return the facts and unique columns of a SELECT over results. `starred`: its items with stars written out. `decides`: the
    statement shows nothing without its rows (`trees.mark_shown`), and some results are charged."""
    joins = node.args.get("joins") or []
    scope = scope_over(node, sources)
    outputs = [output(item.unalias(), scope) for item in starred]
    for clause in ("where", "having", "qualify"):
        if (condition := condition_of(node, clause)) is not None:
            _check_truth(condition, scope, condition)
            _check_parts(condition, scope, condition)
            if decides:
                _check_possible(node, condition, scope, condition)
    for item in starred:
        _check_parts(item, scope, item)
    source_keys: set[frozenset[str]] = set()
    if node.args.get("group") is not None:
        source_keys |= _grouped(node, outputs, starred, scope)
    elif node.args.get("having") is not None or any(has_aggregate(item) for item in node.expressions):
        return Released(node, (), tuple(map(_of_no_rows, outputs, starred)), ONE_ROW, exact=_exact(outputs))
    elif all(_pairs_rows(join) for join in joins):
        # A joined row is identified by the combined keys of its sources.
        each = [
            [frozenset(f"{number}.{position}" for position in positions) for positions in source.unique]
            for number, (_, source) in enumerate(sources)
        ]
        source_keys |= {frozenset().union(*combination) for combination in list(product(*each))[:MOST_UNIQUE]}
    fixed = frozenset[str]() if node.args.get("where") is None else _fixed(node, scope)
    source_keys |= {key - fixed for key in source_keys}
    unique = _output_positions(source_keys, outputs) | _numbered(node, starred, outputs, scope, source_keys)
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is None:
        unique |= _distinct(outputs)
    null_repeats = any(source.null_repeats for _, source in sources)
    facts = tuple(column.facts for column in outputs)
    released = Released(node, (), facts, unique, null_repeats=null_repeats, exact=_exact(outputs))
    if len(sources) == 1 and node.args.get("group") is None:
        released = _as_source(released, sources[0][1], outputs, fixed)
        declared = [frozenset(f"0.{position}" for position in key) for key, _, _ in sources[0][1].declared]
        ranked = _numbered(node, starred, outputs, scope, declared)
        released = replace(released, agreeing=(*released.agreeing, *((key, 1) for key in ranked)))
    return limited(node, released)


def _with_absent(node: exp.Select, sources: Sources) -> Sources:
    """Return the sources with NULL in every column of the sides of outer joins that may have no row, and in all columns where
    grouping sets leave keys out."""
    group = node.args.get("group")
    sets = group is not None and group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None
    absent = set(range(len(sources))) if sets else set[int]()
    for number, join in enumerate(node.args.get("joins") or [], 1):
        absent |= {number} if join.side in ("LEFT", "FULL") else set()
        absent |= set(range(number)) if join.side in ("RIGHT", "FULL") else set()
    return [
        (alias, replace(source, facts=tuple(f and replace(f, nullable=True) for f in source.column_facts)))
        if number in absent
        else (alias, source)
        for number, (alias, source) in enumerate(sources)
    ]


def _of_no_rows(column: Output, item: exp.Expr) -> Facts | None:
    """Return the facts of an output of a SELECT of aggregates without GROUP BY: over no rows, all but counts are NULL."""
    facts = column.facts
    return replace(facts, nullable=True) if facts is not None and has_aggregate(item) else facts


def literal_parts(node: exp.Select, alias: str, names: Collection[str]) -> list[exp.Expr]:
    """Return the conditions of WHERE, and of ON of inner joins, that set columns of `alias` with these names equal to literals,
    unless another condition compares the column with another column."""
    conditions = conjuncts(condition_of(node, "where"))
    for join in node.args.get("joins") or ():
        conditions += conjuncts(join.args.get("on")) if not join.side and join.kind in ("", "INNER") else []
    equal: dict[str, list[tuple[exp.Expr, exp.Expr]]] = {}
    for part in conditions:
        bare = part.unnest()
        for side, other in (
            ((bare.this, bare.expression), (bare.expression, bare.this)) if isinstance(bare, exp.EQ) else ()
        ):
            if isinstance(side, exp.Column) and side.table.lower() == alias.lower() and side.name in names:
                equal.setdefault(side.name, []).append((bare, other))
    return [
        pairs[0][0].copy()
        for pairs in equal.values()
        if len(pairs) == 1 and isinstance(pairs[0][1].unnest(), exp.Literal)
    ]


def _numbered(
    node: exp.Select,
    items: Sequence[exp.Expr],
    outputs: Sequence[Output],
    scope: Scope,
    unique: Collection[frozenset[str]],
) -> Unique:
    """Return the keys that ROW_NUMBER gives: the number of a row and the columns by which its window is partitioned, or these
    alone where QUALIFY keeps one number. So do RANK and DENSE_RANK where partition and order tell the rows apart. `unique`: keys
    of the source."""
    keys: set[frozenset[int]] = set()
    index = {column.origin: position for position, column in reversed(list(enumerate(outputs))) if column.origin}
    names = {item.alias.lower(): item.unalias() for item in items if item.alias}
    qualifying = [part.unnest() for part in conjuncts(condition_of(node, "qualify"))]
    firsts = [part.this.unnest() for part in qualifying if isinstance(part, exp.EQ) and part.expression.is_int]
    firsts = [
        names.get(first.name.lower(), first) if isinstance(first, exp.Column) and not scope.has(first) else first
        for first in firsts
    ]  # a column of the source comes before an alias
    for position, item in [*enumerate(item.unalias() for item in items), *((None, first) for first in firsts)]:
        if not isinstance(item, exp.Window) or not isinstance(item.this, (exp.RowNumber, exp.Rank, exp.DenseRank)):
            continue
        parts = [output(part, scope) for part in item.args.get("partition_by") or ()]
        if not isinstance(item.this, exp.RowNumber):
            order = item.args["order"].expressions if item.args.get("order") is not None else ()
            by = [*parts, *(output(ordered.this, scope) for ordered in order)]
            if not any(key <= {part.origin for part in by} for key in unique):
                continue
        if all(_told_apart(part) and part.origin in index for part in parts):
            keys.add(frozenset([index[part.origin] for part in parts] + ([] if position is None else [position])))
    return frozenset(keys)


def _is_of(expression: Expr, names: Collection[str]) -> bool:
    return isinstance(expression, Column) and expression.name in names


def _fixed(node: exp.Select, scope: Scope) -> frozenset[str]:
    """Return the source columns that WHERE sets equal to a literal of their type."""
    names = set()
    for part in conjuncts(condition_of(node, "where")):
        bound = _bound(part, scope)
        if isinstance(bound, Call) and bound.function == "eq":
            columns = [side for side in bound.arguments if isinstance(side, Column)]
            same_type = len({side.facts.type for side in bound.arguments}) == 1
            if len(columns) == 1 and same_type and columns[0].facts.type is not Type.REAL:
                names |= {columns[0].name} if any(isinstance(side, Literal) for side in bound.arguments) else set()
    return frozenset(names)


def _as_source(released: Released, source: Released, outputs: Sequence[Output], fixed: frozenset[str]) -> Released:
    """Return a SELECT of rows of its one source, with what is known of these. `fixed`: columns of one value in all."""
    whole = [entry for entry in source.declared if {f"0.{position}" for position in entry[0]} <= fixed]
    return replace(
        released,
        agreeing=tuple((indexes, most) for key, most in source.agreeing for indexes in _moved(key, outputs)),
        repeats=tuple((indexes, most) for key, most in source.repeats for indexes in _moved(key, outputs)),
        declared=frozenset(
            (indexes, table, named) for key, table, named in source.declared for indexes in _moved(key, outputs)
        )
        | {(frozenset[int](), table, named) for _, table, named in whole},
    )


def _moved(positions: frozenset[int], outputs: Sequence[Output]) -> Unique:
    """Return a set of columns of the only source as output positions; empty unless all of them are outputs."""
    return _output_positions({frozenset(f"0.{position}" for position in positions)}, outputs)


def _pairs_rows(join: exp.Join) -> bool:
    """Return whether a join pairs rows: inner, left or cross. For others, NATURAL and USING no uniqueness is claimed."""
    return (
        join.side in ("", "LEFT") and join.kind in ("", "INNER", "OUTER", "CROSS")
        and not join.args.get("using") and not join.args.get("method")
    )  # fmt: skip


def _grouped(
    node: exp.Select, outputs: Sequence[Output], items: Sequence[exp.Expr], scope: Scope
) -> set[frozenset[str]]:
    """Return the columns of GROUP BY as a key if all are plain columns: there is one row per combination of their values."""
    group = node.args["group"]
    if any(group.args.get(name) for name in ("all", "rollup", "cube", "grouping_sets")):
        return set()
    names = set()
    for item in group.expressions:
        output_column = None
        if isinstance(item, exp.Literal) and not item.is_string:
            output_column = dict(zip(map(str, range(1, len(outputs) + 1)), outputs, strict=True)).get(item.name)
        elif isinstance(item, exp.Column):
            output_column = output(item, scope)
            if not output_column.origin:
                aliased = [position for position, other in enumerate(items) if other.alias.lower() == item.name.lower()]
                output_column = outputs[aliased[0]] if aliased and not item.table else None
        if output_column is None or not _told_apart(output_column):
            return set()
        names.add(output_column.origin)
    return {frozenset(names)}


def _told_apart(column: Output) -> bool:
    """Return whether an output is a plain column whose equal values form one group: of reals, two equal zeros may form two."""
    return bool(column.origin) and column.facts is not None and column.facts.type is not Type.REAL


def _distinct(outputs: Sequence[Output]) -> Unique:
    return frozenset({frozenset(range(len(outputs)))}) if all(map(_told_apart, outputs)) else frozenset()


def _output_positions(unique: set[frozenset[str]], outputs: Sequence[Output]) -> Unique:
    """Return those sets of source columns that are all outputs, as sets of output positions."""
    index = {column.origin: position for position, column in reversed(list(enumerate(outputs))) if column.origin}
    return frozenset(frozenset(index[name] for name in names) for names in unique if names <= index.keys())


def limited(node: exp.Expr, released: Released) -> Released:
    """Return `released` with the bound on rows that a literal LIMIT of `node` gives."""
    most = literal_limit(node)
    if most is None:
        return released
    unique = released.unique | (ONE_ROW if most == 1 else frozenset())
    return replace(released, unique=unique, repeats=(*released.repeats, (frozenset(), most)))


def united_columns(node: exp.SetOperation, sides: Sequence[Released]) -> tuple[str, ...]:
    """Return the names of the columns of a set operation."""
    columns = sides[0].columns
    named = {name.lower() for name in columns}
    more = [name for side in sides[1:] for name in side.columns if name.lower() not in named]
    return (*columns, *more) if node.args.get("by_name") else columns


def united(node: exp.SetOperation, sides: Sequence[Released]) -> Released:
    """Return the facts of UNION, INTERSECT and EXCEPT by column. Without ALL, whole rows are unique unless one is a real."""
    if node.args.get("by_name") or len({len(side.columns) for side in sides}) != 1:
        return Released(node, ())
    facts = [_both(columns) for columns in zip(*(side.column_facts for side in sides), strict=True)]
    outputs = [Output(column_facts, f"0.{position}") for position, column_facts in enumerate(facts)]
    unique = _distinct(outputs) if node.args.get("distinct") else frozenset()
    null_repeats = any(side.null_repeats for side in sides)
    exact = frozenset.intersection(*(side.exact for side in sides))
    return limited(node, Released(node, (), tuple(facts), unique, null_repeats=null_repeats, exact=exact))


def _both(columns: Sequence[Facts | None]) -> Facts | None:
    typed = [column_facts for column_facts in columns if column_facts is not None]
    if len(typed) != len(columns) or len({column_facts.type for column_facts in typed}) != 1:
        return None
    return hull(typed, typed[0].type)
