"""The files that a prepared copy of an append-only table holds, and the decision whether new files can be added to the copy.

Files are identified by path, inode, size and times, as everywhere (`engine.files`). These are the owner's own facts, and as
public as the version of the data (privacy.md 1). No value of a row determines which files are new. A file that changed or is
gone may have held any row; the copy is then written again from all files.

**Why an extended copy is the copy of all rows.** Let < be the order in which a unit's rows are kept: the keyed hash of the
unit and the row's content, then the content; rows that neither distinguishes are equal in everything that a copy holds. An
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

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsql.engine.contract import Engine
from dpsql.engine.files import IDENTITIES, matching, size_in
from dpsql.engine.query import Identity
from dpsql.policy import Policy
from dpsql.policy.reach import is_file

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
