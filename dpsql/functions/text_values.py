"""Meaning of text functions in Python, value by value."""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import dropwhile

MOST_TEXT = 10_000
"""Concatenated and replaced texts are cut at this length: doubled repeatedly, one unit's text could fill the memory."""


def like(text: str, pattern: str) -> bool:
    """Return whether `text` is LIKE `pattern`, without an escape character: % is any text, _ any character. For any pattern, the
    time is linear in each of the two."""
    position = pattern_position = 0
    star, retry = -1, 0
    while position < len(text):
        if pattern_position < len(pattern) and pattern[pattern_position] == "%":
            star, retry, pattern_position = pattern_position, position, pattern_position + 1
        elif pattern_position < len(pattern) and pattern[pattern_position] in ("_", text[position]):
            position, pattern_position = position + 1, pattern_position + 1
        elif star >= 0:
            retry += 1
            position, pattern_position = retry, star + 1
        else:
            return False
    return not pattern[pattern_position:].strip("%")


def lower(text: str) -> str:
    """Return the text in lower case, character by character as the engine does: the length stays the same, and neighbours have
    no influence."""
    return "".join("i" if c == "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}" else c.lower() for c in text)


def upper(text: str) -> str:
    """Return the text in upper case, character by character as in `lower`; the sharp s becomes a capital sharp s."""

    def capital(character: str) -> str:
        if character == "\N{LATIN SMALL LETTER SHARP S}":
            return "\N{LATIN CAPITAL LETTER SHARP S}"
        single_characters = [cased for cased in (character.upper(), character.title()) if len(cased) == 1]
        return single_characters[0] if single_characters else character

    return "".join(map(capital, text))


@cache
def case_pairs(word: str) -> tuple[str, str]:
    """Return every letter that `word` (lower, upper) changes, and the letters that they become."""
    function = {"lower": lower, "upper": upper}[word]
    letters = [c for c in map(chr, range(0x110000)) if not 0xD800 <= ord(c) < 0xE000 and function(c) != c]
    return "".join(letters), "".join(map(function, letters))


def _blank(character: str) -> bool:
    return unicodedata.category(character) == "Zs"


def left_trim(text: str) -> str:
    """Return the text without blanks at its start."""
    return "".join(dropwhile(_blank, text))


def right_trim(text: str) -> str:
    """Return the text without blanks at its end."""
    return left_trim(text[::-1])[::-1]


def trimmed(text: str) -> str:
    """Return the text without blanks at both ends."""
    return right_trim(left_trim(text))


def replaced_text(text: str, old: str, new: str) -> str:
    """Return the first `MOST_TEXT` characters with every `old` replaced by `new`, cut to `MOST_TEXT` again; an empty `old` never
    occurs."""
    text = text[:MOST_TEXT]
    return text.replace(old, new)[:MOST_TEXT] if old else text


def split_part(text: str, separator: str, number: int) -> str:
    """Return the part between separators with this number (from 1); empty if there is none."""
    parts = text.split(separator)
    return parts[number - 1] if number <= len(parts) else ""
