"""GoogleSQL's own words: reports of an aggregate, bounds of single rows, and what is left unfinished."""

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from support.exact_session import exact_session

from dpsql.errors.exceptions import Error
from dpsql.policy import load_policy
from dpsql.session.session import Session
from dpsql.sql.parse import parse

POLICY = """
dataset: rows
source: duckdb:///rows.duckdb
privacy_unit: row
budget: {epsilon: 1000, delta: 1e-6}
per_query: {epsilon: 1}
ledger: sqlite:///rows.db
tables: {facts: {columns: {x: {type: integer, lower: -50, upper: 50}}}}
"""
ANON = "SELECT WITH ANONYMIZATION OPTIONS (epsilon = 1, kappa = 2) ANON_SUM(x CLAMPED BETWEEN -1 AND 9 WITH REPORT (FORMAT = JSON)) FROM facts"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    (tmp_path / "policy.yaml").write_text(POLICY)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE facts AS SELECT nullif(i % 90 - 40, 3) AS x FROM range(900) t(i)")
        with exact_session(load_policy(tmp_path / "policy.yaml"), connection, tmp_path / "ledger.db") as opened:
            yield opened


@pytest.mark.parametrize("called", ["COUNT(*{})", "SUM(x{}) FILTER (WHERE x > 0)", "AVG(x{})"])
def test_a_report_has_the_value_and_its_bar(session: Session, called: str) -> None:
    plain = called.format("")
    ends = f"DP_INTERVAL_LOW({plain}), DP_INTERVAL_HIGH({plain})"
    reports = [called.format(f", report_format => '{form}'") for form in ("JSON", "PROTO")]
    fields = [
        f"{reports[0]}.result.noise_confidence_interval",
        f"{reports[1]}.value.noise_confidence_interval.upper_bound",
    ]
    asked = ", ".join([*reports, *fields, plain, ends])
    ((json_, proto, inner, end, value, low, high),) = session.execute(f"SELECT {asked} FROM facts").rows()
    interval = {"confidence_level": 0.95, "lower_bound": low, "upper_bound": high}
    assert json.loads(json_) == {"result": {"noise_confidence_interval": interval, "value": value}}
    number = "float_value" if isinstance(value, float) else "int_value"
    assert json.loads(proto) == {"value": {"noise_confidence_interval": interval, number: value}}
    assert json.loads(inner) == interval and end == high


def test_a_report_of_a_list_has_a_report_for_each_of_its_quantiles(session: Session) -> None:
    """Single numbers of it may be taken by the SELECT around, with no others measured."""
    session.execute("SET dp.quantile_bars = on")
    quantiles = (f"APPROX_QUANTILE(x, {share})" for share in ("0", "0.5", "1"))
    asked = [f"SELECT {q}, DP_INTERVAL_LOW({q}), DP_INTERVAL_HIGH({q}) FROM facts" for q in quantiles]
    wanted = [row for text in asked for row in session.execute(text).rows()]
    called = "APPROX_QUANTILES(x, 2, report_format => '{}')"
    json_, proto = (called.format(form) for form in ("JSON", "PROTO"))
    ((whole, message),) = session.execute(f"SELECT {json_}, {proto} FROM facts").rows()
    interval = "noise_confidence_interval"
    listed = [
        {interval: {"confidence_level": 0.95, "lower_bound": low, "upper_bound": high}, "value": v}
        for v, low, high in wanted
    ]
    assert json.loads(whole) == {"result": listed}
    of_message = [{"float_value": part["value"], interval: part[interval]} for part in listed]
    assert json.loads(message) == {"values": {"values": of_message}}
    for inner, low, value in (
        (f"JSON_QUERY_ARRAY({json_}.result)", "DOUBLE(r[OFFSET(1)].{}.lower_bound)", "DOUBLE(r[OFFSET(2)].value)"),
        (f"{proto}.values.values", "r[OFFSET(1)].{}.lower_bound", "r[OFFSET(2)].float_value"),
    ):
        text = f"SELECT {low.format(interval)}, {value} FROM (SELECT {inner} AS r FROM facts)"
        assert list(session.execute(text).rows()) == [(wanted[1][1], wanted[2][0])]
        assert (
            session.explain(text).price
            == session.explain(f"SELECT DP_INTERVAL_LOW({QUANTILES[1]}), {QUANTILES[2]} FROM facts").price
        )


@pytest.mark.parametrize("first", [True, False])
def test_columns_beside_a_taken_report_keep_their_positions(session: Session, first: bool) -> None:
    report = "JSON_QUERY_ARRAY(APPROX_QUANTILES(x, 2, report_format => 'JSON').result) AS r"
    others = "x > 0 AS k, AVG(-x) AS m"
    items, number = (f"{report}, {others}", 3) if first else (f"{others}, {report}", 2)
    text = "SELECT k, m, DOUBLE(r[OFFSET(1)].value) AS v FROM (SELECT {} FROM facts GROUP BY {} ORDER BY {} LIMIT 1)"
    answers = [session.execute(text.format(items, *by)).rows() for by in ((number - 1, number), ("k", "m"))]
    assert list(answers[0]) == list(answers[1])


QUANTILES = [f"APPROX_QUANTILES(x, 2)[OFFSET({number})]" for number in range(3)]


@pytest.mark.parametrize("number", range(3))
def test_one_quantile_of_a_list_is_measured_alone(session: Session, number: int) -> None:
    alone = f"SELECT QUANTILE_CONT(x, {number / 2}) FROM facts".replace("_CONT", "")
    assert session.plan(session.planner.parse(alone, None)).keys == session.plan(
        session.planner.parse(f"SELECT {QUANTILES[number]} FROM facts", None)
    ).keys  # fmt: skip


@pytest.mark.parametrize(
    ("bounded", "plain"),
    [
        ("SUM(x, {})", "SUM(clamp(x, -1, 9))"),
        ("AVG(x, {}) FILTER (WHERE x < 20)", "AVG(clamp(x, -1, 9)) FILTER (WHERE x < 20)"),
        ("COUNT(x, {})", "COUNT(x)"),
    ],
)
def test_bounds_of_a_group_bound_a_row_that_is_a_unit(session: Session, bounded: str, plain: str) -> None:
    written = bounded.format("contribution_bounds_per_group => (-1, 9)")
    answers = [session.execute(f"SELECT {text} FROM facts") for text in (written, plain)]
    assert list(answers[0].rows()) == list(answers[1].rows()) and answers[1].reused


def test_texts_that_end_too_early_are_refused() -> None:
    for end in range(len(ANON)):
        for text in (ANON[:end], ANON[:end] + ")", ANON[:end] + " AND ("):
            try:
                parse(text)
            except Error as error:
                assert error.slug in ("syntax", "empty", "report_format", "named_argument_place"), (text, error.slug)
