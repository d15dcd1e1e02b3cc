-- query: sum_of_text
-- sqlstate: 42883
-- at: ward
SELECT SUM(ward) FROM visits

-- query: compare_text_with_number
-- sqlstate: 42883
-- at: ward
SELECT COUNT(*) FROM visits WHERE ward > 3

-- query: like_of_a_column
-- sqlstate: 42883
-- at: ward
SELECT COUNT(*) FROM visits WHERE ward LIKE diagnosis

-- query: clamp_by_column
-- sqlstate: 42883
-- at: clamp
SELECT SUM(clamp(cost, 0, nights)) FROM visits

-- query: forgotten_by_the_parser
-- sqlstate: 42883
-- at: 2)
SELECT COUNT(*) FROM visits WHERE mod(nights, 7, 2) = 1

-- query: date_trunc_of_three
-- sqlstate: 42883
-- at: 'UTC'
SELECT date_trunc('month', day, 'UTC'), COUNT(*) FROM visits GROUP BY 1

-- query: trim_of_three
-- sqlstate: 42883
-- at: (ward)
SELECT COUNT(*) FROM visits WHERE ltrim(ward, 'x', (ward)) = ''

-- query: too_many_over_results
-- sqlstate: 42883
-- at: 10)
SELECT ward, log10(COUNT(*), 10) FROM visits GROUP BY ward

-- query: slot_of_another_dialect
-- sqlstate: 42883
-- at: 3)
SELECT ward, length(ward, 3) FROM visits GROUP BY ward

-- query: bucket_without_ends
-- sqlstate: 42883
-- at: width_bucket
SELECT SUM(width_bucket(cost)) FROM visits

-- query: bucket_without_ends_per_unit
-- sqlstate: 42883
-- at: width_bucket
SELECT SUM(x) FROM (SELECT patient_id, width_bucket(SUM(cost)) AS x FROM visits GROUP BY patient_id) AS t

-- query: format_without_words
-- sqlstate: 42883
-- at: strftime
SELECT ward, strftime(day, '') AS d, COUNT(*) FROM visits GROUP BY 1, 2

-- query: format_without_words_over_results
-- sqlstate: 42883
-- at: strftime
SELECT strftime(MAX(d), '') FROM (SELECT day AS d, COUNT(*) AS n FROM visits GROUP BY 1) AS t

-- query: extreme_of_nothing_per_unit
-- sqlstate: 42883
-- at: m FROM visits
SELECT AVG(m) FROM (SELECT patient_id, MAX() AS m FROM visits GROUP BY patient_id) AS t

-- query: nothing_over_results
-- sqlstate: 42883
-- at: y, COUNT
SELECT COUNT(*) FROM visits AS v JOIN (SELECT ward, initcap() AS y, COUNT(*) AS n FROM visits GROUP BY ward) AS t
ON t.ward = v.ward

-- query: two_means
-- sqlstate: 42883
-- at: mean(weight, age)
SELECT mean(weight, age) FROM patients

-- query: a_mean_of_nothing
-- sqlstate: 42883
-- at: mean()
SELECT mean() FROM patients

-- query: quantile_without_a_share
-- sqlstate: 42883
-- at: cost
SELECT QUANTILE_DISC(cost) FROM visits

-- query: quantile_beyond_one
-- sqlstate: 42883
-- at: 1.5
SELECT QUANTILE_CONT(cost, 1.5) FROM visits

-- query: quantile_of_a_column
-- sqlstate: 42883
-- at: nights
SELECT QUANTILE_CONT(cost, nights) FROM visits

-- query: quantile_with_many_decimals
-- sqlstate: 42883
-- at: 0.1234567
SELECT QUANTILE_CONT(cost, 0.1234567) FROM visits

-- query: empty_list_of_quantiles
-- sqlstate: 42883
SELECT QUANTILE_CONT(cost, []) FROM visits

-- query: share_beyond_one_in_a_list
-- sqlstate: 42883
-- at: 2
SELECT QUANTILE_CONT(cost, [0.1, 2]) FROM visits

-- query: lists_of_lists_of_quantiles
-- sqlstate: 42883
-- at: 0.1
SELECT QUANTILE_CONT(cost, [[0.1], [0.2]]) FROM visits

-- query: element_before_the_first
-- sqlstate: 42883
-- at: APPROX_QUANTILES
SELECT APPROX_QUANTILES(cost, 4)[0] FROM visits

-- query: quantiles_of_no_parts
-- sqlstate: 42883
-- at: 0
SELECT APPROX_QUANTILES(cost, 0) FROM visits

-- query: quantiles_of_too_many_parts
-- sqlstate: 42883
-- at: 101
SELECT APPROX_QUANTILES(cost, 101) FROM visits

-- query: quantiles_of_a_column_of_parts
-- sqlstate: 42883
-- at: nights
SELECT APPROX_QUANTILES(cost, nights) FROM visits

-- query: quantiles_of_distinct_values
-- sqlstate: 42883
-- at: APPROX_QUANTILES
SELECT APPROX_QUANTILES(DISTINCT cost, 4) FROM visits

