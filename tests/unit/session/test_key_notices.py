"""The rows that the groups of an answer represent: those without a value, and those whose value a key's bounds change."""

from collections.abc import Iterator
from pathlib import Path

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


@pytest.mark.parametrize(
    ("key", "left_out"),
    [
        ("member", "rows without member, which the policy excludes,"),
        ("town = 'Ulm'", "rows without town, which the policy excludes,"),
        ("note = 'x'", ""),
        ("age", "rows with other values of age than the policy names"),
        ("plan", "rows with other values of plan than the policy names"),
    ],
)
def test_what_is_said_of_rows_left_out_is_what_the_policy_excludes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, left_out: str
) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    (tmp_path / "people.csv").write_text("member,town,note,age,plan\ntrue,Ulm,x,40,a\n")
    (tmp_path / "p.yaml").write_text(
        "{dataset: d, privacy_unit: row, budget: {epsilon: 1, delta: 1e-6}, ledger: 'sqlite:///l.db', tables: {people: {source: people.csv, columns: {"
        "member: {type: boolean, nullable: false}, town: {type: text, nullable: false}, note: {type: text}, "
        "age: {type: integer, lower: 18, upper: 90}, plan: {type: text, domain: [a, b]}}}}}"
    )
    with open_session(tmp_path / "p.yaml", create_ledger=True) as session:
        lines = session.explain(f"SELECT {key} AS k, COUNT(*) FROM people GROUP BY 1").lines
    assert [line for line in lines if line.endswith("left out")] == (
        [f"{left_out} belong to no group and are left out"] if left_out else []
    )
