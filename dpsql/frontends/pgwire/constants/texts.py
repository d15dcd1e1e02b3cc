"""Functions and operators of texts, patterns and bytes."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from typing import Any

from dpsql.frontends.pgwire.constants import conversions
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.resolve import each, function
from dpsql.frontends.pgwire.constants.scalars import read_bytes
from dpsql.frontends.pgwire.constants.tokens import said, sign_of
from dpsql.functions.values import MOST_TEXT

_QUOTED = re.compile(r"[a-z_][a-z0-9_$]*")


def limited_length(size: int) -> int:
    """Return a length that a text may have. Raises 54000 for more."""
    if size > MOST_TEXT:
        raise said("54000", "requested length too large")
    return max(size, 0)


# --- joining ----------------------------------------------------------------------------------------------------------

function("||(text, text) text")(lambda a, b: a + b)
function("||(bytea, bytea) bytea")(lambda a, b: a + b)


@function("||(anynonarray, text) text; ||(text, anynonarray) text", typed=True)
def _joined(context: t.Context, types: tuple[str, ...], a: Any, b: Any) -> str | None:
    return (
        None
        if a is None or b is None
        else conversions.converter(types[0], "text", context)(a) + conversions.converter(types[1], "text", context)(b)
    )


def _as_written(context: t.Context, value: Any, type_: str) -> str:
    return t.write(value, type_, context)


@function("concat(*any) text", typed=True)
def _concat(context: t.Context, types: tuple[str, ...], *values: Any) -> str:
    return "".join(_as_written(context, v, type_) for v, type_ in zip(values, types, strict=True) if v is not None)


@function("concat_ws(text, *any) text", typed=True)
def _concat_ws(context: t.Context, types: tuple[str, ...], between: str | None, *values: Any) -> str | None:
    texts = [_as_written(context, v, type_) for v, type_ in zip(values, types[1:], strict=True) if v is not None]
    return None if between is None else between.join(texts)


_FORMAT = re.compile(r"%(?:(%)|(?:(\d+)\$)?(-?)(?:(\d+)|\*(?:(\d+)\$)?)?(.?))", re.DOTALL)
_STAR = re.compile(r"\*")


@function("format(text, *any) text; format(text) text", typed=True)
def _format(context: t.Context, types: tuple[str, ...], pattern: str | None, *values: Any) -> str | None:
    if pattern is None:
        return None
    written_out = [
        None if v is None else _as_written(context, v, type_) for v, type_ in zip(values, types[1:], strict=True)
    ]
    following = 0

    def argument(number: str | None) -> str | None:
        nonlocal following
        following = int(number) if number else following + 1
        if number == "0":
            raise said("22023", "format specifies argument 0, but arguments are numbered from 1")
        if following > len(written_out):
            raise said("22023", "too few arguments for format()")
        return written_out[following - 1]

    def filled(match: re.Match[str]) -> str:
        percent, number, minus, width, width_number, kind = match.groups()
        if percent:
            return "%"
        left = bool(minus)
        if _STAR.search(match[0]):
            supplied = argument(width_number) or "0"
            left, width = left or supplied.startswith("-"), supplied.lstrip("-")
        if kind == "":
            raise said("22023", "unterminated format() type specifier", None, 'For a single "%" use "%%".')
        if kind not in "sIL":
            raise said("22023", f'unrecognized format() type specifier "{kind}"', None, 'For a single "%" use "%%".')
        value = argument(number)
        if kind == "I" and value is None:
            raise said("22004", "null values cannot be formatted as an SQL identifier")
        text = ("NULL" if kind == "L" else "") if value is None else _QUOTING[kind](value)
        size = limited_length(int(width or 0))
        return text.ljust(size) if left else text.rjust(size)

    return _FORMAT.sub(filled, pattern)


@function("quote_ident(text) text")
def quote_ident(text: str) -> str:
    """Return a name with quotes if it needs them."""
    return text if _QUOTED.fullmatch(text) and text not in _keywords() else '"' + text.replace('"', '""') + '"'


def _keywords() -> set[str]:
    from dpsql.frontends.pgwire.catalog.shape import keywords

    return {row[0] for row in keywords() if row[1] != "U"}


@function("quote_literal(text) text")
def quote_literal(text: str) -> str:
    """Return a text as a literal."""
    quoted = "'" + text.replace("'", "''").replace("\\", "\\\\") + "'"
    return f"E{quoted}" if "\\" in text else quoted


@function("quote_literal(anyelement) text; quote_nullable(anyelement) text", typed=True)
def _quote_any(context: t.Context, types: tuple[str, ...], value: Any) -> str | None:
    return "NULL" if value is None else quote_literal(conversions.converter(types[0], "text", context)(value))


_QUOTING: dict[str, Callable[[str], str]] = {"s": str, "I": quote_ident, "L": quote_literal}
function("quote_nullable(text) text", strict=False)(lambda v: "NULL" if v is None else quote_literal(v))

# --- parts ------------------------------------------------------------------------------------------------------------

each("length char_length character_length", ("text",), "({}) int4", len)
each("length char_length character_length", ("bpchar",), "({}) int4", lambda v: len(v.rstrip(" ")))
function("octet_length(text) int4; octet_length(bpchar) int4")(lambda v: len(v.encode()))
function("bit_length(text) int4")(lambda v: 8 * len(v.encode()))
function("octet_length(bytea) int4; length(bytea) int4")(len)
function("bit_length(bytea) int4")(lambda v: 8 * len(v))
function("lower(text) text")(str.lower)
function("upper(text) text")(
    lambda v: v.upper() if v.isascii() else "".join(c.upper() if len(c.upper()) == 1 else c for c in v)
)
function("initcap(text) text")(lambda v: re.sub(r"[^\W_]+", lambda m: m[0][0].upper() + m[0][1:].lower(), v))
function("reverse(text) text")(lambda v: v[::-1])
function("left(text, int4) text")(lambda v, n: v[:n])
function("right(text, int4) text")(lambda v, n: v[-n:] if n > 0 else v[-n:] if n < 0 else "")


def _replaced(text: str, old: str, new: str) -> str:
    if not old:
        return text
    limited_length(len(text) + text.count(old) * max(len(new) - len(old), 0))
    return text.replace(old, new)


function("repeat(text, int4) text")(lambda v, n: v * (limited_length(len(v) * max(n, 0)) // max(len(v), 1)))
function("replace(text, text, text) text")(_replaced)
function("translate(text, text, text) text")(
    lambda v, old, new: v.translate(
        {ord(sign): new[k] if k < len(new) else None for k, sign in reversed(list(enumerate(old)))}
    )
)
function("strpos(text, text) int4; position(text, text) int4")(lambda v, part: v.find(part) + 1)
function("starts_with(text, text) bool; ^@(text, text) bool")(str.startswith)
function("ascii(text) int4")(lambda v: ord(v[0]) if v else 0)
function("md5(text) text")(lambda v: hashlib.md5(v.encode(), usedforsecurity=False).hexdigest())
function("md5(bytea) text")(lambda v: hashlib.md5(v, usedforsecurity=False).hexdigest())
for _name in ("sha224", "sha256", "sha384", "sha512"):
    function(f"{_name}(bytea) bytea")(lambda v, name=_name: hashlib.new(name, v).digest())
function("to_hex(int4) text")(lambda v: f"{v % (1 << 32):x}")
function("to_hex(int8) text")(lambda v: f"{v % (1 << 64):x}")


function("pg_client_encoding() name; getdatabaseencoding() name")(lambda: "UTF8")


@function("chr(int4) text")
def _chr(code: int) -> str:
    if code == 0:
        raise said("54000", "null character not permitted")
    if code < 0:
        raise said("22023", "character number must be positive")
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise said(
            "54000",
            f"requested character not valid for encoding: {code}"
            if code <= 0x10FFFF
            else f"requested character too large for encoding: {code}",
        )
    return chr(code)


@function(
    "substr(text, int4) text; substring(text, int4) text; substr(bytea, int4) bytea; substring(bytea, int4) bytea; "
    "substring(bit, int4) bit"
)
def _from(value: Any, start: int) -> Any:
    return value[max(start - 1, 0) :]


@function(
    "substr(text, int4, int4) text; substring(text, int4, int4) text; substr(bytea, int4, int4) bytea; "
    "substring(bytea, int4, int4) bytea; substring(bit, int4, int4) bit"
)
def _between(value: Any, start: int, size: int) -> Any:
    if size < 0:
        raise said("22011", "negative substring length not allowed")
    return value[max(start - 1, 0) : max(start - 1 + size, 0)]


@function(
    "overlay(text, text, int4, size int4?) text; overlay(bytea, bytea, int4, size int4?) bytea; "
    "overlay(bit, bit, int4, size int4?) bit"
)
def _overlay(value: Any, new: Any, start: int, size: int | None = None) -> Any:
    if start <= 0:
        raise said("22011", "negative substring length not allowed")
    if start + (len(new) if size is None else size) >= t.WHOLE["int4"]:
        raise said("22003", "integer out of range")
    return value[: start - 1] + new + value[start - 1 + (len(new) if size is None else size) :]


function("position(bytea, bytea) int4; position(bit, bit) int4")(lambda v, part: v.find(part) + 1)
for _name, _strip in (("btrim", "strip"), ("ltrim", "lstrip"), ("rtrim", "rstrip")):
    function(f"{_name}(text) text")(lambda v, strip=_strip: getattr(v, strip)(" "))
    function(f"{_name}(text, text) text; {_name}(bytea, bytea) bytea")(
        lambda v, signs, strip=_strip: getattr(v, strip)(signs) if signs else v
    )


@function("lpad(text, int4, fill text?) text")
def _lpad(text: str, size: int, fill: str = " ") -> str:
    return _padding(text, size, fill) + text[: max(size, 0)]


@function("rpad(text, int4, fill text?) text")
def _rpad(text: str, size: int, fill: str = " ") -> str:
    return text[: max(size, 0)] + _padding(text, size, fill)


def _padding(text: str, size: int, fill: str) -> str:
    missing = (limited_length(size) if fill else 0) - len(text)
    return (fill * missing)[:missing] if missing > 0 else ""


@function("split_part(text, text, int4) text")
def _split_part(text: str, between: str, number: int) -> str:
    if number == 0:
        raise said("22023", "field position must not be zero")
    parts = text.split(between) if between else [text]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


@function("string_to_array(text, text, empty text?) _text", strict=False)
def string_to_array(text: str | None, between: str | None, empty: str | None = None) -> list[str | None] | None:
    """Return the parts of a text."""
    if text is None:
        return None
    parts = list(text) if between is None else [] if not text else text.split(between) if between else [text]
    return [None if part == empty else part for part in parts]


function("string_to_table(text, text, empty text?) *text", strict=False)(
    lambda *arguments: string_to_array(*arguments) or []
)


@function("parse_ident(text, strict bool?) _text")
def _parse_ident(text: str, strict: bool = True) -> list[str]:
    wrong = said("22023", f'string is not a valid identifier: "{text}"')
    names, rest = list[str](), text.strip()
    while True:
        match = re.match(r'\s*(?:"((?:[^"]|"")+)"|([A-Za-z_\u0080-\uffff][\w$]*))\s*', rest)
        if match is None:
            raise wrong
        names.append(match[1].replace('""', '"') if match[1] else match[2].lower())
        rest = rest[match.end() :]
        if not rest.startswith("."):
            break
        rest = rest[1:]
    if rest and strict:
        raise wrong
    return names


# --- bytes ------------------------------------------------------------------------------------------------------------


def _decoded(data: bytes, encoding: str) -> str:
    name = _ENCODINGS.get(re.sub("[^a-z0-9]", "", encoding.lower()))
    if name is None:
        raise said("22023", f'invalid source encoding name "{encoding}"')
    try:
        return data.decode(name)
    except ValueError:
        raise said("22021", f'invalid byte sequence for encoding "UTF8": 0x{data[:1].hex()}') from None


_ENCODINGS = {"utf8": "utf-8", "latin1": "latin-1", "iso88591": "latin-1", "sqlascii": "utf-8", "win1252": "cp1252"}


@function("unistr(text) text")
def _unescaped(text: str) -> str:
    form = r"\\(?:\\|([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|)"

    def sign(match: re.Match[str]) -> str:
        digits = next(filter(None, match.groups()), "")
        if not digits and match[0] == "\\":
            hint = "Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX."
            raise said("42601", "invalid Unicode escape", None, hint)
        return sign_of(int(digits, 16)) if digits else "\\"

    return re.sub(form, sign, text)


function("convert_from(bytea, name) text")(_decoded)
function("convert_to(text, name) bytea")(lambda v, encoding: v.encode(_encoding(encoding)))


def _encoding(encoding: str) -> str:
    name = _ENCODINGS.get(re.sub("[^a-z0-9]", "", encoding.lower()))
    if name is None:
        raise said("22023", f'invalid destination encoding name "{encoding}"')
    return name


@function("encode(bytea, text) text")
def _encode(data: bytes, form: str) -> str:
    if form == "hex":
        return data.hex()
    if form == "base64":
        text = base64.b64encode(data).decode()
        return "\n".join(text[k : k + 76] for k in range(0, len(text), 76))
    if form == "escape":
        return "".join(
            "\\\\" if byte == 92 else f"\\{byte:03o}" if byte == 0 or byte > 127 else chr(byte) for byte in data
        )
    raise said("22023", f'unrecognized encoding: "{form}"')


@function("decode(text, text) bytea")
def _decode(text: str, form: str) -> bytes:
    if form == "hex":
        digits = re.sub(r"\s", "", text)
        wrong = re.search("[^0-9a-fA-F]", digits)
        if wrong:
            raise said("22023", f'invalid hexadecimal digit: "{wrong[0]}"')
        if len(digits) % 2:
            raise said("22023", "invalid hexadecimal data: odd number of digits")
        return bytes.fromhex(digits)
    if form == "base64":
        digits = re.sub(r"\s", "", text)
        wrong = re.search("[^A-Za-z0-9+/=]", digits)
        if wrong:
            raise said("22023", f'invalid symbol "{wrong[0]}" found while decoding base64 sequence')
        try:
            return base64.b64decode(digits, validate=True)
        except ValueError:
            raise said(
                "22023",
                "invalid base64 end sequence",
                None,
                "Input data is missing padding, is truncated, or is otherwise corrupted.",
            ) from None
    if form == "escape":
        return bytes(read_bytes(text))
    raise said("22023", f'unrecognized encoding: "{form}"')


@function("get_byte(bytea, int4) int4")
def _get_byte(data: bytes, index: int) -> int:
    if not 0 <= index < len(data):
        raise said("2202E", f"index {index} out of valid range, 0..{len(data) - 1}")
    return data[index]
