-- The 43 queries of ClickBench as written for DuckDB; the visitor is the privacy unit.

-- query: q01
-- what: page views
SELECT COUNT(*) FROM hits

-- query: q02
-- what: page views from advertisements
SELECT COUNT(*) FROM hits WHERE AdvEngineID <> 0

-- query: q03
-- what: sum, count and mean
SELECT SUM(AdvEngineID), COUNT(*), AVG(ResolutionWidth) FROM hits

-- query: q04
-- what: mean of an identifier
-- refused: unbounded
-- why: an identifier has no bounds, and its mean says nothing; one visitor could change it without limit
SELECT AVG(UserID) FROM hits

-- query: q05
-- what: visitors
SELECT COUNT(DISTINCT UserID) FROM hits

-- query: q06
-- what: search phrases
SELECT COUNT(DISTINCT SearchPhrase) FROM hits

-- query: q07
-- what: first and last day
-- why: at a smaller epsilon a few rows before and after them are left out
SELECT MIN(EventDate), MAX(EventDate) FROM hits

-- query: q08
-- what: advertising engines
SELECT AdvEngineID, COUNT(*) FROM hits WHERE AdvEngineID <> 0 GROUP BY AdvEngineID ORDER BY COUNT(*) DESC

-- query: q09
-- what: regions by visitors
SELECT RegionID, COUNT(DISTINCT UserID) AS u FROM hits GROUP BY RegionID ORDER BY u DESC LIMIT 10

-- query: q10
-- what: regions, several aggregates
SELECT RegionID, SUM(AdvEngineID), COUNT(*) AS c, AVG(ResolutionWidth), COUNT(DISTINCT UserID) FROM hits
GROUP BY RegionID ORDER BY c DESC LIMIT 10

