-- query: types_do_not_meet
-- sqlstate: 42000
SELECT ward || 1 + COUNT(*) FROM visits GROUP BY ward HAVING SUM(cost) LIKE 'x'
