"""Queries of Metabase and Grafana, which tests cannot install, when they connect and read the structure of a database.

The queries are those of Metabase 0.50 and later (its driver for PostgreSQL: tables, fields, keys, indexes, privileges) and of
Grafana 8 to 12 (version, tables and columns of the query editor), rewritten by hand.
"""

from collections.abc import Iterator

import pytest

from dpsql.policy import load_policy
from unit.frontends.pgwire.catalog.test_tables import POLICIES, Asker

SEARCH_PATH = """(
  SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
  FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
                       array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
       string_to_array(current_setting('search_path'), ',') s)"""
TABLES = ["countries", "events", "orders", "products", "users"]


@pytest.fixture(scope="module")
def shop() -> Iterator[Asker]:
    yield Asker("ann")


def test_grafana_learns_the_version(shop: Asker) -> None:
    assert shop.rows("SELECT current_setting('server_version_num')::int/100 as version") == [(1600,)]
    assert shop.rows("SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'") == []


def test_grafana_lists_columns(shop: Asker) -> None:
    newer = f"""SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
      WHERE CASE WHEN array_length(parse_ident('orders'), 1) = 2
        THEN quote_ident(table_schema) = (parse_ident('orders'))[1] AND quote_ident(table_name) = (parse_ident('orders'))[2]
        ELSE quote_ident(table_name) = 'orders' AND quote_ident(table_schema) IN {SEARCH_PATH} END"""
    older = """select quote_ident(column_name) as "column", data_type as "type" from information_schema.columns
      where quote_ident(table_name) = 'orders'"""
    columns = shop.rows(newer)
    assert ("created_at", "timestamp without time zone") in columns and columns == shop.rows(older)
    assert {name for name, _ in columns} == set(load_policy(POLICIES / "shop.yaml").tables["orders"].columns)


def test_grafana_proposes_a_first_table(shop: Asker) -> None:
    columns = "FROM information_schema.columns c WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name"
    time, value = "udt_name IN ('timestamptz','timestamp')", "udt_name='float8'"
    proposed = f"""SELECT quote_ident(table_name) as table_name,
      (SELECT quote_ident(column_name) as column_name {columns} AND {time} ORDER BY ordinal_position LIMIT 1) AS time_column,
      (SELECT quote_ident(column_name) AS column_name {columns} AND {value} ORDER BY ordinal_position LIMIT 1) AS value_column
      FROM information_schema.tables t WHERE table_schema IN {SEARCH_PATH}
      AND EXISTS (SELECT 1 {columns} AND {time}) AND EXISTS (SELECT 1 {columns} AND {value}) LIMIT 1"""
    assert shop.rows(proposed) == [("orders", "created_at", "price")]


def test_metabase_lists_tables(shop: Asker) -> None:
    rows = shop.rows("""SELECT "n"."nspname" AS "schema", "c"."relname" AS "name",
      CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' ELSE NULL END AS "type",
      "d"."description" AS "description", "stat"."n_live_tup" AS "estimated_row_count"
      FROM "pg_catalog"."pg_class" AS "c" INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid"
      LEFT JOIN "pg_catalog"."pg_description" AS "d"
        ON ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = 0) AND ("d"."classoid" = 'pg_class'::regclass)
      LEFT JOIN "pg_stat_user_tables" AS "stat"
        ON ("n"."nspname" = "stat"."schemaname") AND ("c"."relname" = "stat"."relname")
      WHERE ("c"."relnamespace" = "n"."oid") AND ("n"."nspname" !~ '^pg_') AND ("n"."nspname" <> 'information_schema')
        AND c.relkind in ('r', 'p', 'v', 'f', 'm') AND ("n"."nspname" IN ('public'))
      ORDER BY "type" ASC, "schema" ASC, "name" ASC""")
    assert [(schema, name, kind) for schema, name, kind, *_ in rows] == [("public", name, "TABLE") for name in TABLES]
    assert {estimated for *_, estimated in rows} <= {None, 0}


def test_metabase_lists_fields(shop: Asker) -> None:
    """Without format(), Metabase reads none of its fields and cannot use any table."""
    default = '("column_default" IS NOT NULL) AND ("column_default" LIKE \'%nextval(%\')'
    rows = shop.rows(f"""SELECT "c"."column_name" AS "name",
      CASE WHEN "c"."udt_schema" IN ('public', 'pg_catalog') THEN FORMAT('%s', "c"."udt_name")
           ELSE FORMAT('"%s"."%s"', "c"."udt_schema", "c"."udt_name") END AS "database-type",
      "c"."ordinal_position" - 1 AS "database-position", "c"."table_name" AS "table-name",
      "pk"."column_name" IS NOT NULL AS "pk?",
      COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST("c"."table_schema" AS TEXT), CAST("c"."table_name" AS TEXT))
        AS REGCLASS) AS OID), "c"."ordinal_position") AS "field-comment",
      (({default}) OR ("is_identity" <> 'NO')) AS "database-is-auto-increment"
      FROM "information_schema"."columns" AS "c" LEFT JOIN (
        SELECT "tc"."table_schema", "tc"."table_name", "kc"."column_name" FROM "information_schema"."table_constraints" AS "tc"
        INNER JOIN "information_schema"."key_column_usage" AS "kc" ON ("tc"."constraint_name" = "kc"."constraint_name")
          AND ("tc"."table_schema" = "kc"."table_schema") AND ("tc"."table_name" = "kc"."table_name")
        WHERE "tc"."constraint_type" = 'PRIMARY KEY') AS "pk"
      ON ("c"."table_schema" = "pk"."table_schema") AND ("c"."table_name" = "pk"."table_name")
        AND ("c"."column_name" = "pk"."column_name")
      WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND ("c"."table_schema" IN ('public'))
      ORDER BY "table-name" ASC, "database-position" ASC""")
    found = {(table, name): (kind, key, comment) for name, kind, _, table, key, comment, _ in rows}
    assert found["orders", "price"] == ("float8", False, "clamped to 0 .. 500")
    assert found["users", "user_id"][:2] == ("int8", True)
    assert len(found) == sum(len(table.columns) for table in load_policy(POLICIES / "shop.yaml").tables.values())


