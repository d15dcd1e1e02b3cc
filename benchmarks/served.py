"""A served data set under many clients: processor time of the server and waiting of the clients, beside a plain door.

`python -m benchmarks.served [--rows 1000000] [--clients 1 --clients 16 --clients 64] [--rounds 3]` serves prepared purchases with
`dpsql serve` and the same file with `benchmarks.plain_door`, and lets clients ask both in turn, each with another constant every
time. Processor time is that of the server's processes (Linux), so that other work on the machine hardly affects it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import click

from benchmarks.clients import QUESTIONS
from benchmarks.data import build, write_policy
from benchmarks.servers import seconds_of
from dpsql.frontends.pgwire.logins import open_logins
from dpsql.ledger import open_ledger
from dpsql.policy import load_policy
from dpsql.session.session import open_session

CATALOG = (
    "SELECT c.relname, a.attname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid "
    "WHERE c.relname = 'purchases' AND a.attnum > 0 ORDER BY a.attnum"
)
KINDS = {
    "SELECT 1": ("SELECT 1",),
    "catalog": (CATALOG,),
    "stored": tuple(text.format(literal=7) for text in QUESTIONS),
    "charged": QUESTIONS,
}
"""Texts of each kind of question, which are asked in turn; {literal}: another number each time."""


@dataclass(frozen=True)
class Load:
    """Questions of one kind by many clients: questions a second, processor milliseconds of the server for each, and
    milliseconds that the clients waited in the middle and for the slowest hundredth."""

    kind: str
    clients: int
    per_second: float
    cpu: float
    middle: float
    slowest: float


@contextmanager
def private_server(folder: Path, rows: int) -> Iterator[tuple[str, int]]:
    """Serve prepared purchases with dpsql; yield its URL and its process."""
    policy = write_policy(folder, build(folder, rows), "row_copy")
    policy.write_text(
        f"{policy.read_text(encoding='utf-8')}analysts: {{research: {{epsilon: 10000}}}}\n", encoding="utf-8"
    )
    with open_session(policy, create_ledger=True) as session:
        session.context.index.prepare()
    loaded, password = load_policy(policy), secrets.token_urlsafe()
    with open_ledger(loaded.ledger_url(), loaded.dataset) as ledger:
        open_logins(ledger, loaded).add("research", password)
    command = [sys.executable, "-m", "dpsql", "serve", "-p", str(policy), "--listen", "127.0.0.1:0"]
    with _process(command, stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        address = server.stderr.readline().split(" on ")[1].split(",")[0].split()[0]
        # A server writes a line for each login, and waits when nobody reads them.
        threading.Thread(target=server.stderr.read, daemon=True).start()
        yield f"postgresql://research:{quote(password)}@{address}/{loaded.dataset}", server.pid


@contextmanager
def plain_server(folder: Path, rows: int) -> Iterator[tuple[str, int]]:
    """Serve the same file without protection; yield its URL and its process."""
    command = [sys.executable, "-m", "benchmarks.plain_door", str(build(folder, rows))]
    with _process(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        yield f"postgresql://anyone@127.0.0.1:{server.stdout.readline().strip()}/plain?sslmode=disable", server.pid


@contextmanager
def _process(command: list[str], **pipes: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, text=True, **pipes) as server:  # type: ignore[call-overload]
        try:
            yield server
        finally:
            server.terminate()


async def load(address: str, server: int, kind: str, clients: int, seconds: float) -> Load:
    """Let `clients` connections ask questions of one kind, each as soon as the one before is answered."""
    literals = itertools.count(time.time_ns())
    connections = await asyncio.gather(*(asyncpg.connect(address) for _ in range(clients)))
    waited: list[float] = []

    async def ask(connection: Any, number: int, end: float) -> None:
        for turn in itertools.count(number):
            text = KINDS[kind][turn % len(KINDS[kind])].format(literal=next(literals))
            start = time.perf_counter()
            if start >= end:
                return
            await connection.execute(text)
            waited.append((time.perf_counter() - start) * 1000)

    async def round_of(length: float) -> float:
        waited.clear()
        start = time.perf_counter()
        await asyncio.gather(
            *(ask(connection, number, start + length) for number, connection in enumerate(connections))
        )
        return time.perf_counter() - start

    try:
        await round_of(seconds / 4)
        before = seconds_of(server)
        length = await round_of(seconds)
        used = seconds_of(server) - before
    finally:
        for connection in connections:
            connection.terminate()
    slowest = statistics.quantiles(waited, n=100)[-1] if len(waited) > 1 else waited[0]
    return Load(kind, clients, len(waited) / length, used * 1000 / len(waited), statistics.median(waited), slowest)


def table(loads: dict[str, list[Load]]) -> str:
    """Return the medians of the rounds as Markdown: a row for each kind and number of clients. `loads`: those of dpsql and of the
    plain door (`plain`), in the same order."""
    lines = [
        "| questions | clients | a second | of the plain door | processor ms | plain | median ms | slowest hundredth |",
        "| --- " * 8 + "|",
    ]
    for kind, clients in dict.fromkeys((load.kind, load.clients) for load in loads["dpsql"]):
        own, plain = (
            [load for load in loads[side] if (load.kind, load.clients) == (kind, clients)]
            for side in ("dpsql", "plain")
        )
        share = (
            statistics.median(a.per_second / b.per_second for a, b in zip(own, plain, strict=True)) if plain else None
        )
        cells = [
            kind,
            str(clients),
            f"{_middle(own, 'per_second'):,.0f}",
            "" if share is None else f"{share:.2f}",
            f"{_middle(own, 'cpu'):.2f}",
            "" if share is None else f"{_middle(plain, 'cpu'):.2f}",
            f"{_middle(own, 'middle'):.1f}",
            f"{_middle(own, 'slowest'):.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _middle(loads: list[Load], name: str) -> float:
    return statistics.median(getattr(load, name) for load in loads)


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, type=click.IntRange(min=1))
@click.option("--clients", multiple=True, default=(1, 16, 64), show_default=True, type=click.IntRange(min=1))
@click.option("--kind", "kinds", multiple=True, default=tuple(KINDS), type=click.Choice(tuple(KINDS)))
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1), help="How often both are asked.")
@click.option("--seconds", default=5.0, show_default=True, type=float, help="How long one round is.")
def main(rows: int, clients: tuple[int, ...], kinds: tuple[str, ...], rounds: int, seconds: float) -> None:
    """Print a table of both servers under load."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        os.environ["DPSQL_STATE"] = str(folder / "state")
        sides = {
            "dpsql": stack.enter_context(private_server(folder, rows)),
            "plain": stack.enter_context(plain_server(folder, rows)),
        }
        loads: dict[str, list[Load]] = {side: [] for side in sides}
        for _ in range(rounds):
            for kind, many in itertools.product(kinds, clients):
                for side, (address, process) in sides.items():
                    if side == "dpsql" or kind != "catalog":  # the plain door has no catalogs of PostgreSQL
                        loads[side].append(asyncio.run(load(address, process, kind, many, seconds)))
        click.echo(table(loads))


if __name__ == "__main__":
    main()
