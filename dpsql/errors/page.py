"""docs/refusals.md, written from the register."""

from __future__ import annotations

from dpsql.errors.exceptions import REGISTER


def register_page() -> str:
    """Return the text of docs/refusals.md: every entry of the register."""
    lines = [
        "# Refusals and faults",
        "",
        "Written by `python -m dpsql.errors.page > docs/refusals.md`. `{...}` stands for names from the policy or from your",
        "own SQL, never for anything read from data. A refusal comes before data is touched: nothing was charged.",
        "",
        "| slug | SQLSTATE | kind | sentence | way out |",
        "| --- | --- | --- | --- | --- |",
    ]
    for entry in sorted(REGISTER.values(), key=lambda entry: entry.slug):
        cells = [f"`{entry.slug}`", entry.sqlstate, entry.raises.__name__, entry.sentence, entry.hint]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(register_page(), end="")
