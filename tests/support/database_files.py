"""DuckDB files that many tests begin with: each is made once in a process, and copied."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import duckdb


@cache
def _made(statements: str) -> bytes:
    """The file that the statements make of an empty one: the same each time, so its bytes are kept by their text."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "made.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.execute(statements)
        return file.read_bytes()


def create_database(file: Path, statements: str) -> None:
    """Write a database with what `statements` create to `file`. They read nothing but themselves."""
    file.write_bytes(_made(statements))
