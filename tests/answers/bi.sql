-- What Superset, Metabase, Tableau and Grafana send to PostgreSQL, in their own phrasing, over one web shop.

-- query: superset_big_number
-- what: big number
SELECT COUNT(*) AS count FROM public.orders LIMIT 50000

-- query: superset_time_series
-- what: time series by day, time range on the chart
SELECT DATE_TRUNC('day', created_at) AS __timestamp, COUNT(*) AS count
FROM public.orders
WHERE created_at >= TO_TIMESTAMP('2024-03-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND created_at < TO_TIMESTAMP('2024-06-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('day', created_at) ORDER BY count DESC LIMIT 50000
-- compare: SELECT DATE_TRUNC('day', created_at) AS __timestamp, COUNT(*) AS count FROM orders
-- compare: WHERE created_at >= TIMESTAMP '2024-03-01' AND created_at < TIMESTAMP '2024-06-01' GROUP BY 1 ORDER BY count DESC

-- query: superset_time_series_literal
-- what: the same with a literal time range (SQLAlchemy's other rendering)
SELECT DATE_TRUNC('month', created_at) AS "__timestamp", SUM(price) AS "SUM(price)"
FROM public.orders
WHERE created_at >= '2024-03-01 00:00:00.000000' AND created_at < '2025-06-01 00:00:00.000000'
GROUP BY DATE_TRUNC('month', created_at) ORDER BY "SUM(price)" DESC LIMIT 10000

-- query: superset_time_series_limit
-- what: time series of the five biggest channels (series limit as a join)
SELECT DATE_TRUNC('month', created_at) AS __timestamp, status AS status, COUNT(*) AS count
FROM public.orders JOIN (
  SELECT status AS status__, COUNT(*) AS mme_inner__ FROM public.orders
  GROUP BY status ORDER BY mme_inner__ DESC LIMIT 2) AS anon_1 ON status = status__
GROUP BY DATE_TRUNC('month', created_at), status ORDER BY count DESC LIMIT 10000

-- query: superset_table
-- what: table with several metrics
SELECT status AS status, COUNT(DISTINCT user_id) AS "COUNT_DISTINCT(user_id)", AVG(price) AS "AVG(price)",
  SUM(quantity) AS "SUM(quantity)"
FROM public.orders GROUP BY status ORDER BY "COUNT_DISTINCT(user_id)" DESC LIMIT 1000

-- query: superset_virtual_table
-- what: virtual data set: the chart wraps the analyst's query
SELECT status AS status, AVG(price) AS "AVG(price)"
FROM (SELECT user_id, status, price, quantity FROM orders WHERE quantity > 1) AS virtual_table
GROUP BY status ORDER BY "AVG(price)" DESC LIMIT 1000

-- query: superset_virtual_star
-- what: virtual data set of a whole table
SELECT status AS status, COUNT(*) AS count FROM (SELECT * FROM orders) AS virtual_table
GROUP BY status ORDER BY count DESC LIMIT 1000

-- query: superset_virtual_limit
-- what: virtual data set that ends in LIMIT
-- refused: rows_clause
-- why: which 1000 rows LIMIT keeps depends on everybody's rows; leave it out of the data set's SQL
SELECT status AS status, COUNT(*) AS count FROM (SELECT * FROM orders LIMIT 1000) AS virtual_table
GROUP BY status ORDER BY count DESC LIMIT 1000

-- query: superset_virtual_order
-- what: virtual data set that ends in ORDER BY
SELECT status AS status, COUNT(*) AS count FROM (SELECT * FROM orders ORDER BY created_at) AS virtual_table
GROUP BY status ORDER BY count DESC LIMIT 1000

-- query: superset_virtual_grouped
-- what: virtual data set that aggregates already
SELECT month AS month, SUM(n) AS "SUM(n)"
FROM (SELECT DATE_TRUNC('month', created_at) AS month, status, COUNT(*) AS n FROM orders GROUP BY 1, 2) AS virtual_table
GROUP BY month ORDER BY month ASC LIMIT 1000

-- query: superset_virtual_join
-- what: virtual data set that joins people and their orders
SELECT country AS country, SUM(price) AS "SUM(price)"
FROM (SELECT u.country, o.price FROM users u JOIN orders o ON o.user_id = u.user_id) AS virtual_table
GROUP BY country ORDER BY "SUM(price)" DESC LIMIT 1000

-- query: superset_virtual_comma_join
-- what: the same with a comma and WHERE
SELECT country AS country, SUM(price) AS "SUM(price)"
FROM (SELECT u.country, o.price FROM users u, orders o WHERE o.user_id = u.user_id) AS virtual_table
GROUP BY country ORDER BY "SUM(price)" DESC LIMIT 1000

-- query: superset_filter_values
-- what: values of a filter box
SELECT DISTINCT status AS status FROM public.orders LIMIT 1000

-- query: superset_filter_values_ordered
-- what: values of a native filter, most frequent first
SELECT country AS country, COUNT(*) AS count FROM public.users WHERE is_active IS true AND age >= 30
GROUP BY country ORDER BY count DESC LIMIT 1000

-- query: superset_histogram
-- what: histogram (raw values are binned in the client)
-- refused: rows_clause
-- why: raw values of people; GROUP BY width_bucket(price, 0, 500, 10) gives the histogram
SELECT price AS price FROM public.orders WHERE price IS NOT NULL LIMIT 10000

-- query: superset_box_plot
-- what: pivot by two keys with a share
SELECT status AS status, channel AS channel, SUM(price * quantity) AS revenue,
  SUM(price * quantity) / NULLIF(COUNT(DISTINCT user_id), 0) AS per_user
FROM public.orders GROUP BY status, channel ORDER BY revenue DESC LIMIT 1000

-- query: superset_having
-- what: table with a metric filter
SELECT channel AS channel, COUNT(*) AS count FROM public.orders GROUP BY channel HAVING COUNT(*) > 10
ORDER BY count DESC LIMIT 1000

-- query: superset_adhoc_filter
-- what: ad hoc filters of every kind
SELECT COUNT(*) AS count FROM public.orders
WHERE status IN ('paid', 'shipped') AND status NOT IN ('refunded') AND channel ILIKE '%web%'
  AND channel NOT LIKE '%shop' AND discount IS NOT NULL
  AND (quantity >= 2) AND ((price > 10 OR quantity = 1)) LIMIT 50000

-- query: superset_table_samples
-- what: samples of a data set
-- refused: rows_clause
-- why: protected rows as they are
SELECT * FROM public.orders LIMIT 1000 OFFSET 0

-- query: superset_calculated_column
-- what: calculated column as a dimension
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'older' END AS age_group, COUNT(*) AS count
FROM public.users GROUP BY CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'older' END
ORDER BY count DESC LIMIT 1000

-- query: superset_count_if
-- what: rate of something as a custom metric
SELECT DATE_TRUNC('week', created_at) AS __timestamp,
  SUM(CASE WHEN status = 'refunded' THEN 1 ELSE 0 END) * 1.0 / COUNT(*) AS refund_rate
FROM public.orders GROUP BY DATE_TRUNC('week', created_at) ORDER BY __timestamp ASC LIMIT 10000

-- query: superset_last_quarter
-- what: relative time range rendered by the tool, quarter grain
SELECT DATE_TRUNC('quarter', created_at) AS __timestamp, COUNT(DISTINCT user_id) AS buyers FROM public.orders
WHERE created_at >= '2024-01-01' GROUP BY DATE_TRUNC('quarter', created_at) ORDER BY DATE_TRUNC('quarter', created_at)

-- query: superset_five_minutes
-- what: time grain of five minutes
-- why: 105,120 intervals in the year are too many to list them all, so those appear in which several people are
-- compare: SELECT time_bucket(INTERVAL 5 MINUTE, occurred_at) AS t, COUNT(*) AS n
-- compare: FROM events WHERE occurred_at < '2025-01-02' GROUP BY 1 HAVING COUNT(DISTINCT user_id) > 1 ORDER BY 1 LIMIT 100
SELECT DATE_TRUNC('minute', occurred_at) - INTERVAL '1 minute' * (EXTRACT(MINUTE FROM occurred_at)::int % 5) AS t,
  COUNT(*) AS n
FROM events WHERE occurred_at < '2025-01-02' GROUP BY 1 ORDER BY 1 LIMIT 100

-- query: metabase_count
-- what: count of rows
SELECT COUNT(*) AS "count" FROM "public"."orders"

-- query: metabase_by_month
-- what: count by month
SELECT DATE_TRUNC('month', "public"."orders"."created_at") AS "created_at", COUNT(*) AS "count"
FROM "public"."orders" GROUP BY DATE_TRUNC('month', "public"."orders"."created_at")
ORDER BY DATE_TRUNC('month', "public"."orders"."created_at") ASC

-- query: metabase_by_day
-- what: count by day, cast as Metabase does
SELECT CAST("public"."orders"."created_at" AS date) AS "created_at", COUNT(*) AS "count"
FROM "public"."orders"
WHERE "public"."orders"."created_at" >= timestamp '2024-05-01 00:00:00.000'
  AND "public"."orders"."created_at" < timestamp '2024-07-01 00:00:00.000'
GROUP BY CAST("public"."orders"."created_at" AS date) ORDER BY CAST("public"."orders"."created_at" AS date) ASC

-- query: metabase_by_week
-- what: week that starts on Sunday
SELECT (CAST(DATE_TRUNC('week', (CAST("public"."orders"."created_at" AS timestamp) + INTERVAL '1 day')) AS timestamp)
    + INTERVAL '-1 day') AS "created_at", COUNT(*) AS "count"
FROM "public"."orders" GROUP BY 1 ORDER BY 1 ASC

-- query: metabase_join
-- what: breakout by a column of a joined public table
SELECT "Products"."category" AS "Products__category", AVG("public"."orders"."price") AS "avg"
FROM "public"."orders" LEFT JOIN "public"."products" AS "Products"
  ON "public"."orders"."product_id" = "Products"."product_id"
GROUP BY "Products"."category" ORDER BY "Products"."category" ASC

-- query: metabase_join_people
-- what: breakout by a column of the person
SELECT "Users"."country" AS "Users__country", SUM("public"."orders"."price") AS "sum"
FROM "public"."orders" LEFT JOIN "public"."users" AS "Users" ON "public"."orders"."user_id" = "Users"."user_id"
GROUP BY "Users"."country" ORDER BY "sum" DESC, "Users"."country" ASC

-- query: metabase_join_two
-- what: person and product beside the order
SELECT "Users"."plan" AS "Users__plan", "Products"."category" AS "Products__category", COUNT(*) AS "count"
FROM "public"."orders"
LEFT JOIN "public"."users" AS "Users" ON "public"."orders"."user_id" = "Users"."user_id"
LEFT JOIN "public"."products" AS "Products" ON "public"."orders"."product_id" = "Products"."product_id"
GROUP BY "Users"."plan", "Products"."category" ORDER BY "Users"."plan" ASC, "Products"."category" ASC

-- query: metabase_nested
-- what: question on a question: filter over counts
SELECT "source"."status" AS "status", "source"."count" AS "count"
FROM (SELECT "public"."orders"."status" AS "status", COUNT(*) AS "count" FROM "public"."orders"
  GROUP BY "public"."orders"."status" ORDER BY "public"."orders"."status" ASC) AS "source"
WHERE "source"."count" > 100 LIMIT 1048575

-- query: metabase_source
-- what: model (named columns of a table) as the source
SELECT "source"."country" AS "country", COUNT(*) AS "count"
FROM (SELECT "public"."users"."user_id" AS "user_id", "public"."users"."country" AS "country",
    "public"."users"."age" AS "age" FROM "public"."users") AS "source"
WHERE "source"."age" > 40 GROUP BY "source"."country" ORDER BY "count" DESC, "source"."country" ASC

-- query: metabase_bins
-- what: numeric bins
SELECT (FLOOR((("public"."orders"."price" - 0.0) / 50.0)) * 50.0) + 0.0 AS "price", COUNT(*) AS "count"
FROM "public"."orders" GROUP BY (FLOOR((("public"."orders"."price" - 0.0) / 50.0)) * 50.0) + 0.0
ORDER BY (FLOOR((("public"."orders"."price" - 0.0) / 50.0)) * 50.0) + 0.0 ASC

-- query: metabase_distinct
-- what: distinct values and standard deviation
SELECT COUNT(DISTINCT "public"."orders"."product_id") AS "count", STDDEV_POP("public"."orders"."price") AS "stddev"
FROM "public"."orders"

-- query: metabase_share
-- what: share of rows that match
SELECT CAST(SUM(CASE WHEN "public"."orders"."status" = 'paid' THEN 1 ELSE 0.0 END) AS FLOAT) / NULLIF(COUNT(*), 0) AS "share"
FROM "public"."orders"

-- query: metabase_cumulative
-- what: cumulative count
SELECT DATE_TRUNC('month', "public"."users"."signed_up") AS "signed_up",
  SUM(COUNT(*)) OVER (ORDER BY DATE_TRUNC('month', "public"."users"."signed_up") ASC ROWS UNBOUNDED PRECEDING) AS "count"
FROM "public"."users" GROUP BY DATE_TRUNC('month', "public"."users"."signed_up")
ORDER BY DATE_TRUNC('month', "public"."users"."signed_up") ASC

-- query: metabase_hour_of_day
-- what: hour of the day and day of the week
SELECT EXTRACT(hour FROM "public"."events"."occurred_at") AS "occurred_at",
  CAST(EXTRACT(dow FROM "public"."events"."occurred_at") AS integer) + 1 AS "dow", COUNT(*) AS "count"
FROM "public"."events" GROUP BY 1, 2 ORDER BY 1 ASC, 2 ASC

-- query: metabase_relative
-- what: last twelve months, counted from now
SELECT COUNT(*) AS "count" FROM "public"."orders"
WHERE "public"."orders"."created_at" >= DATE_TRUNC('month', (NOW() + INTERVAL '-12 month'))
  AND "public"."orders"."created_at" < DATE_TRUNC('month', NOW())

-- query: metabase_field_values
-- what: scan of a field's values
SELECT "public"."users"."plan" AS "plan" FROM "public"."users"
GROUP BY "public"."users"."plan" ORDER BY "public"."users"."plan" ASC LIMIT 1000

-- query: metabase_fingerprint
-- what: first rows, to learn what a column holds
-- refused: rows_clause
-- why: protected rows as they are
SELECT "source"."email" AS "email" FROM (SELECT SUBSTRING("public"."users"."email", 1, 1234) AS "email"
  FROM "public"."users") AS "source" LIMIT 10000

-- query: metabase_median
-- what: median
-- why: a value near the median on a grid of the column's bounds, with no interpolation
-- compare: SELECT round(QUANTILE_DISC(price, 0.5) * 128) / 128 FROM orders
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY "public"."orders"."price") AS "median" FROM "public"."orders"

-- query: metabase_min_max
-- what: first and last date, for a date filter
-- why: on a grid of the column's bounds; at a smaller epsilon a few rows before and after them are left out
-- compare: SELECT TIMESTAMP '2024-01-01' + to_seconds(CAST(round(epoch(MIN(created_at) - TIMESTAMP '2024-01-01') / 1024) * 1024 AS BIGINT)),
-- compare: TIMESTAMP '2024-01-01' + to_seconds(CAST(round(epoch(MAX(created_at) - TIMESTAMP '2024-01-01') / 1024) * 1024 AS BIGINT)) FROM orders
SELECT MIN("public"."orders"."created_at") AS "min", MAX("public"."orders"."created_at") AS "max" FROM "public"."orders"

-- query: metabase_table_browse
-- what: browsing a table
-- refused: rows_clause
-- why: protected rows as they are
SELECT "public"."users"."user_id" AS "user_id", "public"."users"."country" AS "country" FROM "public"."users" LIMIT 2000

-- query: metabase_drill_through
-- what: rows behind a bar
-- refused: rows_clause
-- why: protected rows as they are
SELECT "public"."orders"."order_id" AS "order_id", "public"."orders"."price" AS "price" FROM "public"."orders"
WHERE "public"."orders"."status" = 'paid' ORDER BY "public"."orders"."created_at" DESC LIMIT 2000

-- query: metabase_string_filter
-- what: text filters without regard to case
SELECT COUNT(*) AS "count" FROM "public"."events"
WHERE (LOWER("public"."events"."page") LIKE '%prod%') AND NOT (LOWER("public"."events"."page") LIKE '%admin%')
  AND ("public"."events"."page" <> '/' OR "public"."events"."page" IS NULL)

-- query: tableau_one_measure
-- what: one dimension, one measure
SELECT "orders"."status" AS "status", SUM("orders"."price") AS "sum:price:ok"
FROM "public"."orders" "orders" GROUP BY 1

-- query: tableau_two_dimensions
-- what: month and country over people
SELECT "users"."country" AS "country", DATE_TRUNC('MONTH', CAST("users"."signed_up" AS TIMESTAMP)) AS "tmn:signed_up:ok",
  COUNT(DISTINCT "users"."user_id") AS "ctd:user_id:ok"
FROM "public"."users" "users" GROUP BY 1, 2

-- query: tableau_having
-- what: total that has no row when nothing matches
SELECT SUM("orders"."price") AS "TEMP(Calculation_1)", COUNT(1) AS "X__alias__0" FROM "public"."orders" "orders"
WHERE ("orders"."status" = 'paid') HAVING (COUNT(1) > 0)

-- query: tableau_domain
-- what: values of a dimension
SELECT "orders"."channel" AS "channel" FROM "public"."orders" "orders" GROUP BY 1 ORDER BY 1 ASC

-- query: tableau_top_n
-- what: the three biggest channels by revenue, others left out
SELECT "orders"."channel" AS "channel", SUM("orders"."price") AS "sum:price:ok" FROM "public"."orders" "orders"
INNER JOIN (SELECT "orders"."channel" AS "channel", SUM("orders"."price") AS "$__alias__0"
    FROM "public"."orders" "orders" GROUP BY 1 ORDER BY 2 DESC NULLS LAST LIMIT 3) "t0"
  ON ("orders"."channel" = "t0"."channel")
GROUP BY 1

-- query: tableau_year
-- what: year as an integer
SELECT CAST(EXTRACT(YEAR FROM "orders"."created_at") AS INTEGER) AS "yr:created_at:ok", AVG("orders"."price") AS "avg"
FROM "public"."orders" "orders" GROUP BY 1

-- query: tableau_custom_sql
-- what: Custom SQL as the source
SELECT "Custom SQL Query"."country" AS "country", AVG("Custom SQL Query"."spent") AS "avg:spent:ok"
FROM (SELECT u.user_id, u.country, SUM(o.price) AS spent FROM users u JOIN orders o ON u.user_id = o.user_id
  GROUP BY u.user_id, u.country) "Custom SQL Query" GROUP BY 1

-- query: tableau_level_of_detail
-- what: FIXED level of detail: orders of each person, then people by number of orders
SELECT "t0"."n" AS "orders per user", COUNT(*) AS "users"
FROM (SELECT "orders"."user_id" AS "user_id", COUNT(1) AS "n" FROM "public"."orders" "orders" GROUP BY 1) "t0"
GROUP BY 1 ORDER BY 1

-- query: tableau_probe_star
-- what: structure of Custom SQL, read from no rows
-- empty: LIMIT 0
SELECT * FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY status) "Custom SQL Query" LIMIT 0

