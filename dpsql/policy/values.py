"""Conversion of the policy's text to exact values. Each function raises ValueError with the sentence that the owner reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from functools import partial
from typing import Any
from zoneinfo import available_timezones

from dpsql.errors.exceptions import did_you_mean
from dpsql.policy.fields import ListOf, Plain
from dpsql.privacy.loss import exact_number

Value = int | Fraction | str | bool | date | datetime
"""A value of a column: integer, real, text, boolean, date or timestamp."""

MOST_EPSILON = Fraction(10_000)
LEAST_EPSILON = Fraction(1, 10**9)
LIMIT_DELTA = Fraction(1, 1000)
LEAST_DELTA = Fraction(1, 10**30)
MOST_REAL = Fraction(10**15)
LEAST_REAL = Fraction(1, 10**15)
MOST_COUNT = 10**9
MOST_SCALE = 12
MOST_DIGITS = 14
"""Most digits of a decimal in all, before and after its point: multiplied by a power of ten, the double that is nearest to it is
within a tenth of the whole number, and after a few operations within half of it."""
MOST_AMOUNT = Fraction(10**18)
MOST_TEXT = 1000

NAME_PATTERN = "[A-Za-z_][A-Za-z0-9_]{0,62}"
LOGIN_PATTERN = "[A-Za-z_][A-Za-z0-9_.@-]{0,62}"
OWNER = "owner"
"""Login of the owner, who asks without an analyst's account; no analyst may have this name."""
RESERVED = ("dp_", "pg_", "__")
ENCODINGS = ("utf-8", "latin-1", "windows-1252", "utf-16")
"""Encodings of CSV files. In those of one byte, and of 16 bits, a line feed is a line feed whatever is before it."""

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})\Z", re.ASCII)
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
_TIMESTAMP = re.compile(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:[ T]({_CLOCK}))?\Z", re.ASCII)


def _text(raw: object, expected: str) -> str:
    if isinstance(raw, str):
        return raw
    kind = {type(None): "null", list: "a list", dict: "a mapping"}.get(type(raw), "something else")
    raise ValueError(f"{expected} is expected here, not {kind}")


def _number(raw: object, expected: str) -> Fraction:
    text = _text(raw, expected)
    try:
        return exact_number(text)
    except ValueError as error:
        raise ValueError(f"{expected} is expected here ({error})") from None


def epsilon(raw: object) -> Fraction:
    """Return a privacy loss epsilon within [1e-9, 10000]."""
    value = _number(raw, "an epsilon, a number greater than 0,")
    if value <= 0:
        raise ValueError("epsilon must be greater than 0")
    if not LEAST_EPSILON <= value <= MOST_EPSILON:
        raise ValueError("epsilon must lie between 1e-9 and 10000; a useful one lies between 0.01 and 20")
    return value


def delta(raw: object) -> Fraction:
    """Return a probability delta within [1e-30, 1e-3), or 0 (whether 0 is allowed depends on the place)."""
    value = _number(raw, "a delta, a number between 0 and 1,")
    if value == 0:
        return value
    if not 0 < value < 1:
        raise ValueError("delta must lie between 0 and 1")
    if not LEAST_DELTA <= value < LIMIT_DELTA:
        raise ValueError(
            "delta must be at least 1e-30 and below 1e-3; it should be far below 1 / number of privacy units"
        )
    return value


def _within(
    expected: str, low: Fraction | int, high: Fraction | int, sentence: str, *, whole: bool = False, above: bool = False
) -> Callable[[object], Any]:
    """Return the reader of a number from `low` to `high` (`above`: not `low` itself), as an integer if it must be `whole`.
    `expected`: what the owner reads in place of something else, `sentence`: of other numbers."""

    def read(raw: object) -> Fraction | int:
        value = _number(raw, expected)
        if not low <= value <= high or (above and value == low) or (whole and value.denominator != 1):
            raise ValueError(sentence)
        return value.numerator if whole else value

    return read


