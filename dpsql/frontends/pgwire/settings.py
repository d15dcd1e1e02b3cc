"""PostgreSQL's run-time settings that clients read or set. None of them changes an answer.

`dp.` options are not here: they belong to the session.
"""

from __future__ import annotations

import re
from functools import cache
from zoneinfo import available_timezones

from dpsql.errors.exceptions import refuse

SERVER_VERSION = "16.14"
"""The version whose catalogs are mirrored (catalog/postgresql.json)."""

DEFAULTS: dict[str, str] = {
    "application_name": "",
    "block_size": "8192",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_tablespace": "",
    "default_table_access_method": "heap",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "on",
    "escape_string_warning": "on",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "jit": "off",
    "lc_collate": "C",
    "lc_ctype": "C",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "lock_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "row_security": "on",
    "search_path": '"$user", public',
    "server_encoding": "UTF8",
    "server_version": SERVER_VERSION,
    "server_version_num": "160014",
    "session_authorization": "",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "work_mem": "4MB",
    **dict.fromkeys(
        (
            "enable_seqscan",
            "enable_indexscan",
            "enable_indexonlyscan",
            "enable_bitmapscan",
            "enable_hashjoin",
            "enable_mergejoin",
            "enable_nestloop",
            "enable_sort",
            "enable_hashagg",
            "enable_material",
            "geqo",
            "check_function_bodies",
        ),
        "on",
    ),
    "default_transaction_deferrable": "off",
    "idle_session_timeout": "0",
    "max_connections": "100",
    "maintenance_work_mem": "64MB",
    "synchronous_commit": "on",
    "xmloption": "content",
}
FIXED = {
    "in_hot_standby", "integer_datetimes", "is_superuser", "max_connections", "lc_collate", "lc_ctype", "max_identifier_length",
    "max_index_keys", "server_encoding", "server_version", "server_version_num", "session_authorization",
}  # fmt: skip
_ONLY: dict[str, tuple[str, ...]] = {
    "client_encoding": ("UTF8", "UNICODE"),
    "bytea_output": ("HEX", "ESCAPE"),
    "intervalstyle": ("POSTGRES", "POSTGRES_VERBOSE", "SQL_STANDARD", "ISO_8601"),
    **dict.fromkeys(
        ("default_transaction_isolation", "transaction_isolation"),
        ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"),
    ),
    "synchronous_commit": ("ON", "OFF", "LOCAL", "REMOTE_WRITE", "REMOTE_APPLY"),
    "xmloption": ("CONTENT", "DOCUMENT"),
    "client_min_messages": (
        "DEBUG5", "DEBUG4", "DEBUG3", "DEBUG2", "DEBUG1", "DEBUG", "LOG", "NOTICE", "WARNING", "ERROR",
    ),
    "default_transaction_read_only": ("ON",),
    "standard_conforming_strings": ("ON",),
}  # fmt: skip
"""Settings that accept these values only: others would require different behaviour, or mean nothing, so they are refused rather
than ignored."""

SPELLED = {"datestyle": "DateStyle", "intervalstyle": "IntervalStyle", "timezone": "TimeZone"}
"""Settings whose name is not written in lower case."""
REPORTED = {
    "application_name": "application_name", "client_encoding": "client_encoding", "datestyle": "DateStyle",
    "default_transaction_read_only": "default_transaction_read_only", "in_hot_standby": "in_hot_standby",
    "integer_datetimes": "integer_datetimes", "intervalstyle": "IntervalStyle", "is_superuser": "is_superuser",
    "server_encoding": "server_encoding", "server_version": "server_version", "timezone": "TimeZone",
    "session_authorization": "session_authorization", "standard_conforming_strings": "standard_conforming_strings",
}  # fmt: skip
"""Settings whose changes are reported to the client at once (GUC_REPORT), and their spelling in that message."""


MOST_OWN = 100
"""Limit on the settings with a dot in their name that a connection may invent."""
LONGEST_NAME, LONGEST_VALUE = 128, 1_000


