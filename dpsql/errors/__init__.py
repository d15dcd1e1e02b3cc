"""Refusals and faults: every message that an analyst may read instead of an answer.

`exceptions` holds their register and classes and the hints for unknown names, `custodian_log` the details
that may quote data. An exception carries a SQLSTATE, a position, a hint and whether anything was charged. This
package knows no SQL and no data.
"""
