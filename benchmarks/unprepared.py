"""First and later questions over a source that nobody prepared, in processor time of the same query on plain DuckDB.

A first question counts the rows of each person and finds those that are left out; later ones over the same version of the source
leave out these rows. Each first question has a session of its own, over files that no session has read before.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.clock import timed
from benchmarks.data import REGIONS, ROWS_PER_USER, table_policy
from benchmarks.measure import Say, answer
from dpsql.engine.contribution_index import SETTLED_SECONDS
from dpsql.session.session import open_session

ROWS, FILES, LATER = 10_000_000, 8, 3
SUM = "SELECT sum(amount) AS total FROM owned"
BY_REGION = "SELECT region, sum(amount) AS total FROM owned GROUP BY region"
PEOPLE = {
    "Zipf": "hash(floor(exp(ln({people} * 2 + 1) * (hash(3 * i + 1) >> 11) / 9007199254740992))) % ({people} * 2 + 1)",
    "uniform": "hash(i) % {people}",
}
"""The person of row i: twenty rows each on average if uniform; by Zipf's law the first has about a twentieth of all."""
KEYS = {"integer": "CAST({person} AS BIGINT)", "text": "'patient-' || lpad(CAST({person} AS VARCHAR), 9, '0')"}


@dataclass(frozen=True)
class Case:
    """A source, the rows of its people and their keys, the cap, and what is asked under which setting."""

    source: str = "Parquet"
    people: str = "Zipf"
    key: str = "integer"
    most: int = 20
    sql: str = SUM
    setting: str = ""


CASES = (
    *(Case(people=people, key=key) for people in PEOPLE for key in KEYS),
    Case(most=100), Case(most=1_000), Case(people="uniform", most=100), Case("Parquet, 8 files"), Case("DuckDB"), Case("CSV"),
    Case(sql=BY_REGION), Case(sql=BY_REGION, setting="max_rows_per_group = 2"), Case(sql=BY_REGION, setting="max_groups = 5"),
    Case(setting="max_total = auto"),
)  # fmt: skip


@dataclass(frozen=True)
class Unprepared:
    """Milliseconds of processor time of plain DuckDB, of first and of later questions (medians), and the share of rows that
    belong to people with more than the cap."""

    source: str
    people: str
    key: str
    most: int
    asked: str
    rows: int
    share: float
    plain: float
    first: float
    later: float


def unprepared(folder: Path, repeat: int, say: Say, rows: int = ROWS) -> list[Unprepared]:
    """Measure every case `repeat` times, with the plain query before and after."""
    with _opened(folder, Case(), 1_000) as (_, ask):  # what a process loads at its first question
        ask()
    found = []
    for case in CASES:
        plain: list[float] = []
        first: list[float] = []
        later: list[float] = []
        for _ in range(repeat):
            with _opened(folder, case, rows) as (raw, ask):
                ask_raw = partial(_fetched, raw, case.sql)
                plain += [timed(ask_raw).cpu for _ in range(LATER)]
                first.append(timed(ask).cpu)
                later += [timed(ask).cpu for _ in range(LATER)]
                plain += [timed(ask_raw).cpu for _ in range(LATER)]
                above = f"coalesce(sum(n) FILTER (n > {case.most}), 0) / sum(n)"
                counts = "SELECT count(*) AS n FROM owned GROUP BY user_id"
                ((share,),) = _fetched(raw, f"SELECT {above} FROM ({counts})")
        asked = f"{'by region' if case.sql == BY_REGION else 'all'}{', ' * bool(case.setting)}{case.setting}"
        medians = map(statistics.median, (plain, first, later))
        found.append(Unprepared(case.source, case.people, case.key, case.most, asked, rows, share, *medians))
        say(str(found[-1]))
    return found


def _fetched(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


@contextmanager
def _opened(folder: Path, case: Case, rows: int) -> Iterator[tuple[duckdb.DuckDBPyConnection, Callable[[], object]]]:
    """Yield plain DuckDB with the table `owned`, and a function that asks a new session."""
    data = _written(folder, case, rows)
    columns = (
        f"user_id: {{type: {case.key}, nullable: false}}",
        f"region: {{type: integer, domain: [{', '.join(map(str, range(REGIONS)))}], nullable: false}}",
        "amount: {type: real, lower: 0, upper: 100, nullable: false}",
    )
    name = f"{data.name.replace('*', 'all').replace('.', '-')}-{case.most}"
    policy = table_policy(folder, name, "owned", data, columns, case.most, accountant="pure")
    is_database = data.suffix == ".duckdb"
    with duckdb.connect() as plain, open_session(policy, create_ledger=True) as session:
        plain.execute(
            f"ATTACH '{data}' AS plain (READ_ONLY); USE plain"
            if is_database
            else f"CREATE VIEW owned AS SELECT * FROM '{data}'"
        )
        session.execute("SET dp.reuse = off")
        if case.setting:
            session.execute(f"SET dp.{case.setting}")
        yield plain, partial(answer, session, case.sql)


def _written(folder: Path, case: Case, rows: int) -> Path:
    """Return the file or pattern of the files of a case; write them if they are not there."""
    ending = {"DuckDB": "duckdb", "CSV": "csv"}.get(case.source, "parquet")
    files = FILES if case.source.endswith("files") else 1
    name = f"unprepared-{rows}-{case.people.lower()}-{case.key}"
    paths = [folder / f"{name}{f'-{number}' * (files > 1)}.{ending}" for number in range(files)]
    person = KEYS[case.key].format(person=PEOPLE[case.people].format(people=max(1, rows // ROWS_PER_USER)))
    values = f"CAST(hash(i + 7) % {REGIONS} AS INTEGER) AS region, (hash(5 * i + 3) % 10000) / 100.0 AS amount"
    for number, path in enumerate(paths):
        if path.exists():
            continue
        numbers = f"range({rows * number // files}, {rows * (number + 1) // files}) AS t(i)"
        select = f"SELECT {person} AS user_id, {values} FROM {numbers}"
        with duckdb.connect() as connection:
            if ending == "duckdb":
                connection.execute(f"ATTACH '{path}' AS made; CREATE TABLE made.owned AS {select}; DETACH made")
            else:
                connection.execute(f"COPY ({select}) TO '{path}' (FORMAT {ending})")
        time.sleep(2 * SETTLED_SECONDS)
    return paths[0] if files == 1 else folder / f"{name}-*.{ending}"
