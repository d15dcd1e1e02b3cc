"""The contribution index changes no answer, is never stale, and is whole or absent."""

import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from support.places import TESTS
from support.visits_clinic import QUESTIONS, clinic, engine_sql, exact, fill, index_of, open_clinic, rows

from dpsql.engine.contribution_index import SHOWN_KEY, ContributionIndex
from dpsql.engine.query import EngineQuery
from dpsql.errors.exceptions import Fault
from dpsql.session.session import Session

VISITS = "SELECT ward, count(*) AS n FROM visits GROUP BY ward"


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DPSQL_CACHE", raising=False)


def states(session: object, **options: bool) -> dict[str, str]:
    return {one.table: one.state for one in index_of(session).prepare(**options)}  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [1, 4, 100])
@pytest.mark.parametrize("seed", range(3))
def test_preparing_changes_no_answer(tmp_path: Path, seed: int, most: int) -> None:
    found = rows(seed)
    if most == 100:
        found["visits"].pop()  # it has no patient; now every visit stays
    own = "in place" if most == 100 else "written"
    fill(tmp_path / "clinic.duckdb", found)
    with open_clinic(clinic(tmp_path, most)) as session:
        before = everything(session)
        assert states(session) == {"patients": "in place", "visits": own, "labs": "written"}
        assert everything(session) == before
        copied = "there already" if most == 1 else "written"
        assert states(session, copy=True)["patients"] in ("written", copied)
        assert everything(session) == before


def everything(session: Session) -> list[object]:
    """Return the exact numbers of all queries, unclipped and clipped."""
    found: list[object] = [exact(session, sql) for sql in QUESTIONS]
    options = session.options
    for mechanism in ("laplace", "gaussian"):
        for name, value in (("max_total", "40"), ("max_count", "2"), ("mechanism", mechanism)):
            session.set_option(name, value)
        found += [exact(session, sql) for sql in QUESTIONS]
    session.options = options
    return found


def test_sums_between_the_policys_bounds_read_integers_of_the_copy(tmp_path: Path) -> None:
    """The test above has power over the stored integers only if queries read them, which they do where permitted."""
    fill(tmp_path / "clinic.duckdb", rows(0))
    with open_clinic(clinic(tmp_path)) as session:
        states(session, copy=True)
        kept = {
            "SELECT sum(cost) AS s FROM visits": "#0.cost",
            "SELECT avg(cost) AS s FROM visits WHERE ward = 'a'": "#2.cost",
            "SELECT sum(value) AS s FROM labs": "#0.value",
            "SELECT avg(value) AS s FROM labs": "#0.value",
            "SELECT sum(clamp(cost, -50, 49)) AS s FROM visits": None,
            "SELECT sum(cost + 1) AS s FROM visits": None,
            "SELECT ward, sum(cost) AS s FROM visits GROUP BY ward": "#0.cost",
        }
        for sql, column in kept.items():
            text = engine_sql(session, sql)
            assert ("CASE WHEN" not in text and f'"{column}"' in text) if column else '.cost"' not in text, sql
        session.execute("SET dp.max_groups = 1")
        assert '"#0.cost"' not in engine_sql(session, "SELECT ward, sum(cost) AS s FROM visits GROUP BY ward")


@pytest.mark.parametrize("seed", range(2))
def test_rows_that_are_somebody_else_are_copied(tmp_path: Path, seed: int) -> None:
    fill(tmp_path / "clinic.duckdb", rows(seed))
    policy = clinic(tmp_path)
    text = policy.read_text().replace("privacy_unit: {table: patients, column: patient_id}", "privacy_unit: row")
    text = text[: text.index("  labs:")].replace("    foreign_keys: {patient_id: patients.patient_id}\n", "")
    policy.write_text(re.sub(r"    max_rows: .*\n", "", text))
    questions = [sql for sql in QUESTIONS if "patient_id" not in sql]
    assert len(questions) >= 4
    with open_clinic(policy) as session:
        before = [exact(session, sql) for sql in questions]
        plain = engine_sql(session, VISITS)
        assert not any("prepared" in note for note in session.explain(VISITS).notes)
        assert states(session) == {"patients": "written", "visits": "written"}
        assert [exact(session, sql) for sql in questions] == before
        assert engine_sql(session, VISITS) != plain and '"#2.cost"' in engine_sql(session, questions[0])
        assert session.explain(VISITS).notes[-1:] == ("rows: visits prepared",)
        assert states(session) == {"patients": "there already", "visits": "there already"}


