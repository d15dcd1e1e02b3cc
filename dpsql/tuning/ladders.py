"""Public bins of a column's values: around the policy's bounds, or doubling where it has none, and the bounds that fit them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from dpsql.policy.types import PolicyColumn, Value

_BEYOND = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), *map(Fraction, (1, 2, 4, 8, 32, 1024)))
"""How far steps lie beyond a bound, as multiples of the distance of the bounds."""
_HALVINGS = 6
_LARGEST, _SMALLEST = 40, -10
"""Exponents of the magnitudes around which columns without bounds are counted."""
_EPOCH = datetime(1970, 1, 1)
_YEARS = range(1900, 2101, 10)


@dataclass(frozen=True)
class Ladder:
    """Ascending steps between bins: (number, strict). A value is in the first bin whose step it is below (or, not strict, at or
    below), else in the last one. `low` and `high`: the bins that begin and end with the policy's bounds (0 and the last without).
    """

    type: str
    steps: tuple[tuple[Fraction, bool], ...]
    low: int
    high: int

    def cases(self, name: str) -> str:
        """Return the conditions of a CASE that numbers the bins from 1."""
        return " ".join(
            f"WHEN {name} {'<' if strict else '<='} {literal(value_at(number, self.type), self.type)} THEN {index + 1}"
            for index, (number, strict) in enumerate(self.steps)
        )


def value_ladder(column: PolicyColumn) -> Ladder | None:
    """Return the bins of a column's values, None for texts and truth values."""
    if column.type in ("text", "boolean"):
        return None
    if column.lower is None or column.upper is None:
        steps = tuple((number, False) for number in _magnitudes(column.type))
        return Ladder(column.type, steps, 0, len(steps))
    lower, upper = number_of(column.lower), number_of(column.upper)
    width = (upper - lower) or Fraction(1)
    below = [(lower - width * part, True) for part in _BEYOND] + [(lower, True)]
    halves = [width / 2**power for power in range(1, _HALVINGS + 1)]
    inside = [(number, False) for half in halves for number in (lower + half, upper - half)]
    above = [(upper, False)] + [(upper + width * part, False) for part in _BEYOND]
    around: set[tuple[Fraction, bool]] = set()
    for number, strict in (*below, *inside, *above):
        value = _rounded(number, column.type)
        if value is not None and (number in (lower, upper) or strict == (value <= lower)):
            around.add((value, strict))
    ordered = tuple(sorted(around, key=lambda step: (step[0], not step[1])))
    return Ladder(column.type, ordered, ordered.index((lower, True)) + 1, ordered.index((upper, False)))


def proposed_ends(
    ladder: Ladder, column: PolicyColumn, about: str, counts: Sequence[float], few: Fraction, unit: str,
    shares: Mapping[str, float],
) -> Iterator[tuple[str, Value, str]]:  # fmt: skip
    """Yield (`lower` or `upper`, its proposed value, why) for the persons in each bin of a ladder, by their highest or lowest
    value. `shares`: of the persons beyond each end, as they are shown.

    An end moves outwards until at most the share `few` of the persons is beyond it, and inwards if a half of the bounds or more
    is empty. Ends of columns without bounds are those of the bins that are not empty.
    """
    everybody = sum(counts)
    if not everybody:
        return
    last = len(ladder.steps)
    open_ends = column.lower is None
    if about != "highest":
        bottom = next(index for index in range(last, -1, -1) if sum(counts[:index]) <= few * everybody)
        beyond = sum(counts[: ladder.low]) / everybody
        if bottom > 0 and (open_ends or beyond > few or _is_wide(ladder, bottom, upper=False)):
            yield (
                "lower",
                value_at(ladder.steps[bottom - 1][0], ladder.type),
                _why(beyond > few, shares.get("lower", 0.0), "below", open_ends, unit),
            )
    if about != "lowest":
        top = next(index for index in range(last + 1) if sum(counts[index + 1 :]) <= few * everybody)
        beyond = sum(counts[ladder.high + 1 :]) / everybody
        if top < last and (open_ends or beyond > few or _is_wide(ladder, top, upper=True)):
            yield (
                "upper",
                value_at(ladder.steps[top][0], ladder.type),
                _why(beyond > few, shares.get("upper", 0.0), "above", open_ends, unit),
            )


def _why(cuts: bool, share: float, side: str, open_ends: bool, unit: str) -> str:
    if open_ends:
        return "the column has no bounds; nearly all values are inside these"
    if cuts:
        return f"{share:.1%} of the {unit} have a value {side} the bound"
    return f"no {unit} in half of the bounds or more; tighter bounds mean less noise"


def _is_wide(ladder: Ladder, index: int, *, upper: bool) -> bool:
    """Return whether the bins from this one to the policy's bound make up at least half of the distance of the bounds."""
    lower, highest = ladder.steps[ladder.low - 1][0], ladder.steps[ladder.high][0]
    middle = (lower + highest) / 2
    if upper:
        return index < ladder.high and ladder.steps[index][0] <= middle
    return index > ladder.low and ladder.steps[index - 1][0] >= middle


# --- values as numbers ----------------------------------------------------------------------------------------------------


def number_of(value: Value) -> Fraction:
    """Return a value of a column as a number: days and seconds for dates and timestamps."""
    if isinstance(value, datetime):
        return Fraction((value - _EPOCH) // timedelta(microseconds=1), 10**6)
    if isinstance(value, date):
        return Fraction(value.toordinal())
    return Fraction(value)


def value_at(number: Fraction, type_: str) -> Value:
    """Return the value of a column's type that `number_of` makes this number."""
    if type_ == "date":
        return date.fromordinal(int(number))
    if type_ == "timestamp":
        return _EPOCH + timedelta(seconds=int(number))
    return int(number) if type_ == "integer" else number


def literal(value: Value, type_: str) -> str:
    """Return a value of a column's type as a literal of SQL."""
    if isinstance(value, (date, datetime)):
        return f"{type_.upper()} '{value.isoformat(' ') if isinstance(value, datetime) else value.isoformat()}'"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return decimal_text(Fraction(value))


def decimal_text(number: Fraction) -> str:
    """Return a number without an exponent."""
    if number.denominator == 1:
        return str(number.numerator)
    return f"{Decimal(number.numerator) / Decimal(number.denominator):f}"


def _rounded(number: Fraction, type_: str) -> Fraction | None:
    """Return the number as a value of the type, None if there is none so large."""
    if type_ == "real":
        return number
    whole = Fraction(number.numerator // number.denominator)
    if type_ == "integer":
        return whole if abs(whole) < 2**62 else None
    least, most = (1, date.max.toordinal()) if type_ == "date" else (-(10**10), 10**11)
    return whole if least <= whole <= most else None


def _magnitudes(type_: str) -> list[Fraction]:
    if type_ == "date":
        return [number_of(date(year, 1, 1)) for year in _YEARS]
    if type_ == "timestamp":
        return [number_of(datetime(year, 1, 1)) for year in _YEARS]
    positive = [Fraction(2) ** power for power in range(0 if type_ == "integer" else _SMALLEST, _LARGEST + 1)]
    return sorted({*positive, *(-number for number in positive), Fraction(0)})
