"""Prepared bounded views in DuckDB: each is written into its own file and read under a stable name.

A query reads `memory."#bounded"."TABLE"` and counts units by a function of the same name: its text, which EXPLAIN shows, does
not reveal whether the rows come from an index file or from the source itself. Where they come from the source, the name that
the engine receives has the version of the source in addition: a view holds for one version, so it is never that of another.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from dpsql.engine.contract import COUNTED, PreparedViews, Texts
from dpsql.engine.duckdb.literals import constant
from dpsql.engine.emit.bounded_view import IS_BEYOND, RANK, ROW, BoundedView
from dpsql.engine.query import UNIT_ID, UNIT_SETS, RowsRead
from dpsql.errors.exceptions import refuse
from dpsql.media.text import sql_name
from dpsql.plan.plan import UNIT
from dpsql.storage.records import dataclass, replace

Progress = Callable[[str, float], None]
"""A function called with the activity and its share done, from 0 to 1."""
_log = logging.getLogger("dpsql.custodian")
_SCHEMA = 'memory."#bounded"'
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class _Opened:
    """A view under its name `place`, over an index file or (None) over the source itself. `lost`: the file existed and is gone,
    or there was none, so the view itself leaves out rows beyond max_rows, in the order of `key`. `identity`: that of the source
    for which the view was opened, if it is read from the source. `thresholds`: the table in which units were counted, or, if
    rows have numbers, that of the rows that are left out."""

    view_name: str
    place: str
    token: str
    view: BoundedView
    key: str
    file: Path | None
    lost: bool = False
    identity: str = ""
    thresholds: str = ""


def _attach(cursor: duckdb.DuckDBPyConnection, token: str, file: Path) -> str:
    """Attach a prepared copy, unless it is attached; return its name in SQL. Raises duckdb.Error.

    IF NOT EXISTS is not used: if another database of this process has the file under this name, DuckDB 2.0.0 sometimes hangs in
    it forever, with a busy core.
    """
    index = "#" + token
    names = cursor.execute("SELECT database_name FROM duckdb_databases()").fetchall()
    if (index,) not in names:
        cursor.execute(f"ATTACH {constant(str(file))} AS {sql_name(index)} (READ_ONLY)")
    return sql_name(index)


def _thresholds(opened: _Opened) -> str:
    """Return the name of the table of a view's thresholds."""
    return f"{_SCHEMA}.{sql_name(f'{opened.view_name} {opened.token} thresholds')}"


_WORD, _BITS, _UNIT, _ID = '"#word"', '"#bits"', sql_name(UNIT), sql_name(UNIT_ID)
_BIT = f"{_BITS} >> CAST({ROW} & 63 AS UBIGINT) & 1"


def _left_out(view: BoundedView, key: str) -> str:
    """Return a SELECT of the numbers of the rows that a view leaves out, as bits of words: a quarter of a byte for each row."""
    bits = f"bit_or(CAST({IS_BEYOND} AS UBIGINT) << CAST({ROW} & 63 AS UBIGINT))"
    return f"SELECT {ROW} >> 6 AS {_WORD}, {bits} AS {_BITS} FROM ({view.left_out(key)}) GROUP BY ALL"


def count_rows(cursor: duckdb.DuckDBPyConnection, view: BoundedView, key: str, table: str) -> None:
    """Write the thresholds of a view, or the numbers of the rows that it leaves out, into a table. Raises duckdb.Error.

    Each step is a table of its own: only of tables does DuckDB know the ends of their columns, and dense integers are then joined
    and grouped by their places in an array. All threads together hold at most 2**22 places.
    """
    (threads,) = cursor.execute("SELECT current_setting('threads')").fetchall()[0]
    steps = view.counting(key)
    cursor.execute(f"SET SESSION perfect_ht_threshold = {max(12, 23 - threads.bit_length())}")
    for step, select in steps.items():
        cursor.execute(f"CREATE OR REPLACE TEMP TABLE {step} AS {select}")
    cursor.execute("RESET SESSION perfect_ht_threshold")
    result = _left_out(view, key) if view.numbered else view.of_units()
    cursor.execute(f"CREATE OR REPLACE TABLE {table} AS {result}")
    for step in steps:
        cursor.execute(f"DROP TABLE {step}")


