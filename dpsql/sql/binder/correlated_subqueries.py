"""Correlated scalar subqueries in WHERE, in a SELECT list, in GROUP BY and inside aggregates.

(SELECT f(...) FROM t WHERE t.k = outer.k AND ...) has one value for each k: it is grouped by k and joined. That join and
that aggregation are then proven, measured and charged; a correlation other than an equality is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.sql.binder.aggregates import counts_rows, has_aggregate, is_aggregate
from dpsql.sql.binder.joins import MOST_SOURCES
from dpsql.sql.binder.scope import (
    HIDDEN,
    WRITTEN,
    BindingContext,
    Bound,
    Environment,
    Protected,
    Scope,
    labels_of,
    only,
)
from dpsql.sql.binder.select_lists import MOST_WRITTEN
from dpsql.sql.binder.semijoins import with_counts
from dpsql.sql.binder.trees import condition_of, conjuncts, output_name, own_columns
from dpsql.sql.binder.written_rows import between_aggregates
from dpsql.sql.lexer import place

Sources = list[tuple[str, Bound]]
_CLAUSES = ("expressions", "from_", "joins", "where", "with_")


def joined(
    context: BindingContext, node: exp.Select, bound: Sources, environment: Environment
) -> tuple[exp.Select, Sources]:
    """Return `node` with its correlated subqueries replaced by columns of subqueries joined in FROM, and all its sources."""
    clauses = (node.args.get(name) for name in ("where", "group"))
    if not _holds_query([*node.expressions, *filter(None, clauses)]):
        return node, bound
    named = {label for _, source in bound for label in _folded(source)}
    node = with_counts(context, node, bound, environment, lambda select: (*_places(select), *_keys(select, named)))
    if not any(part.find(exp.Subquery) for part in (*_places(node), *_keys(node, set()))):
        return node, bound
    protected = any(isinstance(source, Protected) for _, source in bound)
    copy, added = node.copy(), list(bound)
    for item in copy.expressions:
        if isinstance(item, exp.Subquery):
            name = exp.to_identifier(output_name(item), quoted=True)
            item.replace(exp.Alias(this=exp.Subquery(this=item.this), alias=name))
    aliases: dict[exp.Expr, str] = {}  # equal subqueries, such as in GROUP BY and in the SELECT list, are one join
    for subquery in [value for part in (*_places(copy), *_keys(copy, named)) for value in _values(part)]:
        inner = CorrelatedSubquery(context, subquery, environment)
        if not inner.around or not (protected or inner.protected):
            continue  # without an outer name it is an uncorrelated value; over results alone the sandbox computes it
        alias = aliases.setdefault(subquery.this, f"{HIDDEN}{len(added)}")
        if len(aliases) + len(bound) > len(added):
            join = inner.join(alias)
            copy.append("joins", join)
            added.append((alias, context.source(join.this, environment)[1]))
        value = inner.value(alias)
        value.meta[WRITTEN] = subquery.copy()
        subquery.replace(value)
    if len(added) > len(bound) and not protected:
        for join in copy.args["joins"]:
            if not any(join.args.get(name) for name in ("on", "using", "side", "kind", "method")):
                join.set("kind", "CROSS")  # a comma would hide its sides from the ON of later joins
    return copy, added


def _holds_query(waiting: list[exp.Expr]) -> bool:
    """Return whether one of these expressions, which are used up, has a subquery."""
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.Query):
            return True
        waiting += part.iter_expressions()
    return False


def _keys(node: exp.Select, named: set[str]) -> list[exp.Expr]:
    """Return the parts of a SELECT that form its groups: GROUP BY, and the items of the list that it names by position, alias,
    expression or ALL, or those of DISTINCT. `named`: columns of the sources, which take precedence over aliases."""
    group = node.args.get("group")
    if group is None:
        return (
            [] if node.args.get("distinct") is None else [item for item in node.expressions if not has_aggregate(item)]
        )
    keys = list(group.expressions)
    names = {key.name.lower() for key in keys if isinstance(key, exp.Column) and not key.table} - named
    indexes = {key.name for key in keys if isinstance(key, exp.Literal)}
    items = [
        item
        for number, item in enumerate(node.expressions, 1)
        if not has_aggregate(item)
        and (group.args.get("all") or str(number) in indexes or item.alias.lower() in names or item.unalias() in keys)
    ]
    return [group, *items]


def _places(node: exp.Select) -> list[exp.Expr]:
    """Return the parts of a SELECT computed for each row: WHERE, and calls of aggregates, or without grouping its list."""
    parts = list(node.expressions)
    grouped = any(node.args.get(clause) is not None for clause in ("group", "distinct", "having"))
    if grouped or any(has_aggregate(item) for item in node.expressions):
        parts = [call for item in node.expressions for call in _aggregate_calls(item)]
    where = node.args.get("where")
    return parts if where is None else [where, *parts]


def _aggregate_calls(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the calls of aggregates in an expression, outside of subqueries and windows."""
    if isinstance(node, (exp.Subquery, exp.Select, exp.SetOperation, exp.Window)):
        return
    if is_aggregate(node):
        yield node
        return
    for part in node.iter_expressions():
        yield from _aggregate_calls(part)


