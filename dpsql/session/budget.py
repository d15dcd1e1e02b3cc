"""The accounts whose limits the charges of a session must respect, and their remaining budget as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import starmap
from math import inf
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.ledger import decimal_text, windows
from dpsql.ledger.accounts import Account
from dpsql.ledger.windows import BudgetWindow, parts
from dpsql.policy import Analyst, DatasetBudget, Policy, ProjectLimit, SessionLimit
from dpsql.privacy.accounting import Accountant, make_accountant
from dpsql.privacy.ledger_units import EVERY, window_start, windows_in_a_year
from dpsql.privacy.loss import plain_decimal
from dpsql.storage.records import dataclass, replace


@dataclass(frozen=True)
class BudgetScope:
    """One account whose limit a charge must respect: its name in the ledger and its accountant.

    `every`: the length of the window that the account covers (None: all time). `is_limited`: False for the data set if the
    policy limits only windows; its account then only adds up losses, and its limit is what the window may still spend.
    """

    name: str
    accountant: Accountant
    every: str | None = None
    is_limited: bool = True

    @property
    def label(self) -> str:
        """The scope in words: "dataset", "analyst research", "this month", "analyst research this month"."""
        of_scope = parts(self.name)[1].replace(":", " ", 1)
        now = "" if self.every is None else _NOW[self.every]
        return f"{of_scope} {now}" if now and of_scope != "dataset" else now or of_scope


_WHICH: dict[str | None, str] = {None: "the", "day": "today's"} | {
    every: f"this {every}'s" for every in EVERY if every != "day"
}
_NOW = {every: "today" if every == "day" else f"this {every}" for every in EVERY}


@dataclass(frozen=True)
class Budget:
    """Spent and remaining loss of each scope; `accounts` (by name) is one consistent state of the ledger.

    `in_a_year`: the sentence of `windows_in_words`, empty if the budget has no windows.
    """

    scopes: tuple[BudgetScope, ...]
    accounts: Mapping[str, Account]
    in_a_year: str = ""

    @cached_property
    def spent(self) -> dict[str, dict[str, str]]:
        """The spent loss by scope and dimension, as exact decimal text."""
        return {scope.name: _decimals(self.accounts[scope.name].spent) for scope in self.scopes}

    @cached_property
    def remaining(self) -> dict[str, dict[str, str]]:
        """The remaining loss by scope and dimension, as exact decimal text, never below zero."""
        return {scope.name: _decimals(self.accounts[scope.name].remaining) for scope in self.scopes}

    @cached_property
    def epsilon(self) -> dict[str, tuple[float, float]]:
        """For each scope, the epsilon that corresponds to the spent loss, and the limit (infinite if there is none)."""
        return {
            scope.name: (
                scope.accountant.epsilon_of(self.accounts[scope.name].spent),
                float(scope.accountant.epsilon) if scope.is_limited else inf,
            )
            for scope in self.scopes
        }

    def price(self, charge: Mapping[str, int]) -> ChargeShare | None:
        """Return `charge` (ledger units) as a share of the scope that allows the fewest more like it; None for nothing."""
        scopes = self._limited
        prices = [
            ChargeShare(scope.name, Fraction(amount, limit), account.remaining[dimension] // amount, scope.every)
            for scope in scopes
            for account in (self.accounts[scope.name],)
            for dimension, limit in account.limits.items()
            if (amount := charge.get(dimension, 0)) and limit
        ]
        if not prices:
            return None
        scarcest = min(prices, key=lambda price: (price.times, -price.part))
        if len(scopes) == 1:
            return scarcest
        fewest: dict[str, int] = {}
        for price in prices:
            fewest[price.scope] = min(price.times, fewest.get(price.scope, price.times))
        del fewest[scarcest.scope]
        return replace(scarcest, other_accounts=tuple((s.label, fewest[s.name]) for s in scopes if s.name in fewest))

    @property
    def _limited(self) -> list[BudgetScope]:
        return [scope for scope in self.scopes if scope.is_limited]

    def without(self, names: Iterable[str]) -> Budget:
        """Return this budget without the scopes of these accounts and of the persons behind them, in whichever window."""
        left_out = set(names)
        logins = {scope.name: parts(scope.name)[1].partition("/")[0] for scope in self.scopes}
        return replace(self, scopes=tuple(scope for scope in self.scopes if logins[scope.name] not in left_out))

    def share_left(self, scope: str) -> Fraction:
        """Return the fraction of a scope's budget that is left, taken from the dimension with the smallest such fraction."""
        account = self.accounts[scope]
        shares = [Fraction(account.remaining[name], limit) for name, limit in account.limits.items() if limit]
        return min(shares, default=Fraction(0))

    def questions(self, price: Mapping[str, int]) -> list[QuestionCount]:
        """Return how many questions at a price (in ledger units) each scope with a limit still allows, and in all."""
        counts = []
        for scope in self._limited:
            account = self.accounts[scope.name]
            unspent = replace(account, spent=dict.fromkeys(account.limits, 0))
            counts.append(QuestionCount(scope, account.times(price), unspent.times(price)))
        return counts

    def questions_text(self, price: Mapping[str, int], epsilon: Fraction) -> str:
        """Return what is left in questions at a price: "dataset 31 questions, analyst research 1, each of epsilon 0.1"."""
        counts = self.questions(price)
        listed = [f"{counts[0].scope.label} {in_questions(counts[0].left)}"] if counts else []
        listed += [f"{count.scope.label} {count.left:,}" for count in counts[1:]]
        return ", ".join([*listed, f"each of epsilon {plain_decimal(epsilon)}"]) if counts else "no limit"

    def text(self) -> str:
        """Return one line for each scope with exact amounts, and one about the loss that the windows of a year add up to."""
        lines = [f"{scope}: {self.words(scope)}" for scope in self.spent]
        return "\n".join([*lines, *([self.in_a_year] if self.in_a_year else [])])

    def words(self, scope: str) -> str:
        """Return the remaining budget of one scope as a phrase."""
        spent, limit = self.epsilon[scope]
        if limit == inf:
            return f"no limit in all; epsilon {spent:.4g} spent since the ledger was made"
        left = ", ".join(f"{dimension} {_six_digits(amount)}" for dimension, amount in self.remaining[scope].items())
        return f"{percent(self.share_left(scope), down=True)} left ({left}; epsilon {spent:.4g} of {limit:.4g} spent)"