-- query: tableau_probe_false
-- what: structure of a table, read from no rows
-- empty: WHERE 1 = 0
SELECT * FROM "public"."orders" "orders" WHERE 1 = 0

-- query: tableau_probe_one
-- what: first row, to see that the table can be read
-- refused: rows_clause
-- why: protected rows as they are
SELECT "orders"."status" AS "status" FROM "public"."orders" "orders" LIMIT 1

-- query: tableau_probe_constant
-- what: connection probe
SELECT 1 AS "COL"

-- query: tableau_relationship
-- what: join of person, order and product as a relationship
SELECT "products"."category" AS "category", "users"."country" AS "country", SUM("orders"."quantity") AS "sum:quantity:ok"
FROM "public"."orders" "orders" INNER JOIN "public"."users" "users" ON ("orders"."user_id" = "users"."user_id")
INNER JOIN "public"."products" "products" ON ("orders"."product_id" = "products"."product_id")
GROUP BY 1, 2

-- query: tableau_countries
-- what: person, country and continent (snowflake of two public steps)
SELECT "countries"."continent" AS "continent", COUNT(DISTINCT "users"."user_id") AS "people"
FROM "public"."users" "users" INNER JOIN "public"."countries" "countries" ON ("users"."country" = "countries"."code")
GROUP BY 1 HAVING (COUNT(1) > 0)

