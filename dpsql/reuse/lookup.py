"""Look up the stored release that answers a block, and store new ones (docs/reuse.md).

Stored releases have already been charged, and everything computed from them is post-processing. Besides the releases, the
store holds small entries without rows: for a request id, which release answered it; for a question, the version of the
data at its first release; for a derived answer, the release it was first computed from, so that it does not change.

Releases that were stored in format 1, in which the whole policy was part of a release's identity, are converted. Names in the
store are fingerprints, so that needs the question: at the first lookup of a block under the policy of its measurement, all
releases of the block's relation are stored again under their names in this format. What they read is not recorded, so they count
as having read every column of their tables. The old rows are not changed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from math import isclose
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from dpsql.engine.served_tables import UNNAMED
from dpsql.errors.exceptions import Fault, refuse
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.records import asker, charge_id
from dpsql.noise.perturb import ChosenNumber, NoisyAnswer, NoisyTerm
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.plan import BoundedBlock
from dpsql.plan.stability import family, marks_read, tables
from dpsql.planning.planner import MOST_KEPT, Planned, QuestionToken
from dpsql.policy import Policy
from dpsql.policy.versions import PERIODS, changed, declared_version, mark
from dpsql.pricing.explain import block_names, describe_loss, shown_errors
from dpsql.pricing.options import Reuse
from dpsql.pricing.pricing import PricedBlock
from dpsql.privacy.mechanisms.partition_selection import Threshold
from dpsql.release.release import Release
from dpsql.release.remainder import ReleasedBlock
from dpsql.reuse.derive import Derived, at_least_as_accurate, derive, fresh_errors
from dpsql.reuse.record import Stored, base_of, description, opened, packed, shape_of
from dpsql.reuse.single_flight import UNKNOWN, Stamp, measuring_lock, read_stamp
from dpsql.reuse.store import REMOVED, ReleaseNote, ReleaseStore, StoredRelease
from dpsql.storage.memory import RecentValues
from dpsql.storage.records import dataclass, replace


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
            reads = marks_read(priced.rows_read, self._policy)
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


# Cache of values computed from stored releases, kept as long as the planner keeps the question: dashboards repeat questions.
# This module does not decide what may be answered: the caller compares the sources with the stored releases.

_log = logging.getLogger("dpsql.releases")

Source = TypeVar("Source")
Value = TypeVar("Value")

MOST_BYTES = 64 << 20


class AnswerCache(Generic[Source, Value]):
    """The last value computed for each part of a planned question, with its source; at most `MOST_BYTES` in all. Thread-safe."""

    def __init__(self) -> None:
        self._values: WeakKeyDictionary[QuestionToken, dict[int, tuple[Source, Value]]] = WeakKeyDictionary()
        self._sizes: WeakKeyDictionary[QuestionToken, dict[int, int]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, planned: Planned, part: int = 0) -> tuple[Source, Value] | None:
        """Return the source and the value kept last for a part of the question, or None."""
        with self._lock:
            return self._values.get(planned.token, {}).get(part)

    def keep(self, planned: Planned, source: Source, value: Value, part: int = 0, *, size: int) -> None:
        """Keep a value of about `size` bytes in place of the previous one; the questions whose values were first kept longest ago
        lose theirs if all take too much."""
        with self._lock:
            self._values.setdefault(planned.token, {})[part] = (source, value)
            self._sizes.setdefault(planned.token, {})[part] = size
            excess = sum(sum(sizes.values()) for sizes in self._sizes.values()) - MOST_BYTES
            for token in list(self._sizes):
                if excess <= 0:
                    break
                excess -= sum(self._sizes.pop(token).values())
                self._values.pop(token, None)


OWNER = "owner"
_MOST_NAMED_CHARACTERS = 200_000
_MOVED = (
    "the data, or the period of their data_version, changed while this was measured, so it is not stored: asking again is "
    "charged again"
)
"""Length in all of the texts of questions whose blocks have their names in the store remembered."""
OF_ANOTHER = "a table that is measured with this question"
MOST_KEPT_BYTES = 1 << 18
"""Most bytes of a stored release that is cached with its plan; larger ones are read from the store each time."""


@dataclass(frozen=True, eq=False)
class PaidBlock:
    """A released block and the receipt of the charge that paid for it.

    `errors`: half width (at the confidence of the query) and standard deviation of each term of the block. `how`: in words
    for the analyst, the difference from the planned measurement; empty if it is that measurement. `release`: the key of the
    stored release that it was read or `derived` from; empty if the block was just measured. `unstored`: in words, that it could
    not be stored.
    """

    block: ReleasedBlock
    receipt: str
    errors: Mapping[str, tuple[float, float]]
    how: str = ""
    release: str = ""
    derived: bool = False
    unstored: str = ""

    def source(self, name: str) -> str:
        """Return the sentence that tells the analyst which release the block, called `name`, comes from."""
        return f"{name} comes from the release of receipt {self.receipt}: {self.how or 'the same measurement'}"


def derived_notices(planned: Planned, blocks: Sequence[PaidBlock]) -> tuple[str, ...]:
    """Return a sentence on the release of each derived answer, and on one that was not stored; none for others."""
    derived = [block for block in blocks if block.how]
    names = block_names(planned.plan) if derived else {}
    unstored = dict.fromkeys(block.unstored for block in blocks if block.unstored)
    return (*(block.source(names.get(block.block.name, OF_ANOTHER)) for block in derived), *unstored)


class _Names:
    """Store keys for the releases of one block, for one version of the data and one audience (all analysts, or one)."""

    def __init__(self, key: str, block: BoundedBlock, version: str, policy: Policy, audience: str) -> None:
        self._block = block
        self._rest = (version, audience)
        self._policy = policy
        self.key = fingerprint((key, version, audience))
        self.first = fingerprint(("first", key, audience))

    @cached_property
    def family(self) -> str:
        """The prefix shared by all releases over the same relation, whatever their filters, keys and sums. Releases of one family
        may have read columns that mean different things (`record.Stored.reads`)."""
        relation = family(base_of(self._block.source)[0])
        return fingerprint((relation, tuple(marks_read(relation, self._policy).items()), *self._rest))

    @cached_property
    def alike(self) -> str:
        """The name shared by releases with equal keys and equal rows in their sums, including all that hold the same numbers."""
        return f"{self.family}/{shape_of(self._block)}"


Fill = Callable[[Planned, int, "Sequence[PaidBlock | None]"], Planned]
"""A function that puts the results which a block reads, from the releases of earlier blocks, into a question (`stages`)."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """The result of one lookup: `planned` with the results that are stored, and for each block the release that answers it
    (None: it has to be measured). `stamps`: the states of the missing blocks' locks before the store was read
    (`single_flight`)."""

    planned: Planned
    blocks: list[PaidBlock | None]
    stamps: Mapping[str, Stamp | None]

    @property
    def complete(self) -> tuple[PaidBlock, ...] | None:
        """Return the releases of all blocks; None if one has to be measured."""
        stored = tuple(block for block in self.blocks if block is not None)
        return stored if len(stored) == len(self.blocks) else None


class ReuseCaches:
    """Caches shared by the sessions of one store: opened releases, and answers computed from them."""

    def __init__(self) -> None:
        self.opened: AnswerCache[StoredRelease, PaidBlock] = AnswerCache()
        self.answers: AnswerCache[tuple[ReleasedBlock, ...], Release] = AnswerCache()
        self.names: RecentValues[_Names] = RecentValues(MOST_KEPT, _MOST_NAMED_CHARACTERS)


class StoredReleases:
    """The stored releases that may answer one analyst's questions. Thread-safe; raises `Fault` if the storage fails."""

    def __init__(
        self,
        policy: Policy,
        ledger: Ledger,
        store: ReleaseStore,
        analyst: str | None,
        data_version: Callable[[tuple[str, ...]], str],
        caches: ReuseCaches,
    ) -> None:
        """`data_version`: returns a fingerprint of the rows of tables; called if the policy does not declare a version."""
        self._policy = policy
        self._ledger = ledger
        self._store = store
        self._analyst = analyst
        self._audience = "" if policy.reuse.shared else asker(analyst)
        self._data_version = data_version
        self._conversion = Conversion(store, policy, self._audience)
        self._named = caches.names
        self._opened = caches.opened
        self._turns = ledger.witness.directory / "turns"

    def version(self, priced: PricedBlock, *, joined: bool = True) -> str:
        """Return the version of the data that a block reads: the declared one, else a fingerprint of its tables and, if `joined`,
        of those that are joined to find the unit of their rows."""
        if (declared := declared_version(self._policy)) is not None:
            return declared
        read = tables(priced.block.source)
        above = {hop[2] for table in read for hop in self._policy.unit_joins(table)} if joined else set[str]()
        return self._data_version(tuple(sorted(read | above)))

    def find(self, planned: Planned, fill: Fill, request_id: str | None = None, *, asking: bool = True) -> Lookup:
        """Find for each block the release that answers it, if any. `asking`: an answer will be given (EXPLAIN gives none).

        `fill` puts the releases of earlier blocks into a later block; a block that waits for a missing one has no release
        yet. Raises Refusal request_lost if `request_id` was charged before and one of its answers is missing: it is
        never charged again.
        """
        blocks: list[PaidBlock | None] = []
        stamps: dict[str, Stamp | None] = {}
        if request_id is not None and not planned.options.reuse:  # else the question's lock covers the request too
            requests = [self._request(planned.keys[index], request_id) for index in range(len(planned.keys))]
            stamps = {name: self._stamp(name, asking) for name in requests}
        charge = None if request_id is None else self._ledger.find(charge_id(self._analyst, request_id))
        for index in range(len(planned.keys)):
            if planned.waiting(index) or (index == 0 and planned.plan.results):
                planned = fill(planned, index, blocks)
            block = None
            if charge is not None and not planned.waiting(index):
                block = self._of_request(planned, index, request_id)
            if block is None and planned.options.reuse:
                names = self._names(planned, index, self.version(planned.price.blocks[index]))
                # A derived answer may follow from any release over the same relation, so it waits for all of their locks.
                name = names.family if planned.options.reuse is Reuse.DERIVE else names.key
                stamp = None
                if not planned.waiting(index):
                    stamp = self._stamp(name, asking)
                    block = self._of_question(planned, index, names, asking)
                if block is None:
                    stamps[name] = stamp if stamps.get(name) in (None, stamp) else UNKNOWN
            blocks.append(block)
        if charge is not None and None in blocks:
            raise refuse("request_lost", entry=charge.seq)
        return Lookup(planned, blocks, stamps)

    def _stamp(self, name: str, asking: bool) -> Stamp:
        """Return the stamp of a lock; UNKNOWN if other machines write to the store, because local locks do not cover them."""
        return read_stamp(self._turns, name) if asking and self._store.is_local else UNKNOWN

    def measuring_lock(
        self, lookup: Lookup, timeout_seconds: float, check: Callable[[], None]
    ) -> AbstractContextManager[bool]:
        """Hold the locks of blocks that a lookup missed, after other holders here. Yields whether the lookup is still current."""
        return measuring_lock(self._turns, lookup.stamps, timeout_seconds, check)

    def keep(
        self, planned: Planned, index: int, noisy: NoisyAnswer, *, receipt: str, version: str, request_id: str | None
    ) -> PaidBlock:
        """Store the release of a block before it is shown, and return it; if another process stored one first, return
        that one.

        `version`: the version of the data before they were read. If they have changed since, it is unknown which state was
        measured: the answer is given, but not stored for other questions.
        """
        priced = planned.price.blocks[index]
        names = self._names(planned, index, version)
        shared = bool(planned.options.reuse) and version == self.version(priced)
        is_moved = bool(planned.options.reuse) and not shared and not version.startswith(UNNAMED)
        unstored = _MOVED if is_moved else ""
        if shared or request_id is not None:
            facts: dict[str, Any] = {
                "receipt": receipt,
                "loss": describe_loss(priced.loss),
                "analyst": self._analyst or OWNER,
            }
            facts |= {"reads": marks_read(priced.rows_read, self._policy)} | description(priced)
            payload = packed(noisy)
            release: StoredRelease | None
            if shared:
                notes = {names.first: {"version": fingerprint(version)}}
                if request_id is not None:
                    notes[self._request(planned.keys[index], request_id)] = {"release": names.key}
                release = self._put(names.key, payload, facts, block=names.alike, notes=notes)
            else:
                release = self._put(self._request(planned.keys[index], str(request_id)), payload, facts)
            if release is None:
                unstored = (
                    "the answer could not be stored (the store's disk may be full): asking again is charged again"
                )
            elif shared and release.payload is not payload:  # another process was first
                first = self._exact(planned, index, release)
                assert first is not None
                return first
        block = ReleasedBlock(
            priced.block.name,
            noisy.keys,
            noisy.terms,
            priced.block.formulas,
            noisy.row_count,
            priced.block.groups,
            _shown_from(priced),
        )
        return PaidBlock(block, receipt, shown_term_errors(block, _confidence(planned)), unstored=unstored)

    def keep_for_request(self, planned: Planned, stored: Sequence[PaidBlock | None], request_id: str) -> None:
        """Record which stored releases answer part of a request that is being charged: together with the blocks measured for
        it they are the answer that its charge pays for."""
        for index, part in enumerate(stored):
            if part is not None:
                note = {"release": part.release, "derived": part.derived}
                self._put(self._request(planned.keys[index], request_id), b"", note)

    def data_changed(self, planned: Planned, index: int) -> bool:
        """Return whether the first release of this block was computed from another version of the data."""
        version = self.version(planned.price.blocks[index])
        first, now = self._store.get(self._names(planned, index, version).first), fingerprint(version)
        return first is not None and first.note.metadata["version"] != now

    def notes(self, planned: Planned, blocks: Sequence[PaidBlock | None]) -> tuple[str, ...]:
        """Return remarks for EXPLAIN: which releases will answer, and for which blocks the data changed since their release."""
        notes, names = [], block_names(planned.plan)
        for index, (priced, block) in enumerate(zip(planned.price.blocks, blocks, strict=True)):
            if block is not None:
                notes.append(block.source(names.get(priced.block.name, OF_ANOTHER)))
            elif planned.options.reuse and (removed := self._removed_for(planned, index)) is not None:
                name = names.get(priced.block.name, OF_ANOTHER)
                notes.append(f"the stored answer of {name} was removed on {removed}: it is measured and charged again")
            elif planned.options.reuse and self.data_changed(planned, index):
                name = names.get(priced.block.name, OF_ANOTHER)
                event = "a new period began" if self._policy.data_version in PERIODS else "the data changed"
                notes.append(f"{event} since {name} was released: it is measured and charged again")
        return tuple(notes)

    # --- lookup -------------------------------------------------------------------------------------------------------

    def _of_request(self, planned: Planned, index: int, request_id: str | None) -> PaidBlock | None:
        note = self._store.get(self._request(planned.keys[index], str(request_id)))
        if note is None and self._store.has_earlier:
            key = key_in_format_1(planned.price.blocks[index], self._policy)
            note = of_request(self._store, self._request(key, str(request_id)))
        if note is None or "release" not in note.note.metadata:
            return self._exact(planned, index, note)
        release = self._store.get(note.note.metadata["release"])
        if not note.note.metadata.get("derived", False):
            return self._exact(planned, index, release)
        stored = None if release is None else opened(release)
        naming, confidence = self._policy.access is None, _confidence(planned)
        derived = None if stored is None else derive(planned.price.blocks[index], stored, confidence, naming)
        return None if derived is None else self._of_derived(planned, index, derived)

    def _of_question(self, planned: Planned, index: int, names: _Names, asking: bool) -> PaidBlock | None:
        """Return the release of exactly this measurement, else one that the options and the policy accept in its place."""
        block, keyed = self._stored_block(planned, index, names, asking)
        if block is None and self._store.has_earlier:
            priced = planned.price.blocks[index]
            version = self.version(priced, joined=False)
            converted = self._conversion.convert(priced, version, names.key, names.family, names.alike)
            if converted:
                block, keyed = self._stored_block(planned, index, names, asking)
        if block is None and asking:
            self._require_not_removed(planned, names, keyed)
        return block

    def _require_not_removed(self, planned: Planned, names: _Names, keyed: StoredRelease | None) -> None:
        """Raise Refusal answer_removed, once for each asker, if the store had an answer that was removed to keep its bounds.
        `keyed`: what it has under the question's key."""
        removed = self._removed(planned, names, keyed)
        if removed is None:
            return
        notice = fingerprint(("removal said", removed.key, removed.removed, asker(self._analyst)))
        if self._store.get(notice) is None and self._put(notice, b"", {}) is not None:
            raise refuse("answer_removed", receipt=removed.metadata["receipt"], time=removed.removed)

    def _removed_for(self, planned: Planned, index: int) -> str | None:
        version = self.version(planned.price.blocks[index])
        names = self._names(planned, index, version)
        removed = self._removed(planned, names, self._store.get(names.key))
        return None if removed is None else removed.removed

    def _removed(self, planned: Planned, names: _Names, release: StoredRelease | None) -> ReleaseNote | None:
        """Return the note of a removed release that answered a question, or else, under DERIVE, the one removed last of those
        over the same relation: the answer may have followed from it."""
        if release is None and planned.options.reuse is Reuse.DERIVE:
            removed = self._store.of_block(f"{REMOVED}{names.family}/", start=True)
            release = max(removed, key=lambda candidate: candidate.note.removed, default=None)
        return None if release is None or not release.note.removed else release.note

    def _put(self, key: str, payload: bytes, metadata: Mapping[str, Any], **more: Any) -> StoredRelease | None:
        """Store a release; return None, with a line in the owner's log, if the store does not take it. The question goes on: its
        charge is in the ledger, and only a free repeat is lost."""
        try:
            return self._store.put(key, payload, metadata, analyst=asker(self._analyst), **more)
        except Fault as fault:
            _log.error("a release could not be stored: %s", fault.message)
            return None

    def _stored_block(
        self, planned: Planned, index: int, names: _Names, asking: bool
    ) -> tuple[PaidBlock | None, StoredRelease | None]:
        """Return the release that answers a block, and what the store has under its key."""
        if planned.options.reuse is Reuse.DERIVE:
            keyed = self._store.get(names.key)
            stored = [] if keyed is None or keyed.note.removed else [keyed]
        else:
            keyed, stored = self._store.nearest(names.key, names.alike)
        exact = self._exact(planned, index, stored[0]) if stored and stored[0].note.key == names.key else None
        if exact is not None:
            return exact, keyed
        derived = self._derived(planned, planned.price.blocks[index], names, stored, asking)
        return None if derived is None else self._of_derived(planned, index, derived), keyed

    def _of_derived(self, planned: Planned, index: int, derived: Derived) -> PaidBlock:
        how = derived.how
        if derived.same:
            equal = _equal(planned.price.blocks[index], derived, _confidence(planned))
            how = "" if equal else "the same numbers with less noise"
        return PaidBlock(derived.block, derived.stored.receipt, derived.errors, how, derived.stored.key, True)

    def _derived(
        self, planned: Planned, priced: PricedBlock, names: _Names, stored: list[StoredRelease], asking: bool
    ) -> Derived | None:
        """Return the derived answer first given to this question, else the most accurate one.

        Without DERIVE only releases of the same numbers may serve, and they are among `stored`, which stays short
        however many releases over the relation exist.
        """
        derive = planned.options.reuse is Reuse.DERIVE
        if not stored and not derive:
            return None
        pin = self._store.get(_pin(planned, names))
        if pin is not None:
            pinned = self._usable(planned, priced, self._store.get(pin.note.metadata["release"]))
            if pinned is not None:
                return pinned
        if derive:
            stored = self._store.of_block(names.family + "/", start=True)
        candidates = [self._usable(planned, priced, release) for release in stored]
        usable = [derived for derived in candidates if derived is not None]
        if not usable:
            return None
        fresh = fresh_errors(priced, _confidence(planned))
        worst = [
            max(
                (*(d.errors[n][1] / (fresh[n][1] or 1) for n in d.errors), *(m.error_ratio for m in d.matches)),
                default=0.0,
            )
            for d in usable
        ]
        best = usable[worst.index(min(worst))]
        if asking and pin is None:
            standing = self._put(_pin(planned, names), b"", {"release": best.stored.key})
            pinned_key = best.stored.key if standing is None else standing.note.metadata["release"]
            best = next((derived for derived in usable if derived.stored.key == pinned_key), best)
        return best

    def _usable(self, planned: Planned, priced: PricedBlock, release: StoredRelease | None) -> Derived | None:
        """Return the block computed from `release` if the options and the policy allow that, else None."""
        try:
            stored = None if release is None else opened(release)
        except Fault as error:  # an unreadable release of another question must not stop this one
            if error.slug != "release_unknown":
                raise
            stored = None
        naming = self._policy.access is None
        if stored is not None and changed(self._policy, stored.reads):
            return None
        derived = None if stored is None else derive(priced, stored, _confidence(planned), naming)
        if derived is None:
            return None
        target = planned.options.target_error
        if target is not None:
            errors = shown_errors(derived.errors, priced, _confidence(planned))
            if any(error > target for error in (*errors.values(), *(match.worst_error for match in derived.matches))):
                return None
        if not derived.same:
            return derived if planned.options.reuse is Reuse.DERIVE else None
        if _equal(priced, derived, _confidence(planned)):
            return derived
        better = at_least_as_accurate(priced, derived, _confidence(planned))
        return derived if better and self._policy.reuse.more_accurate else None

    def _exact(self, planned: Planned, index: int, release: StoredRelease | None) -> PaidBlock | None:
        """Return the block of a release of exactly this measurement, from the cache if an equal release was opened before."""
        if release is None:
            return None
        cached = self._opened.get(planned, index)
        if cached is not None and cached[0] == release:
            return cached[1]
        stored = opened(release)
        if stored is None:
            return None
        block = _block(planned.price.blocks[index], stored)
        errors = shown_term_errors(block, _confidence(planned))
        paid = PaidBlock(block, stored.receipt, errors, release=release.note.key)
        if len(release.payload) <= MOST_KEPT_BYTES:
            self._opened.keep(planned, release, paid, index, size=len(release.payload))
        return paid

    # --- names in the store -------------------------------------------------------------------------------------------

    def _names(self, planned: Planned, index: int, version: str) -> _Names:
        """Return the store keys of a block; `planned.keys` covers everything that its numbers depend on."""
        key, block = planned.keys[index], planned.price.blocks[index].block
        make = partial(_Names, key, block, version, self._policy, self._audience)
        return self._named.get((key, version, self._audience), make, len(planned.statement.sql))

    def _request(self, key: str, request_id: str) -> str:
        return fingerprint(("request", asker(self._analyst), request_id, key))


