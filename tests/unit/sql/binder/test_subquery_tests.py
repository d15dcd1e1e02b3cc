"""IN and EXISTS inside expressions become counts where a count means the same, and stay unchanged elsewhere."""

import pytest
from sqlglot import exp
from support.bound_questions import HOSPITAL, binder_of, select, sources_of

from dpsql.policy import Policy
from dpsql.sql.binder.scope import Environment
from dpsql.sql.binder.semijoins import with_counts


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


# --- NULL -----------------------------------------------------------------------------------------------------------------

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


# --- names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["SELECT patients.patient_id FROM patients", "SELECT patient_id FROM visits AS patients"]
)
def test_a_name_that_stands_for_two_tables_is_left(query: str) -> None:
    assert not is_counted(f"age > 3 OR patient_id IN ({query})", "patients")


JOINED = "patients AS p JOIN visits AS w {} JOIN labs AS l ON l.visit_id = w.visit_id"


def test_names_with_their_table_are_clear() -> None:
    condition = "l.flag OR w.patient_id IN (SELECT patient_id FROM visits AS v)"
    written = where_of(condition, JOINED.format("ON p.patient_id = w.patient_id"))
    assert '"v".patient_id = "w".patient_id' in written
