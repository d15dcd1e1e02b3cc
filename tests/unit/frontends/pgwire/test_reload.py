"""SIGHUP: a running server reloads the policy unless it would promise less."""

import json
import signal
import threading
from pathlib import Path

import pytest
from support.gated_engine import PATIENCE, Gated, gated
from support.raw_client import Client, error_of, rows_of
from support.served_clinic import PASSWORD, Served, build_clinic

from dpsql.errors.exceptions import PolicyRefusal
from dpsql.frontends.cli.serve import open_server_state
from dpsql.frontends.pgwire.server import Server
from dpsql.policy import load_policy

COUNT = "SELECT COUNT(*) AS n FROM patients"


@pytest.fixture
def clinic(tmp_path: Path) -> Served:
    return build_clinic(tmp_path)


def hang_up(served: Served) -> str:
    assert served.process is not None and served.process.stderr is not None
    served.process.send_signal(signal.SIGHUP)
    while "the policy" not in (line := served.process.stderr.readline()):
        assert line, "the server has ended"
    return line


def change(served: Served, old: str, new: str) -> None:
    text = served.policy.read_text()
    assert old in text
    served.policy.write_text(text.replace(old, new, 1))


def login(port: int, user: str) -> Client:
    client = Client(port)
    assert client.login(user, PASSWORD, "nafld")[-1][0] == b"Z"
    return client


def test_a_narrower_policy_ends_the_connections_that_it_concerns(clinic: Served) -> None:
    clinic.start()
    try:
        research, other = login(clinic.port, "research"), login(clinic.port, "clinic")
        everything = rows_of(research.query(COUNT))
        change(clinic, "research: {epsilon: 4}", "research: {epsilon: 4, columns: {patients: [age]}}")
        assert hang_up(clinic).startswith("the policy was read again")
        assert error_of(research.query("SELECT COUNT(*) FROM patients WHERE sex = 'male'"))["C"] == "57P01"
        assert research.read() is None
        assert rows_of(other.query(COUNT)) == everything, "whom it does not concern goes on"
        again = login(clinic.port, "research")
        assert error_of(again.query("SELECT COUNT(*) FROM patients WHERE sex = 'male'"))["C"] == "42703"
        assert rows_of(again.query(COUNT)) == everything
        names = "SELECT column_name FROM information_schema.columns WHERE table_name = 'patients'"
        assert rows_of(again.query(names)) == [[b"age"]] and len(rows_of(other.query(names))) > 3
    finally:
        clinic.stop()
    events = [json.loads(line) for line in (clinic.state / "audit.log").read_text().splitlines()]
    assert [event["user"] for event in events if event["event"] == "policy_changed"] == ["research"]
    assert [event["event"] for event in events].count("reload") == 1


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("research: {epsilon: 4}", "research: {epsilon: 5}", "analysts.research.epsilon"),
        ("\ntables:\n", "\ntables:\n  - x\n", "not acceptable"),
        ("clinic: {epsilon: 6}", "clinic: {epsilon: 6, where: {patients: shoe > 3}}", "analysts.clinic.where.patients"),
    ],
)
def test_a_policy_that_widens_or_is_wrong_is_not_taken_over(clinic: Served, old: str, new: str, reason: str) -> None:
    clinic.start()
    try:
        research = login(clinic.port, "research")
        change(clinic, old, new)
        line = hang_up(clinic)
        assert line.startswith("the policy stays as it was") and reason in line
        assert line.rstrip().endswith(("restart the server, if this is what you mean", "lists every problem"))
        assert rows_of(research.query("SELECT 1")) == [[b"1"]]
        login(clinic.port, "research")
    finally:
        clinic.stop()
    events = [json.loads(line) for line in (clinic.state / "audit.log").read_text().splitlines()]
    (refused,) = (event for event in events if event["event"] == "reload_refused")
    assert refused["slug"] in ("policy_widened", "policy_invalid") and reason in refused["reason"]


def test_a_question_that_runs_is_answered_and_the_next_one_is_not(
    clinic: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(clinic.state))
    servers: list[Server] = []
    start = Server.start

    async def noted(server: Server, host: str, port: int) -> tuple[str, int]:
        servers.append(server)
        return await start(server, host, port)

    monkeypatch.setattr(Server, "start", noted)
    with gated(clinic) as port:
        research = login(port, "research")
        answers: list[object] = []
        asking = threading.Thread(target=lambda: answers.extend(rows_of(research.query(COUNT))))
        asking.start()
        assert Gated.begun.wait(PATIENCE)
        change(clinic, "  research: {epsilon: 4}\n", "")
        changed, followed = load_policy(clinic.policy), []
        monkeypatch.setattr(Gated, "under", lambda self, policy: followed.append(policy) or self)
        servers[0].reload(changed)
        assert followed == [changed], "the engine knows the name that the policy gives to the data"
        Gated.go_on.set()
        asking.join(PATIENCE)
        assert len(answers) == 1 and clinic.charges() == 1
        assert error_of(research.query(COUNT))["C"] == "57P01"
        other = Client(port)
        assert error_of(other.login("research", PASSWORD, "nafld"))["C"] == "28P01", "removed, as if never there"


def test_several_reloads_in_a_row_widen_nothing_together(clinic: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """An analyst whom one reload removes returns with limits at most as wide as before, or not at all."""
    monkeypatch.setenv("DPSQL_STATE", str(clinic.state))
    server = Server(open_server_state(clinic.policy))
    first = clinic.policy.read_text()
    steps = (
        ("  research: {epsilon: 4}\n", "", ""),
        ("\nanalysts:\n", "\nanalysts:\n  guest: {epsilon: 1}\n", ""),
        ("  guest: {epsilon: 1}\n", "", ""),
        ("\nanalysts:\n", "\nanalysts:\n  research: {epsilon: 5}\n", "analysts.research.epsilon"),
        ("research: {epsilon: 5}", "research: {epsilon: 4}\n  guest: {epsilon: 2}", "analysts.guest.epsilon"),
        ("guest: {epsilon: 2}", "guest: {epsilon: 1}", ""),
    )
    for old, new, wider in steps:
        change(clinic, old, new)
        if wider:
            before = server.policy
            with pytest.raises(PolicyRefusal, match=wider):
                server.reload(load_policy(clinic.policy))
            assert server.policy is before
        else:
            server.reload(load_policy(clinic.policy))
    assert set(server.policy.analysts) == {"clinic", "planning", "research", "guest"} and "guest" not in first
