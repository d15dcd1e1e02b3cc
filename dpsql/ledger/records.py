"""Request and record types of the ledger: immutable, without storage; their authentication, and their export.

Amounts are plain integers by dimension: epsilon and delta in units of 10^-18, rho in units of 10^-36.  They may exceed
64 bits, so they are stored as decimal text and added in Python.

HMAC-SHA256 (RFC 2104) under the ledger's key binds each entry to all entries before it:

    digest[0] = 64 zeros;  digest[n] = hex(HMAC(key, "dpsql entry\\n" + digest[n-1] + "\\n" + body[n]))

The first words of each authenticated text separate entries, accounts, heads and releases."""

from __future__ import annotations

import csv
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TextIO, TypedDict
from urllib.parse import quote

from dpsql.errors.exceptions import refuse
from dpsql.media.text import sheet_cell
from dpsql.privacy.ledger_units import DECIMALS

if TYPE_CHECKING:
    from hashlib import _Hash as HASH


Units = dict[str, int]

DATASET = "dataset"
_SCOPE = re.compile(
    r"dataset|(?:analyst|session|project):.+|window:[0-9]{4}-[0-9]{2}-[0-9]{2}(?::(?:analyst|project):.+)?", re.DOTALL
)
_LONGEST_SCOPE = 230
_LONGEST_NAME = 200
_LONGEST_ID = 2000
_LONGEST_TEXT = 2000
_TOO_MUCH = 10**400
_ENCODED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


@dataclass(frozen=True)
class ChargeRequest:
    """The request for one charge: unless `charge` fits all of `scopes`, nothing is written.

    `id` is the idempotency key: an id is charged at most once.  `what` is a short public text or a digest of the
    private block; `policy_version` names the policy from which the price was computed.
    """

    id: str
    analyst: str
    session: str
    scopes: tuple[str, ...]
    charge: Mapping[str, int]
    what: str
    policy_version: str

    def __post_init__(self) -> None:
        for name, longest in (("id", _LONGEST_ID), ("analyst", _LONGEST_NAME), ("session", _LONGEST_NAME)):
            checked_text(name, getattr(self, name), longest)
        checked_text("what", self.what, _LONGEST_TEXT)
        checked_text("policy_version", self.policy_version, _LONGEST_NAME)
        for scope in self.scopes:
            checked_scope(scope)
        if DATASET not in self.scopes or len(set(self.scopes)) != len(self.scopes):
            raise refuse("ledger_request", problem="every charge names the dataset scope, and each scope once")
        checked_units(self.charge)


@dataclass(frozen=True)
class Entry:
    """One line of the ledger. `body` is the exact canonical text that `digest` (hexadecimal) authenticates.

    `kind` is created, adopted, restored, witness, unit, account, limits, clock, charge, committed or failed;
    `id` is the idempotency
    key of a charge and `resolves` the number of the charge that committed or failed.
    """

    seq: int
    kind: str
    id: str | None
    resolves: int | None
    body: str
    digest: str

    @property
    def facts(self) -> dict[str, Any]:
        """The parsed `body`; amounts are decimal text."""
        facts: dict[str, Any] = json.loads(self.body)
        return facts


@dataclass(frozen=True)
class LedgerVerdict:
    """Outcome of a check of the whole ledger: `first_bad` is the number of the first invalid entry."""

    entries: int
    first_bad: int | None = None
    problem: str = ""

    @property
    def sound(self) -> bool:
        """Return whether all entries, totals and the head agree."""
        return not self.problem


def asker(analyst: str | None) -> str:
    """Return an unambiguous name of the asker: an analyst of an old ledger may even be called "owner"."""
    return "owner" if analyst is None else f"analyst:{quote(analyst, safe='')}"


def charge_id(analyst: str | None, request_id: str) -> str:
    """Return the idempotency key of a request, with the asker: nobody else can use it, or learn that it was used."""
    checked_text("a request id", request_id, _LONGEST_NAME)
    return f"{asker(analyst)}/{request_id}"


def request_of(charge: str) -> str:
    """Return the request id in a `charge_id`, which is the asker's receipt; return any other id unchanged."""
    who, slash, request_id = charge.partition("/")
    return request_id if slash and (who == "owner" or who.startswith("analyst:")) else charge


def canonical(facts: Mapping[str, Any]) -> str:
    """Return the canonical text of an object: JSON, keys sorted, no spaces, ASCII only. Digests authenticate this text."""
    return _ENCODED(facts)


