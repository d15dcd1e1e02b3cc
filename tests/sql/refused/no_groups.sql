-- query: beyond_the_bounds
-- sqlstate: ZP008
-- at: nights > 500
SELECT nights, COUNT(*) FROM visits WHERE nights > 500 GROUP BY nights

-- query: outside_the_domain
-- sqlstate: ZP008
-- at: ward <> 'er' AND ward LIKE '%r'
SELECT ward, COUNT(*) FROM visits WHERE ward <> 'er' AND ward LIKE '%r' GROUP BY ward

-- query: behind_a_cte
-- sqlstate: ZP008
-- at: w IN ('er', 'attic') AND w < 'b'
WITH v AS (SELECT ward AS w, nights AS n FROM visits) SELECT w, AVG(n) FROM v WHERE w IN ('er', 'attic') AND w < 'b' GROUP BY w

-- query: of_a_public_row
-- sqlstate: ZP008
-- at: ward = (SELECT 'attic')
SELECT ward, COUNT(*) FROM visits WHERE ward = (SELECT 'attic') GROUP BY ward
