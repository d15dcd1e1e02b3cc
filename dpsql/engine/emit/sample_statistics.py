"""SQL text of the statistics of samples: exact integer sums first, independent of the order of rows; doubles only of these.

A number is read as an integer q on a grid over its bounds (`pricing.sum_terms`), with so few bits that its highest power fits
into 64 bits. So sums of powers are exact. They are moved to m, the integer nearest to the sample's mean, also exactly:

    sum (q - m)^2 = s2 - 2 m s1 + n m^2,

and so on. The doubles computed afterwards then subtract numbers of the size of the spread, not of the bounds. With |q| <= 2**30
(2**20 and 2**15 for third and fourth powers) and fewer than 2**42 rows, no sum reaches 2**106. The formulas are DuckDB's
(skewness and kurtosis are corrected for small samples), written without any step that can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpsql.engine.dialect import Dialect
from dpsql.engine.emit.columns import RowsOf
from dpsql.engine.emit.quantization import row_integer, summand
from dpsql.functions.numeric import call
from dpsql.functions.sample_statistics import Operands, Statistic, parts_of, statistic_of
from dpsql.plan.intervals import Type
from dpsql.plan.measurements import SampleMean, SampleValues
from dpsql.plan.plan import Call, Column, Expr, Literal, Term, TermKind
from dpsql.pricing.sum_terms import summed
from dpsql.storage.records import dataclass, replace

_BITS = {0: 30, 1: 30, 2: 30, 3: 20, 4: 15}
"""Bits of the integers whose powers are summed, by the highest power: that power stays below 2**62."""


def terms_of_statistic(statistic_call: Call) -> tuple[Term, ...]:
    """Return the terms, without names, that a statistic reads of each row: SUM for numbers, COUNT for other values and rows."""
    statistic = statistic_of(statistic_call)
    assert statistic is not None
    arguments, condition = parts_of(statistic_call)
    if statistic.operands is Operands.ROWS:
        return (Term("", TermKind.COUNT, None, condition, 1),)
    if statistic.operands is Operands.VALUE:
        return (Term("", TermKind.COUNT, arguments[0], condition, 1),)
    numbers = arguments[:1] if statistic.operands is Operands.QUANTILE else arguments
    return tuple(_number(value, condition, _BITS[statistic.power]) for value in numbers)


def _number(value: Expr, condition: Expr | None, bits: int) -> Term:
    """Return the SUM term of a number around the middle of its bounds, with integers of at most `bits` bits."""
    term, _ = summed(value, condition, True, bits)
    if term.magnitude > 1 << bits:
        term, _ = summed(call("to_real", value), condition, True, bits)
    return term


@dataclass(frozen=True)
class StatisticText:
    """One statistic named `name` over the columns `columns` of a sample's rows, which `terms` describe, in three steps:
    aggregates over the rows, integers of the aggregates, and the value."""

    name: str
    statistic: Statistic
    columns: tuple[str, ...]
    terms: tuple[Term, ...]
    share: Fraction
    dialect: Dialect

    @property
    def numbers(self) -> tuple[str, ...]:
        """The prefixes of the column names for each number."""
        return tuple(f"{self.name}{letter}" for letter, _ in zip("xy", self.columns, strict=False))

    # --- aggregates over the rows -------------------------------------------------------------------------------------

    def aggregates(self) -> Mapping[str, str]:
        """Return aggregates over the rows of a sample by name."""
        name, (column, *rest) = self.name, self.columns
        if self.statistic.operands is Operands.VALUE or self.statistic.operands is Operands.ROWS:
            text = {"count_distinct": f"count(DISTINCT {column})", "entropy": self._entropy(column)}
            return {name: text.get(self.statistic.word, f"count({column})")}
        if self.statistic.operands is Operands.QUANTILE:
            words = {"quantile_cont": "percentile_cont", "quantile_disc": "percentile_disc"}
            share = self.dialect.constant(float(self.share))
            return {name: f"{words[self.statistic.word]}({share}) WITHIN GROUP (ORDER BY {column})"}
        if not self.statistic.power:
            return {name: f"{self.statistic.word}({column})"}
        if rest:
            return self._pair_sums(column, rest[0])
        powers = {f"{name}n": f"count({column})"}
        for power in range(1, self.statistic.power + 1):
            powers[f"{name}x{power}"] = f"sum({' * '.join([column] * power)})"
        return powers

    def _entropy(self, column: str) -> str:
        return self.dialect.entropy(column) if self.statistic.word == "entropy" else ""

    def _pair_sums(self, y: str, x: str) -> Mapping[str, str]:
        """Return the sums of a pair over the rows in which both numbers are present."""
        name, both = self.name, {y: f" FILTER (WHERE {x} IS NOT NULL)", x: f" FILTER (WHERE {y} IS NOT NULL)"}
        return {
            f"{name}n": f"count({x}){both[x]}", f"{name}xy": f"sum({x} * {y})",
            f"{name}x1": f"sum({x}){both[x]}", f"{name}x2": f"sum({x} * {x}){both[x]}",
            f"{name}y1": f"sum({y}){both[y]}", f"{name}y2": f"sum({y} * {y}){both[y]}",
        }  # fmt: skip

    # --- integers near the mean ---------------------------------------------------------------------------------------

    @property
    def _letters(self) -> str:
        """The numbers whose powers are summed: y and x for a pair, otherwise x only."""
        return "" if not self.statistic.power else "yx" if len(self.columns) > 1 else "x"

    def means(self) -> Mapping[str, str]:
        """Return the integer nearest to the mean of each number."""
        integer = self.dialect.types[Type.INTEGER]
        return {f"{self.name}{letter}m": f"CAST(round({self._mean(letter)}) AS {integer})" for letter in self._letters}

    def centred(self) -> Mapping[str, str]:
        """Return sums of powers of the distances from that integer, as doubles."""
        text, name = self.dialect, self.name
        sums = {}
        for letter in self._letters:
            m, n = text.wide(f"{name}{letter}m"), text.wide(f"{name}n")
            s = ["", *(text.wide(f"{name}{letter}{power}") for power in range(1, 5))]
            expanded = (
                f"{s[1]} - {m} * {n}",
                f"{s[2]} - 2 * {m} * {s[1]} + {m} * {m} * {n}",
                f"{s[3]} - 3 * {m} * {s[2]} + 3 * {m} * {m} * {s[1]} - {m} * {m} * {m} * {n}",
                f"{s[4]} - 4 * {m} * {s[3]} + 6 * {m} * {m} * {s[2]} - 4 * {m} * {m} * {m} * {s[1]} "
                f"+ {m} * {m} * {m} * {m} * {n}",
            )
            for power, exact in enumerate(expanded[: self.statistic.power], 1):
                sums[f"{name}{letter}c{power}"] = text.real(f"({exact})")
        if len(self._letters) > 1:
            mx, my, n = (text.wide(f"{name}{part}") for part in ("xm", "ym", "n"))
            x1, y1, xy = (text.wide(f"{name}{part}") for part in ("x1", "y1", "xy"))
            sums[f"{name}xyc"] = text.real(f"({xy} - {mx} * {y1} - {my} * {x1} + {mx} * {my} * {n})")
        return sums

    def _mean(self, letter: str) -> str:
        rows = f"{self.name}n"
        total = self.dialect.real(f"{self.name}{letter}1")
        return f"CASE WHEN {rows} > 0 THEN {total} / {self.dialect.real(rows)} END"

    # --- the value ----------------------------------------------------------------------------------------------------

    def value(self) -> str:
        """Return the statistic as a double, or a count as an integer."""
        word = self.statistic.word
        if word == "regr_count":
            return f"{self.name}n"
        if self.statistic.operands in (Operands.VALUE, Operands.ROWS):
            return self.name
        if not self.statistic.power:
            return self._placed(self.dialect.real(self.name), self.terms[0])
        return _VALUES[word](self)

    def _placed(self, integer: str, term: Term) -> str:
        """Return the number that an integer of the grid represents."""
        return f"({self._constant(term.centre)} + {integer} * {self._step(term)})"

    def _constant(self, value: float | int) -> str:
        return self.dialect.constant(float(value))

    def _step(self, term: Term) -> str:
        return self._constant(2.0**-term.grid)

    def _term(self, letter: str) -> Term:
        return self.terms[0] if letter == self._letters[0] else self.terms[1]

    def mean(self, letter: str) -> str:
        """Return the mean in the unit of the number."""
        return self._placed(f"({self._mean(letter)})", self._term(letter))

    def total(self, letter: str) -> str:
        """Return the sum in the unit of the number."""
        term = self._term(letter)
        total, rows = self.dialect.real(f"{self.name}{letter}1"), self.dialect.real(f"{self.name}n")
        return f"({self._constant(term.centre)} * {rows} + {total} * {self._step(term)})"

    def rows(self) -> str:
        """Return the number of rows as a double."""
        return self.dialect.real(f"{self.name}n")

    def squares(self, letter: str) -> str:
        """Return the sum of squared distances from the mean, in steps of the grid."""
        name = f"{self.name}{letter}"
        return f"greatest({name}c2 - {name}c1 * {name}c1 / {self.rows()}, {self._constant(0)})"

    def products(self) -> str:
        """Return the sum of products of distances from both means, in steps of the grids."""
        name = self.name
        return f"({name}xyc - {name}xc1 * {name}yc1 / {self.rows()})"

    def in_units(self, text: str, *letters: str) -> str:
        """Return a sum over products of distances in the unit of the numbers `letters`."""
        return " * ".join([text, *(self._step(self._term(letter)) for letter in letters)])

    def moment(self, power: int) -> str:
        """Return the central moment of the order 2, 3 or 4, in steps of the grid."""
        rows = self.rows()
        d, c2, c3, c4 = (f"{self.name}xc{number} / {rows}" for number in range(1, 5))
        if power == 2:
            return f"({c2} - {d} * {d})"
        if power == 3:
            return f"({c3} - 3 * ({d}) * ({c2}) + 2 * ({d}) * ({d}) * ({d}))"
        return f"({c4} - 4 * ({d}) * ({c3}) + 6 * ({d}) * ({d}) * ({c2}) - 3 * ({d}) * ({d}) * ({d}) * ({d}))"


def _variance(sample: bool, root: bool) -> Callable[[StatisticText], str]:
    def value(text: StatisticText) -> str:
        rows = f"({text.rows()} - 1)" if sample else text.rows()
        variance = f"{text.in_units(text.squares('x'), 'x', 'x')} / {rows}"
        return f"CASE WHEN {text.name}n > {int(sample)} THEN {f'sqrt({variance})' if root else variance} END"

    return value


def _skewness(text: StatisticText) -> str:
    n, spread = text.rows(), text.moment(2)
    corrected = f"sqrt({n} * ({n} - 1)) / ({n} - 2)"
    value = f"{corrected} * {text.moment(3)} / ({spread} * sqrt({spread}))"
    return f"CASE WHEN {text.name}n > 2 THEN CASE WHEN {spread} > 0 THEN {value} END END"


def _kurtosis(corrected: bool) -> Callable[[StatisticText], str]:
    def value(text: StatisticText) -> str:
        n, spread = text.rows(), text.moment(2)
        ratio = f"{text.moment(4)} / ({spread} * {spread})"
        small = f"({n} - 1) * (({n} + 1) * {ratio} - 3 * ({n} - 1)) / (({n} - 2) * ({n} - 3))"
        least = 3 if corrected else 1
        kurtosis = small if corrected else f"{ratio} - 3"
        return f"CASE WHEN {text.name}n > {least} THEN CASE WHEN {spread} > 0 THEN {kurtosis} END END"

    return value


def _covariance(sample: bool) -> Callable[[StatisticText], str]:
    def value(text: StatisticText) -> str:
        rows = f"({text.rows()} - 1)" if sample else text.rows()
        return f"CASE WHEN {text.name}n > {int(sample)} THEN {text.in_units(text.products(), 'x', 'y')} / {rows} END"

    return value


def _spread(*letters: str) -> Callable[[StatisticText], str]:
    def value(text: StatisticText) -> str:
        exact = text.products() if letters[0] != letters[1] else text.squares(letters[0])
        return f"CASE WHEN {text.name}n > 0 THEN {text.in_units(exact, *letters)} END"

    return value


def _correlation(square: bool) -> Callable[[StatisticText], str]:
    """Return the text of a correlation, NULL without a spread. Clamp it to [-1, 1], as doubles may exceed that by rounding."""

    def value(text: StatisticText) -> str:
        x, y = text.squares("x"), text.squares("y")
        ratio = (
            f"least(greatest({text.products()} / (sqrt({x}) * sqrt({y})), {text._constant(-1)}), {text._constant(1)})"
        )
        both = f"CASE WHEN {x} > 0 THEN CASE WHEN {y} > 0 THEN {f'({ratio}) * ({ratio})' if square else ratio} END END"
        return f"CASE WHEN {text.name}n > 0 THEN {both} END"

    return value


def _slope(text: StatisticText) -> str:
    x = text.squares("x")
    ratio = f"{text.products()} / {x} * {text._constant(2.0 ** (text._term('x').grid - text._term('y').grid))}"
    return f"CASE WHEN {text.name}n > 0 THEN CASE WHEN {x} > 0 THEN {ratio} END END"


def _intercept(text: StatisticText) -> str:
    return f"({text.mean('y')} - ({_slope(text)}) * {text.mean('x')})"


def _mean_of_pair(letter: str) -> Callable[[StatisticText], str]:
    return lambda text: text.mean(letter)


_VALUES: Mapping[str, Callable[[StatisticText], str]] = {
    "sum": lambda text: text.total("x"), "avg": lambda text: text.mean("x"),
    "var_pop": _variance(False, False), "var_samp": _variance(True, False),
    "stddev_pop": _variance(False, True), "stddev_samp": _variance(True, True),
    "skewness": _skewness, "kurtosis": _kurtosis(True), "kurtosis_pop": _kurtosis(False),
    "covar_pop": _covariance(False), "covar_samp": _covariance(True), "corr": _correlation(False),
    "regr_r2": _correlation(True), "regr_slope": _slope, "regr_intercept": _intercept,
    "regr_avgx": _mean_of_pair("x"), "regr_avgy": _mean_of_pair("y"),
    "regr_sxx": _spread("x", "x"), "regr_syy": _spread("y", "y"), "regr_sxy": _spread("x", "y"),
}  # fmt: skip


def statistic_text(
    name: str, statistic_call: Call, terms: Sequence[Term], columns: Sequence[str], dialect: Dialect
) -> StatisticText:
    """Return the texts of a statistic whose `terms` are the columns `columns` of rows."""
    statistic = statistic_of(statistic_call)
    assert statistic is not None
    share = Fraction(0)
    if statistic.operands is Operands.QUANTILE:
        literal = statistic_call.arguments[1]
        assert isinstance(literal, Literal)
        share = Fraction(literal.value)
    return StatisticText(name, statistic, tuple(columns), tuple(terms), share, dialect)


# --- values of samples ------------------------------------------------------------------------------------------------


# SQL text of SAMPLE_AGGREGATE: samples of units by a keyed hash, their statistics, and the number of samples in each cell.
# It is one statement with one GROUP BY over the rows; above that there is one row for each group and sample. A row's sample
# depends only on its unit and the secret of keyed orders. Rows that belong to no unit are numbered among the rows that are
# equal in everything that is read of them, and the hash of that content and number chooses their sample: an additional row
# extends the sequence of its equals at the end, and no other row changes its sample (`privacy.mechanisms.sample_values`).


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
    terms = dict.fromkeys(
        term for statistic in statistic_calls(measurement.value) for term in terms_of_statistic(statistic)
    )
    return tuple(replace(term, name=f"x{number}") for number, term in enumerate(terms))


def sample_values(measurement: SampleValues | SampleMean, keys: Sequence[str], rows: RowsOf, dialect: Dialect) -> str:
    """Return the query that counts the samples of each group in each cell. A sample without a value is in no cell."""
    terms = row_terms(measurement)
    names = {replace(term, name=""): term.name for term in terms}
    calls = statistic_calls(measurement.value)
    statistics = []
    for number, statistic in enumerate(calls):
        read = terms_of_statistic(statistic)
        statistics.append(statistic_text(f"s{number}", statistic, read, [names[term] for term in read], dialect))
    steps = _Steps(dialect, keys)
    sql = steps.grouped(_in_samples(measurement, terms, keys, rows, dialect), statistics)
    sql = steps.added(sql, _merged(text.means() for text in statistics))
    sql = steps.added(sql, _merged(text.centred() for text in statistics))
    sql = steps.only(sql, {f"v{number}": text.value() for number, text in enumerate(statistics)})
    replaced = {statistic: Column(f"v{number}", statistic.facts) for number, statistic in enumerate(calls)}
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
