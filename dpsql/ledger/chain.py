"""Authentication: HMAC-SHA256 (RFC 2104) under the ledger's key binds each entry to all entries before it.

    digest[0] = 64 zeros;  digest[n] = hex(HMAC(key, "dpsql entry\\n" + digest[n-1] + "\\n" + body[n]))

The first words of each authenticated text separate entries, accounts, heads and releases.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dpsql.ledger.records import canonical

if TYPE_CHECKING:
    from hashlib import _Hash as HASH

START = "0" * 64
_BLOCK = 64  # block size of SHA-256 in bytes
_INNER, _OUTER = (bytes(byte ^ padding for byte in range(256)) for padding in (0x36, 0x5C))


def mac(key: bytes, use: str, *parts: bytes) -> str:
    """Return HMAC-SHA256 of `use` and the length-prefixed `parts`, in hexadecimal."""
    return _authenticated(key, use.encode() + b"".join([b"\n%d:%b" % (len(part), part) for part in parts]))


def same(left: str, right: object) -> bool:
    """Compare two digests in constant time; a value that is not a text is unequal."""
    return isinstance(right, str) and hmac.compare_digest(left.encode(), right.encode("utf-8", "replace"))


def linked(key: bytes, previous: str, body: str) -> str:
    """Return the digest of the entry `body` that follows an entry with digest `previous`."""
    return _authenticated(key, f"dpsql entry\n{previous}\n{body}".encode())


def account_mac(key: bytes, ledger_id: str, facts: Mapping[str, Any]) -> str:
    """Return the MAC of one row of running totals."""
    return mac(key, "dpsql account", ledger_id.encode(), canonical(facts).encode())


@lru_cache(maxsize=16)
def _keyed(key: bytes) -> tuple[HASH, HASH]:
    """Return SHA-256 states after the inner and the outer padded key; hmac would look up the algorithm for every
    text."""
    block = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    return hashlib.sha256(block.translate(_INNER)), hashlib.sha256(block.translate(_OUTER))


def _authenticated(key: bytes, text: bytes) -> str:
    """Return hex(SHA-256(outer + SHA-256(inner + text))): HMAC-SHA256 of RFC 2104, section 2."""
    begun, ended = (state.copy() for state in _keyed(key))
    begun.update(text)
    ended.update(begun.digest())
    return ended.hexdigest()


def key_mark(key: bytes, ledger_id: str) -> str:
    """Return an identifier of the key that does not reveal it, by which a wrong key is distinguished from an edited
    ledger."""
    return mac(key, "dpsql key", ledger_id.encode())[:32]
