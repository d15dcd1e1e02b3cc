"""evaluate() in Python and the SQL for DuckDB agree on every function and on random trees; no data raises an error."""

import math
import random
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from support.random_expressions import COLUMNS, LIBM, SPECS, B, D, I, R, S, T, apply, grow, literal, random_rows
from support.seeds import seeds

from dpsql.engine.duckdb.dialect import DUCKDB as emit
from dpsql.functions.dates import of_words
from dpsql.functions.evaluate import _LAZY, MEANINGS, evaluate
from dpsql.functions.numeric import REGISTRY, call
from dpsql.functions.values import like
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Expr

ARROW = {I: pa.int64(), R: pa.float64(), T: pa.string(), B: pa.bool_(), D: pa.date32(), S: pa.timestamp("us")}
ROWS = random_rows(random.Random(20240229), 160)


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield table `rows` for values, and table `wild` for values beyond Python's range, read as the emitter reads a source."""
    connection = duckdb.connect()
    columns = {name: pa.array([row[name] for row in ROWS], ARROW[c.facts.type]) for name, c in COLUMNS.items()}
    given = pa.table({"place": range(len(ROWS)), **columns})
    connection.register("given", given)
    connection.execute("CREATE TABLE sample AS SELECT * FROM given ORDER BY place")
    dates = "'infinity' '-infinity' '5881580-07-10' '5877642-06-25 (BC)' '10000-01-01' '0001-12-31 (BC)'"
    times = "'infinity' '-infinity' '294247-01-10 04:00:54.775806' '290309-12-22 (BC) 00:00:00' '10000-01-01'"
    times += " '0001-12-31 (BC) 23:00:00'"
    wild = zip(re.findall("'.*?'", dates), re.findall("'.*?'", times), strict=True)
    cases = ", ".join(f"(DATE {day}, TIMESTAMP {time})" for day, time in wild)
    read = ", ".join(f'{emit.cast_column(source, type_, type_.value)} AS "{type_.value}{number}"'
                     for number in (1, 2) for source, type_ in (("day", D), ("time", S)))  # fmt: skip
    others = ", ".join(f'"{name}"' for name, column in COLUMNS.items() if not column.facts.type.temporal)
    connection.execute(f"CREATE TABLE wild AS SELECT {others}, {read} FROM sample, (VALUES {cases}) AS v(day, time)")
    yield connection
    connection.close()


def computed(engine: duckdb.DuckDBPyConnection, expressions: list[Call]) -> list[list[Any]]:
    """Return the engine's values per expression in row order; an engine error names the expression."""
    items = [f"{emit.expression(expression)} AS c{at}" for at, expression in enumerate(expressions)]
    try:
        rows = engine.execute(f"SELECT {', '.join(items)} FROM sample ORDER BY place").fetchall()
    except duckdb.Error:
        for expression, item in zip(expressions, items, strict=True):
            try:
                engine.execute(f"SELECT {item} FROM sample ORDER BY place").fetchall()
            except duckdb.Error as error:
                raise AssertionError(f"{item}\n{expression}\n{error}") from error
        raise
    return [list(column) for column in zip(*rows, strict=True)]


