"""What the fields of a policy declare: the keys of its file that fill them, and how fingerprints write them.

Each key is declared once, at the field that it fills: how its value is read, and what it is for.

Values are read from the tree of `read_yaml`, in which every scalar is text. What a mapping says is a dictionary by the names of
fields (`Stated`), from which `build` makes the policy. The JSON Schema is generated from the same declarations.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Protocol

from dpsql.errors.exceptions import did_you_mean
from dpsql.policy.yaml_text import Place, Problems
from dpsql.storage.records import MISSING, dataclass, field, fields, replace

Stated = dict[str, Any]
"""The values that a mapping of the file gives, by the names of fields; keys that are left out are not in it."""
FAILED: Any = object()
"""What is read where there is a problem, which has been recorded."""
_KEYS = "keys of the file"
_MAPPING = "a mapping of keys to values is expected here"
LEFT_OUT_AT_DEFAULT = {"left_out": True}
"""Metadata of a field that was added after fingerprints were stored: policies that do not use it keep their fingerprint."""

_ELSEWHERE = {
    "min": "lower", "minimum": "lower", "max": "upper", "maximum": "upper",
    "values": "domain", "categories": "domain", "enum": "domain", "levels": "domain",
}  # fmt: skip
"""Keys of a policy by words of other systems for them."""


class ValueKind(Protocol):
    """A kind of values."""

    def read(self, raw: Any, place: Place, problems: Problems) -> Any:
        """Return the value of a node of the tree, or FAILED."""

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema of the kind. Those that have a name are added to `definitions`."""


@dataclass(frozen=True)
class Plain:
    """Values that a function reads, which raises ValueError with the sentence that the owner reads. `said`: their JSON Schema, in
    which they may be `named`."""

    reader: Callable[[Any], Any]
    said: Mapping[str, Any]
    named: str = ""

    def read(self, raw: Any, place: Place, problems: Problems) -> Any:
        try:
            return self.reader(raw)
        except ValueError as error:
            problems.add(place, str(error))
            return FAILED

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        if not self.named:
            return dict(self.said)
        definitions[self.named] = dict(self.said)
        return {"$ref": f"#/$defs/{self.named}"}


@dataclass(frozen=True)
class ListOf:
    """Lists of values of one kind. `expected`: the sentence for what is no list."""

    kind: ValueKind
    expected: str

    def read(self, raw: Any, place: Place, problems: Problems) -> Any:
        if not isinstance(raw, list):
            problems.add(place, self.expected)
            return FAILED
        values = tuple(self.kind.read(item, (*place, index), problems) for index, item in enumerate(raw))
        return FAILED if FAILED in values else values

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"type": "array", "items": self.kind.schema(definitions)}


@dataclass(frozen=True)
class Entries:
    """Mappings whose keys are names that the owner chooses."""

    name: Plain
    kind: ValueKind

    def read(self, raw: Any, place: Place, problems: Problems) -> Any:
        """Return the entries that have no problem by their names, or FAILED."""
        if not isinstance(raw, dict):
            problems.add(place, _MAPPING)
            return FAILED
        entries = {}
        for key, item in raw.items():
            below = (*place, key)
            name, value = self.name.read(key, below, problems), self.kind.read(item, below, problems)
            if name is not FAILED and value is not FAILED:
                entries[name] = value
        return entries

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        named = {self.name.said["pattern"]: self.kind.schema(definitions)}
        return {"type": "object", "patternProperties": named, "additionalProperties": False}


@dataclass(frozen=True)
class KeysOf:
    """Mappings with the keys of a type (`keys_of`)."""

    type_: type

    def read(self, raw: Any, place: Place, problems: Problems, filled: Mapping[str, Any] | None = None) -> Any:
        """Return what the mapping gives, or FAILED if it lacks what it must have. `filled`: values of required keys that stand
        in for those with a problem, so that the rest can be checked."""
        if not isinstance(raw, dict):
            problems.add(place, _MAPPING)
            return FAILED
        keys, stated = keys_of(self.type_), dict(filled or {})
        for name, key in keys.items():
            below = (*place, name)
            if name not in raw:
                if not key.optional:
                    problems.add(below, "is missing")
            elif raw[name] is not None or not key.nullable:
                value = key.kind.read(raw[name], below, problems)
                if value is not FAILED:
                    stated[key.field] = value
        for name in raw:
            if name not in keys:
                problems.add((*place, name), f"unknown key {name}{did_you_mean(_ELSEWHERE.get(name) or name, keys)}")
        return stated if all(key.optional or key.field in stated for key in keys.values()) else FAILED

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """Return a reference to the JSON Schema of the mapping."""
        name, keys = self.type_.__name__, keys_of(self.type_)
        if name not in definitions:
            definitions[name] = {}
            definitions[name] |= {
                "description": " ".join((self.type_.__doc__ or "").partition("\n\n")[0].split()),
                "type": "object",
                "properties": {name: key.schema(definitions) for name, key in keys.items()},
                "required": [name for name, key in keys.items() if not key.optional],
                "additionalProperties": False,
            }
        return {"$ref": f"#/$defs/{name}"}


