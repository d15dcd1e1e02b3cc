"""Unbiased estimates from randomised rows, with error bars; the questions that they answer are read by an allow-list.

Let Y_i be the contribution of row i to an estimate. For a set A of values of a category it is

    w_A = (number of values of A in the row's output - |A| other_share) / (own_share - other_share),

whose mean is 1 for rows with a value in A and 0 for others, because the row's own value is in the output's set with
probability own_share, and any other value with probability other_share. For a number x with middle c it is (written
number - c) + c present, where `present` is the weight of a number or of NULL (`NumberLaw.present_weights`). Columns
are randomised independently, so the mean of a product over different columns is the product of the means. This gives
COUNT, SUM and GROUP BY over several columns, whose estimates add up to those over fewer columns, because the weights
of all values of a category add up to 1 in every row. (Warner 1965; Wang, Blocki, Li, Jha 2017 for the general form.)

**Error bars.** Given the data, rows are independent, so the variance of sum Y_i is sum E[Y_i**2] - sum (E Y_i)**2.
For counts, where means are 0 or 1, the first term is estimated by sum Y_i**2, and the second is the count. For other sums
the estimate is n / (n - 1) times the sum of squared deviations of the n contributions from their mean. Its expectation
exceeds the variance by n / (n - 1) times the sum of squared deviations of the E Y_i from their mean, which is not negative.

A mean is a ratio, and its bar holds every r with |sum (Y_i - r present_i)| within the bar of that sum (Fieller 1954).
Bars also allow for the noise in the number of written rows: a padding row counts as a row of values drawn uniformly, so
each of at most t padding rows, or rows left out, moves a count by at most 1, and a SUM by at most max(|lower|, |upper|).
One fifth of the probability of error is assigned to t. The bars treat sums as normal, with a correction for the steps
that single rows make.

**Questions.** SELECT category, ..., COUNT(*), COUNT(c), SUM(c), AVG(c) FROM rows [WHERE category = value AND
category IN (...) AND category IS [NOT] NULL ...] [GROUP BY category, ...]; conditions may also be <>, NOT, and tests of
truth values. Everything else is refused: a result without an unbiased estimate here would be wrong without anybody
noticing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.errors.exceptions import Error, refuse, suggestion
from dpsql.exports.rows_file import CategoryColumn, Description, NumberColumn, RandomisedRows
from dpsql.sql.lexer import POSTGRESQL, as_piece
from dpsql.sql.parser import parse_tokens
from dpsql.storage.records import dataclass

_PARTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.EQ: ("this", "expression"),
    exp.NEQ: ("this", "expression"),
    exp.In: ("this", "expressions"),
    exp.Is: ("this", "expression", "negate"),
}
"""The parts of a condition that are read; a condition with any other part is refused."""
_AGGREGATES: dict[type[exp.Expr], str] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}


@dataclass(frozen=True)
class EstimateOutput:
    """One output column: `key` (the position of a grouped column), or an aggregate of `column` (None: of rows)."""

    name: str
    aggregate: str
    column: CategoryColumn | NumberColumn | None
    key: int | None = None


@dataclass(frozen=True)
class EstimateQuestion:
    """A question that was read. `allowed`: for each column with a condition, the codes of the values that satisfy it."""

    outputs: tuple[EstimateOutput, ...]
    keys: tuple[CategoryColumn, ...]
    allowed: dict[str, frozenset[int]]


def read_question(sql: str, description: Description) -> EstimateQuestion:
    """Read one SELECT. Raises Refusal estimate_sql, unknown_table, unknown_column."""
    try:
        statements = parse_tokens(as_piece(sql).tokens(POSTGRESQL), sql, POSTGRESQL)
    except (Error, SqlglotError, RecursionError):
        raise _refused("this is not SQL") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise _refused("one SELECT is answered at a time")
    select = statements[0]
    for name, part in select.args.items():
        if part and name not in ("expressions", "from_", "from", "where", "group", "kind"):
            raise _refused(f"{name.rstrip('_').upper()} is not answered")
    source = select.args.get("from_") or select.args.get("from")
    table = None if source is None else source.this
    if not isinstance(table, exp.Table) or any(value for name, value in table.args.items() if name != "this"):
        raise _refused("FROM names the one table, without an alias")
    if table.name.lower() not in (description.table.lower(), "rows"):
        raise refuse("unknown_table", name=table.name, hint=suggestion(table.name, [description.table, "rows"]))
    group = select.args.get("group")
    keys: list[CategoryColumn] = []
    for entry in [] if group is None else _grouped(group):
        column = _column(entry, description)
        if isinstance(column, NumberColumn):
            raise _refused(f"GROUP BY {column.name} is not answered: it holds randomised numbers")
        if column not in keys:
            keys.append(column)
    outputs = tuple(_output(item, keys, description) for item in select.expressions)
    if all(output.key is not None for output in outputs):
        raise _refused("a SELECT without COUNT, SUM or AVG is not answered")
    where = select.args.get("where")
    allowed: dict[str, frozenset[int]] = {}
    for condition in [] if where is None else _conjuncts(where.this):
        category, codes = _condition(condition, description)
        allowed[category.name] = allowed.get(category.name, codes) & codes
    return EstimateQuestion(outputs, tuple(keys), allowed)


def _has_only(node: exp.Expr, *parts: str) -> bool:
    """Return whether a node has no parts other than `parts`, which are read."""
    return not any(value for name, value in node.args.items() if name not in parts)


def _refused(problem: str) -> Error:
    return refuse("estimate_sql", problem=problem)


def _grouped(group: exp.Group) -> list[exp.Expr]:
    if any(part for name, part in group.args.items() if name != "expressions"):
        raise _refused("GROUP BY names columns: no ALL, no grouping sets")
    return list(group.expressions)


def _column(node: exp.Expr, description: Description) -> CategoryColumn | NumberColumn:
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier) or not _has_only(node, "this"):
        raise _refused(f"{node.sql()[:60]} stands where a column has to")
    column = description.column(node.name)
    if column is None:
        names = [entry.name for entry in description.columns]
        raise refuse("unknown_column", name=node.name, hint=suggestion(node.name, names))
    return column


def _output(item: exp.Expr, keys: list[CategoryColumn], description: Description) -> EstimateOutput:
    alias = item.alias if isinstance(item, exp.Alias) else ""
    node = item.this if isinstance(item, exp.Alias) else item
    if isinstance(node, exp.Column):
        column = _column(node, description)
        if column not in keys:
            raise _refused(f"{column.name} has to stand in GROUP BY")
        return EstimateOutput(alias or node.name, "", column, keys.index(column))
    word = _AGGREGATES.get(type(node))
    if word is None or not _has_only(node, "this", "big_int"):
        raise _refused(f"{node.sql()[:60]} is not answered")
    if isinstance(node.this, exp.Star):
        return EstimateOutput(alias or "count", word, None)
    column = _column(node.this, description)
    if word != "count" and isinstance(column, CategoryColumn) and column.type not in ("int64", "double"):
        raise _refused(f"{word.upper()}({column.name}) is not answered: it holds no numbers")
    return EstimateOutput(alias or word, word, column)


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _condition(node: exp.Expr, description: Description) -> tuple[CategoryColumn, frozenset[int]]:
    """Return the column of a condition on categories, and the codes that satisfy it; NULL satisfies no comparison."""
    if isinstance(node, exp.Not) and _has_only(node, "this"):
        category, codes = _condition(node.this.unnest(), description)
        nulls = frozenset() if isinstance(node.this.unnest(), exp.Is) else _nulls(category)
        return category, frozenset(range(len(category.values))) - codes - nulls
    if isinstance(node, exp.Column):
        node = exp.EQ(this=node, expression=exp.true())
    if not isinstance(node, (exp.EQ, exp.NEQ, exp.In, exp.Is)) or not _has_only(node, *_PARTS[type(node)]):
        raise _refused(f"the condition {node.sql()[:60]} is not answered")
    column = _column(node.this, description)
    if isinstance(column, NumberColumn):
        raise _refused(f"a condition on {column.name} is not answered: it holds randomised numbers")
    if isinstance(node, exp.Is):
        if not isinstance(node.expression, (exp.Null, exp.Boolean)):
            raise _refused(f"the condition {node.sql()[:60]} is not answered")
        codes = _codes(column, [node.expression])
        return column, frozenset(range(len(column.values))) - codes if node.args.get("negate") else codes
    listed = node.expressions if isinstance(node, exp.In) else [node.expression]
    if not listed or any(isinstance(entry, exp.Null) for entry in listed):
        raise _refused(f"the condition {node.sql()[:60]} is not answered")
    codes = _codes(column, listed)
    remaining = frozenset(range(len(column.values))) - codes - _nulls(column)
    return column, remaining if isinstance(node, exp.NEQ) else codes


def _nulls(column: CategoryColumn) -> frozenset[int]:
    return frozenset(code for code, value in enumerate(column.values) if value is None)


def _codes(column: CategoryColumn, listed: list[exp.Expr]) -> frozenset[int]:
    """Return the codes of literals. Refuse one that is none of the column's values: its count would be 0 for certain."""
    texts = {_text(value): code for code, value in enumerate(column.values)}
    codes = set()
    for node in listed:
        text = _literal(node)
        if text not in texts:
            raise _refused(f"{node.sql()[:60]} is none of the values of {column.name}")
        codes.add(texts[text])
    return frozenset(codes)


