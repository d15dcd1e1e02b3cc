"""The shape of an answer, as data: for each column its ends, what is unknown, what touches a bound, and what its numbers are.

Error bars hold the noise and nothing else. What they do not hold follows from the policy and the text (values beyond a bound
count as the bound), from the mechanism (a quantile is off by rows of rank), and from released numbers (a mean within its bar
of a bound).
`describe` computes it from released numbers, the text and the policy alone. Every door reads it, and writes its sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsql.plan.formulas import plugged_in, terms_of
from dpsql.plan.intervals import Type
from dpsql.privacy.loss import plain_decimal
from dpsql.release.error_bars.answers import Answer, Bars, PlainMeasure, measures_shown
from dpsql.release.error_bars.laws import Floats
from dpsql.release.formulas import numbers
from dpsql.storage.records import dataclass, replace

_WORDS = {"avg": ("mean", "touches its bound {}"), "sum": ("sum", "is near {} for each row")}
"""Aggregates whose numbers are flagged by their bars, the words for them, and for where they are."""
_NEAR = 1e-3
"""Part of a range within which a chosen number touches its end: the cells of quantiles are not points."""


@dataclass(frozen=True)
class Clamp:
    """Values of `value` (SQL) beyond an end of the policy's bounds count as that end in a sum or a choice; None: there is no such
    end. `width`: from the lower to the upper bound of the value."""

    value: str
    lower: Any = None
    upper: Any = None
    width: float = math.inf

    @cached_property
    def sentence(self) -> str:
        """Say what counts as what."""
        ends = (self.lower, self.upper)
        sides = ("before", "after") if any(isinstance(end, date) for end in ends) else ("below", "above")
        texts = [(side, _text(end)) for side, end in zip(sides, ends, strict=True) if end is not None]
        beyond = " or ".join(f"{side} {text}" for side, text in texts)
        return f"values of {self.value} {beyond} count as {' or '.join(text for _, text in texts)}"


def _text(end: Any) -> str:
    if isinstance(end, datetime):
        return end.isoformat(" ")
    return end.isoformat() if isinstance(end, date) else plain_decimal(Fraction(end))


@dataclass(frozen=True)
class RankError:
    """A number that is chosen among values: `aim` says which value it would be exactly, and at most `rows` rows lie between that
    value and the released one."""

    aim: str
    rows: float


@dataclass(frozen=True)
class RowLimit:
    """At most `rows` rows of one privacy unit count, which `words` say in full."""

    rows: int
    words: str


@dataclass(frozen=True)
class MeasureFacts:
    """What the numbers of a measure are, besides noise: a function of policy, text and options. `count`: the measure of the same
    block that counts its rows, or with a `limit` the privacy units that have them; "" if there is none."""

    block: str
    measure: str
    aggregate: str
    clamps: tuple[Clamp, ...] = ()
    rank: RankError | None = None
    count: str = ""
    limit: RowLimit | None = None


@dataclass(frozen=True, eq=False)
class DescribedColumn:
    """One column of an answer, with one entry for each row in its arrays.

    `low`, `high`: ends of the error bar (NULL: unknown, or the column has no noise). `unknown`: noise leaves no information.
    `touches`: 1 where the number touches its upper bound, -1 its lower bound, else 0; `flags` has the words. `rank_error`: the
    rows of rank by which a chosen number may be off. `notes`: what the numbers of the column are, besides noise.
    """

    name: str
    type: Type
    noisy: bool
    low: pa.ChunkedArray
    high: pa.ChunkedArray
    unknown: npt.NDArray[np.bool_]
    touches: npt.NDArray[np.int8]
    words: tuple[str, str] = ("", "")
    rank_error: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def flags(self) -> list[str]:
        """The bound that each number touches, in words; "" for none."""
        return [("", *self.words)[side] for side in self.touches]  # 1: above, -1: below


def bar_names(name: str) -> tuple[str, str]:
    """Return the names of the columns that hold the ends of a noisy column's error bars."""
    return f"{name}_low", f"{name}_high"


