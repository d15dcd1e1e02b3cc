"""Parser of the analyst's text into one sqlglot tree: limits first, then one statement of a known kind.

No names are resolved here. Limits are checked before parsing, because a stranger's nested brackets could crash a
recursive parser; the depth of the finished tree is checked again, so that every later recursion is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors.exceptions import Error, refuse
from dpsql.privacy.loss import MOST_EXPONENT
from dpsql.sql.forgotten_parts import check_names, check_parts
from dpsql.sql.lexer import DIALECT, OWN_NAMES, Piece, SqlText, as_piece, parser_dialect, place, quoting_hint, word
from dpsql.sql.parser import check_arguments, parse_tokens
from dpsql.sql.rewrites import TOKENS, TREES
from dpsql.sql.rewrites.bigquery import in_plain_sql
from dpsql.sql.rewrites.postgresql import FEW, escaped_strings, flattened
from dpsql.storage.records import dataclass, replace

MOST_CHARACTERS = 200_000
MOST_TOKENS = 20_000
MOST_BRACKETS = 60
MOST_DEPTH = 150

Parameters = Sequence[Any] | Mapping[str, Any] | None


@dataclass(frozen=True)
class Statement:
    """One statement. `kind`: query, explain, set, reset, show, show_tables, describe, transaction.

    `query`: the parsed tree of a query or of an explained query; `kinds`: the node types of the text as written, with their
    bases. `name` and `value` belong to set, reset, show and describe; for EXPLAIN VERBOSE, `name` is "verbose". `options`: those
    of SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (...), as texts. A query without a tree is SUMMARIZE of the table `value`.
    `claimed_user`: for whom a comment at the beginning says that the client asks. `values`: the parameters as a text that only
    equal ones have, if a cache may hold the statement.
    """

    kind: str
    sql: str
    query: exp.Query | None = None
    name: str = ""
    value: str = ""
    options: tuple[tuple[str, str], ...] = ()
    kinds: frozenset[type[exp.Expr]] = frozenset()
    claimed_user: str | None = None
    values: str = ""

    def has(self, *types: type[exp.Expr]) -> bool:
        """Return whether the text has a node of one of these types, without a walk through the tree."""
        return not self.kinds.isdisjoint(types)

    @property
    def reads_the_clock(self) -> bool:
        """Return whether the meaning of the text depends on the current time."""
        if self.has(exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp):
            return True
        if self.query is None or not self.has(exp.Anonymous):
            return False
        named = self.query.find_all(exp.Anonymous, exp.CurrentTimestamp)
        return any(not isinstance(node, exp.Anonymous) or str(node.this).lower() in ("now", "today") for node in named)


def dialect() -> sqlglot.Dialect:
    """Return the dialect in which texts are read and written."""
    return parser_dialect(DIALECT)


_BAD_CHARACTER = re.compile("[\0\ud800-\udfff]")


def parse(text: SqlText, parameters: Parameters = None) -> Statement:
    """Return the one statement of a text. Refuses everything else, with the position in the text."""
    if not isinstance(text, (str, Piece)):
        raise refuse("not_text", kind=type(text).__name__)
    piece = as_piece(text)
    try:
        return _parse(piece, parameters)
    except Error as error:
        raise error.placed_in(piece.sql) from None


def _parse(piece: Piece, parameters: Parameters) -> Statement:
    sql = piece.sql
    if len(sql) > MOST_CHARACTERS:
        raise refuse("too_long", most=MOST_CHARACTERS)
    bad = _BAD_CHARACTER.search(sql)
    if bad is not None:
        raise refuse("bad_character", position=bad.start() + 1, code=f"U+{ord(bad[0]):04X}")
    tokens = _checked(piece.tokens(DIALECT))
    explained = _explained(tokens)
    if explained:
        tokens = tokens[explained:]
    if not tokens:
        raise refuse("empty")
    if word(tokens[0]) == "SUMMARIZE":
        statement = Statement("query", sql, value=_table_name(tokens))
    elif explained:
        statement = _query(sql, tokens, parameters)
    else:
        return _simple(sql, tokens) or _query(sql, tokens, parameters)
    if not explained:
        return statement
    verbose = "verbose" if word(piece.tokens(DIALECT)[explained - 1]) == "VERBOSE" else ""
    return replace(statement, kind="explain", name=verbose)


def _explained(tokens: list[Token]) -> int:
    """Return the number of words (0 to 2) of EXPLAIN, EXPLAIN PRIVACY or EXPLAIN VERBOSE at the beginning of a statement."""
    words = [word(token) for token in tokens[:2]]
    if words[:1] != ["EXPLAIN"]:
        return 0
    return 2 if words[1:] in (["PRIVACY"], ["VERBOSE"]) else 1


_SETS_FIRST = (
    "give options to `dpsql query` with --set NAME=VALUE, send SET by itself first, or use `dpsql run` for files"
)


def _checked(lexed: Sequence[Token]) -> list[Token]:
    """Return the tokens without closing semicolons. Refuses too many tokens or too deep nesting before any recursion, several
    statements, and dpsql's own names."""
    tokens = list(lexed)
    if len(tokens) > MOST_TOKENS:
        raise refuse("too_many_tokens", most=MOST_TOKENS, position=tokens[MOST_TOKENS].start + 1)
    depth = subscripts = 0
    for token in tokens:
        kind = token.token_type
        if kind not in _DEEPER:
            continue
        step = _DEEPER[kind]
        # Each subscript of a[1][1]... makes the parser search all subscripts before it, so their number is limited.
        subscripts += kind is TokenType.L_BRACKET
        if subscripts > MOST_DEPTH:
            raise refuse("too_deep", most=MOST_DEPTH, position=token.start + 1)
        depth = max(0, depth + step)
        if depth > MOST_BRACKETS:
            raise refuse("too_deep", most=MOST_BRACKETS, position=token.start + 1)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            hint = _SETS_FIRST if word(tokens[0]) == "SET" else None
            raise refuse("many_statements", position=token.start + 1, hint=hint)
        if token.token_type is TokenType.IDENTIFIER and OWN_NAMES in token.text.lower():
            detail, hint = f"names with {OWN_NAMES} in them are dpsql's own", "choose another name"
            raise refuse("syntax", detail=detail, hint=hint, position=token.start + 1)
    return tokens


