"""Real sources for the neighbour tests: files, Arrow objects and databases with and without one hostile unit.

The policy is the same for every kind of source; only the source's column types differ. A hostile unit has texts that an adversary
chooses and values at every edge of what a column can hold. They occur in all of its rows and in no other rows.
"""

import gzip
import math
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpsql.engine.duckdb.engine import DuckDBEngine, open_duckdb
from dpsql.policy import Policy
from dpsql.policy.check import parse_policy
from support.stored_values import IN_FILES, STORED

Cell = Any
"""A cell's value in a typed source, or the text (or raw bytes) of a cell in a CSV file."""
Rows = dict[str, list[list[Cell]]]

COLUMNS = {
    "people": {
        "person": "text", "town": "text", "age": "integer", "score": "real", "born": "date", "member": "boolean", "note": "text",
    },
    "events": {
        "person": "text", "kind": "text", "word": "text", "amount": "real", "number": "integer", "day": "date",
        "moment": "timestamp", "flag": "boolean",
    },
    "tags": {"word": "text", "label": "text", "weight": "integer"},
}  # fmt: skip
POLICY = """
dataset: sources
{source}
privacy_unit: {unit}
budget: {{epsilon: 10000, delta: 1e-4, accountant: pure}}
per_query: {{epsilon: 1, delta: 1e-9}}
ledger: sqlite:///ledger.db
tables:
  people:
    {people}
    columns:
      person: {{type: text, nullable: false}}
      town: {{type: text, domain: [ulm, bonn, köln]}}
      age: {{type: integer, lower: 0, upper: 100}}
      score: {{type: real, lower: -10, upper: 10}}
      born: {{type: date, lower: 1950-01-01, upper: 2009-12-31}}
      member: {{type: boolean}}
      note: {{type: text}}
  events:
    {events}
    columns:
      person: {{type: text, nullable: false}}
      kind: {{type: text, domain: [a, b, c]}}
      word: {{type: text}}
      amount: {{type: real, lower: 0, upper: 100}}
      number: {{type: integer, lower: -9, upper: 9}}
      day: {{type: date, lower: 2024-01-01, upper: 2024-12-31}}
      moment: {{type: timestamp, timezone: Europe/Berlin, lower: 2024-01-01 00:00, upper: 2024-12-31 23:59:59}}
      flag: {{type: boolean}}
  tags:
    {tags}
    columns:
      word: {{type: text, nullable: false}}
      label: {{type: text, domain: [x, y]}}
      weight: {{type: integer, lower: 0, upper: 9}}
"""
KEYS = {
    "people": "max_rows: 1, primary_key: [person]",
    "events": "max_rows: 4, foreign_keys: {person: people.person}",
    "tags": "public: true, primary_key: [word]",
}


def policy(folder: Path, ending: str = "", by_rows: bool = False, csv: str = "") -> Policy:
    """Return the policy over files with this ending, over a DuckDB file (".duckdb"), or over Python objects (""). `csv`: how
    files are written."""
    parts = {
        "source": "source: duckdb:///data.duckdb" if ending == ".duckdb" else csv,
        "unit": "{table: people, column: person}",
    }
    if by_rows:
        parts["unit"] = "row"
    for table, keys in KEYS.items():
        said = [] if by_rows and table != "tags" else keys.split(", ")
        said += [f"source: {table}{ending}"] if ending not in ("", ".duckdb") else []
        parts[table] = "\n    ".join(said) or "description: rows"
    return parse_policy(POLICY.format(**parts), folder=folder)


# --- rows -----------------------------------------------------------------------------------------------------------

WORDS = ["A", "A", "A", "A", "B", "a b", "Straße", "x,y", 'say "so"', "", None]
TAGS = [["A", "x", 1], ["a", "y", 2], ["B", "x", 3], ["Straße", "y", 4], ["STRASSE", "x", 5], ["Á", "y", 6]]


