"""`mechanisms` of a policy: what needs a rare mechanism that is left out is refused before its charge, and nothing else changes."""

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from sql.corpus import ACCEPTED, Case
from support.corpus_neighbours import Hospital
from support.export_clinic import export_session
from support.places import ROOT

from dpsql.errors.exceptions import Error
from dpsql.planning.planner import Planner
from dpsql.pricing.pricing import Price, mechanisms_of
from dpsql.privacy.mechanisms.registry import ANNEX_OF, ANNEXES
from dpsql.session.row_export import RowExport


@lru_cache(maxsize=1)
def hospital() -> Hospital:
    return Hospital("hospital")


def planner(*allowed: str) -> Planner:
    return Planner(replace(hospital().policy, mechanisms=allowed), hospital().none.engine)


def annexes(price: Price) -> set[str]:
    """Return the annexes of all mechanisms of a price."""
    words = (ANNEX_OF.get(word) for block in price.blocks for word in mechanisms_of(block))
    return {annex for annex in words if annex is not None}


def outcome(case: Case, under: Planner) -> Price | Error:
    """Return the price of a query, or its refusal."""
    with hospital().none.options(case.marks.get("set", [])):
        statement = under.parse(case.sql, case.parameters)
        try:
            return under.plan(statement, hospital().none.session.options, not case.parameters).price
        except Error as error:
            return error


def mechanism_questions() -> Iterator[Case]:
    """Yield the queries of the corpus that name an option or a rare aggregate, and every tenth of the others."""
    rare = re.compile(r"mode|arg_|sample|median|max_by|min_by", re.IGNORECASE)
    for index, case in enumerate(ACCEPTED):
        if case.marks.get("set") or rare.search(case.sql) or index % 10 == 0:
            yield case


def test_without_rare_mechanisms_the_core_costs_the_same_and_the_rest_is_refused() -> None:
    everything, core, refused = planner(*ANNEXES), planner(), set()
    for case in mechanism_questions():
        free, bound = outcome(case, everything), outcome(case, core)
        assert isinstance(free, Price), case.id
        if isinstance(bound, Price):
            assert not annexes(bound) and (annexes(free) or bound.loss == free.loss), case.id
        else:
            assert bound.slug == "mechanism_off" and annexes(free), (case.id, bound)
            refused |= annexes(free)
    assert refused == set(ANNEXES) - {"comparisons", "randomised_rows"}, "these two are no queries"


@pytest.mark.parametrize("annex", sorted(set(ANNEXES) - {"comparisons", "randomised_rows"}))
def test_a_named_mechanism_is_allowed_by_its_name_alone(annex: str) -> None:
    case = next(
        case for case in mechanism_questions()
        if isinstance(price := outcome(case, planner(*ANNEXES)), Price) and annexes(price) == {annex}
    )  # fmt: skip
    assert isinstance(outcome(case, planner(annex)), Price)
    refusal = outcome(case, planner(*(set(ANNEXES) - {annex})))
    assert isinstance(refusal, Error) and refusal.slug == "mechanism_off" and annex in str(refusal)


def test_rows_are_randomised_only_where_the_policy_allows_it(tmp_path: Path) -> None:
    facts: dict[str, Any] = {"mechanisms": ["comparisons"]}
    with export_session(tmp_path, 20, **facts) as session, pytest.raises(Error) as raised:
        RowExport(session, "people", ("grade", "age"), Fraction(1))
    assert raised.value.slug == "mechanism_off"


def test_the_page_names_every_rare_mechanism() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("| annex |", 1)[1].split("\n\n", 1)[0]
    assert [row.split("`")[1] for row in table.splitlines()[2:]] == list(ANNEXES)
