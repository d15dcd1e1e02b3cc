"""Row functions on a real PostgreSQL server agree with `evaluate`, and no data raises an error."""

import itertools
import math
import random
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from support.postgres_source import Server, server
from support.random_expressions import COLUMNS, SPECS, B, D, I, R, S, T, apply, grow, random_rows, same

from dpsql.engine.postgresql.dialect import CASE_MAPPING_VERSION, FUNCTIONS, UNSUPPORTED, PostgreSQLDialect
from dpsql.engine.postgresql.literals import TYPES, let, product_of, quotient_of, sum_of
from dpsql.engine.postgresql.patterns import NotTheSame, in_postgresql
from dpsql.errors.exceptions import Refusal
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import REGISTRY, WrongArguments, call
from dpsql.functions.text import checked, matches
from dpsql.functions.values import lower, upper
from dpsql.plan.intervals import Facts
from dpsql.plan.plan import Call, Column, literal

__all__ = ["server"]
ROWS = [
    {name: value.replace("\0", "") if isinstance(value, str) else value for name, value in row.items()}
    for row in random_rows(random.Random(20240229), 160)
]
BEFORE_17 = PostgreSQLDialect(CASE_MAPPING_VERSION - 1)
LIBM = {"ln", "log10"}
CASE_MAPPED_SINCE = "\u1c89\u1c8a\ua7cb\ua7cc\ua7cd\ua7da\ua7db\ua7dc\u019b\u0264"
"""Letters whose other case was added after Unicode 14, in addition to the alphabet Garay (from U+10D50)."""


class Rows:
    """Table `sample` with the rows above, and table `ends` with dates and times beyond Python's range."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.dialect = PostgreSQLDialect(self.connection.info.server_version)
        columns = ", ".join(f'"{name}" {TYPES[column.facts.type]}' for name, column in COLUMNS.items())
        self.connection.execute(f"CREATE TABLE sample (place bigint, {columns})")
        marks = ", ".join(["%s"] * (len(COLUMNS) + 1))
        with self.connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO sample VALUES ({marks})", [(at, *row.values()) for at, row in enumerate(ROWS)]
            )
        ends = "('infinity'), ('-infinity'), ('4713-01-01 BC'), ('294276-12-31'), ('10000-01-01'), ('0001-12-31 BC')"
        read = ", ".join(
            f'{self.dialect.cast_column(source, type_, TYPES[type_])} AS "{type_.value}{number}"'
            for number in (1, 2) for source, type_ in (("day", D), ("time", S))
        )  # fmt: skip
        others = ", ".join(f'"{name}"' for name, column in COLUMNS.items() if not column.facts.type.temporal)
        self.connection.execute(
            f"CREATE TABLE ends AS SELECT {others}, {read} FROM sample, "
            f"(SELECT CAST(t AS date) AS day, CAST(t AS timestamp) AS time FROM (VALUES {ends}) AS v (t)) AS w"
        )

    def values(self, text: str, table: str = "sample", order: str = " ORDER BY place") -> list[Any]:
        try:
            return [row[0] for row in self.connection.execute(f"SELECT {text} FROM {table}{order}").fetchall()]
        except psycopg.Error as error:
            raise AssertionError(f"{text}\n{error}") from error

    def text(self, expression: Any) -> str | None:
        """Return the SQL of an expression, or None if the dialect refuses it."""
        try:
            return self.dialect.expression(expression)
        except Refusal as refusal:
            assert refusal.slug in ("engine_function", "engine_literal")
            return None

    def differences(self, expressions: list[Call]) -> list[str]:
        found, tried = [], 0
        for expression in expressions:
            text = self.text(expression)
            if text is None:
                continue
            tried += 1
            relative = 1e-15 if expression.function in LIBM else 0.0
            for row, theirs in zip(ROWS, self.values(text), strict=True):
                ours = evaluate(expression, row)
                if not same(ours, theirs, relative):
                    found.append(f"{text}: ours {ours!r}, theirs {theirs!r}")
                    break
        assert tried > len(expressions) / 2
        return found


@pytest.fixture(scope="module")
def rows(server: Server) -> Iterator[Rows]:
    found = Rows(server.database())
    yield found
    found.connection.close()


def test_every_function_is_written_or_has_its_reason() -> None:
    assert set(FUNCTIONS) | set(UNSUPPORTED) == set(REGISTRY)
    assert set(FUNCTIONS) & set(UNSUPPORTED) == set()
    assert all(UNSUPPORTED.values())


def test_each_function_means_what_python_says(rows: Rows) -> None:
    rng = random.Random(1)
    assert not rows.differences([apply(rng, spec, 1) for spec in SPECS for _ in range(2)])


@pytest.mark.parametrize("seed", range(3))
def test_trees_of_functions_mean_what_python_says(rows: Rows, seed: int) -> None:
    rng = random.Random(seed + 100)
    assert not rows.differences([apply(rng, rng.choice(SPECS), rng.choice((2, 3))) for _ in range(80)])


def test_no_date_of_the_server_raises(rows: Rows) -> None:
    """Dates at the server's limits and infinite ones, as values, as conditions, and as group keys."""
    rng = random.Random(7)
    trees = [apply(rng, spec, 1) for spec in SPECS] + [
        grow(rng, type_, 2) for type_ in (B, D, S, I, R, T) for _ in range(6)
    ]
    for tree in trees:
        if (text := rows.text(tree)) is not None:
            rows.values(text, "ends", "")
    for tree in [grow(rng, B, 2) for _ in range(15)]:
        if (text := rows.text(tree)) is not None:
            rows.values("count(*)", f"ends WHERE {text} GROUP BY {text}", "")


