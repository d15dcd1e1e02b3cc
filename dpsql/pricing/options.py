"""Options of a session or of one query: `SET dp.<name> = value`, defaults and limits from the policy (sql.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dpsql.errors.exceptions import Error, refuse, suggestion
from dpsql.policy import Policy
from dpsql.policy.types import BOUND_NAMES, UNBOUNDED, ContributionBounds
from dpsql.pricing.workloads import Objective
from dpsql.privacy.loss import exact_number, plain_decimal
from dpsql.privacy.mechanisms.local_sensitivity import PROPOSED, SMOOTH
from dpsql.privacy.mechanisms.registry import askable
from dpsql.storage.records import dataclass, replace

MOST_BOUND = 10**9
MOST_THRESHOLD = 10**18
MOST_HITS = 10_000
_MOST_NAME = 100


class Reuse(StrEnum):
    """Use of stored releases for answers; false only for OFF.

    ON: the same measurement (or a more accurate one of the same numbers). DERIVE: also numbers that can be computed from a stored
    release.
    """

    OFF = "off"
    ON = "on"
    DERIVE = "derive"

    def __bool__(self) -> bool:
        return self is not Reuse.OFF


class Auto(StrEnum):
    """Value of an option that is chosen from the data, privately, as a part of the question."""

    AUTO = "auto"


class Unknown(StrEnum):
    """Answer where noise leaves no information: the value, with an error bar as wide as its bounds, or NULL."""

    VALUE = "value"
    NULL = "null"


@dataclass(frozen=True)
class Options:
    """Options of one query besides its SQL. `target_error` is an absolute half width, None when not requested; `project` names
    the account that is charged in addition to the dataset's and the analyst's. `threshold`: the question is not answered but
    compared with it, in at most `hits` runs of the watch called `watch`. `workload`: objective that is minimized for tables
    measured together. `proposed_sensitivity`: the sensitivity that propose-test-release tests. `min_units`: groups with fewer
    counted privacy units are not shown. `cut_totals`, `cut_counts`, `choose_values`: auto of `dp.max_total`, `dp.max_count` and
    `dp.max_values`. `bars`: a server answers with columns for the ends of error bars. `correlation`: correlation between
    consecutive groups for correlated noise. `dialect`: how a text is read where DuckDB and PostgreSQL differ. `on_behalf_of`: the
    person whom a client that serves many people claims to ask for, who may have a limit of their own."""

    epsilon: Fraction
    delta: Fraction
    mechanism: str
    confidence: Fraction
    target_error: Fraction | None = None
    nonnegative: bool = False
    shrinkage: bool = True
    reuse: Reuse = Reuse.ON
    bounds: ContributionBounds = UNBOUNDED
    project: str | None = None
    unknown: Unknown = Unknown.VALUE
    simultaneous: bool = True
    assume_rows: int = 1000
    quantile_bars: bool = False
    bars: bool = False
    dialect: str = "duckdb"
    threshold: Fraction | None = None
    watch: str = "default"
    hits: int = 1
    workload: Objective = Objective.OFF
    proposed_sensitivity: Fraction | None = None
    min_units: int | None = None
    cut_totals: bool = False
    cut_counts: bool = False
    choose_values: bool = False
    correlation: Fraction = Fraction(0)
    on_behalf_of: str | None = None

    @classmethod
    def of_policy(cls, policy: Policy, project: str | None = None, analyst: str | None = None) -> Options:
        """Return the defaults of a policy for a project and an analyst. Raises project_unknown."""
        _check_limit("project", project, policy)
        per_query, stated = policy.per_query, policy.analysts.get(analyst or "")
        return cls(
            per_query.epsilon, per_query.delta, per_query.mechanism, per_query.confidence,
            reuse=Reuse(policy.reuse.default), bounds=per_query.bounds, project=project,
            min_units=per_query.min_units, bars=stated is not None and stated.bars,
        )  # fmt: skip

    def with_value(self, name: str, text: str, policy: Policy) -> Options:
        """Return these options with one option changed. Raises option_unknown, option_value, option_limit or option_floor."""
        key = name.lower().removeprefix("dp.")
        if key not in _READERS:
            raise _unknown(name)
        reader, expected = _READERS[key]
        try:
            value = reader(text)
        except ValueError:
            raise refuse("option_value", name=f"dp.{key}", value=text, wanted=expected) from None
        _check_limit(key, value, policy)
        return self._with(key, value)

    def reset(self, name: str, first: Options) -> Options:
        """Return these options with one option (or "all") reset to its value in `first`. Raises option_unknown."""
        key = name.lower().removeprefix("dp.")
        if key == "all":
            return first
        if key not in _READERS:
            raise _unknown(name)
        return self._with(key, first.value(key))

    def with_no_choice(self) -> Options:
        """Return these options without bounds that a question chooses."""
        return replace(self, cut_totals=False, cut_counts=False, choose_values=False)

    def show(self) -> dict[str, str]:
        return {f"dp.{key}": show_value(self.value(key)) for key in _READERS}

    def value(self, key: str) -> Any:
        """Return the value of one option by its name without `dp.`."""
        if key in _AUTOMATIC and getattr(self, _AUTOMATIC[key]):
            return Auto.AUTO
        return getattr(self.bounds if key in BOUND_NAMES else self, key)

    def _with(self, key: str, value: Any) -> Options:
        changed: dict[str, Any] = {}
        if key in _AUTOMATIC:
            changed[_AUTOMATIC[key]] = value is Auto.AUTO
            value = None if value is Auto.AUTO else value
        named = {key: value}
        return replace(self, **changed, **{"bounds": replace(self.bounds, **named)} if key in BOUND_NAMES else named)


def _unknown(name: str) -> Error:
    options = [f"dp.{option}" for option in _READERS]
    return refuse("option_unknown", name=name, hint=suggestion(f"dp.{name.lower().removeprefix('dp.')}", options))


def show_value(value: Any) -> str:
    """Return an option's value as it would be written in SET."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return plain_decimal(value) if isinstance(value, Fraction) else str(value)


