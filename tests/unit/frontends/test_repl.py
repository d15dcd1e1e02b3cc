"""The prompt, at a terminal (through pexpect) and with piped input."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pexpect
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from support.clinic_folder import REPOSITORY, Clinic, Outcome, process

from dpsql.frontends import interruptible
from dpsql.frontends.repl.prompt import PolicyCompleter
from dpsql.policy import load_policy

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
    child.send("SHOW TABLES;\r")
    child.expect("protected")
    child.send("\\q\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0 and clinic.charges() == 1


def test_from_a_pipe_statements_run_without_a_prompt(clinic: Clinic) -> None:
    child = process("repl", "-p", "clinic.yaml", stdin=subprocess.PIPE)
    out, err = child.communicate("\\dt\nSET dp.epsilon = 0.2; SELECT COUNT(*) AS n\nFROM patients;\nSELECT 'a;b' AS t")
    assert child.returncode == 0, err
    assert "patients" in out and "±" in out and "a;b" in out
    assert "price: 10 % of the budget" in err and "clinic>" not in out + err


def test_an_error_in_piped_statements_sets_the_exit_status_and_the_rest_runs(clinic: Clinic) -> None:
    child = process("repl", "-p", "clinic.yaml", stdin=subprocess.PIPE)
    out, err = child.communicate("SELECT nope FROM patients;\nSELECT 7 AS seven;\n\\q\nSELECT 8 AS eight;\n")
    assert child.returncode == 1 and "unknown_column" in err and "seven" in out and "eight" not in out


LINE = ("slope", "intercept", "r2", "avgx", "avgy", "count")
"""Last parts of the names of least-squares functions."""


def completions(completer: PolicyCompleter, text: str) -> list[str]:
    event = CompleteEvent(completion_requested=True)
    return [found.text for found in completer.get_completions(Document(text), event)]


def test_completion_offers_names_of_the_policy(bare_clinic: Clinic) -> None:
    completer = PolicyCompleter(load_policy(bare_clinic.policy), ["dp.epsilon", "dp.delta"])
    assert completions(completer, "SELECT COUNT(*) FROM pa") == ["patients"]
    assert completions(completer, "SELECT reg") == ["region", *(f"regr_{name}" for name in LINE)]
    assert completions(completer, "SELECT re")[-2:] == ["replace", "reset"]
    assert completions(completer, "SELECT p.a FROM patients p WHERE p.ag") == ["p.age"]
    assert completions(completer, "SELECT patients.i") == ["patients.income"]
    assert completions(completer, "SET dp.e") == ["dp.epsilon"]
    assert completions(completer, "\\b") == ["\\budget"] and completions(completer, "\\set eps") == ["epsilon"]
    assert completions(completer, "\\d num") == ["numbers"]


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


def test_copy_writes_an_answer_with_its_error_bars(clinic: Clinic, piped: Piped) -> None:
    question = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
    out, err, status = piped(f"\\copy ({question}) TO 'answer.csv'\n\\copy ({question}) to answer.parquet;\n")
    assert status == 0 and out.count("2 rows written") == 2 and "price: 5 % of the budget; 19 questions" in err
    assert (clinic.folder / "answer.csv").read_text().startswith("region,n,n_low,n_high\nnorth,")
    assert (clinic.folder / "answer.parquet").read_bytes()[:4] == b"PAR1" and clinic.charges() == 1


def test_plot_draws_an_answer_and_charges_nothing_for_what_cannot_be_drawn(clinic: Clinic, piped: Piped) -> None:
    question = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
    for wrong in ("patients", f"({question}) TO x.pdf", f"({question}) TO nowhere/x.svg", "(SHOW TABLES) TO x.svg"):
        assert piped(f"\\plot {wrong}\n")[2] != 0
    assert clinic.charges() == 0
    out, _, status = piped(f"\\plot ({question}) TO 'x.svg'\n")
    assert status == 0 and "drawn to x.svg" in out and (clinic.folder / "x.svg").read_text().startswith("<svg")


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