def test_dates_outside_the_calendar_are_null(rows: Rows) -> None:
    assert rows.values('count("date1") + count("timestamp2")', "ends", "") == [0]
    assert rows.values("count(*) > 100", "ends", "") == [True]


REALS = [
    0.0, 1.0, -1.0, 0.5, 3.0, 5e-324, -5e-324, 1e-323, 2.2250738585072014e-308, 1e-310, 2.0**-537, 2.0**-538, 1.5e-154,
    -1.5e-162, 1e-150, 1e150, 1e-200, 1e200, 2.0**511, 2.0**512, 2.0**1023, 1.7976931348623157e308,
    -1.7976931348623157e308, 8.98846567431158e307, 8.988465674311579e307, 9.9792015476736e291, 1e292, 2.0**970,
    2.0**-51, 2.0**-50, 2.0**-1022, math.inf, -math.inf, math.nan, 0.9999999999999999, 1.0000000000000002,
]  # fmt: skip


def test_arithmetic_of_doubles_is_that_of_ieee_754(rows: Rows) -> None:
    """Every pair of numbers around the values at which the server raises; a difference of one unit of the smallest double is
    tolerated."""
    listed = ", ".join(f"('{value!r}'::float8)" for value in REALS)
    pairs = f"(VALUES {listed}) AS l (x), (VALUES {listed}) AS r (y)"
    columns = [
        sum_of("l.x", "r.y", "+"), sum_of("l.x", "r.y", "-"), product_of("l.x", "r.y"), quotient_of("l.x", "r.y"),
    ]  # fmt: skip
    answers = rows.connection.execute(f"SELECT x, y, {', '.join(columns)} FROM {pairs}").fetchall()
    assert len(answers) == len(REALS) ** 2
    for x, y, *theirs in answers:
        quotient = None if y == 0 else _ieee(x, y)
        for ours, value in zip((x + y, x - y, x * y, quotient), theirs, strict=True):
            near = {ours, value} <= {0.0, 5e-324, -5e-324}
            assert near or same(ours, value), f"{x!r}, {y!r}: ours {ours!r}, theirs {value!r}"


def _ieee(x: float, y: float) -> float:
    try:
        return x / y
    except OverflowError:
        return math.copysign(math.inf, x) * math.copysign(1.0, y)


def test_names_of_let_do_not_meet_the_texts_they_stand_for() -> None:
    assert let({"a": '"b"', "b": '"a"'}, "(a - b)") == '("b" - "a")'
    assert let({"a": "b", "b": "e"}, "(a - b)") == "(b - e)"
    assert let({"a": "(x + 1)"}, "(a * a)") == '(SELECT (a * a) FROM (SELECT (x + 1) AS a OFFSET 0) AS "#let")'


