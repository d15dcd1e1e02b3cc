"""The policy as rows of PostgreSQL's catalogs: the structure that one analyst sees, and no data."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from dpsql.frontends.pgwire.catalog.shape import (
    INFORMATION_SCHEMA,
    OWNER,
    PG_CATALOG,
    Relation,
    namespaces,
    quoted,
    relation,
    static,
    type_names,
)
from dpsql.frontends.pgwire.settings import SETTINGS
from dpsql.frontends.rendering.tables import column_comment, table_comment
from dpsql.policy import Policy, Table
from dpsql.policy.types import PolicyColumn
from dpsql.storage.records import dataclass

FIRST_OID = 16384
FIRST_SCHEMA = 13001
"""OID of the first schema that the policy names; those of the tables start at `FIRST_OID`."""
OWNER_ROLE, ANALYST_ROLE, DATABASE = OWNER, 16383, 5
ROW_TYPE = 998
"""Where the OID of the type of a table's rows stands behind the table's; that of its arrays is the next one."""
TYPES = {
    "integer": ("int8", 20, 8, "bigint"), "real": ("float8", 701, 8, "double precision"), "text": ("text", 25, -1,
    "text"),
    "boolean": ("bool", 16, 1, "boolean"), "date": ("date", 1082, 4, "date"),
    "timestamp": ("timestamp", 1114, 8, "timestamp without time zone"),
}  # fmt: skip
"""Name, OID, size and SQL name in PostgreSQL, by policy type."""

_BTREE = 403
_SYSTEM_COLUMNS = (
    (-6, "tableoid", "oid"), (-5, "cmax", "cid"), (-4, "xmax", "xid"), (-3, "cmin", "cid"), (-2, "xmin", "xid"),
    (-1, "ctid", "tid"),
)  # fmt: skip
_SETTING_FACTS = (
    "name", "unit", "category", "short_desc", "extra_desc", "context", "vartype", "min_val", "max_val", "enumvals",
)  # fmt: skip
Rows = Iterator[tuple[Relation, tuple[Any, ...]]]


@dataclass(frozen=True)
class TableKey:
    """A constraint of a table. `kind`: "p" primary, "u" unique, "f" foreign; `oid`: that of the constraint; `index`: that of its
    index, for a foreign key that of the key it refers to, or 0."""

    kind: str
    name: str
    oid: int
    index: int
    columns: tuple[str, ...]
    refers: tuple[str, tuple[str, ...]] | None = None


class PolicyRows:
    """The catalog rows that describe the policy's tables."""

    def __init__(self, policy: Policy, user: str) -> None:
        self._policy, self._user = policy, user
        self._owner = "postgres" if user != "postgres" else "owner"
        schemas = {table.shown_schema for table in policy.visible.values()} - namespaces().keys()
        self._namespaces = {**namespaces(), **{name: FIRST_SCHEMA + n for n, name in enumerate(sorted(schemas))}}
        self._oids = {name: FIRST_OID + 1000 * index for index, name in enumerate(policy.visible)}

    @property
    def oids(self) -> dict[str, int]:
        """The OID of each table, by its name."""
        return dict(self._oids)

    def rows(self) -> Rows:
        """Yield (relation, row) for all catalog rows."""
        yield from self._database()
        for table in self._policy.visible.values():
            yield from self._table(table)

    def definitions(self) -> Iterator[tuple[int, int, str, str, str, list[str]]]:
        """Yield for each constraint its OID, that of its index, the two as SQL, the index without its schema, and its columns.
        Without an index there stands a foreign key with the schema that it refers to, and this schema."""
        for table in self._policy.visible.values():
            for key in self._keys(table):
                listed = ", ".join(map(quoted, key.columns))
                if key.refers is not None:
                    schema = self._policy.visible[key.refers[0]].shown_schema
                    parent = f"{quoted(key.refers[0])}({', '.join(map(quoted, key.refers[1]))})"
                    text = f"FOREIGN KEY ({listed}) REFERENCES"
                    yield key.oid, 0, f"{text} {parent}", f"{text} {quoted(schema)}.{parent}", schema, list(key.columns)
                    continue
                word = "PRIMARY KEY" if key.kind == "p" else "UNIQUE"
                index, rest = (
                    f"CREATE UNIQUE INDEX {quoted(key.name)} ON",
                    f"{quoted(table.name)} USING btree ({listed})",
                )
                texts = (f"{word} ({listed})", f"{index} {quoted(table.shown_schema)}.{rest}", f"{index} {rest}")
                yield key.oid, key.index, *texts, list(map(quoted, key.columns))

    def _database(self) -> Rows:
        yield relation("pg_database"), relation("pg_database").row(
            oid=DATABASE, datname=self._policy.dataset, datdba=OWNER_ROLE, encoding=6, datlocprovider="c",
            datallowconn=True,
            datconnlimit=-1, dattablespace=1663, datcollate="C", datctype="C",
        )  # fmt: skip
        for oid, name, owns in ((OWNER_ROLE, self._owner, True), (ANALYST_ROLE, self._user, False)):
            yield relation("pg_roles"), relation("pg_roles").row(
                oid=oid, rolname=name, rolsuper=owns, rolinherit=True, rolcreaterole=owns, rolcreatedb=owns,
                rolcanlogin=True, rolconnlimit=-1, rolreplication=owns, rolbypassrls=owns, rolpassword="********",
            )  # fmt: skip
            yield relation("pg_user"), relation("pg_user").row(
                usename=name, usesysid=oid, usecreatedb=owns, usesuper=owns, userepl=owns, usebypassrls=owns,
                passwd="********",
            )  # fmt: skip
        for setting in SETTINGS.values():
            facts = {name: getattr(setting, name) for name in _SETTING_FACTS}
            yield (
                relation("pg_settings"),
                relation("pg_settings").row(
                    **facts,
                    setting=setting.value,
                    source="default",
                    boot_val=setting.value,
                    reset_val=setting.value,
                    pending_restart=False,
                ),
            )
        yield _counters("stat_database", datid=DATABASE, datname=self._policy.dataset, numbackends=1)
        if self._policy.description:
            yield _description(DATABASE, 0, self._policy.description)
        for schema, oid in self._namespaces.items():
            if schema not in namespaces():
                yield (
                    relation("pg_namespace"),
                    relation("pg_namespace").row(oid=oid, nspname=schema, nspowner=OWNER_ROLE),
                )
            if schema != "pg_toast":
                owner = "pg_database_owner" if schema == "public" else self._owner
                yield _info("schemata", catalog_name=self._policy.dataset, schema_name=schema, schema_owner=owner)
        yield _info("information_schema_catalog_name", catalog_name=self._policy.dataset)
        yield _info("enabled_roles", role_name=self._user)
        yield _info(
            "character_sets", character_set_name="UTF8", character_repertoire="UCS", form_of_use="UTF8",
            default_collate_catalog=self._policy.dataset, default_collate_schema=PG_CATALOG, default_collate_name="C",
        )  # fmt: skip

    def _table(self, table: Table) -> Rows:
        oid, keys = self._oids[table.name], list(self._keys(table))
        indexed = [key for key in keys if key.refers is None]
        yield relation("pg_class"), relation("pg_class").row(
            oid=oid, relname=table.name, relnamespace=self._schema_oid(table),
            reltype=oid + ROW_TYPE, relfilenode=oid, relowner=OWNER_ROLE, relam=2, relkind="r", reltuples=-1.0,
            relnatts=len(table.columns), relpersistence="p", relreplident="d", relispopulated=True,
            relhasindex=bool(indexed),
            relhastriggers=self._is_linked(table),
            relacl=[f"{self._owner}=arwdDxt/{self._owner}", f"{quoted(self._user)}=r/{self._owner}"],
        )  # fmt: skip
        yield relation("pg_tables"), relation("pg_tables").row(
            schemaname=table.shown_schema, tablename=table.name, tableowner=self._owner, hasindexes=bool(indexed), hasrules=False,
            hastriggers=self._is_linked(table), rowsecurity=False,
        )  # fmt: skip
        names = {
            "table_catalog": self._policy.dataset,
            "table_schema": table.shown_schema,
            "table_name": table.name,
        }
        yield _info("tables", **names, table_type="BASE TABLE", is_insertable_into="NO", is_typed="NO")
        yield from _dependencies("pg_type", oid + ROW_TYPE, "i", "pg_class", oid, [0])
        for view in ("stat_all_tables", "stat_user_tables", "statio_all_tables", "statio_user_tables"):
            yield _counters(view, relid=oid, schemaname=table.shown_schema, relname=table.name)
        yield _description(oid, 0, table_comment(self._policy, table))
        for number, column in enumerate(table.columns.values(), 1):
            yield from self._column(table, column, number, names)
        for number, name, type_ in _SYSTEM_COLUMNS:
            yield (
                relation("pg_attribute"),
                _attribute(oid, number, name, (type_names()[type_], 6 if type_ == "tid" else 4), True),
            )
        yield from self._row_types(table)
        for key in keys:
            yield from self._key(table, key, names)

    def _row_types(self, table: Table) -> Rows:
        """Yield the type of a table's rows and that of their arrays."""
        oid, functions = self._oids[table.name] + ROW_TYPE, _functions()
        facts = {"typnamespace": self._schema_oid(table), "typowner": OWNER_ROLE, "typisdefined": True, "typdelim": ",",
                 "typalign": "d", "typstorage": "x", "typlen": -1, "typtypmod": -1}  # fmt: skip
        yield relation("pg_type"), relation("pg_type").row(
            **facts, oid=oid, typname=table.name, typtype="c", typcategory="C", typrelid=self._oids[table.name],
            typarray=oid + 1, **{f"typ{use}": functions[f"record_{word}"] for use, word in _RECORD_USES.items()},
        )  # fmt: skip
        yield relation("pg_type"), relation("pg_type").row(
            **facts, oid=oid + 1, typname=f"_{table.name}", typtype="b", typcategory="A", typelem=oid,
            typanalyze=functions["array_typanalyze"], typsubscript=functions["array_subscript_handler"],
            **{f"typ{use}": functions[f"array_{word}"] for use, word in _RECORD_USES.items()},
        )  # fmt: skip

    def _column(self, table: Table, column: PolicyColumn, number: int, names: dict[str, str]) -> Rows:
        type_name, type_oid, size, sql_name = TYPES[column.type]
        not_null = not column.nullable or column.name in table.primary_key
        yield (
            relation("pg_attribute"),
            _attribute(self._oids[table.name], number, column.name, (type_oid, size), not_null),
        )
        precision = {"integer": (64, 2, 0), "real": (53, 2, None)}.get(column.type, (None, None, None))
        yield _info(
            "columns", **names, column_name=column.name, ordinal_position=number,
            is_nullable="NO" if not_null else "YES",
            data_type=sql_name, udt_catalog=self._policy.dataset, udt_schema=PG_CATALOG, udt_name=type_name,
            numeric_precision=precision[0], numeric_precision_radix=precision[1], numeric_scale=precision[2],
            datetime_precision={"date": 0, "timestamp": 6}.get(column.type), dtd_identifier=str(number),
            is_identity="NO",
            is_self_referencing="NO", identity_cycle="NO", is_generated="NEVER", is_updatable="NO",
            character_octet_length=1073741824 if column.type == "text" else None,
        )  # fmt: skip
        if not_null:
            yield from self._not_null(table, column, number, names)
        comment = column_comment(self._policy, table, column)
        if comment:
            yield _description(self._oids[table.name], number, comment)

    def _not_null(self, table: Table, column: PolicyColumn, number: int, names: dict[str, str]) -> Rows:
        """Yield the constraint as which information_schema shows a column without NULL."""
        key = {
            "constraint_catalog": self._policy.dataset,
            "constraint_schema": table.shown_schema,
            "constraint_name": f"{self._schema_oid(table)}_{self._oids[table.name]}_{number}_not_null",
        }
        yield _info("table_constraints", **key, **names, constraint_type="CHECK", is_deferrable="NO",
                    initially_deferred="NO", enforced="YES")  # fmt: skip

    def _schema_oid(self, table: Table) -> int:
        """Return the OID of the schema in which a table is shown."""
        return self._namespaces[table.shown_schema]

    def _own_keys(self, table: Table) -> Iterator[TableKey]:
        """Yield the primary and unique keys of a table."""
        oid = self._oids[table.name] + 1
        sets = [("p", table.primary_key)] if table.primary_key else []
        for kind, columns in (*sets, *(("u", columns) for columns in table.unique)):
            suffix = "pkey" if kind == "p" else "_".join((*columns, "key"))
            yield TableKey(kind, f"{table.name}_{suffix}", oid, oid + 1, columns)
            oid += 2

    def _keys(self, table: Table) -> Iterator[TableKey]:
        """Yield a table's primary and unique keys, then the foreign ones with the index of the key that they refer to, which
        drivers look for."""
        unique_keys = list(self._own_keys(table))
        yield from unique_keys
        oid = self._oids[table.name] + 1 + 2 * len(unique_keys)
        for column, (parent, parent_column) in table.foreign_keys.items():
            theirs = self._own_keys(self._policy.visible[parent])
            index = next((key.index for key in theirs if tuple(key.columns) == (parent_column,)), 0)
            yield TableKey("f", f"{table.name}_{column}_fkey", oid, index, (column,), (parent, (parent_column,)))
            oid += 2

    def _is_linked(self, table: Table) -> bool:
        """Return whether foreign keys start from or refer to a table: psql asks for them only if a table has triggers."""
        reached = {parent for other in self._policy.visible.values() for parent, _ in other.foreign_keys.values()}
        return bool(table.foreign_keys) or table.name in reached

    def _key(self, table: Table, key: TableKey, names: dict[str, str]) -> Rows:
        oid, numbers = self._oids[table.name], _numbers(table, key.columns)
        parent = None if key.refers is None else self._policy.visible[key.refers[0]]
        yield relation("pg_constraint"), relation("pg_constraint").row(
            oid=key.oid, conname=key.name, connamespace=self._schema_oid(table),
            contype=key.kind, convalidated=True, conrelid=oid,
            conindid=key.index, conkey=numbers, conislocal=True, connoinherit=True,
            confrelid=0 if parent is None else self._oids[parent.name],
            confkey=None if parent is None or key.refers is None else _numbers(parent, key.refers[1]),
            confupdtype="a" if parent else " ", confdeltype="a" if parent else " ",
            confmatchtype="s" if parent else " ",
        )  # fmt: skip
        names_of_key = {
            "constraint_catalog": self._policy.dataset,
            "constraint_schema": table.shown_schema,
            "constraint_name": key.name,
        }
        kinds = {"p": "PRIMARY KEY", "u": "UNIQUE", "f": "FOREIGN KEY"}
        yield _info(
            "table_constraints",
            **names_of_key,
            **names,
            constraint_type=kinds[key.kind],
            is_deferrable="NO",
            initially_deferred="NO",
            enforced="YES",
        )
        for context, column in enumerate(key.columns, 1):
            yield _info("key_column_usage", **names_of_key, **names, column_name=column, ordinal_position=context,
                        position_in_unique_constraint=None if parent is None else context)  # fmt: skip
        yield from _dependencies("pg_constraint", key.oid, "a", "pg_class", oid, numbers)
        if parent is not None and key.refers is not None:
            referred = _numbers(parent, key.refers[1])
            yield from _dependencies("pg_constraint", key.oid, "n", "pg_class", self._oids[parent.name], referred)
            yield from _dependencies("pg_constraint", key.oid, "n", "pg_class", key.index, [0] * bool(key.index))
            yield from self._reference(parent, key.refers[1], names_of_key)
            return
        yield from _dependencies("pg_class", key.index, "i", "pg_constraint", key.oid, [0])
        for column in key.columns:
            yield _info("constraint_column_usage", **names_of_key, **names, column_name=column)
        yield relation("pg_class"), relation("pg_class").row(
            oid=key.index, relname=key.name, relnamespace=self._schema_oid(table), relowner=OWNER_ROLE, relam=403, relkind="i",
            reltuples=-1.0,
            relnatts=len(key.columns), relpersistence="p", relreplident="n", relispopulated=True,
        )  # fmt: skip
        for view in ("stat_all_indexes", "stat_user_indexes", "statio_all_indexes", "statio_user_indexes"):
            yield _counters(
                view, relid=oid, indexrelid=key.index, schemaname=table.shown_schema, relname=table.name, indexrelname=key.name
            )  # fmt: skip
        for context, column in enumerate(key.columns, 1):
            _, type_oid, size, _ = TYPES[table.columns[column].type]
            yield relation("pg_attribute"), _attribute(key.index, context, column, (type_oid, size), False)
        types = [TYPES[table.columns[column].type][1] for column in key.columns]
        yield relation("pg_index"), relation("pg_index").row(
            indexrelid=key.index, indrelid=oid, indnatts=len(numbers), indnkeyatts=len(numbers), indisunique=True,
            indisprimary=key.kind == "p", indimmediate=True, indisvalid=True, indisready=True, indislive=True,
            indkey=numbers,
            indoption=[0] * len(numbers), indclass=[_operators()[oid] for oid in types],
            indcollation=[100 if oid == 25 else 0 for oid in types],
        )  # fmt: skip

    def _reference(self, parent: Table, columns: tuple[str, ...], names_of_key: dict[str, str]) -> Rows:
        unique = next((key.name for key in self._keys(parent) if key.kind in "pu" and key.columns == columns), None)
        yield _info(
            "referential_constraints", **names_of_key, unique_constraint_catalog=self._policy.dataset,
            unique_constraint_schema=parent.shown_schema,
            unique_constraint_name=unique, match_option="NONE", update_rule="NO ACTION", delete_rule="NO ACTION",
        )  # fmt: skip
        for column in columns:
            yield _info(
                "constraint_column_usage", **names_of_key, table_catalog=self._policy.dataset,
                table_schema=parent.shown_schema,
                table_name=parent.name, column_name=column,
            )  # fmt: skip


