"""The contract of engines: over protected data they compute exact integer aggregates, nothing else. Structure, and faults."""

from __future__ import annotations

import logging
import re
import unicodedata
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

from dpsql.engine.dialect import Dialect
from dpsql.engine.emit.bounded_view import BoundedView
from dpsql.engine.query import EngineQuery, Identity, Source
from dpsql.errors.exceptions import Error, Fault, refuse
from dpsql.policy import Policy
from dpsql.policy.types import DEFAULT_SCHEMAS
from dpsql.policy.values import RESERVED
from dpsql.storage.records import dataclass, field, fields

# --- structure of a source's tables, from which a starter policy is written, and what is malformed in their files -----


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


def tables_of_schemas(
    listed: Iterable[tuple[str, str]], default: str
) -> dict[tuple[str, str], tuple[str, SourceTable]]:
    """Return for each (schema, table) of a database its name in a policy and a table without columns.

    A table keeps its name in the schema `default`, or if no other has it; others have that of their schema before it. A schema
    whose name is not plain cannot be the policy's `schema`, only part of `source`.
    """
    ordered = sorted(dict.fromkeys(listed), key=lambda entry: entry[0] != default)
    times, named = Counter(table.lower() for _, table in ordered), dict[tuple[str, str], tuple[str, SourceTable]]()
    taken = set[str]()
    for schema, table in ordered:
        base = table if schema == default or times[table.lower()] == 1 else plain_name(f"{schema}_{table}")
        name, number = base, 2
        while name.lower() in taken:
            name, number = f"{base[:58]}_{number}", number + 1
        taken.add(name.lower())
        is_plain = plain_name(schema) == schema and schema.lower() not in {*DEFAULT_SCHEMAS, default}
        source = None if name == table and (is_plain or schema == default) else f"{schema}.{table}"
        named[schema, table] = name, SourceTable({}, source=source, schema=schema if is_plain else None)
    return named


@dataclass
class Broken:
    """Counts of malformed lines and cells, and of carriage returns that end no line. Only for the owner."""

    wrong_width: int = 0
    too_long: int = 0
    open_quote: int = 0
    not_text: int = 0
    inner_return: int = 0
    joined: int = 0

    def add(self, other: Broken) -> None:
        """Add the counts of other lines."""
        for count in fields(self):
            setattr(self, count.name, getattr(self, count.name) + getattr(other, count.name))


# --- the contract of engines ------------------------------------------------------------------------------------------


