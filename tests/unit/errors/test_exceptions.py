"""The register of messages: what the table of docs/refusals.md may contain."""

from __future__ import annotations

import pytest

from dpsql.errors.exceptions import InternalError, read_register

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
