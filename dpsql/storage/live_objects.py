"""The objects of a kind that a process has, for what is done to all of them at a fork or at the end.

A `weakref.WeakSet` cannot be read while another thread adds to it ("Set changed size during iteration"), and a lock could be
held by a thread that a fork leaves behind. Each step here is one operation on a dictionary, which is atomic.
"""

from __future__ import annotations

import itertools
import weakref
from functools import partial
from typing import Generic, TypeVar

Kind = TypeVar("Kind")


class LiveObjects(Generic[Kind]):
    """Weak references to objects. Thread-safe without a lock."""

    def __init__(self) -> None:
        """Start with an empty register."""
        self._references: dict[int, weakref.ref[Kind]] = {}
        self._numbers = itertools.count()

    def add(self, value: Kind) -> None:
        """Keep an object, that is not among them, as long as somebody else holds it."""
        number = next(self._numbers)
        self._references[number] = weakref.ref(value, partial(self._remove, number))

    def all(self) -> list[Kind]:
        """Return those that are held at this moment."""
        held = (reference() for reference in list(self._references.values()))
        return [value for value in held if value is not None]

    def _remove(self, number: int, reference: weakref.ref[Kind]) -> None:
        """Forget an object that is gone."""
        self._references.pop(number, None)
