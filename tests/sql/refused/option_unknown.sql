-- query: misspelt
-- sqlstate: 42704
SET dp.epsilom = 1

-- query: bigquery
-- sqlstate: 42704
-- at: epsilom
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilom = 1) COUNT(*) FROM visits