def only_with_rows(
    copy: exp.Select, node: exp.Select, key_of: Callable[[exp.Expr], str | None], over: Callable[[exp.Expr], exp.Expr]
) -> None:
    """Add to `copy`, the SELECT over the groups of `node`, the conditions of WHERE and joins that compare keys (`key_of`) with
    results of subqueries: groups that fail one have no rows, which is known only when the results are released. `over`: a part of
    `node` over the groups."""
    conditions: list[exp.Expr] = []
    for part in [*conjuncts(condition_of(node, "where")), *_joined_results(node, key_of)]:
        columns = list(own_columns(part))
        if not columns or part.find(exp.Query) is None or None in map(key_of, columns):
            continue
        try:
            written = over(part)
        except Error:  # a subquery over rows that are no result
            continue
        # A list of public rows has narrowed the keys already.
        if part.find(exp.In) is None or any(table.name.startswith("dp_") for table in written.find_all(exp.Table)):
            conditions.append(exp.Paren(this=written))
    if conditions:
        having = condition_of(copy, "where")
        copy.set("where", exp.Where(this=exp.and_(*([] if having is None else [having]), *conditions, copy=False)))


def _joined_results(node: exp.Select, key_of: Callable[[exp.Expr], str | None]) -> Iterator[exp.Expr]:
    """Yield for each key that an inner join compares with a column of a subquery or of WITH that it is one of its values."""
    joins = node.args.get("joins") or []
    if any(join.side or join.kind not in ("", "INNER", "CROSS") for join in joins):
        return
    sources = {join.this.alias_or_name.lower(): join.this for join in (node.args["from_"], *joins)}
    compared = [
        part for on in (condition_of(node, "where"), *(join.args.get("on") for join in joins)) for part in conjuncts(on)
    ]
    for part in compared if joins else ():
        pair = (part.this, part.expression) if isinstance(part, exp.EQ) else ()
        for column in pair:
            source = sources.get(column.table.lower()) if isinstance(column, exp.Column) else None
            key = next((side for side in pair if key_of(side) is not None), None)
            if key is not None and isinstance(source, (exp.Subquery, exp.Table)):
                values = exp.Select(expressions=[column.copy()], from_=exp.From(this=source.copy()))
                yield exp.In(this=key.copy(), query=exp.Subquery(this=values))


def over_groups(
    context: BindingContext,
    node: exp.Subquery | exp.Exists,
    around: Scope,
    environment: Environment,
    key_of: Callable[[exp.Column], str | None],
) -> exp.Expr:
    """Return a subquery over groups with the columns of the outer rows that it names replaced by the keys of the groups, and
    over protected rows grouped by what it compares with them. Refuses (correlated) columns that are no key (`key_of`)."""
    copy = node.copy()
    inner = CorrelatedSubquery(context, copy, environment)
    outer = [column for column in inner.around if around.has(column)]
    if not outer:
        return node
    for column in outer:
        name = key_of(column)
        if name is None or any(name in labels for _, labels in inner.labels):
            raise _refused("it names a column of the rows around it, of which only groups are left here", column)
        key = exp.column(name, quoted=True)
        key.this.meta.update(column.this.meta)
        column.replace(key)
    if not inner.protected:
        return copy
    inner = CorrelatedSubquery(context, copy, environment)
    alias = f"{HIDDEN}inner"
    join = inner.join(alias)
    value = exp.Paren(this=inner.value(alias))
    for column in list(value.find_all(exp.Column)):
        single = exp.Select(expressions=[column.copy()], from_=exp.From(this=join.this.copy()))
        single.set("where", exp.Where(this=join.args["on"].copy()))
        column.replace(exp.Subquery(this=single))
    return value