def test_metabase_lists_foreign_keys_and_indexes(shop: Asker) -> None:
    keys = shop.rows("""SELECT "fk_table"."relname", "fk_column"."attname", "pk_table"."relname", "pk_column"."attname"
      FROM "pg_constraint" AS "c" INNER JOIN "pg_class" AS "fk_table" ON "c"."conrelid" = "fk_table"."oid"
      INNER JOIN "pg_namespace" AS "fk_ns" ON "c"."connamespace" = "fk_ns"."oid"
      INNER JOIN "pg_attribute" AS "fk_column" ON "c"."conrelid" = "fk_column"."attrelid"
      INNER JOIN "pg_class" AS "pk_table" ON "c"."confrelid" = "pk_table"."oid"
      INNER JOIN "pg_attribute" AS "pk_column" ON "c"."confrelid" = "pk_column"."attrelid"
      WHERE fk_ns.nspname !~ '^information_schema|catalog_history|pg_' AND ("c"."contype" = 'f'::char)
        AND ("fk_column"."attnum" = ANY(c.conkey)) AND ("pk_column"."attnum" = ANY(c.confkey))""")
    assert ("orders", "user_id", "users", "user_id") in keys and len(keys) == 4
    indexes = shop.rows("""SELECT "tmp"."table-name",
      TRIM(BOTH '"' FROM PG_CATALOG.PG_GET_INDEXDEF("tmp"."ci_oid", "tmp"."pos", FALSE)) AS "field-name"
      FROM (SELECT "ct"."relname" AS "table-name", "ci"."oid" AS "ci_oid",
          (INFORMATION_SCHEMA._PG_EXPANDARRAY("i"."indkey"))."n" AS "pos"
        FROM "pg_catalog"."pg_class" AS "ct" INNER JOIN "pg_catalog"."pg_index" AS "i" ON "ct"."oid" = "i"."indrelid"
        INNER JOIN "pg_catalog"."pg_class" AS "ci" ON "ci"."oid" = "i"."indexrelid"
        WHERE (PG_CATALOG.PG_GET_EXPR("i"."indpred", "i"."indrelid") IS NULL)) AS "tmp" WHERE "tmp"."pos" = 1""")
    assert ("orders", "order_id") in indexes


def test_metabase_asks_what_it_may_do(shop: Asker) -> None:
    """The columns of its query are named select, update, insert and delete."""
    table = "'\"' || replace(t.schemaname, '\"', '\"\"') || '\"' || '.' || '\"' || replace(t.objectname, '\"', '\"\"') || '\"'"
    rights = ", ".join(
        f"pg_catalog.has_any_column_privilege(current_user, {table},  '{right}') as {right}"
        for right in ("update", "select", "insert")
    )
    rows = shop.rows(f"""with table_privileges as (
      select NULL as role, t.schemaname as schema, t.objectname as table, {rights},
        pg_catalog.has_table_privilege(     current_user, {table},  'delete') as delete
      from (select schemaname, tablename as objectname from pg_catalog.pg_tables
        union select schemaname, viewname as objectname from pg_catalog.pg_views
        union select schemaname, matviewname as objectname from pg_catalog.pg_matviews) t
      where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema'
        and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage'))
      select t.* from table_privileges t where t.select or t.update or t.insert or t.delete""")
    assert sorted(rows) == [(None, "public", name, False, True, False, False) for name in TABLES]


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT format('%s and %I: 100 %%', 'a', 'B c')", 'a and "B c": 100 %'),
        ("SELECT format('nothing')", "nothing"),
        ("SELECT 7 / 2, 7 / 2.0, relnatts / 1 > 0 FROM pg_class WHERE relname = 'orders'", None),
        ("SELECT string_to_array('a,b', ',')", ["a", "b"]),
    ],
)
def test_functions_that_such_questions_use_are_answered(shop: Asker, sql: str, wanted: object) -> None:
    (row,) = shop.rows(sql)
    assert row == (3, 3.5, True) if wanted is None else row == (wanted,)
