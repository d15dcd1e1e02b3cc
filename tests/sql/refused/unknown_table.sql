-- query: misspelt
-- sqlstate: 42P01
-- at: visit
SELECT COUNT(*) FROM visit

-- query: of_the_engine
-- sqlstate: 42P01
-- at: duckdb_tables
SELECT COUNT(*) FROM duckdb_tables

-- query: information_schema
-- sqlstate: 42P01
-- at: information_schema
SELECT * FROM information_schema.tables

-- query: qualifier
-- sqlstate: 42P01
-- at: x
SELECT COUNT(x.cost) FROM visits

-- query: a_file
-- sqlstate: 42P01
-- at: '
SELECT COUNT(*) FROM 'visits.parquet'

-- query: sandbox_block
-- sqlstate: 42P01
-- at: dp_0
SELECT * FROM dp_0