def named_around(node: exp.Expr, around: Scope, error: Error) -> Error:
    """Return `error`, a subquery's refusal, or `correlated` if the unknown name in it is a column of the outer row."""
    if error.slug in ("unknown_column", "unknown_table"):
        for column in node.find_all(exp.Column):
            if place(column) == error.position and around.has(column):
                return _refused("it names a column of the row around it", column)
    return error


COUNTED = "count them, and compare the noisy count: (SELECT COUNT(*) FROM ... WHERE ...) > 20"


def of_people(context: BindingContext, node: exp.Expr, environment: Environment, error: Error) -> Error:
    """Return `error` of a subquery in a SELECT over results, or `raw_rows` if people's rows meet its unknown name."""
    select = node.unnest()
    if error.slug in ("unknown_column", "unknown_table") and isinstance(select, exp.Select):
        inner = CorrelatedSubquery(context, exp.Subquery(this=select.copy()), environment)
        if inner.protected and any(place(column) == error.position for column in inner.around):
            return refuse("raw_rows", position=place(node), hint=COUNTED)
    return error


def _refused(reason: str, node: exp.Expr, hint: str | None = None) -> Error:
    return refuse("correlated", reason=reason, position=place(node), hint=hint)


def _values(node: exp.Expr) -> Iterator[exp.Subquery]:
    """Yield the scalar subqueries in an expression, outside of other subqueries."""
    for part in node.iter_expressions():
        if isinstance(part, exp.Subquery):
            if not isinstance(node, (exp.In, exp.Exists, exp.Any, exp.All)):
                yield part
        elif not isinstance(part, (exp.Select, exp.SetOperation)):
            yield from _values(part)


