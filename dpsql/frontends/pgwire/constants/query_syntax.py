"""PostgreSQL's questions: SELECT, VALUES, what joins them, and FROM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.compile import Compiled, Row
from dpsql.frontends.pgwire.constants.syntax import (
    CLAUSES,
    MOST_DEPTH,
    NO_BARE_LABEL,
    RESERVED,
    Node,
    Order,
    Parser,
    TypeName,
)
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, Large, said

_JOINS = {"join", "inner", "left", "right", "full", "cross", "natural"}


@dataclass(slots=True)
class Select:
    """SELECT: its outputs with their labels ("" for none), the sources of FROM, and what its clauses hold. `groups` is None if
    there is no GROUP BY."""

    outputs: list[tuple[Node, str]]
    sources: list[Node] = field(default_factory=list)
    where: Node | None = None
    groups: list[Node] | None = None
    having: Node | None = None
    distinct: bool = False


@dataclass(slots=True)
class WrittenQuery:
    """A question: SELECT, VALUES (a node `values`), two questions joined by UNION and the like (a node `set`), or a question in
    brackets, with what stands around it. `order`: expressions, whether they descend, and whether NULLs come first."""

    body: Select | Node | WrittenQuery
    named: list[tuple[str, list[str], WrittenQuery]] = field(default_factory=list)
    recursive: bool = False
    order: list[Order] = field(default_factory=list)
    limit: Node | None = None
    offset: Node | None = None
    size: int = 0
    """The number of tokens of the whole text."""


class QueryParser(Parser):
    """A parser of one question."""

    def statement(self) -> WrittenQuery:
        """Read a question to the end of the text."""
        if self.word() not in ("select", "values", "with") and self.signs() != "(":
            raise Elsewhere
        read = self.query()
        self.take(";")
        if self.token.kind != "end":
            raise self.problem()
        read.size = len(self.tokens)
        return read

    def query(self) -> WrittenQuery:
        """Read a question with its WITH, ORDER BY, LIMIT and OFFSET."""
        named, recursive = list[tuple[str, list[str], WrittenQuery]](), False
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise Elsewhere
        if self.take("with"):
            recursive = self.take("recursive")
            named.append(self._named_query())
            while self.take(","):
                named.append(self._named_query())
        read = WrittenQuery(self._set(), named, recursive)
        if self.take("order", "by"):
            read.order = self._order()
        while self.word() in ("limit", "offset", "fetch"):
            if self.take("limit"):
                read.limit = None if self.take("all") else self.expression()
            elif self.take("offset"):
                read.offset = self.expression()
                self.take("rows") or self.take("row")
            else:
                self.index += 2
                read.limit = Node("number", self.token.start, "1") if self.word() in ("row", "rows") else self.primary()
                self.index += 1
                self.expect("only")
        self.depth -= 1
        return read

    def _named_query(self) -> tuple[str, list[str], WrittenQuery]:
        name, columns = self.name(), list[str]()
        if self.take("("):
            columns.append(self.name())
            while self.take(","):
                columns.append(self.name())
            self.expect(")")
        self.expect("as")
        self.take("not")
        self.take("materialized")
        return name, columns, self._in_brackets()

    def _set(self, words: tuple[str, ...] = ("union", "except")) -> Select | Node | WrittenQuery:
        is_outer = "union" in words
        left = self._set(("intersect",)) if is_outer else self._operand()
        while self.word() in words:
            start, word = self.token.start, self.word()
            self.index += 1
            keeps_all = self.take("all")
            self.take("distinct")
            left = Node(
                "set", start, (word, keeps_all), [left, self._set(("intersect",)) if is_outer else self._operand()]
            )
        return left

    def _operand(self) -> Select | Node | WrittenQuery:
        if self.signs() == "(":
            inner: WrittenQuery = self._in_brackets()
            return inner
        return self._values() if self.take("values") else self._select()

    def _select(self) -> Select:
        self.expect("select")
        distinct = self.take("distinct")
        self.take("all")
        if (distinct and self.word() == "on") or self.word() in CLAUSES:
            raise Elsewhere
        read = Select([self._output()], distinct=distinct)
        while self.take(","):
            read.outputs.append(self._output())
        if self.word() == "into":
            raise refuse("read_only", word="SELECT INTO")
        if self.take("from"):
            read.sources.append(self._joined())
            while self.take(","):
                read.sources.append(self._joined())
        if self.take("where"):
            read.where = self.expression()
        if self.take("group", "by"):
            if self.word() in ("rollup", "cube", "grouping", "all", "distinct"):
                raise Elsewhere
            read.groups = [self.expression()]
            while self.take(","):
                read.groups.append(self.expression())
        if self.take("having"):
            read.having = self.expression()
        return read

    def _output(self) -> tuple[Node, str]:
        if self.signs() == "*":
            token = self.token
            self.index += 1
            return Node("star", token.start), ""
        value = self.expression()
        if self.take("as"):
            return value, self.name(any_word=True)
        if self.token.kind == "quoted" or (self.token.kind == "word" and self.word() not in NO_BARE_LABEL):
            return value, self.name(any_word=True)
        return value, ""

    def _values(self) -> Node:
        start, rows = self.token.start, list[Any]()
        while True:
            self.expect("(")
            if self.signs() == ")":
                raise self.problem()
            rows.append(self._list(")"))
            if len(rows[-1]) != len(rows[0]):
                raise said("42601", "VALUES lists must all be the same length", rows[-1][0].position)
            if not self.take(","):
                return Node("values", start, None, rows)

    def _joined(self) -> Node:
        """Read a source with its joins: a node `join` of its kind, of both sources, and of a condition or common columns."""
        left = self._source()
        while self.word() in ("join", "inner", "left", "right", "full", "cross", "natural"):
            start, natural = self.token.start, self.take("natural")
            kind = self.word() if self.word() in ("left", "right", "full", "cross") else "inner"
            self.take("inner") or self.take(kind)
            self.take("outer")
            self.expect("join")
            right, condition = self._source(), None
            common: list[str] | None = [] if natural else None
            if not natural and self.take("using", "("):
                common = [self.name()]
                while self.take(","):
                    common.append(self.name())
                self.expect(")")
            elif not natural and kind != "cross":
                self.expect("on")
                condition = self.expression()
            left = Node("join", start, (kind, common, natural), [left, right, condition])
        return left

    def _source(self) -> Node:
        start, lateral = self.token.start, self.take("lateral")
        if self.signs() == "(":
            if self.word(1) not in ("select", "values", "with") and self.signs(1) != "(":
                raise Elsewhere  # joins in brackets
            source = Node("subquery", start, lateral, [self._in_brackets()])
        else:
            source = Node("end", start) if self.token.kind == "end" else self.primary()
            if source.kind not in ("call", "constant", "coalesce", "column"):
                raise Elsewhere
        ordinality = self.take("with", "ordinality")
        alias, columns = "", list[Any]()
        if self.take("as") or (
            self.token.kind in ("word", "quoted") and self.word() not in RESERVED | CLAUSES | _JOINS
        ):
            alias = "" if self.signs() == "(" else self.name()
            if self.take("("):
                columns.append((self.name(), self._optional_type()))
                while self.take(","):
                    columns.append((self.name(), self._optional_type()))
                self.expect(")")
        return Node("source", start, (alias, columns, ordinality), [source])

    def _optional_type(self) -> TypeName | None:
        return None if self.signs() in (",", ")") else self.type_name()


# --- rows of questions ------------------------------------------------------------------------------------------------
# What a source is, orders, equal rows, and the names of outputs.


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column of a source."""

    source: str
    name: str
    type: str


