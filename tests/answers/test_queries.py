"""Every query of the corpus is answered with the engine's own value at a huge epsilon, or refused as its mark states."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from support.exact_session import assert_equal, exact_session

from answers import coverage_corpus as corpus
from answers import coverage_data
from dpsql.errors.exceptions import Error
from dpsql.session.session import Session

CASES = {f"{case.theme}-{case.name}": case for theme in corpus.THEMES for case in corpus.cases(theme)}
EPSILON = {"tpch": 1000, "clickbench": 13_000, "bi": 4500}
"""Units in few private keys have larger weights than those in as many as 500 or 200 keys. The ratio tends to one as epsilon
grows; here it is below 2, so that the gate distinguishes two units from one (`NoiselessGate`)."""
World = tuple[duckdb.DuckDBPyConnection, Session]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, World]]:
    """Yield data and a noiseless session for each theme."""
    folder = tmp_path_factory.mktemp("coverage")
    made: dict[str, World] = {}
    for theme, policy in coverage_data.POLICIES.items():
        connection = coverage_data.build(theme)
        made[theme] = (connection, exact_session(policy, connection, folder / f"{theme}.db"))
        made[theme][1].execute(f"SET dp.epsilon = {EPSILON[theme]}")
    yield made
    for _, session in made.values():
        session.close()


@pytest.mark.parametrize("name", CASES)
def test_each_query_has_its_answer_or_refusal(worlds: dict[str, World], name: str) -> None:
    case = CASES[name]
    connection, session = worlds[case.theme]
    if case.refused:
        with pytest.raises(Error) as refusal:
            session.execute(case.sql)
        assert (refusal.value.slug, refusal.value.charged) == (case.refused, False)
        return
    release = session.execute(case.sql)
    expected = connection.execute(case.compare or case.sql).fetchall()
    assert bool(expected) != bool(case.empty)
    assert_equal(case.sql, release, expected)


def test_each_refusal_has_a_reason() -> None:
    """Every refusal has a reason, inherent or a gap; an answered query is not a gap; names are unique."""
    for case in CASES.values():
        assert case.what and case.sql
        assert not case.refused or bool(case.why) != bool(case.gap), case.name
        assert case.refused or not case.gap, case.name
    assert len(CASES) == sum(len(corpus.cases(theme)) for theme in corpus.THEMES)


def test_the_corpus_has_all_of_its_queries() -> None:
    """All of TPC-H, all of ClickBench, and queries of BI tools."""
    assert [len(corpus.cases(theme)) for theme in ("tpch", "clickbench")] == [22, 43]
    assert len(corpus.cases("bi")) >= 60


def test_the_page_is_that_of_the_corpus() -> None:
    """docs/coverage.md is current; `python tests/answers/coverage_corpus.py` regenerates it."""
    assert Path(corpus.DOCUMENT).read_text(encoding="utf-8") == corpus.document()
