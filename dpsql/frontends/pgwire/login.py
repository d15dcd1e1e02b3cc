"""The login of one connection: startup parameters, SCRAM, first settings. Bytes in, bytes out; no sockets."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire import messages as m
from dpsql.frontends.pgwire.logins import Logins
from dpsql.frontends.pgwire.scram import Exchange
from dpsql.frontends.pgwire.settings import Settings

_OPTION = re.compile(r"(?:-c\s*|--)([\w.]+)=((?:\\.|\S)*)")


class Login:
    """The login of one connection: call `begin`, then `respond` until `done`. `user` and `settings` are those of the request."""

    def __init__(self, startup: m.Startup, dataset: str, logins: Logins, binding: bytes | None) -> None:
        """Raise wire_protocol or login_user. Neither database nor user is checked before the password."""
        if startup.major != 3:
            raise refuse("wire_protocol", version=f"{startup.major}.{startup.minor}")
        self._startup, self._dataset, self._logins, self._binding = startup, dataset, logins, binding
        self.user = startup.parameters.get("user", "")
        if not self.user:
            raise refuse("login_user")
        self.settings = Settings(self.user)
        self._requested = _requested_settings(startup.parameters)
        self.done = False
        self._exchange: Exchange | None = None
        self._step = 0

    @property
    def options(self) -> dict[str, str]:
        """The `dp.` options of the startup packet, which the session checks."""
        return {name: value for name, value in self._requested.items() if name.startswith("dp.")}

    def begin(self) -> bytes:
        """Return the first answer, which offers the mechanisms."""
        verifier, exists = self._logins.verifier(self.user)
        self._exchange = Exchange(verifier, exists, self._binding)
        unknown = [name for name in self._startup.parameters if name.startswith("_pq_.")]
        first = m.negotiate(0, unknown) if self._startup.minor > 0 or unknown else b""
        return first + m.sasl_mechanisms(self._exchange.mechanisms())

    def respond(self, body: bytes) -> bytes:
        """Return the answer to one response. Raises login_scram, login_failed, login_database."""
        assert self._exchange is not None
        self._step += 1
        if self._step == 1:
            mechanism, data = _initial(body)
            return m.sasl_continue(self._exchange.first(mechanism, data))
        final = self._exchange.final(body)
        if final is None:
            raise refuse("login_failed", user=self.user)
        name = self._startup.parameters.get("database") or self.user
        if name != self._dataset:
            raise refuse("login_database", name=name, dataset=self._dataset)
        self.done = True
        return m.sasl_final(final)

    def welcome(self) -> bytes:
        """Return AuthenticationOk and warnings. Settings of the startup packet are set; one that is refused gives a warning."""
        notices = []
        for name, value in self._requested.items():
            if name.startswith("dp."):
                continue
            try:
                self.settings.start(name, value)
            except Error as error:
                notices.append(m.notice_response(error.message, severity="WARNING"))
        return m.AUTHENTICATED + b"".join(notices if self.settings.hears("WARNING") else ())


def _requested_settings(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return settings by name: those named in the startup packet, then those of its `options` (-c name=value, --name=value)."""
    requested = {
        name: value for name, value in parameters.items()
        if name not in ("user", "database", "options", "replication") and not name.startswith("_pq_.")
    }  # fmt: skip
    requested |= {name: value.replace("\\ ", " ") for name, value in _OPTION.findall(parameters.get("options", ""))}
    return {name.lower() if name.lower().startswith("dp.") else name: value for name, value in requested.items()}


def _initial(body: bytes) -> tuple[str, bytes]:
    """Parse SASLInitialResponse into the mechanism and client-first-message. Raises login_scram."""
    end = body.find(b"\0")
    if end < 0 or len(body) < end + 5:
        raise refuse("login_scram")
    size = struct.unpack("!i", body[end + 1 : end + 5])[0]
    data = body[end + 5 :]
    if size != len(data):
        raise refuse("login_scram")
    return body[:end].decode("latin-1"), data
