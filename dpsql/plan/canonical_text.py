"""Frozen values as deterministic text, from which names and fingerprints are made: equal for equal values, in every process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from types import NoneType
from typing import Any

from dpsql.policy.fields import names_in_fingerprint

ADDED = {"added": True}
"""Metadata of a field that was added to a class after values of the class had been stored: the text omits it while it has its
default, so that existing names stay the same."""
KEPT_TEXTS: dict[type, int] = {}
"""Classes whose values cache their own text, up to this many characters, besides their fields. They are frozen, and a copy with
other fields (`replace`) is made from fields alone, so a cached text is never outdated."""
_TEXT = "#text"
_PLAIN = frozenset({str, int, bool, float, NoneType, Fraction})
"""Types of most fields, which are written in place."""


def fingerprint(value: Any) -> str:
    """Return the SHA-256 of a plan, in hex: equal for equal plans, in every process (unlike `hash`)."""
    return hashlib.sha256(canonical_text(value).encode()).hexdigest()


def canonical_text(value: Any) -> str:
    """Return a deterministic text of a frozen plan: type names, field names and values, nothing else."""
    return _writer(type(value))(value)


@cache
def compared_fields(kind: Any) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields that take part in equality; None for any other type."""
    return tuple(f.name for f in fields(kind) if f.compare) if is_dataclass(kind) else None


def _new_writer(kind: Any) -> Callable[[Any], str]:
    """Return the function that writes values of one type."""
    name, names = kind.__name__, compared_fields(kind)
    if names is not None:
        bounds = names_in_fingerprint(kind)
        if bounds:
            return _with_bounds(name, names, bounds)
        added = {f.name: _default(f) for f in fields(kind) if f.metadata.get("added")}
        return _of_fields(name, names, KEPT_TEXTS.get(kind, 0), added)
    if issubclass(kind, (tuple, list)):
        return lambda value: f"[{','.join([_writer(type(item))(item) for item in value])}]"
    if issubclass(kind, Enum):
        return lambda value: f"{name}.{value.name}"
    return lambda value: f"{name}:{value!r}"


_writer: Callable[[Any], Callable[[Any], str]] = cache(_new_writer)


def _default(field: Field[Any]) -> Any:
    if field.default is MISSING:
        raise TypeError(f"{field.name} was added without a default")
    return field.default


def _of_fields(name: str, names: tuple[str, ...], most_kept: int, added: dict[str, Any]) -> Callable[[Any], str]:
    def write(value: Any) -> str:
        parts = value.__dict__
        if _TEXT in parts:
            return str(parts[_TEXT])
        written = [label for label in names if label not in added or parts[label] != added[label]] if added else names
        texts = [
            f"{label}={kind.__name__}:{part!r}" if (kind := type(part := parts[label])) in _PLAIN
            else f"{label}={_writer(kind)(part)}"
            for label in written
        ]  # fmt: skip
        text = f"{name}({','.join(texts)})"
        if len(text) <= most_kept:
            parts[_TEXT] = text
        return text

    return write


def _with_bounds(name: str, names: tuple[str, ...], bounds: dict[str, tuple[str, ...]]) -> Callable[[Any], str]:
    """Write contribution bounds as fields of the value that holds them (see `policy.types.written_as`)."""

    def write(value: Any) -> str:
        held = [
            (value if part_name not in bounds else getattr(value, part_name), bounds.get(part_name, (part_name,)))
            for part_name in names
        ]
        parts = {key: getattr(holder, key) for holder, keys in held for key in keys}
        return f"{name}({','.join([f'{key}={_writer(type(part))(part)}' for key, part in parts.items()])})"

    return write
