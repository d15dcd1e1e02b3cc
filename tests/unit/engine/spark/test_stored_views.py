"""Copies that Spark stores as folders of Parquet files: the same answers with and without them, and copies that are whole or
absent."""

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sql.corpus import ACCEPTED
from support.corpus_neighbours import Hospital
from support.corpus_traits import covering
from support.effort import NIGHTLY, night
from support.engine_pairs import BY_HASH, measured, takes_its_options
from support.neighbouring_hospitals import SCHEMAS
from support.places import policy as policy_of
from support.spark_source import spark, zoned

from dpsql.engine.contribution_index import ContributionIndex
from dpsql.errors.exceptions import Fault
from dpsql.policy import Policy
from dpsql.policy.types import Preparation
from dpsql_audit.observation import ObservedSession
from unit.engine.postgresql.test_stored_views import many_rows
from unit.engine.spark.test_corpus import REFUSED

__all__ = ["spark"]
KEY = b"k" * 32


class FilesWorld(ObservedSession):
    """One policy over Parquet files in a folder, with copies in another folder."""

    def __init__(self, policy: Policy, spark: Any, folder: Path) -> None:
        from dpsql.engine.spark.engine import SparkEngine

        self.folder = folder
        tables = {
            name: replace(table, source=str(folder / "data" / f"{name}.parquet"))
            for name, table in policy.tables.items()
        }
        served = replace(
            policy, source="spark://local[2]", tables=tables, data_version="spring",
            prepare=Preparation(False, str(folder / "copies")),
        )  # fmt: skip
        self.spark_engine = SparkEngine(served, spark)
        super().__init__(served, self.spark_engine)

    def load(self, data: Mapping[str, list[dict[str, Any]]]) -> None:
        """Replace the files of the last run."""
        (self.folder / "data").mkdir(exist_ok=True)
        for table, schema in SCHEMAS.items():
            rows = zoned(pa.Table.from_pylist(data.get(table, []), schema))
            pq.write_table(rows, self.folder / "data" / f"{table}.parquet")

    @property
    def index(self) -> ContributionIndex:
        """Return the index of the policy under a separate key."""
        return ContributionIndex(self.policy, self.spark_engine, lambda: KEY)

    def entries(self) -> list[str]:
        """Return the contents of the folder of copies, without checksums."""
        copies = self.folder / "copies"
        return sorted(name for name in os.listdir(copies) if not name.startswith(".")) if copies.exists() else []

    def later(self, **changes: Any) -> tuple[ContributionIndex, Any]:
        """Return the index and the engine of a later version of the policy."""
        policy = replace(self.policy, **changes)
        engine = self.spark_engine.under(policy)
        return ContributionIndex(policy, engine, lambda: KEY), engine


@pytest.fixture(scope="module", params=["hospital", night("hospital_rows")])
def compared(
    request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FilesWorld]:
    opened = FilesWorld(policy_of(request.param), spark, tmp_path_factory.mktemp(request.param))
    opened.load(many_rows(opened.policy))
    yield opened
    opened.engine.close()


@pytest.fixture
def world(spark: Any, tmp_path: Path) -> Iterator[FilesWorld]:
    opened = FilesWorld(policy_of("hospital"), spark, tmp_path)
    opened.load(many_rows(opened.policy))
    yield opened
    opened.engine.close()


def count(engine: Any, place: str | None) -> int:
    return int(engine.exact_rows(f"SELECT count(*) AS n FROM {place}").to_pylist()[0]["n"])


