-- query: alias
-- sqlstate: 0A000
-- at: p
SELECT p FROM patients AS p

-- query: table
-- sqlstate: 0A000
-- at: visits)
SELECT COUNT(visits) FROM visits

-- query: public_table
-- sqlstate: 0A000
-- at: r
SELECT r FROM regions AS r
