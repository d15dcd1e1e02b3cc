"""Row functions of texts, with one entry each (see `dpsql.functions.numeric`)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from dpsql.functions.signatures import (
    Infer,
    WrongArguments,
    always,
    any_nullable,
    function,
    literal_int,
    literal_text,
    want,
)
from dpsql.functions.values import (
    MOST_TEXT,
    left_trim,
    like,
    lower,
    md5,
    replaced_text,
    right_trim,
    split_part,
    translated,
    trimmed,
    upper,
)
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Expr, Literal, literal

# --- regular expressions with a literal pattern, in RE2, which takes time linear in the text for every pattern --------
# DuckDB and Arrow both contain RE2, so Arrow can check before data is read whether the engine accepts a pattern, and
# computes the same here as the engine. `\B` and `\C` may match inside a character: a replacement there gives invalid
# text, and the engine raises, but only for units that have such characters. So they are refused (and `\Q`, after which
# they could hide).

MOST_PATTERN = 200
_INSIDE_CHARACTERS = re.compile(r"(?:[^\\]|\\[^BCQ])*\\[BCQ]", re.DOTALL)


def checked(pattern: str) -> str:
    """Return the pattern. Raises WrongArguments if it is not supported."""
    if len(pattern) > MOST_PATTERN:
        raise WrongArguments(f"takes a pattern of at most {MOST_PATTERN} characters")
    if _INSIDE_CHARACTERS.match(pattern):
        raise WrongArguments(r"takes no \B, \C or \Q in its pattern")
    try:
        matches("", pattern)
    except pa.ArrowInvalid:
        raise WrongArguments("takes a regular expression as RE2 reads it") from None
    return pattern


def checked_replacement(pattern: str, replacement: str) -> None:
    """Raise WrongArguments if a replacement names a group that the pattern does not have."""
    try:
        replaced("", pattern, replacement, everywhere=True)
    except pa.ArrowInvalid:
        raise WrongArguments(
            r"takes a replacement with \0 to \9 for groups that are there, and \\ for \ itself"
        ) from None


def matches(text: str, pattern: str) -> bool:
    return bool(pc.match_substring_regex(pa.array([text]), pattern=pattern)[0].as_py())


def replaced(text: str, pattern: str, replacement: str, everywhere: bool) -> str:
    """Return the text with the first match, or all matches, replaced; \\1 is the match of the first group. Arrow replaces the
    first without the text around it, on which `\b` depends: so that one is put together from its groups."""
    if everywhere:
        return str(pc.replace_substring_regex(pa.array([text]), pattern=pattern, replacement=replacement)[0].as_py())
    if not matches(text, pattern):
        return text
    start = len(_within_match(text, rf"((?s:.*?))(?:{pattern})"))
    put = re.sub(
        r"\\(.)",
        lambda m: extracted(text, pattern, int(m[1])) if m[1].isdigit() else m[1],
        replacement,
        flags=re.DOTALL,
    )
    return text[:start] + put + text[start + len(extracted(text, pattern, 0)) :]


def extracted(text: str, pattern: str, group: int) -> str:
    """Return what a group (0: the whole) matches in the first match; empty if there is none."""
    if not matches(text, pattern):
        return ""
    return (
        _within_match(text, rf"(?s:.*?)({pattern})")
        if group == 0
        else _within_match(text, rf"(?s:.*?)(?:{pattern})", group)
    )


def _within_match(text: str, pattern: str, group: int = 1) -> str:
    """Return a group of the first match of a pattern that matches from the beginning of the text."""
    return replaced(text, rf"\A{pattern}(?s:.*)\z", rf"\{group}", everywhere=True)


# --- row functions of texts, with one entry each (see `dpsql.functions.numeric`) --------------------------------------

MOST_PARTS = 20
MOST_SHORT = 20
"""Largest number of characters of a literal that is inserted into or searched in texts, possibly many times."""


def _like(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, Type.TEXT, Type.TEXT)
    if not isinstance(arguments[1], Literal):
        raise WrongArguments("takes a literal pattern")
    return Facts(Type.BOOLEAN, nullable=any_nullable(arguments))


function("like", meaning=like, reads_text=True)(_like)
function("ilike", meaning=lambda x, p: like(lower(x), lower(p)), reads_text=True)(_like)

_text_test = always(Facts(Type.BOOLEAN, nullable=False), Type.TEXT, Type.TEXT)
function(
    "starts_with",
    meaning=str.startswith,
    nodes=("StartsWith",),
    spellings=("prefix",),
    per_byte=1,
    reads_text=True,
)(_text_test)
function(
    "ends_with",
    meaning=str.endswith,
    nodes=("EndsWith",),
    spellings=("suffix",),
    per_byte=1,
    reads_text=True,
)(_text_test)
function("contains", meaning=operator.contains, nodes=("Contains",), reads_text=True)(_text_test)


def _trimmed(
    of_blanks: Callable[[str], str], of_characters: Callable[[str, str], str], text: str, removed: str | None = None
) -> str:
    return of_blanks(text) if removed is None else of_characters(text, removed)


_text_map = always(Facts(Type.TEXT, nullable=False), Type.TEXT)
function("lower", meaning=lower, nodes=("Lower",), per_byte=30, reads_text=True)(_text_map)
function("upper", meaning=upper, nodes=("Upper",), per_byte=30, reads_text=True)(_text_map)


def _trim(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of a text without blanks, or without each of the literal characters of a second argument."""
    want(arguments, *([Type.TEXT] * max(1, min(2, len(arguments)))))
    if len(arguments) == 2 and not 1 <= len(literal_text(arguments[1], "list of characters")) <= MOST_SHORT:
        raise WrongArguments(f"takes 1 to {MOST_SHORT} characters to remove")
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