def _check_limit(key: str, value: Any, policy: Policy) -> None:
    if key == "project" and value is not None and value not in policy.projects:
        raise refuse("project_unknown", name=value)
    limits = policy.per_query
    most: Any = None
    if key in ("max_total", "max_count") and value is not None and policy.privacy_unit is None:
        raise refuse("clip_rows", name=f"dp.{key}")
    if key == "max_values" and value is not None and policy.privacy_unit is None:
        raise refuse("values_rows")
    if key == "epsilon":
        most = policy.budget.epsilon if limits.max_epsilon is None else limits.max_epsilon
        if value < limits.min_epsilon:
            least = plain_decimal(limits.min_epsilon)
            raise refuse("option_floor", name=f"dp.{key}", value=plain_decimal(value), limit=least)
    elif key == "delta":
        most = limits.delta
    elif key == "min_units" and limits.min_units is not None and (value is None or value < limits.min_units):
        raise refuse("option_least", name=f"dp.{key}", value=show_value(value), limit=limits.min_units)
    if most is not None and value > most:
        raise refuse("option_limit", name=f"dp.{key}", value=plain_decimal(value), limit=plain_decimal(most))


# --- how the text of each option is read: functions that raise ValueError for any other text --------------------------

Reader = Callable[[str], Any]
_NOTHING = ("none", "null")
_SWITCH = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}


def _number(is_allowed: Callable[[Fraction], bool]) -> Reader:
    def read(text: str) -> Fraction:
        value = exact_number(text)
        if not is_allowed(value):
            raise ValueError(text)
        return value

    return read


def _whole(most: int = MOST_BOUND) -> Reader:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:12]) <= MOST_BOUND or int(text) > most:
            raise ValueError(text)
        return int(text)

    return read


def _word(kind: Callable[[str], str], same: Mapping[str, str] | None = None) -> Reader:
    """Return a reader of words in any case; `same`: other words for some of them."""
    return lambda text: kind((same or {}).get(text.lower(), text.lower()))


