"""Tables of data lakes (Delta Lake, Apache Iceberg) as the Parquet files of their latest snapshot.

A snapshot lists files that no writer changes. They are read like the files of any other table, by a reader that no value makes
fail, and their identity is that of the rows. What a format says beyond that list (rows deleted by vectors, columns under other
names than in the files) would be lost with it, so such tables are refused.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dpsql.errors.exceptions import refuse
from dpsql.storage.records import dataclass


@dataclass(frozen=True)
class Snapshot:
    """The files of a table's snapshot, and its columns. `may_lack`: in lower case those that are NULL in files without them."""

    files: tuple[Path, ...]
    schema: pa.Schema
    may_lack: frozenset[str]


_LOGS = {"delta": "_delta_log", "iceberg": "metadata"}
"""The folder of a table to which each change of it adds a file."""
_SETTLED_SECONDS = 0.1
"""Least age of a folder's last change, so that the next change gets another time."""
_READ_FEATURES = frozenset(
    {"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint", "typeWidening", "columnMapping", "deletionVectors"}
)
"""What readers of a Delta table must know, and which is harmless here or looked at."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A name that writers of Iceberg tables do not change in files."""
_NULL = "__HIVE_DEFAULT_PARTITION__"
_VERSION = re.compile(r"v?([0-9]+)[.-].*metadata\.json")
_snapshots: dict[tuple[str, str], tuple[int, Snapshot]] = {}


def format_of(folder: Path) -> str | None:
    """Return the format of the lake table in a folder; None if the folder is none."""
    if (folder / _LOGS["delta"]).is_dir():
        return "delta"
    return "iceberg" if any((folder / _LOGS["iceberg"]).glob("*.metadata.json")) else None


def snapshot(kind: str, path: str) -> Snapshot:
    """Return the latest snapshot of the table in the folder `path`; of Iceberg also that of a file of metadata.

    Raises FileNotFoundError if it is not there, OSError if it cannot be read or if its files alone do not say what its rows are,
    and Fault source_driver.
    """
    folder = Path(path)
    log = folder if folder.is_file() else folder / _LOGS[kind]
    changed = os.stat(log).st_mtime_ns
    stored = _snapshots.get((kind, path))
    if stored is not None and stored[0] == changed:
        return stored[1]
    settled = changed / 1e9 + _SETTLED_SECONDS < time.time()
    try:
        latest = _READERS[kind](folder)
    except ImportError:
        raise refuse("source_driver", extra="lake") from None
    except Exception as error:  # each library has its own kinds, without a common one
        raise error if type(error) is OSError else OSError(f"{type(error).__name__}: {error}") from error
    if settled:
        _snapshots[kind, path] = (changed, latest)
    return latest


def columns_of(latest: Snapshot) -> dict[str, str]:
    """Return the columns of a snapshot with their types in DuckDB."""
    with duckdb.connect() as connection:
        rows = connection.from_arrow(latest.schema.empty_table())
        return dict(zip(rows.columns, map(str, rows.types), strict=True))


def _delta(folder: Path) -> Snapshot:
    from deltalake import DeltaTable

    table = DeltaTable(folder)
    unknown = set(table.protocol().reader_features or ()) - _READ_FEATURES
    if unknown:
        raise OSError(f"readers of the table must know {', '.join(sorted(unknown))}")
    about = table.metadata()
    if about.configuration.get("delta.columnMapping.mode", "none") != "none":
        raise OSError(
            "columns have other names in the files (delta.columnMapping.mode): write the table anew without it"
        )
    if pa.RecordBatchReader.from_stream(table.deletion_vectors()).read_all().num_rows:
        raise OSError(
            "deletion vectors hide rows of the files: REORG TABLE ... APPLY (PURGE) writes files without them"
        )
    schema = pa.schema(table.schema().to_arrow())
    _require_values_of_paths(pa.table(table.get_add_actions()), about.partition_columns)
    root = table.table_uri.removeprefix("file://")  # an address, in which a blank is %20
    files = (f"{folder.absolute()}/{uri[len(root) :]}" if uri.startswith(root) else uri for uri in table.file_uris())
    return Snapshot(_local(files), schema, _folded(set(schema.names) - set(about.partition_columns)))


