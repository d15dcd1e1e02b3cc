"""Accounts of memory: who holds how many bytes for a client, and the bounds on them.

A server has one account, with a part for each analyst, which has a part for each of their connections. Whoever keeps something
that clients can make grow (rows of portals and cursors, prepared statements, values of parameters, rows that are computed or
written) reserves its size in the account of the connection first, and releases it at the end. A reservation counts in the
account and in all accounts that it is part of, and is refused (memory_full) by the first of them that has no room.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dpsql.errors.exceptions import refuse

_MEGABYTE = 1 << 20


class Held:
    """Bytes that are held in an account until `release`. Several holders may share the same bytes (`share`): they are released
    when the last holder releases them."""

    def __init__(self, account: MemoryAccount, kind: str) -> None:
        """Create a reservation of no bytes; `MemoryAccount.reserve` makes it larger."""
        self.account, self.kind = account, kind
        self._holders = 1
        self.size = 0

    def resize(self, size: int, *, forced: bool = False) -> None:
        """Hold `size` bytes; raises memory_full where no room is, unless `forced`. After the last release, hold nothing."""
        with self.account.lock:
            if self._holders:
                self.account.change(self, size, forced=forced)

    def at_least(self, size: int) -> None:
        """Hold `size` bytes if that is more than at present. Raises memory_full."""
        if size > self.size:
            self.resize(size)

    def share(self) -> Held:
        """Add a holder, and return this reservation."""
        with self.account.lock:
            self._holders += 1
        return self

    def release(self) -> None:
        """Remove one holder; without any, nothing is held."""
        with self.account.lock:
            self._holders = max(0, self._holders - 1)
            if not self._holders:
                self.account.change(self, 0)

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *failure: object) -> None:
        self.release()


class MemoryAccount:
    """The bytes that somebody holds, at most `most` (None: no bound). Thread-safe.

    `who` names the holder in refusals, and `advice` says what to close.
    """

    def __init__(
        self, most: int | None = None, who: str = "this process", advice: str = "", parent: MemoryAccount | None = None
    ) -> None:
        """Open an account that is part of `parent`."""
        self.most, self._who, self._advice, self._parent = most, who, advice, parent
        self.lock: threading.RLock = threading.RLock() if parent is None else parent.lock
        self.held = 0
        self.refused = 0
        self.kinds: dict[str, int] = {}
        self._live: dict[int, Held] = {}
        self._statement: Held | None = None
        self._closed = False

    def part(self, most: int | None, who: str, advice: str) -> MemoryAccount:
        """Return a new account that is part of this one."""
        return MemoryAccount(most, who, advice, self)

    def reserve(self, size: int, kind: str, *, forced: bool = False) -> Held:
        """Hold `size` bytes until the result is released; `kind` is a word for the metrics. Raises memory_full, unless
        `forced`: that is for the few bytes of what frees others."""
        held = Held(self, kind)
        held.resize(size, forced=forced)
        return held

    def change(self, held: Held, size: int, *, forced: bool = False) -> None:
        """Change the size of a reservation in this account and all that it is part of. Called under `lock`. Raises memory_full,
        and changes nothing, if an account has no room for what is added."""
        more, chain = size - held.size, list(self._chain())
        for account in chain:
            if more > 0 and not forced and account.most is not None and account.held + more > account.most:
                chain[-1].refused += 1
                raise refuse(
                    "memory_full", who=account._who, held=in_megabytes(account.held), most=in_megabytes(account.most),
                    more=in_megabytes(more), advice=account._advice,
                )  # fmt: skip
        for account in chain:
            account.held += more
            account.kinds[held.kind] = account.kinds.get(held.kind, 0) + more
        held.size = size
        if size:
            self._live[id(held)] = held
        else:
            self._live.pop(id(held), None)

    def _chain(self) -> Iterator[MemoryAccount]:
        account: MemoryAccount | None = self
        while account is not None:
            yield account
            account = account._parent

    # --- statements ---------------------------------------------------------------------------------------------------

    @contextmanager
    def statement(self, size: int, kind: str) -> Iterator[Held]:
        """Hold the memory of one statement: `size` bytes to begin with, more while its rows are computed (`computing`). When
        the context ends without an error, the reservation stays, for the rows that the caller keeps. Raises memory_full."""
        held = self.reserve(size, kind)
        self._statement = held
        try:
            yield held
        except BaseException:
            held.release()
            raise
        finally:
            self._statement = None
            if self._closed:
                self.close()

    def computing(self, size: int) -> None:
        """Count rows of `size` bytes that are computed for the running statement, if there is one. Raises memory_full."""
        held = self._statement
        if held is not None:
            held.at_least(size)

    def close(self) -> None:
        """Release everything that is held in this account, now, or when the running statement has ended."""
        with self.lock:
            self._closed = True
            for held in list(self._live.values()):
                if held is not self._statement:
                    held._holders = 0
                    self.change(held, 0)


def in_megabytes(size: int) -> str:
    """Return a number of bytes in words; small sizes are rounded up to a tenth of a megabyte."""
    tenths = -(-10 * size // _MEGABYTE)
    return f"{tenths / 10:g} MB" if tenths < 100 else f"{round(size / _MEGABYTE)} MB"
