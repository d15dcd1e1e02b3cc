"""Questions in two forms that plain DuckDB answers alike have one name, and none that it answers differently."""

import random
from collections import defaultdict

import pytest
from support.equal_forms import PlainAnswers
from support.seeds import seeds

from sql.test_same_question import named

_OF_VISITS = ("ward = 'er'", "nights > 3", "cost < 200", "code IS NULL", "year(day) = 2024", "nights >= 4", "TRUE")
_OF_PATIENTS = ("sex = 'f'", "age >= 40", "smoker", "weight > 60", "TRUE")


def _units(rng: random.Random) -> list[str]:
    """Return forms of the number of patients who pass a test and have (or have not) a visit that passes one."""
    outer, tested = rng.choice(_OF_PATIENTS), rng.choice(_OF_VISITS)
    visits, patients = f"SELECT patient_id FROM visits WHERE {tested}", f"SELECT patient_id FROM patients WHERE {outer}"
    if rng.random() < 0.4:
        return [
            f"SELECT COUNT(*) FROM patients WHERE {outer} AND patient_id NOT IN ({visits})",
            f"SELECT COUNT(*) FROM ({patients} EXCEPT {visits})",
            f"SELECT COUNT(DISTINCT patient_id) FROM patients p WHERE {outer} AND NOT EXISTS (SELECT 1 FROM visits v "
            f"WHERE v.patient_id = p.patient_id AND {tested})",
            f"SELECT COUNT(*) FROM patients p LEFT JOIN (SELECT DISTINCT patient_id AS k FROM visits WHERE {tested}) v ON k = p.patient_id "
            f"WHERE k IS NULL AND {outer}",
        ]
    return [
        f"SELECT COUNT(*) FROM patients WHERE {outer} AND patient_id IN ({visits})",
        f"SELECT COUNT(*) FROM ({patients} INTERSECT {visits})",
        f"SELECT COUNT(*) FROM ({visits} INTERSECT {patients})",
        f"SELECT COUNT(DISTINCT v.patient_id) FROM visits v JOIN patients p USING (patient_id) WHERE {outer} AND {tested}",
        f"SELECT COUNT(DISTINCT p.patient_id) FROM patients p, visits v WHERE v.patient_id = p.patient_id AND {tested} AND {outer}",
        f"SELECT COUNT(DISTINCT patient_id) FROM visits WHERE {tested} AND patient_id IN ({patients})",
    ]


def _visitors(rng: random.Random) -> list[str]:
    """Return forms of the number of patients with a visit of one kind and one (or none) of another."""
    first, second = rng.sample(_OF_VISITS, 2)
    one, two = (f"SELECT patient_id FROM visits WHERE {tested}" for tested in (first, second))
    if rng.random() < 0.4:
        return [f"SELECT COUNT(*) FROM ({one} EXCEPT {two})",
                f"SELECT COUNT(DISTINCT patient_id) FROM visits WHERE {first} AND patient_id NOT IN ({two})"]  # fmt: skip
    return [
        f"SELECT COUNT(*) FROM ({one} INTERSECT {two})",
        f"SELECT COUNT(*) FROM ({two} INTERSECT {one})",
        f"SELECT COUNT(DISTINCT patient_id) FROM visits WHERE {first} AND patient_id IN ({two})",
        f"SELECT COUNT(DISTINCT patient_id) FROM visits WHERE patient_id IN ({one}) AND {second}",
    ]


def _three(rng: random.Random) -> list[str]:
    """Return forms of the number of patients who pass a test, with visits of two kinds, or of one kind and none of the other."""
    outer, (first, second) = rng.choice(_OF_PATIENTS), rng.sample(_OF_VISITS, 2)
    one, two = (f"SELECT patient_id FROM visits WHERE {tested}" for tested in (first, second))
    patients = f"SELECT patient_id FROM patients WHERE {outer}"
    if rng.random() < 0.4:
        return [f"SELECT COUNT(*) FROM patients WHERE {outer} AND patient_id IN ({one}) AND patient_id NOT IN ({two})",
                f"SELECT COUNT(*) FROM ({one} INTERSECT {patients} EXCEPT {two})"]  # fmt: skip
    return [
        f"SELECT COUNT(*) FROM patients WHERE {outer} AND patient_id IN ({one}) AND patient_id IN ({two})",
        f"SELECT COUNT(*) FROM ({one} INTERSECT {two} INTERSECT {patients})",
        f"SELECT COUNT(*) FROM ({patients} INTERSECT {two} INTERSECT {one})",
    ]