def _info(name: str, **values: Any) -> tuple[Relation, tuple[Any, ...]]:
    view = relation(name, INFORMATION_SCHEMA)
    return view, view.row(**values)


def _counters(view: str, **values: Any) -> tuple[Relation, tuple[Any, ...]]:
    """Return a row of statistics: nothing is counted."""
    counted = relation(f"pg_{view}")
    zeros = {name: 0 for name, (type_, _) in counted.columns.items() if type_ in ("int8", "int4")}
    return counted, counted.row(**{**zeros, **values})


def _dependencies(dependent: str, oid: int, kind: str, relied: str, target: int, numbers: list[int]) -> Rows:
    """Yield rows of pg_depend: an object of the relation `dependent` depends on columns of an object of `relied`, 0 for all."""
    depends = relation("pg_depend")
    for number in numbers:
        yield depends, depends.row(
            classid=relation(dependent).oid, objid=oid, refclassid=relation(relied).oid, refobjid=target, refobjsubid=number,
            deptype=kind,
        )  # fmt: skip


def _description(oid: int, number: int, text: str) -> tuple[Relation, tuple[Any, ...]]:
    comments = relation("pg_description")
    classoid = relation("pg_class").oid if oid >= FIRST_OID else relation("pg_database").oid
    return comments, comments.row(objoid=oid, classoid=classoid, objsubid=number, description=text)


