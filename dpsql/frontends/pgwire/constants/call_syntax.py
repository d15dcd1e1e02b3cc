"""The tokens of a statement as they are read, and the calls that PostgreSQL writes with words inside of the brackets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpsql.frontends.pgwire.constants.tokens import RESERVED, Elsewhere, Token, said, tokenize

_UNREAD = {"for", "escape", "returning", "uescape", "tablesample"}
"""Words of PostgreSQL that are not read here."""
BY_WORDS = "pg_catalog."
"""Before the name of a function that is called with words between its arguments: PostgreSQL looks for it there."""


@dataclass(slots=True)
class Node:
    """A piece of an expression: its kind, PostgreSQL's position for it (from 1), a name or value, and what is inside."""

    kind: str
    position: int
    value: Any = None
    items: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class TypeName:
    """A type as it is written. `sizes` are its modifiers, `fields` those of an interval; `parameter`: the number of the value of
    EXECUTE that gets the type."""

    name: str
    position: int
    sizes: tuple[int, ...] = ()
    fields: str = ""
    schema: str = ""
    parameter: int = 0


class TokenReader:
    """The tokens of one statement, and the place that is read."""

    def __init__(self, text: str) -> None:
        self.tokens, self.index, self.depth = tokenize(text), 0, 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def word(self, ahead: int = 0) -> str:
        """Return the word of a token in lower case, "" if it is none."""
        token = self.tokens[min(self.index + ahead, len(self.tokens) - 1)]
        return token.text.lower() if token.kind == "word" else ""

    def signs(self, ahead: int = 0) -> str:
        token = self.tokens[min(self.index + ahead, len(self.tokens) - 1)]
        return token.text if token.kind in ("sign", "operator") else ""

    def take(self, *words: str) -> bool:
        """Take the next tokens if they are these words or signs."""
        if all(expected in (self.word(k), self.signs(k)) for k, expected in enumerate(words)):
            self.index += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        for expected in words:
            if not self.take(expected):
                raise self.problem()

    def problem(self) -> Exception:
        """Return PostgreSQL's error at the present token; what may be a clause that is not read here is answered elsewhere."""
        token = self.token
        if self.word() in _UNREAD or token.kind == "parameter" or token.text == ":":
            return Elsewhere()
        near = "end of input" if token.kind == "end" else f'or near "{token.source}"'
        return said("42601", f"syntax error at {near}", token.start)

    def name(self, any_word: bool = False) -> str:
        token = self.token
        if token.kind not in ("word", "quoted") or (token.kind == "word" and not any_word and self.word() in RESERVED):
            raise self.problem()
        self.index += 1
        return token.text if token.kind == "quoted" else token.text.lower()

    # --- expressions --------------------------------------------------------------------------------------------------


