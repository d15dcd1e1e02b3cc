-- query: list
-- parameters: {"a": [1, 2]}
-- sqlstate: 22023
SELECT COUNT(*) FROM visits WHERE cost > $a
