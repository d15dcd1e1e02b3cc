-- query: grouped
-- sqlstate: 21000
-- at: COUNT
SELECT COUNT(*) FROM visits WHERE nights > (SELECT COUNT(*) FROM visits GROUP BY ward)

-- query: public_rows
-- sqlstate: 21000
-- at: population
SELECT COUNT(*) FROM patients WHERE age > (SELECT population FROM regions)

-- query: limit_of_two
-- sqlstate: 21000
-- at: COUNT
SELECT COUNT(*) FROM visits WHERE nights > (SELECT COUNT(*) FROM visits GROUP BY ward LIMIT 2)

-- query: correlated_public_rows_with_equal_keys
-- sqlstate: 21000
-- at: price
SELECT COUNT(*) FROM visits AS v WHERE 10 < (SELECT price FROM prices AS r WHERE r.ward = v.ward)

-- query: correlated_listed_rows_with_equal_keys
-- sqlstate: 21000
-- at: w FROM
SELECT COUNT(*) FROM visits AS v WHERE 'a' < (SELECT w FROM (VALUES ('er', 'b'), ('er', 'c')) AS r(k, w) WHERE r.k = v.ward)

-- query: groups_beside_a_result
-- sqlstate: 21000
-- at: COUNT(*) / 2
SELECT ward, (SELECT COUNT(*) / 2 FROM visits GROUP BY ward) AS n FROM visits GROUP BY ward

-- query: groups_of_with
-- sqlstate: 21000
-- at: n FROM large)
WITH wards AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward), large AS (SELECT n FROM wards WHERE n > 3)
SELECT ward FROM wards WHERE n > (SELECT n FROM large)

-- query: public_rows_over_results
-- sqlstate: 21000
-- at: population
SELECT (SELECT population FROM regions), COUNT(*) FROM patients

-- query: public_rows_in_having
-- sqlstate: 21000
-- at: population
SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > (SELECT population FROM regions)

-- query: grouped_by_a_private_key_that_where_leaves_open
-- sqlstate: 21000
-- at: COUNT
SELECT COUNT(*) FROM visits WHERE nights > (SELECT COUNT(*) FROM patients WHERE city = 'Oslo' OR age > 3 GROUP BY city)
