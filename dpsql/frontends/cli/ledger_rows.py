"""The ledger for its owner: accounts and charges as rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpsql.ledger import decimal_text
from dpsql.ledger.records import from_text, request_of
from dpsql.privacy.accounting.registry import make_accountant

if TYPE_CHECKING:
    from dpsql.ledger.account import Account
    from dpsql.ledger.ledger import Ledger
    from dpsql.policy import Policy

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]


def account_rows(policy: Policy, ledger: Ledger) -> Rows:
    """Names and rows, one for each account: scope, accountant, epsilon spent and its limit (None for a scope that the
    policy does not name any more), and exactly what is spent and left."""
    names = ("scope", "accountant", "epsilon_spent", "epsilon_limit", "spent", "left")
    rows = []
    for scope, account in sorted(ledger.accounts().items(), key=lambda item: (item[0] != "dataset", item[0])):
        exact = (words(account.spent), words(account.remaining))
        rows.append((scope, account.accountant, *_epsilon(policy, account), *exact))
    return names, rows


def charge_rows(ledger: Ledger) -> Rows:
    """Names and rows, one for each charge, oldest first.

    One without an outcome was cut short (or another process answered it less than a second ago), and is spent too.
    """
    names = ("entry", "time", "analyst", "scopes", "charge", "outcome", "receipt")
    charges: dict[int, list[Any]] = {}
    for entry in ledger.history():
        if entry.kind == "charge":
            facts = entry.facts
            scopes, charge = ", ".join(facts["scopes"]), words(from_text(facts["charge"]))
            charges[entry.seq] = [
                entry.seq,
                facts["time"],
                facts["analyst"],
                scopes,
                charge,
                "cut short",
                request_of(facts["id"]),
            ]
        elif entry.resolves in charges:
            charges[entry.resolves][5] = "answered" if entry.kind == "committed" else "failed"
    return names, [tuple(row) for row in charges.values()]


def words(amounts: Mapping[str, int]) -> str:
    """Amounts as exact decimals."""
    return ", ".join(f"{name} {decimal_text(name, amount)}" for name, amount in amounts.items())


def _epsilon(policy: Policy, account: Account) -> tuple[float | None, float | None]:
    """Spent and limit of a scope in epsilon, as far as the policy names it."""
    kind, _, name = account.scope.partition(":")
    limit: Any = {"dataset": policy.budget, "session": policy.session, "project": policy.projects.get(name)}.get(
        kind, policy.analysts.get(name)
    )
    if limit is None:
        return None, None
    delta = policy.budget.delta if limit.delta is None else limit.delta
    accountant = make_accountant(account.accountant, limit.epsilon, delta)
    return float(f"{accountant.epsilon_of(account.spent):.6g}"), float(limit.epsilon)
