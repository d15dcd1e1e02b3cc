"""Expansion of stars over results to the columns that the sandbox shows, and EXCLUDE, REPLACE and RENAME of any star."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.errors.suggestions import suggestion
from dpsql.plan.plan import Column, Expr
from dpsql.sql.binder.scope import HIDDEN, Released, using_name
from dpsql.sql.parse import place


def written_out(item: exp.Expr, sources: Sequence[tuple[str, Released]], joins: Sequence[exp.Join]) -> list[exp.Expr]:
    """Return an item of a SELECT over results, or the columns of a star. A column that USING (or NATURAL) merges appears once, at
    its place on the left side and by its bare name, which has the value of the side that is not NULL. Raises Refusal
    unknown_column if EXCLUDE, REPLACE or RENAME names anything other than these columns."""
    if not isinstance(item, exp.Star) and not (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
        return [item]
    qualifier = item.table.lower() if isinstance(item, exp.Column) else ""
    merged = [set[str]()] * len(sources) if qualifier else _merged(sources, joins)
    every = set[str]().union(*merged)
    columns = [
        _column(name, "" if name.lower() in every else alias)
        for (alias, source), repeated in zip(sources, merged, strict=True)
        if not alias.startswith(HIDDEN) and (not qualifier or alias.lower() == qualifier)
        for name in source.columns
        if name.lower() not in repeated
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


def _merged(sources: Sequence[tuple[str, Released]], joins: Sequence[exp.Join]) -> list[set[str]]:
    """Return, for each source, the lower-case names of columns that USING or NATURAL merges with one to its left."""
    merged, before = [set[str]()], {name.lower() for name in sources[0][1].columns}
    for join, (_, source) in zip(joins, sources[1:], strict=True):
        columns = {name.lower() for name in source.columns}
        natural = str(join.args.get("method") or "").upper() == "NATURAL"
        merged.append(
            columns & before if natural else {using_name(name).lower() for name in join.args.get("using") or ()}
        )
        before |= columns
    return merged


def _column(name: str, alias: str) -> exp.Column:
    table = exp.to_identifier(alias, quoted=True) if alias else None
    return exp.column(exp.to_identifier(name, quoted=True), table=table)
