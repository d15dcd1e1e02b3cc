"""Neighbouring hospitals: deliberately awkward base data, and units designed to change one query's result as much as they can.

A *profile* defines the values in every row of a unit; a list holds values that its rows take in turn. `rows` is the number of
visits (irrelevant under row privacy, where a unit is one row), and `labs` the number of laboratory values per visit.
"""

import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

Rows = list[dict[str, Any]]
Data = dict[str, Rows]

TEXT, INT, REAL, FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
SCHEMAS = {
    "patients": pa.schema([
        ("patient_id", INT), ("region", TEXT), ("sex", TEXT), ("age", INT), ("weight", REAL), ("smoker", FLAG),
        ("city", TEXT), ("income", REAL),
    ]),
    "visits": pa.schema([
        ("visit_id", INT), ("patient_id", INT), ("ward", TEXT), ("day", pa.date32()), ("seen", pa.timestamp("us")),
        ("cost", REAL), ("change", REAL), ("nights", INT), ("diagnosis", TEXT), ("code", INT),
    ]),
    "labs": pa.schema([("visit_id", INT), ("test", TEXT), ("value", REAL), ("flag", FLAG)]),
    "regions": pa.schema([("region", TEXT), ("zone", TEXT), ("population", INT)]),
    "prices": pa.schema([("item", TEXT), ("ward", TEXT), ("price", REAL)]),
}  # fmt: skip
PROTECTED = ("patients", "visits", "labs")
PUBLIC: Data = {
    "regions": [
        {"region": region, "zone": zone, "population": people}
        for region, zone, people in (("north", "cold", 10**6), ("south", "warm", 20), ("east", "warm", 30), ("west", "cold", 40))
    ],
    "prices": [
        {"item": f"{ward}-{number}", "ward": ward, "price": 50.0 * number}
        for ward in ("er", "icu") for number in range(3)
    ],
}  # fmt: skip
DAYS = [date(2024, 1, 1) + timedelta(days=29 * n) for n in range(13)]


# --- rows -----------------------------------------------------------------------------------------------------------

PLAIN: dict[str, Any] = {
    "region": "north", "sex": "f", "age": 40, "weight": 70.0, "smoker": True, "city": "ulm", "income": 100.0,
    "ward": "er", "day": DAYS[1], "seen": datetime(2024, 1, 30, 12), "cost": 200.0, "change": 1.0, "nights": 2,
    "diagnosis": "flu", "code": 7, "test": "alt", "value": 1.0, "flag": True,
}  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """The values in the rows of one unit, where they differ from `PLAIN`."""

    name: str
    values: dict[str, Any]
    rows: int = 60
    labs: int = 1

    def column(self, name: str, at: int) -> Any:
        value = self.values.get(name, PLAIN[name])
        return value[at % len(value)] if isinstance(value, list) else value


def unit(profile: Profile, number: int) -> Data:
    """Return all rows of the privacy unit `number`: one patient, the visits and their laboratory values."""
    data: Data = {"patients": [_row("patients", profile, 0, {"patient_id": number})], "visits": [], "labs": []}
    for at in range(profile.rows):
        visit = number * 1000 + at
        data["visits"].append(_row("visits", profile, at, {"visit_id": visit, "patient_id": number}))
        for lab in range(profile.labs):
            data["labs"].append(_row("labs", profile, at * profile.labs + lab, {"visit_id": visit}))
    return data


def _row(table: str, profile: Profile, at: int, keys: dict[str, Any]) -> dict[str, Any]:
    return {name: keys[name] if name in keys else profile.column(name, at) for name in SCHEMAS[table].names}


ORPHAN, LOST_VISIT = 777, 888_000
"""A patient and a visit that other rows refer to but that do not exist."""


def row(profile: Profile, table: str) -> Data:
    """Return one row of one table as a unit of row privacy: the very row to which rows of others refer."""
    keys = {"patient_id": ORPHAN, "visit_id": LOST_VISIT}
    return {table: [_row(table, profile, 0, keys)]}


