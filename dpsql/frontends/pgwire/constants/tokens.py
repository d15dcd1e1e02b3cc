"""PostgreSQL's tokens, and the errors that stand in its own words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpsql.errors.exceptions import Error, refuse

NO_FUNCTION = "No function matches the given name and argument types. You might need to add explicit type casts."


RESERVED = {
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "both", "case", "cast", "check", "collate",
    "column", "constraint", "create", "default", "deferrable", "desc", "distinct", "do", "else", "end", "except", "false",
    "fetch", "for", "foreign", "from", "grant", "group", "having", "in", "initially", "intersect", "into", "lateral",
    "leading", "limit", "not", "null", "offset", "on", "only", "or", "order", "placing", "primary", "references",
    "returning", "select", "some", "symmetric", "table", "then", "to", "trailing", "true", "union", "unique", "user",
    "using", "variadic", "when", "where", "window", "with",
}  # fmt: skip
NO_BARE_LABEL = {
    "array", "as", "char", "character", "create", "day", "except", "fetch", "filter", "for", "from", "grant", "group", "having",
    "hour", "intersect", "into", "isnull", "limit", "minute", "month", "notnull", "offset", "on", "order", "over", "overlaps",
    "precision", "returning", "second", "to", "union", "varying", "where", "window", "with", "within", "without", "year",
}  # fmt: skip
CLAUSES = {"from", "where", "union", "intersect", "except", "order", "group", "having", "limit", "offset", "fetch", "for",
            "window", "into", "over", "filter", "within", "join", "escape", "returning", "uescape", "tablesample",
            "variadic"}  # fmt: skip


SEARCH_TYPES = {"tsvector", "tsquery", "regconfig", "regdictionary"}
NO_SEARCH = ("0A000", "text search (tsvector, tsquery, @@ and their functions) is not supported")


class Elsewhere(Exception):
    """A statement, or a value in it, that is not answered here."""


class Large(Elsewhere):
    """Raised for values that are too large for this process."""


class Qualified(str):
    """The name of a function that was written with `pg_catalog.` before it."""


def said(sqlstate: str, words: str, position: int | None = None, hint: str = "") -> Error:
    """Return PostgreSQL's error of this SQLSTATE in its own words, which quote nothing but the analyst's text."""
    error = refuse("wire_words", words=words, hint=hint, position=position)
    error.sqlstate = sqlstate
    return error


_TOKENS = re.compile(
    r"""(?P<blank>\s+|--[^\n]*)|(?P<comment>/\*)|(?P<dollar>\$(?:[A-Za-z_]\w*)?\$)|(?P<param>\$\d+)
    |(?P<escape>[eE]')|(?P<bits>[bBxX]')|(?P<unicode>[uU]&['"])|(?P<string>')|(?P<quoted>")
    |(?P<number>0[xX](?:_?[0-9A-Fa-f])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|(?:\d(?:_?\d)*(?:\.(?!\.)(?:\d(?:_?\d)*)?)?|\.\d(?:_?\d)*)(?:[eE][+-]?\d+)?)
    |(?P<word>[A-Za-z_\u0080-\uffff][\w$]*)|(?P<sign>::|:=|=>|\.\.|[\[\](),.:;{}\\])|(?P<operator>[-+*/<>=~!@#%^&|`?]+)""",
    re.VERBOSE,
)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)


def _unescaped(match: re.Match[str]) -> str:
    octal, hexadecimal, short, long, plain = match.groups()
    if plain in ("u", "U"):
        hint = "Unicode escapes must be \\uXXXX or \\UXXXXXXXX."
        raise said("22025", "invalid Unicode escape", match.start() + 1, hint)
    if plain is not None:
        return _ESCAPES.get(plain, plain)
    code = int(octal, 8) & 255 if octal else int(hexadecimal or short or long, 16)
    if code == 0 and not (short or long):
        raise said("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    if not (short or long) and code > 127:
        raise Elsewhere
    return sign_of(code)


def sign_of(code: int) -> str:
    """Return the character of a number. Raises `Elsewhere` for zero, halves of pairs and what is beyond Unicode."""
    if code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise Elsewhere
    return chr(code)


@dataclass(slots=True)
class Token:
    """A token: word, quoted, string, bits, number, parameter, operator, sign or end; its source begins at `start` (from 1)."""

    kind: str
    text: str
    start: int
    source: str


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a statement and an end. Raises what PostgreSQL says of what does not end."""
    tokens, position, last = list[Token](), 0, 0
    while position < len(text):
        match = _TOKENS.match(text, position)
        if match is None:
            raise Elsewhere
        kind, end, start = str(match.lastgroup), match.end(), position
        value = match[0]
        if kind == "comment":
            end = _commented(text, start)
        elif kind in ("string", "escape", "bits", "quoted", "unicode"):
            value, end = _delimited(text, start, end, kind)
            if kind == "unicode" and (sign := _UESCAPE.match(text, end)):
                value, _ = _delimited(text, start, text.index("'", start) + 1, kind, sign[1])
                end = sign.end()
        elif kind == "word" and value in ("n", "N") and text[end : end + 1] == "'":
            value = "bpchar"  # N'text'
        elif kind == "dollar":
            close = text.find(match[0], end)
            if close < 0:
                raise said("42601", f'unterminated dollar-quoted string at or near "{text[start:]}"', start + 1)
            value, end = text[end:close], close + len(match[0])
        elif kind == "operator":
            value, end = _operator(match[0]), start
            end += len(value)
        if kind not in ("blank", "comment"):
            kind = {"escape": "string", "dollar": "string", "unicode": "string"}.get(kind, kind)
            if kind == "string" and tokens and tokens[-1].kind == "string" and "\n" in text[last:start]:
                tokens[-1].text += value  # strings on two lines are one
            else:
                tokens.append(Token(kind, value, start + 1, text[start:end]))
            last = end
        position = end
    tokens.append(Token("end", "", len(text) + 1, ""))
    return tokens


def _commented(text: str, start: int) -> int:
    """Return the end of a comment, in which others may be."""
    depth = 0
    for sign in _COMMENTS.finditer(text, start):
        depth += 1 if sign[0] == "/*" else -1
        if depth == 0:
            return sign.end()
    raise said("42601", f'unterminated /* comment at or near "{text[start:]}"', start + 1)


_COMMENTS = re.compile(r"/\*|\*/")


_UESCAPE = re.compile(r"\s+UESCAPE\s+'([^0-9a-fA-F+'\"\s])'", re.IGNORECASE)


def _delimited(text: str, start: int, end: int, kind: str, sign: str = "\\") -> tuple[str, int]:
    quote, pieces = text[end - 1], list[str]()
    while True:
        close = end
        while close < len(text) and text[close] != quote:
            close += 2 if kind == "escape" and text[close] == "\\" else 1
        if close >= len(text):
            label = {"quoted": "quoted identifier", "bits": "bit string literal"}.get(kind, "quoted string")
            raise said("42601", f'unterminated {label} at or near "{text[start:]}"', start + 1)
        pieces.append(text[end:close])
        end = close + 1
        if text[end : end + 1] != quote:
            break
        pieces.append(quote)
        end += 1
    value = "".join(pieces)
    if kind == "unicode":
        if quote == '"':
            raise Elsewhere
        form = rf"{re.escape(sign)}(?:{re.escape(sign)}|([0-9a-fA-F]{{4}})|\+([0-9a-fA-F]{{6}})|())"

        def character(match: re.Match[str]) -> str:
            if match[3] is not None:
                hint = f"Unicode escapes must be {sign}XXXX or {sign}+XXXXXX."
                raise said("42601", "invalid Unicode escape", start + 4 + match.start(), hint)
            return sign_of(int(match[1] or match[2], 16)) if match[1] or match[2] else sign

        value = re.sub(form, character, value)
    if kind == "quoted" and not value:
        raise said("42601", 'zero-length delimited identifier at or near """"', start + 1)
    if kind == "escape":
        try:
            return _ESCAPED.sub(_unescaped, value), end
        except Error as error:
            error.position = error.position and error.position + start + 2
            raise
    return text[start].lower() * (kind == "bits") + value, end


def _operator(signs: str) -> str:
    """Return the operator with which a run of signs begins: it ends before a comment, and with + or - only if another sign in it
    is none of the standard's."""
    signs = re.split(r"--|/\*", signs)[0]
    if len(signs) > _MOST_SIGNS:
        raise Elsewhere  # such a run would be read anew for each of its signs
    return signs if re.search(r"[~!@#%^&|`?]", signs) else signs.rstrip("+-") or signs[0]


_MOST_SIGNS = 63