@dataclass(slots=True)
class RowSource:
    """What a question answers: its columns by name, each as a function of one of its rows, and the rows for a row around it."""

    columns: list[tuple[str, Compiled]]
    rows: Callable[[Row], list[tuple[Any, ...]]]


Key = tuple[Callable[[Row], Any], Callable[[Any], Any], bool, bool]
"""A key of an order: its value for a row, the form in which values are compared, whether it descends and NULLs come first."""


def identity(value: Any) -> Any:
    """Return what is the same for equal values, and can be looked up."""
    if isinstance(value, list):
        return tuple(map(identity, value))
    if isinstance(value, t.Json):
        return ("json", t.json_text(value.value))
    if isinstance(value, float) and value != value:
        return "NaN"
    return getattr(value, "order", value)


def ordered(rows: Iterable[Any], keys: Sequence[Key]) -> list[Any]:
    """Return rows in an order."""
    listed = list(rows)
    for value, form, descending, first in reversed(keys):
        nulls = [row for row in listed if value(row) is None]
        rest = sorted(
            (row for row in listed if value(row) is not None), key=lambda row: form(value(row)), reverse=descending
        )
        listed = nulls + rest if first else rest + nulls
    return listed


def distinct(rows: Iterable[Any]) -> list[Any]:
    """Return each row once."""
    return list({identity(list(row)): row for row in rows}.values())


def inner_nodes(thing: Any) -> Iterator[Node]:
    """Yield the nodes of an expression that are not within a question inside of it."""
    if isinstance(thing, Node):
        yield thing
        yield from inner_nodes(thing.value)
        yield from inner_nodes(thing.items)
    elif isinstance(thing, (list, tuple)):
        for part in thing:
            yield from inner_nodes(part)


def named(node: Node) -> tuple[str, int]:
    """Return the name that PostgreSQL gives to an output, and how strong it is: 2 that of a column or function, 1 of a type."""
    kind = node.kind
    if kind == "column":
        return node.value[-1], 2
    if kind in ("call", "coalesce", "constant"):
        return node.value, 2
    if kind in ("bracket", "collate", "subscript", "window"):
        return named(node.items[0])
    if kind == "cast":
        inner = named(node.items[0])
        return inner if inner[1] == 2 else (node.value.name.strip('"').removeprefix("_"), 1)
    if kind == "case":
        default = node.value[1]
        inner = ("", 0) if default is None else named(default)
        return inner if inner[1] == 2 else ("case", 1)
    if kind == "subquery":
        return first_name(node.items[0]), 2
    results = {
        "aggregate": node.value[0] if isinstance(node.value, tuple) else "",
        "field": node.value,
        "gathered": "array",
    }
    return (results.get(kind, kind), 2) if kind in ("array", "row", "exists", *results) else ("?column?", 0)


def first_name(query: WrittenQuery) -> str:
    """Return the name of the first column of a question."""
    body: Any = query.body
    while isinstance(body, WrittenQuery) or (isinstance(body, Node) and body.kind == "set"):
        body = body.body if isinstance(body, WrittenQuery) else body.items[0]
    return body.outputs[0][1] or named(body.outputs[0][0])[0] if isinstance(body, Select) else "column1"


def limited(rows: list[Any]) -> list[Any]:
    """Return rows if there are not too many for this process. Raises Large."""
    t.step()
    if len(rows) > t.most_rows():
        raise Large
    return rows


def lengthened(rows: Iterable[Row], source: Callable[[Row], list[Row]]) -> list[Row]:
    """Return each row with those of a source behind it. Raises Large."""
    longer = list[Row]()
    for row in rows:
        longer += source(row)
        limited(longer)
    return longer
