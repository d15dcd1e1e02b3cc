-- query: star_beside_count
-- sqlstate: 0A000
-- at: *
SELECT *, COUNT(*) FROM patients GROUP BY ALL