def _attribute(oid: int, number: int, name: str, type_: tuple[int, int], not_null: bool) -> tuple[Any, ...]:
    type_oid, size = type_
    return relation("pg_attribute").row(
        attrelid=oid, attname=name, atttypid=type_oid, attlen=size, attnum=number, attcacheoff=-1, atttypmod=-1,
        attbyval=0 < size <= 8, attalign={1: "c", 2: "s", 6: "s", 8: "d"}.get(size, "i"), attstorage="p" if size > 0 else "x",
        attnotnull=not_null,
        attislocal=True, attcollation=100 if type_oid == 25 else 0, attstattarget=-1 if number > 0 else 0,
    )  # fmt: skip


_RECORD_USES = {"input": "in", "output": "out", "receive": "recv", "send": "send"}


@cache
def _functions() -> dict[str, int]:
    """Return the OIDs of functions by their names."""
    return dict(zip(static("pg_proc")["proname"], static("pg_proc")["oid"], strict=True))


@cache
def _operators() -> dict[int, int]:
    """Return the default B-tree operator class of each type."""
    names = ("opcmethod", "opcdefault", "opcintype", "oid")
    listed = zip(*(static("pg_opclass")[name] for name in names), strict=True)
    return {type_: oid for method, default, type_, oid in listed if method == _BTREE and default}


