-- query: two
-- sqlstate: 42601
-- at: ;
SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM patients
