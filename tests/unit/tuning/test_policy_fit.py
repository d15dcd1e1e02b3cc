"""`dpsql fit`: planted wrong bounds, domains and caps are found, one person moves each histogram by one, and noise is as claimed."""

import json
import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import duckdb
import psycopg
import pytest
from click.testing import CliRunner
from support.gates import NoiselessGate
from support.postgres_source import Server, server
from support.released_blocks import Keyed
from support.spark_source import show, spark

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.admin.policy_text import edited
from dpsql.frontends.cli import cli
from dpsql.frontends.python.dbapi import connect
from dpsql.noise.perturb import Gate
from dpsql.policy import load_policy
from dpsql.pricing.options import Reuse
from dpsql.session.session import open_session
from dpsql.tuning.policy_fit import Fitting, PolicyFit

__all__ = ["server", "spark"]
POLICY = """
dataset: ward
source: duckdb:///ward.duckdb
privacy_unit: {table: people, column: person}
budget: {epsilon: 1000, delta: 1e-5, accountant: zcdp}
per_query: {epsilon: 20, delta: 1e-8}
ledger: sqlite:///ledger.db
tables:
  people:
    max_rows: 1
    primary_key: [person]
    columns:
      person: {type: integer, nullable: false}
      age: {type: integer, lower: 18, upper: 80, nullable: false}  # adults
      sex: {type: text, domain: [f, m]}
      born: {type: date, lower: 1900-01-01, upper: 2020-12-31}
  stays:
    max_rows: 4
    max_count: 3
    max_values: 5
    max_groups: 1
    primary_key: [stay]
    foreign_keys: {person: people.person}
    columns:
      stay: {type: integer, nullable: false}
      ward:
        type: text
        domain:
        - north  # both
        - "south"
      cost: {type: real, lower: -10, upper: 100, max_total: 50}
  labs:
    max_rows: 100
    foreign_keys: {stay: stays.stay}
    columns: {value: {type: real}}
"""
Rows = dict[str, list[tuple[object, ...]]]


def planted(people: int, seed: int) -> Rows:
    """Return rows with ages above their bound, a sex and a ward outside of their domains, missing values, and people with ten
    stays."""
    rng = random.Random(seed)
    rows: Rows = {"people": [], "stays": [], "labs": []}
    for person in range(people):
        age = 100 if person % 5 == 0 else 20 + person % 50
        sex = "x" if person % 4 == 0 else None if person % 10 == 9 else "f"
        rows["people"].append((person, age, sex, date(1950, 1, 1) + timedelta(days=person % 9000)))
        for _ in range(10 if person % 3 == 0 else 2):
            stay = len(rows["stays"])
            ward = "west" if person % 5 == 1 else "north"
            rows["stays"].append((stay, person, ward, None if person % 7 == 0 else rng.uniform(-40, 20)))
            rows["labs"].append((stay, rng.uniform(3, 60)))
    return rows


TYPES = {
    "people": "person BIGINT, age BIGINT, sex TEXT, born DATE", "stays": "stay BIGINT, person BIGINT, ward TEXT, cost DOUBLE PRECISION",
    "labs": "stay BIGINT, value DOUBLE PRECISION",
}  # fmt: skip


def write(folder: Path, rows: Rows) -> Path:
    """Write the rows and the policy to a folder."""
    with duckdb.connect(str(folder / "ward.duckdb")) as con:
        con.begin()
        for name, values in rows.items():
            con.execute(f"CREATE OR REPLACE TABLE {name} ({TYPES[name]})")
            if values:
                marks = ", ".join(["(" + ", ".join("?" * len(values[0])) + ")"] * len(values))
                con.execute(f"INSERT INTO {name} VALUES {marks}", [value for row in values for value in row])
        con.commit()
    (folder / "ward.yaml").write_text(POLICY)
    return folder / "ward.yaml"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    policy = write(tmp_path, planted(300, 1))
    open_session(policy, create_ledger=True).close()
    return policy


Measured = Callable[[Fitting], PolicyFit]


@pytest.fixture
def exactly() -> Iterator[Measured]:
    """Yield a function that measures without noise."""
    opened: list[Fitting] = []

    def measure(fitting: Fitting) -> PolicyFit:
        opened.append(fitting)
        fitting.session.context = replace(fitting.session.context, gate=NoiselessGate(2))
        return fitting.measure()

    yield measure
    for fitting in opened:
        fitting.close()


