"""Synthetic data of the benchmarks, generated with a fixed seed, and the policies that protect it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

REGIONS = 50
DAYS = 365
MERCHANTS = 10_000
ROWS_PER_USER = 20
MAX_ROWS = 60
FIRST_DAY = date(2024, 1, 1)
LAST_DAY = FIRST_DAY + timedelta(days=DAYS - 1)
WAYS = ("row", "row_copy", "unprepared", "copy", "in_place")
"""Privacy unit row, without and with an index; privacy unit user, without an index, with a copy (a few users have more rows than
MAX_ROWS), and in place (no one has more rows than the bound, which is larger)."""
_CHUNK_ROWS = 1_000_000


def region_names() -> list[str]:
    """Return all regions, the public keys."""
    return [f"region-{at:05}" for at in range(REGIONS)]


def build(folder: Path, rows: int) -> Path:
    """Write a DuckDB file with the table `purchases` of `rows` rows; the file depends only on the number of rows.

    Users are unequal: with u uniform in (0, 1), rows go to user floor(u**1.5 * users), so that a few have more than `MAX_ROWS`
    rows and most have fewer. One amount in fifty is NULL, a few lie outside the policy's bounds.
    """
    path = folder / f"purchases-{rows}.duckdb"
    if path.exists():
        return path
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with duckdb.connect(str(part)) as connection:
        for at, chunk in enumerate(chunks(rows)):
            connection.register("chunk", chunk)
            verb = "INSERT INTO purchases" if at else "CREATE TABLE purchases AS"
            connection.execute(f"{verb} SELECT * FROM chunk")
            connection.unregister("chunk")
    part.rename(path)
    return path


def build_parquet(folder: Path, rows: int) -> Path:
    """Write the same rows as a Parquet file, one chunk at a time."""
    path = folder / f"purchases-{rows}.parquet"
    if path.exists():
        return path
    part = path.with_suffix(".part")
    writer = None
    for chunk in chunks(rows):
        writer = writer or pq.ParquetWriter(part, chunk.schema, compression="zstd")
        writer.write_table(chunk)
    if writer is not None:
        writer.close()
    part.rename(path)
    return path


def chunks(rows: int) -> Iterator[pa.Table]:
    """Yield the rows, at most a million at a time."""
    for start in range(0, rows, _CHUNK_ROWS):
        yield _chunk(start, min(_CHUNK_ROWS, rows - start), rows)


def _chunk(start: int, count: int, rows: int) -> pa.Table:
    random = np.random.default_rng([start, rows])
    users = max(1, rows // ROWS_PER_USER)
    days = np.datetime64(FIRST_DAY) + random.integers(0, DAYS, count)
    amount = np.round(random.gamma(2.0, 30.0, count), 2)
    return pa.table(
        {
            "user_id": pa.array((random.random(count) ** 1.5 * users).astype(np.int64)),
            "region": _named("region", REGIONS, random.integers(0, REGIONS, count)),
            "day": pa.array(days, pa.date32()),
            "merchant": _named("merchant", MERCHANTS, random.integers(0, MERCHANTS, count)),
            "amount": pa.array(amount, pa.float64(), mask=random.random(count) < 0.02),
            "items": pa.array(random.integers(1, 20, count).astype(np.int32)),
        }
    )


def _named(word: str, count: int, codes: np.ndarray) -> pa.Array:
    names = pa.array([f"{word}-{at:05}" for at in range(count)])
    return names.take(pa.array(codes))


COLUMNS = (
    "user_id: {type: integer, nullable: false}",
    f"region: {{type: text, domain: [{', '.join(region_names())}], nullable: false}}",
    f"day: {{type: date, lower: {FIRST_DAY}, upper: {LAST_DAY}, nullable: false}}",
    "merchant: {type: text, nullable: false}",
    "amount: {type: real, lower: 0, upper: 500}",
    "items: {type: integer, lower: 0, upper: 20}",
)


def write_policy(folder: Path, data: Path, way: str, accountant: str = "zcdp") -> Path:
    """Write the policy file over `purchases` for one of `WAYS`."""
    most = {"row": None, "row_copy": None, "unprepared": MAX_ROWS, "copy": MAX_ROWS, "in_place": 10**6}[way]
    name = f"{data.name.replace('.', '-')}-{way}-{accountant}"
    return table_policy(folder, name, "purchases", data, COLUMNS, most, accountant=accountant)


def table_policy(
    folder: Path,
    name: str,
    table: str,
    data: Path,
    columns: tuple[str, ...],
    max_rows: int | None,
    *,
    accountant: str = "zcdp",
    epsilon: float = 1,
) -> Path:
    """Write a policy file over one table in the DuckDB or Parquet file `data`, with a budget that lasts for long.

    `max_rows` None: every row is a privacy unit; otherwise the column user_id identifies it.
    """
    kind = "duckdb:///" if data.suffix == ".duckdb" else ""
    lines = [
        f"dataset: {name.replace('-', '_')}",
        f"source: {kind}{data.name}",
        f"privacy_unit: {'row' if max_rows is None else f'{{table: {table}, column: user_id}}'}",
        f"budget: {{epsilon: 10000, delta: 1e-4, accountant: {accountant}}}",
        f"per_query: {{epsilon: {epsilon}, delta: 1e-9, timeout_seconds: 3600}}",
        f"ledger: sqlite:///{name}-ledger.db",
        "store: {analyst_mb: 2048}",  # answers of a million groups, none of which may give way to another
        "tables:",
        f"  {table}:",
        *([] if max_rows is None else [f"    max_rows: {max_rows}"]),
        "    columns:",
        *(f"      {column}" for column in columns),
    ]
    path = folder / f"{name}.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
