"""Prepared bounded views as folders of Parquet files, in a folder that the owner names for them.

A copy `NAME` is a folder `NAME-ID` of files, and beside it a small file `NAME.copy` that contains ID. Files are written into a
folder with a new ID, and the small file after all of them: it is written under another name and renamed, if the file system
renames atomically, and appears whole on object stores. So a question finds a whole copy or none, `kill -9` at any moment leaves
only files that no question reads, and no file of a copy is ever written twice: what was read from a folder can be read again.

While a folder is written there is a third entry, the mark `NAME-ID.writing`, which the writer removes at the end. A mark that is
older than a day belongs to a preparation that was killed: the next preparation removes the mark, then deletes the folder unless
the small file names it. A writer checks its mark before and after it publishes the copy, and withdraws the copy if the mark is
gone. So a writer that still runs after a day fails, and no copy remains whose files another preparation deletes.

The rows of a unit are in one file, ordered by its key, as the windows leave them. Hashes are computed only for units that have
too many rows: hashing every row, and sorting by the hash, took longer than everything else. Units are counted by their keys,
because one executor would have to see all units to number them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from pyspark.sql import SparkSession

from dpsql.engine.emit.bounded_view import BoundedView
from dpsql.engine.query import UNIT_ID
from dpsql.errors.exceptions import Error, refuse
from dpsql.plan.plan import UNIT

_ENDING = ".copy"
_MARK = ".writing"
ABANDONED_SECONDS = 86_400.0
"""Age of a mark from which its preparation counts as killed."""
_WRITING = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS", "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false", "spark.sql.files.maxRecordsPerFile": "0",
}  # fmt: skip
"""Settings under which the values read from a file are the values that were written."""
_NO_OTHERS = 0o700
Working = Callable[[], AbstractContextManager[None]]


class FolderViews:
    """The stored views in one folder of any file system that Spark reads. Thread-safe."""

    def __init__(self, new_session: Callable[[], SparkSession], working: Working, folder: str) -> None:
        """`new_session` returns one of our sessions; `working` returns a context in which it may be used, and which turns errors
        into faults. `folder`: path or URL."""
        self._new_session, self._working, self._folder = new_session, working, folder
        self._session = new_session()
        self._prefix = f"dpsql_{uuid.uuid4().hex[:12]}_"

    def place(self, name: str) -> str | None:
        """Return the name of a view over the files, or None if there is no copy. Raises Fault."""
        with self._working():
            identifier = self._identifier(name)
            if identifier is None:
                return None
            view, database = f"{self._prefix}{identifier}", self._session.conf.get("spark.sql.globalTempDatabase")
            catalog: Any = self._session._jsparkSession.sessionState().catalog()
            if not catalog.getGlobalTempView(view).isDefined():
                rows = self._session.read.parquet(self._path(f"{name}-{identifier}"))
                rows.createOrReplaceGlobalTempView(view)
        return f'"{database}"."{view}"'

    def write(self, view: BoundedView, key: str, name: str, progress: Callable[[str, float], None]) -> None:
        """Write the view, then the small file by which it is found. Raises Fault index_not_written."""
        progress("writing", 0.0)
        identifier = uuid.uuid4().hex
        with self._changing(view.table):
            files = self._files()
            if not files.exists(self._hadoop(self._folder)):
                files.mkdirs(self._hadoop(self._folder))
                files.setPermission(self._hadoop(self._folder), self._java.fs.permission.FsPermission(_NO_OTHERS))
            folder = self._path(f"{name}-{identifier}")
            mark = self._hadoop(f"{folder}{_MARK}")
            try:
                files.create(mark, True).close()
                session = self._new_session()
                for setting, value in _WRITING.items():
                    session.conf.set(setting, value)
                session.sql(f"SELECT * FROM ({_rows(view, key)})").write.parquet(folder)
                self._require(mark)
                self._publish(name, identifier)
                self._require(mark, withdrawn=self._hadoop(self._path(f"{name}{_ENDING}")))
            except BaseException:
                files.delete(self._hadoop(folder), True)
                raise
            finally:
                files.delete(mark, False)
        progress("writing", 1.0)

    def names(self, prefix: str) -> frozenset[str]:
        with self._working():
            return frozenset(_name_of(entry) for entry in self._entries() if entry.startswith(prefix))

    def remove(self, names: Collection[str]) -> None:
        """Delete copies and folders, the small files by which they are found first. Raises Fault index_not_written."""
        with self._changing(self._folder):
            entries = [entry for entry in self._entries() if _name_of(entry) in names] if names else []
            for entry in sorted(entries, key=lambda entry: not entry.endswith(_ENDING)):
                self._files().delete(self._hadoop(self._path(entry)), True)

    def remove_unfinished(self, names: Collection[str]) -> None:
        """Delete the folders of preparations that were killed at least a day ago. Raises Fault index_not_written."""
        latest = (time.time() - ABANDONED_SECONDS) * 1000
        with self._changing(self._folder):
            for status in self._statuses():
                mark = str(status.getPath().getName())
                name, _, identifier = mark.removesuffix(_MARK).partition("-")
                if mark.endswith(_MARK) and name in names and status.getModificationTime() < latest:
                    self._files().delete(status.getPath(), False)
                    if self._identifier(name) != identifier:
                        for left in (f"{name}-{identifier}{_ENDING}", f"{name}-{identifier}"):
                            self._files().delete(self._hadoop(self._path(left)), True)

    def forget(self) -> None:
        """Drop our views over the files."""
        for view in self._session.catalog.listTables(str(self._session.conf.get("spark.sql.globalTempDatabase"))):
            if view.name.startswith(self._prefix):
                self._session.catalog.dropGlobalTempView(view.name)

    def _identifier(self, name: str) -> str | None:
        """Return the ID of the present folder of a copy, or None."""
        pointer, files = self._hadoop(self._path(f"{name}{_ENDING}")), self._files()
        if not files.exists(pointer):
            return None
        stream = files.open(pointer)
        try:
            identifier = bytes(stream.readAllBytes()).decode("ascii")
        finally:
            stream.close()
        complete = self._hadoop(self._path(f"{name}-{identifier}"))
        return identifier if len(identifier) == 32 and files.exists(complete) else None

    def _publish(self, name: str, identifier: str) -> None:
        """Publish the copy. If two processes write it at once, questions read the second one, and the first remains until both
        are removed."""
        files, part = self._files(), self._hadoop(self._path(f"{name}-{identifier}{_ENDING}"))
        stream = files.create(part, True)
        stream.write(bytearray(identifier.encode()))
        stream.close()
        pointer = self._hadoop(self._path(f"{name}{_ENDING}"))
        files.delete(pointer, False)
        if not files.rename(part, pointer):
            raise OSError(f"{pointer.toString()} cannot be written")

    def _require(self, mark: Any, withdrawn: Any = None) -> None:
        """Raise OSError if the mark of this writer is gone, after deleting the file `withdrawn`."""
        if not self._files().exists(mark):
            if withdrawn is not None:
                self._files().delete(withdrawn, False)
            raise OSError(f"{mark.toString()} was removed while the copy was written")

    def _entries(self) -> Iterator[str]:
        return (str(status.getPath().getName()) for status in self._statuses())

    def _statuses(self) -> Iterator[Any]:
        folder = self._hadoop(self._folder)
        if self._files().exists(folder):
            yield from self._files().listStatus(folder)

    @property
    def _java(self) -> Any:
        return self._session._jvm.org.apache.hadoop  # type: ignore[union-attr]

    def _hadoop(self, path: str) -> Any:
        return self._java.fs.Path(path)

    def _files(self) -> Any:
        configuration: Any = self._session._jsparkSession.sessionState().newHadoopConf()
        return self._hadoop(self._folder).getFileSystem(configuration)

    def _path(self, entry: str) -> str:
        return f"{self._folder.rstrip('/')}/{entry}"

    @contextmanager
    def _changing(self, table: str) -> Iterator[None]:
        try:
            with self._working():
                yield
        except Error as error:
            raise refuse("index_not_written", table=table, incident=getattr(error, "incident", "")) from None


def _rows(view: BoundedView, key: str) -> str:
    """Return a SELECT of the rows that stay, with their stored integers and their unit."""
    columns = [*view.names, *view.narrow]
    if not view.units:
        return f"SELECT {', '.join(columns)} FROM {view.dialect.derived(view.rows)}"
    unit, number = view.dialect.identifier(UNIT), view.dialect.identifier(UNIT_ID)
    bounded = view.dialect.derived(view.within_max_rows_by_counts(view.rows, key, (unit,)))
    return f"SELECT {', '.join([*columns, unit, f'{unit} AS {number}'])} FROM {bounded}"


def _name_of(entry: str) -> str:
    """Return the name of the copy to which a file or folder belongs."""
    return entry.removesuffix(_ENDING).removesuffix(_MARK).partition("-")[0]
