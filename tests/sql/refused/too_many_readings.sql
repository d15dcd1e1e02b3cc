-- query: subscripts_of_if
-- sqlstate: 54001
SELECT <<30*IF[>>1<<30*]>>

-- query: limits_of_arguments
-- sqlstate: 54001
SELECT <<30*f(x LIMIT >>1<<30*)>> FROM visits

-- query: offsets_of_subqueries
-- sqlstate: 54001
SELECT COUNT(*) FROM <<30*(SELECT * FROM visits OFFSET >>1<<30*)>>

-- query: calls_of_calls
-- sqlstate: 54001
SELECT a<<900*.f()>> FROM visits

-- query: subqueries_in_subqueries
-- sqlstate: 54001
SELECT COUNT(*) FROM <<14*(SELECT * FROM visits v WHERE cost > 1 OR EXISTS (SELECT 1 FROM >>visits<<14* t WHERE t.patient_id = v.patient_id))>> s
