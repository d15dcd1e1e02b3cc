"""Comparisons with values that the policy does not list: refused if only the spelling differs from a listed value, and if it is
the label of the group of all other values."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.plan.expression_text import expression_text
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Expr, Literal
from dpsql.sql.lexer import place

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
            written = _literal(node, text)
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


def _literal(node: exp.Expr, text: str) -> exp.Expr | None:
    """Return the literal node of `text` in the query, None if there is none."""
    return next((part for part in node.find_all(exp.Literal) if part.is_string and part.this == text), None)
