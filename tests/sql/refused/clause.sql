-- query: sample
-- sqlstate: 0A000
-- at: 10
SELECT COUNT(*) FROM visits TABLESAMPLE 10 PERCENT

-- query: recursive
-- sqlstate: 0A000
-- at: t
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT COUNT(*) FROM t

-- query: unnest_of_no_list
-- sqlstate: 0A000
-- at: 5
SELECT COUNT(*) FROM patients JOIN UNNEST(5) AS v(a) ON age = a

-- query: values_without_rows
-- sqlstate: 0A000
-- at: v(a)
SELECT COUNT(*) FROM patients JOIN UNNEST([]) AS v(a) ON age = a

-- query: product_of_rollups
-- sqlstate: 0A000
-- at: nights
SELECT COUNT(*) FROM visits GROUP BY ROLLUP (nights + 0, cost)<<20*, ROLLUP (nights + #, cost)>>

-- query: doubling_unions_of_rows
-- sqlstate: 0A000
-- at: x
WITH c0 AS (SELECT nights AS x FROM visits),
  c1 AS (SELECT x FROM c0 UNION ALL SELECT x FROM c0),
  c2 AS (SELECT x FROM c1 UNION ALL SELECT x FROM c1),
  c3 AS (SELECT x FROM c2 UNION ALL SELECT x FROM c2),
  c4 AS (SELECT x FROM c3 UNION ALL SELECT x FROM c3),
  c5 AS (SELECT x FROM c4 UNION ALL SELECT x FROM c4),
  c6 AS (SELECT x FROM c5 UNION ALL SELECT x FROM c5),
  c7 AS (SELECT x FROM c6 UNION ALL SELECT x FROM c6),
  c8 AS (SELECT x FROM c7 UNION ALL SELECT x FROM c7),
  c9 AS (SELECT x FROM c8 UNION ALL SELECT x FROM c8)
SELECT COUNT(x) FROM c9

-- query: lateral_column_where_its_table_has_another_meaning
-- sqlstate: 0A000
-- at: v.nights AS d
SELECT COUNT(*) FROM visits AS v, LATERAL (SELECT v.nights AS d, v.patient_id AS p) AS x WHERE x.d < (SELECT MAX(v.nights) FROM visits AS v WHERE v.patient_id = x.p)

-- query: position_beside_a_star_in_distinct_on
-- sqlstate: 0A000
-- at: patient_id) *
SELECT ward, COUNT(*) FROM (SELECT DISTINCT ON (patient_id) *, -nights AS q FROM visits ORDER BY patient_id, 2) AS t GROUP BY ward

-- query: array
-- sqlstate: 0A000
-- at: ward
SELECT COUNT(*) FROM visits WHERE [ward] = ['er']

-- query: contained_list
-- sqlstate: 0A000
-- at: ward
SELECT COUNT(*) FROM visits WHERE ARRAY[ward] <@ ARRAY['er']

-- query: collation
-- sqlstate: 0A000
-- at: ward
SELECT COUNT(*) FROM visits WHERE ward COLLATE "C" = 'er'

-- query: over_results
-- sqlstate: 0A000
-- at: k GLOB
SELECT k FROM (SELECT ward AS k, COUNT(*) AS n FROM visits GROUP BY ward) AS t WHERE k GLOB 'e*'

-- query: qualify_over_groups_without_a_window
-- sqlstate: 0A000
-- at: n > 5
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward QUALIFY n > 5

-- query: qualify_over_rows_without_a_window
-- sqlstate: 0A000
-- at: nights > 5
SELECT COUNT(*) FROM (SELECT nights FROM visits QUALIFY nights > 5) AS t
