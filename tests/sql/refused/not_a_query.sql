-- query: insert
-- sqlstate: 42501
-- at: INSERT
INSERT INTO visits VALUES (1)

-- query: drop
-- sqlstate: 42501
-- at: DROP
DROP TABLE visits

-- query: copy
-- sqlstate: 42501
-- at: COPY
COPY visits TO 'x.csv'

-- query: pragma
-- sqlstate: 42501
-- at: PRAGMA
PRAGMA database_list

-- query: attach
-- sqlstate: 42501
-- at: ATTACH
ATTACH 'x.db'

-- query: create
-- sqlstate: 42501
-- at: CREATE
CREATE TABLE t AS SELECT COUNT(*) FROM visits
