"""Export of the ledger for an outside auditor, who can recompute the totals and, given the key, every digest.

JSON lines: one object per entry, {"digest": hex, "body": text}.  `body` is the exact authenticated text, itself JSON:
every entry has seq, kind, time (UTC, informative only); a charge has id, analyst, session, scopes, charge, what and
policy_version; unit names the privacy unit and the neighbours of later charges; account and limits have scope,
accountant and limits; committed and failed have resolves and note.  created has dataset and ledger; adopted has nothing else;
restored has entry (the last one of the backup), seen (that of the head that was found, or null) and lost (the most that an
account is charged for entries that the backup lacks; null: all that it has left); witness has seen and reason.
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
from typing import TextIO

from dpsql.ledger.records import Entry
from dpsql.media.text import sheet_cell
from dpsql.privacy.accounting.ledger_units import DECIMALS

COLUMNS = (
    *("seq", "kind", "time", "id", "resolves", "analyst", "session", "scopes", *DECIMALS),
    *("accountant", "what", "policy_version", "note", "digest"),
)


def write_json_lines(entries: Iterable[Entry], out: TextIO) -> None:
    """Write one JSON object per line, as described above."""
    out.writelines(json.dumps({"digest": entry.digest, "body": entry.body}) + "\n" for entry in entries)


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
