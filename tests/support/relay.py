"""A network between a client and a PostgreSQL server that can be cut or lose all packets, immediately or when given bytes
pass."""

import socket
import threading
from contextlib import suppress
from pathlib import Path

_SOCKET = ".s.PGSQL.5432"
_PATIENCE_SECONDS = 240.0


class Relay:
    """A socket in `folder` that forwards bytes to and from the server's socket in `server_folder`."""

    def __init__(self, folder: Path, server_folder: str) -> None:
        self.folder = folder
        self._place, self._target = folder / _SOCKET, f"{server_folder}/{_SOCKET}"
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._markers: tuple[bytes, ...] = ()
        self._passes = self._silent = self._stalls = False
        self._replied = threading.Event()
        self._stalled: set[socket.socket] = set()
        self._is_stalled = False
        self.cuts = 0
        self.mend()

    def mend(self) -> None:
        """Let clients connect. Stalled connections stay stalled: neither end learns that the other is gone."""
        with self._lock:  # a cut that a client has noticed may still be removing the former socket
            self._silent = False
            if self._is_stalled:
                self._is_stalled = False
                return
            self._place.unlink(missing_ok=True)
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(self._place))
            self._listener.listen()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """End every connection and accept no new one."""
        with self._lock:
            self.cuts += 1
            self._markers = ()
            pairs, self._pairs = self._pairs, []
            for end in (self._listener, *(end for pair in pairs for end in pair)):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
            self._place.unlink(missing_ok=True)

    def stall(self) -> None:
        """Forward nothing further without ending any connection; accept new connections, but never answer them."""
        with self._lock:
            self.cuts += 1
            self._markers, self._is_stalled = (), True
            self._stalled.update(end for pair in self._pairs for end in pair)
            self._pairs = []

    def close(self) -> None:
        """End every connection, including stalled ones."""
        self.cut()
        for end in self._stalled:
            end.close()

    def cut_at(self, *markers: bytes, passes: bool, stalls: bool = False) -> None:
        """Cut when a client has sent all `markers` in this order. `passes`: the server still receives the last marker, but its
        reply is lost; `stalls`: stall instead of cutting."""
        self._markers, self._passes, self._stalls = markers, passes, stalls

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            if self._is_stalled:
                self._stalled.add(client)
                continue
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(self._target)
            with self._lock:
                self._pairs.append((client, upstream))
            for source, target, from_client in ((client, upstream, True), (upstream, client, False)):
                threading.Thread(target=self._pump, args=(source, target, from_client), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if from_client and self._is_last_marker(data):
                    if self._passes:
                        self._replied.clear()
                        self._silent = True
                        target.sendall(data)
                        self._replied.wait(_PATIENCE_SECONDS)
                    if self._stalls:
                        self.stall()
                    else:
                        self.cut()
                    return
                if {source, target} & self._stalled:
                    return
                if self._silent and not from_client:
                    self._replied.set()  # the server has done it, but the client never learns that
                else:
                    target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)

    def _is_last_marker(self, data: bytes) -> bool:
        with self._lock:
            while self._markers and self._markers[0] in data:
                data = data.partition(self._markers[0])[2]
                self._markers = self._markers[1:]
                if not self._markers:
                    return True
        return False
