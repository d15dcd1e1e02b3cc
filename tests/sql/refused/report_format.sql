-- query: of_an_aggregate
-- sqlstate: 0A000
-- at: report_format
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*, report_format => 'JSON') FROM patients

-- query: among_the_options
-- sqlstate: 0A000
-- at: report_format
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, report_format = 'PROTO') COUNT(*) FROM patients
