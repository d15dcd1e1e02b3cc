"""IN and EXISTS subqueries in WHERE over protected rows: semi-joins that keep rows_per_unit (privacy.md 3).

Two kinds are proven. A subquery over public tables is a fixed list. A subquery over protected rows that is tied to the
row by the privacy unit reads the unit's own rows alone, so removing a unit changes no other unit's rows.
Both must be whole conjuncts of WHERE, with or without NOT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse, suggestion
from dpsql.functions.kept_rows import name_of
from dpsql.plan.plan import OTHER, Column, Expr, Filter, Relation, SemiJoin, base_scan
from dpsql.plan.stability import rows_per_unit
from dpsql.sql.binder.aggregates import has_aggregate
from dpsql.sql.binder.equal_keys import UNITS_WAY, along_key, base_table, project
from dpsql.sql.binder.function_calls import CALLED
from dpsql.sql.binder.scalars import HANDLERS, Scalars, not_allowed
from dpsql.sql.binder.scope import (
    HIDDEN,
    BindingContext,
    Bound,
    Environment,
    Protected,
    Released,
    Scope,
    labels_of,
    only,
    same_unit,
    shown_names,
    using,
)
from dpsql.sql.binder.trees import condition_of, conjuncts, literal_limit, output_name, own_columns
from dpsql.sql.lexer import place

# --- IN and EXISTS subqueries inside expressions over protected rows --------------------------------------------------
# Under OR, in CASE, in FILTER, as keys and as values.
#
# As whole conjuncts of WHERE they are semi-joins (`semijoins`). Elsewhere EXISTS (SELECT ... FROM t WHERE t.k = outer.k
# AND ...) is (SELECT COUNT(*) FROM t WHERE t.k = outer.k AND ...) > 0, a correlated value (`correlated_subqueries`):
# the join with t grouped by k is proven, priced and charged. That count is exact only if k is the privacy unit's key on
# both sides, or if t is public; of other rows it would be a noisy result, so they are refused.
#
# x IN (SELECT y FROM t ...) is such an EXISTS with y = x, which is FALSE where IN may be NULL. So it is rewritten only
# if both x and y are never NULL, or if NULL excludes the row as FALSE does.

Sources = list[tuple[str, Bound]]
_KEEPING = (exp.And, exp.Or, exp.Paren)
_MORE = ("group", "having", "limit", "offset", "distinct", "qualify", "with_", "windows", "order")


def plain_select(query: exp.Expr, context: BindingContext, environment: Environment) -> exp.Select | None:
    """Return the SELECT of an IN or EXISTS as SELECT ... FROM one_source WHERE ...; None if it has no such form.

    Whether it returns a row, and which values, does not depend on DISTINCT and ORDER BY, and the former not on LIMIT.
    """
    select = query.unnest() if isinstance(query, exp.Subquery) else query
    if not isinstance(select, exp.Select) or select.args.get("from_") is None:
        return None
    ignored = {"order"} if select.args.get("limit") is None else set[str]()
    distinct = select.args.get("distinct")
    ignored |= {"distinct"} if distinct is not None and distinct.args.get("on") is None else set()
    ignored |= (
        {"limit", "order"} if isinstance(query.parent, exp.Exists) and (literal_limit(select) or 0) > 0 else set()
    )
    if any(select.args.get(clause) for clause in _MORE if clause not in ignored):
        return None
    if any(has_aggregate(item) or item.find(exp.Window) for item in select.expressions):
        return None
    if isinstance(query.parent, exp.Exists):
        _check_listed(select)
    if not ignored & {name for name, value in select.args.items() if value} and not select.args.get("joins"):
        return select
    plain = exp.Select(**{name: value for name, value in select.copy().args.items() if name not in ignored})
    return _with_one_source(plain, context, environment) if plain.args.get("joins") else plain


def _check_listed(select: exp.Select) -> None:
    """Refuse in the list of EXISTS, of which nothing is read, functions that may be of several rows, or give several."""
    for item in select.expressions:
        for part in item.walk(prune=lambda node: isinstance(node, exp.Query)):
            unknown = isinstance(part, exp.Anonymous) and str(part.this).lower() not in CALLED
            if unknown or (isinstance(part, (exp.Func, exp.UDTF)) and type(part) not in HANDLERS):
                raise not_allowed(part)


def _check_names(select: exp.Select, sources: Sources) -> None:
    """Refuse in the list of EXISTS what names no column of the rows there or of the row around (`sources`)."""
    for column in (column for item in select.expressions for column in own_columns(item)):
        if not columns_of(column, sources):
            labels = [label for _, source in sources for label in labels_of(source)]
            hint = suggestion(column.name, shown_names(labels))
            raise refuse("unknown_column", name=column.sql(), position=place(column), hint=hint)


def _with_one_source(select: exp.Select, context: BindingContext, environment: Environment) -> exp.Select:
    """Return a SELECT from joined sources as a SELECT from a subquery that joins them: conditions that name no column of the
    outer row move inside, and the columns that the others name are its outputs."""
    joined = [select.args["from_"].this, *(join.this for join in select.args["joins"])]
    inner = [context.source(item, environment) for item in joined]
    alias = exp.to_identifier(f"{HIDDEN}joined", quoted=True)
    outputs: dict[exp.Expr, exp.Identifier] = {}
    outside: list[exp.Expr] = []
    inside: list[exp.Expr] = []
    for part in conjuncts(condition_of(select, "where")):
        is_inner = all(columns_of(column, inner) for column in own_columns(part))
        (inside if is_inner else outside).append(exp.Paren(this=part))
    items = [exp.Literal.number(1) if item.is_star else exp.Paren(this=item.unalias()) for item in select.expressions]
    for column in [column for part in (*outside, *items) for column in own_columns(part) if columns_of(column, inner)]:
        name = outputs.setdefault(column.copy(), exp.to_identifier(f"{HIDDEN}c{len(outputs)}", quoted=True))
        column.replace(exp.Column(this=name.copy(), table=alias.copy()))
    named = [exp.alias_(column, name) for column, name in outputs.items()]
    within = exp.Select(expressions=named or [exp.Literal.number(1)], from_=select.args["from_"])
    within.set("joins", select.args["joins"])
    for query, conditions in ((within, inside), (result := exp.Select(expressions=items), outside)):
        query.set("where", exp.Where(this=exp.and_(*conditions)) if conditions else None)
    result.set("from_", exp.From(this=exp.Subquery(this=within, alias=exp.TableAlias(this=alias))))
    return result


def with_counts(
    context: BindingContext,
    node: exp.Select,
    bound: Sources,
    environment: Environment,
    parts_of: Callable[[exp.Select], Iterable[exp.Expr]],
) -> exp.Select:
    """Return `node` with the IN and EXISTS subqueries in its row expressions (`parts_of` it) replaced by counts where these mean
    the same; `node` itself if it has none."""
    if not any(isinstance(source, Protected) for _, source in bound) or not _tests(parts_of(node), node):
        return node
    merged, preserved = using(node.args.get("joins") or [], [alias for alias, _ in bound])
    shared = merged - preserved.keys()
    copy = node.copy()
    for item in copy.expressions:
        if isinstance(item, (exp.In, exp.Exists)):
            item.replace(exp.alias_(item.copy(), output_name(item), quoted=True))
    for test in _tests(parts_of(copy), copy):
        counted = _counted(context, test, bound, environment, shared)
        if counted is not None:
            test.replace(counted)
    return copy


def _tests(parts: Iterable[exp.Expr], node: exp.Select) -> list[exp.In | exp.Exists]:
    """Return IN and EXISTS subqueries of a SELECT's parts, outside of others, without those that become semi-joins."""
    whole = {id(without_not(part)[0]) for part in conjuncts(condition_of(node, "where"))}
    tests: dict[int, exp.In | exp.Exists] = {}
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Exists) or (isinstance(part, exp.In) and part.args.get("query") is not None):
            if id(part) not in whole:
                tests[id(part)] = part
        elif not isinstance(part, (exp.Select, exp.SetOperation, exp.Subquery)):
            waiting += part.iter_expressions()
    return list(tests.values())


