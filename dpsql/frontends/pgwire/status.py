"""The owner's port: GET /healthz, /readyz and /metrics. It is open only on request, and never the port of analysts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from dpsql.errors.exceptions import refuse

_MOST_REQUEST = 8_192
_SECONDS = 10.0
_MOST_CLIENTS = 16
"""How many clients are answered at once, and how many may be silent: one more closes the one that has been silent longest, so
that those who send nothing keep nobody from an answer."""
Response = tuple[int, str, bytes]
_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 501: "Not Implemented", 503: "Service Unavailable"}
_TEXT = "text/plain; charset=utf-8"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class StatusServer:
    """A server that answers one request for each connection; `pages` maps a path to a function that returns the response."""

    def __init__(self, pages: dict[str, Callable[[], Awaitable[Response]]]) -> None:
        self._pages = pages
        self._clients = asyncio.Semaphore(_MOST_CLIENTS)
        self._silent: dict[asyncio.StreamWriter, None] = {}
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and return the actual address and port. Raises serve_listen."""
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=_MOST_REQUEST)
        except OSError as error:
            problem = (error.strerror or "it failed").lower()
            raise refuse("serve_listen", address=f"{host}:{port}", problem=problem) from None
        name = self._server.sockets[0].getsockname()
        return str(name[0]), int(name[1])

    def close(self) -> None:
        """Stop taking requests."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_SECONDS):
                head = await self._head(reader, writer)
                async with self._clients:
                    writer.write(_framed(await self._answer(head)))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def _head(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        if len(self._silent) >= _MOST_CLIENTS:
            oldest = next(iter(self._silent))
            del self._silent[oldest]
            oldest.transport.abort()
        self._silent[writer] = None
        try:
            return await reader.readuntil(b"\r\n\r\n")
        finally:
            self._silent.pop(writer, None)

    async def _answer(self, head: bytes) -> Response:
        method, _, rest = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
        page = self._pages.get(rest.split(" ")[0].split("?")[0])
        if page is None:
            return 404, _TEXT, b"there is nothing here\n"
        return await page() if method == "GET" else (405, _TEXT, b"GET only\n")


def text(status: int, words: str) -> Response:
    """Return a response with one line of text."""
    return status, _TEXT, f"{words}\n".encode()


def _framed(response: Response) -> bytes:
    status, kind, body = response
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
