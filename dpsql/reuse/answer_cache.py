"""Cache of values computed from stored releases, kept as long as the planner keeps the question: dashboards repeat questions.

This module does not decide what may be answered: the caller compares the sources with the stored releases.
"""

from __future__ import annotations

import threading
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from dpsql.planning.planner import Planned, QuestionToken

Source = TypeVar("Source")
Value = TypeVar("Value")


MOST_BYTES = 64 << 20


class AnswerCache(Generic[Source, Value]):
    """The last value computed for each part of a planned question, with its source; at most `MOST_BYTES` in all. Thread-safe."""

    def __init__(self) -> None:
        self._values: WeakKeyDictionary[QuestionToken, dict[int, tuple[Source, Value]]] = WeakKeyDictionary()
        self._sizes: WeakKeyDictionary[QuestionToken, dict[int, int]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, planned: Planned, part: int = 0) -> tuple[Source, Value] | None:
        """Return the source and the value kept last for a part of the question, or None."""
        with self._lock:
            return self._values.get(planned.token, {}).get(part)

    def keep(self, planned: Planned, source: Source, value: Value, part: int = 0, *, size: int) -> None:
        """Keep a value of about `size` bytes in place of the previous one; the questions whose values were first kept longest ago
        lose theirs if all take too much."""
        with self._lock:
            self._values.setdefault(planned.token, {})[part] = (source, value)
            self._sizes.setdefault(planned.token, {})[part] = size
            excess = sum(sum(sizes.values()) for sizes in self._sizes.values()) - MOST_BYTES
            for token in list(self._sizes):
                if excess <= 0:
                    break
                excess -= sum(self._sizes.pop(token).values())
                self._values.pop(token, None)
