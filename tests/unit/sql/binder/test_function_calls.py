"""Calls as analysts write them bind to the right function: the bound expression equals DuckDB's result for the text itself."""

import math
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from dpsql.engine.duckdb.dialect import DUCKDB as emit
from dpsql.errors.exceptions import Refusal
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Expr, Scan
from dpsql.sql.binder import function_calls  # noqa: F401 (enters the handlers of functions)
from dpsql.sql.binder.scalars import HANDLERS, Scalars
from dpsql.sql.binder.scope import Protected, Scope
from dpsql.sql.parse import parse

TYPES = {"x": Type.INTEGER, "y": Type.INTEGER, "r": Type.REAL, "t": Type.TEXT, "u": Type.TEXT, "b": Type.BOOLEAN,
         "d": Type.DATE, "e": Type.DATE, "s": Type.TIMESTAMP}  # fmt: skip
ROWS: list[tuple[Any, ...]] = [
    (1, 2, 2.5, "abc", "a", True, date(2024, 2, 29), date(2023, 12, 31), datetime(2024, 2, 29, 13, 45, 59)),
    (-7, 0, -0.5, "Äb%c", "%", False, date(1969, 12, 31), date(2024, 1, 1), datetime(1969, 7, 20, 20, 17, 40)),
    (10, -3, 100.25, "  x ", "", None, date(2020, 12, 28), date(2020, 3, 1), datetime(2000, 1, 1)),
    (None, None, None, None, None, True, None, None, None),
    (5, 5, 9.0, "axbxc", "x", False, date(2024, 12, 31), date(2024, 12, 30), datetime(2024, 12, 31, 0, 0, 1)),
]
SCOPE = Scope(
    [("t", Protected(Scan("t", ()), tuple((name, Column(name, Facts(type_))) for name, type_ in TYPES.items())))]
)


def bound(text: str) -> Expr:
    query = parse(f"SELECT {text} FROM t").query
    assert isinstance(query, exp.Select)
    return Scalars(SCOPE).bind(query.expressions[0].unalias())


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    columns = ", ".join(f"{name} {emit.types[type_]}" for name, type_ in TYPES.items())
    connection.execute(f"CREATE TABLE t ({columns})")
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(TYPES))})", ROWS)
    yield connection
    connection.close()


