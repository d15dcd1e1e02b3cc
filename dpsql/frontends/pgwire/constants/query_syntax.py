"""PostgreSQL's questions: SELECT, VALUES, what joins them, and FROM."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire.constants import bounds
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.compile import Compiled, Row
from dpsql.frontends.pgwire.constants.syntax import (
    BY_WORDS,
    MOST_DEPTH,
    Node,
    Order,
    Parser,
    TypeName,
)
from dpsql.frontends.pgwire.constants.tokens import CLAUSES, NO_BARE_LABEL, RESERVED, Elsewhere, Large, said

_MOST_RETURNS = 100
"""Limit on how often a bracket in FROM is read a second time, as one around joins."""
_MOST_SETS = 4_096
"""Limit on the grouping sets of a question, as PostgreSQL has it."""
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
    distinct_on: list[Node] = field(default_factory=list)
    sets: list[tuple[int, ...]] = field(default_factory=list)
    """The places in `groups` of the keys of each grouping set; empty if all keys are one."""
    windows: dict[str, Any] = field(default_factory=dict)
    is_table: bool = False
    """Whether it was written as TABLE."""


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
    ties: bool = False
    """Whether LIMIT keeps the rows that are equal to its last one in the order."""
    locks: str = ""
    """What FOR UPDATE and the like say of its rows."""
    search: tuple[bool, list[str], str] | None = None
    """SEARCH behind a question of WITH: whether it is by breadth, its columns, and the column that it makes."""
    cycle: tuple[list[str], str, list[Node], str] | None = None
    """CYCLE behind one: its columns, the column of the mark, the mark and what stands without it, and the column of the path."""
    marked: int = 0
    """The position of the first of them."""


class QueryParser(Parser):
    """A parser of one question."""

    returns = 0

    def statement(self) -> WrittenQuery:
        """Read a question to the end of the text."""
        if self.word() not in ("select", "values", "with", "table") and self.signs() != "(":
            raise Elsewhere
        read = self.query()
        self.take(";")
        if self.token.kind != "end":
            raise self.problem()
        return read

    def query(self) -> WrittenQuery:
        """Read a question with its WITH, ORDER BY, LIMIT and OFFSET."""
        named, recursive = list[tuple[str, list[str], WrittenQuery]](), False
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise Elsewhere
        if self.take("with"):
            recursive = self.take("recursive")
            named.append(self._named_query([]))
            while self.take(","):
                named.append(self._named_query([name for name, _, _ in named]))
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
                sign = self.token.text if self.token.kind == "operator" and self.token.text in ("+", "-") else ""
                self.index += bool(sign)
                read.limit = Node("number", self.token.start, "1") if self.word() in ("row", "rows") else self.primary()
                if sign == "-" and read.limit.kind == "number":
                    read.limit = Node("number", read.limit.position, f"-{read.limit.value}")
                self.index += 1
                read.ties = self.take("with", "ties")
                if not read.ties:
                    self.expect("only")
        while self.word() == "for" and not self.take("for", "read", "only"):
            read.locks = self._locks()
        self.depth -= 1
        return read

    def _locks(self) -> str:
        """Read FOR UPDATE and the like."""
        for words in (("update",), ("no", "key", "update"), ("share",), ("key", "share")):
            if self.take("for", *words):
                self.take("nowait") or self.take("skip", "locked")
                return f"SELECT FOR {' '.join(words).upper()}"
        raise self.problem()

    def _named_query(self, before: list[str]) -> tuple[str, list[str], WrittenQuery]:
        position, name, columns = self.token.start, self.name(), list[str]()
        if name in before:
            raise said("42712", f'WITH query name "{name}" specified more than once', position)
        if self.take("("):
            columns.append(self.name())
            while self.take(","):
                columns.append(self.name())
            self.expect(")")
        self.expect("as")
        self.take("not")
        self.take("materialized")
        inner = self._in_brackets()
        inner.marked = self.token.start
        if self.take("search"):
            is_by_breadth = self.take("breadth")
            self.take("depth") if not is_by_breadth else None
            self.expect("first", "by")
            names = self._names()
            self.expect("set")
            inner.search = (is_by_breadth, names, self.name())
        if self.take("cycle"):
            names = self._names()
            self.expect("set")
            mark, values = self.name(), [Node("truth", self.token.start, True), Node("truth", self.token.start, False)]
            if self.take("to"):
                values[0] = self.primary()
                self.expect("default")
                values[1] = self.primary()
            self.expect("using")
            inner.cycle = (names, mark, values, self.name())
        return name, columns, inner

    def _names(self) -> list[str]:
        names = [self.name()]
        while self.take(","):
            names.append(self.name())
        return names

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
        if self.take("table"):
            return Select([(Node("star", self.token.start), "")], [self._source()], is_table=True)
        return self._values() if self.take("values") else self._select()

    def _select(self) -> Select:
        self.expect("select")
        distinct = self.take("distinct")
        self.take("all")
        read = Select([], distinct=distinct)
        if distinct and self.take("on", "("):
            read.distinct, read.distinct_on = False, self._list(")")
        if self.word() not in CLAUSES and self.token.kind != "end" and self.signs() != ")":
            read.outputs.append(self._output())
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
            self._groups(read)
        if self.take("having"):
            read.having = self.expression()
        if self.take("window"):
            while True:
                name = self.name()
                self.expect("as", "(")
                read.windows[name] = self._window()
                if not self.take(","):
                    break
        return read

    def _groups(self, read: Select) -> None:
        """Read GROUP BY: each of its items is a list of sets of keys, and every choice of one of each is a grouping set."""
        read.groups, choices = [], list[list[tuple[int, ...]]]()
        while True:
            choices.append(self._sets_of(read.groups))
            if not self.take(","):
                break
        if any(len(sets) > 1 for sets in choices):
            read.sets = [tuple(itertools.chain(*chosen)) for chosen in itertools.product(*choices)]
            if len(read.sets) > _MOST_SETS:
                raise Elsewhere

    def _sets_of(self, keys: list[Node]) -> list[tuple[int, ...]]:
        word = self.word()
        if word in ("rollup", "cube") and self.signs(1) == "(":
            self.index += 2
            parts = [self._key_set(keys) for _ in self._separated()]
            if word == "rollup":
                return [tuple(itertools.chain(*parts[:k])) for k in range(len(parts), -1, -1)]
            picks = itertools.product((True, False), repeat=min(len(parts), 12))
            return [tuple(itertools.chain(*itertools.compress(parts, pick))) for pick in picks]
        if word == "grouping" and self.take("grouping", "sets", "("):
            return [key_set for _ in self._separated() for key_set in self._sets_of(keys)]
        return [self._key_set(keys)]

    def _separated(self) -> Iterator[None]:
        yield
        while self.take(","):
            yield
        self.expect(")")

    def _key_set(self, keys: list[Node]) -> tuple[int, ...]:
        """Read a key, or several of them in brackets, and return their places."""
        if self.signs() == "(" and self.signs(1) == ")":
            self.index += 2
            return ()
        key = self.expression()
        listed = key.items if key.kind == "row" else [key]
        keys += listed
        return tuple(range(len(keys) - len(listed), len(keys)))

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

    def _over(self, call: Node) -> Node:
        """Read the window of a function: what its rows have in common, their order and frame; or its name."""
        if not self.take("("):
            position = self.token.start
            return Node("window", call.position, self.name(), [call, position])
        return Node("window", call.position, self._window(), [call])

    def _window(self) -> tuple[list[Node], list[Order], Any]:
        parts, order = list[Node](), list[Any]()
        if self.take("partition", "by"):
            parts.append(self.expression())
            while self.take(","):
                parts.append(self.expression())
        if self.take("order", "by"):
            order = self._order()
        frame = None
        if self.word() in ("rows", "range", "groups"):
            word = self.word()
            self.index += 1
            is_pair = self.take("between")
            first = self._bound()
            if is_pair:
                self.expect("and")
            frame = (word, first, self._bound() if is_pair else 0, self._excluded())
        if self.signs() != ")":
            raise Elsewhere
        self.index += 1
        return parts, order, frame

    def _excluded(self) -> str:
        """Read EXCLUDE of a frame, and return what it names; "" for no rows."""
        if not self.take("exclude"):
            return ""
        for words in (("current", "row"), ("group",), ("ties",)):
            if self.take(*words):
                return " ".join(words)
        self.expect("no", "others")
        return ""

    def _bound(self) -> float | tuple[int, Node]:
        """Read an end of a frame: its number of rows from the present one, or a sign and an offset."""
        if self.take("current", "row"):
            return 0
        offset, sign = None if self.take("unbounded") else self.expression(), -1
        if not self.take("preceding"):
            self.expect("following")
            sign = 1
        return sign * math.inf if offset is None else (sign, offset)

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
            index, depth = self.index, self.depth
            try:
                source = Node("subquery", start, lateral, [self._in_brackets()])
            except Error:
                self.index, self.depth = index + 1, depth
                self.returns += 1  # each may read the rest of the text again
                if self.word() in ("select", "values", "with") or self.returns > _MOST_RETURNS:
                    raise
                source = self._joined()
                self.expect(")")
                return source
        else:
            self.take("only")
            source = self._rows_from() if self.take("rows", "from", "(") else self.primary()
            if source.kind not in ("call", "constant", "coalesce", "column", "rows_from"):
                raise Elsewhere
            self.take("*")
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

    def _rows_from(self) -> Node:
        calls = [self.primary()]
        while self.take(","):
            calls.append(self.primary())
        self.expect(")")
        return Node("rows_from", calls[0].position, None, calls)

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
    schema: str = ""
    oid: int = 0
    shape: tuple[tuple[str, str], ...] = ()
    origin: tuple[int, int] = (0, 0)
    """The OID of the relation that has the column, and its number there."""
    is_scalar: bool = False
    """Whether it is what a function returns: its row as a whole is this value."""

    def is_called(self, names: list[str]) -> bool:
        """Return whether a name, with that of the source and of its schema before it, is that of this column."""
        return self.name == names[-1] and (
            len(names) == 1 or (self.source == names[-2] and (len(names) == 2 or self.schema == names[-3]))
        )


@dataclass(slots=True)
class RowSource:
    """What a question answers: its columns by name, each as a function of one of its rows, and the rows for a row around it.
    `fixed`: the rows of a question that WITH names are the same each time."""

    columns: list[tuple[str, Compiled]]
    rows: Callable[[Row], list[tuple[Any, ...]]]
    fixed: bool = True
    ties: Callable[[Row, int], list[tuple[Any, ...]]] | None = None
    """The first rows, and those that are equal to the last of them in the order; None without an order."""


Key = tuple[Callable[[Row], Any], Callable[[Any], Any], bool, bool]
"""A key of an order: its value for a row, the form in which values are compared, whether it descends and NULLs come first."""


_PLAIN = {str, int, bool}
"""Types whose values are equal where Python's are."""


