"""Connections of DuckDB in a process that forks: a child has the objects, but none of the threads behind them.

A child that frees such a connection ends with a segmentation fault, if not sooner, when its interpreter ends. So its references
are never given back there; the memory goes with the process.
"""

from __future__ import annotations

import os
import weakref

import duckdb

_connections: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()


def kept_in_children(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return `connection`, which no child of a fork will free."""
    _connections.add(connection)
    return connection


def _keep() -> None:
    import ctypes

    for connection in list(_connections):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    _connections.clear()


os.register_at_fork(after_in_child=_keep)
