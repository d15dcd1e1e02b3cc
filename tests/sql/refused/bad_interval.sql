-- query: column
-- sqlstate: 22007
-- at: nights
SELECT COUNT(*) FROM visits WHERE day + INTERVAL (nights) DAY > '2024-05-01'

-- query: century
-- sqlstate: 22007
-- at: day
SELECT COUNT(*) FROM visits WHERE day + INTERVAL 1 CENTURY > '2024-05-01'
