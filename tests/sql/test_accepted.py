"""Every accepted query is planned with the keys and sensitivities that stand beside it, under entity and row privacy."""

from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache

import pytest
from support.aggregate_calls import MEASURED, calls
from support.corpus_neighbours import Hospital
from support.corpus_traits import SPREAD
from support.effort import by_day, slow
from support.neighbouring_hospitals import PUBLIC
from support.places import policy
from support.recording_session import World

from dpsql.errors.exceptions import Error
from dpsql.pricing.pricing import Price
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.local_sensitivity import ProposeTestRelease, SmoothSensitivity
from dpsql.privacy.mechanisms.most_frequent import EndKey, MostFrequent
from dpsql.privacy.mechanisms.sample_values import NoisySampleMean
from sql.corpus import ACCEPTED, Case


@lru_cache(maxsize=2)
def hospital(name: str) -> Hospital:
    return Hospital(name)


def keys(price: Price) -> str:
    """none, public or private, for every kind of block."""
    kinds = {
        "none" if not one.noise.keys else "public" if one.noise.selection is None else "private" for one in price.blocks
    }
    return " and ".join(sorted(kinds)) or "no block"


def sensitivities(price: Price) -> str:
    """L1 of every measured term in the unit of the answer, then of the rows behind every number that is chosen."""
    terms = [term for one in price.blocks for term in one.noise.terms]
    summed = [term.noise.sensitivity.l1 * Fraction(2) ** -term.grid for term in terms]
    chosen = [
        Fraction(law.sensitivity.l1)
        for one in price.blocks
        for plan in one.noise.measurements
        for _, law in plan.laws
        if isinstance(law, (Choice, EndKey, MostFrequent, NoisySampleMean, SmoothSensitivity, ProposeTestRelease))
    ]
    return ", ".join(f"{float(moved):.12g}" for moved in [*summed, *chosen]) or "nothing"


def in_any_order(moved: str) -> list[str]:
    """Return the numbers of a mark: terms are in the order of their texts, not in that of the SELECT list."""
    return sorted(moved.split(", "))


@pytest.mark.parametrize("case", [c if c in SPREAD else slow(c) for c in ACCEPTED], ids=lambda case: case.id)
def test_each_query_has_its_keys_and_sensitivities(case: Case) -> None:
    price = hospital("hospital").price(case)
    assert (keys(price), in_any_order(sensitivities(price))) == (case.mark("keys"), in_any_order(case.mark("l1")))


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
@pytest.mark.slow
def test_under_row_privacy_sensitivities_are_as_marked(case: Case) -> None:
    try:
        found = sensitivities(hospital("hospital_rows").price(case))
    except Error as error:
        found = f"refused {error.slug}"
    assert in_any_order(found) == in_any_order(case.mark("rows"))


@pytest.mark.parametrize("case", by_day(SPREAD, ACCEPTED), ids=lambda case: case.id)
@pytest.mark.slow
def test_change_one_doubles_every_norm(case: Case) -> None:
    """Replacing a unit is a removal and an addition: every norm doubles, whatever the accountant."""
    prices = hospital("hospital").prices(case, observed=False)
    for kind in ("pure", "zcdp"):
        once, twice = (
            [term.noise.sensitivity for one in prices[name].blocks for term in one.noise.terms if term.name != "sel"]
            for name in (kind, f"{kind}, change one")
        )
        for one, two in zip(once, twice, strict=True):
            assert (two.l1, two.linf, two.l0) == (2 * one.l1, 2 * one.linf, 2 * one.l0)
            assert two.l2_squared == 4 * one.l2_squared


NAMING_VISITS = [
    case for case in ACCEPTED if case.group in ("per_unit", "relations", "windows") and "visit_id" in case.sql
]


