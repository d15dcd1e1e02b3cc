"""A client that sends raw bytes, for behaviour that no driver shows. Its SCRAM follows the RFC and shares no code with dpsql."""

import base64
import hashlib
import hmac
import os
import socket
import struct

Message = tuple[bytes, bytes]


def framed(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def text(*values: str) -> bytes:
    return b"".join(value.encode() + b"\0" for value in values)


def parse(sql: str, name: str = "", oids: tuple[int, ...] = ()) -> bytes:
    return framed(b"P", text(name, sql) + struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def bind(
    values: tuple[bytes | None, ...] = (),
    portal: str = "",
    name: str = "",
    binary: bool = False,
    formats: tuple[int, ...] = (),
) -> bytes:
    parts = [struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values]
    formats = formats or (1,) * binary
    behind = struct.pack(f"!H{len(formats)}H", len(formats), *formats)
    return framed(b"B", text(portal, name) + b"\0\0" + struct.pack("!H", len(values)) + b"".join(parts) + behind)


def describe(kind: bytes, name: str = "") -> bytes:
    return framed(b"D", kind + text(name))


def execute(portal: str = "", rows: int = 0) -> bytes:
    return framed(b"E", text(portal) + struct.pack("!I", rows))


SYNC, FLUSH = framed(b"S"), framed(b"H")


def free_port() -> int:
    """Return a port on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


class Client:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=240)
        self.key: bytes = b""
        self._buffer = b""

    def send(self, *data: bytes) -> None:
        self.socket.sendall(b"".join(data))

    def read(self) -> Message | None:
        """Return the next message, or None at the end of the connection."""
        head = self._take(5)
        if len(head) < 5:
            return None
        return head[:1], self._take(struct.unpack("!I", head[1:])[0] - 4)

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            try:
                data = self.socket.recv(65536)
            except ConnectionError:
                data = b""
            if not data:
                break
            self._buffer += data
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def until(self, *kinds: bytes) -> list[Message]:
        """Return messages up to and including the first of `kinds`, or up to the end of the connection."""
        found: list[Message] = []
        while (one := self.read()) is not None:
            found.append(one)
            if one[0] in kinds:
                break
        return found

    def query(self, sql: str) -> list[Message]:
        self.send(framed(b"Q", text(sql)))
        return self.until(b"Z")

    def start(self, user: str, database: str, version: int = 196608, **parameters: str) -> None:
        pairs = [part for pair in {"user": user, "database": database, **parameters}.items() for part in pair]
        body = struct.pack("!I", version) + text(*pairs) + b"\0"
        self.send(struct.pack("!I", len(body) + 4) + body)

    def login(self, user: str, password: str, database: str, **parameters: str) -> list[Message]:
        self.start(user, database, **parameters)
        found = self.until(b"R", b"E")
        if found[-1][0] == b"E":
            return found
        bare = f"n=,r={base64.b64encode(os.urandom(12)).decode()}"
        first = f"n,,{bare}".encode()
        self.send(framed(b"p", b"SCRAM-SHA-256\0" + struct.pack("!I", len(first)) + first))
        found = self.until(b"R", b"E")
        if found[-1][0] == b"E":
            return found
        server_first = found[-1][1][4:].decode()
        nonce, salt, count = (part[2:] for part in server_first.split(","))
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(count))
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        told = f"{bare},{server_first},c=biws,r={nonce}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), told, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
        self.send(framed(b"p", f"c=biws,r={nonce},p={proof}".encode()))
        found = self.until(b"Z", b"E")
        self.key = next((body for kind, body in found if kind == b"K"), b"")
        return found

    def close(self) -> None:
        self.socket.close()


def kinds(messages: list[Message]) -> str:
    return b"".join(kind for kind, _ in messages if kind != b"N").decode()


def fields(body: bytes) -> dict[str, str]:
    """Return the fields of an error or notice."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def error_of(messages: list[Message]) -> dict[str, str]:
    return next(fields(body) for kind, body in messages if kind == b"E")


def rows_of(messages: list[Message]) -> list[list[bytes | None]]:
    found = []
    for kind, body in messages:
        if kind == b"D":
            count, at, row = struct.unpack("!H", body[:2])[0], 2, list[bytes | None]()
            for _ in range(count):
                size = struct.unpack("!i", body[at : at + 4])[0]
                at += 4
                row.append(None if size < 0 else body[at : at + size])
                at += max(size, 0)
            found.append(row)
    return found


def columns_of(messages: list[Message]) -> list[tuple[str, int]]:
    """Return the name and type OID of each described column."""
    body = next(body for kind, body in messages if kind == b"T")
    found, at = [], 2
    for _ in range(struct.unpack("!H", body[:2])[0]):
        end = body.index(b"\0", at)
        found.append((body[at:end].decode(), struct.unpack("!I", body[end + 7 : end + 11])[0]))
        at = end + 19
    return found
