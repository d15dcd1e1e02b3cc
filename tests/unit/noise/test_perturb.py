"""The noise gate: which cells are measured, in which order, with which noise, and that nothing exact gets out."""

import datetime
import gc
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.noise_laws import ALPHA, Seeded, fit, gaussian_cdf, laplace_cdf

from dpsql.engine.contract import ExactAnswer
from dpsql.errors.exceptions import Fault, InternalError
from dpsql.noise.group_layout import Groups, Int128, lay_out
from dpsql.noise.perturb import Gate, NoisyAnswer, perturb
from dpsql.noise.samplers import LEAST_DRAW
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import gaussian as gaussians
from dpsql.privacy.mechanisms import laplace as laplaces
from dpsql.privacy.mechanisms.contract import Constant, KeyColumn, Noise, NoisePlan, Selection, Sensitivity, TermNoise
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.partition_selection import optimal, threshold

UNIT = Sensitivity(1, 1, 1, 1)
EXACT = laplaces.noise_for(UNIT, Fraction(10**12))  # a scale of 1e-12: noise is 0
COUNT = TermNoise("n", EXACT, 0, True)


class Recorder(Gate):
    """A gate that records its inputs and returns the exact numbers; private keys are admitted from 2 units."""

    def __init__(self) -> None:
        super().__init__(Seeded("recorder"))
        self.added: list[tuple[str, list[int], list[dict[str, Any]]]] = []
        self.selected: list[tuple[str, list[int]]] = []

    def add(self, name: str, exact: Int128, noise: Noise, groups: Groups, drawn: object) -> Int128:
        self.added.append((name, exact.to_ints(), groups.keys.to_pylist()))
        return exact

    def select(self, name: str, counts: Int128, selection: Selection, groups: Groups) -> NDArray[np.bool_]:
        self.selected.append((name, counts.to_ints()))
        return counts.at_least(2)


def answer(columns: dict[str, Any], plan: NoisePlan, gate: Gate | None = None) -> NoisyAnswer:
    return perturb(ExactAnswer(pa.table(columns)), plan, gate or Gate())


def public(**domains: Any) -> tuple[KeyColumn, ...]:
    return tuple(KeyColumn(name, pa.array(values)) for name, values in domains.items())


def rows(result: NoisyAnswer) -> list[tuple[Any, ...]]:
    keys = [result.keys.column(name).to_pylist() for name in result.keys.column_names]
    return list(zip(*keys, *[term.values.tolist() for term in result.terms], strict=True))


@pytest.mark.parametrize(
    ("noise", "cdf"),
    [
        (laplaces.noise_for(UNIT, Fraction(1, 10)), laplace_cdf),
        (gaussians.noise_for(UNIT, Fraction(1, 200)), gaussian_cdf),
    ],
)
def test_ten_thousand_empty_public_keys_are_ten_thousand_samples(noise: Noise, cdf: Any) -> None:
    plan = NoisePlan(public(k=list(range(10_000))), (TermNoise("n", noise, 0, False),), None)
    result = answer({"k": pa.array([], pa.int64()), "n": pa.array([], pa.int64())}, plan)
    assert result.row_count == result.keys.num_rows == 10_000
    values = np.rint(result.terms[0].values / result.terms[0].noise_unit).astype(np.int64)
    scale = float(noise.noise_scale)
    assert fit(values, cdf(scale), scale) > ALPHA
    for wrong in (0.7, 1.3):
        assert fit(values, cdf(scale * wrong), scale) < ALPHA
    for confidence in (0.5, 0.95):
        inside = np.mean(np.abs(result.terms[0].values) <= result.terms[0].half_width(confidence))
        assert confidence - 0.04 < inside < confidence + 0.08


def test_terms_get_noise_of_their_own() -> None:
    noise = laplaces.noise_for(UNIT, Fraction(1, 100))
    plan = NoisePlan(public(k=list(range(4000))), tuple(TermNoise(n, noise, 0, False) for n in "ab"), None)
    result = answer({n: pa.array([], pa.int64()) for n in "kab"}, plan)
    correlation = np.corrcoef(result.term("a").values, result.term("b").values)[0, 1]
    assert abs(correlation) < 0.11
    with pytest.raises(KeyError):
        result.term("c")


