"""IN and EXISTS subqueries inside expressions over protected rows: under OR, in CASE, in FILTER, as keys and as values.

As whole conjuncts of WHERE they are semi-joins (`semijoins`). Elsewhere EXISTS (SELECT ... FROM t WHERE t.k = outer.k AND ...) is
(SELECT COUNT(*) FROM t WHERE t.k = outer.k AND ...) > 0, a correlated value (`correlated_subqueries`): the join with t grouped by
k is proven, priced and charged. That count is exact only if k is the privacy unit's key on both sides, or if t is public; of
other rows it would be a noisy result, so they are refused.

x IN (SELECT y FROM t ...) is such an EXISTS with y = x, which is FALSE where IN may be NULL. So it is rewritten only if both x
and y are never NULL, or if NULL excludes the row as FALSE does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp

from dpsql.sql.binder.aggregates import has_aggregate
from dpsql.sql.binder.scope import HIDDEN, BindingContext, Bound, Environment, Protected, labels_of, using
from dpsql.sql.binder.trees import condition_of, conjuncts, literal_limit, output_name, own_columns

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
    if not ignored & {name for name, value in select.args.items() if value} and not select.args.get("joins"):
        return select
    plain = exp.Select(**{name: value for name, value in select.copy().args.items() if name not in ignored})
    return _with_one_source(plain, context, environment) if plain.args.get("joins") else plain


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
    """Return the IN and EXISTS subqueries in some parts of a SELECT, outside of other subqueries and without those that become
    semi-joins."""
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
    """Return the SELECT of an IN, with another alias for its table if an outer table has the same name and no column is named
    with its table."""
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
    """Return whether NULL has the same effect as FALSE in the place of a test: in WHERE (or FILTER) or a condition of CASE, under
    AND, OR and brackets alone."""
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
    """Return the column qualified by its source's alias, so that it means the same inside a subquery; None if its source is
    unknown or ambiguous."""
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
