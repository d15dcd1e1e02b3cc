"""One connection's questions: which go to the session, which to the catalog, and what comes back as columns and rows.

`describe` never charges and never touches data; `run` is called once for each portal by `backend`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.engine.fair_queue import FairQueue
from dpsql.errors.exceptions import Error, refuse
from dpsql.errors.traces import TRACES
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.activity import Activity
from dpsql.frontends.pgwire.catalog import Catalog, CatalogContext
from dpsql.frontends.pgwire.catalog.asyncpg_types import TYPE_TREE, type_tree
from dpsql.frontends.pgwire.catalog.reading import read_postgres
from dpsql.frontends.pgwire.catalog.rewrite import catalog_schema, tables_of
from dpsql.frontends.pgwire.commands import Command
from dpsql.frontends.pgwire.parameters import dummies, parameter_types, with_dummies, with_values
from dpsql.frontends.pgwire.rows import OIDS, ResultField, StatementResult, oid_of
from dpsql.frontends.pgwire.settings import Settings
from dpsql.frontends.pgwire.stop import Stop
from dpsql.release.release import Release
from dpsql.release.value_text import half_width_text
from dpsql.session.response_times import Pace
from dpsql.session.session import Session
from dpsql.sql.lexer import DIALECT, POSTGRESQL, Piece

_Answer = TypeVar("_Answer", pa.Table, pa.Schema)
_VECTORS = {"indkey": e.INT2VECTOR, "indoption": e.INT2VECTOR, "indclass": e.OIDVECTOR, "indcollation": e.OIDVECTOR}
_MOST_BARS = 300
_MOST_NAMED = 6
_QUERY_WORDS = {"select", "with", "values", "from", "("}
_CATALOG_WORDS = ("pg_", "information_schema")
_STOPPED = frozenset({"wire_cancelled", "wire_timeout"})
_NAME_ERRORS = ("unknown_column", "unknown_table", "unknown_function", "ambiguous_column", "syntax", "not_a_query")
LONG_TEXT = 5_000
"""Characters of a text from which on it is read in turns; reading as many takes some hundredths of a second."""


@dataclass
class PreparedStatement:
    """One statement that was understood: where it goes, its parameters' types, and its columns once they are known.
    `inner` is the question inside of a command."""

    piece: Piece
    kind: str
    oids: tuple[int, ...] = ()
    command: Command | None = None
    tree: exp.Expr | None = None
    inner: PreparedStatement | None = None
    fields: tuple[ResultField, ...] | None = field(default=None)

    def forget_long(self) -> None:
        """Let the tokens of a long text go, so that many prepared statements do not fill the memory."""
        for prepared in (self, self.inner):
            if prepared is not None and len(prepared.piece.sql) > LONG_TEXT:
                prepared.piece.forget()


class Questions:
    """Made for each connection; used by one thread at a time, except for `stop`."""

    def __init__(
        self,
        session: Session,
        catalog: Catalog,
        settings: Settings,
        process: int,
        texts: FairQueue | None = None,
        activity: Activity | None = None,
    ) -> None:
        """`texts` is where long texts wait to be read."""
        self.session, self.settings, self.stop = session, settings, Stop()
        self._catalog = catalog
        self._place = CatalogContext(catalog.user, catalog.database, settings, process, catalog.oids, catalog.tables)
        self._tables = {name.lower() for name in session.policy.visible}
        self._texts = FairQueue(1) if texts is None else texts
        self._activity = Activity() if activity is None else activity

    @contextmanager
    def reading(self, sql: str) -> Iterator[None]:
        """Entered to read and plan a text. Long ones take turns: while one is read no other thread of the server computes,
        so that a few of them at once would keep every answer, also the free ones, waiting for all of them. Raises
        wire_cancelled and wire_timeout while it waits."""
        with ExitStack() as turn:
            if len(sql) > LONG_TEXT:
                with self.stop.waiting(self.settings.statement_seconds()):
                    turn.enter_context(self._texts.place(self._place.user, self.stop.check))
            yield

    # --- understanding ------------------------------------------------------------------------------------------------

    def dialect_of(self, text: str) -> str:
        """Return the dialect to lex a message in, so that its tokens serve the parser that will most probably read them."""
        text = text.lower()
        if any(word in text for word in _CATALOG_WORDS):
            return POSTGRESQL
        about_data = "select" not in text or any(name in text for name in self._tables)
        return DIALECT if about_data else POSTGRESQL

    def prepare(self, piece: Piece, declared: Sequence[int]) -> PreparedStatement:
        """Return where a question goes and what its parameters are. Raises refusals; nothing is charged."""
        if TYPE_TREE.match(piece.sql):
            return PreparedStatement(piece, "types", (1028,))
        with self._counting_refusals(piece), self.reading(piece.sql):
            return self._understood(piece, declared)

    @contextmanager
    def _counting_refusals(self, piece: Piece) -> Iterator[None]:
        """Count a statement that is refused before it is run, as drivers that prepare statements see most refusals."""
        try:
            yield
        except Error as error:
            self._activity.failed(self._place.user, error, piece.sql)
            raise

    def _understood(self, piece: Piece, declared: Sequence[int]) -> PreparedStatement:
        words = _words(piece)
        about_data = not words.isdisjoint(self._tables)
        about_catalog = any(
            word.startswith("pg_") or word in ("information_schema", "_pg_expandarray") for word in words
        )
        plain = about_data and not about_catalog and first_parameter(piece) is None
        if plain or not _is_query(piece):
            return PreparedStatement(piece, "data", tuple(oid or e.TEXT for oid in declared))
        tree = read_postgres(piece)
        kind = self._kind(tree, about_data)
        return PreparedStatement(piece, kind, parameter_types(tree, declared, self.session.policy), tree=tree)

    def _kind(self, tree: exp.Expr | None, about_data: bool) -> str:
        if tree is None or not isinstance(tree, exp.Query):
            return "data"
        kinds = {catalog_schema(table) is not None for table in tables_of(tree)}
        if kinds == {True, False} and about_data:
            raise refuse("catalog_mixed")
        return "data" if False in kinds else "catalog"

    def look_at_names(self, prepared: PreparedStatement) -> None:
        """Raise, when a statement is prepared, what PostgreSQL finds then: names that do not exist. All else waits for the
        values, as a value that stands in for a parameter may be one that cannot stand there, but for the end of the waiting:
        whoever has stopped the statement does not wait for its description again."""
        if prepared.kind not in ("data", "catalog"):
            return
        with self._trace(prepared):
            try:
                fields = self._described(prepared, None)
            except Error as error:
                if error.slug in _NAME_ERRORS:
                    self._activity.failed(self._place.user, error, prepared.piece.sql)
                    raise
                if error.slug in _STOPPED:
                    raise
            else:
                if not prepared.oids:
                    prepared.fields = fields

    def describe(self, prepared: PreparedStatement, values: Sequence[Any] | None = None) -> tuple[ResultField, ...]:
        """Return the columns of a question, remembered; `values` stand in for parameters whose values are not known yet."""
        if prepared.fields is None:
            counting = self._counting_refusals(prepared.piece) if prepared.kind == "data" else nullcontext()
            with self._trace(prepared), counting:
                prepared.fields = self._described(prepared, values)
        return prepared.fields

    def _trace(self, prepared: PreparedStatement) -> AbstractContextManager[None]:
        """Return the trace of a question about data whose columns are asked for before it is run."""
        return TRACES.span("describe") if prepared.kind == "data" else nullcontext()

    def _described(self, prepared: PreparedStatement, values: Sequence[Any] | None) -> tuple[ResultField, ...]:
        if prepared.kind == "types":
            return _fields(type_tree([]).schema)
        if prepared.kind == "catalog":
            assert prepared.tree is not None
            tree = prepared.tree
            filled = with_dummies(tree, prepared.oids) if values is None else with_values(tree, values)
            return _fields(self._in_catalog(partial(self._catalog.describe, filled, self._place)))
        try:
            parameters = list(dummies(prepared.oids) if values is None else values)
            with self.reading(prepared.piece.sql):
                columns = self.session.describe(prepared.piece, parameters or None)
        except Error as error:
            return _fields(self._probe(prepared, error).schema)
        return tuple(ResultField(column.name, OIDS[column.type]) for column in columns)

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self, prepared: PreparedStatement, values: Sequence[Any]) -> StatementResult:
        """Answer a question: this may charge. Raises refusals and faults; `charged` tells."""
        if prepared.kind == "types":
            return _answer(type_tree(values[0] if values else []))
        if prepared.kind == "catalog":
            return _answer(self._run_catalog(prepared, values))
        with (
            TRACES.span("question"),
            self.stop.running(self.session.interrupt, self.settings.statement_seconds()),
        ):
            TRACES.note(user=self._place.user, project=self.session.options.project, door="wire")
            started = time.monotonic()
            try:
                release = self._execute(prepared.piece, list(values) or None)
            except Error as error:
                self._activity.failed(self._place.user, error, prepared.piece.sql)
                if self.stop.requested and error.slug == "stopped":
                    raise self.stop.refusal(error.charged, error.hint) from None
                return self._structure(prepared, error)
            if release.receipt.id:
                self._activity.answered(self._place.user, release, time.monotonic() - started, prepared.piece.sql)
        fields = tuple(ResultField(column.name, OIDS[column.type]) for column in release.columns)
        tag = "SELECT" if fields else "SET"
        return StatementResult(tag, fields, release.table if fields else None, self._notices(release))

    def _execute(self, piece: Piece, values: list[Any] | None) -> Release:
        """Answer as `Session.execute` does, with the text read in its turn and the data scanned out of it."""
        if len(piece.sql) <= LONG_TEXT:
            return self.session.execute(piece, values)
        pace = Pace(self.session.policy)
        with self.reading(piece.sql):
            statement = self.session.planner.parse(piece, values)
            if statement.kind != "query":
                return self.session.execute(piece, values)
            planned = self.session.plan(statement, values)
        return self.session.answer(planned, pace=pace)

    def _run_catalog(self, prepared: PreparedStatement, values: Sequence[Any]) -> pa.Table:
        assert prepared.tree is not None
        return self._in_catalog(partial(self._catalog.run, with_values(prepared.tree, values), self._place))

    def _in_catalog(self, ask: Callable[[Callable[[Callable[[], None]], None]], _Answer]) -> _Answer:
        """Return what `ask` returns, which is called with what it tells how to interrupt it. Raises wire_cancelled and
        wire_timeout, also while it waits for a process."""
        interrupt = _Interrupt()
        with self.stop.running(interrupt, self.settings.statement_seconds()):
            try:
                return ask(interrupt.set)
            except Error as error:
                if self.stop.requested and error.slug == "sandbox_time":
                    raise self.stop.refusal() from None
                raise

    def _structure(self, prepared: PreparedStatement, error: Error) -> StatementResult:
        """Return the columns of a table without rows. A tool that looks at a table's columns through LIMIT 1 gets columns without
        rows; anything else its refusal."""
        table = self._probe(prepared, error)
        notice = (
            "rows of people are not shown: these are the columns only",
            "ask for an aggregate: SELECT COUNT(*) ...",
        )
        return replace(_answer(table), notices=(notice,))

    def _probe(self, prepared: PreparedStatement, error: Error) -> pa.Table:
        tree = prepared.tree or read_postgres(prepared.piece)
        if error.slug not in ("raw_rows", "rows_clause"):
            raise error
        if tree is None or not _is_probe(tree):
            error.hint += (
                "; a BI tool asks this for a preview of rows: choose a metric (count, average) and a dimension"
            )
            raise error
        try:
            return self._in_catalog(partial(self._catalog.run, with_dummies(tree, prepared.oids), self._place)).slice(
                0, 0
            )
        except Error as failure:
            raise failure if self.stop.requested else error from None

    def _notices(self, release: Release) -> tuple[tuple[str, str], ...]:
        receipt = release.receipt
        notices = [(text, "") for text in release.notices]
        if receipt.remaining:
            left = "; ".join(f"{scope}: {words}" for scope, words in receipt.remaining.items())
            paid = (
                "price: nothing, answered from stored releases"
                if receipt.reused
                else f"price: {receipt.price or receipt.charged}"
            )
            exact = "" if receipt.reused else f"charged {receipt.charged}, receipt {receipt.id}; "
            # The price comes first: some clients show the first notice alone.
            notices.insert(0, (paid, f"{_error_bars(release)}{exact}remaining: {left}"))
        return tuple(notices)


class _Interrupt:
    """What interrupts a catalog question once it has begun."""

    def __init__(self) -> None:
        self._call: Callable[[], None] | None = None

    def set(self, call: Callable[[], None]) -> None:
        self._call = call

    def __call__(self) -> None:
        if self._call is not None:
            self._call()


def _error_bars(release: Release) -> str:
    """Return half-widths of the bars of a short answer's outputs, in their own units: the widest of each column's rows.

    Long answers are left out, since their bars take time that most clients gain nothing from.
    """
    noisy = [(position, column.name) for position, column in enumerate(release.columns) if column.noisy]
    if not noisy or len(release) * len(noisy) > _MOST_BARS:
        return ""
    parts = []
    try:
        errors = release.error
    except Error:
        return ""
    for position, name in noisy[:_MOST_NAMED]:
        widths = [width for width in errors.column(position).to_pylist() if width is not None]
        if widths and math.isfinite(max(widths)):
            prefix = "at most " if min(widths) < max(widths) else ""
            parts.append(f"{name} \N{PLUS-MINUS SIGN} {prefix}{half_width_text(max(widths))}")
    return f"error bars ({release.confidence * 100:.4g} %): {', '.join(parts)}; " if parts else ""


def _words(piece: Piece) -> set[str]:
    """Return the words of a statement that are no strings, in lower case."""
    return {token.text.lower() for token in piece.tokens() if token.token_type is not TokenType.STRING}


def _is_query(piece: Piece) -> bool:
    """Return whether its first word may begin a question to the catalogs; EXPLAIN and options are for the session."""
    return any(token.text.lower() in _QUERY_WORDS for token in piece.tokens()[:1])


def first_parameter(piece: Piece) -> int | None:
    """Return the character of the first $n (1-based), None when there is none."""
    return next((token.start + 1 for token, number in pairwise(piece.tokens()) if _is_parameter(token, number)), None)


def _is_parameter(token: Token, number: Token) -> bool:
    return token.token_type is TokenType.PARAMETER and token.text == "$" and number.token_type is TokenType.NUMBER


def _is_probe(tree: exp.Expr) -> bool:
    """SELECT ... LIMIT 0 or 1, or WHERE false: what tools send to learn the columns of a table or query."""
    limit = tree.args.get("limit")
    if isinstance(limit, exp.Limit) and limit.expression.name in ("0", "1"):
        return True
    where = tree.args.get("where")
    conditions = (
        where.this.flatten() if where is not None and isinstance(where.this, exp.And) else [where and where.this]
    )
    return any(_never(condition) for condition in conditions if condition is not None)


def _never(condition: exp.Expr) -> bool:
    if isinstance(condition, exp.Boolean):
        return not condition.this
    if not isinstance(condition, exp.EQ):
        return False
    left, right = condition.left.unnest(), condition.right.unnest()
    return isinstance(left, exp.Literal) and isinstance(right, exp.Literal) and left.name != right.name


def _fields(schema: pa.Schema) -> tuple[ResultField, ...]:
    return tuple(
        ResultField(
            column.name,
            _VECTORS[column.name] if column.name in _VECTORS and pa.types.is_list(column.type) else oid_of(column.type),
        )
        for column in schema
    )


def _answer(table: pa.Table) -> StatementResult:
    return StatementResult("SELECT", _fields(table.schema), table)
