"""The order of every charge, and failures planted at each of its steps: whatever fails, the asker learns whether the charge stays
and nothing else, and the custodian's log holds the reason."""

import ast
import json
import logging
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest
from support.clinic import build
from support.package_modules import FILES, PACKAGE, nodes_of

from dpsql.errors.exceptions import Error, InternalError
from dpsql.exports.rows_file import NewFile
from dpsql.frontends.batch.statements import error_object
from dpsql.frontends.cli.ledger_rows import chosen_rows
from dpsql.frontends.pgwire.backend import error_bytes
from dpsql.ledger.ledger import Reservation
from dpsql.ledger.records import request_of
from dpsql.reuse.questions import open_questions
from dpsql.session import charged, pipeline, row_export, watches
from dpsql.session.background_work import Pace
from dpsql.session.row_export import RowExport
from dpsql.session.session import Session, open_session

COUNT = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
SECRET = "the secret of patient 4711"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with open_session(build(tmp_path), analyst="research", create_ledger=True) as opened:
        yield opened


def outcomes(session: Session) -> list[str]:
    return [entry.kind for entry in session.ledger.history() if entry.kind in ("charge", "committed", "failed")]


def charged_receipt(session: Session) -> str:
    return next(request_of(entry.facts["id"]) for entry in session.ledger.history() if entry.kind == "charge")


def asked(session: Session, tmp_path: Path) -> object:
    return session.execute(COUNT)


def watched(session: Session, tmp_path: Path) -> object:
    for line in ("SET dp.threshold = 1000000", "SET dp.hits = 9"):
        session.execute(line)
    return session.execute("SELECT COUNT(*) FROM patients")


def exported(session: Session, tmp_path: Path) -> object:
    return RowExport(session, "patients", ("region",), Fraction(1, 10)).write(tmp_path / "x.parquet")


WAYS = {"asked": asked, "watched": watched, "exported": exported}
Way = Callable[[Session, Path], object]


def test_one_module_alone_charges_queues_and_measures() -> None:
    """No other code path bypasses the order: the test searches the whole package for calls with these names."""
    names = ("ledger.reserve", "engine.run", "engine.holds", "queue.place", "perturb")
    last = {name.rpartition(".")[2] for name in names}
    callers: dict[str, set[str]] = {}
    for file in FILES:
        if file.is_relative_to(PACKAGE / "testing"):
            continue  # tests of an engine read it without a session
        for node in nodes_of(file, ast.Attribute, ast.Name):
            text = ast.unparse(node) if (node.attr if isinstance(node, ast.Attribute) else node.id) in last else ""
            for name in names:
                if text == name or text.endswith("." + name):
                    callers.setdefault(name, set()).add(file.relative_to(PACKAGE).as_posix())
    one = {name: {"session/charged.py"} for name in ("ledger.reserve", "engine.run", "engine.holds", "queue.place")}
    assert callers == {**one, "perturb": {"session/pipeline.py"}}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_data_is_read_under_a_charge_alone(session: Session, tmp_path: Path, way: Way) -> None:
    """Every way to an answer runs its queries through `Charge.run`, which refuses them before `reserve`."""
    work, nothing = charged.work_for(session.context, Pace(session.policy), str), cast(Any, None)
    with charged.charged(session.context, work) as charge:
        charge.look_at(("patients",), ())
        for read in (charge.run, charge.check_promises):
            with pytest.raises(InternalError):
                read(nothing)
    assert outcomes(session) == []
    way(session, tmp_path)
    assert outcomes(session) == ["charge", "committed"]


def _fail(*arguments: object, **named: object) -> Any:
    raise RuntimeError(SECRET)


AFTER: dict[str, list[tuple[str, Callable[[Session], tuple[object, str]]]]] = {
    "asked": [
        ("promises", lambda session: (charged.Charge, "check_promises")),
        ("engine", lambda session: (session.context.engine, "run")),
        ("gate", lambda session: (session.context.gate, "add")),
        ("noise", lambda session: (pipeline, "perturb")),
        ("store", lambda session: (session.context.store, "put")),
        ("outcome", lambda session: (Reservation, "commit")),
        ("notices", lambda session: (pipeline, "notices")),
        ("remainder", lambda session: (pipeline, "make_release")),
        ("errors", lambda session: (pipeline, "_with_columns")),
        ("budget", lambda session: (type(session.context.accounts), "budget")),
    ],
    "watched": [
        ("promises", lambda session: (charged.Charge, "check_promises")),
        ("engine", lambda session: (session.context.engine, "run")),
        ("noise", lambda session: (watches, "compare")),
        ("outcome", lambda session: (Reservation, "commit")),
        ("answer", lambda session: (watches, "plain_release")),
    ],
    "exported": [
        ("promises", lambda session: (charged.Charge, "check_promises")),
        ("engine", lambda session: (session.context.engine, "run")),
        ("noise", lambda session: (row_export, "randomise")),
        ("file", lambda session: (row_export, "rows_table")),
        ("outcome", lambda session: (Reservation, "commit")),
        ("name", lambda session: (NewFile, "publish")),
    ],
}


