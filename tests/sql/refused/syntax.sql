-- query: not_sql
-- sqlstate: 42601
-- at: FROM
SELECT COUNT(* FROM visits

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
-- at: SELECT
SELECT

-- query: nothing_before_a_comma
-- sqlstate: 42601
-- at: SELECT
SELECT , COUNT(*) FROM visits

-- query: nothing_grouped
-- sqlstate: 42601
-- at: GROUP BY
SELECT AVG(cost) FROM visits GROUP BY

-- query: bracket_not_closed
-- sqlstate: 42601
-- at: (
SELECT MAX(cost FROM visits

-- query: texts_without_a_comma
-- sqlstate: 42601
-- at: 'icu'
SELECT COUNT(*) FROM visits WHERE ward IN ('er' 'icu')

-- query: between_without_and
-- sqlstate: 42601
-- at: BETWEEN
SELECT COUNT(*) FROM visits WHERE cost BETWEEN 2 nights

-- query: nothing_counted
-- sqlstate: 42601
-- at: DISTINCT
SELECT COUNT(DISTINCT) FROM visits

-- query: using_without_brackets
-- sqlstate: 42601
-- at: USING
SELECT COUNT(*) FROM visits JOIN patients USING patient_id

-- query: star_without_function
-- sqlstate: 42601
-- at: , (*)
SELECT ward, (*) AS n FROM visits GROUP BY ward

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

-- query: option_twice
-- sqlstate: 42601
-- at: Epsilon = 0.5
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.1, Epsilon = 0.5) COUNT(*) FROM patients

-- query: rows_of_different_lengths
-- sqlstate: 42601
-- at: 1, 2), (3)
SELECT COUNT(*) FROM patients JOIN (VALUES (1, 2), (3)) AS v(a, b) ON age = a

-- query: top_share
-- sqlstate: 42601
-- at: 10 PERCENT
SELECT TOP 10 PERCENT region, COUNT(*) FROM patients GROUP BY region

-- query: top_beside_limit
-- sqlstate: 42601
-- at: TOP
SELECT TOP 1 region, COUNT(*) FROM patients GROUP BY region LIMIT 2

-- query: top_in_a_later_select_of_a_union
-- sqlstate: 42601
-- at: TOP
SELECT region, COUNT(*) FROM patients GROUP BY region UNION ALL SELECT TOP 1 region, COUNT(*) FROM patients GROUP BY region

-- query: top_in_the_first_select_of_a_union
-- sqlstate: 42601
-- at: TOP
SELECT TOP 1 region, COUNT(*) FROM patients GROUP BY region UNION ALL SELECT region, COUNT(*) FROM patients GROUP BY region

-- query: top_in_other_digits
-- sqlstate: 42601
-- at: region
SELECT TOP ٣ region, COUNT(*) FROM patients GROUP BY region

-- query: compared_rows_of_different_lengths
-- sqlstate: 42601
-- at: ward
SELECT COUNT(*) FROM visits WHERE (ward, nights) IN (('er', 1), ('icu', 2, 3))

-- query: column_called_like_a_word_of_sql
-- sqlstate: 42601
-- at: , AVG
SELECT union, AVG(age) FROM patients GROUP BY union

-- query: column_with_a_name_of_our_own
-- sqlstate: 42601
-- at: "dp#at"
SELECT region AS "dp#at", COUNT(*) FROM patients GROUP BY region

-- query: table_with_a_name_of_our_own
-- sqlstate: 42601
-- at: "DP#1"
SELECT COUNT(*) FROM patients AS "DP#1"

-- query: subquery_with_a_name_that_a_comparison_of_rows_has
-- sqlstate: 42601
-- at: "listed rows
SELECT COUNT(*) FROM (SELECT ward, nights FROM visits) AS "listed rows dp#c" WHERE (ward, nights) IN (('er', 1), ('icu', 2))

-- query: options_at_the_end
-- sqlstate: 42601
-- at: OPTIONS
SELECT region, COUNT(*) FROM patients GROUP BY region OPTIONS (min_units => 5)

-- query: options_alone_behind_select
-- sqlstate: 42601
-- at: OPTIONS
SELECT OPTIONS (min_units = 5) region, COUNT(*) FROM patients GROUP BY region

-- query: privacy_clause_at_the_end
-- sqlstate: 42601
-- at: WITH
SELECT region, COUNT(*) FROM patients GROUP BY region WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.1)

