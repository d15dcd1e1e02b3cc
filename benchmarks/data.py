"""The data of the benchmarks, made up with a fixed seed, and the policies that protect it."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

REGIONS = 50
DAYS = 365
MERCHANTS = 10_000
ROWS_PER_USER = 20
MAX_ROWS = 60
FIRST_DAY = date(2024, 1, 1)
LEVELS = ("row", "user")
_CHUNK_ROWS = 1_000_000


def build(folder: Path, rows: int) -> Path:
    """A DuckDB file with the table `purchases` of `rows` rows; the same file for the same number of rows.

    Users are unequal: with u uniform in (0, 1), rows go to user floor(u**1.5 * users), so that a few have more than
    `MAX_ROWS` rows and most have fewer. One amount in fifty is NULL, a few lie outside the policy's bounds.
    """
    path = folder / f"purchases-{rows}.duckdb"
    if path.exists():
        return path
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with duckdb.connect(str(part)) as connection:
        for start in range(0, rows, _CHUNK_ROWS):
            chunk = _chunk(start, min(_CHUNK_ROWS, rows - start), rows)
            connection.register("chunk", chunk)
            verb = "INSERT INTO purchases" if start else "CREATE TABLE purchases AS"
            connection.execute(f"{verb} SELECT * FROM chunk")
            connection.unregister("chunk")
    part.rename(path)
    return path


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


def write_policy(folder: Path, database: Path, level: str) -> Path:
    """The policy file of a privacy unit: "row", or "user" (`max_rows` rows of each). The budget cannot run out."""
    unit = "row" if level == "row" else "{table: purchases, column: user_id}"
    most = "" if level == "row" else f"    max_rows: {MAX_ROWS}\n"
    regions = ", ".join(f"region-{at:05}" for at in range(REGIONS))
    last_day = FIRST_DAY + timedelta(days=DAYS - 1)
    path = folder / f"{database.stem}-{level}.yaml"
    path.write_text(
        f"dataset: purchases_{level}\n"
        f"source: duckdb:///{database.name}\n"
        f"privacy_unit: {unit}\n"
        "budget: {epsilon: 10000, delta: 1e-6, accountant: zcdp}\n"
        "per_query: {epsilon: 1, delta: 1e-9}\n"
        f"ledger: sqlite:///{database.stem}-{level}-ledger.db\n"
        "tables:\n"
        "  purchases:\n"
        f"{most}"
        "    columns:\n"
        "      user_id: {type: integer, nullable: false}\n"
        f"      region: {{type: text, domain: [{regions}], nullable: false}}\n"
        f"      day: {{type: date, lower: {FIRST_DAY}, upper: {last_day}, nullable: false}}\n"
        "      merchant: {type: text, nullable: false}\n"
        "      amount: {type: real, lower: 0, upper: 500}\n"
        "      items: {type: integer, lower: 0, upper: 20}\n",
        encoding="utf-8",
    )
    return path
