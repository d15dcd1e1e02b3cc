-- query: in_order
-- sqlstate: 0A000
-- at: DP_ERROR
SELECT t.n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t JOIN regions AS r ON t.ward = r.region ORDER BY DP_ERROR(t.n)
