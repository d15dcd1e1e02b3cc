"""The one command: `python -m benchmarks`. Numbers go to the folder of --out, progress to stderr."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import click

from benchmarks.data import LEVELS
from benchmarks.fixed_cost import fixed_cost
from benchmarks.measure import run
from benchmarks.report import write
from benchmarks.workload import WORKLOAD

SIZES = (1_000, 1_000_000, 10_000_000)


def _say(line: str) -> None:
    click.echo(line, err=True)


@click.command()
@click.option("--rows", multiple=True, type=click.IntRange(min=1), help="table size; may be repeated [1e3, 1e6, 1e7]")
@click.option("--level", multiple=True, type=click.Choice(LEVELS), help="privacy unit; may be repeated [both]")
@click.option("--question", multiple=True, type=click.Choice([q.name for q in WORKLOAD]), help="may be repeated [all]")
@click.option("--repeat", default=7, show_default=True, type=click.IntRange(min=1), help="pairs of each question")
@click.option("--fixed/--no-fixed", default=True, show_default=True, help="also the fixed cost, step by step")
@click.option("--data", type=click.Path(path_type=Path), help="folder that keeps the generated data between runs")
@click.option("--out", default="benchmarks/results", show_default=True, type=click.Path(path_type=Path))
def main(
    *,
    rows: tuple[int, ...],
    level: tuple[str, ...],
    question: tuple[str, ...],
    repeat: int,
    fixed: bool,
    data: Path | None,
    out: Path,
) -> None:
    """Time the workload on plain DuckDB and on dpsql, in turn, and write results.json and results.md."""
    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    asked = [one for one in WORKLOAD if not question or one.name in question]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if data is None else data
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["DPSQL_STATE"] = str(folder / "state")  # the heads of these ledgers stay with them
        timings = run(folder, asked, sizes=rows or SIZES, levels=level or LEVELS, repeat=repeat, say=_say)
        costs = fixed_cost(folder, max(repeat, 20) if repeat > 1 else 1) if fixed else []
    for path in write(out, command, timings, costs):
        _say(f"wrote {path}")


if __name__ == "__main__":
    main()