-- query: tableau_set
-- what: in/out of a set
SELECT (CASE WHEN ("orders"."channel" IN ('web', 'app')) THEN 'In' ELSE 'Out' END) AS "io:set:nk", COUNT(1) AS "n"
FROM "public"."orders" "orders" GROUP BY 1

-- query: tableau_date_filter
-- what: relative date filter with TIMESTAMP literals, cast to a date
SELECT CAST(DATE_TRUNC('DAY', CAST("orders"."created_at" AS DATE)) AS DATE) AS "tdy:created_at:ok", COUNT(1) AS "n"
FROM "public"."orders" "orders"
WHERE (("orders"."created_at" >= (TIMESTAMP '2025-01-01 00:00:00.000'))
  AND ("orders"."created_at" < (TIMESTAMP '2025-02-01 00:00:00.000'))) GROUP BY 1

-- query: grafana_time_group
-- what: time series by hour ($__timeGroupAlias, $__timeFilter)
SELECT floor(extract(epoch from occurred_at)/3600)*3600 AS "time", count(*) AS "value" FROM events
WHERE occurred_at BETWEEN '2025-02-01T00:00:00Z' AND '2025-02-08T00:00:00Z' GROUP BY 1 ORDER BY 1

-- query: grafana_metric
-- what: one series for each kind
SELECT date_trunc('day', occurred_at) AS "time", kind AS metric, avg(duration_ms) AS value FROM events
WHERE occurred_at BETWEEN '2025-02-01T00:00:00Z' AND '2025-02-28T23:59:59Z' GROUP BY 1, 2 ORDER BY 1, 2

