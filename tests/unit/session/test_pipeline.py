"""The order of steps in every answer, observed from outside: which functions are called, and when."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clinic import build

from dpsql.errors.exceptions import InternalError, Refusal, refuse
from dpsql.ledger.ledger import Reservation
from dpsql.release.error_bars import intervals
from dpsql.session import pipeline
from dpsql.session.session import Session, open_session

JOINED = "SELECT region, SUM(cost) AS total FROM visits JOIN patients USING (patient_id) GROUP BY region"
STAGED = "SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(age) FROM patients)"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with open_session(build(tmp_path), analyst="research", create_ledger=True) as opened:
        yield opened


@pytest.fixture
def steps(session: Session, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of steps of answers as they happen; an immediately repeated step is recorded once."""
    noted: list[str] = []

    def note(target: Any, name: str, step: str) -> None:
        original: Callable[..., Any] = getattr(target, name)

        def noting(*args: Any, **kwargs: Any) -> Any:
            if noted[-1:] != [step]:
                noted.append(step)
            return original(*args, **kwargs)

        monkeypatch.setattr(target, name, noting)

    context = session.context
    note(session.ledger, "reserve", "reserve")
    note(context.engine, "holds", "promises")
    note(context.engine, "run", "measure")
    note(pipeline, "perturb", "noise")
    note(context.store, "put", "store")
    note(Reservation, "commit", "commit")
    note(Reservation, "fail", "fail")
    note(pipeline, "make_release", "answer")
    return noted


def test_the_steps_of_every_answer_have_one_order(session: Session, steps: list[str]) -> None:
    session.execute(JOINED)
    assert steps == ["reserve", "promises", "measure", "noise", "store", "commit", "answer"]


def test_all_stages_are_reserved_before_the_first_is_measured(session: Session, steps: list[str]) -> None:
    session.execute(STAGED)
    assert steps == ["reserve", *["measure", "noise", "store"] * 2, "commit", "answer"]


def test_an_answer_from_the_store_charges_and_measures_nothing(session: Session, steps: list[str]) -> None:
    session.execute(JOINED)
    steps.clear()
    assert session.execute(JOINED).reused and steps == ["answer"]


def test_a_failed_measurement_is_answered_and_stored_nowhere(
    session: Session, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.context.engine, "run", lambda *args: 1 / 0)
    with pytest.raises(InternalError):
        session.execute(JOINED)
    assert steps == ["reserve", "promises", "fail"]


PREVIEWS = {
    "SELECT region, AVG(age) AS mean FROM patients GROUP BY region LIMIT 0": ["region", "mean"],
    "SELECT * FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY 1) q WHERE 1 = 0": ["region", "n"],
    "SELECT region, COUNT(*) AS n FROM patients WHERE 1 = 0 GROUP BY region": ["region", "n"],
    "SELECT COUNT(*) AS n FROM patients HAVING FALSE": ["n"],
    "(SELECT COUNT(*) AS n FROM patients) UNION ALL (SELECT 1) LIMIT 0": ["n"],
    "SELECT age FROM patients WHERE FALSE": ["age"],
}


@pytest.mark.parametrize("sql", PREVIEWS)
def test_a_question_that_asks_for_no_rows_is_free(session: Session, steps: list[str], sql: str) -> None:
    columns = session.describe(sql)
    assert [column.name for column in columns] == PREVIEWS[sql]
    plan = session.explain(sql)
    assert plan.to_text() == "price: nothing" and plan.outputs == ()
    release = session.execute(sql)
    assert len(release) == 0 and release.columns == columns and steps in ([], ["answer"])
    assert not release.receipt.is_paid and not release.reused and release.to_arrow(bars=True).num_rows == 0
    assert release.described and not release.remarks


@pytest.mark.parametrize(
    "rest", ["WHERE 1 = 0", "WHERE 1 = 0 GROUP BY ROLLUP (region)", "WHERE age > 40 AND age < 30 LIMIT 1"]
)
def test_a_total_of_nothing_is_refused_and_not_shown_without_rows(
    session: Session, steps: list[str], rest: str
) -> None:
    with pytest.raises(Refusal, match="no row can pass"):
        session.execute(f"SELECT COUNT(*) FROM patients {rest}")
    assert not steps


def test_what_error_bars_would_raise_is_raised_before_the_charge_of_a_new_text(
    session: Session, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> None:
        raise refuse("internal", what="a bar that cannot be computed")

    with monkeypatch.context() as patched:
        patched.setattr(intervals, "half_widths", broken)
        with pytest.raises(InternalError) as caught:
            session.execute("SELECT region, COUNT(*) AS n FROM patients WHERE age > 40 GROUP BY region")
    assert not caught.value.charged and "reserve" not in steps
