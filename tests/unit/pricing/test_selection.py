"""The count that admits private keys: that of the rows, released anyway, or one of the units, paid for separately."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from support.database_files import create_database

from dpsql.noise.group_layout import Groups, Int128
from dpsql.noise.perturb import Gate
from dpsql.noise.samplers import Integers
from dpsql.pricing.pricing import PricedBlock, shown_half_of_the_time
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Noise, Selection
from dpsql.privacy.mechanisms.partition_selection import Threshold, TruncatedGeometric, WeightedThreshold, optimal
from dpsql.session.session import Session, open_session

POLICY = """
dataset: keys
source: duckdb:///keys.duckdb
privacy_unit: {{table: t, column: person}}
neighbours: {neighbours}
budget: {{epsilon: 100, delta: 1e-5, accountant: {accountant}}}
per_query: {{epsilon: 1, delta: 1e-6}}
ledger: sqlite:///{name}.db
tables:
  t:
    max_rows: {rows}
    columns:
      person: {{type: integer, nullable: false}}
      k: {{type: integer, nullable: false}}
      x: {{type: real, lower: 0, upper: 10, nullable: false}}
"""
COUNT = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"


def session(
    folder: Path, rows: int, accountant: str = "pure", neighbours: str = "add_remove", nullable: bool = False
) -> Session:
    """Open a session in which key 1 has 2,000 rows of 1,000 persons, and key 2 has all rows of one person."""
    database = folder / "keys.duckdb"
    if not database.exists():
        create_database(
            database,
            "CREATE TABLE t AS SELECT i // 2 AS person, 1 AS k, 5.0 AS x FROM range(2000) r(i) "
            "UNION ALL SELECT 5000, 2, 5.0 FROM range(12)",
        )
    name = f"{accountant}-{neighbours}-{rows}"
    path = folder / f"{name}.yaml"
    text = POLICY.format(accountant=accountant, neighbours=neighbours, rows=rows, name=name)
    path.write_text(text.replace("k: {type: integer, nullable: false}", "k: {type: integer}") if nullable else text)
    return open_session(path, create_ledger=True)


def priced(session: Session, sql: str) -> PricedBlock:
    (block,) = session.planner.plan(session.planner.parse(sql, None), session.options, True).price.blocks
    return block


@pytest.mark.parametrize("neighbours", ["add_remove", "change_one"])
def test_released_rows_admit_private_keys_for_delta_alone(tmp_path: Path, neighbours: str) -> None:
    block = priced(session(tmp_path, 12, neighbours=neighbours), COUNT)
    (term,), rule = block.noise.terms, block.noise.selection
    factor = 2 if neighbours == "change_one" else 1
    assert isinstance(rule, Threshold) and rule.column == term.name
    assert term.noise.loss.epsilon == block.loss.epsilon == 1, "no part of epsilon goes to selection"
    assert rule.l0 == 12 * factor
    # One person divides twelve rows among unique keys: each is shown if its noise reaches the threshold.
    delta = Fraction(1, 10**6)
    assert factor * worst(12, rule.noise, rule.tau) <= delta
    assert neighbours == "change_one" or worst(12, rule.noise, rule.tau - 2) > delta, (
        "the threshold is the lowest but one"
    )


def worst(rows: int, noise: Noise, tau: int) -> Fraction:
    """Return the largest sum of tails over all divisions of `rows` rows among keys."""
    best = {0: Fraction(0)}
    for left in range(1, rows + 1):
        best[left] = max(noise.upper_tail(tau - count) + best[left - count] for count in range(1, left + 1))
    return best[rows]


def test_units_admit_private_keys_where_one_person_may_have_many_rows(tmp_path: Path) -> None:
    wide = session(tmp_path, 4_000)
    wide.execute("SET dp.max_groups = 2")
    block = priced(wide, COUNT)
    assert block.noise.selection is not None and block.noise.selection.column == "sel"
    size, counted = shown_half_of_the_time(block)
    assert counted == "units" and size < 100


@pytest.mark.parametrize(
    "sql", ["SELECT k, SUM(x) FROM t GROUP BY k", "SELECT k, COUNT(*) FILTER (WHERE x > 5) FROM t GROUP BY k"]
)
def test_only_a_count_of_all_rows_admits_private_keys(tmp_path: Path, sql: str) -> None:
    block = priced(session(tmp_path, 12), sql)
    assert block.noise.selection is not None and block.noise.selection.column == "sel"


@pytest.mark.parametrize("accountant", ["pure", "zcdp"])
@pytest.mark.parametrize("rows", [1, 3, 12, 200])
def test_no_key_of_single_rows_is_shown_less_often_than_by_units(tmp_path: Path, accountant: str, rows: int) -> None:
    """For a query that counts only rows, a key is shown with as few rows as the number of units with which the optimal rule, at
    half of the budget and with equal weights for all units, shows a key."""
    asked = session(tmp_path, rows, accountant)
    size, _ = shown_half_of_the_time(priced(asked, COUNT))
    part = priced(asked, "SELECT k, SUM(x) FROM t GROUP BY k").noise.terms[0].noise.loss
    allowed = PrivacyLoss(
        None if part.rho is not None and accountant == "zcdp" else part.epsilon, Fraction(1, 10**6), part.rho
    )
    assert size <= optimal("sel", rows, allowed).half_point()


@pytest.mark.parametrize(("accountant", "rows", "column"), [("pure", 12, "t0"), ("zcdp", 2, "t0"), ("zcdp", 60, "sel")])
def test_a_count_of_units_is_paid_for_where_keys_get_smaller_by_more_than_noise_gets_larger(
    tmp_path: Path, accountant: str, rows: int, column: str
) -> None:
    asked = session(tmp_path, rows, accountant)
    rule = priced(asked, COUNT).noise.selection
    assert rule is not None and rule.column == column


@pytest.mark.parametrize("accountant", ["pure", "zcdp"])
def test_persons_with_very_many_rows_leave_a_usable_selection(tmp_path: Path, accountant: str) -> None:
    """At 4,096 rows per person, 1,000 persons with one key show it under max_count, and under a sum without it, whatever a person
    with 4,096 keys would need."""
    asked = session(tmp_path, 4_096, accountant)
    summed = priced(asked, "SELECT k, SUM(x) FROM t GROUP BY k").noise.selection
    assert isinstance(summed, WeightedThreshold)
    one_key = summed.tau / (summed.weights[0][1] * 2.0**-summed.noise.shift)
    assert one_key < 60
    asked.execute("SET dp.max_count = 20")
    size, _ = shown_half_of_the_time(priced(asked, COUNT))
    assert size < 700
    assert [row[0] for row in asked.execute(COUNT).rows()] == [1]


@pytest.mark.parametrize("accountant", ["pure", "zcdp"])
def test_a_unit_shares_one_weight_among_its_keys(tmp_path: Path, accountant: str) -> None:
    """The exact counts that selection reads are sums of the weights, once for each person and key, including the NULL key."""
    database = tmp_path / "keys.duckdb"
    held = {1: [1, 1, None], 2: [1], 3: [None, 2, 3, 4, 5, 5], 4: [2]}
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE t (person INTEGER, k INTEGER, x DOUBLE)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, 5.0)", [(who, key) for who, keys in held.items() for key in keys]
        )
    asked = session(tmp_path, 12, accountant, nullable=True)
    block = priced(asked, "SELECT k, SUM(x) FROM t GROUP BY k")
    rule = block.noise.selection
    assert isinstance(rule, WeightedThreshold)
    expected: dict[int | None, int] = {}
    for keys in held.values():
        for key in set(keys):
            weight = next(weight for most, weight in rule.weights if len(set(keys)) <= most)
            expected[key] = expected.get(key, 0) + weight
    gate = Noted()
    asked.context = replace(asked.context, gate=gate)
    asked.execute("SELECT k, SUM(x) FROM t GROUP BY k")
    assert gate.counts == [expected[key] for key in (1, 2, 3, 4, 5, None)]


def test_units_of_one_key_count_once(tmp_path: Path) -> None:
    """With one key per unit there is nothing to share: units are counted, whatever their numbers of rows."""
    asked = session(tmp_path, 12)
    asked.execute("SET dp.max_groups = 1")
    gate = Noted()
    asked.context = replace(asked.context, gate=gate)
    asked.execute("SELECT k, SUM(x) FROM t GROUP BY k")
    assert gate.counts == [1_000, 1]


class Noted(Gate):
    """A gate that records the exact counts that selection reads, with or without noise."""

    counts: list[int]

    def select(self, name: str, counts: Int128, selection: Selection, groups: Groups) -> NDArray[np.bool_]:
        if isinstance(selection, TruncatedGeometric):
            self.counts = counts.to_ints()
        return super().select(name, counts, selection, groups)

    def add(self, name: str, exact: Int128, noise: Noise, groups: Groups, drawn: Integers | None) -> Int128:
        if name == "sel":
            self.counts = exact.to_ints()
        return super().add(name, exact, noise, groups, drawn)


def test_keys_that_rows_admitted_do_not_answer_questions_about_units(tmp_path: Path) -> None:
    asked = session(tmp_path, 12)
    asked.execute(COUNT)
    assert not asked.execute("SELECT k, COUNT(DISTINCT person) FROM t GROUP BY k").reused
    assert asked.execute("SELECT k, COUNT(*) + 1 FROM t GROUP BY k").reused
