"""Parsing of questions about the catalogs, in PostgreSQL's dialect."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors.exceptions import REGISTER, Error, refuse
from dpsql.frontends.pgwire.catalog.coercion import SIGNS, sql_name, visible_type
from dpsql.frontends.pgwire.catalog.macros import PREFIX
from dpsql.frontends.pgwire.catalog.shape import SQL_NAMES, called, static
from dpsql.frontends.pgwire.catalog.sources import call, list_literal
from dpsql.functions.values import MOST_TEXT
from dpsql.sql.binder.allow_list import NODES as RESULT_NODES
from dpsql.sql.binder.scope import sql_word
from dpsql.sql.lexer import POSTGRESQL, SqlText, as_piece, place
from dpsql.sql.parse import MOST_BRACKETS, MOST_TOKENS
from dpsql.sql.parser import parse_tokens
from dpsql.sql.rewrites.postgresql import flattened

# --- errors of the catalogs' engine as PostgreSQL's own ---------------------------------------------------------------
# SQLSTATE and sentence, with names and values of the analyst's own text.

_TYPES = {
    "INT8": "smallint", "INT16": "smallint", "INT32": "integer", "INT64": "bigint", "INT128": "numeric", "UINT32": "oid",
    "BOOL": "boolean", "DOUBLE": "double precision", "FLOAT": "real", "UINT16": "smallint", "DATE": "date",
    "TIMESTAMP": "timestamp",
}  # fmt: skip
_RAISED = re.compile(r"^Invalid Input Error: dpsql:(\w+):(.*)", re.DOTALL)
"""What a macro raises: a slug and a name."""
_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], tuple[str, dict[str, Any]]]], ...] = (
    (re.compile(r"Could not convert string '([^']*)' to (\w+)"),
     lambda m: ("catalog_text", {"value": m[1], "type": _type(m[2])})),
    (re.compile(r'(?:date|timestamp|time) field value out of range: "([^"]*)"'), lambda m: ("catalog_moment", {"value": m[1]})),
    (re.compile(r'invalid (date|timestamp|time|interval) field format: "([^"]*)"'),
     lambda m: ("catalog_time", {"value": m[2], "type": m[1]})),
    (re.compile(r"out of range for the destination type (\w+)|Overflow in \w+ of (\w+)"),
     lambda m: ("catalog_range", {"type": _type(m[1] or m[2])})),
    (re.compile(r"[Dd]ivision by zero"), lambda m: ("catalog_zero", {})),
    (re.compile(r"More than one row returned by a subquery"), lambda m: ("catalog_rows", {})),
    (re.compile(r'Ambiguous reference to column name "([^"]+)"'), lambda m: ("ambiguous_column", {"name": m[1]})),
    (re.compile(r"[Dd]uplicate (?:table )?alias \"([^\"]+)\""), lambda m: ("catalog_alias", {"name": m[1]})),
    (re.compile(r"LIMIT/OFFSET cannot be negative"), lambda m: ("catalog_limit", {})),
    (re.compile(r"(?:specifier|part|unit) \"([^\"]*)\"", re.IGNORECASE), lambda m: ("catalog_unit", {"name": m[1]})),
    (re.compile(r"aggregate function calls cannot be nested"), lambda m: ("catalog_nested", {})),
    (re.compile(r"WHERE clause cannot contain aggregates"), lambda m: ("catalog_where", {})),
    (re.compile(r"Subquery returns \d+ columns"), lambda m: ("catalog_subquery", {})),
    (re.compile(r"^Binder Error: (ORDER|GROUP BY) term out of range"),
     lambda m: ("catalog_position", {"clause": "ORDER BY" if m[1] == "ORDER" else m[1]})),
    (re.compile(r"Set operations can only apply"), lambda m: ("catalog_union", {})),
    (re.compile(r"column \"?([^\s\"]+)\"? must appear in the GROUP BY"), lambda m: ("catalog_ungrouped", {"name": m[1]})),
    (re.compile(r"Referenced table \"([^\"]+)\" not found"), lambda m: ("catalog_missing", {"name": m[1]})),
)  # fmt: skip
_CALL = re.compile(r"(?:argument types '|function call \")([^\s(]+)\(")
_FUNCTION = re.compile(r"[Ff]unction(?: with name)? \"?(\w+)|function '(\w+)")
_COLUMN = re.compile(r"column (?:named )?\"?([^\s\"]+)")


def _type(word: str) -> str:
    return _TYPES.get(word.upper(), SQL_NAMES.get(word.lower(), word.lower()))


def our_refusal(error: Exception, tree: exp.Expr) -> Error:
    """Return the refusal for an engine error. Only names and values in the analyst's own text are taken from the error."""
    text = str(error)
    kind = text.partition(" Error:")[0]
    if kind == "INTERRUPT":
        return refuse("sandbox_time")
    if kind == "Out of Memory":
        return refuse("sandbox_memory")
    raised = _RAISED.match(text)
    if raised is not None and raised[1] in REGISTER:
        name = raised[2].split("\n")[0]
        return refuse(raised[1], name=f'function "{name}"' if raised[1] == "catalog_function" else name)
    for pattern, facts in _PATTERNS:
        match = pattern.search(text)
        if match is not None:
            slug, values = facts(match)
            return refuse(slug, **values, position=_column_position(tree, values.get("name", "")))
    if kind in ("Conversion", "Invalid Input", "Out of Range"):
        return refuse("catalog_value")
    call = _CALL.search(text)
    if kind == "Binder" and call is not None:
        name = call.group(1).removeprefix(PREFIX)
        return unknown_call(tree, name) if name.isidentifier() else unknown_operator(tree, name)
    function = _FUNCTION.search(text)
    if function is not None and "does not exist" in text:
        return absent_call(tree, (function.group(1) or function.group(2)).removeprefix(PREFIX))
    column = _COLUMN.search(text)
    if kind == "Binder" and column is not None:
        return unknown_column(tree, column.group(1))
    return refuse("catalog_query")


