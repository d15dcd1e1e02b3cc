"""Statements of SQL files come in order, with the names of their results, their weights and the options in force."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pytest
from support.clinic_folder import BUILD, POLICY
from support.database_files import create_database

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.batch.statements import AskedQuestion, FileStatement, asked_questions, walk
from dpsql.session.opening import open_session
from dpsql.session.session import Session

COUNT = "SELECT COUNT(*) AS n FROM patients"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("clinic")
    (folder / "clinic.yaml").write_text(POLICY)
    create_database(folder / "clinic.duckdb", BUILD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPSQL_STATE", str(folder / "state"))
        with open_session(folder / "clinic.yaml", create_ledger=True) as session:
            yield session


@pytest.fixture
def session(opened: Session) -> Iterator[Session]:
    """Yield a session shared by tests that charge nothing and leave its options unchanged."""
    first = opened.options
    yield opened
    assert opened.options == first and "charge" not in {entry.kind for entry in opened.ledger.history()}


@dataclass
class Notes:
    """Events reported by a walk over files."""

    used: list[FileStatement] = field(default_factory=list)
    refused: list[tuple[str, str, str]] = field(default_factory=list)
    left_out: list[tuple[str, int]] = field(default_factory=list)

    def note_refusal(self, place: str, sql: str, error: Error) -> None:
        self.refused.append((place, sql, error.slug))

    def note_rest(self, path: Path, line: int) -> None:
        self.left_out.append((path.name, line))


def has_result(sql: str) -> bool:
    """Stand in for running a statement: SET has no result, and a statement that names a ghost is refused."""
    if "ghost" in sql:
        raise refuse("unknown_table", name="ghost", kind="table")
    return not sql.startswith("SET")


def walked(session: Session, *texts: str, going_on: bool = False, use: Callable[[str], bool] = has_result) -> Notes:
    notes = Notes()

    def note_use(statement: FileStatement) -> bool:
        result = use(statement.piece.sql)
        notes.used.append(statement)
        return result

    scripts = [(Path(f"{letter}.sql"), text) for letter, text in zip("abc", texts, strict=False)]
    walk(session, scripts, note_use, notes.note_refusal, notes.note_rest if going_on else None)
    return notes


def stems(notes: Notes) -> list[str]:
    return [statement.stem for statement in notes.used]


# --- places, names and weights ----------------------------------------------------------------------------------------


def test_a_weight_holds_for_the_next_result(session: Session) -> None:
    text = "-- weight: 3\nSET a = 1;\nSELECT 1;\nSELECT 2;\n-- weight: 0.5\nSELECT 3;\n-- weight: 2\nSELECT ghost;\nSELECT 4"
    notes = walked(session, text)
    assert [each.weight for each in notes.used] == [3, 3, 1, Fraction(1, 2), 1]


@pytest.mark.parametrize(
    ("comment", "slug"),
    [
        ("name: ../a", "batch_name"),
        ("name: run", "batch_name"),
        ("weight: 0", "batch_weight"),
        ("weight: x", "batch_weight"),
    ],
)
def test_a_name_or_weight_that_cannot_be_is_refused_with_its_statement(
    session: Session, comment: str, slug: str
) -> None:
    notes = walked(session, f"-- {comment}\nSELECT 1;\nSELECT 2")
    assert notes.refused == [("a.sql:2", "SELECT 1", slug)]
    assert stems(notes) == ["a-02"]


# --- refused statements -----------------------------------------------------------------------------------------------


def test_an_unfinished_file_is_refused_as_a_whole(session: Session) -> None:
    notes = walked(session, "SELECT 1; SELECT 'open", "SELECT 2")
    assert notes.refused == [("a.sql", "", "text_unfinished")]
    assert [each.place for each in notes.used] == ["b.sql:1"]


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT ghost", True), ("select ghost", True), ("(SELECT ghost)", True), ("With x AS (SELECT ghost) FROM x", True),
        ("FROM ghost", True), ("VALUES (ghost)", True), ("TABLE ghost", True), ("EXPLAIN SELECT ghost", True),
        ("SHOW ghost", True), ("DESCRIBE ghost", True), ("SET ghost = 1", False), ("RESET ghost", False),
        ("BEGIN ghost", False), ("selection ghost", False), ("showing ghost", False), ("DELETE FROM ghost", False),
    ],
)  # fmt: skip
def test_after_a_refused_statement_only_what_it_cannot_change_is_asked(session: Session, sql: str, reads: bool) -> None:
    text = f"SELECT 1;\n{sql};\nSELECT 2"
    going_on = walked(session, text, "SELECT 3", going_on=True)
    assert [place for place, *_ in going_on.refused] == ["a.sql:2"]
    assert stems(going_on) == (["a-01", "a-03", "b-01"] if reads else ["a-01", "b-01"])
    assert going_on.left_out == ([] if reads else [("a.sql", 2)])
    assert stems(walked(session, text, "SELECT 3")) == ["a-01", "a-03", "b-01"], "all are looked at where none is run"


# --- names ------------------------------------------------------------------------------------------------------------


# --- questions --------------------------------------------------------------------------------------------------------


def questions_of(session: Session, *texts: str, going_on: bool = False) -> tuple[list[AskedQuestion], Notes]:
    notes = Notes()
    scripts = [(Path(f"{letter}.sql"), text) for letter, text in zip("abc", texts, strict=False)]
    return asked_questions(session, scripts, notes.note_refusal, notes.note_rest if going_on else None), notes


def test_questions_are_planned_under_the_options_in_force(session: Session) -> None:
    text = (
        f"-- weight: 2\n{COUNT};\nSET dp.epsilon = 0.2;\n-- name: older\n{COUNT} WHERE age > 60;\nRESET ALL;\n{COUNT}"
    )
    questions, notes = questions_of(session, text, f"{COUNT} WHERE age > 70")
    assert [(each.place, each.name, each.weight) for each in questions] == [
        ("a.sql:2", "a-01", 2), ("a.sql:5", "older", 1), ("a.sql:7", "a-03", 1), ("b.sql:1", "b-01", 1),
    ]  # fmt: skip
    epsilons = [each.planned.options.epsilon for each in questions]
    assert epsilons == [Fraction(1, 10), Fraction(1, 5), Fraction(1, 10), Fraction(1, 10)]
    assert questions[1].sql == f"{COUNT} WHERE age > 60" and notes == Notes()


def test_a_comparison_with_a_threshold_is_no_question_of_a_batch(session: Session) -> None:
    _, notes = questions_of(session, f"SET dp.threshold = 5; {COUNT}; RESET dp.threshold; {COUNT}")
    assert notes.refused == [("a.sql:1", COUNT, "batch_watch")]
