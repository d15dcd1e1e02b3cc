"""Types of parameters that a client did not declare: inferred from what each one is compared with, as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypeGuard

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire import encodings as e
from dpsql.frontends.pgwire.catalog.policy_rows import TYPES
from dpsql.frontends.pgwire.catalog.shape import type_names
from dpsql.frontends.pgwire.constants.syntax import MOST_PARAMETERS
from dpsql.frontends.pgwire.constants.tokens import said
from dpsql.frontends.pgwire.encodings import parameter_text, read_parameter
from dpsql.policy import Policy
from dpsql.sql.lexer import POSTGRESQL, Piece, place
from dpsql.sql.parse import MOST_BRACKETS, MOST_TOKENS
from dpsql.sql.parser import parse_tokens
from dpsql.sql.rewrites.postgresql import flattened

_COMPARED = (exp.Binary, exp.Between, exp.In, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.WidthBucket)
_ORDERED_SETS = (exp.PercentileCont, exp.PercentileDisc)
_QUANTILES = {
    "quantile", "quantile_cont", "quantile_disc", "approx_quantile", "percentile", "percentile_approx",
    "approx_percentile",
}  # fmt: skip
_REG_TYPES = frozenset(e.NAMED.values())
_DAY = datetime(2020, 1, 1)
_MOST_DEPTH = 150
_DUMMIES: dict[int, Callable[[int], Any]] = {
    e.BOOL: lambda number: True,
    e.DATE: lambda number: _DAY.date() + timedelta(number),
    e.TIME: lambda number: (_DAY + timedelta(seconds=number)).time(),
    **dict.fromkeys((e.TIMESTAMP, e.TIMESTAMPTZ), lambda number: _DAY + timedelta(number)),
    **dict.fromkeys((e.INT2, e.INT4, e.INT8, e.OID), lambda number: number),
    **dict.fromkeys((e.FLOAT4, e.FLOAT8), lambda number: number / (number + 1)),
    e.NUMERIC: lambda number: Decimal(number) / (number + 1),
}
"""Dummies by the number of the parameter: each greater than the one before, as bounds must be, and fractions below 1, as shares
are."""
_WORDS = ("pg_class", "server_version", "int4", "day", "YYYY", "1 day")


def read_postgres(piece: Piece, dialect: str = POSTGRESQL) -> exp.Expr | None:
    """Parse one statement in PostgreSQL's dialect, or another one; None if sqlglot cannot. Limits apply before it runs."""
    try:
        tokens = list(piece.tokens(dialect))
        depth = deepest = 0
        for token in tokens:
            depth += (token.text in ("(", "[") or token.text.upper() == "CASE") - (token.text in (")", "]"))
            deepest = max(deepest, depth)
        if len(tokens) > MOST_TOKENS or deepest > MOST_BRACKETS:
            return None
        trees = parse_tokens(tokens, piece.sql, dialect)
    except (Error, SqlglotError, RecursionError):
        return None
    tree = flattened(trees[0]) if len(trees) == 1 else None
    return tree if tree is not None and _shallow(tree) else None


def _shallow(tree: exp.Expr) -> bool:
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > _MOST_DEPTH:
            return False
        level = [child for node in level for child in node.iter_expressions()]
    return True


def parameter_types(tree: exp.Expr | None, declared: Sequence[int], policy: Policy) -> tuple[int, ...]:
    """Return the OID of each parameter: as declared, else inferred, else text. Raises wire_limit and parameter_none."""
    if tree is None:
        return tuple(oid or e.TEXT for oid in declared)
    inferred: dict[int, int] = {}
    lookup = _columns(tree, policy)
    for node in tree.find_all(exp.Parameter, exp.Placeholder):
        if isinstance(node, exp.Placeholder) and not node.name.isdecimal():
            continue  # a bare question mark
        number = int(node.name[:9]) if node.name.isascii() and node.name.isdecimal() else 0
        if number == 0:
            raise refuse("parameter_none", number=node.name, position=place(node))
        if number > MOST_PARAMETERS:
            raise refuse("wire_limit", most=MOST_PARAMETERS, what="parameters")
        oid = _inferred(node, lookup)
        if number not in inferred or inferred[number] == e.TEXT:
            inferred[number] = oid
    count = max([*inferred, len(declared)], default=0)
    by_number = {number: oid for number, oid in enumerate(declared, 1) if oid != e.UNKNOWN}
    oids = [by_number.get(number) or inferred.get(number, e.TEXT) for number in range(1, count + 1)]
    return tuple(e.TEXT if oid in _REG_TYPES or oid == e.UNKNOWN else oid for oid in oids)


