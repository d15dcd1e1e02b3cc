"""Statistics of samples: the exact aggregates that SAMPLE_AGGREGATE computes over the rows of each sample of units.

In an expression, a statistic is a call named `PREFIX` and its word; its arguments are row expressions, followed by the condition
of its FILTER if it has one. Every statistic is *total* (NULL where SQL's aggregate is NULL or would fail) and a function of the
multiset of a sample's rows alone: in whatever order an engine reads the rows, no bit of it changes
(`engine.emit.sample_statistics`), so that a unit changes the value of its own sample and of no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from fractions import Fraction

from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Expr
from dpsql.storage.records import dataclass

PREFIX = "sample."
"""Prefix of the word of a statistic in the name of its calls."""
_MOST_COUNTED = 1 << 42


class Operands(Enum):
    """Kinds of input of a statistic."""

    ROWS = "rows"
    VALUE = "a value"
    NUMBER = "a bounded number"
    PAIR = "two bounded numbers"
    QUANTILE = "a bounded number and a share"


@dataclass(frozen=True)
class Statistic:
    """One statistic. `spellings`: names of the parser's nodes or, in lower case, of functions unknown to the parser; `power`: the
    highest power of a number that is summed (0: none)."""

    word: str
    spellings: tuple[str, ...]
    operands: Operands
    power: int = 0
    counts: bool = False

    @property
    def arity(self) -> int:
        return {Operands.ROWS: 0, Operands.PAIR: 2, Operands.QUANTILE: 2}.get(self.operands, 1)

    @property
    def facts(self) -> Facts:
        """Return the facts of the statistic: those of a count, or of a real number."""
        if self.counts:
            return Facts(Type.INTEGER, Fraction(0), Fraction(_MOST_COUNTED))
        return Facts(Type.REAL)


def _all() -> Iterator[Statistic]:
    yield Statistic("count_rows", (), Operands.ROWS, counts=True)
    yield Statistic("count", ("Count",), Operands.VALUE, counts=True)
    yield Statistic("count_distinct", (), Operands.VALUE, counts=True)
    yield Statistic("entropy", ("entropy",), Operands.VALUE)
    yield Statistic("min", ("Min",), Operands.NUMBER)
    yield Statistic("max", ("Max",), Operands.NUMBER)
    yield Statistic("sum", ("Sum",), Operands.NUMBER, 1)
    yield Statistic("avg", ("Avg", "mean"), Operands.NUMBER, 1)
    for word, nodes in (
        ("var_pop", ("VariancePop",)),
        ("var_samp", ("Variance",)),
        ("stddev_pop", ("StddevPop",)),
        ("stddev_samp", ("Stddev", "StddevSamp")),
    ):
        yield Statistic(word, nodes, Operands.NUMBER, 2)
    yield Statistic("skewness", ("Skewness",), Operands.NUMBER, 3)
    yield Statistic("kurtosis", ("Kurtosis",), Operands.NUMBER, 4)
    yield Statistic("kurtosis_pop", ("kurtosis_pop",), Operands.NUMBER, 4)
    yield Statistic("quantile_cont", ("Median", "PercentileCont"), Operands.QUANTILE)
    yield Statistic("quantile_disc", ("PercentileDisc", "Quantile"), Operands.QUANTILE)
    for word, node in (
        ("covar_pop", "CovarPop"), ("covar_samp", "CovarSamp"), ("corr", "Corr"), ("regr_slope", "RegrSlope"),
        ("regr_intercept", "RegrIntercept"), ("regr_r2", "RegrR2"), ("regr_avgx", "RegrAvgx"), ("regr_avgy", "RegrAvgy"),
        ("regr_sxx", "RegrSxx"), ("regr_syy", "RegrSyy"), ("regr_sxy", "RegrSxy"),
    ):  # fmt: skip
        yield Statistic(word, (node,), Operands.PAIR, 2)
    yield Statistic("regr_count", ("RegrCount",), Operands.PAIR, 2, counts=True)


STATISTICS = {statistic.word: statistic for statistic in _all()}
"""All statistics by their words. Any other aggregate is refused."""
SPELLED = {spelling: statistic for statistic in STATISTICS.values() for spelling in statistic.spellings}


def statistic_of(expression: Expr) -> Statistic | None:
    """Return the statistic that an expression calls; None for anything else."""
    if not isinstance(expression, Call) or not expression.function.startswith(PREFIX):
        return None
    return STATISTICS[expression.function.removeprefix(PREFIX)]


def statistic_call(statistic: Statistic, arguments: tuple[Expr, ...], condition: Expr | None) -> Call:
    """Return the call of a statistic over the rows with `condition` (None: all). Raises ValueError for too many arguments."""
    if len(arguments) != statistic.arity:
        raise ValueError(f"{statistic.word} takes {statistic.arity} arguments")
    return Call(PREFIX + statistic.word, (*arguments, *(() if condition is None else (condition,))), statistic.facts)


def parts_of(call: Call) -> tuple[tuple[Expr, ...], Expr | None]:
    """Return the arguments of a statistic's call, and its condition or None."""
    statistic = statistic_of(call)
    assert statistic is not None
    rest = call.arguments[statistic.arity :]
    return call.arguments[: statistic.arity], rest[0] if rest else None
