"""FROM with several sources: only joins over which rows_per_unit stays known (privacy.md 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.functions.canonical_conditions import canonical_condition
from dpsql.functions.signatures import call
from dpsql.plan.canonical_text import canonical_text
from dpsql.plan.plan import (
    Call,
    Column,
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
    literal,
)
from dpsql.plan.stability import base_column, base_rows, matches, most_met, rows_per_unit, told_apart, unfiltered
from dpsql.policy import Policy
from dpsql.sql.binder.equal_keys import UNITS_WAY, along_key
from dpsql.sql.binder.kept_side import with_kept_rows
from dpsql.sql.binder.result_facts import STAND_IN, names_with_null
from dpsql.sql.binder.scalars import Scalars
from dpsql.sql.binder.scope import (
    HIDDEN,
    BindingContext,
    Bound,
    Kind,
    Protected,
    Scope,
    UnpairedRows,
    only,
    same_unit,
    unpaired_rows,
    using,
    using_name,
)
from dpsql.sql.binder.select_lists import BY_WHERE, is_comma, labelled, labels_by_name, with_shared_names
from dpsql.sql.binder.trees import conjuncts
from dpsql.sql.lexer import place
from dpsql.sql.rewrites.postgresql import LABEL
from dpsql.storage.records import dataclass, replace

MOST_SOURCES = 20
MOST_CROSSED = 1000
"""Largest number of rows with which one protected row may be paired: rows of a result, or of a public table without keys."""
_ANY_CONDITION = (
    f"a public table or VALUES of at most {MOST_CROSSED:,} rows, or a result with LIMIT, may be joined on anything"
)


@dataclass(frozen=True)
class _Side:
    """One side of a join: the names it offers, its relation, and whether that is protected. `unpaired`: the public rows without
    a partner that an outer join below keeps."""

    sources: tuple[tuple[str, Protected], ...]
    relation: Relation
    protected: bool
    unpaired: UnpairedRows | None = None

    @property
    def table(self) -> str | None:
        """Return the base table whose rows this side has, each once and perhaps filtered; None for any other relation."""
        scan = base_rows(self.relation)
        return scan.table if isinstance(scan, Scan) else None

    @property
    def unit_names(self) -> frozenset[str]:
        return frozenset(name for _, source in self.sources for name in source.unit_names)

    def renamed(self, prefix: str, nullable: bool = False, alone: bool = False) -> tuple[tuple[str, Protected], ...]:
        """Return the sources with the names that their columns have above a join.

        `nullable`: an outer join may fill the columns with NULL, so the unit's key on that side may be NULL. `alone`: the columns
        are NULL only in unpaired rows, which no block reads, so the unit's key is never NULL where it is read.
        """
        return tuple(
            (alias, Protected(
                source.relation,
                tuple((label, _column(prefix, column, nullable or alone)) for label, column in source.columns),
                frozenset() if nullable else frozenset(prefix + name for name in source.unit_names),
                source.untyped,
                {prefix + name: min(unit_kind, Kind.MIXED) if nullable else unit_kind
                 for name, unit_kind in source.units.items() if nullable or unit_kind is not Kind.KEY},
            ))
            for alias, source in self.sources
        )  # fmt: skip


def _column(prefix: str, column: Column, nullable: bool) -> Column:
    facts = replace(column.facts, nullable=True) if nullable and not column.facts.nullable else column.facts
    return Column(prefix + column.name, facts)


def joined(context: BindingContext, node: exp.Select, bound: list[tuple[str, Bound]]) -> tuple[Scope, Relation]:
    """Return the names that FROM offers and its relation. Refuses every join without a proven bound on rows_per_unit."""
    policy = context.policy
    items = [node.args["from_"].this, *(join.this for join in node.args.get("joins") or ())]
    if len(items) > MOST_SOURCES:
        raise refuse("clause", what=f"FROM with more than {MOST_SOURCES} sources", position=place(items[-1]))
    joins, equalities = node.args.get("joins") or [], _where_equalities(node)
    tested = [_null_safe(part.unnest()) or () for part in (*equalities, *_conditions_of_on(joins))]
    null_safe = frozenset(side.name.lower() for sides in tested for side in sides if isinstance(side, exp.Column))
    sides = [_side(context, alias, source, item, null_safe) for (alias, source), item in zip(bound, items, strict=True)]
    aliases = [alias.lower() for alias, _ in bound]
    for number, alias in enumerate(aliases):
        if alias and alias in aliases[:number]:
            raise refuse("duplicate_name", name=alias, position=place(items[number]))
    _check_outer_joins(joins)
    commas = len(list(takewhile(is_comma, joins)))
    if not any(side.protected for side in sides[: commas + 1]):
        commas = 0
    first = next(index for index, side in enumerate(sides) if side.protected)
    written = None if commas or first < 2 else _conditions_of_spine(joins[:first], bound)
    if written is None:
        left = _any_order(sides[: commas + 1], joins[:commas], equalities, policy)
    else:
        left, commas = _after_public(sides[: first + 1], joins[:first], written, equalities, policy), first
    for join, right in zip(joins[commas:], sides[commas + 1 :], strict=True):
        left = _join(left, right, join, equalities if is_comma(join) else None, policy)
    order = {
        alias: position for position, (alias, _) in enumerate(bound)
    }  # SELECT * shows the sources as FROM names them
    scope = Scope(sorted(left.sources, key=lambda source: order[source[0]]), *using(joins, aliases))
    scope.unpaired = left.unpaired
    return scope, left.relation


_Conditions = list[list[exp.Expr]]
"""For each join, what ON and USING say, with the source of each name that further sources have, too."""


def _conditions_of_spine(joins: Sequence[exp.Join], bound: list[tuple[str, Bound]]) -> _Conditions | None:
    """Return the conditions of inner joins of public sides and of the inner or LEFT JOIN of a protected one with them; None for
    other joins."""
    *inner, last = joins
    if any(join.side for join in inner) or last.side not in ("", "LEFT"):
        return None
    if any(join.kind not in ("", "INNER", "CROSS", "OUTER") or join.args.get("method") for join in joins):
        return None
    return _conditions_of(joins, bound)


def _conditions_of(joins: Sequence[exp.Join], bound: list[tuple[str, Bound]]) -> _Conditions | None:
    """Return the conditions of joins; None where USING has another meaning than equalities."""
    written, merged = _Conditions(), set[str]()
    for index, join in enumerate(joins):
        on = join.args.get("on")
        parts = conjuncts(None if on is None else _with_sources(on, bound[: index + 2], bound[index + 2 :]))
        for name in map(using_name, join.args.get("using") or ()):
            if (equal := _merging(name, bound[: index + 1], bound[index + 1], merged)) is None:
                return None
            parts.append(equal)
            merged.add(name.lower())
        written.append(parts)
    return written


def _after_public(
    sides: list[_Side], joins: list[exp.Join], written: _Conditions, equalities: list[exp.Expr], policy: Policy
) -> _Side:
    """Join public sides with the protected one that comes last. The pairs are those of inner joins in any order; a LEFT JOIN also
    keeps the combinations of public rows that no protected row meets."""
    conditions = [part for parts in written for part in parts]
    equal = [*equalities, *(equality for part in conditions for equality in _certain(part))]
    pairs = _met(_any_order(sides, joins, equal, policy), conditions)
    if joins[-1].side != "LEFT":
        return pairs
    public = sides[0]
    for side in sides[1:-1]:
        sources = public.renamed("a.") + side.renamed("b.")
        public = _Side(sources, Join(public.relation, side.relation, "inner", (), False), False)
    public = _met(public, [part for parts in written[:-1] for part in parts])
    of_public = dict(public.sources)
    both = [(rows, of_public[alias]) for alias, rows in pairs.sources if alias in of_public]
    columns = [pair for rows, alone in both for pair in zip(rows.columns, alone.columns, strict=True)]
    names = {paired.name: unpaired.name for (_, paired), (_, unpaired) in columns}
    rows_alone = unpaired_rows(pairs.relation, public.relation, place(joins[-1]), names)
    if rows_alone is None:
        raise _two_public(joins[-1])
    combined = tuple(source for source in pairs.sources if source[0] in of_public)
    partner = replace(pairs, sources=tuple(source for source in pairs.sources if source[0] not in of_public))
    return _Side(combined + partner.renamed("", alone=True), pairs.relation, True, rows_alone)


def _two_public(node: exp.Join) -> Error:
    hint = "name the protected table first"
    return refuse("join", reason="two public tables come first", way=hint, position=place(node))


def _met(side: _Side, conditions: Iterable[exp.Expr]) -> _Side:
    """Return the rows of a side that meet conditions."""
    scalars, relation = Scalars(Scope(side.sources)), side.relation
    for part in conditions:
        relation = Filter(relation, scalars.boolean(part))
    return replace(side, relation=relation)


def _check_outer_joins(joins: Sequence[exp.Join]) -> None:
    """Refuse RIGHT and FULL JOIN after a comma, which is read last: the rows that they keep meet all rows before it."""
    behind = False
    for join in joins:
        if behind and join.side in ("RIGHT", "FULL"):
            hint = "name what stands before the comma behind this join"
            raise refuse("join", reason=f"{join.side} JOIN comes before the comma", way=hint, position=place(join))
        behind = behind or (not join.kind and is_comma(join))


def in_any_order(node: exp.Select, bound: list[tuple[str, Bound]]) -> exp.Select:
    """Return a SELECT with the conditions of ON and USING moved to WHERE, if one of its sources is protected and all its joins
    are inner joins: the meaning is the same, and the order of the joins is then that of `_any_order`. Return any other SELECT
    with the names alone that its joins merge."""
    node = with_merged_names(with_shared_names(node, bound), bound)
    joins = node.args.get("joins") or []
    if not joins or not any(isinstance(source, Protected) for _, source in bound):
        return node
    plain = all(
        str(join.args.get("kind") or "").upper() in ("", "INNER", "CROSS")
        and not any(join.args.get(name) for name in ("side", "method"))
        for join in joins
    )
    if not plain:
        return with_kept_rows(node, bound)
    if (conditions := _conditions_of(joins, bound)) is None:
        return node
    where = node.args.get("where")
    parts = [*(part for parts in conditions for part in parts), *([] if where is None else [where.this])]
    changes: dict[str, object] = {"joins": [_with_where(join) for join in joins]}
    if parts:
        changes["where"] = exp.Where(this=exp.and_(*parts, copy=False))
    return exp.Select(**{**node.args, **changes})


def _with_sources(condition: exp.Expr, joined: list[tuple[str, Bound]], further: list[tuple[str, Bound]]) -> exp.Expr:
    """Return a condition of ON with the source of each name that further sources have, too: ON names those joined before. Refuses
    names that only further sources have."""
    names = frozenset(name for _, source in further for name in labels_by_name(source))
    aliases = {alias.lower() for alias, _ in further} - {alias.lower() for alias, _ in joined}
    written = condition.copy() if names else condition
    for part in written.walk(prune=lambda part: isinstance(part, exp.Query)) if names else ():
        if not isinstance(part, exp.Column):
            continue
        if part.table.lower() in aliases:
            hint = "ON names only what is joined before it"
            raise refuse("unknown_table", name=part.table, position=place(part), hint=hint)
        if not part.table and part.name.lower() in names:
            owners = [alias for alias, source in joined if part.name.lower() in labels_by_name(source)]
            if not owners:
                hint = "ON names only what is joined before it"
                raise refuse("unknown_column", name=part.name, position=place(part), hint=hint)
            if len(owners) == 1:
                part.set("table", exp.to_identifier(owners[0], quoted=True))
    return written


def _with_where(join: exp.Join) -> exp.Join:
    moved = exp.Join(this=join.this, using=join.args.get("using"))
    moved.meta[BY_WHERE] = True
    return moved


def _merging(name: str, joined: list[tuple[str, Bound]], right: tuple[str, Bound], merged: set[str]) -> exp.EQ | None:
    """Return USING (name) as an equality of the column that was joined first and that of `right`. None where it has another
    meaning: no such column, several that are not `merged`, or sources without names."""
    owners = [alias for alias, source in joined if name.lower() in labels_by_name(source)]
    if len(owners) > 1 and name.lower() not in merged:
        return None
    if not owners or not owners[0] or not right[0] or name.lower() not in labels_by_name(right[1]):
        return None
    left, other = (exp.column(name, table=alias, quoted=True) for alias in (owners[0], right[0]))
    return exp.EQ(this=left, expression=other)


def with_merged_names(node: exp.Select, bound: list[tuple[str, Bound]]) -> exp.Select:
    """Return a SELECT with ON in place of USING of a FULL JOIN, and COALESCE of both sides' columns in place of the names that it
    merges; any other SELECT, and one that shows all columns, unchanged."""
    joins = node.args.get("joins") or []
    full = [index for index, join in enumerate(joins) if join.side == "FULL" and join.args.get("using")]
    if not full or any(item.is_star for item in node.expressions):
        return node
    copy, merged = node.copy(), dict[str, exp.Expr]()
    for index in full:
        equalities = []
        for name in joins[index].args["using"]:
            equality = _merging(using_name(name), bound[: index + 1], bound[index + 1], set())
            if equality is None:
                return node
            equalities.append(equality)
            both = exp.Coalesce(this=equality.this.copy(), expressions=[equality.expression.copy()])
            both.meta[LABEL] = using_name(name)
            merged[using_name(name).lower()] = both
        copy.args["joins"][index].set("on", exp.and_(*equalities, copy=False))
        copy.args["joins"][index].set("using", None)
    for part in list(copy.walk(prune=lambda part: isinstance(part, exp.Query) and part is not copy)):
        if isinstance(part, exp.Column) and not part.table and part.name.lower() in merged:
            part.replace(merged[part.name.lower()].copy())
    return copy


def _any_order(sides: list[_Side], joins: list[exp.Join], equalities: list[exp.Expr], policy: Policy) -> _Side:
    """Make comma joins in the order in which a unit has the fewest rows, whatever order they are written in. They start at the
    protected table furthest from the unit table: its parents then join on unique keys, so rows_per_unit stays that table's own
    and is not a product over all. Each next join is the one after which a unit has the fewest rows."""
    if not joins:
        return sides[0]
    names = [(side.table or canonical_text(side.relation), index) for index, side in enumerate(sides)]
    first = min(
        (index for index, side in enumerate(sides) if side.protected),
        key=lambda index: (-_hops(sides[index], policy), names[index]),
    )
    nodes = [joins[0], *joins]
    left, waiting = sides[first], [index for index in range(len(sides)) if index != first]
    while waiting:
        candidates: list[tuple[int, tuple[str, int], _Side]] = []
        failure: Error | None = None
        for index in waiting:
            try:
                side = _join(left, sides[index], nodes[index], equalities, policy)
                rows = rows_per_unit(side.relation, policy) if len(waiting) > 1 else 0
            except Error as error:
                failure = failure or error
                continue
            candidates.append((rows, names[index], side))
        if not candidates:
            _check_names(sides, equalities)
            assert failure is not None
            raise failure
        _, (_, index), left = min(candidates, key=lambda candidate: candidate[:2])
        waiting.remove(index)
    return left


def _hops(side: _Side, policy: Policy) -> int:
    return 0 if side.table is None else len(policy.unit_path(side.table))


def _where_equalities(node: exp.Select) -> list[exp.Expr]:
    """Return the equalities, also of NULL, of every row that passes WHERE: its conjuncts, and those of all parts of an OR."""
    where = node.args.get("where")
    return [] if where is None else _certain(where.this)


def _certain(part: exp.Expr) -> list[exp.Expr]:
    bare = part.unnest()
    if isinstance(bare, exp.And):
        return [equality for inner in bare.flatten() for equality in _certain(inner)]
    if isinstance(bare, (exp.Or, exp.NullSafeEQ)) and _null_safe(bare) is not None:
        return [bare]
    if isinstance(bare, exp.Or):
        first, *alternatives = [_certain(inner) for inner in bare.flatten()]
        return [equality for equality in first if all(equality in other for other in alternatives)]
    return [bare] if isinstance(bare, exp.EQ) else []


def _conditions_of_on(joins: Iterable[exp.Join]) -> list[exp.Expr]:
    return [part for join in joins for part in conjuncts(join.args.get("on"))]


def _side(context: BindingContext, alias: str, source: Bound, node: exp.Expr, null_safe: frozenset[str]) -> _Side:
    """Return one source as a side of a join. `null_safe`: lower-case names of columns that are compared with NULL as a value."""
    if isinstance(source, Protected):
        return _Side(((alias, source),), source.relation, True)
    compared = [index for index, label in enumerate(source.columns) if label.lower() in null_safe]
    rows = labelled(source) or context.rows(source, node, compared)
    return _Side(((alias, rows),), rows.relation, False)


def _join(
    left: _Side, right: _Side, node: exp.Join, equalities: list[exp.Expr] | None, policy: Policy, is_other: bool = False
) -> _Side:
    """Join one more source. `equalities`: of WHERE, the keys of a comma join (WHERE filters by them as well). Of the two orders
    of a FULL JOIN of protected sides, which mean the same, that with fewer rows of a unit is taken; `is_other`: the second."""
    only(node, "this", "side", "kind", "on", "using")
    kind = "inner" if equalities is not None else _kind(node)
    if kind == "right":
        left, right, kind = right, left, "left"
    both_kept = kind == "full" and left.protected and right.protected
    keeps = (kind == "full" and not both_kept) or (kind == "left" and not left.protected and right.protected)
    if not left.protected and right.protected:
        left, right, kind = right, left, "inner" if kind == "left" else kind
    kind = "left" if kind == "full" else kind
    public = right.relation
    pairs, rest = _condition(left, right, node, equalities, policy)
    pairs.sort(key=canonical_text)  # their order changes nothing, and is no other question
    if kind == "left" and not both_kept:
        right, rest = _filtered(right, rest)
        if pairs and not keeps:
            guards, rest = _guarded(left, rest, pairs[0])
            pairs += guards
    if kind == "left" and rest:
        _check_null_safe(rest, right, node)
        word = "a FULL JOIN takes equalities" if both_kept else "an outer join takes equalities"
        reason = f"{word}{' alone' if both_kept else ', and conditions that name one of its sides'}"
        hint = "compare two columns in WHERE; that removes the rows without a partner"
        raise refuse("join", reason=reason, way=hint, position=place(rest[0]))
    if not left.protected:
        raise _two_public(node)
    keys = tuple((_moved("a.", a), _moved("b.", b)) for a, b in pairs)
    join = Join(left.relation, right.relation, kind, keys, right.protected)
    if right.protected:
        _check_units(left, right, pairs, policy, node)
    elif _public_matches(join, right, pairs, policy, node) > 1 and any(
        alias.startswith(HIDDEN) for alias, _ in right.sources
    ):
        raise refuse("several_rows", position=place(node.find(exp.Subquery)))  # a correlated value, written as a join
    relation: Relation = join
    sources = left.renamed("a.", both_kept, alone=keeps) + right.renamed("b.", kind == "left")
    if both_kept:
        relation = _all_rows(join, pairs, sources)
    if rest:
        scalars = Scalars(Scope(sources))
        for part in rest:
            relation = Filter(relation, scalars.boolean(part))
    side = _Side(sources, relation, True, _unpaired(relation, public, left.unpaired or right.unpaired, keeps, node))
    if not both_kept or is_other:
        return side
    orders = (side, _join(right, left, node, equalities, policy, is_other=True))
    return min(orders, key=lambda order: (rows_per_unit(order.relation, policy), canonical_text(order.relation)))


def _all_rows(join: Join, pairs: list[tuple[Expr, Expr]], sources: tuple[tuple[str, Protected], ...]) -> Relation:
    """Return the rows of a FULL JOIN of protected sides: those of the LEFT JOIN, and rows of the right without a partner."""
    alone = SemiJoin(join.right, join.left, tuple((b, a) for a, b in pairs), True, True, False)
    columns = [column for _, source in sources for _, column in source.columns]
    of_right = [
        Column(column.name[2:], column.facts)
        if column.name.startswith("b.")
        else Literal(None, replace(column.facts, values=None))
        for column in columns
    ]
    names = [column.name for column in columns]
    return Union_((
        Project(join, tuple(zip(names, columns, strict=True))), Project(alone, tuple(zip(names, of_right, strict=True))),
    ))  # fmt: skip


def _unpaired(
    relation: Relation, public: Relation, before: UnpairedRows | None, keeps: bool, node: exp.Join
) -> UnpairedRows | None:
    """Return the public rows without a partner that this join, or one below it, keeps. Refuses a second such join."""
    if not keeps:
        return before
    unpaired = unpaired_rows(relation, public, place(node)) if before is None else None
    if unpaired is None:
        hint = "let the protected table be the side that is preserved, or use an inner join"
        raise refuse("join", reason="several outer joins keep public rows", way=hint, position=place(node))
    return unpaired


def _filtered(right: _Side, rest: list[exp.Expr]) -> tuple[_Side, list[exp.Expr]]:
    """Filter the right side of an outer join by the conditions of ON on that side alone; return it and the others."""
    scalars, left_over = Scalars(Scope(right.sources)), []
    relation = right.relation
    for part in rest:
        try:
            relation = Filter(relation, scalars.boolean(part))
        except Error:
            left_over.append(part)
    return replace(right, relation=relation), left_over


def _guarded(
    left: _Side, rest: list[exp.Expr], pair: tuple[Expr, Expr]
) -> tuple[list[tuple[Expr, Expr]], list[exp.Expr]]:
    """Return the conditions of ON that name the left side of a LEFT JOIN alone as an equality, which rows without them never
    fulfil: CASE WHEN condition THEN left.key END = right.key; and the other conditions."""
    scalars, conditions, left_over = Scalars(Scope(left.sources)), list[Expr](), list[exp.Expr]()
    for part in rest:
        try:
            conditions.append(scalars.boolean(part))
        except Error:
            left_over.append(part)
    if not conditions:
        return [], left_over
    whole = canonical_condition(conditions[0] if len(conditions) == 1 else call("and", *conditions))
    return [(call("case", whole, pair[0], literal(None)), pair[1])], left_over


_TESTS = {"SEMI": "EXISTS", "ANTI": "NOT EXISTS"}
"""Conditions that mean the same as these joins."""


def _kind(node: exp.Join) -> str:
    side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
    if kind not in ("", "INNER", "OUTER", "CROSS") or side not in ("", "LEFT", "RIGHT", "FULL"):
        tested = next((word for kinds, word in _TESTS.items() if kinds in (side, kind)), None)
        hint = (
            f"write WHERE {tested} (SELECT 1 FROM ... WHERE equal keys)"
            if tested
            else "use INNER JOIN or LEFT JOIN with ON"
        )
        raise refuse("join", reason=f"{side or kind} JOIN over protected rows", way=hint, position=place(node))
    if node.args.get("on") is None and not node.args.get("using") and kind != "CROSS":
        raise refuse("join", reason="a cross join has no bound", way="add ON with equal keys", position=place(node))
    return side.lower() if side else "inner"


def _condition(
    left: _Side, right: _Side, node: exp.Join, equalities: list[exp.Expr] | None, policy: Policy
) -> tuple[list[tuple[Expr, Expr]], list[exp.Expr]]:
    """Return the equalities between the two sides, and all other conditions of ON."""
    shared = frozenset(using_name(name).lower() for name in node.args.get("using") or ())
    left_scalars, right_scalars = Scalars(Scope(left.sources, shared)), Scalars(Scope(right.sources))
    pairs: list[tuple[Expr, Expr]] = []
    rest: list[exp.Expr] = []
    for name in (node.args.get("using") or ()) if equalities is None else ():
        column = exp.column(using_name(name))
        pairs.append((left_scalars.bind(column), right_scalars.bind(column)))
    conditions = equalities or conjuncts(node.args.get("on"))
    for part in conditions:
        bare = part.unnest()
        pair = None
        sides = (bare.this, bare.expression) if isinstance(bare, exp.EQ) else _null_safe(bare)
        if sides is not None:
            pair = _pair(left_scalars, right_scalars, *sides) or _pair(left_scalars, right_scalars, *reversed(sides))
        if pair is None:
            rest += [part] if equalities is None else []
            continue
        left_scalars.call("eq", bare, *pair)
        if isinstance(bare, exp.EQ) or not all(_may_be_null(*each) for each in zip((left, right), pair, strict=True)):
            pairs.append(pair)
        elif written := _null_safe_pairs(right, *pair):
            pairs += written
        else:
            rest += [part] if equalities is None else []
    _check_names((left, right), conditions if equalities is None else (), shared)
    if not pairs and not _few_rows(right, policy):
        _check_null_safe(conditions, right, node)
        hint = UNITS_WAY if right.protected else f"add ON with equal keys; {_ANY_CONDITION}"
        raise refuse("join", reason="no key of one side equals a key of the other", way=hint, position=place(node))
    return pairs, rest


def _may_be_null(side: _Side, key: Expr) -> bool:
    """Return whether a compared value may be NULL in rows that are read: rows without the key of a unit belong to nobody."""
    return key.facts.nullable and not same_unit(key, side.unit_names)


def _null_safe_pairs(right: _Side, a: Expr, b: Expr) -> list[tuple[Expr, Expr]]:
    """Return two equalities that mean `a IS NOT DISTINCT FROM b`, where b is a column of a result; none for other sides."""
    rows = unfiltered(right.relation)
    if not isinstance(rows, ReleasedRows) or not isinstance(b, Column) or a.facts.type is not b.facts.type:
        return []
    columns = {column.name: column for column in rows.columns}
    missing, value = (columns.get(name) for name in names_with_null(b.name))
    if missing is None or value is None:
        return []
    stand_in = literal(STAND_IN[b.facts.type])
    return [(call("is_null", a), missing), (call("coalesce", a, stand_in), value)]


def _check_null_safe(conditions: Iterable[exp.Expr], right: _Side, node: exp.Join) -> None:
    """Refuse a join with public rows of which a condition compares values that may be NULL on both sides, with the reason."""
    if not right.protected and any(_null_safe(part.unnest()) for part in conditions):
        hint = "compare with =, or join a SELECT that groups by the compared columns: its rows have one key each, also NULL"
        reason = "several rows may have no value where IS NOT DISTINCT FROM compares"
        raise refuse("join", reason=reason, way=hint, position=place(node))


def _null_safe(condition: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the sides of `a IS NOT DISTINCT FROM b` and of `a = b OR a IS NULL AND b IS NULL`, as BI tools write it; None for
    other conditions. Where one side is never NULL, ON keeps the same pairs of rows as with `a = b`."""
    if isinstance(condition, exp.NullSafeEQ):
        return condition.this, condition.expression
    parts = [part.unnest() for part in condition.flatten()] if isinstance(condition, exp.Or) else []
    equal = next((part for part in parts if isinstance(part, exp.EQ)), None)
    both = next((part for part in parts if isinstance(part, exp.And)), None)
    if len(parts) != 2 or equal is None or both is None:
        return None
    tested = [part.unnest() for part in both.flatten()]
    missing = {
        part.this.unnest() for part in tested if isinstance(part, exp.Is) and isinstance(part.expression, exp.Null)
    }
    sides = (equal.this.unnest(), equal.expression.unnest())
    return sides if len(tested) == 2 and missing == set(sides) else None


