-- query: set
-- sqlstate: 28000
SET dp.project = 'nowhere'

-- query: of_one_question
-- sqlstate: 28000
-- at: project
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (project = 'nowhere') COUNT(*) FROM visits
