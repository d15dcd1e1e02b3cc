"""Kinds of data sources, by the scheme of their URL: what a policy may say of each.

What opens and reads a source is on the floor of engines (`engine.registry`), which lists the same schemes. Files without a scheme
are those of DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_SCHEMA_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z", re.ASCII)
"""PostgreSQL cuts longer names."""


@dataclass(frozen=True)
class CopiesPlace:
    """What `prepare: into` names for a kind of source: `words` say it in short, `problem` what it has to be where `accepts` is
    false. `is_path`: it may be a path, from the folder of the policy on. `has_role`: a role of the server may write there."""

    words: str
    problem: str
    accepts: Callable[[str], bool]
    is_path: bool = False
    has_role: bool = False


@dataclass(frozen=True)
class SourceKind:
    """One kind of source, whose URL is written `form`.

    `copies`: where its prepared copies are; None where it is read from local files, beside which dpsql keeps copies itself.
    `reads_urls`: a table may have a URL for its own source. `in_process`: a URL by which the same engine reads files of Parquet
    without a server; None where there is none, or no server.
    """

    scheme: str
    form: str
    copies: CopiesPlace | None = None
    reads_urls: bool = False
    in_process: str | None = None

    @property
    def is_server(self) -> bool:
        """Return whether the data are another system's, which is asked for them."""
        return self.copies is not None


_SCHEMA = CopiesPlace(
    "a schema there",
    "is the name of a schema of the PostgreSQL server that `source` names",
    lambda into: _SCHEMA_NAME.match(into) is not None,
    has_role=True,
)
_FOLDER = CopiesPlace(
    "a folder",
    "is a folder for Spark: a path (./copies, /data/copies) or a URL (s3a://...)",
    lambda into: "/" in into,
    is_path=True,
)

DUCKDB = SourceKind("duckdb", "duckdb:///FILE")
SOURCE_KINDS = {
    kind.scheme: kind
    for kind in (
        DUCKDB,
        SourceKind("postgresql", "postgresql://...", _SCHEMA),
        SourceKind("spark", "spark://...", _FOLDER, reads_urls=True, in_process="spark://local[2]"),
    )
}
"""By scheme."""


def scheme_of(source: str | None) -> str:
    """Return the scheme of a policy's source, that of DuckDB for files and where the policy names none."""
    scheme, separator, _ = (source or "").partition("://")
    return scheme if separator else DUCKDB.scheme


def source_kind(source: str | None) -> SourceKind:
    """Return the kind of a policy's source: `DUCKDB` as well where the policy names none, or a scheme that is not known."""
    return SOURCE_KINDS.get(scheme_of(source), DUCKDB)


def is_source_url(source: str) -> bool:
    """Return whether `source` is the URL of a server, or of a file that a kind of source is read from."""
    kind = SOURCE_KINDS.get(scheme_of(source))
    return kind is not None and "://" in source and (kind.is_server or has_path(source, f"{kind.scheme}:///"))


def has_path(url: str, prefix: str) -> bool:
    """Return whether `url` is `prefix` and a path, with nothing else behind it."""
    return url.startswith(prefix) and len(url) > len(prefix) and "\0" not in url and "?" not in url