def test_case_of_every_letter_is_that_of_python(rows: Rows) -> None:
    rows.connection.execute("CREATE TEMP TABLE letters (t text)")
    every = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    with rows.connection.cursor() as cursor, cursor.copy("COPY letters FROM STDIN") as copy:
        for letter in every:
            copy.write_row((letter,))
    for (name, python), dialect in itertools.product((("lower", lower), ("upper", upper)), (rows.dialect, BEFORE_17)):
        text = dialect.expression(Call(name, (Column("t", Facts(T)),), Facts(T)))
        answers = rows.connection.execute(f"SELECT t, {text} FROM letters").fetchall()
        wrong = {letter for letter, theirs in answers if theirs != python(letter)}
        by_server = set(CASE_MAPPED_SINCE) if dialect is not BEFORE_17 else set()
        assert {letter for letter in wrong if not 0x10D50 <= ord(letter) < 0x10D90} <= by_server


@pytest.mark.parametrize("name", ["lower", "upper", "ilike"])
def test_servers_before_version_17_map_the_case_of_texts(rows: Rows, name: str) -> None:
    """The text for old servers runs on every server, and depends on none of their locales."""
    rng = random.Random(5)
    spec = next(spec for spec in SPECS if spec[0] == name)
    server, rows.dialect = rows.dialect, BEFORE_17
    try:
        assert not rows.differences([apply(rng, spec, depth) for depth in (1, 2) for _ in range(8)])
    finally:
        rows.dialect = server


LETTERS = "aAbßéK\u212a7_- .\n\t\r\v\f\\[]{}()*+?|^$\u2028\U0001f600"


def pattern(rng: random.Random, depth: int) -> str:
    """Return a pattern of the common language, or of what only one of the two, or neither, accepts."""
    if depth == 0 or rng.random() < 0.2:
        sets = [
            r"\d", r"\w", r"\s", ".", "^", "$", "[a-c]", "[^a]", r"[\w-]", r"[^\s]", "[]a]", "[a-]", "[+-.]", "[^-a]",
            r"[\]\\]",
        ]  # fmt: skip
        others = [
            r"\b", "(?i)a", "[[:alpha:]]", r"\pL", r"\z", "a{,2}", "{", "}", "]", r"\x41", "[b-a]", r"[\d-z]",
            "(?P<n>a)",
        ]  # fmt: skip
        letter = rng.choice(LETTERS)
        return rng.choice(
            [re.escape(letter), letter, rng.choice(sets), rng.choice(sets), rng.choice(others) if depth else "b"]
        )
    parts = [pattern(rng, depth - 1) for _ in range(rng.choice((1, 2, 2, 3)))]
    joined = rng.choice(("", "", "|")).join(parts)
    bracketed = rng.choice((f"({joined})", f"(?:{joined})"))
    return rng.choice(
        (joined, bracketed, bracketed + rng.choice(("*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "??", "{2}?")))
    )


def test_patterns_mean_what_re2_says(rows: Rows) -> None:
    """For every pattern that RE2 accepts and that is written for the server, both find the same texts."""
    rng = random.Random(41)
    texts = ["", *LETTERS, *("".join(rng.choices(LETTERS, k=rng.randrange(1, 9))) for _ in range(60))]
    rows.connection.execute("CREATE TEMP TABLE texts (n serial, t text)")
    rows.connection.cursor().executemany("INSERT INTO texts (t) VALUES (%s)", [(text,) for text in texts])
    written = 0
    for candidate in dict.fromkeys(pattern(rng, 3) for _ in range(800)):
        try:
            checked(candidate)
            text = rows.dialect.expression(call("regexp_matches", Column("t", Facts(T)), literal(candidate)))
        except (WrongArguments, Refusal):
            continue
        written += 1
        assert rows.values(text, "texts", " ORDER BY n") == [matches(each, candidate) for each in texts], candidate
    assert written > 250


@pytest.mark.parametrize(
    "long",
    ["(a{99}){99}", f"({'a' * 190}){{9}}", "((a{9}){9}){9}", "[a-z]{256}", "(a|b){200}", "(" * 400 + "a" + ")" * 400],
)
def test_patterns_of_many_states_are_refused(long: str) -> None:
    with pytest.raises(NotTheSame):
        in_postgresql(long)


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_a_function_that_is_not_exact_is_refused_with_its_reason(name: str) -> None:
    rng = random.Random(3)
    spec = next(spec for spec in SPECS if spec[0] == name)
    with pytest.raises(Refusal) as refusal:
        PostgreSQLDialect(180000).expression(apply(rng, spec, 1))
    assert refusal.value.slug == "engine_function"
    assert UNSUPPORTED[name] in refusal.value.message and not re.search(r"\{\w+\}", refusal.value.text())
