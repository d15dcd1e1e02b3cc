"""What the parser would repair without a word: a bracket that is not closed, `SELECT , a`, `GROUP BY` before nothing,
`BETWEEN 2 3`, `IN ('a' 'b')`, `FROM visits GROUP`. Engines refuse such a text, and what it means is a guess: nothing is
charged for a slip.

No text that an engine reads is refused here: a comma may stand behind the last item of a list, as in DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors.exceptions import refuse
from dpsql.sql.lexer import place, quoting_hint, word

_CLOSED_BY = {
    TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET, TokenType.L_BRACE: TokenType.R_BRACE,
    TokenType.CASE: TokenType.END,
}  # fmt: skip
_CLOSING = frozenset(_CLOSED_BY.values())
_OPENING = frozenset({
    TokenType.SELECT, TokenType.FROM, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.PARTITION_BY, TokenType.WHERE,
    TokenType.HAVING, TokenType.QUALIFY, TokenType.ON, TokenType.JOIN, TokenType.AND, TokenType.OR, TokenType.NOT,
    TokenType.BETWEEN, TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.EQ, TokenType.NEQ, TokenType.LT,
    TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.PLUS, TokenType.DASH, TokenType.SLASH, TokenType.DPIPE,
    TokenType.LIKE, TokenType.ILIKE, TokenType.IN,
})  # fmt: skip
"""Words and signs behind which an expression or a table stands."""
_ENDING = frozenset({
    TokenType.COMMA, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY,
    TokenType.ORDER_BY, TokenType.LIMIT, TokenType.UNION, TokenType.INTERSECT, *_CLOSING,
})  # fmt: skip
"""What stands behind a whole expression, and begins none."""
_NEVER_TOGETHER = {
    *product((*_OPENING, TokenType.INTO, TokenType.OVER), _ENDING), *product((TokenType.COMMA, *_CLOSED_BY), (TokenType.COMMA,)),
    *product((TokenType.ALIAS, TokenType.DISTINCT), (TokenType.COMMA, TokenType.R_PAREN)), (TokenType.FROM, TokenType.FOR),
    (TokenType.IN, TokenType.AND), (TokenType.IN, TokenType.OR), (TokenType.ALIAS, TokenType.NUMBER),
    *product((TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA, TokenType.WITH), (TokenType.ALIAS,)),
    (TokenType.FROM, TokenType.DOT), (TokenType.JOIN, TokenType.DOT),
}  # fmt: skip
_LITERALS = (TokenType.STRING, TokenType.NUMBER)
_TWICE = (TokenType.GROUP_BY, TokenType.ORDER_BY)
_NO_COLUMNS = (TokenType.SELECT, TokenType.DISTINCT, TokenType.FROM)
_PARTNERS = {TokenType.BETWEEN: TokenType.AND, TokenType.WHEN: TokenType.THEN}
"""Words that wait for another one at the same level."""
_REFUSED_BEFORE = {
    TokenType.BETWEEN: {*_ENDING, *_PARTNERS, TokenType.THEN, TokenType.ELSE},
    TokenType.WHEN: {*_ENDING, TokenType.WHEN, TokenType.ELSE} - {TokenType.FROM},  # IS DISTINCT FROM
}
"""What does not stand between a word and its partner."""
_CONDITIONS = (TokenType.WHERE, TokenType.HAVING, TokenType.QUALIFY)
_ORDER = {
    TokenType.SELECT: 0, TokenType.FROM: 0, TokenType.UNION: 0, TokenType.INTERSECT: 0, TokenType.EXCEPT: 0, TokenType.WHERE: 1,
    TokenType.GROUP_BY: 2, TokenType.HAVING: 3, TokenType.QUALIFY: 4, TokenType.WINDOW: 4, TokenType.ORDER_BY: 5,
    TokenType.LIMIT: 6, TokenType.OFFSET: 6, TokenType.FETCH: 6, TokenType.FOR: 0,
}  # fmt: skip
"""The order in which clauses stand; a word with 0 begins another list of them."""
_DIRECTIONS = (TokenType.ASC, TokenType.DESC)
_NO_FUNCTION = {*_OPENING, TokenType.COMMA} - {TokenType.IN}
_NO_WINDOW = (*_ENDING, TokenType.ALIAS, None)
_NO_NAMES = frozenset({
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric", "authorization", "binary", "both",
    "case", "cast", "check", "collate", "collation", "column", "concurrently", "constraint", "create", "cross", "default",
    "deferrable", "desc", "distinct", "do", "else", "end", "except", "false", "fetch", "for", "foreign", "freeze", "from",
    "full", "group", "having", "ilike", "in", "initially", "inner", "intersect", "into", "is", "isnull", "join", "lateral",
    "leading", "left", "like", "limit", "natural", "not", "notnull", "null", "offset", "on", "only", "or", "order", "outer",
    "overlaps", "placing", "primary", "references", "returning", "right", "select", "similar", "some", "symmetric", "table",
    "tablesample", "then", "to", "trailing", "true", "union", "unique", "using", "variadic", "verbose", "when", "where",
    "window", "with",
})  # fmt: skip
"""Words that neither DuckDB nor PostgreSQL reads as the name of a table without quotes."""
_NO_LABELS = frozenset({
    "array", "as", "create", "fetch", "filter", "for", "from", "group", "having", "into", "limit", "offset", "on", "order",
    "over", "overlaps", "returning", "to", "where", "window", "with", "within", "without",
})  # fmt: skip
"""Words of clauses and types that neither reads as the name of an output without AS before them; Spark reads `COUNT(*) month`."""
_ALL_COLUMNS = [TokenType.L_PAREN, TokenType.STAR, TokenType.R_PAREN]


def check_parts(tokens: Sequence[Token], sql: str) -> None:
    """Refuse (syntax) a text that lacks a bracket, an item between commas, the part behind a word, or a word's partner."""
    kinds = _kinds(tokens)
    _check_neighbours(tokens, kinds, sql)
    _check_nesting(tokens, kinds)
    _check_clauses(tokens, kinds)


