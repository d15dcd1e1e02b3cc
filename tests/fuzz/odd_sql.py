"""Shapes of SQL beyond what dpsql answers: everything that sqlglot reads, and some that it does not.

`grammar.Writer` fills the holes in braces: e expression, c column, t table, q query, a aggregate, w window, n number, s string, i
identifier, y type. Doubled braces stand for themselves.
"""

EXPRESSIONS = (
    "{e}::{y}", "CAST({e} AS {y})", "TRY_CAST({e} AS {y})", "TRY({e})", "[{e}, {e}]", "[{e}][1]", "[{e}, {e}][1:2]", "({e}).a",
    "{{'a': {e}}}", "{{'a': {e}}}.a", "MAP {{'a': {e}}}", "MAP {{'a': {e}}}['a']", "ROW({e}, {e})", "({e}, {e})", "()",
    "x -> x + 1", "lambda x: x + 1", "list_transform([{e}], x -> x + {e})", "list_filter([{e}], x -> x > {e})",
    "[x + 1 for x in [{e}] if x > 0]", "struct_pack(a := {e})", "list_value({e})", "unnest([{e}])", "array_agg({e})", "list({e})",
    "COLUMNS('.*')", "COLUMNS(*)", "COLUMNS(c -> c LIKE 'a%')", "*", "{i}.*", "* EXCLUDE ({c})", "* REPLACE ({e} AS {c})",
    "{a} OVER ({w})", "{e} OVER ({w})", "{a} OVER w", "{a} FILTER (WHERE {e})", "{a} FILTER ({e})", "{a} WITHIN GROUP (ORDER BY {e})",
    "{e} IS DISTINCT FROM {e}", "{e} IS NOT DISTINCT FROM {e}", "{e} SIMILAR TO {s}", "{e} ~ {s}", "{e} !~* {s}", "{e} GLOB {s}",
    "{e} LIKE {s} ESCAPE '!'", "{e} LIKE ANY ({s}, {s})", "{e} NOT ILIKE {s}", "{e} COLLATE NOCASE", "{e} COLLATE \"de_DE\"",
    "INTERVAL {n} DAY", "INTERVAL '{n} days'", "INTERVAL ({e}) MONTH", "{e} + INTERVAL '1 day 2 hours'", "DATE {s}", "TIMESTAMP {s}",
    "TIME '10:00'", "TIMESTAMPTZ '2024-01-01 00:00:00+02'", "{e} AT TIME ZONE 'UTC'", "EXTRACT(epoch FROM {e})",
    "EXTRACT({i} FROM {e})", "date_trunc({s}, {e})", "date_part({s}, {e})", "date_diff({s}, {e}, {e})", "strftime({e}, {s})",
    "strptime({s}, {s})", "to_timestamp({e})", "to_date({s}, {s})", "age({e})", "now()", "today()", "current_date", "current_timestamp",
    "?", "$1", "$2", ":name", "$name", "@x", "{e} IS NULL", "{e} ISNULL", "{e} NOTNULL", "{e} IS NOT TRUE", "{e} IS UNKNOWN", "{e} IS {e}",
    "CASE {e} WHEN {e} THEN {e} END", "CASE WHEN {e} THEN {e} ELSE {e} END", "CASE ELSE {e} END", "IF({e}, {e}, {e})", "IF({e})",
    "NOT {e}", "-{e}", "- -{e}", "~{e}", "+{e}", "@{e}", "{e} << {n}", "{e} & {e}", "{e} | {e}", "xor({e}, {e})", "{e} # {e}", "{e}!",
    "{e} || {e}", "{e} ** {e}", "{e} ^ {e}", "{e} // {e}", "{e} % {e}", "{e} % 0", "{e} / 0", "{e} -> 'a'", "{e} ->> 'a'", "{e} <=> {e}",
    "{e} ^@ {e}", "{e} IN ({q})", "{e} NOT IN ({e}, {e}, NULL)", "{e} IN ()", "{e} IN {e}", "{e} IN [{e}]", "({e}, {e}) IN ({q})",
    "EXISTS ({q})", "NOT EXISTS (FROM {t})", "({q})", "{e} = ANY ({q})", "{e} > ALL ({q})", "{e} = SOME ({q})", "{e} = ({q})", "ARRAY({q})",
    "{e} BETWEEN {e} AND {e}", "{e} BETWEEN SYMMETRIC {e} AND {e}", "{e} AND {e}", "{e} OR {e}", "x'ab'", "E'\\n'", "$$dollar$$", "U&'\\0041'",
    "b'101'", "r'raw'", "1e400", "-1e-400", "0x1F", "0b11", "1_000", ".5", "5.", "1e", "1.2.3", "00012", "9223372036854775808",
    "-9223372036854775808", "123456789012345678901234567890.123456789", "'infinity'::date", "'nan'::double", "NULL::{y}", "DEFAULT",
    "POSITION({e} IN {e})", "OVERLAY({e} PLACING {e} FROM 1)", "SUBSTRING({e} FROM {e})", "TRIM(BOTH {s} FROM {e})", "CEIL({e} TO DAY)",
    "generate_series(1, {n})", "range({n})", "random()", "setseed(0.5)", "uuid()", "getenv('HOME')", "current_setting({s})", "nextval({s})",
    "read_text({s})", "version()", "current_user", "session_user", "current_schema()", "pg_sleep(1)", "hash({e})", "md5({e})", "error({s})",
    "{a}({a})", "COUNT(DISTINCT ({e}, {e}))", "COUNT(DISTINCT {e}, {e})", "COUNT(*, {e})", "COUNT({t})", "COUNT({i}.*)", "SUM(DISTINCT {e})",
    "SUM(ALL {e})", "SUM({e}, {e})", "SUM()", "AVG(*)", "AVG({a})", "MIN({e})", "MAX({e}, 2)", "string_agg({e}, ',' ORDER BY {e})",
    "histogram({e})", "quantile_cont({e}, 0.5)", "quantile_disc({e}, [0.1, 0.9])", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY {e})",
    "first({e} ORDER BY {e})", "any_value({e})", "arg_max({e}, {e})", "mode({e})", "median({e})", "approx_count_distinct({e})", "product({e})",
    "bit_xor({e})", "kurtosis({e})", "covar_pop({e}, {e})", "corr({e})", "regr_slope({e}, {e})", "GROUPING({c})", "GROUPING({e}, {e})",
    "ROW_NUMBER() OVER ()", "RANK() OVER (ORDER BY {e})", "LAG({e}, 1, {e}) OVER (PARTITION BY {e} ORDER BY {e})", "NTILE({n}) OVER ({w})",
    "LAST_VALUE({e} IGNORE NULLS) OVER ({w})", "DP_ERROR({e})", "DP_INTERVAL_LOW({a})", "DP_INTERVAL_HIGH({e}, {e})", "DP_ERROR()",
    "clamp({e}, {n}, {n})", "clamp({e}, {e}, {e})", "clamp({e})", "width_bucket({e}, {n}, {n}, {n})", "width_bucket({e}, 5, 1, 0)",
    "round({e}, {n})", "round({e}, {e})", "substr({e}, {n}, {n})", "left({e}, -{n})", "repeat({e}, {n})", "lpad({e}, {n}, {s})",
    "replace({e}, {s}, {s})", "regexp_replace({e}, {s}, {s})", "regexp_matches({e}, {s})", "concat({e}, {e})", "concat()", "concat_ws({e})",
    "coalesce({e}, {e})", "coalesce()", "nullif({e}, {e})", "least({e})", "greatest({e}, NULL)", "power({e}, {e})", "sqrt({e})", "ln({e})",
    "exp({e})", "log({e}, {e})", "log2({e})", "floor({e} / {n}) * {n}", "year({e})", "week({e})", "last_day({e})", "make_date({e}, 1, 1)",
    "{i}({e})", "{i}.{i}({e})", "{i}.{i}.{i}.{i}", "{e} AS {i}", "{i} := {e}", "{e} -- comment\n", "{e} /* {i} */", "/*+ HINT({i}) */ {e}",
    "#1", "{c}[0]", "\"{c}\"", "{c}.{c}", "rowid", "{t}", "dp#row", "\"dp#row\"", "dp_0.k0", "k0", "m0",
)  # fmt: skip

