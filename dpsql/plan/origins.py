"""Origin of a relation's rows: columns as expressions over base columns, and conditions that every row satisfies.

A relation is read as a few branches (parts of UNION ALL, rows of a LEFT JOIN with and without a partner); each of its rows
belongs to one branch. Base columns are named by their path through the plan, so that two scans of one table have different
columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import (
    OTHER,
    Block,
    Call,
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    filled,
    literal,
    moved,
)
from dpsql.storage.records import dataclass, replace

MOST_BRANCHES = 16


class UnknownOrigin(Exception):
    """Raised for a relation with too many branches, or a column whose origin is unknown."""


@dataclass(frozen=True)
class UnmatchedRows:
    """Fact that no row of `branch` has values equal to those of this row: pairs of an expression of the row and one over the
    branch, both over base columns. `in_list`: as in NOT IN, where NULL on either side excludes the row unless there is no row at
    all."""

    pairs: tuple[tuple[Expr, Expr], ...]
    branch: Branch
    in_list: bool = False


@dataclass(frozen=True)
class Branch:
    """Some rows of a relation. `columns`: each column of the relation by its name; `conditions` are true for every row; `tables`:
    scans, as (path, table). `within`: base columns that never hold a value outside their facts; `unmatched`: sets of rows in
    which no row of the branch has a partner. `laws`: further conditions that are true for every row, of use only to who reads all
    their columns."""

    columns: Mapping[str, Expr]
    conditions: tuple[Expr, ...] = ()
    tables: tuple[tuple[str, str], ...] = ()
    within: frozenset[str] = frozenset()
    unmatched: tuple[UnmatchedRows, ...] = ()
    laws: tuple[Expr, ...] = ()

    def written(self, expression: Expr) -> Expr:
        """Return `expression`, which is over the relation, over base columns. Raises UnknownOrigin."""
        if isinstance(expression, Column):
            base = self.columns.get(expression.name)
            if base is None:
                raise UnknownOrigin
            untyped = isinstance(base, Column) and base.facts.type is Type.NULL
            return Column(base.name, expression.facts) if isinstance(base, Column) and untyped else base
        if isinstance(expression, Call):
            return replace(expression, arguments=tuple(map(self.written, expression.arguments)))
        return expression


def branches(node: Relation, prefix: str = "") -> tuple[Branch, ...]:
    """Return the branches of a relation. It keeps few: all questions ask for those of their tables. Raises UnknownOrigin."""
    of_prefix: dict[str, tuple[Branch, ...]] = node.__dict__.setdefault("#branches", {})
    result = of_prefix.get(prefix) or tuple(_branches(node, prefix))
    if len(of_prefix) < MOST_BRANCHES:
        of_prefix[prefix] = result
    if len(result) > MOST_BRANCHES:
        raise UnknownOrigin
    return result


def _branches(node: Relation, prefix: str) -> Iterable[Branch]:
    if isinstance(node, (Scan, ReleasedRows)):
        columns = {column.name: Column(prefix + column.name, column.facts) for column in node.columns}
        if isinstance(node, Scan):
            return [Branch(columns, (), ((prefix, node.table),))]
        # Results have their listed keys, and means are clamped to their bounds.
        return [Branch(columns, within=frozenset(prefix + name for name in columns))]
    if isinstance(node, Filter):
        return [_with(branch, branch.written(node.predicate)) for branch in branches(node.source, prefix)]
    if isinstance(node, Project):
        return [
            replace(branch, columns={label: branch.written(part) for label, part in node.columns})
            for branch in branches(node.source, prefix)
        ]
    if isinstance(node, Join):
        return _joined(node, prefix)
    if isinstance(node, SemiJoin):
        return _met(node, prefix)
    if isinstance(node, Union_):
        return _united(node, prefix)
    if isinstance(node, Distinct):
        return branches(node.source, prefix)
    if isinstance(node, UnitWindow):
        columns = {window.name: Column(f"{prefix}w.{window.name}", window.facts) for window in node.windows}
        sure = frozenset(columns[window.name].name for window in node.windows if window.word in COUNTS)
        return [
            replace(inner, columns={**inner.columns, **columns}, within=inner.within | sure)
            for inner in branches(node.source, prefix + "s.")
        ]
    return [part for branch in branches(node.source, prefix + "s.") for part in _of_units(node, branch, prefix)]


COUNTS = ("count", "count_distinct", "row_number", "rank", "dense_rank")
"""Words whose results always lie within their facts, because a unit has no more rows than it may have."""


def _of_units(node: UnitAggregate, branch: Branch, prefix: str) -> list[Branch]:
    """Return the branches of one result for each unit, represented by one of the unit's rows in `branch`.

    The first of MIN and MAX has the value of its argument in that row, each further one that of another row of the same
    source. Of other aggregates, only the facts are known.
    """
    # The type of the unit's key is given where the key is used: no condition on it can be stated here.
    unit = Column(f"{prefix}u.u", Facts(Type.NULL))
    totals = {column[0]: Column(f"{prefix}u.{column[0]}", _counted(column)) for column in node.columns}
    sure = frozenset(
        totals[column[0]].name for column in node.columns if column[1] in COUNTS and _counted(column) == column[4]
    )
    keys = {label: branch.written(key) for label, key in node.keys}
    results = [replace(branch, columns={**keys, "u": unit, **totals}, within=branch.within | sure)]
    columns_shown: dict[tuple[str, Expr], str] = {}
    for name, word, argument, condition, facts in node.columns:
        if word not in ("min", "max") or argument is None or condition is not None or facts.type is Type.REAL:
            continue
        rows = [branch] if not columns_shown else branches(node.source, f"{prefix}{name}.")
        if len(results) * len(rows) > MOST_BRANCHES:
            continue
        other = columns_shown.get(("max" if word == "min" else "min", argument))
        results = [
            _with_value(result, row, name, row.written(argument), row is not branch)
            for result in results
            for row in rows
        ]
        if other is not None:
            low, high = (name, other) if word == "min" else (other, name)
            results = [_with(result, _ordered(result.columns[low], result.columns[high])) for result in results]
        columns_shown[word, argument] = name
    return [replace(result, laws=(*result.laws, *_empty_together(node, result))) for result in results]


_OF_NO_VALUE = {"count": 0, "count_distinct": 0, "sum": None, "min": None, "max": None, "avg": None}
"""Results of aggregates over no value, which they have over no other values. Of reals, NaN may be a value for some of them."""


def _empty_together(node: UnitAggregate, result: Branch) -> Iterator[Expr]:
    """Yield that aggregates of one argument and one condition are over no value all together or not at all."""
    truth = Facts(Type.BOOLEAN)
    tests: dict[tuple[Expr, Expr | None], dict[Expr, None]] = {}
    for name, word, argument, condition, _ in node.columns:
        if word in _OF_NO_VALUE and argument is not None and argument.facts.type is not Type.REAL:
            value = result.columns[name]
            zero = literal(0)
            test = Call("is_null", (value,), truth) if _OF_NO_VALUE[word] is None else Call("eq", (value, zero), truth)
            tests.setdefault((argument, condition), {})[test] = None
    for same in tests.values():
        yield from (Call("eq", pair, truth) for pair in combinations(same, 2))


def _with_value(result: Branch, row: Branch, name: str, value: Expr, apart: bool) -> Branch:
    """Return a unit's result in which one aggregate has a value of `row`; `apart`: which is not the representing row."""
    columns = {**result.columns, name: value}
    if not apart:
        return replace(result, columns=columns)
    return replace(
        result,
        columns=columns,
        conditions=(*result.conditions, *row.conditions),
        tables=(*result.tables, *row.tables),
        within=result.within | row.within,
        unmatched=(*result.unmatched, *row.unmatched),
        laws=(*result.laws, *row.laws),
    )


