"""PostgreSQL's protocol 3 as bytes and types: the messages of clients and of servers. No sockets, no state.

Source: PostgreSQL 16 documentation, chapter 55 (Frontend/Backend Protocol), section 55.7 (Message Formats).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from dpsql.errors.exceptions import refuse
from dpsql.media.text import terminal_lines
from dpsql.storage.records import dataclass

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
MOST_STARTUP = 10_000
"""Limit in bytes of a message before login; PostgreSQL's own limit."""


@dataclass(frozen=True)
class Startup:
    """The first message: protocol version and parameters such as user and database."""

    major: int
    minor: int
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class TlsRequest:
    """Request for TLS, or (`gss`) for GSSAPI encryption, which is always denied."""

    gss: bool


@dataclass(frozen=True)
class Cancel:
    """Request, on a separate connection, to stop the statement of another connection."""

    process: int
    secret: bytes


@dataclass(frozen=True)
class Password:
    """Any authentication response; SCRAM reads `body`."""

    body: bytes


@dataclass(frozen=True)
class Query:
    """Text of one or more statements."""

    sql: str


@dataclass(frozen=True)
class Parse:
    """Prepare one statement under `name`; an OID of 0 asks the server to infer the parameter's type."""

    name: str
    sql: str
    oids: tuple[int, ...]


