"""Refusals and faults: every sentence that an analyst may read when there is no answer.

`messages` is the register of them, `exceptions` the classes, `custodian_log` where details go that may quote data.
Leaves: an exception with a SQLSTATE, a place, a hint and whether anything was charged. Knows no SQL and no data.
"""
