"""The custodian's log of the command line: what may quote data is written there and nowhere else."""

from __future__ import annotations

import logging
import os
import uuid
from pathlib import Path

from dpsql.errors.exceptions import Error, refuse
from dpsql.storage.directories import state_directory


class CustodianLog(logging.Handler):
    """Appends to `custodian.log` in the state directory (see `dpsql.storage.directories`), which only its owner can read."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; a log that cannot be written must not stop a question, and its text goes nowhere else."""
        try:
            place = self.place()
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(
                os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600), "a", encoding="utf-8"
            ) as file:
                file.write(self.format(record) + "\n")
        except (OSError, Error):
            return

    @staticmethod
    def place() -> Path:
        """Where the log is."""
        return state_directory() / "custodian.log"


class AuditLog(CustodianLog):
    """Appends the events of `dpsql.errors.audit_log` to `audit.log` beside it. A file that was moved away is made anew."""

    @staticmethod
    def place() -> Path:
        """Where the log is."""
        return state_directory() / "audit.log"


def keep_log() -> None:
    """Send what dpsql logs, and what libraries warn of, to the custodian's log and nothing of it to the terminal."""
    logging.captureWarnings(True)
    handler = CustodianLog()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    for logger in map(logging.getLogger, ("dpsql", "sqlglot", "py.warnings")):
        if not any(isinstance(known, CustodianLog) for known in logger.handlers):
            logger.addHandler(handler)
        logger.propagate = False
    events = logging.getLogger("dpsql.audit")
    if not any(isinstance(known, AuditLog) for known in events.handlers):
        events.addHandler(AuditLog())
    events.setLevel(logging.INFO)
    events.propagate = False


def unexpected(error: BaseException) -> Error:
    """One fixed sentence with an incident's id for an error nobody foresaw: its own text may quote data."""
    incident = uuid.uuid4().hex[:12]
    logging.getLogger("dpsql.custodian").error("incident %s", incident, exc_info=error)
    return refuse("unexpected", incident=incident)


def unexpected_text(error: BaseException) -> str:
    """`unexpected` for a person. Nobody knows whether something was charged, so that nothing is said of it."""
    told = unexpected(error)
    return f"{told.sqlstate} {told.slug}: {told.message}\nhint: {told.hint}"
