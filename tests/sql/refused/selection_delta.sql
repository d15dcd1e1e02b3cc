-- query: tiny_delta
-- set: dp.delta = 1e-210
-- sqlstate: ZP202
SELECT city, COUNT(*) FROM patients GROUP BY city
