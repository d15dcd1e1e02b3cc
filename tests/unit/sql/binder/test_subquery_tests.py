"""IN and EXISTS inside expressions become counts where a count means the same, and stay unchanged elsewhere."""

from __future__ import annotations

import pytest
from sqlglot import exp
from support.bound_questions import HOSPITAL, HOSPITAL_ROWS, binder_of, select, sources_of

from dpsql.policy import Policy
from dpsql.sql.binder.scope import Environment
from dpsql.sql.binder.subquery_tests import with_counts


def rewritten(node: exp.Select, policy: Policy = HOSPITAL) -> exp.Select:
    """Return a SELECT with counts, in its items and WHERE, which are row expressions if nothing is aggregated."""
    binder = binder_of(node, policy)
    environment = binder.environment(node, Environment())

    def parts(tree: exp.Select) -> list[exp.Expr]:
        where = tree.args.get("where")
        return [*tree.expressions, *([] if where is None else [where])]

    return with_counts(binder, node, sources_of(binder, node), environment, parts)


def where_of(condition: str, source: str = "patients AS p", policy: Policy = HOSPITAL) -> str:
    """Return the condition of WHERE after rewriting."""
    written = rewritten(select(f"SELECT age FROM {source} WHERE {condition}"), policy).args["where"].this
    return str(written.sql("duckdb"))


OWN = "EXISTS (SELECT 1 FROM visits AS v WHERE v.patient_id = p.patient_id)"
COUNTED = "((SELECT COUNT(*) FROM visits AS v WHERE v.patient_id = p.patient_id) > 0)"


@pytest.mark.parametrize(
    ("condition", "counted"),
    [
        (f"age > 3 OR {OWN}", f"age > 3 OR {COUNTED}"),
        (f"age > 3 OR NOT {OWN}", f"age > 3 OR NOT {COUNTED}"),
        (f"({OWN}) = smoker", f"({COUNTED}) = smoker"),
        ("age > 3 OR EXISTS (SELECT 1 FROM visits AS v WHERE p.patient_id = v.patient_id)",
         "age > 3 OR ((SELECT COUNT(*) FROM visits AS v WHERE p.patient_id = v.patient_id) > 0)"),
        ("age > 3 OR EXISTS (SELECT 1 FROM visits AS v WHERE (v.patient_id = p.patient_id) AND v.cost > 3)",
         "age > 3 OR ((SELECT COUNT(*) FROM visits AS v WHERE (v.patient_id = p.patient_id) AND v.cost > 3) > 0)"),
        # public rows need no correlation
        ("age > 3 OR EXISTS (SELECT 1 FROM regions AS r WHERE r.region = p.region)",
         "age > 3 OR ((SELECT COUNT(*) FROM regions AS r WHERE r.region = p.region) > 0)"),
        ("age > 3 OR EXISTS (SELECT 1 FROM regions AS r)", "age > 3 OR ((SELECT COUNT(*) FROM regions AS r) > 0)"),
        # IN: keys that are never NULL
        ("age > 3 OR patient_id IN (SELECT patient_id FROM visits AS v)",
         'age > 3 OR ((SELECT COUNT(*) FROM visits AS v WHERE "v".patient_id = "p".patient_id) > 0)'),
        ("age > 3 OR patient_id IN (SELECT patient_id FROM visits AS v WHERE v.cost > 3)",
         'age > 3 OR ((SELECT COUNT(*) FROM visits AS v WHERE v.cost > 3 AND "v".patient_id = "p".patient_id) > 0)'),
        ("age > 3 OR p.region IN (SELECT r.region AS name FROM regions AS r)",
         'age > 3 OR ((SELECT COUNT(*) FROM regions AS r WHERE "r".region = "p".region) > 0)'),
    ],
)  # fmt: skip
def test_tests_below_or_are_counts(condition: str, counted: str) -> None:
    assert where_of(condition) == counted


