"""Contribution bounds: the smallest one, and the fingerprints by which stored releases are found."""

from __future__ import annotations

from fractions import Fraction

import pytest
from support.places import POLICIES

from dpsql.plan.canonical_text import canonical_text
from dpsql.plan.plan import Caps
from dpsql.policy import ContributionBounds, load_policy
from dpsql.policy.types import BOUND_NAMES, UNBOUNDED


@pytest.mark.parametrize("name", BOUND_NAMES)
def test_the_smallest_of_each_bound_holds_wherever_it_is_set(name: str) -> None:
    small, large = ContributionBounds(**{name: 3}), ContributionBounds(**{name: 8})
    assert large.tightened(UNBOUNDED, small) == small.tightened(large) == small == UNBOUNDED.tightened(small)
    assert small.declared() == {name: 3}


def test_bounds_are_tightened_apart_from_each_other() -> None:
    table = ContributionBounds(max_rows=5, max_groups=2, max_count=9)
    asked = ContributionBounds(max_groups=3, max_rows_per_group=1, max_total=Fraction(1, 2), max_count=7)
    assert asked.tightened(table) == ContributionBounds(5, 2, 1, Fraction(1, 2), 7)


@pytest.mark.parametrize(
    ("bounds", "drops"),
    [
        (ContributionBounds(max_groups=1), True),
        (ContributionBounds(max_rows_per_group=1), True),
        (ContributionBounds(max_rows=1, max_total=Fraction(1), max_count=1), False),
    ],
)
def test_bounds_by_group_alone_drop_rows_after_grouping(bounds: ContributionBounds, drops: bool) -> None:
    assert bounds.drops_rows_by_group is drops


def test_fingerprints_do_not_depend_on_how_bounds_are_held() -> None:
    """They name stored releases: the texts and digests are those of the version that stored each bound in its owner."""
    caps = Caps(20, 4, ContributionBounds(max_groups=4, max_rows_per_group=2))
    assert canonical_text(caps) == "Caps(rows_per_unit=int:20,groups=int:4,max_groups=int:4,max_rows_per_group=int:2)"
    policy = load_policy(POLICIES / "hospital.yaml")
    assert policy.meaning == "12f23fbf1058a22cdc0f0758cbc7c67245ed6a24a9484a64d47469dc69396413"
    assert policy.version == "761bc5d22d7b58bd050e46bb548e7b1edf7a9946a4ca6c7d19ee6947b3a580a6"
