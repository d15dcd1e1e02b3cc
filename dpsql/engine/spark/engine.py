"""Spark as the engine: exact integer aggregation on executors, of which groups alone come back."""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from dpsql.engine.contract import ExactAnswer, PreparedViews
from dpsql.engine.dialect import Dialect
from dpsql.engine.faults import fault_of, noted
from dpsql.engine.query import EngineQuery, Identity, Source
from dpsql.engine.served_tables import ServedTables
from dpsql.engine.spark.dialect import SPARK
from dpsql.engine.spark.sessions import MOST_RESULT, TaggedJobs, application, checked, ended, pinned
from dpsql.engine.spark.stored_views import FolderViews
from dpsql.engine.spark.tables import Tables
from dpsql.engine.unprepared import NoPreparedViews
from dpsql.errors.exceptions import Error, refuse
from dpsql.plan.intervals import Type
from dpsql.policy import Policy

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
    """Plans of queries that were rehearsed and did not run yet, each for as long as somebody holds its query. Thread-safe."""

    def __init__(self) -> None:
        self._frames: dict[int, tuple[weakref.ref[EngineQuery], DataFrame]] = {}

    def __len__(self) -> int:
        return len(self._frames)

    def keep(self, query: EngineQuery, frame: DataFrame) -> None:
        """Keep the plan of this very query, which another of the same text may not have: tables may have changed between."""
        number = id(query)
        self._frames[number] = (weakref.ref(query, lambda _: self._frames.pop(number, None)), frame)

    def taken(self, query: EngineQuery) -> DataFrame | None:
        """Return the plan, which is not kept any longer; None if there is none."""
        _, frame = self._frames.pop(id(query), (None, None))
        return frame


