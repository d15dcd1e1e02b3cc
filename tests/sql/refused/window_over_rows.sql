-- query: row_number
-- sqlstate: ZP003
-- at: row_number
SELECT COUNT(*) FROM (SELECT row_number() OVER (ORDER BY cost) AS n FROM visits) AS t

-- query: lag
-- sqlstate: ZP003
-- at: lag
SELECT SUM(clamp(p, 0, 1)) FROM (SELECT lag(cost) OVER (ORDER BY day) AS p FROM visits) AS t