@dataclass(frozen=True)
class WordOr:
    """A word, or a mapping."""

    word: Plain
    mapping: KeysOf

    def read(self, raw: Any, place: Place, problems: Problems) -> Any:
        return (self.mapping if isinstance(raw, dict) else self.word).read(raw, place, problems)

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"anyOf": [self.word.schema(definitions), self.mapping.schema(definitions)]}


@dataclass(frozen=True)
class PolicyKey:
    """A key: the kind of its value, what it is for, and the field that it fills. Null means that a key is left out, if it may be
    and `default`, which the schema shows, is nothing else."""

    kind: ValueKind
    description: str = ""
    optional: bool = False
    field: str = ""
    default: Any = None

    @property
    def nullable(self) -> bool:
        return self.optional and self.default is None

    def schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        schema = self.kind.schema(definitions)
        if self.nullable:
            schema = {"anyOf": [schema, {"type": "null"}]}
        if self.default and isinstance(self.default, str | int):
            schema["default"] = self.default
        return {**schema, "description": self.description} if self.description else schema


def key(kind: ValueKind, description: str = "", *, name: str = "", optional: bool = False) -> dict[str, Any]:
    """Return the metadata of a field that a key of the file fills: the key of the field's name, or of another `name`. If it is
    `optional`, `build` computes the value of a key that is left out."""
    return {_KEYS: {name: PolicyKey(kind, description, optional)}}


def option(
    default: Any,
    kind: ValueKind,
    description: str = "",
    *,
    name: str = "",
    optional: bool = False,
    left_out: bool = False,
    added: bool = False,
) -> Any:
    """Return a field with a default that a key of the file fills (`key`). `left_out`: of fingerprints at its default; `added`:
    of these and of the names of prepared copies."""
    metadata = key(kind, description, name=name, optional=optional) | {"left_out": left_out or added, "added": added}
    if isinstance(default, dict):
        return field(default_factory=dict, hash=False, metadata=metadata)
    return field(default=default, metadata=metadata)


def also(metadata: dict[str, Any], **keys: PolicyKey) -> dict[str, Any]:
    """Return a field's metadata with further optional keys of its mapping. They fill no field: `build` reads them."""
    further = {name: replace(key, optional=True, field=name) for name, key in keys.items()}
    return {**metadata, _KEYS: {**metadata.get(_KEYS, {}), **further}}


@cache
def keys_of(type_: Any) -> dict[str, PolicyKey]:
    """Return the keys that a mapping of the file may have, by name."""
    keys = {}
    for entry in fields(type_):
        default = entry.default.value if isinstance(entry.default, Enum) else entry.default
        required = default is MISSING and entry.default_factory is MISSING
        for name, declared in entry.metadata.get(_KEYS, {}).items():
            optional, default_shown = declared.optional or not required, () if default is MISSING else default
            completed = replace(
                declared, field=entry.name, optional=optional, default=None if declared.optional else default_shown
            )
            keys[name or entry.name] = declared if declared.field else completed
    return keys


def json_schema(type_: type) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a file with the keys of a type, for editors."""
    definitions: dict[str, Any] = {}
    KeysOf(type_).schema(definitions)
    root = definitions.pop(type_.__name__)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": definitions}


# --- fingerprints: SHA-256 of the names and values of fields ------------------------------------------------------------

_NAMES = "names of bounds in fingerprints"
ADDED_BOUNDS = frozenset({"max_values"})
"""Bounds that were added after releases had been stored: fingerprints leave them out if they are not set."""


def written_as(*names: str) -> dict[str, Any]:
    """Return the metadata of a dataclass field for contribution bounds, of which the dataclass uses only `names`.

    Fingerprints (`Policy.meaning`, `canonical_text`) write those bounds as if each were a field of the dataclass, so that
    names of stored releases do not depend on the representation of bounds.
    """
    return {_NAMES: names}


def names_in_fingerprint(kind: Any) -> dict[str, tuple[str, ...]]:
    """Return the fields of a dataclass that hold contribution bounds (`written_as`), each with the bounds that it writes."""
    return {entry.name: entry.metadata[_NAMES] for entry in fields(kind) if _NAMES in entry.metadata}


def fingerprint(value: object) -> str:
    """Return the SHA-256 (hex) of a policy, or of parts of one."""
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


_NOT_SAID = ("description", "folder", "origin", "rows", "row_count", "asker", "unprotected")
"""Fields on which the meaning of answers does not depend."""


def canonical(value: object) -> object:
    """Return `value` in the form of JSON. Scalars become text; a column's type distinguishes the number 1 from the text "1"."""
    if isinstance(value, Mapping):
        return {json.dumps(canonical(key)): canonical(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [canonical(item) for item in value]
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        bounds = names_in_fingerprint(type(value))
        written = {name: getattr(getattr(value, held), name) for held, names in bounds.items() for name in names}
        written = {name: part for name, part in written.items() if part is not None or name not in ADDED_BOUNDS}
        written |= {
            name: getattr(value, name) for name, field_ in fields.items()
            if name not in (*_NOT_SAID, *bounds)
            and not (field_.metadata.get("left_out") and getattr(value, name) in (field_.default, {}))
        }  # fmt: skip
        return {name: canonical(part) for name, part in written.items()}
    value = value.value if isinstance(value, Enum) else value
    return None if value is None else str(value)
