"""For any file content, the reader returns problems or a policy, and never raises an exception."""

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.places import CLINIC

from dpsql.policy import Policy, parse_policy, policy_problems, types
from dpsql.policy.fields import json_schema, keys_of
from dpsql.policy.yaml_text import Problems, read_yaml
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


# --- misshapen values -------------------------------------------------------------------------------------------------

ODD_VALUES: list[Any] = [
    "x", "", "-1", "1", None, [], ["x"], [[]], ["x", "x"], [None], {}, {"x": "y"}, {"Timing": "1"}, {"": {}}, {"str": []},
]  # fmt: skip
TYPES: dict[tuple[str, ...], type] = {
    (): Policy,
    ("privacy_unit",): types.PrivacyUnit,
    ("budget",): types.DatasetBudget,
    ("budget", "lifetime"): types.LifetimeLimit,
    ("per_query",): types.PerQuery,
    ("session",): types.SessionLimit,
    ("analysts", "research"): types.Analyst,
    ("projects", "a"): types.ProjectLimit,
    ("reuse",): types.ReusePolicy,
    ("store",): types.StorePolicy,
    ("timing",): types.Timing,
    ("prepare",): types.Preparation,
    ("csv",): types.CsvDialect,
    ("tables", "labs"): types.Table,
    ("tables", "labs", "csv"): types.CsvDialect,
    ("tables", "labs", "columns", "value"): types.PolicyColumn,
}
"""The type of each mapping in the tree of CLINIC, which has no project before."""


def misshapen() -> Iterator[tuple[str, str]]:
    """Yield texts of policies in which one value of one mapping, or a whole mapping, is another one; each with its place."""
    for place, type_ in TYPES.items():
        keys = keys_of(type_)
        for below in [*([()] if place else []), *((key,) for key in (*keys, "unknown", type_.__name__))]:
            for value in ODD_VALUES:
                tree: Any = read_yaml(CLINIC, Problems())
                node, full = tree, (*place, *below)
                for part in full[:-1]:
                    if not isinstance(node.get(part), dict):
                        node[part] = {}
                    node = node[part]
                node[full[-1]] = value
                yield ".".join(full), json.dumps(tree)


def test_every_misshapen_value_is_answered_in_our_words() -> None:
    mappings = {name for name, schema in json_schema(Policy)["$defs"].items() if "properties" in schema}
    assert {type_.__name__ for type_ in TYPES.values()} == {"Policy", *mappings}
    always = ("timing", "prepare", "privacy_unit")  # a word or a mapping
    texts = [one for number, one in enumerate(misshapen()) if number % 5 == 0 or one[0].startswith(always)]
    assert len(texts) > 500
    for place, text in texts:
        for path, sentence in policy_problems(text):
            assert path.startswith("$")
            assert sentence.startswith("line ") and "<" not in sentence, (place, sentence)


def test_members_and_tables_are_asked_for_by_what_they_list() -> None:
    def sentence_of(text: str) -> str:
        ((_, sentence),) = policy_problems(text)
        return sentence.partition(": ")[2]

    wanted = "a list of analysts' names is expected here, such as [research, bi]"
    for members in ("x", "{research: bi}"):
        assert sentence_of(f"{CLINIC}projects: {{a: {{epsilon: 1, members: {members}}}}}\n") == wanted
    for tables in ("[]", "[labs, labs]"):
        text = CLINIC.replace("research: {epsilon: 3}", f"research: {{epsilon: 3, tables: {tables}}}")
        assert sentence_of(text) == "table names are expected here, each once"
