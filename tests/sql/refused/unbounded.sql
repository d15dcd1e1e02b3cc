-- query: sum
-- sqlstate: ZP007
-- at: income
SELECT SUM(income) FROM patients

-- query: avg
-- sqlstate: ZP007
-- at: code
SELECT AVG(code) FROM visits

-- query: expression
-- sqlstate: ZP007
-- at: nights
SELECT SUM(nights / cost) FROM visits

-- query: logarithm
-- sqlstate: ZP007
-- at: ln
SELECT SUM(ln(cost)) FROM visits

-- query: overflow
-- sqlstate: ZP007
-- at: code
SELECT SUM(code * 2) FROM visits

-- query: regression
-- sqlstate: ZP007
-- at: income
SELECT CORR(income, age) FROM patients

-- query: mean_of_names
-- sqlstate: ZP007
-- at: patient_id
SELECT AVG(patient_id) FROM visits

-- query: median
-- sqlstate: ZP007
-- at: income
SELECT MEDIAN(income) FROM patients

-- query: smallest_of_what_names_people
-- sqlstate: ZP007
-- at: patient_id
SELECT MIN(patient_id) FROM patients
