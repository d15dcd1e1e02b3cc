-- query: clamps
-- sqlstate: 54001
-- at: clamp
SELECT COUNT(*) FROM visits WHERE <<12*clamp(>>nights<<12*, 0, 9)>> = 1

-- query: betweens
-- sqlstate: 54001
-- at: nights
SELECT COUNT(*) FROM visits WHERE <<20*(>>nights > 1<<20*) BETWEEN false AND true>>

-- query: doubling_outputs
-- sqlstate: 54001
-- at: a
SELECT COUNT(*) AS a, a + a AS b, b + b AS c, c + c AS d, d + d AS e, e + e AS f, f + f AS g, g + g AS h, h + h AS i,
  i + i AS j, j + j AS k, k + k AS l, l + l AS m, m + m AS n, n + n AS o, o + o AS p, p + p AS q FROM visits

-- query: doubling_outputs_of_results
-- sqlstate: 54001
-- at: j + j AS k
SELECT n + n AS a, a + a AS b, b + b AS c, c + c AS d, d + d AS e, e + e AS f, f + f AS g, g + g AS h, h + h AS i, i + i AS j,
  j + j AS k, k + k AS l, l + l AS m, m + m AS o, o + o AS p, p + p AS q, q + q AS r FROM (SELECT COUNT(*) AS n FROM visits) AS t

-- query: outputs_of_results_in_a_condition
-- sqlstate: 54001
-- at: i < i
SELECT n + n AS a, a + a AS b, b + b AS c, c + c AS d, d + d AS e, e + e AS f, f + f AS g, g + g AS h, h + h AS i
FROM (SELECT COUNT(*) AS n FROM visits) AS t WHERE i < i + i + i + i + i + i
