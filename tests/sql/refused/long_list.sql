-- query: numbers
-- sqlstate: 54000
-- at: nights
SELECT COUNT(*) FROM visits WHERE nights IN (1<<2001*, 1>>)
