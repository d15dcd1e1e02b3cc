"""Single values read from texts as PostgreSQL's input functions read them; what depends on the connection is in `types`."""

from __future__ import annotations

import ipaddress
import json
import math
import re
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from numpy import float32

from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said
from dpsql.storage.records import dataclass

MOST_DIGITS = 1000
"""Limit on the digits of a number, on either side of its point: what is longer is not computed here."""


@dataclass(frozen=True)
class Json:
    """A jsonb value: None, bool, Decimal, str, list or dict."""

    value: Any


class Outside(Exception):
    """A number outside of its type."""


class BadJson(Exception):
    pass


class BadBits(Exception):
    pass


_WHOLE_FORM = re.compile(r"\s*([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]([0-7]+)|0[bB]([01]+)|(\d+(?:_\d+)*))\s*")


def _whole(bits: int, low: int | None = None) -> Callable[[str], int]:
    def read_whole(text: str) -> int:
        match = _WHOLE_FORM.fullmatch(text)
        if match is None:
            raise ValueError(text)
        digits, base = next((match[k], b) for k, b in ((2, 16), (3, 8), (4, 2), (5, 10)) if match[k])
        if len(digits) > 100:
            raise Outside
        number = int(digits, base) * (-1 if match[1] == "-" else 1)
        if not (-(1 << bits - 1) if low is None else low) <= number < (1 << bits - (low is None)):
            raise Outside
        return number

    return read_whole


_FLOAT_FORM = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*")
_SPECIAL = {"nan": math.nan, "infinity": math.inf, "inf": math.inf, "+infinity": math.inf, "-infinity": -math.inf,
            "-inf": -math.inf, "+inf": math.inf}  # fmt: skip


def _read_float(text: str) -> float:
    special = _SPECIAL.get(text.strip().lower())
    if special is not None:
        return special
    if not _FLOAT_FORM.fullmatch(text):
        raise ValueError(text)
    value = float(text)
    if math.isinf(value) or (value == 0 and re.search(r"[1-9]", re.split("[eE]", text)[0])):
        raise OutsideFloat(text.strip())
    return value


class OutsideFloat(Outside):
    pass


def read_numeric(text: str) -> Decimal:
    """Return a number with the digits that its text has."""
    special = _SPECIAL.get(text.strip().lower())
    if special is not None:
        return Decimal(str(special))
    if not _FLOAT_FORM.fullmatch(text.replace("_", "")):
        raise ValueError(text)
    value = Decimal(text.replace("_", "").strip())
    if abs(value.adjusted()) > MOST_DIGITS or len(value.as_tuple().digits) > MOST_DIGITS:
        raise Elsewhere
    exponent = value.as_tuple().exponent
    return Decimal(int(value)) if isinstance(exponent, int) and exponent > 0 else value


_TRUTH = {**dict.fromkeys(("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"), True),
          **dict.fromkeys(("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"), False)}  # fmt: skip


def _read_bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUTH:
        raise ValueError(text)
    return _TRUTH[word]


def read_bytes(text: str) -> bytes:
    if text.startswith("\\x"):
        digits = re.sub(r"\s", "", text[2:])
        wrong = re.search(r"[^0-9a-fA-F]", digits)
        if wrong:
            raise said("22023", f'invalid hexadecimal digit: "{wrong[0]}"')
        if len(digits) % 2:
            raise said("22023", "invalid hexadecimal data: odd number of digits")
        return bytes.fromhex(digits)
    pieces, rest = bytearray(), text.encode()
    position = 0
    while position < len(rest):
        match = re.compile(rb"\\(\\|[0-3][0-7]{2})|[^\\]+").match(rest, position)
        if match is None:
            raise ValueError(text)
        pieces += match[0] if match[1] is None else b"\\" if match[1] == b"\\" else bytes([int(match[1], 8)])
        position = match.end()
    return bytes(pieces)


def read_json(text: str, is_text: bool = False) -> Any:
    """Return the value of a JSON text, numbers as decimals. `is_text`: it is kept as it is written, with escapes of zero, too."""

    def refused(word: str) -> Any:
        raise ValueError(word)

    escapes = list(filter(None, _JSON_ESCAPES.findall(text)))
    if set(escapes) - {"u0000"}:
        raise Elsewhere
    if escapes and not is_text:
        raise said("22P05", "unsupported Unicode escape sequence")
    try:
        return json.loads(text, parse_float=read_numeric, parse_int=read_numeric, parse_constant=refused)
    except (ValueError, RecursionError) as error:
        raise BadJson from error


_JSON_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u(?:[dD][89a-fA-F]|0000))|.)", re.DOTALL
)
"""Escapes; those of no character, half of a pair or zero, are captured."""


