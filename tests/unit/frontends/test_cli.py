"""The command line for people and scripts: formats, exit status, streams, Ctrl-C, broken pipes, no tracebacks."""

import importlib.util
import io
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.clinic_folder import Clinic, Outcome, process

from dpsql.policy import policy_problems
from dpsql.session.session import Session

Run = Callable[..., Outcome]
BY_REGION = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
HEAVY = ("pyarrow", "duckdb", "sqlglot", "numpy", "sqlalchemy", "yaml", "rich", "prompt_toolkit")
MOST_LOADED = 305
"""Modules of dpsql that one question loads at most, of more than 400."""


def test_help_loads_nothing_heavy() -> None:
    script = f"import sys; from dpsql.frontends.cli import status_of; s = status_of(['--help']); " \
             f"sys.exit(s or (9 if set({HEAVY!r}) & set(sys.modules) else 0))"  # fmt: skip
    child = process(script=script, new=True)
    out, err = child.communicate()
    assert (child.returncode, err) == (0, "") and "demo" in out
    child = process(
        script=f"import sys, dpsql, dpsql.frontends.python.dbapi; sys.exit(9 if set({HEAVY!r}) & set(sys.modules) else 0)",
        new=True,
    )
    assert child.wait() == 0


def test_a_query_loads_what_it_needs(clinic: Clinic) -> None:
    """Each of these takes a noticeable part of the command's time, pandas (installed here) half of it."""
    unneeded = (
        "pandas", "asyncio", "sqlalchemy", "prompt_toolkit", "pyarrow.dataset", "pyarrow.parquet", "altair", "rich",
        "dpsql_audit", "ssl", "xml", "http.client", "multiprocessing", "urllib.request", "pydantic", "pydoc",
        "dpsql.frontends.cli.serve", "dpsql.frontends.pgwire", "dpsql.disclosure", "dpsql.tuning", "dpsql.exports",
    )  # fmt: skip
    script = ("import sys, atexit; from dpsql.frontends.cli import main; "
              "ours = lambda: sum(name.startswith('dpsql') for name in sys.modules); "
              f"atexit.register(lambda: print([name for name in {unneeded!r} if sys.modules.get(name)], ours() <= {MOST_LOADED},"
              " file=sys.stderr)); "
              "main()")  # fmt: skip
    child = process("query", "-p", "clinic.yaml", BY_REGION, script=script, new=True)
    out, err = child.communicate()
    assert (child.returncode, err.splitlines()[-1]) == (0, "[] True") and out.startswith("region")
    assert importlib.util.find_spec("pandas") is not None


def test_streams_keep_data_apart_from_messages(clinic: Clinic) -> None:
    child = process("query", "-p", "clinic.yaml", BY_REGION, "-f", "csv")
    out, err = child.communicate()
    assert child.returncode == 0
    lines = out.splitlines()
    assert lines[0] == "region,n" and [line.split(",")[0] for line in lines[1:]] == ["north", "south"]
    assert (
        "price: 5 % of the budget; 19 questions like this one" in err
        and "receipt" not in err
        and "left: dataset 19 questions, each of epsilon 0.1" in err
    )
    assert clinic.charges() == 1


def test_query_formats_show_error_bars_and_price(clinic: Clinic, dpsql: Run) -> None:
    table = dpsql("query", "-p", "clinic.yaml", "--analyst", "research", BY_REGION)
    assert table.status == 0 and "±" in table.out and "analyst research 9, each of epsilon 0.1" in table.err
    plain = dpsql("query", "-p", "clinic.yaml", BY_REGION, "-f", "csv")
    _, note, price, _ = plain.err.splitlines()
    assert note == "notice: rows with other values of region than the policy names belong to no group and are left out"
    assert price.startswith("price: nothing, answered from stored releases")
    bars = dpsql("query", "-p", "clinic.yaml", BY_REGION, "-f", "csv", "--bars")
    assert bars.out.splitlines()[0] == "region,n,n_low,n_high"
    facts = json.loads(dpsql("query", "-p", "clinic.yaml", BY_REGION, "-f", "json").out)
    assert [list(row.values()) for row in facts["rows"]] == [
        [line.split(",")[0], int(line.split(",")[1])] for line in plain.out.splitlines()[1:]
    ]
    for format in ("parquet", "arrow"):
        assert dpsql("query", "-p", "clinic.yaml", BY_REGION, "-f", format, "-o", f"a.{format}").out == ""
    assert pq.read_table("a.parquet").column("n").to_pylist() == [row["n"] for row in facts["rows"]]
    child = process("query", "-p", "clinic.yaml", BY_REGION, "-f", "arrow")
    assert child.stdout is not None
    data = child.stdout.buffer.read()  # type: ignore[attr-defined]
    assert child.wait() == 0 and pa.ipc.open_stream(io.BytesIO(data)).read_all().num_rows == 2
    assert clinic.charges() == 1


