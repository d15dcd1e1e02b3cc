"""A copy extended with the rows of new files equals the copy of all rows, and any other change is detected."""

import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from support.forked import Forked
from support.places import TESTS
from support.plain_duckdb import plain_duckdb
from support.visits_clinic import QUESTIONS, engine_sql, exact, index_of, open_clinic, rows

from dpsql.engine import contribution_index
from dpsql.engine.contribution_index import (
    OF_CHANGED_FILES,
    OF_DAMAGE,
    OF_GROWTH,
    OF_LATE_PARENTS,
    ContributionIndex,
    PreparationState,
)
from dpsql.engine.duckdb.engine import open_duckdb
from dpsql.errors.exceptions import Fault
from dpsql.frontends.cli.budget import erase
from dpsql.frontends.cli.owner import prepare
from dpsql.policy import load_policy

POLICY = """
dataset: growing
privacy_unit: {unit}
budget: {{epsilon: 10000, delta: 1e-6, accountant: zcdp}}
per_query: {{epsilon: 1, delta: 1e-9}}
ledger: sqlite:///growing-ledger.db
tables:
  patients:
    source: patients/*.{kind}
    append_only: true
    max_rows: 2
    primary_key: [patient_id]
    columns:
      patient_id: {{type: text}}
      region: {{type: text, domain: [north, south, east]}}
  visits:
    source: visits/*.{kind}
    append_only: true
    max_rows: {most}
    primary_key: [visit_id]
    foreign_keys: {{patient_id: patients.patient_id}}
    columns:
      visit_id: {{type: integer}}
      cost: {{type: real, lower: -50, upper: 50}}
      ward: {{type: text, domain: [a, b, c]}}
      day: {{type: date, lower: 2024-01-01, upper: 2024-01-10}}
  labs:
    source: labs/*.{kind}
    append_only: true
    max_rows: {most}
    foreign_keys: {{visit_id: visits.visit_id}}
    columns: {{value: {{type: integer, lower: 0, upper: 9}}}}
"""
BY_ROW = """
dataset: growing
privacy_unit: row
budget: {{epsilon: 10000, delta: 1e-6, accountant: zcdp}}
per_query: {{epsilon: 1, delta: 1e-9}}
ledger: sqlite:///growing-ledger.db
tables:
  visits:
    source: visits/*.{kind}
    append_only: true
    columns:
      cost: {{type: real, lower: -50, upper: 50}}
      ward: {{type: text, domain: [a, b, c]}}
"""
COLUMNS = {
    "patients": "patient_id, region",
    "visits": "patient_id, visit_id, cost, ward, day",
    "labs": "visit_id, value",
}
TYPES = {
    "patients": "patient_id::VARCHAR AS patient_id, region::VARCHAR AS region",
    "visits": "patient_id::VARCHAR AS patient_id, visit_id::INTEGER AS visit_id, cost::DOUBLE AS cost, ward::VARCHAR AS ward, day::DATE AS day",
    "labs": "visit_id::INTEGER AS visit_id, value::INTEGER AS value",
}
KEY = b"k" * 32


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_CACHE", str(tmp_path / "cache"))


def written_policy(folder: Path, kind: str = "parquet", most: int = 4, text: str = POLICY) -> Path:
    path = folder / "growing.yaml"
    path.write_text(text.format(kind=kind, most=most, unit="{table: patients, column: patient_id}"))
    return path


def add(folder: Path, table: str, values: list[str], name: str, kind: str = "parquet", types: str = "") -> Path:
    """Write one more file of a table."""
    file = folder / table / f"{name}.{kind}"
    file.parent.mkdir(exist_ok=True)
    listed = (
        f"(VALUES {', '.join(values)}) AS v({COLUMNS[table]})"
        if values
        else f"(SELECT {', '.join(['NULL'] * COLUMNS[table].count(',') + ['NULL'])} WHERE false) AS v({COLUMNS[table]})"
    )
    form = "FORMAT parquet" if kind == "parquet" else "FORMAT csv, HEADER"
    plain_duckdb().execute(f"COPY (SELECT {types or TYPES[table]} FROM {listed}) TO '{file}' ({form})")
    return file


def index(policy: Path) -> ContributionIndex:
    loaded = load_policy(policy)
    return ContributionIndex(loaded, open_duckdb(loaded), lambda: KEY)


def states(policy: Path) -> dict[str, PreparationState]:
    return {each.table: each for each in index(policy).prepare()}


