"""Clipping (max_total, max_count): how the engine scales each unit's vector, and how far one unit moves the answer."""

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from support.gates import NoiselessGate
from support.neighbouring_hospitals import Data, merge
from support.places import policy
from support.plain_duckdb import plain_duckdb
from support.random_hospitals import database, hospital
from support.recording_session import World

from dpsql.engine.duckdb.dialect import DUCKDB, DuckDBDialect
from dpsql.engine.emit.clipping import Grouped, RowTerm, clipped_total, shared_sum, shares
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Clip, Column, Term, TermKind
from dpsql.pricing.sum_terms import FINER_BITS, GRID_BITS, LEAST_FINER, UNIT_BITS, clipped
from dpsql.privacy.mechanisms.contract import Norm
from dpsql_audit.distances import compare, moves
from dpsql_audit.observation import Measured
from guarantee.test_neighbours import Place, rows

WARDS = ["er", "icu", "day"]
Vector = dict[int, int]


def defined(vector: Vector, most: int, norm: Norm, finer: int) -> Vector:
    """Return the definition's result: the whole unit times the largest multiple of 2**-finer at which its norm is at most `most`,
    in units of 2**-finer."""
    size = max(sum(map(abs, vector.values())), 1)
    square = max(sum(value * value for value in vector.values()), 1)
    share = min(1 << finer, most // size if norm is Norm.L1 else math.isqrt(most * most // square))
    return {key: value * share for key, value in vector.items()}


def engine(vectors: list[Vector], most: int, norm: Norm, finer: int) -> Vector:
    """Return the sums of the emitted SQL over each unit's value in each group, which is split into two rows."""
    con = plain_duckdb()
    given = [(key, unit, value) for unit, vector in enumerate(vectors) for key, value in vector.items()]
    given = [row for key, unit, value in given for row in ((key, unit, value // 3), (key, unit, value - value // 3))]
    columns = [[row[at] for row in given] for at in range(3)]
    con.register("r", pa.table([pa.array(column, pa.int64()) for column in columns], ["k0", "unit", "v"]))
    signs = {value >= 0 for _, _, value in given}
    ends = (0 if signs == {True} else -(2**62), 0 if signs == {False} else 2**62)
    term = Term("t0", TermKind.SUM, None, None, 1, finer, *ends, clip=Clip(most, norm), finer=finer)
    one = RowTerm(term, "v", "")
    found, every = shares(Grouped("r", ("k0",), "unit"), (one,), DUCKDB)
    assert every == (norm is Norm.L1 and 0 in ends)
    text = f"SELECT k0, {shared_sum(one, DUCKDB)} FROM r LEFT JOIN ({found}) USING (unit) GROUP BY k0"
    return {row[0]: row[1] for row in con.sql(text).fetchall()}


def vectors(rng: random.Random, bits: int) -> Iterator[Vector]:
    """Yield vectors with heavy tails: sizes over the whole range, equal values (whose rounding adds up), a single value, the
    extremes."""
    most = 2**bits
    yield {0: most}
    yield {0: -most}
    yield dict.fromkeys(range(7), most // 7)
    yield {key: (-1) ** key * (most // 3) for key in range(3)}
    yield {0: most - 5, **dict.fromkeys(range(1, 6), 1)}
    for _ in range(30):
        size = rng.randint(1, 9)
        top = 2 ** rng.randint(1, bits) // size
        yield {key: rng.randint(-top, top) or 1 for key in range(size)}


@pytest.mark.parametrize("norm", Norm)
@pytest.mark.parametrize("finer", [0, 1, FINER_BITS])
@pytest.mark.parametrize("most", [1_000, 1_001, 3_145_727, 2**31 - 1, 2**41 + 1, 2**UNIT_BITS - 1])
def test_one_unit_is_scaled_to_the_bound(norm: Norm, finer: int, most: int) -> None:
    """Each unit alone, up to the largest that fits in the integers, is scaled by the largest share within the norm."""
    for vector in vectors(random.Random(f"{norm} {most}"), UNIT_BITS - finer):
        found = engine([vector], most, norm, finer)
        assert found == defined(vector, most, norm, finer)
        size = sum(map(abs, found.values())) if norm is Norm.L1 else sum(v * v for v in found.values())
        assert size <= (most if norm is Norm.L1 else most * most)


@pytest.mark.parametrize("norm", Norm)
def test_at_the_bound_nothing_is_taken_away(norm: Norm) -> None:
    """A unit whose norm equals the bound is unchanged; a unit one step above it is reduced."""
    for size in (3, 1_000, 2**20 + 1, 3**20, 2**41 - 1):
        for finer in (10, FINER_BITS):
            whole = {0: size << finer}
            assert engine([{0: size}], size << finer, norm, finer) == whole
            less = engine([{0: size}], (size << finer) - 1, norm, finer)[0]
            assert (size << finer) - size <= less < size << finer


@pytest.mark.parametrize("norm", Norm)
def test_units_are_clipped_one_by_one(norm: Norm) -> None:
    """Each unit is clipped independently of the others; the results are then added."""
    rng = random.Random(7)
    each = [next(vectors(rng, 40)) if at == 0 else list(vectors(rng, 40))[at % 35] for at in range(20)]
    alone = [engine([vector], 2**40, norm, 12) for vector in each]
    together: Vector = {}
    for vector in alone:
        for key, value in vector.items():
            together[key] = together.get(key, 0) + value
    assert engine(each, 2**40, norm, 12) == together


@pytest.mark.parametrize("norm", Norm)
def test_without_keys_a_total_is_cut_at_both_ends(norm: Norm) -> None:
    """The single number of each unit is clamped at both ends."""
    values = [5, -5, 2_000, -2_000, 1_000, -1_001, 2**UNIT_BITS]
    term = Term("t0", TermKind.SUM, None, None, 1, clip=Clip(1_000, norm))
    con = plain_duckdb()
    for given, wanted in ((values, 5 - 5 + 1_000 - 1_000 + 1_000 - 1_000 + 1_000), ([], 0)):
        con.register("r", pa.table({"unit": range(len(given)), "v": pa.array(given, pa.int64())}))
        text = clipped_total(Grouped("SELECT * FROM r", (), "unit"), ((term, "sum(v)"),), DUCKDB)
        assert con.sql(text).fetchall() == [(wanted,)]


@pytest.mark.parametrize("rows", [1, 60, 2**12, 2**12 + 1, 10**6, 10**9])
@pytest.mark.parametrize("value", [("real", 0, 500), ("real", -1e15, 3), ("integer", -9, 20), ("integer", 0, 2**50)])
def test_grids_leave_room_in_64_bits(rows: int, value: tuple[str, float, float]) -> None:
    """All products that the engine computes fit in 64 bits (128 for squares), whatever the bounds and the number of rows."""
    kind, low, high = value
    column = Column("x", Facts(Type(kind), Fraction(low), Fraction(high)))
    most = Fraction(max(-low, high))
    for total in (most / 500, most, most * rows / 2):
        term = clipped(column, None, total, rows)
        assert term.clip is not None and LEAST_FINER <= term.finer <= FINER_BITS
        assert term.magnitude * rows <= 2**UNIT_BITS and term.clip.most <= total * Fraction(2) ** term.grid
        assert term.magnitude >> term.finer <= 2**GRID_BITS
        assert term.finer == FINER_BITS or rows > 2**12 or high == 2**50


# --- whole queries --------------------------------------------------------------------------------------------------


QUESTIONS = (
    "SELECT ward, COUNT(*), SUM(cost), SUM(nights), AVG(change) FROM visits GROUP BY ward",
    "SELECT nights, COUNT(cost), SUM(change), COUNT(DISTINCT patient_id) FROM visits WHERE cost > 1 GROUP BY nights",
    "SELECT COUNT(*) FILTER (WHERE nights > 1), SUM(cost) FILTER (WHERE nights > 1) FROM visits",
    "SELECT diagnosis, SUM(nights), COUNT(*), COUNT(DISTINCT code) FROM visits GROUP BY diagnosis",
    "SELECT test, flag, SUM(value), COUNT(*) FROM labs JOIN visits USING (visit_id) GROUP BY test, flag",
    "SELECT region, SUM(2 * cost - 7), VAR_POP(cost), AVG(cost) FROM visits JOIN patients USING (patient_id) GROUP BY region",
)
SETTINGS = (
    ("dp.max_total = 40", "dp.max_count = 3"),
    ("dp.max_total = 40", "dp.max_count = 3", "dp.mechanism = gaussian"),
    ("dp.max_total = 7.5", "dp.max_count = 1", "dp.max_groups = 3"),
    ("dp.max_total = 1999", "dp.max_count = 2", "dp.max_rows_per_group = 2", "dp.mechanism = gaussian"),
)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_unit_moves_clipped_sums_within_the_norms(seed: int) -> None:
    """Removing one patient moves every exact vector within the claimed norms, whatever the query's settings."""
    place = Place(seed)
    for settings in SETTINGS:
        for sql in QUESTIONS:
            with place.whole.options(list(settings)):
                whole = place.whole.observe(sql)
                price = place.whole.session.plan(place.whole.session.planner.parse(sql, None)).price
            assert whole.outcome == "answered", f"{sql}\n{whole.outcome}"
            for number, world in place.less.items():
                with world.options(list(settings)):
                    other = world.observe(sql)
                assert (other.outcome, other.engine_sql, other.charges) == ("answered", whole.engine_sql, whole.charges)
                problems = compare(price, whole.blocks, other.blocks).problems
                assert problems == [], f"{sql}\n{settings}\nwithout patient {number}: {problems}"


def visitor(number: int, wards: list[str], nights: int = 0, cost: float = 0.0) -> Data:
    """Return a patient with one visit in each of the given wards."""
    person: dict[str, Any] = {"patient_id": number, "region": "north", "sex": "f", "age": 50}
    visits = [
        {"visit_id": number * 1000 + at, "patient_id": number, "ward": ward, "nights": nights, "cost": cost}
        for at, ward in enumerate(wards)
    ]
    return {"patients": [person], "visits": visits, "labs": []}


def measured(data: Data, sql: str, settings: tuple[str, ...]) -> Measured:
    world = World(policy("hospital"))
    world.load(data)
    with world.options(list(settings)):
        observed = world.observe(sql)
    assert observed.outcome == "answered"
    return observed.blocks[0]


@pytest.mark.parametrize("visits", [WARDS * 6, ["er"] * 6 + ["icu"] * 5 + ["day"] * 7, ["icu"] * 20])
@pytest.mark.parametrize(("option", "aggregate", "most"), [
    ("max_count", "COUNT(*)", 2), ("max_total", "SUM(cost)", 777), ("max_total", "SUM(nights)", 53),
])  # fmt: skip
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_claimed_sensitivity_is_reached(
    visits: list[str], option: str, aggregate: str, most: int, mechanism: str
) -> None:
    """A newcomer who exceeds the bound moves the vector by the claimed norm: not more, and hardly less."""
    settings = (f"dp.{option} = {most}", f"dp.mechanism = {mechanism}")
    sql = f"SELECT ward, {aggregate} FROM visits GROUP BY ward"
    base = hospital(random.Random(5), False)
    before = measured(database(base), sql, settings)
    newcomer = merged(database(base), visitor(77, visits, nights=20, cost=500.0))
    after = measured(newcomer, sql, settings)
    moved = moves(before.terms["t0"], after.terms["t0"])
    claimed = before.noises["t0"].sensitivity
    if mechanism == "laplace":
        reached, claim = sum(map(abs, moved.values())), claimed.l1
    else:
        reached, claim = math.isqrt(sum(value * value for value in moved.values())), math.isqrt(claimed.l2_squared)
    assert claim * Fraction(999, 1000) <= reached <= claim


def merged(data: Data, more: Data) -> Data:
    """Return the rows of both, including tables that only one of them has."""
    together = {table: list(rows) for table, rows in data.items()}
    merge(together, more)
    return together


def test_rounding_is_toward_zero() -> None:
    """Three equal thirds of 2 * 2**20 steps: rounding half up would add one step too many. The NULL group is empty."""
    block = measured(
        database({}) | visitor(1, WARDS), "SELECT ward, COUNT(*) FROM visits GROUP BY ward", ("dp.max_count = 2",)
    )
    assert list(block.terms["t0"].values()) == [2 * 2**20 // 3] * 3 + [0]
    assert block.noises["t0"].sensitivity.l1 == 2 * 2**20


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_wide_bounds_change_nothing(seed: int) -> None:
    """Under bounds that no unit reaches, the two-level SQL gives the answers of plain DuckDB."""
    world = World(policy("hospital"), gate=NoiselessGate())
    world.load(database(hospital(random.Random(seed), False)))
    clamped = "CASE WHEN isnan(cost) OR cost IS NULL THEN NULL ELSE least(greatest(cost, 0), 1000) END"
    plain = (
        f"SELECT ward, count(*), coalesce(sum({clamped}), 0), coalesce(avg({clamped}), 0), count(DISTINCT patient_id), "
        "count(DISTINCT code) FROM visits WHERE ward IN ('er', 'icu', 'day') OR ward IS NULL GROUP BY ward "
    )
    wanted = {row[0]: row[1:] for row in world.connection.sql(plain).fetchall()}
    asked = "SELECT ward, COUNT(*), SUM(cost), AVG(cost), COUNT(DISTINCT patient_id), COUNT(DISTINCT code) FROM visits GROUP BY ward"
    for mechanism in ("laplace", "gaussian"):
        with world.options(
            ["dp.max_total = 19999.99", "dp.max_count = 19", f"dp.mechanism = {mechanism}", "dp.shrinkage = off"]
        ):
            plan = world.session.explain(asked)
            answer = rows(world.session.execute(asked).table)
        assert "#shares" in plan.engine_sql[0][1]
        step = max(output.grid for output in plan.outputs)
        for row in answer:
            assert row[1:] == pytest.approx(wanted.get(row[0], (0,) * 5), rel=1e-9, abs=max(1e-9, step))


def test_groups_outside_the_answer_do_not_count() -> None:
    """Visits to an unlisted ward belong to no group and do not use up the bound."""
    wards = ["er", "icu", "attic", "attic", "attic"]
    block = measured(
        database({}) | visitor(1, wards), "SELECT ward, COUNT(*) FROM visits GROUP BY ward", ("dp.max_count = 2",)
    )
    assert sorted(block.terms["t0"].values()) == [0, 0, 2**20, 2**20]


def test_bounds_of_the_policy_apply_unless_the_question_has_smaller_ones() -> None:
    """max_total of a column and max_count of a table apply by default; a smaller bound in the query replaces them."""
    known = policy("hospital")
    visits = known.tables["visits"]
    cost = replace(visits.columns["cost"], max_total=Fraction(300))
    bounded = replace(visits, columns={**visits.columns, "cost": cost}, bounds=replace(visits.bounds, max_count=4))
    world = World(replace(known, tables={**known.tables, "visits": bounded}))
    world.load(database({}))
    for settings, sql, wanted in (
        ((), "SELECT SUM(cost), COUNT(*), SUM(2 * cost) FROM visits", [40_000, 300, 4]),
        (("dp.max_total = 200", "dp.max_count = 9"), "SELECT SUM(cost), COUNT(*) FROM visits", [200, 4]),
        (("dp.max_total = 999",), "SELECT SUM(c), SUM(nights) FROM (SELECT cost AS c, nights FROM visits)", [300, 600]),
        ((), "SELECT zone, AVG(cost) FROM visits JOIN patients USING (patient_id) JOIN regions USING (region) GROUP BY 1",
         [300, 4]),
    ):  # fmt: skip
        with world.options(list(settings)):
            outputs = world.session.explain(sql).outputs
        assert [output.l1_sensitivity for output in outputs] == wanted
    assert outputs[0].bound == "20 rows per unit, clipped to max_total 300 in L1"


@pytest.mark.parametrize("question", [
    "SELECT COUNT(*) FROM visits", "SELECT ward, SUM(cost) FROM visits GROUP BY ward",
    "SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis", "SELECT ward, COUNT(DISTINCT cost), COUNT(*) FROM visits GROUP BY ward",
    "SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)", "SELECT ward, QUANTILE_CONT(cost, 0.5), COUNT(*) FROM visits GROUP BY ward",
])  # fmt: skip
def test_an_engine_that_does_not_clip_refuses_before_the_charge(monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    monkeypatch.setattr(DuckDBDialect, "without_clipping", "its rows change")
    world = World(policy("hospital"))
    world.load({})
    with world.options(["dp.max_count = 2", "dp.max_total = 100"]):
        observed = world.observe(question)
    assert "engine_function" in observed.outcome and not observed.charged and observed.engine_sql == []
