"""A new policy: what a source tells of it, what its owner chooses, and its text. Values of the source are never read.

The dialogue of `dpsql init` (`wizard`) fills in every choice. The starter policy is the same text without an owner: what only the
owner knows (privacy unit, bounds, domains, max_rows, budget) is marked `#?`; where a wrong guess would weaken the guarantee, the
place is left empty, so that `dpsql check` refuses the file until it is filled in.
"""

from __future__ import annotations

import csv
import glob
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from difflib import unified_diff
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from dpsql.engine.contract import SourceTable, plain_name
from dpsql.engine.registry import structure_of
from dpsql.errors.exceptions import did_you_mean, refuse
from dpsql.frontends.files import replace_file, writing
from dpsql.policy import COLUMN_TYPES, parse_policy, policy_problems
from dpsql.policy.check import policy_text
from dpsql.policy.reach import is_file, lake_table
from dpsql.policy.values import MOST_SCALE
from dpsql.policy.yaml_text import quoted, schema_line
from dpsql.privacy.accounting import make_accountant
from dpsql.storage.records import dataclass, field, replace

_TYPES = (
    (r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|U?INT[0-9]*)$", "integer"),
    (r"(FLOAT|DOUBLE|REAL|DECIMAL.*)$", "real"),
    (r"BOOLEAN$", "boolean"),
    (r"DATE$", "date"),
    (r"TIMESTAMP.*$", "timestamp"),
    (r"(VARCHAR|UUID|ENUM.*)$", "text"),
    (r"TIME$", "integer"),  # seconds since midnight
)
_OF_LEDGERS = re.compile("dpsql_(format|entries|accounts|answers|releases|questions|heads)")
"""The tables of a ledger in the database of a server."""
_YAML_WORDS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
_BOUND = r"[-+]?[0-9.][-+0-9.eE:T]*(?: [0-9:.]+)?"
_BETWEEN = re.compile(rf"({_BOUND})\s+to\s+({_BOUND})")
_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"(?<![\w,.])(\d+),(\d+)(?=\s+to\s)")
_THOUSANDS = re.compile(r"(?<![\w.])[1-9]\d{0,2}\.000(?!\w)")
_NOT_NULL = re.compile(r"(^|(?<=\s))not null$")
_PROBE = (
    "dataset: d\nsource: d.csv\nledger: sqlite:///l.db\nprivacy_unit: row\nbudget: {epsilon: 1, delta: 1e-6}\n"
    "tables: {t: {columns: {c: %s}}}\n"
)
LEFT_OUT = "-"
CSV_FORMS = {"comma": ("decimal", ","), "dmy": ("days", "dmy"), "mdy": ("days", "mdy")}
"""How files write numbers and days, unlike 1234.5 and 2024-12-31: words of answers, with entries of `csv`."""
Unit = tuple[str, str] | None
"""Table and column of the privacy unit, None if each row is one."""
Remarks = Mapping[tuple[str, ...], str]
"""What a policy says behind an entry or, of what is left out, instead of it, by the keys from its root."""


class WrongAnswer(ValueError):
    """An answer that is invalid for its question; the message says why, and what would be valid."""


# --- choices, and the text of the policy ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnChoice:
    """A column: its type, and its bounds or listed values as written in the policy. `filled`: never NULL; `in_source`: its name
    in the source if that differs; `scale`: of decimals, the digits after the point; `is_said`: the owner named the type."""

    type: str
    bounds: tuple[str, str] | None = None
    domain: tuple[str, ...] = ()
    filled: bool = False
    in_source: str | None = None
    scale: int | None = None
    is_said: bool = False

    def text(self) -> str:
        """Return the column as a flow mapping of YAML."""
        parts = [f"type: {self.type}", *([] if self.scale is None else [f"scale: {self.scale}"])]
        if self.filled:
            parts.append("nullable: false")
        if self.in_source is not None:
            parts.append(f"from: {quoted(self.in_source)}")
        if self.bounds is not None:
            parts += [f"lower: {self.bounds[0]}", f"upper: {self.bounds[1]}"]
        if self.domain:
            plain = _NUMBER if self.type != "text" else re.compile("(?!)")
            listed = (v if plain.fullmatch(v) else quoted(v) for v in self.domain)
            parts.append(f"domain: [{', '.join(listed)}]")
        return f"{{{', '.join(parts)}}}"


