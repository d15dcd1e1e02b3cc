"""Every function means the same over rows of people, over results and over public tables, and what the engine computes.

`FUNCTIONS` is the register: a function of rows or of results that has no line here fails the test of completeness.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from sqlglot import exp, parse_one
from support.exact_session import exact_session, plain, rows_of, same

from dpsql.errors.exceptions import Refusal
from dpsql.policy import load_policy
from dpsql.session.session import Session
from dpsql.sql.binder import allow_list, function_calls
from dpsql.sql.binder.scalars import HANDLERS
from dpsql.sql.parse import parse

POLICY = """
dataset: functions
source: duckdb:///functions.duckdb
privacy_unit: row
budget: {epsilon: 9000, delta: 1e-6}
per_query: {epsilon: 1, delta: 1e-9}
ledger: sqlite:///functions.db
tables:
  facts:
    columns:
      x: {type: integer, lower: -2, upper: 4}
      r: {type: real, lower: -4, upper: 4, scale: 2}
      t: {type: text, domain: [a-b, 'Bc ', ' d', é]}
      d: {type: date, lower: 2024-01-30, upper: 2024-02-02}
      s: {type: timestamp, lower: 2023-12-31, upper: 2024-03-01}
      b: {type: boolean}
  pub:
    public: true
    columns: {x: {type: integer}, r: {type: real}, t: {type: text}, d: {type: date}, s: {type: timestamp}, b: {type: boolean}}
