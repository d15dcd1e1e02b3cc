"""Regular expressions with literal pattern: RE2's, which runs in time linear in the text whatever the pattern.

DuckDB and Arrow both hold RE2, so Arrow says before data is touched whether the engine will read a pattern, and computes
here what the engine computes there. `\\B` and `\\C` may match inside a character: what is put there is no text any more, the
engine raises, and only for people who have such characters. They are refused (and `\\Q`, behind which they could hide).
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

MOST_PATTERN = 200
_INSIDE_CHARACTERS = re.compile(r"(?:[^\\]|\\[^BCQ])*\\[BCQ]", re.DOTALL)


class WrongPattern(Exception):
    """Why a pattern or a replacement is not read."""


def checked(pattern: str) -> str:
    """Return the pattern. Raises WrongPattern."""
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
    """Raise WrongPattern for a replacement that names a group which the pattern does not have."""
    try:
        replaced("", pattern, replacement, everywhere=False)
    except pa.ArrowInvalid:
        raise WrongPattern(
            r"takes a replacement with \0 to \9 for groups that are there, and \\ for \ itself"
        ) from None


def matches(text: str, pattern: str) -> bool:
    """Return whether the pattern is found anywhere in the text."""
    return bool(pc.match_substring_regex(pa.array([text]), pattern=pattern)[0].as_py())


def replaced(text: str, pattern: str, replacement: str, everywhere: bool) -> str:
    """Return the text with the first match, or all of them, replaced; \\1 is what the first group matched."""
    most = None if everywhere else 1
    replaced_texts = pc.replace_substring_regex(
        pa.array([text]), pattern=pattern, replacement=replacement, max_replacements=most
    )
    return str(replaced_texts[0].as_py())
