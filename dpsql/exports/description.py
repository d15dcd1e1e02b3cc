"""Description of a written table: how its columns were randomised, as JSON that accompanies the rows.

It follows from policy and options alone. In a Parquet file it is metadata of the schema, for a CSV file it is the file NAME.json
next to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from dpsql.errors.exceptions import refuse
from dpsql.pricing.row_export import ExportedColumn, ExportPlan
from dpsql.privacy.loss import plain_decimal
from dpsql.privacy.mechanisms.local_randomizers import MOST_CATEGORIES, CategoryLaw, NumberLaw
from dpsql.privacy.mechanisms.registry import from_json, to_json
from dpsql.release.value_text import half_width_text

KEY = b"dpsql"
"""Name of the metadata in a Parquet file."""
FORMAT = 1
_TYPES = {
    "string": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_(), "date32[day]": pa.date32(),
    "timestamp[us]": pa.timestamp("us"),
}  # fmt: skip


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories: its values in the order of codes, and the probabilities of `CategoryLaw`."""

    name: str
    type: str
    values: tuple[Any, ...]
    subset: int
    own_share: float
    other_share: float

    @property
    def array(self) -> Any:
        """The values as a pyarrow.Array; NULL may be one of them."""
        type_ = _TYPES[self.type]
        texts = pa.types.is_date(type_) or pa.types.is_timestamp(type_)
        return pa.array(self.values, pa.string()).cast(type_) if texts else pa.array(self.values, type_)


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers between two ends. In a SUM, a written number counts as (number - middle) + present_weight middle, and
    NULL as missing_weight middle; `deviation`: the standard deviation of one written number, in the unit of the column."""

    name: str
    lower: float
    upper: float
    present_weight: float
    missing_weight: float
    deviation: float

    @property
    def middle(self) -> float:
        """The middle of the two ends."""
        return self.lower / 2 + self.upper / 2


@dataclass(frozen=True)
class Description:
    """A written table. `count_noise`: the law of the noise in its number of rows as JSON, None if that number is exact."""

    dataset: str
    table: str
    epsilon: str
    rows_per_unit: int
    count_noise: Mapping[str, Any] | None
    columns: tuple[CategoryColumn | NumberColumn, ...]

    def rows_missed(self, confidence: float) -> float:
        """Return the number of padding rows, or of rows left out, that is not exceeded with probability `confidence`."""
        return 0.0 if self.count_noise is None else from_json(self.count_noise).half_width(confidence)

    def column(self, name: str) -> CategoryColumn | NumberColumn | None:
        """Return the column of that name, in upper or lower case; None if there is none."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)

    def to_text(self) -> str:
        """Return the description as JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False, default=str)


def describe(plan: ExportPlan, dataset: str) -> Description:
    """Return the description of a planned export."""
    return Description(
        dataset, plan.table, plain_decimal(plan.epsilon), plan.rows_per_unit,
        None if plan.count_noise is None else to_json(plan.count_noise), tuple(map(_column, plan.columns)),
    )  # fmt: skip


def _column(column: ExportedColumn) -> CategoryColumn | NumberColumn:
    law = column.law
    if isinstance(law, CategoryLaw):
        array = column.values
        assert array is not None
        shares = float(law.own_share), float(law.other_share)
        return CategoryColumn(column.name, str(array.type), tuple(array.to_pylist()), law.subset, *shares)
    present, missing = map(float, law.present_weights)
    deviation = law.standard_deviation * (column.upper - column.lower)
    return NumberColumn(column.name, column.lower, column.upper, present, missing, deviation)


def read_description(text: str, place: str) -> Description:
    """Parse the description written as `text`. Raises InterfaceError export_file for anything else."""
    try:
        facts = json.loads(text)
        if facts.pop("format") != FORMAT:
            raise ValueError("another format")
        columns = tuple(_read_column(entry) for entry in facts.pop("columns"))
        description = Description(columns=columns, **facts)
        description.rows_missed(0.5)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowInvalid):
        raise refuse("export_file", place=place) from None
    return description


def _read_column(entry: Mapping[str, Any]) -> CategoryColumn | NumberColumn:
    if "values" not in entry:
        number = NumberColumn(**entry)
        if not (number.upper - number.lower > 0 and number.present_weight > 0):
            raise ValueError("no number column")
        return number
    category = CategoryColumn(**{**entry, "values": tuple(entry["values"])})
    array = category.array
    if not 1 < len(array) <= MOST_CATEGORIES or not 0 < category.subset < len(array):
        raise ValueError("no list of values")
    if not 0 <= category.other_share < category.own_share <= 1:
        raise ValueError("no randomised values")
    return category


def expected_errors(plan: ExportPlan) -> list[tuple[str, str, str]]:
    """Return for each column its name, how it is randomised, and the expected error of an estimate from it."""
    lines = []
    for column in plan.columns:
        law = column.law
        share = f"epsilon {plain_decimal(Fraction(law.epsilon))}"
        if isinstance(law, NumberLaw):
            mechanism = "hybrid mechanism" if law.interval_coin else "rounded at random to its ends"
            width = half_width_text(1.96 * law.standard_deviation * (column.upper - column.lower))
            error = f"a mean of n rows +/- {width} / sqrt(n)"
        else:
            mechanism = f"sets of {law.subset} of {law.size} values" if law.subset > 1 else f"one of {law.size} values"
            error = f"a count among n rows +/- {half_width_text(1.96 * law.standard_deviation)} sqrt(n)"
        lines.append((column.name, f"{mechanism}, {share}", error))
    return lines