@pytest.mark.parametrize(
    ("way", "target"),
    [pytest.param(way, target, id=f"{way}-{name}") for way, stages in AFTER.items() for name, target in stages],
)
def test_a_failure_at_any_stage_after_the_charge_is_one_fault_that_says_so(
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    way: str,
    target: Callable[[Session], tuple[object, str]],
) -> None:
    planted, name = target(session)
    after: list[bool] = []

    def failing(*arguments: object, **named: object) -> Any:
        if "charge" in outcomes(session):
            after.append(True)
            _fail()
        return original(*arguments, **named)

    original = getattr(planted, name)
    with monkeypatch.context() as broken, caplog.at_level(logging.ERROR, "dpsql.custodian"):
        broken.setattr(planted, name, failing)
        with pytest.raises(Error) as raised:
            WAYS[way](session, tmp_path)
    assert after, "the stage comes before the charge"
    error = raised.value
    assert (error.slug, error.charged) == ("unexpected", True)
    assert error.text().endswith("\nthe charge stays: noise may have been drawn") and SECRET not in error.text()
    assert error.__cause__ is None and (error.__suppress_context__ or error.__context__ is None), (
        "a traceback would quote it"
    )
    doors = (error.text(), repr(error), str(error.args), repr(error_bytes(error)), json.dumps(error_object(error)))
    assert not [text for text in doors if charged_receipt(session) in text]
    assert error.receipt == (charged_receipt(session) if name != "publish" else ""), "a file is named after the answer"
    incident = re.search(r"incident (\w{12})", error.text())
    assert incident is not None
    (record,) = [record for record in caplog.records if incident[1] in record.getMessage()]
    assert record.exc_info is not None and SECRET in str(record.exc_info[1])
    assert outcomes(session)[0] == "charge" and outcomes(session).count("charge") == 1
    _, rows = chosen_rows(session.ledger, open_questions(session.ledger, session.policy).all(), "", None, all=True,
                          analyst=None, project=None, column=None, claimed_user=None)  # fmt: skip
    texts = [row[-1] for row in rows if row[0] is not None]
    assert all(texts) or way == "exported", "the owner sees what failed, in the row of its charge"
    assert [path for path in tmp_path.iterdir() if "parquet" in path.name] == []
    again = WAYS[way](session, tmp_path)
    stored = getattr(again, "reused", False)
    assert stored or way == "watched" or outcomes(session).count("charge") == 2, "nothing else is lost"


def test_a_charge_whose_outcome_cannot_be_noted_is_spent(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(session.context.engine, "run", _fail)
        broken.setattr(Reservation, "fail", _unreachable)
        with pytest.raises(Error) as raised:
            session.execute(COUNT)
    assert (raised.value.slug, raised.value.charged) == ("unexpected", True)
    assert outcomes(session) == ["charge"] and float(session.budget().spent["dataset"]["epsilon"]) > 0


def _unreachable(*arguments: object) -> None:
    raise Error("the ledger cannot be reached", slug="ledger_unreachable")


def test_a_failure_before_the_charge_says_that_nothing_was_charged(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stages: list[tuple[object, str]] = [
        (session.context.engine, "check_readable"), (session.context.index, "require_prepared"),
        (session.context.engine, "rehearse"), (session.context.ledger, "reserve"), (session.planner, "plan"),
    ]  # fmt: skip
    for planted, name in stages:
        with monkeypatch.context() as broken:
            broken.setattr(planted, name, _fail)
            with pytest.raises(Error) as raised:
                session.execute(COUNT)
        assert (raised.value.slug, raised.value.charged) == ("unexpected", False), name
        assert raised.value.text().endswith("\nnothing was charged") and SECRET not in raised.value.text()
        assert SECRET in caplog.text
        caplog.clear()
    assert outcomes(session) == []


def test_looking_at_a_question_raises_errors_of_the_register_alone(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.planner, "plan", _fail)
    for look in (session.execute, session.explain, session.describe):
        with pytest.raises(Error) as raised:
            look(COUNT)
        assert (raised.value.slug, raised.value.charged) == ("unexpected", False)
        assert raised.value.__suppress_context__


def test_a_kept_run_is_spent_by_the_call_that_loses_it(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched(session, tmp_path)
    assert outcomes(session) == ["charge", "committed"]
    with monkeypatch.context() as broken:
        broken.setattr(watches, "compare", _fail)
        with pytest.raises(Error) as raised:
            watched(session, tmp_path)
    assert raised.value.charged and outcomes(session) == ["charge", "committed"]
    watched(session, tmp_path)
    assert outcomes(session) == ["charge", "committed"] * 2
