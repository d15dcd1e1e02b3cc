"""The contribution index: the bounded view of each protected table, made once for a version of the data.

`prepare` writes a table's bounded view (privacy.md 2) into a DuckDB file, or, where no unit has more than `max_rows`
rows and no row is without a unit, a mark that the source itself is the view. Both are named by an HMAC, under the
ledger's key, of all that the view depends on: the table's columns, types, max_rows and way to the unit, the key of the
order, the engine's version, and the identity of the source's files. So an index of other data, of another policy or of
another ledger is never found, and nobody without the key can make one up. It appears under its name by one `rename`:
whole, or not at all.

**Where the mark lives, and why it may be relied on.** "Every row stays" is a fact of the data, told to nobody: it
is a file that only the data's owner can read. Reading the source by it gives exactly the rows that the window
would keep, as the window keeps every row of a unit that has at most `max_rows`. It holds for the rows that were
counted and for no others: identity is taken before and after the count, and before and after every query that reads
the source by the mark; a query during which it changed gives no answer. Identity includes the time of the last change
of each file's record, which no caller can set, and the count only starts when that time is past, so that a later
change gets another. An analyst sees no difference: the text of the query is the same for a file and for a mark, and
only `prepare`, which the owner runs, ever looks for the fact. (Looking for it when a question is asked would be sound
too, but then the time of the first answer would tell it loudly.)
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from dpsql.engine.contract import Engine
from dpsql.engine.emit.bounded_view import bounded_view
from dpsql.engine.emit.quantization import kept_integers
from dpsql.engine.query import Identity, View
from dpsql.errors.exceptions import refuse
from dpsql.ledger.chain import mac
from dpsql.plan.canonical_text import canonical_text
from dpsql.policy import Policy
from dpsql.policy.reach import is_file

FORMAT = "4"
SETTLED_SECONDS = 0.1
"""Two changes of a file closer than the clock of its records ticks (at most 0.01 s) could look like one."""
PATIENCE_SECONDS = 10.0
SHOWN_KEY = "0" * 64
"""Stands for the secret of the order in texts that are shown."""

Progress = Callable[[str, str, float], None]
"""Called with the table, what is being done ("counting", "writing"), and how much of it is done, from 0 to 1."""


@dataclass(frozen=True)
class PreparationState:
    """What became of one table. `state`: "written", "in place", "there already", or "left" with the reason `why`."""

    table: str
    state: str
    why: str = ""


class ContributionIndex:
    """The prepared views of one policy over one engine. Thread-safe."""

    def __init__(self, policy: Policy, engine: Engine, key: Callable[[], bytes]) -> None:
        """`key`: the ledger's secret, asked for when it is needed."""
        self._policy = policy
        self._engine = engine
        self._key = key
        self._shapes: dict[str, str] = {}
        self._places: dict[tuple[str | None, str | None], list[Path]] = {}

    # --- at query time ------------------------------------------------------------------------------------------------

    def views(self, shown: bool = False) -> Callable[[str], View]:
        """How each table is read, settled once for each table so that all parts of one query agree.

        `shown`: for a text that is only shown, which holds no secret.
        """

        def view(table: str) -> View:
            found = self._view(table)
            return replace(found, key=SHOWN_KEY) if shown else found

        return cache(view)

    def notes(self, tables: Iterable[str]) -> tuple[str, ...]:
        """One line on which protected tables among `tables` are prepared (under row privacy: only if one is)."""
        views = self.views()
        ready = {table: views(table).sql is not None for table in sorted(tables) if self._policy.is_protected(table)}
        if self._policy.privacy_unit is None:
            ready = {table: True for table, done in ready.items() if done}
        words = [f"{table} {'prepared' if done else 'not prepared'}" for table, done in ready.items()]
        way = "" if all(ready.values()) else " (`dpsql prepare` makes such questions faster)"
        kind = "rows" if self._policy.privacy_unit is None else "bounded view"
        return (f"{kind}: {', '.join(words)}{way}",) if words else ()

    def require_prepared(self, names: Iterable[str]) -> None:
        """Refuse tables that only the owner may read as they are. Raises Fault source_multiline."""
        for table in names:
            read = [self._policy.tables[name].csv for name in (table, *self._parents(table))]
            multiline = any(dialect is not None and dialect.multiline for dialect in read)
            if multiline and self._policy.is_protected(table) and self._view(table).sql is None:
                raise refuse("source_multiline", table=table)

    def _view(self, table: str) -> View:
        order = self._order(table)
        identity = self._engine.identity(table)
        if identity is None:
            return View(order)
        token = self._token(table, order, identity)
        for folder in self._folders():
            for ending, marked in (("duckdb", ""), ("inplace", identity.text)):
                file = f"{folder}{os.sep}{token}.{ending}"  # no Path: this is asked four times for every question
                if not os.path.exists(file):
                    continue
                texts = partial(bounded_view, self._engine.dialect, self._policy, self._engine.source, table)
                place = self._engine.views.opened(table, token, None if marked else Path(file), texts)
                if place is not None:
                    return View(order, place, place, marked)
        return View(order)

    def _order(self, table: str) -> str:
        """The secret order of a table's bounded view: the same for every question about one version of its data."""
        version = self._engine.data_version((table, *self._parents(table)))
        return mac(self._key(), "bounded view", table.encode(), version.encode())

    def _parents(self, table: str) -> list[str]:
        return [parent for _, _, parent, _ in self._policy.unit_joins(table)]

    def _token(self, table: str, order: str, identity: Identity) -> str:
        parts = (FORMAT, self._engine.views.engine, table, self._shape(table), order, identity.text)
        return mac(self._key(), "contribution index", canonical_text(parts).encode())

    def _shape(self, table: str) -> str:
        """What a view takes from the policy: columns, their kept integers (which depend on bounds), way to the unit, and
        how CSV files are read."""
        if table not in self._shapes:
            read = [self._policy.tables[name] for name in (table, *self._parents(table))]
            columns = [tuple((column.name, column.type) for column in one.columns.values()) for one in read]
            kept = [kept_integers(column) for column in read[0].columns.values()]
            integers = [(name, t.lower, t.upper, t.centre, t.grid) for one in kept for name, t in one.items()]
            path = (self._policy.unit_joins(table), self._policy.unit_column(table), read[0].bounds.max_rows)
            dialects = [one.csv for one in read]
            self._shapes[table] = canonical_text((columns, integers, path, dialects))
        return self._shapes[table]

    # --- where indexes are --------------------------------------------------------------------------------------------

    def _folders(self) -> list[Path]:
        """Beside a DuckDB file, and in the cache of this user; `$DPSQL_CACHE` alone when it is set."""
        own, base = os.environ.get("DPSQL_CACHE"), os.environ.get("XDG_CACHE_HOME")
        if (own, base) not in self._places:
            self._places[own, base] = self._found_folders(own, base)
        return self._places[own, base]

    def _found_folders(self, own: str | None, base: str | None) -> list[Path]:
        name = f"{self._policy.dataset}-{mac(self._key(), 'index folder')[:12]}"
        if own:
            return [Path(own) / name]
        home = (Path(base) if base else Path.home() / ".cache") / "dpsql" / name
        source = self._policy.source_path()
        if source is None or is_file(source):
            return [home]
        return [Path(f"{source}.bounded") / name, home]

    def _writable_folder(self) -> Path:
        for folder in self._folders():
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)
            except OSError:
                continue
            if os.access(folder, os.W_OK):
                return folder
        raise refuse("index_folder", place=str(self._folders()[-1]))

    # --- preparing ----------------------------------------------------------------------------------------------------

    def prepare(
        self,
        *,
        copy: bool = False,
        memory: str | None = None,
        jobs: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[PreparationState, ...]:
        """Make the index of every protected table that has none; indexes of other versions are removed.

        `copy`: write the rows even where none is dropped, so that questions cost the same work either way. `memory`:
        how much the engine may use ("4GB"), `jobs`: how many threads. Safe to stop at any instruction and to run again,
        and in several processes at once (one works, the others wait and find the work done). Raises Fault index_folder,
        index_limit, index_not_written, index_source_changed.
        """
        folder = self._writable_folder()
        with _alone(folder):
            for part in folder.glob("*.part*"):
                part.unlink(missing_ok=True)
            for scratch in folder.glob("scratch-*"):
                _remove_if_left(scratch)
            self._engine.views.limit(memory, jobs, folder / f"scratch-{os.getpid()}")
            tables = [name for name in self._policy.tables if self._policy.is_protected(name)]
            done = [self._prepare(folder, table, copy, progress) for table in tables]
            kept = {token for _, token in done}
            for file in folder.iterdir():
                if file.suffix in (".duckdb", ".inplace") and file.stem not in kept:
                    file.unlink(missing_ok=True)
        return tuple(one for one, _ in done)

    def _prepare(self, folder: Path, table: str, copy: bool, progress: Progress | None) -> tuple[PreparationState, str]:
        identity = self._settled(table)
        if identity is None:
            return PreparationState(
                table, "left", "its rows may change unnoticed (a view, a server's table, or data given in Python)"
            ), ""
        order = self._order(table)
        token = self._token(table, order, identity)
        index, mark = folder / f"{token}.duckdb", folder / f"{token}.inplace"
        if index.exists() or (mark.exists() and not copy):
            return PreparationState(table, "there already"), token
        self._engine.look((table,))
        texts = bounded_view(self._engine.dialect, self._policy, partial(self._engine.source, total=copy), table)
        part = folder / f"{token}.part{secrets.token_hex(4)}"
        try:
            in_place = not copy and texts.units and not texts.joined and not self._is_csv(table)
            told = partial(progress or _nobody, table)
            written = self._engine.views.write(texts, order, part, in_place=in_place, progress=told)
            if self._engine.identity(table) != identity:
                raise refuse("index_source_changed", table=table)
            if not written:
                part.write_bytes(b"")
            _appear(part, index if written else mark)
        finally:
            part.unlink(missing_ok=True)
        return PreparationState(table, "written" if written else "in place"), token

    def _is_csv(self, table: str) -> bool:
        """Text is read from a file faster once it has been parsed."""
        source = self._policy.table_source(table).lower()
        return is_file(source) and not source.endswith(".parquet")

    def _settled(self, table: str) -> Identity | None:
        """The identity of the source, when its last change is long enough ago that the next one will differ."""
        until = time.monotonic() + PATIENCE_SECONDS
        while (identity := self._engine.identity(table)) is not None:
            young = identity.changed_seconds + SETTLED_SECONDS - time.time()
            if young <= 0:
                break
            if time.monotonic() > until:
                raise refuse("index_source_changed", table=table)
            time.sleep(min(young, SETTLED_SECONDS))
        return identity


def _nobody(table: str, what: str, share: float) -> None:
    """Progress that nobody watches."""


def _remove_if_left(scratch: Path) -> None:
    """Where an engine put rows aside: its own to remove, unless its process is gone."""
    try:
        os.kill(int(scratch.name.partition("-")[2]), 0)
    except ProcessLookupError:
        shutil.rmtree(scratch, ignore_errors=True)
    except (PermissionError, ValueError):
        return


def _appear(part: Path, name: Path) -> None:
    """Durable first, then visible."""
    descriptor = os.open(part, os.O_RDONLY)
    try:
        os.fchmod(descriptor, 0o600)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    part.rename(name)
    directory = os.open(name.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One `prepare` at a time in a folder; the kernel lets go when the process dies."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
