"""Command erase: what dpsql keeps beside the ledger is listed, or removed so that its bytes are in no file."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsql.errors.custodian_log import audit
from dpsql.frontends.cli import COUNT, open_owners_ledger, option, policy_option
from dpsql.frontends.rendering.terminal import say

if TYPE_CHECKING:
    from dpsql.ledger.ledger import Ledger
    from dpsql.policy import Policy

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
