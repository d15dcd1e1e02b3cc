"""Hints for an unknown name: the nearest known name, or the list of known names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_LISTED = 12
MOST_COMPARED = 80
"""Number of characters of an unknown name that are compared, so that the length of the name cannot determine the time of the
answer."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name in `names` that is nearest to `name` without regard to case, None if no name is near."""
    folded = {candidate.lower(): candidate for candidate in sorted(set(names), reverse=True)}
    close = difflib.get_close_matches(name.lower()[:MOST_COMPARED], folded, n=1)
    return folded[close[0]] if close else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the end of a sentence, "; did you mean X?", or "" if no name is near."""
    near = nearest(name, names)
    return "" if near is None else f"; did you mean {near}?"


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return a complete hint: "did you mean X?", else the first `MOST_LISTED` names, or "" if there are none."""
    listed = sorted(set(names))
    near = nearest(name, listed)
    if near is not None:
        return f"did you mean {near}?"
    examples = ", ".join(listed[:MOST_LISTED]) + (", ..." if len(listed) > MOST_LISTED else "")
    return f"known here: {examples}" if listed else ""