confidence = _within(
    "a confidence such as 0.95", Fraction(1, 2), 1 - Fraction(1, 10**6), "confidence must lie between 0.5 and 0.999999"
)
count = _within(
    "a whole number of at least 1",
    1,
    MOST_COUNT,
    f"a whole number between 1 and {MOST_COUNT} is expected here",
    whole=True,
)
_DIGITS = f"a whole number between 0 and {MOST_SCALE} is expected here, of digits after the point"
scale = _within("a number of digits", 0, MOST_SCALE, _DIGITS, whole=True)
_AMOUNT = "a number greater than 0 and at most 1e18 is expected here"
amount = _within("a number greater than 0", 0, MOST_AMOUNT, _AMOUNT, above=True)
_DELAY = "a time of response is from 0.01 to 3600 seconds"
delay = _within("a number of seconds", Fraction(1, 100), 3600, _DELAY)


def seconds(raw: object) -> int:
    """Return a timeout within [1, 86400] seconds."""
    value: int = count(raw)
    if value > 86400:
        raise ValueError("a timeout is at most 86400 seconds")
    return value


def boolean(raw: object) -> bool:
    """Return the boolean that `true` or `false`, spelled exactly, means."""
    text = _text(raw, "true or false")
    if text not in ("true", "false"):
        raise ValueError(f"true or false is expected here, not {quoted(text)}")
    return text == "true"


def name(raw: object) -> str:
    """Return the name of a dataset, table or column: a plain identifier that is not reserved."""
    text = _text(raw, "a name")
    if re.fullmatch(NAME_PATTERN, text, re.ASCII) is None:
        schema, dot, table = text.rpartition(".")
        if dot and all(re.fullmatch(NAME_PATTERN, part, re.ASCII) for part in (schema, table)):
            raise ValueError(
                f"{quoted(text)} has a dot; of a table in a schema write {table} and below it schema: {schema}"
            )
        raise ValueError(
            f"{quoted(text)} is not a plain name: a letter or _, then letters, digits and _, at most 63 characters"
        )
    if text.lower().startswith(RESERVED) or text.lower() == "information_schema":
        raise ValueError(f"{text} is reserved; names beginning with dp_, pg_ or __ belong to the system")
    return text


def login(raw: object) -> str:
    """Return the name of an analyst: a letter or _, then letters, digits and . _ @ -."""
    text = _text(raw, "an analyst's name")
    if re.fullmatch(LOGIN_PATTERN, text, re.ASCII) is None:
        raise ValueError(
            f"{quoted(text)} is no name for an analyst: a letter or _, then letters, digits and . _ @ -, at most 63"
        )
    return text


def reference(raw: object) -> tuple[str, str]:
    """Return a foreign key's target, `table.column`."""
    text = _text(raw, "a target written table.column")
    table, dot, column = text.partition(".")
    if not dot or not all(re.fullmatch(NAME_PATTERN, part, re.ASCII) for part in (table, column)):
        raise ValueError(f"a target written table.column is expected here, not {quoted(text)}")
    return table, column


def names(raw: object) -> tuple[str, ...]:
    return _each_once(raw, "column")


def further_names(raw: object) -> tuple[str, ...]:
    """Return one column name or a list of them, which may be empty."""
    return () if raw == [] else names(raw)


def time_zone(raw: object) -> str:
    """Return the name of a time zone, such as Europe/Berlin, as the tz database spells it."""
    text = _text(raw, "the name of a time zone, such as Europe/Berlin,")
    zones = available_timezones()
    if text not in zones or not re.fullmatch(r"[A-Za-z]+(/[A-Za-z0-9_+-]+)+|UTC", text):
        near = did_you_mean(text, sorted(zones)) if zones else "; Python finds no time zones here: pip install tzdata"
        raise ValueError(f"the name of a time zone, such as Europe/Berlin, is expected here{near}")
    return text