-- query: grafana_local_time
-- what: time range as a literal without zone
SELECT date_trunc('hour', occurred_at) AS time, count(*) FILTER (WHERE kind = 'error') AS errors, count(*) AS total
FROM events WHERE occurred_at >= '2025-02-01 00:00:00' AND occurred_at < '2025-02-03 00:00:00' GROUP BY time ORDER BY time

-- query: grafana_table
-- what: table panel
SELECT kind, count(*) AS n, round(avg(duration_ms), 1) AS mean_ms, round(stddev(duration_ms), 1) AS sd_ms FROM events
GROUP BY kind ORDER BY n DESC LIMIT 50

-- query: grafana_stat
-- what: stat panel: error rate in percent
SELECT 100.0 * count(*) FILTER (WHERE kind = 'error') / count(*) AS "error %" FROM events

-- query: grafana_percentile
-- what: latency percentile
-- why: a value near the percentile on a grid of the column's bounds, with no interpolation
-- compare: SELECT QUANTILE_DISC(duration_ms, 0.95) FROM events
SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ms) AS p95 FROM events

-- query: grafana_raw
-- what: logs panel
-- refused: rows_clause
-- why: protected rows as they are
SELECT occurred_at AS time, page AS body FROM events ORDER BY occurred_at DESC LIMIT 100

