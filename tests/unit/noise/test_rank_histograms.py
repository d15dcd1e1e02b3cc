"""Histograms by group at the noise gate: the engine's result is assigned to the groups of the answer, then the choice is made."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from dpsql.engine.contract import ExactAnswer
from dpsql.errors.exceptions import Fault, InternalError
from dpsql.noise.group_layout import Groups
from dpsql.noise.perturb import Gate, perturb
from dpsql.noise.rank_histograms import Histograms, laid_out, released_quantiles
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import KeyColumn, Law, NoisePlan, Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.laplace import noise_for
from dpsql.privacy.mechanisms.partition_selection import choose_selection, threshold
from dpsql.privacy.mechanisms.rank_histogram import QuantileChoice, RankHistogramPlan, Search

ROW = Sensitivity(1, 1, 1, 1)
HALF = Fraction(1, 2)


def groups(public: bool = True, **keys: list[Any]) -> Groups:
    table = pa.table(keys)
    return Groups(table, table.num_rows if keys else 1, public)


def plan(*quantiles: Fraction, cells: int = 10) -> RankHistogramPlan:
    chosen = [
        QuantileChoice(f"q{at}", Search(one, at), Choice(ROW, one, Fraction(1))) for at, one in enumerate(quantiles)
    ]
    return RankHistogramPlan("h0", cells, tuple(chosen))


def listed(found: Histograms) -> list[dict[int, int]]:
    """Return for each group its rows by cell."""
    parts = [slice(a, b) for a, b in zip(found.start, found.start[1:], strict=False)]
    return [dict(zip(found.cell[at].tolist(), found.count[at].tolist(), strict=True)) for at in parts]


class FixedGate(Gate):
    """A gate that chooses the given numbers, in the order of the quantiles, and records the histograms."""

    def __init__(self, *numbers: list[int]) -> None:
        super().__init__()
        self.numbers = list(numbers)
        self.seen: list[list[dict[int, int]]] = []

    def release_numbers(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        self.seen.append(listed(histograms))
        return np.array(self.numbers.pop(0), dtype=np.int64)

    def select(self, name: str, counts: Any, selection: Any, groups: Groups) -> NDArray[np.bool_]:
        return np.array([key != "rare" for key in groups.keys.column(0).to_pylist()])


def test_rows_come_to_their_group_in_the_order_of_cells_whatever_the_order_of_the_engine() -> None:
    table = pa.table({
        "k0": ["b", "a", None, "b", "z"], "k1": pa.array([1, 2, 1, 1, 1], pa.int32()), "cell": [7, 3, 0, 2, 1],
        "rows": [1, 2, 3, 4, 5],
    })  # fmt: skip
    shown = groups(k0=["a", "a", "b", "b", None], k1=[1, 2, 1, 2, 1])
    assert listed(laid_out(table, 10, shown)) == [{}, {3: 2}, {2: 4, 7: 1}, {}, {0: 3}]


def test_without_keys_all_rows_are_one_group() -> None:
    table = pa.table({"cell": [4, 1], "rows": [1, 2]})
    assert listed(laid_out(table, 5, groups())) == [{1: 2, 4: 1}]
    assert listed(laid_out(table.slice(0, 0), 5, groups())) == [{}]


def test_reals_that_are_not_numbers_and_null_are_keys_like_others() -> None:
    table = pa.table({"k0": [float("nan"), 0.0, None], "cell": [1, 2, 3], "rows": [1, 1, 1]})
    assert listed(laid_out(table, 5, groups(False, k0=[0.0, float("nan"), None]))) == [{2: 1}, {1: 1}, {3: 1}]


@pytest.mark.parametrize(
    "columns",
    [
        {"cell": [1], "n": [1]},
        {"cell": [1, 1], "rows": [1, 1]},
        {"cell": [10], "rows": [1]},
        {"cell": [-1], "rows": [1]},
        {"cell": [1], "rows": [0]},
        {"cell": [None], "rows": [1]},
        {"cell": [1.5], "rows": [1]},
    ],
    ids=[
        "no rows",
        "a cell twice",
        "past the last cell",
        "before the first",
        "an empty cell",
        "no cell",
        "a real cell",
    ],
)
def test_a_table_of_another_shape_is_a_fault(columns: dict[str, list[Any]]) -> None:
    with pytest.raises(Fault) as fault:
        laid_out(pa.table(columns), 10, groups())
    assert fault.value.slug == "noise_answer" and fault.value.charged


def test_quantiles_of_one_histogram_never_cross() -> None:
    gate = FixedGate([5, 1], [4, 8], [9, 0])
    shares = (HALF, Fraction(1, 4), Fraction(3, 4))
    table = pa.table({"k0": ["a"], "cell": [4], "rows": [1]})
    found = released_quantiles(table, plan(*shares), groups(k0=["a", "b"]), gate)
    assert {name: numbers.tolist() for name, numbers in found.items()} == {"q1": [4, 0], "q0": [5, 1], "q2": [9, 8]}
    assert gate.seen == [[{4: 1}, {}]] * 3


def test_nothing_is_chosen_for_keys_that_selection_leaves_out() -> None:
    delta = Fraction(1, 1000)
    rules = (threshold("n", 1, noise_for(ROW, Fraction(1)), delta),)
    rule = choose_selection("n", 1, PrivacyLoss(Fraction(1), delta, None), rules)
    noise = NoisePlan((KeyColumn("k0", None),), (), rule, (plan(HALF),))
    sums = pa.table({"k0": ["common", "rare"], rule.column: pa.array([50, 1], pa.int64())})
    cells = pa.table({"k0": ["rare", "common", "unseen"], "cell": [1, 2, 3], "rows": [1, 50, 7]})
    gate = FixedGate([2])
    answer = perturb(ExactAnswer(sums), noise, gate, {"h0": ExactAnswer(cells)})
    assert answer.keys.to_pydict() == {"k0": ["common"]} and answer.term("q0").values.tolist() == [2]
    assert gate.seen == [[{2: 50}]]


@pytest.mark.parametrize(
    ("of", "problem"),
    [(HALF, "unknown mechanism"), (Fraction(1, 3), "chosen as another one"), (None, "as another one")],
)
def test_a_choice_of_an_unknown_law_or_of_another_quantile_is_refused(of: Fraction | None, problem: str) -> None:
    class Other:
        quantile = of
        loss = PrivacyLoss.nothing()

        def recomputed_loss(self) -> PrivacyLoss:
            return self.loss

    unknown = RankHistogramPlan("h0", 3, (QuantileChoice("q0", Search(HALF, 0), Other()),))
    with pytest.raises(InternalError, match=problem):
        released_quantiles(pa.table({"cell": [1], "rows": [1]}), unknown, groups(), Gate())


def test_histograms_do_not_show_their_numbers() -> None:
    assert repr(laid_out(pa.table({"cell": [4], "rows": [123]}), 5, groups())) == "<Histograms of 1 groups: sealed>"
