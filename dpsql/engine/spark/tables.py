"""Tables of a policy in Spark: each is a view over Parquet files or a table of the catalog, in their state at its creation.

Files are listed once for a question, and everything that it reads of a table comes from the files in that list. The schemas of
all files are merged when the view is created, so that a file that differs, or cannot be read, is noticed before anything is
charged. While the list stays the same (paths, lengths and times of change), so does the view, and no file is opened before the
question runs.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.types import LongType, StructField, StructType

from dpsql.engine.contract import CUSTODIAN_LOG, Doubt, SourceTable, noted, tables_of_schemas
from dpsql.engine.fair_queue import watchdog
from dpsql.engine.query import Source, read_by
from dpsql.engine.spark.dialect import READABLE, kind
from dpsql.errors.exceptions import Error, refuse
from dpsql.plan.intervals import Type
from dpsql.policy import Policy
from dpsql.policy.reach import is_csv, is_file
from dpsql.storage.records import dataclass

# --- spark sessions ---------------------------------------------------------------------------------------------------
# One application in a process, and our own sessions, in which every setting has the value that the generated text
# assumes.
#
# A session given in Python belongs to the owner and is not changed: we create a new one in the same application, which
# shares its catalog and its executors.

LEAST_VERSION = (4, 0)
MEANINGS = {
    # how a text is read: names are between double quotes, and no ${...} is replaced by a setting or by the environment
    "spark.sql.ansi.enabled": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enforceReservedKeywords": "false", "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.variable.substitute": "false", "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false", "spark.sql.caseSensitive": "true",
    "spark.sql.groupByAliases": "false", "spark.sql.groupByOrdinal": "false", "spark.sql.orderByOrdinal": "false",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "false",
    # casts, arithmetic and types
    "spark.sql.session.timeZone": "UTC", "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true", "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # contents of files: old calendars do not raise, and nothing is left out silently
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED", "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # and Spark's row reader, which raises at decimals of which its column reader takes the integer, is not used
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.binaryAsString": "false", "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.files.ignoreCorruptFiles": "false", "spark.sql.files.ignoreMissingFiles": "false",
    # how answers come back: in pieces of this many groups, whose memory belongs to the answer itself
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000", "spark.sql.execution.arrow.pyspark.selfDestruct.enabled": "false",
}  # fmt: skip
"""Every setting of Spark 4 on which the rows of a generated query or their transfer depend; in addition, settings named legacy
are unset."""
_OWN_APPLICATION = {
    # The pages of the application and its progress bar show generated texts, including the secret of the order of rows.
    "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF",
}  # fmt: skip
MOST_RESULT = "spark.driver.maxResultSize"
"""Spark's bound on the bytes of an answer; 0: no bound."""
_STARTING = threading.Lock()
_SERVER = "spark://"
_OTHER_MASTERS = ("local", "yarn", "k8s://")


def master_of(source: str) -> str:
    """Return Spark's name of the master in a source: spark://host:7077 is such a name itself, spark://local[4] means local[4]."""
    master = source.removeprefix(_SERVER)
    return master if master.startswith(_OTHER_MASTERS) else source


def application(source: str) -> SparkSession:
    """Return this process's application, started if there is none. Raises Fault source_java, source_spark, source_server."""
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():  # in this case Spark looks nowhere else
        raise refuse("source_java", where="in the folder that JAVA_HOME names")
    if not home and shutil.which("java") is None:
        raise refuse("source_java", where="on the PATH, and JAVA_HOME is not set")
    with _STARTING:
        spark = SparkSession.builder.getOrCreate() if SparkContext._active_spark_context else _started(source)
    if spark.sparkContext.master != master_of(source):
        raise refuse("source_server", what="this process already runs a Spark application with another master")
    return spark


def _started(source: str) -> SparkSession:
    """Return the session of a new application. Java's output while it starts does not reach the standard error of the
    process; if the start fails, it goes to the custodian's log. Raises Fault source_spark."""
    settings = SparkConf().setMaster(master_of(source)).setAppName("dpsql").setAll(list(_OWN_APPLICATION.items()))
    with tempfile.TemporaryFile() as printed:
        try:
            # If the process had an earlier application, its Java is still running.
            gateway: Any = SparkContext._gateway or launch_gateway(settings, {"stderr": printed})  # type: ignore[no-untyped-call]
            # An answer beyond the bound would fail after the charge. Java passes answers on in pieces, and holds early ones.
            if not gateway.jvm.org.apache.spark.SparkConf().contains(MOST_RESULT):
                settings.set(MOST_RESULT, "0")
            return SparkSession(SparkContext(conf=settings, gateway=gateway))
        except Exception as error:  # the gateway, the launcher and the master each raise different errors
            printed.seek(0)
            CUSTODIAN_LOG.error("Spark at %s: %s\n%s", source, error, printed.read().decode(errors="replace"))
            raise refuse("source_spark") from None


