-- query: mode_of_a_text_without_a_domain
-- sqlstate: ZP007
-- at: diagnosis
SELECT MODE(diagnosis) FROM visits

-- query: mode_of_a_real
-- sqlstate: ZP007
-- at: weight
SELECT MODE(weight) FROM patients

-- query: mode_of_people
-- sqlstate: ZP007
-- at: patient_id
SELECT MODE(patient_id) FROM patients

-- query: smallest_text_without_a_domain
-- sqlstate: ZP007
-- at: city
SELECT MIN(city) FROM patients

-- query: key_without_a_domain
-- sqlstate: ZP007
-- at: city
SELECT ARG_MAX(city, age) FROM patients

-- query: order_of_texts_without_a_domain
-- sqlstate: ZP007
-- at: city
SELECT ARG_MIN(region, city) FROM patients
