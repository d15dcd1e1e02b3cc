"""No value of a column decides whether a question is answered by Spark: sources with and without one person differ in noise
alone, for every type of Spark and of Parquet files that a policy may name, alone and in pairs of files, with values at each limit."""

import itertools
import random
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support.effort import NIGHTLY
from support.server_sources import ROWS_OF_EACH, SPARK, Kind, differences, policy_of, questions, rows_of
from support.spark_source import spark

from dpsql.engine.registry import open_engine
from dpsql.engine.spark.dialect import READABLE, kind
from dpsql.errors.exceptions import Error
from dpsql.planning.planner import Planner
from dpsql.policy import Policy
from dpsql_audit.observation import Observed, ObservedSession

__all__ = ["spark"]
HOSTILE = range(0, max(len(kind.values) for kind in SPARK), 1 if NIGHTLY else ROWS_OF_EACH)
NUMBERS = itertools.count()
BEFORE_THE_CHARGE = ("source_files_differ", "source_column_type", "source_table_unreadable")


class Session(ObservedSession):
    """A session over one source, without the random prefix of its engine's views in the texts that are compared."""

    def __init__(self, policy: Policy, spark: Any, planner: Planner | None = None) -> None:
        super().__init__(policy, open_engine(policy, spark), planner=planner)

    def observe(self, sql: str, parameters: Any = None) -> Observed:
        seen = super().observe(sql, parameters)
        return replace(seen, engine_sql=[re.sub(r"dpsql_[0-9a-f]{12}_", "dpsql_", text) for text in seen.engine_sql])


def over_values(
    spark: Any, kinds: tuple[Kind, ...], hostile: int | None, folder: Path, planner: Planner | None
) -> Session:
    """Return a session over a view of typed values."""
    name = f"values{next(NUMBERS)}"
    rows = ", ".join(
        "("
        + ", ".join([row[0], *(f"CAST({value} AS {k.server_type})" for k, value in zip(kinds, row[1:], strict=True))])
        + ")"
        for row in rows_of(kinds, hostile)
    )
    names = ", ".join(["person", *(f"c{number}" for number in range(len(kinds)))])
    spark.sql(f"SELECT * FROM VALUES {rows} AS t ({names})").createOrReplaceTempView(name)
    return Session(policy_of(kinds, "spark://local[2]", name, folder), spark, planner)


def test_every_type_that_is_read_has_values_here() -> None:
    padded = {(type_, name) for type_ in ("text", "boolean") for name in ("char", "varchar")}
    named = {(k.type, kind(k.server_type)) for k in SPARK} | padded
    assert named == {(type_.value, name) for type_, names in READABLE.items() for name in names}


