"""Commands on the ledger, and erase for what is kept beside it. Of data, they touch prepared copies alone."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsql.errors.custodian_log import audit
from dpsql.errors.exceptions import Error, Exit
from dpsql.frontends.cli import COUNT, PATH, open_owners_ledger, option, policy_option
from dpsql.frontends.rendering.terminal import notify, say, standard_output
from dpsql.privacy.loss import plain_decimal

if TYPE_CHECKING:
    from dpsql.ledger.ledger import Ledger
    from dpsql.policy import Policy


_format = option("-f --format", "", ("table", "csv", "json"), default="table")


@click.group()
def budget() -> None:
    """Show, verify and back up the ledger: spent and remaining budget, and every charge."""


def _on_ledger(command: Callable[..., int | None]) -> click.Command:
    """Register a command that begins with an open ledger: its first arguments are the policy and the ledger. What the disk lets
    nobody write can still be read."""

    @budget.command()
    @policy_option()
    @wraps(command)
    def run(*, policy: Path, **options: Any) -> int | None:
        with ExitStack() as stack:
            try:
                opened = stack.enter_context(open_owners_ledger(policy))
            except Error as error:
                if error.slug not in ("ledger_read_only", "ledger_disk_full"):
                    raise
                opened = stack.enter_context(open_owners_ledger(policy, read_only=True, witness=None))
            return command(*opened, **options)

    return run


@_on_ledger
@_format
@option(
    "--accountant NAME",
    "Also show the total by this composition rule (sequential, advanced, renyi, zcdp, pld, or all).",
    multiple=True,
)
@option("--delta DELTA", "With --accountant: the delta of the total; by default that of the budget.")
@option("-v --verbose", "Show exact amounts, as csv and json always do.")
def show(
    policy: Policy, ledger: Ledger, format: str, accountant: tuple[str, ...], delta: str | None, verbose: bool
) -> None:
    """Show how many questions of the policy's `per_query` the data set, each analyst and each project have left."""
    from dpsql.frontends.cli.ledger_rows import account_rows, composition_rows, question_rows
    from dpsql.frontends.rendering.formats import write_rows
    from dpsql.session.budget import windows_in_words

    if delta is not None and not accountant:
        raise click.UsageError("--delta is for --accountant: name a rule of composition too")
    if accountant:
        names, rows = composition_rows(policy, ledger, accountant, delta)
    elif verbose or format != "table":
        names, rows = account_rows(policy, ledger)
    else:
        names, rows = question_rows(policy, ledger)
        notify(f"questions of epsilon {plain_decimal(policy.per_query.epsilon)}")
    write_rows(names, rows, standard_output(), format)
    if not accountant and policy.budget.every is not None:
        notify(windows_in_words(policy.budget))
    for sentence in policy.unprotected.values():
        notify(sentence)


