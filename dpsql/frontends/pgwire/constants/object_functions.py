"""PostgreSQL's functions about single objects: their names and addresses, properties of indexes, token types, advisory locks."""

from __future__ import annotations

import re
from typing import Any

from dpsql.frontends.pgwire.catalog.shape import quoted, relation, static
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.catalog_functions import format_type, full_name, rows_of
from dpsql.frontends.pgwire.constants.resolve import function
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said

Context = t.Context


# --- objects by their numbers -----------------------------------------------------------------------------------------

_RELATION_KINDS = {
    "r": "table",
    "v": "view",
    "i": "index",
    "S": "sequence",
    "t": "toast table",
    "m": "materialized view",
}
_DESCRIBED = {"pg_class": ("", "regclass"), "pg_type": ("type", "regtype"), "pg_proc": ("function", "regprocedure"),
              "pg_namespace": ("schema", "regnamespace"), "pg_operator": ("operator", "regoperator"),
              "pg_authid": ("role", "regrole"), "pg_collation": ("collation", "regcollation")}  # fmt: skip


def _described(context: Context, catalog: int, oid: int) -> tuple[str, str, str] | None:
    """Return the kind of an object, its name as it is found, and the kind of this name; None if there is none."""
    listed = next((name for name in _DESCRIBED if relation(name).oid == catalog), "")
    kind, form = _DESCRIBED.get(listed, ("", ""))
    if not form:
        raise Elsewhere
    name = context.catalog.names.text(form, oid, context.catalog.path)
    if name == str(oid):
        return None
    if listed == "pg_class":
        rows = context.catalog.tables.rows("pg_class")
        index = list(relation("pg_class").columns).index("relkind")
        kind = next(_RELATION_KINDS.get(row[index], "table") for row in rows if row[0] == oid)
    return kind, name, form


def _column_of(context: Context, oid: int, number: int) -> str:
    columns = context.catalog.tables.columns.get(oid, {})
    return next((name for name, k in columns.items() if k == number and isinstance(name, str)), "")


@function("pg_describe_object(oid, oid, int4) text", context=True)
def _describe(context: Context, catalog: int, oid: int, number: int) -> str | None:
    facts = _described(context, catalog, oid) if oid else None
    if facts is None:
        return None
    column = _column_of(context, oid, number) if number else ""
    return f"column {column} of {facts[0]} {facts[1]}" if column else f"{facts[0]} {facts[1]}"


def _identified(context: Context, catalog: int, oid: int, number: int) -> list[tuple[Any, ...]]:
    facts = _described(context, catalog, oid) if oid else None
    if facts is None:
        return [(None, None, None, None)]
    kind, name, form = facts
    if form in ("regnamespace", "regrole"):
        return [(kind, None, name, name)]
    if form != "regclass":
        raise Elsewhere
    column = _column_of(context, oid, number) if number else ""
    full = full_name(context, "pg_class", oid, form)
    parts = full.split(".") if '"' not in full else [full]
    if len(parts) != 2:
        raise Elsewhere
    return [(f"{kind} column" if column else kind, *parts, f"{full}.{quoted(column)}" if column else full)]


rows_of("pg_identify_object(oid, oid, int4)", (("type", "text"), ("schema", "text"), ("name", "text"), ("identity", "text")),
         _identified, context=True)  # fmt: skip


_ADDRESS = (("type", "text"), ("object_names", "_text"), ("object_args", "_text"))


def _addressed(context: Context, catalog: int, oid: int, number: int) -> list[tuple[Any, ...]]:
    [(kind, schema, _, identity)] = _identified(context, catalog, oid, number)
    if kind is None:
        return [(None, None, None)]
    names = [name.strip('"').replace('""', '"') for name in ([identity] if schema is None else identity.split("."))]
    return [(kind, names, [])]


rows_of("pg_identify_object_as_address(oid, oid, int4)", _ADDRESS, _addressed, context=True)


def _address(context: Context, kind: str, names: list[str], arguments: list[str]) -> list[tuple[Any, ...]]:
    """Return the address of a relation, a column or a schema."""
    word, _, part = kind.partition(" ")
    column = names[-1] if part == "column" else ""
    named = names[:-1] if column else names
    if kind == "schema":
        return [(relation("pg_namespace").oid, context.number_of("regnamespace", quoted(named[-1]), None), 0)]
    if word not in _RELATION_KINDS.values() or part not in ("", "column", "table") or not named:
        raise Elsewhere
    oid = context.number_of("regclass", ".".join(map(quoted, named)), None)
    numbers = context.catalog.tables.columns.get(oid, {})
    if column and column not in numbers:
        text = full_name(context, "pg_class", oid, "regclass")
        raise said("42703", f'column "{column}" of relation "{text}" does not exist')
    return [(relation("pg_class").oid, oid, numbers[column] if column else 0)]


