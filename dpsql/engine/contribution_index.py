"""The contribution index: the bounded view of each protected table, computed once for each version of the data.

`prepare` writes a table's bounded view (privacy.md 2) into a DuckDB file. If no unit has more than `max_rows` rows and
no row is without a unit, it writes instead a mark that says that the source itself is the view. Both are named by an
HMAC, under the ledger's key, of everything that the view depends on: the table's columns, types, max_rows and path to
the unit, the key of the order, the engine's version, and the identity of the source's files. So an index of other data,
of another policy or of another ledger is never used, and nobody without the key can forge one. A file is renamed to its
final name when it is complete.

A name begins with a prefix common to all versions of a view (table, shape, place of the source), so `prepare` removes
only earlier versions of its own views: several policies may prepare one source under one ledger. Copies left by an
earlier form of a policy cannot be distinguished from copies that another policy uses; `remove_outdated` removes both.

A server that keeps the copies beside the source (`StoredViews`) names them in the same way; the identity is then the
owner's own name for the version of the data.

**Why the mark is sound.** "Every row stays" depends on the data, so it is not disclosed: only the data's owner can read
the mark's file. Reading the source under a mark gives exactly the rows that the window would keep, because the window
keeps every row of a unit that has at most `max_rows`. The mark holds only for the rows that were counted: the identity
is read before and after the count, and before and after every query that reads the source under the mark; if it changes
during a query, there is no answer. The identity includes the time of the last change of each file's record, which no
caller can set, and the count starts only when that time is past, so that a later change gets a different time. An
analyst sees no difference: the text of the query is the same for a file and for a mark, and only `prepare`, which the
owner runs, ever determines whether every row stays. (Counting when a question is asked would be sound too, but the time
of the first answer would reveal the result.)

The files that a prepared copy of an append-only table holds, and the decision whether new files can be added to the copy.

Files are identified by path, inode, size and times, as everywhere (`engine.files`). These are the owner's own facts, and as
public as the version of the data (privacy.md 1). No value of a row determines which files are new. A file that changed or is
gone may have held any row; the copy is then written again from all files.

**Why an extended copy is the copy of all rows.** Let < be the order in which a unit's rows are kept: the keyed hash of the
unit and the row, then that of its content, then the content; rows that none distinguishes are equal in all that a copy holds. An
append-only table has one key for all versions of its data, and so one order <. Let k(M) be the first R rows of a bag M of one
unit's rows (all if there are fewer). Then k(A + B) = k(k(A) + B) for bags A and B: a row of A that is not in k(A) has R rows of
A before it, or equal to it, which A + B holds as well, so leaving it out does not change k(A + B). Hence the copy of the rows A,
together with the rows B of new files, ranked again and cut, is the copy of all rows, whatever B is and however often this was
done. A row that was once dropped never comes back. What the copy keeps of a row (values, its unit's key, integers on grids) is
a function of that row, its ancestors, the schema of the file that holds it, and the policy, and the copy's name depends on that
part of the policy. No file decides how another is read (`engine.duckdb.parquet_files`), so files may come with other types.

**When a copy is written again as a whole.** Every extension leaves space of dropped rows and rows that are not in the order of
their units, so questions slow down. When the table's own files have twice the bytes of those from which the copy was last
written as a whole, it is written again from all of them. Each whole writing reads at least twice as much as the previous one,
so all but the last together read no more than the last, and the total cost of all loads stays proportional to the rows.

**Rows that reach their unit through other tables.** Declared keys are unique, so a row keeps the same ancestors and gets no
others when tables only grow. A row without a parent might find one in new files of the parents: if there are any, a copy is
extended only if every row from which it was made had reached its unit (`complete`).
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial
from pathlib import Path

from dpsql.engine.contract import COUNTED, Engine, FileViews, StoredViews
from dpsql.engine.emit.bounded_view import BoundedView, bounded_view
from dpsql.engine.emit.quantization import kept_integers
from dpsql.engine.query import IDENTITIES, Identity, View, matching, size_in
from dpsql.errors.exceptions import Fault, refuse
from dpsql.ledger.records import mac
from dpsql.plan.canonical_text import canonical_text
from dpsql.policy import Policy
from dpsql.policy.reach import is_csv, is_file
from dpsql.storage.files import locked, sync
from dpsql.storage.records import dataclass, replace

# --- files of append-only tables --------------------------------------------------------------------------------------

OF_CHANGED_FILES = "files of the copy before were changed or are gone, so all rows were read"
OF_LATE_PARENTS = "rows of before had no parent and there are new parents, so all rows were read"
OF_GROWTH = "files have doubled since all rows were last read, so all rows were read"
OF_DAMAGE = "the copy before cannot be read, so all rows were"
LEAST_BYTES = 16 * 2**20
"""Below this many bytes of files, the history of a copy makes no measurable difference."""


@dataclass(frozen=True)
class CopiedFiles:
    """A copy's record of the files from which it was made: the text of each, the bytes of the table's own files when it was
    last written as a whole, and whether every row had reached its unit."""

    files: tuple[str, ...]
    whole_bytes: int = 0
    complete: bool = False

    @property
    def identity(self) -> str:
        """Return the text of the identity of these files."""
        return IDENTITIES.join(self.files)

    def text(self) -> str:
        """Return the text that a copy keeps."""
        return json.dumps({"files": self.files, "whole_bytes": self.whole_bytes})


def copied_files(text: str, complete: bool) -> CopiedFiles:
    """Return the record from which `CopiedFiles.text` made a text; for any other text a record without files."""
    try:
        record = json.loads(text)
        return CopiedFiles(tuple(map(str, record["files"])), int(record["whole_bytes"]), complete)
    except (ValueError, KeyError, TypeError):
        return CopiedFiles(())


class TableFiles:
    """The present files of an append-only table and of the tables on its path to the unit."""

    def __init__(self, policy: Policy, engine: Engine, table: str, identity: Identity, total: bool) -> None:
        """`identity`: the table's present identity; `total`: as in `Engine.source`."""
        self.table, self.identity, self.total = table, identity, total
        self._policy, self._engine = policy, engine
        self._parents = [parent for _, _, parent, _ in policy.unit_joins(table)]

    def copied(self) -> CopiedFiles:
        """Return the record of a copy of the present files."""
        return CopiedFiles(tuple(self.identity.files.values()), self._bytes())

    def _bytes(self) -> int:
        """Return the bytes of the table's own files."""
        own_files = self._among(set(self.identity.files), [self.table])
        return sum(size_in(self.identity.files[str(path)]) for path in own_files)

    def added(self, before: CopiedFiles) -> tuple[Path, ...] | str:
        """Return the table's own files that a copy made from `before` lacks, or the reason why it cannot be extended."""
        copied, present = set(before.files), self.identity.files
        if not copied.issubset(present.values()):
            return OF_CHANGED_FILES
        if self._bytes() >= max(2 * before.whole_bytes, LEAST_BYTES):
            return OF_GROWTH
        new = {path for path, text in present.items() if text not in copied}
        own_files, parent_files = self._among(new, [self.table]), self._among(new, self._parents)
        if new != {str(path) for path in (*own_files, *parent_files)}:  # the log of a DuckDB file: its tables changed
            return OF_CHANGED_FILES
        if parent_files and not before.complete:
            return OF_LATE_PARENTS
        return own_files

    def engine_of(self, files: Sequence[Path]) -> Engine:
        """Return the same source in which the table has only these files."""
        return self._engine.of_files({self.table: files})

    def _among(self, paths: set[str], tables: list[str]) -> tuple[Path, ...]:
        """Return those of `paths` that are files of `tables`."""
        sources = filter(is_file, map(self._policy.table_source, tables))
        return tuple(path for source in sources for path in matching(source) if str(path) in paths)


