-- query: column
-- sqlstate: 42803
-- at: day
SELECT ward, day, COUNT(*) FROM visits GROUP BY ward

-- query: having
-- sqlstate: 42803
-- at: cost
SELECT ward FROM visits GROUP BY ward HAVING cost > 3

-- query: order
-- sqlstate: 42803
-- at: cost
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY cost

-- query: of_each
-- sqlstate: 42803
-- at: cost
SELECT AVG(x) FROM (SELECT patient_id, cost AS x FROM visits GROUP BY patient_id) AS t

-- query: of_a_public_table
-- sqlstate: 42803
-- at: population
SELECT zone, population FROM regions GROUP BY zone

-- query: beside_a_count_of_a_public_table
-- sqlstate: 42803
-- at: zone
SELECT zone, COUNT(*) FROM regions

-- query: star_over_results
-- sqlstate: 42803
-- at: *
SELECT * FROM (SELECT ward, nights, COUNT(*) AS n FROM visits GROUP BY ward, nights) AS t GROUP BY ward

-- query: star_of_one_result
-- sqlstate: 42803
-- at: t.*
SELECT t.* FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t GROUP BY 1

-- query: in_an_expression_over_results
-- sqlstate: 42803
-- at: n + 1
SELECT ward, n + 1 FROM (SELECT ward, nights, COUNT(*) AS n FROM visits GROUP BY ward, nights) AS t GROUP BY ward

-- query: column_of_the_other_result
-- sqlstate: 42803
-- at: b.ward
SELECT a.ward, b.ward, SUM(a.n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS a JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS b ON a.ward = b.ward GROUP BY a.ward

-- query: having_over_results
-- sqlstate: 42803
-- at: n > 5
SELECT ward, SUM(n) AS s FROM (SELECT ward, nights, COUNT(*) AS n FROM visits GROUP BY ward, nights) AS t GROUP BY ward HAVING n > 5

-- query: order_over_results
-- sqlstate: 42803
-- at: t.nights
SELECT ward, SUM(n) AS s FROM (SELECT ward, 1 AS nights, COUNT(*) AS n FROM visits GROUP BY ward) AS t GROUP BY ward ORDER BY t.nights

-- query: window_over_groups_of_results
-- sqlstate: 42803
-- at: n) OVER
SELECT ward, lag(n) OVER (ORDER BY ward) FROM (SELECT ward, nights, COUNT(*) AS n FROM visits GROUP BY ward, nights) AS t GROUP BY ward
