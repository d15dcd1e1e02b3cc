"""Registers of a process's objects of one kind, for actions on all of them at a fork or at the end.

A `weakref.WeakSet` cannot be read while another thread adds to it ("Set changed size during iteration"), and a lock could be held
by a thread that a fork leaves behind. Each step here is one operation on a dictionary, which is atomic.
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
        """Register an object that is not registered yet, for as long as another reference keeps it alive."""
        number = next(self._numbers)
        self._references[number] = weakref.ref(value, partial(self._remove, number))

    def all(self) -> list[Kind]:
        """Return the objects that are alive at this moment."""
        held = (reference() for reference in list(self._references.values()))
        return [value for value in held if value is not None]

    def _remove(self, number: int, reference: weakref.ref[Kind]) -> None:
        """Remove the reference to an object that is gone."""
        self._references.pop(number, None)
