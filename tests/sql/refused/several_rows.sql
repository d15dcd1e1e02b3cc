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
