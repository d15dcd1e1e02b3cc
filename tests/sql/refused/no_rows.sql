-- query: constant
-- sqlstate: ZP008
-- at: 1 = 0
SELECT COUNT(*) FROM visits WHERE 1 = 0

-- query: bounds
-- sqlstate: ZP008
-- at: nights > 4 AND nights < 3
SELECT AVG(cost) FROM visits WHERE nights > 4 AND nights < 3

-- query: half_a_night
-- sqlstate: ZP008
-- at: nights = 2.5
SELECT ward, COUNT(*) FROM visits WHERE nights = 2.5 GROUP BY ward

-- query: two_values_at_once
-- sqlstate: ZP008
-- at: ward = 'er' AND ward = 'icu'
SELECT ward, COUNT(*) FROM visits WHERE ward = 'er' AND ward = 'icu' GROUP BY ward

-- query: behind_a_cte
-- sqlstate: ZP008
-- at: w IN ('er') AND NOT w = 'er'
WITH v AS (SELECT ward AS w, nights AS n FROM visits) SELECT AVG(n) FROM v WHERE w IN ('er') AND NOT w = 'er'

-- query: behind_a_join
-- sqlstate: ZP008
-- at: nights >= 3 AND NOT nights >= 2
SELECT COUNT(*) FROM patients p JOIN (SELECT * FROM visits WHERE nights >= 3 AND NOT nights >= 2) v USING (patient_id)

-- query: private_keys
-- sqlstate: ZP008
-- at: smoker AND NOT smoker
SELECT city, COUNT(*) FROM patients WHERE smoker AND NOT smoker GROUP BY city

-- query: by_person
-- sqlstate: ZP008
-- at: day > '2024-03-01' AND day < '2024-03-02'
SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits WHERE day > '2024-03-01' AND day < '2024-03-02' GROUP BY patient_id) t

-- query: without_a_partner
-- sqlstate: ZP008
SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.ward = 'er' AND v.ward = 'icu')

-- query: like_null
-- sqlstate: ZP008
-- at: ward
SELECT COUNT(*) FROM visits WHERE ward LIKE NULL

-- query: ilike_null_beside_a_part
-- sqlstate: ZP008
-- at: nights
SELECT COUNT(*) FROM visits WHERE nights > 1 AND NOT ward ILIKE NULL

-- query: null_within_a_sum
-- sqlstate: ZP008
-- at: nights
SELECT COUNT(*) FROM visits WHERE nights + NULL > 1

-- query: null_over_results
-- sqlstate: ZP008
-- at: COUNT(*) > NULL
SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > NULL

-- query: contradiction_over_results
-- sqlstate: ZP008
-- at: n > 4 AND n < 3
SELECT ward FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) t WHERE n > 4 AND n < 3

-- query: no_public_row
-- sqlstate: ZP008
SELECT COUNT(*) FROM visits WHERE ward = (SELECT ward FROM prices WHERE item = 'none' LIMIT 1)

-- query: count_of_null
-- sqlstate: ZP008
-- at: COUNT(NULL)
SELECT ward, COUNT(NULL) FROM visits WHERE nights > 3 GROUP BY ward

-- query: filter_that_is_false
-- sqlstate: ZP008
-- at: NULL
SELECT AVG(cost) FILTER (WHERE NULL) FROM visits WHERE nights > 3

-- query: case_that_is_never_true
-- sqlstate: ZP008
-- at: SUM(CASE WHEN nights > 4 AND nights < 3 THEN 1 ELSE 0 END)
SELECT SUM(CASE WHEN nights > 4 AND nights < 3 THEN 1 ELSE 0 END) FROM visits

-- query: having_below_another_select
-- sqlstate: ZP008
-- at: COUNT(*) > 4 AND COUNT(*) < 3
WITH t AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 4 AND COUNT(*) < 3) SELECT SUM(n) FROM t
