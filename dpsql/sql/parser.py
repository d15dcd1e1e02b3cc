"""The only door to sqlglot's parser, which reads its grammar by trial: what fails as a type is read again as a call, so the
time for date(date(date(...))) doubles with every level. Three things bound it for every text.

- Names of types before a bracket that holds no plain numbers are read as names (`_calls_by_name`). The parser finds the same
  trees: where only a type can stand, it looks names up.
- The parser counts its steps and gives up (too_many_readings) after `most_steps`, a multiple of the number of tokens. A step is
  one look at an attribute of `_STEPS`; sqlglot's compiled classes allow no other intervention. For each step and each token the
  parser calls at most `MOST_CALLS` functions: no proof, but a fuzz that searches for a text that breaks it. A step runs Python
  code, so that other threads of the process get their turn within `sys.getswitchinterval()`, and interrupts are heard:
  compiled code alone would keep both waiting to its end.
- Trees that the parser copies (`_copied`) are charged as steps, and subscripts, for which it would find the types of all that
  stands before them, keep the numbers that are written.

`tests/fuzz/test_parse_time.py` counts the calls of functions, in the parser that is not compiled.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors.exceptions import refuse
from dpsql.sql.lexer import DIALECT, as_piece, parser_dialect

WRITTEN_NAME = "written name"
"""Key of a function's `meta` under which stands its name in the text."""
MOST_CALLS = 200
STEPS_FOR_EACH_TOKEN = 5
LEAST_STEPS = 5_000

_NOT_READ = frozenset({
    "DATE_TO_DATE_STR", "DAY_OF_MONTH", "DAY_OF_WEEK", "DAY_OF_YEAR", "DAYOFWEEK_ISO", "J_S_O_N_CAST", "LEFTPAD", "LIKE", "PAD",
    "REGEXP_I_LIKE", "RIGHTPAD", "STR_POSITION", "TIME_TO_STR", "TIME_TO_TIME_STR", "TIME_TO_UNIX", "TIMESTAMPDIFF",
    "TS_OR_DS_TO_DATE_STR", "UNIX_TO_TIME", "WEEK_OF_YEAR",
})  # fmt: skip
"""Names that sqlglot gives to its own nodes and no engine has, and functions whose arguments it reads in another order than the
systems that have them: for the binder they are unknown functions."""
_INTERVAL = re.compile(r"[\w :.+-]{0,100}", re.ASCII)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_STATEMENTS = frozenset({
    TokenType.ALTER, TokenType.DROP, TokenType.FORCE, TokenType.GRANT, TokenType.INSERT, TokenType.INSTALL, TokenType.REVOKE,
    TokenType.ROLLBACK,
})  # fmt: skip
"""Words that are names in DuckDB and PostgreSQL wherever they begin no statement, and that sqlglot keeps for statements."""
_STEPS = (
    "UNARY_PARSERS",
    "TYPE_TOKENS",
    "FUNC_TOKENS",
    "ID_VAR_TOKENS",
    "TABLE_TERMINATORS",
    "JOIN_METHODS",
    "JOINS_HAVE_EQUAL_PRECEDENCE",
)


def most_steps(tokens: int) -> int:
    """Return the number of steps that the parser may take for a text of so many tokens."""
    return LEAST_STEPS + STEPS_FOR_EACH_TOKEN * tokens


def parse_tokens(tokens: Sequence[Token], sql: str, dialect: str) -> list[exp.Expr | None]:
    """Return the trees of the statements. Refuses (too_many_readings) a text that takes too many steps; raises sqlglot's errors,
    and whatever else its parser raises for a text that is not SQL."""
    metered = _metered_dialect(dialect)
    calls = [index for index, token in enumerate(tokens) if index and token.token_type is TokenType.L_PAREN]
    metered.steps_left = most_steps(len(tokens)) - _copied(tokens, calls, dialect) // 2
    trees: list[exp.Expr | None] = metered.parser().parse(_calls_by_name(tokens, calls, dialect), sql)
    for tree in trees:
        for node in () if tree is None else tree.walk():
            if node._meta is not None:
                node._meta = Marks(node._meta)
            if isinstance(node, exp.Bracket):
                node.set("offset", parser_dialect(dialect).INDEX_OFFSET)
    return trees


