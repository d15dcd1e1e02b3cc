"""A plan is kept for equal parameters of the same types, and for no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from support.clinic import build

from dpsql.session.session import Session, open_session

SQL = "SELECT COUNT(*) AS n FROM patients WHERE age > ?"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_session(build(tmp_path_factory.mktemp("clinic")), create_ledger=True) as opened:
        yield opened


def planned(session: Session, *parameters: Any) -> Any:
    return session.plan(session.parse(SQL, parameters), parameters)


@pytest.mark.parametrize("values", [(1, 1.0, Decimal(1), 2), (0.0, -0.0, 0)])
def test_equal_values_of_other_types_are_other_questions(session: Session, values: Sequence[Any]) -> None:
    plans = [planned(session, value) for value in values]
    assert len(set(map(id, plans))) == len(plans)
    assert [planned(session, value) for value in values] == plans


def test_values_that_no_text_tells_apart_are_planned_each_time(session: Session) -> None:
    sql = "SELECT COUNT(*) AS n FROM patients WHERE age = ANY(?)"
    first, second = (session.plan(session.parse(sql, [ages]), [ages]) for ages in ([1, 2], [1, 3]))
    assert first.keys != second.keys and not session.parse(sql, [[1, 2]]).values
    assert session.parse(SQL, [date(2020, 1, 1)]).values
