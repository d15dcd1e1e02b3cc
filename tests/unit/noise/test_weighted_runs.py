"""Runs of cells: where the gaps of a histogram are, which run a uniform number means, and which of its cells."""

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from support.noise_laws import Scripted

from dpsql.errors.exceptions import Fault
from dpsql.noise.weighted_runs import (
    MOST_CELLS,
    ONE_BITS,
    Integers,
    Run,
    Runs,
    check_shape,
    drawn,
    exp_tables,
    gaps,
    near_runs,
    portions,
    uniform_below,
)

TOP = (1 << 64) - 1
CELLS = 10
GROUPS: list[list[int]] = [[2, 3, 7], [], [0], [9], [0, 9], list(range(10))]
"""The cells with rows, of each group."""


def integers(values: list[int]) -> Integers:
    return np.array(values, dtype=np.int64)


def starts(groups: list[list[int]]) -> Integers:
    return integers([0, *np.cumsum([len(cells) for cells in groups]).tolist()])


def flat(groups: list[list[int]]) -> Integers:
    return integers([cell for cells in groups for cell in cells])


# --- gaps -----------------------------------------------------------------------------------------------------------


def test_a_gap_lies_before_each_cell_with_rows_and_after_the_last() -> None:
    rows = gaps(CELLS, starts(GROUPS), flat(GROUPS))
    expected = [
        (group, left, right)
        for group, cells in enumerate(GROUPS)
        for left, right in zip([-1, *cells], [*cells, CELLS], strict=True)
    ]
    assert list(zip(rows.group.tolist(), rows.left.tolist(), rows.right.tolist(), strict=True)) == expected
    assert rows.closes.tolist() == [place for place, (_, _, right) in enumerate(expected) if right == CELLS]


@pytest.mark.parametrize(
    ("cells", "start", "cell", "count", "holds"),
    [
        (10, [0, 2], [0, 9], [1, 5], True),
        (10, [0, 0], [], [], True),
        (MOST_CELLS, [0, 1], [MOST_CELLS - 1], [1], True),
        (MOST_CELLS + 1, [0, 0], [], [], False),
        (0, [0, 0], [], [], False),
        (10, [1, 2], [0, 9], [1, 5], False),
        (10, [0, 1], [0, 9], [1, 5], False),
        (10, [0, 2], [0, 9], [1], False),
        (10, [0, 2], [0, 9], [1, 0], False),
        (10, [0, 1], [10], [1], False),
        (10, [0, 1], [-1], [1], False),
    ],
)
def test_what_is_no_histogram_raises(
    cells: int, start: list[int], cell: list[int], count: list[int], holds: bool
) -> None:
    if holds:
        check_shape(cells, integers(start), integers(cell), integers(count))
        return
    with pytest.raises(Fault) as caught:
        check_shape(cells, integers(start), integers(cell), integers(count))
    assert caught.value.slug == "noise_guard" and caught.value.charged


# --- runs -----------------------------------------------------------------------------------------------------------

RATE = Fraction(1, 3)


def distances_of(groups: list[list[int]]) -> list[list[int]]:
    """Return a distance for every cell: small in the middle, and the same for all cells of a gap."""
    found = []
    for cells in groups:
        inside = set(cells)
        numbers, last = [], 0
        for cell in range(CELLS):
            last = (cell * 7) % 5 if cell in inside or cell == 0 or cell - 1 in inside else last
            numbers.append(last)
        least = min(numbers)
        found.append([number - least for number in numbers])
    return found


def runs_for(groups: list[list[int]], rate: Fraction = RATE, cells: int = CELLS) -> tuple[Runs, list[list[Run]]]:
    """Return near runs, and all runs of each group."""
    distance = distances_of(groups)
    rows = gaps(cells, starts(groups), flat(groups))
    pairs = []
    for group, left, right in zip(rows.group.tolist(), rows.left.tolist(), rows.right.tolist(), strict=True):
        of_gap = distance[group][left + 1] if right - left > 1 else 0
        pairs.append([of_gap, distance[group][right] if right < cells else 0])
    tables = exp_tables(rate)
    near = near_runs(cells, len(groups), rows, np.array(pairs, dtype=np.int64), tables)
    whole = []
    for group in range(len(groups)):
        listed: list[Run] = []
        for place in (rows.group == group).nonzero()[0].tolist():
            left, right = int(rows.left[place]), int(rows.right[place])
            if right - left > 1:
                listed.append((left + 1, right - left - 1, pairs[place][0]))
            if right < cells:
                listed.append((right, 1, distance[group][right]))
        whole.append(listed)
    return near, whole