"""
ROWS = """CREATE TABLE facts AS SELECT nullif(i % 7 - 2, 4)::INT AS x, [-2.5, 0, 1.25, 4, NULL][1 + i % 5]::DOUBLE AS r,
    ['a-b', 'Bc ', ' d', 'é', NULL][1 + (i // 3) % 5] AS t, DATE '2024-01-30' + (i % 4)::INT AS d,
    [TIMESTAMP '2024-02-29 10:20:30', TIMESTAMP '2023-12-31 23:59:59', NULL][1 + i % 3] AS s,
    [TRUE, FALSE, NULL][1 + (i // 2) % 3] AS b FROM range(210) AS q(i)"""
FUNCTIONS = """
abs(x); sign(r); round(r); round(r, 1); floor(r); ceil(r); trunc(r); sqrt(abs(x)); exp(x); ln(abs(x) + 1); log(abs(x) + 1)
log(2, abs(x) + 1); log2(abs(x) + 1); power(x, 2); mod(x, 2); x // 2; x / 2; -x; x + 1; x - 1; x * 2; sin(x); cos(x); tan(x)
asin(x / 4); acos(x / 4); atan(x); atan2(x, 2); degrees(x); radians(x); pi() * x; greatest(x, 1); least(x, 1); coalesce(x, 9)
nullif(x, 1); width_bucket(r, -3, 3, 4); width_bucket(x, -1.5, 2, 3); isnan(r); isfinite(r); isinf(r); safe_divide(x, x)
lower(t); upper(t); trim(t); ltrim(t); btrim(t); substr(t, 1, 2); substring(t FROM 1 FOR 2); left(t, 2); right(t, 1); length(t)
strlen(t); octet_length(t); t || '!'; concat(t, '!'); concat_ws('-', t, x); replace(t, 'a', 'z'); starts_with(t, 'a')
ends_with(t, 'b'); contains(t, '-'); prefix(t, 'a'); suffix(t, 'b'); strpos(t, '-'); split_part(t, '-', 1); lpad(t, 5, '*')
rpad(t, 5, '*'); regexp_matches(t, 'b'); t ~* 'B'; translate(t, 'ab', 'é'); md5(t)
regexp_extract(t, '[a-z]'); regexp_extract(t, '([a-z])(.)', 2); regexp_extract(t, 'B', 0, 'i'); greatest(t, 'b'); least(t, 'B', NULL)
x & 5; x | 5; xor(x, 6); ~x; x >> 1; abs(x) << 2; x & -3; x | 0; xor(-2, x); x & 2 = 2
left(t, -1); right(t, -1); split_part(t, '-', -1); regexp_replace(t, '[ab]', 'z'); t LIKE 'a%'; t ILIKE 'b%'; t LIKE 'a!%' ESCAPE '!'; t SIMILAR TO '[ab].*'
year(d); quarter(d); month(d); week(d); weekofyear(d); day(d); dayofmonth(d); dayofweek(d); isodow(d); dayofyear(d); hour(s)
minute(s); second(s); extract(year FROM d); extract(epoch FROM s); epoch(s); date_part('month', d); datepart('month', d)
date_trunc('month', d); date_trunc('hour', s); date_diff('day', d, DATE '2024-03-01'); last_day(d); dayname(d); monthname(d)
date_diff('hour', s, TIMESTAMP '2024-03-01 00:30:00'); timestamp_diff(TIMESTAMP '2024-03-01 00:30:00', s, HOUR); strftime(d, '%Y-%m'); to_char(s, 'HH24:MI'); d + 1; date_trunc('month', d::DATE); d + INTERVAL 1 MONTH
date_add(d, INTERVAL 1 DAY); s + INTERVAL '1 hour'; time_bucket(INTERVAL '1 day', s); to_timestamp(x); s AT TIME ZONE 'UTC'
date(s); s::date; d::text; to_date('2024-01-31', 'YYYY-MM-DD') = d; s > to_timestamp('2024-01-01', 'YYYY-MM-DD')
strptime(d::text, '%Y-%m-%d'); to_timestamp(strftime(s, '%d %B %Y %H:%M'), 'DD Month YYYY HH24:MI'); make_date(2024, x + 4, 31)
to_date(strftime(d, '%d%m%Y'), 'DDMMYYYY'); to_char(d, 'Month DY day'); strptime(strftime(s, '%d. %b %Y, %H:%M:%S'), '%d. %b %Y, %H:%M:%S')
month(to_date(monthname(d), 'MONTH')); date_part('year', age(d, DATE '2020-02-01')); d < CURRENT_DATE; s < now(); d < today(); d < localtimestamp
x = 1; x <> 1; x < 1; x <= 1; x > 1; x >= 1; x BETWEEN 0 AND 2; x IN (1, 2); x IS NULL; b IS TRUE; NOT b; b AND x > 1; b OR x > 1
x IS DISTINCT FROM 1; x IS NOT DISTINCT FROM 1; CASE WHEN x > 1 THEN 'hi' ELSE 'lo' END; if(x > 1, 1, 0); iff(x > 1, 1, 0)
x::double; CAST(r AS INTEGER); TRY_CAST(t AS INTEGER); b::integer; b::double; list_contains([1, 2, NULL], x); t IN ('a-b', NULL)
cbrt(x); initcap(t); to_json(x); clamp(x, -1, 1)
"""
NOT_OVER_ROWS = {
    "cbrt(x)": "no engine's power has the same last digit",
    "initcap(t)": "engines disagree about what a word is",
    "to_json(x)": "a text of results for programs; CAST is one of rows",
}
NOT_OVER_RESULTS = {"clamp(x, -1, 1)": "numbers that are released need no bounds; least and greatest are there"}
EXPRESSIONS = [text.strip() for line in FUNCTIONS.strip().splitlines() for text in line.split(";")]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[duckdb.DuckDBPyConnection, Session]]:
    folder: Path = tmp_path_factory.mktemp("functions")
    (folder / "policy.yaml").write_text(POLICY)
    with duckdb.connect() as connection:
        connection.execute(ROWS)
        connection.execute("CREATE TABLE pub AS SELECT * FROM facts")
        with exact_session(load_policy(folder / "policy.yaml"), connection, folder / "ledger.db") as session:
            yield connection, session


def questions(expression: str) -> dict[str, str]:
    """Return the text of one distribution of an expression over rows, over a result and over a public table."""
    named = [name for name in "xrtdsb" if re.search(rf"(?<![\w'\[]){name}(?![\w'])", expression)]
    inner = f"SELECT {', '.join(named)}, COUNT(*) AS n FROM facts GROUP BY ALL"
    return {
        "rows": f"SELECT {expression} AS k, COUNT(*) AS n FROM facts GROUP BY 1",
        "results": f"SELECT {expression} AS k, SUM(n) AS n FROM ({inner}) AS q GROUP BY 1",
        "public": f"SELECT {expression} AS k, COUNT(*) AS n FROM pub GROUP BY 1",
    }


@pytest.mark.parametrize(
    "expression",
    [pytest.param(text, marks=[] if at % 12 == 0 else pytest.mark.slow) for at, text in enumerate(EXPRESSIONS)],
)
def test_a_function_is_the_same_over_rows_results_and_public_tables(
    world: tuple[duckdb.DuckDBPyConnection, Session], expression: str
) -> None:
    connection, session = world
    answers = []
    for place, sql in questions(expression).items():
        if expression in (NOT_OVER_ROWS if place == "rows" else NOT_OVER_RESULTS):
            with pytest.raises(Refusal):
                session.execute(sql)
            continue
        answers.append([row for row in rows_of(session.execute(sql)) if row[1]])
    try:
        rows = connection.execute(questions(expression)["rows"]).fetchall()
        answers.append([tuple(map(plain, row)) for row in rows])
    except duckdb.Error:  # a function of other engines
        assert len(answers) > 1 or expression in NOT_OVER_RESULTS
    first, *rest = answers
    for answer in rest:
        assert len(answer) == len(first)
        assert all(any(same(a[0], b[0]) and a[1] == b[1] for b in first) for a in answer), (first, answer)


def test_signs_have_no_names_and_functions_are_named_in_one_word(
    world: tuple[duckdb.DuckDBPyConnection, Session],
) -> None:
    """As in PostgreSQL. A column named by the text of its expression, or by the empty text, breaks questions around it."""
    _, session = world
    for expression in EXPRESSIONS:
        place = "results" if expression in NOT_OVER_ROWS else "rows"
        asked = questions(expression)[place].replace(" AS k,", ",")
        (name, *_) = session.plan(session.planner.parse(asked, None)).plan.output_names
        called = re.search(r"\w\(|::|case", expression.lower())
        assert name == "?column?" or (called and re.fullmatch("[a-z_0-9]+", name)), (expression, name)


def test_every_function_of_rows_and_results_is_in_the_register() -> None:
    trees = [query for text in EXPRESSIONS if (query := parse(f"SELECT {text} FROM facts").query) is not None]
    trees += [parse_one(text, read="duckdb") for text in EXPRESSIONS]
    used = {type(node) for tree in trees for node in tree.walk()}
    names = {str(node.this).lower() for tree in trees for node in tree.find_all(exp.Anonymous)}
    scalars = {node for node in (*HANDLERS, *allow_list.NODES) if issubclass(node, (exp.Func, exp.Binary, exp.Unary))}
    windows = {node for node in scalars if issubclass(node, (exp.AggFunc, exp.RowNumber, exp.Ntile, exp.Subquery))}
    assert not {node.__name__ for node in scalars - windows - used - OF_QUERIES}
    assert not (set(function_calls._SPELLED) | allow_list.NAMES) - allow_list.DISTANCE - names


OF_QUERIES = {exp.Anonymous, exp.Exists, exp.Any, exp.All, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist}
"""Nodes that are no single function of values."""
