"""Sources on servers for the neighbour tests: a column of every type that a policy may name, with values at each limit.

Each kind of column is a type of the policy, a type of the server and SQL texts of values; the first is an ordinary value, which all
other people have. An additional person has the others, one after another, in all columns at once.
"""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsql.errors.exceptions import Refusal
from dpsql.policy import Policy, parse_policy
from dpsql_audit.distances import compare
from dpsql_audit.observation import Observed, ObservedSession
from dpsql_audit.replay import same_outcome, same_stages

PEOPLE = 12
ROWS_OF_EACH = 6


@dataclass(frozen=True)
class Kind:
    """A kind of column. `values`: SQL texts of its values."""

    type: str
    server_type: str
    values: tuple[str, ...]


def _kinds(type_: str, server_types: Iterable[str], *values: str) -> tuple[Kind, ...]:
    return tuple(Kind(type_, server_type, values) for server_type in server_types)


REALS = ("0.5", "'NaN'", "'Infinity'", "'-Infinity'", "3.4e38", "-1e-37", "'-0'", "NULL")
DOUBLES = (
    *REALS, "1.7976931348623157e308", "-1.7976931348623157e308", "4.9406564584124654e-324", "9223372036854775807",
    "0.5",
)  # fmt: skip
NUMERICS = (
    "2.5", "'NaN'", "'Infinity'", "'-Infinity'", "1e130000", "-1e400", "1e-16000", "9223372036854775807.5", "-9223372036854775808.5", "NULL",
)  # fmt: skip
DAYS = (
    "'2024-02-29'", "'infinity'", "'-infinity'", "'4713-01-01 BC'", "'0001-01-01'", "'9999-12-31'", "'0001-12-31 BC'",
    "'10000-01-01'", "NULL",
)  # fmt: skip
MOMENTS = (
    *DAYS, "'294276-12-31 23:59:59.999999'", "'9999-12-31 23:59:59.999999'", "'2024-06-30 23:59:60'",
    "'2024-02-29 24:00'",
)  # fmt: skip
TEXTS = (
    "'a'", "''", "' a '", "repeat('\"', 70000)", "repeat('\\', 2000)", "E'\\x01\\n\\r\\t'", "'Straße'", "'😀'", "'infinity'", "'NULL'",
    "'1e400'", "'2024-02-30'", "'9223372036854775808'", "'A'", "'ǅ'", "'ß'", "NULL",
)  # fmt: skip
JSONS = (
    """'{"a": 1}'""", "'null'", "'[]'", "'\"\"'", """'{"a": [1, {"b": null}]}'""", "'1e100'",
    "to_json(repeat('\"', 70000))", "NULL",
)  # fmt: skip
TRUTHS = ("'t'", "'TRUE'", "'no'", "' f '", "'1'", "'2'", "'on'")
TIMES = ("'00:00'", "'24:00'", "'23:59:59.999999'", "'12:30:15.5'", "NULL")
TYPES_OF_NUMBERS = {
    "smallint": ("7", "-32768", "32767", "0", "NULL"),
    "integer": ("7", "-2147483648", "2147483647", "NULL"),
    "bigint": ("7", "-9223372036854775808", "9223372036854775807", "9007199254740993", "NULL"),
    "numeric": NUMERICS, "real": REALS, "double precision": DOUBLES,
}  # fmt: skip
POSTGRESQL: tuple[Kind, ...] = (
    *(Kind(type_, name, values) for type_ in ("integer", "real") for name, values in TYPES_OF_NUMBERS.items()),
    *(Kind("text", name, TYPES_OF_NUMBERS[name]) for name in ("smallint", "integer", "bigint")),
    *_kinds("text", ("text", "character varying"), *TEXTS),
    *_kinds("text", ("character(5)", "name"), "'a'", "''", "'a  '", "'Straß'", "NULL"),
    *_kinds("text", ("uuid",), "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000000'", "NULL"),
    *_kinds("text", ("json",), *JSONS), *_kinds("text", ("jsonb",), *JSONS, "'1e130000'"),
    *_kinds("text", ("mood",), "'ok'", "'sad'", "''", "NULL"), *_kinds("text", ("word",), "'a'", "''", "NULL"),
    *_kinds("boolean", ("boolean",), "true", "false", "NULL"),
    *(Kind("boolean", name, TYPES_OF_NUMBERS[name]) for name in ("smallint", "integer", "bigint")),
    *_kinds("boolean", ("text", "character varying"), *TRUTHS, *TEXTS), *_kinds("boolean", ("character(5)", "mood"), "'ok'", "''", "NULL"),
    *(kind for type_ in ("integer", "text") for kind in _kinds(type_, ("time without time zone",), *TIMES)),
    *_kinds("date", ("date",), *DAYS, "'5874897-12-31'"), *_kinds("timestamp", ("date",), *DAYS, "'5874897-12-31'"),
    *(kind for type_ in ("date", "timestamp") for kind in _kinds(
        type_, ("timestamp without time zone", "timestamp with time zone"), *MOMENTS
    )),
)  # fmt: skip
TYPES_OF_POSTGRESQL = "CREATE TYPE mood AS ENUM ('ok', 'sad', ''); CREATE DOMAIN word AS varchar(9)"

