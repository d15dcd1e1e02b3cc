-- query: spaces
-- sqlstate: 54000
SELECT COUNT(*) FROM visits WHERE ward = '<<200001*x>>'
