"""Tracing of a row-wise remainder: the block and group that each row comes from, and the formula of each column.

A remainder is row-wise when it is a chain of SELECTs, each over the one below, with a single block at the bottom and
nothing in between that mixes rows (no GROUP BY, DISTINCT, join, set operation). Windows and subqueries may occur in
the select list; the columns they form are *opaque*: their rows are known, but their formula is not row by row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dpsql.plan.formulas import terms_of
from dpsql.release.formulas import formula_values
from dpsql.release.remainder import ROW, ReleasedBlock, Remainder, column, identifier
from dpsql.release.sandbox import plain, within_calendar
from dpsql.sql.binder.aggregates import has_aggregate
from dpsql.storage.records import dataclass, field, replace

INTERVALS = ("dp_interval_low", "dp_interval_high", "dp_error")
_MIXING = ("group", "having", "distinct", "joins")
MOST_NODES = 2_000
"""Most nodes of one column written out over its block; a larger column is opaque. x + x AS x doubles with every SELECT of the
chain."""


@dataclass(frozen=True)
class Traced:
    """A row-wise remainder. `tree` has the columns of the query and then ROW, the group's number in `block`.

    `outputs`: each column as an expression over the block's keys, measures and `intervals` (None: opaque). `intervals`: pairs
    (function, expression over the block), whose values are the hidden columns `interval_name(0)`, ... of the block. `selected`:
    which rows are shown depends on noisy numbers.
    """

    tree: exp.Select
    block: str
    outputs: tuple[exp.Expr | None, ...]
    intervals: tuple[tuple[str, exp.Expr], ...]
    selected: bool = False

    @property
    def extra(self) -> dict[str, tuple[str, ...]]:
        """Hidden columns besides ROW, by block (see `remainder.runnable`)."""
        return {self.block: tuple(interval_name(number) for number in range(len(self.intervals)))}


def interval_name(number: int) -> str:
    """Return the name of the hidden column of a block that holds the value of one DP_INTERVAL_LOW/HIGH/ERROR."""
    return f"dp#b{number}"


def interval_function(node: exp.Expr) -> str | None:
    """Return the name of a DP_ function in lower case, None for any other node."""
    word = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
    return word if word in INTERVALS else None


def trace(remainder: Remainder) -> Traced | None:
    """Return the trace of a row-wise remainder, None for any other. DP_ functions over opaque expressions stay in the tree."""
    tree = remainder.tree
    if not isinstance(tree, exp.Select) or not any(True for _ in tree.find_all(exp.From)):
        return None
    tree = tree.copy()
    clause = tree.args.get("with_")
    common = {entry.alias: entry for entry in clause.expressions} if clause is not None else {}
    tracer = _Tracer(remainder, common)
    level = tracer.select(tree)
    if level is None:
        return None
    tracer.finish()
    outputs = tuple(output for _, output in level.columns)
    return Traced(tree, level.block, outputs, tuple(tracer.intervals), tracer.selected)


@dataclass
class _Level:
    """The columns of one relation of the chain: name and expression over the block (None: opaque)."""

    block: str
    columns: list[tuple[str, exp.Expr | None]]
    alias: str = ""
    names: dict[str, exp.Expr | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = {}
        for name, resolved in self.columns:
            self.names[name.lower()] = None if name.lower() in self.names else resolved


@dataclass(frozen=True)
class _Scope:
    """The names that an expression may use, of the relation below and of the select list, looked up in the order of `names`."""

    below: _Level
    names: tuple[dict[str, exp.Expr | None], ...]

    def find(self, node: exp.Column) -> exp.Expr | None:
        name = node.name.lower()
        if node.table:
            return self.below.names.get(name) if node.table.lower() == self.below.alias.lower() else None
        return next((names[name] for names in self.names if name in names), None)


class _Tracer:
    """A walk along the chain from the outside in; on the way back out it resolves columns and replaces DP_ functions."""

    def __init__(self, remainder: Remainder, common: dict[str, exp.CTE]) -> None:
        self.remainder = remainder
        self.common = common
        self.selects: list[exp.Select] = []
        self.intervals: list[tuple[str, exp.Expr]] = []
        self.selected = False

    def select(self, node: exp.Select) -> _Level | None:
        source = node.args.get("from_")
        if source is None or any(node.args.get(part) for part in _MIXING):
            return None
        if any(map(has_aggregate, node.expressions)):
            return None
        below = self.source(source.this)
        if below is None:
            return None
        items = _expanded(node.expressions, below)
        if items is None:
            return None
        node.set("expressions", items)
        outputs: dict[str, exp.Expr | None] = {}
        scope = _Scope(below, (below.names, outputs))
        columns: list[tuple[str, exp.Expr | None]] = []
        for item in node.expressions:
            self.replace_intervals(item, scope)
            resolved = self.resolve(item.unalias(), scope)
            columns.append((item.alias_or_name, resolved))
            outputs.setdefault(item.alias_or_name.lower(), resolved)
        self.selected = self.selected or self.selects_by_noise(node, scope, _Scope(below, (outputs, below.names)))
        for part in ("where", "qualify"):
            self.replace_intervals(node.args.get(part), scope)
        self.replace_intervals(node.args.get("order"), _Scope(below, (outputs, below.names)))
        self.selects.append(node)
        return _Level(below.block, columns)

    def selects_by_noise(self, node: exp.Select, inside: _Scope, ordered: _Scope) -> bool:
        """Return whether noisy numbers decide which rows of a SELECT are shown. Call this before DP_ functions are replaced."""
        order = node.args.get("order")
        limited = order is not None and (node.args.get("limit") or node.args.get("offset"))
        by = [(item.this, ordered) for item in order.expressions] if limited and order is not None else []
        conditions = [
            (clause.this, inside) for part in ("where", "qualify") if (clause := node.args.get(part)) is not None
        ]
        return any(self.noisy(part, scope) for part, scope in [*conditions, *by])

    def noisy(self, node: exp.Expr, scope: _Scope) -> bool:
        """Return whether an expression reads a measure; an expression that cannot be resolved is taken to do so."""
        resolved = None if isinstance(node, exp.Literal) else self.resolve(node, scope)
        measures = {name for block in self.remainder.blocks for name, _, _ in block.formulas}
        return resolved is None or any(part.name in measures for part in resolved.find_all(exp.Column))

    def source(self, node: exp.Expr) -> _Level | None:
        if isinstance(node, exp.Table):
            block = self.remainder.block(node.name)
            if block is not None:
                return _Level(block.name, [(name, column(name)) for name in block.columns], node.alias_or_name)
            entry = self.common.get(node.name)
            if entry is None or not isinstance(entry.this, exp.Select):
                return None
            # Inline a copy of the entry, because its other users must not see the hidden columns.
            alias = node.args.get("alias") or exp.TableAlias(this=identifier(node.name))
            inlined = exp.Subquery(this=entry.this.copy(), alias=alias.copy())
            node.replace(inlined)
            node = inlined
        if not isinstance(node, exp.Subquery) or not isinstance(node.this, exp.Select):
            return None
        level = self.select(node.this)
        if level is None:
            return None
        alias = node.args.get("alias")
        renamed = [name.name for name in alias.args.get("columns") or ()] if alias is not None else []
        names = renamed + [name for name, _ in level.columns[len(renamed) :]]
        columns = [(name, resolved) for name, (_, resolved) in zip(names, level.columns, strict=True)]
        return _Level(level.block, columns, node.alias)

    def resolve(self, node: exp.Expr, scope: _Scope) -> exp.Expr | None:
        """Return `node` as an expression over the block's columns, None when it is opaque."""
        if any(isinstance(part, (exp.Query, exp.Window, exp.Star)) for part in node.walk()):
            return None
        copy = exp.Paren(this=node.copy())
        written = 0
        for part in list(copy.find_all(exp.Column)):
            meaning = part if part.name.startswith("dp#") else scope.find(part)
            written += 0 if meaning is None else sum(1 for _ in meaning.walk())
            if meaning is None or written > MOST_NODES:
                return None
            if meaning is not part:
                part.replace(exp.Paren(this=meaning.copy()))
        return copy

    def replace_intervals(self, inside: exp.Expr | None, scope: _Scope) -> None:
        """Replace every DP_ function of a row-wise expression by a hidden column of the block."""
        for part in [] if inside is None else list(inside.find_all(exp.Anonymous)):
            word = interval_function(part)
            if word is None or inside is None or part.find_ancestor(exp.Query) is not inside.find_ancestor(exp.Query):
                continue
            argument = self.resolve(part.expressions[0], scope)
            if argument is not None:
                part.replace(column(interval_name(len(self.intervals))))
                self.intervals.append((word, argument))

    def finish(self) -> None:
        """Pass the hidden columns through the chain, and break ties by key order."""
        hidden = [ROW, *(interval_name(number) for number in range(len(self.intervals)))]
        outermost = self.selects[-1]
        ordered_below = any(select.args.get("order") for select in self.selects[:-1])
        for select in self.selects:
            carried = [ROW] if select is outermost else hidden
            select.set("expressions", [*select.expressions, *(column(name) for name in carried)])
            order = select.args.get("order")
            if order is not None:
                order.append("expressions", exp.Ordered(this=column(ROW)))
            elif select.args.get("limit") or select.args.get("offset") or (select is outermost and not ordered_below):
                select.set("order", exp.Order(expressions=[exp.Ordered(this=column(ROW))]))


