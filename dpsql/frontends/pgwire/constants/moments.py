"""Dates, times and intervals as PostgreSQL reads and writes them."""

from __future__ import annotations

import math
import re
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from dpsql.frontends.pgwire.constants.tokens import said
from dpsql.release.value_text import interval_text

DAY = 86_400_000_000
"""Microseconds of a day."""
EPOCH = datetime(1970, 1, 1)
MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


class ClockSpan(NamedTuple):
    """An interval: its three counts are independent of each other."""

    months: int
    days: int
    micros: int

    @property
    def order(self) -> int:
        """The number that compares intervals: months have 30 days, and days 24 hours."""
        return (self.months * 30 + self.days) * DAY + self.micros

    def __neg__(self) -> ClockSpan:
        return ClockSpan(-self.months, -self.days, -self.micros)

    def plus(self, other: ClockSpan) -> ClockSpan:
        return ClockSpan(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, factor: float) -> ClockSpan:
        months = self.months * factor
        days = self.days * factor + round((months - int(months)) * 30, 6)
        micros = self.micros * factor + round((days - int(days)) * 86_400, 6) * 1_000_000
        if (
            not all(map(math.isfinite, (months, days, micros)))
            or abs(months) > 1 << 31
            or abs(days) > 1 << 31
            or abs(micros) > 1 << 63
        ):
            raise said("22008", "interval out of range")
        return ClockSpan(int(months), int(days), round(micros))


class TimeTz(NamedTuple):
    """A time of day with a zone: microseconds of the day and the zone's seconds east of Greenwich."""

    micros: int
    offset: int


def zone(name: str) -> tzinfo:
    """Return a time zone. Raises PostgreSQL's refusal of one that is not known."""
    match = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d)(?::?(\d\d))?)?", name.strip(), re.IGNORECASE)
    if match:  # the sign of POSIX: west is positive
        seconds = (int(match[2]) * 60 + int(match[3] or 0)) * 60 + int(match[4] or 0)
        return timezone(timedelta(seconds=seconds if match[1] == "-" else -seconds))
    short = _ZONES.get(name.strip().upper())
    if short is not None:
        return timezone(timedelta(hours=short))
    try:
        if not re.fullmatch(r"[A-Za-z0-9_+\-/]{1,60}", name) or name.startswith("/"):
            raise ValueError(name)
        return ZoneInfo(_PROPER.get(name.lower(), name))
    except (ValueError, OSError, KeyError):
        raise said("22023", f'time zone "{name}" not recognized') from None


_ZONES = {"Z": 0, "ZULU": 0, "UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8,
          "PDT": -7, "CET": 1, "CEST": 2, "BST": 1, "MSK": 3, "JST": 9}  # fmt: skip
_PROPER = {"europe/berlin": "Europe/Berlin", "utc": "UTC", "america/new_york": "America/New_York"}


# --- reading ----------------------------------------------------------------------------------------------------------

_CLOCK = re.compile(r"(?:T|\s|^)(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?\s*(am|pm|AM|PM)?(?=$|\s|[+\-A-Za-z])")
_RUN_CLOCK = re.compile(r"(?:^|T)(\d{2})(\d{2})(\d{2})(?:\.(\d*))?(?=$|\s)")
_OFFSET = re.compile(r"\s*([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?\s*$")
_NAMED_ZONE = re.compile(r"\s*([A-Za-z]+(?:/[A-Za-z_]+)+|Z|UTC|GMT|[A-Z]{3,4}|zulu|z|utc)\s*$")


_MOST_MOMENT = 153
"""Limit on the length of a date or time, as PostgreSQL has it (MAXDATELEN + MAXDATEFIELDS)."""


