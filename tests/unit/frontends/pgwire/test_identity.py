"""One query through three front ends (Python, command line, wire): the same plan, price, answer, refusal and charges.

Each front end has its own copy of one clinic, with the same key choosing which rows of a person are counted, and a gate whose
noise comes from one seed. Every query has its own connection.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest
from support.noise_laws import Seeded
from support.served_clinic import Served, build_clinic, serving

import dpsql
from dpsql.errors.exceptions import Error
from dpsql.frontends.cli import status_of
from dpsql.frontends.cli.serve import open_server_state
from dpsql.noise.perturb import Gate

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM patients",
    "SELECT sex, COUNT(*) AS n, AVG(bmi) AS bmi FROM patients GROUP BY sex ORDER BY sex",
    "SELECT test, AVG(value) AS mean, STDDEV(value) AS spread FROM labs WHERE day > 0 GROUP BY 1 ORDER BY 1",
    "SELECT event, COUNT(DISTINCT patient_id) AS people FROM events GROUP BY event ORDER BY people DESC, event LIMIT 5",
    "SELECT age // 10 * 10 AS decade, COUNT(*) AS n FROM patients GROUP BY 1 HAVING COUNT(*) > 500 ORDER BY 1",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.3, project = 'flu') COUNT(*) AS n FROM patients WHERE died",
    "SELECT p.sex, AVG(l.value) AS mean FROM labs AS l JOIN patients AS p ON p.patient_id = l.patient_id GROUP BY p.sex ORDER BY 1",
    "SELECT COUNT(*) AS n FROM patients WHERE sex = ANY('{male,female}')",
    "SELECT COUNT(*) AS n FROM patients",  # answered from the store
    "SELECT SUM(n) AS n FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS by_sex",
    "SELECT sex, COUNT(*) AS n FROM patients WHERE bmi > (SELECT AVG(bmi) FROM patients) GROUP BY sex ORDER BY sex",
    "SELECT l.test, AVG(l.value) AS mean FROM labs AS l JOIN (SELECT test, COUNT(*) AS n FROM labs GROUP BY test "
    "ORDER BY n DESC LIMIT 2) AS top ON l.test = top.test GROUP BY l.test ORDER BY mean DESC LIMIT 2",
    "SELECT 1 + 1 AS two",
)
REFUSED = (
    "SELECT nope FROM patients", "SELECT COUNT(*) FROM nope", "SELECT * FROM patients", "SELECT ARRAY_AGG(age) FROM patients",
    "SELECT SUM(value FROM labs", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 5) COUNT(*) FROM patients",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (project = 'flue') COUNT(*) FROM patients",
)  # fmt: skip


@dataclass(frozen=True)
class Told:
    """The result of a query at one front end. `price` is empty if nothing is charged; `refusal` is SQLSTATE and sentence."""

    rows: tuple[tuple[Any, ...], ...] = ()
    price: str = ""
    refusal: tuple[str, str] = ("", "")


Door = Callable[[str], Told]


def python(clinic: Served) -> Door:
    def ask(sql: str) -> Told:
        with dpsql.connect(clinic.policy, analyst="research") as connection:
            try:
                cursor = connection.execute(sql)
            except Error as error:
                assert error.charged is False
                return Told(refusal=(error.sqlstate, error.message))
            receipt = cursor.release.receipt
            return Told(tuple(cursor.fetchall()), "" if receipt.reused else receipt.charged.replace("nothing", ""))

    return ask


def command_line(clinic: Served, capsys: pytest.CaptureFixture[str]) -> Door:
    def ask(sql: str) -> Told:
        status = status_of(["query", "-p", str(clinic.policy), "--analyst", "research", "-f", "json", sql])
        out, err = capsys.readouterr()
        if status:
            sqlstate, _, rest = err.partition(" ")
            assert "nothing was charged" in err
            return Told(refusal=(sqlstate, rest.split(": ", 1)[1].splitlines()[0]))
        answer = json.loads(out)
        rows = tuple(tuple(row.values()) for row in answer["rows"])
        return Told(rows, "" if answer["reused"] else answer["charged"].replace("nothing", ""))

    return ask


def wire(clinic: Served) -> Door:
    def ask(sql: str) -> Told:
        place = {**clinic.place, "sslmode": "disable"}
        heard: list[str] = []
        with closing(psycopg.connect(autocommit=True, **place)) as connection:
            connection.add_notice_handler(lambda notice: heard.append(notice.message_detail or ""))
            try:
                rows = connection.execute(sql).fetchall()
            except psycopg.Error as error:
                assert error.diag.message_detail == "nothing was charged"
                sentence = error.diag.message_primary or ""
                if sentence.startswith(
                    "syntax error at or near"
                ):  # as PostgreSQL says it; our own words are in the hint
                    sentence = (error.diag.message_hint or "").split("; ")[0]
                return Told(refusal=(error.diag.sqlstate or "", sentence))
        prices = [price for text in heard for price in re.findall("charged (.*), receipt ", text)]
        return Told(tuple(rows), *prices)

    return ask


@pytest.fixture(scope="module")
def clinics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Served]]:
    """Yield three copies of one clinic, each with its ledger and the same key; one of them is served."""
    first = tmp_path_factory.mktemp("identity") / "first"
    first.mkdir()
    build_clinic(first)
    found = {}
    for name in ("python", "command line", "wire"):
        folder = first.with_name(name.replace(" ", "_"))
        shutil.copytree(first, folder)
        found[name] = Served(folder / "nafld.yaml", folder / "state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPSQL_STATE", str(found["wire"].state))
        with serving(open_server_state(found["wire"].policy)) as found["wire"].port:
            yield found


@pytest.fixture
def doors(
    clinics: dict[str, Served], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], dict[str, Told]]:
    """Return a function that runs a query through each front end, with its own ledger and seed."""
    monkeypatch.setattr("dpsql.session.session.Gate", lambda: Gate(Seeded("identity")))
    opened = {
        "python": python(clinics["python"]),
        "command line": command_line(clinics["command line"], capsys),
        "wire": wire(clinics["wire"]),
    }

    def ask(sql: str) -> dict[str, Told]:
        found = {}
        for name, door in opened.items():
            monkeypatch.setenv("DPSQL_STATE", str(clinics[name].state))
            found[name] = door(sql)
        return found

    return ask


def charges(clinic: Served) -> list[tuple[Any, ...]]:
    """Return the charges with their scopes, analysts and contents, without times, ids and names of sessions."""
    return [(facts["charge"], facts["scopes"], facts["analyst"], facts["what"]) for facts in clinic.charged()]


@pytest.mark.parametrize("sql", QUESTIONS)
def test_plans_answers_and_prices(
    doors: Callable[[str], dict[str, Told]], clinics: dict[str, Served], sql: str
) -> None:
    for asked in (f"EXPLAIN {sql}", sql, sql):
        told = doors(asked)
        assert told["wire"] == told["python"] == told["command line"]
        assert told["wire"].rows or "1 + 1" in asked
        assert told["wire"].refusal == ("", "")
    assert told["wire"].price == ""  # the second time
    ledgers = [charges(clinic) for clinic in clinics.values()]
    assert ledgers[0] == ledgers[1] == ledgers[2]


@pytest.mark.parametrize("sql", REFUSED)
def test_refusals_are_the_same_through_every_door(
    doors: Callable[[str], dict[str, Told]], clinics: dict[str, Served], sql: str
) -> None:
    before = [charges(clinic) for clinic in clinics.values()]
    told = doors(sql)
    if (
        told["python"].refusal[0] == "42601"
    ):  # a client that reads SQL again is told of an error of syntax in PostgreSQL's words
        told = {door: replace(each, refusal=(each.refusal[0], "")) for door, each in told.items()}
    assert told["wire"] == told["python"] == told["command line"]
    assert told["wire"].refusal[0]
    assert [charges(clinic) for clinic in clinics.values()] == before


def test_something_was_charged_and_noise_was_drawn(
    clinics: dict[str, Served], doors: Callable[[str], dict[str, Told]]
) -> None:
    """What the other tests compare is not empty."""
    told = doors("SELECT COUNT(*) AS n FROM patients WHERE age > 33")
    assert told["wire"].price.startswith("rho 0.005")
    assert told["wire"] == told["python"] == told["command line"]
    assert len(charges(clinics["wire"])) >= 1
    assert {scope for charge in charges(clinics["wire"]) for scope in charge[1]} >= {"dataset", "analyst:research"}
