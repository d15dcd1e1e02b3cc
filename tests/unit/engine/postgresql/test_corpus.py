"""Accepted queries of the corpus have the same exact rows on PostgreSQL as on DuckDB, or are refused with their reason."""

from collections.abc import Iterator
from functools import cache

import pytest
from sql.corpus import ACCEPTED
from support.corpus_neighbours import Hospital
from support.corpus_traits import OF_BOUNDING, SPREAD, covering
from support.effort import NIGHTLY
from support.engine_pairs import BY_HASH, Pair, check_group, measured
from support.postgres_source import Server, ServerWorld, server

from dpsql.engine.dialect import Dialect
from dpsql.engine.duckdb.dialect import DuckDBDialect
from dpsql.engine.postgresql.dialect import PostgreSQLDialect

__all__ = ["server"]
REFUSED = frozenset(
    {
        "expressions-angles",
        "expressions-exponential_keeps_bounds",
        "expressions-power",
        "expressions-regular_expressions",
        "samples-statistics_of_samples_by_private_keys",
    }
)


@pytest.fixture(scope="module", params=["hospital", "hospital_rows"])
def pair(request: pytest.FixtureRequest, server: Server) -> Iterator[Pair]:
    both = Pair(request.param, lambda policy: ServerWorld(policy, server.database()))
    yield both
    both.other.close()


@cache
def questions(by_rows: bool) -> frozenset[str]:
    """Return the queries to compare: by day those with syntax that no earlier one has, and for protected rows those that bound
    them differently; at night all."""
    if by_rows and not NIGHTLY:
        return covering(Hospital("hospital"), OF_BOUNDING)
    return frozenset(case.id for case in (ACCEPTED if NIGHTLY else SPREAD))


def one_sample(self: Dialect, key: str, content: list[str], samples: int) -> str:
    """Replace the hash that assigns samples: all units are in the same one."""
    return "CAST(0 AS bigint)"


def test_samples_have_the_same_statistics(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    for dialect in (DuckDBDialect, PostgreSQLDialect):
        monkeypatch.setattr(dialect, "sample_number", one_sample)
    compared = 0
    for case in ACCEPTED:
        if case.group == "samples" and case.id not in REFUSED:
            ours, theirs = pair.observed(case)
            assert ours.outcome.split("\n")[0] == theirs.outcome.split("\n")[0], case.id
            assert measured(ours) == measured(theirs), case.id
            compared += 1
    assert compared > 4


def same_order(self: Dialect, key: str, content: list[str]) -> str:
    """Replace the hash: rows and values of a unit are in the order of their content, which both engines share."""
    return "CAST(0 AS bigint)"


def test_values_that_units_bring_are_the_same(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    if pair.hospital.by_rows:
        return  # the option is refused
    for dialect in (DuckDBDialect, PostgreSQLDialect):
        monkeypatch.setattr(dialect, "keyed_order", same_order)
    monkeypatch.setattr(DuckDBDialect, "most_places", 0)  # limits of hashes leave out groups of one hash (`group_caps`)
    compared = 0
    for case in ACCEPTED:
        if case.group == "value_places":
            ours, theirs = pair.observed(case)
            assert ours.outcome == theirs.outcome == "answered", case.id
            assert measured(ours) == measured(theirs), case.id
            compared += 1
    assert compared > 8


@pytest.mark.parametrize("group", sorted({case.group for case in ACCEPTED}))
def test_exact_rows_are_the_same(pair: Pair, group: str) -> None:
    check_group(pair, group, REFUSED, questions(pair.hospital.by_rows))


def test_refusals_and_exceptions_name_cases_of_the_corpus() -> None:
    assert {case.id for case in ACCEPTED} >= REFUSED | BY_HASH
