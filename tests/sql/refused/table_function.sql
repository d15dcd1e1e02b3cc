-- query: glob
-- sqlstate: 0A000
-- at: glob
SELECT * FROM glob('*')

-- query: read_csv
-- sqlstate: 0A000
-- at: read_csv
SELECT COUNT(*) FROM read_csv('x.csv')
