"""SCRAM-SHA-256 and SCRAM-SHA-256-PLUS for a server that stores verifiers, never passwords.

Sources: RFC 5802 (SCRAM), RFC 7677 (SHA-256), RFC 5929 section 4 (tls-server-end-point), and PostgreSQL 16's usage: the user name
is that of the startup packet, while that of the SCRAM exchange is ignored.

The package scramp (1.5) is not used: its server refuses an empty user name, which libpq and everything built on it send
("n=,r=..."), and it refuses passwords that SASLprep forbids, which PostgreSQL accepts unchanged.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import stringprep
import unicodedata
from dataclasses import dataclass

from dpsql.errors.exceptions import refuse

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
