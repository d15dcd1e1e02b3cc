"""What DuckDB's parser refuses in a text that has lost, doubled or swapped one token is refused, and not repaired and charged."""

import random
import re
from collections.abc import Iterator

import duckdb
import pytest
from sql.corpus import cases
from sqlglot.tokenizer_core import Token
from support.places import policy
from support.recording_session import World
from support.seeds import seeds

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire.catalog.shape import keywords
from dpsql.sql.forgotten_parts import check_parts
from dpsql.sql.lexer import as_piece
from dpsql.sql.parse import parse

_TEXTS = [case.sql for case in cases("accepted") if "$" not in case.sql and "?" not in case.sql]
_SHARE = 0.01
"""The largest share of slips that have a price: words that read as names (`FROM visits GROUP ward`), and aliases that nothing reads."""


def _parses(sql: str) -> bool:
    try:
        duckdb.extract_statements(sql)
    except duckdb.Error:
        return False
    return True


def _slipped(sql: str, draw: random.Random) -> str:
    piece = as_piece(sql)
    words = [piece.source(token) for token in piece.tokens()]
    place = draw.randrange(len(words))
    if (how := draw.choice(("lost", "doubled", "swapped"))) == "lost":
        del words[place]
    elif how == "doubled":
        words.insert(place, words[place])
    else:
        words[place : place + 2] = words[place : place + 2][::-1]
    return " ".join(words)


@pytest.mark.parametrize("seed", seeds(30, 1))
def test_what_an_engine_cannot_read_is_not_repaired(seed: int) -> None:
    draw = random.Random(seed)
    session = World(policy("hospital")).session
    repaired, slips = [], 0
    while slips < 600:
        text = draw.choice(_TEXTS)
        slipped = _slipped(text, draw)
        if not _parses(text) or _parses(slipped):
            continue
        slips += 1
        try:
            releases = session.plan(session.planner.parse(slipped, None)).price.blocks
        except Error:
            continue
        if releases:
            repaired.append(slipped)
    assert len(repaired) <= _SHARE * slips, repaired


@pytest.mark.parametrize("seed", seeds(30, 1))
def test_names_behind_dots_and_as_may_be_any_word(seed: int) -> None:
    draw = random.Random(seed)
    words = ("and", "as", "between", "case", "distinct", "end", "from", "group", "having", "on", "order", "using")
    name = re.compile(r"(?i)(\.|\bAS )(?!not\b|materialized\b)[a-z_]+\b(?! ?[(.])")
    read = 0
    while read < 60:
        text = name.sub(lambda hit: hit[1] + draw.choice(words), draw.choice(_TEXTS))
        if not _parses(text):
            continue
        try:
            parse(text)
        except Error as error:
            assert not re.search(
                "nothing stands|stands twice|BETWEEN has|is open here|no END|USING stand", str(error)
            ), text
        read += 1


_NAMED = {
    "SELECT COUNT(*) FROM visits {}": "UC", "SELECT COUNT(*) FROM visits AS {} WHERE 1 = 1": "UC",
    "WITH {} AS (SELECT COUNT(*) AS n FROM visits) SELECT 1": "UC", "SELECT COUNT(*) {} FROM visits": "bare",
    "SELECT COUNT(*) AS {} FROM visits": "UCTR",
}  # fmt: skip
"""Texts with a place for a name, and which of PostgreSQL's words are names there: by their class, or those "bare" of AS."""
_BARE_ON_SPARK = {"day", "hour", "minute", "month", "precision", "second", "varying", "year"}


@pytest.mark.parametrize(("text", "classes"), _NAMED.items())
def test_words_that_no_engine_reads_as_a_name_are_none(text: str, classes: str) -> None:
    """PostgreSQL's words by pg_get_keywords(), DuckDB's by its parser."""
    own = {word: (class_, bare) for word, class_, bare, *_ in keywords()}
    words = {
        row[0] for row in duckdb.connect().execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    } | own.keys()
    wrong, names = [], 0
    for word in sorted(words):
        class_, bare = own.get(word, ("U", True))
        engines = (bare or word in _BARE_ON_SPARK) if classes == "bare" else class_ in classes
        engines = engines or _parses(text.format(word))
        try:
            parse(text.format(word))
        except Error:
            continue
        names += 1
        wrong += [] if engines else [word]
    assert wrong == [] and names > 300


def test_offset_behind_with_begins_no_clause() -> None:
    """BigQuery's UNNEST numbers the items, and WHERE may follow; the binder says what DuckDB has instead."""
    assert parse("SELECT COUNT(*) FROM UNNEST([1, 2]) AS item WITH OFFSET AS number WHERE item > 1")


class _Counted(list[Token]):
    """Tokens that count how often one of them is read."""

    reads = 0

    def __iter__(self) -> Iterator[Token]:
        for token in super().__iter__():
            self.reads += 1
            yield token


def test_each_token_is_read_a_few_times_in_texts_of_any_length() -> None:
    for text in ("1 + '" + "a'\n'" * 2_000 + "'", "(" * 2_000 + "1" + ")" * 2_000, "CASE WHEN 1 " * 2_000):
        tokens = _Counted(as_piece(f"SELECT {text}").tokens())
        try:
            check_parts(tokens, f"SELECT {text}")
        except Error as error:
            assert "has no THEN" in str(error) or "no END" in str(error)
        assert tokens.reads <= 8 * len(tokens)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ward, COUNT(*), FROM visits GROUP BY ward,",
        "SELECT COUNT(*) FROM visits WHERE ward = 'i'\n'cu'",
        "SELECT COUNT(*) FROM visits WHERE CASE WHEN cost BETWEEN 1 AND 2 THEN cost BETWEEN nights AND 3 ELSE TRUE END",
        "SELECT COUNT(*) FROM visits WHERE cost BETWEEN CASE WHEN nights BETWEEN 1 AND 2 THEN 1 ELSE 2 END AND 3",
        "SELECT v.group, v.order, COUNT(DISTINCT v.from) FROM v GROUP BY v.order, v.group ORDER BY v.order",
        "SELECT COUNT(*) FROM s.group GROUP BY ward",
        "SELECT COUNT(*) AS on, SUM(v.and) AS between, MIN(v.case), MAX(v.end) AS using, 1 AS distinct, 2 AS as FROM v",
        "SELECT COUNT(*) FROM visits WHERE cost OPERATOR(pg_catalog.=) 1 AND nights OPERATOR(<) 2",
        "SELECT COUNT(*) FROM visits USING SAMPLE 2 ROWS",
        "SELECT (COUNT(*)) AS n, 2 * (COUNT(*)) FROM visits WHERE cost NOT BETWEEN (1) AND (SELECT 2)",
    ],
)
def test_what_engines_read_is_read(sql: str) -> None:
    assert parse(sql).kind == "query"
