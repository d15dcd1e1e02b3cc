"""Queries measured jointly: never more expensive than one by one, each block once, and shares that follow the objective."""

from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from support.database_files import create_database
from support.exact_session import exact_session
from support.gates import NoiselessGate
from support.released_blocks import Keyed

from dpsql.noise.perturb import Gate
from dpsql.planning.planner import Planned
from dpsql.planning.together import Goal, JointPlan, alone_because
from dpsql.policy import load_policy
from dpsql.pricing.explain import tile_rows
from dpsql.pricing.workloads import Objective
from dpsql.privacy.loss import PrivacyLoss
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
      note: {{type: text}}
      paid: {{type: real, lower: 0, upper: 50, nullable: false}}
"""
BY_REGION = "SELECT region, COUNT(*) AS n FROM sales GROUP BY region"
BY_KIND = "SELECT kind, COUNT(*) AS n FROM sales GROUP BY kind"
BY_BOTH = "SELECT region, kind, COUNT(*) AS n FROM sales GROUP BY region, kind"
IN_ALL = "SELECT COUNT(*) AS n FROM sales"
TILES = [BY_BOTH, BY_REGION, BY_KIND, IN_ALL]


def shop(folder: Path, accountant: str = "pure", neighbours: str = "add_remove", gate: Gate | None = None) -> Session:
    database = folder / "shop.duckdb"
    if not database.exists():
        create_database(
            database,
            "CREATE TABLE sales AS SELECT i % 900 AS buyer, ['north', 'south', 'east', NULL][1 + i % 4] AS region, "
            "1 + (i // 7) % 6 AS kind, 'x' AS note, i % 50.0 AS paid FROM range(2000) r(i)",
        )
    path = folder / f"{accountant}-{neighbours}.yaml"
    path.write_text(POLICY.format(accountant=accountant, neighbours=neighbours))
    if gate is None:
        return open_session(path, create_ledger=True)
    opened = exact_session(load_policy(path), duckdb.connect(str(database)), folder / "ledger.db", gate)
    opened.execute("SET dp.epsilon = 1")
    return opened


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return shop(tmp_path, gate=Gate(Keyed("shop")))


def planned(opened: Session, sql: str) -> Planned:
    """Plan a query; `sql` may begin with settings: `dp.epsilon = 2; SELECT ...`."""
    *settings, text = sql.split("; ")
    before = opened.options
    for setting in settings:
        opened.execute(f"SET {setting}")
    question = opened.plan(opened.planner.parse(text, None))
    opened.options = before
    return question


def plans(opened: Session, texts: list[str], goal: Goal | None = None) -> tuple[list[Planned], tuple[JointPlan, ...]]:
    questions = [planned(opened, text) for text in texts]
    return questions, opened.plan_together(questions, goal or Goal())


def errors(plan: JointPlan) -> dict[str, tuple[float, float]]:
    """Return half widths, one by one and jointly, of each table's first sum, by table."""
    return {row.table: row.sums[0][1:] for row in tile_rows(plan.price, Fraction(95, 100))}


@pytest.mark.parametrize("accountant", ["pure", "zcdp"])
@pytest.mark.parametrize("neighbours", ["add_remove", "change_one"])
@pytest.mark.parametrize("epsilons", [("1", "1", "1", "1"), ("2", "0.5", "1", "0.25")], ids=["equal", "unequal"])
@pytest.mark.parametrize("objective", [Objective.RELATIVE, Objective.ABSOLUTE])
def test_questions_together_cost_no_more_than_one_by_one(
    tmp_path: Path, accountant: str, neighbours: str, epsilons: tuple[str, ...],
    objective: Objective) -> None:  # fmt: skip
    with shop(tmp_path, accountant, neighbours) as opened:
        texts = [f"dp.epsilon = {epsilon}; {text}" for epsilon, text in zip(epsilons, TILES, strict=True)]
        questions, (plan,) = plans(opened, texts, Goal(objective))
        units = opened.planner.accountant.units
        together = units(plan.price.loss)
        allowed = units(sum((question.price.loss for question in questions), PrivacyLoss.nothing()))
        assert together.keys() == allowed.keys()
        for name, amount in together.items():
            assert 0.95 * allowed[name] <= amount <= allowed[name]
        assert plan.price.loss == sum((priced.loss for priced in plan.price.blocks), PrivacyLoss.nothing())
        (workload,) = plan.price.workloads
        for tile, (noise,) in zip(workload.tiles, workload.apart, strict=True):
            question = questions[int(tile.block.partition(".")[0])]
            assert noise == question.price.blocks[0].noise.terms[0].noise, "apart is what the question has by itself"