def test_terms_of_one_law_share_a_draw_and_no_value() -> None:
    """A noiseless term has no noise, whatever other terms exist; each law is drawn once for all its terms."""
    asked: list[tuple[Noise, int]] = []

    class Counting(Gate):
        def _draw(self, noise: Noise, count: int) -> NDArray[np.int64] | None:
            asked.append((noise, count))
            return None if noise == still else np.arange(count) + 10_000 * len(asked)

    one, other = laplaces.noise_for(UNIT, Fraction(1)), laplaces.noise_for(UNIT, Fraction(1, 2))
    still = Constant(Sensitivity(0, 0, 0, 0))
    for groups, padded in ((Groups(pa.table({}), 3, True), 3), (Groups(pa.table({}), 3, False), LEAST_DRAW)):
        asked.clear()
        found = Counting().draw([one, other, still, one, one], groups)
        assert asked == [(one, 3 * padded), (other, padded), (still, padded)]
        assert [None if part is None else part.tolist() for part in found] == [
            list(range(10_000, 10_000 + padded)),
            list(range(20_000, 20_000 + padded)),
            None,
            list(range(10_000 + padded, 10_000 + 2 * padded)),
            list(range(10_000 + 2 * padded, 10_000 + 3 * padded)),
        ]


def test_public_keys_show_every_combination_and_nothing_else() -> None:
    plan = NoisePlan(public(region=["s", "n"], sex=[1, 0, None]), (COUNT,), None)
    columns = {
        "n": pa.array([5, 7, 100, 200, 9], pa.int64()),
        "sex": pa.array([0, None, 1, 2, 1], pa.int32()),
        "region": pa.array(["n", "s", "west", "n", "s"]),
    }
    result = answer(columns, plan)
    assert rows(result) == [("s", 1, 9), ("s", 0, 0), ("s", None, 7), ("n", 1, 0), ("n", 0, 5), ("n", None, 0)]
    assert result.keys.schema.names == ["region", "sex"] and result.keys.schema.field("sex").type == pa.int64()
    unlisted = NoisePlan(public(sex=[1, 0]), (COUNT,), None)
    assert rows(answer({"sex": [None, 1], "n": [7, 9]}, unlisted)) == [(1, 9), (0, 0)]


def test_listed_combinations_are_shown_and_no_others() -> None:
    """Cells 1, 2 and 4 of the grid of two keys are listed; rows in other cells, or in no cell, belong to no group."""
    plan = NoisePlan(public(region=["s", "n"], sex=[1, 0, None]), (COUNT,), None, listed=np.array([1, 2, 4]))
    columns = {
        "n": pa.array([5, 7, 100, 200, 9], pa.int64()),
        "sex": pa.array([0, None, 1, 2, 1], pa.int32()),
        "region": pa.array(["n", "s", "west", "n", "s"]),
    }
    assert rows(answer(columns, plan)) == [("s", 0, 0), ("s", None, 7), ("n", 0, 5)]
    last = NoisePlan(plan.keys, (COUNT,), None, listed=np.array([5]))
    assert rows(answer(columns, last)) == [("n", None, 0)]
    assert rows(answer(columns, NoisePlan(plan.keys, (COUNT,), None, listed=np.array([], np.int64)))) == []


_ENDS = [-(1 << 63), -(1 << 63) + 1, -3, -1, 0, 1, 2, 5, (1 << 63) - 2, (1 << 63) - 1]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(_ENDS), st.integers(1, 4), st.sets(st.sampled_from(_ENDS)), st.booleans(), st.booleans())
def test_integers_that_follow_each_other_are_found_by_their_distance(
    first: int, size: int, others: set[int], missing: bool, hole: bool
) -> None:
    """The result equals a look-up: every value of the domain in its place, values outside (and NULL) nowhere; and a hole in the
    domain is not overlooked."""
    listed = [*range(first, first + size), *([first + size + 1] if hole else [])]
    domain = [value for value in listed if value < 1 << 63]
    seen: list[int | None] = [*sorted(others), *([None] if missing else [])]
    plan = NoisePlan((KeyColumn("k", pa.array(domain, pa.int64())),), (COUNT,), None)
    result = answer({"k": pa.array(seen, pa.int64()), "n": pa.array(range(7, 7 + len(seen)), pa.int64())}, plan)
    assert rows(result) == [(value, 7 + seen.index(value) if value in others else 0) for value in domain]