def without_not(part: exp.Expr) -> tuple[exp.Expr, bool]:
    """Return a condition without the brackets and NOTs around it, and whether it is negated."""
    negated = False
    while isinstance(part, (exp.Paren, exp.Not)):
        negated ^= isinstance(part, exp.Not)
        part = part.this
    return part, negated


def _counted(
    context: BindingContext,
    test: exp.In | exp.Exists,
    bound: Sources,
    environment: Environment,
    shared: frozenset[str],
) -> exp.Expr | None:
    """Return (SELECT COUNT(*) ...) > 0 for a subquery that reads only rows of the same unit or public rows; else None.

    `shared`: names that USING merges into one column, which is that of the first source that has it."""
    select = plain_select(test.args["query"] if isinstance(test, exp.In) else test.this, context, environment)
    if select is None:
        return None
    if isinstance(test, exp.In):
        select = _with_own_alias(select, {alias.lower() for alias, _ in bound})
    alias, rows = context.source(select.args["from_"].this, environment)
    inner = [(alias, rows)]
    if isinstance(test, exp.Exists):
        _check_names(select, [*inner, *bound])
    counted = exp.Select(expressions=[exp.Count(this=exp.Star(), big_int=True)], from_=select.args["from_"].copy())
    conditions = [part.copy() for part in conjuncts(condition_of(select, "where"))]
    if isinstance(test, exp.In):
        value = select.expressions[0].unalias().unnest()
        outer = test.this.unnest()
        if len(select.expressions) != 1 or not isinstance(value, exp.Column) or not isinstance(outer, exp.Column):
            return None
        on_unit = _is_unit(value, inner) and _is_unit(outer, bound)
        if not (_keeps_rows(test) or (_never_null(outer, bound) and (on_unit or _never_null(value, inner)))):
            return None
        inner_side, around = _qualified(value, inner, frozenset()), _qualified(outer, bound, shared)
        if inner_side is None or around is None or inner_side.table.lower() == around.table.lower():
            return None
        conditions.append(exp.EQ(this=inner_side, expression=around))
    if isinstance(rows, Protected):
        correlated = [
            part for part in conditions if not all(columns_of(column, inner) for column in part.find_all(exp.Column))
        ]
        if not correlated or not all(_ties(part, inner, bound) for part in correlated):
            return None
    if conditions:
        counted.set("where", exp.Where(this=exp.and_(*conditions)))
    return exp.Paren(this=exp.GT(this=exp.Subquery(this=counted), expression=exp.Literal.number(0)))


