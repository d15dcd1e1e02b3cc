-- query: groups_not_said
-- sqlstate: 0A000
-- at: SUM
SELECT * FROM visits PIVOT (SUM(cost) FOR ward IN ('er', 'icu'))

-- query: groups_behind_a_star
-- sqlstate: 0A000
-- at: SUM
SELECT * FROM (SELECT * FROM visits) PIVOT (SUM(cost) FOR ward IN ('er', 'icu'))

-- query: unnamed_aggregates
-- sqlstate: 0A000
-- at: SUM
SELECT * FROM visits PIVOT (SUM(cost), COUNT(*) FOR ward IN ('er', 'icu') GROUP BY day)

-- query: values_that_are_names
-- sqlstate: 0A000
-- at: er
SELECT * FROM visits PIVOT (SUM(cost) FOR ward IN (er, icu) GROUP BY day)

-- query: several_keys
-- sqlstate: 0A000
-- at: SUM
SELECT * FROM visits PIVOT (SUM(cost) FOR ward IN ('er') nights IN (1, 2) GROUP BY day)

-- query: of_a_joined_table
-- sqlstate: 0A000
-- at: SUM
SELECT * FROM patients JOIN visits PIVOT (SUM(cost) FOR ward IN ('er') GROUP BY patient_id) AS p USING (patient_id)

-- query: of_a_row_function
-- sqlstate: 0A000
-- at: lower
SELECT * FROM visits PIVOT (lower(diagnosis) FOR ward IN ('er', 'icu') GROUP BY day)

-- query: statement_without_groups
-- sqlstate: 0A000
-- at: ward
PIVOT visits ON ward IN ('er', 'icu') USING SUM(cost)

-- query: statement_with_several_keys
-- sqlstate: 0A000
-- at: ward
SELECT * FROM (PIVOT visits ON ward IN ('er'), nights IN (1, 2) GROUP BY day)

-- query: statement_of_a_common_table_in_brackets
-- sqlstate: 0A000
-- at: v AS
SELECT * FROM (WITH v AS (SELECT day, ward FROM visits) PIVOT v ON ward IN ('er') GROUP BY day)

-- query: value_for_null
-- sqlstate: 0A000
-- at: SUM
SELECT * FROM visits PIVOT (SUM(cost) FOR ward IN ('er') DEFAULT ON NULL (0) GROUP BY day)

-- query: values_that_no_policy_lists
-- sqlstate: 0A000
-- at: day
PIVOT visits ON day USING COUNT(*) GROUP BY ward

-- query: values_of_another_table_of_that_name
-- sqlstate: 0A000
-- at: ward GROUP
WITH visits AS (SELECT ward, day FROM visits) PIVOT visits ON ward GROUP BY day
