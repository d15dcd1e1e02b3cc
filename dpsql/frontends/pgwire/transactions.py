"""Transactions and settings of one connection. Nothing is written here, so a transaction only ties settings together:
ROLLBACK brings back those of BEGIN. A charge is not part of any transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.commands import Command, bare_name
from dpsql.frontends.pgwire.constants.tokens import said
from dpsql.frontends.pgwire.questions import Questions
from dpsql.frontends.pgwire.rows import ResultField, StatementResult
from dpsql.frontends.pgwire.settings import DEFAULTS, SETTINGS, setting_key
from dpsql.pricing.options import Options
from dpsql.storage.records import dataclass, replace

MOST_SAVEPOINTS = 1_000
_SAVEPOINT_BYTES, _SETTING_BYTES, _LOCAL_BYTES = 1_000, 100, 400
"""Memory of a savepoint: in all, for each setting of its own, and for each that SET LOCAL replaced."""


@dataclass(frozen=True)
class _Before:
    """Settings and options at one time, and the values that COMMIT has to restore (`Transaction._local`, `_local_options`)."""

    settings: dict[str, str]
    options: Options
    local: dict[str, str]
    local_options: dict[str, Options]
    size: int = 0


_NO_WRITES = (("01000", "transactions are read-only here"),)
"""Warning of a transaction that was begun for writing."""
_OUTSIDE = (("25P01", "SET LOCAL can only be used in transaction blocks"),)
"""Warning of a SET LOCAL outside of a transaction, which ends with its message."""


class Transaction:
    """The transaction of a connection. `status`: I (idle), T (in a transaction), or E (in a failed one)."""

    ENDS = frozenset({"commit", "rollback", "rollback_to"})
    """Commands that a failed transaction accepts."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._before: _Before | None = None
        self._message: _Before | None = None
        """What was in force before the message that is answered, which is a transaction if none is open."""
        self._is_failed = False
        self.several = False
        """Whether the message has several statements: commands that need a transaction may then stand in it."""
        self._savepoints: list[tuple[str, _Before]] = []
        self._local: dict[str, str] = {}
        self._local_options: dict[str, Options] = {}
        self._held = questions.memory.reserve(0, "statements")
        self.status, self.has_read = "I", False
        """`has_read`: whether a question was answered in the transaction."""

    def fail(self) -> None:
        """Enter the state of an error: inside a transaction, everything but its end is refused until then."""
        self._is_failed = True
        if self.status == "T":
            self.status = "E"

    def enter(self) -> None:
        """Begin the transaction that a message is, if none is open."""
        if self.status == "I" and self._message is None:
            self._message = self._snapshot()

    def settle(self) -> None:
        """End the transaction that a message was."""
        message, is_failed = self._message, self._is_failed
        self._is_failed = self.several = False
        if message is None or not (self._local or self._local_options or is_failed):
            self._message = None
        else:
            self._end_message(back=is_failed)

    def _end_message(self, back: bool) -> None:
        if back and self._message is not None:
            self._restore(self._message)
        else:
            self._end_local()
        self._message, self._local, self._local_options = None, {}, {}

    def require(self, command: str) -> None:
        """Refuse a command that works in a transaction only. Raises transaction_none."""
        if self.status == "I" and not self.several:
            raise refuse("transaction_none", what=command)

    def fields(self, command: Command) -> tuple[ResultField, ...]:
        """Return the columns of a command's answer."""
        if command.kind != "show":
            return ()
        if command.name == "all":
            return (ResultField("name", e.TEXT), ResultField("setting", e.TEXT), ResultField("description", e.TEXT))
        key = setting_key(command.name)
        return (ResultField(_spelt(key), e.TEXT),)

    def run(self, command: Command) -> StatementResult:
        """Execute one command. Raises refusals."""
        warnings: tuple[tuple[str, str], ...] = ()
        kind = command.kind
        tag = command.tag
        if kind == "show":
            return self._show(command)
        if kind == "begin":
            warnings = self._begin(command)
        elif kind == "commit":
            tag = "ROLLBACK" if self.status == "E" else tag
            warnings = self._end(command, back=self.status == "E")
        elif kind == "rollback":
            warnings = self._end(command, back=True)
        elif kind in ("savepoint", "release", "rollback_to"):
            self._savepoint(command)
        elif kind == "lock":
            self._lock(command)
        elif kind == "maintain":
            warnings = self._maintain(command)
        elif kind in ("role", "own_role"):
            self._set_role(command)
        elif kind == "characteristics":
            warnings = self._characterise(command)
        elif kind in ("set", "reset"):
            warnings = self._change_setting(command)
        return StatementResult(tag, warnings=warnings)

    def _snapshot(self) -> _Before:
        settings, options = self._questions.settings.snapshot(), self._questions.session.options
        return _Before(settings, options, dict(self._local), dict(self._local_options))

    def _restore(self, before: _Before) -> None:
        self._questions.settings.restore(before.settings)
        self._questions.session.options = before.options
        self._local, self._local_options = dict(before.local), dict(before.local_options)

    def _begin(self, command: Command) -> tuple[tuple[str, str], ...]:
        if self.status != "I":
            return (("25001", "there is already a transaction in progress"),)
        self.status, self._before, self._message = "T", self._message or self._snapshot(), None
        self.has_read = False
        level = _level(command.words) or self._questions.settings.get("default_transaction_isolation")
        self._set_local("transaction_isolation", level)
        words = " ".join(command.words)
        if "DEFERRABLE" in words:
            self._set_local("transaction_deferrable", "off" if "NOT DEFERRABLE" in words else "on")
        return _NO_WRITES if "WRITE" in command.words else ()

    def _set_local(self, name: str, value: str) -> None:
        """Set a setting until the end of the transaction."""
        if self._questions.settings.get(name) != value:
            self._change_setting(Command("set", "SET", name, value, words=("LOCAL",)))

    def _characterise(self, command: Command) -> tuple[tuple[str, str], ...]:
        """Execute SET TRANSACTION and SET SESSION CHARACTERISTICS: the level that is shown, as nothing here is written."""
        level, settings = _level(command.words), self._questions.settings
        if command.words[0] == "CHARACTERISTICS":
            if level:
                settings.set("default_transaction_isolation", level)
            if "READ" in command.words and not {"ONLY", "WRITE"}.isdisjoint(command.words):
                settings.set("default_transaction_read_only", "off" if "WRITE" in command.words else "on")
        elif level and self.status == "T":
            if self.has_read:
                raise said("25001", "SET TRANSACTION ISOLATION LEVEL must be called before any query")
            self._set_local("transaction_isolation", level)
        return _NO_WRITES if command.words[0] == "TRANSACTION" and "WRITE" in command.words else ()

    def _lock(self, command: Command) -> None:
        """Execute LOCK, which analysts may in the mode of readers, whom nothing keeps waiting here."""
        self.require(command.tag)
        for name in command.words:
            self._questions.require_relation(name)
            if command.value != "ACCESS SHARE":
                raise said("42501", f"permission denied for table {bare_name(name)}")

    def _maintain(self, command: Command) -> tuple[tuple[str, str], ...]:
        """Execute VACUUM and the like: they skip the tables of others, or are for their owners only."""
        if command.tag == "VACUUM" and (self.status != "I" or self.several):
            raise said("25001", "VACUUM cannot run inside a transaction block")
        for name in filter(None, command.words):
            self._questions.require_relation(name)
        if command.words and command.tag in ("REINDEX", "CLUSTER"):
            named = bare_name(command.words[0]) or self._questions.session.policy.dataset
            raise said("42501", f"must be owner of {command.value} {named}")
        skipped = 'permission denied to {} "{}", skipping it'
        return tuple(("01000", skipped.format(command.tag.lower(), bare_name(name))) for name in command.words)

    def _set_role(self, command: Command) -> None:
        """Execute SET ROLE and RESET ROLE. Refuses another role than the asker's own."""
        if command.kind == "role":
            self._check_role(command)
        if command.value == "role":
            self._questions.settings.note("role", "none" if command.kind == "own_role" else command.name)

    def _check_role(self, command: Command) -> None:
        name = command.name
        if name == "owner":
            raise refuse("role_fixed", name=name)
        if self._questions.is_role(name) and name != self._questions.settings.get("session_authorization"):
            raise said("42501", f'permission denied to set {command.value} "{name}"')
        if not self._questions.is_role(name):
            raise refuse("role_unknown", name=name)

    def _end(self, command: Command, back: bool) -> tuple[tuple[str, str], ...]:
        if self.status == "I" and "CHAIN" in command.words:
            raise refuse("transaction_none", what=f"{command.tag} AND CHAIN")
        if self.status == "I":
            self._end_message(back)
            self.enter()
            return (("25P01", "there is no transaction in progress"),)
        if back and self._before is not None:
            self._restore(self._before)
        else:
            self._end_local()
        self.status, self._before, self._savepoints, self._local, self._local_options = "I", None, [], {}, {}
        self._held.resize(0)
        if "CHAIN" in command.words:
            self.status, self._before = "T", self._snapshot()
        return ()

    def _end_local(self) -> None:
        """Restore what SET LOCAL replaced."""
        settings, session = self._questions.settings, self._questions.session
        settings.restore({**settings.snapshot(), **self._local})
        options = session.options
        for name, before in self._local_options.items():
            options = options.reset(name, before)
        session.options = options

    def _savepoint(self, command: Command) -> None:
        if self.status == "I":
            raise refuse("transaction_none", what=_SAVEPOINT_WORDS[command.kind])
        if command.kind == "savepoint":
            if len(self._savepoints) >= MOST_SAVEPOINTS:
                raise refuse("wire_limit", most=MOST_SAVEPOINTS, what="savepoints")
            self._add_savepoint(command.name)
            return
        names = [name for name, _ in self._savepoints]
        if command.name not in names:
            raise refuse("savepoint_unknown", name=command.name)
        last = len(names) - 1 - names[::-1].index(command.name)
        if command.kind == "rollback_to":
            self._restore(self._savepoints[last][1])
            self.status = "T"
        del self._savepoints[last + (command.kind == "rollback_to") :]
        self._held.resize(sum(savepoint.size for _, savepoint in self._savepoints))

    def _add_savepoint(self, name: str) -> None:
        """Keep the present settings under `name`. Savepoints between which no setting changed share them. Raises memory_full."""
        before, last = self._snapshot(), self._savepoints[-1][1] if self._savepoints else None
        size = _SAVEPOINT_BYTES + 4 * len(name) + _LOCAL_BYTES * (len(before.local) + len(before.local_options))
        if last is None or before.settings is not last.settings:
            size += _SETTING_BYTES * len(before.settings) + sum(map(len, before.settings.values()))
        self._held.resize(size + sum(savepoint.size for _, savepoint in self._savepoints))
        self._savepoints.append((name, replace(before, size=size)))

    def _change_setting(self, command: Command) -> tuple[tuple[str, str], ...]:
        """Execute SET or RESET of a setting; RESET ALL also resets the options."""
        settings, session = self._questions.settings, self._questions.session
        key, before = setting_key(command.name), settings.snapshot()
        if command.kind == "set":
            settings.set(command.name, command.value)
        else:
            settings.reset(command.name)
        if key == "all":
            session.options = session.first_options
            self._local, self._local_options = {}, {}
        elif not command.local:
            self._local.pop(key, None)
        else:
            self._local.setdefault(key, before.get(key, DEFAULTS.get(key, "")))
        return self._outside(command)

    def _outside(self, command: Command) -> tuple[tuple[str, str], ...]:
        """Return the warning of SET LOCAL that ends with its own message."""
        return _OUTSIDE if command.local and self.status == "I" and not self.several else ()

    def change_option(self, command: Command, change: Callable[[], StatementResult]) -> StatementResult:
        """Execute SET or RESET of an option of the session, which `change` does as if there were no LOCAL. Raises refusals."""
        session, name = self._questions.session, command.name.lower().removeprefix("dp.")
        before = session.options
        answer = replace(change(), tag=command.tag)
        for key in (key.removeprefix("dp.") for key in before.show()):
            if name not in (key, "all"):
                continue
            if not command.local:
                self._local_options.pop(key, None)
            else:
                self._local_options.setdefault(key, before)
        return replace(answer, warnings=self._outside(command))

    def _show(self, command: Command) -> StatementResult:
        fields = self.fields(command)
        settings = self._questions.settings
        rows: list[tuple[str, ...]]
        if command.name == "all":
            rows = [
                (_spelt(name), value, SETTINGS[name].short_desc if name in SETTINGS else "")
                for name, value in settings.all().items()
            ]
            rows += [(name, value, "") for name, value in self._questions.session.options.show().items()]
        else:
            rows = [(settings.get(command.name),)]
        columns = [pa.array(values, pa.string()) for values in zip(*rows, strict=True)]
        return StatementResult("SHOW", fields, pa.Table.from_arrays(columns, names=[field.name for field in fields]))


_SAVEPOINT_WORDS = {"savepoint": "SAVEPOINT", "release": "RELEASE SAVEPOINT", "rollback_to": "ROLLBACK TO SAVEPOINT"}


def _level(words: Sequence[str]) -> str:
    """Return the isolation level that BEGIN or SET TRANSACTION names; "" for none."""
    behind = words[words.index("LEVEL") + 1 :] if "LEVEL" in words else ()
    return " ".join(behind[: 1 if behind[:1] == ("SERIALIZABLE",) else 2]).lower()


def _spelt(key: str) -> str:
    """Return the name of a setting as SHOW has it."""
    return SETTINGS[key].name if key in SETTINGS else key