def _require_values_of_paths(files: pa.Table, columns: Iterable[str]) -> None:
    """Raise OSError if the log of a Delta table gives its files other values than their paths, from which they are read."""
    for column in columns:
        part, said = re.compile(f"(?:^|/){re.escape(column)}=([^/]*)/"), pc.struct_field(files["partition"], column)
        paths = [part.findall(unquote(address)) for address in files["path"].to_pylist()]
        # An empty text is NULL in a partition of Delta Lake.
        texts = pa.array(
            (None if text[-1:] in ([""], [_NULL], []) else unquote(text[-1]) for text in paths), pa.string()
        )
        read = texts.cast(pa.timestamp("us")) if pa.types.is_timestamp(said.type) else texts
        with suppress(pa.ArrowInvalid):
            read = read.cast(said.type)
        for text, value, logged in zip(paths, read.to_pylist(), said.to_pylist(), strict=True):
            if text and value != logged and (value == value or logged == logged):  # NaN equals no value
                raise OSError(f"the log and the paths of files say different values of {column}: write the table anew")


def _iceberg(folder: Path) -> Snapshot:
    from pyiceberg.manifest import FileFormat
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(str(folder if folder.is_file() else _latest(folder / _LOGS["iceberg"])))
    about = table.metadata
    if about.format_version > 2:
        raise OSError(f"it has version {about.format_version} of the format, and 1 and 2 are read")
    names = {(field.field_id, field.name) for schema in about.schemas for field in schema.fields}
    if len(names) > min(len({number for number, _ in names}), len({name for _, name in names})):
        raise OSError("a column was renamed, or replaced by one of its name: write the table anew")
    schema, mapping = table.schema(), json.loads(about.properties.get("schema.name-mapping.default", "[]"))
    if any(set(entry["names"]) - {schema.find_column_name(entry.get("field-id", -1))} for entry in mapping):
        raise OSError("columns have other names in the files (schema.name-mapping.default): write the table anew")
    tasks = list(table.scan().plan_files())
    if any(task.delete_files for task in tasks):
        raise OSError("files of deletions hide rows of its files: compact it (rewrite_data_files)")
    if any(task.file.file_format != FileFormat.PARQUET for task in tasks):
        raise OSError("it has other files than Parquet")
    whole = {field.source_id for spec in about.partition_specs for field in spec.fields}
    may_lack = {field.name for field in schema.fields if field.field_id not in whole and _PLAIN.fullmatch(field.name)}
    root = (folder.parent.parent if folder.is_file() else folder).absolute()
    moved = (task.file.file_path.replace(f"{about.location}/", f"{root}/", 1) for task in tasks)
    return Snapshot(_local(moved), schema.as_arrow(), _folded(may_lack))


def _latest(folder: Path) -> Path:
    """Return the file with the present metadata of an Iceberg table without a catalog: the one of the highest version."""
    versions: dict[int, list[Path]] = {}
    for file in folder.glob("*.metadata.json"):
        if version := _VERSION.fullmatch(file.name):
            versions.setdefault(int(version[1]), []).append(file)
    if not versions:
        raise OSError(f"{folder} has no file VERSION.metadata.json")
    files = versions[max(versions)]
    if len(files) > 1:
        raise OSError(
            f"version {max(versions)} has two files of metadata: name the one that holds (iceberg:FOLDER/metadata/FILE)"
        )
    return files[0]


def _folded(names: Iterable[str]) -> frozenset[str]:
    return frozenset(map(str.lower, names))


def _local(addresses: Iterable[str]) -> tuple[Path, ...]:
    files = sorted(Path(address.removeprefix("file://")) for address in addresses)
    if elsewhere := next((file for file in files if not file.is_absolute()), None):
        raise OSError(f"its files are in another place than folders of this machine: {elsewhere}")
    return tuple(files)


_READERS: Mapping[str, Callable[[Path], Snapshot]] = {"delta": _delta, "iceberg": _iceberg}
