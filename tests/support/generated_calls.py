"""Questions that call each registered function and operator of constants with literals of its types."""

import random
import re
from collections.abc import Iterator

from dpsql.frontends.pgwire.constants import answers  # noqa: F401  (fills the register)
from dpsql.frontends.pgwire.constants.resolve import REGISTER, Signature

_LITERALS = {
    "int2": ("0::int2", "7::int2", "(-3)::int2", "32767::int2"), "int4": ("0", "1", "5", "-2", "2147483647"),
    "int8": ("0::int8", "3::int8", "-9::int8", "9223372036854775807"),
    "numeric": ("0.0", "1.50", "-2.25", "100.0", "0.001", "12345.678"), "float4": ("1.5::float4", "-0.1::float4"),
    "float8": ("0::float8", "2.5::float8", "-0.5::float8", "1e10::float8"), "bool": ("true", "false"),
    "text": ("''", "'a'", "'Hello World'", "'a,b,,c'", "'2024-02-05'", "'xyz'::text"), "name": ("'utf8'::name",),
    "bytea": (r"'\x1234ff'::bytea", "''::bytea"), "date": ("date '2024-02-29'", "date '1999-12-31'"),
    "timestamp": ("timestamp '2024-02-29 13:45:06.789'", "timestamp '2001-01-01'"),
    "timestamptz": ("timestamptz '2024-02-29 13:45:06+02'",), "time": ("time '13:45:06.5'", "time '00:00'"),
    "timetz": ("timetz '13:45+02'",),
    "interval": ("interval '1 mon 2 days 03:04:05'", "interval '-5 hours'", "interval '40 days 30:00'"),
    "json": ("""'{"a": [1, 2], "b": null}'::json""", "'[1,\"x\"]'::json", "'3'::json"),
    "jsonb": ("""'{"a": [1, 2], "bb": "x"}'::jsonb""", "'[1,\"x\"]'::jsonb", "'3'::jsonb"), "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",),
    "inet": ("inet '192.168.1.5/24'", "inet '10.0.0.1'"), "cidr": ("cidr '10.1.0.0/16'",), "bit": ("B'10110'", "B'00011'"), "varbit": ("B'101'::varbit",),
    "macaddr": ("macaddr '08:00:2b:01:02:03'",), "macaddr8": ("macaddr8 '08:00:2b:01:02:03:04:05'",), "record": ("row(1, 'a')",),
    "_float8": ("'{0.25,0.5}'::float8[]",), "_text": ("array['a','b']", "'{}'::text[]"), "_int4": ("array[1,2]",), "char": ("'x'::\"char\"",),
    "oid": ("5::oid",), "bpchar": ("'ab '::char(4)",), "any": ("1", "'x'", "null"), "anyelement": ("2",), "anynonarray": ("4",), "anycompatible": ("3",),
    "anyarray": ("array[3,1,2]", "array[1,null]"), "anycompatiblearray": ("array[3,1,2]",), "anyrange": ("int4range(1,5)", "int4range(3,9)", "'empty'::int4range"),
    "anymultirange": ("int4multirange(int4range(1,3), int4range(5,8))",), "int4range": ("int4range(1,5)",), "int8range": ("int8range(1,5)",),
    "numrange": ("numrange(1.5,2.5)",), "daterange": ("daterange('2024-01-01','2024-02-01')",), "tsrange": ("tsrange('2024-01-01','2024-02-01')",),
    "oidvector": ("'23 25'::oidvector",), "_aclitem": ("'{=r/postgres,postgres=arwdDxt/postgres}'::aclitem[]",), "pg_node_tree": ("null::pg_node_tree",),
    "regclass": ("'pg_class'::regclass",), "xid": ("'5'::xid",),
    "tstzrange": ("tstzrange('2024-01-01','2024-02-01')",), "cid": ("'6'::cid",), "tid": ("'(1,2)'::tid", "'(0,7)'::tid"), "xid8": ("'9'::xid8",),
    "pg_lsn": ("'16/B374D848'::pg_lsn", "'0/ff'::pg_lsn"), "aclitem": ("'postgres=r/postgres'::aclitem", "'=X/postgres'::aclitem"),
    "money": ("'12.34'::money", "'-1,234.56'::money", "'0'::money"),
    "jsonpath": ("'$.a[*]'::jsonpath", "'$ ? (@.a[1] > 1)'::jsonpath", "'strict $.bb'::jsonpath", "'$.a[last] == 2'::jsonpath"),
    "point": ("point '(1,2)'", "point '(-3.5,0)'"), "box": ("box '((0,0),(2,3))'", "box '(1,1),(5,-4)'"), "lseg": ("lseg '[(0,0),(3,4)]'",),
    "path": ("path '((0,0),(1,0),(1,2))'", "path '[(0,0),(3,4)]'"), "polygon": ("polygon '((0,0),(4,0),(4,2))'",),
    "circle": ("circle '<(1,1),2>'", "circle '<(9,0),0.5>'"),
}  # fmt: skip
_WORDS = {
    "extract": ("hour", "day", "epoch", "dow", "week", "nosuch"), "date_part": ("year", "second", "quarter"), "date_trunc": ("month", "hour", "week", "nosuch"),
    "timezone": ("UTC", "America/New_York", "nosuch"), "encode": ("hex", "base64", "nosuch"), "decode": ("hex",), "to_char": ("FM999.0", "9,999", "0000"),
}  # fmt: skip
_PRESENT = {
    "now", "current_timestamp", "transaction_timestamp", "statement_timestamp", "clock_timestamp", "timeofday", "current_date",
    "localtimestamp", "localtime", "current_time", "random", "gen_random_uuid", "pg_backend_pid", "version", "pg_postmaster_start_time",
    "pg_conf_load_time", "age", "inet_client_addr", "inet_server_addr", "inet_client_port", "inet_server_port", "current_database",
    "generate_series", "to_date", "to_timestamp", "to_number", "regexp_instr", "regexp_substr", "regexp_replace", "set_bit", "set_config", "pg_notify", "pg_show_all_settings", "pg_timezone_names",
    "pg_relation_filenode", "pg_relation_filepath", "pg_available_extensions", "pg_available_extension_versions", "pg_lock_status",
    "pg_blocking_pids", "txid_current", "pg_current_xact_id_if_assigned", "_pg_truetypmod", "_pg_truetypid", "_pg_char_max_length",
    "to_regtype", "pg_get_serial_sequence", "pg_column_is_updatable", "pg_relation_is_updatable", "pg_column_size", "pg_jit_available", "overlaps",
    "pg_sleep", "pg_sleep_for", "pg_sleep_until", "pg_prepared_statement", "pg_cursor", "is:json", "json_array:", "json_object:", "[]",
    "array_sample", "array_shuffle", "pg_current_snapshot", "txid_current_snapshot", "pg_listening_channels",
    "pg_current_wal_lsn", "pg_current_wal_insert_lsn", "pg_current_wal_flush_lsn", "pg_current_xact_id", "txid_current_if_assigned",
}  # fmt: skip
"""Functions whose results differ from one server and moment to another, and what is no function in the text."""


