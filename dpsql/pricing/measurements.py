"""Pricing's register of measurements other than sums (`dpsql.plan.measurements`): budget, mechanisms, EXPLAIN."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.plan.measurements import Register
from dpsql.pricing import sample_values
from dpsql.pricing.local_sensitivity import LocalNumberPricing
from dpsql.pricing.most_frequent import EndRowsPricing, MostFrequentPricing, requested_key, requested_mode
from dpsql.pricing.rank_histograms import RankHistogramPricing
from dpsql.pricing.sample_values import SampleMeanPricing, SampleValuesPricing
from dpsql.pricing.sensitivity import MeasurementPricing, Request
from dpsql.privacy.mechanisms.local_sensitivity import LOCAL_SENSITIVITY
from dpsql.privacy.mechanisms.most_frequent import END_ROWS, MOST_FREQUENT
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM
from dpsql.privacy.mechanisms.sample_values import SAMPLE_MEAN, SAMPLE_VALUES

PARTS: Register[MeasurementPricing] = Register(
    "pricing",
    {
        RANK_HISTOGRAM: RankHistogramPricing(),
        MOST_FREQUENT: MostFrequentPricing(),
        END_ROWS: EndRowsPricing(),
        LOCAL_SENSITIVITY: LocalNumberPricing(),
        SAMPLE_VALUES: SampleValuesPricing(),
        SAMPLE_MEAN: SampleMeanPricing(),
    },
)
REQUESTS: Register[Request] = Register(
    "pricing",
    {
        MOST_FREQUENT: requested_mode,
        END_ROWS: requested_key,
        SAMPLE_VALUES: sample_values.requested,
        SAMPLE_MEAN: sample_values.requested_mean,
    },
)
"""Functions that turn measures into measurements, for measurements that aggregates name themselves
(`aggregates.contract.Basis.number`)."""


def farthest(blocks: Iterable[Any], confidence: Fraction) -> float:
    """Return the most rows by which the numbers chosen in priced blocks may be off in the worst case; 0 where nothing is chosen.

    Raises Refusal target_error_choice for a measurement without a known bound."""
    errors = [
        PARTS.of(measurement.word).worst_error(measurement, plan, name, float(confidence))
        for priced in blocks
        for measurement, plan in zip(priced.block.measurements, priced.noise.measurements, strict=True)
        for name, _ in plan.laws
    ]
    if any(map(math.isinf, errors)):
        raise refuse("target_error_choice")
    return max(errors, default=0.0)
