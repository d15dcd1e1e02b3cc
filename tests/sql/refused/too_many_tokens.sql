-- query: ones
-- sqlstate: 54000
-- at: +
SELECT 1<<10001* + 1>> FROM visits
