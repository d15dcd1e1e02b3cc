"""Dates that are read from texts or made of numbers, written with functions that rows, results and public tables have.

`to_date(t, 'DD.MM.YYYY')`, `to_timestamp`, DuckDB's `strptime(t, '%d.%m.%Y')` and `make_date(y, m, d)` become a cast of a text
YYYY-MM-DD HH:MM:SS. A text of another shape, and a day that no month has, is NULL, as a cast of such a text is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import reduce

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.functions.dates import MONTHS, MOST_FORMAT, of_words
from dpsql.plan.intervals import Type
from dpsql.sql.lexer import place

_SIZES = {"Y": (4, 4), "m": (1, 2), "d": (1, 2), "H": (1, 2), "M": (1, 2), "S": (1, 2)}
"""Letters of numbers, and how many digits each has at least and at most."""
_NAMES = {"B": MONTHS, "b": tuple(name[:3] for name in MONTHS)}
_LONGEST = 9
_PIECE = re.compile(r"%([YmdHMSBb])|([^%A-Za-z0-9]+|T)")
_FRACTION = re.compile(r"\.(US|MS)$|\.%f$")
Token = list[str]
"""Letters of fields that stand side by side, without a separator between them."""


def read_time(node: exp.Expr, text: exp.Expr, form: exp.Expr, target: Type) -> exp.Expr:
    """Return the date or timestamp that a text means in a literal format, of strftime's letters or of PostgreSQL's words.

    Refuses (wrong_arguments) other formats, and a literal text that the format does not fit."""
    written = form.name if isinstance(form, exp.Literal) and form.is_string else ""
    if isinstance(text, exp.Literal) and text.is_string:
        return _literal(node, text, written, target)
    tokens, separators = _parsed(_letters(written)) or ([], [])
    fields = [letter for token in tokens for letter in token]
    months = [letter for letter in fields if letter in "mBb"]
    is_dated = "Y" in fields or _asks_for_month(node)
    if len(set(fields)) < len(fields) or len(months) != 1 or not is_dated or ("d" not in fields and "H" in fields):
        reason = (
            "takes a literal format with a year and a month, such as 'YYYY-MM-DD', 'DD.MM.YYYY HH24:MI' or '%d %B %Y'"
        )
        raise refuse(
            "wrong_arguments", function=_word(node, target), reason=reason, position=place(form) or place(node)
        )
    values: dict[str, exp.Expr] = {}
    most = sum(_SIZES.get(letter, (3, _LONGEST))[1] for letter in fields) + len("".join(separators))
    limited = exp.Left(this=text.copy(), expression=exp.Literal.number(most + 10))  # bounds the work for each row
    text = exp.Trim(this=limited)
    text = text if months == ["m"] else exp.Lower(this=text)
    for number, token in enumerate(tokens):
        part, start = _token(text, separators, number), 1
        for letter in token:
            width = _SIZES.get(letter, (0, 0))[1]
            values[letter] = part if len(token) == 1 else _call("substr", part, start, width)
            start += width
    month = values["m"] if "m" in values else _number_of(values[months[0]])
    value = _moment(values.get("Y", exp.Literal.string("1900")), month, values, target)
    matching = exp.RegexpLike(this=text, expression=exp.Literal.string(_pattern(tokens, separators)))
    return exp.Case(ifs=[exp.If(this=matching, true=value)])


def made_date(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Return make_date(year, month, day) of computed numbers; NULL where there is no such day."""
    year, month, day = (exp.cast(part.copy(), "VARCHAR", dialect="duckdb") for part in parts)
    limits = ((1, 9999), (1, 12), (1, 31))
    within = [
        exp.Between(this=part.copy(), low=exp.Literal.number(low), high=exp.Literal.number(high))
        for part, (low, high) in zip(parts, limits, strict=True)
    ]
    return exp.Case(ifs=[exp.If(this=exp.and_(*within), true=_moment(year, month, {"d": day}, Type.DATE))])


