"""Where a system answers with less protection than it was asked for, or another question: shown beside its numbers."""

from __future__ import annotations

_NULLS = "has no NULL: a missing amount counts as 0, so that its mean is of all rows (bias -1.9 %)"
_SIZE = "has to be told the number of rows, keeps a count within it and so often answers with that very number"
NOTES: dict[tuple[str, str], str] = {
    **{("pipelinedp", question): _NULLS for question in ("Q3", "Q4", "Q12")},
    ("qrlew", "Q1"): _SIZE,
    (
        "qrlew",
        "Q5",
    ): "answers nearly half of the groups with exactly 0 (row), or shows no group at all (user): error 100 % each",
    ("qrlew", "Q6"): "counts rows, not distinct users, when every row is a privacy unit",
}
"""(system, question) -> a sentence."""
