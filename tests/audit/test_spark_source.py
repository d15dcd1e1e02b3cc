"""A policy on Spark is audited over Parquet files by a local Spark: nothing is found, but a copy of other rows is."""

from dataclasses import replace
from typing import Any

import pytest
from support.places import POLICIES
from support.spark_source import spark

from dpsql.policy import Policy, load_policy
from dpsql_audit.questions import Question
from dpsql_audit.replay import Replay
from dpsql_audit.sources import check_sources, kind_of

__all__ = ["spark"]


@pytest.fixture(scope="module")
def policy() -> Policy:
    hospital = load_policy(POLICIES / "hospital.yaml")
    tables = {name: replace(table, source=f"s3a://protected/{name}") for name, table in hospital.tables.items()}
    return replace(hospital, source="spark://nowhere.invalid:7077", tables=tables)


@pytest.fixture(scope="module")
def priced(policy: Policy) -> Any:
    replay = Replay(policy)
    done = next(replay.steps(Question("SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits")))
    return [(done.question, done.price)]


@pytest.mark.nightly
def test_nothing_is_found_on_sound_software(spark: Any, policy: Policy, priced: Any) -> None:
    """All profiles, on the files themselves and on prepared copies; the owner's cluster is not used."""
    assert kind_of(policy) == "spark"

    checked = check_sources(policy, priced, lambda: False)
    assert not checked.findings and "ended by" not in checked.words, checked.words
    assert checked.comparisons > 2 * 5


def test_a_copy_of_all_rows_is_found(spark: Any, policy: Policy, priced: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpsql.engine.spark import stored_views

    rows = stored_views._rows
    monkeypatch.setattr(stored_views, "_rows", lambda view, key: rows(replace(view, most=10**9), key))
    findings = check_sources(policy, priced, lambda: False).findings
    assert findings and findings[0].left
