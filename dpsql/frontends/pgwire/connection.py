"""What connections are bounded and protected by: limits, back-off after failed logins, TLS; and the owner's port."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path

from dpsql.engine.memory_account import MemoryAccount
from dpsql.errors.custodian_log import audit
from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.logins import certificate_hash
from dpsql.storage.files import write_private
from dpsql.storage.records import dataclass

# --- limits on the resources of the server that clients may use -------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """Limits of the server, in seconds, connections, megabytes and questions that are measured at once.

    One user has at most `concurrency_per_user` of these, by default all but one, so that a place is left for others. The owner
    has `owner_connections` beyond `connections`. Sockets that have not logged in yet are counted separately; if there are too
    many, the oldest one of the address with the most of them is closed.

    Answers and statements that are held for clients take at most `memory_megabytes` in all; by default three quarters of that
    for one user, and half of it for one connection.
    """

    connections: int = 100
    connections_per_user: int = 64
    owner_connections: int = 3
    before_login: int = 200
    before_login_per_address: int = 100
    concurrency: int = 4
    concurrency_per_user: int | None = None
    memory_megabytes: int = 1024
    memory_per_user_megabytes: int | None = None
    memory_per_connection_megabytes: int | None = None
    login_seconds: float = 30.0
    write_seconds: float = 60.0
    idle_seconds: float = 24 * 3600.0
    drain_seconds: float = 30.0
    failed_login_seconds: float = 0.5

    @property
    def sockets(self) -> int:
        """The number of sockets that clients may hold at once."""
        return self.connections + self.owner_connections + self.before_login

    def memory(self) -> MemoryAccount:
        """Return the account of memory of a server with these limits."""
        return MemoryAccount(self.memory_megabytes << 20, "all clients of this server together", _SERVER_ADVICE)

    def memory_of_user(self, server: MemoryAccount, user: str) -> MemoryAccount:
        """Return the account of a user's connections."""
        most = self.memory_per_user_megabytes or max(1, self.memory_megabytes * 3 // 4)
        return server.part(most << 20, f'the connections of "{user}"', _USER_ADVICE)

    def memory_of_connection(self, user: MemoryAccount) -> MemoryAccount:
        """Return the account of one connection."""
        most = self.memory_per_connection_megabytes or max(1, self.memory_megabytes // 2)
        return user.part(most << 20, "this connection", _CONNECTION_ADVICE)


_CONNECTION_ADVICE = (
    "fetch or CLOSE cursors, DEALLOCATE prepared statements, or end the transaction; or ask for fewer rows"
)
_USER_ADVICE = "fetch or CLOSE cursors, DEALLOCATE prepared statements, or end connections of the same user"
_SERVER_ADVICE = (
    "CLOSE cursors that you do not need and try again later, or ask the owner for more (dpsql serve --memory)"
)
MOST_REMEMBERED = 10_000
LONGEST_SECONDS = 300.0
MOST_LINES, MOST_LINES_OF_ADDRESS = 300, 30
"""Lines of the audit log about failed logins in a minute, in all and of one address."""


@dataclass
class _Failures:
    count: int = 0
    closed_until: float = 0.0


class LoginBackOff:
    """Waiting times after failed logins, which double each time: for a user from one address after `free` failures, and for an
    address, whatever the users, after four times as many.

    A user is never locked out by guesses from elsewhere. Users that do not exist are treated like those that do.
    """

    def __init__(self, first_seconds: float = 1.0, free: int = 5, clock: Callable[[], float] = time.monotonic) -> None:
        self._first, self._free, self._clock = first_seconds, free, clock
        self._failures: OrderedDict[tuple[str, str], _Failures] = OrderedDict()
        self._lock = threading.Lock()

    def seconds(self, user: str, address: str) -> float:
        """Return how many seconds `user` at `address` has to wait before a password is checked; 0 without a wait."""
        with self._lock:
            counts = (self._failures.get(key) for key in _keys(user, address))
            return max([0.0, *(failures.closed_until - self._clock() for failures in counts if failures is not None)])

    def failed(self, user: str, address: str) -> None:
        """Count a failed login."""
        with self._lock:
            for key, free in zip(_keys(user, address), (self._free, 4 * self._free), strict=True):
                failures = self._failures.setdefault(key, _Failures())
                self._failures.move_to_end(key)
                failures.count += 1
                if failures.count > free:
                    seconds = self._first * 2.0 ** min(failures.count - free - 1, 30)
                    failures.closed_until = self._clock() + min(seconds, LONGEST_SECONDS)
            while len(self._failures) > MOST_REMEMBERED:
                self._failures.popitem(last=False)

    def succeeded(self, user: str, address: str) -> None:
        """Drop the failures of a user at an address; those of the address stay, because others may guess from there too."""
        with self._lock:
            self._failures.pop(_keys(user, address)[0], None)


def _keys(user: str, address: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (user[:200], address), ("", address)


class FailedLogins:
    """The lines of the audit log about failed logins, which everybody can cause who reaches the port: a bounded number in a
    minute. Those that are left out are counted, and the next line says how many they were. For one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._minute = clock, clock()
        self._lines: Counter[str] = Counter()
        self._unsaid = 0
        self.left_out = 0

    def note(self, user: str, address: str, reason: str) -> None:
        """Write a line, or count that it is left out."""
        if self._clock() >= self._minute + 60:
            self._minute, self._lines = self._clock(), Counter()
        if self._lines[address] >= MOST_LINES_OF_ADDRESS or self._lines.total() >= MOST_LINES:
            self.left_out += 1
            self._unsaid += 1
            return
        self._lines[address] += 1
        audit("login_failed", user=user[:200], address=address, reason=reason, left_out=self._unsaid or None)
        self._unsaid = 0


# --- TLS of the server ------------------------------------------------------------------------------------------------
# With the owner's certificate, or a self-signed one that is made for this data set.

_YEARS_IN_DAYS = 3650


@dataclass(frozen=True)
class Tls:
    """The TLS context; `binding`: tls-server-end-point of the certificate (None if it has none)."""

    context: ssl.SSLContext
    binding: bytes | None


def load_tls(certificate: Path, key: Path) -> Tls:
    """Return TLS 1.2 and later with a certificate (chain) and its key, both PEM. Raises serve_tls."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
        first = certificate.read_text(encoding="ascii").partition("-----END CERTIFICATE-----")
        der = ssl.PEM_cert_to_DER_cert(first[0][first[0].index("-----BEGIN") :] + first[1] + "\n")
    except (OSError, ValueError) as error:
        raise refuse("serve_tls", problem=getattr(error, "strerror", None) or "it is not PEM") from None
    return Tls(context, certificate_hash(der))


SELF_SIGNED = ("server.crt", "server.key")
"""The files of the self-signed certificate and its key."""


def copy_self_signed(folder: Path, target: Path) -> bool:
    """Copy the self-signed certificate and its key if `folder` has them and `target` does not; return whether it was done.
    Raises backup_folder."""
    if not all((folder / name).exists() for name in SELF_SIGNED) or any(
        (target / name).exists() for name in SELF_SIGNED
    ):
        return False
    try:
        for name in SELF_SIGNED:
            write_private(target / name, (folder / name).read_bytes())
    except OSError as error:
        raise refuse("backup_folder", place=str(target), problem=(error.strerror or "it failed").lower()) from error
    return True


def self_signed(folder: Path, host: str) -> Tls:
    """Return TLS with the self-signed certificate in `folder`, made by openssl if there is none. Raises serve_tls."""
    certificate, key = (folder / name for name in SELF_SIGNED)
    if not (certificate.exists() and key.exists()):
        command = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-sha256",
            "-days", str(_YEARS_IN_DAYS), "-subj", f"/CN={host}", "-keyout", str(key), "-out", str(certificate),
        ]  # fmt: skip
        mask = os.umask(0o077)
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            raise refuse("serve_tls", problem="openssl, which makes one, cannot be run") from None
        finally:
            os.umask(mask)
    return load_tls(certificate, key)


# --- streams of clients -----------------------------------------------------------------------------------------------

FLUSH_BYTES = 1 << 16


class ClientReader(asyncio.StreamReader):
    """A stream reader that reports at once that the client has closed its side, even while an answer is computed and no read
    waits."""

    _ended = False
    _tell: Callable[[], None] | None = None

    def feed_eof(self) -> None:
        super().feed_eof()
        self._end()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self._end()

    def _end(self) -> None:
        if self._tell is not None and not self._ended:
            self._tell()
        self._ended = True

    def when_ended(self, tell: Callable[[], None]) -> None:
        """Call `tell` once the client has closed its side: immediately if it already has."""
        self._tell = tell
        if self._ended:
            tell()


# --- the owner's port -------------------------------------------------------------------------------------------------
# GET /healthz, /readyz and /metrics. It is open only on request, and never the port of analysts.

_MOST_REQUEST = 8_192
_SECONDS = 10.0
_MOST_CLIENTS = 16
"""How many clients are answered at once, and how many may be silent: one more closes the one that has been silent longest, so
that those who send nothing keep nobody from an answer."""
Response = tuple[int, str, bytes]
_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 501: "Not Implemented", 503: "Service Unavailable"}
_TEXT = "text/plain; charset=utf-8"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class StatusServer:
    """A server that answers one request for each connection; `pages` maps a path to a function that returns the response."""

    def __init__(self, pages: dict[str, Callable[[], Awaitable[Response]]]) -> None:
        self._pages = pages
        self._clients = asyncio.Semaphore(_MOST_CLIENTS)
        self._silent: dict[asyncio.StreamWriter, None] = {}
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and return the actual address and port. Raises serve_listen."""
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=_MOST_REQUEST)
        except OSError as error:
            problem = (error.strerror or "it failed").lower()
            raise refuse("serve_listen", address=f"{host}:{port}", problem=problem) from None
        name = self._server.sockets[0].getsockname()
        return str(name[0]), int(name[1])

    def close(self) -> None:
        """Stop taking requests."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_SECONDS):
                head = await self._head(reader, writer)
                async with self._clients:
                    writer.write(_framed(await self._answer(head)))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def _head(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        if len(self._silent) >= _MOST_CLIENTS:
            oldest = next(iter(self._silent))
            del self._silent[oldest]
            oldest.transport.abort()
        self._silent[writer] = None
        try:
            return await reader.readuntil(b"\r\n\r\n")
        finally:
            self._silent.pop(writer, None)

    async def _answer(self, head: bytes) -> Response:
        method, _, rest = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
        page = self._pages.get(rest.split(" ")[0].split("?")[0])
        if page is None:
            return 404, _TEXT, b"there is nothing here\n"
        return await page() if method == "GET" else (405, _TEXT, b"GET only\n")


def text(status: int, words: str) -> Response:
    """Return a response with one line of text."""
    return status, _TEXT, f"{words}\n".encode()


def _framed(response: Response) -> bytes:
    status, kind, body = response
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
