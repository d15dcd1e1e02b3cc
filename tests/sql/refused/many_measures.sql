-- query: sums
-- sqlstate: 54000
-- at: SUM
SELECT 1<<101* + SUM(clamp(code, 0, #))>> FROM visits
