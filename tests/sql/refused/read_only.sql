-- query: for_update
-- sqlstate: 25006
SELECT COUNT(*) FROM visits FOR UPDATE

-- query: for_share_of_public_rows
-- sqlstate: 25006
SELECT * FROM regions FOR SHARE
