"""Logins are listed, changed and removed while the server runs."""

import io
import json
import re
from collections.abc import Callable

import pytest
from support.raw_client import Client, error_of, rows_of
from support.served_clinic import PASSWORD, Served, build_clinic, serving

from dpsql.frontends.cli import status_of
from dpsql.frontends.cli.serve import open_server_state

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def clinic(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Served:
    found = build_clinic(tmp_path_factory.mktemp("users"))
    monkeypatch.setenv("DPSQL_STATE", str(found.state))
    return found


@pytest.fixture
def user(clinic: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*words: str, password: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(password + "\n"))
        capsys.readouterr()
        status = status_of(["user", *words, "-p", str(clinic.policy)])
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def login(port: int, name: str, password: str = PASSWORD) -> tuple[Client, str]:
    client = Client(port)
    told = client.login(name, password, "nafld")
    return client, "" if told[-1][0] == b"Z" else error_of(told)["C"]


def states(user: Run) -> dict[str, str]:
    return {row["user"]: row["login"] for row in json.loads(user("list", "-f", "json")[1])}


def test_changes_of_logins_reach_a_server_that_runs(clinic: Served, user: Run) -> None:
    assert {"research": "active", "clinic": "active", "owner": "active"}.items() <= states(user).items()
    with serving(open_server_state(clinic.policy)) as port:
        research, refused = login(port, "research")
        other, _ = login(port, "clinic")
        assert not refused and rows_of(research.query("SELECT 1")) == [[b"1"]]
        assert user("disable", "research")[0] == 0 and states(user)["research"] == "disabled"
        assert error_of(research.query("SELECT 1"))["C"] == "28000" and research.read() is None
        assert login(port, "research")[1] == "28P01", "no other words than for a wrong password"
        assert user("enable", "research")[0] == 0
        assert login(port, "research")[1] == ""
        assert user("password", "research", password="another good password")[0] == 0
        assert login(port, "research")[1] == "28P01"
        assert login(port, "research", "another good password")[1] == ""
        assert user("remove", "research")[0] == 0 and states(user)["research"] == "none"
        assert login(port, "research", "another good password")[1] == "28P01"
        assert user("add", "research", password=PASSWORD)[0] == 0
        assert login(port, "research")[1] == ""
        assert rows_of(other.query("SELECT 1")) == [[b"1"]], "nobody else notices"


def test_what_the_owner_did_is_written_down(clinic: Served, user: Run) -> None:
    user("disable", "clinic")
    user("disable", "clinic")
    user("password", "clinic", password="a new good password")
    assert states(user)["clinic"] == "active"
    lines = [json.loads(line) for line in (clinic.state / "audit.log").read_text().splitlines()]
    acts = [(line["act"], line["user"]) for line in lines if line["event"] == "owner"]
    assert acts == [("user disable", "clinic"), ("user disable", "clinic"), ("user add", "clinic")]
    assert "good password" not in (clinic.state / "audit.log").read_text()


def test_a_login_that_is_removed_while_its_password_is_asked_for_stays_removed(
    user: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(io.StringIO):
        def readline(self, *_: int) -> str:  # type: ignore[override]
            user("remove", "clinic")
            return "a new good password\n"

    real = io.StringIO
    monkeypatch.setattr("io.StringIO", lambda text: Slow() if text == "slow\n" else real(text))
    status, _, told = user("password", "clinic", password="slow")
    assert status == 2 and "user_unknown" in told and states(user)["clinic"] == "none"


def test_an_analyst_sees_their_own_part_of_the_policy_beside_one_who_sees_all(clinic: Served) -> None:
    part = "where: {patients: \"sex = 'female'\"}, columns: {patients: [age]}, tables: [patients]"
    text = clinic.policy.read_text()
    clinic.policy.write_text(re.sub(r"(\bclinic: \{epsilon: [0-9.]+)", rf"\1, {part}", text, count=1))
    questions = ("SELECT COUNT(*) FROM patients", "SELECT COUNT(*) FROM patients WHERE sex = 'female'")
    with serving(open_server_state(clinic.policy)) as port:
        research, clinic_ = login(port, "research")[0], login(port, "clinic")[0]
        for _ in range(2):  # the second time, plans and releases come from caches
            everybody, women = (rows_of(research.query(question)) for question in questions)
            assert rows_of(clinic_.query(questions[0])) == women != everybody
            assert error_of(clinic_.query(questions[1]))["C"] == "42703"
        tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        columns = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'"
        assert rows_of(clinic_.query(tables)) == [[b"patients"]] and rows_of(clinic_.query(columns)) == [[b"age"]]
        assert len(rows_of(research.query(tables))) > 1
        named = [error_of(clinic_.query(f"SELECT COUNT(*) FROM {name}")) for name in ("labs", "ghst")]
        assert [error["C"] for error in named] == ["42P01", "42P01"]
        assert len({error["M"].replace("labs", "ghst") for error in named}) == 1