WHOLE = {
    "tinyint": ("7", "-128", "127", "NULL"), "smallint": TYPES_OF_NUMBERS["smallint"], "int": TYPES_OF_NUMBERS["integer"],
    "bigint": ("7", "-9223372036854775807 - 1", "9223372036854775807", "9007199254740993", "NULL"),
}  # fmt: skip
FLOATS = (
    "0.5", "'NaN'", "'Infinity'", "'-Infinity'", "3.4e38", "'-0.0'", "1e-45", "'1.7976931348623157e308'",
    "'9.223372036854775807e18'", "NULL",
)  # fmt: skip
DECIMALS = {
    "decimal(38,0)": ("2", "99999999999999999999999999999999999999BD", "-99999999999999999999999999999999999999BD", "9223372036854775808BD", "NULL"),
    "decimal(38,38)": ("0.5BD", "0.99999999999999999999999999999999999999BD", "-0.99999999999999999999999999999999999999BD", "NULL"),
    "decimal(20,1)": ("2.5BD", "9223372036854775807.5BD", "-9223372036854775808.5BD", "9999999999999999999.9BD", "NULL"),
}  # fmt: skip
SPARK_TEXTS = (
    "'a'", "''", "' a '", "repeat('\"', 70000)", "CAST(X'FFFE' AS STRING)", "CAST(X'EDA080' AS STRING)", "CAST(X'6100' AS STRING)",
    "'Straße'", "'😀'", "'1e400'", "'2024-02-30'", "'9223372036854775808'", "'A'", "NULL",
)  # fmt: skip
SPARK_DAYS = (
    "'2024-02-29'", "'0001-01-01'", "'9999-12-31'", "'0000-12-31'", "'+10000-01-01'", "'-4713-11-24'",
    "'+5881580-07-11'", "NULL",
)  # fmt: skip
SPARK_MOMENTS = (
    "'2024-02-29 12:00:00'", "'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'", "'+10000-01-01 00:00:00'", "'-0001-01-01 00:00:00'",
    "timestamp_micros(9223372036854775807)", "timestamp_micros(-9223372036854775807 - 1)", "NULL",
)  # fmt: skip
SPARK: tuple[Kind, ...] = (
    *(Kind(type_, name, values) for type_ in ("integer", "real") for name, values in {**WHOLE, **DECIMALS}.items()),
    *(kind for type_ in ("integer", "real") for kind in _kinds(type_, ("float", "double"), *FLOATS)),
    *(Kind("text", name, values) for name, values in WHOLE.items()), *_kinds("text", ("string",), *SPARK_TEXTS),
    *_kinds("boolean", ("boolean",), "true", "false", "NULL"),
    *(Kind("boolean", name, values) for name, values in WHOLE.items()), *_kinds("boolean", ("string",), *TRUTHS, *SPARK_TEXTS),
    *(kind for type_ in ("date", "timestamp") for kind in _kinds(type_, ("date",), *SPARK_DAYS)),
    *(kind for type_ in ("date", "timestamp") for kind in _kinds(type_, ("timestamp", "timestamp_ntz"), *SPARK_MOMENTS)),
)  # fmt: skip
"""Without char(n) and varchar(n), which Spark has in tables of a catalog alone."""

