"""Tests import what they share from this folder: `support`, `sql`, `fuzz`. Which tests are slow, and which need programs.

`pytest` alone runs what takes a few minutes; `pytest -m ""` runs everything.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FOLDERS = {"clients": "clients", "fuzz": "slow", "guarantee": "slow"}
"""Folders all of whose tests have one marker."""
SLOW_FILES = frozenset(
    {
        "answers/test_generated.py",
        "test_benchmarks.py",
        "unit/aggregates/test_contract.py",
        "unit/audit/test_audit.py",
        "unit/audit/test_wire.py",
        "unit/engine/test_collations.py",
        "unit/engine/test_contribution_index.py",
        "unit/engine/test_csv_lines.py",
        "unit/engine/test_engines_agree.py",
        "unit/engine/test_postgresql_functions.py",
        "unit/engine/test_prepared_on_postgresql.py",
        "unit/engine/test_sources.py",
        "unit/engine/test_spark_agrees.py",
        "unit/engine/test_spark_engine.py",
        "unit/engine/test_spark_functions.py",
        "unit/frontends/pgwire/test_identity.py",
        "unit/frontends/pgwire/test_limits.py",
        "unit/frontends/pgwire/test_server.py",
        "unit/frontends/pgwire/test_stuck.py",
        "unit/release/test_bars.py",
        "unit/release/test_coverage.py",
        "unit/release/test_direct.py",
        "unit/release/test_extremes.py",
        "unit/session/test_watches.py",
        "unit/tuning/test_tuning.py",
    }
)
"""Files whose tests take more than a quarter of a minute together, as .ci/run measures them."""
STATISTICAL_FILES = frozenset(
    {
        "guarantee/test_gate_law.py",
        "unit/noise/test_count_choice.py",
        "unit/noise/test_rank_choice.py",
        "unit/noise/test_samplers.py",
        "unit/privacy/test_registered_mechanisms.py",
        "unit/release/test_bars.py",
        "unit/release/test_coverage.py",
    }
)
"""Files that draw many samples and compare them with a law."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the place of their file."""
    for item in items:
        if not item.path.is_relative_to(TESTS):
            continue
        place = item.path.relative_to(TESTS)
        if place.parts[0] in FOLDERS:
            item.add_marker(FOLDERS[place.parts[0]])
        if place.as_posix() in SLOW_FILES:
            item.add_marker("slow")
        if place.as_posix() in STATISTICAL_FILES:
            item.add_marker("statistical")
