"""Files of randomised rows: written from outputs of the laws, described, and read as codes and estimates of numbers.

A category is written as its value, or as a list of values if outputs are sets; a number as an unbiased estimate of itself, which
may lie far outside of its bounds. The description says how the columns were randomised. It follows from policy and options alone,
is JSON, and accompanies the rows: as metadata of the schema in a Parquet file, as the file NAME.json next to a CSV file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpsql.errors.exceptions import Error, refuse
from dpsql.noise.local_randomizers import RandomisedColumn
from dpsql.pricing.row_export import ExportedColumn, ExportPlan
from dpsql.privacy.loss import plain_decimal
from dpsql.privacy.mechanisms.local_randomizers import MOST_CATEGORIES, CategoryLaw, NumberLaw
from dpsql.privacy.mechanisms.registry import from_json, to_json
from dpsql.release.value_text import half_width_text
from dpsql.storage.records import asdict, dataclass

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
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False, default=str)


def describe(plan: ExportPlan, dataset: str) -> Description:
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


ENDINGS = (".parquet", ".csv")


def rows_table(plan: ExportPlan, columns: tuple[RandomisedColumn, ...]) -> pa.Table:
    """Return the randomised rows in the form in which they are written."""
    arrays = [_written(column, outputs) for column, outputs in zip(plan.columns, columns, strict=True)]
    fields = [
        pa.field(column.name, array.type, nullable=_may_be_null(column))
        for column, array in zip(plan.columns, arrays, strict=True)
    ]
    return pa.table(arrays, schema=pa.schema(fields))


def _may_be_null(column: ExportedColumn) -> bool:
    """Return whether an output of the column's law is written as NULL; a column that cannot be NULL is written faster."""
    if isinstance(column.law, CategoryLaw):
        return column.law.subset == 1 and column.values is not None and column.values.null_count > 0
    return column.law.missing


def _written(column: ExportedColumn, randomised: RandomisedColumn) -> Any:
    law, outputs = column.law, randomised.outputs
    if isinstance(law, CategoryLaw):
        values = column.values
        assert values is not None
        if law.subset > 1:
            flat = _categories(values, outputs.reshape(-1))
            offsets = pa.array(np.arange(len(outputs) + 1, dtype=np.int64) * law.subset)
            return pa.LargeListArray.from_arrays(offsets, flat)
        return _categories(values, outputs)
    interval = randomised.interval
    assert interval is not None
    middle, width = column.lower / 2 + column.upper / 2, column.upper - column.lower
    # Outputs are few, so the number that each of them is written as is computed once.
    paths = middle + (np.arange(law.places) - (law.places - 1) / 2) * (float(law.interval_slope) * width)
    ends = middle + np.array([-1.0, 1.0]) * (float(law.end_reach) * width)
    numbers = np.concatenate([paths, np.full(law.width, np.nan), ends, [np.nan]])
    position = np.where(interval, outputs, outputs + law.places + law.width)
    written = numbers[position]
    return pa.array(written, mask=np.isnan(written)) if law.missing else pa.array(written)


def _categories(values: Any, outputs: NDArray[np.int16]) -> Any:
    """Return values by their codes; texts as a dictionary array, which Parquet writes without conversion."""
    if not pa.types.is_string(values.type):
        return values.take(pa.array(outputs))
    present = values.is_valid().to_numpy(zero_copy_only=False)
    if present.all():
        return pa.DictionaryArray.from_arrays(pa.array(outputs), values)
    codes = (np.cumsum(present) - 1).astype(np.int16)[outputs]
    mask = ~present[outputs]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=mask), values.drop_null())


