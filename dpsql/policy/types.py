"""The owner's policy as frozen values: protected tables, the privacy unit, bounds of values, and budgets.

All numbers are exact: `int` or `fractions.Fraction`; dates are `datetime.date`, timestamps naive
`datetime.datetime`.  A `Policy` from `load_policy` is consistent: every protected table reaches the
privacy unit by exactly one path of foreign keys, every name exists, and bounds come in pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from dpsql.policy import values
from dpsql.policy.fields import (
    LEFT_OUT_AT_DEFAULT,
    Entries,
    KeysOf,
    PolicyKey,
    WordOr,
    also,
    fingerprint,
    key,
    keys_of,
    option,
    written_as,
)
from dpsql.policy.reach import Hop, is_file, joins_of, links_within, paths_to_unit, within
from dpsql.policy.source_kinds import DUCKDB, source_kind
from dpsql.policy.yaml_text import Origin
from dpsql.privacy.accounting import ACCOUNTANTS
from dpsql.privacy.ledger_units import EVERY
from dpsql.privacy.loss import Neighbours
from dpsql.privacy.mechanisms.registry import ANNEXES, askable
from dpsql.storage.records import dataclass, field, fields, replace

# --- contribution bounds ----------------------------------------------------------------------------------------------

_Bound = TypeVar("_Bound", int, Fraction)


@dataclass(frozen=True)
class ContributionBounds:
    """Upper bounds on the contribution of one privacy unit; a bound that is not set is None.

    `max_rows` bounds its rows in one table, `max_groups` the groups in which it appears, `max_rows_per_group` its rows in one
    group: rows beyond these are dropped. `max_total` (in the unit of the summed value) and `max_count` (rows) bound its
    SUM and its COUNT over all groups together: a sum beyond them is scaled down. `max_values` bounds the distinct values that
    it contributes to a values.COUNT(DISTINCT x), over all groups together: its other values are left out.
    """

    max_rows: int | None = option(None, values.COUNT, "the most rows one privacy unit contributes")
    max_groups: int | None = option(None, values.COUNT, "the most groups one privacy unit appears in")
    max_rows_per_group: int | None = option(None, values.COUNT, "the most rows of one unit in one group")
    max_total: Fraction | None = None
    max_count: int | None = option(None, values.COUNT, "the most one privacy unit adds to a COUNT; more is scaled down")
    max_values: int | None = option(
        None,
        values.COUNT,
        "the most different values one privacy unit brings to a values.COUNT(DISTINCT); others are left out",
    )

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
        values = map(attrgetter(*BOUND_NAMES), (self, *further))
        return ContributionBounds(*map(smallest, *values))


UNBOUNDED = ContributionBounds()
BOUND_NAMES = tuple(entry.name for entry in fields(ContributionBounds))


def smallest(*bounds: _Bound | None) -> _Bound | None:
    """Return the smallest bound that is set, or None if none is."""
    return min((bound for bound in bounds if bound is not None), default=None)


TABLE_BOUNDS = ("max_rows", "max_groups", "max_rows_per_group", "max_count", "max_values")
"""Bounds that a table of a policy may have."""


def _keys(*names: str) -> dict[str, PolicyKey]:
    """Return the keys of contribution bounds, which a mapping of the policy file has beside its other keys."""
    return {name: declared for name, declared in keys_of(ContributionBounds).items() if name in names}


Value = values.Value
COLUMN_TYPES = ("integer", "real", "text", "boolean", "date", "timestamp")
DEFAULT_SCHEMAS = ("main", "public")
"""The schema names that mean tables for which the policy names no schema."""
_Named = TypeVar("_Named")


@dataclass(frozen=True)
class PrivacyUnit:
    """The column whose values identify the privacy units; foreign keys lead from the rows of other tables to their unit."""

    table: str = field(metadata=key(values.NAME))
    column: str = field(metadata=key(values.NAME))


@dataclass(frozen=True)
class LifetimeLimit:
    """The limit for all windows of a budget together."""

    epsilon: Fraction = field(metadata=key(values.EPSILON))
    delta: Fraction = field(metadata=key(values.DELTA, "that of one window if left out", optional=True))


@dataclass(frozen=True)
class DatasetBudget:
    """The limit of the privacy loss of the whole dataset.

    `delta` is 0 only under the accountant "pure". `every`: the limits of the dataset, analysts and projects hold for each window
    of this length (`privacy.ledger_units`); None: they hold for all questions ever. `lifetime` limits all windows
    together (or None).
    """

    epsilon: Fraction = field(metadata=key(values.EPSILON))
    delta: Fraction = field(
        metadata=key(values.DELTA, "needed under zcdp; under pure only private keys use it", optional=True)
    )
    accountant: str = option("zcdp", values.one_of(*ACCOUNTANTS))
    every: str | None = option(
        None,
        values.one_of(*EVERY),
        "a budget of its own for each of these; one for all time if left out",
        left_out=True,
    )
    lifetime: LifetimeLimit | None = option(
        None,
        KeysOf(LifetimeLimit),
        "with every: the limit of all windows together; no limit if left out",
        left_out=True,
    )

    @property
    def is_limited(self) -> bool:
        """Return whether the total privacy loss of all questions ever has a limit."""
        return self.every is None or self.lifetime is not None


@dataclass(frozen=True)
class PerQuery:
    """Defaults and limits of one query.

    Private keys are refused if `delta`, that of partition selection, is 0. `mechanism` is "auto" or a word of the registry.
    `timeout_seconds` stops the engine.
    """

    epsilon: Fraction = field(
        metadata=key(values.EPSILON, "charged when a query names none; 0.1 when left out", optional=True)
    )
    max_epsilon: Fraction | None = field(metadata=key(values.EPSILON, "the most a query may name", optional=True))
    delta: Fraction = field(
        metadata=key(values.DELTA, "for partition selection; a thousandth of the budget's when left out", optional=True)
    )
    mechanism: str = option("auto", values.one_of("auto", *(mechanism.word for mechanism in askable())))
    confidence: Fraction = option(
        Fraction(95, 100), values.CONFIDENCE, "of the error bars; 0.95 when left out", optional=True
    )
    timeout_seconds: int = option(300, values.SECONDS)
    max_public_groups: int = option(1_000_000, values.COUNT, "the longest grid of public keys")
    min_epsilon: Fraction = option(
        Fraction(0),
        values.EPSILON,
        "the least a query spends; the smaller of 0.001 and a thousandth of the budget's",
        optional=True,
    )
    bounds: ContributionBounds = field(
        default=UNBOUNDED,
        metadata=also(written_as("max_groups", "max_rows_per_group"), **_keys("max_groups", "max_rows_per_group")),
    )
    min_units: int | None = option(
        None, values.COUNT, "groups with fewer units, by a noisy count, are not shown; all if left out", left_out=True
    )


@dataclass(frozen=True)
class TableAccess:
    """The columns of a table that one analyst may name, and the rows that exist for them.

    `columns`: None for all columns. `where`: a condition in SQL over all columns of the table, hidden ones included; None
    for all rows. It filters the bounded view, as a WHERE of the question does.
    """

    columns: tuple[str, ...] | None = None
    where: str | None = None


@dataclass(frozen=True)
class SessionLimit:
    """The budget of one session (one connection), or of one person for whom the client of an analyst says that it asks."""

    epsilon: Fraction = field(metadata=key(values.EPSILON))
    delta: Fraction | None = field(metadata=key(values.DELTA, optional=True))


@dataclass(frozen=True)
class Analyst:
    """The part of the dataset's budget that one analyst may spend; with `delta` None, only the dataset's delta is the limit.

    `access`: the tables that exist for the analyst; None for all tables, with all columns and rows. `people`: those who share the
    login and have a limit of their own.
    """

    epsilon: Fraction = field(metadata=key(values.EPSILON))
    delta: Fraction | None = field(metadata=key(values.DELTA, optional=True))
    access: Mapping[str, TableAccess] | None = field(
        default=None,
        hash=False,
        metadata=also(
            LEFT_OUT_AT_DEFAULT,
            tables=PolicyKey(values.TABLE_NAMES, "the tables that exist for them; all if left out"),
            columns=PolicyKey(
                Entries(values.NAME, values.NAMES),
                "table to the columns that exist for them; all of a table left out",
                default=(),
            ),
            where=PolicyKey(
                Entries(values.NAME, values.PROSE),
                "protected table to a condition in SQL: other rows do not exist for them",
                default=(),
            ),
        ),
    )
    people: Mapping[str, SessionLimit] = option(
        {}, Entries(values.LOGIN, KeysOf(SessionLimit)), "limits of persons whom clients name", left_out=True
    )
    bars: bool = option(False, values.TRUTH, "dp.bars of their sessions over the wire", left_out=True)


@dataclass(frozen=True)
class ProjectLimit:
    """The budget of all questions of one project together; with `delta` None, only the dataset's delta is the limit.

    `members`: the analysts who, besides the owner, may charge the project; None: all analysts.
    """

    epsilon: Fraction = field(metadata=key(values.EPSILON))
    delta: Fraction | None = field(metadata=key(values.DELTA, optional=True))
    members: tuple[str, ...] | None = option(
        None, values.LOGINS, "analysts who may charge it; all if left out", left_out=True
    )


@dataclass(frozen=True)
class ReusePolicy:
    """The rules by which stored releases answer instead of a new charge."""

    default: str = option("on", values.one_of("off", "on", "derive"), "dp.reuse of a session that sets none")
    shared: bool = option(True, values.TRUTH, "a release answers every analyst, else only the one charged")
    more_accurate: bool = option(True, values.TRUTH, "a release with less noise than asked for answers too")


@dataclass(frozen=True)
class StorePolicy:
    """How much is stored beside the ledger. The oldest is removed first."""

    analyst_mb: int = option(256, values.COUNT, "most megabytes of answers to one analyst's questions")
    answers_mb: int = option(2048, values.COUNT, "most megabytes of stored answers in all")
    question_days: int = option(90, values.COUNT, "how many days the texts of questions stay")
    questions_mb: int = option(64, values.COUNT, "most megabytes of the texts of questions")


@dataclass(frozen=True)
class PolicyColumn:
    """One column; `type` is one of `COLUMN_TYPES`.

    `lower` and `upper` come together or not at all (closed interval, typed by the column's type). None in `domain` means that
    NULL is a key. `max_total` is in the column's unit and holds over all groups together. `outside` is the key of the group of
    all values outside the domain or the bounds (None: they belong to no group). Points of time are timestamps with a zone, and
    texts with an offset.
    """

    name: str
    type: str = field(metadata=key(values.one_of(*COLUMN_TYPES, read=values.column_type)))
    lower: Value | None = option(None, values.BOUND, "values below are clamped to it")
    upper: Value | None = option(None, values.BOUND, "values above are clamped to it")
    domain: tuple[Value | None, ...] | None = option(None, values.DOMAIN, "public keys, in the order of answers")
    nullable: bool = option(True, values.TRUTH)
    description: str = option("", values.PROSE)
    max_total: Fraction | None = option(
        None, values.AMOUNT, "the most one privacy unit adds to a SUM of the column; more is scaled down"
    )
    outside: Value | None = option(
        None, values.OUTSIDE, "of a group key: values that are no public key are dropped, or form one more group"
    )
    source: str | None = option(
        None, values.PROSE, "its name in files or in DuckDB, where that is another one", name="from", left_out=True
    )
    timezone: str | None = option(
        None,
        values.TIME_ZONE,
        "the zone by whose clock points of time are read; that of the file, else UTC",
        left_out=True,
    )
    scale: int | None = option(None, values.SCALE, "of decimals: the digits after the point", left_out=True)

    @property
    def remark(self) -> str:
        """The description, and the zone by whose clock points of time are read."""
        clock = None if self.timezone is None else f"points of time by the clock of {self.timezone}"
        return "; ".join(filter(None, (self.description, clock)))

    @property
    def source_name(self) -> str:
        return self.name if self.source is None else self.source


@dataclass(frozen=True)
class CsvDialect:
    """The dialect of the CSV files of a table.

    `quote` is "" if no character quotes; `header` is None if the first line of each file names the columns.
    """

    delimiter: str = option(",", values.DELIMITER, "one character between cells")
    quote: str = option('"', values.QUOTE, 'one character around cells that hold delimiters, or "none"')
    header: tuple[str, ...] | None = option(
        None, values.HEADER, "true: the first line of each file names its columns; or their names in order"
    )
    null: tuple[str, ...] = option(("",), values.NULL_TEXTS, "texts that mean NULL; the empty text")
    multiline: bool = option(
        False, values.TRUTH, "quoted cells may hold line breaks; such files are read by dpsql prepare alone"
    )
    encoding: str = option("utf-8", values.one_of(*values.ENCODINGS), "how files hold their characters", left_out=True)
    decimal: str = option(
        ".", values.one_of(".", ","), "before tenths; with a comma, points may stand between thousands", left_out=True
    )
    days: str = option("ymd", values.one_of("ymd", "dmy", "mdy"), "order in days; ISO days are read too", added=True)


@dataclass(frozen=True)
class Table:
    """One table as analysts see it.

    `schema` is the schema in which analysts see it, None for the default one; table names are unique over all schemas.
    `source` is its physical name (`schema.table`) or file glob if different; `unique` are column sets, besides
    `primary_key`, on which no two rows agree; `max_multiplicity` maps a column set of a public table to the most rows that
    agree on it; `foreign_keys` maps a column to (parent table, parent column), `same_unit` to (table, column) whose equal values
    belong to one unit (a promise about joins; rows of two units never meet). `unprotected`: columns that name further units,
    whose part in these rows nothing bounds, none of them in `foreign_keys` (None: the file does not say). `bounds`: the
    most that one privacy unit contributes (`max_rows` is 1 under row privacy; a public table has none). `columns` holds every
    column that the policy names, key columns included. `csv` is the dialect of its files, None if it is not read from CSV files.
    `rows`: the column names and rows of a public table in its source, if they are few (None: unknown; never from the policy
    file); `row_count`: the number of its rows. `append_only`: rows are only added, and only in new files, so that the choice of
    the rows of a unit that stay is the same for all versions of the data.
    """

    name: str
    public: bool = option(False, values.TRUTH)
    columns: Mapping[str, PolicyColumn] = option({}, Entries(values.NAME, KeysOf(PolicyColumn)))
    source: str | None = option(None, values.PROSE, "schema.table, or a file glob, when different")
    primary_key: tuple[str, ...] = option((), values.NAMES)
    unique: tuple[tuple[str, ...], ...] = option((), values.NAME_SETS)
    max_multiplicity: Mapping[tuple[str, ...], int] = option(
        {}, Entries(values.NAME_SET, values.COUNT), "public tables: columns to the most rows that agree on them"
    )
    foreign_keys: Mapping[str, tuple[str, str]] = option(
        {}, Entries(values.NAME, values.REFERENCE), "column to parent.column"
    )
    same_unit: Mapping[str, tuple[str, str]] = option(
        {}, Entries(values.NAME, values.REFERENCE), "column to table.column: equal values, one unit", left_out=True
    )
    bounds: ContributionBounds = field(
        default=UNBOUNDED, metadata=also(written_as(*TABLE_BOUNDS), **_keys(*TABLE_BOUNDS))
    )
    description: str = option("", values.PROSE)
    csv: CsvDialect | None = option(None, KeysOf(CsvDialect), "how this table's CSV files are written")
    schema: str | None = option(
        None, values.NAME, "the schema in which analysts see it, when not public", left_out=True
    )
    append_only: bool = option(
        False,
        values.TRUTH,
        "rows only come, in new files of a glob: a prepared copy takes them from these alone",
        left_out=True,
    )
    unprotected: tuple[str, ...] | None = option(
        None,
        values.FURTHER_NAMES,
        "columns that name further people, of whom rows of others tell; [] if no column does",
    )
    rows: tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]] | None = field(default=None, compare=False, repr=False)
    row_count: int | None = field(default=None, compare=False, repr=False)

    @property
    def shown_schema(self) -> str:
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

    `into` is None if copies are DuckDB files; `role` is None for the role of the source.
    """

    automatic: bool = field(default=False, metadata=also({}, when=PolicyKey(values.one_of("auto", "manual"))))
    into: str | None = option(
        None, values.PROSE, "a schema of the PostgreSQL server that holds the data, or a folder (path or URL) for Spark"
    )
    role: str | None = option(None, values.NAME, "the role that writes there, if the source's own may not")
    most_mb: int = option(
        10_240, values.COUNT, "auto: files of more megabytes in all are copied by dpsql prepare alone", left_out=True
    )


@dataclass(frozen=True)
class Timing:
    """Every question is answered at one time."""

    constant_seconds: Fraction = field(metadata=key(values.DELAY, "an answer that is not there by then is a fault"))


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

    dataset: str = field(metadata=key(values.NAME))
    source: str | None = field(
        metadata=key(values.PROSE, "duckdb:///file.duckdb, postgresql://..., spark://... or a file glob", optional=True)
    )
    privacy_unit: PrivacyUnit | None = field(metadata=key(WordOr(values.ROW, KeysOf(PrivacyUnit))))
    neighbours: Neighbours = field(metadata=key(values.one_of(*(n.value for n in Neighbours)), optional=True))
    budget: DatasetBudget = field(metadata=key(KeysOf(DatasetBudget)))
    per_query: PerQuery = field(metadata=key(KeysOf(PerQuery), optional=True))
    ledger: str = field(metadata=key(values.PROSE, "sqlite:///file.db or postgresql://..."))
    analysts: Mapping[str, Analyst] = field(
        hash=False, metadata=key(Entries(values.LOGIN, KeysOf(Analyst)), optional=True)
    )
    session: SessionLimit | None = field(metadata=key(KeysOf(SessionLimit), optional=True))
    tables: Mapping[str, Table] = field(
        hash=False,
        metadata=also(
            key(Entries(values.NAME, KeysOf(Table))),
            csv=PolicyKey(KeysOf(CsvDialect), "how all CSV files are written"),
            timezone=PolicyKey(
                values.TIME_ZONE, "the zone by whose clock all points of time are read; UTC if left out"
            ),
        ),
    )
    description: str = option("", values.PROSE)
    projects: Mapping[str, ProjectLimit] = option(
        {}, Entries(values.LOGIN, KeysOf(ProjectLimit)), "what a project may spend, whoever asks"
    )
    reuse: ReusePolicy = option(ReusePolicy(), KeysOf(ReusePolicy))
    store: StorePolicy = option(StorePolicy(), KeysOf(StorePolicy), left_out=True)
    timing: str = option(
        "plain",
        WordOr(values.one_of("plain", "padded"), KeysOf(Timing)),
        "padded: a response takes one of few round times",
    )
    constant_seconds: Fraction | None = None
    data_version: str | None = option(
        None, values.PROSE, "the owner's name for the state of the data; or hourly, daily, weekly, monthly"
    )
    witness: str | None = option(
        None,
        values.PROSE,
        "file:///FOLDER or postgresql://... on another machine, for the ledger's head",
        left_out=True,
    )
    mechanisms: tuple[str, ...] = option(
        tuple(ANNEXES),
        values.some_of(*ANNEXES),
        "rare mechanisms that questions may use; all if left out, none of them with []",
        left_out=True,
    )
    log_sql: bool | None = option(
        None,
        values.TRUTH,
        "true: texts of questions are in audit log and traces too; false: they are nowhere",
        left_out=True,
    )
    prepare: Preparation = option(
        Preparation(),
        WordOr(values.one_of("auto", "manual"), KeysOf(Preparation)),
        "auto: a server prepares copies by itself",
        left_out=True,
    )
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
        """Return the policy with its tables read from memory under their own names: every question keeps its meaning."""
        tables: dict[str, Table] = {}
        for name, table in self.tables.items():
            columns = {column: replace(about, source=None) for column, about in table.columns.items()}
            tables[name] = replace(table, source=None, csv=None, columns=columns)
        return replace(self, source=None, tables=tables, timing="plain", constant_seconds=None, data_version="memory")

    def copies_folder(self) -> str | None:
        """Return the folder of Spark's copies, an absolute path or a URL; None if they are elsewhere or it names none."""
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
        return within(self.folder.resolve(), path)

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
        """The marks of tables and columns that were computed before (`policy.versions`)."""
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
        foreign_keys=links_within(table.foreign_keys, columns, visible),
        same_unit=links_within(table.same_unit, columns, visible),
        unprotected=None if table.unprotected is None else tuple(c for c in table.unprotected if c in columns),
    )  # fmt: skip
