-- query: list
-- sqlstate: ZP005
-- at: LIST
SELECT LIST(cost) FROM visits

-- query: string_agg
-- sqlstate: ZP005
-- at: city
SELECT STRING_AGG(city, ',') FROM patients

-- query: any_value
-- sqlstate: ZP005
-- at: cost
SELECT ANY_VALUE(cost) FROM visits GROUP BY ward

-- query: first
-- sqlstate: ZP005
-- at: FIRST
SELECT FIRST(cost) FROM visits

-- query: any_value_for_each_visit
-- sqlstate: ZP005
-- at: test
SELECT t, COUNT(*) FROM (SELECT visit_id, ANY_VALUE(test) AS t FROM labs GROUP BY visit_id) AS q GROUP BY t

-- query: any_value_of_a_key_with_a_filter
-- sqlstate: ZP005
-- at: ward
SELECT ANY_VALUE(ward) FILTER (WHERE nights > 3) FROM visits GROUP BY ward
