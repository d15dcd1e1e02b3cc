-- Statements as a suite of SQL tests would ask them, one a line, below the name of their database. Outputs m0, m1, ... and n are
-- counts and sums: 0 in groups that the data does not have.

-- database: answers
-- NULL among the keys
SELECT code, COUNT(*) AS n FROM a GROUP BY code
SELECT code, kind, COUNT(*) AS n, SUM(x) AS m0 FROM a GROUP BY code, kind
SELECT code IS NULL AS missing, COUNT(*) AS n FROM a GROUP BY 1
SELECT code, COUNT(*) AS n FROM a WHERE code IS NULL OR code = 'p' GROUP BY code
SELECT code, COUNT(*) AS n FROM a WHERE code IS DISTINCT FROM 'p' GROUP BY code
SELECT nullif(kind, 'p') AS k, COUNT(*) AS n FROM a GROUP BY 1
SELECT x, COUNT(*) AS n, COUNT(x) AS m0, COUNT(code) AS m1 FROM a GROUP BY x
SELECT coalesce(code, word) AS k, COUNT(*) AS n FROM a GROUP BY 1
SELECT COUNT(*) - COUNT(x) AS m0, COUNT(*) FILTER (WHERE code IS NULL AND x IS NULL) AS m1 FROM a
SELECT x > 5 AS k, COUNT(*) AS n FROM a GROUP BY x > 5
-- aliases of constants in ORDER BY
SELECT 'all' AS label, COUNT(*) AS n FROM a ORDER BY label
SELECT kind, 1 AS k, COUNT(*) AS n FROM a GROUP BY kind ORDER BY k, kind DESC
SELECT x, 0 AS k, COUNT(*) AS n FROM a WHERE x < 3 GROUP BY ALL ORDER BY k DESC, x LIMIT 2
-- outputs that name others beside GROUP BY ALL
SELECT kind, COUNT(*) AS n, n * 2 AS m0 FROM a GROUP BY ALL
SELECT x * 2 AS k, k + 1 AS j, COUNT(*) AS n FROM a GROUP BY ALL
-- CASE in a subquery, of numbers and of the key of a unit
SELECT COUNT(DISTINCT u) AS n FROM (SELECT CASE WHEN x > 5 THEN uid END AS u FROM a)
SELECT kind, COUNT(DISTINCT u) AS n, COUNT(u) AS m0 FROM (SELECT kind, IF(x > 5, uid, NULL) AS u FROM a) GROUP BY kind
SELECT COUNT(DISTINCT u) AS m0, COUNT(DISTINCT v) AS m1 FROM (SELECT CASE WHEN x > 5 THEN uid END AS u, CASE WHEN y > 4 THEN NULL ELSE uid END AS v FROM a)
SELECT COUNT(DISTINCT u) FILTER (WHERE y > 4) AS n FROM (SELECT y, CASE WHEN x > 5 THEN uid END AS u FROM a)
SELECT SUM(c) AS m0, COUNT(c) AS n, AVG(c) AS mean FROM (SELECT CASE WHEN y > 4 THEN NULL ELSE x END AS c FROM a)
SELECT SUM(s) AS m0, COUNT(s) AS n FROM (SELECT uid, SUM(c) AS s FROM (SELECT uid, CASE WHEN y > 4 THEN x END AS c FROM a) GROUP BY uid)
-- aggregates of the query around a subquery, in its WHERE
SELECT q.kind, (SELECT COUNT(*) FROM codes WHERE weight <= MAX(q.n)) AS m0 FROM (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) AS q GROUP BY q.kind
SELECT kind FROM (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) AS q GROUP BY kind HAVING EXISTS (SELECT 1 FROM codes WHERE weight <= MAX(n))
-- strings in dollars, lists and series of rows, PIVOT
SELECT COUNT(*) AS n FROM a WHERE big = 9007199254740993 OR big = 0.5
SELECT kind, COUNT(*) AS n FROM a WHERE kind = $$p$$ OR kind = $x$q$x$ GROUP BY kind
SELECT kind, COUNT(*) AS n FROM a WHERE kind IN (VALUES ('p'), ('q')) GROUP BY kind
SELECT k, COUNT(x) AS n FROM generate_series(1, 9, 2) AS g(k) LEFT JOIN a ON x = k GROUP BY k
SELECT k, COUNT(*) AS n FROM a JOIN range(2, 5) AS g(k) ON x = k GROUP BY k
SELECT k, COUNT(*) AS n FROM a JOIN generate_series(DATE '2024-01-01', DATE '2024-12-01', INTERVAL '1 month') AS g(k) ON date_trunc('month', day) = k GROUP BY k
SELECT k FROM generate_series(DATE '2024-01-31', TIMESTAMP '2024-06-30 12:00:00', INTERVAL '1 month') AS g(k) ORDER BY k
SELECT k FROM range(9, 1, -3) AS g(k) ORDER BY k
SELECT k FROM generate_series(date_trunc('month', DATE '2024-03-31' - INTERVAL '2 months'), DATE '2024-04-01' + 40, INTERVAL 1 MONTH) AS g(k) ORDER BY k
WITH g AS (SELECT unnest(generate_series(DATE '2024-01-01', DATE '2024-03-01', INTERVAL 1 MONTH))::DATE AS k) SELECT k, COUNT(*) AS n FROM a JOIN g ON date_trunc('month', day) = k GROUP BY k
SELECT k, COUNT(*) AS n FROM a JOIN (SELECT unnest(['p', 'r']) AS k) AS g ON k = kind GROUP BY k
-- one row for each key: ROW_NUMBER, and literals for columns of a key
WITH w AS (SELECT grade, x, row_number() OVER (PARTITION BY grade ORDER BY x DESC) AS r FROM scores) SELECT grade, COUNT(*) AS n FROM a JOIN w ON grade = CASE kind WHEN 'p' THEN 'high' ELSE 'low' END WHERE w.r = 1 GROUP BY grade
SELECT s.x, COUNT(*) AS n FROM a JOIN (SELECT grade, x FROM scores QUALIFY row_number() OVER (PARTITION BY grade ORDER BY x) = 1) AS s ON s.grade = CASE kind WHEN 'p' THEN 'high' ELSE 'low' END GROUP BY s.x
SELECT COUNT(*) AS n FROM a JOIN (SELECT kind, word, COUNT(*) AS c FROM a GROUP BY kind, word) AS t ON t.kind = a.kind AND t.word = 'w1' WHERE a.x < t.c
SELECT * FROM (SELECT code, kind, x FROM a) PIVOT (SUM(x) FOR kind IN ('p' AS m0, 'q' AS m1)) AS t
PIVOT (SELECT town AS c, size AS n FROM b) ON n USING COUNT(*) AS m0 GROUP BY c
SELECT * FROM a PIVOT (COUNT(*) AS n, COUNT(x) AS m FOR kind IN ('p', 'q', 'none') GROUP BY code)
SELECT * FROM (SELECT code, kind, COUNT(*) AS c FROM a GROUP BY code, kind) PIVOT (SUM(c) FOR kind IN ('p' AS m0, 'q' AS m1))
SELECT k, COUNT(v) AS n FROM (SELECT x AS "Left", y AS "Right" FROM a) UNPIVOT (v FOR k IN ("left", "Right")) AS t GROUP BY k
SELECT COUNT(*) AS n FROM a WHERE y < 'Infinity'::DOUBLE AND x <> TRY_CAST('4O' AS INT)
-- quotients by integers, texts that stand for numbers, parts that count years
SELECT kind, SUM(x / nullif(x - 5, 0)) AS m0, SUM(x // nullif(x - 4, 0)) AS m1 FROM a GROUP BY kind
SELECT kind, COUNT(*) AS n FROM a WHERE x > '3' AND x IN ('4', '5', '+6') GROUP BY kind
SELECT kind, COUNT(*) AS n FROM a WHERE kind <> '3' AND x >= ANY([7, 3]) AND x <> ALL([4]) GROUP BY kind
SELECT kind, COUNT(*) AS n FROM a WHERE x < CAST('32767' AS SMALLINT) AND coalesce(TRY_CAST(32768 AS SMALLINT), 5) = x GROUP BY kind
SELECT EXTRACT(decade FROM day) AS k, EXTRACT(isoyear FROM day) AS j, COUNT(*) AS n FROM a GROUP BY 1, 2
SELECT date_part('century', day) AS k, date_part('millennium', day) AS j, COUNT(*) AS n FROM a GROUP BY 1, 2
-- spellings of PostgreSQL, and differences of timestamps
SELECT kind, COUNT(*) AS n FROM a WHERE day > DATE '2024-02-20' - INTERVAL '1 month 2 days' GROUP BY kind
SELECT COUNT(*) AS n FROM a WHERE day > DATE '2024-02-20' - '3 weeks'::INTERVAL AND code IN (kind, 'z')
SELECT COUNT(*) AS n FROM a WHERE code NOT IN (kind, 'q') OR (x > 3) = 't'
SELECT kind, COUNT(*) AS n, rank() OVER w AS k FROM a GROUP BY kind WINDOW w AS (ORDER BY kind DESC)
SELECT code, kind, GROUPING(code, kind) AS k, SUM(c) AS n FROM (SELECT code, kind, COUNT(*) AS c FROM a GROUP BY code, kind) AS t GROUP BY ROLLUP(code, kind)
SELECT grade, GROUPING(grade) AS k, COUNT(*) AS n FROM scores GROUP BY CUBE(grade)
(SELECT code, COUNT(*) AS n FROM a GROUP BY code HAVING COUNT(*) > 0) ORDER BY n DESC, code LIMIT 2
(SELECT kind AS k, COUNT(*) AS n FROM a GROUP BY kind UNION ALL (SELECT grade, COUNT(*) FROM scores GROUP BY grade)) ORDER BY 2 DESC, 1 LIMIT 3
WITH t AS (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) (SELECT kind, n FROM t) ORDER BY kind DESC
-- public rows that are combined first keep those that no protected row meets
SELECT label, grade, COUNT(a.uid) AS n FROM codes AS c CROSS JOIN scores AS s LEFT JOIN a ON a.code = c.code AND a.x = s.x GROUP BY label, grade
SELECT label, grade, kind, COUNT(a.x) AS n, SUM(coalesce(y, 0)) AS m0 FROM codes AS c JOIN scores AS s ON s.x > c.weight LEFT JOIN a ON a.code = c.code AND s.x = a.x AND y > 0 GROUP BY label, grade, kind
SELECT grade, city, COUNT(*) AS n FROM codes AS c CROSS JOIN scores AS s JOIN a ON a.code = c.code AND a.x = s.x LEFT JOIN b USING (uid) GROUP BY grade, city
SELECT weight, k, COUNT(uid) AS n FROM codes, generate_series(1, 4) AS g(k) LEFT JOIN a ON x = k WHERE codes.code = a.code GROUP BY weight, k
SELECT label, city, COUNT(a.x) AS n FROM (codes JOIN scores ON weight = x) LEFT JOIN a USING (code, x) LEFT JOIN b USING (uid) GROUP BY label, city
SELECT grade, regr_r2(x, x * x) AS r, regr_count(x, x) AS n, regr_avgx(x + 1, x) AS a, regr_avgy(x + 1, x) AS b, regr_sxx(x, x + 1) AS c FROM scores GROUP BY grade
SELECT regr_sxy(c, x) AS m0, regr_syy(c, x) AS m1, regr_count(c, x) AS n FROM (SELECT x, COUNT(*) AS c FROM a WHERE x < 5 GROUP BY x HAVING COUNT(*) > 0) AS t
SELECT COUNT(*) AS n FROM (SELECT row_number() OVER (w ORDER BY day) AS k FROM a WINDOW w AS (PARTITION BY uid)) AS t WHERE k = 1
SELECT COUNT(*) AS n FROM a WHERE x > ALL (SELECT AVG(x) FROM a)
SELECT COUNT(*) AS n FROM a WHERE code = ANY (SELECT code FROM codes)
SELECT code, COUNT(x) AS n FROM a FULL JOIN codes USING (code) GROUP BY code
SELECT COUNT(*) AS n, COUNT(a.x) AS m0 FROM a FULL JOIN b USING (uid) WHERE uid > 100
SELECT COUNT(*) AS n FROM a WHERE code = (SELECT DISTINCT code FROM codes WHERE code > 'o' AND code < 'q')
SELECT COUNT(*) AS n FROM a WHERE TIMESTAMP '2024-02-01 10:00:00' - day::TIMESTAMP > INTERVAL '36 hours'
SELECT COUNT(*) AS n FROM a WHERE EXTRACT(DAY FROM TIMESTAMP '2024-02-01 10:30:00' - day::TIMESTAMP) = -3
SELECT COUNT(*) AS n FROM a WHERE date_part('hour', TIMESTAMP '2024-02-01 10:30:00' - day::TIMESTAMP) = -13
SELECT COUNT(*) AS n FROM a WHERE EXTRACT(MINUTE FROM TIMESTAMP '2024-02-01 10:20:30' - day::TIMESTAMP) = -39
SELECT COUNT(*) AS n FROM a WHERE EXTRACT(EPOCH FROM TIMESTAMP '2024-02-01 10:20:30' - day::TIMESTAMP) / 3600 > 100
SELECT COUNT(*) AS n FROM a WHERE word LIKE 'w!%' ESCAPE '!' OR word LIKE '!w3%' ESCAPE '!'
SELECT code, COUNT(*) AS n FROM a GROUP BY code HAVING code LIKE 'p%' ESCAPE '!'
SELECT COUNT(*) AS n FROM (SELECT uid, BOOL_OR(x > 9) AS high, BOOL_AND(x > 1) AS above FROM a GROUP BY uid) AS t WHERE high AND above
SELECT high, COUNT(*) AS n FROM (SELECT uid, BOOL_OR(x > 9) FILTER (WHERE kind = 'q') AS high FROM a GROUP BY uid) AS t GROUP BY high
SELECT COUNT(*) AS n FROM (SELECT uid FROM a GROUP BY uid HAVING BOOL_AND(NOT x < 4)) AS t
-- subqueries over groups, and with joins inside
SELECT kind, (SELECT label FROM codes AS c WHERE c.code = a.kind) AS k, COUNT(*) AS n FROM a GROUP BY kind
SELECT code, (SELECT SUM(weight) + COUNT(*) FROM codes AS c WHERE c.code > a.code) AS k, COUNT(*) AS n FROM a GROUP BY ROLLUP (code)
SELECT kind, COUNT(*) AS n FROM a GROUP BY kind HAVING EXISTS (SELECT 1 FROM codes AS c WHERE c.code = a.kind AND weight = 1)
SELECT size, COUNT(*) AS n, (SELECT SUM(x) FROM a WHERE a.kind = 'p' AND left(a.word, 0) || 's' = b.size) AS m0 FROM b GROUP BY size
SELECT size, COUNT(*) AS n FROM b WHERE EXISTS (SELECT 1 FROM a JOIN codes AS c ON a.code = c.code WHERE a.uid = b.uid AND weight > b.z - 8) GROUP BY size
SELECT COUNT(*) AS n FROM b WHERE z > 15 OR EXISTS (SELECT DISTINCT * FROM a, codes AS c WHERE a.code = c.code AND a.uid = b.uid LIMIT 1)
SELECT COUNT(*) AS n FROM b WHERE z > 15 OR b.uid IN (SELECT a.uid FROM a, codes AS c WHERE a.code = c.code AND weight > 3)
SELECT COUNT(*) AS n FROM a WHERE NOT EXISTS (SELECT * FROM codes AS c, scores AS s WHERE c.code = a.code AND s.x = a.x ORDER BY 1)
SELECT COUNT(*) AS n FROM a WHERE kind IN (SELECT code FROM codes WHERE weight = (SELECT MIN(weight) FROM codes))
SELECT COUNT(*) AS n FROM a WHERE x > ALL (SELECT AVG(x) FROM a GROUP BY kind HAVING COUNT(*) > 20)
SELECT COUNT(*) AS n FROM a WHERE NOT x <= ALL (SELECT weight FROM codes)
SELECT COUNT(*) AS n FROM a WHERE x < ANY (SELECT weight FROM codes)
SELECT COUNT(*) AS n FROM a WHERE (x > ALL (SELECT weight FROM codes)) IS NULL
SELECT COUNT(*) AS n FROM a WHERE x > ALL (SELECT weight FROM codes WHERE weight > 100) OR x >= ANY (SELECT weight FROM codes WHERE weight > 100)
SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE x <> ANY (SELECT weight FROM codes WHERE weight > 2)) AS m0 FROM a WHERE x = ALL (SELECT weight FROM codes WHERE code = 'p')
-- lists over results, and functions of rows and results alike
SELECT string_agg(code, ',' ORDER BY code DESC) AS k FROM codes
WITH r AS (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) SELECT string_agg(kind || ':' || n::TEXT, ', ' ORDER BY n DESC) AS m0 FROM r WHERE n > 20
WITH r AS (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) SELECT array_agg(n ORDER BY kind) AS m0, list(kind ORDER BY kind) AS k FROM r WHERE n > 20
SELECT lpad(x::TEXT, 3, '0') AS k, COUNT(*) AS n FROM a GROUP BY k
SELECT rpad(code, 2, '*') AS k, COUNT(*) AS n, SUM(trunc(y)) AS m0 FROM a WHERE date_add(day, INTERVAL 1 DAY) > '2024-02-01' GROUP BY k
SELECT lpad(kind, 1, 'x') AS k, COUNT(*) AS n, COUNT(*) FILTER (WHERE rpad(word, 1, 'x') = 'w') AS m0 FROM a GROUP BY k
WITH r AS (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) SELECT lpad(kind, 3, '*') AS k, round(sin(n) + degrees(pi()), 6) AS m0 FROM r WHERE n > 20
WITH r AS (SELECT date_trunc('month', day) AS k, COUNT(*) AS n FROM a GROUP BY 1) SELECT k, n FROM r WHERE k < CURRENT_DATE AND k < now()
SELECT COUNT(*) AS n FROM a WHERE x > (SELECT weight FROM codes WHERE code = 'r')
WITH r AS (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) SELECT COUNT(*) AS n FROM a WHERE big > (SELECT n FROM r WHERE 'q' = kind)
SELECT COUNT(*) AS n FROM a WHERE day < date_trunc('week', DATE '2024-02-08') - INTERVAL '1 millisecond' AND day > DATE '2024-01-05' - INTERVAL 5 HOUR
SELECT day + INTERVAL 36 HOUR AS k, COUNT(*) AS n FROM a WHERE length(trim(BOTH ' ' FROM word)) = 2 GROUP BY k
SELECT kind, COUNT(*) AS n FROM a JOIN (SELECT kind AS c, COUNT(*) AS m FROM a GROUP BY kind) AS q ON a.kind = q.c OR (a.kind IS NULL AND q.c IS NULL) WHERE m > 10 GROUP BY kind
SELECT size, COUNT(*) AS n FROM b LEFT JOIN (SELECT size AS c, COUNT(*) AS m FROM b WHERE size = 's' GROUP BY size) AS q ON q.c IS NOT DISTINCT FROM b.size WHERE m IS NULL GROUP BY size
SELECT code, m, COUNT(*) AS n FROM a JOIN (SELECT code AS c, COUNT(*) AS m FROM a GROUP BY code) AS q ON code IS NOT DISTINCT FROM c GROUP BY ALL
SELECT m, COUNT(*) AS n FROM a, (SELECT code AS c, x AS v, COUNT(*) AS m FROM a GROUP BY ALL) AS q WHERE (x = v OR v IS NULL AND x IS NULL) AND (code = c OR (code IS NULL AND c IS NULL)) GROUP BY m
SELECT m, COUNT(*) AS n FROM a JOIN (SELECT code AS c, x AS v, COUNT(*) AS m FROM a GROUP BY ALL) AS q ON x IS NOT DISTINCT FROM v AND code = c GROUP BY m
SELECT day, m, SUM(x) AS n FROM a LEFT JOIN (SELECT day AS d, COUNT(*) AS m FROM a WHERE x > 3 GROUP BY day HAVING COUNT(*) > 5) AS q ON d IS NOT DISTINCT FROM day GROUP BY ALL
SELECT weight, COUNT(*) AS n FROM a JOIN (SELECT code AS c, MAX(weight) AS weight FROM codes GROUP BY code) AS q ON a.code IS NOT DISTINCT FROM c GROUP BY weight
-- IN, ANY and ALL of rows that depend on the row around
SELECT COUNT(*) AS n FROM b WHERE z IN (SELECT x FROM a WHERE a.uid = b.uid)
SELECT COUNT(*) AS n FROM b LEFT JOIN a ON a.uid = b.uid WHERE a.uid NOT IN (SELECT uid FROM b WHERE w > 0 AND size = 's')
SELECT COUNT(*) AS n FROM b WHERE z NOT IN (SELECT x FROM a WHERE a.uid = b.uid)
SELECT COUNT(*) AS n FROM b WHERE NOT z >= ALL (SELECT x FROM a WHERE a.uid = b.uid) AND size = 'm'
SELECT COUNT(*) AS n FROM b WHERE w > ANY (SELECT y FROM a WHERE a.uid = b.uid AND a.code = 'p')
SELECT COUNT(*) AS n FROM b WHERE NOT w > ANY (SELECT y FROM a WHERE a.uid = b.uid)
SELECT COUNT(*) AS n FROM a WHERE x > ALL (SELECT weight FROM codes AS c WHERE c.code = a.code)
-- LATERAL
SELECT kind, COUNT(*) AS n, SUM(d) AS m0 FROM a, LATERAL (SELECT a.x * 2 AS d) AS q WHERE d > 4 GROUP BY kind
SELECT e, COUNT(*) AS n FROM a CROSS JOIN LATERAL (SELECT x + 1) AS q(d) CROSS JOIN LATERAL (SELECT q.d * 2 AS e) AS r GROUP BY r.e
SELECT COUNT(d) AS n, COUNT(*) AS m0 FROM a LEFT JOIN LATERAL (SELECT x * 2 AS d WHERE x > 2) AS q ON TRUE
SELECT codes.label, COUNT(*) AS n FROM a LEFT JOIN LATERAL (SELECT label FROM codes WHERE codes.code = a.code AND weight < 3) AS codes ON TRUE GROUP BY 1
SELECT COUNT(*) AS n FROM b JOIN LATERAL (SELECT a.x + b.z AS s FROM a WHERE a.uid = b.uid AND a.x > b.w) AS q ON s > 9
SELECT COUNT(*) AS n, SUM(q.m) AS m0 FROM b, LATERAL (SELECT COUNT(*) AS n, SUM(x) AS m FROM a WHERE a.uid = b.uid) AS q WHERE q.n > 1
SELECT t.kind, u.label, t.n FROM (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) AS t, LATERAL (SELECT label FROM codes AS c WHERE c.code = t.kind) AS u
SELECT c.code, q.n FROM codes AS c, LATERAL (SELECT COUNT(*) AS n FROM a WHERE a.code = c.code) AS q
SELECT COUNT(*) AS n FROM (SELECT * FROM a, LATERAL (SELECT x * 2 AS d) AS q) AS r WHERE d < 12
SELECT COUNT(*) AS n FROM b, LATERAL (SELECT b.z * 2 AS x, b.w AS w) AS q WHERE EXISTS (SELECT 1 FROM a AS q WHERE q.uid = b.uid AND q.x > b.z)
SELECT COUNT(*) AS n FROM b, LATERAL (SELECT b.z + 1 AS d) AS q WHERE EXISTS (SELECT 1 FROM a WHERE a.uid = b.uid AND a.x < q.d)
-- conditions on keys
SELECT x, COUNT(*) AS n FROM a WHERE x BETWEEN 3 AND 6 GROUP BY x
SELECT x, COUNT(*) AS n FROM a WHERE x NOT BETWEEN 3 AND 6 GROUP BY x
SELECT x, COUNT(*) AS n FROM a WHERE x NOT IN (1, 2, 3) AND x > 0 GROUP BY x
SELECT word, COUNT(*) AS n FROM a WHERE word LIKE '%3' OR word ILIKE 'W5' GROUP BY word
SELECT code, COUNT(*) AS n FROM a WHERE code NOT LIKE 'p%' GROUP BY code
SELECT kind, COUNT(*) AS n FROM a WHERE kind IN ('q', 's', 'unknown') GROUP BY kind
SELECT day, COUNT(*) AS n FROM a WHERE day BETWEEN DATE '2024-01-30' AND DATE '2024-02-02' GROUP BY day ORDER BY day
SELECT kind, COUNT(*) AS n FROM a GROUP BY kind HAVING kind > 'p'
SELECT word || kind AS k, COUNT(*) AS n FROM a WHERE word || kind > 'w4' GROUP BY 1
-- dates and CASE as keys
SELECT date_trunc('month', day) AS k, COUNT(*) AS n, SUM(x) AS m0 FROM a GROUP BY 1 ORDER BY 1
SELECT date_trunc('week', day) AS k, COUNT(*) AS n FROM a GROUP BY 1 ORDER BY 1
SELECT EXTRACT(dow FROM day) AS k, COUNT(*) AS n FROM a GROUP BY 1 ORDER BY k DESC
SELECT strftime(day, '%Y-%m') AS k, COUNT(*) AS n FROM a GROUP BY k HAVING COUNT(*) > 0
SELECT CASE WHEN x < 3 THEN 'low' WHEN x < 7 THEN 'middle' ELSE 'high' END AS k, COUNT(*) AS n FROM a GROUP BY 1
SELECT CASE kind WHEN 'p' THEN 1 WHEN 'q' THEN 2 END AS k, COUNT(*) AS n FROM a GROUP BY 1 HAVING COUNT(*) > 0
SELECT CASE WHEN y > 0 THEN code END AS k, COUNT(*) AS n FROM a GROUP BY 1
SELECT floor(y / 2) * 2 AS k, COUNT(*) AS n, AVG(y) AS mean FROM a GROUP BY 1 HAVING COUNT(*) > 3
SELECT last_day(day) AS k, COUNT(DISTINCT uid) AS n FROM a WHERE day < DATE '2024-02-15' GROUP BY 1
SELECT day - DATE '2024-01-01' AS k, COUNT(*) AS n FROM a WHERE day < DATE '2024-01-06' GROUP BY 1
-- FILTER and HAVING
SELECT kind, COUNT(*) FILTER (WHERE x > 5) AS m0, SUM(x) FILTER (WHERE y < 0 AND code = 'p') AS m1 FROM a GROUP BY kind
SELECT word, SUM(x) AS m0 FROM a GROUP BY word HAVING SUM(x) > 600
SELECT word, AVG(y) AS mean FROM a GROUP BY word HAVING AVG(y) > 0 AND COUNT(*) > 100
SELECT kind, COUNT(*) AS n FROM a GROUP BY kind HAVING COUNT(*) FILTER (WHERE x IS NULL) > 20
SELECT SUM(x) AS m0 FROM a HAVING COUNT(*) > 10
SELECT SUM(x) AS m0 FROM a HAVING COUNT(*) > 10000
-- windows over results
SELECT word, COUNT(*) AS n, RANK() OVER (ORDER BY word) AS r FROM a GROUP BY word ORDER BY word
SELECT word, n, SUM(n) OVER (ORDER BY word) AS m0 FROM (SELECT word, COUNT(*) AS n FROM a GROUP BY word) AS q ORDER BY word
SELECT word, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM a GROUP BY word
SELECT word, kind, COUNT(*) AS n FROM a GROUP BY word, kind HAVING COUNT(*) > 9 QUALIFY ROW_NUMBER() OVER (PARTITION BY kind ORDER BY word) <= 2
SELECT word, n - LAG(n) OVER (ORDER BY word) AS step FROM (SELECT word, COUNT(*) AS n FROM a GROUP BY word HAVING COUNT(*) > 5) AS q
SELECT word, NTILE(2) OVER (ORDER BY word) AS half, COUNT(*) AS n FROM a GROUP BY word
-- groups of results that may be NULL, or that a default adds
SELECT q.before, COUNT(*) AS n FROM a JOIN (SELECT kind, LAG(kind) OVER (ORDER BY kind) AS before FROM (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) AS p) AS q ON a.kind = q.kind GROUP BY q.before
SELECT q.before, COUNT(*) AS n FROM a JOIN (SELECT kind, LAG(kind, 1, 'none') OVER (ORDER BY kind) AS before FROM (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) AS p) AS q ON a.kind = q.kind GROUP BY q.before
SELECT q.c, COUNT(*) AS n FROM a JOIN (SELECT kind, coalesce(l, 'none') AS c FROM (SELECT kind, LEAD(kind, 2) OVER (ORDER BY kind DESC) AS l FROM (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) AS p) AS r) AS q ON a.kind = q.kind GROUP BY q.c
SELECT q.l IS NULL AS missing, COUNT(*) AS n FROM a JOIN (SELECT kind, MIN(kind) FILTER (WHERE n > 400) AS l FROM (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) AS p GROUP BY kind) AS q ON a.kind = q.kind GROUP BY 1
SELECT q.k, COUNT(*) AS n FROM a JOIN (SELECT p.kind, r.kind AS k FROM (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) AS p LEFT JOIN (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind HAVING kind = 'p') AS r ON p.kind = r.kind) AS q ON a.kind = q.kind GROUP BY q.k
SELECT COUNT(*) AS n FROM a CROSS JOIN (SELECT MAX(kind) AS l FROM (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind HAVING COUNT(*) > 10000) AS p) AS q WHERE q.l IS NULL
-- FILTER in a window, aggregates inside a window
SELECT kind, MIN(n) FILTER (WHERE n > 100) OVER () AS v FROM (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind HAVING COUNT(*) > 5) AS q
SELECT SUM(SUM(n)) OVER () AS m0 FROM (SELECT kind, COUNT(*) AS n FROM a GROUP BY kind) AS q
-- CTEs used twice, set operations
WITH c AS (SELECT word, COUNT(*) AS n FROM a GROUP BY word HAVING COUNT(*) > 5) SELECT l.word, r.n AS n FROM c AS l JOIN c AS r ON l.word = r.word
WITH c AS (SELECT word, COUNT(*) AS n FROM a GROUP BY word HAVING COUNT(*) > 5) SELECT word, n FROM c WHERE n >= (SELECT AVG(n) FROM c)
WITH c AS (SELECT uid, x, kind FROM a WHERE y > 0) SELECT (SELECT COUNT(*) FROM c) AS m0, (SELECT COUNT(*) FROM c WHERE kind = 'p') AS m1
WITH c AS (SELECT kind, x FROM a), d AS (SELECT kind, x FROM c WHERE x > 2) SELECT kind, SUM(x) AS m0 FROM d GROUP BY kind
SELECT kind AS k, COUNT(*) AS n FROM a GROUP BY kind UNION ALL SELECT 'all', COUNT(*) FROM a
SELECT COUNT(*) AS n FROM (SELECT uid, x FROM a WHERE x > 5 UNION ALL SELECT uid, z FROM b WHERE z > 5) AS u
SELECT k, COUNT(*) AS n FROM (SELECT uid, kind AS k FROM a UNION ALL SELECT uid, city FROM b) AS u GROUP BY k
SELECT word AS k FROM a GROUP BY word EXCEPT SELECT 'w1'
-- semi-joins and subqueries
SELECT COUNT(*) AS n FROM a WHERE code IN (SELECT code FROM codes WHERE weight > 0)
SELECT COUNT(*) AS n FROM a WHERE code NOT IN (SELECT code FROM codes WHERE code IS NOT NULL)
SELECT COUNT(*) AS n FROM a WHERE EXISTS (SELECT 1 FROM codes WHERE codes.code = a.kind AND weight < 2)
SELECT size, COUNT(*) AS n FROM b WHERE uid IN (SELECT uid FROM a WHERE x > 8) GROUP BY size
SELECT size, COUNT(*) AS n FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.uid = b.uid AND a.x > b.z) GROUP BY size
SELECT kind, COUNT(*) AS n FROM a WHERE uid IN (SELECT uid FROM a GROUP BY uid HAVING COUNT(*) FILTER (WHERE x > 6) >= 2) GROUP BY kind
SELECT kind, COUNT(*) AS n FROM a WHERE x > 8 OR uid IN (SELECT uid FROM b WHERE z > 5) GROUP BY kind
SELECT COUNT(*) AS n FROM a WHERE x > 8 OR uid IN (SELECT uid FROM a WHERE x > 8)
SELECT COUNT(*) AS n FROM b WHERE z > 8 OR NOT EXISTS (SELECT 1 FROM a WHERE a.uid = b.uid AND x > 5) AND z > 1
SELECT COUNT(*) AS n FROM a WHERE x > 8 OR code IN (SELECT code FROM codes WHERE weight > 0)
SELECT COUNT(*) AS n, SUM(CASE WHEN uid IN (SELECT uid FROM b WHERE z > 5) THEN x ELSE 0 END) AS m0 FROM a
SELECT COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM b WHERE b.uid = a.uid AND z > 5) OR x > 8) AS n FROM a
SELECT EXISTS (SELECT 1 FROM b WHERE b.uid = a.uid AND z > 5) AS k, COUNT(*) AS n, SUM(x) AS m0 FROM a GROUP BY k
SELECT SUM(x) AS m0 FROM (SELECT a.*, EXISTS (SELECT 1 FROM b WHERE b.uid = a.uid AND z > 5) AS k FROM a) AS t WHERE k
SELECT COUNT(*) AS n FROM a WHERE x > (SELECT AVG(x) FROM a AS other WHERE other.uid = a.uid)
SELECT COUNT(*) AS n FROM a WHERE x > (SELECT AVG(x) FROM a AS other WHERE other.kind = a.kind)
SELECT COUNT(*) AS n FROM a WHERE x > (SELECT AVG(x) FROM a)
SELECT COUNT(*) AS n FROM a WHERE word IN (SELECT word FROM a GROUP BY word ORDER BY SUM(x) DESC LIMIT 2)
SELECT COUNT(*) AS n FROM a WHERE (SELECT COUNT(*) FROM b WHERE b.uid = a.uid) = 0
SELECT COUNT(*) AS n FROM a WHERE (SELECT COALESCE(SUM(z), 0) FROM b WHERE b.uid = a.uid) = 0
SELECT COUNT(*) AS n FROM a WHERE (SELECT CASE WHEN MAX(z) > 4 THEN 1 ELSE 0 END FROM b WHERE b.uid = a.uid) = 0
SELECT COUNT(*) AS n FROM a WHERE (SELECT MIN(z) IS NULL FROM b WHERE b.uid = a.uid AND b.z > 3)
SELECT COUNT(*) AS n FROM a WHERE (SELECT 2 * COUNT(*) - COUNT(DISTINCT size) + COALESCE(MAX(z) FILTER (WHERE z > 5), -1) FROM b WHERE b.uid = a.uid) > 0
SELECT (SELECT COALESCE(MAX(z), -1) FROM b WHERE b.uid = a.uid) > 2 AS k, COUNT(*) AS n, SUM((SELECT COUNT(*) + 1 FROM b WHERE b.uid = a.uid)) AS m0 FROM a GROUP BY k
SELECT COUNT(*) AS n FROM a WHERE x > (SELECT COALESCE(MAX(weight), 0) + COUNT(*) FROM codes WHERE codes.code = a.kind AND weight > 1)
-- ROLLUP, CUBE, GROUPING SETS
SELECT kind, GROUPING(kind) AS g, COUNT(*) AS n FROM a GROUP BY ROLLUP (kind)
SELECT code, GROUPING(code) AS g, COUNT(*) AS n, SUM(x) AS m0 FROM a GROUP BY ROLLUP (code)
SELECT code, kind, GROUPING(code, kind) AS g, COUNT(*) AS n FROM a GROUP BY CUBE (code, kind)
SELECT kind, word, GROUPING(kind) AS g, GROUPING(word) AS h, SUM(x) AS m0 FROM a GROUP BY GROUPING SETS ((kind), (word), ())
SELECT kind, x, GROUPING(kind, x) AS g, COUNT(*) AS n FROM a WHERE x IN (1, 2) GROUP BY ROLLUP (kind, x) HAVING COUNT(*) > 0
-- DISTINCT
SELECT COUNT(DISTINCT uid) AS m0, COUNT(DISTINCT x) AS m1, COUNT(DISTINCT word) AS m2, SUM(DISTINCT x) AS m3, AVG(DISTINCT x) AS mean FROM a
SELECT kind, COUNT(DISTINCT word) AS m0, COUNT(DISTINCT x) FILTER (WHERE y > 4) AS m1 FROM a GROUP BY kind
SELECT COUNT(*) AS n FROM (SELECT DISTINCT kind, word FROM a WHERE x > 3) AS t
SELECT kind, COUNT(*) AS n FROM (SELECT DISTINCT kind, word, code FROM a) AS t GROUP BY kind
SELECT DISTINCT kind FROM a GROUP BY kind, word HAVING COUNT(*) > 5
SELECT COUNT(DISTINCT kind || word) AS n FROM a
-- by the person
SELECT AVG(m) AS mean FROM (SELECT uid, AVG(x) AS m FROM a GROUP BY uid) AS q
SELECT n, COUNT(*) AS m0 FROM (SELECT uid, COUNT(*) FILTER (WHERE x > 4) AS n FROM a GROUP BY uid) AS q GROUP BY n
SELECT kind, AVG(n) AS mean FROM (SELECT uid, MIN(kind) AS kind, COUNT(x) AS n FROM a GROUP BY uid) AS q GROUP BY kind HAVING COUNT(*) > 0
SELECT COUNT(*) AS n FROM (SELECT uid FROM a GROUP BY uid HAVING SUM(x) > 15 AND MAX(day) < DATE '2024-02-10') AS q
SELECT u % 3 AS k, COUNT(*) AS n FROM (SELECT uid + 1 AS u, MAX(x) AS m FROM a GROUP BY uid + 1) AS q GROUP BY 1
SELECT COUNT(*) AS n, SUM(s) AS m0 FROM (SELECT CAST(uid AS VARCHAR) AS u, kind, SUM(x) AS s FROM a GROUP BY 1, 2) AS q WHERE s > 3
SELECT first, COUNT(*) AS n FROM (SELECT uid, kind AS first, ROW_NUMBER() OVER (PARTITION BY uid ORDER BY big) AS r FROM a) AS q WHERE r = 1 GROUP BY first
SELECT COUNT(*) AS n FROM (SELECT uid, x - LAG(x) OVER (PARTITION BY uid ORDER BY big) AS step FROM a) AS q WHERE step > 0
SELECT SUM(m) AS m0, SUM(l) AS m1 FROM (SELECT uid, MAX_BY(x, big) AS m, ARG_MIN(x, big) FILTER (WHERE kind = 'p') AS l FROM a GROUP BY uid) AS q
SELECT first, last, COUNT(*) AS n FROM (SELECT uid, FIRST(kind ORDER BY big) AS first, LAST(code ORDER BY big) AS last FROM a GROUP BY uid) AS q GROUP BY first, last
SELECT kind, SUM(v) AS m0 FROM (SELECT uid, kind, FIRST(x ORDER BY y DESC, big) AS v FROM a GROUP BY uid, kind) AS q GROUP BY kind
SELECT SUM(v) AS m0, SUM(c) AS m1, COUNT(*) AS n FROM (SELECT uid, c, ARG_MAX(x, x) AS v FROM (SELECT uid, x, COUNT(*) AS c FROM a GROUP BY uid, x) AS q GROUP BY uid, c) AS r
SELECT kind, COUNT(*) AS n, SUM(x) AS m0 FROM (SELECT DISTINCT ON (uid) uid, kind, x FROM a ORDER BY uid, big DESC) AS q GROUP BY kind
WITH d AS (SELECT DISTINCT ON (1, 2) uid AS u, code AS c, x FROM a WHERE x > 2 ORDER BY u, c, y NULLS FIRST, big) SELECT c, SUM(x) AS m0 FROM d GROUP BY c
SELECT t.k, COUNT(a.x) AS n FROM (SELECT DISTINCT ON (2) * FROM (VALUES ('p', 1, 2), ('q', 1, 1), ('p', 2, 3)) AS v(k, g, o) ORDER BY 3, 1) AS t JOIN a ON a.kind = t.k GROUP BY t.k
SELECT size, SUM(n) AS m0, COUNT(*) AS n FROM b LEFT JOIN (SELECT uid, COUNT(*) AS n FROM a GROUP BY uid) AS q USING (uid) GROUP BY size
-- order and limits
SELECT word, COUNT(*) AS n FROM a GROUP BY word ORDER BY word DESC LIMIT 3
SELECT x, COUNT(*) AS n FROM a WHERE x IS NOT NULL GROUP BY x ORDER BY x LIMIT 4 OFFSET 2
SELECT day, SUM(x) AS m0 FROM a WHERE day < DATE '2024-03-01' GROUP BY day ORDER BY day LIMIT 5
SELECT kind, word, COUNT(*) AS n FROM a WHERE kind IN ('p', 'q') GROUP BY kind, word ORDER BY kind DESC, word LIMIT 6
SELECT word FROM a GROUP BY word ORDER BY 1
SELECT COUNT(*) AS n FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.uid = a.uid AND b.size = 'm' AND a.kind = 'q')
-- database: bi
SELECT country, COUNT(*) AS n FROM users GROUP BY country ORDER BY country
SELECT plan, is_active, COUNT(*) AS n, AVG(age) AS mean FROM users GROUP BY plan, is_active
SELECT c.continent, COUNT(*) AS n FROM users AS u JOIN countries AS c ON c.code = u.country GROUP BY c.continent
SELECT u.country, COUNT(o.order_id) AS m0, SUM(o.price * o.quantity) AS m1 FROM users AS u LEFT JOIN orders AS o ON o.user_id = u.user_id GROUP BY u.country
SELECT COUNT(*) AS n FROM users AS u LEFT JOIN orders AS o ON o.user_id = u.user_id WHERE o.order_id IS NULL
SELECT p.category, o.status, SUM(o.price * (1 - coalesce(o.discount, 0))) AS m0 FROM orders AS o JOIN products AS p USING (product_id) GROUP BY 1, 2
SELECT floor(age / 10) * 10 AS decade, COUNT(*) AS n FROM users GROUP BY 1 HAVING COUNT(*) > 5
SELECT date_trunc('quarter', created_at) AS k, status, COUNT(*) AS n FROM orders GROUP BY 1, 2 ORDER BY 1, 2
SELECT kind, COUNT(*) AS n, AVG(duration_ms) AS mean FROM events WHERE page LIKE '/product/%' GROUP BY kind HAVING COUNT(*) > 0
SELECT AVG(total) AS mean FROM (SELECT user_id, SUM(quantity) AS total FROM orders GROUP BY user_id) AS q
SELECT channel, n FROM (SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel) AS q WHERE n > 100 ORDER BY n DESC LIMIT 2
SELECT COUNT(DISTINCT user_id) AS n FROM orders WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'error')
SELECT plan, COUNT(*) AS n FROM users WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.user_id = users.user_id AND o.status = 'refunded') GROUP BY plan
SELECT country, plan, GROUPING(country, plan) AS g, COUNT(*) AS n FROM users GROUP BY ROLLUP (country, plan)
SELECT status, SUM(CASE WHEN quantity > 10 THEN 1 ELSE 0 END) AS m0, COUNT(DISTINCT product_id) AS m1 FROM orders GROUP BY status
SELECT split_part(page, '/', 2) AS k, COUNT(*) AS n FROM events GROUP BY 1
SELECT SUM(CASE WHEN quantity > 10 THEN 1 ELSE 2 END) AS m0, SUM(CASE WHEN quantity > 10 THEN 2 ELSE 0 END) AS m1, SUM(CASE WHEN quantity > 10 THEN 1 WHEN quantity > 5 THEN 2 ELSE 0 END) AS m2, SUM(CASE WHEN quantity > 10 THEN 0 ELSE 2 END) AS m3 FROM orders
SELECT SUM(CASE WHEN quantity > 10 THEN 0 ELSE 1 END) AS m0, SUM(CASE WHEN quantity > 10 THEN NULL ELSE 1 END) AS m1, SUM(CASE WHEN quantity > 10 THEN 1 WHEN status = 'paid' THEN 1 ELSE NULL END) AS m2, SUM(2) AS m3 FROM orders
SELECT country, COUNT(*) AS c FROM users GROUP BY country HAVING COUNT(*) > NULL UNION ALL SELECT country, COUNT(*) AS c FROM users GROUP BY country
SELECT (SELECT COUNT(*) FROM users HAVING COUNT(*) > NULL) AS m0, COUNT(*) AS n FROM (SELECT country, COUNT(*) AS c FROM users GROUP BY country) AS q WHERE c BETWEEN 3 AND 9
SELECT country, plan, COUNT(*) AS n FROM users GROUP BY 1, 2 UNION ALL SELECT country, CAST(NULL AS TEXT), COUNT(*) FROM users GROUP BY 1, 2 UNION ALL SELECT CAST(NULL AS TEXT), CAST(NULL AS TEXT), COUNT(*) FROM users GROUP BY 1, 2
SELECT country, country || NULL AS k, COUNT(*) AS n FROM users GROUP BY country, country || NULL