-- query: q11
-- what: phone models by visitors
SELECT MobilePhoneModel, COUNT(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> ''
GROUP BY MobilePhoneModel ORDER BY u DESC LIMIT 10

-- query: q12
-- what: phones and models by visitors
SELECT MobilePhone, MobilePhoneModel, COUNT(DISTINCT UserID) AS u FROM hits WHERE MobilePhoneModel <> ''
GROUP BY MobilePhone, MobilePhoneModel ORDER BY u DESC LIMIT 10

-- query: q13
-- what: popular search phrases
SELECT SearchPhrase, COUNT(*) AS c FROM hits WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10

-- query: q14
-- what: search phrases by visitors
SELECT SearchPhrase, COUNT(DISTINCT UserID) AS u FROM hits WHERE SearchPhrase <> ''
GROUP BY SearchPhrase ORDER BY u DESC LIMIT 10

-- query: q15
-- what: engines and phrases
SELECT SearchEngineID, SearchPhrase, COUNT(*) AS c FROM hits WHERE SearchPhrase <> ''
GROUP BY SearchEngineID, SearchPhrase ORDER BY c DESC LIMIT 10

-- query: q16
-- what: most active visitors
-- refused: unit_key
-- why: one row for each visitor, chosen by looking at the others: protected rows are never returned
SELECT UserID, COUNT(*) FROM hits GROUP BY UserID ORDER BY COUNT(*) DESC LIMIT 10

-- query: q17
-- what: most active visitors and what they searched
-- refused: unit_key
-- why: one row for each visitor, chosen by looking at the others: protected rows are never returned
SELECT UserID, SearchPhrase, COUNT(*) FROM hits GROUP BY UserID, SearchPhrase ORDER BY COUNT(*) DESC LIMIT 10

-- query: q18
-- what: some visitors and what they searched
-- refused: unit_key
-- why: one row for each visitor, chosen by looking at the others: protected rows are never returned
SELECT UserID, SearchPhrase, COUNT(*) FROM hits GROUP BY UserID, SearchPhrase LIMIT 10

-- query: q19
-- what: visitors by minute
-- refused: unit_key
-- why: one row for each visitor, chosen by looking at the others: protected rows are never returned
SELECT UserID, extract(minute FROM EventTime) AS m, SearchPhrase, COUNT(*) FROM hits
GROUP BY UserID, m, SearchPhrase ORDER BY COUNT(*) DESC LIMIT 10

-- query: q20
-- what: one visitor
-- refused: raw_rows
-- why: whether one visitor is there is what must stay hidden
SELECT UserID FROM hits WHERE UserID = 435090932899640449

-- query: q21
-- what: addresses with a word
SELECT COUNT(*) FROM hits WHERE URL LIKE '%google%'

-- query: q22
-- what: phrases and an example address
-- refused: not_listed
-- why: MIN of a text is somebody's text as it is
SELECT SearchPhrase, MIN(URL), COUNT(*) AS c FROM hits WHERE URL LIKE '%google%' AND SearchPhrase <> ''
GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10

-- query: q23
-- what: phrases and an example title
-- refused: not_listed
-- why: MIN of a text is somebody's text as it is
SELECT SearchPhrase, MIN(URL), MIN(Title), COUNT(*) AS c, COUNT(DISTINCT UserID) FROM hits
WHERE Title LIKE '%Google%' AND URL NOT LIKE '%.google.%' AND SearchPhrase <> ''
GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10

-- query: q24
-- what: rows as they are
-- refused: rows_clause
-- why: protected rows as they are, chosen by LIMIT
SELECT * FROM hits WHERE URL LIKE '%google%' ORDER BY EventTime LIMIT 10

-- query: q25
-- what: first phrases by time
-- refused: rows_clause
-- why: protected rows as they are, chosen by LIMIT
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime LIMIT 10

-- query: q26
-- what: first phrases by text
-- refused: rows_clause
-- why: protected rows as they are, chosen by LIMIT
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY SearchPhrase LIMIT 10

-- query: q27
-- what: first phrases by time and text
-- refused: rows_clause
-- why: protected rows as they are, chosen by LIMIT
SELECT SearchPhrase FROM hits WHERE SearchPhrase <> '' ORDER BY EventTime, SearchPhrase LIMIT 10

-- query: q28
-- what: length of addresses by counter
-- refused: unbounded
-- why: the policy bounds no length, and one visitor could move the mean without limit: AVG(clamp(STRLEN(URL), 0, 500))
SELECT CounterID, AVG(STRLEN(URL)) AS l, COUNT(*) AS c FROM hits WHERE URL <> ''
GROUP BY CounterID HAVING COUNT(*) > 100000 ORDER BY l DESC LIMIT 25

-- query: q29
-- what: referring hosts
-- refused: unbounded
-- why: as above; and MIN(Referer) is somebody's text as it is
SELECT REGEXP_REPLACE(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS k, AVG(STRLEN(Referer)) AS l,
  COUNT(*) AS c, MIN(Referer)
FROM hits WHERE Referer <> '' GROUP BY k HAVING COUNT(*) > 100000 ORDER BY l DESC LIMIT 25

-- query: q30
-- what: ninety sums
SELECT SUM(ResolutionWidth), SUM(ResolutionWidth + 1), SUM(ResolutionWidth + 2), SUM(ResolutionWidth + 3),
  SUM(ResolutionWidth + 4), SUM(ResolutionWidth + 5), SUM(ResolutionWidth + 6), SUM(ResolutionWidth + 7),
  SUM(ResolutionWidth + 8), SUM(ResolutionWidth + 9), SUM(ResolutionWidth + 10), SUM(ResolutionWidth + 11),
  SUM(ResolutionWidth + 12), SUM(ResolutionWidth + 13), SUM(ResolutionWidth + 14), SUM(ResolutionWidth + 15),
  SUM(ResolutionWidth + 16), SUM(ResolutionWidth + 17), SUM(ResolutionWidth + 18), SUM(ResolutionWidth + 19),
  SUM(ResolutionWidth + 20), SUM(ResolutionWidth + 21), SUM(ResolutionWidth + 22), SUM(ResolutionWidth + 23),
  SUM(ResolutionWidth + 24), SUM(ResolutionWidth + 25), SUM(ResolutionWidth + 26), SUM(ResolutionWidth + 27),
  SUM(ResolutionWidth + 28), SUM(ResolutionWidth + 29), SUM(ResolutionWidth + 30), SUM(ResolutionWidth + 31),
  SUM(ResolutionWidth + 32), SUM(ResolutionWidth + 33), SUM(ResolutionWidth + 34), SUM(ResolutionWidth + 35),
  SUM(ResolutionWidth + 36), SUM(ResolutionWidth + 37), SUM(ResolutionWidth + 38), SUM(ResolutionWidth + 39),
  SUM(ResolutionWidth + 40), SUM(ResolutionWidth + 41), SUM(ResolutionWidth + 42), SUM(ResolutionWidth + 43),
  SUM(ResolutionWidth + 44), SUM(ResolutionWidth + 45), SUM(ResolutionWidth + 46), SUM(ResolutionWidth + 47),
  SUM(ResolutionWidth + 48), SUM(ResolutionWidth + 49), SUM(ResolutionWidth + 50), SUM(ResolutionWidth + 51),
  SUM(ResolutionWidth + 52), SUM(ResolutionWidth + 53), SUM(ResolutionWidth + 54), SUM(ResolutionWidth + 55),
  SUM(ResolutionWidth + 56), SUM(ResolutionWidth + 57), SUM(ResolutionWidth + 58), SUM(ResolutionWidth + 59),
  SUM(ResolutionWidth + 60), SUM(ResolutionWidth + 61), SUM(ResolutionWidth + 62), SUM(ResolutionWidth + 63),
  SUM(ResolutionWidth + 64), SUM(ResolutionWidth + 65), SUM(ResolutionWidth + 66), SUM(ResolutionWidth + 67),
  SUM(ResolutionWidth + 68), SUM(ResolutionWidth + 69), SUM(ResolutionWidth + 70), SUM(ResolutionWidth + 71),
  SUM(ResolutionWidth + 72), SUM(ResolutionWidth + 73), SUM(ResolutionWidth + 74), SUM(ResolutionWidth + 75),
  SUM(ResolutionWidth + 76), SUM(ResolutionWidth + 77), SUM(ResolutionWidth + 78), SUM(ResolutionWidth + 79),
  SUM(ResolutionWidth + 80), SUM(ResolutionWidth + 81), SUM(ResolutionWidth + 82), SUM(ResolutionWidth + 83),
  SUM(ResolutionWidth + 84), SUM(ResolutionWidth + 85), SUM(ResolutionWidth + 86), SUM(ResolutionWidth + 87),
  SUM(ResolutionWidth + 88), SUM(ResolutionWidth + 89)
FROM hits

-- query: q31
-- what: engines and addresses
SELECT SearchEngineID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth) FROM hits
WHERE SearchPhrase <> '' GROUP BY SearchEngineID, ClientIP ORDER BY c DESC LIMIT 10

-- query: q32
-- what: views and addresses, of searches
-- why: every view has an identifier of its own, so no group holds two people and none appears
-- compare: SELECT WatchID, ClientIP, COUNT(*), SUM(IsRefresh), AVG(ResolutionWidth) FROM hits WHERE false GROUP BY ALL
-- empty: every view has an identifier of its own, so no group holds two people and none appears
SELECT WatchID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth) FROM hits
WHERE SearchPhrase <> '' GROUP BY WatchID, ClientIP ORDER BY c DESC LIMIT 10

