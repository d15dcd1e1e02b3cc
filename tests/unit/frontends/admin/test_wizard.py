"""`dpsql init` as a conversation, with answers from a file or typed: it writes a policy that `dpsql check` accepts."""

import gzip
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.clinic_folder import Clinic, Outcome
from support.places import ROOT

from dpsql.errors.exceptions import Error
from dpsql.frontends.admin.answers import Answers, read_answers
from dpsql.frontends.admin.expected_errors import expected_errors
from dpsql.frontends.admin.policy_text import ColumnChoice, WrongAnswer, column_choice
from dpsql.frontends.admin.wizard import ask_for_policy
from dpsql.policy import load_policy
from dpsql.policy.yaml_text import schema_line
from dpsql.session.session import open_session

Run = Callable[..., Outcome]
(ANSWERS,) = re.findall(r"^```text\n(.*?)^```$", (ROOT / "docs" / "first_hour.md").read_text(), re.M | re.S)
FOLDER_POLICY = """\
# Written by `dpsql init` from the owner's answers and the structure of the source; its values were not read.
dataset: night
privacy_unit: {table: patients, column: patient_id}
neighbours: add_remove
budget: {epsilon: 2, delta: 1e-6, accountant: zcdp, every: month}
per_query: {epsilon: 0.1}  # about 17 such questions fit the budget
ledger: "sqlite:///night-ledger.db"
tables:
  patients:
    source: "night/patients.csv"
    csv: {delimiter: ";"}
    max_rows: 1
    primary_key: [patient_id]
    columns:
      patient_id: {type: text, from: "patient id"}
      region: {type: text, nullable: false, domain: ["north", "south"]}
      age: {type: integer, lower: 18, upper: 110}
  regions:
    source: "night/regions.csv"
    public: true
    columns:
      region: {type: text}
      beds: {type: integer, lower: 0, upper: 900}
  visits:
    source: "night/visits.csv"
    max_rows: 20
    foreign_keys: {patient_id: patients.patient_id}
    columns:
      patient_id: {type: text}
      alk_phos: {type: real, from: "alk.phos", lower: 0, upper: 500}
      day: {type: date, nullable: false, lower: 2024-01-01, upper: 2025-12-31}
"""


def write_folder(rows: bool = True) -> None:
    """Write three CSV files; without `rows`, only their headers."""
    Path("night").mkdir(exist_ok=True)
    files = {
        "patients": "patient id;region;age;name\n" + "".join(f"{n};north;91;Secret\n" for n in range(300) if rows),
        "visits": "patient_id,alk.phos,day\n" + "".join(f"{n},98765.25,2024-05-06\n" for n in range(300) if rows),
        "regions": "region,beds\n" + ("north,70\n" if rows else ""),
    }
    for name, text in files.items():
        Path("night", f"{name}.csv").write_text(text)


def test_answers_from_a_file_make_a_policy_that_answers(bare_clinic: Clinic, dpsql: Run) -> None:
    write_folder()
    Path("answers.yaml").write_text(ANSWERS)
    outcome = dpsql("init", "--from", "night", "--answers", "answers.yaml")
    assert outcome.status == 0 and outcome.out == "", outcome.err
    policy = FOLDER_POLICY.replace("about 17", f"about {fits('night.yaml')}")
    assert Path("night.yaml").read_text() == f"{schema_line()}\n{policy}"
    assert "next: dpsql check night.yaml --create-ledger" in outcome.err
    checked = dpsql("check", "night.yaml", "--create-ledger")
    assert checked.status == 0, checked.err
    answer = dpsql("query", "-p", "night.yaml", "SELECT region, COUNT(*) AS n FROM patients GROUP BY region")
    assert answer.status == 0 and "north" in answer.out, answer.err
    assert dpsql("init", "--from", "night", "--answers", "answers.yaml").status == 2, "a policy is never overwritten"


