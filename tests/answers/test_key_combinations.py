"""Answers whose groups are not all combinations of their keys: the same groups as in SQL, also for caps, prices and stored
releases."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.errors.exceptions import Error
from dpsql.session.session import Session, open_session

POLICY = """
dataset: combinations
source: duckdb:///shop.duckdb
privacy_unit: {table: people, column: id}
budget: {epsilon: 10000, delta: 1e-6, accountant: pure}
per_query: {epsilon: 100, delta: 1e-9}
ledger: sqlite:///ledger.db
tables:
  people:
    primary_key: [id]
    max_rows: 1
    columns:
      id: {type: integer, nullable: false}
  sales:
    foreign_keys: {id: people.id}
    max_rows: 12
    columns:
      shop: {type: integer, nullable: false}
      a: {type: integer, lower: 1, upper: 6, nullable: false}
      b: {type: text, domain: [x, y, z], nullable: false}
      day: {type: date, lower: 2024-01-01, upper: 2024-03-31, nullable: false}
  shops:
    public: true
    primary_key: [shop]
    columns: {shop: {type: integer}, town: {type: text}, land: {type: integer}}
  lands:
    public: true
    primary_key: [land]
    columns: {land: {type: integer}, name: {type: text}, coast: {type: boolean}}
"""


def fill(path: Path, most: int = 400) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT i AS id FROM range(?) t(i)", [most])
        connection.execute(
            "CREATE TABLE sales AS SELECT i // 12 AS id, i % 6 AS shop, 1 + i % 6 AS a, ['x', 'y', 'z'][1 + i % 3] AS b, "
            "DATE '2024-01-01' + CAST(i % 91 AS INTEGER) AS day FROM range(? * 12) t(i)", [most]
        )  # fmt: skip
        connection.execute(
            "CREATE TABLE shops AS SELECT * FROM (VALUES (0, 'oslo', 1), (1, 'bergen', 1), (2, 'rome', 2), (3, 'pisa', 2), (4, 'oslo', 3)) "
            "t(shop, town, land)"
        )
        connection.execute(
            "CREATE TABLE lands AS SELECT * FROM (VALUES (1, 'norway', true), (2, 'italy', true), (3, 'ohio', false)) t(land, name, coast)"
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("combinations")
    fill(place / "shop.duckdb")
    (place / "shop.yaml").write_text(POLICY)
    return place


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[Session]:
    with open_session(folder / "shop.yaml", create_ledger=True) as opened:
        yield opened


def rows(session: Session, sql: str) -> list[tuple[Any, ...]]:
    return list(session.execute(sql).rows())


BOTH = "(a = 3 AND b = 'z') OR (a = 4 AND b = 'x')"
SHOPS = "sales s JOIN shops p ON p.shop = s.shop"
LANDS = f"{SHOPS} JOIN lands l USING (land)"
AGREE = [
    f"SELECT a, b, COUNT(*) FROM sales WHERE {BOTH} GROUP BY a, b ORDER BY 1, 2",
    f"SELECT a, b, COUNT(*) FROM sales GROUP BY a, b HAVING {BOTH} ORDER BY 1, 2",
    "SELECT day, CAST(date_trunc('month', day) AS DATE) AS m, COUNT(*) FROM sales GROUP BY day, m ORDER BY 1",
    "SELECT month(day) AS m, day, COUNT(*) FROM sales GROUP BY 1, 2 ORDER BY 2",
    "SELECT a, CASE WHEN a < 3 THEN 'low' WHEN a < 5 THEN 'mid' ELSE 'high' END AS c, COUNT(*) FROM sales GROUP BY 1, 2 ORDER BY 1",
    f"SELECT p.town, COUNT(*) FROM {SHOPS} WHERE p.land = 1 GROUP BY p.town ORDER BY 1",
    f"SELECT p.town, p.land, COUNT(*) FROM {SHOPS} GROUP BY 1, 2 ORDER BY 1, 2",
    f"SELECT p.town, COUNT(*) FROM {LANDS} WHERE l.name = 'italy' GROUP BY p.town ORDER BY 1",
    f"SELECT l.name, p.town, COUNT(*) FROM {LANDS} WHERE l.coast GROUP BY ALL ORDER BY 1, 2",
    f"SELECT p.shop, COUNT(*) FROM {LANDS} WHERE l.name = 'norway' AND p.town <> 'oslo' GROUP BY p.shop",
    "SELECT p.town, l.name, COUNT(*) FROM sales LEFT JOIN shops p USING (shop) LEFT JOIN lands l ON l.land = p.land GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT p.town, COUNT(*) FROM sales LEFT JOIN shops p USING (shop) WHERE p.land = 3 OR p.land IS NULL GROUP BY 1 ORDER BY 1",
    "SELECT p.town, COUNT(*) FROM sales s LEFT JOIN shops p ON p.shop = s.shop AND p.land = 2 GROUP BY 1 ORDER BY 1",
    "SELECT p.town, l.name, COUNT(*) FROM sales LEFT JOIN shops p USING (shop) LEFT JOIN lands l ON l.land = p.land GROUP BY CUBE (1, 2) ORDER BY 1, 2, 3",
    "SELECT a, b, COUNT(*) FROM sales WHERE a % 3 = 0 AND b = 'z' GROUP BY ROLLUP (a, b) HAVING a = 3 ORDER BY 1, 2",
    f"SELECT a, b, GROUPING(a) AS g, COUNT(*) FROM sales WHERE {BOTH} GROUP BY CUBE (a, b) HAVING GROUPING(a) = 1 ORDER BY 1, 2",
    f"SELECT a, b, COUNT(*) FROM sales WHERE {BOTH} GROUP BY GROUPING SETS ((a, b), (a), ()) HAVING a IS NULL OR a > 3 ORDER BY 1, 2",
    f"SELECT COUNT(*), SUM(n) FROM (SELECT a, b, COUNT(*) AS n FROM sales WHERE {BOTH} GROUP BY a, b HAVING COUNT(*) > 20)",
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(AGREE)))
def test_answers_have_the_combinations_of_sql(session: Session, folder: Path, at: int) -> None:
    with duckdb.connect(str(folder / "shop.duckdb"), read_only=True) as connection:
        exact = connection.execute(AGREE[at]).fetchall()
    found = rows(session, AGREE[at])
    assert len(found) == len(exact)
    for got, right in zip(found, exact, strict=True):
        assert all(a == b or abs(a - b) <= 8 for a, b in zip(got, right, strict=True)), (got, right)


def test_which_combinations_appear_does_not_depend_on_data(session: Session, tmp_path: Path) -> None:
    fill(tmp_path / "shop.duckdb", 0)
    (tmp_path / "shop.yaml").write_text(POLICY)
    with open_session(tmp_path / "shop.yaml", create_ledger=True) as empty:
        for sql in AGREE[:-1]:
            here, there = rows(session, sql), rows(empty, sql)
            assert sorted(map(str, (row[:-1] for row in here))) == sorted(map(str, (row[:-1] for row in there))), sql


def test_a_unit_is_in_no_more_groups_than_there_are(session: Session) -> None:
    """Two of eighteen combinations remain, so the bound, and with it the noise, is for two."""
    plan = session.explain(f"SELECT a, b, COUNT(*) FROM sales WHERE {BOTH} GROUP BY a, b")
    assert [output.l0 for output in plan.outputs] == [2]


def test_rows_of_groups_that_having_left_out_use_up_no_cap(session: Session) -> None:
    """Everyone has rows with a = 3 and a = 6, all with b = z, and may be in one group: they are counted in the group that is
    shown."""
    session.execute("SET dp.max_groups = 1")
    try:
        found = rows(
            session,
            "SELECT a, b, COUNT(DISTINCT id) FROM sales GROUP BY a, b HAVING (a = 3 AND b = 'z') OR (a = 6 AND b = 'y')",
        )
    finally:
        session.execute("RESET dp.max_groups")
    assert sum(n for *_, n in found) == pytest.approx(400, abs=4)


def test_stored_releases_know_which_combinations_they_lack(tmp_path: Path) -> None:
    fill(tmp_path / "shop.duckdb")
    (tmp_path / "shop.yaml").write_text(POLICY)
    with open_session(tmp_path / "shop.yaml", create_ledger=True) as session:
        session.execute("SET dp.reuse = derive")
        first = session.execute(f"SELECT a, b, COUNT(*) FROM sales GROUP BY a, b HAVING {BOTH}")
        # Rows with a = 3 also have other values of b, for which nothing is stored.
        for sql in (
            "SELECT COUNT(*) FROM sales WHERE a = 3 AND b = 'x'",
            "SELECT COUNT(*) FROM sales WHERE a IN (3, 4) AND b = 'x'",
            "SELECT COUNT(*) FROM sales WHERE a = 3",
            "SELECT a, COUNT(*) FROM sales WHERE a = 3 GROUP BY a",
            "SELECT a, b, COUNT(*) FROM sales GROUP BY a, b HAVING a = 3 OR (a = 4 AND b = 'x')",
        ):
            assert not session.execute(sql).reused, sql
        again = session.execute(f"SELECT a, b, COUNT(*) FROM sales GROUP BY a, b HAVING {BOTH}")
        assert again.reused and list(again.rows()) == list(first.rows())
        one = session.execute("SELECT a, b, COUNT(*) FROM sales WHERE a = 3 AND b = 'z' GROUP BY a, b")
        assert one.reused and list(one.rows()) == [row for row in first.rows() if row[0] == 3]


def test_what_conditions_leave_adds_up_from_stored_combinations(tmp_path: Path) -> None:
    fill(tmp_path / "shop.duckdb")
    (tmp_path / "shop.yaml").write_text(POLICY)
    with open_session(tmp_path / "shop.yaml", create_ledger=True) as session:
        session.execute("SET dp.reuse = derive")
        whole = session.execute(f"SELECT a, b, COUNT(*) FROM sales WHERE {BOTH} GROUP BY a, b")
        by_a = session.execute(f"SELECT a, COUNT(*) FROM sales WHERE {BOTH} GROUP BY a")
        assert by_a.reused and list(by_a.rows()) == [(row[0], row[2]) for row in whole.rows()]


def test_the_limit_counts_combinations(folder: Path, tmp_path: Path) -> None:
    fill(tmp_path / "shop.duckdb", 3)
    text = POLICY.replace("delta: 1e-9}", "max_public_groups: 100}").replace(", delta: 1e-6", "")
    (tmp_path / "shop.yaml").write_text(text)
    with open_session(tmp_path / "shop.yaml", create_ledger=True) as opened:
        assert len(rows(opened, "SELECT day, month(day), COUNT(*) FROM sales GROUP BY 1, 2")) == 91
        with pytest.raises(Error) as caught:
            opened.execute("SELECT day, b, COUNT(*) FROM sales GROUP BY 1, 2")
        assert caught.value.slug == "public_grid"
