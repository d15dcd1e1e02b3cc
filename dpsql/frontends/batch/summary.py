"""Outcomes of the statements of a batch run, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

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


class ErrorObject(TypedDict):
    """An error: its slug (docs/refusals.md), and whether a charge stays."""

    slug: str
    sqlstate: str
    message: str
    hint: str
    charged: bool


class StatementObject(TypedDict):
    """The outcome of one statement, by the fields of `StatementReport`."""

    place: str
    state: str
    result: str | None
    price: str | None
    receipt: str | None
    error: ErrorObject | None


class SummaryObject(TypedDict):
    """A run, as `dpsql run --json` writes it. `share`: the price as a part of the budget; `left`: the remaining budget of each
    account; `error`: what ended the run as a whole; `workload`: the joint measurement plans, if there are any."""

    dataset: str
    dry_run: bool
    status: int
    price: str | None
    share: str | None
    left: dict[str, dict[str, str]]
    error: ErrorObject | None
    workload: NotRequired[dict[str, Any]]
    statements: list[StatementObject]


def summary_object(
    reports: list[StatementReport], *, dataset: str, price: str | None, share: str | None,
    left: Mapping[str, Mapping[str, str]], status: int, error: Error | None, dry_run: bool,
    plans: Mapping[str, Any] | None = None,
) -> SummaryObject:  # fmt: skip
    """Return the run as a JSON object. `plans`: the joint measurement plans, None for a run without any."""
    summary = SummaryObject(
        dataset=dataset, dry_run=dry_run, status=status, price=price, share=share,
        left={account: dict(amounts) for account, amounts in left.items()},
        error=_error_object(error),
        statements=[_statement_object(report) for report in reports],
    )  # fmt: skip
    if plans is not None:
        summary["workload"] = dict(plans)
    return summary


def _statement_object(report: StatementReport) -> StatementObject:
    return {
        "place": report.place, "state": report.state, "result": report.result, "price": report.price,
        "receipt": report.receipt, "error": _error_object(report.error),
    }  # fmt: skip


def _error_object(error: Error | None) -> ErrorObject | None:
    if error is None:
        return None
    return {
        "slug": error.slug, "sqlstate": error.sqlstate, "message": error.message, "hint": error.hint,
        "charged": error.charged,
    }  # fmt: skip
