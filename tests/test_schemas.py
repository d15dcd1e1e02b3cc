"""schemas/ is generated from the types, dpsql writes what it says, and its policies are accepted by the reader as by editors."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pytest
import yaml
from support.clinic_folder import Clinic, Outcome, bare_clinic, clinic, dpsql
from support.json_schemas import as_text, schemas
from support.places import POLICIES, ROOT

from dpsql.frontends.admin.check import check_policy_file
from dpsql.frontends.demo import DEMOS, shipped_policy
from dpsql.ledger import open_ledger
from dpsql.ledger.records import FACTS
from dpsql.policy import Policy, load_policy, policy_problems
from dpsql.policy.fields import json_schema
from dpsql.policy.yaml_text import schema_line

__all__ = ["bare_clinic", "clinic", "dpsql"]
TYPES = {"integer": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE"}


class Editor(yaml.SafeLoader):
    """YAML as editors read it (the JSON schema of YAML 1.2): 1e-6 is a number, dates and `no` are text."""


Editor.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"(?:null|~)", "n~"),
    ("bool", r"(?:true|false)", "tf"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    Editor.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"{_pattern}$"), list(_first))


def instance(text: str) -> Any:
    return yaml.load(text, Loader=Editor)


@pytest.mark.parametrize("name", sorted(schemas()))
def test_schemas_are_up_to_date(name: str) -> None:
    schema = schemas()[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    written = (ROOT / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")
    assert written == as_text(schema), "run: python tests/support/json_schemas.py"


def test_every_schema_is_generated_and_has_its_line_in_the_readme() -> None:
    files = sorted(file.name for file in (ROOT / "schemas").glob("*.schema.json"))
    assert files == sorted(f"{name}.schema.json" for name in schemas())
    readme = (ROOT / "schemas" / "README.md").read_text(encoding="utf-8")
    assert [name for name in [*files, *(file.name for file in POLICIES.iterdir())] if f"`{name}`" not in readme] == []


def is_described(text: str, name: str) -> Any:
    """Return the object in a text, which must be as the schema `name` says."""
    written = json.loads(text)
    jsonschema.validate(written, schemas()[name], jsonschema.Draft202012Validator)
    return written


def test_what_programs_read_is_as_its_schema_says(clinic: Clinic, dpsql: Callable[..., Outcome]) -> None:
    sql = "SELECT region, COUNT(*) AS n, MEDIAN(age) AS age, AVG(income) AS income FROM patients GROUP BY region"
    policy = clinic.policy.read_text().replace("income: {type: real}", "income: {type: real, lower: 0, upper: 300000}")
    clinic.policy.write_text(policy)
    is_described(dpsql("explain", "-p", "clinic.yaml", "-f", "json", sql).out, "explain")
    answer = is_described(dpsql("query", "-p", "clinic.yaml", "-f", "json", sql).out, "release")
    assert any("rank_error" in column for column in answer["columns"]) and answer["low"]
    Path("q.sql").write_text(f"{sql};\nSELECT nothing FROM patients;\n")
    for more in ((), ("--keep-going",), ("--keep-going", "--workload"), ("--dry-run",)):
        is_described(dpsql("run", "-p", "clinic.yaml", "q.sql", "--out", "out", "--json", *more).out, "run-summary")
    rows = (
        "export", "patients", "-p", "clinic.yaml", "--columns", "region,age,smokes", "--epsilon", "0.5", "--out",
        "r.csv",
    )  # fmt: skip
    assert dpsql(*rows).status == 0
    is_described(Path("r.csv.json").read_text(), "export")


def test_entries_of_every_kind_are_as_their_schema_says(clinic: Clinic, dpsql: Callable[..., Outcome]) -> None:
    """`body` is a text, so that validators look at its shape where they are told to."""
    schema = schemas()["ledger-entry"]
    bodies = {"$ref": "#/$defs/body", "$defs": schema["$defs"]}
    for table, epsilon in (("patients", 2), ("numbers", 3)):
        clinic.policy.write_text(clinic.policy.read_text().replace("epsilon: 2,", f"epsilon: {epsilon},"))
        dpsql("query", "-p", "clinic.yaml", f"SELECT COUNT(*) FROM {table}")
    dpsql("budget", "backup", "-p", "clinic.yaml", "copy")
    Path("clinic-ledger.db").unlink()
    assert dpsql("budget", "restore", "-p", "clinic.yaml", "copy").status == 0
    policy = load_policy(clinic.policy)
    with open_ledger(policy.ledger_url(), policy.dataset) as ledger:
        ledger.record("witness", {"seen": None, "reason": "another machine"})
    assert dpsql("budget", "clock", "-p", "clinic.yaml", "nobody asked for a year").status == 0
    kinds = set()
    for line in dpsql("budget", "export", "-p", "clinic.yaml").out.splitlines():
        body = json.loads(is_described(line, "ledger-entry")["body"])
        jsonschema.validate(body, bodies, jsonschema.Draft202012Validator)
        kinds.add(body["kind"])
    assert set(FACTS) - kinds <= {"failed", "adopted"}


def empty_source(policy: Path, folder: Path) -> Path:
    """Copy a policy to a folder, with a database of its tables, which have no rows."""
    place = folder / policy.name
    place.write_text(policy.read_text(encoding="utf-8"), encoding="utf-8")
    known = load_policy(place)
    assert known.source is not None
    with duckdb.connect(str(folder / known.source.removeprefix("duckdb:///"))) as connection:
        for name, table in known.tables.items():
            columns = ", ".join(
                f'"{column.source or column.name}" {TYPES.get(column.type, "TIMESTAMP")}'
                for column in table.columns.values()
            )
            connection.execute(f'CREATE TABLE "{name}" ({columns})')
    return place


@pytest.mark.parametrize("path", sorted(POLICIES.iterdir()), ids=lambda path: path.stem)
def test_policies_are_accepted_by_the_schema_and_by_check(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith(schema_line("../policy.schema.json") + "\n")
    jsonschema.validate(instance(text), json_schema(Policy), jsonschema.Draft202012Validator)
    findings = check_policy_file(empty_source(path, tmp_path), create_ledger=True)
    assert (findings.problems, findings.status) == ([], 0)


@pytest.mark.parametrize("name", sorted(DEMOS))
def test_demos_begin_with_the_address_of_the_installed_schema(name: str) -> None:
    """The first line is all that differs from the file in schemas/, and the address leads to the schema."""
    text = (POLICIES / f"{name}.yaml").read_text(encoding="utf-8")
    shipped = shipped_policy(name)
    assert shipped.split("\n")[1:] == text.split("\n")[1:]
    address = shipped.split("\n", 1)[0].partition("$schema=file://")[2]
    assert json.loads(Path(address).read_text(encoding="utf-8")) == json_schema(Policy)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("budget: {epsilon: 10", "budget: {epsilon: 0"),
        ("budget: {epsilon: 10", "budget: {epsilom: 10"),
        ("accountant: zcdp", "accountant: renyi"),
        ("max_rows: 60", "max_rows: 0"),
        ("max_rows: 60", "max_row: 60"),
        ("patient_id: patients.patient_id}\n    max_rows: 10", "patient_id: patients}\n    max_rows: 10"),
        ("patient_id: {type: integer, nullable: false}", "patient_id: {type: integer, nullable: never}"),
        ("dataset: nafld", "dataset: na fld"),
        ("privacy_unit: {table: patients, column: patient_id}", "privacy_unit: rows"),
        ("  planning:", "  plan ning:"),
    ],
)
def test_what_the_schema_refuses_the_reader_refuses(old: str, new: str) -> None:
    text = shipped_policy("nafld")
    assert text.count(old) == 1
    text = text.replace(old, new)
    assert not jsonschema.Draft202012Validator(json_schema(Policy)).is_valid(instance(text))
    assert policy_problems(text)


def test_the_schema_takes_row_privacy() -> None:
    text = "dataset: d\nprivacy_unit: row\nbudget: {epsilon: 1, delta: 1e-6}\nledger: sqlite:///l.db\n"
    text += "tables: {t: {columns: {x: {type: real, lower: 0, upper: 1}}}}\n"
    jsonschema.validate(instance(text), json_schema(Policy), jsonschema.Draft202012Validator)
    assert policy_problems(text) == []
