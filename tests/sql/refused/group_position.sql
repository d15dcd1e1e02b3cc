-- query: zero
-- sqlstate: 42P10
-- at: 0
SELECT COUNT(*) FROM visits GROUP BY 0

-- query: beyond
-- sqlstate: 42P10
-- at: 3
SELECT ward, COUNT(*) FROM visits GROUP BY 3

-- query: of_a_public_table
-- sqlstate: 42P10
-- at: 3
SELECT zone, COUNT(*) FROM regions GROUP BY 3
