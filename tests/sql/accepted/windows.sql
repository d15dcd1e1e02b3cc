-- query: first_visit
-- keys: public
-- l1: 1
-- rows: refused window_over_rows
SELECT ward, COUNT(*) FROM (SELECT *, row_number() OVER (PARTITION BY patient_id ORDER BY day) AS n FROM visits) AS t WHERE n = 1 GROUP BY ward

-- query: first_three
-- keys: none
-- l1: 3000, 3000
-- rows: refused window_over_rows
SELECT COUNT(*), SUM(cost) FROM (SELECT *, row_number() OVER (PARTITION BY patient_id ORDER BY day DESC, nights) AS n FROM visits) AS t WHERE n <= 3 AND ward <> 'x'

-- query: below_a_number
-- keys: none
-- l1: 4
-- rows: refused window_over_rows
SELECT COUNT(*) FROM (SELECT n FROM (SELECT row_number() OVER (PARTITION BY patient_id ORDER BY day) AS n FROM visits) AS t WHERE n < 5) AS u

-- query: qualify
-- keys: none
-- l1: 2
-- rows: refused window_over_rows
SELECT COUNT(*) FROM (SELECT ward, row_number() OVER (PARTITION BY patient_id ORDER BY day) AS n FROM visits QUALIFY n <= 2) AS t

-- query: ranks_may_tie
-- keys: none
-- l1: 20, 20
-- rows: refused window_over_rows
SELECT COUNT_IF(r = 1), COUNT_IF(d = 1) FROM (SELECT rank() OVER (PARTITION BY patient_id ORDER BY ward) AS r,
  dense_rank() OVER (PARTITION BY patient_id ORDER BY ward) AS d FROM visits) AS t

-- query: ranks_in_no_order
-- keys: none
-- l1: 20, 20
-- rows: refused window_over_rows
SELECT COUNT_IF(r = 1), COUNT_IF(d = 1) FROM (SELECT rank() OVER (PARTITION BY patient_id) AS r,
  dense_rank() OVER (PARTITION BY patient_id, ward ORDER BY patient_id) AS d FROM visits) AS t

-- query: all_of_rank_one
-- keys: none
-- l1: 20
-- rows: refused window_over_rows
SELECT COUNT(*) FROM (SELECT rank() OVER (PARTITION BY patient_id ORDER BY length(ward) > 0) AS r FROM visits) AS t WHERE r = 1

-- query: first_of_each_kind
-- keys: none
-- l1: 20
-- rows: refused window_over_rows
SELECT COUNT(*) FROM (SELECT row_number() OVER (PARTITION BY nights, patient_id ORDER BY day) AS n FROM visits) AS t WHERE n = 1

-- query: number_as_key
-- keys: public
-- l1: 20
-- rows: refused window_over_rows
SELECT n, COUNT(*) FROM (SELECT row_number() OVER (PARTITION BY patient_id ORDER BY day) AS n FROM visits) AS t GROUP BY n

-- query: time_between_visits
-- keys: none
-- l1: 7300
-- rows: refused window_over_rows
-- loose: 0.02 (days between visits that follow one another add up to a year at most)
SELECT SUM(date_diff('day', before, day)) FROM (SELECT day, lag(day) OVER (PARTITION BY patient_id ORDER BY day) AS before FROM visits) AS t

-- query: values_of_other_rows
-- keys: none
-- l1: 600, 600
-- rows: refused window_over_rows
SELECT SUM(f), SUM(l) FROM (SELECT first_value(nights) OVER (PARTITION BY patient_id ORDER BY day) AS f, lead(nights, 0) OVER (PARTITION BY patient_id ORDER BY day DESC) AS l FROM visits) AS t

-- query: running_totals
-- keys: none
-- l1: 400, 600
-- rows: refused window_over_rows
-- loose: 0.5 (running counts grow from 1 to 20)
SELECT SUM(c), SUM(m) FROM (SELECT count(*) OVER (PARTITION BY patient_id ORDER BY day) AS c, max(nights) OVER (PARTITION BY patient_id) AS m FROM visits) AS t

-- query: last_ward
-- keys: public
-- l1: 1
-- rows: refused row_list
SELECT last, COUNT(*) FROM (SELECT patient_id, LAST(ward ORDER BY day, visit_id) AS last FROM visits GROUP BY patient_id) AS t GROUP BY last

-- query: cost_of_the_longest_visit
-- keys: none
-- l1: 1000
-- rows: refused not_listed
SELECT SUM(c) FROM (SELECT patient_id, MAX_BY(cost, nights) FILTER (WHERE ward <> 'x') AS c FROM visits GROUP BY patient_id) AS t

-- query: first_visit_by_distinct_on
-- keys: public
-- l1: 1
-- rows: refused window_over_rows
SELECT ward, COUNT(*) FROM (SELECT DISTINCT ON (patient_id) patient_id, ward FROM visits ORDER BY patient_id, day, visit_id) AS t GROUP BY ward

-- query: sum_of_row_numbers
-- keys: none
-- l1: 400
-- rows: refused window_over_rows
-- loose: 0.5 (the numbers of 20 rows add up to 210)
SELECT SUM(n) FROM (SELECT row_number() OVER (PARTITION BY patient_id ORDER BY day) AS n FROM visits) AS t

-- query: an_alias_in_a_window_beside_group_by_all
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) AS n, lag(n) OVER (ORDER BY ward) AS before FROM visits GROUP BY ALL
