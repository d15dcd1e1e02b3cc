"""Outcomes of the statements of a batch run, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpsql.errors.exceptions import Error


@dataclass
class StatementReport:
    """One statement. `state`: priced (not asked), answered, earlier (answered by an earlier run), lost (charged by an earlier
    run, its answer is lost), refused, failed; `price`: its price as determined before the run."""

    place: str
    state: str
    result: str | None = None
    price: str | None = None
    receipt: str | None = None
    error: Error | None = None


@dataclass(frozen=True)
class ReportedStatement:
    """A statement with its outcome. `note`: the contents of the note of its result, None if it has no result."""

    report: StatementReport
    sql: str
    note: Mapping[str, Any] | None


def summary_object(
    reports: list[StatementReport], *, dataset: str, price: str | None, share: str | None,
    left: Mapping[str, Mapping[str, str]], status: int, error: Error | None, dry_run: bool,
    plans: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the run as a JSON object. `share`: the price as a part of the budget, as text; `error`: what ended the run as a
    whole; `left`: the remaining budget of each account after it; `plans`: the joint measurement plans, None for a run without
    any."""
    return {
        "dataset": dataset,
        "dry_run": dry_run,
        "status": status,
        "price": price,
        "share": share,
        "left": {account: dict(amounts) for account, amounts in left.items()},
        "error": _error_object(error),
        **({} if plans is None else {"workload": plans}),
        "statements": [{**vars(report), "error": _error_object(report.error)} for report in reports],
    }


def _error_object(error: Error | None) -> dict[str, Any] | None:
    return (
        None
        if error is None
        else {name: getattr(error, name) for name in ("slug", "sqlstate", "message", "hint", "charged")}
    )