@dataclass(frozen=True)
class TableChoice:
    """A table. `stored`: where and how the source has it; `max_rows`: None if it is public or open; `foreign_keys`: column to
    (table, column); `unprotected`: those of them that name further people; `columns`: None for those left out with a remark."""

    stored: SourceTable
    public: bool = False
    max_rows: int | None = None
    primary_key: tuple[str, ...] = ()
    foreign_keys: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unprotected: tuple[str, ...] = ()
    columns: Mapping[str, ColumnChoice | None] = field(default_factory=dict)
    csv: Mapping[str, str] = field(default_factory=dict)

    def lines(self, name: str, remarks: Remarks | None = None) -> Iterator[str]:
        def remark(*keys: str) -> str:
            return (remarks or {}).get(("tables", name, *keys), "")

        stored = self.stored
        yield f"  {yaml_scalar(name)}:{remark()}"
        if stored.schema is not None:
            yield f"    schema: {yaml_scalar(stored.schema)}"
        if stored.source is not None:
            yield f"    source: {quoted(stored.source)}"
        csv_keys = [f"delimiter: {quoted(stored.delimiter)}"] if stored.delimiter not in ("", ",") else []
        csv_keys += [f"encoding: {stored.encoding}"] if stored.encoding != "utf-8" else []
        csv_keys += [f"{key}: {quoted(value)}" for key, value in self.csv.items()]
        if csv_keys:
            yield f"    csv: {{{', '.join(csv_keys)}}}"
        if self.public:
            yield "    public: true"
        if self.max_rows is not None or remark("max_rows"):
            yield f"    max_rows:{'' if self.max_rows is None else f' {self.max_rows}'}{remark('max_rows')}"
        if self.primary_key:
            yield f"    primary_key: [{', '.join(map(yaml_scalar, self.primary_key))}]"
        if self.foreign_keys:
            links = (f"{yaml_scalar(column)}: {yaml_scalar('.'.join(to))}" for column, to in self.foreign_keys.items())
            yield f"    foreign_keys: {{{', '.join(links)}}}"
        if self.unprotected:
            yield f"    unprotected: [{', '.join(map(yaml_scalar, self.unprotected))}]"
        elif remark("unprotected"):
            yield f"    {remark('unprotected')}"
        yield f"    columns:{remark('columns')}"
        for column, choice in self.columns.items():
            about = remark("columns", column)
            yield f"      {about if choice is None else f'{yaml_scalar(column)}: {choice.text()}{about}'}"


@dataclass(frozen=True)
class PolicyChoices:
    """The contents of a policy. `heading`: its comment; `unit`: as YAML, empty if it is open; numbers are decimals as text;
    `tables`: None for those left out with a remark."""

    heading: str
    unit: str
    tables: Mapping[str, TableChoice | None]
    epsilon: str
    delta: str
    per_query: str
    every: str | None = None
    max_epsilon: str | None = None
    analysts: Mapping[str, str] = field(default_factory=dict)
    automatic_copies: bool = False
    remarks: Remarks = field(default_factory=dict)

    def text(self, source: Path | str, path: Path) -> str:
        """Return the policy for the data at `source`, to be written to `path`."""
        return "\n".join(self._lines(source, path)) + "\n"

    def _lines(self, source: Path | str, path: Path) -> Iterator[str]:
        yield self.heading
        yield f"dataset: {yaml_scalar(data_set_name(source))}"
        if isinstance(source, str):
            yield f"source: {quoted(source_link(source, path))}"
            yield "data_version: daily  # an answer is given again, free, until midnight UTC (docs/reuse.md, changed data)"
        elif not source.is_dir():  # the tables of a folder name their files
            link = source_link(source, path)
            yield f"source: {quoted(link if is_file(source.name) else f'duckdb:///{link}')}"
        yield f"privacy_unit:{f' {self.unit}' if self.unit else ''}{self.remarks.get(('privacy_unit',), '')}"
        yield "neighbours: add_remove"
        every = f", every: {self.every}" if self.every else ""
        budget = f"budget: {{epsilon: {self.epsilon}, delta: {self.delta}, accountant: zcdp{every}}}"
        yield f"{budget}{self.remarks.get(('budget',), '')}"
        questions = questions_within(self.epsilon, self.delta, self.per_query)
        most = f", max_epsilon: {self.max_epsilon}" if self.max_epsilon else ""
        remark = self.remarks.get(("per_query",), "  # ")
        yield f"per_query: {{epsilon: {self.per_query}{most}}}{remark}about {questions} such questions fit the budget"
        yield f"ledger: {quoted(f'sqlite:///{data_set_name(source)}-ledger.db')}"
        if self.automatic_copies:
            yield "prepare: auto"
        if self.analysts:
            yield "analysts:"
        for name, limit in self.analysts.items():
            yield f"  {yaml_scalar(name)}: {{epsilon: {limit}}}"
        yield "tables:"
        for name, table in self.tables.items():
            if table is None:
                yield f"  {self.remarks['tables', name]}"
            else:
                yield from table.lines(name, self.remarks)