def checked(spark: SparkSession) -> SparkSession:
    """Return the session if it can run generated texts. Raises Fault source_server if not."""
    if not hasattr(spark, "_jsparkSession"):
        raise refuse("source_server", what="a session of Spark Connect; dpsql needs one that runs in its own process")
    if tuple(int(part) for part in spark.version.split(".")[:2]) < LEAST_VERSION:
        raise refuse("source_server", what=f"Spark {spark.version}, and 4.0 or later is needed")
    return spark


def pinned(spark: SparkSession) -> SparkSession:
    """Return a new session of the same application, with the settings above."""
    session = spark.newSession()
    for name in session.conf.getAll:
        if name.startswith("spark.sql.legacy."):
            session.conf.unset(name)
    for name, value in MEANINGS.items():
        session.conf.set(name, value)
    return session


def ended(error: Exception) -> Error | None:
    """Return the fault for an application that has ended and that no question can restart; None for errors of a running one."""
    if isinstance(error, (Py4JNetworkError, ConnectionError)) or "stopped SparkContext" in str(error):
        noted(error)
        return refuse("source_spark_ended")
    return None


class TaggedJobs:
    """A running statement, whose jobs carry a tag by which they can be cancelled."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self.tag = f"dpsql-{uuid.uuid4().hex}"

    def interrupt(self) -> None:
        """Cancel the running jobs."""
        self._context.cancelJobsWithTag(self.tag)

    @contextmanager
    def running(self, timeout_seconds: float | None) -> Iterator[None]:
        """Tag every job of this thread while the context is open, and cancel jobs that run past `timeout_seconds`."""
        self._context.addJobTag(self.tag)
        if timeout_seconds:
            watchdog().enter(self, timeout_seconds)
        _QUIET.active = True
        try:
            yield
        finally:
            _QUIET.active = False
            if timeout_seconds:
                watchdog().leave(self)
            self._context.removeJobTag(self.tag)


class _Quiet(threading.local):
    """Whether this thread runs a statement of ours."""

    active = False


_QUIET = _Quiet()
# PySpark writes the text of errors, which may quote data, to the standard error of the process.
PySparkLogger.getLogger("SQLQueryContextLogger").addFilter(lambda record: not _QUIET.active)


# --- the structure of its catalog, for a new policy -------------------------------------------------------------------

_ENGINE_TYPES = {
    "int": "INTEGER",
    "string": "VARCHAR",
    "char": "VARCHAR",
    "varchar": "VARCHAR",
    "timestamp_ntz": "TIMESTAMP",
}
"""The names in a `SourceTable` of Spark's types, where they differ by more than case."""
_DEFAULT_DATABASE = "default"


def structure_of_catalog(url: str) -> dict[str, SourceTable]:
    """Return the tables of the application's current catalog, from the catalog alone. Raises Fault source_java, source_spark,
    source_server."""
    session = checked(application(url)).newSession()
    try:
        tables = (
            (database.name, listed.name)
            for database in session.catalog.listDatabases()
            for listed in session.catalog.listTables(database.name)
            if not listed.isTemporary
        )
        named = tables_of_schemas(tables, _DEFAULT_DATABASE)
        for (database, name), (_, table) in named.items():
            for column in session.table(f"`{database}`.`{name.replace('`', '``')}`").schema:
                text = column.dataType.simpleString()
                table.columns[column.name] = _ENGINE_TYPES.get(kind(text), text.upper())
                table.filled |= set() if column.nullable else {column.name}
    except (PySparkException, Py4JError) as error:
        noted(error)
        raise refuse("source_spark") from None
    return dict(named.values())


# --- tables of a policy in Spark --------------------------------------------------------------------------------------

# What the footers of Parquet files say about columns that Spark reads: the types of each file, and the unit of timestamps.
# Spark reads each file in one schema, that of the table. A file whose column has another type fails when it is read, after the
# charge; so the types of all files are compared first. Spark also turns timestamps of milliseconds into microseconds and raises
# if they do not fit into 64 bits; `in_milliseconds` finds the columns that must be read as integers for that reason.

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
    """Return the unit of a column of timestamps from a footer, UNSIGNED for integers that Spark reads as decimals, else ""."""
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


# Tables of a policy in Spark: each is a view over Parquet files or a table of the catalog, in their state at its creation

_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
"""The metadata key under which Spark records that a text was declared as char(n) or varchar(n)."""
_NOT_READ = ("PARQUET_", "UNSUPPORTED_")
"""Prefixes of Spark's conditions for files with a column of a type that it does not know."""
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class _OpenedFiles:
    """The files that a view reads: their merged schema, their digest from `_files_of`, the view, and the columns that hold
    timestamps of milliseconds."""

    schema: StructType
    listing: str
    source: Source
    milliseconds: frozenset[str]


