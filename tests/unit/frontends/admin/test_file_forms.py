"""The same people in any form of file have the same answers: what `init` writes about a file is what is in it.

Each seed is a world of people and visits, written as CSV in several formats, as Parquet in several types, and as a DuckDB file.
An owner gives the same answers to `init` and adds to its policy only what no header line shows: decimal, null, encoding.
"""

import codecs
import csv
import gzip
import io
import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.exact_session import exact_session, rows_of
from support.seeds import seeds

from dpsql.engine.registry import open_engine
from dpsql.frontends.admin.answers import Answers
from dpsql.frontends.admin.check import check_policy_file
from dpsql.frontends.admin.wizard import ask_for_policy
from dpsql.policy import load_policy

Rows = list[dict[str, Any]]
WARDS = ("Nord", "Süd; links", 'Haus "A"', "a, b", "NA-1")
TYPES = {
    "pid": "integer", "Ward": "text", "age": "integer", "Größe": "real", "member": "boolean", "day": "date", "moment": "timestamp",
    "cost": "real", "note": "text",
}  # fmt: skip
ANSWERS = {
    "unit": "people.pid", "people.repeats": "no", "people.Ward": ", ".join('"' + w.replace('"', '""') + '"' for w in WARDS),
    "people.age": "integer 0 to 100", "people.Grosse": "real 0 to 3", "people.member": "boolean",
    "people.day": "date 2024-01-01 to 2024-12-31", "people.moment": "timestamp 2024-01-01 to 2025-12-31 23:59:59",
    "visits.link": "pid", "visits.max_rows": "20", "visits.cost": "real 0 to 500", "visits.day": "date 2024-01-01 to 2024-12-31",
    "people": "40", "visits.pid": "integer", "people.pid": "integer",
}  # fmt: skip
QUESTIONS = (
    "SELECT Ward, COUNT(*), SUM(age), SUM(Grosse), COUNT(age) FROM people GROUP BY Ward ORDER BY Ward",
    "SELECT member, COUNT(*) FROM people GROUP BY member ORDER BY member",
    "SELECT Ward, COUNT(*), SUM(cost), COUNT(DISTINCT pid) FROM visits JOIN people USING (pid) GROUP BY Ward ORDER BY Ward",
    "SELECT month(day) AS m, COUNT(*) FROM visits GROUP BY m ORDER BY m",
    "SELECT COUNT(*) FROM people WHERE hour(moment) < 12 AND age < 50 OR note LIKE '%ß%'",
    "SELECT COUNT(*) FROM visits WHERE note IS NULL",
)


def world(rng: random.Random) -> dict[str, Rows]:
    def perhaps(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    def day() -> date:
        return date(2024, 1, 1) + timedelta(days=rng.randrange(366))

    people = [
        {
            "pid": n, "Ward": perhaps(rng.choice(WARDS)), "age": perhaps(rng.randrange(101)),
            "Größe": perhaps(rng.randrange(12) / 4), "member": perhaps(rng.random() < 0.5), "day": perhaps(day()),
            "moment": perhaps(datetime(2024, 1, 1) + timedelta(seconds=rng.randrange(60_000_000))),
            "note": perhaps(rng.choice(("Straße", "x=1", "-", "0", '"'))),
        }
        for n in range(1, 41)
    ]  # fmt: skip
    visits = [
        {
            "pid": rng.randrange(1, 41),
            "day": perhaps(day()),
            "cost": perhaps(rng.randrange(2000) / 4),
            "note": perhaps("ü"),
        }
        for _ in range(100)
    ]
    return {"people": people, "visits": visits}


def write_csv(place: Path, rows: Rows, rng: random.Random) -> dict[str, str]:
    """Write a CSV file; return what a policy has to say that `init` does not see, below `csv`."""
    delimiter, decimal, missing = rng.choice(",;\t|"), rng.choice(".,"), rng.choice(("", "NA", "-9"))
    encoding = rng.choice(("utf-8", "utf-8-sig", "utf-16", "utf-16-be", "windows-1252"))
    days = rng.choice(("ymd", "dmy", "mdy"))
    written = {
        "ymd": ("%Y-%m-%d",),
        "dmy": ("%d.%m.%Y", "%d/%m/%Y", "%Y-%m-%d"),
        "mdy": ("%m/%d/%Y", "%m-%d-%Y", "%Y-%m-%d"),
    }
    yes, no = rng.choice((("1", "0"), ("Y", "N"), ("true", "FALSE"), ("t", "f"), ("Yes", "no")))

    def cell(value: Any) -> str:
        if value is None:
            return missing
        if isinstance(value, bool):
            return yes if value else no
        if isinstance(value, int):
            return rng.choice(("{}", "{:04}", " {} ", "+{}")).format(value)
        if isinstance(value, float):
            return rng.choice(("{}", "{:.3f}", "{:08.2f}")).format(value).replace(".", decimal)
        if isinstance(value, datetime):
            return f"{value:{rng.choice(written[days])}}{rng.choice(' T')}{value:%H:%M:%S}{rng.choice(('', '.000'))}"
        return f"{value:{rng.choice(written[days])}}" if isinstance(value, date) else value

    text = io.StringIO()
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    out = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=rng.choice(("\n", "\r\n")))
    out.writerow(rng.choice(("{}", " {} ", "{}"))[:].format(name) for name in rows[0])
    out.writerows([cell(value) for value in row.values()] for row in rows)
    data = text.getvalue().encode(encoding)
    if encoding == "utf-16-be":
        data = codecs.BOM_UTF16_BE + data
    if rng.random() < 0.5:
        place.with_suffix(".csv.gz").write_bytes(gzip.compress(data))
    else:
        place.with_suffix(".csv").write_bytes(data)
    more = {"decimal": f"'{decimal}'", "null": f"['', '{missing}']", "days": days}
    return more | ({"encoding": "windows-1252"} if encoding == "windows-1252" else {})


