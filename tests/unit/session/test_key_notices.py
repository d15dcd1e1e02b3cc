"""The rows that the groups of an answer represent: those without a value, and those whose value a key's bounds change."""

from collections.abc import Iterator

import pytest
from support.clinic import build

from dpsql.session.session import Session, open_session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("keys")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPSQL_STATE", str(folder / "state"))
        with open_session(build(folder), create_ledger=True) as opened:
            yield opened


def _said(session: Session, key: str, tables: str = "patients", where: str = "") -> list[str]:
    words = ("NULL", "is counted")
    sql = f"SELECT {key} AS k, COUNT(*) FROM {tables} {where} GROUP BY 1"
    in_answer = [n for n in session.execute(sql).notices if any(word in n for word in words)]
    in_plan = [line for line in session.explain(sql).lines if any(word in line for word in words)]
    assert in_answer == in_plan
    return in_answer


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("least(age, 90)", ["age is counted from 90 to 120 in the group 90"]),
        ("greatest(age, 18)", ["age is counted from 0 to 18 in the group 18"]),
        ("clamp(age, 18, 90)", ["age is counted from 0 to 18 in the group 18 and from 90 to 120 in the group 90"]),
        ("greatest(NULL, age, 18, NULL)", ["age is counted from 0 to 18 in the group 18"]),
        ("least(age, NULL)", []),
        ("least(age, 120)", []),
        ("clamp(age, -5, 130)", []),
        ("age", []),
    ],
)
def test_values_that_a_key_folds_are_told(session: Session, key: str, told: list[str]) -> None:
    assert [notice for notice in _said(session, key) if "is counted" in notice] == told


@pytest.mark.parametrize(
    ("key", "without"),
    [
        ("age // 10", "age"),
        ("CASE WHEN patient_id % 2 = 0 THEN 'even' END", "a value of the computed key"),
        ("nullif(region, 'north')", "a value of the computed key"),
        ("CASE WHEN age > 40 THEN 'old' ELSE 'young' END", ""),
    ],
)
def test_a_group_of_null_says_which_rows_it_has(session: Session, key: str, without: str) -> None:
    wanted = [f"rows without {without} are in groups of their own, with NULL"] if without else []
    assert _said(session, key) == wanted
