"""Regular expressions, LIKE and SIMILAR TO, and what else reads the signs of a text."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import islice
from typing import Any

from dpsql.frontends.pgwire.constants import bounds
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.expressions import Matcher, check_size
from dpsql.frontends.pgwire.constants.resolve import REGISTER, Signature, function
from dpsql.frontends.pgwire.constants.texts import limited_length
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


@lru_cache(64)
def _between_wildcards(pattern: str, escape: str, ignore_case: bool) -> tuple[list[tuple[re.Pattern[str], int]], bool]:
    """Return what stands between the % of a pattern, each with its length, and whether the pattern ends with its escape."""
    parts: list[list[str]] = [[]]
    signs, ends_with_escape = iter(pattern), False
    for sign in signs:
        if sign == "%" and sign != escape:
            parts.append([])
            continue
        meant = next(signs, "") if sign == escape else sign
        ends_with_escape = not meant
        is_any = not meant or (sign == "_" and sign != escape)
        parts[-1].append("." if is_any else re.escape(_folded(meant) if ignore_case else meant))
    return [(re.compile("".join(part), re.DOTALL), len(part)) for part in parts], ends_with_escape


def _like(text: str, pattern: str, escape: str = "\\", ignore_case: bool = False) -> bool:
    bounds.step()
    check_size(pattern, text)
    parts, ends_with_escape = _between_wildcards(pattern, escape, ignore_case)
    text = _folded(text) if ignore_case else text
    index = 0
    for number, (form, length) in enumerate(parts):  # the first place of each part leaves most for those behind it
        is_last = number == len(parts) - 1 and not ends_with_escape
        if is_last and (len(text) - length < index or (number == 0 and len(text) != length)):
            return False
        index = len(text) - length if is_last else index
        match = form.match(text, index) if number == 0 or is_last else form.search(text, index)
        if match is None:
            return False
        index = match.end()
    if ends_with_escape:
        raise said("22025", "LIKE pattern must not end with escape character")
    return True


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
        lambda v, p, options=_options, negated=_negated: bool(Matcher(p, v, options).starts()) != negated
    )


def _escape(escape: str) -> str:
    if len(escape) > 1:
        raise said("22025", "invalid escape string", None, "Escape string must be empty or one character.")
    return escape


REGISTER["like ~~"] = [Signature("like ~~", ("text",) * 3, "bool", lambda v, p, e: _like(v, p, _escape(e)), least=3)]
REGISTER["like ~~*"] = [
    Signature("like ~~*", ("text",) * 3, "bool", lambda v, p, e: _like(v, p, _escape(e), ignore_case=True), least=3)
]
REGISTER["like similar"] = [
    Signature(
        "like similar",
        ("text",) * 3,
        "bool",
        lambda v, p, e="\\": Matcher(_similar(p, _escape(e)), v).is_whole(),
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
    form = "^(?:{}){{1,1}}?({}){{1,1}}(?:{})$".format(*forms)
    return next((_groups(text, match)[0] for match in Matcher(form, text).matches()), None)


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
            form += {"%": ".*", "_": ".", "(": "(?:", ".": r"\.", "^": r"\^", "$": r"\$", "\\": r"\\"}.get(sign, sign)
        index += 1
    return form


def _flags(flags: str, caller: str = "") -> str:
    """Return the options of an expression. Raises 22023 for others, and for "g" of a function that has no use for it."""
    for sign in flags:
        if sign not in "gicnesptwxmbq":
            raise said("22023", f'invalid regular expression option: "{sign}"')
    if "g" in flags and caller:
        hint = "Use the regexp_matches function instead." * (caller == "regexp_match")
        raise said("22023", f'{caller}() does not support the "global" option', None, hint)
    return flags


def _positive(**values: int) -> None:
    for name, value in values.items():
        if value < (name in ("start", "n")) or (name == "endoption" and value > 1):
            raise said("22023", f'invalid value for parameter "{name}": {value}')


Match = tuple[int, int, list[tuple[int, int] | None]]


def _groups(text: str, match: Match) -> list[Any]:
    spans = match[2] or [(match[0], match[1])]
    return [span and text[span[0] : span[1]] for span in spans]


def _nth(text: str, form: str, start: int, number: int, options: str, group: int) -> tuple[int, int] | None:
    """Return where the nth match, or a group of it, begins and ends."""
    match = next(islice(Matcher(form, text, options).matches(start - 1), number - 1, None), None)
    if match is None or group > max(len(match[2]), 1):
        return None
    return match[2][group - 1] if group and match[2] else match[:2]


@function("regexp_match(text, text, flags text?) _text")
def _regexp_match(text: str, form: str, flags: str = "") -> list[Any] | None:
    matcher = Matcher(form, text, _flags(flags, "regexp_match"))
    return next((_groups(text, match) for match in matcher.matches()), None)


@function("regexp_matches(text, text, flags text?) *_text")
def _regexp_matches(text: str, form: str, flags: str = "") -> list[Any]:
    matches = Matcher(form, text, _flags(flags)).matches()
    return [_groups(text, match) for match in (matches if "g" in flags else islice(matches, 1))]


function("regexp_like(text, text, flags text?) bool")(
    lambda v, form, flags="": bool(Matcher(form, v, _flags(flags, "regexp_like")).starts())
)


@function("regexp_count(text, text, start int4?, flags text?) int4")
def _regexp_count(text: str, form: str, start: int = 1, flags: str = "") -> int:
    _positive(start=start)
    return sum(1 for _ in Matcher(form, text, _flags(flags, "regexp_count")).matches(start - 1))


function("regexp_split_to_table(text, text, flags text?) *text")(
    lambda v, form, flags="": _split(v, form, _flags(flags, "regexp_split_to_table"))
)
function("regexp_split_to_array(text, text, flags text?) _text")(
    lambda v, form, flags="": _split(v, form, _flags(flags, "regexp_split_to_array"))
)
function("substring(text, text) text")(
    lambda v, form: next((_groups(v, m)[0] for m in Matcher(form, v).matches()), None)
)


@function("regexp_substr(text, text, start int4?, n int4?, flags text?, group int4?) text")
def _regexp_substr(
    text: str, form: str, start: int = 1, number: int = 1, flags: str = "", group: int = 0
) -> str | None:
    _positive(start=start, n=number, subexpr=group)
    span = _nth(text, form, start, number, _flags(flags, "regexp_substr"), group)
    return span and text[span[0] : span[1]]


@function("regexp_instr(text, text, start int4?, n int4?, end int4?, flags text?, group int4?) int4")
def _regexp_instr(
    text: str, form: str, start: int = 1, number: int = 1, end: int = 0, flags: str = "", group: int = 0
) -> int:
    _positive(start=start, n=number, endoption=end, subexpr=group)
    span = _nth(text, form, start, number, _flags(flags, "regexp_instr"), group)
    return 0 if span is None else span[end] + 1


def _split(text: str, form: str, options: str) -> list[str]:
    parts, position, last = list[str](), 0, 0
    for begin, end, _ in Matcher(form, text, options).matches():
        if begin < len(text) and end > last:
            parts.append(text[position:begin])
            position = end
        last = end
    return [*parts, text[position:]]


@function(
    "regexp_replace(text, text, text, flags text?) text; regexp_replace(text, text, text, start int4, n int4?, flags text?) text"
)
def _regexp_replace(text: str, form: str, new: str, *rest: Any) -> str:
    flags = next((item for item in rest if isinstance(item, str)), "")
    numbers = [item for item in rest if isinstance(item, int)]
    start = numbers[0] if numbers else 1
    number = numbers[1] if len(numbers) > 1 else 0 if "g" in flags else 1
    if start < 1 or number < 0:
        name, value = ("start", start) if start < 1 else ("n", number)
        raise said("22023", f'invalid value for parameter "{name}": {value}')
    pieces, position, size = list[str](), 0, len(text)
    matches = Matcher(form, text, _flags(flags)).matches(start - 1)
    for match in matches if number == 0 else islice(matches, number - 1, number):
        pieces += [text[position : match[0]], _filled(new, text, match)]
        position, size = match[1], size + len(pieces[-1])
        limited_length(size)
    return "".join([*pieces, text[position:]])


def _filled(new: str, text: str, match: Match) -> str:
    def sign(escape: re.Match[str]) -> str:
        if escape[1] == "&":
            return text[match[0] : match[1]]
        if escape[1] in "123456789":
            span = match[2][int(escape[1]) - 1] if int(escape[1]) <= len(match[2]) else None
            return "" if span is None else text[span[0] : span[1]]
        return "\\" if escape[1] == "\\" else escape[0]

    return re.sub(r"\\(.)", sign, new, flags=re.DOTALL)