@_on_ledger
@_format
@option("--last N", "Only the newest N rows.", COUNT)
@option("--all", "Also questions that were free or refused.")
@option("--analyst NAME", "Only questions of this analyst.")
@option("--project NAME", "Only questions of this project.")
@option("--claimed-user NAME", "Only questions that a client says (dp.on_behalf_of) it asked for this person.")
@option("--column TABLE.COLUMN", "Only answers that read this column: what was learned of it.")
@option("--days N", "Only the last N days.", COUNT)
@option("--refusals", "Refusals by what was asked for in vain; of 7 days unless --days says otherwise.")
def history(
    policy: Policy, ledger: Ledger, format: str, last: int | None, days: int | None, refusals: bool, **chosen: Any
) -> None:
    """List charges with their questions, oldest first; csv and json have exact charges and the whole text of long ones."""
    from dpsql.frontends.cli.ledger_rows import chosen_rows, refusal_rows
    from dpsql.frontends.rendering.formats import write_rows
    from dpsql.media.text import sheet_cell
    from dpsql.reuse.questions import days_before, open_questions
    from dpsql.session.budget import question_price

    if refusals and (chosen["all"] or chosen["column"]):
        raise click.UsageError("--all and --column are for answers: a refused question has read no column")
    questions = open_questions(ledger, policy)
    written = [] if questions is None else questions.all()
    days = 7 if refusals and days is None else days
    since = "" if days is None else days_before(days).isoformat(timespec="milliseconds")
    if refusals:
        names, rows = refusal_rows(written, since, {name: value for name, value in chosen.items() if value})
    else:
        price = question_price(policy) if format == "table" else None
        names, rows = chosen_rows(ledger, written, since, price, **chosen)
    if format == "csv":  # analysts choose texts that owners open in spreadsheets
        rows = [tuple(sheet_cell(cell) if isinstance(cell, str) else cell for cell in row) for row in rows]
    if format == "table":  # the question, which is last, would make every line as wide as the longest text
        rows = [(*row[:-1], row[-1] if len(row[-1]) <= 200 else f"{row[-1][:200]} ...") for row in rows]
    write_rows(names, rows if last is None else rows[-last:], standard_output(), format)


@_on_ledger
@option("-v --verbose", "Show exact amounts.")
def forecast(policy: Policy, ledger: Ledger, verbose: bool) -> None:
    """Show how long each account will last at the rate of the last 7 days, in questions of the policy's `per_query`."""
    from dpsql.ledger.ledger import forecasts
    from dpsql.session.budget import budget_of_everybody, question_price

    accounts = budget_of_everybody(policy, ledger.accounts()).accounts
    for outlook in forecasts(ledger, policy.budget.every, accounts):
        if outlook.scope != "dataset" or policy.budget.is_limited:
            say((outlook.exact_words if verbose else outlook.words)(question_price(policy)))


@_on_ledger
@option('--head "NUMBER DIGEST"', "A head that was printed earlier and kept on another machine.")
def verify(policy: Policy, ledger: Ledger, head: str | None) -> int:
    """Check every entry, every total and the head of the chain; with --head, that it contains an earlier head."""
    from dpsql.ledger.backup import compared

    verdict = ledger.verify()
    if head is not None:
        compared(ledger, head)
    if verdict.sound:
        say(f"the ledger holds: {verdict.entries} entries")
        return Exit.DONE
    notify(f"the ledger does not hold at entry {verdict.first_bad}: {verdict.problem}")
    return Exit.FAULT


@_on_ledger
@option("-f --format", "The format: JSON lines, or CSV.", ("json", "csv"), default="json")
def export(policy: Policy, ledger: Ledger, format: str) -> None:
    """Write the whole ledger to standard output, for an auditor."""
    ledger.export(standard_output(), format)


@_on_ledger
def head(policy: Policy, ledger: Ledger) -> None:
    """Print number and digest of the last entry, to be kept where the ledger's machine cannot change them."""
    from dpsql.ledger.backup import head_text

    say(head_text(ledger))


@_on_ledger
@click.argument("folder", type=PATH)
def backup(policy: Policy, ledger: Ledger, folder: Path) -> None:
    """Copy the ledger, its key, the logins and the server's self-signed certificate to the new FOLDER, while queries continue.
    Protect FOLDER: it contains the keys."""
    from dpsql.frontends.pgwire.connection import copy_self_signed
    from dpsql.frontends.pgwire.logins import open_logins
    from dpsql.ledger.backup import back_up

    last = back_up(ledger, folder)
    logins = open_logins(ledger, policy).back_up(folder)
    copy_self_signed(ledger.witness.directory, folder)
    audit("owner", act="backup", entry=last.seq)
    say(f"{last.seq} entries are in {folder}, and {logins} logins")


