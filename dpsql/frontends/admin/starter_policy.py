"""`dpsql init`: a starter policy from the structure of a source. Values are never read.

Facts that only the owner knows (privacy unit, bounds, domains, max_rows, budget) are marked `#?`; where a wrong guess would
weaken the guarantee, the place is left empty, so that `dpsql check` refuses the file until it is filled in.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from dpsql.engine.registry import structure_of
from dpsql.engine.structure import SourceTable, plain_name
from dpsql.errors.exceptions import did_you_mean, refuse
from dpsql.policy.reach import is_file
from dpsql.policy.values import MOST_SCALE
from dpsql.policy.yaml_text import quoted, schema_line
from dpsql.privacy.accounting.registry import make_accountant

_TYPES = (
    (r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|U?INT[0-9]*)$", "integer"),
    (r"(FLOAT|DOUBLE|REAL|DECIMAL.*)$", "real"),
    (r"BOOLEAN$", "boolean"),
    (r"DATE$", "date"),
    (r"TIMESTAMP.*$", "timestamp"),
    (r"(VARCHAR|UUID|ENUM.*)$", "text"),
    (r"TIME$", "integer"),  # seconds since midnight
)
_BUDGET, _DELTA, _EPSILON = "1", "1e-6", "0.03"
_YAML_WORDS = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
_OF_TEXTS = (
    "  #? numbers and days: {type: integer, lower: 0, upper: 120}, real, date; of texts domain: [...] makes public keys"
)
"""What remains to be filled in for the columns of a CSV file, which has no types."""
_BOUNDS = {
    "integer": "  #? lower: , upper: (what can be, not what is)",
    "real": "  #? lower: , upper: (what can be, not what is)",
    "date": "  #? lower: , upper:",
    "timestamp": "  #? lower: , upper:",
    "text": "  #? domain: [...] makes public group keys",
}


def write_starter(source: Path | str, path: Path, unit: str | None) -> int:
    """Write a policy for the data at `source` to the new file `path`; return the number of places marked `#?`.

    `unit`: TABLE.COLUMN, "row", or None to leave it open. Raises InterfaceError (init_source, init_unit, init_exists).
    """
    tables = tables_for_policy(source, path)
    named = _unit(unit, tables)
    text = "\n".join(_policy(source, source_link(source, path), tables, named, unit == "row")) + "\n"
    write_policy(text, path)
    return sum("#?" in line for line in text.splitlines()) - 1  # the first one explains the mark


def tables_for_policy(source: Path | str, path: Path, *, new: bool = True) -> dict[str, SourceTable]:
    """Return the tables of a source as a policy at `path` names them; columns of CSV files get plain names.

    `new`: there is no policy at `path` yet. Raises InterfaceError (init_source, init_exists).
    """
    tables = structure_of(source)
    if new and path.exists():
        raise refuse("init_exists", place=str(path))
    named = {name: _with_plain_names(_below(table, source, path)) for name, table in tables.items()}
    for name in (source_link(source, path), *(table.source or "" for table in named.values())):
        if not name.isascii() and name.encode(errors="replace").decode() != name:
            raise refuse("init_source", place=repr(name), problem="its name is no text in UTF-8, as a policy is")
    return named


def split_column(text: str, tables: Mapping[str, SourceTable]) -> tuple[str, str]:
    """Return the table and column of a text TABLE.COLUMN or SCHEMA.TABLE.COLUMN, without checking that they exist."""
    for name, table in tables.items():
        if table.schema is not None and text.startswith(f"{table.schema}.{name}."):
            return name, text.removeprefix(f"{table.schema}.{name}.")
    name, _, column = text.partition(".")
    return name, column


def write_policy(text: str, path: Path) -> None:
    """Write a new policy. Raises InterfaceError init_exists if the file exists, Fault file_write."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(f"{schema_line()}\n{text}")
    except FileExistsError:
        raise refuse("init_exists", place=str(path)) from None
    except OSError as error:
        raise refuse("file_write", place=str(path), problem=error.strerror or "it failed") from None


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