def _ordered(low: Expr, high: Expr) -> Expr:
    """Return the condition that MIN is at most MAX of the same values, or both are NULL."""
    truth = Facts(Type.BOOLEAN)
    missing = Call("and", (Call("is_null", (low,), truth), Call("is_null", (high,), truth)), truth)
    return Call("or", (Call("le", (low, high), truth), missing), truth)


def _counted(column: tuple[str, str, Expr | None, Expr | None, Facts]) -> Facts:
    """Return the facts of an aggregate over a unit's rows: it has at most as many different values as its argument's domain."""
    _, word, argument, condition, facts = column
    size = None if argument is None or not isinstance(argument, Column) else argument.facts.size()
    if word != "count_distinct" or argument is None or size is None:
        return facts
    facts_below = argument.facts
    present = size - (None in (facts_below.values or ()))
    missing = facts_below.nullable or None in (facts_below.values or ()) or condition is not None
    return replace(facts, lower=facts.lower if missing else max(facts.lower, 1), upper=min(facts.upper, present))


def _with(branch: Branch, *conditions: Expr) -> Branch:
    return replace(branch, conditions=(*branch.conditions, *conditions))


def _is_present(value: Expr) -> Expr:
    boolean = Facts(Type.BOOLEAN, nullable=False)
    return Call("not", (Call("is_null", (value,), boolean),), boolean)