def unit_text(unit: Unit) -> str:
    return "row" if unit is None else f"{{table: {yaml_scalar(unit[0])}, column: {yaml_scalar(unit[1])}}}"


def write_policy(text: str, path: Path) -> None:
    """Write a new policy. Raises InterfaceError init_exists if the file exists, Fault file_write."""
    with writing(path):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(f"{schema_line()}\n{text}")
        except FileExistsError:
            raise refuse("init_exists", place=str(path)) from None


def yaml_scalar(text: str) -> str:
    """Return a YAML scalar, quoted if YAML would read it as anything but this text."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", text)
    return text if plain and text.lower() not in _YAML_WORDS else quoted(text)


def with_key_types(chosen: Mapping[str, TableChoice], types: Mapping[tuple[str, str], str]) -> dict[str, TableChoice]:
    """Return the tables with one type at both ends of each foreign key. Columns of CSV files, which have no types, get that of
    the other end; `types`: those of columns of further tables."""
    open_ends: dict[tuple[str, str], str] = {}
    types = dict(types)
    for name, table in chosen.items():
        for column, choice in table.columns.items():
            if choice is not None:
                is_open = choice.type == "text" and table.stored.delimiter and not choice.is_said
                (open_ends if is_open else types)[name, column] = choice.type
    links = [((name, column), end) for name, table in chosen.items() for column, end in table.foreign_keys.items()]
    for end, start in [pair for _ in links for link in links for pair in (link, link[::-1])]:  # again for keys of keys
        if start in types and end in open_ends:
            types.setdefault(end, types[start])
    return {
        name: replace(
            table,
            columns={
                column: choice and replace(choice, type=types.get((name, column), choice.type))
                for column, choice in table.columns.items()
            },
        )
        for name, table in chosen.items()
    }


def with_one_key_type(
    chosen: Mapping[str, TableChoice], types: Mapping[tuple[str, str], str], answers: Mapping[str, str], origin: str
) -> dict[str, TableChoice]:
    """Return the tables as `with_key_types` does. Raise InterfaceError init_answer if a key still has two types, with the answer
    that gives it one. `answers`: by question; `origin`: where they are from."""
    tables = with_key_types(chosen, types)
    column_types = {
        (name, column): choice.type
        for name, table in tables.items()
        for column, choice in table.columns.items()
        if choice
    }
    links = [((name, column), end) for name, table in tables.items() for column, end in table.foreign_keys.items()]
    for ends in links:
        of_ends = [column_types.get(end) or types.get(end) or "" for end in ends]
        if "" in of_ends or of_ends[0] == of_ends[1]:
            continue
        names = [".".join(end) for end in ends]
        ways = [
            f"{name}: {other}"
            for (table, _), name, other in zip(ends, names, reversed(of_ends), strict=True)
            if table in tables and tables[table].stored.delimiter
        ]
        way_out = f"answer {' or '.join(ways)}" if ways else "give both one type in the source"
        problem = f"{names[0]}, a key, is {of_ends[0]} and {names[1]}, to which it leads, is {of_ends[1]}: {way_out}"
        question = next((name for name in names if name in answers), names[0])
        raise refuse(
            "init_answer", place=origin, question=question, answer=answers.get(question, "")[:80], problem=problem
        )
    return tables


# --- the starter policy: what the source tells, and marks for the owner -----------------------------------------------

_STARTER = """\
# A starter policy, written from the structure of the source alone; places marked #? wait for the owner.
# Bounds, domains and max_rows are knowledge about the subject, and public: do not look them up in the data."""
_NO_PLAIN_NAME = "has no plain name: a view can give it one"
_OPEN = {
    "privacy_unit": "  #? {table: ..., column: ...} of the person's key, or: row (each row is somebody else)",
    "rows": "  # each row is somebody else",
    "budget": "  #? all that may ever be learnt from these data",
    "per_query": "  #? what one question costs; ",
    "table": "  #? add `public: true` if nothing in it is about a person",
    "max_rows": "  #? the most rows that one person may have; further ones are left out of every answer",
    "repeats": "  #? 1 if {} never repeats (say primary_key, too), else the most rows that one may have",
    "unprotected": "#? unprotected: [...] the columns above that name other people than the one whose row it is",
    "columns": "  #? numbers and days: {type: integer, lower: 0, upper: 120}, real, date; of texts domain: [...] makes public "
    "keys",
    "integer": "  #? lower: , upper: (what can be, not what is)",
    "real": "  #? lower: , upper: (what can be, not what is)",
    "date": "  #? lower: , upper:",
    "timestamp": "  #? lower: , upper:",
    "text": "  #? domain: [...] makes public group keys",
}
"""What stands at the places that wait for the owner; `columns` for all columns of a CSV file, which has no types."""


