"""Regular expressions, LIKE and SIMILAR TO, and what else reads the signs of a text."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpsql.frontends.pgwire.constants import bounds
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.resolve import REGISTER, Signature, function
from dpsql.frontends.pgwire.constants.texts import limited_length
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said

MOST_MATCHES = 1_000
MOST_FORM, MOST_REGULAR = 2_000, 10_000_000
"""Limits on the length of a regular expression, and on this times the length of the text."""


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


def _flags(flags: str, allowed: str = "gicnesptwxmbq") -> str:
    for sign in flags:
        if sign not in allowed:
            raise said("22023", f'invalid regular expression option: "{sign}"')
    if set(flags) & set("qxbe"):
        raise Elsewhere
    lines = [sign for sign in flags if sign in "nmspw"][-1:]
    case = [sign for sign in flags if sign in "ic"][-1:]
    return "i" * ("i" in case) + "".join(lines).replace("m", "n").replace("s", "")


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
    start = numbers[0] if numbers else 1
    number = numbers[1] if len(numbers) > 1 else 0 if "g" in flags else 1
    if start < 1 or number < 0:
        name, value = ("start", start) if start < 1 else ("n", number)
        raise said("22023", f'invalid value for parameter "{name}": {value}')
    pieces, position = [text[: start - 1]], 0
    text = text[start - 1 :]
    for k, (begin, end, groups) in enumerate(_matches(text, form, _flags(flags), number or MOST_MATCHES), 1):
        if number in (0, k):
            pieces += [text[position:begin], _filled(new, text[begin:end], groups)]
            position = end
    result = "".join([*pieces, text[position:]])
    limited_length(len(result))
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
