"""PostgreSQL's functions over its catalogs: names, definitions, comments, rights, and states, which tell nothing of the data."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire.catalog.kinds import KINDS, check_listed
from dpsql.frontends.pgwire.catalog.policy_rows import DATABASE
from dpsql.frontends.pgwire.catalog.shape import (
    INFORMATION_SCHEMA,
    denied,
    keywords,
    namespaces,
    quoted,
    relation,
    relations,
    static,
)
from dpsql.frontends.pgwire.catalog.tables import function_texts, view_text, zone_rows
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.resolve import function
from dpsql.frontends.pgwire.constants.syntax import Parser
from dpsql.frontends.pgwire.constants.tokens import said

Context = t.Context


def _constant(signatures: str, value: Any, **options: Any) -> None:
    """Register functions that return the same for any arguments."""
    function(signatures, **options)(lambda *values: value)


# --- names ------------------------------------------------------------------------------------------------------------

_SIZED = re.compile(r"(\[\])?$")


def _sized(name: str, size: object) -> str:
    return _SIZED.sub(lambda match: f"({size}){match[1] or ''}", name, count=1)


@function("format_type(oid, int4) text", context=True, strict=False)
def format_type(context: Context, oid: int | None, modifier: int | None) -> str | None:
    """Return the name of a type with the sizes that its modifier holds."""
    if not oid:
        return None if oid is None else "-"
    name = context.catalog.names.type_name(oid)
    if name is None or modifier is None:
        return name or "???"
    if modifier < 0:
        return {1042: "bpchar", 1560: '"bit"'}.get(oid, name)
    if oid in (1560, 1561, 1562, 1563):
        return _sized(name, modifier)
    if oid in (1014, 1015, 1042, 1043):
        return _sized(name, modifier - 4)
    if oid in (1231, 1700):
        return _sized(name, f"{modifier - 4 >> 16},{modifier - 4 & 65535}")
    if oid in (1083, 1114, 1115, 1182, 1183, 1184, 1185, 1266, 1270):
        return re.sub(r"^(\w+)", rf"\1({modifier})", name)
    if oid == 1186:
        fields = next((f for f in _FIELDS if t.modifier("interval", (), f) >> 16 == modifier >> 16), "")
        digits = modifier & 0xFFFF
        return f"{name} {fields}".rstrip() + f"({digits})" * (digits != 0xFFFF)
    return name


_SINGLE = ("year", "month", "day", "hour", "minute", "second")
_FIELDS = (*_SINGLE, *(f"{a} to {b}" for k, a in enumerate(_SINGLE) for b in _SINGLE[k + 1 :]))


for _kind in [kind for kind in KINDS if kind not in ("regconfig", "regdictionary")]:

    @function(f"to_{_kind}(text) {_kind}", context=True)
    def _to_kind(context: Context, name: str, kind: str = _kind) -> int | None:
        if name.isdecimal():
            return int(name)
        try:
            return context.catalog.names.oid(kind, name, context.catalog.path) or None
        except Error:
            return None


_ENCODINGS = (
    "SQL_ASCII", "EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "UTF8", "MULE_INTERNAL",
    *(f"LATIN{number}" for number in range(1, 11)), "WIN1256", "WIN1258", "WIN866", "WIN874", "KOI8R", "WIN1251", "WIN1252",
    *(f"ISO_8859_{number}" for number in range(5, 9)), "WIN1250", "WIN1253", "WIN1254", "WIN1255", "WIN1257", "KOI8U", "SJIS",
    "BIG5", "GBK", "UHC", "GB18030", "JOHAB", "SHIFT_JIS_2004",
)  # fmt: skip
"""PostgreSQL's names of encodings in the order of their numbers."""
_CODES = {name.replace("_", ""): number for number, name in enumerate(_ENCODINGS)}
function("pg_encoding_to_char(int4) name")(lambda code: _ENCODINGS[code] if 0 <= code < len(_ENCODINGS) else "")
function("pg_char_to_encoding(name) int4")(lambda name: _CODES.get(re.sub(r"[^A-Z0-9]", "", name.upper()), -1))