def test_query_reads_options_and_a_statement_from_standard_input(clinic: Clinic) -> None:
    options = ("--epsilon", "0.5", "--confidence", "0.9", "--set", "dp.mechanism=laplace")
    child = process("query", "-p", "clinic.yaml", *options, stdin=subprocess.PIPE)
    out, err = child.communicate("SELECT COUNT(*) AS n\nFROM patients")
    assert child.returncode == 0 and "±" in out
    assert "25 % of the budget; 3 questions like this one" in err and "90 % of cases" in err


def test_an_analyst_s_query_is_charged_to_the_analyst_and_the_dataset(clinic: Clinic, dpsql: Run) -> None:
    dpsql("query", "-p", "clinic.yaml", BY_REGION)
    dpsql("query", "-p", "clinic.yaml", "--analyst", "research", "SELECT COUNT(*) FROM patients")
    shown = json.loads(dpsql("budget", "show", "-p", "clinic.yaml", "-f", "json").out)
    spent = {row["scope"]: round(row["epsilon_spent"], 3) for row in shown}
    assert spent == {"dataset": 0.2, "analyst:research": 0.1}
    history = json.loads(dpsql("budget", "history", "-p", "clinic.yaml", "-f", "json").out)
    assert [(row["analyst"], row["scopes"], row["outcome"]) for row in history] == [
        ("owner", "dataset", "answered"), ("research", "analyst:research, dataset", "answered"),
    ]  # fmt: skip
    last = dpsql("budget", "history", "-p", "clinic.yaml", "-f", "csv", "--last", "1").out.splitlines()
    assert len(last) == 2 and ",research," in last[1]
    assert dpsql("budget", "verify", "-p", "clinic.yaml").out.startswith("the ledger holds: ")
    export = dpsql("budget", "export", "-p", "clinic.yaml").out.splitlines()
    assert [json.loads(json.loads(line)["body"])["kind"] for line in export].count("charge") == 2


def test_an_edited_ledger_is_told(clinic: Clinic, dpsql: Run) -> None:
    dpsql("query", "-p", "clinic.yaml", BY_REGION)
    ledger = clinic.folder / "clinic-ledger.db"
    before = ledger.read_bytes()
    import sqlite3

    connection = sqlite3.connect(ledger)
    connection.execute("UPDATE dpsql_accounts SET spent = replace(spent, '1', '0')")
    connection.commit()
    connection.close()
    assert ledger.read_bytes() != before
    for command in (("budget", "verify"), ("budget", "show"), ("query", BY_REGION), ("check",)):
        outcome = dpsql(command[0], *command[1:2], "-p", "clinic.yaml", *command[2:])
        assert outcome.status == 4 and "does not hold" in outcome.err, command


def test_budget_refusal_is_status_3(clinic: Clinic, dpsql: Run) -> None:
    for age in (1, 2):
        sql = f"SELECT COUNT(*) FROM patients WHERE age > {age}"
        assert dpsql("query", "-p", "clinic.yaml", "--epsilon", "1", sql).status == 0
    outcome = dpsql("query", "-p", "clinic.yaml", "SELECT COUNT(*) FROM patients WHERE age > 3")
    assert outcome.status == 3 and "dataset has epsilon 0" in outcome.err and outcome.out == ""
    assert "nothing was charged" in outcome.err and clinic.charges() == 2


def test_explaining_is_free_in_every_form(clinic: Clinic, dpsql: Run) -> None:
    told = dpsql("explain", "-p", "clinic.yaml", BY_REGION)
    assert told.status == 0 and "price: 5 % of the budget" in told.out and told.err == ""
    assert dpsql("query", "-p", "clinic.yaml", "--explain", BY_REGION).out == told.out
    assert "FROM" in dpsql("explain", "-p", "clinic.yaml", "--sql", BY_REGION).out
    facts = json.loads(dpsql("explain", "-p", "clinic.yaml", "-f", "json", BY_REGION).out)
    assert facts["outputs"][0]["rows_per_unit"] == 1 and facts["columns"][1] == {"name": "n", "type": "integer"}
    assert clinic.charges() == 0