def time_as_text(node: exp.Expr, moment: exp.Expr, form: exp.Expr | None) -> exp.Expr:
    """Return PostgreSQL's to_char(moment, format). Names of months and days in capitals, in small letters, or filled with blanks
    to nine characters (Month, Day) are parts of their own, and so are quarters. Refuses (wrong_arguments) words that no engine
    writes alike."""
    parts = list[exp.Expr]()
    is_time = False
    written = form.name if isinstance(form, exp.Literal) and form.is_string else ""
    for number, piece in enumerate([written] if len(written) > MOST_FORMAT else _NAME.split(written)):
        if number % 2 == 1 and piece == "Q":
            is_time = True
            parts.append(exp.cast(exp.Quarter(this=moment.copy()), "VARCHAR", dialect="duckdb"))
            continue
        named, is_filled = number % 2 == 1, number % 2 == 1 and piece.lower() in ("month", "day")
        letters = of_words("FM" * is_filled + (piece.title() if named else piece))
        if letters is None:
            is_time = False
            break
        is_time |= "%" in letters
        part: exp.Expr = exp.TimeToStr(this=moment.copy(), format=exp.Literal.string(letters))
        if named and not piece.istitle():
            part = exp.Upper(this=part) if piece.isupper() else exp.Lower(this=part)
        if is_filled:
            part = exp.Pad(this=part, expression=exp.Literal.number(_LONGEST), is_left=False)
        parts += [part] if letters else []
    if not is_time:
        words = "YYYY, MM, DD, HH24, MI, SS, DDD, Q, Mon, Dy, Month, FMMonth, Day, FMDay"
        reason = f"takes a literal format of words such as {words}"
        raise refuse("wrong_arguments", function="TO_CHAR", reason=reason, position=place(form) or place(node))
    return reduce(lambda left, right: exp.DPipe(this=left, expression=right), parts)


_NAME = re.compile("(Q|(?<!FM)(?:Month|Day|MONTH|DAY|MON|DY|month|day|mon|dy))" + r'(?=(?:[^"]*"[^"]*")*[^"]*\Z)')
"""Parts of their own, outside of quotes."""


def _letters(form: str) -> str | None:
    if "%" in form:
        return form
    words = re.sub(r"(?i)(FM)?month", "FMMonth", form)
    return of_words(re.sub(r"(?i)mon(?!th)", "Mon", words))


def _parsed(form: str | None) -> tuple[list[Token], list[str]] | None:
    """Return the fields of a format and the separators between them; None for formats that are not read."""
    tokens: list[Token] = [[]]
    separators: list[str] = []
    position = 0
    while form is not None and position < len(form):
        piece = _PIECE.match(form, position)
        if piece is None or (piece[2] and not tokens[-1]):
            return None
        if piece[2]:
            separators.append(piece[2])
            tokens.append([])
        else:
            tokens[-1].append(piece[1])
        position = piece.end()
    named = any(len(token) > 1 and not _SIZES.keys() >= {*token} for token in tokens)
    named = named or ("T" in separators and any(_NAMES.keys() & {*token} for token in tokens))
    return None if named or not tokens[-1] else (tokens, separators)


def _pattern(tokens: Sequence[Token], separators: Sequence[str]) -> str:
    """Return the regular expression of the texts that a format fits."""
    pieces = []
    for token, separator in zip(tokens, [*separators, ""], strict=True):
        for letter in token:
            if letter in _NAMES:
                pieces.append(f"({'|'.join(_NAMES[letter]).lower()})")
                continue
            least, most = _SIZES[letter]
            pieces.append("[0-9]" + (f"{{{most}}}" if len(token) > 1 or least == most else f"{{{least},{most}}}"))
        pieces.append("".join(f"[{character}]" for character in separator))
    return f"^{''.join(pieces)}$"


