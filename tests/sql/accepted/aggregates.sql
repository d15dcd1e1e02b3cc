-- query: count
SELECT COUNT(*) FROM patients

-- query: count_rows_of_units
SELECT COUNT(*) AS visits FROM visits

-- query: count_column
SELECT COUNT(age) FROM patients

-- query: count_real_skips_nan
SELECT COUNT(cost) FROM visits

-- query: count_distinct_unit
SELECT COUNT(DISTINCT patient_id) FROM visits

-- query: count_distinct_value
SELECT COUNT(DISTINCT diagnosis) FROM visits

-- query: count_distinct_number
SELECT COUNT(DISTINCT code) FROM visits

-- query: count_if
SELECT COUNT_IF(cost > 400) FROM visits

-- query: sum_real
SELECT SUM(cost) FROM visits

-- query: sum_both_signs
SELECT SUM(change) FROM visits

-- query: sum_integer
SELECT SUM(nights) FROM visits

-- query: sum_age
SELECT SUM(age) FROM patients

-- query: avg
SELECT AVG(cost) FROM visits

-- query: avg_integer
SELECT AVG(age) FROM patients

-- query: avg_and_sum_share
SELECT AVG(cost), SUM(cost), COUNT(cost) FROM visits

-- query: variance
SELECT VAR_POP(weight), VAR_SAMP(weight) FROM patients

-- query: deviation
SELECT STDDEV(cost), STDDEV_POP(cost) FROM visits

-- query: covariance
SELECT COVAR_POP(cost, change) FROM visits

-- query: correlation
SELECT CORR(weight, age) FROM patients

-- query: regression
SELECT REGR_SLOPE(weight, age), REGR_INTERCEPT(weight, age), REGR_COUNT(weight, age), REGR_R2(weight, age) FROM patients

-- query: bool_and_or
SELECT BOOL_AND(smoker), BOOL_OR(smoker) FROM patients

-- query: filter_clause
SELECT COUNT(*) FILTER (WHERE ward = 'er') AS er, SUM(cost) FILTER (WHERE ward = 'icu') AS icu FROM visits

-- query: filters_apart
SELECT SUM(nights) FILTER (WHERE ward = 'er'), SUM(nights) FILTER (WHERE ward = 'icu'), SUM(nights) FROM visits

-- query: unbounded_clamped
SELECT SUM(clamp(income, 0, 1000)), AVG(clamp(code, -5, 5)) FROM patients JOIN visits USING (patient_id)

-- query: clamped_unbounded_column
SELECT SUM(clamp(code, -100, 100)) FROM visits

-- query: mean_alias
SELECT MEAN(value) FROM labs

-- query: several_of_each
SELECT COUNT(*), COUNT(DISTINCT patient_id), SUM(cost), AVG(nights), COUNT(DISTINCT ward) FROM visits

-- query: labs_count
SELECT COUNT(*), SUM(value) FROM labs

-- query: constant_column
SELECT SUM(cost * 0) FROM visits