class NewFile:
    """A file that appears under its name only when it is complete. It is opened before anything is charged, so that a place that
    cannot be written is refused for free."""

    def __init__(self, path: Path, description: Description) -> None:
        """Raise InterfaceError export_exists, export_ending, export_sets and Fault file_write."""
        if path.suffix.lower() not in ENDINGS:
            raise refuse("export_ending", place=str(path))
        self.place, self._description = path, description
        self._is_csv = path.suffix.lower() == ".csv"
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        sets = [c.name for c in description.columns if isinstance(c, CategoryColumn) and c.subset > 1]
        if self._is_csv and sets:
            raise refuse("export_sets", column=sets[0])
        names = [path, *([_description_place(path)] if self._is_csv else [])]
        for name in names:
            if name.exists():
                raise refuse("export_exists", place=str(name))
        try:
            self._file: IO[bytes] = self._part.open("xb")
            if self._is_csv:
                with _description_place(path).open("x", encoding="utf-8") as text:
                    text.write(description.to_text())
        except OSError as error:
            self.discard()
            raise refuse("file_write", place=str(path), problem=error.strerror or "it failed") from None

    def write(self, table: pa.Table) -> None:
        """Write the rows under a temporary name. Raises Fault file_write, with the charge kept."""
        try:
            with self._file as file:
                if self._is_csv:
                    pyarrow.csv.write_csv(table, file)
                else:
                    text = self._description.to_text().encode()
                    described = table.replace_schema_metadata({KEY: text})
                    # Minima and maxima of random values help no reader to find rows, and would take a third of the time.
                    pq.write_table(described, file, compression="snappy", write_statistics=False)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._unwritten(error) from None

    def publish(self) -> None:
        """Rename the file to its final name. Raises Fault file_write, with the charge kept."""
        try:
            self._part.rename(self.place)
        except OSError as error:
            raise self._unwritten(error) from None

    def _unwritten(self, error: OSError) -> Error:
        problem = error.strerror or "it failed"
        return refuse("file_write", place=str(self.place), problem=problem, charged=True)

    def discard(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None:
            file.close()
        unfinished = file is not None and self._part.exists()
        self._part.unlink(missing_ok=True)
        if unfinished and self._is_csv:
            _description_place(self.place).unlink(missing_ok=True)


def _description_place(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


@dataclass(frozen=True, eq=False)
class RandomisedRows:
    """A written table. A column of categories: the codes of its values, or one row of codes for each set; a column of numbers:
    the written numbers, NaN for NULL."""

    description: Description
    count: int
    columns: dict[str, NDArray[Any]]


def read_rows(path: Path) -> RandomisedRows:
    """Read a file that dpsql has written. Raises InterfaceError export_file, file_read."""
    try:
        if path.suffix.lower() == ".csv":
            description = read_description(_description_place(path).read_text(encoding="utf-8"), str(path))
            table = _read_csv(path, description)
        else:
            with path.open("rb") as file:  # Arrow's own errors have no reason apart from their text
                table = pq.read_table(file)
            description = read_description((table.schema.metadata or {}).get(KEY, b"").decode(), str(path))
        if table.column_names != [column.name for column in description.columns]:
            raise refuse("export_file", place=str(path))
        columns = {column.name: _read(table.column(column.name), column) for column in description.columns}
    except OSError as error:
        hint = "name a file that `dpsql export` has written"
        problem = (error.strerror or "it failed").lower()
        raise refuse("file_read", hint=hint, place=str(error.filename or path), problem=problem) from None
    except (pa.ArrowException, ValueError):
        raise refuse("export_file", place=str(path)) from None
    return RandomisedRows(description, table.num_rows, columns)


def _read_csv(path: Path, description: Description) -> pa.Table:
    types = {c.name: c.array.type if isinstance(c, CategoryColumn) else pa.float64() for c in description.columns}
    options = pyarrow.csv.ConvertOptions(
        column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    parsed = pyarrow.csv.ParseOptions(newlines_in_values=True)
    return pyarrow.csv.read_csv(path, parse_options=parsed, convert_options=options)


def _read(values: Any, column: CategoryColumn | NumberColumn) -> NDArray[Any]:
    """Return the codes or numbers of one column. Raises ValueError for values that dpsql did not write."""
    if isinstance(column, NumberColumn):
        numbers: NDArray[np.float64] = values.cast(pa.float64()).fill_null(np.nan).to_numpy()
        return numbers
    flat = values
    if column.subset > 1:
        flat = pc.list_flatten(values)
        if len(flat) != len(values) * column.subset:
            raise ValueError("not sets of that size")
    flat = flat.combine_chunks() if isinstance(flat, pa.ChunkedArray) else flat
    if pa.types.is_dictionary(flat.type):
        flat = flat.dictionary_decode()
    codes = pc.index_in(flat, value_set=column.array.cast(flat.type))
    if codes.null_count:
        raise ValueError("a value that is not listed")
    read: NDArray[np.int64] = codes.to_numpy().astype(np.int64)
    return read.reshape(len(values), column.subset) if column.subset > 1 else read
