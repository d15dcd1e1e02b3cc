"""The authenticated rows of a ledger: entries of the chain, appended and read in order, and accounts, with the accountant, the
limits and the spent amounts of each scope."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.ledger.database import DatabaseConnection
from dpsql.ledger.records import Entry, Units, account_mac, added, canonical, from_text, linked, same, to_text
from dpsql.ledger.witness import Head, Witness
from dpsql.storage.records import dataclass, replace


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
        """Return how many charges like this one still fit; 0 for a charge of nothing, and where more is spent than a limit."""
        if any(self.spent[name] > limit for name, limit in self.limits.items()):
            return 0
        return min((self.remaining[name] // amount for name, amount in charge.items() if amount), default=0)

    def must_change(self, accountant: str, limits: Units) -> bool:
        """Return whether `limits` differ from the account's. Raises ledger_accountant for another accountant or dimensions."""
        if accountant != self.accountant or limits.keys() != self.limits.keys():
            raise refuse("ledger_accountant", scope=self.scope, found=self.accountant, asked=accountant)
        return limits != self.limits

    def after(self, seq: int, *, spent: Units | None = None, limits: Units | None = None) -> Account:
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


_ACCOUNT_COLUMNS = ("scope", "accountant", "limits", "spent", "seq", "mac")
_MOST_KNOWN = 1000
_ROWS = f"SELECT {', '.join(_ACCOUNT_COLUMNS)} FROM dpsql_accounts"
_INSERT_ACCOUNT = (
    f"INSERT INTO dpsql_accounts ({', '.join(_ACCOUNT_COLUMNS)}) "
    "VALUES (:scope, :accountant, :limits, :spent, :seq, :mac)"
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
    connection.run(_INSERT_ACCOUNT, **_row(account, key, ledger_id))


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
    facts = dict(zip(_ACCOUNT_COLUMNS, row, strict=True))
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


_PAGE = 1000
_ENTRY_COLUMNS = "seq, kind, id, resolves, body, digest"
_SINCE = "SELECT seq, digest FROM dpsql_entries WHERE seq >= :seq ORDER BY seq"
_BY_NUMBER = "SELECT digest FROM dpsql_entries WHERE seq = :seq"
_AFTER = f"SELECT {_ENTRY_COLUMNS} FROM dpsql_entries WHERE seq > :seq AND seq <= :last ORDER BY seq LIMIT {_PAGE}"
_NO_END = 2**63 - 1
_BY_ID = f"SELECT {_ENTRY_COLUMNS} FROM dpsql_entries WHERE id = :id"
_INSERT_ENTRY = f"INSERT INTO dpsql_entries ({_ENTRY_COLUMNS}) VALUES (:seq, :kind, :id, :resolves, :body, :digest)"


def now() -> str:
    """Return the date and time in UTC, for readers of the ledger. Nothing depends on it, because clocks jump."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def tip(connection: DatabaseConnection, head: Head) -> Head:
    """Return the last entry of a ledger that must contain `head`. Raises ledger_older or ledger_tampered if it does not."""
    rows = connection.rows(_SINCE, seq=head.seq)
    if head.seq == 0:
        return Head(*rows[-1]) if rows else head
    if not rows:
        raise refuse("ledger_older", entry=head.seq)
    if not same(head.digest, rows[0][1]):
        raise refuse("ledger_tampered", entry=head.seq, problem="it is not the entry that was seen before")
    return Head(*rows[-1])


def has_entry(connection: DatabaseConnection, entry: Head) -> bool:
    rows = connection.rows(_BY_NUMBER, seq=entry.seq)
    return bool(rows) and same(entry.digest, rows[0][0])


class ChainWriter:
    """The end of the chain in one writer's transaction: `last` advances as entries are appended."""

    def __init__(self, connection: DatabaseConnection, witness: Witness, last: Head) -> None:
        self.connection = connection
        self.last = last
        self._witness = witness

    def append(self, kind: str, facts: Mapping[str, Any]) -> int:
        """Write the next entry and return its number. `facts` must not contain floats."""
        seq = self.last.seq + 1
        body = canonical({"seq": seq, "kind": kind, "time": now(), **facts})
        digest = linked(self._witness.key, self.last.digest, body)
        named = {"id": facts.get("id"), "resolves": facts.get("resolves")}
        self.connection.run(_INSERT_ENTRY, seq=seq, kind=kind, body=body, digest=digest, **named)
        self.last = Head(seq, digest)
        return seq

    def accounts(self, scopes: Iterable[str] | None = None) -> dict[str, Account]:
        """Return the accounts of `scopes` that exist (None: all), by scope."""
        return load_accounts(self.connection, self._witness.key, self._witness.ledger_id, scopes)

    def open(self, scope: str, accountant: str, limits: Units) -> Account:
        """Open an account of which nothing is spent."""
        seq = self.append("account", {"scope": scope, "accountant": accountant, "limits": to_text(limits)})
        account = Account(scope, accountant, limits, dict.fromkeys(limits, 0), seq)
        insert_account(self.connection, self._witness.key, self._witness.ledger_id, account)
        return account

    def limit(self, account: Account, limits: Units) -> Account:
        """Record other limits of an account."""
        facts = {"scope": account.scope, "accountant": account.accountant, "limits": to_text(limits)}
        changed = account.after(self.append("limits", {**facts, "were": to_text(account.limits)}), limits=limits)
        self._update([changed])
        return changed

    def spend(self, seq: int, charge: Mapping[str, int], accounts: Iterable[Account]) -> dict[str, Account]:
        """Add the charge of entry `seq` to what is spent of each account; return these by scope."""
        charged = [account.after(seq, spent=added(account.spent, charge)) for account in accounts]
        self._update(charged)
        return {account.scope: account for account in charged}

    def _update(self, changed: list[Account]) -> None:
        key, ledger_id = self._witness.key, self._witness.ledger_id
        self.connection.run_each(_UPDATE, [_row(account, key, ledger_id) for account in changed])


def rows_after(connection: DatabaseConnection, seq: int, last: int = _NO_END) -> list[tuple[Any, ...]]:
    """Return the rows of the next entries after number `seq`, up to number `last` and at most 1000."""
    return connection.rows(_AFTER, seq=seq, last=last)


def page_after(connection: DatabaseConnection, seq: int) -> list[Entry]:
    """Return the next entries after number `seq`, at most 1000."""
    return [Entry(*row) for row in rows_after(connection, seq)]


def last_of_kinds(connection: DatabaseConnection, kinds: tuple[str, ...]) -> Entry | None:
    """Return the newest entry of these kinds, or None."""
    named = {f"kind{index}": kind for index, kind in enumerate(kinds)}
    marks = ", ".join(f":{name}" for name in named)
    rows = connection.rows(
        f"SELECT {_ENTRY_COLUMNS} FROM dpsql_entries WHERE kind IN ({marks}) ORDER BY seq DESC LIMIT 1", **named
    )
    return Entry(*rows[0]) if rows else None


def pages(connection: DatabaseConnection, seq: int) -> Iterator[Entry]:
    """Yield all entries after number `seq` in order."""
    while page := page_after(connection, seq):
        yield from page
        seq = page[-1].seq


def find_charge(connection: DatabaseConnection, request_id: str) -> Entry | None:
    rows = connection.rows(_BY_ID, id=request_id)
    return Entry(*rows[0]) if rows else None