rows_of("pg_get_object_address(text, _text, _text)", (("classid", "oid"), ("objid", "oid"), ("objsubid", "int4")),
        _address, context=True)  # fmt: skip

# --- properties of indexes: all that are listed here are B-trees ------------------------------------------------------

_BTREE = 403
_METHOD_RIGHTS = {403: "order unique multi_col exclude include", 405: "exclude", 783: "multi_col exclude include",
                  2742: "multi_col", 4000: "exclude include", 3580: "multi_col"}  # fmt: skip
_METHOD_WORDS = tuple(f"can_{word}" for word in _METHOD_RIGHTS[_BTREE].split())
_INDEX_WORDS = ("clusterable", "index_scan", "bitmap_scan", "backward_scan")


@function("pg_indexam_has_property(oid, text) bool")
def _method_property(oid: int, name: str) -> bool | None:
    is_listed = oid in _METHOD_RIGHTS and name.lower() in _METHOD_WORDS
    return name.lower().removeprefix("can_") in _METHOD_RIGHTS[oid].split() if is_listed else None


def _index_options(context: Context, oid: int) -> list[int] | None:
    """Return the options of the columns of an index; None for what is none."""
    columns = list(relation("pg_index").columns)
    number_of_index, options = columns.index("indexrelid"), columns.index("indoption")
    return next((row[options] for row in context.catalog.tables.rows("pg_index") if row[number_of_index] == oid), None)


@function("pg_index_has_property(regclass, text) bool", context=True)
def _index_property(context: Context, oid: int, name: str) -> bool | None:
    return True if name.lower() in _INDEX_WORDS and _index_options(context, oid) is not None else None


@function("pg_index_column_has_property(regclass, int4, text) bool", context=True)
def _column_property(context: Context, oid: int, number: int, name: str) -> bool | None:
    options = _index_options(context, oid)
    if options is None or not 0 < number <= len(options):
        return None
    descends, nulls_first = bool(options[number - 1] & 1), bool(options[number - 1] & 2)
    ordered = {"asc": not descends, "desc": descends, "nulls_first": nulls_first, "nulls_last": not nulls_first}
    always = dict.fromkeys(("orderable", "returnable", "search_array", "search_nulls"), True)
    return {**ordered, **always, "distance_orderable": False}.get(name.lower())


@function("_pg_index_position(oid, int2) int4", context=True)
def _position(context: Context, oid: int, number: int) -> int | None:
    columns = list(relation("pg_index").columns)
    number_of_index, key = columns.index("indexrelid"), columns.index("indkey")
    keys: list[int] = next(
        (row[key] for row in context.catalog.tables.rows("pg_index") if row[number_of_index] == oid), []
    )
    return keys.index(number) + 1 if number in keys else None


# --- sizes of types, as the views of information_schema have them -----------------------------------------------------

_DIGITS = {21: 16, 23: 32, 20: 64, 700: 24, 701: 53}
_TEXTS, _BITS = (1042, 1043), (1560, 1562)


@function("_pg_char_max_length(oid, int4) int4")
def _most_characters(oid: int, modifier: int) -> int | None:
    if modifier == -1 or oid not in (*_TEXTS, *_BITS):
        return None
    return modifier - 4 if oid in _TEXTS else modifier


@function("_pg_char_octet_length(oid, int4) int4")
def _most_bytes(oid: int, modifier: int) -> int | None:
    if oid not in (25, *_TEXTS):
        return None
    return 1 << 30 if modifier == -1 else 4 * (_most_characters(oid, modifier) or 0)


@function("_pg_numeric_precision(oid, int4) int4")
def _precision(oid: int, modifier: int) -> int | None:
    return (None if modifier == -1 else modifier - 4 >> 16 & 65535) if oid == 1700 else _DIGITS.get(oid)


@function("_pg_numeric_precision_radix(oid, int4) int4")
def _radix(oid: int, modifier: int) -> int | None:
    return 10 if oid == 1700 else 2 if oid in _DIGITS else None