SOURCES = (
    "{t} AS x(a, b)", "{t} AS x({i})", "({q})", "({q}) AS q", "({q}) AS q({i})", "LATERAL ({q})", "LATERAL ({q}) AS l ON true", "VALUES (1, 2)",
    "(VALUES (1, 'a'), (2, 'b')) AS v(a, b)", "range(10)", "range(10) AS r(x)", "generate_series(1, 3)", "unnest([1, 2]) AS u(x)", "read_parquet({s})",
    "read_csv({s})", "{s}", "glob('*')", "{t} TABLESAMPLE 10%", "{t} TABLESAMPLE RESERVOIR(5 ROWS)", "{t} FOR SYSTEM_TIME AS OF {s}",
    "{t} PIVOT (COUNT(*) FOR {c} IN ('a', 'b'))", "{t} UNPIVOT ({i} FOR {i} IN ({c}, {c}))", "(PIVOT {t} ON {c} USING COUNT(*))",
    "{t} JOIN {t} USING ({c})", "{t} NATURAL JOIN {t}", "{t} ASOF JOIN {t} ON {e}", "{t} POSITIONAL JOIN {t}", "{t} SEMI JOIN {t} USING ({c})",
    "{t} ANTI JOIN {t} ON {e}", "{t} FULL OUTER JOIN {t} ON {e}", "{t} CROSS JOIN {t}", "{t}, {t}", "{t} a, {t} b", "{t} a JOIN {t} a ON {e}",
    "{t} LEFT JOIN ({q}) AS q ON {e}", "{t} JOIN {t} ON true", "{t} JOIN {t}", "{t} x JOIN {t} y ON x.{c} = y.{c}", "({t} JOIN {t} USING ({c}))",
    "information_schema.tables", "duckdb_settings()", "sqlite_master", "pg_catalog.pg_class", "dp_0", "dp_cte_0", "main.{t}", "public.{t}",
    "nowhere.{t}", "a.b.c.{t}", "\"{t}\"", "{i}", "{i}.{i}", "ONLY {t}", "{t} AS SELECT", "({t})", "(({t}))", "({t}, {t})", "{t} WITH (NOLOCK)",
    "(FROM {t})", "(SELECT)", "(WITH z AS ({q}) FROM z)", "({q} UNION ALL {q}) AS u", "(DESCRIBE {t})", "(SHOW TABLES)", "(TABLE {t})",
)  # fmt: skip