def _token(text: exp.Expr, separators: Sequence[str], number: int) -> exp.Expr:
    """Return the part of a text that holds one token: what is before the first character of the separator behind it, and there
    behind the last one of the separator before it. Tokens have none of these characters."""
    part, before = text.copy(), "".join(separators[:number])
    if number < len(separators):
        behind = separators[number][0]
        part = _call("split_part", part, behind, before.count(behind) + 1)
        before = before[before.rfind(behind) + 1 :]
    return _call("split_part", part, before[-1], before.count(before[-1]) + 1) if before else part


def _number_of(name: exp.Expr) -> exp.Expr:
    """Return the number of a month as text, by the first letters of its name."""
    listed = exp.Literal.string(" ".join(month[:3].lower() for month in MONTHS))
    start = exp.Left(this=name.copy(), expression=exp.Literal.number(3))
    place_of = exp.Add(this=exp.StrPosition(this=listed, substr=start), expression=exp.Literal.number(3))
    number = exp.IntDiv(this=exp.Paren(this=place_of), expression=exp.Literal.number(4))
    return exp.cast(number, "VARCHAR", dialect="duckdb")


def _moment(year: exp.Expr, month: exp.Expr, values: dict[str, exp.Expr], target: Type) -> exp.Expr:
    """Return a date or timestamp of the texts of its parts. `values`: those of day, hour, minute and second by their letters."""
    parts = [("", year, 4), ("-", month, 2), ("-", values.get("d", exp.Literal.string("01")), 2)]
    if values.keys() & set("HMS"):
        zero = exp.Literal.string("00")
        parts += [(before, values.get(letter, zero), 2) for letter, before in (("H", " "), ("M", ":"), ("S", ":"))]
    joined: exp.Expr = _filled(year, 4)
    for before, part, width in parts[1:]:
        joined = exp.DPipe(this=joined, expression=exp.Literal.string(before))
        joined = exp.DPipe(this=joined, expression=_filled(part, width))
    return exp.TryCast(this=joined, to=exp.DataType.build(target.value, dialect="duckdb"))


def _filled(text: exp.Expr, width: int) -> exp.Expr:
    """Return a text of at most `width` digits with zeros before it."""
    zeros = exp.Literal.string("0" * (width - 1))
    longer = exp.DPipe(this=zeros, expression=text.copy())
    return text if isinstance(text, exp.Literal) else exp.Right(this=longer, expression=exp.Literal.number(width))


def _call(name: str, text: exp.Expr, *arguments: str | int) -> exp.Expr:
    literals = [exp.Literal.string(each) if isinstance(each, str) else exp.Literal.number(each) for each in arguments]
    return exp.func(name, text, *literals, dialect="duckdb")


def _literal(node: exp.Expr, text: exp.Literal, form: str, target: Type) -> exp.Expr:
    """Return the literal that a literal text means."""
    fraction = _FRACTION.search(form)
    letters = _letters(_FRACTION.sub("", form))
    try:
        value = datetime.strptime(text.name, f"{letters}{'.%f' if fraction else ''}") if letters else None
    except ValueError:
        value = None
    if value is None:
        reason = "takes a text and a literal format that fits it, such as 'YYYY-MM-DD HH24:MI:SS.US'"
        raise refuse(
            "wrong_arguments", function=_word(node, target), reason=reason, position=place(text) or place(node)
        )
    result = value.date() if target is Type.DATE else value
    written = exp.Literal.string(str(result))
    written.meta.update(text.meta)
    return exp.cast(written, target.value, dialect="duckdb")


def _asks_for_month(node: exp.Expr) -> bool:
    """Return whether a date without a year serves only to name its month, or to order by it."""
    around: exp.Expr | None = node.parent
    if isinstance(around, exp.Extract):
        return str(around.this.name).lower() == "month"
    return isinstance(around, (exp.Ordered, exp.Month))


def _word(node: exp.Expr, target: Type) -> str:
    return "STRPTIME" if isinstance(node, exp.StrToTime) else f"TO_{target.value.upper()}"
