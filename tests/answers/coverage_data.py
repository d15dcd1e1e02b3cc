"""Small data with the schemas of TPC-H, ClickBench and a web shop, generated with `range` and `hash` inside DuckDB.

Values stay within the bounds of schemas/policies/*.yaml and rows per person below max_rows, so a plain query over the same tables
has the answer that the private one has before noise. Popular values are much more frequent than others, so a "top ten" has no
ties.
"""

import duckdb

_MACROS = """
CREATE MACRO mixed(i, salt) AS hash(CAST(i AS VARCHAR) || '/' || CAST(salt AS VARCHAR));
CREATE MACRO pick(i, salt, n) AS CAST(mixed(i, salt) % n AS INTEGER);
CREATE MACRO skewed(i, salt, n) AS CAST(floor(n * pow((mixed(i, salt) % 100000) / 100000.0, 2.5)) AS INTEGER);
"""

_TPCH = """
CREATE TABLE region AS SELECT i AS r_regionkey, ['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'][i + 1] AS r_name
FROM range(5) t(i);
CREATE TABLE nation AS SELECT i AS n_nationkey,
  ['ALGERIA', 'ARGENTINA', 'BRAZIL', 'CANADA', 'EGYPT', 'ETHIOPIA', 'FRANCE',
  'GERMANY', 'INDIA', 'INDONESIA', 'IRAN', 'IRAQ', 'JAPAN', 'JORDAN', 'KENYA', 'MOROCCO', 'MOZAMBIQUE', 'PERU',
  'CHINA', 'ROMANIA', 'SAUDI ARABIA', 'VIETNAM', 'RUSSIA', 'UNITED KINGDOM', 'UNITED STATES'][i + 1] AS n_name,
  [0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1][i + 1] AS n_regionkey FROM range(25) t(i);
CREATE TABLE supplier AS SELECT i AS s_suppkey, printf('Supplier#%09d', i) AS s_name, 'street ' || i AS s_address,
  (i * 7) % 25 AS s_nationkey, printf('%d-555', 10 + (i * 7) % 25) AS s_phone,
  CAST(pick(i, 1, 1000000) / 100.0 - 900 AS DECIMAL(15, 2)) AS s_acctbal,
  CASE WHEN i % 10 = 3 THEN 'Customer said Complaints' ELSE 'fine' END AS s_comment FROM range(1, 51) t(i);
CREATE TABLE part AS SELECT i AS p_partkey, ['forest', 'green', 'red', 'blue'][1 + pick(i, 2, 4)] || ' ' ||
  ['green', 'pink', 'lime'][1 + pick(i, 3, 3)] AS p_name, 'Manufacturer#' || (1 + pick(i, 4, 5)) AS p_mfgr,
  'Brand#' || [12, 23, 34, 45][1 + pick(i, 5, 4)] AS p_brand,
  ['ECONOMY ANODIZED STEEL', 'PROMO BRUSHED BRASS', 'MEDIUM POLISHED TIN',
    'LARGE PLATED BRASS'][1 + pick(i, 6, 4)] AS p_type,
  [1, 3, 5, 9, 14, 15, 23, 36, 45, 49][1 + pick(i, 7, 10)] AS p_size,
  ['SM CASE', 'SM PKG', 'MED BOX', 'MED BAG', 'LG CASE', 'LG BOX'][1 + pick(i, 8, 6)] AS p_container,
  CAST(900 + i % 1000 AS DECIMAL(15, 2)) AS p_retailprice FROM range(1, 201) t(i);
CREATE TABLE partsupp AS SELECT p_partkey AS ps_partkey, 1 + (p_partkey + j * 13) % 50 AS ps_suppkey,
  1 + pick(p_partkey * 4 + j, 9, 300) AS ps_availqty,
  CAST(1 + pick(p_partkey * 4 + j, 10, 99900) / 100.0 AS DECIMAL(15, 2)) AS ps_supplycost FROM part, range(4) t(j);
CREATE TABLE customer AS SELECT i AS c_custkey, printf('Customer#%09d', i) AS c_name, 'road ' || i AS c_address,
  pick(i, 11, 25) AS c_nationkey, printf('%d-555-%04d', 10 + pick(i, 11, 25), i) AS c_phone,
  CAST(pick(i, 12, 1000000) / 100.0 - 900 AS DECIMAL(15, 2)) AS c_acctbal,
  ['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'][1 + pick(i, 13, 5)] AS c_mktsegment,
  'comment ' || i AS c_comment FROM range(1, 601) t(i);
CREATE TABLE orders AS SELECT i AS o_orderkey, 1 + 3 * pick(i, 14, 200) + pick(i, 15, 2) AS o_custkey,
  ['F', 'O', 'P'][1 + pick(i, 16, 3)] AS o_orderstatus,
  CAST(1000 + pick(i, 17, 40000000) / 100.0 AS DECIMAL(15, 2)) AS o_totalprice,
  DATE '1992-01-01' + pick(i, 18, 2400) AS o_orderdate,
  ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'][1 + pick(i, 19, 5)] AS o_orderpriority,
  0 AS o_shippriority, CASE WHEN i % 9 = 0 THEN 'special packed requests' ELSE 'none' END AS o_comment
FROM range(1, 5001) t(i);
CREATE TABLE lineitem AS SELECT *, l_shipdate + 1 + pick(l_orderkey, j + 60, 30) AS l_receiptdate,
  CASE WHEN l_shipdate > DATE '1995-06-17' THEN 'O' ELSE 'F' END AS l_linestatus,
  CASE WHEN l_shipdate > DATE '1995-06-17' THEN 'N' ELSE ['A', 'R'][1 + pick(l_orderkey, j + 20, 2)] END AS l_returnflag
FROM (SELECT o_orderkey AS l_orderkey, j, j + 1 AS l_linenumber, 1 + pick(o_orderkey, j + 25, 200) AS l_partkey,
  1 + (1 + pick(o_orderkey, j + 25, 200) + pick(o_orderkey, j + 30, 4) * 13) % 50 AS l_suppkey,
  CAST(1 + pick(o_orderkey, j + 35, 50) AS DECIMAL(15, 2)) AS l_quantity,
  CAST(1000 + pick(o_orderkey, j + 40, 10000000) / 100.0 AS DECIMAL(15, 2)) AS l_extendedprice,
  CAST(pick(o_orderkey, j + 45, 11) / 100.0 AS DECIMAL(15, 2)) AS l_discount,
  CAST(pick(o_orderkey, j + 50, 9) / 100.0 AS DECIMAL(15, 2)) AS l_tax,
  o_orderdate + 1 + pick(o_orderkey, j + 55, 100) AS l_shipdate,
  o_orderdate + 30 + pick(o_orderkey, j + 65, 60) AS l_commitdate,
  ['COLLECT COD', 'DELIVER IN PERSON', 'NONE', 'TAKE BACK RETURN'][1 + pick(o_orderkey, j + 70, 4)] AS l_shipinstruct,
  ['AIR', 'AIR REG', 'FOB', 'MAIL', 'RAIL', 'SHIP', 'TRUCK'][1 + pick(o_orderkey, j + 75, 7)] AS l_shipmode
  FROM orders, range(4) t(j) WHERE j <= pick(o_orderkey, 80, 4));
"""

