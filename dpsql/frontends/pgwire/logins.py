"""Logins of the PostgreSQL protocol: SCRAM verifiers in a file that only its owner can read, next to the ledger's key.

The file is not in the policy's folder, because policies are shared and versioned; whoever can read it cannot log in with it, but
can guess weak passwords without any limit on the number of tries.

Whoever changes it holds the lock of the file `logins.lock` beside it from reading to replacing, so that changes of several
processes follow each other. The new file is complete and on disk before it takes the name of the previous one; readers need no
lock. They read it at each message until two seconds have passed since its last change, because times of files are too coarse to
show two changes at once, and later when its inode, size or time of change (which no program can set) differs: with ten thousand
logins it has megabytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import stringprep
import struct
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire import messages as m
from dpsql.frontends.pgwire.settings import Settings
from dpsql.ledger.ledger import Ledger
from dpsql.policy import Policy
from dpsql.policy.values import OWNER
from dpsql.storage.files import locked, replace_private, write_private
from dpsql.storage.records import dataclass

# --- SCRAM-SHA-256 and SCRAM-SHA-256-PLUS for a server that stores verifiers, never passwords -------------------------
# Sources: RFC 5802 (SCRAM), RFC 7677 (SHA-256), RFC 5929 section 4 (tls-server-end-point), and PostgreSQL 16's usage:
# the user name is that of the startup packet, while that of the SCRAM exchange is ignored.
#
# The package scramp (1.5) is not used: its server refuses an empty user name, which libpq and everything built on it
# send ("n=,r=..."), and it refuses passwords that SASLprep forbids, which PostgreSQL accepts unchanged.

ITERATIONS = 10_000
PLAIN, PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
_SALT = 16


@dataclass(frozen=True)
class Verifier:
    """The verifier of a password: enough to check it, not enough to log in with (RFC 5802, section 3)."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def text(self) -> str:
        """Return the verifier in PostgreSQL's form: SCRAM-SHA-256$iterations:salt$stored_key:server_key."""
        salt, stored, server = (
            base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"{PLAIN}${self.iterations}:{salt}${stored}:{server}"

    @classmethod
    def read(cls, text: str) -> Verifier:
        """Parse a verifier in PostgreSQL's form. Raises ValueError."""
        mechanism, head, keys = text.split("$")
        count, salt = head.split(":")
        stored, server = keys.split(":")
        verifier = cls(int(count), *(base64.b64decode(part, validate=True) for part in (salt, stored, server)))
        if (
            mechanism != PLAIN
            or len(verifier.stored_key) != 32
            or len(verifier.server_key) != 32
            or verifier.iterations < 4096
        ):
            raise ValueError("not a SCRAM-SHA-256 verifier")
        return verifier


def make_verifier(password: str, salt: bytes | None = None, iterations: int = ITERATIONS) -> Verifier:
    """Return the verifier of a password that is not empty."""
    salt = os.urandom(_SALT) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password).encode(), salt, iterations)
    client_key = _mac(salted, b"Client Key")
    return Verifier(iterations, salt, hashlib.sha256(client_key).digest(), _mac(salted, b"Server Key"))


def mock_verifier(secret: bytes, user: str) -> Verifier:
    """Return a verifier that no password fits. Its salt is the same at each attempt, like a real user's, so that two attempts do
    not reveal whether a user exists."""
    salt = _mac(secret, user.encode("utf-8", "replace"))[:_SALT]
    return Verifier(ITERATIONS, salt, os.urandom(32), os.urandom(32))


def prepared(password: str) -> str:
    """Return a password after SASLprep (RFC 4013) as PostgreSQL applies it: a text that it forbids is unchanged."""
    if password.isascii():
        return password
    mapped = "".join(
        " " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c)
    )  # fmt: skip
    text = unicodedata.normalize("NFKC", mapped)
    forbidden = (
        stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3, stringprep.in_table_c4,
        stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7, stringprep.in_table_c8,
        stringprep.in_table_c9, stringprep.in_table_a1,
    )  # fmt: skip
    if not text or any(test(c) for c in text for test in forbidden):
        return password
    right_to_left = [stringprep.in_table_d1(c) for c in text]
    if any(right_to_left) and (
        any(stringprep.in_table_d2(c) for c in text) or not (right_to_left[0] and right_to_left[-1])
    ):
        return password
    return text


