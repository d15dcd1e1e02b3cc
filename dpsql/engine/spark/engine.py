"""Spark as the engine: exact integer aggregation on executors, which return only groups."""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dpsql.engine.contract import Doubt, ExactAnswer, PreparedViews, fault_of, noted
from dpsql.engine.dialect import Dialect
from dpsql.engine.query import EngineQuery, Identity
from dpsql.engine.served_tables import ServedTables
from dpsql.engine.spark.dialect import SPARK
from dpsql.engine.spark.stored_views import FolderViews
from dpsql.engine.spark.tables import MOST_RESULT, Tables, TaggedJobs, application, checked, ended, pinned
from dpsql.errors.exceptions import Error, refuse
from dpsql.policy import Policy
from dpsql.storage.records import replace

_EXPOSED = {
    "spark.ui.enabled": "the web page of the Spark application shows generated queries: switch it off (spark.ui.enabled), or "
    "let nobody but the owner reach it",
    "spark.eventLog.enabled": "the event log of the Spark application holds generated queries: let nobody but the owner read it",
}  # fmt: skip

_BOUNDED = (
    "an answer of more than {most} fails after it was charged (spark.driver.maxResultSize): set it to 0, which is what an "
    "application has that dpsql starts"
)


class RehearsedPlans:
    """Plans of queries that were rehearsed but have not run yet; each is kept as long as its query object lives. Thread-safe."""

    def __init__(self) -> None:
        self._frames: dict[int, tuple[weakref.ref[EngineQuery], DataFrame]] = {}

    def __len__(self) -> int:
        return len(self._frames)

    def keep(self, query: EngineQuery, frame: DataFrame) -> None:
        """Keep the plan of exactly this query object: another query with the same text needs a new one, as tables may change."""
        number = id(query)
        self._frames[number] = (weakref.ref(query, lambda _: self._frames.pop(number, None)), frame)

    def taken(self, query: EngineQuery) -> DataFrame | None:
        """Remove and return the plan; None if there is none."""
        _, frame = self._frames.pop(id(query), (None, None))
        return frame


class SparkEngine(ServedTables):
    """One Spark application; `run` may be called from any thread, and each call has its own tag for its jobs."""

    dialect: Dialect = SPARK

    def __init__(self, policy: Policy, spark: SparkSession) -> None:
        """`spark`: the owner's session, or the policy's application. Raises Fault source_server, source_file_beside_server."""
        super().__init__(policy)
        self._spark = checked(spark)
        self._session = pinned(spark)
        self._tables = self._new_tables()
        self._rehearsed = RehearsedPlans()
        self.views: PreparedViews = self._new_views()

    def _new_tables(self) -> Tables:
        return Tables(self._policy, self._spark, self._session, f"dpsql_{uuid.uuid4().hex[:12]}_")

    def _new_views(self) -> PreparedViews:
        """Return the views in the policy's folder. Their engine name includes the versions of Spark and Java, because these may
        write a number as a different text, and rows are ordered by texts."""
        java = self._spark._jvm.System.getProperty("java.specification.version")  # type: ignore[union-attr]
        name = f"{SPARK.name} {self._spark.version}, java {java}"
        folder = self._policy.copies_folder()
        if folder is None:
            return PreparedViews(name)
        stored = FolderViews(partial(pinned, self._spark), partial(self._working, None), folder)
        return PreparedViews(name, stored=stored)

    def under(self, policy: Policy) -> Self:
        other = super().under(policy)
        other._tables, other._sources = other._new_tables(), {}
        other.views = other._new_views()
        return other

    def identity(self, table: str) -> Identity | None:
        """Return the owner's name for the version of the data, the places of the table and of the tables on its path to the unit,
        and the application; None for temporary views, which other processes do not have."""
        identity = super().identity(table)
        if identity is None:
            return None
        read = (table, *(parent for _, _, parent, _ in self._policy.unit_joins(table)))
        return None if any(self._tables.is_temporary(self._policy.table_source(name)) for name in read) else identity

    def _readers(self) -> tuple[str, ...]:
        """Return the master, because another master may have another catalog."""
        return (str(self._spark.sparkContext.master),)

    # --- structure ----------------------------------------------------------------------------------------------------

    def columns(self, table: str) -> dict[str, str] | None:
        with self._working(None):
            return self._tables.columns(table)

    def check_readable(self, tables: tuple[str, ...]) -> None:
        """List the files of tables (and of the tables on their paths to the unit) again, and check that they have the policy's
        columns in supported types. Reads footers, no rows. Raises Fault."""
        read = {name for table in tables for name in (table, *(hop[2] for hop in self._policy.unit_joins(table)))}
        with self._working(None), self._lock:
            for name in sorted(read):
                self._sources[name] = self._tables.renewed(name)

    def rehearse(self, query: EngineQuery) -> None:
        """Let Spark plan a query, which rejects wrong types and computes constants, but reads no row. The plan is kept for
        `run`. Raises Fault engine_cannot_run, source_spark_ended."""
        try:
            with self._tagged(None):
                frame = self._frame(query.sql, query.released)
                frame._jdf.queryExecution().executedPlan()
                self._rehearsed.keep(query, frame)
        except Error:
            raise
        except Exception as error:  # of Spark's analysis, of its optimiser, of Java
            if (fault := ended(error)) is not None:
                raise fault from None
            raise refuse("engine_cannot_run", engine=self.dialect.title, incident=noted(error)) from None

    def doubts(self, table: str) -> tuple[Doubt, ...]:
        self.check_readable((table,))
        return self._tables.doubts(table)

    def files(self, table: str) -> tuple[Path, ...]:
        with self._working(None):
            return self._tables.local_files(table)

    def of_files(self, files: Mapping[str, Sequence[Path]]) -> Self:  # type: ignore[override]
        """Return the same application with the tables of `files` reduced to one of their files each."""
        tables = {name: replace(self._policy.tables[name], source=paths[0].as_uri()) for name, paths in files.items()}
        return self.under(replace(self._policy, tables={**self._policy.tables, **tables}))

    def advice(self) -> tuple[str, ...]:
        """Return advice on places where others may read generated queries, and on settings that make questions fail."""
        context = self._spark.sparkContext.getConf()
        defaults = {"spark.ui.enabled": "true", "spark.eventLog.enabled": "false"}
        exposed = (text for name, text in _EXPOSED.items() if context.get(name, defaults[name]) == "true")
        most = context.get(MOST_RESULT, "1g")
        bounded = () if str(most).rstrip("bkmgtpBKMGTP") == "0" else (_BOUNDED.format(most=most),)
        return *exposed, *bounded, *_clipped(self._policy)

    # --- work ---------------------------------------------------------------------------------------------------------

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        """Run one aggregation by its rehearsed plan, if it has one. Spark's error texts may quote data, so one fixed text
        replaces them."""
        with self._working(timeout_seconds):
            frame = self._rehearsed.taken(query)
            if frame is None:
                frame = self._frame(query.sql, query.released)
            return ExactAnswer(_in_our_types(frame.toArrow()))

    def exact_rows(self, sql: str) -> Any:
        return self._table(sql)

    def _fetched(self, *queries: str) -> list[list[tuple[Any, ...]]]:
        tables = map(self._table, queries)
        return [list(zip(*(column.to_pylist() for column in table.columns), strict=True)) for table in tables]

    def _table(self, sql: str) -> pa.Table:
        with self._working(None):
            return _in_our_types(self._frame(sql, {}).toArrow())

    def _frame(self, sql: str, released: Mapping[str, pa.Table]) -> DataFrame:
        """Return a planned query. Everything that it reads of a table comes from one listing, as no view is renewed meanwhile."""
        session = pinned(self._spark) if released else self._session
        for name, rows in released.items():
            session.createDataFrame(_with_zones(rows)).createOrReplaceTempView(f"`{name}`")
        with self._lock:
            # A session executes statements other than queries at once; in parentheses they are syntax errors.
            return session.sql(f"SELECT * FROM ({sql})")

    @contextmanager
    def _tagged(self, timeout_seconds: float | None) -> Iterator[None]:
        jobs = TaggedJobs(self._spark)
        with self._lock:
            self._running.add(jobs)
        try:
            with jobs.running(timeout_seconds):
                yield
        finally:
            with self._lock:
                self._running.discard(jobs)

    @contextmanager
    def _working(self, timeout_seconds: float | None) -> Iterator[None]:
        try:
            with self._tagged(timeout_seconds):
                yield
        except Error:
            raise
        except Exception as error:
            raise _fault(error) from None

    def interrupt(self) -> None:
        with self._lock:
            running = tuple(self._running)
        for jobs in running:
            jobs.interrupt()

    def _disconnect(self) -> None:
        """Drop our views. The application lives as long as the process."""
        with self._working(None):
            self._tables.forget()
            if isinstance(self.views.stored, FolderViews):
                self.views.stored.forget()


