"""Display of answers at the prompt: a table or one value a line, a file instead of the terminal, a pager, times."""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dpsql.frontends.files import writing
from dpsql.frontends.rendering.tables import Layout, write_table
from dpsql.frontends.rendering.terminal import say, say_paged, say_styled, standard_output
from dpsql.media.text import terminal_lines

if TYPE_CHECKING:
    from dpsql.release.release import Release


@dataclass
class Screen:
    """Settings of one prompt. `layout`: \\x; `timing`: \\timing; `pager`: \\pager; `file`: \\o, None for standard output."""

    layout: Layout = Layout.AUTO
    timing: bool = False
    pager: bool = True
    file: TextIO | None = None
    place: str = ""
    _terminal: bool = field(init=False)

    def __post_init__(self) -> None:
        self._terminal = sys.stdout.isatty()

    @property
    def styled(self) -> bool:
        """Return whether text goes to a terminal, so that it may have bold and colour."""
        return self.file is None and self._terminal and "NO_COLOR" not in os.environ

    def show(self, release: Release) -> None:
        """Write an answer to the file or to the terminal, through the pager if it is longer than the terminal."""
        if self.file is not None:
            write_table(release, self.file, None, self.layout)
            self.file.flush()
            return
        if not self._terminal:
            write_table(release, standard_output(), None, self.layout)
            sys.stdout.flush()
            return
        size = shutil.get_terminal_size()
        drawn = io.TextIOWrapper(io.BytesIO(), encoding=sys.stdout.encoding or "utf-8", errors="replace", newline="\n")
        write_table(release, drawn, size.columns, self.layout)
        self.text(_written(drawn))

    def styled_page(self, text: str) -> None:
        """Write a page of the documentation, whose codes for bold and colour a terminal obeys."""
        if self.file is not None:
            self.text(text)
        else:
            say_styled(text, paged=self._is_long(text))

    def _is_long(self, text: str) -> bool:
        return self.pager and self._terminal and text.count("\n") >= shutil.get_terminal_size().lines

    def text(self, text: str) -> None:
        """Write text to the file or to the terminal, through the pager if it is longer than the terminal."""
        if self.file is not None:
            self.file.write(terminal_lines(text))
            self.file.flush()
        elif self._is_long(text):
            say_paged(text)
        else:
            say(text, nl=False)

    def direct(self, place: str) -> None:
        """Write later answers to the file at `place`, or to standard output if it is empty. Raises Fault file_write."""
        self.close()
        if place:
            with writing(Path(place)):
                self.file = Path(place).expanduser().open("w", encoding="utf-8")
            self.place = place

    def close(self) -> None:
        """Close the file, if there is one."""
        if self.file is not None:
            self.file.close()
        self.file, self.place = None, ""

    def timed(self, work: Callable[[], Release]) -> Release:
        """Do `work`, and print how long it took if \\timing is on."""
        begun = time.monotonic()
        release = work()
        if self.timing:
            say(f"time: {(time.monotonic() - begun) * 1000:.0f} ms", err=True, dim=True)
        return release


def _written(drawn: io.TextIOWrapper) -> str:
    drawn.seek(0)
    return drawn.read()
