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
