"""Lexer: the only place where a text becomes tokens. Each text is lexed once for each dialect whose parser reads it, and its
tokens are passed on with it: they are cut into statements, read as commands, and parsed.

A `Piece` is passed on: one statement with its tokens, whose positions count from the start of that statement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from dpsql.errors.exceptions import Error, refuse
from dpsql.storage.records import dataclass, field

DIALECT = "duckdb"
"""Dialect of analysts' queries."""
POSTGRESQL = "postgres"
"""Dialect of clients' catalog queries."""

_DOLLAR_QUOTE = re.compile(r"\$(?:[A-Za-z_]\w*)?\$")
_OPENING = re.compile(r"[eE]?'|\"|" + _DOLLAR_QUOTE.pattern)
_BLANKS = re.compile(r"(?:\s+|--[^\r\n]*)*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class Piece:
    """One statement without its semicolon, cut out of a text. `line`: the text's line on which it starts (from 1); `offset`: the
    text's position of its first character (from 0); `dialect`: the dialect in which it was lexed first."""

    sql: str
    line: int = 1
    offset: int = field(default=0, compare=False)
    dialect: str = field(default=DIALECT, compare=False)
    _lexed: dict[str, Sequence[Token]] = field(default_factory=dict, compare=False, repr=False)

    def tokens(self, dialect: str | None = None) -> Sequence[Token]:
        """Return the tokens in a dialect (None: the one in which it was lexed first); the caller must not change them.

        Refuses (text_unfinished, syntax) a text that cannot be lexed to its end.
        """
        dialect = dialect or self.dialect
        if dialect not in self._lexed:
            lexed = lex(self.sql, dialect)
            if lexed.stop is not None:
                raise lexed.refusal()
            self._lexed[dialect] = lexed.tokens
        return self._lexed[dialect]

    def part(self, start: int, stop: int) -> Piece:
        """Return the tokens from `start` up to `stop` (excluded) as a piece; line and offset count from this one's start."""
        tokens = self.tokens()[start:stop]
        return piece_of(self.sql, tokens, self.dialect) if tokens else Piece("", 1, len(self.sql), self.dialect)

    def source(self, token: Token) -> str:
        """Return the text of a token as written, with its quotes."""
        return self.sql[token.start : token.end + 1]

    def forget(self) -> None:
        """Release the tokens; the text is lexed again when they are needed."""
        self._lexed.clear()


SqlText = str | Piece
"""Text of a statement, possibly lexed already."""


def as_piece(text: SqlText) -> Piece:
    """Return a text as a piece; a piece is returned unchanged."""
    return text if isinstance(text, Piece) else Piece(text)


_CLAIMS = (
    (re.compile(r"(?:/\*.*\*/ )?Metabase:: userID: (\d{1,18})\b"), "metabase-"),
    (re.compile(r"Looker Query Context '\{\"user_id\":(\d{1,18})\b"), "looker-"),
    (re.compile(r"Username: ([\w.@+-]{1,100}),"), ""),  # Redash
    (re.compile(r"\[SQL LAB\] ([\w.@+-]{1,100}) "), ""),  # the SQL_QUERY_MUTATOR that Superset's configuration suggests
    (re.compile(r"dp\.on_behalf_of\s*[=:]\s*([\w.@+-]{1,100})\s*$"), ""),
)
"""Comments with which BI tools begin the texts that they send, and what stands before the names of their people."""


def person_in_comment(piece: Piece) -> str | None:
    """Return the person for whom a BI tool says, in the first comment of a text, that it asks; None if it does not say so."""
    if not piece._lexed and "--" not in piece.sql and "/*" not in piece.sql:
        return None
    try:
        comments = next((token.comments for token in piece.tokens()[:1]), [])
    except Error:
        return None
    for form, prefix in _CLAIMS if comments else ():
        if match := form.match(comments[0].strip()):
            return prefix + match[1]
    return None


def lexed_piece(text: str, tokens: Sequence[Token]) -> Piece:
    """Return a whole text of queries as a piece with the given tokens."""
    return Piece(text, _lexed={DIALECT: tokens})


def piece_of(text: str, tokens: Sequence[Token], dialect: str) -> Piece:
    """Return the piece of `text` from the first to the last of `tokens`, of which there is at least one."""
    start, end = tokens[0].start, tokens[-1].end + 1
    return Piece(text[start:end], text.count("\n", 0, start) + 1, start, dialect, {dialect: _moved(tokens, start)})


def _moved(tokens: Sequence[Token], by: int) -> Sequence[Token]:
    """Return the tokens with positions that count from character `by`. Lines and columns stay: they only distinguish tokens."""
    if not by:
        return tokens
    return [Token(t.token_type, t.text, t.line, t.col, t.start - by, t.end - by, t.comments) for t in tokens]


def word(token: Token) -> str:
    """Return the word of a token in upper case; empty for strings and quoted names."""
    return "" if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) else token.text.upper()