class SparkEngine(ServedTables):
    """One Spark application; `run` may be called from any thread, each call has a tag of its own for its jobs."""

    dialect: Dialect = SPARK

    def __init__(self, policy: Policy, spark: SparkSession) -> None:
        """`spark`: the owner's session, or that of the policy's own application. Raises Fault source_server,
        source_file_beside_server."""
        super().__init__(policy)
        self._spark = checked(spark)
        self._session = pinned(spark)
        self._tables = self._new_tables()
        self._sources: dict[str, Source] = {}
        self._rehearsed = RehearsedPlans()
        self.views: PreparedViews = self._new_views()

    def _new_tables(self) -> Tables:
        return Tables(self._policy, self._spark, self._session, f"dpsql_{uuid.uuid4().hex[:12]}_")

    def _new_views(self) -> NoPreparedViews:
        """Return the views of the policy's folder. Versions of Spark and Java may write a number as other text, by which rows
        are ordered."""
        java = self._spark._jvm.System.getProperty("java.specification.version")  # type: ignore[union-attr]
        name = f"{SPARK.name} {self._spark.version}, java {java}"
        folder = self._policy.copies_folder()
        if folder is None:
            return NoPreparedViews(name)
        return NoPreparedViews(name, FolderViews(partial(pinned, self._spark), partial(self._working, None), folder))

    def under(self, policy: Policy) -> Self:
        """Return the same application for a later version of its policy, which may name other places for tables and copies."""
        other = super().under(policy)
        other._tables, other._sources = other._new_tables(), {}
        other.views = other._new_views()
        return other

    def identity(self, table: str) -> Identity | None:
        """Return the owner's name for the version of the data, the places of the table and of those on its way to the unit, and
        the application; None for temporary views, which another process has not."""
        identity = super().identity(table)
        if identity is None:
            return None
        read = (table, *(parent for _, _, parent, _ in self._policy.unit_joins(table)))
        return None if any(self._tables.is_temporary(self._policy.table_source(name)) for name in read) else identity

    def _readers(self) -> tuple[str, ...]:
        """Return the master: another one may have another catalog."""
        return (str(self._spark.sparkContext.master),)

    # --- structure ----------------------------------------------------------------------------------------------------

    def columns(self, table: str) -> dict[str, str] | None:
        """Return columns and types of a policy table's source, None where there is none."""
        with self._working(None):
            return self._tables.columns(table)

    def source(self, table: str, total: bool = False) -> Source:
        """Our view over a table and its column types, as they were at the last `check_readable`."""
        with self._lock:
            if table in self._sources:
                return self._sources[table]
        self.check_readable((table,))
        with self._lock:
            return self._sources[table]

    def check_readable(self, tables: tuple[str, ...]) -> None:
        """List the files of tables (and of those on their way to the unit) anew, and check that they have the policy's
        columns in supported types. Reads footers, no rows. Raises Fault."""
        read = {name for table in tables for name in (table, *(hop[2] for hop in self._policy.unit_joins(table)))}
        with self._working(None), self._lock:
            for name in sorted(read):
                self._sources[name] = self._tables.renewed(name)

    def rehearse(self, query: EngineQuery) -> None:
        """Let Spark plan a query: it refuses wrong types and computes constants, and reads no row. The plan is kept for `run`.
        Raises Fault engine_cannot_run, source_spark_ended."""
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

    def advice(self) -> tuple[str, ...]:
        """Places of the application where others may read generated queries, and bounds that make questions refused."""
        context = self._spark.sparkContext.getConf()
        defaults = {"spark.ui.enabled": "true", "spark.eventLog.enabled": "false"}
        exposed = (text for name, text in _EXPOSED.items() if context.get(name, defaults[name]) == "true")
        most = context.get(MOST_RESULT, "1g")
        bounded = () if str(most).rstrip("bkmgtpBKMGTP") == "0" else (_BOUNDED.format(most=most),)
        return *exposed, *bounded, *_clipped(self._policy)

    # --- work ---------------------------------------------------------------------------------------------------------

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        """Run one aggregation, as it was rehearsed. Spark's error texts may quote data, so they are replaced by one fixed
        text."""
        with self._working(timeout_seconds):
            frame = self._rehearsed.taken(query)
            if frame is None:
                frame = self._frame(query.sql, query.released)
            return ExactAnswer(_in_our_types(frame.toArrow()))

    def public_domains(self, table: str, most: int) -> dict[str, tuple[Any, ...]]:
        """Return values of the columns of a public table that have few of them, NULL (last) among them."""
        domains = {}
        for column, value in self._values(table, without=("real", "timestamp")).items():
            listed = (
                f"SELECT DISTINCT {value} AS v FROM {self.source(table).sql} ORDER BY v NULLS LAST LIMIT {most + 1}"
            )
            values = self._table(listed).column(0).to_pylist()
            if len(values) <= most:
                domains[column] = tuple(values)
        return domains

    def public_rows(self, table: str, most: int) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]] | None:
        """Return names of the columns and all rows of a public table with few rows."""
        values = self._values(table)
        items = ", ".join(f"{value} AS {self.dialect.identifier(name)}" for name, value in values.items())
        rows = self._table(f"SELECT {items} FROM {self.source(table).sql} LIMIT {most + 1}")
        if rows.num_rows > most:
            return None
        return tuple(values), tuple(zip(*(column.to_pylist() for column in rows.columns), strict=True))

    def _values(self, table: str, without: tuple[str, ...] = ()) -> dict[str, str]:
        """Return columns of a table as text, in the types of the policy."""
        source, text = self.source(table), self.dialect
        return {
            column.name: text.cast_column(text.identifier(column.name), Type(column.type), source.types[column.name])
            for column in self._policy.tables[table].columns.values()
            if column.type not in without
        }

    def exact_rows(self, sql: str) -> Any:
        """Return rows of a generated query over protected tables, for the owner's eyes."""
        return self._table(sql)

    def _table(self, sql: str) -> pa.Table:
        with self._working(None):
            return _in_our_types(self._frame(sql, {}).toArrow())

    def _frame(self, sql: str, released: Mapping[str, pa.Table]) -> DataFrame:
        """Return a planned query. All that it reads of a table comes from one listing: no view is renewed meanwhile."""
        session = pinned(self._spark) if released else self._session
        for name, rows in released.items():
            session.createDataFrame(_with_zones(rows)).createOrReplaceTempView(f"`{name}`")
        with self._lock:
            # A session runs a statement at once that is more than a query; between brackets it is a syntax error.
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
        """Cancel every running query of this engine."""
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
    """Yield a sentence for each bound of the policy that clips."""
    for name, table in policy.tables.items():
        counted = [f"max_count of table {name}"] if table.bounds.max_count is not None else []
        summed = [f"max_total of {name}.{c.name}" for c in table.columns.values() if c.max_total is not None]
        for bound in (*counted, *summed):
            yield f"{bound}: sums that are clipped are refused on Spark; leave it out of the policy"


def _in_our_types(table: pa.Table) -> pa.Table:
    """Integers of 64 bits or of 38 digits, and timestamps without a zone (they are in UTC)."""
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
    """Timestamps in UTC, which is what TIMESTAMP means to Spark."""
    zoned = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(zoned))


_OF_QUESTIONS = ("CANCELLED", "AnalysisException", "ParseException", "Py4JError")
_PASSING = ("cancelled", "ExecutorLostFailure")
"""In the text of an error that the data did not cause: a cancelled job, and an executor that ended (killed, or out of memory)."""


def _fault(error: Exception) -> Error:
    """Return the one fixed text for an error of Spark, or that of an application that has ended. Another question need not meet
    errors of analysis, a cancelled job, or the loss of an executor."""
    if (fault := ended(error)) is not None:
        return fault
    of_question = not isinstance(error, (PySparkException, Py4JError)) or type(error).__name__ in _OF_QUESTIONS
    return fault_of(error, of_source=not of_question and not any(word in str(error) for word in _PASSING))


def open_spark(policy: Policy, source: Any = None) -> SparkEngine:
    """Return the engine for a policy whose source is spark://..., or over a given SparkSession. Raises Fault."""
    return SparkEngine(policy, application(policy.source or "") if source is None else source)
