"""LATERAL subqueries in FROM, rewritten as what they mean: expressions over the row around, single values, or a join.

`LATERAL (SELECT f(t.a) AS b) x` is f(t.a) wherever the query names b; a SELECT of aggregates without GROUP BY is one value for
each row, a correlated subquery; any other SELECT with WHERE is a join on those of its conditions that name the row around.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.sql.binder.aggregates import has_aggregate
from dpsql.sql.binder.correlated_subqueries import CorrelatedSubquery, hidden
from dpsql.sql.binder.joins import MOST_SOURCES
from dpsql.sql.binder.scope import BindingContext, Environment, labels_of, only
from dpsql.sql.binder.select_lists import MOST_WRITTEN
from dpsql.sql.binder.trees import condition_of, conjuncts, output_name
from dpsql.sql.lexer import place


def without_laterals(context: BindingContext, node: exp.Select, environment: Environment) -> exp.Select:
    """Return a SELECT with the LATERAL subqueries of its FROM rewritten. Refuses (clause) those that are not understood."""
    sources = _sources(node)
    if not any(isinstance(source, exp.Lateral) for source in sources):
        return node
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
