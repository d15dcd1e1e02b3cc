"""The privacy unit of a ledger: losses of different units do not add up, so a ledger with charges keeps its unit."""

from __future__ import annotations

import json

from sqlalchemy import select
from sqlalchemy.engine import Connection

from dpsql.errors.exceptions import refuse
from dpsql.ledger.driver_statements import DriverStatement
from dpsql.ledger.tables import entries

_LAST = DriverStatement(select(entries.c.body).where(entries.c.kind == "unit").order_by(entries.c.seq.desc()).limit(1))
_CHARGE = DriverStatement(select(entries.c.seq).where(entries.c.kind == "charge").limit(1))


def must_hold(connection: Connection, unit: str, change: bool) -> bool:
    """Return whether `unit` must still be recorded as the ledger's unit.

    Raises Fault ledger_unit if the ledger has charges for another unit, unless the owner accepts it (`change`). A
    ledger without such a record takes the unit of the first policy that opens it.
    """
    rows = _LAST.rows(connection)
    recorded = json.loads(rows[0][0])["unit"] if rows else None
    if recorded == unit:
        return False
    if recorded is not None and not change and _CHARGE.rows(connection):
        raise refuse("ledger_unit", known=recorded, unit=unit)
    return True
