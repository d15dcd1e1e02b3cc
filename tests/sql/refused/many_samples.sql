-- query: too_many_samples_of_too_many_groups
-- sqlstate: 54000
SELECT day, ward, SAMPLE_AGGREGATE(AVG(cost), 0, 1000, 1000000) FROM visits GROUP BY ALL
