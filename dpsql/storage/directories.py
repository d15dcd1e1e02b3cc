"""Directories of this user for dpsql's state, according to the XDG base directory specification.

They are the same on every system, and not those of the package platformdirs: it names others on macOS and ignores an XDG variable
that is not absolute, and a ledger whose witness is looked up elsewhere counts as never seen.
"""

from __future__ import annotations

import os
from pathlib import Path


class NoHomeDirectory(OSError):
    """The environment names no state directory, and this user has no home directory."""


def state_directory() -> Path:
    """Return `$DPSQL_STATE`, else `$XDG_STATE_HOME/dpsql`, else `~/.local/state/dpsql`. Raises NoHomeDirectory."""
    named = os.environ.get("DPSQL_STATE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_STATE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".local" / "state") / "dpsql"
    except RuntimeError as error:
        raise NoHomeDirectory("this user has no home directory") from error