QUERIES = (
    "FROM {t}", "FROM {t} SELECT {a}", "TABLE {t}", "VALUES (1)", "SELECT", "SELECT 1", "SELECT NULL", "SELECT {e}", "SELECT {a}", "SELECT FROM {t}", "SELECT * FROM {t}",
    "SELECT DISTINCT ON ({c}) {e} FROM {t}", "SELECT AS STRUCT {e} FROM {t}", "SELECT TOP 5 {a} FROM {t}", "SELECT ALL {a} FROM {t}",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r", "WITH r AS (FROM r) FROM r", "WITH z AS NOT MATERIALIZED ({q}) FROM z",
    "WITH z({i}, {i}) AS ({q}) SELECT * FROM z", "WITH a AS ({q}), b AS (FROM a) SELECT * FROM a, b", "WITH z AS ({q}), z AS ({q}) FROM z",
    "WITH {t} AS ({q}) SELECT COUNT(*) FROM {t}", "WITH dp_0 AS ({q}) FROM dp_0", "WITH z AS (INSERT INTO {t} VALUES (1)) FROM z",
    "{q} UNION {q}", "{q} UNION ALL {q}", "{q} UNION ALL BY NAME {q}", "{q} EXCEPT ALL {q}", "{q} INTERSECT {q}", "({q}) ORDER BY 1 LIMIT 2", "(({q}))",
    "({q}) UNION ({q}) ORDER BY {e}", "{q} ORDER BY ALL", "{q} ORDER BY {e} NULLS FIRST", "{q} ORDER BY {e} DESC, {n}", "{q} LIMIT {n}", "{q} LIMIT 10%", "{q} LIMIT {e}",
    "{q} LIMIT NULL", "{q} LIMIT -1", "{q} LIMIT ({q})", "{q} OFFSET {n}", "{q} FETCH FIRST 3 ROWS ONLY", "{q} FETCH FIRST 3 ROWS WITH TIES", "{q} FOR UPDATE",
    "SELECT {e} INTO {i} FROM {t}", "SELECT {a} FROM {t} QUALIFY {a} OVER ({w}) > {n}", "SELECT {a} OVER w FROM {t} WINDOW w AS ({w})", "SELECT {a} FROM {t} USING SAMPLE 10%",
    "SELECT {c}, {a} FROM {t} GROUP BY ALL", "SELECT {e}, {a} FROM {t} GROUP BY {e}", "SELECT {c}, {a} FROM {t} GROUP BY ROLLUP ({c}, {c})",
    "SELECT {c}, {a} FROM {t} GROUP BY CUBE ({c}, {c})", "SELECT {c}, {a}, GROUPING({c}) FROM {t} GROUP BY GROUPING SETS (({c}), ())", "SELECT {a} FROM {t} GROUP BY ()",
    "SELECT {c}, {a} FROM {t} GROUP BY {n}", "SELECT {a} FROM {t} HAVING {e}", "SELECT {a} FROM {t} GROUP BY {c} HAVING {a} > {n} ORDER BY {a}",
    "SELECT {c}, {a} FROM {t} GROUP BY 1 WITH ROLLUP", "SELECT {a} AS {i}, {i} + 1 FROM {t}", "SELECT ({q}) + ({q})", "SELECT {a} FROM {t} WHERE {e} GROUP BY {c}, {c}",
    "PIVOT {t} ON {c} USING COUNT(*)", "UNPIVOT {t} ON {c}", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = {n}) {a} FROM {t}",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({i} = {s}, {i}) {a} FROM {t}", "SELECT WITH DIFFERENTIAL_PRIVACY {a} FROM {t}", "DESCRIBE {q}", "SUMMARIZE {t}",
)  # fmt: skip