class CorrelatedSubquery:
    """One subquery, and the columns of the outer query that it names (`around`)."""

    def __init__(self, context: BindingContext, subquery: exp.Subquery | exp.Exists, environment: Environment) -> None:
        self.select = subquery.this
        self.around: list[exp.Column] = []
        self.protected = False
        self.labels: list[tuple[str, list[str]]] = []
        if not isinstance(self.select, exp.Select) or self.select.args.get("from_") is None:
            return
        within = context.environment(self.select, environment)
        items = [self.select.args["from_"].this, *(join.this for join in self.select.args.get("joins") or ())]
        sources = [context.source(item, within) for item in items]
        self.protected = any(isinstance(source, Protected) for _, source in sources)
        self.labels = [(alias.lower(), _folded(source)) for alias, source in sources]
        clauses = [self.select.args.get("where"), *self.select.expressions]
        self.around = [c for clause in clauses if clause is not None for c in own_columns(clause) if not self.knows(c)]

    def knows(self, column: exp.Column) -> bool:
        named = [labels for alias, labels in self.labels if not column.table or alias == column.table.lower()]
        return any(column.name.lower() in labels for labels in named)

    def join(self, alias: str) -> exp.Join:
        """Return LEFT JOIN (the subquery, grouped by the expressions it compares with the outer row) ON these are equal."""
        for name, value in self.select.args.items():
            if name not in _CLAUSES and value:
                raise _refused("only WHERE with equalities can be", self.around[0])
        if len(self.select.expressions) != 1:
            raise _refused("it returns several columns", self.around[0])
        item = self.select.expressions[0].unalias()
        if self.protected and not has_aggregate(item):
            hint = "join its table on the equal keys, or aggregate in it: MAX(x)"
            raise _refused("it returns rows of people", self.around[0], hint)
        pairs, rest = self._pairs()
        keys = [exp.alias_(key.copy(), hidden(f"k{index}")) for index, (_, key) in enumerate(pairs)]
        calls = self._calls()
        values = [exp.alias_(value.copy(), hidden(f"v{index}")) for index, value in enumerate(calls or [item])]
        grouped = self.select.copy()
        grouped.set("expressions", [*keys, *values])
        grouped.set("where", exp.Where(this=exp.and_(*rest, copy=True)) if rest else None)
        if calls:
            grouped.set("group", exp.Group(expressions=[key.copy() for _, key in pairs]))
        on = [
            exp.EQ(this=exp.column(hidden(f"k{index}"), table=_quoted(alias)), expression=outer.copy())
            for index, (outer, _) in enumerate(pairs)
        ]
        name = exp.TableAlias(this=_quoted(alias))
        return exp.Join(this=exp.Subquery(this=grouped, alias=name), side="LEFT", on=exp.and_(*on))

    def _calls(self) -> list[exp.Expr]:
        """Return the different aggregate calls of the subquery's value. Refuses (correlated) values with other parts that
        cannot be computed for the outer row: names of the inner rows, windows and subqueries."""
        item = self.select.expressions[0].unalias()
        calls = list(dict.fromkeys(_aggregate_calls(item)))
        if not calls:
            return []
        rest = exp.Paren(this=item.copy())
        for call in list(_aggregate_calls(rest)):
            call.replace(exp.null())
        if rest.find(exp.Window, exp.Subquery, exp.Select, exp.SetOperation):
            raise _refused("its value contains a window or another subquery", self.around[0])
        if rest.find(exp.Column):
            raise _refused("its value names a column outside of its aggregates", self.around[0])
        return calls

    def value(self, alias: str) -> exp.Expr:
        """Return the expression that replaces the subquery: the function of its aggregates that its value is, computed for each
        outer row, because without inner rows COUNT is 0 and any other aggregate NULL (`COALESCE(SUM(x), 0)` is 0)."""
        calls = self._calls()
        if not calls:
            return exp.Paren(this=exp.column(hidden("v0"), table=_quoted(alias)))
        value = exp.Paren(this=self.select.expressions[0].unalias().copy())
        for call in list(_aggregate_calls(value)):
            column: exp.Expr = exp.column(hidden(f"v{calls.index(call)}"), table=_quoted(alias))
            if counts_rows(call):
                column = exp.Coalesce(this=column, expressions=[exp.Literal.number(0)])
            call.replace(column)
        return value

    def _pairs(self) -> tuple[list[tuple[exp.Expr, exp.Expr]], list[exp.Expr]]:
        """Return the equalities of WHERE as pairs of an outer and an inner expression, and the other conditions. Refuses
        (correlated) outer names in any other place."""
        parts = conjuncts(condition_of(self.select, "where"))
        pairs: list[tuple[exp.Expr, exp.Expr]] = []
        rest: list[exp.Expr] = []
        for part in parts:
            bare = part.unnest()
            if not self.names_around(bare):
                rest.append(part)
                continue
            sides = [bare.this, bare.expression] if isinstance(bare, exp.EQ) else []
            outer = [side for side in sides if self.names_around(side) and not self._names_own(side)]
            inner = [side for side in sides if self._names_own(side) and not self.names_around(side)]
            if len(outer) != 1 or len(inner) != 1:
                raise _refused("only = between a column of each can be", next(self._from_around(bare)))
            pairs.append((outer[0], inner[0]))
        item = self.select.expressions[0]
        if not pairs or self.names_around(item):
            raise _refused("only its WHERE can be", self.around[0])
        return pairs, rest

    def _from_around(self, node: exp.Expr) -> Iterator[exp.Column]:
        return (column for column in own_columns(node) if not self.knows(column))

    def names_around(self, node: exp.Expr) -> bool:
        return any(True for _ in self._from_around(node))

    def _names_own(self, node: exp.Expr) -> bool:
        return any(self.knows(column) for column in own_columns(node))


def hidden(name: str) -> exp.Identifier:
    """Return a column name that no column of the query or policy has, so that no unqualified name of the query can mean it."""
    return _quoted(f"{HIDDEN}{name}")


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _folded(source: Bound) -> list[str]:
    return [label.lower() for label in labels_of(source)]


# --- LATERAL subqueries in FROM, rewritten as what they mean ----------------------------------------------------------
# Expressions over the row around, single values, or a join.
#
# `LATERAL (SELECT f(t.a) AS b) x` is f(t.a) wherever the query names b; a SELECT of aggregates without GROUP BY is one
# value for each row, a correlated subquery; any other SELECT with WHERE is a join on those of its conditions that name
# the row around.


def without_laterals(context: BindingContext, node: exp.Select, environment: Environment) -> exp.Select:
    """Return a SELECT with the LATERAL subqueries of its FROM, or a series between aggregates, rewritten. Refuses (clause) those
    that are not understood."""
    sources = _sources(node)
    if not any(isinstance(source, exp.Lateral) for source in sources):
        is_series = len(node.expressions) == 1 and node.expressions[0].find(exp.GenerateSeries) is not None
        return between_aggregates(context, node, environment) if is_series else node
    plain = [source for source in sources if not isinstance(source, exp.Lateral)]
    named = {label.lower() for source in plain for label in labels_of(context.source(source, environment)[1])}
    if len(sources) > MOST_SOURCES:
        raise refuse("clause", what=f"FROM with more than {MOST_SOURCES} sources", position=place(sources[-1]))
    node = node.copy()
    for source in _sources(node):
        if isinstance(source, exp.Lateral):
            _Lateral(context, source, environment).put_into(node, named)
    return node