def kept(cache: Path) -> dict[str, Counter[tuple[str, ...]]]:
    """Return the rows of the copies in a folder, regardless of unit numbers; check that units are numbered from 0 without
    gaps."""
    contents = {}
    for file in cache.glob("*/*.duckdb"):
        with duckdb.connect(str(file), read_only=True) as copy:
            columns = [row[0] for row in copy.execute("DESCRIBE bounded").fetchall()]
            table = next(
                name for name, own in (("patients", "region"), ("visits", "ward"), ("labs", "value")) if own in columns
            )
            units = '"#id"' in map(name_of, columns)
            shown = [
                '* EXCLUDE ("#id")' if units else "*",
                *(["signbit(cost) AND NOT isnan(cost)"] if "cost" in columns else []),
            ]
            rows = copy.execute(f"SELECT {', '.join(shown)} FROM bounded").fetchall()
            contents[table] = Counter(tuple(map(str, row)) for row in rows)
            assert copy.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(3,)]
            if units:
                numbers = 'count(DISTINCT "#unit"), count(DISTINCT ("#id", "#unit")), coalesce(max("#id") + 1, 0)'
                found = copy.execute(f'SELECT count(DISTINCT "#id"), {numbers} FROM bounded').fetchall()[0]
                assert set(found) == {copy.execute("SELECT units FROM about").fetchall()[0][0]}, (table, found)
    return contents


def name_of(column: str) -> str:
    return f'"{column}"'


def batches(seed: int, count: int) -> Iterator[dict[str, list[str]]]:
    """Yield the clinic's rows in loads: a patient comes before or with the visits, and a visit before or with its tests."""
    chance = random.Random(seed)
    found = rows(seed)
    first = {}
    for table in COLUMNS:
        for row in found[table]:
            cells = row.strip("()").split(", ")
            above = first.get(cells[0], 0) if table != "patients" else 0
            load = chance.randrange(above, count)
            if table == "patients":
                first[cells[0]] = load
            elif table == "visits":
                first[cells[1]] = load
            found.setdefault(f"{table} {load}", []).append(row)
    for load in range(count):
        yield {table: found.get(f"{table} {load}", []) for table in COLUMNS}


@pytest.mark.parametrize(
    ("kind", "most", "seed"), [("parquet", 1, 0), ("csv", 4, 1), ("parquet", 4, 2), ("parquet", 100, 3)]
)
def test_a_continued_copy_is_that_of_all_rows(
    tmp_path: Path, seed: int, most: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows, its integers, and one number for each unit are equal, whether new files sort before old ones or after them."""
    policy, chance = written_policy(tmp_path, kind, most), random.Random(seed)
    for number, load in enumerate(batches(seed, 4)):
        for table, values in load.items():
            add(tmp_path, table, values, f"{chance.choice('amz')} [{number}]*", kind)
        done = states(policy)
        assert {state.state for state in done.values()} == {"extended" if number else "written"}, done
    assert len(list((tmp_path / "cache").glob("*/*.duckdb"))) == 3, "copies of before are removed"
    continued = kept(tmp_path / "cache")
    monkeypatch.setenv("DPSQL_CACHE", str(tmp_path / "whole"))
    assert {state.state for state in states(policy).values()} == {"written"}
    assert continued == kept(tmp_path / "whole") and continued.keys() == COLUMNS.keys()
    of_people = sum(not row.startswith("(NULL") for row in rows(seed)["visits"])
    assert (sum(continued["visits"].values()) < of_people) == (most < 100), (
        "there is power only where rows are left out"
    )


def test_rows_that_are_somebody_else_are_added(tmp_path: Path) -> None:
    policy = written_policy(tmp_path, text=BY_ROW)
    for number, load in enumerate(batches(0, 2)):
        add(tmp_path, "visits", load["visits"], str(number))
        assert states(policy)["visits"].state == ("extended" if number else "written")
    (copy,) = kept(tmp_path / "cache").values()
    assert sum(copy.values()) == len(rows(0)["visits"]) and len(copy) > 3


def test_rows_of_old_files_are_not_read(tmp_path: Path) -> None:
    """The test removes the copied rows; they stay missing after the extension."""
    policy = written_policy(tmp_path, text=BY_ROW)
    add(tmp_path, "visits", ["('p1', 1, 1.5, 'a', DATE '2024-01-02')"], "old")
    states(policy)
    (file,) = (tmp_path / "cache").glob("*/*.duckdb")
    with duckdb.connect(str(file)) as copy:
        copy.execute("DELETE FROM bounded")
    add(tmp_path, "visits", ["('p2', 2, 2.5, 'b', DATE '2024-01-02')"], "new")
    assert states(policy)["visits"] == PreparationState("visits", "extended", "new files: 1")
    assert [row[:2] for row in kept(tmp_path / "cache")["visits"]] == [("2.5", "b")]


def test_the_rows_that_stay_are_those_of_every_version(tmp_path: Path) -> None:
    """For a person without new rows nothing changes, prepared or not; the choice among a person's rows is never drawn anew."""
    policy, before = written_policy(tmp_path, most=1), None
    open_clinic(policy).close()
    for number, load in enumerate(batches(5, 3)):
        for table, values in load.items():
            add(tmp_path, table, values, str(number))
        with open_clinic(policy) as session:
            unprepared = [exact(session, sql) for sql in QUESTIONS]
            assert all("OVER" in engine_sql(session, sql) for sql in QUESTIONS[:2])
            key = index_of(session).views()("visits").key
            assert {state.state for state in index_of(session).prepare()} == {"extended" if number else "written"}
            assert [exact(session, sql) for sql in QUESTIONS] == unprepared
            assert "OVER" not in engine_sql(session, QUESTIONS[0])
            assert before in (None, key), "the secret of the order is one for all versions"
            before = key


def test_a_copy_is_written_whole_each_time_its_files_have_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contribution_index, "LEAST_BYTES", 0)
    policy, found = written_policy(tmp_path, text=BY_ROW), []
    for number in range(1, 9):
        add(tmp_path, "visits", [f"('p{number}', {number}, {number}.5, 'a', DATE '2024-01-02')"], str(number))
        found.append(states(policy)["visits"])
    whole = [number for number, state in enumerate(found, start=1) if state.state == "written"]
    assert whole == [1, 2, 4, 8]
    assert {state.why for state in found[1:] if state.state == "written"} == {OF_GROWTH}
    assert sorted(row[0] for row in kept(tmp_path / "cache")["visits"]) == [f"{number}.5" for number in range(1, 9)]


