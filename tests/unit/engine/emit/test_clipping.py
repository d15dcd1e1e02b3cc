"""Shares of units are the largest that keep their sums within the norm, whether rows are filtered, missing or of one sign."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import pyarrow as pa
import pytest
from support.plain_duckdb import plain_duckdb

from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.engine.emit.clipping import Grouped, RowTerm, clipped_total, share_name, shared_sum, shares
from dpsql.errors.exceptions import Error
from dpsql.plan.plan import Clip, Term, TermKind
from dpsql.privacy.mechanisms.contract import Norm

Row = tuple[str, int, int | None, bool | None]
"""Group, unit, integer, whether the row passes a filter."""
MIXED: list[Row] = [
    ("a", 1, 5, True), ("a", 1, 4, False), ("b", 1, -3, True), ("b", 1, None, True), ("a", 2, 1, True),
    ("b", 2, -1, None), ("a", 3, 30, True), ("a", 3, -30, True), ("b", 3, 8, True), ("b", 4, None, True),
    ("c", 5, -12, True), ("c", 5, 5, False),
]  # fmt: skip
POSITIVE = [(group, unit, value and abs(value), passes) for group, unit, value, passes in MIXED]
NEGATIVE = [(group, unit, value and -abs(value), passes) for group, unit, value, passes in MIXED]
SIGNS = {"mixed": (MIXED, -30, 30), "positive": (POSITIVE, 0, 30), "negative": (NEGATIVE, -30, 0)}
FINER = 4


def clipped_term(kind: TermKind, most: int, norm: Norm | None, low: int = 0, high: int = 30, centre: int = 0) -> Term:
    clip = Clip(most, norm)
    return Term("t0", kind, None, None, 1, FINER, low, high, centre, clip=clip, finer=FINER)


def added(rows: list[Row], kind: TermKind, *, filtered: bool, present: bool) -> dict[int, dict[str, int]]:
    """Return what each unit adds to each group before clipping."""
    vectors: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for group, unit, value, passes in rows:
        if (filtered and not passes) or (present and value is None):
            continue
        vectors[unit][group] += 1 if kind is TermKind.COUNT else value or 0
    return vectors


def scaled(vectors: dict[int, dict[str, int]], most: int, norm: Norm) -> dict[str, int]:
    """Return the definition's result: each unit times the largest multiple of 2**-FINER at which its norm is at most `most`."""
    total: dict[str, int] = defaultdict(int)
    for vector in vectors.values():
        size = sum(map(abs, vector.values())) if norm is Norm.L1 else math.sqrt(sum(v * v for v in vector.values()))
        share = max((share for share in range(2**FINER + 1) if share * size <= most), default=0)
        for group, value in vector.items():
            total[group] += share * value
    return total


def emitted(rows: list[Row], clipped: RowTerm) -> tuple[dict[str, int], bool]:
    connection = plain_duckdb()
    types = (pa.string(), pa.int64(), pa.int64(), pa.bool_())
    columns = [pa.array([row[place] for row in rows], type_) for place, type_ in enumerate(types)]
    connection.register("r", pa.table(columns, ["k0", "unit", "v", "passes"]))
    by_unit, every = shares(Grouped("r", ("k0",), "unit"), (clipped,), DUCKDB)
    text = f"SELECT k0, {shared_sum(clipped, DUCKDB)} FROM r LEFT JOIN ({by_unit}) USING (unit) GROUP BY k0"
    return dict(connection.execute(text).fetchall()), every


@pytest.mark.parametrize("signs", SIGNS)
@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("condition", ["", "passes"])
@pytest.mark.parametrize("most", [0, 1, 40, 100, 192, 10_000])
def test_sums_of_units_are_scaled_to_the_norm(signs: str, norm: Norm, condition: str, most: int) -> None:
    rows, low, high = SIGNS[signs]
    clipped = RowTerm(clipped_term(TermKind.SUM, most, norm, low, high), "v", condition)
    answer, every = emitted(rows, clipped)
    expected = scaled(added(rows, TermKind.SUM, filtered=bool(condition), present=False), most, norm)
    assert answer == {group: expected.get(group, 0) for group in "abc"}
    assert every is (norm is Norm.L1 and signs != "mixed")