def read_moment(text: str, type_: str, position: int | None, context: Any) -> Any:
    """Return the date, time or timestamp that a text means. Raises 22007 and 22008 in PostgreSQL's words."""
    names = {"timestamptz": "timestamp with time zone", "timetz": "time with time zone"}
    invalid = said("22007", f'invalid input syntax for type {names.get(type_, type_)}: "{text}"', position)
    outside = said("22008", f'date/time field value out of range: "{text}"', position)
    rest = text.strip()
    special = _special(rest.lower(), type_, context)
    if special is not None:
        return special
    if not rest or len(rest) > _MOST_MOMENT:
        raise invalid
    rest, offset = _zone_of(rest, type_)
    match = _CLOCK.search(rest) or (_RUN_CLOCK.search(rest) if type_ in ("time", "timetz") or "T" in rest else None)
    micros = 0
    if match is not None:
        micros = _micros_of(match, outside)
        rest = (rest[: match.start()] + " " + rest[match.end() :]).strip()
    elif type_ in ("time", "timetz"):
        raise invalid
    if type_ in ("time", "timetz"):
        if rest:
            raise invalid
        return to_time(micros) if type_ == "time" else TimeTz(micros, _seconds(offset, context))
    day = _read_day(rest, context.catalog.settings.get("DateStyle")[-3:], invalid, outside)
    if type_ == "date":
        return day
    moment = datetime(day.year, day.month, day.day) + timedelta(microseconds=micros)
    if type_ == "timestamptz":
        where = (
            zone(offset)
            if isinstance(offset, str)
            else context.zone
            if offset is None
            else timezone(timedelta(seconds=offset))
        )
        return moment.replace(tzinfo=where).astimezone(UTC).replace(tzinfo=None)
    return moment


_BEYOND = ("0A000", "days before the year 1 or after 9999, and the time 24:00, are not supported")
LAST_YEARS = {"date": 5_874_897, "timestamp": 294_276}


def beyond(year: float, type_: str = "timestamp", words: str = "") -> Exception:
    """Return the error of a year before the first or after 9999: that PostgreSQL has no such day, or that it has one."""
    is_none = year < -4714 or year >= LAST_YEARS[type_] + 1
    return said("22008", f"{type_} out of range{words}") if is_none else said(*_BEYOND)


def to_time(micros: int) -> time:
    """Return the time of day. Raises 0A000 for its end."""
    if micros == DAY:
        raise said(*_BEYOND)
    return (datetime.min + timedelta(microseconds=micros)).time()


def _seconds(offset: str | int | None, context: Any) -> int:
    if isinstance(offset, int):
        return offset
    where = context.zone if offset is None else zone(offset)
    return seconds_of(context.now.replace(tzinfo=UTC).astimezone(where))


def julian_day(number: int) -> datetime:
    """Return a day by its number. Raises 0A000 for days that are not computed here."""
    if not 1_721_426 <= number <= 5_373_484:
        raise said(*_BEYOND)
    return datetime.fromordinal(number - 1_721_425)


def _special(word: str, type_: str, context: Any) -> Any:
    if type_ in ("time", "timetz"):
        if word == "allballs":
            return time(0) if type_ == "time" else TimeTz(0, 0)
        return None
    if word in ("infinity", "-infinity"):
        return math.inf if word == "infinity" else -math.inf
    today = context.now.replace(tzinfo=UTC).astimezone(context.zone).replace(tzinfo=None)
    steps = {"yesterday": -1, "today": 0, "tomorrow": 1}
    moment = EPOCH if word == "epoch" else today if word == "now" else None
    if word in steps:
        moment = datetime(today.year, today.month, today.day) + timedelta(days=steps[word])
    if re.fullmatch(r"j\d{1,9}", word):  # the number of a Julian day
        moment = julian_day(int(word[1:]))
    if moment is None:
        return None
    if type_ == "date":
        return moment.date()
    return (
        moment
        if type_ == "timestamp" or word == "epoch"
        else moment.replace(tzinfo=context.zone).astimezone(UTC).replace(tzinfo=None)
    )


