"""SELECT lists over results and public tables: stars, positions in GROUP BY, and plain lists; aliases of any list in WHERE; and
the names that joins merge.

Stars become the columns that the sandbox shows. A plain SELECT from a public table is a relation of the plan, too: the policy's
promises about the table hold for it. Mistakes that DuckDB would find in GROUP BY are refused earlier, with their position.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse, suggestion
from dpsql.plan.plan import Column, Expr, Filter
from dpsql.sql.binder.aggregates import has_aggregate, is_aggregate
from dpsql.sql.binder.equal_keys import project
from dpsql.sql.binder.scalars import Scalars
from dpsql.sql.binder.scope import HIDDEN, Bound, Protected, Released, Scope, shown_names, sql_word, using_name
from dpsql.sql.binder.trees import no_position, output_name, outputs_by_alias, own_columns
from dpsql.sql.lexer import place

MOST_WRITTEN = 20_000
"""Largest number of nodes written in place of aliases in one WHERE, or in one SELECT over results."""


def check_select(node: exp.Select) -> None:
    """Refuse a SELECT without items, JOIN without FROM (syntax), and QUALIFY without a window (clause)."""
    if not node.expressions or (node.args.get("joins") and node.args.get("from_") is None):
        lacking = "JOIN stands without FROM" if node.expressions else "SELECT takes at least one expression"
        raise refuse("syntax", detail=lacking, position=place(node))
    qualify = node.args.get("qualify")
    if qualify is not None and not any(part.find(exp.Window) for part in (*node.expressions, qualify)):
        hint = "QUALIFY chooses rows by a window function; write HAVING over groups, WHERE over rows"
        raise refuse("clause", what="QUALIFY without a window", position=place(qualify.this), hint=hint)


def check_where(node: exp.Select, columns: Callable[[], Collection[tuple[str, str]]]) -> None:
    """Refuse (aggregate_in_where) an aggregate or a window in WHERE. An aggregate that reads columns, but none of `columns`
    (source, name), belongs to the query around this one."""
    where = node.args.get("where")
    for call in () if where is None else where.find_all(exp.AggFunc, exp.Window):
        read = [(column.table.lower(), column.name.lower()) for column in call.find_all(exp.Column)]
        is_outer = read and not any(_is_named(*name, column) for name in read for column in columns())
        if call.find_ancestor(exp.Query) is node and (isinstance(call, exp.Window) or not is_outer):
            name = sql_word(call.this if isinstance(call, exp.Window) else call)
            raise refuse("aggregate_in_where", name=name, position=place(call) or place(call.this) or place(where))


def where_written_out(node: exp.Select, scope: Scope) -> exp.Where | None:
    """Return WHERE with aliases of the SELECT list replaced by the expressions that they name; columns of FROM take precedence.

    Refuses (aggregate_in_where) an alias of an aggregate or a window, which is computed after WHERE, and (heavy_expression)
    aliases that would be replaced by more than `MOST_WRITTEN` nodes.
    """
    where: exp.Where | None = node.args.get("where")
    outputs = {item.alias.lower(): item.this for item in node.expressions if isinstance(item, exp.Alias) and item.alias}
    if where is None or not outputs:
        return where
    named = [column for column in own_columns(where) if _is_alias(column, outputs, scope)]
    if not named:
        return where
    if sum(sum(1 for _ in outputs[column.name.lower()].walk()) for column in named) > MOST_WRITTEN:
        raise refuse("heavy_expression", position=place(named[0]))
    positions = {place(column) for column in named}
    written: exp.Where = where.copy()
    for column in [each for each in own_columns(written) if not each.table]:
        if column.name.lower() not in outputs or place(column) not in positions:
            continue
        output = outputs[column.name.lower()]
        if has_aggregate(output) or output.find(exp.Window):
            raise refuse("aggregate_in_where", name=column.name, position=place(column))
        column.replace(exp.Paren(this=output.copy()))
    return written


def keys_of_all(node: exp.Select, scope: Scope) -> list[exp.Expr]:
    """Return the items that GROUP BY ALL groups by: those without aggregates. Beside aggregates, constants are not keys: without
    other keys the answer is one row, also over no rows. An item that names outputs by alias follows from them."""
    outputs = outputs_by_alias(node)
    plain = [item.unalias() for item in node.expressions if not has_aggregate(item)]
    if len(plain) < len(node.expressions):
        plain = [item for item in plain if _reads_columns(item)]
    return [item for item in plain if not any(_is_alias(column, outputs, scope) for column in own_columns(item))]


def _reads_columns(item: exp.Expr) -> bool:
    """Return whether an expression reads a column outside of its subqueries, none of which is correlated here."""
    return any(
        column.find_ancestor(exp.Query) is item.find_ancestor(exp.Query)
        for column in item.find_all(exp.Column, exp.Star)
    )


def _is_alias(column: exp.Column, outputs: Collection[str], scope: Scope) -> bool:
    """Return whether a name is that of one of `outputs`; columns of FROM take precedence."""
    return not column.table and column.name.lower() in outputs and not scope.has(column)


def check_written(node: exp.Select, sources: Sequence[tuple[str, Released]]) -> None:
    """Refuse (heavy_expression) a SELECT over results in which more than `MOST_WRITTEN` nodes stand for outputs that are named by
    alias. The sandbox writes them out, and a + a AS b, b + b AS c, ... doubles each time."""
    columns = {label.lower() for _, source in sources for label in source.columns}
    sizes: dict[str, int] = {}
    written = 0
    clauses = [
        clause for name in ("where", "having", "qualify", "order") if (clause := node.args.get(name)) is not None
    ]
    for part in [*node.expressions, *clauses]:
        named = [
            column for column in own_columns(part) if not column.table and column.name.lower() in sizes.keys() - columns
        ]
        more = sum(sizes[column.name.lower()] for column in named)
        written += more
        if written > MOST_WRITTEN:
            raise refuse("heavy_expression", position=place(named[0]))
        if part.alias:
            sizes.setdefault(part.alias.lower(), more + sum(1 for _ in part.walk()))


MERGED_FIRST = "merged_first"
"""Key of a star's `meta`: the columns that USING merges come first, those of the last join before all others."""


