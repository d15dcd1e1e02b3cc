-- query: columns
-- sqlstate: 54000
SELECT COUNT(*) FROM (SELECT 1<<501*, cost>> FROM visits) AS t
