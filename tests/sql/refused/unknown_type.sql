-- query: blob
-- sqlstate: 42704
-- at: diagnosis
SELECT COUNT(CAST(diagnosis AS BLOB)) FROM visits

-- query: list
-- sqlstate: 42704
-- at: diagnosis
SELECT COUNT(CAST(diagnosis AS INTEGER[])) FROM visits

-- query: more_digits_than_a_decimal_has
-- sqlstate: 42704
-- at: nights
SELECT SUM(CAST(nights AS NUMERIC(40, 2))) FROM visits

-- query: more_digits_behind_the_point_than_at_all
-- sqlstate: 42704
-- at: nights
SELECT SUM(CAST(nights AS NUMERIC(5, 6))) FROM visits