ARROW = {
    "pid": (pa.uint64(), pa.int16(), pa.int32(), pa.int64(), pa.uint8()),
    "age": (pa.int8(), pa.uint16(), pa.uint64()),
    "Größe": (pa.float32(), pa.float64(), pa.decimal128(9, 3)),
    "cost": (pa.float32(), pa.float64(), pa.decimal128(18, 4)),
    "member": (pa.bool_(),),
    "day": (pa.date32(), pa.date64()),
    "moment": (pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "Asia/Tokyo")),
    "Ward": (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()),
    "note": (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())),
}  # fmt: skip


def arrow(rows: Rows, rng: random.Random) -> pa.Table:
    def array(name: str) -> pa.Array:
        type_ = rng.choice(ARROW[name])
        cells = [row[name] for row in rows]
        if pa.types.is_decimal(type_):
            return pa.array([None if cell is None else Decimal(str(cell)) for cell in cells], type_)
        if pa.types.is_dictionary(type_):
            return pa.array(cells, pa.string()).dictionary_encode().cast(type_)
        if pa.types.is_timestamp(type_) and type_.tz:
            return pa.array(cells, pa.timestamp(type_.unit)).cast(pa.timestamp(type_.unit, "UTC")).cast(type_)
        return pa.array(cells, type_)

    return pa.table({name: array(name) for name in rows[0]})


def write(
    folder: Path, form: str, tables: dict[str, Rows], rng: random.Random
) -> tuple[Path, dict[str, dict[str, str]]]:
    """Write the tables in a form, and return the source of `init` with further entries of `csv` by table."""
    folder.mkdir()
    said: dict[str, dict[str, str]] = {}
    if form == "duckdb":
        with duckdb.connect(str(folder / "world.duckdb")) as con:
            for name, rows in tables.items():
                held = arrow(rows, rng)  # noqa: F841
                con.execute(f"CREATE TABLE {name} AS FROM held")
        return folder / "world.duckdb", said
    data = folder / "world"
    data.mkdir()
    for name, rows in tables.items():
        if form == "csv" or (form == "mixed" and rng.random() < 0.5):
            said[name] = write_csv(data / name, rows, rng)
        else:
            pq.write_table(arrow(rows, rng), data / f"{name}.parquet", row_group_size=rng.choice((7, 1000)))
    return data, said


def with_formats(text: str, said: dict[str, dict[str, str]]) -> str:
    """Return the text of a policy with further entries of `csv` by table; those that `init` saw stay."""
    for name, formats in said.items():
        before, table = text.split(f"\n  {name}:\n")
        lines = table.split("\n")
        seen = lines[1] if "csv: {" in lines[1] else "    csv: {}"
        more = (f"{key}: {value}" for key, value in formats.items() if f"{key}:" not in seen)
        inside = ", ".join([seen.strip().removeprefix("csv: {").removesuffix("}"), *more]).removeprefix(", ")
        rest = lines[1:] if seen != lines[1] else lines[2:]
        text = "\n".join([before, f"  {name}:", lines[0], f"    csv: {{{inside}}}", *rest])
    return text


@pytest.mark.parametrize("seed", seeds(40, 1))
def test_the_same_people_in_any_form_of_file_have_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    tables = world(rng)
    answers: dict[str, list[Any]] = {}
    for n, form in enumerate(("duckdb", "parquet", "csv", "csv", "mixed")):
        source, said = write(tmp_path / f"{n}", form, tables, rng)
        place = source.parent / "policy.yaml"
        monkeypatch.setenv("DPSQL_STATE", str(source.parent / "state"))
        told: list[str] = []
        given = dict(ANSWERS)
        for name, forms in said.items():
            words = ["comma" if forms.pop("decimal") == "','" else "", forms.pop("days").replace("ymd", "")]
            given[f"{name}.written"] = " ".join(filter(None, words)) or "-"
        ask_for_policy(source, place, Answers(given, "answers", told.append))
        place.write_text(with_formats(place.read_text(), said))
        findings = check_policy_file(place, create_ledger=True)
        assert not findings.problems, (form, findings.problems, place.read_text())
        assert not any("exact" in note for note in findings.notes), (form, findings.notes, place.read_text())
        session = exact_session(load_policy(place), None, source.parent / "exact.db", opened=open_engine)
        answers[f"{n} {form}"] = [rows_of(session.execute(sql)) for sql in QUESTIONS]
        session.close()
    first, *others = answers.items()
    for name, rows in others:
        assert rows == first[1], (name, first[0])