def _check_names(sides: Sequence[_Side], conditions: Iterable[exp.Expr], shared: frozenset[str] = frozenset()) -> None:
    """Refuse names in `conditions` that are unknown or ambiguous over all `sides`, so that a misspelt name is not reported as a
    join that cannot be proven. `shared`: the lower-case names of columns that USING merges."""
    scope = Scope([source for side in sides for source in side.sources], shared)
    for condition in conditions:
        for part in condition.walk(prune=lambda part: isinstance(part, exp.Query)):
            if isinstance(part, exp.Column) and not scope.is_untyped(part):
                scope.resolve(part)


def _few_rows(side: _Side, policy: Policy) -> bool:
    """Return whether a row may be paired with all rows of a side: a result whose number of rows is bounded, or a public table
    with a known number of at most MOST_CROSSED rows."""
    rows = unfiltered(side.relation)
    if isinstance(rows, ReleasedRows):
        return most_met(rows, ()) is not None
    listed = None if side.protected or side.table is None else policy.tables[side.table].rows
    return listed is not None and len(listed[1]) <= MOST_CROSSED


def _pair(left: Scalars, right: Scalars, a: exp.Expr, b: exp.Expr) -> tuple[Expr, Expr] | None:
    if a.find(exp.Column) is None or b.find(exp.Column) is None:
        return None
    if any(isinstance(part, exp.Column) and not side.scope.has(part) for side, part in ((left, a), (right, b))):
        return None
    try:
        return left.bind(a), right.bind(b)
    except Error:
        return None


