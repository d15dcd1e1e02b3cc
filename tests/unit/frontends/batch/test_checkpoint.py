"""The record of a run: a statement has the same request id in every process, and only complete results count as done."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpsql.errors.exceptions import Error
from dpsql.frontends.batch.checkpoint import RunRecord, note_name

FACTS = {"sql": "SELECT 1", "options": {"dp.epsilon": "0.1"}, "analyst": None}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new" / "out"


@pytest.fixture
def record(folder: Path) -> Iterator[RunRecord]:
    opened = RunRecord(folder, "clinic", create=True)
    yield opened
    opened.close()


def writer(content: bytes) -> Callable[[Path], object]:
    return lambda part: part.write_bytes(content)


def slug_of(folder: Path, dataset: str = "clinic", create: bool = False) -> str:
    with pytest.raises(Error) as caught:
        RunRecord(folder, dataset, create=create)
    return caught.value.slug


# --- request ids ------------------------------------------------------------------------------------------------------


def test_a_run_has_an_id_of_its_own_that_another_process_reads(record: RunRecord, folder: Path) -> None:
    facts = json.loads((folder / "run.json").read_text())
    assert re.fullmatch("[0-9a-f]{32}", facts.pop("run")) and facts == {"dataset": "clinic", "attempts": {}}
    request = record.request(FACTS)
    assert re.fullmatch("[0-9a-f]{32}", request)
    record.close()
    for create in (False, True):
        again = RunRecord(folder, "clinic", create=create)
        assert again.request(FACTS) == again.request(dict(reversed(FACTS.items()))) == request
        again.close()


def test_other_statements_and_other_runs_have_other_requests(record: RunRecord, tmp_path: Path) -> None:
    other = RunRecord(tmp_path / "other", "clinic", create=True)
    variants: list[dict[str, Any]] = [
        {**FACTS, "sql": "SELECT 2"},
        {**FACTS, "analyst": "ann"},
        {**FACTS, "options": {}},
        {},
    ]
    requests = [record.request(facts) for facts in [FACTS, *variants]]
    assert len({*requests, other.request(FACTS)}) == 6
    other.close()


def test_each_attempt_at_a_lost_answer_has_a_request_of_its_own(record: RunRecord, folder: Path) -> None:
    second_facts = {**FACTS, "sql": "SELECT 2"}
    first, untouched = record.request(FACTS), record.request(second_facts)
    second = record.ask_anew(FACTS)
    third = record.ask_anew(FACTS)
    assert len({first, second, third}) == 3
    assert (record.request(FACTS), record.request(second_facts)) == (third, untouched)
    assert RunRecord(folder, "clinic", create=False).request(FACTS) == first, "until it is saved"
    record.save()
    assert RunRecord(folder, "clinic", create=False).request(FACTS) == third
    assert [*json.loads((folder / "run.json").read_text())["attempts"].values()] == [2]


def test_reading_creates_nothing(folder: Path) -> None:
    first, second = (RunRecord(folder, "clinic", create=False) for _ in range(2))
    assert not folder.parent.exists() and first.request(FACTS) != second.request(FACTS)
    first.close()


# --- one run in a folder ----------------------------------------------------------------------------------------------


def test_a_folder_is_one_runs_until_it_is_closed(record: RunRecord, folder: Path) -> None:
    before = (folder / "run.json").read_bytes()
    assert slug_of(folder, create=True) == "batch_running"
    assert RunRecord(folder, "clinic", create=False).folder == folder, "it may be read"
    record.close()
    record.close()
    following = RunRecord(folder, "clinic", create=True)
    assert slug_of(folder, create=True) == "batch_running"
    following.close()
    assert (folder / "run.json").read_bytes() == before


@pytest.mark.parametrize(
    "text",
    ["", "no json", "[]", "7", "{}", '{"run": "x", "dataset": "clinic"}', '{"run": 7, "dataset": "clinic", "attempts": {}}',
     '{"run": "x", "dataset": "clinic", "attempts": []}', '{"run": "x", "dataset": "other", "attempts": {}}',
     '{"run": "x", "attempts": {}}'],
)  # fmt: skip
@pytest.mark.parametrize("create", [False, True])
def test_what_is_no_record_of_this_data_set_is_refused_and_stays(tmp_path: Path, text: str, create: bool) -> None:
    (tmp_path / "run.json").write_text(text)
    assert slug_of(tmp_path, create=create) == "batch_record"
    assert (tmp_path / "run.json").read_text() == text


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "out"):
        with pytest.raises(Error) as caught:
            RunRecord(place, "clinic", create=True)
        assert caught.value.slug == "file_write" and str(place) in caught.value.message
        RunRecord(place, "clinic", create=False).close()


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "note"),
    [("a.csv", "a.meta.json"), ("report-01.parquet", "report-01.meta.json"), ("a.b.csv", "a.b.meta.json")],
)
def test_a_note_is_named_after_its_result(name: str, note: str) -> None:
    assert note_name(name) == note


def test_a_result_and_its_note_are_stored(record: RunRecord, folder: Path) -> None:
    record.keep("a.csv", writer(b"n\n1\n"), {"request": "r1", "rows": 1, "text": "é"})
    assert (folder / "a.csv").read_bytes() == b"n\n1\n"
    digest = hashlib.sha256(b"n\n1\n").hexdigest()
    expected = {"request": "r1", "rows": 1, "text": "é", "result": "a.csv", "sha256": digest}
    assert json.loads((folder / "a.meta.json").read_text(encoding="utf-8")) == expected == record.note("a.csv")
    assert "é" in (folder / "a.meta.json").read_text(encoding="utf-8")
    assert sorted(path.name for path in folder.iterdir()) == [".run.lock", "a.csv", "a.meta.json", "run.json"]


def test_a_result_is_done_for_its_request_alone(record: RunRecord) -> None:
    record.keep("plain.csv", writer(b"1"), {"request": "r1", "rows": 1})
    record.keep("bars.csv", writer(b"1"), {"request": "r1", "rows": 1, "bars": True})
    assert record.is_done("plain.csv", "r1", bars=False) and record.is_done("bars.csv", "r1", bars=True)
    assert not record.is_done("plain.csv", "r1", bars=True) and not record.is_done("bars.csv", "r1", bars=False)
    assert not record.is_done("plain.csv", "r2", bars=False) and not record.is_done("absent.csv", "r1", bars=False)


def test_a_result_that_is_gone_or_changed_is_not_done(record: RunRecord, folder: Path) -> None:
    record.keep("a.csv", writer(b"1"), {"request": "r1", "rows": 1})
    (folder / "a.csv").write_bytes(b"2")
    assert not record.is_done("a.csv", "r1", bars=False)
    (folder / "a.csv").unlink()
    assert not record.is_done("a.csv", "r1", bars=False)
    (folder / "a.csv").write_bytes(b"1")
    assert record.is_done("a.csv", "r1", bars=False)
    (folder / "a.meta.json").unlink()
    assert not record.is_done("a.csv", "r1", bars=False) and record.note("a.csv") is None


@pytest.mark.parametrize("text", ["", "no json", "[]", "7", "null", "{}", '{"request": "r1"}'])
def test_a_note_that_somebody_changed_is_none(record: RunRecord, folder: Path, text: str) -> None:
    record.keep("a.csv", writer(b"1"), {"request": "r1", "rows": 1})
    (folder / "a.meta.json").write_text(text)
    assert not record.is_done("a.csv", "r1", bars=False) and record.note("a.csv") is None


def test_a_result_that_cannot_be_noted_is_not_done(record: RunRecord) -> None:
    """JSON has no NaN: a note that other programs could not read is not written."""
    with pytest.raises(ValueError, match="JSON"):
        record.keep("a.csv", writer(b"1"), {"request": "r1", "rows": 1, "price": float("nan")})
    assert not record.is_done("a.csv", "r1", bars=False)