def test_init_writes_structure_only(bare_clinic: Clinic, dpsql: Run) -> None:
    with duckdb.connect("source.duckdb") as connection:
        people = "pid INTEGER PRIMARY KEY, name VARCHAR, age INTEGER NOT NULL, born DATE, x DECIMAL(9,2)"
        visits = "pid INTEGER REFERENCES people(pid), cost DOUBLE, seen TIMESTAMP, raw BLOB"
        connection.execute(f"CREATE TABLE people ({people})")
        connection.execute(f"CREATE TABLE visits ({visits})")
        connection.execute("INSERT INTO people VALUES (7, 'Secret Name', 91827, DATE '1931-02-03', 123.45)")
        connection.execute("INSERT INTO visits VALUES (7, 98765.25, TIMESTAMP '2019-03-04 05:06:07', NULL)")
    outcome = dpsql("init", "--from", "source.duckdb", "--unit", "people.pid")
    text = Path("source.yaml").read_text()
    assert outcome.status == 0 and outcome.out == "" and "dpsql check source.yaml --create-ledger" in outcome.err
    for secret in ("Secret", "91827", "1931", "123.45", "98765", "2019"):
        assert secret not in text
    assert "privacy_unit: {table: people, column: pid}" in text and "foreign_keys: {pid: people.pid}" in text
    assert "primary_key: [pid]" in text and "# raw is BLOB" in text
    assert "pid: {type: integer, nullable: false}" in text and "age: {type: integer, nullable: false}" in text
    assert "born: {type: date}" in text
    assert [path for path, _ in policy_problems(text)] == ["$.tables.visits.max_rows"], "the owner is asked"
    done = text.replace("max_rows:  #?", "max_rows: 9  #")
    assert policy_problems(done) == []
    assert dpsql("init", "--from", "source.duckdb").status == 2, "a policy is never overwritten"
    assert Path("source.yaml").read_text() == text


def test_an_unexpected_error_quotes_nothing(clinic: Clinic, dpsql: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise ValueError("row of Ann Example, income 12345")

    monkeypatch.setattr(Session, "execute", broken)
    outcome = dpsql("query", "-p", "clinic.yaml", BY_REGION)
    assert outcome.status == 4 and outcome.out == ""
    assert "Traceback" not in outcome.err and "Ann" not in outcome.err and "12345" not in outcome.err
    assert "nothing was charged" not in outcome.err, "nobody knows"
    incident = outcome.err.split("incident ")[1].split(")")[0]
    log = clinic.state / "custodian.log"
    assert incident in log.read_text() and "Ann Example" in log.read_text() and log.stat().st_mode & 0o077 == 0


def test_an_engine_error_quotes_nothing(clinic: Clinic, dpsql: Run) -> None:
    with duckdb.connect("clinic.duckdb") as connection:
        connection.execute("DROP TABLE patients")
        connection.execute(
            "CREATE VIEW patients AS SELECT CAST(range AS INTEGER) AS patient_id, 'north' AS region, 30 AS age, "
            "1.5 AS income, "
            "CASE WHEN range > 5 THEN error('Ann Example ' || range) ELSE true END AS smokes FROM range(10)"
        )
    outcome = dpsql("query", "-p", "clinic.yaml", "SELECT COUNT(*) FROM patients WHERE smokes")
    assert outcome.status == 4 and "Ann" not in outcome.err and "the charge stays" in outcome.err
    assert "Ann Example" in (clinic.state / "custodian.log").read_text() and clinic.charges() == 1
    history = json.loads(dpsql("budget", "history", "-p", "clinic.yaml", "-f", "json").out)
    (row,) = history
    assert row["outcome"] == "failed" and row["question"].endswith("WHERE smokes")


@pytest.mark.parametrize("times", [1, 3])
def test_ctrl_c_stops_the_engine_and_tells_the_charge(clinic: Clinic, times: int) -> None:
    """However often it is pressed."""
    clinic.make_slow()
    child = process("query", "-p", "clinic.yaml", "SELECT AVG(n) AS a FROM numbers")
    deadline = time.monotonic() + 240
    while clinic.charges() == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.2)
    for _ in range(times):
        child.send_signal(signal.SIGINT)
        time.sleep(0.05)
    out, err = child.communicate(timeout=240)
    assert (child.returncode, out) == (130, "")
    assert "the question was stopped: epsilon 0.1 charged, receipt " in err and "Traceback" not in err
    assert "asking again is charged again" in err  # the measurement ends with the program
    assert clinic.charges() == 1