def _names(right: _Side, pairs: list[tuple[Expr, Expr]]) -> tuple[str, ...]:
    """Return the base table's columns that are compared bare, and without losing values to rounding (`told_apart`)."""
    columns = (base_column(right.relation, b) for a, b in pairs if told_apart(a, b))
    return tuple(column for column in columns if column is not None)


def _public_matches(
    relation: Join, right: _Side, pairs: list[tuple[Expr, Expr]], policy: Policy, node: exp.Join
) -> int:
    """Return the largest number of rows of a public table or a result that share the key. Refuses a join without a limit.

    A result has one row for each value of its unique columns, whatever is released, and no more rows than its text allows.
    """
    met, _ = matches(relation, policy)
    if isinstance(unfiltered(right.relation), ReleasedRows):
        if met is None or met > MOST_CROSSED:
            hint = f"compare all keys of its GROUP BY, or give it a LIMIT of at most {MOST_CROSSED:,} rows"
            reason = "several rows of the result may have the same key"
            raise refuse("join", reason=reason, way=hint, position=place(node))
        return met
    assert right.table is not None
    if met is None:
        names = ", ".join(_names(right, pairs)) or "these expressions"
        raise refuse(
            "join",
            reason=f"several rows of {right.table} may have the same {names}",
            way=f"the owner can declare primary_key, unique or max_multiplicity for {right.table}.{names}",
            position=place(node),
        )
    return met


def _check_units(left: _Side, right: _Side, pairs: list[tuple[Expr, Expr]], policy: Policy, node: exp.Join) -> None:
    """Refuse a join of protected sides whose keys do not imply equal units. The emitted join compares the units in any case."""
    if policy.privacy_unit is None:
        hint = "under row privacy every row is somebody else; join with public tables"
        raise refuse("join", reason="each row of both tables is a privacy unit", way=hint, position=place(node))
    same = any(same_unit(a, left.unit_names) and same_unit(b, right.unit_names) for a, b in pairs)
    if not same and not along_key(left.relation, right.relation, pairs, policy):
        raise refuse("join", reason="rows of different people could meet", way=UNITS_WAY, position=place(node))


def _moved(prefix: str, expression: Expr) -> Expr:
    """Return an expression with its columns renamed to their names above the join."""
    if isinstance(expression, Column):
        return Column(prefix + expression.name, expression.facts)
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(_moved(prefix, argument) for argument in expression.arguments))
    return expression
