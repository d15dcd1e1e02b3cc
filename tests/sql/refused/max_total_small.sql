-- query: beside_large_values
-- set: dp.max_total = 1e-6
-- sqlstate: 22023
SELECT SUM(clamp(income, -1e15, 1e15)) FROM patients
