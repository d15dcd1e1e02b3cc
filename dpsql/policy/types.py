"""The owner's policy as frozen values: protected tables, the privacy unit, bounds of values, and budgets.

All numbers are exact: `int` or `fractions.Fraction`; dates are `datetime.date`, timestamps naive
`datetime.datetime`.  A `Policy` from `load_policy` is consistent: every protected table reaches the
privacy unit by exactly one path of foreign keys, every name exists, and bounds come in pairs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from dpsql.policy.reach import Hop, is_file, joins_of, paths_to_unit
from dpsql.policy.source_kinds import DUCKDB, source_kind
from dpsql.policy.yaml_text import Origin
from dpsql.privacy.loss import Neighbours
from dpsql.privacy.mechanisms.registry import ANNEXES

# --- contribution bounds ----------------------------------------------------------------------------------------------


# Contribution bounds: the most that one privacy unit may add to answers (privacy.md 2 and 4).


_Bound = TypeVar("_Bound", int, Fraction)


@dataclass(frozen=True)
class ContributionBounds:
    """Upper bounds on the contribution of one privacy unit; a bound that is not set is None.

    `max_rows` bounds its rows in one table, `max_groups` the groups in which it appears, `max_rows_per_group` its rows in one
    group: rows beyond these are dropped. `max_total` (in the unit of the summed value) and `max_count` (rows) bound its
    SUM and its COUNT over all groups together: a sum beyond them is scaled down. `max_values` bounds the distinct values that
    it contributes to a COUNT(DISTINCT x), over all groups together: its other values are left out.
    """

    max_rows: int | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    max_total: Fraction | None = None
    max_count: int | None = None
    max_values: int | None = None

    @property
    def drops_rows_by_group(self) -> bool:
        """Return whether rows are dropped after grouping, so that the kept rows depend on the groups of the question."""
        return self.max_groups is not None or self.max_rows_per_group is not None

    def declared(self) -> dict[str, int | Fraction]:
        """Return the bounds that are set, by name."""
        values = ((entry.name, getattr(self, entry.name)) for entry in fields(self))
        return {name: value for name, value in values if value is not None}

    def tightened(self, *further: ContributionBounds) -> ContributionBounds:
        """Return bounds that are each the smallest among these bounds and the `further` ones."""
        every = (self, *further)
        names = [entry.name for entry in fields(self)]
        return ContributionBounds(*(smallest(*(getattr(bounds, name) for bounds in every)) for name in names))


UNBOUNDED = ContributionBounds()
BOUND_NAMES = tuple(entry.name for entry in fields(ContributionBounds))


def smallest(*bounds: _Bound | None) -> _Bound | None:
    """Return the smallest bound that is set, or None if none is."""
    return min((bound for bound in bounds if bound is not None), default=None)


_NAMES = "names of bounds in fingerprints"


TABLE_BOUNDS = ("max_rows", "max_groups", "max_rows_per_group", "max_count", "max_values")
"""Bounds that a table of a policy may have."""
ADDED_BOUNDS = frozenset({"max_values"})
"""Bounds that were added after releases had been stored: fingerprints leave them out if they are not set."""


def written_as(*names: str) -> dict[str, tuple[str, ...]]:
    """Return the metadata of a dataclass field for contribution bounds, of which the dataclass uses only `names`.

    Fingerprints (`Policy.meaning`, `canonical_text`) write those bounds as if each were a field of the dataclass, so that
    names of stored releases do not depend on the representation of bounds.
    """
    return {_NAMES: names}


def names_in_fingerprint(kind: Any) -> dict[str, tuple[str, ...]]:
    """Return the fields of a dataclass that hold contribution bounds (`written_as`), each with the bounds that it writes."""
    return {entry.name: entry.metadata[_NAMES] for entry in fields(kind) if _NAMES in entry.metadata}


# --- Fingerprints of a policy: SHA-256 of the names and values of its fields ---

LEFT_OUT_AT_DEFAULT = {"left_out": True}
"""Metadata of a field that was added after fingerprints were stored: policies that do not use it keep their fingerprint."""


def fingerprint(value: object) -> str:
    """Return the SHA-256 (hex) of a policy, or of parts of one."""
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


_NOT_SAID = ("description", "folder", "origin", "rows", "row_count", "asker", "unprotected")
"""Fields on which the meaning of answers does not depend."""


def canonical(value: object) -> object:
    """Return `value` in the form of JSON. Scalars become text; a column's type distinguishes the number 1 from the text "1"."""
    if isinstance(value, Mapping):
        return {json.dumps(canonical(key)): canonical(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [canonical(item) for item in value]
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        bounds = names_in_fingerprint(type(value))
        written = {name: getattr(getattr(value, held), name) for held, names in bounds.items() for name in names}
        written = {name: part for name, part in written.items() if part is not None or name not in ADDED_BOUNDS}
        written |= {
            name: getattr(value, name) for name, field_ in fields.items()
            if name not in (*_NOT_SAID, *bounds)
            and not (field_.metadata.get("left_out") and getattr(value, name) == field_.default)
        }  # fmt: skip
        return {name: canonical(part) for name, part in written.items()}
    value = value.value if isinstance(value, Enum) else value
    return None if value is None else str(value)


# --- The owner's policy as frozen values: protected tables, the privacy unit, bounds of values, and budgets ---


Value = int | Fraction | str | bool | date | datetime
"""A value of a column: integer, real, text, boolean, date or timestamp."""

COLUMN_TYPES = ("integer", "real", "text", "boolean", "date", "timestamp")
DEFAULT_SCHEMAS = ("main", "public")
"""The schema names that mean tables for which the policy names no schema."""
_Named = TypeVar("_Named")


@dataclass(frozen=True)
class PrivacyUnit:
    """The column whose values identify the privacy units; foreign keys lead from the rows of other tables to their unit."""

    table: str
    column: str


@dataclass(frozen=True)
class LifetimeLimit:
    """The limit for all windows of a budget together."""

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class DatasetBudget:
    """The limit of the privacy loss of the whole dataset; `accountant` is "pure" or "zcdp". `delta` is 0 only under "pure".

    `every`: the limits of the dataset, analysts and projects hold for each window of this length
    (`privacy.accounting.ledger_units`); None: they hold for all questions ever. `lifetime` limits all windows together (or None).
    """

    epsilon: Fraction
    delta: Fraction
    accountant: str
    every: str | None = field(default=None, metadata=LEFT_OUT_AT_DEFAULT)
    lifetime: LifetimeLimit | None = field(default=None, metadata=LEFT_OUT_AT_DEFAULT)

    @property
    def is_limited(self) -> bool:
        """Return whether the total privacy loss of all questions ever has a limit."""
        return self.every is None or self.lifetime is not None


@dataclass(frozen=True)
class PerQuery:
    """Defaults and limits of one query.

    `epsilon` is charged if a query names none; `max_epsilon` is the most and `min_epsilon` the least it may name;
    `delta` goes to partition selection (0: private keys are refused); `mechanism` is "auto" or a word of the registry;
    `confidence` is the confidence of the error bars; `max_public_groups` is the most groups in a grid of public keys;
    `timeout_seconds` stops the engine. Groups with a noisy count of fewer than `min_units` privacy units are not shown
    (None: all groups are).
    """

    epsilon: Fraction
    max_epsilon: Fraction | None
    delta: Fraction
    mechanism: str
    confidence: Fraction
    timeout_seconds: int
    max_public_groups: int
    min_epsilon: Fraction = Fraction(0)
    bounds: ContributionBounds = field(default=UNBOUNDED, metadata=written_as("max_groups", "max_rows_per_group"))
    min_units: int | None = field(default=None, metadata=LEFT_OUT_AT_DEFAULT)


@dataclass(frozen=True)
class TableAccess:
    """The columns of a table that one analyst may name, and the rows that exist for them.

    `columns`: None for all columns. `where`: a condition in SQL over all columns of the table, hidden ones included; None
    for all rows. It filters the bounded view, as a WHERE of the question does.
    """

    columns: tuple[str, ...] | None = None
    where: str | None = None


@dataclass(frozen=True)
class Analyst:
    """The part of the dataset's budget that one analyst may spend; with `delta` None, only the dataset's delta is the limit.

    `access`: the tables that exist for the analyst; None for all tables, with all columns and rows.
    """

    epsilon: Fraction
    delta: Fraction | None
    access: Mapping[str, TableAccess] | None = field(default=None, hash=False, metadata=LEFT_OUT_AT_DEFAULT)


@dataclass(frozen=True)
class ProjectLimit:
    """The budget of all questions of one project together; with `delta` None, only the dataset's delta is the limit.

    `members`: the analysts who, besides the owner, may charge the project; None: all analysts.
    """

    epsilon: Fraction
    delta: Fraction | None
    members: tuple[str, ...] | None = field(default=None, metadata=LEFT_OUT_AT_DEFAULT)


@dataclass(frozen=True)
class ReusePolicy:
    """The rules by which stored releases answer instead of a new charge.

    `default` is the dp.reuse of a session that sets none: "off", "on" or "derive". `shared`: a release answers all
    analysts, else only the one who was charged for it. `more_accurate`: a stored release with less noise than
    requested answers too.
    """

    default: str = "on"
    shared: bool = True
    more_accurate: bool = True


@dataclass(frozen=True)
class StorePolicy:
    """The most megabytes of stored answers: of the questions of one analyst, and in all; and the most days and megabytes of the
    texts of questions. The oldest are removed first."""

    analyst_mb: int = 256
    answers_mb: int = 2048
    question_days: int = 90
    questions_mb: int = 64


@dataclass(frozen=True)
class SessionLimit:
    """The budget of one session (one connection)."""

    epsilon: Fraction
    delta: Fraction | None


@dataclass(frozen=True)
class PolicyColumn:
    """One column; `type` is one of `COLUMN_TYPES`.

    `lower` and `upper` come together or not at all (closed interval, typed by the column's type). `domain` lists the
    public keys in the order written; None among them means that NULL is a key. `max_total` is the most that one
    privacy unit adds to a SUM of the column, over all groups together, in the column's unit (None: whatever its rows add up to).
    `source` is the column's name in the header of CSV files if it differs from `name`.
    `outside` is the key of the group of all values outside the domain or the bounds (None: they belong to no group).
    """

    name: str
    type: str
    lower: Value | None = None
    upper: Value | None = None
    domain: tuple[Value | None, ...] | None = None
    nullable: bool = True
    description: str = ""
    max_total: Fraction | None = None
    outside: Value | None = None
    source: str | None = field(default=None, metadata=LEFT_OUT_AT_DEFAULT)

    @property
    def source_name(self) -> str:
        """The name of the column in the source."""
        return self.name if self.source is None else self.source


@dataclass(frozen=True)
class CsvDialect:
    """The dialect of the CSV files of a table.

    `quote` is "" if no character quotes; `header` names the columns in the order of the files, or is None if the first
    line of each file does; `null` are the texts that mean NULL; `multiline`: quoted cells may contain line breaks, so that
    a record may span several lines.
    """

    delimiter: str = ","
    quote: str = '"'
    header: tuple[str, ...] | None = None
    null: tuple[str, ...] = ("",)
    multiline: bool = False


@dataclass(frozen=True)
class Table:
    """One table as analysts see it.

    `schema` is the schema in which analysts see it, None for the default one; table names are unique over all schemas.
    `source` is its physical name (`schema.table`) or file glob if different; `unique` are column sets, besides
    `primary_key`, on which no two rows agree; `max_multiplicity` maps a column set of a public table to the most rows that
    agree on it; `foreign_keys` maps a column to (parent table, parent column). `unprotected`: columns that name further privacy
    units, whose part in these rows nothing bounds, none of them in `foreign_keys` (None: the file does not say). `bounds`: the
    most that one privacy unit contributes (`max_rows` is 1 under row privacy; a public table has none). `columns` holds every
    column that the policy names, key columns included. `csv` is the dialect of its files, None if it is not read from CSV files.
    `rows`: the column names and rows of a public table in its source, if they are few (None: unknown; never from the policy
    file); `row_count`: the number of its rows. `append_only`: rows are only added, and only in new files, so that the choice of
    the rows of a unit that stay is the same for all versions of the data.
    """

    name: str
    public: bool
    columns: Mapping[str, PolicyColumn] = field(hash=False)
    source: str | None = None
    primary_key: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    max_multiplicity: Mapping[tuple[str, ...], int] = field(default_factory=dict, hash=False)
    foreign_keys: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    bounds: ContributionBounds = field(default=UNBOUNDED, metadata=written_as(*TABLE_BOUNDS))
    description: str = ""
    csv: CsvDialect | None = None
    schema: str | None = field(default=None, metadata=LEFT_OUT_AT_DEFAULT)
    append_only: bool = field(default=False, metadata=LEFT_OUT_AT_DEFAULT)
    unprotected: tuple[str, ...] | None = None
    rows: tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]] | None = field(default=None, compare=False, repr=False)
    row_count: int | None = field(default=None, compare=False, repr=False)

    @property
    def shown_schema(self) -> str:
        """Return the schema in which the table is shown."""
        return "public" if self.schema is None or self.schema.lower() in DEFAULT_SCHEMAS else self.schema

    @property
    def qualified_name(self) -> str:
        """Return the name of the table, preceded by its schema unless that is the default one."""
        return self.name if self.shown_schema == "public" else f"{self.shown_schema}.{self.name}"

    def is_in(self, schema: str) -> bool:
        """Return whether the table is in the schema that a question calls `schema` (case does not matter, as in SQL)."""
        names = DEFAULT_SCHEMAS if self.shown_schema == "public" else (self.shown_schema.lower(),)
        return schema.lower() in names

    def column(self, name: str) -> PolicyColumn | None:
        """Return the column called `name` (case does not matter, as in SQL), or None."""
        return self.columns.get(name) or _folded(self.columns, name)

    def is_unique(self, columns: tuple[str, ...]) -> bool:
        """Return whether no two rows agree on `columns`, because these include the primary key or one of the `unique` sets."""
        compared = set(columns)
        return any(keys and compared.issuperset(keys) for keys in (self.primary_key, *self.unique))

    def multiplicity(self, columns: tuple[str, ...]) -> int | None:
        """Return the most rows that agree on `columns`: 1 if unique, else the declared number, None if none is declared."""
        if self.is_unique(columns):
            return 1
        compared = set(columns)
        declared = [most for keys, most in self.max_multiplicity.items() if compared.issuperset(keys)]
        return min(declared, default=None)


