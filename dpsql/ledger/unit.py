"""The privacy unit of a ledger: losses to different units do not add up, so a ledger with charges keeps its unit."""

from __future__ import annotations

import json

from sqlalchemy import select
from sqlalchemy.engine import Connection

from dpsql.errors.exceptions import refuse
from dpsql.ledger.tables import entries

_LAST = select(entries.c.body).where(entries.c.kind == "unit").order_by(entries.c.seq.desc()).limit(1)
_CHARGE = select(entries.c.seq).where(entries.c.kind == "charge").limit(1)


def must_hold(connection: Connection, unit: str, change: bool) -> bool:
    """Return whether `unit` must still be recorded as the ledger's unit.

    Raises Fault ledger_unit if the ledger has charges for another unit, unless the owner accepts it (`change`). A
    ledger older than this record takes the unit of the first policy that opens it.
    """
    body = connection.execute(_LAST).scalar()
    recorded = None if body is None else json.loads(body)["unit"]
    if recorded == unit:
        return False
    if recorded is not None and not change and connection.execute(_CHARGE).first() is not None:
        raise refuse("ledger_unit", known=recorded, unit=unit)
    return True
