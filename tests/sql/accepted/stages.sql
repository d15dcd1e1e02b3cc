-- query: value_mean
-- keys: none
-- l1: 600, 600, 20
-- rows: 30, 30, 1
SELECT COUNT(*) FROM visits WHERE nights > (SELECT AVG(nights) FROM visits)

-- query: value_in_case
-- keys: none and public
-- l1: 20000, 20000, 12, 20, 600
-- rows: 1000, 1000, 1, 1, 30
SELECT ward, COUNT(*) FILTER (WHERE cost < (SELECT 2 * AVG(cost) FROM visits)), SUM(CASE WHEN nights <= (SELECT COUNT(*) FROM
labs) THEN nights END) FROM visits GROUP BY ward

-- query: value_clamped
-- keys: none
-- l1: 1, 1000
-- rows: 1, 50
SELECT SUM(clamp(nights + (SELECT COUNT(*) FROM patients), 0, 50)) FROM visits

-- query: value_as_key
-- keys: none and public
-- l1: 120, 120, 1
-- rows: 120, 120, 1
SELECT CASE WHEN age > (SELECT AVG(age) FROM patients) THEN 'older' ELSE 'younger' END AS half, COUNT(*) FROM patients GROUP
BY half

-- query: value_of_limit
-- keys: none and public
-- l1: 20, 20
-- rows: 1, 1
SELECT COUNT(*) FROM visits WHERE ward = (SELECT ward FROM visits GROUP BY ward ORDER BY COUNT(*) LIMIT 1)

-- query: value_of_public_rows
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE nights <= (SELECT MAX(population) FROM regions)

-- query: value_of_a_value
-- keys: none
-- l1: 600, 600, 600, 600, 20
-- rows: 30, 30, 30, 30, 1
SELECT COUNT(*) FROM visits WHERE nights > (SELECT AVG(nights) FROM visits WHERE nights < (SELECT 3 * AVG(nights) FROM
visits))

-- query: exists_result
-- keys: none and public
-- l1: 20, 20
-- rows: 1, 1
SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 1)

-- query: not_exists_result
-- keys: none and public
-- l1: 20, 20
-- rows: 1, 1
SELECT COUNT(*) FROM visits WHERE NOT EXISTS (SELECT 1 FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t WHERE
n < 0)

-- query: in_result
-- keys: none and public
-- l1: 20, 600, 600
-- rows: 1, 30, 30
SELECT COUNT(*), SUM(nights) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 2)

-- query: not_in_result
-- keys: public
-- l1: 1, 1
-- rows: 1, 1
SELECT region, COUNT(*) FROM patients WHERE region NOT IN (SELECT region FROM patients GROUP BY region HAVING COUNT(*) > 45)
GROUP BY region

-- query: exists_in_result
-- keys: none and public
-- l1: 1, 1
-- rows: 1, 1
WITH t AS (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) SELECT COUNT(*) FROM patients AS p WHERE EXISTS
(SELECT 1 FROM t WHERE t.region = p.region AND t.n > 1)

-- query: top_n_join
-- keys: public
-- l1: 20, 600, 600
-- rows: 1, 30, 30
SELECT v.ward, COUNT(*), AVG(v.nights) FROM visits AS v JOIN (SELECT ward AS w, COUNT(*) AS n FROM visits GROUP BY ward ORDER
BY n DESC LIMIT 2) AS t ON v.ward = t.w GROUP BY v.ward

