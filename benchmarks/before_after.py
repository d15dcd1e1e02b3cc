"""The fixed cost of a query before and after a change: two commits, alternating over 1,000 rows, in processor time.

`python -m benchmarks.before_after BASE` checks BASE out next to this tree, runs several kinds of query on both in separate
processes, and prints for each kind the ratio of processor times (after / before) with a 99 % confidence interval. It exits with 1
if a whole interval is above 1.03. Processor time can be measured on a busy machine, wall time cannot.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click
from scipy.stats import t as student

from benchmarks.fixed_cost import QUESTION

ROOT = Path(__file__).parent.parent
PAIRS, ASKED, WARM = 30, 20, 10
MOST, CONFIDENCE = 1.03, 0.99
WHOLE = "SELECT count(*) AS n, sum(amount) AS total FROM purchases WHERE items < {literal}"
MEANS = "SELECT region, count(*) AS n, avg(amount) AS mean FROM purchases WHERE amount < {literal}"
SHARES = "SELECT region, 100.0 * count(*) / sum(count(*)) OVER () AS share FROM purchases WHERE items < {literal} GROUP BY region"
KINDS = {
    "one row": ("row", WHOLE, ()),
    "groups": ("row", QUESTION, ()),
    "groups of users, prepared": ("copy", QUESTION, ()),
    "means of groups of groups": ("row", f"{MEANS} GROUP BY region, items", ()),
    "noise chooses rows": ("row", f"{MEANS} GROUP BY region HAVING n > 5 ORDER BY mean DESC LIMIT 10", ()),
    "shares of a total": ("row", SHARES, ()),
    "medians": ("row", "SELECT region, MEDIAN(items) AS m FROM purchases WHERE amount < {literal} GROUP BY region", ()),
    "stored answer": ("row", QUESTION.format(literal=7), ("SET dp.reuse = on",)),
    "EXPLAIN": ("row", f"EXPLAIN {QUESTION}", ()),
}
"""Kinds of queries: the entry of `data.WAYS`, the text ({literal}: another number each time), and the settings before it."""
ASKER = """
import sys, time
from itertools import count
from pathlib import Path
from benchmarks.data import build, write_policy
from dpsql.session.session import open_session
folder = Path(sys.argv[1])
database = build(folder, 1000)
sessions, literals = {}, count(time.time_ns())
for line in sys.stdin:
    way, asked, text, *settings = line.rstrip("\\n").split("\\t")
    if (way, *settings) not in sessions:
        session = sessions[way, *settings] = open_session(write_policy(folder, database, way), create_ledger=True)
        if way == "copy":
            session.context.index.prepare()
        for setting in settings:
            session.execute(setting)
    session = sessions[way, *settings]
    texts = [text.format(literal=next(literals)) for _ in range(int(asked))]
    begun = time.process_time()
    for question in texts:
        session.execute(question).remarks  # with its error bars, as every door but a bare fetchall computes them
    print(repr((time.process_time() - begun) * 1000 / int(asked)), flush=True)
"""
"""A program that reads kinds of queries, one per line, and prints the milliseconds of processor time of one query of that
kind."""


@dataclass(frozen=True)
class Change:
    """The ratio of processor times of one kind of query after and before a change, and its confidence interval."""

    kind: str
    before: float
    after: float
    ratio: float
    low: float
    high: float

    @property
    def is_slower(self) -> bool:
        """Return whether the whole interval is above `MOST`."""
        return self.low > MOST


def change_of(kind: str, before: Sequence[float], after: Sequence[float]) -> Change:
    """Return the geometric mean of the ratios of pairs, at least two, with an interval from Student's t distribution of their
    logarithms."""
    logs = [math.log(new / old) for old, new in zip(before, after, strict=True)]
    middle = statistics.fmean(logs)
    half = student.ppf((1 + CONFIDENCE) / 2, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    ends = (math.exp(middle + sign * half) for sign in (0, -1, 1))
    return Change(kind, statistics.median(before), statistics.median(after), *ends)


class Asker:
    """A process that runs queries of one tree."""

    def __init__(self, tree: Path, folder: Path) -> None:
        """Start the process. `folder`: an empty folder for data and ledger."""
        folder.mkdir()
        environment = {**os.environ, "PYTHONPATH": str(tree), "DPSQL_STATE": str(folder / "state")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", ASKER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=tree,
        )

    def milliseconds(self, kind: str, asked: int = ASKED) -> float:
        """Return the mean processor time of `asked` queries, in milliseconds. Raises RuntimeError if the process has ended."""
        way, text, settings = KINDS[kind]
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\t".join((way, str(asked), text, *settings)) + "\n")
        self.process.stdin.flush()
        printed = self.process.stdout.readline()
        if not printed:
            raise RuntimeError(f"no answer to: {kind}")
        return float(printed)

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def compared(trees: tuple[Path, Path], folder: Path, pairs: int) -> list[Change]:
    """Return the change of each kind of query from the first tree to the second. The trees alternate in being first in a pair."""
    with ExitStack() as stack:
        askers = [Asker(tree, folder / str(number)) for number, tree in enumerate(trees)]
        for asker in askers:
            stack.callback(asker.close)
        changes = []
        for kind in KINDS:
            for asker in askers:
                asker.milliseconds(kind, WARM)
            times: tuple[list[float], list[float]] = ([], [])
            for pair in range(pairs):
                for side in (0, 1) if pair % 2 else (1, 0):
                    times[side].append(askers[side].milliseconds(kind))
            changes.append(change_of(kind, *times))
        return changes


@click.command()
@click.argument("base")
@click.option("--pairs", type=click.IntRange(min=2), default=PAIRS, show_default=True)
def main(base: str, pairs: int) -> None:
    """Compare this tree with the commit BASE."""
    with tempfile.TemporaryDirectory() as name:
        before = Path(name) / "before"
        subprocess.run(["git", "clone", "-q", "-s", "-n", str(ROOT), str(before)], check=True)
        subprocess.run(["git", "checkout", "-q", base], check=True, cwd=before)
        changes = compared((before, ROOT), Path(name), pairs)
    for change in changes:
        held = f"{change.ratio:.3f} ({change.low:.3f} to {change.high:.3f})"
        click.echo(
            f"{change.kind:26} {change.before:6.2f} ms -> {change.after:6.2f} ms  {held}{'  slower' * change.is_slower}"
        )
    if any(change.is_slower for change in changes):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
