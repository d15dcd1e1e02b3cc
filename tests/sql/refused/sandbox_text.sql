-- query: a_text_that_is_no_number
-- sqlstate: 42804
SELECT COUNT(*) + 'x' FROM visits

-- query: a_text_with_a_quote_that_is_no_number
-- sqlstate: 42804
SELECT 'it''s' + COUNT(*) FROM visits

-- query: a_text_that_is_no_day
-- sqlstate: 42804
SELECT day, COUNT(*) FROM visits GROUP BY day HAVING day > 'x' OR COUNT(*) > 5

-- query: a_parameter_that_is_no_number
-- parameters: ["x"]
-- sqlstate: 42804
SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > $1

-- query: a_chosen_text_as_a_number
-- sqlstate: 42804
SELECT MODE(ward) = 3 FROM visits

-- query: a_released_key_among_numbers
-- sqlstate: 42804
SELECT * FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS r WHERE ward IN (1, 2)

-- query: a_text_among_results_of_case
-- sqlstate: 42804
SELECT CASE WHEN COUNT(*) > 3 THEN 'many' ELSE 0 END FROM visits

-- query: a_text_in_place_of_a_number
-- sqlstate: 42804
SELECT IF(n > 3, n, 'few'), coalesce(nullif(n, 5), 9) FROM (SELECT COUNT(*) AS n FROM visits)

-- query: a_text_in_place_of_a_day
-- sqlstate: 42804
SELECT coalesce(day, 'none') AS d, COUNT(*) FROM visits GROUP BY day
