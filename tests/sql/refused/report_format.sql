-- query: another_format
-- sqlstate: 0A000
-- at: report_format
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*, report_format => 'XML') FROM patients

-- query: among_the_options
-- sqlstate: 0A000
-- at: report_format
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, report_format = 'PROTO') COUNT(*) FROM patients

-- query: of_a_window
-- sqlstate: 0A000
-- at: SUM
SELECT ward, SUM(cost, report_format => 'JSON') OVER () FROM visits GROUP BY ward