@function("pg_get_userbyid(oid) name", context=True)
def _user(context: Context, oid: int) -> str:
    name, _ = context.catalog.tables.roles.get(oid, (f"unknown (OID={oid})", False))
    return name


# --- definitions and comments -----------------------------------------------------------------------------------------


@function("pg_get_constraintdef(oid) text; pg_get_constraintdef(oid, bool) text", context=True)
def _constraint(context: Context, oid: int, pretty: bool = False) -> str | None:
    text, full, schema = context.catalog.tables.constraints.get(oid, (None, None, ""))
    return text if schema in ("", *context.catalog.path) else full


@function("pg_get_indexdef(oid) text; pg_get_indexdef(oid, int4, bool) text", context=True)
def _index(context: Context, oid: int, number: int = 0, pretty: bool = False) -> str | None:
    whole, short, columns = context.catalog.tables.indexes.get(oid, (None, None, []))
    if number == 0:
        return short if pretty else whole
    return None if whole is None else columns[number - 1] if 0 < number <= len(columns) else ""


function("pg_get_viewdef(oid) text; pg_get_viewdef(oid, bool) text; pg_get_viewdef(text) text", context=True)(
    lambda context, oid, pretty=False: view_text(
        context.number_of("regclass", oid, None) if isinstance(oid, str) else oid
    )
)
for _name, _part in (("arguments", 0), ("identity_arguments", 1), ("result", 2)):
    function(f"pg_get_function_{_name}(oid) text")(
        lambda oid, index=_part: function_texts().get(oid, (None,) * 3)[index]
    )
_constant(
    "pg_get_expr(pg_node_tree, oid) text; pg_get_expr(pg_node_tree, oid, bool) text; "
    "pg_get_triggerdef(oid) text; pg_get_triggerdef(oid, bool) text; "
    "pg_get_function_sqlbody(oid) text; pg_get_statisticsobjdef_columns(oid) text; "
    "pg_get_statisticsobjdef(oid) text; "
    "pg_get_partkeydef(oid) text; pg_get_partition_constraintdef(oid) text; "
    "pg_partition_root(regclass) regclass; pg_get_replica_identity_index(regclass) regclass; "
    "pg_filenode_relation(oid, oid) regclass; "
    "txid_current_if_assigned() int8; pg_current_xact_id_if_assigned() int8",
    None,
)


@function("pg_get_ruledef(oid) text; pg_get_ruledef(oid, bool) text", context=True)
def _rule(context: Context, oid: int, pretty: bool = False) -> str | None:
    """Return the rule by which a view is read; there are no others."""
    rules = dict(zip(static("pg_rewrite")["oid"], static("pg_rewrite")["ev_class"], strict=True))
    if oid not in rules:
        return None
    name = full_name(context, "pg_class", rules[oid], "regclass")
    return f'CREATE RULE "_RETURN" AS\n    ON SELECT TO {name} DO INSTEAD {view_text(rules[oid])}'


def full_name(context: Context, listed: str, oid: int, kind: str) -> str:
    """Return the name of an object behind that of its schema."""
    schema = context.catalog.tables.schema_of(listed, oid)
    name = context.catalog.names.text(kind, oid, (*namespaces(), *context.catalog.path))
    return f"{quoted(context.catalog.tables.schema_name(schema or 0))}.{name.rpartition('.')[2]}"


@cache
def _procedures() -> dict[int, dict[str, Any]]:
    rows = static("pg_proc")
    return {oid: {name: rows[name][index] for name in rows} for index, oid in enumerate(rows["oid"])}