class Marks(dict[str, Any]):
    """What a node says of its place and its name, copied in a quarter of the time: the values in it never change."""

    def __deepcopy__(self, memo: object) -> Marks:
        return Marks(self)


def parse_text(sql: str, dialect: str = DIALECT) -> exp.Expr:
    """Return the tree of a text of one statement. Raises as `parse_tokens`, also for another number of statements."""
    trees = parse_tokens(as_piece(sql).tokens(dialect), sql, dialect)
    if len(trees) != 1 or trees[0] is None:
        raise ParseError("this is not one statement")
    return trees[0]


def _copied(tokens: Sequence[Token], calls: list[int], dialect: str) -> int:
    """Return an upper bound of the tokens whose trees the parser copies: at each call that an operator like the dot in a.f(b)
    joins to its left, all that stands before it. The name of a schema is too short to count."""
    operators = _operators(dialect)
    copied = 0
    for index in calls:
        if index > 2 and tokens[index - 2].token_type in operators:
            schema = tokens[index - 3].token_type in _NAMES and tokens[index - 4].token_type not in operators
            copied += 0 if schema else index
    return copied


@cache
def _operators(dialect: str) -> frozenset[TokenType]:
    """Return the operators like the dot, without casts."""
    parser = parser_dialect(dialect).parser_class
    return frozenset(parser.COLUMN_OPERATORS.keys() - parser.CAST_COLUMN_OPERATORS)


def _calls_by_name(tokens: Sequence[Token], calls: list[int], dialect: str) -> list[Token]:
    """Return the tokens with names instead of the words for types that stand before a bracket, except for plain numbers in
    brackets, as in DECIMAL(10, 2), which are read in one step."""
    read = list(tokens)
    types = _types(dialect)
    for index in calls:
        token = read[index - 1]
        if token.token_type in types and not _numbers(read, index + 1):
            place = (token.line, token.col, token.start, token.end)
            read[index - 1] = Token(TokenType.VAR, token.text, *place, token.comments)
    for index in reversed(calls):  # the schema that PostgreSQL's own functions are in
        if index > 2 and read[index - 2].token_type is TokenType.DOT and read[index - 3].text.lower() == "pg_catalog":
            del read[index - 3 : index - 1]
    return read


@cache
def _types(dialect: str) -> frozenset[TokenType]:
    """Return the words for types without parts that are types themselves."""
    parser = parser_dialect(dialect).parser_class
    return frozenset(parser.TYPE_TOKENS - parser.NESTED_TYPE_TOKENS - {TokenType.INTERVAL, TokenType.NULL})


def _numbers(tokens: Sequence[Token], start: int) -> bool:
    """Return whether one or two numbers and a closing bracket stand at `start`."""
    kinds = [token.token_type for token in tokens[start : start + 4]]
    number, comma, close = TokenType.NUMBER, TokenType.COMMA, TokenType.R_PAREN
    return kinds[:2] == [number, close] or kinds == [number, comma, number, close]


def _counted(value: Any) -> property:
    """Return an attribute of a metered parser: each look at it is a step."""

    def look(parser: Any) -> Any:
        dialect = parser.dialect
        if (left := dialect.steps_left - 1) < 0:
            raise refuse("too_many_readings")
        dialect.steps_left = left
        return value

    return property(look)


@cache
def _metered_class(name: str) -> type:
    """Return the parser of a dialect with counting attributes. Compiled classes cannot be instantiated through a subclass, but an
    instance may change to a subclass without attributes of its own."""
    usual = parser_dialect(name).parser_class
    counted: dict[str, Any] = {attribute: _counted(getattr(usual, attribute)) for attribute in _STEPS}
    placed = {"PRIMARY_PARSERS": _placed(usual.PRIMARY_PARSERS), "NO_PAREN_FUNCTIONS": _words(usual.NO_PAREN_FUNCTIONS)}
    placed |= {"FUNCTIONS": _functions(usual.FUNCTIONS), "TYPE_CONVERTERS": _types_with_lengths(usual.TYPE_CONVERTERS)}
    placed["NO_PAREN_FUNCTION_PARSERS"] = _named_map(usual.NO_PAREN_FUNCTION_PARSERS)
    counted["UNARY_PARSERS"] = _counted({**usual.UNARY_PARSERS, TokenType.PLUS: _plus})
    counted["ID_VAR_TOKENS"] = _counted(usual.ID_VAR_TOKENS | _STATEMENTS)
    return type("MeteredParser", (usual,), {"__slots__": (), **placed, **counted})


