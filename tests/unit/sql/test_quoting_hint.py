"""Refusals for a column whose name is a SQL keyword."""

from __future__ import annotations

import pytest

from dpsql.errors.exceptions import Error
from dpsql.sql.parse import parse


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("SELECT union, AVG(wage) FROM people GROUP BY union", "union"),
        ("SELECT AVG(CASE WHEN Union = 1 THEN wage END) FROM people", "Union"),
        ("SELECT COUNT(*) FROM people WHERE except = 1", "except"),
    ],
)
def test_the_hint_writes_the_column_in_quotes(sql: str, name: str) -> None:
    with pytest.raises(Error) as refusal:
        parse(sql)
    assert refusal.value.slug == "syntax"
    assert (refusal.value.hint or "").endswith(f'is written in double quotes: "{name}"')


def test_words_in_their_place_are_no_columns() -> None:
    for sql in ("SELECT COUNT(* FROM a UNION SELECT 1", 'SELECT "union", COUNT(* FROM a GROUP BY 1'):
        with pytest.raises(Error) as refusal:
            parse(sql)
        assert "double quotes" not in (refusal.value.hint or "")
