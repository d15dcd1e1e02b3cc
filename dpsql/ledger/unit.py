"""Whose privacy a ledger accounts for: losses to different privacy units do not add up, so a used ledger keeps its unit."""

from __future__ import annotations

import json

from sqlalchemy import select
from sqlalchemy.engine import Connection

from dpsql.errors.exceptions import refuse
from dpsql.ledger.tables import entries

_LAST = select(entries.c.body).where(entries.c.kind == "unit").order_by(entries.c.seq.desc()).limit(1)
_CHARGE = select(entries.c.seq).where(entries.c.kind == "charge").limit(1)


def must_hold(connection: Connection, unit: str, change: bool) -> bool:
    """Whether the ledger does not say yet that its unit is `unit`.

    Raises Fault ledger_unit when it has charges for another one, unless `change` is the owner's word for it. A ledger from
    before units were recorded takes that of the first policy that opens it.
    """
    body = connection.execute(_LAST).scalar()
    known = None if body is None else json.loads(body)["unit"]
    if known == unit:
        return False
    if known is not None and not change and connection.execute(_CHARGE).first() is not None:
        raise refuse("ledger_unit", known=known, unit=unit)
    return True