@function("pg_get_functiondef(oid) text", context=True)
def _function_definition(context: Context, oid: int) -> str | None:
    facts = _procedures().get(oid)
    if facts is None:
        return None
    if facts["prokind"] == "a":
        raise said("42809", f'"{facts["proname"]}" is an aggregate function')
    languages = dict(zip(static("pg_language")["oid"], static("pg_language")["lanname"], strict=True))
    arguments, _, result = function_texts()[oid]
    words = ["WINDOW"] * (facts["prokind"] == "w")
    words += {"i": ["IMMUTABLE"], "s": ["STABLE"]}.get(facts["provolatile"], [])
    words += {"s": ["PARALLEL SAFE"], "r": ["PARALLEL RESTRICTED"]}.get(facts["proparallel"], [])
    words += ["STRICT"] * bool(facts["proisstrict"]) + ["SECURITY DEFINER"] * bool(facts["prosecdef"])
    words += ["LEAKPROOF"] * bool(facts["proleakproof"])
    language, body = languages[facts["prolang"]], facts["prosrc"]
    usual = 1 if language in ("internal", "c") else 100
    words += [f"COST {facts['procost']:g}"] * (facts["procost"] != usual)
    words += [f"ROWS {facts['prorows']:g}"] * (facts["prorows"] not in (0, 1000))
    words += [f"SUPPORT {_procedures()[facts['prosupport']]['proname']}"] if facts["prosupport"] else []
    name = f"{context.catalog.tables.schema_name(facts['pronamespace'])}.{quoted(facts['proname'])}"
    head = f"CREATE OR REPLACE FUNCTION {name}({arguments})\n RETURNS {result}\n LANGUAGE {language}\n"
    return f"{head}{' ' + ' '.join(words) + chr(10) if words else ''}AS $function${body}$function$\n"


@function("pg_get_serial_sequence(text, text) text", context=True)
def _serial(context: Context, table: str, column: str) -> None:
    """Return no sequence: numbers are given by none here."""
    oid = context.number_of("regclass", table, None)
    if column not in context.catalog.tables.columns.get(oid, {}):
        raise said("42703", f'column "{column}" of relation "{table}" does not exist')


def _comment(context: Context, oid: int, number: int, relation_: str | None = None) -> str | None:
    is_relation = relation_ in static("pg_class")["relname"]
    catalog = None if relation_ is None else relation(relation_).oid if is_relation else 0
    comments = context.catalog.tables.comments.get((oid, number), [])
    return next((text for listed_in, text in comments if catalog in (None, listed_in)), None)


function("obj_description(oid) text; obj_description(oid, name) text", context=True)(
    lambda context, oid, relation_=None: _comment(context, oid, 0, relation_)
)
function("shobj_description(oid, name) text", context=True)(lambda context, oid, name: _comment(context, oid, 0, name))
function("col_description(oid, int4) text", context=True)(
    lambda context, oid, number: _comment(context, oid, number) if number else None
)

# --- visibility and rights: everything here may be read, nothing may be written ---------------------------------------


def _visible(name: str) -> Callable[[Context, int], bool | None]:
    def visible(context: Context, oid: int) -> bool | None:
        schema = context.catalog.tables.schema_of(name, oid)
        if schema is None or name in ("pg_type", "pg_class"):
            return (
                None
                if schema is None
                else context.catalog.tables.schema_name(schema) in ("pg_catalog", *context.catalog.path)
            )
        return schema != namespaces()[INFORMATION_SCHEMA] or INFORMATION_SCHEMA in context.catalog.path

    return visible


for _name, _table in (("table", "class"), ("type", "type"), ("function", "proc"), ("operator", "operator"),
                      ("opclass", "opclass"), ("opfamily", "opfamily"), ("collation", "collation"),
                      ("conversion", "conversion"), ("statistics_obj", "statistic_ext"), ("ts_config", "ts_config"),
                      ("ts_dict", "ts_dict"), ("ts_parser", "ts_parser"), ("ts_template", "ts_template")):  # fmt: skip
    function(f"pg_{_name}_is_visible(oid) bool", context=True)(_visible(f"pg_{_table}"))


