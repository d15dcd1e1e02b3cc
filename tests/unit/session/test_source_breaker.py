"""A failing source is charged for once, and not by every later query."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsql.engine.contract import ExactAnswer
from dpsql.engine.duckdb.engine import DuckDBEngine, engine_fault
from dpsql.engine.query import EngineQuery
from dpsql.engine.served_tables import UNNAMED
from dpsql.errors.exceptions import Error, Fault
from dpsql.session.background_work import FIRST_SECONDS, LONGEST_SECONDS, SourceBreaker
from dpsql.session.session import Session, open_session

POLICY = """
dataset: files
source: ./{source}
ledger: sqlite:///ledger.db
budget: {{epsilon: 10, delta: 1e-6}}
privacy_unit: row
tables:
  a: {{source: ./a.parquet, columns: {{v: {{type: integer, lower: 0, upper: 100}}, name: {{type: text}}}}}}
  b: {{source: ./b.parquet, columns: {{v: {{type: integer, lower: 0, upper: 100}}}}}}
"""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def slug(breaker: SourceBreaker, **versions: str) -> str:
    try:
        breaker.require_open(versions)
    except Error as error:
        return error.slug
    return ""


def test_a_failure_closes_its_tables_until_their_data_are_others() -> None:
    breaker = SourceBreaker(Clock())
    breaker.failed({"a": "1", "b": "1"})
    assert slug(breaker, a="1") == slug(breaker, b="1", c="1") == "source_closed"
    assert slug(breaker, c="1") == ""
    assert slug(breaker, a="2") == "", "another version"
    assert slug(breaker, b="1") == "source_closed"


def test_versions_that_nobody_has_named_open_nothing() -> None:
    """Each query over a server's table has a separate version unless the policy names it."""
    clock = Clock()
    breaker = SourceBreaker(clock)
    breaker.failed({"a": f"{UNNAMED}1", "b": "declared:1"})
    assert slug(breaker, a=f"{UNNAMED}2") == "source_closed"
    assert slug(breaker, a="declared:1") == "", "since the policy names a version"
    assert slug(breaker, b=f"{UNNAMED}2") == "", "since the policy names none"
    breaker.failed({"a": f"{UNNAMED}3"})
    clock.now = FIRST_SECONDS
    breaker.failed({"a": f"{UNNAMED}4"})
    clock.now += FIRST_SECONDS
    assert slug(breaker, a=f"{UNNAMED}5") == "source_closed", "twice as long"


def test_one_question_is_let_through_when_the_time_is_over() -> None:
    clock = Clock()
    breaker = SourceBreaker(clock)
    seconds = FIRST_SECONDS
    for _ in range(10):
        breaker.failed({"a": "1"})
        clock.now += seconds - 0.5
        assert slug(breaker, a="1") == "source_closed"
        clock.now += 0.5
        assert [slug(breaker, a="1"), slug(breaker, a="1")] == ["", "source_closed"]
        seconds = min(2 * seconds, LONGEST_SECONDS)
    breaker.succeeded({"a": "1"})
    assert slug(breaker, a="1") == ""
    breaker.failed({"a": "1"})
    clock.now += FIRST_SECONDS
    assert slug(breaker, a="1") == "", "a success begins anew"


def test_a_question_that_reads_an_open_and_a_closed_table_closes_nothing_else() -> None:
    clock = Clock()
    breaker = SourceBreaker(clock)
    breaker.failed({"a": "1"})
    clock.now += 1
    breaker.failed({"b": "1"})
    clock.now = FIRST_SECONDS
    assert slug(breaker, a="1", b="1") == "source_closed"
    assert slug(breaker, a="1") == "", "what was refused for another table did not use up the one question"


@pytest.mark.parametrize(
    ("error", "of_source"),
    [
        (duckdb.IOException("IO Error: cannot read"), True),
        (duckdb.InvalidInputException("Invalid Input Error: not UTF-8"), True),
        (duckdb.ConversionException("Conversion Error: a value at which a view fails"), False),
        (OSError("Invalid Input Error: not UTF-8"), True),
        (RuntimeError("the source of t changed while it was read"), True),
        (duckdb.InterruptException("INTERRUPT Error: Interrupted!"), False),
        (OSError("INTERRUPT Error: Interrupted!"), False),
        (duckdb.OutOfMemoryException("Out of Memory Error: no"), False),
        (duckdb.InternalException("INTERNAL Error: no"), False),
        (MemoryError(), False),
    ],
)
def test_what_another_question_would_meet_too_is_a_fault_of_the_source(error: Exception, of_source: bool) -> None:
    fault = engine_fault(error)
    assert isinstance(fault, Fault) and fault.of_source is of_source


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write files in which table a has one text that is not UTF-8, which reading the file's head does not reveal."""
    pq.write_table(pa.table({"v": [1, 2, 3] * 100}), tmp_path / "b.parquet")
    write(tmp_path, b"\xff\xfe")
    place = tmp_path / "p.yaml"
    place.write_text(POLICY.format(source="b.parquet"))
    return place


def write(folder: Path, text: bytes) -> None:
    texts = pa.array([b"x", text] * 150, pa.binary())
    table = pa.table({"v": [1, 2, 3] * 100, "name": pa.Array.from_buffers(pa.string(), 300, texts.buffers())})
    pq.write_table(table, folder / "a.parquet")


def outcome(session: Session, sql: str) -> tuple[str, bool]:
    try:
        session.execute(sql)
    except Error as error:
        return error.slug, error.charged
    return "", True


def test_a_damaged_file_is_charged_for_once(files: Path) -> None:
    question = "SELECT COUNT(*) AS n FROM a WHERE name = 'x' AND v > {}"
    with open_session(files, create_ledger=True) as session:
        assert outcome(session, question.format(0)) == ("engine_failed", True)
        spent = session.budget().spent
        for number in range(1, 6):
            assert outcome(session, question.format(number)) == ("source_closed", False)
        assert session.budget().spent == spent
        assert outcome(session, "SELECT COUNT(*) AS n FROM b") == ("", True), "other tables are answered"
        write(files.parent, b"yy")
        assert outcome(session, question.format(0)) == ("", True), "the file was mended"
        assert outcome(session, question.format(1)) == ("", True)


def test_a_file_that_is_replaced_while_it_is_read_is_said_to_have_changed(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure of such a query is no fault of the new file, which is answered at once."""
    read = DuckDBEngine.run

    def run(engine: DuckDBEngine, query: EngineQuery, seconds: float | None = None) -> ExactAnswer:
        (files.parent / "a.parquet").write_bytes(b"not yet whole")
        return read(engine, query, seconds)

    with open_session(files, create_ledger=True) as session:
        write(files.parent, b"yy")
        with monkeypatch.context() as patched:
            patched.setattr(DuckDBEngine, "run", run)
            assert outcome(session, "SELECT COUNT(*) AS n FROM a WHERE v > 1") == ("data_changed", True)
        write(files.parent, b"zz")
        assert outcome(session, "SELECT COUNT(*) AS n FROM a WHERE v > 2") == ("", True)
