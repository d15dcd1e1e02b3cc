"""Out-of-core queries: a hundred million rows of Parquet under a memory limit; and the growth of cost with rows, groups and
units."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks.clock import in_turn, summary
from benchmarks.data import build, build_parquet, table_policy
from benchmarks.measure import Prepared, Say, answer, opened, plain, run
from benchmarks.wide import COLUMNS as VISIT_COLUMNS
from benchmarks.wide import build_visits
from benchmarks.workload import WORKLOAD
from dpsql.session.session import open_session

MEMORY = "4GiB"
ROOM = 200
"""Bytes of disk per row: Parquet (10), two copies (30 each), and what a window over all rows spills."""
GROUPED = {
    10: "shop // 100", 100: "shop // 10", 1_000: "shop", 10_000: "shop, article // 100", 100_000: "shop, article // 10",
    1_000_000: "shop, article",
}  # fmt: skip
"""Number of groups -> GROUP BY over `visits`."""
AGGREGATES, WIDTHS = (1, 5, 10, 20, 40), (10, 40, 160)
SUM = "SELECT sum(amount) AS total FROM owned"
USERS = "SELECT count(DISTINCT user_id) AS n FROM owned"
OWNED_COLUMNS = (
    "user_id: {type: integer, nullable: false}",
    "amount: {type: real, lower: 0, upper: 100, nullable: false}",
)


@dataclass(frozen=True)
class Point:
    """One point of a growth curve: milliseconds of a query in one way at `x` rows, groups or units."""

    axis: str
    x: int
    way: str
    median: float
    cpu: float


def large(folder: Path, rows: int, repeat: int, say: Say) -> dict[str, Any]:
    """Run the workload at `rows` rows of Parquet, under row privacy and prepared by a copy, and Q4 once unprepared."""
    free = shutil.disk_usage(folder).free
    if free < rows * ROOM:
        raise OSError(f"{rows:,} rows need about {rows * ROOM / 1e9:.0f} GB in {folder}, which has {free / 1e9:.0f} GB")
    say(f"writing {rows:,} rows")
    data = build_parquet(folder, rows)
    say(f"{data.stat().st_size / 1e9:.2f} GB of Parquet")
    asked = [question for question in WORKLOAD if question.name != "Q8"]
    timings, prepared = run(
        folder,
        asked,
        sizes=[rows],
        ways=["row", "row_copy", "copy"],
        repeat=repeat,
        say=say,
        parquet=True,
        memory=MEMORY,
    )
    by_region = [question for question in asked if question.name == "Q4"]
    slow, _ = run(folder, by_region, sizes=[rows], ways=["unprepared"], repeat=1, say=say, parquet=True, memory=MEMORY)
    return {
        "rows": rows,
        "memory": MEMORY,
        "file_gb": data.stat().st_size / 1e9,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "timings": [asdict(one) for one in [*timings, *slow]],
        "prepared": [asdict(one) for one in prepared],
    }


def growth(folder: Path, most: int, repeat: int, say: Say) -> list[Point]:
    """Measure curves over rows (up to `most`), groups and units (at `most` rows), aggregates and columns (at a tenth)."""
    points = [*_by_rows(folder, most, repeat), *_by_groups(folder, most, repeat), *_by_units(folder, most, repeat)]
    points += _by_width(folder, max(1, most // 10), repeat)
    for point in points:
        say(f"{point.x:>12,} {point.axis}, {point.way}: {point.median:.1f} ms")
    return points


def slope(points: Sequence[Point]) -> float:
    """Return the exponent of growth: the slope of a line through the last three points of log(milliseconds) over log(x)."""
    last = sorted(points, key=lambda point: point.x)[-3:]
    if len(last) < 2:
        return float("nan")
    return float(np.polyfit(np.log([point.x for point in last]), np.log([point.median for point in last]), 1)[0])


def _by_rows(folder: Path, most: int, repeat: int) -> list[Point]:
    """Measure COUNT, SUM and AVG by region at a thousandth, a hundredth, a tenth and all of `most` rows."""
    (question,) = [question for question in WORKLOAD if question.name == "Q4"]
    points = []
    for rows in sorted({max(1, most // 10**power) for power in range(4)}):
        data = build(folder, rows)
        made: list[Prepared] = []
        with (
            plain(data, folder) as raw,
            opened(folder, data, ["row", "row_copy", "copy", "unprepared"], rows, made) as sessions,
        ):
            ways: dict[str, Callable[[], object]] = {"raw": partial(_fetch, raw, question.sql)}
            ways |= {way: partial(answer, session, question.sql) for way, session in sessions.items()}
            points += _points("rows", rows, ways, repeat)
            points += [
                Point("rows", rows, "prepare", one.milliseconds, one.cpu)
                for one in made
                if one.way == "copy" and one.state == "written"
            ]
    return points


def _by_groups(folder: Path, rows: int, repeat: int) -> list[Point]:
    """Measure COUNT and SUM of a fixed number of rows in 10 to a million public groups."""
    side = 1_000
    data = build_visits(folder, rows, side)
    columns = tuple(column.format(last=side - 1) for column in VISIT_COLUMNS)
    policy = table_policy(folder, f"growth-{data.stem}", "visits", data, columns, None)
    points = []
    with (
        duckdb.connect(str(data), read_only=True) as raw,
        open_session(policy, create_ledger=True) as session,
    ):
        session.execute("SET dp.reuse = off")
        for groups, keys in GROUPED.items():
            named = ", ".join(f"{key} AS k{at}" for at, key in enumerate(keys.split(", ")))
            sql = f"SELECT {named}, count(*) AS n, sum(amount) AS total FROM visits GROUP BY ALL"
            ways: dict[str, Callable[[], object]] = {
                "raw": partial(_fetch, raw, sql),
                "row": partial(answer, session, sql),
            }
            points += _points("groups", groups, ways, repeat)
    return points


def _by_units(folder: Path, rows: int, repeat: int) -> list[Point]:
    """Measure SUM and COUNT DISTINCT of `rows` rows that belong to between `rows` / 10,000 and `rows` users."""
    points = []
    for users in sorted({max(1, rows // 10**power) for power in range(5)}):
        data = _owned(folder, rows, users)
        with duckdb.connect(str(data), read_only=True) as raw:
            ways: dict[str, Callable[[], object]] = {
                "raw": partial(_fetch, raw, SUM),
                "raw users": partial(_fetch, raw, USERS),
            }
            most = max(1, rows // users)
            policies = {
                way: table_policy(folder, f"{data.stem}-{way}", "owned", data, OWNED_COLUMNS, most)
                for way in ("unprepared", "copy")
            }
            with (
                open_session(policies["unprepared"], create_ledger=True) as slow,
                open_session(policies["copy"], create_ledger=True) as fast,
            ):
                fast.context.index.prepare()
                for session in (slow, fast):
                    session.execute("SET dp.reuse = off")
                ways |= {
                    "copy": partial(answer, fast, SUM), "copy users": partial(answer, fast, USERS),
                    "unprepared": partial(answer, slow, SUM),
                }  # fmt: skip
                points += _points("units", users, ways, repeat)
        data.unlink()
        for index in [data.with_name(f"{data.name}.bounded"), *folder.glob(f"cache/{data.stem.replace('-', '_')}*")]:
            shutil.rmtree(index, ignore_errors=True)
    return points


def _by_width(folder: Path, rows: int, repeat: int) -> list[Point]:
    """Measure 1 to 40 averages of a table with 40 columns, and one average of tables with 10 to 160 columns."""
    points = []
    for columns in WIDTHS:
        data, table = folder / f"columns-{rows}-{columns}.duckdb", f"columns_{columns}"
        data.unlink(missing_ok=True)
        with duckdb.connect(str(data)) as connection:
            values = ", ".join(f"(hash(i, {number}) % 1000) / 10.0 AS c{number}" for number in range(columns))
            users = f"CAST(hash(i) % {max(1, rows // 20)} AS BIGINT) AS user_id"
            connection.execute(f"CREATE TABLE {table} AS SELECT {users}, {values} FROM range({rows}) AS t(i)")
        declared = [f"c{number}: {{type: real, lower: 0, upper: 100}}" for number in range(columns)]
        policies = {
            way: table_policy(folder, f"{data.stem}-{way}", table, data, (OWNED_COLUMNS[0], *declared), 20)
            for way in ("unprepared", "copy")
        }
        with (
            duckdb.connect(str(data), read_only=True) as raw,
            open_session(policies["unprepared"], create_ledger=True) as slow,
            open_session(policies["copy"], create_ledger=True) as fast,
        ):
            fast.context.index.prepare()
            for session in (slow, fast):
                session.execute("SET dp.reuse = off")
            for axis, count in [("columns", 1), *(("aggregates", n) for n in AGGREGATES if columns == AGGREGATES[-1])]:
                sql = f"SELECT {', '.join(f'avg(c{number}) AS a{number}' for number in range(count))} FROM {table}"
                ways: dict[str, Callable[[], object]] = {
                    "raw": partial(_fetch, raw, sql),
                    "copy": partial(answer, fast, sql),
                    "unprepared": partial(answer, slow, sql),
                }
                points += _points(axis, columns if axis == "columns" else count, ways, repeat)
        data.unlink()
        shutil.rmtree(data.with_name(f"{data.name}.bounded"), ignore_errors=True)
    return points


def _owned(folder: Path, rows: int, users: int) -> Path:
    path = folder / f"owned-{rows}-{users}.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE TABLE owned AS SELECT CAST(hash(i) % {users} AS BIGINT) AS user_id, "
            f"(hash(5 * i + 3) % 10000) / 100.0 AS amount FROM range({rows}) AS t(i)"
        )
    return path


def _fetch(connection: duckdb.DuckDBPyConnection, sql: str) -> object:
    return connection.sql(sql).to_arrow_table()


def _points(axis: str, x: int, ways: dict[str, Callable[[], object]], repeat: int) -> list[Point]:
    few = {"unprepared": 1}
    for way, work in ways.items():
        if way not in few:
            work()
    samples = in_turn(ways, repeat, few)
    return [Point(axis, x, way, summary(found).median, summary(found).cpu) for way, found in samples.items()]
