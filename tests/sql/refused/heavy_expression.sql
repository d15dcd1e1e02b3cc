-- query: clamps
-- sqlstate: 54001
-- at: clamp
SELECT COUNT(*) FROM visits WHERE <<12*clamp(>>nights<<12*, 0, 9)>> = 1

-- query: betweens
-- sqlstate: 54001
-- at: nights
SELECT COUNT(*) FROM visits WHERE <<20*(>>nights > 1<<20*) BETWEEN false AND true>>