-- query: grafana_variable
-- what: values of a template variable
SELECT DISTINCT kind FROM events ORDER BY kind

-- query: grafana_time_bucket
-- what: five minutes by date_bin
-- compare: SELECT time_bucket(INTERVAL 1 HOUR, occurred_at) AS time, count(*) FROM events WHERE occurred_at < '2025-01-10' GROUP BY 1 ORDER BY 1
SELECT date_bin('1 hour', occurred_at, TIMESTAMP '2025-01-01') AS time, count(*) FROM events
WHERE occurred_at < '2025-01-10' GROUP BY 1 ORDER BY 1

-- query: grafana_cte
-- what: conversion by WITH
WITH seen AS (SELECT count(DISTINCT user_id) AS n FROM events), bought AS (SELECT count(DISTINCT user_id) AS n FROM orders)
SELECT bought.n * 1.0 / seen.n AS conversion FROM seen, bought

-- query: cte_monthly_growth
-- what: growth over the month before
WITH monthly AS (SELECT date_trunc('month', created_at) AS month, sum(price) AS revenue FROM orders GROUP BY 1)
SELECT month, revenue, revenue - lag(revenue) OVER (ORDER BY month) AS growth FROM monthly ORDER BY month

-- query: cte_rank_in_group
-- what: best channel of each status
WITH t AS (SELECT status, channel, count(*) AS n FROM orders GROUP BY status, channel)
SELECT status, channel, n FROM (SELECT *, row_number() OVER (PARTITION BY status ORDER BY n DESC) AS r FROM t) x
WHERE r = 1 ORDER BY status

