-- query: not_sql
-- sqlstate: 42601
-- at: FROM
SELECT COUNT(* FROM visits

-- query: open_string
-- sqlstate: 42601
SELECT 'abc FROM visits

-- query: begin_with_more
-- sqlstate: 42601
-- at: eight
BEGIN one two three four five six seven eight nine
