"""Kinds of data sources, by the scheme of their URL, and what a policy may say about each.

The engines that open and read a source are registered in `engine.registry`, which lists the same schemes. DuckDB reads files
without a scheme. Other distributions provide engines by entry points, which are loaded only for a policy that names their scheme.
"""

from __future__ import annotations

import importlib.metadata
import logging
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.storage.records import dataclass, replace

GROUP = "dpsql.engines"
"""The group of entry points by which other distributions provide engines."""
_SCHEMA_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}\Z", re.ASCII)
"""A schema's name of at most 63 characters, because PostgreSQL truncates longer names."""


@dataclass(frozen=True)
class CopiesPlace:
    """The place that `prepare: into` names for a kind of source: `words` describe it briefly; `problem` says what it must be if
    `accepts` is false. `is_path`: it may be a path, relative to the policy's folder. `has_role`: `role` may name the role of the
    server that writes there."""

    words: str
    problem: str
    accepts: Callable[[str], bool]
    is_path: bool = False
    has_role: bool = False


@dataclass(frozen=True)
class SourceKind:
    """One kind of source, whose URL is written `form`.

    `copies`: the place of its prepared copies; None if it is read from local files, beside which dpsql itself keeps copies.
    `reads_urls`: a table may have a URL as its own source. `in_process`: a URL by which the same engine reads Parquet files
    without a server; None if there is no such URL, or no server. `outside`: another distribution provides the engine.
    """

    scheme: str
    form: str
    copies: CopiesPlace | None = None
    reads_urls: bool = False
    in_process: str | None = None
    outside: bool = False

    @property
    def is_server(self) -> bool:
        """Return whether another system holds the data and is queried for them."""
        return self.copies is not None or self.outside


@dataclass(frozen=True)
class OutsideEngine:
    """An engine of another distribution: what its entry point in the group `dpsql.engines`, named after the scheme, refers to.

    `open`: return the `Engine` of a policy. Its code sees every row and is trusted like dpsql's own; `distribution` (set when it
    is loaded) is what `dpsql check` names.
    """

    kind: SourceKind
    open: Callable[[Any], Any]
    distribution: str = ""


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
"""The kinds of sources by scheme."""


def scheme_of(source: str | None) -> str:
    """Return the scheme of a policy's source; DuckDB's scheme for files and if the policy names no source."""
    scheme, separator, _ = (source or "").partition("://")
    return scheme if separator else DUCKDB.scheme


@cache
def outside_engine(scheme: str) -> OutsideEngine | None:
    """Return the engine of another distribution for a scheme that no kind of dpsql's own has; None if there is none.

    Raises Fault engine_outside if it cannot be loaded, or if two distributions provide one.
    """
    entries = [] if scheme in SOURCE_KINDS else list(importlib.metadata.entry_points(group=GROUP, name=scheme))
    if not entries:
        return None
    distributions = sorted(f"{entry.dist.name} {entry.dist.version}" for entry in entries if entry.dist is not None)
    provided = ", ".join(distributions)
    if len(entries) > 1:
        raise refuse("engine_outside", scheme=scheme, distribution=provided, problem="more than one provides it")
    try:
        engine = entries[0].load()
    except Exception as error:
        logging.getLogger("dpsql.custodian").error("cannot load the engine of %s: %s", provided, error)
        raise refuse("engine_outside", scheme=scheme, distribution=provided, problem="loading it failed") from None
    if not isinstance(engine, OutsideEngine) or engine.kind.scheme != scheme:
        problem = f"its entry point is no OutsideEngine of {scheme}://"
        raise refuse("engine_outside", scheme=scheme, distribution=provided, problem=problem)
    return replace(engine, kind=replace(engine.kind, outside=True), distribution=provided)


def _kind(scheme: str) -> SourceKind | None:
    outside = outside_engine(scheme)
    return SOURCE_KINDS.get(scheme) if outside is None else outside.kind


def source_kind(source: str | None) -> SourceKind:
    """Return the kind of a policy's source; `DUCKDB` also if the policy names no source, or an unknown scheme."""
    return _kind(scheme_of(source)) or DUCKDB


def is_source_url(source: str) -> bool:
    """Return whether `source` is the URL of a server, or of a file from which a kind of source is read."""
    kind = _kind(scheme_of(source))
    return kind is not None and "://" in source and (kind.is_server or has_path(source, f"{kind.scheme}:///"))


def has_path(url: str, prefix: str) -> bool:
    """Return whether `url` is `prefix` followed by a path and nothing else."""
    return url.startswith(prefix) and len(url) > len(prefix) and "\0" not in url and "?" not in url