def _pin(planned: Planned, names: _Names) -> str:
    """Return the name of the note that says from which release a question was first derived."""
    return fingerprint(("derived", names.key, planned.options.reuse.value))


def _confidence(planned: Planned) -> float:
    return float(planned.options.confidence)


def _equal(priced: PricedBlock, derived: Derived, confidence: float) -> bool:
    """Return whether stored noise has the standard deviation of a fresh measurement, and numbers were chosen as accurately."""
    fresh = fresh_errors(priced, confidence)
    return all(match.error_ratio == 1 for match in derived.matches) and all(
        isclose(derived.errors[name][1], fresh[name][1], rel_tol=1e-9) for name in derived.errors
    )


def shown_term_errors(block: ReleasedBlock, confidence: float) -> dict[str, tuple[float, float]]:
    """Return the half width and the standard deviation of each term of a released block."""
    return {term.name: (term.half_width(confidence), term.standard_deviation()) for term in block.terms}


def _block(priced: PricedBlock, stored: Stored) -> ReleasedBlock:
    terms = tuple(
        NoisyTerm(
            term.name, stored.table.column(term.name).to_numpy(), 2.0 ** (term.noise.shift - term.grid), term.noise,
            term.grid, term.whole,
        )
        for term in stored.terms
    )  # fmt: skip
    chosen = tuple(ChosenNumber(number.name, stored.table.column(number.name).to_numpy()) for number in stored.numbers)
    keys = stored.table.select([key.name for key in stored.keys])
    rows, groups = stored.table.num_rows, priced.block.groups
    return ReleasedBlock(
        priced.block.name, keys, (*terms, *chosen), priced.block.formulas, rows, groups, _shown_from(priced)
    )


def _shown_from(priced: PricedBlock) -> dict[str, float]:
    """Return the least released value of the counting term at which a key is shown, if a threshold decides (`conditional`)."""
    rule = priced.noise.selection
    if not isinstance(rule, Threshold):
        return {}
    counted = next((term for term in priced.noise.terms if term.name == rule.column), None)
    return {} if counted is None else {counted.name: rule.tau * 2.0 ** (counted.noise.shift - counted.grid)}