def _joined(node: Join, prefix: str) -> list[Branch]:
    """Return branches of rows with a partner and, for a LEFT JOIN, without one, where the right side's conditions do not hold."""
    result = []
    left, right = branches(node.left, prefix + "a."), branches(node.right, prefix + "b.")
    for branch in left:
        left_columns = {f"a.{name}": value for name, value in branch.columns.items()}
        for partner in right:
            right_columns = {f"b.{name}": value for name, value in partner.columns.items()}
            result.append(replace(_pair(branch, partner, _bare(node)), columns={**left_columns, **right_columns}))
        if node.kind == "left":
            names = {f"b.{name}": _missing(value) for name, value in right[0].columns.items()}
            result.append(replace(_apart(branch, right, _bare(node)), columns={**left_columns, **names}))
    return result


def _apart(branch: Branch, right: Iterable[Branch], keys: Iterable[tuple[Expr, Expr]], in_list: bool = False) -> Branch:
    """Return the rows of `branch` that match no row of any branch in `right`."""
    pairs = list(keys)
    unmatched = (
        UnmatchedRows(tuple((branch.written(a), absent.written(b)) for a, b in pairs), absent, in_list)
        for absent in right
    )
    return replace(branch, unmatched=(*branch.unmatched, *unmatched)) if pairs else branch


def _pair(branch: Branch, partner: Branch, keys: Iterable[tuple[Expr, Expr]]) -> Branch:
    """Return the rows of `branch`, each with a row of `partner` that has equal keys."""
    equal = (Call("eq", (branch.written(a), partner.written(b)), Facts(Type.BOOLEAN)) for a, b in keys)
    conditions = (*branch.conditions, *partner.conditions, *equal)
    unmatched = (*branch.unmatched, *partner.unmatched)
    tables, within = (*branch.tables, *partner.tables), branch.within | partner.within
    return Branch(branch.columns, conditions, tables, within, unmatched, (*branch.laws, *partner.laws))


def _met(node: SemiJoin, prefix: str) -> Iterable[Branch]:
    """Return branches of rows that satisfy a semi-join: with a partner on the right side, unless it is negated."""
    left = branches(node.left, prefix + "l.")
    try:
        right = branches(node.right, prefix + "r.")
    except UnknownOrigin:
        right = ()
    if node.negated:
        if node.condition is not None or node.on_unit:
            return left
        return [_apart(branch, right, node.keys, node.in_list) for branch in left]
    if not 1 <= len(right) * len(left) <= MOST_BRANCHES:
        return [_with(branch, *(_is_present(branch.written(a)) for a, _ in node.keys)) for branch in left]
    result = []
    for branch in left:
        for partner in right:
            pair = _pair(branch, partner, node.keys)
            if node.condition is not None:
                partner_columns = {OTHER + name: value for name, value in partner.columns.items()}
                both = replace(pair, columns={**branch.columns, **partner_columns})
                pair = _with(pair, both.written(node.condition))
            result.append(pair)
    return result


