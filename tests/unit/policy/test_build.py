"""Contents of an accepted policy: exact values, defaults, the path to the privacy unit, addresses, its version."""

from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
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
    PrivacyUnit,
    SessionLimit,
    load_policy,
    parse_policy,
    policy_problems,
)
from dpsql.policy.fields import fingerprint
from dpsql.policy.reach import find_cycle, joins_of, paths_to_unit
from dpsql.policy.types import BOUND_NAMES, UNBOUNDED, CsvDialect, ProjectLimit, TableAccess
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


def test_a_small_budget_lowers_the_default_of_a_query() -> None:
    small = POLICY.replace("epsilon: 10,", "epsilon: 0.05,").replace("epsilon: 0.30", "epsilon: 0.01")
    assert parse_policy(small).per_query.epsilon == Fraction(1, 20)
    limited = POLICY.replace("ledger:", "per_query: {max_epsilon: 0.04}\nledger:")
    assert parse_policy(limited).per_query.epsilon == Fraction(4, 100)


def test_every_protected_table_has_a_path_to_the_privacy_unit(policy: Policy) -> None:
    to_patient = ("visits", "patient", "patients", "patient_id")
    to_visit = ("labs", "visit_id", "visits", "visit_id")
    assert policy.unit_path("patients") == policy.unit_path("wards") == ()
    assert policy.unit_path("visits") == (to_patient,)
    assert policy.unit_path("labs") == (to_visit, to_patient)
    assert policy.unit_joins("visits") == ()
    assert policy.unit_joins("labs") == (to_visit,)
    assert policy.unit_joins("notes") == ()
    columns = [policy.unit_column(name) for name in ("patients", "visits", "labs", "notes", "wards")]
    assert columns == ["patient_id", "patient", "patient", "patient", None]
    assert [name for name in policy.tables if policy.is_protected(name)] == ["patients", "visits", "labs", "notes"]


def test_a_foreign_key_to_another_column_of_the_units_table_is_joined() -> None:
    text = POLICY.replace("patient: patients.patient_id", "card: patients.card").replace(
        "max_rows: 1\n", "max_rows: 1\n    unique: [card]\n"
    )
    text = text.replace("{patient: visits.patient}", "{card: visits.card}").replace(
        "columns:\n      patient_id", "columns:\n      card: {type: text}\n      patient_id"
    )
    text = text.replace("primary_key: [visit_id]\n", "primary_key: [visit_id]\n    unique: [card]\n")
    policy = parse_policy(text)
    assert policy.unit_joins("visits") == (("visits", "card", "patients", "card"),)
    assert policy.unit_column("visits") == "patient_id"
    assert policy.unit_joins("notes") == (("notes", "card", "visits", "card"), ("visits", "card", "patients", "card"))


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


def test_addresses_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "clinic.yaml").write_text(POLICY)
    policy = load_policy(tmp_path / "clinic.yaml")
    assert policy.source_path() == str(tmp_path / "data/clinic.duckdb")
    assert policy.ledger_url() == f"sqlite:///{tmp_path}/ledger.db"
    assert policy.table_source("patients") == "patients"
    assert policy.table_source("visits") == "raw.visits_2024"
    assert policy.table_source("labs") == str(tmp_path / "labs/*.parquet")
    absolute = POLICY.replace("duckdb:///data", "duckdb:////data").replace("sqlite:///ledger", "sqlite:////var/ledger")
    policy = parse_policy(absolute, folder=tmp_path)
    assert (policy.source_path(), policy.ledger_url()) == ("/data/clinic.duckdb", "sqlite:////var/ledger.db")
    servers = replace(policy, source="postgresql://h/d", ledger="postgresql://h/l")
    assert (servers.source_path(), servers.ledger_url()) == (None, "postgresql://h/l")
    one = replace(policy, source="visits-*.csv", tables={"patients": policy.tables["patients"]})
    assert one.table_source("patients") == one.source_path() == str(tmp_path / "visits-*.csv")


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


@pytest.mark.parametrize("name", BOUND_NAMES)
def test_the_smallest_of_each_bound_holds_wherever_it_is_set(name: str) -> None:
    small, large = ContributionBounds(**{name: 3}), ContributionBounds(**{name: 8})
    assert large.tightened(UNBOUNDED, small) == small.tightened(large) == small == UNBOUNDED.tightened(small)
    assert small.declared() == {name: 3}


@pytest.mark.parametrize(
    ("bounds", "drops"),
    [
        (ContributionBounds(max_groups=1), True),
        (ContributionBounds(max_rows_per_group=1), True),
        (ContributionBounds(max_rows=1, max_total=Fraction(1), max_count=1), False),
    ],
)
def test_bounds_by_group_alone_drop_rows_after_grouping(bounds: ContributionBounds, drops: bool) -> None:
    assert bounds.drops_rows_by_group is drops


def test_keys_that_were_added_change_no_name_of_a_copy_at_their_default() -> None:
    """The text is that of the version that wrote the first copies of CSV files: a new key of csv is `added`."""
    text = "CsvDialect(delimiter=str:',',quote=str:'\"',header=NoneType:None,null=[str:''],multiline=bool:False,encoding=str:'utf-8'"
    assert canonical_text(CsvDialect()) == f"{text},decimal=str:'.')"
    assert canonical_text(CsvDialect(days="dmy")) == f"{text},decimal=str:'.',days=str:'dmy')"
    assert fingerprint(CsvDialect()) != fingerprint(CsvDialect(days="dmy"))


def test_fingerprints_do_not_depend_on_how_bounds_are_held() -> None:
    """They name stored releases: the texts and digests are those of the version that stored each bound in its owner."""
    caps = Caps(20, 4, ContributionBounds(max_groups=4, max_rows_per_group=2))
    assert canonical_text(caps) == "Caps(rows_per_unit=int:20,groups=int:4,max_groups=int:4,max_rows_per_group=int:2)"
    policy = load_policy(POLICIES / "hospital.yaml")
    assert policy.meaning == "12f23fbf1058a22cdc0f0758cbc7c67245ed6a24a9484a64d47469dc69396413"
    assert policy.version == "761bc5d22d7b58bd050e46bb548e7b1edf7a9946a4ca6c7d19ee6947b3a580a6"