def _part(opened: _Opened, part: RowsRead) -> str:
    """Return a SELECT of the rows of a part. Where the rows of a version have numbers, those that were left out when it was
    counted are left out whenever it is read: neither their units nor their content are looked at again."""
    view = opened.view
    if part is RowsRead.ALL or not opened.thresholds or not view.numbered:
        return view.part(part, opened.key, (_UNIT,), opened.thresholds)
    join, condition = ("LEFT JOIN", f"coalesce({_BIT}, 0) = 0") if part is RowsRead.KEPT else ("JOIN", f"{_BIT} = 1")
    rows = f"({view.numbered}) {join} (FROM {opened.thresholds}) ON {ROW} >> 6 = {_WORD}"
    return f"SELECT {', '.join([*view.names, _UNIT])} FROM {rows} WHERE {condition}"


def _open(cursor: duckdb.DuckDBPyConnection, opened: _Opened) -> None:
    """Create a view and the function that counts its units. Raises duckdb.Error."""
    view, place, counts = opened.view, opened.place, ["count(DISTINCT unit)"] * len(UNIT_SETS)
    is_bounded = view.units and (opened.lost or bool(opened.thresholds))
    parts = {part: _part(opened, part) for part in (RowsRead if is_bounded else ())}
    of_unit = [_UNIT, f"{_UNIT} AS {_ID}"] if view.units else []
    head = f"SELECT {', '.join([*view.names, *view.integers, *of_unit])}"
    rows = f"{head} FROM ({parts.pop(RowsRead.KEPT, view.every)})"
    if opened.file is not None:
        index = _attach(cursor, opened.token, opened.file)
        units = cursor.execute(f"SELECT units FROM {index}.main.about").fetchall()[0][0]
        rows = f"SELECT * FROM {index}.main.bounded"
        bits = f"bit_count(bitstring_agg(unit, 0::BIGINT, {max(units - 1, 0)}::BIGINT))"
        counts = [bits if units <= most else count for (_, most), count in zip(UNIT_SETS, counts, strict=True)]
    cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
    for part, of_part in parts.items():
        cursor.execute(f"CREATE OR REPLACE VIEW {part.name_beside(place)} AS {head} FROM ({of_part})")
    cursor.execute(f"CREATE OR REPLACE VIEW {place} AS {rows}")
    forms = (f"({''.join(f'p{index}, ' for index in range(form))}unit) AS {count}" for form, count in enumerate(counts))
    cursor.execute(f"CREATE OR REPLACE MACRO {place}{', '.join(forms)}")