class Settings:
    """The settings of one connection; `snapshot` and `restore` make SET part of a transaction.

    A mapping that was handed out never changes, so savepoints without a SET between them share one.
    """

    def __init__(self, user: str) -> None:
        self._first = {**DEFAULTS, "session_authorization": user}
        self._values = self._first

    def start(self, name: str, value: str) -> None:
        """Set a value given at connect, to which RESET returns."""
        self.set(name, value)
        self._first = {**self._first, setting_key(name): self._values[setting_key(name)]}

    def set(self, name: str, value: str) -> None:
        """Change one setting; an unknown name with a dot is stored, as PostgreSQL does. Raises setting_fixed, setting_unknown,
        setting_value, wire_limit."""
        key = setting_key(name)
        if key in FIXED:
            raise refuse("setting_fixed", name=name)
        if key not in self._first and "." not in key:
            raise refuse("setting_unknown", name=name)
        value = _in_force(key, SPELLED.get(key, name), value)
        if len(key) > LONGEST_NAME:
            raise refuse("setting_value", name=name[:LONGEST_NAME], value=value)
        if key not in self._values and sum("." in present for present in self._values) >= MOST_OWN:
            raise refuse("wire_limit", most=MOST_OWN, what="settings of your own")
        self._values = {**self._values, key: value[:LONGEST_VALUE]}

    def reset(self, name: str) -> None:
        """Reset one setting to its value at connect, or every setting ("all"). Raises setting_unknown."""
        key = setting_key(name)
        if key == "all":
            self._values = self._first
        elif key in self._first:
            self._values = {**self._values, key: self._first[key]}
        elif "." in key:
            self._values = {other: value for other, value in self._values.items() if other != key}
        else:
            raise refuse("setting_unknown", name=name)

    def get(self, name: str) -> str:
        """Return the value of one setting. Raises setting_unknown."""
        key = setting_key(name)
        if key not in self._values:
            raise refuse("setting_unknown", name=name)
        return self._values[key]

    def all(self) -> dict[str, str]:
        """Return the value of every setting."""
        return dict(sorted(self._values.items()))

    def snapshot(self) -> dict[str, str]:
        """Return the current values, for `restore`."""
        return self._values

    def restore(self, values: dict[str, str]) -> None:
        """Restore the values of a snapshot."""
        self._values = values

    def statement_seconds(self) -> float | None:
        """Return the limit on the time of a statement in seconds; None without a limit (statement_timeout = 0)."""
        return _seconds(self._values["statement_timeout"]) or None

    def hears(self, severity: str) -> bool:
        """Return whether the client wants messages of a severity, NOTICE or WARNING (client_min_messages)."""
        least = self._values["client_min_messages"]
        return least != "error" and (severity == "WARNING" or least != "warning")

    def reported(self) -> dict[str, str]:
        """Return the settings that clients follow, by the names that they know."""
        return {spelt: self._values[key] for key, spelt in REPORTED.items()}


def _in_force(key: str, name: str, value: str) -> str:
    """Return the value of a setting as it is kept and shown. Raises setting_value, setting_boolean, setting_range."""
    if key == "client_encoding":
        value = re.sub(r"[^A-Za-z0-9]", "", value)
    if key in _BOOLEANS:
        value = _boolean(name, value)
    words = _ONLY.get(key)
    is_form = key not in _FORMS or _FORMS[key].fullmatch(value) is not None
    if not is_form or (words is not None and value.upper() not in words):
        raise refuse("setting_value", name=name, value=value)
    if key == "extra_float_digits" and not -15 <= int(value) <= 3:
        raise refuse("setting_range", name=name, value=value, low="-15", high="3")
    if key == "datestyle":
        if "ISO" not in value.upper() and value.upper() not in ("MDY", "DMY", "YMD"):
            raise refuse("setting_value", name=name, value=value)
        return "ISO, MDY"
    if key == "timezone":
        zone = _zone(value)
        if zone is None:
            raise refuse("setting_value", name=name, value=value, hint=_ZONE_HINT)
        return zone
    return "UTF8" if key == "client_encoding" else value if words is None else value.lower()


_BOOLEANS = {
    name for name, value in DEFAULTS.items() if value in ("on", "off") and name not in FIXED and name != "synchronous_commit"
}  # fmt: skip


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
_POSIX = re.compile(r"(?:[A-Za-z]{3,6}|<[A-Za-z0-9+-]{3,6}>)[+-]?[0-9]{1,2}(?::[0-9]{2}){0,2}(?:[A-Za-z]{3,6})?")
"""A zone as POSIX spells it, such as GMT+02:00 or EST5EDT: the JVM sends one for a zone without a name."""


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
        minutes = f":{offset[3]}" if offset[3] and offset[3] != "00" else ""
        hours = f"{int(offset[2]):02}{minutes}"
        return f"<{offset[1] or '+'}{hours}>{'+' if offset[1] == '-' else '-'}{hours}"
    zones = _zones()
    if _POSIX.fullmatch(value) or (not zones and _AREA.fullmatch(value)):
        return value
    return zones.get(value.lower())


_OFFSET = re.compile(r"([+-]?)([0-9]{1,2})(?::([0-9]{2}))?(?:\.0*)?")
"""Hours east of Greenwich, and minutes."""
_DURATION = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(us|ms|s|min|h|d)?\s*")
_UNITS = {"us": 1e-6, None: 1e-3, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


_FORMS = {
    **dict.fromkeys(
        ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout"), _DURATION
    ),
    **dict.fromkeys(("work_mem", "maintenance_work_mem"), re.compile(r"\s*[0-9]{1,12}\s*(?:[kMGT]?B)?\s*")),
    "extra_float_digits": re.compile(r"\s*[+-]?[0-9]{1,9}\s*"),
}
"""The form of the values of settings that are numbers."""


def _seconds(value: str) -> float | None:
    """Return the seconds of a duration in PostgreSQL's notation (milliseconds without a unit); None for any other text."""
    match = _DURATION.fullmatch(value)
    return None if match is None else float(match[1]) * _UNITS[match[2]]


def setting_key(name: str) -> str:
    """Return the name under which a setting is stored."""
    key = name.lower()
    return {
        "time zone": "timezone",
        "transaction isolation level": "transaction_isolation",
        "names": "client_encoding",
    }.get(key, key)
