-- query: open_string
-- sqlstate: 42601
-- at: '
SELECT 'abc FROM visits

-- query: open_comment
-- sqlstate: 42601
-- at: /*
SELECT COUNT(*) /* of /* all */ FROM visits