def people(rng: random.Random) -> Rows:
    """Return a dozen people with up to six events each (of which four count), and the public list of tags."""
    data: Rows = {"people": [], "events": [], "tags": TAGS}
    for number in range(12):
        key = f"p{number}"
        born = date(1960, 1, 1) + timedelta(days=rng.randrange(9000))
        data["people"].append([
            key, rng.choice(["ulm", "bonn", "köln"]), rng.randrange(100), rng.choice([-10.0, 0.5, 9.25]), born,
            rng.choice([True, False]), rng.choice(WORDS),
        ])  # fmt: skip
        for _ in range(rng.choice([2, 4, 4, 6])):
            day = date(2024, 1, 1) + timedelta(days=rng.randrange(366))
            moment = datetime(day.year, day.month, day.day, rng.randrange(24), rng.randrange(60))
            data["events"].append([
                key, rng.choice(["a", "b", "c"]), rng.choice(WORDS), rng.choice([0.0, 12.5, 100.0]), rng.randrange(-9, 10),
                day, moment, rng.choice([True, False]),
            ])  # fmt: skip
    return data


HOSTILE = [
    ",", ";", "|", "\t", '"', "'", '""', '"x', 'x"', '",', "#", "# x", "--", "/*", "//", "\\", "\\n", '\\"', "\r", "x\ry", "\r\r",
    "\ufeff", "\ufeffperson", "person", "word", "a", "á", "Á", "À", "A ", " A", "A\0", "\0", "NULL", "null", "\\N", "nan", "STRASSE",
    "strasse", "ß", "ẞ", "İ", "ı", "\u212a", "A\u0308", "Ä", "ä", "x" * 20_000, "\U0001f600", "\u202e", "\x1a", "\x1b[0m", "\x7f", "",
    "%", "_", "a.b", "(", "[", "1", "-0", "true", "2024-02-30", "KÖLN", "köLn", "Ulm", "ULM ", "C", "B", "b", None,
]  # fmt: skip
NUMBERS = [
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "1e400", "-1e308", "1e308", "nan",
    "inf", "-inf", "-0", "-0.0", "5e-324", "0x1F", " 5", "5 ", "1_000", "٣", "", "5.5", "1e3", "+7", ".5", "5.", "1" * 400, "true", None,
]  # fmt: skip
DAYS = [
    "9999-12-31", "10000-01-01", "0001-01-01", "0000-12-31", "-0044-03-15", "infinity", "-infinity", "epoch", "2024-02-30", "2024-2-3",
    "01/02/2024", "2024-01-01 00:00:00", "5877642-06-25 (BC)", "5881580-07-10", "", "today", "2024-06-15", None,
]  # fmt: skip
MOMENTS = [
    "294247-01-10 04:00:54.775806", "290309-12-22 (BC) 00:00:00", "infinity", "-infinity", "2024-06-01T00:00:00Z", "2024-06-01 24:00:00",
    "2024-06-01 00:00:60", "2024-06-01 12:00:00+14:00", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00", "0001-01-01 00:00:00",
    "1677-09-21 00:12:43.145225", "2262-04-11 23:47:16.854775", "now", "", "2024-06-15", None,
]  # fmt: skip
FLAGS = ["true", "T", "yes", "1", "2", "on", "FALSE", "f", "-1", "", "nan", None]
TEXTS = {"text": HOSTILE, "integer": NUMBERS, "real": NUMBERS, "date": DAYS, "timestamp": MOMENTS, "boolean": FLAGS}
RAW = [
    b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b'"unclosed', b'"un,closed', b'a"b', b'"a"b', b'"a""', b'"', b'""""', b"\x00", b"\x1a",
    b"\r", b"a\rb", b'"a\rb"', b"\xef\xbb\xbf", b"x" * 2_200_000, b"'a,b'", b";", b"\t", b"|", b"\\", b'\\"', b"#", b"",
]  # fmt: skip
"""Bytes of CSV cells exactly as in the file, quoted or not."""
VARIANTS = ["a", "A", "b", "A", "B", "C", "ULM", "Köln", "STRASSE", "A B", "X,Y"]
ACCENTS = ["á", "Á", "ä", "Ä", "b́", "B́", "koln", "úlm", "Strasse"]
"""Texts that some collation treats as equal to texts of other units."""
NAMES = ["P1", "p1 ", "ṕ1", "person", "q", "P11", "NULL", "0", "infinity", "p", "ｐ1", "\u212a"]
"""Keys of hostile units: similar to keys of other units, but unique."""


