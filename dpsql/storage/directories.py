"""Directories of this user that hold dpsql's state, as the XDG base directory specification names them."""

from __future__ import annotations

import os
from pathlib import Path


class NoHomeDirectory(OSError):
    """No state directory is named in the environment and this user has no home directory."""


def state_directory() -> Path:
    """Return `$DPSQL_STATE`, else `$XDG_STATE_HOME/dpsql`, else `~/.local/state/dpsql`. Raises NoHomeDirectory."""
    own = os.environ.get("DPSQL_STATE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_STATE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".local" / "state") / "dpsql"
    except RuntimeError as error:
        raise NoHomeDirectory("this user has no home directory") from error