def test_a_plan_that_is_asked_again_keeps_its_keys() -> None:
    plan = NoisePlan(public(a=[1, 2], b=["x", "y"]), (COUNT,), None)
    columns = {"a": pa.array([2], pa.int64()), "b": pa.array(["x"]), "n": pa.array([4], pa.int64())}
    first, again = answer(columns, plan), answer(columns, plan)
    assert first.keys is again.keys and rows(first) == rows(again) == [
        (1, "x", 0), (1, "y", 0), (2, "x", 4), (2, "y", 0),
    ]  # fmt: skip
    other = answer(columns, NoisePlan(public(a=[2, 1], b=["x", "y"]), (COUNT,), None))
    assert rows(other)[0] == (2, "x", 4)


def test_key_types_meet_across_dictionaries_and_timestamps() -> None:
    day = datetime.date(2024, 1, 2)
    dictionary = pa.array(["a", "b"]).dictionary_encode()
    plan = NoisePlan((KeyColumn("k", dictionary), KeyColumn("d", pa.array([day]))), (COUNT,), None)
    columns = {
        "k": pa.array(["b"]).dictionary_encode(),
        "d": pa.array([datetime.datetime(2024, 1, 2)], pa.timestamp("us")),
        "n": [3],
    }
    assert rows(answer(columns, plan)) == [("a", day, 0), ("b", day, 3)]
    with pytest.raises(Fault) as caught:
        answer({"k": [True], "n": [1]}, NoisePlan(public(k=[day]), (COUNT,), None))
    assert caught.value.slug == "noise_answer" and caught.value.charged


def test_an_empty_domain_gives_no_rows() -> None:
    plan = NoisePlan((KeyColumn("k", pa.array([], pa.int64())), *public(j=[1, 2])), (COUNT,), None)
    assert answer({"k": [1], "j": [2], "n": [3]}, plan).row_count == 0


def test_no_keys_always_give_one_row() -> None:
    plan = NoisePlan((), (COUNT,), None)
    assert answer({"n": pa.array([41], pa.int64())}, plan).terms[0].values.tolist() == [41]
    empty = answer({"n": pa.array([], pa.int64())}, plan)
    assert empty.row_count == 1 and empty.terms[0].values.tolist() == [0]
    assert answer({"n": pa.array([None], pa.int64())}, plan).terms[0].values.tolist() == [0]
    with pytest.raises(Fault):
        answer({"n": [1, 2]}, plan)


PRIVATE = NoisePlan(
    (KeyColumn("name", None), *public(sex=["m", "f"])),
    (COUNT, TermNoise("s", EXACT, 3, False)),
    optimal("u", 1, PrivacyLoss.pure(Fraction(1), Fraction(1, 100))),
)
OBSERVED = {
    "name": pa.array(["bo", None, "al", "bo", "cy", "al"]),
    "sex": pa.array(["f", "m", "f", "m", "x", "m"]),
    "n": pa.array([30, 40, 10, 20, 99, 1], pa.int64()),
    "s": pa.array([Decimal(v) for v in (240, 8, -80, 16, 1, 1)], pa.decimal128(38, 0)),
    "u": pa.array([3, 4, 2, 2, 9, 1], pa.int64()),
}


def test_private_keys_are_selected_and_sorted() -> None:
    gate = Recorder()
    result = answer(OBSERVED, PRIVATE, gate)
    # The recorder returns exact numbers, so the values below are those of the surviving rows, read on their grids.
    unit = 2.0 ** (EXACT.shift - 3)
    assert result.term("s").values.tolist() == [value * unit for value in (-80, 16, 240, 8)]
    assert result.term("n").values.tolist() == [10, 20, 30, 40]
    assert [row[:2] for row in rows(result)] == [("al", "f"), ("bo", "m"), ("bo", "f"), (None, "m")]
    assert gate.selected == [("u", [1, 2, 2, 3, 4])]
    assert gate.added[0][:2] == ("n", [1, 10, 20, 30, 40])
    assert [key["name"] for key in gate.added[0][2]] == ["al", "al", "bo", "bo", None]


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(6)))
def test_the_order_of_engine_rows_changes_nothing(order: list[int]) -> None:
    shuffled = {name: column.take(pa.array(order)) for name, column in OBSERVED.items()}
    for plan in (PRIVATE, NoisePlan(public(name=["al", "bo", None], sex=["m", "f"]), PRIVATE.terms, None)):
        gates, results = (Recorder(), Recorder()), []
        for gate, columns in zip(gates, (OBSERVED, shuffled), strict=True):
            results.append(answer(columns, plan, gate))
        assert gates[0].added == gates[1].added and gates[0].selected == gates[1].selected
        noisy = [rows(answer(columns, plan, Gate(Seeded("order")))) for columns in (OBSERVED, shuffled)]
        assert noisy[0] == noisy[1]