@dataclass(frozen=True)
class ChargeShare:
    """A charge as a part of one scope's budget; `times`: the number of charges like it that still fit there;
    `other_accounts`: the labels of the other scopes, with the same number."""

    scope: str
    part: Fraction
    times: int
    every: str | None = None
    other_accounts: tuple[tuple[str, int], ...] = ()

    @property
    def share(self) -> str:
        """The part in words: "1.7 % of the budget"."""
        kind, _, name = parts(self.scope)[1].partition(":")
        whose = {"dataset": "", "session": " of this session", "project": f" of project {name}"}.get(
            kind, f" of {name}"
        )
        return f"{percent(self.part)} of {_WHICH[self.every]} budget{whose}"

    def before(self) -> str:
        if not self.times:
            return f"{self.share}, which is more than what is left: it would be refused"
        return self.after()

    def after(self) -> str:
        further = ", ".join(starmap("{}: {:,}".format, self.other_accounts))
        words = f"{self.share}; {in_questions(self.times)} like this one can still be asked"
        return f"{words} ({further})" if further else words


@dataclass(frozen=True)
class QuestionCount:
    """How many questions at one price a scope still allows (`left`), and how many if nothing is spent (`in_all`)."""

    scope: BudgetScope
    left: int
    in_all: int


def in_questions(number: int) -> str:
    return "1 question" if number == 1 else f"{number:,} questions"