_CLICKBENCH = """
CREATE TABLE hits AS SELECT 9000000000 + i AS WatchID, pick(i, 1, 2) AS JavaEnable,
  ['', 'Google search', 'News', 'Weather at Google', 'Shop'][1 + skewed(i, 2, 5)] AS Title,
  TIMESTAMP '2013-07-01' + INTERVAL (pick(i, 3, 44640)) MINUTE + INTERVAL (pick(i, 4, 60)) SECOND AS EventTime,
  CAST(TIMESTAMP '2013-07-01' + INTERVAL (pick(i, 3, 44640)) MINUTE AS DATE) AS EventDate,
  [62, 34, 11, 7][1 + skewed(i, 5, 4)] AS CounterID, 1000000 + 17 * skewed(i, 6, 40) AS ClientIP,
  skewed(i, 7, 60) AS RegionID,
  CASE pick(i, 8, 300) WHEN 0 THEN 435090932899640449 ELSE 4000000000 + pick(i, 8, 300) END AS UserID,
  ['', 'http://www.google.com/q', 'http://example.org/', 'https://www.shop.example/cart', 'http://news.example/google',
    'http://blog.example/a/b'][1 + skewed(i, 9, 6)] AS URL,
  ['', 'https://www.google.com/search', 'http://example.org/index', 'http://t.example/x'][1 + skewed(i, 10, 4)]
    AS Referer,
  CAST(pick(i, 11, 10) = 0 AS INTEGER) AS IsRefresh,
  [1024, 1280, 1366, 1600, 1920, 0][1 + pick(i, 12, 6)] AS ResolutionWidth,
  skewed(i, 13, 6) AS MobilePhone,
  ['', 'iPad', 'iPhone', 'A100', 'Lumia'][1 + skewed(i, 13, 6) % 5] AS MobilePhoneModel,
  [-1, 0, 1, 2, 3, 6][1 + skewed(i, 14, 6)] AS TraficSourceID, skewed(i, 15, 4) AS SearchEngineID,
  CASE WHEN pick(i, 16, 3) = 0 THEN '' ELSE 'phrase ' || skewed(i, 17, 12) END AS SearchPhrase,
  greatest(skewed(i, 18, 12) - 5, 0) AS AdvEngineID, [800, 1200, 1400][1 + skewed(i, 19, 3)] AS WindowClientWidth,
  [500, 600, 900][1 + skewed(i, 20, 3)] AS WindowClientHeight, pick(i, 21, 2) AS IsLink,
  CAST(pick(i, 22, 20) = 0 AS INTEGER) AS IsDownload, CAST(pick(i, 23, 10) = 0 AS INTEGER) AS DontCountHits,
  CASE WHEN pick(i, 24, 2) = 0 THEN 3594120000172545465 ELSE 77 END AS RefererHash,
  CASE WHEN pick(i, 25, 2) = 0 THEN 2868770270353813622 ELSE 88 END AS URLHash
FROM range(12000) t(i);
"""

