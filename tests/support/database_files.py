"""DuckDB files with which many tests start: each is created once per process, and copied."""

import tempfile
from functools import cache
from pathlib import Path

import duckdb


@cache
def _made(statements: str) -> bytes:
    """Return the database file that the statements create. The result is always the same, so it is cached by their text."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "made.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.execute(statements)
        return file.read_bytes()


def create_database(file: Path, statements: str) -> None:
    """Write a database with what `statements` create to `file`. The statements must not read anything else."""
    file.write_bytes(_made(statements))