def _numbers(table: Table, columns: tuple[str, ...]) -> list[int]:
    names = list(table.columns)
    return [names.index(column) + 1 for column in columns]


# --- builder of postgresql.json and ../settings.json ------------------------------------------------------------------
# The rows of PostgreSQL's own catalogs, and its settings, read from a real server.
#
# python -m dpsql.frontends.pgwire.catalog.policy_rows postgresql://...
#
# Run it after a change of `settings.SERVER_VERSION`, as the superuser of a new server; a running dpsql only reads the
# file. It contains names, types and numbers that PostgreSQL ships in every new database; they are under the PostgreSQL
# Licence, whose notice the file keeps.

_SYSTEM = "IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)"
_ROWS = {
    "pg_catalog": {
        **dict.fromkeys(
            ("pg_aggregate", "pg_am", "pg_amop", "pg_amproc", "pg_cast", "pg_conversion", "pg_description", "pg_index",
             "pg_language", "pg_opclass", "pg_operator", "pg_opfamily", "pg_proc", "pg_range", "pg_rewrite", "pg_tablespace",
             "pg_timezone_abbrevs", "pg_ts_config", "pg_ts_config_map", "pg_ts_dict", "pg_ts_parser", "pg_ts_template",
             "pg_auth_members", "pg_extension", "pg_rules", "pg_tables", "pg_views"), "true"),
        "pg_attribute": f"attrelid IN (SELECT oid FROM pg_class WHERE relnamespace {_SYSTEM})",
        "pg_class": f"relnamespace {_SYSTEM}",
        "pg_constraint": f"connamespace {_SYSTEM}",
        "pg_collation": "collname IN ('default', 'C', 'POSIX', 'ucs_basic')",
        "pg_namespace": "nspname IN ('pg_catalog', 'information_schema', 'pg_toast', 'public')",
        **dict.fromkeys(("pg_available_extensions", "pg_available_extension_versions"), "name = 'plpgsql'"),
        "pg_group": "groname LIKE 'pg\\_%'",
        "pg_roles": "rolname LIKE 'pg\\_%'",
        "pg_shdescription": "classoid = 'pg_authid'::regclass",
        "pg_type": f"typnamespace {_SYSTEM}",
    },
    "information_schema": {
        **dict.fromkeys(("sql_features", "sql_implementation_info", "sql_sizing", "domains", "domain_constraints",
                         "domain_udt_usage", "element_types", "check_constraints"), "true"),
        **dict.fromkeys(("tables", "columns", "views", "key_column_usage"),
                        "table_schema IN ('pg_catalog', 'information_schema')"),
    },
}  # fmt: skip
_ORDERS = {"columns": "udt_name, domain_name, table_schema, table_name, ordinal_position"}
"""Orders of rows by which columns have few runs of equal values."""
_COLUMNS = """
    SELECT a.attname, t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = %s::regclass AND a.attnum > 0 ORDER BY a.attnum
"""
_READER = "dpsql_reader"
"""A role without rights, as which information_schema and the settings are read: they show to each role its own."""
_SETTINGS = """
    SELECT name, boot_val, unit, category, short_desc, extra_desc, context, vartype, min_val, max_val, enumvals
    FROM pg_settings WHERE category <> 'Customized Options' ORDER BY lower(name)
"""
_KEYWORDS = "SELECT word, catcode::text, barelabel, catdesc, baredesc FROM pg_get_keywords() ORDER BY 1"


