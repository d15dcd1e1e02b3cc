-- query: a_confidence
-- sqlstate: 0A000
-- at: confidence
SELECT COUNT(cost, confidence => 0.9) FROM visits

-- query: a_string_for_its_name
-- sqlstate: 0A000
-- at: 'contribution_bounds_per_row'
SELECT AVG(age, 'contribution_bounds_per_row' => (20, 80)) FROM patients