def test_a_table_is_added_to_a_policy_that_exists(bare_clinic: Clinic, dpsql: Run) -> None:
    """The policy is that of all answers at once; its other lines stay, with their comments."""
    write_folder()
    lines = ANSWERS.splitlines(keepends=True)
    Path("all.txt").write_text(ANSWERS)
    assert dpsql("init", "--from", "night", "--answers", "all.txt").status == 0
    whole = Path("night.yaml").read_text()
    before = whole[: whole.index("  visits:")] + "# the end\n"
    Path("night.yaml").write_text(before)
    Path("more.txt").write_text("".join(line for line in lines if line.startswith("visits")))
    added = dpsql("init", "--add", "visits", "night.yaml", "--answers", "more.txt")
    assert added.status == 0 and "has the table visits" in added.err
    assert Path("night.yaml").read_text() == whole + "# the end\n"
    Path("night.yaml").write_text(before)
    unanswered = dpsql("init", "--add", "visits", "night.yaml")
    assert unanswered.status == 2 and "init_unanswered" in unanswered.err, "nobody can be asked without a terminal"
    Path("night.yaml").write_text(whole + "# the end\n")
    for table, word in (("visits", "has this table"), ("visit", "no such table")):
        refused = dpsql("init", "--add", table, "night.yaml", "--answers", "more.txt")
        assert refused.status == 2 and "init_table" in refused.err and word in refused.err
    assert dpsql("init", "--add", "visits", "night.yaml", "--starter").status == 2


@pytest.mark.parametrize("typed", ["patients", "visits"])
def test_a_key_in_a_csv_file_has_the_type_of_the_other_end(bare_clinic: Clinic, dpsql: Run, typed: str) -> None:
    """Also of a table that is added later, if the policy has the other end already."""
    Path("night").mkdir()
    for name, column in (("patients", "age"), ("visits", "nights")):
        rows, file = f"SELECT i AS person, 1 AS {column} FROM range(300) r(i)", f"night/{name}"
        duckdb.sql(f"COPY ({rows}) TO '{file}.{'parquet' if name == typed else 'csv'}'")
    answers = "unit: patients.person\npatients.repeats: no\nvisits.max_rows: 2\npeople: 300\n"
    Path("answers.txt").write_text(answers)
    made = dpsql("init", "--from", "night", "--answers", "answers.txt")
    assert made.status == 0, made.err
    assert dpsql("check", "night.yaml", "--create-ledger").status == 0
    text = Path("night.yaml").read_text()
    assert text.count("person: {type: integer}") == 2
    if typed == "patients":
        Path("night.yaml").write_text(text[: text.index("  visits:")])
        Path("answers.txt").write_text("visits.max_rows: 2\n")
        added = dpsql("init", "--add", "visits", "night.yaml", "--answers", "answers.txt")
        assert added.status == 0 and Path("night.yaml").read_text() == text, added.err
        duckdb.sql("COPY (SELECT 'P1' AS person) TO 'night/stays.parquet'")
        refused = dpsql("init", "--add", "stays", "night.yaml", "--answers", "answers.txt")
        assert "stays.person is text and patients.person is integer" in refused.err and "init_answer" in refused.err
        duckdb.sql("COPY (SELECT 'P1' AS person) TO 'night/beds.csv'")
        Path("answers.txt").write_text("beds.max_rows: 2\nbeds.person: text\n")
        refused = dpsql("init", "--add", "beds", "night.yaml", "--answers", "answers.txt")
        assert refused.status == 2 and "to which it leads, is integer: answer beds.person: integer\n" in refused.err
        assert Path("night.yaml").read_text() == text


@pytest.mark.parametrize("answered", [{"v": "text"}, {"p": "text"}, {"p": "text", "v": ""}, {"w": "integer"}, {"w": "A1, B2"},
                                      {"p": "text", "w": "integer"}, {}], ids=str)  # fmt: skip