def require_found(fitted: PolicyFit, rows: Rows) -> None:
    """Compare with a count of people in Python, and with what has to be proposed."""
    persons = {finding.kind: {} for finding in fitted.findings}
    for finding in fitted.findings:
        persons[finding.kind][finding.table, finding.column] = round(finding.persons)
    people, stays = rows["people"], rows["stays"]
    assert persons["above"]["people", "age"] == sum(row[1] > 80 for row in people)
    assert persons["outside"]["people", "sex"] == sum(row[2] == "x" for row in people)
    assert persons["missing"]["people", "sex"] == sum(row[2] is None for row in people)
    assert persons["rows"]["stays", ""] == sum(row[0] % 3 == 0 for row in people)
    assert persons["outside"]["stays", "ward"] == len({row[1] for row in stays if row[2] == "west"})
    costs: dict[object, list[float]] = {row[1]: [] for row in stays if row[3] is not None}
    for _, person, _, cost in stays:
        if cost is not None:
            costs[person].append(cost)  # type: ignore[arg-type]
    assert persons["max_count"]["stays", ""] == persons["rows"]["stays", ""]
    totals = [sum(abs(max(cost, -10)) for cost in values) for values in costs.values()]
    assert 0 < persons["max_total"]["stays", "cost"] == sum(total > 50 for total in totals)
    assert persons["max_values"]["stays", "cost"] == sum(len(set(values)) > 5 for values in costs.values()) > 0
    assert persons["max_groups"]["stays", "ward"] == 0
    assert persons["missing"]["stays", "cost"] == len({row[1] for row in stays if row[3] is None})
    assert persons["below"]["stays", "cost"] == len({row[1] for row in stays if row[3] is not None and row[3] < -10})
    assert persons["above"]["stays", "cost"] == persons["below"]["people", "age"] == persons["rows"]["people", ""] == 0
    assert fitted.persons == {"people": len(people), "stays": len(people), "labs": len(people)}
    proposed = {
        (*(part for part in change.place[1:] if part != "columns"),): change.value for change in fitted.proposals
    }
    assert proposed["people", "sex", "domain"] == ["x"] and proposed["stays", "ward", "domain"] == ["west"]
    assert 100 <= proposed["people", "age", "upper"] <= 120  # type: ignore[operator]
    assert proposed["stays", "max_rows"] == 16 and proposed["labs", "max_rows"] == 16
    assert proposed["stays", "max_count"] == 16 and proposed["stays", "cost", "max_total"] in (100, 200)
    assert -67 <= proposed["stays", "cost", "lower"] <= -37 and proposed["stays", "cost", "upper"] < 50  # type: ignore[operator]
    assert (proposed["labs", "value", "lower"], proposed["labs", "value", "upper"]) == (2, 64)


def test_what_is_planted_is_found(place: Path, exactly: Measured) -> None:
    require_found(exactly(Fitting(load_policy(place))), planted(300, 1))


def test_a_reason_has_the_share_that_is_shown(place: Path, exactly: Measured) -> None:
    """Also where counts of single bins are hidden by noise."""
    fitted = exactly(Fitting(load_policy(place), epsilon=Fraction(1)))
    shares = {finding.kind: finding.share for finding in fitted.findings if finding.column == "age"}
    reason = next(change.why for change in fitted.proposals if change.place[-2:] == ("age", "upper"))
    assert reason.startswith(f"{shares['above']:.1%} of the persons")
    narrowed = [change.why for change in fitted.proposals if "look empty" in change.why]
    assert narrowed and all(re.search(r"hides up to about [1-9]\d* persons", reason) for reason in narrowed)


def test_what_is_planted_is_found_on_postgresql(server: Server, place: Path, exactly: Measured) -> None:
    url = server.database()
    with psycopg.connect(url, autocommit=True) as con:
        for name, values in planted(300, 1).items():
            con.execute(f"CREATE TABLE {name} ({TYPES[name]})")  # type: ignore[arg-type]
            with con.cursor() as cursor:
                marks = ", ".join(["%s"] * len(values[0]))
                cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", values)  # type: ignore[arg-type]
    require_found(exactly(Fitting(replace(load_policy(place), source=url))), planted(300, 1))


