"""Remainders over released blocks: rows, order, DP_ functions, lineage, positions of error bars, the Release object."""

import dataclasses
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from support.released_blocks import counts, laplace_noise, release, remainder

from dpsql.errors.exceptions import Error
from dpsql.plan.intervals import Type
from dpsql.privacy.loss import PrivacyLoss
from dpsql.release.error_bars import replicates
from dpsql.release.release import Presentation, Receipt, make_release, rehearse
from dpsql.release.remainder import ReleasedBlock, unanswered
from dpsql.release.sandbox import Sandbox

LAPLACE = laplace_noise("1/10")
NAMES = ("north", "south", "east", "west")


@pytest.fixture(scope="module")
def made() -> ReleasedBlock:
    """Return a block with keys out of alphabetical order: a declared domain is listed in the owner's order."""
    return counts([100.0, 400.0, 200.0, 300.0], LAPLACE, "release", keys=NAMES)


def column(found: pa.Table, at: int) -> list[Any]:
    return found.column(at).to_pylist()


# --- error bars -------------------------------------------------------------------------------------------------------


def test_an_engine_that_does_not_repeat_the_answer_is_noticed(
    sandbox: Sandbox, made: ReleasedBlock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last replicate is the answer itself; if it were missing, the replicates would belong to another answer."""
    found = release(sandbox, "SELECT sum(m0) FROM dp_0", [made])
    real = replicates.Variants.table
    monkeypatch.setattr(replicates.Variants, "table", lambda self, part: real(self, range(part.start, part.stop - 1)))
    assert column(found.error, 0) == [None]
    assert "order of its rows" in " ".join(found.bars.notes)


# --- DP_INTERVAL_LOW, DP_INTERVAL_HIGH, DP_ERROR ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(m0), 2 * DP_ERROR(sum(m0)) FROM dp_0",
        "SELECT k0, DP_ERROR(m0 / sum(m0) OVER ()) AS e FROM dp_0 ORDER BY e",
        "SELECT k0, DP_ERROR(m0 / sum(m0) OVER ()) AS e FROM dp_0 ORDER BY 2",
        "SELECT k0 FROM dp_0 WHERE k0 IN (SELECT k0 FROM dp_0 WHERE DP_ERROR(m0) > 1)",
        "SELECT length(k0) AS l, sum(m0) FROM dp_0 GROUP BY l ORDER BY DP_ERROR(sum(m0))",
        "SELECT sum(e) FROM (SELECT DP_ERROR(m0) AS e, m0 FROM dp_0) AS q",
    ],
)
def test_interval_functions_out_of_place_are_refused_before_anything_is_charged(
    sandbox: Sandbox, made: ReleasedBlock, sql: str
) -> None:
    empty = unanswered("dp_0", [Type.TEXT], ["t0"], made.formulas)
    with pytest.raises(Error) as caught:
        rehearse(sandbox, remainder(sql, [empty]), 0.95)
    assert (caught.value.slug, caught.value.charged) == ("interval_place", False)


# --- rehearsal and errors ---------------------------------------------------------------------------------------------


def test_rehearsal_refuses_types_that_do_not_meet(sandbox: Sandbox, made: ReleasedBlock) -> None:
    empty = unanswered("dp_0", [Type.TEXT], ["t0"], made.formulas)
    with pytest.raises(Error) as caught:
        rehearse(sandbox, remainder("SELECT k0 + m0 FROM dp_0 UNION ALL SELECT DATE '2020-01-01'", [empty]), 0.95)
    assert caught.value.slug == "sandbox_query"


def test_an_error_after_the_charge_says_so(sandbox: Sandbox, made: ReleasedBlock) -> None:
    asked = remainder("SELECT m0 + t.range AS n FROM dp_0 CROSS JOIN range(400000) t", [made])  # too many rows
    paid = Receipt("r", PrivacyLoss.pure(Fraction(1)), {})
    for receipt, charged in ((paid, True), (dataclasses.replace(paid, reused=True), False)):
        with pytest.raises(Error) as caught:
            make_release(sandbox, asked, Presentation(0.95), receipt)
        assert caught.value.charged is charged


# --- the object -------------------------------------------------------------------------------------------------------


def test_bars_are_computed_only_when_asked(
    sandbox: Sandbox, made: ReleasedBlock, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = release(sandbox, "SELECT k0, round(m0, 1) FROM dp_0", [made])
    calls: list[int] = []
    real = Sandbox.scratch
    monkeypatch.setattr(Sandbox, "scratch", lambda self, *rest: calls.append(1) or real(self, *rest))
    assert len(found.table) == 4 and calls == []
    assert found.low.num_rows == 4 and len(calls) == 1
    assert found.high.num_rows == 4 and len(calls) == 1


def test_hidden_columns_do_not_leak(sandbox: Sandbox, made: ReleasedBlock) -> None:
    for sql in (
        "SELECT * FROM dp_0",
        "SELECT q.* FROM (SELECT k0, m0 FROM dp_0) AS q",
        "WITH dp_cte_0 AS (SELECT k0, m0 FROM dp_0) SELECT a.k0, b.* FROM dp_cte_0 AS a JOIN dp_cte_0 AS b ON true",
    ):
        asked = remainder(sql, [made])
        names = ("a", "b", "c")[: 2 if "JOIN" not in sql else 3]
        asked = dataclasses.replace(asked, names=names)
        paid = Receipt("r", PrivacyLoss.nothing(), {})
        assert make_release(sandbox, asked, Presentation(0.95), paid).table.column_names == list(names)
