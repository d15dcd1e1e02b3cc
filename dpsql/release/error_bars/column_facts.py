"""What is known of each column of a remainder before its rows are: one record, computed in one walk over the tree.

A block with keys shows every combination of its public keys, whether the data has the group or not, or the private keys
that selection admits. Ordinary SQL has exactly the groups of the data, so a value computed over the set of groups (how many
there are, the smallest key, a mean over them, whether there is one) may differ from SQL by more than the noise. Such a
value is noisy, and its error is not known (`Level`).

A column that is linear in noisy numbers needs no simulation: its error is the same weighted sum of the noise, whose covariance
is known (`Form`, `linear_bars`).

The analysis is conservative: a name that cannot be resolved counts as noisy, and an operation that is not listed as nonlinear.
A wrong "noisy" costs an error bar of zero width; a wrong "exact" would hide an error bar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from fractions import Fraction

from sqlglot import exp

from dpsql.plan.intervals import Type
from dpsql.release.error_bars.rowwise import has_only, interval_function
from dpsql.release.formulas import EVERYTHING, Extent, extent, hull, linear
from dpsql.release.remainder import ROW, ReleasedBlock, Remainder
from dpsql.sql.binder.aggregates import has_aggregate
from dpsql.sql.binder.allow_list import NAMES
from dpsql.sql.binder.trees import conjuncts
from dpsql.storage.records import dataclass, replace


class Level(IntEnum):
    """What a value, or the set of rows of a relation, depends on; higher levels include the lower ones.

    NOISE: on noisy numbers. NEIGHBOURS: also on the public groups that stand beside it in the order of an exact key. CHOSEN: also
    on chosen numbers, whose errors follow no known law. EMPTY: also on all groups, which the data may not have. MISSING: also on
    groups of the data that selection may have left out.
    """

    EXACT = 0
    NOISE = 1
    NEIGHBOURS = 2
    CHOSEN = 3
    EMPTY = 4
    MISSING = 5


class Form(IntEnum):
    """How a value depends on noise: not at all, as a sum of whole numbers, as a weighted sum, by arithmetic over numbers of rows
    that noise does not select, or in any way. The form of a sum is the largest form of its summands."""

    EXACT = 0
    WHOLE = 1
    LINEAR = 2
    ARITHMETIC = 3
    ANY = 4


class Empty(IntEnum):
    """The exact value for a group without rows. ZERO: 0 (or NULL). COUNT: 0 (or NULL), and not negative for any group."""

    OTHER = 0
    ZERO = 1
    COUNT = 2


@dataclass(frozen=True)
class ColumnFacts:
    """One column: its name in lower case, its level, its value for a group without rows, the interval it cannot leave, and its
    form, given the rows."""

    name: str
    level: Level
    empty: Empty = Empty.OTHER
    extent: Extent = EVERYTHING
    form: Form = Form.EXACT


@dataclass(frozen=True)
class RelationFacts:
    """The columns of one relation in order, and the level of its set of rows. `settled`: the rows do not depend on noise, given
    the groups that are shown."""

    columns: tuple[ColumnFacts, ...]
    rows: Level
    settled: bool = True

    @property
    def noisy(self) -> tuple[bool, ...]:
        return tuple(column.level > Level.EXACT for column in self.columns)

    @property
    def of_groups(self) -> frozenset[int]:
        """Positions of columns that depend on which groups exist, so that their errors are not known."""
        worst = {position for position, column in enumerate(self.columns) if column.level >= Level.EMPTY}
        neighbouring = {position for position, column in enumerate(self.columns) if column.level is Level.NEIGHBOURS}
        return frozenset(worst | (neighbouring - self.if_all_exist))

    @property
    def if_all_exist(self) -> frozenset[int]:
        """Positions of columns whose errors are known if the data have every group that is shown: arithmetic over numbers of
        neighbouring groups, as the difference from the month before or a moving average."""
        forms = {
            position: column.form for position, column in enumerate(self.columns) if column.level is Level.NEIGHBOURS
        }
        return frozenset(position for position, form in forms.items() if Form.EXACT < form < Form.ANY)

    @property
    def chosen(self) -> frozenset[int]:
        """Positions of columns that depend on chosen numbers, so that their errors are not known."""
        return frozenset(position for position, column in enumerate(self.columns) if column.level is Level.CHOSEN)

    @property
    def sums(self) -> dict[int, Form]:
        """The forms of the columns that are weighted sums of noisy numbers, by position; empty if noise decides the rows."""
        forms = enumerate(column.form for column in self.columns if self.settled)
        return {position: form for position, form in forms if form in (Form.WHOLE, Form.LINEAR)}

    @property
    def worst(self) -> Level:
        return max([self.rows, *(column.level for column in self.columns)])


Sources = dict[str, RelationFacts]
_UNKNOWN = RelationFacts((), Level.MISSING, settled=False)
_REALS = (exp.DType.DOUBLE, exp.DType.FLOAT)
_INTEGERS = (exp.DType.BIGINT, exp.DType.INT, exp.DType.INT128)
_PICKED = (exp.Sum, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
"""Aggregates and windows whose result is a sum over some of their rows, selected by position."""
_NUMBERS = (
    exp.Nullif, exp.Abs, exp.Round, exp.Ceil, exp.Floor, exp.Greatest, exp.Least, exp.Ln, exp.Exp, exp.Sqrt, exp.Pow,
)  # fmt: skip
"""Functions of the numbers of one row."""
_SELECTION = ("where", "having", "qualify", "limit", "offset")
_LISTED = {"expressions", "from_", "joins", "group", "with_", "order", "distinct", *_SELECTION}


def column_facts(remainder: Remainder, tree: exp.Query | None = None) -> RelationFacts:
    """Return the facts of the remainder's columns, or of those of another query over its tables."""
    tables: Sources = {
        name: RelationFacts(tuple(ColumnFacts(label.lower(), Level.EXACT) for label in table.column_names), Level.EXACT)
        for name, table in remainder.public.items()
    }
    tables |= {block.name: _of_block(block) for block in remainder.blocks}
    return _query(remainder.tree if tree is None else tree, tables, [])


