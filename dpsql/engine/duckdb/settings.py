"""Settings of DuckDB, and functions of the owner, that change the meaning of generated text.

A connection given in Python belongs to the owner: settings with other values are changed only for our own cursors
(SET SESSION). If a setting cannot be changed, the source is refused before data is touched.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa

from dpsql.errors.exceptions import refuse
from dpsql.storage.memory import RecentValues

MEANINGS: dict[str, str | bool | int] = {
    # equality, order and functions of texts; source columns are also read in binary collation (`literals.cast_column`)
    "default_collation": "", "regex_match_operator_semantics": "partial",
    # order of rows
    "default_null_order": "NULLS_LAST", "default_order": "ASC", "order_by_non_integer_literal": False,
    # arithmetic, and its errors
    "integer_division": False, "ieee_floating_point_ops": True, "error_on_division_by_zero": True,
    "scalar_subquery_error_on_multiple_rows": True,
    # casts, and types of sources and of constants
    "TimeZone": "UTC", "Calendar": "gregorian", "old_implicit_casting": False, "disable_timestamptz_casts": False,
    "legacy_disable_null_type": False, "binary_as_string": False,
    # how a text is read
    "dialect_compatibility_mode": "NONE", "max_expression_depth": 1000,
    # types of results
    "arrow_large_buffer_size": False, "arrow_lossless_conversion": False, "arrow_output_list_view": False,
    "arrow_output_version": "1.0", "produce_arrow_string_view": False,
}  # fmt: skip
"""Every setting of DuckDB 1.4 or 2.0 on which the rows of a generated query, or their types, depend. Other settings limit
memory, threads and time, decide what is logged, written or loaded, or choose one of two equal plans."""

_SPELLINGS = {"ASCENDING": "ASC", "Etc/UTC": "UTC"}
"""The engine's spellings of its default values, with the spelling by which the same value is set."""

_ANY_OWN_FUNCTION = "SELECT 1 FROM duckdb_functions() WHERE NOT internal AND schema_name <> '#bounded' LIMIT 1"
"""A check that comes first because most databases have no such function, and listing all functions takes longer than a
question."""
_OWN_FUNCTIONS = (
    "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal AND schema_name <> '#bounded' "
    "AND function_name IN (SELECT function_name FROM duckdb_functions() WHERE internal) ORDER BY 1 LIMIT 1"
)


_OF_OUR_OWN: dict[str, frozenset[str]] = {}
"""The names in MEANINGS that each of our own databases has, by the version of the library: they come with the library and its
built-in extensions, and nothing is loaded into our databases. Looking them up takes longer than creating a database."""


def _offered(connection: duckdb.DuckDBPyConnection, owned: bool) -> frozenset[str]:
    """Return the names in MEANINGS that a database has. `owned`: it is our own database.

    Each name is looked up separately unless all are there, because `duckdb_settings()` leaves out deprecated settings, although
    these can still be set and still change results (`error_on_division_by_zero` in DuckDB 2.0.1).
    """
    offered = _OF_OUR_OWN.get(duckdb.__version__) if owned else None
    if offered is None:
        is_newest = _has_settings(connection, *MEANINGS)
        offered = frozenset(name for name in MEANINGS if is_newest or _has_settings(connection, name))
    return _OF_OUR_OWN.setdefault(duckdb.__version__, offered) if owned else offered


def _has_settings(connection: duckdb.DuckDBPyConnection, *names: str) -> bool:
    """Return whether a database has all of some settings, listed or not."""
    cursor = connection.cursor()
    try:
        cursor.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in names)).fetchall()
    except duckdb.CatalogException:
        return False
    finally:
        cursor.close()
    return True


