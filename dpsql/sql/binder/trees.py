"""Helpers that build the trees of the remainder: copies checked against the allow-list, output names, aliases, sets of keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, combinations, product
from math import prod
from typing import Any

from sqlglot import exp, parse_one

from dpsql.errors.exceptions import Error, refuse, suggestion
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Key, Measure
from dpsql.sql.binder.allow_list import UTC_NAMES, check_node, only_utc
from dpsql.sql.binder.equal_keys import named_table
from dpsql.sql.binder.scope import FUNCTION_WORDS, Bound, Protected, Released, only, shown_names, wrong_call
from dpsql.sql.lexer import place
from dpsql.sql.parse import dialect
from dpsql.sql.parser import WRITTEN_NAME, Marks
from dpsql.sql.rewrites.postgresql import LABEL
from dpsql.storage.records import replace

SQL_TYPES = {
    Type.INTEGER: "BIGINT", Type.REAL: "DOUBLE", Type.TEXT: "TEXT", Type.BOOLEAN: "BOOLEAN", Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP", Type.NULL: "INT",
}  # fmt: skip


def stands_for_value(node: exp.Expr) -> bool:
    """Return whether a query in an expression over results is a subquery that stands for one value, and not for rows."""
    of_rows = (exp.From, exp.Join, exp.Lateral, exp.In, exp.Any, exp.All, exp.SetOperation, exp.Subquery)
    as_rows = isinstance(node.parent, of_rows) and node.arg_key in ("this", "query", "expression")
    return isinstance(node, exp.Subquery) and not as_rows and node.parent is not None


def rebuild(value: object, special: Callable[[exp.Expr], exp.Expr | None]) -> object:
    """Return a copy of a tree. `special` may replace a node; every other node must be on the allow-list."""
    if isinstance(value, list):
        return [rebuild(item, special) for item in value]
    if not isinstance(value, exp.Expr):
        return value
    replaced = special(value)
    if replaced is not None:
        return replaced
    if (constant := _moment(value)) is not None:
        return constant
    if (template := _TEMPLATES.get(type(value))) is not None:
        return _written(value, *template, special)
    check_node(value)
    copy = type(value)(**{name: rebuild(part, special) for name, part in value.args.items()})
    copy._meta = Marks(value._meta) if value._meta else None
    return copy


_BUCKET = (
    "CASE WHEN v::DOUBLE < a THEN 0 WHEN v::DOUBLE = 'nan'::DOUBLE THEN NULL WHEN v::DOUBLE >= b THEN n + 1 "
    "WHEN v IS NOT NULL THEN least(n, CAST(floor((v::DOUBLE - a) / (b::DOUBLE - a) * n) AS BIGINT) + 1) END"
)
_TEMPLATES: dict[type[exp.Expr], tuple[str, dict[str, str]]] = {
    exp.WidthBucket: (_BUCKET, {"v": "this", "a": "min_value", "b": "max_value", "n": "num_buckets"}),
    exp.UnixToTime: ("TIMESTAMP '1970-01-01' + to_seconds(v)", {"v": "this"}),
    exp.AtTimeZone: ("CAST(v AS TIMESTAMP)", {"v": "this"}),
}
"""Functions of rows that DuckDB lacks, or answers in another type, in its words: the text, and the slots of its names."""


def _written(
    node: exp.Expr, text: str, slots: dict[str, str], special: Callable[[exp.Expr], exp.Expr | None]
) -> exp.Expr:
    """Return a node of `_TEMPLATES` in its other words. Refuses arguments that rows do not take either."""
    only(node, *slots.values(), "zone")
    numbers = [node.args.get(slot) for name, slot in slots.items() if name != "v"]
    values = [float(part.sql()) for part in numbers if isinstance(part, exp.Expr) and part.unnest().is_number]
    if len(values) < len(numbers) or (values and not (values[0] < values[1] and 1 <= values[2] <= 100_000)):
        raise wrong_call(node, "takes literal bounds, the lower first, and a literal number of buckets")
    if isinstance(node, exp.AtTimeZone) and str(node.args["zone"].name).upper() not in UTC_NAMES:
        raise only_utc(node)
    parts: dict[str, Any] = {name: rebuild(node.args[slot], special) for name, slot in slots.items()}
    tree = exp.Paren(this=parse_one(text, read="duckdb"))
    for column in list(tree.find_all(exp.Column)):
        column.replace(exp.Paren(this=parts[column.name].copy()))
    tree.meta[LABEL] = output_name(node)
    return tree


def as_interval(seconds: exp.Expr) -> exp.Expr:
    """Return a number of seconds as the INTERVAL of days and a time that a difference of timestamps is."""
    start = "TIMESTAMP '1970-01-01'"
    tree = parse_one(f"({start} + to_microseconds(CAST(round(1000000 * v) AS BIGINT))) - {start}", read="duckdb")
    next(tree.find_all(exp.Column)).replace(seconds)
    return exp.Paren(this=tree)


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """Return the parts of a condition that are connected by AND, ignoring brackets; empty for None."""
    if condition is None:
        return []
    bare = condition.unnest()
    return (
        [part for side in (bare.this, bare.expression) for part in conjuncts(side)]
        if isinstance(bare, exp.And)
        else [condition]
    )


def implied(condition: exp.Expr | None) -> list[exp.Expr]:
    """Return conditions that hold where a condition does: its parts, and those that all sides of an OR among them have."""
    conditions = []
    for part in conjuncts(condition):
        bare = part.unnest()
        conditions.append(part)
        if isinstance(bare, exp.Or):
            left, right = implied(bare.this), implied(bare.expression)
            kinds = set(map(type, left)) & set(map(type, right))  # a long OR is not written again at each of its levels
            texts = {each.sql() for each in right if type(each) in kinds}
            conditions += [each for each in left if type(each) in kinds and each.sql() in texts]
    return conditions


def _moment(node: exp.Expr) -> exp.Expr | None:
    """Return the time of planning as a literal for CURRENT_DATE, now() and the like; None for other nodes."""
    name = str(node.this).lower() if isinstance(node, exp.Anonymous) and not node.expressions else ""
    if not isinstance(node, (exp.CurrentDate, exp.CurrentTimestamp)) and name != "now":
        return None
    only(node, "this") if name else only(node)
    present = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    value, type_ = (present.date(), "DATE") if isinstance(node, exp.CurrentDate) else (present, "TIMESTAMP")
    moment = exp.cast(exp.Literal.string(str(value)), type_, dialect="duckdb")
    moment.meta[LABEL] = output_name(node)
    return moment


def own_columns(node: exp.Expr) -> Iterator[exp.Column]:
    """Yield the columns that an expression names outside of subqueries."""
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        yield node
    for part in node.iter_expressions():
        if not isinstance(part, (exp.Subquery, exp.Select, exp.SetOperation)):
            yield from own_columns(part)


def condition_of(node: exp.Select, clause: str) -> exp.Expr | None:
    """Return the condition of WHERE or HAVING, None without one."""
    written = node.args.get(clause)
    return None if written is None else written.this


def literal_limit(node: exp.Expr) -> int | None:
    """Return the number of a LIMIT that is a literal; None without one."""
    limit = node.args.get("limit")
    number = limit.expression if isinstance(limit, exp.Limit) else None
    written = isinstance(number, exp.Literal) and not number.is_string and number.name.isdecimal()
    return int(number.name) if number is not None and written else None


def output_name(item: exp.Expr) -> str:
    """Return the name of an output column, by PostgreSQL's rules."""
    if item.alias:
        return str(item.alias)
    around = (exp.Paren, exp.Cast, exp.Filter, exp.WithinGroup, exp.Window, exp.IgnoreNulls)
    while item.meta_get(LABEL) is None and isinstance(item, around):
        item = item.this
    if (label := item.meta_get(LABEL)) is not None:
        return str(label)
    if isinstance(item, exp.Column):
        return item.name
    if isinstance(item, exp.Anonymous):
        return str(item.this).lower()
    if isinstance(item, (exp.Case, exp.If)):
        return "case"
    if (written := item.meta_get(WRITTEN_NAME)) is not None:
        return str(written).lower()
    if isinstance(item, exp.Func) and not isinstance(item, exp.Binary):  # AND, OR and ~ are functions for sqlglot
        return FUNCTION_WORDS.get(type(item), item.sql(dialect()).split("(")[0]).lower()
    return "?column?"


