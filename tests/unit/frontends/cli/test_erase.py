"""`dpsql erase`: bytes of what it removes are in no file, whatever database the ledger has; the rest, and all charges, stay."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from support.hospital_file import build
from support.ledger_homes import Home, home, postgres, postgres_home, sqlite_home

from dpsql.errors.custodian_log import AuditLog
from dpsql.errors.exceptions import Refusal
from dpsql.frontends.cli import status_of
from dpsql.frontends.cli.budget import erased_lines
from dpsql.ledger import open_ledger
from dpsql.policy import load_policy
from dpsql.session.session import open_session

__all__ = ["home", "postgres", "postgres_home", "sqlite_home"]

OLD = "2020-02-02T02:02:02.000+00:00"
OTHERS = json.dumps({"time": OLD, "sql": "Otherville", "datasets": ["other"]}) + "\nOtherville, cut off\n"
QUESTIONS = {
    "old": "SELECT COUNT(*) FROM patients WHERE city = 'Oldtown'",
    "new": "SELECT AVG(age) FROM patients WHERE city = 'Newtown'",
}
KINDS = ("texts", "logs", "answers")


def line(time: str, word: str, *datasets: str) -> str:
    return json.dumps({"time": time, "event": "refused", "sql": word, "datasets": datasets}) + "\n"


@pytest.fixture
def kept(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, set[str]]]:
    """Ask an old and a new question; return a function that finds for each kind those of which a file has bytes."""
    monkeypatch.setenv("DPSQL_STATE", str(home.state))
    policy = build(tmp_path, store="{question_days: 36500}")
    policy.write_text(policy.read_text().replace("sqlite:///ledger.db", home.url))
    with monkeypatch.context() as patch:
        for module in ("questions", "store"):
            patch.setattr(f"dpsql.reuse.{module}.now", lambda: OLD)
        with open_session(policy, analyst="ann", create_ledger=True) as session:
            session.execute(QUESTIONS["old"])
    with open_session(policy, analyst="ann") as session:
        session.execute(QUESTIONS["new"])
    new = "3020-02-02T02:02:02.000+00:00"
    (home.state / "audit.log").write_text(line(OLD, "Oldtown", "hospital", "other") + line(new, "Newtown") + OTHERS)
    (home.state / "custodian.log.1").write_text(line(OLD, "Oldtown") + "Oldtown, cut off\n" + line(new, "Newtown"))
    for name in ("history", "history.hospital", "history.other"):
        (home.state / name).write_text(f"# 2020\n+{'Otherville' if 'other' in name else 'Oldtown'}\n")
        os.utime(home.state / name, (0, 0))
    rows = home.sql("SELECT payload FROM dpsql_answers WHERE block <> '' ORDER BY created") if not home.file else []
    if home.file:
        rows = Home("", home.state, Path(f"{home.file}.releases")).sql(
            "SELECT payload FROM dpsql_answers WHERE block <> '' ORDER BY created"
        )
    payloads = [bytes(payload)[200:280] for (payload,) in rows]
    assert len(set(payloads)) == 2 and all(payloads)

    def files(kind: str) -> list[Path]:
        if kind == "logs":
            return [file for file in home.state.iterdir() if file.is_file()]
        if home.file:
            return list(home.file.parent.glob("ledger.db*"))
        with psycopg.connect(home.url) as server:
            tables = {"texts": "dpsql_questions", "answers": "dpsql_answers"}
            server.execute("CHECKPOINT")
            (place,) = server.execute("SELECT current_setting('data_directory')").fetchone() or ("",)
            (path,) = server.execute("SELECT pg_relation_filepath(%s)", [tables[kind]]).fetchone() or ("",)
        return [Path(place) / path]

    def search() -> dict[str, set[str]]:
        words = {"old": b"Oldtown", "new": b"Newtown"}
        marks = {"texts": words, "logs": words, "answers": dict(zip(words, payloads, strict=True))}
        return {
            kind: {age for age, mark in marks[kind].items() if any(mark in file.read_bytes() for file in files(kind))}
            for kind in KINDS
        }

    return search


def charges(policy: Path) -> int:
    loaded = load_policy(policy)
    with open_ledger(loaded.ledger_url(), loaded.dataset) as ledger:
        assert ledger.verify().sound
        return sum(entry.kind == "charge" for entry in ledger.history())


def test_bytes_of_what_is_erased_are_in_no_file_and_charges_stay(
    kept: Callable[[], dict[str, set[str]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "hospital.yaml"
    everything = {kind: {"old", "new"} for kind in KINDS}
    with open_session(policy, analyst="ann") as session:  # as a server has its files open
        session.execute(QUESTIONS["new"])
        assert kept() == everything
        for words in ([], ["all", "--dry-run"], ["copies"]):
            assert status_of(["erase", *words, "-p", str(policy)]) == 0
        told = capsys.readouterr().out
        assert "texts: 3 texts" in told and "logs: 9 lines" in told and "answers: 2 stored" in told
        assert "charges: 2 in the ledger, which stay" in told and kept() == everything
        for position, kind in enumerate(KINDS):
            assert status_of(["erase", kind, "--before", "30", "-p", str(policy)]) == 0
            everything[kind] = {"new"}
            assert kept() == everything, position
        assert status_of(["erase", "all", "-p", str(policy)]) == 0
        assert not any(kept().values()) and charges(policy) == 2
    state = Path(os.environ["DPSQL_STATE"])
    assert (state / "audit.log").read_text().startswith(OTHERS) and "Otherville" in (
        state / "history.other"
    ).read_text()
    assert json.loads((state / "audit.log").read_text().splitlines()[-1])["datasets"].count("hospital") == 1
    with open_session(policy, analyst="ann") as session:
        with pytest.raises(Refusal, match="answer_removed"):
            session.execute(QUESTIONS["new"])
        session.execute(QUESTIONS["new"])
    assert charges(policy) == 3


def test_a_line_that_is_written_while_a_log_is_erased_stays(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(home.state))
    home.state.mkdir(parents=True)
    log = home.state / "audit.log"
    log.write_text(line(OLD, "old") + line("3020", "kept"))
    meanwhile = iter(["began a new log", "and another"])
    rename = os.rename

    def renamed(source: Path, target: Path) -> None:
        rename(source, target)
        if word := next(meanwhile, ""):
            log.write_text(line("3021", word))

    def late(seconds: float) -> None:
        with (home.state / "audit.log.erased0").open("a") as opened:
            opened.write(line("3021", "late"))

    monkeypatch.setattr(os, "rename", renamed)
    monkeypatch.setattr(time, "sleep", late)
    assert erased_lines("hospital", "2021", True) == 1
    words = [json.loads(text)["sql"] for text in log.read_text().splitlines()]
    assert words == ["kept", "began a new log", "and another", "late"]
    assert [file.name for file in home.state.iterdir()] == ["audit.log"] and log.stat().st_mode & 0o777 == 0o600
    assert AuditLog.place() == log
