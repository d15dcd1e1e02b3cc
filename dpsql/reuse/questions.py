"""Texts of questions in the owner's store: who asked what, when, at what price, and what was refused.

The texts are in a file of their own beside the ledger (its name ends in `.questions`; with a PostgreSQL ledger, a table), which
only the owner's account can read: literals of questions may be data of patients. They are bounded in days and in megabytes, and
removed for good (`secure_delete`). A text that cannot be written costs no answer; the custodian's log says how many were lost.
No session reads them: an analyst sees only what they typed themselves.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from dpsql.errors.exceptions import Error
from dpsql.ledger.accounts import now
from dpsql.ledger.database import Location
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.opening import require_no_links, touch
from dpsql.ledger.store import LEDGER_BYTES, Store
from dpsql.policy import Policy
from dpsql.policy.types import StorePolicy
from dpsql.storage.records import dataclass

_log = logging.getLogger("dpsql.custodian")
_COLUMNS = ("time", "analyst", "project", "outcome", "price", "receipt", "columns", "question")
_TABLE = (
    "CREATE TABLE IF NOT EXISTS dpsql_questions (time TEXT NOT NULL, analyst TEXT NOT NULL, project TEXT NOT NULL, "
    "outcome TEXT NOT NULL, price TEXT NOT NULL, receipt TEXT NOT NULL, columns TEXT NOT NULL, question TEXT NOT NULL)"
)
_INDEX = "CREATE INDEX IF NOT EXISTS ix_dpsql_questions_time ON dpsql_questions (time)"
_INSERT = f"INSERT INTO dpsql_questions ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in _COLUMNS)})"
_ROWS = f"SELECT {', '.join(_COLUMNS)} FROM dpsql_questions ORDER BY time"
_SIZE = "SELECT CAST(SUM(length(question) + length(columns) + 200) AS BIGINT) FROM dpsql_questions"
_OLD = "DELETE FROM dpsql_questions WHERE time < :time"
_OLD_COUNT = "SELECT count(*) FROM dpsql_questions WHERE time < :time"
_TENTH = "SELECT time FROM dpsql_questions ORDER BY time LIMIT 1 OFFSET (SELECT count(*) / 10 FROM dpsql_questions)"
_LOOKED_AT = 256
_MOST_CHARACTERS = 100_000
ANSWERED, FREE = "answered", "free"
"""Outcomes of questions with an answer: charged, or from the store. All others are slugs of errors."""


@dataclass(frozen=True)
class QuestionText:
    """One question. `outcome`: ANSWERED, FREE, or the slug of the error; `columns`: what an answer read, as TABLE.COLUMN;
    `receipt`: of the charge that paid for the answer; `claimed_user`: for whom the client said that it asks, which nobody has
    checked, or ""."""

    time: str
    analyst: str
    project: str
    outcome: str
    price: str
    receipt: str
    columns: tuple[str, ...]
    question: str
    claimed_user: str = ""


class QuestionTexts:
    """The texts of the questions over one ledger. Thread-safe."""

    def __init__(self, ledger: Ledger, bounds: StorePolicy) -> None:
        location = ledger.store.location
        if location.path is not None:
            path = location.path.with_name(f"{location.path.name}.questions")
            location = Location(path, f"sqlite:///{path}", {})
        self._store = Store(location, ledger.store.timeout_seconds, name="the store of questions", leaves=LEDGER_BYTES)
        self._bounds = bounds
        self._written, self._lost = 0, 0
        self._is_open = False

    def note(
        self, analyst: str, sql: str, outcome: str, *, project: str | None = None, price: str = "", receipt: str = "",
        columns: Sequence[str] = (), claimed_user: str | None = None,
    ) -> None:  # fmt: skip
        """Keep the text of a question; whatever fails is only logged."""
        row = {"time": now(), "analyst": analyst, "project": project or "", "outcome": outcome, "price": price}
        row |= {
            "receipt": receipt,
            "columns": json.dumps({"read": columns, "claimed_user": claimed_user} if claimed_user else columns),
            "question": sql[:_MOST_CHARACTERS].replace("\0", "").encode(errors="replace").decode(),
        }
        try:
            self._open()
            if self._store.is_sqlite:
                self._store.write(_INSERT, **row)
            else:
                with self._store.writing(durable=False) as connection:
                    connection.run(_INSERT, **row)
            self._written += 1
            if self._written % _LOOKED_AT == 1:
                self._keep_bounds()
        except (Error, OSError) as error:
            self._lost += 1
            if self._lost & (self._lost - 1) == 0:  # 1, 2, 4, 8, ... lines
                _log.error("%d texts of questions could not be written: %s", self._lost, error)

    def all(self) -> list[QuestionText]:
        """Return all questions, oldest first; none if nothing was written yet. Raises Fault."""
        self._open()
        rows = self._store.rows(_ROWS)
        return [_question_text(dict(zip(_COLUMNS, row, strict=True))) for row in rows]

    def count(self, until: str) -> int:
        self._open()
        return int(self._store.rows(_OLD_COUNT, time=until)[0][0])

    def erase(self, until: str) -> int:
        """Remove the texts of all questions before a time, so that their bytes are in no file; return their number."""
        self._open()
        with self._store.erasing("dpsql_questions") as connection:
            return connection.run(_OLD, time=until)

    def close(self) -> None:
        """Close the connection; it is opened again when it is used."""
        self._store.close()

    def _open(self) -> None:
        if self._is_open:
            return
        if self._store.location.path is not None:
            require_no_links(self._store.location.path)
            touch(self._store.location.path, self._store.name)
        if "dpsql_questions" not in self._store.table_names():
            with self._store.writing(durable=False) as connection:
                connection.run(_TABLE)
                connection.run(_INDEX)
        self._is_open = True

    def _keep_bounds(self) -> None:
        """Remove what is too old, and the oldest tenth while all takes too much."""
        self._remove(days_before(self._bounds.question_days).isoformat(timespec="milliseconds"))
        while ((size := self._store.rows(_SIZE)[0][0]) or 0) > 10**6 * self._bounds.questions_mb:
            ((time,),) = self._store.rows(_TENTH)
            self._remove(f"{time}~")
            _log.warning("texts of questions before %s were removed: they took %d bytes", time, size)

    def _remove(self, time: str) -> None:
        with self._store.writing() as connection:
            count = connection.run(_OLD, time=time)
        if count and self._store.is_sqlite:
            self._store.rows("PRAGMA wal_checkpoint(TRUNCATE)")


def _question_text(row: dict[str, str]) -> QuestionText:
    """Return a question from its row. Its `columns` are a list, or an object where a user is claimed."""
    stored = json.loads(row["columns"])
    facts = stored if isinstance(stored, dict) else {"read": stored, "claimed_user": ""}
    return QuestionText(**{**row, "columns": tuple(facts["read"]), "claimed_user": facts["claimed_user"]})


def days_before(days: int) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


def open_questions(ledger: Ledger, policy: Policy) -> QuestionTexts | None:
    """Return the texts of questions over a ledger, or None if the policy keeps none. The file is made by the first question."""
    return None if policy.log_sql is False else QuestionTexts(ledger, policy.store)