def identity(value: Any) -> Any:
    """Return what is the same for equal values, and can be looked up."""
    if value is None or type(value) in _PLAIN:
        return value
    if isinstance(value, list):
        return tuple(map(identity, value))
    if isinstance(value, t.Record):
        return ("row", identity(list(value.values)))
    if isinstance(value, t.Json):
        return ("json", t.json_text(value.value))
    if isinstance(value, float) and value != value:
        return "NaN"
    return getattr(value, "order", value)


def ordered(rows: Iterable[Any], keys: Sequence[Key]) -> list[Any]:
    """Return rows in an order."""
    listed = list(rows)
    for value, form, descending, first in reversed(keys):
        bounds.checkpoint()
        pairs = [(value(row), row) for row in bounds.counted(listed)]
        nulls = [row for key, row in pairs if key is None]
        pairs = sorted((pair for pair in pairs if pair[0] is not None), key=lambda p: form(p[0]), reverse=descending)
        rest = [row for _, row in pairs]
        listed = nulls + rest if first else rest + nulls
    return listed


def tied(rows: list[Any], keys: Sequence[Key], most: int) -> list[Any]:
    """Return the first rows of an order, and those that are equal to the last of them in it."""
    if not 0 < most < len(rows):
        return rows[: max(most, 0)]
    last = [identity(value(rows[most - 1])) for value, *_ in keys]
    while most < len(rows) and [identity(value(rows[most])) for value, *_ in keys] == last:
        bounds.step()
        most += 1
    return rows[:most]