def _of_block(block: ReleasedBlock) -> RelationFacts:
    keys, groups = block.keys.column_names, block.groups
    terms = frozenset(term.name for term in block.terms)
    whole = frozenset(term.name for term in block.terms if term.whole)
    ends = {name for name, *_ in groups.ends}
    special = groups.chosen | block.estimates.keys() | ends
    columns = [ColumnFacts(name.lower(), Level.EXACT) for name in keys]
    for name, _, type_ in block.formulas:
        empty = Empty.COUNT if name in groups.counts else Empty.ZERO if name in groups.sums else Empty.OTHER
        parts = None if name in special else linear(block.plug_ins[name], terms, whole, {})
        is_sum = parts is not None and not any(part.rounded for part in parts)
        selecting = any(read in block.shown_from for part in parts or () for read in part.weights)
        is_sum = is_sum and not selecting
        form = Form.WHOLE if type_ is Type.INTEGER else Form.LINEAR
        if not is_sum:
            form = Form.ANY if name in groups.chosen or name in ends or selecting else Form.ARITHMETIC
        level = Level.CHOSEN if name in groups.chosen else Level.NOISE
        columns.append(ColumnFacts(name.lower(), level, empty, block.extents[name], form))
    rows = Level.EXACT if not keys else Level.EMPTY if groups.complete else Level.MISSING
    return RelationFacts(tuple(columns), rows)


def _query(node: exp.Expr, tables: Sources, outer: list[Sources]) -> RelationFacts:
    clause = node.args.get("with_")
    for entry in clause.expressions if clause is not None else ():
        tables = {**tables, entry.alias: _renamed(_query(entry.this, tables, outer), entry.args["alias"])}
    relation = _UNKNOWN
    if isinstance(node, exp.Subquery):
        relation = _query(node.this, tables, outer)
    elif isinstance(node, exp.SetOperation):
        relation = _set_operation(node, tables, outer)
    elif isinstance(node, exp.Select):
        relation = _Select(node, tables, outer).facts()
    return replace(relation, settled=False) if clause is not None and clause.args.get("recursive") else relation


