"""The smallest server of the PostgreSQL protocol over a DuckDB file: what a question costs behind a door that protects nothing.

`python -m benchmarks.plain_door FILE` prints its port and serves until it is ended. It has a thread and a cursor for each
connection, no logins, and knows simple queries alone; every value is sent as text.
"""

from __future__ import annotations

import socketserver
import struct
import sys
from typing import Any

import duckdb

_TEXT = 25
_READY = b"Z\0\0\0\5I"


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _described(columns: list[Any]) -> bytes:
    fields = b"".join(name.encode() + b"\0" + struct.pack("!ihihih", 0, 0, _TEXT, -1, -1, 0) for name, *_ in columns)
    return _message(b"T", struct.pack("!h", len(columns)) + fields)


def _row(values: tuple[Any, ...]) -> bytes:
    body = struct.pack("!h", len(values))
    for value in values:
        text = b"" if value is None else str(value).encode()
        body += struct.pack("!i", -1 if value is None else len(text)) + text
    return _message(b"D", body)


class _Client(socketserver.StreamRequestHandler):
    """One connection."""

    disable_nagle_algorithm = True
    server: Any

    def handle(self) -> None:
        """Answer the client's queries until it leaves."""
        (length,) = struct.unpack("!i", self.rfile.read(4))
        startup = self.rfile.read(length - 4)
        if startup[:4] == struct.pack("!i", 80877103):  # no TLS
            self.wfile.write(b"N")
            (length,) = struct.unpack("!i", self.rfile.read(4))
            self.rfile.read(length - 4)
        settings = _message(b"S", b"server_version\x0016.0\0") + _message(b"S", b"client_encoding\0UTF8\0")
        self.wfile.write(_message(b"R", struct.pack("!i", 0)) + settings + _READY)
        cursor = self.server.database.cursor()
        while (head := self.rfile.read(5)) and head[:1] != b"X":
            text = self.rfile.read(struct.unpack("!i", head[1:])[0] - 4)
            if head[:1] != b"Q":
                continue
            cursor.execute(text[:-1].decode())
            rows = cursor.fetchall()
            answer = [_described(cursor.description), *map(_row, rows)]
            self.wfile.write(b"".join(answer) + _message(b"C", b"SELECT %d\0" % len(rows)) + _READY)


class _Door(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128
    database: duckdb.DuckDBPyConnection


def main() -> None:
    """Serve the file that the command line names."""
    with _Door(("127.0.0.1", 0), _Client) as door:
        door.database = duckdb.connect(sys.argv[1], read_only=True)
        print(door.server_address[1], flush=True)
        door.serve_forever()


if __name__ == "__main__":
    main()
