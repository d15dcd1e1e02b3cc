-- query: number
-- sqlstate: 42804
-- at: cost
SELECT COUNT(*) FROM visits WHERE cost

-- query: filter
-- sqlstate: 42804
-- at: nights
SELECT COUNT(*) FILTER (WHERE nights) FROM visits
