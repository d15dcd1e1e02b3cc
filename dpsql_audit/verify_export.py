"""Add an exported ledger up again, with nothing of dpsql installed.

    dpsql budget export -p clinic.yaml > ledger.jsonl
    python verify_export.py ledger.jsonl
    python verify_export.py ledger.jsonl --key ledger.key     # checks every digest as well

The format is described in `dpsql/ledger/records.py`. Prints what each scope has spent and may spend, exactly, and what
pure and zero-concentrated differential privacy make of the same charges. The exit status is 1 when something does not
agree: a gap in the numbers, an id charged twice, an outcome of nothing, a scope that has spent more than its limit was
at that moment, a digest that does not follow from the one before.
"""

from __future__ import annotations

import argparse
import csv
import hmac
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PLACES = {"epsilon": 18, "delta": 18, "rho": 36}
DELTA = 1e-6
"""At which rho is told as an epsilon, beside the delta that was charged."""


def read(path: Path) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Each entry as (facts, authenticated text or "", digest); amounts are integers."""
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            for row in csv.DictReader(file):
                yield from_columns(row), "", row["digest"]
            return
        for line in file:
            entry = json.loads(line)
            facts = json.loads(entry["body"])
            for name in ("charge", "limits"):
                if name in facts:
                    facts[name] = {dimension: int(amount) for dimension, amount in facts[name].items()}
            yield facts, entry["body"], entry["digest"]


def from_columns(row: dict[str, str]) -> dict[str, Any]:
    """Return one line of CSV as the facts of an entry; an apostrophe keeps a text from being a spreadsheet's formula."""
    texts = {
        name: text[1:] if text[:2] in ("'=", "'+", "'-", "'@", "'\t", "'\r") else text for name, text in row.items()
    }
    amounts = {name: int(texts[name]) for name in PLACES if texts[name]}
    facts: dict[str, Any] = {**texts, "seq": int(texts["seq"])}
    if facts["kind"] == "charge":
        facts |= {"charge": amounts, "scopes": texts["scopes"].split(" ")}
    elif facts["kind"] in ("account", "limits"):
        facts |= {"limits": amounts, "scope": texts["scopes"]}
    elif facts["kind"] in ("committed", "failed"):
        facts["resolves"] = int(texts["resolves"])
    return facts


class Audit:
    """Running totals; `problems` are sentences with the number of the entry."""

    def __init__(self, key: bytes | None) -> None:
        self.key = key
        self.last, self.digest = 0, "0" * 64
        self.spent: dict[str, dict[str, int]] = {}
        self.squares: dict[str, int] = {}
        self.limits: dict[str, dict[str, int]] = {}
        self.charges: dict[str, int] = {}
        self.open: set[int] = set()
        self.problems: list[str] = []

    def add(self, facts: dict[str, Any], body: str, digest: str) -> None:
        """Add the next entry, and note what is wrong with it."""
        number = facts["seq"]
        if number != self.last + 1:
            self.problems.append(f"entry {number} follows entry {self.last}")
        self.last = number
        if self.key is not None and body:
            text = f"dpsql entry\n{self.digest}\n{body}".encode()
            if not hmac.compare_digest(hmac.digest(self.key, text, "sha256").hex(), digest):
                self.problems.append(f"entry {number} does not follow from the one before under this key")
        self.digest = digest
        if facts["kind"] in ("account", "limits"):
            self.limits[facts["scope"]] = facts["limits"]
            self.spent.setdefault(facts["scope"], dict.fromkeys(facts["limits"], 0))
        elif facts["kind"] == "charge":
            self.charge(number, facts)
        elif facts["kind"] in ("committed", "failed"):
            if facts["resolves"] not in self.open:
                self.problems.append(f"entry {number} is the outcome of {facts['resolves']}, which is no open charge")
            self.open.discard(facts["resolves"])

    def charge(self, number: int, facts: dict[str, Any]) -> None:
        """Every scope of a charge must have had room for it."""
        if facts["id"] in self.charges:
            self.problems.append(f"entry {number} repeats the id of entry {self.charges[facts['id']]}")
        self.charges[facts["id"]] = number
        self.open.add(number)
        for scope in facts["scopes"]:
            if scope not in self.limits:
                self.problems.append(f"entry {number} charges {scope}, which has no account")
                continue
            self.squares[scope] = self.squares.get(scope, 0) + facts["charge"].get("epsilon", 0) ** 2
            for name, amount in facts["charge"].items():
                self.spent[scope][name] = self.spent[scope].get(name, 0) + amount
                if self.spent[scope][name] > self.limits[scope].get(name, 0):
                    self.problems.append(f"entry {number} takes {scope} over its limit of {name}")

    def accountants(self, scope: str) -> str:
        """Return what each accountant makes of a scope's charges. Pure DP adds epsilon up; zCDP adds rho up (epsilon^2 / 2 of
        a pure charge, Bun and Steinke 2016), which is some epsilon at `DELTA`; both add delta up."""
        spent = self.spent.get(scope, {})
        rho = (spent.get("rho", 0) + self.squares.get(scope, 0) / 2) / 10 ** PLACES["rho"]
        pure = f"epsilon {decimal('epsilon', spent.get('epsilon', 0))}" if not spent.get("rho") else "no finite epsilon"
        delta = f", and delta {decimal('delta', spent['delta'])} under both" if spent.get("delta") else ""
        return f"as pure DP {pure}; as zCDP rho {rho:.6g}, which is epsilon {epsilon_of(rho):.4g} at delta {DELTA:g}{delta}"


def epsilon_of(rho: float, delta: float = DELTA) -> float:
    """Return an epsilon at which rho-zCDP is (epsilon, delta)-DP: the least over orders (CKS 2020, proposition 12)."""
    orders = [1 + 10 ** (step / 100) for step in range(-300, 1000)]
    if not rho:
        return 0.0
    fixed = {o: math.log1p(-1 / o) + (math.log(1 / delta) - math.log(o)) / (o - 1) for o in orders}
    return max(0.0, min(rho * order + fixed[order] for order in orders))


def decimal(name: str, amount: int) -> str:
    """Ledger units as an exact decimal number."""
    whole, part = divmod(amount, 10 ** PLACES[name])
    return f"{whole}.{part:0{PLACES[name]}d}".rstrip("0").rstrip(".")


def main() -> int:
    """Check one export, and return the exit status."""
    parser = argparse.ArgumentParser(description="Add an exported dpsql ledger up again.")
    parser.add_argument("export", type=Path, help="JSON lines, or a file ending in .csv")
    parser.add_argument("--key", type=Path, help="the ledger's key file, to check every digest (JSON lines only)")
    arguments = parser.parse_args()
    audit = Audit(bytes.fromhex(arguments.key.read_text().strip()) if arguments.key else None)
    for entry in read(arguments.export):
        audit.add(*entry)
    for scope, amounts in sorted(audit.spent.items()):
        for name, amount in amounts.items():
            print(f"{scope}: {name} {decimal(name, amount)} of {decimal(name, audit.limits[scope][name])} spent")
        if any(amounts.values()):
            print(f"{scope}: {audit.accountants(scope)}")
    print(f"{audit.last} entries, {len(audit.charges)} charges, {len(audit.open)} of them cut short")
    for problem in audit.problems:
        print(f"problem: {problem}", file=sys.stderr)
    return 1 if audit.problems else 0


if __name__ == "__main__":
    sys.exit(main())
