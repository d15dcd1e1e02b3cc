"""Columns of wide tables in the dialogue of `dpsql init`: named once, by patterns, instead of asked about one by one."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from dpsql.errors.suggestions import did_you_mean
from dpsql.frontends.admin.answers import Answers, WrongAnswer

WIDE = 20
"""Number of columns of a table above which a person is first asked which of them analysts will use."""
_MOST_SHOWN = 6


def column_groups(answers: Answers, table: str, columns: list[str]) -> dict[str, list[str]]:
    """Return the questions about a table's columns, each with the columns that it is about.

    There is one for each column, unless the answer to `TABLE.*` names columns and patterns: then there is one for each of these,
    and the other columns are left out. A person is asked for that answer if there are more than `WIDE` columns; a file may give
    it. A column with a separate answer keeps a separate question.
    """
    question = f"{table}.*"
    written = question in answers.written or question in answers.taken
    if not written and (answers.ask is None or len(columns) <= WIDE):
        return {column: [column] for column in columns}

    def meaning(text: str) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = {}
        left = {column.lower(): column for column in columns}
        patterns = [part for part in re.split(r"[\s,]+", text) if part]
        for pattern in sorted(dict.fromkeys(patterns), key=lambda part: "*" in part or "?" in part):
            named = [column for folded, column in left.items() if fnmatchcase(folded, pattern.lower())]
            if not named and not any(fnmatchcase(column.lower(), pattern.lower()) for column in columns):
                raise WrongAnswer(f"{table} has no column {pattern}{did_you_mean(pattern, columns)}")
            for column in named:
                del left[column.lower()]
            answered = [column for column in named if f"{table}.{column}" in answers.written and column != pattern]
            groups |= {column: [column] for column in answered}
            if rest := [column for column in named if column not in answered]:
                groups[rest[0] if len(rest) == 1 else pattern] = rest
        if not groups:
            raise WrongAnswer("name at least one column")
        return groups

    words = (
        f"\n   {table} has {len(columns)} columns beside its keys: which of them will analysts use? Names and patterns, such as"
        " `age, lab_*`;\n   each pattern is asked about once, all other columns are left out. `*`: all of them."
    )
    groups = answers.get(question, words, meaning)
    closed = len(columns) - sum(map(len, groups.values()))
    answers.show(f"   {closed} columns are left out: nobody may use them.")
    return groups


def shortened(columns: list[str]) -> str:
    """Return a list of names as text, shortened if it is long."""
    return ", ".join(columns[:_MOST_SHOWN]) + (", ..." if len(columns) > _MOST_SHOWN else "")