def check_names(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Refuse (syntax) the first word of a clause where it would be read as a name: `FROM visits GROUP`."""
    for node in tree.find_all(exp.TableAlias, exp.Alias):
        name, words = (node.this, _NO_NAMES) if isinstance(node, exp.TableAlias) else (node.args["alias"], _NO_LABELS)
        if not isinstance(name, exp.Identifier) or name.quoted or name.name.lower() not in words:
            continue
        start = place(name)
        for before, token in pairwise(tokens):
            if token.start + 1 == start and (words is _NO_NAMES or before.token_type is not TokenType.ALIAS):
                written = "in double quotes" if words is _NO_NAMES else "behind AS"
                raise _slip(f"{token.text} is no name here; {written} it is", token)


def _check_neighbours(tokens: Sequence[Token], kinds: Sequence[TokenType], sql: str) -> None:
    """Refuse what never stands side by side in a text that engines read."""
    pivots = TokenType.PIVOT in kinds  # its USING has aggregates
    before = TokenType.SEMICOLON
    after = [*kinds[1:], None, None, None]
    behind = [*tokens[1:], *tokens[-1:]]
    for token, next_, kind, second, third, fourth in zip(
        tokens, behind, kinds, after, after[1:], after[2:], strict=False
    ):
        last = second is None and (kind in _OPENING or kind in (TokenType.ALIAS, TokenType.TABLE_SAMPLE))
        if last or (kind, second) in _NEVER_TOGETHER or (kind, second, third) == _NO_COLUMNS:
            raise _slip(f"nothing stands behind {token.text}", token, quoting_hint(tokens))
        if [second, third, fourth] == _ALL_COLUMNS and kind in _NO_FUNCTION:
            raise _slip("no function stands before (*)", token)
        if kind in _DIRECTIONS and second in _DIRECTIONS:
            raise _slip("an order is either ASC or DESC", token)
        if kind is TokenType.FETCH and _is_cut(tokens[tokens.index(token) + 1 :][:5]):
            raise _slip("it is written as FETCH FIRST 10 ROWS ONLY", token)
        if kind is TokenType.USING and not pivots and (second is not TokenType.L_PAREN or third is TokenType.R_PAREN):
            _check_using(token, next_)
        if kind is TokenType.VAR and second in _TWICE and word(token) in ("GROUP", "ORDER"):
            raise _slip(f"{token.text} stands twice", token)
        if kind is TokenType.USING and pivots and (second is None or second in _ENDING):
            raise _slip("no aggregate stands behind USING", token)
        if kind is TokenType.OVER and before is TokenType.R_PAREN and second in _NO_WINDOW:
            raise _slip("a window in brackets, or the name of one, stands behind OVER", token)
        if kind is TokenType.WINDOW and third is not TokenType.ALIAS:
            raise _slip("a window is written as WINDOW w AS (...)", token)
        before = kind
        if kind in _LITERALS and second in _LITERALS:
            _check_literals(token, next_, sql)


def _is_cut(behind: Sequence[Token]) -> bool:
    """Return whether what stands behind FETCH is not FIRST or NEXT, ROW or ROWS, and ONLY or WITH TIES."""
    words = list(map(word, behind))
    return (
        words[:1] not in (["FIRST"], ["NEXT"])
        or {"ROW", "ROWS"}.isdisjoint(words)
        or {"ONLY", "TIES"}.isdisjoint(words)
    )


def _check_nesting(tokens: Sequence[Token], kinds: Sequence[TokenType]) -> None:
    """Refuse brackets that are not closed or not open, and BETWEEN without AND or WHEN without THEN within them."""
    open_: list[Token] = []
    waiting: list[list[Token]] = [[]]
    """For the text itself and each open bracket, the words that wait for their partners."""
    for token, kind, second in zip(tokens, kinds, [*kinds[1:], None], strict=True):
        first = waiting[-1][-1] if waiting[-1] else None
        if first is not None and (kind in _REFUSED_BEFORE[first.token_type] or second is None):
            raise _slip(f"{first.text} has no {_PARTNERS[first.token_type].name}", first)
        if kind in _CLOSED_BY:
            open_.append(token)
            waiting.append([])
        elif kind in _CLOSING:
            if not open_ or _CLOSED_BY[open_.pop().token_type] is not kind:
                raise _slip(f"nothing is open here that {token.text} would close", token)
            waiting.pop()
        elif kind in _PARTNERS:
            waiting[-1].append(token)
        elif first is not None and kind is _PARTNERS[first.token_type]:
            waiting[-1].pop()
    if open_:
        raise _slip(f"this {'CASE has no END' if word(open_[-1]) == 'CASE' else 'bracket is not closed'}", open_[-1])


def _check_clauses(tokens: Sequence[Token], kinds: Sequence[TokenType]) -> None:
    """Refuse clauses in another order, and a comma in a condition outside of brackets: `WHERE a, b`, `HAVING a, ORDER BY b`."""
    last: list[Token | None] = [None]
    """For the text itself and each open bracket, the word of the last clause in it."""
    for token, kind in zip(tokens, kinds, strict=True):
        clause = last[-1]
        if kind in _CLOSED_BY:
            last.append(None)
        elif kind in _CLOSING:
            last.pop()
        elif kind in _ORDER:
            if clause is not None and 0 < _ORDER[kind] < _ORDER[clause.token_type]:
                raise _slip(f"{token.text} stands before {clause.text}, not behind it", token)
            last[-1] = token
        elif kind is TokenType.COMMA and clause is not None and clause.token_type in _CONDITIONS:
            raise _slip("conditions are joined by AND or OR, not by a comma", token)


def _kinds(tokens: Sequence[Token]) -> list[TokenType]:
    """Return the kinds of tokens. A word behind a dot or AS is a name, and so are a sign in OPERATOR(...) and WITH OFFSET."""
    kinds = [TokenType.SEMICOLON, TokenType.SEMICOLON]
    for token in tokens:
        kind = token.token_type
        named = kinds[-1] in (TokenType.DOT, TokenType.ALIAS) or kinds[-2:] == [TokenType.OPERATOR, TokenType.L_PAREN]
        named = named or (kind is TokenType.OFFSET and kinds[-1] is TokenType.WITH)
        is_word = kind is not TokenType.STRING and token.text.isidentifier()
        kinds.append(TokenType.IDENTIFIER if named and (is_word or kind in _OPENING) else kind)
    return kinds[2:]


def _check_literals(first: Token, second: Token, sql: str) -> None:
    """Refuse two values without anything between them. As in the standard, texts on lines of their own are one."""
    texts = first.token_type is second.token_type is TokenType.STRING
    if not (texts and "\n" in sql[first.end + 1 : second.start]):
        raise _slip("a comma or an operator is missing between these values", second)


def _check_using(using: Token, second: Token) -> None:
    """Refuse columns without brackets. USING SAMPLE is another clause."""
    if word(second) != "SAMPLE":
        raise _slip("the columns behind USING stand in brackets, as in USING (id)", using)


def _slip(detail: str, token: Token, hint: str | None = None) -> Exception:
    return refuse("syntax", detail=detail, position=token.start + 1, hint=hint)
