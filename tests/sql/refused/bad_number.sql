-- query: beyond_64_bits
-- sqlstate: 22003
-- at: 99999999999999999999
SELECT COUNT(*) FROM visits WHERE code = 99999999999999999999

-- query: text_beyond_64_bits
-- sqlstate: 22003
-- at: nights IN
SELECT COUNT(*) FROM visits WHERE nights IN ('-9223372036854775808', '1')

-- query: huge
-- sqlstate: 22003
-- at: 1e305
SELECT COUNT(*) FROM visits WHERE cost > 1e305

-- query: whole_number_of_too_many_digits_over_results
-- sqlstate: 22003
-- at: 99999999999999999999999999999999999999999
SELECT COUNT(*) + 99999999999999999999999999999999999999999 FROM visits

-- query: no_double_over_results
-- sqlstate: 22003
-- at: 1e400
SELECT COUNT(*) * 1e400 FROM visits

-- query: text_beyond_doubles
-- sqlstate: 22003
-- at: '10e400'
SELECT COUNT(*) FROM visits WHERE cost > '10e400'::DOUBLE