def _below(table: SourceTable, source: Path | str, path: Path) -> SourceTable:
    """Return a table of a folder with the place of its file as the policy names it."""
    if isinstance(source, str) or not source.is_dir() or not table.source:
        return table
    return replace(table, source=source_link(source / table.source, path))


def _unit(unit: str | None, tables: dict[str, SourceTable]) -> tuple[str, str] | None:
    if unit is None or unit == "row":
        return None
    table, column = split_column(unit, tables)
    renamed = tables[table].renamed if table in tables else {}
    column = next((name for name, in_source in renamed.items() if in_source == column), column)
    columns = [f"{name}.{key}" for name, entry in tables.items() for key in entry.columns]
    if f"{table}.{column}" not in columns:
        hint = "write TABLE.COLUMN of the source, or row" + did_you_mean(unit, columns)
        raise refuse("init_unit", unit=unit, problem="the source has no such column", way=hint)
    return table, column


# --- text -----------------------------------------------------------------------------------------------------------


def _policy(
    source: Path | str, link: str, tables: dict[str, SourceTable], unit: tuple[str, str] | None, rows: bool
) -> Iterator[str]:
    yield "# A starter policy, written from the structure of the source alone; places marked #? wait for the owner."
    yield "# Bounds, domains and max_rows are knowledge about the subject, and public: do not look them up in the data."
    yield f"dataset: {yaml_scalar(data_set_name(source))}"
    yield from source_lines(source, link)
    if rows:
        yield "privacy_unit: row  # each row is somebody else"
    elif unit is not None:
        yield f"privacy_unit: {{table: {yaml_scalar(unit[0])}, column: {yaml_scalar(unit[1])}}}"
    else:
        yield "privacy_unit:  #? {table: ..., column: ...} of the person's key, or: row (each row is somebody else)"
    yield "neighbours: add_remove"
    yield f"budget: {{epsilon: {_BUDGET}, delta: {_DELTA}, accountant: zcdp}}  #? all that may ever be learnt from these data"
    questions = questions_within(_BUDGET, _DELTA, _EPSILON)
    yield f"per_query: {{epsilon: {_EPSILON}}}  #? what one question costs; about {questions} such questions fit the budget"
    yield f"ledger: {quoted(f'sqlite:///{data_set_name(source)}-ledger.db')}"
    yield "tables:"
    for name, table in tables.items():
        yield from _table(name, table, tables, unit, rows)


def source_lines(source: Path | str, link: str) -> Iterator[str]:
    """Yield the line of a policy that names its source; none for a folder, whose tables name their files."""
    if isinstance(source, str):
        yield f"source: {quoted(source)}"
    elif not source.is_dir():
        yield f"source: {quoted(link if is_file(source.name) else f'duckdb:///{link}')}"


def place_lines(schema: str | None, source: str | None) -> Iterator[str]:
    """Yield the lines of a policy that locate a table."""
    if schema is not None:
        yield f"    schema: {yaml_scalar(schema)}"
    if source is not None:
        yield f"    source: {quoted(source)}"


def csv_lines(table: SourceTable) -> Iterator[str]:
    """Yield the line of a policy that says how the CSV files of a table are written, if not as most are."""
    keys = [f"delimiter: {quoted(table.delimiter)}"] if table.delimiter not in ("", ",") else []
    keys += [f"encoding: {table.encoding}"] if table.encoding != "utf-8" else []
    if keys:
        yield f"    csv: {{{', '.join(keys)}}}"


def type_of(engine_type: str) -> str | None:
    """Return the type of a column in a policy, None for a type that dpsql does not read."""
    if engine_type.endswith("]"):  # a list, whatever its parts are
        return None
    return next((word for pattern, word in _TYPES if re.match(pattern, engine_type, re.DOTALL)), None)


def scale_of(engine_type: str) -> int | None:
    """Return the digits after the point of a type of decimals, None for other types and where a policy takes no such scale."""
    match = re.match(r"DECIMAL\(\d+,\s*(\d+)\)", engine_type)
    return int(match[1]) if match is not None and int(match[1]) <= MOST_SCALE else None


