-- query: keys
-- sqlstate: 54000
-- at: clamp
SELECT COUNT(*) FROM visits GROUP BY nights<<21*, clamp(code, 0, #)>>
