"""The requested quantile may be a parameter, and choices among texts and dates have their types over the wire."""

import asyncio

import asyncpg
import psycopg
import pytest
from support.served_clinic import Served

SHARES = (
    "SELECT QUANTILE_CONT(age, $1) AS q FROM patients",
    "SELECT PERCENTILE_DISC($1) WITHIN GROUP (ORDER BY age) AS q FROM patients",
    "SELECT percentile_approx(age, $1, 100) AS q FROM patients",
    "SELECT APPROX_QUANTILE(age, $1) AS q FROM patients WHERE age > $2",
)


@pytest.mark.parametrize("sql", SHARES)
def test_a_driver_that_asks_for_types_first_may_hand_over_the_share(sql: str, served: Served) -> None:
    async def fetched() -> tuple[str, list[float]]:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=served.port, user="research", password=served.place["password"], database="nafld"
        )
        try:
            prepared = await connection.prepare(sql)
            others = [20] if "$2" in sql else []
            return (
                prepared.get_parameters()[0].name,
                [float(await prepared.fetchval(share, *others)) for share in (0.1, 0.9)],
            )
        finally:
            await connection.close()

    type_, (low, high) = asyncio.run(fetched())
    assert type_ == "float8" and 0 <= low < high <= 120


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_modes_and_keys_of_extreme_rows_have_the_types_of_their_values(binary: bool, served: Served) -> None:
    sql = "SELECT MODE(sex) AS s, MIN(sex) AS m, ARG_MAX(sex, age) AS k, MODE(age) AS a, MODE(age > 50) AS b FROM patients"
    with psycopg.connect(**served.place, autocommit=True) as connection:
        cursor = connection.cursor(binary=binary)
        (row,) = cursor.execute(sql).fetchall()
        assert cursor.description is not None
        assert [column.type_code for column in cursor.description] == [25, 25, 25, 20, 16]
    assert {*row[:3]} <= {"female", "male"} and isinstance(row[3], int) and isinstance(row[4], bool)


# --- Lists of quantiles over the wire are arrays, in text and binary format, for each driver --------------------------


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