def write_starter(source: Path | str, path: Path, unit: str | None) -> int:
    """Write a policy for the data at `source` to the new file `path`; return the number of places marked `#?`.

    `unit`: TABLE.COLUMN, "row", or None to leave it open. Raises InterfaceError (init_source, init_unit, init_exists).
    """
    tables = tables_for_policy(source, path)
    try:
        person = None if unit is None else unit_of(unit, tables)
    except WrongAnswer as error:
        raise refuse("init_unit", unit=unit, problem="the source has no such column", way=str(error)) from None
    remarks: dict[tuple[str, ...], str] = {(key,): _OPEN[key] for key in ("privacy_unit", "budget", "per_query")}
    if unit is not None:
        remarks["privacy_unit",] = "" if person else _OPEN["rows"]
    chosen: dict[str, TableChoice | None] = {}
    for name, table in tables.items():
        is_plain = plain_name(name) == name
        chosen[name] = _starter_table(name, table, person, unit == "row", remarks) if is_plain else None
        remarks["tables", name] = _OPEN["table"] if is_plain else f"# table {quoted(name)} {_NO_PLAIN_NAME}"
    chosen |= with_key_types({name: table for name, table in chosen.items() if table is not None}, {})
    named = "" if unit is None else unit_text(person)
    text = PolicyChoices(_STARTER, named, chosen, "1", "1e-6", "0.03", remarks=remarks).text(source, path)
    write_policy(text, path)
    return sum("#?" in line for line in text.splitlines()) - 1  # the first one explains the mark


