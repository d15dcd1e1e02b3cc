-- query: types_do_not_meet
-- sqlstate: 42000
SELECT ward || 1 + COUNT(*) FROM visits GROUP BY ward HAVING SUM(cost) LIKE 'x'

-- query: a_list_and_a_number_in_one_column
-- sqlstate: 42000
SELECT QUANTILE_DISC(nights, [0.1, 0.5]) AS q FROM visits UNION ALL SELECT COUNT(*) FROM visits

-- query: a_day_and_a_number_in_one_column
-- sqlstate: 42000
SELECT MAX(day) AS q FROM visits UNION ALL SELECT MEDIAN(cost) FROM visits

-- query: a_list_compared_with_a_text
-- sqlstate: 42000
WITH r AS (SELECT ward, QUANTILE_DISC(nights, [0.1, 0.5]) AS q FROM visits GROUP BY ward) SELECT ward FROM r WHERE ward = 'er' AND q = 'x'

-- query: a_list_joined_with_a_number
-- sqlstate: 42000
WITH r AS (SELECT QUANTILE_DISC(nights, [0.1, 0.5]) AS q FROM visits) SELECT r.q FROM r JOIN (SELECT MEDIAN(nights) AS q FROM visits) s USING (q)

-- query: a_list_as_a_number
-- sqlstate: 42000
WITH r AS (SELECT ward, QUANTILE_DISC(nights, [0.1, 0.5]) AS q FROM visits GROUP BY ward) SELECT CAST(q AS INTEGER) FROM r WHERE ward = 'er'

-- query: a_day_as_a_number
-- sqlstate: 42000
SELECT CAST(MIN(day) AS INTEGER) FROM visits HAVING COUNT(*) > 1000
