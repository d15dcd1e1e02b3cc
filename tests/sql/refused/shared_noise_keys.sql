-- query: private_keys
-- set: dp.mechanism = correlated_laplace
-- sqlstate: 0A000
SELECT city, COUNT(*) FROM patients GROUP BY city

-- query: a_private_key_beside_a_public_one
-- set: dp.mechanism = correlated_laplace
-- sqlstate: 0A000
SELECT region, city, SUM(age) FROM patients GROUP BY region, city
