-- query: by_name
-- parameters: {"b": 1}
-- sqlstate: 07001
SELECT COUNT(*) FROM visits WHERE cost > $a
