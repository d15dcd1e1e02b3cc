"""The corpus of SQL as people write it: three SQL files in this folder, and docs/coverage.md.

Each query follows a line `-- query: NAME`; further marks before or after its text: `what` (title), `refused` (the slug expected),
`why` (why the refusal is inherent, or what an expert should know about the answer), `gap` (a refusal that a later version should
lift), `compare` (the SQL whose plain answer is the expected one, if it is not the query itself), `empty` (why the expected answer
has no rows).

`python tests/answers/coverage_corpus.py` regenerates docs/coverage.md.
"""

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
DOCUMENT = HERE.parent.parent / "docs" / "coverage.md"
THEMES = {"tpch": "TPC-H", "clickbench": "ClickBench", "bi": "BI tools"}
_MARK = re.compile(r"-- (query|what|refused|why|gap|compare|empty): (.+)")


@dataclass(frozen=True)
class Case:
    """One query of the corpus; missing marks are empty."""

    theme: str
    name: str
    sql: str
    what: str = ""
    refused: str = ""
    why: str = ""
    gap: str = ""
    compare: str = ""
    empty: str = ""


def cases(theme: str) -> list[Case]:
    """Return the queries of one theme in file order. Raises ValueError for an unknown mark."""
    found: list[Case] = []
    whole = (HERE / f"{theme}.sql").read_text(encoding="utf-8")
    for part in re.split(r"^(?=-- query: )", whole, flags=re.MULTILINE)[1:]:
        marks: dict[str, list[str]] = {}
        text: list[str] = []
        for line in part.splitlines():
            mark = _MARK.fullmatch(line)
            if mark is None and line.startswith("--"):
                raise ValueError(f"{theme}.sql: {line}")
            if mark is not None:
                marks.setdefault(mark[1], []).append(mark[2])
            else:
                text.append(line)
        joined = {("name" if mark == "query" else mark): " ".join(lines) for mark, lines in marks.items()}
        found.append(Case(theme=theme, sql="\n".join(text).strip(), **joined))
    return found


def document() -> str:
    """Return the text of docs/coverage.md."""
    lines = [
        "# SQL coverage: TPC-H, ClickBench and BI tools",
        "",
        "Look up here whether dpsql answers a query of a public benchmark or of a BI tool, and why not if it",
        "does not. *Inherent* refusals protect people; *gaps* are missing features. The page is generated",
        "from `tests/answers/*.sql`. A test runs every query: an answered one must give the engine's own",
        "value when no noise is drawn, and a refused one the named refusal.",
        "",
        "| theme | queries | answered | refused, inherent | refused, gap |",
        "| --- | --- | --- | --- | --- |",
    ]
    for theme, title in THEMES.items():
        known = cases(theme)
        refused = [case for case in known if case.refused]
        gaps = sum(1 for case in refused if case.gap)
        lines.append(f"| {title} | {len(known)} | {len(known) - len(refused)} | {len(refused) - gaps} | {gaps} |")
    for theme, title in THEMES.items():
        lines += ["", f"## {title}", "", "| query | what | outcome | reason |", "| --- | --- | --- | --- |"]
        lines += [_row(case) for case in cases(theme)]
    return "\n".join(lines) + "\n"


def _row(case: Case) -> str:
    outcome = f"refused: `{case.refused}`" if case.refused else "answered"
    reason = f"gap: {case.gap}" if case.gap else case.why
    return f"| {case.name} | {case.what} | {outcome} | {reason} |".replace("|  |", "| |")


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