@lru_cache(maxsize=256)
def _granted(rights: str, possible: tuple[str, ...], granted: tuple[str, ...]) -> bool:
    """Return whether an analyst has one of the rights that a text names. Raises 22023 for a word that is none."""
    named = set[str]()
    for written in rights.split(","):
        word = re.sub(r" WITH (?:GRANT|ADMIN) OPTION$", "", written.strip().upper())
        if word not in possible:
            raise refuse("catalog_privilege", name=written.strip())
        if word == written.strip().upper():  # nobody may grant what an analyst has
            named.add(word)
    return not named.isdisjoint(granted)


def _check_role(context: Context, role: Any) -> None:
    if isinstance(role, str) and role != "public":
        context.catalog.names.oid("regrole", quoted(role), context.catalog.path)


@cache
def _withheld() -> frozenset[int]:
    """Return the OIDs of the relations and schemas that only superusers read."""
    rows = static("pg_namespace")
    schemas = [oid for oid, rights in zip(rows["oid"], rows["nspacl"], strict=True) if rights is None]
    return frozenset((*(listed.oid for listed in relations().values() if listed.name in denied()), *schemas))


def _rights(kind: str, object_: str, possible: tuple[str, ...], granted: int = 1) -> None:
    """Register has_KIND_privilege of a role or of the present one, and of an object by its name or OID. `granted`: how many of
    the possible rights an analyst has."""
    name = f"has_{kind}_privilege"

    def check(context: Context, *values: Any) -> bool | None:
        *role, item, rights = values
        for text in role:
            _check_role(context, text)
        if isinstance(item, str):
            if object_:
                item = context.number_of(object_, item, None)
            else:
                check_listed(name, item, context.catalog.database, None)
        space = context.catalog.tables.schema_of("pg_class", item) if kind in ("table", "any_column") else 0
        if space is None:
            return None
        return _granted(rights, possible, possible[: granted * _withheld().isdisjoint((item, space))])

    forms = [f"{name}({role}{item}, text) bool" for role in ("", "name, ", "oid, ") for item in ("text", "oid")]
    function("; ".join(forms), context=True)(check)


_TABLE_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
_COLUMN_RIGHTS = ("SELECT", "INSERT", "UPDATE", "REFERENCES")
_rights("schema", "regnamespace", ("USAGE", "CREATE"))
_rights("database", "", ("CONNECT", "CREATE", "TEMPORARY", "TEMP"))
_rights("table", "regclass", _TABLE_RIGHTS)
_rights("any_column", "regclass", _COLUMN_RIGHTS)
_rights("function", "regprocedure", ("EXECUTE",))
_rights("language", "", ("USAGE",))
_rights("type", "regtype", ("USAGE",))
_rights("sequence", "regclass", ("USAGE", "SELECT", "UPDATE"), granted=0)
_rights("tablespace", "", ("CREATE",), granted=0)
_rights("foreign_data_wrapper", "", ("USAGE",), granted=0)
_rights("server", "", ("USAGE",), granted=0)
function("has_parameter_privilege(text, text) bool; has_parameter_privilege(name, text, text) bool")(
    lambda *values: _granted(values[-1], ("SET", "ALTER SYSTEM"), ())
)


@function(
    "; ".join(
        f"has_column_privilege({role}{table}, {column}, text) bool"
        for role in ("", "name, ", "oid, ") for table in ("text", "oid") for column in ("text", "int2")
    ),
    context=True,
)  # fmt: skip
def _column_right(context: Context, *values: Any) -> bool | None:
    *role, table, column, rights = values
    for text in role:
        _check_role(context, text)
    oid = context.number_of("regclass", table, None) if isinstance(table, str) else table
    if column not in context.catalog.tables.columns.get(oid, {}):
        table = context.catalog.names.text("regclass", oid, (*namespaces(), *context.catalog.path))
        raise refuse("catalog_column", name=f'"{column}" of relation "{table}"')
    return _granted(rights, _COLUMN_RIGHTS, _COLUMN_RIGHTS[: oid not in _withheld()])


