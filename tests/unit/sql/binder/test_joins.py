"""A join is accepted with the number of rows that the policy promises, or refused at its position."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp
from support.bound_questions import (
    HOSPITAL,
    HOSPITAL_ROWS,
    binder_of,
    described,
    planned,
    refusal,
    select,
    sources_of,
)

from dpsql.errors.exceptions import Error
from dpsql.plan.plan import Relation
from dpsql.policy import Policy
from dpsql.sql.binder.joins import MOST_CROSSED, MOST_SOURCES, in_any_order, joined, with_shared_names
from dpsql.sql.binder.scope import Kind, Scope

DOUBLED = "(SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)"


def joined_from(text: str, policy: Policy = HOSPITAL) -> tuple[Scope, Relation]:
    """Return the result of `joined` for FROM and the clauses after it."""
    node = select(f"SELECT COUNT(*) FROM {text}")
    binder = binder_of(node, policy)
    return joined(binder, node, sources_of(binder, node))


def refused_from(text: str, policy: Policy = HOSPITAL) -> Error:
    with pytest.raises(Error) as caught:
        joined_from(text, policy)
    return caught.value


def with_public_rows(table: str, count: int) -> Policy:
    """Return the hospital with a public table of known row count."""
    columns = tuple(HOSPITAL.tables[table].columns)
    rows = tuple(tuple(f"{name} {number}" for name in columns) for number in range(count))
    return replace(HOSPITAL, tables={**HOSPITAL.tables, table: replace(HOSPITAL.tables[table], rows=(columns, rows))})


VISITS_PATIENTS = "(visits inner patients on a.patient_id = b.patient_id of one unit, 1)"
PATIENTS_VISITS = "(patients inner visits on a.patient_id = b.patient_id of one unit, 20, back 1)"
WARD = "a.ward = b.region"
TESTED = "(labs inner visits on a.visit_id = b.visit_id of one unit, 1)"


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("visits", "visits"),
        # A unique key is matched once; without a promise, a row may match all rows of its unit.
        ("visits v JOIN patients p ON v.patient_id = p.patient_id", VISITS_PATIENTS),
        ("visits v JOIN patients p ON (p.patient_id = v.patient_id)", VISITS_PATIENTS),
        ("visits JOIN patients USING (patient_id)", VISITS_PATIENTS),
        ("patients p JOIN visits v ON v.patient_id = p.patient_id", PATIENTS_VISITS),
        ("labs l JOIN visits v ON l.visit_id = v.visit_id", TESTED),
        ("visits v JOIN labs l ON l.visit_id = v.visit_id", "(visits inner labs on a.visit_id = b.visit_id of one unit, 12, back 1)"),
        ("visits v JOIN visits w ON v.patient_id = w.patient_id", "(visits inner visits on a.patient_id = b.patient_id of one unit, 20)"),
        ("visits v JOIN visits w ON v.visit_id = w.visit_id", "(visits inner visits on a.visit_id = b.visit_id of one unit, 1, back 1)"),
        ("patients p JOIN patients q ON p.patient_id = q.patient_id AND p.age = q.age",
         "(patients inner patients on a.patient_id = b.patient_id and a.age = b.age of one unit, 1, back 1)"),
        # The preserved side is on the left.
        ("visits v LEFT JOIN patients p ON v.patient_id = p.patient_id", VISITS_PATIENTS.replace("inner", "left")),
        ("visits v LEFT OUTER JOIN patients p ON v.patient_id = p.patient_id", VISITS_PATIENTS.replace("inner", "left")),
        ("patients p RIGHT JOIN visits v ON v.patient_id = p.patient_id", VISITS_PATIENTS.replace("inner", "left")),
        # Rows of public tables match as often as the policy declares.
        ("visits v JOIN regions r ON v.ward = r.region", f"(visits inner regions on {WARD}, 1)"),
        ("regions r JOIN visits v ON v.ward = r.region", f"(visits inner regions on {WARD}, 1)"),
        ("visits v JOIN prices p ON v.ward = p.ward", "(visits inner prices on a.ward = b.ward, 3)"),
        ("visits v JOIN prices p ON v.diagnosis = p.item", "(visits inner prices on a.diagnosis = b.item, 1)"),
        ("visits v JOIN prices p ON v.ward = p.ward AND v.diagnosis = p.item",
         "(visits inner prices on a.ward = b.ward and a.diagnosis = b.item, 1)"),
        ("visits v JOIN prices p ON coalesce(v.ward, 'x') = p.item", "(visits inner prices on coalesce(a.ward, 'x') = b.item, 1)"),
        ("regions r RIGHT JOIN visits v ON v.ward = r.region", f"(visits left regions on {WARD}, 1)"),
        # Rows that a public side preserves are in no block: the pairs form an inner join.
        ("regions r LEFT JOIN visits v ON v.ward = r.region", f"(visits inner regions on {WARD}, 1)"),
        ("visits v RIGHT JOIN regions r ON v.ward = r.region", f"(visits inner regions on {WARD}, 1)"),
        ("visits v FULL JOIN regions r ON v.ward = r.region", f"(visits left regions on {WARD}, 1)"),
        ("regions r FULL JOIN visits v ON v.ward = r.region", f"(visits left regions on {WARD}, 1)"),
        # Conditions besides the keys.
        ("visits v JOIN regions r ON v.ward = r.region AND v.cost < r.population",
         f"(visits inner regions on {WARD}, 1) where lt(a.cost, b.population)"),
        ("visits v JOIN regions r ON v.ward = r.region AND r.zone = 'a'",
         f"(visits inner regions on {WARD}, 1) where eq(b.zone, 'a')"),
        ("visits v LEFT JOIN regions r ON v.ward = r.region AND r.zone = 'a'",
         f"(visits left regions where eq(zone, 'a') on {WARD}, 1)"),
        # A result: one row for each value of its key.
        (f"visits v JOIN {DOUBLED} AS d ON v.ward = d.ward", "(visits inner result on a.ward = b.c0, 1)"),
        (f"visits v CROSS JOIN (SELECT * FROM {DOUBLED} AS d LIMIT 7) AS e", "(visits inner result on , 7)"),
        ("visits v CROSS JOIN (SELECT COUNT(*) AS n FROM patients) AS e", "(visits inner result on , 1)"),
    ],
)  # fmt: skip
def test_a_join_has_the_rows_that_the_policy_promises(text: str, relation: str) -> None:
    assert described(joined_from(text)[1]) == relation


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("visits v, patients p WHERE v.patient_id = p.patient_id", VISITS_PATIENTS),
        ("patients p, visits v WHERE v.patient_id = p.patient_id", VISITS_PATIENTS),
        ("patients p CROSS JOIN visits v WHERE v.patient_id = p.patient_id", VISITS_PATIENTS),
        ("patients p, visits v WHERE (v.patient_id = p.patient_id AND v.cost = 3) OR (v.patient_id = p.patient_id)", VISITS_PATIENTS),
        ("visits v, patients p WHERE v.patient_id = p.patient_id AND v.nights > 3", VISITS_PATIENTS),
        ("regions r, visits v WHERE v.ward = r.region", f"(visits inner regions on {WARD}, 1)"),
        # The table furthest from the unit comes first, then whatever is proven, in any textual order.
        ("patients p, visits v, labs l WHERE l.visit_id = v.visit_id AND v.patient_id = p.patient_id",
         f"({TESTED} inner patients on a.b.patient_id = b.patient_id of one unit, 1)"),
        ("regions r, patients p, labs l, visits v"
         " WHERE l.visit_id = v.visit_id AND v.patient_id = p.patient_id AND r.region = p.region",
         f"(({TESTED} inner patients on a.b.patient_id = b.patient_id of one unit, 1)"
         " inner regions on a.b.region = b.region, 1)"),
        # Among tables at the same distance, the first in the text.
        ("visits v, visits w WHERE v.visit_id = w.visit_id",
         "(visits inner visits on a.visit_id = b.visit_id of one unit, 1, back 1)"),
        ("visits v, patients p JOIN regions r ON p.region = r.region WHERE v.patient_id = p.patient_id",
         f"({VISITS_PATIENTS} inner regions on a.b.region = b.region, 1)"),
    ],
)  # fmt: skip
def test_joins_by_commas_are_made_in_an_order_that_is_proven(text: str, relation: str) -> None:
    assert described(joined_from(text)[1]) == relation


def test_the_scope_names_columns_where_the_join_has_them() -> None:
    scope, _ = joined_from("patients p, visits v WHERE v.patient_id = p.patient_id")
    assert [alias for alias, _ in scope.sources] == ["p", "v"]
    assert scope.resolve(exp.column("age")).name == "b.age"
    assert scope.resolve(exp.column("cost", "v")).name == "a.cost"
    assert scope.unit_names() == {"a.patient_id", "b.patient_id"}


@pytest.mark.parametrize(
    ("text", "column", "nullable"),
    [
        ("visits v JOIN patients p ON v.patient_id = p.patient_id", "region", False),
        ("visits v JOIN patients p ON v.patient_id = p.patient_id", "nights", False),
        ("visits v LEFT JOIN patients p ON v.patient_id = p.patient_id", "region", True),
        ("visits v LEFT JOIN patients p ON v.patient_id = p.patient_id", "nights", False),
        ("patients p RIGHT JOIN visits v ON v.patient_id = p.patient_id", "region", True),
        ("patients p RIGHT JOIN visits v ON v.patient_id = p.patient_id", "nights", False),
        ("regions r LEFT JOIN visits v ON v.ward = r.region", "nights", True),
        ("regions r LEFT JOIN visits v ON v.ward = r.region", "zone", False),
        ("regions r FULL JOIN visits v ON v.ward = r.region", "nights", True),
        ("regions r FULL JOIN visits v ON v.ward = r.region", "zone", True),
    ],
)  # fmt: skip
def test_columns_that_an_outer_join_leaves_out_may_be_null(text: str, column: str, nullable: bool) -> None:
    scope, _ = joined_from(text)
    assert scope.resolve(exp.column(column)).facts.nullable is nullable


PATIENTS_AND_COMPUTED = "(SELECT patient_id + 1 AS image, abs(patient_id) AS mixed, patient_id AS person FROM patients)"


def test_an_inner_join_keeps_the_kinds_of_keys_of_both_sides() -> None:
    scope, _ = joined_from(f"patients p JOIN {PATIENTS_AND_COMPUTED} AS q ON p.patient_id = q.person")
    assert scope.units == {
        "a.patient_id": Kind.KEY,
        "b.p0": Kind.IMAGE,
        "b.p1": Kind.MIXED,
        "b.p2": Kind.KEY,
    }


def test_a_key_that_an_outer_join_may_leave_out_is_no_key() -> None:
    scope, _ = joined_from(f"patients p LEFT JOIN {PATIENTS_AND_COMPUTED} AS q ON p.patient_id = q.person")
    assert scope.units == {"a.patient_id": Kind.KEY, "b.p0": Kind.MIXED, "b.p1": Kind.MIXED, "b.p2": Kind.MIXED}
    assert scope.unit_names() == {"a.patient_id"}


def test_the_key_stays_where_unpaired_public_rows_alone_lack_it() -> None:
    scope, _ = joined_from("regions r LEFT JOIN patients p ON p.region = r.region")
    assert scope.unit_names() == {"a.patient_id"}
    assert scope.resolve(exp.column("patient_id")).facts.nullable


@pytest.mark.parametrize(
    ("text", "unpaired"),
    [
        ("regions r LEFT JOIN patients p ON p.region = r.region", True),
        ("patients p RIGHT JOIN regions r ON p.region = r.region", True),
        ("patients p FULL JOIN regions r ON p.region = r.region", True),
        ("patients p LEFT JOIN regions r ON p.region = r.region", False),
        ("patients p JOIN regions r ON p.region = r.region", False),
        ("regions r LEFT JOIN patients p ON p.region = r.region JOIN visits v ON v.patient_id = p.patient_id", True),
    ],
)
def test_public_rows_without_a_partner_are_handed_on(text: str, unpaired: bool) -> None:
    assert (joined_from(text)[0].unpaired is not None) is unpaired


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("visits v JOIN visits w ON v.ward = w.ward", "rows of different people could meet"),
        ("patients p JOIN visits v ON p.age = v.nights", "rows of different people could meet"),
        ("patients p JOIN patients q ON p.patient_id = q.age", "rows of different people could meet"),
        ("patients p JOIN patients q ON p.age = q.patient_id", "rows of different people could meet"),
        ("visits v, visits w", "no key of one side equals a key of the other"),
        ("visits v CROSS JOIN visits w", "no key of one side equals a key of the other"),
        ("visits v JOIN patients p ON v.cost > 3", "no key of one side equals a key of the other"),
        ("visits v JOIN patients p ON v.patient_id = 3", "no key of one side equals a key of the other"),
        ("visits v JOIN patients p ON v.nights = v.code", "no key of one side equals a key of the other"),
        ("visits v, patients p WHERE v.patient_id = p.patient_id OR v.cost = 3", "no key of one side"),
        ("visits v, patients p WHERE v.patient_id = p.patient_id OR v.code = p.age", "no key of one side"),
        ("visits v, patients p WHERE NOT v.patient_id = p.patient_id", "no key of one side"),
        ("visits v JOIN patients p", "no key of one side equals a key of the other"),
        ("visits v LEFT JOIN patients p", "a cross join has no bound"),
        ("visits v SEMI JOIN patients p ON v.patient_id = p.patient_id", "SEMI JOIN over protected rows"),
        ("visits v ANTI JOIN patients p ON v.patient_id = p.patient_id", "ANTI JOIN over protected rows"),
        ("visits v FULL JOIN patients p ON v.patient_id = p.patient_id", "FULL JOIN of two protected tables"),
        ("visits v LEFT JOIN patients p ON v.patient_id = p.patient_id AND v.cost > p.age", "an outer join takes equalities only"),
        ("visits v LEFT JOIN patients p ON v.patient_id = p.patient_id AND v.cost > 3", "an outer join takes equalities only"),
        ("regions r JOIN prices p ON r.region = p.item JOIN visits v ON v.ward = p.ward", "two public tables come first"),
        ("regions r, prices p LEFT JOIN visits v ON v.ward = p.ward WHERE r.region = p.item", "two public tables come first"),
        ("visits v JOIN prices p ON v.cost = p.price", "several rows of prices may have the same price"),
        ("visits v JOIN prices p ON v.ward = lower(p.item)", "several rows of prices may have the same these expressions"),
        ("visits v CROSS JOIN regions r", "no key of one side equals a key of the other"),
        (f"visits v JOIN {DOUBLED} AS d ON v.nights = d.n", "several rows of the result may have the same key"),
        (f"visits v CROSS JOIN {DOUBLED} AS d", "no key of one side equals a key of the other"),
        ("regions r LEFT JOIN patients p ON p.region = r.region RIGHT JOIN prices q ON p.city = q.item",
         "several outer joins keep public rows"),
    ],
)  # fmt: skip
def test_joins_that_are_not_proven_are_refused(text: str, reason: str) -> None:
    error = refused_from(text)
    assert error.slug == "join"
    assert reason in error.message
    assert error.hint


@pytest.mark.parametrize(
    ("text", "slug", "place"),
    [
        ("visits v JOIN patients p ON v.id = p.patient_id", "unknown_column", "v.id"),
        ("visits v JOIN patients p ON q.patient_id = p.patient_id", "unknown_table", "q.patient_id"),
        ("visits v JOIN patients p ON v.patient_id > p.zz", "unknown_column", "p.zz"),
        ("visits v JOIN patients p ON patient_id = 3", "ambiguous_column", "patient_id = 3"),
        ("visits v LEFT JOIN patients p ON v.patient_id = p.patient_id AND p.zz > 3", "unknown_column", "p.zz"),
        ("visits v LEFT JOIN patients p ON v.patient_id = p.patient_id AND patient_id > 3", "ambiguous_column", "patient_id > 3"),
        ("visits v, patients p WHERE v.id = p.patient_id", "unknown_column", "v.id"),
        ("labs l, visits v, patients p WHERE l.visit = v.visit_id AND v.patient_id = p.patient_id", "unknown_column", "l.visit "),
    ],
)  # fmt: skip
def test_a_name_that_does_not_exist_is_refused_rather_than_the_join(text: str, slug: str, place: str) -> None:
    error = refused_from(text)
    assert (error.slug, error.position) == (slug, f"SELECT COUNT(*) FROM {text}".index(place) + 1)


@pytest.mark.parametrize("text", ["visits v JOIN visits w ON v.cost = w.nights", "patients p, visits v"])
def test_a_refusal_has_its_place(text: str) -> None:
    assert refused_from(text).position is not None


def test_a_comma_join_that_nothing_proves_is_refused_at_the_first_that_fails() -> None:
    text = "labs l, visits v, patients p WHERE v.patient_id = p.patient_id"
    assert refused_from(text).position == len("SELECT COUNT(*) FROM labs l, v")


def test_no_two_rows_of_different_units_meet_under_row_privacy() -> None:
    text = "visits v JOIN patients p ON v.patient_id = p.patient_id"
    assert "each row of both tables is a privacy unit" in refused_from(text, HOSPITAL_ROWS).message
    public = "visits v JOIN regions r ON v.ward = r.region"
    assert described(joined_from(public, HOSPITAL_ROWS)[1]) == f"(visits inner regions on {WARD}, 1)"


@pytest.mark.parametrize(("count", "met"), [(0, 1), (1, 1), (2, 2), (MOST_CROSSED, MOST_CROSSED)])
def test_each_row_may_meet_all_rows_of_a_small_public_table(count: int, met: int) -> None:
    policy = with_public_rows("regions", count)
    _, relation = joined_from("visits v CROSS JOIN regions r", policy)
    assert described(relation, policy) == f"(visits inner regions on , {met})"


def test_a_public_table_of_too_many_rows_is_not_crossed() -> None:
    assert MOST_CROSSED == 1000
    error = refused_from("visits v CROSS JOIN regions r", with_public_rows("regions", MOST_CROSSED + 1))
    assert error.slug == "join"
    assert "1,000 rows" in str(error.hint)


def test_the_number_of_rows_stands_in_for_keys_only_where_there_are_none() -> None:
    policy = with_public_rows("prices", 5)
    assert "several rows of prices" in refused_from("visits v JOIN prices p ON v.cost = p.price", policy).message
    _, relation = joined_from("visits v JOIN prices p ON v.cost > p.price", policy)
    assert described(relation, policy) == "(visits inner prices on , 5) where gt(a.cost, b.price)"


@pytest.mark.parametrize(("limit", "accepted"), [(1, True), (1_000, True), (1_001, False)])
def test_a_result_with_a_limit_may_be_met_whole(limit: int, accepted: bool) -> None:
    text = f"visits v CROSS JOIN (SELECT city, COUNT(*) AS n FROM patients GROUP BY city LIMIT {limit}) AS e"
    if accepted:
        assert described(joined_from(text)[1]) == f"(visits inner result on , {limit})"
    else:
        assert "several rows of the result may have the same key" in refused_from(text).message


def chain(count: int) -> str:
    """Return `count` sources, all of them the visits with one key."""
    return "visits v0 " + " ".join(
        f"JOIN visits v{number} ON v0.visit_id = v{number}.visit_id" for number in range(1, count)
    )


def test_from_takes_a_dozen_sources() -> None:
    assert MOST_SOURCES == 12
    assert len(joined_from(chain(12))[0].sources) == 12
    error = refused_from(chain(13))
    assert error.slug == "clause"
    assert "FROM with more than 12 sources" in error.message


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("visits JOIN visits ON visits.visit_id = visits.visit_id", False),
        ("visits v JOIN patients V ON v.patient_id = V.patient_id", False),
        ("visits v JOIN patients p ON v.patient_id = p.patient_id JOIN regions p ON p.region = v.ward", False),
        ("visits v JOIN visits w ON v.visit_id = w.visit_id", True),
    ],
)
def test_an_alias_stands_once(text: str, accepted: bool) -> None:
    if accepted:
        joined_from(text)
    else:
        assert refused_from(text).slug == "duplicate_name"


def test_a_join_with_more_than_a_condition_is_refused() -> None:
    error = refused_from("visits v ASOF JOIN patients p ON v.patient_id = p.patient_id")
    assert error.slug == "clause"
    assert error.message.startswith("JOIN with")


def test_keys_of_types_that_do_not_compare_are_refused() -> None:
    assert refused_from("visits v JOIN regions r ON v.day = r.population").slug == "wrong_arguments"


def test_a_correlated_value_of_several_rows_is_refused_as_such() -> None:
    assert (
        refusal("SELECT SUM((SELECT price FROM prices p WHERE p.ward = v.ward)) FROM visits v").slug == "several_rows"
    )
    assert planned("SELECT SUM((SELECT price FROM prices p WHERE p.item = v.ward)) FROM visits v").blocks


# --- SELECTs rewritten before they are joined ---------------------------------------------------------------------------


def rewritten(sql: str) -> str:
    node = select(sql)
    return in_any_order(node, sources_of(binder_of(node), node)).sql("duckdb")


@pytest.mark.parametrize(
    ("sql", "conditions"),
    [
        ("regions r JOIN prices p ON r.region = p.item JOIN visits v ON v.ward = p.ward",
         "WHERE r.region = p.item AND v.ward = p.ward"),
        ("regions r JOIN prices p ON r.region = p.item JOIN visits v ON v.ward = p.ward WHERE v.cost > 3",
         "WHERE r.region = p.item AND v.ward = p.ward AND v.cost > 3"),
        ("regions r INNER JOIN prices p ON TRUE CROSS JOIN visits v", "WHERE TRUE"),
        ("regions r CROSS JOIN prices p CROSS JOIN visits v", ""),
    ],
)  # fmt: skip
def test_conditions_of_inner_joins_that_begin_with_public_tables_stand_in_where(sql: str, conditions: str) -> None:
    expected = f"SELECT COUNT(*) FROM regions AS r, prices AS p, visits AS v {conditions}"
    assert rewritten(f"SELECT COUNT(*) FROM {sql}") == expected.strip()


@pytest.mark.parametrize(
    "text",
    [
        "regions r JOIN visits v ON v.ward = r.region",
        "visits v JOIN regions r ON v.ward = r.region JOIN prices p ON p.item = v.ward",
        "regions r JOIN visits v ON v.ward = r.region JOIN prices p ON p.item = v.ward",
        "regions r LEFT JOIN prices p ON r.region = p.item JOIN visits v ON v.ward = p.ward",
        "regions r JOIN prices p ON r.region = p.item LEFT JOIN visits v ON v.ward = p.ward",
        "regions r JOIN prices p ON r.region = p.item JOIN visits v USING (ward)",
        "regions r NATURAL JOIN prices p JOIN visits v ON v.ward = p.ward",
        "regions r SEMI JOIN prices p ON r.region = p.item JOIN visits v ON v.ward = p.ward",
    ],
)
def test_other_joins_stay_where_they_are(text: str) -> None:
    node = select(f"SELECT COUNT(*) FROM {text}")
    assert in_any_order(node, sources_of(binder_of(node), node)) is node


def test_public_tables_in_front_are_joined_from_the_protected_table_on() -> None:
    plan = planned(
        "SELECT COUNT(*) FROM regions r JOIN prices p ON r.region = p.item JOIN visits v ON v.ward = r.region"
    )
    assert described(plan.blocks[0].source) == (
        "((visits inner regions on a.ward = b.region, 1) inner prices on a.b.region = b.item, 1)"
        " where and(eq(a.b.region, b.item), eq(a.a.ward, a.b.region))"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("visits NATURAL JOIN labs", 'visits JOIN labs USING ("visit_id")'),
        ("regions NATURAL JOIN patients", 'regions JOIN patients USING ("region")'),
        ("prices p NATURAL LEFT JOIN visits v", 'prices AS p LEFT JOIN visits AS v USING ("ward")'),
        # names of all preceding sources, in the spelling of the right side
        ("patients JOIN visits USING (patient_id) NATURAL JOIN labs",
         'patients JOIN visits USING (patient_id) JOIN labs USING ("visit_id")'),
        ("(SELECT REGION AS \"Region\" FROM regions) AS r NATURAL JOIN patients",
         '(SELECT REGION AS "Region" FROM regions) AS r JOIN patients USING ("region")'),
        ("visits v NATURAL JOIN visits w",
         'visits AS v JOIN visits AS w USING ("visit_id", "patient_id", "ward", "day", "seen", "cost", "change", '
         '"nights", "diagnosis", "code")'),
    ],
)  # fmt: skip
def test_natural_joins_use_the_names_that_both_sides_have(text: str, expected: str) -> None:
    node = select(f"SELECT COUNT(*) FROM {text}")
    assert (
        with_shared_names(node, sources_of(binder_of(node), node)).sql("duckdb") == f"SELECT COUNT(*) FROM {expected}"
    )


def test_a_select_without_natural_joins_stays_itself() -> None:
    for text in ("visits", "visits JOIN patients USING (patient_id)", "visits, patients"):
        node = select(f"SELECT COUNT(*) FROM {text}")
        assert with_shared_names(node, sources_of(binder_of(node), node)) is node


def test_a_natural_join_needs_a_name_on_both_sides() -> None:
    node = select("SELECT COUNT(*) FROM regions NATURAL JOIN labs")
    with pytest.raises(Error) as caught:
        with_shared_names(node, sources_of(binder_of(node), node))
    assert caught.value.slug == "join"
    assert "no column on both sides" in caught.value.message
