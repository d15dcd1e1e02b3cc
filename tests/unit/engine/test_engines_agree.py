"""Every accepted question of the corpus has the same exact rows on PostgreSQL as on DuckDB, or is refused with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sql.corpus import ACCEPTED, Case
from support.corpus_neighbours import Hospital
from support.neighbouring_hospitals import together
from support.postgres_source import Server, ServerWorld, server

from dpsql.audit.observation import Observed
from dpsql.errors.exceptions import Error
from dpsql.policy import Policy

__all__ = ["server"]
REFUSED = {
    "expressions-angles",
    "expressions-exponential_keeps_bounds",
    "expressions-power",
    "expressions-regular_expressions",
}
BY_HASH = {
    "clipping-with_caps", "doors-bigquery_options", "private_keys-max_groups", "private_keys-max_groups_and_rows",
    "public_keys-max_groups", "public_keys-max_rows_per_group", "public_keys-both_caps", "public_keys-cap_of_all_rows",
    "windows-first_visit", "windows-first_three", "windows-values_of_other_rows", "quantiles-capped_rows",
    "quantiles-capped_groups",
}  # fmt: skip
"""Rows that are dropped, or first among equals, by the keyed hash: each engine has its own, so others stay."""


def unbounded(policy: Policy) -> Policy:
    """No person has more rows than the policy keeps: which of them stay is the hash's to say, and engines' hashes differ."""
    tables = {
        name: replace(table, bounds=replace(table.bounds, max_rows=5000)) if (table.bounds.max_rows or 0) > 1 else table
        for name, table in policy.tables.items()
    }
    return replace(policy, tables=tables)


class Pair:
    """The same hospital in both engines."""

    def __init__(self, name: str, server: Server) -> None:
        with pytest.MonkeyPatch.context() as patch:
            from support import corpus_neighbours

            known = corpus_neighbours.policy
            patch.setattr(corpus_neighbours, "policy", lambda wanted: unbounded(known(wanted)))
            self.hospital = Hospital(name)
        self.other = ServerWorld(self.hospital.policy, server.database())
        self.other.load(together(self.hospital.base, {}))

    def observed(self, case: Case) -> tuple[Observed, Observed]:
        return self.hospital.observe(case, self.hospital.crowd), self.hospital.observe(case, self.other)


@pytest.fixture(scope="module", params=["hospital", "hospital_rows"])
def pair(request: pytest.FixtureRequest, server: Server) -> Iterator[Pair]:
    found = Pair(request.param, server)
    yield found
    found.other.close()


def measured(observed: Observed) -> list[Any]:
    return [vars(block) for block in observed.blocks]


@pytest.mark.parametrize("group", sorted({case.group for case in ACCEPTED}))
def test_exact_rows_are_the_same(pair: Pair, group: str) -> None:
    compared = 0
    for case in ACCEPTED:
        if case.group != group:
            continue
        try:
            ours, theirs = pair.observed(case)
        except Error as error:
            assert (error.slug, pair.hospital.by_rows) == ("clip_rows", True), case.id
            compared += 1
            continue
        if case.id in REFUSED and ours.outcome == "answered":
            assert "engine_function" in theirs.outcome and not theirs.charged and theirs.engine_sql == [], case.id
            continue
        assert ours.outcome.split("\n")[0] == theirs.outcome.split("\n")[0], case.id
        assert (ours.columns, ours.charges) == (theirs.columns, theirs.charges), case.id
        if case.id not in BY_HASH:
            assert measured(ours) == measured(theirs), case.id
            compared += 1
    assert compared > 0


def test_refusals_and_exceptions_name_cases_of_the_corpus() -> None:
    assert {case.id for case in ACCEPTED} >= REFUSED | BY_HASH
