"""SQL text of a relation's columns, of the columns that distinguish its rows, and of the condition for public groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsql.engine.dialect import Dialect
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import (
    BoundedBlock,
    Column,
    Expr,
    Key,
    Relation,
    types_of,
)
from dpsql.storage.records import dataclass

MOST_LISTED = 1_000


@dataclass(frozen=True)
class RowsOf:
    """Rows with their keys (a SELECT), and the condition that a row is inside the domains of public keys ("": all are). For
    each term the text of a row's value, NULL if there is none (for a SUM the row's integer), and its condition ("": all rows).
    `unit`: the column of the unit's key ("": rows belong to no unit); `order_key`: the secret of keyed orders."""

    sql: str
    inside: str
    values: Mapping[str, str]
    conditions: Mapping[str, str]
    unit: str
    order_key: str


def columns_of(node: Relation) -> list[str]:
    """Return the names of a relation's visible columns, in order."""
    return list(types_of(node))


def content_of(node: Relation, dialect: Dialect) -> list[str]:
    """Return the columns that distinguish rows of one unit: every column, and the signs of zeros, which sort as equal."""
    types = types_of(node)
    signs = [dialect.sign_of(dialect.identifier(name)) for name, type_ in types.items() if type_ is Type.REAL]
    return [*map(dialect.identifier, types), *signs]


def keys_of(node: Relation, dialect: Dialect) -> list[str]:
    """Return every column as a key, under its own name: rows that are equal in SQL are then equal in every bit."""
    return [
        f"{group_key(Column(name, Facts(type_ or Type.NULL)), dialect)} AS {dialect.identifier(name)}"
        for name, type_ in types_of(node).items()
    ]


def group_key(expression: Expr, dialect: Dialect) -> str:
    """Return a key by which rows are grouped: the two zeros, and NaN of either sign, become one value, as they are equal."""
    written = dialect.expression(expression)
    return dialect.real_key(written) if expression.facts.type is Type.REAL else written


def sent_key(expression: Expr, dialect: Dialect) -> str:
    """Return a key by which rows are grouped and that leaves the engine with its group."""
    key = group_key(expression, dialect)
    return dialect.sent_text(key) if expression.facts.type is Type.TEXT else key


def strict(key: Key) -> bool:
    """Return whether `in_domain` admits no other groups than the key's values."""
    return key.values is not None and len(key.values) <= MOST_LISTED


def in_groups(block: BoundedBlock, dialect: Dialect) -> str:
    """Return the condition for rows that belong to a group: keys are inside the domains of public keys and, if HAVING
    excludes combinations that rows may have, form one of the remaining ones. No row has a combination that is missing
    for another reason."""
    parts = [condition for key in block.keys if (condition := in_domain(key, dialect))]
    listed = block.combinations
    if listed is not None and not listed.whole and len(listed.numbers) <= MOST_LISTED:
        values = [key.values or () for key in block.keys]
        indexes = listed.positions([len(domain) for domain in values])
        rows = zip(
            *([domain[index] for index in position] for domain, position in zip(values, indexes, strict=True)),
            strict=True,
        )
        names = [key.name for key in block.keys]
        cells = (
            " AND ".join(_is(name, value, dialect) for name, value in zip(names, row, strict=True)) for row in rows
        )
        parts.append(f"({' OR '.join(f'({cell})' for cell in cells) or 'false'})")
    return " AND ".join(parts)


def _is(name: str, value: Any, dialect: Dialect) -> str:
    return f"{name} IS NULL" if value is None else f"{name} = {dialect.constant(value)}"


def in_domain(key: Key, dialect: Dialect) -> str:
    """Return the condition that a public key is inside its domain (for long domains: within its range). Other rows belong
    to no group, so they must not use up a cap."""
    if key.values is None:
        return ""
    values = [value for value in key.values if value is not None]
    if not values:
        inside = "false"
    elif len(values) <= MOST_LISTED:
        inside = f"{key.name} IN ({', '.join(map(dialect.constant, values))})"
    else:
        inside = f"{key.name} BETWEEN {dialect.constant(min(values))} AND {dialect.constant(max(values))}"
    return f"({inside} OR {key.name} IS NULL)" if None in key.values else inside
