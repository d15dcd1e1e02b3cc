"""Pytest configuration: the import path of shared test modules (`support`, `sql`, `fuzz`), and the markers of slow tests and of
tests that need other programs.

`pytest` alone runs the tests that take a few minutes together; `pytest -m ""` runs everything.
"""

import gc
import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("untimed", deadline=None)  # on a busy machine any example may take long
hypothesis.settings.load_profile("untimed")
TESTS = Path(__file__).parent
FOLDERS = {"clients": "clients", "fuzz": "slow", "guarantee": "slow"}
"""Folders whose tests all have one marker."""
SLOW_FILES = frozenset(
    {
        "answers/test_column_names.py",
        "answers/test_correlated_laplace.py",
        "answers/test_from_lists.py",
        "answers/test_generated.py",
        "answers/test_outside_values.py",
        "answers/test_queries.py",
        "answers/test_running_noise.py",
        "answers/test_same_groups_on_servers.py",
        "answers/test_sessions.py",
        "answers/test_suite.py",
        "audit/test_audit.py",
        "audit/test_findings.py",
        "audit/test_scratch.py",
        "audit/test_spark_source.py",
        "audit/test_wire.py",
        "test_benchmarks.py",
        "test_deploy.py",
        "unit/aggregates/test_contract.py",
        "unit/engine/duckdb/test_sources.py",
        "unit/engine/emit/test_sample_statistics.py",
        "unit/engine/postgresql/test_corpus.py",
        "unit/engine/postgresql/test_engine.py",
        "unit/engine/postgresql/test_functions.py",
        "unit/engine/postgresql/test_icu_collations.py",
        "unit/engine/postgresql/test_stored_views.py",
        "unit/engine/spark/test_corpus.py",
        "unit/engine/spark/test_engine.py",
        "unit/engine/spark/test_functions.py",
        "unit/engine/spark/test_neighbouring_files.py",
        "unit/engine/spark/test_parquet_footers.py",
        "unit/engine/spark/test_stored_views.py",
        "unit/engine/test_appended_files.py",
        "unit/engine/test_collations.py",
        "unit/engine/test_contribution_index.py",
        "unit/engine/test_csv_lines.py",
        "unit/frontends/admin/test_wizard.py",
        "unit/frontends/batch/test_batch.py",
        "unit/frontends/batch/test_report_page.py",
        "unit/frontends/cli/test_plan.py",
        "unit/frontends/pgwire/test_abuse.py",
        "unit/frontends/pgwire/test_disconnect.py",
        "unit/frontends/pgwire/test_identity.py",
        "unit/frontends/pgwire/test_lanes.py",
        "unit/frontends/pgwire/test_limits.py",
        "unit/frontends/pgwire/test_memory.py",
        "unit/frontends/pgwire/test_reload.py",
        "unit/frontends/pgwire/test_server.py",
        "unit/frontends/pgwire/test_stuck.py",
        "unit/frontends/pgwire/test_throughput.py",
        "unit/frontends/pgwire/test_timing.py",
        "unit/frontends/pgwire/test_traces.py",
        "unit/frontends/pgwire/test_users.py",
        "unit/frontends/pgwire/test_watches.py",
        "unit/frontends/python/test_background_copies.py",
        "unit/frontends/rendering/test_pictures.py",
        "unit/frontends/rendering/test_plots.py",
        "unit/frontends/test_cookbook.py",
        "unit/frontends/test_repl.py",
        "unit/ledger/test_crash.py",
        "unit/pricing/test_joint_pairs.py",
        "unit/pricing/test_plan_check.py",
        "unit/privacy/mechanisms/test_correlated_noise.py",
        "unit/release/error_bars/test_answers.py",
        "unit/release/error_bars/test_coverage.py",
        "unit/release/error_bars/test_direct.py",
        "unit/release/error_bars/test_extremes.py",
        "unit/reuse/test_stored_pairs.py",
        "unit/session/test_watches.py",
        "unit/sql/rewrites/test_dialects.py",
        "unit/tuning/test_policy_fit.py",
        "unit/tuning/test_tuning.py",
        "unit/tuning/test_ways.py",
    }
)
"""Slow files: most take more than a quarter of a minute, including the programs that they start or wait for. `pytest` alone must
stay under four minutes on two cores."""
ANNEX_FILES = frozenset(
    {
        "answers/test_listed_groups.py",
        "answers/test_local_sensitivity.py",
        "answers/test_modes.py",
        "answers/test_samples.py",
        "unit/exports/test_estimates.py",
        "unit/noise/test_comparisons.py",
        "unit/noise/test_correlated_laplace.py",
        "unit/noise/test_leaning_choice.py",
        "unit/noise/test_local_randomizers.py",
        "unit/noise/test_quantile_bars.py",
        "unit/noise/test_recursion.py",
        "unit/noise/test_square_root.py",
        "unit/planning/test_together.py",
        "unit/planning/test_total_cuts.py",
        "unit/planning/test_value_cuts.py",
        "unit/pricing/test_joint_products.py",
        "unit/pricing/test_running_totals.py",
        "unit/privacy/mechanisms/test_above_threshold.py",
        "unit/privacy/mechanisms/test_leaning_choices.py",
        "unit/privacy/mechanisms/test_local_randomizers.py",
        "unit/privacy/mechanisms/test_local_sensitivity.py",
        "unit/privacy/mechanisms/test_sample_means.py",
        "unit/privacy/mechanisms/test_sample_values.py",
        "unit/reuse/test_chosen_numbers.py",
        "unit/reuse/test_derived_series.py",
        "unit/reuse/test_quantiles_from_counts.py",
        "unit/session/test_row_export.py",
        "unit/session/test_workloads.py",
        "unit/tuning/test_light_tails.py",
        "unit/tuning/test_samples.py",
    }
)
"""Files about rare mechanisms and about ways of asking that most policies never enable. They are slow as well: `pytest` alone is about
the core that every answer needs, and a change of an annex is followed by its own files."""
STATISTICAL_FILES = frozenset(
    {
        "guarantee/test_gate_law.py",
        "unit/noise/test_count_choice.py",
        "unit/noise/test_rank_choice.py",
        "unit/noise/test_samplers.py",
        "unit/privacy/mechanisms/test_registry.py",
        "unit/release/error_bars/test_answers.py",
        "unit/release/error_bars/test_coverage.py",
    }
)
"""Files whose tests draw many samples and compare them with a distribution."""
LONG_FILES = (
    "guarantee/test_replay.py", "load/test_load.py", "clients/test_statements.py", "audit/test_audit.py",
    "guarantee/test_tight_sensitivity.py", "guarantee/test_neighbours.py", "clients/test_node.py", "clients/test_jdbc.py",
    "unit/engine/postgresql/test_corpus.py", "fuzz/test_fuzz.py", "guarantee/test_mutants.py", "unit/pricing/test_plan_check.py",
    "guarantee/test_value_places_on_servers.py", "guarantee/test_neighbours_on_servers.py", "answers/test_queries.py",
    "unit/functions/test_canonical_conditions.py", "answers/test_same_groups.py", "answers/test_generated.py",
)  # fmt: skip
"""Those that take longest, in this order: the others fill the time of the processes after them."""

