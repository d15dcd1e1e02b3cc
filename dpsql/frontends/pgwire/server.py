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
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from dpsql.engine.contract import Engine
from dpsql.engine.fair_queue import FairQueue
from dpsql.engine.memory_account import MemoryAccount
from dpsql.errors.custodian_log import LOST, audit
from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire import messages as m
from dpsql.frontends.pgwire.catalog import Catalog
from dpsql.frontends.pgwire.connection import (
    FLUSH_BYTES,
    ClientConnection,
    ClientReader,
    FailedLogins,
    Limits,
    LoginBackOff,
    Tls,
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
from dpsql.policy.versions import widened
from dpsql.release.confinement import ConfinedPool
from dpsql.release.sandbox import Sandbox
from dpsql.reuse.lookup import ReuseCaches
from dpsql.reuse.questions import QuestionTexts
from dpsql.reuse.store import ReleaseStore
from dpsql.session.background_work import MeasurementQueue
from dpsql.session.context import Watches
from dpsql.session.session import Session
from dpsql.sql.binder.equal_keys import check_row_filters

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

    # --- interface for connections (`Host`) ---------------------------------------------------------------------------

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
                catalog = Catalog(policy, user, self._confined)
                self._catalogs[user] = policy.version, catalog
                catalog.load()
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
