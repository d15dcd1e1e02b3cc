"""Groups with too few privacy units by noisy count are not shown: dp.min_units and per_query.min_units."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from support.clinic import build
from support.gates import NoiselessGate

from dpsql.errors.exceptions import Error
from dpsql.session.session import Session, open_session

VISITS = (
    "INSERT INTO visits SELECT patient_id, cost FROM (VALUES (1, 100), (1, 100), (1, 100), (2, 100), (3, 100), "
    "(3, 100), (4, 300), (4, 300), (4, 300), (4, 300)) v(patient_id, cost)"
)
COSTS = "SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost"


def opened(folder: Path, monkeypatch: pytest.MonkeyPatch, *changes: tuple[str, str]) -> Session:
    """Open a noiseless session over a clinic of four patients: three of them have visits that cost 100, one has four that cost
    300."""
    monkeypatch.setattr("dpsql.session.session.Gate", lambda: NoiselessGate(2))
    policy = build(folder)
    text = policy.read_text().replace(
        "{type: real, lower: 0, upper: 1000}", "{type: integer, nullable: false, domain: [100, 200, 300]}"
    )
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    policy.write_text(text)
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute("DELETE FROM patients WHERE patient_id NOT BETWEEN 1 AND 4")
        connection.execute("UPDATE patients SET weight = CASE WHEN patient_id < 4 THEN 60 ELSE 70 END")
        connection.execute("CREATE OR REPLACE TABLE visits (patient_id BIGINT, cost BIGINT)")
        connection.execute(VISITS)
    return open_session(policy, create_ledger=True)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    with opened(tmp_path, monkeypatch) as open_one:
        yield open_one


def answer(session: Session, sql: str) -> list[tuple[object, ...]]:
    return list(session.execute(sql).rows())


@pytest.mark.parametrize(
    ("least", "shown"), [("none", [100, 200, 300]), ("1", [100, 300]), ("2", [100]), ("3", [100]), ("4", [])]
)
def test_groups_are_shown_by_their_units_and_not_by_their_rows(session: Session, least: str, shown: list[int]) -> None:
    """The cost 100 has 6 rows of 3 patients, 300 has 4 rows of one."""
    session.execute(f"SET dp.min_units = {least}")
    assert [row[0] for row in answer(session, COSTS)] == shown


def test_a_condition_of_the_question_holds_as_well(session: Session) -> None:
    session.execute("SET dp.min_units = 1")
    assert answer(session, COSTS + " HAVING COUNT(*) < 5 OR cost = 7") == [(300, 4)]
    session.execute("SET dp.min_units = 2")
    assert answer(session, COSTS + " HAVING COUNT(*) < 5 OR cost = 7") == []


def test_totals_and_subqueries_have_the_rule_too(session: Session) -> None:
    session.execute("SET dp.min_units = 3")
    assert answer(session, "SELECT cost, COUNT(*) FROM visits GROUP BY ROLLUP(cost)") == [(100, 6), (None, 10)]
    assert answer(session, "SELECT COUNT(*) FROM visits WHERE cost = 300") == []
    assert answer(session, f"SELECT SUM(n) FROM ({COSTS}) t") == [(6,)]
    assert answer(session, "SELECT DISTINCT cost FROM visits") == [(100,)]
    assert answer(session, "SELECT SUM(COUNT(*)) OVER () FROM visits GROUP BY cost") == [(6,)]


def test_private_keys_are_shown_from_the_larger_of_both_thresholds(session: Session) -> None:
    """Without noise every key of two units or more passes the session's threshold, which then costs only delta."""
    private = "SELECT weight, COUNT(*) FROM patients JOIN visits USING (patient_id) GROUP BY weight"
    session.execute("SET dp.min_units = 1")
    assert answer(session, private) == [(60, 6)]
    session.execute("SET dp.min_units = 3")
    assert answer(session, private) == [(60, 6)]
    selections = [output for output in session.explain(private).outputs if "partition selection" in output.aggregate]
    assert [(output.mechanism, output.epsilon) for output in selections] == [("threshold", 0.0)]
    session.execute("SET dp.min_units = 4")
    assert answer(session, private) == []


def test_the_count_of_units_is_measured_and_charged(session: Session) -> None:
    """The budget is divided among the measured numbers; a query that counts units anyway costs the same."""
    alone = session.explain(COSTS)
    session.execute("SET dp.min_units = 2")
    plan = session.explain(COSTS)
    assert [output.aggregate for output in plan.outputs] == ["count(*)", "count(distinct unit)"]
    assert [output.epsilon for output in plan.outputs] == [0.5, 0.5]
    assert [output.epsilon for output in alone.outputs] == [1.0]
    assert plan.loss.epsilon == alone.loss.epsilon == 1
    counted = "SELECT cost, COUNT(DISTINCT patient_id) FROM visits GROUP BY cost"
    assert len(session.explain(counted).outputs) == 1


def test_what_the_owner_asks_for_cannot_be_lowered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, monkeypatch, ("timeout_seconds: 30", "timeout_seconds: 30, min_units: 2")) as session:
        assert answer(session, COSTS) == [(100, 6)]
        sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(min_privacy_units_per_group = 1) COUNT(*) FROM visits"
        for lower in ("SET dp.min_units = 1", "SET dp.min_units = none", sql):
            with pytest.raises(Error) as refused:
                session.execute(lower)
            assert (refused.value.slug, refused.value.charged) == ("option_least", False)
        session.execute("SET dp.min_units = 4")
        assert answer(session, COSTS) == []
        session.execute("RESET ALL")
        assert answer(session, COSTS) == [(100, 6)]


def test_rows_are_the_units_under_row_privacy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = [
        ("privacy_unit: {table: patients, column: patient_id}", "privacy_unit: row"),
        ("    max_rows: 1\n", ""), ("    max_rows: 5\n", ""),
    ]  # fmt: skip
    with opened(tmp_path, monkeypatch, *changes) as session:
        session.execute("SET dp.min_units = 5")
        assert answer(session, COSTS) == [(100, 6)]
        assert answer(session, "SELECT COUNT(*) FROM (SELECT DISTINCT cost FROM visits) t") == []
        assert any("fewer than 5 rows are counted" in notice for notice in session.execute(COSTS).notices)
