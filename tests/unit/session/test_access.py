"""Hidden parts of a policy do not exist for the analyst, and the rest is the same as for everyone."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from support.clinic import build
from support.exact_session import exact_session, rows_of

from dpsql.errors.exceptions import Error, PolicyRefusal, Refusal
from dpsql.frontends.pgwire.catalog.policy_rows import PolicyRows
from dpsql.policy import load_policy, parse_policy
from dpsql.session.session import Session, open_session

POLICY = """
dataset: ward
privacy_unit: {table: people, column: person}
budget: {epsilon: 100, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 1e-9}
ledger: sqlite:///ledger.db
analysts:
  all: {epsilon: 100}
  some:
    epsilon: 100
    tables: [stays, wards]
    columns: {stays: [ward, days], wards: [ward, floor]}
    where: {stays: "urgent AND ward <> 'c'"}
tables:
  people:
    max_rows: 1
    primary_key: [person]
    columns: {person: {type: integer, nullable: false}, secret: {type: integer, lower: 0, upper: 9}}
  stays:
    max_rows: 3
    foreign_keys: {person: people.person}
    columns:
      ward: {type: text, domain: [a, b, c], nullable: false}
      days: {type: integer, lower: 0, upper: 50}
      urgent: {type: boolean}
      diagnosis: {type: text, domain: [x, y]}
  wards:
    public: true
    primary_key: [ward]
    columns: {ward: {type: text}, floor: {type: integer}, secret_name: {type: text}}
  tariffs:
    public: true
    columns: {tariff: {type: text}}
