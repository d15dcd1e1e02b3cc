"""Failures planted after the charge: every door turns them into one fault that says that the charge stays and quotes nothing, and
the custodian's log holds the reason under its incident."""

import asyncio
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.dialects import registry
from support.clinic_folder import Clinic, Outcome
from support.raw_client import Client, error_of
from support.served_clinic import Served, build_clinic, logged_in, serving

import dpsql as package
from dpsql.errors.custodian_log import CustodianLog, keep_log
from dpsql.errors.exceptions import Error, InternalError
from dpsql.frontends.cli.serve import open_server_state
from dpsql.frontends.python.magic import Magic
from dpsql.noise.perturb import Gate
from dpsql.release.error_bars import bars
from dpsql.release.release import Release

registry.register("dpsql", "dpsql.frontends.python.sqlalchemy_dialect", "DpsqlDialect")
COUNT = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
SECRET = "the secret of patient 4711"
Run = Callable[..., Outcome]
Door = Callable[[Run, pytest.MonkeyPatch], str]


def _fail(*arguments: object, **named: object) -> Any:
    raise RuntimeError(SECRET)


@pytest.fixture(autouse=True)
def _log() -> None:
    keep_log()


def python(run: Run, patch: pytest.MonkeyPatch) -> str:
    with package.connect("clinic.yaml") as connection:
        try:
            connection.execute(COUNT).release.error  # noqa: B018
        except InternalError as error:
            return str(error)
    raise AssertionError


def asynchronous(run: Run, patch: pytest.MonkeyPatch) -> str:
    async def asking() -> str:
        async with await package.aconnect("clinic.yaml") as connection:
            try:
                (await connection.execute(COUNT)).error  # noqa: B018
            except InternalError as error:
                return str(error)
        raise AssertionError

    return asyncio.run(asking())


def of_sqlalchemy(run: Run, patch: pytest.MonkeyPatch) -> str:
    engine = sqlalchemy.create_engine("dpsql:///clinic.yaml")
    with engine.connect() as connection, pytest.raises(sqlalchemy.exc.InternalError) as raised:
        connection.execute(sqlalchemy.text(COUNT)).fetchall()
    assert isinstance(raised.value.orig, Error)
    return str(raised.value.orig)


def query(run: Run, patch: pytest.MonkeyPatch) -> str:
    outcome = run("query", "-p", "clinic.yaml", COUNT)
    assert outcome.status == 4
    return outcome.err


def repl(run: Run, patch: pytest.MonkeyPatch) -> str:
    patch.setattr(sys, "stdin", io.StringIO(f"{COUNT};\n"))
    return run("repl", "-p", "clinic.yaml").err


def batch(run: Run, patch: pytest.MonkeyPatch) -> str:
    Path("n.sql").write_text(COUNT)
    outcome = run("run", "-p", "clinic.yaml", "n.sql", "--out", "out", "--json")
    (statement,) = json.loads(outcome.out)["statements"]
    assert statement["error"]["charged"] is True
    return outcome.err


def notebook(run: Run, patch: pytest.MonkeyPatch) -> str:
    shell, printed = type("Shell", (), {"user_ns": {}})(), io.StringIO()
    patch.setattr(sys, "stdout", printed)
    magic = Magic(shell)
    magic("clinic.yaml")
    release = magic("", COUNT)
    magic.connection.close()  # type: ignore[union-attr]
    if release is None:
        return printed.getvalue()
    with pytest.raises(InternalError) as raised:
        release._repr_html_()
    return str(raised.value)


DOORS: dict[str, Door] = {
    "python": python, "async": asynchronous, "sqlalchemy": of_sqlalchemy, "query": query, "repl": repl, "batch": batch,
    "notebook": notebook,
}  # fmt: skip