@function("_pg_numeric_scale(oid, int4) int4")
def _scale(oid: int, modifier: int) -> int | None:
    return (None if modifier == -1 else modifier - 4 & 65535) if oid == 1700 else 0 if oid in (20, 21, 23) else None


@function("_pg_datetime_precision(oid, int4) int4")
def _second_digits(oid: int, modifier: int) -> int | None:
    if oid == 1186:
        return 6 if modifier < 0 or modifier & 65535 == 65535 else modifier & 65535
    return 0 if oid == 1082 else None if oid not in (1083, 1114, 1184, 1266) else 6 if modifier < 0 else modifier


@function("_pg_interval_type(oid, int4) text", context=True)
def _interval_fields(context: Context, oid: int, modifier: int) -> str | None:
    """Return the fields of an interval that its modifier names, which stand behind its name."""
    written = context.catalog.names.type_name(oid) if modifier < 0 else format_type(context, oid, modifier)
    fields = re.fullmatch(r"interval[()0-9]* (.*)", written or "")
    return fields[1].upper() if fields and oid == 1186 else None


# --- text search, advisory locks -----------------------------------------------------------------------

_TOKENS = (
    "asciiword Word, all ASCII;word Word, all letters;numword Word, letters and digits;email Email address;url URL;host Host;"
    "sfloat Scientific notation;version Version number;hword_numpart Hyphenated word part, letters and digits;"
    "hword_part Hyphenated word part, all letters;hword_asciipart Hyphenated word part, all ASCII;blank Space symbols;"
    "tag XML tag;protocol Protocol head;numhword Hyphenated word, letters and digits;asciihword Hyphenated word, all ASCII;"
    "hword Hyphenated word, all letters;url_path URL path;file File or path name;float Decimal notation;int Signed integer;"
    "uint Unsigned integer;entity XML entity"
)


def _token_types(parser: int | str) -> list[tuple[Any, ...]]:
    if isinstance(parser, str) and not re.fullmatch(r'\s*("[^"]+"|[^".\s]+)(\.("[^"]+"|[^".\s]+))*\s*', parser):
        raise said("42602", "invalid name syntax")
    oids = dict(zip(static("pg_ts_parser")["prsname"], static("pg_ts_parser")["oid"], strict=True))
    if isinstance(parser, str) and parser.removeprefix("pg_catalog.") not in oids:
        raise said("42704", f'text search parser "{parser}" does not exist')
    if isinstance(parser, int) and parser not in oids.values():
        raise said("XX000", f"cache lookup failed for text search parser {parser}")
    return [(number, *words.split(" ", 1)) for number, words in enumerate(_TOKENS.split(";"), 1)]


for _argument in ("oid", "text"):
    rows_of(
        f"ts_token_type({_argument})", (("tokid", "int4"), ("alias", "text"), ("description", "text")), _token_types
    )


_MOST_LOCKS = 10_000


def _register_locks() -> None:
    """Register the functions of advisory locks. A connection has them for itself: nothing here is changed by several."""

    def lock(context: Context, keys: tuple[int, ...], shared: bool) -> bool:
        held = context.catalog.locks
        if sum(held.values()) >= _MOST_LOCKS:
            raise said("53200", "out of shared memory", None, "You might need to increase max_locks_per_transaction.")
        held[shared, *keys] = held.get((shared, *keys), 0) + 1
        return True

    def unlock(context: Context, keys: tuple[int, ...], shared: bool) -> bool:
        count = context.catalog.locks.pop((shared, *keys), 0)
        if count > 1:
            context.catalog.locks[shared, *keys] = count - 1
        return count > 0

    for keys in ("int8", "int4, int4"):
        for shared in (False, True):
            more = "_shared" * shared
            for name, result, call in (("advisory_lock", "void", lock), ("try_advisory_lock", "bool", lock),
                                       ("advisory_unlock", "bool", unlock)):  # fmt: skip
                function(f"pg_{name}{more}({keys}) {result}", context=True)(
                    lambda context, *numbers, call=call, shared=shared, is_void=result == "void": (
                        "" if (done := call(context, numbers, shared)) and is_void else done
                    )
                )
            function(f"pg_advisory_xact_lock{more}({keys}) void")(lambda *numbers: "")
            function(f"pg_try_advisory_xact_lock{more}({keys}) bool")(lambda *numbers: True)


_register_locks()


@function("pg_advisory_unlock_all() void", context=True)
def _unlock_all(context: Context) -> str:
    context.catalog.locks.clear()
    return ""