def with_bars(table: pa.Table, low: pa.Table, high: pa.Table, noisy: Sequence[bool]) -> pa.Table:
    """Return the rows of an answer in which each noisy column is followed by those of the ends of its error bars."""
    columns, names = list[pa.ChunkedArray](), list[str]()
    for position, name in enumerate(table.column_names):
        columns.append(table.column(position))
        names.append(name)
        if noisy[position]:
            columns += (low.column(position), high.column(position))
            names += bar_names(name)
    return pa.Table.from_arrays(columns, names=names)


def describe(
    names: Sequence[tuple[str, Type, bool]], answered: Answer, bars: Bars, facts: Sequence[MeasureFacts]
) -> tuple[DescribedColumn, ...]:
    """Return the columns of an answer. `names`: name, type and noisiness of each."""
    described = []
    for position, (name, type_, noisy) in enumerate(names):
        unknown = np.asarray(bars.unknown.column(position).to_numpy(), dtype=bool)
        ends = bars.low.column(position), bars.high.column(position)
        described.append(DescribedColumn(name, type_, noisy, *ends, unknown, np.zeros(len(unknown), dtype=np.int8)))
    measured = {(entry.block, entry.measure): entry for entry in facts} if any(noisy for _, _, noisy in names) else {}
    for position, measures in enumerate(measures_shown(answered) if measured else ()):
        read = [fact for measure in measures if (fact := measured.get((measure.block.name, measure.name)))]
        fact = _together(read) if len(read) == len(measures) else None
        if fact is not None:
            counted = _counted(measures[0], fact, answered.confidence)
            column = _ranked(described[position], fact, counted, answered.confidence)
            described[position] = _flagged(column, fact, counted, answered.table.column(position))
    return tuple(described)


def _together(facts: Sequence[MeasureFacts]) -> MeasureFacts | None:
    """Return the facts of a measure, or those of a list of chosen numbers: none of them is farther off than the farthest."""
    ranks = [fact.rank for fact in facts if fact.rank is not None]
    if len(facts) < 2 or len(ranks) < len(facts):
        return facts[0] if len(facts) == 1 else None
    aims = f"each of {', '.join(rank.aim for rank in ranks[:-1])} and {ranks[-1].aim}"
    return replace(facts[0], rank=RankError(aims, max(rank.rows for rank in ranks)))


Counted = tuple[Floats, float]
"""The noisy number of rows of each row's group, and the half width of its error bar."""


def _counted(measure: PlainMeasure, fact: MeasureFacts, confidence: float) -> Counted | None:
    block = measure.block
    formula = next((plugged_in(formula) for name, formula, _ in block.formulas if name == fact.count), None)
    if formula is None:
        return None
    terms = {term.name: np.asarray(term.values, dtype=np.float64) for term in block.terms}
    values = np.broadcast_to(numbers(formula, terms), block.rows)[measure.rows]
    used = terms_of(formula)
    return values, sum(term.half_width(confidence) for term in block.terms if term.name in used)


def _ranked(column: DescribedColumn, fact: MeasureFacts, counted: Counted | None, confidence: float) -> DescribedColumn:
    """Return the column with the facts of its measure. A number that may be off by more rows than there are is unknown."""
    clamps = tuple(clamp.sentence for clamp in fact.clamps)
    if fact.rank is None:
        return replace(column, notes=clamps)
    off = fact.rank.rows
    how = "or one that at most {} fewer have" if fact.aggregate == "mode" else "or a value at most {} away in rank"
    note = f"{fact.rank.aim}, {how.format(rows_text(off))}, in {confidence * 100:g} % of cases"
    unknown = column.unknown if counted is None else column.unknown | (counted[0] < off)
    return replace(column, unknown=unknown, notes=(note, *clamps), rank_error=off)


