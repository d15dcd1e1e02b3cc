-- query: smooth_median
-- keys: none
-- l1: 20
-- rows: 1
-- set: dp.mechanism = smooth_sensitivity
SELECT MEDIAN(cost) FROM visits

-- query: smooth_median_by_public_keys
-- keys: public
-- l1: 20
-- rows: 1
-- set: dp.mechanism = smooth_sensitivity
-- set: dp.epsilon = 2
SELECT ward, MEDIAN(nights) FILTER (WHERE cost > 10) FROM visits GROUP BY ward

-- query: smooth_median_by_private_keys
-- keys: private
-- l1: 1, 20
-- rows: 1, 1
-- set: dp.mechanism = smooth_sensitivity
-- set: dp.epsilon = 20
SELECT diagnosis, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) FROM visits GROUP BY diagnosis

-- query: tested_median_and_mean
-- keys: none
-- l1: 1, 1
-- rows: 1, 1
-- set: dp.mechanism = propose_test_release
-- set: dp.proposed_sensitivity = 5
SELECT MEDIAN(weight), AVG(age) FROM patients

-- query: tested_mean_by_public_keys
-- keys: public
-- l1: 20
-- rows: 1
-- set: dp.mechanism = propose_test_release
-- set: dp.proposed_sensitivity = 2.5
SELECT ward, AVG(change) FROM visits GROUP BY ward
