"""Answers computed from stored releases: sums of released numbers, with error bars that hold, and nothing else."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.effort import slow
from support.hospital_file import exact
from support.noted_engine import spent

from dpsql.session.session import Session, open_session

BASE = "SELECT region, plan, smoker, COUNT(*) AS n, SUM(age) AS s, COUNT(age) AS k FROM patients GROUP BY ALL"


@pytest.fixture
def deriving(session: Session) -> Iterator[Session]:
    session.execute("SET dp.reuse = derive")
    yield session


def rows(session: Session, sql: str) -> list[tuple[object, ...]]:
    return list(session.execute(sql).rows())


Cell = tuple[str, str | None, bool, int, int, int]

CASES: list[tuple[str, Callable[[Cell], object], Callable[[Cell], bool], tuple[int, ...]]] = [
    # query, its group, its cells, the released columns that it sums
    ("SELECT region, COUNT(*) FROM patients GROUP BY region", lambda c: c[:1], lambda c: True, (3,)),
    ("SELECT COUNT(*), SUM(age) FROM patients", lambda c: (), lambda c: True, (3, 4)),
    ("SELECT smoker, region, SUM(age) FROM patients GROUP BY 1, 2", lambda c: (c[2], c[0]), lambda c: True, (4,)),
    ("SELECT plan, COUNT(*) FROM patients WHERE region = 'west' GROUP BY plan", lambda c: c[1:2], lambda c: c[0] == "west", (3,)),
    (
        "SELECT COUNT(*) FROM patients WHERE region IN ('west', 'south') AND smoker",
        lambda c: (),
        lambda c: c[0] != "north" and c[2],
        (3,),
    ),
    ("SELECT COUNT(*) FROM patients WHERE plan IS NULL", lambda c: (), lambda c: c[1] is None, (3,)),
    ("SELECT COUNT(*) FROM patients WHERE plan <> 'pro'", lambda c: (), lambda c: c[1] == "free", (3,)),
    (
        "SELECT COUNT(*) FROM patients WHERE NOT smoker OR region = 'north'",
        lambda c: (),
        lambda c: not c[2] or c[0] == "north",
        (3,),
    ),
    ("SELECT COUNT(*) FROM patients WHERE 'south' < region", lambda c: (), lambda c: c[0] == "west", (3,)),
    ("SELECT region, COUNT(*) FILTER (WHERE smoker) FROM patients GROUP BY 1", lambda c: c[:1], lambda c: c[2], (3,)),
    ("SELECT COUNT(age) FROM patients WHERE smoker", lambda c: (), lambda c: c[2], (5,)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case[0])[7:70])
def test_a_derived_answer_is_the_sum_of_released_cells(
    deriving: Session, case: tuple[str, object, object, tuple[int, ...]]
) -> None:
    sql, group, inside, columns = case
    assert callable(group)
    assert callable(inside)
    released = rows(deriving, BASE)
    assert spent(deriving) == "1"
    answer = deriving.execute(sql)
    assert answer.reused
    assert spent(deriving) == "1"
    sums: dict[object, list[int]] = {}
    for cell in released:
        total = sums.setdefault(group(cell), [0] * len(columns))
        for at, column in enumerate(columns):
            value = cell[column]
            assert isinstance(value, int)
            total[at] += value if inside(cell) else 0
    keys = len(next(iter(sums)))  # type: ignore[arg-type]
    assert [row[:keys] for row in answer.rows()] == sorted(sums, key=lambda group: [(v is None, v) for v in group])  # type: ignore[attr-defined]
    for row in answer.rows():
        # At most twelve cells, each rounded by at most one half, and the rounding of the sum
        assert list(row[keys:]) == pytest.approx(sums[row[:keys]], abs=6.5)


REFUSED = [
    "SELECT region, COUNT(*) FROM patients WHERE age > 30 GROUP BY region",  # a condition on a column that is no key
    "SELECT COUNT(*) FROM patients WHERE plan = 'gold'",  # no cell has it, but rows may
    "SELECT COUNT(DISTINCT plan) FROM patients",  # not measured
    "SELECT SUM(patient_id % 10) FROM patients",  # not measured
    "SELECT region, COUNT(*) FROM patients GROUP BY region, ward",  # a key that was not measured
    "SELECT COUNT(*) FROM visits",  # another relation
    "SELECT COUNT(*) FROM patients WHERE CASE WHEN smoker THEN age ELSE 1 END > 2",
    "SELECT city, COUNT(*) FROM patients GROUP BY city",  # private keys
]


@pytest.mark.parametrize("sql", REFUSED)
def test_what_does_not_follow_is_charged(deriving: Session, sql: str) -> None:
    deriving.execute(BASE)
    assert not deriving.execute(sql).reused
    assert spent(deriving) == "2"


def test_bounded_keys_are_not_summed_over_because_bounds_promise_nothing(deriving: Session) -> None:
    """Wards 5 and 6 exist in the data but are no groups; a third of the patients would be missing from the sum."""
    released = rows(deriving, "SELECT ward, COUNT(*) FROM patients GROUP BY ward")
    assert sum(int(str(n)) for _, n in released) < 900
    total = deriving.execute("SELECT COUNT(*) FROM patients")
    assert not total.reused
    assert next(total.rows())[0] == pytest.approx(1200, abs=40)
    sliced = deriving.execute("SELECT COUNT(*) FROM patients WHERE ward = 2")
    assert sliced.reused
    assert next(sliced.rows())[0] == released[1][1]
    assert not deriving.execute("SELECT COUNT(*) FROM patients WHERE ward = 5").reused
    assert not deriving.execute("SELECT COUNT(*) FROM patients WHERE ward IN (2, 5)").reused
    assert deriving.execute("SELECT COUNT(*) FROM patients WHERE ward IN (2, 4)").reused
    assert not deriving.execute("SELECT COUNT(*) FROM patients WHERE ward > 2").reused


def test_a_key_that_leaves_rows_out_is_not_summed_over(deriving: Session) -> None:
    """Ages beyond the bounds belong to no group of age > 50."""
    deriving.execute("SELECT plan, age > 50 AS old, COUNT(*) FROM patients GROUP BY 1, 2")
    assert not deriving.execute("SELECT plan, COUNT(*) AS n FROM patients GROUP BY plan").reused
    assert deriving.execute("SELECT age > 50, COUNT(*) FROM patients GROUP BY 1").reused


@pytest.mark.parametrize(
    "key", ["city = 'Linz'", "patient_id % 2 = 0", "CASE WHEN city < 'L' THEN 'early' ELSE 'late' END"]
)
def test_truth_values_and_cases_of_columns_without_bounds_are_summed_over(deriving: Session, key: str) -> None:
    released = rows(deriving, f"SELECT plan, {key} AS part, COUNT(*) FROM patients GROUP BY 1, 2")
    total = deriving.execute("SELECT COUNT(*) FROM patients")
    assert total.reused
    assert list(total.rows()) == [(sum(int(str(row[2])) for row in released),)]


def test_contribution_caps_must_not_matter(deriving: Session) -> None:
    deriving.execute("SET dp.max_groups = 1")
    deriving.execute("SELECT kind, cost > 30 AS dear, COUNT(*) FROM visits GROUP BY 1, 2")
    assert not deriving.execute("SELECT kind, COUNT(*) FROM visits GROUP BY 1").reused
    deriving.execute("RESET dp.max_groups")
    deriving.execute("SELECT kind, cost > 30 AS dear, COUNT(*) FROM visits GROUP BY 1, 2")
    assert deriving.execute("SELECT cost > 30 AS dear, COUNT(*) FROM visits GROUP BY 1").reused


def test_private_keys_that_would_be_shown_earlier_are_measured_anew(deriving: Session) -> None:
    """A release with small epsilon admits only large groups; a query with larger epsilon would show smaller ones."""
    deriving.execute("SET dp.epsilon = 0.2")
    deriving.execute("SELECT city, COUNT(*) AS n, SUM(age) AS s FROM patients GROUP BY city")
    deriving.execute("SET dp.epsilon = 5")
    assert not deriving.execute("SELECT city, COUNT(*) AS n FROM patients GROUP BY city").reused
    deriving.execute("SELECT city, COUNT(*) AS n, SUM(age) AS s FROM patients WHERE ward < 3 GROUP BY city")
    deriving.execute("SET dp.epsilon = 1")
    assert deriving.execute("SELECT city, COUNT(*) AS n FROM patients WHERE ward < 3 GROUP BY city").reused


@pytest.mark.parametrize("reuse", ["on", "derive"])
@pytest.mark.parametrize("keys", ["city, plan", "region, plan", "plan, city, smoker"])
def test_keys_in_another_order_are_no_other_question(session: Session, reuse: str, keys: str) -> None:
    session.execute(f"SET dp.reuse = {reuse}")
    session.execute("SET dp.epsilon = 5")
    names = keys.split(", ")
    turned = ", ".join(reversed(names))
    first = session.execute(f"SELECT {keys}, COUNT(*), AVG(age) FROM patients GROUP BY {keys}")
    second = session.execute(f"SELECT {turned}, COUNT(*), AVG(age) FROM patients GROUP BY {turned}")
    assert second.reused
    assert sorted(first.notices) == sorted(second.notices)
    groups = [(*row[: len(names)][::-1], *row[len(names) :]) for row in first.rows()]
    assert sorted(groups, key=str) == sorted(second.rows(), key=str)
    assert len(groups) > 1


# --- error bars -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "truth",
    [
        "COUNT(*)",
        slow("AVG(age)"),
        slow("COUNT(*) - COUNT(*) FILTER (WHERE region = 'west')"),
        slow("SUM(age) FILTER (WHERE region = 'west')"),
    ],
)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_error_bars_of_derived_answers_hold(policy: Path, truth: str, mechanism: str) -> None:
    true = {
        slot: float(str(value))
        for slot, value in exact(policy.parent, f"SELECT slot, {truth} FROM patients GROUP BY 1")
    }
    inside = 0
    with open_session(policy, create_ledger=True) as session:
        for setting in ("reuse = derive", "epsilon = 3", f"mechanism = {mechanism}", "confidence = 0.8"):
            session.execute(f"SET dp.{setting}")
        for number in range(4):
            # A condition that every row satisfies makes another query with separate noise.
            where = f"age IS NULL OR age <> {-1 - number}"
            base = f"SELECT slot, region, COUNT(*), SUM(age), COUNT(age) FROM patients WHERE {where} GROUP BY 1, 2"
            session.execute(base)
            answer = session.execute(f"SELECT slot, {truth} FROM patients WHERE {where} GROUP BY 1")
            assert answer.reused
            columns = (answer.table.column(0), answer.low.column(1), answer.high.column(1))
            for slot, low, high in zip(*(column.to_pylist() for column in columns), strict=True):
                inside += low - 1e-6 <= true[slot] <= high + 1e-6
    # 0.8 of 400, and six standard errors; half of a bar, or that of one cell instead of three, has a lower coverage
    assert 272 <= inside <= 396


@pytest.mark.parametrize(
    ("base", "rounded"),
    [
        ("SELECT region, plan, smoker, COUNT(*) AS n FROM patients GROUP BY ALL", 0),
        # A count that shares its rows with a sum is a fraction of a row: each of the two shown counts is rounded separately.
        (BASE, 1),
    ],
)
def test_overlapping_parts_of_one_release_are_not_taken_for_independent(
    deriving: Session, base: str, rounded: int
) -> None:
    """All smokers minus the smokers of the west: the error of the west cancels, so the bar is that of two cells."""
    deriving.execute(base)
    where = "region IN ('north', 'south') AND smoker AND plan = 'pro'"
    two = deriving.execute(f"SELECT COUNT(*) FROM patients WHERE {where}")
    less = deriving.execute(
        "SELECT COUNT(*) FILTER (WHERE smoker AND plan = 'pro') - COUNT(*) FILTER (WHERE smoker AND plan = 'pro' AND "
        "region = 'west') FROM patients"
    )
    assert less.reused
    assert two.reused
    assert abs(less.table.column(0)[0].as_py() - two.table.column(0)[0].as_py()) <= rounded
    widths = [answer.error.column(0)[0].as_py() for answer in (less, two)]
    assert abs(widths[0] - widths[1]) <= rounded + 0.05 * widths[1], widths


def test_sums_of_summed_laplace_noise_are_not_taken_for_normal(deriving: Session) -> None:
    """Their tails are longer: the bars of 0.999 and 0.5 differ by 6, those of a normal law by 4.9."""
    deriving.execute("SELECT region, smoker, COUNT(*), COUNT(age) FROM patients GROUP BY 1, 2")
    errors = []
    for confidence in ("0.999", "0.5"):
        deriving.execute(f"SET dp.confidence = {confidence}")
        answer = deriving.execute("SELECT region, 10 * COUNT(*) + 11 * COUNT(age) FROM patients GROUP BY region")
        assert answer.reused
        errors.append(answer.error.column(1)[0].as_py())
    assert errors[0] / errors[1] > 5.3


# --- plans and consistency ------------------------------------------------------------------------------------------


def test_clipped_sums_answer_only_the_same_clipped_sums(deriving: Session) -> None:
    """A person is scaled down over all groups together, so the sums over some of the groups, or over all as one, differ."""
    kinds = "SELECT kind, COUNT(*), SUM(cost) FROM visits GROUP BY kind"
    deriving.execute("SET dp.max_count = 2")
    deriving.execute("SET dp.max_total = 60")
    deriving.execute(kinds)
    assert deriving.execute(kinds).reused
    assert deriving.execute("SELECT kind, COUNT(*) FROM visits GROUP BY kind").reused
    for other in ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits WHERE kind = 'in'"):
        assert not deriving.execute(other).reused
    for setting in ("SET dp.max_count = 3", "RESET dp.max_count"):
        deriving.execute(setting)
        assert not deriving.execute("SELECT kind, COUNT(*) FROM visits GROUP BY kind").reused
    deriving.execute("RESET dp.max_total")
    assert not deriving.execute("SELECT kind, SUM(cost) FROM visits GROUP BY kind").reused
    assert deriving.execute("SELECT SUM(cost) FROM visits").reused
    deriving.execute("SET dp.max_total = 60")
    assert not deriving.execute("SELECT SUM(cost) FROM visits").reused


def test_values_that_people_bring_answer_only_the_same_question(deriving: Session) -> None:
    """A person's contribution to one group depends on the values in all groups, and on how many values are counted."""
    costs = "SELECT kind, COUNT(DISTINCT cost) FROM visits GROUP BY kind"
    deriving.execute("SET dp.max_values = 2")
    deriving.execute(costs)
    assert deriving.execute(costs).reused
    of_some = "SELECT kind, COUNT(DISTINCT cost) FROM visits WHERE kind = 'in' GROUP BY kind"
    for other in ("SELECT COUNT(DISTINCT cost) FROM visits WHERE kind = 'in'", of_some):
        assert not deriving.execute(other).reused
    for setting in ("SET dp.max_values = 1", "RESET dp.max_values"):
        deriving.execute(setting)
        assert not deriving.execute(costs).reused
    assert deriving.execute("SELECT COUNT(DISTINCT cost) FROM visits WHERE kind = 'out'").reused
    deriving.execute("SET dp.max_values = 1")
    assert not deriving.execute("SELECT COUNT(DISTINCT cost) FROM visits WHERE kind = 'out'").reused


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("COUNT(*), VAR_POP(age)", "COUNT(*)"),
        ("COUNT(*), VAR_POP(age)", "COUNT(age)"),
        ("COUNT(*), VAR_POP(age)", "SUM(age)"),
        ("COUNT(*), VAR_POP(age)", "COUNT(*), AVG(age)"),
        ("VAR_POP(age)", "STDDEV(age), AVG(age)"),
        ("VAR_POP(age), AVG(age)", "SUM(age), COUNT(age)"),
    ],
)
def test_counts_and_sums_follow_from_squares_that_share_each_row(deriving: Session, first: str, then: str) -> None:
    """By region from a release by region and plan; at a large epsilon they are the exact numbers except for little noise."""
    deriving.execute("SET dp.epsilon = 50")
    released = deriving.execute(f"SELECT region, plan, {first} FROM patients GROUP BY ALL")
    answer = deriving.execute(f"SELECT region, {then} FROM patients GROUP BY region")
    assert not released.reused and answer.reused and spent(deriving) == "50"
    deriving.execute("SET dp.reuse = off")
    again = deriving.execute(f"SELECT region, {then} FROM patients GROUP BY region")
    for derived, measured in zip(answer.rows(), again.rows(), strict=True):
        assert derived[1:] == pytest.approx(measured[1:], rel=0.1, abs=20)


# --- Numbers so large that their squares overflow a double: their errors are computed without squares -----------------


@pytest.mark.parametrize("sql", [
    "SELECT SUM(s) AS v FROM (SELECT region, SUM(clamp(age, 0, 100) * 1e300) AS s FROM patients GROUP BY region) AS t",
    "SELECT SUM(clamp(age, 0, 100) * 1e300) AS v FROM patients GROUP BY ROLLUP(region)",
    "SELECT AVG(clamp(age, 0, 100) * 1e300) AS v FROM patients",
    "SELECT SUM(clamp(age, 0, 100) * 1e200) - 2 * SUM(clamp(age, 0, 50) * 1e200) AS v FROM patients",
])  # fmt: skip
def test_numbers_without_squares_have_error_bars(session: Session, sql: str) -> None:
    """Squares would overflow after the charge; the repeated query is answered from the store."""
    session.execute("SELECT region, SUM(clamp(age, 0, 100) * 1e300) AS s FROM patients GROUP BY region")
    session.execute("SET dp.reuse = derive")
    for _ in range(2):
        bars = session.execute(sql).bars
        (low, *_), (high, *_) = (ends.column("v").to_pylist() for ends in (bars.low, bars.high))
        assert low < high
