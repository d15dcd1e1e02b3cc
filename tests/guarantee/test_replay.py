"""Deterministic replay at the noise gate (audit.md, level L0): every accepted query on many pairs of neighbours.

With the gate's outputs fixed, nothing that an analyst sees may differ between neighbours, and the gate's inputs may differ by no
more than claimed and charged. The pairs must come near the claims, or they prove little.
"""

import re
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import pytest
from sql.corpus import ACCEPTED, Case
from support.corpus_neighbours import Hospital, judge, weakest
from support.corpus_traits import SPREAD, SYNTAX_OF_BOUNDING, spread, words
from support.effort import by_day
from support.neighbouring_hospitals import FIXED

from dpsql.plan.stability import tables
from dpsql.pricing.pricing import Price
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql_audit.distances import Verdict, compare
from dpsql_audit.replay import same_stages


def wanted(case: Case) -> Fraction:
    """Return the share of its claimed L1 that every term of a query must reach."""
    return Fraction((case.mark("loose") or "1/2").split()[0])


@lru_cache(maxsize=2)
def hospital(name: str) -> Hospital:
    return Hospital(name)


def read(price: Price) -> list[str]:
    """Return the protected tables that the query reads."""
    known = {"patients", "visits", "labs"}
    return sorted(known & {table for one in price.blocks for table in tables(one.block.source)})


def replay(place: Hospital, case: Case, enough: Fraction) -> Verdict:
    """Compare all fixed pairs, then units constructed for this query until every term comes near its claim."""
    prices = place.prices(case)
    named = read(prices["pure"])
    if not named:
        return Verdict()
    verdict = judge(prices, place.pairs(case, named))
    for start in FIXED[:3]:
        if weakest(verdict) >= enough or verdict.problems:
            break
        search = place.sharper(case, named, start)
        for _, pair in search:
            found = judge(prices, iter([pair]))
            verdict.problems += found.problems
            verdict.reach(found.reached)
            if weakest(verdict) >= enough:
                break
    return verdict


@pytest.mark.parametrize("case", by_day(SPREAD, ACCEPTED), ids=lambda case: case.id)
def test_one_entity_moves_sums_within_the_claim(case: Case) -> None:
    enough = wanted(case)
    verdict = replay(hospital("hospital"), case, enough)
    assert verdict.problems == []
    assert weakest(verdict) >= enough, {term: float(share) for term, share in verdict.reached.items()}


@lru_cache(maxsize=1)
def weighing_hospital() -> Hospital:
    """Return a hospital whose runs are observed under zCDP, where units have other weights than under pure privacy."""
    return Hospital("hospital", "zcdp")


@pytest.mark.parametrize("case", [c for c in ACCEPTED if c.group == "private_keys"], ids=lambda case: case.id)
def test_one_entity_moves_private_keys_within_the_claim_under_zcdp(case: Case) -> None:
    place = weighing_hospital()
    prices = place.prices(case)
    seen = False
    for pair in place.pairs(case, read(prices["zcdp"])):
        for name, price in prices.items():
            if ("change" in name) == pair.changed:
                left, right = same_stages(prices["zcdp"], pair.left, pair.right)
                assert compare(price, left.blocks, right.blocks).problems == [], (pair.name, name)
                seen |= any(left.counts != right.counts for left, right in zip(left.blocks, right.blocks, strict=True))
    assert seen, "no pair differs in what admits keys"


@pytest.mark.parametrize(
    "case",
    [c for c in ACCEPTED if re.search(r"\b(VAR|STDDEV|COVAR|REGR)\w*\((?!DISTINCT)", c.sql)],
    ids=lambda case: case.id,
)
def test_one_entity_moves_sums_of_variances_within_the_claim_under_zcdp(case: Case) -> None:
    """Under zCDP, squares and products are measured separately; under pure accounting they share each row."""
    place = weighing_hospital()
    prices = place.prices(case)
    reached = Verdict()
    for pair in place.pairs(case, read(prices["zcdp"])):
        for name, price in prices.items():
            if ("change" in name) == pair.changed:
                found = compare(price, *(seen.blocks for seen in same_stages(prices["zcdp"], pair.left, pair.right)))
                assert found.problems == [], (pair.name, name)
                reached.reach(found.reached)
    assert weakest(reached) >= Fraction(1, 2), reached.reached


def with_laplace(case: Case) -> Case:
    """Return the same query with Laplace noise, which `auto` chooses under zCDP only for a large epsilon."""
    return replace(case, marks={**case.marks, "set": [*case.marks.get("set", []), "dp.mechanism = laplace"]})


@pytest.mark.parametrize("case", [c for c in ACCEPTED if c.group == "public_keys"], ids=lambda case: case.id)
def test_one_entity_moves_sums_within_the_rho_of_laplace_noise(case: Case) -> None:
    place, asked = hospital("hospital"), with_laplace(case)
    prices = place.prices(asked)
    noises = [term.noise for priced in prices["zcdp"].blocks for term in priced.noise.terms]
    assert all(isinstance(noise, Laplace) for noise in noises)
    assert judge(prices, place.pairs(asked, read(prices["pure"]))).problems == []


OVER_ROWS = [case for case in ACCEPTED if not (case.mark("rows") or "refused").startswith("refused")]
"""Queries accepted under row privacy, where the same code claims and measures as for entities: keys and terms are the same."""


@pytest.mark.parametrize("case", by_day(spread(OVER_ROWS, SYNTAX_OF_BOUNDING), OVER_ROWS), ids=lambda case: case.id)
def test_one_row_moves_sums_within_the_claim(case: Case) -> None:
    verdict = replay(hospital("hospital_rows"), case, wanted(case))
    assert verdict.problems == []


@pytest.mark.parametrize(
    ("cases", "kinds", "least"), [(ACCEPTED, None, 150), (OVER_ROWS, SYNTAX_OF_BOUNDING, 60)], ids=["entities", "rows"]
)
def test_questions_of_every_kind_are_replayed(cases: list[Case], kinds: frozenset[str] | None, least: int) -> None:
    def of_kinds(asked: list[Case]) -> set[tuple[Any, ...]]:
        return {word for case in asked for word in words(case) if kinds is None or word[0] in kinds}

    chosen = spread(cases, kinds)
    assert of_kinds(chosen) == of_kinds(cases)
    assert {case.group for case in chosen} == {case.group for case in cases}
    assert len(chosen) >= least