def _read_json_text(text: str) -> str:
    read_json(text, is_text=True)
    return text


def _read_uuid(text: str) -> str:
    if not re.fullmatch(r"\{?[0-9a-fA-F]{4}(?:-?[0-9a-fA-F]{4}){7}\}?", text):
        raise ValueError(text)
    return str(uuid.UUID(re.sub("[{}-]", "", text)))


def _read_inet(text: str) -> Any:
    return _read_address(text) if "/" in text else ipaddress.ip_interface(text.strip())


def _read_address(text: str) -> Any:
    """Return an address whose last octets may be missing."""
    address, _, size = text.strip().partition("/")
    if ":" not in address:
        octets = [part for part in address.split(".") if part]
        if not all(part.isdigit() for part in octets) or len(octets) > 4 or not octets:
            raise ValueError(text)
        size = size or str(8 * len(octets))
        address = ".".join(octets + ["0"] * (4 - len(octets)))
    return ipaddress.ip_interface(f"{address}/{size}" if size else address)


def _read_cidr(text: str) -> Any:
    interface = _read_address(text)
    if interface.ip != interface.network.network_address:
        raise said("22P02", f'invalid cidr value: "{text}"')
    return interface


def _read_mac(size: int) -> Callable[[str], str]:
    def read_mac(text: str) -> str:
        digits = re.sub(r"[:.\- ]", "", text.strip()).lower()
        if not re.fullmatch(r"[0-9a-f]+", digits) or len(digits) not in (12, 2 * size):
            raise ValueError(text)
        if len(digits) < 2 * size:
            digits = digits[:6] + "fffe" + digits[6:]
        return ":".join(digits[k : k + 2] for k in range(0, 2 * size, 2))

    return read_mac


def read_bits(text: str) -> str:
    """Return the digits of a bit string, which may be written in hexadecimal."""
    kind, digits = (text[0].lower(), text[1:]) if text[:1].lower() in ("b", "x") else ("b", text)
    wrong = re.search(r"[^01]" if kind == "b" else r"[^0-9a-fA-F]", digits)
    if wrong:
        raise BadBits(f'"{wrong[0]}" is not a valid {"binary" if kind == "b" else "hexadecimal"} digit')
    return digits if kind == "b" else "".join(f"{int(digit, 16):04b}" for digit in digits)


def _read_lsn(text: str) -> str:
    match = re.fullmatch(r"([0-9a-fA-F]{1,8})/([0-9a-fA-F]{1,8})", text)
    if match is None:
        raise ValueError(text)
    return "/".join(f"{int(part, 16):X}" for part in match.groups())


def _read_tid(text: str) -> str:
    match = re.fullmatch(r"\s*\((\d{1,10}),(\d{1,5})\)", text)
    if match is None or int(match[1]) >= 1 << 32 or int(match[2]) >= 1 << 16:
        raise ValueError(text)
    return f"({int(match[1])},{int(match[2])})"


def _read_snapshot(text: str) -> str:
    match = re.fullmatch(r"(\d{1,18}):(\d{1,18}):((?:\d{1,18}(?:,\d{1,18})*)?)", text)
    low, high, *listed = (
        (0, -1) if match is None else (int(match[1]), int(match[2]), *map(int, filter(None, match[3].split(","))))
    )
    if not 0 < low <= high or any(not low <= number < high for number in listed) or listed != sorted(listed):
        raise ValueError(text)
    return f"{low}:{high}:{','.join(map(str, dict.fromkeys(listed)))}"


READERS: dict[str, Callable[[str], Any]] = {
    "int2": _whole(16), "int4": _whole(32), "int8": _whole(64),
    "oid": lambda text: _whole(32, -(1 << 31))(text) % (1 << 32), "xid": _whole(32, 0),
    "float8": _read_float,
    "float4": lambda text: single(_read_float(text)), "numeric": read_numeric, "bool": _read_bool, "bytea": read_bytes,
    "json": _read_json_text, "jsonb": lambda text: Json(read_json(text)), "uuid": _read_uuid, "inet": _read_inet,
    "pg_lsn": _read_lsn, "pg_snapshot": _read_snapshot, "txid_snapshot": _read_snapshot,
    "xid8": _whole(64, 0), "cid": _whole(32, 0), "tid": _read_tid,
    "cidr": _read_cidr, "macaddr": _read_mac(6), "macaddr8": _read_mac(8), "bit": read_bits, "varbit": read_bits,
}  # fmt: skip


def single(value: float) -> float:
    """Return a number rounded to single precision."""
    if math.isfinite(value) and math.isinf(float(float32(value))):
        raise Outside
    return float(float32(value))