def _bare(node: Join) -> list[tuple[Expr, Expr]]:
    """Return the pairs of keys, with the column names that each side itself uses."""
    return [(moved("a.", a, down=True), moved("b.", b, down=True)) for a, b in node.keys]


def _missing(value: Expr) -> Literal:
    return Literal(None, replace(value.facts, nullable=True, values=None))


def _united(node: Union_, prefix: str) -> list[Branch]:
    """Return the branches of a union. Columns are matched by position and named as in the first source."""
    result: list[Branch] = []
    names: list[str] = []
    for position, source in enumerate(node.sources):
        for branch in branches(source, f"{prefix}{position}."):
            names = names or list(branch.columns)
            renamed = (
                dict(zip(names, branch.columns.values(), strict=True)) if len(names) == len(branch.columns) else None
            )
            if renamed is None:
                raise UnknownOrigin
            result.append(replace(branch, columns=renamed))
    return result


# --- projections ------------------------------------------------------------------------------------------------------

# Removal of subqueries that only name columns: SELECT COUNT(*) FROM (SELECT * FROM t) asks the same as SELECT COUNT(*) FROM t,
# and SELECT d FROM (SELECT x + 1 AS d FROM t) the same as SELECT x + 1 FROM t. Tools put such a SELECT around every table.
# Without it the question equals an earlier question and is free. On the sides of a join and below a window only those are
# removed that compute nothing: where a row has no partner, a computed value is NULL.

MOST_PARTS = 50
"""Most parts of an expression that takes the place of a name: each subquery may name the one below it several times."""

_Named = Mapping[str, Expr | str]
"""What stands for the columns of a relation without such subqueries: an expression, or another name of the same column."""
_Done = dict[int, tuple[Relation, _Named]]
"""Relations without such subqueries, by identity: each step asks about what is below it up to twice, and so does that."""


def without_projections(block: Block) -> Block:
    """Return the block over its source without projections that only name columns, over the expressions that they name."""
    source, columns = _unnamed(block.source, {})
    if source is block.source:
        return block
    return replace(
        block,
        source=source,
        keys=tuple(replace(key, expression=_over(key.expression, columns)) for key in block.keys),
        measures=tuple(_over(measure, columns) for measure in block.measures),
    )


def _unnamed(relation: Relation, done: _Done) -> tuple[Relation, _Named]:
    """Return the relation without such projections (itself if it has none), and what stands for names that change."""
    if id(relation) not in done:
        done[id(relation)] = _unnamed_anew(relation, done)
    return done[id(relation)]


def _unnamed_anew(relation: Relation, done: _Done) -> tuple[Relation, _Named]:
    if isinstance(relation, Project):
        source, below = _unnamed(relation.source, done)
        named = {name: _over(expression, below) for name, expression in relation.columns}
        return (source, named) if all(map(_has_few_parts, named.values())) else (relation, {})
    if isinstance(relation, Filter):
        source, columns = _unnamed(relation.source, done)
        if source is relation.source:
            return relation, columns
        return Filter(source, _over(relation.predicate, columns)), columns
    return (relation, {}) if isinstance(relation, (Scan, ReleasedRows)) else _unnamed_parts(relation, done)