def _column_position(tree: exp.Expr, name: str) -> int | None:
    """Return the position of the first column of a name, which may be in any case."""
    columns = (column for column in tree.find_all(exp.Column) if column.name.lower() == name.lower() != "")
    return min((position for column in columns if (position := place(column)) is not None), default=None)


def unknown_column(tree: exp.Expr, name: str) -> Error:
    """Return PostgreSQL's refusal of a column that does not exist, with the qualifier that it has in the text."""
    columns = [column for column in tree.find_all(exp.Column) if column.name.lower() == name.lower()]
    qualifier = columns[0].table if columns else ""
    label = f"{qualifier}.{name}" if qualifier else f'"{name}"'
    return refuse("catalog_column", name=label, position=_column_position(tree, name))


def unknown_operator(tree: exp.Expr, sign: str) -> Error:
    """Return PostgreSQL's refusal of an operator that does not exist, with the types of its operands as far as they are seen."""
    for node in tree.find_all(*(kind for kind, written in SIGNS.items() if written == sign)):
        left, right = (sql_name(visible_type(side) or "unknown") for side in (node.this, node.expression))
        return refuse("catalog_operator", name=f"{left} {sign} {right}")
    return refuse("catalog_operator", name=sign)


def absent_call(tree: exp.Expr, name: str) -> Error:
    """Return the refusal of a function that is not computed here: only of one that PostgreSQL lacks it is said not to exist."""
    if name.lower() in _functions() or not any(node.meta.get("word") for node in tree.find_all(exp.Func)):
        return refuse("catalog_query", hint=f"{name.lower()} is not computed here")
    return unknown_call(tree, name)


@cache
def _functions() -> frozenset[str]:
    return frozenset(static("pg_proc")["proname"])


def unknown_call(tree: exp.Expr, name: str) -> Error:
    """Return PostgreSQL's refusal of a function that does not exist, with the types of its arguments as far as they are seen."""
    calls = [node for node in tree.find_all(exp.Func) if called(node) == name.lower()]
    if not calls:
        return refuse("catalog_function", name=f"function {name.lower()}()")
    call = calls[0]
    arguments = call.expressions if isinstance(call, exp.Anonymous) else list(call.iter_expressions())
    types = ", ".join(sql_name(visible_type(argument) or "unknown") for argument in arguments)
    return refuse("catalog_function", name=f"function {name.lower()}({types})", position=place(call), hint=_NO_FUNCTION)


