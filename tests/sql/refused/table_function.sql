-- query: range
-- sqlstate: 0A000
-- at: range
SELECT * FROM range(10)

-- query: read_csv
-- sqlstate: 0A000
-- at: read_csv
SELECT COUNT(*) FROM read_csv('x.csv')
