-- query: no_rows
-- sqlstate: 0A000
-- at: generate_series
SELECT COUNT(*) FROM patients JOIN generate_series(5, 1) AS g(n) ON age = n

-- query: more_than_a_year
-- sqlstate: 0A000
-- at: generate_series
SELECT COUNT(*) FROM patients JOIN generate_series(1, 367) AS g(n) ON age = n

-- query: of_a_column
-- sqlstate: 0A000
-- at: generate_series
SELECT COUNT(*) FROM patients, generate_series(1, age) AS g(n)

-- query: without_a_step
-- sqlstate: 0A000
-- at: generate_series
SELECT * FROM generate_series(1, 5, 0) AS g(n)

-- query: dates_by_numbers
-- sqlstate: 0A000
-- at: generate_series
SELECT * FROM generate_series(DATE '2024-01-01', DATE '2024-12-01', 1) AS g(n)

-- query: a_date_to_a_number
-- sqlstate: 0A000
-- at: generate_series
SELECT * FROM generate_series(DATE '2024-01-01', 5, INTERVAL '1 day') AS g(n)

-- query: beyond_the_calendar
-- sqlstate: 0A000
-- at: generate_series
SELECT * FROM generate_series(DATE '9999-01-01', DATE '9999-12-31', INTERVAL '5 month') AS g(n)
