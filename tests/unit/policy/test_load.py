"""For any file content, the reader returns problems or a policy, and never raises an exception."""

from __future__ import annotations

import json
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from support.clinic_policy import CLINIC

from dpsql.policy import parse_policy, policy_problems
from dpsql.policy.problems import Problems
from dpsql.policy.yaml_text import read_yaml
from dpsql.privacy.loss import exact_number

LINES = CLINIC.splitlines()
FRAGMENTS = ["{", "}", "[", "]", ":", ",", "null", "~", "- ", "1e-6", "NaN", "tables", "''", "\n", "  ", "&a", "é"]
KEYS = ["dataset", "privacy_unit", "budget", "ledger", "tables", "columns", "type", "foreign_keys", "unique", "x"]

trees = st.recursive(
    st.none() | st.sampled_from(["row", "1", "text", "patients.patient_id", "true", "a b", ""]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(KEYS), below, max_size=5),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), trees, max_size=6))
def test_any_tree_is_answered(tree: dict[str, object]) -> None:
    for path, sentence in policy_problems(json.dumps(tree)):
        assert path.startswith("$")
        assert sentence


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(CLINIC)), st.integers(0, 30), st.lists(st.sampled_from(FRAGMENTS), max_size=3))
def test_any_damage_is_answered(start: int, length: int, fragments: list[str]) -> None:
    text = CLINIC[:start] + "".join(fragments) + CLINIC[start + length :]
    if not policy_problems(text):
        parse_policy(text)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(LINES) - 1), st.integers(0, len(LINES) - 1))
def test_a_missing_or_repeated_line_is_answered(first: int, second: int) -> None:
    policy_problems("\n".join(LINES[:first] + LINES[first + 1 :]))
    policy_problems("\n".join([*LINES[:first], LINES[second], *LINES[first:]]))


@settings(max_examples=200, deadline=None)
@given(st.decimals(min_value=-(10**15), max_value=10**15, allow_nan=False, places=6))
def test_numbers_arrive_exactly_as_fractions(number: object) -> None:
    text = CLINIC.replace("lower: 0, upper: 5000", f"lower: {number}, upper: {number}")
    cost = parse_policy(text).tables["visits"].columns["cost"]
    assert cost.lower == cost.upper == exact_number(str(number)) == Fraction(str(number))


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=20))
def test_quoted_text_arrives_unchanged(value: str) -> None:
    tree = read_yaml(json.dumps({"domain": [value, None, "null", "~"]}, ensure_ascii=False), Problems())
    assert tree == {"domain": [value, None, "null", "~"]}