def crowd() -> Data:
    """Return other people: heavy and light ones, two equal ones, missing values, extremes, and keys in every group."""
    rng = random.Random(11)
    data: Data = {table: [] for table in PROTECTED}
    for number in range(1, 15):
        some = {
            "region": rng.choice(["north", "south", "east", "west"]), "sex": rng.choice(["f", "m", None]),
            "age": rng.choice([0, 30, 31, 65, 120, 300, None]), "weight": rng.choice([0.0, 81.5, 1e9, math.nan, None]),
            "smoker": rng.choice([True, False, None]), "city": rng.choice(["ulm", "bonn", "köln"]),
            "ward": [rng.choice(["er", "icu", "day", None, "attic"]) for _ in range(7)],
            "day": [rng.choice([*DAYS, None, date(2031, 5, 5)]) for _ in range(5)],
            "cost": [rng.choice([0.0, 1.0, 400.25, 999.0, -5.0, math.inf, math.nan, None]) for _ in range(6)],
            "change": [rng.choice([-10.0, -0.0, 2.5, 10.0, -math.inf]) for _ in range(4)],
            "nights": [rng.choice([0, 1, 3, 30, 99]) for _ in range(4)],
            "diagnosis": [rng.choice(["flu", "cold", "FLU", "", None]) for _ in range(5)],
            "code": [rng.choice([1, 2, 3, 2**62, None]) for _ in range(5)], "test": ["alt", "hb", "na"],
            "value": [rng.choice([-4.0, 0.5, 4.0, 1e300, None]) for _ in range(5)], "flag": [True, False],
        }  # fmt: skip
        merge(data, unit(Profile("", some, rows=rng.choice([0, 1, 3, 26])), number))
    lost = unit(Profile("", {}, rows=26), ORPHAN)
    merge(data, {"visits": lost["visits"], "labs": [_row("labs", Profile("", {}), 0, {"visit_id": LOST_VISIT})] * 5})
    merge(data, unit(Profile("", {}, rows=2), 15))
    merge(data, unit(Profile("", {}, rows=2), 16))
    return data


def merge(data: Data, more: Data) -> Data:
    """Add the rows of `more` to `data` and return it."""
    for table, rows in more.items():
        data.setdefault(table, []).extend(rows)
    return data


def together(base: Data, more: Data, seed: int = 0) -> Data:
    """Return `base` with `more` in an order independent of both: a table is a set of rows."""
    data = merge({table: list(rows) for table, rows in base.items()}, more)
    shuffled = random.Random(seed)
    for rows in data.values():
        shuffled.shuffle(rows)
    return {**data, **PUBLIC}


# --- profiles -------------------------------------------------------------------------------------------------------

SPREAD = {
    "ward": ["er", "icu", "day"], "day": DAYS, "test": ["alt", "hb", "na"], "diagnosis": [f"d{n}" for n in range(60)],
    "code": list(range(60)), "nights": list(range(31)), "flag": [True, False], "city": "here alone",
}  # fmt: skip


def _numbers(value: float, whole: int) -> dict[str, Any]:
    return {"weight": value, "income": value, "cost": value, "change": value, "value": value, "age": whole,
            "nights": whole, "code": whole}  # fmt: skip


_REAL = ("weight", "income", "cost", "change", "value")
ODD = [math.nan, math.inf, -math.inf, -0.0, 5e-324, None]
FIXED = (
    Profile("high", _numbers(1e12, 10**12)),
    Profile("low", _numbers(-1e308, -(2**62))),
    Profile("spread", SPREAD),
    Profile("spread high", {**SPREAD, **_numbers(1e6, 10**6), "diagnosis": [f"d{n}" for n in range(60)]}),
    Profile(
        "odd",
        {**dict.fromkeys(_REAL, ODD), "ward": [None, "ER", "er "], "diagnosis": ["Flu ", "", None], "smoker": None},
    ),
    Profile("null", dict.fromkeys([*PLAIN], None), rows=20),
    Profile(
        "elsewhere",
        {
            "region": "mars",
            "ward": "attic",
            "city": "nowhere",
            "day": date(2031, 1, 1),
            "test": "xx",
            "weight": math.inf,
        },
    ),
    Profile("one of each", {}, rows=1),
    Profile("just beyond", {**_numbers(1100.0, 133), "change": 11.0, "value": -4.5, "weight": 280.0}),
    Profile("mid", {**_numbers(500.0, 15), "change": 0.0, "value": 0.0, "weight": 128.0, "age": 60}, labs=3),
)