def _with_own_alias(select: exp.Select, taken: set[str]) -> exp.Select:
    """Return the SELECT of an IN, its table under another alias if one outside has its name and no column is qualified."""
    table = select.args["from_"].this
    if not isinstance(table, exp.Table) or table.alias or table.name.lower() not in taken:
        return select
    if any(column.table for column in select.find_all(exp.Column)):
        return select
    copy = select.copy()
    alias = exp.TableAlias(this=exp.to_identifier(f"{HIDDEN}rows", quoted=True))
    copy.args["from_"].this.set("alias", alias)
    return copy


def _keeps_rows(test: exp.Expr) -> bool:
    """Return whether NULL is as good as FALSE in a test's place: in WHERE, FILTER or CASE, under AND, OR and brackets alone."""
    below, above = test, test.parent
    while isinstance(above, _KEEPING):
        below, above = above, above.parent
    branch = isinstance(above, exp.If) and above.this is below
    return isinstance(above, exp.Where) or (branch and above is not None and _is_searched(above))


def _is_searched(branch: exp.Expr) -> bool:
    """Return whether a branch belongs to CASE WHEN condition, not to CASE x WHEN value."""
    return not isinstance(branch.parent, exp.Case) or branch.parent.this is None


def columns_of(node: exp.Expr, sources: Sources) -> list[tuple[str, Bound]]:
    """Return the sources, with their aliases, that have a column that `node` may name; empty for other nodes."""
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return []
    label, table = node.name.lower(), node.table.lower()
    return [
        (alias, source)
        for alias, source in sources
        if (not table or alias.lower() == table) and label in (name.lower() for name in labels_of(source))
    ]


def _qualified(node: exp.Column, sources: Sources, shared: frozenset[str]) -> exp.Column | None:
    """Return the column qualified by its source's alias, for use inside a subquery; None if its source is not known."""
    candidates = columns_of(node, sources)
    if not candidates or (len(candidates) > 1 and node.name.lower() not in shared):
        return None
    return exp.Column(this=node.this.copy(), table=exp.to_identifier(candidates[0][0], quoted=True))


