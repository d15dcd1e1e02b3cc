-- query: bounds_that_are_no_numbers
-- sqlstate: 42601
-- at: contribution_bounds_per_row
SELECT SUM(cost, contribution_bounds_per_row => (0, cost)) FROM visits

-- query: one_bound
-- sqlstate: 42601
-- at: contribution_bounds_per_row
SELECT SUM(cost, contribution_bounds_per_row => 10) FROM visits

-- query: no_value_before_the_bounds
-- sqlstate: 42601
-- at: contribution_bounds_per_row
SELECT SUM(contribution_bounds_per_row => (0, 10)) FROM visits

-- query: two_values_before_the_bounds
-- sqlstate: 42601
-- at: contribution_bounds_per_row
SELECT CORR(cost, nights, contribution_bounds_per_row => (0, 10)) FROM visits
