"""Authentication: each entry is bound to all entries before it by HMAC-SHA256 (RFC 2104) under the ledger's key.

    digest[0] = 64 zeros;  digest[n] = hex(HMAC(key, "dpsql entry\\n" + digest[n-1] + "\\n" + body[n]))

The first word of each authenticated text keeps entries, accounts, heads and releases apart.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from dpsql.ledger.words import canonical

START = "0" * 64


def mac(key: bytes, use: str, *parts: bytes) -> str:
    """HMAC-SHA256 of `use` and the length-prefixed `parts`, in hexadecimal."""
    text = use.encode() + b"".join(b"\n%d:" % len(part) + part for part in parts)
    return hmac.digest(key, text, "sha256").hex()


def same(left: str, right: object) -> bool:
    """Equality of two digests in constant time; anything that is not a text differs."""
    return isinstance(right, str) and hmac.compare_digest(left.encode(), right.encode("utf-8", "replace"))


def linked(key: bytes, previous: str, body: str) -> str:
    """The digest of the entry `body` that follows an entry with digest `previous`."""
    return hmac.digest(key, f"dpsql entry\n{previous}\n{body}".encode(), "sha256").hex()


def account_mac(key: bytes, ledger_id: str, facts: Mapping[str, Any]) -> str:
    """Authenticates one row of running totals."""
    return mac(key, "dpsql account", ledger_id.encode(), canonical(facts).encode())


def key_mark(key: bytes, ledger_id: str) -> str:
    """Names the key without revealing it, so that a wrong key is told from an edited ledger."""
    return mac(key, "dpsql key", ledger_id.encode())[:32]
