"""Generalisations of columns that make every class large enough, and how much information they keep.

Each column has a ladder of ever coarser levels. A combination of levels is good if at most a given share of the persons is in
classes below k (they would have to be left out). Making any level coarser only merges classes, so any combination coarser than a
good one is good, and any combination finer than a bad one is bad: the lattice is searched by halving (Samarati 2001; OLA, El Emam
et al. 2009), and only the finest good combinations are returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from dpsql.disclosure.report import class_sizes
from dpsql.disclosure.rows import PERSON, PersonRows, quoted
from dpsql.errors.exceptions import refuse

MOST_COMBINATIONS = 20_000
MOST_LEVELS = 6
LEAST_MERGE = 1.3
"""Factor by which a coarser level must have fewer values than the level before it to become a rung of the ladder."""
PERIODS = {
    "date": ("month", "quarter", "year", "decade"),
    "timestamp": ("hour", "day", "month", "quarter", "year", "decade"),
}


@dataclass(frozen=True)
class CoarserValue:
    """One rung of a column's ladder. `sql`: the coarser value, over the column; `entropy`: Shannon entropy of persons' values, in
    nats."""

    words: str
    sql: str
    values: int
    entropy: float


@dataclass(frozen=True)
class Generalisation:
    """Levels that reach a wanted k. `information`: mean share of the columns' entropy that is kept, from 0 to 1 (non-uniform
    entropy, Gionis and Tassa 2009); `left_out`: persons in classes that stay below k; `classes`: number of different combinations
    of values."""

    levels: tuple[tuple[str, str], ...]
    sql: tuple[tuple[str, str], ...]
    information: float
    left_out: int
    classes: int


def generalisations(
    rows: PersonRows, columns: tuple[str, ...], k: int, suppressed: float = 0.0
) -> tuple[Generalisation, ...]:
    """Return the finest generalisations with at most the share `suppressed` of persons in classes below `k`, beginning with the
    one that keeps the most; none if even a single class of all persons is below k. Raises Refusal risk_combinations if the
    ladders have too many combinations."""
    ladders = [ladder(rows, name) for name in columns]
    if math.prod(map(len, ladders)) > MOST_COMBINATIONS:
        raise refuse("risk_combinations", most=MOST_COMBINATIONS)

    def result(combination: tuple[int, ...]) -> Generalisation:
        levels = [steps[step] for steps, step in zip(ladders, combination, strict=True)]
        values = dict(zip(columns, (level.sql for level in levels), strict=True))
        sizes = class_sizes(rows, values)
        shares = [
            level.entropy / steps[0].entropy if steps[0].entropy else 1.0
            for level, steps in zip(levels, ladders, strict=True)
        ]
        words = tuple(zip(columns, (level.words for level in levels), strict=True))
        return Generalisation(words, tuple(values.items()), sum(shares) / len(shares), sizes.below(k), sizes.classes)

    reached: dict[tuple[int, ...], Generalisation] = {}

    def good(combination: tuple[int, ...]) -> bool:
        reached[combination] = result(combination)
        return bool(reached[combination].left_out <= suppressed * rows.persons)

    finest = finest_good([len(steps) for steps in ladders], good)
    return tuple(
        sorted((reached[combination] for combination in finest), key=lambda entry: (-entry.information, entry.levels))
    )


def finest_good(heights: list[int], good: Callable[[tuple[int, ...]], bool]) -> list[tuple[int, ...]]:
    """Return the minimal tuples below `heights` for which `good` holds; `good` must be monotone, and is called for few tuples."""
    nodes = np.array(list(product(*map(range, heights))), dtype=np.int16)
    undecided, height = np.ones(len(nodes), dtype=bool), nodes.sum(axis=1)
    fitting: list[np.ndarray] = []
    while undecided.any():
        waiting = np.flatnonzero(undecided)
        middle = nodes[waiting[np.argsort(height[waiting], kind="stable")[len(waiting) // 2]]]
        if good(tuple(int(step) for step in middle)):
            fitting.append(middle)
            undecided &= ~(nodes >= middle).all(axis=1)
        else:
            undecided &= ~(nodes <= middle).all(axis=1)
    # Every good tuple is above one for which `good` was called, so the minimal ones are among those.
    finest = (node for node in fitting if sum(bool((other <= node).all()) for other in fitting) == 1)
    return [tuple(int(step) for step in node) for node in finest]


def ladder(rows: PersonRows, column: str) -> list[CoarserValue]:
    """Return the levels of a column, from its own values to one value for all, without levels that merge too little
    (`LEAST_MERGE`), and at most `MOST_LEVELS`."""
    steps: list[CoarserValue] = []
    for words, sql in _candidates(rows, column):
        values, entropy = _spread(rows, sql)
        if not steps or values * LEAST_MERGE <= steps[-1].values:
            steps.append(CoarserValue(words, sql, values, entropy))
    if len(steps) > MOST_LEVELS - 1:  # keep the finest, the coarsest and some between
        chosen = {round(step) for step in np.linspace(0, len(steps) - 1, MOST_LEVELS - 1)}
        steps = [level for number, level in enumerate(steps) if number in chosen]
    return [*steps, CoarserValue("not shown", "NULL", 1, 0.0)] if steps[-1].values > 1 else steps


def _spread(rows: PersonRows, sql: str) -> tuple[int, float]:
    counted = f'SELECT COUNT(*) AS n FROM (SELECT DISTINCT {sql} AS v, "{PERSON}" FROM rows) GROUP BY v'
    values, entropy = rows.fetch(
        f"SELECT COUNT(*), -SUM(s * ln(s)) FROM (SELECT n / SUM(n) OVER () AS s FROM ({counted}))"
    )[0]
    return max(values, 1), max(entropy or 0.0, 0.0)


def _candidates(rows: PersonRows, column: str) -> Iterator[tuple[str, str]]:
    name, type_ = quoted(column), rows.columns[column].type
    yield "as it is", name
    if type_ in ("integer", "real"):
        low, high = rows.fetch(f"SELECT MIN({name}), MAX({name}) FROM rows WHERE isfinite({name}::DOUBLE)")[0]
        for smallest, times in _widths(float(low or 0), float(high or 0), whole=type_ == "integer"):
            steps = f"floor(floor({name} / {smallest!r}) / {times})"
            yield f"steps of {smallest * times:g}", f"{steps} * {smallest * times!r}"
    elif type_ == "text":
        longest = rows.fetch(f"SELECT MAX(length({name})) FROM rows")[0][0] or 0
        for length in range(min(longest - 1, 20), 0, -1):
            yield f"first {length} character{'s' * (length > 1)}", f"left({name}, {length})"
    for period in PERIODS.get(type_, ()):
        yield period, f"date_trunc('{period}', {name})"


def _widths(low: float, high: float, whole: bool) -> Iterator[tuple[float, int]]:
    """Yield the widths of nested steps, each a multiple of the one before, from a thousandth of the range to half of it: each as
    the smallest width, and its multiple (1, 5, 10, 50, ...)."""
    if high <= low:
        return
    smallest = 10.0 ** (math.floor(math.log10(high - low)) - 3)
    if whole:
        smallest = max(smallest, 1.0)
    times = 1
    while smallest * times <= (high - low) / 2:
        if not (whole and smallest * times == 1):  # that is the value itself
            yield smallest, times
        times *= 5 if math.log10(times).is_integer() else 2