def read(url: str) -> dict[str, Any]:
    """Return the rows, views and settings of the server at `url`."""
    import psycopg

    with psycopg.connect(url) as connection:
        rows: dict[str, dict[str, Any]] = {}
        connection.execute(f"CREATE ROLE {_READER}")
        for schema, tables in _ROWS.items():
            connection.execute(f"SET ROLE {_READER}" if schema == "information_schema" else "RESET ROLE")
            for table, condition in tables.items():
                listed = connection.execute(_COLUMNS, (f"{schema}.{table}",)).fetchall()
                names = ", ".join(_plain(column, type_) for column, type_ in listed)
                order = _ORDERS.get(table, "1, 2")
                select = f"SELECT {names} FROM {schema}.{table} WHERE {condition} ORDER BY {order}"
                if columns := list(zip(*connection.execute(select).fetchall(), strict=True)):
                    rows[f"{schema}.{table}"] = {
                        name: _brief(values) for (name, _), values in zip(listed, columns, strict=True)
                    }
        settings = connection.execute(_SETTINGS).fetchall()
        connection.execute("RESET ROLE")
        keywords = connection.execute(_KEYWORDS).fetchall()
        definitions = connection.execute(_DEFINITIONS).fetchall()
        functions = connection.execute(_FUNCTIONS).fetchall()
        denied = [name for (name,) in connection.execute(_DENIED, {"role": _READER})]
        zones = [_zone(name) for (name,) in connection.execute("SELECT name FROM pg_timezone_names ORDER BY 1")]
        version = connection.execute("SHOW server_version").fetchone()
        connection.rollback()
    facts = {"keywords": keywords, "definitions": definitions, "arguments": functions, "zones": zones, "denied": denied}
    return {"version": version[0] if version else "", "rows": rows, **facts, "settings": settings}


