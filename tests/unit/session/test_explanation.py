"""EXPLAIN in a few lines, and prices as parts of a budget: equal in all front ends, and equal to the charge."""

import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest
from support.clinic import build

from dpsql.errors.exceptions import Error
from dpsql.session.session import Session, open_session

COUNT = "SELECT COUNT(*) AS n FROM patients"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with open_session(build(tmp_path, 2), create_ledger=True) as opened:
        yield opened


def test_explain_does_not_know_how_many_groups_of_private_keys_there_are(session: Session) -> None:
    for sql in ("SELECT weight, COUNT(*) FROM patients GROUP BY weight", "SELECT DISTINCT weight FROM patients"):
        assert any(line.startswith("groups: unknown") for line in session.explain(sql).lines)
    assert not any(line.startswith("groups") for line in session.explain(COUNT).lines)


@pytest.mark.parametrize(
    "items", list(permutations(("SUM(age) AS s", "COUNT(*) AS n", "MEDIAN(age) AS m", "AVG(weight) AS a")))[::5]
)
def test_outputs_are_explained_in_the_order_of_select(session: Session, items: tuple[str, ...]) -> None:
    plan = session.explain(f"SELECT {', '.join(items)}, SUM(age) + 1 AS z FROM patients")
    named = [name for output in plan.outputs for name in output.names]
    assert list(dict.fromkeys(name for name in named if name != "z")) == [item[-1] for item in items]
    assert [names for names in {output.names for output in plan.outputs} if "z" in names] == [("s", "z")]


def test_as_many_questions_are_answered_as_the_price_says(session: Session) -> None:
    """The number that EXPLAIN states, then that of each receipt, down to a refusal at 0 that EXPLAIN predicts."""
    session.execute("SET dp.reuse = off")
    session.execute("SET dp.epsilon = 0.3")

    def explained() -> str:
        return next(line for line in session.explain(COUNT).lines if line.startswith("price: "))

    left = int(re.findall(r"; ([0-9,]+) questions like", explained())[0])
    assert left >= 3
    for number in range(left):
        price = session.execute(COUNT).receipt.price
        expected = "1 question like" if left - number == 2 else f"{left - number - 1} questions like"
        assert expected in price, price
    assert "more than what is left" in explained()
    with pytest.raises(Error) as refused:
        session.execute(COUNT)
    assert refused.value.slug.startswith("budget") and not refused.value.charged


def test_the_engines_text_is_for_the_owner_alone(tmp_path: Path) -> None:
    path = build(tmp_path)
    with open_session(path, create_ledger=True) as owner:
        assert owner.explain(COUNT).engine_sql
    with open_session(path, analyst="research") as asker:
        assert asker.explain(COUNT).engine_sql == ()
        said = asker.execute(f"EXPLAIN VERBOSE {COUNT}").notices
        assert not any("engine SQL" in notice for notice in said)


def test_rows_beyond_max_rows_are_named_before_and_with_the_answer(session: Session) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits WHERE cost > 30"
    notice = "at most 5 rows of visits count for each patient_id; further ones are left out"
    assert notice in session.explain(sql).lines and notice in session.execute(sql).notices


def test_a_comparison_with_a_threshold_is_explained(session: Session) -> None:
    session.execute("SET dp.threshold = 100")
    lines = [row[0] for row in session.execute(f"EXPLAIN {COUNT}").rows()]
    assert any(line.startswith("price: ") for line in lines) and any("compared with 100" in line for line in lines)


WIDTHS = re.compile("^(.*?): \N{PLUS-MINUS SIGN} ([0-9.,]+)(?: to ([0-9.,]+))? \\(95 %\\)$")


@pytest.mark.parametrize("sql", [
    "SELECT region, AVG(age) AS mean, COUNT(*) + 1 AS more FROM patients GROUP BY region",
    "SELECT SUM(n) AS total, MAX(n) AS most FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region)",
    "SELECT AVG(age) - COUNT(*) AS mixed FROM patients",
])  # fmt: skip
def test_explain_of_a_stored_answer_tells_the_bars_that_it_has(session: Session, sql: str) -> None:
    """The bars are those of the drawn noise, whatever the budget of the repeated query."""
    for epsilon in ("1", "0.01"):
        session.execute(f"SET dp.epsilon = {epsilon}")
        release = session.execute(sql)
        assert release.reused is (epsilon != "1")
        explained = {match[1]: [float(part.replace(",", "")) for part in match.groups()[1:] if part]
                for match in map(WIDTHS.match, session.explain(sql).lines) if match}  # fmt: skip
        bars = {name: [bar for bar in column if bar is not None] for name, column in release.error.to_pydict().items()}
        assert explained.keys() == {name for name, column in bars.items() if column}
        for name, widths in explained.items():
            assert widths[0] == pytest.approx(min(bars[name]), rel=0.01) and min(bars[name]) <= widths[0]
            assert widths[-1] == pytest.approx(max(bars[name]), rel=0.01) and max(bars[name]) <= widths[-1]
            assert len(widths) == 1 or widths[0] < widths[1]