def test_rows_really_are_dropped(tmp_path: Path) -> None:
    """The test above has power only if the bounded view is smaller than the table."""
    fill(tmp_path / "clinic.duckdb", rows(0))
    with open_clinic(clinic(tmp_path, 4)) as session:
        assert states(session)["visits"] == "written"
        counted = exact(session, "SELECT count(*) AS n FROM visits")[0][0][0]
        with duckdb.connect(str(tmp_path / "clinic.duckdb"), read_only=True) as connection:
            owned = "SELECT count(*) AS n FROM visits WHERE patient_id IS NOT NULL GROUP BY patient_id"
            bounded, every = connection.execute(f"SELECT sum(least(n, 4)), sum(n) FROM ({owned})").fetchall()[0]
        assert int(counted) == bounded < every


def test_prepared_text_has_no_window_and_does_not_tell_copy_from_source(tmp_path: Path) -> None:
    texts = []
    found = rows(1)
    found["visits"].pop()
    fill(tmp_path / "clinic.duckdb", found)
    for name, most in (("few", 4), ("all", 100)):
        with open_clinic(clinic(tmp_path, most, name)) as session:
            plain = [engine_sql(session, sql) for sql in QUESTIONS]
            assert all("OVER" in text for text in plain) and all(SHOWN_KEY in text for text in plain)
            assert "visits not prepared" in session.explain(VISITS).notes[-1]
            assert states(session)["visits"] == ("written" if most == 4 else "in place")
            texts.append([engine_sql(session, sql) for sql in QUESTIONS])
            assert session.explain(VISITS).notes[-1:] == ("bounded view: visits prepared",)
    assert not any("OVER" in text for text in texts[0])
    of_max_rows = re.compile(r'CASE( WHEN count\(\*\) <= \d+ THEN \d+)+ ELSE 0 END AS "#weight"')
    weighted = [bool(of_max_rows.search(text)) for text in texts[0]]
    assert any(weighted) and not all(weighted)
    few, every = ([re.sub(r' [0-9a-f]{12}"', '"', of_max_rows.sub("", text)) for text in each] for each in texts)
    assert few == every  # except for the views' names, which differ like the policies


def test_no_unit_is_kept_that_belongs_to_nobody_and_no_number_repeats(tmp_path: Path) -> None:
    fill(tmp_path / "clinic.duckdb", rows(2))
    with open_clinic(clinic(tmp_path)) as session:
        index_of(session).prepare(copy=True)
        view = index_of(session).views()("visits")
        cursor = session.context.engine._connection.cursor()  # type: ignore[attr-defined]
        numbers, units, pairs, nobody = cursor.execute(
            'SELECT count(DISTINCT "#id"), count(DISTINCT "#unit"), count(DISTINCT ("#id", "#unit")), '
            f'count(*) FILTER (WHERE "#unit" IS NULL) FROM {view.sql}'
        ).fetchall()[0]
        assert numbers == units == pairs > 1 and nobody == 0


# --- staleness --------------------------------------------------------------------------------------------------------


def test_an_index_of_other_rows_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "clinic.duckdb"
    fill(file, rows(0))
    policy = clinic(tmp_path, 100)
    with open_clinic(policy) as session:
        index_of(session).prepare()
    with duckdb.connect(str(file)) as connection:
        connection.execute("INSERT INTO visits SELECT 'p1', 5000 + i, 1.0, 'a', DATE '2024-01-02' FROM range(300) t(i)")
    with open_clinic(policy) as session:
        assert "OVER" in engine_sql(session, VISITS)
        kept = {ward: int(n) for ward, n in exact(session, VISITS)[0]}
        assert 100 <= kept["a"] < 300, "100 of the 300 new rows, and those of others"
        assert states(session)["visits"] == "written"
        assert "OVER" not in engine_sql(session, VISITS)
        assert len(list((tmp_path / "clinic.duckdb.bounded").glob("*/*.duckdb"))) == 2, "the old ones are removed"


def test_a_file_that_was_put_in_place_of_the_open_one_is_noticed(tmp_path: Path) -> None:
    """Size and time of change are equal, and the session that opened the old file continues with the new one."""
    file, policy = tmp_path / "clinic.duckdb", clinic(tmp_path, 100)
    fill(file, rows(0))
    with open_clinic(policy) as old:
        states(old)
        before = exact(old, VISITS)
        swap(file, rows(1))
        with open_clinic(policy) as new:
            assert "OVER" in engine_sql(old, VISITS), "the mark of the old rows does not hold for the new ones"
            assert exact(old, VISITS) == exact(new, VISITS) != before
            states(new)
            assert "OVER" not in engine_sql(old, VISITS)


def test_rows_of_the_same_size_and_time_are_other_rows(tmp_path: Path) -> None:
    file, policy = tmp_path / "clinic.duckdb", clinic(tmp_path, 4)
    fill(file, rows(0))
    with open_clinic(policy) as session:
        states(session)
        version = session.context.engine.data_version(("visits",))
    swap(file, rows(1))
    with open_clinic(policy) as session:
        assert session.context.engine.data_version(("visits",)) == version
        assert "OVER" in engine_sql(session, VISITS)