@function(
    "; ".join(f"pg_has_role({user}{role}, text) bool" for user in ("", "name, ", "oid, ") for role in ("name", "oid")),
    context=True,
)
def _has_role(context: Context, *values: Any) -> bool:
    *user, role, rights = values
    roles = context.catalog.tables.roles
    for text in (*user, role):
        _check_role(context, text)
    _granted(rights, ("MEMBER", "USAGE", "SET"), ())
    asker = user[0] if user else context.catalog.user
    return any(rules or role in (name, oid) for oid, (name, rules) in roles.items() if asker in (name, oid))


_constant("row_security_active(oid) bool; pg_relation_is_publishable(regclass) bool; "
          "pg_column_is_updatable(regclass, int2, bool) bool; "
          "pg_cancel_backend(int4) bool; pg_terminate_backend(int4, int8?) bool", False)  # fmt: skip
_constant("pg_relation_is_updatable(regclass, bool) int4", 0)

# --- sizes and states that reveal nothing about the data --------------------------------------------------------------

_constant(
    "; ".join(f"{name}({type_}) int8" for name, types in (
        ("pg_relation_size", ("regclass", "regclass, text")), ("pg_total_relation_size", ("regclass",)),
        ("pg_table_size", ("regclass",)), ("pg_indexes_size", ("regclass",)), ("pg_database_size", ("oid", "name")),
        ("pg_tablespace_size", ("oid", "name")),
    ) for type_ in types), 0)  # fmt: skip


@function("pg_tablespace_location(oid) text")
def _location(oid: int) -> str:
    if oid not in (0, *static("pg_tablespace")["oid"]):
        raise said("58P01", f'could not read symbolic link "pg_tblspc/{oid}": No such file or directory')
    return ""


@function("pg_is_wal_replay_paused() bool")
def _paused() -> bool:
    raise said(
        "55000", "recovery is not in progress", None, "Recovery control functions can only be executed during recovery."
    )


_constant("pg_notify(text, text) void", "")
_constant("txid_current() int8", 1)
_constant("pg_current_snapshot() pg_snapshot; txid_current_snapshot() txid_snapshot", "1:1:")
_constant("pg_blocking_pids(int4) _int4; pg_safe_snapshot_blocking_pids(int4) _int4", [])
function("pg_relation_filenode(regclass) oid")(lambda oid: oid)
function("pg_relation_filepath(regclass) text")(lambda oid: f"base/{DATABASE}/{oid}")
_constant("age(xid) int4", 2147483647)
_constant("_pg_truetypmod(record, record) int4", -1)
_constant("pg_last_wal_receive_lsn() pg_lsn; pg_last_wal_replay_lsn() pg_lsn; pg_last_xact_replay_timestamp() timestamptz; "
          "pg_get_function_arg_default(oid, int4) text", None)  # fmt: skip


@function("_pg_truetypid(record, record) oid")
def _true_type(column: t.Record, type_: t.Record) -> int:
    row = dict(zip(type_.names, type_.values, strict=True))
    base: int = dict(zip(column.names, column.values, strict=True))["atttypid"]
    return row["typbasetype"] if row["typtype"] == "d" else base


@function("nextval(regclass) int8; currval(regclass) int8; setval(regclass, int8, bool?) int8", context=True)
def _no_sequence(context: Context, oid: int, *values: Any) -> int:
    raise said("42809", f'"{context.catalog.names.text("regclass", oid, context.catalog.path)}" is not a sequence')


@function("lastval() int8")
def _no_last_value() -> int:
    raise said("55000", "lastval is not yet defined in this session")


# --- sets of rows -----------------------------------------------------------------------------------------------------


_Shape = tuple[tuple[str, str], ...]


