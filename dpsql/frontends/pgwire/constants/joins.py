"""Joins: the order in which the rows of sources are joined, and how.

A row has the width of all sources from the beginning; each source fills its own places. So sources are joined in the order that
makes the fewest rows, by equal values where a condition names some, whatever the order of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from dpsql.frontends.pgwire.constants import bounds
from dpsql.frontends.pgwire.constants.compile import Row
from dpsql.frontends.pgwire.constants.query_syntax import limited

Rows = Callable[[Row], Iterable[tuple[Any, ...]]]
"""The rows of a source for a row."""


@dataclass(slots=True)
class Test:
    """A condition: its value for a row, the columns of this question and whether it reads others; for an equality of values that
    can be looked up both sides, each with its columns."""

    run: Callable[[Row], Any]
    reads: frozenset[int]
    outer: bool
    sides: tuple[tuple[Callable[[Row], Any], frozenset[int], bool], ...] = ()


@dataclass(slots=True)
class JoinStep:
    """A source in a join: the rows that it has for a row, its places, of which kind the join is, and its conditions. `reads`: the
    columns that its rows depend on; `fixed`: they depend on nothing."""

    rows: Rows
    start: int
    stop: int
    fixed: bool
    reads: frozenset[int] = frozenset()
    kind: str = "inner"
    tests: list[Test] = field(default_factory=list)


def ordered_steps(steps: list[JoinStep], free: list[Test], base: int) -> list[Callable[[list[Row]], list[Row]]]:
    """Return the steps of a join in the order that makes few rows, as functions of rows. `free`: the conditions that are tested
    as soon as their columns are there."""
    remaining, tests, placed, plan = list(steps), list(free), set[int](), list[Any]()
    local: dict[int, list[Test]] = {id(step): [] for step in steps}
    for step in steps:
        span = frozenset(range(step.start, step.stop))
        if step.kind == "inner" and step.fixed:
            mine = [test for test in tests if test.reads and test.reads <= span and not test.outer]
            tests = [test for test in tests if not any(test is other for other in mine)]
            local[id(step)] = mine
    sizes = dict[int, int]()
    prepared = dict[int, Any]()
    for step in steps:
        if step.fixed:
            prepared[id(step)] = _Fixed(step, base, local[id(step)])
    first = [test for test in tests if not test.reads]
    tests = [test for test in tests if test.reads]
    if first:
        plan.append(_filter(first))
    while remaining:
        step = min(enumerate(remaining), key=lambda pair: (*_cost(pair[1], placed, tests, prepared, sizes), pair[0]))[1]
        remaining.remove(step)
        span = frozenset(range(step.start, step.stop))
        before = set(placed)
        placed |= span
        ready = [test for test in tests if test.reads <= placed]
        tests = [test for test in tests if not test.reads <= placed]
        if step.kind == "left":
            plan.append(_extend(step, base, step.tests, before, prepared.get(id(step))))
            if ready:
                plan.append(_filter(ready))
        else:
            plan.append(_extend(step, base, ready, before, prepared.get(id(step))))
    return plan


def _cost(
    step: JoinStep, placed: set[int], tests: list[Test], prepared: dict[int, Any], sizes: dict[int, int]
) -> tuple[int, int]:
    """Return how late a source is joined: what is not ready last, outer joins late, and what no equality connects late."""
    span = frozenset(range(step.start, step.stop))
    if not step.reads <= placed:
        return 9, 0
    if step.kind == "left":
        needed = frozenset().union(*(test.reads for test in step.tests)) - span
        return (3, 0) if needed <= placed and placed else (8, 0)
    if not step.fixed:
        return (2, 0)
    if id(step) not in sizes:
        sizes[id(step)] = len(prepared[id(step)].rows())
    size = sizes[id(step)]
    if any(_key(test, span, placed) is not None for test in tests):
        return 1, size
    return (1, size) if size < 2 else (2 if not placed else 4, size)


def _key(test: Test, span: frozenset[int], placed: set[int]) -> tuple[Any, Any] | None:
    """Return the value of a source's row and that of the rows before it which must be equal."""
    for (run, reads, outer), (other, further, _) in (test.sides, test.sides[::-1]) if test.sides else ():
        if reads and reads <= span and not outer and not (further & span) and further <= placed:
            return run, other
    return None


class _Fixed:
    """The rows of a source that depend on nothing, less those that its own conditions exclude, once they are needed."""

    def __init__(self, step: JoinStep, base: int, local: list[Test]) -> None:
        self._step, self._base, self._tests = step, base, local
        self._rows: list[tuple[Any, ...]] | None = None
        self.maps = dict[Any, dict[Any, list[tuple[Any, ...]]]]()

    def rows(self) -> list[tuple[Any, ...]]:
        if self._rows is None:
            head = (None,) * (self._base + self._step.start)
            rows = self._step.rows(head)
            if self._tests:
                runs = [test.run for test in self._tests]
                rows = [
                    tail
                    for tail in bounds.counted(rows)
                    if (whole := (*head, *tail)) and all(run(whole) is True for run in runs)
                ]
            self._rows = limited(list(rows))
        return self._rows

    def by(self, runs: tuple[Callable[[Row], Any], ...]) -> dict[Any, list[tuple[Any, ...]]]:
        """Return the rows by the values of some of their expressions, none of which is NULL."""
        if runs not in self.maps:
            head, rows = (None,) * (self._base + self._step.start), dict[Any, list[tuple[Any, ...]]]()
            for tail in bounds.counted(self.rows()):
                whole = (*head, *tail)
                key = tuple(run(whole) for run in runs)
                if None not in key:
                    rows.setdefault(key, []).append(tail)
            self.maps[runs] = rows
        return self.maps[runs]


def _filter(tests: list[Test]) -> Callable[[list[Row]], list[Row]]:
    runs = [test.run for test in tests]

    def prepared(row: Row) -> bool:
        bounds.step()
        return all(run(row) is True for run in runs)

    return lambda rows: list(filter(prepared, rows))


def _extend(
    step: JoinStep, base: int, tests: list[Test], placed: set[int], fixed: _Fixed | None
) -> Callable[[list[Row]], list[Row]]:
    """Return the function that lengthens rows by those of a source whose conditions are true."""
    span, start, stop = frozenset(range(step.start, step.stop)), base + step.start, base + step.stop
    keys = [(key, test) for test in tests if (key := _key(test, span, placed)) is not None] if fixed is not None else []
    keyed = {id(test) for _, test in keys}
    runs = [test for test in tests if id(test) not in keyed]
    keep = _filter(runs)
    ours, theirs = tuple(key[0] for key, _ in keys), [key[1] for key, _ in keys]
    is_left, blank = step.kind == "left", (None,) * (stop - start)

    def extend(rows: list[Row]) -> list[Row]:
        longer = list[Row]()
        for row in rows:
            head, rest = row[:start], row[stop:]
            if fixed is None:
                tails = step.rows(head)
            elif ours:
                key = tuple(run(row) for run in theirs)
                tails = () if None in key else fixed.by(ours).get(key, ())
            else:
                tails = fixed.rows()
            wholes: list[Row] = [(*head, *tail, *rest) for tail in tails]
            if runs:
                wholes = keep(wholes)
            longer += wholes if wholes or not is_left else [row if row[start:stop] == blank else (*head, *blank, *rest)]
            limited(longer)
        return longer

    return extend
