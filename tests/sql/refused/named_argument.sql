-- query: a_format_of_the_answer
-- sqlstate: 0A000
-- at: report_format
SELECT COUNT(cost, report_format => 'JSON') FROM visits

-- query: a_string_for_its_name
-- sqlstate: 0A000
-- at: 'contribution_bounds_per_row'
SELECT AVG(age, 'contribution_bounds_per_row' => (20, 80)) FROM patients