_DEEPER = {
    TokenType.L_PAREN: 1, TokenType.L_BRACKET: 1, TokenType.L_BRACE: 1, TokenType.CASE: 1,
    TokenType.R_PAREN: -1, TokenType.R_BRACKET: -1, TokenType.R_BRACE: -1, TokenType.END: -1,
}  # fmt: skip


def _first_line(text: str) -> str:
    """Return the parser's message without terminal colours, quotations of the text, and its position."""
    line = re.sub(r"\x1b\[[0-9;]*m", "", text.splitlines()[0] if text else "")
    line = re.sub(r" but got <Token .*$", "", line)
    line = re.sub(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>", _incomplete, line)
    return re.sub(r"\.? Line \d+, Col: \d+\.?.*$", "", line).strip() or "it is not SQL"


def _incomplete(match: re.Match[str]) -> str:
    return f"{match[1].upper()} lacks a part"


_TRANSACTION = {"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"}


def _simple(sql: str, tokens: list[Token]) -> Statement | None:
    """Return a statement about the session, else None. sqlglot turns most into opaque commands, so tokens are read."""
    first = word(tokens[0])
    rest = [token.text for token in tokens[1:]]
    if first in _TRANSACTION:
        if len(tokens) > 8:
            raise refuse("syntax", detail=f"{first} takes no more words", position=tokens[8].start + 1)
        return Statement("transaction", sql, name=first)
    if first == "SHOW":
        if [word.upper() for word in rest] in (["TABLES"], ["ALL", "TABLES"]):
            return Statement("show_tables", sql)
        return Statement("show", sql, name=_option_name(rest, tokens))
    if first in ("DESCRIBE", "DESC"):
        return Statement("describe", sql, name=_table_name(tokens))
    if first == "RESET":
        return Statement("reset", sql, name=_option_name(rest, tokens))
    if first == "SET":
        return _set(sql, tokens)
    return None


def _table_name(tokens: list[Token]) -> str:
    """Return the name after the first word, and perhaps TABLE, of a statement that takes nothing else."""
    first = 2 if len(tokens) > 2 and word(tokens[1]) == "TABLE" and tokens[2].text != "." else 1
    rest = [token.text for token in tokens[first:]]
    if len(rest) not in (1, 3, 5) or any(part != "." for part in rest[1::2]):
        raise refuse("syntax", detail=f"{word(tokens[0])} takes the name of one table", position=tokens[0].start + 1)
    return "".join(rest)


def _option_name(words: list[str], tokens: list[Token]) -> str:
    name = "".join(words).lower()
    if len(words) not in (1, 3) or not re.fullmatch(r"[a-z_]+(\.[a-z_]+)?", name):
        raise refuse("syntax", detail="expected the name of one option, like dp.epsilon", position=tokens[0].start + 1)
    return name


def _set(sql: str, tokens: list[Token]) -> Statement:
    """Read SET [SESSION] name (= | TO) value. Refuses LOCAL before an option (transaction_none): transactions exist on the wire
    only, where the word is removed (`pgwire.commands.without_local`)."""
    scope = tokens[1].text.upper() if len(tokens) > 1 else ""
    body = tokens[2:] if scope in ("SESSION", "LOCAL") else tokens[1:]
    for index, token in enumerate(body):
        if token.token_type is TokenType.EQ or token.text.upper() == "TO":
            name = _option_name([t.text for t in body[:index]], tokens)
            value = body[index + 1 :]
            if not value:
                break
            text = value[0].text if len(value) == 1 else sql[value[0].start : value[-1].end + 1]
            if scope == "LOCAL" and name.startswith("dp."):
                hint = f"there are none here; write SET {name} = {text.strip()}"
                raise refuse("transaction_none", what="SET LOCAL", hint=hint, position=tokens[1].start + 1)
            return Statement("set", sql, name=name, value=text.strip())
    raise refuse("syntax", detail="expected SET name = value", position=tokens[0].start + 1)


COMMANDS = frozenset({
    "ABORT", "ALTER", "ANALYZE", "ATTACH", "BEGIN", "CALL", "CHECKPOINT", "CLOSE", "CLUSTER", "COMMENT", "COMMIT", "COPY",
    "CREATE", "DEALLOCATE", "DECLARE", "DELETE", "DETACH", "DISCARD", "DO", "DROP", "END", "EXECUTE", "EXPORT", "FETCH",
    "GRANT", "IMPORT", "INSERT", "INSTALL", "LISTEN", "LOAD", "LOCK", "MERGE", "MOVE", "NOTIFY", "PRAGMA",
    "PREPARE", "REASSIGN", "REFRESH", "REINDEX", "RELEASE", "REPLACE", "RESET", "REVOKE", "ROLLBACK", "SAVEPOINT",
    "SECURITY", "SET", "SHOW", "START", "TABLE", "TRUNCATE", "UNLISTEN", "UPDATE", "USE", "VACUUM",
})  # fmt: skip
"""First words of PostgreSQL and DuckDB statements that are not queries; any other first word is a misspelling."""

_BACKSLASH = (
    "lines that begin with a backslash are commands of `dpsql repl` and of psql; `--param name=value` gives values for :name, "
    "and `dpsql run` takes several files"
)
_QUESTIONS = ("SELECT", "WITH", "FROM", "(", "VALUES", "PIVOT", "UNPIVOT")
"""First words of a query."""


def _query(sql: str, tokens: list[Token], parameters: Parameters) -> Statement:
    tokens, options = in_plain_sql(escaped_strings(tokens, sql))
    for rewrite in TOKENS:
        tokens = rewrite(tokens)
    first = tokens[0].text.upper()
    if first not in _QUESTIONS:
        if first not in COMMANDS:
            hint, position = _BACKSLASH if first == "\\" else None, tokens[0].start + 1
            raise refuse("syntax", detail=f"no statement begins with {tokens[0].text}", hint=hint, position=position)
        raise refuse("not_a_query", word=tokens[0].text, position=tokens[0].start + 1)
    numbered, marks = _numbered(tokens)
    trees = _trees(numbered, sql, tokens)
    check_arguments(tokens, DIALECT)
    check_parts(tokens, sql)
    tree = trees[0] if len(trees) == 1 else None
    if tree is not None:
        check_names(tree, tokens)
    types = [token.token_type for token in tokens]
    if types.count(TokenType.AND) + types.count(TokenType.OR) > FEW:
        tree = flattened(tree)
    kinds = _kinds(tree)
    tree = _as_select(tree)
    if not isinstance(tree, (exp.Select, exp.SetOperation)):
        raise refuse("not_a_query", word=tokens[0].text, position=tokens[0].start + 1)
    if parameters or not kinds.isdisjoint((exp.Placeholder, exp.Parameter)):
        tree, kinds = _bind_parameters(tree, parameters, marks), kinds | {exp.Cast}
    tree, kinds = _rewritten(tree, kinds)
    if parameters:
        for node in tree.find_all(exp.Array):
            if kind := node.meta_get("parameter"):
                raise refuse("parameter_value", kind=kind)
    return Statement("query", sql, tree, options=options, kinds=kinds, values=values_text(parameters) or "")


def _rewritten(tree: exp.Query, kinds: frozenset[type[exp.Expr]]) -> tuple[exp.Query, frozenset[type[exp.Expr]]]:
    """Return a query in the spellings that the binder knows, and the types of its nodes, `kinds` of the text as written."""
    for rewrite, types in TREES:
        if not kinds.isdisjoint(types):
            tree = rewrite(tree)
            if exp.Pivot in types:
                kinds = _kinds(tree)
    return tree, kinds


def _trees(numbered: list[Token], sql: str, tokens: Sequence[Token]) -> list[exp.Expr | None]:
    """Return the trees of a text. Refuses (syntax, too_deep, too_many_readings) what the parser cannot read."""
    try:
        return parse_tokens(numbered, sql, DIALECT)
    except Error:
        raise
    except SqlglotError as error:
        details = getattr(error, "errors", None)
        place = _error_place(tokens, details[0]) if details else None
        detail = _first_line(details[0].get("description") or str(error) if details else str(error))
        raise refuse("syntax", detail=detail, position=place, hint=quoting_hint(tokens)) from None
    except RecursionError:
        raise refuse("too_deep", most=MOST_BRACKETS) from None
    except Exception:  # an operator without its operand and the like crash the parser; it knows nothing but the text
        raise refuse("syntax", detail="it is not SQL") from None


def _as_select(tree: exp.Expr | None) -> exp.Expr | None:
    """Return a query without the brackets around it, one with clauses behind them as SELECT * FROM (query) ORDER BY ..., and a
    bare PIVOT or UNPIVOT as SELECT * FROM (PIVOT ...)."""
    if isinstance(tree, exp.Pivot):
        common = tree.args.pop("with_", None)
        return exp.Select(with_=common, expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=tree)))
    while isinstance(tree, exp.Subquery) and not any(v for k, v in tree.args.items() if k != "this"):
        tree = tree.this
    if isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query) and not tree.args.get("alias"):
        clauses = {name: value for name, value in tree.args.items() if name not in ("this", "alias") and value}
        for wrong in sorted(clauses.keys() - {"with_", "order", "limit", "offset", "locks"}):  # sqlglot reads them, too
            detail = f"{wrong.rstrip('s').upper()} does not stand behind a query in brackets"
            nodes = clauses[wrong] if isinstance(clauses[wrong], list) else [clauses[wrong]]
            raise refuse("syntax", detail=detail, position=place(nodes[0]))
        source = exp.Subquery(this=tree.this, alias=exp.TableAlias(this=exp.to_identifier("q")))
        return exp.Select(expressions=[exp.Star()], from_=exp.From(this=source), **clauses)
    return tree


