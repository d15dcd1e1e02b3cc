SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE
SET TIME ZONE 0
SET TIME ZONE '+00'
SET TIME ZONE -5
SET TIME ZONE 'UTC'
SET TIME ZONE LOCAL
SET TIME ZONE DEFAULT
SET timezone = 'Europe/Berlin'
SET timezone TO 'nosuch/zone'
SET SESSION TIME ZONE 'America/New_York'
SET client_encoding TO '''utf-8'''
SET client_encoding TO 'UTF8'
-- differs: texts are UTF-8
SET client_encoding = 'LATIN1'
SET client_encoding = 'nosuch'
SET NAMES 'UTF8'
SET client_min_messages TO warning
SET client_min_messages TO nosuch
SET standard_conforming_strings = on
SET extra_float_digits = 3
SET extra_float_digits = 'abc'
SET extra_float_digits = 100
SET IntervalStyle = iso_8601
SET IntervalStyle = 'nosuch'
SET bytea_output = 'escape'
SET bytea_output = 'nosuch'
SET lock_timeout = '5s'
SET lock_timeout = 'abc'
SET default_transaction_isolation = 'repeatable read'
SET default_transaction_isolation = 'nosuch'
SET row_security = off
SET row_security = maybe
SET statement_timeout = 0
SET statement_timeout = '10min'
SET statement_timeout = 'x'
SET idle_in_transaction_session_timeout = 1000
SET idle_in_transaction_session_timeout = 'x'
SET DateStyle = 'ISO, MDY'
SET datestyle TO ISO
SET datestyle TO 'nosuch'
SET search_path TO public
SET search_path = 'public', "$user"
SET search_path = ''
SET SESSION search_path TO public, pg_catalog
SET application_name = 'x y'
SET application_name TO DEFAULT
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
SET CONSTRAINTS ALL DEFERRED
SET ROLE NONE
SET SESSION AUTHORIZATION DEFAULT
SET work_mem = '64MB'
SET work_mem = 'lots'
SET jit = off
SET jit = maybe
SET nosuch = 1
SET nosuch.thing = 1
SET enable_seqscan = off
SET xmloption = document
SET statement_timeout TO '5000'; SET lock_timeout TO 0
SET synchronous_commit = off
SET vacuum_cost_delay = 0
SET default_transaction_read_only = on
SET LOCAL timezone = 'UTC'
RESET ALL
RESET timezone
RESET nosuch
RESET SESSION AUTHORIZATION
RESET ROLE
SHOW timezone
SHOW TIME ZONE
-- in 18: another version
SHOW server_version_num
SHOW standard_conforming_strings
SHOW transaction_isolation
SHOW TRANSACTION ISOLATION LEVEL
SHOW search_path
SHOW max_identifier_length
SHOW integer_datetimes
-- differs: the setting of version 15 is kept
SHOW lc_collate
SHOW server_encoding
SHOW client_encoding
SHOW default_transaction_isolation
SHOW nosuch
SHOW extra_float_digits
SHOW DateStyle
SHOW IntervalStyle
SHOW max_connections
SHOW is_superuser
BEGIN; SELECT 1; COMMIT
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; COMMIT
START TRANSACTION READ ONLY; ROLLBACK
BEGIN; COMMIT AND CHAIN; COMMIT
BEGIN; ROLLBACK AND CHAIN; ROLLBACK
COMMIT AND NO CHAIN
COMMIT AND CHAIN
BEGIN; SAVEPOINT a; ROLLBACK TO SAVEPOINT a; RELEASE SAVEPOINT a; COMMIT
BEGIN; SELECT nosuch; SELECT 1; ROLLBACK
ABORT
END
DISCARD ALL
DISCARD PLANS
DISCARD TEMP
DISCARD SEQUENCES
DEALLOCATE ALL
DEALLOCATE nosuch
CLOSE ALL
CLOSE nosuch
LISTEN x
UNLISTEN *
UNLISTEN x
LOCK TABLE orders
CHECKPOINT
PREPARE p AS SELECT 1; EXECUTE p; DEALLOCATE p
PREPARE p (int) AS SELECT $1; EXECUTE p(3); DEALLOCATE p
EXECUTE nosuch
BEGIN; DECLARE c CURSOR FOR SELECT 1; FETCH ALL FROM c; CLOSE c; COMMIT
BEGIN; DECLARE c SCROLL CURSOR FOR SELECT generate_series(1,3); FETCH 2 FROM c; FETCH NEXT FROM c; MOVE 1 FROM c; COMMIT
FETCH 1 FROM nosuch
DECLARE c CURSOR FOR SELECT 1
COPY (SELECT 1 AS a, 'x' AS b) TO STDOUT WITH (FORMAT csv, HEADER)
-- differs: EXPLAIN shows prices
EXPLAIN SELECT 1
-- differs: EXPLAIN shows prices
EXPLAIN (FORMAT JSON) SELECT 1
SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL
SELECT 1;
;
/* comment */ SELECT 1 -- end
SELECT pg_advisory_lock(1), pg_try_advisory_lock(2), pg_advisory_unlock(1)
SELECT set_config('search_path', 'public', false), current_setting('search_path')
SELECT pg_cancel_backend(0)
SELECT pg_notify('a', 'b')
-- differs: there are other settings
SHOW ALL
-- differs: nothing imports a snapshot here
SELECT pg_export_snapshot() IS NOT NULL
-- settings by a function
SELECT set_config('search_path', 'public', false), current_setting('search_path'); SHOW search_path
SELECT pg_catalog.set_config('search_path', '', false); SELECT current_schemas(false); SHOW search_path
BEGIN; SELECT set_config('application_name', 'me', true) AS a; SHOW application_name; COMMIT; SHOW application_name
BEGIN; SELECT set_config('application_name', 'me', false); ROLLBACK; SHOW application_name
SELECT set_config('nosuch', 'x', false)
SELECT set_config('my.own', 'x', false); SHOW my.own
SELECT set_config('timezone', 'nowhere', false)
SELECT set_config('row_security', 'maybe', false)
SELECT set_config('server_version', '1', false)
SELECT set_config('jit', 'on', false), 1 / 0
SHOW shared_buffers
SHOW wal_level
SHOW log_statement
SHOW ssl
SHOW port
-- differs: settings of the machine, and those that are in no list, are unknown
SHOW data_directory
SHOW default_text_search_config
-- differs: the collation is C
SHOW lc_messages
SHOW search_path; SET search_path TO nosuch; SHOW search_path
SHOW session_authorization
SHOW SESSION AUTHORIZATION
SHOW TRANSACTION READ ONLY
SHOW client_min_messages
SHOW statement_timeout
SET statement_timeout = '1min'; SHOW statement_timeout
SET statement_timeout TO 1500; SHOW statement_timeout
SET lock_timeout TO '1s'; SHOW lock_timeout
SET work_mem = 1024; SHOW work_mem
SET work_mem TO DEFAULT; SHOW work_mem
SET extra_float_digits TO 2; SHOW extra_float_digits
SET bytea_output TO escape; SELECT '\x41'::bytea
SET bytea_output TO 'hex'; SELECT 'a'::bytea
SET IntervalStyle TO 'iso_8601'; SELECT interval '1 day'
-- differs: one form of values is written
SET DateStyle TO 'SQL, DMY'; SHOW DateStyle
-- differs: one form of values is written
SET DateStyle TO 'German'; SHOW DateStyle
SET DateStyle TO 'ISO, DMY'; SELECT date '2024-01-15'
SET TIME ZONE 'Europe/Berlin'; SHOW timezone
SET TIME ZONE 3; SHOW timezone
SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE; SHOW timezone
SET timezone TO 'PST8PDT'; SHOW TIME ZONE
SET timezone = 'europe/berlin'; SHOW timezone
SET random_page_cost = 1.1
SET random_page_cost = 'x'
SET enable_hashjoin TO 0; SHOW enable_hashjoin
SET enable_hashjoin TO yes; SHOW enable_hashjoin
SET shared_buffers = '1GB'
SET log_statement = 'all'
SET max_parallel_workers_per_gather = 0
SET plan_cache_mode = force_custom_plan
SET plan_cache_mode = nosuch
SET tcp_keepalives_idle = 10
SET temp_buffers = '8MB'
SET default_text_search_config = 'english'
SET check_function_bodies = false
-- differs: settings of the machine, and those that are in no list, are unknown
SET default_with_oids = false
-- in 18: other columns, settings or rows
SET transaction_timeout = 0
SET quote_all_identifiers TO off
SET geqo_threshold = 12
SET gin_fuzzy_search_limit = 0
SET backslash_quote = safe_encoding
SET xmlbinary = base64
-- differs: settings of the machine, and those that are in no list, are unknown
SET ssl_renegotiation_limit = 0
SET client_connection_check_interval = 0
SET local_preload_libraries = ''
SET application_name = 'a'; RESET application_name; SHOW application_name
SET SESSION application_name TO 'b'; SHOW application_name
SET LOCAL application_name TO 'b'; SHOW application_name
SET SESSION AUTHORIZATION nosuch
SET ROLE nosuch
SET ROLE 'ann'
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE; SHOW default_transaction_isolation
SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE
BEGIN READ WRITE; COMMIT
BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE; SHOW transaction_isolation; COMMIT
BEGIN TRANSACTION; SET TRANSACTION READ ONLY; COMMIT
BEGIN WORK; COMMIT WORK
BEGIN; BEGIN; COMMIT
BEGIN; SELECT 1/0; COMMIT
BEGIN; SELECT 1/0; ROLLBACK; SELECT 1
BEGIN; SAVEPOINT s; SELECT 1/0; ROLLBACK TO s; SELECT 2; COMMIT
BEGIN; RELEASE SAVEPOINT nosuch
BEGIN; ROLLBACK TO nosuch; ROLLBACK
SAVEPOINT x
ROLLBACK TO x
RELEASE x
COMMIT
ROLLBACK
ROLLBACK WORK
COMMIT PREPARED 'x'
-- differs: nothing can be written
PREPARE TRANSACTION 'x'
SET TRANSACTION SNAPSHOT 'x'
PREPARE q AS SELECT 1 AS a
PREPARE q (text) AS SELECT $1 AS a; EXECUTE q('x'); EXECUTE q('y'); DEALLOCATE q
PREPARE q AS SELECT $1::int + 1; EXECUTE q(41)
PREPARE q AS SELECT relname FROM pg_class WHERE relname = $1; EXECUTE q('orders')
PREPARE q AS SELECT 1; PREPARE q AS SELECT 2
PREPARE q AS SELECT 1; EXECUTE q(1)
EXECUTE nosuch(1)
DEALLOCATE PREPARE nosuch
PREPARE q AS SELECT 1; DEALLOCATE PREPARE q
PREPARE q AS SELECT 1; DEALLOCATE ALL; EXECUTE q
PREPARE q AS nonsense
-- differs: values that no parameter takes are refused, and prepared statements are not listed
PREPARE q AS SELECT 1; SELECT name, statement FROM pg_prepared_statements
DECLARE c CURSOR WITH HOLD FOR SELECT 1
BEGIN; DECLARE c CURSOR FOR VALUES (1), (2); FETCH FORWARD 1 FROM c; FETCH ALL IN c; CLOSE c; COMMIT
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT 1; FETCH BACKWARD 1 FROM c; COMMIT
BEGIN; DECLARE c SCROLL CURSOR FOR SELECT generate_series(1, 5); FETCH 3 FROM c; FETCH PRIOR FROM c; FETCH FIRST FROM c; FETCH LAST FROM c; FETCH ABSOLUTE 2 FROM c; FETCH RELATIVE -1 FROM c; COMMIT
BEGIN; DECLARE c BINARY CURSOR FOR SELECT 1; CLOSE c; COMMIT
BEGIN; DECLARE c CURSOR FOR SELECT 1; DECLARE c CURSOR FOR SELECT 2; ROLLBACK
BEGIN; MOVE FORWARD 1 FROM nosuch; ROLLBACK
LISTEN channel; UNLISTEN channel; NOTIFY channel
NOTIFY a, 'payload'
LOCK TABLE orders IN ACCESS SHARE MODE
BEGIN; LOCK TABLE orders IN ACCESS SHARE MODE; COMMIT
DISCARD NOSUCH
RESET nosuch.x
RESET SESSION AUTHORIZATION; RESET ROLE
RESET TIME ZONE
RESET client_encoding
-- differs: texts are UTF-8
SET client_encoding TO 'SQL_ASCII'
-- differs: texts are UTF-8
SET NAMES 'LATIN1'
-- differs: texts are UTF-8
SET NAMES utf8
SET client_encoding = UNICODE; SHOW client_encoding
SET search_path TO DEFAULT; SHOW search_path
SET search_path TO "public"; SHOW search_path
SET search_path = public,pg_catalog; SHOW search_path
SET SCHEMA 'public'; SHOW search_path
SET seed = 0.5
SET SEED TO 0.1
SET XML OPTION DOCUMENT
SET SESSION SCHEMA 'x'
SET a = 1, 2
SET a.b TO 'x', 'y'; SHOW a.b
SET TO 1
SET work_mem
SHOW
RESET
COPY (SELECT 1, 'a b', NULL) TO STDOUT
COPY (SELECT 1, 'a,b', NULL) TO STDOUT CSV
COPY (SELECT 1 AS x) TO STDOUT (FORMAT csv, HEADER true, DELIMITER ';', QUOTE '''', NULL 'n')
COPY (SELECT 1) TO STDOUT WITH DELIMITER ','
COPY (SELECT 1) TO '/tmp/x'
COPY nosuch TO STDOUT
-- differs: COPY writes whole results to STDOUT with the usual delimiters
COPY pg_am (amname) TO STDOUT
COPY (SELECT 1) TO STDOUT (FORMAT nosuch)
EXPLAIN SELECT * FROM nosuch
EXPLAIN nonsense
EXPLAIN (NOSUCH) SELECT 1
-- differs: EXPLAIN shows prices
EXPLAIN ANALYZE SELECT 1 LIMIT 0
SELECT 1; SELECT 2; SELECT 3
SELECT 1; SELECT nosuch; SELECT 3
SELECT 1;; SELECT 2;
BEGIN; SELECT 1; COMMIT; SELECT 2
SELECT 1 \; SELECT 2
SELECT 1 /* a /* nested */ comment */
-- only a comment
SELECT 'unterminated
SELECT "unterminated
SELECT (1
SELECT 1)
SELECT 1 FROM
SELECT * FROM (SELECT 1)
SELECT $1
SELECT $1::int
SELECT ?
-- differs: read as other dialects read it
SELECT :x
SELECT @x
SELECT `a`
SELECT [1]
SELECT 1 == 1
SELECT 1 != 2, 1 <> 2, 1 ^ 2, 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 2, |/ 25.0, @ -5, 5 !
SELECT "a" FROM (SELECT 1 AS a) t
SELECT A FROM (SELECT 1 AS "A") t
SELECT 1 AS "x", 2 AS X, 3 "Y"
SELECT 1 a, 2 value, 3 name, 4 type, 5 user
SELECT 1 order
SELECT -('-32768'::int2)
SELECT @ '-32768'::int2, 1
SELECT abs(-2147483648), 1
SELECT int8abs('-9223372036854775808'), 1
SELECT int4um(-2147483648)
SELECT (-32768)::int2::oid, (-1)::int4::oid, '-1'::oid, oid '-1'
SELECT (-1)::int8::oid
SELECT 4294967296::oid
SELECT 4294967295::oid::int4, 4294967295::oid::int8, '-1'::oid::int4
SELECT ARRAY[(-3)::int2]::oid[]
SELECT (-2)::int2::regclass
SELECT pg_options_to_table(ARRAY['a=b', NULL])
SELECT pg_options_to_table(ARRAY['a=b', '', 'c'])
SELECT '( 1 , 2 ) , (3,4)'::box, '(1.,.5)'::point, ' ( $ 1,234.5 ) '::money, '- $ 7'::money, '7 - $'::money
END; ABORT
-- libpqxx
BEGIN; DECLARE cur NO SCROLL CURSOR FOR SELECT relname FROM pg_class WHERE relname = 'orders' FOR READ ONLY; FETCH 3 FROM cur; COMMIT
-- pg_dump, EXPLAIN and transactions
BEGIN; LOCK TABLE public.users, ONLY orders IN ACCESS SHARE MODE; LOCK nosuch IN ACCESS SHARE MODE NOWAIT; COMMIT
PREPARE dump(pg_catalog.oid) AS SELECT proname FROM pg_catalog.pg_proc WHERE oid = $1; EXECUTE dump('2')
PREPARE two(int, text) AS SELECT $1, $2; EXECUTE two(1)
PREPARE p (int) AS SELECT $1; EXECUTE p((SELECT 1))
PREPARE p (int) AS SELECT $1; EXECUTE p(ARRAY(SELECT 1))
PREPARE p (int) AS SELECT $1; EXECUTE p(EXISTS (SELECT 1))
PREPARE p (int) AS SELECT $1; EXECUTE p(1 = ANY (SELECT 1))
PREPARE p (int) AS SELECT $1; EXECUTE p(count(*))
PREPARE p (int) AS SELECT $1; EXECUTE p(sum(1) FILTER (WHERE true))
PREPARE p (int) AS SELECT $1; EXECUTE p(sum(1) OVER ())
PREPARE p (int) AS SELECT $1; EXECUTE p(generate_series(50, 51))
PREPARE p (int) AS SELECT $1; EXECUTE p(generate_series(1, 1) + 1)
PREPARE p (int) AS SELECT $1; EXECUTE p(unnest(ARRAY[1]))
PREPARE p (int) AS SELECT $1; EXECUTE p(CASE WHEN 2 > 1 THEN abs(-4) ELSE 0 END)
BEGIN; PREPARE TRANSACTION 'x'
COMMIT PREPARED 'x'
ROLLBACK PREPARED 'x'
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SHOW transaction_deferrable; COMMIT; SHOW transaction_deferrable
SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE; SHOW default_transaction_read_only; SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; SHOW default_transaction_read_only
-- differs: EXPLAIN shows prices
EXPLAIN (COSTS OFF, VERBOSE) SELECT 1
SET client_encoding = 'NoSuch'
SELECT set_config('application_name', 'x', true), current_setting('application_name')
SELECT set_config('application_name', 'x', true); SHOW application_name
SELECT set_config('statement_timeout', NULL, false)
SET LOCAL application_name = 'x'; SHOW application_name
SET application_name = 'x'; SELECT 1/0; SHOW application_name
SET application_name = 'x'; DISCARD ALL
SET application_name = E'a\'b'; SHOW application_name
SET application_name = $$x$$; SHOW application_name
SET application_name = NULL
SET application_name TO 'a', 'b'
SET GLOBAL statement_timeout = 1000
SET ROLE postgres
SET ROLE 'none'
SHOW role
BEGIN NOSUCH
BEGIN ISOLATION LEVEL NOSUCH
SET TRANSACTION
SET TIME ZONE 5.5; SHOW timezone
BEGIN; SAVEPOINT a; SAVEPOINT a; RELEASE a; RELEASE a; RELEASE a
BEGIN; DECLARE c SCROLL CURSOR FOR SELECT generate_series(1, 5); FETCH LAST c; FETCH PRIOR c; FETCH ABSOLUTE -4 c; FETCH RELATIVE 2 c; FETCH BACKWARD ALL c; MOVE FORWARD 2 c; FETCH 0 c; COMMIT
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT 1; FETCH c; FETCH PRIOR c; COMMIT
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT generate_series(1, 5); FETCH ABSOLUTE 2 c; FETCH RELATIVE 1 c; MOVE ABSOLUTE 4 c; FETCH c; FETCH RELATIVE 2 c; FETCH ABSOLUTE 9 c; COMMIT
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT generate_series(1, 5); FETCH FIRST c; FETCH FIRST c; COMMIT
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT generate_series(1, 5); FETCH RELATIVE 0 c; FETCH c; FETCH RELATIVE 0 c; COMMIT
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT generate_series(1, 5); FETCH ALL c; FETCH ABSOLUTE 3 c; COMMIT
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT generate_series(1, 5); FETCH LAST c; COMMIT
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT generate_series(1, 5); FETCH 3 c; MOVE ABSOLUTE 2 c; COMMIT
PREPARE p (int) AS SELECT $1; EXECUTE p(1 + 2); EXECUTE p(NULL); SELECT name, parameter_types, result_types, from_sql FROM pg_prepared_statements
BEGIN; DECLARE c CURSOR FOR SELECT 1; SELECT name, is_holdable, is_binary, is_scrollable FROM pg_cursors; COMMIT
SELECT 1 FOR UPDATE
SELECT pg_sleep(0.01)
RESET TRANSACTION ISOLATION LEVEL
-- what a transaction restores: settings, and options, which a server knows as settings of their own
BEGIN; SET geqo_effort = 1; COMMIT; BEGIN; SET geqo_effort = 2; ROLLBACK; SHOW geqo_effort
BEGIN; SET LOCAL geqo_effort = 3; COMMIT; SET geqo_effort = 4; BEGIN; COMMIT; SHOW geqo_effort
BEGIN; SET LOCAL geqo_effort = 1; SET geqo_effort = 2; COMMIT; SHOW geqo_effort
BEGIN; SAVEPOINT s; SET LOCAL geqo_effort = 1; ROLLBACK TO s; SET geqo_effort = 2; COMMIT; SHOW geqo_effort
SET geqo_effort = 3; BEGIN; SET LOCAL geqo_effort = 1; SAVEPOINT s; SET geqo_effort = 2; ROLLBACK TO s; SHOW geqo_effort; COMMIT; SHOW geqo_effort
SET geqo_effort = 3; BEGIN; SET LOCAL geqo_effort = 1; RESET geqo_effort; COMMIT; SHOW geqo_effort
SET geqo_effort = 3; BEGIN; SET LOCAL geqo_effort = 1; RESET ALL; COMMIT; SHOW geqo_effort
SET geqo_effort = 3; BEGIN; SET LOCAL geqo_effort = DEFAULT; SHOW geqo_effort; COMMIT; SHOW geqo_effort
SET geqo_effort = 3; SET LOCAL geqo_effort = DEFAULT; SHOW geqo_effort
SET LOCAL geqo_effort = 1; SET geqo_pool_size = 2; SHOW geqo_effort
SET geqo_effort = 1; ROLLBACK; SET geqo_pool_size = 3; SELECT nosuch
BEGIN; SET geqo_effort = 1; SAVEPOINT a; SET geqo_effort = 2; ROLLBACK TO a; SHOW geqo_effort; SET geqo_effort = 3; SELECT 1/0
BEGIN; SAVEPOINT a; SAVEPOINT b; SAVEPOINT c; ROLLBACK TO b; ROLLBACK TO c
BEGIN; SAVEPOINT a; SAVEPOINT b; ROLLBACK TO a; RELEASE b
BEGIN; SAVEPOINT a; COMMIT; BEGIN; RELEASE a
SET dp.epsilon = 0.3; BEGIN; SET LOCAL dp.epsilon = 0.2; SELECT current_setting('dp.epsilon'); COMMIT; SELECT current_setting('dp.epsilon')
-- differs: an option goes back to its default, which a setting of its own has not
SET dp.epsilon = 0.4; BEGIN; set local DP.Epsilon TO 0.2; SELECT current_setting('dp.epsilon'); ROLLBACK; SELECT current_setting('dp.epsilon')
BEGIN; SET dp.epsilon = 0.3; SET LOCAL dp.epsilon = 0.2; SET LOCAL dp.epsilon = 0.4; SELECT current_setting('dp.epsilon'); COMMIT; SELECT current_setting('dp.epsilon')
BEGIN; SET LOCAL dp.epsilon = 0.2; SET dp.epsilon = 0.3; SELECT current_setting('dp.epsilon'); COMMIT; SELECT current_setting('dp.epsilon')
SET dp.epsilon = 0.5; BEGIN; SET LOCAL dp.epsilon = 0.2; SAVEPOINT s; SET LOCAL dp.epsilon = 0.3; ROLLBACK TO s; SELECT current_setting('dp.epsilon'); COMMIT; SELECT current_setting('dp.epsilon')
SET dp.epsilon = 0.5; BEGIN; SAVEPOINT s; SET LOCAL dp.epsilon = 0.2; RELEASE s; SELECT current_setting('dp.epsilon'); COMMIT; SELECT current_setting('dp.epsilon')
BEGIN; SAVEPOINT s; SET LOCAL dp.epsilon = 0.2; ROLLBACK TO s; SET dp.epsilon = 0.3; COMMIT; SELECT current_setting('dp.epsilon')
SET dp.epsilon = 0.4; BEGIN; SET LOCAL dp.epsilon = 0.2; SAVEPOINT s; SET dp.epsilon = 0.3; ROLLBACK TO s; SELECT current_setting('dp.epsilon'); COMMIT; SELECT current_setting('dp.epsilon')
SET dp.epsilon = 0.4; BEGIN; SET LOCAL dp.epsilon = 0.2; COMMIT; SET dp.epsilon = 0.5; BEGIN; SELECT current_setting('dp.epsilon'); COMMIT; SELECT current_setting('dp.epsilon')
-- differs: an option goes back to its default, which a setting of its own has not
SET dp.epsilon = 0.5; BEGIN; ROLLBACK; BEGIN; SET dp.epsilon = 0.4; SET LOCAL dp.epsilon = 0.2; ROLLBACK; SELECT current_setting('dp.epsilon')
SET dp.epsilon = 0.3; SET dp.hits = 2; BEGIN; SET LOCAL dp.hits = 3; SET dp.epsilon = 0.4; COMMIT; SELECT current_setting('dp.hits'); SELECT current_setting('dp.epsilon')
SET dp.epsilon = 0.3; BEGIN; SAVEPOINT a; SET dp.epsilon = 0.4; ROLLBACK TO a; SELECT current_setting('dp.epsilon'); SET dp.epsilon = 0.5; ROLLBACK TO a; SELECT current_setting('dp.epsilon'); COMMIT
-- differs: an option goes back to its default, which a setting of its own has not
SET dp.epsilon = 0.3; BEGIN; SET LOCAL dp.epsilon = 0.2; RESET dp.epsilon; SELECT current_setting('dp.epsilon'); COMMIT; SELECT current_setting('dp.epsilon')
-- differs: an option goes back to its default, which a setting of its own has not
SET dp.epsilon = 0.3; BEGIN; SET LOCAL dp.epsilon = DEFAULT; SELECT current_setting('dp.epsilon'); COMMIT; SELECT current_setting('dp.epsilon')
-- units of settings, zones
SET statement_timeout = '0s'; SHOW statement_timeout
SET statement_timeout = '0.0 min'; SHOW statement_timeout
SET statement_timeout = '250ms'; SHOW statement_timeout
SET statement_timeout = '1500000us'; SHOW statement_timeout
SET statement_timeout = '1.5s'; SHOW statement_timeout
SET statement_timeout = ' 3 min '; SHOW statement_timeout
SET statement_timeout = '2h'; SHOW statement_timeout
SET statement_timeout = '1d'; SHOW statement_timeout
SET statement_timeout = '1e3'; SHOW statement_timeout
SET statement_timeout = '1.'; SHOW statement_timeout
SET timezone = 'utc'; SHOW timezone
SET timezone = 'gmt'; SHOW timezone
SET timezone = 'Etc/UTC'; SHOW timezone
SET timezone = 'America/Argentina/Buenos_Aires'; SHOW timezone
SET timezone = 'GMT-03:00'; SHOW timezone
SET timezone = 'UTC+2'; SHOW timezone
SET timezone = 'EST5EDT'; SHOW timezone
SET timezone = '<+03>-03'; SHOW timezone
RESET nothing
RESET "application name"
SET "timezone " = 'UTC'
SET work_mem = '128kB'; SET timezone = 'Europe/Vienna'; RESET work_mem; SHOW work_mem; SHOW timezone
-- differs: it is gone, and not empty
SET my.other = 2; RESET my.other; SHOW my.other
-- rows that COPY writes
-- in 18: a further escape of texts
COPY (SELECT 'plain', '', NULL, E'\\N', E'\\.', E'a\tb', E'a\nb\rc', E'\b\f\v', E'back\\slash', '"q",''', 'é') TO STDOUT
COPY (SELECT NULL::int, 2.5, true, date '2024-01-15') TO STDOUT
COPY (SELECT 'plain', '', NULL, 'a,b', 'say "x"', E'a\nb', E'a\rb', E'\\', E'a;b\tc', ' ') TO STDOUT CSV
COPY (SELECT E'\\.' AS a) TO STDOUT (FORMAT csv, HEADER)
COPY (SELECT 1 /* ) TO STDOUT */) TO STDOUT
copy(select (1)) to stdout with (format csv, header)
-- commands that are read from their words
BEGIN; DECLARE "C d" BINARY NO SCROLL CURSOR WITH HOLD FOR SELECT 'for'; CLOSE "C d"; COMMIT
DECLARE c FOR SELECT 1
DECLARE c CURSOR FOR
DECLARE c CURSOR WITH FOR SELECT 1
DECLARE c NO CURSOR FOR SELECT 1
DECLARE 1 CURSOR FOR SELECT 1
-- differs: refused by its kind before its words are read
COPY (SELECT 1
-- differs: refused by its kind before its words are read
COPY
SET
EXECUTE p p
FETCH SIDEWARD FROM c
LOCK a b IN ACCESS SHARE MODE
LOCK 1 IN ACCESS SHARE MODE
LOCK , IN ACCESS SHARE MODE
(SELECT 1)
-- differs: refused by its kind before its words are read
"BEGIN"
-- types of parameters
PREPARE q AS SELECT $1::int4; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT CAST(-($1) AS bigint); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT $1::INT4[], $2::text[], $3::pg_catalog.int2, $4::varchar(10), $5::numeric(10, 2); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT $1::char, $2::"char", $3::double precision, $4::timestamptz, $5::oid; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT $1::nothing
PREPARE q AS SELECT COUNT(*) FROM pg_class WHERE oid = $1 AND relname = $2 AND relnatts = $3 AND RelHasIndex = $4; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM PG_CATALOG.Pg_Class c WHERE reltuples = $1 AND relpages = $2 AND relkind = $3 AND relname ~ $4; SELECT parameter_types FROM pg_prepared_statements
-- zones with minutes are those of POSIX, hours and intervals count east
SET TIME ZONE '+05:30'; SHOW timezone; SELECT timestamptz '2024-07-01 12:00+00'
SET timezone = '-3:15'; SELECT timestamptz '2024-07-01 12:00+00'
SET TIME ZONE INTERVAL '-08:20' HOUR TO MINUTE; SHOW timezone; SELECT timestamptz '2024-07-01 12:00+00'
SET timezone = '5:99'
-- names and values of settings
SET application_name = 'my "app" é'; SHOW application_name
SET "my-app.x" = 1
SET a.b_1$.ü2 = 1; SHOW a.b_1$.ü2
SET a..b = 1
-- the text that is answered
SELECT current_query(), 1
SELECT current_query(); SELECT 2
-- types of parameters beside columns
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE age > $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE $1 < age; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE u.AGE = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE (age) = ($1); SELECT parameter_types FROM pg_prepared_statements
-- differs: a sign keeps the type of the column
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE age > -$1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE price = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE is_active = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE country = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE signed_up = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE created_at = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE age IN ($1, 3); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE price NOT IN (3, $1); SELECT parameter_types FROM pg_prepared_statements
-- differs: integers have 64 bits
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE $1 IN (1, 2); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE age + $1 > 3; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE country LIKE $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE country ~ $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE country ILIKE $1; SELECT parameter_types FROM pg_prepared_statements
-- differs: a value of no type is a text
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE $1 IS NULL; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE price BETWEEN $1 AND 3.5; SELECT parameter_types FROM pg_prepared_statements
-- differs: integers have 64 bits
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE LENGTH(country) = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE ABS(age) = $1; SELECT parameter_types FROM pg_prepared_statements
-- differs: no timestamp has a zone
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE date_trunc('month', signed_up) = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE -age = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE age + 1 = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE 1.5 * price = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE age % 2 = $1; SELECT parameter_types FROM pg_prepared_statements
-- differs: / divides without a remainder
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE age / 2 = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE upper(country) = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE 'x' = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE signed_up::date = $1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE age = coalesce($1, age); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE nullif(price, $1) > 1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE age > greatest($1, age, $2); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE floor($1) = 1; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE left(country, $1) = 'F'; SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE (age, country) = ($1, $2); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE (age, price) IN (($1, $2), ($3, $4)); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE age = ANY($1); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE age <> ALL($1); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE age = SOME($1); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE price = ANY($1); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE price <> ALL($1); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE price = SOME($1); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE signed_up = ANY($1); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE signed_up <> ALL($1); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE signed_up = SOME($1); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE country = ANY($1); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE country <> ALL($1); SELECT parameter_types FROM pg_prepared_statements
PREPARE q AS SELECT COUNT(*) FROM users u JOIN orders o USING (user_id) WHERE country = SOME($1); SELECT parameter_types FROM pg_prepared_statements
SET TIME ZONE INTERVAL '02:30:15'; SHOW timezone; SELECT '2024-01-01 00:00'::timestamptz
SET TIME ZONE INTERVAL 5
SET TIME ZONE INTERVAL '5' DAY
SET TIME ZONE INTERVAL '-8' HOUR; SHOW timezone
SET intervalstyle TO postgres_verbose; SELECT interval '-1 year 2 days 03:04:05', interval '0', interval '1 mon -1.5 sec'
SET intervalstyle = sql_standard; SELECT interval '1 day 02:00', interval '1 mon', interval '-1 day -3:00', interval '1 mon -1 day', interval '0'
SET intervalstyle = iso_8601; SELECT interval '1 year -2 days 03:04:05.5', interval '-0.5 sec', interval '0'
SET ROLE ann; SHOW role; RESET ROLE; SHOW role
EXPLAIN EXECUTE nosuch
EXPLAIN (COSTS off) EXECUTE nosuch(1)
EXPLAIN (FORMAT nosuch) SELECT 1
EXPLAIN (COSTS maybe) SELECT 1
DISCARD nosuch
SHOW ALL LIMIT 1
COPY (SELECT 1 AS a, 'x' AS b) TO STDOUT WITH CSV HEADER DELIMITER ';' QUOTE '''' FORCE QUOTE *
COPY (SELECT 1 AS a, 'x,"y"' AS b, NULL) TO STDOUT (FORMAT csv, FORCE_QUOTE (a, b), ESCAPE '\')
COPY (SELECT 1 AS a) TO STDOUT (FORMAT csv, FORCE_QUOTE (nosuch))
COPY (VALUES (E'\\.', E'\\.')) TO STDOUT (FORMAT csv)
COPY (VALUES (E'\\.')) TO STDOUT (FORMAT csv)
COPY (SELECT 1) TO STDOUT (DELIMITER 'ab')
COPY (SELECT 1) TO STDOUT (FORMAT binary, DELIMITER ',')
COPY (SELECT 1) TO STDOUT (QUOTE '"')
COPY (SELECT 1) TO STDOUT (nosuch)
COPY pg_tablespace (spcname, oid) TO STDOUT
BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
RESET server_version
COPY pg_tablespace TO STDOUT WITH (FORMAT nosuch)
COPY pg_tablespace TO STDOUT
-- values of settings where they are listed, roles by a function, cursors as they were declared
SET work_mem = '10MB'; SELECT setting, unit, source FROM pg_settings WHERE name = 'work_mem'; SHOW work_mem
SELECT set_config('role', 'ann', false), current_setting('role'); RESET ROLE; SHOW role
SELECT set_config('role', 'nosuch', true)
SELECT set_config('session_authorization', 'nosuch', false)
SET lock_timeout = 2147483648
SET work_mem = '1kB'
SET statement_timeout = -1
BEGIN ISOLATION LEVEL SNAPSHOT
BEGIN; DECLARE c CURSOR FOR VALUES (1); SELECT name, statement FROM pg_cursors; COMMIT
SELECT p.nosuch FROM products p
SELECT count(*) FROM products WHERE nosuch.x = 1
SELECT $x$abc
SELECT pg_catalog.count(*) FROM products
-- Rights decide on what a read-only transaction does not refuse; locks of the session; errors in failed transactions
BEGIN; SELECT 1/0; INSERT INTO users VALUES (1)
BEGIN; SELECT nosuch; VACUUM
SELECT pg_advisory_lock(7), pg_advisory_unlock(7), pg_advisory_unlock(7)
SELECT pg_advisory_lock(1, 2), pg_advisory_lock(1, 2), pg_advisory_unlock(1, 2), pg_advisory_unlock(1, 2), pg_advisory_unlock(1, 2)
SELECT pg_advisory_unlock_shared(5), pg_try_advisory_lock_shared(5), pg_advisory_unlock_shared(5)
PREPARE w AS INSERT INTO users VALUES (1, 'AT', NULL, NULL, '2024-01-01', true, 'x'); DEALLOCATE w
PREPARE w AS CREATE TABLE x (a int)
DECLARE c CURSOR FOR DELETE FROM users
CALL nosuch(1, 'a')
LOCK users IN NOSUCH MODE
LOCK users IN SHARE MODE
BEGIN; LOCK TABLE nosuch IN EXCLUSIVE MODE
VACUUM nosuch
ANALYZE users (age, plan), orders
VACUUM (VERBOSE) users
BEGIN; VACUUM users
SELECT 1; VACUUM
REINDEX TABLE nosuch
CLUSTER
LOAD 'x'
ALTER SYSTEM SET work_mem = '1MB'
ALTER SYSTEM RESET ALL
USE shop
PRAGMA x
INSTALL x
SELECT count(*) FROM users GROUP BY
SELECT count(*) FROM users WHERE
BEGIN; DECLARE c CURSOR FOR SELECT * FROM generate_series(1,5); FETCH 2 FROM c; FETCH ALL c; MOVE BACKWARD 1 IN c; FETCH PRIOR c; CLOSE c; COMMIT
BEGIN; DECLARE c CURSOR FOR SELECT 1; FETCH c; FETCH PRIOR c
BEGIN; DECLARE c CURSOR FOR SELECT oid FROM pg_am WHERE oid > 100; FETCH 3 c; FETCH BACKWARD 1 c; COMMIT
BEGIN; DECLARE c CURSOR FOR SELECT c.oid FROM pg_am c JOIN pg_proc p ON p.oid = c.amhandler; FETCH 3 c; FETCH BACKWARD 1 c
BEGIN; DECLARE c CURSOR FOR SELECT count(*) FROM pg_am; FETCH c; FETCH BACKWARD 1 c
BEGIN; DECLARE c CURSOR FOR VALUES (1), (2), (3); FETCH 2 c; FETCH PRIOR c; FETCH ABSOLUTE 3 c; COMMIT
BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT * FROM generate_series(1,5) ORDER BY 1; FETCH 2 c; FETCH PRIOR c
BEGIN; DECLARE c CURSOR FOR SELECT amname FROM pg_am ORDER BY 1; SELECT name, is_scrollable FROM pg_cursors; COMMIT
BEGIN; DECLARE c CURSOR FOR SELECT generate_series(1, 3); FETCH 2 c; FETCH PRIOR c
PREPARE a(int) AS SELECT $1 * 2; EXECUTE a('3'); EXECUTE a(1.5); EXECUTE a(2::bigint); DEALLOCATE ALL
PREPARE a(int) AS SELECT $1; EXECUTE a('x')
PREPARE a(int) AS SELECT $1; EXECUTE a(1, 2)
PREPARE a(int) AS SELECT $1; EXECUTE a
PREPARE a AS SELECT 1; EXECUTE a; EXECUTE a(1)
PREPARE a(int[], numeric(5,2)) AS SELECT $1, $2; EXECUTE a('{1,2}', 1.234); EXECUTE a(ARRAY[1], NULL)
PREPARE a AS SELECT relname FROM pg_class WHERE oid = $1 AND relkind = $2; EXECUTE a(1259, 'r'); EXECUTE a('pg_class'::regclass, 'r')
PREPARE a(oid) AS SELECT $1::regclass; EXECUTE a(1259)
PREPARE a(timestamptz) AS SELECT $1 > '2020-01-01'; EXECUTE a(date '2024-01-01')
SELECT relname FROM pg_class ORDER BY 1 FETCH FIRST -1 ROWS ONLY
SELECT 1 FETCH NEXT +1 ROW ONLY
PREPARE a(bool) AS SELECT $1; EXECUTE a(1)
PREPARE a(int, json) AS SELECT $1, $2; EXECUTE a(2.5, '5'); EXECUTE a(2, 5)
PREPARE a(int[], date, text) AS SELECT $1, $2, $3; EXECUTE a(ARRAY[1.5], timestamp '2024-01-02 10:00', true)