@dataclass(frozen=True)
class Preparation:
    """The writer and the place of prepared copies. `automatic`: a server writes them by itself; else only `dpsql prepare` does.

    `into`: a schema of the PostgreSQL server that holds the data, or a folder (path or URL) that Spark writes to; None if
    copies are DuckDB files. `role`: the role that writes into the schema, None for the role of the source.
    """

    automatic: bool = False
    into: str | None = None
    role: str | None = None


@dataclass(frozen=True)
class Policy:
    """One policy file, called `origin`. `privacy_unit` is None under row privacy; relative paths in it start at `folder`.

    `data_version` is the owner's own name for the state of the data; None: the source's files show whether it changed.
    `witness` is the place on another machine that also keeps the ledger's head: file:///FOLDER or postgresql://...
    `log_sql`: whether texts of questions are written: None for the owner's store alone, True also for the server's audit log and
    traces, False for nowhere.
    `mechanisms` are the rare mechanisms that questions may use (`privacy.mechanisms.registry.ANNEXES`).
    `asker` is the analyst whose access applies (`of_analyst`), None if all tables are visible. `tables` are the tables of the
    file; `visible` is the part of them that the asker can name.
    `timing` is "plain", "padded" or "constant": every question is answered after `constant_seconds` (else None).
    """

    dataset: str
    source: str | None
    privacy_unit: PrivacyUnit | None
    neighbours: Neighbours
    budget: DatasetBudget
    per_query: PerQuery
    ledger: str
    analysts: Mapping[str, Analyst] = field(hash=False)
    session: SessionLimit | None
    tables: Mapping[str, Table] = field(hash=False)
    description: str = ""
    projects: Mapping[str, ProjectLimit] = field(default_factory=dict, hash=False)
    reuse: ReusePolicy = ReusePolicy()
    store: StorePolicy = field(default=StorePolicy(), metadata=LEFT_OUT_AT_DEFAULT)
    timing: str = "plain"
    constant_seconds: Fraction | None = None
    data_version: str | None = None
    witness: str | None = field(default=None, metadata=LEFT_OUT_AT_DEFAULT)
    log_sql: bool | None = field(default=None, metadata=LEFT_OUT_AT_DEFAULT)
    mechanisms: tuple[str, ...] = field(default=tuple(ANNEXES), metadata=LEFT_OUT_AT_DEFAULT)
    prepare: Preparation = field(default=Preparation(), metadata=LEFT_OUT_AT_DEFAULT)
    folder: Path = field(default=Path("."), compare=False)
    origin: Origin = field(default=Origin(), compare=False, repr=False)
    asker: str | None = None

    def of_analyst(self, name: str | None) -> Policy:
        """Return the policy as the analyst `name` sees it; the same policy if nothing is hidden from them."""
        analyst = None if name is None else self.analysts.get(name)
        return self if analyst is None or analyst.access is None else replace(self, asker=name)

    @property
    def access(self) -> Mapping[str, TableAccess] | None:
        """Return the columns and rows that exist for the asker, by table; None for all tables."""
        return None if self.asker is None else self.analysts[self.asker].access

    @cached_property
    def visible(self) -> Mapping[str, Table]:
        """The tables that the asker can name, with the columns and keys that they can name."""
        access = self.access
        if access is None:
            return self.tables
        columns = {
            name: tuple(table.columns) if access[name].columns is None else access[name].columns or ()
            for name, table in self.tables.items() if name in access
        }  # fmt: skip
        return {name: _with_columns(self.tables[name], columns) for name in columns}

    def row_filter(self, table: str) -> str | None:
        """Return the condition on the rows of `table` that exist for the asker; None for all rows."""
        return None if self.access is None else self.access[table].where

    def table(self, name: str) -> Table | None:
        """Return the table that the asker calls `name` (case does not matter, as in SQL), or None."""
        return self.visible.get(name) or _folded(self.visible, name)

    def table_at(self, *path: str) -> Table | None:
        """Return the table that the asker calls `[[dataset.]schema.]name`, or None."""
        *before, name = path
        table = self.table(name)
        if table is None or (before and not table.is_in(before[-1])):
            return None
        return table if [part.lower() for part in before[:-1]] in ([], [self.dataset.lower()]) else None

    def is_protected(self, table: str) -> bool:
        """Return whether rows of `table` belong to privacy units. Raises KeyError for an unknown table."""
        return not self.tables[table].public

    def unit_path(self, table: str) -> tuple[Hop, ...]:
        """Return foreign keys (table, column, parent table, parent column) that lead from `table` to the privacy unit.

        Empty for the unit's own table, for public tables and under row privacy. Raises KeyError for an unknown table.
        """
        if self.tables[table].public or self.privacy_unit is None:
            return ()
        return self._paths[table][0]

    def unit_joins(self, table: str) -> tuple[Hop, ...]:
        """Return the hops of `unit_path` that must be joined to read the unit's key.

        A last hop to the unit's key itself needs no join, because the child's own column already holds the key. Each
        parent column of these hops is declared unique, so that joining never repeats a row.
        """
        unit = self.privacy_unit
        return () if unit is None else joins_of(self.unit_path(table), unit.column)

    def unit_column(self, table: str) -> str | None:
        """Return the column that holds the unit's key: of `table` itself, or of the last parent of `unit_joins(table)`.

        None for public tables and under row privacy.
        """
        unit = self.privacy_unit
        if unit is None or self.tables[table].public:
            return None
        path, joins = self.unit_path(table), self.unit_joins(table)
        return path[len(joins)][1] if len(joins) < len(path) else unit.column

    def source_path(self) -> str | None:
        """Return the absolute path of the DuckDB file or file glob that `source` names; None for a server or no source."""
        if self.source is None or source_kind(self.source).is_server:
            return None
        return self._resolved(self.source.removeprefix(f"{DUCKDB.scheme}:///"))

    def table_source(self, table: str) -> str:
        """Return the physical name of `table`, or the absolute path of its files (see `is_file`). Raises KeyError if unknown."""
        about = self.tables[table]
        source = about.source or table
        if about.source is None and self.source is not None:
            in_schema = table if about.schema is None else f"{about.schema}.{table}"
            source = self.source if is_file(self.source) else in_schema
        return self._resolved(source) if is_file(source) else source

    def over_memory(self) -> Policy:
        """Return the policy with its tables read from memory under their own names: every question keeps its meaning, only the
        data are elsewhere."""
        tables = {name: replace(table, source=None, csv=None) for name, table in self.tables.items()}
        return replace(self, source=None, tables=tables, timing="plain", constant_seconds=None, data_version="memory")

    def copies_folder(self) -> str | None:
        """Return the folder of Spark's copies, as an absolute path or a URL; None if copies are elsewhere or the policy names
        no folder."""
        into, copies = self.prepare.into, source_kind(self.source).copies
        if into is None or copies is None or not copies.is_path:
            return None
        return into if "://" in into else self._resolved(into)

    def ledger_url(self) -> str:
        """Return the URL of the ledger: sqlite:////PATH with an absolute path, or the server's URL unchanged."""
        path = self.ledger.removeprefix("sqlite:///")
        return self.ledger if path == self.ledger else f"sqlite:///{self._resolved(path)}"

    @cached_property
    def _paths(self) -> dict[str, list[tuple[Hop, ...]]]:
        keys = {name: table.foreign_keys for name, table in self.tables.items() if not table.public}
        return {} if self.privacy_unit is None else paths_to_unit(keys, self.privacy_unit.table)

    def _resolved(self, path: str) -> str:
        return str(self.folder.resolve() / path)

    @cached_property
    def unprotected(self) -> Mapping[str, str]:
        """A sentence for each visible table in which some people are not protected, by its name."""
        return {
            name: f"people named by {' and '.join(table.unprotected)} are not protected in rows of {name}, however many of these "
            "name them (unprotected)"
            for name, table in self.visible.items() if table.unprotected
        }  # fmt: skip

    @property
    def unit_words(self) -> str:
        """Return the privacy unit and the notion of neighbours as the text that the ledger records."""
        unit = self.privacy_unit
        return f"{'row' if unit is None else f'{unit.table}.{unit.column}'}, {self.neighbours.value}"

    @cached_property
    def meaning(self) -> str:
        """SHA-256 (hex) of everything that answers depend on: data, unit, neighbours, tables; not budgets, names or places."""
        parts = (self.dataset, self.source, self.privacy_unit, self.neighbours, self.tables)
        return fingerprint(parts)

    @cached_property
    def marks(self) -> dict[str, str]:
        """The marks of tables and columns that were computed before (`policy.reading`)."""
        return {}

    @cached_property
    def version(self) -> str:
        """SHA-256 (hex) of everything the policy says; descriptions, order of names and comments do not matter."""
        return fingerprint(self)


def _folded(named: Mapping[str, _Named], name: str) -> _Named | None:
    """Return the entry called `name`. Names of a policy are unique without regard to case, so at most one matches."""
    return next((value for key, value in named.items() if key.lower() == name.lower()), None)


def _with_columns(table: Table, visible: Mapping[str, tuple[str, ...]]) -> Table:
    """Return a table with only the visible columns (given by table), and the keys that consist of them."""
    columns = visible[table.name]
    return replace(
        table,
        columns={name: column for name, column in table.columns.items() if name in columns},
        primary_key=table.primary_key if set(table.primary_key) <= set(columns) else (),
        unique=tuple(key for key in table.unique if set(key) <= set(columns)),
        max_multiplicity={key: most for key, most in table.max_multiplicity.items() if set(key) <= set(columns)},
        foreign_keys={
            name: (parent, key) for name, (parent, key) in table.foreign_keys.items()
            if name in columns and key in visible.get(parent, ())
        },
        unprotected=None if table.unprotected is None else tuple(c for c in table.unprotected if c in columns),
    )  # fmt: skip
