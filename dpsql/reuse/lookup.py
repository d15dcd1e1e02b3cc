"""Stored releases as a session uses them: which one answers a block, and where a new one is put (docs/reuse.md).

What is found here was charged before, and everything done with it is post-processing. Besides the releases, the store
holds small notes of ours without rows: under a request id, which release answered it; under a question, the version of
the data at its first release; under a derived answer, which release it was first computed from, so that it stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from math import isclose
from typing import Any

from dpsql.errors.exceptions import Fault, refuse
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.records import asker, charge_id
from dpsql.noise.perturb import ChosenNumber, NoisyAnswer, NoisyTerm
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.plan import BoundedBlock
from dpsql.plan.stability import tables
from dpsql.planning.planner import MOST_KEPT, Planned
from dpsql.policy import Policy
from dpsql.pricing.explain import describe_loss, shown_errors
from dpsql.pricing.options import Reuse
from dpsql.pricing.pricing import PricedBlock
from dpsql.privacy.mechanisms.partition_selection import Threshold
from dpsql.release.release import Release
from dpsql.release.remainder import ReleasedBlock
from dpsql.reuse.answer_cache import AnswerCache
from dpsql.reuse.derive import Derived, at_least_as_accurate, derive, fresh_errors
from dpsql.reuse.record import Stored, base_of, description, opened, packed, shape_of
from dpsql.reuse.single_flight import UNKNOWN, Stamp, read_stamp, turn
from dpsql.reuse.store import ReleaseNote, ReleaseStore, StoredRelease
from dpsql.storage.recent_values import RecentValues

OWNER = "owner"
MOST_KEPT_BYTES = 1 << 18
"""A larger stored release is read anew each time, not kept beside its plan."""


@dataclass(frozen=True, eq=False)
class Found:
    """A released block and the receipt of the charge that paid for it.

    `errors`: half width (at the confidence asked for) and standard deviation of each term of the block. `how`: how it
    differs from what was asked, in words; empty for the very measurement that was asked for.
    """

    block: ReleasedBlock
    receipt: str
    errors: Mapping[str, tuple[float, float]]
    how: str = ""

    @property
    def remark(self) -> str:
        """For the analyst; empty when there is nothing to say."""
        return f"{self.block.name} comes from the release of receipt {self.receipt}: {self.how}" if self.how else ""


class _Names:
    """What the releases of one block over one version of the data are called in the store, for one audience."""

    def __init__(self, key: str, block: BoundedBlock, version: str, meaning: str, audience: str) -> None:
        self._block = block
        self._rest = (meaning, version, audience)
        self.key = fingerprint((key, version, audience))
        self.first = fingerprint(("first", key, audience))

    @cached_property
    def family(self) -> str:
        """Releases over the same relation, whatever is filtered, grouped and summed above it."""
        return fingerprint((base_of(self._block.source)[0], *self._rest))

    @cached_property
    def alike(self) -> str:
        """Releases with the same keys and the same rows in their sums: any that holds the very numbers is among them."""
        return f"{self.family}/{shape_of(self._block)}"


Fill = Callable[[Planned, int, "Sequence[Found | None]"], Planned]
"""A question with the results that one block reads, from the releases found for earlier blocks (`stages`)."""


@dataclass(frozen=True, eq=False)
class Look:
    """What the store holds of a question: `planned` as far as its results are known, and for each block the release that
    answers it (None: it has to be measured). `stamps`: the turns of what is missing, as they stood before the store was
    read (`single_flight`)."""

    planned: Planned
    found: list[Found | None]
    stamps: Mapping[str, Stamp | None]


class ReuseCaches:
    """What sessions over one store share: stored releases as they were opened, and the answers made of them."""

    def __init__(self) -> None:
        self.opened: AnswerCache[StoredRelease, Found] = AnswerCache()
        self.answers: AnswerCache[tuple[ReleasedBlock, ...], Release] = AnswerCache()


class Shelf:
    """The stored releases that may answer one analyst. Thread-safe; raises `Fault` when the storage fails."""

    def __init__(
        self,
        policy: Policy,
        ledger: Ledger,
        store: ReleaseStore,
        analyst: str | None,
        data_version: Callable[[tuple[str, ...]], str],
        caches: ReuseCaches,
    ) -> None:
        """`data_version`: fingerprint of the rows of tables, where the policy does not declare one."""
        self._policy = policy
        self._ledger = ledger
        self._store = store
        self._analyst = analyst
        self._audience = "" if policy.reuse.shared else asker(analyst)
        self._data_version = data_version
        self._named: RecentValues[_Names] = RecentValues(MOST_KEPT)
        self._opened = caches.opened
        self._turns = ledger.witness.directory / "turns"

    def version(self, one: PricedBlock) -> str:
        """Names the state of the data that a block reads; equal versions are answered alike."""
        if self._policy.data_version is not None:
            return f"declared:{self._policy.data_version}"
        return self._data_version(tuple(sorted(tables(one.block.source))))

    def find(self, planned: Planned, fill: Fill, request_id: str | None = None, *, asking: bool = True) -> Look:
        """For each block the release that answers it, if any; `asking`: an answer is about to be given.

        `fill` puts what was found for earlier blocks into a later one; a block of which that is not known has no release
        yet. Raises Refusal request_lost when `request_id` was charged before and one of its answers is not there: it is
        never charged again.
        """
        found: list[Found | None] = []
        stamps: dict[str, Stamp | None] = {}
        if request_id is not None and not planned.options.reuse:  # else the turn of the question stands for the request
            requests = [self._request(planned, at, request_id) for at in range(len(planned.keys))]
            stamps = {name: self._stamp(name, asking) for name in requests}
        charge = None if request_id is None else self._ledger.find(charge_id(self._analyst, request_id))
        for at in range(len(planned.keys)):
            if planned.waiting(at):
                planned = fill(planned, at, found)
            known = None
            if charge is not None and not planned.waiting(at):
                known = self._of_request(planned, at, request_id)
            if known is None and planned.options.reuse:
                names = self._names(planned, at, self.version(planned.price.blocks[at]))
                # Deriving askers wait for everything about the same relation, as theirs may follow from it.
                name = names.family if planned.options.reuse is Reuse.DERIVE else names.key
                stamp = None
                if not planned.waiting(at):
                    stamp = self._stamp(name, asking)
                    known = self._of_question(planned, at, names, asking)
                if known is None:
                    stamps[name] = stamp if stamps.get(name) in (None, stamp) else UNKNOWN
            found.append(known)
        if charge is not None and None in found:
            raise refuse("request_lost", entry=charge.seq)
        return Look(planned, found, stamps)

    def _stamp(self, name: str, asking: bool) -> Stamp:
        """The stamp of a turn. What other machines store too may be there at any time, whoever had turns on this one."""
        return read_stamp(self._turns, name) if asking and self._store.is_local else UNKNOWN

    def turn(self, look: Look, timeout_seconds: float, check: Callable[[], None]) -> AbstractContextManager[bool]:
        """The right to measure what a look did not find, once others on this machine have measured theirs; yields whether
        the look still holds."""
        return turn(self._turns, look.stamps, timeout_seconds, check)

    def keep(
        self, planned: Planned, at: int, noisy: NoisyAnswer, *, receipt: str, version: str, request_id: str | None
    ) -> Found:
        """Store the release of a block before anybody sees it; when another process was first, its numbers stand.

        `version`: of the data, from before they were read. When they have changed since, nobody can say which state
        was measured: the answer is given, and it is not stored for others.
        """
        one = planned.price.blocks[at]
        names = self._names(planned, at, version)
        shared = bool(planned.options.reuse) and version == self.version(one)
        if shared or request_id is not None:
            facts: dict[str, Any] = {
                "receipt": receipt,
                "loss": describe_loss(one.loss),
                "analyst": self._analyst or OWNER,
            }
            facts |= description(one)
            payload = packed(noisy)
            release = StoredRelease(ReleaseNote(names.key, "", "", facts), payload)
            if shared:
                notes = {names.first: {"version": fingerprint(version)}}
                if request_id is not None:
                    notes[self._request(planned, at, request_id)] = {"release": names.key}
                release = self._store.put(names.key, payload, facts, block=names.alike, notes=notes)
            elif request_id is not None:
                self._store.put(self._request(planned, at, request_id), payload, facts)
            if release.payload is not payload:  # another process was first
                known = self._found(planned, at, release)
                assert known is not None
                return known
        block = ReleasedBlock(
            one.block.name,
            noisy.keys,
            noisy.terms,
            one.block.formulas,
            noisy.row_count,
            one.block.groups,
            _shown_from(one),
        )
        return Found(block, receipt, _errors(block, _confidence(planned)))

    def data_changed(self, planned: Planned, at: int) -> bool:
        """Whether this question was first released over another version of the data."""
        version = self.version(planned.price.blocks[at])
        first, now = self._store.get(self._names(planned, at, version).first), fingerprint(version)
        return first is not None and first.note.metadata["version"] != now

    def notes(self, planned: Planned, found: Sequence[Found | None]) -> tuple[str, ...]:
        """What EXPLAIN says beside the prices: which releases will answer, and where the data have changed since."""
        notes = []
        for at, (one, known) in enumerate(zip(planned.price.blocks, found, strict=True)):
            if known is not None:
                how = known.how or "the same measurement"
                notes.append(f"{one.block.name} comes from the release of receipt {known.receipt}: {how}")
            elif planned.options.reuse and self.data_changed(planned, at):
                notes.append(f"the data changed since {one.block.name} was released: it is measured and charged again")
        return tuple(notes)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _of_request(self, planned: Planned, at: int, request_id: str | None) -> Found | None:
        note = self._store.get(self._request(planned, at, str(request_id)))
        if note is not None and "release" in note.note.metadata:
            note = self._store.get(note.note.metadata["release"])
        return self._found(planned, at, note)

    def _of_question(self, planned: Planned, at: int, names: _Names, asking: bool) -> Found | None:
        """The very release, else one that the options and the policy let stand for it."""
        one = planned.price.blocks[at]
        if planned.options.reuse is Reuse.DERIVE:
            stored = [release for release in [self._store.get(names.key)] if release is not None]
        else:
            stored = self._store.nearest(names.key, names.alike)
        found = self._found(planned, at, stored[0]) if stored and stored[0].note.key == names.key else None
        if found is not None:
            return found
        derived = self._derived(planned, one, names, stored, asking)
        if derived is None:
            return None
        how = derived.how
        if derived.same:
            how = "" if _equal(one, derived, _confidence(planned)) else "the same numbers with less noise"
        return Found(derived.block, derived.stored.receipt, derived.errors, how)

    def _derived(
        self, planned: Planned, one: PricedBlock, names: _Names, stored: list[StoredRelease], asking: bool
    ) -> Derived | None:
        """The answer first given to this question, else the most accurate one.

        Without DERIVE only the same numbers may stand in, and they are among `stored`: few, however many releases of
        the relation there are.
        """
        derive = planned.options.reuse is Reuse.DERIVE
        if not stored and not derive:
            return None
        mark = fingerprint(("derived", names.key, planned.options.reuse.value))
        pin = self._store.get(mark)
        if pin is not None:
            known = self._usable(planned, one, self._store.get(pin.note.metadata["release"]))
            if known is not None:
                return known
        if derive:
            stored = self._store.of_block(names.family + "/", start=True)
        candidates = [self._usable(planned, one, release) for release in stored]
        usable = [derived for derived in candidates if derived is not None]
        if not usable:
            return None
        asked = fresh_errors(one, _confidence(planned))
        worst = [max((d.errors[n][1] / (asked[n][1] or 1) for n in d.errors), default=0.0) for d in usable]
        best = usable[worst.index(min(worst))]
        if asking and pin is None:
            standing = self._store.put(mark, b"", {"release": best.stored.key}).note.metadata["release"]
            best = next((derived for derived in usable if derived.stored.key == standing), best)
        return best

    def _usable(self, planned: Planned, one: PricedBlock, release: StoredRelease | None) -> Derived | None:
        """The block computed from `release` when the options and the policy allow that."""
        try:
            stored = None if release is None else opened(release)
        except Fault as error:  # of another question: it answers nothing here, and stops nothing
            if error.slug != "release_unknown":
                raise
            stored = None
        derived = None if stored is None else derive(one, stored, _confidence(planned))
        if derived is None:
            return None
        target = planned.options.target_error
        if target is not None:
            shown = shown_errors(derived.errors, one, _confidence(planned))
            if any(error > target for error in shown.values()):
                return None
        if not derived.same:
            return derived if planned.options.reuse is Reuse.DERIVE else None
        if _equal(one, derived, _confidence(planned)):
            return derived
        better = at_least_as_accurate(one, derived, _confidence(planned))
        return derived if better and self._policy.reuse.more_accurate else None

    def _found(self, planned: Planned, at: int, release: StoredRelease | None) -> Found | None:
        """The release of this very question as a block; one that is equal to the last one here is not opened again."""
        if release is None:
            return None
        known = self._opened.get(planned, at)
        if known is not None and known[0] == release:
            return known[1]
        stored = opened(release)
        if stored is None:
            return None
        block = _block(planned.price.blocks[at], stored)
        found = Found(block, stored.receipt, _errors(block, _confidence(planned)))
        if len(release.payload) <= MOST_KEPT_BYTES:
            self._opened.keep(planned, release, found, at)
        return found

    # --- names in the store -------------------------------------------------------------------------------------------

    def _names(self, planned: Planned, at: int, version: str) -> _Names:
        """The names of a block's releases; `planned.keys` tells everything that they are made of."""
        key, block = planned.keys[at], planned.price.blocks[at].block
        make = partial(_Names, key, block, version, self._policy.meaning, self._audience)
        return self._named.get((key, version), make)

    def _request(self, planned: Planned, at: int, request_id: str) -> str:
        return fingerprint(("request", asker(self._analyst), request_id, planned.keys[at]))


