"""The audit log: logins, refusals, charges, stopped questions, and changes by the owner.

One event is one line of JSON on the logger `dpsql.audit`: only ASCII, with every control character escaped, so that no name or
text that a client sends can begin another line or field. It contains no answer and no password.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from dpsql.errors.custodian_log import DATASETS

_log = logging.getLogger("dpsql.audit")
_LONGEST = 2_000


def audit(event: str, **facts: str | int | float | bool | None) -> None:
    """Write one event; facts that are None are left out, and texts are cut at 2,000 characters."""
    if not _log.isEnabledFor(logging.INFO):
        return
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    line: dict[str, object] = {"time": time, "event": event, "datasets": sorted(DATASETS)}
    for name, value in facts.items():
        if value is not None:
            line[name] = value[:_LONGEST] if isinstance(value, str) else value
    _log.info("%s", json.dumps(line, ensure_ascii=True))
