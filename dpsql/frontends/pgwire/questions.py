"""Questions of one connection: whether the session or the catalog answers them, and their answers as columns and rows.

`describe` never charges and never touches data; `run` is called once for each portal by `backend`.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import pairwise, starmap
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.engine.fair_queue import FairQueue
from dpsql.engine.memory_account import Held, MemoryAccount
from dpsql.errors.custodian_log import TRACES, registering
from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.catalog import Catalog, CatalogContext
from dpsql.frontends.pgwire.catalog.shape import PG_CATALOG, quoted, relations
from dpsql.frontends.pgwire.commands import Command, moved, read_command
from dpsql.frontends.pgwire.constants.answers import Answerable, answerable, check_values, parameters_of
from dpsql.frontends.pgwire.constants.answers import parsed as parsed_select
from dpsql.frontends.pgwire.constants.query_syntax import Select, WrittenQuery, goes_back, tables_in
from dpsql.frontends.pgwire.constants.tokens import said
from dpsql.frontends.pgwire.parameters import dummies, parameter_types, read_postgres
from dpsql.frontends.pgwire.rows import OIDS, ResultField, StatementResult
from dpsql.frontends.pgwire.settings import Settings
from dpsql.frontends.pgwire.stop import Activity, Stop
from dpsql.frontends.pgwire.writes import CHANGES
from dpsql.plan.plan import group_count
from dpsql.planning.planner import Planned
from dpsql.privacy.loss import PrivacyLoss
from dpsql.release.error_bars.answers import measures_shown
from dpsql.release.release import OutputColumn, Release
from dpsql.release.shape import bar_names, rows_text, sentences
from dpsql.release.value_text import half_width_text
from dpsql.session.background_work import Pace
from dpsql.session.budget import Remaining
from dpsql.session.session import Session
from dpsql.sql.lexer import DIALECT, POSTGRESQL, Piece, as_piece, piece_of
from dpsql.storage.records import dataclass, field, replace

_MOST_BARS, _MOST_PLAIN_BARS = 300, 3_000
_MOST_NAMED = 6
_QUERY_WORDS = {"select", "with", "values", "table", "from", "("}
_CATALOG_WORDS = ("pg_", "information_schema")
_STATEMENT_BYTES, _TOKEN_BYTES, _TREE_BYTES, _OID_BYTES = 2_000, 200, 800, 40
"""Memory of a prepared statement: in all, for each token, for the nodes of its tree, by each token, and for each parameter."""
_WORKING_TIMES = 4
"""Memory in which an answer is computed from noisy numbers, its error bars included, as a multiple of these numbers."""
_NO_SQL = "42601"
"""SQLSTATE of a syntax error."""
_STOPPED = frozenset({"wire_cancelled", "wire_timeout"})
_VALUES_DECIDE = frozenset({"no_groups", "no_rows", "unbounded", "not_listed", "outside_label", "value_spelling"})
"""Slugs of refusals that depend on values in the question."""
_WORDS_DECIDE = frozenset({"wrong_arguments", "setting_unknown", "catalog_type"})
"""Slugs of refusals, beside those of SQLSTATE class 22, that a literal of a certain form in the question avoids."""
LONG_TEXT = 5_000
"""Length in characters above which texts are parsed one at a time; parsing a text of this length takes some hundredths of a
second."""


@dataclass
class PreparedStatement:
    """One prepared statement: what answers it (`kind`), the types of its parameters, and its columns once they are known.
    `inner`: the query inside a command."""

    piece: Piece
    kind: str
    oids: tuple[int, ...] = ()
    command: Command | None = None
    tree: exp.Expr | None = None
    select: WrittenQuery | None = None
    inner: PreparedStatement | None = None
    fields: tuple[ResultField, ...] | None = field(default=None)
    held: Held | None = field(default=None)
    by_command: str = ""
    """The text of the PREPARE that named it; "" if the protocol did."""
    bars: bool = False
    """Whether the answer has columns for the ends of error bars: as `dp.bars` was when the statement was prepared."""

    @property
    def size(self) -> int:
        """Return about how many bytes of memory the statement takes: its text, tokens, tree and columns."""
        tokens = len(self.piece.tokens()) if self.piece.sql else 0
        is_long = len(self.piece.sql) > LONG_TEXT
        each = _TREE_BYTES * (self.tree is not None or self.select is not None) + _TOKEN_BYTES * (not is_long)
        size = _STATEMENT_BYTES + sys.getsizeof(self.piece.sql) + each * tokens + _TOKEN_BYTES * len(self.fields or ())
        size += _OID_BYTES * len(self.oids)
        return size + sys.getsizeof(self.by_command) + (self.inner.size if self.inner is not None else 0)

    def forget_long(self) -> None:
        """Drop the tokens of a long text, so that many prepared statements do not fill the memory."""
        for prepared in (self, self.inner):
            if prepared is not None and len(prepared.piece.sql) > LONG_TEXT:
                prepared.piece.forget()


def prepared_write(piece: Piece, command: Command, written: str) -> PreparedStatement:
    """Return PREPARE of a statement that writes, whose EXECUTE is refused. Raises PostgreSQL's syntax error where a command takes
    no such statement."""
    assert command.query is not None
    if command.kind == "copy":
        raise refuse("read_only", word=written)
    if command.kind == "prepare" and written in (*CHANGES, "SELECT"):
        inner = PreparedStatement(command.query, "command", command=Command("write", written))
        return PreparedStatement(piece, "command", (), command, inner=inner)
    first = command.query.source(command.query.tokens()[0])
    raise said("42601", f'syntax error at or near "{first}"', command.query.offset + 1)


_NO_PROCEDURE = "No procedure matches the given name and argument types. You might need to add explicit type casts."


class Questions:
    """The questions of one connection; used by one thread at a time, except for `stop`."""

    def __init__(
        self,
        session: Session,
        catalog: Catalog,
        settings: Settings,
        process: int,
        texts: FairQueue | None = None,
        activity: Activity | None = None,
        memory: MemoryAccount | None = None,
    ) -> None:
        """`texts`: the queue in which long texts wait to be parsed. `memory`: the account of the connection."""
        self.session, self.settings, self.stop = session, settings, Stop()
        self.memory = MemoryAccount() if memory is None else memory
        self._catalog = catalog
        self.change: Callable[[str, str | None, bool], None] = lambda name, value, local: None
        self.connection_rows: Callable[[str], list[tuple[Any, ...]]] = lambda kind: []
        self._place = CatalogContext(
            catalog.user,
            settings,
            process,
            catalog.tables,
            self._options,
            self._changed,
            self.stop.check,
            self._rows_of_connection,
            self._await_turn,
            self._end_turn,
        )
        self.locks = self._place.locks
        self._turn: ExitStack | None = None
        self._tables = {name.lower() for name in session.policy.visible}
        self._texts = FairQueue(1) if texts is None else texts
        self._activity = Activity() if activity is None else activity

    def require_relation(self, name: str) -> None:
        """Raise PostgreSQL's refusal of a table that does not exist."""
        self._catalog.tables.names.oid("regclass", name, ())

    def goes_back(self, prepared: PreparedStatement) -> bool:
        """Return whether PostgreSQL's cursor for a question goes backwards without SCROLL."""
        select = prepared.select
        if select is None:
            return False
        listed = (relations().get((PG_CATALOG, names[-1])) for names in tables_in(select))
        return goes_back(select, all(relation is not None and relation.kind == "r" for relation in listed))

    def check_may(self, command: Command | None) -> None:
        """Raise PostgreSQL's refusal of a command that writes or calls a procedure, or of the table that it names."""
        if command is not None and command.kind == "write":
            for name in command.words:
                self.require_relation(name)
            raise refuse("read_only", word=command.tag)
        if command is not None and command.kind == "call" and command.query is not None:
            raise self._no_procedure(command.query)

    def _no_procedure(self, query: Piece) -> Error:
        try:
            self._answerable(parsed_select(query.sql), ())
        except Error as error:
            if error.sqlstate == "42883" and error.message.startswith("function "):
                words = error.message.replace("function", "procedure", 1)
                error = said("42883", words, error.position, _NO_PROCEDURE)
            return moved(error, query.offset)
        name = query.sql.split("(")[0].split()[-1]
        return said("42809", f"{name} is not a procedure", None, "To call a function, use SELECT.")

    def is_role(self, name: str) -> bool:
        """Return whether the catalogs list a role."""
        return any(name == role for role, _ in self._catalog.tables.roles.values())

    def _changed(self, name: str, value: str | None, local: bool) -> None:
        self.change(name, value, local)

    def _rows_of_connection(self, kind: str) -> list[tuple[Any, ...]]:
        return self.connection_rows(kind)

    def _await_turn(self) -> None:
        """Hold the turn of long texts until the end of the statement or a wait in it: the interpreter runs one thread at once,
        so that several long answers together take as long, and delay those of all other connections."""
        if self._turn is not None:
            self._turn.enter_context(self._texts.place(self._place.user, self.stop.check))

    def _end_turn(self) -> None:
        """Give the turn of long texts back; the statement may wait for another one."""
        if self._turn is not None:
            self._turn.close()

    def _options(self) -> dict[str, str]:
        """Return the present options of the session; SET replaces them as a whole."""
        return self.session.options.show()

    @contextmanager
    def reading(self, sql: str) -> Iterator[None]:
        """Hold the turn to parse and plan a long text (a short one needs none). While a text is parsed, no other thread of the
        server computes, so several long texts at once would delay every answer, even free ones, until all of them are parsed.
        Raises wire_cancelled and wire_timeout while it waits."""
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
        """Return a prepared statement: what answers it, and the types of its parameters. Raises refusals; nothing is charged."""
        with self._counting_refusals(piece), self.reading(piece.sql):
            return replace(self._understood(piece, declared), bars=self.session.options.bars)

    @contextmanager
    def _counting_refusals(self, piece: Piece) -> Iterator[None]:
        """Count a refusal that is raised before the statement runs: drivers that prepare statements meet most refusals here."""
        try:
            yield
        except Error as error:
            self._activity.failed(self._place.user, error, piece.sql)
            raise

    def check_syntax(self, pieces: Sequence[Piece]) -> None:
        """Raise what makes a statement of a message no SQL, before one of them runs and is charged, as PostgreSQL does; up to an
        option, which may be the dialect of those behind it."""
        for piece in pieces:
            try:
                command = read_command(piece)
                if command is not None and command.is_option:
                    return
                if command is None and (prepared := self._understood(piece, ())).kind == "data":
                    with self._trace(prepared):
                        self.session.planner.parse(piece, None)
            except Error as error:
                if error.sqlstate == _NO_SQL:
                    self._activity.failed(self._place.user, error, piece.sql)
                    raise moved(error, piece.offset) from None

    def _understood(self, piece: Piece, declared: Sequence[int]) -> PreparedStatement:
        words = _words(piece)
        about_data = not words.isdisjoint(self._tables)
        about_catalog = any(
            word.startswith("pg_") or word in ("information_schema", "_pg_expandarray") for word in words
        )
        if (about_data and not about_catalog and first_parameter(piece) is None) or not _is_query(piece):
            inner = _explained(piece)
            if inner is None or (first_parameter(inner) is None and not about_catalog):
                return PreparedStatement(piece, "data", tuple(oid or e.TEXT for oid in declared))
            explained = self._understood(inner, declared)
            if explained.kind == "catalog" and not explained.oids:
                return PreparedStatement(as_piece("EXPLAIN SELECT 1"), "data", ())
            return PreparedStatement(piece, "data", explained.oids)
        if about_catalog or not about_data:
            select = self._catalog.selects.get(piece.sql, lambda: _select(piece, about_data), len(piece.sql))
            kind = "data" if select is None and "from" in words and not about_catalog else self._kind(select)
            if kind == "catalog":
                state, size = self._state()

                def read() -> tuple[Any, ...]:
                    answer = self._answerable(select, declared)
                    return tuple(starmap(ResultField, answer.columns)), answer.parameters

                fields, oids = self._catalog.typed(piece.sql, (tuple(declared), state), read, size)
                return PreparedStatement(piece, kind, oids, select=select, fields=fields)

        def parsed() -> tuple[tuple[int, ...], exp.Expr | None]:
            tree = read_postgres(piece)
            typed = read_postgres(piece, DIALECT) if tree is None else tree
            return parameter_types(typed, declared, self.session.policy), tree

        oids, tree = self._catalog.understood(piece.sql, tuple(declared), parsed)
        return PreparedStatement(piece, "data", oids, tree=tree)

    def _kind(self, select: WrittenQuery | None) -> str:
        """Return what answers a question: the catalog if it reads nothing else, or cannot be read. Raises catalog_mixed."""
        tables = [] if select is None else tables_in(select)
        listed = [names for names in tables if self._catalog.tables.is_catalogued(names)]
        if listed and any(names[-1].lower() in self._tables for names in tables if names not in listed):
            raise refuse("catalog_mixed")
        is_table = select is not None and isinstance(select.body, Select) and select.body.is_table
        if is_table and not listed and tables[0][-1].lower() not in self._tables:
            self.require_relation(".".join(map(quoted, tables[0])))
        return "catalog" if listed or not tables else "data"

    def _answerable(
        self, select: WrittenQuery | None, oids: Sequence[int], values: Sequence[str | None] | None = None
    ) -> Answerable:
        if select is None:
            raise refuse("catalog_query")
        return answerable(select, self._place, oids, values)

    def check_values(self, prepared: PreparedStatement, values: Sequence[str | None]) -> None:
        """Raise what PostgreSQL says at Bind of texts of parameters that are no values of their types."""
        check_values(self._place, prepared.oids, values)

    def constants(self, piece: Piece, oids: Sequence[int]) -> tuple[str | None, ...]:
        """Return the texts of the values that EXECUTE lists, as the types of the parameters. Raises PostgreSQL's errors."""
        try:
            (row,) = self._answerable(parsed_select(piece.sql, lambda parser: parameters_of(parser, oids)), ()).rows()
        except Error as error:
            raise moved(error, piece.offset) from None
        return tuple(value["text"] if isinstance(value, dict) else value for value in row)

    def check_text(self, prepared: PreparedStatement) -> None:
        """Raise what is wrong with a statement whatever the values of its parameters are, as PostgreSQL does when it prepares
        one: some clients send the next message before they read an error of Describe. A cancel request or a timeout is raised at
        once, so that the description is not awaited a second time."""
        if prepared.kind != "data":
            return
        with self._trace(prepared):
            try:
                fields = self._described(prepared, None)
            except Error as error:
                if error.slug in _STOPPED:
                    raise
                if not prepared.oids or _is_of_text(error):
                    self._activity.failed(self._place.user, error, prepared.piece.sql)
                    raise
            else:
                if not prepared.oids:
                    prepared.fields = fields

    def describe(self, prepared: PreparedStatement, values: Sequence[Any] | None = None) -> tuple[ResultField, ...]:
        """Return the columns of a question, and keep them in `prepared`. `values`: those of the parameters (None: dummies,
        because they are not known yet)."""
        if prepared.fields is None:
            counting = self._counting_refusals(prepared.piece) if prepared.kind == "data" else nullcontext()
            with self._trace(prepared), counting:
                prepared.fields = self._described(prepared, values)
        return prepared.fields

    def _trace(self, prepared: PreparedStatement) -> AbstractContextManager[None]:
        """Return the trace span for describing a question about data; for other statements a context that does nothing."""
        return TRACES.span("describe") if prepared.kind == "data" else nullcontext()

    def _described(self, prepared: PreparedStatement, values: Sequence[Any] | None) -> tuple[ResultField, ...]:
        readings = [values] if values is not None else dummies(prepared.oids, prepared.tree)
        for reading in readings[:-1]:
            try:
                return self._fields_with(prepared, reading)
            except Error as error:
                if not (error.sqlstate.startswith("22") or error.slug in _WORDS_DECIDE):
                    raise
        return self._fields_with(prepared, readings[-1])

    def _fields_with(self, prepared: PreparedStatement, values: Sequence[Any]) -> tuple[ResultField, ...]:
        """Return the columns of a question with these values of its parameters."""
        if prepared.kind == "catalog":
            return tuple(starmap(ResultField, self._answerable(prepared.select, prepared.oids).columns))
        try:
            with self.reading(prepared.piece.sql):
                columns = self.session.describe(prepared.piece, list(values) or None)
        except Error as error:
            return self._probe(prepared, error)
        return _data_fields(columns, prepared.bars)

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self, prepared: PreparedStatement, values: Sequence[Any], held: Held) -> StatementResult:
        """Answer a question, which may charge. Raises refusals and faults, whose `charged` says whether a charge stays. `held`:
        the memory of the statement, at the end that of the rows; without room for them there is memory_full."""
        if prepared.kind == "catalog":
            return self._run_catalog(prepared, values, held)
        with (
            TRACES.span("question"),
            self.stop.running(self.session.interrupt, self.settings.statement_seconds()),
        ):
            TRACES.note(user=self._place.user, project=self.session.options.project, door="wire")
            started = time.monotonic()
            try:
                release = self._execute(prepared.piece, list(values) or None, held)
            except Error as error:
                self._activity.failed(self._place.user, error, prepared.piece.sql)
                if self.stop.requested and error.slug == "stopped":
                    raise self.stop.refusal(error.charged, error.hint) from None
                return self._structure(prepared, error)
            with registering(charged=release.receipt.is_paid):
                if release.receipt.id:
                    self._activity.answered(self._place.user, release, time.monotonic() - started, prepared.piece.sql)
                fields = _data_fields(release.columns, prepared.bars)
                tag, table = ("SELECT", _data_rows(release, prepared.bars)) if fields else ("SET", None)
                if prepared.bars and table is not None:
                    held.resize(table.get_total_buffer_size())
                return StatementResult(tag, fields, table, self._notices(release), is_paid=release.receipt.is_paid)

    def _execute(self, piece: Piece, values: list[Any] | None, held: Held) -> Release:
        """Answer like `Session.execute`, but parse and plan a long text in its turn, and scan the data after that turn has
        ended. Memory that the answer is known to need is held before anything is charged."""
        pace = Pace(self.session.policy)
        with self.reading(piece.sql):
            statement = self.session.parse(piece, values)
            if statement.kind != "query":
                release = self.session.execute(piece, values)
                held.resize(release.table.get_total_buffer_size())
                return release
            planned = self.session.plan(statement, values)
        held.at_least(self._foreseen(planned))
        try:
            release = self.session.answer(planned, pace=pace)
            self._hold_rows(release, held)
        except Error as error:
            if error.slug == "memory_full" and error.charged and planned.options.reuse:
                error.hint = f"what was measured is stored, and asking again charges nothing for it; {error.hint}"
            raise
        return release

    def _foreseen(self, planned: Planned) -> int:
        """Return the bytes in which the noisy numbers of public groups are combined; at most half of what the connection may
        hold, because this is an estimate. How many private keys there will be is not known before."""
        size = 0
        for priced in planned.price.blocks:
            block, numbers = priced.block, len(priced.noise.terms) + len(priced.block.keys)
            size += 8 * numbers * group_count([key.values for key in block.keys], block.combinations)
        most = self.memory.most
        return _WORKING_TIMES * size if most is None else min(_WORKING_TIMES * size, most // 2)

    @staticmethod
    def _hold_rows(release: Release, held: Held) -> None:
        """Hold the memory of an answer's rows. Raises memory_full, whose `charged` says whether they were paid for."""
        try:
            held.resize(release.table.get_total_buffer_size())
        except Error as error:
            error.charged = not release.reused and release.loss != PrivacyLoss.nothing()
            raise

    def _run_catalog(self, prepared: PreparedStatement, values: Sequence[str | None], held: Held) -> StatementResult:
        """Answer a question about the catalogs or none, or with what was answered before in this state."""
        state, size = self._state()
        parameters = repr(values)

        def ask() -> tuple[Any, pa.Table]:
            answer = self._answerable(prepared.select, prepared.oids, values)
            return tuple(starmap(ResultField, answer.columns)), answer.table()

        with self.stop.waiting(self.settings.statement_seconds()), ExitStack() as turn:
            self._turn = turn
            try:
                key = parameters, prepared.oids, state
                fields, table = self._catalog.repeated(prepared.piece.sql, key, ask, size + len(parameters))
            finally:
                self._turn = None
        held.resize(table.get_total_buffer_size())
        return StatementResult("SELECT", fields, table)

    def _state(self) -> tuple[Hashable, int]:
        """Return what questions about the catalogs or none depend on beside their text, and its characters."""
        settings = tuple(self.settings.snapshot().items())
        return (settings, self.session.options), sum(len(name) + len(value) for name, value in settings)

    def _structure(self, prepared: PreparedStatement, error: Error) -> StatementResult:
        """Return the columns without rows to a tool that reads the columns of a table, for instance through LIMIT 1; for any
        other question, raise its refusal."""
        fields = self._probe(prepared, error)
        notice = (
            "rows of people are not shown: these are the columns only",
            "ask for an aggregate: SELECT COUNT(*) ...",
        )
        table = pa.table([pa.array([], pa.string()) for _ in fields], names=[str(k) for k, _ in enumerate(fields)])
        return StatementResult("SELECT", fields, table, notices=(notice,))

    def _probe(self, prepared: PreparedStatement, error: Error) -> tuple[ResultField, ...]:
        if error.sqlstate == "42601":
            parsed_select(prepared.piece.sql)  # which says where PostgreSQL sees it
        if error.slug not in ("raw_rows", "rows_clause"):
            raise error
        tree = prepared.tree or read_postgres(prepared.piece)
        if isinstance(tree, exp.Query) and not any(
            select.find(exp.Column, exp.Star, exp.Null) for select in tree.selects
        ):
            error.hint = (
                "whether there are such rows is a question about their number: SELECT COUNT(*) > 0 FROM ... WHERE ..."
            )
            raise error
        if tree is None or not _is_probe(tree):
            error.hint += (
                "; a BI tool asks this for a preview of rows: choose a metric (count, average) and a dimension"
            )
            raise error
        try:
            select = parsed_select(prepared.piece.sql)
            return tuple(starmap(ResultField, self._answerable(select, prepared.oids).columns))
        except Error:
            raise error from None

    def _notices(self, release: Release) -> tuple[tuple[str, str], ...]:
        receipt = release.receipt
        notices = [(text, "") for text in (*_touching(release), *self.session.news(release))]
        if receipt.remaining:
            left = "; ".join(f"{scope}: {words}" for scope, words in receipt.remaining.items())
            paid = (
                "price: nothing, answered from stored releases"
                if receipt.reused
                else f"price: {receipt.price or receipt.charged}"
            )
            exact = "" if receipt.reused else f"charged {receipt.charged}, receipt {receipt.id}; "
            # The price comes first: some clients show the first notice alone.
            if isinstance(receipt.remaining, Remaining):
                exact += f"left: {receipt.remaining.questions_text(self.session.policy)}; "
            notices.insert(0, (paid, f"{_error_bars(release)}{exact}remaining: {left}"))
        return tuple(notices)


def _touching(release: Release) -> tuple[str, ...]:
    """Return sentences on numbers of a short answer that touch a bound or are chosen."""
    if not _is_short(release):
        return ()
    try:
        return sentences(release.described)
    except Error:
        return ()


def _is_short(release: Release) -> bool:
    """Return whether an answer has few noisy numbers, or not very many that are all measures: their bars take microseconds."""
    noisy = [position for position, is_noisy in enumerate(release.answered.noisy) if is_noisy]
    count = len(release) * len(noisy)
    if count > _MOST_BARS:
        return count <= _MOST_PLAIN_BARS and all(map(measures_shown(release.answered).__getitem__, noisy))
    return count > 0


def _error_bars(release: Release) -> str:
    """Return the half widths of the error bars of a short answer, in the units of each column: the widest over the column's rows.

    Long answers get no text, because computing their bars takes time and most clients gain nothing from it.
    """
    if not _is_short(release):
        return ""
    names = release.table.column_names
    noisy = [(position, names[position]) for position, is_noisy in enumerate(release.answered.noisy) if is_noisy]
    parts = []
    try:
        errors = release.error
    except Error:
        return ""
    ranks = [column.rank_error for column in release.described]
    for position, name in noisy[:_MOST_NAMED]:
        rank = ranks[position]
        if rank is not None:
            parts.append(f"{name} \N{PLUS-MINUS SIGN} {rows_text(rank)} in rank")
        widths = [width for width in errors.column(position).to_pylist() if width is not None]
        if widths and math.isfinite(max(widths)):
            prefix = "at most " if min(widths) < max(widths) else ""
            parts.append(f"{name} \N{PLUS-MINUS SIGN} {prefix}{half_width_text(max(widths))}")
    return f"error bars ({release.confidence * 100:.4g} %): {', '.join(parts)}; " if parts else ""


def _select(piece: Piece, about_data: bool) -> WrittenQuery | None:
    """Return a question as the catalog reads it; None for one that it does not read. Raises PostgreSQL's syntax errors, but for a
    question that names data dpsql's own."""
    try:
        return parsed_select(piece.sql)
    except Error:
        if about_data:
            return None
        raise


def _words(piece: Piece) -> set[str]:
    """Return the words of a statement, without its strings, in lower case."""
    return {token.text.lower() for token in piece.tokens() if token.token_type is not TokenType.STRING}


def _explained(piece: Piece) -> Piece | None:
    """Return the question that EXPLAIN stands before; None for other statements."""
    tokens = piece.tokens()
    starts = (k for k, token in enumerate(tokens) if token.text.lower() in _QUERY_WORDS - {"(", "from"})
    start = next(starts, 0) if tokens and tokens[0].text.lower() == "explain" else 0
    return piece_of(piece.sql, tokens[start:], piece.dialect) if start else None


def _is_query(piece: Piece) -> bool:
    """Return whether the first word of a statement may begin a catalog query; EXPLAIN and options go to the session."""
    return any(token.text.lower() in _QUERY_WORDS for token in piece.tokens()[:1])


def first_parameter(piece: Piece) -> int | None:
    """Return the position of the first $n in characters (1-based), or None if there is none."""
    return next((token.start + 1 for token, number in pairwise(piece.tokens()) if _is_parameter(token, number)), None)


def _is_parameter(token: Token, number: Token) -> bool:
    return token.token_type is TokenType.PARAMETER and token.text == "$" and number.token_type is TokenType.NUMBER


def _is_of_text(error: Error) -> bool:
    """Return whether an error of a statement does not depend on the values of its parameters, only on their types."""
    return error.sqlstate.startswith(("42", "0A", "ZP0")) and error.slug not in _VALUES_DECIDE


def _is_probe(tree: exp.Expr) -> bool:
    """Return whether a query has LIMIT 0 or 1, or WHERE false: tools send these to learn the columns of a table or query. LIMIT 1
    with a condition or a parameter looks for a row: "no row" would be a false answer to that."""
    limit = tree.args.get("limit")
    number = limit.expression if isinstance(limit, exp.Limit) else None
    if isinstance(number, exp.Literal) and number.name in ("0", "1"):
        return number.name == "0" or tree.find(exp.Where, exp.Parameter) is None
    where = tree.args.get("where")
    conditions = where.this.flatten() if where and isinstance(where.this, exp.And) else [where and where.this]
    return any(_never(condition) for condition in conditions if condition is not None)


def _never(condition: exp.Expr) -> bool:
    if isinstance(condition, exp.Boolean):
        return not condition.this
    if not isinstance(condition, exp.EQ):
        return False
    left, right = condition.left.unnest(), condition.right.unnest()
    return isinstance(left, exp.Literal) and isinstance(right, exp.Literal) and left.name != right.name


def _data_fields(columns: Sequence[OutputColumn], bars: bool) -> tuple[ResultField, ...]:
    """Return the columns of an answer from data, with those of the ends of its error bars if there are any behind them: a program
    that reads columns by their position, as Superset does, reads what it asked for."""
    ends = (name for column in columns if bars and column.noisy for name in bar_names(column.name))
    plain = (ResultField(column.name, OIDS[column.type]) for column in columns)
    return (*plain, *(ResultField(name, e.FLOAT8) for name in ends))


def _data_rows(release: Release, bars: bool) -> pa.Table:
    """Return the rows of an answer in the order of `_data_fields`."""
    if not bars:
        return release.to_arrow()
    plain, ends = list[int](), list[int]()
    for column in release.columns:
        start = len(plain) + len(ends)
        plain.append(start)
        ends += [start + 1, start + 2] * column.noisy
    return release.to_arrow(bars=True).select(plain + ends)