def question_price(policy: Policy) -> dict[str, int]:
    """Return the price, in ledger units, of one question at the epsilon of the policy's `per_query`."""
    budget = policy.budget
    accountant = make_accountant(budget.accountant, budget.epsilon, budget.delta)
    return dict(accountant.units(accountant.request(policy.per_query.epsilon)))


def budget_of_everybody(policy: Policy, accounts: Mapping[str, Account]) -> Budget:
    """Return, for the owner, the budget of the data set and of every analyst and project that the policy names, under the limits
    of the policy. Scopes of which the ledger has no account yet have spent nothing."""
    budget, window = policy.budget, window_of(policy)
    dataset = make_accountant(budget.accountant, budget.epsilon, budget.delta)
    askers: list[tuple[str | None, str | None, str | None]] = [(None, None, None)]
    askers += [(name, None, person) for name, limit in policy.analysts.items() for person in (None, *limit.people)]
    askers += [(None, project, None) for project in policy.projects]
    scopes = {
        scope.name: scope
        for analyst, project, person in askers
        for scope in scopes_of(policy, analyst, project, "", dataset, window.start if window else None, person)
        if not scope.name.startswith("session:")
    }
    return Budget(
        tuple(scopes.values()),
        {name: _under_the_policy(scope, accounts.get(name)) for name, scope in scopes.items()},
        windows_in_words(budget),
    )


def _under_the_policy(scope: BudgetScope, account: Account | None) -> Account:
    """Return an account with the limits of the policy, which the ledger learns with the next question. Raises
    ledger_accountant."""
    limits = dict(scope.accountant.limit_units())
    if account is None:
        return Account(scope.name, scope.accountant.kind, limits, dict.fromkeys(limits, 0), 0)
    account.must_change(scope.accountant.kind, limits)
    return replace(account, limits=limits) if scope.is_limited else account


def percent(part: Fraction, *, down: bool = False) -> str:
    """Return a part of a budget as text with two digits (three near the whole). With `down`, never more than the exact part."""
    whole = part * 100
    if 0 < whole < Fraction(1, 100):
        return "less than 0.01 %"
    digits = 2 if whole < 1 else 1 if whole < 100 else 0
    scaled = whole * 10**digits
    number = scaled.__floor__() if down else round(scaled)
    return f"{Decimal(number).scaleb(-digits).normalize():f} %"