_FUNCTIONS = """
    SELECT oid::int8, pg_get_function_arguments(oid) FROM pg_proc
    WHERE proargdefaults IS NOT NULL OR oid IN (SELECT aggfnoid FROM pg_aggregate WHERE aggkind <> 'n') ORDER BY oid
"""
"""Arguments of functions with defaults, which pg_proc keeps as parsed expressions, and of aggregates with an order."""
_DEFINITIONS = f"""
    SELECT coalesce(c.oid, 0)::int8, coalesce(i.indexrelid, 0)::int8, pg_get_constraintdef(c.oid, true),
        pg_get_indexdef(i.indexrelid), pg_get_indexdef(i.indexrelid, 0, true),
        ARRAY(SELECT pg_get_indexdef(i.indexrelid, n, true) FROM generate_series(1, i.indnatts) n)
    FROM pg_index i FULL JOIN pg_constraint c ON c.conindid = i.indexrelid
    WHERE coalesce(c.connamespace {_SYSTEM}, true) ORDER BY 1, 2
"""
_DENIED = """
    SELECT c.relname FROM pg_class c WHERE c.relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
        AND c.relkind IN ('r', 'v') AND NOT has_any_column_privilege(%(role)s, c.oid, 'SELECT')
    UNION SELECT unnest(ARRAY['pg_file_settings', 'pg_hba_file_rules', 'pg_ident_file_mappings', 'pg_config']) ORDER BY 1
"""
"""Relations that only superusers read."""