def _sources(node: exp.Select) -> list[exp.Expr]:
    first = [] if node.args.get("from_") is None else [node.args["from_"].this]
    return [*first, *(join.this for join in node.args.get("joins") or ())]


class _Lateral:
    """One LATERAL subquery of a FROM. `values`: what the query around means by the names of its columns."""

    values: dict[str, exp.Expr]

    def __init__(self, context: BindingContext, node: exp.Lateral, environment: Environment) -> None:
        only(node, "this", "alias")
        self.node, self.alias = node, node.alias
        if not isinstance(node.this, exp.Subquery) or not isinstance(node.this.this, exp.Select):
            raise self._refused("anything but a SELECT")
        self.select = node.this.this
        self.inner = CorrelatedSubquery(context, node.this, environment)
        written = node.args["alias"].args.get("columns") if node.args.get("alias") else None
        labels = [column.name for column in written or ()]
        items = self.select.expressions
        if not items or len(labels) > len(items):
            raise refuse("alias_count", want=len(items), got=len(labels), position=place(node) or place(node.this))
        labels += [output_name(item) for item in items[len(labels) :]]
        self.values = {label.lower(): item.unalias() for label, item in zip(labels, items, strict=True)}

    def put_into(self, node: exp.Select, named: set[str]) -> None:
        """Rewrite `node`. `named`: lower-case names of columns of the other sources, which unqualified names may mean."""
        join, has_rows = self.node.parent, bool(self.inner.labels)
        if has_rows and not self.inner.around:
            self.node.replace(exp.Subquery(this=self.select, alias=self.node.args.get("alias")))
            return
        if not isinstance(join, exp.Join):
            raise self._refused("names of other sources that do not stand before it")
        outer = str(join.args.get("side") or "").upper() == "LEFT"
        if (join.args.get("side") and not outer) or join.args.get("using") or join.args.get("method"):
            raise self._refused("another join than CROSS, INNER or LEFT JOIN")
        for clause, value in self.select.args.items():
            if value and clause not in ("expressions", "from_", "joins", "where"):
                raise self._refused(clause.strip("_").upper())
        if any(item.is_star or item.find(exp.Window) for item in self.select.expressions):
            raise self._refused("* or a window in its SELECT list")
        is_last = node.args["joins"][-1] is join
        if has_rows and not any(map(has_aggregate, self.select.expressions)):
            table = self._joined(join, outer)
            self._name_values(node, named, False)
            join.set("this", table)
            return
        node.args["joins"].remove(join)
        condition = self._single_row(join, outer)
        if condition is not None:
            node.where(condition, copy=False)
        self._name_values(node, named, is_last)

    def _single_row(self, join: exp.Join, outer: bool) -> exp.Expr | None:
        """Make the outputs of a subquery of one row expressions over the row around, and return the condition on that row."""
        conditions = _conditions(join)
        if self.inner.labels:
            rows = {name: value for name, value in self.select.args.items() if name != "expressions"}
            for label, value in self.values.items():
                self.values[label] = exp.Subquery(this=exp.Select(expressions=[value], **rows).copy())
        else:
            conditions += conjuncts(condition_of(self.select, "where"))
        if not conditions or not outer:
            return exp.and_(*conditions) if conditions else None
        for label, value in self.values.items():
            self.values[label] = exp.Case(ifs=[exp.If(this=exp.and_(*conditions), true=value)])
        return None

    def _joined(self, join: exp.Join, outer: bool) -> exp.Subquery:
        """Return the subquery as a table of what the row around reads of it, and join it on its correlated conditions."""
        outputs: list[exp.Expr] = []

        def read(value: exp.Expr) -> exp.Expr:
            """Return the column of the derived table that has a value of its rows."""
            if value not in outputs:
                outputs.append(value)
            return exp.column(hidden(f"l{outputs.index(value)}"), table=exp.to_identifier(self.alias, quoted=True))

        def outside(value: exp.Expr) -> exp.Expr:
            """Return an expression over both rows with the columns of the derived table."""
            copy = exp.Paren(this=value.copy())
            for column in list(copy.find_all(exp.Column)):
                if self.inner.knows(column):
                    column.replace(read(column.copy()))
            return copy

        conditions = conjuncts(condition_of(self.select, "where"))
        correlated = [part for part in conditions if self.inner.names_around(part)]
        inner = [part for part in conditions if not self.inner.names_around(part)]
        on = [*map(outside, correlated), *_conditions(join)]
        for label, value in self.values.items():
            of_both = self.inner.names_around(value)
            if of_both and outer:
                raise self._refused("a column of both rows in a LEFT JOIN")
            self.values[label] = outside(value) if of_both else read(value)
        rows = {name: value for name, value in self.select.args.items() if name not in ("expressions", "where")}
        items = [exp.alias_(value, hidden(f"l{index}")) for index, value in enumerate(outputs)]
        table = exp.Select(expressions=items, **rows).copy()
        if inner:
            table.set("where", exp.Where(this=exp.and_(*inner)))
        join.set("on", exp.and_(*on) if on else None)
        join.set("kind", None if on else "CROSS")
        return exp.Subquery(this=table, alias=exp.TableAlias(this=exp.to_identifier(self.alias, quoted=True)))

    def _name_values(self, node: exp.Select, named: set[str], is_last: bool) -> None:
        """Replace the names of the subquery's columns in `node`. `is_last`: the values are the last columns of its `*`."""
        listed = [exp.alias_(value.copy(), label, quoted=True) for label, value in self.values.items()]
        items: list[exp.Expr] = []
        for item in node.expressions:
            of_all = isinstance(item, exp.Star)
            of_this = item.is_star and not of_all and item.table.lower() == self.alias.lower()
            if of_all and (not is_last or any(item.args.values())):
                raise self._refused("SELECT * around it; name the columns")
            is_output = isinstance(item, exp.Column) and not item.is_star and self._value(item, node, named) is not None
            items += [] if of_this else [exp.alias_(item, item.name, quoted=True) if is_output else item]
            items += [part.copy() for part in listed] if of_all or of_this else []
        node.set("expressions", items)
        named_here = [(column, self._value(column, node, named)) for column in node.find_all(exp.Column)]
        sizes = {label: sum(1 for _ in value.walk()) for label, value in self.values.items()}
        if sum(sizes[column.name.lower()] for column, value in named_here if value is not None) > MOST_WRITTEN:
            raise refuse("heavy_expression", position=place(self.node) or place(self.node.this))
        for column, value in named_here:
            if value is not None:
                column.replace(value.copy() if isinstance(value, exp.Column) else exp.Paren(this=value.copy()))

    def _value(self, column: exp.Column, node: exp.Select, named: set[str]) -> exp.Expr | None:
        """Return what a column of the query around means; None if it is not one of this subquery."""
        label = column.name.lower()
        if column.table:
            return self._qualified(column, node) if column.table.lower() == self.alias.lower() else None
        if label not in self.values or column.parent_select is not node:
            return None
        if label not in named:
            return self.values.get(label)
        if label in (item.alias.lower() for item in node.expressions):
            return None
        raise refuse("ambiguous_column", name=column.name, position=place(column))

    def _qualified(self, column: exp.Column, node: exp.Select) -> exp.Expr | None:
        """Return what a column with this subquery's alias means, None if a subquery around the column has rows of this name.
        Refuses a meaning of which a subquery around the column might read a name as that of its own rows."""
        value, inner, select = self.values.get(column.name.lower()), set[str](), column.parent_select
        while isinstance(select, exp.Select) and select is not node:
            inner |= {rows.alias_or_name.lower() for rows in select.find_all(exp.Table, exp.DerivedTable)}
            select = select.parent_select
        if value is None or self.alias.lower() in inner:
            return None
        if inner and any(not name.table or name.table.lower() in inner for name in value.find_all(exp.Column)):
            raise self._refused("a column that is named in a subquery; name the tables of both differently")
        return value

    def _refused(self, clause: str) -> Error:
        return refuse("clause", what=f"LATERAL with {clause}", position=place(self.node) or place(self.node.this))


def _conditions(join: exp.Join) -> list[exp.Expr]:
    """Return the conditions of ON, without those that are always true."""
    return [part for part in conjuncts(join.args.get("on")) if part.unnest() != exp.true()]