def dummies(oids: Sequence[int], tree: exp.Expr | None = None) -> list[list[Any]]:
    """Return dummy values for the parameters, to learn the columns of a statement before its values are known: several lists to
    try in turn if there are texts, because some functions accept certain words only. OFFSET skips no rows."""
    clauses = [] if tree is None else list(tree.find_all(exp.Offset))
    skips = {node.name for clause in clauses for node in clause.find_all(exp.Parameter)}
    words = _WORDS if {*oids} - _DUMMIES.keys() - e.ARRAYS.keys() else _WORDS[:1]
    return [
        [
            [] if oid in e.ARRAYS else _DUMMIES[oid](number * (str(number) not in skips)) if oid in _DUMMIES else word
            for number, oid in enumerate(oids, 1)
        ]
        for word in words
    ]


def _columns(tree: exp.Expr, policy: Policy) -> Callable[[str], int | None]:
    """Return a function from the bare name of a column, in the tables that the tree reads, to its type (None: unknown)."""
    types: dict[str, int] = {}
    for table in tree.find_all(exp.Table):
        policy_table = policy.table(table.name)
        for column in () if policy_table is None else policy_table.columns.values():
            types.setdefault(column.name.lower(), TYPES[column.type][1])
    return lambda name: types.get(name.lower())


def _inferred(node: exp.Expr, lookup: Callable[[str], int | None]) -> int:
    inner, parent = node, node.parent
    while isinstance(parent, (exp.Paren, exp.Neg)):
        inner, parent = parent, parent.parent
    if isinstance(parent, exp.Cast):
        return _named(parent.to)
    if isinstance(parent, (exp.Limit, exp.Offset, exp.Fetch)):
        return e.INT8
    if _is_list_test(parent) and isinstance(parent.parent, exp.Binary):
        other = parent.parent.left if parent is parent.parent.right else parent.parent.right
        return e.ARRAY_OF.get(_type_of(other, lookup), e.ARRAY_OF[e.TEXT])
    if isinstance(parent, (exp.Like, exp.ILike, exp.DPipe, exp.RegexpLike, exp.RegexpILike)):
        return e.TEXT
    if _is_share(inner, parent):
        return e.FLOAT8
    if isinstance(parent, exp.Tuple):
        return _in_row(inner, parent, lookup)
    if isinstance(parent, (exp.Left, exp.Right, exp.Substring, exp.Repeat, exp.Pad)) and inner is not parent.this:
        return e.TEXT if inner is parent.args.get("fill_pattern") else e.INT4
    if isinstance(parent, (exp.Floor, exp.Ceil, exp.Round, exp.Sqrt, exp.Ln, exp.Exp)):
        return e.FLOAT8 if inner is parent.this else e.INT4
    if isinstance(parent, exp.WidthBucket) and inner is parent.args.get("num_buckets"):
        return e.INT4
    if isinstance(parent, _COMPARED) or _is_clamp(parent):
        operands = [child for child in parent.iter_expressions() if child is not inner]
        types = [_type_of(other, lookup) for other in operands if not isinstance(other.unnest(), exp.Parameter)]
        return types[0] if types else e.TEXT
    return e.TEXT


