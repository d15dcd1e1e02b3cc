"""Progress of a batch run on standard error: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from dpsql.frontends.rendering.terminal import say
from dpsql.media.text import terminal, terminal_lines


class Progress:
    """The watcher of `dpsql.frontends.batch.batch.Batch`; a context manager."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._total = self._count = 0
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._bar = RichProgress(*columns, console=Console(stderr=True, highlight=False, markup=False), transient=True)
        self._task: TaskID | None = None

    def say(self, text: str) -> None:
        """Show one or more lines above the bar."""
        if self._task is not None:
            self._bar.console.print(terminal_lines(text), soft_wrap=True)
        else:
            say(text, err=True)

    def begin(self, total: int) -> None:
        """Show the bar for the first time."""
        self._total = total
        if self._terminal and total:
            self._bar.start()
            self._task = self._bar.add_task("answering", total=total)

    def done(self, name: str) -> None:
        """Advance the bar; `name`: the file of the result."""
        self._count += 1
        if self._task is not None:
            self._bar.update(self._task, advance=1, description=terminal(name))
        else:
            self.say(f"[{self._count}/{self._total}] {name}")

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._bar.stop()
            self._task = None
