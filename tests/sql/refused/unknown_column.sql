-- query: misspelt
-- sqlstate: 42703
-- at: costs
SELECT SUM(costs) FROM visits

-- query: in_where
-- sqlstate: 42703
-- at: agee
SELECT COUNT(*) FROM patients WHERE agee > 3

-- query: over_results
-- sqlstate: 42703
-- at: m
SELECT m FROM (SELECT COUNT(*) AS n FROM visits) AS t

-- query: not_in_policy
-- sqlstate: 42703
-- at: rowid
SELECT COUNT(rowid) FROM visits

-- query: hidden_unit
-- sqlstate: 42703
-- at: "#unit"
SELECT COUNT("#unit") FROM visits