def _set_operation(node: exp.SetOperation, tables: Sources, outer: list[Sources]) -> RelationFacts:
    left, right = (_query(side, tables, outer) for side in (node.this, node.expression))
    rows = max(left.rows, right.rows)
    if len(left.columns) != len(right.columns) or node.args.get("by_name"):
        worst = max(Level.NOISE, left.worst, right.worst)
        columns = tuple(ColumnFacts(column.name, worst) for column in left.columns or right.columns)
        return RelationFacts(columns, worst, settled=False)
    whole = isinstance(node, exp.Union) and not _limited(node)
    columns = tuple(
        ColumnFacts(
            a.name, max(a.level, b.level), min(a.empty, b.empty) if whole else Empty.OTHER, hull([a.extent, b.extent]),
            max(a.form, b.form),
        )
        for a, b in zip(left.columns, right.columns, strict=True)
    )  # fmt: skip
    every_row = whole and not node.args.get("distinct")
    if not every_row:
        rows = max([rows, *(column.level for column in columns)])
    return RelationFacts(columns, rows, settled=every_row and left.settled and right.settled)


def _limited(node: exp.Expr) -> bool:
    return bool(node.args.get("limit") or node.args.get("offset"))


def _renamed(source: RelationFacts, alias: exp.Expr | None) -> RelationFacts:
    names = [name.name.lower() for name in alias.args.get("columns") or ()] if alias is not None else []
    renamed = (replace(column, name=name) for column, name in zip(source.columns, names, strict=False))
    return replace(source, columns=(*renamed, *source.columns[len(names) :]))


