"""Lists of quantiles over the wire are arrays, in text and binary format, for each driver."""

from __future__ import annotations

import asyncio

import asyncpg
import psycopg
import pytest
from support.served_clinic import Served

LISTS = (
    "SELECT sex, APPROX_QUANTILES(age, 2) AS ages, QUANTILE_CONT(bmi, [0.25, 0.75]) AS bmi FROM patients GROUP BY sex"
)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_psycopg_reads_a_list_of_quantiles_as_a_list(served: Served, binary: bool) -> None:
    with psycopg.connect(**served.place, autocommit=True) as connection:
        cursor = connection.cursor(binary=binary)
        rows = cursor.execute(LISTS).fetchall()
        assert cursor.description is not None
        assert [column.type_code for column in cursor.description][1:] == [1016, 1022]
    for _, ages, bmi in rows:
        assert ages == sorted(ages) and len(ages) == 3 and all(isinstance(age, int) for age in ages)
        assert len(bmi) == 2 and all(isinstance(value, float) for value in bmi)


def test_asyncpg_and_copy_read_the_same_list(served: Served) -> None:
    async def fetched() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=served.port, user="research", password=served.place["password"], database="nafld"
        )
        try:
            return list(await connection.fetch(LISTS))
        finally:
            await connection.close()

    rows = asyncio.run(fetched())
    with (
        psycopg.connect(**served.place, autocommit=True) as connection,
        connection.cursor().copy(f"COPY ({LISTS}) TO STDOUT") as copy,
    ):
        text = b"".join(bytes(part) for part in copy)
    first = rows[0]
    assert f"{{{','.join(map(str, first['ages']))}}}".encode() in text