-- database: tpch
SELECT o_orderstatus, COUNT(*) AS n, AVG(o_totalprice) AS mean FROM orders GROUP BY o_orderstatus ORDER BY 1
SELECT n_name, COUNT(*) AS n FROM customer JOIN nation ON c_nationkey = n_nationkey GROUP BY n_name
SELECT r_name, c_mktsegment, COUNT(*) AS n FROM customer, nation, region WHERE c_nationkey = n_nationkey AND n_regionkey = r_regionkey GROUP BY 1, 2
SELECT year(o_orderdate) AS k, COUNT(*) AS n FROM orders WHERE o_orderdate BETWEEN DATE '1994-06-01' AND DATE '1996-02-01' GROUP BY 1 ORDER BY 1
SELECT l_shipmode, COUNT(*) FILTER (WHERE l_receiptdate > l_commitdate) AS m0 FROM lineitem WHERE l_shipmode LIKE '%AIR%' GROUP BY l_shipmode
SELECT c_mktsegment, COUNT(*) AS n FROM customer LEFT JOIN orders ON c_custkey = o_custkey WHERE o_orderkey IS NULL GROUP BY c_mktsegment
SELECT l_returnflag, GROUPING(l_returnflag) AS g, SUM(l_quantity) AS m0 FROM lineitem GROUP BY CUBE (l_returnflag)
SELECT p_brand, SUM(l_quantity) AS m0 FROM lineitem JOIN part ON p_partkey = l_partkey WHERE p_size BETWEEN 1 AND 15 GROUP BY p_brand
SELECT n, COUNT(*) AS m0 FROM (SELECT c_custkey, COUNT(o_orderkey) AS n FROM customer LEFT JOIN orders ON c_custkey = o_custkey GROUP BY c_custkey) AS q GROUP BY n
SELECT COUNT(*) AS n FROM orders WHERE o_totalprice > (SELECT AVG(o_totalprice) FROM orders)
SELECT COUNT(*) AS n, SUM(t) AS m0 FROM (SELECT l_orderkey, COUNT(*) AS t FROM lineitem GROUP BY l_orderkey) AS q WHERE t > 2
SELECT o_orderstatus, COUNT(*) AS n FROM orders WHERE (SELECT COALESCE(SUM(l_quantity), 0) FROM lineitem WHERE l_orderkey = o_orderkey) < 100 GROUP BY o_orderstatus
SELECT o_orderpriority, AVG(t) AS mean FROM (SELECT o_orderkey, o_orderpriority, MAX(l_quantity) AS t FROM lineitem JOIN orders ON l_orderkey = o_orderkey GROUP BY o_orderkey, o_orderpriority) AS q GROUP BY o_orderpriority
SELECT COUNT(*) AS n FROM orders WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 150)
SELECT COUNT(*) AS n FROM (SELECT DISTINCT l_orderkey, l_shipmode FROM lineitem) AS q
SELECT COUNT(*) AS n, SUM(t) AS m0 FROM (SELECT l_orderkey + 0 AS k, COUNT(*) AS t FROM lineitem GROUP BY k) AS q WHERE t > 2
SELECT COUNT(*) AS n, SUM(t) AS m0 FROM (SELECT k, COUNT(*) AS t FROM (SELECT DISTINCT CAST(l_orderkey AS VARCHAR) AS k, l_shipmode FROM lineitem) AS d GROUP BY k) AS q WHERE t > 2
SELECT COUNT(*) AS n, SUM(t) AS m0 FROM (SELECT k, COUNT(*) AS t FROM (SELECT l_orderkey AS k FROM lineitem UNION ALL SELECT o_orderkey FROM orders) AS d GROUP BY k) AS q WHERE t > 2
SELECT COUNT(*) AS n, SUM(t) AS m0 FROM (SELECT l_orderkey, MAX(r) AS t FROM (SELECT l_orderkey, RANK() OVER (PARTITION BY o_custkey ORDER BY l_quantity) AS r FROM lineitem JOIN orders ON l_orderkey = o_orderkey) AS d GROUP BY l_orderkey) AS q
SELECT COUNT(*) AS n FROM (SELECT o_custkey, SUM(CASE WHEN o_totalprice > 300000 THEN 1 WHEN o_orderstatus = 'P' THEN 1 END) AS s FROM orders GROUP BY o_custkey) AS q WHERE s IS NULL
SELECT COUNT(*) AS n, SUM(s) AS m0 FROM (SELECT o_custkey, SUM(CAST(o_totalprice > 150000 AS INTEGER)) AS s FROM orders GROUP BY o_custkey) AS q WHERE s > 0
SELECT SUM(r) AS m0 FROM (SELECT o_custkey, row_number() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC, o_orderkey) AS r FROM (SELECT o_custkey, o_totalprice, o_orderkey FROM orders QUALIFY row_number() OVER (PARTITION BY o_custkey ORDER BY o_totalprice, o_orderkey) > 1) AS s) AS q
SELECT COUNT(*) AS n FROM (SELECT o_custkey, first(o_orderstatus ORDER BY o_orderkey) AS f FROM (SELECT o_custkey, o_orderstatus, o_orderkey FROM orders QUALIFY row_number() OVER (PARTITION BY o_custkey ORDER BY o_orderkey) > 1) AS s GROUP BY o_custkey) AS q WHERE f = 'F'