@dataclass(frozen=True)
class Hostile:
    """One additional unit: its rows by table, and whole CSV lines. Under row privacy, one row of one table."""

    name: str
    rows: Rows
    lines: dict[str, list[bytes]]
    """Whole lines of a CSV file, used instead of rows."""


def hostile(
    rng: random.Random, number: int, edges: dict[str, dict[str, list[Cell]]], by_rows: bool, lined: bool
) -> Hostile:
    """Return the hostile unit with this number. `edges`: the values that each column of the source may take.

    `lined`: the source consists of lines of text, which may be malformed.
    """
    key = NAMES[number % len(NAMES)]
    shown = {0: {"text": VARIANTS}, 1: {"text": ACCENTS}}.get(number, {})
    rows: Rows = {"people": [], "events": []}
    for table, count in {"people": 1, "events": 6 if number < 2 else rng.choice([1, 3, 6])}.items():
        for _ in range(count):
            row = [rng.choice(shown.get(type_) or edges[table][name]) for name, type_ in COLUMNS[table].items()]
            rows[table].append([key, *row[1:]])
    if number == 2 and lined:
        rows = {table: [[key, *list(COLUMNS[table])[1:]]] for table in rows}  # the header once more
    lines: dict[str, list[bytes]] = {}
    if lined and number >= 3 and rng.random() < 0.7:
        rows["events"], lines = [], {"events": [_line(rng, key) for _ in range(rng.choice([1, 2, 5]))]}
    if by_rows:
        rows = {"people": [], "events": [] if lines else rows["events"][:1]}
        lines = {table: whole[:1] for table, whole in lines.items()}
    return Hostile(f"{number}: {key!r}", rows, lines)


def _line(rng: random.Random, key: str) -> bytes:
    """Return a line of events with an adversary's bytes, usually with one field per column."""
    count = len(COLUMNS["events"]) - 1 + rng.choice([0, 0, 0, -1, 1, 30])
    cells = [rng.choice(RAW) for _ in range(max(count, 0))]
    if sum(map(len, cells)) > 5_000_000:
        cells = [cell[:100] for cell in cells]
    return b",".join([key.encode(), *cells])


