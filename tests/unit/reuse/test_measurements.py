"""Stored numbers other than sums: each kind is read back as it was written, and answers only the same number over the same
rows."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from dpsql.plan.intervals import Facts, Type
from dpsql.plan.measurements import (
    EndRows,
    LocalNumber,
    MostFrequentValue,
    Quantile,
    QuantileEnd,
    RankHistogram,
    SampleMean,
    SampleValues,
)
from dpsql.plan.plan import Column, Term, TermKind
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import laplace
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice, Lean
from dpsql.privacy.mechanisms.local_sensitivity import PROPOSED, SMOOTH, LocalSensitivityPlan, propose_for, smooth_for
from dpsql.privacy.mechanisms.most_frequent import (
    END_ROWS,
    MOST_FREQUENT,
    EndKey,
    EndRowsPlan,
    MostFrequent,
    MostFrequentPlan,
)
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM, EndChoice, QuantileChoice, RankHistogramPlan, Search
from dpsql.privacy.mechanisms.sample_values import NoisySampleMean, SampleMeanPlan, SampleValuesPlan, sum_moved
from dpsql.reuse.measurements import PARTS, StoredNumber, matches, read, written

ROWS = Sensitivity(2, 6, 20, 4)
HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
PART = PrivacyLoss(Fraction(4), Fraction(1, 10**6), None)
X = Column("x", Facts(Type.INTEGER, Fraction(0), Fraction(9)))
TERM = Term("", TermKind.SUM, X, None, 9, 0, 0, 9, 0)


@dataclass(frozen=True)
class Case:
    """A measurement with a plan that releases it, and the names of its numbers in the store."""

    measurement: Any
    plan: Any
    labels: dict[str, str]


def quantiles(*names: str) -> tuple[Quantile, ...]:
    places = {"q2": Fraction(1, 4), "q5": HALF, "min": Fraction(0), "max": Fraction(1)}
    return tuple(Quantile(name, places[name]) for name in names)


BAR = (QuantileEnd("q5low", HALF, True, TENTH), QuantileEnd("q5high", HALF, False, TENTH))
BAR_LAWS = (
    EndChoice("q5low", HALF, Choice(ROWS, HALF, Fraction(1, 3), padding=-7)),
    EndChoice("q5high", HALF, Choice(ROWS, HALF, Fraction(1, 3), padding=7)),
)
SLICED = (
    QuantileChoice("q5", Search(HALF, 0), Choice(ROWS, HALF, TENTH, slices=16)),
    QuantileChoice("q2", Search(Fraction(1, 4), 1, None, HALF), Choice(ROWS, HALF, TENTH, slices=16)),
)
LEAN = Lean(3, Fraction(1, 8))
LEANING = Choice(ROWS, Fraction(1), TENTH, rank=4, lean=5)
MEAN_NOISE = laplace.noise_for(sum_moved(ROWS, 9), HALF)
MEAN = SampleMean("v0", X, TERM, 50, True, Fraction(9, 10))
PROPOSAL = LocalNumber("l0", X, TERM, PROPOSED, True, 3, 2, Fraction(9, 10))

CASES = {
    "quantiles with a bar": Case(
        RankHistogram("h0", X, TERM, quantiles("q5", "q2"), 16, BAR),
        RankHistogramPlan("h0", 10, SLICED, 16, BAR_LAWS),
        {"q5": "1/2", "q2": "1/4", "q5low": "1/2 low 1/10", "q5high": "1/2 high 1/10"},
    ),
    "ends of the values": Case(
        RankHistogram("h0", X, TERM, quantiles("min")),
        RankHistogramPlan(
            "h0", 10, (QuantileChoice("min", Search(Fraction(0), 0), Choice(ROWS, Fraction(0), TENTH, 12)),)
        ),
        {"min": "0"},
    ),
    "a value that sums are cut to": Case(
        RankHistogram("h0", X, TERM, (Quantile("cut", Fraction(1), LEAN),)),
        RankHistogramPlan("h0", 10, (QuantileChoice("cut", Search(Fraction(1), 0), LEANING),)),
        {"cut": "1 for cuts in 3 groups, 1/8"},
    ),
    "a median of samples": Case(
        SampleValues("h0", X, TERM, quantiles("q5"), samples=40, by_unit=False),
        SampleValuesPlan(
            "h0", 10, (QuantileChoice("q5", Search(HALF, 0), Choice(ROWS, HALF, TENTH)),), samples=40, middle=4
        ),
        {"q5": "1/2"},
    ),
    "a mean of samples": Case(
        MEAN,
        SampleMeanPlan("v0", 10, NoisySampleMean(ROWS, 9, MEAN_NOISE), 50, 4, 3),
        {"v0": "sample mean auto", "v0low": "sample mean auto low 9/10", "v0high": "sample mean auto high 9/10"},
    ),
    "a most frequent value": Case(
        MostFrequentValue("f0", X, TERM), MostFrequentPlan("f0", 10, MostFrequent(ROWS, TENTH)), {"f0": MOST_FREQUENT}
    ),
    "the key of the last rows": Case(
        EndRows("e0", X, X, TERM, 5, True),
        EndRowsPlan("e0", 10, EndKey(ROWS, TENTH, 5, 7, True)),
        {"e0": "key of the last rows"},
    ),
    "the key of the first rows": Case(
        EndRows("e0", X, X, TERM, 5, False),
        EndRowsPlan("e0", 10, EndKey(ROWS, TENTH, 5, 7, False)),
        {"e0": "key of the first rows"},
    ),
    "a median by smooth sensitivity": Case(
        LocalNumber("l0", X, TERM, SMOOTH),
        LocalSensitivityPlan("l0", 10, smooth_for(ROWS, PART)),
        {"l0": f"{SMOOTH} median None"},
    ),
    "a mean by a proposal": Case(
        PROPOSAL,
        LocalSensitivityPlan("l0", 10, propose_for(ROWS, PART, 2, True, 3), 11),
        {"l0": f"{PROPOSED} mean 2", "l0low": f"{PROPOSED} mean 2 low 9/10", "l0high": f"{PROPOSED} mean 2 high 9/10"},
    ),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def numbers_of(case: Case) -> tuple[StoredNumber, ...]:
    """Return the numbers, written to text and read back."""
    return read(json.loads(json.dumps(written((case.measurement,), (case.plan,)))))


@pytest.mark.parametrize("case", [case for name, case in CASES.items() if name != "a mean of samples"])
def test_the_plan_of_stored_numbers_is_that_by_which_they_were_released(case: Case) -> None:
    by_label = {number.what: number for number in numbers_of(case)}
    assert PARTS.of(case.measurement.word).plan_of(case.measurement, by_label) == case.plan


@every_case
def test_a_stored_number_answers_the_same_question_of_any_name(case: Case) -> None:
    answers = matches((case.measurement,), (case.plan,), numbers_of(case), 0.95)
    assert answers is not None
    assert {match.name for match in answers} == case.labels.keys()
    assert {match.fresh for match in answers} == {law for _, law in case.plan.laws}
    assert all(match.error_ratio == 1 and ": " in match.error for match in answers)


@every_case
def test_a_number_of_other_cells_or_of_another_value_answers_nothing(case: Case) -> None:
    question = replace(case.measurement, value=Column("y", X.facts))
    assert matches((question,), (case.plan,), numbers_of(case), 0.95) is None
    question = replace(case.measurement, term=replace(TERM, filter=X))
    assert matches((question,), (case.plan,), numbers_of(case), 0.95) is None


# --- rejected entries -------------------------------------------------------------------------------------------------


def entry(name: str) -> dict[str, Any]:
    """Return the facts of the first number of a case."""
    case = CASES[name]
    facts: dict[str, Any] = PARTS.of(case.measurement.word).written(case.measurement, case.plan)[0]
    return facts


@pytest.mark.parametrize(
    ("name", "word", "spoil"),
    [
        ("quantiles with a bar", RANK_HISTOGRAM, lambda facts: facts.update(what="1/3")),
        ("a most frequent value", MOST_FREQUENT, lambda facts: facts.update(what="other")),
        ("the key of the last rows", END_ROWS, lambda facts: facts.update(what="key of the first rows")),
        ("a mean by a proposal", "local sensitivity", lambda facts: facts["mechanism"].update(mechanism="other")),
        (
            "a mean by a proposal",
            "local sensitivity",
            lambda facts: facts["mechanism"].update(
                test={"mechanism": "constant", "sensitivity": [0, 0, 0, 0], "shift": 0}
            ),
        ),
        (
            "a mean by a proposal",
            "local sensitivity",
            lambda facts: facts["mechanism"].update(
                noise={"mechanism": "constant", "sensitivity": [0, 0, 0, 0], "shift": 0}
            ),
        ),
    ],
)
def test_a_number_that_contradicts_itself_is_not_read(
    name: str, word: str, spoil: Callable[[dict[str, Any]], object]
) -> None:
    facts = entry(name)
    PARTS.of(word).read(facts)
    spoil(facts)
    with pytest.raises(ValueError):
        PARTS.of(word).read(facts)


@every_case
def test_a_law_is_never_read_as_another_one(case: Case) -> None:
    """A newer version may write a field that this one does not know, and whatever it means is not left out."""
    record = PARTS.of(case.measurement.word)
    for facts in record.written(case.measurement, case.plan):
        law = facts["mechanism"]
        wrong = [{**law, "further": 1}, {**law, "mechanism": "another"}]
        wrong += [{**law, name: str(value)} for name, value in law.items() if type(value) in (int, bool)]
        wrong += [{**law, name: f"{value} of it"} for name, value in law.items() if isinstance(value, str)]
        for other in wrong:
            with pytest.raises((KeyError, TypeError, ValueError)):
                record.read({**facts, "mechanism": other})
