"""IN and EXISTS subqueries in WHERE over protected rows: semi-joins that keep rows_per_unit (privacy.md 3).

Two kinds are proven. A subquery over public tables is a fixed list. A subquery over protected rows that is tied to the
row by the privacy unit reads the unit's own rows alone, so removing a unit changes no other unit's rows.
Both must be whole conjuncts of WHERE, with or without NOT.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.plan.plan import OTHER, Column, Expr, Filter, Relation, SemiJoin, base_scan
from dpsql.plan.stability import rows_per_unit
from dpsql.sql.binder.equal_keys import UNITS_WAY, along_key, base_table, project
from dpsql.sql.binder.scalars import Scalars
from dpsql.sql.binder.scope import BindingContext, Environment, Protected, Released, Scope, only, same_unit
from dpsql.sql.binder.subquery_tests import columns_of, plain_select, without_not
from dpsql.sql.binder.trees import condition_of, conjuncts, output_name, own_columns
from dpsql.sql.lexer import place


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
    return SemiJoin(relation, source_rows, tuple(pairs), on_unit, negated, False, condition)


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
    """Return the rows of SELECT columns FROM a_public_table WHERE ..., which the engine reads together with the protected rows;
    None for any other query."""
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
    """Return whether a SELECT has clauses over all its rows (DISTINCT, LIMIT, GROUP BY), or subqueries; IN and EXISTS then read
    its result."""
    clauses = any(value for name, value in select.args.items() if name not in _ROW_BY_ROW)
    return clauses or len(list(select.find_all(exp.Query))) > 1


def _is_protected(right: Protected, context: BindingContext) -> bool:
    return rows_per_unit(right.relation, context.policy) > 0


def _untied(node: exp.Expr) -> Exception:
    reason = "the subquery would look at other people's rows"
    return refuse("semi_join", reason=reason, way=UNITS_WAY, position=place(node))
