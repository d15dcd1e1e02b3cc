-- query: without_keys
-- set: dp.max_values = 2
-- keys: none
-- l1: 2
-- rows: refused values_rows
SELECT COUNT(DISTINCT code) FROM visits

-- query: public_keys
-- set: dp.max_values = 3
-- keys: public
-- l1: 3, 20
-- rows: refused values_rows
SELECT ward, COUNT(DISTINCT code), COUNT(*) FROM visits GROUP BY ward

-- query: real_values
-- set: dp.max_values = 4
-- set: dp.mechanism = gaussian
-- keys: none
-- l1: 4
-- rows: refused values_rows
SELECT COUNT(DISTINCT cost) FROM visits

-- query: filter
-- set: dp.max_values = 2
-- keys: none
-- l1: 2, 2
-- rows: refused values_rows
SELECT COUNT(DISTINCT code) FILTER (WHERE nights > 2), COUNT(DISTINCT code) FROM visits

-- query: private_keys
-- set: dp.max_values = 2
-- keys: private
-- l1: 2, 20
-- rows: refused values_rows
SELECT diagnosis, COUNT(DISTINCT code), COUNT(DISTINCT patient_id) FROM visits GROUP BY diagnosis

-- query: caps_besides
-- set: dp.max_values = 5
-- set: dp.max_groups = 2
-- set: dp.max_rows_per_group = 2
-- keys: public
-- l1: 4
-- rows: refused values_rows
SELECT ward, COUNT(DISTINCT code) FROM visits GROUP BY ward

-- query: beside_clips
-- set: dp.max_values = 2
-- set: dp.max_count = 3
-- keys: public
-- l1: 2, 3
-- rows: refused values_rows
SELECT ward, COUNT(DISTINCT code), COUNT(*) FROM visits GROUP BY ward

-- query: a_total_beside_clips
-- set: dp.max_values = 2
-- set: dp.max_count = 3
-- keys: none
-- l1: 2, 3
-- rows: refused values_rows
SELECT COUNT(DISTINCT code), COUNT(*) FROM visits

-- query: no_unit_has_so_many
-- set: dp.max_values = 20
-- keys: none
-- l1: 20
-- rows: refused values_rows
SELECT COUNT(DISTINCT code) FROM visits

-- query: averages_of_all_values
-- set: dp.max_values = 2
-- keys: none
-- l1: 300, 20
-- rows: refused values_rows
-- loose: 0.2 (different values cannot all lie at the bound)
SELECT AVG(DISTINCT nights) FROM visits

-- query: rows_of_nobody
-- set: dp.max_values = 2
-- keys: none
-- l1: 20
-- rows: refused values_rows
SELECT COUNT(DISTINCT code) FROM (SELECT DISTINCT code, ward FROM visits)

-- query: joined
-- set: dp.max_values = 3
-- keys: public
-- l1: 3
-- rows: refused values_rows
SELECT test, COUNT(DISTINCT code) FROM labs JOIN visits USING (visit_id) GROUP BY test

-- query: chosen
-- set: dp.max_values = auto
-- keys: none
-- l1: 48, 1
-- rows: refused values_rows
SELECT COUNT(DISTINCT code) FROM visits

-- query: chosen_by_group
-- set: dp.max_values = auto
-- keys: none and public
-- l1: 48, 20, 1
-- rows: refused values_rows
SELECT ward, COUNT(DISTINCT code), COUNT(*) FROM visits GROUP BY ward

-- query: chosen_by_private_group
-- set: dp.max_values = auto
-- keys: none and private
-- l1: 48, 1, 1
-- rows: refused values_rows
SELECT diagnosis, COUNT(DISTINCT code) FILTER (WHERE nights > 2) FROM visits GROUP BY diagnosis

-- query: chosen_beside_a_total
-- set: dp.max_values = auto
-- set: dp.max_total = auto
-- keys: none
-- l1: 48, 1, 1, 1
-- rows: refused values_rows
SELECT COUNT(DISTINCT nights), SUM(nights) FROM visits
