"""The prompt: `dpsql repl`. On a terminal with history, highlighting and completion; else line by line from a pipe."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from dpsql.errors.custodian_log import unexpected_text
from dpsql.errors.exceptions import Error, Exit
from dpsql.frontends.interruptible import ask
from dpsql.frontends.rendering.formats import left_text, price_lines
from dpsql.frontends.rendering.spinner import waiting
from dpsql.frontends.rendering.tables import write_table
from dpsql.frontends.repl.commands import Leave, command
from dpsql.sql.split import read_script

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dpsql.session.session import Session


def run_repl(session: Session) -> int:
    """Ask until the end of input or \\q. Returns the exit status: 0 at a terminal, else that of the first error."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        from dpsql.frontends.repl.prompt import typed

        tables = ", ".join(session.policy.tables)
        click.echo(f"{session.policy.dataset}: {tables}. {left_text(session)}. \\? helps, \\q leaves.", err=True)
        _talk(session, typed(session))
        return Exit.DONE
    return _talk(session, _piped())


def _piped() -> Iterator[str]:
    """Statements and backslash commands from standard input, each as soon as it is complete."""
    waiting_text = ""
    for line in sys.stdin:
        if not waiting_text.strip() and line.lstrip().startswith("\\"):
            yield line
            continue
        waiting_text += line
        script = read_script(waiting_text)
        if script.rest is None and not script.unfinished:
            yield waiting_text
            waiting_text = ""
    if waiting_text.strip():
        yield waiting_text


def _talk(session: Session, texts: Iterator[str]) -> int:
    first = int(Exit.DONE)
    for text in texts:
        try:
            status = _answer_all(session, text)
        except Leave:
            break
        first = first or status
    return first


def _answer_all(session: Session, text: str) -> int:
    """Answer what one text holds: a backslash command, or statements; the first error ends it."""
    if text.lstrip().startswith("\\"):
        return _guarded(partial(command, session, text.strip(), sys.stdout))
    script = read_script(text)
    pieces = [*script.statements, *([] if script.rest is None else [script.rest])]
    for piece in pieces:
        status = _guarded(partial(_answer, session, piece.sql))
        if status:
            return status
    return Exit.DONE


def _answer(session: Session, sql: str) -> None:
    release = ask(session, sql, waiting=waiting())
    if release.columns:
        write_table(release, sys.stdout, shutil.get_terminal_size().columns if sys.stdout.isatty() else None)
        sys.stdout.flush()
    for line in price_lines(session, release):
        click.secho(line, err=True, dim=True)


def _guarded(work: Callable[[], None]) -> int:
    """Run `work`; whatever goes wrong is told, and the prompt goes on."""
    try:
        work()
    except (Leave, OSError):
        raise
    except Error as error:
        click.secho(error.text(), err=True, fg="red")
        return error.exit_status
    except Exception as error:
        click.secho(unexpected_text(error), err=True, fg="red")
        return Exit.FAULT
    return Exit.DONE