def distinct(rows: Iterable[Any]) -> list[Any]:
    """Return each row once."""
    return list({identity(list(row)): row for row in bounds.counted(rows)}.values())


def inner_nodes(thing: Any) -> Iterator[Node]:
    """Yield the nodes of an expression that are not within a question inside of it."""
    if isinstance(thing, Node):
        yield thing
        yield from inner_nodes(thing.value)
        yield from inner_nodes(thing.items)
    elif isinstance(thing, (list, tuple)):
        for part in thing:
            yield from inner_nodes(part)


def beginning(thing: Any) -> int:
    """Return where an expression begins, or the first output of a question."""
    while isinstance(thing, WrittenQuery) or (isinstance(thing, Node) and thing.kind == "set"):
        thing = thing.body if isinstance(thing, WrittenQuery) else thing.items[0]
    thing = thing.outputs[:1] if isinstance(thing, Select) else thing
    return min((node.position for node in inner_nodes(thing)), default=0)


def named(node: Node) -> tuple[str, int]:
    """Return the name that PostgreSQL gives to an output, and how strong it is: 2 that of a column or function, 1 of a type."""
    kind = node.kind
    if kind == "column":
        return node.value[-1], 2
    if kind in ("call", "coalesce", "constant"):
        name, sign, further = node.value.removeprefix(BY_WORDS).partition(":")
        return ("?column?", 0) if sign and further else (name, 2)
    if kind in ("bracket", "collate", "subscript", "window"):
        return named(node.items[0])
    if kind == "cast":
        inner = named(node.items[0])
        return inner if inner[1] == 2 else (node.value.name.strip('"').removeprefix("_"), 1)
    if kind == "case":
        default = node.value[1]
        inner = ("", 0) if default is None else named(default)
        return inner if inner[1] == 2 else ("case", 1)
    if kind == "rows_from":
        return "", 0
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


