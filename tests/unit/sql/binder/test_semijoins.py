"""IN and EXISTS keep rows by public rows or by rows of the same unit; anything else is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.bound_questions import (
    HOSPITAL,
    HOSPITAL_ROWS,
    binder_of,
    described,
    in_words,
    select,
    sources_of,
)

from dpsql.errors.exceptions import Error
from dpsql.plan.plan import Filter, Relation, ReleasedRows, ReleasedValue, SemiJoin
from dpsql.plan.stability import rows_per_unit
from dpsql.policy import Policy
from dpsql.sql.binder.joins import joined
from dpsql.sql.binder.scope import Environment
from dpsql.sql.binder.semijoins import filtered


def kept(text: str, policy: Policy = HOSPITAL, before: str = "") -> Relation:
    """Return the rows that pass WHERE; `before`: WITH clauses of the query."""
    node = select(f"{before}SELECT COUNT(*) FROM {text}")
    binder = binder_of(node, policy)
    scope, relation = joined(binder, node, sources_of(binder, node))
    environment = binder.environment(node, Environment())
    scope.subquery = lambda subquery: binder.value(subquery, environment, scope)
    return filtered(binder, node.args["where"], scope, relation, environment)


def refused(text: str, policy: Policy = HOSPITAL) -> Error:
    with pytest.raises(Error) as caught:
        kept(text, policy)
    return caught.value


OWN = "(patients in columns(visits) on patient_id = p0 of one unit)"
REGION = "SELECT region FROM regions"
"""The public regions."""


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("patients WHERE age > 3", "patients where gt(age, 3)"),
        ("patients WHERE age > 3 AND (smoker AND weight < 5)", "patients where and(gt(age, 3), smoker, lt(weight, 5))"),
        ("patients WHERE age IN (3, 4)", "patients where in(age, 3, 4)"),
        # IN
        (f"patients WHERE region IN ({REGION})", "(patients in columns(regions) on region = p0)"),
        (f"patients WHERE region NOT IN ({REGION})", "(patients not in columns(regions) on region = p0)"),
        (f"patients WHERE NOT (NOT (region IN ({REGION})))", "(patients in columns(regions) on region = p0)"),
        (f"patients WHERE NOT ((region NOT IN ({REGION})))", "(patients in columns(regions) on region = p0)"),
        (f"patients WHERE region IN ({REGION} WHERE zone = 'a')", "(patients in columns(regions where eq(zone, 'a')) on region = p0)"),
        (f"patients WHERE region IN ({REGION} AS r WHERE r.zone = 'a')", "(patients in columns(regions where eq(zone, 'a')) on region = p0)"),
        ("patients WHERE age + 1 IN (SELECT population FROM regions)", "(patients in columns(regions) on add(age, 1) = p0)"),
        ("patients WHERE patient_id IN (SELECT patient_id FROM visits)", OWN),
        ("patients WHERE patient_id IN (SELECT patient_id FROM visits WHERE cost > 3)", OWN.replace("visits", "visits where gt(cost, 3)")),
        ("visits WHERE patient_id NOT IN (SELECT patient_id FROM patients)",
         "(visits not in columns(patients) on patient_id = p0 of one unit)"),
        # declared foreign keys lead to the same unit
        ("labs WHERE visit_id IN (SELECT visit_id FROM visits)", "(labs in columns(visits) on visit_id = p0 of one unit)"),
        ("labs WHERE visit_id IN (SELECT visit_id FROM labs)", "(labs in columns(labs) on visit_id = p0 of one unit)"),
        # results
        ("patients WHERE age IN (SELECT COUNT(*) FROM visits)", "(patients in result on age = c0)"),
        ("patients WHERE region IN (SELECT DISTINCT region FROM regions)", "(patients in result on region = c0)"),
        ("patients WHERE region IN (SELECT region FROM regions LIMIT 3)", "(patients in result on region = c0)"),
        # several conditions: semi-joins first, in their order, then one filter
        (f"patients WHERE age > 3 AND region IN ({REGION}) AND smoker AND patient_id IN (SELECT patient_id FROM visits)",
         "((patients in columns(regions) on region = p0) in columns(visits) on patient_id = p0 of one unit)"
         " where and(gt(age, 3), smoker)"),
    ],
)  # fmt: skip
def test_in_keeps_rows_by_public_rows_or_rows_of_the_unit(text: str, relation: str) -> None:
    assert described(kept(text)) == relation


# Protected rows of EXISTS are a SELECT *: p1 is the patient of a visit, p5 its cost, p7 its nights, p9 its code.
@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id)",
         "(patients exists columns(visits) on patient_id = p1 of one unit)"),
        ("patients p WHERE EXISTS (SELECT * FROM visits v WHERE (p.patient_id = v.patient_id))",
         "(patients exists columns(visits) on patient_id = p1 of one unit)"),
        ("patients p WHERE NOT EXISTS (SELECT 1 FROM visits WHERE patient_id = p.patient_id)",
         "(patients not exists columns(visits) on patient_id = p1 of one unit)"),
        ("patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.cost > 3)",
         "(patients exists columns(visits) where gt(p5, 3) on patient_id = p1 of one unit)"),
        ("patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.cost > 3 AND v.patient_id = p.patient_id AND v.code = 1)",
         "(patients exists columns(visits) where gt(p5, 3) where eq(p9, 1) on patient_id = p1 of one unit)"),
        # keys of both rows, and conditions on both
        ("patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.nights = p.age)",
         "(patients exists columns(visits) on patient_id = p1 and age = p7 of one unit)"),
        ("patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.nights > p.age)",
         "(patients exists columns(visits) on patient_id = p1 of one unit if gt(s.c.p7, age))"),
        ("patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.nights > p.age AND v.code < p.age)",
         "(patients exists columns(visits) on patient_id = p1 of one unit if and(gt(s.c.p7, age), lt(s.c.p9, age)))"),
        # names of the subquery take precedence
        ("visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND nights > v.nights)",
         "(visits exists columns(visits) on patient_id = p1 of one unit if gt(s.c.p7, nights))"),
        # public rows need no correlation
        ("patients p WHERE EXISTS (SELECT 1 FROM regions r WHERE r.region = p.region)", "(patients exists regions on region = region)"),
        ("patients p WHERE EXISTS (SELECT 1 FROM regions r WHERE r.population > p.age)",
         "(patients exists regions on  if gt(s.c.population, age))"),
        ("labs l WHERE EXISTS (SELECT 1 FROM visits v WHERE v.visit_id = l.visit_id)",
         "(labs exists columns(visits) on visit_id = p0 of one unit)"),
    ],
)  # fmt: skip
def test_exists_keeps_rows_by_what_they_meet(text: str, relation: str) -> None:
    assert described(kept(text)) == relation


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("patients WHERE patient_id IN (SELECT patient_id FROM visits)", 1),
        ("visits WHERE patient_id IN (SELECT patient_id FROM patients)", 20),
        ("labs l WHERE EXISTS (SELECT 1 FROM visits v WHERE v.visit_id = l.visit_id)", 12),
    ],
)
def test_rows_of_a_unit_are_those_of_the_row_outside(text: str, most: int) -> None:
    assert rows_per_unit(kept(text), HOSPITAL) == most


@pytest.mark.parametrize(("word", "negated"), [("", False), ("NOT ", True)])
def test_exists_without_a_tie_is_a_value_that_is_released(word: str, negated: bool) -> None:
    relation = kept(f"patients WHERE {word}EXISTS (SELECT 1 FROM regions r WHERE r.zone = 'a')")
    assert isinstance(relation, Filter)
    assert in_words(relation.predicate) == ("not(dp_result_0)" if negated else "dp_result_0")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) FROM visits HAVING COUNT(*) > 3",
        "SELECT region FROM regions LIMIT 1",
        "SELECT region FROM regions GROUP BY region",
        "SELECT COUNT(*) FROM visits",
        "SELECT 1, COUNT(*) FROM visits",
        "SELECT 1",
    ],
)
def test_exists_of_another_query_is_a_value(query: str) -> None:
    relation = kept(f"patients WHERE EXISTS ({query})")
    assert isinstance(relation, Filter)
    assert isinstance(relation.predicate, ReleasedValue)


@pytest.mark.parametrize(
    "text",
    [
        "visits WHERE ward IN (SELECT ward FROM visits)",
        "patients WHERE age IN (SELECT age FROM patients)",
        "patients WHERE patient_id IN (SELECT age FROM patients)",
        "patients WHERE age IN (SELECT patient_id FROM patients)",
        "patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.nights = p.age)",
        "patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.cost > 3)",
        "patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.nights > p.age)",
        "patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id > p.patient_id)",
        "patients p WHERE EXISTS (SELECT 1 FROM visits)",
    ],
)
def test_rows_of_other_units_are_not_looked_at(text: str) -> None:
    error = refused(text)
    assert error.slug == "semi_join"
    assert "other people's rows" in error.message
    assert error.position is not None


def test_no_rows_are_tied_under_row_privacy() -> None:
    error = refused("patients WHERE patient_id IN (SELECT patient_id FROM visits)", HOSPITAL_ROWS)
    assert error.slug == "semi_join"
    assert described(kept(f"patients WHERE region IN ({REGION})", HOSPITAL_ROWS)) == (
        "(patients in columns(regions) on region = p0)"
    )


@pytest.mark.parametrize(
    ("query", "slug"),
    [
        ("SELECT region, zone FROM regions", "semi_join"),
        ("SELECT * FROM regions", "semi_join"),
        ("SELECT patient_id, cost FROM visits", "semi_join"),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward", "semi_join"),
        ("SELECT population FROM regions", "wrong_arguments"),
        ("SELECT region FROM nowhere", "unknown_table"),
        ("SELECT nothing FROM regions", "unknown_column"),
        ("SELECT region FROM regions WHERE patient_id = 3", "unknown_column"),
        ("SELECT * EXCLUDE (zone, population) FROM regions", "clause"),
        ("SELECT region FROM public.elsewhere.regions", "unknown_table"),
        ("SELECT region FROM regions WHERE region", "not_boolean"),
    ],
)
def test_what_in_compares_with_is_one_column_of_its_type(query: str, slug: str) -> None:
    assert refused(f"patients WHERE region IN ({query})").slug == slug


def test_all_stars_of_a_public_table_of_one_column_are_its_column() -> None:
    regions = HOSPITAL.tables["regions"]
    narrow = replace(regions, columns={"region": regions.columns["region"]})
    policy = replace(HOSPITAL, tables={**HOSPITAL.tables, "regions": narrow})
    relation = kept("patients WHERE region IN (SELECT * FROM regions)", policy)
    assert described(relation) == "(patients in regions on region = region)"


def test_a_name_of_with_goes_before_a_public_table() -> None:
    relation = kept(
        "patients WHERE region IN (SELECT region FROM regions)",
        before="WITH regions AS (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) ",
    )
    assert isinstance(relation, SemiJoin)
    assert isinstance(relation.right, ReleasedRows)
    assert not relation.on_unit


def test_an_unknown_name_in_exists_is_refused_as_out_there() -> None:
    text = "patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.cost > nothing)"
    error = refused(text)
    assert error.slug == "unknown_column"
    assert "nothing" in error.message
    text = text.replace("cost > nothing", "nothing > 3")
    assert refused(text).slug == "unknown_table"


def test_a_key_of_two_constants_is_a_condition() -> None:
    text = "patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.code = 3 AND p.age = 4)"
    assert described(kept(text)) == (
        "(patients exists columns(visits) where eq(p9, 3) on patient_id = p1 of one unit if eq(age, 4))"
    )


def test_types_that_do_not_compare_are_refused_in_exists() -> None:
    assert refused("patients p WHERE EXISTS (SELECT 1 FROM regions r WHERE r.population = p.region)").slug == (
        "wrong_arguments"
    )


def test_a_condition_of_where_is_boolean() -> None:
    assert refused("patients WHERE age").slug == "not_boolean"