def rename(bound: Bound, names: tuple[str, ...], node: exp.Expr) -> Bound:
    """Return `bound` with its first columns renamed by an alias list, as in FROM (...) AS t(a, b). Refuses too many names."""
    if not names:
        return bound
    have = len(bound.columns)
    if len(names) > have:
        raise refuse("alias_count", want=have, got=len(names), position=place(node))
    if isinstance(bound, Protected):
        labels = [*names, *(label for label, _ in bound.columns[len(names) :])]
        return replace(bound, columns=tuple((n, c) for n, (_, c) in zip(labels, bound.columns, strict=True)))
    return replace(bound, columns=(*names, *bound.columns[len(names) :]))


def with_names(bound: Released, names: tuple[str, ...]) -> exp.Expr:
    if not names:
        return bound.tree
    alias = exp.TableAlias(this=exp.to_identifier("q"), columns=[exp.to_identifier(n, quoted=True) for n in names])
    inner = exp.Subquery(this=as_query(bound), alias=alias)
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=inner))


def aliased(tree: exp.Expr, alias: str) -> exp.Expr:
    """Return a table or query of the sandbox under the analyst's alias."""
    name = exp.TableAlias(this=exp.to_identifier(alias, quoted=True)) if alias else None
    if isinstance(tree, exp.Table):
        table = tree.copy()
        table.set("alias", name)
        return table
    return exp.Subquery(this=tree, alias=name)


