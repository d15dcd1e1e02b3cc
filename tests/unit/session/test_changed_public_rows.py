"""Public rows that change while they are relied on: no answer moves by more than was charged for it, whenever they change."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.exact_session import exact_session, rows_of

from dpsql.engine.duckdb.engine import open_duckdb
from dpsql.errors.exceptions import Error
from dpsql.policy.check import parse_policy
from dpsql.session.session import Session

PEOPLE, ONE, MANY = 40, ["x"], 50 * ["x"]
POLICY = """
dataset: d
privacy_unit: {table: people, column: person}
budget: {epsilon: 100, delta: 1e-4}
per_query: {epsilon: 1}
ledger: sqlite:///unused.db
tables:
  people: {max_rows: 1, primary_key: [person], columns: {person: {type: integer, nullable: false}, word: {type: text}}}
  tags: {public: true, unique: [[word]], columns: {word: {type: text}, size: {type: integer, lower: 0, upper: 9}}}
"""
Write = Callable[[list[str]], object]
Opened = tuple[Session, Write]
QUESTIONS = (
    "SELECT COUNT(*) FROM people CROSS JOIN tags",
    "SELECT COUNT(*) FROM people JOIN tags USING (word)",
    "SELECT COUNT(*) FROM people LEFT JOIN tags ON people.word = tags.word WHERE person >= 0",
    "SELECT SUM(size) FROM people JOIN tags USING (word)",
)


def in_files(folder: Path, ending: str) -> Opened:
    def write(words: list[str]) -> None:
        table = pa.table({"word": words, "size": len(words) * [1]})
        if ending == "parquet":
            pq.write_table(table, folder / "tags.new")
        else:
            (folder / "tags.new").write_text("\n".join(["word,size", *(f"{word},1" for word in words), ""]))
        (folder / "tags.new").replace(folder / f"tags.{ending}")

    write(ONE)
    (folder / "people.csv").write_text("\n".join(["person,word", *(f"{person},x" for person in range(PEOPLE)), ""]))
    text = POLICY.replace("people: {", "people: {source: people.csv, ").replace(
        "tags: {", f"tags: {{source: tags.{ending}, "
    )
    policy = parse_policy(text, "policy.yaml", folder)
    return exact_session(policy, None, folder / "ledger.db", opened=open_duckdb), write


def in_a_connection(folder: Path, ending: str) -> Opened:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE people AS SELECT range AS person, 'x' AS word FROM range({PEOPLE})")

    def write(words: list[str]) -> None:
        connection.execute("CREATE OR REPLACE TABLE tags AS SELECT unnest(?) AS word, 1 AS size", [words])

    write(ONE)
    return exact_session(parse_policy(POLICY, "policy.yaml", folder), connection, folder / "ledger.db"), write


@pytest.fixture(
    params=[(in_files, "csv"), (in_files, "parquet"), (in_a_connection, "")], ids=["csv", "parquet", "connection"]
)
def opened(request: Any, tmp_path: Path) -> Iterator[Opened]:
    opener, ending = request.param
    session, write = opener(tmp_path, ending)
    with session:
        yield session, write


def require_within_charge(session: Session, sql: str) -> None:
    """Require that a question has no answer, or one that each person moves by no more than its sensitivity."""
    (block,) = session.plan(session.planner.parse(sql, None)).price.blocks
    try:
        release = session.execute(sql)
    except Error as error:
        assert error.slug in ("data_changed", "promise_broken")
        return
    assert rows_of(release)[0][0] <= PEOPLE * block.noise.terms[0].noise.sensitivity.l1


@pytest.mark.parametrize("sql", QUESTIONS)
def test_rows_change_between_a_check_and_a_query(opened: Opened, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session, write = opened
    run = session.context.engine.run

    def changed(*arguments: Any, **named: Any) -> Any:
        write(MANY)
        return run(*arguments, **named)

    monkeypatch.setattr(session.context.engine, "run", changed)
    require_within_charge(session, sql)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_rows_change_between_two_questions(opened: Opened, sql: str) -> None:
    session, write = opened
    session.execute("SET dp.reuse = off")
    assert rows_of(session.execute(sql)) == [(PEOPLE,)]
    write(MANY)
    require_within_charge(session, sql)


def test_questions_are_planned_over_public_rows_as_they_are(opened: Opened) -> None:
    session, write = opened
    session.execute("SET dp.reuse = off")
    for words in (ONE, MANY, 2 * ONE, ONE):
        write(words)
        assert rows_of(session.execute(QUESTIONS[0])) == [(PEOPLE * len(words),)]


def test_a_promise_that_public_rows_break_is_refused_before_the_charge(opened: Opened) -> None:
    (session, write), sql = opened, QUESTIONS[-1]
    session.execute("SET dp.reuse = off")
    session.execute(sql)
    spent = session.budget().spent
    write(MANY)
    with pytest.raises(Error) as refused:
        session.execute(sql)
    assert refused.value.slug == "promise_broken" and not refused.value.charged
    assert session.budget().spent == spent
    write(ONE)
    assert rows_of(session.execute(sql)) == [(PEOPLE,)]
