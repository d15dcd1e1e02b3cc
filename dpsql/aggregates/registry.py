"""Registry of all aggregates, by word and by spelling. An aggregate that is not registered does not exist."""

from __future__ import annotations

from collections.abc import Iterator

from dpsql.aggregates.contract import Aggregate, Arguments
from dpsql.errors.exceptions import refuse

_BY_WORD: dict[str, Aggregate] = {}
_BY_SPELLING: dict[str, tuple[Aggregate, Arguments]] = {}


def register(aggregate: Aggregate) -> Aggregate:
    """Add an aggregate and return it. Raises ValueError if its word or a spelling is taken."""
    taken = [spelling for spelling in aggregate.spellings if spelling in _BY_SPELLING]
    if aggregate.word in _BY_WORD or taken:
        raise ValueError(f"{aggregate.word}: registered already{f', as {taken}' if taken else ''}")
    _BY_WORD[aggregate.word] = aggregate
    _BY_SPELLING.update({spelling: (aggregate, rule) for spelling, rule in aggregate.spellings.items()})
    return aggregate


def unregister(word: str) -> None:
    """Remove an aggregate (for tests)."""
    for spelling in _BY_WORD.pop(word).spellings:
        del _BY_SPELLING[spelling]


def aggregate_of(word: str) -> Aggregate:
    """Return the aggregate of a measure. Raises InternalError for a word that is not registered."""
    if word not in _BY_WORD:
        raise refuse("internal", what=f"an aggregate that is not registered: {word}")
    return _BY_WORD[word]


def spelled(spelling: str) -> tuple[Aggregate, Arguments] | None:
    """Return the aggregate of a node type's name, or of a function's name in lower case, and how its arguments are read; None if
    there is none."""
    return _BY_SPELLING.get(spelling)


def aggregates() -> Iterator[Aggregate]:
    """Return all aggregates in the order of registration."""
    return iter(tuple(_BY_WORD.values()))
