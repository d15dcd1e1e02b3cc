"""The prompt, at a terminal (through pexpect) and with piped input."""

import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pexpect
import pytest
from support.clinic_folder import REPOSITORY, Clinic, Outcome

from dpsql.frontends import interruptible

Run = Callable[..., Outcome]


@pytest.fixture
def terminal(clinic: Clinic) -> Iterator[Callable[..., Any]]:
    opened: list[Any] = []

    def start(*arguments: str) -> Any:
        environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "TERM": "xterm",
            "PAGER": "cat",
        }
        command = ["-m", "dpsql", *arguments]
        options: Any = {"env": environment, "encoding": "utf-8", "timeout": 90, "dimensions": (40, 120)}
        child = pexpect.spawn(sys.executable, command, **options)
        opened.append(child)
        child.expect("clinic>")
        return child

    yield start
    for child in opened:
        child.close(force=True)


def test_a_conversation_at_a_terminal_is_answered(terminal: Callable[..., Any], clinic: Clinic) -> None:
    child = terminal("-p", "clinic.yaml", "--analyst", "research")
    child.send("SELECT region, COUNT(*) AS n\r")
    child.send("FROM patients GROUP BY region;\r")
    child.expect("north")
    child.expect_exact("price: 10 % of the budget of research; 9 questions like this one")
    child.expect_exact("analyst research 9, each of epsilon 0.1")
    child.send("\\d patients\r")
    child.expect("privacy unit")
    child.send("SELECT nope FROM patients;\r")
    child.expect("unknown_column")
    child.send("\\set epsilon 0.25\r")
    child.expect("research@clinic>")
    child.send("\\explain SELECT COUNT(*) FROM patients WHERE age > 3\r")
    child.expect_exact("price: 25 % of the budget of research; 3 questions like this one")
    child.send("\\budget\r")
    child.expect_exact("dataset 7 questions, analyst research 3, each of epsilon 0.25")
    child.send("\\nonsense\r")
    child.expect("no command")
    child.expect("clinic>")
    child.send("SELECT half")
    child.expect("half")
    child.sendcontrol("c")
    # The previous prompt may be matched, and between two prompts the terminal swallows Ctrl-D, so press it again.
    for _ in range(30):
        child.sendcontrol("d")
        if child.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=3) == 0:
            break
    child.close()
    assert child.exitstatus == 0 and clinic.charges() == 1
    history = clinic.state / "history.clinic"
    assert "GROUP BY region" in history.read_text() and history.stat().st_mode & 0o077 == 0


def test_ctrl_c_stops_the_question_and_the_prompt_goes_on(terminal: Callable[..., Any], clinic: Clinic) -> None:
    clinic.make_slow()
    child = terminal("repl", "-p", "clinic.yaml")
    child.send("SELECT AVG(n) AS a FROM numbers;\r")
    deadline = time.monotonic() + 240
    while clinic.charges() == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    child.expect("Ctrl-C stops")
    child.sendcontrol("c")
    child.expect("the question was stopped: epsilon 0.1 charged")
    child.expect("its measurement goes on")
    child.send("SHOW TABLES;\r")
    child.expect("protected")
    child.send("\\q\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0 and clinic.charges() == 1


Piped = Callable[..., tuple[str, str, int]]


@pytest.fixture
def piped(dpsql: Run, clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> Piped:
    """Return a function that feeds a text to the prompt through a pipe and returns standard output, standard error and exit
    status. It runs in this process; separate processes are tested above."""

    def run(text: str) -> tuple[str, str, int]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        outcome = dpsql("repl", "-p", "clinic.yaml")
        return outcome.out, outcome.err, outcome.status

    return run


def test_a_file_of_statements_and_commands_is_answered_until_its_first_error(clinic: Clinic, piped: Piped) -> None:
    (clinic.folder / "questions.sql").write_text(
        "\\x on\nSELECT 1 AS a,\n 2 AS b;\nSELECT nope FROM patients;\nSELECT 9 AS c;\n"
    )
    out, err, status = piped("\\i questions.sql\nSELECT 5 AS e;\n")
    assert "  b  2" in out and "  e  5" in out and "  c  9" not in out
    assert "unknown_column" in err and "questions.sql: stopped" in err and status == 0
    (clinic.folder / "circle.sql").write_text("\\i circle.sql\n")
    assert "more than 10 deep" in piped("\\i circle.sql\n")[1]
    assert "cannot read absent.sql" in piped("\\i absent.sql\n")[1]


def test_a_slow_answer_says_once_and_to_the_owner_alone_what_makes_the_next_ones_fast(
    clinic: Clinic, piped: Piped, dpsql: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = "".join(f"SELECT COUNT(*) FROM patients WHERE age > {age};\n" for age in (1, 2))
    assert "faster" not in piped(twice)[1]
    monkeypatch.setattr(interruptible, "SLOW_SECONDS", 0.0)
    ask = ("query", "-p", "clinic.yaml", "SELECT COUNT(*) FROM patients WHERE age > 3")
    assert "faster" not in dpsql(*ask[:-1], "--analyst", "research", ask[-1].replace("3", "4")).err
    assert "faster from now on: dpsql prepare -p clinic.yaml (no copy yet of " in dpsql(*ask).err
    assert "faster" not in dpsql(*ask).err  # it is stored, and free
    assert piped(twice.replace("> ", "> 1"))[1].count("faster from now on") == 1
    assert dpsql("prepare", "-p", "clinic.yaml").status == 0
    assert "faster" not in piped(twice.replace("> ", "> 2"))[1]