def _zone_of(text: str, type_: str) -> tuple[str, str | int | None]:
    """Return a text without the zone at its end, and that zone: its name, its seconds east of Greenwich, or None."""
    match = _OFFSET.search(text)
    if match and ":" in text[: match.start()]:
        seconds = (int(match[2]) * 60 + int(match[3] or 0)) * 60 + int(match[4] or 0)
        return text[: match.start()], seconds if match[1] == "+" else -seconds
    named = _NAMED_ZONE.search(text)
    if named and ":" in text[: named.start()] and named[1].upper() not in ("AM", "PM", "BC", "AD"):
        return text[: named.start()], named[1]
    return text, None


def _micros_of(match: re.Match[str], outside: Exception) -> int:
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    half = (match[5] or "").lower() if match.re is _CLOCK else ""
    if half:
        if hour > 12:
            raise outside
        hour = hour % 12 + 12 * (half == "pm")
    fraction = round(Decimal("0." + (match[4] or "0")) * 1_000_000)
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second or fraction)):
        raise outside
    micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + int(fraction)
    if micros > DAY:
        raise outside
    return micros


def _read_day(text: str, order: str, invalid: Exception, outside: Exception) -> date:
    """Return the day that a text means; `order`: that of 01/02/2024, as DateStyle has it."""
    if re.search(r"\b(bc|ad)\b", text, re.IGNORECASE):
        raise said(*_BEYOND)
    words = re.findall(r"[A-Za-z]+", text)
    numbers = re.findall(r"\d+", text)
    months = [
        k for word in words for k, name in enumerate(MONTHS, 1) if len(word) > 2 and name.startswith(word.lower())
    ]
    unread = [
        word for word in words if not any(len(word) > 2 and name.startswith(word.lower()) for name in (*MONTHS, *DAYS))
    ]
    if unread or not re.fullmatch(r"[\w\s,./-]+", text):
        raise invalid
    if re.fullmatch(r"\d{8}", text):
        parts = (int(text[:4]), int(text[4:6]), int(text[6:]))
    elif re.fullmatch(r"\d{6}", text):
        parts = (_full_year(text[:2]), int(text[2:4]), int(text[4:]))
    elif re.fullmatch(r"\d{4}\.\d{3}", text):
        return date(int(text[:4]), 1, 1) + timedelta(days=int(text[5:]) - 1)
    elif months and len(numbers) == 2:
        first, second = numbers
        year, day = (first, second) if len(first) > 2 else (second, first)
        parts = (_full_year(year), months[0], int(day))
    elif re.fullmatch(r"\d{3,}[-/.]\d{1,2}[-/.]\d{1,2}", text):
        parts = (int(numbers[0]), int(numbers[1]), int(numbers[2]))
    elif re.fullmatch(r"\d{1,2}[-/.]\d{1,2}[-/.]\d{1,4}", text):
        year, month, day = (numbers[order.index(letter)] for letter in "YMD")
        parts = (_full_year(year), int(month), int(day))
        if parts[1] > 12:
            raise outside
    else:
        raise invalid
    try:
        return date(*parts)
    except ValueError:
        if parts[0] > 9999:
            raise said(*_BEYOND) from None
        raise outside from None


def _full_year(text: str) -> int:
    number = int(text)
    return number if len(text) > 2 else number + (2000 if number < 70 else 1900)