@dataclass(frozen=True)
class Bind:
    """Values for a prepared statement; formats are 0 (text) or 1 (binary), none, one for all, or one for each."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True)
class Describe:
    """Columns of a statement ("S") or portal ("P")."""

    kind: str
    name: str


@dataclass(frozen=True)
class Execute:
    """Rows of a portal; `max_rows` of 0 means all that are left."""

    portal: str
    max_rows: int


@dataclass(frozen=True)
class Close:
    """Forget a statement ("S") or portal ("P")."""

    kind: str
    name: str


@dataclass(frozen=True)
class Sync:
    """End of a series of extended messages: errors are forgotten, ReadyForQuery is due."""


@dataclass(frozen=True)
class Flush:
    """Send what is ready."""


@dataclass(frozen=True)
class Terminate:
    """The client leaves."""


@dataclass(frozen=True)
class CopyIn:
    """CopyData, CopyDone or CopyFail of a COPY FROM that was refused: ignored, according to the protocol."""


Message = (
    Password | Query | Parse | Bind | Describe | Execute | Close | Sync | Flush | Terminate | CopyIn
)  # fmt: skip


def text_of(data: bytes) -> str:
    """Return a text in UTF-8 without NUL, which no text of PostgreSQL has. Raises wire_encoding with the bytes that are none."""
    try:
        text = data.decode("utf-8")
        position = data.find(0)
    except UnicodeDecodeError as error:
        text, position = "", error.start
    if position < 0:
        return text
    lead = data[position]
    size = 1 if lead >= 0xF8 else 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)
    raise refuse("wire_encoding", bytes=" ".join(f"0x{byte:02x}" for byte in data[position : position + size]))


class _Reader:
    """Reader of the fields of a message, from front to back. A body that does not fit is refused (wire_message)."""

    def __init__(self, body: bytes, words: str = "") -> None:
        """`words`: what is said of anything that does not fit."""
        self._body, self._position, self._words = body, 0, words

    def text(self) -> str:
        end = self._body.find(b"\0", self._position)
        if end < 0:
            raise self.bad("invalid string in message")
        data = self._body[self._position : end]
        self._position = end + 1
        return text_of(data)

    def number(self, form: str) -> int:
        size = struct.calcsize(form)
        value: int = struct.unpack(form, self.take(size))[0]
        return value

    def take(self, size: int) -> bytes:
        if size < 0 or self._position + size > len(self._body):
            raise self.bad("insufficient data left in message")
        data = self._body[self._position : self._position + size]
        self._position += size
        return data

    def numbers(self, form: str) -> tuple[int, ...]:
        """Read a count and that many numbers, and return the numbers."""
        return tuple(self.number(form) for _ in range(self.number("!H")))

    def values(self) -> tuple[bytes | None, ...]:
        """Read a count and that many values with their lengths (-1: NULL), and return the values."""
        values: list[bytes | None] = []
        for _ in range(self.number("!H")):
            size = self.number("!i")
            values.append(None if size == -1 else self.take(size))
        return tuple(values)

    def end(self) -> None:
        if self._position != len(self._body):
            raise self.bad()

    def bad(self, words: str = "invalid message format") -> Exception:
        return refuse("wire_message", words=self._words or words)


def read_startup(body: bytes) -> Startup | TlsRequest | Cancel:
    """Parse the first message of a connection, without its length. Raises wire_message, wire_encoding."""
    reader = _Reader(body, "invalid startup packet layout: expected terminator as last byte")
    code = reader.number("!I")
    if code in (SSL_REQUEST, GSS_REQUEST):
        reader.end()
        return TlsRequest(code == GSS_REQUEST)
    if code == CANCEL_REQUEST:
        process = reader.number("!I")
        return Cancel(process, body[8:])
    parameters: dict[str, str] = {}
    while True:
        name = reader.text()
        if not name:
            break
        parameters[name] = reader.text()
    reader.end()
    return Startup(code >> 16, code & 0xFFFF, parameters)


def read_message(kind: bytes, body: bytes) -> Message:
    """Parse a message after the first, without its type and length. Raises wire_message, wire_encoding, wire_unknown."""
    reader = _Reader(body)
    message = _read(kind, reader, body)
    if kind not in (b"p", b"d", b"c", b"f"):
        reader.end()
    return message


def _read(kind: bytes, reader: _Reader, body: bytes) -> Message:
    if kind == b"Q":
        return Query(reader.text())
    if kind == b"P":
        return Parse(reader.text(), reader.text(), reader.numbers("!I"))
    if kind == b"B":
        portal, statement = reader.text(), reader.text()
        return Bind(portal, statement, reader.numbers("!h"), reader.values(), reader.numbers("!h"))
    if kind in (b"D", b"C"):
        target = reader.take(1)
        if target not in (b"S", b"P"):
            name = "DESCRIBE" if kind == b"D" else "CLOSE"
            raise reader.bad(f"invalid {name} message subtype {target[0]}")
        return (Describe if kind == b"D" else Close)(target.decode(), reader.text())
    if kind == b"E":
        return Execute(reader.text(), max(0, reader.number("!i")))
    if kind == b"p":
        return Password(body)
    plain: dict[bytes, Message] = {
        b"S": Sync(), b"H": Flush(), b"X": Terminate(), b"d": CopyIn(), b"c": CopyIn(), b"f": CopyIn(),
    }  # fmt: skip
    if kind in plain:
        return plain[kind]
    raise refuse("wire_unknown", kind=kind[0])


# --- answers ----------------------------------------------------------------------------------------------------------


def message(kind: bytes, body: bytes = b"") -> bytes:
    """Return a message of the server: type, length, body."""
    return kind + struct.pack("!I", len(body) + 4) + body


def _text(value: str) -> bytes:
    return value.replace("\0", "").encode("utf-8", "replace") + b"\0"


PARSE_COMPLETE = message(b"1")
BIND_COMPLETE = message(b"2")
CLOSE_COMPLETE = message(b"3")
NO_DATA = message(b"n")
PORTAL_SUSPENDED = message(b"s")
EMPTY_QUERY = message(b"I")
COPY_DONE = message(b"c")
AUTHENTICATED = message(b"R", struct.pack("!I", 0))


def sasl_mechanisms(names: Iterable[str]) -> bytes:
    """Return the message AuthenticationSASL."""
    return message(b"R", struct.pack("!I", 10) + b"".join(map(_text, names)) + b"\0")


def sasl_continue(data: bytes) -> bytes:
    """Return the message AuthenticationSASLContinue."""
    return message(b"R", struct.pack("!I", 11) + data)


def sasl_final(data: bytes) -> bytes:
    """Return the message AuthenticationSASLFinal."""
    return message(b"R", struct.pack("!I", 12) + data)


def backend_key(process: int, secret: bytes) -> bytes:
    """Return the message BackendKeyData, whose contents a cancel request must repeat."""
    return message(b"K", struct.pack("!I", process) + secret)


def parameter_status(name: str, value: str) -> bytes:
    """Return the message ParameterStatus with a setting that clients follow."""
    return message(b"S", _text(name) + _text(value))


def negotiate(minor: int, unknown: Sequence[str]) -> bytes:
    """Return the message NegotiateProtocolVersion: the newest minor version supported, and the options that are unknown."""
    return message(b"v", struct.pack("!II", minor, len(unknown)) + b"".join(map(_text, unknown)))


def ready(status: str) -> bytes:
    """Return the message ReadyForQuery; `status`: I (idle), T (in a transaction), or E (in a failed transaction)."""
    return message(b"Z", status.encode())


def complete(tag: str) -> bytes:
    """Return the message CommandComplete."""
    return message(b"C", _text(tag))


def parameter_description(oids: Sequence[int]) -> bytes:
    """Return the message ParameterDescription."""
    return message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def row_description(columns: Sequence[tuple[str, int, int, int, int, int]], formats: Sequence[int]) -> bytes:
    """Return the message RowDescription for columns (name, OID of the relation and number of the column in it, type OID, type
    size and modifier), with one format each."""
    parts = [struct.pack("!H", len(columns))]
    for (name, *facts), form in zip(columns, formats, strict=True):
        parts.append(_text(name) + struct.pack("!IhIhih", *facts, form))
    return message(b"T", b"".join(parts))


def copy_out(width: int, binary: bool) -> bytes:
    """Return the message CopyOutResponse for `width` columns."""
    return message(b"H", struct.pack(f"!bH{width}h", binary, width, *([int(binary)] * width)))


def copy_data(data: bytes) -> bytes:
    """Return the message CopyData."""
    return message(b"d", data)


def _fields(fields: Mapping[str, str]) -> bytes:
    return b"".join(code.encode() + _text(value) for code, value in fields.items() if value) + b"\0"


def _as_lines(fields: Mapping[str, str]) -> dict[str, str]:
    """Return texts as a client may print them: psql writes notices and errors to its terminal unchanged."""
    return {code: terminal_lines(text) for code, text in fields.items()}


def error_response(
    sqlstate: str, text: str, *, detail: str = "", hint: str = "", position: int | None = None, severity: str = "ERROR"
) -> bytes:
    """Return the message ErrorResponse; `position` is 1-based in characters of the query text."""
    place = "" if position is None else str(position)
    spoken = {"M": text, "D": detail, "H": hint}
    fields = {"S": severity, "V": severity, "C": sqlstate, **_as_lines(spoken), "P": place}
    return message(b"E", _fields(fields))


def notice_response(text: str, *, detail: str = "", severity: str = "NOTICE", sqlstate: str = "00000") -> bytes:
    """Return the message NoticeResponse."""
    return message(b"N", _fields({"S": severity, "V": severity, "C": sqlstate, **_as_lines({"M": text, "D": detail})}))
