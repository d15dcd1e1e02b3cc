"""PostgreSQL's catalog functions as DuckDB macros over the catalog tables, named with a prefix that no client writes.

Macros are not hygienic: an alias inside of one would capture the same name in its argument, so inner aliases start with `_q`.
"""

from __future__ import annotations

import re

from dpsql.frontends.pgwire.catalog.kinds import KINDS
from dpsql.frontends.pgwire.catalog.shape import INFORMATION_SCHEMA, keywords, namespaces
from dpsql.frontends.pgwire.encodings import NAMED

PREFIX = "pgf_"


def _values(count: int) -> str:
    return ", ".join(f"_v{number}" for number in range(count))


def _pairs(count: int, key: str) -> str:
    """Return a list of `count` pairs of a key's name, written in the form `key`, and the value's name."""
    return ", ".join(f"{key.format(f'_k{number}')}, _v{number}" for number in range(count))


def _texts(count: int) -> str:
    return ", ".join(f"pgf_json_text(_v{number})" for number in range(count))


def _written(count: int) -> str:
    """Return the pairs of a JSON object as texts."""
    return ", ".join(f"to_json(CAST(_k{n} AS VARCHAR)) || ' : ' || pgf_json_text(_v{n})" for n in range(count))


def _replaced_with_flags() -> str:
    """Return regexp_replace with any of the flags g and i, which DuckDB 1.4 wants as constants."""
    cases = " ".join(f"WHEN '{flags}' THEN regexp_replace(_s, _p, _r, '{flags}')" for flags in ("g", "i", "gi", "ig"))
    return f"CASE _f {cases} WHEN '' THEN regexp_replace(_s, _p, _r) ELSE if(_f IS NOT NULL, error('invalid flags'), NULL) END"


def _formatted() -> str:
    """Return format_type with the sizes that a type's modifier holds."""
    sizes = (
        "CASE WHEN _m IS NULL THEN _q.name WHEN _m < 0 THEN CASE _t WHEN 1042 THEN 'bpchar' WHEN 1560 THEN '\"bit\"' ELSE "
        "_q.name END WHEN _t IN (1560, 1561, 1562, 1563) THEN pgf_sized(_q.name, CAST(_m AS VARCHAR)) "
        "WHEN _t IN (1014, 1015, 1042, 1043) THEN pgf_sized(_q.name, CAST(_m - 4 AS VARCHAR)) "
        "WHEN _t IN (1231, 1700) THEN pgf_sized(_q.name, ((_m - 4) >> 16) || ',' || ((_m - 4) & 65535)) "
        "WHEN _t IN (1083, 1114, 1115, 1182, 1183, 1184, 1185, 1266, 1270) THEN "
        "regexp_replace(_q.name, '^(\\w+)', '\\1(' || _m || ')') ELSE _q.name END"
    )
    named = f"(SELECT any_value({sizes}) FROM pgx.names _q WHERE _q.kind = 'DECIMAL(12,0)' AND _q.oid = CAST(_t AS UINTEGER))"
    return f"CASE WHEN _t IS NOT NULL THEN CASE WHEN _t = 0 THEN '-' ELSE coalesce({named}, '???') END END"


_KINDS = ", ".join(f"'DECIMAL({width},0)'" for width in KINDS.values())


def _reserved() -> list[str]:
    return [word for word, category, *_ in keywords() if category != "U"]


_TYPES = {
    "BOOLEAN": 16, "BLOB": 17, "BIGINT": 20, "SMALLINT": 21, "USMALLINT": 21, "INTEGER": 23, "UINTEGER": 26, "JSON": 114,
    "FLOAT": 700,
    "DOUBLE": 701, "DATE": 1082, "TIME": 1083, "TIMESTAMP": 1114, "TIMESTAMP WITH TIME ZONE": 1184, "INTERVAL": 1186,
    "USMALLINT[]": 22, "UBIGINT[]": 30, "BOOLEAN[]": 1000, "SMALLINT[]": 1005, "INTEGER[]": 1007, "VARCHAR[]": 1009,
    "BIGINT[]": 1016,
    "DOUBLE[]": 1022, "UINTEGER[]": 1028,
    **{f"DECIMAL({width},0)": NAMED[kind] for kind, width in KINDS.items()},
}  # fmt: skip
"""OIDs of DuckDB's types; decimals are numeric, and everything else a text."""


