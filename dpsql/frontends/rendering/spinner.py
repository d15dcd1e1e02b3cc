"""A spinner on standard error while a question is being worked on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager


def spinner() -> AbstractContextManager[object]:
    """Return a context that shows on a terminal that a question is being worked on."""
    from rich.console import Console

    return Console(stderr=True).status("working on the data, Ctrl-C stops", spinner="line")


def waiting() -> Callable[[], AbstractContextManager[object]] | None:
    """Return `spinner` if there is a terminal to show it on."""
    return spinner if sys.stderr.isatty() else None