def _is_clamp(node: exp.Expr | None) -> TypeGuard[exp.Expr]:
    """Return whether a node is clamp(x, low, high), whose arguments have one type."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "clamp"


def _in_row(inner: exp.Expr, row: exp.Tuple, lookup: Callable[[str], int | None]) -> int:
    """Return the type of a parameter in (a, b) = ($1, $2), or in a row of IN, from its place in the row."""
    place_in_row, test = [item is inner for item in row.expressions].index(True), row.parent
    if isinstance(test, (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In)):
        other = test.this if row is not test.this else test.args.get("expression")
        if isinstance(other, exp.Tuple) and len(other.expressions) == len(row.expressions):
            return _type_of(other.expressions[place_in_row], lookup)
    return e.TEXT


def _is_share(node: exp.Expr, parent: exp.Expr | None) -> bool:
    """Return whether a parameter is the share of a quantile, in any spelling and at the position of that argument."""
    if isinstance(parent, exp.Anonymous):
        return parent.name.lower() in _QUANTILES and node is not parent.expressions[0]
    if isinstance(parent, _ORDERED_SETS) and isinstance(parent.parent, exp.WithinGroup):
        return node is parent.this
    return isinstance(parent, (*_ORDERED_SETS, exp.Quantile, exp.ApproxQuantile)) and node is not parent.this


def _is_list_test(node: exp.Expr | None) -> TypeGuard[exp.Expr]:
    """Return whether a node is ANY, SOME or ALL with a list in brackets."""
    named = isinstance(node, exp.Anonymous) and str(node.this).upper() in ("SOME", "ALL")
    return named or isinstance(node, (exp.Any, exp.All))


def _named(to: exp.Expr) -> int:
    word = to.sql("postgres", comments=False).lower().removeprefix("pg_catalog.").split("(")[0]
    # CHAR is a text with blanks at its end; "char", in quotes, is the catalog's single byte.
    word = "bpchar" if word == "char" else word.replace('"', "")
    base = word.removesuffix("[]")
    oid = type_names().get(base, e.TEXT)
    return e.ARRAY_OF.get(oid, e.ARRAY_OF[e.TEXT]) if word != base else oid


def declared_types(words: Sequence[str]) -> tuple[int, ...]:
    """Return the OIDs of types that PREPARE names. Raises catalog_type."""
    types = [exp.DataType.build(word, dialect="postgres", udt=True) for word in words]
    for type_, word in zip(types, words, strict=True):
        if _named(type_) == e.TEXT and word.lower().rpartition(".")[2] not in type_names():
            raise refuse("catalog_type", name=word)
    return tuple(map(_named, types))


def values_in(name: str, texts: Sequence[str | None], oids: Sequence[int], as_texts: bool = False) -> tuple[Any, ...]:
    """Return the values of EXECUTE, each read as a value of the type of its parameter, or left a text. Raises PostgreSQL's
    refusal of another number of values, and refusals of values that do not fit."""
    if len(texts) != len(oids):
        raise said("42601", f'wrong number of parameters for prepared statement "{name}"')
    read = parameter_text if as_texts else read_parameter
    return tuple(
        read(oid, 0, None if text is None else text.encode(), number)
        for number, (oid, text) in enumerate(zip(oids, texts, strict=True), 1)
    )


def _type_of(node: exp.Expr, lookup: Callable[[str], int | None]) -> int:
    node = node.unnest()
    if isinstance(node, exp.Column):
        return lookup(node.name) or e.TEXT
    if isinstance(node, exp.Cast):
        return _named(node.to)
    if isinstance(node, exp.Literal):
        return e.TEXT if node.is_string else e.INT8 if node.is_int else e.FLOAT8
    if isinstance(node, (exp.Count, exp.Extract, exp.Length)):
        return e.INT8
    if isinstance(node, (exp.Sum, exp.Avg)):
        return e.FLOAT8
    if isinstance(node, (exp.TimestampTrunc, exp.DateTrunc, exp.CurrentTimestamp)):
        return e.TIMESTAMP
    if isinstance(node, exp.Div):
        return e.FLOAT8
    if isinstance(node, (exp.Neg, exp.Abs, exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Max, exp.Min)):
        inner = [_type_of(child, lookup) for child in node.iter_expressions()]
        return next((oid for oid in inner if oid != e.TEXT), e.FLOAT8)
    return e.TEXT