def literals(sql: str) -> dict[str, list[Any]]:
    """Return for each column the values with which a predicate of the query compares it, and those values plus and minus one:
    results change there."""
    found: dict[str, list[Any]] = {}
    for test in tree_of(sql).find_all(exp.Predicate, exp.Between, exp.In):
        names = {column.name.lower() for column in test.find_all(exp.Column)} & set(PLAIN)
        for literal in test.find_all(exp.Literal):
            for name in names:
                found.setdefault(name, []).extend(_around(str(literal.this), literal.is_string, name))
    return found


def tree_of(sql: str) -> exp.Expr:
    """Return the parsed text, without the named arguments that only dpsql's own parser reads."""
    return sqlglot.parse_one(re.sub(r", contribution_bounds_per_\w+ => \([^)]*\)", "", sql), read="duckdb")


def _around(text: str, is_string: bool, column: str) -> list[Any]:
    type_ = next(schema.field(column).type for schema in SCHEMAS.values() if column in schema.names)
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        try:
            day = datetime.fromisoformat(text)
        except ValueError:
            return []
        days = [day - timedelta(days=1), day, day + timedelta(days=1)]
        return [d.date() for d in days] if pa.types.is_date(type_) else days
    if pa.types.is_string(type_):
        bare = text.replace("%", "").replace("_", "x")
        return [text, bare, f"a{bare}b", bare.upper()] if is_string else []
    if is_string or pa.types.is_boolean(type_):
        return []
    number = float(text)
    around = [number - 1, number, number + 1]
    return [int(n) for n in around] if pa.types.is_integer(type_) else around


MANY = [f"{chr(97 + n % 26)}{n % 7}" for n in range(60)]
CORNERS: dict[str, list[Any]] = {
    "region": ["north", "south", "east"], "sex": ["f", "m", None], "age": [0, 120, 60, 59], "weight": [0.0, 256.0, 128.0],
    "smoker": [True, False], "city": ["ulm", "alone"], "income": [0.0, 1000.0], "ward": ["er", "icu", "day", SPREAD["ward"], MANY],
    "day": [DAYS[3], [date(2024, 1, 1) + timedelta(days=n) for n in range(60)], date(2024, 12, 31)], "cost": [0.0, 1000.0, 500.0, 1.0], "change": [-10.0, 10.0, 0.0],
    "seen": [datetime(2024, 1, 1), datetime(2024, 12, 31, 23), [datetime(2024, 1, 1, h) for h in range(24)]],
    "nights": [0, 30, 15, 1, 6], "diagnosis": ["flu", MANY, "9", "x" * 40], "code": [0, 7, list(range(-30, 30))],
    "test": ["alt", "hb", SPREAD["test"]], "value": [-4.0, 4.0, 0.0], "flag": [True, False],
}  # fmt: skip


def improvements(best: Profile, sql: str) -> Iterator[Profile]:
    """Yield `best` with one change at a time, for each thing that the query names."""
    named = {column.name.lower() for column in tree_of(sql).find_all(exp.Column)}
    sharp = literals(sql)
    for column in sorted(named & set(PLAIN)):
        for value in [*sharp.get(column, []), *CORNERS[column]]:
            yield replace(best, name=f"{best.name}, {column} {value}", values={**best.values, column: value})
    for rows, labs in ((0, 0), (1, 1), (20, 1), (6, 2), (4, 3)):
        yield replace(best, name=f"{best.name}, {rows} visits with {labs} labs", rows=rows, labs=labs)
