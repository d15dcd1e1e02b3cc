-- query: sum_of_count
-- sqlstate: 42803
-- at: COUNT
SELECT SUM(COUNT(*)) FROM visits

-- query: in_where
-- sqlstate: 42803
-- at: SUM
SELECT COUNT(*) FROM visits WHERE SUM(cost) > 3

-- query: group_by
-- sqlstate: 42803
-- at: COUNT
SELECT COUNT(*) FROM visits GROUP BY COUNT(*)