class PinnedSettings:
    """The pinned settings of one connection's database."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, owned: bool) -> None:
        """`owned`: the database is ours, with one setting for all cursors. Raises Fault source_setting, source_function."""
        offered = _offered(connection, owned)
        self._meanings = {name: value for name, value in MEANINGS.items() if name in offered}
        self._values = _parsed(connection, "SELECT " + ", ".join(f"current_setting('{n}')" for n in self._meanings))
        self._owned = owned
        if owned:
            self._set(connection, "GLOBAL")
            # The rule of DuckDB 2.0 writes computed columns into each other: n subqueries take time and memory of 5**n and more.
            with suppress(duckdb.Error):  # which 1.4 does not have
                connection.execute("SET GLOBAL disabled_optimizers = 'partial_aggregate_pushdown'")
            return
        cursor = connection.cursor()
        try:
            self.pin(cursor)
            any_own = cursor.execute(_ANY_OWN_FUNCTION).fetchone() is not None
            shadowed = cursor.execute(_OWN_FUNCTIONS).fetchone() if any_own else None
        finally:
            cursor.close()
        if shadowed is not None:
            raise refuse("source_function", name=str(shadowed[0]))

    def pin(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Set the values that generated texts assume on a new cursor. Raises Fault source_setting."""
        if not self._owned:
            self._set(cursor, "SESSION")

    def _set(self, cursor: duckdb.DuckDBPyConnection, scope: str) -> None:
        different = self._different(cursor)
        for name in different:
            with suppress(duckdb.Error):  # a locked configuration: checked below
                cursor.execute(f"SET {scope} {name} = '{self._meanings[name]}'")
        left = self._different(cursor) if different else []
        if left:
            raise refuse("source_setting", name=left[0], value=str(self._meanings[left[0]]))

    def _different(self, cursor: duckdb.DuckDBPyConnection) -> list[str]:
        (values,) = cursor.execute(self._values).fetchall()
        pairs = zip(self._meanings.items(), values, strict=True)
        return [name for (name, meaning), value in pairs if _SPELLINGS.get(value, value) != meaning]


# --- statements -------------------------------------------------------------------------------------------------------

# Execution of one SELECT on a DuckDB cursor: its text is parsed once, its rows are returned as an Arrow table.
# DuckDB takes longer to parse a generated text than to answer it over a thousand rows, and a dashboard repeats the same
# texts. Only the parsed text is cached: names are bound and plans are made at every run.

_MOST_KEPT = 256
_MOST_KEPT_CHARACTERS = 1_000_000
_BATCH_ROWS = 20_000

# DuckDB 2 warns that `sql(text)` would save a copy of the rows, but that binds every text twice and takes no parsed text.
warnings.filterwarnings("ignore", message="Arrow output on a DB-API result", category=UserWarning)


class Statements:
    """A cache of the parsed texts that were run last. Thread-safe; valid for every connection and every database."""

    def __init__(self) -> None:
        self._parsed: RecentValues[Any] = RecentValues(_MOST_KEPT, _MOST_KEPT_CHARACTERS)

    def table(
        self,
        cursor: duckdb.DuckDBPyConnection,
        sql: str,
        parameters: tuple[Any, ...] = (),
        *,
        most_bytes: int | None = None,
        count: Callable[[int], None] = lambda size: None,
    ) -> pa.Table:
        """Return every row of the one SELECT in `sql`; `parameters`: values of its $1, $2, ... Raises DuckDB's errors, and
        MemoryError, without collecting further rows, if the rows have more than `most_bytes`. With that limit, `count` is called
        with the size of all rows collected so far, and may raise to stop."""
        result: Any = cursor.execute(
            self._parsed.get(sql, lambda: _parsed(cursor, sql), len(sql)), *([parameters] if parameters else [])
        )
        if most_bytes is not None:
            return _bounded(result, most_bytes, count)
        # DuckDB 1.4 has only the older name.
        fetch = getattr(result, "to_arrow_table", None) or result.fetch_arrow_table
        try:
            return fetch()
        except UserWarning:  # nothing was fetched: the host turned all warnings into errors
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return fetch()


def _parsed(cursor: duckdb.DuckDBPyConnection, sql: str) -> Any:
    statements = cursor.extract_statements(sql)
    if len(statements) != 1:
        raise duckdb.ParserException("Parser Error: not one statement")
    return statements[0]


def _bounded(result: Any, most_bytes: int, count: Callable[[int], None]) -> pa.Table:
    """Collect the rows in batches. Raises MemoryError as soon as there are too many, and what `count` raises."""
    open_reader = getattr(result, "to_arrow_reader", None) or result.fetch_record_batch
    with open_reader(_BATCH_ROWS) as reader:
        batches: list[pa.RecordBatch] = []
        size = 0
        for batch in reader:
            size += batch.nbytes
            if size > most_bytes:
                raise MemoryError
            count(size)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)