-- query: cte_active_people
-- what: people who bought more than ten times, by country
WITH busy AS (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id HAVING count(*) > 10)
SELECT u.country, count(*) AS people, avg(b.n) AS mean_orders FROM users u JOIN busy b ON u.user_id = b.user_id
GROUP BY u.country ORDER BY u.country

-- query: first_orders
-- what: new buyers by month of their first order
SELECT date_trunc('month', first_at) AS month, count(*) AS new_buyers
FROM (SELECT user_id, min(created_at) AS first_at FROM orders GROUP BY user_id) AS f
WHERE first_at < '2024-03-01' GROUP BY 1 ORDER BY 1

-- query: bought_after_search
-- what: people with a search and an order
SELECT country, count(*) AS people FROM users
WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'search') AND EXISTS (
  SELECT 1 FROM orders o WHERE o.user_id = users.user_id AND o.status = 'paid')
GROUP BY country ORDER BY country

-- query: clicked_but_never_failed
-- what: people without an error and without a refund (NOT IN, NOT EXISTS)
SELECT plan, count(*) AS people FROM users u
WHERE user_id NOT IN (SELECT user_id FROM events WHERE kind = 'error' AND occurred_at < '2025-01-10')
  AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.user_id AND o.status = 'refunded' AND o.quantity > 5)
