-- query: having
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 5

-- query: order_limit
-- keys: public
-- l1: 20000
-- rows: 1000
SELECT ward, SUM(cost) AS total FROM visits GROUP BY ward ORDER BY total DESC LIMIT 2

-- query: offset
-- keys: public
-- l1: 20
-- rows: 1
SELECT nights, COUNT(*) FROM visits GROUP BY nights ORDER BY 2, 1 LIMIT 5 OFFSET 3

-- query: order_by_key
-- keys: public
-- l1: 120, 120
-- rows: 120, 120
SELECT region, AVG(age) FROM patients GROUP BY region ORDER BY region DESC

-- query: expression_over_aggregates
-- keys: none
-- l1: 20000, 20000, 400, 400
-- rows: 1000, 1000, 20, 20
SELECT SUM(cost) / COUNT(*) AS mean, round(AVG(change), 1) FROM visits

-- query: window
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM visits GROUP BY ward

-- query: running_total
-- keys: public
-- l1: 20
-- rows: 1
SELECT month, SUM(n) OVER (ORDER BY month) FROM (SELECT date_trunc('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1) AS t

-- query: share
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY ward

-- query: cte
-- keys: public
-- l1: 20
-- rows: 1
WITH t AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) SELECT MAX(n) - MIN(n) FROM t

-- query: cte_twice
-- keys: public
-- l1: 20
-- rows: 1
WITH t AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) SELECT a.ward, a.n, b.n FROM t AS a JOIN t AS b ON a.ward = b.ward

-- query: equal_blocks_once
-- keys: none
-- l1: 20
-- rows: 1
SELECT (SELECT COUNT(*) FROM visits) AS a, (SELECT COUNT(*) FROM visits) AS b

-- query: two_blocks
-- keys: none
-- l1: 20, 1
-- rows: 1, 1
SELECT (SELECT COUNT(*) FROM visits) AS v, (SELECT COUNT(*) FROM patients) AS p

-- query: nested_aggregation
-- keys: public
-- l1: 1
-- rows: 1
SELECT AVG(n) FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) AS t

-- query: joined_results
-- keys: public
-- l1: 20, 20000
-- rows: 1, 1000
SELECT a.ward, a.n, b.s FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS a
JOIN (SELECT ward, SUM(cost) AS s FROM visits GROUP BY ward) AS b USING (ward)

-- query: result_with_public
-- keys: public
-- l1: 1
-- rows: 1
SELECT r.zone, SUM(t.n) FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) AS t
JOIN regions AS r ON r.region = t.region GROUP BY r.zone

-- query: per_head_of_population
-- keys: public
-- l1: 1
-- rows: 1
SELECT t.region, t.n / r.population AS rate FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) AS t
JOIN regions AS r USING (region) ORDER BY rate

-- query: union_of_results
-- keys: none
-- l1: 20, 1
-- rows: 1, 1
SELECT 'visits' AS what, COUNT(*) AS n FROM visits UNION ALL SELECT 'patients', COUNT(*) FROM patients

-- query: except_of_results
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward FROM visits GROUP BY ward EXCEPT SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) < 45

-- query: intersect_of_results
-- keys: public
-- l1: nothing
-- rows: nothing
SELECT region FROM regions INTERSECT SELECT region FROM patients GROUP BY region

-- query: rollup
-- keys: none and public
-- l1: 1, 1, 1
-- rows: 1, 1, 1
SELECT region, sex, COUNT(*) FROM patients GROUP BY ROLLUP (region, sex)

-- query: cube
-- keys: none and public
-- l1: 20000, 20000, 20000, 20000
-- rows: 1000, 1000, 1000, 1000
SELECT ward, nights > 1 AS stays, SUM(cost) FROM visits GROUP BY CUBE (ward, stays)

-- query: grouping_sets
-- keys: none and public
-- l1: 1, 1, 1
-- rows: 1, 1, 1
SELECT region, smoker, COUNT(*), GROUPING(region) FROM patients GROUP BY GROUPING SETS ((region), (smoker), ())

-- query: scalar_subquery_over_result
-- keys: none and public
-- l1: 1, 20
-- rows: 1, 1
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > (SELECT COUNT(*) / 10 FROM patients)

-- query: qualify
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward QUALIFY row_number() OVER (ORDER BY n) = 1

-- query: case_over_result
-- keys: none
-- l1: 1
-- rows: 1
SELECT CASE WHEN COUNT(*) > 100 THEN 'many' ELSE 'few' END FROM patients

-- query: public_only
-- keys: no block
-- l1: nothing
-- rows: nothing
SELECT zone, SUM(population) FROM regions GROUP BY zone ORDER BY zone

-- query: constants
-- keys: no block
-- l1: nothing
-- rows: nothing
SELECT 1 + 1 AS two, 'x' AS x

-- query: union_by_name
-- keys: public
-- l1: 1, 1
-- rows: 1, 1
SELECT region AS a, COUNT(*) AS n FROM patients GROUP BY region
UNION ALL BY NAME SELECT COUNT(*) AS n, sex AS b FROM patients GROUP BY sex

-- query: constant_in_rollup
-- keys: none and public
-- l1: 1, 1, 1
-- rows: 1, 1, 1
SELECT DATE '2024-01-01' AS day, region, COUNT(*) FROM patients GROUP BY ROLLUP (DATE '2024-01-01', region)

-- query: doubling_results
-- keys: none
-- l1: 20
-- rows: 1
SELECT x + x AS x FROM (SELECT x + x AS x FROM (SELECT x + x AS x FROM (SELECT x + x AS x FROM (SELECT x + x AS x FROM (
SELECT x + x AS x FROM (SELECT x + x AS x FROM (SELECT x + x AS x FROM (SELECT x + x AS x FROM (SELECT x + x AS x FROM (
SELECT x + x AS x FROM (SELECT x + x AS x FROM (SELECT x + x AS x FROM (SELECT x + x AS x FROM (SELECT x + x AS x FROM (
SELECT COUNT(*) AS x FROM visits) a) b) c) d) e) f) g) h) i) j) k) l) m) n) o

-- query: order_by_all
-- keys: public
-- l1: 1
-- rows: 1
SELECT region, sex, COUNT(*) FROM patients GROUP BY ALL ORDER BY ALL

-- query: order_by_all_of_a_star
-- keys: public
-- l1: 1
-- rows: 1
SELECT * FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY 1) AS t ORDER BY ALL DESC

-- query: rounded_as_in_postgresql
-- keys: none
-- l1: 120, 120
-- rows: 120, 120
SELECT ROUND(AVG(age)::numeric, 2) AS mean, CAST(SUM(age) AS DECIMAL(18,2)) AS total FROM patients

-- query: window_in_the_order_of_a_number_that_is_no_place
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY 1.5) AS place FROM visits GROUP BY ward

-- query: star_grouped_by_places
-- keys: public
-- l1: 20
-- rows: 1
SELECT t.* FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t GROUP BY 1, 2
