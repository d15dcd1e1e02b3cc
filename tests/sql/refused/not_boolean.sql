-- query: number
-- sqlstate: 42804
-- at: cost
SELECT COUNT(*) FROM visits WHERE cost

-- query: filter
-- sqlstate: 42804
-- at: nights
SELECT COUNT(*) FILTER (WHERE nights) FROM visits

-- query: having_a_key
-- sqlstate: 42804
-- at: ward)
SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING (ward)

-- query: having_a_count
-- sqlstate: 42804
-- at: COUNT(*)
SELECT ward FROM visits GROUP BY ward HAVING COUNT(*)

-- query: of_a_result
-- sqlstate: 42804
-- at: n
SELECT 1 FROM (SELECT COUNT(*) AS n FROM visits) WHERE n