def test_a_key_has_the_type_that_its_owner_names(bare_clinic: Clinic, dpsql: Run, answered: dict[str, str]) -> None:
    """In all CSV files of a folder; two types are refused, and nothing is written."""
    Path("night").mkdir()
    for table in "pvw":
        Path("night", f"{table}.csv").write_text("id,seen\n0001,3\n")
    lines = ["unit: p.id", "p.repeats: no", "v.max_rows: 2", "w.max_rows: 2", "people: 9"]
    Path("answers.txt").write_text("\n".join(lines + [f"{table}.id: '{word}'" for table, word in answered.items()]))
    outcome = dpsql("init", "--from", "night", "--answers", "answers.txt")
    words = {"integer" if word == "integer" else "text" for word in answered.values() if word} or {"text"}
    assert outcome.status == (0 if len(words) == 1 else 2) and Path("night.yaml").exists() == (len(words) == 1)
    if len(words) == 1:
        types = {table.columns["id"].type for table in load_policy(Path("night.yaml")).tables.values()}
        assert types == words
    else:
        assert "answers.txt: the answer integer to w.id cannot be used" in outcome.err
        assert (
            "w.id, a key, is integer and p.id, to which it leads, is text: answer w.id: text or p.id: integer"
            in outcome.err
        )


def test_any_column_may_be_left_out(bare_clinic: Clinic, dpsql: Run) -> None:
    """Also one of truth values, and from a source with types."""
    types = {"integer": "INTEGER", "real": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE"}
    columns = ", ".join(f"NULL::{stored} AS {word}_" for word, stored in types.items())
    duckdb.sql(f"COPY (SELECT 1 AS id, {columns}) TO 'p.parquet'")
    for left_out in types:
        Path("a.txt").write_text(f"unit: p.id\np.repeats: no\npeople: 9\np.{left_out}_: '-'\n")
        assert dpsql("init", "--from", "p.parquet", "--answers", "a.txt", "--out", f"{left_out}.yaml").status == 0
        assert set(load_policy(Path(f"{left_out}.yaml")).tables["p"].columns) == {"id"} | {f"{w}_" for w in types} - {
            f"{left_out}_"
        }


def test_a_column_without_a_plain_name_has_one_in_the_policy(bare_clinic: Clinic, dpsql: Run) -> None:
    Path("night").mkdir()
    duckdb.sql("COPY (SELECT 1 AS person) TO 'night/patients.parquet'")
    duckdb.sql("""COPY (SELECT 1 AS "patient no") TO 'night/visits.parquet'""")
    written = dpsql("init", "--from", "night", "--unit", "person", "--out", "night.yaml")  # of one table alone
    assert "privacy_unit: {table: patients, column: person}" in Path("night.yaml").read_text()
    assert written.status == 0 and 'patient_no: {type: integer, from: "patient no"}' in Path("night.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "17,34.5,Secret\n", "begins with a number or a date, as rows do"),
        ("a.csv", "2024-05-01,34.5,Secret\n", "begins with a number or a date, as rows do"),
        ("a.csv", "\na,b\n1,2\n", "its first line is empty, a title, or Excel's sep="),
        ("a.csv", "Ward 7;;\na;b;c\n1;2;3\n", "its first line is empty, a title, or Excel's sep="),
        ("a.csv", "sep=;\na;b\n1;2\n", "its first line is empty, a title, or Excel's sep="),
        (
            "a.csv",
            gzip.compress(b"a,Secret\n1,2\n", mtime=0).decode("latin-1"),
            "it is compressed by gzip: give it a name that ends in .csv.gz",
        ),
        ("a.json", "[]", "COPY (FROM 'a.json') TO 'a.parquet'"),
        ("a.parquet", "", ""),
    ],
)
def test_no_value_and_no_name_of_two_columns_becomes_the_name_of_one(
    bare_clinic: Clinic, dpsql: Run, name: str, text: str, words: str
) -> None:
    Path(name).write_bytes(text.encode("latin-1"))
    if not text:
        pq.write_table(pa.table({"ID": [1], "id": ["x"], "a": [2]}), name)
    outcome = dpsql("init", "--from", name, "--unit", "row", "--out", "a.yaml")
    assert words in outcome.err and "Secret" not in outcome.err
    written = Path("a.yaml").read_text() if Path("a.yaml").exists() else ""
    assert re.findall(r"\w+: \{type: .*?\}", written) == ([] if words else ["a: {type: integer}"])


