"""PostgreSQL's regular expressions: the leftmost match, and of those the longest, or the shortest by its first quantifier.

The positions between the characters of a text are the bits of a whole number. A part of an expression takes all positions where
it may begin to all where it then ends in a few operations on such numbers, so nothing is tried again and again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire.constants import bounds
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said, sign_of

MOST_FORM, MOST_SIZE = 2_000, 10_000_000
"""Limits on the length of a regular expression, and on this times the length of the text."""
_MOST_DEPTH, _MOST_REPEATED = 40, 255


@dataclass(frozen=True, eq=False, slots=True)
class Expression:
    """A part of an expression: characters, a position, an optional look, parts in a row, alternatives, a repetition or a group.

    `prefers` is 1 for the longest match, -1 for the shortest and 0 for neither; `is_plain`: nothing in it is looked up later.
    """

    kind: str
    parts: tuple[Expression, ...] = ()
    value: Any = None
    most: int = -1
    prefers: int = 0
    is_plain: bool = True


def _wrong(words: str) -> Error:
    return said("2201B", f"invalid regular expression: {words}")


# --- reading ----------------------------------------------------------------------------------------------------------

_WORD, _SPACE, _DIGIT = ("word", False), ("space", False), ("digit", False)
_SHORT = {"w": _WORD, "s": _SPACE, "d": _DIGIT, "W": ("word", True), "S": ("space", True), "D": ("digit", True)}
_CLASSES = {
    "alpha", "digit", "alnum", "upper", "lower", "space", "punct", "print", "graph", "cntrl", "xdigit", "blank", "word",
}  # fmt: skip
_SIGNS = {"a": "\a", "b": "\b", "B": "\\", "e": "\033", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_POSITIONS = {"A": "start", "Z": "end", "m": "word starts", "M": "word ends", "y": "edge", "Y": "no edge"}
_CODE = re.compile(r"x([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(0[0-7]{0,2}|[1-7][0-7]{1,2})")
_QUANTIFIER = re.compile(r"([*+?])(\??)|\{(?=\d)(\d+)(?:(,)(\d*))?(\}?)(\??)")
_LOOKS = {"?=": (False, True), "?!": (False, False), "?<=": (True, True), "?<!": (True, False)}


def _count(digits: str) -> int:
    return int(digits.lstrip("0")[:4] or "0")


class _Reader:
    def __init__(self, form: str, flags: str) -> None:
        self.form, self.index, self.depth, self.groups, self.looks = form, 0, 0, 0, 0
        if form.startswith("***"):
            if form[3:4] not in (":", "="):
                raise _wrong("quantifier operand invalid")
            self.index, flags = 4, flags + "q" * (form[3] == "=")
        options = re.compile(r"\(\?([a-zA-Z]+)\)").match(form, self.index)
        if options is not None and "q" not in flags:
            if set(options[1]) - set("bceimnpqstwx"):
                raise _wrong("invalid embedded option")
            self.index, flags = options.end(), flags + options[1]
        if set(flags) & set("xbe") or ("q" in flags and set(flags) & set("nmpw")):
            raise Elsewhere
        self.no_case = "i" in [sign for sign in flags if sign in "ic"][-1:]
        lines = [sign for sign in flags if sign in "nmspw"][-1:]
        self.dot_ends, self.edges = (bool(set(lines) & set(signs)) for signs in ("nmp", "nmw"))
        self.is_literal = "q" in flags

    def expression(self) -> tuple[Expression, int]:
        if self.is_literal:
            signs = tuple(self.characters([(sign, sign)]) for sign in self.form[self.index :])
            return Expression("row", signs), 0
        node = self.alternatives()
        if self.index < len(self.form):
            raise _wrong("parentheses () not balanced")
        return node, self.groups

    def take(self, sign: str) -> bool:
        taken = self.form.startswith(sign, self.index)
        self.index += len(sign) * taken
        return taken

    def alternatives(self) -> Expression:
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise Elsewhere
        branches = [self.branch()]
        while self.take("|"):
            branches.append(self.branch())
        self.depth -= 1
        if len(branches) == 1:
            return branches[0]
        return Expression("or", tuple(branches), prefers=1, is_plain=all(branch.is_plain for branch in branches))

    def branch(self) -> Expression:
        """Read parts in a row. Plain ones, which prefer the same, are one part: together they are the longest or the shortest."""
        pieces, chunk, prefers = list[Expression](), list[Expression](), 0

        def end_chunk() -> None:
            if chunk:
                pieces.append(Expression("row", tuple(chunk), prefers=prefers))
                chunk.clear()

        while self.index < len(self.form) and self.form[self.index] not in "|)":
            node, leaning = self.quantified()
            if node.kind == "nothing":
                continue
            if node.is_plain and not (leaning and prefers and leaning != prefers):
                chunk.append(node)
                prefers = prefers or leaning
            else:
                end_chunk()
                pieces.append(node)
                prefers = 0
        end_chunk()
        preferred = next((piece.prefers for piece in pieces if piece.prefers), 0)
        return Expression(
            "row", tuple(pieces), prefers=preferred, is_plain=all(p.is_plain for p in pieces) and len(pieces) < 2
        )

    def quantified(self) -> tuple[Expression, int]:
        """Read one part and its quantifier; return it with what it prefers."""
        node, may_repeat = self.atom()
        match = _QUANTIFIER.match(self.form, self.index)
        if match is None or not may_repeat:
            return node, node.prefers
        self.index = match.end()
        least, most, prefers = 0, -1, -1 if match[2] or match[7] else 1
        if match[1]:
            least, most = int(match[1] == "+"), 1 if match[1] == "?" else -1
        elif not match[6]:
            ended = self.index == len(self.form)
            raise _wrong("braces {} not balanced" if ended else "invalid repetition count(s)")
        else:
            least = _count(match[3])
            most = least if match[4] is None else _count(match[5]) if match[5] else -1
            prefers = prefers if match[4] else 0
            if max(least, most) > _MOST_REPEATED or 0 <= most < least:
                raise _wrong("invalid repetition count(s)")
        if most == 0:
            return Expression("nothing"), 0
        leaning = prefers or node.prefers
        is_plain = node.is_plain and not (prefers and node.prefers and prefers != node.prefers)
        return Expression("repeat", (node,), least, most, leaning, is_plain), leaning

    def atom(self) -> tuple[Expression, bool]:
        """Read one part; also return whether a quantifier may follow it."""
        sign = self.form[self.index]
        self.index += 1
        if sign == "(":
            return self.group()
        if sign in "^$":
            name = ("line " if self.edges else "") + ("start" if sign == "^" else "end")
            return Expression("position", value=name), False
        if sign == "[":
            word = re.compile(r"\[:([<>]):\]\]").match(self.form, self.index)
            if word is not None:
                self.index = word.end()
                return Expression("position", value="word starts" if word[1] == "<" else "word ends"), False
            return self.bracket(), True
        if sign == ".":
            return self.characters([], True, self.dot_ends), True
        if sign in "*+?" or (sign == "{" and self.form[self.index : self.index + 1].isdigit()):
            raise _wrong("quantifier operand invalid")
        if sign != "\\":
            return self.characters([(sign, sign)]), True
        escaped = self.escape()
        if isinstance(escaped, str) and len(escaped) > 1:
            return Expression("position", value=escaped), False
        return self.characters([(escaped, escaped) if isinstance(escaped, str) else escaped]), True

    def group(self) -> tuple[Expression, bool]:
        for sign, (behind, is_positive) in _LOOKS.items():
            if self.take(sign):
                self.looks += 1
                inner = self.closed()
                self.looks -= 1
                return Expression("look", (inner,), (behind, is_positive)), False
        if self.take("?#"):
            raise Elsewhere
        if self.take("?:") or self.looks:
            return self.closed(), True
        if self.take("?"):
            raise _wrong("quantifier operand invalid")
        self.groups += 1
        number = self.groups
        inner = self.closed()
        return Expression("group", (inner,), number, prefers=inner.prefers, is_plain=False), True

    def closed(self) -> Expression:
        node = self.alternatives()
        if not self.take(")"):
            raise _wrong("parentheses () not balanced")
        return node

    def escape(self) -> str | tuple[str, bool]:
        """Return the sign of an escape, the name of a position, or a class."""
        sign = self.form[self.index : self.index + 1]
        if sign in ("", "c"):
            raise Elsewhere if sign else _wrong("invalid escape \\ sequence")
        code = _CODE.match(self.form, self.index)
        if code is not None and (code[4] is None or code[4][0] == "0"):
            self.index = code.end()
            number = int(code[4], 8) if code[4] else int((code[1] or code[2] or code[3]).lstrip("0")[:9] or "0", 16)
            return sign_of(number)
        if sign.isdigit():
            following = self.form[self.index + 1 : self.index + 2]
            if following.isdigit() or int(sign) <= self.groups:
                raise said("0A000", "back references in regular expressions are not supported")
            raise _wrong("invalid backreference number")
        self.index += 1
        if sign in _SHORT:
            return _SHORT[sign]
        if sign in _SIGNS or sign in _POSITIONS:
            return _SIGNS.get(sign) or _POSITIONS[sign]
        if sign.isalnum():
            raise _wrong("invalid escape \\ sequence")
        return sign

    def bracket(self) -> Expression:
        items, negated = list[tuple[str, Any]](), self.take("^")
        first = True
        while first or not self.take("]"):
            low = self.item(first)
            first = False
            if isinstance(low, tuple):
                items.append(low)
            elif self.form[self.index : self.index + 1] == "-" and self.form[self.index + 1 : self.index + 2] != "]":
                self.index += 1
                high = self.item(False, True)
                if not isinstance(high, str) or high < low:
                    raise _wrong("invalid character range")
                items.append((low, high))
            else:
                items.append((low, low))
            if isinstance(low, tuple) or items[-1][0] != items[-1][1]:
                following = self.form[self.index : self.index + 2]
                if following[:1] == "-" and following != "-]":
                    raise _wrong("invalid character range")
        return self.characters(items, negated, negated and self.dot_ends)

    def item(self, first: bool, ends: bool = False) -> str | tuple[str, bool]:
        """Return a sign or a class of a set."""
        named = re.compile(r"\[([:.=])(.*?)\1\]", re.DOTALL).match(self.form, self.index)
        if named is not None:
            self.index = named.end()
            if named[1] == ":":
                if named[2] not in _CLASSES:
                    raise _wrong("invalid character class")
                return named[2], False
            if len(named[2]) != 1:
                raise Elsewhere
            return named[2]
        if self.index >= len(self.form):
            raise _wrong("brackets [] not balanced")
        sign = self.form[self.index]
        self.index += 1
        if sign == "[" and self.form[self.index : self.index + 1] in (":", ".", "="):
            raise _wrong("brackets [] not balanced")
        if sign == "-" and not first and not ends and self.form[self.index : self.index + 1] != "]":
            raise _wrong("invalid character range")
        if sign != "\\":
            return sign
        escaped = self.escape()
        if isinstance(escaped, str) and len(escaped) > 1:
            raise _wrong("invalid escape \\ sequence")
        return escaped

    def characters(self, items: list[Any], negated: bool = False, without_ends: bool = False) -> Expression:
        return Expression("characters", value=(tuple(items), negated, without_ends, self.no_case))


@lru_cache(16)
def _read(form: str, flags: str) -> tuple[Expression, int]:
    return _Reader(form, flags).expression()


# --- matching ---------------------------------------------------------------------------------------------------------

_TESTS: dict[str, Callable[[str], bool]] = {
    "alpha": str.isalpha, "digit": lambda c: "0" <= c <= "9", "alnum": str.isalnum, "upper": str.isupper, "lower": str.islower,
    "space": lambda c: c in " \t\n\v\f\r", "blank": lambda c: c in " \t", "word": lambda c: c == "_" or c.isalnum(),
    "cntrl": lambda c: c < " " or c == "\x7f", "print": lambda c: " " <= c <= "~", "graph": lambda c: "!" <= c <= "~",
    "punct": lambda c: "!" <= c <= "~" and not c.isalnum(), "xdigit": lambda c: c in "0123456789abcdefABCDEF",
}  # fmt: skip


def _in_class(sign: str, name: str) -> bool:
    if sign > "\x7f" and (name not in ("digit", "xdigit")) and unicodedata.category(sign) not in ("Ll", "Lu", "Lo"):
        raise Elsewhere
    if sign > "\x7f" and name in ("print", "graph"):
        return True
    return _TESTS[name](sign)


def _is_in(sign: str, items: Any, no_case: bool) -> bool:
    bounds.step()
    for low, high in items:
        if isinstance(high, bool):
            if _in_class(sign, "alpha" if no_case and low in ("upper", "lower") else low) != high:
                return True
        elif low <= sign <= high or (
            no_case and any(len(c) == 1 and low <= c <= high for c in (sign.lower(), sign.upper()))
        ):
            return True
    return False


def check_size(form: str, text: str) -> None:
    """Raise Elsewhere for an expression that is not matched in a text."""
    if len(form) > MOST_FORM or len(form) * len(text) > MOST_SIZE:
        raise Elsewhere


class Matcher:
    """Matches an expression in one text. Bit k of a number is the position before its character k, or behind as many from the end
    if it is read backwards."""

    def __init__(self, form: str, text: str, flags: str = "") -> None:
        check_size(form, text)
        self.text, self.size, self.masks = text, len(text), dict[Any, int]()
        self.node, self.groups = _read(form, flags)
        self.everywhere = (2 << self.size) - 1
        self.signs = set(text)

    def starts(self) -> int:
        """Return all positions at which a match starts."""
        return self.mirrored(self.ends(self.node, self.everywhere, True))

    def match(self, start: int) -> tuple[int, int, list[tuple[int, int] | None]]:
        """Return the match that starts there: its start and end, and its groups."""
        ends = self.ends(self.node, 1 << start, False)
        end = self.chosen(ends, self.node.prefers)
        groups = list[tuple[int, int] | None]([None] * self.groups)
        for number, low, high in self.parts(self.node, start, end):
            groups[number - 1] = low, high
        return start, end, groups

    def matches(self, start: int = 0) -> Iterator[tuple[int, int, list[tuple[int, int] | None]]]:
        """Yield the matches from a position on, one behind another."""
        rest = self.starts() >> start << start
        while rest:
            match = self.match((rest & -rest).bit_length() - 1)
            yield match
            begin = max(match[1], match[0] + 1)
            rest = rest >> begin << begin

    def is_whole(self) -> bool:
        """Return whether the whole text is a match."""
        return bool(self.ends(self.node, 1, False) >> self.size)

    @staticmethod
    def chosen(positions: int, prefers: int) -> int:
        return (positions & -positions if prefers < 0 else positions).bit_length() - 1

    def mirrored(self, positions: int) -> int:
        return int(f"{positions:0{self.size + 1}b}"[::-1], 2)

    def mask(self, key: Any, test: Callable[[str], bool], back: bool) -> int:
        """Return the positions before the characters of a kind; read backwards, those behind them."""
        if (key, back) not in self.masks:
            table = {ord(sign): "01"[test(sign)] for sign in self.signs}
            bits = self.text.translate(table)
            self.masks[key, False], self.masks[key, True] = int("0" + bits[::-1], 2), int("0" + bits, 2)
        return self.masks[key, back]

    def ends(self, node: Expression, starts: int, back: bool) -> int:
        """Return the positions at which a part ends that starts at one of these."""
        bounds.step()
        if not starts:
            return 0
        kind, parts = node.kind, node.parts
        if kind == "characters":
            return (starts & self.characters(node, back)) << 1
        if kind == "row":
            for part in reversed(parts) if back else parts:
                starts = self.ends(part, starts, back)
            return starts
        if kind == "or":
            return reduce(lambda positions, part: positions | self.ends(part, starts, back), parts, 0)
        if kind == "group":
            return self.ends(parts[0], starts, back)
        if kind == "repeat":
            return self.repeated(parts[0], node.value, node.most, starts, back)
        if kind == "nothing":
            return starts
        positions = self.position(node) if kind == "position" else self.look(node)
        return starts & (self.mirrored(positions) if back else positions)

    def characters(self, node: Expression, back: bool) -> int:
        items, negated, without_ends, no_case = node.value

        def is_meant(sign: str) -> bool:
            return _is_in(sign, items, no_case) != negated and not (without_ends and sign == "\n")

        return self.mask(node.value, is_meant, back)

    def repeated(self, part: Expression, least: int, most: int, starts: int, back: bool) -> int:
        for _ in range(least):
            before, starts = starts, self.ends(part, starts, back)
            if starts in (0, before):
                break
        while part.kind in ("group", "row") and len(part.parts) == 1:
            part = part.parts[0]
        if part.kind == "repeat" and most < 0 and part.value == 0 and part.most < 0:
            return self.ends(part, starts, back)  # again and again is no more than this
        if most < 0 and part.kind == "characters" and starts:
            mask = self.characters(part, back)
            return (((starts & mask) + mask) ^ mask) | starts  # a carry runs through all characters of the kind
        gathered, new, left = starts, starts, most - least
        while new and left:
            new = self.ends(part, new, back) & ~gathered
            gathered |= new
            left -= 1
        return gathered

    def position(self, node: Expression) -> int:
        key = node.value
        if key not in self.masks:
            first, last = 1, 1 << self.size
            is_of_words = not key.endswith(("start", "end"))
            inside = self.mask(("word",), lambda sign: _in_class(sign, "word"), False) if is_of_words else 0
            behind = inside << 1
            ends = self.mask(("line",), "\n".__eq__, False)
            self.masks[key] = self.everywhere & {
                "start": first, "end": last, "line start": first | ends << 1, "line end": last | ends,
                "word starts": inside & ~behind, "word ends": behind & ~inside, "edge": inside ^ behind,
                "no edge": ~(inside ^ behind),
            }[key]  # fmt: skip
        return self.masks[key]

    def look(self, node: Expression) -> int:
        if node not in self.masks:
            behind, is_positive = node.value
            positions = self.ends(node.parts[0], self.everywhere, not behind)
            positions = positions if behind else self.mirrored(positions)
            self.masks[node] = positions if is_positive else self.everywhere & ~positions
        return self.masks[node]

    def parts(self, node: Expression, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """Yield the groups of a part that matches from one position to another, each with its number, start and end."""
        if node.is_plain:
            return
        if node.kind == "group":
            yield node.value, low, high
            yield from self.parts(node.parts[0], low, high)
        elif node.kind == "or":
            part = next(p for p in node.parts if self.ends(p, 1 << low, False) >> high & 1)
            yield from self.parts(part, low, high)
        elif node.kind == "row":
            yield from self.parts_in_row(node.parts, low, high)
        elif node.kind == "repeat" and node.value > 0:  # the groups are those of the last time
            part = node.parts[0]
            most = node.most - 1 if node.most > 0 else -1
            before = (
                Expression("repeat", (part,), node.value - 1, most, node.prefers) if most else Expression("nothing")
            )
            yield from self.parts_in_row((before, part), low, high)
        elif node.kind == "repeat" and low < high:
            yield from self.parts_repeated(node, low, high)
        elif (
            node.kind == "repeat"
            and node.parts[0].prefers >= 0
            and self.ends(node.parts[0], 1 << low, False) >> low & 1
        ):
            yield from self.parts(node.parts[0], low, low)  # once, for no text

    def parts_in_row(self, pieces: tuple[Expression, ...], low: int, high: int) -> Iterator[tuple[int, int, int]]:
        positions = [1 << self.size - high]
        for piece in reversed(pieces):
            positions.append(self.ends(piece, positions[-1], True))
        for piece, rest in zip(pieces, positions[-2::-1], strict=True):
            end = self.chosen(self.ends(piece, 1 << low, False) & self.mirrored(rest), piece.prefers)
            yield from self.parts(piece, low, end)
            low = end

    def parts_repeated(self, node: Expression, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        part, left, rest = node.parts[0], node.most, 0
        while True:
            left -= 1
            if not rest or node.most > 0:
                rest = self.mirrored(self.repeated(part, 0, max(left, -1), 1 << self.size - high, True))
            ends = self.ends(part, 1 << low, False) & rest & ~(1 << low)
            end = self.chosen(ends, part.prefers)
            if end == high:
                yield from self.parts(part, low, high)
                return
            low = end
