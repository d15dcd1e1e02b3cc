"""The identity of a release: every kind of edit of a policy either makes a stored release unusable or does not, and why.

The tables below name every field of the policy's dataclasses, so that a new field fails the test until its row is written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import pytest

from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.errors.exceptions import Refusal
from dpsql.planning.planner import Planner
from dpsql.policy import Policy, PolicyColumn, Table, parse_policy
from dpsql.policy.types import ContributionBounds, CsvDialect, PrivacyUnit
from dpsql.policy.versions import changed
from dpsql.pricing.options import Options
from dpsql.privacy.loss import Neighbours

POLICY = """
dataset: clinic
source: duckdb:///clinic.duckdb
privacy_unit: {table: people, column: person}
budget: {epsilon: 100, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 1e-9}
ledger: sqlite:///ledger.db
analysts: {ann: {epsilon: 50}}
tables:
  people:
    max_rows: 1
    primary_key: [person]
    columns: {person: {type: integer}, age: {type: integer, lower: 0, upper: 99}}
  cases:
    max_rows: 9
    primary_key: [case]
    foreign_keys: {person: people.person}
    columns: {case: {type: integer}, person: {type: integer}, height: {type: real, lower: 0, upper: 3}}
  visits:
    max_rows: 5
    primary_key: [visit]
    foreign_keys: {case: cases.case}
    columns:
      visit: {type: integer}
      case: {type: integer}
      kind: {type: text, domain: [in, out]}
      cost: {type: real, lower: 0, upper: 1000}
      nights: {type: integer, lower: 0, upper: 30}
  beds:
    max_rows: 2
    foreign_keys: {person: people.person}
    columns: {person: {type: integer}, floor: {type: integer, lower: 0, upper: 9}}
