"""Remainders over released blocks: rows, order, DP_ functions, lineage, positions of error bars, the Release object."""

from __future__ import annotations

import dataclasses
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.released_blocks import (
    T0,
    T1,
    T2,
    block,
    count_of,
    counts,
    gaussian_noise,
    laplace_noise,
    noisy,
    release,
    remainder,
)

from dpsql.errors.exceptions import Error
from dpsql.plan.intervals import Type
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Constant, Sensitivity
from dpsql.release.error_bars.column_facts import column_facts
from dpsql.release.error_bars.rowwise import trace
from dpsql.release.release import Presentation, Receipt, Release, make_release, rehearse
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


def shown(found: Release) -> list[object]:
    return column(found.table, 0)


# --- rows and order ---------------------------------------------------------------------------------------------------

ORDERS = {
    "SELECT k0, m0 FROM dp_0": list(NAMES),
    "SELECT k0 FROM dp_0 WHERE m0 > 150": ["south", "east", "west"],
    "SELECT k0, m0 AS n FROM dp_0 ORDER BY n DESC": ["south", "west", "east", "north"],
    "SELECT k0 FROM dp_0 ORDER BY m0 > 250 DESC": ["south", "west", "north", "east"],
    "SELECT k0 FROM dp_0 LIMIT 2": ["north", "south"],
    "SELECT * FROM (SELECT k0, m0 AS n FROM dp_0 ORDER BY n LIMIT 3) AS q": ["north", "east", "west"],
    "SELECT q.a FROM (SELECT k0 AS a, m0 AS b FROM dp_0) AS q(a, b) WHERE b < 350": ["north", "east", "west"],
    "SELECT k0 FROM dp_0 QUALIFY row_number() OVER (ORDER BY m0 DESC) <= 2": ["south", "west"],
    "SELECT length(k0) AS l, sum(m0) FROM dp_0 GROUP BY l": [4, 5],
    "SELECT DISTINCT left(k0, 1) AS l FROM dp_0": ["e", "n", "s", "w"],
    "SELECT k0 FROM dp_0 EXCEPT SELECT k0 FROM dp_0 WHERE m0 > 250": ["east", "north"],
    "SELECT k0, m0 FROM dp_0 WHERE k0 > 'p' UNION ALL SELECT 'all', sum(m0) FROM dp_0": ["south", "west", "all"],
    "WITH dp_cte_0 AS (SELECT k0, m0 AS n FROM dp_0) SELECT k0 FROM dp_cte_0 WHERE n = (SELECT max(n) FROM dp_cte_0)":
        ["south"],
}  # fmt: skip


@pytest.mark.parametrize("sql", ORDERS)
def test_rows_and_order_are_those_of_the_query(sandbox: Sandbox, made: ReleasedBlock, sql: str) -> None:
    found = release(sandbox, sql, [made])
    assert shown(found) == ORDERS[sql]
    assert len(found.bars.low) == len(found)


def test_bars_stay_with_their_groups(sandbox: Sandbox) -> None:
    """Filtered, reordered, cut: each row's bar is that of its own group, whose noise differs through the weight k1."""
    term = noisy("t0", [500.0, 600, 700, 800], LAPLACE, "weights", whole=True)
    made = block({"k0": list("abcd"), "k1": [1, 2, 3, 4]}, [term], [count_of(T0)])
    sql = "SELECT w, n * w FROM (SELECT k1 AS w, m0 AS n FROM dp_0 WHERE k0 <> 'b') AS q ORDER BY w DESC LIMIT 2"
    found = release(sandbox, sql, [made])
    assert column(found.table, 0) == [4, 3]
    assert column(found.error, 1) == [4 * LAPLACE.half_width(0.95), 3 * LAPLACE.half_width(0.95)]


def test_columns_of_joined_public_tables_are_exact(sandbox: Sandbox, made: ReleasedBlock) -> None:
    public = {"dp_public_0": pa.table({"r": ["south", "north"], "area": [2.0, 4.0]})}
    sql = "SELECT r, m0 / area, area FROM dp_0 JOIN dp_public_0 ON r = k0"
    found = release(sandbox, sql, [made], public=public)
    assert shown(found) == ["north", "south"]
    assert [c.noisy for c in found.columns] == [False, True, False]
    assert all(isinstance(value, float) for value in column(found.error, 1))
    assert column(found.error, 2) == [None, None]


# --- which columns are noisy ------------------------------------------------------------------------------------------