def _zone(name: str) -> tuple[str, str, str]:
    """Return a time zone and its abbreviations without and with daylight saving."""
    moments = [datetime(2026, month, 15, tzinfo=UTC).astimezone(ZoneInfo(name)) for month in (1, 7)]
    moments.sort(key=lambda moment: bool(moment.dst()))
    return name, str(moments[0].tzname()), str(moments[1].tzname())


def _brief(values: tuple[Any, ...]) -> Any:
    """Return the values of a column: a list; or a mapping of the runs of equal values, each behind its length, if that is
    shorter."""
    runs = [(len(list(run)), value) for value, run in groupby(values)]
    return {"runs": [part for run in runs for part in run]} if len(runs) * 3 < len(values) else list(values)


def _plain(column: str, type_: str) -> str:
    """Return a column in a form for JSON; parsed expressions are empty."""
    if type_ == "pg_node_tree":
        return f"left({column}::text, 0)"
    if type_ in ("oid", "xid", "regproc"):
        return f"{column}::oid::text::int8" if type_ == "regproc" else f"{column}::text::int8"
    if type_ in ("int2vector", "oidvector"):
        return f"to_json(string_to_array({column}::text, ' ')::int8[])"
    if type_.startswith("_"):
        return f"to_json({column}::{'int8[]' if type_ in ('_oid', '_int2') else 'text[]'})"
    numbers = ("bool", "int2", "int4", "int8", "float4", "float8", "cardinal_number")
    return f"{column}::text" if type_ not in numbers else f"{column}"


if __name__ == "__main__":
    place = Path(__file__).with_name("postgresql.json")
    licence = json.loads(place.read_text(encoding="utf-8"))["licence"]
    facts = read(sys.argv[1])
    listed = {"licence": licence, "settings": facts.pop("settings")}
    for target, built in ((place, {"licence": licence, **facts}), (place.parents[1] / "settings.json", listed)):
        target.write_text(json.dumps(built, separators=(",", ":")) + "\n", encoding="utf-8")
