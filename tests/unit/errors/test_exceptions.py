"""The register of messages: what the table of docs/refusals.md may contain."""

import pytest

from dpsql.errors.exceptions import (
    MOST_COMPARED,
    MOST_LISTED,
    InternalError,
    did_you_mean,
    nearest,
    read_register,
    refuse,
    suggestion,
)

HEAD = "# Refusals\n\n| slug | SQLSTATE | kind | sentence | way out |\n| --- | --- | --- | --- | --- |\n"
ROW = "| `series` | 0A000 | Refusal | no: \\{reason} | write a \\| b, or \\\\? |\n"


def test_a_cell_may_contain_what_markdown_would_take_as_its_own() -> None:
    (entry,) = read_register(HEAD + ROW).values()
    assert (entry.slug, entry.sqlstate, entry.sentence, entry.hint) == (
        "series", "0A000", "no: {reason}", "write a | b, or \\?",
    )  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        ROW + ROW,
        ROW.replace("Refusal", "Exception"),
        "| `series` | 0A000 | Refusal | no |\n",
        ROW.replace("\\|", "|"),
        "text\n",
    ],
)
def test_a_malformed_or_repeated_row_is_an_error(rows: str) -> None:
    with pytest.raises(InternalError, match="no entry of the register"):
        read_register(HEAD + rows)


# --- The line of a refused text that a message shows, and the caret under the position --------------------------------


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


# --- Hints for unknown names: similar names are proposed, otherwise names are listed; a long name costs no more than a short one ---


@pytest.mark.parametrize(("name", "near"), [("visit", "Visits"), ("VISITS", "Visits"), ("labz", "labs"), ("q", None)])
def test_the_nearest_name_is_found_without_regard_to_case(name: str, near: str | None) -> None:
    assert nearest(name, ["labs", "Visits"]) == near


def test_a_sentence_ends_with_the_near_name_or_as_it_was() -> None:
    assert did_you_mean("visit", ["labs", "visits"]) == "; did you mean visits?"
    assert did_you_mean("q", ["labs", "visits"]) == ""


def test_a_hint_lists_names_in_order_where_none_is_near() -> None:
    assert suggestion("visit", ["visits"]) == "did you mean visits?"
    assert suggestion("q", ["visits", "labs", "visits"]) == "known here: labs, visits"
    assert suggestion("q", []) == ""
    many = [f"table_{number:02}" for number in range(MOST_LISTED + 1)]
    assert suggestion("q", many) == "known here: " + ", ".join(many[:-1]) + ", ..."


def test_a_long_name_is_compared_by_its_beginning_alone() -> None:
    name = "v" * MOST_COMPARED
    assert nearest(name + "x" * 100_000, [name]) == name