def _each_once(raw: object, kind: str) -> tuple[str, ...]:
    parts = tuple(name(part) for part in (raw if isinstance(raw, list) else [raw]))
    if not parts or len(set(parts)) < len(parts):
        raise ValueError(f"{kind} names are expected here, each once")
    return parts


def name_sets(raw: object) -> tuple[tuple[str, ...], ...]:
    """Return a list whose items are column names or lists of them."""
    if not isinstance(raw, list) or not raw:
        raise ValueError("a list is expected here, each item a column name or a list of them")
    return tuple(names(item) for item in raw)


def name_set(raw: object) -> tuple[str, ...]:
    """Return column names as a mapping's key: `a` or `a, b`."""
    return names([part.strip(" ") for part in _text(raw, "column names").split(",")])


def choice(words: tuple[str, ...], raw: object) -> str:
    """Return `raw` if it is one of `words`, spelled exactly. Raises ValueError otherwise."""
    text = _text(raw, "one of " + ", ".join(words))
    if text not in words:
        raise ValueError(f"{quoted(text)} is not one of {', '.join(words)}{did_you_mean(text, words)}")
    return text


_STORED_TYPES = {
    **dict.fromkeys(("decimal", "numeric"), "real, with the digits after the point as scale (or integer, if it has none)"),
    "uuid": "text", "enum": "text, with its values as domain", "time": "integer, the seconds since midnight, or text",
    "timestamptz": "timestamp, with a timezone", "datetime": "timestamp",
    **dict.fromkeys(("float", "double", "number"), "real"), **dict.fromkeys(("string", "str", "varchar", "char"), "text"),
}  # fmt: skip


def column_type(words: tuple[str, ...], raw: object) -> str:
    """Return the type of a column, one of `words`. Raises ValueError, with the type to declare for those that databases store."""
    text = _text(raw, "one of " + ", ".join(words))
    stored = text.lower().partition("(")[0].strip()
    if stored in _STORED_TYPES:
        raise ValueError(f"{text} is not one of {', '.join(words)}; declare {_STORED_TYPES[stored]}")
    return choice(words, raw)


def choices(words: tuple[str, ...], raw: object) -> tuple[str, ...]:
    """Return a list of some of `words`, which may be empty, in their order. Raises ValueError otherwise."""
    if not isinstance(raw, list):
        raise ValueError(f"a list is expected here, of any of {', '.join(words)}, or []")
    named = {choice(words, word) for word in raw}
    return tuple(word for word in words if word in named)


def prose(raw: object) -> str:
    """Return a text for people, of at most 1000 characters."""
    text = _text(raw, "text")
    if not text or len(text) > MOST_TEXT:
        raise ValueError(f"text of 1 to {MOST_TEXT} characters is expected here")
    return text


def quoted(text: str) -> str:
    """Return the owner's text as a quoted, shortened literal for messages."""
    return repr(text if len(text) <= 40 else text[:40] + "...")


# --- values of columns ----------------------------------------------------------------------------------------------


def integer(text: str) -> int:
    value = _number(text, "a whole number")
    if value.denominator != 1:
        raise ValueError(f"{quoted(text)} is not a whole number, and the column is of type integer")
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{quoted(text)} does not fit into 64 bits")
    return value.numerator


def real(text: str) -> Fraction:
    """Return a number that is 0 or between 1e-15 and 1e15 in size: other bounds say nothing about real data."""
    value = _number(text, "a number")
    if value != 0 and not LEAST_REAL <= abs(value) <= MOST_REAL:
        raise ValueError(f"{quoted(text)} is absurd as a bound; its size must be 0 or between 1e-15 and 1e15")
    return value


def calendar_date(text: str) -> date:
    if _DATE.match(text) is None:
        raise ValueError(f"a date written YYYY-MM-DD is expected here, not {quoted(text)}")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{quoted(text)} is not in the calendar") from None