def _expanded(items: list[exp.Expr], below: _Level) -> list[exp.Expr] | None:
    """Return the select list with stars expanded; None for a star with EXCLUDE and the like, or over repeated names."""
    expanded: list[exp.Expr] = []
    for item in items:
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            word = interval_function(item)
            expanded.append(exp.Alias(this=item, alias=identifier(word)) if word else item)
            continue
        if any(star.args.values()) or len(below.names) < len(below.columns):
            return None
        expanded += [exp.Alias(this=column(name, below.alias), alias=identifier(name)) for name, _ in below.columns]
    return expanded


# --- UNION ALL of row-wise queries ---------------------------------------------------------------------------------

# Tracing of UNION ALL of row-wise queries (such as ROLLUP): each row is a group of its branch's block.

_BRANCH = 1 << 40
"""Upper bound of row numbers within a branch."""
_PLAIN = {"expressions", "from_", "where"}
_AROUND = {"expressions", "from_", "where", "order", "limit", "offset"}


@dataclass(frozen=True)
class Branches:
    """A remainder that is UNION ALL of row-wise queries over one block each, possibly inside further SELECTs. The last column of
    `tree` encodes branch and group number (`place_in_branch`). `parts`: for each branch, the trace of the remainder with this
    branch in place of the union."""

    tree: exp.Query
    parts: tuple[Traced, ...]


