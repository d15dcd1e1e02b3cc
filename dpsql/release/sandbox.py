"""The second engine: an in-memory DuckDB that holds released numbers and public tables and can reach nothing else.

The binder allows only listed nodes in the public remainder. The sandbox is the second defence: even a statement that the
binder should not have accepted can reach no file, no network, no extension, no setting, no Python object and no table of
another analyst, and is stopped when its limit of time, memory or rows is exceeded.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import date
from functools import cache
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.engine.duckdb.dialect import DuckDBDialect
from dpsql.engine.duckdb.settings import Statements
from dpsql.engine.duckdb.sources import kept_in_children
from dpsql.engine.fair_queue import watchdog
from dpsql.errors.exceptions import Error, refuse
from dpsql.release.confinement import ConfinedDuckDB, ConfinedError, ConfinedPool, DatabaseImage
from dpsql.release.value_text import value_text
from dpsql.sql.binder.trees import stands_for_value
from dpsql.sql.parser import parse_text
from dpsql.storage.records import dataclass

DIALECT = DuckDBDialect()
"""The dialect of the statements that a scratch runs."""
TIMEOUT_SECONDS = 30.0
MEMORY_MEGABYTES = 1024
MOST_ROWS = 1_000_000
MOST_BYTES = 512 << 20
"""Largest size of an answer in a server, where many answers are held at once."""

# GLOBAL, because a plain SET of some of these holds for one connection only, and every scratch has its own. Order matters:
# external access is disabled last but one, because the settings before it (temp_directory) need a database that has it.
_LOCKDOWN = (
    "SET GLOBAL autoinstall_known_extensions = false",
    "SET GLOBAL autoload_known_extensions = false",
    "SET GLOBAL allow_community_extensions = false",
    "SET GLOBAL python_enable_replacements = false",  # else a table name could refer to Python variables of the callers
    "SET GLOBAL temp_directory = ''",  # nothing is spilled to disk
    "SET GLOBAL enable_external_access = false",
    "SET GLOBAL lock_configuration = true",
)


class Scratch:
    """One analyst's statements in the sandbox, on a separate connection, so that no table is shared or left behind."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        most_rows: int,
        statements: Statements | None = None,
        confined: Confined | None = None,
        count: Callable[[int], None] = lambda size: None,
    ) -> None:
        """Use `connection`. `statements`: a cache of parsed statements. `confined`: where to run statements that the engine does
        not bound. `count`: called with the size of the rows that a statement in a server has returned so far; may raise."""
        self._connection = connection
        self._statements = statements or Statements()
        self._most_rows = most_rows
        self._confined, self._count = confined, count
        self._process: ConfinedDuckDB | None = None
        self.expired = False

    def interrupt(self) -> None:
        """Stop the running statement and refuse further ones; called by the watchdog."""
        self.expired = True
        self._connection.interrupt()
        process = self._process
        if process is not None:
            process.interrupt()

    def query(
        self, sql: str, tables: Mapping[str, pa.Table], most_rows: int | None = None, *, strict: bool = False
    ) -> pa.Table:
        """Return the rows of one SELECT over `tables`, in DuckDB's types; at most `most_rows` (default: the sandbox's limit). An
        expression that has no value is NULL (`total_text`) unless `strict`.

        Raises a refusal (sandbox_time, sandbox_memory, sandbox_rows, sandbox_value, sandbox_query) whose text names a
        category, never the engine's own message.
        """
        try:
            return self._rows(sql, tables, most_rows)
        except Error as error:
            # A conversion that fails for all values is refused in a rehearsal only if a row reaches it, which need not happen in
            # a branch of CASE.
            if strict or error.slug not in ("sandbox_value", "sandbox_query"):
                raise
            for days in (False, True):
                with suppress(Error, SqlglotError, RecursionError):
                    return self._rows(total_text(sql, days), tables, most_rows)
            raise

    def _rows(self, sql: str, tables: Mapping[str, pa.Table], most_rows: int | None) -> pa.Table:
        if self.expired:
            raise refuse("sandbox_time")
        most_rows = self._most_rows if most_rows is None else most_rows
        try:
            if self._confined is not None and _is_unbounded(sql):
                return self._fetch_confined(self._confined, sql, tables, most_rows)
            for name, table in tables.items():
                self._connection.register(name, table)
            return self._fetch(sql, most_rows)
        except (duckdb.Error, ConfinedError, pa.ArrowException, OSError, RuntimeError, MemoryError) as error:
            raise _refusal(error, self.expired, sql) from None

    def _fetch_confined(self, confined: Confined, sql: str, tables: Mapping[str, pa.Table], most_rows: int) -> pa.Table:
        """Return all rows, computed in a process whose memory the kernel bounds. The watchdog interrupts or ends that process."""

        def check() -> None:
            if self.expired:
                raise refuse("sandbox_time")

        with confined.pool.lent(confined.asker, _CONFINED, check) as process:
            self._process = process
            try:
                check()
                table = process.query(_CONFINED, sql, tables, most_rows=most_rows, seconds=TIMEOUT_SECONDS)
                self._count(table.nbytes)
                return table
            finally:
                self._process = None

    def _fetch(self, sql: str, most_rows: int) -> pa.Table:
        """Return all rows. The engine stops after one row too many, so that an oversized result does not fill the memory.

        The order of `sql` is kept: DuckDB preserves the order of a subquery, and its single thread always returns equal rows in
        the same order.
        """
        most_bytes = None if self._confined is None else MOST_BYTES
        text = f"SELECT * FROM ({sql}\n) LIMIT {most_rows + 1}"
        table = self._statements.table(self._connection, text, most_bytes=most_bytes, count=self._count)
        if table.num_rows > most_rows:
            raise refuse("sandbox_rows", most=most_rows)
        return table


