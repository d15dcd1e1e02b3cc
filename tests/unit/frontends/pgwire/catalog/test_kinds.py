"""Names of objects as values: looked up by every spelling, shown as PostgreSQL shows them, in text and in binary."""

import struct

import pytest

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.catalog.kinds import ObjectNames

NAMES = ObjectNames("shop", {
    "pg_namespace": [{"oid": 11, "nspname": "pg_catalog"}, {"oid": 2200, "nspname": "public"}, {"oid": 99, "nspname": "Sales"}],
    "pg_class": [{"oid": 1259, "relname": "pg_class", "relnamespace": 11}, {"oid": 16384, "relname": "orders", "relnamespace": 2200},
                 {"oid": 16385, "relname": "Odd", "relnamespace": 2200}, {"oid": 16386, "relname": "orders", "relnamespace": 99}],
    "pg_proc": [{"oid": 750, "proname": "array_in", "pronamespace": 11, "proargtypes": [2275, 26, 23]}],
    "pg_roles": [{"oid": 10, "rolname": "owner"}],
})  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "oid"),
    [
        ("regclass", "orders", 16384), ("regclass", "public.orders", 16384), ("regclass", '"shop"."public"."orders"', 16384),
        ("regclass", "ORDERS", 16384), ("regclass", '"Odd"', 16385), ("regclass", '"Sales".orders', 16386), ("regclass", "1259", 1259),
        ("regclass", "-", 0), ("regtype", "integer", 23), ("regtype", "int4[]", 1007), ("regtype", "pg_catalog.int8", 20),
        ("regtype", '"pg_catalog"."int8"', 20), ("regnamespace", '"Sales"', 99), ("regrole", "owner", 10),
        ("regprocedure", "array_in(cstring, oid, integer)", 750), ("regproc", "pg_catalog.array_in", 750),
    ],
)  # fmt: skip
def test_an_object_has_every_spelling_of_postgresql(kind: str, text: str, oid: int) -> None:
    assert NAMES.oid(kind, text, ["public"]) == oid


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("regclass", "42P01"), ("regtype", "42704"), ("regnamespace", "3F000"), ("regrole", "42704"),
        ("regproc", "42883"),
    ],
)  # fmt: skip
def test_what_names_nothing_is_refused_as_by_postgresql(kind: str, state: str) -> None:
    with pytest.raises(Error) as caught:
        NAMES.oid(kind, "nothing", ["public"])
    assert caught.value.sqlstate == state


def test_a_schema_is_shown_unless_it_is_searched() -> None:
    assert [NAMES.text("regclass", oid, ["public"]) for oid in (16384, 16385, 16386, 1259, 0, 7)] == [
        "orders", '"Odd"', '"Sales".orders', "pg_class", "-", "7",
    ]  # fmt: skip
    assert NAMES.text("regclass", 16384, []) == "public.orders"


def test_arrays_of_arrays_are_written_as_by_postgresql() -> None:
    assert e.write_array(e.INT4, [[1, 2], [3, 4]]) == "{{1,2},{3,4}}"
    assert e.send_array(e.INT4, [[1, 2], [3, 4]])[:12] == struct.pack("!iiI", 2, 0, e.INT4)