def _type_of(name: str) -> str:
    """Return the OID of the type that DuckDB calls `name`, as SQL."""
    cases = " ".join(f"WHEN '{type_}' THEN {oid}" for type_, oid in _TYPES.items())
    return f"CASE {name} {cases} ELSE CASE WHEN {name} LIKE 'DECIMAL%' THEN 1700 END END"


def _granted(rights: tuple[str, ...]) -> str:
    """Return whether one of the rights `_p` is the first of these, the one that an analyst has; any other word is refused."""
    return f"pgf_granted(_p, {list(rights)}, ['{rights[0]}'])"


def _column_right() -> str:
    named = "_q.attname = CAST(_c AS VARCHAR) OR CAST(_q.attnum AS VARCHAR) = CAST(_c AS VARCHAR)"
    columns = f"(SELECT count(*) FROM pgc.pg_attribute _q WHERE _q.attrelid = _t AND ({named}))"
    unknown = "CAST(error('dpsql:catalog_column:\"' || CAST(_c AS VARCHAR) || '\"') AS BOOLEAN)"
    return f"CASE WHEN {columns} = 0 THEN {unknown} ELSE {_granted(('SELECT', 'INSERT', 'UPDATE', 'REFERENCES'))} END"


_VIEW = (
    "(SELECT any_value(_q.definition) FROM pgc.pg_views _q JOIN pgx.names _qn ON _qn.name = _q.viewname AND _qn.schema = "
    "_q.schemaname WHERE _qn.kind = 'DECIMAL(11,0)' AND _qn.oid = _o)"
)
_ENCODINGS = (
    "SQL_ASCII", "EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "UTF8", "MULE_INTERNAL",
    *(f"LATIN{number}" for number in range(1, 11)), "WIN1256", "WIN1258", "WIN866", "WIN874", "KOI8R", "WIN1251", "WIN1252",
    *(f"ISO_8859_{number}" for number in range(5, 9)), "WIN1250", "WIN1253", "WIN1254", "WIN1255", "WIN1257", "KOI8U", "SJIS",
    "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004",
)  # fmt: skip
"""PostgreSQL's names of encodings in the order of their numbers."""


