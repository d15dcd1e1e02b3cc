"""The policy's keys for stored releases and projects."""

from __future__ import annotations

from fractions import Fraction

import pytest
from support.hospital_file import POLICY

from dpsql.policy import ProjectLimit, ReusePolicy, parse_policy, policy_problems
from dpsql.pricing.options import Options


def test_reuse_projects_and_data_version_have_defaults() -> None:
    policy = parse_policy(POLICY)
    assert policy.reuse == ReusePolicy("on", shared=True, more_accurate=True)
    assert policy.projects == {}
    assert policy.data_version is None
    assert Options.of_policy(policy).reuse == "on"


def test_every_key_of_reuse_and_projects_arrives() -> None:
    more = "reuse: {default: off, shared: false, more_accurate: false}\ndata_version: 2026-11\n"
    policy = parse_policy(more + "projects: {flu: {epsilon: 0.5, delta: 1e-7}}\n" + POLICY)
    assert policy.reuse == ReusePolicy("off", shared=False, more_accurate=False)
    assert policy.data_version == "2026-11"
    assert policy.projects == {"flu": ProjectLimit(Fraction(1, 2), Fraction(1, 10**7))}
    assert not Options.of_policy(policy).reuse


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("reuse: {default: sometimes}", "$.reuse.default"),
        ("reuse: {shraed: true}", "$.reuse.shraed"),
        ("projects: {flu: {epsilon: 1001}}", "$.projects.flu.epsilon"),
        ("projects: {flu: {epsilon: 1, delta: 1e-5}}", "$.projects.flu.delta"),
        ("projects: {flu: {epsilon: 1}, Flu: {epsilon: 1}}", "$.projects.Flu"),
        ("projects: {flu: 1}", "$.projects.flu"),
        ("data_version: ''", "$.data_version"),
    ],
)
def test_mistakes_are_told_with_their_place(line: str, path: str) -> None:
    assert [place for place, _ in policy_problems(f"{line}\n{POLICY}")] == [path]


@pytest.mark.parametrize("line", ["reuse: {shared: false}", "data_version: a", "projects: {flu: {epsilon: 1}}"])
def test_the_version_of_the_policy_knows_them_and_its_meaning_does_not(line: str) -> None:
    """The meaning of a stored number does not depend on who may see it, but the version that charges record does."""
    policy, other = parse_policy(POLICY), parse_policy(f"{line}\n{POLICY}")
    assert policy.version != other.version
    assert policy.meaning == other.meaning