GROUP BY plan ORDER BY people

-- query: never_bought
-- what: people without an order (anti-join as BI tools write it)
SELECT u.country, count(*) AS people FROM users u LEFT JOIN orders o ON o.user_id = u.user_id
WHERE o.order_id IS NULL GROUP BY u.country ORDER BY u.country

-- query: rollup
-- what: totals under the groups
SELECT coalesce(country, 'total') AS country, plan, count(*) AS n FROM users
GROUP BY ROLLUP (country, plan) ORDER BY 1, 2

-- query: age_buckets
-- what: buckets of ten years
SELECT floor(age / 10) * 10 AS bucket, count(*) AS n, avg(age) AS mean_age FROM users WHERE age IS NOT NULL
GROUP BY bucket ORDER BY bucket

-- query: age_buckets_integer
-- what: the same with integer division
SELECT age // 10 * 10 AS bucket, count(*) AS n FROM users WHERE age IS NOT NULL GROUP BY 1 ORDER BY 1

-- query: width_bucket
-- what: buckets by width_bucket
SELECT width_bucket(price, 0, 500, 5) AS bucket, count(*) AS n FROM orders GROUP BY bucket ORDER BY bucket
-- compare: SELECT least(floor(price / 100)::int, 5) + 1 AS bucket, count(*) AS n FROM orders GROUP BY bucket ORDER BY bucket

