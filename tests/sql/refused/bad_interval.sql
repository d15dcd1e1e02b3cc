-- query: column
-- sqlstate: 22007
-- at: nights
SELECT COUNT(*) FROM visits WHERE day + INTERVAL (nights) DAY > '2024-05-01'

-- query: fortnight
-- sqlstate: 22007
-- at: day
SELECT COUNT(*) FROM visits WHERE day + INTERVAL 1 FORTNIGHT > '2024-05-01'