@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("condition", ["", "passes"])
@pytest.mark.parametrize("row", ["", "v"])
@pytest.mark.parametrize("most", [1, 16, 33, 1_000])
def test_counts_of_units_are_scaled_to_the_norm(norm: Norm, condition: str, row: str, most: int) -> None:
    answer, every = emitted(MIXED, RowTerm(clipped_term(TermKind.COUNT, most, norm), row, condition))
    expected = scaled(added(MIXED, TermKind.COUNT, filtered=bool(condition), present=bool(row)), most, norm)
    assert answer == {group: expected.get(group, 0) for group in "abc"}
    assert every is (norm is Norm.L1)


@pytest.mark.parametrize(
    ("low", "high", "centre", "every"),
    [(0, 9, 0, True), (-9, 0, 0, True), (-1, 9, 0, False), (3, 9, 3, True), (3, 9, 9, True), (3, 9, 4, False)],
)
def test_the_sign_is_that_around_the_centre(low: int, high: int, centre: int, every: bool) -> None:
    clipped = RowTerm(clipped_term(TermKind.SUM, 5, Norm.L1, low, high, centre), "v", "")
    assert shares(Grouped("r", ("k0",), "unit"), (clipped,), DUCKDB)[1] is every


def test_several_terms_have_their_shares_side_by_side() -> None:
    """A term whose norm needs its groups makes all terms use theirs; units within every bound are left out."""
    total, count = (
        clipped_term(TermKind.SUM, 16 * 20, Norm.L2, -30, 30),
        clipped_term(TermKind.COUNT, 16 * 2, Norm.L1),
    )
    both = (RowTerm(total, "v", ""), RowTerm(replace(count, name="t1"), "", ""))
    connection = plain_duckdb()
    connection.register(
        "r", pa.table([pa.array([row[place] for row in MIXED]) for place in range(3)], ["k0", "unit", "v"])
    )
    text, every = shares(Grouped("r", ("k0",), "unit"), both, DUCKDB)
    by_unit = {row[0]: row[1:] for row in connection.execute(text).fetchall()}
    # Unit 1 has 4 rows and sums 9 and -3; unit 3 has 3 rows and sums 0 and 8: both have too many rows.
    assert every is False and by_unit == {1: (16, 8), 3: (16, 10)}
    assert [share_name(item.term) for item in both] == ['"share.t0"', '"share.t1"']


# --- without keys -----------------------------------------------------------------------------------------------------


def test_without_keys_each_term_is_a_sum_over_units() -> None:
    """UNITS and unclipped sums are unchanged; others are clamped at both ends of what a unit may add."""
    cut = clipped_term(TermKind.SUM, 7, Norm.L2, -30, 30)
    whole = Term("t1", TermKind.SUM, None, None, 1)
    units = Term("t2", TermKind.UNITS, None, None, 1)
    counted = Term("t3", TermKind.COUNT, None, None, 1, clip=Clip(2, Norm.L1))
    connection = plain_duckdb()
    rows = "SELECT * FROM (VALUES (1, 20, true), (1, 5, true), (2, -40, false), (3, 4, true), (3, 1, true), (3, 1, true)) AS t(u, v, p)"
    terms = ((cut, "sum(v)"), (whole, "sum(v)"), (units, "count(*) FILTER (WHERE p)"), (counted, "count(*)"))
    text = clipped_total(Grouped(rows, (), "u"), terms, DUCKDB)
    assert connection.execute(text).fetchall() == [(7 - 7 + 6, 25 - 40 + 6, 2, 2 + 1 + 2)]
    empty = clipped_total(Grouped(f"{rows} WHERE false", (), "u"), terms, DUCKDB)
    assert connection.execute(empty).fetchall() == [(0, 0, 0, 0)]


@pytest.mark.parametrize("clip", [None, Clip(5)])
def test_a_clip_without_a_norm_is_an_error_of_ours(clip: Clip | None) -> None:
    term = Term("t0", TermKind.SUM, None, None, 1, clip=clip)
    with pytest.raises(Error) as refused:
        shares(Grouped("r", ("k0",), "unit"), (RowTerm(term, "v", ""),), DUCKDB)
    assert refused.value.slug == "internal"


def test_a_sum_without_a_clip_may_be_beyond_64_bits() -> None:
    term = Term("t0", TermKind.SUM, None, None, 1)
    rows = f"SELECT * FROM (VALUES {', '.join([f'(1, {2**62})'] * 4)}) AS t(u, v)"
    text = clipped_total(Grouped(rows, (), "u"), ((term, "sum(v)"),), DUCKDB)
    assert plain_duckdb().execute(text).fetchall() == [(2**64,)]