def _either(rng: random.Random) -> list[str]:
    """Return forms of the patients with a visit of one kind or of another."""
    first, second = rng.sample(_OF_VISITS[:5], 2)
    exists = "EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND {})"
    listed = "patient_id IN (SELECT patient_id FROM visits WHERE {})"
    shown = rng.choice(("COUNT(*)", "AVG(p.age)"))
    rows = f"SELECT {shown} FROM patients p WHERE "
    return [
        rows + f"{exists.format(first)} OR {exists.format(second)}",
        rows + f"{exists.format(second)} OR {exists.format(first)}",
        rows + f"({listed.format(first)} OR {listed.format(second)})",
        rows + listed.format(f"({second} OR {first})"),
        rows + listed.format(f"{first} UNION SELECT patient_id FROM visits WHERE {second}"),
        rows + listed.format(f"{second} UNION ALL SELECT patient_id FROM visits WHERE {first}"),
    ]


def _joined_keys(rng: random.Random) -> list[str]:
    """Return forms of a table by a column that a join sets equal to another."""
    measure = rng.choice(("COUNT(*)", "AVG(age)", "SUM(age)"))
    tested = rng.choice(
        ("{}.region <> 'north'", "{}.region IN ('south', 'east')", "age > 30", "sex = 'f' AND {}.region > 'e'")
    )
    sources = (
        "patients p JOIN regions r ON p.region = r.region",
        "regions r JOIN patients p ON r.region = p.region",
        "patients p JOIN regions r USING (region)",
    )
    return [
        f"SELECT {shown}.region AS k, {measure} AS m FROM {source} WHERE {tested.format(read)} GROUP BY {shown}.region"
        for shown in "pr" for read in "pr" for source in rng.sample(sources, 2)
    ]  # fmt: skip


def _values(rng: random.Random) -> list[str]:
    """Return forms of a value by which visits are grouped, summed or chosen."""
    limit, text = rng.randint(-1, 12), rng.choice(("e", "er", "i", "icu"))
    forms = rng.choice([
        [f"SUM(greatest(nights, {limit}))", f"SUM(CASE WHEN nights > {limit} THEN nights ELSE {limit} END)",
         f"SUM(CASE WHEN {limit} <= nights THEN nights ELSE {limit} END)", f"SUM(if(nights >= {limit}, nights, {limit}))"],
        [f"SUM(least(nights, {limit}))", f"SUM(CASE WHEN nights < {limit} THEN nights ELSE {limit} END)",
         f"SUM(CASE nights <= {limit} WHEN TRUE THEN nights ELSE {limit} END)"],
        [f"COUNT(*) FILTER (WHERE trunc(nights / {limit + 2}) = 1)", f"COUNT(*) FILTER (WHERE nights // {limit + 2} = 1)"],
        [f"COUNT(*) FILTER (WHERE trunc(nights / 10) < {limit})", f"COUNT(*) FILTER (WHERE nights // 10 < {limit})"],
    ])  # fmt: skip
    keys = [
        f"ward LIKE '{text}%'",
        f"ward ~ '^{text}'",
        f"starts_with(ward, '{text}')",
        f"left(ward, {len(text)}) = '{text}'",
    ]
    return [f"SELECT {rng.choice(keys)} AS k, {form} AS m FROM visits GROUP BY k" for form in forms for _ in range(2)]


def test_tests_within_tests_are_in_one_form_too() -> None:
    listed = "patient_id IN (SELECT patient_id FROM visits WHERE {})"
    both = (listed.format("nights > 3 OR code = 2"), f"({listed.format('nights > 3')} OR {listed.format('code = 2')})")
    rows = f"SELECT COUNT(*) FROM patients WHERE {listed.format('code = 1 AND {}')} OR {listed.format('FALSE')}"
    first, second = (named(rows.format(within)) for within in both)
    assert first == second and first[0]


KINDS = (_units, _visitors, _three, _either, _joined_keys, _values)