BOUNDS: dict[str, dict[str, Any]] = {
    "integer": {"lower": -9, "upper": 9}, "real": {"lower": -10, "upper": 10}, "text": {}, "boolean": {},
    "date": {"lower": "2024-01-01", "upper": "2024-12-31"}, "timestamp": {"lower": "2024-01-01 00:00:00", "upper": "2024-12-31 23:59:59"},
}  # fmt: skip
QUESTIONS = {
    "integer": (
        "SELECT COUNT({c}), SUM({c}), AVG({c}) FROM t", "SELECT {c}, COUNT(*) FROM t GROUP BY {c}", "SELECT COUNT(*) FROM t WHERE {c} * 3 > -{c}",
        "SELECT SUM(clamp({c} % 7, 0, 6)), COUNT(CAST({c} AS TEXT)) FROM t", "SELECT m, COUNT(*) FROM (SELECT person, MAX({c}) AS m FROM t GROUP BY person) GROUP BY m",
    ),
    "real": (
        "SELECT COUNT({c}), SUM({c}), AVG({c}), VAR_POP({c}) FROM t", "SELECT {c}, COUNT(*) FROM t GROUP BY {c}", "SELECT COUNT(*) FROM t WHERE 1 / {c} > {c}",
        "SELECT SUM(clamp(CAST({c} AS INTEGER), -9, 9)), SUM(clamp({c} * {c}, 0, 9)) FROM t", "SELECT COUNT(DISTINCT {c}) FROM t WHERE floor({c}) <= round({c})",
    ),
    "text": (
        "SELECT COUNT({c}), COUNT(DISTINCT {c}) FROM t", "SELECT {c}, COUNT(*) FROM t GROUP BY {c}", "SELECT COUNT(*) FROM t WHERE {c} LIKE '%a' OR {c} || {c} = 'aa'",
        "SELECT SUM(clamp(length({c}), 0, 9)) FROM t", "SELECT COUNT(CAST({c} AS INTEGER)), COUNT(CAST({c} AS DATE)), COUNT(CAST({c} AS DOUBLE)) FROM t",
        "SELECT COUNT(*) FROM (SELECT DISTINCT {c} FROM t)",
    ),
    "boolean": ("SELECT {c}, COUNT(*) FROM t GROUP BY {c}", "SELECT COUNT(*) FROM t WHERE {c} OR {c} IS NULL"),
    "date": (
        "SELECT COUNT({c}), COUNT(DISTINCT {c}) FROM t", "SELECT date_trunc('month', {c}), COUNT(*) FROM t GROUP BY 1", "SELECT COUNT(*) FROM t WHERE {c} + 400 > {c}",
        "SELECT SUM(EXTRACT(dow FROM {c})) FROM t WHERE date_diff('day', {c}, DATE '2024-06-01') > 3",
    ),
    "timestamp": (
        "SELECT COUNT({c}), COUNT(DISTINCT {c}) FROM t", "SELECT date_trunc('quarter', {c}), COUNT(*) FROM t GROUP BY 1",
        "SELECT COUNT(*) FROM t WHERE {c} - INTERVAL 1 HOUR < {c} AND epoch({c}) > 0", "SELECT SUM(EXTRACT(hour FROM {c})) FROM t",
    ),
}  # fmt: skip
"""Questions about a column c, by its type in the policy."""


def policy_of(kinds: Sequence[Kind], source: str, table: str, folder: Path, by_rows: bool = False) -> Policy:
    """Return a policy with one table, whose columns c0, c1, ... are of these kinds."""
    columns = {f"c{number}": {"type": kind.type, **BOUNDS[kind.type]} for number, kind in enumerate(kinds)}
    unit: Any = "row" if by_rows else {"table": "t", "column": "person"}
    bounds = {} if by_rows else {"max_rows": 2}
    return parse_policy(
        json.dumps({
            "dataset": "servers", "source": source, "privacy_unit": unit, "budget": {"epsilon": 10000, "delta": 1e-4, "accountant": "pure"},
            "per_query": {"epsilon": 1, "delta": 1e-9}, "ledger": "sqlite:///ledger.db",
            "tables": {"t": {"source": table, **bounds, "columns": {"person": {"type": "text", "nullable": False}, **columns}}},
        }),
        folder=folder,
    )  # fmt: skip


def rows_of(kinds: Sequence[Kind], hostile: int | None = None) -> list[list[str]]:
    """Return rows as SQL texts: ordinary people and, if given, the person whose values begin with that place of each kind."""
    rows = [[f"'p{number % PEOPLE}'", *(kind.values[0] for kind in kinds)] for number in range(PEOPLE * 3)]
    if hostile is not None:
        for row in range(ROWS_OF_EACH):
            rows.insert(row, ["'eve'", *(kind.values[(hostile + row) % len(kind.values)] for kind in kinds)])
    return rows


def questions(kinds: Sequence[Kind], rng: random.Random, count: int | None) -> Iterator[str]:
    """Yield a question about all rows, and `count` questions about single columns (None: all questions about all columns)."""
    yield "SELECT COUNT(*), COUNT(DISTINCT person) FROM t"
    every = [(number, shape) for number, kind in enumerate(kinds) for shape in QUESTIONS[kind.type]]
    for number, shape in every if count is None else rng.sample(every, count):
        yield shape.replace("{c}", f"c{number}")


def differences(session: ObservedSession, sql: str, left: Observed, right: Observed) -> list[str]:
    """Return what differs between two neighbours besides noise, and distances beyond the claims. A question that is refused on
    both sides, before it is charged, has no differences."""
    if left.outcome == right.outcome != "answered" and not (left.charged or right.charged):
        return []
    try:
        price = session.session.plan(session.session.planner.parse(sql, None)).price
    except Refusal as refusal:
        return [f"refused after it was asked: {refusal.slug}"]
    verdict = same_outcome(*same_stages(price, left, right))
    if not verdict.problems:
        left, right = same_stages(price, left, right)
        verdict.problems += compare(price, left.blocks, right.blocks).problems
    return verdict.problems