LINEAGE = {
    "SELECT k0, m0, 1, k0 || 'x', m0 > 1 FROM dp_0": (False, True, False, False, True),
    "SELECT k0, count(*) OVER () FROM dp_0": (False, True),
    "SELECT k0, count(*) OVER () FROM dp_0 WHERE m0 > 1": (False, True),
    "SELECT count(*) FROM dp_0": (True,),
    "SELECT count(*) FROM (SELECT sum(m0) FROM dp_0) AS q": (False,),
    "SELECT count(*) FROM (SELECT k0 FROM dp_0 WHERE m0 > 1) AS q": (True,),
    "SELECT count(*) FROM (SELECT k0 FROM dp_0 ORDER BY m0 LIMIT 2) AS q": (True,),
    "SELECT count(*) FROM (SELECT k0 FROM dp_0 ORDER BY k0 LIMIT 2) AS q": (True,),
    "SELECT max(k0) FROM dp_0 WHERE m0 > 1": (True,),
    "SELECT round(m0, -2) AS b, count(*) FROM dp_0 GROUP BY b": (True, True),
    "SELECT k0, row_number() OVER (ORDER BY m0) FROM dp_0": (False, True),
    "SELECT k0, (SELECT max(m0) FROM dp_0) FROM dp_0": (False, True),
    "SELECT k0 FROM dp_0 UNION SELECT m0 FROM dp_0": (True,),
    "SELECT a.k0, b.m0 FROM dp_0 AS a JOIN dp_0 AS b ON a.k0 = b.k0": (False, True),
    "SELECT count(*) FROM dp_0 AS a JOIN dp_0 AS b ON a.m0 > b.m0": (True,),
    "SELECT q.n FROM (SELECT m0 AS k0, k0 AS n FROM dp_0) AS q": (False,),
    "SELECT k0, CASE WHEN EXISTS (SELECT 1 FROM dp_0 AS z WHERE z.m0 > 3) THEN 1 END FROM dp_0": (False, True),
    "SELECT k0, DP_ERROR(m0), m0 + DP_ERROR(m0) FROM dp_0": (False, False, True),
    "SELECT m0 AS n, n + 1, k0 AS m, m FROM dp_0": (True, True, False, False),
}


@pytest.mark.parametrize("sql", LINEAGE)
def test_lineage_finds_the_noisy_outputs(made: ReleasedBlock, sql: str) -> None:
    assert column_facts(remainder(sql, [made])).noisy == LINEAGE[sql]


# --- error bars -------------------------------------------------------------------------------------------------------


def test_linear_bars_are_exact(sandbox: Sandbox) -> None:
    one, two = laplace_noise("1/10"), gaussian_noise("1/200", 30)
    terms = [
        noisy("t0", [500.0], one, "linear", whole=True),
        noisy("t1", [9000.0], two, "linear", whole=False),
        noisy("t2", [9000.0], two, "linear again", whole=False),
    ]
    formulas = [count_of(T0), (T1, Type.REAL), (T2, Type.REAL)]
    made = block({"k0": ["a"]}, terms, [*formulas, count_of(T1 + 5 * T2)])
    sql = "SELECT m0 * 3 - 7, m1 / 4, m1 - 2 * m2, m1 - m1, m3, CAST(m0 AS DOUBLE) FROM dp_0"
    table = release(sandbox, sql, [made]).error
    found = [column(table, at)[0] for at in range(6)]
    sigma = two.standard_deviation()
    assert found[0] == 3 * one.half_width(0.95)
    assert found[1] == pytest.approx(two.half_width(0.95) / 4, rel=1e-12)
    assert found[2] == pytest.approx(1.959964 * sigma * 5**0.5, rel=1e-6)
    assert found[3] == 0
    assert found[4] == np.floor(1.959964 * sigma * 26**0.5 + 0.5)
    assert found[5] == one.half_width(0.95)


def test_a_constant_term_has_no_width(sandbox: Sandbox) -> None:
    term = noisy("t0", [0.0], Constant(Sensitivity(0, 0, 0, 0)), "constant", whole=True)
    found = release(sandbox, "SELECT m0, sqrt(m0) FROM dp_0", [block({}, [term], [count_of(T0)])])
    assert column(found.error, 0) == [0]
    assert column(found.error, 1) == [0]


def test_bars_are_the_same_for_the_same_numbers(sandbox: Sandbox, made: ReleasedBlock) -> None:
    """A dashboard answered from stored releases gets a new receipt, but its bars must not flicker."""
    sql = "SELECT k0, m0 / sum(m0) OVER (), sqrt(abs(m0)) FROM dp_0"
    first, again = (release(sandbox, sql, [made], receipt=name).error for name in ("a", "b"))
    assert first.equals(again)
    other = counts([100.0, 400.0, 200.0, 300.0], LAPLACE, "other noise", keys=NAMES)
    assert not first.equals(release(sandbox, sql, [other]).error)


