"""`dpsql audit`: test the guarantee of the installed dpsql on databases made from the policy alone."""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsql.errors.exceptions import Exit, refuse
from dpsql.frontends.cli import PATH, FiniteRange, option, policy_option
from dpsql.frontends.files import read_text, writing
from dpsql.frontends.rendering.terminal import say
from dpsql.media.text import json_text

if TYPE_CHECKING:
    from dpsql.ledger.records import Entry
    from dpsql.policy import Policy
    from dpsql_audit.questions import Question
    from dpsql_audit.scratch import ScratchDatabase
    from dpsql_audit.served import CheckServer


STOPPED = 128 + signal.SIGINT


@click.command()
@policy_option()
@option("--queries", "A file of questions to audit as well, with their SET statements.", PATH)
@option("--seconds", "How long to search.", FiniteRange(min=1), default=60.0, show_default=True)
@option("--seed", "Selects the synthetic databases.", click.INT, default=0, show_default=True)
@option("--report", "The folder for audit.html and audit.json.", PATH)
@option("--first", "Stop at the first finding.")
@option("--ledger/--no-ledger", "Also add up the charges in the policy's ledger, if it has one.", default=True)
@option("--wire", "Also audit a server, which is started on this machine for the audit.")
@option("--scratch URL", "An empty PostgreSQL database for synthetic tables, which are dropped at the end.")
def audit(
    *,
    policy: Path,
    queries: Path | None,
    seconds: float,
    seed: int,
    report: Path | None,
    first: bool,
    ledger: bool,
    wire: bool,
    scratch: str | None,
) -> int:
    """Test the guarantee on synthetic data.

    Asks questions made from the policy (and your own) on pairs of synthetic databases that differ in one privacy unit. It
    compares the exact numbers before noise, and everything an analyst sees, with the claims and charges, tests the
    distribution of the noise, and adds up the ledger. The protected data are not opened. The exit status is 1 if something
    was found.
    """
    from dpsql.frontends.rendering.terminal import waiting
    from dpsql.policy import load_policy
    from dpsql_audit.report import as_html, as_json, as_text
    from dpsql_audit.run import run_audit

    loaded = load_policy(policy)
    questions = [*_questions(queries), *_asked_before(loaded)]
    if report is not None:
        _write(report, "audit.json", "{}")  # a folder that cannot be written is refused before the time is spent
    with _scratch(scratch, loaded) as database, (waiting() or nullcontext)():
        entries = _entries(loaded) if ledger else None
        outcome = run_audit(
            loaded,
            questions,
            seconds=seconds,
            seed=seed,
            entries=entries,
            first=first,
            check_server=_check_server(wire),
            scratch=database,
        )
    say(as_text(outcome), nl=False)
    if report is not None:
        _write(report, "audit.html", as_html(outcome))
        _write(report, "audit.json", json_text(as_json(outcome), indent=1))
        say(f"the report is {report / 'audit.html'}", err=True)
    if outcome.holds and outcome.interrupted:
        return STOPPED
    return Exit.DONE if outcome.holds else Exit.REFUSAL


def _check_server(wire: bool) -> CheckServer | None:
    """Return the function that checks a server, None unless that is asked for."""
    if not wire:
        return None
    from dpsql_audit.server_check import check_server

    return check_server


def _scratch(url: str | None, policy: Policy) -> AbstractContextManager[ScratchDatabase | None]:
    """Return the database that the owner names for synthetic tables; it is opened and must be empty. Raises InterfaceError
    scratch_database, Fault source_driver."""
    if url is None:
        return nullcontext()
    try:
        from dpsql_audit.scratch import ScratchDatabase
    except ImportError:
        raise refuse("source_driver", extra="postgres") from None
    return ScratchDatabase(url, policy)


def _write(folder: Path, name: str, text: str) -> None:
    """Write one file of the report. Raises InterfaceError file_write."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def _questions(place: Path | None) -> list[Question]:
    """Return the statements of the owner's file. Raises InterfaceError file_read, Refusal text_unfinished."""
    if place is None:
        return []
    from dpsql.sql.lexer import split_file
    from dpsql_audit.replay import read_statements

    questions = read_statements([piece.sql for piece in split_file(read_text(place))])
    if not questions:
        say(f"{place} holds no question", err=True)
    return questions


def _asked_before(policy: Policy) -> list[Question]:
    """Return the questions of the server's audit log, if the policy keeps their texts. Raises InterfaceError file_read."""
    from dpsql.storage.files import state_directory
    from dpsql_audit.questions import past_questions

    if not policy.log_sql:
        return []
    log = state_directory() / "audit.log"
    try:
        return past_questions(log)
    except OSError as error:
        raise refuse("file_read", place=str(log), problem=error.strerror or "it failed") from None


def _entries(policy: Policy) -> list[Entry] | None:
    """Return the entries of the policy's ledger, None if there is no ledger yet."""
    from dpsql.errors.exceptions import Fault
    from dpsql.ledger import open_ledger

    try:
        with open_ledger(policy.ledger_url(), policy.dataset) as book:
            return list(book.history())
    except Fault as fault:
        if fault.slug == "ledger_missing":
            return None
        raise