_SIZED = re.compile(r"pg_\w+_size|pg_stat_get_\w+|pg_\w*advisory\w+|pg_(?:cancel|terminate)_backend|has_\w+_privilege")
"""Functions of states and rights that a real server has in another measure."""


def calls(seed: int, each: int = 2) -> Iterator[str]:
    """Yield questions, some for each signature."""
    chance = random.Random(seed)
    for name, signatures in sorted(REGISTER.items()):
        if name in _PRESENT or name.startswith("like ") or _SIZED.fullmatch(name):
            continue
        for signature in signatures:
            for _ in range(each):
                yield f"SELECT {_call(name, signature, chance)}"


def _call(name: str, signature: Signature, chance: random.Random) -> str:
    count = (
        len(signature.arguments) if signature.variadic else chance.randint(signature.least, len(signature.arguments))
    )
    values = [chance.choice(_LITERALS[type_]) for type_ in signature.arguments[:count]]
    if _WORDS.get(name) and "text" in signature.arguments:
        values[signature.arguments.index("text")] = f"'{chance.choice(_WORDS[name])}'"
    if not name[0].isalpha():
        return f"{name} {values[0]}" if len(values) == 1 else f"{values[0]} {name} {values[1]}"
    if name == "extract":
        return f"extract({values[0][1:-1]} from {values[1]})"
    if name == "position":
        return f"position({values[1]} in {values[0]})"
    return f"{name}({', '.join(values)})"