def test_rows_that_noise_chose_keep_their_bars(sandbox: Sandbox) -> None:
    """Each of eight equal groups comes first in only an eighth of the replicates."""
    equal = counts([500.0] * 8, LAPLACE, "chosen")
    for cut in ("ORDER BY m0 DESC LIMIT 1", "QUALIFY row_number() OVER (ORDER BY m0 DESC) = 1"):
        found = release(sandbox, f"SELECT k0, m0 / sum(m0) OVER () FROM dp_0 {cut}", [equal])
        assert 0 < column(found.error, 1)[0] < 0.02


UNKNOWN = {
    "SELECT k0, CASE WHEN m0 > 150 THEN 'many' ELSE 'few' END FROM dp_0": "it is no number",
    "SELECT a.m0 - b.m0 FROM dp_0 AS a JOIN dp_0 AS b ON a.k0 < b.k0": "select the group keys",
    "SELECT k0, 1 / nullif(m0 - m0, 0) FROM dp_0": "",
    "SELECT k0, m0 / nullif(round(m0 / 1000), 0) FROM dp_0": "",
}


@pytest.mark.parametrize("sql", UNKNOWN)
def test_what_cannot_be_known_is_null(sandbox: Sandbox, made: ReleasedBlock, sql: str) -> None:
    """An unknown error is never a made-up number: text, rows that cannot be matched, values that are often missing in
    replicates."""
    found = release(sandbox, sql, [made])
    last = found.table.num_columns - 1
    assert set(column(found.error, last)) == {None}
    assert UNKNOWN[sql] in " ".join(found.bars.notes)


