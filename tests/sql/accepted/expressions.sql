-- query: arithmetic
SELECT SUM(cost * 2 + nights) FROM visits

-- query: difference
SELECT SUM(cost - change) FROM visits

-- query: square
SELECT SUM(change * change) FROM visits

-- query: product
SELECT SUM(change * nights) FROM visits

-- query: absolute
SELECT SUM(abs(change)), AVG(sign(change)) FROM visits

-- query: divided
SELECT SUM(cost / 10) FROM visits

-- query: divided_by_column
SELECT SUM(clamp(cost / nights, 0, 50)) FROM visits

-- query: whole_division
SELECT SUM(nights // 7), SUM(nights % 7) FROM visits

-- query: rounded
SELECT SUM(round(change)), SUM(floor(change)), SUM(ceil(value)) FROM visits JOIN labs USING (visit_id)

-- query: root
SELECT SUM(sqrt(cost)) FROM visits

-- query: logarithm_clamped
SELECT AVG(clamp(ln(cost), 0, 7)) FROM visits

-- query: power
SELECT SUM(power(change, 3)) FROM visits

-- query: least_greatest
SELECT SUM(least(greatest(cost, 100), 200)) FROM visits

-- query: coalesce
SELECT SUM(coalesce(cost, 50)), AVG(coalesce(age, 0)) FROM visits JOIN patients USING (patient_id)

-- query: case
SELECT SUM(CASE WHEN ward = 'er' THEN cost WHEN ward = 'icu' THEN 2 * cost ELSE 0 END) FROM visits

-- query: case_counts
SELECT SUM(CASE WHEN cost > 100 THEN 1 ELSE 0 END) AS over, SUM(CASE WHEN cost <= 100 THEN 1 END) AS under FROM visits

-- query: nullif
SELECT COUNT(nullif(ward, 'er')), SUM(nullif(nights, 30)) FROM visits

-- query: casts
SELECT SUM(CAST(cost AS INTEGER)), SUM(clamp(TRY_CAST(diagnosis AS DOUBLE), 0, 9)) FROM visits

-- query: boolean_as_number
SELECT SUM(CAST(smoker AS INTEGER)), AVG(CAST(smoker AS INTEGER)) FROM patients

-- query: dates
SELECT AVG(date_diff('day', DATE '2024-01-01', day)), SUM(extract(month FROM day)) FROM visits

-- query: hours
SELECT AVG(extract(hour FROM seen)) FROM visits

-- query: width_bucket
SELECT SUM(width_bucket(cost, 0, 1000, 10)) FROM visits

-- query: text_length
SELECT SUM(clamp(length(diagnosis), 0, 20)), COUNT(DISTINCT upper(left(diagnosis, 2))) FROM visits

-- query: distinct_expression
SELECT COUNT(DISTINCT code % 10) FROM visits

-- query: extreme_integers
SELECT SUM(clamp(code * code, 0, 10)), SUM(clamp(code + 9000000000000000000, 0, 10)) FROM visits
