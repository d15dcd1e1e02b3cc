"""Queries for an engine, and where its tables and prepared views are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

UNIT_ID = "#id"
"""Name of the hidden column of a prepared view that stands for the unit's key where units are only counted."""


@dataclass(frozen=True)
class EngineQuery:
    """Text that we generated from our own plan. Result columns: `keys` in order, then `terms` (integers, never NULL).

    `parameters`: what $1, $2, ... of the text stand for (int, float, str, date or datetime).
    `released`: results of the question (pyarrow.Table by name) that are read beside the source.
    `unchanged`: (table, identity) whose rows must have been those of `identity` from before the query to after it; an
    engine that cannot say so gives no answer.
    """

    sql: str
    keys: tuple[str, ...]
    terms: tuple[str, ...]
    unchanged: tuple[tuple[str, str], ...] = ()
    released: Mapping[str, Any] = field(default_factory=dict)
    parameters: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Source:
    """Where a policy's table is: `sql` is the qualified name or scan of the engine, `types` its columns' types.

    `reader` names what reads files, where several could: one value may be read differently by two of them.
    """

    sql: str
    types: dict[str, str]
    reader: str = ""


@dataclass(frozen=True)
class View:
    """How the bounded view of a protected table is read at this moment.

    `key`: secret of the order in which rows are kept, fixed for the table's data version. `sql`: the prepared view
    (columns of the policy in its types, the unit's key and `UNIT_ID`), None where a window must make it;
    `count_units`: the function that counts units by `UNIT_ID`. `identity`: what the source must still be after the
    query where the source itself is the view, else "".
    """

    key: str
    sql: str | None = None
    count_units: str = ""
    identity: str = ""


@dataclass(frozen=True)
class Identity:
    """Which rows a table's source holds: `text` differs when they do; `changed_seconds`: time of the last change.

    `place` says what is read, by whom, without which version of it: equal for two versions of the rows of one place.
    `files`: the path of each file with a text that differs when the file is another one or was changed; `text` are these.
    """

    text: str
    changed_seconds: float
    place: str = ""
    files: Mapping[str, str] = field(default_factory=dict, compare=False)