def type_in_words(engine_type: str) -> str:
    """Return the name of an engine's type without its contents: names of fields and values of an ENUM are texts of other
    people."""
    match = re.match("[A-Z0-9_ ]*", engine_type)
    inner = match[0].strip() if match else ""
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


def _table(
    name: str, table: SourceTable, tables: dict[str, SourceTable], unit: tuple[str, str] | None, rows: bool
) -> Iterator[str]:
    if plain_name(name) != name:
        yield f"  # table {quoted(name)} has no plain name: a view can give it one"
        return
    yield f"  {yaml_scalar(name)}:  #? add `public: true` if nothing in it is about a person"
    yield from place_lines(table.schema, table.source)
    yield from csv_lines(table)
    if rows or (unit is not None and unit[0] == name and tuple(table.primary_key) == (unit[1],)):
        yield "    max_rows: 1"
    elif unit is not None and unit[0] == name:
        column = yaml_scalar(unit[1])
        yield f"    max_rows:  #? 1 if {column} never repeats (say primary_key, too), else the most rows that one may have"
    else:
        yield "    max_rows:  #? the most rows that one person may have; further ones are left out of every answer"
    if table.primary_key:
        yield f"    primary_key: [{', '.join(map(yaml_scalar, table.primary_key))}]"
    links = dict(table.foreign_keys)
    if unit is not None and unit[0] != name and unit[1] in table.columns:
        links.setdefault(unit[1], unit)
    if links:
        written = (f"{yaml_scalar(column)}: {yaml_scalar('.'.join(parent))}" for column, parent in links.items())
        yield f"    foreign_keys: {{{', '.join(written)}}}"
    if unit is not None and [parent for parent, _ in links.values()].count(unit[0]) > (unit[0] != name):
        yield "    #? unprotected: [...] the columns above that name other people than the one whose row it is"
    yield f"    columns:{_OF_TEXTS if table.delimiter else ''}"
    for column, engine_type in table.columns.items():
        if plain_name(column) != column:
            yield f"      # column {quoted(column)} has no plain name: a view can give it one"
            continue
        type_ = type_of(engine_type)
        if type_ is None:
            yield f"      # {yaml_scalar(column)} is {type_in_words(engine_type)}, which dpsql does not read"
            continue
        keys = {unit[1] if unit else None, *table.primary_key, *links}
        filled = ", nullable: false" if column in table.filled else ""
        renamed = f", from: {quoted(table.renamed[column])}" if column in table.renamed else ""
        bounds = ", lower: 0, upper: 86400" if engine_type == "TIME" else ""
        scale = "" if scale_of(engine_type) is None else f", scale: {scale_of(engine_type)}"
        about = f"{{type: {type_}{scale}{bounds}{filled}{renamed}}}"
        yield f"      {yaml_scalar(column)}: {about}" + (
            "" if column in keys or table.delimiter or bounds else _BOUNDS.get(type_, "")
        )


def _with_plain_names(table: SourceTable) -> SourceTable:
    """Return a table of CSV files with plain names of its columns, and their names in the header; other tables unchanged."""
    if not table.delimiter:
        return table
    taken = {column.lower() for column in table.columns if plain_name(column) == column}
    columns: dict[str, str] = {}
    renamed: dict[str, str] = {}
    for column, engine_type in table.columns.items():
        name, number = plain_name(column), 2
        while name != column and name.lower() in taken:
            name, number = f"{plain_name(column)[:58]}_{number}", number + 1
        taken.add(name.lower())
        columns[name] = engine_type
        if name != column:
            renamed[name] = column
    return replace(table, columns=columns, renamed=renamed)


def yaml_scalar(text: str) -> str:
    """Return a YAML scalar, quoted if YAML would read it as anything but this text."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", text)
    return text if plain and text.lower() not in _YAML_WORDS else quoted(text)
