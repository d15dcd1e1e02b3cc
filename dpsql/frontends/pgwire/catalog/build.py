"""Builder of postgresql.json and ../settings.json: the shape of PostgreSQL's own catalogs, their static rows, and its settings,
read from a real server.

    python -m dpsql.frontends.pgwire.catalog.build postgresql://...

Run it after a change of `settings.SERVER_VERSION`; a running dpsql only reads the file. It contains names, types and numbers
that PostgreSQL ships in every new database; they are under the PostgreSQL Licence, whose notice the file keeps.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_RELATIONS = """
    SELECT n.nspname, c.relname, c.oid::int8, c.relkind::text,
      (SELECT json_agg(json_build_array(a.attname, t.typname, a.attnotnull) ORDER BY a.attnum)
       FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
       WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v')
    ORDER BY 1, 2
"""
_KEPT = {
    "pg_type": "typrelid = 0 AND NOT EXISTS (SELECT 1 FROM pg_type e WHERE e.oid = pg_type.typelem AND e.typrelid <> 0)"
    " AND typnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)",
    "pg_am": "true",
    "pg_collation": "collname IN ('default', 'C', 'POSIX', 'ucs_basic')",
    "pg_language": "true",
    "pg_range": "true",
    "pg_proc": "oid IN (SELECT unnest(ARRAY[typinput, typoutput, typreceive, typsend, typmodin, typmodout, "
    "typanalyze, typsubscript]"
    "::oid[]) FROM pg_type UNION SELECT amhandler FROM pg_am)",
    "pg_namespace": "nspname IN ('pg_catalog', 'information_schema', 'pg_toast', 'public')",
    "pg_tablespace": "true",
    **dict.fromkeys(("pg_cast", "pg_ts_config", "pg_ts_dict", "pg_ts_parser", "pg_ts_template"), "true"),
    "pg_description": "classoid = ANY ('{pg_namespace,pg_language,pg_am,pg_type,pg_ts_config,pg_ts_dict,pg_ts_parser,"
    "pg_ts_template}'::regclass[])",
    "pg_opclass": "opcdefault AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree')",
}
VIEWS = (
    "pg_catalog.pg_indexes", "information_schema.collations", "information_schema.role_table_grants",
    "information_schema.constraint_table_usage", "information_schema.collation_character_set_applicability",
)  # fmt: skip
"""Views that are computed here by PostgreSQL's own definition."""
_SETTINGS = """
    SELECT name, boot_val, unit, category, short_desc, extra_desc, context, vartype, min_val, max_val, enumvals
    FROM pg_settings WHERE category <> 'Customized Options' ORDER BY lower(name)
"""
_KEYWORDS = "SELECT word, catcode::text, barelabel, catdesc, baredesc FROM pg_get_keywords() ORDER BY 1"


def read(url: str) -> dict[str, Any]:
    """Return relations and static rows of the server at `url`."""
    import psycopg

    with psycopg.connect(url) as connection:
        shape: dict[str, dict[str, Any]] = {}
        for schema, name, oid, kind, columns in connection.execute(_RELATIONS):
            shape.setdefault(schema, {})[name] = {"oid": oid, "kind": kind, "columns": columns}
        rows = {}
        for table, condition in _KEPT.items():
            names = ", ".join(_plain(column, type_) for column, type_, _ in shape["pg_catalog"][table]["columns"])
            rows[table] = connection.execute(
                f"SELECT {names} FROM pg_catalog.{table} WHERE {condition} ORDER BY 1"
            ).fetchall()
        keywords = connection.execute(_KEYWORDS).fetchall()
        views = {
            name: connection.execute(f"SELECT pg_get_viewdef('{name}'::regclass)").fetchall()[0][0] for name in VIEWS
        }
        settings = connection.execute(_SETTINGS).fetchall()
        version = connection.execute("SHOW server_version").fetchone()
    read = {"relations": shape, "rows": rows, "keywords": keywords, "views": views, "settings": settings}
    return {"version": version[0] if version else "", **read}


def _plain(column: str, type_: str) -> str:
    """Return a column in a form for JSON; access rights, statistics and parsed expressions are left out."""
    if type_ in ("_aclitem", "aclitem", "pg_node_tree"):
        return "NULL"
    if type_ in ("oid", "xid", "regproc"):
        return f"{column}::oid::text::int8" if type_ == "regproc" else f"{column}::text::int8"
    if type_.startswith("_"):
        return f"to_json({column}::{'int8[]' if type_ == '_oid' else 'text[]'})"
    return f"{column}::text" if type_ not in ("bool", "int2", "int4", "int8", "float4", "float8") else column


if __name__ == "__main__":
    place = Path(__file__).with_name("postgresql.json")
    licence = json.loads(place.read_text(encoding="utf-8"))["licence"]
    facts = read(sys.argv[1])
    listed = {"licence": licence, "settings": facts.pop("settings")}
    for target, built in ((place, {"licence": licence, **facts}), (place.parents[1] / "settings.json", listed)):
        target.write_text(json.dumps(built, separators=(",", ":")) + "\n", encoding="utf-8")
