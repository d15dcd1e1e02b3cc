"""`dpsql watch`: a stream of counts or sums against a threshold; only what is above it is paid for."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsql.errors.exceptions import Error, Exit
from dpsql.frontends.cli.options import COUNT, PATH, FiniteRange, option, session_options
from dpsql.frontends.cli.shared import SessionOptions
from dpsql.frontends.files import read_text
from dpsql.frontends.rendering.terminal import say, say_json

if TYPE_CHECKING:
    from dpsql.frontends.watch import Comparison, Watch
    from dpsql.release.release import Receipt
    from dpsql.sql.lexer import Piece


@click.command()
@session_options
@option("--threshold", "The number with which counts and sums are compared.", "T", required=True)
@option("--hits", "The most runs that may be paid for, in total.", COUNT, default=1)
@option("--name", "The name under which the ledger counts the runs; by default that of the file.", "NAME")
@option("--values", "Also show how large the sums above the threshold are, with error bars, at no extra price.")
@option(
    "--every",
    "Start the file again after this time, until all runs are over.",
    FiniteRange(0, 86400),
    metavar="SECONDS",
)
@option("-f --format", "The format of the output.", ("text", "json"), default="text")
@click.argument("file", type=PATH)
@click.pass_context
def watch(
    context: click.Context, *, chosen: SessionOptions, threshold: str, hits: int, name: str | None, values: bool,
    every: float | None, format: str, file: Path,
) -> None:  # fmt: skip
    """Compare the counts and sums of FILE with a threshold, one after the other, until --hits of them are above it.

    Each statement is one COUNT or one SUM. A run costs --epsilon and makes many comparisons: it is charged when it
    starts, and ends with the first number above the threshold. All statements are checked before anything is charged. If
    the watch is stopped and started again, it pays for another run, but never for more than --hits in total.
    """
    from dpsql.frontends.watch import Watch
    from dpsql.sql.split import split_file

    pieces = split_file(read_text(file))
    if not pieces:
        raise click.UsageError(f"{file} has no statement")
    with chosen.open() as session:
        watching = Watch(session, threshold, hits, name or _name_of(file))
        if not _are_comparable(watching, pieces, file):
            context.exit(Exit.REFUSAL)
        watching.expect(pieces)
        plan = watching.explain(pieces[0])
        say(f"a run costs {plan.price}; at most {hits} in all; {plan.notes[-1]}", err=True)
        while True:
            for piece in pieces:
                comparison = watching.ask(piece)
                _write(comparison, piece, f"{file}:{piece.line}", values, format)
                _tell(comparison.release.receipt, comparison.under_way)
                if comparison.is_last:
                    return
            if every is None:
                return
            time.sleep(every)


def _are_comparable(watching: Watch, pieces: Sequence[Piece], file: Path) -> bool:
    """Return whether all statements can be compared; print each refusal with its place. Nothing is charged."""
    refused = 0
    for piece in pieces:
        try:
            watching.explain(piece)
        except Error as error:
            say(f"{file}:{piece.line}: {error.text()}", err=True)
            refused += 1
    if refused:
        say(f"{refused} of the statements cannot be compared; nothing was run", err=True)
    return not refused


def _tell(receipt: Receipt, under_way: bool) -> None:
    """Print what was charged, and the state of the watch if it has changed."""
    if receipt.charged != "nothing" or not under_way:
        for line in (f"charged: {receipt.charged}", *receipt.notices):
            say(line, err=True)


def _name_of(file: Path) -> str:
    """Return the name of a file, with only the characters that the name of a watch may have."""
    letters = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "_-.") else "-" for letter in file.stem
    )
    return letters[:40] or "default"


def _write(comparison: Comparison, piece: Piece, place: str, values: bool, format: str) -> None:
    if format == "json":
        facts = {"place": place, "sql": " ".join(piece.sql.split()), "above": comparison.above}
        parts = {"value": comparison.value, "error": comparison.error} if values else {}
        say_json({**facts, **parts})
        return
    answer = "above" if comparison.above else "below"
    if values and comparison.value is not None and comparison.error is not None:
        digits = max(0, 1 - math.floor(math.log10(comparison.error))) if comparison.error > 0 else 0
        answer += f"  {comparison.value:,.{digits}f} +/- {comparison.error:,.{digits}f}"
    say(f"{answer}\t{place}\t{' '.join(piece.sql.split())}")