-- query: q33
-- what: views and addresses
-- why: every view has an identifier of its own, so no group holds two people and none appears
-- compare: SELECT WatchID, ClientIP, COUNT(*), SUM(IsRefresh), AVG(ResolutionWidth) FROM hits WHERE false GROUP BY ALL
-- empty: every view has an identifier of its own, so no group holds two people and none appears
SELECT WatchID, ClientIP, COUNT(*) AS c, SUM(IsRefresh), AVG(ResolutionWidth) FROM hits
GROUP BY WatchID, ClientIP ORDER BY c DESC LIMIT 10

-- query: q34
-- what: popular addresses
SELECT URL, COUNT(*) AS c FROM hits GROUP BY URL ORDER BY c DESC LIMIT 10

-- query: q35
-- what: popular addresses and a constant
SELECT 1, URL, COUNT(*) AS c FROM hits GROUP BY 1, URL ORDER BY c DESC LIMIT 10

-- query: q36
-- what: client addresses and their neighbours
SELECT ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3, COUNT(*) AS c FROM hits
GROUP BY ClientIP, ClientIP - 1, ClientIP - 2, ClientIP - 3 ORDER BY c DESC LIMIT 10

-- query: q37
-- what: popular pages of a counter
SELECT URL, COUNT(*) AS PageViews FROM hits
WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND DontCountHits = 0
  AND IsRefresh = 0 AND URL <> ''