def same(ours: Any, theirs: Any, relative: float) -> bool:
    """Return whether values and types are equal; NaN equals NaN, and the two zeros are equal."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return (
            ours == theirs or (math.isnan(ours) and math.isnan(theirs)) or math.isclose(ours, theirs, rel_tol=relative)
        )
    return type(ours) is type(theirs) and ours == theirs


def differences(engine: duckdb.DuckDBPyConnection, expressions: list[Call]) -> list[str]:
    found = []
    for start in range(0, len(expressions), 25):
        part = expressions[start : start + 25]
        for expression, theirs in zip(part, computed(engine, part), strict=True):
            # Only the C library's functions may differ, in the last digit.
            relative = 1e-15 if expression.function in LIBM else 0.0
            for row, value in zip(ROWS, theirs, strict=True):
                ours = evaluate(expression, row)
                if not same(ours, value, relative):
                    found.append(f"{emit.expression(expression)}: ours {ours!r}, theirs {value!r}")
                    break
    return found


def test_every_function_of_the_register_is_tried() -> None:
    assert {name for name, _, _ in SPECS} == set(REGISTRY) == set(emit.functions) == MEANINGS


def test_every_fact_of_a_function_stands_in_its_entry() -> None:
    """Only functions that handle NULL themselves have a meaning for it; each spelling and node belongs to one function."""
    without = {name for name, entry in REGISTRY.items() if entry.meaning is None}
    assert without == set(_LAZY)
    spellings = [word for entry in REGISTRY.values() for word in (*entry.spellings, *entry.nodes)]
    assert len(spellings) == len(set(spellings))


def test_each_function_agrees_with_the_engine(engine: duckdb.DuckDBPyConnection) -> None:
    rng = random.Random(1)
    assert not differences(engine, [apply(rng, spec, 1) for spec in SPECS for _ in range(3)])


EDGES = [None, *(sign * (2**bits + step) for bits in (0, 15, 21, 31, 32, 61, 62) for sign in (1, -1) for step in (-1, 0, 1)), 2**63 - 1, -(2**63)]  # fmt: skip


@pytest.mark.parametrize("seed", seeds(2, 1))
def test_arithmetic_of_integers_is_null_exactly_beyond_64_bits(seed: int) -> None:
    """At some step, for values at the ends of what 64 bits hold; beside them rows that stay far below the ends."""
    rng = random.Random(seed)

    def tree(depth: int) -> Expr:
        if depth and rng.random() < 0.8:
            return call(rng.choice(("add", "sub", "mul")), tree(depth - 1), tree(depth - 1))
        return literal(rng.choice(EDGES[1:])) if rng.random() < 0.3 else Column(rng.choice("abc"), Facts(I))

    rows = [{name: rng.choice(EDGES) for name in "abc"} for _ in range(300)]
    rows += [{name: rng.choice((None, 3, 20, -7)) for name in "abc"} for _ in range(100)]
    trees = [call(name, tree(depth), tree(depth)) for name in ("add", "sub", "mul") for depth in (0, 1, 2, 3)]
    with duckdb.connect() as connection:
        connection.register("given", pa.Table.from_pylist(rows, pa.schema({name: pa.int64() for name in "abc"})))
        for expression in trees:
            values = connection.execute(f"SELECT {emit.expression(expression)} FROM given").fetchall()
            assert [value for (value,) in values] == [evaluate(expression, row) for row in rows], expression


@pytest.mark.parametrize(("value", "digits", "expected"), [(40.805, 2, 40.81), (-78.35, 1, -78.4), (1e300, 15, 1e300)])
def test_rounding_to_digits_rounds_the_product(
    engine: duckdb.DuckDBPyConnection, value: float, digits: int, expected: float
) -> None:
    """40.805 is slightly less than its text, and the double nearest to 100 times as much is 4080.5: versions of DuckDB differ in
    what they round."""
    expression = call("round", literal(Fraction(value)), literal(digits))
    assert evaluate(expression, {}) == expected
    assert engine.execute(f"SELECT {emit.expression(expression)}").fetchall() == [(expected,)]


@pytest.mark.parametrize("seed", seeds(4, 1))
def test_trees_of_functions_agree_with_the_engine(engine: duckdb.DuckDBPyConnection, seed: int) -> None:
    rng = random.Random(seed + 100)
    assert not differences(engine, [apply(rng, rng.choice(SPECS), rng.choice((2, 3, 4))) for _ in range(175)])


def test_no_data_raises_in_the_engine(engine: duckdb.DuckDBPyConnection) -> None:
    """Dates at the engine's limits and infinite ones, as values, predicates, CASE conditions and group keys."""
    rng = random.Random(7)
    trees: list[Expr] = [grow(rng, type_, 3) for type_ in (B, D, S, I, R, T) for _ in range(12)]
    trees += [apply(rng, spec, 1) for spec in SPECS]
    for at in range(0, len(trees), 20):
        texts = [emit.expression(tree) for tree in trees[at : at + 20]]
        engine.execute(f"SELECT {', '.join(texts)} FROM wild").fetchall()
    for tree in [grow(rng, B, 3) for _ in range(25)]:
        condition, key = emit.expression(tree), emit.expression(grow(rng, rng.choice((D, S, I, T)), 2))
        engine.execute(
            f"SELECT {key} AS k, count(*) FILTER (WHERE {condition}) FROM wild WHERE {condition} GROUP BY 1"
        ).fetchall()


