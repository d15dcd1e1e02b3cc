"""The time that `dpsql audit` takes to detect each of many planted bugs: the table of docs/audit.md.

    PYTHONPATH=tests python -m guarantee.planted_bugs >> docs/audit.md      # an hour on two cores
    PYTHONPATH=tests python -m guarantee.planted_bugs "half the L1 sensitivity"

Each bug is a mutant of `mutants.py`, in a copy of the installed package. The owner's command runs in a separate process.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from support.places import POLICIES
from support.syntax_mutations import mutated

import dpsql
import dpsql_audit
from guarantee.mutants import MUTANTS, Mutant

SECONDS = 57
"""Processor time of the audit, so that it ends within a minute including its start; other processes may use the machine
meanwhile."""
COMMAND = "import time; from dpsql_audit import run; run.clock = time.process_time; from dpsql.frontends.cli import main; main()"
"""The owner's command, with `--seconds` counted in processor time."""

AUDIT = "guarantee/test_planted_bugs.py"
ROWS_OF_DATA = (
    "context.engine._connection.execute('SELECT count(*) FROM ' + next(iter(context.policy.tables))).fetchone()"
)
FURTHER = (
    Mutant("EXPLAIN counts rows", "session/explanation.py", "preview", "tuple((part.block.name for part in stored if part is not None))", f"(str({ROWS_OF_DATA}),)", AUDIT),
    Mutant("notices count rows", "session/notices.py", "condition_notices", "(*question.planned.counted_conditions, *unlisted)", f"(*question.planned.counted_conditions, str({ROWS_OF_DATA.replace('context.', 'question.context.')}))", AUDIT),
    Mutant("the catalog counts rows", "session/statements.py", "answer_statement", "[_table_row(table) for table in session.policy.visible.values()]", f"[(*_table_row(table)[:3], str({ROWS_OF_DATA.replace('context.', 'session.context.')})) for table in session.policy.visible.values()]", AUDIT),
    Mutant("a cast that fails at a value", "engine/duckdb/dialect.py", "_read", "f\"TRY_CAST({text} AS {('TIMESTAMP' if target is Type.DATE else TYPES[target])})\"", "f\"CAST({text} AS {('TIMESTAMP' if target is Type.DATE else TYPES[target])})\"", AUDIT),
    Mutant("a ledger that is gone is made anew", "ledger/opening.py", "open_ledger", "known_ledger(state, dataset, location.address)", "None", AUDIT),
    Mutant("an analyst's charge spares the data set", "session/charged.py", "Charge.reserve.reserved", "tuple((scope.name for scope in scopes))", "tuple((scope.name for scope in scopes))[-1:]", AUDIT),
    Mutant("restored without what may be lost", "ledger/backup.py", "restore", "_charge_lost(writer, lost)", "{}", AUDIT),
    Mutant("half the rows of a quantile", "pricing/rank_histograms.py", "RankHistogramPricing.moved", "rows_moved(caps, neighbours)", "replace(rows_moved(caps, neighbours), l1=max(1, rows_moved(caps, neighbours).l1 // 2))", AUDIT),
    Mutant("Laplace noise costs a tenth less rho", "privacy/mechanisms/laplace.py", "_up", "Fraction(ceil(value * _GRID), _GRID)", "Fraction(ceil(value * _GRID), _GRID) * 9 / 10", AUDIT),
    Mutant("a plan is charged for its first table", "planning/together.py", "_view", "Price(tuple(map(named, priced.price.blocks)), priced.price.loss, workloads)", "Price(tuple(map(named, priced.price.blocks)), priced.price.blocks[0].loss, workloads)", AUDIT),
    Mutant("sums of doubles", "engine/emit/emitter.py", "Emitter._term", "f'coalesce({total}, 0)'", "f'CAST(coalesce(sum(CAST({row} AS DOUBLE)){filtered}, 0) AS HUGEINT)'", AUDIT),
)  # fmt: skip


@dataclass(frozen=True)
class PlantedBug:
    """A mutant by its name, and the policy under which the owner runs the audit, with some of its texts replaced."""

    mutant: str
    policy: str = "hospital"
    changes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Hunt:
    """One run: its exit status, elapsed seconds, processor seconds, and the first finding (or the last line printed)."""

    status: int
    seconds: float
    processor_seconds: float
    words: str


def planted(name: str, folder: Path) -> Path:
    """Return `folder` with a copy of the installed package that has one bug of `MUTANTS`, or none ("")."""
    for package in (dpsql, dpsql_audit):
        shutil.copytree(Path(package.__file__).parent, folder / package.__name__)
    for mutant in (mutant for mutant in (*MUTANTS, *FURTHER) if mutant.name == name):
        place = folder / mutant.path
        place.write_text(mutated(place.read_text("utf-8"), mutant.function, mutant.old, mutant.new), "utf-8")
        return folder
    assert not name, f"no mutant is called {name}"
    return folder


def hunt(bug: PlantedBug, *more: str, seconds: int = SECONDS) -> Hunt:
    """Run the audit on a copy with the bug until it reports a finding."""
    with tempfile.TemporaryDirectory() as name:
        folder = planted(bug.mutant, Path(name))
        text = (POLICIES / f"{bug.policy}.yaml").read_text("utf-8")
        for old, new in bug.changes:
            assert old in text, f"the policy has no {old}"
            text = text.replace(old, new)
        policy = folder / "policy.yaml"
        policy.write_text(text, "utf-8")
        command = [sys.executable, "-c", COMMAND, "audit", "-p", str(policy), "--first", "--no-ledger"]
        own = {"PYTHONPATH": str(folder), "DPSQL_STATE": str(folder / "state"), "PYTHONWARNINGS": "ignore"}
        begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [*command, "--seconds", str(seconds), *more],
            cwd=folder,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        lines = [line for line in done.stdout.splitlines() if line.startswith("finding")] or [
            done.stderr.strip()[-300:]
        ]
        return Hunt(done.returncode, time.monotonic() - begun, used, lines[0])


