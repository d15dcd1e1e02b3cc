"""FROM with more than one protected or public source, and UNION ALL of protected relations (privacy.md 3)."""

from __future__ import annotations

from sqlglot import exp

from dpsql.bind.names import Bound, Protected, Scope
from dpsql.errors import refuse
from dpsql.parse import place
from dpsql.plan import PublicInput, Relation


def joined(node: exp.Select, bound: list[tuple[str, Bound]], public: dict[str, PublicInput]) -> tuple[Scope, Relation]:
    """The relation of FROM and the names it offers."""
    if len(bound) > 1:
        raise refuse("join", reason="joins are not built yet", way="ask one table at a time", position=place(node.args["joins"][0]))
    alias, source = bound[0]
    assert isinstance(source, Protected)
    return Scope([(alias, source)]), source.relation


def union(node: exp.SetOperation, sides: list[Protected]) -> Protected:
    """UNION ALL of protected relations."""
    raise refuse("set_of_rows", reason="it is not built yet", way="aggregate each side first", position=place(node))