def test_the_largest_relative_error_falls_and_the_mean_one_where_it_is_the_goal(session: Session) -> None:
    texts = [f"dp.epsilon = 0.1; {text}" for text in TILES]
    _, (worst,) = plans(session, texts)
    _, (mean,) = plans(session, texts, Goal(Objective.ABSOLUTE))
    cells = {"by region, kind": 24, "by region": 4, "by kind": 6, "in all": 1}
    before = max(alone * cells[table] for table, (alone, _) in errors(worst).items())
    assert max(now * cells[table] for table, (_, now) in errors(worst).items()) < before / 3
    means = [sum(now for _, now in errors(plan).values()) for plan in (worst, mean)]
    assert means[1] < means[0] and means[1] < sum(alone for alone, _ in errors(mean).values())


def test_a_block_of_two_questions_is_measured_once_at_the_larger_price(session: Session) -> None:
    texts = [BY_REGION, f"dp.epsilon = 3; {BY_REGION} ORDER BY n DESC", BY_BOTH]
    questions, (plan,) = plans(session, texts)
    assert plan.places == (0, 1, 2) and len(plan.price.blocks) == 2
    assert plan.price.loss.epsilon is not None and 3.9 < plan.price.loss.epsilon <= 4
    assert sorted(plan.read_by.values()) == [(0, 1), (2,)]
    assert plan.price.workloads[0].apart[0][0] == questions[1].price.blocks[0].noise.terms[0].noise


def test_what_is_in_no_workload_keeps_its_own_noise(session: Session) -> None:
    texts = ["SELECT region, COUNT(*) AS n, MEDIAN(paid) AS m FROM sales GROUP BY region", IN_ALL]
    questions, (plan,) = plans(session, texts)
    by_region = next(priced for priced in plan.price.blocks if priced.block.keys)
    (apart,) = questions[0].price.blocks
    assert by_region.noise.measurements == apart.noise.measurements
    assert by_region.noise.terms != apart.noise.terms


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM sales WHERE kind > 2",
        "SELECT COUNT(DISTINCT buyer) FROM sales",
        "SELECT SUM(paid) FROM sales",
        "SELECT note, COUNT(*) FROM sales GROUP BY note",
        f"dp.mechanism = gaussian; {IN_ALL}",
        f"dp.max_rows_per_group = 1; {IN_ALL}",
        f"dp.delta = 0; {IN_ALL}",
    ],
)
def test_tables_of_other_sums_rows_or_noise_are_not_joined(session: Session, sql: str) -> None:
    questions, together = plans(session, [BY_REGION, sql])
    assert together == () and alone_because(questions[1]) == ""


def test_the_first_answer_pays_for_all_and_totals_agree(session: Session) -> None:
    _, (plan,) = plans(session, TILES)
    releases = [session.answer(view) for view in plan.questions]
    assert [release.reused for release in releases] == [False, True, True, True]
    assert releases[0].receipt.loss == plan.price.loss
    charged = session.budget().spent["dataset"]["epsilon"]
    assert Fraction(charged) == plan.price.loss.epsilon
    totals = [sum(row[-1] for row in release.rows()) for release in releases]
    assert max(totals) - min(totals) <= 13, "up to the rounding of 24 counts"
    assert session.execute(TILES[0]).reused, "less noise of the same numbers"
    again = [session.answer(view) for view in plans(session, TILES)[1][0].questions]
    assert [list(release.rows()) for release in again] == [list(release.rows()) for release in releases]


def test_without_noise_answers_are_the_exact_ones(tmp_path: Path) -> None:
    opened = shop(tmp_path, gate=NoiselessGate(2))
    texts = [*TILES, f"{BY_REGION} ORDER BY n DESC LIMIT 2", "SELECT kind, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS s "
             "FROM sales GROUP BY kind"]  # fmt: skip
    _, (plan,) = plans(opened, texts)
    together = [sorted(map(repr, opened.answer(view).rows())) for view in plan.questions]
    opened.execute("SET dp.reuse = off")
    assert together == [sorted(map(repr, opened.execute(text).rows())) for text in texts]


def test_a_failed_measurement_is_charged_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan's request is one charge, whichever query triggers it, even after the measurement failed in the middle."""
    from dpsql.errors.exceptions import Error
    from dpsql.session import pipeline

    _, (plan,) = plans(session, TILES)
    real, calls = pipeline.perturb, []

    def failing(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 3:
            raise MemoryError
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "perturb", failing)
    with pytest.raises(Error) as first:
        session.answer(plan.questions[0], "night")
    assert first.value.charged
    for view in plan.questions:
        with pytest.raises(Error, match="request") as failure:
            session.answer(view, "night")
        assert failure.value.slug == "request_lost"
    assert Fraction(session.budget().spent["dataset"]["epsilon"]) == plan.price.loss.epsilon
