-- query: series_without_end
-- sqlstate: 54001
-- at: generate_series(4, 369)
SELECT COUNT(*) FROM generate_series(1, 366) AS a(n), generate_series(2, 367) AS b(n), generate_series(4, 369) AS c(n), (SELECT COUNT(*) AS n FROM patients) AS q

-- query: a_cte_of_a_result_many_times
-- sqlstate: 54001
-- at: r AS d
WITH r AS (SELECT age, COUNT(*) AS n FROM patients GROUP BY age) SELECT SUM(a.n) FROM r AS a CROSS JOIN r AS b CROSS JOIN r AS c CROSS JOIN r AS d

-- query: private_keys_three_times
-- sqlstate: 54001
-- at: r AS c
WITH r AS (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) SELECT SUM(a.n) FROM r AS a, r AS b, r AS c WHERE a.n < b.n

-- query: an_equality_that_fixes_no_key
-- sqlstate: 54001
-- at: r AS d
WITH r AS (SELECT age, COUNT(*) AS n FROM patients GROUP BY age) SELECT COUNT(*) FROM r AS a JOIN r AS b ON a.n = b.n JOIN r AS c ON b.n = c.n JOIN r AS d ON c.n = d.n

-- query: unions_that_double
-- sqlstate: 54001
-- at: * FROM x11
WITH x0 AS (SELECT age, COUNT(*) AS n FROM patients GROUP BY age), x1 AS (SELECT * FROM x0 UNION ALL SELECT * FROM x0), x2 AS (SELECT * FROM x1 UNION ALL SELECT * FROM x1), x3 AS (SELECT * FROM x2 UNION ALL SELECT * FROM x2), x4 AS (SELECT * FROM x3 UNION ALL SELECT * FROM x3), x5 AS (SELECT * FROM x4 UNION ALL SELECT * FROM x4), x6 AS (SELECT * FROM x5 UNION ALL SELECT * FROM x5), x7 AS (SELECT * FROM x6 UNION ALL SELECT * FROM x6), x8 AS (SELECT * FROM x7 UNION ALL SELECT * FROM x7), x9 AS (SELECT * FROM x8 UNION ALL SELECT * FROM x8), x10 AS (SELECT * FROM x9 UNION ALL SELECT * FROM x9), x11 AS (SELECT * FROM x10 UNION ALL SELECT * FROM x10), x12 AS (SELECT * FROM x11 UNION ALL SELECT * FROM x11), x13 AS (SELECT * FROM x12 UNION ALL SELECT * FROM x12), x14 AS (SELECT * FROM x13 UNION ALL SELECT * FROM x13), x15 AS (SELECT * FROM x14 UNION ALL SELECT * FROM x14), x16 AS (SELECT * FROM x15 UNION ALL SELECT * FROM x15) SELECT COUNT(*) FROM x16

-- query: a_correlated_subquery_for_each_row
-- sqlstate: 54001
-- at: a.age
WITH r AS (SELECT age, nights, COUNT(*) AS n FROM patients JOIN visits USING (patient_id) GROUP BY age, nights) SELECT a.age, (SELECT COUNT(*) FROM r AS b WHERE b.n > a.n) FROM r AS a

-- query: a_product_shown_as_it_is
-- sqlstate: 54001
-- at: generate_series(1, 366) AS c
SELECT * FROM generate_series(1, 366) AS a(n), (SELECT COUNT(*) AS n FROM patients) AS q, generate_series(1, 12) AS b(n), generate_series(1, 366) AS c(n)

-- query: a_cube_over_a_product
-- sqlstate: 54001
-- at: a.n, b.n, COUNT(*) FROM q
WITH q AS (SELECT COUNT(*) AS n FROM patients) SELECT a.n, b.n, COUNT(*) FROM q, generate_series(1, 366) AS a(n), generate_series(1, 366) AS b(n), generate_series(1, 30) AS c(n) GROUP BY CUBE (a.n, b.n)

-- query: in_a_result_that_a_later_block_reads
-- sqlstate: 54001
-- at: r AS d
WITH r AS (SELECT age, COUNT(*) AS n FROM patients GROUP BY age) SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(a.n) FROM r AS a, r AS b, r AS c, r AS d)