# --- contribution index -----------------------------------------------------------------------------------------------

FORMAT = "6"
SETTLED_SECONDS = 0.1
"""Least age of a source's last change: two changes of a file within one tick of its clock (at most 0.01 s) look like one."""
PATIENCE_SECONDS = 10.0
_MARK_LENGTH = 12
_STORED_LENGTH = _MARK_LENGTH + 1 + 37
"""Characters of a stored view's name after its prefix: 148 bits of its version. PostgreSQL keeps 63 characters in total."""
_ENDINGS = (".duckdb", ".inplace")
SHOWN_KEY = "0" * 64
"""Placeholder for the secret key of the order in texts that are shown."""

Progress = Callable[[str, str, float], None]
"""A function called with the table, the activity ("counting", "writing"), and its share done, from 0 to 1."""


@dataclass(frozen=True)
class PreparationState:
    """The outcome for one table. `state`: "written", "extended" (by the rows of new files), "in place", "there already", or
    "left"; `why` gives a reason."""

    table: str
    state: str
    why: str = ""


class ContributionIndex:
    """The prepared views of one policy over one engine. Thread-safe."""

    def __init__(self, policy: Policy, engine: Engine, key: Callable[[], bytes]) -> None:
        """`key` returns the ledger's secret; it is called on first use."""
        self._policy = policy
        self._engine = engine
        self._key = key
        self._shapes: dict[str, str] = {}
        self._marks: dict[tuple[str, str], str] = {}
        self._places: dict[tuple[str | None, str | None], list[Path]] = {}

    # --- at query time ------------------------------------------------------------------------------------------------

    def views(self, for_display: bool = False) -> Callable[[str], View]:
        """Return a function from table to view that decides once for each table, so that all parts of one query
        agree.

        `for_display`: the views are for a text that is only shown, so they do not contain the secret key.
        """

        def view(table: str) -> View:
            opened = self._view(table, counted=not for_display)
            if not for_display:
                return opened
            files = self._engine.views.files
            displayed = None if opened.sql is None or files is None else files.name_in_texts(self._view_name(table))
            return replace(
                opened, key=SHOWN_KEY, sql=displayed or opened.sql, count_units=displayed or opened.count_units
            )

        return cache(view)

    def notes(self, tables: Iterable[str]) -> tuple[str, ...]:
        """Return at most one line, which says which protected tables among `tables` are prepared (under row privacy:
        only if one is).

        Return no line if the server prepares by itself: how soon a table is prepared then depends on its rows.
        """
        if self._policy.prepare.automatic:
            return ()
        views = self.views(for_display=True)
        ready = {table: views(table).prepared for table in sorted(tables) if self._policy.is_protected(table)}
        if self._policy.privacy_unit is None:
            ready = {table: True for table, done in ready.items() if done}
        words = [f"{table} {'prepared' if done else 'not prepared'}" for table, done in ready.items()]
        hint = "" if all(ready.values()) else " (`dpsql prepare` makes such questions faster)"
        kind = "rows" if self._policy.privacy_unit is None else "bounded view"
        return (f"{kind}: {', '.join(words)}{hint}",) if words else ()

    def require_prepared(self, names: Iterable[str]) -> None:
        """Refuse unprepared protected tables of multiline CSV: only the owner may read these. Raises Fault source_multiline."""
        for table in names:
            read = [self._policy.tables[name].csv for name in (table, *self._parents(table))]
            multiline = any(dialect is not None and dialect.multiline for dialect in read)
            if multiline and self._policy.is_protected(table) and not self._view(table, counted=False).prepared:
                raise refuse("source_multiline", table=table)

    def _view(self, table: str, counted: bool = True) -> View:
        """Return the way to read a table. `counted`: if there is no copy, open a view that a question's first reading counts."""
        order = self._order(table)
        identity = self._engine.identity(table)
        if identity is None:
            return View(order)
        token = self._token(table, order, identity)
        views, view_name, texts = self._engine.views, self._view_name(table), partial(self._texts, table, identity)
        if views.stored is not None:
            stored = views.stored.place(f"{self._prefix()}{token[:_STORED_LENGTH]}")
            return View(order, stored, prepared=stored is not None)
        if views.files is None:
            return View(order)
        for folder in self._folders():
            file = f"{folder}{os.sep}{token}"  # no Path: this runs twice for every question
            if os.path.exists(f"{file}.duckdb"):
                place = views.files.opened(view_name, token, Path(f"{file}.duckdb"), texts, order)
                if place is not None:
                    return View(order, place, place, prepared=True)
            if os.path.exists(f"{file}.inplace"):
                place = views.files.opened(view_name, token, None, texts, order, identity.text)
                if place is not None:
                    return View(order, place, place, identity.text, prepared=True)
        if not counted or self._policy.privacy_unit is None or _is_young(identity):
            return View(order)
        if any(self._engine.source(read).is_computed for read in (table, *self._parents(table))):
            return View(order)
        place = views.files.opened(view_name, token + COUNTED, None, texts, order, identity.text)
        return View(order) if place is None else View(order, place, place, identity.text)

    def _texts(self, table: str, identity: Identity) -> BoundedView | None:
        """Return the texts of a view, or None if the source has a different identity by now, or other files than were looked at:
        each row of a version must be in the view of that version, under a number of its own."""
        if self._engine.identity(table) != identity:
            return None
        for read in (table, *self._parents(table)):
            if (named := self._engine.source(read).files) and named != self._engine.files(read):
                return None
        return bounded_view(self._engine.dialect, self._policy, self._engine.source, table)

    def _order(self, table: str) -> str:
        """Return the secret key of the order of a table's bounded view: the same for every question over one version of
        its data or, for append-only tables, over all versions (why that is as private: privacy.md 2)."""
        if self._policy.tables[table].append_only:
            return mac(self._key(), "bounded view of all versions", table.encode())
        version = self._engine.data_version((table, *self._parents(table)))
        return mac(self._key(), "bounded view", table.encode(), version.encode())

    def _parents(self, table: str) -> list[str]:
        return [parent for _, _, parent, _ in self._policy.unit_joins(table)]

    def _token(self, table: str, order: str, identity: Identity) -> str:
        """Return the name of one version of a view; it begins with the view's mark, which all versions share."""
        parts = (FORMAT, self._engine.views.engine, table, self._shape(table), order, identity.text)
        return f"{self._view_mark(table, identity.place)}{mac(self._key(), 'contribution index', canonical_text(parts).encode())}"

    def _view_mark(self, table: str, place: str) -> str:
        """Return the beginning of the names of all versions of a view: its table, shape and place, under the key."""
        if (table, place) not in self._marks:
            parts = canonical_text((table, self._shape(table), place))
            self._marks[table, place] = f"{mac(self._key(), 'prepared view', parts.encode())[:_MARK_LENGTH]}_"
        return self._marks[table, place]

    def _view_name(self, table: str) -> str:
        """Return the name of a view in queries: its table and a digest of its shape, which depends on the policy alone."""
        return f"{table} {hashlib.sha256(self._shape(table).encode()).hexdigest()[:_MARK_LENGTH]}"

    def _shape(self, table: str) -> str:
        """Return the parts of the policy on which a view depends: columns and their names in the source, their stored integers
        (which depend on bounds), the primary key, the foreign keys to the unit, max_rows, the CSV format, and whether it is
        append-only."""
        if table not in self._shapes:
            chain = [self._policy.tables[name] for name in (table, *self._parents(table))]
            columns = [
                tuple(
                    (c.name, c.type, *filter(None, [c.source, c.timezone and f"in {c.timezone}"]))
                    for c in t.columns.values()
                )
                for t in chain
            ]
            stored = [kept_integers(column) for column in chain[0].columns.values()]
            integers = [
                (name, t.lower, t.upper, t.centre, t.grid) for columns_of in stored for name, t in columns_of.items()
            ]
            path = (self._policy.unit_joins(table), self._policy.unit_column(table), chain[0].bounds.max_rows)
            dialects = [each.csv for each in chain]
            parts = (
                columns,
                chain[0].primary_key,
                integers,
                path,
                dialects,
                *(["append-only"] if chain[0].append_only else []),
            )
            self._shapes[table] = canonical_text(parts)
        return self._shapes[table]

    # --- where indexes are --------------------------------------------------------------------------------------------

    def _folders(self) -> list[Path]:
        """Return the folders of indexes: beside a DuckDB file and in the user's cache, or `$DPSQL_CACHE` alone if that is set."""
        cache, user_cache = os.environ.get("DPSQL_CACHE"), os.environ.get("XDG_CACHE_HOME")
        if (cache, user_cache) not in self._places:
            self._places[cache, user_cache] = self._found_folders(cache, user_cache)
        return self._places[cache, user_cache]

    def _found_folders(self, cache: str | None, user_cache: str | None) -> list[Path]:
        name = f"{self._policy.dataset}-{mac(self._key(), 'index folder')[:12]}"
        if cache:
            return [Path(cache) / name]
        home = (Path(user_cache) if user_cache else Path.home() / ".cache") / "dpsql" / name
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
        """Write the index of every protected table that has none, and remove indexes of other versions of its data.

        `copy`: write the rows even if none is dropped, so that questions cost the same work either way. `memory`: how
        much memory the engine may use ("4GB"); `jobs`: how many threads. It is safe to stop this at any instruction, to run
        it again, and to run it in several processes at once (one works, the others wait). Raises Fault index_folder,
        index_limit, index_not_written, index_source_changed.
        """
        if self._engine.views.stored is not None:
            return self._prepare_stored(self._engine.views.stored, progress)
        folder = self._writable_folder()
        with locked(folder / "lock"):
            for part in folder.glob("*.part*"):
                part.unlink(missing_ok=True)
            for scratch in folder.glob("scratch-*"):
                _remove_if_left(scratch)
            if self._engine.views.files is not None:
                self._engine.views.files.limit(memory, jobs, folder / f"scratch-{os.getpid()}")
            tables = [name for name in self._policy.tables if self._policy.is_protected(name)]
            done = [self._prepare(folder, table, copy, progress) for table in tables]
            files = [file for file in folder.iterdir() if file.suffix in _ENDINGS]
            outdated = _earlier((file.stem for file in files), {token for _, token in done if token})
            for file in files:
                if file.stem in outdated:  # a copy and a mark may have the same stem
                    file.unlink(missing_ok=True)
        return tuple(state for state, _ in done)

    def remove_outdated(self, *, only_counts: bool = False) -> int:
        """Remove the copies and marks of other versions of the data or the policy from every folder of this data set, unless it
        `only_counts`, and return how many there were. Raises Fault index_not_written.

        Rows that were erased from the source are then in no copy: remaining copies are named after its present files.
        Copies beside the source are named after the owner's name for its version, so all of them are removed.
        """
        if self._engine.views.stored is not None:
            stored = self._engine.views.stored
            names = stored.names(self._prefix())
            if not only_counts:
                stored.remove(names)
            return len(names)
        current = set()
        for table in self._policy.tables:
            identity = self._settled(table) if self._policy.is_protected(table) else None
            if identity is not None:
                current.add(self._token(table, self._order(table), identity))
        removed = 0
        for folder in filter(Path.is_dir, self._folders()):
            with locked(folder / "lock"):
                for file in folder.iterdir():
                    is_view = file.suffix in _ENDINGS and file.stem not in current
                    removed += is_view
                    if not only_counts and (is_view or ".part" in file.name):  # unfinished files and their logs, too
                        file.unlink(missing_ok=True)
                sync(folder)
        return removed

    def _prepare(self, folder: Path, table: str, copy: bool, progress: Progress | None) -> tuple[PreparationState, str]:
        identity, views = self._settled(table), self._engine.views.files
        if identity is None or views is None:
            return PreparationState(
                table,
                "left",
                "its rows may change unnoticed (a view, a server's table, or data given in Python); for tables of PostgreSQL "
                "or Spark let the policy name a place for copies (prepare: {into: ...}) and data_version",
            ), ""
        order = self._order(table)
        token = self._token(table, order, identity)
        index, mark = folder / f"{token}.duckdb", folder / f"{token}.inplace"
        if index.exists() or (mark.exists() and not copy):
            return PreparationState(table, "there already"), token
        self._engine.check_readable((table,))
        part = folder / f"{token}.part{secrets.token_hex(4)}"
        report = partial(progress or _nobody, table)
        try:
            if self._policy.tables[table].append_only:
                state = self._grown(
                    views, folder, part, TableFiles(self._policy, self._engine, table, identity, copy), report
                )
            else:
                texts = bounded_view(
                    self._engine.dialect, self._policy, partial(self._engine.source, total=copy), table
                )
                in_place = not copy and texts.units and not texts.joined and not self._is_csv(table)
                written = views.write(texts, order, part, in_place=in_place, progress=report)
                state = PreparationState(table, "written" if written else "in place")
            if self._engine.identity(table) != identity:
                raise refuse("index_source_changed", table=table)
            if state.state == "in place":
                part.write_bytes(b"")
            _appear(part, mark if state.state == "in place" else index)
        finally:
            part.unlink(missing_ok=True)
        return state, token

    def _grown(
        self, views: FileViews, folder: Path, part: Path, files: TableFiles, report: Callable[[str, float], None]
    ) -> PreparationState:
        """Write the copy of an append-only table from the previous copy and the rows of new files, else from all rows."""
        table, why = files.table, ""
        order, present = self._order(table), files.copied()
        for before in folder.glob(f"{self._view_mark(table, files.identity.place)}*.duckdb"):
            copied = copied_files(*views.made_of(before))
            if before.stem != self._token(table, order, replace(files.identity, text=copied.identity)):
                continue  # it has another order, format or engine, or we did not write it
            added = files.added(copied)
            if isinstance(added, str):
                why = added
                continue
            try:
                some = files.engine_of(added) if added else self._engine
                rows = bounded_view(some.dialect, self._policy, partial(some.source, total=files.total), table)
                made_of = replace(present, whole_bytes=copied.whole_bytes).text()
                assert some.views.files is not None
                some.views.files.extend(rows if added else None, order, before, part, progress=report, made_of=made_of)
                return PreparationState(table, "extended", f"new files: {len(added)}")
            except Fault:  # the copy is damaged; if the disk is full, writing all rows below fails again
                part.unlink(missing_ok=True)
                why = OF_DAMAGE
        texts = bounded_view(self._engine.dialect, self._policy, partial(self._engine.source, total=files.total), table)
        views.write(texts, order, part, in_place=False, progress=report, made_of=present.text())
        return PreparationState(table, "written", why)

    def _prepare_stored(self, stored: StoredViews, progress: Progress | None) -> tuple[PreparationState, ...]:
        """Write the views that are stored beside the source, then remove views of other versions."""
        done, names = [], []
        for table in filter(self._policy.is_protected, self._policy.tables):
            identity, order = self._engine.identity(table), self._order(table)
            if identity is None:  # the policy names its data's version, so the table is, or needs, a temporary view
                done.append(PreparationState(table, "left", "it is, or needs, a temporary view of this process"))
                continue
            names.append(f"{self._prefix()}{self._token(table, order, identity)[:_STORED_LENGTH]}")
            if stored.place(names[-1]) is not None:
                done.append(PreparationState(table, "there already"))
                continue
            self._engine.check_readable((table,))
            view = bounded_view(self._engine.dialect, self._policy, self._engine.source, table)
            stored.write(view, order, names[-1], partial(progress or _nobody, table))
            done.append(PreparationState(table, "written"))
        stored.remove_unfinished(names)
        stored.remove(_earlier(stored.names(self._prefix()), names, len(self._prefix())))
        return tuple(done)

    def copies_of_other_policies(self) -> int:
        """Return the number of copies that are not versions of this policy's present views: they belong to other policies of
        the data set, or to earlier forms of this policy. Raises Fault if the source cannot be read."""
        stored, prefix = self._engine.views.stored, self._prefix()
        names = [] if stored is None else [name.removeprefix(prefix) for name in stored.names(prefix)]
        if stored is None:
            names = [
                f.stem
                for folder in filter(Path.is_dir, self._folders())
                for f in folder.iterdir()
                if f.suffix in _ENDINGS
            ]
        identities = {t: self._engine.identity(t) for t in self._policy.tables if self._policy.is_protected(t)}
        marks = tuple(
            self._view_mark(table, identity.place) for table, identity in identities.items() if identity is not None
        )
        return sum(not name.startswith(marks) for name in names)

    def unprepared(self) -> tuple[str, ...]:
        """Return the protected tables that `prepare` would write now. Raises Fault if the source cannot be read."""
        tables = [name for name in self._policy.tables if self._policy.is_protected(name)]
        self._engine.check_readable(tuple(tables))  # this opens a file again that was replaced
        return tuple(
            t for t in tables if self._engine.identity(t) is not None and not self._view(t, counted=False).prepared
        )

    def _prefix(self) -> str:
        """Return the beginning of the names of stored views of this data set and ledger."""
        return f"{mac(self._key(), 'index folder')[:12]}_"

    def _is_csv(self, table: str) -> bool:
        """Return whether the table is read from CSV files; a parsed copy of these is faster."""
        return is_csv(self._policy.table_source(table))

    def _settled(self, table: str) -> Identity | None:
        """Return the identity of the source once its last change is old enough for the next change to get a different time."""
        until = time.monotonic() + PATIENCE_SECONDS
        while (identity := self._engine.identity(table)) is not None:
            if not _is_young(identity):
                break
            if time.monotonic() > until:
                raise refuse("index_source_changed", table=table)
            time.sleep(SETTLED_SECONDS / 2)
        return identity


def _is_young(identity: Identity) -> bool:
    """Return whether a further change of a source might get the time of its last one."""
    return identity.changed_seconds + SETTLED_SECONDS > time.time()


def _earlier(names: Iterable[str], current: Collection[str], start: int = 0) -> set[str]:
    """Return the names of other versions of the views that `current` names, and names in a format without marks. `start`:
    the position at which marks begin."""
    end = start + _MARK_LENGTH + 1
    marks = {name[start:end] for name in current}
    return {name for name in set(names) - set(current) if name[start:end] in marks or name[end - 1 : end] != "_"}


def _nobody(table: str, activity: str, share: float) -> None:
    """Ignore reports of progress."""


def _remove_if_left(scratch: Path) -> None:
    """Remove the scratch folder of a process that is gone; a running one removes its own."""
    try:
        os.kill(int(scratch.name.partition("-")[2]), 0)
    except ProcessLookupError:
        shutil.rmtree(scratch, ignore_errors=True)
    except (PermissionError, ValueError):
        return


def _appear(part: Path, name: Path) -> None:
    """Make the file durable, then rename it to its final name."""
    part.chmod(0o600)
    sync(part)
    part.rename(name)
    sync(name.parent)
