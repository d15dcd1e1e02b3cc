"""SQL text of SAMPLE_AGGREGATE: samples of units by a keyed hash, their statistics, and the number of samples in each cell.

It is one statement with one GROUP BY over the rows; above that there is one row for each group and sample. A row's sample
depends only on its unit and the secret of keyed orders. Rows that belong to no unit are numbered among the rows that are equal
in everything that is read of them, and the hash of that content and number chooses their sample: an additional row extends the
sequence of its equals at the end, and no other row changes its sample (`privacy.mechanisms.sample_values`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpsql.engine.dialect import Dialect
from dpsql.engine.emit.columns import RowsOf
from dpsql.engine.emit.quantization import row_integer, summand
from dpsql.engine.emit.sample_statistics import StatisticText, statistic_text, terms_of_statistic
from dpsql.functions.sample_statistics import statistic_of
from dpsql.plan.intervals import Type
from dpsql.plan.measurements import SampleMean, SampleValues
from dpsql.plan.plan import Call, Column, Expr, Term, TermKind

_SAMPLE, _NUMBER, _VALUE = "sample", '"#number"', "value"
_LARGEST = 1.7976931348623157e308
_SECRET = ".samples"
"""Suffix of the secret of row orders that makes the hash of samples a different one."""


def statistic_calls(value: Expr) -> tuple[Call, ...]:
    """Return the calls of statistics in an expression, without repetitions, in order."""
    if not isinstance(value, Call):
        return ()
    if statistic_of(value) is not None:
        return (value,)
    return tuple(dict.fromkeys(call for argument in value.arguments for call in statistic_calls(argument)))


def row_terms(measurement: SampleValues | SampleMean) -> tuple[Term, ...]:
    """Return the terms that are read of each row, without repetitions, named x0, x1, ..."""
    terms = dict.fromkeys(term for call in statistic_calls(measurement.value) for term in terms_of_statistic(call))
    return tuple(replace(term, name=f"x{number}") for number, term in enumerate(terms))


def sample_values(measurement: SampleValues | SampleMean, keys: Sequence[str], rows: RowsOf, dialect: Dialect) -> str:
    """Return the query that counts the samples of each group in each cell. A sample without a value is in no cell."""
    terms = row_terms(measurement)
    names = {replace(term, name=""): term.name for term in terms}
    calls = statistic_calls(measurement.value)
    statistics = []
    for number, call in enumerate(calls):
        read = terms_of_statistic(call)
        statistics.append(statistic_text(f"s{number}", call, read, [names[term] for term in read], dialect))
    steps = _Steps(dialect, keys)
    sql = steps.grouped(_in_samples(measurement, terms, keys, rows, dialect), statistics)
    sql = steps.added(sql, _merged(text.means() for text in statistics))
    sql = steps.added(sql, _merged(text.centred() for text in statistics))
    sql = steps.only(sql, {f"v{number}": text.value() for number, text in enumerate(statistics)})
    replaced = {call: Column(f"v{number}", call.facts) for number, call in enumerate(calls)}
    sql = steps.only(sql, {_VALUE: dialect.expression(_over(measurement.value, replaced))})
    finite = f"CASE WHEN abs({_VALUE}) <= {dialect.constant(_LARGEST)} THEN {_VALUE} END"
    column = Column(_VALUE, measurement.term.value.facts if measurement.term.value else measurement.value.facts)
    sql = steps.only(sql, {"moved": summand(measurement.term, column, f"({finite})", dialect)})
    sql = steps.only(sql, {"cell": row_integer(measurement.term, "moved", dialect)})
    listed = ", ".join([*keys, "cell"])
    return f"SELECT {listed}, count(*) AS rows FROM {dialect.derived(sql)} WHERE cell IS NOT NULL GROUP BY {listed}"


def _in_samples(
    measurement: SampleValues | SampleMean, terms: Sequence[Term], keys: Sequence[str], rows: RowsOf, dialect: Dialect
) -> str:
    """Return the SELECT of the rows with their keys, their terms, and the number of their sample."""
    items = [f"{_read(term, rows, dialect)} AS {term.name}" for term in terms]
    inside = f" WHERE {rows.inside}" if rows.inside else ""
    columns = [*keys, *(term.name for term in terms)]
    secret = rows.order_key + _SECRET
    if rows.unit:
        sample = dialect.sample_number(secret, [rows.unit], measurement.samples)
        return f"SELECT {', '.join([*keys, *items, f'{sample} AS {_SAMPLE}'])} FROM {dialect.derived(rows.sql)}{inside}"
    read = f"SELECT {', '.join([*keys, *items])} FROM {dialect.derived(rows.sql)}{inside}"
    number = f"row_number() OVER (PARTITION BY {', '.join(columns)})"
    numbered = f"SELECT *, {number} AS {_NUMBER} FROM {dialect.derived(read)}"
    sample = dialect.sample_number(secret, [*columns, _NUMBER], measurement.samples)
    return f"SELECT {', '.join([*columns, f'{sample} AS {_SAMPLE}'])} FROM {dialect.derived(numbered)}"


def _read(term: Term, rows: RowsOf, dialect: Dialect) -> str:
    """Return the text of a term's value in a row, NULL if there is none; rows that are equal in SQL become equal in every bit."""
    value, condition = rows.values[term.name], rows.conditions[term.name]
    if term.kind is TermKind.SUM:
        text = f"CAST({value} AS {dialect.types[Type.INTEGER]})"
    elif term.value is None:
        text = "1"
    elif term.value.facts.type is Type.REAL:
        text = f"CASE WHEN NOT {dialect.is_nan(value)} THEN {dialect.real_key(value)} END"
    else:
        text = value
    return f"CASE WHEN {condition} THEN {text} END" if condition else text


def _over(value: Expr, replaced: Mapping[Call, Column]) -> Expr:
    """Return an expression in which columns replace the calls of statistics."""
    if not isinstance(value, Call):
        return value
    if value in replaced:
        return replaced[value]
    return replace(value, arguments=tuple(_over(argument, replaced) for argument in value.arguments))


def _merged(parts: Any) -> dict[str, str]:
    return {name: text for part in parts for name, text in part.items()}


class _Steps:
    """Nested SELECTs, in which every text is computed once."""

    def __init__(self, dialect: Dialect, keys: Sequence[str]) -> None:
        self._dialect = dialect
        self._keys = list(keys)

    def grouped(self, rows: str, statistics: Sequence[StatisticText]) -> str:
        """Return the SELECT of aggregates over each sample of each group."""
        items = [f"{text} AS {name}" for name, text in _merged(text.aggregates() for text in statistics).items()]
        columns = ", ".join([*self._keys, *items])
        groups = ", ".join([*self._keys, _SAMPLE])
        return f"SELECT {columns} FROM {self._dialect.derived(rows)} GROUP BY {groups}"

    def added(self, rows: str, items: Mapping[str, str]) -> str:
        """Return a SELECT that adds columns to `rows`."""
        if not items:
            return rows
        columns = ", ".join(["*", *(f"{text} AS {name}" for name, text in items.items())])
        return f"SELECT {columns} FROM {self._dialect.derived(rows)}"

    def only(self, rows: str, items: Mapping[str, str]) -> str:
        """Return a SELECT that replaces all columns except the keys."""
        columns = ", ".join([*self._keys, *(f"{text} AS {name}" for name, text in items.items())])
        return f"SELECT {columns} FROM {self._dialect.derived(rows)}"
