-- query: null
-- sqlstate: 42804
SELECT NULL AS x, COUNT(*) FROM visits GROUP BY x
