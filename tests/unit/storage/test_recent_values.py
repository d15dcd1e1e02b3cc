"""A cache of recent values: how many, which ones, and the state after a failure."""

from __future__ import annotations

import pytest

from dpsql.storage.recent_values import RecentValues


def test_a_value_is_made_once_while_it_is_kept() -> None:
    values: RecentValues[list[int]] = RecentValues(2)
    first = values.get("a", lambda: [1])
    assert values.get("a", lambda: [2]) is first


def test_the_value_that_was_used_longest_ago_leaves_first() -> None:
    values: RecentValues[int] = RecentValues(2)
    values.get("a", lambda: 1)
    values.get("b", lambda: 2)
    values.get("a", lambda: 0)
    values.get("c", lambda: 3)
    assert [values.get(key, lambda: 9) for key in ("a", "c", "b")] == [1, 3, 9]


def test_a_value_that_could_not_be_made_is_made_at_the_next_request() -> None:
    values: RecentValues[float] = RecentValues(2)
    with pytest.raises(ZeroDivisionError):
        values.get("a", lambda: 1 / 0)
    assert values.get("a", lambda: 7.0) == 7.0
