-- query: clamp
-- sqlstate: 42883
-- at: clamp
SELECT clamp(COUNT(*), 0, 10) FROM visits
