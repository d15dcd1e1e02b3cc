-- query: mean_of_samples
-- keys: none
-- l1: 2
-- rows: 2
SELECT SAMPLE_AGGREGATE(AVG(cost), 0, 1000) FROM visits

-- query: correlation_of_samples
-- keys: none
-- l1: 2
-- rows: 2
-- loose: 0 (the visits of a person are alike, so that they have no correlation)
SELECT SAMPLE_AGGREGATE(CORR(cost, nights), -1, 1) FROM visits

-- query: statistics_of_samples_by_public_keys
-- keys: public
-- l1: 20, 8
-- rows: 1, 2
-- loose: 1/4 (of the four wards the rows of a person are in two)
SELECT ward, SAMPLE_AGGREGATE(MEDIAN(cost) + MAX(nights), -5, 900, 20) AS s, COUNT(*) AS n FROM visits GROUP BY ward

-- query: statistics_of_samples_by_private_keys
-- keys: private
-- l1: 1, 40
-- rows: 2
-- loose: 1/20 (the rows of a person are in few groups)
SELECT diagnosis, SAMPLE_AGGREGATE(COUNT(*) + ENTROPY(ward), 0, 50, 5) FROM visits GROUP BY diagnosis

-- query: formula_of_filtered_aggregates
-- keys: none
-- l1: 2, 2
-- rows: 2, 2
-- loose: 0 (a person has one row here, which has no spread)
SELECT SAMPLE_AGGREGATE(AVG(weight) FILTER (WHERE smoker) / AVG(age), 0, 10, 8), SAMPLE_AGGREGATE(KURTOSIS(weight), -3, 9, 8) FILTER (WHERE age > 40) FROM patients

-- query: samples_of_rows_that_belong_to_nobody
-- keys: none
-- l1: 40
-- rows: 2
-- loose: 1/20 (few different rows are new)
SELECT SAMPLE_AGGREGATE(AVG(cost), 0, 500, 300) FROM (SELECT DISTINCT ward, cost FROM visits) AS d

-- query: samples_over_a_join_and_a_per_unit_aggregation
-- keys: public
-- l1: 2
-- rows: refused unbounded
SELECT p.region, SAMPLE_AGGREGATE(AVG(v.total) + AVG(p.age), -100, 1000, 10) FROM patients p JOIN (SELECT patient_id, SUM(clamp(cost, 0, 500)) AS total FROM visits GROUP BY patient_id) v ON v.patient_id = p.patient_id WHERE p.region IN ('north', 'south') GROUP BY p.region

-- query: every_other_statistic_of_samples
-- keys: none
-- l1: 2
-- rows: 2
SELECT SAMPLE_AGGREGATE(coalesce(STDDEV(cost), 0) + coalesce(SKEWNESS(cost), 0) + VAR_POP(change) + coalesce(REGR_SLOPE(cost, nights), 0) + coalesce(REGR_INTERCEPT(change, nights), 0) + SUM(nights) + coalesce(REGR_R2(cost, change), 0) + REGR_SXY(nights, change) + coalesce(COVAR_SAMP(cost, change), 0) + MIN(cost) + COUNT(DISTINCT ward) + COUNT(diagnosis) + coalesce(KURTOSIS(nights), 0) + PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY cost), -1000, 100000, 3) FROM visits

-- query: mean_of_samples_of_sums_of_statistics
-- keys: none
-- l1: 1
-- rows: 1
SELECT SAMPLE_AGGREGATE(AVG(cost) + STDDEV(nights), 0, 1000, 40, 'mean') FROM visits

-- query: means_of_samples_by_public_keys
-- keys: public
-- l1: 20, 4
-- rows: 1, 1
-- loose: 1/4 (of the four wards the rows of a person are in two)
SELECT ward, SAMPLE_AGGREGATE(MAX(nights), -5, 900, 20, 'mean') AS s, COUNT(*) AS n FROM visits GROUP BY ward

-- query: means_of_samples_by_private_keys
-- keys: private
-- l1: 1, 20
-- rows: 1
-- loose: 1/20 (the rows of a person are in few groups)
SELECT diagnosis, SAMPLE_AGGREGATE(COUNT(*), 0, 50, 5, 'MEAN') FROM visits GROUP BY diagnosis

-- query: means_of_samples_of_rows_that_belong_to_nobody
-- keys: none
-- l1: 20
-- rows: 1
-- loose: 1/20 (few different rows are new)
SELECT SAMPLE_AGGREGATE(AVG(cost), 0, 500, 300, 'mean') FROM (SELECT DISTINCT ward, cost FROM visits) AS d