# --- kinds of sources -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of source. `build(folder, rows, lines, types)` returns the argument with which to open the engine; `types`: each
    column's source type by name.

    `choices`: for each type of the policy, the source types by name, with the edge values that cells may take; a single name if
    there is no choice.
    """

    name: str
    ending: str
    choices: dict[str, dict[str, list[Cell]]]
    build: Callable[[Path, Rows, dict[str, list[bytes]], dict[str, dict[str, str]]], Any]
    prepared: bool = False
    csv: str = ""

    def of(self, column: str, type_: str) -> dict[str, list[Cell]]:
        """Return the source types of a column with their edge values."""
        return self.choices.get(column) or self.choices[type_]


def _csv(ending: str) -> Callable[..., Any]:
    def build(folder: Path, rows: Rows, lines: dict[str, list[bytes]], types: Any) -> Any:
        for table, columns in COLUMNS.items():
            text = [_written(row) for row in rows[table]]
            third = len(text) // 3  # most lines come after the hostile ones, with which a reader could merge them
            text[third:third] = lines.get(table, [])
            text = b"\n".join([",".join(columns).encode(), *text, b""])
            (folder / f"{table}{ending}").write_bytes(gzip.compress(text, 1) if ending.endswith("gz") else text)

    return build


def _written(row: list[Cell]) -> bytes:
    """Return a line with every text quoted. Line breaks are removed, because a line cannot contain them."""
    cells = []
    for value in row:
        text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        text = text.replace("\n", " ")
        cells.append('"' + text.replace('"', '""') + '"' if isinstance(value, str) else text)
    return ",".join(cells).encode()


BYTES = [*HOSTILE, b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"A\xff"]
INSTANTS = [2**62, -(2**62), 2**63 - 1, -(2**63) + 1, 0, None]
ARROW: dict[str, dict[str, list[Cell]]] = {
    "text": {"string": BYTES, "large_string": BYTES, "dictionary": BYTES},
    "note": {"string": BYTES, "timestamp[s]": INSTANTS, "timestamp[us]": INSTANTS, "date32": [2**31 - 1, -(2**31), 0, None]},
    "integer": {
        "int8": [-128, 127, 0, None], "int64": [-(2**63), 2**63 - 1, 0, 2**53 + 1, None], "uint64": [0, 2**64 - 1, 2**63, None],
        "float64": [math.nan, math.inf, -math.inf, 1e300, -0.0, 2.0**63, -(2.0**63), 0.5, None], "string": NUMBERS,
        "decimal": [10**37, -(10**37), 0, None],
    },
    "real": {
        "float64": [math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, -0.0, None], "float32": [math.nan, math.inf, 3e38, -0.0, None],
        "int64": [-(2**63), 2**63 - 1, None], "string": NUMBERS, "decimal": [10**37, -(10**37), None],
    },
    "date": {"date32": [2**31 - 1, -(2**31), 0, 2_932_896, 2_932_897, -719_162, -719_163, None], "string": DAYS,
             "timestamp[s]": INSTANTS, "timestamp[ms]": [*INSTANTS, 1_700_000_000_000]},
    "timestamp": {
        **{f"timestamp[{unit}]": [*INSTANTS, 253_402_300_800 * 10**power] for unit, power in (("s", 0), ("ms", 3), ("us", 6))},
        "timestamp[ns]": INSTANTS, "string": MOMENTS, "date32": [2**31 - 1, -(2**31), 0, None],
    },
    "boolean": {"bool": [True, False, None], "int8": [-128, 2, 0, 1, None], "string": FLAGS},
}  # fmt: skip
"""Arrow types by name for each type of the policy (and for the column `note`), with values at their edges."""


PARQUET = {
    type_: {name: HOSTILE if values is BYTES else values for name, values in choices.items() if name != "timestamp[s]"}
    for type_, choices in ARROW.items()
}
"""Arrow types in Parquet files: without seconds, which Parquet lacks, and without texts that are not UTF-8, which make its reader
fail (docs/privacy.md section 9)."""


@dataclass(frozen=True)
class Place:
    """A value of `stored_values`, by its number among those of its type: not all can be shown."""

    number: int


ANY_TYPE = {
    type_: {**{f"any {name}": [*map(Place, range(len(STORED[name])))] for name in IN_FILES}, **PARQUET[type_]}
    for type_ in ("text", "integer", "real", "date", "timestamp", "boolean")
}
"""Types in Parquet files, whatever the type in the policy is, with values at their edges."""
PAIRS = {
    **{
        type_: {
            f"{one}|{other}": values
            for one, values in choices.items()
            for other in choices
            if one in PARQUET[type_] or other in PARQUET[type_]
        }
        for type_, choices in ANY_TYPE.items()
    },
    "person": {f"{one}|{other}": HOSTILE for one in PARQUET["text"] for other in PARQUET["text"]},
}
"""Pairs of types in two files; a hostile unit is in the file of the first one."""


def arrow_table(table: str, rows: list[list[Cell]], types: dict[str, str]) -> pa.Table:
    """Return rows as an Arrow table. In columns of dates and timestamps, integers are taken as raw values."""
    arrays = []
    for at, name in enumerate(COLUMNS[table]):
        arrays.append(_array([row[at] for row in rows], types[name]))
    return pa.table(arrays, names=list(COLUMNS[table]))


def _array(values: list[Cell], type_: str) -> pa.Array:
    if type_.startswith("any "):
        return _stored_array(values, STORED[type_.removeprefix("any ")])
    if type_ in ("string", "large_string", "dictionary"):
        texts = [
            None if v is None else v if isinstance(v, bytes) else str(v).encode("utf-8", "surrogatepass")
            for v in values
        ]
        array = pc.cast(
            pa.array(texts, pa.large_binary()), options=pc.CastOptions(pa.large_string(), allow_invalid_utf8=True)
        )
        array = (
            array
            if type_ == "large_string"
            else pc.cast(array, options=pc.CastOptions(pa.string(), allow_invalid_utf8=True))
        )
        return array.dictionary_encode() if type_ == "dictionary" else array
    if type_ == "date32":
        return pa.array(
            [(v - date(1970, 1, 1)).days if isinstance(v, date) else v for v in map(_day, values)], pa.int32()
        ).cast(pa.date32())
    if type_.startswith("timestamp"):
        unit = type_[10:-1]
        per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        ints = [
            int((v - datetime(1970, 1, 1)).total_seconds()) * per if isinstance(v, datetime) else v
            for v in map(_moment, values)
        ]
        return pa.array(ints, pa.int64()).cast(pa.timestamp(unit))
    if type_ == "decimal":
        return pa.array([None if v is None else int(v) for v in values], pa.decimal128(38, 0))
    kind = {
        "int8": pa.int8(),
        "int64": pa.int64(),
        "uint64": pa.uint64(),
        "float64": pa.float64(),
        "float32": pa.float32(),
        "bool": pa.bool_(),
    }[type_]
    if pa.types.is_integer(kind):
        values = [None if v is None else int(v) for v in values]
        values = [v if v is None or not pa.types.is_unsigned_integer(kind) else max(v, 0) for v in values]
    return pa.array(values, kind)


def _stored_array(values: list[Cell], stored: pa.Array) -> pa.Array:
    """Return an array of stored values; for a value that has no place there, one that depends on it alone."""
    numbers = [value.number if isinstance(value, Place) else zlib.crc32(repr(value).encode()) for value in values]
    return pa.concat_arrays([stored.slice(number % len(stored), 1) for number in numbers] or [stored.slice(0, 0)])


def _day(value: Cell) -> Cell:
    if isinstance(value, str):
        return len(value)
    return value.date() if isinstance(value, datetime) else value


def _moment(value: Cell) -> Cell:
    if isinstance(value, str):
        return len(value)
    return datetime(value.year, value.month, value.day) if type(value) is date else value


def _arrow(folder: Path, rows: Rows, lines: Any, types: dict[str, dict[str, str]]) -> dict[str, pa.Table]:
    return {table: arrow_table(table, rows[table], types[table]) for table in COLUMNS}


def _parquet(folder: Path, rows: Rows, lines: Any, types: dict[str, dict[str, str]]) -> None:
    for table in COLUMNS:
        pq.write_table(arrow_table(table, rows[table], types[table]), folder / f"{table}.parquet")


def _two_files(folder: Path, rows: Rows, lines: Any, types: dict[str, dict[str, str]]) -> None:
    """Write each table into two files; which of them is read first, and which people are in it, depends on no hostile unit."""
    for table, columns in COLUMNS.items():
        swapped = zlib.crc32(repr(types[table]).encode()) % 2
        for number in range(2):
            stored = {name: types[table][name].split("|")[number] for name in columns}
            if table == "tags":
                stored = {"word": "string", "label": "dictionary", "weight": ("int8", "float64")[number]}
            within = [
                row for row in rows[table] if (row[0] not in NAMES and zlib.crc32(repr(row[0]).encode()) % 2) == number
            ]
            pq.write_table(arrow_table(table, within, stored), folder / f"{table}{number ^ swapped}.parquet")


DUCKDB = {
    "text": dict.fromkeys(("VARCHAR", "VARCHAR COLLATE NOCASE", "VARCHAR COLLATE NOACCENT", "VARCHAR COLLATE NOCASE.NOACCENT"), HOSTILE),
    "integer": {"BIGINT": NUMBERS, "HUGEINT": NUMBERS, "UTINYINT": NUMBERS, "DOUBLE": NUMBERS, "DECIMAL(38,4)": NUMBERS, "VARCHAR COLLATE NOCASE": NUMBERS},
    "real": {"DOUBLE": NUMBERS, "FLOAT": NUMBERS, "HUGEINT": NUMBERS, "VARCHAR": NUMBERS},
    "date": {"DATE": DAYS, "TIMESTAMP": MOMENTS, "TIMESTAMP_S": MOMENTS, "TIMESTAMPTZ": MOMENTS, "VARCHAR COLLATE NOCASE": DAYS},
    "timestamp": {"TIMESTAMP": MOMENTS, "TIMESTAMP_S": MOMENTS, "TIMESTAMP_MS": MOMENTS, "TIMESTAMP_NS": MOMENTS, "TIMESTAMPTZ": MOMENTS, "DATE": DAYS, "VARCHAR": MOMENTS},
    "boolean": {"BOOLEAN": FLAGS, "TINYINT": FLAGS, "VARCHAR COLLATE NOCASE": FLAGS},
}  # fmt: skip


def load(connection: duckdb.DuckDBPyConnection, rows: Rows, types: dict[str, dict[str, str]]) -> None:
    """Create tables with these column types; a text that is not a value of the type becomes NULL."""
    for table, columns in types.items():
        listed = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
        connection.execute(f"CREATE TABLE {table} ({listed})")
        texts = [["" if v is None else str(v).encode("utf-8", "replace").decode() for v in row] for row in rows[table]]
        there = [[v is not None for v in row] for row in rows[table]]
        given = pa.table({
            **{f"v{at}": pa.array([row[at] if is_there[at] else None for row, is_there in zip(texts, there, strict=True)], pa.string())
               for at in range(len(columns))},
        })  # fmt: skip
        connection.register("given", given)
        casts = [f"TRY_CAST(v{at} AS {type_.split(' COLLATE')[0]})" for at, type_ in enumerate(columns.values())]
        connection.execute(f"INSERT INTO {table} SELECT {', '.join(casts)} FROM given")
        connection.unregister("given")


def _duckdb_file(folder: Path, rows: Rows, lines: Any, types: dict[str, dict[str, str]]) -> None:
    with duckdb.connect(str(folder / "data.duckdb")) as connection:
        load(connection, rows, types)


def _connection(folder: Path, rows: Rows, lines: Any, types: dict[str, dict[str, str]]) -> duckdb.DuckDBPyConnection:
    """Return a connection whose owner changed settings that affect comparisons, orders and quotients."""
    connection = duckdb.connect(config={"threads": 1})
    load(
        connection,
        rows,
        {t: {name: type_.split(" COLLATE")[0] for name, type_ in columns.items()} for t, columns in types.items()},
    )
    for setting in ("default_collation = 'nocase'", "default_null_order = 'nulls_first'", "default_order = 'desc'", "integer_division = true",
                    "ieee_floating_point_ops = false", "TimeZone = 'Pacific/Auckland'"):  # fmt: skip
        try:
            connection.execute(f"SET GLOBAL {setting}")
        except duckdb.CatalogException:
            connection.execute(f"SET {setting}")
    return connection


ANY = {type_: {"text": texts} for type_, texts in TEXTS.items()}
KINDS = {
    kind.name: kind
    for kind in (
        Kind("csv", ".csv", ANY, _csv(".csv")),
        Kind("csv in windows-1252", ".csv", ANY, _csv(".csv"), csv="csv: {encoding: windows-1252, decimal: ','}"),
        Kind("csv.gz", ".csv.gz", ANY, _csv(".csv.gz")),
        Kind("parquet", ".parquet", PARQUET, _parquet),
        Kind("two parquet files", "*.parquet", PAIRS, _two_files),
        Kind("arrow", "", ARROW, _arrow),
        Kind("duckdb", ".duckdb", DUCKDB, _duckdb_file),
        Kind("connection", "", DUCKDB, _connection),
        Kind("prepared csv", ".csv", ANY, _csv(".csv"), prepared=True),
        Kind("prepared two parquet files", "*.parquet", PAIRS, _two_files, prepared=True),
        Kind("prepared duckdb", ".duckdb", DUCKDB, _duckdb_file, prepared=True),
    )
}


def source_types(kind: Kind, rng: random.Random) -> dict[str, dict[str, str]]:
    """Return a source type for each column; keys are texts in both tables."""
    found = {
        table: {name: rng.choice(list(kind.of(name, type_))) for name, type_ in columns.items()}
        for table, columns in COLUMNS.items()
    }
    found["events"]["person"] = found["people"]["person"]
    return found


def edges(kind: Kind, types: dict[str, dict[str, str]]) -> dict[str, dict[str, list[Cell]]]:
    """Return the values that cells of each column may take in a hostile unit."""
    return {
        table: {name: kind.of(name, COLUMNS[table][name])[type_] for name, type_ in columns.items()}
        for table, columns in types.items()
    }


def opened(
    kind: Kind, known: Policy, folder: Path, rows: Rows, lines: dict[str, list[bytes]], types: dict[str, dict[str, str]]
) -> DuckDBEngine:
    """Return the engine over these rows."""
    folder.mkdir(parents=True, exist_ok=True)
    return open_duckdb(known, kind.build(folder, rows, lines, types))