def swap(file: Path, tables: dict[str, list[str]]) -> None:
    """Put other rows into a file with the same name, size and time of change."""
    before = file.stat()
    fill(file.with_name("other.duckdb"), tables)
    os.utime(file.with_name("other.duckdb"), ns=(before.st_atime_ns, before.st_mtime_ns))
    file.with_name("other.duckdb").rename(file)
    assert file.stat().st_size == before.st_size


@pytest.mark.parametrize(
    "change", ["max_rows: 5", "ward: {type: text}", "cost: {type: text}", "cost: {type: real, lower: -40, upper: 40}"]
)
def test_an_index_of_another_policy_is_not_used(tmp_path: Path, change: str) -> None:
    fill(tmp_path / "clinic.duckdb", rows(0))
    policy = clinic(tmp_path, 4)
    with open_clinic(policy) as session:
        index_of(session).prepare()
        token = {file.name for file in (tmp_path / "clinic.duckdb.bounded").glob("*/*.duckdb")}
    name, _, _ = change.partition(":")
    policy.write_text(re.sub(rf"(?m)^( +){name}:.*$", rf"\1{change}", policy.read_text()))
    with open_clinic(policy) as session:
        used = index_of(session).views()("visits").prepared
        assert used == (name == "ward"), "a domain is no part of the view"
        assert token


def test_policies_of_one_ledger_leave_each_other_s_copies(tmp_path: Path) -> None:
    """Otherwise two servers that prepare one source automatically would write copies forever, each replacing the other's."""
    file = tmp_path / "clinic.duckdb"
    fill(file, rows(0))
    with open_clinic(clinic(tmp_path)) as session:
        policy, key = session.policy, session.ledger.witness.key
        tables = {
            name: replace(table, bounds=replace(table.bounds, max_rows=3)) for name, table in policy.tables.items()
        }
        narrow = ContributionIndex(replace(policy, tables=tables), session.context.engine, lambda: key)
        index = index_of(session)
        assert {state.state for state in (*index.prepare(copy=True), *narrow.prepare(copy=True))} == {"written"}
        assert {state.state for state in (*index.prepare(copy=True), *narrow.prepare(copy=True))} == {"there already"}
        assert index.copies_of_other_policies() == narrow.copies_of_other_policies() == 3
    fill(file, rows(1))
    with open_clinic(clinic(tmp_path)) as session:
        index = index_of(session)
        assert index.copies_of_other_policies() == 3 and {state.state for state in index.prepare(copy=True)} == {
            "written"
        }
        assert len(list((tmp_path / "clinic.duckdb.bounded").glob("*/*.duckdb"))) == 6, "the earlier ones are removed"
        index.remove_outdated()
        assert index.copies_of_other_policies() == 0 and index.unprepared() == ()


def test_a_copy_and_a_mark_of_an_earlier_version_are_both_removed(tmp_path: Path) -> None:
    """Their names differ only in the ending."""
    file = tmp_path / "clinic.duckdb"
    fill(file, rows(0))
    with open_clinic(clinic(tmp_path)) as session:
        index_of(session).prepare()
        index_of(session).prepare(copy=True)
    fill(file, rows(1))
    with open_clinic(clinic(tmp_path)) as session:
        index_of(session).prepare(copy=True)
    assert len(list((tmp_path / "clinic.duckdb.bounded").glob("*/*.*"))) == 3


def test_a_source_that_changes_while_it_is_its_own_view_gives_no_answer(tmp_path: Path) -> None:
    """Parquet files are not locked, so their identity is checked again after the query."""
    from dpsql.engine.emit.emitter import Emitter

    with open_parquet(tmp_path, 100) as session:
        assert states(session)["visits"] == "in place"
        planned = session.plan(session.planner.parse(VISITS, None))
        emitter = Emitter(
            session.policy, session.context.engine.dialect, session.context.engine.source, index_of(session).views()
        )
        query = emitter.block(planned.price.blocks[0].block)
        assert query.unchanged and "OVER" not in query.sql
        session.context.engine.run(query)
        write_parquet(tmp_path, rows(0)["visits"] * 2)
        with pytest.raises(Fault, match="could not be run"):
            session.context.engine.run(query)
        session.context.engine.run(EngineQuery(query.sql, query.keys, query.terms))
        assert "OVER" in engine_sql(session, VISITS), "the next question sees that the mark is stale"


def write_parquet(folder: Path, visits: list[str]) -> None:
    with duckdb.connect() as connection:
        listed = f"SELECT * FROM (VALUES {', '.join(visits)}) AS v(patient_id, visit_id, cost, ward, day)"
        connection.execute(f"COPY ({listed}) TO '{folder / 'v.parquet'}' (FORMAT parquet)")


