-- query: number
-- sqlstate: 42804
-- at: cost
SELECT COUNT(*) FROM visits WHERE cost

-- query: filter
-- sqlstate: 42804
-- at: nights
SELECT COUNT(*) FILTER (WHERE nights) FROM visits

-- query: having_a_key
-- sqlstate: 42804
-- at: ward)
SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING (ward)

-- query: having_a_count
-- sqlstate: 42804
-- at: COUNT(*)
SELECT ward FROM visits GROUP BY ward HAVING COUNT(*)

-- query: of_a_result
-- sqlstate: 42804
-- at: n
SELECT 1 FROM (SELECT COUNT(*) AS n FROM visits) WHERE n

-- query: a_released_key_as_a_condition
-- sqlstate: 42804
-- at: ward THEN
SELECT CASE WHEN ward THEN 1 ELSE 2 END FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS r

-- query: not_of_a_count
-- sqlstate: 42804
-- at: COUNT(*)
SELECT NOT COUNT(*) FROM visits

-- query: and_of_a_sum
-- sqlstate: 42804
-- at: SUM
SELECT SUM(nights) AND TRUE FROM visits

-- query: part_of_having
-- sqlstate: 42804
-- at: COUNT(*) > 3
SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 3 AND NOT COUNT(*)

-- query: case_of_a_result
-- sqlstate: 42804
-- at: n THEN
SELECT CASE WHEN n THEN 1 END FROM (SELECT COUNT(*) AS n FROM visits) AS r
