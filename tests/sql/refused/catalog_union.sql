-- query: results_of_other_widths
-- sqlstate: 42601
-- at: COUNT(*) FROM patients
SELECT ward, COUNT(*) FROM visits GROUP BY ward UNION ALL SELECT COUNT(*) FROM patients
