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
-- differs: there are other settings
SET vacuum_cost_delay = 0
SET default_transaction_read_only = on
SET LOCAL timezone = 'UTC'
RESET ALL
RESET timezone
RESET nosuch
RESET SESSION AUTHORIZATION
RESET ROLE
-- differs: the zone is UTC
SHOW timezone
-- differs: the zone is UTC
SHOW TIME ZONE
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
-- differs: nothing can be written
LOCK TABLE orders
-- differs: nothing can be written
CHECKPOINT
-- differs: statements are prepared by the protocol alone
PREPARE p AS SELECT 1; EXECUTE p; DEALLOCATE p
-- differs: statements are prepared by the protocol alone
PREPARE p (int) AS SELECT $1; EXECUTE p(3); DEALLOCATE p
-- differs: statements are prepared by the protocol alone
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
-- differs: there are no snapshots
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
