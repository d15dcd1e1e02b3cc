"""The wire reads a text once for each dialect whose parser reads it, however often it is described, bound and executed."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlglot.tokens import Tokenizer
from support.raw_client import SYNC, Client, bind, describe, execute, framed, kinds, parse, text
from support.served_clinic import Served, logged_in, serving

from dpsql.frontends.cli.serve import open_server_state
from dpsql.frontends.pgwire import questions
from dpsql.frontends.pgwire.constants.answers import Answerable


@pytest.fixture(scope="module")
def client(clinic: Served) -> Iterator[Client]:
    with serving(open_server_state(clinic.policy)) as port:
        client = logged_in(port)
        yield client
        client.close()


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of texts that any of the parser's tokenizers receives, limited to texts that contain "mark"."""
    texts: list[str] = []
    usual = Tokenizer.tokenize

    def counted(tokenizer: Tokenizer, sql: str) -> object:
        if "mark" in sql:
            texts.append(sql)
        return usual(tokenizer, sql)

    monkeypatch.setattr(Tokenizer, "tokenize", counted)
    return texts


@pytest.mark.parametrize(
    "sql",
    ["SELECT COUNT(*) AS mark_a FROM patients", "EXPLAIN SELECT COUNT(*) AS mark_b FROM patients",
     "SELECT relname AS mark FROM pg_catalog.pg_class LIMIT 1", "SELECT version() AS mark", "SELECT 1 AS mark",
     "COPY (SELECT COUNT(*) AS mark_c FROM patients) TO STDOUT", "SET application_name = 'mark'",
     "BEGIN; SELECT COUNT(*) AS mark_d FROM patients; COMMIT"],
)  # fmt: skip
def test_a_simple_query_is_lexed_once(client: Client, passes: list[str], sql: str) -> None:
    answered = client.query(sql)
    assert "E" not in kinds(answered) and kinds(answered).replace("S", "").endswith("CZ")
    assert passes == [sql]


def test_an_extended_query_is_lexed_once_for_each_dialect(client: Client, passes: list[str]) -> None:
    """Types of open parameters come from PostgreSQL's dialect, answers from the engine's; after that nothing is lexed."""
    sql = "SELECT COUNT(*) AS mark_e FROM patients WHERE age > $1"
    client.send(parse(sql, "s"), describe(b"S", "s"), SYNC)
    assert kinds(client.until(b"Z")) == "1tTZ"
    for value in (b"31", b"47"):
        client.send(bind((value,), "", "s"), describe(b"P"), execute(), SYNC)
        assert kinds(client.until(b"Z")) == "2TDCZ"
    assert passes == [sql, sql]


def test_a_prepared_question_without_parameters_is_lexed_once(client: Client, passes: list[str]) -> None:
    sql = "SELECT sex, COUNT(*) AS mark_f FROM patients GROUP BY sex"
    client.send(parse(sql, "t"), describe(b"S", "t"), bind((), "", "t"), execute(), SYNC)
    assert kinds(client.until(b"Z")) == "1tT2DDCZ"
    assert passes == [sql]


def test_a_long_text_gives_its_tokens_back(client: Client, passes: list[str]) -> None:
    """Otherwise a thousand prepared statements would hold a thousand times the tokens of the longest text."""
    sql = (
        "SELECT COUNT(*) AS mark_g FROM patients WHERE age > $1 AND age IN (" + ", ".join(map(str, range(2_000))) + ")"
    )
    client.send(framed(b"P", text("long", sql) + b"\0\0"), SYNC)
    assert kinds(client.until(b"Z")) == "1Z"
    before = len(passes)
    client.send(bind((b"31",), "", "long"), execute(), SYNC)
    assert kinds(client.until(b"Z")) == "2DCZ"
    assert len(passes) > before


def test_a_repeated_question_about_the_catalog_is_compiled_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its columns, its parameters and its rows are kept; clients ask the same at each connection."""
    compiled, usual = list[object](), questions.answerable

    def counted(*args: Any) -> Answerable:
        compiled.append(args)
        return usual(*args)

    monkeypatch.setattr(questions, "answerable", counted)
    simple, sql = "SELECT relname FROM pg_class WHERE oid > 31", "SELECT relname FROM pg_class WHERE relname = $1"
    rounds = []
    for _ in range(3):
        answered = kinds(client.query(simple))
        client.send(parse(sql), bind((b"patients",)), describe(b"P"), execute(), SYNC)
        answered += kinds(client.until(b"Z"))
        rounds.append((len(compiled), answered))
    assert rounds[0] == rounds[1] == rounds[2] and 0 < len(compiled) <= 4
