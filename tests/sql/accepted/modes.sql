-- query: mode_of_a_listed_text
-- keys: none
-- l1: 20
-- rows: 1
SELECT MODE(ward) FROM visits

-- query: mode_by_public_keys
-- keys: public
-- l1: 1
-- rows: 1
SELECT region, MODE(sex) FROM patients GROUP BY region

-- query: mode_by_private_keys
-- keys: private
-- l1: 1, 20
-- rows: 1
SELECT diagnosis, MODE(ward) AS most FROM visits GROUP BY diagnosis

-- query: mode_of_integers_dates_and_truth_values
-- keys: none
-- l1: 1, 1
-- rows: 1, 1
SELECT MODE(age), MODE(smoker) FROM patients

-- query: mode_of_days_and_of_months
-- keys: none
-- l1: 20, 20
-- rows: 1, 1
SELECT MODE(day), MODE(date_trunc('month', seen)) FROM visits

-- query: mode_of_an_expression
-- keys: none
-- l1: 1
-- rows: 1
SELECT MODE(CASE WHEN age < 30 THEN 'young' WHEN age >= 65 THEN 'old' ELSE 'between' END) FROM patients

-- query: mode_of_a_rounded_real
-- keys: none
-- l1: 20
-- rows: 1
SELECT MODE(floor(change)) FROM visits

-- query: mode_with_filter
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, MODE(nights) FILTER (WHERE nights > 0) FROM visits GROUP BY ward

-- query: mode_in_an_ordered_set
-- keys: none
-- l1: 20
-- rows: 1
SELECT mode() WITHIN GROUP (ORDER BY ward) FROM visits

-- query: one_mode_is_measured_once
-- keys: none
-- l1: 20
-- rows: 1
SELECT MODE(ward) AS a, MODE(ward) AS b FROM visits

-- query: mode_over_a_join
-- keys: public
-- l1: 20
-- rows: refused join
SELECT region, MODE(ward) FROM visits JOIN patients USING (patient_id) GROUP BY region

-- query: mode_with_capped_rows_per_group
-- set: dp.max_rows_per_group = 3
-- keys: public
-- l1: 12
-- rows: 1
SELECT ward, MODE(nights) FROM visits GROUP BY ward

-- query: first_and_last_text
-- keys: none
-- l1: 20, 20, 20
-- rows: 1, 1, 1
SELECT MIN(ward), MAX(ward), QUANTILE_DISC(ward, 0.5) FROM visits

-- query: extremes_of_truth_values
-- keys: public
-- l1: 1, 1
-- rows: 1, 1
SELECT region, MIN(smoker), MAX(smoker) FROM patients GROUP BY region

-- query: key_of_the_dearest_row
-- keys: none
-- l1: 20, 20
-- rows: 1, 1
SELECT ARG_MAX(ward, cost), ARG_MIN(ward, nights) FROM visits

-- query: key_of_the_last_row_by_private_keys
-- keys: private
-- l1: 1, 20, 20
-- rows: 1, 1
SELECT diagnosis, MAX_BY(ward, seen), MIN_BY(ward, day) FROM visits GROUP BY diagnosis

-- query: key_in_the_order_of_texts
-- keys: none
-- l1: 1
-- rows: 1
SELECT ARG_MAX(smoker, region) FILTER (WHERE age > 20) FROM patients

-- query: percentiles_of_other_systems
-- keys: none
-- l1: 1, 1, 1
-- rows: 1, 1, 1
SELECT percentile_approx(age, 0.5, 100), approx_percentile(age, 0.9), percentile_cont(age, 0.1) FROM patients