def test_an_output_that_is_closed_or_full_ends_the_command_without_a_traceback(clinic: Clinic, dpsql: Run) -> None:
    dpsql("query", "-p", "clinic.yaml", BY_REGION)
    child = process("query", "-p", "clinic.yaml", BY_REGION)
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    err = child.stderr.read()
    assert child.wait() == 141 and "Traceback" not in err and "BrokenPipe" not in err
    with open("/dev/full", "w") as full:
        child = process("query", "-p", "clinic.yaml", BY_REGION, stdout=full)
        _, err = child.communicate()
    assert child.returncode == 4 and "Traceback" not in err and "cannot write standard output: No space left" in err


def test_a_paid_answer_that_cannot_be_written_says_so(clinic: Clinic, dpsql: Run) -> None:
    outcome = dpsql("query", "-p", "clinic.yaml", BY_REGION, "-o", "no/such/folder.csv", "-f", "csv")
    assert outcome.status == 4 and "the charge stays" in outcome.err
    assert dpsql("query", "-p", "clinic.yaml", BY_REGION).status == 0 and clinic.charges() == 1


def test_init_reads_a_folder_as_a_table_for_each_file(bare_clinic: Clinic, dpsql: Run) -> None:
    Path("night").mkdir()
    Path("night/2024 visits.csv").write_text(
        "patient id;alk.phos;größe;alk phos;dp_x;血\n1;2.5;180;3;4;5\n2;3.5;170;4;5;6\n"
    )
    Path("night/wards.csv").write_text("ward,beds\nA,3\n")
    with duckdb.connect() as connection:
        connection.execute("COPY (SELECT 1 AS a, 2 AS \"b.c\") TO 'night/staff.parquet'")
    Path("night/notes.txt").write_text("no table")
    assert dpsql("init", "--from", "night", "--unit", "_2024_visits.patient id").status == 0
    text = Path("night.yaml").read_text()
    assert (
        "privacy_unit: {table: _2024_visits, column: patient_id}" in text
        and 'patient_id: {type: text, from: "patient id"}' in text
    )
    assert 'alk_phos: {type: text, from: "alk.phos"}' in text and 'alk_phos_2: {type: text, from: "alk phos"}' in text
    assert 'xdp_x: {type: text, from: "dp_x"}' in text and 'data: {type: text, from: "血"}' in text
    assert 'b_c: {type: integer, from: "b.c"}' in text and "notes" not in text
    lines, public = [], False
    for line in text.replace("max_rows:  #?", "max_rows: 1  #").splitlines():
        public = line.startswith(("  staff:", "  wards:")) if re.match("  [^ ]", line) else public
        if not (public and "max_rows" in line):
            lines.append(f"{line}\n    public: true" if line.startswith(("  staff:", "  wards:")) else line)
    text = "\n".join(lines)
    text = text.replace(
        'alk_phos: {type: text, from: "alk.phos"}', 'alk_phos: {type: real, from: "alk.phos", lower: 0, upper: 9}'
    )
    Path("night.yaml").write_text(text)
    checked = dpsql("check", "night.yaml", "--create-ledger")
    assert checked.status == 0, checked.err
    answer = dpsql("query", "-p", "night.yaml", "SELECT SUM(alk_phos) AS s FROM _2024_visits")
    assert answer.status == 0, answer.err


def test_risk_needs_no_ledger_and_charges_nothing(bare_clinic: Clinic, dpsql: Run) -> None:
    asked = ("patients", "--columns", "region,age", "--sensitive", "smokes", "--k", "2")
    outcome = dpsql("risk", "-p", str(bare_clinic.policy), *asked)
    assert outcome.status == 0 and "for the data's owner alone" in outcome.err
    assert "k-anonymity:" in outcome.out and "smokes" in outcome.out and "Coarser values" in outcome.out
    assert "owner alone" not in outcome.out and not (bare_clinic.folder / "clinic-ledger.db").exists()
