-- query: several_values
-- sqlstate: 0A000
-- at: v
SELECT k, AVG(v) FROM visits UNPIVOT ((v, w) FOR k IN ((nights, cost), (code, cost))) GROUP BY k

-- query: all_columns
-- sqlstate: 0A000
-- at: v
SELECT k, COUNT(*) FROM visits UNPIVOT (v FOR k IN (*)) GROUP BY k

-- query: computed_column
-- sqlstate: 0A000
-- at: visits
SELECT name, COUNT(*) FROM (UNPIVOT visits ON nights + 1, cost) GROUP BY name

-- query: two_columns_of_values
-- sqlstate: 0A000
-- at: visits
SELECT k, COUNT(*) FROM (UNPIVOT visits ON nights, cost INTO NAME k VALUE v, w) GROUP BY k

-- query: behind_a_pivot
-- sqlstate: 0A000
-- at: v
SELECT * FROM visits UNPIVOT (v FOR k IN (nights, code)) PIVOT (COUNT(*) FOR k IN ('nights') GROUP BY day)

-- query: common_table_in_brackets
-- sqlstate: 0A000
-- at: v AS
SELECT name, COUNT(*) FROM (WITH v AS (SELECT sex, region FROM patients) UNPIVOT v ON sex, region) GROUP BY name