SAME_AS_THE_ENGINE = """
x::int | x::bigint | r::decimal(10, 1) | r::integer | CAST(r AS BIGINT) | x::double | TRY_CAST(t AS INTEGER)
b::int | d::varchar | x::text | s::date | d::timestamp | x::boolean | d::date | x::smallint
EXTRACT(year FROM d) | EXTRACT(month FROM s) | EXTRACT(dow FROM d) | EXTRACT(doy FROM d) | EXTRACT(week FROM d)
date_part('year', d) | date_part('hour', s) | datepart('quarter', d) | date_part('dayofweek', d)
date_part('weekday', d) | year(d) | quarter(d) | month(s) | week(d) | weekofyear(d) | day(d) | dayofmonth(d)
dayofweek(d) | isodow(d) | dayofyear(d) | hour(s) | minute(s) | second(s) | d + INTERVAL 3 DAY
d + INTERVAL '3 days' | d - INTERVAL '1' MONTH | s + INTERVAL 2 HOUR | s - INTERVAL '90' MINUTE
s + INTERVAL 1 QUARTER | s - INTERVAL (2) YEAR | s + INTERVAL 1 WEEK | INTERVAL 1 DAY + s
s + INTERVAL '-5' SECOND | s + INTERVAL (-1) DAY | d + INTERVAL 13 MONTH | d + 3 | d - 3 | 3 + d | d + x::int
d - DATE '2024-01-01' | d - e | date_diff('day', d, e) | datediff('month', d, e)
date_diff('year', DATE '2000-05-05', d) | date_diff('week', d, e)
date_diff('hour', s, TIMESTAMP '2024-01-01 00:30:00') | date_trunc('month', d) | date_trunc('week', s)
date_trunc('quarter', s) | date_trunc('hour', s) | x BETWEEN 1 AND 5 | x NOT BETWEEN 1 AND 5
d BETWEEN '2020-01-01' AND DATE '2024-06-01' | x BETWEEN y AND 10 | x IN (1, 5) | x NOT IN (1, 5)
t IN ('abc', 'x') | x IN (1, NULL) | d IN (DATE '2024-02-29') | r IN (9, 2.5) | t LIKE 'a%' | t NOT LIKE 'a%'
t ILIKE 'ä_%' | t NOT ILIKE '%B%' | t LIKE '%\\%' | t LIKE '' | b IS TRUE | b IS NOT TRUE | b IS FALSE
b IS NOT FALSE | b IS UNKNOWN | x IS NULL | x IS NOT NULL | x ISNULL | x NOTNULL | x IS DISTINCT FROM y
x IS NOT DISTINCT FROM y | x IS DISTINCT FROM NULL | CASE x WHEN 1 THEN 'one' WHEN 5 THEN 'five' END
CASE WHEN x > 1 THEN 1 WHEN b THEN 0.5e0 ELSE NULL END | if(x > 1, x, 0) | CASE x WHEN NULL THEN 1 ELSE 2 END
CASE WHEN b THEN d ELSE s END | CASE WHEN NULL THEN 1 ELSE x END | t || u | t || '-' || u | concat(t, u)
concat(t, '-', u) | concat(t) | concat(t, x, d) | coalesce(x, y, 3) | ifnull(x, 7) | coalesce(NULL, x) | nullif(x, 5)
nullif(r, 9) | nullif(x, NULL) | substring(t, 2, 2) | substring(t FROM 2 FOR 2) | substr(t, 2) | left(t, 2)
right(t, 2) | length(t) | len(t) | char_length(t) | trim(t) | ltrim(t) | rtrim(t) | trim(LEADING FROM t)
trim(TRAILING FROM t) | trim(BOTH FROM t) | trim(t, 'ac') | trim(LEADING 'a' FROM t) | rtrim(t, 'bc') | x > '1' | r <= '9.0'
x IN ('1', '5') | t = '5' | x::text <> '5' | EXTRACT(decade FROM d) | date_part('century', s) | EXTRACT(millennium FROM d) | EXTRACT(isoyear FROM d) | lower(t) | upper(t) | lcase(t) | ucase(t) | replace(t, 'x', '')
replace(t, 'b', 'cc') | starts_with(t, u) | prefix(t, 'a') | suffix(t, 'c') | ends_with(t, u) | contains(t, u)
t ^@ 'a' | log10(x * x + 1) | log(x * x + 1) | ln(x * x + 1) | log(10, x * x + 1) | exp(r) | sqrt(x * x)
pow(x, 2) | power(r, 3) | x ^ 2 | x ** 2 | x % 3 | mod(x, 3) | x // 3 | x / 4 | r / 4 | x + y | x - y | x * y
-x | +x | - (x + 1) | abs(x) | abs(r) | @r | sign(r) | sign(x) | round(r) | round(r, 1) | floor(r) | ceil(r)
ceiling(r) | greatest(x, y) | least(x, y, 3) | greatest(r, x) | least(d, e) | greatest(NULL, x) | -x ^ 2
-2 ^ 2 | 2 ^ 3 ^ 2 | x - -1 | 2 * x % 4 | 7 // 2 * x | NOT x = 1 | x = 1 OR b AND x = 5 | NOT b AND x = 5
(x + 1) * 2 | x = 1 | x == 1 | x <> 1 | x != 1 | x < y | x <= y | x > y | x >= r | t < 'b' | d < '2024-01-01'
s >= '2024-01-01' | d = s | '2024-02-29' = d | x = 2.5 | r = 9 | b = true | NOT b | b AND NULL | b OR NULL
x = NULL
EXTRACT(epoch FROM s) | epoch(s) | epoch(d) | date_part('epoch', s) | floor(extract(epoch from s)/3600)*3600
time_bucket(INTERVAL '5 minutes', s) | time_bucket(INTERVAL 7 DAY, d) | time_bucket(INTERVAL '1 month', d)
time_bucket(INTERVAL '1 quarter', s) | time_bucket(INTERVAL 1 YEAR, s) | time_bucket(INTERVAL '36 hours', s)
time_bucket(INTERVAL '1 hour', s, TIMESTAMP '2001-01-01 00:30:00') | s + INTERVAL '1 minute' * (x % 5)
s - INTERVAL 1 DAY * x | d + INTERVAL 1 MONTH * x | s + x * INTERVAL '2 hours'
date_trunc('minute', s) - INTERVAL '1 minute' * (EXTRACT(MINUTE FROM s)::int % 5)
regexp_matches(t, 'b') | regexp_matches(t, '^[ÄA]B', 'i') | regexp_matches(t, 'a.*C', 'is') | regexp_replace(t, '[abc]', '-')
regexp_replace(t, '[abc]', '-', 'g') | regexp_replace(t, '(b)(.)', '\\2\\1') | regexp_replace(t, 'B', '', 'gi')
split_part(t, 'b', 1) | split_part(t, 'x', 3) | strlen(t) | strpos(t, 'b') | instr(t, u) | position('c' IN t)
strftime(d, '%Y-%m') | strftime(s, '%A, %d. %b %H:%M:%S') | concat_ws('-', t, u) | concat_ws('-', t) | dayname(d)
sin(r) | cos(x) | tan(r) | asin(r / 200) | acos(x / 20) | atan(r) | atan2(r, x) | radians(r) | degrees(x) | pi() * r
monthname(s) | last_day(d) | last_day(s) | concat_ws(', ', u, NULL, t) | t || x || b
x || ':' || d | concat_ws('-', x, t, d) | concat_ws('-', x)
"""
"""One line may hold several expressions, separated by ' | '."""
TEXTS = [text for line in SAME_AS_THE_ENGINE.split("\n") for text in line.split(" | ") if text]


