"""Lake tables: the rows of the latest snapshot are read, whatever changed the table before, and tables whose rows are not those of
their files are refused before a question is charged."""

import base64
import itertools
import json
import random
import shutil
import string
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyroaring import BitMap
from support.effort import slow
from support.exact_session import exact_session

from dpsql.engine import lake_tables
from dpsql.engine.duckdb.engine import open_duckdb
from dpsql.engine.duckdb.literals import cast_column
from dpsql.engine.duckdb.structure import structure_of_file
from dpsql.engine.lake_tables import snapshot
from dpsql.errors.exceptions import Error
from dpsql.frontends.admin.policy_text import source_link
from dpsql.frontends.cli import status_of
from dpsql.plan.intervals import Type
from dpsql.policy import Policy
from dpsql.policy.check import parse_policy

TEXT = """
dataset: lake
privacy_unit: {table: visits, column: person}
neighbours: add_remove
budget: {epsilon: 10, delta: 1e-6}
per_query: {epsilon: 1}
ledger: sqlite:///ledger.db
tables:
  visits:
    source: "SOURCE"
    max_rows: 4
    columns:
      person: {type: integer}
      region: {type: text, domain: [north, south, 'a/ü c']}
      cost: {type: real, lower: 0, upper: 100}
      stay: {type: integer, from: DAYS, lower: 0, upper: 9}
"""
REGIONS = ["north", "south", "a/ü c", None]
CHANGES = 7
Z85 = str.maketrans(
    string.digits + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~",
    string.digits + string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#",
)
"""Python's base 85 to that of Delta Lake's deletion vectors."""
Rows = Counter[tuple[Any, ...]]


def policy_of(source: str, folder: Path) -> Policy:
    return parse_policy(TEXT.replace("SOURCE", source), "policy.yaml", folder)


def rows_read(source: str, folder: Path) -> Rows:
    """Return the rows that questions read, in the types of the policy."""
    engine = open_duckdb(policy_of(source, folder))
    try:
        engine.check_readable(("visits",))
        about = engine.source("visits")
        columns = {"person": Type.INTEGER, "region": Type.TEXT, "cost": Type.REAL, "stay": Type.INTEGER}
        texts = ", ".join(f"{cast_column(c, type_, about.types[c])} AS {c}" for c, type_ in columns.items())
        return Counter(
            tuple(row.values()) for row in engine.exact_rows(f"SELECT {texts} FROM {about.sql} AS s0").to_pylist()
        )
    finally:
        engine.close()


def rows_of(table: pa.Table) -> Rows:
    """Return the rows of a library's own reader."""
    wanted = ("person", "region", "cost", "days")
    return Counter(tuple(row.get(name) for name in wanted) for row in table.to_pylist())


def some_rows(chance: random.Random, with_days: bool) -> pa.Table:
    size = chance.randrange(1, 9)
    columns: dict[str, Any] = {
        "person": pa.array([chance.randrange(5) for _ in range(size)], pa.int64()),
        "region": pa.array([chance.choice(REGIONS) for _ in range(size)], pa.string()),
        "cost": pa.array([chance.choice([None, 1.5, 20.0]) for _ in range(size)], pa.float64()),
    }
    if with_days:
        columns["days"] = pa.array([chance.choice([None, 0, 7]) for _ in range(size)], pa.int64())
    return pa.table(columns)


@pytest.mark.parametrize("seed", [0, 1, *map(slow, range(2, 6))])
def test_a_delta_table_is_read_as_it_is_now(seed: int, tmp_path: Path) -> None:
    chance, place = random.Random(seed), tmp_path / "visits"
    parts = ["region"] if seed % 2 else None
    write_deltalake(place, some_rows(chance, with_days=True), partition_by=parts)
    write_deltalake(place, some_rows(chance, with_days=False), mode="append", schema_mode="merge")
    for _ in range(CHANGES):
        table = DeltaTable(place)
        match chance.randrange(4):
            case 0:
                table.delete(f"person = {chance.randrange(5)}")
            case 1:
                table.optimize.compact()
            case 2:
                write_deltalake(place, some_rows(chance, chance.random() < 0.5), mode="overwrite", schema_mode="merge")
            case _:
                write_deltalake(place, some_rows(chance, chance.random() < 0.5), mode="append", schema_mode="merge")
        if not (now := DeltaTable(place)).file_uris():
            continue
        assert rows_read("delta:visits", tmp_path) == rows_of(pa.table(now.to_pyarrow_table()))