def _unnamed_parts(
    relation: UnitWindow | UnitAggregate | Join | SemiJoin | Union_ | Distinct, done: _Done
) -> tuple[Relation, _Named]:
    columns: _Named = {}
    parts: dict[str, Any]
    if isinstance(relation, UnitWindow):
        source, columns = _renamed(relation.source, done)
        parts = {"source": source, "windows": _over(relation.windows, columns)}
    elif isinstance(relation, UnitAggregate):
        source, below = _without_windows(relation.source, done)
        if _is_aggregated(source):  # whose columns have the names of those above
            source, below = _below_names(relation.source, done), {}
        parts = {"source": source, "keys": _over(relation.keys, below), "columns": _over(relation.columns, below)}
    elif isinstance(relation, Join):
        left, of_left = _renamed(relation.left, done)
        right, of_right = _renamed(relation.right, done)
        columns = {**_prefixed("a.", of_left), **_prefixed("b.", of_right)}
        parts = {"left": left, "right": right, "keys": _over(relation.keys, columns)}
    elif isinstance(relation, SemiJoin):
        left, columns = _renamed(relation.left, done)
        right, of_right = _renamed(relation.right, done)
        keys = tuple((_over(key, columns), _over(other, of_right)) for key, other in relation.keys)
        condition = _over(relation.condition, {**columns, **_prefixed(OTHER, of_right)})
        parts = {"left": left, "right": right, "keys": keys, "condition": condition}
    elif isinstance(relation, Union_):
        parts = {"sources": tuple(_below_names(source, done) for source in relation.sources)}
    else:
        parts = {"source": _below_names(relation.source, done)}
    read = ((parts[name], getattr(relation, name)) for name in ("source", "left", "right") if name in parts)
    sources = zip(parts.get("sources", ()), getattr(relation, "sources", ()), strict=True)
    return (relation if all(new is old for new, old in (*read, *sources)) else replace(relation, **parts)), columns


def _renamed(relation: Relation, done: _Done) -> tuple[Relation, _Named]:
    """Return the relation without projections at its top that compute nothing, and the new names of its columns."""
    source, columns = _without_windows(relation, done)
    names: _Named = {name: new.name if isinstance(new, Column) else new for name, new in columns.items()}
    if all(isinstance(new, str) for new in names.values()):
        return source, names
    return _below_names(relation, done), {}


def _without_windows(relation: Relation, done: _Done) -> tuple[Relation, _Named]:
    """Return the relation without such projections unless they are over windows, whose names are unique in one subquery alone."""
    source, columns = _unnamed(relation, done)
    top = relation
    while isinstance(top, Filter):
        top = top.source
    is_over_windows = isinstance(top, Project) and _has_windows(source)
    return (_below_names(relation, done), {}) if is_over_windows else (source, columns)


def _is_aggregated(relation: Relation) -> bool:
    while isinstance(relation, (Filter, Distinct, SemiJoin)):
        relation = relation.left if isinstance(relation, SemiJoin) else relation.source
    return isinstance(relation, UnitAggregate)


def _has_windows(relation: Relation) -> bool:
    """Return whether rows of a relation have columns of windows, also such as no projection above shows."""
    if isinstance(relation, (Join, SemiJoin)):
        return _has_windows(relation.left) or (isinstance(relation, Join) and _has_windows(relation.right))
    return isinstance(relation, UnitWindow) or (
        isinstance(relation, (Filter, Distinct)) and _has_windows(relation.source)
    )


def _below_names(relation: Relation, done: _Done) -> Relation:
    """Return the relation with its columns under their names, and below them without projections."""
    if not isinstance(relation, Project):
        source, columns = _unnamed(relation, done)
        return relation if columns else source
    source, below = _unnamed(relation.source, done)
    named = tuple((name, _over(expression, below)) for name, expression in relation.columns)
    fits = source is not relation.source and all(_has_few_parts(part) for _, part in named)
    return Project(source, named) if fits else relation


def _prefixed(prefix: str, names: _Named) -> _Named:
    return {prefix + name: f"{prefix}{new}" for name, new in names.items()}


def _has_few_parts(expression: Expr) -> bool:
    parts, waiting = 0, [expression]
    while waiting and parts <= MOST_PARTS:
        part = waiting.pop()
        parts += 1
        waiting += part.arguments if isinstance(part, Call) else ()
    return parts <= MOST_PARTS


def _over(value: Any, columns: _Named) -> Any:
    """Return an expression or a measure over what the names of its columns stand for."""

    def read(part: Any) -> Any:
        named = columns.get(part.name) if isinstance(part, Column) else None
        return part if named is None else replace(part, name=named) if isinstance(named, str) else named

    return filled(value, read) if columns else value