class Exchange:
    """The SCRAM exchange of one login. `exists` is False for a mock verifier: whatever the client proves, it fails at the end.

    `binding` is the channel-binding data of this TLS connection (`certificate_hash`), None without TLS.
    """

    def __init__(self, verifier: Verifier, exists: bool, binding: bytes | None) -> None:
        self._verifier, self._exists, self._binding = verifier, exists, binding
        self._header = b""
        self._first = ""
        self._server_first = ""
        self._nonce = ""

    def mechanisms(self) -> tuple[str, ...]:
        """Return the mechanisms to offer, the stronger first."""
        return (PLAIN,) if self._binding is None else (PLUS, PLAIN)

    def first(self, mechanism: str, data: bytes) -> bytes:
        """Return the server's answer to client-first-message. Raises login_scram."""
        try:
            text = data.decode("utf-8")
            flag, authzid, bare = text.split(",", 2)
        except ValueError:
            raise refuse("login_scram") from None
        self._check_flag(mechanism, flag)
        attributes = bare.split(",")
        if authzid or len(attributes) < 2 or not attributes[0].startswith("n=") or not attributes[1].startswith("r="):
            raise refuse("login_scram")
        self._header = f"{flag},,".encode()
        self._first = bare
        self._nonce = attributes[1][2:] + secrets.token_urlsafe(18)
        salt = base64.b64encode(self._verifier.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        return self._server_first.encode()

    def _check_flag(self, mechanism: str, flag: str) -> None:
        """Refuse a downgrade: a client that could bind, and says that the server cannot ("y") although it offered that, has been
        deceived (RFC 5802, 6)."""
        if mechanism == PLUS:
            if self._binding is None or flag != "p=tls-server-end-point":
                raise refuse("login_scram")
        elif mechanism != PLAIN or flag not in ("n", "y") or (flag == "y" and self._binding is not None):
            raise refuse("login_scram")

    def final(self, data: bytes) -> bytes | None:
        """Return server-final-message if the proof holds, else None. Raises login_scram."""
        try:
            text = data.decode("utf-8")
            without_proof, proof_text = text.rsplit(",p=", 1)
            channel, nonce = without_proof.split(",")[:2]
            proof = base64.b64decode(proof_text, validate=True)
            binding = base64.b64decode(channel.removeprefix("c="), validate=True)
        except (ValueError, binascii.Error):
            raise refuse("login_scram") from None
        expected = self._header + (self._binding or b"" if self._header.startswith(b"p=") else b"")
        if not hmac.compare_digest(binding, expected) or not hmac.compare_digest(
            nonce.encode(), f"r={self._nonce}".encode()
        ):
            raise refuse("login_scram")
        message = f"{self._first},{self._server_first},{without_proof}".encode()
        signature = _mac(self._verifier.stored_key, message)
        if len(proof) != len(signature):
            raise refuse("login_scram")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        proven = hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key)
        if not (proven and self._exists):
            return None
        return b"v=" + base64.b64encode(_mac(self._verifier.server_key, message))


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


# --- channel binding --------------------------------------------------------------------------------------------------

_HASHES = {
    bytes.fromhex("2a864886f70d01010b"): "sha256", bytes.fromhex("2a864886f70d01010c"): "sha384",
    bytes.fromhex("2a864886f70d01010d"): "sha512", bytes.fromhex("2a8648ce3d040302"): "sha256",
    bytes.fromhex("2a8648ce3d040303"): "sha384", bytes.fromhex("2a8648ce3d040304"): "sha512",
    bytes.fromhex("2a864886f70d010104"): "sha256", bytes.fromhex("2a864886f70d010105"): "sha256",
}  # fmt: skip
"""Signature algorithms (DER of their OID) with a single hash; MD5 and SHA-1 are replaced by SHA-256 (RFC 5929, 4.1)."""


def certificate_hash(der: bytes) -> bytes | None:
    """Return tls-server-end-point of the server's certificate; None if its signature has no single hash (Ed25519, PSS)."""
    try:
        start, _ = _inside(der, 0)  # Certificate
        _, end = _inside(der, start)  # tbsCertificate
        start, _ = _inside(der, end)  # signatureAlgorithm
        start, end = _inside(der, start)  # its OID
    except IndexError:
        return None
    name = _HASHES.get(der[start:end])
    return None if name is None else hashlib.new(name, der).digest()


