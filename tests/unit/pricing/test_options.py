"""Each option refuses what is no value of it, and respects the policy's limits."""

from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import pytest

from dpsql.errors.exceptions import Error
from dpsql.policy import Analyst, parse_policy
from dpsql.policy.types import BOUND_NAMES
from dpsql.pricing.options import Options

POLICY = parse_policy("""
dataset: d
source: duckdb:///d.duckdb
privacy_unit: {table: t, column: id}
budget: {epsilon: 10, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 1e-9, max_groups: 5, min_epsilon: 0.01}
reuse: {default: derive}
projects: {flu: {epsilon: 2}}
ledger: sqlite:///d.db
tables:
  t: {max_rows: 7, columns: {id: {type: integer}}}
""")
DEFAULTS = Options.of_policy(POLICY)

NO_BOUND = (
    "0", "-1", "1000000001", "1000000000000", "1.5", "", "x", "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT ONE}",
    "+1",
)  # fmt: skip
NO_POSITIVE = ("0", "-1", "nan", "inf", "", "x")
UNREAD: dict[str, tuple[str, ...]] = {
    "epsilon": (*NO_POSITIVE, "none"),
    "delta": ("-1e-9", "1", "none", "nan"),
    "mechanism": ("", "none", "constant", "square_root"),
    "max_groups": (*NO_BOUND, "auto"),
    "max_rows_per_group": NO_BOUND,
    "confidence": ("0.49999", "0.99991", "1", "none"),
    "target_error": (*NO_POSITIVE, "off", "default"),
    "nonnegative": ("", "yes", "2", "none"),
    "shrinkage": ("none",),
    "reuse": ("", "none", "auto"),
    "unknown": ("none", ""),
    "simultaneous": ("none",),
    "quantile_bars": ("none",),
    "bars": ("wide",),
    "dialect": ("postgres", "none"),
    "assume_rows": (*NO_BOUND, "none", "default"),
    "max_total": (*NO_POSITIVE, "off"),
    "max_count": (*NO_BOUND, "off"),
    "max_values": (*NO_BOUND, "off"),
    "threshold": ("1000000000000000001", "-1000000000000000001", "nan", "", "default"),
    "watch": ("", "x" * 41, "a b", "a/b", "\N{LATIN SMALL LETTER E WITH ACUTE}", "a\n"),
    "proposed_sensitivity": (*NO_POSITIVE, "auto"),
    "hits": (*NO_BOUND, "none", "10001"),
    "min_units": (*NO_BOUND, "auto"),
    "workload": ("", "none", "derive"),
    "correlation": ("-0.1", "1", "none"),
    "on_behalf_of": ("x" * 101, "a\nb", "a\x1b[2J", "a\N{RIGHT-TO-LEFT OVERRIDE}b", "\N{ZERO WIDTH SPACE}", "\ud800"),
}
"""For each option, invalid texts."""


def with_value(name: str, text: str) -> Options:
    return DEFAULTS.with_value(name, text, POLICY)


def test_an_analyst_s_answers_have_bars_beside_them_if_the_policy_says_so() -> None:
    ann, bob = (Analyst(Fraction(1), None, bars=bars) for bars in (True, False))
    policy = replace(POLICY, analysts={"ann": ann, "bob": bob})
    assert [Options.of_policy(policy, None, name).bars for name in ("ann", "bob", None)] == [True, False, False]


def test_every_option_is_tried() -> None:
    assert {name.removeprefix("dp.") for name in DEFAULTS.show()} == UNREAD.keys() | {"project"}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in UNREAD.items() for text in texts])
def test_other_values_are_refused(name: str, text: str) -> None:
    with pytest.raises(Error) as refused:
        with_value(name, text)
    assert refused.value.slug == "option_value" and f"dp.{name}" in refused.value.text()


# --- defaults ---------------------------------------------------------------------------------------------------------


def test_every_field_of_options_has_an_option() -> None:
    names = {entry.name for entry in fields(Options)} - {"bounds", "cut_totals", "cut_counts", "choose_values"}
    assert names | (set(BOUND_NAMES) - {"max_rows"}) == UNREAD.keys() | {"project"}


# --- limits of the policy ---------------------------------------------------------------------------------------------


def slug_of(name: str, text: str, **per_query: Any) -> str:
    policy = replace(POLICY, per_query=replace(POLICY.per_query, **per_query))
    try:
        DEFAULTS.with_value(name, text, policy)
    except Error as error:
        return error.slug
    return ""


@pytest.mark.parametrize(
    ("name", "text", "per_query", "slug"),
    [
        ("epsilon", "10", {}, ""),
        ("epsilon", "10.001", {}, "option_limit"),
        ("epsilon", "3", {"max_epsilon": Fraction(3)}, ""),
        ("epsilon", "3.001", {"max_epsilon": Fraction(3)}, "option_limit"),
        ("epsilon", "0.01", {}, ""),
        ("epsilon", "0.0099", {}, "option_floor"),
        ("epsilon", "0.0001", {"min_epsilon": Fraction(0)}, ""),
        ("delta", "1e-9", {}, ""),
        ("delta", "1.1e-9", {}, "option_limit"),
        ("delta", "0", {}, ""),
        ("min_units", "20", {"min_units": 20}, ""),
        ("min_units", "21", {"min_units": 20}, ""),
        ("min_units", "19", {"min_units": 20}, "option_least"),
        ("min_units", "none", {"min_units": 20}, "option_least"),
        ("min_units", "none", {}, ""),
        ("project", "other", {}, "project_unknown"),
        ("project", "flu", {}, ""),
        ("target_error", "1e9", {}, ""),
    ],
)
def test_limits_of_the_policy_hold_up_to_their_ends(name: str, text: str, per_query: dict[str, Any], slug: str) -> None:
    assert slug_of(name, text, **per_query) == slug
