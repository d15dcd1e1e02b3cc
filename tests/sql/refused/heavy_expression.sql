-- query: clamps
SELECT COUNT(*) FROM visits WHERE <<12*clamp(>>nights<<12*, 0, 9)>> = 1

-- query: betweens
SELECT COUNT(*) FROM visits WHERE (<<20*(>>nights > 1<<20*) BETWEEN false AND true)>> AND true
