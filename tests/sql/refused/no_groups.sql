-- query: beyond_the_bounds
-- sqlstate: ZP008
SELECT nights, COUNT(*) FROM visits WHERE nights > 500 GROUP BY nights

-- query: two_values_at_once
-- sqlstate: ZP008
SELECT ward, COUNT(*) FROM visits WHERE ward = 'er' AND ward = 'icu' GROUP BY ward

-- query: behind_a_cte
-- sqlstate: ZP008
WITH v AS (SELECT ward AS w, nights AS n FROM visits) SELECT w, AVG(n) FROM v WHERE w IN ('er') AND NOT w = 'er' GROUP BY w
