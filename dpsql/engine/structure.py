"""Structure of a source's table, as a starter policy is written from."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass
class SourceTable:
    """Structure of one table: columns to engine types, keys as declared, `filled`: columns declared NOT NULL."""

    columns: dict[str, str]
    primary_key: list[str] = field(default_factory=list)
    filled: set[str] = field(default_factory=set)
    foreign_keys: dict[str, tuple[str, str]] = field(default_factory=dict)


def plain_name(text: str) -> str:
    """A text as a name that SQL reads without quotes."""
    return re.sub(r"[^A-Za-z0-9_]", "_", text) or "data"