class Sealed:
    """What nobody sees, and what never leaves the process: no repr of its content, no pickling, no copying."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: sealed>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} does not leave the process")

    def __copy__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is not copied")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is not copied")


class ExactAnswer(Sealed):
    """Exact private sums, sealed against accidental disclosure: no repr of rows, no pickling, no copying; only
    `perturb` unseals them."""

    __slots__ = ("__table",)

    def __init__(self, table: Any) -> None:
        """`table`: pyarrow.Table; term columns are int64 or decimal128(38, 0)."""
        self.__table = table

    def unseal(self) -> Any:
        """Return the pyarrow.Table. Only `dpsql.noise.perturb` may call this (a test checks the sources for it)."""
        return self.__table


@dataclass(frozen=True)
class Doubt:
    """Something whose reading may fail at a value: a column of a table ("": the whole table), and why ("is a view")."""

    column: str
    kind: str


class StoredViews(Protocol):
    """Bounded views stored as tables beside the source, on its own server; only `dpsql.engine.contribution_index` writes
    and finds them. A table appears atomically."""

    def place(self, name: str) -> str | None:
        """Return the SQL text by which a question reads the stored view `name`, or None if there is none. Raises Fault."""

    def write(self, view: BoundedView, key: str, name: str, progress: Callable[[str, float], None]) -> None:
        """Write the view under `name`; do nothing if it exists. Raises Fault index_not_written."""

    def names(self, prefix: str) -> Collection[str]:
        """Return the names of the stored views that begin with `prefix`. Raises Fault."""

    def remove(self, names: Collection[str]) -> None:
        """Remove the views of these names; some may already be gone. Raises Fault index_not_written."""

    def remove_unfinished(self, names: Collection[str]) -> None:
        """Remove what killed preparations left behind of views of these names. Raises Fault index_not_written."""


Texts = Callable[[], BoundedView | None]
COUNTED = " counted"


class FileViews(Protocol):
    """Bounded views stored in files of the engine; only `dpsql.engine.contribution_index` writes and opens them."""

    def opened(
        self, view_name: str, token: str, file: Path | None, view: Texts, key: str, identity: str = ""
    ) -> str | None:
        """Return the name under which a question reads the view and counts its units; None if it cannot be read.

        `view_name` is the same for every version of the view, and differs for a view of the same table under a policy that
        gives it other rows or columns. `token` names this version of the view; `file` holds it, or is None if the source of this
        `identity` itself is the view; if the token ends with `COUNTED`, the first query that names the view counts the rows of
        each unit, in `Engine.run` and so after its charge. `view` is called if the version is new, and returns None if the
        version is outdated by then. `key`: the key of the order of its rows, in case rows are left out.
        """

    def name_in_texts(self, view_name: str) -> str:
        """Return the name that stands for the view in texts that are only shown, from whatever it is read."""

    def write(
        self,
        view: BoundedView,
        key: str,
        file: Path,
        *,
        in_place: bool,
        progress: Callable[[str, float], None],
        made_of: str = "",
    ) -> bool:
        """Write the view into the new file and return True. Write nothing and return False if `in_place` allows it and
        every row stays.

        `made_of`: a text that the file keeps. `progress` is called with the activity and its share done, from 0 to 1.
        Raises Fault index_not_written.
        """

    def made_of(self, file: Path) -> tuple[str, bool]:
        """Return the text that a file keeps ("" if it keeps none or cannot be read), and whether every row of the table from
        which it was written reached its unit."""

    def extend(
        self,
        view: BoundedView | None,
        key: str,
        copy: Path,
        file: Path,
        *,
        progress: Callable[[str, float], None],
        made_of: str,
    ) -> None:
        """Write into the new `file` the view of the rows of `copy`, a file of the same view with the same key, together with
        the rows of `view` (None: no more rows). Raises Fault index_not_written."""

    def limit(self, memory: str | None, jobs: int | None, scratch: Path) -> None:
        """Set the memory and threads of `write` (None: unchanged), and the folder for data that exceed memory."""


@dataclass(frozen=True)
class PreparedViews:
    """The bounded views that an engine keeps: in `files` of its own, as tables `stored` beside the source, or none, because
    changes of its source cannot be noticed without reading it. `engine`: name and version of the engine: two engines that order
    rows differently have different ones."""

    engine: str
    files: FileViews | None = None
    stored: StoredViews | None = None


class Engine(Protocol):
    """The interface of a database to `session`. Implementations raise engine errors only as `Fault` with a fixed
    text."""

    dialect: Dialect

    @property
    def views(self) -> PreparedViews:
        """The prepared views of the source."""

    def columns(self, table: str) -> dict[str, str] | None:
        """Return the columns of a source table with their engine types, or None if it does not exist. Only for the custodian."""

    def source(self, table: str, total: bool = False) -> Source:
        """Return the source of a policy's table. Raises Fault if the table or a column is missing.

        `total`: read it so that no value can cause a failure, even if that is slow.
        """

    def data_version(self, tables: tuple[str, ...]) -> str:
        """Return a fingerprint that changes when the rows of `tables` may have changed (treated as public, privacy.md 7)."""

    def identity(self, table: str) -> Identity | None:
        """Return the identity of a table's files and of those on its path to the unit; None if rows could change unnoticed."""

    def of_files(self, files: Mapping[str, Sequence[Path]]) -> Engine:
        """Return the same source with the tables of `files` reduced to these of their files, for a process that prepares."""

    def check_readable(self, tables: tuple[str, ...]) -> None:
        """Check that tables (and the tables on their paths to the unit) exist and can be read, as far as that is possible
        without reading rows. It runs before every charge, so it is cheap if nothing changed. Raises Fault.
        """

    def rehearse(self, query: EngineQuery) -> None:
        """Let an engine that may reject generated text plan a query before it is charged. Raises Fault engine_cannot_run."""

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        """Run one generated aggregation over protected data."""

    def holds(self, query: str) -> bool:
        """Return whether `query`, the check of a promise of the policy, finds no row; cached for each version of the data."""

    def public_domains(self, table: str, most: int) -> dict[str, tuple[Any, ...]]:
        """Return the values (ascending, NULL last) of each text, integer, boolean or date column that has at most `most`."""

    def public_rows(self, table: str, most: int) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]] | None:
        """Return the column names and all rows of a public table, in the policy's types; None if it has more than `most` rows."""

    def public_table(self, sql: str) -> Any:
        """Return the rows (pyarrow.Table) of one generated query that reads only public tables."""

    def exact_rows(self, sql: str) -> Any:
        """Return the rows (pyarrow.Table) of one generated query over protected tables, in the clear. Only for
        `dpsql.disclosure`, the owner's tool (a test checks the sources for it)."""

    def interrupt(self) -> None:
        """Stop running queries, from any thread."""

    def broken(self, table: str) -> Broken | None:
        """Return the counts of malformed lines in a table's CSV files, or None for other sources. Reads rows; for the owner."""

    def doubts(self, table: str) -> tuple[Doubt, ...]:
        """Return what of a table may fail at some value when it is read, which nothing here can prevent (privacy.md 9); it reads
        no rows. Only for the custodian."""

    def files(self, table: str) -> tuple[Path, ...]:
        """Return the files of a table that `of_files` can read alone; none if it is not in files. Only for the custodian."""

    def advice(self) -> tuple[str, ...]:
        """Return sentences with advice on the access rights of dpsql to the source. Only for the custodian."""

    def another(self) -> Engine:
        """Return the same source for another session: caches are shared, but `interrupt` stops only that session's queries."""

    def under(self, policy: Policy) -> Engine:
        """Return the same source under a later version of its policy, which gives the tables the same names
        (`policy.versions`). The name of the data's version and the place for copies are those of the new policy."""

    def close(self) -> None:
        """Close the connection."""


# --- faults for engine errors -----------------------------------------------------------------------------------------
# One fixed text with the id of an incident.

CUSTODIAN_LOG = logging.getLogger("dpsql.custodian")
"""The log for engine errors, with the id of the incident; analysts never see it. The owner decides where it is written."""
CUSTODIAN_LOG.addHandler(logging.NullHandler())


def noted(error: Exception) -> str:
    """Log an error for the custodian and return the id of the incident."""
    incident = uuid.uuid4().hex[:12]
    CUSTODIAN_LOG.error("incident %s: %s", incident, error)
    return incident


def fault_of(error: Exception, *, of_source: bool) -> Error:
    """Return a fault with a fixed text and the id of an incident; details go only to the custodian's log. The session
    sets `charged`.

    `of_source`: another question over the same data would have the same error.
    """
    incident = noted(error)
    fault = refuse("engine_failed", incident=incident)
    if isinstance(fault, Fault):
        fault.incident = incident
        fault.of_source = of_source
    return fault
