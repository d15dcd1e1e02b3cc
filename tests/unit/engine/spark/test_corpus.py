"""Accepted queries of the corpus have the same exact rows in Spark as in DuckDB, or are refused with their reason.

Spark compiles every query anew, so the queries are those that cover every group, aggregate, relation, and kind of key and of term
(`support.corpus_traits`). The nightly run compares all of them, and under row privacy as well; by day PostgreSQL has those.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from sql.corpus import ACCEPTED
from support.corpus_neighbours import Hospital
from support.corpus_traits import OF_BOUNDING, covering
from support.effort import NIGHTLY, night
from support.engine_pairs import BY_HASH, Pair, check_group
from support.spark_source import SparkWorld, spark

__all__ = ["spark"]
REFUSED = frozenset({
    "expressions-regular_expressions", "expressions-angles",
    "value_places-beside_clips", "value_places-a_total_beside_clips", "value_places-chosen_beside_a_total",
    *(case.id for case in ACCEPTED if case.group in ("samples", "clipping")),
})  # fmt: skip
"""In every query about clipping, a clip binds: the persons of these hospitals may have 5,000 rows each."""


@pytest.fixture(scope="module", params=["hospital", night("hospital_rows")])
def pair(request: pytest.FixtureRequest, spark: Any) -> Iterator[Pair]:
    both = Pair(request.param, lambda policy: SparkWorld(policy, spark))
    yield both
    both.other.close()


@cache
def questions(by_rows: bool) -> frozenset[str]:
    """Return the queries to compare, for protected persons or for protected rows."""
    if NIGHTLY:
        return frozenset(case.id for case in ACCEPTED)
    return covering(Hospital("hospital"), OF_BOUNDING if by_rows else None)


@pytest.mark.parametrize("group", sorted({case.group for case in ACCEPTED}))
def test_exact_rows_are_the_same(pair: Pair, group: str) -> None:
    check_group(pair, group, REFUSED, questions(pair.hospital.by_rows))


@pytest.mark.parametrize(("by_rows", "least"), [(False, 50), (True, 25)])
def test_questions_of_every_group_are_compared_or_refused(by_rows: bool, least: int) -> None:
    chosen = questions(by_rows)
    assert len(chosen - BY_HASH - REFUSED) >= least
    assert {case.group for case in ACCEPTED if case.id in chosen} == {case.group for case in ACCEPTED}


def test_refusals_name_cases_of_the_corpus() -> None:
    assert {case.id for case in ACCEPTED} >= REFUSED