def _ties(condition: exp.Expr, inner: Sources, outer: Sources) -> bool:
    """Return whether a condition sets the privacy unit's keys of both rows equal. The subquery's columns take precedence."""
    bare = condition.unnest()
    if not isinstance(bare, exp.EQ):
        return False
    for inner_side, around in ((bare.this, bare.expression), (bare.expression, bare.this)):
        if _is_unit(inner_side, inner) and not columns_of(around, inner) and _is_unit(around, outer):
            return True
    return False


def _is_unit(node: exp.Expr, sources: Sources) -> bool:
    """Return whether a column is the privacy unit's key in all sources that have a column of its name."""
    candidates = columns_of(node, sources)
    return bool(candidates) and all(
        isinstance(source, Protected)
        and all(column.name in source.unit_names for column in source.by_label.get(node.name.lower(), ()))
        for _, source in candidates
    )


def _never_null(node: exp.Column, sources: Sources) -> bool:
    candidates = [source for _, source in columns_of(node, sources)]
    facts = [
        column.facts
        for source in candidates
        if isinstance(source, Protected)
        for column in source.by_label.get(node.name.lower(), ())
    ]
    return bool(facts) and len(facts) == len(candidates) and not any(fact.nullable for fact in facts)


# --- IN and EXISTS subqueries in WHERE over protected rows ------------------------------------------------------------


def filtered(
    context: BindingContext, where: exp.Where, scope: Scope, relation: Relation, environment: Environment
) -> Relation:
    """Return the rows of `relation` that pass a WHERE clause."""
    plain: list[exp.Expr] = []
    for part in conjuncts(where.this):
        bare, negated = without_not(part)
        bare, negated = _correlated_test(context, bare, negated, scope, environment) or (bare, negated)
        if isinstance(bare, exp.In) and bare.args.get("query") is not None:
            relation = _in(context, bare, negated, scope, relation, environment)
        elif isinstance(bare, exp.Exists) and (select := plain_select(bare.this, context, environment)) is not None:
            relation = _exists(context, bare, select, negated, scope, relation, environment)
        else:
            plain.append(part)
    scalars = Scalars(scope)
    conditions = tuple(scalars.boolean(part) for part in plain)
    if not conditions:
        return relation
    whole = conditions[0] if len(conditions) == 1 else scalars.call("and", where, *conditions)
    return Filter(relation, whole)


def _correlated_test(
    context: BindingContext, node: exp.Expr, negated: bool, scope: Scope, environment: Environment
) -> tuple[exp.Exists, bool] | None:
    """Return x IN (SELECT y ... WHERE t.k = outer.k), and comparisons with ANY and ALL of such rows, as EXISTS and whether it is
    negated; None for other conditions. As a whole conjunct each keeps the rows for which it is true: ANY where a comparison is
    true, ALL where none is not true, and with NOT where none is not false, or where one is false."""
    listed = isinstance(node, exp.In)
    test = node if isinstance(node, exp.In) else node.args.get("expression")
    query = test.this if isinstance(test, (exp.Any, exp.All)) else node.args.get("query")
    select = plain_select(query, context, environment) if isinstance(query, exp.Query) else None
    if select is None or len(select.expressions) != 1 or select.expressions[0].is_star:
        return None
    source = select.args["from_"].this
    inner = [context.source(source, environment)]
    names = [*own_columns(select.expressions[0]), *own_columns(condition_of(select, "where") or exp.true())]
    if not any(not columns_of(name, inner) and scope.has(name) for name in names):
        return None
    left = exp.Paren(this=node.this.copy())
    for name in own_columns(left):
        owners = [alias for alias, rows in scope.sources if name.name.lower() in rows.by_label]
        if not name.table and columns_of(name, inner) and len(owners) == 1:
            name.set("table", exp.to_identifier(owners[0], quoted=True))
    if any(columns_of(name, inner) for name in own_columns(left)):
        return None  # within the subquery the name would mean the rows there
    compared = (exp.EQ if listed else type(node))(
        this=left, expression=exp.Paren(this=select.expressions[0].unalias().copy())
    )
    every = isinstance(test, exp.All)
    condition: exp.Expr = compared
    if every == negated:
        condition = exp.Not(this=exp.Paren(this=compared)) if negated else compared
    else:
        condition = exp.Not(
            this=exp.Is(this=exp.Paren(this=compared), expression=exp.false() if negated else exp.true())
        )
    rows = exp.Select(expressions=[exp.Literal.number(1)], from_=select.args["from_"].copy())
    rows.set("where", exp.Where(this=exp.and_(*conjuncts(condition_of(select, "where")), condition)))
    exists = exp.Exists(this=rows)
    exists.meta.update(node.meta)
    return exists, every != negated