def _starter_table(
    name: str, table: SourceTable, person: Unit, rows: bool, remarks: dict[tuple[str, ...], str]
) -> TableChoice:
    """Return a table as the source has it, and add remarks for the owner. `rows`: each row is somebody else."""
    holds_person = person is not None and person[0] == name
    max_rows = 1 if rows or (person and holds_person and tuple(table.primary_key) == (person[1],)) else None
    if max_rows is None:
        repeats = _OPEN["repeats"].format(yaml_scalar(person[1])) if person and holds_person else _OPEN["max_rows"]
        remarks["tables", name, "max_rows"] = repeats
    links = dict(table.foreign_keys)
    if person is not None and not holds_person and person[1] in table.columns:
        links.setdefault(person[1], person)
    if person is not None and [parent for parent, _ in links.values()].count(person[0]) > (not holds_person):
        remarks["tables", name, "unprotected"] = _OPEN["unprotected"]
    if table.delimiter:
        remarks["tables", name, "columns"] = _OPEN["columns"]
    keys = {person[1] if person else None, *table.primary_key, *links}
    columns: dict[str, ColumnChoice | None] = {}
    for column, engine_type in table.columns.items():
        columns[column], path = column_of(table, column), ("tables", name, "columns", column)
        if plain_name(column) != column:
            columns[column], remarks[path] = None, f"# column {quoted(column)} {_NO_PLAIN_NAME}"
        elif (choice := columns[column]) is None:
            remarks[path] = f"# {yaml_scalar(column)} is {type_in_words(engine_type)}, which dpsql does not read"
        elif column not in keys and choice.bounds is None and not table.delimiter:
            remarks[path] = _OPEN.get(choice.type, "")
    return TableChoice(table, False, max_rows, tuple(table.primary_key), links, columns=columns)


# --- the source -------------------------------------------------------------------------------------------------------


def tables_for_policy(source: Path | str, path: Path, *, new: bool = True) -> dict[str, SourceTable]:
    """Return the tables of a source as a policy at `path` names them, without those of a ledger in the database of a server;
    columns of files and of DuckDB get plain names.

    `new`: there is no policy at `path` yet. Raises InterfaceError (init_source, init_exists).
    """
    owned = structure_of(source).items()
    bare = {name: (table.source or name).rpartition(".")[2] for name, table in owned}
    tables = {name: table for name, table in owned if isinstance(source, Path) or not _OF_LEDGERS.fullmatch(bare[name])}
    if new and path.exists():
        raise refuse("init_exists", place=str(path))
    if not isinstance(source, str):
        tables = _with_plain_names({name: _below(table, source, path) for name, table in tables.items()})
    for name in (source_link(source, path), *(table.source or "" for table in tables.values())):
        if not name.isascii() and name.encode(errors="replace").decode() != name:
            raise refuse("init_source", place=repr(name), problem="its name is no text in UTF-8, as a policy is")
    return tables


def glob_of_files(source: Path | str) -> str | None:
    """Return the glob of a folder whose files have the same columns, and so may be one table; None for any other source."""
    if isinstance(source, str) or not source.is_dir():
        return None
    tables = structure_of(source).values()
    endings = [
        end for end in (".parquet", ".csv", ".csv.gz") if all(str(table.source).endswith(end) for table in tables)
    ]
    alike = endings and len(tables) > 1 and len({tuple(table.columns) for table in tables}) == 1
    return f"{source}/*{endings[0]}" if alike else None


def unit_of(text: str, tables: Mapping[str, SourceTable]) -> Unit:
    """Return the privacy unit that a text TABLE.COLUMN, SCHEMA.TABLE.COLUMN, the COLUMN of one table, or `row` means. Raises
    WrongAnswer, also for a column that dpsql does not read."""
    if text == "row":
        return None
    name, _, column = text.partition(".")
    holders = [table for table, stored in tables.items() if text in stored.columns]
    if len(holders) == 1:
        name, column = holders[0], text
    for table, stored in tables.items():
        in_source = stored.source or f"{stored.schema}.{table}"
        if text.startswith(f"{in_source}."):
            name, column = table, text.removeprefix(f"{in_source}.")
    if name in tables:
        column = {old: new for new, old in tables[name].renamed.items()}.get(column, column)
        if column in tables[name].columns and plain_name(column) == column:
            if type_of(engine_type := tables[name].columns[column]) is None:
                raise WrongAnswer(f"{name}.{column} is {type_in_words(engine_type)}, which dpsql does not read")
            return name, column
    columns = [f"{table}.{column}" for table, stored in tables.items() for column in stored.columns]
    raise WrongAnswer(f"write TABLE.COLUMN of the source, or row{did_you_mean(text, columns)}")


def column_of(table: SourceTable, column: str) -> ColumnChoice | None:
    """Return a column as the source has it, without bounds and domain; None for a type that dpsql does not read."""
    if (type_ := type_of(engine_type := table.columns[column])) is None:
        return None
    filled, in_source = column in table.filled, table.renamed.get(column)
    bounds = ("0", "86400") if engine_type == "TIME" else None
    return ColumnChoice(type_, bounds, filled=filled, in_source=in_source, scale=scale_of(engine_type))


