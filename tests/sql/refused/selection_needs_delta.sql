-- query: private_keys
-- set: dp.delta = 0
-- sqlstate: ZP013
SELECT city, COUNT(*) FROM patients GROUP BY city
