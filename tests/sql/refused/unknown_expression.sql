-- query: bitwise
-- sqlstate: 0A000
-- at: cost
SELECT COUNT(*) FROM visits WHERE cost & 1 = 1

-- query: star_beside_count
-- sqlstate: 0A000
-- at: *
SELECT *, COUNT(*) FROM patients GROUP BY ALL