# --- other changes of files ---------------------------------------------------------------------------------------------


def two_files(folder: Path) -> tuple[Path, Path, Path]:
    """Return a policy, and the two files of its only table, prepared."""
    policy = written_policy(folder, text=BY_ROW)
    first = add(folder, "visits", ["('p1', 1, 1.5, 'a', DATE '2024-01-02')"], "1")
    second = add(folder, "visits", ["('p2', 2, 2.5, 'b', DATE '2024-01-02')"], "2")
    assert states(policy)["visits"].state == "written"
    return policy, first, second


@pytest.mark.parametrize("change", ["rewritten", "touched", "gone", "replaced", "renamed"])
def test_a_file_that_changed_makes_the_copy_anew(tmp_path: Path, change: str) -> None:
    policy, first, _ = two_files(tmp_path)
    times = first.stat()
    if change == "rewritten":
        add(tmp_path, "visits", ["('p3', 3, 3.5, 'c', DATE '2024-01-02')"], "1")
        os.utime(first, ns=(times.st_atime_ns, times.st_mtime_ns))
    elif change == "touched":
        os.utime(first, ns=(1, 1))
    elif change == "gone":
        first.unlink()
    elif change == "replaced":
        other = add(tmp_path, "visits", ["('p3', 3, 3.5, 'c', DATE '2024-01-02')"], "3")
        os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
        other.rename(first)
    else:
        first.rename(first.with_name("0.parquet"))
    add(tmp_path, "visits", ["('p4', 4, 4.5, 'a', DATE '2024-01-02')"], "4")
    assert states(policy)["visits"] == PreparationState("visits", "written", OF_CHANGED_FILES)
    there = {"rewritten": {"3.5"}, "gone": set(), "replaced": {"3.5"}}.get(change, {"1.5"}) | {"2.5", "4.5"}
    assert {row[0] for row in kept(tmp_path / "cache")["visits"]} == there


def test_erased_rows_are_in_no_copy(tmp_path: Path) -> None:
    """The owner removes them from their file; the copy is not extended."""
    policy = written_policy(tmp_path, text=BY_ROW)
    add(tmp_path, "visits", ["('p1', 1, 1.5, 'a', DATE '2024-01-02')"], "1")
    add(tmp_path, "visits", ["('p2', 2, 2.5, 'b', DATE '2024-01-02')"], "2")
    open_clinic(policy).close()
    assert CliRunner().invoke(prepare, ["-p", str(policy)]).exit_code == 0
    assert {row[0] for row in kept(tmp_path / "cache")["visits"]} == {"1.5", "2.5"}
    add(tmp_path, "visits", [], "1")
    assert CliRunner().invoke(erase, ["copies", "-p", str(policy)]).exit_code == 0
    assert {row[0] for row in kept(tmp_path / "cache")["visits"]} == {"2.5"}