def rows_of(signature: str, shape: _Shape, call: Callable[..., list[tuple[Any, ...]]], **options: Any) -> None:
    """Register a function that returns rows of these columns."""
    types, names = tuple(type_ for _, type_ in shape), tuple(name for name, _ in shape)
    function(f"{signature} *record", shape=shape, **options)(
        lambda *values: [t.Record(row, types, names) for row in call(*values)]
    )


def _relation_rows(name: str, rows: Callable[[Context], list[tuple[Any, ...]]], called: str = "") -> None:
    shape = tuple((column, type_) for column, (type_, _) in relation(name).columns.items())
    rows_of(f"{called or name}()", shape, rows, context=True)


def _shape_of(name: str) -> _Shape:
    """Return the columns that PostgreSQL says of a function."""
    rows = static("pg_proc")
    index = rows["proname"].index(name)
    facts = zip(*(rows[f"pro{fact}"][index] for fact in ("argnames", "allargtypes", "argmodes")), strict=True)
    return tuple((label, t.named(oid)) for label, oid, mode in facts if mode != "i")


_ACTIVITY = _shape_of("pg_stat_get_activity")


@function("nameconcatoid(name, oid) name")
def _numbered(name: str, oid: int) -> str:
    """Return a name with the number of its object, which has room in a name."""
    return f"{name[: 62 - len(str(oid))]}_{oid}"


@function("current_query() text", context=True)
def _query(context: Context) -> str:
    """Return the text that the connection has sent."""
    return str(next((text for (text,) in context.catalog.connection_rows("query")), ""))


def _activity(context: Context, process: int | None) -> list[tuple[Any, ...]]:
    """Return the connection itself: an analyst sees no other, and its statement is the one that asks."""
    catalog = context.catalog
    row = {"datid": DATABASE, "pid": catalog.process, "usesysid": catalog.names.oid("regrole", quoted(catalog.user), ()),
           "application_name": catalog.settings.get("application_name"), "state": "active", "client_port": -1,
           "query": _query(context)[:1023],
           **dict.fromkeys(("xact_start", "query_start", "backend_start", "state_change"), context.now),
           "backend_type": "client backend", "ssl": catalog.settings.encrypted,
           **dict.fromkeys(("gss_auth", "gss_enc", "gss_delegation"), False)}  # fmt: skip
    return [tuple(row.get(name) for name, _ in _ACTIVITY)] * (process in (None, catalog.process))


rows_of("pg_stat_get_activity(int4)", _ACTIVITY, _activity, context=True, strict=False)
_relation_rows("pg_timezone_names", lambda context: zone_rows())
_relation_rows("pg_timezone_abbrevs", lambda context: context.catalog.tables.rows("pg_timezone_abbrevs"))


def _settings(context: Context) -> list[tuple[Any, ...]]:
    """Return the settings with their values in this connection."""
    columns, changed = list(relation("pg_settings").columns), context.catalog.settings.snapshot()
    name, setting, source = map(columns.index, ("name", "setting", "source"))
    rows = [list(row) for row in context.catalog.tables.rows("pg_settings")]
    for row in rows:
        if (value := changed.get(row[name].lower(), row[setting])) != row[setting]:
            row[setting], row[source] = value, "session"
    return list(map(tuple, rows))


_relation_rows("pg_settings", _settings, "pg_show_all_settings")
for _called, _listed in (
    ("pg_available_extensions", ""), ("pg_available_extension_versions", ""), ("pg_lock_status", "pg_locks"),
    ("pg_prepared_xact", "pg_prepared_xacts"), ("pg_get_replication_slots", "pg_replication_slots"),
):  # fmt: skip

    def _viewed(context: Context, name: str = _listed or _called, called: str = _called) -> list[tuple[Any, ...]]:
        """Return the columns of a function from the rows of the view that PostgreSQL makes of it."""
        columns = list(relation(name).columns)
        indexes = [columns.index(column) if column in columns else None for column, _ in _shape_of(called)]
        rows = context.catalog.tables.rows(name)
        return [tuple(None if index is None else row[index] for index in indexes) for row in rows]

    rows_of(f"{_called}()", _shape_of(_called), _viewed, context=True)