_UNITS = {
    "microsecond": (0, 0, 1), "millisecond": (0, 0, 1000), "second": (0, 0, 10**6), "minute": (0, 0, 60 * 10**6),
    "hour": (0, 0, 3600 * 10**6), "day": (0, 1, 0), "week": (0, 7, 0), "month": (1, 0, 0), "year": (12, 0, 0),
    "decade": (120, 0, 0), "century": (1200, 0, 0), "millennium": (12000, 0, 0),
}  # fmt: skip
_UNIT_WORDS = {
    "us": "microsecond", "usec": "microsecond", "ms": "millisecond", "msec": "millisecond", "s": "second", "sec": "second",
    "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week", "mon": "month", "y": "year", "yr": "year",
    "c": "century", "cent": "century", "centurie": "century", "millennia": "millennium", "mil": "millennium", "dec": "decade",
}  # fmt: skip
_QUANTITY = re.compile(
    r"\s*([+-]?)\s*(?:(\d+):(\d+)(?::(\d+(?:\.\d*)?))?|(\d+)-(\d*)(?![\d-])|(\d+\.?\d*|\.\d+)(?![\d.-])\s*([A-Za-z]*)(?![-+]))"
)
_ISO = re.compile(
    r"P(?:(-?[\d.]+)Y)?(?:(-?[\d.]+)M)?(?:(-?[\d.]+)W)?(?:(-?[\d.]+)D)?(?:T(?:(-?[\d.]+)H)?(?:(-?[\d.]+)M)?(?:(-?[\d.]+)S)?)?"
)


_ISO_NUMBERS = re.compile(r"P(\d{1,9})-(\d{1,9})-(\d{1,9})T(\d{1,9}):(\d{1,9}):(\d{1,9}(?:\.\d{1,9})?)")
"""An interval such as P0001-02-03T04:05:06."""


def read_interval(text: str, position: int | None, fields: str = "") -> ClockSpan:
    """Return the interval that a text means. `fields`: those of INTERVAL '1' DAY."""
    invalid = said("22007", f'invalid input syntax for type interval: "{text}"', position)
    rest, total = text.strip(), [Decimal(0)] * 3
    if parts := _ISO_NUMBERS.fullmatch(rest):
        rest = "P" + "".join(
            f"{part}{unit}" for part, unit in zip(parts.groups(), ("Y", "M", "DT", "H", "M", "S"), strict=True)
        )
    if rest.startswith("P"):
        iso = _ISO.fullmatch(rest)
        if iso is None or len(rest) < 3:
            raise invalid
        for value, unit in zip(iso.groups(), ("year", "month", "week", "day", "hour", "minute", "second"), strict=True):
            _add(total, Decimal(value or 0), unit)
        return _whole_interval(total)
    ago = rest.lower().endswith(" ago")
    rest = (rest[:-4] if ago else rest).removeprefix("@").strip()
    if not rest:
        raise invalid
    while rest:
        match = _QUANTITY.match(rest)
        if match is None or match.end() == 0:
            raise invalid
        behind = rest[match.end() :]
        if match[6] and int(match[6]) > 11:
            raise said("22015", f'interval field value out of range: "{text}"', position)
        for quantity, unit in _quantities(match, fields, behind):
            if unit not in _UNITS:
                raise invalid
            _add(total, -quantity if match[1] == "-" else quantity, unit)
        rest = behind.strip()
    read = _whole_interval(total)
    if 1 << 31 <= abs(read.months) < 12 << 31:
        raise said("22008", "interval out of range", position)
    if abs(read.months) >= 1 << 31 or abs(read.days) >= 1 << 31 or abs(read.micros) >= 1 << 63:
        raise said("22015", f'interval field value out of range: "{text}"', position)
    read = _truncated_to(read, fields.rsplit(maxsplit=1)[-1]) if fields else read
    return -read if ago else read


def _quantities(match: re.Match[str], fields: str, behind: str) -> list[tuple[Decimal, str]]:
    """Return the quantities of a piece of an interval's text, with their units."""
    if match[2] is not None:
        short = fields == "minute to second" and match[4] is None
        units = ("minute", "second") if short else ("hour", "minute", "second")
        return [(Decimal(value or 0), unit) for value, unit in zip(match.groups()[1:4], units, strict=False)]
    if match[5] is not None:
        return [(Decimal(match[5]), "year"), (Decimal(match[6] or 0), "month")]
    word = match[8].lower()
    plain = word.removesuffix("s") if word not in ("s", "ms", "us") else word
    unit = _UNIT_WORDS.get(plain, plain)
    if not word:
        unit = (
            "day"
            if re.match(r"\s*[+-]?\d+:\d", behind) or (fields.startswith("day to") and behind.strip())
            else fields.rpartition(" ")[2] or "second"
        )
    return [(Decimal(match[7]), unit)]


