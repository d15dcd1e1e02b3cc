"""A client that returns every message as received: it logs in, asks and describes, and interprets only the end of an answer.

Source: PostgreSQL 16 documentation, 55.2 and 55.7 (messages), and RFC 5802 (SCRAM, the client's side).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import struct

from dpsql.frontends.pgwire.logins import PLAIN, prepared

Message = tuple[bytes, bytes]
"""The kind and the body of a message."""
_VERSION = 3 << 16
_SECONDS = 120.0


class WireClient:
    """One connection to a server on this machine. Raises OSError if the connection ends, or the login fails."""

    def __init__(self, port: int, user: str, password: str, database: str) -> None:
        """Connect and log in."""
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_SECONDS)
        self._stream = self._socket.makefile("rb")
        body = struct.pack("!I", _VERSION) + _texts("user", user, "database", database) + b"\0"
        self._socket.sendall(struct.pack("!I", len(body) + 4) + body)
        self._prove(password)
        self._until_ready()

    def query(self, sql: str) -> list[Message]:
        """Return all messages of a simple query."""
        self._socket.sendall(_framed(b"Q", _texts(sql)))
        return self._until_ready()

    def described(self, sql: str) -> list[Message]:
        """Return all messages of preparing and describing a statement, which must not charge anything."""
        parse = _framed(b"P", _texts("", sql) + b"\0\0")
        self._socket.sendall(parse + _framed(b"D", b"S\0") + _framed(b"S"))
        return self._until_ready()

    def close(self) -> None:
        """End the session with the server, and close the socket."""
        with self._socket:
            self._socket.sendall(_framed(b"X"))
            self._stream.close()

    def _read(self) -> Message:
        head = self._stream.read(5)
        if len(head) < 5:
            raise ConnectionError("the server has closed the connection")
        return head[:1], self._stream.read(struct.unpack("!I", head[1:])[0] - 4)

    def _until_ready(self) -> list[Message]:
        messages = [self._read()]
        while messages[-1][0] != b"Z":
            messages.append(self._read())
        return messages

    def _authentication(self) -> bytes:
        kind, body = self._read()
        if kind != b"R":
            raise ConnectionError("the server refuses the login")
        return body[4:]

    def _prove(self, password: str) -> None:
        """Log in by SCRAM-SHA-256 without channel binding."""
        self._authentication()
        bare = f"n=,r={secrets.token_urlsafe(18)}"
        first = f"n,,{bare}".encode()
        self._socket.sendall(_framed(b"p", _texts(PLAIN) + struct.pack("!I", len(first)) + first))
        server_first = self._authentication().decode()
        nonce, salt, count = (part[2:] for part in server_first.split(","))
        salted = hashlib.pbkdf2_hmac("sha256", prepared(password).encode(), base64.b64decode(salt), int(count))
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        without_proof = f"c=biws,r={nonce}"
        signed = f"{bare},{server_first},{without_proof}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
        self._socket.sendall(_framed(b"p", f"{without_proof},p={proof}".encode()))
        self._authentication()


def last_column(messages: list[Message]) -> list[float]:
    """Return the last column of every row of an answer in text format, as floats. Raises ValueError for NULL and anything else
    that is no number."""
    numbers = []
    for kind, body in messages:
        if kind == b"D":
            (count,) = struct.unpack("!H", body[:2])
            place, value = 2, b""
            for _ in range(count):
                (size,) = struct.unpack("!i", body[place : place + 4])
                value = body[place + 4 : place + 4 + max(size, 0)]
                place += 4 + max(size, 0)
            numbers.append(float(value))
    return numbers


def _framed(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _texts(*values: str) -> bytes:
    return b"".join(value.encode() + b"\0" for value in values)