@dataclass(frozen=True)
class Lexed:
    """The tokens of a text. `stop`: the position of the first character that could not be lexed, None if all could;
    `unfinished`: what is opened there and not closed (string, quoted name or comment), or empty."""

    tokens: list[Token]
    stop: int | None = None
    unfinished: str = ""

    def refusal(self) -> Exception:
        """Return the refusal of a text that could not be lexed to its end: text_unfinished or syntax, with the position."""
        assert self.stop is not None
        if self.unfinished:
            return refuse("text_unfinished", what=self.unfinished, position=self.stop + 1)
        return refuse("syntax", detail="no word, number or sign of SQL begins here", position=self.stop + 1)


def lex(text: str, dialect: str = DIALECT) -> Lexed:
    """Lex a text. It never raises, because a prompt asks for more input when something is unfinished."""
    lexer = _lexer(dialect, _DOLLAR_QUOTE.search(text) is not None)(dialect=parser_dialect(dialect))
    try:
        return Lexed(lexer.tokenize(text))
    except SqlglotError:
        tokens = lexer.tokens
    stop = tokens[-1].end + 1 if tokens else 0
    while True:
        blanks = _BLANKS.match(text, stop)
        stop = blanks.end() if blanks else stop
        if not text.startswith("/*", stop):
            break
        after = _after_comment(text, stop + 2)
        if after is None:
            return Lexed(tokens, stop, "comment")
        stop = after
    opening = _OPENING.match(text, stop)
    unfinished = "" if opening is None else "quoted name" if opening.group() == '"' else "string"
    return Lexed(tokens, stop, unfinished)


def _after_comment(text: str, index: int) -> int | None:
    """Return the position after a comment, None if it is not closed. Comments nest, as in PostgreSQL and DuckDB."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, index):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return None


@cache
def parser_dialect(name: str) -> sqlglot.Dialect:
    """Return a dialect, created once; sqlglot would create it again at every use of its name."""
    return sqlglot.Dialect.get_or_raise(name)


@cache
def _lexer(dialect: str, dollar_quotes: bool) -> type[Tokenizer]:
    """Return the lexer of a dialect. COMMANDS is empty, so that the text after words like FETCH and EXPLAIN is lexed instead of
    taken as one string. Without `dollar_quotes` (the text has no $$ or $name$), it knows no dollar-quoted strings: else $1+$2
    would begin one."""
    usual = parser_dialect(dialect).tokenizer_class
    changes: dict[str, object] = {"COMMANDS": set[TokenType]()}
    if not dollar_quotes:
        changes["HEREDOC_STRINGS"] = []
        changes["SINGLE_TOKENS"] = {**usual.SINGLE_TOKENS, "$": TokenType.PARAMETER}
    return type("Lexer", (usual,), changes)


def place(node: exp.Expr | None) -> int | None:
    """Return the position (from 1) of the first character of `node` in the text; None where sqlglot has not recorded it."""
    if node is None:
        return None
    starts = [start for part in node.walk() if (start := part.meta_get("start")) is not None]
    return min(starts) + 1 if starts else None


OWN_NAMES = "dp#"
"""Text in every name that dpsql gives to a part of a query. No query may use such names, so that they are unambiguous."""
_FOLLOWED_BY = {
    **dict.fromkeys(
        ("UNION", "INTERSECT", "EXCEPT"), ("ALL", "DISTINCT", "SELECT", "WITH", "FROM", "VALUES", "BY", "TABLE", "(")
    ),
    "ORDER": ("BY",),
    "GROUP": ("BY",),
}
"""Words of SQL that are also names of columns in real tables, and what may follow them where they are not a column."""
_BEHIND_A_COLUMN = (",", ")", "=", "<", ">", "FROM", "WHERE", "AND", "GROUP BY", "ORDER BY", "AS", "IS", "IN", "NOT")
"""What follows LIMIT only where it is a column."""


def quoting_hint(tokens: Sequence[Token]) -> str | None:
    """Return how to write the first column named like a word of SQL, or clauses behind PIVOT; None for other texts."""
    for token, behind in zip(tokens, [*tokens[1:], None], strict=True):
        name, next_ = word(token), None if behind is None else behind.text.upper()
        if token.text == "`":
            return 'a name with blanks, or that is a word of SQL, is written in double quotes: "name"'
        column = next_ in _BEHIND_A_COLUMN if name == "LIMIT" else next_ not in _FOLLOWED_BY.get(name, (next_,))
        if column:
            return f'{name} is a word of SQL; a column of that name is written in double quotes: "{token.text}"'
    around = "clauses stand around it: SELECT * FROM (PIVOT t ON x USING SUM(y) GROUP BY z) ORDER BY z"
    return around if word(tokens[0]) in ("PIVOT", "UNPIVOT") else None


# --- cut of a text into statements at the semicolons that are tokens, not at those in strings, names and comments -----


@dataclass(frozen=True)
class Script:
    """A text cut into statements. `statements`: those that end with a semicolon; `rest`: the text after the last one, or None.

    `unfinished`: what was opened and not closed (string, quoted name, comment), or empty; `position`: where (from 1).
    """

    statements: tuple[Piece, ...]
    rest: Piece | None
    unfinished: str = ""
    position: int = 0

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Return all statements, the last one with or without its semicolon."""
        return self.statements if self.rest is None else (*self.statements, self.rest)