def _truncated_to(value: ClockSpan, unit: str) -> ClockSpan:
    if unit == "year":
        return ClockSpan(int(value.months / 12) * 12, 0, 0)
    if unit in ("month", "day"):
        return ClockSpan(value.months, value.days * (unit == "day"), 0)
    size = _UNITS[unit][2]
    return value if unit == "second" else ClockSpan(value.months, value.days, int(value.micros / size) * size)


def _add(total: list[Decimal], value: Decimal, unit: str) -> None:
    if len(value.as_tuple().digits) > 20 or value.adjusted() > 18:
        raise said("22008", "interval field value out of range")
    months, days, micros = _UNITS[unit]
    if months:
        whole = value * months
        total[0] += int(whole) if unit != "month" else int(value)
        if unit == "month":
            rest = (value - int(value)) * 30
            total[1] += int(rest)
            total[2] += (rest - int(rest)) * DAY
    elif days:
        whole = value * days
        total[1] += int(whole)
        total[2] += (whole - int(whole)) * DAY
    else:
        total[2] += value * micros


def _whole_interval(total: list[Decimal]) -> ClockSpan:
    return ClockSpan(int(total[0]), int(total[1]), round(total[2]))


# --- writing ----------------------------------------------------------------------------------------------------------


def write_moment(value: Any, type_: str, context: Any) -> str:
    """Return the text of a date, time, timestamp or interval in ISO style."""
    if isinstance(value, float):
        return "infinity" if value > 0 else "-infinity"
    if type_ == "interval":
        return mixed_interval(value)
    if type_ == "date":
        return str(value.isoformat())
    if type_ == "timetz":
        return _clock(value.micros) + _offset_text(value.offset)
    if type_ == "time":
        return _clock(((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond)
    if type_ == "timestamptz":
        local = value.replace(tzinfo=UTC).astimezone(context.zone)
        offset = seconds_of(local)
        return write_moment(local.replace(tzinfo=None), "timestamp", context) + _offset_text(offset)
    clock = _clock(((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond)
    return f"{value.date().isoformat()} {clock}"


def _signed_seconds(micros: int, padded: bool = False) -> str:
    seconds, fraction = divmod(abs(micros), 1_000_000)
    text = f"{seconds:02}" if padded else str(seconds)
    return text + (f".{fraction:06}".rstrip("0") if fraction else "")


def _counts(value: ClockSpan) -> list[int]:
    """Return years, months, days, hours, minutes, and microseconds that are left, each with its sign."""
    sign = -1 if value.micros < 0 else 1
    minutes, rest = divmod(abs(value.micros), 60_000_000)
    years = int(value.months / 12)
    return [years, value.months - 12 * years, value.days, sign * (minutes // 60), sign * (minutes % 60), sign * rest]


def _designated(value: ClockSpan) -> str:
    """Return an interval as ISO 8601 has it."""
    *counts, micros = _counts(value)
    parts = [f"{n}{letter}" if n else "" for n, letter in zip(counts, "YMDHM", strict=True)]
    seconds = f"{'-' * (micros < 0)}{_signed_seconds(micros)}S" if micros else ""
    clock = "".join(parts[3:]) + seconds
    return "P" + "".join(parts[:3]) + f"T{clock}" * bool(clock) if any(counts) or micros else "PT0S"


def _verbose(value: ClockSpan) -> str:
    """Return an interval in words; the first count decides whether it is written as one that is past."""
    *counts, micros = _counts(value)
    is_past = next((n < 0 for n in (*counts, micros) if n), False)
    words = ("year", "mon", "day", "hour", "min")
    signed = [(-n if is_past else n, word) for n, word in zip(counts, words, strict=True) if n]
    parts = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in signed]
    if micros:
        seconds = -micros if is_past else micros
        plural = "" if abs(seconds) == 1_000_000 else "s"
        parts.append(f"{'-' * (seconds < 0)}{_signed_seconds(seconds)} sec{plural}")
    return f"@ {' '.join(parts) or '0'}{' ago' * is_past}"


def _standard(value: ClockSpan) -> str:
    """Return an interval as SQL has it."""
    years, months, days, hours, minutes, micros = counts = _counts(value)
    has_months, has_days, has_clock = bool(value.months), bool(days), bool(value.micros)
    clock = f"{abs(hours)}:{abs(minutes):02}:{_signed_seconds(micros, padded=True)}"
    signs = {n > 0 for n in counts if n}
    if not signs:
        return "0"
    if len(signs) == 2 or has_months + (has_days or has_clock) == 2:
        signed = ("-" if n < 0 else "+" for n in (value.months, days, value.micros))
        first, second, third = signed
        return f"{first}{abs(years)}-{abs(months)} {second}{abs(days)} {third}{clock}"
    sign = "" if True in signs else "-"
    if has_months:
        return f"{sign}{abs(years)}-{abs(months)}"
    return f"{sign}{abs(days)} {clock}" if has_days else f"{sign}{clock}"


INTERVAL_STYLES = {"iso_8601": _designated, "postgres_verbose": _verbose, "sql_standard": _standard}


def mixed_interval(value: ClockSpan) -> str:
    """Return an interval's text: a positive count behind a negative one has its sign."""
    signs = [count < 0 for count in value if count]
    text = interval_text(value.months, value.days, value.micros)
    if not any(signs) or all(signs):
        return text
    pieces, negative = list[str](), False
    for piece in re.findall(r"-?\d+ \w+|-?\d\d.*", text):
        pieces.append(f"+{piece}" if negative and not piece.startswith("-") else piece)
        negative = piece.startswith("-")
    return " ".join(pieces)


def _clock(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}" + (
        f".{fraction:06}".rstrip("0") if fraction else ""
    )


def _offset_text(seconds: int) -> str:
    sign, seconds = "-" if seconds < 0 else "+", abs(seconds)
    rest = f":{seconds // 60 % 60:02}" if seconds % 3600 else ""
    return f"{sign}{seconds // 3600:02}{rest}" + (f":{seconds % 60:02}" if seconds % 60 else "")


# --- computing --------------------------------------------------------------------------------------------------------


def shifted(moment: Any, step: ClockSpan) -> Any:
    """Return a timestamp moved by an interval: by months, then days, then the rest."""
    if isinstance(moment, float):
        return moment
    months = moment.year * 12 + moment.month - 1 + step.months
    year, month = divmod(months, 12)
    if not 1 <= year <= 9999:
        raise beyond(year + (step.days + step.micros / DAY) / 365.2425)
    try:
        return moment.replace(
            year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1])
        ) + timedelta(days=step.days, microseconds=step.micros)
    except OverflowError:
        raise beyond(year + (step.days + step.micros / DAY) / 365.2425) from None


def age(later: datetime, earlier: datetime) -> ClockSpan:
    """Return the time between two timestamps in years, months and days, as age() does: field by field, where the month of the
    earlier lends its days."""
    if later < earlier:
        return -age(earlier, later)
    months = (later.year - earlier.year) * 12 + later.month - earlier.month
    days = later.day - earlier.day
    micros = (datetime.combine(EPOCH, later.time()) - datetime.combine(EPOCH, earlier.time())) // timedelta(
        microseconds=1
    )
    if micros < 0:
        micros, days = micros + DAY, days - 1
    if days < 0:
        days, months = days + monthrange(earlier.year, earlier.month)[1], months - 1
    return ClockSpan(months, days, micros)


_TRUNCATED = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade",
              "century", "millennium")  # fmt: skip