@pytest.mark.parametrize("text", TEXTS)
def test_the_engine_reads_it_so(engine: duckdb.DuckDBPyConnection, text: str) -> None:
    ours = engine.execute(f"SELECT {emit.expression(bound(text))} FROM t").fetchall()
    theirs = engine.execute(f"SELECT {text} FROM t").fetchall()
    for (our,), (their,) in zip(ours, theirs, strict=True):
        # An integer or a decimal of the engine is dpsql's integer or double; a date plus an interval is dpsql's date.
        known = their.date() if isinstance(their, datetime) and type(our) is date else their
        if (
            isinstance(our, datetime) and type(their) is date
        ):  # DuckDB 1.4: the first day of a week or quarter is a date
            known = datetime.combine(their, time())
        equal = our == known or (isinstance(our, float) and math.isclose(our, float(known), rel_tol=1e-15))
        assert equal, (ours, theirs)


OTHERWISE: list[tuple[str, list[Any]]] = [
    # Where DuckDB raises for the whole query or gives infinity, a row's value is NULL.
    ("x / y", [0.5, None, -10 / 3, None, 1.0]),
    ("x // y", [0, None, -3, None, 1]),
    ("x % y", [1, None, 1, None, 0]),
    ("sqrt(x)", [1.0, None, math.sqrt(10), None, math.sqrt(5)]),
    ("ln(y)", [math.log(2), None, None, None, math.log(5)]),
    ("log2(y)", [1.0, None, None, None, math.log(5) / math.log(2)]),
    ("log(0.5, y)", [-1.0, None, None, None, math.log(5) / math.log(0.5)]),
    ("CAST(t AS INTEGER)", [None] * 5),
    ("x * 9223372036854775807", [2**63 - 1, None, None, None, None]),
    ("-9223372036854775807 - x", [-(2**63), -(2**63) + 8, None, None, None]),
    ("nvl(t, 'none')", ["abc", "Äb%c", "  x ", "none", "axbxc"]),
    ("d + x", [date(2024, 3, 1), date(1969, 12, 24), date(2021, 1, 7), None, date(2025, 1, 5)]),
    # Words of PostgreSQL that DuckDB reads otherwise or not at all.
    ("t ~ '[bc]$'", [True, True, False, None, True]),
    ("t ~* 'X ?$'", [False, False, True, None, False]),
    ("t !~ 'x'", [True, True, False, None, False]),
    ("regexp_matches(t, 'A', 'ic')", [False, False, False, None, False]),
    ("to_char(d, 'YYYY \"at\" FMDay%DDD')", ["2024 at Thursday%060", "1969 at Wednesday%365", "2020 at Monday%363", None, "2024 at Tuesday%366"]),
    ("date_bin('5 minutes', s, '2001-01-01')", [datetime(2024, 2, 29, 13, 45), datetime(1969, 7, 20, 20, 15), datetime(2000, 1, 1), None, datetime(2024, 12, 31)]),
    # Functions that dpsql adds.
    ("clamp(x, 0, 5)", [1, 0, 5, None, 5]),
    ("clamp(r, 0, 5)", [2.5, 0.0, 5.0, None, 5.0]),
    ("width_bucket(x, 0, 10, 5)", [1, 0, 6, None, 3]),
    ("width_bucket(r, 0.5, 2.5, 2)", [3, 0, 3, None, 3]),
    ("t < 'b'", [True, False, True, None, True]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), OTHERWISE)
