-- query: negative_epsilon
-- sqlstate: 22023
SET dp.epsilon = -1

-- query: not_a_number
-- sqlstate: 22023
SET dp.epsilon = 'NaN'

-- query: huge_exponent
-- sqlstate: 22023
SET dp.epsilon = 1e999999999

-- query: mechanism
-- sqlstate: 22023
SET dp.mechanism = 'none'