def tables_in(query: WrittenQuery) -> list[list[str]]:
    """Return the names of the relations that a question reads, with their schemas as far as these are written."""
    tables, named_ones = list[list[str]](), set[str]()
    pending: list[Any] = [query]
    while pending:
        thing = pending.pop()
        if isinstance(thing, WrittenQuery):
            named_ones.update(name for name, _, _ in thing.named)
        if isinstance(thing, Node) and thing.kind == "source" and thing.items[0].kind == "column":
            tables.append(thing.items[0].value)
        if isinstance(thing, (list, tuple)):
            pending += thing
        elif is_dataclass(thing):
            pending += [getattr(thing, part.name) for part in fields(thing)]
    return [names for names in tables if len(names) > 1 or names[0] not in named_ones]


def goes_back(query: WrittenQuery, is_stored: bool) -> bool:
    """Return whether PostgreSQL can read the rows of a question backwards: it sorts them, or reads one table or function.
    `is_stored`: what it reads are tables, not views."""
    body = query.body
    is_distinct = isinstance(body, Select) and bool(body.distinct or body.distinct_on)
    if query.order or not is_stored:
        return bool(query.order) and not is_distinct
    if not isinstance(body, Select):
        return isinstance(body, Node) and body.kind == "values" and not query.named
    is_plain = not (is_distinct or body.windows or query.named) and body.groups is None and body.having is None
    if not is_plain or [source.kind for source in body.sources] != ["source"]:
        return False
    kinds = {node.kind for node in inner_nodes([body.outputs, body.where])}
    return body.sources[0].items[0].kind in ("column", "call") and kinds.isdisjoint(
        ("aggregate", "window", "call", "subquery", "gathered", "exists")
    )


def limited(rows: list[Any]) -> list[Any]:
    """Return rows if there are not too many for this process. Raises Large."""
    bounds.step()
    if len(rows) > bounds.most_rows():
        raise Large
    return rows
