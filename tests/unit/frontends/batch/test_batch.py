"""`dpsql run`: the whole batch fits the budget or nothing runs, and no crash makes it pay twice."""

import fcntl
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.clinic_folder import Clinic, Outcome, process

Run = Callable[..., Outcome]
NIGHTLY = """\
-- three questions; the second twice, and one that needs no data
SELECT region, COUNT(*) AS n FROM patients GROUP BY region;
SELECT COUNT(*) AS n FROM patients WHERE age > 30;
SET dp.epsilon = 0.2;
SELECT AVG(age) AS age FROM patients; -- ; not here
SELECT AVG(age) AS age FROM patients;
EXPLAIN SELECT COUNT(*) FROM numbers;
"""
RUN = ("run", "-p", "clinic.yaml", "nightly.sql", "--out", "out")
UNIT = 10**18

KILLED = """
import os, signal, sys
from dpsql.frontends import batch as run_record
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.ledger import Reservation
calls = {name: 0 for name in ("reserve", "commit", "result", "note")}
def deadly(owner, attribute, name, at, after=False):
    real = getattr(owner, attribute)
    def call(*arguments, **options):
        calls[name] += 1
        if calls[name] == at and not after: os.kill(os.getpid(), signal.SIGKILL)
        found = real(*arguments, **options)
        if calls[name] == at: os.kill(os.getpid(), signal.SIGKILL)
        return found
    setattr(owner, attribute, call)
where = sys.argv.pop(1)
if where == "after reserve": deadly(Ledger, "reserve", "reserve", 2, after=True)
if where == "before commit": deadly(Reservation, "commit", "commit", 2)
if where == "before result": deadly(run_record.RunRecord, "keep", "result", 2)
if where == "in result": deadly(os, "replace", "result", 4)
if where == "after note": deadly(run_record.RunRecord, "keep", "note", 2, after=True)
from dpsql.frontends.cli import main
main()
"""


@pytest.fixture
def nightly(clinic: Clinic) -> Clinic:
    (clinic.folder / "nightly.sql").write_text(NIGHTLY)
    return clinic


def note(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out", f"{name}.meta.json").read_text())
    return found


def test_results_have_one_file_and_one_note_each(nightly: Clinic, dpsql: Run) -> None:
    outcome = dpsql(*RUN)
    assert outcome.status == 0 and outcome.out == ""
    assert "the whole set: epsilon 0.4" in outcome.err, "a question asked twice is paid once"
    assert sorted(path.name for path in Path("out").glob("*.csv")) == [f"nightly-0{n}.csv" for n in range(1, 6)]
    assert Path("out/nightly-03.csv").read_text() == Path("out/nightly-04.csv").read_text()
    first = note("nightly-01")
    assert first["statement"] == "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
    assert first["options"]["dp.epsilon"] == "0.1" and note("nightly-03")["options"]["dp.epsilon"] == "0.2"
    assert first["charged"].startswith("epsilon 0.1") and len(first["low"]) == 2
    assert first["receipt"] == first["request"]
    assert first["sha256"] == hashlib.sha256(Path("out/nightly-01.csv").read_bytes()).hexdigest()
    assert note("nightly-04")["reused"] and note("nightly-04")["charged"] == "nothing"
    assert nightly.charges() == 3 and nightly.spent() <= 0.4 * UNIT
    assert not list(Path("out").glob(".*.part"))


def test_running_again_is_free(nightly: Clinic, dpsql: Run) -> None:
    dpsql(*RUN)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path("out").glob("nightly*")}
    again = dpsql(*RUN, "--set", "dp.on_behalf_of=ann")
    assert again.status == 0 and again.err.count("answered by an earlier run") == 5, "whoever asks"
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path("out").glob("nightly*")} == before
    Path("out/nightly-01.csv").write_text("edited\n")
    assert dpsql(*RUN).status == 0
    assert Path("out/nightly-01.csv").read_bytes() == before["nightly-01.csv"][0], "a damaged result is written again"
    assert nightly.charges() == 3


@pytest.mark.parametrize("epsilon", ["0.51", "0.5"])
def test_the_whole_set_fits_or_nothing_runs(clinic: Clinic, dpsql: Run, epsilon: str) -> None:
    texts = [f"SELECT COUNT(*) FROM patients WHERE age > {age};" for age in (1, 2)]
    (clinic.folder / "big.sql").write_text("\n".join(texts))
    run = ("run", "-p", "clinic.yaml", "big.sql", "--out", "out")
    outcome = dpsql(*run, "--analyst", "research", "--epsilon", epsilon)
    assert (outcome.status, clinic.charges()) == ((0, 2) if epsilon == "0.5" else (3, 0))
    if epsilon != "0.5":
        assert "analyst:research has epsilon 1 left" in outcome.err and not list(Path("out").glob("*.csv"))


