"""Transactions and settings of one connection. Nothing is written here, so a transaction only ties settings together:
ROLLBACK brings back those of BEGIN. A charge is not part of any transaction."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.commands import Command
from dpsql.frontends.pgwire.questions import Questions
from dpsql.frontends.pgwire.rows import ResultField, StatementResult
from dpsql.pricing.options import Options

MOST_SAVEPOINTS = 1_000


@dataclass(frozen=True)
class _Before:
    """Settings and options at one time, and the values that COMMIT has to restore (`Transaction._local`)."""

    settings: dict[str, str]
    options: Options
    local: dict[str, str]


class Transaction:
    """The transaction of a connection. `status`: I (idle), T (in a transaction), or E (in a failed one)."""

    ENDS = frozenset({"commit", "rollback", "rollback_to"})
    """Commands that a failed transaction accepts."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._before: _Before | None = None
        self._savepoints: dict[str, _Before] = {}
        self._local: dict[str, str] = {}
        self.status = "I"

    def fail(self) -> None:
        """Enter the state of an error: inside a transaction, everything but its end is refused until then."""
        if self.status == "T":
            self.status = "E"

    def fields(self, command: Command) -> tuple[ResultField, ...]:
        """Return the columns of a command's answer."""
        if command.kind != "show":
            return ()
        if command.name == "all":
            return (ResultField("name", e.TEXT), ResultField("setting", e.TEXT), ResultField("description", e.TEXT))
        return (
            ResultField(
                command.name.replace("time zone", "TimeZone").replace(
                    "transaction isolation level", "transaction_isolation"
                ),
                e.TEXT,
            ),
        )

    def run(self, command: Command) -> StatementResult:
        """Execute one command. Raises refusals."""
        reported = self._questions.settings.reported()
        notices: tuple[tuple[str, str], ...] = ()
        kind = command.kind
        tag = command.tag
        if kind == "show":
            return self._show(command)
        if kind == "begin":
            notices = self._begin(command)
        elif kind == "commit":
            tag = "ROLLBACK" if self.status == "E" else tag
            notices = self._end(back=self.status == "E")
        elif kind == "rollback":
            notices = self._end(back=True)
        elif kind in ("savepoint", "release", "rollback_to"):
            self._savepoint(command)
        elif kind == "set":
            notices = self._set(command)
        elif kind == "reset":
            self._questions.settings.reset(command.name)
            if command.name == "all":
                self._questions.session.options = self._questions.session.first_options
        now = self._questions.settings.reported()
        return StatementResult(tag, notices=notices, statuses=tuple((k, v) for k, v in now.items() if reported[k] != v))

    def _snapshot(self) -> _Before:
        return _Before(self._questions.settings.snapshot(), self._questions.session.options, dict(self._local))

    def _restore(self, before: _Before) -> None:
        self._questions.settings.restore(before.settings)
        self._questions.session.options = before.options
        self._local = dict(before.local)

    def _begin(self, command: Command) -> tuple[tuple[str, str], ...]:
        if "WRITE" in command.words:
            raise refuse("read_write")
        if self.status != "I":
            return (("there is already a transaction in progress", ""),)
        self.status, self._before = "T", self._snapshot()
        return ()

    def _end(self, back: bool) -> tuple[tuple[str, str], ...]:
        if self.status == "I":
            return (("there is no transaction in progress", ""),)
        if back and self._before is not None:
            self._restore(self._before)
        else:
            self._questions.settings.restore({**self._questions.settings.snapshot(), **self._local})
        self.status, self._before, self._savepoints, self._local = "I", None, {}, {}
        return ()

    def _savepoint(self, command: Command) -> None:
        if self.status == "I":
            raise refuse("transaction_none", what=command.tag)
        if command.kind == "savepoint":
            self._savepoints.pop(command.name, None)
            if len(self._savepoints) >= MOST_SAVEPOINTS:
                raise refuse("wire_limit", most=MOST_SAVEPOINTS, what="savepoints")
            self._savepoints[command.name] = self._snapshot()
            return
        if command.name not in self._savepoints:
            raise refuse("savepoint_unknown", name=command.name)
        names = list(self._savepoints)
        later = names[names.index(command.name) + (command.kind == "rollback_to") :]
        if command.kind == "rollback_to":
            self._restore(self._savepoints[command.name])
            self.status = "T"
        for name in later:
            del self._savepoints[name]

    def _set(self, command: Command) -> tuple[tuple[str, str], ...]:
        settings, local = self._questions.settings, "LOCAL" in command.words
        if local and self.status == "I":
            return (("SET LOCAL can only be used in transaction blocks", "nothing was set"),)
        key = "timezone" if command.name == "time zone" else command.name.lower()
        before = settings.all().get(key, "")
        settings.set(command.name, command.value)
        if local:
            self._local.setdefault(key, before)
        else:
            self._local.pop(key, None)
        return ()

    def _show(self, command: Command) -> StatementResult:
        fields = self.fields(command)
        settings = self._questions.settings
        rows: list[tuple[str, ...]]
        if command.name == "all":
            rows = [(name, value, "") for name, value in settings.all().items()]
            rows += [(name, value, "") for name, value in self._questions.session.options.show().items()]
        else:
            rows = [(settings.get(command.name),)]
        columns = [pa.array(values, pa.string()) for values in zip(*rows, strict=True)]
        return StatementResult("SHOW", fields, pa.Table.from_arrays(columns, names=[field.name for field in fields]))
