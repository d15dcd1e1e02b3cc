"""Budgets of a session: the accounts that a charge must fit, and the remaining budget in numbers and words."""

from collections.abc import Mapping
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
MONTH = "window:2026-11-01"


def pure(epsilon: str, delta: str = "0") -> Accountant:
    return make_accountant("pure", Fraction(epsilon), Fraction(delta))


TEN = pure("10", "0.001")


def account(scope: str, accountant: Accountant, epsilon: str = "0", delta: str = "0") -> Account:
    spent = {"epsilon": int(Fraction(epsilon) * UNIT), "delta": int(Fraction(delta) * UNIT)}
    return Account(scope, accountant.kind, accountant.limit_units(), spent, 1)


def budget(*spent: tuple[BudgetScope, str, str], in_a_year: str = "") -> Budget:
    accounts = {scope.name: account(scope.name, scope.accountant, *amounts) for scope, *amounts in spent}
    return Budget(tuple(scope for scope, *_ in spent), accounts, in_a_year)


DATASET = BudgetScope("dataset", TEN)
RESEARCH = BudgetScope("analyst:research", pure("4", "0.001"))
BOTH = budget((DATASET, "7.5", "0.0001"), (RESEARCH, "1", "0.00075"))


# --- spent and remaining budget ---------------------------------------------------------------------------------------


def test_amounts_are_exact_decimals_by_scope_and_dimension() -> None:
    assert BOTH.spent == {
        "dataset": {"epsilon": "7.5", "delta": "0.0001"},
        "analyst:research": {"epsilon": "1", "delta": "0.00075"},
    }
    assert BOTH.remaining == {
        "dataset": {"epsilon": "2.5", "delta": "0.0009"},
        "analyst:research": {"epsilon": "3", "delta": "0.00025"},
    }
    assert BOTH.epsilon == {"dataset": (7.5, 10.0), "analyst:research": (1.0, 4.0)}


def test_the_part_that_is_left_is_that_of_the_scarcest_dimension() -> None:
    """A quarter of the data set's epsilon remains, and a quarter of the analyst's delta."""
    assert (BOTH.share_left("dataset"), BOTH.share_left("analyst:research")) == (Fraction(1, 4), Fraction(1, 4))
    assert budget((BudgetScope("dataset", pure("2")), "1.5", "0")).share_left("dataset") == Fraction(1, 4)
    overdrawn = budget((DATASET, "11", "0"))
    assert overdrawn.share_left("dataset") == 0 and overdrawn.remaining["dataset"]["epsilon"] == "0"


# --- prices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("charge", "price"),
    [
        ({"epsilon": UNIT, "delta": 0}, ("dataset", Fraction(1, 10), 2)),
        ({"epsilon": 5 * UNIT // 2, "delta": 0}, ("analyst:research", Fraction(5, 8), 1)),  # once in both
        ({"epsilon": 0, "delta": UNIT // 10**4}, ("analyst:research", Fraction(1, 10), 2)),
        ({"epsilon": 9 * UNIT, "delta": 0}, ("analyst:research", Fraction(9, 4), 0)),
    ],
    ids=str,
)
def test_a_charge_is_priced_in_the_scope_that_allows_the_fewest(
    charge: Mapping[str, int], price: tuple[str, Fraction, int]
) -> None:
    share = BOTH.price(charge)
    assert share is not None and (share.scope, share.part, share.times) == price


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


def test_in_a_window_every_limit_but_the_sessions_begins_anew() -> None:
    every = scopes(policy(MONTHLY), "bi", "open", "2026-11-01")
    assert [(scope.name, scope.every, scope.is_limited) for scope in every] == [
        ("dataset", None, False),
        (MONTH, "month", True),
        (f"{MONTH}:analyst:bi", "month", True),
        (f"{MONTH}:project:open", "month", True),
        ("session:s1", None, True),
    ]
    assert every[0].accountant is TEN and every[1].accountant is TEN


def test_a_limit_of_all_windows_is_that_of_the_data_set() -> None:
    limits = policy(f"{MONTHLY}, lifetime: {{epsilon: 40, delta: 2e-6}}")
    first, window, *_ = scopes(limits, None, None, "2026-11-01")
    assert first.is_limited and (first.accountant.epsilon, first.accountant.delta) == (40, Fraction(2, 10**6))
    assert window.accountant is TEN