def _inside(der: bytes, index: int) -> tuple[int, int]:
    """Return the start and end of the contents of the DER element at `index`."""
    size, start = der[index + 1], index + 2
    if size & 0x80:
        width = size & 0x7F
        size, start = int.from_bytes(der[start : start + width], "big"), start + width
    return start, start + size


# --- logins of the PostgreSQL protocol --------------------------------------------------------------------------------

LEAST_PASSWORD = 8
_DISABLED = "!"
"""Prefix of the verifier of a disabled login, as in a shadow file: no version reads it as a verifier."""
_SETTLED_NANOSECONDS = 2 * 10**9
"""Age of a change after which a further one has another time on every file system."""


class Logins:
    """The logins of one data set; read again after each change of the file, so that `user add` needs no restart."""

    def __init__(self, path: Path, policy: Policy) -> None:
        self._place, self._policy = path, policy
        self._lock = threading.Lock()
        self._content: bytes | None = None
        self._settled: tuple[int, ...] | None = None
        self._verifiers: dict[str, str] = {}
        self._secret = b""

    def follow(self, policy: Policy) -> None:
        """Follow another version of the policy, whose analysts may log in from then on."""
        self._policy = policy

    def names(self) -> tuple[str, ...]:
        """Return every name that may have a login."""
        return (*self._policy.analysts, OWNER)

    def add(self, name: str, password: str, existing: bool = False) -> None:
        """Give `name` a password, or a new one; with `existing`, only if `name` has a login, which is enabled. Raises user_name,
        user_password, user_unknown, user_file."""
        if name not in self.names():
            raise refuse("user_name", name=name, known=", ".join(self.names()))
        if len(password) < LEAST_PASSWORD:
            raise refuse("user_password", least=LEAST_PASSWORD)
        text = make_verifier(password).text()
        with self._changing():
            if existing:
                self._check_known(name)
            self._write({**self._verifiers, name: text})

    def states(self) -> dict[str, str]:
        """Return the state of every name that may have a login or has one: active, disabled, none, or `not in the policy`."""
        with self._lock:
            self._read()
            verifiers = dict(self._verifiers)
        words = dict.fromkeys(self.names(), "none")
        for name, text in verifiers.items():
            disabled = "disabled" if text.startswith(_DISABLED) else "active"
            words[name] = disabled if name in words else "not in the policy"
        return dict(sorted(words.items()))

    def remove(self, name: str) -> None:
        """Remove the login of `name`. Raises user_unknown, user_file."""
        self._change(name, lambda text: None)

    def disable(self, name: str) -> None:
        """Disable the login of `name`, and keep its password for `enable`. Raises user_unknown, user_file."""
        self._change(name, lambda text: _DISABLED + text.removeprefix(_DISABLED))

    def enable(self, name: str) -> None:
        """Enable the disabled login of `name`. Raises user_unknown, user_file."""
        self._change(name, lambda text: text.removeprefix(_DISABLED))

    def may_stay(self, name: str) -> bool:
        """Return whether a connection that has logged in as `name` may continue. Raises user_file."""
        with self._lock:
            self._read()
            text = self._verifiers.get(name)
        return text is not None and not text.startswith(_DISABLED)

    def check_known(self, name: str) -> None:
        """Check that `name` has a login, which may be disabled. Raises user_unknown, user_file."""
        with self._lock:
            self._read()
            self._check_known(name)

    def _check_known(self, name: str) -> None:
        if name not in self._verifiers:
            raise refuse("user_unknown", name=name, known=", ".join(sorted(self._verifiers)) or "none")

    def _change(self, name: str, change: Callable[[str], str | None]) -> None:
        with self._changing():
            self._check_known(name)
            text = change(self._verifiers[name])
            unchanged = {other: verifier for other, verifier in self._verifiers.items() if other != name}
            self._write(unchanged if text is None else {**unchanged, name: text})

    def verifier(self, name: str) -> tuple[Verifier, bool]:
        """Return the verifier for a login as `name` (a mock one if there is no enabled login), and whether a login can succeed.
        Raises user_file."""
        with self._lock:
            self._read()
            text = self._verifiers.get(name) if name in self.names() else None
            if text is None or text.startswith(_DISABLED):
                return mock_verifier(self._secret, name), False
        try:
            return Verifier.read(text), True
        except ValueError:
            raise refuse("user_file", place=str(self._place), problem="a verifier is damaged") from None

    def prepare(self) -> None:
        """Create the file if there is none: without its secret, which makes the salts of mock verifiers, two tries would reveal
        who has a login."""
        with self._lock:
            self._read()
            if self._secret:
                return
        with self._changing():
            if not self._secret:
                self._write({})

    def __len__(self) -> int:
        with self._lock:
            self._read()
            return len([name for name in self._verifiers if name in self.names()])

    def back_up(self, folder: Path) -> int:
        """Copy the file to `folder`, where only this user can read it, and return the number of logins. Raises user_file."""
        with self._lock:
            self._read()
            if self._content is None:
                return 0
            try:
                write_private(folder / self._place.name, self._content)
            except OSError as error:
                raise self._failed(error.strerror) from None
            return len(self._verifiers)

    def restore(self, folder: Path) -> list[str]:
        """Restore the logins in `folder` if this machine has none, and return their names. All of them are disabled, because
        nobody knows which of them were disabled after the backup. Raises user_file."""
        old = Logins(folder / self._place.name, self._policy)
        old._read()
        if not old._verifiers or self.states_known():
            return []
        with self._changing():
            self._secret = old._secret
            self._write({name: _DISABLED + text.removeprefix(_DISABLED) for name, text in old._verifiers.items()})
        return sorted(old._verifiers)

    def states_known(self) -> bool:
        """Return whether this machine has a file of logins, be it one without any."""
        with self._lock:
            self._read()
            return self._content is not None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Read the file and let nobody else change it while the context is open. Raises user_file."""
        try:
            with locked(self._place.with_name(f"{self._place.name}.lock")), self._lock:
                self._read()
                yield
        except OSError as error:
            raise self._failed(error.strerror) from None

    def _read(self) -> None:
        try:
            if self._settled is not None and self._settled == _marks(os.stat(self._place)):
                return
            self._settled = None
            with self._place.open("rb") as file:
                opened, content = os.fstat(file.fileno()), file.read()
        except FileNotFoundError:
            self._content, self._settled, self._verifiers = None, None, {}
            return
        except OSError as error:
            raise self._failed(error.strerror) from None
        mode = opened.st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise self._failed("it is accessible to users other than its owner; chmod 600")
        if content == self._content:
            self._settle(opened)
            return
        try:
            facts = json.loads(content)
            self._verifiers, self._secret = dict(facts["logins"]), bytes.fromhex(facts["secret"])
        except (ValueError, KeyError, TypeError):
            raise self._failed("it cannot be read") from None
        self._content = content
        self._settle(opened)

    def _settle(self, opened: os.stat_result) -> None:
        """Note the marks of the file that was read, if its last change is old enough for them to show the next one."""
        if time.time_ns() - opened.st_ctime_ns > _SETTLED_NANOSECONDS:
            self._settled = _marks(opened)

    def _write(self, verifiers: dict[str, str]) -> None:
        """Replace the file under its lock. Raises OSError."""
        self._secret = self._secret or os.urandom(32)
        text = json.dumps({"secret": self._secret.hex(), "logins": verifiers}, indent=1, sort_keys=True)
        replace_private(self._place, f"{text}\n".encode())

    def _failed(self, problem: str | None) -> Exception:
        return refuse("user_file", place=str(self._place), problem=(problem or "it failed").lower())


def _marks(file: os.stat_result) -> tuple[int, ...]:
    return file.st_dev, file.st_ino, file.st_mode, file.st_size, file.st_ctime_ns


def analyst_of(user: str) -> str | None:
    """Return the analyst of a login; None for the owner, whose name no analyst of a policy has (`policy.check`)."""
    return None if user == OWNER else user


def open_logins(ledger: Ledger, policy: Policy) -> Logins:
    """Return the logins of the data set that `ledger` belongs to."""
    return Logins(ledger.witness.directory / "logins", policy)


# --- the login of one connection --------------------------------------------------------------------------------------
# Startup parameters, SCRAM, first settings. Bytes in, bytes out; no sockets.

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
