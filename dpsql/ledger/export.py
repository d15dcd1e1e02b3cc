"""Export of the ledger for an outside auditor, who can recompute the totals and, given the key, every digest.

JSON lines: one `EntryObject` a line. `body` is the exact authenticated text, itself JSON: the `FACTS` of its kind.
Amounts are decimal text: epsilon and delta in units of 10^-18, rho in units of 10^-36.  The spent amount of a scope is the
sum of `charge` over the charges that list it, whether or not they were resolved.  With the key,
digest[n] = hex(HMAC-SHA256(key, "dpsql entry\\n" + digest[n-1] + "\\n" + body[n])), digest[0] = 64 zeros.

CSV: one line per entry, with the same facts in columns; scopes are joined by a space; the amounts of a charge or of a limit
are in the columns epsilon, delta, rho.  An apostrophe precedes a text that a spreadsheet would take for a formula.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from typing import TextIO, TypedDict

from dpsql.ledger.records import Entry
from dpsql.media.text import sheet_cell
from dpsql.privacy.ledger_units import DECIMALS


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
    """Write an `EntryObject` per line."""
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
