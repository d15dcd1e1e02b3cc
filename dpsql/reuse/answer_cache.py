"""What was made of stored releases, kept as long as the planner keeps the question: a dashboard asks the same all day.

Nothing here decides what may be answered: the caller compares the sources with those that it has.
"""

from __future__ import annotations

import threading
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from dpsql.planning.planner import Planned, QuestionToken

Source = TypeVar("Source")
Made = TypeVar("Made")


class AnswerCache(Generic[Source, Made]):
    """The last value made for each part of a planned question, and what it was made of. Thread-safe."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[QuestionToken, dict[int, tuple[Source, Made]]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self, planned: Planned, part: int = 0) -> tuple[Source, Made] | None:
        """Return the source and the value kept last for a part of the question, None when there is none."""
        with self._lock:
            return self._kept.get(planned.token, {}).get(part)

    def keep(self, planned: Planned, source: Source, made: Made, part: int = 0) -> None:
        """Keep a value in place of the one before."""
        with self._lock:
            self._kept.setdefault(planned.token, {})[part] = (source, made)
