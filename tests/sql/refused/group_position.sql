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

-- query: order_by
-- sqlstate: 42P10
-- at: 3
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 3

-- query: order_by_a_sign
-- sqlstate: 42P10
-- at: 1
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY -1

-- query: order_of_a_union
-- sqlstate: 42P10
-- at: 2
SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM patients ORDER BY 2
