-- query: too_many
-- sqlstate: 42P10
-- at: ward
SELECT COUNT(*) FROM (SELECT ward FROM visits) AS t(a, b)
