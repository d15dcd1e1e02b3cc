"""Checks in separate environments: `nox -s lint`, `nox -s tests`, `nox -s coverage`, `nox -s oldest`, `nox -s duckdb`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import nox

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
nox.options.sessions = ["lint", "tests"]


@nox.session(python="3.11")
def lint(session: nox.Session) -> None:
    """Run the linters and the type checker."""
    session.install("-e", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    """Run the suite with the newest libraries that the project allows."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-n", "2", "-m", "not nightly", *session.posargs)


@nox.session(python="3.11")
def coverage(session: nox.Session) -> None:
    """Run the suite and print the share of the package's lines and branches that it covers."""
    session.install("-e", ".[test]")
    session.run(
        "python",
        "-m",
        "pytest",
        "-n",
        "2",
        "-m",
        "not clients and not nightly",
        "--cov=dpsql",
        "--cov=dpsql_audit",
        "--cov-report=term:skip-covered",
        *session.posargs,
    )


@nox.session(python="3.11")
def oldest(session: nox.Session) -> None:
    """Run the suite with the oldest libraries that the project allows."""
    session.install("-e", ".[test]")
    session.install(*(re.sub(r">=([^,]+).*", r"==\1", requirement) for requirement in PROJECT["dependencies"]))
    session.run("python", "-m", "pytest", "-n", "2", "-m", "not nightly", *session.posargs)


@nox.session(python="3.11")
@nox.parametrize("version", ["1.4", "2.0"])
def duckdb(session: nox.Session, version: str) -> None:
    """Run the suite with one DuckDB release series."""
    session.install("-e", ".[test]")
    session.install(f"duckdb=={version}.*")
    session.run("python", "-m", "pytest", "-n", "2", "-m", "not nightly", *session.posargs)
