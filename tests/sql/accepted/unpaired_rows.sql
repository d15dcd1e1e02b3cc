-- query: public_left_join
-- keys: public
-- l1: 1, 120
-- rows: 1, 120
SELECT r.region, COUNT(p.patient_id), SUM(coalesce(p.age, 0)) FROM regions AS r LEFT JOIN patients AS p ON p.region = r.region
GROUP BY r.region

-- query: public_right_join
-- keys: public
-- l1: 256, 256, 1
-- rows: 256, 256, 1
SELECT r.zone, AVG(p.weight), COUNT(DISTINCT p.patient_id) FROM patients AS p RIGHT JOIN regions AS r USING (region) GROUP BY r.zone

-- query: full_join
-- keys: public
-- l1: 1
-- rows: 1
SELECT r.zone, p.sex, COUNT(p.age) FROM patients AS p FULL JOIN regions AS r ON p.region = r.region GROUP BY r.zone, p.sex

-- query: condition_that_leaves_kept_rows_out
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM regions AS r LEFT JOIN patients AS p USING (region) WHERE p.age > 30

-- query: joined_on
-- keys: public
-- l1: 20, 20000
-- rows: refused join
SELECT r.region, COUNT(v.visit_id), SUM(v.cost) FROM regions AS r LEFT JOIN patients AS p ON p.region = r.region AND p.smoker
LEFT JOIN visits AS v ON v.patient_id = p.patient_id GROUP BY r.region

-- query: many_public_rows
-- keys: none and public
-- l1: 60, 60
-- rows: 3, 3
SELECT i.item, COUNT_IF(v.nights > 2) FROM prices AS i LEFT JOIN visits AS v ON v.ward = i.ward GROUP BY ROLLUP (i.item)

-- query: cross_join
-- keys: public
-- l1: 4
-- rows: 4
SELECT r.zone, COUNT(*) FROM patients CROSS JOIN regions AS r GROUP BY r.zone

-- query: no_equality
-- keys: public
-- l1: 120
-- rows: 6
SELECT item, COUNT(*) FROM visits JOIN prices ON visits.cost > prices.price GROUP BY item

-- query: ranges_kept
-- loose: 0.3 (a cost lies in two of the six ranges)
-- keys: public
-- l1: 120
-- rows: 6
SELECT item, COUNT(v.cost) FROM prices AS i LEFT JOIN visits AS v ON v.cost BETWEEN i.price AND i.price + 10 GROUP BY item

-- query: public_tables_first
-- keys: public
-- l1: 6
-- rows: 6
SELECT i.item, COUNT(*) FROM regions AS r JOIN prices AS i ON r.zone <> i.item JOIN patients AS p ON p.region = r.region
WHERE p.age > 3 GROUP BY i.item