def test_answers_are_the_same_with_and_without_copies(compared: FilesWorld) -> None:
    """Exact rows, prices, notices and charges, for every kind of query and for all queries in which a hash decides which rows
    stay."""
    rows = compared.policy.privacy_unit is None
    if NIGHTLY:
        chosen = frozenset(case.id for case in ACCEPTED)
    else:  # queries of every kind are compared unprepared with DuckDB, and prepared on PostgreSQL
        chosen = frozenset(sorted(covering(Hospital("hospital")))[::18]) | (
            set() if rows else set(sorted(BY_HASH)[::2])
        )
    cases = [
        case for case in ACCEPTED
        if case.id in chosen - REFUSED and takes_its_options(case, rows)
    ]  # fmt: skip

    def observed() -> dict[str, Any]:
        seen = {}
        for case in cases:
            with compared.options(case.marks.get("set", [])):
                seen[case.id] = compared.observe(case.sql, case.parameters)
        return seen

    before = observed()
    index = compared.session.context.index
    assert {state.state for state in index.prepare()} == {"written"}
    after = observed()
    copies = [name for name in compared.policy.tables if compared.policy.is_protected(name)]
    places = [index.views()(name).sql for name in copies]
    read = 0
    for name, unprepared in before.items():
        prepared = after[name]
        assert (unprepared.outcome.split("\n")[0], unprepared.columns, unprepared.said, unprepared.charges) == (
            prepared.outcome.split("\n")[0], prepared.columns, prepared.said, prepared.charges,
        ), name  # fmt: skip
        assert measured(unprepared) == measured(prepared), name
        assert not any(str(place) in "".join(unprepared.engine_sql) for place in places)
        read += any(str(place) in "".join(prepared.engine_sql) for place in places)
    assert read > 0.8 * sum(bool(run.engine_sql) for run in before.values())
    assert {state.state for state in index.prepare()} == {"there already"}
    visits = count(compared.engine, compared.engine.source("visits").sql)
    assert (count(compared.engine, index.views()("visits").sql) < visits) is not rows  # otherwise nothing was compared


def test_a_copy_is_of_one_version_and_the_next_prepare_removes_it(world: FilesWorld) -> None:
    world.index.prepare()
    assert world.index.unprepared() == ()
    first = world.entries()
    protected = sum(map(world.policy.is_protected, world.policy.tables))
    assert len(first) == 2 * protected and all(name.endswith(".copy") or "-" in name for name in first)
    assert (world.folder / "copies").stat().st_mode & 0o077 == 0
    later, engine = world.later(data_version="summer")
    assert len(later.unprepared()) == protected
    later.prepare()
    assert later.unprepared() == () and not set(first) & set(world.entries()) and len(world.entries()) == len(first)
    assert len(world.index.unprepared()) == protected  # a process with the earlier version reads the source
    assert later.remove_outdated() == protected and world.entries() == []
    engine.close()


def test_a_copy_holds_at_most_the_rows_of_each_unit(world: FilesWorld) -> None:
    world.index.prepare()
    place = world.index.views()("visits").sql
    most = world.policy.tables["visits"].bounds.max_rows
    rows = world.engine.exact_rows(
        f'SELECT "#unit" AS u, count(*) AS n, count(DISTINCT "#id") AS i FROM {place} GROUP BY "#unit"'
    )
    counts = rows.to_pydict()
    assert max(counts["n"]) == most and set(counts["i"]) == {1} and None not in counts["u"]


def test_policies_of_one_ledger_leave_each_other_s_copies(world: FilesWorld) -> None:
    visits = world.policy.tables["visits"]
    bounded = replace(visits, bounds=replace(visits.bounds, max_rows=1))
    narrow, engine = world.later(tables={**world.policy.tables, "visits": bounded})
    world.index.prepare()
    narrow.prepare()
    world.index.prepare()
    assert world.index.unprepared() == narrow.unprepared() == ()
    assert world.index.copies_of_other_policies() == narrow.copies_of_other_policies() == 1
    assert count(world.engine, narrow.views()("visits").sql) < count(world.engine, world.index.views()("visits").sql)
    engine.close()


