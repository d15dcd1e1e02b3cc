"""Every error in a policy is refused with its place in the file, and a valid policy is not."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.places import CLINIC, POLICIES

from dpsql.errors.exceptions import PolicyRefusal
from dpsql.policy import load_policy, parse_policy, policy_problems
from dpsql.policy.source_kinds import DUCKDB, SOURCE_KINDS, is_source_url, scheme_of, source_kind
from dpsql.policy.types import Policy, Preparation


def changed(old: str, new: str) -> list[tuple[str, str]]:
    assert CLINIC.count(old) == 1, "the text to change must stand once in CLINIC"
    return policy_problems(CLINIC.replace(old, new))


def test_the_right_one_is_accepted() -> None:
    assert policy_problems(CLINIC) == []


ONE_PROBLEM = [
    ("dataset: clinic", "dataset: clinic\ndata_version: Daily", "$.data_version", "is daily, in lower case"),
    # numbers: epsilon and delta
    ("budget: {epsilon: 10,", "budget: {epsilon: NaN,", "$.budget.epsilon", "not a decimal"),
    ("budget: {epsilon: 10,", "budget: {epsilon: .inf,", "$.budget.epsilon", "not a decimal"),
    ("budget: {epsilon: 10,", "budget: {epsilon: -1,", "$.budget.epsilon", "greater than 0"),
    ("budget: {epsilon: 10,", "budget: {epsilon: 0,", "$.budget.epsilon", "greater than 0"),
    ("budget: {epsilon: 10,", "budget: {epsilon: 1e999999999,", "$.budget.epsilon", "not a decimal"),
    ("budget: {epsilon: 10,", "budget: {epsilon: 1e9999,", "$.budget.epsilon", "exponent"),
    ("budget: {epsilon: 10,", "budget: {epsilon: 10000.1,", "$.budget.epsilon", "between"),
    ("budget: {epsilon: 10,", "budget: {epsilon: ١٠,", "$.budget.epsilon", "not a decimal"),
    ("budget: {epsilon: 10,", "budget: {epsilon: 0x10,", "$.budget.epsilon", "not a decimal"),
    ("budget: {epsilon: 10,", "budget: {epsilon: 1_0,", "$.budget.epsilon", "not a decimal"),
    ("budget: {epsilon: 10,", "budget: {epsilon: [10],", "$.budget.epsilon", "a list"),
    ("budget: {epsilon: 10,", "budget: {epsilon: null,", "$.budget.epsilon", "null"),
    ("budget: {epsilon: 10,", "budget: {", "$.budget.epsilon", "missing"),
    ("delta: 1e-6", "delta: 0", "$.budget.delta", "zcdp"),
    (", delta: 1e-6", "", "$.budget.delta", "zcdp"),
    ("delta: 1e-6", "delta: 1", "$.budget.delta", "between 0 and 1"),
    ("delta: 1e-6", "delta: -1e-6", "$.budget.delta", "between 0 and 1"),
    ("delta: 1e-6", "delta: 1e-3", "$.budget.delta", "below 1e-3"),
    ("delta: 1e-6", "delta: 1e-6, every: fortnight", "$.budget.every", "day, week, month, quarter, year"),
    ("delta: 1e-6", "delta: 1e-6, every: Month", "$.budget.every", "month"),
    ("delta: 1e-6", "delta: 1e-6, lifetime: {epsilon: 20}", "$.budget.lifetime", "every: month"),
    ("delta: 1e-6", "delta: 1e-6, every: day, lifetime: {epsilon: 9}", "$.budget.lifetime.epsilon", "one window, 10"),
    ("delta: 1e-6", "delta: 1e-6, every: day, lifetime: {epsilon: 20, delta: 1e-7}", "$.budget.lifetime.delta", "one window"),
    ("delta: 1e-6", "delta: 1e-6, every: day, lifetime: {epsilon: -1}", "$.budget.lifetime.epsilon", "greater than 0"),
    ("delta: 1e-6", "delta: 1e-6, every: day, lifetime: 20", "$.budget.lifetime", ""),
    ("delta: 1e-6", "delta: 1e-6, every: day, lifetime: {epsilon: 20, eps: 1}", "$.budget.lifetime.eps", ""),
    ("accountant: zcdp", "accountant: zdcp", "$.budget.accountant", "did you mean zcdp"),
    # limits
    ("max_epsilon: 1}", "max_epsilon: 0.05}", "$.per_query.epsilon", "max_epsilon"),
    ("max_epsilon: 1}", "max_epsilon: 10.01}", "$.per_query.max_epsilon", "budget"),
    ("{epsilon: 0.1, max_epsilon: 1}", "{epsilon: 10.01}", "$.per_query.epsilon", "budget"),
    ("max_epsilon: 1}", "delta: 1e-5}", "$.per_query.delta", "budget"),
    ("max_epsilon: 1}", "max_eps: 1}", "$.per_query.max_eps", "did you mean max_epsilon"),
    ("max_epsilon: 1}", "mechanism: gauss}", "$.per_query.mechanism", "did you mean gaussian"),
    ("max_epsilon: 1}", "confidence: 95}", "$.per_query.confidence", "0.5"),
    ("max_epsilon: 1}", "timeout_seconds: 1e6}", "$.per_query.timeout_seconds", "86400"),
    ("bi: {epsilon: 5}", "bi: {epsilon: 10.5}", "$.analysts.bi.epsilon", "budget"),
    ("bi: {epsilon: 5}", "bi: {epsilon: 5, delta: 1e-4}", "$.analysts.bi.delta", "budget"),
    ("bi: {epsilon: 5}", "Research: {epsilon: 5}", "$.analysts.Research", "case"),
    ("bi: {epsilon: 5}", "owner: {epsilon: 5}", "$.analysts.owner", "login of the data's owner"),
    ("bi: {epsilon: 5}", "OWNER: {epsilon: 5}", "$.analysts.OWNER", "login of the data's owner"),
    ("bi: {epsilon: 5}", "'b i': {epsilon: 5}", '$.analysts["b i"]', "name"),
    ("session: {epsilon: 1}", "session: {epsilon: 11}", "$.session.epsilon", "budget"),
    # names, keys, addresses
    ("dataset: clinic", "dataset: my clinic", "$.dataset", "plain name"),
    ("dataset: clinic", "dataset: clinic\ndataset: other", "$.dataset", "twice"),
    ("source: duckdb:///clinic.duckdb", "source: mysql://x", "$.source", "duckdb"),
    ("ledger: sqlite:///clinic-ledger.db", "ledger: clinic.db", "$.ledger", "sqlite"),
    ("neighbours: add_remove", "neighbours: remove_add", "$.neighbours", "add_remove"),
    ("  regions:", "  dp_regions:", "$.tables.dp_regions", "reserved"),
    ("  regions:", "  __regions:", "$.tables.__regions", "reserved"),
    ("  regions:", "  Pg_regions:", "$.tables.Pg_regions", "reserved"),
    ("  regions:", "  Visits:", "$.tables.Visits", "case"),
    ("  regions:", f"  {'r' * 64}:", f"$.tables.{'r' * 64}", "plain name"),
    ("weight:", "Age:", "$.tables.patients.columns.Age", "case"),
    ("weight:", "gewicht_ä:", '$.tables.patients.columns["gewicht_\\u00e4"]', "plain name"),
    # bounds and domains
    ("lower: 0, upper: 120", "lower: 0, upper: 120, form: a.b", "$.tables.patients.columns.age.form", "from"),
    ("lower: 0, upper: 120", "lower: 121, upper: 120", "$.tables.patients.columns.age.lower", "greater"),
    ("lower: 0, upper: 120", "lower: 0", "$.tables.patients.columns.age.upper", "missing"),
    ("lower: 0, upper: 120", "lower: 0.5, upper: 120", "$.tables.patients.columns.age.lower", "whole"),
    ("lower: 0, upper: 120", "lower: 0, upper: 9223372036854775808", "$.tables.patients.columns.age.upper", "64 bits"),
    ("lower: 0, upper: 120", "lower: -9223372036854775809, upper: 0", "$.tables.patients.columns.age.lower", "64"),
    ("lower: 0, upper: 5000", "lower: 0, upper: NaN", "$.tables.visits.columns.cost.upper", "not a decimal"),
    ("lower: 0, upper: 5000", "lower: 0, upper: .inf", "$.tables.visits.columns.cost.upper", "not a decimal"),
    ("lower: 0, upper: 5000", "lower: 0, upper: 1.1e15", "$.tables.visits.columns.cost.upper", "absurd"),
    ("lower: 0, upper: 5000", "lower: -2e15, upper: 0", "$.tables.visits.columns.cost.lower", "absurd"),
    ("lower: 0, upper: 5000", "lower: 1e-16, upper: 1", "$.tables.visits.columns.cost.lower", "absurd"),
    ("upper: 2025-12-31}", "upper: 2025-02-30}", "$.tables.visits.columns.day.upper", "calendar"),
    ("upper: 2025-12-31}", "upper: 31.12.2025}", "$.tables.visits.columns.day.upper", "YYYY-MM-DD"),
    ("2025-12-31 23:59", "2025-12-31T23:59Z", "$.tables.visits.columns.seen.upper", "without zone"),
    ("2025-12-31 23:59", "2025-12-31 24:59", "$.tables.visits.columns.seen.upper", "calendar"),
    ("{type: boolean}", "{type: bool}", "$.tables.patients.columns.smoker.type", "did you mean boolean"),
    ("{type: boolean}", "{type: double}", "$.tables.patients.columns.smoker.type", "declare real"),
    ("{type: boolean}", "{type: boolean, levels: [no]}", "$.tables.patients.columns.smoker.levels", "mean domain"),
    ("{type: boolean}", "{type: uuid}", "$.tables.patients.columns.smoker.type", "declare text"),
    ("{type: boolean}", "{type: 'Decimal(9, 2)'}", "$.tables.patients.columns.smoker.type", "declare real, with the digits"),
    ("{type: boolean}", "{type: boolean, scale: 2}", "$.tables.patients.columns.smoker.scale", "a boolean column has no digits"),
    ("lower: 0, upper: 5000", "scale: 13, lower: 0, upper: 1", "$.tables.visits.columns.cost.scale", "between 0 and 12"),
    ("lower: 0, upper: 5000", "scale: 2, lower: 0, upper: 9.999", "$.tables.visits.columns.cost.upper", "than the scale, 2"),
    ("lower: 0, upper: 5000", "scale: 9, lower: 0, upper: 1e5", "$.tables.visits.columns.cost.upper", "more than 14 digits"),
    ("lower: 0, upper: 5000", "scale: 1, domain: [0.25]", "$.tables.visits.columns.cost.domain[0]", "than the scale, 1"),
    ("{type: boolean}", "{type: boolean, timezone: UTC}", "$.tables.patients.columns.smoker.timezone", "no points of time"),
    (
        "upper: 2025-12-31}",
        "upper: 2025-12-31, timezone: Berlin}",
        "$.tables.visits.columns.day.timezone",
        "such as Europe/Berlin",
    ),
    ("upper: 2025-12-31}", "upper: 2025-12-31, timezone: EST5EDT}", "$.tables.visits.columns.day.timezone", "such as Europe"),
    ("{type: boolean}", "{type: boolean, nullable: no}", "$.tables.patients.columns.smoker.nullable", "true or false"),
    ("{type: boolean}", "{type: boolean, domain: [yes]}", "$.tables.patients.columns.smoker.domain[0]", "true or"),
    ("[north, south, null]", "[]", "$.tables.patients.columns.region.domain", "at least one"),
    ("[north, south, null]", "[north, north]", "$.tables.patients.columns.region.domain[1]", "twice"),
    ("[north, south, null]", "[~, null]", "$.tables.patients.columns.region.domain[1]", "twice"),
    ("[north, south, null]", "north", "$.tables.patients.columns.region.domain", "list"),
    ("null]}", "null], nullable: false}", "$.tables.patients.columns.region.domain[2]", "nullable"),
    ("upper: 120}", "upper: 120, domain: [1, 1.0]}", "$.tables.patients.columns.age.domain[1]", "twice"),
    ("upper: 120}", "upper: 120, domain: [1, 121]}", "$.tables.patients.columns.age.domain[1]", "outside"),
    ("upper: 120}", "upper: 120, domain: [1, old]}", "$.tables.patients.columns.age.domain[1]", "whole number"),
    ("upper: 250}", "upper: 250, domain: [1]}", "$.tables.patients.columns.weight.domain", "real"),
    # tables and the privacy unit
    ("    max_rows: 20\n", "", "$.tables.visits.max_rows", "missing"),
    (
        "    primary_key: [visit_id]\n    max_rows: 20\n    columns:\n",
        "    primary_key: [visit_id]\n    max_rows: 20\n    columns:\n      patient_id: {type: text}\n",
        "$.tables.visits.foreign_keys.patient_id",
        "of type text",
    ),
    ("max_rows: 20", "max_rows: 0", "$.tables.visits.max_rows", "whole number"),
    ("max_rows: 20", "max_rows: 20\n    max_count: 0", "$.tables.visits.max_count", "whole number"),
    ("    public: true\n", "    public: true\n    max_count: 3\n", "$.tables.regions.max_count", "public"),
    ("max_rows: 20", "max_rows: 20\n    max_values: 0", "$.tables.visits.max_values", "whole number"),
    ("    public: true\n", "    public: true\n    max_values: 3\n", "$.tables.regions.max_values", "public"),
    ("upper: 5000}", "upper: 5000, max_total: 0}", "$.tables.visits.columns.cost.max_total", "greater than 0"),
    ("upper: 5000}", "upper: 5000, max_total: .nan}", "$.tables.visits.columns.cost.max_total", "not a decimal"),
    ("upper: 5000}", "upper: 5000, max_total: 2e18}", "$.tables.visits.columns.cost.max_total", "1e18"),
    ("domain: [north, south, null]}", "max_total: 5}", "$.tables.patients.columns.region.max_total", "bounds a sum"),
    ("max_rows: 20", "max_rows: 2.5", "$.tables.visits.max_rows", "whole number"),
    ("max_rows: 20", "max_rows: 1e10", "$.tables.visits.max_rows", "whole number"),
    ("    public: true\n", "    public: true\n    max_rows: 3\n", "$.tables.regions.max_rows", "public"),
    ("    public: true\n", "    public: yes\n", "$.tables.regions.public", "true or false"),
    ("table: patients,", "table: patient,", "$.privacy_unit.table", "did you mean patients"),
    ("column: patient_id}", "column: patientid}", "$.privacy_unit.column", "did you mean patient_id"),
    ("{table: patients, column: patient_id}", "rows", "$.privacy_unit", "row, or"),
    ("{table: patients, column: patient_id}", "null", "$.privacy_unit", "row, or"),
    ("    foreign_keys: {visit_id: visits.visit_id}\n", "", "$.tables.labs.foreign_keys", "no foreign keys lead"),
    ("visits.visit_id", "visit.visit_id", "$.tables.labs.foreign_keys.visit_id", "did you mean visits"),
    ("visits.visit_id", "visits.visitid", "$.tables.labs.foreign_keys.visit_id", "did you mean visit_id"),
    ("visits.visit_id", "visits", "$.tables.labs.foreign_keys.visit_id", "table.column"),
    ("visits.visit_id", "visits.day", "$.tables.labs.foreign_keys.visit_id", "primary key"),
    ("    primary_key: [visit_id]\n", "", "$.tables.labs.foreign_keys.visit_id", "primary key"),
    ("primary_key: [visit_id]", "primary_key: [visit_id, day]", "$.tables.labs.foreign_keys.visit_id", "primary key"),
    (
        "{visit_id: visits.visit_id}",
        "{visit_id: visits.visit_id, patient_id: patients.patient_id}",
        "$.tables.labs.foreign_keys",
        "two paths lead to the privacy unit, labs.visit_id -> visits.patient_id -> patients and labs.patient_id -> patients, and a row is protected as that of one person: keep the path that says whose it is. If another column names another person (payer and payee, mother and child), write `unprotected: [COLUMN]`",
    ),
    (
        "max_rows: 100",
        "max_rows: 100\n    same_unit: {visit_id: visits.vist_id}",
        "$.tables.labs.same_unit.visit_id",
        "did you mean visit_id",
    ),
    ("max_rows: 100", "max_rows: 100\n    same_unit: {visit_id: visits.day}", "$.tables.labs.same_unit.visit_id", "of type date"),
    ("max_rows: 100", "max_rows: 100\n    same_unit: {value: labs.value}", "$.tables.labs.same_unit.value", "is real"),
    (
        "max_rows: 100",
        "max_rows: 100\n    same_unit: {visit_id: regions.region}",
        "$.tables.labs.same_unit.visit_id",
        "two protected tables",
    ),
    (
        "    max_rows: 1\n",
        "    max_rows: 1\n    foreign_keys: {age: patients.patient_id}\n",
        "$.tables.patients.foreign_keys",
        "circle: patients -> patients. If another column names another person",
    ),
    ("    max_rows: 1\n", "    max_rows: 1\n    unprotected: [mother]\n", "$.tables.patients.unprotected[0]", "under columns"),
    ("    max_rows: 1\n", "    max_rows: 1\n    unprotected: [age, age]\n", "$.tables.patients.unprotected", "each once"),
    ("    public: true\n", "    public: true\n    unprotected: [name]\n", "$.tables.regions.unprotected[0]", "nobody"),
    (
        "    max_rows: 1\n",
        "    max_rows: 1\n    foreign_keys: {visit: labs.visit_id}\n",
        "$.tables.patients.foreign_keys",
        "circle: patients -> labs -> visits -> patients",
    ),
    (
        "    primary_key: region\n",
        "    foreign_keys: {visit: visits.visit_id}\n",
        "$.tables.regions.foreign_keys.visit",
        "protected",
    ),
    ("name: 3", "name: 0", "$.tables.regions.max_multiplicity.name", "whole number"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "path", "word"), ONE_PROBLEM)
def test_one_mistake_is_one_problem_at_its_place(old: str, new: str, path: str, word: str) -> None:
    found = changed(old, new)
    assert [p for p, _ in found] == [path], found
    assert word in found[0][1]


WITH_CONSEQUENCES = [
    ("dataset: clinic", "datasett: clinic", "$.datasett", "did you mean dataset"),
    ("smoker: {type: boolean}", "smoker: {typ: boolean}", "$.tables.patients.columns.smoker.typ", "did you mean type"),
    ("max_rows: 20", "max_row: 20", "$.tables.visits.max_row", "did you mean max_rows"),
    ("{type: boolean}", "{type: boolean, lower: 0, upper: 1}", "$.tables.patients.columns.smoker.lower", "boolean"),
    ("column: patient_id}", "column: weight}", "$.privacy_unit.column", "real"),
    ("primary_key: [visit_id]", "primary_key: [visitid]", "$.tables.visits.primary_key", "did you mean visit_id"),
    ("primary_key: [visit_id]", "primary_key: []", "$.tables.visits.primary_key", "each once"),
    ("    max_rows: 1\n", "    max_rows: 1\n    public: true\n", "$.tables.patients.public", "cannot be public"),
    ("name: {type: text}}", "Patient_ID: {type: integer}}", "$.tables.regions.columns.Patient_ID", "privacy unit"),
    ("visit_id: {type: integer}", "visit_id: {type: real}", "$.tables.visits.primary_key", "keys are"),
    ("max_rows: 100", "max_rows: 100\n    max_multiplicity: {value: 2}", "$.tables.labs.max_multiplicity", "public"),
]


@pytest.mark.parametrize(("old", "new", "path", "word"), WITH_CONSEQUENCES)
def test_a_mistake_with_consequences_names_its_own_place_too(old: str, new: str, path: str, word: str) -> None:
    found = dict(changed(old, new))
    assert word in found[path]
    assert len(found) == 2


def test_a_problem_names_the_line_that_it_is_on() -> None:
    [(_, sentence)] = changed("lower: 0, upper: 120", "lower: 0, upper: old")
    assert sentence.startswith("line 16: ")
    [(_, sentence)] = changed("north, south, null", "north,\n        south, north")
    assert sentence.startswith("line 16: ")


UNREADABLE = [
    ("", "the file is empty"), ("- a\n- b\n", "mapping"), ("word", "mapping"), ("null", "mapping"), ("a: [1, 2", "line "),
    ("a: b: c", "line 1"), ("a: \x00", "YAML"), ("a: &x 1\nb: *x\n", "anchors"), ("a: " + "{a: " * 3000, "deeper"),
    ("a: [" + "1," * 250_000 + "1]", "at most"), ("# " + "x" * (1 << 20), "longer"),
]  # fmt: skip
"""What else is no plain document: test_yaml_text.py."""


@pytest.mark.parametrize(("text", "word"), UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_is_not_one_plain_document_is_refused(text: str, word: str) -> None:
    [(path, sentence)] = policy_problems(text)
    assert path == "$"
    assert word in sentence


def test_files_that_are_no_policy(tmp_path: Path) -> None:
    cases = {
        "latin": ("dataset: caf\u00e9".encode("latin-1"), "UTF-8"),
        "utf16": (CLINIC.encode("utf-16"), "UTF-8"),
        "huge": (b"#" * (1 << 20) + b"\n", "longer"),
    }
    for name, (data, word) in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(PolicyRefusal, match=word) as refused:
            load_policy(tmp_path / name)
        assert refused.value.slug == "policy_file"
    for place, word in ((tmp_path, "not a file"), (tmp_path / "none.yaml", "no such"), ("a\0b", "no such")):
        with pytest.raises(PolicyRefusal, match=word):
            load_policy(place)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(PolicyRefusal, match="empty"):
        load_policy(tmp_path / "empty")


def test_two_keys_of_one_table_to_two_units_are_ambiguous() -> None:
    found = changed("{patient_id: patients.patient_id}", "{sender: patients.patient_id, receiver: patients.patient_id}")
    assert [path for path, _ in found] == ["$.tables.visits.foreign_keys"]
    assert "visits.sender -> patients and visits.receiver -> patients" in found[0][1]


def test_the_refusal_carries_all_problems() -> None:
    text = CLINIC.replace("epsilon: 10,", "epsilon: -1,").replace("lower: 0, upper: 120", "lower: 9, upper: 1")
    with pytest.raises(PolicyRefusal) as refused:
        parse_policy(text, "clinic.yaml")
    error = refused.value
    assert error.slug == "policy_invalid"
    assert not error.charged
    assert error.path == "$.budget.epsilon"
    assert [path for path, _ in error.problems] == ["$.budget.epsilon", "$.tables.patients.columns.age.lower"]
    assert "clinic.yaml" in error.message
    assert "$.budget.epsilon" in error.message
    assert "1 more" in error.message


# --- The permitted settings of a source follow from its kind alone ----------------------------------------------------


SHOP = load_policy(POLICIES / "shop.yaml")


@pytest.mark.parametrize(
    ("source", "accepted"),
    [
        ("duckdb:///rows.duckdb", True),
        ("duckdb:///", False),
        ("duckdb://host/rows.duckdb", False),
        ("duckdb:///rows.duckdb?access_mode=read_write", False),
        ("duckdb:///rows\0.duckdb", False),
        ("postgresql://reader@host/db?sslmode=verify-full", True),
        ("postgres://reader@host/db", False),
        ("POSTGRESQL://host/db", False),
        ("spark://local[2]", True),
        ("s3a://spark://bucket", False),
        ("duckdb", False),
        ("rows.parquet", False),
    ],
)
def test_urls_of_sources_are_those_of_a_kind(source: str, accepted: bool) -> None:
    assert is_source_url(source) is accepted


def test_what_is_no_known_server_is_read_from_local_files() -> None:
    for source in (None, "rows.parquet", "duckdb:///rows.duckdb", "oracle://host/db", "SPARK://host"):
        assert source_kind(source) is DUCKDB and not source_kind(source).is_server
    for scheme in ("postgresql", "spark"):
        kind = source_kind(f"{scheme}://host:1")
        assert kind is SOURCE_KINDS[scheme] and kind.is_server and scheme_of(f"{scheme}://host:1") == scheme


def _over(source: str | None, into: str | None) -> Policy:
    return replace(SHOP, source=source, prepare=Preparation(into=into), folder=Path("/data"))


@pytest.mark.parametrize("source", ["duckdb:///clinic.duckdb", "postgresql://reader@host/db", "spark://host:7077"])
def test_columns_have_other_names_in_files_and_in_duckdb_alone(source: str) -> None:
    text = CLINIC.replace("lower: 0, upper: 120", "lower: 0, upper: 120, from: a.b")
    problems = dict(policy_problems(text.replace("duckdb:///clinic.duckdb", source)))
    renamed = problems.get("$.tables.patients.columns.age.from", "")
    assert ("servers rename columns in a view" in renamed) == (not source.startswith("duckdb"))


def test_paths_of_sources_and_copies_start_at_the_folder_of_the_policy() -> None:
    assert _over("duckdb:///rows.duckdb", None).source_path() == "/data/rows.duckdb"
    assert _over("visits/*.parquet", None).source_path() == "/data/visits/*.parquet"
    assert _over("duckdb:////rows.duckdb", None).source_path() == "/rows.duckdb"
    for server in ("postgresql://host/db", "spark://host:7077", None):
        assert _over(server, None).source_path() is None
    assert _over("spark://host:7077", "copies/here").copies_folder() == "/data/copies/here"
    assert _over("spark://host:7077", "s3a://bucket/copies").copies_folder() == "s3a://bucket/copies"
    for source, into in (("spark://host:7077", None), ("postgresql://host/db", "copies"), (None, "copies/here")):
        assert _over(source, into).copies_folder() is None


def test_copies_are_a_schema_or_a_folder_as_the_server_has_them() -> None:
    schema, folder = (SOURCE_KINDS[scheme].copies for scheme in ("postgresql", "spark"))
    assert schema is not None and folder is not None
    assert schema.accepts("dpsql_copies") and not schema.accepts("dpsql/copies") and not schema.accepts("a" * 64)
    assert folder.accepts("./copies") and folder.accepts("s3a://bucket/copies") and not folder.accepts("copies")
    assert schema.has_role and not folder.has_role
