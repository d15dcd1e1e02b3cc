"""Which groups are measured, in which order, and to which of them each row of the engine goes."""

from __future__ import annotations

import datetime
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpsql.errors.exceptions import Fault
from dpsql.noise import group_layout
from dpsql.noise.group_layout import GroupLayout, Groups, among, combinations_table, lay_out, plain_column
from dpsql.noise.int128 import PART
from dpsql.noise.samplers import LEAST_DRAW
from dpsql.plan.combinations import Numbers
from dpsql.privacy.mechanisms.contract import KeyColumn

LAST, FIRST = (1 << 63) - 1, -(1 << 63)


def public(**domains: Any) -> tuple[KeyColumn, ...]:
    return tuple(KeyColumn(name, pa.array(values)) for name, values in domains.items())


def numbers(*cells: int) -> Numbers:
    return np.array(cells, dtype=np.int64)


def key_rows(groups: Groups) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in groups.keys.to_pylist()]


def places_in(layout: GroupLayout) -> list[tuple[Any, ...] | None]:
    """Return the key of the group that each row goes to, None where it goes nowhere."""
    groups = key_rows(layout.groups)
    assert len(groups) == layout.groups.count
    return [groups[cell] if cell < len(groups) else None for cell in layout.cells.tolist()]


def refused(table: Any, keys: tuple[KeyColumn, ...]) -> None:
    with pytest.raises(Fault) as caught:
        lay_out(table, keys)
    assert caught.value.slug == "noise_answer" and caught.value.charged


