"""Results of one private block inside a later one: the order of reservations, the names of stored releases, the state when a
stage fails, and what is known before anything runs."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from support.clinic import build
from support.gates import ShiftedGate
from support.lost_releases import lose_releases
from support.noted_engine import NotedEngine, noted_session, spent

from dpsql.errors.exceptions import Fault, Refusal
from dpsql.session.background_work import SourceBreaker
from dpsql.session.session import Session, open_session
from dpsql.session.stages import digest

ABOVE = "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"
TOP = (
    "SELECT p.region, COUNT(*) AS n FROM patients AS p "
    "JOIN (SELECT region AS r, COUNT(*) AS m FROM patients GROUP BY region ORDER BY m DESC LIMIT 1) AS t ON p.region = t.r "
    "GROUP BY p.region"
)
BETWEEN = (
    "SELECT COUNT(*) FROM visits WHERE cost > "
    "(SELECT {} FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) AS t ORDER BY n LIMIT 1)"
)
MEAN = "SELECT AVG(cost) FROM visits"


def answered(session: Session, sql: str) -> list[tuple[Any, ...]]:
    return list(session.execute(sql).rows())


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return build(tmp_path)


@pytest.fixture
def place(policy: Path) -> Iterator[tuple[Session, NotedEngine]]:
    session, engine = noted_session(policy)
    yield session, engine
    session.close()


# --- order of steps -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", [ABOVE, TOP])
def test_everything_is_reserved_before_the_first_stage(place: tuple[Session, NotedEngine], sql: str) -> None:
    session, engine = place
    plan = session.explain(sql)
    entries = len(list(session.ledger.history()))
    release = session.execute(sql)
    assert [ahead for ahead, _ in engine.asked] == ["1", "1"]
    assert release.loss == plan.loss == plan.charged and release.loss.epsilon == 1
    reserved = [entry for entry in list(session.ledger.history())[entries:] if entry.kind == "charge"]
    assert len(reserved) == 1


def test_a_budget_for_one_stage_runs_none(tmp_path: Path) -> None:
    """Each block alone would fit, but both together do not: nothing runs, nothing is charged."""
    session, engine = noted_session(build(tmp_path, epsilon=2))
    session.execute("SET dp.epsilon = 1.5")
    session.execute("SELECT COUNT(*) FROM visits")
    session.execute("SET dp.epsilon = 0.6")
    with pytest.raises(Refusal) as caught:
        session.execute(ABOVE)
    assert caught.value.slug == "budget_exceeded" and not caught.value.charged
    assert len(engine.asked) == 1 and spent(session) == "1.5"
    session.close()


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failure_in_any_stage_keeps_the_whole_charge(policy: Path, failing: int) -> None:
    session, engine = noted_session(policy)
    engine.failing = failing
    with pytest.raises(Fault) as caught:
        session.execute(ABOVE)
    assert caught.value.charged and "secret" not in caught.value.text() and spent(session) == "1"
    engine.failing = -1
    session.context.queue.breaker = SourceBreaker()  # the source was closed and is readable again
    session.execute(ABOVE)  # the release before the failure is not charged again
    assert spent(session) == ("2" if failing == 0 else "1.5")
    session.close()


def test_a_request_that_failed_between_the_stages_is_not_charged_again(policy: Path) -> None:
    session, engine = noted_session(policy)
    engine.failing = 1
    with pytest.raises(Fault):
        session.execute(ABOVE, request_id="r1")
    with pytest.raises(Refusal) as caught:
        session.execute(ABOVE, request_id="r1")
    assert caught.value.slug == "request_lost" and spent(session) == "1"
    engine.failing = -1
    first = session.execute(TOP, request_id="r2")
    again = session.execute(TOP, request_id="r2")
    assert list(first.rows()) == list(again.rows()) and again.reused and spent(session) == "2"
    session.close()


# --- stored releases ------------------------------------------------------------------------------------------------


def test_an_earlier_release_is_used_again_by_a_later_stage(place: tuple[Session, NotedEngine]) -> None:
    session, engine = place
    session.execute("SET dp.epsilon = 0.5")
    answered(session, MEAN)
    session.execute("SET dp.epsilon = 1.125")
    assert session.explain(ABOVE).stored == ()  # with less noise: measured anew
    session.execute("SET dp.epsilon = 0.5625")
    ((mean,),) = answered(session, MEAN)  # one of the two parts of the question
    session.execute("SET dp.epsilon = 1.125")
    plan = session.explain(ABOVE)
    assert plan.stored == ("dp_0",) and plan.price.startswith("epsilon 0.5625")
    session.execute(ABOVE)
    assert engine.asked[-1][1].parameters == (mean,)


def test_other_released_rows_are_another_question(policy: Path) -> None:
    """The mean is lost from the store and released anew, with another value, so the blocks compared with it are measured anew."""
    gate = ShiftedGate()
    session, engine = noted_session(policy, gate)
    first = answered(session, ABOVE)
    gate.more = 2**30
    assert answered(session, ABOVE) == first and len(engine.asked) == 2  # everything from the store
    gone = lose_releases(session.context.store, lambda note: len(note.metadata.get("terms", ())) == 2)
    other = answered(session, ABOVE)
    assert gone == 1 and len(engine.asked) == 4 and other != first
    assert engine.asked[1][1].parameters != engine.asked[3][1].parameters
    session.close()


def test_rows_of_another_stage_are_another_question(policy: Path) -> None:
    """A join with released rows: other rows mean another answer, however similar the texts are."""
    gate = ShiftedGate()
    session, engine = noted_session(policy, gate)
    keys = "SELECT region AS r, COUNT(*) AS m FROM patients GROUP BY region HAVING COUNT(*) > {}"
    sql = "SELECT COUNT(*) FROM patients AS p JOIN (" + keys + ") AS t ON p.region = t.r"
    assert answered(session, sql.format(-5)) == [(1000,)]
    assert answered(session, sql.format(10**6)) == [(0,)]
    assert answered(session, sql.format(-6)) == [(1000,)]
    assert len(engine.asked) == 3  # the groups are released once; all of them and none of them are counted
    session.close()


def test_equal_rows_in_another_order_are_the_same() -> None:
    one, other = pa.table({"a": [1, 2], "b": ["x", None]}), pa.table({"a": [2, 1], "b": [None, "x"]})
    assert digest(one) == digest(other)
    assert digest(one) != digest(pa.table({"a": [1, 2], "b": ["x", "None"]}))
    assert digest(one) != digest(pa.table({"a": [1.0, 2.0], "b": ["x", None]}))
    assert digest(one) != digest(pa.table({"a": [1, 2, 2], "b": ["x", None, None]}))


# --- before anything runs -------------------------------------------------------------------------------------------


def test_what_released_values_make_impossible_is_null(place: tuple[Session, NotedEngine]) -> None:
    """Whether a text is a number is unknown before its release, so a cast without a value is no error."""
    session, engine = place
    release = session.execute(BETWEEN.format("CAST(region AS double)"))
    assert release.table.num_rows == 1 and len(engine.asked) == 2 and spent(session) == "1"


def test_a_released_text_is_data(policy: Path) -> None:
    """Quotes, NUL and comments in released keys, as rows and as a constant."""
    strange = "x'); DROP TABLE patients; --\0\""
    with duckdb.connect(str(policy.parent / "clinic.duckdb")) as connection:
        connection.execute("UPDATE patients SET region = ?", [strange])
    path = policy.parent / "clinic.yaml"
    path.write_text(
        path.read_text().replace(
            "region: {type: text, domain: [north, south], nullable: false}", "region: {type: text}"
        )
    )
    session, _ = noted_session(path, ShiftedGate())
    grouped = "(SELECT region AS r, COUNT(*) AS n FROM patients GROUP BY region)"
    assert answered(session, f"SELECT COUNT(*) FROM patients AS p JOIN {grouped} AS t ON t.r = p.region") == [(1000,)]
    assert answered(
        session, f"SELECT COUNT(*) FROM patients WHERE region = (SELECT r FROM {grouped} AS t LIMIT 1)"
    ) == [(1000,)]
    session.close()


def test_a_released_key_that_repeats_is_a_fault(place: tuple[Session, NotedEngine]) -> None:
    """The released rows are checked again; if a claim proven about them is wrong, there is no answer."""
    session, _ = place
    planned = session.plan(session.planner.parse(TOP, None))
    wrong = replace(planned.plan.results[0], unique=((),), query=planned.plan.results[0].query.copy())
    wrong.query.args["from_"].this.this.set("limit", None)
    planned.plan.__dict__["results"] = (wrong,)
    with pytest.raises(Exception) as caught:
        session.execute(TOP)
    assert getattr(caught.value, "slug", "") == "internal"


@pytest.mark.parametrize("beside", ["", "age > (SELECT AVG(age) FROM patients) AND "])
def test_a_value_of_public_rows_is_looked_at_before_the_charge(place: tuple[Session, NotedEngine], beside: str) -> None:
    session, engine = place
    value = "(SELECT DISTINCT r FROM (VALUES ('north'), ('south'), ('north')) AS t(r) WHERE r {} 'north')"
    counted = f"SELECT COUNT(*) FROM patients WHERE {beside}region = {value}"
    with pytest.raises(Refusal) as caught:
        session.execute(counted.format(">="))
    assert caught.value.slug == "several_rows"
    assert not engine.asked and float(spent(session)) == 0
    assert len(answered(session, counted.format("="))) == 1


def test_of_no_rows_a_count_is_zero(policy: Path) -> None:
    """A correlated subquery is a left join, whose missing rows are 0 for COUNT and NULL for other aggregates."""
    session, _ = noted_session(policy, ShiftedGate())
    of_one = "FROM visits AS v WHERE v.patient_id = p.patient_id AND v.cost > 10000"
    assert answered(session, f"SELECT COUNT(*) FROM patients AS p WHERE (SELECT COUNT(*) {of_one}) = 0") == [(1000,)]
    assert answered(session, f"SELECT COUNT(*) FROM patients AS p WHERE (SELECT SUM(cost) {of_one}) IS NULL") == [
        (1000,)
    ]
    session.close()


def test_the_source_cannot_take_the_place_of_a_result(policy: Path) -> None:
    with duckdb.connect(str(policy.parent / "clinic.duckdb")) as connection:
        connection.execute("CREATE TABLE dp_result_0 AS SELECT 'north' AS c0, 5 AS c1 UNION ALL SELECT 'south', 5")
    with open_session(policy, create_ledger=True) as session:
        session.execute("SET dp.epsilon = 1000")
        found = answered(session, TOP + " ORDER BY n DESC")
        assert sorted(round(n, -2) for _, n in found) == [500]
