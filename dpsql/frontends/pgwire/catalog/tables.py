"""The relations of the catalogs as one analyst sees them: PostgreSQL's own rows, and those of the policy. They hold no data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from typing import Any
from zoneinfo import ZoneInfo

from dpsql.frontends.pgwire.catalog.kinds import NAMING, ObjectNames
from dpsql.frontends.pgwire.catalog.policy_rows import TYPES, PolicyRows
from dpsql.frontends.pgwire.catalog.routines import parameter_rows, routine_rows
from dpsql.frontends.pgwire.catalog.shape import (
    DOMAINS,
    INFORMATION_SCHEMA,
    PG_CATALOG,
    SCHEMAS,
    VECTORS,
    definitions,
    denied,
    relation,
    relations,
    signatures,
    static,
    static_rows,
    views,
    zones,
)
from dpsql.frontends.pgwire.constants.moments import ClockSpan, read_interval
from dpsql.frontends.pgwire.settings import Settings
from dpsql.policy import Policy
from dpsql.storage.records import dataclass, field

Row = tuple[Any, ...]


class Vector(list[Any]):
    """An array that counts from `low`: int2vector and oidvector do from 0, as do arrays made of them."""

    low = 0


def counted_from(low: int, values: Iterable[Any]) -> list[Any]:
    """Return an array whose first element has a number."""
    numbered = list(values) if low == 1 else Vector(values)
    if isinstance(numbered, Vector):
        numbered.low = low
    return numbered


def first_index(values: list[Any]) -> int:
    """Return the number of an array's first element."""
    return values.low if isinstance(values, Vector) else 1


@dataclass(frozen=True)
class Found:
    """A relation: its columns as name and type, its rows, its OID (0: its rows are no stored ones), the text that computes it
    instead if it is a view, and its kind and name if only superusers read it."""

    schema: str
    columns: tuple[tuple[str, str], ...]
    rows: Callable[[], Iterable[Row]]
    oid: int = 0
    view: str = ""
    denied: str = ""