def checked_text(name: str, text: object, longest: int) -> str:
    """Return `text` if it is a non-empty text of at most `longest` characters. Raises ledger_request otherwise."""
    if not isinstance(text, str) or not 0 < len(text) <= longest:
        raise refuse("ledger_request", problem=f"{name} must be a text of 1 to {longest} characters")
    return text


def checked_scope(scope: str) -> str:
    """Return `scope` if it is "dataset", "analyst:NAME", "session:ID", "project:NAME", or the scope of a window
    (`windows`): "window:2026-11-01", alone or followed by ":analyst:NAME" or ":project:NAME"."""
    checked_text("a scope", scope, _LONGEST_SCOPE)
    if _SCOPE.fullmatch(scope) is None:
        raise refuse(
            "ledger_request", problem="a scope is dataset, analyst:NAME, session:ID, project:NAME or window:DAY"
        )
    return scope


def checked_units(units: Mapping[str, int]) -> Units:
    """Return a copy of `units` if it has dimensions and every amount is an integer >= 0 (True is not an amount)."""
    for dimension, amount in units.items():
        if dimension not in DECIMALS or type(amount) is not int or not 0 <= amount < _TOO_MUCH:
            raise refuse("ledger_request", problem="amounts are integers >= 0 of epsilon, delta or rho")
    if not units:
        raise refuse("ledger_request", problem="an amount without dimensions says nothing")
    return dict(units)


def to_text(units: Mapping[str, int]) -> dict[str, str]:
    return {dimension: str(amount) for dimension, amount in units.items()}


def from_text(units: Mapping[str, str]) -> Units:
    """Return amounts from decimal text. Raises ValueError for anything else."""
    if not all(isinstance(amount, str) and amount.isascii() and amount.isdigit() for amount in units.values()):
        raise ValueError("amounts are decimal digits")
    return {dimension: int(amount) for dimension, amount in units.items()}


def added(left: Mapping[str, int], right: Mapping[str, int]) -> Units:
    """Return the sum by dimension; both must have the same dimensions, because a missing dimension is not zero."""
    if left.keys() != right.keys():
        raise refuse("ledger_shape", left=", ".join(sorted(left)), right=", ".join(sorted(right)))
    return {dimension: amount + right[dimension] for dimension, amount in left.items()}


def decimal_text(dimension: str, amount: int) -> str:
    """Return `amount` units as an exact decimal number: decimal_text("epsilon", 5 * 10**17) is "0.5"."""
    locations = DECIMALS[dimension]
    whole, part = divmod(abs(amount), 10**locations)
    digits = f"{part:0{locations}d}".rstrip("0")
    return f"{'-' if amount < 0 else ''}{whole}{'.' + digits if digits else ''}"


def readable_text(decimal: str) -> str:
    """Return a decimal number for people, with four digits, rounded down: what is left must not look like more."""
    digits = Context(prec=4, rounding=ROUND_DOWN)
    return f"{digits.create_decimal(decimal).normalize(digits):f}"


START = "0" * 64
_BLOCK = 64  # block size of SHA-256 in bytes
_INNER, _OUTER = (bytes(byte ^ padding for byte in range(256)) for padding in (0x36, 0x5C))


def mac(key: bytes, use: str, *parts: bytes) -> str:
    """Return HMAC-SHA256 of `use` and the length-prefixed `parts`, in hexadecimal."""
    return _authenticated(key, use.encode() + b"".join([b"\n%d:%b" % (len(part), part) for part in parts]))


def same(left: str, right: object) -> bool:
    """Compare two digests in constant time; a value that is not a text is unequal."""
    return isinstance(right, str) and hmac.compare_digest(left.encode(), right.encode("utf-8", "replace"))


def linked(key: bytes, previous: str, body: str) -> str:
    """Return the digest of the entry `body` that follows an entry with digest `previous`."""
    return _authenticated(key, f"dpsql entry\n{previous}\n{body}".encode())


def account_mac(key: bytes, ledger_id: str, facts: Mapping[str, Any]) -> str:
    return mac(key, "dpsql account", ledger_id.encode(), canonical(facts).encode())


@lru_cache(maxsize=16)
def _keyed(key: bytes) -> tuple[HASH, HASH]:
    """Return SHA-256 states after the inner and the outer padded key; hmac would look up the algorithm for every text."""
    block = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    return hashlib.sha256(block.translate(_INNER)), hashlib.sha256(block.translate(_OUTER))


