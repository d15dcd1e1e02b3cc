-- query: list
-- parameters: {"a": [1, 2]}
-- sqlstate: 22023
SELECT COUNT(*) FROM visits WHERE cost > $a

-- query: list_of_lists
-- parameters: [[[1, 2]]]
-- sqlstate: 22023
SELECT COUNT(*) FROM visits WHERE nights = ANY(?)
