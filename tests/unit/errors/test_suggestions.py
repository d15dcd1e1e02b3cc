"""Hints for unknown names: similar names are proposed, otherwise names are listed; a long name costs no more than a short one."""

from __future__ import annotations

import pytest

from dpsql.errors.exceptions import MOST_COMPARED, MOST_LISTED, did_you_mean, nearest, suggestion


@pytest.mark.parametrize(("name", "near"), [("visit", "Visits"), ("VISITS", "Visits"), ("labz", "labs"), ("q", None)])
def test_the_nearest_name_is_found_without_regard_to_case(name: str, near: str | None) -> None:
    assert nearest(name, ["labs", "Visits"]) == near


def test_a_sentence_ends_with_the_near_name_or_as_it_was() -> None:
    assert did_you_mean("visit", ["labs", "visits"]) == "; did you mean visits?"
    assert did_you_mean("q", ["labs", "visits"]) == ""


def test_a_hint_lists_names_in_order_where_none_is_near() -> None:
    assert suggestion("visit", ["visits"]) == "did you mean visits?"
    assert suggestion("q", ["visits", "labs", "visits"]) == "known here: labs, visits"
    assert suggestion("q", []) == ""
    many = [f"table_{number:02}" for number in range(MOST_LISTED + 1)]
    assert suggestion("q", many) == "known here: " + ", ".join(many[:-1]) + ", ..."


def test_a_long_name_is_compared_by_its_beginning_alone() -> None:
    name = "v" * MOST_COMPARED
    assert nearest(name + "x" * 100_000, [name]) == name
