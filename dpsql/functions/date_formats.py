"""Dates as text with a literal format: strftime's letters, and PostgreSQL's to_char words translated to these letters.

Only letters are supported whose text is the same in every engine and in every locale; names are English.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
FINEST = {
    "Y": "year", "y": "year", "m": "month", "B": "month", "b": "month", "d": "day", "j": "day", "A": "day", "a": "day",
    "H": "hour", "I": "hour", "p": "hour", "M": "minute", "S": "second", "%": "year",
}  # fmt: skip
"""Supported letters, and the finest unit of time on which each depends."""
_UNITS = ("year", "month", "day", "hour", "minute", "second")
MOST_FORMAT = 100
_WORDS = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DDD": "%j", "DD": "%d", "HH24": "%H", "HH12": "%I", "HH": "%I", "MI": "%M",
    "SS": "%S", "AM": "%p", "PM": "%p", "Mon": "%b", "FMMonth": "%B", "Dy": "%a", "FMDay": "%A",
}  # fmt: skip
_WORD = re.compile("|".join(_WORDS) + r'|"([^"]*)"|[^A-Za-z"\\]')
_OTHER_WORD = re.compile("SSSS")
"""Words that begin with a supported one and mean something else: SSSS is the number of seconds past midnight."""


def unit_of(form: str) -> str | None:
    """Return the finest unit of time on which a format depends, None for an unsupported format."""
    letters = re.findall(r"%(.?)", form, re.DOTALL)
    if not 0 < len(form) <= MOST_FORMAT or any(letter not in FINEST for letter in letters):
        return None
    return max((FINEST[letter] for letter in letters), key=_UNITS.index, default="year")


def of_words(form: str) -> str | None:
    """Return a format of PostgreSQL's words in strftime's letters, None for unsupported words."""
    parts = []
    position = 0
    while position < len(form):
        match = _WORD.match(form, position)
        if match is None or _OTHER_WORD.match(form, position):
            return None
        word = match[0]
        parts.append(_WORDS.get(word) or (match[1] if word[0] == '"' else word).replace("%", "%%"))
        position = match.end()
    return "".join(parts)


def written(value: Any, form: str) -> str:
    """Return a date or timestamp as text in a format that `unit_of` supports."""
    time = value if isinstance(value, datetime) else datetime.combine(value, datetime.min.time())
    parts = {
        "Y": f"{time.year:04d}", "y": f"{time.year % 100:02d}", "m": f"{time.month:02d}", "B": _MONTHS[time.month - 1],
        "b": _MONTHS[time.month - 1][:3], "d": f"{time.day:02d}", "j": f"{time.timetuple().tm_yday:03d}",
        "A": _DAYS[time.weekday()], "a": _DAYS[time.weekday()][:3], "H": f"{time.hour:02d}",
        "I": f"{(time.hour + 11) % 12 + 1:02d}", "p": "PM" if time.hour >= 12 else "AM", "M": f"{time.minute:02d}",
        "S": f"{time.second:02d}", "%": "%",
    }  # fmt: skip
    return re.sub("%(.)", lambda letter: parts[letter[1]], form)
