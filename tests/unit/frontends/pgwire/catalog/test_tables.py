"""The catalog: from the policy alone, one analyst's view, with PostgreSQL's names, types and answers."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.places import POLICIES
from support.raw_client import error_of
from support.served_clinic import Served

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.catalog.shape import denied, relations
from dpsql.frontends.pgwire.catalog.tables import CatalogContext, CatalogTables
from dpsql.frontends.pgwire.constants.answers import Answerable, answerable, parsed
from dpsql.frontends.pgwire.settings import Settings
from dpsql.policy import Policy, load_policy, parse_policy


class Asker:
    def __init__(self, user: str, policy: Policy | None = None) -> None:
        self.options = {"dp.epsilon": "0.1"}
        tables = CatalogTables(policy or load_policy(POLICIES / "shop.yaml"), user)
        self.place = CatalogContext(user, Settings(user), 7, tables, lambda: self.options)

    def answer(self, sql: str) -> Answerable:
        select = parsed(sql)
        if select is None:
            raise refuse("catalog_query")
        return answerable(select, self.place)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        answer = self.answer(sql)
        kinds = [e.codec(oid) for _, oid, *_ in answer.columns]
        return [
            tuple(None if text is None else kind.read(text) for kind, text in zip(kinds, row, strict=True))
            for row in answer.rows()
        ]


@pytest.fixture(scope="module")
def shop() -> Iterator[Asker]:
    yield Asker("ann")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("'dp.epsilon'", "write SET dp.epsilon = 0.5"), ("'DP.Epsilon'::text", "write SET dp.epsilon = 0.5"),
        ("'dp.' || 'epsilon'", "write SET dp."),
    ],
)  # fmt: skip
def test_set_config_of_an_option_is_refused(shop: Asker, name: str, hint: str) -> None:
    with pytest.raises(Error) as caught:
        shop.rows(f"SELECT set_config({name}, '0.5', false)")
    assert caught.value.slug == "option_function" and caught.value.hint.startswith(hint)


def test_no_column_is_null_that_may_not_be(shop: Asker) -> None:
    """Drivers read NOT NULL columns without checking for NULL."""
    for (schema, name), relation in relations().items():
        needed = [column for column, (_, not_null) in relation.columns.items() if not_null]
        if needed and name not in denied():
            test = " OR ".join(f'"{column}" IS NULL' for column in needed)
            assert shop.rows(f"SELECT count(*) FROM {schema}.{name} WHERE {test}") == [(0,)], name


def test_every_column_of_the_policy_is_there_with_its_bounds(shop: Asker) -> None:
    sql = """SELECT c.relname, a.attname, col_description(a.attrelid, a.attnum) FROM pg_attribute a
             JOIN pg_class c ON c.oid = a.attrelid WHERE c.relkind = 'r' AND c.oid >= 16384 AND a.attnum > 0"""
    found = {(table, column): comment for table, column, comment in shop.rows(sql)}
    policy = load_policy(POLICIES / "shop.yaml")
    assert set(found) == {(table.name, column) for table in policy.tables.values() for column in table.columns}
    assert found["orders", "price"] == "clamped to 0 .. 500"
    assert found["users", "plan"] == "public keys: free, pro, team, null"
    assert found["orders", "user_id"] == "privacy unit"


@pytest.mark.parametrize(
    "sql",
    ["SELECT now()", "SELECT now()::date", "SELECT current_date", "SELECT current_timestamp", "SELECT current_time",
     "SELECT localtimestamp", "SELECT clock_timestamp()"],
)  # fmt: skip
def test_the_clock_is_told_whatever_the_output_is_named(shop: Asker, sql: str) -> None:
    """An unnamed output is named after its function; the engine must not read the function as a reference to that output."""
    assert len(shop.rows(sql)) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "SELECT * FROM pgx.definitions",
        "SELECT * FROM duckdb_settings()", "SELECT * FROM sqlite_master", "SELECT read_text('/etc/passwd')",
        "SELECT * FROM query('select 1')", "SELECT pgf_quote_ident('x')", "SELECT getvariable('x')",
        "SELECT * FROM users, pgc.pg_class", "WITH x AS (SELECT 1) SELECT * FROM main.x",
    ],
)  # fmt: skip
def test_nothing_but_the_catalog_is_read(shop: Asker, sql: str) -> None:
    with pytest.raises(Error):
        shop.answer(sql)


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("SELECT length(lpad('x', 2000000000))", "54000"),
        ("SELECT length(rpad(relname, relnatts * 1000000)) FROM pg_class", "54000"),
        ("SELECT repeat('x', 1000000000)", "54000"),
        ("SELECT to_base64('x')", "42883"), ("SELECT uuid()", "42883"), ("SELECT levenshtein('a', 'b')", "42883"),
        ("SELECT t || t FROM (SELECT t || t AS t FROM (SELECT array_to_string(array_agg(lpad('x', 10000)), '') AS t "
         "FROM generate_series(1, 20000)) AS a) AS b", "53200"),
        ("SELECT count(*) FROM pg_proc a, pg_proc b, pg_proc c", "53200"),
    ],
)  # fmt: skip
def test_what_would_take_the_servers_memory_is_refused(shop: Asker, sql: str, state: str) -> None:
    """Unbounded, the first of these takes 4 GB and a minute, whatever the time limit."""
    with pytest.raises(Error) as caught:
        shop.rows(sql)
    assert caught.value.sqlstate == state
    assert shop.rows("SELECT lpad('x', 3, 'ab'), repeat('ab', 2)") == [("abx", "abab")]


@pytest.mark.parametrize("sql", ["SELECT $0", "SELECT COUNT(*) FROM patients WHERE age > $0"])
def test_no_parameter_has_the_number_zero(served: Served, sql: str) -> None:
    error = error_of(served.client().query(sql))
    assert (error["C"], error["M"]) == ("42P02", "there is no parameter $0")


@pytest.fixture(scope="module")
def in_schemas() -> Iterator[Asker]:
    text = (POLICIES / "shop.yaml").read_text()
    text = text.replace("  orders:\n", "  orders:\n    schema: Sales\n").replace(
        "  users:\n", "  users:\n    schema: people\n"
    )
    yield Asker("ann", parse_policy(text))


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information)' ORDER BY 1",
         [("Sales",), ("people",), ("public",)]),
        ("SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
         "WHERE c.relkind = 'r' AND n.nspname OPERATOR(pg_catalog.~) '^(Sales)$'", [("Sales", "orders")]),
        ("SELECT table_schema FROM information_schema.tables WHERE table_name = 'users'", [("people",)]),
        ("SELECT DISTINCT table_schema FROM information_schema.columns WHERE table_name = 'products'", [("public",)]),
        ("SELECT schemaname FROM pg_tables WHERE tablename = 'orders'", [("Sales",)]),
        ("SELECT COUNT(*) FROM information_schema.table_constraints WHERE table_schema = 'Sales' "
         "AND constraint_type <> 'CHECK'", [(3,)]),
        ("SELECT unique_constraint_schema FROM information_schema.referential_constraints "
         "WHERE constraint_name = 'orders_user_id_fkey'", [("people",)]),
        ("SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'orders'::regclass",
         [('CREATE UNIQUE INDEX orders_pkey ON "Sales".orders USING btree (order_id)',)]),
        ("SELECT current_schema(), current_schemas(true)", [("public", ["pg_catalog", "public"])]),
    ],
)  # fmt: skip
def test_catalogs_show_tables_in_their_schemas(in_schemas: Asker, sql: str, rows: list[tuple[Any, ...]]) -> None:
    assert in_schemas.rows(sql) == rows


def test_search_path_names_the_schemas_that_exist(in_schemas: Asker) -> None:
    in_schemas.place.settings.set("search_path", "people, nowhere, public")
    try:
        assert in_schemas.rows("SELECT current_schema(), current_schemas(false)") == [("people", ["people", "public"])]
    finally:
        in_schemas.place.settings.reset("search_path")


def test_columns_of_tables_in_schemas_are_looked_up_there_alone(in_schemas: Asker) -> None:
    for name in ("people.users", "users", "people.users AS u"):
        assert [c for c, *_ in in_schemas.answer(f"SELECT * FROM {name} LIMIT 0").columns[:2]] == [
            "user_id",
            "country",
        ]
    assert in_schemas.answer("SELECT people.users.age FROM people.users LIMIT 0").columns == (("age", 20, -1, 0, 0),)
    for name in ("public.users", "Sales.users", "other.orders"):
        with pytest.raises(Error, match=f'relation "{name.lower()}" does not exist'):
            in_schemas.answer(f"SELECT * FROM {name} LIMIT 0")