_PLURALS = {"seconds": "second", "minutes": "minute", "hours": "hour", "days": "day", "weeks": "week",
"months": "month", "years": "year",
            "sec": "second", "min": "minute", "mon": "month", "qtr": "quarter", "microsecond": "microseconds",
            "millisecond": "milliseconds", "usec": "microseconds",
            "ms": "milliseconds", "msec": "milliseconds", "us": "microseconds", "decades": "decade", "centuries": "century",
            "millennia": "millennium", "hr": "hour", "y": "year", "yr": "year", "h": "hour", "d": "day",
            "w": "week", "c": "century",
            "s": "second", "m": "minute"}  # fmt: skip


def unit_name(word: str) -> str:
    """Return the name of a unit of time as PostgreSQL's functions have it."""
    return _PLURALS.get(word.lower(), word.lower())


def truncated(unit: str, value: Any, words: str) -> Any:
    """Return a timestamp or interval cut to a unit. Raises 22023 in PostgreSQL's words, with the type's name in `words`."""
    name = unit_name(unit)
    if name not in _TRUNCATED:
        raise said("22023", f'unit "{unit}" not recognized for type {words}')
    if isinstance(value, float):
        return value
    if isinstance(value, ClockSpan):
        return _truncated_interval(name, value)
    start = datetime(value.year, value.month, value.day)
    year = value.year
    truncations = {
        "microseconds": value, "milliseconds": value.replace(microsecond=value.microsecond // 1000 * 1000),
        "second": value.replace(microsecond=0), "minute": value.replace(second=0, microsecond=0),
        "hour": value.replace(minute=0, second=0, microsecond=0), "day": start, "month": start.replace(day=1),
        "quarter": start.replace(month=(value.month - 1) // 3 * 3 + 1, day=1), "year": datetime(year, 1, 1),
        "decade": datetime(max(year // 10 * 10, 1), 1, 1), "century": datetime((year - 1) // 100 * 100 + 1, 1, 1),
        "millennium": datetime((year - 1) // 1000 * 1000 + 1, 1, 1),
    }  # fmt: skip
    return start - timedelta(days=start.weekday()) if name == "week" else truncations[name]


def _truncated_interval(name: str, value: ClockSpan) -> ClockSpan:
    if name == "week":
        raise said("0A000", 'unit "week" not supported for type interval')
    steps = {"quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12000, "month": 1}
    if name in steps:
        return ClockSpan(int(value.months / steps[name]) * steps[name], 0, 0)
    if name == "day":
        return ClockSpan(value.months, value.days, 0)
    size = {"hour": 3600 * 10**6, "minute": 60 * 10**6, "second": 10**6, "milliseconds": 1000, "microseconds": 1}[name]
    return ClockSpan(value.months, value.days, int(value.micros / size) * size)


_OF_TIME = {"microseconds", "milliseconds", "second", "minute", "hour", "epoch"}


def field_of(unit: str, value: Any, type_: str, words: str, context: Any) -> Decimal | None:
    """Return a field of a date, time, timestamp or interval, as extract() has it."""
    name = unit_name(unit)
    if name not in _FIELDS:
        raise said("22023", f'unit "{unit}" not recognized for type {words}')
    unsupported = said("0A000", f'unit "{unit}" not supported for type {words}')
    zoned = name.startswith("timezone")
    if (
        (zoned and type_ not in ("timestamptz", "timetz"))
        or (type_ == "date" and name in _OF_TIME - {"epoch"})
        or (type_ in ("time", "timetz") and name not in _OF_TIME and not zoned)
    ):
        raise unsupported
    if isinstance(value, float):
        if name in ("year", "decade", "century", "millennium", "epoch", "isoyear", "julian"):
            return Decimal("Infinity" if value > 0 else "-Infinity")
        return None
    if type_ == "interval":
        return _interval_field(name, value, unsupported)
    offset = 0
    if isinstance(value, TimeTz):
        offset, value = value.offset, to_time(value.micros)
    elif type_ == "timestamptz":
        local = value.replace(tzinfo=UTC).astimezone(context.zone)
        offset, value = seconds_of(local), local.replace(tzinfo=None)
    if zoned:
        return _zone_field(name, offset)
    if name == "epoch":
        return _epoch(value, offset)
    return _clock_field(name, value) if name in _OF_TIME else _day_field(name, value)


def _epoch(value: Any, offset: int) -> Decimal:
    if isinstance(value, datetime):
        return _seconds_text((value - EPOCH) / timedelta(microseconds=1) - offset * 10**6)
    if isinstance(value, date):
        return Decimal((value - EPOCH.date()).days * 86_400)
    return _seconds_text(((value.hour * 60 + value.minute) * 60 + value.second - offset) * 10**6 + value.microsecond)


def seconds_of(moment: datetime) -> int:
    """Return the seconds east of Greenwich of a moment in a zone."""
    offset = moment.utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


_FIELDS = {
    *_TRUNCATED,
    "epoch",
    "dow",
    "isodow",
    "doy",
    "isoyear",
    "julian",
    "timezone",
    "timezone_hour",
    "timezone_minute",
}


def _seconds_text(micros: float) -> Decimal:
    return Decimal(round(micros)).scaleb(-6)


def _zone_field(name: str, seconds: int) -> Decimal:
    return Decimal(
        {"timezone": seconds, "timezone_hour": int(seconds / 3600)}.get(name, int(math.fmod(seconds / 60, 60)))
    )


def _clock_field(name: str, value: Any) -> Decimal:
    micros = value.second * 10**6 + value.microsecond
    scaled = {
        "second": Decimal(micros).scaleb(-6),
        "milliseconds": Decimal(micros).scaleb(-3),
        "microseconds": Decimal(micros),
    }
    return scaled[name] if name in scaled else Decimal(value.hour if name == "hour" else value.minute)


def _day_field(name: str, value: Any) -> Decimal:
    year, (iso_year, week, iso_day) = value.year, value.isocalendar()
    if name == "julian":
        number = Decimal(value.toordinal() + 1_721_425)
        if isinstance(value, datetime) and (
            seconds := (value - datetime(year, value.month, value.day)) / timedelta(microseconds=1)
        ):
            return number + Decimal(seconds) / DAY
        return number
    return Decimal({
        "year": year, "month": value.month, "day": value.day, "quarter": (value.month + 2) // 3, "decade": year // 10,
        "century": (year + 99) // 100, "millennium": (year + 999) // 1000, "dow": iso_day % 7, "isodow": iso_day,
        "doy": value.timetuple().tm_yday, "week": week, "isoyear": iso_year,
    }[name])  # fmt: skip


def _interval_field(name: str, value: ClockSpan, unsupported: Exception) -> Decimal:
    years, months = int(value.months / 12), int(math.fmod(value.months, 12))
    clock = abs(value.micros)
    sign = -1 if value.micros < 0 else 1
    if name == "epoch":
        seconds = Decimal(years) * Decimal("31557600") + (months * 30 + value.days) * 86_400
        return (seconds + Decimal(value.micros).scaleb(-6)).quantize(Decimal("0.000001"))
    if name in ("second", "milliseconds", "microseconds"):
        micros = sign * (clock % (60 * 10**6))
        return Decimal(micros).scaleb({"second": -6, "milliseconds": -3, "microseconds": 0}[name])
    fields = {"year": years, "month": months, "day": value.days, "hour": sign * (clock // (3600 * 10**6)),
              "minute": sign * (clock // (60 * 10**6) % 60), "quarter": months // 3 + 1, "decade": int(years / 10),
              "century": int(years / 100), "millennium": int(years / 1000)}  # fmt: skip
    if name not in fields:
        raise unsupported
    return Decimal(fields[name])