def written_out(item: exp.Expr, sources: Sequence[tuple[str, Released]], joins: Sequence[exp.Join]) -> list[exp.Expr]:
    """Return an item of a SELECT over results, or the columns of a star. A column that USING (or NATURAL) merges appears once, at
    its place on the left side (or first) and by its bare name, which has the value of the side that is not NULL. Raises Refusal
    syntax without a FROM, unknown_column if EXCLUDE, REPLACE or RENAME names anything other than these columns."""
    if not isinstance(item, exp.Star) and not (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
        return [item]
    if not sources:
        raise refuse(
            "syntax", detail="a star stands for the columns of FROM, and there is no FROM", position=place(item)
        )
    qualifier = item.table.lower() if isinstance(item, exp.Column) else ""
    merged = [list[str]()] * len(sources) if qualifier else _merged(sources, joins)
    every = {name for names in merged for name in names}
    columns: list[exp.Column] = []
    for (alias, source), names in zip(sources, merged, strict=True):
        if alias.startswith(HIDDEN) or (qualifier and alias.lower() != qualifier):
            continue
        if item.meta_get(MERGED_FIRST):
            columns.sort(
                key=lambda column: names.index(column.name.lower()) if column.name.lower() in names else len(names)
            )
        columns += [
            _column(name, "" if name.lower() in every else alias)
            for name in source.columns
            if name.lower() not in names
        ]
    return _changed(item if isinstance(item, exp.Star) else item.this, columns)


def is_changed(item: exp.Expr) -> bool:
    """Return whether an item is a star with EXCLUDE, REPLACE or RENAME."""
    star = item.this if isinstance(item, exp.Column) else item
    return isinstance(star, exp.Star) and any(star.args.values())


def bound_star(
    star: exp.Star, columns: list[tuple[str, Column]], bind: Callable[[exp.Expr], Expr]
) -> list[tuple[str, Expr]]:
    """Return the columns of a star over protected rows, as labels and expressions, after its EXCLUDE, REPLACE and RENAME. `bind`
    binds the expressions of REPLACE."""
    named = [exp.column(exp.to_identifier(label, quoted=True)) for label, _ in columns]
    position_of = {id(node): position for position, node in enumerate(named)}
    items: list[tuple[str, Expr]] = []
    for item in _changed(star, named) if is_changed(star) else named:
        position = position_of.get(id(item.unalias()))
        items.append((item.alias_or_name, bind(item.unalias()) if position is None else columns[position][1]))
    return items


def _changed(star: exp.Star, columns: list[exp.Column]) -> list[exp.Expr]:
    """Return the columns of a star after its EXCLUDE, REPLACE and RENAME, as in DuckDB."""
    excluded = {entry.name.lower() for entry in star.args.get("except_") or ()}
    replaced = {entry.alias.lower(): entry for entry in star.args.get("replace") or ()}
    renamed = {entry.this.name.lower(): entry.args["alias"] for entry in star.args.get("rename") or ()}
    names = [column.name.lower() for column in columns]
    for name in (*excluded, *replaced, *renamed):
        if name not in names:
            raise refuse("unknown_column", name=name, hint=suggestion(name, names), position=place(star))
    changed: list[exp.Expr] = []
    for name, column in zip(names, columns, strict=True):
        if name in replaced:
            changed.append(replaced[name].copy())
        elif name in renamed:
            changed.append(exp.Alias(this=column, alias=renamed[name].copy()))
        elif name not in excluded:
            changed.append(column)
    if not changed and _alone(star):
        raise refuse("clause", what="EXCLUDE of all columns", position=place(star))
    return changed


def _alone(star: exp.Star) -> bool:
    """Return whether a star is the only item of its SELECT."""
    item = star.parent if isinstance(star.parent, exp.Column) else star
    return not isinstance(item.parent, exp.Select) or len(item.parent.expressions) == 1


def _merged(sources: Sequence[tuple[str, Released]], joins: Sequence[exp.Join]) -> list[list[str]]:
    """Return, for each source, the lower-case names of columns that USING or NATURAL merges with one to its left."""
    merged, before = [list[str]()], [name.lower() for name in sources[0][1].columns]
    for join, (_, source) in zip(joins, sources[1:], strict=True):
        columns = [name.lower() for name in source.columns]
        names = [using_name(name).lower() for name in join.args.get("using") or ()]
        if str(join.args.get("method") or "").upper() == "NATURAL":
            names = [name for name in before if name in columns]
        merged.append(names)
        before += [name for name in columns if name not in before]
    return merged


def _column(name: str, alias: str) -> exp.Column:
    table = exp.to_identifier(alias, quoted=True) if alias else None
    return exp.column(exp.to_identifier(name, quoted=True), table=table)


_CLAUSES = {"expressions", "from_", "where", "with_"}


def public_rows(node: exp.Select, bound: list[tuple[str, Bound]]) -> Protected | None:
    """Return the relation of SELECT columns and row expressions FROM one public table (or such a SELECT) WHERE condition; None
    for any other SELECT over results, whose rows are known only once it has run."""
    rows = _only_source(node, bound)
    if rows is None:
        return None
    scope = Scope([(bound[0][0], rows)])
    scalars = Scalars(scope)
    items: list[tuple[str, Expr]] = []
    try:
        for item in _written_out(node, bound):
            if item.is_star:
                items += scope.star(item.table if isinstance(item, exp.Column) else "", item)
            else:
                items.append((output_name(item), scalars.bind(item.unalias())))
        where = node.args.get("where")
        relation = rows.relation if where is None else Filter(rows.relation, scalars.boolean(where.this))
        return project(Protected(relation, rows.columns), items)
    except Error:
        return None


def _written_out(node: exp.Select, bound: list[tuple[str, Bound]]) -> list[exp.Expr]:
    """Return the items of a SELECT, with stars that have EXCLUDE and the like written out."""
    sources = [(alias, source) for alias, source in bound if isinstance(source, Released)]
    return [
        part for item in node.expressions for part in (written_out(item, sources, ()) if is_changed(item) else [item])
    ]


def _only_source(node: exp.Select, bound: list[tuple[str, Bound]]) -> Protected | None:
    if len(bound) != 1 or any(value for name, value in node.args.items() if name not in _CLAUSES):
        return None
    ((_, source),) = bound
    plain = not any(part.find(exp.AggFunc, exp.Window, exp.Subquery, exp.Select) for part in node.expressions)
    return labelled(source) if plain and isinstance(source, Released) else None


def labelled(source: Released) -> Protected | None:
    """Return the relation of a public table with its columns renamed to their labels in this query."""
    if source.rows is None or len(source.rows.columns) != len(source.columns):
        return None
    columns = (column for _, column in source.rows.columns)
    return Protected(source.rows.relation, tuple(zip(source.columns, columns, strict=True)))


def check_public_groups(node: exp.Select, sources: Sequence[tuple[str, tuple[str, ...]]]) -> None:
    """Refuse a GROUP BY position that does not exist (group_position), in a SELECT over `sources` (alias, columns). If GROUP BY
    has columns and positions alone, or there is none but an aggregate, also refuse a column outside of aggregates that is not
    grouped (not_grouped)."""
    group = node.args.get("group")
    items = [item for each in node.expressions for item in _all(each, sources)]
    if group is None:
        if node.args.get("from_") is not None and any(map(has_aggregate, items)):
            _check_grouped(node, items, set(), sources)
        return
    if any(group.args.get(name) for name in ("all", "rollup", "cube", "grouping_sets", "totals")):
        return
    aliased = {item.alias.lower(): item.unalias() for item in items if item.alias}
    grouped: set[tuple[str, str]] = set()
    for part in group.expressions:
        item = part
        if isinstance(part, exp.Literal) and not part.is_string and part.name.isdecimal():
            if not 1 <= int(part.name) <= len(items):
                raise no_position("GROUP BY", part, len(items))
            item = items[int(part.name) - 1].unalias()
        bare = isinstance(item, exp.Column) and not item.args.get("table")
        meant = [item, aliased.get(item.name.lower(), item)] if bare else [item]
        columns = [column for column in meant if isinstance(column, exp.Column)]
        if len(columns) < len(meant):
            return  # an expression, which the list may repeat in a different form
        grouped |= {(column.table.lower(), column.name.lower()) for column in columns}
    _check_grouped(node, items, grouped, sources)


def _all(item: exp.Expr, sources: Sequence[tuple[str, tuple[str, ...]]]) -> list[exp.Expr]:
    """Return the columns for which a star without EXCLUDE over one source stands, or the item itself."""
    star = item.this if isinstance(item, exp.Column) else item
    if not isinstance(star, exp.Star) or any(star.args.values()) or len(sources) != 1:
        return [item]
    names = [exp.to_identifier(name, quoted=True) for name in sources[0][1]]
    for name in names:
        name.meta["start"] = (place(item) or 1) - 1
    return [exp.Column(this=name) for name in names]


def _check_grouped(
    node: exp.Select,
    items: Sequence[exp.Expr],
    grouped: set[tuple[str, str]],
    sources: Sequence[tuple[str, tuple[str, ...]]],
) -> None:
    """Refuse a column of `sources` outside of aggregates that is not `grouped` (names with their tables), also of HAVING, QUALIFY
    and ORDER BY, which may name an output by its alias."""
    columns = {(alias.lower(), name.lower()) for alias, names in sources for name in names}
    clauses = [part for name in ("having", "qualify", "order") if (part := node.args.get(name)) is not None]
    aliases = {("", item.alias.lower()) for item in items}
    for part in (*items, *clauses):
        for column in _outside_aggregates(part):
            table, name = column.table.lower(), column.name.lower()
            of_source = any(_is_named(table, name, each) for each in columns)
            free = any(_is_named(table, name, each) for each in grouped)
            if of_source and not free and not (part in clauses and (table, name) in aliases):
                raise refuse("not_grouped", name=column.name, position=place(column))


def _is_named(table: str, name: str, column: tuple[str, str]) -> bool:
    """Return whether a name, with its table or "", may be that of a column, with its table or ""."""
    return name == column[1] and (table == column[0] or not table or not column[0])


def _outside_aggregates(node: exp.Expr) -> Iterator[exp.Column]:
    """Yield the columns that an expression names outside of subqueries and of aggregates; a window's own function is none."""
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        yield node
    parts = list(node.iter_expressions())
    if isinstance(node, exp.Window):
        parts += parts.pop(0).iter_expressions()
    elif is_aggregate(node) or isinstance(node, (exp.Anonymous, exp.Query)):
        parts = []
    for part in parts:
        yield from _outside_aggregates(part)


BY_WHERE = "by_where"
"""Key of a join's `meta`: WHERE has its conditions, and USING only merges names."""


def _check_clauses(joins: Sequence[exp.Join]) -> None:
    """Refuse a condition of a join that cannot have one: sqlglot reads it."""
    for join in joins:
        natural, cross = str(join.args.get("method") or "").upper() == "NATURAL", join.kind == "CROSS"
        if (natural and cross) or ((natural or cross) and (join.args.get("on") or join.args.get("using"))):
            detail = f"{'NATURAL' if natural else 'CROSS'} JOIN takes neither ON nor USING"
            raise refuse("syntax", detail=detail, position=place(join))


def between_commas(node: exp.Select, bound: list[tuple[str, Bound]]) -> exp.Select:
    """Return a SELECT in which names that USING and NATURAL merge are those between two commas of FROM: JOIN is read before the
    comma, so in FROM a, b JOIN c USING (k) only b and c have the k that is meant. Where a source before the comma has that name,
    too, ON with the sources' names takes the place of USING. Refuses SELECT * over it, whose columns would be others, and names
    that several sources to the left have."""
    joins = node.args.get("joins") or []
    _check_clauses(joins)
    commas = [index for index, join in enumerate(joins) if not join.kind and is_comma(join)]
    if not any(join.args.get("using") or join.args.get("method") for join in joins):
        return node
    written: list[exp.Join] = []
    first, merged = 0, set[str]()
    for index, join in enumerate(joins):
        if index in commas:
            first, merged = index + 1, set()
        before = {name for _, source in bound[:first] for name in labels_by_name(source)}
        near = [(alias, labels_by_name(source)) for alias, source in bound[first : index + 1]]
        labels = labels_by_name(bound[index + 1][1])
        names = [using_name(name) for name in join.args.get("using") or ()]
        if join.args.get("method"):
            names = [label for name, label in labels.items() if any(name in owned for _, owned in near)]
        owners = [[alias for alias, owned in near if name.lower() in owned] for name in names]
        for name, aliases in zip(names, owners, strict=True):
            if len(aliases) > 1 and name.lower() not in merged:
                raise refuse("ambiguous_column", name=name, position=place(join))
        merged |= {name.lower() for name in names}
        if not first or not any(name.lower() in before for name in names):
            written.append(join)
            continue
        if any(len(aliases) != 1 for aliases in owners) or any(item.is_star for item in node.expressions):
            hint = "write ON with the names of both sources"
            raise refuse(
                "join", reason="a source before the comma has a column of USING", way=hint, position=place(join)
            )
        pairs = [(exp.column(name, table=alias, quoted=True), exp.column(name, table=bound[index + 1][0], quoted=True))
                 for name, (alias,) in zip(names, owners, strict=True)]  # fmt: skip
        equal = exp.and_(*(exp.EQ(this=left, expression=right) for left, right in pairs), copy=False)
        written.append(exp.Join(**{**join.args, "method": None, "using": None, "on": equal}))
    return exp.Select(**{**node.args, "joins": written})


def with_shared_names(node: exp.Select, bound: list[tuple[str, Bound]]) -> exp.Select:
    """Return a SELECT with USING in place of NATURAL JOIN: it lists the column names that both sides share, according to the
    policy and the query. Refuses (join) sides without a shared name. Return any other SELECT unchanged."""
    joins = node.args.get("joins") or []
    if not any(join.args.get("method") for join in joins):
        return node
    written: list[exp.Join] = []
    before = labels_by_name(bound[0][1])
    for join, (_, source) in zip(joins, bound[1:], strict=True):
        labels = labels_by_name(source)
        if str(join.args.get("method") or "").upper() == "NATURAL":
            names = [exp.to_identifier(label, quoted=True) for name, label in labels.items() if name in before]
            if not names:
                reason, hint = "NATURAL JOIN finds no column on both sides", "write USING (key) or ON a.key = b.key"
                raise refuse("join", reason=reason, way=hint, position=place(join))
            written.append(exp.Join(**{**join.args, "method": None, "using": names}))
        else:
            written.append(join)
        before |= labels
    return exp.Select(**{**node.args, "joins": written})


def labels_by_name(source: Bound) -> dict[str, str]:
    """Return the column names of a source, keyed by their lower-case form."""
    labels = source.columns if not isinstance(source, Protected) else [label for label, _ in source.columns]
    return {label.lower(): label for label in shown_names(map(str, labels))}


def is_comma(join: exp.Join) -> bool:
    """Return whether a join is written FROM a, b or CROSS JOIN, or as if it was, so that WHERE has its keys."""
    if join.meta_get(BY_WHERE):
        return True
    clauses = [join.args.get(name) for name in ("on", "using", "side", "method")]
    return not any(clauses) and str(join.args.get("kind") or "").upper() in ("", "CROSS")
