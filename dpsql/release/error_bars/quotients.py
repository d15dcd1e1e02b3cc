"""Bars of quotients of two sums of noisy terms, by test inversion (Fieller 1954): exact for any size of the denominator.

Let A = a + X and B = b + Y be released, where X and Y are noise of known laws and may share terms, and theta = a / b. Then
A - theta B = X - theta Y, whose law is known for every theta. So the set of all theta with

    |A - theta B| <= q(theta),    q(theta) the quantile of |X - theta Y| at the confidence,

contains a / b with exactly that probability, whatever a and b != 0 are. In angles, theta = tan(phi) s_X / s_Y with the standard
deviations s: with u = A / s_X and v = B / s_Y the condition is |u cos(phi) - v sin(phi)| <= Q(phi), where Q does not depend on
the released numbers, so it is tabled once for all rows. If |v| <= Q(pi/2), the denominator cannot be distinguished from 0: the
set is unbounded, and the quotient is unknown. Otherwise the set lies around u / v, and its ends are where
|u cos(phi) - v sin(phi)| = r |sin(phi - phi_0)| reaches Q on each side of phi_0 = atan(u / v), which happens before
phi = +- pi/2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from dpsql.release.error_bars.affine import parts
from dpsql.release.error_bars.draws import Floats, deviates, stratified
from dpsql.release.remainder import ReleasedTerm

_DRAWS = 3_999
_ANGLES = 129
_STEPS = 48
"""Number of bisection steps, after which ends are known to the last digits of a double."""


@dataclass(frozen=True)
class _Weighted:
    """A part of a sum (`affine.Part`) whose weights of terms and factor are the same numbers in every row."""

    weights: Mapping[str, float]
    factor: float
    rounded: bool


@dataclass(frozen=True)
class Quotient:
    """The quotient `factor` * `above` / `below`: both sides as trees over terms and as sums of parts."""

    above: exp.Expr
    below: exp.Expr
    parts_above: tuple[_Weighted, ...]
    parts_below: tuple[_Weighted, ...]
    factor: float

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the terms that the quotient reads."""
        both = (*self.parts_above, *self.parts_below)
        return tuple(sorted({name for part in both for name in part.weights}))


def quotient(tree: exp.Expr, terms: Mapping[str, ReleasedTerm]) -> Quotient | None:
    """Return `tree` (over keys and terms) as a number times a quotient of two sums of terms; None for any other tree, and for
    quotients of whole numbers alone. NULLIF(sum, 0) counts as the sum."""
    factor, node = 1.0, _bare(tree)
    while isinstance(node, (exp.Mul, exp.Div)):
        left, right = _number(node.this), _number(node.expression)
        if right is not None and right != 0:
            factor, node = factor * right if isinstance(node, exp.Mul) else factor / right, _bare(node.this)
        elif left is not None and isinstance(node, exp.Mul):
            factor, node = factor * left, _bare(node.expression)
        else:
            break
    if not isinstance(node, exp.Div) or not np.isfinite(factor) or factor == 0:
        return None
    above, below = node.this, _without_nullif(node.expression)
    sums = [_weighted(side, terms) for side in (above, below)]
    if all(part.rounded or all(terms[name].whole for name in part.weights) for side in sums for part in side or ()):
        return None  # the quantile of a difference of two whole numbers jumps from one theta to the next
    return None if sums[0] is None or sums[1] is None else Quotient(above, below, sums[0], sums[1], factor)


