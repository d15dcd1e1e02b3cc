-- query: blob
-- sqlstate: 42704
-- at: diagnosis
SELECT COUNT(CAST(diagnosis AS BLOB)) FROM visits

-- query: list
-- sqlstate: 42704
-- at: diagnosis
SELECT COUNT(CAST(diagnosis AS INTEGER[])) FROM visits
