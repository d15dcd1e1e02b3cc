-- query: max_values
-- policy: rows
-- sqlstate: 22023
SET dp.max_values = 5