def put_in_front(query: exp.Query, common: list[tuple[str, exp.Expr]]) -> None:
    """Add WITH in front of `query`, with those of the hoisted entries that it reads, in their order."""
    waiting: list[exp.Expr] = [query]
    needed: set[str] = set()
    trees = dict(common)
    while waiting:
        names = {table.name for table in waiting.pop().find_all(exp.Table)} & trees.keys() - needed
        needed |= names
        waiting += [trees[name] for name in names]
    entries: list[exp.Expr] = [
        exp.CTE(this=tree.copy(), alias=exp.TableAlias(this=exp.to_identifier(name)))
        for name, tree in common
        if name in needed
    ]
    if entries:
        query.set("with_", exp.With(expressions=entries))


def as_query(bound: Released) -> exp.Query:
    """Return the tree of `bound` as a query."""
    return bound.tree if isinstance(bound.tree, exp.Query) else exp.select("*").from_(bound.tree)


def as_operand(query: exp.Query, operation: exp.SetOperation, side: str) -> exp.Query:
    """Return one side of a set operation, in brackets where its text would be read otherwise without them: with clauses that
    would follow the operation, to the right of it, and to the left of an INTERSECT, which is read before UNION and EXCEPT."""
    clauses = any(query.args.get(clause) for clause in ("order", "limit", "offset"))
    nested = isinstance(query, exp.SetOperation) and (side == "expression" or isinstance(operation, exp.Intersect))
    return exp.Subquery(this=query) if clauses or nested else query