@pytest.mark.parametrize(
    "types",
    [
        "cost::INTEGER AS cost, ward::VARCHAR AS ward", "cost::FLOAT AS cost, ward::VARCHAR AS ward",
        "cost::VARCHAR AS cost, ward::BLOB AS ward", "TIME '12:00:00' AS cost, ward::VARCHAR AS ward",
    ],
)  # fmt: skip
def test_files_of_other_types_are_added(tmp_path: Path, types: str) -> None:
    """Each file is read in its own types, so what the copy holds is read as before; it is the copy of all rows."""
    policy, _, _ = two_files(tmp_path)
    add(tmp_path, "visits", ["('p4', 4, 4.5, 'a', DATE '2024-01-02')"], "4", types=types)
    assert states(policy)["visits"] == PreparationState("visits", "extended", "new files: 1")
    extended = kept(tmp_path / "cache")["visits"]
    for copy in (False, True):
        for file in (tmp_path / "cache").glob("*/*.duckdb"):
            file.unlink()
        assert {each.table: each.state for each in index(policy).prepare(copy=copy)}["visits"] == "written"
        assert kept(tmp_path / "cache")["visits"] == extended


def test_copies_with_and_without_the_declaration_leave_each_other_alone(tmp_path: Path) -> None:
    """Each copy holds the rows of its own order: neither is extended or removed by the other, whether of another policy or of a
    changed one."""
    policy, _, _ = two_files(tmp_path)
    other = policy.with_name("other.yaml")
    other.write_text(policy.read_text().replace("    append_only: true\n", ""))
    assert states(other)["visits"] == PreparationState("visits", "written")
    for each in (policy, other, policy):
        assert states(each)["visits"] == PreparationState("visits", "there already")
    add(tmp_path, "visits", ["('p4', 4, 4.5, 'a', DATE '2024-01-02')"], "4")
    assert states(other)["visits"] == PreparationState("visits", "written")
    assert states(policy)["visits"] == PreparationState("visits", "extended", "new files: 1")


@pytest.mark.parametrize("declared", ["", "    append_only: true\n"])
def test_a_column_that_is_read_from_another_place_makes_the_copy_anew(tmp_path: Path, declared: str) -> None:
    """Otherwise the copy would hold `max_rows` rows for each former unit: all rows of a person, if each row was a unit."""
    (tmp_path / "visits").mkdir()
    lines = "".join(f"v{number},p,{number}\n" for number in range(10))
    (tmp_path / "visits" / "1.csv").write_text(f"visit,person,cost\n{lines}")
    policy = tmp_path / "growing.yaml"
    for number, unit in enumerate(("visit", "person"), 2):
        columns = f"person: {{type: text, from: {unit}}}, cost: {{type: integer, lower: 0, upper: 9}}"
        policy.write_text(
            f"dataset: growing\nprivacy_unit: {{table: visits, column: person}}\nbudget: {{epsilon: 1, delta: 1e-6}}\n"
            f"ledger: sqlite:///growing-ledger.db\ntables:\n  visits:\n    source: visits/*.csv\n    max_rows: 1\n{declared}"
            f"    columns: {{{columns}}}\n"
        )
        assert states(policy)["visits"] == PreparationState("visits", "written")
        with open_clinic(policy) as session:
            assert index_of(session).unprepared() == ("visits",), "under another key"
        (tmp_path / "visits" / f"{number}.csv").write_text(f"visit,person,cost\nw{number},p,1\n")
    copied = [
        duckdb.connect(str(file), read_only=True)
        .execute('SELECT count(*), count(DISTINCT "#unit") FROM bounded')
        .fetchall()
        for file in (tmp_path / "cache").glob("*/*.duckdb")
    ]
    assert sorted(copied) == [[(1, 1)], [(10, 10)]]


def test_a_copy_under_another_name_is_not_continued(tmp_path: Path) -> None:
    """A copy's name is an HMAC of everything that it depends on: without the key nobody can forge one."""
    policy, _, _ = two_files(tmp_path)
    (file,) = (tmp_path / "cache").glob("*/*.duckdb")
    file.rename(file.with_name(f"{file.stem[:-1]}{'0' if file.stem[-1] != '0' else '1'}.duckdb"))
    add(tmp_path, "visits", ["('p4', 4, 4.5, 'a', DATE '2024-01-02')"], "4")
    assert states(policy)["visits"] == PreparationState("visits", "written")