"""
FILTER = "urgent AND ward <> 'c'"


@pytest.fixture
def data() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT i AS person, i % 10 AS secret FROM range(60) t(i)")
    connection.execute(
        "CREATE TABLE stays AS SELECT i % 60 AS person, ['a', 'b', 'c'][1 + i % 3] AS ward, i % 17 AS days, "
        "i % 4 < 2 AS urgent, ['x', 'y'][1 + i % 2] AS diagnosis FROM range(120) t(i)"
    )
    connection.execute(
        "CREATE TABLE wards AS SELECT * FROM (VALUES ('a', 1, 'one'), ('b', 2, 'two')) t(ward, floor, secret_name)"
    )
    connection.execute("CREATE TABLE tariffs AS SELECT 'p' AS tariff")
    return connection


@pytest.fixture
def sessions(data: duckdb.DuckDBPyConnection, tmp_path: Path) -> Iterator[tuple[Session, Session]]:
    """Yield the session of an analyst with full access and of one with partial access, each over a separate ledger."""
    policy = parse_policy(POLICY, folder=tmp_path)
    with (
        exact_session(policy, data, tmp_path / "all.db", analyst="all") as full,
        exact_session(policy, data.cursor(), tmp_path / "some.db", analyst="some") as part,
    ):
        yield full, part


@pytest.mark.parametrize(
    ("question", "written_out"),
    [
        ("SELECT COUNT(*) FROM stays", f"SELECT COUNT(*) FROM stays WHERE {FILTER}"),
        ("SELECT ward, SUM(days) FROM stays GROUP BY ward", f"SELECT ward, SUM(days) FROM stays WHERE {FILTER} GROUP BY ward"),
        (
            "SELECT floor, COUNT(*) FROM stays JOIN wards USING (ward) WHERE days > 3 GROUP BY floor",
            f"SELECT floor, COUNT(*) FROM (SELECT ward, days FROM stays WHERE {FILTER}) s JOIN wards USING (ward) "
            "WHERE days > 3 GROUP BY floor",
        ),
        (
            "WITH s AS (SELECT * FROM stays) SELECT ward, AVG(days) FROM s GROUP BY ROLLUP (ward)",
            f"WITH s AS (SELECT ward, days FROM stays WHERE {FILTER}) SELECT ward, AVG(days) FROM s GROUP BY ROLLUP (ward)",
        ),
        ("SELECT COUNT(*) FILTER (WHERE days > 5) FROM public.stays", f"SELECT COUNT(*) FILTER (WHERE days > 5) FROM stays WHERE {FILTER}"),
        ("SELECT DISTINCT floor FROM wards ORDER BY 1", "SELECT DISTINCT floor FROM wards ORDER BY 1"),
        ("SELECT * FROM wards ORDER BY 1", "SELECT ward, floor FROM wards ORDER BY 1"),
    ],
)  # fmt: skip
def test_an_answer_is_that_of_the_same_question_with_the_filter_as_its_where(
    sessions: tuple[Session, Session], question: str, written_out: str
) -> None:
    full, part = sessions
    expected, answer = full.execute(written_out), part.execute(question)
    assert rows_of(answer) == rows_of(expected)
    assert answer.loss == expected.loss
    if "FROM (" not in written_out and "WITH" not in written_out:
        keys = [s.plan(s.planner.parse(sql, None)).keys for s, sql in ((part, question), (full, written_out))]
        assert keys[0] == keys[1]


def test_the_filter_holds_wherever_the_table_stands(sessions: tuple[Session, Session]) -> None:
    full, part = sessions
    urgent = rows_of(full.execute(f"SELECT COUNT(*) FROM stays WHERE {FILTER}"))
    everything = rows_of(full.execute("SELECT COUNT(*) FROM stays"))
    assert urgent != everything
    for question in (
        "SELECT COUNT(*) FROM stays WHERE TRUE OR days > 0 OR days IS NULL",
        "SELECT COUNT(*) FROM (SELECT * FROM stays)",
        "WITH stays AS (SELECT * FROM stays) SELECT COUNT(*) FROM stays",
        "SELECT SUM(n) FROM (SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward) t",
        "SELECT COUNT(*) FROM stays AS s LEFT JOIN wards AS w ON s.ward = w.ward",
    ):
        assert rows_of(part.execute(question)) == urgent, question


HIDDEN = ("people", "tariffs", "ghosts")
"""Two hidden tables and one that does not exist."""


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM {name}", "DESCRIBE {name}", "EXPLAIN SELECT COUNT(*) FROM {name}",
        "SELECT COUNT(*) FROM stays JOIN {name} ON stays.ward = {name}.ward", "SELECT * FROM main.{name}",
        "SELECT COUNT(*) FROM stays WHERE days IN (SELECT days FROM {name})",
        "SELECT COUNT(*) FROM stays WHERE EXISTS (SELECT 1 FROM {name})", "SELECT {name}.x FROM stays",
    ],
)  # fmt: skip
def test_a_hidden_table_is_refused_as_one_that_does_not_exist(sessions: tuple[Session, Session], question: str) -> None:
    assert len({_refused(sessions[1], question.format(name=name)).replace(name, "NAME") for name in HIDDEN}) == 1


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM stays GROUP BY {name}", "SELECT COUNT({name}) FROM stays",
        "SELECT COUNT(*) FROM stays WHERE {name} IS NULL", "SELECT COUNT(DISTINCT stays.{name}) FROM stays",
        "SELECT ward FROM wards ORDER BY {name}", "SELECT {name} FROM wards",
        "SELECT COUNT(*) FROM stays a JOIN stays b USING ({name})",
        "SELECT SUM(days) OVER (ORDER BY {name}) FROM wards",
        "SELECT COUNT(*) FROM stays WHERE ward IN (SELECT ward FROM wards WHERE {name} = 'one')",
    ],
)  # fmt: skip
def test_a_hidden_column_is_refused_as_one_that_does_not_exist(
    sessions: tuple[Session, Session], question: str
) -> None:
    names = ("person", "urgent", "diagnosis", "secret_name", "ghost")
    assert len({_refused(sessions[1], question.format(name=name)).replace(name, "NAME") for name in names}) == 1


def _refused(session: Session, question: str) -> str:
    """Return the text of a refusal, with its position, but without the quoted line (which is cut by its length)."""
    with pytest.raises(Error) as caught:
        session.execute(question)
    error = caught.value
    assert isinstance(error, Refusal) and not error.charged
    return f"{error.sqlstate} {error.slug} {error.position} {error.message} {error.hint}"


def test_show_tables_describe_and_the_catalog_list_what_is_visible_alone(sessions: tuple[Session, Session]) -> None:
    _, part = sessions
    assert [row[0] for row in part.execute("SHOW TABLES").rows()] == ["stays", "wards"]
    assert [row[0] for row in part.execute("DESCRIBE stays").rows()] == ["ward", "days"]
    rows = PolicyRows(part.policy, "some")
    text = repr([*rows.rows(), *rows.definitions()]).replace("for SCRAM secret generation", "")  # a setting
    for hidden in ("people", "person", "diagnosis", "secret", "tariffs", "urgent"):
        assert hidden not in text, hidden
    assert "stays" in text and "floor" in text


def test_a_derived_answer_names_no_hidden_key_and_no_row_filter(
    data: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    text = POLICY.replace("urgent AND ward <> 'c'", "diagnosis = 'x'").replace(
        "domain: [x, y]", "domain: [x, y], nullable: false"
    )
    policy = parse_policy(text + "data_version: one\nreuse: {default: derive}\n", folder=tmp_path)
    question = "SELECT ward, COUNT(*) FROM stays GROUP BY ward"
    with (
        open_session(policy, analyst="all", source=data, create_ledger=True) as full,
        open_session(policy, analyst="some", source=data.cursor()) as part,
    ):
        full.execute("SELECT ward, diagnosis, COUNT(*) FROM stays GROUP BY ward, diagnosis")
        assert "summed over diagnosis" in " ".join(full.execute(question).receipt.notices)
        told = f"{part.explain(question).details()} {part.explain(question).notes}"
        answer = part.execute(question)
        assert answer.receipt.reused
        told += f" {answer.receipt.notices}"
    assert "computed from its groups" in told
    for hidden in ("diagnosis", "some of its groups"):
        assert hidden not in told


def test_explain_shows_no_text_that_names_what_is_hidden(sessions: tuple[Session, Session]) -> None:
    full, part = sessions
    question = "SELECT ward, COUNT(*) FROM stays GROUP BY ward"
    assert "secret" in full.explain("SELECT SUM(secret) FROM people").details()
    plan = part.explain(question)
    release = part.execute(f"EXPLAIN {question}")
    text = f"{plan.to_text()} {plan.details()} {list(release.rows())} {release.notices}"
    for hidden in ("people", "person", "diagnosis", "urgent", "secret"):
        assert hidden not in text, hidden


def test_a_fault_of_a_hidden_column_or_table_is_told_to_the_owner_alone(
    sessions: tuple[Session, Session], data: duckdb.DuckDBPyConnection
) -> None:
    full, part = sessions
    data.execute("ALTER TABLE stays DROP COLUMN person")
    with pytest.raises(Error) as told:
        full.execute("SELECT COUNT(*) FROM stays WHERE days > 1")
    assert "person" in told.value.text()
    with pytest.raises(Error) as hidden:
        part.execute("SELECT COUNT(*) FROM stays WHERE days > 1")
    assert hidden.value.slug == "owner_only" and "person" not in hidden.value.text()
    assert hidden.value.charged == told.value.charged


def test_stored_releases_of_others_answer_only_what_may_be_asked(tmp_path: Path) -> None:
    place = build(tmp_path)
    narrowed = "bi: {epsilon: 2, columns: {patients: [age]}, where: {patients: \"region = 'north'\"}}"
    place.write_text(place.read_text().replace("bi: {epsilon: 2}", narrowed))
    grouped = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
    with open_session(place, analyst="research", create_ledger=True) as full, open_session(place, analyst="bi") as part:
        for session in (full, part):
            session.execute("SET dp.reuse = derive")
        counts = dict(full.execute(grouped).rows())
        with pytest.raises(Refusal) as caught:
            part.execute(grouped)
        assert caught.value.slug == "unknown_column"
        answer = part.execute("SELECT COUNT(*) AS n FROM patients")
        assert answer.reused and list(answer.rows()) == [(counts["north"],)]


def test_what_is_left_out_hides_nothing_and_changes_no_fingerprint(tmp_path: Path) -> None:
    place = build(tmp_path)
    policy = load_policy(place)
    assert policy.of_analyst("bi") is policy and policy.of_analyst(None) is policy
    place.write_text(place.read_text().replace("bi: {epsilon: 2}", "bi: {epsilon: 2, tables: [patients]}"))
    narrowed = load_policy(place)
    assert narrowed.version != policy.version and narrowed.meaning == policy.meaning
    assert narrowed.of_analyst("bi").version == narrowed.version


@pytest.mark.parametrize(
    ("access", "path"),
    [
        ("tables: [patients, nurses]", "analysts.bi.tables[1]"),
        ("columns: {patients: [age, shoe]}", "analysts.bi.columns.patients[1]"),
        ("columns: {nurses: [age]}", "analysts.bi.columns.nurses"),
        ("tables: [visits], where: {patients: age > 3}", "analysts.bi.where.patients"),
    ],
)
def test_a_name_that_the_policy_lacks_is_a_problem_with_its_place(tmp_path: Path, access: str, path: str) -> None:
    place = build(tmp_path)
    place.write_text(place.read_text().replace("bi: {epsilon: 2}", f"bi: {{epsilon: 2, {access}}}"))
    with pytest.raises(PolicyRefusal) as caught:
        load_policy(place)
    assert [problem[0] for problem in caught.value.problems] == [f"$.{path}"]


@pytest.mark.parametrize(
    "condition",
    [
        "ag > 3", "age", "age > 3 GROUP BY region", "COUNT(*) > 3", "age IN (SELECT age FROM patients)", "random() < 0.5",
        "age > 3; DROP TABLE patients", "CURRENT_DATE > DATE '2020-01-01'", "", "age > 3 LIMIT 1", "age > 3) OR (TRUE",
        "visits.cost > 3", "age > ?", "age > 3 QUALIFY TRUE", "age > 3 UNION SELECT 2",
    ],
)  # fmt: skip
def test_a_filter_that_is_no_condition_over_rows_opens_no_session(tmp_path: Path, condition: str) -> None:
    place = build(tmp_path)
    open_session(place, create_ledger=True).close()
    place.write_text(
        place.read_text().replace("bi: {epsilon: 2}", f'bi: {{epsilon: 2, where: {{patients: "{condition}"}}}}')
    )
    for analyst in ("bi", "research", None):
        with pytest.raises(PolicyRefusal) as caught:
            open_session(place, analyst=analyst)
        assert f"the policy {place} is not acceptable: $.analysts.bi.where.patients line " in caught.value.text()