def _among(words: Callable[[], Collection[str]]) -> Callable[[str], str]:
    def read(word: str) -> str:
        if word not in words():
            raise ValueError(word)
        return word

    return read


def _or_none(read: Reader, *words: str) -> Reader:
    """Return a reader that reads none, null, and `words` as None."""
    return lambda text: None if text.lower() in (*_NOTHING, *words) else read(text)


def _or_auto(read: Reader) -> Reader:
    return lambda text: Auto.AUTO if text.lower() == Auto.AUTO else read(text)


def _switch(text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise ValueError(text)
    return _SWITCH[text.lower()]


def mechanism_words() -> tuple[str, ...]:
    """Return the values of dp.mechanism; mechanisms may be registered later than this module is loaded."""
    return ("auto", *(mechanism.word for mechanism in askable()), SMOOTH, PROPOSED)


def _watch(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", text) is None:
        raise ValueError(text)
    return text


def _person(text: str) -> str | None:
    if len(text) > _MOST_NAME or not text.isprintable():
        raise ValueError(text)
    return text.strip() if text.strip().lower() not in (*_NOTHING, "") else None


_positive = _number(lambda value: value > 0)
_share = _number(lambda value: 0 <= value < 1)
_bound, _total = _or_none(_whole(), "default"), _or_none(_positive, "default")
_MECHANISMS = " or ".join(", ".join(mechanism_words()).rsplit(", ", 1))

_WORKLOADS = {"on": "relative", "true": "relative", "1": "relative", "false": "off", "0": "off"}
_AUTOMATIC = {"max_total": "cut_totals", "max_count": "cut_counts", "max_values": "choose_values"}
"""The bounds that may be chosen from the data, each with the option that says so."""
_READERS: dict[str, tuple[Reader, str]] = {
    "epsilon": (_positive, "a number above 0"),
    "delta": (_share, "a number from 0 to below 1"),
    "mechanism": (_word(_among(mechanism_words)), _MECHANISMS),
    "max_groups": (_bound, "a whole number from 1, or none"),
    "max_rows_per_group": (_bound, "a whole number from 1, or none"),
    "confidence": (
        _number(lambda value: Fraction(1, 2) <= value <= Fraction(9999, 10000)),
        "a number from 0.5 to 0.9999",
    ),
    "target_error": (_or_none(_positive), "a half-width above 0 in the unit of the answer, or none"),
    "nonnegative": (_switch, "on or off"),
    "shrinkage": (_switch, "on or off"),
    "reuse": (_word(Reuse, {"true": "on", "1": "on", "false": "off", "0": "off"}), "off, on or derive"),
    "unknown": (_word(Unknown), "value or null"),
    "bars": (_switch, "on or off"),
    "dialect": (_word(_among(lambda: ("duckdb", "postgresql"))), "duckdb or postgresql"),
    "simultaneous": (_switch, "on or off"),
    "quantile_bars": (_switch, "on or off"),
    "assume_rows": (_whole(), "a whole number from 1"),
    "max_total": (_or_auto(_total), "a number above 0 in the unit of what is summed, auto or none"),
    "max_count": (_or_auto(_bound), "a whole number from 1, auto or none"),
    "max_values": (_or_auto(_bound), "a whole number from 1, auto or none"),
    "threshold": (
        _or_none(_number(lambda value: abs(value) <= MOST_THRESHOLD), "off"),
        "a number from -10^18 to 10^18, or none",
    ),
    "watch": (_watch, "a name of 1 to 40 letters, digits, dots, hyphens and underscores"),
    "proposed_sensitivity": (_total, "a number above 0 in the unit of the answer, or none"),
    "hits": (_whole(MOST_HITS), f"a whole number from 1 to {MOST_HITS}"),
    "min_units": (_bound, "a whole number from 1, or none"),
    "workload": (_word(Objective, _WORKLOADS), "off, on, relative, absolute or running"),
    "correlation": (_share, "a number from 0 to below 1"),
    "project": (_or_none(str, ""), "a project of the policy, or none"),
    "on_behalf_of": (_person, f"a name of at most {_MOST_NAME} characters, all of them visible, or none"),
}