def source_link(source: Path | str, path: Path) -> str:
    """Return the source as the policy at `path` names it: by a relative path if it is below the policy's folder, and without the
    wildcards that the name of a file may look like. The address of a server stays as it is, without a password, because policies
    are shared."""
    if isinstance(source, str):
        address = re.sub(r"(://[^:/@?]*):[^/?]+@", r"\1@", source)
        return re.sub(r"(?<=[?&])password=[^&]*(&|$)", "", address).rstrip("?&")
    folder = path.parent.resolve()
    where = source.parent.resolve() / source.name
    link = where.relative_to(folder).as_posix() if where.is_relative_to(folder) else str(source.resolve())
    return glob.escape(link) if is_file(source.name) and source.is_file() else link


def _below(table: SourceTable, source: Path, path: Path) -> SourceTable:
    """Return a table of a folder with the place of its file as the policy names it."""
    if not source.is_dir() or not table.source:
        return table
    kind, inside = lake_table(table.source) or ("", table.source)
    link = source_link(source / inside, path)
    return replace(table, source=f"{kind}:{link}" if kind else link)


def _with_plain_names(tables: Mapping[str, SourceTable]) -> dict[str, SourceTable]:
    """Return tables with plain names of their columns, and the names of these in the source."""
    plain = {table: _plain_names(stored.columns) for table, stored in tables.items()}
    return {
        table: replace(
            stored,
            columns={plain[table][column]: engine_type for column, engine_type in stored.columns.items()},
            primary_key=[plain[table][column] for column in stored.primary_key],
            filled={plain[table][column] for column in stored.filled},
            foreign_keys={
                plain[table][column]: (parent, plain.get(parent, {}).get(key, key))
                for column, (parent, key) in stored.foreign_keys.items()
            },
            renamed={name: column for column, name in plain[table].items() if name != column},
        )
        for table, stored in tables.items()
    }


def _plain_names(columns: Iterable[str]) -> dict[str, str]:
    """Return a plain name of its own for each column; those that have one keep it."""
    taken = {column.lower() for column in columns if plain_name(column) == column}
    names: dict[str, str] = {}
    for column in columns:
        name, number = plain_name(column), 2
        while name != column and name.lower() in taken:
            name, number = f"{plain_name(column)[:58]}_{number}", number + 1
        taken.add(name.lower())
        names[column] = name
    return names


def type_of(engine_type: str) -> str | None:
    """Return the type of a column in a policy, None for a type that dpsql does not read."""
    if engine_type.endswith("]"):  # a list, whatever its parts are
        return None
    return next((word for pattern, word in _TYPES if re.match(pattern, engine_type, re.DOTALL)), None)


def key_type(table: SourceTable, column: str) -> str | None:
    """Return the type of one end of a foreign key; None in CSV files, where it is that of the other end, and for types that dpsql
    does not read."""
    word = table.columns[column]  # of a policy that exists, the policy's
    return None if table.delimiter else word if word in COLUMN_TYPES else type_of(word)


def scale_of(engine_type: str) -> int | None:
    """Return the digits after the point of a type of decimals, None for other types and where a policy takes no such scale."""
    match = re.match(r"DECIMAL\(\d+,\s*(\d+)\)", engine_type)
    return int(match[1]) if match is not None and int(match[1]) <= MOST_SCALE else None


def type_in_words(engine_type: str) -> str:
    """Return the name of an engine's type without its contents: names of fields and values of an ENUM are others' texts."""
    match = re.match('"NULL"|[A-Z0-9_ ]*', engine_type)
    inner = match[0].strip(' "') if match else ""
    return f"{inner}[]" if engine_type.endswith("]") else inner


def data_set_name(source: Path | str) -> str:
    """Return the name of a data set, from the name of its file, files or folder, or of its database."""
    if isinstance(source, str):
        path = source.partition("://")[2].partition("/")[2]
        return plain_name(path.partition("?")[0].strip("/") or "data")
    return plain_name(source.resolve().name.partition(".")[0].replace("*", "").replace("?", "").strip("-_ "))