_SHOP = """
CREATE TABLE countries AS SELECT * FROM (VALUES ('AT', 'Austria', 'Europe'), ('BR', 'Brazil', 'South America'),
  ('DE', 'Germany', 'Europe'), ('FR', 'France', 'Europe'), ('IN', 'India', 'Asia'),
  ('US', 'United States', 'North America')) t(code, name, continent);
CREATE TABLE products AS SELECT i AS product_id, 'Product ' || i AS name,
  ['books', 'games', 'garden', 'music'][1 + i % 4] AS category, 10.5 * i AS list_price FROM range(1, 13) t(i);
CREATE TABLE users AS SELECT i AS user_id, ['AT', 'BR', 'DE', 'FR', 'IN', 'US'][1 + skewed(i, 1, 6)] AS country,
  ['free', 'pro', 'team', NULL][1 + skewed(i, 2, 4)] AS plan,
  CASE WHEN i % 17 = 0 THEN NULL ELSE 18 + pick(i, 3, 82) END AS age, DATE '2023-01-01' + pick(i, 4, 1090) AS signed_up,
  pick(i, 5, 3) > 0 AS is_active, 'user' || i || '@example.org' AS email FROM range(1, 501) t(i);
CREATE TABLE orders AS SELECT i AS order_id, 1 + pick(i, 6, 400) AS user_id, 1 + skewed(i, 7, 12) AS product_id,
  TIMESTAMP '2024-01-01' + INTERVAL (pick(i, 8, 1040000)) MINUTE AS created_at,
  ['paid', 'shipped', 'pending', 'refunded'][1 + skewed(i, 9, 4)] AS status, 1 + skewed(i, 10, 20) AS quantity,
  pick(i, 11, 50000) / 100.0 AS price, CASE WHEN i % 3 = 0 THEN NULL ELSE pick(i, 12, 100) / 100.0 END AS discount,
  ['web', 'app', 'phone', 'webshop', 'fair'][1 + skewed(i, 13, 5)] AS channel FROM range(12000) t(i);
CREATE TABLE events AS SELECT 1 + pick(i, 14, 450) AS user_id,
  TIMESTAMP '2025-01-01' + INTERVAL (pick(i, 15, 130000)) MINUTE AS occurred_at,
  ['view', 'click', 'search', 'error'][1 + skewed(i, 16, 4)] AS kind,
  CASE WHEN i % 11 = 0 THEN NULL ELSE skewed(i, 17, 60000) END AS duration_ms,
  ['/', '/product/1', '/product/2', '/admin/product', '/cart'][1 + skewed(i, 18, 5)] AS page FROM range(30000) t(i);
CREATE SCHEMA public;
CREATE VIEW public.users AS FROM main.users;
CREATE VIEW public.orders AS FROM main.orders;
CREATE VIEW public.events AS FROM main.events;
CREATE VIEW public.products AS FROM main.products;
CREATE VIEW public.countries AS FROM main.countries;
"""

_BUILDERS = {"tpch": _TPCH, "clickbench": _CLICKBENCH, "bi": _SHOP}
POLICIES = {"tpch": "tpch", "clickbench": "clickbench", "bi": "shop"}


def build(theme: str) -> duckdb.DuckDBPyConnection:
    """Return a database in memory with the data of one theme."""
    connection = duckdb.connect()
    connection.execute(_MACROS + _BUILDERS[theme])
    return connection
