"""Accounts: for each scope its accountant, its limits and what is spent, each row authenticated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import bindparam, select, update
from sqlalchemy.engine import Connection

from dpsql.errors import refuse
from dpsql.ledger.chain import account_mac, same
from dpsql.ledger.tables import accounts
from dpsql.ledger.words import Units, canonical, from_text, to_text


@dataclass(frozen=True)
class Account:
    """One scope: `seq` is the last entry that changed it."""

    scope: str
    accountant: str
    limits: Units
    spent: Units
    seq: int

    @property
    def remaining(self) -> Units:
        """What is left by dimension; nothing is left of a limit that was lowered below what is spent."""
        return {dimension: max(0, limit - self.spent[dimension]) for dimension, limit in self.limits.items()}

    def fits(self, charge: Mapping[str, int]) -> bool:
        """Whether spent + charge <= limit in every dimension; the dimensions must be the same."""
        if charge.keys() != self.limits.keys():
            raise refuse("ledger_shape", left=", ".join(sorted(charge)), right=", ".join(sorted(self.limits)))
        return all(self.spent[dimension] + amount <= self.limits[dimension] for dimension, amount in charge.items())

    def must_change(self, accountant: str, limits: Units) -> bool:
        """Whether `limits` differ from the account's; another accountant or other dimensions are refused."""
        if accountant != self.accountant or limits.keys() != self.limits.keys():
            raise refuse("ledger_accountant", scope=self.scope, found=self.accountant, asked=accountant)
        return limits != self.limits

    def at(self, seq: int, *, spent: Units | None = None, limits: Units | None = None) -> Account:
        """The account after entry `seq`."""
        return replace(self, seq=seq, spent=spent or self.spent, limits=limits or self.limits)

    def row(self, key: bytes, ledger_id: str) -> dict[str, Any]:
        """The row that stores it, with its MAC."""
        facts = {
            "scope": self.scope,
            "accountant": self.accountant,
            "limits": canonical(to_text(self.limits)),
            "spent": canonical(to_text(self.spent)),
            "seq": self.seq,
        }
        return {**facts, "mac": account_mac(key, ledger_id, facts)}


# Compiled once; the statements of the hot path are built here and not per charge.
_BY_SCOPE = select(accounts).where(accounts.c.scope.in_(bindparam("scopes", expanding=True)))
_ALL = select(accounts).order_by(accounts.c.scope)
_UPDATE = (
    update(accounts)
    .where(accounts.c.scope == bindparam("at"))
    .values({name: bindparam(name) for name in ("limits", "spent", "seq", "mac")})
)


def load_accounts(
    connection: Connection, key: bytes, ledger_id: str, scopes: Iterable[str] | None = None
) -> dict[str, Account]:
    """The accounts of `scopes` that exist (None: all), by scope. Raises ledger_tampered when a row was edited."""
    if scopes is None:
        rows = connection.execute(_ALL)
    else:
        rows = connection.execute(_BY_SCOPE, {"scopes": list(scopes)})
    found = [_account(dict(row._mapping), key, ledger_id) for row in rows]
    return {account.scope: account for account in found}


def insert_account(connection: Connection, key: bytes, ledger_id: str, account: Account) -> None:
    """Store a new account."""
    connection.execute(accounts.insert(), account.row(key, ledger_id))


def update_accounts(connection: Connection, key: bytes, ledger_id: str, changed: Iterable[Account]) -> None:
    """Store the new state of accounts that exist."""
    rows = [account.row(key, ledger_id) for account in changed]
    connection.execute(
        _UPDATE, [{"at": r["scope"], **{n: r[n] for n in ("limits", "spent", "seq", "mac")}} for r in rows]
    )


def _account(row: dict[str, Any], key: bytes, ledger_id: str) -> Account:
    found = row.pop("mac")
    try:
        if same(account_mac(key, ledger_id, row), found):
            limits, spent = from_text(json.loads(row["limits"])), from_text(json.loads(row["spent"]))
            return Account(row["scope"], row["accountant"], limits, spent, row["seq"])
    except (ValueError, TypeError, AttributeError):
        pass
    raise refuse("ledger_tampered", entry=row["seq"], problem="the running totals of a scope were edited")
