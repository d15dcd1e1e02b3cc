-- query: local
-- sqlstate: 25P01
-- at: LOCAL
SET LOCAL dp.epsilon = 0.2