@pytest.mark.parametrize(
    "condition",
    [
        # whole conjuncts are semi-joins
        OWN,
        f"NOT {OWN}",
        f"NOT ((NOT ({OWN})))",
        f"age > 3 AND ({OWN})",
        "patient_id IN (SELECT patient_id FROM visits)",
        "age > 3 AND NOT patient_id IN (SELECT patient_id FROM visits)",
        # rows of other people, or of no particular person
        "age > 3 OR EXISTS(SELECT 1 FROM visits AS v)",
        "age > 3 OR EXISTS(SELECT 1 FROM visits AS v WHERE v.cost > 3)",
        "age > 3 OR EXISTS(SELECT 1 FROM visits AS v WHERE v.nights = p.age)",
        "age > 3 OR EXISTS(SELECT 1 FROM visits AS v WHERE v.patient_id = p.age)",
        "age > 3 OR EXISTS(SELECT 1 FROM visits AS v WHERE v.nights = p.patient_id)",
        "age > 3 OR EXISTS(SELECT 1 FROM visits AS v WHERE v.patient_id > p.patient_id)",
        "age > 3 OR EXISTS(SELECT 1 FROM visits AS v WHERE v.patient_id = v.patient_id)",
        "age > 3 OR EXISTS(SELECT 1 FROM visits AS v WHERE v.patient_id = p.patient_id AND v.nights > p.age)",
        "age > 3 OR age IN (SELECT nights FROM visits AS v)",
        # more than rows of a table with a condition
        "age > 3 OR EXISTS(SELECT 1)",
        "age > 3 OR EXISTS(SELECT COUNT(*) FROM visits AS v WHERE v.patient_id = p.patient_id)",
        "age > 3 OR EXISTS(SELECT RANK() OVER (ORDER BY cost) FROM visits AS v WHERE v.patient_id = p.patient_id)",
        "age > 3 OR EXISTS(SELECT 1 FROM visits AS v WHERE v.patient_id = p.patient_id LIMIT 1)",
        "age > 3 OR EXISTS(SELECT 1 FROM visits AS v WHERE v.patient_id = p.patient_id GROUP BY v.ward)",
        "age > 3 OR EXISTS(SELECT DISTINCT 1 FROM visits AS v WHERE v.patient_id = p.patient_id)",
        "age > 3 OR EXISTS(SELECT 1 FROM visits AS v, regions AS r WHERE v.patient_id = p.patient_id)",
        "age > 3 OR EXISTS(SELECT 1 UNION SELECT 2)",
        # not one column equal to one column
        "age > 3 OR patient_id + 1 IN (SELECT patient_id FROM visits AS v)",
        "age > 3 OR patient_id IN (SELECT patient_id + 1 FROM visits AS v)",
        "age > 3 OR patient_id IN (SELECT patient_id, cost FROM visits AS v)",
        "age > 3 OR patient_id IN (SELECT patient_id FROM visits AS p)",
        # a list is not a subquery
        "age > 3 OR age IN (1, 2)",
    ],
)
def test_other_tests_stay_as_they_are(condition: str) -> None:
    spaced = condition.replace("EXISTS (", "EXISTS(").replace("EXISTS( ", "EXISTS(")
    node = select(f"SELECT age FROM patients AS p WHERE {condition}")
    written = rewritten(node).sql("duckdb").replace("EXISTS (", "EXISTS(")
    assert written == f"SELECT age FROM patients AS p WHERE {spaced}"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT age FROM patients WHERE age > 3",
        f"SELECT age FROM patients AS p WHERE {OWN}",
        "SELECT region FROM regions WHERE TRUE OR region IN (SELECT item FROM prices)",
        "SELECT (SELECT COUNT(*) FROM visits WHERE cost > 3 OR EXISTS (SELECT 1 FROM regions)) FROM patients",
    ],
)
def test_a_select_without_such_tests_is_the_node_itself(text: str) -> None:
    node = select(text)
    assert rewritten(node) is node


def test_the_question_itself_is_not_changed() -> None:
    node = select(f"SELECT age FROM patients AS p WHERE age > 3 OR {OWN}")
    before = node.sql()
    assert rewritten(node) is not node
    assert node.sql() == before


# --- NULL -----------------------------------------------------------------------------------------------------------------

PUBLIC = "region IN (SELECT region FROM regions AS r)"
"""The outer side is never NULL."""
NULLS = "sex IN (SELECT region FROM regions AS r)"
"""The outer side may be NULL, so IN may be NULL."""


def is_counted(condition: str, source: str = "patients AS p") -> bool:
    return "COUNT(*)" in where_of(condition, source)


@pytest.mark.parametrize(
    ("condition", "counted"),
    [
        ("age > 3 OR {}", True),
        ("age > 3 OR (smoker AND ({}))", True),
        ("age > 3 OR NOT {}", False),
        ("({}) IS NULL", False),
        ("({}) = smoker", False),
        ("CASE WHEN {} THEN TRUE ELSE FALSE END", True),
        ("CASE WHEN smoker OR {} THEN TRUE ELSE FALSE END", True),
        ("CASE WHEN smoker THEN {} ELSE FALSE END", False),
        ("CASE WHEN smoker THEN TRUE ELSE {} END", False),
        ("CASE smoker WHEN {} THEN TRUE ELSE FALSE END", False),
        ("CASE WHEN NOT {} THEN TRUE ELSE FALSE END", False),
        ("if({}, TRUE, FALSE)", True),
        ("if(smoker, {}, FALSE)", False),
    ],
)
def test_in_that_may_be_null_is_a_count_only_where_null_means_false(condition: str, counted: bool) -> None:
    assert is_counted(condition.format(NULLS)) is counted


