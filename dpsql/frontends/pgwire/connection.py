"""Connection of one client, from its first byte to its last. Whatever computes runs in threads, never in the event loop."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dpsql.engine.memory_account import MemoryAccount
from dpsql.errors.custodian_log import audit, unexpected
from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire import messages as m
from dpsql.frontends.pgwire.backend import Backend, error_bytes
from dpsql.frontends.pgwire.logins import Login, Logins, analyst_of, certificate_hash
from dpsql.frontends.pgwire.questions import Questions
from dpsql.policy import Policy
from dpsql.policy.versions import same_for
from dpsql.session.background_work import MeasurementQueue
from dpsql.storage.files import write_private

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


# --- connection of one client, from its first byte to its last --------------------------------------------------------

MOST_MESSAGE = 1 << 20
"""Limit in bytes of one message after login; a statement has at most 200,000 characters."""
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


class Host(Protocol):
    """The parts of the server that a connection uses."""

    draining: bool
    failed_logins: FailedLogins

    @property
    def policy(self) -> Policy: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def tls(self) -> Tls | None: ...

    @property
    def logins(self) -> Logins: ...

    @property
    def queue(self) -> MeasurementQueue: ...

    @property
    def back_off(self) -> LoginBackOff: ...

    def require_place(self, user: str) -> None:
        """Raise wire_busy or wire_busy_user when `user` may have no further connection."""

    def may_be_plain(self, peer: str) -> bool:
        """Return whether a connection from `peer` may do without TLS."""

    def enter(self, user: str) -> None:
        """Count a login. Raises wire_busy, wire_busy_user."""

    def exit(self, user: str) -> None:
        """Remove one connection from the count of its user."""

    def logged_in(self, number: int) -> None:
        """Remove a connection from those that have not logged in yet."""

    def open(self, login: Login, number: int) -> Questions:
        """Return the questions of one login, with a session and a catalog. Raises refusals of its `dp.` options."""

    def cancel(self, request: m.Cancel) -> None:
        """Stop the statement that the named connection runs."""

    async def work(self, function: Any, *arguments: Any) -> Any:
        """Run a function in a thread, and return its result."""


class ClientConnection:
    """One client, from its first byte to its last."""

    def __init__(self, server: Host, number: int, reader: ClientReader, writer: asyncio.StreamWriter) -> None:
        self._server, self._number, self._reader, self._writer = server, number, reader, writer
        self._questions: Questions | None = None
        self._encrypted = False
        self._idle = True
        self._leaving = False
        self._policy: Policy | None = None
        task = asyncio.current_task()
        assert task is not None
        self.task: asyncio.Task[Any] = task
        self.secret = os.urandom(4)
        self.address = str((writer.get_extra_info("peername") or ("",))[0])

    async def serve(self) -> None:
        """Log in, answer, close. No failure of one client is raised to the server."""
        try:
            self._keep_alive()
            async with asyncio.timeout(self._server.limits.login_seconds):
                login = await self._login()
            if login is None:
                return
            self._server.logged_in(self._number)
            try:
                await self._talk(login)
            finally:
                self._server.exit(login.user)
                if self._questions is not None:
                    self._server.queue.tell(self._questions.session.id, None)
                    self._questions.memory.close()
        except Error as error:
            await self._tell(error)
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, EOFError, OSError):
            pass
        except asyncio.CancelledError:
            await self._tell(refuse("wire_shutdown"))
            if not self._server.draining:
                raise
        except Exception as error:
            await self._tell(unexpected(error))
        finally:
            self._writer.close()
            try:
                await asyncio.wait_for(self._writer.wait_closed(), 1)
            except Exception:
                # Closing waits until the client has read all output, so a client that does not read would never be closed.
                self._writer.transport.abort()

    def cancel(self) -> None:
        """Stop the statement that runs now."""
        if self._questions is not None:
            self._questions.stop.ask()

    def _ended(self) -> None:
        """React to a client that has closed its side, so that nobody waits for an answer: a charged measurement runs to its end
        and is stored, any other running statement is given up, and what the client sent last is not begun."""
        if self._questions is not None:
            self._questions.stop.leave()

    def abort(self) -> None:
        """Close the socket without a message."""
        self._writer.transport.abort()

    def leave(self) -> None:
        """End the connection: at once if nothing runs, else after the answer."""
        self._leaving = True
        if self._idle:
            self.task.cancel()

    def _keep_alive(self) -> None:
        """Make the operating system detect a client that vanished without closing (half-open) after about two minutes."""
        link = self._writer.get_extra_info("socket")
        if link is not None:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
                if hasattr(socket, name):
                    with suppress(OSError):
                        link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    # --- before login -------------------------------------------------------------------------------------------------

    async def _login(self) -> Login | None:
        """Return the login, or None after a cancel request, which ends the connection."""
        requested: set[bool] = set()
        while True:
            first = m.read_startup(await self._body(await self._reader.readexactly(4), m.MOST_STARTUP, least=4))
            if isinstance(first, m.Cancel):
                self._server.cancel(first)
                return None
            if isinstance(first, m.Startup):
                break
            # One request for TLS and one for GSSAPI, as PostgreSQL: each is answered, so that many keep the server busy.
            if first.gss in requested:
                raise refuse("wire_state")
            requested.add(first.gss)
            await self._encrypt(first)
        if self._server.draining:
            raise refuse("wire_shutdown")
        if not self._encrypted and not self._server.may_be_plain(self.address):
            raise refuse("login_tls")
        binding = self._server.tls.binding if self._encrypted and self._server.tls is not None else None
        login = Login(first, self._server.policy.dataset, self._server.logins, binding)
        self._server.require_place(login.user)
        await self._send(await self._server.work(login.begin))
        while not login.done:
            kind, body = await self._message(m.MOST_STARTUP)
            if kind != b"p":
                raise refuse("wire_state")
            try:
                # Nothing is awaited between reading the failures and counting one, so concurrent guesses are counted too.
                answer = self._responded(login, body)
            except Error as error:
                self._server.failed_logins.note(login.user, self.address, error.slug)
                if error.slug in ("login_failed", "login_wait"):
                    await asyncio.sleep(self._server.limits.failed_login_seconds)
                raise
            await self._send(answer)
        self._server.enter(login.user)
        audit("login", user=login.user, address=self.address, connection=self._number, encrypted=self._encrypted)
        return login

    def _responded(self, login: Login, body: bytes) -> bytes:
        """Return the answer to one authentication response. Raises login_wait, without checking the password, after too many
        failures."""
        back_off = self._server.back_off
        seconds = back_off.seconds(login.user, self.address)
        if seconds > 0:
            raise refuse("login_wait", user=login.user, seconds=math.ceil(seconds))
        try:
            answer = login.respond(body)
        except Error as error:
            if error.slug == "login_failed":
                back_off.failed(login.user, self.address)
            raise
        if login.done:
            back_off.succeeded(login.user, self.address)
        return answer

    async def _encrypt(self, request: m.TlsRequest) -> None:
        if request.gss or self._server.tls is None or self._encrypted:
            await self._send(b"N")  # TLS is denied
            return
        # Bytes received before the handshake are not encrypted; reading them as encrypted would let a man in the middle insert
        # statements in the client's name.
        if self._reader._buffer:  # type: ignore[attr-defined]
            raise refuse("wire_state")
        self._writer.write(b"S")
        await self._writer.drain()
        await self._writer.start_tls(self._server.tls.context, ssl_handshake_timeout=self._server.limits.login_seconds)
        self._encrypted = True

    # --- after login --------------------------------------------------------------------------------------------------

    async def _talk(self, login: Login) -> None:
        self._questions = await self._server.work(self._server.open, login, self._number)
        self._reader.when_ended(self._ended)
        self._tell_positions(self._questions)
        backend = Backend(self._questions)
        await self._send(login.welcome() + backend.start() + m.backend_key(self._number, self.secret) + backend.ready())
        while True:
            self._idle = True
            if self._leaving:
                raise refuse("wire_shutdown")
            async with asyncio.timeout(self._server.limits.idle_seconds):
                kind, body = await self._message(MOST_MESSAGE)
            self._idle = False
            try:
                message = m.read_message(kind, body)
            except Error as error:
                if error.slug != "wire_encoding":
                    raise
                await self._send(backend.rejected(kind, error))
                continue
            if isinstance(message, m.Terminate):
                return
            if isinstance(message, m.Password):
                raise refuse("wire_state")
            if not self._server.logins.may_stay(login.user):
                audit("login_ended", user=login.user, address=self.address, connection=self._number)
                raise refuse("login_ended", user=login.user)
            self._require_policy(login.user)
            pieces = backend.handle(message)
            is_last = False
            while not is_last:
                gathered, is_last = await self._server.work(_gathered, pieces)
                await self._send(gathered)

    def _require_policy(self, user: str) -> None:
        """Raise policy_changed if the policy being served differs for `user` from the one that the session began with."""
        assert self._questions is not None
        current, begun = self._server.policy, self._policy or self._questions.session.policy
        if current is begun:
            return
        if not same_for(begun, current, analyst_of(user)):
            audit("policy_changed", user=user, connection=self._number)
            raise refuse("policy_changed")
        self._policy = current

    def _tell_positions(self, questions: Questions) -> None:
        """Send the client the position in the queue of each question that has to wait, once, and only where response times are
        not fixed: elsewhere the position would reveal, between two response times, whether scans have ended."""
        if self._server.policy.timing != "plain" or self._server.policy.constant_seconds is not None:
            return
        loop = asyncio.get_running_loop()

        def queued(position: int) -> None:
            if questions.settings.hears("NOTICE"):
                notice = m.notice_response(f"waiting for a place at the data, number {position} in the queue")
                loop.call_soon_threadsafe(self._writer.write, notice)

        self._server.queue.tell(questions.session.id, queued)

    async def _message(self, most: int) -> tuple[bytes, bytes]:
        head = await self._reader.readexactly(5)
        return head[:1], await self._body(head[1:], most, least=0)

    async def _body(self, length: bytes, most: int, least: int) -> bytes:
        """Return the body that a length announces; the length is checked before the body is read. Raises wire_length."""
        size = struct.unpack("!i", length)[0] - 4
        if not least <= size <= most:
            raise refuse("wire_length", most=most)
        return await self._reader.readexactly(size)

    async def _send(self, data: bytes) -> None:
        """Write, and wait for a slow client; raise TimeoutError if it reads too little within `write_seconds`."""
        self._writer.write(data)
        if self._writer.transport.get_write_buffer_size() or self._writer.transport.is_closing():
            async with asyncio.timeout(self._server.limits.write_seconds):
                await self._writer.drain()

    async def _tell(self, error: Error) -> None:
        """Send a fatal error before closing. The client may be gone already."""
        with suppress(Exception):
            self._writer.write(error_bytes(error, "FATAL"))
            await asyncio.wait_for(self._writer.drain(), 1)


def _gathered(pieces: Iterator[bytes]) -> tuple[bytes, bool]:
    """Join the next pieces, up to about FLUSH_BYTES bytes; return them and whether there are no more."""
    gathered, size = [], 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= FLUSH_BYTES:
            return b"".join(gathered), False
    return b"".join(gathered), True