for _name, _of_blanks, _of_characters in (
    ("trim", trimmed, str.strip), ("ltrim", left_trim, str.lstrip), ("rtrim", right_trim, str.rstrip),
):  # fmt: skip
    _meaning = partial(_trimmed, _of_blanks, _of_characters)
    function(_name, meaning=_meaning, per_byte=15, reads_text=True)(_trim)


def _left(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, Type.TEXT, Type.INTEGER)
    literal_int(arguments[1], -10_000, 10_000)
    facts, count = arguments[0].facts, arguments[1]
    # A list of values is kept, so that statements about a column's values also hold for the part that is read. A count below 0
    # is all except so many.
    whole = (
        facts.values is not None
        and isinstance(count, Literal)
        and all(len(v or "") <= count.value for v in facts.values)
    )
    return Facts(Type.TEXT, values=facts.values if whole else None, nullable=any_nullable(arguments))


function("left", meaning=lambda x, n: x[:n], nodes=("Left",), per_byte=5, coarse=True)(_left)
function(
    "right",
    meaning=lambda x, n: x[max(0, len(x) - n) :] if n >= 0 else x[-n:],
    nodes=("Right",),
    per_byte=10,
    coarse=True,
)(_left)


@function(
    "substr",
    meaning=lambda x, s, n=None: x[s - 1 :] if n is None else x[s - 1 : s - 1 + n],
    per_byte=10,
    coarse=True,
)
def _substr(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, Type.TEXT, *([Type.INTEGER] * (len(arguments) - 1)))
    if len(arguments) not in (2, 3):
        raise WrongArguments("takes 2 or 3 arguments")
    for argument in arguments[1:]:
        if (
            argument is arguments[1]
            and isinstance(argument, Literal)
            and isinstance(argument.value, int)
            and argument.value < 1
        ):
            raise WrongArguments(
                "starts at 1 or later: engines mean different characters by less; right(x, 2) is the last two"
            )
        literal_int(argument, 1 if argument is arguments[1] else 0, 10_000)
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


@function("concat", meaning=lambda *p: "".join(p)[:MOST_TEXT], per_byte=5, reads_text=True)
def _concat(arguments: tuple[Expr, ...]) -> Facts:
    want(arguments, *([Type.TEXT] * len(arguments)))
    if not 1 <= len(arguments) <= MOST_PARTS:
        raise WrongArguments(f"takes 1 to {MOST_PARTS} texts")
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