_NO_FUNCTION = "No function matches the given name and argument types. You might need to add explicit type casts."


# --- parsing of questions about the catalogs, in PostgreSQL's dialect -------------------------------------------------

_MOST_DEPTH = 150


def read_postgres(text: SqlText, dialect: str = POSTGRESQL) -> exp.Expr | None:
    """Parse one statement in PostgreSQL's dialect, or another one; None if sqlglot cannot. Limits apply before the parser
    runs."""
    piece = as_piece(text)
    try:
        tokens = list(piece.tokens(dialect))
        depth = deepest = 0
        for token in tokens:
            depth += (token.text in ("(", "[") or token.text.upper() == "CASE") - (token.text in (")", "]"))
            deepest = max(deepest, depth)
        if len(tokens) > MOST_TOKENS or deepest > MOST_BRACKETS:
            return None
        trees = parse_tokens(_with_arrays(_with_labels(_with_operators(tokens))), piece.sql, dialect)
    except (Error, SqlglotError, RecursionError):
        return None
    tree = flattened(trees[0]) if len(trees) == 1 else None
    if isinstance(tree, exp.Values):
        names = [f"column{number}" for number, _ in enumerate(tree.expressions[0].expressions, 1)]
        tree = exp.select("*").from_(exp.alias_(tree, "*VALUES*", table=names, quoted=True))
    if tree is not None:
        for node in tree.find_all(exp.Func, exp.Mod):
            if "start" in node.meta:
                node.meta["word"] = piece.sql[node.meta["start"] : node.meta["end"] + 1]
    return tree if tree is not None and _shallow(tree) else None


_LABELS = {TokenType.SELECT, TokenType.INSERT, TokenType.UPDATE, TokenType.DELETE}


