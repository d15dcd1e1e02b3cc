"""`dp.max_total = auto`: the bound on a unit's sums is chosen first, and both steps form one query with one price."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.clinic import build
from support.gates import NoiselessGate
from support.noted_engine import NotedEngine, noted_session, spent

from dpsql.errors.exceptions import Fault, Refusal
from dpsql.functions.evaluate import evaluate
from dpsql.noise.perturb import Gate
from dpsql.plan.plan import Project
from dpsql.planning.total_cuts import DOUBLINGS, OFF_VALUES
from dpsql.pricing.sum_terms import EMPTY_CELLS, STEPS, WIDE_CELLS, cut_at, last_cell, units_above
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.session.session import Session

SUM = "SELECT SUM(cost) AS s FROM visits"
BY_REGION = "SELECT region, SUM(cost) AS s, COUNT(*) AS n FROM visits JOIN patients USING (patient_id) GROUP BY region"


Opener = Callable[..., tuple[Session, NotedEngine]]


@pytest.fixture
def opener(tmp_path: Path) -> Iterator[Opener]:
    path = build(tmp_path)
    sessions = []

    def opened(
        gate: Gate | None = None, create: bool = True, change: Callable[[str], str] = str
    ) -> tuple[Session, NotedEngine]:
        path.write_text(change(path.read_text()))
        session, engine = noted_session(path, gate, create)
        sessions.append(session)
        session.execute("SET dp.max_total = auto")
        return session, engine

    yield opened
    for session in sessions:
        session.close()


def rows(session: Session, sql: str) -> list[tuple[Any, ...]]:
    return list(session.execute(sql).rows())


# --- one query in two steps -------------------------------------------------------------------------------------------


def test_both_steps_are_one_charge_that_is_reserved_before_the_first(opener: Opener) -> None:
    session, engine = opener()
    plan = session.explain(SUM)
    release = session.execute(SUM)
    assert [ahead for ahead, _ in engine.asked] == ["1", "1"]
    assert release.loss == plan.loss and release.loss.epsilon == 1
    assert [block.loss.epsilon for block in session.plan(session.planner.parse(SUM, None)).price.blocks] == [0.5, 0.5]


def test_the_second_text_has_the_bound_that_the_first_released(opener: Opener) -> None:
    session, engine = opener()
    (notice,) = [notice for notice in session.execute(SUM).receipt.notices if "max_total = auto" in notice]
    second = engine.asked[1][1]
    assert second.released is not None
    bound = second.released["dp_cut_0"].column(0)[0].as_py()
    assert repr(bound) in second.sql
    assert f"adds at most {bound:.4g} in all" in notice
    (cut,) = session.plan(session.planner.parse(SUM, None)).plan.cuts
    assert bound in [cut_at(cut, cell) for cell in range(last_cell(cut) + 1)]


def test_killed_between_the_steps_it_is_charged_once_and_goes_on(opener: Opener) -> None:
    session, engine = opener()
    engine.failing = 1
    with pytest.raises(Fault) as caught:
        session.execute(SUM)
    assert caught.value.charged and "secret" not in caught.value.text() and spent(session) == "1"
    session, engine = opener(create=False)
    plan = session.explain(SUM)
    assert plan.stored == ("dp_totals_0",) and plan.charged.epsilon == 0.5  # the bound was released and stored
    session.execute(SUM)
    assert len(engine.asked) == 1 and spent(session) == "1.5"
    assert session.execute(SUM).reused and spent(session) == "1.5"


@pytest.mark.parametrize(
    "sql", [SUM, BY_REGION, "SELECT AVG(cost) AS a, SUM(-cost) AS b, SUM(cost - 20) AS c FROM visits"]
)
def test_without_noise_nothing_is_cut(opener: Opener, sql: str) -> None:
    """The largest total is chosen, and shares of it add up to the sum; a bound is the end of a cell, so no unit exceeds it."""
    session, _ = opener(NoiselessGate())
    with duckdb.connect(session.policy.source_path() or "", read_only=True) as plain:
        exact = sorted(
            tuple(v if isinstance(v, (str, int)) else float(v) for v in row) for row in plain.execute(sql).fetchall()
        )
    for answered, wanted in zip(sorted(rows(session, sql)), exact, strict=True):
        for value, other in zip(answered, wanted, strict=True):
            assert value == (other if isinstance(other, str) else pytest.approx(other, rel=1e-6))


@pytest.mark.parametrize("rows_of", ["visits", "visits JOIN patients USING (patient_id)"])
@pytest.mark.parametrize(
    ("count", "ones"),
    [
        ("COUNT(*)", "SUM(1)"),
        ("COUNT(*) FILTER (WHERE cost > 20)", "SUM(1) FILTER (WHERE cost > 20)"),
        ("COUNT(cost)", "SUM(1) FILTER (WHERE clamp(cost, 0, 1) IS NOT NULL)"),
    ],
)
def test_a_count_under_a_chosen_bound_is_the_sum_of_ones(opener: Opener, rows_of: str, count: str, ones: str) -> None:
    """One mechanism: the releases have the names of those of SUM(1), and without noise nothing is cut."""
    session, _ = opener(NoiselessGate())

    def names(measure: str) -> tuple[str, ...]:
        return session.plan(session.planner.parse(f"SELECT {measure} FROM {rows_of}", None)).keys

    summed = names(ones)
    assert names(count) != summed
    session.execute("RESET dp.max_total")
    exact = rows(session, f"SELECT {count} FROM {rows_of}")
    session.execute("SET dp.max_count = auto")
    assert names(count) == summed and session.options.show()["dp.max_count"] == "auto"
    assert rows(session, f"SELECT {count} FROM {rows_of}") == exact
    assert len(names("SUM(cost)")) == 1
    assert len(session.plan(session.planner.parse("SELECT COUNT(*) FROM patients", None)).keys) == 1


def test_no_count_is_chosen_above_the_bound_of_the_policy(opener: Opener) -> None:
    session, _ = opener(change=lambda policy: policy.replace("  visits:\n", "  visits:\n    max_count: 3\n"))
    session.execute("SET dp.max_count = auto")
    (cut,) = session.plan(session.planner.parse("SELECT COUNT(*) FROM visits", None)).plan.cuts
    assert (cut.option, cut.most) == ("max_count", 3)


# --- the choice -------------------------------------------------------------------------------------------------------


def test_totals_of_all_groups_count_and_tables_by_other_keys_share_one_bound(opener: Opener) -> None:
    session, _ = opener()
    plan = session.plan(
        session.planner.parse(BY_REGION.replace("GROUP BY region", "GROUP BY ROLLUP (region)"), None)
    ).plan
    (cut,) = plan.cuts
    assert cut.readers == ("dp_0", "dp_1") and len(plan.blocks) == 3
    several = session.plan(
        session.planner.parse("SELECT SUM(cost), SUM(cost) FILTER (WHERE cost > 10) FROM visits", None)
    ).plan
    assert len(several.cuts) == 2


def test_a_bound_of_the_column_is_the_largest_that_is_chosen(opener: Opener) -> None:
    def bounded(text: str) -> str:
        return text.replace("cost: {type: real,", "cost: {type: real, max_total: 40,")

    session, _ = opener(NoiselessGate(), change=bounded)
    (cut,) = session.plan(session.planner.parse(SUM, None)).plan.cuts
    assert cut.most == 40 and cut_at(cut, last_cell(cut)) == 40
    with duckdb.connect(session.policy.source_path() or "", read_only=True) as plain:
        wanted = plain.execute(
            "SELECT sum(least(40, s))::DOUBLE FROM (SELECT sum(cost) s FROM visits GROUP BY patient_id)"
        ).fetchone()
    assert rows(session, SUM)[0] == pytest.approx(wanted, rel=1e-6)


def test_the_grid_reaches_from_a_part_of_one_row_to_all_rows_of_a_unit(opener: Opener) -> None:
    session, _ = opener()
    (cut,) = session.plan(session.planner.parse(SUM, None)).plan.cuts
    largest = max(abs(cut.value.facts.lower), abs(cut.value.facts.upper))
    assert cut.least * 2**DOUBLINGS == largest * OFF_VALUES and cut.most % largest == 0
    first, narrow = EMPTY_CELLS, EMPTY_CELLS + WIDE_CELLS
    assert cut_at(cut, first) == float(cut.least) and cut_at(cut, last_cell(cut)) == float(cut.most)
    assert [cut_at(cut, cell) for cell in range(first)] == [float(cut.most)] * first
    assert cut_at(cut, first + 1) == 4 * float(cut.least)
    assert cut_at(cut, narrow + 2 * STEPS) == 4 * cut_at(cut, narrow) == 4**7 * float(cut.least)
    assert cut_at(cut, last_cell(cut) - 1) < float(cut.most)
    law = session.plan(session.planner.parse(SUM, None)).price.blocks[0].noise.measurements[0].laws[0][1]
    assert isinstance(law, Choice)
    above = [units_above(cut, law, cell, 0.05) for cell in range(last_cell(cut) + 1)]
    assert above == sorted(above, reverse=True) and above[0] > above[-1] + 40 and law.rank < above[-1] < 40


# --- notices and refusals -----------------------------------------------------------------------------------------------


def test_where_too_few_have_values_the_bound_is_the_policys_own_and_that_is_told(opener: Opener) -> None:
    """5 people at epsilon 1 are no more than the rank, so any bound but the policy's has a probability of two in 100; if each of
    5 answers has another bound, something is wrong."""
    session, _ = opener()
    session.execute("SET dp.reuse = off")
    few = f"{SUM} WHERE patient_id < 5"
    assert "fewer than about 69 have values, the bound may be the policy's own, 5000" in session.explain(few).to_text()
    answers = [session.execute(few).receipt.notices for _ in range(5)]
    told = "one patient_id adds at most 5000 in all, the policy's own bound"
    assert any(told in notice for notices in answers for notice in notices)
    many = session.execute(SUM).receipt.notices
    assert not any("policy's own" in notice for notice in many)


def test_a_bound_follows_as_many_people_as_explain_says(opener: Opener) -> None:
    """With 70 people of at most 150 each, where the policy allows 5,000, at most 1 in 40 choices is an empty cell, so five of ten
    are in 3 of a million cases."""
    session, _ = opener()
    session.execute("SET dp.reuse = off")
    answers = [session.execute(f"{SUM} WHERE patient_id < 70").receipt.notices for _ in range(10)]
    assert sum(any("policy's own" in notice for notice in notices) for notices in answers) < 5


def test_the_cell_of_a_total_is_the_first_whose_end_is_no_smaller(opener: Opener) -> None:
    """The cell is 0 for a unit without values, which exceeds none of the bounds."""
    session, _ = opener()
    planned = session.plan(session.planner.parse(SUM, None)).plan
    cell, (cut,) = planned.blocks[0].measures[0].arguments[0], planned.cuts
    steps, source = [("cell", cell)], planned.blocks[0].source
    while isinstance(source, Project):
        steps, source = [*source.columns, *steps], source.source

    def cell_of(total: float | None) -> object:
        row: dict[str, object] = {"s": total}
        for name, value in steps:
            row[name] = evaluate(value, row)
        return row["cell"]

    assert (cell.facts.lower, cell.facts.upper) == (0, last_cell(cut))
    for power in range(-400, 130):
        total = 1.0703 * 2.0 ** (power / 10)
        ends = (number for number in range(EMPTY_CELLS, last_cell(cut) + 1) if cut_at(cut, number) >= total)
        assert cell_of(total) == next(ends, last_cell(cut))
    assert [cell_of(total) for total in (None, 0.0)] == [0, EMPTY_CELLS]


def test_the_sandbox_has_the_bound_of_each_cell(opener: Opener) -> None:
    session, _ = opener()
    plan = session.plan(session.planner.parse(SUM, None)).plan
    (cut,), (result,) = plan.cuts, plan.results
    with duckdb.connect() as plain:
        plain.execute(f"CREATE TABLE {cut.block} AS SELECT unnest(range({last_cell(cut) + 1})) AS m0")
        ends = [end for (end,) in plain.execute(result.query.sql("duckdb")).fetchall()]
    assert sorted(ends) == sorted(cut_at(cut, cell) for cell in range(last_cell(cut) + 1))


def test_a_bound_of_the_column_below_all_cells_of_a_row_is_never_exceeded(opener: Opener) -> None:
    def bounded(text: str) -> str:
        return text.replace("cost: {type: real,", "cost: {type: real, max_total: 0.00001,")

    session, _ = opener(change=bounded)
    (cut,) = session.plan(session.planner.parse(SUM, None)).plan.cuts
    assert cut.most == Fraction(1, 100_000) and cut_at(cut, 0) == cut_at(cut, last_cell(cut)) == 0.00001
    assert cut.least * 2**DOUBLINGS == cut.most * OFF_VALUES


@pytest.mark.parametrize(
    ("option", "slug"), [("dp.target_error = 5", "target_error"), ("dp.threshold = 5", "watch_option")]
)
def test_what_needs_to_know_the_noise_before_is_refused(opener: Opener, option: str, slug: str) -> None:
    session, engine = opener()
    session.execute(f"SET {option}")
    with pytest.raises(Refusal) as caught:
        session.execute(SUM)
    assert caught.value.slug == slug and not caught.value.charged and engine.asked == [] and spent(session) == "0"
