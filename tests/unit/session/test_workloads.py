"""Tables measured jointly, from an analyst's view: consistent answers, bars, EXPLAIN, notices, and repeated answers."""

from collections import defaultdict
from pathlib import Path

import duckdb
import pytest
from support.clinic import build
from support.exact_session import exact_session
from support.gates import NoiselessGate
from support.released_blocks import Keyed

from dpsql.noise.perturb import Gate
from dpsql.policy import load_policy
from dpsql.release.remainder import AS_RELEASED
from dpsql.session.session import Session

CUBE = (
    "SELECT region, old, GROUPING(region, old) AS g, COUNT(*) AS n, SUM(weight) AS w, AVG(weight) AS m "
    "FROM (SELECT region, age >= 50 AS old, weight FROM patients) AS p GROUP BY CUBE (region, old)"
)


def clinic(folder: Path, gate: Gate | None = None, policy: str = "") -> Session:
    path = build(folder)
    if policy:
        path.write_text(path.read_text().replace("domain: [north, south], nullable: false", policy))
    connection = duckdb.connect(str(folder / "clinic.duckdb"))
    opened = exact_session(load_policy(path), connection, folder / "ledger.db", gate or Gate(Keyed("clinic")))
    for option in ("dp.epsilon = 1", "dp.workload = on", "dp.shrinkage = on"):
        opened.execute(f"SET {option}")
    return opened


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return clinic(tmp_path)


def sums(release_rows: list[tuple], position: int) -> dict[int, float]:
    """Return the sum over the rows of each grouping set."""
    by_set: dict[int, float] = defaultdict(float)
    for row in release_rows:
        by_set[row[2]] += row[position]
    return by_set


def test_totals_agree_with_their_parts(session: Session) -> None:
    rows = list(session.execute(CUBE).rows())
    totals = sums(rows, 4)
    assert len(totals) == 4 and max(totals.values()) - min(totals.values()) < 1e-6 * max(totals.values())
    counts = sums(rows, 3)
    assert max(counts.values()) - min(counts.values()) <= len(rows) / 2
    session.execute("SET dp.workload = off")
    apart = sums(list(session.execute(CUBE).rows()), 4)
    assert max(apart.values()) - min(apart.values()) > 1


def test_without_noise_the_answer_is_the_exact_one(tmp_path: Path) -> None:
    opened = clinic(tmp_path, NoiselessGate(2))
    opened.execute("SET dp.shrinkage = off")
    rows = {row[:3]: row[3:] for row in opened.execute(CUBE).rows()}
    opened.execute("SET dp.workload = off")
    apart = {row[:3]: row[3:] for row in opened.execute(CUBE).rows()}
    assert rows.keys() == apart.keys()
    for key, numbers in rows.items():
        assert numbers == pytest.approx(apart[key], nan_ok=True, abs=1e-6), key


def test_a_total_that_follows_from_stored_cells_is_shown_as_it_is(session: Session) -> None:
    session.execute("SET dp.epsilon = 5")
    session.execute("SET dp.workload = off")
    session.execute("SELECT region, COUNT(*) AS n FROM patients GROUP BY region")
    session.execute("SET dp.workload = on")
    session.execute("SET dp.epsilon = 0.1")
    session.execute("SET dp.reuse = derive")
    totals = "SELECT region, COUNT(*) AS n FROM patients GROUP BY ROLLUP (region)"
    lines = session.explain(totals).lines
    release = session.execute(totals)
    assert AS_RELEASED in release.notices
    assert AS_RELEASED in lines and not any("measured as one" in line for line in lines)
    assert len(release.error.column(1)) == 3


def test_rows_without_a_group_are_left_out_of_totals(tmp_path: Path) -> None:
    opened = clinic(tmp_path, NoiselessGate(2), "domain: [north], nullable: false")
    release = opened.execute("SELECT region, COUNT(*) AS n FROM patients GROUP BY ROLLUP (region)")
    assert list(release.rows()) == [("north", 500), (None, 500)]
    (notice,) = [notice for notice in release.notices if notice.startswith("dp.workload")]
    assert notice == "dp.workload: rows whose region is none of the public keys are left out of every table and total"
    opened.execute("SET dp.workload = off")
    rows = list(opened.execute("SELECT region, COUNT(*) AS n FROM patients GROUP BY ROLLUP (region)").rows())
    assert rows == [("north", 500), (None, 1000)]


def test_rows_with_a_group_of_their_own_are_not_left_out(tmp_path: Path) -> None:
    opened = clinic(tmp_path, NoiselessGate(2), "domain: [north], outside: other, nullable: false")
    release = opened.execute("SELECT region, COUNT(*) AS n FROM patients GROUP BY ROLLUP (region)")
    assert sorted(release.rows(), key=str) == [("north", 500), ("other", 500), (None, 1000)]


def test_tables_whose_noise_rounds_to_nothing_are_measured_apart(tmp_path: Path) -> None:
    """At an epsilon of thousands, the square of a count's deviation is 0 in doubles, and nothing can be weighted by it."""
    opened = clinic(tmp_path)
    sql = "SELECT region, COUNT(*) AS n FROM patients GROUP BY ROLLUP (region)"
    for objective in ("relative", "absolute"):
        opened.execute(f"SET dp.workload = {objective}")
        for epsilon in (1600, 6000):
            opened.execute(f"SET dp.epsilon = {epsilon}")
            assert not any("measured as one" in line for line in opened.explain(sql).lines)
            assert list(opened.execute(sql).rows()) == [("north", 500), ("south", 500), (None, 1000)]
    for epsilon in (100, 500, 1000):
        opened.execute(f"SET dp.epsilon = {epsilon}")
        opened.explain(sql)
        assert list(opened.execute(sql).rows()) == [("north", 500), ("south", 500), (None, 1000)]
