"""Inversion reads as many bits as it needs, and returns the number that the complete U determines."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support.noise_laws import Scripted, exact_tails

from dpsql.errors.exceptions import Fault
from dpsql.noise.samplers import KernelRandomness, tail_edges, tails, words

TOP = (1 << 64) - 1
LAWS = [(Fraction(1, blocks), Fraction(0)) for blocks in (1, 2, 4, 8, 16)] + [(Fraction(0), Fraction(1, 512))]
"""All laws that the samplers use."""


def definition(linear: Fraction, square: Fraction, count: int) -> list[Decimal]:
    """Return P(V >= v) for v = 0..count-1."""
    return exact_tails(lambda v: linear * v + square * v * v, count)


@pytest.mark.parametrize(("linear", "square"), LAWS)
@pytest.mark.parametrize("bits", [64, 192])
def test_edges_are_the_chances_to_the_last_bit(linear: Fraction, square: Fraction, bits: int) -> None:
    edges = tail_edges(linear, square, bits)
    assert edges[0] == 0 < edges[1]
    with localcontext(Context(prec=150)):
        expected = [math.floor(one * (1 << bits)) for one in definition(linear, square, len(edges) + 1)]
    assert list(reversed(edges)) == expected[1:]


@pytest.mark.parametrize(("linear", "square"), LAWS)
def test_sixteen_bits_decide_what_they_can(linear: Fraction, square: Fraction) -> None:
    """For every 16-bit prefix: the numbers at both ends of its continuations; undecided exactly where they differ."""
    law, edges = tails(linear, square), np.array(tail_edges(linear, square, 64), dtype=np.uint64)
    begins = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
    highest = edges.size - edges.searchsorted(begins, side="left")
    lowest = edges.size - edges.searchsorted(begins | np.uint64((1 << 48) - 1), side="right")
    closed = law.first < (1 << 16) - 1
    assert (closed == (highest == lowest)).all()
    assert (law.first[closed] == lowest[closed]).all()
    assert closed.mean() > 0.99


@pytest.mark.parametrize(("linear", "square"), LAWS)
def test_what_is_open_is_read_further(linear: Fraction, square: Fraction) -> None:
    """Both sides of each edge, at the 64th bit and at the last of the 192; equality in all bits raises."""
    law, short, long = tails(linear, square), tail_edges(linear, square, 64), tail_edges(linear, square, 192)

    def drawn(number: int, *more: int) -> int:
        script = Scripted([number << 16 & TOP, *more])
        return int(law.draw(np.array([number >> 48], dtype=np.uint16), script)[0])

    for v, edge in enumerate(reversed(short[1:]), 1):
        assert law.first[edge >> 48] == (1 << 16) - 1
        for beside in (edge + 1, edge - 1):
            if beside not in short and beside >> 48 == edge >> 48:
                assert drawn(beside) == sum(one > beside for one in short)
        first, *rest = long[-v] >> 128, long[-v] >> 64 & TOP, long[-v] & TOP
        assert first == edge
        assert drawn(edge, rest[0], rest[1] - 1) == v
        assert drawn(edge, rest[0], rest[1] + 1) == v - 1
        if v % 50 == 1:
            with pytest.raises(Fault) as caught:
                drawn(edge, *rest)
            assert caught.value.slug == "noise_guard"
    assert drawn(0, TOP, TOP) == len(short) - 1


@pytest.mark.parametrize(("linear", "square"), LAWS)
def test_numbers_have_their_law(linear: Fraction, square: Fraction) -> None:
    size = 400_000
    found = tails(linear, square).draw(words(size, KernelRandomness(), 16), KernelRandomness())
    chances = [float(one) for one in definition(linear, square, 200)]
    shares = -np.diff(chances)
    enough = int((shares * size > 20).sum())
    counts = np.bincount(found, minlength=enough)
    observed = [*counts[:enough], counts[enough:].sum()]
    expected = np.array([*shares[:enough], chances[enough]]) * size
    assert stats.chisquare(observed, expected).pvalue > 1e-9
