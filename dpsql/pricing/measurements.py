"""The pricing floor's parts of measurements that are no sums (`dpsql.plan.measurements`): budget, mechanisms, EXPLAIN."""

from __future__ import annotations

from dpsql.plan.measurements import Register
from dpsql.pricing.measurement_contract import MeasurementPricing
from dpsql.pricing.rank_histograms import RankHistogramPricing
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM

PARTS: Register[MeasurementPricing] = Register("pricing", {RANK_HISTOGRAM: RankHistogramPricing()})
