"""Protocol state of one logged-in connection: prepared statements, portals, transactions. Messages in, bytes out; no sockets.

A portal runs its statement once: its rows stay until they are fetched or it is closed (privacy.md 7: no second charge). What is
kept for a client is held in the account of the connection's memory (`engine.memory_account`).
`handle` yields bytes piece by piece, so that a slow reader occupies the memory of one piece.
"""

from __future__ import annotations

import logging
import re
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from dpsql.engine.memory_account import Held
from dpsql.errors.custodian_log import registered, registering
from dpsql.errors.exceptions import REGISTER, Error, refuse
from dpsql.frontends.pgwire import messages as m
from dpsql.frontends.pgwire.commands import (
    ROLES,
    Command,
    moved,
    read_command,
    role_command,
    unquoted,
    without_local,
    without_options,
    written_word,
)
from dpsql.frontends.pgwire.constants.tokens import said
from dpsql.frontends.pgwire.encodings import parameter_text, read_parameter
from dpsql.frontends.pgwire.parameters import declared_types, values_in
from dpsql.frontends.pgwire.questions import PreparedStatement, Questions, first_parameter, prepared_write
from dpsql.frontends.pgwire.rows import (
    ResultField,
    Rows,
    StatementResult,
    copy_messages,
    described,
    formats_for,
    read_options,
)
from dpsql.frontends.pgwire.transactions import Transaction
from dpsql.sql.lexer import Piece, read_script
from dpsql.sql.parse import MOST_CHARACTERS
from dpsql.storage.records import dataclass, replace

MOST_KEPT = 1_000
"""Limit on the prepared statements, and on the portals, of one connection."""
MOST_STATEMENTS = 1_000
"""Limit on the statements in one message."""
_ALLOWANCE = 1 << 16
"""Memory in bytes that a statement needs at least, so that none begins whose smallest answer has no room."""
_PORTAL_BYTES, _VALUE_BYTES = 2_000, 40


@dataclass
class Portal:
    """A statement with its values. `rows` and `answer` are set once it has run; a failed one is `broken`. `held`: the memory of
    everything but the rows."""

    prepared: PreparedStatement
    values: tuple[Any, ...] = ()
    formats: tuple[int, ...] = ()
    cursor: bool = False
    hold: bool = False
    scrolls: bool = False
    broken: bool = False
    answer: StatementResult | None = None
    rows: Rows | None = None
    notices_sent: bool = False
    held: tuple[Held, ...] = ()

    @property
    def is_paid(self) -> bool:
        """Return whether something was charged for the rows."""
        return self.answer is not None and self.answer.is_paid

    def close(self) -> None:
        """Release the memory of the portal, which is not used any more."""
        if self.rows is not None:
            self.rows.close()
        for held in self.held:
            held.release()
        self.held = ()


