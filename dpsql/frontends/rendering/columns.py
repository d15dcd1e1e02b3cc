"""The columns of a table in brief, for the prompt's \\d."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from dpsql.frontends.rendering.tables import draw
from dpsql.media.text import terminal

_MOST_CHARACTERS = 36


def column_summary(columns: Sequence[Mapping[str, Any]], encoding: str) -> str:
    """Return the rows of DESCRIBE as a table of four columns that fits most terminals; long cells are cut.

    `encoding` is that of the terminal, which decides how lines are drawn.
    """
    cells = [
        [str(column["column"]) for column in columns],
        [f"{column['type']}{'' if column['nullable'] else ' not null'}" for column in columns],
        [_cut(_values(column)) for column in columns],
        [_cut("; ".join(filter(None, (column["keys"], column["description"])))) for column in columns],
    ]
    drawn = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace", newline="\n")
    draw(["column", "type", "values", "what it is"], cells, [False] * 4, drawn)
    drawn.seek(0)
    return drawn.read()


def _values(column: Mapping[str, Any]) -> str:
    if column["domain"] is not None:
        return str(column["domain"])
    return "" if column["lower"] is None else f"{column['lower']} to {column['upper']}"


def _cut(text: str) -> str:
    whole = terminal(text)
    return whole if len(whole) <= _MOST_CHARACTERS else whole[: _MOST_CHARACTERS - 3] + "..."