def _in(
    context: BindingContext, node: exp.In, negated: bool, scope: Scope, relation: Relation, environment: Environment
) -> Relation:
    only(node, "this", "query")
    query = node.args["query"]
    if query.unnest().args.get("distinct") is not None:
        query = plain_select(query, context, environment) or query
    right = _rows(context, query, environment, scope)
    if len(right.columns) + len(right.untyped) != 1:
        raise refuse(
            "semi_join", reason="the subquery returns several columns", way="select one", position=place(query)
        )
    left = Scalars(scope).bind(node.this)
    column = right.columns[0][1]
    Scalars(scope).call("eq", node, left, column)
    on_unit = _is_protected(right, context)
    if on_unit and not _tied(context, scope, relation, right, [(left, column)]):
        raise _untied(query)
    return SemiJoin(relation, right.relation, ((left, column),), on_unit, negated, True)


def _exists(
    context: BindingContext,
    node: exp.Exists,
    select: exp.Select,
    negated: bool,
    scope: Scope,
    relation: Relation,
    environment: Environment,
) -> Relation:
    """Filter `relation` by EXISTS (SELECT ... FROM t WHERE t.key = outer.key AND conditions), on t alone or on both rows.
    `select`: its SELECT, from one source.

    A condition on both rows is evaluated for each pair with equal keys. Protected rows are paired only within their unit, and
    public rows are fixed: whether a row of `relation` stays depends on its own unit, whatever the condition is.
    """
    source = select.args["from_"].this
    bare_query = isinstance(source, exp.Subquery) and not source.alias_column_names
    inner = source.this if bare_query else exp.Select(expressions=[exp.Star()], from_=select.args["from_"])
    right = _rows(context, inner, environment, scope)
    outer, inner_scalars = Scalars(scope), Scalars(Scope([(source.alias_or_name, right)]))
    both = Scalars(_Correlated((source.alias_or_name, right), scope))
    _check_names(select, [(source.alias_or_name, right), *scope.sources])
    pairs: list[tuple[Expr, Expr]] = []
    rest: list[Expr] = []
    mixed: list[Expr] = []
    parts = [part.unnest() for part in conjuncts(condition_of(select, "where"))]
    for bare in parts:
        pair = _pair(outer, inner_scalars, bare) if isinstance(bare, exp.EQ) else None
        if pair is None:
            on_inner = _bound(inner_scalars, bare)
            (mixed if on_inner is None else rest).append((both if on_inner is None else inner_scalars).boolean(bare))
        else:
            outer.call("eq", bare, *pair)
            pairs.append(pair)
    on_unit = _is_protected(right, context)
    if not pairs and not mixed and not on_unit:
        there_is = context.value(node, environment, scope)
        return Filter(relation, outer.call("not", node, there_is) if negated else there_is)
    if on_unit and not (pairs and _tied(context, scope, relation, right, pairs)):
        raise _untied(node)
    if len(pairs) == 1 and not mixed and not (negated and any(side.facts.nullable for side in pairs[0])):
        # The same as IN (SELECT key FROM t WHERE conditions), and no other question.
        (equality,) = (part for part in parts if isinstance(part, exp.EQ) and _pair(outer, inner_scalars, part))
        is_left = _bound(inner_scalars, equality.this) is not None
        key, compared = (equality.this, equality.expression) if is_left else (equality.expression, equality.this)
        listed = exp.Select(expressions=[key.copy()], from_=select.args["from_"].copy())
        if len(parts) > 1:
            listed.set("where", exp.Where(this=exp.and_(*(part for part in parts if part is not equality))))
        return _in(context, exp.In(this=compared, query=listed), negated, scope, relation, environment)
    source_rows = right.relation
    for own_condition in rest:
        source_rows = Filter(source_rows, own_condition)
    condition = both.call("and", node, *mixed) if len(mixed) > 1 else mixed[0] if mixed else None
    return SemiJoin(relation, source_rows, tuple(sorted(pairs, key=name_of)), on_unit, negated, False, condition)