class _Select:
    """The analysis of one SELECT, clause by clause in the order in which SQL evaluates them."""

    def __init__(self, node: exp.Select, tables: Sources, outer: list[Sources]) -> None:
        self.node = node
        self.tables = tables
        self.outer = outer
        self.sources: Sources = {}
        self.plain: Sources = {}
        self.rows = Level.EXACT
        self.merged: set[str] = set()
        self.joined: list[set[tuple[str, str]]] = []
        self.named: dict[str, list[ColumnFacts]] = {}
        """Facts of outputs that have been looked up by alias; an output that is being computed has none."""
        self.forms: dict[int, Form] = {}
        self.within: dict[int, tuple[exp.Query, Sources, RelationFacts]] = {}
        """Subqueries by identity (kept, and so their ids), the sources from which their facts follow, and these."""
        self.mixed = False
        """True if rows depend on groups of several relations or on a condition about groups: then no column identifies them."""
        self.selected = False  # whether noise may decide which rows windows read

    def facts(self) -> RelationFacts:
        node = self.node
        settled = has_only(node, *_LISTED) and self._read()
        self._filter(node.args.get("where"))
        keys = self._group(group) if (group := node.args.get("group")) is not None else Level.EXACT
        self.rows = max(self.rows, keys)
        self.selected = not settled or max(keys, self._any(map(node.args.get, ("where", "having")))) > Level.EXACT
        self.named.clear()
        columns = [column for item in node.expressions for column in self._item(item)]
        selections = [
            (clause, self._level(clause)) for name in ("having", "qualify") if (clause := node.args.get(name))
        ]
        settled = settled and self._rows_form(columns) is Form.EXACT
        if group is None and (node.args.get("having") is not None or any(map(has_aggregate, self.node.expressions))):
            self.rows = Level.EXACT  # one row whatever the input rows are, or none if HAVING is false
        for clause, level in selections:
            self._filter(clause, level)
        return self._ended(columns, settled)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _read(self) -> bool:
        """Look up the sources. Return whether neither their rows nor the rows of their join depend on noise."""
        source, joins = self.node.args.get("from_"), self.node.args.get("joins") or []
        items = [*([source.this] if source else []), *(join.this for join in joins)]
        settled, names = True, []
        for number, item in enumerate(items):
            inner = self._source(item)
            settled = settled and inner.settled and has_only(item, "this", "alias")
            self.rows = max(self.rows, inner.rows)
            names.append((item.alias_or_name or f"#{number}").lower())
            self.sources[names[-1]] = inner
        self.mixed = sum(inner.rows >= Level.EMPTY for inner in self.sources.values()) > 1
        self.plain = dict(self.sources)
        for join, number in zip(joins, range(len(items) - len(joins), len(items)), strict=True):
            settled = self._join(join, names[:number], names[number]) and settled
        return settled and len(self.sources) == len(items)

    def _source(self, item: exp.Expr) -> RelationFacts:
        is_table, outer = isinstance(item, exp.Table), [*self.outer, self.sources]
        inner = self.tables.get(item.name, _UNKNOWN) if is_table else _query(item, self.tables, outer)
        return _renamed(inner, item.args.get("alias"))

    def _join(self, join: exp.Join, before: list[str], name: str) -> bool:
        """Record a join, and return whether its rows do not depend on noise. Exact columns of a side that may be absent get the
        level of the rows, which decide where it is."""
        using = [exp.column(column.name) for column in join.args.get("using") or ()]
        self.merged |= {column.name.lower() for column in using}
        on = join.args.get("on")
        level = self._any([on, *using])
        settled = has_only(join, "this", "on", "using", "side", "kind")
        settled = settled and self._form_of([*([on] if on is not None else []), *using]) is Form.EXACT
        self.mixed = self.mixed or level >= Level.EMPTY
        self.rows = max(self.rows, level)
        self._pair([*conjuncts(on), *using])
        for part in on.flatten() if isinstance(on, exp.And) else [on]:
            ends = (part.this, part.expression) if isinstance(part, exp.EQ) else ()
            if len(ends) == 2 and all(isinstance(end, exp.Column) and end.table for end in ends):
                self.joined.append({(end.table.lower(), end.name.lower()) for end in ends})
        side = str(join.args.get("side") or "").upper()
        for alias in {"LEFT": [name], "RIGHT": before, "FULL": [*before, name]}.get(side, []):
            optional = self.sources[alias]
            columns = tuple(
                replace(column, level=self.rows) if column.level is Level.EXACT else column
                for column in optional.columns
            )
            self.sources[alias] = replace(optional, columns=columns)
        return settled

    def _pair(self, conditions: Iterable[exp.Expr]) -> None:
        """Record conditions. What stands beside a row of another source has the level of the condition, as of equal ranks."""
        for part in conditions:
            level, read = self._level(part), {column.table.lower() for column in part.find_all(exp.Column)}
            paired = [alias for alias in self.sources if alias in read or "" in read]
            for alias in paired if level >= Level.NEIGHBOURS and len(paired) > 1 else ():
                columns = [replace(c, level=max(c.level, level)) if c.level else c for c in self.sources[alias].columns]
                self.sources[alias] = replace(self.sources[alias], columns=tuple(columns))

    def _filter(self, clause: exp.Expr | None, level: Level | None = None) -> None:
        """Record a condition. If it is true for no group without rows, the remaining groups are groups of the data."""
        if clause is None:
            return
        self._pair(conjuncts(clause.this) if level is None else ())
        level = self._level(clause) if level is None else level
        if self.rows is Level.EMPTY and excludes_empty(clause, self._empty):
            self.rows = Level.NOISE
        self.mixed = self.mixed or level >= Level.EMPTY
        self.rows = max(self.rows, level)

    def _group(self, group: exp.Expr) -> Level:
        if group.args.get("all"):
            return self._any(item for item in self.node.expressions if not item.find(exp.AggFunc, exp.Anonymous))
        items = []
        for item in group.iter_expressions():
            number = int(item.name) if isinstance(item, exp.Literal) and item.name.isdecimal() else 0
            items.append(self.node.expressions[number - 1] if 1 <= number <= len(self.node.expressions) else item)
        return self._any(items)

    def _rows_form(self, columns: list[ColumnFacts]) -> Form:
        """Return the form of everything in the clauses of this SELECT that decides which rows there are."""
        node = self.node
        rows = self._form_of(clause for part in _SELECTION if (clause := node.args.get(part)) is not None)
        if node.args.get("distinct") is not None:
            rows = max([rows, *(column.form for column in columns)])
        if (group := node.args.get("group")) is not None:
            rows = max([rows, *(self._key_form(key, columns) for key in group.iter_expressions())])
            rows = rows if has_only(group, "expressions") else Form.ANY
        if (order := node.args.get("order")) is not None and _limited(node):
            rows = max([rows, *(self._key_form(item.this, columns) for item in order.expressions)])
        return rows

    def _key_form(self, key: exp.Expr, columns: list[ColumnFacts]) -> Form:
        """Return the form of a key of GROUP BY or ORDER BY: an expression, the position of an output or its name, which may also
        be the name of a source's column."""
        if isinstance(key, exp.Literal):
            inside = not key.is_string and key.name.isdecimal() and 0 < int(key.name) <= len(columns)
            return columns[int(key.name) - 1].form if inside else Form.ANY
        alias = [c.form for c in columns if isinstance(key, exp.Column) and c.name == key.name.lower()]
        return max([self._form(key), *alias])

    def _ended(self, columns: list[ColumnFacts], settled: bool) -> RelationFacts:
        """Return the facts after DISTINCT, ORDER BY and LIMIT. Which rows come first depends on all keys of the ORDER BY, also on
        those given by position."""
        node, rows = self.node, self.rows
        worst = max((column.level for column in columns), default=Level.EXACT)
        mixed = self.mixed
        if node.args.get("distinct") is not None:
            rows = max(rows, worst)
        if _limited(node):
            order = node.args.get("order")
            by = Level.EXACT if order is None else max(self._level(order), worst)
            rows = max(rows, by, self._any([node.args.get("limit"), node.args.get("offset")]))
            mixed = mixed or order is None or not counts_first(order, self._empty)
        if mixed:
            columns = [replace(column, empty=Empty.OTHER) for column in columns]
        return RelationFacts(tuple(columns), rows, settled)

    # --- names --------------------------------------------------------------------------------------------------------

    def _item(self, item: exp.Expr) -> list[ColumnFacts]:
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            return [self._value(item)]
        qualifier = item.table.lower() if isinstance(item, exp.Column) else ""
        columns = [c for name, source in self.sources.items() if qualifier in ("", name) for c in source.columns]
        changed = self.merged or any(star.args.values())
        return [replace(column, form=Form.ANY) for column in columns] if changed else columns

    def _value(self, item: exp.Expr) -> ColumnFacts:
        value, name = item.unalias(), item.alias_or_name.lower()
        within = extent(value, lambda column: hull([facts.extent for facts in self._named(column)]))
        return ColumnFacts(name, self._level(value), kind(value, self._empty), within, self._form(value))

    def _named(self, node: exp.Column, correlated: bool = True) -> list[ColumnFacts]:
        """Return the facts of the columns that a name may denote: of the sources of this SELECT, else of its own outputs, else
        (`correlated`) of the enclosing SELECTs; empty for an unknown name."""
        name, table = node.name.lower(), node.table.lower()
        if name == ROW:
            return [ColumnFacts(ROW, Level.EXACT)]
        # USING shows the side that is present.
        inside = self.plain if name in self.merged and not table else self.sources
        for sources in (inside, None, *(reversed(self.outer) if correlated else ())):
            if sources is None:
                columns = [] if table else self._outputs(name)
            else:
                read = (source for alias, source in sources.items() if table in ("", alias))
                columns = [column for source in read for column in source.columns if column.name == name]
            if columns:
                return columns
        return []

    def _outputs(self, name: str) -> list[ColumnFacts]:
        """Return the facts of the outputs with an alias. Inside of an output, its own alias is no name."""
        if name not in self.named:
            self.named[name] = []
            self.named[name] = [self._value(item) for item in self.node.expressions if item.alias.lower() == name]
        return self.named[name]

    # --- levels and groups without rows -------------------------------------------------------------------------------

    def _any(self, nodes: Iterable[exp.Expr | None]) -> Level:
        return max((self._level(node) for node in nodes if node is not None), default=Level.EXACT)

    def _level(self, node: exp.Expr | None) -> Level:
        if node is None or interval_function(node):
            return Level.EXACT
        if isinstance(node, exp.Query):
            return self._subquery(node).worst
        if isinstance(node, exp.Column):
            levels = (column.level for column in self._named(node))
            return max(levels, default=max(Level.NOISE, self.rows))
        if isinstance(node, exp.Coalesce) and self._one_value(node):
            return Level.EXACT
        parts = list(node.iter_expressions())
        level = Level.EXACT
        if isinstance(node, (exp.Filter, exp.Window)) and isinstance(node.this, (exp.AggFunc, exp.Anonymous)):
            level, parts = self._over_rows(node), [*node.this.iter_expressions(), *parts[1:]]
        elif isinstance(node, (exp.AggFunc, exp.Window)) or (
            isinstance(node, exp.Anonymous) and str(node.this).lower() not in NAMES
        ):
            level = self._over_rows(node)
        return max(level, self._any(parts))

    def _subquery(self, node: exp.Query) -> RelationFacts:
        entry = self.within.get(id(node))
        if entry is None or entry[1] != self.sources:
            facts = _query(node, self.tables, [*self.outer, self.sources])
            entry = self.within[id(node)] = node, dict(self.sources), facts
        return entry[2]

    def _over_rows(self, node: exp.Expr) -> Level:
        """Return the level that an aggregate or window inherits from its set of rows."""
        if self.rows is not Level.EMPTY:
            return self.rows
        if unaffected(node, self._empty):
            return Level.NOISE
        return Level.NEIGHBOURS if isinstance(node, exp.Window) and self._neighbours(node) else self.rows

    def _neighbours(self, node: exp.Window) -> bool:
        """Return whether a window reads groups beside its own in the order of exact keys, not all, nor rows selected by noise."""
        order, spec = node.args.get("order"), node.args.get("spec")
        keys = [*(node.args.get("partition_by") or ()), *(order.expressions if order is not None else ())]
        last = str(spec.args.get("end") or "").upper() if spec is not None else ""
        return order is not None and last != "UNBOUNDED" and not self.selected and self._any(keys) is Level.EXACT

    def _one_value(self, node: exp.Coalesce) -> bool:
        """Return whether `node` is COALESCE(a.k, b.k) of exact columns that a join compares: the key of either side."""
        parts = [node.this, *node.expressions]
        names = {(part.table.lower(), part.name.lower()) for part in parts if isinstance(part, exp.Column)}
        if len(names) != len(parts) or names not in self.joined:
            return False
        levels = [
            max((column.level for column in self.plain[table].columns if column.name == name), default=Level.NOISE)
            for table, name in names
            if table in self.plain
        ]
        return len(levels) == len(parts) and max(levels) is Level.EXACT

    def _empty(self, node: exp.Column) -> Empty:
        """Return the value of a column for a group without rows. A column of an enclosing SELECT says nothing of groups here."""
        if self.mixed:
            return Empty.OTHER
        return min((column.empty for column in self._named(node, correlated=False)), default=Empty.OTHER)

    # --- forms --------------------------------------------------------------------------------------------------------

    def _form_of(self, nodes: Iterable[exp.Expr]) -> Form:
        return max(map(self._form, nodes), default=Form.EXACT)

    def _form(self, node: exp.Expr) -> Form:
        if id(node) not in self.forms:
            self.forms[id(node)] = self._computed_form(node)
        return self.forms[id(node)]

    def _computed_form(self, node: exp.Expr) -> Form:
        if isinstance(node, exp.Column):
            return max((column.form for column in self._named(node)), default=Form.ANY)
        if isinstance(node, exp.Query):
            relation = self._subquery(node)
            forms = [column.form for column in relation.columns]
            return max(forms, default=Form.EXACT) if relation.settled else Form.ANY
        worst = self._form_of(node.iter_expressions())
        if worst is Form.EXACT or isinstance(node, (exp.Add, exp.Sub)):
            return worst
        if isinstance(node, (exp.Paren, exp.Neg, exp.Subquery)):
            return self._form(node.this)
        if isinstance(node, (exp.Mul, exp.Div)):
            return self._product(node)
        if isinstance(node, exp.Coalesce):
            return max(Form.LINEAR, worst)  # whether a value is NULL does not depend on noise
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, (exp.Cast, exp.TryCast)):
            inner = self._form(node.this)
            if node.to.this in _REALS:
                return max(Form.LINEAR, inner)
            return inner if node.to.this in _INTEGERS and inner is Form.WHOLE else max(Form.ARITHMETIC, inner)
        if isinstance(node, exp.Round) and worst <= Form.WHOLE and node.args.get("decimals") is None:
            return worst
        if isinstance(node, _NUMBERS):
            return max(Form.ARITHMETIC, worst)
        return self._form_over_rows(node)

    def _product(self, node: exp.Binary) -> Form:
        left, right = self._form(node.this), self._form(node.expression)
        if right is Form.EXACT:
            return max(Form.LINEAR, left)
        linear_in_right = left is Form.EXACT and isinstance(node, exp.Mul)
        return max(Form.LINEAR if linear_in_right else Form.ARITHMETIC, left, right)

    def _case(self, node: exp.Case) -> Form:
        cases = node.args.get("ifs") or []
        decided = [*([node.this] if node.this is not None else []), *(case.this for case in cases)]
        if self._form_of(decided) is not Form.EXACT:
            return Form.ANY
        default = node.args.get("default")
        values = [case.args["true"] for case in cases] + ([default] if default is not None else [])
        return max(Form.LINEAR, self._form_of(values))

    def _form_over_rows(self, node: exp.Expr) -> Form:
        """Return the form of an aggregate or window; ANY if its rows or their order may depend on noise."""
        if isinstance(node, (exp.Filter, exp.Window)):
            rest = self._form_of(part for part in node.iter_expressions() if part is not node.this)
            return self._form(node.this) if rest is Form.EXACT else Form.ANY
        if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
            return self._form(node.this)
        inner = node.this if isinstance(node, (*_PICKED, exp.Avg)) else None
        if inner is None or isinstance(inner, (exp.Distinct, exp.Order)):
            return Form.ANY
        if isinstance(node, (exp.Sum, exp.Avg)):
            whole = isinstance(node, exp.Sum) and self._form(inner) is Form.WHOLE
            return Form.WHOLE if whole else max(Form.LINEAR, self._form(inner))
        indexes = self._form_of(part for part in node.iter_expressions() if part is not inner)
        return self._form(inner) if indexes is Form.EXACT else Form.ANY