-- query: median_of_a_text
-- sqlstate: 42883
-- at: city
SELECT MEDIAN(city) FROM patients

-- query: median_of_distinct_values
-- sqlstate: 42883
-- at: MEDIAN
SELECT MEDIAN(DISTINCT cost) FROM visits

-- query: quantile_ordered_by_two
-- sqlstate: 42883
-- at: PERCENTILE_CONT
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost, nights) FROM visits

-- query: mode_of_distinct_values
-- sqlstate: 42883
-- at: ward)
SELECT MODE(DISTINCT ward) FROM visits

-- query: median_of_texts
-- sqlstate: 42883
-- at: ward
SELECT MEDIAN(ward) FROM visits

-- query: end_of_a_constant
-- sqlstate: 42883
-- at: 3)
SELECT ARG_MAX(ward, 3) FROM visits

-- query: remainder_of_a_division_by_zero_over_results
-- sqlstate: 42883
-- at: COUNT(*) % -0.0
SELECT COUNT(*) % -0.0 FROM visits

-- query: column_beside_the_aggregates_of_samples
-- sqlstate: 42883
-- at: cost
SELECT SAMPLE_AGGREGATE(cost / AVG(nights), 0, 10) FROM visits

-- query: samples_of_no_aggregate
-- sqlstate: 42883
-- at: 1
SELECT SAMPLE_AGGREGATE(1, 0, 10) FROM visits

-- query: samples_without_bounds
-- sqlstate: 42883
-- at: SAMPLE_AGGREGATE
SELECT SAMPLE_AGGREGATE(AVG(cost)) FROM visits

-- query: samples_with_bounds_of_the_data
-- sqlstate: 42883
-- at: nights
SELECT SAMPLE_AGGREGATE(AVG(cost), 0, nights) FROM visits

-- query: one_sample
-- sqlstate: 42883
-- at: 1
SELECT SAMPLE_AGGREGATE(AVG(cost), 0, 9, 1) FROM visits

-- query: a_list_of_a_sample
-- sqlstate: 42883
-- at: ARRAY_AGG
SELECT SAMPLE_AGGREGATE(ARRAY_AGG(cost), 0, 9) FROM visits

-- query: logarithm_with_base_1
-- sqlstate: 42883
-- at: 1, age
SELECT AVG(log(1, age)) FROM patients

-- query: logarithm_with_a_column_as_base
-- sqlstate: 42883
-- at: age, 2
SELECT AVG(log(age, 2)) FROM patients

-- query: seconds_since_1970_of_a_text
-- sqlstate: 42883
-- at: to_timestamp
SELECT COUNT(*) FROM patients WHERE to_timestamp(region) > '2024-01-01'

-- query: a_sum_of_null
-- sqlstate: 42883
-- at: NULL
SELECT SUM(NULL) FROM visits

-- query: number_as_text
-- sqlstate: 42883
-- at: '999'
SELECT to_char(COUNT(*), '999') FROM visits

-- query: sign_of_a_text
-- sqlstate: 42883
-- at: ward
SELECT COUNT(*) FROM visits WHERE +ward = 'er'

-- query: completed_by_the_parser
-- sqlstate: 42883
-- at: log10
SELECT COUNT(*) FROM visits WHERE log10() < nights

-- query: one_value_of_two
-- sqlstate: 42883
-- at: ifnull
SELECT SUM(ifnull(nights)) FROM visits

-- query: frame_below_zero
-- sqlstate: 42883
-- at: 1 PRECEDING
SELECT ward, SUM(COUNT(*)) OVER (ORDER BY ward ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) FROM visits GROUP BY ward

-- query: no_bucket
-- sqlstate: 42883
-- at: 0)
SELECT ward, NTILE(0) OVER (ORDER BY ward), COUNT(*) FROM visits GROUP BY ward

-- query: padded_number
-- sqlstate: 42883
-- at: lpad
SELECT COUNT(*) FROM visits WHERE lpad(nights, 3, '0') = '001'

-- query: nothing_in_its_place
-- sqlstate: 42883
-- at: replace
SELECT COUNT(*) FROM visits WHERE replace(ward, 'e') = 'r'

-- query: quotient_of_a_count_by_zero
-- sqlstate: 42883
-- at: COUNT(*) / -(0.0)
SELECT COUNT(*) / -(0.0) FROM visits

-- query: rows_below_zero
-- sqlstate: 42883
-- at: 1
SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT -1

-- query: mean_of_a_truth_value
-- sqlstate: 42883
-- at: smoker
SELECT AVG(smoker) FROM patients

-- query: bits_of_reals
-- sqlstate: 42883
-- at: cost
SELECT COUNT(*) FROM visits WHERE cost & 1 = 1

-- query: bits_of_two_columns
-- sqlstate: 42883
-- at: nights
SELECT COUNT(*) FROM visits WHERE nights & code = 1

-- query: bits_beyond_those_of_a_shift
-- sqlstate: 42883
-- at: nights
SELECT COUNT(*) FROM visits WHERE nights & 9223372036854775807 = 1
