"""The line of a refused text that a message shows, and the caret under the position."""

from __future__ import annotations

import pytest

from dpsql.errors.exceptions import refuse

FILLER = "x" * 200


@pytest.mark.parametrize(
    ("sql", "word", "line"),
    [
        ("SELECT count(*) FROM labs AS many_values WHERE here", "here", "line 1: SELECT count(*) FROM labs AS many_values WHERE here"),
        (f"here {FILLER}", "here", f"line 1: here {'x' * 71}..."),
        (f"{FILLER} here", "here", f"line 1: ...{'x' * 71} here"),
        (f"SELECT 1\nFROM {FILLER} here {FILLER}", "here", f"line 2: ...{'x' * 37} here {'x' * 33}..."),
        ("\t\there", "here", "line 1:   here"),
    ],
)  # fmt: skip
def test_the_caret_stands_under_the_place_and_dots_say_where_the_line_was_cut(sql: str, word: str, line: str) -> None:
    error = refuse("internal", what="a place").placed_in(sql, sql.index(word) + 1)
    shown, caret = error.text().split("\n")[1:3]
    assert shown == line
    assert shown[caret.index("^") :].startswith(word)
