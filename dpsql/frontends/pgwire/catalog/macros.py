"""PostgreSQL's catalog functions as DuckDB macros over the catalog tables, named with a prefix that no client writes.

Macros are not hygienic: an alias inside of one would capture the same name in its argument, so inner aliases start with `_q`.
"""

from __future__ import annotations

PREFIX = "pgf_"


def _pairs(count: int, key: str) -> str:
    """Return a list of `count` pairs of a key's name, written in the form `key`, and the value's name."""
    return ", ".join(f"{key.format(f'_k{number}')}, _v{number}" for number in range(count))


def _replaced_with_flags() -> str:
    """Return regexp_replace with any of the flags g and i, which DuckDB 1.4 wants as constants."""
    cases = " ".join(f"WHEN '{flags}' THEN regexp_replace(_s, _p, _r, '{flags}')" for flags in ("g", "i", "gi", "ig"))
    return f"CASE _f {cases} WHEN '' THEN regexp_replace(_s, _p, _r) ELSE if(_f IS NOT NULL, error('invalid flags'), NULL) END"


# name: one body for each number of arguments; (arguments, expression)
MACROS: dict[str, tuple[tuple[str, str], ...]] = {
    # types and names
    "format_type": (("_t, _m", "(SELECT _q.name FROM pgx.formatted _q WHERE _q.oid = CAST(_t AS UINTEGER))"),),
    "to_regclass": (("_n", "(SELECT _q.oid FROM pgc.pg_class _q WHERE _q.relname = parse_path(_n, '.')[-1] OR "
                     "_q.relname = replace(split_part(_n, '.', -1), '\"', '') LIMIT 1)"),),
    "regclass_name": (("_o", "coalesce((SELECT _q.relname FROM pgc.pg_class _q WHERE _q.oid = _o), CAST(_o AS "
    "VARCHAR))"),),
    "regnamespace_name": (("_o", "(SELECT _q.nspname FROM pgc.pg_namespace _q WHERE _q.oid = _o)"),),
    "to_regtype": (("_n", "(SELECT _q.oid FROM pgx.type_names _q WHERE _q.name = _n)"),),
    "quote_ident": (("_s", "CASE WHEN regexp_full_match(_s, '[a-z_][a-z0-9_$]*') THEN _s ELSE '\"' || _s || '\"' "
    "END"),),
    "quote_literal": (("_s", "'''' || replace(CAST(_s AS VARCHAR), '''', '''''') || ''''"),),
    "pg_encoding_to_char": (("_e", "CASE WHEN _e = 6 THEN 'UTF8' ELSE '' END"),),
    "pg_client_encoding": (("", "'UTF8'"),),
    "pg_char_to_encoding": (("_e", "CASE WHEN upper(_e) IN ('UTF8', 'UTF-8') THEN 6 ELSE -1 END"),),
    "getdatabaseencoding": (("", "'UTF8'"),),
    "pg_get_userbyid": (("_o", "coalesce((SELECT _q.rolname FROM pgc.pg_roles _q WHERE _q.oid = _o), "
                         "'unknown (OID=' || _o || ')')"),),
    # definitions
    "pg_get_expr": (("_e, _r", "CAST(NULL AS VARCHAR)"), ("_e, _r, _p", "CAST(NULL AS VARCHAR)")),
    "pg_get_constraintdef": (
        ("_o", "(SELECT _q.constraint_text FROM pgx.definitions _q WHERE _q.constraint_oid = _o)"),
        ("_o, _p", "(SELECT _q.constraint_text FROM pgx.definitions _q WHERE _q.constraint_oid = _o)"),
    ),
    "pg_get_indexdef": (
        ("_o", "(SELECT _q.index_text FROM pgx.definitions _q WHERE _q.index_oid = _o AND _o <> 0)"),
        ("_o, _c, _p", "(SELECT CASE WHEN CAST(_c AS INTEGER) = 0 THEN _q.index_text ELSE _q.column_names[_c] END "
         "FROM pgx.definitions _q WHERE _q.index_oid = _o AND _o <> 0)"),
    ),
    "pg_get_viewdef": (("_o", "CAST(NULL AS VARCHAR)"), ("_o, _p", "CAST(NULL AS VARCHAR)")),
    "pg_get_ruledef": (("_o", "CAST(NULL AS VARCHAR)"), ("_o, _p", "CAST(NULL AS VARCHAR)")),
    "pg_get_triggerdef": (("_o", "CAST(NULL AS VARCHAR)"), ("_o, _p", "CAST(NULL AS VARCHAR)")),
    "pg_get_functiondef": (("_o", "CAST(NULL AS VARCHAR)"),),
    "pg_get_function_result": (("_o", "CAST(NULL AS VARCHAR)"),),
    "pg_get_function_arguments": (("_o", "CAST(NULL AS VARCHAR)"),),
    "pg_get_function_identity_arguments": (("_o", "CAST(NULL AS VARCHAR)"),),
    "pg_get_function_sqlbody": (("_o", "CAST(NULL AS VARCHAR)"),),
    "pg_get_statisticsobjdef_columns": (("_o", "CAST(NULL AS VARCHAR)"),),
    "pg_get_serial_sequence": (("_t, _c", "CAST(NULL AS VARCHAR)"),),
    "pg_get_partkeydef": (("_o", "CAST(NULL AS VARCHAR)"),),
    "pg_get_partition_constraintdef": (("_o", "CAST(NULL AS VARCHAR)"),),
    "pg_partition_ancestors": (("_o", "CAST(_o AS UINTEGER)"),),
    "pg_partition_root": (("_o", "CAST(_o AS UINTEGER)"),),
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
    **dict.fromkeys(("pg_table_is_visible", "pg_type_is_visible", "pg_function_is_visible", "pg_operator_is_visible",
    "pg_opclass_is_visible", "pg_opfamily_is_visible", "pg_collation_is_visible", "pg_conversion_is_visible",
    "pg_statistics_obj_is_visible", "pg_ts_config_is_visible", "pg_ts_dict_is_visible", "pg_ts_parser_is_visible",
    "pg_ts_template_is_visible"), (("_o", "true"),)),
    **{
        name: (("_o, _p", f"({rights})"), ("_u, _o, _p", f"({rights})"))
        for name, rights in (
            ("has_schema_privilege", "upper(_p) LIKE '%USAGE%'"), ("has_database_privilege",
            "upper(_p) LIKE '%CONNECT%'"),
            ("has_table_privilege", "upper(_p) LIKE '%SELECT%'"), ("has_any_column_privilege",
            "upper(_p) LIKE '%SELECT%'"),
            ("has_sequence_privilege", "false"), ("has_function_privilege", "false"), ("has_tablespace_privilege",
            "false"),
            ("pg_has_role", "true"), ("has_language_privilege", "false"), ("has_type_privilege", "true"),
            ("has_foreign_data_wrapper_privilege", "false"), ("has_server_privilege", "false"),
        )
    },
    "has_column_privilege": (("_t, _c, _p", "(upper(_p) LIKE '%SELECT%')"), ("_u, _t, _c, _p",
    "(upper(_p) LIKE '%SELECT%')")),
    "row_security_active": (("_o", "false"),),
    "pg_relation_is_publishable": (("_o", "false"),),
    "pg_relation_is_updatable": (("_o, _f", "0"),),
    "pg_column_is_updatable": (("_o, _n, _f", "false"),),
    # sizes and states that reveal nothing about the data
    **dict.fromkeys(("pg_relation_size", "pg_total_relation_size", "pg_table_size", "pg_indexes_size",
    "pg_database_size", "pg_tablespace_size", "pg_stat_get_numscans", "pg_stat_get_live_tuples"), (("_o",
    "CAST(0 AS BIGINT)"),)),
    "pg_size_pretty": (("_n", "CAST(_n AS VARCHAR) || ' bytes'"),),
    "pg_tablespace_location": (("_o", "''"),),
    "pg_filenode_relation": (("_a, _b", "CAST(NULL AS UINTEGER)"),),
    "pg_is_in_recovery": (("", "false"),),
    "pg_is_other_temp_schema": (("_o", "false"),),
    "pg_my_temp_schema": (("", "CAST(0 AS UINTEGER)"),),
    "pg_postmaster_start_time": (("", "CAST('2000-01-01' AS TIMESTAMP)"),),
    "pg_conf_load_time": (("", "CAST('2000-01-01' AS TIMESTAMP)"),),
    "pg_advisory_unlock_all": (("", "''"),),
    "pg_try_advisory_lock": (("_k", "true"), ("_a, _b", "true")),
    "pg_advisory_unlock": (("_k", "true"), ("_a, _b", "true")),
    "pg_current_xact_id_if_assigned": (("", "CAST(NULL AS BIGINT)"),),
    "txid_current": (("", "CAST(1 AS BIGINT)"),),
    "inet_server_addr": (("", "CAST(NULL AS VARCHAR)"),),
    "inet_server_port": (("", "CAST(NULL AS INTEGER)"),),
    "inet_client_addr": (("", "CAST(NULL AS VARCHAR)"),),
    "inet_client_port": (("", "CAST(NULL AS INTEGER)"),),
    "pg_timezone_abbrevs": (("", "CAST(NULL AS VARCHAR)"),),
    # arrays and texts
    "array_to_string": (
        ("_a, _s", "array_to_string(list_filter(_a, lambda _qx: _qx IS NOT NULL), _s)"),
        ("_a, _s, _n", "array_to_string(list_transform(_a, lambda _qx: coalesce(CAST(_qx AS VARCHAR), _n)), _s)"),
    ),
    "array_upper": (("_a, _d", "CASE WHEN len(_a) > 0 THEN CAST(len(_a) AS INTEGER) END"),),
    "array_lower": (("_a, _d", "CASE WHEN len(_a) > 0 THEN 1 END"),),
    "array_length": (("_a, _d", "CASE WHEN len(_a) > 0 THEN CAST(len(_a) AS INTEGER) END"),),
    "cardinality": (("_a", "CAST(len(_a) AS INTEGER)"),),
    "array_ndims": (("_a", "CASE WHEN len(_a) > 0 THEN 1 END"),),
    "array_positions": (("_a, _v", "list_filter(range(1, len(_a) + 1), lambda _qx: _a[_qx] = _v)"),),
    "string_to_array": (("_t, _s", "string_split(_t, _s)"),),
    "generate_subscripts": (("_a, _d", "unnest(generate_series(1, len(_a)))"),),
    "_pg_expandarray": (("_a", "unnest(list_transform(_a, lambda _qx, _qi: {'x': _qx, 'n': CAST(_qi AS INTEGER)}))"),),
    "_pg_char_max_length": (("_t, _m", "CAST(NULL AS INTEGER)"),),
    "_pg_truetypid": (("_a, _t", "_a.atttypid"),),
    "_pg_truetypmod": (("_a, _t", "-1"),),
    "json_build_object": tuple(
        (_pairs(n, "{0}"), f"CAST(json_object({_pairs(n, 'CAST({0} AS VARCHAR)')}) AS VARCHAR)") for n in range(1, 9)
    ),
    "parse_ident": (("_s", "string_split(replace(_s, '\"', ''), '.')"),),
    "pg_typeof": (("_v", "lower(typeof(_v))"),),
    "regexp_replace": (("_s, _p, _r", "regexp_replace(_s, _p, _r)"), ("_s, _p, _r, _f", _replaced_with_flags())),
}  # fmt: skip


def statements() -> list[str]:
    """Return the CREATE MACRO statements."""
    return [
        f"CREATE MACRO {PREFIX}{name} " + ", ".join(f"({arguments}) AS ({body})" for arguments, body in overloads)
        for name, overloads in MACROS.items()
    ]