def test_what_it_means_is_what_the_engine_computes(
    engine: duckdb.DuckDBPyConnection, text: str, expected: list[Any]
) -> None:
    assert [row[0] for row in engine.execute(f"SELECT {emit.expression(bound(text))} FROM t").fetchall()] == expected


REFUSED = """
t LIKE '_!%' ESCAPE '!' | t LIKE 'a' ESCAPE 'bc' | t LIKE 'a!' ESCAPE '!' | t LIKE u ESCAPE '!' | t LIKE u | t SIMILAR TO u | t SIMILAR TO 'a' ESCAPE 'b' | t ~ u | t GLOB 'a*' | regexp_matches(t, u)
x BETWEEN SYMMETRIC 5 AND 1 | trim(t, u) | trim(t, '') | round(r, 2, 1)
round(r, x) | round(r, -10) | ceil(r, 1) | floor(r TO DAY) | CAST(t AS DATE FORMAT 'YYYY')
EXTRACT(epoch FROM x) | EXTRACT(julian FROM d) | date_part('timezone', d) | date_trunc('decade', d)
date_trunc(t, d) | date_part(t, d) | hour(d) | date_trunc('hour', d) | x::timestamptz | s::time | x::hugeint
t::uuid | t::int[] | log(1, x) | log(x, y) | random() | uuid() | t COLLATE nocase | s AT TIME ZONE 'Europe/Berlin' | x & y
x << y | ~t | t[1] | t[1:2] | x = ANY(y) | [x] | {'a': x} | x IN (SELECT 1 + 1)
x = (SELECT 1) | EXISTS (SELECT 1) | sum(x) | sum(x) OVER () | count(*) FILTER (WHERE b) | lower(DISTINCT t)
sign(x ORDER BY x) | substr(t, 0) | substr(t, -1) | left(t, x) | replace(t, u, '')
replace(t, 'a', 'aaaaaaaaaaaaaaaaaaaaa') | width_bucket(x, 0, y, 5) | width_bucket(x, 5, 5, 2)
width_bucket(x, 0, 1, 0) | clamp(x, y, 5) | clamp(x, 5, 1) | clamp(x, 1) | x + t | x || 1 | NOT x
CASE WHEN x THEN 1 END | CASE WHEN b THEN 1 ELSE 'a' END | coalesce(x, t) | x = t | d = x | d = 'yesterday'
d > '2024-13-01' | DATE 'infinity' | d + INTERVAL x DAY | d + INTERVAL '1.5' DAY
d + INTERVAL '--5' DAY | d + INTERVAL '²' DAY | d + INTERVAL 1 FORTNIGHT | d + INTERVAL 9999999999 DAY
x + INTERVAL 1 DAY | INTERVAL 1 DAY - d | INTERVAL 1 DAY | 9223372036854775808 | 1e999
x -> 'a' | struct_pack(a := x) | unnest([x]) | nosuch(x) | upper(t, t) | x'ff' | read_csv('f')
getenv('HOME') | error('x') | t::blob | strftime(d, '%f') | mode(x) | list_value(x) | x NOT IN (SELECT 1 + 1)
x !~~ 'a' | s AT TIME ZONE t | x AT TIME ZONE 'UTC' | regexp_matches(t, '(') | regexp_matches(t, 'a', 'x') | t !~ u
regexp_matches(t, 'a{1001}') | regexp_replace(t, '\\B', 'x') | regexp_replace(t, 'a\\\\\\C', 'x') | regexp_replace(t, '\\Qa', 'x')
regexp_replace(t, 'a', '\\1') | regexp_replace(t, 'a', u) | regexp_replace(t, 'a', 'x', 'gz') | regexp_replace(t, 'a', 'x', 1, 2)
regexp_replace(t, 'a', 'aaaaaaaaaaaaaaaaaaaaa') | regexp_matches(x, 'a') | split_part(t, u, 1) | split_part(t, '', 1)
split_part(t, 'a', 0) | split_part(t, 'a', x) | strpos(t, x) | strlen(x) | concat_ws(t, u, u) | concat_ws('-', r) | x || y
strftime(d, t) | strftime(d, '%') | strftime(x, '%Y') | to_char(d, 'FMMON') | to_char(d, u)
to_char(x, '999') | dayname(t) | last_day(x) | time_bucket(INTERVAL '5 minutes', d) | time_bucket(INTERVAL '5 months', d)
time_bucket(INTERVAL 1 DAY, s, e) | time_bucket(INTERVAL 1 DAY, s, INTERVAL 1 HOUR) | time_bucket(INTERVAL 0 DAY, d)
date_bin('1 day', s, s) | date_bin(x, s) | date_bin('soon', s) | d + INTERVAL 1 DAY * r | d + INTERVAL x DAY * 2
d + INTERVAL 1 DAY * INTERVAL 1 DAY | INTERVAL 1 DAY * x | epoch(t)
"""