@budget.command()
@policy_option()
@option(
    '--lost "EPSILON [DELTA]"',
    "The most that was spent after the backup, by your word: an epsilon, and a delta behind it; everything that is left of what "
    "you do not state.",
)
@option("--tls-key", "Restore the self-signed certificate and its key, too.")
@click.argument("folder", type=PATH)
def restore(policy: Path, lost: str | None, tls_key: bool, folder: Path) -> None:
    """Restore the backup in FOLDER, and charge what may have been spent since it was made. Logins are restored, disabled, on a
    machine that has none."""
    from dpsql.frontends.cli.ledger_rows import words
    from dpsql.ledger.backup import restore as put_back
    from dpsql.policy import load_policy
    from dpsql.session.budget import window_of

    loaded = load_policy(policy)
    units = None if lost is None else _units(loaded, lost)
    say(_lost_in_words(lost))
    restored = put_back(folder, loaded.ledger_url(), loaded.dataset, lost=units, window=window_of(loaded))
    audit("owner", act="restore", entry=restored.entry, seen=restored.last_seen, lost=lost)
    say(f"the ledger is that of entry {restored.entry} again")
    if not restored.charged:
        say("it is the entry that was seen last: nothing is lost, nothing was charged")
    for scope, charge in restored.charged.items():
        say(f"charged to {scope} for what may have been lost: {words(charge)}")
    _restore_service(loaded, folder, tls_key)


def _lost_in_words(lost: str | None) -> str:
    """Return what a restore will charge if entries are missing."""
    left = "unless the backup has the last entry that this machine has seen, each account is charged"
    if lost is None:
        return f"{left} everything that it has left (--lost states less)"
    epsilon, _, delta = lost.partition(" ")
    return f"{left} epsilon {epsilon} and {f'delta {delta}' if delta else 'all the delta that it has left'}"


def _restore_service(policy: Policy, folder: Path, tls_key: bool) -> None:
    from dpsql.frontends.pgwire.connection import copy_self_signed
    from dpsql.frontends.pgwire.logins import open_logins
    from dpsql.ledger import open_ledger

    with open_ledger(policy.ledger_url(), policy.dataset) as ledger:
        if names := open_logins(ledger, policy).restore(folder):
            say(
                f"logins of {', '.join(names)} are restored, all disabled: `dpsql user enable NAME` lets in who may log in today"
            )
        if tls_key and copy_self_signed(folder, ledger.witness.directory):
            say("the self-signed certificate and its key are restored")


@budget.command()
@policy_option()
@option("--newest-copy", "You confirm that this ledger is the newest copy that exists.")
def adopt(policy: Path, newest_copy: bool) -> None:
    """Use an existing ledger on a new machine that has its key. The ledger's own totals then count as spent, so an older copy
    would forget charges, which dpsql cannot detect. Use `restore` for a copy that may be older."""
    if not newest_copy:
        raise click.UsageError("say --newest-copy when you know that it is; else dpsql budget restore")
    with open_owners_ledger(policy, adopt=True) as (_, ledger):
        entries = ledger.verify().entries
    audit("owner", act="adopt", entry=entries)
    say(f"the ledger with {entries} entries is in use here")


@_on_ledger
@click.argument("reason")
def clock(policy: Policy, ledger: Ledger, reason: str) -> None:
    """Record that this machine's clock is right, for REASON, and that the budget of today is the present one: after a long time
    without questions, or after a clock that was ahead opened a later budget. What was spent stays spent in each."""
    from dpsql.ledger import windows
    from dpsql.session.budget import window_of

    window, day = window_of(policy), windows.today()
    ledger.state_day(window, reason)
    audit("owner", act="clock", day=str(day), reason=reason)
    opened = f"; the budget that began on {window.start} is open" if window else ""
    say(f"the ledger records that today is {day}{opened}")