def place_in_branch(index: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the branch numbers and the group numbers within the branches' blocks."""
    return index // _BRANCH, index % _BRANCH


def trace_branches(remainder: Remainder) -> Branches | None:
    """Return the traces of the branches, or None if the remainder is no such UNION ALL."""
    tree = remainder.tree.copy()
    if tree.args.get("with_") is not None:
        return None
    around, union = _union(tree)
    branches = None if union is None else _branches(union)
    if union is None or branches is None or not all(_plain(branch, remainder) for branch in branches):
        return None
    names = [item.alias_or_name for item in branches[0].expressions]
    parts = []
    for branch in branches:
        if len(branch.expressions) != len(names):
            return None
        alone = _in_place(remainder.tree.copy(), branch, names)
        part = trace(replace(remainder, tree=alone, written=""))
        if part is None or part.intervals:
            return None
        parts.append(part)
    for number, branch in enumerate(branches):
        row = exp.Add(this=column(ROW), expression=exp.Literal.number(number * _BRANCH))
        branch.append("expressions", exp.Alias(this=row, alias=identifier(ROW)))
    for select in around:
        if not any(isinstance(item, exp.Star) for item in select.expressions):
            select.append("expressions", column(ROW))
    return Branches(tree, tuple(parts))


def _union(tree: exp.Query) -> tuple[list[exp.Select], exp.Union | None]:
    """Return the SELECTs around a UNION ALL, from the outside in, and the union; no SELECTs and None for any other tree."""
    around: list[exp.Select] = []
    node: exp.Expr = tree
    while isinstance(node, exp.Select):
        if any(value for name, value in node.args.items() if name not in _AROUND):
            return [], None
        stars = [item for item in node.expressions if item.find(exp.Star)]
        if stars and (len(node.expressions) > 1 or not isinstance(stars[0], exp.Star) or any(stars[0].args.values())):
            return [], None
        around.append(node)
        source = node.args.get("from_")
        if source is None or not isinstance(source.this, exp.Subquery):
            return [], None
        alias = source.this.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            return [], None
        node = source.this.this
    ends = isinstance(node, exp.Union) and not any(node.args.get(part) for part in ("order", "limit", "offset"))
    return around, node if ends and isinstance(node, exp.Union) else None


def _plain(branch: exp.Select, remainder: Remainder) -> bool:
    """Return whether a branch is a plain SELECT (list, FROM a block, WHERE) without stars."""
    source = branch.args.get("from_")
    if source is None or any(value for name, value in branch.args.items() if name not in _PLAIN):
        return False
    named = isinstance(source.this, exp.Table) and remainder.block(source.this.name) is not None
    return named and not any(item.find(exp.Star) for item in branch.expressions)


def _in_place(tree: exp.Query, branch: exp.Select, names: list[str]) -> exp.Query:
    """Return the remainder with the union replaced by `branch`, under the column names of the first branch."""
    alone = branch.copy()
    items = [exp.alias_(item.unalias(), name, quoted=True) for item, name in zip(alone.expressions, names, strict=True)]
    alone.set("expressions", items)
    _, union = _union(tree)
    if union is tree or union is None:
        return alone
    union.replace(alone)
    return tree


def numbered(tree: exp.Query) -> exp.Query:
    """Return a copy of `tree` in which each branch of a UNION ALL has its number as last column, to distinguish equal rows."""
    copy = tree.copy()
    for number, branch in enumerate(_branches(copy) or () if isinstance(copy, exp.Union) else ()):
        branch.append("expressions", exp.Alias(this=exp.Literal.number(number), alias=identifier(ROW)))
    return copy


def _branches(tree: exp.Expr) -> list[exp.Select] | None:
    """Return the SELECTs of nested UNION ALL, None if `tree` has anything else."""
    if isinstance(tree, exp.Subquery):
        return _branches(tree.this)
    if isinstance(tree, exp.Select):
        return None if tree.args.get("distinct") else [tree]
    if not isinstance(tree, exp.Union) or tree.args.get("distinct") or tree.args.get("by_name"):
        return None
    left, right = _branches(tree.this), _branches(tree.expression)
    return None if left is None or right is None else [*left, *right]


# --- plain remainders in vectors --------------------------------------------------------------------------------------

# Most queries only list their groups and aggregates, perhaps in another order. Passing fifty rows to the sandbox's DuckDB and
# back takes longer than drawing all of their noise, so they are computed in numpy: the same formulas, in the same IEEE doubles,
# operation by operation as the sandbox does it. Whatever is not listed here, and any intermediate number that is not finite, goes
# to the sandbox. That changes the running time, but the time depends only on numbers that are released.

_SELECT = {"expressions", "from_", "order", "limit", "offset"}
_KEYS = (
    pa.types.is_signed_integer, pa.types.is_boolean, pa.types.is_string, pa.types.is_date32, pa.types.is_float64,
)  # fmt: skip


@dataclass(frozen=True)
class Direct:
    """A plain remainder over `block`. `columns`: for each output column the key or measure that it shows; `order`: the keys and
    measures by which rows are sorted, True for descending; `first` and `most`: OFFSET and LIMIT."""

    block: str
    columns: tuple[str, ...]
    order: tuple[tuple[str, bool], ...]
    first: int
    most: int | None

    def run(self, block: ReleasedBlock, names: tuple[str, ...]) -> tuple[pa.Table, npt.NDArray[np.int64]] | None:
        """Return the rows as the sandbox would, and the group number of each; None if the sandbox has to compute them."""
        columns = _columns(block, {*self.columns, *(name for name, _ in self.order)})
        if columns is None or any(columns[name].null_count or _nan(columns[name]) for name, _ in self.order):
            return None
        rows = np.arange(block.rows, dtype=np.int64)
        if self.order:
            sorted_by = pa.table({**{name: columns[name] for name, _ in self.order}, ROW: rows})
            keys = [(name, "descending" if down else "ascending") for name, down in self.order]
            rows = pc.sort_indices(sorted_by, sort_keys=[*keys, (ROW, "ascending")]).to_numpy().astype(np.int64)
        rows = rows[self.first :][: self.most]
        table = pa.Table.from_arrays([columns[name] for name in self.columns], names=list(names))
        whole = not self.order and len(rows) == block.rows
        return (table if whole else table.take(pa.array(rows))), rows


def direct(remainder: Remainder, traced: Traced | None) -> Direct | None:
    """Return how to compute a remainder without the sandbox; None when it does more than show columns of one block."""
    if traced is None or traced.intervals:
        return None
    tree, block = traced.tree, remainder.block(traced.block)
    if block is None or any(value for name, value in tree.args.items() if name not in _SELECT):
        return None
    source = tree.args["from_"].this
    if not isinstance(source, exp.Table) or source.name != block.name or not has_only(source, "alias"):
        return None
    if source.args.get("alias") is not None and source.args["alias"].args.get("columns"):
        return None
    if not all(terms_of(formula) for _, formula, _ in block.formulas):
        return None
    columns = tuple(_plain_column(output, block) for output in traced.outputs)
    order = _order(tree, traced, block)
    first, most = _number(tree.args.get("offset"), 0), _number(tree.args.get("limit"), None)
    if None in columns or order is None or first == -1 or first is None or most == -1:
        return None
    return Direct(block.name, tuple(name for name in columns if name is not None), order, first, most)


def _plain_column(output: exp.Expr | None, block: ReleasedBlock) -> str | None:
    """Return the column of the block that an output shows unchanged; None for any other output."""
    while isinstance(output, exp.Paren):
        output = output.this
    return output.name if isinstance(output, exp.Column) and output.name in block.columns else None


def _order(tree: exp.Select, traced: Traced, block: ReleasedBlock) -> tuple[tuple[str, bool], ...] | None:
    """Return the columns by which rows are sorted before the tie-breaking ROW, which is last; None if the order has anything but
    columns (a name refers to an output first)."""
    order = tree.args.get("order")
    if order is None or not has_only(order, "expressions"):
        return () if order is None else None
    names = [item.alias_or_name for item in tree.expressions[: len(traced.outputs)]]
    below = _Level(block.name, [(name, column(name)) for name in block.columns])
    scope = _Scope(below, (_Level("", list(zip(names, traced.outputs, strict=True))).names, below.names))
    sorting: list[tuple[str, bool]] = []
    for item in order.expressions[:-1]:
        by = item.this if isinstance(item, exp.Ordered) and not item.args.get("with_fill") else None
        resolved = None
        if isinstance(by, exp.Literal) and by.is_int and 0 < int(by.name) <= len(names):
            resolved = traced.outputs[int(by.name) - 1]
        elif by is not None and isinstance(by.unnest(), exp.Column) and by.unnest().name.lower() != "all":
            resolved = None if by.unnest().table else scope.find(by.unnest())
        name = _plain_column(resolved, block)
        if name is None:
            return None
        sorting.append((name, bool(item.args.get("desc"))))
    return tuple(sorting)


def _number(clause: exp.Expr | None, absent: int | None) -> int | None:
    """Return the number in a LIMIT or OFFSET; `absent` if there is no clause, -1 for anything but a literal."""
    if clause is None:
        return absent
    node = clause.args.get("expression")
    alone = not any(value for name, value in clause.args.items() if name != "expression")
    return int(node.name) if alone and isinstance(node, exp.Literal) and node.is_int else -1


# --- numbers ----------------------------------------------------------------------------------------------------------


def _columns(block: ReleasedBlock, names: set[str]) -> dict[str, pa.ChunkedArray] | None:
    """Return the keys and measures of a block in the sandbox's types; None where a type or number is not supported here."""
    columns = {}
    for name in block.keys.column_names:
        if name in names:
            values = block.keys.column(name)
            if not any(holds(values.type) for holds in _KEYS) and values.type != pa.timestamp("us"):
                return None
            columns[name] = plain(values)
    terms = {term.name: np.asarray(term.values, dtype=np.float64) for term in block.terms}
    for name, formula, type_ in block.formulas:
        if name in names:
            estimate = block.estimates.get(name)
            if estimate is not None and not np.isfinite(estimate).all():
                return None
            values = formula_values(formula, type_, terms) if estimate is None else pa.array(estimate)
            if values is None:
                return None
            columns[name] = within_calendar(pa.chunked_array([values]))
    return columns


def _nan(values: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def has_only(node: exp.Expr, *allowed: str) -> bool:
    """Return whether a node has no arguments besides `this` and those in `allowed`."""
    return not any(value for name, value in node.args.items() if name not in ("this", *allowed))