def timestamp(text: str) -> datetime:
    """Return a timestamp without zone: YYYY-MM-DD, or YYYY-MM-DD HH:MM[:SS[.ffffff]]; a date alone means its midnight."""
    match = _TIMESTAMP.match(text)
    if match is None:
        raise ValueError(f"a timestamp written YYYY-MM-DD HH:MM:SS, without zone, is expected here, not {quoted(text)}")
    clock, _, fraction = (match[2] or "00:00").partition(".")
    try:
        moment = datetime.fromisoformat(f"{match[1]}T{clock}")
    except ValueError:
        raise ValueError(f"{quoted(text)} is not in the calendar") from None
    return moment.replace(microsecond=int(fraction.ljust(6, "0"))) if fraction else moment


def plain_text(text: str) -> str:
    """Return a text value of at most 1000 characters without NUL, which no engine stores."""
    if len(text) > MOST_TEXT or "\0" in text:
        raise ValueError(f"a text value has at most {MOST_TEXT} characters and no NUL")
    return text


READERS: dict[str, Callable[[str], Value]] = {
    "integer": integer,
    "real": real,
    "text": plain_text,
    "boolean": boolean,
    "date": calendar_date,
    "timestamp": timestamp,
}


def scalar(raw: object) -> str:
    """Return the text of one value; its type is determined later."""
    return _text(raw, "one value")


def scalars(raw: object) -> tuple[str | None, ...]:
    """Return the texts of a list of values, with None for null."""
    if not isinstance(raw, list) or not raw:
        raise ValueError("a list of at least one value is expected here")
    return tuple(None if item is None else scalar(item) for item in raw)


def typed(raw: object, column_type: str) -> Value:
    return READERS[column_type](_text(raw, f"a value of type {column_type}"))


def outside(raw: object) -> tuple[str, ...]:
    """Parse how values outside the domain are treated: () for `drop`, ("other",) or ("other", the group's value)."""
    if raw == "drop":
        return ()
    if raw == "other":
        return ("other",)
    if isinstance(raw, dict) and set(raw) == {"other"} and isinstance(raw["other"], str):
        return ("other", raw["other"])
    raise ValueError("write drop, other, or {other: VALUE}, the value of one more group")


def delimiter(raw: object) -> str:
    text = _text(raw, "a delimiter, one character,")
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in "\"'\r\n\0":
        raise ValueError(
            'a delimiter is one ASCII character and no letter, digit, quote or line end, for example ";" or "\\t"'
        )
    return text


def quote(raw: object) -> str:
    """Return the character that may surround a cell, or "" for `none`."""
    text = _text(raw, "a quote, one character or none,")
    if text == "none":
        return ""
    if len(text) != 1 or not text.isascii() or text.isalnum() or text.isspace() or text == "\0":
        raise ValueError("a quote is one ASCII character and no letter, digit or white space, or the word none")
    return text


def header(raw: object) -> tuple[str, ...] | None:
    """Return None for `true` (the first line names the columns), else the names of columns in the order of the files."""
    if raw == "true":
        return None
    if not isinstance(raw, list):
        raise ValueError("write true where the first line names the columns, else the list of their names in order")
    names = tuple(_text(name, "a column's name") for name in raw)
    if not names or len({name.lower() for name in names}) < len(names):
        raise ValueError("the list names each column once")
    return names


def null_texts(raw: object) -> tuple[str, ...]:
    return tuple(_text(item, "a text that means NULL") for item in (raw if isinstance(raw, list) else [raw]))


def row(raw: object) -> None:
    """Return None for the privacy unit `row`."""
    if raw != "row":
        raise ValueError("write row, or {table: ..., column: ...}")


# --- kinds of values: how they are read, and what JSON Schema says of them ------------------------------------------------


def _number_kind(named: str, reader: Callable[[object], object], **limits: Any) -> Plain:
    """Return the kind of a number, or of its text, because YAML 1.1 tools read 1e-6 as text."""
    pattern = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
    return Plain(reader, {"type": ["number", "string"], **limits, "pattern": pattern}, named)