def _plus(parser: Any) -> exp.Expr:
    """Return + before an operand, which sqlglot drops, as two minus signs: they have the same value, of numbers alone."""
    operand: exp.Expr = parser._parse_unary()
    if operand is None or (
        isinstance(operand.unnest(), (exp.Literal, exp.Interval)) and not operand.unnest().is_string
    ):
        return operand
    return exp.Neg(this=exp.Neg(this=operand))


def _named_map(usual: dict[str, Any]) -> dict[str, Any]:
    """Return the parsers of words such as CASE, with MAP as a name unless a bracket follows."""

    def built(parser: Any) -> exp.Expr:
        if parser._curr is not None and parser._curr.token_type in (TokenType.L_PAREN, TokenType.L_BRACE):
            read: exp.Expr = usual["MAP"](parser)
            return read
        return exp.Identifier(this=parser._prev.text, quoted=False).update_positions(parser._prev)

    return {**usual, "MAP": built} if "MAP" in usual else usual


def _types_with_lengths(usual: dict[Any, Any]) -> dict[Any, Any]:
    """Return the builders of types, where DuckDB's drops the length of varchar(2)."""
    text = exp.DType.TEXT

    def built(type_: exp.DataType) -> exp.DataType:
        lengths = [part.this for part in type_.expressions]
        plain = len(lengths) == 1 and isinstance(lengths[0], exp.Literal)
        result: exp.DataType = type_ if plain else usual[text](type_)
        return result

    return {**usual, text: built} if text in usual else usual


def _placed(usual: dict[Any, Any]) -> dict[Any, Any]:
    """Return the parsers of NULL, TRUE and FALSE, which record where the word is: refusals point to it."""

    def parser(kind: TokenType) -> Callable[[Any, Token], exp.Expr]:
        return lambda parser, token: usual[kind](parser, token).update_positions(token)

    return {**usual, **{kind: parser(kind) for kind in (TokenType.NULL, TokenType.TRUE, TokenType.FALSE)}}


def _words(usual: dict[Any, type[exp.Expr]]) -> property:
    """Return the functions without brackets, such as CURRENT_DATE, which record where the word is."""

    def built(parser: Any, kind: type[exp.Expr]) -> Callable[[], exp.Expr]:
        return lambda: kind().update_positions(parser._prev)

    return property(lambda parser: {token: built(parser, kind) for token, kind in usual.items()})


def _functions(usual: dict[str, Any]) -> dict[str, Any]:
    """Return the builders of functions, without those of `_NOT_READ`. That of PostgreSQL's generate_series reads a text as an
    interval, by a parser that counts no steps: it gets plain intervals only. Those of single nodes record the name in the
    text."""

    def series(arguments: list[exp.Expr]) -> exp.Expr:
        step = arguments[2] if len(arguments) > 2 else None
        text = step.this if isinstance(step, exp.Interval) else step
        plain = not isinstance(text, exp.Literal) or not text.is_string or _INTERVAL.fullmatch(text.name)
        built: exp.Expr = usual["GENERATE_SERIES"](arguments) if plain else exp.GenerateSeries.from_arg_list(arguments)
        return built

    def named(name: str, kind: type[exp.Func]) -> Callable[[list[exp.Expr]], exp.Expr]:
        def built(arguments: list[exp.Expr]) -> exp.Expr:
            node = kind.from_arg_list(arguments)
            node.meta[WRITTEN_NAME] = name
            return node

        return built

    usual = {name: builder for name, builder in usual.items() if name not in _NOT_READ}
    kinds = ((name, getattr(builder, "__self__", None)) for name, builder in usual.items())
    by_name = {name: named(name, kind) for name, kind in kinds if isinstance(kind, type) and issubclass(kind, exp.Func)}
    return {**usual, **by_name, "GENERATE_SERIES": series}


_metered = threading.local()


