"""Engines are opened by the source's scheme alone, and no module outside engine/ names one."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.package_modules import nodes
from support.places import POLICIES

import dpsql
from dpsql.engine import registry
from dpsql.errors.exceptions import Fault
from dpsql.policy import load_policy
from dpsql.policy.source_kinds import SOURCE_KINDS

ROOT = Path(dpsql.__file__).parent
POLICY = POLICIES / "shop.yaml"
ENGINES = ("duckdb", "postgresql", "spark")


def imported(file: Path) -> set[str]:
    """Return every module that a file imports, at load or later."""
    found = set()
    for node in nodes(file):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_no_module_of_emit_knows_an_engine() -> None:
    files = sorted((ROOT / "engine" / "emit").glob("*.py"))
    assert len(files) > 8
    for file in files:
        assert not any(name.split(".")[:2] == ["dpsql", "engine"] and name.split(".")[2:3] in [[e] for e in ENGINES]
                       for name in imported(file)), file.name  # fmt: skip


def test_only_the_registry_the_sandbox_and_the_page_of_engines_import_an_engine() -> None:
    importers = {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
        if file.relative_to(ROOT).parts[:2] not in [("engine", name) for name in ENGINES]
        and any(name.startswith(tuple(f"dpsql.engine.{engine}" for engine in ENGINES)) for name in imported(file))
    }
    # The sandbox computes on released numbers in a separate DuckDB, whatever engine holds the data.
    assert importers == {"engine/registry.py", "release/sandbox.py"}


@pytest.mark.parametrize("source", ["oracle://host/db", "SPARK://host:7077", "POSTGRESQL://host/db"])
def test_a_scheme_without_an_engine_is_refused(source: str) -> None:
    policy = replace(load_policy(POLICY), source=source)
    with pytest.raises(Fault) as refusal:
        registry.open_engine(policy)
    assert refusal.value.slug == "source_unsupported"
    assert source.split("://", maxsplit=1)[0] in refusal.value.message and "duckdb://" in (refusal.value.hint or "")


def test_a_registered_scheme_opens_its_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setitem(registry.FACTORIES, "double", lambda policy: opened.append(policy) or "engine")
    policy = replace(load_policy(POLICY), source="double://anywhere")
    assert registry.open_engine(policy) == "engine"  # type: ignore[comparison-overlap]
    assert opened == [policy]


def test_every_kind_of_source_that_a_policy_may_name_has_an_engine() -> None:
    assert set(registry.FACTORIES) == set(SOURCE_KINDS)
    assert {kind.scheme for kind in SOURCE_KINDS.values()} == set(SOURCE_KINDS)
