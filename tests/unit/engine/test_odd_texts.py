"""Texts with NUL, and bytes that are not text, in Parquet files: DuckDB (from a prepared copy) and Spark count the same rows, as
values, as group keys and as keys of persons."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support.exact_session import exact_session
from support.gates import NoiselessGate
from support.spark_source import spark

from dpsql.engine.duckdb.engine import open_duckdb
from dpsql.engine.registry import open_engine
from dpsql.policy import load_policy

__all__ = ["spark"]
POLICY = """
dataset: odd
source: {source}
privacy_unit: {{table: t, column: person}}
budget: {{epsilon: 100, delta: 1e-6, accountant: pure}}
per_query: {{epsilon: 1}}
ledger: sqlite:///ledger.db
tables:
  t:
    source: {file}
    max_rows: 3
    columns:
      person: {{type: text, nullable: false}}
      word: {{type: text}}
"""
WORDS = [b"a", b"a\0", b"a\0b", b"\0", b"", None, b"a", b"b", b"A\0", b"\0\0", b"a\0"]
NO_TEXTS = [b"\xff\xfe", b"a\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"a\xff", b"a\0\xff"]
PERSONS = [b"p", b"p\0", b"p\0q", b"P", b"\0", b"", b"p\xff"]
QUESTIONS = (
    "SELECT word, COUNT(*) FROM t GROUP BY word",
    "SELECT lower(word) AS k, COUNT(*) FROM t GROUP BY lower(word)",
    "SELECT k, COUNT(*) FROM (SELECT word || 'x' AS k FROM t) GROUP BY k",
    "SELECT length(word) AS k, COUNT(*) FROM t GROUP BY length(word)",
    "SELECT COUNT(*) FROM t WHERE word LIKE 'a_'",
    "SELECT COUNT(*) FROM t WHERE word ILIKE 'A%b'",
    "SELECT COUNT(*) FROM t WHERE word > 'a' AND word < 'b'",
    "SELECT COUNT(*) FROM t WHERE strpos(word, 'b') = 3 OR replace(word, 'a', 'c') = 'c'",
    "SELECT COUNT(DISTINCT word), COUNT(DISTINCT person), COUNT(*) FROM t WHERE trim(word) <> ''",
    "SELECT COUNT(*), COUNT(word), COUNT(DISTINCT word), COUNT(DISTINCT person) FROM t",
)


def texts(values: list[bytes | None]) -> pa.Array:
    """Return bytes as a column of texts, without validation."""
    return pc.cast(pa.array(values, pa.binary()), options=pc.CastOptions(pa.string(), allow_invalid_utf8=True))


@pytest.mark.slow
def test_duckdb_and_spark_count_the_same_rows(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows whose person is not valid text belong to no one, and words that are not valid text are NULL, in every function."""
    monkeypatch.setenv("DPSQL_CACHE", str(tmp_path / "cache"))
    words = [*WORDS, *NO_TEXTS]
    pairs = [(PERSONS[number % len(PERSONS)], word) for number, word in enumerate(words)]
    persons, own = zip(*pairs, strict=True)
    pq.write_table(pa.table({"person": texts(list(persons)), "word": texts(list(own))}), tmp_path / "t.parquet")
    answers = {}
    for name, source, opened in (("duckdb", "t.parquet", open_duckdb), ("spark", "spark://local[2]", None)):
        place = tmp_path / f"{name}.yaml"
        place.write_text(POLICY.format(source=source, file=tmp_path / "t.parquet"))
        more = {"opened": opened or (lambda policy: open_engine(policy, spark))}
        with exact_session(load_policy(place), None, tmp_path / f"{name}.db", NoiselessGate(1), **more) as session:
            if name == "duckdb":
                assert [state.state for state in session.context.index.prepare(copy=True)] == ["written"]
            answers[name] = [sorted(map(repr, session.execute(sql).rows())) for sql in QUESTIONS]
    for sql, ours, theirs in zip(QUESTIONS, answers["duckdb"], answers["spark"], strict=True):
        assert ours == theirs, sql
    kept = [(person, word) for person, word in pairs if b"\xff" not in person]
    groups: dict[bytes | None, int] = {}
    for _, word in kept:
        text = None if word in NO_TEXTS else word
        groups[text] = groups.get(text, 0) + 1
    expected = [(None if word is None else word.decode(), count) for word, count in groups.items()]
    assert answers["spark"][0] == sorted(map(repr, expected))
    assert answers["spark"][-1] == [
        repr((len(kept), sum(w in WORDS and w is not None for _, w in kept), len(groups) - 1, 6))
    ]