rows_of(
    "pg_get_keywords()",
    (("word", "text"), ("catcode", "char"), ("barelabel", "bool"), ("catdesc", "text"), ("baredesc", "text")),
    lambda: [tuple(row) for row in keywords()],
)
rows_of(
    "_pg_expandarray(anyarray)", (("x", "anyelement"), ("n", "int4")),
    lambda values: [(value, number) for number, value in enumerate(values, 1)],
)  # fmt: skip
rows_of("pg_partition_tree(regclass)", (("relid", "regclass"), ("parentrelid", "regclass"), ("isleaf", "bool"),
         ("level", "int4")), lambda oid: [])  # fmt: skip
for _listing, _called in (("statements", "pg_prepared_statement"), ("cursors", "pg_cursor")):
    rows_of(
        f"{_called}()",
        _shape_of(_called),
        lambda context, listing=_listing: context.catalog.connection_rows(listing),
        context=True,
    )
function("pg_listening_channels() *text", context=True)(
    lambda context: [name for (name,) in context.catalog.connection_rows("channels")]
)


def _options(options: list[str | None]) -> list[tuple[Any, ...]]:
    if None in options:
        raise said("22004", "null array element not allowed in this context")
    return [(o.partition("=")[0], o.partition("=")[2] if "=" in o else None) for o in map(str, options)]


rows_of("pg_options_to_table(_text)", (("option_name", "text"), ("option_value", "text")), _options)
function("pg_partition_ancestors(regclass) *regclass")(lambda oid: [])
_LETTERS = {"r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE", "D": "TRUNCATE", "x": "REFERENCES", "t": "TRIGGER",
            "X": "EXECUTE", "U": "USAGE", "C": "CREATE", "T": "TEMPORARY", "c": "CONNECT"}  # fmt: skip
_ITEM = re.compile(r'("(?:[^"]|"")*"|[^=]*)=([\w*]*)/(.*)')


def _exploded(context: Context, items: list[str]) -> list[tuple[Any, ...]]:
    """Return the rights that a list of them names."""
    oids = context.catalog.tables.role_oids
    rows = list[tuple[Any, ...]]()
    for match in filter(None, map(_ITEM.fullmatch, items)):
        grantee, grantor = (oids.get(match[k].strip('"'), 0) for k in (1, 3))
        for letter, star in re.findall(r"(\w)(\*?)", match[2]):
            rows.append((grantor, grantee, _LETTERS.get(letter, letter), bool(star)))
    return rows


_DEFAULT_RIGHTS = {"r": ("", "arwdDxt"), "s": ("", "rwU"), "d": ("Tc", "CTc"), "f": ("X", "X"), "l": ("U", "U"), "n": ("", "UC"),
                   "t": ("", "C"), "F": ("", "U"), "S": ("", "U"), "T": ("U", "U"), "p": ("", "sA"), "L": ("", "rw")}  # fmt: skip
"""The rights that everybody and the owner have to an object of each kind."""


@function("acldefault(char, oid) _aclitem", context=True)
def _default_rights(context: Context, kind: str, owner: int) -> list[str]:
    if kind != "c" and kind not in _DEFAULT_RIGHTS:
        raise said("XX000", f"unrecognized object type abbreviation: {kind}")
    everybody, owners = _DEFAULT_RIGHTS.get(kind, ("", ""))
    name = quoted(_user(context, owner))
    return [f"={everybody}/{name}"] * bool(everybody) + [f"{name}={owners}/{name}"] * bool(owners)


rows_of("aclexplode(_aclitem)", (("grantor", "oid"), ("grantee", "oid"), ("privilege_type", "text"),
         ("is_grantable", "bool")), _exploded, context=True)  # fmt: skip


