"""Tables measured jointly: which ones, over which rows, and what each may spend."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from support.database_files import create_database

from dpsql.engine.emit.measurements import texts
from dpsql.errors.exceptions import Refusal
from dpsql.pricing import pricing
from dpsql.pricing.pricing import Price
from dpsql.session.session import Session, open_session

POLICY = """
dataset: shop
source: duckdb:///shop.duckdb
privacy_unit: {{table: sales, column: buyer}}
neighbours: {neighbours}
budget: {{epsilon: 100, delta: 1e-5, accountant: {accountant}}}
per_query: {{epsilon: 1, delta: 1e-9}}
ledger: sqlite:///{accountant}-{neighbours}.db
tables:
  sales:
    max_rows: 4
    columns:
      buyer: {{type: integer, nullable: false}}
      region: {{type: text, domain: [north, south, east]}}
      kind: {{type: integer, lower: 1, upper: 6, nullable: false}}
      day: {{type: date, lower: 2024-01-01, upper: 2024-03-01, nullable: false}}
      note: {{type: text}}
      paid: {{type: real, lower: 0, upper: 50, nullable: false, max_total: 1000}}
"""
ROLLUP = "SELECT region, kind, COUNT(*) AS n FROM sales GROUP BY ROLLUP (region, kind)"


def session(folder: Path, accountant: str = "pure", neighbours: str = "add_remove") -> Session:
    database = folder / "shop.duckdb"
    if not database.exists():
        create_database(
            database,
            "CREATE TABLE sales AS SELECT i % 900 AS buyer, ['north', 'south', 'east', 'elsewhere', NULL][1 + i % 5] AS region, "
            "1 + (i // 7) % 7 AS kind, DATE '2024-01-01' + (i % 70)::INTEGER AS day, 'x' AS note, i % 50.0 AS paid "
            "FROM range(2000) r(i)",
        )
    path = folder / f"{accountant}-{neighbours}.yaml"
    path.write_text(POLICY.format(accountant=accountant, neighbours=neighbours))
    opened = open_session(path, create_ledger=True)
    opened.execute("SET dp.workload = on")
    return opened


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Session]:
    with session(tmp_path) as opened:
        yield opened


def priced(opened: Session, sql: str) -> Price:
    return opened.planner.plan(opened.planner.parse(sql, None), opened.options, True).price


def planned(opened: Session, sql: str) -> list[list[tuple[str, ...]]]:
    """Return for each workload the terms of its tiles, by block."""
    return [[(tile.block, *tile.terms) for tile in workload.tiles] for workload in priced(opened, sql).workloads]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region, COUNT(*) FROM sales GROUP BY region",
        "SELECT 1, COUNT(*) FROM sales GROUP BY region UNION ALL SELECT 2, COUNT(*) FROM sales WHERE kind = 1 GROUP BY region",
        "SELECT note, COUNT(*) FROM sales GROUP BY ROLLUP (note)",
        "SELECT region, COUNT(DISTINCT buyer) FROM sales GROUP BY ROLLUP (region)",
        "SELECT region, COUNT(DISTINCT kind) FROM sales GROUP BY ROLLUP (region)",
        "SELECT region, MEDIAN(paid) FROM sales GROUP BY ROLLUP (region)",
        "SELECT region, COUNT(*) FROM sales GROUP BY ROLLUP (region) HAVING region = 'north'",
        "SELECT kind, COUNT(*) FROM sales GROUP BY GROUPING SETS ((region, kind), (kind)) HAVING kind > 2",
        "SELECT day, COUNT(*) FROM sales GROUP BY GROUPING SETS ((day, date_trunc('month', day)), ())",
        "SELECT region, COUNT(*) FROM sales WHERE kind > (SELECT AVG(kind) FROM sales) GROUP BY ROLLUP (region)",
        "SELECT COUNT(*), SUM(paid) FROM sales",
    ],
    ids=[
        "one table", "other rows", "private keys", "units", "distinct values", "quantiles", "having on keys",
        "having on a key of both",
        "combinations that cannot be", "stages", "two sums",
    ],
)  # fmt: skip
def test_other_tables_are_measured_apart(shop: Session, sql: str) -> None:
    """A query with only such tables is planned as without the option."""
    price = priced(shop, sql)
    assert price.workloads == ()
    shop.execute("SET dp.workload = off")
    assert [block.noise.terms for block in price.blocks] == [block.noise.terms for block in priced(shop, sql).blocks]


@pytest.mark.parametrize("option", ["dp.max_groups = 1", "dp.max_rows_per_group = 1", "dp.max_count = 2"])
def test_bounds_that_depend_on_groups_keep_tables_apart(shop: Session, option: str) -> None:
    assert planned(shop, ROLLUP)
    shop.execute(f"SET {option}")
    assert not any("dp_0" in tile for workload in planned(shop, ROLLUP) for tile in workload)


def test_a_clipped_sum_is_measured_apart(shop: Session) -> None:
    sums = "SELECT region, SUM(paid) AS s FROM sales GROUP BY ROLLUP (region)"
    assert planned(shop, sums)
    shop.execute("SET dp.max_total = 60")
    assert not planned(shop, sums)


def test_a_table_leaves_out_the_rows_that_others_have_no_group_for(shop: Session) -> None:
    price = priced(shop, ROLLUP)
    conditions = []
    for block in price.blocks:
        (text,) = texts(shop.context.emitter(), block.block)
        conditions.append([name for name in ("region", "kind") if f'"{name}" IN (' in text])
    assert conditions == [[], ["kind"], ["region", "kind"]]
    assert all(block.block.caps == price.blocks[0].block.caps for block in price.blocks[:2])


def test_a_table_leaves_out_the_rows_of_which_another_tables_key_reads_a_value_outside(shop: Session) -> None:
    price = priced(shop, "SELECT region, kind > 3 AS k, COUNT(*) AS n FROM sales GROUP BY CUBE (region, k)")
    for block in price.blocks:
        (text,) = texts(shop.context.emitter(), block.block)
        assert ('"kind" <= CAST(6 AS BIGINT)' in text) == ('"kind" >= CAST(4 AS BIGINT)' in text) is True, text


@pytest.mark.parametrize("objective", ["relative", "absolute"])
@pytest.mark.parametrize("neighbours", ["add_remove", "change_one"])
@pytest.mark.parametrize(("accountant", "mechanism"), [("pure", "laplace"), ("zcdp", "gaussian"), ("zcdp", "laplace")])
def test_tiles_cost_no_more_than_apart(
    tmp_path: Path, accountant: str, mechanism: str, neighbours: str, objective: str
) -> None:
    """Pricing itself runs the second computation; this test checks the sum of the shares, their noise, and the charge."""
    with session(tmp_path, accountant, neighbours) as opened:
        opened.execute(f"SET dp.mechanism = {mechanism}")
        opened.execute(f"SET dp.workload = {objective}")
        cube = "SELECT region, kind, SUM(paid), COUNT(*) FROM sales GROUP BY CUBE (region, kind)"
        price = priced(opened, cube)
        allowed = opened.planner.accountant.request(opened.options.epsilon)
        opened.execute("SET dp.workload = off")
        apart = priced(opened, cube)
    dimension = "epsilon" if accountant == "pure" else "rho"
    most = getattr(allowed, dimension)
    assert most * Fraction(95, 100) < getattr(price.loss, dimension) <= most
    assert sum(getattr(block.loss, dimension) for block in price.blocks) == getattr(price.loss, dimension)
    sets = len(price.workloads)
    for workload in price.workloads:
        assert sum(workload.shares) <= len(workload.tiles) and min(workload.shares) > 0
        assert len(set(workload.shares)) > 1
        for tile, share, laws in zip(workload.tiles, workload.shares, workload.apart, strict=True):
            block = next(block for block in price.blocks if block.block.name == tile.block)
            alone = next(block for block in apart.blocks if block.block.name == tile.block)
            for name, law in zip(tile.terms, laws, strict=True):
                noise = next(term.noise for term in block.noise.terms if term.name == name)
                assert law == next(term.noise for term in alone.noise.terms if term.name == name)
                part = most * share / (sets * len(workload.tiles))
                assert getattr(noise.loss, dimension) <= part
                assert getattr(noise.loss, dimension) > part * Fraction(9, 10)


def test_a_target_is_met_after_least_squares_and_costs_less(shop: Session) -> None:
    shop.execute("SET dp.target_error = 40")
    shop.execute("SET dp.workload = absolute")
    cube = "SELECT region, kind, day, COUNT(*) AS n FROM sales GROUP BY CUBE (region, kind, day)"
    plan = shop.explain(cube)
    assert 0 < max(output.error_95 or 0 for output in plan.outputs) <= 40
    together = plan.loss.epsilon
    shop.execute("SET dp.workload = off")
    apart = shop.explain(cube).loss.epsilon
    assert together is not None and apart is not None and together < apart


def test_a_target_for_a_thousand_sums_is_refused_before_they_are_priced(
    shop: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = ", ".join(f"SUM(paid) FILTER (WHERE paid > {least}) AS s{least}" for least in range(60))
    cube = f"SELECT region, kind, {sums} FROM sales GROUP BY CUBE (region, kind)"
    shop.execute("SET dp.workload = off")
    shop.execute("SET dp.target_error = 90000")
    with monkeypatch.context() as patch:
        patch.setattr(pricing, "MOST_TARGETED_TERMS", 239)
        patch.setattr(pricing, "_priced", None)
        with pytest.raises(Refusal, match="it needs 240 sums and counts, and an epsilon is searched for at most 239"):
            shop.explain(cube)
    monkeypatch.setattr(pricing, "MOST_TARGETED_TERMS", 240)
    assert shop.explain(cube).price
