"""The same hospital in DuckDB and in another engine, and the comparison of their exact answers over the corpus."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sql.corpus import ACCEPTED, Case

from dpsql.errors.exceptions import Error
from dpsql.policy import Policy
from dpsql_audit.observation import Observed
from support.corpus_neighbours import Hospital
from support.neighbouring_hospitals import together

BY_HASH = {
    "clipping-with_caps", "doors-bigquery_options", "group_bounds-fewer_groups", "private_keys-max_groups", "private_keys-max_groups_and_rows",
    "public_keys-max_groups", "public_keys-max_rows_per_group", "public_keys-both_caps", "public_keys-cap_of_all_rows",
    "windows-first_visit", "windows-first_three", "windows-values_of_other_rows", "windows-cost_of_the_longest_visit", "quantiles-capped_rows",
    "quantiles-capped_groups", "modes-mode_with_capped_rows_per_group", "min_units-an_option_of_the_select",
    *(case.id for case in ACCEPTED if case.group in ("samples", "value_places")),
}  # fmt: skip
"""Queries whose kept rows, first row among equals, or sample depends on the keyed hash. Each engine has its own hash, so the rows
differ."""
OPTIONS_OF_UNITS = ("clip_rows", "values_rows")
"""Refusals of options that bound a unit with several rows."""


def takes_its_options(case: Case, rows: bool) -> bool:
    """Return whether the policy accepts a case's options. `rows`: the policy protects single rows."""
    return not (rows and any(f"refused {slug}" in str(case.marks.get("rows")) for slug in OPTIONS_OF_UNITS))


def unbounded(policy: Policy) -> Policy:
    """Return the policy with max_rows so large that no row is dropped: the hash decides which rows stay, and engines' hashes
    differ."""
    tables = {
        name: replace(table, bounds=replace(table.bounds, max_rows=5000)) if (table.bounds.max_rows or 0) > 1 else table
        for name, table in policy.tables.items()
    }
    return replace(policy, tables=tables)


class Pair:
    """The same hospital in both engines; `world` opens the other engine over a policy."""

    def __init__(self, name: str, world: Callable[[Policy], Any]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            from support import corpus_neighbours

            original = corpus_neighbours.policy
            patch.setattr(corpus_neighbours, "policy", lambda wanted: unbounded(original(wanted)))
            self.hospital = Hospital(name)
        self.other = world(self.hospital.policy)
        self.other.load(together(self.hospital.base, {}))

    def observed(self, case: Case) -> tuple[Observed, Observed]:
        return self.hospital.observe(case, self.hospital.crowd), self.hospital.observe(case, self.other)


def measured(observed: Observed) -> list[Any]:
    return [vars(block) for block in observed.blocks]


def check_group(pair: Pair, group: str, refused: frozenset[str], chosen: frozenset[str] | None = None) -> None:
    """Check that the queries of a corpus group (or those of `chosen`) have equal exact rows, or are refused with a reason where
    `refused` names them."""
    compared = 0
    cases = [case for case in ACCEPTED if case.group == group and (chosen is None or case.id in chosen)]
    for case in cases:
        try:
            ours, theirs = pair.observed(case)
        except Error as error:
            assert error.slug in OPTIONS_OF_UNITS and pair.hospital.by_rows, case.id
            compared += 1
            continue
        if case.id in refused and ours.outcome == "answered":
            assert "engine_function" in theirs.outcome and not theirs.charged and theirs.engine_sql == [], case.id
            continue
        assert ours.outcome.split("\n")[0] == theirs.outcome.split("\n")[0], case.id
        assert (ours.columns, ours.charges) == (theirs.columns, theirs.charges), case.id
        if case.id not in BY_HASH:
            assert measured(ours) == measured(theirs), case.id
            compared += 1
    assert compared > 0 or {case.id for case in cases} <= BY_HASH | refused
