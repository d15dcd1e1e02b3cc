"""Queries that a person keeps by name, in a file that only they can read."""

from __future__ import annotations

import json
import os
from pathlib import Path

from dpsql.errors.exceptions import Error, refuse
from dpsql.errors.suggestions import did_you_mean
from dpsql.frontends.files import writing
from dpsql.media.text import json_text
from dpsql.storage.directories import state_directory


def all_queries() -> dict[str, str]:
    """Return texts by name; an empty mapping if there is no file, or if it holds something else."""
    try:
        content = json.loads(_place().read_text(encoding="utf-8"))
    except (OSError, ValueError, Error):
        return {}
    if not isinstance(content, dict):
        return {}
    return {name: text for name, text in content.items() if isinstance(text, str)}


def query(name: str) -> str:
    """Return the query called `name`. Raises InterfaceError query_unknown."""
    queries = all_queries()
    if name not in queries:
        hint = f"\\n lists the queries that are kept, \\ns NAME SQL keeps one{did_you_mean(name, queries)}"
        raise refuse("query_unknown", name=name, hint=hint)
    return queries[name]


def keep(name: str, text: str) -> None:
    """Keep `text` under `name`, in place of an earlier text of that name. Raises Fault file_write."""
    _write(all_queries() | {name: text})


def forget(name: str) -> None:
    """Forget the query called `name`. Raises InterfaceError query_unknown, Fault file_write."""
    query(name)
    _write({other: text for other, text in all_queries().items() if other != name})


def _place() -> Path:
    return state_directory() / "named-queries.json"


def _write(queries: dict[str, str]) -> None:
    """Write the file under a temporary name, then rename it: a killed process leaves the old file or the new one."""
    place = _place()
    with writing(place):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = place.with_suffix(f".{os.getpid()}")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(json_text(queries, indent=1))
        new.replace(place)