# --- groups without rows ----------------------------------------------------------------------------------------------

# The value of an expression over a block for a group without rows, and aggregates over groups that such groups do not change.
#
# With exact numbers a group without rows has counts and sums of 0. So a sum over groups, the largest count, the rank by a
# descending count, and whatever passes a condition such as `n > 10`, are the same with and without these groups.

Lookup = Callable[[exp.Column], Empty]
_SAME = (exp.Paren, exp.Alias, exp.Round, exp.Filter, exp.Sum, exp.Distinct)
_RANKS = (exp.Rank, exp.DenseRank, exp.RowNumber)
_HOLDS: dict[type[exp.Expr], Callable[[Fraction], bool]] = {
    exp.GT: lambda bound: bound < 0, exp.GTE: lambda bound: bound <= 0, exp.LT: lambda bound: bound > 0,
    exp.LTE: lambda bound: bound >= 0, exp.EQ: lambda bound: bound == 0, exp.NEQ: lambda bound: bound != 0,
}  # fmt: skip
"""Functions of the bound that tell whether `0 <operator> bound` holds."""
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ,
}  # fmt: skip


def kind(node: exp.Expr, kind_of_column: Lookup) -> Empty:
    """Return the class of the value of `node` for a group without rows; `kind_of_column` gives the class of a column."""
    if isinstance(node, exp.Column):
        return kind_of_column(node)
    if isinstance(node, _SAME):
        inner = node.expressions[0] if isinstance(node, exp.Distinct) and node.expressions else node.this
        return kind(inner, kind_of_column) if isinstance(inner, exp.Expr) else Empty.OTHER
    if isinstance(node, (exp.Cast, exp.TryCast)):
        return kind(node.this, kind_of_column) if node.to.this in exp.DataType.NUMERIC_TYPES else Empty.OTHER
    if isinstance(node, exp.Max):
        return Empty.COUNT if kind(node.this, kind_of_column) is Empty.COUNT else Empty.OTHER
    if isinstance(node, (exp.Neg, exp.Abs)):
        return min(kind(node.this, kind_of_column), Empty.ZERO)
    if isinstance(node, (exp.Mul, exp.Div)):
        return _product(node, kind_of_column)
    if isinstance(node, (exp.Add, exp.Sub)):
        both = min(kind(node.this, kind_of_column), kind(node.expression, kind_of_column))
        return both if isinstance(node, exp.Add) else min(both, Empty.ZERO)
    if isinstance(node, exp.Coalesce):
        zero = all(_number(other) == 0 for other in node.expressions)
        return kind(node.this, kind_of_column) if zero else Empty.OTHER
    if isinstance(node, exp.Case):
        return _case(node, kind_of_column)
    return Empty.COUNT if _number(node) == 0 or isinstance(node, exp.Null) else Empty.OTHER


