"""Regular expressions of RE2 in PostgreSQL's language, as far as both mean the same and take time linear in the text.

A pattern is read by a grammar that is part of RE2's, and written anew with every character as its number, so that no word of it
has another meaning for the server: literals, sets, `.`, `^`, `$`, groups, alternatives, and repetitions. The server matches such
patterns, which have no back references, with one pass of an automaton. `^` and `$` are the ends of the whole text, and `.` is any
character but a line feed, in both. The number of the automaton's states is bounded, so that the server never finds a pattern too
complex, which it would say only when it meets a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable

MOST_STATES = 400
"""The most characters of a pattern, with repeated ones counted as often as they repeat."""
_MOST_REPEATS = 255
_MOST_NESTED = 50
_SETS = {"d": "0-9", "w": "0-9A-Za-z_", "s": "\t\n\f\r "}
_CONTROLS = {"t": "\t", "n": "\n", "f": "\f", "r": "\r", "v": "\v"}
_REPEAT = re.compile(r"([*+?]|\{([0-9]{1,3})(?:(,)([0-9]{1,3})?)?\})\??")


class NotTheSame(Exception):
    """The pattern has a part that is not in the common language, or is too long."""


def in_postgresql(pattern: str) -> str:
    """Return an RE2 pattern as PostgreSQL writes it. Raises NotTheSame."""
    reader = _Reader(pattern)
    text, states = reader.alternatives()
    if reader.position < len(pattern) or states > MOST_STATES:
        raise NotTheSame
    return text


def _number(character: str) -> str:
    return f"\\U{ord(character):08x}"


class _Reader:
    """Reads a pattern from left to right; each method returns a part in PostgreSQL's language and the number of its states."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.position, self.nested = pattern, 0, 0

    def _next(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _take(self) -> str:
        character = self._next()
        if not character:
            raise NotTheSame
        self.position += 1
        return character

    def alternatives(self) -> tuple[str, int]:
        branches = [self._branch()]
        while self._next() == "|":
            self._take()
            branches.append(self._branch())
        return f"(?:{'|'.join(text for text, _ in branches)})", sum(states for _, states in branches)

    def _branch(self) -> tuple[str, int]:
        parts = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._repeated())
        if not parts:
            raise NotTheSame
        return "".join(text for text, _ in parts), sum(states for _, states in parts)

    def _repeated(self) -> tuple[str, int]:
        if self._next() in ("^", "$"):
            return {"^": r"\A", "$": r"\Z"}[self._take()], 1
        text, states = self._atom()
        repeat = _REPEAT.match(self.pattern, self.position)
        if repeat is None:
            return text, states
        self.position = repeat.end()
        if _REPEAT.match(self.pattern, self.position):
            raise NotTheSame
        word, least, comma, most = repeat.groups()
        if least is None:
            return f"(?:{text}){word}", states + 1
        numbers = [int(number) for number in (least, most) if number]
        if max(numbers) > _MOST_REPEATS or numbers != sorted(numbers):
            raise NotTheSame
        return f"(?:{text}){{{least}{comma or ''}{most or ''}}}", states * (max(numbers) + 1)

    def _atom(self) -> tuple[str, int]:
        character = self._take()
        if character == "(":
            if self._next() == "?" and self.pattern[self.position : self.position + 2] != "?:":
                raise NotTheSame
            self.position += 2 * (self._next() == "?")
            self.nested += 1
            if self.nested > _MOST_NESTED:
                raise NotTheSame
            inside = self.alternatives()
            self.nested -= 1
            if self._take() != ")":
                raise NotTheSame
            return inside
        if character == "[":
            return self._set(), 1
        if character == ".":
            return f"[^{_number(chr(10))}]", 1
        if character == "\\":
            return self._escape(lambda ranges: f"[{ranges}]"), 1
        if character in "*+?{}])|^$":
            raise NotTheSame
        return _number(character), 1

    def _escape(self, as_set: Callable[[str], str]) -> str:
        character = self._take()
        if character in _SETS:
            ranges = re.sub(r"[^-]", lambda match: _number(match[0]), _SETS[character])
            return as_set(ranges)
        if character in _CONTROLS:
            return _number(_CONTROLS[character])
        if character.isascii() and not character.isalnum() and character.isprintable():
            return _number(character)
        raise NotTheSame

    def _set(self) -> str:
        inverted = "^" * (self._next() == "^")
        self.position += len(inverted)
        items: list[str] = []
        while self._next() != "]" or not items:
            items.append(self._item(first=not items))
        self._take()
        return f"[{inverted}{''.join(items)}]"

    def _item(self, first: bool) -> str:
        low = self._member(first)
        if self._next() != "-" or self.pattern[self.position + 1 : self.position + 2] == "]":
            return low
        self._take()
        high = self._member(first=False)
        if len(low) != len(high) or len(low) != len(_number("a")) or low > high:
            raise NotTheSame
        return f"{low}-{high}"

    def _member(self, first: bool) -> str:
        character = self._take()
        if character == "\\":
            return self._escape(lambda ranges: ranges)
        if character in "[]" or (character == "-" and not first and self._next() != "]"):
            raise NotTheSame
        return _number(character)