@pytest.mark.parametrize("where", ["before commit", "before result", "in result", "after note"])
def test_a_killed_run_goes_on_where_it_stopped_and_pays_nothing_twice(nightly: Clinic, dpsql: Run, where: str) -> None:
    child = process(where, *RUN, script=KILLED)
    child.communicate()
    assert child.returncode == -9
    assert not Path("out/nightly-03.csv").exists()
    again = dpsql(*RUN)
    assert again.status == 0, again.err
    assert nightly.charges() == 3 and nightly.spent() <= 0.4 * UNIT, "nothing was paid twice"
    assert len(list(Path("out").glob("*.meta.json"))) == 5


def test_a_lost_answer_is_told_and_paid_again_only_on_request(nightly: Clinic, dpsql: Run) -> None:
    child = process("after reserve", *RUN, script=KILLED)
    child.communicate()
    assert child.returncode == -9 and nightly.charges() == 2
    again = dpsql(*RUN)
    assert again.status == 4 and "nightly.sql:3: 55000 batch_lost" in again.err and "the charge stays" in again.err
    assert nightly.charges() == 3 and not Path("out/nightly-02.csv").exists() and Path("out/nightly-05.csv").exists()
    assert dpsql(*RUN).status == 4 and nightly.charges() == 3
    paid = dpsql(*RUN, "--charge-again")
    assert paid.status == 0 and nightly.charges() == 4 and Path("out/nightly-02.csv").exists()
    assert dpsql(*RUN, "--charge-again").status == 0 and nightly.charges() == 4


def test_values_of_the_command_line_stand_in_every_file_and_tell_results_apart(clinic: Clinic, dpsql: Run) -> None:
    """Another value is another question; a value that no file names is a mistake, and so is a name without a value."""
    (clinic.folder / "a.sql").write_text("SELECT COUNT(*) AS n FROM patients WHERE age > :age")
    (clinic.folder / "b.sql").write_text("SELECT COUNT(*) AS n FROM patients WHERE region = :region")
    run = ("run", "-p", "clinic.yaml", "a.sql", "b.sql", "--out", "out")
    for region, charges in (("north", 2), ("north", 2), ("south", 3), ("1 OR 1=1", 4)):
        assert dpsql(*run, "--param", "age=40", "--param", f"region={region}").status == 0
        assert clinic.charges() == charges and note("b-01")["statement"].endswith(f"region = '{region}'")
    missing = dpsql(*run, "--param", "age=40")
    assert missing.status == 1 and "parameter_missing" in missing.err and "--param region=value" in missing.err
    (clinic.folder / "c.sql").write_text("\\set age 40\n")
    prompts = dpsql("run", "-p", "clinic.yaml", "c.sql", "--out", "out")
    assert prompts.status == 1 and "`--param name=value`" in prompts.err
    unused = dpsql(*run, "--param", "age=40", "--param", "region=south", "--param", "ages=4")
    assert unused.status == 2 and ":ages does not stand in the SQL" in unused.err and clinic.charges() == 4


def test_one_run_at_a_time_and_no_foreign_folder(nightly: Clinic, dpsql: Run) -> None:
    Path("out").mkdir()
    with open("out/.run.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        busy = dpsql(*RUN)
    assert busy.status == 2 and "another `dpsql run`" in busy.err
    for text in (
        "", "[]", "7", "{}", '{"run": 7, "dataset": "clinic", "attempts": {}}', '{"run": "x", "dataset": "clinic", "attempts": []}',
        '{"run": "x", "dataset": "other", "attempts": {}}',
    ):  # fmt: skip
        Path("out/run.json").write_text(text)
        outcome = dpsql(*RUN)
        assert outcome.status == 2 and "batch_record" in outcome.err and Path("out/run.json").read_text() == text, text
    Path("file").write_text("")
    assert dpsql(*RUN[:5], "file/out").status == 4 and nightly.charges() == 0


def test_a_result_or_a_note_that_somebody_changed_is_written_again_and_free(nightly: Clinic, dpsql: Run) -> None:
    assert dpsql(*RUN).status == 0
    written, charges = Path("out/nightly-01.csv").read_text(), nightly.charges()
    for file, text in (
        ("csv", "n\n1\n"),
        *(("meta.json", text) for text in ("", "[]", "7", "null", '{"request": "r1"}')),
    ):
        Path(f"out/nightly-01.{file}").write_text(text)
        assert dpsql(*RUN).err.count("answered by an earlier run") == 4, (file, text)
        assert Path("out/nightly-01.csv").read_text() == written and nightly.charges() == charges


def test_a_link_in_place_of_a_part_file_is_not_followed(nightly: Clinic, dpsql: Run) -> None:
    victim = nightly.folder / "victim"
    victim.write_text("untouched")
    Path("out").mkdir()
    for name in ("nightly-01.csv", "nightly-01.meta.json"):
        Path("out", f".{name}.part").symlink_to(victim)
    assert dpsql(*RUN).status == 0
    assert victim.read_text() == "untouched" and not Path("out", "nightly-01.csv").is_symlink()
    assert note("nightly-01")["result"] == "nightly-01.csv"
