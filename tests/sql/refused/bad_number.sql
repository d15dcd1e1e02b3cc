-- query: beyond_64_bits
-- sqlstate: 22003
-- at: 99999999999999999999
SELECT COUNT(*) FROM visits WHERE code = 99999999999999999999

-- query: huge
-- sqlstate: 22003
-- at: 1e305
SELECT COUNT(*) FROM visits WHERE cost > 1e305
