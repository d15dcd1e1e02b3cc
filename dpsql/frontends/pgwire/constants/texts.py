"""Functions and operators of texts, patterns and bytes."""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpsql.frontends.pgwire.constants import bounds, conversions
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.resolve import each, function
from dpsql.frontends.pgwire.constants.scalars import read_bytes
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said, sign_of
from dpsql.functions.values import MOST_TEXT

MOST_MATCHES = 1_000
MOST_FORM, MOST_REGULAR = 2_000, 10_000_000
"""Limits on the length of a regular expression, and on this times the length of the text."""
_QUOTED = re.compile(r"[a-z_][a-z0-9_$]*")


def _limited(size: int) -> int:
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
        size = _limited(int(width or 0))
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
    _limited(len(text) + text.count(old) * max(len(new) - len(old), 0))
    return text.replace(old, new)


function("repeat(text, int4) text")(lambda v, n: v * (_limited(len(v) * max(n, 0)) // max(len(v), 1)))
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


@function("overlay(text, text, int4, size int4?) text; overlay(bytea, bytea, int4, size int4?) bytea")
def _overlay(value: Any, new: Any, start: int, size: int | None = None) -> Any:
    if start <= 0:
        raise said("22011", "negative substring length not allowed")
    if start + (len(new) if size is None else size) >= t.WHOLE["int4"]:
        raise said("22003", "integer out of range")
    return value[: start - 1] + new + value[start - 1 + (len(new) if size is None else size) :]


function("position(bytea, bytea) int4")(lambda v, part: v.find(part) + 1)
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
    missing = (_limited(size) if fill else 0) - len(text)
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


# --- patterns ---------------------------------------------------------------------------------------------------------


def _like(text: str, pattern: str, escape: str = "\\", ignore_case: bool = False) -> bool:
    form, index = "", 0
    while index < len(pattern):
        sign = pattern[index]
        if escape and sign == escape:
            index += 1
            if index == len(pattern):
                if not _search(form + "(?s:.)", text, "", whole=True, prefix=True):
                    return False
                raise said("22025", "LIKE pattern must not end with escape character")
            form += re.escape(pattern[index])
        else:
            form += {"%": "(?s:.*)", "_": "(?s:.)"}.get(sign) or re.escape(sign)
        index += 1
    return _search(form, text, "i" if ignore_case else "", whole=True)


def _re2(form: str, options: str, text: str) -> str:
    """Return a form with its options: lines end for `.` with n and p, and for ^ and $ with n and w."""
    ends, edges = (bool(set(options) & set(signs)) for signs in ("np", "nw"))
    if ends and "[^" in form and "\n" in text:  # a set means no end of a line there
        raise Elsewhere
    prefix = "i" * ("i" in options) + "s" * (not ends) + "m" * edges
    return f"(?{prefix})" + form if prefix else form


def _search(form: str, text: str, options: str, whole: bool = False, prefix: bool = False) -> bool:
    form = f"^(?:{form})" + "$" * (not prefix) if whole else form
    return bool(_computed(pc.match_substring_regex, text, _re2(_posix(form, text), "s" + options, text)))


def _computed(compute: Any, text: str, form: str, **options: Any) -> Any:
    """Return what RE2 computes, in time that grows with the text alone. Raises 2201B for what is no regular expression."""
    bounds.step()
    try:
        return compute(pa.array([text]), pattern=form, **options)[0].as_py()
    except pa.ArrowInvalid as error:
        raise said("2201B", f"invalid regular expression: {_regular_problem(str(error))}") from None


def _regular_problem(words: str) -> str:
    if "missing )" in words or "missing closing )" in words or "unexpected )" in words:
        return "parentheses () not balanced"
    if "missing ]" in words or "missing closing ]" in words:
        return "brackets [] not balanced"
    if "character class range" in words:
        return "invalid character range"
    if "repetition" in words and "no argument" in words:
        return "quantifier operand invalid"
    if "repetition size" in words or "bad repetition" in words:
        return "invalid repetition count(s)"
    if "trailing \\" in words or "escape sequence" in words:
        return "invalid escape \\ sequence"
    raise Elsewhere


def _posix(form: str, text: str) -> str:
    """Return PostgreSQL's regular expression for RE2, unless it has what RE2 lacks, or is too long with its repetitions."""
    size = len(form) * len(text)
    for most in re.findall(r"[{,](\d+)\}", form[:MOST_FORM]):
        size *= max(int(most[:4]), 1)
    if len(form) > MOST_FORM or len(text) > t.MOST_CHARACTERS or size > MOST_REGULAR:
        raise Elsewhere
    if "\\" in form and text.isascii():  # RE2 knows the ASCII letters of words alone
        form = _EDGE.sub(lambda m: _EDGE_WORDS.get(m[0], m[0]), form)
    if re.search(r"\\[1-9]|\(\?[=!<]|\\[mMyYZ]|\[\[[:.=][<>]|\(\*", form) or form.startswith("***"):
        raise Elsewhere
    return form


_EDGE = re.compile(r"\\\\|\\[yYAZ]|\\m(?=\w|\\w)|(?:(?<=\w)|(?<=\\w[+*]))\\M")
_EDGE_WORDS = {"\\y": "\\b", "\\Y": "\\B", "\\m": "\\b", "\\M": "\\b", "\\Z": "\\z"}
"""Ends of words and of the text as RE2 writes them; \\m and \\M stand beside a letter of a word."""


for _operator, _ignore, _negated in (
    ("~~", False, False),
    ("!~~", False, True),
    ("~~*", True, False),
    ("!~~*", True, True),
):
    function(f"operator {_operator}(text, text) bool; operator {_operator}(name, text) bool".replace("operator ", ""))(
        lambda v, p, ignore=_ignore, negated=_negated: _like(v, p, ignore_case=ignore) != negated
    )
for _operator, _options, _negated in (("~", "", False), ("!~", "", True), ("~*", "i", False), ("!~*", "i", True)):
    function(f"{_operator}(text, text) bool; {_operator}(name, text) bool")(
        lambda v, p, options=_options, negated=_negated: _search(p, v, options) != negated
    )


def _escape(escape: str) -> str:
    if len(escape) > 1:
        raise said("22025", "invalid escape string", None, "Escape string must be empty or one character.")
    return escape


from dpsql.frontends.pgwire.constants.resolve import REGISTER, Signature  # noqa: E402

REGISTER["like ~~"] = [Signature("like ~~", ("text",) * 3, "bool", lambda v, p, e: _like(v, p, _escape(e)), least=3)]
REGISTER["like ~~*"] = [
    Signature("like ~~*", ("text",) * 3, "bool", lambda v, p, e: _like(v, p, _escape(e), ignore_case=True), least=3)
]
REGISTER["like similar"] = [
    Signature(
        "like similar",
        ("text",) * 3,
        "bool",
        lambda v, p, e="\\": _search(_similar(p, _escape(e)), v, "", whole=True),
        least=2,
    )
]


function("normalize(text, form text?) text")(lambda v, form="NFC": unicodedata.normalize(form, v))
function("is_normalized(text, form text?) bool")(lambda v, form="NFC": unicodedata.is_normalized(form, v))


@function("to_ascii(text) text")
def _to_ascii(text: str) -> str:
    raise said("0A000", "encoding conversion from UTF8 to ASCII not supported")


@function("pg_collation_for(any) text", typed=True, strict=False)
def _collation(context: t.Context, types: tuple[str, ...], value: Any) -> str | None:
    if types[0] not in t.TEXTS:
        raise said("42804", f"collations are not supported by type {t.sql_name(types[0])}")
    return None if types[0] == "unknown" else '"C"' if types[0] == "name" else '"default"'


@function("substring(text, text, text) text")
def _similar_part(text: str, pattern: str, escape: str) -> str | None:
    """Return the part of a text between the two signs of a pattern of SIMILAR TO."""
    pieces = pattern.split(f'{escape}"')
    if len(pieces) != 3:
        raise Elsewhere
    forms = [_similar(piece, _escape(escape)) for piece in pieces]
    matches = _matches(text, f"^(?:{forms[0]})({forms[1]})(?:{forms[2]})$", "")
    return matches[0][2][0] if matches else None


def _similar(pattern: str, escape: str) -> str:
    """Return the regular expression of SIMILAR TO."""
    form, index, in_set = "", 0, False
    while index < len(pattern):
        sign = pattern[index]
        if escape and sign == escape:
            index += 1
            following = pattern[index : index + 1]
            if following == '"' or (escape == "\\" and following.isalnum()):
                raise Elsewhere
            form += re.escape(following)
        elif in_set:
            in_set = sign != "]"
            form += sign
        else:
            in_set = sign == "["
            form += {"%": "(?s:.*)", "_": "(?s:.)", "(": "(?:", ".": r"\.", "^": r"\^", "$": r"\$", "\\": r"\\"}.get(
                sign, sign
            )
        index += 1
    return form


def _flags(flags: str, allowed: str = "gicnesptwxm") -> str:
    for sign in flags:
        if sign not in allowed:
            raise said("22023", f'invalid regular expression option: "{sign}"')
    if set(flags) & set("qxbec"):
        raise Elsewhere
    lines = [sign for sign in flags if sign in "nmspw"][-1:]
    return "i" * ("i" in flags) + "".join(lines).replace("m", "n").replace("s", "")


def _matches(
    text: str, form: str, options: str, most: int = 1, start: int = 0
) -> list[tuple[int, int, list[str | None]]]:
    """Return the start and end of matches, and their groups."""
    form = _posix(form, text)
    groups = re.compile(r"(?<!\\)\((?!\?)").findall(re.sub(r"\\.|\[[^\]]*\]", "", form))
    if "?P<" in form:
        raise Elsewhere
    counter = iter(range(1000))
    labelled = _GROUP.sub(lambda m: m[0] if m[1] is None else f"(?P<g{next(counter)}>", form) if groups else form
    whole = _re2(
        f"^(?P<before>(?s:.{{0,1000}}?))(?P<all>{labelled})"
        if start == 0
        else f"(?P<before>(?s:^.{{0,1000}}?))(?P<all>{labelled})",
        options,
        text,
    )
    gathered, position = list[tuple[int, int, list[str | None]]](), start
    while len(gathered) < most:
        rest = text[position:]
        if position and re.search(
            r"\^|\\b|\\B|\\<", re.sub(r"\\.|\[[^\]]*\]", lambda m: m[0] * (m[0] in _EDGES), form)
        ):
            raise Elsewhere
        match = _computed(pc.extract_regex, rest, whole) if len(rest) <= 1000 else _elsewhere()
        if match is None:
            break
        begin, size = position + len(match["before"]), len(match["all"])
        values: list[str | None] = [match[f"g{k}"] for k in range(len(groups))]
        gathered.append((begin, begin + size, values))
        position = begin + size + (size == 0)
        if position > len(text):
            break
        if len(gathered) >= MOST_MATCHES:
            raise Elsewhere
    return gathered


_EDGES = ("\\b", "\\B", "\\<")
_GROUP = re.compile(r"\\.|\[\^?\]?[^\]]*\]|(\((?!\?))", re.DOTALL)


def _elsewhere() -> Any:
    raise Elsewhere


@function("regexp_match(text, text, flags text?) _text")
def _regexp_match(text: str, form: str, flags: str = "") -> list[Any] | None:
    if "g" in flags:
        raise said(
            "22023",
            'regexp_match() does not support the "global" option',
            None,
            "Use the regexp_matches function instead.",
        )
    gathered = _matches(text, form, _flags(flags))
    return _groups(text, gathered[0]) if gathered else None


def _groups(text: str, match: tuple[int, int, list[str | None]]) -> list[Any]:
    return match[2] or [text[match[0] : match[1]]]


function("regexp_matches(text, text, flags text?) *_text")(
    lambda v, form, flags="": [
        _groups(v, match) for match in _matches(v, form, _flags(flags), MOST_MATCHES if "g" in flags else 1)
    ]
)
function("regexp_like(text, text, flags text?) bool")(lambda v, form, flags="": _search(form, v, _flags(flags)))


@function("regexp_count(text, text, start int4?, flags text?) int4")
def _regexp_count(text: str, form: str, start: int = 1, flags: str = "") -> int:
    if start < 1:
        raise said("22023", f'invalid value for parameter "start": {start}')
    options = _flags(flags)
    return 0 if start > len(text) + 1 else len(_matches(text[start - 1 :], form, options, MOST_MATCHES))


function("regexp_split_to_table(text, text, flags text?) *text")(lambda v, form, flags="": _split(v, form, flags))
function("regexp_split_to_array(text, text, flags text?) _text")(lambda v, form, flags="": _split(v, form, flags))
function("substring(text, text) text")(
    lambda v, form: next(((m[2] or [v[m[0] : m[1]]])[0] for m in _matches(v, form, "")), None)
)


@function("regexp_substr(text, text, start int4?, n int4?, flags text?, group int4?) text")
def _regexp_substr(
    text: str, form: str, start: int = 1, number: int = 1, flags: str = "", group: int = 0
) -> str | None:
    gathered = _matches(text[start - 1 :], form, _flags(flags), number)
    if len(gathered) < number:
        return None
    begin, end, groups = gathered[number - 1]
    return text[start - 1 :][begin:end] if group == 0 else groups[group - 1] if group <= len(groups) else None


@function("regexp_instr(text, text, start int4?, n int4?, end int4?) int4")
def _regexp_instr(text: str, form: str, start: int = 1, number: int = 1, end: int = 0) -> int:
    gathered = _matches(text[start - 1 :], form, "", number)
    if len(gathered) < number:
        return 0
    first, behind, _ = gathered[number - 1]
    return start + (behind if end else first)


def _split(text: str, form: str, flags: str) -> list[str]:
    parts, position = list[str](), 0
    for begin, end, _ in _matches(text, form, _flags(flags), MOST_MATCHES):
        if end > begin or 0 < begin < len(text):
            parts.append(text[position:begin])
            position = end
    return [*parts, text[position:]]


@function(
    "regexp_replace(text, text, text, flags text?) text; regexp_replace(text, text, text, start int4, n int4?, flags text?) text"
)
def _regexp_replace(text: str, form: str, new: str, *rest: Any) -> str:
    flags = next((item for item in rest if isinstance(item, str)), "")
    numbers = [item for item in rest if isinstance(item, int)]
    if numbers:
        raise Elsewhere
    pieces, position = list[str](), 0
    for begin, end, groups in _matches(text, form, _flags(flags), MOST_MATCHES if "g" in flags else 1):
        pieces += [text[position:begin], _filled(new, text[begin:end], groups)]
        position = end
    result = "".join([*pieces, text[position:]])
    _limited(len(result))
    return result


def _filled(new: str, whole: str, groups: list[str | None]) -> str:
    def sign(match: re.Match[str]) -> str:
        if match[1] == "&":
            return whole
        if match[1].isdigit():
            number = int(match[1])
            return (groups[number - 1] or "") if 0 < number <= len(groups) else ""
        return "\\" if match[1] == "\\" else match[0]

    return re.sub(r"\\(.)", sign, new, flags=re.DOTALL)
