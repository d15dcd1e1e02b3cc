-- query: bigquery_options
-- keys: public
-- l1: 20
-- rows: 1
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, max_groups_contributed = 2) ward, COUNT(*) FROM visits GROUP BY ward

-- query: epsilon_option
-- set: dp.epsilon = 0.25
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits

-- query: target_error
-- set: dp.target_error = 100
-- keys: none
-- l1: 600, 600
-- rows: 30, 30
SELECT COUNT(*), SUM(nights) FROM visits

-- query: parameters_by_position
-- parameters: ["er", 100.5]
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE ward = ? AND cost > ?

-- query: parameters_by_number
-- parameters: ["er", 3]
-- keys: none
-- l1: 600, 600
-- rows: 30, 30
SELECT COUNT(*), SUM(nights) FROM visits WHERE ward = $1 AND nights >= $2

-- query: parameters_by_name
-- parameters: {"low": 30, "high": 65}
-- keys: none
-- l1: 256, 256
-- rows: 256, 256
SELECT AVG(weight) FROM patients WHERE age BETWEEN $low AND $high

-- query: interval_bounds
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) AS n, DP_INTERVAL_LOW(COUNT(*)) AS low, DP_INTERVAL_HIGH(COUNT(*)) AS high FROM visits GROUP BY ward

-- query: error_of_mean
-- keys: none
-- l1: 20000, 20000
-- rows: 1000, 1000
SELECT AVG(cost), DP_ERROR(AVG(cost)) FROM visits

-- query: error_of_ratio
-- keys: none
-- l1: 20000, 20000
-- rows: 1000, 1000
SELECT SUM(cost) / COUNT(*) AS mean, DP_ERROR(SUM(cost) / COUNT(*)) FROM visits

-- query: gaussian
-- set: dp.mechanism = laplace
-- keys: none
-- l1: 20000
-- rows: 1000
SELECT SUM(cost) FROM visits

-- query: case_of_names
-- keys: public
-- l1: 20
-- rows: 1
SELECT Ward, COUNT(*) FROM VISITS GROUP BY WARD

-- query: quoted_names
-- keys: public
-- l1: 20
-- rows: 1
SELECT "ward", COUNT(*) AS "number of" FROM "visits" GROUP BY "ward"

-- query: comments
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) /* all of them */ FROM visits -- and no more

-- query: parameter_list
-- parameters: [["er", "icu"], [1, 2]]
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE ward = ANY($1) AND nights <> ALL($2)

-- query: parameter_list_of_dates
-- parameters: [["2024-02-03", "2024-02-04"]]
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) AS n FROM visits WHERE day <> ALL($1::date[]) GROUP BY ward HAVING ward = ANY(ARRAY['er', 'day'])

-- query: empty_lists
-- parameters: [[], []]
-- keys: none
-- l1: 20, 20
-- rows: 1, 1
-- loose: 0 (nothing is one of no items)
SELECT COUNT(*) FILTER (WHERE ward = ANY($1)), COUNT(*) FILTER (WHERE ward <> ALL($2)) FROM visits

-- query: list_as_text
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE nights = ANY('{1,"2"}'::int[]) OR ward = SOME('{er}')

-- query: bigquery_without_options
-- keys: public
-- l1: 20
-- rows: 1
SELECT WITH DIFFERENTIAL_PRIVACY ward, COUNT(*) FROM visits GROUP BY ward

-- query: bigquery_bounds_of_a_row
-- keys: none
-- l1: 1000
-- rows: 50
SELECT SUM(cost / nights, contribution_bounds_per_row => (0, 50)) FROM visits
