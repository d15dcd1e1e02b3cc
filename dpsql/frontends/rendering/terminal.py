"""Everything that the command line and the prompt print, in text that a terminal shows and does not obey."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, TextIO, cast

import click

from dpsql.media.text import json_text, terminal, terminal_lines


class _Cleaned:
    """Standard output at a terminal, for writers of whole tables."""

    encoding = property(lambda self: sys.stdout.encoding)

    def write(self, text: str) -> int:
        """Print text."""
        say(text, nl=False)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Print several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: `say` flushes."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def standard_output() -> TextIO:
    """Return standard output for an answer: as it is for a program that reads it, cleaned for a terminal."""
    return cast(TextIO, _Cleaned()) if sys.stdout.isatty() else sys.stdout


def say(text: str, *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print text of one or more lines; `style`: of `click.style`, such as `fg` or `bold`."""
    _print(terminal_lines(text), err, nl, style)


def say_line(text: str, *, err: bool = False, **style: Any) -> None:
    """Print one line that quotes data, names or SQL, with its line ends spelled out: none of it can pass for a line of ours."""
    _print(terminal(text), err, True, style)


def _print(text: str, err: bool, nl: bool, style: dict[str, Any]) -> None:
    click.echo(click.style(text, **style) if style else text, err=err, nl=nl)  # without a style there is none to reset


def say_json(value: Any, *, indent: int | None = None) -> None:
    """Print a value as JSON."""
    click.echo(json_text(value, indent=indent, allow_nan=True))


def say_styled(text: str, *, paged: bool = False) -> None:
    """Print a page of our own documentation, with its codes for bold and colour; `paged`: through the pager."""
    if paged:
        click.echo_via_pager(text)
    else:
        click.echo(text, nl=False)


def say_paged(text: str) -> None:
    """Show text through the pager."""
    click.echo_via_pager(terminal_lines(text))


def spinner() -> AbstractContextManager[object]:
    """Return a context that shows on a terminal that a question is being worked on."""
    from rich.console import Console

    return Console(stderr=True).status("working on the data, Ctrl-C stops", spinner="line")


def waiting() -> Callable[[], AbstractContextManager[object]] | None:
    """Return `spinner` if there is a terminal to show it on."""
    return spinner if sys.stderr.isatty() else None
