"""Functions that tell about the connection, the server and its types."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.resolve import function
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said
from dpsql.frontends.pgwire.settings import setting_key

_STARTED = datetime.now(UTC).replace(tzinfo=None)

for _name, _key in (
    ("current_user", "user"),
    ("session_user", "user"),
    ("getpgusername", "user"),
    ("current_database", "database"),
):
    function(f"{_name}() name", context=True)(lambda c, key=_key: c.catalog.value(key))
function("current_schema() name", context=True)(lambda c: c.catalog.value("schema") if c.catalog.path else None)
function("current_schemas(bool) _name", context=True)(
    lambda c, implicit: ["pg_catalog"] * (implicit and "pg_catalog" not in c.catalog.path) + c.catalog.path
)
function("pg_postmaster_start_time() timestamptz; pg_conf_load_time() timestamptz")(lambda: _STARTED)
function("inet_client_addr() inet; inet_server_addr() inet")(lambda: None)
function("inet_client_port() int4; inet_server_port() int4")(lambda: None)
function("version() text", context=True)(lambda c: c.catalog.value("version"))
function("pg_backend_pid() int4", context=True)(lambda c: c.catalog.process)
function("gen_random_uuid() uuid")(lambda: str(uuid.uuid4()))
function("pg_is_in_recovery() bool; pg_jit_available() bool")(lambda: False)
function("txid_current_if_assigned() int8")(lambda: None)
function("pg_my_temp_schema() oid")(lambda: 0)
function("pg_trigger_depth() int4")(lambda: 0)
function("pg_is_other_temp_schema(oid) bool")(lambda v: False)
function("pg_typeof(any) regtype", typed=True)(
    lambda c, types, v: t.oid(types[0]) if t.exists(types[0]) else _unknown()
)


function("pg_column_size(any) int4", typed=True)(
    lambda c, types, v: None if v is None else _SIZES[types[0]] if types[0] in _SIZES else _unknown()
)
_SIZES: dict[str, int] = {
    "bool": 1,
    "int2": 2,
    "int4": 4,
    "int8": 8,
    "float4": 4,
    "float8": 8,
    "date": 4,
    "timestamp": 8,
    "interval": 16,
}


def _unknown() -> Any:
    raise Elsewhere


@function("current_setting(text, missing_ok bool?) text", context=True)
def _current_setting(context: t.Context, name: str, missing: bool = False) -> str | None:
    values = {**context.catalog.settings.all(), **context.catalog.options()}
    key = setting_key(name).lower()
    value = next((value for setting, value in values.items() if setting.lower() == key), None)
    if value is None and not missing:
        raise said("42704", f'unrecognized configuration parameter "{name}"')
    return value


@function("pg_size_pretty(int8) text")
def _pretty(size: int) -> str:
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    index = 0
    number = abs(size)
    if number < 10_240:
        return f"{size} bytes"
    number *= 2
    while index < len(units) - 1 and number >= 2 * 10_240 - 1:
        number = number >> 10 if index else abs(size) >> 9
        index += 1
    return f"{'-' * (size < 0)}{(number + 1) // 2} {units[index]}"


@function("pg_size_pretty(numeric) text")
def _pretty_exact(size: Decimal) -> str:
    if abs(size) < 10_240:
        return f"{t.numeric_text(size)} bytes"
    return str(_pretty(int(size)))


@function("pg_size_bytes(text) int8")
def _size_bytes(text: str) -> int:
    match = re.fullmatch(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*([A-Za-z]*)\s*", text)
    if match is None:
        raise said("22023", f'invalid size: "{text}"')
    units = {"": 0, "b": 0, "bytes": 0, "kb": 1, "mb": 2, "gb": 3, "tb": 4, "pb": 5}
    if match[2].lower() not in units:
        raise said(
            "22023", f'invalid size: "{text}"', None, 'Valid units are "bytes", "B", "kB", "MB", "GB", "TB", and "PB".'
        )
    return int((Decimal(match[1]) * 1024 ** units[match[2].lower()]).to_integral_value("ROUND_HALF_UP"))