@pytest.mark.parametrize("condition", ["age > 3 OR NOT {}", "({}) IS NULL", "CASE smoker WHEN {} THEN TRUE END"])
def test_in_that_is_never_null_is_a_count_everywhere(condition: str) -> None:
    assert is_counted(condition.format("patient_id IN (SELECT patient_id FROM visits AS v)"))


@pytest.mark.parametrize(
    ("test", "counted"),
    [
        # for public tables nothing is known about NULL inside
        (PUBLIC, False),
        (NULLS, False),
        ("patient_id IN (SELECT patient_id FROM visits AS v)", True),
        # rows without a unit belong to no one, so the unit's key is never NULL inside
        ("patient_id IN (SELECT patient_id FROM patients AS q)", True),
    ],
)
def test_in_as_a_value_needs_both_sides_never_null(test: str, counted: bool) -> None:
    assert is_counted(f"({test}) = smoker") is counted


# --- names ----------------------------------------------------------------------------------------------------------------


def test_a_table_of_the_same_name_has_another_alias_inside() -> None:
    written = where_of("age > 3 OR patient_id IN (SELECT patient_id FROM patients WHERE age > 5)", "patients")
    assert written.count('patients AS "') == 1
    alias = written.split('patients AS "')[1].split('"')[0]
    assert f'"{alias}".patient_id = "patients".patient_id' in written
    assert alias.lower() != "patients"


@pytest.mark.parametrize(
    "query",
    ["SELECT patients.patient_id FROM patients", "SELECT patient_id FROM visits AS patients"],
)
def test_a_name_that_stands_for_two_tables_is_left(query: str) -> None:
    assert not is_counted(f"age > 3 OR patient_id IN ({query})", "patients")


JOINED = "patients AS p JOIN visits AS w {} JOIN labs AS l ON l.visit_id = w.visit_id"


@pytest.mark.parametrize(
    ("join", "counted"),
    [("USING (patient_id)", True), ("ON p.patient_id = w.patient_id", False)],
)
def test_a_name_of_two_sources_is_clear_where_using_merged_it(join: str, counted: bool) -> None:
    condition = "l.flag OR patient_id IN (SELECT patient_id FROM visits AS v)"
    assert is_counted(condition, JOINED.format(join)) is counted
    if counted:
        assert '"v".patient_id = "p".patient_id' in where_of(condition, JOINED.format(join))


def test_names_with_their_table_are_clear() -> None:
    condition = "l.flag OR w.patient_id IN (SELECT patient_id FROM visits AS v)"
    written = where_of(condition, JOINED.format("ON p.patient_id = w.patient_id"))
    assert '"v".patient_id = "w".patient_id' in written


def test_a_name_that_right_join_merged_is_not_of_the_first_source() -> None:
    condition = "age > 3 OR patient_id IN (SELECT patient_id FROM visits AS v)"
    assert not is_counted(condition, "patients AS p RIGHT JOIN visits AS w USING (patient_id)")


@pytest.mark.parametrize(
    ("item", "name"),
    [
        (OWN, "exists"),
        ("patient_id IN (SELECT patient_id FROM visits AS v)", "?column?"),
        (f"{OWN} AS visited", "visited"),
    ],
)
def test_an_output_keeps_the_name_it_had(item: str, name: str) -> None:
    node = rewritten(select(f"SELECT {item} FROM patients AS p"))
    assert node.expressions[0].alias == name
    assert node.find(exp.Count) is not None


def test_tests_inside_of_other_subqueries_are_not_touched() -> None:
    inner = "SELECT COUNT(*) FROM labs WHERE flag OR EXISTS (SELECT 1 FROM regions)"
    written = where_of(f"age > ({inner}) OR {OWN}")
    assert written.count("EXISTS") == 1


def test_no_keys_are_those_of_one_unit_under_row_privacy() -> None:
    assert "EXISTS" in where_of(f"age > 3 OR {OWN}", policy=HOSPITAL_ROWS)
    public = "age > 3 OR EXISTS (SELECT 1 FROM regions AS r WHERE r.region = p.region)"
    assert "EXISTS" not in where_of(public, policy=HOSPITAL_ROWS)


def test_a_public_table_beside_protected_rows_changes_nothing() -> None:
    assert is_counted(f"age > 3 OR {OWN}", "patients AS p JOIN regions AS g ON g.region = p.region")