class CallReader(TokenReader):
    """A reader of calls with words between their arguments."""

    def expression(self, least: int = 0) -> Node:
        """Read an expression, as `Parser` does."""
        raise Elsewhere

    def type_name(self) -> TypeName:
        """Read the name of a type, as `Parser` does."""
        raise Elsewhere

    def _json_test(self, left: Node, start: int) -> Node:
        """Read what stands behind IS JSON."""
        kind = next((word for word in ("value", "object", "array", "scalar") if self.take(word)), "value")
        is_unique = self.take("with", "unique")
        if is_unique or self.take("without", "unique"):
            self.take("keys")
        further = [Node("string", start, kind), Node("truth", start, is_unique)]
        return Node("call", start, "is:json", [left, *further])

    def _list(self, close: str) -> list[Node]:
        items = list[Node]()
        if not self.take(close):
            items.append(self.expression())
            while self.take(","):
                items.append(self.expression())
            self.expect(close)
        return items

    # --- primaries ----------------------------------------------------------------------------------------------------

    def _extract(self) -> Node:
        start = self.token.start
        self.expect("extract", "(")
        unit = self.token
        if unit.kind not in ("word", "string"):
            raise self.problem()
        self.index += 1
        self.expect("from")
        value = self.expression()
        self.expect(")")
        return Node("call", start, BY_WORDS + "extract", [Node("string", unit.start, unit.text.lower()), value])

    def _substring(self) -> Node:
        start = self.token.start
        self.expect("substring", "(")
        items = [self.expression()]
        if self.take(","):
            return Node("call", start, "substring", items + self._list(")"))
        if self.take("similar"):
            items.append(self.expression())
            self.expect("escape")
            items.append(self.expression())
        elif self.take("from"):
            items.append(self.expression(7))
            if self.take("for"):
                items.append(self.expression(7))
        elif self.take("for"):
            items += [Node("number", start, "1"), self.expression(7)]
        self.expect(")")
        return Node("call", start, BY_WORDS + "substring", items)

    def _position(self) -> Node:
        start = self.token.start
        self.expect("position", "(")
        first = self.expression(7)
        self.expect("in")
        second = self.expression(7)
        self.expect(")")
        return Node("call", start, BY_WORDS + "position", [second, first])

    def _overlay(self) -> Node:
        start = self.token.start
        self.expect("overlay", "(")
        items = [self.expression()]
        if self.take(","):
            return Node("call", start, "overlay", items + self._list(")"))
        self.expect("placing")
        items.append(self.expression(7))
        self.expect("from")
        items.append(self.expression(7))
        if self.take("for"):
            items.append(self.expression(7))
        self.expect(")")
        return Node("call", start, BY_WORDS + "overlay", items)

    def _trim(self) -> Node:
        start = self.token.start
        self.expect("trim", "(")
        name = BY_WORDS + "btrim"
        for word, function in (("both", "btrim"), ("leading", "ltrim"), ("trailing", "rtrim")):
            if self.take(word):
                name = BY_WORDS + function
        if self.take("from"):
            return Node("call", start, name, self._list(")"))
        items = [self.expression()]
        if self.take("from"):
            return Node("call", start, name, [*self._list(")"), *items])
        if self.take(","):
            return Node("call", start, name, items + self._list(")"))
        self.expect(")")
        return Node("call", start, name, items)

    def _collected(self) -> Node:
        """Read coalesce(...) and the like, which are no functions in PostgreSQL."""
        token = self.token
        self.index += 1
        if not self.take("(") or self.signs() == ")":
            raise self.problem()
        if token.text.lower() != "nullif":
            return Node("coalesce", token.start, token.text.lower(), self._list(")"))
        items = [self.expression()]
        self.expect(",")
        items.append(self.expression())
        self.expect(")")
        return Node("coalesce", token.start, "nullif", items)

    def _normalize(self) -> Node:
        start = self.token.start
        self.expect("normalize", "(")
        items = [self.expression()]
        if self.take(","):
            items.append(Node("string", self.token.start, self.name().upper()))
        self.expect(")")
        return Node("call", start, BY_WORDS + "normalize", items)

    def _normalized(self, left: Node, start: int) -> Node | None:
        """Read IS NORMALIZED behind IS; None for other words."""
        if self.word() != "normalized" and self.word(1) != "normalized":
            return None
        items = [left] if self.word() == "normalized" else [left, Node("string", start, self.name().upper())]
        self.expect("normalized")
        return Node("call", start, "is_normalized", items)

    def _collation_for(self) -> Node:
        start = self.token.start
        self.expect("collation", "for", "(")
        return Node("call", start, "pg_collation_for", self._list(")"))

    def _json_array(self) -> Node:
        """Read json_array(...): its values, and whether NULLs are among them."""
        start, items = self.token.start, list[Node]()
        self.expect("json_array", "(")
        while self.signs() != ")" and self.word() != "returning" and self.word(1) != "on":
            items.append(self.expression())
            if not self.take(","):
                break
        return self._json_end("json_array", start, items, absent=True)

    def _json_object(self) -> Node:
        """Read json_object(...) of keys and values; of other arguments it is a function."""
        start, index, items = self.token.start, self.index, list[Node]()
        self.expect("json_object", "(")
        while self.signs() != ")" and self.word() != "returning" and self.word(1) != "on":
            items.append(self.expression(7))
            if not self.take(":") and not self.take("value"):
                self.index = index + 2
                return Node("call", start, "json_object", self._list(")"))
            items.append(self.expression())
            if not self.take(","):
                break
        return self._json_end("json_object", start, items, absent=False)

    def _json_end(self, name: str, start: int, items: list[Node], absent: bool) -> Node:
        """Read what stands behind the values of a JSON constructor."""
        if self.word() in ("null", "absent"):
            absent = self.word() == "absent"
            self.index += 1
            self.expect("on", "null")
        unique = self.take("with", "unique")
        if unique or self.take("without", "unique"):
            self.take("keys")
        to = self.type_name() if self.take("returning") else None
        self.expect(")")
        flags = [Node("truth", start, absent), Node("truth", start, unique)]
        call = Node("call", start, f"{name}:", [*flags, *items])
        return call if to is None else Node("cast", start, to, [call])