class Views:
    """The prepared views of one engine. Thread-safe."""

    def __init__(self, new_cursor: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        """`new_cursor` returns a cursor that can read the tables of the views."""
        self.prepared = PreparedViews(f"duckdb {duckdb.__version__}", self)
        self._new_cursor = new_cursor
        self._opened: dict[str, _Opened] = {}
        self._limited = False
        self._is_former = False
        self._lock, self._counting = threading.Lock(), threading.Lock()

    def name_in_texts(self, view_name: str) -> str:
        """Return the name that stands for every version of a view in texts that are only shown."""
        return f"{_SCHEMA}.{sql_name(view_name)}"

    def opened(
        self, view_name: str, token: str, file: Path | None, view: Texts, key: str, identity: str = ""
    ) -> str | None:
        """Return the name of the view and of the function that counts its units. Both are created if `token` is new for this
        name, or if the copy was lost.

        Policies of different shapes may use one engine, each with its own `view_name`: a question under one of them must not read
        the view of another, which may have more rows of a unit. Among versions of the data, `view` prevents a late question
        from replacing a later version, whose questions do not check whether the view changed, by an earlier one.

        What a view of the source leaves out is right for one version of it, and a source may return to an earlier one (a link
        that leads back). So each version has its own name: a question finds the view for which its text was written, or none.
        """
        place = self.name_in_texts(f"{view_name} {token}" if identity else view_name)
        with self._lock:
            before = self._opened.get(place)
            if before is not None and (before.identity if identity else before.token == token and not before.lost):
                return place
            texts = view()
            if texts is None:
                return None
            opened = _Opened(view_name, place, token, texts, key, file, token.endswith(COUNTED), identity)
            return place if self._is_open(opened, before) else None

    def _is_open(self, opened: _Opened, before: _Opened | None) -> bool:
        """Open a view in place of an earlier one of its name, if it can be read here; drop the views of other versions of the
        source, which no question can read to its end."""
        try:
            with self._cursor() as cursor:
                if self._is_former:  # checked after taking a cursor: do not write to the new database
                    return False
                _open(cursor, opened)
        except duckdb.Error as error:
            _log.error("the view %s cannot be read: %s", opened.place, error)
            return False
        self._opened[opened.place] = opened
        if self._is_former:
            return False
        with self._cursor() as cursor, suppress(duckdb.Error):
            if before is not None and before.token != opened.token:
                cursor.execute(f"DETACH DATABASE IF EXISTS {sql_name('#' + before.token)}")
            for place, other in list(self._opened.items()) if opened.identity else ():
                is_named_alone = other.view_name == opened.view_name and place != self.name_in_texts(other.view_name)
                if is_named_alone and other.identity != opened.identity:
                    del self._opened[place]
                    for part in RowsRead:
                        cursor.execute(f"DROP VIEW IF EXISTS {part.name_beside(place)}")
                    cursor.execute(f"DROP MACRO IF EXISTS {place}")
                    cursor.execute(f"DROP TABLE IF EXISTS {_thresholds(other)}")
        return True

    def count(self, cursor: duckdb.DuckDBPyConnection, place: str, require_unchanged: Callable[[], None]) -> None:
        """Count the rows of the units of a view of the source, so that reading it does not sort every row: the units with too
        many rows get thresholds, kept in memory until the source or the database is opened anew. Do nothing for a view in which
        all rows stay, or while another thread counts; the window of the view keeps the same rows. Raises duckdb.Error, and what
        `require_unchanged` raises if the source does not have the identity of the view.

        A unit that has more rows now than when it was counted may have no threshold. So thresholds are kept only if the source
        had the view's identity before and after the count; a query that ends with another version has no answer (`Engine.run`).
        """
        opened = self._opened.get(place)
        is_counted = opened is not None and (not opened.identity or not opened.lost or bool(opened.thresholds))
        if opened is None or is_counted or not self._counting.acquire(blocking=False):
            return
        try:
            require_unchanged()
            table = _thresholds(opened)
            count_rows(cursor, opened.view, opened.key, table)
            require_unchanged()
            with self._lock:
                if self._opened.get(place) is not opened or self._is_former:
                    return
                opened = replace(opened, thresholds=table)
                _open(cursor, opened)
                self._opened[place] = opened
        finally:
            self._counting.release()

    def move(self, take: Callable[[], duckdb.DuckDBPyConnection | None]) -> None:
        """Create the views again in the database of the cursor that `take` returns (None: nothing changes), before another view
        is opened: a question whose text already names a view finds it there. Do nothing while a view is being opened. Raises
        duckdb.Error, in which case the remaining views are missing."""
        if not self._lock.acquire(blocking=False):  # the thread that opens a view may wait for the caller of `move`
            return
        try:
            if self._limited:
                return
            cursor = take()
            if cursor is not None:
                try:
                    for place, opened in self._opened.items():
                        self._opened[place] = replace(opened, thresholds="")
                        _open(cursor, self._opened[place])
                finally:
                    cursor.close()
        finally:
            self._lock.release()

    def follow(
        self, new_cursor: Callable[[], duckdb.DuckDBPyConnection], connection: duckdb.DuckDBPyConnection
    ) -> Views:
        """Return the views of a database that replaces this one, because the source's file was replaced, and open no more views
        here. A question whose text is written, and may be charged, finds the views that it names: the copy for which it was
        written, or the present source within max_rows, until a copy of the present source is opened.

        This does not take the lock, which a thread that opens a view holds while it reads the source. Instead `opened` checks
        `_is_former` before it writes and after it keeps a view, so that a view is either carried along or not used."""
        self._is_former = True
        views = Views(new_cursor)
        views._limited = self._limited
        former = list(self._opened.items())
        views._opened = {
            place: replace(opened, lost=opened.file is None, identity="", thresholds="") for place, opened in former
        }
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
        """Attach the copies of the views to another database (for `take` and `follow`). A view whose copy cannot be read is
        computed there from the source, with the same rows, until the copy is prepared again."""
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
        """Limit the memory of the database, which is not reopened: for a process that prepares. Raises Fault index_limit."""
        if (
            memory is not None and not memory.strip()[:1].isdigit()
        ):  # DuckDB takes "none" and negative sizes for no limit
            raise refuse("index_limit", memory=memory, jobs=jobs or 0)
        self._limited = True
        try:
            with self._cursor() as cursor:
                with suppress(duckdb.NotImplementedException):  # it has written temporary data and keeps its folder
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
        """Write a view by two scans of the source, and a third of the rows of units that have more than max_rows; only
        these rows are ranked. Memory: one entry for each unit; data of the ranking beyond the memory limit go to disk.
        """
        with _as_fault(view.table), self._new_file(file) as cursor:
            if not view.units:
                with _watched(cursor, "writing", progress):
                    cursor.execute(_BOUNDED.format(columns=", ".join([*view.names, *view.narrow]), rows=view.rows))
                cursor.execute(f'CREATE TABLE "#new".main.about AS SELECT 0 AS units; {_made_of(made_of, "TRUE")}')
                cursor.execute('CHECKPOINT "#new"')
                return True
            with _watched(cursor, "counting", progress):
                cursor.execute(_COUNT.format(rows=view.rows, unit=_UNIT, id=_ID, most=view.most))
            if in_place and cursor.execute(_ALL_STAY.format(every=view.every)).fetchall()[0][0]:
                return False
            with _watched(cursor, "writing", progress):
                cursor.execute(_bounded_rows(view, key))
            cursor.execute('CREATE TABLE "#new".main.about AS SELECT count(*) AS units FROM "#new".main.units')
            cursor.execute(_made_of(made_of, _all_reached(view, "n") if view.joined else "TRUE"))
            cursor.execute('DROP TABLE "#new".main.units; CHECKPOINT "#new"')
            return True

    def made_of(self, file: Path) -> tuple[str, bool]:
        """Return the text that a file keeps, and whether every row had reached its unit; "" and False if it cannot be read."""
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
        """Extend a copy by two scans of the new rows; for units with more than max_rows, old and new rows are ranked together."""
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
                        cursor.execute(_COUNT_MORE.format(rows=view.rows, unit=_UNIT, id=_ID, most=view.most))
                    if view.joined:
                        complete += f" AND {_all_reached(view, 'added')}"
                    with _watched(cursor, "writing", progress):
                        for statement in _continued(view, key):
                            cursor.execute(statement)
                cursor.execute(_made_of(made_of, complete))
                cursor.execute('DROP TABLE IF EXISTS "#new".main.units; COMMIT; CHECKPOINT "#new"')

    @contextmanager
    def _new_file(self, file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a cursor that has the file attached for writing as "#new"."""
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
    """Raise Fault index_not_written in place of errors that the engine or the disk raises in the block."""
    try:
        yield
    except (duckdb.Error, OSError) as error:
        incident = secrets.token_hex(6)
        _log.error("incident %s: %s", incident, error)
        raise refuse("index_not_written", table=table, incident=incident) from None


def _made_of(text: str, complete: str) -> str:
    """Return the statement that stores a text and the condition `complete` in a copy; "" for the empty text."""
    return (
        f'CREATE OR REPLACE TABLE "#new".main.made_of AS SELECT {constant(text)} AS text, {complete} AS complete'
        * bool(text)
    )


def _all_reached(view: BoundedView, counted: str) -> str:
    """Return the condition that every row of the table reached its unit: `counted` adds up to the number of rows."""
    return f'(SELECT coalesce(sum({counted}), 0) FROM "#new".main.units) = (SELECT count(*) FROM {view.alone})'


_BOUNDED = 'CREATE TABLE "#new".main.bounded AS SELECT {columns} FROM ({rows})'
_COUNT = (
    'CREATE TABLE "#new".main.units AS SELECT {unit}, row_number() OVER () - 1 AS {id}, n, n > {most} AS heavy '
    "FROM (SELECT {unit}, count(*) AS n FROM ({rows}) GROUP BY {unit})"
)
"""Units, numbered from 0 in an arbitrary order; the number replaces the unit's key in texts that count units."""

_NUMBERED = f'SELECT r.*, u.{_ID} FROM ({{rows}}) AS r JOIN "#new".main.units AS u ON r.{_UNIT} = u.{_UNIT} WHERE '
_ALL_STAY = (
    "SELECT coalesce(sum(n), 0) = (SELECT count(*) FROM ({every})) AND count(*) FILTER (WHERE heavy) = 0 "
    'FROM "#new".main.units'
)
"""The test that no unit has too many rows and no row is without a unit, so that the source can be read without a condition."""


def _bounded_rows(view: BoundedView, key: str) -> str:
    """Return the statement that writes all rows of units with few, and of others the rows that the window would keep."""
    numbered = _NUMBERED.format(rows=view.rows)
    light = f"SELECT {', '.join(view.names)}, {_UNIT}, {_ID} FROM ({numbered} NOT u.heavy)"
    heavy = view.within_max_rows(f"{numbered} u.heavy", key, (_UNIT, _ID))
    columns = ", ".join([*view.names, *view.narrow, _UNIT, _ID])
    return _BOUNDED.format(columns=columns, rows=f"{light} UNION ALL {heavy}") + f" ORDER BY {_ID}"


_COUNT_MORE = (
    'CREATE TABLE "#new".main.units AS WITH more AS (SELECT {unit}, count(*) AS added FROM ({rows}) GROUP BY {unit}), '
    'kept AS (SELECT {unit}, any_value({id}) AS {id}, count(*) AS n FROM "#new".main.bounded SEMI JOIN more USING ({unit}) '
    "GROUP BY {unit}) SELECT {unit}, added, coalesce(n, 0) + added > {most} AS heavy, coalesce(kept.{id}, "
    '(SELECT units FROM "#new".main.about) + row_number() OVER (PARTITION BY kept.{id} IS NULL) - 1) AS {id} '
    "FROM more LEFT JOIN kept USING ({unit})"
)
"""The units of new rows: units that the copy has keep their numbers, and further units get the next numbers."""


def _continued(view: BoundedView, key: str) -> Iterator[str]:
    """Yield the statements that add new rows to a copy and remove the rows that are then beyond max_rows."""
    row, numbered, hidden = sql_name("#row"), _NUMBERED.format(rows=view.rows), [_UNIT, _ID]
    columns = ", ".join([*view.names, *hidden])
    old_rows = (
        f'SELECT {columns}, rowid AS {row} FROM "#new".main.bounded WHERE {_ID} IN '
        f'(SELECT {_ID} FROM "#new".main.units WHERE heavy)'
    )
    new_rows = f"SELECT {columns}, NULL::BIGINT AS {row} FROM ({numbered} u.heavy)"
    yield f'CREATE TABLE "#new".main.ranked AS {view.ranked(f"{old_rows} UNION ALL {new_rows}", key)}'
    beyond = f'SELECT {row} FROM "#new".main.ranked WHERE {row} IS NOT NULL AND {RANK} > {view.most}'
    yield f'DELETE FROM "#new".main.bounded WHERE rowid IN ({beyond})'
    light = f"SELECT {columns} FROM ({numbered} NOT u.heavy)"
    heavy = f'SELECT {columns} FROM "#new".main.ranked WHERE {row} IS NULL AND {RANK} <= {view.most}'
    yield (
        _insertion(", ".join([*view.names, *view.narrow, *hidden]), f"{light} UNION ALL {heavy}") + f" ORDER BY {_ID}"
    )
    yield (
        'CREATE OR REPLACE TABLE "#new".main.about AS SELECT greatest(units, (SELECT coalesce(max('
        f'{_ID}) + 1, 0) FROM "#new".main.units)) AS units FROM "#new".main.about'
    )
    yield 'DROP TABLE "#new".main.ranked'


def _insertion(columns: str, rows: str) -> str:
    """Return the statement that adds `columns` of `rows` to a copy."""
    return f'INSERT INTO "#new".main.bounded SELECT {columns} FROM ({rows})'


@contextmanager
def _watched(cursor: duckdb.DuckDBPyConnection, activity: str, progress: Progress) -> Iterator[None]:
    """Report to `progress` while the statement in the block runs, and when it has ended."""
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