-- query: union_of_metrics
-- what: metrics under one another
SELECT 'orders' AS metric, count(*) AS n FROM orders UNION ALL SELECT 'buyers', count(DISTINCT user_id) FROM orders
UNION ALL SELECT 'events', count(*) FROM events

-- query: union_of_rows
-- what: activity of two tables in one source
SELECT kind, count(*) AS n FROM (
  SELECT user_id, 'order' AS kind FROM orders UNION ALL SELECT user_id, kind FROM events) a
GROUP BY kind ORDER BY kind

-- query: correlation
-- what: correlation and regression line
SELECT corr(price, quantity) AS r, regr_slope(price, quantity) AS slope, covar_pop(price, quantity) AS c FROM orders

-- query: share_of_total
-- what: share of each group in the total
SELECT status, sum(price) AS revenue, 100 * sum(price) / sum(sum(price)) OVER () AS percent FROM orders
GROUP BY status ORDER BY revenue DESC

-- query: scalar_over_mean
-- what: rows above the mean, the mean asked for in a subquery
SELECT count(*) AS n FROM orders WHERE price > (SELECT avg(price) FROM orders)

-- query: string_agg
-- what: list of names
-- refused: row_list
-- why: a list of people's texts as they are
SELECT country, string_agg(email, ', ') AS emails FROM users GROUP BY country

-- query: coalesce_key
-- what: missing values under a name of their own
SELECT coalesce(plan, 'none') AS plan, count(*) AS n FROM users GROUP BY 1 ORDER BY 1

-- query: group_by_all
-- what: DuckDB's GROUP BY ALL and ORDER BY ALL
SELECT country, plan, count(*) AS n FROM users GROUP BY ALL ORDER BY ALL

-- query: filter_on_product
-- what: orders of products of one category, by a subquery over a public table
SELECT count(*) AS n, sum(price) AS revenue FROM orders
WHERE product_id IN (SELECT product_id FROM products WHERE category = 'books')

-- query: public_only
-- what: a question about public tables alone
SELECT category, count(*) AS n, avg(list_price) AS mean FROM products GROUP BY category ORDER BY category

-- query: retention
-- what: buyers of one month who bought again in the next
SELECT count(DISTINCT a.user_id) AS kept FROM orders a JOIN orders b ON a.user_id = b.user_id
WHERE date_trunc('month', a.created_at) = TIMESTAMP '2024-05-01'
  AND date_trunc('month', b.created_at) = TIMESTAMP '2024-06-01'

-- query: running_row_number
-- what: first order of each person by a window
SELECT date_trunc('month', created_at) AS month, count(*) AS n
FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY created_at) AS rn FROM orders) t
WHERE rn = 1 GROUP BY 1 ORDER BY 1

-- query: current_date
-- what: people who signed up in the last ten thousand days
SELECT count(*) AS n FROM users WHERE signed_up >= CURRENT_DATE - 10000

-- query: at_time_zone
-- what: days in a time zone
-- compare: SELECT date_trunc('day', created_at) AS day, count(*) AS n FROM orders
-- compare: WHERE created_at < '2024-01-15' GROUP BY 1 ORDER BY 1
SELECT date_trunc('day', created_at AT TIME ZONE 'UTC') AS day, count(*) AS n FROM orders
WHERE created_at < '2024-01-15' GROUP BY 1 ORDER BY 1

-- query: qualify
-- what: best two channels of each status by QUALIFY
SELECT status, channel, count(*) AS n FROM orders GROUP BY status, channel
QUALIFY row_number() OVER (PARTITION BY status ORDER BY count(*) DESC) <= 2 ORDER BY status, n DESC
