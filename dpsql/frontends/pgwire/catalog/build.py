"""Builder of postgresql.json and ../settings.json: the rows of PostgreSQL's own catalogs, and its settings, read from a real
server.

    python -m dpsql.frontends.pgwire.catalog.build postgresql://...

Run it after a change of `settings.SERVER_VERSION`, as the superuser of a new server; a running dpsql only reads the file. It
contains names, types and numbers that PostgreSQL ships in every new database; they are under the PostgreSQL Licence, whose notice
the file keeps.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

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