def questions_within(budget: str, delta: str, epsilon: str) -> int:
    """Return how many questions of `epsilon` fit a budget under zCDP; all three are decimals as text."""
    accountant = make_accountant("zcdp", Fraction(budget), Fraction(delta))
    price = accountant.units(accountant.request(Fraction(epsilon)))
    return min(accountant.limit_units()[name] // amount for name, amount in price.items() if amount)


# --- an answer about one column ---------------------------------------------------------------------------------------


def column_choice(answer: str, stored: ColumnChoice, *, typed: bool) -> ColumnChoice | None:
    """Return the choice that an answer makes for a column, None if it leaves the column out.

    Answers are `-`, nothing, `LOWER to UPPER`, or a list of values; each with a type before it unless the source is `typed`, and
    with `not null` after it if no value is missing. Raises WrongAnswer, also for what the policy would not accept.
    """
    type_, filled = stored.type if typed else None, stored.filled
    if answer == LEFT_OUT:
        return None
    promised = _NOT_NULL.search(answer)
    if promised:
        answer, filled = answer[: promised.start()].rstrip(), True
    word, _, rest = answer.partition(" ")
    if word in COLUMN_TYPES and (not rest or type_ is None or word == type_):
        if type_ is not None and word != type_:
            raise WrongAnswer(f"the source has {type_} here")
        type_, answer = word, rest.strip()
    if comma := _DECIMAL_COMMA.search(answer):
        raise WrongAnswer(f"bounds have a decimal point, whatever the file has: {comma[1]}.{comma[2]}, not {comma[0]}")
    between = _BETWEEN.fullmatch(answer)
    for number in _THOUSANDS.findall(answer) if between else ():
        raise WrongAnswer(f"{number} is read as {number[:-4]}: write {number.replace('.', '')}, or {number[:-4]}")
    bounds = (between[1], between[2]) if between else None
    domain = _listed(answer) if answer and bounds is None else ()
    type_ = type_ or _type_of_bounds(bounds) or ("text" if domain else None)
    is_said, type_ = type_ is not None, type_ or "text"
    if type_ == "text" and bounds is not None:
        raise WrongAnswer("texts have no bounds: list the values, or say nothing")
    bounds = bounds or (None if domain else stored.bounds)
    choice = replace(stored, type=type_, bounds=bounds, domain=domain, filled=filled, is_said=is_said)
    problems = policy_problems(_PROBE % choice.text())
    if problems:
        raise WrongAnswer(re.sub(r"^line \d+: ", "", problems[0][1]))
    return choice


def _type_of_bounds(bounds: tuple[str, str] | None) -> str | None:
    """Return the type of bounds, None without bounds. Raises WrongAnswer for whole numbers, which may be integers or reals."""
    if bounds is None:
        return None
    if all(map(_WHOLE.fullmatch, bounds)):
        raise WrongAnswer(
            f"say `integer {bounds[0]} to {bounds[1]}` or `real {bounds[0]} to {bounds[1]}`: in a column of integers "
            "a value such as 70.5 is rounded"
        )
    if all(map(_NUMBER.fullmatch, bounds)):
        return "real"
    for type_, read in (("date", date.fromisoformat), ("timestamp", datetime.fromisoformat)):
        try:
            for bound in bounds:
                read(bound)
            return type_
        except ValueError:
            continue
    raise WrongAnswer("bounds are two numbers, dates (2024-01-31) or timestamps (2024-01-31 12:00:00)")


def _listed(answer: str) -> tuple[str, ...]:
    """Return the values of a comma-separated list, with or without brackets; blanks in double quotes stay."""
    bracketed = answer.startswith("[") and answer.endswith("]")
    inside = answer[1:-1] if bracketed else answer
    if not bracketed and "," not in inside:
        raise WrongAnswer(f"write bounds as `LOWER to UPPER`, and a list of one value as [{answer}]")
    try:
        outside = re.sub(r'("(?:[^"]|"")*")|\s+(?=,|$)', lambda match: match[1] or "", inside)
        (values,) = map(tuple, csv.reader([outside], skipinitialspace=True))
    except (csv.Error, ValueError):
        raise WrongAnswer("write the values of a list with commas between them") from None
    if not values or not all(value.isprintable() and value for value in values):
        raise WrongAnswer("a value of the list is empty, or has characters that cannot be seen")
    return values


# --- changes of single values in the text of a policy; comments, order and layout of everything else stay -------------

Change = tuple[tuple[str, ...], object]
"""A place in a policy (keys from its root) and the value there; a list is added to the list that is there."""


def edited(text: str, changes: Iterable[Change]) -> str:
    """Return the text of a policy with each change made. The tables and columns of the places exist."""
    for path, value in changes:
        node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
        for key in path[:-1]:
            node = next(child for name, child in node.value if name.value == key)
        existing = next((child for name, child in node.value if name.value == path[-1]), None)
        if existing is None:
            text = _with_entry(text, node, f"{path[-1]}: {_written(value)}")
        elif isinstance(value, list):
            for item in reversed(value):
                text = _with_item(text, existing, _written(item))
        else:
            text = text[: existing.start_mark.index] + _written(value) + text[existing.end_mark.index :]
    return text


def _with_entry(text: str, mapping: Any, entry: str) -> str:
    """Return the text with another entry of a mapping: the last one in braces, the first one in a block."""
    if not mapping.value:
        start, end = mapping.start_mark.index, mapping.end_mark.index
        return f"{text[:start]}{{{entry}}}{text[end:]}"
    if mapping.flow_style:
        end = mapping.value[-1][1].end_mark.index
        return f"{text[:end]}, {entry}{text[end:]}"
    start = mapping.value[0][0].start_mark
    return f"{text[: start.index]}{entry}\n{' ' * start.column}{text[start.index :]}"


def _with_item(text: str, items: Any, item: str) -> str:
    """Return the text with another item at the end of a list."""
    if not items.value:
        return f"{text[: items.start_mark.index]}[{item}]{text[items.end_mark.index :]}"
    end = items.value[-1].end_mark.index
    if items.flow_style:
        return f"{text[:end]}, {item}{text[end:]}"
    line = text.find("\n", end)
    end = len(text) if line < 0 else line
    return f"{text[:end]}\n{' ' * items.start_mark.column}- {item}{text[end:]}"


def with_table(text: str, lines: Iterable[str]) -> str:
    """Return the text of a policy with another table after the last one. `lines`: the table, indented by two blanks."""
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    tables = next(child for name, child in root.value if name.value == "tables")
    if tables.flow_style:
        problem = "the tables of the policy are in braces; write them on lines"
        raise refuse("init_table", table=next(iter(lines)).strip().rstrip(":"), problem=problem)
    last, indent = tables, " " * tables.value[0][0].start_mark.column
    while last.value and not isinstance(last.value, str) and not last.flow_style:
        last = last.value[-1]
        last = last[1] if isinstance(last, tuple) else last
    line = text.find("\n", last.end_mark.index)
    end = len(text) if line < 0 else line
    return f"{text[:end]}\n" + "\n".join(f"{indent}{entry[2:]}" for entry in lines) + (text[end:] or "\n")


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (int, Fraction)):
        return f"{float(value):.15g}" if isinstance(value, Fraction) else str(value)
    return yaml_scalar(str(value))


def policy_diff(path: Path, changes: Iterable[Change]) -> tuple[str, str]:
    """Return the changed text of the policy at `path`, and the difference. Raises PolicyRefusal if it is no policy."""
    before = policy_text(path)
    after = edited(before, changes)
    parse_policy(after, str(path), path.parent)
    lines = unified_diff(before.splitlines(True), after.splitlines(True), str(path), f"{path} (proposed)", n=1)
    return after, "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def replace_policy(path: Path, text: str) -> None:
    """Write a changed policy in the place of the old one, at once; who may read it stays. Raises Fault file_write."""

    def write(part: Path) -> None:
        part.write_text(text, encoding="utf-8", newline="")
        part.chmod(path.stat().st_mode & 0o777)

    replace_file(path, write)