_KEYS = {
    "integer": (st.integers(-2, 2), pa.int64()),
    "text": (st.sampled_from(["", "a", "ab", "b", "é"]), pa.string()),
    "real": (st.sampled_from([-1.5, 0.0, 2.0, float("inf"), float("nan")]), pa.float64()),
    "date": (st.dates(datetime.date(2024, 1, 1), datetime.date(2024, 1, 3)), pa.date32()),
}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_rows_leave_in_key_order_from_every_order_of_the_engine(data: st.DataObject) -> None:
    """The check whether the engine's rows are already sorted never accepts another order (with NULL and NaN too)."""
    kinds = [_KEYS[name] for name in data.draw(st.lists(st.sampled_from(sorted(_KEYS)), min_size=1, max_size=3))]
    values = st.tuples(*(st.none() | one for one, _ in kinds))
    groups = data.draw(st.lists(values, max_size=6, unique_by=repr))
    names = [f"k{at}" for at in range(len(kinds))]
    columns = {name: pa.array([g[at] for g in groups], kinds[at][1]) for at, name in enumerate(names)}
    table = pa.table({**columns, "n": pa.array(range(len(groups)), pa.int64())})
    ordered = table.sort_by([(name, "ascending") for name in names])
    keys = tuple(KeyColumn(name, None) for name in names)
    for given_rows in (table, ordered):
        layout = lay_out(given_rows, keys)
        assert repr(layout.groups.keys.to_pylist()) == repr(ordered.select(names).to_pylist())
        assert layout.integers(given_rows, "n").to_ints() == ordered.column("n").to_pylist()


def test_the_threshold_reads_the_released_count() -> None:
    noise = laplaces.noise_for(UNIT, Fraction(1, 10))
    selection = threshold("n", 1, noise, Fraction(1, 100))
    plan = NoisePlan((KeyColumn("k", None),), (TermNoise("n", noise, 0, True),), selection)
    columns = {"k": pa.array(range(5000)), "n": pa.array([selection.tau] * 5000, pa.int64())}
    result = answer(columns, plan)
    assert 2400 < result.row_count < 2900  # P(Z >= 0) is slightly above 1/2
    assert result.terms[0].values.min() == selection.tau
    other = NoisePlan(plan.keys, (TermNoise("n", laplaces.noise_for(UNIT, Fraction(1)), 0, True),), selection)
    for wrong in (other, NoisePlan(plan.keys, (TermNoise("m", noise, 0, True),), selection)):
        with pytest.raises(InternalError):
            answer({"k": [1], "n": [1], "m": [1]}, wrong)


def test_inconsistent_plans_never_open_the_answer() -> None:
    class Untouchable(ExactAnswer):
        def unseal(self) -> Any:
            raise AssertionError("opened")

    selection = optimal("n", 1, PrivacyLoss.pure(Fraction(1), Fraction(1, 100)))
    for plan in (
        NoisePlan((KeyColumn("k", None),), (COUNT,), None),
        NoisePlan(public(k=[1]), (COUNT,), selection),
        NoisePlan((), (COUNT,), selection),
        NoisePlan(public(k=[1]), (COUNT, COUNT), None),
        NoisePlan((*public(k=[1]), *public(k=[2])), (COUNT,), None),
    ):
        with pytest.raises(InternalError) as caught:
            perturb(Untouchable(pa.table({})), plan, Gate())
        assert caught.value.slug == "noise_plan"


def test_wrong_answers_of_an_engine_are_faults() -> None:
    plan = NoisePlan(public(k=[1, 2]), (COUNT,), None)
    for columns in ({"k": [1]}, {"n": [1]}, {"k": [1, 1], "n": [1, 2]}, {"k": [1], "n": [0.5]}):
        with pytest.raises(Fault) as caught:
            answer(columns, plan)
        assert caught.value.slug == "noise_answer" and caught.value.charged


def test_an_unknown_mechanism_is_not_free() -> None:
    class Other:
        mechanism, shift, sensitivity = "other", 0, UNIT

    with pytest.raises(InternalError):
        answer({"n": [1]}, NoisePlan((), (TermNoise("n", Other(), 0, True),), None))  # type: ignore[arg-type]