@pytest.mark.parametrize("case", NAMING_VISITS, ids=lambda case: case.id)
def test_bounds_of_a_key_change_nothing(case: Case) -> None:
    """A subquery by the number of a visit has rows of single people, also where the policy bounds these numbers so that they
    could be listed."""
    with bounded_visits().options(case.marks.get("set", [])):
        session = bounded_visits().session
        price = session.plan(session.planner.parse(case.sql, case.parameters)).price
    assert (keys(price), in_any_order(sensitivities(price))) == (case.mark("keys"), in_any_order(case.mark("l1")))


@cache
def bounded_visits() -> World:
    known = policy("hospital")
    tables = {
        name: replace(table, columns={column: replace(of, lower=Fraction(0), upper=Fraction(999)) if column == "visit_id" else of
                                      for column, of in table.columns.items()})
        for name, table in known.tables.items()
    }  # fmt: skip
    world = World(replace(known, tables=tables))
    world.load(PUBLIC)
    return world


def test_every_aggregate_that_is_measured_is_asked_so_that_neighbours_are_compared_for_it() -> None:
    asked: set[str] = set()
    for case in ACCEPTED:
        known = hospital("hospital")
        with known.none.options(case.marks.get("set", [])):
            plan = known.none.session.plan(known.planner.parse(case.sql, case.parameters), case.parameters).plan
        asked |= {measure.aggregate for block in plan.blocks for measure in block.measures}
    assert asked >= {aggregate.word for aggregate in MEASURED if calls(aggregate)}


SHOWN_AS_IT_IS = [
    "{}",
    "SELECT * FROM ({}) AS x",
    "WITH x AS ({}) SELECT * FROM x",
    "SELECT * FROM (SELECT * FROM ({}) AS y) AS x",
]


@pytest.mark.parametrize("grouping", ["visit_id", "visit_id, region", "visit_id * 2"])
@pytest.mark.parametrize("bounded", [False, True])
def test_groups_of_a_key_are_the_same_behind_a_select_that_only_shows_them(grouping: str, bounded: bool) -> None:
    """Tools write such a SELECT around what a person typed. Over keys that cannot be listed all forms are refused alike."""
    select = f"SELECT {grouping}, COUNT(*) AS n FROM visits JOIN patients USING (patient_id) GROUP BY ALL"
    found = []
    for form in SHOWN_AS_IT_IS:
        world = bounded_visits() if bounded else World(policy("hospital"))
        try:
            plan = world.session.plan(world.session.planner.parse(form.format(select), ()))
            found.append((keys(plan.price), in_any_order(sensitivities(plan.price))))
        except Error as error:
            found.append(error.slug)
    assert found == found[:1] * len(SHOWN_AS_IT_IS)
    assert (found[0] == "one_unit_groups") is not bounded


COMPUTED_WITH = [
    "SELECT visit_id, n, n / SUM(n) OVER () AS share FROM ({}) AS q", "({}) UNION ALL ({})", "SELECT n, (SELECT 5) AS five FROM ({}) AS q",
    "SELECT visit_id, n FROM ({}) AS q QUALIFY RANK() OVER (ORDER BY n) < 3", "SELECT q.n, r.n FROM ({}) AS q JOIN ({}) AS r USING (visit_id)",
    "WITH q AS ({}) SELECT visit_id, n / (SELECT SUM(n) FROM q) AS share FROM q", "SELECT n FROM ({}) AS q WHERE n > (SELECT AVG(age) FROM patients)",
]  # fmt: skip


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("form", COMPUTED_WITH)
def test_groups_of_a_key_are_read_by_what_only_computes_with_them(form: str, bounded: bool) -> None:
    """If its values are public; else no group could pass its threshold, in whatever form."""
    world = bounded_visits() if bounded else World(policy("hospital"))
    sql = form.replace("{}", "SELECT visit_id, COUNT(*) AS n FROM visits GROUP BY visit_id")
    try:
        found = keys(world.session.plan(world.session.planner.parse(sql, ())).price)
    except Error as error:
        found = error.slug
    assert ("public" in found) is bounded and (found == "one_unit_groups") is not bounded