def test_near_runs_cover_all_cells_in_order_with_their_distances() -> None:
    near, whole = runs_for(GROUPS)
    found = list(
        zip(near.group.tolist(), near.first.tolist(), near.width.tolist(), near.distance.tolist(), strict=True)
    )
    assert found == [(group, *run) for group, runs in enumerate(whole) for run in runs]
    assert near.end.tolist() == np.cumsum([len(runs) for runs in whole]).tolist()
    for group in range(len(GROUPS)):
        covered = [cell for owner, first, width, _ in found if owner == group for cell in range(first, first + width)]
        assert covered == list(range(CELLS))


def exact_weights(runs: list[Run], rate: Fraction) -> list[Decimal]:
    return [
        Decimal(width) * (-Decimal((rate * distance).numerator) / Decimal((rate * distance).denominator)).exp()
        for _, width, distance in runs
    ]


@pytest.mark.parametrize("rate", [RATE, Fraction(5), Fraction(1, 10**9)])
def test_weights_are_enclosed_by_what_is_computed_and_its_error(rate: Fraction) -> None:
    near, whole = runs_for(GROUPS, rate)
    bits = CELLS.bit_length() + 1
    with localcontext(Context(prec=60)):
        exact = [weight for runs in whole for weight in exact_weights(runs, rate)]
        for weight, computed in zip(exact, near.weight.tolist(), strict=True):
            assert computed <= weight * 2 ** (ONE_BITS - bits) < computed + near.error


def test_runs_that_are_far_away_are_left_out() -> None:
    rows = gaps(CELLS, integers([0, 1]), integers([4]))
    tables = exp_tables(RATE)
    pairs = [[tables.last, tables.last + 1], [0, 0]]
    near = near_runs(CELLS, 1, rows, np.array(pairs, dtype=np.int64), tables)
    assert list(zip(near.first.tolist(), near.width.tolist(), near.distance.tolist(), strict=True)) == [
        (0, 4, tables.last),
        (5, 5, 0),
    ]


# --- choices --------------------------------------------------------------------------------------------------------


def unused(group: int) -> list[Run]:
    raise AssertionError("the first bits decide")


def chosen(
    groups: list[list[int]], beginnings: list[int], more: list[int], runs_of: Callable[[int], list[Run]] | None = None
) -> list[int]:
    """Return the cells that are chosen where the words of U begin so, followed by `more` words."""
    near, whole = runs_for(groups)
    script = Scripted([*beginnings, *more])
    return list(map(int, drawn(CELLS, near, runs_of or whole.__getitem__, RATE, 0, script)))


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_a_run_is_the_first_whose_sum_of_weights_exceeds_the_share(group: int) -> None:
    """For shares on both sides of every boundary between two runs, as 50 digits say."""
    _, whole = runs_for([GROUPS[group]])
    runs = whole[0]
    with localcontext(Context(prec=50)):
        weights = exact_weights(runs, RATE)
        total = sum(weights)
        boundaries = [sum(weights[: place + 1]) / total for place in range(len(runs))]
        for place, boundary in enumerate(boundaries):
            for shift, expected in ((-(1 << 30), place), (1 << 30, place + 1)):
                word = int(boundary * 2**64) + shift
                if not 0 <= word < 1 << 64:
                    continue
                first = runs[expected][0]
                assert chosen([GROUPS[group]], [word], [0], unused) == [first], (place, shift)