FILES = ("patients", "visits", "labs", "regions", "prices")


def over_files(ending: str) -> tuple[tuple[str, str], ...]:
    """Return replacements that turn the hospital's policy into one whose tables are files."""
    own = [(f"\n  {table}:\n", f"\n  {table}:\n    source: {table}.{ending}\n") for table in FILES]
    return (("source: duckdb:///hospital.duckdb\n", ""), *own)


ZCDP = (("accountant: pure", "accountant: zcdp"),)
CHANGE_ONE = (("privacy_unit: {table", "neighbours: change_one\nprivacy_unit: {table"),)
BUGS = (
    PlantedBug("an analyst's charge spares the data set"),
    PlantedBug("charged without looking at the budget"),
    PlantedBug("data before the charge"),
    PlantedBug("the first stage alone is reserved"),
    PlantedBug("the engine's words in an error"),
    PlantedBug("a broken promise is overlooked"),
    PlantedBug("a release of other data"),
    PlantedBug("a cast that fails at a value"),
    PlantedBug("half the rows of a quantile"),
    PlantedBug("statistics of a Parquet file say that there is no NaN", changes=over_files("parquet")),
    PlantedBug("a record goes on while its quotes are odd", changes=over_files("csv")),
    PlantedBug("collations of columns kept"),
    PlantedBug("no clamp of reals"),
    PlantedBug("one row more of each unit"),
    PlantedBug("max_groups not enforced"),
    PlantedBug("every term gets the whole epsilon"),
    PlantedBug("Laplace scale a tenth too small"),
    PlantedBug("noise without a sign"),
    PlantedBug("noise on the first cell only"),
    PlantedBug("half the L1 sensitivity"),
    PlantedBug("terms of one law share their noise"),
    PlantedBug("threshold one lower"),
    PlantedBug("empty public keys dropped"),
    PlantedBug("unlisted keys kept"),
    PlantedBug("rows kept as they come"),
    PlantedBug("a window over everybody"),
    PlantedBug("ties of a window broken by the engine"),
    PlantedBug("entries of one term of a set", changes=ZCDP),
    PlantedBug("a mode is drawn with twice the epsilon"),
    PlantedBug("a unit has one row of a quantile"),
    PlantedBug("twice the epsilon of ranks"),
    PlantedBug("quantiles are not charged"),
    PlantedBug("a quantile moves like the nearer end"),
    PlantedBug("half of what a bit reveals", changes=ZCDP),
    PlantedBug("change one as add or remove", changes=CHANGE_ONE),
    PlantedBug("a distinct sum moves by one"),
    PlantedBug("no clamp above"),
    PlantedBug("all rows of each unit"),
    PlantedBug("max_rows_per_group not enforced"),
    PlantedBug("grouping sets charged once"),
    PlantedBug("one noise for all cells"),
    PlantedBug("seeded noise"),
    PlantedBug("keys admitted by rows"),
    PlantedBug("rows that cancel taken for the norm"),
    PlantedBug("a join repeats no row"),
    PlantedBug("rows of nobody are people"),
    PlantedBug("charges rounded down"),
    PlantedBug("spent forgotten"),
    PlantedBug("sums of doubles"),
    PlantedBug("EXPLAIN counts rows"),
    PlantedBug("notices count rows"),
    PlantedBug("the catalog counts rows"),
    PlantedBug("a ledger that is gone is made anew"),
    PlantedBug("restored without what may be lost"),
    PlantedBug("Laplace noise costs a tenth less rho", changes=ZCDP),
    PlantedBug("a plan is charged for its first table"),
    PlantedBug("L2 for L1"),
    PlantedBug("one group moves"),
    PlantedBug("one step of Linf"),
    PlantedBug("half of a clip"),
    PlantedBug("upper bound instead of both"),
    PlantedBug("union of the larger side"),
    PlantedBug("one row for each unit and key"),
    PlantedBug("a protected join repeats no row"),
    PlantedBug("rows that meet none are left out"),
    PlantedBug("a NULL is in two terms of a set"),
    PlantedBug("clipped by the largest group"),
    PlantedBug("clipped one step too far out"),
    PlantedBug("the first few rows are one"),
    PlantedBug("a distinct row is one of each unit"),
    PlantedBug("noise for running totals is a third too small"),
    PlantedBug("a unit touches a cell less"),
    PlantedBug("half of what noise for running totals reveals is free"),
    PlantedBug("rounding of y forgets a cell"),
    PlantedBug("a place too many"),
)


def main() -> None:
    """Print the table, or only the rows of the named bugs."""
    wanted = sys.argv[1:]
    print("| planted bug | found | processor seconds | what the audit says |\n| --- | --- | --- | --- |")
    for bug in BUGS:
        if not wanted or bug.mutant in wanted:
            done = hunt(bug)
            words = done.words.removeprefix("finding: ").replace("|", "/")[:90] if done.status == 1 else ""
            print(f"| {bug.mutant} | {'yes' if words else 'no'} | {done.processor_seconds:.0f} | {words} |", flush=True)


if __name__ == "__main__":
    main()
