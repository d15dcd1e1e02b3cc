"""PostgreSQL's run-time settings that clients read or set. None of them changes an answer.

`dp.` options are not here: they belong to the session.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from zoneinfo import available_timezones

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.constants.tokens import said

SERVER_VERSION = "16.14"
"""The version whose catalogs are mirrored (catalog/postgresql.json)."""

_LISTED = json.loads(files("dpsql.frontends.pgwire").joinpath("settings.json").read_text(encoding="utf-8"))["settings"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting as pg_settings has it (settings.json, written by catalog/build.py), with its value in a new connection here."""

    name: str
    value: str
    unit: str | None
    category: str
    short_desc: str
    extra_desc: str | None
    context: str
    vartype: str
    min_val: str | None
    max_val: str | None
    enumvals: list[str] | None

    def written(self, value: str) -> str:
        """Return a value as SHOW has it: with the largest unit of which it is a multiple."""
        if self.unit is None or float(value) <= 0:
            return value
        for unit, size in _UNITS[self.unit in _TIMES].items():
            number = float(value) * _SIZES[self.unit] / size
            if number >= 1 and number.is_integer():
                return f"{int(number)}{unit}"
        return f"{value}{self.unit}"

    def number(self, value: str) -> str:
        """Return a number, which may have a unit, in the unit of the setting. Raises setting_value, setting_range."""
        match = _NUMBER.fullmatch(value)
        if match is None or (match[2] is not None and match[2] not in _UNITS[self.unit in _TIMES]):
            raise refuse("setting_value", name=self.name, value=value)
        number = float(match[1])
        if match[2] is not None:
            if self.unit is None:
                raise refuse("setting_value", name=self.name, value=value)
            number *= _SIZES[match[2]] / _SIZES[self.unit]
        if self.vartype == "integer" and abs(number) < 2**63:
            number = round(number)
        if self.vartype == "integer" and not -(2**31) <= number < 2**31:
            raise refuse("setting_value", name=self.name, value=value, hint="Value exceeds integer range.")
        if not float(self.min_val or "-inf") <= number <= float(self.max_val or "inf"):
            amount = (
                f"{number:g}" + f" {self.unit}" * bool(self.unit)
                if isinstance(number, float)
                else (f"{number}" + f" {self.unit}" * bool(self.unit))
            )
            raise refuse("setting_range", name=self.name, value=amount, low=self.min_val, high=self.max_val)
        return f"{number:g}" if isinstance(number, float) else str(number)


_UNITS: tuple[dict[str, float], dict[str, float]] = (
    {"TB": 1 << 40, "GB": 1 << 30, "MB": 1 << 20, "kB": 1 << 10, "B": 1},
    {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1_000, "ms": 1, "us": 0.001},
)
"""Units of memory in bytes, and of times in milliseconds, the largest first."""
_TIMES = frozenset(_UNITS[1])
_SIZES = {**_UNITS[0], **_UNITS[1], "8kB": 8 << 10}
_NUMBER = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)\s*([kMGT]?B|us|ms|s|min|h|d)?\s*")

_OURS = {
    "client_encoding": "UTF8", "datestyle": "ISO, MDY", "default_text_search_config": "pg_catalog.english",
    "default_transaction_read_only": "on", "jit": "off", "lc_messages": "C", "log_timezone": "UTC", "server_encoding": "UTF8",
    "server_version": SERVER_VERSION, "server_version_num": "160014", "timezone": "UTC", "transaction_read_only": "on",
}  # fmt: skip
"""Settings whose value differs from the one that a PostgreSQL server is built with."""
SETTINGS = {row[0].lower(): Setting(row[0], _OURS.get(row[0].lower(), row[1] or ""), *row[2:]) for row in _LISTED}
"""Every setting that pg_settings lists, by its name in lower case."""
_UNLISTED = {
    "is_superuser": "off", "lc_collate": "C", "lc_ctype": "C", "role": "none", "seed": "unavailable", "session_authorization": "",
}  # fmt: skip
"""Settings that SHOW knows and pg_settings does not list, or does not list any more."""
DEFAULTS = {**{key: setting.value for key, setting in SETTINGS.items()}, **_UNLISTED}
"""The value of each setting in a new connection, in the unit of the setting."""
_FIXED = {
    "internal": "changed", "postmaster": "changed without restarting the server", "sighup": "changed now",
    "backend": "set after connection start", "superuser-backend": "set after connection start",
}  # fmt: skip
"""What cannot be done with a setting of each context."""
_ONLY = {
    "client_encoding": "UTF8", "transaction_read_only": "on", "standard_conforming_strings": "on",
}  # fmt: skip
"""Settings that accept this value only: another would require different behaviour, so it is refused rather than ignored."""

