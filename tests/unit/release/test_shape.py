"""The shape of an answer: what touches a bound, what is unknown, and how far chosen numbers may be off, at every door."""

import io
from collections.abc import Iterator

import duckdb
import pytest
from support.gates import NoiselessGate

from dpsql.frontends.rendering.tables import write_table
from dpsql.session.session import Session, open_session

POLICY = """\
dataset: shapes
source: duckdb:///data.duckdb
privacy_unit: {table: t, column: id}
budget: {epsilon: 1000, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, max_epsilon: 100}
ledger: sqlite:///ledger.db
tables:
  t:
    max_rows: 1
    columns:
      id: {type: integer, nullable: false}
      g: {type: text, domain: [many, few], nullable: false}
      high: {type: integer, lower: 0, upper: 20, nullable: false}
      low: {type: integer, lower: 0, upper: 20, nullable: false}
      middle: {type: real, lower: 0, upper: 20, nullable: false}
      yes: {type: boolean, nullable: false}
  v:
    max_rows: 3
    foreign_keys: {id: t.id}
    columns: {id: {type: integer, nullable: false}, k: {type: integer, lower: 0, upper: 9, nullable: false}}
"""
ROWS = "CREATE TABLE t AS SELECT range AS id, CASE WHEN range < 3000 THEN 'many' ELSE 'few' END AS g, 44 + range % 5 AS high, "
ROWS += "-7 AS low, 5.0 + range % 11 AS middle, true AS yes FROM range(3001)"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session without noise: what is flagged depends on exact values and the laws of the noise."""
    folder = tmp_path_factory.mktemp("shapes")
    with duckdb.connect(str(folder / "data.duckdb")) as connection:
        connection.execute(ROWS)
        connection.execute("CREATE TABLE v AS SELECT id, k FROM t, range(5) AS ks(k)")
    (folder / "policy.yaml").write_text(POLICY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpsql.session.session.Gate", lambda: NoiselessGate(2))
        with open_session(folder / "policy.yaml", create_ledger=True) as opened:
            yield opened


ABOVE, BELOW = "the true {} may be far above", "the true {} may be far below"


@pytest.mark.parametrize(
    ("sql", "flag"),
    [
        ("SELECT AVG(high) FROM t", "touches its bound 20: " + ABOVE.format("mean")),
        ("SELECT ROUND(AVG(high), 1) FROM t", "touches its bound 20: " + ABOVE.format("mean")),
        ("SELECT AVG(low) FROM t", "touches its bound 0: " + BELOW.format("mean")),
        ("SELECT AVG(high * 2) FROM t", "touches its bound 40: " + ABOVE.format("mean")),
        ("SELECT a FROM (SELECT AVG(high) AS a FROM t) q", "touches its bound 20: " + ABOVE.format("mean")),
        ("SELECT SUM(high), COUNT(*) FROM t", "is near 20 for each row: " + ABOVE.format("sum")),
        ("SELECT MEDIAN(high) FROM t", "touches its bound 20: " + ABOVE.format("value")),
        ("SELECT MAX(high) FROM t", "touches its bound 20: " + ABOVE.format("value")),
        ("SELECT MIN(low) FROM t", "touches its bound 0: " + BELOW.format("value")),
        ("SELECT MODE(high) FROM t", ""),
        ("SELECT AVG(middle) FROM t", ""),
        ("SELECT MEDIAN(middle) FROM t", ""),
        ("SELECT SUM(middle), COUNT(*) FROM t", ""),
        ("SELECT SUM(high) FROM t", ""),  # the number of rows was not asked for
        ("SELECT AVG(CASE WHEN yes THEN 1 ELSE 0 END) FROM t", ""),  # no value can be beyond 1
        ("SELECT AVG(clamp(high, 5, 15)) FROM t", ""),  # the question itself says so
        ("SELECT COUNT(*) FROM t", ""),
    ],
)
def test_a_number_is_flagged_where_noise_alone_may_keep_it_from_its_bound(
    session: Session, sql: str, flag: str
) -> None:
    release = session.execute(sql)
    assert release.described[0].flags == [flag]
    said = [remark for remark in release.remarks if "may be far" in remark]
    assert len(said) == bool(flag) and all(flag in remark for remark in said)


@pytest.mark.parametrize(
    ("sql", "flagged"),
    [
        ("SELECT COUNT(*), COUNT(DISTINCT id) FROM v WHERE k < 5", True),
        ("SELECT COUNT(*) FILTER (WHERE k < 5), COUNT(DISTINCT id) FILTER (WHERE k < 5) FROM v", True),
        ("SELECT COUNT(*), COUNT(DISTINCT id) FROM v WHERE k < 2", False),  # two rows of each person
        ("SELECT COUNT(*) FILTER (WHERE k < 5), COUNT(DISTINCT id) FROM v WHERE k < 2", False),
        ("SELECT COUNT(*) FROM v", False),  # the number of persons was not asked for
        ("SELECT COUNT(*), COUNT(DISTINCT id) FROM t", False),  # one row each, by the policy's promise
    ],
)
def test_a_count_is_flagged_where_it_fills_the_rows_of_the_persons_that_are_counted(
    session: Session, sql: str, flagged: bool
) -> None:
    column = session.execute(sql).described[0]
    assert column.flags == ["is near 3 rows of v for each id: the true number may be far above" if flagged else ""]


def test_a_bar_that_says_nothing_is_not_flagged(session: Session) -> None:
    """In one row the bar of a mean is all of its range."""
    release = session.execute("SELECT g, AVG(high) AS a FROM t GROUP BY g ORDER BY g")
    assert [bool(flag) for flag in release.described[1].flags] == [False, True]
    assert "a in 1 of 2 rows touches its bound 20: the true mean may be far above" in release.remarks


@pytest.mark.parametrize("call", ["MEDIAN(high)", "MAX(high)", "MIN(low)", "QUANTILE_CONT(middle, 0.9)", "MODE(g)"])
def test_chosen_numbers_say_how_far_they_may_be_off(session: Session, call: str) -> None:
    """The rank error stands next to the number, and where there are fewer rows the number is unknown."""
    release = session.execute(f"SELECT g, {call} AS m, COUNT(*) AS n FROM t GROUP BY g ORDER BY g")
    (_, column, _) = release.described
    assert column.rank_error is not None and 3 < column.rank_error < 3000
    assert column.unknown.tolist() == [True, False] and release.unknown.column(1).to_pylist() == [True, False]
    assert "m is unknown in 1 of 2 rows: it may be off by more rows than there are" in release.remarks
    alone = session.execute(f"SELECT g, {call} AS m FROM t GROUP BY g ORDER BY g")
    assert alone.described[1].unknown.tolist() == [False, False], "the number of rows was not asked for"
    assert not any("no error bar" in remark for remark in alone.remarks)


def test_a_list_of_quantiles_says_how_far_the_farthest_may_be_off(session: Session) -> None:
    release = session.execute(
        "SELECT g, QUANTILE_CONT(middle, [0.1, 0.5]) AS q, COUNT(*) AS n FROM t GROUP BY g ORDER BY g"
    )
    column = release.described[1]
    assert column.rank_error is not None and 3 < column.rank_error < 3000
    assert column.unknown.tolist() == [True, False]
    assert column.notes[0].startswith("each of quantile 0.1 and the median, or a value at most ")
    assert not any("no error bar" in remark for remark in release.remarks)
    out = io.StringIO()
    write_table(release, out)
    assert "+/- ?" not in out.getvalue() and "rows" in out.getvalue()


def test_clamped_values_are_said_as_explain_says_them_and_once_in_a_session(session: Session) -> None:
    sql = "SELECT AVG(low) AS a FROM t WHERE middle > {}"
    sentence = "values of low below 0 or above 20 count as 0 or 20"
    session._told_notices.clear()
    first, second = session.execute(sql.format(6)), session.execute(sql.format(7))
    assert sentence in session.explain(sql.format(6)).lines and first.described[0].notes == (sentence,)
    assert sentence in first.notices and sentence in second.notices, "programs read all of them"
    told = [session.news(release) for release in (first, second)]
    assert sentence in told[0] and sentence not in told[1]
