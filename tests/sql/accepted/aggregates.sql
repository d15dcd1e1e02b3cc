-- query: count
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM patients

-- query: count_rows_of_units
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) AS visits FROM visits

-- query: count_column
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(age) FROM patients

-- query: count_real_skips_nan
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(cost) FROM visits

-- query: count_distinct_unit
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(DISTINCT patient_id) FROM visits

-- query: count_distinct_value
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(DISTINCT diagnosis) FROM visits

-- query: count_distinct_number
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(DISTINCT code) FROM visits

-- query: count_if
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT_IF(cost > 400) FROM visits

-- query: sum_real
-- keys: none
-- l1: 20000
-- rows: 1000
SELECT SUM(cost) FROM visits

-- query: sum_both_signs
-- keys: none
-- l1: 200
-- rows: 10
SELECT SUM(change) FROM visits

-- query: sum_integer
-- keys: none
-- l1: 600
-- rows: 30
SELECT SUM(nights) FROM visits

-- query: sum_age
-- keys: none
-- l1: 120
-- rows: 120
SELECT SUM(age) FROM patients

-- query: avg
-- keys: none
-- l1: 20000, 20000
-- rows: 1000, 1000
SELECT AVG(cost) FROM visits

-- query: avg_integer
-- keys: none
-- l1: 120, 120
-- rows: 120, 120
SELECT AVG(age) FROM patients

-- query: avg_and_sum_share
-- keys: none
-- l1: 20000, 20000
-- rows: 1000, 1000
SELECT AVG(cost), SUM(cost), COUNT(cost) FROM visits

-- query: variance
-- keys: none
-- l1: 65536, 65536, 65536
-- rows: 65536, 65536, 65536
SELECT VAR_POP(weight), VAR_SAMP(weight) FROM patients

-- query: deviation
-- keys: none
-- l1: 20000000, 20000000, 20000000
-- rows: 1000000, 1000000, 1000000
SELECT STDDEV(cost), STDDEV_POP(cost) FROM visits

-- query: covariance
-- keys: none
-- l1: 400000, 400000, 400000, 400000
-- rows: 20000, 20000, 20000, 20000
SELECT COVAR_POP(cost, change) FROM visits

-- query: covariance_of_a_sample
-- keys: none
-- l1: 400000, 400000, 400000, 400000
-- rows: 20000, 20000, 20000, 20000
SELECT COVAR_SAMP(cost, change) FROM visits

-- query: means_of_pairs
-- keys: none
-- l1: 400000, 400000, 400000, 400000
-- rows: 20000, 20000, 20000, 20000
SELECT REGR_AVGX(cost, change), REGR_AVGY(cost, change) FROM visits

-- query: covariance_beside_counts
-- keys: none
-- l1: 6000, 6000, 6000, 6000
-- rows: 300, 300, 300, 300
SELECT COUNT(*), AVG(nights), COVAR_POP(nights, least(nights, 10)) FROM visits

-- query: covariance_beside_a_variance
-- keys: none
-- l1: 7200000, 7200000, 7200000, 7200000, 7200000, 7200000, 7200000, 7200000, 7200000
-- rows: 360000, 360000, 360000, 360000, 360000, 360000, 360000, 360000, 360000
SELECT SUM(change), VAR_POP(change), COVAR_POP(nights, change) FROM visits

-- query: correlation
-- keys: none
-- l1: 943718400, 943718400, 943718400, 943718400, 943718400, 943718400, 943718400, 943718400, 943718400
-- rows: 943718400, 943718400, 943718400, 943718400, 943718400, 943718400, 943718400, 943718400, 943718400
SELECT CORR(weight, age) FROM patients

-- query: regression
-- keys: none
-- l1: 943718400, 943718400, 943718400, 943718400, 943718400, 943718400, 943718400, 943718400, 943718400
-- rows: 943718400, 943718400, 943718400, 943718400, 943718400, 943718400, 943718400, 943718400, 943718400
SELECT REGR_SLOPE(weight, age), REGR_INTERCEPT(weight, age), REGR_COUNT(weight, age), REGR_R2(weight, age) FROM patients

-- query: bool_and_or
-- keys: none
-- l1: 1, 1
-- rows: 1, 1
SELECT BOOL_AND(smoker), BOOL_OR(smoker) FROM patients

-- query: filter_clause
-- keys: none
-- l1: 20, 20000
-- rows: 1, 1000
SELECT COUNT(*) FILTER (WHERE ward = 'er') AS er, SUM(cost) FILTER (WHERE ward = 'icu') AS icu FROM visits

-- query: filters_apart
-- keys: none
-- l1: 600, 600, 600
-- rows: 30, 30, 30
SELECT SUM(nights) FILTER (WHERE ward = 'er'), SUM(nights) FILTER (WHERE ward = 'icu'), SUM(nights) FROM visits

-- query: unbounded_clamped
-- keys: none
-- l1: 200, 200, 20000
-- rows: refused join
SELECT SUM(clamp(income, 0, 1000)), AVG(clamp(code, -5, 5)) FROM patients JOIN visits USING (patient_id)

-- query: clamped_unbounded_column
-- keys: none
-- l1: 2000
-- rows: 100
SELECT SUM(clamp(code, -100, 100)) FROM visits

-- query: mean_alias
-- keys: none
-- l1: 96, 96
-- rows: 8, 8
SELECT MEAN(value) FROM labs

-- query: several_of_each
-- keys: none
-- l1: 600, 600, 1, 20000, 20
-- rows: 30, 30, 1, 1000, 1
SELECT COUNT(*), COUNT(DISTINCT patient_id), SUM(cost), AVG(nights), COUNT(DISTINCT ward) FROM visits

-- query: labs_count
-- keys: none
-- l1: 96, 96, 96
-- rows: 8, 8, 8
SELECT COUNT(*), SUM(value) FROM labs

-- query: constant_column
-- keys: none
-- l1: 0
-- rows: 0
SELECT SUM(cost * 0) FROM visits

-- query: far_below_zero
-- keys: none
-- l1: 200
-- rows: 10
SELECT SUM(clamp(change, -10, 2)) FROM visits

-- query: count_of_nothing_said
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT() FROM visits

-- query: sum_distinct
-- keys: none
-- l1: 600
-- rows: 30
-- loose: 0.3 (different values cannot all lie at the bound)
SELECT SUM(DISTINCT nights) FROM visits

-- query: sum_distinct_real
-- keys: none
-- l1: 20000
-- rows: 1000
-- loose: 0.05 (different values cannot all lie at the bound)
SELECT SUM(DISTINCT cost) FROM visits

-- query: sum_distinct_within_groups
-- keys: public
-- l1: 600, 600
-- rows: 30, 30
SELECT ward, SUM(DISTINCT nights) FILTER (WHERE cost > 1), SUM(nights) FROM visits GROUP BY ward

-- query: mean_of_different_values
-- keys: none
-- l1: 300, 20
-- rows: 15, 1
-- loose: 0.2 (different values cannot all lie at the bound)
SELECT AVG(DISTINCT nights) FROM visits

-- query: variance_of_different_values
-- keys: none
-- l1: 300, 20, 9000
-- rows: 15, 1, 450
-- loose: 0.2 (different values cannot all lie at the bound)
SELECT VAR_POP(DISTINCT nights) FROM visits