def _numbered(tokens: list[Token]) -> tuple[list[Token], list[int]]:
    """Return the tokens with $1, $2, ... in place of each ?, and the positions of ? in the text (from 1): the parser keeps
    neither their order nor their positions."""
    marks = [token.start + 1 for token in tokens if token.token_type is TokenType.PLACEHOLDER]
    if not marks:
        return tokens, marks
    numbered: list[Token] = []
    number = 0
    for token in tokens:
        if token.token_type is not TokenType.PLACEHOLDER:
            numbered.append(token)
            continue
        number += 1
        place = (token.line, token.col, token.start)
        numbered.append(Token(TokenType.PARAMETER, "$", *place, token.start))
        numbered.append(Token(TokenType.NUMBER, str(number), *place, token.end))
    return numbered, marks


def _error_place(tokens: Sequence[Token], error: dict[str, Any]) -> int | None:
    """Return the position of the token that the parser identifies by the line and column of its end, None if there is none."""
    named = (error.get("line"), error.get("col"))
    return next((token.start + 1 for token in tokens if (token.line, token.col) == named), None)


def _kinds(tree: exp.Expr | None) -> frozenset[type[exp.Expr]]:
    """Return the node types of a tree, and the classes that these derive from. Refuses trees deeper than `MOST_DEPTH`, so that
    recursion over them cannot exhaust the stack."""
    level: list[exp.Expr] = [tree] if tree is not None else []
    depth, kinds = 0, set[type[exp.Expr]]()
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            raise refuse("too_deep", most=MOST_DEPTH, position=place(level[0]))
        kinds.update(map(type, level))
        level = [child for node in level for child in node.iter_expressions()]
    return frozenset[Any]().union(*(kind.__mro__ for kind in kinds))


