"""Comments on a separate line before a statement: `-- name: NAME` of its result, `-- weight: NUMBER` in a plan."""

from __future__ import annotations

import re
from fractions import Fraction

from dpsql.errors.exceptions import refuse
from dpsql.privacy.loss import exact_number

_COMMENT = re.compile(r"^[ \t]*--[ \t]*name:[ \t]*(.*?)[ \t\r]*$", re.M)
_WEIGHT = re.compile(r"^[ \t]*--[ \t]*weight:[ \t]*(.*?)[ \t\r]*$", re.M)
_MOST_WEIGHT = 1000
_NAME = re.compile(r"\w[\w-]*", re.ASCII)
_MOST_CHARACTERS = 100


def name_before(text: str, start: int, stop: int) -> str:
    """Return the last name in the comments of `text` from `start` up to `stop`, "" if there is none."""
    return next((comment[1] for comment in reversed(list(_COMMENT.finditer(text, start, stop)))), "")


def weight_before(text: str, start: int, stop: int) -> Fraction:
    """Return the last weight in the comments of `text` from `start` up to `stop`, 1 if there is none. Raises InterfaceError
    batch_weight."""
    written = next((comment[1] for comment in reversed(list(_WEIGHT.finditer(text, start, stop)))), "1")
    try:
        weight = exact_number(written)
    except ValueError:
        weight = Fraction(0)
    if not Fraction(1, _MOST_WEIGHT) <= weight <= _MOST_WEIGHT:
        raise refuse("batch_weight", weight=written, most=_MOST_WEIGHT)
    return weight


def name_problem(name: str) -> str:
    """Return why `name` cannot be the name of a result's file, "" if it can."""
    if len(name) > _MOST_CHARACTERS:
        return f"is longer than {_MOST_CHARACTERS} characters"
    if name.lower() == "run":
        return "is that of the record of the run"
    return "" if _NAME.fullmatch(name) else "has blanks or other characters than letters, digits, _ and -"
