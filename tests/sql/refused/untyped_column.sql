-- query: joined
-- sqlstate: 42804
-- at: t.y
SELECT COUNT(*) FROM visits AS v JOIN (SELECT ward, nights, initcap(ward) AS y, COUNT(*) AS n FROM visits
GROUP BY ward, nights) AS t ON t.ward = v.ward AND t.nights = v.nights WHERE t.y = v.diagnosis

-- query: value
-- sqlstate: 42804
-- at: nth_value
SELECT COUNT(*) FROM visits WHERE nights > (SELECT nth_value(n, 1) OVER () FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t LIMIT 1)

-- query: list
-- sqlstate: 42804
-- at: NULL
SELECT COUNT(*) FROM visits WHERE nights IN (SELECT NULL FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t)

-- query: star
-- sqlstate: 42804
-- at: *
SELECT COUNT(*) FROM (SELECT * FROM visits AS v JOIN (SELECT ward, NULL AS x FROM visits GROUP BY ward) AS t
ON t.ward = v.ward) AS q
