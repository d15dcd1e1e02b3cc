"""max_values: which distinct values of a unit are counted, and how far one unit moves their number."""

import random
import re
from collections import defaultdict
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from support.neighbouring_hospitals import Data
from support.places import policy
from support.plain_duckdb import plain_duckdb
from support.recording_session import World

from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql_audit.distances import compare
from dpsql_audit.observation import Measured
from guarantee.test_neighbours import Place

WARDS = ["er", "icu", "day"]
TOTAL = "SELECT COUNT(DISTINCT code) FROM visits"
BY_WARD = "SELECT ward, COUNT(DISTINCT code) FROM visits GROUP BY ward"
BY_DIAGNOSIS = "SELECT diagnosis, COUNT(DISTINCT cost), COUNT(*) FROM visits GROUP BY diagnosis"
PRESENT = "SELECT ward, COUNT(DISTINCT code) FILTER (WHERE nights > 1) FROM visits GROUP BY ward"
Visit = dict[str, Any]


def visits(rng: random.Random, people: int) -> list[Visit]:
    """Return visits with few codes, which people share and have several times and in several wards; some have none, some are in
    no listed ward."""
    rows: list[Visit] = []
    for person in range(people):
        for _ in range(rng.choice([0, 1, 2, 5, 12, 20])):
            rows.append(
                {
                    "visit_id": len(rows),
                    "patient_id": person,
                    "ward": rng.choice([*WARDS, "attic", None]),
                    "code": rng.choice([None, *range(1, 13)]),
                    "cost": rng.choice([None, float("nan"), 0.0, -0.0, 1.5, 2.0, 7.25, 9.0]),
                    "nights": rng.randint(0, 4),
                    "diagnosis": rng.choice(["flu", "gout", None]),
                }
            )
    return rows


def database(rows: list[Visit]) -> Data:
    people = [{"patient_id": number} for number in sorted({row["patient_id"] for row in rows})]
    return {"patients": people, "visits": rows, "labs": []}


@cache
def hospital() -> World:
    return World(policy("hospital"))


def world(rows: list[Visit]) -> World:
    hospital().load(database(rows))
    return hospital()


def measured(rows: list[Visit], sql: str, *settings: str) -> Measured:
    opened = world(rows)
    with opened.options(list(settings)):
        observed = opened.observe(sql)
    assert observed.outcome == "answered", observed.outcome
    return observed.blocks[0]


def counted(block: Measured) -> dict[Any, int]:
    """Return the nonzero values of the last term by group: counts of rows stand before counts of values."""
    return {key: count for key, count in list(block.terms.values())[-1].items() if count}


# --- the definition -------------------------------------------------------------------------------------------------


def by_definition(pairs: dict[Any, set[Any]], order: dict[Any, Any], most: int) -> dict[Any, int]:
    """Return each group's number of values that are among some person's first `most` pairs."""
    taken: dict[Any, set[Any]] = defaultdict(set)
    for person, own in pairs.items():
        for group, value in sorted(own, key=lambda pair: order[person, *pair])[:most]:
            taken[group].add(value)
    return {group: len(values) for group, values in taken.items()}


def hashes(pairs: list[tuple[Any, ...]], key: str) -> dict[Any, Any]:
    """Return the keyed hash of each person and pair, computed by DuckDB alone."""
    con = plain_duckdb()
    people, groups, values = zip(*pairs, strict=True)
    types = {"person": pa.int64(), "ward": pa.string(), "value": pa.int64()}
    con.register("p", pa.table([people, groups, values], schema=pa.schema(list(types.items()))))
    # The expression comes from `keyed_order`, over columns with the given names.
    order = DUCKDB.keyed_order(key, ["person", "ward", "value"])
    return {row[:3]: row[3] for row in con.sql(f"SELECT person, ward, value, {order} FROM p").fetchall()}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [1, 2, 3, 7, 19])
def test_the_values_counted_are_the_first_of_each_person(seed: int, most: int) -> None:
    """The counts equal a Python definition over generated visits: repetitions, missing values and unlisted wards do not use up
    max_values."""
    rows = visits(random.Random(seed), 12)
    opened = world(rows)
    with opened.options([f"dp.max_values = {most}"]):
        observed = opened.observe(BY_WARD)
    key = re.findall(r"hash\(hash\('([0-9a-f]+)'", observed.engine_sql[0])[0]
    pairs: dict[int, set[Any]] = defaultdict(set)
    for row in rows:
        if row["code"] is not None and row["ward"] != "attic":
            pairs[row["patient_id"]].add((row["ward"], row["code"]))
    order = hashes([(person, *pair) for person, own in pairs.items() for pair in own], key)
    assert {group[0]: count for group, count in counted(observed.blocks[0]).items()} == by_definition(
        pairs, order, most
    )


def test_as_many_places_as_values_are_no_bound() -> None:
    rows = visits(random.Random(3), 30)
    for sql in (TOTAL, BY_WARD, PRESENT):
        whole, bounded = (counted(measured(rows, sql, *settings)) for settings in ((), ("dp.max_values = 19",)))
        assert whole == bounded


