"""Queries as data: `accepted/*.sql` (one file for each theme) and `refused/*.sql` (one file for each slug).

A query follows a line `-- query: NAME`. Marks stand in lines `-- MARK: VALUE` before its text:
`parameters` (JSON), `set` (an option, may repeat), `policy` (hospital when it is not said, or rows);
accepted: `keys` (none, public, private), `l1` (the L1 sensitivity of every measured term, in the unit of the answer), `rows` (what
becomes of it under row privacy: the L1 sensitivities, or the slug of its refusal), `loose` (why no neighbour comes near the
claimed L1, and the share that must be reached);
refused: `sqlstate`, `at` (the text that the caret stands under; not there when there is no place), `escaped` (yes: Python's escapes).
In a text <<N*WORD>> stands for WORD N times, with the number in place of every #.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_TIMES = re.compile(r"<<([0-9]+)\*(.*?)>>")
_MARK = re.compile(r"-- ([a-z0-9]+): ?(.*)")
MARKS = {"query", "parameters", "set", "policy", "keys", "l1", "rows", "loose", "sqlstate", "at", "escaped"}


@dataclass(frozen=True)
class Case:
    """One query with its marks; `group` is the name of its file: a theme, or a slug."""

    group: str
    name: str
    sql: str
    marks: dict[str, list[str]] = field(hash=False)

    @property
    def id(self) -> str:
        return f"{self.group}-{self.name}"

    @property
    def parameters(self) -> Any:
        given = self.mark("parameters")
        return None if given is None else json.loads(given)

    def mark(self, name: str) -> str | None:
        return self.marks[name][0] if name in self.marks else None


def cases(folder: str) -> list[Case]:
    """All queries of `accepted` or `refused` in the order of names and lines. Raises ValueError for a bad mark."""
    found = []
    for path in sorted((HERE / folder).glob("*.sql")):
        sections = re.split(r"^(?=-- query: )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        found += [_case(path.stem, section) for section in sections if section.startswith("-- query: ")]
    names = [case.id for case in found]
    if len(set(names)) != len(names):
        raise ValueError(f"{folder}: a name is used twice: {sorted({n for n in names if names.count(n) > 1})}")
    return found


def _case(group: str, section: str) -> Case:
    marks: dict[str, list[str]] = {}
    lines = section.splitlines()
    while lines and (mark := _MARK.fullmatch(lines[0])) is not None:
        if mark[1] not in MARKS:
            raise ValueError(f"{group}: unknown mark {mark[1]}")
        marks.setdefault(mark[1], []).append(mark[2])
        lines.pop(0)
    text = _TIMES.sub(lambda found: _repeated(int(found[1]), found[2]), "\n".join(lines).strip())
    if "escaped" in marks:
        text = text.encode("ascii").decode("unicode_escape")
    return Case(group, marks["query"][0], text, marks)


def _repeated(times: int, word: str) -> str:
    return "".join(word.replace("#", str(number)) for number in range(1, times + 1))


ACCEPTED = cases("accepted")
REFUSED = cases("refused")
