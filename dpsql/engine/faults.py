"""What leaves of an engine's error: one fixed text with an id."""

from __future__ import annotations

import logging
import uuid

from dpsql.errors.exceptions import Error, Fault, refuse

CUSTODIAN_LOG = logging.getLogger("dpsql.custodian")
"""Engine errors go here, with the incident's id; never to an analyst. The owner decides where it is written."""
CUSTODIAN_LOG.addHandler(logging.NullHandler())


def noted(error: Exception) -> str:
    """The id under which an error stands in the custodian's log."""
    incident = uuid.uuid4().hex[:12]
    CUSTODIAN_LOG.error("incident %s: %s", incident, error)
    return incident


def fault_of(error: Exception, *, of_source: bool) -> Error:
    """One fixed text with an id; the detail goes to the custodian's log alone. The session knows whether it was charged.

    `of_source`: another question over the same data would meet the error as well.
    """
    incident = noted(error)
    fault = refuse("engine_failed", incident=incident)
    if isinstance(fault, Fault):
        fault.incident = incident
        fault.of_source = of_source
    return fault
