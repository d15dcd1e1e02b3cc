-- query: brackets
-- sqlstate: 54001
-- at: (
SELECT ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))) FROM visits

-- query: three_thousand_brackets
-- sqlstate: 54001
-- at: (
SELECT <<3000*(>>1<<3000*)>> FROM visits

-- query: many_sums
-- sqlstate: 54001
-- at: 1
SELECT COUNT(*) FROM visits WHERE nights = 1<<3000* + nights>>

-- query: nots
-- sqlstate: 54001
-- at: nights
SELECT COUNT(*) FROM visits WHERE <<400*NOT >>nights = 1

-- query: subscripts
-- sqlstate: 54001
-- at: [
SELECT ward<<6000*[1]>> FROM visits
