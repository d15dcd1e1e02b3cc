"""Statements that read no data: their answers from the policy, the options and the ledger, at no cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Any

import pytest
from support.places import CLINIC

from dpsql.errors.exceptions import Error
from dpsql.ledger.account import Account
from dpsql.planning.planner import Planned
from dpsql.policy import Policy
from dpsql.policy.load import parse_policy
from dpsql.pricing.explain import PlannedOutput
from dpsql.pricing.options import Options
from dpsql.privacy.accounting.registry import make_accountant
from dpsql.privacy.loss import PrivacyLoss
from dpsql.release.release import Release
from dpsql.release.sandbox import Sandbox, shared_sandbox
from dpsql.session.budget import Budget, BudgetScope
from dpsql.session.explanation import PrivacyPlan
from dpsql.session.statements import answer_statement, statement_columns
from dpsql.sql.parse import Parameters, Statement, parse

POLICY = parse_policy(
    CLINIC.replace("max_rows: 20", "max_rows: 20\n    description: one row for each visit")
    .replace("smoker: {type: boolean}", "smoker: {type: boolean, nullable: false, description: today}")
    .replace("zcdp", "pure")
)
ACCOUNTANT = make_accountant("pure", Fraction(2), Fraction(0))
OUTPUT = PlannedOutput(
    *("dp_0", ("n",), "count(*)", "no", "laplace", 1, 1.0, 1.0, 1.0, 3.0, 1.0, 0.0, 0.46, 1, 1.0),
    stored_error_95=None,
    limits=("1 rows per unit",),
)
LOSS = PrivacyLoss(Fraction(1), Fraction(0), None)
PLAN = PrivacyPlan(
    (OUTPUT,),
    LOSS,
    LOSS,
    (("dataset", "all"), ("analyst:ann", "half")),
    (),
    (("dp_0", "SELECT 1"),),
    0.95,
    (("n", "bigint"),),
    ("a note",),
    further=("first line", "second line"),
)


@dataclass
class Context:
    """A session without data, with its last planned query and its options."""

    policy: Policy = POLICY
    options: Options = field(default_factory=lambda: Options.of_policy(POLICY))
    first_options: Options = field(
        default_factory=lambda: Options.of_policy(POLICY).with_value("dp.epsilon", "0.2", POLICY)
    )
    sandbox: Sandbox = field(default_factory=shared_sandbox)
    explained: PrivacyPlan = PLAN
    limited: bool = True
    planned: list[Any] = field(default_factory=list)

    def set_option(self, name: str, value: str) -> None:
        self.options = self.options.with_value(name, value, self.policy)

    def budget(self) -> Budget:
        names, units = ("dataset", "analyst:ann"), 10**18
        scopes = tuple(BudgetScope(name, ACCOUNTANT, is_limited=self.limited or name != "dataset") for name in names)
        limits = {"epsilon": 2 * units, "delta": 0}
        accounts = {
            name: Account(name, "pure", limits, {"epsilon": units * (1 + number) // 2, "delta": 0}, 1)
            for number, name in enumerate(names)
        }
        return Budget(scopes, accounts)

    def plan(self, statement: Statement, parameters: Parameters = None) -> Planned:
        self.planned.append(statement)
        return statement  # type: ignore[return-value]

    def explain_planned(self, planned: Planned) -> PrivacyPlan:
        assert planned is self.planned[-1]
        return self.explained


@pytest.fixture
def context() -> Context:
    return Context()


def answer(context: Context, sql: str) -> Release:
    """Return the answer, after checking that it costs nothing and has the announced columns."""
    statement = parse(sql)
    release = answer_statement(context, statement)
    assert release.columns == statement_columns(context, statement)
    assert release.loss == PrivacyLoss.nothing() and release.receipt.id == "" and not release.reused
    return release


def rows(context: Context, sql: str) -> list[tuple[Any, ...]]:
    return list(answer(context, sql).rows())


def names(release: Release) -> list[str]:
    return [column.name for column in release.columns]


# --- options ----------------------------------------------------------------------------------------------------------


def test_a_setting_of_another_system_is_not_set_and_resetting_it_does_nothing(context: Context) -> None:
    with pytest.raises(Error) as error:
        answer_statement(context, parse("SET work_mem = 5"))
    assert (error.value.slug, error.value.position) == ("option_unknown", 1)
    before = context.options
    assert rows(context, "RESET work_mem") == [] and context.options is before


# --- budgets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limited", [True, False])
def test_the_budget_has_a_row_for_each_scope_and_dimension(limited: bool) -> None:
    shown = answer(context := Context(limited=limited), "SHOW dp.budget")
    assert names(shown) == [
        "scope",
        "dimension",
        "spent",
        "remaining",
        "epsilon_spent",
        "epsilon_limit",
        "questions_left",
    ]
    limit = 2.0 if limited else None  # infinity is not a number in SQL
    left = 15 if limited else None
    assert list(shown.rows()) == [
        ("dataset", "epsilon", "0.5", "1.5", 0.5, limit, left),
        ("dataset", "delta", "0", "0", 0.5, limit, left),
        ("analyst:ann", "epsilon", "1", "1", 1.0, 2.0, 10),
        ("analyst:ann", "delta", "0", "0", 1.0, 2.0, 10),
    ]
    assert (context.budget().epsilon["dataset"][1] == inf) is not limited


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_columns_are_announced_without_carrying_a_statement_out(context: Context) -> None:
    before = context.options
    for sql in ("SET dp.epsilon = 0.5", "RESET ALL", "EXPLAIN SELECT COUNT(*) FROM patients", "DESCRIBE nobody"):
        statement_columns(context, parse(sql))
    assert context.options is before and context.planned == []
