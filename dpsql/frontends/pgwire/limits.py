"""Limits on the resources of the server that clients may use."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from dpsql.engine.memory_account import MemoryAccount
from dpsql.errors.custodian_log import audit


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