def fits(policy: str) -> str:
    """Return how many queries at the policy's default price its budget allows, according to EXPLAIN."""
    with open_session(policy, create_ledger=True) as session:
        lines = "\n".join(session.explain("SELECT COUNT(*) FROM patients").lines)
    (number,) = re.findall(r"([0-9]+) (?:questions )?like this one", lines)
    return str(number)


def test_what_is_said_and_written_does_not_depend_on_values(bare_clinic: Clinic, dpsql: Run) -> None:
    Path("answers.yaml").write_text(ANSWERS)
    said = []
    for rows in (True, False):
        write_folder(rows)
        outcome = dpsql("init", "--from", "night", "--answers", "answers.yaml")
        assert outcome.status == 0, outcome.err
        text = Path("night.yaml").read_text()
        said.append((text, re.sub(r"about . [0-9.,]+", "", outcome.err)))  # bars of means are drawn anew
        assert not [secret for secret in ("Secret", "91", "98765", "2024-05") if secret in text + outcome.err]
        Path("night.yaml").unlink()
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("line", "wrong", "problem"),
    [
        ("unit: patients.patient_id", "unit: patients.pid", "write TABLE.COLUMN of the source, or row"),
        ("regions: public", "regions: maybe", "write protected or public or -"),
        ("patients.repeats: no", "", "patients.repeats has no answer"),
        ("visits.max_rows: 20", "visits.max_rows: many", "write a whole number from 1 to 1,000,000,000"),
        ("visits.max_rows: 20", "", "visits.max_rows has no answer"),
        ("integer 18 to 110", "18 to 110", "say `integer 18 to 110` or `real 18 to 110`"),
        ("integer 18 to 110", "integer 110 to 18", "lower"),
        ("integer 18 to 110", "real 18,5 to 110,5", "bounds have a decimal point"),
        ("real 0 to 500", "real 0 to 1.000 not null", "1.000 is read as 1: write 1000, or 1"),
        ("people: 5000", "people: 5000\nvisits.written: dmy mdy", "two of them for numbers and days"),
        ("people: 5000", "", "people has no answer: 4. About how many persons are in the data?"),
        ("people: 5000", "people: 5000\nvisit.day: '-'", "there is no such question; did you mean visits.day?"),
        ("budget: 2 every month", "budget: 2 every fortnight", "NUMBER every day"),
        ("budget: 2 every month", "budget: 0.0000001", "a number from 0.000001 on"),
        ("people: 5000", "people: 5000000000", "a whole number from 1 to 1,000,000,000"),
        ("per_query: 0.1", "per_query: 0.5\nanalysts: ann 1", "it allows about 50 of epsilon 0.03"),
        ("per_query: 0.1", "per_query: 3", "one question cannot cost more than all together"),
        ("per_query: 0.1", "per_query: 0.1\nper_query: 0.2", "is no file of answers"),
        ("unit: patients.patient_id", "unit: [patients]", "each line is `QUESTION: ANSWER`"),
    ],
)
def test_a_wrong_answer_is_refused_and_nothing_is_written(
    bare_clinic: Clinic, dpsql: Run, line: str, wrong: str, problem: str
) -> None:
    write_folder()
    Path("answers.yaml").write_text(ANSWERS.replace(line, wrong))
    outcome = dpsql("init", "--from", "night", "--answers", "answers.yaml")
    assert outcome.status == 2 and problem in outcome.err, outcome.err
    assert not Path("night.yaml").exists() and "Traceback" not in outcome.err


