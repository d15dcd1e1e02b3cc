"""Structure of a source's tables, from which a starter policy is written, and what is malformed in their files."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field, fields

from dpsql.policy.values import RESERVED


@dataclass
class SourceTable:
    """Structure of one table: columns with their engine types, keys as declared, `filled`: columns declared NOT NULL.

    `source`: the table's name or files in the source, if they differ from its own name. `delimiter`, `encoding`: those of CSV
    files, "" and UTF-8 for others. `schema`: the schema of a table in a database, if it is not the default one. `renamed`: names
    of columns to their names in the source, if these differ.
    """

    columns: dict[str, str]
    primary_key: list[str] = field(default_factory=list)
    filled: set[str] = field(default_factory=set)
    foreign_keys: dict[str, tuple[str, str]] = field(default_factory=dict)
    source: str | None = None
    schema: str | None = None
    delimiter: str = ""
    encoding: str = "utf-8"
    renamed: dict[str, str] = field(default_factory=dict)


def plain_name(text: str) -> str:
    """Turn a text into a name that SQL reads without quotes and a policy accepts; such a name is returned unchanged."""
    spelled = unicodedata.normalize("NFKD", text.replace("ß", "ss")).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9_]", "_", spelled)
    if not plain.strip("_"):
        return "data"
    begins = "" if re.match("[A-Za-z_]", plain) else "_"
    return f"{'x' if plain.lower().startswith(RESERVED) else begins}{plain}"[:63]


@dataclass
class Broken:
    """Counts of malformed lines and cells, and of carriage returns that end no line. Only for the owner."""

    wrong_width: int = 0
    too_long: int = 0
    open_quote: int = 0
    not_text: int = 0
    inner_return: int = 0

    def add(self, other: Broken) -> None:
        """Add the counts of other lines."""
        for count in fields(self):
            setattr(self, count.name, getattr(self, count.name) + getattr(other, count.name))
