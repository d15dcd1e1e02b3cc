-- query: median
-- keys: none
-- l1: 1
-- rows: 1
SELECT MEDIAN(age) FROM patients

-- query: median_within_rows_of_rank
-- set: dp.target_error = 12
-- keys: none
-- l1: 1
-- rows: 1
SELECT MEDIAN(age) FROM patients

-- query: median_of_a_real_by_public_keys
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, MEDIAN(cost) FROM visits GROUP BY ward

-- query: median_beside_sums
-- keys: public
-- l1: 20000, 20000, 4, 20
-- rows: 1000, 1000, 1, 1
SELECT ward, COUNT(*), COUNT(DISTINCT patient_id), SUM(cost), MEDIAN(cost) FROM visits GROUP BY ward

-- query: several_quantiles_of_one_column
-- keys: public
-- l1: 20, 20, 20
-- rows: 1, 1, 1
SELECT ward, QUANTILE_CONT(change, 0.1) AS low, QUANTILE_DISC(change, 0.5) AS middle, QUANTILE_CONT(change, 0.9) AS high
FROM visits GROUP BY ward

-- query: quantiles_of_several_columns
-- keys: none
-- l1: 20, 20
-- rows: 1, 1
SELECT MEDIAN(nights), MEDIAN(cost) FROM visits

-- query: within_group
-- keys: none
-- l1: 20, 20
-- rows: 1, 1
SELECT PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY cost), PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY cost DESC) FROM visits

-- query: both_shares_of_one_order_are_one_number
-- keys: none
-- l1: 20
-- rows: 1
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY cost) AS a, PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY cost DESC) AS b
FROM visits

-- query: approximate
-- keys: none
-- l1: 20
-- rows: 1
SELECT APPROX_QUANTILE(nights, 0.5) FROM visits

-- query: first_and_last_day
-- keys: none
-- l1: 20, 20
-- rows: 1, 1
SELECT MIN(day), MAX(day) FROM visits

-- query: first_and_last_time
-- keys: public
-- l1: 20, 20
-- rows: 1, 1
SELECT ward, MIN(seen), MAX(seen) FROM visits GROUP BY ward

-- query: median_day
-- keys: none
-- l1: 20, 20
-- rows: 1, 1
SELECT MEDIAN(day), QUANTILE_DISC(seen, 0.5) FROM visits

-- query: filtered
-- keys: public
-- l1: 20, 20
-- rows: 1, 1
SELECT ward, MEDIAN(cost) FILTER (WHERE nights > 1), MAX(nights) FILTER (WHERE cost > 10) FROM visits GROUP BY ward

-- query: some_rows
-- keys: none
-- l1: 20
-- rows: 1
SELECT MEDIAN(cost) FROM visits WHERE ward = 'er' AND nights < 5

-- query: clamped_by_the_question
-- keys: none
-- l1: 20
-- rows: 1
SELECT MEDIAN(clamp(code, 0, 1000)) FROM visits

-- query: of_an_expression
-- keys: none
-- l1: 20
-- rows: 1
SELECT MEDIAN(cost * 2 + nights) FROM visits

-- query: private_keys
-- keys: private
-- l1: 1
-- rows: 1
SELECT city, MEDIAN(age) FROM patients GROUP BY city

-- query: private_keys_beside_their_units
-- keys: private
-- l1: 20, 20, 20
-- rows: 1, 1, 1
SELECT diagnosis, COUNT(DISTINCT patient_id), MEDIAN(cost), MIN(cost) FROM visits GROUP BY diagnosis

-- query: public_and_private_keys
-- keys: private
-- l1: 1, 20
-- rows: 1
SELECT diagnosis, ward, MEDIAN(nights) FROM visits GROUP BY diagnosis, ward

-- query: capped_rows
-- set: dp.max_rows_per_group = 2
-- keys: public
-- l1: 8
-- rows: 1
SELECT ward, MEDIAN(cost) FROM visits GROUP BY ward

-- query: capped_groups
-- set: dp.max_groups = 1
-- set: dp.max_rows_per_group = 3
-- keys: public
-- l1: 3
-- rows: 1
SELECT ward, MEDIAN(cost) FROM visits GROUP BY ward

-- query: rollup
-- keys: none and public
-- l1: 20, 20
-- rows: 1, 1
SELECT ward, MEDIAN(cost) FROM visits GROUP BY ROLLUP (ward)

-- query: over_a_join
-- keys: public
-- l1: 20
-- rows: refused join
SELECT p.sex, MEDIAN(v.cost) FROM patients AS p JOIN visits AS v ON p.patient_id = v.patient_id GROUP BY p.sex

-- query: of_each_unit
-- keys: none
-- l1: 1
-- rows: refused clamp_over_results
SELECT MEDIAN(total) FROM (SELECT patient_id, clamp(SUM(cost), 0, 5000) AS total FROM visits GROUP BY patient_id) AS t

-- query: compared_with_a_result
-- keys: none
-- l1: 20, 20
-- rows: 1, 1
SELECT COUNT(*) FROM visits WHERE cost > (SELECT MEDIAN(cost) FROM visits)

-- query: computed_with
-- keys: public
-- l1: 20, 20, 20
-- rows: 1, 1, 1
SELECT ward, QUANTILE_CONT(cost, 0.75) - QUANTILE_CONT(cost, 0.25) AS spread FROM visits GROUP BY ward HAVING COUNT(*) > 2
ORDER BY spread

-- query: list_of_quantiles
-- keys: public
-- l1: 20, 20, 20
-- rows: 1, 1, 1
SELECT ward, QUANTILE_CONT(cost, [0.1, 0.5, 0.9]) AS cost FROM visits GROUP BY ward

-- query: list_within_group_with_filter
-- keys: none
-- l1: 20, 20
-- rows: 1, 1
SELECT PERCENTILE_DISC(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY cost DESC) FILTER (WHERE nights > 2) FROM visits

-- query: equal_parts_with_both_ends
-- keys: none
-- l1: 20, 20, 20, 20, 20
-- rows: 1, 1, 1, 1, 1
SELECT APPROX_QUANTILES(cost, 4) FROM visits

-- query: a_list_and_its_parts_are_the_same_numbers
-- keys: none
-- l1: 20, 20, 20
-- rows: 1, 1, 1
SELECT QUANTILE_DISC(cost, [0.5, 0.1, 0.5, 0.9]), QUANTILE_DISC(cost, 0.1), PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY cost DESC)
FROM visits

-- query: elements_of_lists
-- keys: none
-- l1: 20, 20, 20
-- rows: 1, 1, 1
SELECT APPROX_QUANTILES(cost, 2)[OFFSET(1)] - APPROX_QUANTILES(cost, 2)[1], ARRAY_LENGTH(QUANTILE_DISC(cost, [0, 0.5, 1])) FROM visits

-- query: lists_in_a_subquery
-- keys: private
-- l1: 1, 20, 20, 20
-- rows: 1, 1, 1
SELECT diagnosis, q FROM (SELECT diagnosis, APPROX_QUANTILES(nights, 2) AS q FROM visits GROUP BY diagnosis) AS t ORDER BY q
