"""Names of results: `-- name: NAME` on a line of its own before a statement."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"^[ \t]*--[ \t]*name:[ \t]*(.*?)[ \t\r]*$", re.M)
_NAME = re.compile(r"\w[\w-]*", re.ASCII)
_MOST_CHARACTERS = 100


def name_before(text: str, start: int, stop: int) -> str:
    """Return the last name in the comments of `text` from `start` up to `stop`, "" when there is none."""
    return next((comment[1] for comment in reversed(list(_COMMENT.finditer(text, start, stop)))), "")


def name_problem(name: str) -> str:
    """Return what keeps `name` from being the name of a file, "" when nothing does."""
    if len(name) > _MOST_CHARACTERS:
        return f"is longer than {_MOST_CHARACTERS} characters"
    if name.lower() == "run":
        return "is that of the record of the run"
    return "" if _NAME.fullmatch(name) else "has other characters than letters, digits, _ and -"
