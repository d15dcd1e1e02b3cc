"""Multivariate Laplace noise from SQL to answer: charges, storage, EXPLAIN, refusals, and error bars."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from support.effort import by_day

from dpsql.errors.exceptions import Error, Refusal
from dpsql.session.session import Session, open_session

POLICY = """
dataset: wards
source: duckdb:///wards.duckdb
privacy_unit: {{table: people, column: person}}
neighbours: {neighbours}
budget: {{epsilon: 10000, delta: 9e-4, accountant: {accountant}}}
per_query: {{epsilon: 0.1, delta: 1e-9, max_epsilon: 10}}
ledger: sqlite:///ledger.db
tables:
  people:
    max_rows: 1
    primary_key: [person]
    columns:
      person: {{type: integer, nullable: false}}
      ward: {{type: integer, lower: 1, upper: 40, nullable: false}}
      town: {{type: text}}
      age: {{type: integer, lower: 0, upper: 100, nullable: false}}
"""
BY_WARD = "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward"
TOTAL = f"SELECT SUM(n) AS total FROM ({BY_WARD})"
PEOPLE = 4000
CORRELATED = "SET dp.mechanism = 'correlated_laplace'"


def opened(path: Path, accountant: str = "zcdp", neighbours: str = "add_remove") -> Session:
    """Open a session over forty wards of 100 people."""
    path.mkdir(exist_ok=True)
    with duckdb.connect(str(path / "wards.duckdb")) as data:
        data.execute(
            "CREATE TABLE people AS SELECT CAST(i AS INTEGER) AS person, CAST(1 + i % 40 AS INTEGER) AS ward, "
            f"chr(97 + CAST(i % 3 AS INTEGER)) AS town, CAST(i % 100 AS INTEGER) AS age FROM range({PEOPLE}) r(i)"
        )
    (path / "policy.yaml").write_text(POLICY.format(accountant=accountant, neighbours=neighbours), encoding="utf-8")
    return open_session(path / "policy.yaml", create_ledger=True)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path / "wards") as session:
        session.execute(CORRELATED)
        yield session


@pytest.mark.parametrize("correlation", ["0", "0.9"])
@pytest.mark.parametrize(("accountant", "neighbours"), [("pure", "add_remove"), ("zcdp", "change_one")])
def test_it_is_charged_like_any_noise_and_stored(
    tmp_path: Path, accountant: str, neighbours: str, correlation: str
) -> None:
    with opened(tmp_path / "wards", accountant, neighbours) as session:
        session.execute(CORRELATED)
        session.execute(f"SET dp.correlation = {correlation}")
        release = session.execute(BY_WARD)
        assert not release.reused
        pure = accountant == "pure"
        spent, asked = (release.loss.epsilon, Fraction(1, 10)) if pure else (release.loss.rho, Fraction(1, 200))
        assert spent is not None and asked * Fraction(99, 100) < spent <= asked
        assert release.loss.delta == (Fraction(1, 10**9) if pure else 0)
        again = session.execute(BY_WARD)
        assert again.reused and list(again.rows()) == list(release.rows())


def test_reuse_off_draws_anew_and_charges_anew(session: Session) -> None:
    session.execute("SET dp.reuse = off")
    answers = [session.execute(BY_WARD) for _ in range(2)]
    assert list(answers[0].rows()) != list(answers[1].rows())
    assert all(answer.loss.rho == answers[0].loss.rho and answer.loss.rho for answer in answers)


def test_nothing_is_derived_from_it(session: Session) -> None:
    """Cells of one vector share W, so sums of them cannot be derived."""
    session.execute(BY_WARD)
    session.execute("SET dp.reuse = derive")
    assert not session.execute("SELECT COUNT(*) AS n FROM people").reused
    assert session.execute(BY_WARD).reused


def test_a_lone_number_does_not_pay_for_a_correlation(session: Session) -> None:
    """It is equally exact without a correlation; repeating the query with another correlation is the same query, and free."""
    lone, grouped = "SELECT COUNT(*) AS n, SUM(age) AS s FROM people", BY_WARD
    plain = [[output.error_95 for output in session.explain(text).outputs] for text in (lone, grouped)]
    first = session.execute(lone)
    session.execute("SET dp.correlation = 0.9")
    tied = [[output.error_95 for output in session.explain(text).outputs] for text in (lone, grouped)]
    assert tied[0] == plain[0]
    assert all(wide and narrow and wide > 4 * narrow for wide, narrow in zip(tied[1], plain[1], strict=True))
    again = session.execute(lone)
    assert again.receipt is not None and again.receipt.reused and list(again.rows()) == list(first.rows())


def test_noise_that_is_too_large_is_refused_with_what_makes_it_smaller(tmp_path: Path) -> None:
    opened(tmp_path / "many").close()
    policy = tmp_path / "many" / "policy.yaml"
    text = (
        policy.read_text(encoding="utf-8").replace("max_rows: 1", "max_rows: 400").replace("upper: 40", "upper: 4000")
    )
    policy.write_text(
        text.replace("    primary_key: [person]\n", "").replace("ledger.db", "other.db"), encoding="utf-8"
    )
    with open_session(policy, create_ledger=True) as session:
        session.execute(CORRELATED)
        session.execute("SET dp.correlation = 0.9")
        session.execute("SET dp.epsilon = 0.001")
        for question in (
            "EXPLAIN SELECT ward, SUM(age) FROM people GROUP BY ward",
            "SELECT ward, SUM(age) FROM people GROUP BY ward",
        ):
            with pytest.raises(Refusal) as caught:
                session.execute(question)
            assert caught.value.slug == "noise_too_large" and not caught.value.charged
        session.execute("SET dp.correlation = 0")
        assert session.execute(question).loss.rho


def test_private_keys_and_needless_deltas_are_refused(tmp_path: Path, session: Session) -> None:
    with pytest.raises(Refusal, match="for public keys alone, and town is private") as caught:
        session.execute("SELECT town, COUNT(*) FROM people GROUP BY town")
    assert caught.value.slug == "shared_noise_keys"
    for wrong in ("1", "-0.1", "often"):
        with pytest.raises(Error, match=r"dp\.correlation"):
            session.execute(f"SET dp.correlation = {wrong}")
    with opened(tmp_path / "pure", "pure") as pure:
        pure.execute(CORRELATED)
        pure.execute("SET dp.delta = 0")
        with pytest.raises(Refusal, match="needs delta"):
            pure.execute(BY_WARD)


def test_tables_are_not_measured_as_one(session: Session) -> None:
    """Least squares needs noise that is independent between the cells of a table."""
    session.execute("SET dp.workload = on")
    answer = session.execute("SELECT ward, COUNT(*) AS n FROM people GROUP BY ROLLUP(ward)")
    rows = dict(answer.rows())
    assert rows[None] != sum(count for ward, count in rows.items() if ward is not None)


def test_questions_of_little_epsilon_are_answered_with_a_correlation(tmp_path: Path) -> None:
    """Such queries need Gaussians with deviations above 2**20: a mean at epsilon 0.1 under pure accounting."""
    with opened(tmp_path / "pure", "pure") as session:
        session.execute(CORRELATED)
        session.execute("SET dp.correlation = 0.9")
        release = session.execute("SELECT ward, AVG(age) AS mean FROM people GROUP BY ward")
        assert len(list(release.rows())) == 40
        assert release.loss.epsilon is not None and Fraction(99, 1000) < release.loss.epsilon <= Fraction(1, 10)


@pytest.mark.parametrize("correlation", by_day(["0.9"], ["0", "0.9"]))
def test_bars_of_totals_over_groups_keep_their_word(session: Session, correlation: str) -> None:
    """At 80 %, fewer than 231 of 350 answers are held once in 10^9 runs. With a correlation of 0.9, a total over 40 groups has
    about 4 times the deviation of independent groups: replicates without the correlation would cover 25 %."""
    for setting in ("dp.reuse = off", "dp.confidence = 0.8", f"dp.correlation = {correlation}"):
        session.execute(f"SET {setting}")
    covered = []
    for _ in range(350):
        release = session.execute(TOTAL)
        low, high = (float(ends.column(0)[0].as_py()) for ends in (release.low, release.high))
        covered.append(low <= PEOPLE <= high)
    assert sum(covered) >= 231