def test_what_is_planted_is_found_on_spark(spark: object, place: Path, exactly: Measured) -> None:
    policy = load_policy(place)
    with duckdb.connect(str(place.with_name("ward.duckdb"))) as con:
        for name in policy.tables:
            show(spark, f"fit_{name}", con.execute(f"SELECT * FROM {name}").to_arrow_table())
    tables = {name: replace(table, source=f"global_temp.fit_{name}") for name, table in policy.tables.items()}
    require_found(exactly(Fitting(replace(policy, source="spark://local[2]", tables=tables))), planted(300, 1))


def test_one_person_moves_each_histogram_by_one(place: Path) -> None:
    """Also a person with 150 stays, all of whose values are missing or outside, in a table whose cap is 4."""
    rows = planted(6, 2)
    stays = [(1000 + number, 3, "east", [None, -500.0, 1e9][number % 3]) for number in range(150)]
    rows["stays"] += stays
    rows["labs"] += [(1000, math.inf), (1001, -1e30)]
    whole = counts(place, rows)
    moved = []
    for person in range(6):
        lacking = {row[0] for row in rows["stays"] if row[1] == person}
        fewer = {
            "people": [row for row in rows["people"] if row[0] != person],
            "stays": [row for row in rows["stays"] if row[1] != person],
            "labs": [row for row in rows["labs"] if row[0] not in lacking],
        }
        found = counts(place, fewer)
        keys = whole.keys() | found.keys()
        for histogram in {number for number, *_ in keys}:
            differences = [whole.get(key, 0) - found.get(key, 0) for key in keys if key[0] == histogram]
            moved.append(sum(map(abs, differences)))
    assert max(moved) == 1 and sum(moved) > 6 * 10


def counts(place: Path, rows: Rows) -> dict[tuple[object, ...], int]:
    """Return the exact histograms in public bins: (number, bin, None) to the count of people."""
    write(place.parent, rows)
    fitting = Fitting(load_policy(place), epsilon=Fraction(1))
    try:
        fitting.session.context = replace(fitting.session.context, gate=NoiselessGate(2))
        planned = replace(fitting.planned, options=replace(fitting.planned.options, reuse=Reuse.OFF))
        return {tuple(row[:3]): row[3] for row in fitting.session.answer(planned).rows() if row[2] is None and row[3]}
    finally:
        fitting.close()


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_the_noise_has_the_claimed_scale_and_price(place: Path, kind: str) -> None:
    """Measurements of empty tables: the variance is the claimed one, and would be distinguished from that at 0.8 of the scale; all
    histograms together cost what one question may."""
    write(place.parent, {name: [] for name in TYPES})
    policy = load_policy(place)
    policy = replace(
        policy, budget=replace(policy.budget, accountant=kind), ledger=f"sqlite:///{place.parent}/{kind}.db"
    )
    open_session(policy, create_ledger=True).close()
    fitting = Fitting(policy, epsilon=Fraction(1, 2))
    try:
        asked = fitting.session.planner.accountant.request(Fraction(1, 2))
        charged = fitting.planned.price.loss
        limits, spent = (fitting.session.planner.accountant.units(loss) for loss in (asked, charged))
        assert all(0.9 * limits[name] < amount <= limits[name] for name, amount in spent.items() if name != "delta")
        fitting.session.context = replace(fitting.session.context, gate=Gate())
        planned = replace(fitting.planned, options=replace(fitting.planned.options, reuse=Reuse.OFF))
        drawn = [row[3] for _ in range(9) for row in fitting.session.answer(planned).rows() if row[2] is None]
        noise = fitting.planned.price.blocks[0].noise.terms[0].noise
        spread = math.sqrt((6 - 1) / len(drawn))
        found = sum(value * value for value in drawn) / len(drawn) / noise.standard_deviation() ** 2
        assert abs(found - 1) < 6 * spread < 1 - 0.8**2
    finally:
        fitting.close()


def test_noise_alone_finds_and_proposes_nothing(place: Path) -> None:
    """Without people, real noise in all bins is taken for nobody (but in one of 1,000 histograms)."""
    write(place.parent, {name: [] for name in TYPES})
    fitting = Fitting(load_policy(place), epsilon=Fraction(1, 2))
    fitting.session.context = replace(fitting.session.context, gate=Gate(Keyed("fit")))
    fitted = fitting.measure()
    fitting.close()
    assert not fitted.proposals and not any(finding.persons for finding in fitted.findings)