@budget.command()
@policy_option()
@option("--replace REASON", "Why the existing head may be replaced; recorded in the ledger.")
def witness(policy: Path, replace: str | None) -> None:
    """Write the head of the ledger to the policy's `witness`, for the first time or after a restore."""
    from dpsql.ledger.opening import start_second_witness

    with open_owners_ledger(policy, witness=None) as (loaded, ledger):
        if loaded.witness is None:
            raise click.UsageError("the policy has no witness: file:///FOLDER or postgresql://... on another machine")
        last = start_second_witness(ledger, loaded.witness, replace)
    audit("owner", act="witness", entry=last.seq, reason=replace)
    say(f"the witness has entry {last.seq} and follows from now on")


def _units(policy: Policy, lost: str) -> dict[str, int]:
    """Return the amounts in ledger units of "EPSILON [DELTA]", by default with the budget's delta. Raises BadParameter."""
    from fractions import Fraction
    from math import ceil

    from dpsql.privacy.accounting import MOST_EPSILON, make_accountant
    from dpsql.privacy.ledger_units import UNITS

    epsilon, _, stated = lost.strip().partition(" ")
    try:
        amount, delta = Fraction(epsilon), Fraction(stated) if stated else None
    except (ValueError, ZeroDivisionError):
        raise click.BadParameter(f"{lost!r} is no number, and no two of them", param_hint="--lost") from None
    if not 0 < amount <= MOST_EPSILON or not 0 <= (delta or 0) < 1:
        problem = (
            f"what was lost is an epsilon of more than 0 and at most {MOST_EPSILON}, and a delta from 0 to less than 1"
        )
        raise click.BadParameter(problem, param_hint="--lost")
    units = dict(make_accountant(policy.budget.accountant, amount, policy.budget.delta).limit_units())
    return units if delta is None else {**units, "delta": ceil(delta * UNITS["delta"])}


# --- erase: what dpsql keeps beside the ledger is listed, or removed so that its bytes are in no file -----------------

KINDS = ("copies", "texts", "logs", "answers")
AFTER_ALL = "~"
"""A text after every time."""
_LOGS = ("audit.log*", "custodian.log*")
_SECONDS_OF_A_LINE = 0.1
"""Time in which a server that has opened a log writes its line."""


@click.command()
@policy_option()
@option("--before N", "Of texts, logs and answers only those that are older than N days.", COUNT)
@option("--dry-run", "Remove nothing; show what would be removed.")
@click.argument("kinds", nargs=-1, type=click.Choice((*KINDS, "all")), metavar="[KIND]...")
def erase(policy: Path, before: int | None, dry_run: bool, kinds: tuple[str, ...]) -> None:
    """Remove what dpsql keeps beside the ledger for good; without a KIND, list it.

    KIND is `copies` (prepared rows of other data than the source has; those of a person who was erased from the source), `texts`
    (of questions), `logs` (the prompt's history; lines of the audit and the custodian's log that name this data set or none),
    `answers` (stored releases; repeats are charged again), or `all`. Charges stay: they hold no data, and prove that the budget
    held.
    """
    from dpsql.reuse.questions import days_before

    removes = bool(kinds) and not dry_run
    chosen = KINDS if not kinds or "all" in kinds else kinds
    until = AFTER_ALL if before is None else days_before(before).isoformat(timespec="milliseconds")
    counts: dict[str, int] = {}
    with open_owners_ledger(policy) as (loaded, ledger):
        charges = sum(entry.kind == "charge" for entry in ledger.history())
        for kind in KINDS:
            if kind in chosen:
                counts[kind] = _erased(kind, loaded, policy, ledger, until, removes)
    if removes:
        audit("owner", act="erase", before=before, **counts)
    for kind, count in counts.items():
        say(f"{kind}: {count} {_WORDS[kind]}{_done(kind, count, removes)}")
    say(f"charges: {charges} in the ledger, which stay")
    say(_NOT_KNOWN)


