"""Faults for engine errors: one fixed text with the id of an incident."""

from __future__ import annotations

import logging
import uuid

from dpsql.errors.exceptions import Error, Fault, refuse

CUSTODIAN_LOG = logging.getLogger("dpsql.custodian")
"""The log for engine errors, with the id of the incident; analysts never see it. The owner decides where it is written."""
CUSTODIAN_LOG.addHandler(logging.NullHandler())


def noted(error: Exception) -> str:
    """Log an error for the custodian and return the id of the incident."""
    incident = uuid.uuid4().hex[:12]
    CUSTODIAN_LOG.error("incident %s: %s", incident, error)
    return incident


def fault_of(error: Exception, *, of_source: bool) -> Error:
    """Return a fault with a fixed text and the id of an incident; details go only to the custodian's log. The session
    sets `charged`.

    `of_source`: another question over the same data would have the same error.
    """
    incident = noted(error)
    fault = refuse("engine_failed", incident=incident)
    if isinstance(fault, Fault):
        fault.incident = incident
        fault.of_source = of_source
    return fault
