"""Refusals and faults: every sentence that an analyst may read when there is no answer.

`messages` holds the register of them, a module for each room; `exceptions` the classes, `suggestions` the hints for
unknown names, `custodian_log` the details that may quote data.
Leaves: an exception with a SQLSTATE, a place, a hint and whether anything was charged. Knows no SQL and no data.
"""
