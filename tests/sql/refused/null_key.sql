-- query: null
-- sqlstate: 42804
-- at: NULL
SELECT NULL AS x, COUNT(*) FROM visits GROUP BY x