MEMORY, LEAST_FREE_GIGABYTES = Path("/dev/shm"), 4


def pytest_configure(config: pytest.Config) -> None:
    """Put temporary files into memory, also for workers. Write bytecode files even where the environment tells Python not to:
    tests start hundreds of processes, each of which would compile dpsql again (half of its start-up time), and every run would
    compile the tests. Runs with `-p no:cacheprovider` are exempt: they test copies for mutants, which nothing imports twice."""
    if "TMPDIR" not in os.environ and config.option.basetemp is None and is_roomy(MEMORY):
        os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY), None
    if config.pluginmanager.hasplugin("cacheprovider"):
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def is_roomy(folder: Path) -> bool:
    """Return whether the in-memory file system at `folder` exists, has room for the about one gigabyte that a run writes, and
    allows programs to run. On a disk, ledgers and databases of tests would wait thousands of times; what a killed process had
    written survives in memory as well."""
    try:
        place = os.statvfs(folder)
    except OSError:
        return False
    if place.f_flag & os.ST_NOEXEC or not os.access(folder, os.W_OK | os.X_OK):
        return False
    return place.f_bavail * place.f_frsize >= LEAST_FREE_GIGABYTES << 30


@pytest.fixture(scope="module", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a new state directory for each file of tests: that of the user would remember ledgers of an earlier run, whose temporary
    folders have the same names. Ledgers within it are told apart by their places, in the folder of each test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPSQL_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exempt modules and ten thousand collected tests from garbage collection: scanning them repeatedly took a quarter of the
    collection time and a twentieth of the tests' own time. Search for further garbage seldom: another tenth of their time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000, 20, 100)
        gc.enable()


@cache
def markers_of(file: Path) -> frozenset[str]:
    """Return the markers that all tests of a file have because of its place in tests/."""
    if not file.is_relative_to(TESTS):
        return frozenset()
    place = file.relative_to(TESTS)
    markers = {FOLDERS[place.parts[0]]} if place.parts[0] in FOLDERS else set()
    markers |= {"slow"} if place.as_posix() in SLOW_FILES | ANNEX_FILES else set()
    return frozenset(markers | ({"statistical"} if place.as_posix() in STATISTICAL_FILES else set()))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of files that `-m "not slow and not clients"` deselects entirely, unless the command line names them: an
    import takes as long as dozens of tests. Return None to leave the decision to pytest."""
    return True if collection_path.is_file() and left_out(markers_of(collection_path), config.option.markexpr) else None


def left_out(markers: frozenset[str], wanted: str) -> bool:
    """Return whether `-m wanted` deselects every test that has these markers, whatever other markers it has. The check recognises
    only `not MARKER` among parts joined by `and`; it is False for anything else."""
    parts = wanted.split(" and ")
    return not any(" or " in part for part in parts) and any(f"not {marker}" in parts for marker in markers)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the place of their file. Run those with Spark first, then files that take long, so that no process waits for
    one at the end."""
    for item in items:
        for marker in sorted(markers_of(item.path)):
            item.add_marker(marker)
    place = {name: number for number, name in enumerate(("spark", *LONG_FILES))}
    items.sort(key=lambda item: place.get(room(item.nodeid), len(place)))


def room(nodeid: str) -> str:
    """Return the name of the tests that run in one process, because they share what takes long to start: those with Spark, those
    with the libraries of node, or those of one file."""
    if "spark" in nodeid.lower():
        return "spark"
    file = nodeid.split("::", maxsplit=1)[0].removeprefix("tests/")
    return "clients/test_node.py" if file == "clients/test_orms.py" else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Distribute rooms in the order of collection, each to the next process that is free."""
    from xdist.scheduler import LoadScopeScheduling

    class Rooms(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return room(nodeid)

    config.option.loadscopereorder = False
    return Rooms(config, log) if config.getvalue("dist") == "loadscope" else None