def has_values(parameters: Parameters) -> bool:
    """Return whether there are parameter values. Refuses anything except a sequence of values or a mapping of names to values."""
    if parameters is None:
        return False
    if isinstance(parameters, (str, bytes, bytearray, memoryview)) or not isinstance(parameters, (Sequence, Mapping)):
        hint = "give a list of values for ? and $1, or a mapping for :name"
        raise refuse("parameter_value", kind=f"a bare {type(parameters).__name__}", hint=hint)
    return len(parameters) > 0


def values_text(parameters: Parameters) -> str | None:
    """Return a text of parameters that only equal ones of the same types have; None if one is not a plain value."""
    if not has_values(parameters):
        return ""
    assert parameters is not None
    parts = [*(parameters.keys() if isinstance(parameters, Mapping) else ())]
    parts += parameters.values() if isinstance(parameters, Mapping) else parameters
    plain = all(type(part) in _PLAIN and getattr(part, "tzinfo", None) is None for part in parts)
    short = all(part.bit_length() <= _MOST_BITS for part in parts if isinstance(part, int))
    return repr([type(parameters), *((type(part), part) for part in parts)]) if plain and short else None


_MOST_BITS = 1 << 10
"""Most bits of an integer that has a text: Python writes none of more than 4300 digits."""
_PLAIN = frozenset({str, bool, int, float, Decimal, date, datetime, NoneType})
"""Types whose `repr` tells different values apart."""