def check_names(node: exp.Select, sources: list[tuple[str, tuple[str, ...]]]) -> None:
    """Refuse columns of a SELECT over results that none of its sources (alias, columns) has, with their position.

    An item may name the outputs before it. Subqueries check the names inside them; names that pass here are still rehearsed in
    the sandbox.
    """
    last = len(node.expressions)
    aliases = {item.alias.lower(): index for index, item in reversed([*enumerate(node.expressions)]) if item.alias}
    items = {id(part): index for index, item in enumerate(node.expressions) for part in item.find_all(exp.Column)}
    inner = {id(p) for query in node.find_all(exp.Select, exp.SetOperation) if query is not node for p in query.walk()}
    for column in node.find_all(exp.Column):
        if id(column) in inner or isinstance(column.this, exp.Star):
            continue
        qualifier, name = column.table.lower(), column.name.lower()
        columns_of_source = [columns for alias, columns in sources if not qualifier or alias.lower() == qualifier]
        if qualifier and not columns_of_source:
            named = shown_names(alias for alias, _ in sources if alias)
            raise refuse(
                "unknown_table", name=column.table, position=place(column), hint=suggestion(column.table, named)
            )
        labels = [label for columns in columns_of_source for label in columns]
        if name not in {label.lower() for label in labels} and (
            qualifier or aliases.get(name, last) >= items.get(id(column), last)
        ):
            if not qualifier and name in (alias.lower() for alias, _ in sources):
                raise refuse("whole_row", name=column.name, position=place(column))
            raise refuse(
                "unknown_column",
                name=column.name,
                position=place(column),
                hint=suggestion(column.name, shown_names(labels)),
            )


def no_position(clause: str, number: exp.Expr, most: int) -> Error:
    """Return the refusal of a position in GROUP BY or ORDER BY that the select list has not."""
    return refuse("group_position", clause=clause, number=number.sql(), most=most, position=place(number))


def order_by_all(query: exp.Query, columns: int) -> None:
    """Replace ORDER BY ALL in `query` by ORDER BY all positions of its outputs. Refuses (group_position) others than these."""
    order = query.args.get("order")
    for item in order.expressions if order is not None else ():
        if isinstance(number := item.this, exp.Neg) and isinstance(number.this, exp.Literal):
            raise no_position("ORDER BY", number, columns)
        if isinstance(number, exp.Literal) and number.is_int and not 1 <= int(number.name) <= columns:
            raise no_position("ORDER BY", number, columns)
    ordered = order.expressions[0] if order is not None and len(order.expressions) == 1 else None
    if ordered is not None and isinstance(ordered.this, exp.Var) and ordered.this.name.upper() == "ALL":
        how = {name: value for name, value in ordered.args.items() if name != "this"}
        every = [exp.Ordered(this=exp.Literal.number(index), **how) for index in range(1, columns + 1)]
        query.set("order", exp.Order(expressions=every))


def asks_no_rows(node: exp.Select) -> bool:
    """Return whether a SELECT has LIMIT 0 or a constant false condition, by which tools probe for names and types."""
    return literal_limit(node) == 0 or any(map(is_constantly_false, conjuncts(condition_of(node, "where"))))


def is_constantly_false(part: exp.Expr) -> bool:
    """Return whether a condition is FALSE or compares two whole numbers or two texts so that it is false."""
    part = part.unnest()
    if isinstance(part, exp.Boolean):
        return not part.this
    if not isinstance(part, (exp.EQ, exp.NEQ)):
        return False
    sides = [side for side in (part.this, part.expression) if isinstance(side, exp.Literal)]
    values = [side.name if side.is_string else int(side.name) for side in sides if side.is_string or side.is_int]
    comparable = len(values) == 2 and type(values[0]) is type(values[1])
    return comparable and (values[0] == values[1]) is isinstance(part, exp.NEQ)


_SHOWN = "shown"


def mark_shown(query: exp.Query) -> None:
    """Mark the SELECTs without whose rows a statement shows nothing of the data: the whole one, and the only source of each."""
    entries = {entry.alias.lower(): entry.this for entry in query.find_all(exp.CTE)}
    node: exp.Expr | None = query.unnest()
    while isinstance(node, exp.Select):
        node.meta[_SHOWN] = True
        clause = node.args.get("from_")
        clauses = [value for name, value in node.args.items() if value and name not in ("from_", "with_")]
        parts = [part for value in clauses for part in (value if isinstance(value, list) else [value]) if part]
        several = any(isinstance(part, exp.Join) or part.find(exp.Query) for part in parts)
        if clause is None or several or asks_no_rows(node):
            return
        source = clause.this
        named = isinstance(source, exp.Table) and not source.db
        node = entries.pop(source.name.lower(), None) if named else source.unnest()