def test_dates_outside_the_calendar_are_null(engine: duckdb.DuckDBPyConnection) -> None:
    """This makes every later function of them total and every key representable."""
    left = engine.execute('SELECT count("date1"), count("timestamp1"), count(*) > 0 FROM wild').fetchone()
    assert left == (0, 0, True)


def test_try_is_never_written(engine: duckdb.DuckDBPyConnection) -> None:
    """TRY writes outside its vectors if CASE or COALESCE is below it (see emit.duckdb)."""
    rng = random.Random(8)
    assert not [spec for spec in SPECS if re.search(r"\bTRY\s*\(", emit.expression(apply(rng, spec, 3)))]


def test_csv_text_that_is_no_number_is_null(tmp_path: Any) -> None:
    """A bare TRY_CAST is pushed into the CSV reader and raises there, quoting the line."""
    file = tmp_path / "t.csv"
    file.write_text("1,2024-01-01\nnope,never\n3,2024-01-02\n")
    number, day = emit.cast_column("a", I, "VARCHAR"), emit.cast_column("b", D, "VARCHAR")
    scan = f"read_csv('{file}', header=false, all_varchar=true, names=['a', 'b'])"
    rows = duckdb.connect().execute(f"SELECT {number}, day(b) FROM (SELECT a, {day} AS b FROM {scan})").fetchall()
    assert rows == [(1, 1), (None, None), (3, 2)]


@pytest.mark.parametrize(
    "value", [0, -1, 2**63 - 1, -(2**63), Fraction(1, 10), Fraction(-1, 3), Fraction(10) ** 300, 5e-324, -0.0, math.inf,
              -math.inf, math.nan, 1.7976931348623157e308, "", "it's", 'a"b', "a\\b", "a\x00b", "é👍", True, None]
)  # fmt: skip
def test_constants_are_read_back_as_they_were(value: Any) -> None:
    """They are written with a type and read back unchanged."""
    ((found,),) = duckdb.connect().execute(f"SELECT {emit.constant(value)}").fetchall()
    assert same(float(value) if isinstance(value, Fraction) else value, found, 0.0)


def test_like_agrees_with_a_regular_expression() -> None:
    rng = random.Random(3)
    for _ in range(3000):
        text = "".join(rng.choice("ab\n") for _ in range(rng.randint(0, 8)))
        pattern = "".join(rng.choice("ab%_") for _ in range(rng.randint(0, 6)))
        expected = re.fullmatch("".join({"%": ".*", "_": "."}.get(c, c) for c in pattern), text, re.DOTALL) is not None
        assert like(text, pattern) is expected, (text, pattern)


def test_lower_upper_and_trim_treat_every_letter_as_the_engine_does() -> None:
    """lower and upper are compared over all of Unicode, which no sample would cover."""
    letters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    ours = [c for c in letters if c != c.lower() or c != c.upper() or c != c.title() or c.isspace()]
    column = Column("c", Facts(Type.TEXT))
    connection = duckdb.connect()
    connection.register("letters", pa.table({"c": letters}))
    connection.register("ours", pa.table({"c": ours}))
    maps = [call(name, column) for name in ("lower", "upper", "trim")]
    low, up, trimmed = map(emit.expression, maps)
    changed = f"{low} <> c OR {up} <> c OR {trimmed} = '' OR c IN (SELECT c FROM ours)"
    rows = connection.execute(f"SELECT c, {low}, {up}, {trimmed} FROM letters WHERE {changed}").fetchall()
    assert len(rows) > 2_800
    wrong = [(hex(ord(c)), theirs) for c, *theirs in rows if [evaluate(m, {"c": c}) for m in maps] != theirs]
    assert not wrong


# --- Words of to_char are translated only where strftime's letters mean the same --------------------------------------


@pytest.mark.parametrize(
    ("words", "letters"),
    [
        ("YYYY-MM-DD", "%Y-%m-%d"),
        ("HH24:MI:SS", "%H:%M:%S"),
        ("MISS", "%M%S"),
        ('"day" DDD', "day %j"),
        # seconds past midnight, and its other spelling
        ("SSSS", None),
        ("SSSSS", None),
        ("HH24SSSS", None),
        # a backslash before a quotation mark makes it a character in PostgreSQL
        ('\\"DD', None),
        ("D", None),
    ],
)
def test_words_with_another_meaning_than_their_parts_are_not_translated(words: str, letters: str | None) -> None:
    assert of_words(words) == letters