def test_a_delta_table_may_lie_in_any_folder(tmp_path: Path) -> None:
    """Blanks are %20 in addresses of files; a folder above the table is none of its partitions."""
    for folder in ("a b", "ü+'", "person=5", "region=south"):
        write_deltalake(
            place := tmp_path / folder, some_rows(random.Random(1), with_days=True), partition_by=["region"]
        )
        if folder == "region=south":
            with pytest.raises(Error, match="source_column_twice"):
                rows_read(f"delta:{folder}", tmp_path)
        else:
            assert rows_read(f"delta:{folder}", tmp_path) == rows_of(pa.table(DeltaTable(place).to_pyarrow_table()))


def test_partitions_have_the_values_of_the_log(tmp_path: Path) -> None:
    """An empty text is NULL there; if a path denies the log, no question is answered."""
    regions = ["", None, "a b", "a%20b", "a=b", "a/b", "ä", "e\u0301", " x", "#", "1e5", "null"]
    days = [None, -1, 0, 2**63 - 1]
    rows = [(person, region, 1.5, day) for person, (region, day) in enumerate(itertools.product(regions, days))]
    table = pa.table(dict(zip(("person", "region", "cost", "days"), zip(*rows, strict=True), strict=True)))
    for parts in (["region"], ["region", "days"]):
        place = tmp_path / "".join(parts)
        write_deltalake(place, table, partition_by=parts)
        assert rows_read(f"delta:{place.name}", tmp_path) == rows_of(pa.table(DeltaTable(place).to_pyarrow_table()))
        denied = shutil.copytree(place, tmp_path / f"{place.name} denied")
        (log,) = (denied / "_delta_log").glob("*.json")
        log.write_text(log.read_text().replace('"region":"ä"', '"region":"a"'))
        with pytest.raises(OSError, match="the log and the paths of files say different values of region"):
            snapshot("delta", str(denied))


def test_numbers_of_partitions_may_be_nan_or_without_end(tmp_path: Path) -> None:
    costs = [1.5, float("nan"), float("-inf"), -0.0, 1e20, None]
    table = pa.table({"person": range(6), "region": ["x"] * 6, "cost": costs, "days": [1] * 6})
    write_deltalake(tmp_path / "costs", table, partition_by=["cost"])
    assert set(map(str, rows_read("delta:costs", tmp_path))) == set(map(str, rows_of(table)))


def iceberg_catalog(file: Path, folder: Path) -> Any:
    """Return a catalog. Its library takes a second to import, so no other tests wait for it."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{file}", warehouse=f"file://{folder}")
    catalog.create_namespace("n")
    return catalog


def iceberg_table(folder: Path, chance: random.Random, *, with_parts: bool = False) -> Any:
    """Return an Iceberg table in `folder`/n/visits with some rows, written before the column `days` was added."""
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import LongType

    catalog = iceberg_catalog(folder / "catalog.db", folder)
    first = some_rows(chance, with_days=False)
    table = catalog.create_table("n.visits", schema=first.schema)
    if with_parts:
        with table.update_spec() as spec:
            spec.add_field("region", IdentityTransform(), "part")
    table.append(first)
    with table.update_schema() as schema:
        schema.add_column("days", LongType())
    table.append(some_rows(chance, with_days=True))
    return table


@pytest.mark.parametrize("seed", [0, 1, *map(slow, range(2, 6))])
def test_an_iceberg_table_is_read_as_it_is_now(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    table = iceberg_table(tmp_path, chance, with_parts=seed % 2 == 1)
    for _ in range(CHANGES):
        match chance.randrange(3):
            case 0:
                table.delete(f"person = {chance.randrange(5)}")
            case 1:
                table.overwrite(some_rows(chance, with_days=True), overwrite_filter=f"person > {chance.randrange(5)}")
            case _:
                table.append(some_rows(chance, with_days=True))
        if not (rows := rows_of(table.scan().to_arrow())):
            continue
        assert rows_read("iceberg:n/visits", tmp_path) == rows
        metadata = table.metadata_location.removeprefix("file://")
        assert rows_read(f"iceberg:{metadata}", tmp_path) == rows
        moved = tmp_path / "moved"
        shutil.rmtree(moved, ignore_errors=True)
        shutil.copytree(tmp_path / "n", moved)
        assert {file.parents[1] for file in snapshot("iceberg", str(moved / "visits")).files} <= {
            moved / "visits",
            moved / "visits/data",
        }
        assert rows_read("iceberg:moved/visits", tmp_path) == rows


@pytest.mark.parametrize("settled_seconds", [3600, -3600])
def test_a_commit_between_two_questions_is_in_the_second_answer(
    settled_seconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a list of files is kept or not, which depends on the age of the log."""
    monkeypatch.setattr(lake_tables, "_SETTLED_SECONDS", settled_seconds)
    place, question = tmp_path / "visits", "SELECT COUNT(*) AS n FROM visits"
    row = pa.table({"person": [1], "region": ["north"], "cost": [1.0], "days": [1]})
    write_deltalake(place, row)
    with exact_session(policy_of("delta:visits", tmp_path), None, tmp_path / "ledger.db") as session:
        for person in range(2, 9):
            assert session.execute(question).table.to_pylist() == [{"n": person - 1}]
            write_deltalake(place, row.set_column(0, "person", pa.array([person])), mode="append")
        identities = {session.context.engine.identity("visits").text for _ in range(2)}
        assert len(identities) == 1


