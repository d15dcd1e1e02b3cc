"""The page docs/refusals.md, written from the register."""

from __future__ import annotations

import re

from dpsql.errors.exceptions import REGISTER


def register_page() -> str:
    """Return the text of docs/refusals.md: every entry of the register."""
    lines = [
        "# Refusals and faults",
        "",
        "Look up here what an error means, and what to write instead. A refusal comes before data is touched:",
        "nothing was charged. A fault says whether its charge stays. `{...}` stands for names from the policy",
        "or from your own SQL, never for anything read from data. The page is written by",
        "`python -m dpsql.errors.page > docs/refusals.md`.",
        "",
        "| slug | SQLSTATE | kind | sentence | way out |",
        "| --- | --- | --- | --- | --- |",
    ]
    for entry in sorted(REGISTER.values(), key=lambda entry: entry.slug):
        cells = [f"`{entry.slug}`", entry.sqlstate, entry.raises.__name__, entry.sentence, entry.hint]
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Return a text as a cell of a table. Braces at its end are escaped: they would be read as attributes of the cell, and not be
    shown."""
    cell = text.replace("|", "\\|")
    return re.sub(r"(\{\w+\})$", r"\\\1", cell)


if __name__ == "__main__":
    print(register_page(), end="")
