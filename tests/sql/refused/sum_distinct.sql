-- query: pairs
-- sqlstate: ZP006
-- at: REGR_SLOPE
SELECT REGR_SLOPE(DISTINCT cost, nights) FROM visits

-- query: counted_pairs
-- sqlstate: ZP006
-- at: REGR_COUNT
SELECT REGR_COUNT(DISTINCT cost, nights) FROM visits
