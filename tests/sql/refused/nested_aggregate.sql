-- query: sum_of_count
-- sqlstate: 42803
-- at: COUNT
SELECT SUM(COUNT(*)) FROM visits

-- query: group_by
-- sqlstate: 42803
-- at: COUNT
SELECT COUNT(*) FROM visits GROUP BY COUNT(*)