def test_values_that_cannot_be_read_are_counted_apart(tmp_path: Path, exactly: Measured) -> None:
    lines = [f"{number},{'n/a' if number % 4 == 0 else '' if number % 5 == 0 else number}" for number in range(200)]
    (tmp_path / "people.csv").write_text("\n".join(["person,age", *lines]) + "\n")
    text = POLICY[: POLICY.index("tables:")].replace("source: duckdb:///ward.duckdb\n", "")
    text += "tables: {people: {source: people.csv, max_rows: 1, primary_key: [person], columns: {person: {type: integer}, age: {type: integer, lower: 0, upper: 200}}}}"
    (tmp_path / "p.yaml").write_text(text)
    open_session(tmp_path / "p.yaml", create_ledger=True).close()
    fitted = exactly(Fitting(load_policy(tmp_path / "p.yaml")))
    persons = {finding.kind: finding.persons for finding in fitted.findings}
    assert (persons["unreadable"], persons["missing"]) == (50, 30) and not fitted.proposals


def test_whole_numbers_are_added_to_a_domain_as_numbers(tmp_path: Path, exactly: Measured) -> None:
    lines = [f"{number},{(1, 2, 10, 9)[number % 4]}" for number in range(200)]
    (tmp_path / "people.csv").write_text("\n".join(["person,plan", *lines]) + "\n")
    text = POLICY[: POLICY.index("tables:")].replace("source: duckdb:///ward.duckdb\n", "")
    text += (
        "tables: {people: {source: people.csv, max_rows: 1, primary_key: [person], columns: {person: {type: integer}, "
    )
    (tmp_path / "p.yaml").write_text(text + "plan: {type: integer, domain: [1, 2]}}}}")
    open_session(tmp_path / "p.yaml", create_ledger=True).close()
    assert [(p.place[-1], p.value) for p in exactly(Fitting(load_policy(tmp_path / "p.yaml"))).proposals] == [
        ("domain", [9, 10])
    ]


@pytest.mark.parametrize("days", ["2024-06-01T23:30:00+02:00;2024-06-01T23:30:00Z", "1.6.2024;01/06/2024 23:30:00"])
def test_what_the_policy_reads_from_texts_is_not_unreadable(tmp_path: Path, exactly: Measured, days: str) -> None:
    cells = f"1.234,5;12,7;yes;{days}"
    lines = [f"{number};{cells}" for number in range(100)] + [f"{number};x;x;x;x;x" for number in range(100, 150)]
    (tmp_path / "people.csv").write_text("\n".join(["person;pay;points;member;day;seen", *lines]) + "\n")
    text = POLICY[: POLICY.index("tables:")].replace("source: duckdb:///ward.duckdb\n", "timezone: Europe/Berlin\n")
    types = {
        "person": "integer",
        "pay": "real",
        "points": "integer",
        "member": "boolean",
        "day": "date",
        "seen": "timestamp",
    }
    columns = ", ".join(f"{name}: {{type: {type_}}}" for name, type_ in types.items())
    text += "tables: {people: {source: people.csv, csv: {delimiter: ;, decimal: ',', days: dmy}, max_rows: 1, primary_key: [person], "
    (tmp_path / "p.yaml").write_text(text + f"columns: {{{columns}}}}}}}")
    open_session(tmp_path / "p.yaml", create_ledger=True).close()
    unreadable = {
        finding.column: finding.persons
        for finding in exactly(Fitting(load_policy(tmp_path / "p.yaml"))).findings
        if finding.kind == "unreadable"
    }
    assert unreadable == dict.fromkeys(list(types)[1:], 50)
    (tmp_path / "p.yaml").write_text(
        (tmp_path / "p.yaml").read_text().replace("person: {type: integer", "person: {type: text")
    )
    checked = CliRunner().invoke(cli, ["check", str(tmp_path / "p.yaml")]).output
    named = checked.partition("under it any more: ")[2].partition("\n")[0].split(", ")
    assert named != [""] and {name.partition(" ")[0].partition(".")[0] for name in named} == {"people"}


