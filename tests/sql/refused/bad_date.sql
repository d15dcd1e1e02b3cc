-- query: no_date
-- sqlstate: 22007
-- at: day
SELECT COUNT(*) FROM visits WHERE day > 'yesterday'

-- query: zone
-- sqlstate: 22007
-- at: seen
SELECT COUNT(*) FROM visits WHERE seen > '2024-01-01 00:00:00+02'

-- query: a_week
-- sqlstate: 22007
-- at: day >
SELECT COUNT(*) FROM visits WHERE day > '2024-W05-1'

-- query: a_letter_before_the_time
-- sqlstate: 22007
-- at: seen >
SELECT COUNT(*) FROM visits WHERE seen > '2024-01-01X10:00'

-- query: today
-- sqlstate: 22007
-- at: day >
SELECT COUNT(*) FROM visits WHERE day > 'today'

-- query: a_date_of_parts
-- sqlstate: 22007
-- at: make_date
SELECT COUNT(*) FROM visits WHERE day > make_date(2024, 2, 31)

-- query: date_without_hyphens
-- sqlstate: 22007
-- at: day
SELECT COUNT(*) FROM visits WHERE day > '20240101'
