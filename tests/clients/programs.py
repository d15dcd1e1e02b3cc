"""Clients that are separate programs and do not come from PyPI.

Without a program, its tests are skipped with the reason; with `DPSQL_EVERY_CLIENT`, as `.ci/run` sets it, they fail instead.
"""

import os
import shutil
import subprocess
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path

import pytest


def needs(*programs: str) -> pytest.MarkDecorator:
    """Mark tests that run programs: commands, files, shared libraries as `lib:NAME`, or modules as `py:NAME`, `perl:NAME` and
    `ruby:NAME`."""
    reason = left_out(*programs)
    return pytest.mark.skipif(bool(reason), reason=reason)


def left_out(*programs: str) -> str:
    """Return the reason to skip tests that run these programs, or "" if they can run."""
    absent = [program for program in programs if not _is_there(program)]
    told = absent and "DPSQL_EVERY_CLIENT" not in os.environ
    return f"not on this machine: {', '.join(absent)}" if told else ""


_LOADING = {"perl": ["-e", "eval qq{require $ARGV[0]; 1} or die"], "ruby": ["-e", "require ARGV[0]"]}


def _is_there(program: str) -> bool:
    kind, _, name = program.partition(":")
    if kind == "lib":
        return find_library(name) is not None
    if kind == "py":
        return find_spec(name) is not None
    if kind in _LOADING:
        command = [kind, *_LOADING[kind], name]
        return (
            shutil.which(kind) is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0
        )
    return shutil.which(program) is not None or Path(program).is_file()
