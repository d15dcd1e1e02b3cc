"""Accounts: the accountant, the limits and the spent amounts of each scope, in authenticated rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.ledger.chain import account_mac, same
from dpsql.ledger.database import DatabaseConnection
from dpsql.ledger.records import Units, canonical, from_text, to_text


@dataclass(frozen=True)
class Account:
    """The account of one scope: `seq` is the last entry that changed it."""

    scope: str
    accountant: str
    limits: Units
    spent: Units
    seq: int

    @property
    def remaining(self) -> Units:
        """The remaining amounts by dimension; 0 if a limit was lowered below the spent amount."""
        return {dimension: max(0, limit - self.spent[dimension]) for dimension, limit in self.limits.items()}

    def fits(self, charge: Mapping[str, int]) -> bool:
        """Return whether spent + charge <= limit in every dimension; the dimensions must be the same."""
        if charge.keys() != self.limits.keys():
            raise refuse("ledger_shape", left=", ".join(sorted(charge)), right=", ".join(sorted(self.limits)))
        return all(self.spent[dimension] + amount <= self.limits[dimension] for dimension, amount in charge.items())

    def times(self, charge: Mapping[str, int]) -> int:
        """Return how many charges like this one still fit; 0 for a charge of nothing."""
        return min((self.remaining[name] // amount for name, amount in charge.items() if amount), default=0)

    def must_change(self, accountant: str, limits: Units) -> bool:
        """Return whether `limits` differ from the account's. Raises ledger_accountant for another accountant or other
        dimensions."""
        if accountant != self.accountant or limits.keys() != self.limits.keys():
            raise refuse("ledger_accountant", scope=self.scope, found=self.accountant, asked=accountant)
        return limits != self.limits

    def after(self, seq: int, *, spent: Units | None = None, limits: Units | None = None) -> Account:
        """Return the account after entry `seq`."""
        return replace(self, seq=seq, spent=spent or self.spent, limits=limits or self.limits)

    def row(self, key: bytes, ledger_id: str) -> dict[str, Any]:
        """Return the row that stores the account, with its MAC."""
        facts = {
            "scope": self.scope,
            "accountant": self.accountant,
            "limits": canonical(to_text(self.limits)),
            "spent": canonical(to_text(self.spent)),
            "seq": self.seq,
        }
        return {**facts, "mac": account_mac(key, ledger_id, facts)}


_COLUMNS = ("scope", "accountant", "limits", "spent", "seq", "mac")
_MOST_KNOWN = 1000
_ROWS = f"SELECT {', '.join(_COLUMNS)} FROM dpsql_accounts"
_INSERT = (
    f"INSERT INTO dpsql_accounts ({', '.join(_COLUMNS)}) VALUES (:scope, :accountant, :limits, :spent, :seq, :mac)"
)
_UPDATE = "UPDATE dpsql_accounts SET limits = :limits, spent = :spent, seq = :seq, mac = :mac WHERE scope = :scope"


def load_accounts(
    connection: DatabaseConnection, key: bytes, ledger_id: str, scopes: Iterable[str] | None = None
) -> dict[str, Account]:
    """Return the accounts of `scopes` that exist (None: all), by scope. Raises ledger_tampered if a row was edited."""
    if scopes is None:
        rows = connection.rows(f"{_ROWS} ORDER BY scope")
    else:
        named = {f"scope{index}": scope for index, scope in enumerate(scopes)}
        rows = connection.rows(f"{_ROWS} WHERE scope IN ({', '.join(f':{name}' for name in named)})", **named)
    accounts = [_KNOWN.get((key, ledger_id, row)) or _account(row, key, ledger_id) for row in rows]
    return {account.scope: account for account in accounts}


def insert_account(connection: DatabaseConnection, key: bytes, ledger_id: str, account: Account) -> None:
    """Store a new account."""
    connection.run(_INSERT, **_row(account, key, ledger_id))


def update_accounts(connection: DatabaseConnection, key: bytes, ledger_id: str, changed: Iterable[Account]) -> None:
    """Store the new state of existing accounts."""
    connection.run_each(_UPDATE, [_row(account, key, ledger_id) for account in changed])


# A row equal in every column to one that was authenticated under this key is not authenticated again: the outcome depends
# only on the row. Most charges read the row that the previous charge wrote.
_KNOWN: dict[tuple[bytes, str, tuple[Any, ...]], Account] = {}


def _know(account: Account, row: tuple[Any, ...], key: bytes, ledger_id: str) -> None:
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[key, ledger_id, row] = account


def _row(account: Account, key: bytes, ledger_id: str) -> dict[str, Any]:
    row = account.row(key, ledger_id)
    _know(account, tuple(row.values()), key, ledger_id)
    return row


def _account(row: tuple[Any, ...], key: bytes, ledger_id: str) -> Account:
    facts = dict(zip(_COLUMNS, row, strict=True))
    stored_mac = facts.pop("mac")
    try:
        if same(account_mac(key, ledger_id, facts), stored_mac):
            limits, spent = from_text(json.loads(facts["limits"])), from_text(json.loads(facts["spent"]))
            account = Account(facts["scope"], facts["accountant"], limits, spent, facts["seq"])
            _know(account, row, key, ledger_id)
            return account
    except (ValueError, TypeError, AttributeError):
        pass
    raise refuse("ledger_tampered", entry=facts["seq"], problem="the running totals of a scope were edited")