@pytest.mark.parametrize("way", [("--starter",), ("--answers", "answers.yaml")], ids=["starter", "answers"])
def test_types_of_a_source_write_nothing_into_its_policy(bare_clinic: Clinic, dpsql: Run, way: tuple[str, ...]) -> None:
    hostile = 'STRUCT("a\n    public: true\n    x" INTEGER)'
    with duckdb.connect("odd.duckdb") as connection:
        lists = "l INTEGER[], d DECIMAL(5, 2)[], w TIMESTAMP[]"
        connection.execute(
            f"CREATE TABLE t (s {hostile}, m MAP(ENUM('secret'), INTEGER), {lists}, u ENUM('a\nb'), k INTEGER, day DATE, PRIMARY KEY (k, day))"
        )
    Path("answers.yaml").write_text("unit: row\nt.k: 0 to 9\npeople: 1000\n")
    outcome = dpsql("init", "--from", "odd.duckdb", "--out", "odd.yaml", "--unit", "row", *way)
    text = Path("odd.yaml").read_text()
    assert "    public: true" not in text and "secret" not in text + outcome.err and "u: {type: text}" in text
    said = text if "--starter" in way else outcome.err
    assert all(kind in said for kind in ("STRUCT", "MAP", "INTEGER[]", "DECIMAL[]", "TIMESTAMP[]"))
    assert load_policy(Path("odd.yaml")).is_protected("t")
    assert ("k: {type: integer, nullable: false, lower: 0, upper: 9}" in text) == ("--answers" in way)


@pytest.mark.parametrize(
    ("answer", "type_", "text"),
    [
        ("", "integer", "{type: integer}"),
        ("0 to 1e3", "integer", "{type: integer, lower: 0, upper: 1e3}"),
        ("-5 to 5.5", None, "{type: real, lower: -5, upper: 5.5}"),
        ("2024-01-01 to 2024-12-31", None, "{type: date, lower: 2024-01-01, upper: 2024-12-31}"),
        (
            "2024-01-01 08:00:00 to 2024-12-31 09:30:00",
            None,
            "{type: timestamp, lower: 2024-01-01 08:00:00, upper: 2024-12-31 09:30:00}",
        ),
        ("boolean", None, "{type: boolean}"),
        ("text a, b", None, '{type: text, domain: ["a", "b"]}'),
        ('"a, b", c', "text", '{type: text, domain: ["a, b", "c"]}'),
        ("[date]", "text", '{type: text, domain: ["date"]}'),
        ('a , " b", "c, " ', "text", '{type: text, domain: ["a", " b", "c, "]}'),
        ("1, 2, 3", "integer", "{type: integer, domain: [1, 2, 3]}"),
        ("null, no, 1", "text", '{type: text, domain: ["null", "no", "1"]}'),
        ("a, b not null", "text", '{type: text, nullable: false, domain: ["a", "b"]}'),
        ("integer 0 to 9 not null", None, "{type: integer, nullable: false, lower: 0, upper: 9}"),
        ("not null", "real", "{type: real, nullable: false}"),
        ('a, "b not null"', "text", '{type: text, domain: ["a", "b not null"]}'),
        ("it's, 5 %", "text", '{type: text, domain: ["it\'s", "5 %"]}'),
    ],
)
def test_an_answer_about_a_column_becomes_its_yaml(answer: str, type_: str | None, text: str) -> None:
    choice = column_choice(answer, ColumnChoice(type_ or "text"), typed=type_ is not None)
    assert choice is not None and choice.text() == text


