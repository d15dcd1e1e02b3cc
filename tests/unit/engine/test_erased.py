"""After a person was erased from the source no prepared copy contains them, and the owner is told what remains."""

from pathlib import Path

import duckdb
import pytest
from support.visits_clinic import clinic, fill, index_of, open_clinic, rows

from dpsql.frontends.cli import status_of

PERSON = "somebody in particular"
QUESTION = "SELECT ward, count(*) AS n FROM visits GROUP BY ward"


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DPSQL_CACHE", raising=False)


def copies(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.duckdb") if path.parent != folder)


def has_person(file: Path) -> bool:
    """Return whether a value in any table of a DuckDB file is the person's key."""
    with duckdb.connect(str(file), read_only=True) as connection:
        tables = [row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return any(
            PERSON in map(str, row) for table in tables for row in connection.execute(f'FROM "{table}"').fetchall()
        )


def test_no_copy_of_any_folder_has_a_person_who_was_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = rows(1)
    patients, visits = (
        [f"('{PERSON}', 'north')"],
        [f"('{PERSON}', {10_000 + n}, 1.5, 'a', DATE '2024-01-03')" for n in range(9)],
    )
    fill(
        tmp_path / "clinic.duckdb",
        {**before, "patients": before["patients"] + patients, "visits": before["visits"] + visits},
    )
    policy = clinic(tmp_path)
    with open_clinic(policy) as session:
        session.execute("SET dp.reuse = on")
        session.execute(QUESTION)
        index = index_of(session)
        index.prepare(copy=True)
        beside = copies(tmp_path / "clinic.duckdb.bounded")
        monkeypatch.setattr(index, "_folders", lambda: [tmp_path / "cache" / "dpsql" / beside[0].parent.name])
        index.prepare(copy=True)
    old = [*beside, *copies(tmp_path / "cache")]
    assert len(old) > len(beside) > 0 and any(map(has_person, beside)) and any(map(has_person, old[len(beside) :]))
    fill(tmp_path / "clinic.duckdb", before)
    unfinished = [beside[0].parent / f"x.part0123{log}" for log in ("", ".wal")]
    for file in unfinished:
        file.write_text(PERSON)
    assert (
        status_of(["erase", "copies", "--dry-run", "-p", str(policy)]) == status_of(["erase", "-p", str(policy)]) == 0
    )
    assert all(file.exists() for file in [*old, *unfinished]), "nothing is removed"
    capsys.readouterr()
    assert status_of(["erase", "copies", "-p", str(policy)]) == 0
    told = capsys.readouterr().out
    assert f"copies: {len(old)} prepared" in told and "charges: 1 in" in told and "free blocks" in told
    assert not any(file.exists() for file in [*old, *unfinished])
    new = [*copies(tmp_path / "clinic.duckdb.bounded"), *copies(tmp_path / "cache")]
    assert new and not any(map(has_person, new))
    with open_clinic(policy) as session:
        assert any("visits prepared" in note for note in session.explain(QUESTION).notes)
    unfinished[1].write_text(PERSON)
    assert status_of(["erase", "copies", "-p", str(policy)]) == 0
    assert capsys.readouterr().out.startswith("copies: 0 prepared") and copies(tmp_path / "clinic.duckdb.bounded")
    assert not unfinished[1].exists(), "the log of a preparation that was killed"


def test_prepare_says_what_it_leaves_and_who_removes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(tmp_path / "clinic.duckdb", rows(2))
    policy = clinic(tmp_path)
    with open_clinic(policy) as session:
        index_of(session).prepare(copy=True)
    clinic(tmp_path, most=3)
    assert status_of(["prepare", "-p", str(policy), "--copy"]) == 0
    assert (
        "2 other prepared copies of this data set stay" in (said := capsys.readouterr().err)
        and "dpsql erase copies" in said
    )
    assert status_of(["erase", "copies", "-p", str(policy)]) == 0
    assert capsys.readouterr().out.startswith("copies: 2 prepared")
    assert status_of(["prepare", "-p", str(policy)]) == 0
    assert "other prepared copies" not in capsys.readouterr().err


def test_what_others_prepared_from_the_present_rows_stays(tmp_path: Path) -> None:
    fill(tmp_path / "clinic.duckdb", rows(2))
    policy = clinic(tmp_path)
    with open_clinic(policy) as session:
        index_of(session).prepare(copy=True)
    present = copies(tmp_path / "clinic.duckdb.bounded")
    stamps = [file.stat().st_mtime_ns for file in present]
    assert status_of(["erase", "copies", "-p", str(policy)]) == 0
    assert [file.stat().st_mtime_ns for file in present] == stamps
