"""A new kind of measurement works from SQL to the stored and audited answer by registration alone.

The double is a valid measurement: the value with the fewest rows, by the exponential mechanism over h(c) - min h. One row moves
every h(c) in one direction, as for the most frequent value, so it has the same proof and price.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from support import clinic
from support.exact_session import exact_session
from support.gates import EXACT_NUMBERS

from dpsql.aggregates.contract import Arguments, aggregate_of, register, unregister
from dpsql.engine.emit import measurements as engine
from dpsql.errors.exceptions import Error, InternalError
from dpsql.functions.public_domains import listed
from dpsql.noise import perturb as noise
from dpsql.noise.noise_samplers import NUMBER_SAMPLERS, choose_most
from dpsql.noise.rank_histograms import Histograms
from dpsql.noise.samplers import Randomness
from dpsql.plan.formulas import Element, Formula, NoisyValue
from dpsql.plan.measurements import Register
from dpsql.plan.plan import Caps, Expr, Measure, Term
from dpsql.policy import load_policy
from dpsql.pricing import measurements as pricing
from dpsql.pricing.bounding import _most_exact
from dpsql.pricing.most_frequent import MostFrequentPricing
from dpsql.pricing.rank_histograms import listed_term, released_values
from dpsql.pricing.sensitivity import ExplainedNumber, MeasuredBlock
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.contract import MeasurementPlan, Sensitivity
from dpsql.privacy.mechanisms.most_frequent import MOST_FREQUENT, MostFrequent, MostFrequentPlan
from dpsql.reuse import measurements as reuse
from dpsql.reuse.measurements import MeasurementRecord, StoredNumber
from dpsql.session.session import Session, open_session
from dpsql_audit import distances, mechanism_laws
from dpsql_audit.choice_laws import CHOICES, AuditedChoice, Rows, log_law
from dpsql_audit.mechanism_laws import check_choice

RAREST = "rarest value"
CELLS = 20
EXAMPLE = {cell: cell // 3 for cell in range(3, CELLS)}
"""Rows by cell: the probabilities of the rarest and of the most frequent value differ by a factor of 20."""
QUESTION = "SELECT RAREST(region) AS r FROM patients"


# --- plan and law -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RarestValue:
    """The number of rows of each group with their `value` in each cell of a list, and the rarest cell, released as its number."""

    name: str
    value: Expr
    term: Term

    word = RAREST

    @property
    def cells(self) -> int:
        return self.term.magnitude + 1

    @property
    def numbers(self) -> tuple[str, ...]:
        return (self.name,)


@dataclass(frozen=True)
class Rarest(MostFrequent):
    """The law: the weight of c falls by the rate for each row that c has more than the rarest cell."""


@dataclass(frozen=True)
class RarestPlan(MostFrequentPlan):
    word = RAREST


# --- one part for each layer ------------------------------------------------------------------------------------------


def requested(block: MeasuredBlock, measure: Measure) -> tuple[Formula, None]:
    value = measure.arguments[0]
    values = listed(value) or ()
    term = listed_term(value, values, measure.filter, block.groups)
    name = f"r{len(block.measurements)}"
    block.measurements.append(RarestValue(name, value, replace(term, name=name)))
    return Element(released_values(values), NoisyValue(name)), None


class RarestPricing(MostFrequentPricing):
    def planned(self, measurement: Any, caps: Caps, part: PrivacyLoss, neighbours: Neighbours) -> MeasurementPlan:
        plan = super().planned(measurement, caps, part, neighbours)
        law = cast(MostFrequent, cast(MostFrequentPlan, plan).law)
        return RarestPlan(plan.name, measurement.cells, Rarest(law.sensitivity, law.epsilon_0, law.mechanism))

    def explained(self, measurement: Any, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        explained = super().explained(measurement, plan, number, confidence)
        return replace(explained, aggregate=explained.aggregate.replace("mode", "rarest value"))


def drawn(law: Rarest, histograms: Histograms, draws: int, randomness: Randomness) -> NDArray[np.int64]:
    """Draw the most frequent cell of max h - h(c), over all cells."""
    groups = histograms.start.size - 1
    counts = np.zeros((groups, histograms.cells), dtype=np.int64)
    counts[np.repeat(np.arange(groups), np.diff(histograms.start)), histograms.cell] = histograms.count
    fewer = counts.max(axis=1, keepdims=True) - counts
    group, cell = np.nonzero(fewer)
    start = np.searchsorted(group, np.arange(groups + 1))
    return choose_most(histograms.cells, start, cell, fewer[group, cell], law, draws, randomness)


def rarest_plan(measurement: Any, numbers: Mapping[str, StoredNumber]) -> RarestPlan:
    return RarestPlan(numbers[RAREST].name, measurement.cells, numbers[RAREST].mechanism)


RECORD = MeasurementRecord(RAREST, (Rarest,), lambda measurement: {measurement.name: RAREST}, rarest_plan)


def audited_law(law: Rarest, cells: int, rows: Rows, points: list[int] | None) -> list[float]:
    """Return the exponential mechanism cell by cell, from the definition."""
    weights = -float(law.epsilon_0) * np.array([rows.get(cell, 0) for cell in range(cells)])
    return list(weights - np.log(np.exp(weights).sum()))


def exact_rarest(law: Rarest, cells: int, cell: NDArray[np.int64], count: NDArray[np.int64]) -> int:
    counts = np.zeros(cells, dtype=np.int64)
    counts[cell] = count
    return int(np.argmin(counts))


PARTS: dict[str, tuple[Register[Any], Any]] = {
    "pricing": (pricing.PARTS, RarestPricing()),
    "request": (pricing.REQUESTS, requested),
    "engine": (engine.PARTS, engine.PARTS.of(MOST_FREQUENT)),
    "noise": (noise.PARTS, noise.PARTS.of(MOST_FREQUENT)),
    "reuse": (reuse.PARTS, RECORD),
    "neighbours": (distances.MEASUREMENTS, distances.MEASUREMENTS.of(MOST_FREQUENT)),
    "laws": (mechanism_laws.MEASUREMENTS, mechanism_laws.MEASUREMENTS.of(MOST_FREQUENT)),
}
LAWS: dict[str, tuple[dict[Any, Any], Any]] = {
    "sampler": (NUMBER_SAMPLERS, drawn),
    "audited": (
        CHOICES,
        AuditedChoice(audited_law, lambda law: True, lambda law: (CELLS, EXAMPLE), lambda law: RAREST),
    ),
    "noiseless": (EXACT_NUMBERS, exact_rarest),
}


def add(monkeypatch: pytest.MonkeyPatch, without: str = "") -> None:
    _most_exact.cache_clear()  # sums are chosen once for equal measures, here with other registers each time
    for name, (parts, part) in PARTS.items():
        if name != without:
            monkeypatch.setitem(parts._parts, RAREST, part)
    for name, (laws, law) in LAWS.items():
        if name != without:
            monkeypatch.setitem(laws, Rarest, law)


@pytest.fixture
def aggregate() -> Iterator[None]:
    """Register the SQL spelling, with the other properties of MODE."""
    mode = aggregate_of("mode")
    register(
        replace(
            mode, word="rarest", spellings={"rarest": Arguments.MODE}, formula=lambda basis, m: basis.number(RAREST, m)
        )
    )
    yield
    unregister("rarest")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return open_session(load_policy(clinic.build(tmp_path)), create_ledger=True)


def spent(session: Session) -> Fraction:
    return Fraction(session.budget().spent["dataset"]["epsilon"])


# --- behaviour --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("aggregate")
def test_it_answers_is_charged_as_mode_is_and_is_answered_again_from_the_store(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(monkeypatch)
    explained = session.explain(QUESTION)
    first = session.execute(QUESTION)
    charged = spent(session)
    assert list(first.rows()) in ([("north",)], [("south",)])
    assert "rarest value of region" in str(explained)
    again = session.execute(QUESTION)
    assert again.reused and list(again.rows()) == list(first.rows())
    assert spent(session) == charged > 0
    session.execute("SELECT MODE(region) AS r FROM patients")
    assert spent(session) == 2 * charged


@pytest.mark.usefixtures("aggregate")
def test_without_noise_it_is_the_rarest_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch)
    opened = exact_session(load_policy(clinic.build(tmp_path)), None, tmp_path / "exact.db")
    wards = "SELECT RAREST(region) AS r, MODE(region) AS m FROM patients WHERE age < 41"
    assert list(opened.execute(wards).rows()) == [("south", "north")]


def test_its_law_is_that_of_the_definition_and_of_no_other_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch)
    law = Rarest(Sensitivity(1, 1, 1, 1), Fraction(1, 2))
    assert not check_choice(law).problem
    for wrong in (Fraction(7, 10), Fraction(13, 10)):
        monkeypatch.setitem(
            NUMBER_SAMPLERS,
            Rarest,
            lambda law, *rest, by=wrong: drawn(replace(law, epsilon_0=law.epsilon_0 * by), *rest),
        )
        assert "another law" in check_choice(law).problem


def test_a_row_moves_the_logarithm_of_every_chance_by_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof of the price, checked on the law itself: at most epsilon_0, for every cell that may get the row."""
    add(monkeypatch)
    law = Rarest(Sensitivity(1, 1, 1, 1), Fraction(1, 2))
    before = np.array(log_law(law, CELLS, EXAMPLE))
    moved = [
        np.abs(np.array(log_law(law, CELLS, {**EXAMPLE, cell: EXAMPLE.get(cell, 0) + 1})) - before).max()
        for cell in range(CELLS)
    ]
    assert law.loss.epsilon is not None
    assert 0.8 * float(law.loss.epsilon) < max(moved) <= float(law.loss.epsilon)


@pytest.mark.usefixtures("aggregate")
@pytest.mark.parametrize("part", ["pricing", "request", "engine", "noise", "reuse", "sampler"])
def test_without_one_of_its_parts_it_is_refused(part: str, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, without=part)
    with pytest.raises(Error) as refused:
        session.execute(QUESTION)
    assert refused.value.slug in ("internal", "noise_plan")


@pytest.mark.parametrize("part", ["neighbours", "laws", "audited"])
def test_the_audit_refuses_what_it_has_no_part_of(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    add(monkeypatch, without=part)
    law = Rarest(Sensitivity(1, 1, 1, 1), Fraction(1, 2))
    with pytest.raises(InternalError):
        if part == "audited":
            check_choice(law)
        PARTS[part][0].of(RAREST)