def test_the_command_shows_the_price_and_changes_the_policy(place: Path) -> None:
    """The price is asked for; the difference is shown; `--apply` writes it, and comments stay; measuring again is free."""
    run, arguments = CliRunner(), ["fit", "-p", str(place), "--table", "people", "--table", "stays"]
    asked = run.invoke(cli, arguments, input="n\n")
    assert "of the budget" in asked.stderr and asked.stderr.endswith("nothing was charged\n") and not asked.stdout
    shown = run.invoke(cli, [*arguments, "--epsilon", "20"])
    assert shown.exit_code == 0 and "domain with west added" in shown.stdout and place.read_text() == POLICY
    history = run.invoke(cli, ["budget", "history", "-p", str(place)]).stdout.splitlines()
    assert len(history) == 3 and history[2].endswith("dpsql fit of people: age, born, sex; stays: cost, ward")
    (whole,) = json.loads(run.invoke(cli, ["budget", "history", "-p", str(place), "-f", "json"]).stdout)
    assert whole["question"].startswith("SELECT 0 AS histogram") and len(whole["question"]) > 2000
    facts = json.loads(run.invoke(cli, [*arguments, "--epsilon", "20", "-f", "json"]).stdout)
    assert facts["price"] == "nothing" and facts["diff"] in shown.stdout
    applied = run.invoke(cli, [*arguments, "--epsilon", "20", "--apply"])
    assert applied.exit_code == 0 and "charged: nothing" in applied.stderr
    text, policy = place.read_text(), load_policy(place)
    assert (
        "# adults" in text
        and "# both" in text
        and policy.tables["stays"].columns["ward"].domain == ("north", "south", "west")
    )
    assert policy.tables["stays"].bounds.max_rows == 16
    checked = run.invoke(cli, ["check", str(place)])
    assert checked.exit_code == 0 and "the policy has changed since" not in checked.output
    unbounded = run.invoke(cli, [*arguments[:3], "--table", "labs", "--epsilon", "20"]).stdout
    assert "proposed: labs.value upper " in unbounded and ".0: " not in unbounded
    for wrong in (["--table", "nobody"], ["--analyst", "ann"], ["--epsilon", "much"], ["--apply", "SELECT 1"]):
        assert run.invoke(cli, ["fit", "-p", str(place), *wrong]).exit_code == 2


def test_what_fails_after_the_measurement_says_that_the_charge_stays(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise refuse("policy_invalid", origin="p.yaml", path="$", sentence="is broken", more="")

    monkeypatch.setattr("dpsql.frontends.admin.policy_text.policy_diff", broken)
    arguments = ["fit", "-p", str(place), "--table", "people", "--epsilon", "20"]
    first, again = (CliRunner().invoke(cli, arguments).exception for _ in range(2))
    assert isinstance(first, Error) and first.charged and "the charge stays" in first.text()
    assert isinstance(again, Error) and not again.charged, "the same measurement again is free"


def test_only_the_owner_fits_a_policy(place: Path) -> None:
    place.write_text(POLICY.replace("tables:\n", "analysts: {ann: {epsilon: 500}}\ntables:\n", 1))
    with connect(place, analyst="ann") as connection, pytest.raises(Error) as refusal:
        connection.fit()
    assert refusal.value.slug == "fit_owner"
    with connect(place) as connection:
        assert connection.fit().proposals
    public = replace(load_policy(place), tables={})
    with pytest.raises(Error) as refusal:
        Fitting(public)
    assert refusal.value.slug == "fit_tables"


@pytest.mark.parametrize(("before", "value", "after"), [
    ("{lower: 1, upper: 2}", 5, "{lower: 1, upper: 5}"), ("{lower: 1}", 5, "{lower: 1, upper: 5}"), ("{}", 5, "{upper: 5}"),
    ("\n  lower: 1 # a\n  b: 2", 5, "\n  upper: 5\n  lower: 1 # a\n  b: 2"), ("{upper: [a]}", ["no"], '{upper: [a, "no"]}'),
    ("{upper: []}", ["b: c"], '{upper: ["b: c"]}'), ("\n  upper:\n    - a # x\n    - b # y", ["c"], "\n  upper:\n    - a # x\n    - b # y\n    - c"),
    ("\n  upper: 1 # one\n", date(2024, 2, 1), "\n  upper: 2024-02-01 # one\n"), ("{upper: 1}", Fraction(1, 8), "{upper: 0.125}"),
])  # fmt: skip
def test_an_edit_leaves_the_rest_of_the_text(before: str, value: object, after: str) -> None:
    assert edited(f"a: {before}", [(("a", "upper"), value)]) == f"a: {after}"