GROUP BY URL ORDER BY PageViews DESC LIMIT 10

-- query: q38
-- what: popular titles of a counter
SELECT Title, COUNT(*) AS PageViews FROM hits
WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND DontCountHits = 0
  AND IsRefresh = 0 AND Title <> ''
GROUP BY Title ORDER BY PageViews DESC LIMIT 10

-- query: q39
-- what: popular links of a counter
-- empty: fewer rows than OFFSET skips in the small data
SELECT URL, COUNT(*) AS PageViews FROM hits
WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND IsRefresh = 0 AND IsLink <> 0
  AND IsDownload = 0
GROUP BY URL ORDER BY PageViews DESC LIMIT 10 OFFSET 1000

-- query: q40
-- what: traffic sources of a counter
-- empty: fewer rows than OFFSET skips in the small data
SELECT TraficSourceID, SearchEngineID, AdvEngineID,
  CASE WHEN (SearchEngineID = 0 AND AdvEngineID = 0) THEN Referer ELSE '' END AS Src, URL AS Dst, COUNT(*) AS PageViews
FROM hits
WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND IsRefresh = 0
GROUP BY TraficSourceID, SearchEngineID, AdvEngineID, Src, Dst ORDER BY PageViews DESC LIMIT 10 OFFSET 1000

-- query: q41
-- what: pages by hash and day
-- empty: fewer rows than OFFSET skips in the small data
SELECT URLHash, EventDate, COUNT(*) AS PageViews FROM hits
WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND IsRefresh = 0
  AND TraficSourceID IN (-1, 6) AND RefererHash = 3594120000172545465
GROUP BY URLHash, EventDate ORDER BY PageViews DESC LIMIT 10 OFFSET 100

-- query: q42
-- what: window sizes
-- empty: fewer rows than OFFSET skips in the small data
SELECT WindowClientWidth, WindowClientHeight, COUNT(*) AS PageViews FROM hits
WHERE CounterID = 62 AND EventDate >= '2013-07-01' AND EventDate <= '2013-07-31' AND IsRefresh = 0
  AND DontCountHits = 0 AND URLHash = 2868770270353813622
GROUP BY WindowClientWidth, WindowClientHeight ORDER BY PageViews DESC LIMIT 10 OFFSET 10000

-- query: q43
-- what: page views by minute
-- empty: fewer rows than OFFSET skips in the small data
SELECT DATE_TRUNC('minute', EventTime) AS M, COUNT(*) AS PageViews FROM hits
WHERE CounterID = 62 AND EventDate >= '2013-07-14' AND EventDate <= '2013-07-15' AND IsRefresh = 0
  AND DontCountHits = 0
GROUP BY DATE_TRUNC('minute', EventTime) ORDER BY DATE_TRUNC('minute', EventTime) LIMIT 10 OFFSET 1000
