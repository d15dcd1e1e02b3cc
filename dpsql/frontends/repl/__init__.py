"""The prompt, `dpsql repl`: with history, highlighting and completion on a terminal, else line by line from a pipe."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.errors.custodian_log import registering, unexpected_text
from dpsql.errors.exceptions import Error, Exit, refuse
from dpsql.frontends.files import read_text
from dpsql.frontends.interruptible import ask
from dpsql.frontends.rendering.formats import left_text, say_price
from dpsql.frontends.rendering.terminal import notify, say_line, waiting
from dpsql.frontends.repl.commands import Leave, Prompt, as_command, command
from dpsql.sql.lexer import read_script, with_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dpsql.release.release import Release
    from dpsql.session.session import Session
    from dpsql.sql.lexer import Piece


MOST_NESTED = 10
"""Limit on the depth of files that include files with \\i."""


def run_repl(session: Session, values: Mapping[str, str]) -> int:
    """Answer questions, with `values` for `:name`, until the end of input or \\q. Return the exit status: 0 at a terminal, else
    that of the first error."""
    talk = _Talk(session, values)
    try:
        if sys.stdin.isatty() and sys.stdout.isatty():
            from dpsql.frontends.repl.prompt import typed

            tables = ", ".join(session.policy.visible)
            notify(f"{session.policy.dataset}: {tables}. {left_text(session)}. \\? helps, \\q leaves.")
            talk.answer_texts(typed(session))
            return Exit.DONE
        return talk.answer_texts(_complete_texts(sys.stdin))
    finally:
        talk.prompt.screen.close()


def _complete_texts(lines: Iterable[str]) -> Iterator[str]:
    """Yield statements and backslash commands, each as soon as it is complete."""
    waiting_text = ""
    for line in lines:
        if not waiting_text.strip() and as_command(line) is not None:
            yield line
            continue
        waiting_text += line
        script = read_script(waiting_text)
        if script.rest is None and not script.unfinished:
            yield waiting_text
            waiting_text = ""
    if waiting_text.strip():
        yield waiting_text


class _Talk:
    """One conversation: texts in, answers and errors out."""

    def __init__(self, session: Session, values: Mapping[str, str]) -> None:
        self._values = values
        self.prompt = Prompt(session, self._ask, self._answer_file)
        self._nested = 0

    def answer_texts(self, texts: Iterable[str]) -> int:
        """Answer texts one after the other until one asks to leave. Return the exit status of the first error."""
        first = int(Exit.DONE)
        for text in texts:
            try:
                status = self._answer_text(text)
            except Leave:
                break
            first = first or status
        return first

    def _answer_text(self, text: str) -> int:
        """Answer the contents of one text, a backslash command or statements, up to the first error."""
        word = as_command(text)
        if word is not None:
            return _guarded(partial(command, self.prompt, word))
        for piece in read_script(with_values(text, self._values)[0]).pieces:
            status = _guarded(partial(self._answer, piece))
            if status:
                return status
        return Exit.DONE

    def _ask(self, sql: str) -> Release:
        """Return the answer of one statement, and print its price."""
        session = self.prompt.session
        release = self.prompt.screen.timed(lambda: _ask(session, sql))
        with registering(charged=release.receipt.is_paid, passing=OSError):
            say_price(session, release, dim=True)
        return release

    def _answer(self, sql: Piece) -> None:
        session, screen = self.prompt.session, self.prompt.screen
        release = screen.timed(lambda: _ask(session, sql))
        with registering(charged=release.receipt.is_paid, passing=OSError):
            if release.columns:
                screen.show(release)
            say_price(session, release, dim=True)

    def _answer_file(self, place: str) -> None:
        """Answer the texts of a file up to the first error, which is printed with the file's name."""
        if self._nested >= MOST_NESTED:
            raise refuse("file_read", place=place, problem=f"files ask for files more than {MOST_NESTED} deep")
        lines = read_text(Path(place).expanduser()).splitlines(keepends=True)
        self._nested += 1
        try:
            for text in _complete_texts(lines):
                if self._answer_text(text):
                    notify(f"{place}: stopped at the first error", fg="red")
                    return
        finally:
            self._nested -= 1


def _ask(session: Session, sql: str | Piece) -> Release:
    return ask(session, sql, waiting=waiting(), advise=partial(say_line, err=True, dim=True), stays=True)


def _guarded(work: Callable[[], None]) -> int:
    """Run `work` and return its exit status; print any error, so that the prompt continues."""
    try:
        work()
    except (Leave, OSError):
        raise
    except Error as error:
        notify(error.text(), fg="red")
        return error.exit_status
    except Exception as error:
        notify(unexpected_text(error), fg="red")
        return Exit.FAULT
    return Exit.DONE