def test_the_first_cell_is_certain_at_zero_and_the_last_at_one() -> None:
    count = len(GROUPS)
    _, whole = runs_for(GROUPS)
    assert chosen(GROUPS, [0] * count, [0] * count, unused) == [0] * count
    last_words = [TOP // runs[-1][1] * runs[-1][1] - 1 for runs in whole]
    assert chosen(GROUPS, [TOP - (1 << 20)] * count, last_words, unused) == [CELLS - 1] * count


def test_each_group_reads_a_word_of_its_own() -> None:
    middle = [0, TOP // 2, TOP - (1 << 40)]
    alone = [chosen([GROUPS[0]], [word], [0]) for word in middle]
    assert chosen([GROUPS[0]] * 3, middle, [0] * 3) == [cell for (cell,) in alone]
    assert len({cell for (cell,) in alone}) == 3


def test_what_the_first_bits_leave_open_is_decided_by_further_ones() -> None:
    """On both sides of a boundary, at the last of the 254 bits that differ from it by far more than the bounds are apart."""
    groups = [GROUPS[0]]
    _, whole = runs_for(groups)
    runs = whole[0]
    with localcontext(Context(prec=120)):
        weights = exact_weights(runs, RATE)
        total = sum(weights)
        for place in range(len(runs) - 1):
            boundary = int(sum(weights[: place + 1]) / total * 2**254)
            for shift, expected in ((-(1 << 40), place), (1 << 40, place + 1)):
                number = boundary + shift
                begin, rest = number >> 192, number & ((1 << 192) - 1)
                more = [rest >> 128, rest >> 64 & TOP, rest & TOP]
                assert chosen(groups, [begin << 2], [*more, 0]) == [runs[expected][0]], (place, shift)


def test_cells_of_a_run_are_chosen_uniformly() -> None:
    """Every cell of a run owns as many words as any other, and the words beyond are drawn again."""
    for width in (1, 3, 7, 1 << 20):
        share = TOP // width
        for cell in {0, 1, width // 2, width - 1} & set(range(width)):
            for word in (cell * share, (cell + 1) * share - 1):
                assert uniform_below(integers([width]), 0, Scripted([word])).tolist() == [cell]
    share = TOP // 7
    assert uniform_below(integers([7]), 0, Scripted([7 * share, share])).tolist() == [1]
    again = uniform_below(integers([7, 3]), 0, Scripted([TOP, 0, TOP, 5 * share]))
    assert again.tolist() == [5, 0]


def test_as_many_words_are_read_as_are_asked_for() -> None:
    """So that the time does not tell how many groups there are."""

    class Counting(Scripted):
        sizes: list[int]

        def read(self, size: int) -> bytes:
            self.sizes.append(size // 8)
            return super().read(size)

    script = Counting([0] * 64)
    script.sizes = []
    near, _ = runs_for(GROUPS)
    drawn(CELLS, near, unused, RATE, 20, script)
    assert script.sizes == [20, 20]


# --- portions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "most", "expected"),
    [
        ([1, 1, 1, 1], 2, [(0, 2), (2, 4)]),
        ([1, 1, 1, 1], 3, [(0, 3), (3, 4)]),
        ([1, 1, 1, 1], 4, [(0, 4)]),
        ([5, 1, 1], 2, [(0, 1), (1, 3)]),
        ([1, 5, 1], 2, [(0, 1), (1, 2), (2, 3)]),
        ([0, 0, 3, 0], 3, [(0, 4)]),
        ([2, 2], 1, [(0, 1), (1, 2)]),
        ([], 2, []),
    ],
)
def test_portions_hold_as_many_groups_as_have_no_more_parts_or_one_alone(
    sizes: list[int], most: int, expected: list[tuple[int, int]]
) -> None:
    """Whether the parts are of one element of a group or of several."""
    start = integers(list(range(len(sizes) + 1)))
    assert [(part.start, part.stop) for part in portions(start, integers(sizes), most)] == expected
    by_one = integers([0, *np.cumsum(sizes).astype(int).tolist()])
    ones = integers([1] * sum(sizes))
    assert [(part.start, part.stop) for part in portions(by_one, ones, most)] == expected