def _bind_parameters(tree: exp.Query, parameters: Parameters, marks: list[int]) -> exp.Query:
    """Replace ?, $1 or :name by the parameter values, as literals, before anything is analysed. `marks`: the positions of ?,
    which `_numbered` has replaced by $1, $2, ..."""
    holders = list(tree.find_all(exp.Placeholder, exp.Parameter))
    if not holders:
        if parameters:
            raise refuse("parameter_count", want=0, got=len(parameters))
        return tree
    values: Mapping[str, Any]
    if isinstance(parameters, Mapping):
        values = parameters
    else:
        listed = list(parameters or ())
        values = {str(number): value for number, value in enumerate(listed, 1)}
        numbers = (int(node.name) for node in holders if re.fullmatch("[0-9]{1,9}", node.name))
        want = len(marks) or max(numbers, default=0)
        if want != len(listed):
            raise refuse("parameter_count", want=want, got=len(listed), position=marks[0] if marks else None)
    places = {str(number): mark for number, mark in enumerate(marks, 1)}
    for node in holders:
        position = places.get(node.name, place(node))
        if node.arg_key == "alias" or isinstance(node.parent, (exp.Table, exp.TableAlias)):
            raise refuse("syntax", detail="a parameter is a value and cannot be a name", position=position)
        if node.name not in values:
            raise refuse("parameter_missing", name=node.name, position=position)
        node.replace(_literal(values[node.name]))
    return tree


def _literal(value: Any) -> exp.Expr:
    """Return a parameter's value as a literal tree. Refuses (parameter_value) other values than plain ones of SQL types."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > MOST_EXPONENT:
        raise refuse("parameter_value", kind="a number out of range")
    if isinstance(value, int) and value.bit_length() > 4 * MOST_EXPONENT:
        raise refuse("parameter_value", kind="a number out of range")
    if isinstance(value, (int, float, Decimal)):
        text = format(value, "f") if isinstance(value, Decimal) else repr(_builtin(value))
        if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", text):
            raise refuse("parameter_value", kind="a number that is not finite")
        literal = exp.Literal.number(text.lstrip("-"))
        return exp.Neg(this=literal) if text.startswith("-") else literal
    if isinstance(value, (date, timedelta)):
        return _temporal(value)
    if isinstance(value, str):
        for character in value:
            if character == "\0" or "\ud800" <= character <= "\udfff":
                raise refuse("parameter_value", kind=f"text with U+{ord(character):04X}")
        return exp.Literal.string(str(value))
    if isinstance(value, (list, tuple)) and not any(isinstance(item, (list, tuple)) for item in value):
        array = exp.Array(expressions=[_literal(str(item) if isinstance(item, date) else item) for item in value])
        array.meta["parameter"] = type(value).__name__
        return array
    raise refuse("parameter_value", kind=type(value).__name__)


def _temporal(value: date | timedelta) -> exp.Cast:
    """Return a date, timestamp or interval as the cast of its text."""
    if isinstance(value, timedelta):
        text, type_ = f"{value.days} days {value.seconds}.{value.microseconds:06} seconds", exp.DType.INTERVAL
    elif isinstance(value, datetime):
        text, type_ = value.isoformat(" "), exp.DType.TIMESTAMP if value.tzinfo is None else exp.DType.TIMESTAMPTZ
    else:
        text, type_ = value.isoformat(), exp.DType.DATE
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType(this=type_))


def _builtin(value: float) -> float:
    """Return the number as a plain int or float: derived classes (enumerations, numpy's) have a different repr."""
    return int(value) if isinstance(value, int) else float(value)
