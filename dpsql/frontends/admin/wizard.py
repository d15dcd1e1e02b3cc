"""`dpsql init` as a dialogue: privacy unit, rows that count, bounds of values, groups, and budget.

Questions come in the order in which an owner decides (docs/first_hour.md). Only the structure of the source is read; the effect
of the answers is what EXPLAIN expects of a few questions (`expected_errors`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import takewhile
from pathlib import Path

from dpsql.engine import query
from dpsql.engine.contract import SourceTable, plain_name
from dpsql.errors.exceptions import did_you_mean, refuse
from dpsql.frontends.admin.answers import Again, Answers
from dpsql.frontends.admin.expected_errors import expected_errors
from dpsql.frontends.admin.policy_text import (
    CSV_FORMS,
    LEFT_OUT,
    ColumnChoice,
    PolicyChoices,
    TableChoice,
    Unit,
    WrongAnswer,
    column_choice,
    column_of,
    key_type,
    questions_within,
    replace_policy,
    tables_for_policy,
    type_in_words,
    unit_of,
    unit_text,
    with_one_key_type,
    with_table,
    write_policy,
)
from dpsql.policy import load_policy, parse_policy
from dpsql.policy.check import policy_text
from dpsql.policy.reach import is_file, within
from dpsql.policy.types import Preparation
from dpsql.policy.values import MOST_COUNT, login
from dpsql.privacy.ledger_units import EVERY
from dpsql.session.budget import in_questions
from dpsql.storage.records import replace

_OF_ROWS = re.compile(r"(?i)row_*names?|(row|line|unnamed)?_*(num(ber)?|no|nr|index|\d+)")
"""Names of columns that number rows, and so no persons."""
WIDE = 20
"""Number of columns of a table above which a person is first asked which of them analysts will use."""
_HEADING = (
    "# Written by `dpsql init` from the owner's answers and the structure of the source; its values were not read."
)
_MOST_SHOWN = 6
_STARTING_SHARE = Fraction(3, 100)
_LEAST_BUDGET = Fraction(1, 10**6)
_MOST_DELTA = 6
"""Negative exponent of the largest delta, 10^-6."""


# --- the dialogue -----------------------------------------------------------------------------------------------------


def ask_for_policy(source: Path | str, path: Path, answers: Answers) -> int:
    """Ask for a policy over `source`, show its expected error bars, and write it to the new file `path`.

    Return the number of tables. Raises InterfaceError (init_source, init_exists, init_answer, init_unanswered), Fault file_write,
    and PolicyRefusal if answers contradict each other.
    """
    tables = {name: table for name, table in tables_for_policy(source, path).items() if plain_name(name) == name}
    while True:
        try:
            return _ask_and_write(source, path, tables, answers)
        except Again:
            continue


def _ask_and_write(source: Path | str, path: Path, tables: Mapping[str, SourceTable], answers: Answers) -> int:
    for name, table in tables.items():
        answers.tell(f"{name}: {', '.join(table.columns)}")
    unit = _unit(answers, tables)
    drafts = _tables(answers, tables, unit)
    chosen = {name: _with_columns(answers, name, draft, unit) for name, draft in drafts.items()}
    chosen = with_one_key_type(chosen, {}, answers.taken, answers.origin)
    while True:
        choices = _budgeted(answers, unit, chosen)
        text = replace(choices, automatic_copies=_copies(answers, source, path, chosen)).text(source, path)
        policy = parse_policy(text, str(path), path.parent)
        for line in expected_errors(policy, int(answers.taken["people"])):
            answers.show(line)
        if _is_accepted(answers, path):
            break
        answers.forget(("budget", "per_query", "max_epsilon", "analysts"))
    answers.require_all_taken()
    write_policy(text, path)
    return len(chosen)


def ask_for_table(file: Path, name: str, answers: Answers) -> bool:
    """Ask for one further table of the source of the policy at `file`, and write it there; return whether it is in the policy.

    Raises InterfaceError (init_source, init_table, init_answer, init_unanswered), Fault file_write, and PolicyRefusal.
    """
    policy, text = load_policy(file), policy_text(file)
    path = policy.source_path()
    files = Path(policy.table_source(next(iter(policy.tables))))  # of a folder, whose policy has no source
    source: Path | str = Path(path) if path is not None else policy.source or files.parent
    tables, unit = tables_for_policy(source, file, new=False), policy.privacy_unit
    if name in policy.tables or name not in tables:
        hint = did_you_mean(name, tables.keys() - policy.tables.keys())
        problem = "the policy has this table" if name in policy.tables else f"the source has no such table{hint}"
        raise refuse("init_table", table=name, problem=problem)
    listed = {
        named: SourceTable(
            {column: about.type for column, about in table.columns.items()}, list(table.primary_key),
            foreign_keys=dict(table.foreign_keys),
        )
        for named, table in policy.tables.items()
    }  # fmt: skip
    person = None if unit is None else (unit.table, unit.column)
    while True:
        try:
            answers.tell(f"{name}: {', '.join(tables[name].columns)}")
            word = _about(answers, name, {**listed, name: tables[name]}, person)
            if word == LEFT_OUT:
                return False
            draft = _draft(answers, name, {**listed, name: tables[name]}, person, word == "public")
            types = {
                (named, column): type_ for named, table in listed.items() for column, type_ in table.columns.items()
            }
            chosen = {name: _with_columns(answers, name, draft, person)}
            choice = with_one_key_type(chosen, types, answers.taken, answers.origin)[name]
            changed = with_table(text, choice.lines(name))
            break
        except Again:
            continue
    answers.require_all_taken()
    parse_policy(changed, str(file), file.parent)
    replace_policy(file, changed)
    return True


def _is_accepted(answers: Answers, path: Path) -> bool:
    if answers.ask is None:
        return True
    words = (
        f"\nWrite {path}? `yes`; `again` to choose budget and price of a question again, `again QUESTION` for any other answer:"
        f"\n   {', '.join(answers.taken)}"
    )
    answers.forget(("finish",))
    return answers.get("finish", words, _one_of("yes", "again"), "yes") == "yes"


# --- whose privacy -----------------------------------------------------------------------------------------------------


def _unit(answers: Answers, tables: Mapping[str, SourceTable]) -> Unit:
    words = (
        "\n1. Whose privacy is it? The column that names one person, as TABLE.COLUMN; or `row`, if every row is somebody else."
        "\n   Nobody who sees answers can tell whether one such person is in the data."
    )
    likely = _likely_unit(tables) if answers.ask is not None else None
    return answers.get("unit", words, lambda text: unit_of(text, tables), likely)


def _likely_unit(tables: Mapping[str, SourceTable]) -> str | None:
    """Return the column that most tables have, at least two, as TABLE.COLUMN: of a table of which it is the primary key, else of
    the table whose name begins most like its own. None if no two tables share a column."""
    plain = (column for table in tables.values() for column in table.columns if plain_name(column) == column)
    names = Counter(column for column in plain if not _OF_ROWS.fullmatch(column))
    shared = [column for column, count in names.most_common() if count > 1 and count == max(names.values())]
    keyed = [(name, table.primary_key[0]) for name, table in tables.items() if len(table.primary_key) == 1]
    holders = [(name, column) for column in shared for name, table in tables.items() if column in table.columns]
    holders.sort(key=lambda holder: -_common_letters(*holder))
    return next((".".join(entry) for entry in [*(entry for entry in keyed if entry[1] in shared), *holders]), None)


def _common_letters(one_name: str, other: str) -> int:
    """Return with how many of the same letters two names begin."""
    pairs = zip(one_name.lower(), other.lower(), strict=False)
    return len([*takewhile(lambda letters: letters[0] == letters[1], pairs)])


def _tables(answers: Answers, tables: Mapping[str, SourceTable], unit: Unit) -> dict[str, TableChoice]:
    """Return the tables of the policy before their columns are chosen, with their path to the unit and the rows that count."""
    about = {name: _about(answers, name, tables, unit) for name in tables}
    included = {name: tables[name] for name, word in about.items() if word != LEFT_OUT}
    # The unit's own table comes first.
    included = dict(sorted(included.items(), key=lambda entry: unit is not None and entry[0] != unit[0]))
    return {name: _draft(answers, name, included, unit, about[name] == "public") for name in included}


def _draft(answers: Answers, name: str, included: Mapping[str, SourceTable], unit: Unit, public: bool) -> TableChoice:
    """Return a table among the `included` ones, with its path to the unit and its rows that count."""
    table = included[name]
    links = {column: parent for column, parent in table.foreign_keys.items() if parent[0] in included}
    if not public and unit is not None and name != unit[0] and not _leads(name, included, unit, set()):
        link = _link(answers, name, included, unit)
        public, links = link is None, {**links, **(link or {})}
    further = () if public or unit is None else _further_people(answers, name, links, included, unit)
    max_rows, key = (None, _row_key(answers, name, table)) if public else _max_rows(answers, name, table, unit)
    return TableChoice(table, public, max_rows, key, links, further)


def _about(answers: Answers, name: str, tables: Mapping[str, SourceTable], unit: Unit) -> str:
    if len(tables) == 1 or (unit is not None and unit[0] == name):
        return "protected"
    words = (
        f"\n   Is {name} about persons? `protected`; `public`: nothing in it is about a person, and its rows may be shown;"
        f" `{LEFT_OUT}`: leave it out."
    )
    return answers.get(name, words, _one_of("protected", "public", LEFT_OUT), "protected")


def _leads(name: str, tables: Mapping[str, SourceTable], unit: tuple[str, str], passed: set[str]) -> bool:
    """Return whether declared foreign keys lead from a table to that of the privacy unit."""
    if name == unit[0]:
        return True
    parents = {parent for parent, _ in tables[name].foreign_keys.values()} if name in tables else set()
    return any(_leads(parent, tables, unit, passed | {name}) for parent in parents - passed - {name})


def _link(
    answers: Answers, name: str, tables: Mapping[str, SourceTable], unit: tuple[str, str]
) -> dict[str, tuple[str, str]] | None:
    """Return the foreign key that leads from a table towards the privacy unit, None if the table is public after all."""
    columns = tables[name].columns

    def meaning(text: str) -> dict[str, tuple[str, str]] | None:
        if text == "public" and text not in columns:
            return None
        column, equals, target = (part.strip() for part in text.partition("="))
        table, _, key = target.partition(".") if equals else (*unit[:1], ".", unit[1])
        if column not in columns:
            way_out = (
                f"if none leads to a person, answer public, or change the answer {name} to {LEFT_OUT} (again {name})"
            )
            raise WrongAnswer(f"{name} has no column '{column}'{did_you_mean(column, columns)}; {way_out}")
        if plain_name(column) != column:
            raise WrongAnswer(
                f"{column} has no plain name: a letter or _, then letters, digits and _; rename it in the source"
            )
        if table not in tables or key not in tables[table].columns or table == name:
            raise WrongAnswer(f"write COLUMN, or COLUMN = TABLE.COLUMN of another table; {target or text} is none")
        types = key_type(tables[name], column), key_type(tables[table], key)
        if None not in types and types[0] != types[1]:
            raise WrongAnswer(
                f"{name}.{column} is {types[0]} and {table}.{key} is {types[1]}: give both one type in the source"
            )
        return {column: (table, key)}

    words = (
        f"\n   Which column of {name} leads to the person? COLUMN, with the values of {'.'.join(unit)}; or"
        " COLUMN = TABLE.COLUMN of a table on the way; or `public`, if nothing in it is about a person."
    )
    return answers.get(f"{name}.link", words, meaning, unit[1] if unit[1] in columns else None)


def _further_people(
    answers: Answers,
    name: str,
    links: Mapping[str, tuple[str, str]],
    tables: Mapping[str, SourceTable],
    unit: tuple[str, str],
) -> tuple[str, ...]:
    """Return the columns that lead to other people than the one whose row it is, as the owner says if several lead to one."""
    leading = [column for column, (parent, _) in links.items() if _leads(parent, tables, unit, {name} - {parent})]
    if name == unit[0] or len(leading) < 2:
        return tuple(leading) if name == unit[0] else ()
    words = (
        f"\n   {' and '.join(leading)} lead to persons, and a row is protected as that of one. Whose row is it? The others are"
        " declared `unprotected`: nothing hides that they are in it."
    )
    person = answers.get(f"{name}.person", words, _one_of(*leading), leading[0])
    return tuple(column for column in leading if column != person)


def _row_key(answers: Answers, name: str, table: SourceTable) -> tuple[str, ...]:
    """Return the key of a public table, by which joins with it add no rows: as declared, or as the owner says."""
    if table.primary_key:
        return tuple(table.primary_key)

    def meaning(text: str) -> tuple[str, ...]:
        columns = () if text == LEFT_OUT else tuple(part for part in re.split(r"[\s,]+", text) if part)
        for column in columns:
            if column not in table.columns:
                raise WrongAnswer(f"{name} has no column {column}{did_you_mean(column, table.columns)}")
        return columns

    words = (
        f"\n   Which columns of {name} are different in every row? Then questions may join it by them without more noise. Names,"
        f" or `{LEFT_OUT}`."
    )
    return answers.get(f"{name}.key", words, meaning, LEFT_OUT)


# --- how much one person counts ------------------------------------------------------------------------------------------


def _max_rows(answers: Answers, name: str, table: SourceTable, unit: Unit) -> tuple[int, tuple[str, ...]]:
    """Return the number of rows of one unit that count, and the primary key."""
    key = tuple(table.primary_key)
    if unit is None or (unit[0] == name and key == (unit[1],)):
        return 1, key
    if unit[0] == name and not key:
        words = f"\n2. Can two rows of {name} have the same {unit[1]}? `no`: each person has one row there; or `yes`."
        if answers.get(f"{name}.repeats", words, _one_of("no", "yes")) == "no":
            return 1, (unit[1],)
    words = (
        f"\n2. How many rows of {name} may one person have at most? Further ones are left out of every answer, and noise grows"
        " with this number: take what nearly everybody stays below."
    )
    return answers.get(f"{name}.max_rows", words, _count), key


# --- how far values go, and which groups there are ------------------------------------------------------------------------


def _with_columns(answers: Answers, name: str, draft: TableChoice, unit: Unit) -> TableChoice:
    """Return a table with the columns that analysts may name, in the order of the source."""
    table = draft.stored
    single = draft.primary_key if len(draft.primary_key) == 1 else ()  # parts of a key are columns like others
    keys = {*single, *draft.foreign_keys, *(unit[1:] if unit is not None and unit[0] == name else ())}
    keys = {column for column in keys if f"{name}.{column}" not in answers.written}
    if answers.ask is not None:
        answers.tell(_column_words(name, typed=not table.delimiter))
    chosen: dict[str, ColumnChoice | None] = {}
    open_columns: list[str] = []
    for column, engine_type in table.columns.items():
        choice = column_of(table, column)
        if plain_name(column) != column or choice is None:
            why = f"{type_in_words(engine_type)} is not read" if choice is None else "it has no plain name"
            answers.tell(f"   {column} is left out: {why}")
        elif column in keys:
            chosen[column] = choice
        else:
            open_columns.append(column)
    for question, columns in _column_groups(answers, name, open_columns).items():
        chosen |= _choices(answers, name, table, question, columns)
    choices = {column: choice for column in table.columns if (choice := chosen.get(column)) is not None}
    if not draft.public:
        choices = _with_missing(answers, name, choices, [column for column in choices if column not in keys])
    return replace(draft, columns=choices, csv=_csv_forms(answers, name, choices) if table.delimiter else {})


def _csv_forms(answers: Answers, name: str, choices: Mapping[str, ColumnChoice]) -> dict[str, str]:
    """Return the forms of numbers and days in a CSV file, as entries of `csv`; by default those of the file before it."""

    def meaning(text: str) -> dict[str, str]:
        words = [] if text == LEFT_OUT else text.split()
        forms = dict(CSV_FORMS[word] for word in words if word in CSV_FORMS)
        if len(forms) < len(words):
            raise WrongAnswer(f"write {', '.join(CSV_FORMS)}, two of them for numbers and days, or {LEFT_OUT}")
        return forms

    if all(choice.type in ("text", "boolean") for choice in choices.values()):
        return {}
    words = (
        f"\n   How does the file of {name} write numbers and days? `{LEFT_OUT}`: 1234.5 and 2024-12-31. `comma`: 1.234,5."
        " `dmy`: 31.12.2024. `mdy`: 12/31/2024. Or two of these: `comma dmy`."
    )
    before = [text for question, text in answers.taken.items() if question.endswith(".written")]
    return answers.get(f"{name}.written", words, meaning, (before or [LEFT_OUT])[-1] if answers.ask else LEFT_OUT)


def _with_missing(
    answers: Answers, name: str, choices: dict[str, ColumnChoice], columns: list[str]
) -> dict[str, ColumnChoice]:
    """Return the choices with `filled` where no value can be missing. Who is asked at a terminal has to say so: otherwise answers
    would have a group of missing values that no row has."""
    columns = [column for column in columns if not choices[column].filled]

    def meaning(text: str) -> set[str]:
        patterns = [] if text == LEFT_OUT else re.split(r"[\s,]+", text.strip())
        named = {pattern: _matching(pattern, columns) for pattern in patterns}
        for pattern, matching in named.items():
            if not matching:
                unknown = f": no such column is {pattern}{did_you_mean(pattern, columns)}" if pattern else ""
                raise WrongAnswer(f"write names, `*` or `{LEFT_OUT}`{unknown}")
        return {column for matching in named.values() for column in matching}

    if not columns:
        return choices
    words = (
        f"\n   In which columns of {name} may a value be missing? Answers have a group for rows without it. Names and patterns of"
        f" {_shortened(columns)}; `*`: in any of them; `{LEFT_OUT}`: in none."
    )
    missing = answers.get(f"{name}.missing", words, meaning, "*" if answers.ask is None else None)
    filled = {column: replace(choices[column], filled=True) for column in columns if column not in missing}
    return {**choices, **filled}


def _matching(pattern: str, columns: Iterable[str]) -> list[str]:
    return [column for column in columns if fnmatchcase(column.lower(), pattern.lower())]


def _choices(
    answers: Answers, name: str, table: SourceTable, question: str, columns: list[str]
) -> dict[str, ColumnChoice | None]:
    """Return the choices that one answer makes for some columns, None for those left out."""
    as_stored = {column: choice for column in columns if (choice := column_of(table, column)) is not None}

    def meaning(text: str) -> dict[str, ColumnChoice | None]:
        return {column: column_choice(text, as_stored[column], typed=not table.delimiter) for column in columns}

    about = sorted({"type?" if table.delimiter else as_stored[column].type for column in columns})
    of_all = "" if len(columns) == 1 else f", one answer for {len(columns)} columns: {_shortened(columns)}"
    words = f"   {question} ({', '.join(about)}{of_all})"
    return answers.get(f"{name}.{question}", words, meaning, "")


def _column_words(name: str, *, typed: bool) -> str:
    before = "" if typed else " CSV files have no types: begin with integer, real, text, boolean, date or timestamp."
    return (
        f"\n3. The columns of {name}.{before}"
        "\n   `LOWER to UPPER`: how far values can go, from what you know and not from the data; others are moved to the nearer"
        " end.\n   `a, b, c`: the values that are groups in every answer. Enter: neither. `-`: nobody may use the column."
    )


def _column_groups(answers: Answers, table: str, columns: list[str]) -> dict[str, list[str]]:
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
            named = _matching(pattern, left.values())
            if not named and not _matching(pattern, columns):
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
        " `age, lab_*`; each pattern is asked about once, all other columns are left out. `*`: all of them."
    )
    groups = answers.get(question, words, meaning)
    closed = len(columns) - sum(map(len, groups.values()))
    answers.tell(f"   {closed} columns of {table} are left out: nobody may use them.")
    return groups


def _shortened(columns: list[str]) -> str:
    """Return a list of names as text, shortened if it is long."""
    return ", ".join(columns[:_MOST_SHOWN]) + (", ..." if len(columns) > _MOST_SHOWN else "")


# --- how much in all ------------------------------------------------------------------------------------------------------


def _budgeted(answers: Answers, unit: Unit, tables: dict[str, TableChoice]) -> PolicyChoices:
    """Return all choices, after asking for the budget."""
    who = "rows" if unit is None else "persons"
    words = f"\n4. About how many {who} are in the data? A figure that may be known; it is used for the estimate below alone."
    people = answers.get("people", words, _count)
    words = (
        "\n5. How much may all answers together tell about one person? Epsilon: 1 is cautious, 10 permissive. `1 every month`"
        " begins anew (day, week, month, quarter, year), and the sum of all is what you promise."
    )
    epsilon, every = answers.get("budget", words, _budget, "1")
    delta = delta_for(people)
    default = _starting_price(epsilon)
    words = (
        f"\n   And one question, unless it says otherwise? With epsilon {default} about"
        f" {questions_within(epsilon, delta, default)} fit; half of it fits four times as often, and doubles the error."
    )

    def price(text: str) -> str:
        if _decimal(text) > Fraction(epsilon):
            raise WrongAnswer("one question cannot cost more than all together")
        return text

    per_query = answers.get("per_query", words, price, default)

    def most(text: str) -> str | None:
        if text == LEFT_OUT:
            return None
        if not Fraction(per_query) <= _decimal(text) <= Fraction(epsilon):
            raise WrongAnswer(f"write a number from {per_query} to {epsilon}, or {LEFT_OUT}")
        return text

    words = f"\n   And the most epsilon that one question may ask for? `{LEFT_OUT}`: up to the whole budget."
    max_epsilon = answers.get("max_epsilon", words, most, LEFT_OUT)
    analysts = _analysts(answers, epsilon, delta, per_query)
    return PolicyChoices(_HEADING, unit_text(unit), tables, epsilon, delta, per_query, every, max_epsilon, analysts)


def _analysts(answers: Answers, epsilon: str, delta: str, per_query: str) -> dict[str, str]:
    """Return the analysts and the epsilon that each may spend."""

    def meaning(text: str) -> dict[str, str]:
        limits: dict[str, str] = {}
        for entry in filter(None, map(str.strip, text.split(","))) if text != LEFT_OUT else ():
            name, _, limit = entry.partition(" ")
            try:
                login(name)
            except ValueError as error:
                raise WrongAnswer(str(error)) from None
            if name in limits or _decimal(limit.strip()) > Fraction(epsilon):
                raise WrongAnswer(f"write each name once, with at most {epsilon}: ann {epsilon}, students {per_query}")
            if not questions_within(limit.strip(), delta, per_query):
                fitting = _starting_price(limit.strip())
                raise WrongAnswer(
                    f"{name} could not ask one question of epsilon {per_query}: {limit.strip()} is too little; it allows about"
                    f" {questions_within(limit.strip(), delta, fitting)} of epsilon {fitting} (the answer per_query)"
                )
            limits[name] = limit.strip()
        return limits

    words = (
        "\n6. Who else asks, and how much may each spend of it? `NAME EPSILON, NAME EPSILON`: each gets an account of their own."
        f"\n   `{LEFT_OUT}`: you alone ask, or you add analysts to the policy later."
    )
    limits = answers.get("analysts", words, meaning, LEFT_OUT)
    for name, limit in limits.items():
        answers.tell(f"   {name}: {in_questions(questions_within(limit, delta, per_query))} of epsilon {per_query}")
    return limits


def _copies(answers: Answers, source: Path | str, path: Path, tables: Mapping[str, TableChoice]) -> bool:
    """Return whether a server prepares copies by itself, after asking the owner of files."""
    protected = [table for table in tables.values() if not table.public]
    if isinstance(source, str) or not protected:
        return False
    is_database = not (source.is_dir() or is_file(source.name))
    if source.is_dir():
        patterns = {table.stored.source for table in protected if table.stored.source}
        files = {file for pattern in patterns for file in query.matching(within(path.parent.resolve(), pattern))}
    else:
        files = {source} if source.is_file() else set(query.matching(source))
    megabytes = -(-sum(file.stat().st_size for file in files) // 10**6)
    folder = f"the folder {source.name}.bounded beside it" if is_database else "your cache folder (~/.cache/dpsql)"
    words = (
        "\n7. Who prepares copies of the tables, which make questions several times faster? `manual`: you, by `dpsql prepare`;"
        f"\n   `auto`: `dpsql serve` by itself, if the files have at most {Preparation.most_mb:,} MB (`prepare: {{most_mb}}`)."
        f"\n   A copy holds people's rows in a second place, {folder} or $DPSQL_CACHE, and is"
        f" about as large as the data ({megabytes:,} MB). Protect it equally; `dpsql erase copies` removes outdated copies."
    )
    return answers.get("prepare", words, _one_of("manual", "auto"), "manual") == "auto"


def delta_for(people: int) -> str:
    """Return delta as text: a power of ten, at most 10^-6 and at most a tenth of one over the number of people."""
    return f"1e-{max(_MOST_DELTA, len(str(people)) + 1)}"


def _starting_price(epsilon: str) -> str:
    return f"{float(Fraction(epsilon) * _STARTING_SHARE):.12f}".rstrip("0").rstrip(".")


def _budget(text: str) -> tuple[str, str | None]:
    match = re.fullmatch(rf"(\S+)(?: every ({'|'.join(EVERY)}))?", text)
    if match is None:
        raise WrongAnswer(f"write a number, or NUMBER every {', '.join(EVERY)}")
    if _decimal(match[1]) < _LEAST_BUDGET:
        raise WrongAnswer("write a number from 0.000001 on")
    return match[1], match[2]


def _decimal(text: str) -> Fraction:
    """Parse a positive decimal of at most 1000. Raises WrongAnswer."""
    number = Fraction(text) if re.fullmatch(r"\d{1,4}(\.\d{1,12})?", text) else Fraction(0)
    if not 0 < number <= 1000:
        raise WrongAnswer("write a number above 0, such as 0.5")
    return number


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or not 0 < int(text) <= MOST_COUNT:
        raise WrongAnswer(f"write a whole number from 1 to {MOST_COUNT:,}")
    return int(text)


def _one_of(*words: str) -> Callable[[str], str]:
    def meaning(text: str) -> str:
        if text not in words:
            raise WrongAnswer(f"write {' or '.join(words)}")
        return text

    return meaning
