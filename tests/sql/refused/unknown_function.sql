-- query: random
-- sqlstate: 42883
-- at: random
SELECT COUNT(*) FROM visits WHERE random() > 0.5

-- query: error
-- sqlstate: 42883
-- at: error
SELECT SUM(clamp(error('x'), 0, 1)) FROM visits

-- query: getenv
-- sqlstate: 42883
-- at: getenv
SELECT getenv('HOME'), COUNT(*) FROM visits

-- query: read_text_over_result
-- sqlstate: 42883
-- at: read_text
SELECT read_text('x'), COUNT(*) FROM visits

-- query: setseed
-- sqlstate: 42883
-- at: setseed
SELECT COUNT(*), setseed(0.5) FROM visits

-- query: now
-- sqlstate: 42883
-- at: hash
SELECT COUNT(*) FROM visits WHERE hash(cost) % 2 = 0

-- query: of_the_parser
-- sqlstate: 42883
-- at: ts_or_ds_to_date_str
SELECT COUNT(*) FROM visits WHERE ts_or_ds_to_date_str() > 1

-- query: not read, but of all rows: as an aggregate it always gives one
-- sqlstate: 42883
-- at: product
SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT product(v.nights) FROM visits v WHERE v.patient_id = p.patient_id)

-- query: not read, but no row where there is no element
-- sqlstate: 42883
-- at: unnest
SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT unnest([1]) FROM visits v WHERE v.patient_id = p.patient_id AND nights > 3) OR EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND nights > 7)

-- query: aggregate_listed_by_the_second_of_two_exists
-- sqlstate: 42883
-- at: product
SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND nights > 3)
  OR EXISTS (SELECT product(nights) FROM visits v WHERE v.patient_id = p.patient_id AND nights < 2)

-- query: over_results
-- sqlstate: 42883
-- at: sha256
SELECT sha256(k), n FROM (SELECT ward AS k, COUNT(*) AS n FROM visits GROUP BY ward) AS t