class CatalogTables:
    """The catalogs of one analyst: their relations, and what PostgreSQL's functions look up in them. `names`: their objects."""

    def __init__(self, policy: Policy, user: str) -> None:
        self.database = policy.dataset
        self._policy, rows = policy, PolicyRows(policy, user)
        self._of_policy = defaultdict[tuple[str, str], list[Row]](list)
        for target, row in rows.rows():
            self._of_policy[target.schema, target.name].append(row)
        self._constraints = list(rows.definitions())
        self.schemas = {table.shown_schema.lower() for table in policy.visible.values()}
        self.names = ObjectNames(policy.dataset, {name: self._dicts(name) for name in NAMING})

    def _dicts(self, name: str) -> list[dict[str, Any]]:
        columns = relation(name).columns
        return [dict(zip(columns, row, strict=True)) for row in self._of_policy[PG_CATALOG, name]]

    def find(self, schema: str, name: str, path: Iterable[str]) -> Found | None:
        """Return the relation of a name, in a schema or else in those that are searched; None if there is none."""
        for listed in (schema,) if schema else (PG_CATALOG, *path):
            if (listed, name) in relations():
                return self._catalogued(listed, name)
        for table in self._policy.visible.values():  # without rows, for those who learn their columns
            if table.name.lower() == name.lower() and schema.lower() in ("", table.shown_schema.lower()):
                columns = tuple((column.name, TYPES[column.type][0]) for column in table.columns.values())
                return Found(schema or table.shown_schema, columns, tuple)
        return None

    def is_catalogued(self, names: list[str]) -> bool:
        """Return whether a relation, named with or without its schema, belongs to the catalogs."""
        schema = names[-2].lower() if len(names) > 1 else ""
        return schema in SCHEMAS or (not schema and (PG_CATALOG, names[-1].lower()) in relations())

    def _catalogued(self, schema: str, name: str) -> Found:
        listed = relations()[schema, name]
        columns = tuple((column, DOMAINS.get(type_, type_)) for column, (type_, _) in listed.columns.items())
        refused = f"{'table' if listed.kind == 'r' else 'view'} {name}" if name in denied() else ""
        view = views().get((schema, name), "")
        rows = zone_rows if name == "pg_timezone_names" else lambda: self.rows(name, schema)
        return Found(schema, columns, rows, listed.oid, view, refused)

    def rows(self, name: str, schema: str = PG_CATALOG) -> list[Row]:
        """Return the rows of a relation that is stored."""
        types = [type_ for type_, _ in relations()[schema, name].columns.values()]
        of_policy = self._of_policy.get((schema, name))
        everywhere = _everywhere(schema, name, self.database)
        return everywhere + [_valued(row, types) for row in of_policy] if of_policy else everywhere

    # --- what functions look up ---------------------------------------------------------------------------------------

    @cached_property
    def comments(self) -> Mapping[tuple[int, int], list[tuple[int, str]]]:
        """The comments on an object and one of its columns (0: itself), each with the relation in which the object is."""
        comments = defaultdict[tuple[int, int], list[tuple[int, str]]](list)
        for oid, relation_, number, text in self.rows("pg_description"):
            comments[oid, number].append((relation_, text))
        return comments

    @cached_property
    def constraints(self) -> Mapping[int, tuple[str, str, str]]:
        """The definition of each constraint; that of a foreign key also with the schema that it refers to, and this schema."""
        return {
            oid: (text, full if schema and not index else text, "" if index else schema or "")
            for oid, index, text, full, schema, _ in (*definitions(), *self._constraints)
            if oid
        }

    @cached_property
    def indexes(self) -> Mapping[int, tuple[str, str, list[str]]]:
        """The definition of each index, the same without its schema, and its columns."""
        listed = (*definitions(), *self._constraints)
        return {index: (text, short, columns) for _, index, _, text, short, columns in listed if index and text}

    @cached_property
    def columns(self) -> Mapping[int, dict[Any, int]]:
        """The number of each column of a relation, by its name and by its number."""
        columns = defaultdict[int, dict[Any, int]](dict)
        indexes = {name: k for k, name in enumerate(relation("pg_attribute").columns)}
        for row in self.rows("pg_attribute"):
            number = row[indexes["attnum"]]
            columns[row[indexes["attrelid"]]] |= {row[indexes["attname"]]: number, number: number}
        return columns

    def schema_name(self, oid: int) -> str:
        """Return the name of a schema."""
        return self._schema_names.get(oid, "")

    @cached_property
    def _schema_names(self) -> dict[int, str]:
        columns = list(relation("pg_namespace").columns)
        return {row[columns.index("oid")]: row[columns.index("nspname")] for row in self.rows("pg_namespace")}

    def schema_of(self, name: str, oid: int) -> int | None:
        """Return the OID of the schema of an object in a relation such as pg_type; None if there is none."""
        return self._namespaces(name).get(oid)

    def _namespaces(self, name: str) -> dict[int, int]:
        if name not in self._spaces:
            columns = list(relation(name).columns)
            index = next(k for k, column in enumerate(columns) if column.endswith("namespace"))
            self._spaces[name] = {row[columns.index("oid")]: row[index] for row in self.rows(name)}
        return self._spaces[name]

    @cached_property
    def _spaces(self) -> dict[str, dict[int, int]]:
        return {}

    @cached_property
    def role_oids(self) -> Mapping[str, int]:
        """The OID of each role."""
        return {name: oid for oid, (name, _) in self.roles.items()}

    @cached_property
    def roles(self) -> Mapping[int, tuple[str, bool]]:
        """The name of each role, and whether it may do everything."""
        indexes = {name: k for k, name in enumerate(relation("pg_roles").columns)}
        return {
            row[indexes["oid"]]: (row[indexes["rolname"]], row[indexes["rolsuper"]]) for row in self.rows("pg_roles")
        }