def _authenticated(key: bytes, text: bytes) -> str:
    """Return hex(SHA-256(outer + SHA-256(inner + text))): HMAC-SHA256 of RFC 2104, section 2."""
    inner, outer = _keyed(key)
    begun, ended = inner.copy(), outer.copy()
    begun.update(text)
    ended.update(begun.digest())
    return ended.hexdigest()


def key_mark(key: bytes, ledger_id: str) -> str:
    """Return an identifier of the key that does not reveal it, by which a wrong key is distinguished from an edited ledger."""
    return mac(key, "dpsql key", ledger_id.encode())[:32]


# --- export of the ledger for an outside auditor, who can recompute the totals and, given the key, every digest -------
# JSON lines: one `EntryObject` a line. `body` is the exact authenticated text, itself JSON: the `FACTS` of its kind.
# Amounts are decimal text: epsilon and delta in units of 10^-18, rho in units of 10^-36. The spent amount of a scope is
# the sum of `charge` over the charges that list it, whether or not they were resolved. With the key, digest[n] =
# hex(HMAC-SHA256(key, "dpsql entry\n" + digest[n-1] + "\n" + body[n])), digest[0] = 64 zeros.
#
# CSV: one line per entry, with the same facts in columns; scopes are joined by a space; the amounts of a charge or of a
# limit are in the columns epsilon, delta, rho. An apostrophe precedes a text that a spreadsheet would take for a
# formula.


class EntryFacts(TypedDict):
    """Facts of every entry. `time`: in UTC, informative only. An entry of kind adopted has nothing else."""

    seq: int
    kind: str
    time: str


class CreatedFacts(EntryFacts):
    """The first entry of a ledger: its own id, that of its key, and the format of what follows."""

    dataset: str
    ledger: str
    key: str
    format: int


class UnitFacts(EntryFacts):
    """The privacy unit and the neighbours of later charges."""

    unit: str


class AccountFacts(EntryFacts):
    """A new account with its limits."""

    scope: str
    accountant: str
    limits: dict[str, str]


class LimitsFacts(AccountFacts):
    """Other limits of an account than those that `were`."""

    were: dict[str, str]


Subject = TypedDict("Subject", {"what": str})  # noqa: UP013
"""What was charged for: a short public text or a digest of the private block."""


class ChargeFacts(EntryFacts, Subject):
    """A reserved charge."""

    id: str
    analyst: str
    session: str
    scopes: list[str]
    charge: dict[str, str]
    policy_version: str


class OutcomeFacts(EntryFacts):
    """The outcome of the charge with number `resolves`."""

    resolves: int
    note: str


SeenHead = TypedDict("SeenHead", {"seen": int | None})  # noqa: UP013
"""The number of the head that was found, or null."""


class RestoredFacts(EntryFacts, SeenHead):
    """`entry`: the last one of the backup; `lost`: the most that an account is charged
    for entries that the backup lacks, null for all that it has left."""

    entry: int
    lost: dict[str, str] | None


class WitnessFacts(EntryFacts, SeenHead):
    """A change of the ledger's witness."""

    reason: str


class ClockFacts(EntryFacts):
    """The owner's word that the present day is `day`. `window`: the start of its budget, null if there are no windows."""

    day: str
    window: str | None
    reason: str


FACTS = {
    "created": CreatedFacts, "adopted": EntryFacts, "unit": UnitFacts, "account": AccountFacts, "limits": LimitsFacts,
    "charge": ChargeFacts, "committed": OutcomeFacts, "failed": OutcomeFacts, "restored": RestoredFacts, "witness": WitnessFacts,
    "clock": ClockFacts,
}  # fmt: skip
"""The facts of the entries of each kind."""


class EntryObject(TypedDict):
    """One line of the export."""

    digest: str
    body: str


COLUMNS = (
    *("seq", "kind", "time", "id", "resolves", "analyst", "session", "scopes", *DECIMALS),
    *("accountant", "what", "policy_version", "note", "digest"),
)


def write_json_lines(entries: Iterable[Entry], out: TextIO) -> None:
    out.writelines(json.dumps(EntryObject(digest=entry.digest, body=entry.body)) + "\n" for entry in entries)


def write_csv(entries: Iterable[Entry], out: TextIO) -> None:
    """Write one line per entry under `COLUMNS`, as described above."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for entry in entries:
        facts = entry.facts
        facts |= facts.get("charge", facts.get("limits", {}))
        facts["scopes"] = " ".join(facts.get("scopes", [facts["scope"]] if "scope" in facts else []))
        facts["digest"] = entry.digest
        writer.writerow([sheet_cell(str(facts.get(column, ""))) for column in COLUMNS])
