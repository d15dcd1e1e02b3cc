"""Cache in memory of values that take time to make: the most recently used ones."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class RecentValues(Generic[Value]):
    """The `most` values that were used last, by key; fewer if they weigh more than `most_weight` in all, but always the last
    one. Thread-safe; a value made twice at the same time is harmless."""

    def __init__(self, most: int, most_weight: int | None = None) -> None:
        """`most_weight`: bounds the memory of values that may be large (None: no bound)."""
        self._most, self._most_weight = most, most_weight
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._weights: dict[Hashable, int] = {}
        self._weight = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value], weight: int = 0) -> Value:
        """Return the value under `key`, made and kept if there is none. Raises what `make` raises; nothing is kept then.
        `weight` measures the memory of the value, such as the length of the text that it is made from."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            self._weight += weight - self._weights.get(key, 0)
            self._weights[key] = weight
            while self._is_full() and len(self._values) > 1:
                self._weight -= self._weights.pop(self._values.popitem(last=False)[0])
        return value

    def _is_full(self) -> bool:
        return len(self._values) > self._most or (self._most_weight is not None and self._weight > self._most_weight)
