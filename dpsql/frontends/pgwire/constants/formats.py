"""to_char, to_number, to_date and to_timestamp."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.moments import DAYS, MONTHS, ClockSpan, beyond, julian_day
from dpsql.frontends.pgwire.constants.resolve import function
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said

_ROMAN = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"),
          (5, "V"), (4, "IV"), (1, "I"))  # fmt: skip
_NUMBER_PIECES = re.compile(
    r'"((?:[^"\\]|\\.|\\$)*)(?:"|$)|(FM|fm|PR|pr|MI|mi|PL|pl|SG|sg|RN|rn|TH|th|EEEE|eeee|[90.,DdGgSsLlVv])|\\(")|(.)',
    re.DOTALL,
)


def _roman(number: int) -> str:
    if not 0 < number < 4000:
        return "#" * 15
    text = ""
    for size, sign in _ROMAN:
        text += sign * (number // size)
        number %= size
    return text


def _ending(number: str) -> str:
    if len(number) > 1 and number[-2] == "1":
        return "th"
    return {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")


@function(
    "to_char(int4, text) text; to_char(int8, text) text; to_char(numeric, text) text; "
    "to_char(float8, text) text; to_char(float4, text) text",
    typed=True,
)
def _number_to_char(context: t.Context, types: tuple[str, ...], value: Any, form: str | None) -> str | None:
    if value is None or form is None:
        return None
    matches = list(_NUMBER_PIECES.finditer(form))
    pieces = [(m[1], m[2] if m[2] == "th" else (m[2] or "").upper(), m[3] or m[4]) for m in matches]
    marks = [mark for _, mark, _ in pieces]
    if not math.isfinite(value):
        return _filled_up(t.write(value, types[0], context), marks)
    if "RN" in marks:
        text = _roman(int(value))
        text = text.lower() if any(m[2] == "rn" for m in matches) else text
        return text if "FM" in marks or text.startswith("#") else text.rjust(15)
    if "EEEE" in marks:
        return _scientific(Decimal(value), marks)
    if not isinstance(value, float):
        return _filled(Decimal(value), pieces, marks)
    if "V" in marks:
        return _filled(Decimal(f"{value:.{6 if types[0] == 'float4' else 15}g}"), pieces, marks)
    digits = (6 if types[0] == "float4" else 15) - len(str(int(abs(value))))  # what is behind them is not written
    decimal_count = max(min(_counts(marks)[1], digits), 0)
    return _filled(Decimal(f"{value:.{decimal_count}f}"), pieces, marks, decimal_count)


def _filled_up(text: str, marks: list[str]) -> str:
    """Return the name of what is no number in a format, or signs in place of its digits where it is too long."""
    (before, behind), name = _counts(marks), text.lstrip("-")
    if len(name) <= before:
        return text.rjust(before + 1)
    return ("-" if text != name else " ") + "#" * before + f".{'#' * behind}" * bool(behind)


def _scientific(value: Decimal, marks: list[str]) -> str:
    decimals = _counts(marks)[1]
    text = f"{value:.{decimals}e}"
    mantissa, _, exponent = text.partition("e")
    return f"{'' if value < 0 else ' '}{mantissa}e{exponent[0]}{int(exponent[1:]):02}"


def _counts(marks: list[str]) -> tuple[int, int]:
    point = next((k for k, mark in enumerate(marks) if mark in (".", "D", "V")), len(marks))
    return sum(mark in ("9", "0") for mark in marks[:point]), sum(mark in ("9", "0") for mark in marks[point:])


class _Filler:
    """Writes the digits of one number into a format; "\\0" stands where a sign may be, before the first digit."""

    def __init__(self, value: Decimal, marks: list[str], decimal_count: int | None) -> None:
        point = next((k for k, mark in enumerate(marks) if mark in (".", "D")), len(marks))
        before, behind = _counts(marks)
        self.fill, self.in_fraction = "FM" in marks, False
        if "V" in marks:
            value, before, behind, point = value.scaleb(behind), before + behind, 0, len(marks)
        rounded = abs(value).quantize(
            Decimal(1).scaleb(-(behind if decimal_count is None else decimal_count)), "ROUND_HALF_UP"
        )
        self.negative = value.is_signed() and (bool(rounded) or not value)
        whole, _, fraction = format(rounded, "f").partition(".")
        self.whole, self.has_point = whole, decimal_count != 0 or behind == 0
        decimals, is_over = [mark for mark in marks[:point] if mark in ("9", "0")], len(whole) > before
        whole = "" if whole == "0" and behind and "0" not in decimals else whole
        first_zero = decimals.index("0") if "0" in decimals else before
        digits = ["#"] * before if is_over else list(whole.rjust(before))
        self.digits = iter("0" if sign == " " and k >= first_zero else sign for k, sign in enumerate(digits))
        fraction = "#" * behind if is_over else fraction
        if self.fill:
            behind_places = [mark for mark in marks[point:] if mark in ("9", "0")]
            last_zero = max((k for k, mark in enumerate(behind_places) if mark == "0"), default=-1)
            fraction = fraction[: max(len(fraction.rstrip("0")), last_zero + 1)]
        self.fraction = iter(fraction)
        self.started = False

    def write(self, mark: str) -> str:
        """Return what stands for a mark of the format."""
        blank = "" if self.fill else " "
        if mark in ("9", "0"):
            sign = next(self.fraction, "") if self.in_fraction else next(self.digits)
            return blank if sign == " " else self._begun() + sign
        if mark in (".", "D"):
            self.in_fraction = True
            return self._begun() + "." * self.has_point
        if mark in (",", "G"):
            return "," if self.started else blank
        if mark in ("L", "V"):
            return blank * (mark == "L")
        if mark in ("TH", "th"):
            ending = "" if self.negative else _ending(self.whole)
            return ending if mark == "th" else ending.upper()
        return f"\1{mark}" if mark in ("S", "SG", "MI", "PL") else ""

    def _begun(self) -> str:
        started, self.started = self.started, True
        return "" if started else "\0"


def _filled(value: Decimal, pieces: list[Any], marks: list[str], decimal_count: int | None = None) -> str:
    filler = _Filler(value, marks, decimal_count)
    text = "".join(
        plain or (filler.write(mark) if literal is None else re.sub(r"\\(.)", r"\1", literal))
        for literal, mark, plain in pieces
    )
    return _signed(text, filler.negative, {"S", "MI", "PL", "SG", "PR"} & set(marks), filler.fill)


def _signed(text: str, negative: bool, signs: set[str], fill: bool) -> str:
    blank = "" if fill else " "
    if not signs:
        return text.replace("\0", "-" if negative else blank)
    if "PR" in signs:
        return text.replace("\0", "<" if negative else blank) + (">" if negative else blank)
    if "S" in signs:
        sign, leading = "-" if negative else "+", text.startswith("\1S")
        text = text.replace("\1S", "")
        return text.replace("\0", sign) if leading else text.replace("\0", "") + sign
    text = text.replace("\1MI", "-" if negative else blank).replace("\1SG", "-" if negative else "+")
    pl_sign = ("-" if negative else blank) if signs == {"PL"} else ""
    return text.replace("\1PL", blank if negative else "+").replace("\0", pl_sign)


# --- dates ------------------------------------------------------------------------------------------------------------

_DATE_MARKS = (
    "HH24", "HH12", "SSSSS", "SSSS", "Y,YYY", "YYYY", "IYYY", "MONTH", "Month", "month", "IDDD", "A.M.", "P.M.",
    "a.m.", "p.m.", "TZH", "TZM",
    "DAY", "Day", "day", "DDD", "MON", "Mon", "mon", "YYY", "IYY", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "HH",
    "MI", "SS", "MS", "US", "AM",
    "PM", "am", "pm", "YY", "IY", "MM", "DY", "Dy", "dy", "DD", "ID", "WW", "IW", "CC", "RM", "rm", "TZ", "tz",
    "OF", "TH", "th", "FM", "TM", "FX",
    "B.C.", "A.D.", "BC", "AD", "bc", "ad", "Y", "I", "D", "W", "J", "Q",
)  # fmt: skip
_DATE_PIECES = re.compile(
    r'"((?:[^"\\]|\\.|\\$)*)(?:"|$)|(' + "|".join(re.escape(mark) for mark in _DATE_MARKS) + r")|(.)", re.DOTALL
)
_LOWER_MARKS = re.compile(
    "|".join(
        (
            "hh24",
            "hh12",
            "yyyy",
            "mi",
            "ss",
            "dd",
            "mm",
            "hh",
            "ms",
            "us",
            "yy",
            "ddd",
            "iyyy",
            "iw",
            "ww",
            "id",
            "q",
            "j",
            "cc",
        )
    )
)
_RM = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")


def _pieces(form: str) -> list[tuple[str, str, str]]:
    """Return the pieces of a format: a quoted text, a mark or another sign each."""
    upper = "".join(
        part if k % 2 else _LOWER_MARKS.sub(lambda m: m[0].upper(), part)
        for k, part in enumerate(re.split(r'(?s)("(?:[^"\\]|\\.|\\$)*(?:"|$)|[Mm]onth|[Dd]ay|[Mm]on|[Dd]y)', form))
    )
    return [(m[1], m[2] or "", m[3] or "") for m in _DATE_PIECES.finditer(upper)]


@function("to_char(timestamp, text) text")
def _timestamp_to_char(value: Any, form: str) -> str | None:
    return None if isinstance(value, float) or not form else _written(value, form, 0, "", _numbers(value))


@function("to_char(timestamptz, text) text", context=True)
def _timestamptz_to_char(context: t.Context, value: Any, form: str) -> str | None:
    if isinstance(value, float) or not form:
        return None
    local = value.replace(tzinfo=UTC).astimezone(context.zone)
    offset, name = int(local.utcoffset().total_seconds()), local.tzname() or ""
    return _written(local.replace(tzinfo=None), form, offset, name, _numbers(local))


@function("to_char(interval, text) text")
def _interval_to_char(value: ClockSpan, form: str) -> str | None:
    return _written(None, form, 0, "", _numbers_of_span(value)) if form else None


def _written(value: datetime | None, form: str, offset: int, zone: str, numbers: dict[str, tuple[int, int]]) -> str:
    out, fill, last = list[str](), False, ""
    for literal, mark, plain in _pieces(form):
        if literal is not None:
            out.append(re.sub(r"\\(.)", r"\1", literal))
        elif plain:
            out.append(plain)
        elif mark in ("FM", "TM"):
            fill = True
        elif mark == "FX":
            continue
        elif mark in ("TH", "th"):
            out.append(_ending(last) if mark == "th" else _ending(last).upper())
        else:
            text = _field(value, mark, fill, offset, zone, numbers)
            last = text.strip() or "0"
            out.append(text)
            fill = False
    return "".join(out)


def _clock_numbers(hour: int, minute: int, second: int, micros: int) -> dict[str, tuple[int, int]]:
    """Return the numbers of a time of day, or of an interval's, by their marks, each with its least digits."""
    sign = -1 if min(hour, minute, second, micros) < 0 else 1
    half = (sign * (abs(hour) % 12 or 12), 2)
    numbers = {"HH24": (hour, 2), "HH12": half, "HH": half, "MI": (minute, 2), "SS": (second, 2), "US": (micros, 6)}
    past = ((hour * 60 + minute) * 60 + second, 0)
    return {**numbers, "MS": (sign * (abs(micros) // 1000), 3), "SSSS": past, "SSSSS": past}


def _year_numbers(year: int, iso_year: int) -> dict[str, tuple[int, int]]:
    numbers = {"YYYY": (year, 4), "YYY": (year % 1000, 3), "YY": (year % 100, 2), "Y": (year % 10, 1)}
    iso = {"IYYY": (iso_year, 4), "IYY": (iso_year % 1000, 3), "IY": (iso_year % 100, 2), "I": (iso_year % 10, 1)}
    return numbers | iso


def _numbers(value: datetime) -> dict[str, tuple[int, int]]:
    """Return the numbers of a timestamp by their marks, each with its least digits."""
    (iso_year, week, iso_day), day_of_year = value.isocalendar(), value.timetuple().tm_yday
    return {
        **_clock_numbers(value.hour, value.minute, value.second, value.microsecond), **_year_numbers(value.year, iso_year),
        "MM": (value.month, 2), "DD": (value.day, 2), "DDD": (day_of_year, 3), "D": (iso_day % 7 + 1, 1), "ID": (iso_day, 1),
        "IDDD": ((week - 1) * 7 + iso_day, 3), "W": ((value.day - 1) // 7 + 1, 1), "WW": ((day_of_year - 1) // 7 + 1, 2),
        "IW": (week, 2), "CC": ((value.year + 99) // 100, 2), "J": (value.toordinal() + 1_721_425, 0),
        "Q": ((value.month + 2) // 3, 1),
    }  # fmt: skip


def _numbers_of_span(value: ClockSpan) -> dict[str, tuple[int, int]]:
    """Return the numbers of an interval by their marks. What belongs to days of a calendar is not among them."""
    sign, (seconds, micros) = (-1 if value.micros < 0 else 1), divmod(abs(value.micros), 1_000_000)
    clock = (sign * (seconds // 3600), sign * (seconds // 60 % 60), sign * (seconds % 60), sign * micros)
    years = int(value.months / 12)
    return {
        **_clock_numbers(*clock), **_year_numbers(years, years), "MM": (value.months - 12 * years, 2), "DD": (value.days, 2),
        "DDD": (value.months * 30 + value.days, 3),
    }  # fmt: skip


def _field(
    value: datetime | None, mark: str, fill: bool, offset: int, zone: str, numbers: dict[str, tuple[int, int]]
) -> str:
    if mark in numbers:
        number, width = numbers[mark]
        return str(number) if fill else f"{number:0{width + (number < 0 and mark != 'DD')}}"
    year, hour, micros = numbers["YYYY"][0], numbers["HH24"][0], numbers["US"][0]
    half = "AM" if hour % 24 < 12 else "PM"
    if mark.startswith("FF"):
        return f"{micros:06}"[: int(mark[2])]
    if mark == "Y,YYY":
        return f"{year // 1000},{year % 1000:03}"
    if mark.upper().replace(".", "") in ("AM", "PM"):
        text = half if "." not in mark else f"{half[0]}.{half[1]}."
        return text.lower() if mark[0].islower() else text
    if value is None and mark in ("CC", "Q", "J", "W", "WW", "IW", "IDDD", "RM", "rm"):
        raise Elsewhere
    if value is None:
        hint = "Intervals are not tied to specific calendar dates."
        raise said("22007", "invalid format specification for an interval value", None, hint)
    month, day_name, month_name = value.month, DAYS[value.isoweekday() % 7], MONTHS[value.month - 1]
    names = {
        "DAY": day_name.upper(),
        "Day": day_name.title(),
        "day": day_name,
        "MONTH": month_name.upper(),
        "Month": month_name.title(),
        "month": month_name,
    }
    if mark in names:
        return names[mark] if fill else names[mark].ljust(9)
    short = {"DY": day_name[:3].upper(), "Dy": day_name[:3].title(), "dy": day_name[:3], "MON": month_name[:3].upper(),
             "Mon": month_name[:3].title(), "mon": month_name[:3]}  # fmt: skip
    if mark in short:
        return short[mark]
    if mark in ("RM", "rm"):
        roman = _RM[month - 1] if mark == "RM" else _RM[month - 1].lower()
        return roman if fill else roman.ljust(4)
    if mark.upper().replace(".", "") in ("BC", "AD"):
        return mark.replace("B", "A").replace("C", "D").replace("b", "a").replace("c", "d")
    sign, seconds = "-" if offset < 0 else "+", abs(offset)
    clock = {"TZ": zone.upper(), "tz": zone.lower(), "TZH": f"{sign}{seconds // 3600:02}", "TZM": f"{seconds // 60 % 60:02}",
             "OF": f"{sign}{seconds // 3600:02}" + (f":{seconds // 60 % 60:02}" if seconds % 3600 else "")}  # fmt: skip
    return clock[mark]


_WIDTHS = {"YYYY": 4, "IYYY": 4, "YYY": 3, "YY": 2, "Y": 1, "MM": 2, "DD": 2, "DDD": 3, "HH24": 2, "HH12": 2,
"IYY": 3, "IY": 2, "I": 1, "IDDD": 3, "W": 1, "HH": 2, "MI": 2, "SS": 2,
           "MS": 3, "US": 6, "Q": 1, "D": 1, "WW": 2, "IW": 2, "ID": 1, "CC": 2, "J": 7, "SSSS": 5, "SSSSS": 5}  # fmt: skip


class _Reader:
    """Reads the fields of a text by a format."""

    def __init__(self, text: str, form: str) -> None:
        self.rest, self.fields, self.half = text, dict[str, int](), ""
        self.offset: int | None = None
        pieces = [piece for piece in _pieces(form) if piece[1] not in ("FM", "FX", "TM", "TH", "th")]
        for number, (literal, mark, plain) in enumerate(pieces):
            if mark:
                self.rest = self.rest.lstrip()
                if not self.rest:
                    break
                follows = number + 1 < len(pieces) and bool(pieces[number + 1][1])
                if not (self._name(mark) or self._zone(mark)):
                    self._number(mark, follows)
            elif plain and not plain.isalnum():
                self._sign(plain)
            else:
                self.rest = self.rest[len(literal or plain) :]

    def _sign(self, plain: str) -> None:
        if plain.isspace():
            self.rest = self.rest.lstrip()
        elif self.rest[:1] == plain or (self.rest and not self.rest[0].isalnum() and self.rest[0] not in "+-"):
            self.rest = self.rest[1:]

    def _name(self, mark: str) -> bool:
        upper, rest = mark.upper(), self.rest
        if upper in ("DAY", "DY"):
            self.rest = re.sub(r"^[A-Za-z.]+", "", rest)
        elif upper.replace(".", "") in ("AM", "PM"):
            self.half, self.rest = rest[0].lower(), rest[len(mark) :]
        elif upper in ("MONTH", "MON"):
            size = None if upper == "MONTH" else 3
            number = next((k for k, month in enumerate(MONTHS, 1) if rest.lower().startswith(month[:size])), 0)
            if not number:
                word = re.match(r"[A-Za-z.]+", rest)
                words = f'invalid value "{rest[: len(mark)] if word is None else word[0]}" for "{mark}"'
                hint = "The given value did not match any of the allowed values for this field."
                raise said("22007", words, None, hint)
            self.fields["MM"], self.rest = number, rest[len(MONTHS[number - 1][:size]) :]
        else:
            return False
        return True

    def _zone(self, mark: str) -> bool:
        if mark not in ("TZH", "TZM"):
            return False
        match = re.match(r"[+-]?\d{1,2}", self.rest)
        if match is not None:
            self.offset = (self.offset or 0) + int(match[0]) * (3600 if mark == "TZH" else 60)
            self.rest = self.rest[match.end() :]
        return True

    def _number(self, mark: str, follows: bool) -> None:
        width = 6 if mark.startswith("FF") else _WIDTHS.get(mark)
        if width is None:
            raise Elsewhere
        match = re.match(rf"[+-]?\d{{1,{width}}}" if follows else r"[+-]?\d+", self.rest)
        if follows and len(self.rest) < width:
            raise said("22007", f'source string too short for "{mark}" formatting field')
        if match is None or (follows and match.end() < width):
            raise said("22007", f'invalid value "{self.rest[:width]}" for "{mark}"', None, "Value must be an integer.")
        digits, self.rest = match[0], self.rest[match.end() :]
        if len(digits) > 11 or abs(int(digits)) >= t.WHOLE["int4"]:
            raise said("22008", f'value for "{mark}" in source string is out of range')
        mark = "US" if mark.startswith("FF") else mark
        self.fields[mark] = int(digits.ljust(width, "0")[:width]) if mark in ("MS", "US") else int(digits)
        if mark in ("YY", "YYY", "Y", "IYY", "IY", "I"):
            year = int(digits)
            full = year if len(digits) > 3 else year + (1900 if len(digits) < 3 and year >= 70 else 2000)
            self.fields["IYYY" if mark[0] == "I" else "YYYY"] = full


def _parsed(text: str, form: str) -> tuple[datetime, int | None]:
    reader = _Reader(text, form)
    return _moment(reader.fields, reader.half, text), reader.offset


def _moment(fields: dict[str, int], half: str, text: str) -> datetime:
    outside = said("22008", f'date/time field value out of range: "{text}"')
    hour = fields.get("HH24", fields.get("HH12", fields.get("HH", 0)))
    if half or "HH12" in fields or "HH" in fields:
        if not 1 <= hour <= 12 and "HH24" not in fields and ("HH12" in fields or "HH" in fields):
            raise said(
                "22007",
                f'hour "{hour}" is invalid for the 12-hour clock',
                None,
                "Use the 24-hour clock, or give an hour between 1 and 12.",
            )
        hour = hour % 12 + 12 * (half == "p") if half else hour % 12
    micros = fields.get("MS", 0) * 1000 + fields.get("US", 0)
    seconds = fields.get("SSSS", fields.get("SSSSS", 0))
    if fields.get("MI", 0) > 59 or fields.get("SS", 0) > 59 or hour > 23 or seconds > 86_400:
        raise outside
    try:
        day = _day(fields)
        return datetime.combine(day, time(hour, fields.get("MI", 0), fields.get("SS", 0))) + timedelta(
            seconds=seconds, microseconds=micros
        )
    except OverflowError:
        raise beyond(10_000) from None
    except ValueError:
        raise outside from None


def _day(fields: dict[str, int]) -> date:
    """Return the day that the fields of a text are of. Raises ValueError for one that there is not."""
    iso, plain = {"IYYY", "IW", "ID", "IDDD"} & fields.keys(), {"YYYY", "MM", "DD", "DDD", "WW", "W"} & fields.keys()
    if iso and plain:
        hint = "Do not mix Gregorian and ISO week date conventions in a formatting template."
        raise said("22007", "invalid combination of date conventions", None, hint)
    if "J" in fields:
        return julian_day(fields["J"]).date()
    year = fields.get("IYYY" if iso else "YYYY", 0)
    if not year and fields.keys() & {"DDD", "WW"}:
        raise said("22007", "cannot calculate day of year without year information")
    if not 1 <= year <= 9999:
        raise beyond(year, "date")
    if iso:
        first = date.fromisocalendar(year, fields.get("IW", 1), fields.get("ID", 1) or 1)
        return first + timedelta(days=fields["IDDD"] - 1) if "IDDD" in fields else first
    number = fields.get("DDD", (fields["WW"] - 1) * 7 + 1 if "WW" in fields else 0)
    if number:
        if not 0 < number <= 366:
            raise ValueError
        return date(year, 1, 1) + timedelta(days=number - 1)
    return date(year, fields.get("MM") or 1, fields.get("DD") or (fields.get("W", 1) - 1) * 7 + 1)


function("to_date(text, text) date")(lambda v, form: _parsed(v, form)[0].date())


@function("to_timestamp(text, text) timestamptz", context=True)
def _to_timestamp(context: t.Context, text: str, form: str) -> Any:
    moment, offset = _parsed(text, form)
    if offset is not None:
        return moment - timedelta(seconds=offset)
    return moment.replace(tzinfo=context.zone).astimezone(UTC).replace(tzinfo=None)


@function("to_number(text, text) numeric")
def _to_number(text: str, form: str) -> Decimal:
    marks = [(m[2] or "").upper() for m in _NUMBER_PIECES.finditer(form)]
    if "RN" in marks or "EEEE" in marks:
        raise said("0A000", '"RN" not supported for input' if "RN" in marks else '"EEEE" not supported for input')
    if {"V", "TH"} & set(marks):
        raise Elsewhere
    before, behind = _counts(marks)
    negative = "-" in text or ("PR" in marks and "<" in text)
    digits = re.sub(r"[^0-9.]", "", text)
    whole, _, fraction = digits.partition(".")
    if behind == 0 and "." in digits and "." not in marks and "D" not in marks:
        fraction = ""
    if not whole and not fraction:
        raise said("22P02", 'invalid input syntax for type numeric: " "')
    number = Decimal(f"{whole[:before] or 0}.{fraction[:behind]}" if fraction[:behind] else whole[:before] or "0")
    return -number if negative else number
