-- query: epsilon
-- sqlstate: 22023
SET dp.epsilon = 20000

-- query: delta
-- sqlstate: 22023
SET dp.delta = 0.5
