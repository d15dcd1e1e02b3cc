-- query: integer
-- sqlstate: 22P02
-- at: '4O'
SELECT COUNT(*) FROM visits WHERE nights = '4O'::int

-- query: integer_with_a_fraction
-- sqlstate: 22P02
-- at: '40.0'
SELECT COUNT(*) FROM visits WHERE nights = CAST('40.0' AS BIGINT)

-- query: number_with_a_comma
-- sqlstate: 22P02
-- at: '5,5'
SELECT COUNT(*) FROM visits WHERE cost > '5,5'::double

-- query: truth_value
-- sqlstate: 22P02
-- at: 'maybe'
SELECT COUNT(*) FROM patients WHERE smoker = 'maybe'::boolean

-- query: over_results
-- sqlstate: 22P02
-- at: 'abc'
SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > CAST('abc' AS DOUBLE)
