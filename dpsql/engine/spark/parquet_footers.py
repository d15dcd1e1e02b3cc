"""What the footers of Parquet files say about columns that Spark reads: the types of each file, and the unit of timestamps.

Spark reads each file in one schema, that of the table. A file whose column has another type fails when it is read, after the
charge; so the types of all files are compared first. Spark also turns timestamps of milliseconds into microseconds and raises
if they do not fit into 64 bits; `in_milliseconds` finds the columns that must be read as integers for that reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from dpsql.engine.spark.literals import kind

_READERS = 8
"""Footers that are read at the same time."""
_WIDER = {
    "tinyint": ("smallint", "int", "bigint"), "smallint": ("int", "bigint"), "int": ("bigint",), "float": ("double",),
}  # fmt: skip
"""The types of a table, by the type of a file, that Spark 4 reads without a failure."""
UNSIGNED = "UINT64"
"""Marks unsigned integers of 64 bits, which Spark reads as decimal(20,0) and as no wider decimal."""
_PASSED_ON = ("SubqueryAlias", "View")
"""Nodes of a plan that pass on the rows of their only child unchanged."""


@dataclass(frozen=True)
class Footers:
    """Columns of one table in its files. `types`: for each column Spark's types (of some also the unit) in the files that
    have it, each with one such file; `units`: of times MILLIS, MICROS or (the old format) INT96, and UNSIGNED."""

    types: Mapping[str, Mapping[str, str]]
    units: Mapping[str, frozenset[str]]

    def differing(self, types: Mapping[str, str]) -> str | None:
        """Return a column that some file has in a type that Spark does not read as the type in `types`; None if there is none."""
        pairs = ((column, file_type) for column, held in self.types.items() for file_type in held)
        return next((column for column, file_type in pairs if not _reads(file_type, types[column])), None)

    def mixed(self) -> str | None:
        """Return a column of timestamps that some files hold in milliseconds and others do not; None if there is none."""
        return next((column for column in self.in_milliseconds() if len(self.units[column]) > 1), None)

    def in_milliseconds(self) -> frozenset[str]:
        """Return the columns of timestamps that are stored in milliseconds."""
        return frozenset(column for column, units in self.units.items() if "MILLIS" in units)


def parquet_files(rows: DataFrame) -> Any | None:
    """Return Spark's relation if a frame is nothing but Parquet files, else None."""
    try:
        plan: Any = rows._jdf.queryExecution().analyzed()
        while plan.getClass().getSimpleName() in _PASSED_ON:
            plan = plan.child()
        is_files = plan.getClass().getSimpleName() == "LogicalRelation"
        relation = plan.relation() if is_files else None
        return relation if relation is not None and str(relation.fileFormat()) == "Parquet" else None
    except Py4JError:  # a node of another shape: a format that is no Parquet, or another version of the relation
        return None


def footers_of(rows: DataFrame, columns: Collection[str]) -> Footers:
    """Return what the footers of a frame's files say about `columns`. Raises Py4JError, PySparkException."""
    session: Any = rows.sparkSession
    java = session._jvm
    state = session._jsparkSession.sessionState()
    settings, reader = state.newHadoopConf(), java.org.apache.parquet.hadoop.ParquetFileReader
    without_groups = java.org.apache.parquet.format.converter.ParquetMetadataConverter.SKIP_ROW_GROUPS
    converter = java.org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter(state.conf())

    def fields(file: str) -> dict[str, tuple[str, str]]:
        path = java.org.apache.hadoop.fs.Path(java.java.net.URI(file))
        schema = reader.readFooter(settings, path, without_groups).getFileMetaData().getSchema()
        described = {}
        for column in columns:
            if schema.containsField(column):
                alone = java.java.util.ArrayList()
                alone.add(schema.getType(column))
                message = java.org.apache.parquet.schema.MessageType("alone", alone)
                spark_type = str(converter.convert(message).apply(0).dataType().simpleString())
                described[column] = (spark_type, _unit(str(schema.getType(column).toString())))
        return described

    paths = list(rows.inputFiles())
    types: dict[str, dict[str, str]] = {}
    units: dict[str, set[str]] = {}
    with ThreadPoolExecutor(_READERS) as pool:
        for path, described in zip(paths, pool.map(fields, paths), strict=True):
            for column, (type_, unit) in described.items():
                types.setdefault(column, {}).setdefault(f"{type_} {unit}".strip(), path)
                if unit:
                    units.setdefault(column, set()).add(unit)
    return Footers(types, {column: frozenset(names) for column, names in units.items()})


def _unit(text: str) -> str:
    """Return the unit of a column of timestamps from its text in a footer, UNSIGNED for integers that Spark reads as decimals, ""
    for other columns."""
    if re.match(r"\w+ int96 ", text):
        return "INT96"
    unit = re.search(r"\(TIMESTAMP\((\w+),", text)
    return unit.group(1) if unit else UNSIGNED if "(INTEGER(64,false))" in text else ""


def _reads(file_type: str, table_type: str) -> bool:
    """Return whether Spark reads a file's column of type `file_type` in a table as `table_type`, whatever the values."""
    file_type, _, unit = file_type.partition(" ")
    if file_type == table_type or table_type in _WIDER.get(file_type, ()):
        return True
    if unit == UNSIGNED:
        return False
    if kind(file_type) == kind(table_type) == "decimal":
        (digits, scale), (most_digits, same_scale) = (
            map(int, re.findall(r"\d+", text)) for text in (file_type, table_type)
        )
        return digits <= most_digits and scale == same_scale
    return kind(file_type) == kind(table_type) == "string"
