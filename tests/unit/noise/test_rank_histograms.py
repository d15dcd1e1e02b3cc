"""Histograms by group at the noise gate: the engine's result is assigned to the groups of the answer, then the choice is made."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsql.engine.contract import ExactAnswer
from dpsql.errors.exceptions import Fault, InternalError
from dpsql.noise.group_layout import Groups, Int128
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
        {"cell": [1], "n": [1]}, {"cell": [1, 1], "rows": [1, 1]}, {"cell": [10], "rows": [1]},
        {"cell": [-1], "rows": [1]}, {"cell": [1], "rows": [0]}, {"cell": [None], "rows": [1]},
        {"cell": [1.5], "rows": [1]},
    ],
    ids=[
        "no rows", "a cell twice", "past the last cell", "before the first", "an empty cell", "no cell",
        "a real cell",
    ],
)  # fmt: skip
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


# --- 128-bit vectors agree with Python's integers at every extreme ----------------------------------------------------


EDGES = [0, 1, -1, 2**63, 2**63 - 1, -(2**63), -(2**63) - 1, 2**64, 2**64 - 1, -(2**64), 2**125 - 1, -(2**125)]
small = st.integers(-(2**61), 2**61)
wide = st.one_of(st.sampled_from(EDGES), st.integers(-(2**125), 2**125 - 1), small)


def whole(values: pa.Array) -> Int128:
    """Return a vector with every element in a separate cell, in order."""
    return Int128.placed(values, np.arange(len(values)), len(values))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(wide, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=8))
def test_sums_carry_into_the_high_half(pairs: list[tuple[int, int]]) -> None:
    left, right = zip(*pairs, strict=True)
    total = Int128.from_ints(left).plus(np.array(right, dtype=np.int64))
    assert total.to_ints() == [a + b for a, b in pairs]


@settings(max_examples=200, deadline=None)
@given(st.lists(wide, min_size=1, max_size=8), st.integers(0, 127))
def test_right_shifts_are_floors(values: list[int], shift: int) -> None:
    assert Int128.from_ints(values).shifted(shift).to_ints() == [value >> shift for value in values]


@settings(max_examples=200, deadline=None)
@given(st.lists(wide, min_size=1, max_size=8), st.integers(1, 40))
def test_left_shifts_after_saturation_are_exact(values: list[int], up: int) -> None:
    bits = 125 - up
    clamped = [min(max(value, -(2**bits)), 2**bits - 1) for value in values]
    assert Int128.from_ints(values).saturated(bits).to_ints() == clamped
    assert Int128.from_ints(values).saturated(bits).shifted(-up).to_ints() == [value << up for value in clamped]


@settings(max_examples=200, deadline=None)
@given(st.lists(wide, min_size=1, max_size=8), wide, st.integers(1, 2**20))
def test_comparisons_indexes_and_floats_equal_those_of_python_integers(
    values: list[int], bound: int, length: int
) -> None:
    vector = Int128.from_ints(values)
    assert vector.at_least(bound).tolist() == [value >= bound for value in values]
    assert vector.clipped_index(length).tolist() == [min(max(value, 0), length - 1) for value in values]
    for got, value in zip(vector.to_float64().tolist(), values, strict=True):
        assert abs(got - value) <= abs(value) * 2.0**-51


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8), st.integers(-40, 127), wide)
def test_64_bits_are_the_same_numbers(values: list[int], shift: int, bound: int) -> None:
    narrow, full = Int128.from_int64(np.array(values, dtype=np.int64)), Int128.from_ints(values)
    assert narrow.to_ints() == narrow.part(slice(0, 9)).to_ints() == full.saturated(125).to_ints() == values
    assert narrow.high.tolist() == full.high.tolist() and narrow.to_float64().tolist() == full.to_float64().tolist()
    assert narrow.at_least(bound).tolist() == full.at_least(bound).tolist()
    assert narrow.clipped_index(7).tolist() == full.clipped_index(7).tolist()
    odd = np.array(values) % 2 == 1
    assert narrow.where(odd).to_ints() == full.where(odd).to_ints()
    for bits in (64, 70, 125):
        assert narrow.saturated(bits).to_ints() == full.saturated(bits).to_ints() == values
    assert narrow.shifted(shift).to_ints() == full.shifted(shift).to_ints()
    assert narrow.shifted(0).plus(np.full(len(values), 2**62)).to_ints() == [value + 2**62 for value in values]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(-(10**38) + 1, 10**38 - 1)), max_size=8), st.integers(0, 3))
def test_decimals_from_arrow_are_exact_integers(values: list[int | None], skipped: int) -> None:
    array = pa.array([None if v is None else Decimal(v) for v in values], pa.decimal128(38, 0)).slice(skipped)
    assert whole(array).to_ints() == [v or 0 for v in values[skipped:]]


def test_integers_from_arrow_are_exact_integers() -> None:
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        low = -(2 ** (kind.bit_width - 1))
        array = pa.array([low, None, -1, 0, -low - 1], kind)
        assert whole(array).to_ints() == [low, 0, -1, 0, -low - 1]
    assert whole(pa.array([], pa.int64())).to_ints() == []
    assert whole(pa.array([1, 2, 3], pa.int64()).slice(1)).to_ints() == [2, 3]


@pytest.mark.parametrize("kind", [pa.float64(), pa.string(), pa.decimal128(38, 2), pa.bool_(), pa.uint64()])
def test_other_types_are_a_charged_fault(kind: pa.DataType) -> None:
    with pytest.raises(Fault) as caught:
        whole(pa.array([None], kind))
    assert caught.value.slug == "noise_answer" and caught.value.charged


@pytest.mark.parametrize("kind", [pa.int64(), pa.decimal128(38, 0)])
def test_elements_go_to_their_cells(kind: pa.DataType) -> None:
    values = pa.array([9, 5, None, -7, 8], kind).slice(1)
    cells = np.array([1, 2, 3, 4])
    assert Int128.placed(values, cells, 6).to_ints() == [0, 5, 0, -7, 8, 0]
    assert Int128.placed(values, cells, 4).to_ints() == [0, 5, 0, -7]
    assert Int128.placed(values, np.array([3, 0, 4, 4]), 4).to_ints() == [0, 0, 0, 5]
    assert Int128.placed(values.slice(0, 0), cells[:0], 2).to_ints() == [0, 0]


def test_parts_are_read_and_written_and_wider_integers_refused() -> None:
    vector, other = Int128.from_ints([5, -(2**100), 3]), Int128.zeros(3).widened()
    assert vector.part(slice(1, 9)).to_ints() == [-(2**100), 3]
    other.put(slice(0, 1), Int128.from_ints([7]))
    other.put(slice(1, 9), vector.part(slice(1, 9)))
    assert other.to_ints() == [7, -(2**100), 3] and other.widened() is other
    with pytest.raises(OverflowError):
        Int128.from_ints([2**127])
    assert "1267650600228229401496703205376" not in repr(vector)
