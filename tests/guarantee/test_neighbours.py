"""Neighbour tests on generated databases and generated queries.

At the limit of a huge epsilon the answer equals plain DuckDB's over clamped columns, and removing one patient moves every vector
of exact sums within the claimed L0, L1, L2 and Linf, and within what is charged.
"""

import itertools
import math
import os
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.effort import night
from support.gates import NoiselessGate
from support.places import policy
from support.random_hospitals import database, hospital
from support.random_questions import CLAMPED, Question, clamp, question
from support.recording_session import World

from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.policy import Policy, Table
from dpsql_audit.distances import compare

QUESTIONS_EACH = 14
PAIRS = int(os.environ.get("DPSQL_NEIGHBOUR_PAIRS", "1000"))
FIRST = int(os.environ.get("DPSQL_NEIGHBOUR_SEED", "0"))
HOSPITALS = range(FIRST, FIRST + 7 * max(1, PAIRS // 1000))


class Place:
    """One random hospital, whole and without each of its patients."""

    def __init__(self, seed: int, known: Policy | None = None) -> None:
        rng = random.Random(seed)
        self.heavy = seed % 2 == 1
        patients = hospital(rng, self.heavy)
        known = known or (with_decimals(policy("hospital")) if seed % 7 in (3, 4) else policy("hospital"))
        self.whole = World(known)
        planner = self.whole.session.planner
        self.exact = World(known, gate=NoiselessGate(), planner=planner)
        self.exact.session.execute("SET dp.shrinkage = off")  # the laws of noise claim noise that is not drawn
        self.less = {number: World(known, planner=planner) for number in patients}
        self.whole.load(database(patients))
        self.exact.load(database(patients))
        for number, world in self.less.items():
            world.load(database(patients, without=number, seed=number))


def with_decimals(known: Policy) -> Policy:
    """Return a policy whose numbers of visits are decimals."""
    visits = known.tables["visits"]
    columns = {name: replace(c, scale=2) if c.type == "real" else c for name, c in visits.columns.items()}
    return replace(known, tables={**known.tables, "visits": replace(visits, columns=columns)})


def questions(seed: int) -> Iterator[Question]:
    rng = random.Random(f"questions {seed}")
    for _ in range(QUESTIONS_EACH):
        yield question(rng)


@pytest.mark.parametrize("seed", HOSPITALS)
def test_generated_questions_move_within_the_claim(seed: int) -> None:
    place = Place(seed)
    pairs = 0
    for asked in questions(seed):
        pairs += bounded(place, asked.asked)
        if not place.heavy:
            same_as_plain(place, asked)
    assert pairs == QUESTIONS_EACH * len(place.less)


def test_missing_and_infinite_values_count_as_nothing() -> None:
    """SUM and AVG ignore NULL, NaN and infinities; these are never replaced by a bound."""
    place = Place(0)
    for table, columns in CLAMPED.items():
        for column in columns:
            inside = clamp(column, table)
            asked = f"SELECT SUM({column}), AVG({column}), COUNT({column}) FROM {table}"
            same_as_plain(
                place,
                Question(asked, f"SELECT coalesce(sum({inside}), 0), avg({inside}), count({inside}) FROM {table}"),
            )


def test_ties_follow_from_a_units_own_rows() -> None:
    """Which of a patient's rows comes first depends neither on the order of rows nor on other patients' rows.

    Such a small table reaches the window in the same order each time, so the SQL is checked too: a hash keyed by the patient
    orders ties, and all columns order equal hashes.
    """
    place = Place(3)
    window = "OVER (PARTITION BY patient_id ORDER BY ward IS NULL)"
    numbered = f"SELECT *, row_number() {window} AS n, lag(code) {window} AS c FROM visits"
    bounded(
        place, f"SELECT ward, nights, COUNT(*), SUM(cost) FROM ({numbered}) AS t WHERE n <= 2 GROUP BY ward, nights"
    )
    bounded(place, f"SELECT nights, COUNT(*) FROM ({numbered}) AS t WHERE c = 7 GROUP BY nights")
    (text,) = place.whole.observe(f"SELECT COUNT(*) FROM ({numbered}) AS t WHERE n = 2 AND c = 1").engine_sql
    orders = re.findall(r'PARTITION BY "#unit" ORDER BY \("ward" IS NULL\) ASC NULLS LAST, (.*?)\) AS', text)
    content = [*columns_of(place.whole.session.policy.tables["visits"]), *map(DUCKDB.sign_of, ('"cost"', '"change"'))]
    ties = ", ".join(content)
    hashed = rf"hash\(hash\('\w+', \"#unit\", {re.escape(ties)}\)\), {re.escape(ties)}"
    assert len(orders) == 2 and all(re.fullmatch(hashed, order) for order in orders), orders


def test_rows_of_nobody_admit_keys_as_units_do() -> None:
    """Above DISTINCT one patient moves a group by up to 20 rows; this many rows admit a key as one patient would."""
    place = Place(1)
    sql = "SELECT diagnosis, SUM(nights) FROM (SELECT DISTINCT diagnosis, nights, day FROM visits) AS t GROUP BY diagnosis"
    bounded(place, sql)
    (text,) = place.whole.observe(sql).engine_sql
    assert '(count(*) + 19) // 20 AS "sel"' in text and '"#unit"' not in text.split("FROM (SELECT DISTINCT")[0]


PAIRED = (
    "SELECT COUNT(*), SUM(a.cost) FROM visits AS a JOIN visits AS b ON a.nights = b.nights{}",
    "SELECT a.ward, COUNT(*), SUM(b.change) FROM visits AS a LEFT JOIN visits AS b ON a.nights = b.nights{} GROUP BY a.ward",
    "SELECT COUNT(*) FROM visits AS a WHERE EXISTS (SELECT * FROM visits AS b WHERE a.nights = b.nights AND a.ward <> b.ward{})",
    "SELECT SUM(a.cost) FROM visits AS a WHERE NOT EXISTS (SELECT * FROM visits AS b WHERE b.nights = a.nights AND b.cost > 5{})",
)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_false_promise_of_one_unit_pairs_no_rows_of_two(seed: int) -> None:
    """`same_unit` says what a join means: patients share nights, and only rows of one patient meet all the same."""
    known = policy("hospital")
    visits = replace(known.tables["visits"], same_unit={"nights": ("visits", "nights")})
    place = Place(seed, replace(known, tables={**known.tables, "visits": visits}))
    for asked in PAIRED:
        bounded(place, asked.format(""))
        promised, compared = (
            rows(place.exact.session.execute(asked.format(own)).table)
            for own in ("", " AND a.patient_id = b.patient_id")
        )
        assert promised == compared, asked


def at_day_one_of(texts: tuple[str, ...]) -> list[Any]:
    """Return each text with the seed of one of two hospitals by day, and with the other one at night."""
    return [pair for at, text in enumerate(texts) for pair in ((at % 2, text), night(1 - at % 2, text))]


SIDES = (
    "visits",
    "(SELECT patient_id, ward, diagnosis, COUNT(*) AS nights FROM visits WHERE nights < 4 GROUP BY 1, 2, 3)",
    "patients JOIN visits USING (patient_id)",
)


@pytest.mark.parametrize(("seed", "on"), at_day_one_of(("", " AND a.ward = b.ward", " AND a.diagnosis = b.diagnosis")))
def test_a_full_join_of_people_has_the_rows_of_both_sides(seed: int, on: str) -> None:
    place = Place(seed)
    for left, right in itertools.pairwise((*SIDES, SIDES[0])):
        source = (
            f"(SELECT * FROM {left}) AS a FULL JOIN (SELECT * FROM {right}) AS b ON a.patient_id = b.patient_id{on}"
        )
        asked = (
            f"SELECT COUNT(*), COUNT(a.nights), COUNT(CASE WHEN a.patient_id IS NULL THEN b.nights END) FROM {source}"
        )
        by_ward = f"SELECT b.ward, COUNT(*) FROM {source} WHERE b.ward IN ('er', 'icu', 'day') GROUP BY b.ward"
        for text, keys in ((asked, []), (by_ward, [["er", "icu", "day"]])):
            bounded(place, text)
            if not place.heavy:
                same_as_plain(place, Question(text, text, keys))


UNIONS = (
    "SELECT {} FROM visits UNION SELECT {} FROM visits WHERE nights > 2",
    "SELECT {} FROM visits UNION SELECT {} FROM patients JOIN visits USING (patient_id) UNION SELECT {} FROM visits",
    "SELECT DISTINCT {} FROM visits UNION SELECT {} FROM visits WHERE diagnosis = 'flu'",
    "SELECT DISTINCT {} FROM visits WHERE ward = 'er' UNION SELECT DISTINCT {} FROM visits WHERE nights < 3",
)


@pytest.mark.parametrize(
    ("seed", "columns"), at_day_one_of(("ward, nights", "patient_id, ward, nights", "nights, ward, patient_id % 3"))
)
def test_a_union_has_the_different_rows_of_its_sides(seed: int, columns: str) -> None:
    place = Place(seed)
    for union in UNIONS:
        source = f"({union.format(columns, columns, columns)}) AS t"
        whole = f"SELECT COUNT(*), SUM(CASE WHEN nights > 3 THEN 1 ELSE 0 END) FROM {source}"
        by_ward = f"SELECT ward, COUNT(*) FROM {source} WHERE ward IN ('er', 'icu', 'day') GROUP BY ward"
        for text, keys in ((whole, []), (by_ward, [["er", "icu", "day"]])):
            bounded(place, text)
            if not place.heavy:
                same_as_plain(place, Question(text, text, keys))


def columns_of(table: Table) -> list[str]:
    return [f'"{name}"' for name in table.columns]


def test_enough_neighbours_are_compared() -> None:
    assert len(HOSPITALS) * QUESTIONS_EACH * 6 >= PAIRS // 2


def bounded(place: Place, sql: str) -> int:
    """Compare the whole hospital with each that lacks one patient, and return the number of pairs."""
    whole = place.whole.observe(sql)
    assert whole.outcome == "answered", f"{sql}\n{whole.outcome}"
    price = place.whole.session.plan(place.whole.session.planner.parse(sql, None)).price
    for number, world in place.less.items():
        other = world.observe(sql)
        assert (other.outcome, other.engine_sql, other.charges) == (whole.outcome, whole.engine_sql, whole.charges)
        problems = compare(price, whole.blocks, other.blocks).problems
        assert problems == [], f"{sql}\nwithout patient {number}: {problems}"
    return len(place.less)


def same_as_plain(place: Place, asked: Question) -> None:
    """Check that each group of plain DuckDB occurs with its numbers and that the other listed groups are empty."""
    answer = rows(place.exact.session.execute(asked.asked).table)
    plain = rows(place.exact.connection.sql(asked.meant).to_arrow_table())
    width = len(asked.keys)
    outer = "LEFT JOIN" in asked.asked
    listed = [[*values, None] if outer and None not in values else values for values in asked.keys]
    expected = {row[:width]: row[width:] for row in plain if all(k in v for k, v in zip(row, listed, strict=False))}
    shown, every = [row[:width] for row in answer], list(itertools.product(*listed))
    # Conditions may exclude listed keys, but none that a row has.
    assert shown == (
        every if "WHERE" not in asked.asked and "JOIN" not in asked.asked else [k for k in every if k in shown]
    )
    assert expected.keys() <= set(shown), f"{asked.asked}\n{expected}"
    for row in answer:
        wanted = expected.get(row[:width])
        for at, value in enumerate(row[width:]):
            if wanted is None:
                assert value == 0 or "AVG" in asked.asked or "VAR" in asked.asked, f"{asked.asked}\n{row}"
            elif wanted[at] is not None:
                assert math.isclose(value, float(wanted[at]), rel_tol=1e-6, abs_tol=1e-6), (
                    f"{asked.asked}\n{row}\n{wanted}"
                )


def rows(table: Any) -> list[tuple[Any, ...]]:
    """Return the rows of an Arrow table as tuples."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
