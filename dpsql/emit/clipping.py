"""Clipping as text: a unit's sums over all groups are scaled down to a norm, instead of rows being dropped (privacy.md 4).

Three steps: the sums v of each (unit, group); the norm of each unit; the sums of the clipped v over all units. All in
128-bit integers, whose bounds are those of `basis`: |v| <= 2**62, sum of v**2 <= 2**124, C < 2**62.

- L1: with n = sum of |v| > C, v becomes sign(v) floor(|v| C / n), so the sum of |v| is at most C.
- L2: with S = sum of v**2 > C**2 and an integer r with r**2 >= S, v becomes sign(v) floor(|v| C / r), so the sum of
  v**2 is at most C**2 S / r**2 <= C**2. r is found by a double root, and holds because r * r >= S is tested in integers;
  where the test fails r is n, of which it is always true. So no float decides.

Other units play no part in what one unit becomes: adding or removing it moves the answer by a vector of norm C at most.

Measured at 3 million rows that fall into 2.8 million (unit, group) pairs, 50 groups: the second aggregation and a join
0.59 s, a window over the pairs 0.92 s, lists of each unit's pairs 0.58 s (at 10,000 groups 0.50, 0.72 and 0.69 s).
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.errors import refuse
from dpsql.plan import Norm, Term, TermKind

PRESENT = '"#present"'
PARTS, NORMS = '"#parts"', '"#norms"'


@dataclass(frozen=True)
class Grouped:
    """What is aggregated: `rows` (a SELECT), names of `keys`, and the `unit` column that tells units apart."""

    rows: str
    keys: tuple[str, ...]
    unit: str


def clipped_sums(of: Grouped, terms: tuple[tuple[Term, str], ...], selection: str | None) -> str:
    """One row per group with every term (COUNT, SUM or UNITS), and the number of units as `selection`.

    Each term comes with its aggregate over rows (of UNITS: the count of rows), which here is taken over the rows of one
    unit in one group.
    """
    clips = [term for term, _ in terms if term.clip is not None]
    parts = [f"{_partial(term, aggregate)} AS {term.name}" for term, aggregate in terms]
    columns = [*of.keys, of.unit]
    pairs = f"SELECT {', '.join([*columns, *parts])} FROM ({of.rows}) GROUP BY {', '.join(columns)}"
    sums = [f"coalesce(sum({_clipped(term, bool(of.keys))}), 0) AS {term.name}" for term, _ in terms]
    if selection is not None:
        sums.append(f"count(*) AS {selection}")
    chosen = ", ".join([*of.keys, *sums])
    if not of.keys:
        return f"SELECT {chosen} FROM ({pairs})"
    norms = [item for term in clips for item in _norms(term)]
    units = f"SELECT {of.unit}, {', '.join(norms)} FROM {PARTS} GROUP BY {of.unit}"
    return (
        f"WITH {PARTS} AS MATERIALIZED ({pairs}), {NORMS} AS ({units}) "
        f"SELECT {chosen} FROM {PARTS} JOIN {NORMS} USING ({of.unit}) GROUP BY {', '.join(of.keys)}"
    )


def _partial(term: Term, aggregate: str) -> str:
    """What one unit adds to one group, in grid units."""
    if term.kind is TermKind.UNITS:
        return f"CAST({aggregate} > 0 AS BIGINT)"
    return f"CAST({aggregate} AS HUGEINT)"


def _norms(term: Term) -> tuple[str, ...]:
    """Of one unit over its groups: "n.<term>" is the sum of |v|, "s.<term>" the sum of v**2 where that is needed."""
    total = f'sum(abs({term.name})) AS "n.{term.name}"'
    return (total,) if _norm(term) is Norm.L1 else (total, f'sum({term.name} * {term.name}) AS "s.{term.name}"')


def _clipped(term: Term, grouped: bool) -> str:
    """The clipped v. Without keys a unit has one sum, every norm is its absolute value, and C is its ends."""
    v = term.name
    if term.clip is None:
        return v
    most = f"{term.clip.most}::HUGEINT"
    norm = _norm(term)
    if not grouped:
        return f"least(greatest({v}, -{most}), {most})"
    exceeds, divisor = f'"n.{v}" > {most}', f'"n.{v}"'
    if norm is Norm.L2:
        root = f'CAST(ceil(sqrt(CAST("s.{v}" AS DOUBLE)) * 1.0000000001e0::DOUBLE) AS HUGEINT)'
        exceeds = f'"s.{v}" > {most} * {most}'
        divisor = f'(CASE WHEN {root} * {root} >= "s.{v}" THEN {root} ELSE "n.{v}" END)'
    scaled = f"abs({v}) * {most} // {divisor}"
    return f"(CASE WHEN {exceeds} THEN (CASE WHEN {v} < 0 THEN -({scaled}) ELSE {scaled} END) ELSE {v} END)"


def _norm(term: Term) -> Norm:
    if term.clip is None or term.clip.norm is None:
        raise refuse("internal", what="a clip without a norm")
    return term.clip.norm