def _product(node: exp.Binary, kind_of_column: Lookup) -> Empty:
    left, right = kind(node.this, kind_of_column), kind(node.expression, kind_of_column)
    by = _number(node.expression)
    if by is not None and by > 0:
        return left
    if isinstance(node, exp.Div):
        return min(left, Empty.ZERO)
    if left is Empty.COUNT and right is Empty.COUNT:
        return Empty.COUNT
    return Empty.ZERO if max(left, right) > Empty.OTHER else Empty.OTHER


def _case(node: exp.Case, kind_of_column: Lookup) -> Empty:
    """Return the class of a CASE: CASE WHEN n > 10 THEN x ELSE 0 END is 0 for a group without rows, whatever x is, and so is
    CASE WHEN key = 1 THEN n ELSE 0 END, whatever the condition."""
    default = kind(node.args.get("default") or exp.null(), kind_of_column)
    classes = [default]
    for case in node.args.get("ifs") or []:
        value = kind(case.args["true"], kind_of_column)
        excluded = node.this is None and excludes_empty(case.this, kind_of_column)
        if value is Empty.OTHER and excluded:
            number = _number(case.args["true"])
            value = Empty.COUNT if number is not None and number >= 0 else Empty.ZERO
        classes.append(value)
    return min(classes)


def excludes_empty(condition: exp.Expr, kind_of_column: Lookup) -> bool:
    """Return whether, with exact numbers, a condition is true for no group without rows."""
    if isinstance(condition, (exp.Paren, exp.Where, exp.Having, exp.Qualify)):
        return excludes_empty(condition.this, kind_of_column)
    if isinstance(condition, exp.And):
        return excludes_empty(condition.this, kind_of_column) or excludes_empty(condition.expression, kind_of_column)
    if isinstance(condition, exp.Or):
        return excludes_empty(condition.this, kind_of_column) and excludes_empty(condition.expression, kind_of_column)
    if isinstance(condition, exp.Between):
        low, high = _number(condition.args["low"]), _number(condition.args["high"])
        outside = (low is not None and low > 0) or (high is not None and high < 0)
        return outside and kind(condition.this, kind_of_column) > Empty.OTHER
    holds = _HOLDS.get(type(condition))
    if holds is None:
        return False
    left, right = condition.this, condition.expression
    bound = _number(right)
    if bound is None:
        bound, left, holds = _number(left), right, _HOLDS[_MIRRORED[type(condition)]]
    return bound is not None and kind(left, kind_of_column) > Empty.OTHER and not holds(bound)


