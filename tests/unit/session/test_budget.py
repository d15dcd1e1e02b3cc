"""Budgets of a session: the accounts that a charge must fit, and the remaining budget in numbers and words."""

from fractions import Fraction

import pytest
from support.places import CLINIC

from dpsql.errors.exceptions import Error
from dpsql.ledger.accounts import Account
from dpsql.policy import Policy
from dpsql.policy.check import parse_policy
from dpsql.privacy.accounting import Accountant, make_accountant
from dpsql.session.budget import Budget, BudgetScope, percent, scopes_of

UNIT = 10**18


def pure(epsilon: str, delta: str = "0") -> Accountant:
    return make_accountant("pure", Fraction(epsilon), Fraction(delta))


TEN = pure("10", "0.001")


def account(scope: str, accountant: Accountant, epsilon: str = "0", delta: str = "0") -> Account:
    spent = {"epsilon": int(Fraction(epsilon) * UNIT), "delta": int(Fraction(delta) * UNIT)}
    return Account(scope, accountant.kind, accountant.limit_units(), spent, 1)


def budget(*spent: tuple[BudgetScope, str, str], in_a_year: str = "") -> Budget:
    accounts = {scope.name: account(scope.name, scope.accountant, *amounts) for scope, *amounts in spent}
    return Budget(tuple(scope for scope, *_ in spent), accounts, in_a_year)


# --- prices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "near", "below"),
    [
        ("0", "0 %", "0 %"),
        ("0.00005", "less than 0.01 %", "less than 0.01 %"),
        ("0.0001", "0.01 %", "0.01 %"),
        ("0.00999", "1 %", "0.99 %"),
        ("0.01", "1 %", "1 %"),
        ("0.01799", "1.8 %", "1.7 %"),
        ("0.99999", "100 %", "99.9 %"),
        ("1", "100 %", "100 %"),
        ("1.057", "106 %", "105 %"),
        ("12", "1200 %", "1200 %"),
    ],
)
def test_parts_have_two_digits_and_are_never_above_the_exact_one_where_asked(part: str, near: str, below: str) -> None:
    assert (percent(Fraction(part)), percent(Fraction(part), down=True)) == (near, below)


# --- scopes of a policy -----------------------------------------------------------------------------------------------

ANALYSTS = "analysts: {research: {epsilon: 3}, bi: {epsilon: 5, delta: 5e-7}}"
PROJECTS = "projects: {flu: {epsilon: 2, members: [bi]}, open: {epsilon: 1}}"
POLICY = CLINIC.replace("analysts: {research: {epsilon: 3}, bi: {epsilon: 5}}", f"{ANALYSTS}\n{PROJECTS}")
MONTHLY = "accountant: zcdp, every: month"


def policy(limits: str = "accountant: zcdp", session: str = "session: {epsilon: 1}\n") -> Policy:
    return parse_policy(POLICY.replace("accountant: zcdp", limits).replace("session: {epsilon: 1}\n", session))


def scopes(
    limits: Policy, analyst: str | None = None, project: str | None = None, start: str | None = None
) -> tuple[BudgetScope, ...]:
    return scopes_of(limits, analyst, project, "s1", TEN, start)


def test_a_charge_must_fit_the_analyst_the_project_and_the_session() -> None:
    every = scopes(policy(), "bi", "flu")
    assert [scope.name for scope in every] == ["dataset", "analyst:bi", "project:flu", "session:s1"]
    assert every[0].accountant is TEN
    assert [scope.accountant.epsilon for scope in every[1:]] == [5, 2, 1]
    assert all(scope.every is None and scope.is_limited for scope in every)
    assert {scope.accountant.kind for scope in every[1:]} == {"zcdp"}


@pytest.mark.parametrize(
    ("analyst", "project", "slug"),
    [
        ("eve", None, "analyst_unknown"),
        ("bi", "cold", "project_unknown"),
        (None, "cold", "project_unknown"),
        ("research", "flu", "project_member"),
    ],
)
def test_strangers_have_no_scopes(analyst: str | None, project: str | None, slug: str) -> None:
    with pytest.raises(Error) as error:
        scopes(policy(), analyst, project)
    assert error.value.slug == slug


def test_a_limit_of_all_windows_is_that_of_the_data_set() -> None:
    limits = policy(f"{MONTHLY}, lifetime: {{epsilon: 40, delta: 2e-6}}")
    first, window, *_ = scopes(limits, None, None, "2026-11-01")
    assert first.is_limited and (first.accountant.epsilon, first.accountant.delta) == (40, Fraction(2, 10**6))
    assert window.accountant is TEN