REPORTED = {
    "application_name": "application_name", "client_encoding": "client_encoding", "datestyle": "DateStyle",
    "default_transaction_read_only": "default_transaction_read_only", "in_hot_standby": "in_hot_standby",
    "integer_datetimes": "integer_datetimes", "intervalstyle": "IntervalStyle", "is_superuser": "is_superuser",
    "server_encoding": "server_encoding", "server_version": "server_version", "timezone": "TimeZone",
    "session_authorization": "session_authorization", "standard_conforming_strings": "standard_conforming_strings",
}  # fmt: skip
"""Settings whose changes are reported to the client at once (GUC_REPORT), and their spelling in that message."""


_OWN_NAME = re.compile(r"[^\W\d][\w$]*(?:\.[^\W\d][\w$]*)+")
MOST_OWN = 100
"""Limit on the settings with a dot in their name that a connection may invent."""
LONGEST_NAME, LONGEST_VALUE = 128, 1_000


class Settings:
    """The settings of one connection; `snapshot` and `restore` make SET part of a transaction.

    A mapping that was handed out never changes, so savepoints without a SET between them share one.
    """

    encrypted = False
    """Whether the connection is."""

    def __init__(self, user: str) -> None:
        self._first = {"session_authorization": user}
        self._values = self._first

    def start(self, name: str, value: str) -> None:
        """Set a value given at connect, to which RESET returns."""
        self.set(name, value)
        self._first = {**self._first, setting_key(name): self._values[setting_key(name)]}

    def set(self, name: str, value: str) -> None:
        """Change one setting; an unknown name with a dot is stored, as PostgreSQL does. Raises setting_fixed, setting_privilege,
        setting_unknown, setting_value, setting_boolean, setting_range, wire_limit."""
        key = setting_key(name)
        context = SETTINGS[key].context if key in SETTINGS else "internal" if key in _UNLISTED else "user"
        if context in _FIXED and key != "seed":
            raise refuse("setting_fixed", name=name, change=_FIXED[context])
        if context == "superuser":
            raise refuse("setting_privilege", name=name)
        if key not in DEFAULTS and "." not in key:
            raise refuse("setting_unknown", name=name)
        if "." in key and not _OWN_NAME.fullmatch(key):
            raise said("42602", f'invalid configuration parameter name "{name}"')
        value = _in_force(key, value)
        if len(key) > LONGEST_NAME:
            raise refuse("setting_value", name=name[:LONGEST_NAME], value=value)
        if "." in key and key not in self._values and sum("." in present for present in self._values) >= MOST_OWN:
            raise refuse("wire_limit", most=MOST_OWN, what="settings of your own")
        self._values = {**self._values, key: value[:LONGEST_VALUE]}

    def note(self, key: str, value: str) -> None:
        """Keep what SHOW has of a setting that SET does not change as such."""
        self._values = {**self._values, key: value}

    def reset(self, name: str) -> None:
        """Reset one setting to its value at connect, or every setting ("all"). Raises setting_unknown."""
        key = setting_key(name)
        context = SETTINGS[key].context if key in SETTINGS else ""
        if context in _FIXED:
            raise refuse("setting_fixed", name=name, change=_FIXED[context])
        if key == "all":
            self._values = self._first
        elif key in self._first:
            self._values = {**self._values, key: self._first[key]}
        elif key in DEFAULTS or "." in key:
            self._values = {other: value for other, value in self._values.items() if other != key}
        else:
            raise refuse("setting_unknown", name=name)

    def stored(self, key: str) -> str:
        """Return the value of one setting in its unit; "" for one that does not exist."""
        if key == "transaction_isolation" and key not in self._values:
            key = "default_transaction_isolation"
        return self._values.get(key, DEFAULTS.get(key, ""))

    def get(self, name: str) -> str:
        """Return the value of one setting as SHOW has it. Raises setting_unknown."""
        key = setting_key(name)
        if key not in self._values and key not in DEFAULTS:
            raise refuse("setting_unknown", name=name)
        value = self.stored(key)
        return SETTINGS[key].written(value) if key in SETTINGS else value

    def all(self) -> dict[str, str]:
        """Return the value of every setting as SHOW has it."""
        return {key: self.get(key) for key in sorted({*DEFAULTS, *self._values})}

    def snapshot(self) -> dict[str, str]:
        """Return the values that differ from those of a new connection, for `restore`."""
        return self._values

    def restore(self, values: dict[str, str]) -> None:
        """Restore the values of a snapshot."""
        self._values = values

    def statement_seconds(self) -> float | None:
        """Return the limit on the time of a statement in seconds; None without a limit (statement_timeout = 0)."""
        return int(self.stored("statement_timeout")) / 1000 or None

    def hears(self, severity: str) -> bool:
        """Return whether the client wants messages of a severity, NOTICE or WARNING (client_min_messages)."""
        least = self.stored("client_min_messages")
        return least != "error" and (severity == "WARNING" or least != "warning")

    def reported(self) -> dict[str, str]:
        """Return the settings that clients follow, by the names that they know."""
        return {spelt: self.stored(key) for key, spelt in REPORTED.items()}