def test_a_constant_never_shows_the_engines_number() -> None:
    still = laplaces.noise_for(Sensitivity(1, 0, 0, 0), Fraction(1))
    plan = NoisePlan(public(k=[1]), (TermNoise("n", still, 0, False),), None)
    assert rows(answer({"k": [1], "n": [123456]}, plan)) == [(1, 0.0)]


@pytest.mark.parametrize(
    ("noise", "unit"),
    [
        (Laplace(Sensitivity(1, 1 << 60, 1 << 120, 1 << 60), 20, 1, 1 << 40), 2.0**20),
        (Gaussian(Sensitivity(1, 1, 1, 1), -40, 1), 2.0**-40),
    ],
)
def test_grids_are_read_back(noise: Noise, unit: float) -> None:
    big = (1 << 70) + 12345
    plan = NoisePlan((), (TermNoise("s", noise, 4, False),), None)
    result = answer({"s": pa.array([Decimal(big)], pa.decimal128(38, 0))}, plan)
    term = result.terms[0]
    assert term.noise_unit == unit / 16
    assert abs(term.values[0] - big / 16) <= 20 * term.noise_unit + unit / 16 + big * 2.0**-50
    assert term.half_width(0.95) == noise.half_width(0.95) / 16
    assert term.standard_deviation() == noise.standard_deviation() / 16


def test_huge_sums_saturate_and_never_wrap() -> None:
    for value in (10**38 - 1, -(10**38) + 1):
        for noise in (laplaces.noise_for(UNIT, Fraction(1)), Gaussian(UNIT, -40, 1 << 20)):
            plan = NoisePlan((), (TermNoise("s", noise, 0, False), TermNoise("w", noise, 0, True)), None)
            column = pa.array([Decimal(value)], pa.decimal128(38, 0))
            result = answer({"s": column, "w": column}, plan)
            assert np.sign(result.terms[0].values[0]) == np.sign(result.terms[1].values[0]) == np.sign(value)
            assert abs(result.terms[0].values[0]) >= 2.0**84


def test_noise_moves_the_answer_by_exactly_what_was_drawn() -> None:
    """The same seed on two exact vectors: the answers differ by exactly the exact difference."""
    noise = laplaces.noise_for(UNIT, Fraction(1, 10))
    plan = NoisePlan(public(k=list(range(50))), (TermNoise("n", noise, 0, True),), None)
    keys = pa.array(range(50))
    base = answer({"k": keys, "n": [0] * 50}, plan, Gate(Seeded("frozen"))).terms[0].values
    moved = answer({"k": keys, "n": list(range(50))}, plan, Gate(Seeded("frozen"))).terms[0].values
    assert (moved - base).tolist() == list(range(50))
    assert len(set(base.tolist())) > 10


def test_a_private_number_of_groups_is_drawn_in_powers_of_two() -> None:
    draws = {count: Groups(None, count, False).draws for count in (0, 1, 1024, 1025, 5000)}
    assert draws == {0: LEAST_DRAW, 1: LEAST_DRAW, 1024: 1024, 1025: 2048, 5000: 8192}
    assert Groups(None, 5000, True).draws == 5000
    sizes = []
    for count in (1100, 1900):
        source = Seeded("sizes")
        columns = {"name": list(map(str, range(count))), "sex": ["m"] * count} | {name: [5] * count for name in "nsu"}
        answer(columns, PRIVATE, Gate(source))
        sizes.append(source.sizes[0])
    assert sizes[0] == sizes[1]


def test_nothing_exact_is_reachable_from_the_answer() -> None:
    canary = 7_777_777_777
    noise = laplaces.noise_for(UNIT, Fraction(1, 10**6))
    plan = NoisePlan(public(k=[1, 2]), (TermNoise("n", noise, 0, True),), None)
    exact = ExactAnswer(pa.table({"k": [1], "n": [canary]}))
    result = perturb(exact, plan, Gate())
    assert str(canary) not in repr(result) + repr(exact)
    assert not any(isinstance(thing, (ExactAnswer, Int128, Gate)) for thing in gc.get_referents(result, *result.terms))
    assert result.terms[0].values.base is None or result.terms[0].values.base.size <= 2
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError):
            pickle.dumps(exact, protocol)
