"""All problems of a policy, collected with their places so that the owner sees all of them at once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Place = tuple[str | int, ...]
"""Keys and list positions from the root of the file: ("tables", "visits", "columns", "age", "upper")."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)


@dataclass(frozen=True)
class Origin:
    """The text that a policy was read from: its name in messages, usually that of a file, and the line of each place."""

    name: str = "policy"
    lines: Mapping[Place, int] = field(default_factory=dict)


class Problems:
    """A list of (place, sentence), one per place; `lines` maps a place to its line in the file."""

    def __init__(self, lines: Mapping[Place, int] | None = None) -> None:
        self.lines: dict[Place, int] = dict(lines or {})
        self._sentences: dict[Place, str] = {}

    def __bool__(self) -> bool:
        return bool(self._sentences)

    def add(self, place: Place, sentence: str) -> None:
        """Record a problem; only the first problem at each place is kept, because others may follow from it."""
        self._sentences.setdefault(place, sentence)

    def within(self, place: Place) -> bool:
        """Return whether a problem is known at `place` or below it."""
        return any(entered[: len(place)] == place for entered in self._sentences)

    def listed(self) -> list[tuple[str, str]]:
        """Return (path, sentence) in the order of the file; the sentence begins with the line if it is known."""
        by_line = [(self._line(place), place, sentence) for place, sentence in self._sentences.items()]
        by_line.sort(key=lambda item: item[0])
        return [(written(place), f"line {line}: {sentence}" if line else sentence) for line, place, sentence in by_line]

    def _line(self, place: Place) -> int:
        """Return the line of the place, or of the part that contains it (a missing key has no line itself)."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 0)


def written(place: Place) -> str:
    """Return a place in a form for people: $.tables.visits.columns.age.domain[2]."""
    text = "$"
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if _PLAIN.match(part) else f"[{json.dumps(part)}]"
    return text
