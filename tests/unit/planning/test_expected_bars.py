"""Targets and EXPLAIN refer to the bars of outputs: the answer has the bars promised before data was touched."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from support.clinic import build
from support.effort import slow

from dpsql.errors.exceptions import Refusal
from dpsql.planning import expected_bars
from dpsql.release.error_bars import Answer, Bars
from dpsql.release.sandbox import Sandbox
from dpsql.session.session import Session, open_session

DIFFERENCE = "SELECT region, COUNT(*) - COUNT(*) FILTER (WHERE age > 40) AS d FROM patients GROUP BY region"
TOTAL = "SELECT SUM(n) AS s FROM (SELECT age, COUNT(*) AS n FROM patients GROUP BY age) AS t"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Return a session over 500 patients in each of two regions."""
    with open_session(build(tmp_path), create_ledger=True) as opened:
        opened.execute("SET dp.assume_rows = 500")
        yield opened


@pytest.mark.parametrize(
    ("sql", "target", "most"),
    [
        # The terms of AVG within 3 would cost epsilon 300; the error of the average itself is divided by 500 rows.
        ("SELECT region, AVG(weight) AS w FROM patients GROUP BY region", 3, 3),
        ("SELECT region, VAR_POP(age) AS v FROM patients GROUP BY region", 150, 8),
        (DIFFERENCE, 30, 1),
        slow(TOTAL, 100, 1),
    ],
)
def test_a_target_is_that_of_the_output(session: Session, sql: str, target: int, most: float) -> None:
    session.execute(f"SET dp.target_error = {target}")
    release = session.execute(sql)
    errors = release.error.column(release.table.num_columns - 1).to_pylist()
    assert Fraction(release.loss.epsilon or 0) < most
    # The noise of the row count changes the bar of a ratio slightly; a target for terms would be met 10 times over or not at all.
    assert 0.25 * target <= max(errors) <= 1.2 * target, errors


def test_a_target_is_reached_whatever_the_most_is_that_may_be_spent(session: Session) -> None:
    """At epsilon 1,000 noise rounds to zero, for which no bar can be simulated; that is no reason to refuse a wide target."""
    limit = replace(session.policy.per_query, max_epsilon=Fraction(1000))
    generous = session.over(replace(session.policy, per_query=limit))
    generous.execute("SET dp.target_error = 3")
    plan = generous.explain("SELECT region, AVG(weight) AS w FROM patients GROUP BY region")
    assert 0 < Fraction(plan.loss.epsilon or 0) < 3


@pytest.mark.parametrize(("aggregate", "target", "most"), [("AVG(weight)", 3, 6), ("VAR_POP(age)", 150, 16)])
def test_a_target_takes_a_count_and_a_mean_of_two_blocks_apart(
    session: Session, aggregate: str, target: int, most: float
) -> None:
    """The first measures of both blocks have the same name, but that one is a COUNT does not make the other one a COUNT."""
    session.execute(f"SET dp.target_error = {target}")
    plan = session.explain(
        f"SELECT {aggregate} AS n FROM patients UNION ALL SELECT COUNT(*) FROM patients WHERE age > 40"
    )
    assert 0 < Fraction(plan.loss.epsilon or 0) < most


def test_a_target_that_nothing_reaches_is_refused(session: Session) -> None:
    session.execute("SET dp.assume_rows = 1")
    session.execute("SET dp.target_error = 0.0001")
    with pytest.raises(Refusal, match="epsilon above"):
        session.explain("SELECT AVG(weight) AS w FROM patients")


def errors(session: Session, sql: str) -> list[str]:
    """Return EXPLAIN's statement on each output, without its name."""
    return [line.partition(": ")[2] for line in session.explain(sql).lines]


def test_outputs_of_one_name_have_errors_of_their_own(session: Session) -> None:
    apart = errors(session, "SELECT COUNT(*) AS a, SUM(weight) AS b, AVG(weight) AS c, VAR_POP(age) AS d FROM patients")
    same = errors(session, "SELECT COUNT(*) AS n, SUM(weight) AS n, AVG(weight) AS n, VAR_POP(age) AS n FROM patients")
    assert same[:4] == apart[:4]
    assert len(set(same[:4])) == 4
    chosen, counted = errors(session, "SELECT MEDIAN(weight) AS m, COUNT(*) AS m FROM patients")[:2]
    assert "rank error" in chosen
    assert counted.startswith("\N{PLUS-MINUS SIGN}")


@pytest.mark.parametrize("measured", ["off", "on"])
def test_a_quantile_hides_no_error_of_what_stands_beside_it(session: Session, measured: str) -> None:
    session.execute(f"SET dp.quantile_bars = {measured}")
    average, median = errors(session, "SELECT AVG(weight) AS w, MEDIAN(age) AS m FROM patients")[:2]
    assert average.endswith("of groups with 500 rows)")
    assert "rank error" in median


@pytest.mark.parametrize(
    ("sql", "reduced"),
    [
        ("SELECT age, AVG(weight) AS w, COUNT(*) AS n FROM patients GROUP BY age ORDER BY w DESC LIMIT 3", True),
        ("SELECT region, STDDEV(weight) / AVG(weight) AS v FROM patients GROUP BY region", True),
        ("SELECT region, 2 * SUM(age) - COUNT(*) AS d FROM patients GROUP BY region", True),
        ("SELECT age, AVG(weight) * age AS w FROM patients GROUP BY age", False),
        ("SELECT age, AVG(weight) AS w FROM patients GROUP BY age HAVING age > 50", False),
        ("SELECT region, COUNT(*) / SUM(COUNT(*)) OVER () AS part FROM patients GROUP BY region", False),
        ("SELECT region, AVG(weight) AS w FROM patients GROUP BY region ORDER BY w LIMIT 1 OFFSET 1", False),
        (TOTAL, False),
    ],
)
def test_bars_of_equal_groups_are_those_of_the_first(
    session: Session, monkeypatch: pytest.MonkeyPatch, sql: str, reduced: bool
) -> None:
    """Simulated groups are alike, so bars are computed only for the first, if no row depends on a key or on another group."""
    computed: list[int] = []
    bars = expected_bars.bars

    def counted(sandbox: Sandbox, answered: Answer) -> Bars:
        computed.append(sum(block.rows for block in answered.remainder.blocks))
        return bars(sandbox, answered)

    def widths() -> dict[int, float]:
        planned = session.plan(session.planner.parse(sql, None))
        told = expected_bars.expected_bars(planned.plan, planned.price, planned.options, session.context.sandbox)
        return {**told.of_terms, **told.assumed}

    monkeypatch.setattr(expected_bars, "bars", counted)
    first = widths()
    monkeypatch.setattr(expected_bars, "_has_equal_rows", lambda *_: False)
    assert first and first == pytest.approx(widths(), rel=0.03)
    assert (computed[0] == 1) is reduced and computed[1] > 1
