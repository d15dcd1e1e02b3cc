"""Queries for which a system gives less protection than requested, or answers another query: shown next to its numbers."""

from __future__ import annotations

_NULLS = "has no NULL: a missing amount counts as 0, so that its mean is of all rows (bias -1.9 %)"
_SIZE = "has to be told the number of rows, keeps a count within it and so often answers with that very number"
NOTES: dict[tuple[str, ...], str] = {
    ("pipelinedp", "Q4", "mean"): _NULLS,
    ("qrlew", "Q1"): _SIZE,
    (
        "qrlew",
        "Q5",
    ): "answers nearly half of the groups with exactly 0 (row), or shows no group at all (user): error 100 % each",
    ("qrlew", "Q6"): "counts rows, not distinct users, when every row is a privacy unit",
}
"""(system, question), or (system, question, column) -> a sentence."""
CAPPED_BY_REGION = frozenset({("pipelinedp", "Q4")})
"""(system, question) where a user is bounded by keys and by rows of each key, because the system has no bound on all rows
together."""


def note_of(system: str, question: str, column: str) -> str:
    """Return the sentence about a column of a query, or "" if the system does what was requested."""
    return NOTES.get((system, question, column)) or NOTES.get((system, question), "")