def _confidence(planned: Planned) -> float:
    return float(planned.options.confidence)


def _equal(one: PricedBlock, derived: Derived, confidence: float) -> bool:
    """Whether the stored noise is neither more nor less than what is asked for."""
    asked = fresh_errors(one, confidence)
    return all(isclose(derived.errors[name][1], asked[name][1], rel_tol=1e-9) for name in derived.errors)


def _errors(block: ReleasedBlock, confidence: float) -> dict[str, tuple[float, float]]:
    return {term.name: (term.half_width(confidence), term.standard_deviation()) for term in block.terms}


def _block(one: PricedBlock, stored: Stored) -> ReleasedBlock:
    terms = tuple(
        NoisyTerm(
            term.name, stored.table.column(term.name).to_numpy(), 2.0 ** (term.noise.shift - term.grid), term.noise,
            term.grid, term.whole,
        )
        for term in stored.terms
    )  # fmt: skip
    chosen = tuple(ChosenNumber(number.name, stored.table.column(number.name).to_numpy()) for number in stored.numbers)
    keys = stored.table.select([key.name for key in stored.keys])
    rows, groups = stored.table.num_rows, one.block.groups
    return ReleasedBlock(one.block.name, keys, (*terms, *chosen), one.block.formulas, rows, groups, _shown_from(one))


def _shown_from(one: PricedBlock) -> dict[str, float]:
    """The number of a released term from which on keys are shown, where a threshold decides (`conditional`)."""
    rule = one.noise.selection
    if not isinstance(rule, Threshold):
        return {}
    counted = next((term for term in one.noise.terms if term.name == rule.column), None)
    return {} if counted is None else {counted.name: rule.tau * 2.0 ** (counted.noise.shift - counted.grid)}
