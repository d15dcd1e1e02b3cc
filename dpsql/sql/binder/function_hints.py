"""Hints: other ways to write a refused function or a comparison of types, and spellings that no listed value has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from sqlglot import exp

from dpsql.errors.exceptions import Error, nearest, refuse
from dpsql.plan.expression_text import expression_text
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Expr, Literal
from dpsql.sql.binder.scope import function_word, sql_word
from dpsql.sql.lexer import place

# --- comparisons with values that the policy does not list ------------------------------------------------------------
# Refused if only the spelling differs from a listed value, and if it is the label of the group of all other values.

COMPARISONS = frozenset({"eq", "ne", "in", "not_distinct"})
_MOST_NAMED = 6


def check_listed(arguments: Sequence[Expr], node: exp.Expr) -> None:
    """Refuse a comparison of a column with 'Male' where the policy lists 'male' (value_spelling), and with the label of its group
    of other values (outside_label), before it is charged.

    A comparison that also has the listed spelling is not refused. LIKE compares with any text.
    """
    columns = [argument for argument in arguments if isinstance(argument, Column)]
    if len(columns) == 1:
        _check_label(columns[0].facts, arguments, node)
    if len(columns) != 1 or columns[0].facts.type is not Type.TEXT or columns[0].facts.values is None:
        return
    listed = {value for value in columns[0].facts.values if value is not None}
    folded = {_folded(value): value for value in listed}
    texts = [part.value for part in arguments if isinstance(part, Literal) and isinstance(part.value, str)]
    for text in texts:
        meant = folded.get(_folded(text))
        if text not in listed and meant is not None and meant not in texts:
            written = next((part for part in node.find_all(exp.Literal) if part.is_string and part.this == text), None)
            name = next((column.name for column in node.find_all(exp.Column)), columns[0].name)
            raise refuse("value_spelling", text=text, name=name, meant=meant, position=place(written) or place(node))


def _check_label(facts: Facts, arguments: Sequence[Expr], node: exp.Expr) -> None:
    """Refuse (outside_label) a comparison with the label of the group of all other values: rows have their own values, so that a
    click on that group in a BI tool would be charged for an answer about nothing."""
    label = facts.outside
    if label is None or label in (facts.values or ()):
        return
    written = next((part for part in arguments if isinstance(part, Literal) and part.value == label), None)
    if written is not None:
        name = next((column.name for column in node.find_all(exp.Column)), "the key")
        raise refuse("outside_label", label=expression_text(written), name=name, position=place(node))


def unlisted(function: str, arguments: tuple[Expr, ...]) -> tuple[tuple[str, str], ...]:
    """Return each literal (as SQL) that is compared with a column and not among the values that the policy lists for it, with
    some of the listed values; empty for other functions."""
    columns = [argument for argument in arguments if isinstance(argument, Column)]
    if function not in COMPARISONS or len(columns) != 1 or columns[0].facts.values is None:
        return ()
    values = columns[0].facts.values
    literals = [part for part in arguments if isinstance(part, Literal) and part.value is not None]
    some = [str(value) for value in values if value is not None][:_MOST_NAMED]
    listed = ", ".join([*some, "..."] if len(values) > _MOST_NAMED else some)
    return tuple((expression_text(part), listed) for part in literals if part.value not in values)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


# --- hints that give another way to write a refused function, or a comparison of different types ----------------------

_ORDERS = ("lt", "le", "gt", "ge")
_WAYS = {
    "histogram": "a histogram is SELECT width_bucket(x, 0, 100, 10) AS bucket, COUNT(*) ... GROUP BY bucket",
    "entropy": (
        "entropy follows from counts: SELECT -SUM(s * ln(s)) FROM (SELECT n / SUM(n) OVER () AS s FROM "
        "(SELECT x, COUNT(*) AS n FROM t GROUP BY x) AS counts WHERE n > 0) AS shares"
    ),
    "list": "SELECT x, COUNT(*) ... GROUP BY x has a row for each value",
    "mad": "write MEDIAN(abs(x - (SELECT MEDIAN(x) FROM t)))",
    "geomean": "write exp(AVG(ln(clamp(x, 1, 1000)))) with bounds above 0",
    "product": "write exp(SUM(ln(clamp(x, 1, 1000)))) with bounds above 0",
    "sumif": "write SUM(x) FILTER (WHERE condition)",
    "averageif": "write AVG(x) FILTER (WHERE condition)",
    "average": "write AVG(x)",
    "regexp_substr": "write nullif(regexp_extract(x, 'pattern'), '')",
    "printf": "write concat('x: ', x), or 'x: ' || x, which is NULL where x is",
    "date_format": "write strftime(d, '%Y-%m'), or to_char(d, 'YYYY-MM')",
    "date_sub": "write d - INTERVAL 3 DAY, or date_part('year', age(b, a)) for the whole years from a to b",
    "age": "write date_part('year', age(a, b)) for whole years, or date_diff('day', b, a)",
    "isnull": "write x IS NULL",
    "make_date": "it takes literal numbers: make_date(2024, 1, 31); date_trunc, + and INTERVAL compute dates",
    "zeroifnull": "write coalesce(x, 0)",
    "count_distinct": "write COUNT(DISTINCT x)",
    "safe_divide": "write SAFE_DIVIDE(x, y), which is NULL where y is 0",
    "ratio_to_report": "write COUNT(*) / SUM(COUNT(*)) OVER ()",
    "unnest": "rows that a question lists stand in FROM, FROM unnest(['a', 'b']) AS t(x), or in a SELECT without FROM",
    "generate_series": (
        "a series stands in FROM, with constants as its ends: FROM generate_series(DATE '2024-01-01', DATE '2024-12-01', "
        "INTERVAL '1 month') AS t(month); between results, its start is cut to its step: date_trunc('month', MIN(day))"
    ),
    "random": "answers have noise already, and the same question has the same answer",
}
_OTHER_NAMES = {
    "median_absolute_deviation": "mad", "geometric_mean": "geomean", "sum_if": "sumif", "avgif": "averageif",
    "avg_if": "averageif", "average_if": "averageif", "div0": "safe_divide", "countd": "count_distinct", "rand": "random",
    "countdistinct": "count_distinct", "datesub": "date_sub", "format": "printf", "array_agg": "list",
}  # fmt: skip
_NAMES = (
    "abs", "arg_max", "arg_min", "avg", "ceil", "clamp", "coalesce", "concat", "contains", "corr", "count", "covar_samp",
    "date_diff", "date_part", "date_trunc", "exp", "floor", "greatest", "least", "left", "length", "ln", "log", "lower", "max",
    "median", "min", "mod", "mode", "nullif", "power", "quantile_cont", "quantile_disc", "regexp_extract", "regexp_matches",
    "regexp_replace",
    "regr_slope", "replace", "right", "round", "split_part", "sqrt", "starts_with", "stddev", "strftime", "strpos", "substr",
    "sum", "to_char", "translate", "trim", "upper", "variance", "width_bucket",
)  # fmt: skip
"""Function names that a misspelt name is compared with."""


def function_hint(name: str) -> str | None:
    """Return another way to write the function `name` (in lower case), or the nearest known name; None if there is neither."""
    written = _WAYS.get(_OTHER_NAMES.get(name, name))
    if written is not None:
        return written
    near = nearest(name, _NAMES)
    return None if near is None or near == name else f"did you mean {near}?"


def unknown_function(node: exp.Func) -> Error:
    """Return the refusal of a function, with a hint how to write it if there is one."""
    series = isinstance(node, exp.Explode) and isinstance(node.this, exp.GenerateSeries)
    name = "generate_series" if series else function_word(node).lower()
    if isinstance(node, (*_OF_LISTS, exp.Collate)):
        return refuse("clause", what=sql_word(node), position=place(node), hint=expression_hint(node))
    return refuse("unknown_function", name=name, position=place(node), hint=function_hint(name))


def type_hint(type_: exp.DataType) -> str | None:
    """Return what to write for a type that no value can have, None if there is no hint."""
    times = "compare a time of day with a literal, t::time >= '22:00'; group by hour(t), or by to_char(t, 'HH24:MI')"
    return times if type_.is_type(exp.DType.TIME) else None


_OF_LISTS = (exp.Array, exp.ArrayContainsAll, exp.ArrayContainedBy, exp.ArrayOverlaps)
_OPERATORS: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Is,), "IS stands before NULL, TRUE and FALSE; other values are compared with ="),
    (_OF_LISTS, "values are compared one by one: x IN (1, 2), x = ANY (ARRAY[1, 2])"),
    ((exp.Bracket,), "a part of a text is substr(x, 1, 2)"),
    ((exp.Collate,), 'texts are compared and sorted by their characters, as COLLATE "C" does: leave it out'),
)


def expression_hint(node: exp.Expr) -> str | None:
    """Return another way to write a refused operator, None if there is no hint."""
    return next((hint for kinds, hint in _OPERATORS if isinstance(node, kinds)), None)


def comparison_hint(function: str, arguments: Sequence[Expr]) -> str | None:
    """Return how to write a comparison with other types' literals or computed values; None for anything else."""
    if function == "sub" and any(argument.facts.type is Type.TIMESTAMP for argument in arguments):
        return "a difference of timestamps is a number in seconds as EXTRACT(epoch FROM a - b), in days as date_diff('day', b, a)"
    if function == "to_text":
        return "write strftime(s, '%Y-%m-%d %H:%M:%S'), with a format of the parts that are meant"
    if function == "intdiv":
        return "// divides whole numbers: write floor(a / b)"
    value = arguments[0 if function == "strftime" else -1]
    if function in ("date_trunc", "date_part", "strftime") and value.facts.type is Type.TEXT:
        return (
            "the value is a text: CAST(x AS TIMESTAMP) reads the time in it, as in CAST(x AS TIMESTAMP)::time > '12:00'"
        )
    if function not in COMPARISONS and function not in _ORDERS:
        return None
    if function == "in" and not all(isinstance(item, Literal) for item in arguments[1:]):
        return "compare with each value that is computed: x = a / 2 OR x = b"
    types = {argument.facts.type for argument in arguments if not isinstance(argument, Literal)} - {Type.NULL}
    literals = [
        argument.value for argument in arguments if isinstance(argument, Literal) and argument.value is not None
    ]
    if len(types) != 1 or not literals:
        return None
    type_ = types.pop()
    if type_ is Type.TEXT:
        return (
            "the column is a text: texts stand in single quotes, x = '3'; or compare CAST(x AS INTEGER) with a number"
        )
    if type_ is Type.BOOLEAN:
        return "the column is true or false: write x for what is true, NOT x for what is false"
    if not type_.numeric:
        return None
    if any(isinstance(value, date) for value in literals):
        return "the column is a number: compare a year with date_part('year', CURRENT_DATE)"
    if any(str(value).lower().lstrip("+-") in ("nan", "inf", "infinity") for value in literals):
        return "such a number is written with its type: x = 'nan'::DOUBLE"
    return "numbers stand without quotes: x = 3"
