"""Expressions that are linear in noisy terms: their error is a weighted sum of known noise laws.

value = constant + sum over parts of factor * (sum over terms of weight * term). A part may be rounded to an integer if it is an
integer without noise (SUM over integers, `release.formulas.WHOLE`). Weights are exact: keys, literals, public columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from statistics import NormalDist

import numpy as np
from sqlglot import exp

from dpsql.release.error_bars.draws import Floats, deviates, stratified
from dpsql.release.formulas import WHOLE
from dpsql.release.remainder import ReleasedTerm

_DRAWS = 20_000
_MOST_WEIGHTINGS = 64
_REALS = (exp.DType.DOUBLE, exp.DType.FLOAT)
_WHOLE = (exp.DType.BIGINT, exp.DType.INT, exp.DType.INT128)


@dataclass(frozen=True)
class Part:
    """One part of a linear expression. `weights`: an exact expression per term; `factor`: an exact expression that multiplies
    the (if `rounded`, rounded) sum."""

    weights: dict[str, exp.Expr]
    factor: exp.Expr
    rounded: bool


def parts(node: exp.Expr, terms: Mapping[str, ReleasedTerm]) -> list[Part] | None:
    """Return `node` (over keys and terms) as a sum of parts; None when it is not linear, no parts when it is exact."""
    if not any(column.name in terms for column in node.find_all(exp.Column)):
        return []
    if isinstance(node, exp.Column):
        return [Part({node.name: exp.Literal.number(1)}, exp.Literal.number(1), False)]
    if isinstance(node, exp.Paren):
        return parts(node.this, terms)
    if isinstance(node, exp.Neg):
        return _scaled(parts(node.this, terms), exp.Literal.number(-1))
    if isinstance(node, (exp.Add, exp.Sub)):
        left, right = parts(node.this, terms), parts(node.expression, terms)
        if isinstance(node, exp.Sub):
            right = _scaled(right, exp.Literal.number(-1))
        return None if left is None or right is None else _merged([*left, *right])
    if isinstance(node, (exp.Mul, exp.Div)):
        return _product(node, terms)
    if isinstance(node, exp.Cast) and node.to.this in _REALS:
        return parts(node.this, terms)
    if isinstance(node, exp.Cast) and node.to.this in _WHOLE and isinstance(node.this, exp.Round):
        return parts(node.this, terms)
    if isinstance(node, exp.Round) and node.args.get("decimals") is None:
        return _rounded(parts(node.this, terms), terms, WHOLE in node.meta)
    return None


def _product(node: exp.Mul | exp.Div, terms: Mapping[str, ReleasedTerm]) -> list[Part] | None:
    left, right = parts(node.this, terms), parts(node.expression, terms)
    if left is None or right is None or (right and (left or isinstance(node, exp.Div))):
        return None
    if right:
        return _scaled(right, node.this)
    weight = node.expression
    return _scaled(left, weight if isinstance(node, exp.Mul) else _call(exp.Div, exp.Literal.number("1.0"), weight))


def _scaled(sums: list[Part] | None, weight: exp.Expr) -> list[Part] | None:
    if sums is None:
        return None
    return [
        Part(part.weights, _call(exp.Mul, part.factor, weight), True) if part.rounded
        else Part({name: _call(exp.Mul, w, weight) for name, w in part.weights.items()}, part.factor, False)
        for part in sums
    ]  # fmt: skip


def _merged(sums: list[Part]) -> list[Part]:
    """Merge all parts that are not rounded into one."""
    weights: dict[str, exp.Expr] = {}
    for part in sums:
        for name, weight in part.weights.items() if not part.rounded else ():
            weights[name] = _call(exp.Add, weights[name], weight) if name in weights else weight
    straight = [Part(weights, exp.Literal.number(1), False)] if weights else []
    return [*straight, *(part for part in sums if part.rounded)]


def _rounded(sums: list[Part] | None, terms: Mapping[str, ReleasedTerm], whole: bool) -> list[Part] | None:
    """Return the parts of a rounded sum; None where the sum need not be an integer without noise (not `whole`), because then
    arbitrarily small noise may move the rounded sum by one."""
    if sums is None or len(sums) != 1 or sums[0].rounded:
        return None
    part = sums[0]
    alone = len(part.weights) == 1 and all(terms[n].whole and w.is_number for n, w in part.weights.items())
    if alone and next(iter(part.weights.values())).name == "1":
        return sums  # a whole number is its own rounding
    return [Part(part.weights, part.factor, True)] if whole else None


def _call(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return kind(this=exp.Paren(this=left.copy()), expression=exp.Paren(this=right.copy()))


@dataclass(frozen=True)
class Weighed:
    """A part with numbers, one per row: the weight of each term, and the factor."""

    weights: dict[str, Floats]
    factor: Floats
    rounded: bool


def half_widths(
    weighed: Sequence[Weighed], terms: Mapping[str, ReleasedTerm], confidence: float, key: str
) -> Floats | None:
    """Return for each row h with P(|error| <= h) >= confidence, in the units of the expression.

    For one term, h is exact (the quantile of its law). For sums of Gaussian noise it is the normal quantile (a sum of
    independent normal laws is normal). Otherwise it is the quantile of a sum of drawn noise, and the result is None when the
    rows have too many different weights.
    """
    if len(weighed) == 1:
        part = weighed[0]
        inner = _closed(part, terms, confidence)
        if inner is not None:
            if part.rounded:  # the exact number is an integer: |round(e)| <= h if |e| < h + 1/2
                inner = np.floor(inner + 0.5)
            return np.asarray(np.abs(part.factor) * inner)
    return _drawn(weighed, terms, confidence, key)


def _closed(part: Weighed, terms: Mapping[str, ReleasedTerm], confidence: float) -> Floats | None:
    if len(part.weights) == 1:
        ((name, weight),) = part.weights.items()
        return np.asarray(np.abs(weight) * terms[name].half_width(confidence))
    if not all(terms[name].noise.normal for name in part.weights):
        return None
    deviations = [np.asarray(weight * deviation_of(terms[name])) for name, weight in part.weights.items()]
    return np.asarray(NormalDist().inv_cdf((1 + confidence) / 2) * reduce(np.hypot, deviations))  # no square overflows


def deviation_of(term: ReleasedTerm) -> float:
    """Return the standard deviation of the error of a released term; rounding adds at most 1/12 to the variance of noise on a
    fine grid."""
    spread = term.standard_deviation()
    return math.hypot(spread, math.sqrt(1 / 12)) if term.whole and spread > 0 else spread


def _drawn(weighed: Sequence[Weighed], terms: Mapping[str, ReleasedTerm], confidence: float, key: str) -> Floats | None:
    columns = [column for part in weighed for column in (part.factor, *part.weights.values())]
    weightings, of_row = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    if len(weightings) > _MOST_WEIGHTINGS:
        return None
    noise = {name: deviates(terms[name], stratified(f"{key}/{name}", _DRAWS))
             for name in {name for part in weighed for name in part.weights}}  # fmt: skip
    rank = min(math.ceil(confidence * (_DRAWS + 1)), _DRAWS) - 1
    widths = []
    for weighting in weightings:
        numbers = iter(weighting)
        error = np.zeros(_DRAWS)
        for part in weighed:
            factor = next(numbers)
            inner = sum((next(numbers) * noise[name] for name in part.weights), np.zeros(_DRAWS))
            error += factor * (np.rint(inner) if part.rounded else inner)
        widths.append(np.partition(np.abs(error), rank)[rank])
    return np.asarray(widths)[of_row.reshape(-1)]
