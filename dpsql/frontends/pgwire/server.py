"""Server of the PostgreSQL protocol: sockets, login, limits and the end of connections. Whatever computes runs in threads, never
in the event loop.

Every connection has its own `Session` on its own engine over the same data; planner, ledger, stored releases and sandbox are
shared, and a `MeasurementQueue` bounds how many questions measure at once.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import logging
import math
import os
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from dpsql.engine.contract import Engine
from dpsql.engine.fair_queue import FairQueue
from dpsql.engine.memory_account import MemoryAccount
from dpsql.errors.custodian_log import LOST, audit, unexpected
from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire import messages as m
from dpsql.frontends.pgwire.backend import Backend, error_bytes
from dpsql.frontends.pgwire.catalog import Catalog
from dpsql.frontends.pgwire.connection import (
    FLUSH_BYTES,
    METRICS_TYPE,
    ClientReader,
    FailedLogins,
    Limits,
    LoginBackOff,
    Response,
    Tls,
    text,
)
from dpsql.frontends.pgwire.logins import Login, Logins, analyst_of
from dpsql.frontends.pgwire.questions import Questions
from dpsql.frontends.pgwire.stop import Activity, MetricsCollector, metrics_text
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.windows import of_present, parts
from dpsql.noise.perturb import Gate
from dpsql.planning.planner import Planner
from dpsql.policy import Policy
from dpsql.policy.values import OWNER
from dpsql.policy.versions import same_for, widened
from dpsql.release.confinement import ConfinedPool
from dpsql.release.sandbox import Sandbox
from dpsql.reuse.lookup import ReuseCaches
from dpsql.reuse.questions import QuestionTexts
from dpsql.reuse.store import ReleaseStore
from dpsql.session.background_work import MeasurementQueue
from dpsql.session.context import Watches
from dpsql.session.session import Session
from dpsql.sql.binder.equal_keys import check_row_filters
from dpsql.storage.records import dataclass, replace

# --- server of the PostgreSQL protocol --------------------------------------------------------------------------------

_log = logging.getLogger("dpsql.wire")


_CANCEL_SECONDS = 3.0
"""Seconds to wait for threads that were told to stop."""


def _metric_scope(scope: str) -> str:
    """Return the name of a scope without the start of its window, so that a time series continues when a window begins."""
    start, of_scope = parts(scope)
    return scope if start is None else "window" if of_scope == "dataset" else f"window:{of_scope}"


@dataclass(frozen=True)
class ServerState:
    """State that all connections share."""

    policy: Policy
    engine: Engine
    ledger: Ledger
    store: ReleaseStore
    logins: Logins
    questions: QuestionTexts | None = None


class Server:
    """Server for one data set, created by `cli.serve`; call `start`, then `drain`."""

    def __init__(
        self,
        state: ServerState,
        *,
        tls: Tls | None = None,
        allow_plain: bool = False,
        limits: Limits | None = None,
        gate: Gate | None = None,
    ) -> None:
        """`gate`: replaces the gate that draws noise, for the audit alone."""
        self._state, self._tls, self._allow_plain = state, tls, allow_plain
        self._limits, self._gate = limits or Limits(), gate
        self._served = {state.policy.version: state.policy}
        self._planners: dict[str | None, Planner] = {}
        most = self._limits.concurrency
        most_each = self._limits.concurrency_per_user or max(1, most - 1)
        self._queue = MeasurementQueue(most, most_left=max(1, most // 2), most_each=most_each)
        self._texts = FairQueue(1)
        self.activity = Activity(bool(state.policy.log_sql))
        self._caches = ReuseCaches()
        self._watches = Watches()
        # One thread per connection, which does one thing at a time, so that a slow question never delays other connections.
        self._pool = ThreadPoolExecutor(self._limits.sockets, thread_name_prefix="dpsql-wire")
        self._confined = ConfinedPool()
        self._sandbox = Sandbox(confined=self._confined)
        self._catalogs: dict[str, tuple[str, Catalog]] = {}
        self._catalog_lock = threading.Lock()
        self.memory = self._limits.memory()
        self._memory_of_users: dict[str, MemoryAccount] = {}
        self._users: Counter[str] = Counter()
        self._connections: dict[int, ClientConnection] = {}
        self._before_login: dict[int, ClientConnection] = {}
        self._back_off = LoginBackOff()
        self.failed_logins = FailedLogins()
        self._busy: set[object] = set()
        self._numbers = itertools.count(1)
        self._server: asyncio.Server | None = None
        self.draining = False

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and return the actual address and port. Raises serve_listen."""
        loop = asyncio.get_running_loop()
        self._confined.start()
        try:
            self._server = await loop.create_server(
                lambda: asyncio.StreamReaderProtocol(ClientReader(FLUSH_BYTES, loop), self._accept, loop), host, port
            )
        except OSError as error:
            raise refuse(
                "serve_listen", address=f"{host}:{port}", problem=(error.strerror or "it failed").lower()
            ) from None
        name = self._server.sockets[0].getsockname()
        return str(name[0]), int(name[1])

    async def drain(self) -> int:
        """Refuse new connections, let running questions end, tell every client, stop late questions, close.

        Return the number of threads that could not be stopped: one that reads from a device that does not respond cannot be
        interrupted.
        """
        self.draining = True
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections.values()):
            connection.leave()
        tasks = [connection.task for connection in self._connections.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self._limits.drain_seconds)
            for connection in list(self._connections.values()):
                connection.cancel()
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=_CANCEL_SECONDS)
        stuck = await asyncio.get_running_loop().run_in_executor(None, self._queue.stop)
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._confined.close()
        for _ in range(round(_CANCEL_SECONDS * 10)):
            if not self._busy:
                break
            await asyncio.sleep(0.1)
        return int(stuck) + len(self._busy)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(self._numbers)
        assert isinstance(reader, ClientReader)
        connection = ClientConnection(self, number, reader, writer)
        self._connections[number] = self._before_login[number] = connection
        self._let_go()
        try:
            await connection.serve()
        finally:
            self._connections.pop(number, None)
            self._before_login.pop(number, None)

    def _let_go(self) -> None:
        """Close the oldest socket before login of the address with the most of them, if that address has too many or there are
        too many in all. Silent sockets thus cost the address that opened them, and no other."""
        addresses = Counter(waiting.address for waiting in self._before_login.values())
        address, most = addresses.most_common(1)[0]
        if most > self._limits.before_login_per_address or len(self._before_login) > self._limits.before_login:
            number, oldest = next(
                (n, waiting) for n, waiting in self._before_login.items() if waiting.address == address
            )
            del self._before_login[number]
            oldest.abort()

    def reload(self, policy: Policy) -> None:
        """Serve another version of the policy. Running questions end under the version that they began with; connections for
        which the new version differs end with their next message. The new version may not be wider than any version served since
        the start: what one reload takes away, a later one does not restore. Raises policy_invalid, policy_widened."""
        wider = dict.fromkeys(place for before in self._served.values() for place in widened(before, policy))
        if wider:
            raise refuse("policy_widened", places=", ".join(wider))
        check_row_filters(policy)
        self._served[policy.version] = policy
        with self._catalog_lock:
            self._state = replace(self._state, policy=policy, engine=self._state.engine.under(policy))
            self._planners, self._catalogs = {}, {}
        self.logins.follow(policy)
        self.activity.log_sql = bool(policy.log_sql)

    # --- pages for the owner ------------------------------------------------------------------------------------------

    def pages(self) -> dict[str, Callable[[], Awaitable[Response]]]:
        """Return the pages of the owner's port, by path."""
        return {"/healthz": self._health, "/readyz": self._ready, "/metrics": self._metrics}

    async def _health(self) -> Response:
        return text(200, "ok")

    async def _ready(self) -> Response:
        """Return whether a question could be answered now: the server is not stopping, and the ledger can be read."""
        if self.draining:
            return text(503, "stopping")
        try:
            await asyncio.get_running_loop().run_in_executor(None, self._state.ledger.accounts)
        except Error as error:
            return text(503, error.slug)
        return text(200, "ready")

    async def _metrics(self) -> Response:
        collector = MetricsCollector(self.activity, self._gauges, self._spent)
        try:
            page = await asyncio.get_running_loop().run_in_executor(None, metrics_text, collector)
        except ModuleNotFoundError:
            return text(501, "metrics need the extra dpsql[metrics]")
        except Error as error:
            return text(503, error.slug)
        return 200, METRICS_TYPE, page

    def _gauges(self) -> dict[str, float]:
        queue = self._queue.queue
        return {
            "connections": self._users.total(), "sockets_before_login": len(self._before_login),
            "questions_measured_now": queue.taken, "questions_waiting": queue.waiting, "texts_waiting": self._texts.waiting,
            "memory_limit_bytes": self.memory.most or 0, "memory_refusals": self.memory.refused,
            "failed_logins_left_out": self.failed_logins.left_out,
            **{f"{log}_lines_lost": LOST[log] for log in ("audit", "custodian")},
            **{f"memory_{kind}_bytes": self.memory.kinds.get(kind, 0) for kind in ("rows", "statements", "sent")},
        }  # fmt: skip

    def _spent(self) -> dict[str, float]:
        """Return the spent share of each scope's budget, in the dimension with the largest share. Scopes of the current window
        are named "window" and "window:analyst:NAME"; sessions, and a data set without a limit, are left out."""
        limited = self._state.policy.budget.is_limited
        present = of_present(self._state.ledger.accounts())
        return {
            _metric_scope(scope): max(account.spent[name] / limit for name, limit in account.limits.items() if limit)
            for scope, account in present.items()
            if any(account.limits.values()) and not scope.startswith("session:") and (limited or scope != "dataset")
        }

    # --- interface for connections ---------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy being served."""
        return self._state.policy

    @property
    def engine(self) -> Engine:
        """The engine over the data, under the policy being served."""
        return self._state.engine

    @property
    def limits(self) -> Limits:
        """The bounds on connections and waiting."""
        return self._limits

    @property
    def tls(self) -> Tls | None:
        """The TLS settings, or None."""
        return self._tls

    @property
    def logins(self) -> Logins:
        """The logins of the data set."""
        return self._state.logins

    @property
    def back_off(self) -> LoginBackOff:
        """The record of failed logins."""
        return self._back_off

    def require_place(self, user: str) -> None:
        """Raise wire_busy or wire_busy_user if `user` may not have another connection. Some connections are reserved for the
        owner."""
        analysts = self._users.total() - self._users[OWNER]
        if user == OWNER:
            if self._users[OWNER] >= self._limits.owner_connections and self._users.total() >= self._limits.connections:
                raise refuse("wire_busy")
        elif analysts >= self._limits.connections:
            raise refuse("wire_busy")
        if self._users[user] >= self._limits.connections_per_user:
            raise refuse("wire_busy_user", user=user)

    def may_be_plain(self, peer: str) -> bool:
        """Return whether a connection from `peer` may do without TLS."""
        return self._allow_plain or peer in ("127.0.0.1", "::1", "::ffff:127.0.0.1")

    def enter(self, user: str) -> None:
        """Count a login. Raises wire_busy, wire_busy_user."""
        self.require_place(user)
        self._users[user] += 1

    def logged_in(self, number: int) -> None:
        """Remove a connection from those that have not logged in yet."""
        self._before_login.pop(number, None)

    def exit(self, user: str) -> None:
        """Remove one connection from the count of its user."""
        self._users[user] -= 1
        if not self._users[user]:
            del self._users[user]

    def open(self, login: Login, number: int) -> Questions:
        """Return the questions of one login, with a session and a catalog. Runs in a thread. Raises refusals of its `dp.`
        options."""
        user, state = login.user, self._state
        analyst = analyst_of(user)
        planner = self._planner(state.policy.of_analyst(analyst))
        memory = self._limits.memory_of_connection(self._memory_of(user))
        session = Session(
            state.policy, state.engine.another(), state.ledger, state.store,
            analyst=analyst, sandbox=self._sandbox.of(user, memory.computing), planner=planner, queue=self._queue,
            caches=self._caches, watch_register=self._watches, gate=self._gate, questions=state.questions,
        )  # fmt: skip
        session.start_with({"dp.dialect": "postgresql", **login.options})  # a client has said PostgreSQL
        catalog = self._catalog(user, session.policy)
        return Questions(
            session, catalog, login.settings, number, texts=self._texts, activity=self.activity, memory=memory
        )

    def _memory_of(self, user: str) -> MemoryAccount:
        """Return the account of memory of all connections of a user."""
        with self._catalog_lock:
            if user not in self._memory_of_users:
                self._memory_of_users[user] = self._limits.memory_of_user(self.memory, user)
            return self._memory_of_users[user]

    def _catalog(self, user: str, policy: Policy) -> Catalog:
        """Return the catalog of a user, made at their first login under a version of the policy."""
        with self._catalog_lock:
            version, catalog = self._catalogs.get(user, ("", None))
            if catalog is None or version != policy.version:
                catalog = Catalog(policy, user)
                self._catalogs[user] = policy.version, catalog
            return catalog

    def _planner(self, policy: Policy) -> Planner:
        """Return the planner for all users with the same view of the policy. It may be shared, because what it keeps depends on
        names alone."""
        with self._catalog_lock:
            planner = self._planners.get(policy.asker)
            if planner is None or planner.policy.version != policy.version:
                planner = self._planners[policy.asker] = Planner(policy, self._state.engine)
            return planner

    @property
    def queue(self) -> MeasurementQueue:
        """The queue that bounds how many questions measure at once."""
        return self._queue

    def cancel(self, request: m.Cancel) -> None:
        """Stop the statement that the named connection runs; ignore a wrong key without a message."""
        connection = self._connections.get(request.process)
        if connection is not None and hmac.compare_digest(connection.secret, request.secret):
            audit("cancel", connection=request.process)
            connection.cancel()

    async def work(self, function: Any, *arguments: Any) -> Any:
        """Run a function in a thread, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._done, function, arguments)

    def _done(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        mine = object()
        self._busy.add(mine)
        try:
            return function(*arguments)
        finally:
            self._busy.discard(mine)


# --- connection of one client, from its first byte to its last --------------------------------------------------------

MOST_MESSAGE = 1 << 20
"""Limit in bytes of one message after login; a statement has at most 200,000 characters."""


class ClientConnection:
    """One client, from its first byte to its last."""

    def __init__(self, server: Server, number: int, reader: ClientReader, writer: asyncio.StreamWriter) -> None:
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
        login.settings.encrypted = self._encrypted
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
        await self._send(
            login.welcome() + backend.reports() + m.backend_key(self._number, self.secret) + backend.ready()
        )
        while True:
            self._idle = True
            if self._leaving:
                raise refuse("wire_shutdown")
            async with asyncio.timeout(self._server.limits.idle_seconds):
                kind, body = await self._message(MOST_MESSAGE)
            self._idle = False
            if kind == b"X":
                return
            sent = [(kind, _read(kind, body))]
            # A question that is prepared is five messages, which most clients send together: one thread answers them at once.
            while kind in _UNFINISHED and self._has_message():
                kind, body = await self._message(MOST_MESSAGE)
                sent.append((kind, _read(kind, body)))
            if not self._server.logins.may_stay(login.user):
                audit("login_ended", user=login.user, address=self.address, connection=self._number)
                raise refuse("login_ended", user=login.user)
            self._require_policy(login.user)
            pieces = _answers(backend, sent)
            is_last = False
            while not is_last:
                gathered, is_last = await self._server.work(_gathered, pieces)
                await self._send(gathered)

    def _has_message(self) -> bool:
        """Return whether another whole message has arrived that does not end the connection."""
        waiting: bytearray = self._reader._buffer  # type: ignore[attr-defined]
        return len(waiting) >= 5 and waiting[:1] != b"X" and len(waiting) > struct.unpack_from("!I", waiting, 1)[0]

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


_UNFINISHED = frozenset({b"P", b"B", b"D", b"E", b"C"})
"""Kinds of messages that belong to one question with those after them."""


def _read(kind: bytes, body: bytes) -> m.Message | Error:
    """Return a message, or what is wrong with its contents, as with any function call ("F"). Raises wire_unknown, wire_state."""
    try:
        message = m.read_message(kind, body)
    except Error as error:
        if error.slug == "wire_unknown" and kind != b"F":
            raise
        return error
    if isinstance(message, m.Password):
        raise refuse("wire_unknown", kind=kind[0])
    return message


def _answers(backend: Backend, messages: list[tuple[bytes, m.Message | Error]]) -> Iterator[bytes]:
    for kind, message in messages:
        if isinstance(message, Error):
            yield backend.rejected(kind, message)
        else:
            yield from backend.handle(message)


def _gathered(pieces: Iterator[bytes]) -> tuple[bytes, bool]:
    """Join the next pieces, up to about FLUSH_BYTES bytes; return them and whether there are no more."""
    gathered, size = [], 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= FLUSH_BYTES:
            return b"".join(gathered), False
    return b"".join(gathered), True
