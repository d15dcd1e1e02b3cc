"""Terms that share each row: the others of a set from what the sum around the lower end adds (`sharing.Shared`)."""

from __future__ import annotations

from dpsql.engine.dialect import Dialect
from dpsql.plan.plan import BoundedBlock, Term, TermKind


def lower_part(term: Term, block: BoundedBlock) -> Term | None:
    """The sum around `lower` of the set in which `term` is another one."""
    if not term.shares or (term.kind is TermKind.SUM and term.centre == term.lower):
        return None
    own = (other for other in block.terms if other.shares == term.shares and other.kind is TermKind.SUM)
    return next(other for other in own if other.centre == other.lower)


def beside(term: Term, low: Term, row: str, condition: str, dialect: Dialect) -> str:
    """What shares each row with the sum `low` around `lower`, whatever is rounded there.

    Where a row has q, the sum around `upper` has exactly q - W, and with `absent` -W for a row without a value; the count
    has W for such a row alone. The engine computes q (`row`), its sum and its count once.
    """
    filtered = f" FILTER (WHERE {condition})" if condition else ""
    if term.kind is TermKind.COUNT:
        return f"({dialect.wide(f'count(*){filtered} - count({row}){filtered}')} * {term.magnitude})"
    counted = dialect.wide(f"count({'*' if term.absent else row}){filtered}")
    return f"(coalesce(sum({row}){filtered}, 0) - {counted} * {low.magnitude})"