def _text_kind(named: str, reader: Callable[[object], object], pattern: str) -> Plain:
    return Plain(reader, {"type": "string", "pattern": f"^{pattern}$"}, named)


def one_of(*words: str, read: Callable[[tuple[str, ...], object], str] = choice) -> Plain:
    """Return the kind of values that are one of `words`."""
    return Plain(partial(read, words), {"type": "string", "enum": list(words)})


def some_of(*words: str) -> Plain:
    """Return the kind of lists of some of `words`."""
    schema = {"type": "array", "items": {"type": "string", "enum": list(words)}, "uniqueItems": True}
    return Plain(partial(choices, words), schema)


_NAME_LIST = {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True}
_NAME_OR_LIST = {"anyOf": [{"type": "string"}, _NAME_LIST]}
_SCALAR = {"type": ["string", "number", "boolean"]}
_NULL_OR_SCALAR = {"type": ["string", "number", "boolean", "null"]}
_OTHER = {"type": "object", "properties": {"other": _SCALAR}, "required": ["other"], "additionalProperties": False}

EPSILON = _number_kind("Epsilon", epsilon, exclusiveMinimum=0, maximum=int(MOST_EPSILON))
DELTA = _number_kind("Delta", delta, minimum=0, exclusiveMaximum=0.001)
CONFIDENCE = _number_kind("Confidence", confidence, minimum=0.5, exclusiveMaximum=1)
AMOUNT = _number_kind("Amount", amount, exclusiveMinimum=0, maximum=int(MOST_AMOUNT))
DELAY = _number_kind("Delay", delay, minimum=0.01, maximum=3600)
SCALE = Plain(scale, {"type": "integer", "minimum": 0, "maximum": MOST_SCALE})
COUNT = Plain(count, {"type": "integer", "minimum": 1, "maximum": MOST_COUNT}, "Count")
SECONDS = Plain(seconds, {"type": "integer", "minimum": 1, "maximum": 86400})
TRUTH = Plain(boolean, {"type": "boolean"})
PROSE = Plain(prose, {"type": "string", "minLength": 1, "maxLength": MOST_TEXT}, "Text")
NAME = _text_kind("Name", name, NAME_PATTERN)
LOGIN = _text_kind("Login", login, LOGIN_PATTERN)
LOGINS = ListOf(LOGIN, "a list of analysts' names is expected here, such as [research, bi]")
REFERENCE = _text_kind("Reference", reference, rf"{NAME_PATTERN}\.{NAME_PATTERN}")
NAMES = Plain(names, _NAME_OR_LIST, "Names")
FURTHER_NAMES = Plain(further_names, {"anyOf": [{"type": "string"}, {**_NAME_LIST, "minItems": 0}]}, "FurtherNames")
TIME_ZONE = Plain(time_zone, {"type": "string"})
TABLE_NAMES = Plain(partial(_each_once, kind="table"), _NAME_OR_LIST, "Names")
NAME_SETS = Plain(name_sets, {"type": "array", "items": _NAME_OR_LIST, "minItems": 1}, "NameSets")
NAME_SET = _text_kind("NameSet", name_set, rf"{NAME_PATTERN}( *, *{NAME_PATTERN})*")
DELIMITER = Plain(delimiter, {"type": "string", "maxLength": 1})
QUOTE = Plain(quote, {"type": "string", "maxLength": 4})
HEADER = Plain(header, {"anyOf": [{"const": True}, _NAME_LIST]}, "Header")
NULL_TEXTS = Plain(null_texts, {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}, "NullTexts")
BOUND = Plain(scalar, _SCALAR, "Bound")
DOMAIN = Plain(scalars, {"type": "array", "items": _NULL_OR_SCALAR, "minItems": 1, "uniqueItems": True}, "Domain")
OUTSIDE = Plain(outside, {"anyOf": [{"enum": ["drop", "other"]}, _OTHER]}, "Outside")
ROW = Plain(row, {"const": "row"})
