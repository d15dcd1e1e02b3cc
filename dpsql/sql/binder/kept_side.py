"""Aggregates of the public rows that an outer join keeps, for which a row counts once, however often it is paired.

`regions LEFT JOIN patients` has each region at least once. COUNT(DISTINCT x), MIN(x) and MAX(x) of a region's columns are
therefore those of the regions alone: exact values, without any row of a person. They are written as subqueries over the public
side, one value for each group; the other aggregates of the SELECT stay those of the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.sql.binder.aggregates import has_aggregate
from dpsql.sql.binder.scope import HIDDEN, WRITTEN, Bound, Protected, labels_of
from dpsql.sql.binder.trees import aliased, condition_of, output_name, own_columns

_ALIAS = f"{HIDDEN}kept"


def with_kept_rows(node: exp.Select, bound: Sequence[tuple[str, Bound]]) -> exp.Select:
    """Return a SELECT with the aggregates that the rows of its kept public side decide as subqueries over this side.
    Unchanged if WHERE or GROUP BY name another side, a subquery in WHERE names this one, GROUP BY has anything but columns,
    QUALIFY is there, or no other aggregate is left."""
    number = _kept_source(node.args["joins"], bound)
    if number is None or node.args.get("qualify"):
        return node
    side = _Side(node, bound, number)
    keys, where = side.keys(), condition_of(node, "where")
    if keys is None or not all(map(side.owns, _named(where))) or side.is_named_below(where):
        return node
    copy: exp.Select = node.copy()
    clauses = [copy.args[name] for name in ("having", "order") if copy.args.get(name) is not None]
    for part in [*copy.expressions, *clauses]:
        label = None if part.arg_key in ("having", "order") or part.alias else output_name(part)
        calls = [call for call in _calls(part) if side.decides(call)]
        if calls and label is not None:
            named = exp.Alias(alias=exp.to_identifier(label, quoted=True))
            part.replace(named)
            named.set("this", part)
        for call in calls:
            value = side.value(call, keys)
            value.meta[WRITTEN] = call.copy()
            call.replace(value)
    if keys:
        copy.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return copy if any(map(has_aggregate, copy.expressions)) else node


def _kept_source(joins: Sequence[exp.Join], bound: Sequence[tuple[str, Bound]]) -> int | None:
    """Return the number of the public source each of whose rows is there, whatever the others have; None if there is none."""
    if any(join.args.get("method") or join.kind not in ("", "OUTER") for join in joins):
        return None
    sides = [join.side for join in joins]
    number = 0 if set(sides) == {"LEFT"} else 1 if sides == ["RIGHT"] else None
    return number if number is not None and bound[number][0] and not isinstance(bound[number][1], Protected) else None


def _calls(item: exp.Expr) -> list[exp.Expr]:
    """Return the calls in a part of a SELECT, outside of windows, subqueries and FILTER, that read a row once."""
    if isinstance(item, (exp.Query, exp.Window, exp.Filter, exp.WithinGroup)):
        return []
    is_distinct = isinstance(item, exp.Count) and isinstance(item.this, exp.Distinct)
    if is_distinct and len(item.this.expressions) == 1 and not item.this.args.get("on"):
        return [item]
    if isinstance(item, (exp.Min, exp.Max)) and not item.expressions:
        return [item]
    return [call for part in item.iter_expressions() for call in _calls(part)]


def _named(node: exp.Expr | None) -> list[exp.Column]:
    return [] if node is None else list(own_columns(node))


class _Side:
    """The kept side of a SELECT: which names are its own, and values over its rows alone."""

    def __init__(self, node: exp.Select, bound: Sequence[tuple[str, Bound]], number: int) -> None:
        self.node = node
        self.alias = bound[number][0]
        items = [node.args["from_"].this, *(join.this for join in node.args["joins"])]
        self.item: exp.Expr = items[number]
        labels = [{label.lower() for label in labels_of(source)} for _, source in bound]
        self.all = set[str]().union(*labels)
        self.alone = labels[number] - set[str]().union(*labels[:number], *labels[number + 1 :])

    def owns(self, column: exp.Column) -> bool:
        if column.table:
            return column.table.lower() == self.alias.lower()
        return column.name.lower() in self.alone

    def is_named_below(self, where: exp.Expr | None) -> bool:
        """Return whether a subquery in WHERE names this side by its alias, which is another one for its rows alone."""
        below = [] if where is None else where.find_all(exp.Query)
        return any(c.table.lower() == self.alias.lower() for query in below for c in query.find_all(exp.Column))

    def keys(self) -> list[exp.Column] | None:
        """Return the columns that form the groups; None if some are not this side's."""
        group = self.node.args.get("group")
        if group is None:
            return []
        if any(value for name, value in group.args.items() if name not in ("expressions", "all")):
            return None
        plain = [item for item in self.node.expressions if not has_aggregate(item)]
        written = (
            [item.unalias() for item in plain] if group.args.get("all") else list(map(self._key, group.expressions))
        )
        keys = [key for key in written if isinstance(key, exp.Column) and self.owns(key)]
        return keys if len(keys) == len(written) else None

    def _key(self, key: exp.Expr) -> exp.Expr | None:
        """Return what GROUP BY names by a position or an alias."""
        items = self.node.expressions
        if isinstance(key, exp.Literal):
            return (
                items[int(key.name) - 1].unalias() if key.name.isdigit() and 0 < int(key.name) <= len(items) else None
            )
        if isinstance(key, exp.Column) and not key.table and key.name.lower() not in self.all:
            return next((item.unalias() for item in items if item.alias.lower() == key.name.lower()), None)
        return key

    def decides(self, call: exp.Expr) -> bool:
        """Return whether the rows of this side alone decide a call."""
        names = _named(call)
        return bool(names) and all(map(self.owns, names)) and call.find(exp.Query, exp.Star) is None

    def value(self, call: exp.Expr, keys: Sequence[exp.Column]) -> exp.Subquery:
        """Return a call over the rows of this side that have the keys of a group."""
        parts = [] if (where := condition_of(self.node, "where")) is None else [self._over(exp.Paren(this=where))]
        for key in keys:
            outer = exp.column(key.name, table=self.alias, quoted=True)
            parts.append(exp.NullSafeEQ(this=self._over(key), expression=outer))
        rows = exp.Select(
            expressions=[exp.Star()], from_=exp.From(this=self.item.copy())
        )  # named as its alias has them
        select = exp.Select(expressions=[self._over(call)], from_=exp.From(this=aliased(rows, _ALIAS)))
        if parts:
            select.set("where", exp.Where(this=exp.and_(*parts, copy=False)))
        return exp.Subquery(this=select)

    def _over(self, node: exp.Expr) -> exp.Expr:
        copy = node.copy()
        for column in [copy] if isinstance(copy, exp.Column) else list(own_columns(copy)):
            column.set("table", exp.to_identifier(_ALIAS, quoted=True))
        return copy
