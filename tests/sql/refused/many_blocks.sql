-- query: scalars
-- sqlstate: 54000
SELECT 1<<51* + (SELECT SUM(clamp(code, 0, #)) FROM visits)>>
