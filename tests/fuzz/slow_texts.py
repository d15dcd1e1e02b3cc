"""Texts that grow: the shapes of `odd_sql`, repeated inside one another and beside one another.

A family is a function of a size. Its texts measure how time grows with the length of a text: twice the size may cost about twice
the work.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from fuzz import odd_sql

_ATOMS = {"e": "a", "c": "a", "t": "visits", "q": "SELECT a FROM visits", "a": "COUNT(*)", "w": "ORDER BY a", "n": "1", "s": "'a'",
          "i": "b", "y": "INT"}  # fmt: skip
_HOLE = re.compile(r"\{([ectqawnsiy])\}")
_EXTRA = (
    "date({e})", "{y}({e})", "ARRAY[{e}]", "{y}[{e}]", "{y}[{e}] 'a'", "struct({e})", "MAP({e})", "IF [{e}]", "IF {{'a': {e}}}", "f({e} LIMIT {e})", "a.f({e})", "({e}).f()",
    "{e}.f()", "{e}.b", "{e}[1]", "{e}[{e}]", "{e}::{y}({e})", "{e}::struct(b {e})", "{e} AT TIME ZONE {e}", "INTERVAL {e}", "INTERVAL ({e})", "{e} {e}",
    "({e}) -> {e}", "(a, b) -> {e}", "f(DISTINCT {e})", "f({e} ORDER BY {e})", "{e} OVER (PARTITION BY {e} ORDER BY {e})", "{e} IN ({e}, {e})",
    "f({e}) FILTER (WHERE {e})", "f({e}) WITHIN GROUP (ORDER BY {e})", "{e} LIKE ANY ({e})", "{e} IS JSON", "EXTRACT({e} FROM {e})", "CASE WHEN {e}",
    "TRIM({e} FROM {e})", "{e} COLLATE {e}", "{e} = ANY ({e})", "ARRAY({e})", "ROW({e}).b", "{e} ? {e}", "{e} -> {e}", "{e} ->> {e} -> {e}", "/* a */ {e}", "{e} /* a */", "{e} -- a\n",
    "CAST({e} AS {y}({e}))", "CAST({e} AS struct(b {e}))", "b := {e}", "b => {e}", "[{e} for b in {e}]", "* EXCLUDE ({e})", "COLUMNS({e})", "b: {e}", "lambda b: {e}",
    "(SELECT {e})", "(VALUES ({e}))", "(WITH b AS (SELECT {e}) SELECT {e})", "EXISTS (SELECT {e})", "x'a' {e}", "E'a' {e}", "'a' {e}", "@{e}", ":{e}", "${e}", "{e} ! {e}",
)  # fmt: skip
_EXTRA_SOURCES = (
    "{t} JOIN {t}", "{t} LEFT JOIN {t}", "({t} JOIN {t})", "({t} JOIN {t} ON a)", "{t}, LATERAL {t}", "date({t})", "({t}) AS b(a)", "(SELECT * FROM {t} OFFSET ({q}))", "{t} b TABLESAMPLE (1)",
    "(SELECT * FROM {t})", "((SELECT * FROM {t}) UNION (SELECT * FROM {t}))", "(PIVOT {t} ON a USING COUNT(*))", "{t} PIVOT (COUNT(*) FOR a IN ({q}))", "(FROM {t} SELECT a)",
    "{t} MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS {e})", "UNNEST({e})", "{t} FOR SYSTEM_TIME AS OF {e}", "f({e})", "{t} JOIN {t} ON {e} JOIN {t}", "{t} JOIN {t} USING (a) JOIN {t}",
)  # fmt: skip
_EXTRA_QUERIES = (
    "({q})", "{q} UNION {q}", "({q}) UNION ({q})", "SELECT ({q})", "SELECT * FROM ({q})", "WITH b AS ({q}) {q}", "WITH b AS (WITH b AS ({q}) {q}) {q}", "SELECT a FROM visits LIMIT ({q})", "FROM ({q})",
    "SELECT a FROM visits OFFSET ({q})", "SELECT a FROM visits QUALIFY ({q})", "SELECT a FROM visits WINDOW b AS (ORDER BY ({q}))", "SELECT a FROM visits GROUP BY ({q})", "VALUES (({q}))", "SELECT DISTINCT ON (({q})) a",
    "SELECT /*+ b({q}) */ a", "SELECT TOP ({q}) a",
)  # fmt: skip
_JOINERS = (
    ", ", " ", " + ", " AND ", " OR ", " || ", ".", "::", " -> ", " = ", " UNION ALL ", " JOIN ", " NOT ", " IS ",
    " IN ", " BETWEEN ", " LIKE ", "; ",
)  # fmt: skip


@dataclass(frozen=True)
class Family:
    """Texts of one shape. `text(n)` has n copies of it."""

    name: str
    head: str
    opening: tuple[str, ...]
    middle: str
    closing: tuple[str, ...]

    def text(self, size: int) -> str:
        """Return the text with `size` copies of the shape."""
        kinds = len(self.opening)
        opened = "".join(self.opening[index % kinds] for index in range(size))
        closed = "".join(self.closing[index % kinds] for index in reversed(range(size)))
        return self.head.replace("{}", opened + self.middle + closed)


_PLACES = {"e": ("SELECT {}", "SELECT a FROM visits WHERE {}"), "t": ("SELECT * FROM {}",), "q": ("{}",)}
_SHAPES = {
    "e": odd_sql.EXPRESSIONS + _EXTRA,
    "t": odd_sql.SOURCES + _EXTRA_SOURCES,
    "q": odd_sql.QUERIES + _EXTRA_QUERIES,
}


def _filled(text: str, rng: random.Random | None) -> str:
    """Return a piece of a shape with its other holes filled."""

    def fill(match: re.Match[str]) -> str:
        kind = match[1]
        if rng is None or rng.random() < 0.5:
            return _ATOMS[kind]
        many = {
            "e": odd_sql.EXPRESSIONS,
            "y": odd_sql.TYPES,
            "n": odd_sql.NUMBERS,
            "s": odd_sql.STRINGS,
            "i": odd_sql.IDENTIFIERS,
        }
        return _HOLE.sub(lambda inner: _ATOMS[inner[1]], rng.choice(many.get(kind, (_ATOMS[kind],))))

    return _HOLE.sub(fill, text).replace("{{", "{").replace("}}", "}")


def _around(shape: str, kind: str, rng: random.Random | None) -> Iterator[tuple[str, str]]:
    """Yield what stands before and after each hole of a kind."""
    for match in re.finditer(rf"\{{{kind}\}}", shape):
        yield _filled(shape[: match.start()], rng), _filled(shape[match.end() :], rng)


def nested(rng: random.Random | None = None) -> Iterator[Family]:
    """Yield every shape inside itself, once for each of its holes."""
    for kind, shapes in _SHAPES.items():
        for shape in shapes:
            for number, (before, after) in enumerate(_around(shape, kind, rng)):
                for place in _PLACES[kind][:1]:
                    yield Family(f"{shape} in hole {number}", place, (before,), _ATOMS[kind], (after,))


def mixed(rng: random.Random) -> Family:
    """Return a random family: up to three shapes inside one another in turn."""
    kind = rng.choice("eeeetq")
    pairs: list[tuple[str, str]] = []
    while len(pairs) < rng.choice((1, 2, 2, 3)):
        pairs += [pair for pair in _around(rng.choice(_SHAPES[kind]), kind, rng) if rng.random() < 0.7][:1]
    opening, closing = zip(*pairs, strict=True)
    if rng.random() < 0.15:
        closing = ("",) * len(closing)
    return Family(f"{opening} {closing}", rng.choice(_PLACES[kind]), opening, _ATOMS[kind], closing)


def listed(rng: random.Random) -> Family:
    """Return a random family: copies of a shape beside one another."""
    kind = rng.choice("eeeetq")
    piece = _filled(rng.choice(_SHAPES[kind]), rng)
    joiner = rng.choice(_JOINERS)
    before = rng.random() < 0.5
    return Family(
        f"{piece}{joiner}...",
        rng.choice(_PLACES[kind]),
        (piece + joiner if before else "",),
        _ATOMS[kind],
        ("" if before else joiner + piece,),
    )