def is_shown(node: exp.Expr, whole: exp.Expr) -> bool:
    """Return whether `mark_shown` marked a SELECT of the statement `whole`."""
    return node is whole or bool(node.meta_get(_SHOWN))


def no_rows(bound: Protected) -> Released:
    """Return the columns of protected rows without any rows: names and types, which follow from the policy."""
    items: list[exp.Expr] = [
        exp.alias_(exp.cast(exp.Null(), SQL_TYPES[column.facts.type], dialect="duckdb"), label, quoted=True)
        for label, column in bound.columns
    ]
    select = exp.Select(expressions=items, where=exp.Where(this=exp.false()))
    labels, facts = tuple(label for label, _ in bound.columns), tuple(column.facts for _, column in bound.columns)
    return Released(select, labels, facts)


def outputs_by_alias(node: exp.Select) -> dict[str, exp.Expr]:
    """Return the expressions of a SELECT list by alias in lower case: of several outputs with one alias, the first."""
    return {item.alias.lower(): item.unalias() for item in reversed(node.expressions) if item.alias}


# --- ROLLUP, CUBE and GROUPING SETS -----------------------------------------------------------------------------------
# Every set of keys is a separate private block (privacy.md 4); the result is their union.

MOST_SETS = 16
GROUPING = "#grouping "


def grouping_sets(items: list[exp.Expr]) -> list[tuple[exp.Expr, ...]]:
    """Return the grouping sets of the GROUP BY items: the cross product of the items' sets (SQL:1999), keeping repeated sets."""
    parts = [_expanded(item) for item in items]
    if prod(map(len, parts)) > MOST_SETS:
        raise refuse("clause", what=f"more than {MOST_SETS} grouping sets", position=place(items[0]))
    return [tuple(chain.from_iterable(combination)) for combination in product(*parts)]


def _expanded(item: exp.Expr) -> list[tuple[exp.Expr, ...]]:
    if isinstance(item, exp.Rollup):
        parts = [_flat(part) for part in item.expressions]
        return [tuple(chain.from_iterable(parts[:count])) for count in range(len(parts), -1, -1)]
    if isinstance(item, exp.Cube):
        parts = [_flat(part) for part in item.expressions]
        if len(parts) > 4:
            raise refuse("clause", what=f"more than {MOST_SETS} grouping sets", position=place(item))
        chosen = [c for count in range(len(parts), -1, -1) for c in combinations(parts, count)]
        return [tuple(chain.from_iterable(c)) for c in chosen]
    if isinstance(item, exp.GroupingSets):
        return [key_set for part in item.expressions for key_set in _expanded(part)]
    return [_flat(item)]


def _flat(item: exp.Expr) -> tuple[exp.Expr, ...]:
    """Return the keys of an item: (a, b) is two keys, () none, (a) and a are one."""
    if isinstance(item, exp.Tuple):
        return tuple(item.expressions)
    return (item.this,) if isinstance(item, exp.Paren) else (item,)


def grouping_call(keys: list[str]) -> exp.Column:
    """Return GROUPING(a, b) as a column that `over_set` replaces by its number."""
    return exp.column(GROUPING + " ".join(keys), quoted=True)


def grouping_number(keys: Iterable[str], chosen: Collection[str]) -> exp.Expr:
    """Return the number of GROUPING over keys: a bit for each of them, 1 for those that are not `chosen`."""
    return exp.Literal.number(int("".join(str(int(key not in chosen)) for key in keys), 2))


