"""The smallest epsilon at which a question's widest error bar is within a target, found with few pricings.

The search bisects between an epsilon that is too small and one that is enough, to 1 in 1000. Pricing a question of many tables
and computing its bars takes long, and every error is nearly proportional to 1/epsilon. So a few guesses from this proportion
first locate where the bisection leads, and only epsilons between the nearest guesses on both sides are priced. A question that is
less proportional takes more pricings but gives the same answer, as long as bars get no wider with more epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, TypeVar

from dpsql.errors.exceptions import refuse
from dpsql.privacy.loss import plain_decimal

_HALVINGS = 40
_GUESSES = 6
_NEAR = Fraction(1, 4000)
"""Relative distance of guesses from the proportional epsilon, so that the bisection meets few epsilons between them."""
_BILLION = 10**9
Priced = TypeVar("Priced")


@dataclass
class TargetSearch(Generic[Priced]):
    """A search for the smallest epsilon. `priced` returns the price of a question at an epsilon, `widest` its widest error
    bar."""

    priced: Callable[[Fraction], Priced]
    widest: Callable[[Priced], float]
    target: Fraction
    _enough: dict[Fraction, Priced] = field(default_factory=dict)
    _too_little: Fraction = Fraction(0)
    _width: float = math.inf
    """Widest bar at the most recent price."""

    def cheapest(self, least: Fraction, most: Fraction) -> Priced:
        """Return the price at the smallest sufficient epsilon from `least` to `most`. Raises Refusal target_error where none
        suffices."""
        # A target that needs less than `least` is met more exactly than requested: a question spends at least `least`.
        if least and self._is_enough(least):
            return self._enough[least]
        high = self._first(least, most)
        low = least
        self._guess(low, high)
        for _ in range(_HALVINGS):
            if high - low <= high / 1000:
                break
            epsilon = Fraction(round((low + high) / 2 * _BILLION), _BILLION)
            if epsilon <= low:
                break
            low, high = (low, epsilon) if self._is_known_enough(epsilon) else (epsilon, high)
        return self._enough[high] if high in self._enough else self.priced(high)

    def _first(self, least: Fraction, most: Fraction) -> Fraction:
        """Return an epsilon that is enough. Noise that rounds to zero cannot be simulated, so a smaller epsilon is tried if bars
        are infinite."""
        epsilon = most
        while not self._is_enough(epsilon):
            if not (epsilon > 1 and math.isinf(self._width)) or epsilon / 4 <= least:
                hint = f"the smallest error at the most epsilon a query may have is {self._width:.4g}"
                raise refuse("target_error", reason=f"it needs epsilon above {plain_decimal(most)}", way=hint)
            epsilon /= 4
        self._too_little = Fraction(0)  # larger epsilons failed only because bars were infinite
        return epsilon

    def _is_enough(self, epsilon: Fraction) -> bool:
        """Return whether the widest error bar at an epsilon is within the target; remember the price."""
        price = self.priced(epsilon)
        self._width = self.widest(price)
        if self._width <= self.target:
            self._enough[epsilon] = price
            return True
        self._too_little = max(self._too_little, epsilon)
        return False

    def _is_known_enough(self, epsilon: Fraction) -> bool:
        """Return whether an epsilon is enough, without pricing where earlier prices decide it."""
        if epsilon >= min(self._enough):
            return True
        return epsilon > self._too_little and self._is_enough(epsilon)

    def _guess(self, low: Fraction, high: Fraction) -> None:
        """Price the question at epsilons near the smallest sufficient one, on both sides of it."""
        epsilon = high
        for _ in range(_GUESSES):
            if not 0 < self._width < math.inf:
                return
            proportional = epsilon * Fraction(self._width) / self.target
            below = self._too_little < proportional * (1 - 2 * _NEAR)
            epsilon = Fraction(round(proportional * (1 - _NEAR if below else 1 + _NEAR) * _BILLION), _BILLION)
            if not max(low, self._too_little) < epsilon < min(self._enough):
                return
            self._is_enough(epsilon)
