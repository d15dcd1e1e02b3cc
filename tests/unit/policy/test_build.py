"""Contents of an accepted policy: exact values, defaults, the path to the privacy unit, addresses, its version."""

from dataclasses import fields, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pytest
from support.places import POLICIES

from dpsql.plan.canonical_text import canonical_text
from dpsql.plan.plan import Caps
from dpsql.policy import (
    Analyst,
    ContributionBounds,
    PerQuery,
    Policy,
    PolicyColumn,
    PrivacyUnit,
    SessionLimit,
    load_policy,
    parse_policy,
    policy_problems,
)
from dpsql.policy.fields import fingerprint
from dpsql.policy.reach import find_cycle, joins_of, paths_to_unit
from dpsql.policy.types import CsvDialect, ProjectLimit, TableAccess
from dpsql.privacy.loss import Neighbours

POLICY = """\
dataset: clinic
source: duckdb:///data/clinic.duckdb
privacy_unit: {table: patients, column: patient_id}
budget: {epsilon: 10, delta: 1e-6, accountant: zcdp}
ledger: sqlite:///ledger.db
analysts: {research: {epsilon: 0.30, delta: 1e-7}}
tables:
  patients:
    max_rows: 1
    columns:
      patient_id: {type: integer, nullable: false}
      region: {type: text, domain: [no, null, "null", 1e3, ""]}
      age: {type: integer, lower: -1, upper: 1.2e2, domain: [30, 10, 20]}
      dose: {type: real, lower: .1, upper: 5000}
      born: {type: date, lower: 1900-01-01, upper: 2024-02-29}
      seen: {type: timestamp, lower: 2024-01-01, upper: "2024-01-02T03:04:05.25"}
      smoker: {type: boolean, domain: [true, false, ~]}
  visits:
    source: raw.visits_2024
    foreign_keys: {patient: patients.patient_id, ward: wards.ward}
    primary_key: [visit_id]
    max_rows: 20
    columns: {visit_id: {type: text}}
  labs:
    source: labs/*.parquet
    foreign_keys: {visit_id: visits.visit_id}
    max_rows: 100
    max_groups: 4
    max_rows_per_group: 5
    max_count: 40
    columns: {value: {type: real, lower: 0, upper: 10, max_total: 62.5, description: mmol per litre}}
  notes:
    foreign_keys: {patient: visits.patient}
    max_rows: 3
    columns: {length: {type: integer, lower: 0, upper: 9}}
  wards:
    public: true
    primary_key: [ward]
    unique: [[building, floor], telephone]
    max_multiplicity: {building: 30, "floor, telephone": 2, floor: 5}
    columns: {ward: {type: text}, building: {type: text}, floor: {type: integer}, telephone: {type: text}}
"""


@pytest.fixture(scope="module")
def policy() -> Policy:
    return parse_policy(POLICY)


def test_values_are_exact_and_typed(policy: Policy) -> None:
    columns = policy.tables["patients"].columns
    assert columns["age"] == PolicyColumn("age", "integer", -1, 120, (30, 10, 20))
    assert type(columns["age"].upper) is int
    assert (columns["dose"].lower, columns["dose"].upper) == (Fraction(1, 10), Fraction(5000))
    assert columns["region"].domain == ("no", None, "null", "1e3", "")
    assert (columns["born"].lower, columns["born"].upper) == (date(1900, 1, 1), date(2024, 2, 29))
    assert columns["seen"].lower == datetime(2024, 1, 1)
    assert columns["seen"].upper == datetime(2024, 1, 2, 3, 4, 5, 250_000)
    assert columns["smoker"].domain == (True, False, None)
    assert not columns["patient_id"].nullable
    assert policy.tables["labs"].columns["value"].description == "mmol per litre"


def test_a_small_budget_lowers_the_default_of_a_query() -> None:
    small = POLICY.replace("epsilon: 10,", "epsilon: 0.05,").replace("epsilon: 0.30", "epsilon: 0.01")
    assert parse_policy(small).per_query.epsilon == Fraction(1, 20)
    limited = POLICY.replace("ledger:", "per_query: {max_epsilon: 0.04}\nledger:")
    assert parse_policy(limited).per_query.epsilon == Fraction(4, 100)


def test_row_privacy_needs_no_way() -> None:
    text = POLICY.replace("{table: patients, column: patient_id}", "row")
    for rows in ("20", "100", "3"):
        text = text.replace(f"    max_rows: {rows}\n", "")
    clips = ["$.tables.labs.max_count", "$.tables.labs.columns.value.max_total"]
    assert [place for place, _ in policy_problems(text)] == clips
    policy = parse_policy(text.replace("    max_count: 40\n", "").replace("max_total: 62.5, ", ""))
    assert policy.privacy_unit is None
    assert {table.bounds.max_rows for table in policy.tables.values()} == {1, None}
    assert policy.unit_path("labs") == policy.unit_joins("labs") == ()
    assert policy.unit_column("labs") is None
    assert policy.tables["wards"].bounds.max_rows is None


