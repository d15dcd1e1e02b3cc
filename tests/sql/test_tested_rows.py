"""Rows of which only the presence counts, as IN, EXISTS, JOIN and LEFT JOIN: one name, one price, and the rows of plain DuckDB."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from support.equal_forms import PlainAnswers
from support.places import policy
from support.recording_session import World
from support.seeds import seeds

from dpsql.plan.plan import Promise
from dpsql.policy import Policy
from sql.test_same_question import named

_OF_VISITS = ("ward = 'er'", "nights > 3", "cost < 200 AND ward <> 'icu'", "code IS NULL", "year(day) = 2024")
_OF_PATIENTS = ("sex = 'f'", "age >= 40", "smoker AND weight > 60", "age IS NOT NULL")
_SHOWN = (("", "COUNT(*)"), ("", "AVG(p.age)"), ("p.region", "COUNT(*)"), ("p.sex", "SUM(p.age)"))


def _where(*conditions: str) -> str:
    parts = [f"({part})" for part in conditions if part]
    return " WHERE " + " AND ".join(parts) if parts else ""


def _present(tested: str, outer: str) -> list[str]:
    """Return FROM and WHERE of forms that keep the patients with a visit that passes a condition."""
    of_visits = f"visits v{_where(tested)}"
    return [
        f"patients p{_where(f'p.patient_id IN (SELECT patient_id FROM {of_visits})', outer)}",
        f"patients p{_where(outer, f'EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND ({tested}))')}",
        f"patients p JOIN (SELECT DISTINCT patient_id FROM {of_visits}) t ON t.patient_id = p.patient_id{_where(outer)}",
        f"(SELECT v.patient_id FROM {of_visits} GROUP BY v.patient_id) t, patients p{_where('p.patient_id = t.patient_id', outer)}",
        f"patients p LEFT JOIN (SELECT patient_id, COUNT(*) AS n FROM {of_visits} GROUP BY 1) t USING (patient_id){_where('n > 0', outer)}",
    ]


def _absent(tested: str, outer: str) -> list[str]:
    """Return forms that keep the patients without such a visit."""
    of_visits = f"visits v{_where(tested)}"
    none = "NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND ({}))"
    return [
        f"patients p{_where(f'p.patient_id NOT IN (SELECT patient_id FROM {of_visits})', outer)}",
        f"patients p{_where(none.format(tested), outer)}",
        f"patients p LEFT JOIN (SELECT * FROM {of_visits}) t ON t.patient_id = p.patient_id{_where('t.visit_id IS NULL', outer)}",
        f"patients p LEFT JOIN (SELECT DISTINCT patient_id AS k FROM {of_visits}) t ON k = p.patient_id{_where(outer, 'k IS NULL')}",
        f"patients p WHERE NOT (NOT coalesce({outer or 'TRUE'}, FALSE) OR p.patient_id IN (SELECT patient_id FROM {of_visits}))",
    ]


def _several(least: int, outer: str) -> list[str]:
    """Return forms that keep the patients with at least so many visits."""
    counted = "(SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id)"
    results = "SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id"
    return [
        f"patients p{_where(f'p.patient_id IN (SELECT patient_id FROM ({results}) t WHERE n >= {least})', outer)}",
        f"patients p{_where(f'{counted} > {least - 1}', outer)}",
        f"patients p JOIN ({results} HAVING COUNT(*) >= {least}) t USING (patient_id){_where(outer)}",
        f"patients p LEFT JOIN ({results}) t ON t.patient_id = p.patient_id{_where(outer, f'coalesce(t.n, 0) >= {least}')}",
    ]


@pytest.mark.parametrize("seed", seeds(12, 1))
def test_rows_that_are_only_tested_are_one_question(seed: int) -> None:
    rng = random.Random(f"tested rows {seed}")
    plain, met = PlainAnswers(rng), Counter[int]()
    for kind in (0, 1, 2) * 5:
        outer = rng.choice(("", *_OF_PATIENTS))
        keys, measure = rng.choice(_SHOWN)
        if kind == 2:
            forms = _several(rng.choice((2, 3, 5)), outer)
        else:
            forms = (_present, _absent)[kind](rng.choice(_OF_VISITS), outer)
        shown = ", ".join(filter(None, (keys, f"{measure} AS m")))
        questions = [f"SELECT {shown} FROM {form}" + (f" GROUP BY {keys}" if keys else "") for form in forms]
        answers = [plain.of(sql, [0, 1] if keys else [0], bool(keys)) for sql in questions]
        assert all(answer == answers[0] for answer in answers), questions
        names = {named(sql) for sql in questions}
        assert len(names) == 1 and all(releases for releases, _ in names), "\n".join(questions)
        met[kind] += any(map(any, answers[0] or ()))
    assert sum(met.values()) > 4 and len(+met) > 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM patients p LEFT JOIN visits v USING (patient_id) WHERE v.ward IS NULL",
        "SELECT COUNT(*) FROM patients p JOIN visits v USING (patient_id) WHERE v.ward = 'er'",
        "SELECT COUNT(*) FROM patients p LEFT JOIN visits v USING (patient_id)",
        "SELECT v.ward, COUNT(*) FROM patients p LEFT JOIN visits v USING (patient_id) WHERE v.patient_id IS NULL GROUP BY v.ward",
        "SELECT COUNT(*) FROM patients p LEFT JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY 1) t USING (patient_id) WHERE coalesce(n, 5) > 2",
    ],
)
def test_rows_that_count_more_than_once_stay_joined(sql: str) -> None:
    tested = "SELECT COUNT(*) FROM patients p WHERE p.patient_id {} (SELECT patient_id FROM visits WHERE ward {})"
    others = {named(tested.format(word, test)) for word in ("IN", "NOT IN") for test in ("= 'er'", "IS NULL")}
    assert named(sql) not in others and named(sql)[0]


@pytest.mark.parametrize(
    ("on", "tested"),
    [
        ("p.patient_id = v.patient_id AND coalesce(p.age, 0) = v.nights", "p.age IS NOT NULL"),
        ("p.patient_id = v.patient_id", "nullif(p.patient_id, 3) IS NOT NULL"),
    ],
)
@pytest.mark.parametrize("word", ["JOIN", "LEFT JOIN"])
def test_a_key_with_a_value_says_nothing_of_what_it_is_computed_from(word: str, on: str, tested: str) -> None:
    joined = f"SELECT COUNT(*) FROM visits v {word} patients p ON {on} WHERE p.patient_id IS NOT NULL"
    assert named(f"{joined} AND {tested}") != named(joined)


_RESULTS = "SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY 1"
_OWN = "v.patient_id = p.patient_id"


@pytest.mark.parametrize(
    ("measure", "source", "other"),
    [
        (
            "COUNT(*)",
            f"patients p JOIN (SELECT * FROM ({_RESULTS} HAVING COUNT(*) < 9) s WHERE n > 1) t USING (patient_id)",
            f"patients p JOIN ({_RESULTS} HAVING COUNT(*) > 1) t USING (patient_id)",
        ),
        (  # as reals, 2**53 and 2**53 + 1 are one number
            "SUM(p.age)",
            f"patients p JOIN visits v ON {_OWN} AND v.visit_id = p.weight",
            f"patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE {_OWN} AND v.visit_id = p.weight)",
        ),
    ],
)
def test_no_condition_and_no_second_row_is_lost(measure: str, source: str, other: str) -> None:
    one, two = (named(f"SELECT {measure} FROM {rows}") for rows in (source, other))
    assert one[0] and two[0] and one[0] != two[0]


def _claims(known: Policy, measures: str, source: str) -> list[tuple[int | float, ...]]:
    """Return by how much one unit may change each measure of a source: in sum, and in number of terms."""
    session = World(known).session
    (block,) = session.plan(session.planner.parse(f"SELECT {measures} FROM {source}", None)).price.blocks
    return [(term.noise.sensitivity.l1, term.noise.sensitivity.l0) for term in block.noise.terms]


@pytest.mark.parametrize("source", ["{}", "(SELECT DISTINCT v.patient_id, v.nights FROM {})"])
def test_rows_that_a_key_of_the_other_side_bounds_stay_joined(source: str) -> None:
    """Of a unit's 20 visits with a number of their own, at most one has the number in the patient's only row."""
    visits = replace(policy("hospital").tables["visits"], unique=(("patient_id", "code"),))
    known = replace(policy("hospital"), tables={**policy("hospital").tables, "visits": visits})
    joined = "visits v JOIN patients p ON v.patient_id = p.patient_id AND v.code = p.age"
    ((l1, _),) = _claims(known, "COUNT(*)", source.format(joined))
    assert l1 == 1


_VISITS = (
    "visits v",
    "(visits v JOIN patients p ON v.patient_id = p.patient_id)",
    "(SELECT * FROM visits WHERE patient_id IN (SELECT patient_id FROM patients WHERE age > 40)) v",
    "(SELECT * FROM visits WHERE EXISTS (SELECT 1 FROM labs WHERE labs.visit_id = visits.visit_id)) v",
)
_LABS = ("labs", "(SELECT * FROM labs WHERE visit_id IN (SELECT visit_id FROM visits WHERE nights > 2))")


@pytest.mark.parametrize("measure", ["COUNT(*)", "SUM(v.nights)"])
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_rows_that_are_tested_agree_on_their_key_at_most_once(join: str, measure: str) -> None:
    """Each laboratory value meets at most one visit, also where only some of the visits are joined."""
    sources = [f"{labs} l {join} {visits} ON l.visit_id = v.visit_id" for labs in _LABS for visits in _VISITS]
    claims = [_claims(policy("hospital"), measure, source) for source in sources]
    assert all(claim == claims[0] for claim in claims)
    assert measure != "COUNT(*)" or claims[0] == _claims(policy("hospital"), measure, "labs")


_OF_RESULTS = "(v.patient_id, v.code) IN (SELECT patient_id, MAX(code) FROM visits GROUP BY patient_id)"
_OF_NIGHTS = "(v.patient_id, v.nights) IN (SELECT patient_id, MAX(nights) FROM visits GROUP BY patient_id)"
_OF_PATIENT = "EXISTS (SELECT 1 FROM patients p WHERE p.patient_id = v.patient_id AND p.{} = v.code)"


@pytest.mark.parametrize(
    ("tested", "rows", "columns"),
    [
        (_OF_RESULTS, 1, ("code", "patient_id")),
        (_OF_NIGHTS, 3, ("nights", "patient_id")),
        (_OF_PATIENT.format("age"), 1, ("code", "patient_id")),
        (f"NOT {_OF_PATIENT.format('age')}", 20, None),
        (_OF_PATIENT.format("weight"), 20, None),  # as reals, 2**53 and 2**53 + 1 are one number
        ("v.patient_id IN (SELECT patient_id FROM visits WHERE code = 7)", 20, None),
    ],
)
def test_rows_kept_by_several_columns_are_those_that_a_promise_allows(
    tested: str, rows: int, columns: tuple[str, ...] | None
) -> None:
    """Each row on the right keeps as many rows of its unit as agree on the columns, which is checked in the data."""
    visits = replace(
        policy("hospital").tables["visits"],
        unique=(("patient_id", "code"),),
        max_multiplicity={("patient_id", "nights"): 3},
    )
    known = replace(policy("hospital"), tables={**policy("hospital").tables, "visits": visits})
    session = World(known).session
    sql = f"SELECT COUNT(*) FROM visits v WHERE {tested}"
    (block,) = session.plan(session.planner.parse(sql, None)).price.blocks
    assert block.noise.terms[0].noise.sensitivity.l1 == rows
    of_several = {promise for promise in block.block.promises if len(promise.columns) > 1}
    assert of_several == ({Promise("visits", columns, rows)} if columns else set())