-- query: join_without_a_condition
-- sqlstate: 42601
-- at: JOIN patients
SELECT COUNT(*) FROM visits AS v JOIN patients AS p WHERE v.patient_id = p.patient_id

-- query: natural_join_with_a_condition
-- sqlstate: 42601
-- at: patients
SELECT COUNT(*) FROM visits NATURAL JOIN patients USING (patient_id)

-- query: brackets_around_a_table
-- sqlstate: 42601
-- at: visits
SELECT COUNT(*) FROM (visits)

-- query: limit_of_two_numbers
-- sqlstate: 42601
-- at: 1, 3
SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT 1, 3

-- query: window_twice
-- sqlstate: 42601
-- at: w AS (ORDER BY day)
SELECT COUNT(*) FROM visits WINDOW w AS (ORDER BY ward), w AS (ORDER BY day)

-- query: star_without_from
-- sqlstate: 42601
-- at: *
SELECT *

-- query: window_of_no_clause
-- sqlstate: 42601
-- at: w FROM
SELECT ward, SUM(COUNT(*)) OVER w FROM visits GROUP BY ward

-- query: where_behind_brackets
-- sqlstate: 42601
-- at: n > 1
(SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) WHERE n > 1

-- query: when_without_then
-- sqlstate: 42601
-- at: WHEN code
SELECT COUNT(CASE WHEN code IS NULL 1 END) FROM visits

-- query: substring_from_nowhere
-- sqlstate: 42601
-- at: FROM FOR
SELECT COUNT(*) FROM visits WHERE substring(ward FROM FOR 2) = 'er'

-- query: nothing_to_be_in
-- sqlstate: 42601
-- at: IN
SELECT COUNT(*) FROM visits WHERE ward NOT IN

-- query: nothing_to_be_in_before_and
-- sqlstate: 42601
-- at: IN
SELECT COUNT(*) FROM visits WHERE ward IN AND nights > 2

-- query: comma_behind_a_condition
-- sqlstate: 42601
-- at: , GROUP
SELECT ward, COUNT(*) FROM visits WHERE nights IN (1, 2) AND cost > 2, GROUP BY ward

-- query: over_nothing
-- sqlstate: 42601
-- at: OVER
SELECT ward, COUNT(*) / SUM(COUNT(*)) OVER AS share FROM visits GROUP BY ward

-- query: window_without_as
-- sqlstate: 42601
-- at: WINDOW
SELECT ward, RANK() OVER w, COUNT(*) FROM visits GROUP BY ward WINDOW w

-- query: pivot_using_nothing
-- sqlstate: 42601
-- at: USING
PIVOT visits ON ward USING GROUP BY nights

-- query: number_as_a_name
-- sqlstate: 42601
-- at: AS
SELECT COUNT(*) AS 10 FROM visits

-- query: groups_behind_their_order
-- sqlstate: 42601
-- at: GROUP BY
SELECT ward, COUNT(*) FROM visits ORDER BY ward GROUP BY ward

-- query: condition_behind_groups
-- sqlstate: 42601
-- at: WHERE
SELECT ward, COUNT(*) FROM visits GROUP BY ward WHERE nights > 2

-- query: two_directions
-- sqlstate: 42601
-- at: ASC
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY ward ASC DESC

-- query: name_without_its_schema
-- sqlstate: 42601
-- at: FROM
SELECT COUNT(*) FROM .visits

-- query: rows_without_only
-- sqlstate: 42601
-- at: FETCH
SELECT ward, COUNT(*) FROM visits GROUP BY ward FETCH FIRST 5 ROWS