-- query: group_by_a_released_key
-- keys: public
-- l1: 20, 20
-- rows: 1, 1
SELECT t.m, COUNT(*) FROM visits AS v JOIN (SELECT date_trunc('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY 1) AS t
ON date_trunc('month', v.day) = t.m GROUP BY t.m

-- query: group_by_a_released_count
-- keys: private and public
-- l1: 20, 20
-- rows: 1, 1
SELECT t.n, COUNT(*) FROM visits AS v JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t USING (ward) GROUP BY
t.n

-- query: left_join_result
-- keys: none and public
-- l1: 20, 20, 100
-- rows: 1, 1, 5
SELECT COUNT(t.n), SUM(clamp(t.n, 0, 5)) FROM visits AS v LEFT JOIN (SELECT ward, nights, COUNT(*) AS n FROM visits GROUP BY
ward, nights) AS t ON t.nights = v.nights AND t.ward = v.ward

-- query: mean_of_a_released_mean
-- keys: none and public
-- l1: 600, 600, 600, 600, 1200, 1200
-- rows: 30, 30, 30, 30, 60, 60
-- loose: 1/20 the frozen gate releases means near the middle of the interval
SELECT AVG(t.c), AVG(v.nights - t.c) FROM visits AS v JOIN (SELECT ward, AVG(nights) AS c FROM visits GROUP BY ward) AS t
USING (ward)

-- query: join_of_results
-- keys: none and public
-- l1: 20, 12, 20
-- rows: 1, 1, 1
SELECT COUNT(*) FROM visits AS v JOIN (SELECT a.ward, b.all_of FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS
a, (SELECT COUNT(*) AS all_of FROM labs) AS b) AS t ON t.ward = v.ward AND t.all_of > 0

-- query: distinct_result
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM patients AS p JOIN (SELECT DISTINCT z.zone, r.region FROM regions AS r JOIN regions AS z USING (region))
AS t ON t.region = p.region AND t.zone = CASE WHEN p.smoker THEN 'cold' ELSE 'warm' END

-- query: grouped_result
-- keys: none and public
-- l1: 20, 20
-- rows: 1, 1
SELECT COUNT(*) FROM visits AS v JOIN (SELECT t.ward, MAX(n) AS most FROM (SELECT ward, nights, COUNT(*) AS n FROM visits
GROUP BY 1, 2) AS t GROUP BY t.ward) AS u ON u.ward = v.ward AND u.most > 1

-- query: set_of_results
-- keys: none and public
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits AS v JOIN (SELECT ward FROM visits GROUP BY ward UNION SELECT ward FROM prices) AS t ON t.ward =
v.ward

-- query: cte_in_two_places
-- keys: public
-- l1: 600, 600, 20
-- rows: 30, 30, 1
WITH t AS (SELECT ward, AVG(nights) AS m FROM visits GROUP BY ward) SELECT a.ward, a.n, t.m FROM (SELECT v.ward, COUNT(*) AS
n FROM visits AS v JOIN t USING (ward) WHERE v.nights > t.m GROUP BY v.ward) AS a JOIN t USING (ward) ORDER BY 1

-- query: three_stages
-- keys: none and public
-- l1: 600, 600, 20, 20
-- rows: 30, 30, 1, 1
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits WHERE nights > (SELECT AVG(nights) FROM visits) GROUP BY
ward ORDER BY COUNT(*) DESC LIMIT 2)

-- query: correlated_mean
-- keys: public
-- l1: 600, 600, 20
-- rows: 30, 30, 1
SELECT v.ward, COUNT(*) FROM visits AS v WHERE v.nights > (SELECT AVG(w.nights) FROM visits AS w WHERE w.ward = v.ward AND
w.nights < 20) GROUP BY v.ward

-- query: correlated_count
-- keys: none and public
-- l1: 1, 1
-- rows: 1, 1
SELECT COUNT(*) FROM patients AS p WHERE (SELECT COUNT(*) FROM patients AS q WHERE q.region = p.region AND q.sex = p.sex) > 1

-- query: correlated_with_one_person
-- keys: none
-- l1: 20
-- rows: 15, 1, 1
SELECT COUNT(*) FROM visits AS v WHERE v.nights >= (SELECT AVG(w.nights) FROM visits AS w WHERE w.patient_id = v.patient_id)

-- query: correlated_with_a_result
-- keys: none and public
-- l1: 600, 600, 20
-- rows: 30, 30, 1
WITH t AS (SELECT ward, AVG(nights) AS m FROM visits GROUP BY ward) SELECT COUNT(*) FROM visits AS v WHERE v.nights < (SELECT
m + 20 FROM t WHERE t.ward = v.ward)

-- query: correlated_public_rows
-- keys: public
-- l1: 1
-- rows: 1
SELECT zone, region FROM regions AS r WHERE population > (SELECT COUNT(*) FROM patients AS p WHERE p.region = r.region) ORDER
BY region

-- query: private_keys_before
-- keys: none and private
-- l1: 1, 600, 600
-- rows: 30, 30
SELECT COUNT(*), AVG(nights) FROM visits WHERE diagnosis IN (SELECT diagnosis FROM visits GROUP BY diagnosis)

-- query: private_keys_joined
-- keys: private
-- l1: 20, 20
-- rows: 1, 1
SELECT v.diagnosis, COUNT(*) FROM visits AS v JOIN (SELECT diagnosis AS d, COUNT(*) AS n FROM visits GROUP BY diagnosis ORDER
BY n DESC LIMIT 3) AS t ON t.d = v.diagnosis GROUP BY v.diagnosis

-- query: private_keys_after
-- keys: none and private
-- l1: 600, 600, 20
-- rows: 30, 30, 1
SELECT diagnosis, COUNT(*) FROM visits WHERE nights < (SELECT AVG(nights) + 40 FROM visits) GROUP BY diagnosis

-- query: one_row_beside
-- keys: none and public
-- l1: 600, 600, 1200, 1200, 1200
-- rows: 30, 30, 60, 60, 60
WITH t AS (SELECT AVG(nights) AS m, COUNT(*) AS n FROM visits)
SELECT v.ward, COUNT(*), SUM(v.nights - t.m) FROM visits AS v, t WHERE v.nights > t.m / 2 GROUP BY v.ward

-- query: one_row_joined
-- keys: none
-- l1: 600, 600, 20
-- rows: 30, 30, 1
SELECT COUNT(*) FROM (SELECT AVG(nights) AS m FROM visits) AS t JOIN visits AS v ON v.nights > t.m

-- query: one_row_left_join
-- keys: none
-- l1: 600, 600, 20
-- rows: 30, 30, 1
SELECT COUNT(t.m) FROM visits AS v LEFT JOIN (SELECT AVG(nights) AS m FROM visits) AS t ON t.m > 3

-- query: correlated_inside_an_aggregate
-- keys: none
-- l1: 20, 20
-- rows: refused unbounded
SELECT AVG((SELECT COUNT(*) FROM visits AS v WHERE v.patient_id = p.patient_id)) FROM patients AS p

-- query: correlated_in_a_list
-- keys: public
-- l1: 1
-- rows: 1, 1
SELECT n, COUNT(*) FROM (SELECT p.sex, (SELECT COUNT(*) FROM visits AS v WHERE v.patient_id = p.patient_id) AS n FROM patients AS p) AS t
GROUP BY n

-- query: correlated_in_a_list_of_public_rows
-- keys: public
-- l1: 1
-- rows: 1
SELECT r.region, (SELECT COUNT(*) FROM patients AS p WHERE p.region = r.region) FROM regions AS r

-- query: correlated_beside_columns_of_any_name
-- keys: none
-- l1: 20, 20, 120
-- rows: refused unbounded
SELECT SUM(v), AVG((SELECT COUNT(*) FROM visits AS x WHERE x.patient_id = p.patient_id)) FROM (SELECT patient_id, age AS v, sex AS k0 FROM
patients) AS p WHERE k0 = 'f'

-- query: correlated_beside_public_columns_of_any_name
-- keys: public
-- l1: 1
-- rows: 1
SELECT r.region, v, k0, (SELECT COUNT(*) FROM patients AS p WHERE p.region = r.region) FROM (SELECT region, population AS v, zone AS k0
FROM regions) AS r

-- query: total_cut_of_one_row
-- set: dp.max_total = auto
-- keys: none
-- l1: 1, 1
-- rows: refused clip_rows
SELECT SUM(age) FROM patients

-- query: join_of_result_null_safe
-- keys: public
-- l1: 20, 20
-- rows: 1, 1
SELECT v.ward, COUNT(*) FROM visits v JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t ON v.ward = t.ward OR v.ward
IS NULL AND t.ward IS NULL WHERE n > 5 GROUP BY v.ward
