"""What the charges of a session must fit, and what is left of it, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from functools import cached_property
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.ledger import decimal_text
from dpsql.ledger.account import Account
from dpsql.policy import Analyst, Policy, ProjectLimit, SessionLimit
from dpsql.privacy.accounting.contract import Accountant
from dpsql.privacy.accounting.registry import make_accountant


@dataclass(frozen=True)
class BudgetScope:
    """One account that a charge must fit: its name in the ledger and how it counts."""

    name: str
    accountant: Accountant


@dataclass(frozen=True)
class Budget:
    """What each scope has spent and has left; `accounts` (by name) is one consistent state of the ledger."""

    scopes: tuple[BudgetScope, ...]
    accounts: Mapping[str, Account]

    @cached_property
    def spent(self) -> dict[str, dict[str, str]]:
        """Scope -> dimension -> exact decimal text."""
        return {scope.name: _decimals(self.accounts[scope.name].spent) for scope in self.scopes}

    @cached_property
    def remaining(self) -> dict[str, dict[str, str]]:
        """Scope -> dimension -> exact decimal text, never below zero."""
        return {scope.name: _decimals(self.accounts[scope.name].remaining) for scope in self.scopes}

    @cached_property
    def epsilon(self) -> dict[str, tuple[float, float]]:
        """Scope -> the epsilon that what is spent amounts to, and the limit."""
        return {
            scope.name: (
                scope.accountant.epsilon_of(self.accounts[scope.name].spent),
                float(scope.accountant.epsilon),
            )
            for scope in self.scopes
        }

    def text(self) -> str:
        """One line for each scope."""
        return "\n".join(f"{scope}: {self.words(scope)}" for scope in self.spent)

    def words(self, scope: str) -> str:
        """What one scope has left, in words."""
        spent, limit = self.epsilon[scope]
        left = ", ".join(f"{dimension} {_shown(amount)}" for dimension, amount in self.remaining[scope].items())
        return f"{left} left (epsilon {spent:.4g} of {limit:.4g} spent)"


class Remaining(Mapping[str, str]):
    """What is left of each scope, in words that are found when they are read: few answers have them read."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def __getitem__(self, scope: str) -> str:
        return self._budget.words(scope)

    def __iter__(self) -> Iterator[str]:
        return (scope.name for scope in self._budget.scopes)

    def __len__(self) -> int:
        return len(self._budget.scopes)

    def __reduce__(self) -> tuple[Any, ...]:
        """A release that travels takes the words along and no account."""
        return dict, (dict(self),)


def _decimals(amounts: Mapping[str, int]) -> dict[str, str]:
    return {dimension: decimal_text(dimension, amount) for dimension, amount in amounts.items()}


def scopes_of(
    policy: Policy, analyst: str | None, project: str | None, session: str, dataset: Accountant
) -> tuple[BudgetScope, ...]:
    """The accounts that a charge must fit. Refuses an analyst or a project that the policy does not name, and a
    project that the analyst is no member of."""
    limits: list[tuple[str, Analyst | ProjectLimit | SessionLimit]] = []
    if analyst is not None:
        if analyst not in policy.analysts:
            raise refuse("analyst_unknown", name=analyst)
        limits.append((f"analyst:{analyst}", policy.analysts[analyst]))
    if project is not None:
        if project not in policy.projects:
            raise refuse("project_unknown", name=project)
        members = policy.projects[project].members
        if analyst is not None and members is not None and analyst not in members:
            raise refuse("project_member", analyst=analyst, name=project)
        limits.append((f"project:{project}", policy.projects[project]))
    if policy.session is not None:
        limits.append((f"session:{session}", policy.session))
    kind, delta = policy.budget.accountant, policy.budget.delta
    limited = [
        BudgetScope(name, make_accountant(kind, limit.epsilon, delta if limit.delta is None else limit.delta))
        for name, limit in limits
    ]
    return (BudgetScope("dataset", dataset), *limited)


def _shown(amount: str) -> str:
    """Six digits of an exact amount, rounded down: nobody is told of more than there is."""
    return format(Context(prec=6, rounding=ROUND_DOWN).create_decimal(amount), "f")
