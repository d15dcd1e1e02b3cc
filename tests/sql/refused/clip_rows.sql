-- query: max_total
-- policy: rows
-- sqlstate: 22023
SET dp.max_total = 100

-- query: max_count
-- policy: rows
-- sqlstate: 22023
SET dp.max_count = 5