def test_promises_about_repetition_bound_multiplicity(policy: Policy) -> None:
    wards = policy.tables["wards"]
    assert wards.is_unique(("ward",))
    assert wards.is_unique(("floor", "building"))
    assert wards.is_unique(("telephone", "floor"))
    assert not wards.is_unique(("building",))
    assert not wards.is_unique(())
    assert wards.multiplicity(("ward",)) == 1
    assert wards.multiplicity(("building",)) == 30
    assert wards.multiplicity(("floor",)) == 5
    assert replace(wards, unique=()).multiplicity(("floor", "telephone")) == 2
    assert wards.multiplicity(()) is None
    assert not policy.tables["patients"].is_unique(("age",))


def test_the_version_knows_every_field_of_every_part_of_the_policy(policy: Policy) -> None:
    """A new field must not be forgotten: the test changes each one."""
    more = "accountant: zcdp, every: month, lifetime: {epsilon: 20}"
    month = parse_policy(POLICY.replace("accountant: zcdp", more)).budget
    parts: list[Any] = [policy, policy.per_query, month, month.lifetime, policy.privacy_unit, *policy.analysts.values()]
    parts += [policy.reuse, policy.store, policy.prepare, CsvDialect(), TableAccess(), *policy.tables.values()]
    parts += [column for table in policy.tables.values() for column in table.columns.values()]
    parts += [SessionLimit(Fraction(1), None), ProjectLimit(Fraction(1), None)]
    unsaid = {"description", "folder", "origin", "asker", "rows", "row_count", "unprotected"}
    for part in parts:
        for field in fields(part):
            other = replace(
                part, **{field.name: ContributionBounds(*range(6)) if field.name == "bounds" else "different"}
            )
            assert (fingerprint(other) == fingerprint(part)) == (field.name in unsaid), (type(part), field.name)


def test_a_long_chain_of_foreign_keys_is_no_recursion() -> None:
    keys = {f"t{i}": {"k": (f"t{i + 1}", "k")} for i in range(2000)} | {"t2000": {}}
    path = paths_to_unit(keys, "t2000")["t0"][0]
    assert len(path) == 2000
    assert joins_of(path, "k") == ()
    assert len(joins_of(path, "other")) == 2000
    assert find_cycle(keys) is None


def test_budget_and_defaults_are_read_exactly(policy: Policy) -> None:
    assert policy.privacy_unit == PrivacyUnit("patients", "patient_id")
    assert policy.neighbours is Neighbours.ADD_REMOVE
    assert policy.budget.epsilon == 10
    assert policy.budget.delta == Fraction(1, 10**6)
    assert policy.analysts == {"research": Analyst(Fraction(3, 10), Fraction(1, 10**7))}
    assert policy.session is None
    assert policy.per_query == PerQuery(
        epsilon=Fraction(1, 10),
        max_epsilon=None,
        min_epsilon=Fraction(1, 1000),
        delta=Fraction(1, 10**9),
        mechanism="auto",
        confidence=Fraction(19, 20),
        timeout_seconds=300,
        max_public_groups=1_000_000,
    )
    labs = policy.tables["labs"]
    assert labs.bounds == ContributionBounds(labs.bounds.max_rows, 4, 5, None, 40)
    assert (labs.columns["value"].max_total, policy.tables["patients"].columns["age"].max_total) == (
        Fraction(125, 2),
        None,
    )


# --- Contribution bounds: the smallest one, and the fingerprints by which stored releases are found -------------------


def test_fingerprints_do_not_depend_on_how_bounds_are_held() -> None:
    """They name stored releases: the texts and digests are those of the version that stored each bound in its owner."""
    caps = Caps(20, 4, ContributionBounds(max_groups=4, max_rows_per_group=2))
    assert canonical_text(caps) == "Caps(rows_per_unit=int:20,groups=int:4,max_groups=int:4,max_rows_per_group=int:2)"
    policy = load_policy(POLICIES / "hospital.yaml")
    assert policy.meaning == "12f23fbf1058a22cdc0f0758cbc7c67245ed6a24a9484a64d47469dc69396413"
    assert policy.version == "761bc5d22d7b58bd050e46bb548e7b1edf7a9946a4ca6c7d19ee6947b3a580a6"