def quotient_ends(
    fraction: Quotient, above: Floats, below: Floats, terms: Mapping[str, ReleasedTerm], confidence: float, key: str
) -> tuple[Floats, Floats]:
    """Return the ends of the bar of each row, infinite where the denominator cannot be distinguished from 0. `above` and `below`
    are the released sums."""
    noise = {name: deviates(terms[name], stratified(f"{key}/{name}", _DRAWS)) for name in fraction.names}
    x, y = (_error(sums, noise) for sums in (fraction.parts_above, fraction.parts_below))
    deviations = [max(float(error.std()), float(np.finfo(float).tiny)) for error in (x, y)]
    angles = np.linspace(-np.pi / 2, np.pi / 2, _ANGLES)
    errors = np.abs(np.outer(np.cos(angles), x / deviations[0]) - np.outer(np.sin(angles), y / deviations[1]))
    rank = min(int(np.ceil(confidence * (_DRAWS + 1) - 1e-9)), _DRAWS) - 1
    quantiles = np.partition(errors, rank, axis=1)[:, rank]
    with np.errstate(all="ignore"):
        u, v = above / deviations[0], below / deviations[1]
        centre, radius = np.arctan(u / v), np.hypot(u, v)
        bounded = np.abs(v) > quantiles[-1]
        scale = fraction.factor * deviations[0] / deviations[1]
        first, last = (np.tan(_crossing(centre, radius, side, angles, quantiles)) * scale for side in (-1.0, 1.0))
    low, high = np.minimum(first, last), np.maximum(first, last)
    return np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)


def _crossing(centre: Floats, radius: Floats, side: float, angles: Floats, quantiles: Floats) -> Floats:
    """Return the angle on one side of `centre` where radius |sin(angle - centre)| reaches the quantile."""
    inside, outside = np.zeros_like(centre), np.pi / 2 - side * centre
    for _ in range(_STEPS):
        middle = (inside + outside) / 2
        reached = radius * np.sin(middle) > np.interp(centre + side * middle, angles, quantiles)
        inside, outside = np.where(reached, inside, middle), np.where(reached, middle, outside)
    return np.asarray(centre + side * outside)


def _error(sums: tuple[_Weighted, ...], noise: Mapping[str, Floats]) -> Floats:
    """Return the error of a sum under drawn noise. The error of a rounded part is its rounded noise: its exact sum is whole."""
    error = np.zeros(_DRAWS)
    for part in sums:
        inner = np.sum([weight * noise[name] for name, weight in part.weights.items()], axis=0)
        error += part.factor * (np.rint(inner) if part.rounded else inner)
    return error


def _weighted(side: exp.Expr, terms: Mapping[str, ReleasedTerm]) -> tuple[_Weighted, ...] | None:
    """Return the parts of a sum of noisy terms; None if `side` is no such sum or weights differ between rows."""
    weighted = []
    for part in parts(side, terms) or ():
        weights = {name: _number(weight) for name, weight in part.weights.items()}
        factor = _number(part.factor)
        if factor is None or None in weights.values():
            return None
        numbers = {name: weight for name, weight in weights.items() if weight is not None}
        weighted.append(_Weighted(numbers, factor, part.rounded))
    return tuple(weighted) or None


def _number(node: exp.Expr) -> float | None:
    """Return the value of an expression over literals, None for any other expression."""
    node = _bare(node)
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, (exp.Mul, exp.Add, exp.Sub, exp.Div)):
        left, right = _number(node.this), _number(node.expression)
        if left is None or right is None or (isinstance(node, exp.Div) and right == 0):
            return None
        if isinstance(node, exp.Mul):
            return left * right
        return (
            left / right if isinstance(node, exp.Div) else left + right if isinstance(node, exp.Add) else left - right
        )
    return float(node.name) if isinstance(node, exp.Literal) and not node.is_string else None


def _bare(node: exp.Expr) -> exp.Expr:
    """Return `node` without parentheses, aliases and casts to doubles around it."""
    while isinstance(node, (exp.Paren, exp.Alias)) or (
        isinstance(node, exp.Cast) and node.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT)
    ):
        node = node.this
    return node


def _without_nullif(node: exp.Expr) -> exp.Expr:
    """Return the first argument of NULLIF(..., 0); any other expression unchanged."""
    bare = _bare(node)
    return bare.this if isinstance(bare, exp.Nullif) and _number(bare.expression) == 0 else node
