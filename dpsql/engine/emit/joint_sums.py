"""Joint sums: the companion terms of a set, computed from the sum around the lower end (`sharing.Shared`)."""

from __future__ import annotations

from dpsql.engine.dialect import Dialect
from dpsql.plan.plan import BoundedBlock, Term, TermKind


def lower_part(term: Term, block: BoundedBlock) -> Term | None:
    """Return the sum around `lower` of the set of joint sums to which `term` belongs; None if `term` is that sum or in no set."""
    if not term.shares or (term.kind is TermKind.SUM and term.centre == term.lower):
        return None
    sums = (other for other in block.terms if other.shares == term.shares and other.kind is TermKind.SUM)
    return next(other for other in sums if other.centre == other.lower)


def companion_sum(term: Term, low: Term, row: str, condition: str, dialect: Dialect) -> str:
    """Return the companion term of a joint sum (privacy.md 4), computed from the same rounded row value as `low`.

    Where a row has q, the sum around `upper` has exactly q - W, and with `absent` -W for a row without a value; the count
    has W for such a row alone. The engine computes q (`row`), its sum and its count once.
    """
    filtered = f" FILTER (WHERE {condition})" if condition else ""
    if term.kind is TermKind.COUNT:
        return f"({dialect.wide(f'count(*){filtered} - count({row}){filtered}')} * {term.magnitude})"
    counted = dialect.wide(f"count({'*' if term.absent else row}){filtered}")
    total = dialect.exact_sum(row, filtered, low.magnitude)
    return f"(coalesce({total}, 0) - {counted} * {low.magnitude})"
