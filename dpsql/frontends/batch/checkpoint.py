"""The record of a batch run, by which a second `dpsql run` in the same folder continues without a second charge.

`run.json` holds the run's own random id and how often each lost statement was asked again. A statement's request id is a digest
of that id, the statement, its options, the analyst and the policy's version, so that the ledger recognises a charge whatever
happened to the process that made it. Every file is written atomically.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.files import replace_file, writing
from dpsql.media.text import json_text
from dpsql.storage.files import open_lock, try_lock


class RunRecord:
    """The folder of one run. With `create` it is created and locked against other runs until `close`; otherwise it is
    only read."""

    def __init__(self, folder: Path, dataset: str, *, create: bool) -> None:
        """Raise InterfaceError (batch_record, batch_running) and Fault (file_write)."""
        self.folder = folder
        self._dataset = dataset
        self._lock: int | None = None
        if create:
            self._hold()
        try:
            facts = self._read()
        except Error:
            self.close()
            raise
        self._run = str(facts["run"])
        self._attempts: dict[str, int] = dict(facts["attempts"])
        if create:
            self.save()

    def _hold(self) -> None:
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = open_lock(self.folder / ".run.lock")
            alone = try_lock(self._lock)
        if not alone:
            self.close()
            raise refuse("batch_running", place=str(self.folder))

    def _read(self) -> dict[str, Any]:
        try:
            text = (self.folder / "run.json").read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return {"run": secrets.token_hex(16), "dataset": self._dataset, "attempts": {}}
        try:
            facts: dict[str, Any] = json.loads(text)
            whole = isinstance(facts["run"], str) and isinstance(facts["attempts"], dict)
            if whole and facts["dataset"] == self._dataset:
                return facts
        except (ValueError, KeyError, TypeError):
            pass
        raise refuse("batch_record", place=str(self.folder / "run.json"), dataset=self._dataset)

    def save(self) -> None:
        """Write the record, durable before anything is charged under it."""
        facts = {"run": self._run, "dataset": self._dataset, "attempts": self._attempts}
        replace_file(
            self.folder / "run.json", lambda part: part.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        )

    def request(self, facts: dict[str, Any]) -> str:
        """Return the request id of a statement: 32 hexadecimal digits."""
        base = _digest([self._run, facts])
        return _digest([base, self._attempts.get(base, 0)])[:32]

    def ask_anew(self, facts: dict[str, Any]) -> str:
        """Return the request id of the next attempt at a statement whose answer is lost."""
        base = _digest([self._run, facts])
        self._attempts[base] = self._attempts.get(base, 0) + 1
        return self.request(facts)

    def is_done(self, name: str, request: str, *, bars: bool, for_spreadsheet: bool = False) -> bool:
        """Return whether `name` and its note exist, are complete, and answer this request in this style."""
        try:
            note = json.loads((self.folder / note_name(name)).read_text(encoding="utf-8"))
            digest = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()
        except (OSError, ValueError):
            return False
        if not isinstance(note, dict):
            return False
        if (note.get("bars", False), note.get("for_spreadsheet", False)) != (bars, for_spreadsheet):
            return False
        return note.get("request") == request and note.get("sha256") == digest

    def note(self, name: str) -> dict[str, Any] | None:
        """Return the note of a result that this run wrote, or that `is_done`; None if it is missing or was damaged since."""
        try:
            facts: dict[str, Any] = json.loads((self.folder / note_name(name)).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return facts if isinstance(facts, dict) and "rows" in facts else None

    def keep(self, name: str, write: Callable[[Path], object], note: dict[str, Any]) -> None:
        """Store a result, then the note that says it is done."""
        replace_file(self.folder / name, write)
        digest = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()
        text = json_text({**note, "result": name, "sha256": digest}, indent=1)
        replace_file(self.folder / note_name(name), lambda part: part.write_text(text + "\n", encoding="utf-8"))

    def close(self) -> None:
        """Unlock the folder for other runs."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def note_name(name: str) -> str:
    """Return the name of the note of a result: report-01.meta.json for report-01.csv."""
    return Path(name).stem + ".meta.json"


def _digest(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("ascii")).hexdigest()
