"""SUMMARIZE: one private profile of a table, at one price, through the same path as any question."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.clinic import build
from support.exact_session import exact_session

from dpsql.errors.exceptions import Error
from dpsql.policy import load_policy
from dpsql.session.session import Session, open_session


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with exact_session(load_policy(build(tmp_path)), None, tmp_path / "exact.db") as opened:
        yield opened


def test_a_profile_is_that_of_the_table(session: Session) -> None:
    release = session.execute("summarize patients")
    assert [column.name for column in release.columns] == [
        "column_name", "column_type", "count", "missing", "mean", "q25", "median", "q75", "most_frequent",
    ]  # fmt: skip
    rows = {row[0]: row[1:] for row in release.rows()}
    assert rows["patient_id"] == ("integer", 1000, 0, None, None, None, None, None)
    assert rows["region"][:3] == ("text", 1000, 0) and rows["region"][-1] in ("north", "south")
    assert rows["age"][:3] == ("integer", 1000, 0) and rows["age"][3] == pytest.approx(49.1)
    assert rows["age"][4:7] == (34, 49, 64)
    assert not [remark for remark in release.remarks if "unknown" in remark]
    verbose = (
        "EXPLAIN VERBOSE shows the error of the choice"  # neither EXPLAIN nor the answer sends the reader to the other
    )
    assert (
        f"median: chosen among values, or computed from such; {verbose}" in session.explain("SUMMARIZE patients").lines
    )
    assert any(verbose in remark for remark in release.remarks)
    details = session.explain("SUMMARIZE visits").details()
    assert "quantile 0.5 of cost" in details and "rank error of at most" in details


def test_a_profile_leaves_out_what_the_policy_does_not_allow(tmp_path: Path) -> None:
    policy = replace(load_policy(build(tmp_path)), mechanisms=())
    with exact_session(policy, None, tmp_path / "exact.db") as session:
        rows = {row[0]: row[1:] for row in session.execute("SUMMARIZE patients").rows()}
    assert rows["region"] == ("text", 1000, 0, None, None, None, None, None)
    assert rows["age"][4:7] == (34, 49, 64)


@pytest.mark.parametrize("dialect", ["duckdb", "postgresql"])
def test_a_profile_costs_one_question(tmp_path: Path, dialect: str) -> None:
    """At the epsilon of the session or of the option, whatever the number of columns; EXPLAIN and asking again are free."""
    with open_session(build(tmp_path), create_ledger=True) as opened:
        opened.set_option("dialect", dialect)
        opened.set_option("epsilon", "0.5")
        price = opened.explain("EXPLAIN SUMMARIZE visits").price
        assert price.startswith("epsilon 0.5, ")
        before = opened.budget().spent
        assert [column.name for column in opened.describe("SUMMARIZE visits")][:2] == ["column_name", "column_type"]
        assert opened.budget().spent == before
        assert opened.execute("SUMMARIZE visits").receipt.is_paid
        assert not opened.execute("SUMMARIZE TABLE visits").receipt.is_paid


@pytest.mark.parametrize(
    ("sql", "slug"), [("SUMMARIZE patient", "unknown_table"), ("SUMMARIZE SELECT 1", "syntax"), ("SUMMARIZE", "syntax")]
)
def test_what_is_no_table_has_no_profile(session: Session, sql: str, slug: str) -> None:
    with pytest.raises(Error) as refusal:
        session.execute(sql)
    assert refusal.value.slug == slug and not refusal.value.charged
