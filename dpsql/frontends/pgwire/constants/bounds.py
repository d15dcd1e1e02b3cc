"""Limits on what one statement computes: it runs in the server itself, beside the answers of all connections."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.constants.tokens import Large

T = TypeVar("T")

MOST_WORK = 3_000_000
"""Limit on the characters, elements and calls of one answer."""
MOST_ROWS, MOST_CELLS, MOST_COLUMNS = 100_000, 2_000_000, 1_600
"""Limits on the rows of one source, on their cells, and on their columns."""
_STEPS = 8
"""Steps between two looks at the clock."""
MOST_SECONDS, _AT_ONCE_SECONDS = 1.5, 0.02
"""Limits on the processor time of one answer, which holds up the connections of the server, and on what it takes of it before it
waits for its turn: of the answers that take longer, the server computes one at a time."""


class _Clock(threading.local):
    """The processor time of a thread at which its statement ends, its steps, and the most cells of one of its rows."""

    until = turn_at = math.inf
    steps = 0
    check: Callable[[], None] = staticmethod(lambda: None)
    turn: Callable[[], None] = staticmethod(lambda: None)
    width = 20


_CLOCK = _Clock()


def step() -> None:
    """Count a step of a statement. Raises sandbox_time at its end: the statement runs in the server itself."""
    _CLOCK.steps += 1
    if _CLOCK.steps % _STEPS == 0:
        _CLOCK.check()
        now = time.thread_time()
        if now > _CLOCK.turn_at:
            _CLOCK.turn_at = math.inf
            _CLOCK.turn()
        if now > _CLOCK.until:
            raise refuse("sandbox_time")


def counted(rows: Iterable[T]) -> Iterator[T]:
    """Yield rows, each a step: what an expression computes for one row is bounded by its text, and not for all of them."""
    for row in rows:
        step()
        yield row


def checkpoint() -> None:
    """Look at the clock now. Raises sandbox_time."""
    _CLOCK.steps = -1
    step()


def most_rows() -> int:
    """Return the limit on the rows of a source or a product, which grow with their columns."""
    return min(MOST_ROWS, MOST_CELLS // _CLOCK.width)


def widen(columns: int) -> None:
    """Note rows of so many columns. Raises Large for more than PostgreSQL's tables have."""
    if columns > MOST_COLUMNS:
        raise Large
    _CLOCK.width = max(_CLOCK.width, columns)


def rest(end_turn: Callable[[], None]) -> None:
    """End the turn of this thread's statement if it has one, before it waits; to compute on, it waits for another."""
    if _CLOCK.turn_at == math.inf:
        end_turn()
        _CLOCK.turn_at = time.thread_time()


def begin(check: Callable[[], None], turn: Callable[[], None]) -> None:
    """Begin a statement of this thread, which ends where `check` raises, and calls `turn` once if it takes long."""
    now = time.thread_time()
    _CLOCK.until, _CLOCK.turn_at, _CLOCK.width = now + MOST_SECONDS, now + _AT_ONCE_SECONDS, 20
    _CLOCK.check, _CLOCK.turn = check, turn


_LIGHT = {bool, int, float}
"""Types whose values have no parts."""


def weight(value: Any) -> int:
    """Return the characters and elements of a value; beyond `MOST_WORK`, as many as were counted: its parts may be one array."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if value is None or type(value) in _LIGHT:
        return 0
    for name in ("value", "points", "values"):  # of JSON, of shapes, and of records
        value = value if isinstance(value, dict) else getattr(value, name, value)
    if isinstance(value, dict):
        value = [*value, *value.values()]
    total = len(value) if isinstance(value, (list, tuple)) else 0
    for part in value if total else ():
        if total > MOST_WORK:
            break
        total += weight(part)
    return total
