"""Fingerprints of a policy: SHA-256 of the names and values of its fields."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import Enum

from dpsql.policy.bounds import ADDED_BOUNDS, names_in_fingerprint

LEFT_OUT_AT_DEFAULT = {"left_out": True}
"""Metadata of a field that was added after fingerprints were stored: policies that do not use it keep their fingerprint."""


def fingerprint(value: object) -> str:
    """Return the SHA-256 (hex) of a policy, or of parts of one."""
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


_NOT_SAID = ("description", "folder", "origin", "rows", "row_count", "asker")
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
            and not (field_.metadata.get("left_out") and getattr(value, name) == field_.default)
        }  # fmt: skip
        return {name: canonical(part) for name, part in written.items()}
    value = value.value if isinstance(value, Enum) else value
    return None if value is None else str(value)
