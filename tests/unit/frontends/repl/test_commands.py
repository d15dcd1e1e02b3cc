"""Backslash commands of the prompt do what the help says, and run no query when they cannot be carried out."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pyarrow.parquet as pq
import pytest
from support.clinic_folder import BUILD, POLICY
from support.database_files import create_database

from dpsql.errors.exceptions import Error
from dpsql.frontends.repl.commands import HELP, WORDS, Leave, Prompt, Screen, as_command, command, names
from dpsql.release.release import Release
from dpsql.session.session import Session, open_session

PUBLIC = "SELECT 1 AS a, 'x' AS b"
NOISY = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("clinic")
    (folder / "clinic.yaml").write_text(POLICY)
    create_database(folder / "clinic.duckdb", BUILD)
    with open_session(folder / "clinic.yaml", create_ledger=True) as opened:
        yield opened


class Talk:
    """A prompt that keeps its queries and its output."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.asked_texts: list[str] = []
        self.files: list[str] = []
        self.out: TextIO = io.StringIO()
        self.prompt = Prompt(session, self.ask, self.files.append, Screen(file=self.out))

    def ask(self, sql: str) -> Release:
        self.asked_texts.append(sql)
        return self.session.execute(sql)

    def run(self, line: str) -> str:
        """Return the output of one command."""
        start = self.out.tell()
        command(self.prompt, line)
        self.out.seek(start)
        return self.out.read()

    def slug_of(self, line: str) -> tuple[str, str]:
        """Return the name of the error and the whole text; check that no query ran."""
        with pytest.raises(Error) as caught:
            command(self.prompt, line)
        assert self.asked_texts == [] and self.files == []
        return caught.value.slug, caught.value.text()


@pytest.fixture
def talk(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    monkeypatch.chdir(tmp_path)
    first = session.options
    yield Talk(session)
    session.options = first


# --- choice of the command --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\\d patients", "\\d patients"), ("  \\q\n", "\\q"), ("help", "\\?"), ("HELP ;", "\\?"), ("?", "\\?"),
        ("quit", "\\q"), (" Exit; ", "\\q"), ("help sql", "\\? sql"), ("Help  privacy ;", "\\? privacy"),
        ("help me please", None), ("SELECT 1", None), ("SELECT '\\q'", None), ("", None), ("quits", None), ("helps", None),
        (";", None),
    ],
)  # fmt: skip
def test_a_text_is_a_command_or_sql(text: str, line: str | None) -> None:
    assert as_command(text) == line


def test_every_command_of_the_help_can_be_typed_and_completed(talk: Talk) -> None:
    assert len(names()) == len(HELP) == len(set(names()))
    assert {"\\d", "\\explain", "\\copy", "\\q", "\\?"} <= set(names()) and set(WORDS.values()) <= set(names())
    for word in names():
        try:
            command(Talk(talk.session).prompt, word)
        except Error as error:
            assert error.slug != "command_unknown", word
        except Leave:
            assert word == "\\q"


def test_an_unknown_command_is_refused_with_what_was_meant(talk: Talk) -> None:
    slug, text = talk.slug_of("\\budgt")
    assert slug == "command_unknown" and "\\budgt" in text and "did you mean \\budget" in text
    assert "did you mean" not in talk.slug_of("\\nothingatall x")[1] and talk.slug_of("\\D")[0] == "command_unknown"


# --- the policy and the budget ----------------------------------------------------------------------------------------


def test_a_question_is_explained_without_a_charge(talk: Talk) -> None:
    brief, full = talk.run(f"\\explain {NOISY};"), talk.run(f"\\explain+ {NOISY};")
    plan = talk.session.explain(NOISY)
    assert brief == plan.to_text() + "\n" and full == f"{plan.to_text()}\n\n{plan.details()}\n"
    assert talk.asked_texts == [] and "charge" not in {entry.kind for entry in talk.session.ledger.history()}


# --- copies and pictures ----------------------------------------------------------------------------------------------


def test_copies_have_every_format_but_tables(talk: Talk) -> None:
    for ending in ("json", "parquet", "arrow", "csv"):
        assert talk.run(f"\\copy (SELECT 1 AS a UNION ALL SELECT 2) TO x.{ending}") == f"2 rows written to x.{ending}\n"
    assert len(json.loads(Path("x.json").read_text())["rows"]) == pq.read_table("x.parquet").num_rows == 2
    assert len(Path("x.csv").read_text().splitlines()) == 3
    talk.asked_texts.clear()
    slug, text = talk.slug_of(f"\\copy ({PUBLIC}) TO y.table")
    assert slug == "command_argument" and "writes csv, json, md, parquet, arrow, not table" in text
    assert talk.slug_of(f"\\copy ({PUBLIC}) TO y.csv xlsx")[0] == "command_argument" and not Path("y.csv").exists()


def test_the_place_is_tried_before_the_question_is_asked(talk: Talk) -> None:
    assert talk.slug_of(f"\\copy ({NOISY}) TO nowhere/x.csv")[0] == "file_write"
    Path("old.csv").write_text("old")
    with pytest.raises(Error):
        talk.run("\\copy (SELECT nope FROM patients) TO new.csv")
    with pytest.raises(Error):
        talk.run("\\copy (SELECT nope FROM patients) TO old.csv")
    assert not Path("new.csv").exists() and Path("old.csv").read_text() == "old", "a refused question leaves both"
