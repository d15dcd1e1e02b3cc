-- query: too_few
-- parameters: []
-- sqlstate: 07001
SELECT COUNT(*) FROM visits WHERE ward = $1

-- query: none_wanted
-- parameters: [1]
-- sqlstate: 07001
SELECT COUNT(*) FROM visits
