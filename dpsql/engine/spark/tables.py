"""Tables of a policy in Spark: each is a view over Parquet files or a table of the catalog, in their state at its creation.

Files are listed once for a question, and everything that it reads of a table comes from the files in that list. The schemas of
all files are merged when the view is created, so that a file that differs, or cannot be read, is noticed before anything is
charged. While the list stays the same (paths, lengths and times of change), so does the view, and no file is opened before the
question runs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dpsql.engine.faults import noted
from dpsql.engine.query import Source
from dpsql.engine.spark.literals import READABLE, kind
from dpsql.engine.spark.sessions import ended
from dpsql.errors.exceptions import Error, refuse
from dpsql.plan.intervals import Type
from dpsql.policy import Policy
from dpsql.policy.reach import is_csv, is_file

_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
"""The metadata key under which Spark records that a text was declared as char(n) or varchar(n)."""


@dataclass(frozen=True)
class _OpenedFiles:
    """The files that a view reads: their merged schema, their digest from `_files_of`, and the view."""

    schema: StructType
    listing: str
    source: Source


class Tables:
    """Sources of a policy's tables. Temporary views of `owner_session` are tables too; `session` is our own session."""

    def __init__(self, policy: Policy, owner_session: SparkSession, session: SparkSession, prefix: str) -> None:
        """`prefix`: the prefix of the names of our views, which no other engine of the application uses. Raises Fault
        source_file_beside_server."""
        for table in policy.tables:
            if is_csv(policy.table_source(table)):
                raise refuse("source_file_beside_server", table=table)
        self._policy, self._owner_session, self._session, self._prefix = policy, owner_session, session, prefix
        self._opened: dict[str, _OpenedFiles] = {}
        """Tables that are files, in their state when their footers were last read."""
        self._database = str(session.conf.get("spark.sql.globalTempDatabase"))

    def columns(self, table: str) -> dict[str, str] | None:
        """Return columns and types of a policy table's source, or None if it does not exist."""
        try:
            return _types(self._rows(table))
        except Error as error:
            if error.slug == "source_table_missing":
                return None
            raise

    def renewed(self, table: str) -> Source:
        """Return the source of a table in its present state. Raises Fault source_table_missing, source_column_missing,
        source_column_type, source_files_differ, source_table_unreadable, source_spark_ended."""
        former = self._opened.get(table)
        if former is not None and former.listing == self._listing(table, former.schema):
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
        rows.createOrReplaceGlobalTempView(_quoted(name))
        source = Source(f"{_quoted(self._database, mark=chr(34))}.{_quoted(name, mark=chr(34))}", types)
        if self._of_files(table) and (listing := _files_of(rows)) is not None:
            self._opened[table] = _OpenedFiles(rows.schema, listing, source)
        return source

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
        if isinstance(error, AnalysisException):
            return refuse("source_table_missing", table=table)
        return refuse("source_files_differ" if "CANNOT_MERGE" in str(error) else "source_table_unreadable", table=table)


def _files_of(rows: DataFrame) -> str | None:
    """Return a digest of the path, length and time of change of every file that a frame over files reads, as listed by Spark;
    None if Spark is set to read Parquet in a way that does not show them."""
    try:
        relation: Any = rows._jdf.queryExecution().analyzed().relation()
        listed = str(relation.location().allFiles().mkString("\n"))
    except Py4JError:
        return None
    return hashlib.sha256(listed.encode()).hexdigest()


def _types(rows: DataFrame) -> dict[str, str]:
    return {
        field.name: str((field.metadata or {}).get(_PADDED, field.dataType.simpleString()))
        for field in rows.schema.fields
    }


def _quoted(name: str, mark: str = "`") -> str:
    return mark + name.replace(mark, mark * 2) + mark