class Tables:
    """Sources of a policy's tables. Temporary views of `owner_session` are tables too; `session` is our own session."""

    def __init__(self, policy: Policy, owner_session: SparkSession, session: SparkSession, prefix: str) -> None:
        """`prefix`: of the names of our views, unique in the application. Raises Fault source_file_beside_server."""
        for table in policy.tables:
            if is_csv(policy.table_source(table)):
                raise refuse("source_file_beside_server", table=table)
        self._policy, self._owner_session, self._session, self._prefix = policy, owner_session, session, prefix
        self._opened: dict[str, _OpenedFiles] = {}
        """Tables over Parquet files, in their state when their footers were last read."""
        self._database = str(session.conf.get("spark.sql.globalTempDatabase"))

    def columns(self, table: str) -> dict[str, str] | None:
        try:
            return _types(self._rows(table))
        except Error as error:
            if error.slug == "source_table_missing":
                return None
            raise

    def renewed(self, table: str) -> Source:
        """Return the source of a table in its present state. Raises Fault source_table_missing, source_column_missing,
        source_column_type, source_files_differ, source_table_unreadable, source_spark_ended."""
        former, of_files = self._opened.get(table), self._of_files(table)
        if former is not None and of_files and former.listing == self._listing(table, former.schema):
            return former.source
        rows = self._rows(table)
        types = _types(rows)
        for column in self._policy.tables[table].columns.values():
            if column.name not in types:
                raise refuse("source_column_missing", table=table, column=column.name)
            engine_type = types[column.name]
            if kind(engine_type) not in READABLE[Type(column.type)]:
                raise refuse(
                    "source_column_type", table=table, column=column.name, given=engine_type, wanted=column.type
                )
        name = f"{self._prefix}{table}"
        self._opened.pop(table, None)
        listing = _files_of(rows)
        if former is not None and listing is not None and (former.listing, former.schema) == (listing, rows.schema):
            milliseconds = former.milliseconds
        else:
            milliseconds = self._checked_footers(table, rows)
        view = self._read_as_integers(table, rows.schema, milliseconds) if of_files and milliseconds else rows
        view.createOrReplaceGlobalTempView(_quoted(name))
        types |= dict.fromkeys(milliseconds if of_files else (), "timestamp")
        for column in self._policy.tables[table].columns.values():
            if types[column.name] == "timestamp":
                types[column.name] = read_by("timestamp", column.timezone)
                self._check_zone(table, column.timezone)
        source = Source(f"{_quoted(self._database, mark=chr(34))}.{_quoted(name, mark=chr(34))}", types)
        if listing is not None:
            self._opened[table] = _OpenedFiles(rows.schema, listing, source, milliseconds)
        return source

    def _check_zone(self, table: str, zone: str | None) -> None:
        """Check that Java knows a zone. Raises Fault source_zone."""
        session: Any = self._session
        if zone is not None and zone not in session._jvm.java.time.ZoneId.getAvailableZoneIds():
            raise refuse("source_zone", zone=zone, engine="Spark", table=table)

    def _checked_footers(self, table: str, rows: DataFrame) -> frozenset[str]:
        """Return the policy's columns of a table that its Parquet files hold as timestamps of milliseconds; none if the table is
        something else than Parquet files. Raises Fault source_files_differ, source_table_unreadable."""
        of_files = self._of_files(table)
        if not of_files and parquet_files(rows) is None:
            return frozenset()
        types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
        read = [c.name for c in self._policy.tables[table].columns.values()]
        if of_files:  # when their schemas were merged, all types were found equal but these
            read = [name for name in read if kind(types[name]) in ("timestamp", "timestamp_ntz", "decimal")]
        if not read:
            return frozenset()
        try:
            footers = footers_of(rows, read)
        except (PySparkException, Py4JError, ConnectionError) as error:
            raise self._fault(table, error) from None
        column = footers.differing(types) or (footers.mixed() if of_files else None)
        if column is not None:
            CUSTODIAN_LOG.error("table %s, column %s: types of files %s", table, column, dict(footers.types[column]))
            raise refuse("source_files_differ", table=table, what=f"the type of column {column}")
        return footers.in_milliseconds()

    def _read_as_integers(self, table: str, schema: StructType, milliseconds: frozenset[str]) -> DataFrame:
        """Return the rows of a table of files whose columns `milliseconds` are read as integers, and then as timestamps if they
        are within the calendar, because Spark raises at timestamps that microseconds cannot express."""
        fields = [StructField(f.name, LongType()) if f.name in milliseconds else f for f in schema.fields]
        rows = self._session.read.schema(StructType(fields)).parquet(self._policy.table_source(table))
        first, last = (round((end - _EPOCH) / timedelta(milliseconds=1)) for end in (datetime.min, datetime.max))
        columns = []
        for field in schema.fields:
            name = _quoted(field.name)
            time = f"CASE WHEN {name} BETWEEN {first}L AND {last - 1}L THEN timestamp_millis({name}) END AS {name}"
            columns.append(expr(time if field.name in milliseconds else name))
        return rows.select(*columns)

    def local_files(self, table: str) -> tuple[Path, ...]:
        """Return the files of a table that the policy names by its files, if the driver's machine has them all."""
        if not self._of_files(table):
            return ()
        urls = [urlsplit(url) for url in self._rows(table).inputFiles()]
        local = all(url.scheme in ("", "file") and Path(unquote(url.path)).is_file() for url in urls)
        return tuple(sorted(Path(unquote(url.path)) for url in urls)) if local else ()

    def doubts(self, table: str) -> tuple[Doubt, ...]:
        """Return what of a table may fail at a value, in its state at the last `renewed`."""
        opened = self._opened.get(table)
        if opened is None:
            return (Doubt("", "is a view, or a table in another format than Parquet"),)
        doubts = [
            Doubt(
                column,
                "is a decimal of more than 18 digits: Spark raises at one that has more digits than its file declares",
            )
            for column in self._policy.tables[table].columns
            if kind(opened.source.types[column]) == "decimal"
            and int(opened.source.types[column][8:].split(",")[0]) > 18
        ]
        if not self._of_files(table):
            doubts += [
                Doubt(
                    column,
                    "is in milliseconds: Spark raises beyond 64 bits of microseconds, unless the policy names the files",
                )
                for column in sorted(opened.milliseconds)
            ]
        return tuple(doubts)

    def _of_files(self, table: str) -> bool:
        source = self._policy.table_source(table)
        return is_file(source) or "://" in source

    def _listing(self, table: str, schema: StructType) -> str | None:
        """Return the digest from `_files_of` for the present files, without opening any; None if they cannot be listed, in which
        case reading them raises the reason."""
        try:
            return _files_of(self._session.read.schema(schema).parquet(self._policy.table_source(table)))
        except (PySparkException, Py4JError):
            return None

    def forget(self) -> None:
        """Drop the views of this engine's tables."""
        for table in self._policy.tables:
            self._session.catalog.dropGlobalTempView(f"{self._prefix}{table}")

    def _rows(self, table: str) -> DataFrame:
        source = self._policy.table_source(table)
        try:
            if self._of_files(table):
                return self._session.read.option("mergeSchema", "true").parquet(source)
            name = ".".join(map(_quoted, source.split(".")))
            return (self._owner_session if self._is_local(source) else self._session).table(name)
        except (PySparkException, Py4JError, ConnectionError) as error:
            raise self._fault(table, error) from None

    def is_temporary(self, source: str) -> bool:
        """Return whether a table is a temporary view, of a session or of the application."""
        return (
            not is_file(source)
            and "://" not in source
            and (self._is_local(source) or source.lower().startswith(f"{self._database.lower()}."))
        )

    def _is_local(self, name: str) -> bool:
        catalog: Any = self._owner_session._jsparkSession.sessionState().catalog()
        return "." not in name and bool(catalog.getTempView(name).isDefined())

    def _fault(self, table: str, error: Exception) -> Error:
        if (fault := ended(error)) is not None:
            return fault
        noted(error)
        if isinstance(error, AnalysisException) and not str(error.getCondition()).startswith(_NOT_READ):
            return refuse("source_table_missing", table=table)
        if "CANNOT_MERGE" in str(error):
            return refuse("source_files_differ", table=table, what="the types of columns")
        return refuse("source_table_unreadable", table=table)


def _files_of(rows: DataFrame) -> str | None:
    """Return a digest of the path, length and time of change of every file that a frame over files reads, as listed by Spark; of
    the paths alone for partitions of a catalog, whose files are not replaced; None if the frame is no list of Parquet files."""
    try:
        relation = parquet_files(rows)
        if relation is None:
            return None
        try:
            listed = str(relation.location().allFiles().mkString("\n"))
        except Py4JError:
            listed = "\n".join(sorted(rows.inputFiles()))
    except (PySparkException, Py4JError):
        return None
    return hashlib.sha256(listed.encode()).hexdigest()


def _types(rows: DataFrame) -> dict[str, str]:
    return {
        field.name: str((field.metadata or {}).get(_PADDED, field.dataType.simpleString()))
        for field in rows.schema.fields
    }


def _quoted(name: str, mark: str = "`") -> str:
    return mark + name.replace(mark, mark * 2) + mark
