"""Accepted questions of the corpus have the same exact rows in Spark as in DuckDB, or are refused with their reason.

Spark compiles every query anew, so the questions are those that cover every group, aggregate, relation, and kind of key and of
term (`support.corpus_traits`); DPSQL_SPARK_CORPUS=all runs all of them, as the nightly run does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from sql.corpus import ACCEPTED
from support.corpus_neighbours import Hospital
from support.corpus_traits import covering
from support.engine_pairs import BY_HASH, Pair, check_group
from support.spark_source import SparkWorld, spark

__all__ = ["spark"]
REFUSED = frozenset({
    "expressions-regular_expressions", "expressions-angles",
    *(case.id for case in ACCEPTED if case.group in ("samples", "clipping")),
})  # fmt: skip
"""A clip binds in every question about clipping: the persons of these hospitals may have 5,000 rows each."""


@pytest.fixture(scope="module", params=["hospital", "hospital_rows"])
def pair(request: pytest.FixtureRequest, spark: Any) -> Iterator[Pair]:
    both = Pair(request.param, lambda policy: SparkWorld(policy, spark))
    yield both
    both.other.close()


@pytest.fixture(scope="module")
def chosen() -> frozenset[str]:
    every = os.environ.get("DPSQL_SPARK_CORPUS") == "all"
    return frozenset(case.id for case in ACCEPTED) if every else covering(Hospital("hospital"))


@pytest.mark.parametrize("group", sorted({case.group for case in ACCEPTED}))
def test_exact_rows_are_the_same(pair: Pair, chosen: frozenset[str], group: str) -> None:
    check_group(pair, group, REFUSED, chosen)


def test_questions_of_every_group_are_compared_or_refused(chosen: frozenset[str]) -> None:
    assert len(chosen - BY_HASH - REFUSED) >= 50
    assert {case.group for case in ACCEPTED if case.id in chosen} == {case.group for case in ACCEPTED}


def test_refusals_name_cases_of_the_corpus() -> None:
    assert {case.id for case in ACCEPTED} >= REFUSED
