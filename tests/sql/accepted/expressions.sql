-- query: arithmetic
-- keys: none
-- l1: 40600
-- rows: 2030
SELECT SUM(cost * 2 + nights) FROM visits

-- query: difference
-- keys: none
-- l1: 20200
-- rows: 1010
SELECT SUM(cost - change) FROM visits

-- query: square
-- keys: none
-- l1: 2000
-- rows: 100
SELECT SUM(change * change) FROM visits

-- query: product
-- keys: none
-- l1: 6000
-- rows: 300
SELECT SUM(change * nights) FROM visits

-- query: absolute
-- keys: none
-- l1: 40, 40, 200
-- rows: 2, 2, 10
SELECT SUM(abs(change)), AVG(sign(change)) FROM visits

-- query: divided
-- keys: none
-- l1: 2000
-- rows: 100
SELECT SUM(cost / 10) FROM visits

-- query: divided_by_column
-- keys: none
-- l1: 1000
-- rows: 50
SELECT SUM(clamp(cost / nights, 0, 50)) FROM visits

-- query: whole_division
-- keys: none
-- l1: 80, 120
-- rows: 4, 6
SELECT SUM(nights // 7), SUM(nights % 7) FROM visits

-- query: rounded
-- keys: none
-- l1: 120, 120, 48
-- rows: refused join
SELECT SUM(round(change)), SUM(floor(change)), SUM(ceil(value)) FROM visits JOIN labs USING (visit_id)

-- query: root
-- keys: none
-- l1: 640
-- rows: 32
SELECT SUM(sqrt(cost)) FROM visits

-- query: logarithm_clamped
-- keys: none
-- l1: 138.15510558, 138.15510558
-- rows: 6.90775527899, 6.90775527899
SELECT AVG(clamp(ln(cost), 0, 7)) FROM visits

-- query: power
-- keys: none
-- l1: 20000
-- rows: 1000
SELECT SUM(power(change, 3)) FROM visits

-- query: least_greatest
-- keys: none
-- l1: 4000
-- rows: 200
SELECT SUM(least(greatest(cost, 100), 200)) FROM visits

-- query: coalesce
-- keys: none
-- l1: 2400, 2400, 20000
-- rows: refused join
SELECT SUM(coalesce(cost, 50)), AVG(coalesce(age, 0)) FROM visits JOIN patients USING (patient_id)

-- query: case
-- keys: none
-- l1: 40000
-- rows: 2000
SELECT SUM(CASE WHEN ward = 'er' THEN cost WHEN ward = 'icu' THEN 2 * cost ELSE 0 END) FROM visits

-- query: case_counts
-- keys: none
-- l1: 20, 20
-- rows: 1, 1
SELECT SUM(CASE WHEN cost > 100 THEN 1 ELSE 0 END) AS over, SUM(CASE WHEN cost <= 100 THEN 1 END) AS under FROM visits

-- query: nullif
-- keys: none
-- l1: 20, 600
-- rows: 1, 30
SELECT COUNT(nullif(ward, 'er')), SUM(nullif(nights, 30)) FROM visits

-- query: casts
-- keys: none
-- l1: 20000, 180
-- rows: 1000, 9
SELECT SUM(CAST(cost AS INTEGER)), SUM(clamp(TRY_CAST(diagnosis AS DOUBLE), 0, 9)) FROM visits

-- query: boolean_as_number
-- keys: none
-- l1: 1, 1
-- rows: 1, 1
SELECT SUM(CAST(smoker AS INTEGER)), AVG(CAST(smoker AS INTEGER)) FROM patients

-- query: dates
-- keys: none
-- l1: 7300, 7300, 240
-- rows: 365, 365, 12
SELECT AVG(date_diff('day', DATE '2024-01-01', day)), SUM(extract(month FROM day)) FROM visits

-- query: hours
-- keys: none
-- l1: 460, 460
-- rows: 23, 23
SELECT AVG(extract(hour FROM seen)) FROM visits

-- query: width_bucket
-- keys: none
-- l1: 220
-- rows: 11
SELECT SUM(width_bucket(cost, 0, 1000, 10)) FROM visits

-- query: text_length
-- keys: none
-- l1: 400, 20
-- rows: 20, 1
SELECT SUM(clamp(length(diagnosis), 0, 20)), COUNT(DISTINCT upper(left(diagnosis, 2))) FROM visits

-- query: distinct_expression
-- loose: 2/5 (the codes of the persons that are tried have few different last digits)
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(DISTINCT code % 10) FROM visits

-- query: extreme_integers
-- keys: none
-- l1: 200, 200
-- rows: 10, 10
SELECT SUM(clamp(code * code, 0, 10)), SUM(clamp(code + 9000000000000000000, 0, 10)) FROM visits

-- query: regular_expressions
-- keys: none
-- l1: 20, 20
-- rows: 1, 1
SELECT COUNT_IF(diagnosis ~ '^f.u$'), COUNT(DISTINCT regexp_replace(diagnosis, '[aeiou]+', '', 'g')) FROM visits
WHERE NOT regexp_matches(ward, 'x{3}', 'i')

-- query: parts_of_texts
-- keys: none
-- l1: 400, 20, 60
-- rows: 20, 1, 3
SELECT SUM(clamp(strlen(diagnosis), 0, 20)), COUNT(DISTINCT concat_ws('-', ward, split_part(diagnosis, 'l', 2))),
  SUM(clamp(strpos(diagnosis, 'u'), 0, 3)) FROM visits

-- query: seconds_since
-- keys: none
-- l1: 60, 20
-- rows: 3, 1
SELECT SUM(clamp(extract(epoch FROM seen) - 1704067200, 0, 3)), COUNT(last_day(seen)) FROM visits

-- query: logarithm_keeps_bounds
-- keys: none
-- l1: 47.957905456
-- rows: 2.3978952728
SELECT SUM(ln(1 + abs(change))) FROM visits

-- query: exponential_keeps_bounds
-- keys: none
-- l1: 1
-- rows: 1
SELECT SUM(exp(-age / 100)) FROM patients

-- query: angles
-- keys: none
-- l1: 360.000841837, 360.000841837
-- rows: 360.000841837, 360.000841837
SELECT AVG(degrees(atan2(sin(radians(age)), cos(age * pi() / 180)))) FROM patients

-- query: constants_beside_a_bare_null
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits
WHERE (CASE NULL WHEN nights THEN cost WHEN 2 THEN change ELSE 0 END) = 0 AND (cost + NULL > CASE WHEN nights = 3 THEN 1 ELSE 5 END) IS NULL

-- query: a_joined_text_that_is_always_null
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE coalesce(CASE WHEN nights = 3 THEN ward ELSE 'x' END || NULL, diagnosis) = 'flu'
