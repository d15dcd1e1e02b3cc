"""The paths of foreign keys from tables to the privacy unit, computed only from names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

Hop = tuple[str, str, str, str]
"""A foreign key: (table, column, parent table, parent column)."""

ForeignKeys = Mapping[str, Mapping[str, tuple[str, str]]]
"""The foreign keys of each table: table to column to (parent table, parent column)."""

_FILE = re.compile(r"\.(?:parquet|csv|csv\.gz)\Z", re.ASCII | re.IGNORECASE)


_LAKE = re.compile(r"(delta|iceberg):(?=.)", re.DOTALL)


def lake_table(source: str) -> tuple[str, str] | None:
    """Return the format and the folder of a table of a data lake (`delta:FOLDER`, `iceberg:FOLDER`); None for other sources."""
    begins = _LAKE.match(source)
    return None if begins is None else (begins[1], source[begins.end() :])


@lru_cache(maxsize=1024)
def is_file(source: str) -> bool:
    """Return whether `source` names files (Parquet or CSV, globs allowed; a lake table) instead of a table or a URL."""
    return (_LAKE.match(source) or _FILE.search(source)) is not None and "://" not in source


def is_csv(source: str) -> bool:
    """Return whether `source` names CSV files, compressed by gzip or not."""
    return is_file(source) and lake_table(source) is None and not source.lower().endswith(".parquet")


def within(folder: str | Path, source: str) -> str:
    """Return a source of files with its path taken from `folder`, unless it is absolute."""
    kind, path = lake_table(source) or ("", source)
    return f"{kind}:{Path(folder) / path}" if kind else str(Path(folder) / path)


def links_within(
    links: Mapping[str, tuple[str, str]], columns: Collection[str], visible: Mapping[str, Collection[str]]
) -> dict[str, tuple[str, str]]:
    """Return the links from `columns` to other columns that are `visible` (by table)."""
    return {a: (end, b) for a, (end, b) in links.items() if a in columns and b in visible.get(end, ())}


def paths_to_unit(foreign_keys: ForeignKeys, unit_table: str) -> dict[str, list[tuple[Hop, ...]]]:
    """Return for each table at most two paths to `unit_table` (two are enough to show that they are ambiguous).

    The unit's own table has one empty path; a table that does not reach the unit has none. There must be no cycle
    (`find_cycle`).
    """
    by_table: dict[str, list[tuple[Hop, ...]]] = {}
    for table in TopologicalSorter(_parents(foreign_keys)).static_order():
        paths: list[tuple[Hop, ...]] = []
        for column, (parent, parent_column) in foreign_keys.get(table, {}).items():
            paths += [((table, column, parent, parent_column), *rest) for rest in by_table[parent]]
        by_table[table] = [()] if table == unit_table else paths[:2]
    return by_table


def joins_of(path: tuple[Hop, ...], unit_column: str) -> tuple[Hop, ...]:
    """Return `path` without the hops at its end whose child column already holds the unit's key."""
    key = unit_column
    for index in range(len(path) - 1, -1, -1):
        if path[index][3] != key:
            return path[: index + 1]
        key = path[index][1]
    return ()


def find_cycle(foreign_keys: ForeignKeys) -> list[str] | None:
    """Return the tables of one cycle of foreign keys, each before its parent, the first repeated at the end; None without any."""
    try:
        TopologicalSorter(_parents(foreign_keys)).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][::-1]
        return cycle
    return None


def _parents(foreign_keys: ForeignKeys) -> dict[str, list[str]]:
    return {table: [parent for parent, _ in keys.values()] for table, keys in foreign_keys.items()}
