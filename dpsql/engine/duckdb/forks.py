"""DuckDB connections in a process that forks: a child has the objects, but none of their threads.

A child that frees such a connection gets a segmentation fault, at the latest when its interpreter ends. So a child never
releases its references; their memory is freed with the process.
"""

from __future__ import annotations

import os
import weakref

import duckdb

_connections: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()


def kept_in_children(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return `connection`, and ensure that no forked child frees it."""
    _connections.add(connection)
    return connection


def _keep() -> None:
    import ctypes

    for connection in list(_connections):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    _connections.clear()


os.register_at_fork(after_in_child=_keep)
