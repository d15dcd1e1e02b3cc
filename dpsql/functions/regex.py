"""Regular expressions with a literal pattern, in RE2, which takes time linear in the text for every pattern.

DuckDB and Arrow both contain RE2, so Arrow can check before data is read whether the engine accepts a pattern, and computes
the same here as the engine. `\\B` and `\\C` may match inside a character: a replacement there gives invalid text, and the
engine raises, but only for units that have such characters. So they are refused (and `\\Q`, after which they could hide).
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

MOST_PATTERN = 200
_INSIDE_CHARACTERS = re.compile(r"(?:[^\\]|\\[^BCQ])*\\[BCQ]", re.DOTALL)


class WrongPattern(Exception):
    """A pattern or a replacement is not supported; the message says why."""


def checked(pattern: str) -> str:
    """Return the pattern. Raises WrongPattern if it is not supported."""
    if len(pattern) > MOST_PATTERN:
        raise WrongPattern(f"takes a pattern of at most {MOST_PATTERN} characters")
    if _INSIDE_CHARACTERS.match(pattern):
        raise WrongPattern(r"takes no \B, \C or \Q in its pattern")
    try:
        matches("", pattern)
    except pa.ArrowInvalid:
        raise WrongPattern("takes a regular expression as RE2 reads it") from None
    return pattern


def checked_replacement(pattern: str, replacement: str) -> None:
    """Raise WrongPattern if a replacement names a group that the pattern does not have."""
    try:
        replaced("", pattern, replacement, everywhere=False)
    except pa.ArrowInvalid:
        raise WrongPattern(
            r"takes a replacement with \0 to \9 for groups that are there, and \\ for \ itself"
        ) from None


def matches(text: str, pattern: str) -> bool:
    """Return whether the pattern matches anywhere in the text."""
    return bool(pc.match_substring_regex(pa.array([text]), pattern=pattern)[0].as_py())


def replaced(text: str, pattern: str, replacement: str, everywhere: bool) -> str:
    """Return the text with the first match, or all matches, replaced; \\1 is the match of the first group."""
    most = None if everywhere else 1
    replaced_texts = pc.replace_substring_regex(
        pa.array([text]), pattern=pattern, replacement=replacement, max_replacements=most
    )
    return str(replaced_texts[0].as_py())