def _metered_dialect(name: str) -> Any:
    """Return this thread's dialect whose parsers count steps, those too that its parser starts for parts of a text."""
    dialects: dict[str, Any] = _metered.__dict__
    if name not in dialects:
        metered: Any = copy.copy(parser_dialect(name))
        metered.INDEX_OFFSET = 0
        usual = metered.parser

        def parser(**options: Any) -> Any:
            started = usual(**options)
            started.__class__ = _metered_class(name)
            return started

        metered.parser = parser
        dialects[name] = metered
    return dialects[name]


# --- arguments that the SQL parser drops ------------------------------------------------------------------------------
# mod(7, 4, 2) becomes 7 % 4, and would be answered as if it were right.
#
# There is no list of dropped arguments here, which the next version of the parser could make wrong. Instead, a call of
# the same function with columns a0, a1, ... is parsed; a column that is nowhere in the tree was dropped. What the parser adds
# of its own cannot be seen in a tree: functions that it completes are listed.

MOST_ASKED = 16
"""Largest number of arguments of the trial call: functions that keep so many (coalesce, concat, least) keep all."""
_NUMBERS_OF_ARGUMENTS = {
    **dict.fromkeys(("LOG2", "LOG10"), (1, 1)), **dict.fromkeys(("IF", "IFF", "TIMESTAMP_DIFF"), (3, 3)),
    **dict.fromkeys(("IFNULL", "NVL"), (2, 2)),
}  # fmt: skip
"""The fewest and the most arguments of functions that the parser completes, or reads as others, where there are fewer."""
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def check_arguments(tokens: list[Token], dialect: str) -> None:
    """Refuse the first call, in the order of closing brackets, of which the parser would drop an argument or add one."""
    for name, arguments in _calls(tokens):
        least, most = _NUMBERS_OF_ARGUMENTS.get(name.text.upper(), (0, len(arguments)))
        if not least <= len(arguments) <= most:
            reason = f"takes {most} argument{'' if most == 1 else 's'}, got {len(arguments)}"
            wrong = arguments[most] if len(arguments) > most else name
            raise refuse("wrong_arguments", function=name.text.upper(), reason=reason, position=wrong.start + 1)
        forgotten = _forgotten(dialect, name.text.upper(), min(len(arguments), MOST_ASKED))
        if forgotten:
            most = min(len(arguments), MOST_ASKED) - len(forgotten)
            reason = f"takes {most} argument{'' if most == 1 else 's'} here, got {len(arguments)}"
            place = arguments[forgotten[0]].start + 1
            raise refuse("wrong_arguments", function=name.text.upper(), reason=reason, position=place)


def _calls(tokens: list[Token]) -> Iterator[tuple[Token, list[Token]]]:
    """Yield each name before a bracket, with the first tokens of its expressions, if several or a listed number."""
    open_: list[tuple[Token | None, list[Token]]] = []
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        begins = before is not None and before.token_type in (*_OPEN, TokenType.COMMA)
        if open_ and begins and token.token_type not in _CLOSE:
            open_[-1][1].append(token)
        if token.token_type in _OPEN:
            open_.append((before if token.token_type is TokenType.L_PAREN else None, []))
        elif token.token_type in _CLOSE and open_:
            name, arguments = open_.pop()
            if name is not None and (len(arguments) > 1 or name.text.upper() in _NUMBERS_OF_ARGUMENTS):
                yield name, arguments


@lru_cache(maxsize=4096)
def _forgotten(dialect: str, name: str, count: int) -> tuple[int, ...]:
    """Return the positions of the arguments that are not in the tree of name(a0, a1, ...); empty if that is not valid SQL."""
    parser = parser_dialect(dialect).parser_class
    if name not in parser.FUNCTIONS and name not in parser.FUNCTION_PARSERS:
        return ()  # kept whole, as exp.Anonymous
    text = f"SELECT {name}({', '.join(f'a{index}' for index in range(count))})"
    try:
        tree = parse_text(text, dialect)
    except SqlglotError:
        return ()
    # Names may end as columns, units of time (Var) or types (CONVERT).
    names_in_tree = {word for node in tree.walk() for word in _words_of(node)}
    return tuple(index for index in range(count) if f"a{index}" not in names_in_tree)


def _words_of(node: exp.Expr) -> Iterator[str]:
    yield from (value.lower() for value in node.args.values() if isinstance(value, str))
