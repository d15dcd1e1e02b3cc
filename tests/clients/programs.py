"""Clients that are separate programs and do not come from PyPI.

Without a program, its tests are skipped with the reason; with `DPSQL_EVERY_CLIENT`, as `.ci/run` sets it, they fail instead.
"""

from __future__ import annotations

import os
import shutil
from ctypes.util import find_library
from pathlib import Path

import pytest


def needs(*programs: str) -> pytest.MarkDecorator:
    """Mark tests that run programs (commands, files, or shared libraries as `lib:NAME`)."""
    reason = left_out(*programs)
    return pytest.mark.skipif(bool(reason), reason=reason)


def left_out(*programs: str) -> str:
    """Return the reason to skip tests that run these programs, or "" if they can run."""
    absent = [program for program in programs if not _is_there(program)]
    told = absent and "DPSQL_EVERY_CLIENT" not in os.environ
    return f"not on this machine: {', '.join(absent)}" if told else ""


def _is_there(program: str) -> bool:
    kind, _, name = program.rpartition(":")
    if kind == "lib":
        return find_library(name) is not None
    return shutil.which(name) is not None or Path(name).is_file()
