"""YAML in which every scalar is text: its place in the policy decides whether it is a number, a date or a truth value.

PyYAML by itself reads `no` as false, `1e-6` as text, `0x10` and `1_0` as numbers, and lets the second of two equal
keys win.  Anchors, merges and tags are also refused: the policy in force must be exactly what is written in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

# --- problems ---------------------------------------------------------------------------------------------------------

# All problems of a policy, collected with their places so that the owner sees all of them at once.

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


# --- yaml text --------------------------------------------------------------------------------------------------------

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of libyaml if PyYAML was built with it: ten times faster, with the same events."""

MOST_DEPTH = 10
MOST_NODES = 200_000

_TOO_DEEP = "exceeded maximum nesting depth"
"""The error with which PyYAML 6.0.4 and later refuse their own maximum depth, far beyond MOST_DEPTH, before any event."""

Node = str | list[Any] | dict[str, Any] | None
"""A node of the tree; a scalar is its text, or None for a plain `null` or `~`."""


class Unreadable(ValueError):
    """The text cannot be read as one plain YAML document; the sentence says why and where."""


def schema_line(place: str | None = None) -> str:
    """Return the comment by which editors (yaml-language-server) find the schema: at `place`, else that of this installation."""
    installed = Path(__file__).parent / "schemas" / "policy.schema.json"
    return f"# yaml-language-server: $schema={place or installed.absolute().as_uri()}"


def quoted(text: str) -> str:
    """Return a YAML scalar in double quotes, on one line, that is read as this text. Invisible characters, and characters that
    YAML reads as an end of line, are escaped."""
    return f'"{"".join(map(_in_quotes, text))}"'


def _in_quotes(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def read_yaml(text: str, problems: Problems) -> Node:
    """Return the one document in `text`; repeated keys and empty values are added to `problems` and left out.

    Raises Unreadable for text that is not YAML, for anchors, aliases, merges, tags, more than one document, and beyond
    `MOST_DEPTH` or `MOST_NODES`. It works on events, not on a tree, so that no bomb is expanded before it is refused.
    """
    reader = _Reader(problems)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            reader.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f"line {mark.line + 1}: "
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it is not YAML"
        if mark is not None and text[mark.index : mark.index + 1] == "\t":
            problem = "there is a tab; indent with blanks"
        if problem == _TOO_DEEP:
            raise Unreadable(f"{place}nested deeper than {MOST_DEPTH} levels") from None
        raise Unreadable(f"{place}cannot be read as YAML: {problem}") from None
    if reader.documents != 1:
        raise Unreadable("the file is empty" if reader.documents == 0 else "the file holds more than one YAML document")
    return reader.root


class _Open:
    """A mapping or list being read; `key` is the mapping key whose value comes next, `keys` are the earlier keys."""

    def __init__(self, node: list[Any] | dict[str, Any], place: Place) -> None:
        self.node = node
        self.place = place
        self.key: str | None = None
        self.keys: set[str] = set()
        self.count = 0


class _Reader:
    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.root: Node = None
        self.documents = 0
        self.nodes = 0
        self.open: list[_Open] = []

    def take(self, event: yaml.Event) -> None:
        """Process the next event of the parser."""
        line = 1 if event.start_mark is None else event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise Unreadable(f"line {line}: anchors and aliases (& and *) are not allowed in a policy")
        if getattr(event, "tag", None) is not None:
            raise Unreadable(f"line {line}: tags (!) are not allowed in a policy")
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, yaml.MappingStartEvent):
            self._begin({}, line)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._begin([], line)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self.open.pop()

    def _count(self, line: int) -> None:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise Unreadable(f"line {line}: a policy has at most {MOST_NODES} values")

    def _begin(self, node: list[Any] | dict[str, Any], line: int) -> None:
        self._count(line)
        if len(self.open) >= MOST_DEPTH:
            raise Unreadable(f"line {line}: nested deeper than {MOST_DEPTH} levels")
        if self.open and isinstance(self.open[-1].node, dict) and self.open[-1].key is None:
            raise Unreadable(f"line {line}: a key must be plain text")
        self.open.append(_Open(node, self._put(node, line)))

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        self._count(line)
        top = self.open[-1] if self.open else None
        if top is not None and isinstance(top.node, dict) and top.key is None:
            if event.value == "<<":
                raise Unreadable(f"line {line}: merges (<<) are not allowed in a policy")
            top.key = event.value
            self.problems.lines.setdefault((*top.place, event.value), line)
        elif not event.style and event.value == "" and top is not None:
            place = self._place(top)
            self.problems.add(place, "nothing is written here; write a value or remove the key")
            self._close_item(top)
        else:
            self._put(None if not event.style and event.value in ("null", "~") else event.value, line)

    def _place(self, top: _Open) -> Place:
        return (*top.place, top.count if top.key is None else top.key)

    def _close_item(self, top: _Open) -> None:
        top.key = None
        top.count += 1

    def _put(self, node: Node, line: int) -> Place:
        """Add `node` to the open mapping or list; the second of two equal keys is a problem and is read, but not kept."""
        if not self.open:
            self.root = node
            return ()
        top = self.open[-1]
        place = self._place(top)
        if isinstance(top.node, list):
            self.problems.lines[place] = line
            top.node.append(node)
        elif top.key in top.keys:
            self.problems.add(place, f"the key {top.key} is written twice (again on line {line})")
        elif top.key is not None:
            top.keys.add(top.key)
            top.node[top.key] = node
        self._close_item(top)
        return place
