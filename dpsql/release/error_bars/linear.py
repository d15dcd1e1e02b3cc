"""Columns of a remainder that are linear in noisy numbers: sums of released terms with weights that do not depend on noise.

Such a column needs no simulation: its error is the same weighted sum of the noise, whose covariance is known (`linear_bars`).
The analysis is conservative, by allow-list: any operation that is not listed here is taken to be nonlinear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from sqlglot import exp

from dpsql.plan.intervals import Type
from dpsql.release.error_bars.affine import parts
from dpsql.release.remainder import ROW, ReleasedBlock, Remainder


class Form(IntEnum):
    """How a value depends on noise: not at all, as a sum of whole numbers, as a weighted sum, or in any way. The form of a sum is
    the largest form of its summands."""

    EXACT = 0
    WHOLE = 1
    LINEAR = 2
    ANY = 3


Columns = Sequence[tuple[str, Form]]
"""Names in lower case and forms of the columns of a relation whose set of rows does not depend on noise."""
_UNKNOWN: Columns | None = None

_REALS = (exp.DType.DOUBLE, exp.DType.FLOAT)
_INTEGERS = (exp.DType.BIGINT, exp.DType.INT, exp.DType.INT128)
_SUMS = (exp.Sum, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
"""Aggregates and windows whose result is a sum over some of their rows, selected by position."""
_PLAIN = {
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "with_",
    "order",
    "limit",
    "offset",
    "distinct",
    "having",
    "qualify",
}


def linear_columns(remainder: Remainder, tree: exp.Query) -> tuple[Form, ...]:
    """Return the form of each column of `tree`, a query over the tables of `remainder`; an empty tuple if its rows may depend on
    noise."""
    tables: dict[str, Columns | None] = {
        name: [(label.lower(), Form.EXACT) for label in table.column_names] for name, table in remainder.public.items()
    }
    tables |= {block.name: _of_block(block) for block in remainder.blocks}
    columns = _query(tree, tables, ())
    return () if columns is None else tuple(form for _, form in columns)


def _of_block(block: ReleasedBlock) -> Columns:
    terms = {term.name: term for term in block.terms}
    columns = [(name.lower(), Form.EXACT) for name in block.keys.column_names]
    special = block.groups.chosen | block.estimates.keys() | {name for name, *_ in block.groups.ends}
    for name, _, type_ in block.formulas:
        sums = None if name in special else parts(block.plug_ins[name], terms)
        linear = sums is not None and not any(part.rounded for part in sums)
        linear = linear and not any(read in block.shown_from for part in sums or () for read in part.weights)
        form = Form.WHOLE if type_ is Type.INTEGER else Form.LINEAR
        columns.append((name.lower(), form if linear else Form.ANY))
    return [*columns, (ROW, Form.EXACT)]


def _query(node: exp.Expr, tables: Mapping[str, Columns | None], outer: Sequence[Columns]) -> Columns | None:
    clause = node.args.get("with_")
    if clause is not None and clause.args.get("recursive"):
        return _UNKNOWN
    for entry in clause.expressions if clause is not None else ():
        tables = {**tables, entry.alias: _renamed(_query(entry.this, tables, outer), entry.args["alias"])}
    if isinstance(node, exp.Subquery):
        return _query(node.this, tables, outer)
    if isinstance(node, exp.Union):
        return _union(node, tables, outer)
    return _Select(node, tables, outer).columns() if isinstance(node, exp.Select) else _UNKNOWN


def _union(node: exp.Union, tables: Mapping[str, Columns | None], outer: Sequence[Columns]) -> Columns | None:
    left, right = (_query(side, tables, outer) for side in (node.this, node.expression))
    if left is None or right is None or len(left) != len(right):
        return _UNKNOWN
    if node.args.get("distinct") or any(node.args.get(part) for part in ("by_name", "limit", "offset")):
        return _UNKNOWN
    return [(name, max(form, other)) for (name, form), (_, other) in zip(left, right, strict=True)]


def _renamed(columns: Columns | None, alias: exp.Expr | None) -> Columns | None:
    if columns is None or alias is None:
        return columns
    names = [name.name.lower() for name in alias.args.get("columns") or ()]
    return [(names[place] if place < len(names) else name, form) for place, (name, form) in enumerate(columns)]


class _Select:
    """The analysis of one SELECT."""

    def __init__(self, node: exp.Select, tables: Mapping[str, Columns | None], outer: Sequence[Columns]) -> None:
        self.node = node
        self.tables = tables
        self.outer = outer
        self.sources: dict[str, Columns] = {}
        self.busy: set[int] = set()

    def columns(self) -> Columns | None:
        node = self.node
        if any(value for name, value in node.args.items() if name not in _PLAIN) or not self._read():
            return _UNKNOWN
        columns = [column for item in node.expressions for column in self._item(item)]
        clauses = [node.args.get(part) for part in ("where", "having", "qualify", "limit", "offset")]
        rows = self._any(clause for clause in clauses if clause is not None)
        if node.args.get("distinct") is not None:
            rows = max([rows, *(form for _, form in columns)])
        if (group := node.args.get("group")) is not None:
            rows = max([rows, *(self._named(key, columns) for key in group.iter_expressions())])
            rows = Form.ANY if any(value for name, value in group.args.items() if name != "expressions") else rows
        if (order := node.args.get("order")) is not None and (node.args.get("limit") or node.args.get("offset")):
            rows = max([rows, *(self._named(item.this, columns) for item in order.expressions)])
        return columns if rows is Form.EXACT else _UNKNOWN

    def _named(self, key: exp.Expr, columns: Columns) -> Form:
        """Return the form of a key of GROUP BY or ORDER BY: an expression, the position of an output or its name, which may also
        be the name of a source's column."""
        if isinstance(key, exp.Literal):
            inside = not key.is_string and key.name.isdecimal() and 0 < int(key.name) <= len(columns)
            return columns[int(key.name) - 1][1] if inside else Form.ANY
        alias = [form for name, form in columns if isinstance(key, exp.Column) and name == key.name.lower()]
        return max([self._form(key), *alias])

    def _read(self) -> bool:
        """Look up the sources; return whether neither their rows nor the rows of their join depend on noise."""
        source, joins = self.node.args.get("from_"), self.node.args.get("joins") or []
        for number, item in enumerate([*([source.this] if source else []), *(join.this for join in joins)]):
            if any(value for name, value in item.args.items() if name not in ("this", "alias")):
                return False
            if isinstance(item, exp.Table):
                columns = self.tables.get(item.name)
            elif isinstance(item, exp.Subquery):
                columns = _query(item, self.tables, self._scopes())
            else:
                columns = _UNKNOWN
            columns = _renamed(columns, item.args.get("alias"))
            if columns is None:
                return False
            self.sources[(item.alias_or_name or f"#{number}").lower()] = columns
        if len(self.sources) < len(joins) + (source is not None):
            return False
        return all(self._is_plain(join) for join in joins)

    def _is_plain(self, join: exp.Join) -> bool:
        if any(value for name, value in join.args.items() if name not in ("this", "on", "using", "side", "kind")):
            return False
        using = [exp.column(column.name) for column in join.args.get("using") or ()]
        on = [join.args["on"]] if join.args.get("on") is not None else []
        return self._any([*on, *using]) is Form.EXACT

    def _scopes(self) -> list[Columns]:
        """Return the columns that a subquery may name besides those of its own sources."""
        return [*(columns for columns in self.sources.values()), *self.outer]

    def _item(self, item: exp.Expr) -> Columns:
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            return [(item.alias_or_name.lower(), self._form(item.unalias()))]
        table = item.table.lower() if isinstance(item, exp.Column) else ""
        columns = [column for name, source in self.sources.items() if table in ("", name) for column in source]
        merged = any(join.args.get("using") for join in self.node.args.get("joins") or ())
        return [(name, Form.ANY) for name, _ in columns] if merged or any(star.args.values()) else columns

    def _any(self, nodes: Iterable[exp.Expr]) -> Form:
        return max((self._form(node) for node in nodes), default=Form.EXACT)

    def _form(self, node: exp.Expr) -> Form:
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Query):
            columns = _query(node, self.tables, self._scopes())
            return Form.ANY if columns is None else max((form for _, form in columns), default=Form.EXACT)
        forms = self._any(node.iter_expressions())
        if forms is Form.EXACT:
            return Form.EXACT
        if isinstance(node, (exp.Paren, exp.Neg, exp.Subquery)):
            return self._form(node.this)
        if isinstance(node, (exp.Add, exp.Sub)):
            return forms
        if isinstance(node, (exp.Mul, exp.Div)):
            return self._product(node)
        if isinstance(node, exp.Coalesce):
            return max(Form.LINEAR, forms)  # whether a value is NULL does not depend on noise
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, (exp.Cast, exp.TryCast)):
            return self._cast(node)
        if isinstance(node, exp.Round):
            inner = self._form(node.this)
            return inner if inner <= Form.WHOLE and node.args.get("decimals") is None else Form.ANY
        return self._over_rows(node)

    def _product(self, node: exp.Binary) -> Form:
        left, right = self._form(node.this), self._form(node.expression)
        if right is Form.EXACT:
            return max(Form.LINEAR, left)
        return max(Form.LINEAR, right) if left is Form.EXACT and isinstance(node, exp.Mul) else Form.ANY

    def _case(self, node: exp.Case) -> Form:
        cases = node.args.get("ifs") or []
        decided = [*([node.this] if node.this is not None else []), *(case.this for case in cases)]
        if self._any(decided) is not Form.EXACT:
            return Form.ANY
        default = node.args.get("default")
        values = [case.args["true"] for case in cases] + ([default] if default is not None else [])
        return max(Form.LINEAR, self._any(values))

    def _cast(self, node: exp.Cast) -> Form:
        inner = self._form(node.this)
        if node.to.this in _REALS:
            return max(Form.LINEAR, inner)
        return inner if node.to.this in _INTEGERS and inner is Form.WHOLE else Form.ANY

    def _over_rows(self, node: exp.Expr) -> Form:
        """Return the form of an aggregate or window; ANY if its rows or their order may depend on noise."""
        if isinstance(node, (exp.Filter, exp.Window)):
            rest = self._any(part for part in node.iter_expressions() if part is not node.this)
            return self._form(node.this) if rest is Form.EXACT else Form.ANY
        if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
            return self._form(node.this)
        inner = node.this if isinstance(node, (*_SUMS, exp.Avg)) else None
        if inner is None or isinstance(inner, (exp.Distinct, exp.Order)):
            return Form.ANY
        if isinstance(node, (exp.Sum, exp.Avg)):
            whole = isinstance(node, exp.Sum) and self._form(inner) is Form.WHOLE
            return Form.WHOLE if whole else max(Form.LINEAR, self._form(inner))
        places = self._any(part for part in node.iter_expressions() if part is not inner)
        return self._form(inner) if places is Form.EXACT else Form.ANY

    def _column(self, node: exp.Column) -> Form:
        """Return the form of a column, looked up in the sources of this SELECT, then in its own aliases, then in the enclosing
        SELECTs: the largest form of several columns, ANY for a column that is not found."""
        name, table = node.name.lower(), node.table.lower()
        named = [columns for source, columns in self.sources.items() if table in ("", source)]
        forms = [form for columns in named for label, form in columns if label == name]
        if not forms and not table:
            items = [item for item in self.node.expressions if item.alias.lower() == name and id(item) not in self.busy]
            self.busy |= {id(item) for item in items}
            forms = [self._form(item.unalias()) for item in items]
            self.busy -= {id(item) for item in items}
        if not forms:
            forms = [form for columns in self.outer for label, form in columns if label == name]
        return max(forms, default=Form.ANY)