# name: one body for each number of arguments; (arguments, expression)
MACROS: dict[str, tuple[tuple[str, str], ...]] = {
    # types and names
    "sized": (("_n, _s", "regexp_replace(_n, '(\\[\\])?$', '(' || _s || ')\\1')"),),
    "format_type": (("_t, _m", _formatted()),),
    "to_oid": (("_v, _k, _e", "CASE WHEN typeof(_v) <> 'VARCHAR' THEN TRY_CAST(CAST(_v AS VARCHAR) AS UINTEGER) ELSE coalesce("
    "TRY_CAST(CAST(_v AS VARCHAR) AS UINTEGER), (SELECT any_value(_q.oid) FROM pgx.spellings _q WHERE _q.kind = _k "
    "AND _q.spelling = "
    "pgf_spelling(CAST(_v AS VARCHAR))), CASE WHEN _v IS NOT NULL THEN CAST(error('dpsql:' || _e || ':' || CAST(_v AS VARCHAR)) "
    "AS UINTEGER) END) END"),),
    "oid_of_text": (("_v, _k, _e", "coalesce((SELECT any_value(_q.oid) FROM pgx.spellings _q WHERE _q.kind = _k AND "
    "_q.spelling = "
    "pgf_spelling(_v)), CASE WHEN _v IS NOT NULL THEN CAST(error('dpsql:' || _e || ':' || _v) AS UINTEGER) END)"),),
    "kind_text": (("_v, _k, _p", "coalesce((SELECT any_value(CASE WHEN _q.schema IN ('', 'pg_catalog') OR "
    "list_contains(_p, _q.schema) "
    "THEN _q.name ELSE pgf_quote_ident(_q.schema) || '.' || _q.name END) FROM pgx.names _q WHERE _q.kind = _k AND _q.oid = "
    "CAST(_v AS UINTEGER)), CASE WHEN _v = 0 THEN '-' ELSE CAST(_v AS VARCHAR) END)"),),
    **{f"to_{kind}": (("_n", f"(SELECT CAST(any_value(_q.oid) AS DECIMAL({width},0)) FROM pgx.spellings _q WHERE _q.kind = "
    f"'DECIMAL({width},0)' AND _q.spelling = pgf_spelling(_n))"),) for kind, width in KINDS.items()},
    "text": (("_v, _p", f"CASE WHEN typeof(_v) IN ({_KINDS}) THEN coalesce((SELECT any_value(CASE WHEN _q.schema IN ('', "
    "'pg_catalog') OR list_contains(_p, _q.schema) THEN _q.name ELSE pgf_quote_ident(_q.schema) || '.' || _q.name "
    "END) FROM pgx.names _q "
    "WHERE _q.kind = typeof(_v) AND _q.oid = TRY_CAST(CAST(_v AS VARCHAR) AS UINTEGER)), CASE CAST(_v AS VARCHAR) WHEN '0' THEN "
    "'-' ELSE CAST(_v AS VARCHAR) END) WHEN typeof(_v) IN ('USMALLINT[]', 'UBIGINT[]') THEN array_to_string(TRY_CAST(CAST(_v AS "
    "VARCHAR) AS VARCHAR[]), ' ') WHEN typeof(_v) LIKE '%[]' THEN pgf_array_text(TRY_CAST(CAST(_v AS VARCHAR) AS VARCHAR[])) "
    "ELSE CAST(_v AS VARCHAR) END"),),
    "array_text": (("_a", "'{' || array_to_string(list_transform(_a, lambda _qx: CASE WHEN _qx IS NULL THEN 'NULL' WHEN "
    "regexp_full_match(_qx, '[^{},\"\\\\\\s]+') AND lower(_qx) <> 'null' THEN _qx ELSE '\"' || replace(replace(_qx, "
    "'\\', '\\\\'), "
    "'\"', '\\\"') || '\"' END), ',') || '}'"),),
    "texts": (("_l, _p", "CASE WHEN _l IS NOT NULL THEN coalesce((SELECT list(pgf_text(_q._u, _p) ORDER BY _q._i) FROM (SELECT "
    "unnest(_l) AS _u, unnest(generate_series(1, len(_l))) AS _i) _q), []) END"),),
    "pg_typeof": (("_v", f"CAST(coalesce({_type_of('typeof(_v)')}, 25) AS DECIMAL(12,0))"),),
    "spelling": (("_s", "regexp_replace(CASE WHEN contains(_s, '\"') THEN _s ELSE lower(_s) END, "
    "'\"([a-z_][a-z0-9_$]*)\"', '\\1', 'g')"),),
    "element": (("_a, _i", "CASE WHEN typeof(_a) IN ('USMALLINT[]', 'UBIGINT[]') THEN _a[_i + 1] ELSE _a[_i] END"),),
    "quote_ident": (("_s", f"CASE WHEN regexp_full_match(_s, '[a-z_][a-z0-9_$]*') AND NOT list_contains({_reserved()}, _s) "
    "THEN _s ELSE '\"' || replace(_s, '\"', '\"\"') || '\"' END"),),
    "quote_nullable": (("_s", "coalesce('''' || replace(CAST(_s AS VARCHAR), '''', '''''') || '''', 'NULL')"),),
    "quote_literal": (("_s", "'''' || replace(CAST(_s AS VARCHAR), '''', '''''') || ''''"),),
    "pg_encoding_to_char": (("_e", f"CASE WHEN _e IS NOT NULL THEN "
    f"coalesce({list(_ENCODINGS)}[CAST(_e AS INTEGER) + 1], '') END"),),
    "pg_client_encoding": (("", "'UTF8'"),),
    "pg_char_to_encoding": (("_e", f"CASE WHEN _e IS NOT NULL THEN coalesce(list_position("
    f"{[name.replace('_', '') for name in _ENCODINGS]}, regexp_replace(upper(_e), '[^A-Z0-9]', '', 'g')), 0) - 1 END"),),
    "getdatabaseencoding": (("", "'UTF8'"),),
    "pg_get_userbyid": (("_o", "coalesce((SELECT _q.rolname FROM pgc.pg_roles _q WHERE _q.oid = _o), "
                         "'unknown (OID=' || _o || ')')"),),
    # definitions
    "pg_get_expr": (("_e, _r", "CAST(NULL AS VARCHAR)"), ("_e, _r, _p", "CAST(NULL AS VARCHAR)")),
    "pg_get_constraintdef": (
        ("_o", "(SELECT _q.constraint_text FROM pgx.definitions _q WHERE _q.constraint_oid = _o AND _o <> 0)"),
        ("_o, _p", "(SELECT _q.constraint_text FROM pgx.definitions _q WHERE _q.constraint_oid = _o AND _o <> 0)"),
    ),
    "pg_get_indexdef": (
        ("_o", "(SELECT _q.index_text FROM pgx.definitions _q WHERE _q.index_oid = _o AND _o <> 0)"),
        ("_o, _c, _p", "(SELECT CASE WHEN CAST(_c AS INTEGER) = 0 THEN CASE WHEN _p THEN _q.short_text ELSE "
        "_q.index_text END ELSE _q.column_names[_c] END "
         "FROM pgx.definitions _q WHERE _q.index_oid = _o AND _o <> 0)"),
    ),
    "pg_index_column_has_property": (("_i, _c, _p", "(_p IN ('asc', 'nulls_last', 'orderable', 'returnable', 'search_array'))"),),
    "pg_get_viewdef": (("_o", _VIEW), ("_o, _p", _VIEW)),
    **{f"pg_get_function_{name}": (("_o", f"(SELECT any_value(_q.{column}) FROM pgx.functions _q WHERE _q.oid = _o)"),)
       for name, column in (("result", "result"), ("arguments", "arguments"), ("identity_arguments", "identity"))},
    **dict.fromkeys(("pg_get_ruledef", "pg_get_triggerdef", "pg_get_functiondef", "pg_get_function_sqlbody",
    "pg_get_statisticsobjdef_columns", "pg_get_partkeydef", "pg_get_partition_constraintdef"),
    (("_o", "CAST(NULL AS VARCHAR)"), ("_o, _p", "CAST(NULL AS VARCHAR)"))),
    **dict.fromkeys(("inet_server_addr", "inet_client_addr"), (("", "CAST(NULL AS VARCHAR)"),)),
    **dict.fromkeys(("inet_server_port", "inet_client_port"), (("", "CAST(NULL AS INTEGER)"),)),
    "pg_get_serial_sequence": (("_t, _c", "CAST(NULL AS VARCHAR)"),),
    "no_numbers": (("_o", "CAST([] AS UINTEGER[])"),),
    "no_texts": (("_o", "CAST([] AS VARCHAR[])"),),
    "pg_blocking_pids": (("_p", "CAST([] AS INTEGER[])"),),
    "pg_relation_filenode": (("_o", "CAST(_o AS UINTEGER)"),),
    "pg_partition_root": (("_o", "_o"),),
    "pg_get_replica_identity_index": (("_o", "CAST(NULL AS UINTEGER)"),),
    # descriptions
    "obj_description": (
        ("_o",
        "(SELECT any_value(_q.description) FROM pgc.pg_description _q WHERE _q.objoid = _o AND _q.objsubid = 0)"),
        ("_o, _c", "(SELECT any_value(_q.description) FROM pgc.pg_description _q JOIN pgc.pg_class _qc ON _qc.oid = "
         "_q.classoid WHERE _q.objoid = _o AND _q.objsubid = 0 AND _qc.relname = _c)"),
    ),
    "col_description": (("_o, _n",
    "(SELECT any_value(_q.description) FROM pgc.pg_description _q WHERE _q.objoid = _o AND "
                         "_q.objsubid = _n AND _n <> 0)"),),
    "shobj_description": (("_o, _c",
    "(SELECT any_value(_q.description) FROM pgc.pg_description _q JOIN pgc.pg_class _qc ON "
                           "_qc.oid = _q.classoid WHERE _q.objoid = _o AND _q.objsubid = 0 AND _qc.relname = _c)"),),
    # visibility and rights: everything here may be read, nothing may be written
    "pg_table_is_visible": (("_o, _p", "(SELECT bool_or(_q.schema = 'pg_catalog' OR list_contains(_p, _q.schema)) FROM "
    "pgx.names _q WHERE _q.kind = 'DECIMAL(11,0)' AND _q.oid = CAST(_o AS UINTEGER))"),),
    **{f"pg_{name}_is_visible": (("_o", f"(SELECT any_value(_q.{column}namespace <> {namespaces()[INFORMATION_SCHEMA]}) "
       f"FROM pgc.{table} _q WHERE _q.oid = _o)"),)
       for name, table, column in (("type", "pg_type", "typ"), ("function", "pg_proc", "pro"))},
    **dict.fromkeys(("pg_operator_is_visible",
    "pg_opclass_is_visible", "pg_opfamily_is_visible", "pg_collation_is_visible", "pg_conversion_is_visible",
    "pg_statistics_obj_is_visible", "pg_ts_config_is_visible", "pg_ts_dict_is_visible", "pg_ts_parser_is_visible",
    "pg_ts_template_is_visible"), (("_o", "true"),)),
    "granted": (("_p, _all, _own", "CASE WHEN _p IS NULL THEN NULL WHEN list_has_all(_all, pgf_words(_p)) THEN "
    "list_has_any(_own, "
    "pgf_words(_p)) ELSE CAST(error('dpsql:catalog_privilege:' || _p) AS BOOLEAN) END"),),
    "words": (("_p", "list_transform(string_split(upper(_p), ','), lambda _qx: trim(replace(_qx, ' WITH GRANT OPTION', '')))"),),
    **{
        name: (("_o, _p", f"CASE WHEN _o IS NOT NULL THEN {_granted(rights)} END"), ("_u, _o, _p", f"CASE WHEN _o IS "
        f"NOT NULL THEN {_granted(rights)} END"))
        for name, rights in {
            "has_schema_privilege": ("USAGE", "CREATE"), "has_database_privilege": ("CONNECT", "CREATE", "TEMPORARY", "TEMP"),
            "has_table_privilege": ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"),
            "has_any_column_privilege": ("SELECT", "INSERT", "UPDATE", "REFERENCES"),
        }.items()
    },
    **{
        name: (("_o, _p", f"({rights})"), ("_u, _o, _p", f"({rights})"))
        for name, rights in (
            ("has_sequence_privilege", "false"),
            ("has_function_privilege", "pgf_granted(_p, ['EXECUTE'], ['EXECUTE'])"), ("has_tablespace_privilege", "false"),
            ("has_language_privilege", "pgf_granted(_p, ['USAGE'], ['USAGE'])"), ("has_type_privilege", "true"),
            ("has_foreign_data_wrapper_privilege", "false"), ("has_server_privilege", "false"),
        )
    },
    "has_role": (("_u, _r", "(SELECT bool_or(_q.rolsuper OR CAST(_r AS VARCHAR) IN (_q.rolname, CAST(_q.oid AS VARCHAR))) FROM "
    "pgc.pg_roles _q WHERE CAST(_u AS VARCHAR) IN (_q.rolname, CAST(_q.oid AS VARCHAR)))"),),
    "has_column_privilege": (("_t, _c, _p", _column_right()), ("_u, _t, _c, _p", _column_right())),
    **dict.fromkeys(("row_security_active", "pg_relation_is_publishable", "pg_is_other_temp_schema"), (("_o", "false"),)),
    "pg_relation_is_updatable": (("_o, _f", "0"),),
    "pg_column_is_updatable": (("_o, _n, _f", "false"),),
    # sizes and states that reveal nothing about the data
    **dict.fromkeys(("pg_relation_size", "pg_total_relation_size", "pg_table_size", "pg_indexes_size",
    "pg_database_size", "pg_tablespace_size", "pg_stat_get_numscans", "pg_stat_get_live_tuples",
    "pg_stat_get_dead_tuples", "pg_stat_get_tuples_inserted",
    "pg_stat_get_tuples_updated", "pg_stat_get_tuples_deleted", "pg_stat_get_tuples_fetched"), (("_o",
    "CAST(0 AS BIGINT)"),)),
    "pg_size_pretty": (("_n", "CASE WHEN abs(_n) < 10240 THEN CAST(_n AS VARCHAR) || ' bytes' WHEN abs(_n) < 10240 * 1024 "
    "THEN CAST(CAST(round(_n / 1024.0) AS BIGINT) AS VARCHAR) || ' kB' ELSE CAST(CAST(round(_n / 1048576.0) AS "
    "BIGINT) AS VARCHAR) || ' MB' END"),),
    "pg_tablespace_location": (("_o", "''"),),
    "pg_filenode_relation": (("_a, _b", "CAST(NULL AS UINTEGER)"),),
    **dict.fromkeys(("pg_is_in_recovery", "pg_is_wal_replay_paused"), (("", "false"),)),
    "pg_my_temp_schema": (("", "CAST(0 AS UINTEGER)"),),
    **dict.fromkeys(("pg_postmaster_start_time", "pg_conf_load_time"), (("", "CAST('2000-01-01' AS TIMESTAMP)"),)),
    "pg_advisory_unlock_all": (("", "''"),),
    **dict.fromkeys(("pg_advisory_lock", "pg_advisory_lock_shared", "pg_advisory_xact_lock", "pg_advisory_xact_lock_shared"),
    (("_k", "''"), ("_a, _b", "''"))),
    "pg_notify": (("_c, _m", "''"),),
    **dict.fromkeys(("pg_cancel_backend", "pg_terminate_backend"), (("_p", "false"),)),
    **dict.fromkeys(("pg_try_advisory_lock", "pg_try_advisory_xact_lock", "pg_advisory_unlock"),
    (("_k", "true"), ("_a, _b", "true"))),
    "pg_current_xact_id_if_assigned": (("", "CAST(NULL AS BIGINT)"),),
    "txid_current": (("", "CAST(1 AS BIGINT)"),),
    # arrays and texts
    "array_to_string": (
        ("_a, _s", "array_to_string(list_filter(_a, lambda _qx: _qx IS NOT NULL), _s)"),
        ("_a, _s, _n", "array_to_string(list_transform(_a, lambda _qx: coalesce(CAST(_qx AS VARCHAR), _n)), _s)"),
    ),
    "first": (("_a", "CASE WHEN typeof(_a) IN ('USMALLINT[]', 'UBIGINT[]') THEN 0 ELSE 1 END"),),
    "array_upper": (("_a, _d", "CASE WHEN len(_a) > 0 THEN CAST(len(_a) + pgf_first(_a) - 1 AS INTEGER) END"),),
    "array_lower": (("_a, _d", "CASE WHEN len(_a) > 0 THEN pgf_first(_a) END"),),
    "array_length": (("_a, _d", "CASE WHEN len(_a) > 0 THEN CAST(len(_a) AS INTEGER) END"),),
    "cardinality": (("_a", "CAST(len(_a) AS INTEGER)"),),
    "array_position": (("_a, _v", "list_position(_a, _v) + pgf_first(_a) - 1"),),
    "array_remove": (("_a, _v", "list_filter(_a, lambda _qx: _qx IS DISTINCT FROM _v)"),),
    "array_prepend": (("_v, _a", "list_prepend(_v, _a)"),),
    "regexp_split_to_array": (("_t, _s", "string_split_regex(_t, _s)"),),
    **dict.fromkeys(("regexp_match", "regexp_matches"), (("_t, _s", "pgf_groups(_t, _s)"),)),
    "groups": (("_t, _s", "CASE WHEN regexp_matches(_t, _s) THEN list_transform(generate_series(if(_s LIKE '%(%', 1, 0), "
    "CAST(if(_s LIKE '%(%', len(regexp_replace(_s, '\\\\.|\\(\\?:|[^(]', '', 'g')), 0) AS BIGINT)), "
    "lambda _qi: list_extract(regexp_extract_all(_t, _s, CAST(_qi AS INTEGER)), 1)) END"),),
    "generate_subscripts": (("_a, _d", "generate_series(pgf_first(_a), CAST(len(_a) AS INTEGER) + pgf_first(_a) - 1)"),),
    "unnested": (("_a", "_a"),),
    "element_numbers": (("_a", "generate_series(1, CAST(len(_a) AS INTEGER))"),),
    "expandarray": (("_a", "list_transform(_a, lambda _qx, _qi: {'x': _qx, 'n': CAST(_qi AS INTEGER)})"),),
    "age": (("_x", "CASE typeof(_x) WHEN 'UINTEGER' THEN 2147483647 ELSE error('dpsql:unknown_function:age') END"),
            ("_x, _y", "age(_x, _y)")),
    "likes": (("_t, _l", "list_transform(_l, lambda _qx: _t LIKE _qx ESCAPE '\\')"),),
    "ilikes": (("_t, _l", "list_transform(_l, lambda _qx: _t ILIKE _qx ESCAPE '\\')"),),
    "matches": (("_t, _l", "list_transform(_l, lambda _qx: regexp_matches(_t, _qx))"),),
    "imatches": (("_t, _l", "list_transform(_l, lambda _qx: regexp_matches(_t, _qx, 'i'))"),),
    "every": (("_x", "bool_and(_x)"),),
    "array_contained_by": (("_a, _b", "list_has_all(_b, _a)"),),
    "similar_to": (("_s, _p", "regexp_full_match(_s, pgf_similar(_p, '\\'))"), ("_s, _p, _e",
    "regexp_full_match(_s, pgf_similar(_p, _e))")),
    "similar": (("_p, _e", "replace(replace(replace(replace(replace(replace(_p, _e || '%', chr(1)), _e || '_', chr(2)), '%', "
    "'.*'), '_', '.'), chr(1), '%'), chr(2), '_')"),),
    "split": (("_t, _s", "CASE WHEN _t = '' THEN [] WHEN _s = '' THEN [_t] WHEN _s IS NULL THEN regexp_extract_all(_t, '.') "
    "ELSE string_split(_t, _s) END"),),
    "string_to_array": (("_t, _s", "pgf_split(_t, _s)"), ("_t, _s, _n",
    "list_transform(pgf_split(_t, _s), lambda _qx: nullif(_qx, _n))")),
    "btrim": (("_t", "trim(_t)"), ("_t, _c", "trim(_t, _c)")),
    "timezone": (("_z, _t", "timezone(_z, _t)"),),
    "_pg_char_max_length": (("_t, _m", "CAST(NULL AS INTEGER)"),),
    "_pg_truetypid": (("_a, _t", "_a.atttypid"),),
    "_pg_truetypmod": (("_a, _t", "-1"),),
    # json keeps the blanks with which it is built, and jsonb has one behind each comma and colon
    "json_text": (("_v", "coalesce(CASE typeof(_v) WHEN 'JSON' THEN CAST(_v AS VARCHAR) ELSE CAST(to_json(_v) AS VARCHAR) END, "
    "'null')"),),
    "json_joined": (("_l", "CAST('[' || array_to_string(list_transform(_l, lambda _qx: pgf_json_text(_qx)), if(typeof(_l) LIKE "
    "'STRUCT%', ', \n ', ', ')) || ']' AS JSON)"),),
    "spaced": (("_j", "CAST(regexp_replace(CAST(_j AS VARCHAR), '([^\",:]*(?:\"(?:[^\"\\\\]|\\\\.)*\")?[^\",:]*)([,:])', "
    "'\\1\\2 ', 'g') AS JSON)"),),
    "json_build_object": tuple(
        (_pairs(n, "{0}"), f"CAST('{{' || array_to_string([{_written(n)}], ', ') || '}}' AS JSON)") for n in range(1, 9)
    ),
    "json_object_agg": (("_k, _v", "CAST('{ ' || string_agg(to_json(CAST(_k AS VARCHAR)) || ' : ' || pgf_json_text(_v), ', ') "
    "|| ' }' AS JSON)"),),
    "to_json": (("_v", "to_json(_v)"),),
    "json_array_length": (("_v", "CAST(json_array_length(_v) AS INTEGER)"),),
    "json_build_array": tuple(
        (_values(n), f"CAST('[' || array_to_string([{_texts(n)}], ', ') || ']' AS JSON)") for n in range(1, 9)
    ),
    "array_to_json": (("_a", "to_json(_a)"),),
    "json_elements": (("_j", "json_extract(_j, '$[*]')"),),
    "json_texts": (("_j", "json_extract_string(_j, '$[*]')"),),
    "json_keys": (("_j", "json_keys(_j)"),),
    "json_values": (("_j", "list_transform(json_keys(_j), lambda _qx: json_extract(_j, '$.\"' || _qx || '\"'))"),),
    "json_value_texts": (("_j", "list_transform(json_keys(_j), lambda _qx: json_extract_string(_j, '$.\"' || _qx || '\"'))"),),
    "json_exists": (("_j, _k", "list_contains(json_keys(_j), _k)"),),
    "row_to_json": (("_r", "to_json(_r)"),),
    "octet_length": (("_t", "strlen(_t)"),),
    "json_typeof": (("_j", "CASE WHEN json_type(_j) LIKE '%INT' OR json_type(_j) = 'DOUBLE' THEN 'number' WHEN json_type(_j) = "
                     "'VARCHAR' THEN 'string' ELSE lower(json_type(_j)) END"),),
    "parse_ident": (("_s", "string_split(replace(_s, '\"', ''), '.')"),),
    "regexp_replace": (("_s, _p, _r", "regexp_replace(_s, _p, _r)"), ("_s, _p, _r, _f", _replaced_with_flags())),
}  # fmt: skip
MACROS |= {
    name.replace("json", "jsonb", 1): MACROS[name] for name in list(MACROS) if name.startswith(("json_", "to_json"))
}
MACROS |= {
    name: tuple((arguments, f"pgf_spaced({body})") for arguments, body in bodies)
    for name, bodies in (
        ("jsonb_build_object", [(_pairs(n, "{0}"), f"json_object({_pairs(n, 'CAST({0} AS VARCHAR)')})") for n in range(1, 9)]),
        ("jsonb_build_array", [(_values(n), f"json_array({_values(n)})") for n in range(1, 9)]),
        ("jsonb_object_agg", [("_k, _v", "json_group_object(_k, _v)")]), ("to_jsonb", [("_v", "to_json(_v)")]),
        ("jsonb_joined", [("_l", "to_json(_l)")]),
    )
}  # fmt: skip


def statements() -> list[str]:
    """Return the CREATE MACRO statements, each behind those of the macros that it calls."""
    return [
        f"CREATE MACRO {PREFIX}{name} " + ", ".join(f"({arguments}) AS ({body})" for arguments, body in MACROS[name])
        for name in sorted(MACROS, key=_depth)
    ]


def _depth(name: str) -> int:
    called = {word for _, body in MACROS[name] for word in _CALLED.findall(body)}
    return max((1 + _depth(other) for other in called), default=0)


_CALLED = re.compile(rf"{PREFIX}(\w+)")
