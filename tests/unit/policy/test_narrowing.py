"""Policy changes that a running server may adopt: those that promise no less than before."""

from dataclasses import fields, replace

import pytest
from support.places import CLINIC

from dpsql.policy import DatasetBudget, Policy, parse_policy
from dpsql.policy.versions import same_for, widened

TEXT = (
    CLINIC.replace("bi: {epsilon: 5}", "bi: {epsilon: 5, delta: 1e-7, tables: [patients, labs], "
                   "columns: {patients: [age, region]}, where: {patients: age > 5}, people: {ann: {epsilon: 1}}}")
    .replace("per_query: {epsilon: 0.1,", "per_query: {epsilon: 0.1, min_epsilon: 0.01, delta: 1e-9, min_units: 10,")
    + "projects: {flu: {epsilon: 2, members: [bi]}}\nreuse: {shared: false}\ntiming: padded\nmechanisms: [samples]\n"
)  # fmt: skip

WIDER = [
    ("dataset: clinic", "dataset: other", "dataset"),
    ("clinic.duckdb", "other.duckdb", "source"),
    ("clinic-ledger.db", "other.db", "ledger"),
    ("dataset: clinic", "dataset: clinic\nwitness: file:///share", "witness"),
    ("neighbours: add_remove", "neighbours: change_one", "neighbours"),
    ("accountant: zcdp", "accountant: pure", "budget.accountant"),
    ("budget: {epsilon: 10,", "budget: {epsilon: 11,", "budget.epsilon"),
    ("delta: 1e-6,", "delta: 2e-6,", "budget.delta"),
    ("delta: 1e-6,", "delta: 1e-6, every: month,", "budget.every"),
    ("max_epsilon: 1}", "max_epsilon: 2}", "per_query.max_epsilon"),
    (", max_epsilon: 1}", "}", "per_query.max_epsilon"),
    ("min_epsilon: 0.01", "min_epsilon: 0.009", "per_query.min_epsilon"),
    ("epsilon: 0.1, min", "epsilon: 0.2, min", "per_query.epsilon"),
    ("delta: 1e-9", "delta: 2e-9", "per_query.delta"),
    (", min_units: 10", "", "per_query.min_units"),
    ("min_units: 10", "min_units: 9", "per_query.min_units"),
    ("max_epsilon: 1}", "max_epsilon: 1, mechanism: gaussian}", "per_query"),
    ("max_epsilon: 1}", "max_epsilon: 1, timeout_seconds: 299}", "per_query"),
    ("mechanisms: [samples]\n", "mechanisms: [samples, comparisons]\n", "mechanisms"),
    ("session: {epsilon: 1}\n", "", "session"),
    ("session: {epsilon: 1}", "session: {epsilon: 2}", "session.epsilon"),
    ("research: {epsilon: 3}", "research: {epsilon: 4}", "analysts.research.epsilon"),
    ("delta: 1e-7, ", "", "analysts.bi.delta"),
    (", people: {ann: {epsilon: 1}}", "", "analysts.bi.people.ann"),
    ("ann: {epsilon: 1}", "ann: {epsilon: 2}", "analysts.bi.people.ann.epsilon"),
    ("tables: [patients, labs]", "tables: [patients, labs, visits]", "analysts.bi.tables"),
    ("tables: [patients, labs], columns: {patients: [age, region]}, where: {patients: age > 5}, ", "", "analysts.bi.tables"),
    ("[age, region]", "[age, weight]", "analysts.bi.columns.patients"),
    ("columns: {patients: [age, region]}, ", "", "analysts.bi.columns.patients"),
    ("age > 5", "age > 4", "analysts.bi.where.patients"),
    (", where: {patients: age > 5}", "", "analysts.bi.where.patients"),
    ("flu: {epsilon: 2", "flu: {epsilon: 3", "projects.flu.epsilon"),
    ("members: [bi]", "members: [bi, research]", "projects.flu.members"),
    (", members: [bi]", "", "projects.flu.members"),
    ("shared: false", "shared: true", "reuse"),
    ("timing: padded", "timing: plain", "timing"),
    ("max_rows: 20", "max_rows: 19", "tables"),
    ("upper: 120", "upper: 121", "tables"),
    ("    public: true\n", "    public: true\n    unique: [name]\n", "tables"),
    ("smoker: {type: boolean}", "smoker: {type: boolean}\n      shoe: {type: integer}", "tables"),
]  # fmt: skip


def policy(change: tuple[str, str] = ("", "")) -> Policy:
    assert change[0] in TEXT, change
    return parse_policy(TEXT.replace(*change, 1) if change[0] else TEXT)


