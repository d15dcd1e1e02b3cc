-- query: root
-- sqlstate: 22000
-- at: sqrt(-1)
SELECT COUNT(*) FROM visits WHERE nights > sqrt(-1)

-- query: logarithm
-- sqlstate: 22000
-- at: ln(0.0)
SELECT SUM(clamp(nights * ln(0.0), 0, 9)) FROM visits

-- query: division
-- sqlstate: 22000
-- at: 1 / 0
SELECT COUNT(*) FROM visits WHERE CASE WHEN nights > 3 THEN 1 / 0 ELSE 0 END = 0

-- query: more_than_64_bits
-- sqlstate: 22000
-- at: 9223372036854775807 + 1
SELECT COUNT(*) FROM visits WHERE nights < 9223372036854775807 + 1

-- query: not_a_number
-- sqlstate: 22000
-- at: 'NaN'
SELECT COUNT(*) FROM visits WHERE nights = CAST('NaN'::DOUBLE AS INTEGER)

-- query: more_than_32_bits
-- sqlstate: 22000
-- at: 3000000000
SELECT COUNT(*) FROM visits WHERE nights < CAST(3000000000 AS INT)

-- query: more_digits_than_the_type
-- sqlstate: 22000
-- at: '12345.5'
SELECT COUNT(*) FROM visits WHERE cost < '12345.5'::DECIMAL(5, 2)

-- query: divided_by_zero
-- sqlstate: 22000
-- at: nights
SELECT COUNT(*) FROM visits WHERE nights // 0 = 1

-- query: more_than_32_bits_of_constants
-- sqlstate: 22000
-- at: 60 * 60
SELECT COUNT(*) FROM visits WHERE nights > 60 * 60 * 24 * 365 * 100

-- query: beyond_the_digits_when_rounded
-- sqlstate: 22000
-- at: '999.995'
SELECT COUNT(*) FROM visits WHERE cost < '999.995'::DECIMAL(5, 2)

-- query: no_decimal
-- sqlstate: 22000
-- at: 'nan'
SELECT COUNT(*) FROM visits WHERE cost < 'nan'::DECIMAL(5, 2)

-- query: days_beyond_the_calendar
-- sqlstate: 22000
-- at: day
SELECT day + INTERVAL '1000000 years' AS d, COUNT(*) FROM visits GROUP BY 1