STATEMENTS = (
    "INSERT INTO {t} {q}", "INSERT INTO {t} VALUES ({e})", "UPDATE {t} SET {c} = {e}", "DELETE FROM {t} WHERE {e}", "MERGE INTO {t} USING {t} ON {e} WHEN MATCHED THEN DELETE",
    "CREATE TABLE {i} AS {q}", "CREATE VIEW {i} AS {q}", "CREATE MACRO {i}(a) AS a", "DROP TABLE {t}", "ALTER TABLE {t} ADD COLUMN {i} {y}", "TRUNCATE {t}",
    "COPY {t} TO {s}", "COPY ({q}) TO {s}", "ATTACH {s}", "DETACH {i}", "PRAGMA database_list", "PRAGMA {i} = {n}", "CALL {i}({e})", "CHECKPOINT", "VACUUM", "ANALYZE {t}",
    "INSTALL httpfs", "LOAD {s}", "PREPARE {i} AS {q}", "EXECUTE {i}({e})", "DEALLOCATE {i}", "EXPLAIN {q}", "EXPLAIN ANALYZE {q}", "EXPLAIN PRIVACY {q}",
    "EXPLAIN PRIVACY EXPLAIN {q}", "EXPLAIN", "EXPLAIN SET dp.epsilon = 1", "EXPLAIN (FORMAT json) {q}", "SET dp.epsilon = {e}", "SET dp.delta = {n}", "SET dp.max_groups = {n}",
    "SET dp.{i} = {e}", "SET {i} = {s}", "SET dp.epsilon", "SET", "SET dp.epsilon TO DEFAULT", "SET SESSION dp.reuse = {i}", "SET LOCAL dp.nonnegative TO on", "SET VARIABLE x = {e}",
    "SET dp.target_error = {n}", "SET dp.confidence = 0.{n}", "RESET dp.epsilon", "RESET {i}", "RESET ALL", "RESET dp.{i}", "RESET", "SHOW dp.budget", "SHOW dp.{i}", "SHOW {i}",
    "SHOW ALL", "SHOW TABLES", "SHOW", "DESCRIBE {t}", "DESCRIBE {i}", "DESCRIBE", "DESC {t}", "BEGIN", "BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE", "COMMIT", "ROLLBACK TO {i}",
    "SAVEPOINT {i}", "END", "ABORT", "USE {i}", "GRANT ALL ON {t} TO {i}", "{q}; {q}", "{q};", ";{q}", ";", ";;", "{q};;", "-- {i}", "/* {i}", "/* {i} */", "{q} -- end",
    "KILL {n}", "{i}", "{e}", "{s}", "{n}", "{a}",
)  # fmt: skip

