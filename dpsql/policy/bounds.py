"""Contribution bounds: the most that one privacy unit may add to answers (privacy.md 2 and 4)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, TypeVar

_Bound = TypeVar("_Bound", int, Fraction)


@dataclass(frozen=True)
class ContributionBounds:
    """Upper bounds on the contribution of one privacy unit; a bound that is not set is None.

    `max_rows` bounds its rows in one table, `max_groups` the groups in which it appears, `max_rows_per_group` its rows in one
    group: rows beyond these are dropped. `max_total` (in the unit of the summed value) and `max_count` (rows) bound its
    SUM and its COUNT over all groups together: a sum beyond them is scaled down. `max_values` bounds the distinct values that
    it contributes to a COUNT(DISTINCT x), over all groups together: its other values are left out.
    """

    max_rows: int | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    max_total: Fraction | None = None
    max_count: int | None = None
    max_values: int | None = None

    @property
    def drops_rows_by_group(self) -> bool:
        """Return whether rows are dropped after grouping, so that the kept rows depend on the groups of the question."""
        return self.max_groups is not None or self.max_rows_per_group is not None

    def declared(self) -> dict[str, int | Fraction]:
        """Return the bounds that are set, by name."""
        values = ((entry.name, getattr(self, entry.name)) for entry in fields(self))
        return {name: value for name, value in values if value is not None}

    def tightened(self, *further: ContributionBounds) -> ContributionBounds:
        """Return bounds that are each the smallest among these bounds and the `further` ones."""
        every = (self, *further)
        names = [entry.name for entry in fields(self)]
        return ContributionBounds(*(smallest(*(getattr(bounds, name) for bounds in every)) for name in names))


UNBOUNDED = ContributionBounds()
BOUND_NAMES = tuple(entry.name for entry in fields(ContributionBounds))


def smallest(*bounds: _Bound | None) -> _Bound | None:
    """Return the smallest bound that is set, or None if none is."""
    return min((bound for bound in bounds if bound is not None), default=None)


_NAMES = "names of bounds in fingerprints"


TABLE_BOUNDS = ("max_rows", "max_groups", "max_rows_per_group", "max_count", "max_values")
"""Bounds that a table of a policy may have."""
ADDED_BOUNDS = frozenset({"max_values"})
"""Bounds that were added after releases had been stored: fingerprints leave them out if they are not set."""


def written_as(*names: str) -> dict[str, tuple[str, ...]]:
    """Return the metadata of a dataclass field for contribution bounds, of which the dataclass uses only `names`.

    Fingerprints (`Policy.meaning`, `canonical_text`) write those bounds as if each were a field of the dataclass, so that
    names of stored releases do not depend on the representation of bounds.
    """
    return {_NAMES: names}


def names_in_fingerprint(kind: Any) -> dict[str, tuple[str, ...]]:
    """Return the fields of a dataclass that hold contribution bounds (`written_as`), each with the bounds that it writes."""
    return {entry.name: entry.metadata[_NAMES] for entry in fields(kind) if _NAMES in entry.metadata}
