"""Neighbouring databases for every query of the corpus, each loaded once, and the outputs observed on them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from sql.corpus import Case

from dpsql.plan.plan import TermKind
from dpsql.planning.planner import Planner
from dpsql.policy import Policy
from dpsql.pricing.options import Options
from dpsql.pricing.pricing import Price, price
from dpsql.privacy.accounting import Pure
from dpsql.privacy.loss import Neighbours
from dpsql_audit.distances import Verdict, compare
from dpsql_audit.observation import Observed
from dpsql_audit.replay import same_outcome, same_stages
from support.neighbouring_hospitals import FIXED, Data, Profile, crowd, improvements, literals, row, together, unit
from support.places import policy
from support.recording_session import World

NEWCOMER = 900
_ALONE = ("high", "spread", "nan")
_TRIES = 60


@dataclass(frozen=True)
class Pair:
    """Two runs on databases that differ in one privacy unit. `changed`: the unit was replaced by another one, not added."""

    name: str
    left: Observed
    right: Observed
    changed: bool


class Hospital:
    """One policy: worlds of base data with and without one more unit, which share a planner, and the policies under which to
    price."""

    def __init__(self, name: str, accountant: str = "pure") -> None:
        """Create the worlds. `accountant` is the accountant of the observed runs."""
        known = policy(name)
        self.policy = replace(known, budget=replace(known.budget, accountant=accountant))
        self.by_rows = self.policy.privacy_unit is None
        self.base = crowd()
        self.none = self._world({}, {})
        self.planner = self.none.session.planner
        self.crowd = self._world(self.base, {})
        self.scratch = self._world({}, {})
        self._loaded: dict[tuple[str, str], World] = {}
        self._units: dict[tuple[str, ...], list[tuple[str, Data]]] = {}
        zcdp = replace(self.policy.budget, accountant="zcdp")
        self.priced = {
            accountant: self.planner,
            "zcdp": Planner(replace(self.policy, budget=zcdp), self.none.engine),
            f"{accountant}, change one": Planner(_changing(self.policy), self.none.engine),
            "zcdp, change one": Planner(_changing(replace(self.policy, budget=zcdp)), self.none.engine),
        }

    def _world(self, base: Data, more: Data) -> World:
        world = World(self.policy, planner=getattr(self, "planner", None))
        world.load(together(base, more))
        return world

    def price(self, case: Case) -> Price:
        """Return the price of a query under the policy itself."""
        with self.none.options(case.marks.get("set", [])):
            statement = self.planner.parse(case.sql, case.parameters)
            return self.planner.plan(statement, self.none.session.options, not case.parameters).price

    def prices(self, case: Case, observed: bool = True) -> dict[str, Price]:
        """Return the price of a query under each policy. With `observed`, leave out policies whose selection counts the runs do
        not have."""
        with self.none.options(case.marks.get("set", [])):
            statement = self.planner.parse(case.sql, case.parameters)
            options = self.none.session.options
            cacheable = not case.parameters
            own = self.planner.plan(statement, options, cacheable).price
            prices = {
                name: _admitting_alike(
                    planner.plan(statement, options, cacheable).price, own, planner, options, observed
                )
                for name, planner in self.priced.items()
            }
            return {name: found for name, found in prices.items() if found is not None}

    def observe(self, case: Case, world: World) -> Observed:
        """Run the case once under its options."""
        with world.options(case.marks.get("set", [])):
            return world.observe(case.sql, case.parameters)

    def units(self, profile: Profile, tables: list[str]) -> Iterator[tuple[str, Data]]:
        """Yield the privacy units of a profile: a patient with all rows, or under row privacy one row of each table."""
        if not self.by_rows:
            yield profile.name, unit(profile, NEWCOMER)
            return
        for table in tables:
            yield f"{profile.name} ({table})", row(profile, table)

    def fixed_units(self, profile: Profile, tables: list[str]) -> list[tuple[str, Data]]:
        """Return the units of one of the `FIXED` profiles. They are created once and shared by all queries, so they must not be
        changed."""
        key = (profile.name, *(tables if self.by_rows else ()))
        if key not in self._units:
            self._units[key] = list(self.units(profile, tables))
        return self._units[key]

    def pairs(self, case: Case, tables: list[str]) -> Iterator[Pair]:
        """Yield the crowd and the empty database, each with and without one more unit, and the crowd with one unit replaced by
        another."""
        crowd, none = self.observe(case, self.crowd), self.observe(case, self.none)
        before: list[tuple[str, Observed]] = []
        for profile in FIXED:
            for name, rows in self.fixed_units(profile, tables):
                here = self.observe(case, self._fixed(name, True, rows))
                yield Pair(name, crowd, here, False)
                for other, there in before:
                    yield Pair(f"{other} -> {name}", there, here, True)
                before.append((name, here))
                if profile.name in _ALONE:
                    yield Pair(f"{name} alone", none, self.observe(case, self._fixed(name, False, rows)), False)

    def sharper(self, case: Case, tables: list[str], start: Profile) -> Iterator[tuple[Profile, Pair]]:
        """Yield units that the query itself suggests, with one change at a time; the caller decides from which profile to
        continue."""
        crowd = self.observe(case, self.crowd)
        best = replace(
            start,
            values={
                **start.values,
                **{name: values[1] for name, values in literals(case.sql).items() if len(values) > 1},
            },
        )
        for profile in [best, *improvements(start, case.sql), *improvements(best, case.sql)][:_TRIES]:
            for name, rows in self.units(profile, tables):
                self.scratch.load(together(self.base, rows))
                yield profile, Pair(name, crowd, self.observe(case, self.scratch), False)

    def _fixed(self, name: str, crowded: bool, rows: Data) -> World:
        key = (name, "crowd" if crowded else "alone")
        if key not in self._loaded:
            self._loaded[key] = self._world(self.base if crowded else {}, rows)
        return self._loaded[key]


def _admitting_alike(other: Price, own: Price, planner: Planner, options: Options, observed: bool) -> Price | None:
    """Return the price `other` with the counts that admit private keys in `own` (rows, units or their weights), under which the
    runs were observed. Return None if `planner` insists on another count: under other noise, units have other weights. If `other`
    measures other terms (variances share rows only under pure accounting), price the terms of the runs."""
    if _kinds(other) != _kinds(own):
        other = price(tuple(priced.block for priced in own.blocks), options, planner.policy, planner.accountant)
    columns = [priced.block.selection_term for priced in own.blocks]

    def weights(found: Price) -> list[tuple[tuple[int, int], ...]]:
        return [priced.block.unit_weights if observed else () for priced in found.blocks]

    if [priced.block.selection_term for priced in other.blocks] == columns:
        return other if weights(other) == weights(own) else None
    blocks = [
        replace(priced.block, selection_term=column, unit_weights=())
        for priced, column in zip(other.blocks, columns, strict=True)
    ]
    again = price(tuple(blocks), options, planner.policy, planner.accountant)
    alike = [priced.block.selection_term for priced in again.blocks] == columns and weights(again) == weights(own)
    return again if alike else None


def _kinds(found: Price) -> list[list[TermKind]]:
    return [[term.kind for term in priced.block.terms] for priced in found.blocks]


def _changing(known: Policy) -> Policy:
    return replace(known, neighbours=Neighbours.CHANGE_ONE)


def judge(prices: dict[str, Price], pairs: Iterator[Pair]) -> Verdict:
    """Check everything that must hold for each pair under every policy; the reached shares are those under add_remove."""
    verdict = Verdict()
    for whole in pairs:
        left, right = same_stages(prices["pure"], whole.left, whole.right)
        pair, found = replace(whole, left=left, right=right), same_outcome(left, right)
        charged = [Pure(Fraction(1), Fraction(0)).units(prices["pure"].loss)]
        found.expect(pair.left.charges == charged, f"charged {pair.left.charges}, the price is {charged}")
        same = not found.problems
        for name, priced in prices.items():
            if ("change" in name) == pair.changed and same:
                one = compare(priced, pair.left.blocks, pair.right.blocks)
                found.problems += [f"{name}: {problem}" for problem in one.problems]
                if name == "pure":
                    verdict.reach(one.reached)
        verdict.problems += [f"{pair.name}: {problem}" for problem in found.problems]
    return verdict


def weakest(verdict: Verdict) -> Fraction:
    """Return the smallest share of a claimed L1 sensitivity that any pair reached, over all terms."""
    return min(verdict.reached.values(), default=Fraction(1))
