"""The accounts that charges of a session must fit, and their remaining budget, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
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
    """Spent and remaining loss of each scope; `accounts` (by name) is one consistent state of the ledger."""

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

    def price(self, charge: Mapping[str, int]) -> ChargeShare | None:
        """Return what `charge` (in ledger units) is of the scope that would allow the fewest more charges like it; None for
        a charge of nothing."""
        prices = [
            ChargeShare(scope.name, Fraction(amount, limit), account.remaining[dimension] // amount)
            for scope in self.scopes
            for account in (self.accounts[scope.name],)
            for dimension, limit in account.limits.items()
            if (amount := charge.get(dimension, 0)) and limit
        ]
        return min(prices, key=lambda price: (price.times, -price.part), default=None)

    def share_left(self, scope: str) -> Fraction:
        """Return the part of a scope's budget that is left: of the dimension of which the least is left."""
        account = self.accounts[scope]
        shares = [Fraction(account.remaining[name], limit) for name, limit in account.limits.items() if limit]
        return min(shares, default=Fraction(0))

    def shares_text(self) -> str:
        """Return the part of each scope that is left: "dataset 95 %, analyst research 61 %"."""
        shares = [
            f"{scope.name.replace(':', ' ')} {percent(self.share_left(scope.name), down=True)}" for scope in self.scopes
        ]
        return ", ".join(shares)

    def text(self) -> str:
        """One line for each scope."""
        return "\n".join(f"{scope}: {self.words(scope)}" for scope in self.spent)

    def words(self, scope: str) -> str:
        """Return the remaining budget of one scope as a phrase."""
        spent, limit = self.epsilon[scope]
        left = ", ".join(f"{dimension} {_six_digits(amount)}" for dimension, amount in self.remaining[scope].items())
        return f"{percent(self.share_left(scope), down=True)} left ({left}; epsilon {spent:.4g} of {limit:.4g} spent)"


@dataclass(frozen=True)
class ChargeShare:
    """A charge as a part of one scope's budget; `times`: how many charges like it still fit there."""

    scope: str
    part: Fraction
    times: int

    @property
    def _share(self) -> str:
        kind, _, name = self.scope.partition(":")
        whose = {"dataset": "", "session": " of this session", "project": f" of project {name}"}.get(
            kind, f" of {name}"
        )
        return f"{percent(self.part)} of the budget{whose}"

    def before(self) -> str:
        """Return the price in words, before it is paid."""
        if not self.times:
            return f"{self._share}, which is more than what is left: it would be refused"
        return f"{self._share}; {_questions(self.times)} like this one can still be asked"

    def after(self) -> str:
        """Return the price in words, once it is paid."""
        return f"{self._share}; {_questions(self.times)} like this one can still be asked"


def _questions(number: int) -> str:
    return "1 question" if number == 1 else f"{number:,} questions"


def percent(part: Fraction, *, down: bool = False) -> str:
    """Return a part of a budget as text with two digits (three near the whole); `down`: never more than the exact part."""
    whole = part * 100
    if 0 < whole < Fraction(1, 100):
        return "less than 0.01 %"
    digits = 2 if whole < 1 else 1 if whole < 100 else 0
    scaled = whole * 10**digits
    number = scaled.__floor__() if down else round(scaled)
    return f"{Decimal(number).scaleb(-digits).normalize():f} %"


class Remaining(Mapping[str, str]):
    """Remaining budget of each scope, formatted lazily: few answers have it read."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def __getitem__(self, scope: str) -> str:
        return self._budget.words(scope)

    def __iter__(self) -> Iterator[str]:
        return (scope.name for scope in self._budget.scopes)

    def __len__(self) -> int:
        return len(self._budget.scopes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text instead of the accounts."""
        return dict, (dict(self),)


def _decimals(amounts: Mapping[str, int]) -> dict[str, str]:
    return {dimension: decimal_text(dimension, amount) for dimension, amount in amounts.items()}


def scopes_of(
    policy: Policy, analyst: str | None, project: str | None, session: str, dataset: Accountant
) -> tuple[BudgetScope, ...]:
    """Return the scopes that a charge must fit. Raises analyst_unknown, project_unknown and project_member."""
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


def _six_digits(amount: str) -> str:
    """Format six digits of an exact amount, rounded down, so that the text never exceeds the amount."""
    return format(Context(prec=6, rounding=ROUND_DOWN).create_decimal(amount), "f")