def _is_charged_and_logged(text: str) -> None:
    """Check that a text is the fault of a charged failure, and that the log holds its reason."""
    assert "XX000 unexpected: " in text and SECRET not in text
    assert "the charge stays" in text and "nothing was charged" not in text
    incident = re.search(r"incident (\w{12})", text)
    assert incident is not None
    (line,) = [line for line in CustodianLog.place().read_text().splitlines() if incident[1] in line]
    assert SECRET in json.loads(line)["traceback"]


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_failure_of_the_noise_is_one_fault_at_every_door(
    clinic: Clinic, dpsql: Run, monkeypatch: pytest.MonkeyPatch, door: Door
) -> None:
    monkeypatch.setattr(Gate, "add", _fail)
    _is_charged_and_logged(door(dpsql, monkeypatch))
    assert clinic.charges() == 1


@pytest.mark.parametrize("name", [name for name in DOORS if name != "sqlalchemy"])  # it shows no error bars
def test_a_failure_of_the_error_bars_is_one_fault_at_every_door(
    clinic: Clinic, dpsql: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    rehearsed: list[object] = []

    def fail_after_the_rehearsal(*answer: Any) -> Any:
        return _fail() if rehearsed else (rehearsed.append(answer), bars(*answer))[1]

    monkeypatch.setattr("dpsql.release.release.bars", fail_after_the_rehearsal)
    _is_charged_and_logged(DOORS[name](dpsql, monkeypatch))
    assert clinic.charges() == 1
    with package.connect("clinic.yaml") as connection, pytest.raises(InternalError) as raised:
        connection.execute(COUNT).release.error  # noqa: B018
    assert raised.value.text().endswith("\nnothing was charged"), "the stored answer is free"


def test_error_bars_that_always_fail_are_met_before_the_charge(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.release.release.bars", _fail)
    with package.connect("clinic.yaml") as connection, pytest.raises(InternalError) as raised:
        connection.execute(COUNT)
    assert raised.value.text().endswith("\nnothing was charged") and clinic.charges() == 0


@pytest.mark.parametrize("door", [query, repl, batch])
def test_a_failure_of_a_format_is_one_fault(
    clinic: Clinic, dpsql: Run, monkeypatch: pytest.MonkeyPatch, door: Door
) -> None:
    for place in ("frontends.rendering.formats.write_text", "release.release.Release.to_arrow",
                  "frontends.rendering.formats.write_table", "frontends.repl.commands.write_table",
                  "frontends.batch.write_file"):  # fmt: skip
        monkeypatch.setattr(f"dpsql.{place}", _fail)
    _is_charged_and_logged(door(dpsql, monkeypatch))
    assert clinic.charges() == 1


@pytest.fixture(scope="module")
def served_here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Client]]:
    clinic = build_clinic(tmp_path_factory.mktemp("failures"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPSQL_STATE", str(clinic.state))
        with serving(open_server_state(clinic.policy)) as port:
            client = logged_in(port)
            yield clinic, client
            client.close()


@pytest.mark.parametrize(
    ("planted", "number"), [("noise.perturb.Gate.add", 51), ("frontends.pgwire.rows.Rows.messages", 52)]
)
def test_a_failure_after_the_charge_is_one_fault_over_the_wire(
    served_here: tuple[Served, Client], monkeypatch: pytest.MonkeyPatch, planted: str, number: int
) -> None:
    clinic, client = served_here
    monkeypatch.setenv("DPSQL_STATE", str(clinic.state))
    before = clinic.charges()
    sql = f"SELECT sex, COUNT(*) AS n FROM patients WHERE age > {number} GROUP BY sex"
    with monkeypatch.context() as broken:
        broken.setattr(f"dpsql.{planted}", _fail)
        error = error_of(client.query(sql))
    _is_charged_and_logged(f"{error['C']} unexpected: {error['M']}\n{error['D']}")
    assert clinic.charges() == before + 1
    assert error_of(client.query("SELECT nope"))["D"] == "nothing was charged", "the connection goes on"


def test_a_release_says_whether_it_was_paid(clinic: Clinic) -> None:
    with package.connect("clinic.yaml") as connection:
        first, second, settings = (connection.execute(sql).release for sql in (COUNT, COUNT, "SHOW dp.epsilon"))
    assert isinstance(first, Release) and [first.receipt.is_paid, second.receipt.is_paid, settings.receipt.is_paid] == [
        True,
        False,
        False,
    ]
