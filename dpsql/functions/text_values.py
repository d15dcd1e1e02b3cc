"""What functions of texts mean, value by value, in Python."""

from __future__ import annotations

import unicodedata
from itertools import dropwhile

MOST_TEXT = 10_000
"""Concatenated and replaced texts are cut here: doubled again and again, a person's text could fill the memory."""


def like(text: str, pattern: str) -> bool:
    """LIKE without an escape character: % is any text, _ any character. Linear in each, whatever the pattern."""
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
    """Character by character (the engine's way): no text changes its length, no letter looks at its neighbours."""
    return "".join("i" if c == "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}" else c.lower() for c in text)


def upper(text: str) -> str:
    """Character by character, as `lower`; the sharp s has a capital of its own."""

    def capital(character: str) -> str:
        if character == "\N{LATIN SMALL LETTER SHARP S}":
            return "\N{LATIN CAPITAL LETTER SHARP S}"
        single_characters = [cased for cased in (character.upper(), character.title()) if len(cased) == 1]
        return single_characters[0] if single_characters else character

    return "".join(map(capital, text))


def _blank(character: str) -> bool:
    return unicodedata.category(character) == "Zs"


def left_trim(text: str) -> str:
    """Without blanks at its start."""
    return "".join(dropwhile(_blank, text))


def right_trim(text: str) -> str:
    """Without blanks at its end."""
    return left_trim(text[::-1])[::-1]


def trimmed(text: str) -> str:
    """Without blanks at both ends."""
    return right_trim(left_trim(text))


def replaced_text(text: str, old: str, new: str) -> str:
    """Return every `old` in the first `MOST_TEXT` characters as `new`; an empty `old` is nowhere."""
    text = text[:MOST_TEXT]
    return text.replace(old, new)[:MOST_TEXT] if old else text


def split_part(text: str, separator: str, number: int) -> str:
    """Return the part of that number, from 1, between separators; nothing where there is none."""
    parts = text.split(separator)
    return parts[number - 1] if number <= len(parts) else ""