def test_decimals_keep_their_scale(bare_clinic: Clinic, dpsql: Run) -> None:
    with duckdb.connect("clinic.duckdb", read_only=True) as connection:
        connection.execute("COPY (SELECT 1.5::DECIMAL(9, 2) AS price, 1::DECIMAL(38, 20) AS rate) TO 'sales.parquet'")
    Path("a.yaml").write_text("unit: row\nsales.price: 0 to 99.95\nsales.rate: 0 to 1\npeople: 300\n")
    assert dpsql("init", "--from", "sales.parquet", "--answers", "a.yaml").status == 0
    assert {name: column.scale for name, column in load_policy("sales.yaml").tables["sales"].columns.items()} == {
        "price": 2, "rate": None,
    }  # fmt: skip
    for way in (["--starter", "--unit", "row"], ["--answers", "a.yaml"]):
        Path("a.yaml").write_text("unit: row\nsales.price: 0 to 9.999\nsales.rate: 0 to 1\npeople: 300\n")
        outcome = dpsql("init", "--from", "sales.parquet", "--out", "s.yaml", *way)
        assert (outcome.status == 0) == ("--starter" in way)
    assert "price: {type: real, scale: 2}" in Path("s.yaml").read_text()


# --- value of the policy --------------------------------------------------------------------------------------------------


def test_expected_errors_open_no_source_and_keeps_no_charge(bare_clinic: Clinic) -> None:
    write_folder()
    Path("night.yaml").write_text(FOLDER_POLICY)
    policy = load_policy("night.yaml")
    shutil.rmtree("night")
    lines = list(expected_errors(policy, 100))
    assert any("mean age of patients by region" in line for line in lines)
    assert not Path("night-ledger.db").exists() and not bare_clinic.state.exists()


# --- typed answers ----------------------------------------------------------------------------------------------------------


def test_a_typed_answer_is_on_the_disk_before_the_next_question(tmp_path: Path) -> None:
    draft, typed, seen = tmp_path / "d.answers.yaml", iter(["x", "3"]), []

    def ask(question: str, default: str) -> str:
        seen.append(draft.read_text() if draft.exists() else "")
        return next(typed)

    def number(text: str) -> int:
        if not text.isdigit():
            raise WrongAnswer("a number")
        return int(text)

    answers = Answers({"first": "1"}, "d", lambda text: None, ask, draft)
    assert answers.get("first", "?", number) == 1 and answers.get("second", "?", number) == 3
    assert seen == ['"first": "1"\n'] * 2 and read_answers(draft.read_text(), "d") == {"first": "1", "second": "3"}
    draft.unlink()
    draft.mkdir()
    with pytest.raises(Error) as error:
        Answers({"first": "1"}, "d", lambda text: None, ask, draft).get("first", "?", number)
    assert error.value.slug == "file_write"


@pytest.mark.parametrize(("columns", "is_said"), [("a,b", True), ("a,c", False)])
def test_files_that_may_be_one_table_are_said_to(bare_clinic: Clinic, dpsql: Run, columns: str, is_said: bool) -> None:
    Path("nights").mkdir()
    for name, header in (("a.csv", "a,b"), ("b.csv", columns)):
        Path("nights", name).write_text(f"{header}\n1,2\n")
    for other in ("stays.xlsx", ".notes.txt"):
        Path("nights", other).touch()
    made = dpsql("init", "--from", "nights", "--unit", "row")
    assert made.status == 0 and ("dpsql init 'nights/*.csv'" in made.err) == is_said
    assert "left out, as they are no Parquet or CSV files: stays.xlsx\n" in made.err


@pytest.mark.parametrize("numbers", ["rownames", "index", "Unnamed__0", "row_number"])
def test_the_person_is_proposed_by_name_and_never_as_the_number_of_a_row(tmp_path: Path, numbers: str) -> None:
    for name in ("admissions", "people"):
        pq.write_table(pa.table({numbers: [1], "person": [1], name[:2]: [2]}), tmp_path / f"{name}.parquet")

    def ask(question: str, default: str) -> str:
        raise WrongAnswer(f"{question}: {default}")

    with pytest.raises(WrongAnswer, match=r"unit: people\.person"):
        ask_for_policy(tmp_path, tmp_path / "p.yaml", Answers({}, "typed", lambda text: None, ask))
