"""Conversion of releases that were stored in format 1, in which the whole policy was part of a release's identity.

Names in the store are fingerprints, so a release can be converted only by who knows its question: at the first lookup of a block
under the policy of its measurement, all releases of the block's relation are stored again under their names in this format. What
they read is not recorded, so they count as having read every column of their tables. The old rows are not changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.stability import tables
from dpsql.plan.unused_columns import identity, marks_read
from dpsql.policy import Policy
from dpsql.policy.versions import mark
from dpsql.pricing.options import Reuse
from dpsql.pricing.pricing import PricedBlock
from dpsql.reuse.record import base_of
from dpsql.reuse.store import ReleaseStore, StoredRelease


class Conversion:
    """The releases in format 1 of one audience, which are looked for once in each family."""

    def __init__(self, store: ReleaseStore, policy: Policy, audience: str) -> None:
        self._store, self._policy, self._audience = store, policy, audience
        self._families: set[str] = set()

    def convert(self, priced: PricedBlock, version: str, key: str, family: str, alike: str) -> bool:
        """Convert the release of exactly this block, and those of its family; return whether there are any. `key`, `family` and
        `alike` are the block's names in the present format."""
        rest = (self._policy.meaning, version, self._audience)
        old_key = fingerprint((key_in_format_1(priced, self._policy), version, self._audience))
        (exact,) = self._store.earlier(old_key) or (None,)
        if exact is not None:
            reads = marks_read(identity(priced.block), self._policy)
            self._stored_again(exact, key, alike, reads)
        for mode in (Reuse.ON, Reuse.DERIVE):
            for pin in self._store.earlier(fingerprint(("derived", old_key, mode.value))):
                release = _converted_key(pin.note.metadata["release"])
                self._store.put(fingerprint(("derived", key, mode.value)), b"", {"release": release})
        relation = base_of(priced.block.source)[0]
        old_family = fingerprint((relation, *rest))
        if old_family in self._families:
            return exact is not None
        self._families.add(old_family)
        names = [name for table in tables(relation) for name in (table, *self._columns(table))]
        reads = {name: str(mark(self._policy, name)) for name in sorted(names)}
        releases = self._store.earlier(f"{old_family}/", start=True)
        for old in releases:
            shape = old.note.block.removeprefix(old_family)
            self._stored_again(old, _converted_key(old.note.key), family + shape, reads)
        return exact is not None or bool(releases)

    def _columns(self, table: str) -> list[str]:
        return [f"{table}.{column}" for column in self._policy.tables[table].columns]

    def _stored_again(self, release: StoredRelease, key: str, block: str, reads: dict[str, str]) -> None:
        metadata: dict[str, Any] = {**release.note.metadata, "reads": reads}
        self._store.put(key, release.payload, metadata, block=block, analyst=str(metadata.get("analyst", "")))


def of_request(store: ReleaseStore, request: str) -> StoredRelease | None:
    """Return the release of exactly the block that a request in format 1 asked for, or None. `request`: its name in the store."""
    (note,) = store.earlier(request) or (None,)
    if note is None or "release" not in note.note.metadata:
        return note
    (release,) = store.earlier(note.note.metadata["release"]) or (None,)
    return None if note.note.metadata.get("derived", False) else release


def key_in_format_1(priced: PricedBlock, policy: Policy) -> str:
    """Return the key that format 1 gave to a block."""
    plan = priced.noise
    measured = (plan.terms, plan.selection, *plan.measurements)
    return fingerprint((replace(priced.block, name="", formulas=()), *measured, policy.meaning))


def _converted_key(key: str) -> str:
    return fingerprint(("converted", key))