def _with_labels(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens of a question with `select` and the like as names in `AS select` and `t.select`: in PostgreSQL any word
    may follow AS or a dot."""
    if not tokens or tokens[0].token_type not in (TokenType.SELECT, TokenType.WITH):
        return list(tokens)
    labelled = list(tokens[:1])
    for before, token in pairwise(tokens):
        named = token.token_type in _LABELS and before.token_type in (TokenType.ALIAS, TokenType.DOT)
        labelled.append(_name_token(token) if named else token)
    return labelled


def _with_operators(tokens: list[Token]) -> list[Token]:
    """Return the tokens with OPERATOR(pg_catalog.~) as ~."""
    read: list[Token] = []
    start = 0
    for token in tokens:
        start = len(read) if token.token_type is TokenType.OPERATOR else start
        read.append(token)
        if token.text == ")" and [before.text.lower() for before in read[start : start + 4]] == _IN_CATALOG:
            read[start:] = read[start + 4 : -1]
    return read


_IN_CATALOG = ["operator", "(", "pg_catalog", "."]


def _with_arrays(tokens: list[Token]) -> list[Token]:
    """Return the tokens with regtype[] and the like by the name that PostgreSQL has for this type, _regtype: sqlglot reads no
    brackets behind it."""
    read: list[Token] = []
    for token in tokens:
        before = [other.token_type for other in read[-2:]]
        if token.token_type is TokenType.R_BRACKET and before == [TokenType.OBJECT_IDENTIFIER, TokenType.L_BRACKET]:
            name = read[-2]
            read[-2:] = [
                Token(TokenType.VAR, f"_{name.text.lower()}", name.line, name.col, name.start, token.end, name.comments)
            ]
        else:
            read.append(token)
    return read


def _name_token(token: Token) -> Token:
    lowered = token.text.lower()
    return Token(TokenType.IDENTIFIER, lowered, token.line, token.col, token.start, token.end, token.comments)


def _shallow(tree: exp.Expr) -> bool:
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > _MOST_DEPTH:
            return False
        level = [child for node in level for child in node.iter_expressions()]
    return True


# --- format() and tests of texts with patterns in questions about the catalogs, which DuckDB has in other forms -------

JOINED = "concat"
"""The function that `joined_format` calls."""
_PLACEHOLDER = re.compile(r"%([sIL%])")


def joined_format(node: exp.Expr) -> exp.Expr:
    """Return format('%I.%s', a, b), of a literal with only %s, %I, %L and %%, as a call that joins texts and values."""
    pattern, *values = node.expressions if isinstance(node, exp.Anonymous) else (node.this, *node.expressions)
    pieces = _PLACEHOLDER.split(pattern.name) if isinstance(pattern, exp.Literal) and pattern.is_string else ["%"]
    if any("%" in text for text in pieces[::2]) or sum(kind != "%" for kind in pieces[1::2]) != len(values):
        raise refuse("unknown_function", name="format")
    parts: list[exp.Expr] = [exp.Literal.string("")]
    for number, text in enumerate(pieces):
        if number % 2 == 0:
            parts += [exp.Literal.string(text)] if text else []
        elif text == "%":
            parts.append(exp.Literal.string(text))
        else:
            value = exp.cast(values.pop(0), "text")
            macro = {"I": "quote_ident", "L": "quote_nullable"}.get(text)
            parts.append(value if macro is None else exp.Anonymous(this=PREFIX + macro, expressions=[value]))
    return exp.Anonymous(this=JOINED, expressions=parts)


_OPERATORS = {"~~": ("like", exp.Like), "~~*": ("ilike", exp.ILike), "~": ("matche", None), "~*": ("imatche", None)}
"""Tests with patterns: the macro that makes the list of a text's tests, and the node of a single one."""
_WORDS: dict[type[exp.Expr], str] = {exp.Like: "~~", exp.ILike: "~~*", exp.RegexpLike: "~", exp.RegexpILike: "~*"}


def pattern_test(node: exp.Expr) -> exp.Expr:
    """Return x LIKE y, x ~ y or a like test, also of ANY and ALL patterns of a list; a backslash escapes in LIKE."""
    if isinstance(node.parent, exp.Escape):
        return node
    return _tested(node.this, _WORDS[type(node)], node.expression, bool(node.args.get("negate")))


def _tested(value: exp.Expr, operator: str, pattern: exp.Expr, negated: bool) -> exp.Expr:
    macro, node = _OPERATORS[operator]
    is_all = isinstance(pattern, exp.All) or (isinstance(pattern, exp.Anonymous) and pattern.name.upper() == "ALL")
    if is_all or isinstance(pattern, exp.Any):
        listed = (pattern.expressions[0] if isinstance(pattern, exp.Anonymous) else pattern.this).unnest()
        if isinstance(listed, exp.Literal):
            listed = list_literal(listed.name)
        some = exp.Anonymous(
            this="list_contains", expressions=[call(f"{macro}s", value, listed), exp.convert(is_all == negated)]
        )
        return exp.Not(this=some) if is_all else some
    if node is None:
        test: exp.Expr = exp.Anonymous(
            this="regexp_matches", expressions=[value, pattern, exp.Literal.string("i" if "*" in operator else "")]
        )
    else:
        test = node(this=value.copy(), expression=pattern.copy())
        if not (isinstance(pattern, exp.Literal) and "\\" not in pattern.name):
            test = exp.Escape(this=test, expression=exp.Literal.string("\\"))
        test = exp.Paren(this=test)
    return exp.Not(this=test) if negated else test


# --- the allow-list for queries on the catalogs -----------------------------------------------------------------------
# The one for released numbers, and what PostgreSQL's clients need in addition.

PLAIN_FUNCTIONS = {
    "lower", "upper", "length", "substr", "substring", "replace", "concat", "concat_ws", "left", "right", "trim",
    "ltrim",
    "rtrim", "strpos", "position", "split_part", "nullif", "greatest", "least", "abs", "round", "floor", "ceil", "mod",
    "bool_and", "bool_or", "max", "min", "sum", "count", "avg", "any_value", "unnest", "row_number", "rank",
    "array_append",
    "array_cat", "list_value", "md5", "ascii", "chr", "repeat", "reverse", "starts_with", "date_trunc",
    "generate_series",
    "random", "pi", "sqrt", "power", "sign", "lpad", "rpad", "initcap", "array_position", "array_agg", "string_agg",
    "date_part", "row", "pg_get_keywords", "cbrt", "degrees", "radians", "gcd", "lcm", "corr", "var_pop", "var_samp",
    "stddev_pop",
    "stddev_samp", "variance", "regr_slope", "regr_intercept", "regr_count", "covar_pop", "covar_samp", "bit_and", "bit_or",
    "grouping", "make_date", "mode", "stddev", "percentile_cont", "percentile_disc",
    "atan2", "sin", "cos", "tan", "asin", "acos", "atan",
}  # fmt: skip
"""Functions that DuckDB has under the same name."""

_NODES = (
    RESULT_NODES
    | {node for name in PLAIN_FUNCTIONS if (node := exp.FUNCTION_BY_NAME.get(name.upper())) is not None}
    | {
        exp.Select, exp.From, exp.Join, exp.TableAlias, exp.Subquery, exp.With, exp.CTE, exp.Union, exp.Except,
        exp.Intersect, exp.Values, exp.Unnest, exp.Explode, exp.ExplodingGenerateSeries, exp.GenerateSeries, exp.Lateral,
        exp.Array, exp.ArrayAgg, exp.GroupConcat, exp.ByteString, exp.HexString, exp.Escape, exp.DataTypeParam,
        exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.Localtimestamp, exp.AtTimeZone, exp.Pad, exp.Repeat,
        exp.Reverse, exp.Chr, exp.Unicode, exp.MD5, exp.Rand, exp.Slice, exp.ObjectIdentifier, exp.Parameter, exp.SimilarTo,
        exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.JSONArrayAgg, exp.Dot,
        exp.PropertyEQ, exp.ArrayConcat, exp.ArrayPosition, exp.Struct, exp.WithinGroup, exp.ArrayContainsAll,
        exp.ArrayOverlaps, exp.CurrentSchemas, exp.RegexpReplace, exp.Collate, exp.AnyValue, exp.StringToArray, exp.ArrayToString,
        exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar, exp.JSONPath, exp.JSONPathRoot,
        exp.JSONPathKey, exp.JSONPathSubscript, exp.Fetch, exp.LimitOptions, exp.Tuple, exp.RawString, exp.UnicodeString,
        exp.StrToDate,
    }
)  # fmt: skip


def check_nodes(tree: exp.Expr, rewritten: Container[type[exp.Expr]]) -> None:
    """Refuse every node that is not on the list, and functions that would build very long texts."""
    for node in tree.walk():
        if isinstance(node, exp.Table) and node.args.get("rows_from"):
            raise refuse("clause", what="ROWS FROM", position=place(node))
        if isinstance(node, exp.Table) and not isinstance(node.this, (exp.Identifier, exp.Func)):
            raise refuse("catalog_source", name=node.this.sql("postgres")[:60])
        if isinstance(node, exp.LimitOptions) and (node.args.get("percent") or node.args.get("with_ties")):
            raise refuse("clause", what="FETCH FIRST with PERCENT or WITH TIES", position=place(node.parent))
        if type(node) not in _NODES and type(node) not in rewritten:
            if isinstance(node, exp.Func):
                raise absent_call(node, called(node))
            raise refuse("clause", what=sql_word(node), position=place(node))
        if isinstance(node, (exp.Pad, exp.Repeat)):
            size = node.expression if isinstance(node, exp.Pad) else node.args.get("times")
            if not (
                isinstance(size, exp.Literal) and size.is_int and len(size.name) < 9 and int(size.name) <= MOST_TEXT
            ):
                reason = f"takes a literal length of at most {MOST_TEXT} here"
                raise refuse("wrong_arguments", function="lpad, rpad or repeat", reason=reason)