def unaffected(node: exp.Expr, kind_of_column: Lookup) -> bool:
    """Return whether an aggregate or window over groups is the same with and without groups that have no rows."""
    if isinstance(node, exp.Window):
        return _window(node, kind_of_column)
    if isinstance(node, exp.Filter):
        return excludes_empty(node.expression, kind_of_column) or unaffected(node.this, kind_of_column)
    if isinstance(node, (exp.CountIf, exp.LogicalOr)):
        return excludes_empty(node.this, kind_of_column)
    if isinstance(node, exp.Sum):
        return kind(node.this, kind_of_column) > Empty.OTHER
    return isinstance(node, exp.Max) and kind(node.this, kind_of_column) is Empty.COUNT


def _window(node: exp.Window, kind_of_column: Lookup) -> bool:
    if isinstance(node.this, _RANKS):
        order = node.args.get("order")
        return order is not None and counts_first(order, kind_of_column)
    spec = node.args.get("spec")
    if spec is not None and str(spec.args.get("kind") or "").upper() != "RANGE":
        ends = {str(spec.args.get(end) or "").upper() for end in ("start", "end")}
        if not ends <= {"UNBOUNDED", "CURRENT ROW"}:
            return False  # a frame of n rows before or after may contain groups without rows
    return unaffected(node.this, kind_of_column)


def counts_first(order: exp.Expr, kind_of_column: Lookup) -> bool:
    """Return whether groups without rows come last because the order begins with a descending count."""
    first = order.expressions[0] if order.expressions else None
    return (
        isinstance(first, exp.Ordered)
        and bool(first.args.get("desc"))
        and kind(first.this, kind_of_column) is Empty.COUNT
    )


def _number(node: exp.Expr) -> Fraction | None:
    """Return the value of a literal number, None for any other node."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    try:
        return Fraction(node.name)
    except ValueError:
        return None