@pytest.mark.parametrize(
    ("before", "after", "place"), WIDER, ids=[f"{old.strip()}-{new.strip()}"[:60] for old, new, _ in WIDER]
)
def test_a_change_that_may_promise_less_is_found_with_its_place(before: str, after: str, place: str) -> None:
    assert widened(policy(), policy((before, after))) == [place]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""), ("dataset: clinic", "dataset: clinic\ndescription: of a town"), ("budget: {epsilon: 10,", "budget: {epsilon: 9,"),
        ("delta: 1e-6,", "delta: 1e-7,"), ("min_units: 10", "min_units: 11"), ("max_epsilon: 1}", "max_epsilon: 0.5}"), ("min_epsilon: 0.01", "min_epsilon: 0.05"),
        ("epsilon: 0.1, min", "epsilon: 0.05, min"), ("session: {epsilon: 1}", "session: {epsilon: 0.5}"),
        ("research: {epsilon: 3}", "research: {epsilon: 2}"), ("research: {epsilon: 3}, ", ""),
        ("research: {epsilon: 3}", "research: {epsilon: 3, tables: [visits]}"), ("research: {", "third: {epsilon: 1}, research: {"),
        ("tables: [patients, labs]", "tables: [patients]"), ("[age, region]", "[age]"), ("flu: {", "cold: {epsilon: 1}, flu: {"),
        ("flu: {epsilon: 2", "flu: {epsilon: 1"), ("timing: padded", "timing: padded\nlog_sql: true"),
        ("timing: padded", "timing: padded\ndata_version: second"), ("max_epsilon: 1}", "max_epsilon: 1, confidence: 0.9}"),
    ],
)  # fmt: skip
def test_a_change_that_promises_no_less_is_taken_over(before: str, after: str) -> None:
    assert widened(policy(), policy((before, after))) == []


def test_a_filter_may_come_but_not_change() -> None:
    narrower = policy(("where: {patients: age > 5}", "where: {patients: age > 5, labs: value > 1}"))
    assert widened(policy(), narrower) == [] and widened(narrower, policy()) == ["analysts.bi.where.labs"]


def test_every_field_of_the_policy_is_compared() -> None:
    """A new field must be classified here."""
    decided = {
        "dataset", "source", "privacy_unit", "neighbours", "budget", "per_query", "ledger", "analysts", "session", "tables",
        "projects", "reuse", "timing", "constant_seconds", "witness", "mechanisms",
    }  # fmt: skip
    free = {"description", "log_sql", "data_version", "prepare", "store", "folder", "origin", "asker"}
    assert {field.name for field in fields(Policy)} == decided | free


def test_a_change_for_one_analyst_is_none_for_another() -> None:
    old, new = policy(), policy(("research: {epsilon: 3}", "research: {epsilon: 2}"))
    assert same_for(old, new, "bi") and same_for(old, new, None) and not same_for(old, new, "research")
    fewer = policy(("flu: {epsilon: 2", "flu: {epsilon: 1"))
    assert not same_for(old, fewer, "bi") and not same_for(old, fewer, None) and same_for(old, fewer, "research")
    assert not same_for(old, policy(("budget: {epsilon: 10,", "budget: {epsilon: 9,")), "bi")
    assert same_for(old, policy(("timing: padded", "timing: padded\nlog_sql: true")), "bi")
    assert same_for(old, policy(("timing: padded", "timing: padded\nprepare: auto")), "bi")
    assert not same_for(old, policy(("research: {epsilon: 3}, ", "")), "research")


WINDOWS = "delta: 1e-6, every: month, lifetime: {epsilon: 40, delta: 4e-6},"


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        (WINDOWS.replace("month", "week"), "budget.every"), (WINDOWS.replace(" every: month,", ""), "budget.every"),
        ("delta: 1e-6, every: month,", "budget.lifetime"), (WINDOWS.replace("40", "41"), "budget.lifetime.epsilon"),
        (WINDOWS.replace("4e-6", "5e-6"), "budget.lifetime.delta"), (WINDOWS.replace("40", "39"), None), (WINDOWS, None),
    ],
)  # fmt: skip
def test_windows_of_a_budget_may_not_begin_sooner_or_add_up_to_more(changed: str, place: str | None) -> None:
    old = parse_policy(TEXT.replace("delta: 1e-6,", WINDOWS, 1))
    new = replace(parse_policy(TEXT.replace("delta: 1e-6,", WINDOWS, 1)), budget=_budget(changed))
    assert widened(old, new) == ([] if place is None else [place])


def _budget(written: str) -> DatasetBudget:
    """Return the budget of TEXT with `written` instead of its delta. A lifetime without windows is not a valid policy, so it is
    built here."""
    if "lifetime" in written and "every" not in written:
        return replace(parse_policy(TEXT.replace("delta: 1e-6,", WINDOWS, 1)).budget, every=None)
    return parse_policy(TEXT.replace("delta: 1e-6,", written, 1)).budget