@dataclass(frozen=True)
class CatalogContext:
    """The asker and the connection, for functions such as current_user. `options`: those of the session at present, by their
    names with `dp.`."""

    user: str
    settings: Settings
    process: int
    tables: CatalogTables
    options: Callable[[], Mapping[str, str]] = dict
    change: Callable[[str, str | None, bool], None] = lambda name, value, local: None
    """Sets a setting of the connection to a value (None: its first one), until the end of the transaction or for longer."""
    check: Callable[[], None] = lambda: None
    """Raises if the statement is to stop."""
    connection_rows: Callable[[str], list[tuple[Any, ...]]] = lambda kind: []
    """What the connection keeps: the rows of pg_prepared_statements ("statements") or of pg_cursors ("cursors"), and the text
    that it answers ("query")."""
    turn: Callable[[], None] = lambda: None
    """Waits for the turn of a statement that takes long."""
    end_turn: Callable[[], None] = lambda: None
    """Ends that turn before the statement does."""
    locks: dict[tuple[Any, ...], int] = field(default_factory=dict)
    """How often the connection holds each advisory lock: whether it is shared, and its keys."""

    @property
    def database(self) -> str:
        return self.tables.database

    @property
    def names(self) -> ObjectNames:
        return self.tables.names

    @property
    def path(self) -> list[str]:
        """The schemas of `search_path` that exist, in its order."""
        listed = [part.strip().strip('"') for part in self.settings.get("search_path").split(",")]
        return [name for name in listed if name.lower() in {"public", *SCHEMAS, *self.tables.schemas}]

    def value(self, function: str) -> str:
        """Return the value of a session function."""
        version = f"PostgreSQL {self.settings.get('server_version')} (dpsql: private answers)"
        schema = next(iter(self.path), "public")
        return {"user": self.user, "database": self.database, "schema": schema, "version": version}[function]


@cache
def _everywhere(schema: str, name: str, database: str) -> list[Row]:
    types = [type_ for type_, _ in relations()[schema, name].columns.values()]
    if schema == INFORMATION_SCHEMA and name in ("routines", "parameters"):
        return list(routine_rows(database) if name == "routines" else parameter_rows(database))
    return [_valued(row, types) for row in static_rows(name, schema, database)]


def _valued(row: Row, types: list[str]) -> Row:
    if not any(type_ in _READ for type_ in types):
        return row
    return tuple(
        _READ[type_](value) if type_ in _READ and value is not None else value
        for value, type_ in zip(row, types, strict=True)
    )


_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(VECTORS, Vector),
    "interval": lambda text: read_interval(text, None),
}


def zone_rows() -> list[Row]:
    """Return PostgreSQL's time zones as they are at the moment of the question."""
    rows, now = list[Row](), datetime.now(UTC)
    for name, standard, summer in zones():
        moment = now.astimezone(ZoneInfo(name))
        is_summer = bool(moment.dst())
        micros = (moment.utcoffset() or timedelta()) // timedelta(microseconds=1)
        rows.append((name, summer if is_summer else standard, ClockSpan(0, 0, micros), is_summer))
    return rows


@cache
def function_texts() -> dict[int, tuple[str, str, str | None]]:
    """Return the arguments of each function, those without their defaults, and its result, as SQL."""
    return {oid: (arguments, identity, result) for oid, arguments, identity, result in signatures()}


@cache
def _views_with_text() -> dict[int, str]:
    rows = static("pg_views")
    oids = {(item.schema, item.name): item.oid for item in relations().values()}
    listed = zip(rows["schemaname"], rows["viewname"], rows["definition"], strict=True)
    return {oids[schema, name]: text for schema, name, text in listed if (schema, name) in oids}


def view_text(oid: int) -> str | None:
    """Return the definition of a view."""
    return _views_with_text().get(oid)
