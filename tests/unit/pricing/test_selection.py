"""Which count admits private keys: that of the rows, released anyway, or one of the units, paid for by itself."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from dpsql.pricing.pricing import PricedBlock, shown_half_of_the_time
from dpsql.privacy.mechanisms.partition_selection import Threshold
from dpsql.session.opening import open_session
from dpsql.session.session import Session

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


def session(folder: Path, rows: int, accountant: str = "pure", neighbours: str = "add_remove") -> Session:
    """Key 1 has 2,000 rows of 1,000 persons, key 2 all rows of one person."""
    database = folder / "keys.duckdb"
    if not database.exists():
        with duckdb.connect(str(database)) as connection:
            connection.execute(
                "CREATE TABLE t AS SELECT i // 2 AS person, 1 AS k, 5.0 AS x FROM range(2000) r(i) "
                "UNION ALL SELECT 5000, 2, 5.0 FROM range(12)"
            )
    name = f"{accountant}-{neighbours}-{rows}"
    path = folder / f"{name}.yaml"
    path.write_text(POLICY.format(accountant=accountant, neighbours=neighbours, rows=rows, name=name))
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
    # One person with twelve rows in one key: each of the keys that may move is shown with a probability of delta / l0.
    lone = [12 * rule.noise.upper_tail(rule.tau - shift - 12) for shift in (0, 1)]
    assert factor * lone[0] <= Fraction(1, 10**6)
    assert neighbours == "change_one" or lone[1] > Fraction(1, 10**6), "the threshold is the lowest"


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
    """The question that counts rows alone shows keys of as few rows as the one that pays for units shows of units."""
    asked = session(tmp_path, rows, accountant)
    size, _ = shown_half_of_the_time(priced(asked, COUNT))
    units, counted = shown_half_of_the_time(priced(asked, "SELECT k, SUM(x) FROM t GROUP BY k"))
    assert counted == "units" and size <= units


def test_answers_say_how_many_rows_a_key_needs(tmp_path: Path) -> None:
    release = session(tmp_path, 12).execute(COUNT)
    assert [row[0] for row in release.rows()] == [1]
    size, _ = shown_half_of_the_time(priced(session(tmp_path, 12), COUNT))
    assert f"keys that have fewer than about {size} rows are mostly not shown" in release.notices


def test_keys_that_rows_admitted_do_not_answer_questions_about_units(tmp_path: Path) -> None:
    asked = session(tmp_path, 12)
    asked.execute(COUNT)
    assert not asked.execute("SELECT k, COUNT(DISTINCT person) FROM t GROUP BY k").reused
    assert asked.execute("SELECT k, COUNT(*) + 1 FROM t GROUP BY k").reused
