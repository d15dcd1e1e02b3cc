"""A second implementation of the samplers, one candidate at a time in exact fractions, from the same random words. Tests only."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from support.noise_laws import Seeded, exact_tails

STEPS = Fraction(1, 1 << 12)
"""Acceptance probabilities of the first coin are multiples of this."""


class Tape:
    """The words that a vectorised draw read, to be read again in the same portions."""

    def __init__(self, seed: str) -> None:
        self._source = Seeded(seed)
        self._read: list[bytes] = []

    def read(self, size: int) -> bytes:
        """Return new bytes and record them."""
        self._read.append(self._source.read(size))
        return self._read[-1]

    def again(self, count: int, bits: int = 64) -> list[int]:
        """Return the next portion, which must have been `count` words of `bits` bits."""
        raw, width = self._read.pop(0), bits // 8
        assert len(raw) == count * width
        return [int.from_bytes(raw[at : at + width], "little") for at in range(0, len(raw), width)]

    @property
    def used_up(self) -> bool:
        """Return whether everything recorded was read again."""
        return not any(self._read)


@dataclass(frozen=True)
class Slow:
    """A law P(y) proportional to exp(-steepness(y)), sampled by blocks of `width` that have weights exp(-level(j)), in exact
    fractions.

    `denominator`: that of the excess, steepness(y) - level(j).
    """

    steepness: Callable[[int], Fraction]
    level: Callable[[int], Fraction]
    width: int
    denominator: int

    def cap(self, j: int) -> Fraction:
        """Return the least multiple of 2**-12 between 2**-12 and 1 that no excess in block j exceeds; at most 1."""
        worst = self.steepness((j + 1) * self.width - 1) - self.level(j)
        return min(Fraction(1), max(STEPS, math.ceil(worst / STEPS) * STEPS))


def laplace(t: int, blocks: int) -> Slow:
    """Return the law of magnitudes with density exp(-y / t)."""
    return Slow(lambda y: Fraction(y, t), lambda j: Fraction(j, blocks), math.ceil(Fraction(t, blocks)), blocks * t)


def gaussian(sigma: int) -> Slow:
    """Return the law of magnitudes with density exp(-y**2 / (2 sigma**2))."""
    fine = 512 * sigma * sigma
    return Slow(lambda y: Fraction(y * y, 2 * sigma**2), lambda j: Fraction(j * j, 512), math.ceil(sigma / 16), fine)


def candidates(size: int, law: Slow, divisor: int, tape: Tape) -> list[int]:
    """Return the accepted values among `size` candidates."""
    both = tape.again(2 * size, 16)
    begins, looks = both[:size], both[size:]
    bits = 32 if 2 * law.width <= 1 << 17 else 64
    places = tape.again(size, bits)
    share = (1 << bits) // (2 * law.width)
    numbers = _inverted(begins, law.level, tape)
    offsets, kept, near, values = [], [], [], []
    for at, (j, place) in enumerate(zip(numbers, places, strict=True)):
        offset, sign = divmod(place // share, 2)
        offsets.append(offset)
        kept.append(place < share * 2 * law.width)
        values.append((j * law.width + offset, sign))
        if kept[at] and Fraction(looks[at], 1 << 16) < law.cap(j):
            near.append(at)
    for at, on in zip(near, _coins([(numbers[at], values[at][0]) for at in near], law, tape), strict=True):
        kept[at] = on
    signed = [(-1 if sign else 1, y // divisor) for y, sign in values]
    return [sign * y for (sign, y), keep in zip(signed, kept, strict=True) if keep and not (sign < 0 and y == 0)]


def _inverted(begins: list[int], level: Callable[[int], Fraction], tape: Tape) -> list[int]:
    """Return for each U with these leading bits how many of P(V >= 1), P(V >= 2), ... exceed it."""
    chances = sorted(math.floor(chance * (1 << 192)) for chance in exact_tails(level, 900)[1:])
    by_bits = {bits: [chance >> 192 - bits for chance in chances] for bits in (16, 64)}

    def above(start: int, bits: int) -> tuple[int, int]:
        """Return that number for the highest and the lowest U with these leading bits: no probability ends after so few bits."""
        ends = by_bits[bits]
        return len(ends) - bisect_right(ends, start), len(ends) - bisect_left(ends, start)

    known = {begin: above(begin, 16) for begin in set(begins)}
    still = [at for at, begin in enumerate(begins) if known[begin][0] != known[begin][1]]
    found = [known[begin][0] for begin in begins]
    for at, word in zip(still, tape.again(len(still)) if still else [], strict=True):
        low, high = above(begins[at] << 48 | word >> 16, 64)
        assert low == high
        found[at] = low
    return found


def _coins(pairs: list[tuple[int, int]], law: Slow, tape: Tape) -> list[bool]:
    """Return for each (j, y) whose first coin succeeded whether it is accepted."""
    excess = [law.steepness(y) - law.level(j) for j, y in pairs]
    rests = [x - math.floor(x) for x in excess]
    first = [rest / law.cap(j) for (j, _), rest in zip(pairs, rests, strict=True)]
    bounds = [int(law.cap(j) / STEPS) * law.denominator for j, _ in pairs]
    on = _tossed(first, bounds, tape)
    found = [not one for one in on]
    left, step = [at for at, one in enumerate(on) if one], 2
    while left:
        on = _tossed([rests[at] / step for at in left], [law.denominator * step] * len(left), tape)
        left, step = [at for at, one in zip(left, on, strict=True) if one], step + 1
        for at in left:
            found[at] = step % 2 == 1
    far = [at for at, x in enumerate(excess) if x >= 1]
    lengths = _inverted(tape.again(len(far), 16), Fraction, tape) if far else []
    for at, length in zip(far, lengths, strict=True):
        found[at] &= length >= math.floor(excess[at])
    return found


def _tossed(chances: list[Fraction], bounds: list[int], tape: Tape) -> list[bool]:
    """Toss coins from words that are uniform below the largest multiple of the bound; draw other words again."""
    ends = [((1 << 64) - 1) // bound * bound for bound in bounds]
    drawn = tape.again(len(chances)) if chances else []
    outside = [at for at, word in enumerate(drawn) if word >= ends[at]]
    while outside:
        for at, word in zip(outside, tape.again(len(outside)), strict=True):
            drawn[at] = word
        outside = [at for at in outside if drawn[at] >= ends[at]]
    return [Fraction(word, end) < chance for word, end, chance in zip(drawn, ends, chances, strict=True)]
