-- query: two
-- sqlstate: 0A000
-- at: COUNT
SELECT COUNT(DISTINCT ward, diagnosis) FROM visits

-- query: two_in_brackets
-- sqlstate: 0A000
-- at: COUNT
SELECT COUNT(DISTINCT (ward, diagnosis)) FROM visits
