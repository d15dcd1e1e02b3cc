"""Facts of a release that are computed when somebody reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar, overload

Entry = TypeVar("Entry")


class Lazily(Sequence[Entry]):
    """The entries that `compute` returns, computed at the first use because few readers of answers use them."""

    def __init__(self, compute: Callable[[], tuple[Entry, ...]]) -> None:
        """`compute` must not refer to a `Planned`: cached answers live as long as that does (`reuse.answer_cache`)."""
        self._compute = compute

    @cached_property
    def _entries(self) -> tuple[Entry, ...]:
        return self._compute()

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the entries instead of what they are computed from."""
        return tuple, (self._entries,)
