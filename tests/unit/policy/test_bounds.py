"""Contribution bounds: the smallest one."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dpsql.policy import ContributionBounds
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