def _text(value: Any) -> str | None:
    """Return a value as its literal is written; numbers have a single spelling."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{float(value)!r}" if isinstance(value, (int, float)) else str(value)


def _literal(node: exp.Expr) -> str | None:
    negative = isinstance(node, exp.Neg)
    inner = node.this if negative else node
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    if isinstance(inner, exp.Literal) and not (negative and inner.is_string):
        return inner.name if inner.is_string else f"{(-1 if negative else 1) * float(inner.name)!r}"
    raise _refused(f"{node.sql()[:60]} stands where a value has to")


MOST_GROUPS = 10_000
_COUNT_PART = 0.2
"""Share of the probability of error that is assigned to the number of rows."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EstimatedValue:
    """An estimate and the ends of its error bar."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimates:
    """The answer to a question: names of its columns, and rows of keys (values as they are) and estimates."""

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def estimate(rows: RandomisedRows, sql: str, confidence: float = 0.95) -> Estimates:
    """Answer a question about randomised rows; every bar holds its exact value with probability `confidence`.

    Raises Refusal estimate_sql, estimate_groups, unknown_table, unknown_column.
    """
    question = read_question(sql, rows.description)
    groups = prod(len(_allowed(key, question)) for key in question.keys)
    if groups > MOST_GROUPS:
        raise refuse("estimate_groups", groups=groups, most=MOST_GROUPS)
    answers = _Estimator(rows, question, confidence)
    names = tuple(output.name for output in question.outputs)
    return Estimates(names, tuple(answers.row(group) for group in answers.groups()))


def _allowed(column: CategoryColumn, question: EstimateQuestion) -> list[int]:
    return sorted(question.allowed.get(column.name, range(len(column.values))))


class _Estimator:
    """Sums of one question over all rows."""

    def __init__(self, rows: RandomisedRows, question: EstimateQuestion, confidence: float) -> None:
        self._rows, self._question = rows, question
        described = rows.description
        noisy = described.count_noise is not None
        wrong = 1 - confidence
        self._missed = described.rows_missed(1 - wrong * _COUNT_PART) if noisy else 0.0
        self._z = NormalDist().inv_cdf(1 - wrong * ((1 - _COUNT_PART) if noisy else 1) / 2)
        self._count = rows.count

    def groups(self) -> Iterator[tuple[int, ...]]:
        """Return an iterator over the codes of the keys of every group."""
        return product(*(_allowed(key, self._question) for key in self._question.keys))

    def row(self, group: tuple[int, ...]) -> tuple[Any, ...]:
        sets = {name: frozenset(codes) for name, codes in self._question.allowed.items()}
        keys = self._question.keys
        sets |= {key.name: frozenset((code,)) for key, code in zip(keys, group, strict=True)}
        return tuple(
            keys[output.key].array[group[output.key]].as_py() if output.key is not None else self._answer(output, sets)
            for output in self._question.outputs
        )

    def _answer(self, output: EstimateOutput, sets: dict[str, frozenset[int]]) -> EstimatedValue:
        column = output.column
        if column is None:
            return self._count_of(self._weights(sets, None))
        weights = self._weights(sets, column.name)
        if isinstance(column, NumberColumn):
            present, total, reach = *self._number(column), max(abs(column.lower), abs(column.upper))
            ends = column.lower, column.upper
        else:
            chosen = sets.get(column.name, frozenset(range(len(column.values))))
            values = {code: column.values[code] for code in chosen if column.values[code] is not None}
            present = self._category(column, dict.fromkeys(values, 1.0))
            numeric = output.aggregate != "count" and bool(values)
            total = self._category(column, {c: float(v) for c, v in values.items()}) if numeric else present
            ends = (float(min(values.values())), float(max(values.values()))) if numeric else (0.0, 0.0)
            reach = max(map(abs, ends))
        if output.aggregate == "count":
            return self._count_of(weights * present)
        if output.aggregate == "sum":
            return self._sum_of(weights * total, reach, max(reach, ends[1] - ends[0]))
        return self._mean_of(weights * total, weights * present, ends)

    def _weights(self, sets: dict[str, frozenset[int]], without: str | None) -> Floats:
        """Return the product of the weights of all conditions and keys except those on `without`."""
        weights = np.ones(self._count)
        for name, codes in sets.items():
            column = self._rows.description.column(name)
            assert isinstance(column, CategoryColumn)
            if name != without:
                weights = weights * self._category(column, dict.fromkeys(codes, 1.0))
        return weights

    def _category(self, column: CategoryColumn, values: dict[int, float]) -> Floats:
        """Return for each row an unbiased estimate of values[code of the row] (0 for codes that are not in `values`)."""
        gain = column.own_share - column.other_share
        table = np.zeros(len(column.values))
        for code, value in values.items():
            table[code] = value / gain
        read = table[self._rows.columns[column.name]]
        weights: Floats = (read.sum(axis=1) if read.ndim > 1 else read) - sum(
            values.values()
        ) * column.other_share / gain
        return weights

    def _number(self, column: NumberColumn) -> tuple[Floats, Floats]:
        """Return for each row unbiased estimates of whether it has a number (1 or 0), and of the number (0 for none)."""
        written = self._rows.columns[column.name]
        missing = np.isnan(written)
        present = np.where(missing, column.missing_weight, column.present_weight)
        return present, np.where(missing, 0.0, written - column.middle) + column.middle * present

    # --- error bars -----------------------------------------------------------------------------------------------------

    def _count_of(self, parts: Floats) -> EstimatedValue:
        value = float(parts.sum())
        if bool((abs(parts - 1) < 1e-9).all()):  # every row counts, whatever its randomised values are
            return self._around(value, self._missed)
        variance = float((parts**2).sum()) - min(max(value, 0.0), self._count)
        return self._around(value, self._half(variance, parts, 1.0) + self._missed)

    def _sum_of(self, parts: Floats, reach: float, step: float) -> EstimatedValue:
        value = float(parts.sum())
        return self._around(value, self._half(_spread(parts), parts, step) + self._missed * reach)

    def _half(self, variance: float, parts: Floats, step: float) -> float:
        """Return the half width of a bar: the normal quantile, plus half of the largest step of one row (at least `step`).

        Rows that happen to be equal do not show how much they vary: one further row is assumed to make `step`.
        """
        if not parts.size:
            return 0.0
        if _is_constant(parts):
            variance += step**2
        return self._z * sqrt(max(variance, 0.0)) + max(step, float(np.ptp(parts))) / 2

    @staticmethod
    def _around(value: float, half: float) -> EstimatedValue:
        return EstimatedValue(value, value - half, value + half)

    def _mean_of(self, totals: Floats, present: Floats, ends: tuple[float, float]) -> EstimatedValue:
        """Return a ratio of sums, limited to the range of the values, `ends`."""
        low, high = ends
        total, count = float(totals.sum()), float(present.sum())
        if count <= 0:
            return EstimatedValue((low + high) / 2, low, high)
        value = min(max(total / count, low), high)
        bar = self._ratio_bar(totals, present, value)
        slack = self._missed * (high - low) / count
        if bar is None:
            return EstimatedValue(value, low, high)
        return EstimatedValue(value, max(low, min(value, bar[0]) - slack), min(high, max(value, bar[1]) + slack))

    def _ratio_bar(self, totals: Floats, present: Floats, value: float) -> tuple[float, float] | None:
        """Return the ends of the r with (sum (totals - r present))**2 <= z**2 times its variance; None if these are no interval.

        Both are computed relative to `value`, so that numbers far from 0 lose no digits.
        """
        moved = totals - value * present
        if _is_constant(moved):
            return None
        square = self._z**2
        a = float(present.sum()) ** 2 - square * _spread(present)
        b = float(moved.sum()) * float(present.sum()) - square * _spread(moved, present)
        c = float(moved.sum()) ** 2 - square * _spread(moved)
        if a <= 0 or b * b - a * c < 0:
            return None
        root = sqrt(b * b - a * c)
        return value + (b - root) / a, value + (b + root) / a


def _is_constant(parts: Floats) -> bool:
    return float(np.ptp(parts)) < 1e-9 * (1 + abs(float(parts[0])))


def _spread(left: Floats, right: Floats | None = None) -> float:
    """Return an estimate of the variance of the sum of `left`, or of the covariance of the sums of `left` and `right`.

    n / (n - 1) times the sum of products of deviations from the means, for n rows; 0 for fewer than two. The expectation of
    a variance is exact where all rows have equal means, and too large otherwise.
    """
    if left.size < 2:
        return 0.0
    right = left if right is None else right
    return float(((left - left.mean()) * (right - right.mean())).sum()) * left.size / (left.size - 1)
