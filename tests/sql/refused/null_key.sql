-- query: null
-- sqlstate: 42804
-- at: NULL
SELECT NULL AS x, COUNT(*) FROM visits GROUP BY x

-- query: always_null
-- sqlstate: 42804
-- at: ward
SELECT ward LIKE NULL, COUNT(*) FROM visits GROUP BY 1
