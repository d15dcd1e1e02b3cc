"""What a process keeps in memory: values that were used recently, objects that are still referenced, and freed pages of threads.

Each thread takes memory from an arena of the C library, of which there are eight for each core. Memory that a thread frees stays
in its arena, so a server with a thread for each client keeps more the longer it runs, although it uses no more. The GNU library
can be told to keep less; with other libraries nothing is done."""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cache, partial
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class RecentValues(Generic[Value]):
    """The `most` values that were used last, by key; fewer if they weigh more than `most_weight` in all, but always the last
    one. Thread-safe; a value made twice at the same time is harmless."""

    def __init__(self, most: int, most_weight: int | None = None) -> None:
        """`most_weight`: bounds the memory of values that may be large (None: no bound)."""
        self._most, self._most_weight = most, most_weight
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value], weight: int | Callable[[Value], int] = 0) -> Value:
        """Return the value under `key`, made and kept if there is none. Raises what `make` raises; nothing is kept then.
        `weight` measures the memory of the value, such as the length of the text that it is made from."""
        with self._lock:
            if (entry := self._values.get(key)) is not None:
                self._values.move_to_end(key)
                return entry[0]
        value = make()
        weight = weight if isinstance(weight, int) else weight(value)
        with self._lock:
            _, before = self._values.pop(key, (None, 0))
            self._values[key] = value, weight
            self._weight += weight - before
            while self._is_full() and len(self._values) > 1:
                self._weight -= self._values.popitem(last=False)[1][1]
        return value

    def _is_full(self) -> bool:
        return len(self._values) > self._most or (self._most_weight is not None and self._weight > self._most_weight)


Kind = TypeVar("Kind")


class LiveObjects(Generic[Kind]):
    """Weak references to objects. Thread-safe without a lock."""

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[Kind]] = {}
        self._numbers = itertools.count()

    def add(self, value: Kind) -> None:
        """Register an object that is not registered yet, for as long as another reference keeps it alive."""
        number = next(self._numbers)
        self._references[number] = weakref.ref(value, partial(self._remove, number))

    def all(self) -> list[Kind]:
        """Return the objects that are alive at this moment."""
        held = (reference() for reference in list(self._references.values()))
        return [value for value in held if value is not None]

    def _remove(self, number: int, reference: weakref.ref[Kind]) -> None:
        self._references.pop(number, None)


_M_ARENA_MAX = -8
_ARENAS = 2


@cache
def _library() -> Any:
    """Return the C library if it has the two functions, else None."""
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def use_few_arenas() -> bool:
    """Let the threads of this process share two arenas; return whether that was possible. Threads that have an arena keep it, so
    this must be called first. DuckDB, Arrow and Python's own objects have separate allocators, and do not wait for each other
    here."""
    library = _library()
    return library is not None and bool(library.mallopt(_M_ARENA_MAX, _ARENAS))


def return_free_memory() -> None:
    """Return free pages of the arenas to the system; takes some milliseconds."""
    library = _library()
    if library is not None:
        library.malloc_trim(ctypes.c_size_t(0))