def _flagged(
    column: DescribedColumn, fact: MeasureFacts, counted: Counted | None, values: pa.ChunkedArray
) -> DescribedColumn:
    """Return the column with a flag for each number that touches a bound of its only argument."""
    numeric = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    if fact.limit is not None:
        return _limited(column, fact.limit, counted, values) if numeric and counted is not None else column
    # Of MODE nothing is said: the first or last value is often the most frequent one.
    is_held_back = fact.aggregate in _WORDS or (fact.rank is not None and fact.aggregate != "mode")
    if len(fact.clamps) != 1 or not numeric or not is_held_back:
        return column
    (clamp,) = fact.clamps
    word, near = _WORDS.get(fact.aggregate, ("value", "touches its bound {}"))
    number, low, high = map(_floats, (values, column.low, column.high))
    touches, words = column.touches, ["", ""]
    for side, bound, where in ((1, clamp.upper, "above"), (-1, clamp.lower, "below")):
        if not isinstance(bound, (int, float, Fraction)):
            continue
        with np.errstate(invalid="ignore"):
            reached = _reached(fact, clamp.width, side, float(bound), (number, low, high), counted)
        touches = np.where((touches == 0) & reached & ~column.unknown, side, touches).astype(np.int8)
        if reached.any():
            words[side < 0] = f"{near.format(_text(bound))}: the true {word} may be far {where}"
    return replace(column, touches=touches, words=(words[0], words[1]))


def _limited(column: DescribedColumn, limit: RowLimit, units: Counted, values: pa.ChunkedArray) -> DescribedColumn:
    """Return the column with a flag for each number of rows that is as large as the limit of rows allows for that many units."""
    bar = _floats(values), _floats(column.low), _floats(column.high)
    with np.errstate(invalid="ignore"):
        reached = _fills(1, float(limit.rows), bar, units) & ~column.unknown
    words = f"is near {limit.words}: the true number may be far above"
    return replace(column, touches=np.where(reached, 1, column.touches).astype(np.int8), words=(words, ""))


def _reached(
    fact: MeasureFacts,
    width: float,
    side: int,
    bound: float,
    bar: tuple[Floats, Floats, Floats],
    counted: Counted | None,
) -> Any:
    """Return where noise alone may keep a number from its bound: a mean within its bar of it, a sum within the bars of itself
    and of its rows of the bound times these rows, a chosen number at the bound itself. Bars so wide that they would say so of
    any number say nothing."""
    number, low, high = bar
    if fact.rank is not None:
        return side * (number - bound) >= -_NEAR * width
    end = high if side > 0 else low
    if fact.aggregate == "avg":
        return (high - low <= width) & (side * (end - bound) >= 0)
    if counted is None:
        return np.zeros(len(number), dtype=bool)
    return _fills(side, bound, bar, counted)


def _fills(side: int, bound: float, bar: tuple[Floats, Floats, Floats], counted: Counted) -> Any:
    """Return where a sum lies within the bars of itself and of the noisy number of its summands of `bound` times that number."""
    _, low, high = bar
    end = high if side > 0 else low
    rows, off = counted
    slack = abs(bound) * off
    return (rows > off) & (2 * slack + high - low <= abs(bound * rows)) & (side * (end - bound * rows) >= -slack)


def _floats(values: pa.ChunkedArray) -> Floats:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def rows_text(rows: float) -> str:
    """Return a number of rows of rank, rounded up."""
    count = math.ceil(rows)
    return f"{count:,} row{'' if count == 1 else 's'}"


def sentences(columns: Sequence[DescribedColumn]) -> tuple[str, ...]:
    """Return what to say next to an answer: numbers that touch a bound, and how far chosen numbers may be off."""
    lines = []
    for column in columns:
        count = len(column.unknown)
        for side in (1, -1):
            if rows := int((column.touches == side).sum()):
                lines.append(f"{column.name}{_where(rows, count)} {('', *column.words)[side]}")
        if column.rank_error is not None and count:
            lines.append(f"{column.name}: {column.notes[0]}")
            if rows := int(column.unknown.sum()):
                lines.append(
                    f"{column.name} is unknown{_where(rows, count)}: it may be off by more rows than there are"
                )
    return tuple(lines)


def cases_text(columns: Sequence[DescribedColumn], confidence: float) -> str:
    """Return in how many cases the errors of an answer are as shown, as the end of a line; "" if it shows no error."""
    shows = any(c.low.null_count < len(c.low) or (c.rank_error is not None and len(c.low)) for c in columns)
    return f"; error bars hold in {confidence * 100:g} % of cases" if shows else ""


def _where(rows: int, count: int) -> str:
    return "" if count == 1 else f" in {rows} of {count} rows"
