"""Backslash commands of the prompt."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from dpsql.errors.exceptions import refuse
from dpsql.errors.suggestions import did_you_mean
from dpsql.frontends.rendering.formats import left_text
from dpsql.frontends.rendering.tables import write_table

if TYPE_CHECKING:
    from dpsql.session.session import Session


class Leave(Exception):
    """The person wants to leave."""


HELP = {
    "\\d [TABLE]": "tables, or the columns of one table",
    "\\dt": "tables",
    "\\explain SQL": "what a question would cost and how exact it would be; nothing is charged",
    "\\budget": "what is spent and left",
    "\\set [NAME [VALUE]]": "all options, one option, or change one (\\set epsilon 0.2; \\set epsilon default)",
    "\\?": "this help",
    "\\q": "leave (so does Ctrl-D)",
}


def command(session: Session, line: str, out: TextIO) -> None:
    """Do what one backslash command says. Raises Leave for \\q and refusals for what is wrong."""
    word, _, rest = line.partition(" ")
    known: dict[str, Callable[[Session, str, TextIO], None]] = {
        "\\d": _describe, "\\dt": _tables, "\\explain": _explain, "\\budget": _budget, "\\set": _set, "\\?": _help,
        "\\q": _leave, "\\h": _help, "\\help": _help,
    }  # fmt: skip
    if word.rstrip(";") not in known:
        raise refuse("command_unknown", word=word, hint=f"\\? lists the commands{did_you_mean(word, known)}")
    known[word.rstrip(";")](session, rest.strip().rstrip(";").rstrip(), out)


def names() -> list[str]:
    """The commands, for completion."""
    return [usage.split()[0] for usage in HELP]


def _show(session: Session, sql: str, out: TextIO) -> None:
    write_table(session.execute(sql), out, shutil.get_terminal_size().columns if sys.stdout.isatty() else None)


def _tables(session: Session, rest: str, out: TextIO) -> None:
    _show(session, "SHOW TABLES", out)


def _describe(session: Session, rest: str, out: TextIO) -> None:
    _show(session, f"DESCRIBE {rest}" if rest else "SHOW TABLES", out)


def _explain(session: Session, rest: str, out: TextIO) -> None:
    out.write(session.explain(rest).to_text() + "\n")


def _budget(session: Session, rest: str, out: TextIO) -> None:
    out.write(left_text(session) + "\n")
    _show(session, "SHOW dp.budget", out)


def _set(session: Session, rest: str, out: TextIO) -> None:
    name, _, value = rest.partition(" ")
    option = name if name.startswith("dp.") else f"dp.{name}"
    if not value.strip():
        _show(session, f"SHOW {option}" if name else "SHOW dp.all", out)
        return
    session.execute(f"SET {option} = {value.strip().removeprefix('=').strip()}")


def _help(session: Session, rest: str, out: TextIO) -> None:
    out.writelines(f"  {usage:<22} {text}\n" for usage, text in HELP.items())
    out.write("  a statement ends with ; and may have many lines. Ctrl-C stops a running question.\n")


def _leave(session: Session, rest: str, out: TextIO) -> None:
    raise Leave
