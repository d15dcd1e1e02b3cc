-- query: sum_of_text
-- sqlstate: 42883
-- at: ward
SELECT SUM(ward) FROM visits

-- query: compare_text_with_number
-- sqlstate: 42883
-- at: ward
SELECT COUNT(*) FROM visits WHERE ward > 3

-- query: like_of_a_column
-- sqlstate: 42883
-- at: ward
SELECT COUNT(*) FROM visits WHERE ward LIKE diagnosis

-- query: clamp_by_column
-- sqlstate: 42883
-- at: clamp
SELECT SUM(clamp(cost, 0, nights)) FROM visits

-- query: in_list_of_columns
-- sqlstate: 42883
-- at: ward
SELECT COUNT(*) FROM visits WHERE ward IN (diagnosis, 'er')