"""
QUESTIONS = (
    "SELECT kind, SUM(cost) FROM visits GROUP BY kind",
    "SELECT kind, MEDIAN(cost) FROM visits GROUP BY kind",
    "SELECT kind, AVG(cost) FROM (SELECT * FROM visits) AS v GROUP BY kind",
    "SELECT COUNT(*) FROM visits WHERE cost > 3 AND kind = 'in'",
    "SELECT COUNT(*) FROM (SELECT DISTINCT kind, cost FROM visits) AS t",
)
"""Questions that read visits.cost, and of other columns only visits.kind and those on the way to the unit."""
COLUMN_EDITS: Mapping[str, Any] = {
    "name": None,  # another column: the question no longer has its meaning
    "type": None,  # the other type of numbers
    "lower": Fraction(1),
    "upper": Fraction(500),
    "domain": (2,),
    "nullable": False,
    "description": "what it cost",
    "max_total": Fraction(7),
    "outside": Fraction(5),
    "source": "price",
    "timezone": "Europe/Berlin",
    "scale": 2,
}
"""Another value of each field of a column."""
OF_A_KEY = {"type", "source", "timezone"}
"""What a column on the way to the unit means for its comparisons with others; the rest concerns only questions about it."""
TABLE_EDITS: Mapping[str, tuple[Any, bool, bool]] = {
    "source": ("main.other", True, True),
    "schema": ("old", True, True),
    "csv": (CsvDialect(delimiter=";"), True, True),
    "append_only": (True, True, True),
    "bounds": (ContributionBounds(max_rows=4), True, False),
    "primary_key": ((), False, False),
    "unique": ((("cost",),), False, False),
    "max_multiplicity": ({("cost",): 3}, False, False),
    "description": ("said otherwise", False, False),
    "unprotected": (("cost",), False, False),
    "same_unit": ({"cost": ("visits", "cost")}, False, False),
}
"""Another value of each field, whether that charges a question about the table again, and one about a table below it."""
NO_TABLE_EDITS = {"name", "public", "columns", "foreign_keys", "rows", "row_count"}
"""Covered by `other_edits`, or (rows of public tables) by the groups of a block."""
POLICY_EDITS: Mapping[str, Any] = {
    "dataset": "other", "source": "duckdb:///other.duckdb", "privacy_unit": PrivacyUnit("cases", "case"),
    "neighbours": Neighbours.CHANGE_ONE,
}  # fmt: skip
"""Fields of the policy that are a part of every release."""
NOT_READ = {
    "budget", "per_query", "ledger", "analysts", "session", "description", "projects", "reuse", "timing", "constant_seconds",
    "data_version", "witness", "log_sql", "mechanisms", "prepare", "store", "folder", "origin", "asker", "tables",
}  # fmt: skip
"""Fields that decide what may be spent and who asks, or are covered elsewhere: noise and caps by the block, versions by the data."""


without_tables = cache(duckdb.connect)


def keys(policy: Policy) -> list[tuple[str, ...]]:
    """Return the keys of the releases of all questions under a policy."""
    planner = Planner(policy, DuckDBEngine(without_tables(), policy, "test", owned=True))
    options = Options.of_policy(policy)
    return [planner.plan(planner.parse(sql, None), options, False).keys for sql in QUESTIONS]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return parse_policy(POLICY)


def with_table(policy: Policy, table: str, **changes: Any) -> Policy:
    return replace(policy, tables={**policy.tables, table: replace(policy.tables[table], **changes)})


def with_column(policy: Policy, table: str, column: str, **changes: Any) -> Policy:
    columns = policy.tables[table].columns
    return with_table(policy, table, columns={**columns, column: replace(columns[column], **changes)})


def column_edits(policy: Policy) -> Iterator[tuple[str, Policy, bool]]:
    """Yield each edit of a column with its name, the policy, and whether the release reads what it changes."""
    on_the_way = [("visits", "case"), ("cases", "case"), ("cases", "person"), ("people", "person")]
    unread = [("visits", "nights"), ("visits", "visit"), ("cases", "height"), ("people", "age"), ("beds", "floor")]
    for name, value in COLUMN_EDITS.items():
        for table, column in [("visits", "cost"), *on_the_way, *unread] if name != "name" else []:
            read = (column == "cost" and name != "description") or ((table, column) in on_the_way and name in OF_A_KEY)
            other = "integer" if policy.tables[table].columns[column].type == "real" else "real"
            edited = with_column(policy, table, column, **{name: other if name == "type" else value})
            yield f"{table}.{column}.{name}", edited, read


def table_edits(policy: Policy) -> Iterator[tuple[str, Policy, bool]]:
    for name, (value, read, above) in TABLE_EDITS.items():
        for table, charges in (("visits", read), ("cases", above), ("people", above), ("beds", False)):
            yield f"{table}.{name}", with_table(policy, table, **{name: value}), charges


def other_edits(policy: Policy) -> Iterator[tuple[str, Policy, bool]]:
    """Yield new and lost tables and columns, another way to the unit, and edits of the whole policy."""
    new = PolicyColumn("extra", "integer", Fraction(0), Fraction(1))
    for place in (0, 9):  # the first or the last column
        for table in ("visits", "cases", "people", "beds"):
            columns = list(policy.tables[table].columns.items())
            columns.insert(place, ("extra", new))
            yield f"{table}.extra at {place}", with_table(policy, table, columns=dict(columns)), False
    lost = {name: column for name, column in policy.tables["visits"].columns.items() if name != "nights"}
    yield "visits.nights lost", with_table(policy, "visits", columns=lost), False
    yield "new table", replace(policy, tables={**policy.tables, "rooms": Table("rooms", True, {"extra": new})}), False
    yield "lost table", replace(policy, tables={k: t for k, t in policy.tables.items() if k != "beds"}), False
    yield "another way", with_table(policy, "visits", foreign_keys={"visit": ("people", "person")}), True
    for name, value in POLICY_EDITS.items():
        if name != "privacy_unit":  # another unit needs other keys
            yield name, replace(policy, **{name: value}), True


def test_every_field_of_the_policy_has_its_row() -> None:
    assert {field.name for field in fields(PolicyColumn)} == set(COLUMN_EDITS)
    assert {field.name for field in fields(Table)} == set(TABLE_EDITS) | NO_TABLE_EDITS
    assert {field.name for field in fields(Policy)} == set(POLICY_EDITS) | NOT_READ


@pytest.mark.parametrize("edits", [column_edits, table_edits, other_edits])
def test_an_edit_charges_again_exactly_what_reads_it(policy: Policy, edits: Any) -> None:
    before = keys(policy)
    for name, edited, charges in edits(policy):
        try:
            after = keys(edited)
        except Refusal as refusal:  # nothing is charged
            assert charges, (name, refusal)
            continue
        same = [old == new for old, new in zip(before, after, strict=True)]
        assert same == [not charges] * len(same), (name, same)


def test_what_was_read_is_named(policy: Policy) -> None:
    """`changed` names the part of the policy that makes a stored release unusable."""
    reads = {"visits": "", "visits.cost": "", "beds.floor": "", "gone": "", "visits.gone": ""}
    assert changed(policy, reads) == list(reads)
