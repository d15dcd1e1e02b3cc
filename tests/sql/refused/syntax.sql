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

-- query: join_without_from
-- sqlstate: 42601
-- at: diagnosis
SELECT diagnosis, AVG(cost) JOIN patients USING (patient_id) GROUP BY diagnosis

-- query: nothing_selected
-- sqlstate: 42601
SELECT

-- query: nothing_after_where
-- sqlstate: 42601
-- at: WHERE
SELECT SUM(cost) FROM visits WHERE

-- query: nothing_between_dots
-- sqlstate: 42601
-- at: public
SELECT COUNT(*) FROM public. .visits

-- query: arrow_alone
-- sqlstate: 42601
SELECT ->