@function("replace", meaning=replaced_text, per_byte=50, reads_text=True)
def _replace(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of REPLACE. Its texts are literals: one taken from a column could make a row grow without bound."""
    want(arguments, Type.TEXT, Type.TEXT, Type.TEXT)
    if not all(
        isinstance(a, Literal) and isinstance(a.value, str) and len(a.value) <= MOST_SHORT for a in arguments[1:]
    ):
        raise WrongArguments(f"takes literal texts of at most {MOST_SHORT} characters to find and to put")
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


@function("translate", meaning=translated, per_byte=50, reads_text=True)
def _translate(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of translate(t, old, new), which puts the n-th character of `new` for the n-th of `old`, or none."""
    want(arguments, Type.TEXT, Type.TEXT, Type.TEXT)
    if any(len(literal_text(a, "list of characters")) > MOST_SHORT for a in arguments[1:]):
        raise WrongArguments(f"takes lists of at most {MOST_SHORT} characters")
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


function("md5", meaning=md5, nodes=("MD5",), cost=2_000, per_byte=10, reads_text=True)(_text_map)


def _measured(length: Callable[[str], int]) -> Infer:
    def infer(arguments: tuple[Expr, ...]) -> Facts:
        want(arguments, Type.TEXT)
        values = arguments[0].facts.values
        upper = None if values is None else Fraction(max((length(v) for v in values if v is not None), default=0))
        return Facts(Type.INTEGER, Fraction(0), upper, nullable=any_nullable(arguments))

    return infer


def _bytes(text: str) -> int:
    return len(text.encode())


function("length", meaning=len, nodes=("Length",), per_byte=5, reads_text=True, coarse=True)(_measured(len))
function("strlen", meaning=_bytes, spellings=("strlen",), repeated=2, per_byte=5, reads_text=True, coarse=True)(
    _measured(_bytes)
)


@function("regexp_matches", meaning=matches, reads_text=True)
def _regexp_matches(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of regexp_matches(t, pattern): whether a literal pattern matches anywhere in t."""
    want(arguments, Type.TEXT, Type.TEXT)
    _pattern(arguments[1])
    return Facts(Type.BOOLEAN, nullable=any_nullable(arguments))


@function(
    "regexp_replace",
    meaning=lambda x, p, r, every: replaced(x[:MOST_TEXT], p, r, every)[:MOST_TEXT],
    reads_text=True,
    coarse=True,
)
def _regexp_replace(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of regexp_replace(t, pattern, replacement, everywhere) of literals: the first match, or all."""
    want(arguments, Type.TEXT, Type.TEXT, Type.TEXT, Type.BOOLEAN)
    pattern, replacement = _pattern(arguments[1]), literal_text(arguments[2], "replacement")
    if len(replacement) > MOST_SHORT:
        raise WrongArguments(f"takes a replacement of at most {MOST_SHORT} characters")
    checked_replacement(pattern, replacement)
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


@function("regexp_extract", meaning=extracted, reads_text=True, coarse=True)
def _regexp_extract(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of regexp_extract(t, pattern, group): what a group matches first, or ''; all except t are literals."""
    want(arguments, Type.TEXT, Type.TEXT, Type.INTEGER)
    literal_int(arguments[2], 0, 9)
    try:
        checked_replacement(
            _pattern(arguments[1]), rf"\{arguments[2].value if isinstance(arguments[2], Literal) else 0}"
        )
    except WrongArguments:
        raise WrongArguments("takes a pattern of RE2, and the number of a group in it") from None
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


@function("split_part", meaning=split_part, per_byte=50, reads_text=True, coarse=True)
def _split_part(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of split_part(t, separator, n), with literals: the n-th part, from the last where n < 0, or ''."""
    want(arguments, Type.TEXT, Type.TEXT, Type.INTEGER)
    if not 1 <= len(literal_text(arguments[1], "separator")) <= MOST_SHORT:
        raise WrongArguments(f"takes a separator of 1 to {MOST_SHORT} characters")
    literal_int(arguments[2], -10_000, 10_000)
    if arguments[2] == literal(0):
        raise WrongArguments("counts parts from 1, or from -1 for the last")
    return Facts(Type.TEXT, nullable=any_nullable(arguments))


function("strpos", meaning=lambda x, y: x.find(y) + 1, reads_text=True, coarse=True)(
    always(Facts(Type.INTEGER, Fraction(0), nullable=False), Type.TEXT, Type.TEXT)
)


@function("concat_ws", per_byte=5, reads_text=True)
def _concat_ws(arguments: tuple[Expr, ...]) -> Facts:
    """Return the facts of concat_ws(separator, t, ...): the texts that are not NULL, joined by a literal separator."""
    want(arguments, *([Type.TEXT] * len(arguments)))
    if not 2 <= len(arguments) <= MOST_PARTS + 1:
        raise WrongArguments(f"takes a separator and 1 to {MOST_PARTS} texts")
    if len(literal_text(arguments[0], "separator")) > MOST_SHORT:
        raise WrongArguments(f"takes a separator of at most {MOST_SHORT} characters")
    return Facts(Type.TEXT, nullable=False)


def _pattern(argument: Expr) -> str:
    return checked(literal_text(argument, "pattern"))