def _read_acl_item(text: str, context: Context, position: int | None) -> str:
    """Return a right as PostgreSQL writes it. Raises what it says of other texts, and of roles that there are not."""
    match = _ITEM.fullmatch(text.strip().removeprefix("group ").removeprefix("user "))
    if match is None:
        near = 'missing "=" sign' if "=" not in text else 'a name must follow the "/" sign'
        raise said("22P02", near, position)
    letters = re.findall(r"(.)(\*?)", match[2])
    if wrong := [letter for letter, _ in letters if letter not in _LETTER_ORDER]:
        order = "arwdDxtXUCTcsA"
        raise said("22P02", f'invalid mode character: must be one of "{order}" (not "{wrong[0]}")', position)
    for name in filter(None, (match[1], match[3])):
        context.number_of("regrole", name, position)
    stars = dict(sorted(letters, key=lambda pair: pair[1]))
    return f"{match[1]}={''.join(letter + stars[letter] for letter in _LETTER_ORDER if letter in stars)}/{match[3]}"


_LETTER_ORDER = "arwdDxtXUCTcsA"
t.OBJECT_READERS["aclitem"] = _read_acl_item
function("=(aclitem, aclitem) bool; aclitemeq(aclitem, aclitem) bool")(lambda a, b: a == b)


@function("@>(_aclitem, aclitem) bool; aclcontains(_aclitem, aclitem) bool")
def _has_rights(items: list[str], item: str) -> bool:
    """Return whether one of the items has the rights of another, of the same two roles."""
    expected = _ITEM.fullmatch(item)
    matches = [match for match in map(_ITEM.fullmatch, filter(None, items)) if match is not None]
    return expected is not None and any(
        (match[1], match[3]) == (expected[1], expected[3])
        and set(re.findall(r"\w\*?", expected[2])) <= {*re.findall(r"\w\*?", match[2]), *re.findall(r"\w", match[2])}
        for match in matches
    )


_constant(
    "pg_current_wal_lsn() pg_lsn; pg_current_wal_insert_lsn() pg_lsn; pg_current_wal_flush_lsn() pg_lsn", "0/1000000"
)
_constant("pg_current_xact_id() xid8", 1)
_constant("txid_current_if_assigned() int8; pg_current_xact_id_if_assigned() xid8", None)


@function("makeaclitem(oid, oid, text, bool) aclitem", context=True)
def _acl_item(context: Context, grantee: int, grantor: int, rights: str, grantable: bool) -> str:
    letters = {_LETTERS[letter]: letter for letter in "arwdDxtXUCTc"}
    words = [word.strip().upper() for word in rights.split(",")]
    if not set(words) <= set(letters):
        raise refuse("catalog_privilege", name=rights)
    names = [quoted(_user(context, oid)) if oid else "" for oid in (grantee, grantor)]
    granted = (letter + "*" * grantable for word, letter in letters.items() if word in words)
    return f"{names[0]}={''.join(granted)}/{names[1]}"


# --- texts as values ------------------------------------------------------------------------------------------------


def _input_error(context: Context, text: str, name: str) -> list[tuple[Any, ...]]:
    """Return why a text is no value of a type: the message, detail and hint, and the SQLSTATE of reading it."""
    parser = Parser(name)
    kind = parser.type_name().name.strip('"')
    if parser.token.kind != "end":
        raise parser.problem()
    if not t.exists(kind):
        raise said("42704", f'type "{kind}" does not exist')
    try:
        t.read(text, kind, context)
    except Error as error:
        return [(error.message, None, error.hint or None, error.sqlstate)]
    return [(None, None, None, None)]


function("pg_input_is_valid(text, text) bool", context=True)(lambda *values: _input_error(*values)[0][3] is None)
rows_of("pg_input_error_info(text, text)", (("message", "text"), ("detail", "text"), ("hint", "text"),
         ("sql_error_code", "text")), _input_error, context=True)  # fmt: skip
function("oidvectortypes(oidvector) text", context=True)(
    lambda context, oids: ", ".join(context.catalog.names.type_name(oid) or "???" for oid in oids)
)
