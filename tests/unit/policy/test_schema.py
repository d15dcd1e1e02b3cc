"""The JSON Schema is generated from the types, and agrees with the reader on the shipped policies."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from support.places import ROOT

from dpsql.frontends.demo.data import DEMOS, shipped_policy
from dpsql.policy import load_policy, policy_problems
from dpsql.policy.shape import json_schema

PACKAGE = ROOT / "dpsql"


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


def test_the_schema_file_is_up_to_date() -> None:
    on_disk = json.loads((PACKAGE / "policy" / "policy.schema.json").read_text(encoding="utf-8"))
    assert on_disk == json_schema(), "run: python -m dpsql.policy > dpsql/policy/policy.schema.json"


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("path", sorted((PACKAGE / "frontends" / "demo").glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_policies_are_accepted_by_both(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    jsonschema.validate(instance(text), json_schema(), jsonschema.Draft202012Validator)
    policy = load_policy(path)
    assert policy.dataset == path.stem
    assert shipped_policy(path.stem) == text
    assert policy.source == f"duckdb:///{path.stem}.duckdb"


def test_every_demo_ships_its_policy() -> None:
    assert sorted(DEMOS) == sorted(path.stem for path in (PACKAGE / "frontends" / "demo").glob("*.yaml"))


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
    assert not jsonschema.Draft202012Validator(json_schema()).is_valid(instance(text))
    assert policy_problems(text)


def test_the_schema_takes_row_privacy() -> None:
    text = "dataset: d\nprivacy_unit: row\nbudget: {epsilon: 1, delta: 1e-6}\nledger: sqlite:///l.db\n"
    text += "tables: {t: {columns: {x: {type: real, lower: 0, upper: 1}}}}\n"
    jsonschema.validate(instance(text), json_schema(), jsonschema.Draft202012Validator)
    assert policy_problems(text) == []
