"""Every option of docs/options.md changes something that an analyst sees, so none is ignored."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clinic import build

from dpsql.errors.exceptions import Error
from dpsql.pricing.options import Options
from dpsql.session.session import Session, open_session

PAGE = Path(__file__).parents[3] / "docs" / "options.md"
AGES = "SELECT age, COUNT(*) AS n FROM patients WHERE region = 'south' GROUP BY age"
COSTS = "SELECT SUM(cost) AS total, COUNT(*) AS n FROM visits"
PRIVATE = "SELECT weight, COUNT(*) AS n FROM patients GROUP BY weight"
ROLLUP = "SELECT region, COUNT(*) AS n FROM patients GROUP BY ROLLUP (region)"
CORRELATIONS = "SELECT age, CORR(weight, patient_id % 7) AS c FROM patients GROUP BY age"


def priced(sql: str) -> Callable[[Session], Any]:
    return lambda session: session.explain(sql).price


def bounds(sql: str) -> Callable[[Session], Any]:
    return lambda session: [output.bound for output in session.explain(sql).outputs]


def negative(session: Session) -> bool:
    return min(n for _, n in session.execute(AGES).rows()) < 0


def repeated(session: Session) -> bool:
    return [session.execute(COSTS).reused for _ in range(2)][-1]


def nulls_without_information(session: Session) -> bool:
    release = session.execute(CORRELATIONS)
    unknown = release.unknown.column(1).to_pylist()
    assert any(unknown)
    return any(value is not None for (_, value), nothing in zip(release.rows(), unknown, strict=True) if nothing)


def means_of_few(session: Session) -> Any:
    session.execute("SET dp.epsilon = 0.001")
    return list(session.execute("SELECT age, AVG(weight) AS w FROM patients GROUP BY age").rows())


def first_row(session: Session) -> Any:
    return session.execute(AGES + " ORDER BY n DESC LIMIT 1").error.column(1)[0].as_py()


def price_of_a_target(session: Session) -> str:
    session.execute("SET dp.target_error = 3")
    return session.explain("SELECT AVG(weight) AS w FROM patients").price


def compared(session: Session) -> Any:
    session.execute("SET dp.threshold = 5")
    return session.execute("SELECT COUNT(*) FROM patients")


def proposed(session: Session) -> str:
    session.execute("SET dp.mechanism = propose_test_release")
    try:
        return session.explain("SELECT MEDIAN(age) AS m FROM patients").to_text()
    except Error as error:
        return error.slug


def correlated_bars(session: Session) -> list[float | None]:
    session.execute("SET dp.mechanism = correlated_laplace")
    return [output.error_95 for output in session.explain(AGES).outputs]


def receipt_of_a_comparison(session: Session) -> str:
    receipt = compared(session).receipt.id
    session.execute("SET dp.hits = 10")
    assert isinstance(receipt, str)
    return receipt


EFFECTS: dict[str, tuple[str, Callable[[Session], Any]]] = {
    "epsilon": ("0.5", priced(COSTS)),
    "delta": ("5e-10", priced(PRIVATE)),
    "mechanism": ("gaussian", lambda session: [output.mechanism for output in session.explain(COSTS).outputs]),
    "max_groups": ("1", bounds("SELECT weekday, COUNT(*) AS n FROM (SELECT cost > 20 AS weekday FROM visits) t GROUP BY weekday")),
    "min_units": ("20", lambda session: len(session.execute(AGES))),
    "max_rows_per_group": ("1", bounds(COSTS)),
    "max_total": ("100", bounds(COSTS)),
    "max_count": ("2", bounds(COSTS)),
    "max_values": ("2", bounds("SELECT COUNT(DISTINCT cost) AS n FROM visits")),
    "target_error": ("20", priced("SELECT COUNT(*) AS n FROM patients")),
    "assume_rows": ("100", price_of_a_target),
    "quantile_bars": ("on", lambda session: len(session.explain("SELECT MEDIAN(weight) FROM patients").outputs)),
    "confidence": ("0.5", lambda session: session.execute(AGES).error.column(1)[0].as_py()),
    "nonnegative": ("on", negative),
    "shrinkage": ("off", means_of_few),
    "workload": ("on", lambda session: [output.error_95 for output in session.explain(ROLLUP).outputs]),
    "unknown": ("null", nulls_without_information),
    "simultaneous": ("off", first_row),
    "threshold": ("5", lambda session: [column.name for column in session.execute("SELECT COUNT(*) FROM patients").columns]),
    "proposed_sensitivity": ("3", proposed),
    "correlation": ("0.5", correlated_bars),
    "watch": ("night", receipt_of_a_comparison),
    "hits": ("7", lambda session: next(compared(session).rows())[4]),
    "dialect": ("postgresql", lambda session: session.explain("SELECT age / 10, COUNT(*) FROM patients GROUP BY 1").to_text()),
    "project": ("flu", lambda session: sorted(session.budget().spent)),
    "reuse": ("off", repeated),
}  # fmt: skip
"""For each option, another value than its default, and the observation, which differs under it."""
SEEN_ELSEWHERE = {"bars", "on_behalf_of"}
"""Options of the columns that a client gets, and of the owner's history, which the tests of the server and of histories look at."""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    policy = build(tmp_path)
    policy.write_text(policy.read_text().replace("\nanalysts:", "\nprojects: {flu: {epsilon: 100}}\nanalysts:"))
    with open_session(policy, create_ledger=True) as opened:
        yield opened


def documented() -> set[str]:
    rows = PAGE.read_text(encoding="utf-8").split("## Options")[1].split("\n## ")[0].splitlines()
    return {name for row in rows if row.startswith("| `dp.") for name in re.findall(r"`dp\.(\w+)`", row.split("|")[1])}


def test_the_page_names_every_option_and_each_is_looked_at(session: Session) -> None:
    known = {name.removeprefix("dp.") for name in Options.of_policy(session.policy).show()}
    assert documented() == known == set(EFFECTS) | SEEN_ELSEWHERE


def test_each_option_is_shown_with_what_its_row_of_the_page_begins_with(session: Session) -> None:
    page = re.sub(r"`|\[([^]]*)\]\([^)]*\)", r"\1", PAGE.read_text())
    for name, value, description in session.execute("SHOW dp.all").rows():
        (row,) = re.findall(rf"^\| (?:dp\.\w+ )?{name} .*\|$", page, re.M)
        assert description and f"| {description}" in row, (name, value)


@pytest.mark.parametrize("name", EFFECTS)
def test_an_option_changes_what_is_seen(session: Session, name: str) -> None:
    value, seen = EFFECTS[name]
    usual = seen(session)
    session.execute(f"SET dp.{name} = {value}")
    assert seen(session) != usual
