"""Spark sessions: one application in a process, and our own sessions, in which every setting has the value that the generated
text assumes.

A session given in Python belongs to the owner and is not changed: we create a new one in the same application, which shares
its catalog and its executors.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from dpsql.engine.contract import SourceTable
from dpsql.engine.faults import CUSTODIAN_LOG, noted
from dpsql.engine.spark.dialect import kind
from dpsql.engine.watchdog import watchdog
from dpsql.errors.exceptions import Error, refuse

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
    """Return the application of this process, started if there is none. Raises Fault source_java, source_spark,
    source_server."""
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
    """Return the tables of the application's current catalog, from the catalog alone. Of tables of one name in several databases
    the first is taken, that of `default` if there is one. Raises Fault source_java, source_spark, source_server."""
    session, tables = checked(application(url)).newSession(), dict[str, SourceTable]()
    try:
        names = sorted(
            (database.name for database in session.catalog.listDatabases()), key=lambda name: name != _DEFAULT_DATABASE
        )
        for database in names:
            for listed in session.catalog.listTables(database):
                if listed.isTemporary or listed.name in tables:
                    continue
                table = SourceTable({}, schema=None if database == _DEFAULT_DATABASE else database)
                for column in session.table(f"`{database}`.`{listed.name.replace('`', '``')}`").schema:
                    text = column.dataType.simpleString()
                    table.columns[column.name] = _ENGINE_TYPES.get(kind(text), text.upper())
                    table.filled |= set() if column.nullable else {column.name}
                tables[listed.name] = table
    except (PySparkException, Py4JError) as error:
        noted(error)
        raise refuse("source_spark") from None
    return tables