class Backend:
    """Answers to the messages of one connection. Created after login; `handle` is called for one message at a time."""

    def __init__(self, questions: Questions) -> None:
        self._questions, self._memory = questions, questions.memory
        self._transaction = Transaction(questions)
        self._statements: dict[str, PreparedStatement] = {}
        self._portals: dict[str, Portal] = {}
        self._skipping, self._text = False, ""
        self._reported: dict[str, str] = {}
        """The reported settings as the client knows them."""
        self._channels: dict[str, None] = {}
        """What LISTEN named; nothing is ever sent to a channel here."""
        questions.connection_rows = self._listed
        self._handlers: dict[type, Callable[[Any], Iterator[bytes]]] = {
            m.Query: self._query, m.Parse: self._parse, m.Bind: self._bind, m.Describe: self._describe,
            m.Execute: self._execute, m.Close: self._close, m.Sync: self._sync,
        }  # fmt: skip

    def reports(self) -> bytes:
        """Return the messages that report settings: all after the login, then those that changed since."""
        before, self._reported = self._reported, self._questions.settings.reported()
        return b"".join(m.parameter_status(*pair) for pair in self._reported.items() if pair not in before.items())

    def ready(self) -> bytes:
        """Return the message ReadyForQuery with the state of the transaction."""
        return m.ready(self._transaction.status)

    def handle(self, message: m.Message) -> Iterator[bytes]:
        """Answer one message. Never raises an Exception: errors become ErrorResponse, and later messages are skipped
        until Sync."""
        handler = self._handlers.get(type(message))
        if handler is None or (self._skipping and not isinstance(message, m.Sync)):
            return
        try:
            yield from handler(message)
        except Exception as error:
            if isinstance(error, Error) and isinstance(message, (m.Query, m.Parse)):
                error = in_words_of_postgresql(error, message.sql)
            yield self._failed(error)
            if isinstance(message, m.Query):
                yield self._end()
            else:
                self._skipping = True

    def rejected(self, kind: bytes, error: Error) -> bytes:
        """Return the answer to a message with valid framing and invalid contents (a text that is not UTF-8, a field that is
        missing), which counts as failed."""
        if self._skipping and kind != b"S":
            return b""
        self._skipping = kind not in (b"Q", b"F", b"S")
        return self._failed(error) + (b"" if self._skipping else self._end())

    def _failed(self, error: Exception) -> bytes:
        """Return the message of a registered error; one generic message for any other exception."""
        self._transaction.fail()
        return error_bytes(registered(error, charged=False))

    # --- simple queries -----------------------------------------------------------------------------------------------

    def _query(self, message: m.Query) -> Iterator[bytes]:
        self._drop_statement("")
        self._text = message.sql
        with self._questions.reading(message.sql):
            pieces = self._pieces(message.sql)
            if pieces[1:]:
                self._questions.check_syntax(pieces)
        if not pieces:
            yield m.EMPTY_QUERY
        self._transaction.several = len(pieces) > 1
        for piece in pieces:
            try:
                yield from self._simple(piece)
            except Error as error:
                raise moved(error, piece.offset) from error.__cause__
        yield self._end()

    def _pieces(self, text: str) -> tuple[Piece, ...]:
        """Return the statements of a text, lexed once. Raises too_long, text_unfinished, wire_limit."""
        if len(text) > MOST_CHARACTERS:
            raise refuse("too_long", most=MOST_CHARACTERS)
        script = read_script(text, self._questions.dialect_of(text))
        if script.unfinished:
            raise refuse("text_unfinished", what=script.unfinished, position=script.position)
        if len(script.pieces) > MOST_STATEMENTS:
            raise refuse("wire_limit", most=MOST_STATEMENTS, what="statements")
        return script.pieces

    def _simple(self, piece: Piece) -> Iterator[bytes]:
        prepared = self._prepared(piece, ())
        if prepared.oids:
            raise refuse("parameter_none", number=1, position=first_parameter(piece))
        portal = Portal(prepared)
        try:
            command = prepared.command
            if command is not None and command.kind == "fetch":
                cursor = self._portals.get(command.name)
                portal.formats = (
                    cursor.formats if cursor is not None and cursor.cursor else ()
                )  # those of a BINARY cursor
            self._ask(portal)
            with registering(charged=portal.is_paid):
                yield from self._sent(portal, None, describe=True)
        finally:
            portal.close()

    def _end(self) -> bytes:
        self._transaction.settle()
        self._text = ""
        if self._transaction.status == "I":
            self._end_portals(held=True)
        return self.reports() + self.ready()

    # --- extended queries ---------------------------------------------------------------------------------------------

    def _parse(self, message: m.Parse) -> Iterator[bytes]:
        self._check_name(message.name)
        with self._questions.reading(message.sql):
            pieces = self._pieces(message.sql)
        if len(pieces) > 1:
            raise refuse("wire_many")
        piece = pieces[0] if pieces else Piece("")
        try:
            prepared = self._prepared(piece, message.oids)
        except Error as error:
            raise moved(error, piece.offset) from None
        self._drop_statement(message.name)
        try:
            self._questions.check_text(prepared)
        except Error as error:
            raise moved(error, piece.offset) from None
        self._store(message.name, prepared)
        yield m.PARSE_COMPLETE

    def _check_name(self, name: str) -> None:
        """Raise statement_known and wire_limit: a prepared statement cannot have this name, or there are too many."""
        if name and name in self._statements:
            raise refuse("statement_known", name=name)
        if len(self._statements) >= MOST_KEPT:
            raise refuse("wire_limit", most=MOST_KEPT, what="prepared statements")

    def _store(self, name: str, prepared: PreparedStatement) -> None:
        size = prepared.size
        prepared.forget_long()
        prepared.held = self._reserved(size, name, prepared)
        self._statements[name] = prepared

    def _drop_statement(self, name: str) -> None:
        """Drop the prepared statement of this name, if there is one. Its memory stays as long as a portal has it."""
        prepared = self._statements.pop(name, None)
        if prepared is not None and prepared.held is not None:
            prepared.held.release()

    def _prepared(self, piece: Piece, oids: Sequence[int]) -> PreparedStatement:
        """Prepare a statement. In a failed transaction only commands that end it are accepted."""
        command = read_command(piece) if piece.sql else None
        if self._transaction.status == "E" and (command is None or command.kind not in Transaction.ENDS) and piece.sql:
            raise refuse("transaction_failed")
        if not piece.sql:
            return PreparedStatement(piece, "empty")
        self._questions.check_may(command)
        if command is None or (command.kind == "show" and command.is_option):
            return self._questions.prepare(without_options(piece), oids)
        if command.kind in ("set", "reset") and command.is_option:
            session_piece = without_local(piece) if command.local else piece
            return replace(self._questions.prepare(session_piece, oids), command=command)
        if command.query is None or command.kind == "execute":
            return PreparedStatement(piece, "command", command=command)
        if command.kind == "prepare":
            oids = declared_types(command.words)
        if written := written_word(command.query, command.query.tokens()):
            return prepared_write(piece, command, written)
        try:
            inner = self._questions.prepare(command.query, oids)
            if command.kind == "declare" and not inner.oids:
                self._questions.describe(inner)
        except Error as error:
            raise moved(error, command.query.offset) from None
        oids = () if command.kind == "prepare" else inner.oids
        return PreparedStatement(piece, "command", oids, command, inner=inner)

    def _bind(self, message: m.Bind) -> Iterator[bytes]:
        prepared = self._statement(message.statement)
        if self._transaction.status == "E" and not self._may_end(prepared):
            raise refuse("transaction_failed")
        if len(message.values) != len(prepared.oids):
            name, got, want = message.statement, len(message.values), len(prepared.oids)
            raise refuse("wire_parameters", got=got, name=name, want=want)
        if message.portal and message.portal in self._portals:
            raise refuse("portal_known", name=message.portal)
        formats = formats_for(message.formats, len(message.values), "parameter")
        read = parameter_text if prepared.kind == "catalog" else read_parameter
        values = tuple(
            read(oid, form, data, number)
            for number, (oid, form, data) in enumerate(zip(prepared.oids, formats, message.values, strict=True), 1)
        )
        portal = Portal(prepared, values, message.result_formats)
        if prepared.kind == "catalog":
            self._questions.check_values(prepared, values)
            self._check_formats(portal)
        values_bytes = sum(_VALUE_BYTES + 3 * len(data or b"") for data in message.values)
        size = _PORTAL_BYTES + values_bytes + 8 * len(message.result_formats)
        self._keep(message.portal, portal, size)
        yield m.BIND_COMPLETE

    def _describe(self, message: m.Describe) -> Iterator[bytes]:
        if message.kind == "S":
            prepared = self._statement(message.name)
            before = m.parameter_description(prepared.oids)
            fields = self._fields(prepared, None)
            formats: tuple[int, ...] = (0,) * len(fields)
        else:
            portal = self._portal(message.name, "portal")
            fields = self._fields(portal.prepared, portal.values)
            formats, before = formats_for(portal.formats, len(fields)), b""
        if fields and self._transaction.status == "E":
            raise refuse("transaction_failed")
        yield before + (described(fields, formats) if fields else m.NO_DATA)

    def _execute(self, message: m.Execute) -> Iterator[bytes]:
        portal = self._portal(message.portal, "portal")
        self._text = portal.prepared.piece.sql
        if self._transaction.status == "E" and not self._may_end(portal.prepared):
            raise refuse("transaction_failed")
        self._ask(portal)
        with registering(charged=portal.is_paid):
            yield from self._sent(portal, message.max_rows or None, describe=False)

    def _close(self, message: m.Close) -> Iterator[bytes]:
        if message.kind == "S":
            self._drop_statement(message.name)
        else:
            self._drop_portals(lambda name, portal: name != message.name)
        yield m.CLOSE_COMPLETE

    def _sync(self, message: m.Sync) -> Iterator[bytes]:
        self._skipping = False
        yield self._end()

    def _statement(self, name: str) -> PreparedStatement:
        if name not in self._statements:
            raise refuse("statement_unknown", name=name)
        return self._statements[name]

    def _portal(self, name: str, kind: str = "cursor") -> Portal:
        if name not in self._portals:
            raise refuse("portal_unknown", kind=kind, name=name)
        return self._portals[name]

    def _keep(self, name: str, portal: Portal, size: int) -> None:
        """Keep a portal of `size` bytes, in place of the one with this name."""
        if len(self._portals) >= MOST_KEPT:
            raise refuse("wire_limit", most=MOST_KEPT, what="portals")
        self._drop_portals(lambda other, _: other != name)
        held = self._reserved(size, name, portal.prepared)
        portal.held = (held,) if portal.prepared.held is None else (held, portal.prepared.held.share())
        self._portals[name] = portal

    def _reserved(self, size: int, name: str, prepared: PreparedStatement) -> Held:
        """Return the memory of a statement or portal of `size` bytes without its name. Raises memory_full, unless it frees
        memory."""
        forced = len(name) <= _MOST_FREEING and size <= _MOST_FREEING_BYTES and _frees(prepared)
        return self._memory.reserve(size + sys.getsizeof(name), "statements", forced=forced)

    def _listed(self, kind: str) -> list[tuple[Any, ...]]:
        """Return the rows of pg_prepared_statements or pg_cursors, or the text that is answered ("query")."""
        if kind == "query":
            return [(self._text,)]
        if kind == "channels":
            return [(name,) for name in self._channels]
        now = datetime.now(UTC).replace(tzinfo=None)
        if kind == "cursors":
            return [
                (name, portal.prepared.by_command, portal.hold, portal.formats == (1,), portal.scrolls, now)
                for name, portal in self._portals.items()
                if portal.cursor
            ]
        rows = list[tuple[Any, ...]]()
        for name, prepared in self._statements.items():
            columns = [field.oid for field in prepared.fields or ()]
            text = prepared.by_command or prepared.piece.sql
            rows.append((name, text, now, list(prepared.oids), columns, bool(prepared.by_command), 0, 0))
        return [row for row in rows if row[0]]

    def _drop_portals(self, stays: Callable[[str, Portal], bool]) -> None:
        """Drop the portals for which `stays` is false, and release their memory."""
        portals = self._portals
        self._portals = {name: portal for name, portal in portals.items() if stays(name, portal)}
        for name in portals.keys() - self._portals.keys():
            portals[name].close()

    def _end_portals(self, held: bool) -> None:
        """Drop portals at the end of a transaction; cursors WITH HOLD stay if `held`."""
        self._drop_portals(lambda _, portal: held and portal.hold)

    @staticmethod
    def _may_end(prepared: PreparedStatement) -> bool:
        return prepared.kind == "empty" or (prepared.command is not None and prepared.command.kind in Transaction.ENDS)

    # --- columns and rows ---------------------------------------------------------------------------------------------

    def _fields(self, prepared: PreparedStatement, values: Sequence[Any] | None) -> tuple[ResultField, ...]:
        """Return the columns of a statement without running it."""
        command = prepared.command
        if prepared.kind == "empty" or (command is not None and command.kind in ("copy", "declare", "prepare")):
            return ()
        if command is None:
            return self._questions.describe(prepared, values)
        if command.kind == "fetch":
            return self._fields(self._portal(command.name).prepared, self._portal(command.name).values)
        if command.kind == "execute":
            return self._fields(self._statement(command.name), None)
        return self._transaction.fields(command)

    def _ask(self, portal: Portal) -> None:
        """Run the statement of a portal, once. A failed portal is not run again, unless there was no memory and no charge."""
        if portal.broken:
            raise refuse("portal_broken")
        if portal.answer is not None:
            return
        portal.broken = True
        self._check_formats(portal)
        try:
            answer = self._answer(portal)
        except Error as error:
            portal.broken = error.slug != "memory_full" or error.charged
            raise
        if answer.table is not None:
            fields = answer.fields if portal.prepared.fields is None else portal.prepared.fields
            portal.rows = Rows(fields, answer.table, answer.held, scrolls=portal.scrolls)
        portal.answer = replace(answer, table=None, held=None)
        portal.broken = False

    def _answer(self, portal: Portal) -> StatementResult:
        """Return the answer of a portal's statement; the memory of its rows is held."""
        prepared = portal.prepared
        if prepared.kind == "empty":
            return StatementResult("")
        self._transaction.enter()
        if prepared.command is None:
            self._transaction.has_read = True
            settings = self._questions.settings
            before = settings.snapshot()

            def change(name: str, value: str | None, local: bool) -> None:
                kind = "reset" if value is None else "set"
                command = Command(kind, "SET", name, value or "", words=("LOCAL",) * local)
                if value is not None and name.lower() in ROLES:
                    command = role_command(name.upper(), value)
                self._transaction.run(command)

            self._questions.change = change
            try:
                with self._memory.statement(_ALLOWANCE, "rows") as held:
                    answer = self._questions.run(prepared, portal.values, held)
            except Error:
                settings.restore(before)
                raise
            return replace(answer, held=held)
        answer = self._command(prepared, prepared.command, portal.values)
        if answer.table is None or answer.held is not None:
            return answer
        return replace(answer, held=self._memory.reserve(answer.table.get_total_buffer_size(), "rows"))

    def _check_formats(self, portal: Portal) -> None:
        """Raise wire_format and wire_formats before anything is charged or fetched. A statement without columns takes any."""
        columns = self._fields(portal.prepared, portal.values) if len(portal.formats) > 1 else ()
        formats_for(portal.formats, len(columns) or len(portal.formats))

    def _sent(self, portal: Portal, most: int | None, describe: bool) -> Iterator[bytes]:
        """Yield the next rows of a portal that has run, then its tag or PortalSuspended."""
        answer = portal.answer
        assert answer is not None
        command = portal.prepared.command
        if not portal.notices_sent:
            portal.notices_sent = True
            heard = answer.notices if self._questions.settings.hears("NOTICE") else ()
            yield b"".join(m.notice_response(text, detail=detail) for text, detail in heard)
            warned = answer.warnings if self._questions.settings.hears("WARNING") else ()
            yield b"".join(m.notice_response(text, severity="WARNING", sqlstate=state) for state, text in warned)
        if portal.prepared.kind == "empty":
            yield m.EMPTY_QUERY
            return
        if command is not None and command.kind == "copy" and portal.rows is not None:
            count = portal.rows.left
            yield from copy_messages(portal.rows, read_options(command.words))
            yield m.complete(f"COPY {count}")
            return
        if portal.rows is None:
            yield m.complete(answer.tag)
            return
        formats = formats_for(portal.formats, len(portal.rows.fields))
        if describe:
            yield described(portal.rows.fields, formats)
        before = portal.rows.left
        yield from portal.rows.messages(most, formats)
        count = before - portal.rows.left
        if most is not None and count == most:
            yield m.PORTAL_SUSPENDED
        else:
            yield m.complete(f"{answer.tag} {count}" if answer.tag in ("SELECT", "FETCH") else answer.tag)

    # --- commands -----------------------------------------------------------------------------------------------------

    def _command(self, prepared: PreparedStatement, command: Command, values: tuple[Any, ...]) -> StatementResult:
        if command.kind in ("fetch", "move"):
            return self._fetched(command)
        if command.kind == "declare":
            return self._declared(prepared, command, values)
        if command.kind == "copy":
            read_options(command.words)
            return self._inner(Portal(self._question_in(prepared), values))
        if command.kind == "prepare":
            return self._prepare(prepared, command)
        if command.kind == "execute":
            named = self._statement(command.name)
            self._questions.check_may(named.command)
            if named.command is not None:
                raise refuse("wire_prepare", word=f"EXECUTE of {named.command.tag}")
            values = (
                () if command.query is None or not named.oids else self._questions.constants(command.query, named.oids)
            )
            return self._inner(Portal(named, values_in(command.name, values, named.oids, named.kind == "catalog")))
        if command.kind == "explain_execute":
            self._statement(command.name)
            raise refuse("wire_prepare", word="EXPLAIN EXECUTE")
        if command.kind in ("listen", "unlisten"):
            self._listen(command)
        if command.kind == "close":
            return self._closed(command)
        if command.kind in ("deallocate", "discard"):
            return self._forgotten(command)
        if prepared.kind == "data":
            with self._memory.reserve(0, "rows") as held:
                return self._transaction.change_option(command, lambda: self._questions.run(prepared, values, held))
        answer = self._transaction.run(command)
        if command.kind in ("commit", "rollback"):
            self._end_portals(held=command.kind == "commit")
        return answer

    def _listen(self, command: Command) -> None:
        if command.kind == "listen":
            if len(self._channels) >= MOST_KEPT:
                raise refuse("wire_limit", most=MOST_KEPT, what="channels")
            self._channels[command.name[:63]] = None
        elif command.name == "*":
            self._channels.clear()
        else:
            self._channels.pop(command.name[:63], None)

    @staticmethod
    def _question_in(prepared: PreparedStatement) -> PreparedStatement:
        """Return the query inside a command as a statement whose columns are not described yet."""
        assert prepared.inner is not None
        return replace(prepared.inner, fields=None)

    def _inner(self, portal: Portal) -> StatementResult:
        """Return the answer of the query inside a command, with its rows."""
        try:
            self._ask(portal)
        except Error as error:
            raise moved(error, portal.prepared.piece.offset) from error.__cause__
        assert portal.answer is not None
        rows = portal.rows
        return portal.answer if rows is None else replace(portal.answer, table=rows.table, held=rows.held)

    def _prepare(self, prepared: PreparedStatement, command: Command) -> StatementResult:
        """Keep the query of PREPARE as if the protocol had prepared it."""
        self._check_name(command.name)
        inner = replace(self._question_in(prepared), by_command=prepared.piece.sql[:_MOST_FREEING_BYTES])
        try:
            self._questions.check_text(inner)
        except Error as error:
            raise moved(error, inner.piece.offset) from None
        if inner.kind == "catalog":
            self._questions.describe(inner)
        self._store(command.name, inner)
        return StatementResult(command.tag)

    def _declared(self, prepared: PreparedStatement, command: Command, values: tuple[Any, ...]) -> StatementResult:
        hold = "HOLD" in command.words
        if not hold:
            self._transaction.require("DECLARE CURSOR")
        if command.name in self._portals:
            raise refuse("portal_known", name=command.name)
        inner = replace(self._question_in(prepared), by_command=self._text[:_MOST_FREEING_BYTES])
        formats = (1,) if "BINARY" in command.words else ()
        size = _PORTAL_BYTES + prepared.size
        inner.forget_long()
        scrolls = "SCROLL" in command.words or ("NO SCROLL" not in command.words and self._questions.goes_back(inner))
        self._keep(command.name, Portal(inner, values, formats, cursor=True, hold=hold, scrolls=scrolls), size)
        return StatementResult(command.tag)

    def _fetched(self, command: Command) -> StatementResult:
        """Return the next rows of a cursor; the first FETCH runs its query."""
        cursor = self._portal(command.name)
        first = cursor.answer is None
        self._ask(cursor)
        assert cursor.answer is not None
        if cursor.rows is None:
            raise refuse("portal_unknown", kind="cursor", name=command.name)
        is_move = command.kind == "move"
        fetched = (
            StatementResult(f"MOVE {cursor.rows.move(command.value)}") if is_move else cursor.rows.part(command.value)
        )
        return replace(fetched, notices=cursor.answer.notices if first else ())

    def _closed(self, command: Command) -> StatementResult:
        if command.name:
            self._portal(command.name)
            self._drop_portals(lambda name, portal: name != command.name)
        else:
            self._drop_portals(lambda _, portal: not portal.cursor)
        return StatementResult(command.tag)

    def _forgotten(self, command: Command) -> StatementResult:
        if command.tag == "DISCARD ALL" and (self._transaction.status != "I" or self._transaction.several):
            raise said("25001", "DISCARD ALL cannot run inside a transaction block")
        if command.kind == "deallocate" and command.name:
            self._statement(command.name)
            self._drop_statement(command.name)
        elif command.kind == "deallocate" or command.name == "ALL":
            for name in list(self._statements):
                self._drop_statement(name)
        if command.name == "ALL" and command.kind == "discard":
            self._drop_portals(lambda *_: False)
            self._channels.clear()
            self._questions.locks.clear()
            return self._transaction.run(Command("reset", command.tag, "all"))
        return StatementResult(command.tag)


