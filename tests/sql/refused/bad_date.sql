-- query: no_date
-- sqlstate: 22007
-- at: day
SELECT COUNT(*) FROM visits WHERE day > 'yesterday'

-- query: zone
-- sqlstate: 22007
-- at: seen
SELECT COUNT(*) FROM visits WHERE seen > '2024-01-01 00:00:00+02'