@pytest.mark.parametrize("seed", seeds(10, 1))
def test_two_forms_are_one_question_and_two_questions_are_not(seed: int) -> None:
    rng = random.Random(f"two forms {seed}")
    plain, answered = PlainAnswers(rng), defaultdict[tuple[object, ...], set[str]](set)
    for kind in KINDS * 4:
        forms = kind(rng)
        keys = int(" AS k" in forms[0])
        answers = [str(plain.of(sql, [0, 1] if keys else [0], keys)) for sql in forms]
        assert len(set(answers)) == 1, forms
        names = {named(sql) for sql in forms}
        assert len(names) == 1 and all(releases for releases, _ in names), "\n".join(forms)
        (name,) = names
        answered[name, forms[0].split(" FROM ")[0].split(" AS m")[0]].add(answers[0])
    assert all(len(answers) == 1 for answers in answered.values())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # the groups are those of the column's own list
        ("SELECT v.ward, COUNT(*) FROM visits v JOIN patients p ON v.patient_id = p.patient_id AND v.ward = p.sex GROUP BY v.ward",
         "SELECT p.sex, COUNT(*) FROM visits v JOIN patients p ON v.patient_id = p.patient_id AND v.ward = p.sex GROUP BY p.sex"),
        ("SELECT p.region, COUNT(*) FROM labs l JOIN visits v ON l.visit_id = v.visit_id JOIN patients p "
         "ON p.patient_id = v.patient_id AND p.region = l.test GROUP BY p.region",
         "SELECT l.test, COUNT(*) FROM labs l JOIN visits v ON l.visit_id = v.visit_id JOIN patients p "
         "ON p.patient_id = v.patient_id AND p.region = l.test GROUP BY l.test"),
        # bounds of a sum are its column's own
        ("SELECT SUM(v.nights) FROM visits v JOIN patients p ON v.patient_id = p.patient_id AND v.nights = p.age",
         "SELECT SUM(p.age) FROM visits v JOIN patients p ON v.patient_id = p.patient_id AND v.nights = p.age"),
        # a row without a partner has no region
        ("SELECT p.region, COUNT(*) FROM patients p LEFT JOIN regions r ON p.region = r.region AND zone = 'cold' GROUP BY p.region",
         "SELECT r.region, COUNT(*) FROM patients p LEFT JOIN regions r ON p.region = r.region AND zone = 'cold' GROUP BY r.region"),
        ("SELECT COUNT(*) FILTER (WHERE p.region = 'north') FROM patients p LEFT JOIN regions r ON p.region = r.region AND zone = 'warm'",
         "SELECT COUNT(*) FILTER (WHERE r.region = 'north') FROM patients p LEFT JOIN regions r ON p.region = r.region AND zone = 'warm'"),
        # NULL is 5 in the one, and NULL in the other
        ("SELECT SUM(greatest(code % 9, 5)) FROM visits", "SELECT SUM(CASE WHEN code % 9 < 5 THEN 5 ELSE code % 9 END) FROM visits"),
        ("SELECT COUNT(*) FROM visits WHERE nights > 3 AND patient_id IN (SELECT patient_id FROM visits WHERE ward = 'er')",
         "SELECT COUNT(*) FROM visits WHERE ward = 'er' AND patient_id IN (SELECT patient_id FROM visits WHERE nights > 3)"),
        ("SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE nights > 3 EXCEPT SELECT patient_id FROM visits WHERE ward = 'er')",
         "SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE ward = 'er' EXCEPT SELECT patient_id FROM visits WHERE nights > 3)"),
        # 5 is 4 in the one, and 5 in the other
        ("SELECT SUM(greatest(nights, 4)) FROM visits", "SELECT SUM(CASE WHEN nights > 5 THEN nights ELSE 4 END) FROM visits"),
        # the same rows must be there, and must not
        tuple(f"SELECT COUNT(DISTINCT p.patient_id) FROM patients p JOIN visits v USING (patient_id) JOIN visits w USING (patient_id) "
              f"WHERE v.ward = 'er' AND w.nights > 3 AND p.patient_id {word} (SELECT patient_id FROM visits WHERE nights {test})"
              for word, test in (("IN", ">= 4"), ("NOT IN", "> 3"))),
        ("SELECT COUNT(*) FROM visits WHERE trunc((nights - 9) / 10) = 0", "SELECT COUNT(*) FROM visits WHERE floor((nights - 9) / 10) = 0"),
    ],
)  # fmt: skip
def test_forms_that_differ_somewhere_are_two_questions(one: str, other: str) -> None:
    (first, _), (second, _) = named(one), named(other)
    assert first and second and first != second
