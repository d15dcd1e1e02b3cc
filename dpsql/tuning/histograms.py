"""Private histograms of what one unit contributes: rows, groups, and the total of a summed value, as one question.

Each is an ordinary private block over a per-unit aggregation of the rows that the tuned question reads: one row for each unit,
counted in public bins that double in width. A unit is in one bin of each histogram, so each has sensitivity 1, whatever its rows
(privacy.md 3 and 4). The blocks are priced, reserved, measured and stored like those of any question.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpsql.aggregates.contract import SharedPart
from dpsql.aggregates.registry import aggregate_of
from dpsql.functions.public_domains import domain_of
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Block, Column, Expr, Filter, Key, Literal, Measure, Plan, Relation, UnitAggregate
from dpsql.sql.parser import parse_text

DOUBLINGS = 20
"""Bins of totals reach from 2**-20 to at most 2**20 times the largest value of one row."""
MOST_LISTED = 1_000


@dataclass(frozen=True)
class Summed:
    """The summed expression and filter of a SUM or AVG of the tuned question."""

    value: Expr
    filter: Expr | None


@dataclass(frozen=True)
class Histogram:
    """One histogram. `counted`: "rows", "groups" or "total"; bin i contains the units above `edges[i - 1]` (0 for the first bin)
    and up to `edges[i]`."""

    counted: str
    edges: tuple[Fraction, ...]
    summed: Summed | None = None


def sums_of(block: Block) -> tuple[Summed, ...]:
    """Return the distinct summed expressions of SUM and AVG in a block."""
    summed = [
        Summed(measure.arguments[0], measure.filter)
        for measure in block.measures
        if SharedPart.SUM in (aggregate_of(measure.aggregate).shared or SharedPart(0)) and not measure.distinct
    ]
    return tuple(dict.fromkeys(part for part in summed if _largest(part.value) > 0))


def histograms_of(block: Block, rows: int) -> tuple[Histogram, ...]:
    """Return the histograms to measure for a block whose units have at most `rows` rows: rows, groups (with keys), totals."""
    counts = tuple(Fraction(2**index) for index in range((rows - 1).bit_length() + 1))
    histograms = [Histogram("rows", counts)]
    if block.keys:
        histograms.append(Histogram("groups", counts))
    for summed in sums_of(block):
        largest = Fraction(float(_largest(summed.value)))
        steps = range(-DOUBLINGS, min(DOUBLINGS, len(counts) - 1) + 1)
        histograms.append(Histogram("total", tuple(largest * Fraction(2) ** step for step in steps), summed))
    return tuple(histograms)


def histogram_plan(sql: str, block: Block, histograms: tuple[Histogram, ...], rows: int) -> Plan:
    """Return one plan for all histograms; its rows are (histogram number, bin, noisy count of units), in ascending order."""
    units = _units(block, histograms, rows)
    blocks, selects = [], []
    for index, histogram in enumerate(histograms):
        key = _bin(Column(_name(histogram, index), _facts(histogram, rows)), histogram.edges)
        counted = Measure("m0", "count", (), False, None)
        blocks.append(Block(f"dp_{index}", units, (Key("k0", key, domain_of(key)),), (counted,)))
        selects.append(f'SELECT {index} AS histogram, "k0" AS bin, "m0" AS units FROM dp_{index}')
    remainder = parse_text(" UNION ALL ".join(selects) + " ORDER BY 1, 2")
    return Plan(sql, tuple(blocks), (), remainder, ("histogram", "bin", "units"))  # type: ignore[arg-type]


def _units(block: Block, histograms: tuple[Histogram, ...], rows: int) -> Relation:
    """Return a relation with one row for each unit: its number of groups, its number of rows, and the sum over groups of
    |sum|."""
    whole = Facts(Type.INTEGER, Fraction(1), Fraction(rows), nullable=False)
    columns: list[tuple[str, str, Expr | None, Expr | None, Facts]] = [("n", "count", None, None, whole)]
    totals: list[tuple[str, str, Expr | None, Expr | None, Facts]] = [
        ("groups", "count", None, None, whole),
        ("rows", "sum", Column("n", whole), None, whole),
    ]
    for index, histogram in enumerate(histograms):
        if histogram.summed is not None:
            most = Fraction(float(_largest(histogram.summed.value))) * rows
            sums = Facts(Type.REAL, -most, most)
            value = call("to_real", histogram.summed.value)
            columns.append((f"s{index}", "sum", value, histogram.summed.filter, sums))
            size = call("abs", Column(f"s{index}", sums))
            totals.append((_name(histogram, index), "sum", size, None, _facts(histogram, rows)))
    keys = tuple((f"g{index}", key.expression) for index, key in enumerate(block.keys))
    return UnitAggregate(UnitAggregate(_inside(block), keys, tuple(columns)), (), tuple(totals))


def _inside(block: Block) -> Relation:
    """Return the rows in groups of the answer; public keys with a long domain, or one of truth values or reals, are ignored."""
    relation = block.source
    for key in block.keys:
        if key.values is None or not len(key.values) <= MOST_LISTED:
            continue
        values = [value for value in key.values if value is not None]
        if not any(isinstance(value, (bool, float)) for value in values):
            listed = [Literal(value, literal_facts(value)) for value in values]
            inside = call("in", key.expression, *listed) if listed else Literal(False, literal_facts(False))
            missing = call("is_null", key.expression)
            relation = Filter(relation, call("or", inside, missing) if None in key.values else inside)
    return relation


def _bin(value: Expr, edges: tuple[Fraction, ...]) -> Expr:
    """Return the number of a value's bin; larger values fall into the last bin, NULL (a unit without values) into the first."""
    cases: list[Expr] = [call("is_null", value), _number(0)]
    for index, edge in enumerate(edges[:-1]):
        last = int(edge) if value.facts.type is Type.INTEGER else edge
        cases += [call("le", value, Literal(last, literal_facts(last))), _number(index)]
    return call("case", *cases, _number(len(edges) - 1))


def _number(value: int) -> Literal:
    return Literal(value, literal_facts(value))


def _name(histogram: Histogram, index: int) -> str:
    return f"total{index}" if histogram.summed is not None else histogram.counted


def _facts(histogram: Histogram, rows: int) -> Facts:
    if histogram.summed is None:
        return Facts(Type.INTEGER, Fraction(1), Fraction(rows), nullable=False)
    return Facts(Type.REAL, Fraction(0), Fraction(float(_largest(histogram.summed.value))) * rows)


def _largest(value: Expr) -> Fraction:
    """Return the largest absolute value that one row can have."""
    return max(abs(Fraction(value.facts.lower)), abs(Fraction(value.facts.upper)))


def middle(histogram: Histogram, index: int) -> float:
    """Return the typical size of a unit in a bin: the mean of a log-uniform distribution over the bin."""
    high = float(histogram.edges[index])
    low = float(histogram.edges[index - 1]) if index else high / 2
    if histogram.counted != "total":
        low, high = (low + 0.5 if index else 0.5), high + 0.5
        return float(histogram.edges[index]) if high - low <= 1 else (high - low) / math.log(high / low)
    return (high - low) / math.log(high / low)