def read_script(text: str, dialect: str = DIALECT) -> Script:
    """Cut `text` into statements. It never raises, because a prompt asks for more input when something is unfinished."""
    lexed = lex(text, dialect)
    statements: list[Piece] = []
    waiting: list[Token] = []
    for token in lexed.tokens:
        if token.token_type is not TokenType.SEMICOLON:
            waiting.append(token)
        elif waiting:
            statements.append(piece_of(text, waiting, dialect))
            waiting = []
    if lexed.stop is None:
        return Script(tuple(statements), piece_of(text, waiting, dialect) if waiting else None)
    start = waiting[0].start if waiting else lexed.stop
    rest = Piece(text[start:], text.count("\n", 0, start) + 1, start, dialect)
    return Script(tuple(statements), rest, lexed.unfinished, lexed.stop + 1 if lexed.unfinished else 0)


def split_file(text: str) -> tuple[Piece, ...]:
    """Return all statements of a file; the last one needs no semicolon. Refuses (text_unfinished) an unfinished text."""
    script = read_script(text)
    if script.unfinished:
        raise refuse("text_unfinished", what=script.unfinished, position=script.position).placed_in(text)
    return script.pieces


# --- values of a command line, written into a text as literals ----------------------------------------------------------

_BEFORE_A_COLON = re.compile(r"""[\w'"`$)\]}]""")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")


def with_values(text: str, values: Mapping[str, str]) -> tuple[str, set[str]]:
    """Return a text with `:name` as a number or else a text, `:'name'` as a text, `:"name"` as a name; and the names replaced.

    A value is one token or a number in brackets, whatever it holds, so it cannot change the statement around it. Names without
    a value stay, and so does a colon directly behind a word, a text or a bracket, which is SQL's own: a[1:n], {'a':n}.
    """
    parts: list[str] = []
    names: set[str] = set()
    end = 0
    for colon, token in pairwise(lex(text).tokens):
        value = values.get(token.text)
        if colon.token_type is not TokenType.COLON or token.start != colon.end + 1 or value is None:
            continue
        if _BEFORE_A_COLON.match(text, max(0, colon.start - 1)):
            continue
        opening = text[token.start]
        quote = opening if opening in "'\"" else "" if _NUMBER.fullmatch(value) else "'"
        literal = (
            quote + value.replace(quote, 2 * quote) + quote if quote else f"({value})" if value[0] == "-" else value
        )
        parts += [text[end : colon.start], literal]
        names.add(token.text)
        end = token.end + 1
    return "".join(parts) + text[end:], names