def _clipped(policy: Policy) -> Iterator[str]:
    """Yield a sentence for each bound of the policy that requires clipping."""
    for name, table in policy.tables.items():
        counted = [f"max_count of table {name}"] if table.bounds.max_count is not None else []
        summed = [f"max_total of {name}.{c.name}" for c in table.columns.values() if c.max_total is not None]
        for bound in (*counted, *summed):
            yield f"{bound}: sums that are clipped are refused on Spark; leave it out of the policy"


def _in_our_types(table: pa.Table) -> pa.Table:
    """Return a table with integers of 64 bits or of 38 digits, and timestamps without a zone (they are in UTC)."""
    fields = []
    for field in table.schema:
        type_ = field.type
        if pa.types.is_integer(type_):
            type_ = pa.int64()
        elif pa.types.is_decimal(type_):
            type_ = pa.decimal128(38, 0)
        elif pa.types.is_timestamp(type_):
            type_ = pa.timestamp("us")
        fields.append(pa.field(field.name, type_))
    return table.cast(pa.schema(fields))


def _with_zones(table: pa.Table) -> pa.Table:
    """Return a table with timestamps in UTC, the meaning of TIMESTAMP in Spark."""
    zoned = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(zoned))


_OF_SOURCES = ("FAILED_READ_FILE", "ParquetDecodingException", "FileNotFoundException", "java.io.IOException")
"""Words in errors of reading files, which another question over the same data would meet too. Other errors belong to the
question: of its analysis, of a value at which a view fails, of a cancelled job."""
_PASSING = ("cancelled", "ExecutorLostFailure", "ArithmeticException", "NUMERIC_VALUE_OUT_OF_RANGE")
"""Words in errors that another question may not meet: a cancelled job, an executor that ended (killed, or out of memory), and a
value of a file that Spark does not represent."""


def _fault(error: Exception) -> Error:
    """Return the fault with a fixed text for an error of Spark, or the fault for an application that has ended."""
    if (fault := ended(error)) is not None:
        return fault
    text = str(error)
    of_source = any(word in text for word in _OF_SOURCES) and not any(word in text for word in _PASSING)
    return fault_of(error, of_source=of_source and isinstance(error, (PySparkException, Py4JError)))


def open_spark(policy: Policy, source: Any = None) -> SparkEngine:
    """Return the engine for a policy whose source is spark://..., or for a given SparkSession. Raises Fault."""
    return SparkEngine(policy, application(policy.source or "") if source is None else source)