# --- how many numbers are drawn -------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0, 1, 5, 12])
def test_a_private_number_of_groups_is_hidden_among_all_up_to_the_next_power_of_two(power: int) -> None:
    size = LEAST_DRAW << power
    assert {Groups(None, count, False).draws for count in (size // 2 + 1, size - 1, size)} == {size}
    assert Groups(None, size + 1, False).draws == 2 * size
    assert {Groups(None, count, False).draws for count in range(20)} == {LEAST_DRAW}
    assert [Groups(None, count, True).draws for count in (0, 1, size + 1)] == [0, 1, size + 1]


# --- no keys --------------------------------------------------------------------------------------------------------


def test_without_keys_there_is_one_group_whether_or_not_a_row_comes() -> None:
    for row_count in (0, 1):
        layout = lay_out(pa.table({"n": pa.array([7] * row_count, pa.int64())}), ())
        assert layout.groups.count == 1 and layout.groups.public
        assert layout.cells.tolist() == [0] * row_count
    refused(pa.table({"n": [7, 7]}), ())


# --- public keys ----------------------------------------------------------------------------------------------------


def test_all_combinations_of_public_keys_come_with_the_first_key_slowest() -> None:
    domains: dict[str, list[Any]] = {"a": ["x", None, "y"], "b": [3, 1], "c": [True, False]}
    layout = lay_out(pa.table({"a": pa.array(["y"]), "b": [1], "c": [False]}), public(**domains))
    assert key_rows(layout.groups) == list(product(*domains.values()))
    assert layout.groups.public and layout.groups.count == 12
    assert places_in(layout) == [("y", 1, False)]


def test_a_key_without_values_leaves_no_group() -> None:
    keys = (KeyColumn("a", pa.array([], pa.int64())), *public(b=[1, 2]))
    layout = lay_out(pa.table({"a": [1], "b": [2]}), keys)
    assert layout.groups.count == 0 == layout.groups.keys.num_rows and places_in(layout) == [None]


DOMAINS_OF_INTEGERS: list[list[int | None]] = [
    [0, 1, 2],
    [0, 1, 2, None],
    [None, 0, 1, 2],
    [2, 1, 0],
    [0, 2, 3],
    [0],
    [None],
    [5, None],
    [FIRST, FIRST + 1],
    [FIRST, FIRST + 1, None],
    [FIRST + 1, FIRST + 2],
    [LAST - 1, LAST],
    [LAST - 1, LAST, None],
    [LAST - 2, LAST - 1],
    [LAST - 2, LAST - 1, None],
]
"""With and without NULL, with holes, and at both ends of what 64 bits hold: some are found by distance, others by look-up."""
SEEN = [FIRST, FIRST + 1, FIRST + 2, -1, 0, 1, 2, 3, 4, 5, 6, 7, LAST - 2, LAST - 1, LAST, None]


@pytest.mark.parametrize("domain", DOMAINS_OF_INTEGERS)
def test_each_integer_goes_to_its_own_group_and_all_others_nowhere(domain: list[int | None]) -> None:
    keys = (KeyColumn("k", pa.array(domain, pa.int64())),)
    layout = lay_out(pa.table({"k": pa.array(SEEN, pa.int64())}), keys)
    assert key_rows(layout.groups) == [(value,) for value in domain]
    assert places_in(layout) == [(value,) if value in domain else None for value in SEEN]


@pytest.mark.parametrize("narrow", [pa.int8(), pa.int16(), pa.int32()])
def test_an_engine_may_return_integers_of_fewer_bits(narrow: Any) -> None:
    layout = lay_out(pa.table({"k": pa.array([4, 3, None, -128], narrow)}), public(k=[3, 4, 5]))
    assert places_in(layout) == [(4,), (3,), None, None]
    assert layout.groups.keys.schema.field("k").type == pa.int64()


DOMAINS_OF_OTHER_TYPES: list[tuple[list[Any], list[Any]]] = [
    (["b", "a", ""], ["a", "A", "", "b", None, "a "]),
    (["b", None], [None, "b", "c"]),
    ([datetime.date(2024, 1, 2)], [datetime.date(2024, 1, 2), datetime.date(2024, 1, 3), None]),
    ([True], [False, True, None]),
    ([1.5, -2.0], [1.5, -2.0, 2.0, float("nan"), None]),
]


@pytest.mark.parametrize(("domain", "seen"), DOMAINS_OF_OTHER_TYPES)
def test_each_value_of_another_type_goes_to_its_own_group(domain: list[Any], seen: list[Any]) -> None:
    layout = lay_out(pa.table({"k": seen}), public(k=domain))
    assert places_in(layout) == [(value,) if value in domain else None for value in seen]


def test_a_row_with_one_key_outside_goes_nowhere_even_where_its_number_would_be_inside() -> None:
    """The number of a combination with a place outside is that of the next combination of another key."""
    seen = {"a": pa.array([0, 0, 9, 1], pa.int64()), "b": pa.array([9, 1, 0, 1], pa.int64())}
    assert places_in(lay_out(pa.table(seen), public(a=[0, 1], b=[0, 1]))) == [None, (0, 1), None, (1, 1)]


def test_a_combination_that_comes_twice_is_the_engines_mistake_and_rows_outside_are_none() -> None:
    keys = public(a=[0, 1], b=["x", "y"])
    refused(pa.table({"a": [1, 0, 1], "b": ["x", "x", "x"]}), keys)
    twice_outside = pa.table({"a": [7, 7, 1, 1], "b": ["x", "x", "z", "z"]})
    assert places_in(lay_out(twice_outside, keys)) == [None] * 4


def test_rows_in_several_parts_are_all_placed_and_compared_with_each_other() -> None:
    """Vectors are worked on in parts, each of which alone has no repeated combination."""
    size = 2 * PART + 3
    keys = (KeyColumn("k", pa.array(np.arange(size))),)
    backwards = pa.table({"k": pa.array(np.arange(size)[::-1].copy())})
    assert (lay_out(backwards, keys).cells == np.arange(size)[::-1]).all()
    refused(pa.table({"k": pa.array(np.arange(size) % (size - 1))}), keys)


def test_types_that_cannot_be_compared_are_the_engines_mistake() -> None:
    refused(pa.table({"k": pa.array([True])}), public(k=[datetime.date(2024, 1, 2)]))
    refused(pa.table({"k": pa.array([1])}), public(k=["one"]))


# --- listed combinations --------------------------------------------------------------------------------------------


def test_only_listed_combinations_are_groups_and_other_rows_go_nowhere() -> None:
    keys = public(a=["x", "y"], b=[1, 2, 3])
    seen = list(product(["x", "y", "z"], [1, 2, 3, 4]))
    table = pa.table({"a": [a for a, _ in seen], "b": [b for _, b in seen]})
    for listed in ([], [0], [5], [1, 2, 5], [0, 1, 2, 3, 4, 5]):
        layout = lay_out(table, keys, numbers(*listed))
        kept = [list(product(["x", "y"], [1, 2, 3]))[cell] for cell in listed]
        assert key_rows(layout.groups) == kept and layout.groups.public
        assert places_in(layout) == [pair if pair in kept else None for pair in seen]


@pytest.mark.parametrize(
    ("listed", "asked", "places", "missing"),
    [
        ([2, 5, 9], [2, 5, 9], [0, 1, 2], []),
        ([2, 5, 9], [9, 0, 3, 10, 5], [2, None, None, None, 1], [1, 2, 3]),
        ([], [0, 4], [None, None], [0, 1]),
        ([0], [0, 1], [0, None], [1]),
        ([3], [], [], []),
    ],
)
def test_numbers_are_found_among_those_listed_or_said_to_be_missing(
    listed: list[int], asked: list[int], places: list[int | None], missing: list[int]
) -> None:
    found, unlisted = among(numbers(*listed), numbers(*asked))
    assert unlisted.nonzero()[0].tolist() == missing
    assert [None if absent else place for place, absent in zip(found.tolist(), unlisted, strict=True)] == places


def test_a_table_of_listed_combinations_has_these_rows_of_the_table_of_all() -> None:
    keys = public(a=["x", None], b=[3, 1, 2], c=[False, True])
    whole = combinations_table(keys, None).to_pylist()
    assert len(whole) == 12
    listed = numbers(0, 3, 7, 11)
    assert combinations_table(keys, listed).to_pylist() == [whole[cell] for cell in listed]
    assert combinations_table(keys, numbers()).num_rows == 0


def test_keys_of_few_combinations_are_laid_out_once_and_of_many_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_layout, "_MOST_KEPT_CELLS", 6)
    for b, kept in (([1, 2], True), ([1, 2, 3], True), ([1, 2, 3, 4], False)):
        keys = public(a=["x", "y"], b=b)
        table = pa.table({"a": ["x"], "b": [1]})
        first, again = lay_out(table, keys), lay_out(table, keys)
        assert (first.groups.keys is again.groups.keys) is kept
        assert first.groups.keys.equals(again.groups.keys)


# --- private keys ---------------------------------------------------------------------------------------------------


def test_private_groups_are_those_of_the_engine_sorted_with_null_last() -> None:
    seen = [("b", 2), (None, 1), ("a", None), ("b", None), ("a", 9), (None, None), ("a", 1)]
    table = pa.table({"p": [p for p, _ in seen], "q": [q for _, q in seen]})
    layout = lay_out(table, (KeyColumn("p", None), KeyColumn("q", None)))
    assert not layout.groups.public and layout.groups.count == len(seen)
    assert key_rows(layout.groups) == [
        ("a", 1), ("a", 9), ("a", None), ("b", 2), ("b", None), (None, 1), (None, None),
    ]  # fmt: skip
    assert places_in(layout) == seen


def test_a_public_key_beside_a_private_one_keeps_the_order_of_its_values_and_drops_what_is_outside() -> None:
    seen = [("w", 1), ("n", 2), ("s", 1), ("n", 1), (None, 5), ("s", 0)]
    table = pa.table({"region": [region for region, _ in seen], "p": [p for _, p in seen]})
    keys = (*public(region=["s", "n"]), KeyColumn("p", None))
    layout = lay_out(table, keys)
    assert key_rows(layout.groups) == [("s", 0), ("s", 1), ("n", 1), ("n", 2)]
    assert places_in(layout) == [pair if pair[0] in ("s", "n") else None for pair in seen]
    with_null = lay_out(table, (*public(region=[None, "s"]), KeyColumn("p", None)))
    assert key_rows(with_null.groups) == [(None, 5), ("s", 0), ("s", 1)]


def test_the_private_key_may_come_first() -> None:
    table = pa.table({"p": [2, 1, 1, 1], "region": ["s", "n", "s", "w"]})
    layout = lay_out(table, (KeyColumn("p", None), *public(region=["s", "n"])))
    assert key_rows(layout.groups) == [(1, "s"), (1, "n"), (2, "s")]
    assert places_in(layout) == [(2, "s"), (1, "n"), (1, "s"), None]


NAN = float("nan")


@pytest.mark.parametrize(
    ("seen", "ordered"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([1, 3, 2], [1, 2, 3]),
        ([None, 1], [1, None]),
        ([1, None], [1, None]),
        ([2, None, 1], [1, 2, None]),
        ([], []),
        ([None], [None]),
        ([NAN, 1.0], [1.0, NAN]),
        ([None, NAN, float("inf")], [float("inf"), NAN, None]),
    ],
)
def test_one_private_key_is_ascending_whether_or_not_the_engine_sorted(seen: list[Any], ordered: list[Any]) -> None:
    table = pa.table({"p": pa.array(seen, pa.float64())})
    layout = lay_out(table, (KeyColumn("p", None),))
    assert repr(layout.groups.keys.column("p").to_pylist()) == repr(pa.array(ordered, pa.float64()).to_pylist())
    assert repr([layout.groups.keys.column("p")[cell].as_py() for cell in layout.cells]) == repr(table["p"].to_pylist())


def test_later_keys_decide_between_rows_that_are_equal_in_earlier_ones() -> None:
    keys = tuple(KeyColumn(name, None) for name in "pqr")
    for seen in (
        [(1, 2, 0), (1, 1, 0)],
        [(None, 2, 0), (None, 1, 0)],
        [(1, None, 0), (1, 1, 0)],
        [(1, 1, 0), (0, 2, 0)],
        [(1, 1, 1), (0, 1, 2)],
        [(1, 1, 2), (1, 1, 1)],
    ):
        table = pa.table([pa.array([row[index] for row in seen], pa.int64()) for index in range(3)], names=list("pqr"))
        layout = lay_out(table, keys)
        assert key_rows(layout.groups) == seen[::-1] and layout.cells.tolist() == [1, 0]


def test_a_private_key_without_an_order_is_the_engines_mistake() -> None:
    table = pa.table({"p": pa.array([[1], [2]], pa.list_(pa.int64()))})
    refused(table, (KeyColumn("p", None),))


# --- columns --------------------------------------------------------------------------------------------------------


def test_numbers_are_read_into_the_groups_of_their_rows_and_others_are_zero() -> None:
    table = pa.table({"k": pa.array([3, 9, 1], pa.int64()), "n": pa.array([30, 90, 10], pa.int64())})
    layout = lay_out(table, public(k=[1, 2, 3]))
    assert layout.integers(table, "n").to_ints() == [10, 0, 30]


def test_a_column_is_plain_however_the_engine_returns_it() -> None:
    values = ["a", None, "b"]
    chunked = pa.chunked_array([["a"], [None, "b"]])
    encoded = pa.chunked_array([pa.array(values).dictionary_encode()])
    for column in (
        pa.chunked_array([values]),
        chunked,
        encoded,
        pa.chunked_array([encoded.chunk(0)[:1], encoded.chunk(0)[1:]]),
    ):
        plain = plain_column(pa.table({"k": column}), "k")
        assert isinstance(plain, pa.StringArray) and plain.to_pylist() == values
    assert plain_column(pa.table({"k": pa.chunked_array([], pa.int32())}), "k").type == pa.int32()


@pytest.mark.parametrize("names", [["n"], ["k", "k"], ["K"]])
def test_a_column_that_is_missing_or_comes_twice_is_the_engines_mistake(names: list[str]) -> None:
    refused(pa.table([pa.array([1])] * len(names), names=names), public(k=[1]))
