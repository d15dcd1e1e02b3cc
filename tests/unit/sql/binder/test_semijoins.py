"""IN and EXISTS keep rows by public rows or by rows of the same unit; anything else is refused."""

import pytest
from support.bound_questions import HOSPITAL, HOSPITAL_ROWS, binder_of, described, select, sources_of

from dpsql.errors.exceptions import Error
from dpsql.plan.plan import Relation
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


REGION = "SELECT region FROM regions"
"""The public regions."""


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


def test_a_key_of_two_constants_is_a_condition() -> None:
    text = "patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.code = 3 AND p.age = 4)"
    assert described(kept(text)) == (
        "(patients exists columns(visits) where eq(p9, 3) on patient_id = p1 of one unit if eq(age, 4))"
    )