def test_a_later_policy_reads_the_place_that_it_names(world: FilesWorld, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere.parquet"
    pq.write_table(pq.read_table(tmp_path / "data" / "visits.parquet").slice(0, 2), moved)
    tables = {**world.policy.tables, "visits": replace(world.policy.tables["visits"], source=str(moved))}
    world.index.prepare()
    later, engine = world.later(tables=tables)
    assert "visits" in later.unprepared() and count(engine, engine.source("visits").sql) == 2
    engine.close()


def test_what_was_not_finished_is_not_read_and_is_removed_later(world: FilesWorld) -> None:
    """A folder without its pointer file, a pointer file without its folder, half of its text, and its draft."""
    world.index.prepare()
    place = world.index.views()("visits").sql
    name = next(
        entry.removesuffix(".copy") for entry in world.entries()
        if entry.endswith(".copy") and (world.folder / "copies" / entry).read_text() in str(place)
    )  # fmt: skip
    pointer = world.folder / "copies" / f"{name}.copy"
    identifier = pointer.read_text()
    shutil.copytree(world.folder / "copies" / f"{name}-{identifier}", world.folder / "copies" / f"{name}-{'a' * 32}")
    assert world.index.unprepared() == ()
    for broken in (identifier[:7], "b" * 32, ""):
        _write_anew(pointer, broken)
        assert world.index.unprepared() == ("visits",)
    pointer.unlink()
    _write_anew(world.folder / "copies" / f"{name}-{identifier}.copy", identifier)
    assert world.index.unprepared() == ("visits",)
    world.index.prepare()
    assert world.index.unprepared() == () and world.index.views()("visits").sql != place
    later, engine = world.later(data_version="summer")
    later.prepare()
    assert not [entry for entry in world.entries() if entry.startswith(name)]
    engine.close()


def test_what_a_killed_preparation_left_goes_after_a_day(world: FilesWorld) -> None:
    """Marks of today, of a preparation killed a day ago, and of one that was killed after its copy could be found."""
    world.index.prepare()
    copies, before = world.folder / "copies", world.entries()
    pointer = next(copies / entry for entry in before if entry.endswith(".copy"))
    name, present = pointer.name.removesuffix(".copy"), pointer.read_text()
    for identifier, hours in (("a" * 32, 23), ("b" * 32, 25), (present, 25)):
        if identifier != present:
            shutil.copytree(copies / f"{name}-{present}", copies / f"{name}-{identifier}")
        mark = copies / f"{name}-{identifier}.writing"
        mark.touch()
        os.utime(mark, (time.time() - hours * 3600,) * 2)
    (copies / f"{name}-{'b' * 32}.copy").write_text("b" * 32)
    assert all(state.state == "there already" for state in world.index.prepare())
    assert set(world.entries()) - set(before) == {f"{name}-{'a' * 32}", f"{name}-{'a' * 32}.writing"}
    assert set(before) <= set(world.entries())


@pytest.mark.parametrize("published", [False, True])
def test_a_copy_whose_folder_another_process_took_for_left_is_not_found(
    world: FilesWorld, monkeypatch: pytest.MonkeyPatch, published: bool
) -> None:
    from dpsql.engine.spark import stored_views

    publish, rows = stored_views.FolderViews._publish, stored_views._rows
    copies = world.folder / "copies"

    def takes_marks() -> None:
        for mark in copies.glob("*.writing"):
            mark.unlink()

    def published_without_mark(self: Any, name: str, identifier: str) -> None:
        publish(self, name, identifier)
        takes_marks()

    def written_without_mark(view: Any, key: str) -> str:
        takes_marks()
        return rows(view, key)

    with monkeypatch.context() as changed:
        if published:
            changed.setattr(stored_views.FolderViews, "_publish", published_without_mark)
        else:
            changed.setattr(stored_views, "_rows", written_without_mark)
        with pytest.raises(Fault) as fault:
            world.index.prepare()
    assert fault.value.slug == "index_not_written" and world.entries() == []
    assert "visits" in world.index.unprepared()
    world.index.prepare()
    assert world.index.unprepared() == ()


def _write_anew(file: Path, text: str) -> None:
    """Replace a file, and remove the checksum of its earlier text."""
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    file.write_text(text)


def test_a_preparation_that_fails_leaves_the_copies_of_before(
    world: FilesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the rows fail half way; then all are written, but the pointer file cannot be."""
    from dpsql.engine.spark import stored_views

    world.index.prepare()
    before = world.entries()
    later, engine = world.later(data_version="summer")
    rows = stored_views._rows
    with monkeypatch.context() as changed:
        changed.setattr(
            stored_views, "_rows", lambda view, key: f"SELECT *, raise_error('no') AS e FROM ({rows(view, key)})"
        )
        with pytest.raises(Fault) as fault:
            later.prepare()
    assert fault.value.slug == "index_not_written" and world.entries() == before

    def fails(*_: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as changed:
        changed.setattr(stored_views.FolderViews, "_publish", fails)
        with pytest.raises(Fault):
            later.prepare()
    assert world.entries() == before and world.index.unprepared() == ()
    engine.close()


def test_temporary_views_are_not_prepared(spark: Any, world: FilesWorld) -> None:
    """Another process does not have the same view."""
    spark.read.parquet(str(world.folder / "data" / "labs.parquet")).createOrReplaceTempView("of_this_process")
    spark.read.parquet(str(world.folder / "data" / "labs.parquet")).createOrReplaceGlobalTempView("of_this_application")
    for source in ("of_this_process", "Global_temp.of_this_application"):
        tables = {**world.policy.tables, "labs": replace(world.policy.tables["labs"], source=source)}
        later, engine = world.later(tables=tables)
        assert {state.table: state.state for state in later.prepare()}["labs"] == "left"
        assert later.unprepared() == () and later.views()("labs").sql is None
        engine.close()
