"""Faults of the source, for analysts to whom the policy shows only a part of it: messages name nothing that is hidden."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from dpsql.errors.exceptions import REGISTER, Error, refuse
from dpsql.policy import Policy


@contextmanager
def naming_nothing_hidden(policy: Policy) -> Iterator[None]:
    """Replace a fault that names a hidden table or column by `owner_only`; its text goes to the custodian's log.

    Refusals may quote names that the analyst wrote: a hidden name is reported in the same way as one that does not exist.
    """
    try:
        yield
    except Error as error:
        if not _names_hidden(policy, error):
            raise
        incident = uuid.uuid4().hex[:12]
        logging.getLogger("dpsql.custodian").error("incident %s: %s", incident, error.text())
        raise refuse("owner_only", incident=incident, charged=error.charged) from None


def _names_hidden(policy: Policy, error: Error) -> bool:
    entry = REGISTER.get(error.slug)
    if policy.asker is None or entry is None or "{table}" not in entry.sentence:
        return False
    words = set(re.findall(r"\w+", f"{error.message} {error.hint}"))
    names = {name for table in policy.tables.values() for name in (table.name, *table.columns)}
    visible = {name for table in policy.visible.values() for name in (table.name, *table.columns)}
    return not words.isdisjoint(names - visible)
