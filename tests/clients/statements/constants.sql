-- Questions without tables: values, types and errors (with their words and places) are those of PostgreSQL. Behind "-- P:" stand the
-- texts of parameters whose types PostgreSQL infers.
SELECT date '2024-02-29' + interval '1 year'
SELECT date '2024-01-31' + interval '1 month'
SELECT date '2024-03-31' - date '2024-01-01'
SELECT timestamp '2024-03-10 12:30:45.678' - timestamp '2024-01-01 00:00:00'
SELECT age(timestamp '2024-03-10', timestamp '2001-06-15')
SELECT age(date '2020-02-29', date '2019-03-01')
SELECT to_char(timestamp '2024-03-05 14:07:09.123456', 'YYYY-MM-DD HH24:MI:SS.US')
SELECT to_char(timestamp '2024-03-05 14:07:09', 'Day, DD Month YYYY')
SELECT to_char(timestamp '2024-03-05 14:07:09', 'FMDay, FMDDth FMMonth YYYY HH12:MI am')
SELECT to_char(date '2024-12-30', 'IYYY-"W"IW-ID')
SELECT to_char(date '2024-12-30', 'Q DDD J CC WW W')
SELECT to_char(1234567.891, '9,999,999.99')
SELECT to_char(-1234.5, '9999.99MI')
SELECT to_char(0.5, 'FM990.00%')
SELECT to_char(485, 'RN')
SELECT to_char(12345.678, 'L99,999.99')
SELECT to_char(1.5e10::float8, '9.99EEEE')
SELECT to_char(-17, 'S999')
SELECT to_char(17, '00000')
SELECT to_char(125.8::real, '999D9')
SELECT to_char(interval '15h 2m 12s', 'HH24:MI:SS')
SELECT to_char(interval '3 days 100 hours', 'DD HH24:MI')
SELECT to_date('05 Dec 2000', 'DD Mon YYYY')
SELECT to_date('20240229', 'YYYYMMDD')
SELECT to_date('2023-02-30', 'YYYY-MM-DD')
SELECT to_date('abc', 'YYYY-MM-DD')
SELECT to_timestamp('05 Dec 2000 13:14', 'DD Mon YYYY HH24:MI')
SELECT to_timestamp(1700000000.5)
SELECT to_number('12,454.8-', '99G999D9S')
SELECT to_number('$1,234.56', 'L9,999.99')
SELECT extract(epoch from timestamp '2024-01-01 12:00:00')
SELECT extract(dow from date '2024-03-10'), extract(isodow from date '2024-03-10')
SELECT extract(week from date '2021-01-03'), extract(isoyear from date '2021-01-03')
SELECT extract(century from date '2000-12-31'), extract(millennium from date '2001-01-01')
SELECT extract(milliseconds from time '17:12:28.5')
SELECT extract(epoch from interval '5 days 3 hours')
SELECT extract(julian from date '2006-01-01')
SELECT extract(hour from date '2024-01-01')
SELECT extract(foo from timestamp '2024-01-01')
SELECT date_part('day', interval '40 days 1 minute')
SELECT date_part('quarter', timestamp '2024-05-01')
SELECT date_trunc('week', timestamp '2024-03-10 11:22:33')
SELECT date_trunc('quarter', date '2024-05-17')
SELECT date_trunc('hour', interval '2 days 10 hours 47 minutes')
SELECT date_trunc('decade', timestamp '2024-03-10 11:22:33')
SELECT date_trunc('fortnight', timestamp '2024-03-10 11:22:33')
SELECT date_trunc('day', timestamptz '2024-03-10 11:22:33+05', 'Australia/Sydney')
SELECT date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01')
SELECT timestamptz '2024-07-01 12:00:00+00' AT TIME ZONE 'America/New_York'
SELECT timestamp '2024-07-01 12:00:00' AT TIME ZONE 'Europe/Berlin'
SELECT timezone('UTC', timestamptz '2024-07-01 12:00:00+02')
SELECT make_date(2024, 2, 30)
SELECT make_date(2024, 2, 29), make_time(8, 15, 23.5), make_timestamp(2013, 7, 15, 8, 15, 23.5)
SELECT make_interval(days => 10, hours => 5)
SELECT justify_hours(interval '27 hours'), justify_days(interval '35 days'), justify_interval(interval '1 mon -1 hour')
SELECT interval '1 year 2 months 3 days 4 hours 5 minutes 6.789 seconds'
SELECT interval 'P1Y2M3DT4H5M6S'
SELECT interval '1-2', interval '3 4:05:06', interval '-1 day +02:03'
SELECT interval '1.5 years', interval '0.5 month', interval '1.25 days'
SELECT interval '90' minute, interval '1 day 2:03' day to hour
SELECT interval '1 hour' * 3.5, interval '10 hours' / 4, -interval '1 day'
SELECT interval 'foo'
SELECT '1 fortnight'::interval
SELECT interval '2 weeks ago'
SELECT (timestamp '2024-01-01', interval '10 days') OVERLAPS (timestamp '2024-01-05', timestamp '2024-02-01')
SELECT date '2024-13-01'
SELECT 'yesterday-ish'::date
SELECT timestamp 'infinity', date '-infinity'
SELECT timestamp '2024-02-30 00:00:00'
SELECT time '25:00:00'
SELECT time '10:30' + interval '3 hours', time '10:30' - time '08:15'
SELECT date '2024-05-01' + time '10:30'
SELECT isfinite(date 'infinity'), isfinite(interval '4 hours')
SELECT 'epoch'::timestamptz
SELECT '20240115T101112'::timestamp
SELECT '04:05:06 PM'::time, '040506'::time, '04:05:06-08:00'::timetz
SELECT date '2024-01-01' < timestamp '2024-01-01 00:00:01'
SELECT date '2024-01-01' + 7, 7 + date '2024-01-01', date '2024-01-01' - 7
SELECT date '2024-01-01' + date '2024-01-01'
SELECT date '2024-01-01' + 1.5
SELECT generate_series(1, 5)
SELECT * FROM generate_series(10, 1, -3) AS g(n)
SELECT * FROM generate_series(1, 3, 0)
SELECT d::date FROM generate_series(date '2024-01-30', date '2024-02-02', interval '1 day') d
SELECT generate_series(timestamp '2024-01-31', timestamp '2024-05-31', '1 month')
SELECT g, g * g AS sq FROM generate_series(1, 4) g WHERE g % 2 = 0
SELECT * FROM generate_series(1.0, 2.0, 0.25)
SELECT n, row_number() OVER (ORDER BY n DESC) FROM generate_series(1,3) n
SELECT upper('straße'), lower('ÄÖÜ'), initcap('hello wORLD-foo bar')
SELECT substring('Thomas' from 2 for 3), substring('Thomas' from '...$'), substring('foobar' similar '%#"o_b#"%' escape '#')
SELECT substr('alphabet', 3), substr('alphabet', 3, 2), substr('alphabet', -1, 4)
SELECT substring('abc' from 1 for -1)
SELECT overlay('Txxxxas' placing 'hom' from 2 for 4)
SELECT position('om' in 'Thomas'), strpos('high', 'ig')
SELECT trim(both 'xyz' from 'yxTomxx'), ltrim('zzzytest', 'xyz'), rtrim('testxxzx', 'xyz'), btrim('  x ')
SELECT trim(leading from '  abc  ') || '|'
SELECT lpad('hi', 5, 'xy'), rpad('hi', 5), lpad('hello', 3), lpad('x', 3, '')
SELECT repeat('Pg', 4), repeat('x', -1), reverse('abcde')
SELECT replace('abcdefabcdef', 'cd', 'XX'), translate('12345', '143', 'ax')
SELECT split_part('abc~@~def~@~ghi', '~@~', 2), split_part('a,b,c', ',', -1)
SELECT split_part('a,b,c', ',', 0)
SELECT left('abcde', -2), right('abcde', 2), left('abc', 10)
SELECT concat('a', 1, NULL, true, 2.50), concat_ws(',', 'a', NULL, 'b', 3)
SELECT format('Hello %s, %1$s %I %L', 'World', 'My Col', 'it''s')
SELECT format('%-10s|%5s|', 'foo', 'bar'), format('%%')
SELECT format('%s %s', 'a')
SELECT format('%z', 'a')
SELECT ascii('x'), chr(65), chr(8364), chr(0)
SELECT md5('hello'), sha256('abc')
SELECT encode('hello'::bytea, 'base64'), encode('\xdeadbeef', 'hex'), encode('a\\b'::bytea, 'escape')
SELECT decode('aGVsbG8=', 'base64'), decode('zz', 'hex')
SELECT length('jose'), char_length('日本'), octet_length('日本'), bit_length('jose')
SELECT quote_ident('Foo bar'), quote_ident('select'), quote_literal(E'O\'Reilly'), quote_nullable(NULL)
SELECT starts_with('alphabet', 'alph'), 'alphabet' ^@ 'alph'
SELECT string_to_array('xx~~yy~~zz', '~~', 'yy'), array_to_string(ARRAY[1,2,NULL,3], ',', '*')
SELECT string_to_table('a,b,c', ',')
SELECT unistr('d\0061t\+000061')
SELECT to_hex(2147483647), to_hex(-1), to_hex(255::bigint)
SELECT 'a' || 1, 1 || 'a', 'a' || NULL
SELECT 1 || 2
SELECT 'abc' LIKE 'a_c', 'abc' NOT LIKE '%d%', 'ABC' ILIKE 'abc', 'a%c' LIKE 'a\%c', 'a%c' LIKE 'a#%c' ESCAPE '#'
SELECT 'abc' SIMILAR TO '(a|b)%', 'abc' SIMILAR TO 'a'
SELECT 'foo' ~ 'fo+', 'FOO' ~* 'foo', 'foo' !~ 'bar', 'foo' !~* 'FOO'
SELECT regexp_replace('Thomas', '.[mN]a.', 'M'), regexp_replace('foobarbaz', 'b(..)', 'X\1Y', 'g')
SELECT regexp_match('foobarbequebaz', '(bar)(beque)'), regexp_match('abc', 'x')
SELECT regexp_matches('foobarbequebazilbarfbonk', '(b[^b]+)(b[^b]+)', 'g')
SELECT regexp_split_to_array('hello   world', '\s+'), regexp_split_to_table('a1b2c', '\d')
SELECT regexp_count('ABCABCAXYaxy', 'A.'), regexp_instr('ABCDEF', 'C(.)', 1, 1, 0), regexp_like('Hello', 'hello', 'i'), regexp_substr('ABCDEF', 'c(.)(..)', 1, 1, 'i', 2)
SELECT 'foo' ~ '(unclosed'
SELECT regexp_replace('abc', 'b', 'x', 'q!')
SELECT substring('XY1234Z', 'Y*([0-9]{1,3})'), substring('foo.bar' from '\.(.*)')
SELECT '\d' ~ '\\d', 'a1' ~ '^[[:alpha:]][[:digit:]]$', 'ab' ~ '\mab\M'
SELECT '{"a":{"b":[1,2,{"c":"d"}]}}'::json #> '{a,b,2,c}', '{"a":{"b":[1,2,3]}}'::json #>> '{a,b,1}'
SELECT '{"a":1,"b":"x"}'::jsonb -> 'b', '{"a":1,"b":"x"}'::jsonb ->> 'b', '[1,2,3]'::json -> 1, '[1,2,3]'::json ->> -1
SELECT '{"b":1, "a":2, "b":3}'::jsonb, '{"b":1,  "a":2, "b":3}'::json
SELECT '{"a":1}'::jsonb || '{"b":2}', '[1]'::jsonb || '2', '{"a":1,"b":2}'::jsonb - 'a', '[1,2,3]'::jsonb - 1, '{"a":{"b":1}}'::jsonb #- '{a,b}'
SELECT '{"a":1,"b":2}'::jsonb @> '{"a":1}', '{"a":1}'::jsonb <@ '{"a":1,"b":2}', '{"a":1}'::jsonb ? 'a', '{"a":1}'::jsonb ?| array['b','a'], '{"a":1}'::jsonb ?& array['a','b']
SELECT jsonb_set('{"a":[1,2]}', '{a,0}', '99'), jsonb_set('{"a":1}', '{b}', '2', false), jsonb_insert('{"a":[0,1]}', '{a,1}', '"x"')
SELECT jsonb_build_object('a', 1, 'b', array[1,2], 'c', null), json_build_array(1, 'x', true, null, 2.5)
SELECT json_object('{a,1,b,2}'), json_object(array['a','b'], array['1','2'])
SELECT to_json('Fred said "Hi."'::text), to_jsonb(array[1,2]), row_to_json(row(1,'foo'))
SELECT to_json(timestamp '2024-01-01 10:00'), to_jsonb(date '2024-01-01'), to_json(1.50::numeric), to_json(true)
SELECT json_typeof('-123.4'), jsonb_typeof('null'), jsonb_typeof('[]')
SELECT json_array_length('[1,2,{"a":1}]'), jsonb_array_length('{"a":1}')
SELECT * FROM json_each('{"a":"foo","b":"bar"}')
SELECT * FROM jsonb_each_text('{"a":"foo","b":null}')
SELECT * FROM jsonb_array_elements('[1,true,[2,false]]')
SELECT value FROM json_array_elements_text('["foo","bar"]')
SELECT json_object_keys('{"f1":"abc","f2":{"f3":"a"}}')
SELECT * FROM jsonb_to_record('{"a":1,"b":[1,2],"c":"bar"}') AS x(a int, b text, d text)
SELECT * FROM json_to_recordset('[{"a":1,"b":"foo"},{"a":"2","c":"bar"}]') AS x(a int, b text)
SELECT json_strip_nulls('{"f1":1,"f2":null}'), jsonb_pretty('{"a":[1,2]}')
SELECT jsonb_path_query('{"a":[1,2,3,4,5]}', '$.a[*] ? (@ >= $min && @ <= $max)', '{"min":2,"max":4}')
SELECT jsonb_path_exists('{"a":[1,2]}', '$.a[*] ? (@ > 1)'), jsonb_path_query_array('[1,2,3]', '$[*] ? (@ > 1)'), jsonb_path_query_first('{"x": [ {"y": 5}]}', '$.x[0].y')
SELECT '{"a":[1,2,3]}'::jsonb @? '$.a[*] ? (@ > 2)', '{"a":[1,2,3]}'::jsonb @@ '$.a[*] > 2'
SELECT jsonb_path_query('[1,"a",null]', '$[*].type()')
SELECT jsonb_path_query('{"a": 2.7}', '$.a.floor()'), jsonb_path_query('[3]', '$.size()')
SELECT jsonb_path_query('{}', '$.a[')
SELECT '{bad json}'::json
SELECT '{"a":1'::jsonb
SELECT ('{"a":{"b":2}}'::jsonb)['a']['b']
SELECT '1'::jsonb::int, 'true'::jsonb::boolean, '"x"'::jsonb::text
SELECT '"x"'::jsonb::int
SELECT '{"a":1}'::jsonb = '{"a":1.0}'::jsonb
SELECT '{"a":1}'::json = '{"a":1}'::json
SELECT json_agg(x) FROM (VALUES (1),(2),(NULL)) v(x)
SELECT jsonb_agg(v ORDER BY x DESC) FROM (VALUES (1,'a'),(2,'b')) v(x,y)
SELECT json_object_agg(k, v) FROM (VALUES ('a',1),('b',2)) t(k,v)
SELECT jsonb_object_agg(k, v) FROM (VALUES ('a',1),('a',2)) t(k,v)
SELECT ARRAY[1,2,3] || 4, 0 || ARRAY[1,2], ARRAY[1,2] || ARRAY[3,4]
SELECT ARRAY[[1,2],[3,4]], array_dims(ARRAY[[1,2],[3,4]]), array_ndims(ARRAY[[1,2],[3,4]]), cardinality(ARRAY[[1,2],[3,4]])
SELECT array_length(ARRAY[1,2,3], 1), array_upper(ARRAY[1,2,3], 1), array_lower('[0:2]={1,2,3}'::int[], 1), array_length('{}'::int[], 1)
SELECT (ARRAY[10,20,30])[2], (ARRAY[10,20,30])[2:3], (ARRAY[10,20,30])[5]
SELECT ARRAY[1,4,3] @> ARRAY[3,1], ARRAY[2,7] <@ ARRAY[1,7,4,2,6], ARRAY[1,4,3] && ARRAY[2,1]
SELECT array_position(ARRAY['sun','mon','tue'], 'mon'), array_positions(ARRAY['A','A','B','A'], 'A')
SELECT array_remove(ARRAY[1,2,3,2], 2), array_replace(ARRAY[1,2,5,4], 5, 3), array_append(ARRAY[1,2], 3), array_prepend(1, ARRAY[2,3]), array_cat(ARRAY[1,2,3], ARRAY[4,5])
SELECT array_fill(7, ARRAY[3]), array_fill(0, ARRAY[2,2], ARRAY[0,0])
SELECT trim_array(ARRAY[1,2,3,4,5,6], 2)
SELECT unnest(ARRAY[1,2]), unnest(ARRAY['a','b','c'])
SELECT * FROM unnest(ARRAY['a','b']) WITH ORDINALITY AS t(v, i)
SELECT * FROM unnest(ARRAY[1,2,3], ARRAY['x','y']) AS t(a, b)
SELECT 3 = ANY(ARRAY[1,2,3]), 5 <> ALL('{1,2,3}'), 3 = ANY(NULL::int[])
SELECT '{1,2,NULL}'::int[], '{"a b",c,"d\"e"}'::text[], '{}'::text[]
SELECT '{1,2'::int[]
SELECT '{1,x}'::int[]
SELECT ARRAY[1,'a']
SELECT ARRAY[]
SELECT ARRAY[]::int[]
SELECT array_agg(x ORDER BY x DESC) FROM unnest(ARRAY[3,1,2]) x
SELECT ARRAY(SELECT generate_series(1,3))
SELECT ARRAY[1,2,3] < ARRAY[1,2,4], ARRAY[1,2] = ARRAY[1,2]
SELECT ARRAY[1.5, 2], ARRAY[true, NULL], ARRAY['2024-01-01'::date]
SELECT int4range(1, 10), numrange(1.5, 2.5, '[]'), '[2024-01-01,2024-02-01)'::daterange
SELECT int4range(10, 20) @> 15, int4range(1,5) && int4range(4,8), int4range(1,5) * int4range(3,8), int4range(1,5) + int4range(5,8), int4range(1,10) - int4range(5,10)
SELECT lower(int8range(15,25)), upper(numrange(1.1,2.2)), isempty(int4range(5,5)), lower_inc(int4range(1,2)), upper_inf('(,)'::daterange)
SELECT int4range(10, 1)
SELECT '[a,b)'::int4range
SELECT '{[1,3),[5,8)}'::int4multirange, range_merge(int4range(1,2), int4range(5,6))
SELECT tsrange('2024-01-01', '2024-01-02') -|- tsrange('2024-01-02', '2024-01-03')
SELECT 1/0
SELECT 1.0/0
SELECT 5 % 0, mod(5, 3)
SELECT 1e308::float8 * 10
SELECT 2147483647 + 1
SELECT 9223372036854775807 + 1
SELECT 32767::smallint + 1::smallint
SELECT 100000::smallint
SELECT 7 / 2, -7 / 2, 7 % -3, 7.0 / 2, 2 ^ 10, 2 ^ 0.5
SELECT |/ 25.0, ||/ 27.0, @ -5.0, 91 & 15, 32 | 3, 17 # 5, ~1, 1 << 4, 8 >> 2
SELECT round(42.4382, 2), round(42.5), round(-2.5), round(2.5::float8), trunc(42.8), trunc(-42.4382, 2), ceil(-42.8), floor(-42.8)
SELECT abs(-17), sign(-8.4), sqrt(2), cbrt(27.0), exp(1.0), ln(2.0), log(100), log(2.0, 64.0), power(9, 3), power(9.0, 0.5)
SELECT pi(), degrees(0.5), radians(45), sin(1), cosd(60), atan2(1,2), tanh(1)
SELECT sqrt(-1)
SELECT ln(0)
SELECT gcd(1071, 462), lcm(1071, 462), factorial(20), scale(8.4100), min_scale(8.4100), trim_scale(8.4100), div(9,4)
SELECT width_bucket(5.35, 0.024, 10.06, 5), width_bucket(now(), array['yesterday','today','tomorrow']::timestamptz[])
SELECT 0.1 + 0.2, 0.1::float8 + 0.2::float8, 1::real / 3, 1::numeric / 3
SELECT 10::numeric(5,2), 123.456::numeric(5,1), 1234.5::numeric(5,2)
SELECT 'NaN'::float8, 'Infinity'::numeric, '-inf'::float4, 'NaN'::numeric = 'NaN'::numeric
SELECT '1e-400'::float8
SELECT 1.23e5, 1e-7, .5, 5., 100000000000000000000
SELECT 1::float8, 1e15::float8, 1e16::float8, 1.5e-5::float8, 123456789.123::real
SELECT greatest(1, 2.5, NULL), least('b', 'a'), nullif(1, 1), coalesce(NULL, 'x')
SELECT CASE WHEN 1 > 2 THEN 'a' WHEN true THEN 'b' END, CASE 3 WHEN 1 THEN 'x' ELSE 'y' END
SELECT CASE WHEN true THEN 1 ELSE 'x' END
SELECT CASE WHEN 1 THEN 2 END
SELECT coalesce(1, 'a')
SELECT coalesce(1, 2.5), coalesce(NULL, NULL)
VALUES (1, 'a'), (2, 'b')
VALUES (1), (2.5), (NULL)
VALUES (1), ('a')
VALUES (1,2), (3)
SELECT * FROM (VALUES (1,'one'),(2,'two'),(3,'three')) AS t(num, letter) WHERE num > 1 ORDER BY letter
SELECT column1, column2 FROM (VALUES (1,2)) v
WITH t AS (SELECT 1 AS a) SELECT a, a + 1 AS b FROM t
WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n+1 FROM t WHERE n < 5) SELECT sum(n) FROM t
WITH RECURSIVE fib(a,b) AS (SELECT 0,1 UNION ALL SELECT b,a+b FROM fib WHERE b < 50) SELECT a FROM fib
WITH a AS (SELECT 1 x), b AS (SELECT x+1 y FROM a) SELECT * FROM a, b
SELECT sum(x), avg(x), count(*), min(x), max(x) FROM (VALUES (1),(2),(4)) v(x)
SELECT avg(x), stddev(x), variance(x), var_pop(x), stddev_pop(x) FROM (VALUES (1.5),(2.5),(4.0)) v(x)
SELECT string_agg(x, ', ' ORDER BY x), count(DISTINCT x) FROM unnest(ARRAY['b','a','b']) x
SELECT x % 2 AS parity, count(*), sum(x) FROM generate_series(1,9) x GROUP BY 1 ORDER BY 1
SELECT x, sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM generate_series(1,4) x
SELECT x, lag(x) OVER w, lead(x, 1, 0) OVER w, first_value(x) OVER w, rank() OVER w FROM (VALUES (3),(1),(2)) v(x) WINDOW w AS (ORDER BY x)
SELECT g, ntile(2) OVER (ORDER BY g), percent_rank() OVER (ORDER BY g), cume_dist() OVER (ORDER BY g) FROM generate_series(1,3) g
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.5) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x) FROM generate_series(1,4) x
SELECT count(*) FILTER (WHERE x > 2), bool_and(x > 0), bool_or(x > 3), every(x < 3) FROM generate_series(1,4) x
SELECT bit_and(x), bit_or(x), bit_xor(x) FROM (VALUES (12),(10)) v(x)
SELECT corr(x, x*2), regr_slope(x*2, x), covar_pop(x, x) FROM generate_series(1,5) x
SELECT a, b, count(*) FROM (VALUES (1,1),(1,2),(2,1)) v(a,b) GROUP BY ROLLUP (a, b) ORDER BY 1, 2
SELECT a, b, grouping(a, b) FROM (VALUES (1,1)) v(a,b) GROUP BY CUBE (a, b) ORDER BY 3
SELECT a, count(*) FROM (VALUES (1),(1),(2)) v(a) GROUP BY a HAVING count(*) > 1
SELECT t.x, l.y FROM (VALUES (1),(2)) t(x), LATERAL (SELECT t.x * 10 AS y) l
SELECT t.x, s.n FROM (VALUES (2),(1)) t(x) CROSS JOIN LATERAL generate_series(1, t.x) AS s(n)
SELECT a.x, b.x FROM generate_series(1,3) a(x) LEFT JOIN generate_series(2,4) b(x) ON a.x = b.x
SELECT * FROM (VALUES (1,'a')) a(id, v) JOIN (VALUES (1,'b')) b(id, w) USING (id)
SELECT * FROM (VALUES (1),(2)) a(x) FULL JOIN (VALUES (2),(3)) b(x) USING (x) ORDER BY 1
SELECT * FROM (VALUES (1, 2)) a(x, y) NATURAL JOIN (VALUES (1, 3)) b(x, z)
SELECT 1 UNION SELECT 2 UNION SELECT 1 ORDER BY 1
SELECT 1 UNION ALL SELECT 1
SELECT x FROM generate_series(1,5) x INTERSECT SELECT x FROM generate_series(3,8) x ORDER BY 1
SELECT x FROM generate_series(1,5) x EXCEPT SELECT 2 ORDER BY 1 LIMIT 2 OFFSET 1
SELECT 1 UNION SELECT 'a'
SELECT 1, 2 UNION SELECT 3
SELECT 1 AS a UNION SELECT 2.5 ORDER BY a
SELECT DISTINCT ON (x) x, y FROM (VALUES (1,2),(1,1),(2,5)) v(x,y) ORDER BY x, y
SELECT EXISTS (SELECT 1 WHERE false), (SELECT 5), 3 IN (SELECT generate_series(1,3))
SELECT (SELECT x FROM (VALUES (1),(2)) v(x))
SELECT (SELECT 1, 2)
SELECT ROW(1,2) = ROW(1,2), (1,2) < (1,3), ROW(1,NULL) IS NULL, (1, NULL) IS NOT NULL, ROW(NULL,NULL) IS NULL
SELECT (1,2) IN ((1,2),(3,4)), (1,2) = (1,2,3)
SELECT ROW(1,'a',NULL), ROW(1,2.5)::text, ROW('a b','c"d')
SELECT 1 IS DISTINCT FROM NULL, NULL IS NOT DISTINCT FROM NULL, true IS NOT TRUE, NULL IS UNKNOWN
SELECT 5 BETWEEN 1 AND 10, 5 NOT BETWEEN 6 AND 10, 5 BETWEEN SYMMETRIC 10 AND 1
SELECT NOT true, true AND NULL, false AND NULL, true OR NULL
SELECT 't'::bool, 'yes'::boolean, 'off'::bool, '1'::bool, true::int, 0::bool, true::text
SELECT 'maybe'::boolean
SELECT 'abc'::int
SELECT '12.5'::int
SELECT 12.5::int, 13.5::int, -0.5::int, 2.5::float8::int
SELECT '  42  '::int, '-7'::bigint, '0x1F'::int
SELECT '99999999999'::int
SELECT CAST('1' AS integer), int '5', '5'::int4, float8 '1.5', CAST(3.7 AS int)
SELECT 'abc'::varchar(2), 'abc'::char(5), 'abc'::char(2) || 'x', 'a'::"char"
SELECT true::int + 1, 'x'::text = 'x'
SELECT 1 = '1', 1 = 'a'
SELECT 1 = true
SELECT 'a' < 'B', 'a' = 'a '::char(2)
SELECT 'abc'::nosuchtype
SELECT nosuchfunction(1)
SELECT upper(1)
SELECT nosuchcol
SELECT t.nosuch FROM (VALUES (1)) t(a)
SELECT x.a FROM (VALUES (1)) t(a)
SELECT 1 +
SELECT FROM WHERE
SELEC 1
SELECT 'unterminated
SELECT (1
SELECT 1 1
SELECT "abc
SELECT * 
SELECT 1 FROM
SELECT 1 WHERE 2
SELECT 1 LIMIT 'a'
SELECT 1 LIMIT -1
SELECT 1 ORDER BY 2
SELECT 1 GROUP BY 5
SELECT sum(1) WHERE sum(1) > 0
SELECT x, count(*) FROM (VALUES (1)) v(x)
SELECT E'a\tb\nc', E'\u00e9', E'\x41', $$it's$$, $tag$a $$ b$tag$, U&'d\0061t', U&'d!0061t' UESCAPE '!'
SELECT 'a' 'b'
SELECT B'1010', X'1F', B'101' || B'1', B'1100' & B'1010', ~B'10', B'1001' << 1, length(B'101')
SELECT 5::bit(4), B'101'::int, '101'::bit(5), '101'::varbit
SELECT '\xDEADBEEF'::bytea, 'abc'::bytea, '\x41'::bytea || '\x42', length('\xabcd'::bytea), get_byte('\x4142'::bytea, 1)
SELECT substring('\x010203'::bytea from 2), position('\x02'::bytea in '\x010203'::bytea), md5('\x00'::bytea), convert_from('\x6869', 'UTF8'), convert_to('hi', 'LATIN1')
SELECT '\xZZ'::bytea
SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, '{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}'::uuid
SELECT 'not-a-uuid'::uuid
SELECT '192.168.1.5/24'::inet, '10.0.0.0/8'::cidr, host('192.168.1.5/24'::inet), masklen('10.0.0.0/8'), network('192.168.1.5/24'), broadcast('192.168.1.5/24')
SELECT inet '192.168.1.5' << inet '192.168.1/24', inet '10.0.0.1' + 5, inet '10.0.0.9' - inet '10.0.0.1', family('::1')
SELECT '300.1.1.1'::inet
SELECT '08:00:2b:01:02:03'::macaddr
SELECT '$1,234.56'::money, 12.345::money, '5'::money * 2, '10'::money / '4'::money
SELECT xmlelement(name foo, 'bar'), '<a/>'::xml
SELECT xpath('/a/b/text()', '<a><b>x</b></a>'::xml)
SELECT point(1,2), '(1,2)'::point, point '(0,0)' <-> point '(3,4)'
SELECT pg_typeof(1), pg_typeof(1.5), pg_typeof('a'), pg_typeof(now()), pg_typeof(ARRAY[1]), pg_typeof(NULL)
SELECT 1 AS "Column One", 2 AS select_, 3 "x y"
SELECT current_date = now()::date, current_timestamp IS NOT NULL, localtimestamp(0) IS NOT NULL
SELECT now() - interval '1 day' < now(), clock_timestamp() >= now()
SELECT extract(year from current_date) > 2000
SELECT random() < 1, gen_random_uuid() IS NOT NULL
SELECT num_nulls(1, NULL, 2), num_nonnulls(1, NULL)
SELECT version() LIKE 'PostgreSQL%'
SELECT 1::oid, 'int4'::regtype, 23::regtype, 'pg_class'::regclass::text
SELECT 'a' COLLATE "C" < 'b', 'b' COLLATE "nosuch"
SELECT 'x' AS a, 'y' AS a
SELECT 1;
SELECT /* nested /* comment */ here */ 1
SELECT 1_000
SELECT 0x1F, 0b101, 0o17
SELECT $1::int + 1 -- P: 41
SELECT $1 + 1 -- P: 41
SELECT $1 || 'x' -- P: a
SELECT $1::date + $2::int -- P: 2024-01-01 | 5
SELECT coalesce($1, 5) -- P: 7
SELECT $1 -- P: hello
SELECT upper($1), length($2) -- P: abc | defg
SELECT date '2024-01-01' + $1 -- P: 3
SELECT now() - $1 IS NOT NULL -- P: 1 day
SELECT $1 = ANY($2::int[]) -- P: 1 | {1,2}
SELECT * FROM generate_series(1, $1) -- P: 3
SELECT $1::jsonb -> 'a' -- P: {"a": 5}
SELECT CASE WHEN $1 THEN $2 ELSE 'z' END -- P: t | q
SELECT 1 LIMIT $1 -- P: 1
SELECT round($1, 2) -- P: 3.14159
SELECT to_char($1, 'YYYY') -- P: 2024-01-01
SELECT $1 + $2 -- P: 1 | 2
SELECT $1::int -- P: abc
SELECT x FROM (VALUES ($1), (2)) v(x) -- P: 1
SELECT $1::numeric(6,2) * 1.1 -- P: 12.345
SELECT interval '1 day' * $1 -- P: 2.5
SELECT ($1, 2) = (1, $2) -- P: 1 | 2
SELECT $1 BETWEEN 1 AND 5 -- P: 3
SELECT $1 IN ('a', 'b') -- P: a
SELECT 1 WHERE $1 LIKE 'a%' -- P: abc
SELECT extract(year from $1::timestamp) -- P: 2024-05-06
SELECT array_length($1::text[], 1) -- P: {a,b}
SELECT $1::text IS NULL -- P: NULL
SELECT sum(v) FROM unnest($1::int[]) v -- P: {1,2,3}
SELECT to_char(timestamp '2024-03-05', 'TMMonth'), to_char(timestamp '2024-03-05 14:07', 'HH:MI P.M. TZ')
SELECT to_char(now(), 'YYYY') = extract(year from now())::text
SELECT to_char(1234, '9999999'), to_char(1234, 'FM9,999,999'), to_char(0, '9'), to_char(-0.7, '0.9')
SELECT to_char(12345, '999')
SELECT to_char(1234.5678, '9999V99'), to_char(12, '99PR'), to_char(-12, '99PR'), to_char(1,'9th')
SELECT interval '1 month' > interval '29 days', interval '30 days' = interval '1 month'
SELECT '2024-01-01 10:00'::timestamp::time, '2024-01-01 10:00'::timestamp::date, '10:00'::time::interval
SELECT timestamp '2024-01-01 10:00:00.5'::timestamp(0), '12:34:56.789'::time(1)
SELECT extract(day from timestamp '2024-03-10' - timestamp '2024-01-01')
SELECT date_trunc('month', current_date) + interval '1 month' - interval '1 day' > current_date - 1
SELECT generate_series(1,3) AS a, generate_series(1,2) AS b
SELECT row_number() OVER (), x FROM unnest('{c,a,b}'::text[]) AS x
SELECT x, count(*) OVER (PARTITION BY x % 2) FROM generate_series(1,3) x ORDER BY x
SELECT sum(x) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM generate_series(1,4) x
SELECT nth_value(x, 2) OVER (ORDER BY x), last_value(x) OVER (ORDER BY x) FROM generate_series(1,3) x
SELECT dense_rank() OVER (ORDER BY x) FROM (VALUES (1),(1),(2)) v(x)
SELECT array_agg(DISTINCT x), array_agg(x) FILTER (WHERE x > 1) FROM (VALUES (2),(1),(2)) v(x)
SELECT max('abc'::text), min(date '2024-01-01'), sum(interval '1 hour'), avg(1::float8)
SELECT count(*) FROM (SELECT 1 WHERE false) s
SELECT sum(x) FROM (SELECT 1 AS x WHERE false) s
SELECT sum('a')
SELECT sum('a'::text)
SELECT max(true)
SELECT lower(NULL), length(NULL), NULL + 1, NULL::int + 1
SELECT sum(sum(1))
SELECT rank()
SELECT count(DISTINCT)
SELECT count()
SELECT substring('abc', 'b', 'c', 'd')
SELECT power('a', 2)
SELECT 'a' + 1
SELECT 'a' + 'b'
SELECT 'a'::text + 1
SELECT -'a'
SELECT - 'a'::text
SELECT NOT 1
SELECT 1 AND true
SELECT now() + 1
SELECT interval '1 day' + 1
SELECT interval '1 day' > 5
SELECT '2024-01-01'::date = 5
SELECT ARRAY[1] || 'a'::text
SELECT 1 IN ('a', 'b')
SELECT 1 IN (1, 'b'::text)
SELECT (1,2,3) > (1,2)
SELECT 5::text::date
SELECT '5'::json + 1
SELECT CAST(1 AS date)
SELECT CAST(now() AS int)
SELECT 1::interval
SELECT 'x'::int[]
SELECT t FROM (VALUES (1,'a')) t(a,b)
SELECT t.* FROM (VALUES (1,'a')) t
SELECT (t).a FROM (VALUES (1,'a')) t(a,b)
SELECT a FROM (VALUES (1)) t(a), (VALUES (2)) u(a)
SELECT * FROM (SELECT 1)
SELECT * FROM (VALUES (1)) t(a, b)
SELECT * FROM nosuchtable_xyz
SELECT count(*) FROM generate_series(1, 1000) g
SELECT 1 FOR UPDATE
SELECT string_agg(chr(64 + g), '' ORDER BY g DESC) FROM generate_series(1,5) g
SELECT lag(x) FROM generate_series(1,2) x
SELECT x FROM generate_series(1,3) x ORDER BY x DESC NULLS LAST FETCH FIRST 2 ROWS ONLY
SELECT x FROM (VALUES (1),(NULL),(2)) v(x) ORDER BY x NULLS FIRST
SELECT * FROM ROWS FROM (generate_series(1,2), generate_series(5,7)) AS t(a,b)
SELECT 10 !
SELECT @@ '(0,0),(2,2)'::box
SELECT 1 <=> 2
SELECT 'a' = ANY('{a,b}')
SELECT ~~ 'a'
SELECT 'abc' ~~ 'a%', 'abc' ~~* 'A%', 'abc' !~~ 'b'
SELECT OPERATOR(pg_catalog.-) 5, 1 OPERATOR(pg_catalog.+) 2
SELECT pg_catalog.lower('A'), pg_catalog.date_part('year', date '2024-01-01')
SELECT to_char(1e6::numeric, 'FM999,999,999'), to_char(3.14159::float8, 'FM9.99')
SELECT normalize('é', NFD) = 'é', 'abc' IS NORMALIZED
SELECT parse_ident('"SomeSchema".someTable'), quote_literal(42)
SELECT crc32('abc'::bytea)
SELECT array_to_json(ARRAY[[1,2],[3,4]]), json_extract_path_text('{"a":{"b":"c"}}', 'a', 'b')
SELECT JSON_VALUE('{"a":1}', '$.a')
SELECT json_scalar(1)
SELECT * FROM json_table('[1,2]', '$[*]' COLUMNS (x int PATH '$')) j
SELECT '[1,2]' IS JSON
SELECT any_value(x) FROM (VALUES (1)) v(x)
SELECT array_sample(ARRAY[1,2,3], 0), array_shuffle(ARRAY[1])
SELECT random(1, 1), erf(1.0), uuid_extract_version('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')
SELECT ('x', 1)::text, (ROW(1,2)).f1
SELECT ctid
SELECT 1 a, 2 b ORDER BY a + b
SELECT cast(null as int), null::text, null
SELECT ''::int
SELECT ''::date
SELECT ''::numeric
SELECT '1,000'::numeric
SELECT '1 000'::int
SELECT 1.5::int::text || '%'
SELECT (1.0 * 100 / 3)::numeric(10,2) || '%'
SELECT round(100.0 * 1 / 3, 1), round(1::float8 / 3, 2)
SELECT substring('2024-05-06', 1, 4)::int + 1
SELECT to_date('2024-06', 'YYYY-MM'), to_date('6/7/24', 'MM/DD/YY'), to_timestamp('2024-01-01 10:00:00.123', 'YYYY-MM-DD HH24:MI:SS.MS')
SELECT sum(x * 1.0) / count(*) FROM generate_series(1,4) x
SELECT date_part('epoch', timestamptz '2024-01-01 00:00:00+00')::bigint
SELECT xmlparse(document '<a/>'), xmlforest(1 as a), xmlconcat('<a/>', '<b/>')
SELECT query_to_xml('select 1', true, false, '')
SELECT timestamp '2024-01-01 24:00:00'
SELECT date 'epoch', timestamp 'epoch', date 'today' = current_date, date 'tomorrow' - date 'yesterday'
SELECT 'now'::timestamp IS NOT NULL, 'allballs'::time
SELECT '[1000000000:1000000001]={1,2}'::int[]
SELECT array_append('[2:3]={1,2}'::int[], 9), array_cat('[0:1]={1,2}'::int[], array[5]), array_prepend(0, '[5:6]={1,2}'::int[])
SELECT '[-2:0]={1,2,3}'::int[] || 4, ('[-2:0]={1,2,3}'::int[])[-1]
SELECT corr(x, y) FROM (VALUES (1.0::float8,'NaN'::float8),(2,3)) v(x,y)
SELECT jsonb_exists_all('{"a":1}', NULL), '{"a":1}'::jsonb ?& array['a',NULL], '{"a":1}'::jsonb ?| array[NULL]::text[]
SELECT int4range(1, 5, NULL)
SELECT int4range(1, 5, 'x'), int4range(NULL, 5), numrange(NULL, NULL, '[]')
SELECT avg()
SELECT max()
SELECT string_agg('a')
SELECT sum(*)
SELECT to_json(NULL), to_jsonb(NULL::text), json_build_object('a', NULL), row_to_json(NULL)
SELECT json_object_agg(k, v) FROM (VALUES (NULL, 1)) t(k,v)
SELECT json_object_agg(x, x) FROM generate_series(1,2) x
SELECT json_object_agg(ROW(1,2), 1)
SELECT jsonb_object_agg(NULL, 1)
SELECT ntile(NULL) OVER (), ntile(3) OVER () FROM generate_series(1,2)
SELECT ntile(0) OVER () FROM generate_series(1,2)
SELECT lag(x, -1) OVER (ORDER BY x), lead(x, NULL) OVER (ORDER BY x) FROM generate_series(1,2) x
SELECT nth_value(x, 0) OVER (ORDER BY x) FROM generate_series(1,2) x
SELECT first_value(x) OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) FROM generate_series(1,3) x
SELECT sum(x) OVER (ORDER BY x ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING EXCLUDE TIES) FROM generate_series(1,3) x
SELECT sum(x) OVER (ORDER BY x GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (VALUES (1),(1),(2),(3)) v(x)
SELECT sum(x) OVER (ROWS -1 PRECEDING) FROM generate_series(1,3) x
SELECT array_agg(x) OVER (ORDER BY d RANGE BETWEEN '1 day' PRECEDING AND CURRENT ROW) FROM (VALUES (1, date '2024-01-01'),(2, date '2024-01-02'),(3, date '2024-01-05')) v(x,d)
SELECT count(*) OVER (PARTITION BY a ORDER BY b) AS c, a, b FROM (VALUES (1,2),(1,1),(2,3)) v(a,b) ORDER BY a, b
SELECT rank() OVER (ORDER BY sum(x) DESC), x % 2 FROM generate_series(1,5) x GROUP BY x % 2 ORDER BY 1
SELECT row_number() OVER w FROM generate_series(1,2) x WINDOW w AS (ORDER BY y)
SELECT sum(x) OVER nosuch FROM generate_series(1,2) x
SELECT x FROM generate_series(1,2) x WHERE row_number() OVER () = 1
SELECT x FROM generate_series(1,2) x WHERE sum(x) > 1
SELECT sum(x) OVER (ORDER BY sum(x)) FROM generate_series(1,2) x
SELECT percentile_cont(array[0.25,0.5,0.75]) WITHIN GROUP (ORDER BY x) FROM generate_series(1,10) x
SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY x) FROM generate_series(1,10) x
SELECT rank(3) WITHIN GROUP (ORDER BY x), dense_rank(3) WITHIN GROUP (ORDER BY x), cume_dist(3) WITHIN GROUP (ORDER BY x), percent_rank(3) WITHIN GROUP (ORDER BY x) FROM generate_series(1,5) x
SELECT string_agg(x::text, ',' ORDER BY x DESC) FILTER (WHERE x > 1) FROM generate_series(1,4) x
SELECT string_agg(DISTINCT x, ',' ORDER BY y) FROM (VALUES ('a',1)) v(x,y)
SELECT array_agg(ARRAY[x, x+1]) FROM generate_series(1,2) x
SELECT array_agg(x) FROM (VALUES (ARRAY[1]),(ARRAY[1,2])) v(x)
SELECT min(ARRAY[x]), max(ROW(x)::text) FROM generate_series(1,2) x
SELECT range_agg(int4range(x, x+2)), range_intersect_agg(int4range(x, x+5)) FROM generate_series(1,3) x
SELECT stddev(x) FROM (VALUES (1)) v(x)
SELECT avg(x), sum(x) FROM (VALUES (interval '1 day'), (interval '3 hours')) v(x)
SELECT avg(x::real), sum(x::real), sum(x::smallint), avg(x::smallint), sum(x::bigint) FROM generate_series(1,3) x
SELECT sum(x::money) FROM generate_series(1,3) x
SELECT max(x), min(x) FROM (VALUES ('10.0.0.1'::inet),('9.0.0.1')) v(x)
SELECT bool_and(NULL), every(NULL::bool), count(NULL)
SELECT regr_count(y,x), regr_r2(y,x), regr_intercept(y,x), regr_avgx(y,x), regr_sxx(y,x), regr_sxy(y,x) FROM (VALUES (1,2),(2,4),(3,7)) v(x,y)
SELECT GROUPING(x), x, count(*) FROM generate_series(1,2) x GROUP BY GROUPING SETS ((x), ()) ORDER BY 1, 2
SELECT x, y FROM (VALUES (1,2)) v(x,y) GROUP BY x
SELECT x AS y FROM generate_series(1,2) x GROUP BY y
SELECT count(*) AS n FROM generate_series(1,2) x HAVING n > 1
SELECT DISTINCT x FROM generate_series(1,3) x ORDER BY x + 1
SELECT DISTINCT x % 2 AS p FROM generate_series(1,4) x ORDER BY p
SELECT x FROM generate_series(1,3) x UNION SELECT 9 ORDER BY x + 1
SELECT x FROM generate_series(1,3) x ORDER BY nosuch
SELECT 1 AS a, 2 AS a ORDER BY a
(SELECT 1 ORDER BY 1 LIMIT 1) UNION ALL (SELECT 2) ORDER BY 1 DESC
SELECT NULL UNION SELECT 1
SELECT NULL UNION SELECT NULL UNION SELECT 1
SELECT '1' UNION SELECT 2
SELECT 1 INTERSECT ALL SELECT 1
SELECT 1 EXCEPT ALL SELECT 1
VALUES (1),(2) UNION VALUES (2),(3) ORDER BY 1
SELECT * FROM (VALUES (1,2),(3,4)) AS t(a,b) CROSS JOIN (VALUES ('x')) u
SELECT * FROM generate_series(1,2) a JOIN generate_series(2,3) b ON true
SELECT * FROM generate_series(1,2) a JOIN generate_series(2,3) b
SELECT * FROM generate_series(1,2) a(x) JOIN generate_series(2,3) b(y) USING (x)
SELECT * FROM generate_series(1,2) a(x) RIGHT JOIN generate_series(2,3) b(x) USING (x)
SELECT a.*, b.* FROM generate_series(1,2) a(x) JOIN generate_series(2,3) b(x) USING (x)
SELECT * FROM (SELECT 1 AS a) x, LATERAL (SELECT x.a + 1 AS b) y, LATERAL (SELECT y.b * 2) z(c)
SELECT * FROM unnest(array[1,2]) WITH ORDINALITY
SELECT * FROM jsonb_each('{"a":1}') WITH ORDINALITY AS t(k, v, n)
SELECT * FROM json_to_record('{"a":1}')
SELECT * FROM regexp_matches('a1b2', '([a-z])(\d)', 'g') AS m
SELECT m[1] FROM regexp_matches('a1b2', '([a-z])(\d)', 'g') AS m
SELECT * FROM string_to_table('a,b', ',') WITH ORDINALITY x(v, n) WHERE n = 2
SELECT * FROM upper('x'), lower('Y') AS l
SELECT (jsonb_each('{"a":1,"b":2}')).*
SELECT (jsonb_each_text('{"a":1,"b":2}')).value
SELECT jsonb_array_elements('[1,2]')::int + 1
SELECT jsonb_array_elements('{"a":1}')
SELECT jsonb_array_elements('[1,2]') WHERE false
SELECT CASE WHEN true THEN generate_series(1,2) END
SELECT coalesce(generate_series(1,2), 0)
SELECT generate_series(1,2) + generate_series(10,11), 5
SELECT generate_series(1,2) LIMIT 1
SELECT x FROM generate_series(1,3) x WHERE generate_series(1,2) = 1
SELECT ROW(1,2,3) = ROW(1,2), 1
SELECT ROW(1,2) < ROW(1,'a')
SELECT (1,2) IS DISTINCT FROM (1,3), (1,'a') = (1,'a'), (NULL,1) = (NULL,1)
SELECT (1,2) = (SELECT 1,2), (1,2) = ANY (SELECT 1,2), (1,2) NOT IN (VALUES (1,3))
SELECT 1 = ALL (SELECT generate_series(1,2)), 1 = ANY (SELECT NULL::int)
SELECT 1 IN (SELECT 1,2)
SELECT (1,2) IN (SELECT 1)
SELECT ARRAY[1,2] = ANY (ARRAY[[1,2]])
SELECT 1 = ANY (1)
SELECT 1 = ANY ('a')
SELECT 1 + ANY(ARRAY[1])
SELECT 'abc' LIKE ANY (ARRAY['a%', 'b%']), 'abc' NOT LIKE ALL (ARRAY['x%'])
SELECT 'abc' LIKE 'a\'
SELECT 'abc' LIKE 'a%' ESCAPE 'xx'
SELECT 'abc' ~ '[', 'abc' ~ '*'
SELECT regexp_replace('aaa', 'a', 'b', 2), regexp_replace('aaa', 'a', 'b', 1, 2), regexp_replace('aaa', 'a', '\&\&', 'g')
SELECT regexp_replace('hello world', '(\w+) (\w+)', '\2 \1'), regexp_replace('abc', '(?i)B', 'x'), regexp_replace('abc', '', '-', 'g')
SELECT (regexp_match('key=value', '(\w+)=(\w+)'))[2]
SELECT regexp_split_to_array('abc', ''), regexp_split_to_array('', ','), string_to_array('abc', NULL), string_to_array('', ',')
SELECT array_to_string(ARRAY[[1,2],[3,4]], ','), array_to_string('{}'::int[], ','), array_to_string(ARRAY[NULL], ',')
SELECT substring('hello' from 10), substring('hello', 0, 3), substring('hello' for 2), substring('hello', -5)
SELECT overlay('abcdef' placing 'X' from 3), overlay('abc' placing 'X' from 0)
SELECT translate('abc', 'ab', ''), initcap('o''neil mc-donald 3rd'), ascii(''), ascii('é')
SELECT format('%1$s %1$s %2$s', 'a', 'b'), format('%3$s', 'a'), format('%s', NULL), format('%I', NULL)
SELECT format('%L', NULL), format('%L', 'a\b'), format('%*s|', 5, 'x'), format('%-*s|', 5, 'x'), format('abc')
SELECT format('%s', ARRAY[1,2]), format('%s', true), format('%I', 'a"b'), format(NULL), format('%')
SELECT concat(), concat_ws(NULL, 'a'), concat(ARRAY[1,2], ROW(1,2)), concat(1.0, date '2024-01-01')
SELECT quote_literal(E'a\\b'), quote_ident('a"b'), quote_ident(''), quote_nullable(1.5)
SELECT encode(sha256('a'), 'hex'), encode('\x00ff41'::bytea, 'escape'), decode('a', 'hex')
SELECT decode('abc', 'nosuch'), 1
SELECT encode(repeat('a', 100)::bytea, 'base64')
SELECT chr(-1)
SELECT chr(1114112)
SELECT length('abc'::char(5)), 'abc'::char(5) || 'x', octet_length('abc'::char(5)), 'a '::char(2) = 'a'
SELECT 'abc'::name, 'ab'::bpchar, 'toolong'::varchar(3) || '!', 'x'::varchar(0)
SELECT 'a'::text COLLATE "C" || 'b', 'a' < 'B' COLLATE "C", 'a' COLLATE nosuch
SELECT 'é' > 'f', 'a' < 'B', 'A' < 'a'
SELECT to_char(1234.5, 'FM9G999D00'), to_char(-5, '9PR'), to_char(5, 'PL9'), to_char(5, 'SG9'), to_char(-5, '9SG')
SELECT to_char(0.1, '.99'), to_char(0, '.99'), to_char(1e10, '9EEEE'), to_char(123, '9.99EEEE'), to_char(12, 'FM0009')
SELECT to_char(123456, '999G999'), to_char(3999, 'FMRN'), to_char(4000, 'RN'), to_char(12, 'rn'), to_char(1, 'FM9th'), to_char(22, '99TH')
SELECT to_char(1.5, '"value: "9.9'), to_char(5, '\9'), to_char(5, ''), to_char(NULL::int, '9')
SELECT to_char('NaN'::float8, '999'), to_char('Infinity'::float8, '999.9'), to_char(123.456::real, '9999.9999')
SELECT to_char(100, '9') , to_char(99.99, '99.9'), to_char(-0.01, '9.9'), to_char(1e20::float8, '9')
SELECT to_char(timestamp '2024-03-05 00:07:09', 'HH12:MI:SS AM'), to_char(timestamp '2024-03-05 14:07', 'HH24MI'), to_char(timestamp '2024-03-05', 'Dy D ID Mon mon MON RM')
SELECT to_char(timestamp '2024-03-05 14:07:09.9', 'SSSS MS FF3 FF6 SSSSS'), to_char(timestamp '2024-03-05', '"Year:" YYYY, YY Y,YYY')
SELECT to_char(timestamptz '2024-03-05 14:07+00', 'TZ OF tz TZH:TZM'), to_char(timestamp '2024-03-05', 'DDth ddTH'), to_char(date '2024-03-05', 'FMMM/FMDD/YYYY')
SELECT to_char(interval '-1 day 2 hours', 'DD HH24'), to_char(interval '1 year 2 months', 'YYYY MM'), to_char(interval '36 hours', 'HH12')
SELECT to_date('2024 123', 'YYYY DDD'), to_date('24-W10-3', 'IY-"W"IW-ID'), to_date('March 5, 2024', 'Month DD, YYYY')
SELECT to_date('2024-1-1', 'YYYY-MM-DD'), to_date('1/1/2024', 'DD/MM/YYYY'), to_date('20241301', 'YYYYMMDD')
SELECT to_timestamp('2024-01-01 13:00 PM', 'YYYY-MM-DD HH12:MI AM')
SELECT to_timestamp('1700000000', 'SSSS')
SELECT to_number('1,234', '9,999'), to_number('-12.5', 'S99.9'), to_number('12.5abc', '99.9'), to_number('abc', '999')
SELECT to_number('XIV', 'RN')
SELECT extract(epoch from date '2024-01-01'), extract(timezone from timestamptz '2024-01-01 00:00+00'), extract(microseconds from interval '1.5 seconds')
SELECT extract(year from interval '14 months'), extract(month from interval '14 months'), extract(quarter from interval '14 months')
SELECT extract(dow from interval '1 day')
SELECT extract(day from time '10:00')
SELECT extract(year from '2024-01-01')
SELECT date_part('year', '2024-01-01')
SELECT date_part('week', date '2024-12-30'), date_part('doy', date '2024-12-31'), date_part('isodow', date '2024-12-29')
SELECT date_trunc('year', date '2024-05-05'), date_trunc('century', timestamp '2024-01-01'), date_trunc('millennium', timestamp '2024-01-01')
SELECT date_trunc('month', '2024-05-05')
SELECT date_trunc('day', time '10:00')
SELECT date_trunc('week', interval '10 days')
SELECT date_bin('1 month', timestamp '2024-01-01', timestamp '2020-01-01')
SELECT date_bin('0 days', timestamp '2024-01-01', timestamp '2020-01-01')
SELECT now()::date - interval '1 day' < now(), now()::time IS NOT NULL
SELECT timestamp '2024-01-01' AT TIME ZONE 'nosuch/zone'
SELECT timestamptz '2024-01-01 00:00:00 America/New_York', timestamptz '2024-07-01 12:00 EST', timestamp '2024-07-01 12:00+05'
SELECT timestamp '2024-01-01' AT TIME ZONE interval '-08:00', timestamp '2024-03-10 02:30' AT TIME ZONE 'America/New_York'
SELECT time '10:00' AT TIME ZONE 'UTC', timetz '10:00+02' AT TIME ZONE 'UTC'
SELECT interval '1 day' = interval '24 hours', interval '1 mon' - interval '30 days', interval '1 day' / 0
SELECT interval '1 year -1 day', interval '-1 year 2 mons', interval '1:2:3', interval '100 seconds', interval '1.5 hours', interval '1 day 25 hours'
SELECT interval '1 microsecond', interval '1 ms', interval '1 century', interval '1 decade 2 y', interval '3 h 2 m', interval '@ 1 minute ago'
SELECT interval '99999999999 years'
SELECT interval '1' year, interval '1 2:03:04' day to second, interval '1.234567' second(2), interval(0) '1.7 seconds'
SELECT justify_days(interval '365 days'), interval '2 days' * 1.5, interval '1 month' / 2, 0.5 * interval '1 day'
SELECT age(timestamp '2024-01-01', timestamp '2024-02-01'), age(timestamp '2000-01-31', timestamp '2000-03-01')
SELECT date '2024-01-01' - timestamp '2023-12-31 12:00', timestamp '2024-01-01' - date '2023-01-01'
SELECT date 'infinity' - date '2024-01-01'
SELECT timestamp 'infinity' - interval '1 day', timestamp 'infinity' > now()::timestamp
SELECT '2024-01-01T10:00:00Z'::timestamptz, '2024-01-01 10:00:00.123456789'::timestamp, '2024-01-01 10:00 AM'::timestamp, '2024-1-5'::date
SELECT '01/02/2024'::date, '13/02/2024'::date
SELECT '2024-W10'::date
SELECT '20240101'::date, '2024.01.01'::date, '1-Jan-2024'::date, 'Jan-01-2024'::date, '2024-Jan-01'::date, 'J2451187'::date
SELECT '10:30:45.123456'::time(3), '10'::time
SELECT timestamp(3) '2024-01-01 10:00:00.123456', CAST('2024-01-01' AS timestamp with time zone), '2024-01-01'::timestamp without time zone
SELECT 1::bit, 3::bit(2), B'101'::bit(2), B'101' | B'1'
SELECT get_bit(B'101', 0), set_bit(B'101', 1, 1), bit_count(B'1011'), overlay(B'1111' placing B'00' from 2), substring(B'10110' from 2 for 2), position(B'11' in B'0110')
SELECT X'1F'::int, X'FFFFFFFF'::int, (-1)::bit(8)
SELECT '$5.00'::money + '$3'::money, '-$5'::money, '(5)'::money, 5::money, 1.005::numeric::money, '5'::money::numeric
SELECT 'abc'::money
SELECT '92233720368547758.08'::money
SELECT inet '10.1.2.3/16' & inet '255.0.0.0', ~ inet '10.0.0.1', netmask('10.1.2.3/16'), hostmask('10.1.2.3/16'), abbrev(cidr '10.0.0.0/8'), set_masklen(inet '10.1.2.3', 8), inet_same_family('::1','10.0.0.1'), inet_merge('10.0.0.1','10.0.1.1')
SELECT '10.0.0.1/33'::inet
SELECT '10.0.0.1/8'::cidr
SELECT '::ffff:1.2.3.4'::inet, '2001:db8::/32'::cidr, text(inet '10.0.0.1'), inet '10.0.0.1'::text
SELECT macaddr '08-00-2b-01-02-03', macaddr8 '0800.2b01.0203', trunc(macaddr '08:00:2b:01:02:03'), '08:00:2b:01:02:zz'::macaddr
SELECT 'a0eebc999c0b4ef8bb6d6bb9bd380a11'::uuid < 'b0eebc999c0b4ef8bb6d6bb9bd380a11'::uuid, gen_random_uuid()::text ~ '^[0-9a-f-]{36}$'
SELECT circle '((0,0),2)', box '(1,1),(0,0)', lseg '[(0,0),(1,1)]', path '((0,0),(1,1))', area(circle '((0,0),1)'), line '{1,2,3}'
SELECT '(1,2,3)'::point
SELECT '[1,5]'::int4range, '(1,5)'::int4range, '[1.0,2.0]'::numrange, '["2024-01-01 00:00","2024-01-02"]'::tsrange, 'empty'::int4range
SELECT int4range(1,3) + int4range(5,6)
SELECT int4range(1,10) - int4range(3,5)
SELECT int4multirange(int4range(1,3), int4range(2,8)), unnest('{[1,3),[5,8)}'::int4multirange), lower('{[1,3),[5,8)}'::int4multirange)
SELECT int4range(1,5) << int4range(6,7), int4range(1,5) &< int4range(3,9), 3 <@ int4range(1,5), int4range(1,5) = '[1,4]'::int4range
SELECT '[5,1]'::int4range
SELECT '[1,2'::int4range
SELECT jsonb_path_query('{"a":[{"b":1},{"b":2}]}', '$.a[*] ? (@.b > 1).b'), jsonb_path_query('{"a":1}', 'strict $.b', silent => true)
SELECT jsonb_path_query('{"a":1}', 'strict $.b')
SELECT jsonb_path_query('["abc","xyz"]', '$[*] ? (@ like_regex "^A" flag "i")'), jsonb_path_query('[1,2]', '$[last]'), jsonb_path_query('{"a":{"b":1}}', '$.**.b')
SELECT jsonb_path_query('"2024-01-01"', '$.datetime()'), jsonb_path_query('[1,-2]', '$[*].abs()'), jsonb_path_query('{"x":1}', '$.keyvalue()')
SELECT jsonb_path_query('[1,2,3]', '$[0 to 1]'), jsonb_path_query('1', '$ + 1'), jsonb_path_query('"1.5"', '$.double()'), jsonb_path_match('{"a":1}', '$.a == 1')
SELECT jsonb_path_query_array('{"a":[1,2,null]}', '$.a[*] ? (@ != null)'), jsonb_path_exists('{"a":1}', '$.b')
SELECT '$.a ? (@ > '::jsonpath
SELECT '$.a[*] ? (@.b == "x" && exists(@.c))'::jsonpath
SELECT jsonb_set('{"a":{"b":1}}', '{a,c}', '2'), jsonb_set('[1,2]', '{-1}', '9'), jsonb_set('[1]', '{5}', '2'), jsonb_set('1', '{a}', '2')
SELECT jsonb_set_lax('{"a":1}', '{a}', NULL, true, 'delete_key'), jsonb_insert('[1,2]', '{0}', '0', true), jsonb_insert('{"a":1}', '{a}', '2')
SELECT '[1,2]'::jsonb || '{"a":1}', '{"a":1}'::jsonb || '1', '"a"'::jsonb || '"b"', 'null'::jsonb || '[]'
SELECT '["a","b"]'::jsonb - 'a', '{"a":1,"b":2}'::jsonb - array['a','b'], '[1,2]'::jsonb - 5, '1'::jsonb - 'a'
SELECT '{"a":[1,2]}'::jsonb @> '{"a":[2]}', '[1,2]'::jsonb @> '1', '{"a":{}}'::jsonb @> '{"a":{}}', '[[1]]'::jsonb @> '[1]'
SELECT '{"a":1}'::jsonb < '{"a":2}', '[1]'::jsonb > '{}', '1'::jsonb = '1.0', '"a"'::jsonb < '1'
SELECT '{"a": 1.10, "b": 1e3, "c": "\u00e9"}'::jsonb, '{"a": 1.10, "b": 1e3}'::json, '"\u0000"'::json
SELECT '"\u0000"'::jsonb
SELECT '{"a":1,}'::json
SELECT '[1,2'::json
SELECT '01'::json
SELECT 'nul'::json
SELECT ''::json
SELECT '{"a" 1}'::jsonb
SELECT '{1:2}'::jsonb
SELECT '"abc'::json
SELECT '1 2'::json
SELECT json_build_object('a')
SELECT json_build_object(NULL, 1)
SELECT json_object('{a,b,c}')
SELECT json_object('{{a,1},{b,2}}'), json_object('{a,NULL}'::text[])
SELECT jsonb_build_array(), jsonb_build_object(), json_build_array(ARRAY[1,2], ROW(1,2), now() IS NULL, '1'::json)
SELECT row_to_json(t) FROM (VALUES (1,'a')) t(x,y)
SELECT json_agg(t) FROM (VALUES (1,'a'),(2,'b')) t(x,y)
SELECT jsonb_agg(t) FROM (VALUES (1,'a')) t(x,y)
SELECT to_json(ARRAY[ROW(1,2)]), to_jsonb(ROW(1,'x')), to_jsonb(1.10), to_json('NaN'::float8), to_json('infinity'::timestamp)
SELECT json_array_elements('{}')
SELECT jsonb_object_keys('[]')
SELECT ('{"a":[1,2]}'::json -> 'a') ->> 0, '{"a":null}'::json ->> 'a', '{"a":null}'::jsonb -> 'a', '[]'::json -> 0
SELECT ('[1,2]'::jsonb)[0], ('{"a":1}'::jsonb)['b'], ('{"a":1}'::json)['a']
SELECT '{"a":"5"}'::jsonb ->> 'a' + 1
SELECT ('{"a":"5"}'::jsonb ->> 'a')::int + 1, ('{"a":5}'::jsonb -> 'a')::int, ('{"a":5.5}'::jsonb -> 'a')::int
SELECT '{"a":5}'::jsonb -> 'a' = '5', '{"a":5}'::jsonb ->> 'a' = '5'
SELECT jsonb_typeof(NULL), json_typeof('"x"'), jsonb_strip_nulls('{"a":[null,{"b":null}]}')
SELECT jsonb_pretty('{"a":{"b":[]},"c":{}}')
SELECT '{"a":1}' IS JSON OBJECT, '[1]' IS JSON ARRAY, '1' IS JSON SCALAR, '{"a":1,"a":2}' IS JSON WITH UNIQUE KEYS, 'x' IS NOT JSON
SELECT JSON_QUERY('{"a":[1]}', '$.a'), JSON_EXISTS('{"a":1}', '$.a')
SELECT U&'\0041\+000042', U&'\zz'
SELECT E'\xZZ', E'\101', E'\q', E'\u12'
SELECT E'\0'
SELECT 'a' -- trailing
SELECT 'abc' 'def'
SELECT $abc$x$abc$, $1a$
SELECT 1e, 2
SELECT 1.2.3
SELECT 12abc
SELECT 0x, 1
SELECT 1__0
SELECT a.b.c.d.e
SELECT "A"."b"
SELECT *, 1
SELECT t.* FROM generate_series(1,2) s
SELECT count(*) FILTER (WHERE sum(1) > 1)
SELECT upper(DISTINCT 'a')
SELECT upper('a') OVER ()
SELECT upper('a' ORDER BY 1)
SELECT lower(VARIADIC ARRAY['a'])
SELECT concat(VARIADIC ARRAY['a','b']), format('%s-%s', VARIADIC ARRAY['x','y']), json_build_array(VARIADIC '{1,2}'::int[])
SELECT make_date(year => 2024, month => 1, day => 2), make_date(2024, day => 2, month => 1)
SELECT make_interval(1, 2, 3, 4, 5, 6, 7.5), make_interval(years => 1, secs => 0.5), make_timestamptz(2024,1,1,0,0,0,'Europe/Paris')
SELECT power(2), abs()
SELECT abs('-5'), abs('x')
SELECT round('1.5'), round(1.5, 'x')
SELECT mod(5.5, 2), mod(-5, 3), -5 % 3, 5 % -3, mod(5, 0)
SELECT 2 ^ 3 ^ 2, -2 ^ 2, 2 * 3 + 4 % 3, NOT 1 = 2, 1 < 2 = true
SELECT 1 < 2 < 3
SELECT - - 5, + 5, @ -5, !! 5
SELECT 10 / 3.0, 10::numeric / 4, 1 / 3::float8, 1e0 / 3, 5 / 2::smallint, 7::bigint / 2
SELECT 0.00001::numeric, 1e-20::numeric, 1e20::numeric, 123456789012345678901234567890.123, -0.0, 1.10 + 1.1, 1.10 * 1.1
SELECT sqrt(2::numeric), exp(1::numeric), ln(10::numeric), 2::numeric ^ 0.5, 10::numeric ^ -2, log(10::numeric), power(0, 0), power(0, -1)
SELECT power(-8, 1.0/3)
SELECT 1e308::float8 + 1e308::float8
SELECT exp(1000), exp(1000.0)
SELECT exp(1000::float8)
SELECT log(-1)
SELECT log(0.0)
SELECT acos(2)
SELECT factorial(-1)
SELECT factorial(25), factorial(0), gcd(0,0), lcm(0, 5), gcd(12.5, 2.5)
SELECT (-32768)::int2 / -1::int2
SELECT abs((-2147483648)::int)
SELECT -(-9223372036854775808)::bigint
SELECT 2147483648::int
SELECT 'NaN'::numeric::int
SELECT 1e10::float8::int
SELECT 'Infinity'::float8::int
SELECT 40000::int2, 1
SELECT 1.5::int2, 2.5::int2, '1.5'::float4::int, 0.5::float8::int, 1.5::float8::int
SELECT 'NaN'::float8 = 'NaN'::float8, 'NaN'::float8 > 'Infinity'::float8, 'Infinity'::float8 - 'Infinity'::float8, -'Infinity'::float8
SELECT 0.1::real, 0.1::real::float8, 1.1::real * 1.1::real, 16777217::real, 1e-5::real, 123456789::real, 3.4e38::real * 10
SELECT 1e-10::float8, 123456789012345680::float8, 0.1::float8 * 3, 1/3.0::float8, 1e21::float8, 1e-4::float8, 100::float8
SELECT trunc(-1.5), trunc(1.999, 2), round(1234.567, -2), round(-0.5), round(0.5::float8), round(1.5::float8), ceil(1.1::float8), ceiling(-1.5), sign(0.0), sign(-2)
SELECT width_bucket(5, 1, 10, 0), 1
SELECT width_bucket(5.0, 10.0, 1.0, 5), width_bucket(0, 1, 10, 5), width_bucket(3, ARRAY[1,3,5])
SELECT 1::int8 + 1::int2, 1::int2 + 1::int2, 1 + 1.0, 1 + 1.0::float4, 1.0 + 1.0::float8, 1::numeric + 1::float4
SELECT pg_typeof(1::int2 + 1::int2), pg_typeof(sum(1)), pg_typeof(avg(1)), pg_typeof(1/2.0), pg_typeof(round(1.5)), pg_typeof(ceil(1)), pg_typeof(sum(1::bigint))
SELECT pg_typeof('a' || 'b'), pg_typeof(ARRAY['a']), pg_typeof(ROW(1)), pg_typeof(current_date), pg_typeof(interval '1 day' * 2), pg_typeof(CASE WHEN true THEN 1 ELSE 2.0 END)
SELECT pg_typeof(coalesce(1, 2::bigint)), pg_typeof(greatest(1, 2.0)), pg_typeof('1' + 1), pg_typeof(extract(year from now())), pg_typeof(date_part('year', now())), pg_typeof(date_trunc('day', now()))
SELECT nullif(1, 'a')
SELECT nullif('a', 1)
SELECT greatest('a', 1)
SELECT greatest()
SELECT coalesce()
SELECT CASE 1 WHEN 'a' THEN 1 END
SELECT CASE WHEN 'x' THEN 1 END
SELECT CASE END
SELECT CASE WHEN true THEN 1 ELSE 2
SELECT CASE WHEN 1=0 THEN 1/0 ELSE 5 END
SELECT CASE WHEN x = 0 THEN 0 ELSE 10 / x END FROM (VALUES (0),(2)) v(x)
SELECT CAST('a' AS nosuch(3))
SELECT CAST(1 AS)
SELECT 1::
SELECT 1::int::nosuch
SELECT 1::varchar(0)
SELECT 1.5::numeric(1,5)
SELECT 1::numeric(2000)
SELECT 1::bit(0)
SELECT '1'::int(4)
SELECT 1::float(60)
SELECT 1::float(10), 1::float(30), pg_typeof(1::float(10))
SELECT '2024-01-01'::date::int
SELECT true::numeric
SELECT 1::bytea
SELECT 'a'::json::int
SELECT ARRAY[1,2]::text[], ARRAY['1','2']::int[], '{1,2}'::int[]::text, ARRAY[1.5]::int[]
SELECT ARRAY[1,2]::int
SELECT ARRAY[[1,2],[3]]
SELECT ARRAY[1,2][1]
SELECT (ARRAY[1,2])['a']
SELECT (5)[1]
SELECT (ARRAY[[1,2],[3,4]])[1], (ARRAY[[1,2],[3,4]])[2][1], (ARRAY[[1,2],[3,4]])[1:1][1:2], (ARRAY[1,2,3])[:2], (ARRAY[1,2,3])[2:]
SELECT array_fill(1, ARRAY[-1])
SELECT array_fill(1, NULL)
SELECT array_length(1, 1)
SELECT array_position(ARRAY[1,2,3], 2, 3), array_position(ARRAY[1,NULL], NULL), array_positions(ARRAY[1,NULL,NULL], NULL)
SELECT array_cat(ARRAY[1], ARRAY['a'])
SELECT ARRAY[1] || ARRAY[[2]]
SELECT ARRAY[[1,2]] || ARRAY[3,4], ARRAY[[1]] || ARRAY[[2]], ARRAY[1] || NULL::int, NULL::int[] || 1, ARRAY[]::int[] || ARRAY[1]
SELECT ARRAY[1,2] || 'x'
SELECT ARRAY[1,2] || '{3}'
SELECT ARRAY[1,2] @> 1
SELECT ARRAY[1,2] + 1
SELECT ARRAY['a','b'] && ARRAY['b'], ARRAY[]::int[] <@ ARRAY[1], ARRAY[1,NULL] @> ARRAY[NULL]::int[]
SELECT unnest(ARRAY[[1,2],[3,4]])
SELECT unnest('{}'::int[])
SELECT unnest(NULL::int[])
SELECT unnest(1)
SELECT array_agg(NULL), array_agg(x) FROM (SELECT 1 AS x WHERE false) t
SELECT array_to_json(ARRAY[1,2], true), array_remove(ARRAY[1,NULL], NULL), array_replace(ARRAY[1,NULL], NULL, 5), array_dims('{}'::int[])
SELECT array_ndims(NULL::int[]), cardinality('{}'::int[]), array_upper(ARRAY[1], 2), trim_array(ARRAY[1,2], 3)
SELECT $1::date - $2::date -- P: 2024-03-01 | 2024-02-01
SELECT $1::text || $2 -- P: a | b
SELECT substr($1, $2, $3) -- P: hello | 2 | 3
SELECT concat($1, $2) -- P: a | b
SELECT format($1, $2) -- P: %s! | x
SELECT to_char($1::numeric, $2) -- P: 1234.5 | 9,999.99
SELECT date_trunc($1, $2::timestamp) -- P: month | 2024-05-17
SELECT $1 > 5 AND $2 -- P: 6 | true
SELECT greatest($1, 3) -- P: 4
SELECT nullif($1, '') -- P: 
SELECT $1 -- P: NULL
SELECT ARRAY[$1, 2] -- P: 1
SELECT ARRAY[$1, $2] -- P: a | b
SELECT $1 || $2 -- P: a | b
SELECT $2 -- P: a | b
SELECT $1::int / $2::int -- P: 1 | 0
SELECT $1 * 2.5 -- P: 4
SELECT $1 * interval '1 day' -- P: 2
SELECT current_date + $1 > current_date -- P: 1
SELECT current_timestamp - $1::interval < now() -- P: 1 day
SELECT extract(epoch from $1) -- P: 2024-01-01
SELECT length($1) -- P: abc
SELECT jsonb_build_object('a', $1) -- P: x
SELECT jsonb_build_object('a', $1::text) -- P: x
SELECT $1::jsonb @> $2 -- P: {"a":1} | {"a":1}
SELECT $1 = 1 OR $1 = 2 -- P: 2
SELECT $1 = 1 OR $1 = 'a' -- P: 2
SELECT -$1 -- P: 1
SELECT NOT $1 -- P: true
SELECT $1 IS NULL -- P: a
SELECT $1 LIKE $2 -- P: abc | a%
SELECT $1 ~ $2 -- P: abc | b
SELECT sum($1) -- P: 5
SELECT max($1) -- P: 5
SELECT count($1) -- P: 5
SELECT $1 FROM generate_series(1, 2) -- P: z
SELECT x FROM generate_series(1, 5) x WHERE x = $1 -- P: 3
SELECT x FROM generate_series(1, 5) x WHERE x = ANY($1) -- P: {2,4}
SELECT x FROM generate_series(1, 5) x WHERE x IN ($1, $2) -- P: 2 | 4
SELECT x FROM generate_series(1, 5) x OFFSET $1 -- P: 3
SELECT * FROM unnest($1::int[], $2::text[]) AS t(a, b) -- P: {1,2} | {x,y}
VALUES ($1::int, $2) -- P: 1 | a
SELECT $1 UNION SELECT 1 -- P: 2
WITH t(a) AS (SELECT $1::int) SELECT a + $2 FROM t -- P: 1 | 2
SELECT coalesce($1, $2) -- P: NULL | b
SELECT coalesce($1::int, $2) -- P: NULL | 4
SELECT ROW($1, $2) = ROW(1, 'a') -- P: 1 | a
SELECT $1::uuid = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' -- P: a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11
SELECT $1::numeric -- P: abc
SELECT $1::date -- P: 2024-02-30
SELECT lower($1) = 'a' -- P: A
SELECT abs($1) -- P: -5
SELECT make_interval(days => $1) -- P: 5
SELECT position($1 in $2) -- P: b | abc
SELECT trim($1) -- P:  a 
SELECT json_agg($1) -- P: a
SELECT array_agg($1::int) -- P: 1
SELECT $0
SELECT $1 + 'a'::text -- P: 1
SELECT upper($1) + 1 -- P: a
SELECT now() AT TIME ZONE $1 IS NOT NULL -- P: UTC
SELECT cast($1 as varchar(2)) -- P: abcd
SELECT interval $1 -- P: 1 day
SELECT string_agg($1, $2) -- P: a | ,
SELECT to_char(1234.5, 'FM9G999D00'), to_char(-5, '9PR'), to_char(5, 'PL9'), to_char(5, 'SG9'), to_char(-5, '9SG'), to_char(-5,'PL9'), to_char(-5,'9PL'), to_char(5,'FMPL9'), to_char(-5,'MI9PL')
SELECT to_char(0.1, '.99'), to_char(0, '.99'), to_char(0.1,'9.99'), to_char(0.1,'FM.99'), to_char(-0.5,'.9'), to_char(-0.01,'9.9'), to_char(-0.01::float8,'9.9')
SELECT to_char(12, 'rn'), to_char(1, 'FM9th'), to_char(22, '99TH'), to_char(12,'FMrn')
SELECT to_char(1.5, '"value: "9.9'), to_char(5, '\9'), to_char(5, ''), to_char(NULL::int, '9'), to_char(5,'"a\"b"9'), to_char(5,'\"9')
SELECT to_char('NaN'::float8, '999'), to_char('Infinity'::float8, '999.9'), to_char('-Infinity'::numeric, '999'), to_char('-Infinity'::numeric, '999999999.9'), to_char('NaN'::numeric, '9.9')
SELECT to_char(123.456::real, '9999.9999'), to_char(123456789.123::real,'999999999.99'), to_char(0.1::float8,'9.99999999999999999999'), to_char(1e20::float8,'9'), to_char(1.5::float8,'999'), to_char(2.5::float8,'FM9')
SELECT to_char(interval '-1 day 2 hours', 'DD HH24'), to_char(interval '1 year 2 months', 'YYYY MM'), to_char(interval '36 hours', 'HH12'), to_char(interval '-3:04:05.678','HH24:MI:SS.MS US'), to_char(interval '14 months 3 days','DDD YY Y'), to_char(interval '13:00','HH AM')
SELECT to_char(interval '1 day','Day')
SELECT to_char(interval '1 day','')
SELECT to_char(timestamp 'infinity','YYYY'), to_char(now(),'')
SELECT to_date('2024 123', 'YYYY DDD'), to_date('24-W10-3', 'IY-"W"IW-ID'), to_date('March 5, 2024', 'Month DD, YYYY'), to_date('2451187','J'), to_date('2024 10','YYYY WW'), to_date('2024-05 2','YYYY-MM W'), to_date('2024 100','IYYY IDDD')
SELECT to_date('2024-05 3','YYYY-MM IW')
SELECT to_date('400 2024','DDD YYYY')
SELECT to_date('123','DDD')
SELECT to_date('2024111','YYYYMMDD')
SELECT to_date('2024a1','YYYYMM')
SELECT to_timestamp('2024-02-30','YYYY-MM-DD')
SELECT to_timestamp('99999999999', 'SSSS')
SELECT to_date('70 69','YY DD')
SELECT to_date('70','YY'), to_date('69','YY'), to_date('123','YYY'), to_date('5','Y')
SELECT to_number('XIV','RN')
SELECT to_timestamp('2024-01-01 3:04:05.678 PM', 'YYYY-MM-DD HH12:MI:SS.MS AM')
SELECT to_timestamp('1 4 1902', 'Q MM YYYY')
SELECT position(1 in 2)
SELECT substring(1 from 2)
SELECT substring(1, 2)
SELECT trim(5)
SELECT trim(leading 'x' from 5)
SELECT overlay(1 placing 2 from 3)
SELECT 1 AT TIME ZONE 'UTC'
SELECT (1, 2) OVERLAPS (3, 4)
SELECT extract(year from 5)
SELECT normalize(5)
SELECT * FROM (VALUES (1)) a, (VALUES (2)) a
SELECT extract(year from x) FROM (VALUES (date '2024-01-01')) t(x) ORDER BY extract(year from x)
SELECT now() AT TIME ZONE 'UTC' IS NOT NULL, trim('  a '), position('a' in 'ba')
SELECT * FROM extract(year from date '2024-01-01')
SELECT 1.5 LIKE 'a'
SELECT jsonb_set_lax('[1,"x"]'::jsonb, array['a','b'], '3'::jsonb, false, '2024-02-05')
SELECT date_part('month', age(date '2024-05-17', date '2023-01-01'))
SELECT to_char(date_trunc('month', date '2024-05-17') + interval '1 month - 1 day', 'YYYY-MM-DD')
SELECT extract(days from date_trunc('month', date '2024-02-10') + interval '1 month' - date_trunc('month', date '2024-02-10'))
SELECT generate_series(date '2024-01-01', date '2024-01-10', '3 days')::date
SELECT to_char(d, 'Dy') AS dow, count(*) FROM generate_series(date '2024-01-01', '2024-01-14', '1 day') d GROUP BY 1 ORDER BY 1
SELECT date '2024-01-01' BETWEEN '2023-01-01' AND '2024-12-31'
SELECT (date '2024-01-15', date '2024-02-01') OVERLAPS (date '2024-01-20', interval '10 days')
SELECT EXTRACT(ISOYEAR FROM DATE '2006-01-01'), EXTRACT(DECADE FROM TIMESTAMP '2001-02-16 20:38:40')
SELECT current_timestamp::text ~ '^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d'
SELECT to_timestamp(0) AT TIME ZONE 'UTC', to_timestamp(1e9)::date
SELECT interval '1 day' + time '10:00', time '23:30' + interval '1 hour', time '10:00' - interval '11 hours'
SELECT '2024-01-31'::date + '1 month'::interval, '2024-01-31'::timestamp + '1 month'::interval * 2
SELECT sum(d) FROM (VALUES (interval '1:30'),(interval '2:45')) v(d)
SELECT max(d) - min(d) FROM (VALUES (date '2024-01-01'),(date '2024-03-01')) v(d)
SELECT date_trunc('hour', timestamp '2024-01-01 10:45') + date_part('minute', timestamp '2024-01-01 10:45')::int / 15 * interval '15 min'
SELECT timestamptz '2024-01-01 10:00:00+02' = timestamptz '2024-01-01 08:00:00Z'
SELECT '2024-01-01 10:00:00-08'::timestamptz::timestamp
SELECT justify_interval('1 year 40 days 50 hours')
SELECT (interval '90 minutes')::text, (interval '90 minutes')::time
SELECT to_char(timestamp '2024-12-25 00:00', 'FMDay, FMMonth DDth, YYYY')
SELECT to_char(-1234567.89, 'FM999,999,999.00'), to_char(0.05, 'FM90.099'), to_char(1234, 'FM$9,999')
SELECT to_char(1234567, '9G999G999'), to_char(12.3, '00.00'), to_char(.5, '0.99'), to_char(-.5, '0.99S')
SELECT trim(to_char(1500000.5, '999,999,999.99')), to_char(50, '999%')
SELECT (1234.567)::numeric(10,1)::text, 1234.5::money::text, round(2.345, 2)::text, 1e3::text
SELECT 5 / 2, 5 / 2.0, 5 / 2::float, 5 % 2, 2 ** 3
SELECT 1.0 / 3.0, 2.0 / 3, 10.0 / 4, 100.00 * 0.15, 1e2 / 7
SELECT round(10 / 3.0, 2), round(5.5), round(6.5), round(-5.5), round(5.5::float8), round(6.5::float8)
SELECT avg(x), avg(x::numeric), avg(x)::int FROM generate_series(1, 4) x
SELECT stddev_samp(x), stddev_pop(x), var_samp(x), variance(x::float8) FROM generate_series(1, 5) x
SELECT sum(x) / count(*), sum(x)::float / count(*), 100.0 * count(*) FILTER (WHERE x > 2) / count(*) FROM generate_series(1, 4) x
SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY x), percentile_disc(array[0.1, 0.9]) WITHIN GROUP (ORDER BY x) FROM generate_series(1, 20) x
SELECT string_agg(DISTINCT v, ',' ORDER BY v DESC) FROM (VALUES ('b'), ('a'), ('b')) t(v)
SELECT k, sum(v), rank() OVER (ORDER BY sum(v) DESC) FROM (VALUES ('a', 1), ('b', 5), ('a', 3)) t(k, v) GROUP BY k ORDER BY k
SELECT k, v, sum(v) OVER (PARTITION BY k ORDER BY v), v - lag(v) OVER (PARTITION BY k ORDER BY v) AS diff FROM (VALUES ('a', 1), ('b', 5), ('a', 3)) t(k, v)
SELECT v, avg(v) OVER (ORDER BY v ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)::numeric(6,2) FROM generate_series(1, 5) v
SELECT v, row_number() OVER (), count(*) OVER (), v * 100.0 / sum(v) OVER () FROM generate_series(1, 3) v
SELECT DISTINCT first_value(v) OVER (PARTITION BY k ORDER BY v DESC) FROM (VALUES ('a', 1), ('a', 3)) t(k, v)
SELECT * FROM (SELECT v, row_number() OVER (PARTITION BY k ORDER BY v) rn FROM (VALUES ('a', 1), ('a', 3), ('b', 2)) t(k, v)) s WHERE rn = 1
WITH RECURSIVE tree(id, parent, path) AS (SELECT 1, NULL::int, '1' UNION ALL SELECT c.id, c.parent, t.path || '/' || c.id FROM (VALUES (2, 1), (3, 2)) c(id, parent) JOIN tree t ON t.id = c.parent) SELECT * FROM tree
WITH RECURSIVE d(x) AS (SELECT date '2024-01-30' UNION ALL SELECT x + 1 FROM d WHERE x < '2024-02-02') SELECT array_agg(x) FROM d
WITH RECURSIVE t(n, f) AS (SELECT 1, 1::numeric UNION ALL SELECT n + 1, f * (n + 1) FROM t WHERE n < 20) SELECT n, f FROM t WHERE n IN (5, 20)
WITH x AS MATERIALIZED (SELECT 1 AS a) SELECT * FROM x x1 JOIN x x2 USING (a)
WITH t(a, b) AS (VALUES (1, 'x'), (2, 'y')) SELECT b, a FROM t WHERE a = (SELECT max(a) FROM t)
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) t(id, name) WHERE name IS NULL OR name = 'a' ORDER BY id DESC
SELECT t.id, u.n FROM (VALUES (1), (2), (3)) t(id) LEFT JOIN LATERAL (SELECT count(*) n FROM generate_series(1, t.id) g WHERE g % 2 = 0) u ON true
SELECT id FROM (VALUES (1), (2), (3)) t(id) WHERE EXISTS (SELECT 1 FROM (VALUES (2), (3)) u(id) WHERE u.id = t.id)
SELECT id, (SELECT string_agg(x::text, '-') FROM generate_series(1, id) x) FROM (VALUES (2), (3)) t(id)
SELECT x FROM (VALUES (3), (1), (2)) t(x) ORDER BY x DESC LIMIT 2 OFFSET 1
SELECT x, CASE WHEN x < 2 THEN 'low' WHEN x < 3 THEN 'mid' ELSE 'high' END AS band FROM generate_series(1, 3) x
SELECT COALESCE(NULLIF(trim('  '), ''), 'empty'), COALESCE(NULL::int, 0) + 1
SELECT split_part('john.doe@example.com', '@', 2), substring('john.doe@example.com' from '^[^@]+'), position('@' in 'a@b')
SELECT regexp_replace('+49 (30) 123-456', '[^0-9]', '', 'g'), regexp_replace('John Smith', '(\w+)\s(\w+)', '\2, \1')
SELECT regexp_matches('2024-05-17', '(\d+)-(\d+)-(\d+)'), (regexp_match('a=1;b=2', 'b=(\d)'))[1]::int
SELECT unnest(string_to_array('a,b,c', ',')), unnest(regexp_split_to_array('x1y2z', '\d'))
SELECT lower('ABC') || upper('def') || initcap('ghi jkl'), length('  a '), reverse('abc'), repeat('-', 5)
SELECT left('PostgreSQL', 4), right('PostgreSQL', 3), lpad('7', 3, '0'), rpad('x', 3, '.'), substr('PostgreSQL', 5, 2)
SELECT replace('aXbX', 'X', ''), translate('abc', 'abc', 'xyz'), overlay('hello' placing 'J' from 1 for 1), concat_ws('-', 2024, 5, NULL, 17)
SELECT 'It''s', E'line1\nline2', $q$no 'escape'$q$, 'a' || chr(10) || 'b', U&'\00E9'
SELECT 'abc' < 'abd', 'Abc' ILIKE 'a%', 'a_b' LIKE 'a\_b', 'foo.bar' SIMILAR TO 'foo\.(bar|baz)', 'abc' ~ '^a.*c$'
SELECT md5('test'), encode(sha256('test'), 'hex'), encode('abc', 'base64'), decode('616263', 'hex')
SELECT '{"user": {"name": "Ann", "tags": ["a", "b"]}}'::jsonb #>> '{user,name}', '{"user": {"tags": ["a", "b"]}}'::jsonb -> 'user' -> 'tags' ->> 1
SELECT jsonb_array_length('{"a": [1, 2, 3]}'::jsonb -> 'a'), jsonb_object_keys('{"b": 1, "a": 2}')
SELECT key, value::int * 2 AS doubled FROM jsonb_each_text('{"a": "1", "b": "2"}') ORDER BY key
SELECT e ->> 'n' AS n, (e ->> 'v')::numeric AS v FROM jsonb_array_elements('[{"n": "x", "v": 1.5}, {"n": "y", "v": 2}]') e
SELECT jsonb_path_query_array('{"items": [{"p": 5}, {"p": 15}]}', '$.items[*] ? (@.p > 10).p')
SELECT '{"a": 1}'::jsonb || jsonb_build_object('b', now()::date IS NOT NULL), '{"a": {"b": 1}}'::jsonb || '{"a": {"c": 2}}'
SELECT jsonb_set('{"a": {"b": 1}}', '{a,b}', to_jsonb('x'::text)), jsonb_set('{"a": []}', '{a,0}', '1')
SELECT jsonb_object_agg(k, v ORDER BY k) FROM (VALUES ('x', 1), ('y', 2)) t(k, v)
SELECT json_build_object('id', id, 'name', name) FROM (VALUES (1, 'Ann'), (2, 'Bob')) t(id, name)
SELECT json_agg(json_build_object('id', id)) FROM generate_series(1, 2) id
SELECT row_to_json(r) FROM (SELECT 1 AS a, 'x' AS b, NULL AS c, date '2024-01-01' AS d) r
SELECT to_jsonb(r) - 'a' FROM (SELECT 1 AS a, 2.50 AS b) r
SELECT '[1, 2, 3]'::jsonb @> '[2]', '{"a": [1]}'::jsonb ? 'a', '["x", "y"]'::jsonb ?| array['y', 'z'], '{"a": 1}'::jsonb - 'a' = '{}'
SELECT jsonb_typeof('1.5'), jsonb_typeof('"x"'), jsonb_typeof('{}'), jsonb_typeof('true')
SELECT array_length(array_append(ARRAY[1, 2], 3), 1), ARRAY[1, 2, 3][1:2]
SELECT (ARRAY['a', 'b', 'c'])[2], (ARRAY[1, 2, 3])[2:3], array_position(ARRAY['x', 'y'], 'y'), 'a' = ANY (ARRAY['a', 'b'])
SELECT array_agg(DISTINCT x ORDER BY x DESC) FROM unnest(ARRAY[3, 1, 3]) x
SELECT ARRAY(SELECT x * 2 FROM unnest(ARRAY[1, 2]) x), array_to_string(ARRAY['a', NULL, 'b'], '-', '?')
SELECT x, ord FROM unnest(ARRAY['p', 'q']) WITH ORDINALITY AS t(x, ord) ORDER BY ord DESC
SELECT '{1,2,3}'::int[] || '{4}'::int[], ARRAY[1, 2] <@ ARRAY[1, 2, 3], cardinality(ARRAY[[1], [2]])
SELECT int4range(1, 5) @> 3, daterange('2024-01-01', '2024-02-01') && daterange('2024-01-15', NULL), upper(int4range(1, 5)), '[2024-01-01,2024-01-31]'::daterange
SELECT numrange(1, 5) * numrange(3, 8), int8range(1, 5, '[]'), lower_inf(daterange(NULL, '2024-01-01')), tsrange('2024-01-01', '2024-01-01')
SELECT 1 / 0.0
SELECT 'x'::int + 1
SELECT now() > 'not a date'
SELECT to_date('2024-15-01', 'YYYY-MM-DD')
SELECT 'abc'::numeric
SELECT 'abc'::float
SELECT '2024-02-30'::date
SELECT '10:70'::time
SELECT '1 foo'::interval
SELECT 'yes please'::bool
SELECT 300::smallint * 300::smallint
SELECT 3000000000::int
SELECT sqrt(-1.0)
SELECT 'a'::char(1) || 1 || true
SELECT length(123)
SELECT lower(5)
SELECT substring(12345, 1, 2)
SELECT round('abc')
SELECT date_trunc('month', 'abc')
SELECT extract(month from '2024-01-01'::text)
SELECT date_add('2024-01-01', 1)
SELECT dateadd(day, 1, now())
SELECT datediff('day', now(), now())
SELECT getdate()
SELECT ifnull(1, 2)
SELECT isnull(1, 2)
SELECT nvl(NULL, 1)
SELECT iif(true, 1, 2)
SELECT if(true, 1, 2)
SELECT len('abc')
SELECT top 5 1
SELECT 1 FROM dual
SELECT `a`
SELECT [a]
SELECT 'a' + 'b' + 'c'
SELECT 1 == 1
SELECT 1 & true
SELECT "x"
SELECT x
SELECT 1 AS select
SELECT 1 AS from
SELECT 1, FROM (VALUES (1)) t
SELECT count(*) FROM generate_series(1, 3) WHERE sum(1) > 2
SELECT a FROM (VALUES (1, 2)) t(a, b) GROUP BY b
SELECT max(sum(x)) FROM generate_series(1, 3) x
SELECT x FROM generate_series(1, 3) x HAVING x > 1
SELECT column2 FROM (VALUES (1)) t
SELECT (VALUES (1), (2))
SELECT 1 WHERE 'a'
SELECT 1 WHERE 1
SELECT 1 LIMIT 1.5
SELECT 1 OFFSET -1
SELECT CASE 1 WHEN 1 THEN 'a' ELSE 2 END
SELECT ARRAY[1, 'b']
SELECT ARRAY[1, NULL, '3'], ARRAY[1.5, 2], ARRAY['a', NULL]
SELECT unnest('a')
SELECT generate_series(1, 'x')
SELECT generate_series('2024-01-01', '2024-01-03', '1 day')
SELECT json_extract_path('{"a": 1}', 'a'), '{"a": 1}'::json ->> 'b' IS NULL
SELECT '{"a": 1}' ->> 'a'
SELECT '{"a": 1}'::json -> 0, '[1]'::jsonb ->> 'x'
SELECT '{"a": 1}'::jsonb @> 'a'
SELECT $1::timestamptz AT TIME ZONE 'UTC' -- P: 2024-01-01 10:00:00+02
SELECT $1::interval * 2 -- P: 1 day 02:00
SELECT $1::int[] || $2::int -- P: {1,2} | 3
SELECT date_trunc('day', $1::timestamptz) <= now() -- P: 2024-01-01
SELECT * FROM generate_series($1::date, $2::date, '1 day') -- P: 2024-01-01 | 2024-01-02
SELECT $1 LIKE '%' || $2 || '%' -- P: hello | ell
SELECT CASE WHEN $1 > 5 THEN 'big' ELSE 'small' END -- P: 7
SELECT $1::boolean AND true -- P: t
SELECT coalesce($1::text, 'none') -- P: NULL
SELECT $1::float8 / 3 -- P: 10
SELECT to_char($1::date, 'DD.MM.YYYY') -- P: 2024-05-17
SELECT lpad($1::text, 5, '0') -- P: 42
SELECT ($1::jsonb)->>'k' -- P: {"k": "v"}
SELECT x FROM unnest($1::text[]) x ORDER BY x DESC -- P: {b,a,c}
SELECT $1::int BETWEEN $2 AND $3 -- P: 5 | 1 | 10
SELECT now()::date - $1::date > 0 -- P: 2020-01-01
SELECT max(v) FROM (VALUES ($1::int), ($2)) t(v) -- P: 1 | 9
SELECT greatest($1, $2) -- P: a | b
SELECT $1::bytea -- P: \x0102
SELECT $1::inet << '10.0.0.0/8' -- P: 10.1.2.3
SELECT nullif(5, 5.0), nullif('a', 'b'), nullif(1::int2, 2::int8), nullif('5', 4), nullif(1.5, 2)
SELECT nullif($1, 2.5), nullif('2024-01-01', date '2024-01-01') -- P: 3
SELECT substring('foobar' from 'foo|foobar'), regexp_match('abcd', '(a|ab)(c|bcd)?(d*)'), regexp_match('aab', '(?:aa)?(?:aab)?(.*)')
SELECT substring('XY1234Z', 'Y*?([0-9]{1,3})'), substring('XY1234Z', 'Y*([0-9]{1,3})'), regexp_match('abc01234xyz', '(?:(.*?)(\d+)(.*)){1,1}')
SELECT 'a b' ~ '\bb', 'ab' ~ 'a(?=b)', 'ab' ~ '(?<!a)b', regexp_count('foo bar', '\m'), regexp_instr('xaxa', '^x|a', 2)
SELECT regexp_count(repeat('ab ', 2000), '\w+'), length(regexp_replace(repeat('a b', 2000), ' ', '--', 'g')), regexp_instr('abc', '(b)(c)', 1, 1, 1, 'i', 2)
SELECT regexp_count('a', 'b', 1, 'g')
SELECT regexp_instr('a', 'a', 1, 0)
SELECT make_date(-44, 13, 1)
SELECT make_date(5874898, 1, 1)
SELECT make_timestamp(2024, 1, 1, 23, 59, 60), make_timestamp(2024, 1, 1, 24, 0, 0)
SELECT make_time(23, 59, 60.5)
SELECT time '23:59:60.5'
SELECT extract(month FROM date 'infinity'), date_part('hour', timestamp '-infinity'), timestamp 'infinity'::time
SELECT greatest(date 'infinity', date '2024-01-01'), least('NaN'::float8, 1), greatest(1, 'NaN'::numeric), greatest(1.0::float8, 'NaN')
SELECT generate_series(timestamp '9999-12-30', timestamp '9999-12-31', '1 day')
SELECT interval '200000000 years'
SELECT interval '1day-2hours'
SELECT interval '2024-01-01'
SELECT $1 + interval '1 day' -- P: 2024-01-01
SELECT CASE $1 WHEN 1 THEN 'a' END -- P: 1
SELECT CASE 1 WHEN 1 THEN 2 WHEN date '2024-01-01' THEN 3 END
SELECT CASE NULL WHEN 'a' THEN 1 ELSE 2 END
SELECT X'FG'
SELECT to_char(timestamp '2024-02-29 13:05:09.0456', 'FMDay, DDth FMMonth YYYY HH12:MI:SS.US AM "wk" IW IYYY Q J')
SELECT to_char(-1234567.891, 'FM9,999,999.00PR'), to_char(485, 'RN'), to_char(0.5, '0.99EEEE'), to_char(12, 'S0999'), to_char(1234.5, 'L9G999D99')
SELECT to_date('05 Dec 2000', 'DD Mon YYYY'), to_timestamp('2024-060', 'YYYY-DDD'), to_number('12,454.8-', '99G999D9S')
SELECT justify_interval(interval '40 days 30 hours'), justify_days(interval '65 days'), age(timestamp '2024-03-31', timestamp '2023-02-28')
SELECT date_bin('15 minutes', timestamp '2024-02-11 15:44:17', timestamp '2001-01-01'), date_trunc('quarter', date '2024-08-09'), date_trunc('week', timestamptz '2024-01-03 01:00+00', 'Asia/Tokyo')
SELECT 'infinity'::timestamp, '-infinity'::date, 'infinity'::timestamp - interval '1 day', isfinite(date 'infinity'), 'NaN'::numeric > 1e300, 'Infinity'::numeric
SELECT timestamp '2024-01-31' + interval '1 month', date '2024-01-31' - interval '1 year 1 month', date '2024-03-01' - date '2024-02-01', time '23:59' + interval '2 min'
SELECT (date '2024-01-01', date '2024-02-01') OVERLAPS (date '2024-01-15', interval '1 day'), timestamptz '2024-01-01 00:00+05' AT TIME ZONE 'UTC', timestamp '2024-06-01 12:00' AT TIME ZONE 'America/New_York'
SELECT interval '1-2', interval 'P1Y2M3DT4H5M6S', interval '1 day ago', interval '3' hour, interval '1.5 weeks', interval '-1 year +2 days'
SELECT interval '5-'
SELECT timestamp 'yesterday' < timestamp 'today', date 'epoch', time 'allballs', timestamp '2024-01-01 24:00'
SELECT timestamp '2024-02-30'
SELECT regexp_replace('foobarbaz', 'b(..)', 'X\1Y', 'g'), regexp_matches('foobarbequebaz', '(bar)(beque)'), regexp_split_to_array('a, b;c', '[,;]\s*'), substring('foobar' from 'o(.)b')
SELECT regexp_count('ABCABCAXYaxy', 'A.', 1, 'i'), regexp_instr('number of your street, town zip, FR', '[^,]+', 1, 2), regexp_substr('foobarbaz', 'b..', 1, 2), regexp_like('Hello', 'hello$', 'i')
SELECT 'a' ~ '[', 1
SELECT format('%s|%10s|%-10s|%I|%L|%%|%2$s', 'a', 'b', 'c', 'D e', 'it''s'), format('%*s', 5, 'x'), format('%L', NULL)
SELECT overlay('Txxxxas' placing 'hom' from 2 for 4), position('b' in 'abc'), trim(both 'xy' from 'yxTomxx'), btrim('  a '), translate('12345', '143', 'ax'), initcap('hi THOMAS o''neil'), reverse('abc'), lpad('hi', 5, 'xy'), rpad('hello', 3), split_part('a~b~c', '~', -1), strpos('high', 'ig'), repeat('Pg', 3), ascii('é'), chr(8364), starts_with('abc', 'ab'), to_hex(2147483647), md5('abc'), concat_ws('-', 1, NULL, true)
SELECT encode('\x00ff'::bytea, 'base64'), decode('AP8=', 'base64'), encode('abc', 'escape'), get_byte('\x1234'::bytea, 1), set_byte('\x1234'::bytea, 0, 64), sha256('abc'), length('\x1234'::bytea), substring('\x123456'::bytea from 2 for 1), convert_from('\xc3a9', 'UTF8'), convert_to('é', 'LATIN1')
SELECT decode('zz', 'hex')
SELECT 'ab' || 1, 1 || 'ab', 'a' || NULL, ARRAY[1] || 2, 0 || ARRAY[1], ARRAY[1] || ARRAY[[2]]
SELECT U&'\0061\+000062', E'\u00e9\n\x41', $q$it's$q$, B'101', X'1F', 'a' 'b'
SELECT 7/2, -7/2, 7%3, -7%3, 7.0/2, 2^10, |/ 25.0, ||/ 27.0, @ -5.5, 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 4, -8 >> 1
SELECT 1/0.0
SELECT round(2.5), round(2.5::float8), round(-2.5), round(1234.567, -2), trunc(-1.999, 2), ceil(-1.5), sign(-3), div(9, 4), mod(-9, 4), gcd(12, 18), lcm(4, 6), factorial(20), power(2, 0.5), sqrt(2), exp(1.0), ln(2.0), log(100), log(2.0, 64.0), cbrt(27), degrees(0.5), scale(8.4100), trim_scale(8.4100), min_scale(8.4100), width_bucket(5.35, 0.024, 10.06, 5)
SELECT sqrt(-1)
SELECT ln(0)
SELECT 2147483647 + 1
SELECT 9223372036854775807 + 1, 1
SELECT 32767::int2 + 1::int2
SELECT (-32768)::int2 / (-1)::int2, -32768::int2
SELECT 12345678901234567890, 1e10, 0x1F, 1_000, 0b101, .5, 5., 1e-7::float8, 1e15::float8, 123456789012345680::float8, 1e16::float4
SELECT 1.10 + 2.205, 1.1 * 1.10, 10 / 3.0, 1::numeric / 3, 1e-20::numeric * 1e-20, 2::numeric ^ 0.5, 1.0::numeric(5,3), 99999.9::numeric(3,1)
SELECT pg_typeof(1), pg_typeof(1.0), pg_typeof(1e3), pg_typeof('a'), pg_typeof(NULL), pg_typeof(ARRAY[1,2.5]), pg_typeof(now()), pg_typeof(1::int2 + 1), pg_typeof(sum(1)), pg_typeof(date '2024-01-01' + 1), pg_typeof(ROW(1)), pg_typeof('1'::"char")
SELECT ARRAY[1,2,3][2], (ARRAY[[1,2],[3,4]])[2][1], (ARRAY[1,2,3])[2:], array_length(ARRAY[[1,2],[3,4]], 2), cardinality(ARRAY[[1],[2]]), array_dims('[2:4]={1,2,3}'::int[]), array_position(ARRAY['a','b'], 'b'), array_positions(ARRAY[1,2,1], 1), array_remove(ARRAY[1,2,1], 1), array_replace(ARRAY[1,2], 1, 9), array_to_string(ARRAY[1,NULL,3], ',', '*'), string_to_array('1,2,,4', ',', ''), array_fill(7, ARRAY[2,2]), array_ndims('{}'::int[]), array_upper(ARRAY[1,2], 1), trim_array(ARRAY[1,2,3], 1)
SELECT ARRAY[1,2] @> ARRAY[2], ARRAY[1,2] && ARRAY[3], ARRAY[1,3] > ARRAY[1,2,9], ARRAY[1,NULL] = ARRAY[1,NULL], 3 = ANY('{1,2,3}'), 3 <> ALL(ARRAY[1,2]), NULL = ANY(ARRAY[1])
SELECT ARRAY[]
SELECT ARRAY['a"b', 'c,d', '', NULL, 'null', 'e f', '\'], '{ "a b" , c }'::text[], '{{1,2},{3,4}}'::int[]
SELECT '{1,2'::int[]
SELECT ARRAY[1,'a']
SELECT GREATEST(ARRAY[1,2], ARRAY[1,3]), LEAST(1, 2.5, NULL), GREATEST('a', 'B'), GREATEST(date '2024-01-01', NULL)
SELECT unnest(ARRAY[1,2]), unnest(ARRAY['a','b','c'])
SELECT * FROM unnest(ARRAY[1,2], ARRAY['x','y','z']) WITH ORDINALITY AS t(a, b, n)
SELECT * FROM ROWS FROM (generate_series(1,2), generate_series(5,7)) AS t(a, b)
SELECT g, g % 2 = 0 AS even, sum(g) OVER (ORDER BY g) AS s, lag(g) OVER (ORDER BY g), rank() OVER (PARTITION BY g % 2 ORDER BY g DESC) FROM generate_series(1, 4) g ORDER BY g
SELECT g, ntile(3) OVER w, first_value(g) OVER w, nth_value(g, 2) OVER w, percent_rank() OVER w, cume_dist() OVER w FROM generate_series(1, 5) g WINDOW w AS (ORDER BY g ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
SELECT g % 3, count(*), array_agg(g ORDER BY g DESC), string_agg(g::text, ',' ORDER BY g), bool_and(g > 1), min(g) FILTER (WHERE g > 4), avg(g) FROM generate_series(1, 10) g GROUP BY 1 ORDER BY 1
SELECT g % 2 AS a, g % 3 AS b, count(*), grouping(g % 2, g % 3) FROM generate_series(1, 12) g GROUP BY ROLLUP (g % 2, g % 3) ORDER BY 1 NULLS LAST, 2 NULLS FIRST
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x), stddev(x), var_pop(x), corr(x, x * 2), regr_slope(x, x + 1) FROM (VALUES (1), (2), (2), (5)) v(x)
SELECT json_agg(x), jsonb_object_agg(k, x), json_object_agg(k, x), json_agg(row_to_json(v)) FROM (VALUES ('a', 1), ('b', NULL)) v(k, x)
SELECT '{"a": {"b": [1, "x", null]}}'::jsonb -> 'a' -> 'b' ->> 1, '{"a":[1,2]}'::json #>> '{a,1}', '{"a":1}'::jsonb || '{"b":2}', '{"a":1,"b":2}'::jsonb - 'a', '[1,2]'::jsonb - 0, '{"a":{"b":1}}'::jsonb #- '{a,b}', '{"a":1}'::jsonb ? 'a', '{"a":1}'::jsonb @> '{}', '["a"]'::jsonb ?| ARRAY['a'], '{"a": [1]}'::jsonb ['a'] [0]
SELECT jsonb_set('{"a":[1]}', '{a,0}', '9'), jsonb_insert('{"a":[1]}', '{a,0}', '"n"'), jsonb_pretty('{"a":[1,{}]}'), jsonb_strip_nulls('{"a":null,"b":1}'), jsonb_typeof('1.50'), '1.50'::jsonb, '{"b":1,"a":2,"b":3}'::jsonb, '{"b":1, "a":2}'::json, jsonb_build_object('a', 1, 'b', ARRAY[1,2]), json_build_array(1, 'x', NULL, true), to_jsonb(timestamp '2024-01-02 03:04:05'), row_to_json(ROW(1, 'a')), array_to_json(ARRAY[[1,2],[3,4]])
SELECT * FROM jsonb_each('{"a":1,"b":"x"}') UNION ALL SELECT * FROM jsonb_each('{}')
SELECT * FROM json_to_recordset('[{"a":1,"b":"foo"},{"a":"2"}]') AS x(a int, b text)
SELECT * FROM jsonb_array_elements_text('["a", 1, null]') WITH ORDINALITY
SELECT jsonb_path_query_array('{"a":[1,2,3]}', '$.a[*] ? (@ > $min)', '{"min":1}'), jsonb_path_exists('{"a":1}', '$.b'), '{"a":[1,2]}'::jsonb @? '$.a[*] ? (@ == 2)', '{"a":1}'::jsonb @@ '$.a == 1', jsonb_path_query_first('[1,"2"]', '$[1].double()')
SELECT '{"a":}'::json
SELECT ROW(1, 'a') = ROW(1, 'a'), ROW(1, NULL) < ROW(2, 1), (1, 2) IN ((1, 2), (3, 4)), ROW(1, NULL) IS NULL, ROW(NULL, NULL) IS NULL, (ROW(1, 'x y', NULL, '')), ROW(1, 2) IS DISTINCT FROM ROW(1, 3)
SELECT 1 WHERE (SELECT 1, 2) = (1, 2)
SELECT EXISTS (SELECT FROM (VALUES (1)) v WHERE false), 1 = SOME (SELECT 2), NOT EXISTS (SELECT 1), (SELECT count(*) FROM generate_series(1, 3))
WITH RECURSIVE t(n, f) AS (SELECT 1, 1::numeric UNION ALL SELECT n + 1, f * (n + 1) FROM t WHERE n < 25) SELECT n, f FROM t WHERE n % 8 = 1
WITH a AS MATERIALIZED (SELECT 1 AS x), b(y) AS (VALUES (1), (2)) SELECT * FROM a FULL JOIN b ON x = y LEFT JOIN LATERAL (SELECT x * 10 AS z) l ON true ORDER BY y
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(i, t) NATURAL JOIN (VALUES (1, 'a'), (2, 'b')) w(i, u)
SELECT DISTINCT ON (a) a, b FROM (VALUES (1, 2), (1, 1), (2, 5)) v(a, b) ORDER BY a, b
SELECT a FROM (VALUES (3), (1), (2), (2)) v(a) ORDER BY a FETCH FIRST 2 ROWS WITH TIES
SELECT 1 UNION ALL SELECT 2.5 EXCEPT SELECT 1 INTERSECT SELECT 1 ORDER BY 1
SELECT 1 UNION SELECT 'a'
SELECT 1, 2 UNION SELECT 3
SELECT CASE WHEN 1 = 2 THEN 'a' ELSE 1 END
SELECT CASE 3 WHEN 1 THEN 'a' WHEN 3 THEN NULL ELSE 'c' END, COALESCE(NULL, 1, 2.5), NULLIF(1, 1), NULLIF('a', 'b'), COALESCE(NULL, NULL)
SELECT true AND NULL, NULL OR true, NOT NULL::bool, 1 IS DISTINCT FROM NULL, true > false, 'yes'::bool, 'of'::bool, NULL IS UNKNOWN, 1::bool, true::int
SELECT 'perhaps'::bool
SELECT 1 = 'a'
SELECT 'a' + 1
SELECT 1 + true
SELECT - 'a'
SELECT upper(1)
SELECT abs('x'::text)
SELECT length(1, 2)
SELECT 1 LIKE 'a'
SELECT 'aXc' LIKE 'a_c', 'a%c' LIKE 'a\%c', 'ABC' ILIKE 'a%', 'a' LIKE ANY (ARRAY['a%', 'b']), 'ab' LIKE 'a!%' ESCAPE '!', '' LIKE '%', 'a\b' LIKE 'a\\b'
SELECT 'abc' LIKE 'abc\'
SELECT 'abc'::varchar(2), 'abc'::char(5) || '|', 'abc  '::char(5) = 'abc', 'abc'::"char", 'x'::bpchar, char_length('ab '::char(4)), 'ab'::name
SELECT 'a' < 'B' COLLATE "C", 'a' COLLATE "nosuch"
SELECT int4range(1, 5) @> 3, int4range(1, 5, '[]'), '[1,5)'::int4range * '[3,8)'::int4range, lower('[2024-01-01,2024-02-01)'::daterange), upper_inf('[1,)'::int4range), isempty('(1,2)'::int4range), '{[1,3),[5,7)}'::int4multirange @> 6, numrange(1.1, 2.2) && numrange(2.2, 3), range_merge('[1,2)'::int4range, '[5,6)')
SELECT '[5,1)'::int4range
SELECT inet '192.168.1.5/24', cidr '10.1.2.0/24', host('192.168.1.5/24'::inet), masklen('10.0.0.0/8'), network('192.168.1.5/24'), inet '192.168.1.5' << inet '192.168.1/24', macaddr '08:00:2b:01:02:03', inet '::1', set_masklen('10.1.1.1/24'::inet, 16), inet '10.0.0.1' + 5
SELECT point '(1,2)' <-> point '(4,6)', box '(0,0),(1,1)' && box '(0.5,0.5),(2,2)', area(box '((0,0),(2,3))'), circle '<(0,0),2>' @> point '(1,1)', length(path '((0,0),(3,4))'), lseg '[(0,0),(1,1)]'
SELECT money '12.345', '$1,234.50'::money * 2, money '10' / money '4', '12.34'::money::numeric
SELECT B'1010' & B'0110', B'1' || B'01', B'1010' << 1, length(B'101'), B'101'::int, 5::bit(4), '1010'::bit(2), get_bit(B'100', 0), bit_count(B'1101')
SELECT gen_random_uuid() IS NOT NULL, random() BETWEEN 0 AND 1, 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid, uuid '{a0eebc999c0b4ef8bb6d6bb9bd380a11}' > uuid '00000000-0000-0000-0000-000000000000'
SELECT num_nulls(1, NULL), num_nonnulls(NULL, 2), pg_column_size(1::int8), quote_ident('a b'), quote_literal(E'a\\b'), quote_nullable(NULL), to_regclass('nosuch'), 'int4'::regtype, 'pg_class'::regclass::oid, format_type(1700, 655366), current_database() = current_catalog, col_description(1, 1)
SELECT IS_JSON FROM (SELECT '{"a":1}' IS JSON OBJECT AS is_json) s
SELECT xmlelement(name a, 'b'), xpath('/a/text()', '<a>x</a>'::xml), '<a/>'::xml
SELECT sum(a) FROM (VALUES (1)) v(a) WHERE sum(a) > 1
SELECT a, count(*) FROM (VALUES (1)) v(a)
SELECT count(*) OVER () FROM generate_series(1,2) HAVING count(*) > 1
SELECT a FROM (VALUES (1)) v(a) ORDER BY 2
SELECT x.a FROM (VALUES (1)) v(a)
SELECT a FROM (VALUES (1)) v(a), (VALUES (2)) w(a)
SELECT count(DISTINCT a, b) FROM (VALUES (1, 2)) v(a, b)
SELECT string_agg(a) FROM (VALUES ('x')) v(a)
SELECT * FROM generate_series(timestamp '2024-01-01', '2024-01-02', '8 hours') t, generate_series(3, 1, -1) WITH ORDINALITY u(a, n) LIMIT 4
SELECT generate_series(1, 3), generate_subscripts(ARRAY[4,5], 1)
SELECT substr('hello', -1, 3), substring('hello' from 2), substring('hello', 2, -1)
SELECT interval '5-6 7', interval '5-', interval '-5- 3'
SELECT interval '5-12'
SELECT GREATEST(json '1', json '2')
SELECT LEAST('{a,b}'::text[], '{a,a}'), GREATEST(ROW(1,2), ROW(1,3)), GREATEST(B'1', B'01'), LEAST(interval '1 mon', interval '31 days')