_FREEING = frozenset(
    {"close", "commit", "rollback", "rollback_to", "release", "deallocate", "discard", "reset", "fetch", "move"}
)
_MOST_FREEING, _MOST_FREEING_BYTES = 200, 50_000


def _frees(prepared: PreparedStatement) -> bool:
    """Return whether a statement is a short command that ends or fetches what is held: it works where nothing else has room."""
    command = prepared.command
    return command is not None and command.kind in _FREEING and len(prepared.piece.sql) <= _MOST_FREEING


_OWNERS = re.compile(r"\{(?:place|address|origin|source|problem)\}")
"""Placeholders for facts that name files, hosts or folders of the owner's machine."""


def for_analysts(error: Error) -> Error:
    """Return the error; one that names a path or host of the owner is logged and replaced by `owner_only`."""
    entry = REGISTER.get(error.slug)
    if entry is None or not _OWNERS.search(entry.sentence + entry.hint) or entry.slug in _SHOWN:
        return error
    incident = uuid.uuid4().hex[:12]
    logging.getLogger("dpsql.custodian").error("incident %s: %s", incident, error.text())
    return refuse("owner_only", incident=incident, charged=error.charged)


_SHOWN = frozenset({"noise_plan", "command_argument"})
"""Slugs of errors with such placeholders whose facts come from the question alone, so that analysts may read them."""