@dataclass(frozen=True)
class Confined:
    """The processes for statements that the engine does not bound, and the asker who uses them."""

    pool: ConfinedPool
    asker: str


_CONFINED = DatabaseImage("released", closing=_LOCKDOWN, memory_megabytes=256)
_GROWING = re.compile(r"\|\||\b(?:concat|concat_ws|replace|strftime)\s*\(", re.IGNORECASE)
_LONG_TEXT = 10_000


def _is_unbounded(sql: str) -> bool:
    """Return whether a statement may create texts that DuckDB's memory_limit does not count: it concatenates or replaces texts,
    which can be nested to double at every step, or it is long. A literal that only looks like such a call also matches."""
    return len(sql) > _LONG_TEXT or _GROWING.search(sql) is not None


class Sandbox:
    """An open, locked DuckDB shared by threads; each use opens a separate `Scratch` (microseconds)."""

    def __init__(
        self,
        *,
        memory_megabytes: int = MEMORY_MEGABYTES,
        most_rows: int = MOST_ROWS,
        confined: ConfinedPool | None = None,
    ) -> None:
        """Set the limits. `confined`: processes with memory bounded by the kernel, so that no asker of a server stops others."""
        self._memory_megabytes = memory_megabytes
        self._pool = confined
        self.most_rows = most_rows
        self._statements = Statements()
        self._lock = threading.Lock()
        self._base: duckdb.DuckDBPyConnection | None = None
        self._process = 0
        self._inherited: list[object] = []

    def of(self, asker: str, count: Callable[[int], None] = lambda size: None) -> Sandbox:
        """Return this sandbox for one asker, who takes turns with others at the confined processes. `count` as in `Scratch`."""
        return _AskersSandbox(self, asker, count)

    def scratch(self, timeout_seconds: float = TIMEOUT_SECONDS) -> AbstractContextManager[Scratch]:
        """Return a scratch whose statements together may run for `timeout_seconds` before they are interrupted."""
        return self._scratch(timeout_seconds, "", lambda size: None)

    @contextmanager
    def _scratch(self, timeout_seconds: float, asker: str, count: Callable[[int], None]) -> Iterator[Scratch]:
        base = self._open()
        connection = base.cursor()
        confined = None if self._pool is None else Confined(self._pool, asker)
        scratch = Scratch(connection, self.most_rows, self._statements, confined, count)
        watchdog().enter(scratch, timeout_seconds)
        try:
            yield scratch
        except Error as error:
            if error.slug == "sandbox_broken":
                self._discard(base)
            raise
        finally:
            watchdog().leave(scratch)
            connection.close()

    def query(
        self,
        sql: str,
        tables: Mapping[str, pa.Table],
        timeout_seconds: float = TIMEOUT_SECONDS,
        *,
        strict: bool = False,
    ) -> pa.Table:
        """Return the rows of one statement, run in a separate scratch; see `Scratch.query`."""
        with self.scratch(timeout_seconds) as scratch:
            return scratch.query(sql, tables, strict=strict)

    def close(self) -> None:
        """Release the engine, which ends once no scratch is open; the next use starts another."""
        with self._lock:
            self._base = None

    def _open(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            forked = self._process != os.getpid()
            if forked:  # its threads are only in the parent, so it can be neither used nor, without hanging, freed
                self._inherited.append(self._base)
                self._statements = Statements()
            if forked or self._base is None:
                # One thread per statement: rows come in the same order every time, and callers run in parallel.
                limit = f"{self._memory_megabytes}MB"
                base = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": limit})
                self._base = kept_in_children(base)
                for statement in _LOCKDOWN:
                    self._base.execute(statement)
                self._process = os.getpid()
            return self._base

    def _discard(self, broken: duckdb.DuckDBPyConnection) -> None:
        """Discard a DuckDB that answers nothing after an internal error, unless another thread has already replaced it."""
        with self._lock:
            if self._base is broken:
                self._base = None


class _AskersSandbox(Sandbox):
    """A shared sandbox as used by one asker."""

    def __init__(self, shared: Sandbox, asker: str, count: Callable[[int], None]) -> None:
        self._shared, self._asker, self._count = shared, asker, count
        self.most_rows = shared.most_rows

    def scratch(self, timeout_seconds: float = TIMEOUT_SECONDS) -> AbstractContextManager[Scratch]:
        """Return a scratch as `Sandbox.scratch` does, for this asker."""
        return self._shared._scratch(timeout_seconds, self._asker, self._count)

    def close(self) -> None:
        """Do nothing: the shared engine stays open."""


@cache
def shared_sandbox() -> Sandbox:
    """Return the process's own sandbox, in which releases that were pickled elsewhere compute their error bars."""
    return Sandbox()


LITERAL_CONVERSION = "a literal cannot be converted to the type asked for"
CONVERSION = "a value cannot be converted to the type asked for"
_CATEGORIES = {
    "Conversion": CONVERSION,
    "Out of Range": "a number is out of range",
    "Invalid Input": "a function does not take this value (a division by zero, perhaps)",
}
_NEVER_CONVERTED = re.compile(r"Unimplemented type for cast|can't be cast to the destination type")
"""Errors of conversions between types that fail for all values, which DuckDB reports at the first row."""
_CONVERTED_TEXT = re.compile(r"""(?:string|format:) ['"](.*?)['"](?: to |,)""", re.DOTALL)
"""The text quoted in DuckDB's message about a text that cannot be converted."""
_SHAPES = ("Binder", "Catalog", "Parser", "Permission", "Not implemented", "Mismatch Type", "Syntax")


def _is_of_literal(message: str, sql: str) -> bool:
    """Return whether a conversion fails for any released values, because the failing value is a literal in `sql`."""
    value = _CONVERTED_TEXT.search(message)
    return value is not None and "'" + value[1].replace("'", "''") + "'" in sql


def _refusal(error: Exception, expired: bool, sql: str) -> Error:
    """Return the refusal for an engine error in `sql`. The engine's message is not passed on, because it quotes values.

    An error in the middle of a stream arrives as Arrow's OSError, with DuckDB's kind only at the start of its text.
    """
    kind = str(error).partition(" Error:")[0]
    if expired or kind == "INTERRUPT":
        return refuse("sandbox_time")
    if kind == "Out of Memory" or isinstance(error, MemoryError):
        return refuse("sandbox_memory")
    if kind == "Conversion" and _NEVER_CONVERTED.search(str(error)):
        return refuse("sandbox_query")
    if kind == "Conversion" and _is_of_literal(str(error), sql):
        return refuse("sandbox_value", category=LITERAL_CONVERSION)
    if kind in _CATEGORIES:
        return refuse("sandbox_value", category=_CATEGORIES[kind])
    if kind in _SHAPES:
        return refuse("sandbox_query")
    return refuse("sandbox_broken")


# --- types of results -------------------------------------------------------------------------------------------------

_INT64 = (-(2**63), 2**63 - 1)


def numeric(type_: pa.DataType) -> bool:
    """Return whether values of this type are numbers (booleans are not)."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def floats(values: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Return a column as doubles, NaN for NULL and for values that are not numbers."""
    if not numeric(values.type):
        return np.full(len(values), np.nan)
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a result column in one of the types of `intervals.Type`, with zeros under its NULLs.

    Integers of any width become BIGINT (DuckDB sums BIGINT to HUGEINT). Integers that do not fit become DOUBLE, as do DECIMALs
    with decimal places: released numbers are noisy, and clients support doubles. A day outside the years 1 to 9999, which clients
    do not support, becomes NULL. Lists of these stay lists; anything else (TIME, INTERVAL, lists of lists) becomes text.
    """
    return _without_remains(within_calendar(_typed(values)))


def _typed(values: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = values.type
    if pa.types.is_integer(type_) or (pa.types.is_decimal(type_) and type_.scale == 0):
        low, high = (bound.as_py() for bound in pc.min_max(values).values())
        fits = low is None or (_INT64[0] <= low and high <= _INT64[1])
        return values.cast(pa.int64() if fits else pa.float64(), safe=False)
    if pa.types.is_decimal(
        type_
    ):  # Arrow multiplies by a rounded 0.01: by way of texts 28.58 is not 28.580000000000002
        return values.cast(pa.string()).cast(pa.float64())
    if pa.types.is_floating(type_):
        return values.cast(pa.float64())
    if pa.types.is_dictionary(type_):
        return _typed(values.cast(type_.value_type))
    if pa.types.is_timestamp(type_):
        return values.cast(pa.timestamp("us"))
    if pa.types.is_large_string(type_):
        return values.cast(pa.string())
    if pa.types.is_boolean(type_) or pa.types.is_string(type_) or pa.types.is_date32(type_) or pa.types.is_null(type_):
        return values
    if pa.types.is_list(type_) and (element := _listed(type_.value_type)) is not None:
        values = values.cast(pa.list_(pa.string())) if pa.types.is_decimal(type_.value_type) else values
        return pa.chunked_array([pa.array(values.cast(pa.list_(element)).to_pylist(), pa.list_(element))])
    return pa.chunked_array([pa.array([None if v is None else value_text(v) for v in values.to_pylist()], pa.string())])


_DAYS = (date.min.toordinal() - date(1970, 1, 1).toordinal(), date.max.toordinal() - date(1970, 1, 1).toordinal())
_MICROSECONDS_A_DAY = 86_400_000_000


def within_calendar(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return days and times within the range of Python and the clients' formats, NULL for all others."""
    days = pa.types.is_date32(values.type)
    if not days and not (pa.types.is_timestamp(values.type) and values.type.unit == "us"):
        return values
    numbers = values.cast(pa.int32() if days else pa.int64())
    low, high = (
        (_DAYS[0], _DAYS[1] + 1) if days else (_DAYS[0] * _MICROSECONDS_A_DAY, (_DAYS[1] + 1) * _MICROSECONDS_A_DAY)
    )
    inside = pc.and_(pc.greater_equal(numbers, low), pc.less(numbers, high))
    return values if pc.all(inside).as_py() is not False else pc.if_else(inside, values, pa.scalar(None, values.type))


def _listed(element: pa.DataType) -> pa.DataType | None:
    """Return the item type of a list in an answer, None if the list becomes text."""
    if pa.types.is_floating(element) or pa.types.is_decimal(element):
        return pa.float64()
    if pa.types.is_signed_integer(element):
        return pa.int64()
    if pa.types.is_timestamp(element):
        return pa.timestamp("us")
    same = pa.types.is_date32(element) or pa.types.is_string(element) or pa.types.is_boolean(element)
    return element if same else None


def _without_remains(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with zeros under NULLs of fixed width, where the engine leaves arbitrary memory, which Arrow's formats
    would pass on. (A NULL text has no bytes.)
    """
    type_ = values.type
    if values.null_count == 0 or not (pa.types.is_boolean(type_) or pa.types.is_primitive(type_)):
        return values
    whole = pa.concat_arrays(values.chunks)
    numbers = whole if pa.types.is_boolean(type_) else whole.view(pa.int64() if type_.bit_width == 64 else pa.int32())
    filled = numbers.fill_null(pa.scalar(0).cast(numbers.type)).to_numpy(zero_copy_only=False)
    again = pa.array(filled, numbers.type, mask=whole.is_null().to_numpy(zero_copy_only=False))
    return pa.chunked_array([again.view(type_)])


# --- statements in which no value fails -------------------------------------------------------------------------------

# Whether a text is a number, a product fits its type or a divisor is 0 may not be known before numbers are released. In SQL such
# a value is an error, which would come after the charge. So a statement that fails for a value is run again as rewritten here.
# Nothing else changes, and a statement that does not fail is never rewritten.

_WRITTEN = "duckdb"
_WIDEST: dict[exp.DType, str] = {
    exp.DType.INT: "BIGINT", exp.DType.SMALLINT: "BIGINT", exp.DType.TINYINT: "BIGINT",
    exp.DType.FLOAT: "DOUBLE",
}  # fmt: skip
_MOST_DIGITS = 38
_TRIED = (exp.Binary, exp.Unary, exp.Func)
_UNTRIED = (exp.Paren, exp.Cast, exp.TryCast, exp.Try, exp.AggFunc, exp.Dot, exp.Array, exp.Alias, exp.Any, exp.All)
_WHOLES = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""Nodes around a function whose arguments are wrapped in TRY, but not the function itself."""
_UNTRIABLE = (exp.AggFunc, exp.Window, exp.Query, exp.Exists)


def total_text(sql: str, days: bool) -> str:
    """Return `sql` rewritten so that no value fails. Casts to integers become casts to 64 bits, and casts to decimals keep every
    digit before the point, as docs/sql.md says; not with `days`, because DuckDB adds only integers of 32 bits to a day."""
    return _total(parse_text(sql), days).sql(dialect=_WRITTEN)


def _total(tree: exp.Expr, days: bool) -> exp.Expr:
    for node in reversed(list(tree.walk())):
        if isinstance(node, (exp.Mod, exp.IntDiv)):
            node.set("expression", exp.Nullif(this=node.expression.copy(), expression=exp.Literal.number(0)))
        if isinstance(node, exp.Cast):
            node.replace(exp.TryCast(this=node.this.copy(), to=node.to.copy() if days else _widest(node.to)))
        elif isinstance(node, exp.Ntile):
            node.set("this", exp.Greatest(this=node.this.copy(), expressions=[exp.Literal.number(1)]))
        elif type(node) in _PARTIAL:
            _PARTIAL[type(node)](node)
        elif _may_be_tried(node):
            node.replace(exp.Try(this=node.copy()))
    return tree


def _parsed(sql: str) -> exp.Expr:
    return parse_text(sql)


def _one_value(node: exp.Subquery) -> None:
    """Make a subquery that stands for one value NULL if it has several rows."""
    if stands_for_value(node):
        rows = node.this.sql(dialect=_WRITTEN)
        node.replace(_parsed(f"(SELECT CASE WHEN count(*) < 2 THEN any_value(v) END FROM ({rows}) AS o(v))"))


def _row_limit(node: exp.Limit | exp.Offset) -> None:
    """Make a computed LIMIT or OFFSET 0 if it is negative or not a number."""
    if not isinstance(node.expression, exp.Literal):
        count = node.expression.sql(dialect=_WRITTEN)
        node.set("expression", _parsed(f"greatest(TRY_CAST(({count}) AS BIGINT), 0)"))


def _framed(node: exp.Window) -> None:
    """Make a window NULL for rows whose frame reaches a distance that is negative or has no value."""
    spec = node.args.get("spec")
    conditions = []
    if spec is None:
        return
    for key in ("start", "end"):
        end = spec.args.get(key)
        if isinstance(end, exp.Expr):
            zero = "0" if end.find(exp.Interval) is None else "INTERVAL 0 DAY"
            distance = end.sql(dialect=_WRITTEN)
            if spec.args.get("kind", "").upper() != "RANGE":
                distance = f"TRY_CAST({distance} AS BIGINT)"
            conditions.append(f"{distance} >= {zero}")
            spec.set(key, _parsed(f"coalesce(greatest({distance}, {zero}), {zero})"))
    if conditions:
        window = node.sql(dialect=_WRITTEN)
        node.replace(_parsed(f"CASE WHEN {' AND '.join(conditions)} THEN {window} END"))


def _bucket(node: exp.DateBin) -> None:
    """Make a time bucket NULL if its width is not above 0 or has both months and days."""
    width = node.this.sql(dialect=_WRITTEN)
    months = f"CAST(12 * date_part('year', {width}) + date_part('month', {width}) AS INTEGER)"
    kind = f"({months} = 0 OR to_months({months}) = {width})"
    node.replace(_parsed(f"CASE WHEN {width} > INTERVAL 0 DAY AND {kind} THEN {node.sql(dialect=_WRITTEN)} END"))


def _several(node: exp.Expr) -> None:
    """Make the list of the n first values (MAX, MIN, ARG_MAX, ARG_MIN) NULL unless n is a literal above 0."""
    count = node.args.get("count")
    if count is not None and not (isinstance(count, exp.Literal) and count.is_int and int(count.name) > 0):
        node.set("this", _parsed(f"CASE WHEN FALSE THEN {node.this.sql(dialect=_WRITTEN)} END"))
        node.set("count", exp.Literal.number(1))


_PARTIAL: dict[type[exp.Expr], Callable[[Any], None]] = {
    exp.Subquery: _one_value, exp.Limit: _row_limit, exp.Offset: _row_limit, exp.Window: _framed, exp.DateBin: _bucket,
    exp.Max: _several, exp.Min: _several, exp.ArgMax: _several, exp.ArgMin: _several,
}  # fmt: skip
"""Rewriters of nodes that have no value for some arguments and cannot be wrapped in TRY."""


def _may_be_tried(node: exp.Expr) -> bool:
    whole = isinstance(node, _TRIED) and not isinstance(node, _UNTRIED) and not isinstance(node.parent, _WHOLES)
    branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
    negative = isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    return whole and not branch and not negative and not node.find(*_UNTRIABLE)


def _widest(type_: exp.DataType) -> exp.DataType:
    """Return the widest type of the same kind as the target of a cast."""
    if type_.is_type(exp.DType.DECIMAL) and len(type_.expressions) == 2:
        return exp.DataType.build(f"DECIMAL({_MOST_DIGITS}, {type_.expressions[1].name})", dialect=_WRITTEN)
    name = _WIDEST.get(type_.this)
    return type_.copy() if name is None else exp.DataType.build(name, dialect=_WRITTEN)