def test_an_engine_that_does_not_repeat_the_answer_is_noticed(
    sandbox: Sandbox, made: ReleasedBlock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last replicate is the answer itself; if it were missing, the replicates would belong to another answer."""
    from dpsql.release.error_bars import bootstrap

    found = release(sandbox, "SELECT sum(m0) FROM dp_0", [made])
    real = bootstrap.Variants.table
    monkeypatch.setattr(bootstrap.Variants, "table", lambda self, part: real(self, range(part.start, part.stop - 1)))
    assert column(found.error, 0) == [None]
    assert "order of its rows" in " ".join(found.bars.notes)


# --- DP_INTERVAL_LOW, DP_INTERVAL_HIGH, DP_ERROR ----------------------------------------------------------------------


def test_interval_functions_agree_with_the_bars(sandbox: Sandbox, made: ReleasedBlock) -> None:
    for expression in ("m0", "m0 * 2", "sqrt(m0)", "m0 / sum(m0) OVER ()"):
        sql = (
            f"SELECT {expression} AS v, DP_INTERVAL_LOW({expression}), dp_interval_high({expression}), "
            f"Dp_Error({expression}) AS e FROM dp_0"
        )
        found = release(sandbox, sql, [made])
        assert [c.noisy for c in found.columns] == [True, False, False, False]
        for at, table in enumerate((found.low, found.high, found.error), 1):
            assert column(found.table, at) == column(table, 0)


def test_interval_functions_can_be_used_inside_expressions(sandbox: Sandbox, made: ReleasedBlock) -> None:
    half = LAPLACE.half_width(0.95)
    found = release(sandbox, "SELECT k0, 100 * DP_ERROR(m0) / m0 AS percent FROM dp_0 ORDER BY percent", [made])
    values = dict(zip(made.keys.column(0).to_pylist(), made.terms[0].values, strict=True))
    assert column(found.table, 1) == sorted(100 * half / v for v in values.values())
    sql = "SELECT k0 FROM dp_0 WHERE DP_INTERVAL_LOW(m0) > 200 ORDER BY DP_INTERVAL_HIGH(m0) DESC"
    want = sorted((k for k, v in values.items() if v - half > 200), key=lambda k: -values[k])
    assert shown(release(sandbox, sql, [made])) == want


def test_interval_functions_accept_aliases_and_columns_of_subqueries(sandbox: Sandbox, made: ReleasedBlock) -> None:
    half = LAPLACE.half_width(0.95)
    for sql in (
        "SELECT m0 * 2 AS n, DP_ERROR(n) FROM dp_0",
        "WITH dp_cte_0 AS (SELECT k0, m0 * 2 AS n FROM dp_0) SELECT n, DP_ERROR(n) FROM dp_cte_0",
        "SELECT q.n, q.e FROM (SELECT m0 * 2 AS n, DP_ERROR(n) AS e FROM dp_0) AS q WHERE q.e > 1",
        "SELECT n, DP_ERROR(q.n) AS e FROM (SELECT * FROM (SELECT m0 * 2 AS n FROM dp_0) AS p) AS q",
    ):
        assert column(release(sandbox, sql, [made]).table, 1) == [2 * half] * 4


def test_dp_error_of_an_aggregate_over_results_equals_its_bar(sandbox: Sandbox, made: ReleasedBlock) -> None:
    found = release(sandbox, "SELECT sum(m0) AS s, DP_ERROR(sum(m0)), DP_ERROR(s) FROM dp_0", [made])
    assert column(found.table, 1) == column(found.error, 0)
    assert column(found.table, 2) == column(found.error, 0)


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


@pytest.mark.parametrize("sql", [*ORDERS, *LINEAGE])
def test_rehearsal_accepts_what_runs_and_knows_the_columns(sandbox: Sandbox, made: ReleasedBlock, sql: str) -> None:
    empty = unanswered("dp_0", [Type.TEXT], ["t0"], made.formulas)
    known = rehearse(sandbox, remainder(sql, [empty]), 0.95)
    found = release(sandbox, sql, [made]).columns
    assert [(c.name, c.noisy) for c in known] == [(c.name, c.noisy) for c in found]
    assert all(a.type is b.type or Type.NULL in (a.type, b.type) for a, b in zip(known, found, strict=True))


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


def test_release_object_has_rows_frames_and_receipt(sandbox: Sandbox, made: ReleasedBlock) -> None:
    found = release(sandbox, "SELECT k0, m0 AS n, m0 AS n FROM dp_0 ORDER BY k0", [made])
    assert found.table.column_names == ["k0", "n", "n"]
    assert [c.type for c in found.columns] == [Type.TEXT, Type.INTEGER, Type.INTEGER]
    assert next(iter(found.rows())) == ("east", *([int(made.terms[0].values[2])] * 2))
    assert found.to_polars().columns == ["k0", "n", "n_1"]
    assert list(found.to_pandas().columns) == ["k0", "n", "n"]
    framed = found.to_pandas(bars=True)
    assert list(framed.columns) == ["k0", "n", "n_low", "n_high", "n", "n_low", "n_high"]
    assert [list(framed.iloc[:, column]) for column in (2, 3)] == [
        ends.column(1).to_pylist() for ends in (found.low, found.high)
    ]
    assert found.to_polars(bars=True).columns[:4] == ["k0", "n", "n_low", "n_high"]
    assert (found.epsilon, found.delta, found.rho) == ("0.1", "0", "0.00499584")
    assert (found.receipt_id, found.remaining, found.reused) == ("r-1", {"dataset": "epsilon 9.9"}, False)
    assert "east" in repr(found) and "epsilon 0.1" in repr(found) and "r-1" in repr(found)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.receipt = found.receipt  # type: ignore[misc]


@pytest.mark.parametrize("asked_before", [False, True])
def test_release_travels_with_its_error_bars(sandbox: Sandbox, made: ReleasedBlock, asked_before: bool) -> None:
    sql = "SELECT k0, m0 / sum(m0) OVER () AS share, DP_ERROR(m0) AS e FROM dp_0 WHERE m0 > 150 ORDER BY share"
    found = release(sandbox, sql, [made])
    if asked_before:
        assert found.low.num_rows == 3
    copy = pickle.loads(pickle.dumps(found))
    assert copy.table.equals(found.table)
    assert copy.low.equals(found.low)
    assert copy.receipt == found.receipt


def test_bars_are_computed_only_when_asked(
    sandbox: Sandbox, made: ReleasedBlock, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = release(sandbox, "SELECT k0, sqrt(m0) FROM dp_0", [made])
    calls: list[int] = []
    real = Sandbox.room
    monkeypatch.setattr(Sandbox, "room", lambda self, *rest: calls.append(1) or real(self, *rest))
    assert len(found.table) == 4 and calls == []
    assert found.low.num_rows == 4 and len(calls) == 1
    assert found.high.num_rows == 4 and len(calls) == 1


def test_empty_answers_have_empty_bars(sandbox: Sandbox, made: ReleasedBlock) -> None:
    for sql in (
        "SELECT k0, m0, sqrt(m0) FROM dp_0 WHERE false",
        "SELECT k0, sum(m0) FROM dp_0 WHERE false GROUP BY k0",
    ):
        found = release(sandbox, sql, [made])
        assert (len(found), len(found.low), found.bars.notes) == (0, 0, ())


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


def test_trace_knows_row_wise_remainders(made: ReleasedBlock) -> None:
    assert trace(remainder("SELECT k0 FROM dp_0", [made])) is not None
    for sql in (
        "SELECT sum(m0) FROM dp_0",
        "SELECT DISTINCT k0 FROM dp_0",
        "SELECT 1",
        "SELECT k0 FROM dp_0, dp_0 AS b",
    ):
        assert trace(remainder(sql, [made])) is None


def test_a_function_that_the_sandbox_computes_has_an_error_bar_without_group_by(sandbox: Sandbox) -> None:
    term = noisy("t0", [500.25], laplace_noise("1/10"), "no keys", whole=False)
    (error,) = column(
        release(sandbox, "SELECT round(m0, 1) FROM dp_0", [block({}, [term], [(T0, Type.REAL)])]).error, 0
    )
    assert error > 20
