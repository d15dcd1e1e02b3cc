"""The permitted settings of a source follow from its kind alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.places import POLICIES

from dpsql.policy import load_policy
from dpsql.policy.source_kinds import DUCKDB, SOURCE_KINDS, is_source_url, scheme_of, source_kind
from dpsql.policy.types import Policy, Preparation

SHOP = load_policy(POLICIES / "shop.yaml")


@pytest.mark.parametrize(
    ("source", "accepted"),
    [
        ("duckdb:///rows.duckdb", True),
        ("duckdb:///", False),
        ("duckdb://host/rows.duckdb", False),
        ("duckdb:///rows.duckdb?access_mode=read_write", False),
        ("duckdb:///rows\0.duckdb", False),
        ("postgresql://reader@host/db?sslmode=verify-full", True),
        ("postgres://reader@host/db", False),
        ("POSTGRESQL://host/db", False),
        ("spark://local[2]", True),
        ("s3a://spark://bucket", False),
        ("duckdb", False),
        ("rows.parquet", False),
    ],
)
def test_urls_of_sources_are_those_of_a_kind(source: str, accepted: bool) -> None:
    assert is_source_url(source) is accepted


def test_what_is_no_known_server_is_read_from_local_files() -> None:
    for source in (None, "rows.parquet", "duckdb:///rows.duckdb", "oracle://host/db", "SPARK://host"):
        assert source_kind(source) is DUCKDB and not source_kind(source).is_server
    for scheme in ("postgresql", "spark"):
        kind = source_kind(f"{scheme}://host:1")
        assert kind is SOURCE_KINDS[scheme] and kind.is_server and scheme_of(f"{scheme}://host:1") == scheme


def _over(source: str | None, into: str | None) -> Policy:
    return replace(SHOP, source=source, prepare=Preparation(into=into), folder=Path("/data"))


def test_paths_of_sources_and_copies_start_at_the_folder_of_the_policy() -> None:
    assert _over("duckdb:///rows.duckdb", None).source_path() == "/data/rows.duckdb"
    assert _over("visits/*.parquet", None).source_path() == "/data/visits/*.parquet"
    assert _over("duckdb:////rows.duckdb", None).source_path() == "/rows.duckdb"
    for server in ("postgresql://host/db", "spark://host:7077", None):
        assert _over(server, None).source_path() is None
    assert _over("spark://host:7077", "copies/here").copies_folder() == "/data/copies/here"
    assert _over("spark://host:7077", "s3a://bucket/copies").copies_folder() == "s3a://bucket/copies"
    for source, into in (("spark://host:7077", None), ("postgresql://host/db", "copies"), (None, "copies/here")):
        assert _over(source, into).copies_folder() is None


def test_copies_are_a_schema_or_a_folder_as_the_server_has_them() -> None:
    schema, folder = (SOURCE_KINDS[scheme].copies for scheme in ("postgresql", "spark"))
    assert schema is not None and folder is not None
    assert schema.accepts("dpsql_copies") and not schema.accepts("dpsql/copies") and not schema.accepts("a" * 64)
    assert folder.accepts("./copies") and folder.accepts("s3a://bucket/copies") and not folder.accepts("copies")
    assert schema.has_role and not folder.has_role
