"""Stored releases that must not answer: differently capped rows, and noise with an unknown law."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.lost_releases import lose_releases
from support.noted_engine import spent

from dpsql.errors.exceptions import Fault, InternalError
from dpsql.pricing.budget_parts import term_errors
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity, TermNoise
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.registry import summed, to_json
from dpsql.release.error_bars.laws import deviates
from dpsql.reuse.record import opened
from dpsql.session.session import Session, open_session

ALONE = "SELECT COUNT(*) FROM visits WHERE cost < 35"
FILTERED = "SELECT COUNT(*) FILTER (WHERE cost < 35) FROM visits"
BY_KIND = "SELECT kind, COUNT(*) FROM visits WHERE cost < 35 GROUP BY kind"
BY_KIND_FILTERED = "SELECT kind, COUNT(*) FILTER (WHERE cost < 35) FROM visits GROUP BY kind"
TWO = "SELECT COUNT(*) FILTER (WHERE cost < 35), SUM(cost) FROM visits"
MANY = "SELECT kind, SUM(cost), COUNT(*) FILTER (WHERE cost < 35) FROM visits GROUP BY kind"
ONE = "SELECT kind, SUM(cost) FROM visits GROUP BY kind"

BY_TWO = "SELECT kind, cost > 30 AS dear, COUNT(*) FROM visits GROUP BY kind, dear"
TURNED = "SELECT cost > 30 AS dear, kind, COUNT(*) FROM visits GROUP BY dear, kind"
VALUES = "SELECT kind, cost > 30 AS dear, COUNT(DISTINCT cost) FROM visits GROUP BY kind, dear"
VALUES_TURNED = "SELECT cost > 30 AS dear, kind, COUNT(DISTINCT cost) FROM visits GROUP BY dear, kind"


@pytest.mark.parametrize("reuse", ["on", "derive"])
@pytest.mark.parametrize(
    ("cap", "first", "second"),
    [
        ("max_rows_per_group = 1", ALONE, FILTERED),
        ("max_rows_per_group = 1", FILTERED, ALONE),
        ("max_rows_per_group = 1", BY_KIND, BY_KIND_FILTERED),
        ("max_groups = 1", BY_KIND, BY_KIND_FILTERED),
        ("max_groups = 1", BY_KIND_FILTERED, BY_KIND),
        ("max_rows_per_group = 1", TWO, FILTERED),
        ("max_rows_per_group = 1", MANY, ONE),
        ("max_rows_per_group = 1", BY_TWO, TURNED),
        ("max_groups = 1", BY_TWO, TURNED),
        ("max_values = 1", VALUES, VALUES_TURNED),
    ],
)
def test_where_caps_cut_other_rows_the_answer_is_measured_anew(
    session: Session, reuse: str, cap: str, first: str, second: str
) -> None:
    session.execute(f"SET dp.reuse = {reuse}")
    session.execute(f"SET dp.{cap}")
    session.execute(first)
    before = spent(session)
    assert not session.explain(second).stored
    assert not session.execute(second).reused
    assert spent(session) != before
    assert session.execute(second).reused


@pytest.mark.parametrize(("first", "second"), [(ALONE, FILTERED), (BY_KIND, BY_KIND_FILTERED), (TWO, FILTERED)])
def test_without_caps_a_filter_is_as_good_as_a_where(session: Session, first: str, second: str) -> None:
    session.execute("SET dp.reuse = derive")
    session.execute(first)
    assert session.execute(second).reused


# --- unknown laws ---------------------------------------------------------------------------------------------------


def renamed(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the note of a release with noise of another law."""
    terms = [{**term, "noise": {**term["noise"], "mechanism": "staircase"}} for term in metadata["terms"]]
    return {**metadata, "terms": terms}


def replace_release(session: Session) -> None:
    """Rewrite all stored releases with noise of an unknown law."""
    store = session.context.store
    releases = [store.get(note.key) for note in store.notes()]
    lose_releases(store)
    for release in releases:
        assert release is not None
        metadata = release.note.metadata
        changed = renamed(metadata) if "terms" in metadata else metadata
        store.put(release.note.key, release.payload, changed, block=release.note.block)


def test_a_release_with_noise_of_an_unknown_law_is_not_read(policy: Path) -> None:
    with open_session(policy, analyst="ann", create_ledger=True) as session:
        session.execute(BY_KIND)
        replace_release(session)
    with open_session(policy, analyst="ann") as session:
        before = spent(session)
        with pytest.raises(Fault) as caught:
            session.execute(BY_KIND)
        assert caught.value.slug == "release_unknown"
        assert not caught.value.charged
        assert spent(session) == before
        session.execute("SET dp.reuse = derive")
        assert not session.execute(ALONE).reused  # nothing is derived from it either


@pytest.mark.parametrize("change", [{"noise": {"mechanism": "laplace"}}, {"later": 1}])
def test_a_release_that_says_too_little_or_too_much_is_not_read(session: Session, change: dict[str, Any]) -> None:
    session.execute(ALONE)
    (release,) = (
        r
        for note in session.context.store.notes()
        if "terms" in note.metadata and (r := session.context.store.get(note.key))
    )
    assert opened(release) is not None
    release.note.metadata["terms"][0].update(change)
    with pytest.raises(Fault, match="another version") as caught:
        opened(release)
    assert caught.value.slug == "release_unknown"


class Staircase:
    """An unknown law of noise."""

    mechanism, shift = "staircase", 0
    noise_scale = 1

    def standard_deviation(self) -> float:
        return 1.0

    def half_width(self, confidence: float) -> float:
        return 2.0


def test_nothing_is_said_of_an_unknown_law() -> None:
    noise: Any = Staircase()
    term: Any = SimpleNamespace(noise=noise, noise_unit=1.0, whole=False)
    block: Any = SimpleNamespace(terms=())
    with pytest.raises(InternalError, match="staircase"):
        to_json(noise)
    with pytest.raises(InternalError, match="staircase"):
        term_errors(block, [TermNoise("t0", noise, 0, True)], 0.95)
    with pytest.raises(InternalError, match="staircase"):
        deviates(term, np.asarray([0.25, 0.5]))
    assert summed(noise, 1, True) is None
    assert summed(noise, 2, True) is None
    known: Noise = Laplace(Sensitivity(1, 1, 1, 1), 0, 1, 1)
    assert summed(known, 1, True) is known