@pytest.mark.parametrize("text", [text for line in REFUSED.split("\n") for text in line.split(" | ") if text])
def test_refused_calls_say_why_they_are(text: str) -> None:
    """Nothing unproven is ignored: there is a refusal with a registered sentence."""
    with pytest.raises(Refusal) as refused:
        bound(text)
    assert refused.value.slug and refused.value.text()


def filled(handled: type[exp.Expr], argument: str) -> exp.Expr | None:
    """Return a node of this type with column x in every required argument, and in `argument`."""
    wanted = {name: exp.column("x") for name, needed in handled.arg_types.items() if needed or name == argument}
    node = handled(**wanted)
    for name, value in node.args.items():
        if name in ("expressions", "ifs"):
            node.set(name, [value])
    return node


LEAVES = {exp.Literal, exp.Boolean, exp.Null, exp.Anonymous}
READ = {
    "this", "expression", "expressions", "low", "high", "ifs", "default", "true", "false", "start", "length",
    "replacement", "substr", "part_index", "delimiter", "modifiers", "flag", "format", "zone",
    "unit", "decimals", "position", "min_value", "max_value", "num_buckets", "to", "negate", "table",
}  # fmt: skip
"""Arguments that the handlers read."""
MEANINGLESS = {"typed", "safe", "coalesce", "ignore_nulls", "is_nvl", "is_null", "input_type_preserved", "unabbreviate",
               "date_part_boundary", "single_replace"}  # fmt: skip
"""Marks of the dialect that sqlglot read, which is always the same: division, concat and least follow DuckDB here."""


@pytest.mark.parametrize("handled", sorted(HANDLERS.keys() - LEAVES, key=lambda node: node.__name__))
def test_no_argument_of_a_node_is_ignored(handled: type[exp.Expr]) -> None:
    """Anything else that sqlglot may attach to a handled node causes a refusal."""
    for argument in handled.arg_types.keys() - READ - MEANINGLESS:
        with pytest.raises(Refusal):
            Scalars(SCOPE).bind(filled(handled, argument))  # type: ignore[arg-type]


@pytest.mark.parametrize("depth", [2, 5, 30])
@pytest.mark.parametrize(
    "form", ["clamp({}, 0, 5)", "width_bucket({}, 0, 5, 3)", "CASE {} WHEN 1 THEN 2 WHEN 3 THEN 4 END", "({} + 1)",
    "-({})",
             "nullif({}, 3)", "(CASE WHEN {} BETWEEN 1 AND 2 THEN 1 END)"]
)  # fmt: skip
def test_nested_text_stays_short(form: str, depth: int) -> None:
    """Forms that repeat their argument are refused before their text grows exponentially."""
    text = "x"
    for _ in range(depth):
        text = form.format(text)
    try:
        written_out = emit.expression(bound(text))
    except Refusal as refused:
        assert depth > 2 and refused.slug == "heavy_expression"
    else:
        assert len(written_out) < 2_000_000