TYPES = (
    "INTEGER", "BIGINT", "TINYINT", "HUGEINT", "UINTEGER", "DOUBLE", "FLOAT", "REAL", "DECIMAL(10, 2)", "DECIMAL", "DECIMAL(99, 50)", "DECIMAL(2)", "NUMERIC(5, 6)",
    "VARCHAR", "VARCHAR(10)", "TEXT", "CHAR(3)", "BLOB", "BIT", "BOOLEAN", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "INTERVAL",
    "UUID", "JSON", "INTEGER[]", "INTEGER[3]", "VARCHAR[][]", "STRUCT(a INTEGER, b VARCHAR)", "MAP(VARCHAR, INTEGER)", "UNION(a INTEGER)", "ENUM('a')", "REGCLASS", "nosuchtype",
    "NULL", "ROW(a INT)", "BIGINT UNSIGNED", "VARINT", "DECIMAL('a', 2)", "DECIMAL(x, y)", "DECIMAL(5, 2, 1)", "VARCHAR COLLATE NOCASE", "\"double\"",
)  # fmt: skip

IDENTIFIERS = (
    "x", "a", "\"a b\"", "\"a\"\"b\"", "\"\"", "größe", "\"日本\"", "ſelect", "\"\u202eabc\"", "\"a.b\"", "\"SELECT\"", "\"*\"", "\"'\"", "\"dp_0\"", "epsilon", "timestamp",
    "year", "\"\u0130\"", "\"a\nb\"", "\"\u0000\"", "\"\ud800\"", "_", "\"" + "n" * 300 + "\"", "`tick`", "[brack]", "x$y", "\"$1\"", "\"{{0}}\"", "\"%s\"", "date", "all", "\"\\\"",
)  # fmt: skip

STRINGS = (
    "''", "'a'", "'it''s'", "'%'", "'_%'", "'\\'", "'2024-01-31'", "'2024-13-01'", "'0001-01-01'", "'99999-01-01'", "'2024-01-31 10:00:00+02'", "'infinity'", "'day'", "'month'", "'fortnight'",
    "'12'", "'1e5'", "'nan'", "'{{0}}'", "'\u202e'", "'\ud800'", "'\u0000'", "'日本'", "'/etc/passwd'", "'https://example.org/x.parquet'", "'" + "y" * 500 + "'", "E'\\x41'", "'off'", "'epoch'",
    "'2024-01-31T00:00:00Z'", "'2024-W05-3'", "'20240131'", "' '",
)  # fmt: skip

NUMBERS = (
    "0", "1", "2", "3", "7", "10", "-1", "0.5", "1.5", "1e3", "1e-9", "100", "1000000", "2147483648", "9223372036854775807", "9223372036854775808", "1e308", "1e309", "1e999999999",
    "0.1", "1e-400", "00", "-0", "1_000", "0x10", "99999999999999999999999999999999999999999", "." + "3" * 400, "1" + "0" * 400,
)  # fmt: skip
