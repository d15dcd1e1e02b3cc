"""How a table reaches the privacy unit through foreign keys, on names alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

Hop = tuple[str, str, str, str]
"""(table, column, parent table, parent column)."""

_FILE = re.compile(r"\.(?:parquet|csv|csv\.gz)\Z", re.ASCII | re.IGNORECASE)


def is_file(source: str) -> bool:
    """Whether `source` names files (Parquet or CSV, globs allowed) and not a table or a URL."""
    return _FILE.search(source) is not None and "://" not in source


def paths_to_unit(
    foreign_keys: Mapping[str, Mapping[str, tuple[str, str]]], unit_table: str
) -> dict[str, list[tuple[Hop, ...]]]:
    """For each table at most two paths to `unit_table` (two are enough to know that they are ambiguous).

    `foreign_keys` maps table -> column -> (parent table, parent column). The unit's own table has the one empty path;
    a table that does not reach the unit, or only through a cycle, has none.
    """
    found: dict[str, list[tuple[Hop, ...]]] = {unit_table: [()]}
    waiting = [table for table in foreign_keys if table != unit_table]
    while waiting:
        ready = [t for t in waiting if all(p in found or p not in waiting for p, _ in foreign_keys[t].values())]
        for table in ready:
            paths: list[tuple[Hop, ...]] = []
            for column, (parent, parent_column) in foreign_keys[table].items():
                paths += [((table, column, parent, parent_column), *rest) for rest in found.get(parent, [])]
            found[table] = paths[:2]
        waiting = [table for table in waiting if table not in found]
        if not ready:
            break
    return {table: found.get(table, []) for table in (*foreign_keys, unit_table)}


def joins_of(path: tuple[Hop, ...], unit_column: str) -> tuple[Hop, ...]:
    """`path` without the hops at its end whose child column already holds the unit's key."""
    key = unit_column
    for index in range(len(path) - 1, -1, -1):
        if path[index][3] != key:
            return path[: index + 1]
        key = path[index][1]
    return ()


def find_cycle(foreign_keys: Mapping[str, Mapping[str, tuple[str, str]]]) -> list[str] | None:
    """Tables of one cycle of foreign keys in order, the first repeated at the end; None when there is none."""
    done: set[str] = set()
    for start in foreign_keys:
        trail: list[str] = []
        waiting = [(start, False)]
        while waiting:
            table, leaving = waiting.pop()
            if leaving:
                done.add(trail.pop())
            elif table in trail:
                return [*trail[trail.index(table) :], table]
            elif table not in done:
                trail.append(table)
                waiting.append((table, True))
                waiting += [(parent, False) for parent, _ in foreign_keys.get(table, {}).values()]
    return None