class Remaining(Mapping[str, str]):
    """Remaining budget of each scope, formatted lazily because it is read for few answers."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def __getitem__(self, scope: str) -> str:
        return self._budget.words(scope)

    def __iter__(self) -> Iterator[str]:
        return (scope.name for scope in self._budget.scopes)

    def __len__(self) -> int:
        return len(self._budget.scopes)

    def questions_text(self, policy: Policy) -> str:
        """Return what is left in questions at the policy's price."""
        return self._budget.questions_text(question_price(policy), policy.per_query.epsilon)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text instead of the accounts."""
        return dict, (dict(self),)


def _decimals(amounts: Mapping[str, int]) -> dict[str, str]:
    return {dimension: decimal_text(dimension, amount) for dimension, amount in amounts.items()}


def window_of(policy: Policy) -> BudgetWindow | None:
    """Return the budget window of today, or None if one budget holds for all time."""
    budget = policy.budget
    if budget.every is None:
        return None
    accountant = make_accountant(budget.accountant, budget.epsilon, budget.delta)
    in_all = _lifetime(budget)
    start = window_start(budget.every, windows.today()).isoformat()
    return BudgetWindow(
        start, accountant.kind, accountant.limit_units(), None if in_all is None else in_all.limit_units()
    )


def windows_in_words(budget: DatasetBudget) -> str:
    """Return in words the loss that a year of windows adds up to and the limit of all windows; "" if there are no windows."""
    if budget.every is None:
        return ""
    times = windows_in_a_year(budget.every)
    epsilon, delta = make_accountant(budget.accountant, budget.epsilon, budget.delta).repeated(times)
    number = f"{times} {budget.every}s" if times > 1 else f"one {budget.every}"
    at_delta = f" at delta {float(delta):.3g}" if delta else ""
    each = f"each {budget.every} (UTC) has a budget of its own: {number} amount{'' if times > 1 else 's'} to epsilon "
    if budget.lifetime is None:
        return f"{each}{_rounded_up(epsilon)}{at_delta}, and nothing limits what all of them add up to"
    in_all = f"epsilon {float(budget.lifetime.epsilon):g}" + (
        f" at delta {float(budget.lifetime.delta):.3g}" if budget.lifetime.delta else ""
    )
    return f"{each}{_rounded_up(epsilon)}{at_delta}, and all that are ever opened to at most {in_all}"


def _rounded_up(epsilon: float) -> str:
    """Format an upper bound with three digits, rounded up."""
    return format(Context(prec=3, rounding=ROUND_UP).create_decimal(repr(epsilon)).normalize(), "f")


def _lifetime(budget: DatasetBudget) -> Accountant | None:
    limit = budget.lifetime
    return None if limit is None else make_accountant(budget.accountant, limit.epsilon, limit.delta)


def listed_person(policy: Policy, analyst: str | None, claimed: str | None) -> str | None:
    """Return the person with a limit whom an analyst's client names, whatever the case of letters; None if there is none."""
    if analyst is None or analyst not in policy.analysts or claimed is None:
        return None
    return next((name for name in policy.analysts[analyst].people if name.lower() == claimed.lower()), None)


def scopes_of(
    policy: Policy,
    analyst: str | None,
    project: str | None,
    session: str,
    dataset: Accountant,
    start: str | None = None,
    person: str | None = None,
) -> tuple[BudgetScope, ...]:
    """Return the scopes whose limits a charge must respect, in the window that begins on `start` if the policy has windows.
    `person`: for whom the analyst's client says that it asks.

    Raises analyst_unknown, project_unknown and project_member.
    """
    limits: list[tuple[str, Analyst | ProjectLimit | SessionLimit]] = []
    if analyst is not None:
        if analyst not in policy.analysts:
            raise refuse("analyst_unknown", name=analyst)
        limits.append((f"analyst:{analyst}", policy.analysts[analyst]))
        if person is not None and (listed := listed_person(policy, analyst, person)) is not None:
            limits.append((f"analyst:{analyst}/{listed}", policy.analysts[analyst].people[listed]))
    if project is not None:
        if project not in policy.projects:
            raise refuse("project_unknown", name=project)
        members = policy.projects[project].members
        if analyst is not None and members is not None and analyst not in members:
            raise refuse("project_member", analyst=analyst, name=project)
        limits.append((f"project:{project}", policy.projects[project]))
    if policy.session is not None:
        limits.append((f"session:{session}", policy.session))
    budget = policy.budget
    limited = [
        (name, make_accountant(budget.accountant, limit.epsilon, budget.delta if limit.delta is None else limit.delta))
        for name, limit in limits
    ]
    if budget.every is None or start is None:
        return (BudgetScope("dataset", dataset), *(BudgetScope(name, accountant) for name, accountant in limited))
    in_window = [
        BudgetScope(name, accountant)
        if name.startswith("session:")
        else BudgetScope(windows.window_scope(start, name), accountant, budget.every)
        for name, accountant in limited
    ]
    in_all = BudgetScope("dataset", _lifetime(budget) or dataset, is_limited=budget.is_limited)
    return (in_all, BudgetScope(windows.window_scope(start), dataset, budget.every), *in_window)


def _six_digits(amount: str) -> str:
    """Format an exact amount with six digits, rounded down so that the text never exceeds the amount."""
    return format(Context(prec=6, rounding=ROUND_DOWN).create_decimal(amount), "f")