def delta_log(folder: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Write a Delta table whose first commit is changed by hand, as other writers write it."""
    write_deltalake(folder, pa.table({"person": [1, 2], "region": ["north"] * 2, "cost": [1.0] * 2, "days": [1] * 2}))
    file = folder / "_delta_log/00000000000000000000.json"
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("\n".join(map(json.dumps, change(actions))))


def with_deletion_vector(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = BitMap([0]).serialize()
    coded = struct.pack("<IQI", 1681511377, 1, 0) + rows + b"\0" * (-len(rows) % 4)
    text = base64.b85encode(coded).decode().translate(Z85)
    vector = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": 16 + len(rows), "cardinality": 1}
    return [
        {"add": {**action["add"], "deletionVector": vector}} if "add" in action else action
        for action in with_feature(actions, "deletionVectors")
    ]


def with_feature(actions: list[dict[str, Any]], feature: str) -> list[dict[str, Any]]:
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [feature], "writerFeatures": [feature]}
    return [{"protocol": protocol} if "protocol" in action else action for action in actions]


def with_other_names(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for action in (action["metaData"] for action in actions if "metaData" in action):
        schema = json.loads(action["schemaString"])
        for number, field in enumerate(schema["fields"]):
            field["metadata"] = {
                "delta.columnMapping.id": number + 1,
                "delta.columnMapping.physicalName": f"c{number}",
            }
        action |= {"schemaString": json.dumps(schema), "configuration": {"delta.columnMapping.mode": "name"}}
    return [{"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}} if "protocol" in a else a for a in actions]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (with_deletion_vector, "deletion"),
        (with_other_names, "columnMapping"),
        (lambda actions: with_feature(actions, "variantType"), "variantType"),
    ],
)
def test_a_delta_table_whose_rows_are_not_those_of_its_files_is_refused(
    change: Callable[[Any], Any], reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    delta_log(tmp_path / "visits", change)
    with pytest.raises(Error, match="source_table_unreadable"):
        rows_read("delta:visits", tmp_path)
    assert reason in caplog.text
    with pytest.raises(OSError, match=reason):
        snapshot("delta", str(tmp_path / "visits"))


def renamed(table: Any) -> None:
    with table.update_schema() as schema:
        schema.rename_column("cost", "price")


def replaced(table: Any) -> None:
    from pyiceberg.types import LongType

    with table.update_schema() as schema:
        schema.delete_column("cost")
    with table.update_schema() as schema:
        schema.add_column("cost", LongType())


def with_another_present(table: Any) -> None:
    file = Path(table.metadata_location.removeprefix("file://"))
    shutil.copy(file, file.with_name(f"{file.name.split('-')[0]}-other.metadata.json"))


def of_version_3(table: Any) -> None:
    file = Path(table.metadata_location.removeprefix("file://"))
    changed = json.loads(file.read_text()) | {"format-version": 3, "next-row-id": 0, "first-row-id": 0}
    file.with_name("00099-next.metadata.json").write_text(json.dumps(changed))


def with_mapped_names(table: Any) -> None:
    mapping = json.dumps([{"field-id": 1, "names": ["person", "patient"]}])
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": mapping})


@pytest.mark.parametrize("change", [renamed, replaced, with_another_present, of_version_3, with_mapped_names])
def test_an_iceberg_table_whose_rows_are_not_those_of_its_files_is_refused(
    change: Callable[[Any], None], tmp_path: Path
) -> None:
    table = iceberg_table(tmp_path, random.Random(1))
    rows_read("iceberg:n/visits", tmp_path)
    change(table)
    with pytest.raises(Error, match="source_table_unreadable"):
        rows_read("iceberg:n/visits", tmp_path)


def test_files_of_deletions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No library here writes them: those of the plan are replaced."""
    from pyiceberg.table import StaticTable

    iceberg_table(tmp_path, random.Random(1))
    plan = StaticTable.scan

    def scan(self: Any) -> Any:
        found = plan(self)
        tasks = list(found.plan_files())
        tasks[0].delete_files.add(tasks[0].file)
        found.plan_files = lambda: tasks
        return found

    monkeypatch.setattr(StaticTable, "scan", scan)
    with pytest.raises(OSError, match="deletions"):
        snapshot("iceberg", str(tmp_path / "n/visits"))


def test_a_column_that_a_table_no_longer_has_numbers_no_rows(tmp_path: Path) -> None:
    """The files still have it, and its values would be taken for the engine's numbers of rows."""
    rows = {"person": [1] * 9, "region": ["north"] * 9, "cost": [1.0] * 9, "DAYS": [*range(9)]}
    for column in ("file_row_number", "further"):
        catalog = iceberg_catalog(tmp_path / f"{column}.db", tmp_path / column)
        written = pa.table(rows | {column: pa.nulls(9, pa.int64())})
        table = catalog.create_table("n.visits", schema=written.schema)
        table.append(written)
        with table.update_schema() as update:
            update.delete_column(column)
        source = TEXT[: TEXT.index("      stay")].replace("SOURCE", f"iceberg:{column}/n/visits")
        engine = open_duckdb(parse_policy(source, "lake.yaml", tmp_path))
        assert column not in (engine.columns("visits") or {})
        assert bool(engine.source("visits").row_number) == (column == "further")


def test_a_file_that_is_gone_is_named_to_the_owner(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_deltalake(tmp_path / "visits", some_rows(random.Random(1), with_days=True))
    (file,) = snapshot("delta", str(tmp_path / "visits")).files
    file.unlink()
    with pytest.raises(Error, match="source_table_unreadable") as refused:
        rows_read("delta:visits", tmp_path)
    assert file.name in caplog.text and file.name not in str(refused.value)


@pytest.mark.parametrize("source", ["delta:visits", "iceberg:visits", "delta:.", "iceberg:metadata.json"])
def test_a_table_that_is_not_there_is_said_to_be_missing(source: str, tmp_path: Path) -> None:
    with pytest.raises(Error, match="source_table_missing"):
        rows_read(source, tmp_path)


def test_init_finds_lake_tables_and_names_them_by_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path / "lake/visits", some_rows(random.Random(1), with_days=True), partition_by=["region"])
    iceberg_table(tmp_path / "lake", random.Random(1)) if (tmp_path / "lake").mkdir(exist_ok=True) is None else None
    tables = structure_of_file(tmp_path / "lake")
    assert {name: about.source for name, about in tables.items()} == {"visits": "delta:visits"}
    assert set(tables["visits"].columns) == {"person", "region", "cost", "days"}
    assert source_link(tmp_path / "lake/visits", tmp_path / "p.yaml") == "lake/visits"
    ((name, alone),) = structure_of_file(tmp_path / "lake/n/visits").items()
    assert (name, alone.source, alone.columns["days"]) == ("visits", "iceberg:.", "BIGINT")
    monkeypatch.chdir(tmp_path / "lake")
    for kind, folder in (("delta", "visits"), ("iceberg", "n/visits")):
        assert status_of(["init", "--from", f"{kind}:{folder}", "--out", f"{kind}.yaml"]) == 0
        assert f"{kind}:{folder}" in Path(f"{kind}.yaml").read_text()
