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