@pytest.mark.parametrize(
    "record",
    ["", "SELECT '[1]' AS text, true AS complete", "SELECT 'no JSON' AS text, 1 AS complete", "SELECT 7 AS other"],
)
def test_a_copy_whose_record_is_not_ours_is_not_continued(tmp_path: Path, record: str) -> None:
    policy, _, _ = two_files(tmp_path)
    (file,) = (tmp_path / "cache").glob("*/*.duckdb")
    with duckdb.connect(str(file)) as copy:
        copy.execute("DELETE FROM made_of" if not record else f"CREATE OR REPLACE TABLE made_of AS {record}")
    add(tmp_path, "visits", ["('p4', 4, 4.5, 'a', DATE '2024-01-02')"], "4")
    assert states(policy)["visits"] == PreparationState("visits", "written")


def test_a_damaged_copy_is_made_anew(tmp_path: Path) -> None:
    policy, _, _ = two_files(tmp_path)
    (file,) = (tmp_path / "cache").glob("*/*.duckdb")
    with duckdb.connect(str(file)) as copy:
        copy.execute("ALTER TABLE bounded RENAME TO other")
    add(tmp_path, "visits", ["('p4', 4, 4.5, 'a', DATE '2024-01-02')"], "4")
    assert states(policy)["visits"] == PreparationState("visits", "written", OF_DAMAGE)
    assert len(kept(tmp_path / "cache")["visits"]) == 3


def test_a_row_whose_parent_comes_later_is_found(tmp_path: Path) -> None:
    """The row belonged to no one when the copy was made, so a copy without it is not extended once new parents arrive."""
    policy = written_policy(tmp_path, most=9)
    add(tmp_path, "patients", ["('p1', 'north')"], "1")
    add(tmp_path, "visits", ["('p1', 1, 1.5, 'a', DATE '2024-01-02')"], "1")
    add(tmp_path, "labs", ["(1, 5)", "(2, 6)"], "1")
    states(policy)
    add(tmp_path, "labs", ["(1, 7)", "(NULL, 7)"], "2")
    assert states(policy)["labs"] == PreparationState("labs", "extended", "new files: 1"), (
        "the parents are those of before"
    )
    add(tmp_path, "visits", ["('p1', 2, 1.5, 'a', DATE '2024-01-02')"], "2")
    done = states(policy)
    assert (done["visits"].state, done["labs"]) == ("extended", PreparationState("labs", "written", OF_LATE_PARENTS))
    assert sorted(row[0] for row in kept(tmp_path / "cache")["labs"]) == ["5", "6", "7"]


# --- interruption, the command, the policy -----------------------------------------------------------------------------

_PREPARE = """
import sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from unit.engine.test_appended_files import index
import dpsql.engine.contribution_index as module
whole = module._appear
def appear(part, name):
    print("here", flush=True); time.sleep(3600)
def told(table, what, share):
    if f"{what} {share}" == sys.argv[3]:
        appear(None, None)
if sys.argv[3] == "rename":
    module._appear = appear
if sys.argv[4]:
    module.TableFiles._bytes = lambda files: 2**40  # as if they had grown
index(Path(sys.argv[1])).prepare(progress=told)
"""


@pytest.mark.parametrize("grown", ["", "grown"])
@pytest.mark.parametrize("stop", ["counting 1.0", "writing 1.0", "rename"])
def test_killed_at_any_step_the_copy_of_before_stands(tmp_path: Path, stop: str, grown: str) -> None:
    policy = written_policy(tmp_path, most=1)
    for number, load in enumerate(batches(0, 2)):
        for table, values in load.items():
            add(tmp_path, table, values, str(number))
        if not number:
            states(policy)
    before = {file: file.read_bytes() for file in (tmp_path / "cache").glob("*/*.duckdb")}
    with Forked(["-c", _PREPARE, str(policy), str(TESTS), stop, grown], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == "here\n"
        os.kill(child.pid, signal.SIGKILL)
    assert {file: file.read_bytes() for file in (tmp_path / "cache").glob("*/*.duckdb")} == before
    assert {state.state for state in states(policy).values()} == {"extended"}
    assert not list((tmp_path / "cache").glob("*/*.part*")) and len(kept(tmp_path / "cache")) == 3


def test_a_change_during_the_work_is_a_fault(tmp_path: Path) -> None:
    policy, _, _ = two_files(tmp_path)
    add(tmp_path, "visits", ["('p4', 4, 4.5, 'a', DATE '2024-01-02')"], "4")

    def change(table: str, what: str, share: float) -> None:
        if (what, share) == ("writing", 1.0):
            add(tmp_path, "visits", ["('p5', 5, 5.5, 'a', DATE '2024-01-02')"], "5")

    with pytest.raises(Fault, match="changed while"):
        index(policy).prepare(progress=change)
    assert states(policy)["visits"] == PreparationState("visits", "extended", "new files: 2")