_TOKEN = re.compile(r"\s*('(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?|\w+|::|.)", re.DOTALL)


_HEXADECIMAL = re.compile(r"[xX]'[0-9a-fA-F]*([^'0-9a-fA-F])[^']*'")
_QUALIFIED = re.compile(r'("(?:[^"]|"")*"|\w+)\s*\.\s*("(?:[^"]|"")*"|\w+)(?![\w"]|\s*\.)')


def in_words_of_postgresql(error: Error, sql: str) -> Error:
    """Return an error about syntax or names in PostgreSQL's words, which programs look for; what dpsql says of syntax is the
    hint, with its own."""
    if error.position is None:
        return error
    start = error.position - 1
    names = _QUALIFIED.match(sql, start)
    if names is not None and error.slug == "unknown_column":
        words = f"column {unquoted(names[1])}.{unquoted(names[2])} does not exist"
        return said(error.sqlstate, words, error.position, error.hint)
    if (
        names is not None
        and error.slug == "unknown_table"
        and error.message == f'relation "{unquoted(names[1])}" does not exist'
    ):
        words = f'missing FROM-clause entry for table "{unquoted(names[1])}"'
        return said(error.sqlstate, words, error.position, error.hint)
    if error.slug not in ("syntax", "text_unfinished"):
        return error
    if wrong := _HEXADECIMAL.match(sql, start):
        return said("22P02", f'"{wrong[1]}" is not a valid hexadecimal digit', error.position)
    token = _TOKEN.match(sql, start)
    near = "end of input" if token is None else f'or near "{token[1]}"'
    words, position = f"syntax error at {near}", start + 1 if token is None else token.start(1) + 1
    if error.slug == "text_unfinished":
        named = {'"': "quoted identifier", "/": "/* comment", "$": "dollar-quoted string"}
        opened = named.get(sql[start], "quoted string")
        words, position = f'unterminated {opened} at or near "{sql[start:]}"', error.position
    return said(error.sqlstate, words, position, "; ".join(filter(None, (error.message, error.hint))))


def error_bytes(error: Error, severity: str = "ERROR") -> bytes:
    """Return the message ErrorResponse: sentence, position, hint, and whether a charge stays."""
    error = for_analysts(error)
    detail = "" if severity == "FATAL" else "the charge stays" if error.charged else "nothing was charged"
    return m.error_response(
        error.sqlstate, error.message, detail=detail, hint=error.hint, position=error.position, severity=severity
    )
