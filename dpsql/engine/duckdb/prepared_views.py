"""Prepared bounded views in DuckDB: writing one into its own file, and reading it under a stable name.

A question says `memory."#bounded"."TABLE"` whether the rows come from an index file or from the source itself, and
counts units by a function of the same name: its text, which EXPLAIN shows, does not tell which of the two it is.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from dpsql.engine.contract import StoredViews
from dpsql.engine.duckdb.literals import constant, name
from dpsql.engine.emit.bounded_view import RANK, BoundedView
from dpsql.engine.query import UNIT_ID
from dpsql.errors.exceptions import refuse
from dpsql.plan.plan import UNIT

Progress = Callable[[str, float], None]
"""Called with what is being done and how much of it is done, from 0 to 1."""
MOST_UNIT_BITS = 1 << 20
"""Most units of which a set is held as bits (128 KiB); of more, units are counted by hashing."""
_log = logging.getLogger("dpsql.custodian")
_SCHEMA = 'memory."#bounded"'
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class _Opened:
    """A view under its `place`, over an index file or over the source itself (None). `lost`: the file was there and is gone, so
    that rows beyond max_rows are left out by the view itself, in the order of `key`."""

    place: str
    token: str
    view: BoundedView
    key: str
    file: Path | None
    lost: bool = False


def _attach(cursor: duckdb.DuckDBPyConnection, token: str, file: Path) -> str:
    """Attach a prepared copy, unless it is attached; return its name in SQL. Raises duckdb.Error.

    Not by IF NOT EXISTS: where another database of this process has the file under this name, DuckDB 2.0.0 now and then waits in
    it for ever, with a core at work.
    """
    index = "#" + token
    names = cursor.execute("SELECT database_name FROM duckdb_databases()").fetchall()
    if (index,) not in names:
        cursor.execute(f"ATTACH {constant(str(file))} AS {name(index)} (READ_ONLY)")
    return name(index)


def _open(cursor: duckdb.DuckDBPyConnection, opened: _Opened) -> None:
    """Make a view and the function that counts its units. Raises duckdb.Error."""
    view, place, unit, count = opened.view, opened.place, name(UNIT), "count(DISTINCT unit)"
    every = view.within_max_rows(view.rows, opened.key, (unit,)) if opened.lost and view.units else view.every
    of_unit = [unit, f"{unit} AS {name(UNIT_ID)}"] if view.units else []
    rows = f"SELECT {', '.join([*view.names, *view.integers, *of_unit])} FROM ({every})"
    if opened.file is not None:
        index = _attach(cursor, opened.token, opened.file)
        units = cursor.execute(f"SELECT units FROM {index}.main.about").fetchall()[0][0]
        rows = f"SELECT * FROM {index}.main.bounded"
        if units <= MOST_UNIT_BITS:
            count = f"bit_count(bitstring_agg(unit, 0::BIGINT, {max(units - 1, 0)}::BIGINT))"
    cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
    cursor.execute(f"CREATE OR REPLACE VIEW {place} AS {rows}")
    cursor.execute(f"CREATE OR REPLACE MACRO {place}(unit) AS {count}")


class Views:
    """The prepared views of one engine. Thread-safe."""

    engine: str = f"duckdb {duckdb.__version__}"
    stored: StoredViews | None = None

    def __init__(self, new_cursor: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        """`new_cursor` returns a cursor that can read the tables of the views."""
        self._new_cursor = new_cursor
        self._opened: dict[str, _Opened] = {}
        self._limited = False
        self._is_former = False
        self._lock = threading.Lock()

    def opened(
        self, view_name: str, token: str, file: Path | None, view: Callable[[], BoundedView | None], key: str
    ) -> str | None:
        """Return the name of the view and of the function that counts its units; made when `token` is new for the place, or when
        its copy was gone.

        Policies of different shape may ask one engine, with a `view_name` each: a question under one of them must not read the
        view of another, which may have more rows of a unit. Among versions of the data, `view` keeps a question that was late
        from putting an earlier one in the place of a later one, whose questions do not look whether it changed.
        """
        place = f"{_SCHEMA}.{name(view_name)}"
        with self._lock:
            before = self._opened.get(place)
            if before is not None and before.token == token and not before.lost:
                return place
            texts = view()
            if texts is None:
                return None
            opened = _Opened(place, token, texts, key, file)
            try:
                with self._cursor() as cursor:
                    if self._is_former:  # asked for a cursor first: one of the database that followed is not written to
                        return None
                    _open(cursor, opened)
            except duckdb.Error as error:
                _log.error("the prepared view %s cannot be read: %s", view_name, error)
                return None
            self._opened[place] = opened
            if self._is_former:
                return None
            if before is not None and before.token != token:
                with self._cursor() as cursor, suppress(duckdb.Error):
                    cursor.execute(f"DETACH DATABASE IF EXISTS {name('#' + before.token)}")
        return place

    def move(self, take: Callable[[], duckdb.DuckDBPyConnection | None]) -> None:
        """Make the views again in the database of the cursor that `take` returns (None: it stays as it is), before a further view
        is opened: a question whose text names one already finds it there. While one is being opened nothing is done. Raises
        duckdb.Error, with the rest not made."""
        if not self._lock.acquire(blocking=False):  # who opens a view may wait for whoever called this
            return
        try:
            if self._limited:
                return
            cursor = take()
            if cursor is not None:
                try:
                    for opened in self._opened.values():
                        _open(cursor, opened)
                finally:
                    cursor.close()
        finally:
            self._lock.release()

    def follow(
        self, new_cursor: Callable[[], duckdb.DuckDBPyConnection], connection: duckdb.DuckDBPyConnection
    ) -> Views:
        """Return the views of a database that takes the place of this one, as the source's file was replaced, and open no more
        here. A question whose text is written, and may be charged, finds what it names: the copy that it was written for, or
        the present source within max_rows, until a copy of the present source is opened.

        Without the lock, which whoever opens a view holds while the source is read: `opened` looks at `_is_former` before it
        writes and after it has kept what it wrote, so that what it names is carried along or not told to the question."""
        self._is_former = True
        views = Views(new_cursor)
        views._limited = self._limited
        former = list(self._opened.items())
        views._opened = {place: replace(opened, lost=opened.file is None) for place, opened in former}
        views.attach(connection)
        cursor = connection.cursor()
        for opened in views._opened.values():
            try:
                _open(cursor, opened)
            except duckdb.Error as error:
                _log.error("the view %s is not in the file that replaced the source: %s", opened.place, error)
        cursor.close()
        return views

    def attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Attach the copies that views are read from to another database. A view whose copy cannot be read is made of the source
        there, with the same rows, until the copy is prepared again. For `take`."""
        for place, opened in self._opened.items():
            if opened.file is None:
                continue
            try:
                index = _attach(connection, opened.token, opened.file)
                connection.execute(f"SELECT units FROM {index}.main.about")
            except duckdb.Error as error:
                _log.error("the prepared copy %s is gone, its view is read from the source: %s", place, error)
                self._opened[place] = replace(opened, file=None, lost=True)

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._new_cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    def limit(self, memory: str | None, jobs: int | None, scratch: Path) -> None:
        """Limit the memory of the whole database, which stays open: for a process that prepares. Raises Fault index_limit."""
        self._limited = True
        try:
            with self._cursor() as cursor:
                with suppress(duckdb.NotImplementedException):  # it has put rows aside before, and stays there
                    cursor.execute(f"SET temp_directory = {constant(str(scratch))}")
                cursor.execute("SET preserve_insertion_order = false")
                if memory is not None:
                    cursor.execute(f"SET memory_limit = {constant(memory)}")
                if jobs is not None:
                    cursor.execute(f"SET threads = {jobs}")
        except duckdb.Error as error:
            _log.error("the engine takes no such limit: %s", error)
            raise refuse("index_limit", memory=memory or "", jobs=jobs or 0) from None

    def write(
        self, view: BoundedView, key: str, file: Path, *, in_place: bool, progress: Progress, made_of: str = ""
    ) -> bool:
        """Two scans of the source, and a third of the rows of units that have more than max_rows, which alone are
        ranked. Memory: one entry for each unit; what the ranking needs beyond the memory limit goes to disk.
        """
        with _as_fault(view.table), self._new_file(file) as cursor:
            if not view.units:
                with _watched(cursor, "writing", progress):
                    cursor.execute(_BOUNDED.format(columns=", ".join([*view.names, *view.narrow]), rows=view.rows))
                cursor.execute(f'CREATE TABLE "#new".main.about AS SELECT 0 AS units; {_made_of(made_of, "TRUE")}')
                cursor.execute('CHECKPOINT "#new"')
                return True
            with _watched(cursor, "counting", progress):
                cursor.execute(_COUNT.format(rows=view.rows, unit=name(UNIT), id=name(UNIT_ID), most=view.most))
            if in_place and cursor.execute(_ALL_STAY.format(every=view.every)).fetchall()[0][0]:
                return False
            with _watched(cursor, "writing", progress):
                cursor.execute(_bounded_rows(view, key))
            cursor.execute('CREATE TABLE "#new".main.about AS SELECT count(*) AS units FROM "#new".main.units')
            cursor.execute(_made_of(made_of, _all_reached(view, "n") if view.joined else "TRUE"))
            cursor.execute('DROP TABLE "#new".main.units; CHECKPOINT "#new"')
            return True

    def made_of(self, file: Path) -> tuple[str, bool]:
        """Return the text that a file keeps, and whether every row had reached its unit. A file that cannot be read keeps
        none."""
        try:
            with duckdb.connect(str(file), read_only=True) as connection:
                row = connection.execute("SELECT text, complete FROM made_of LIMIT 1").fetchone()
        except duckdb.Error as error:
            _log.info("the prepared copy %s does not say what it is made of: %s", file, error)
            return "", False
        return ("", False) if row is None else (str(row[0]), bool(row[1]))

    def extend(
        self, view: BoundedView | None, key: str, copy: Path, file: Path, *, progress: Progress, made_of: str
    ) -> None:
        """Two scans of the new rows; those of units that have more than max_rows are ranked with what the copy has of them."""
        with _as_fault("" if view is None else view.table):
            shutil.copyfile(copy, file)
            with self._new_file(file) as cursor:
                cursor.execute("BEGIN")
                complete = '(SELECT complete FROM "#new".main.made_of)'
                if view is not None and not view.units:
                    with _watched(cursor, "writing", progress):
                        cursor.execute(_insertion(", ".join([*view.names, *view.narrow]), view.rows))
                elif view is not None:
                    with _watched(cursor, "counting", progress):
                        cursor.execute(
                            _COUNT_MORE.format(rows=view.rows, unit=name(UNIT), id=name(UNIT_ID), most=view.most)
                        )
                    if view.joined:
                        complete += f" AND {_all_reached(view, 'added')}"
                    with _watched(cursor, "writing", progress):
                        for statement in _continued(view, key):
                            cursor.execute(statement)
                cursor.execute(_made_of(made_of, complete))
                cursor.execute('DROP TABLE IF EXISTS "#new".main.units; COMMIT; CHECKPOINT "#new"')

    @contextmanager
    def _new_file(self, file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a cursor that has the file attached as "#new", to be written."""
        with self._cursor() as cursor:
            cursor.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
            cursor.execute(f'ATTACH {constant(str(file))} AS "#new"')
            try:
                yield cursor
            finally:
                with suppress(duckdb.Error):
                    cursor.execute("ROLLBACK")
                cursor.execute('DETACH "#new"')


@contextmanager
def _as_fault(table: str) -> Iterator[None]:
    """Raise Fault index_not_written in place of what the engine or the disk raises in the block."""
    try:
        yield
    except (duckdb.Error, OSError) as error:
        incident = secrets.token_hex(6)
        _log.error("incident %s: %s", incident, error)
        raise refuse("index_not_written", table=table, incident=incident) from None


def _made_of(text: str, complete: str) -> str:
    """Return the statement that keeps a text and the condition `complete` in a copy; none for the empty text."""
    return (
        f'CREATE OR REPLACE TABLE "#new".main.made_of AS SELECT {constant(text)} AS text, {complete} AS complete'
        * bool(text)
    )


def _all_reached(view: BoundedView, counted: str) -> str:
    """Return the condition that every row of the table has reached its unit: as many as `counted` of the units say."""
    return f'(SELECT coalesce(sum({counted}), 0) FROM "#new".main.units) = (SELECT count(*) FROM {view.alone})'


_BOUNDED = 'CREATE TABLE "#new".main.bounded AS SELECT {columns} FROM ({rows})'
_COUNT = (
    'CREATE TABLE "#new".main.units AS SELECT {unit}, row_number() OVER () - 1 AS {id}, n, n > {most} AS heavy '
    "FROM (SELECT {unit}, count(*) AS n FROM ({rows}) GROUP BY {unit})"
)
"""Units numbered from 0 in no order that means anything; a number stands for its unit where units are counted."""


_ALL_STAY = (
    "SELECT coalesce(sum(n), 0) = (SELECT count(*) FROM ({every})) AND count(*) FILTER (WHERE heavy) = 0 "
    'FROM "#new".main.units'
)
"""No unit has too many rows, and no row is without a unit: the source can be read as it is, without a condition."""


def _bounded_rows(view: BoundedView, key: str) -> str:
    """Return a SELECT of all rows of units with few rows, and of other units the rows that the window keeps at query
    time."""
    unit, number = name(UNIT), name(UNIT_ID)
    numbered = (
        f'SELECT r.*, u.{number} FROM ({view.rows}) AS r JOIN "#new".main.units AS u ON r.{unit} = u.{unit} WHERE '
    )
    light = f"SELECT {', '.join(view.names)}, {unit}, {number} FROM ({numbered} NOT u.heavy)"
    heavy = view.within_max_rows(f"{numbered} u.heavy", key, (unit, number))
    columns = ", ".join([*view.names, *view.narrow, unit, number])
    return _BOUNDED.format(columns=columns, rows=f"{light} UNION ALL {heavy}") + f" ORDER BY {number}"


_COUNT_MORE = (
    'CREATE TABLE "#new".main.units AS WITH more AS (SELECT {unit}, count(*) AS added FROM ({rows}) GROUP BY {unit}), '
    'kept AS (SELECT {unit}, any_value({id}) AS {id}, count(*) AS n FROM "#new".main.bounded SEMI JOIN more USING ({unit}) '
    "GROUP BY {unit}) SELECT {unit}, added, coalesce(n, 0) + added > {most} AS heavy, coalesce(kept.{id}, "
    '(SELECT units FROM "#new".main.about) + row_number() OVER (PARTITION BY kept.{id} IS NULL) - 1) AS {id} '
    "FROM more LEFT JOIN kept USING ({unit})"
)
"""The units of new rows: those that the copy has keep their numbers, the others are numbered on from there."""


def _continued(view: BoundedView, key: str) -> Iterator[str]:
    """Yield the statements that bring new rows into a copy, and take out what then is beyond max_rows."""
    unit, number, row, hidden = name(UNIT), name(UNIT_ID), name("#row"), [name(UNIT), name(UNIT_ID)]
    numbered = (
        f'SELECT r.*, u.{number} FROM ({view.rows}) AS r JOIN "#new".main.units AS u ON r.{unit} = u.{unit} WHERE '
    )
    columns = ", ".join([*view.names, *hidden])
    old_rows = (
        f'SELECT {columns}, rowid AS {row} FROM "#new".main.bounded WHERE {number} IN '
        f'(SELECT {number} FROM "#new".main.units WHERE heavy)'
    )
    new_rows = f"SELECT {columns}, NULL::BIGINT AS {row} FROM ({numbered} u.heavy)"
    yield f'CREATE TABLE "#new".main.ranked AS {view.ranked(f"{old_rows} UNION ALL {new_rows}", key)}'
    beyond = f'SELECT {row} FROM "#new".main.ranked WHERE {row} IS NOT NULL AND {RANK} > {view.most}'
    yield f'DELETE FROM "#new".main.bounded WHERE rowid IN ({beyond})'
    light = f"SELECT {columns} FROM ({numbered} NOT u.heavy)"
    heavy = f'SELECT {columns} FROM "#new".main.ranked WHERE {row} IS NULL AND {RANK} <= {view.most}'
    yield (
        _insertion(", ".join([*view.names, *view.narrow, *hidden]), f"{light} UNION ALL {heavy}")
        + f" ORDER BY {number}"
    )
    yield (
        'CREATE OR REPLACE TABLE "#new".main.about AS SELECT greatest(units, (SELECT coalesce(max('
        f'{number}) + 1, 0) FROM "#new".main.units)) AS units FROM "#new".main.about'
    )
    yield 'DROP TABLE "#new".main.ranked'


def _insertion(columns: str, rows: str) -> str:
    """Return the statement that adds `columns` of `rows` to a copy."""
    return f'INSERT INTO "#new".main.bounded SELECT {columns} FROM ({rows})'


@contextmanager
def _watched(cursor: duckdb.DuckDBPyConnection, activity: str, progress: Progress) -> Iterator[None]:
    """Report to `progress` while the statement in the block runs, and when it is done."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_POLL_SECONDS):
            progress(activity, max(0.0, cursor.query_progress() / 100))

    watcher = threading.Thread(target=watch, daemon=True)
    progress(activity, 0.0)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    progress(activity, 1.0)