class _Correlated(Scope):
    """Scope inside a subquery: first its own table's columns, renamed as in a semi-join, then those of the outer query."""

    def __init__(self, inner: tuple[str, Protected], outer: Scope) -> None:
        alias, rows = inner
        renamed = tuple((label, Column(OTHER + column.name, column.facts)) for label, column in rows.columns)
        super().__init__([(alias, Protected(rows.relation, renamed))])
        self.outer = outer

    def resolve(self, node: exp.Column) -> Column:
        """Return the subquery's own column of that name, else the outer row's. Refuses other names as the outer scope does."""
        try:
            return super().resolve(node)
        except Error:
            return self.outer.resolve(node)


def _tied(
    context: BindingContext, scope: Scope, relation: Relation, right: Protected, pairs: list[tuple[Expr, Expr]]
) -> bool:
    """Return whether equal keys imply the same unit: the unit's key, or a declared foreign key between base tables.

    The emitted semi-join also compares the units, so this decides which queries are accepted, not whether they are safe.
    """
    if context.policy.privacy_unit is None:
        return False  # each row of both tables is a separate privacy unit
    units = scope.unit_names()
    if any(same_unit(a, units) and same_unit(b, right.unit_names) for a, b in pairs):
        return True
    return along_key(relation, right.relation, pairs, context.policy)


def _pair(outer_scalars: Scalars, inner_scalars: Scalars, node: exp.EQ) -> tuple[Expr, Expr] | None:
    """Return the outer and the inner side of an equality between the outer row and the subquery's table (whose names take
    precedence); None for any other equality."""
    for outer, inner in ((node.this, node.expression), (node.expression, node.this)):
        if outer.find(exp.Column) is None or inner.find(exp.Column) is None:
            return None
        if _bound(inner_scalars, outer) is None and (b := _bound(inner_scalars, inner)) is not None:
            return outer_scalars.bind(outer), b
    return None


def _bound(scalars: Scalars, node: exp.Expr) -> Expr | None:
    try:
        return scalars.bind(node)
    except Error:
        return None


def _rows(context: BindingContext, query: exp.Expr, environment: Environment, scope: Scope) -> Protected:
    """Return the rows of a subquery as a relation of the plan: protected rows, rows of one public table, or a result."""
    public = _public_rows(context, query, environment)
    if public is not None:
        return public
    bound = context.alone(query, environment, scope)
    return context.rows(bound, query) if isinstance(bound, Released) else bound


def _public_rows(context: BindingContext, query: exp.Expr, environment: Environment) -> Protected | None:
    """Return the rows of SELECT columns FROM a_public_table WHERE ..., read beside the protected rows; else None."""
    select = query.unnest()
    source = select.args.get("from_") if isinstance(select, exp.Select) else None
    if source is None or not isinstance(source.this, exp.Table) or environment.find(source.this.name) is not None:
        return None
    table = context.policy.table(source.this.name)
    if table is None or not table.public or _is_computed(select):
        return None
    only(select, "expressions", "from_", "where")
    only(source.this, "this", "alias", "db", "catalog")
    base_table(context.policy, source.this, {})
    scan = base_scan(table)
    below = Protected(scan, tuple((column.name, column) for column in scan.columns))
    scope = Scope([(source.this.alias_or_name, below)])
    scalars = Scalars(scope)
    if select.args.get("where") is not None:
        below = Protected(Filter(scan, scalars.boolean(select.args["where"].this)), below.columns)
    if all(isinstance(item, exp.Star) for item in select.expressions):
        for star in select.expressions:
            only(star)
        return below
    return project(below, [(output_name(item), scalars.bind(item.unalias())) for item in select.expressions])


_ROW_BY_ROW = ("expressions", "from_", "where")


def _is_computed(select: exp.Expr) -> bool:
    """Return whether a SELECT has clauses over all rows (DISTINCT, LIMIT, GROUP BY) or subqueries; IN reads its result."""
    clauses = any(value for name, value in select.args.items() if name not in _ROW_BY_ROW)
    return clauses or len(list(select.find_all(exp.Query))) > 1


def _is_protected(right: Protected, context: BindingContext) -> bool:
    return rows_per_unit(right.relation, context.policy) > 0


def _untied(node: exp.Expr) -> Exception:
    reason = "the subquery would look at other people's rows"
    return refuse("semi_join", reason=reason, way=UNITS_WAY, position=place(node))