def _in_force(key: str, value: str) -> str:
    """Return the value of a setting as it is kept. Raises setting_value, setting_boolean, setting_range."""
    setting = SETTINGS.get(key)
    if setting is None:
        return value
    written = value
    if key in ("application_name", "cluster_name"):
        value = "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in value.encode())
    if key == "client_encoding":
        value = re.sub(r"[^A-Za-z0-9]", "", value).upper()
        value = "UTF8" if value == "UNICODE" else value
    if setting.vartype == "bool":
        value = _boolean(setting.name, value)
    elif setting.vartype in ("integer", "real"):
        value = setting.number(value)
    elif setting.enumvals is not None:
        value = _listed(setting, value)
    if _ONLY.get(key, value) != value:
        raise refuse("setting_value", name=setting.name, value=written)
    if key == "datestyle":
        words = [_DATE_ORDERS.get(word, word) for word in re.split(r"[\s,]+", value.upper().strip())]
        orders = [word for word in words if word in _DATE_ORDERS.values()]
        if len(orders) > 1 or not {"ISO", "DEFAULT", *orders}.issuperset(words):
            raise refuse("setting_value", name=setting.name, value=value)
        return f"ISO, {orders[0] if orders else 'MDY'}"
    if key == "timezone":
        zone = _zone(value)
        if zone is None:
            raise refuse("setting_value", name=setting.name, value=value, hint=_ZONE_HINT)
        return zone
    return value


_DATE_ORDERS = {
    "EURO": "DMY",
    "EUROPEAN": "DMY",
    "US": "MDY",
    "NONEURO": "MDY",
    "MDY": "MDY",
    "DMY": "DMY",
    "YMD": "YMD",
}
"""Words of DateStyle for the order in which days, months and years are read."""


def _listed(setting: Setting, value: str) -> str:
    """Return one of the words that a setting takes, which are in lower case. Raises setting_value."""
    words, word = setting.enumvals or (), _HIDDEN.get(value.lower(), value.lower())
    if "on" in words and word not in words:
        word = _boolean(setting.name, value)
    if word not in words:
        raise refuse("setting_value", name=setting.name, value=value)
    return word


_HIDDEN = {"debug": "debug2", "info": "notice"}
"""Words of client_min_messages that pg_settings does not list."""


def _boolean(name: str, value: str) -> str:
    """Return on or off for a word that PostgreSQL takes for one; a beginning of a word will do. Raises setting_boolean."""
    word = value.lower()
    for stands_for, words in (("on", ("on", "true", "yes", "1")), ("off", ("off", "false", "no", "0"))):
        if word and word != "o" and any(full.startswith(word) for full in words):
            return stands_for
    raise refuse("setting_boolean", name=name)


_ZONE_HINT = "name a time zone, such as UTC, +02 or Europe/Berlin; times are in UTC here whichever it is"
_AREA = re.compile(r"[A-Za-z][A-Za-z_]{0,30}(?:/[A-Za-z0-9_+-]{1,30}){1,2}")
"""The form of a name, which is all that can be checked on a machine without a database of time zones."""
_POSIX = re.compile(r"(?:[A-Za-z]{3,6}|<[A-Za-z0-9+:-]{3,12}>)?[+-]?[0-9]{1,2}(?::[0-5][0-9]){0,2}(?:[A-Za-z]{3,6})?")
"""A zone as POSIX spells it, west of Greenwich, such as GMT+02:00, EST5EDT or 02:00: the JVM sends it for one without a name."""


@cache
def _zones() -> dict[str, str]:
    """Return the names of the time zones that this machine knows, by their spelling in lower case; nothing if it has no
    database of them."""
    return {name.lower(): name for name in available_timezones()}


def _zone(value: str) -> str | None:
    """Return the name of a time zone as it is shown; None for a text that names none."""
    if value.lower() in ("utc", "gmt"):
        return value.upper()
    offset = _OFFSET.fullmatch(value)
    if offset is not None:
        part = f"{round(60 * float(offset[3] or 0)):02}"
        minutes = f":{part}" if part != "00" else ""
        hours = f"{int(offset[2]):02}{minutes}"
        return f"<{offset[1] or '+'}{hours}>{'+' if offset[1] == '-' else '-'}{hours}"
    zones = _zones()
    if _POSIX.fullmatch(value) or (not zones and _AREA.fullmatch(value)):
        return value
    return zones.get(value.lower())


_OFFSET = re.compile(r"([+-]?)([0-9]{1,2})(\.[0-9]{0,4})?")
"""Hours east of Greenwich, and a fraction."""


def setting_key(name: str) -> str:
    """Return the name under which a setting is stored."""
    key = name.lower()
    return {
        "time zone": "timezone",
        "transaction isolation level": "transaction_isolation",
        "names": "client_encoding",
    }.get(key, key)
