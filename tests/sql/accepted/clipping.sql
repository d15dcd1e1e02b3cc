-- query: count
-- set: dp.max_count = 4
-- keys: public
-- l1: 4
-- rows: refused clip_rows
SELECT ward, COUNT(*) FROM visits GROUP BY ward

-- query: count_without_keys
-- set: dp.max_count = 3
-- keys: none
-- l1: 3, 20
-- rows: refused clip_rows
SELECT COUNT(nights), COUNT(DISTINCT diagnosis) FROM visits

-- query: sum
-- set: dp.max_total = 1500
-- keys: public
-- l1: 1500, 20
-- rows: refused clip_rows
SELECT ward, SUM(cost), COUNT(*) FROM visits GROUP BY ward

-- query: sum_of_integers
-- set: dp.max_total = 70
-- keys: public
-- l1: 70
-- rows: refused clip_rows
SELECT ward, SUM(nights) FROM visits GROUP BY ward

-- query: both_signs
-- set: dp.max_total = 25.5
-- keys: none
-- l1: 25.5
-- rows: refused clip_rows
SELECT SUM(change) FROM visits

-- query: average
-- set: dp.max_total = 1500
-- set: dp.max_count = 5
-- keys: public
-- l1: 1500, 5
-- rows: refused clip_rows
SELECT ward, AVG(cost), SUM(cost), COUNT(cost) FROM visits GROUP BY ward

-- query: filter
-- set: dp.max_total = 900
-- set: dp.max_count = 2
-- keys: public
-- l1: 900, 2
-- rows: refused clip_rows
SELECT ward, SUM(cost) FILTER (WHERE nights > 2), COUNT(*) FILTER (WHERE nights > 2) FROM visits GROUP BY ward

-- query: with_caps
-- set: dp.max_total = 900
-- set: dp.max_count = 3
-- set: dp.max_groups = 2
-- set: dp.max_rows_per_group = 4
-- keys: public
-- l1: 900, 3, 2
-- rows: refused clip_rows
SELECT nights, SUM(cost), COUNT(*), COUNT(DISTINCT patient_id) FROM visits GROUP BY nights

-- query: distinct_beside
-- set: dp.max_count = 2
-- keys: public
-- l1: 2, 20, 4
-- rows: refused clip_rows
SELECT ward, COUNT(*), COUNT(DISTINCT diagnosis), COUNT(DISTINCT patient_id) FROM visits GROUP BY ward

-- query: private_keys
-- set: dp.max_count = 2
-- set: dp.max_total = 500
-- keys: private
-- l1: 2, 500
-- rows: refused clip_rows
SELECT diagnosis, COUNT(*), SUM(cost) FROM visits GROUP BY diagnosis

-- query: private_keys_of_units
-- set: dp.max_count = 2
-- keys: private
-- l1: 2, 20, 20
-- rows: refused clip_rows
SELECT diagnosis, ward, COUNT(*), COUNT(DISTINCT patient_id), COUNT(DISTINCT code) FROM visits GROUP BY diagnosis, ward

-- query: variance_is_not_clipped
-- set: dp.max_total = 900
-- keys: public
-- l1: 10000, 20, 2500000, 900
-- rows: refused clip_rows
SELECT ward, VAR_POP(cost), SUM(cost) FROM visits GROUP BY ward

-- query: gaussian
-- set: dp.mechanism = gaussian
-- set: dp.max_count = 4
-- set: dp.max_total = 1000
-- keys: public
-- l1: 8, 2000
-- rows: refused clip_rows
SELECT ward, COUNT(*), SUM(cost) FROM visits GROUP BY ward

-- query: gaussian_without_keys
-- set: dp.mechanism = gaussian
-- set: dp.max_count = 4
-- keys: none
-- l1: 4
-- rows: refused clip_rows
SELECT COUNT(*) FROM visits

-- query: beyond_what_a_unit_has
-- set: dp.max_count = 20
-- set: dp.max_total = 20000
-- keys: public
-- l1: 20000, 20000
-- rows: refused clip_rows
SELECT ward, COUNT(*), SUM(cost) FROM visits GROUP BY ward

-- query: joined
-- set: dp.max_total = 3
-- keys: public
-- l1: 3
-- rows: refused clip_rows
SELECT ward, SUM(value) FROM labs JOIN visits USING (visit_id) GROUP BY ward

-- query: of_units
-- set: dp.max_total = 300
-- keys: none
-- l1: 300
-- rows: refused clip_rows
SELECT SUM(c) FROM (SELECT patient_id, SUM(cost) AS c FROM visits GROUP BY patient_id) AS t

-- query: chosen
-- set: dp.max_total = auto
-- keys: none
-- l1: 1, 1
-- rows: refused clip_rows
SELECT SUM(cost) FROM visits

-- query: chosen_by_group
-- set: dp.max_total = auto
-- keys: none and public
-- l1: 1, 20, 1
-- rows: refused clip_rows
SELECT ward, SUM(cost), COUNT(*) FROM visits GROUP BY ward

-- query: chosen_of_integers_of_both_signs
-- set: dp.max_total = auto
-- keys: none and private
-- l1: 1, 20, 1, 1
-- rows: refused clip_rows
SELECT diagnosis, AVG(nights - 3) FROM visits GROUP BY diagnosis

-- query: chosen_with_filter
-- set: dp.max_total = auto
-- keys: none and public
-- l1: 1, 1, 1
-- rows: refused clip_rows
SELECT ward, SUM(cost) FILTER (WHERE nights > 2) FROM visits GROUP BY ROLLUP(ward)

-- query: chosen_count
-- set: dp.max_count = auto
-- keys: none and public
-- l1: 1, 1, 1, 1
-- rows: refused clip_rows
SELECT ward, COUNT(*), COUNT(cost) FROM visits GROUP BY ward
