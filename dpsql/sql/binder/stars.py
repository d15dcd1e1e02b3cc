"""What a star stands for over results: the columns that the sandbox shows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.sql.binder.scope import HIDDEN, Released, using_name


def written_out(item: exp.Expr, sources: Sequence[tuple[str, Released]], joins: Sequence[exp.Join]) -> list[exp.Expr]:
    """An item of a SELECT over results, or the columns that a star stands for. What USING (or NATURAL) merges stands once, where
    the left side has it, and by its bare name: the value of the side that is there."""
    if not isinstance(item, exp.Star) and not (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
        return [item]
    qualifier = item.table.lower() if isinstance(item, exp.Column) else ""
    merged = [set[str]()] * len(sources) if qualifier else _merged(sources, joins)
    every = set[str]().union(*merged)
    return [
        _column(name, "" if name.lower() in every else alias)
        for (alias, source), repeated in zip(sources, merged, strict=True)
        if not alias.startswith(HIDDEN) and (not qualifier or alias.lower() == qualifier)
        for name in source.columns
        if name.lower() not in repeated
    ]


def _merged(sources: Sequence[tuple[str, Released]], joins: Sequence[exp.Join]) -> list[set[str]]:
    """Of each source the columns that are merged with one to the left of it."""
    found, before = [set[str]()], {name.lower() for name in sources[0][1].columns}
    for join, (_, source) in zip(joins, sources[1:], strict=True):
        own = {name.lower() for name in source.columns}
        natural = str(join.args.get("method") or "").upper() == "NATURAL"
        found.append(own & before if natural else {using_name(name).lower() for name in join.args.get("using") or ()})
        before |= own
    return found


def _column(name: str, alias: str) -> exp.Column:
    table = exp.to_identifier(alias, quoted=True) if alias else None
    return exp.column(exp.to_identifier(name, quoted=True), table=table)