def over_set(select: exp.Select, block: str, keys: list[Key], chosen: list[Key]) -> exp.Select:
    """Return the SELECT over one grouping set's block: its keys by their names there (equal ones share one), NULL for others."""
    expressions = list(dict.fromkeys(key.expression for key in chosen))
    names = {key.name: f"k{expressions.index(key.expression)}" for key in chosen}
    types = {key.name: SQL_TYPES[key.expression.facts.type] for key in keys}
    copy = select.copy()
    for column in list(copy.find_all(exp.Column)):
        if column.name.startswith(GROUPING):
            column.replace(grouping_number(column.name[len(GROUPING) :].split(), names))
        elif column.name in names:
            column.replace(exp.column(names[column.name], quoted=True))
        elif column.name in types:
            column.replace(exp.cast(exp.Null(), types[column.name], dialect="duckdb"))
    copy.set("from_", exp.From(this=named_table(block)))
    return copy


def columns_of_sets(
    select: exp.Select, order: exp.Expr | None, keys: Sequence[Key], measures: Sequence[Measure]
) -> exp.Select:
    """Return a SELECT of all keys, measures and GROUPING numbers. It is for a `select` and `order` with windows, which SQL
    computes over the union of all sets. GROUPING in both becomes a column of the returned SELECT."""
    numbers: dict[str, str] = {}
    for part in (select, *([] if order is None else [order])):
        for column in list(part.find_all(exp.Column)):
            if column.name.startswith(GROUPING):
                number = numbers.setdefault(column.name, f"g{len(numbers)}")
                column.replace(exp.column(number, quoted=True))
    names = {name: name for name in [*(key.name for key in keys), *(measure.name for measure in measures)]}
    columns = {**names, **numbers}.items()
    return exp.Select(
        expressions=[exp.alias_(exp.column(read, quoted=True), name, quoted=True) for read, name in columns]
    )


def united_queries(node: exp.SetOperation) -> list[exp.Expr]:
    """Return the operands of a set operation. UNIONs in one another, of which no inner one leaves out rows that the outer keeps,
    are one."""
    operands: list[exp.Expr] = []
    waiting = [node.expression, node.this]
    while waiting:
        side = waiting.pop()
        bare = side.unnest() if _parts(side) == {"this"} else side
        united = isinstance(node, exp.Union) and isinstance(bare, exp.Union)
        united = united and (bool(node.args.get("distinct")) or not bare.args.get("distinct"))
        if united and not node.args.get("by_name") and _parts(bare) <= {"this", "expression", "distinct"}:
            waiting += [bare.expression, bare.this]
        else:
            operands.append(side)
    return operands


def _parts(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}


def over_union(select: exp.Select, selects: list[exp.Select], order: exp.Expr | None) -> exp.Select:
    """Return `select` over the union of the columns of all sets (`columns_of_sets`)."""
    select.set("from_", exp.From(this=_derived(selects)))
    if order is not None:
        select.set("order", order)
    return select


def _derived(selects: list[exp.Select]) -> exp.Subquery:
    union: exp.Query = selects[0]
    for following in selects[1:]:
        union = exp.Union(this=union, expression=following, distinct=False)
    return exp.Subquery(this=union, alias=exp.TableAlias(this=exp.to_identifier("q")))


def united(selects: list[exp.Select], node: exp.Select, order: exp.Expr | None) -> exp.Query:
    """Return the UNION ALL of all grouping sets. Refuses ORDER BY of anything but outputs: it is the union's."""
    outer = exp.select("*").from_(_derived(selects))
    if order is not None:
        outputs = {item.alias_or_name.lower() for item in selects[0].expressions}
        for ordered in order.expressions:
            by = ordered.this
            plain = isinstance(by, exp.Literal) or (isinstance(by, exp.Column) and by.name.lower() in outputs)
            if not plain:
                clause, hint = "ORDER BY an expression over grouping sets", "SELECT it AS a name, and sort by that name"
                raise refuse("clause", what=clause, position=place(by) or place(node.args["order"]), hint=hint)
        outer.set("order", order)
    return outer