def open_parquet(folder: Path, most: int) -> object:
    write_parquet(folder, rows(0)["visits"][:-1])
    policy = clinic(folder, most, source="v.parquet")
    text = policy.read_text()
    own = text[text.index("  visits:") : text.index("  labs:")]
    own = own.replace("    foreign_keys: {patient_id: patients.patient_id}\n", "")
    own = own.replace("    columns:\n", "    columns:\n      patient_id: {type: text}\n")
    text = text[: text.index("  patients:")].replace("table: patients", "table: visits") + own
    policy.write_text(text)
    return open_clinic(policy)


def test_a_damaged_index_is_not_used(tmp_path: Path) -> None:
    fill(tmp_path / "clinic.duckdb", rows(0))
    policy = clinic(tmp_path)
    with open_clinic(policy) as session:
        before = exact(session, VISITS)
        states(session)
    for file in (tmp_path / "clinic.duckdb.bounded").glob("*/*.duckdb"):
        file.write_bytes(b"no database" * 500)
    with open_clinic(policy) as session:
        assert exact(session, VISITS) == before and "OVER" in engine_sql(session, VISITS)


# --- kill -9, two at once ---------------------------------------------------------------------------------------------

_PREPARE = """
import sys, os, time
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from support.visits_clinic import open_clinic, index_of
import dpsql.engine.contribution_index as module
stop = sys.argv[2]
def told(table, what, share):
    if table == "visits" and f"{what} {share}" == stop:
        print("here", flush=True); time.sleep(60)
if stop == "rename":
    whole = module._appear
    def appear(part, name):
        if name.suffix == ".duckdb":
            print("here", flush=True); time.sleep(60)
        whole(part, name)
    module._appear = appear
with open_clinic(Path(sys.argv[1])) as session:
    print([one.state for one in index_of(session).prepare(progress=told)], flush=True)
"""


def start(policy: Path, stop: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", _PREPARE, str(policy), stop, str(TESTS)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("stop", ["counting 0.0", "writing 0.0", "writing 1.0", "rename"])
def test_killed_at_any_step_there_is_a_whole_index_or_none(tmp_path: Path, stop: str) -> None:
    fill(tmp_path / "clinic.duckdb", rows(0))
    policy = clinic(tmp_path)
    with open_clinic(policy) as session:
        before = exact(session, VISITS)
        child = start(policy, stop)
        assert child.stdout is not None and child.stdout.readline() == "here\n"
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert not index_of(session).views()("visits").prepared
        assert exact(session, VISITS) == before
        assert states(session) == {"patients": "there already", "visits": "written", "labs": "written"}
        assert not list((tmp_path / "clinic.duckdb.bounded").glob("*/*.part*"))
        assert exact(session, VISITS) == before and "OVER" not in engine_sql(session, VISITS)


def test_two_at_once_do_the_work_once(tmp_path: Path) -> None:
    fill(tmp_path / "clinic.duckdb", rows(0))
    policy = clinic(tmp_path)
    open_clinic(policy).close()
    children = [start(policy, "never") for _ in range(2)]
    told = sorted(child.communicate(timeout=60)[0] for child in children)
    assert told == ["['in place', 'written', 'written']\n", "['there already', 'there already', 'there already']\n"]


def test_a_change_during_the_work_is_a_fault(tmp_path: Path) -> None:
    with open_parquet(tmp_path, 4) as session:

        def change(table: str, what: str, share: float) -> None:
            if (what, share) == ("writing", 1.0):
                write_parquet(tmp_path, rows(1)["visits"])

        with pytest.raises(Fault, match="changed while"):
            index_of(session).prepare(progress=change)
        assert not index_of(session).views()("visits").prepared


def test_questions_go_on_while_it_works(tmp_path: Path) -> None:
    fill(tmp_path / "clinic.duckdb", rows(0))
    with open_clinic(clinic(tmp_path)) as session:
        before = [exact(session, sql) for sql in QUESTIONS[:4]]
        worker = threading.Thread(target=index_of(session).prepare)
        worker.start()
        for _ in range(5):
            assert [exact(session, sql) for sql in QUESTIONS[:4]] == before
        worker.join()
        assert [exact(session, sql) for sql in QUESTIONS[:4]] == before


def test_the_files_are_the_owners_alone(tmp_path: Path) -> None:
    fill(tmp_path / "clinic.duckdb", rows(0))
    with open_clinic(clinic(tmp_path)) as session:
        states(session)
    (folder,) = (tmp_path / "clinic.duckdb.bounded").iterdir()
    assert all(place.stat().st_mode & 0o077 == 0 for place in (folder, *folder.iterdir()) if place.suffix != "")
    assert folder.stat().st_mode & 0o077 == 0