_WORDS = {
    "copies": "prepared copies of other versions of the data",
    "texts": "texts of questions, whose literals may name a person",
    "logs": "lines of logs that name this data set or none, which may quote values and texts",
    "answers": "stored answers, each differentially private with or without any one person",
}
_NOT_KNOWN = (
    "not known to dpsql: backups of the source, exports, answers and queries that analysts keep. A DuckDB file keeps erased rows "
    "in free blocks until it is written anew: COPY FROM DATABASE into a new file"
)


def _done(kind: str, count: int, removes: bool) -> str:
    if not removes:
        return ""
    return ", removed" + ", and written again" * bool(kind == "copies" and count)


def _erased(kind: str, policy: Policy, path: Path, ledger: Ledger, until: str, removes: bool) -> int:
    """Return how many things of a kind there are before a time; remove them."""
    from dpsql.frontends.cli.owner import open_index
    from dpsql.reuse.questions import QuestionTexts
    from dpsql.reuse.store import open_releases

    if kind == "copies":
        with open_index(path) as (_, _, index):
            count = index.remove_outdated(only_counts=not removes)
            if count and removes:
                index.prepare()
        return count
    if kind == "logs":
        return erased_lines(policy.dataset, until, removes)
    store = QuestionTexts(ledger, policy.store) if kind == "texts" else open_releases(ledger)
    try:
        return store.erase(until) if removes else store.count(until)
    finally:
        store.close()


# --- logs -------------------------------------------------------------------------------------------------------------


def erased_lines(dataset: str, until: str, removes: bool) -> int:
    """Return the number of lines before a time in all logs, rotated ones too, that name the data set or none; remove them."""
    from dpsql.storage.files import state_directory

    lines, patterns = 0, (*_LOGS, "history", f"history.{dataset}")
    for log in [log for pattern in patterns for log in sorted(state_directory().glob(pattern))]:
        chosen, remaining = _parted(log.read_bytes(), dataset, until, _time_of_file(log))
        lines += len(chosen)
        if removes and chosen:
            _replace(log, dataset, until)
            if (
                not remaining and log.suffix != ".log"
            ):  # a log is opened for each line, and remaining are not written any more
                log.unlink(missing_ok=True)
    return lines


def _parted(lines: bytes, dataset: str, until: str, written: str) -> tuple[list[bytes], list[bytes]]:
    """Return the lines of a log before a time that name the data set or none, and the others. What is no line with a time belongs
    to the line before it; at the beginning it has that of the file, which was `written` last, and names none."""
    chosen: list[bytes] = []
    remaining: list[bytes] = []
    named: list[str] = []
    for line in lines.splitlines(keepends=True):
        with suppress(ValueError, TypeError, KeyError):
            facts = json.loads(line)
            written, named = str(facts["time"]), list(facts.get("datasets", ()))
        (chosen if written < until and (not named or dataset in named) else remaining).append(line)
    return chosen, remaining


def _time_of_file(log: Path) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(log.stat().st_mtime, UTC).isoformat(timespec="milliseconds")


def _replace(log: Path, dataset: str, until: str) -> None:
    """Write the lines of a log that `_parted` does not choose to a new file under its name. Lines that a server writes meanwhile
    follow them: it opens the log for each line, so it begins a new one, or writes to the former one for a moment.

    If this is interrupted, its files begin with the name of the log, so that the next time removes their lines.
    """
    draft, asides = log.with_name(f"{log.name}.draft"), list[tuple[Path, int]]()
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600), "ab", 0) as file:
        while True:
            aside = log.with_name(f"{log.name}.erased{len(asides)}")
            with suppress(FileNotFoundError):
                os.rename(log, aside)
                lines = aside.read_bytes()
                asides.append((aside, len(lines)))
                file.write(b"".join(_parted(lines, dataset, until, _time_of_file(aside))[1]))
            with suppress(FileExistsError):  # a server has written a line since
                os.link(draft, log)
                break
        draft.unlink()
        time.sleep(_SECONDS_OF_A_LINE)
        for aside, size in asides:
            file.write(aside.read_bytes()[size:])
            aside.unlink()