def test_no_value_decides_whether_a_question_is_answered(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(3)
    base = over_values(spark, SPARK, None, tmp_path, None)
    asked = list(questions(SPARK, rng, None if NIGHTLY else 5))
    before = [base.observe(sql) for sql in asked]
    assert sum(seen.outcome == "answered" for seen in before) >= len(asked) * 3 / 4
    for hostile in HOSTILE:
        side = over_values(spark, SPARK, hostile, tmp_path, base.session.planner if hostile else None)
        for sql, left in zip(asked, before, strict=True):
            found = differences(base, sql, left, side.observe(sql))
            assert found == [], f"{found}\n{sql}\nvalues from {hostile} on"
        side.engine.close()
    base.engine.close()


# --- files ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Physical:
    """A type of Parquet files: an ordinary value, and values at its limits. `int96`: timestamps in the old format."""

    name: str
    type: pa.DataType
    plain: Any
    limits: tuple[Any, ...]
    int96: bool = False


def _integers(bits: int, signed: bool) -> Physical:
    type_ = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return Physical(str(type_), type_, 7, (least, most, 0, None))


def _decimals(digits: int, scale: int) -> Physical:
    least, most = (Decimal(f"{sign}{'9' * digits}e-{scale}") for sign in ("-", ""))
    return Physical(f"decimal({digits},{scale})", pa.decimal128(digits, scale), Decimal(1), (most, least, None))


def _times(unit: str, zone: str | None, int96: bool = False) -> Physical:
    limits = (2**63 - 1, -(2**63) + 1, 0, None)
    per = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    if not int96 and unit != "ns":
        limits = (
            *limits, 253_402_300_800 * per, 253_402_300_800 * per - 1, -62_135_596_800 * per,
            -62_135_596_800 * per - 1,
        )  # fmt: skip
    return Physical(
        f"{'int96' if int96 else unit} {zone}", pa.timestamp(unit, zone), 1_709_164_800 * per, limits, int96
    )


FLOATS = tuple(
    Physical(str(type_), type_, 0.5, (float("nan"), float("inf"), -float("inf"), -0.0, 3e38, 1e-45, None)) for type_ in (pa.float32(), pa.float64())
)  # fmt: skip
NUMBERS_OF_FILES = (
    *(_integers(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)), *FLOATS,
    *(_decimals(*shape) for shape in ((5, 2), (9, 0), (18, 2), (21, 2), (38, 0), (38, 37), (9, 2))),
    Physical("half", pa.float16(), None, (None,)), Physical("null", pa.null(), None, (None,)),
)  # fmt: skip
TEXTS_OF_FILES = (
    *(Physical(str(type_), type_, "a", ("", "\0", "x" * 70_000, None)) for type_ in (pa.string(), pa.large_string())),
    Physical("no text", pa.string(), "a", (b"\xff", b"\xed\xa0\x80", None)), Physical("binary", pa.binary(), b"a", (b"\xff", None)),
    _integers(64, True), _integers(8, True), Physical("struct", pa.struct([("c", pa.string())]), {"c": "a"}, ({"c": ""}, None)),
    Physical("list", pa.list_(pa.string()), ["a"], ([], None)),
)  # fmt: skip
DATES_OF_FILES = (
    Physical("date32", pa.date32(), 19_782, (2**31 - 1, -(2**31), 2_932_897, -719_163, None)),
    *(_times(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC")), _times("ns", None, int96=True),
    Physical("time64", pa.time64("us"), 5, (86_400_000_000, None)),
)  # fmt: skip
FILES = {
    "integer": NUMBERS_OF_FILES, "real": NUMBERS_OF_FILES, "text": TEXTS_OF_FILES, "date": DATES_OF_FILES, "timestamp": DATES_OF_FILES,
    "boolean": (Physical("bool", pa.bool_(), True, (False, None)), _integers(8, True)),
}  # fmt: skip
PAIRS = [(type_, first, second) for type_, types in FILES.items() for first in types for second in types]
ALWAYS = {
    ("integer", "int32", "int64"), ("integer", "int64", "int32"), ("timestamp", "ms None", "ms None"), ("timestamp", "ms UTC", "ms UTC"),
    ("timestamp", "us None", "ms None"), ("timestamp", "int96 None", "int96 None"), ("real", "decimal(5,2)", "decimal(21,2)"),
    ("integer", "uint64", "decimal(38,0)"),
    ("date", "ms None", "ms None"), ("text", "no text", "no text"),
}  # fmt: skip
CHOSEN = [pair for pair in PAIRS if (pair[0], pair[1].name, pair[2].name) in ALWAYS]
SAMPLED = PAIRS if NIGHTLY else [*CHOSEN, *random.Random(7).sample(PAIRS, 9)]


def array(physical: Physical, values: list[Any]) -> pa.Array:
    """Return values as an array; those of dates and times are the integers that are stored."""
    if pa.types.is_temporal(physical.type):
        bits = pa.int32() if pa.types.is_date32(physical.type) else pa.int64()
        return pa.array(values, bits).view(physical.type)
    if physical.type == pa.string():
        raw = pa.array([v.encode() if isinstance(v, str) else v for v in values], pa.binary())
        return pc.cast(raw, options=pc.CastOptions(pa.string(), allow_invalid_utf8=True))
    return pa.array(values, physical.type)


def write(folder: Path, parts: tuple[Physical, Physical], hostile: tuple[int, int] | None) -> None:
    """Write two files, whose column c0 has these types. `hostile`: which of them has the person with one value more, and which
    limit that value is."""
    folder.mkdir()
    for number, physical in enumerate(parts):
        persons, values = [f"p{at % 12}" for at in range(24)], [physical.plain] * 24
        if hostile is not None and hostile[0] == number:
            persons, values = ["eve", *persons], [physical.limits[hostile[1]], *values]
        rows = pa.table({"person": persons, "c0": array(physical, values)})
        pq.write_table(
            rows, folder / f"{number}.parquet", use_deprecated_int96_timestamps=physical.int96, store_schema=False
        )


def seen(
    spark: Any, folder: Path, asked: list[str], kinds: tuple[Kind, ...]
) -> tuple[Session | None, str, list[Observed]]:
    """Return the session over a folder, the slug of the fault before any question, and what questions show."""
    try:
        session = Session(policy_of(kinds, "spark://local[2]", f"file://{folder}", folder.parent), spark)
        session.engine.check_readable(("t",))
    except Error as error:
        return None, error.slug, []
    return session, "", [session.observe(sql) for sql in asked]


@pytest.mark.parametrize(("type_", "first", "second"), SAMPLED, ids=[f"{t}-{a.name}-{b.name}" for t, a, b in SAMPLED])
def test_no_value_of_a_file_decides_whether_a_question_is_answered(
    spark: Any, tmp_path: Path, type_: str, first: Physical, second: Physical
) -> None:
    """Files are read, whatever their values, or they are refused by their schemas."""
    rng = random.Random(f"{type_} {first.name} {second.name}")
    kinds = (Kind(type_, "", ()),)
    asked = list(questions(kinds, rng, None if NIGHTLY else 1))
    write(tmp_path / "base", (first, second), None)
    base, slug, before = seen(spark, tmp_path / "base", asked, kinds)
    assert slug in ("", *BEFORE_THE_CHARGE)
    places = [
        (number, limit) for number, physical in enumerate((first, second)) for limit in range(len(physical.limits))
    ]
    for number, hostile in enumerate(places if NIGHTLY else [(0, 0), (1, 0), rng.choice(places)]):
        folder = tmp_path / f"side{number}"
        write(folder, (first, second), hostile)
        side, refused, after = seen(spark, folder, asked, kinds)
        assert refused == slug, hostile
        for sql, left, right in zip(asked if base else (), before, after, strict=True):
            assert base is not None and left.outcome == "answered", (sql, left.outcome)
            assert differences(base, sql, left, right) == [], (sql, hostile)
        if side is not None:
            side.engine.close()
    if base is not None:
        base.engine.close()