def test_of_one_person_as_many_are_counted_as_there_are_places() -> None:
    rows = [{"visit_id": n, "patient_id": 7, "ward": "er", "code": n // 2, "cost": 1.0, "nights": 3} for n in range(20)]
    for most in (1, 2, 9, 10, 11):
        assert counted(measured(rows, TOTAL, f"dp.max_values = {most}")) == {(): min(most, 10)}
    spread = [row | {"ward": WARDS[row["visit_id"] % 3]} for row in rows]
    assert sum(counted(measured(spread, BY_WARD, "dp.max_values = 4")).values()) == 4


@pytest.mark.parametrize("empty", [{"code": None}, {"ward": "attic"}, {"nights": 0}])
def test_rows_that_do_not_count_take_no_place(empty: Visit) -> None:
    """With nineteen such rows, the single countable value is counted, whatever the rows' hashes."""
    for person in range(6):
        rows = [
            {"visit_id": n, "patient_id": person, "ward": "er", "code": 100 + n, "nights": 3} | empty for n in range(19)
        ]
        rows.append({"visit_id": 19, "patient_id": person, "ward": "icu", "code": 5, "nights": 3})
        assert counted(measured(rows, PRESENT, "dp.max_values = 1")) == {("icu",): 1}


def test_people_choose_differently() -> None:
    """40 people share 20 values, each with max_values = 1, and many values are counted; an order of values alone would leave
    one."""
    rows = [
        {"visit_id": 20 * person + n, "patient_id": person, "ward": "er", "code": n}
        for person in range(40)
        for n in range(20)
    ]
    (taken,) = counted(measured(rows, TOTAL, "dp.max_values = 1")).values()
    assert 10 <= taken <= 20  # 17.4 on average, and fewer than 10 in less than one of 10**6 orders


# --- how far one unit moves the counts ------------------------------------------------------------------------------


SETTINGS: tuple[tuple[str, ...], ...] = (
    ("dp.max_values = 1",),
    ("dp.max_values = 3",),
    ("dp.max_values = 4", "dp.mechanism = gaussian"),
    ("dp.max_values = 5", "dp.max_groups = 2"),
    ("dp.max_values = 3", "dp.max_rows_per_group = 2"),
    ("dp.max_values = 2", "dp.max_count = 3", "dp.max_total = 50"),
)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_unit_moves_distinct_counts_within_the_claim(seed: int) -> None:
    """Removing one patient moves every exact vector within the claimed norms."""
    place = Place(seed)
    for settings in SETTINGS:
        for sql in (TOTAL, BY_WARD, BY_DIAGNOSIS, PRESENT):
            with place.whole.options(list(settings)):
                whole = place.whole.observe(sql)
                price = place.whole.session.plan(place.whole.session.planner.parse(sql, None)).price
            assert whole.outcome == "answered", f"{sql}\n{whole.outcome}"
            for number, other_world in place.less.items():
                with other_world.options(list(settings)):
                    other = other_world.observe(sql)
                problems = compare(price, whole.blocks, other.blocks).problems
                assert problems == [], f"{sql}\n{settings}\nwithout patient {number}: {problems}"


@pytest.mark.parametrize("seed", range(6))
def test_people_who_share_values_move_no_group_by_more_than_their_places(seed: int) -> None:
    """Removing each person in turn lowers the total by at most max_values, never raises it, and lowers all groups together by at
    most that."""
    rows = visits(random.Random(100 + seed), 9)
    for most in (1, 2, 4):
        for sql in (TOTAL, BY_WARD):
            whole = measured(rows, sql, f"dp.max_values = {most}").terms["t0"]
            for person in {row["patient_id"] for row in rows}:
                less = measured(
                    [row for row in rows if row["patient_id"] != person], sql, f"dp.max_values = {most}"
                ).terms["t0"]
                falls = [whole[group] - less.get(group, 0) for group in whole]
                assert min(falls) >= 0 and sum(falls) <= most


@pytest.mark.parametrize("most", [1, 2, 7, 19])
@pytest.mark.parametrize("sql", [TOTAL, BY_WARD])
def test_the_claim_is_reached_and_is_no_larger(most: int, sql: str) -> None:
    """A newcomer with twenty unique values moves the number by exactly max_values, wherever they are."""
    base = visits(random.Random(5), 6)
    newcomer = [
        {"visit_id": 1000 + n, "patient_id": 77, "ward": WARDS[n % 3], "code": 500 + n, "nights": 2} for n in range(20)
    ]
    before, after = (measured(rows, sql, f"dp.max_values = {most}") for rows in (base, base + newcomer))
    moved = [after.terms["t0"][group] - count for group, count in before.terms["t0"].items()]
    claimed: Sensitivity = before.noises["t0"].sensitivity
    assert sum(moved) == claimed.l1 == most
    assert claimed.l0 == min(most, len(before.terms["t0"])) and claimed.linf == most


def test_noise_follows_the_places_and_not_the_rows() -> None:
    scales = []
    for settings in ((), ("dp.max_values = 2",)):
        block = measured([], TOTAL, "dp.mechanism = laplace", *settings)
        scales.append(block.noises["t0"].expected_error())
    assert scales[0] == pytest.approx(10 * scales[1], rel=0.06)
