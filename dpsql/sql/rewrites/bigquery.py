"""BigQuery's differential privacy clause and the named arguments of its aggregates, removed from the tokens of a query.

`SELECT WITH DIFFERENTIAL_PRIVACY [OPTIONS (name = value, ...)] ...` gives options for one query, and
`AVG(x, contribution_bounds_per_row => (low, high))` clamps each value: AVG(clamp(x, low, high)). The bounds of
`SUM(x, contribution_bounds_per_group => (low, high))` are stored in the slot PER_GROUP of the aggregate's node. Only the binder
of aggregates over protected rows reads that slot; everywhere else a filled slot that is not expected is refused.
`report_format => 'JSON'` shows an aggregate as the text of an object with its error bar. SELECT WITH ANONYMIZATION is the older
spelling of all of this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors.exceptions import refuse
from dpsql.sql.lexer import place, word
from dpsql.sql.rewrites.postgresql import LABEL
from dpsql.sql.rewrites.spellings import equal_parts

PER_ROW = "CONTRIBUTION_BOUNDS_PER_ROW"
PER_GROUP = "contribution_bounds_per_group"
"""Slot of an aggregate's node for the bounds on one unit's contribution to each group."""
_FUNCTIONS = {PER_ROW: "clamp", PER_GROUP.upper(): PER_GROUP}
REPORT = "dp#report"
"""Function that stands around an aggregate with report_format => 'JSON'."""
Options = tuple[tuple[str, str], ...]
_EQUALS = (TokenType.EQ, TokenType.FARROW)
_OPEN, _CLOSE = TokenType.L_PAREN, TokenType.R_PAREN


def in_plain_sql(tokens: list[Token]) -> tuple[list[Token], Options]:
    """Return the tokens without the clause and without named arguments, and the options as texts. Refuses wrong syntax and
    unknown named arguments. Bounds per unit and group become calls for `with_group_bounds`."""
    if _WORDS.isdisjoint([token.text.upper() for token in tokens]):
        return tokens, ()
    tokens = _in_newer_words(tokens)
    options: Options = ()
    while True:
        fewer, more = _privacy_options(tokens)
        if more and options and sorted(more) != sorted(options):
            detail = "OPTIONS hold for the whole statement, and differ between its SELECTs"
            raise refuse("syntax", detail=detail, hint="write the same options everywhere, or SET them before")
        options = options or more
        if len(fewer) == len(tokens):
            break
        tokens = fewer
    _check_place(tokens)
    while (arrow := next((n for n, token in enumerate(tokens) if _names_bounds(tokens[n - 1], token)), 0)) > 0:
        tokens = _clamped(tokens, arrow)
    return tokens, options


_OF_INTERVALS = frozenset({"YEARS", "MONTHS", "WEEKS", "DAYS", "HOURS", "MINS", "SECS"})
"""Named arguments of make_interval, which the parser keeps."""


def _names_bounds(name: Token, arrow: Token) -> bool:
    return arrow.token_type is TokenType.FARROW and word(name) not in _OF_INTERVALS


_OLDER = {
    "ANON_COUNT": "COUNT", "ANON_SUM": "SUM", "ANON_AVG": "AVG", "ANON_VAR_POP": "VAR_POP",
    "ANON_STDDEV_POP": "STDDEV_POP", "ANON_PERCENTILE_CONT": "PERCENTILE_CONT", "ANON_QUANTILES": "APPROX_QUANTILES",
}  # fmt: skip
"""Aggregates of GoogleSQL's SELECT WITH ANONYMIZATION, and their names under WITH DIFFERENTIAL_PRIVACY."""
_OF_GROUPS = ("COUNT", "SUM", "AVG")
"""Aggregates of which CLAMPED BETWEEN bounds what a unit adds to a group; of others it bounds each row."""
_REPORT = "report_format"
_WORDS = frozenset({*_OLDER, "ANONYMIZATION", "DIFFERENTIAL_PRIVACY", "OPTIONS", "=>"})
"""Words of which every text has one that this module changes or refuses."""


def _in_newer_words(tokens: list[Token]) -> list[Token]:
    """Return SELECT WITH ANONYMIZATION and its aggregates as SELECT WITH DIFFERENTIAL_PRIVACY has them: ANON_SUM(x CLAMPED
    BETWEEN a AND b WITH REPORT (FORMAT = JSON)) as SUM(x, contribution_bounds_per_group => (a, b), report_format => 'JSON')."""
    newer, inside = list[Token](), list[tuple[str, int]]()
    depth = index = 0
    while index < len(tokens):
        token = tokens[index]
        words = [word(each) for each in tokens[index : index + 6]]
        depth += (token.token_type is _OPEN) - (token.token_type is _CLOSE)
        if inside and depth < inside[-1][1]:
            inside.pop()
        if words[0] in _OLDER and words[1:2] == ["("]:
            inside.append((_OLDER[words[0]], depth + 1))
            token = _like(token, token.token_type, _OLDER[words[0]])
        elif words[0] == "ANONYMIZATION" and index > 0 and word(tokens[index - 1]) == "WITH":
            token = _like(token, token.token_type, "DIFFERENTIAL_PRIVACY")
        elif inside and inside[-1][1] == depth and words[:2] == ["CLAMPED", "BETWEEN"]:
            index, bounds = _clamped_between(tokens, index)
            name = PER_GROUP if inside[-1][0] in _OF_GROUPS else PER_ROW.lower()
            newer += [*_named(token, name), *bounds]
            continue
        elif inside and inside[-1][1] == depth and words[:2] == ["WITH", "REPORT"]:
            is_written = words[2:5] == ["(", "FORMAT", "="]
            format_ = tokens[index + 5].text if is_written and index + 5 < len(tokens) else "PROTO"
            index += 7 if is_written else 2
            newer += [*_named(token, _REPORT), _like(token, TokenType.STRING, format_)]
            continue
        newer.append(token)
        index += 1
    return newer


def _clamped_between(tokens: list[Token], start: int) -> tuple[int, list[Token]]:
    """Return where CLAMPED BETWEEN a AND b ends, and the tokens of (a, b)."""
    end = start + 2
    while end < len(tokens) and tokens[end].token_type is not _CLOSE and word(tokens[end]) != "WITH":
        end += 1
    between = [
        _like(token, TokenType.COMMA, ",") if word(token) == "AND" else token for token in tokens[start + 2 : end]
    ]
    return end, [_like(tokens[start], _OPEN, "("), *between, _like(tokens[start], _CLOSE, ")")]


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)


def _named(token: Token, name: str) -> list[Token]:
    """Return the tokens of `, name =>`, positioned at `token`."""
    kinds = ((TokenType.COMMA, ","), (TokenType.VAR, name), (TokenType.FARROW, "=>"))
    return [_like(token, kind, text) for kind, text in kinds]


def _check_place(tokens: list[Token]) -> None:
    """Refuse (syntax) OPTIONS (name = value) and OPTIONS (name => value) in any place other than after SELECT."""
    for options, bracket, name, equals in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        if word(options) == "OPTIONS" and bracket.token_type is _OPEN and equals.token_type in _EQUALS:
            option = name.text.lower()
            hint = f"write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({option} = ...) ..., or SET dp.{option} = ... before it"
            raise refuse("syntax", detail="OPTIONS stands in another place", hint=hint, position=options.start + 1)


def with_group_bounds(tree: exp.Query) -> exp.Query:
    """Return the tree with bounds per unit and group moved to the slot PER_GROUP of the aggregate that contains them.

    Refuses (group_bounds) such bounds in anything other than SUM, COUNT and AVG."""
    for node in list(tree.find_all(exp.Anonymous)):
        if str(node.this).lower() != PER_GROUP:
            continue
        aggregate = node.parent
        if not isinstance(aggregate, (exp.Sum, exp.Avg, exp.Count)) or len(node.expressions) != 3:
            hint = "write SUM(x, contribution_bounds_per_group => (0, 100)), or the like with COUNT or AVG"
            raise refuse("group_bounds", reason="they stand in SUM, COUNT and AVG", way=hint, position=place(node))
        value, low, high = node.expressions
        aggregate.set("this", value)
        aggregate.set(PER_GROUP, exp.Tuple(expressions=[low, high]))
    return tree


def with_reports(query: exp.Query, confidence: Fraction) -> exp.Query:
    """Return the query with each report as the text of an object of JSON: the value, and the ends of its error bar. Fields of it
    may be named (`.result.noise_confidence_interval.lower_bound`); the objects of PROTO have that message's fields."""
    for node in list(query.find_all(exp.Anonymous)):
        if node.this != REPORT:
            continue
        whole: exp.Expr = node.parent if isinstance(node.parent, exp.Filter) else node
        called, form = node.expressions
        value = exp.Filter(this=called, expression=whole.expression) if whole is not node else called
        if isinstance(whole.parent, exp.Window):
            raise refuse("report_format", position=place(node))
        word_ = called.sql_name() if isinstance(called, exp.Func) else called.name
        whole, fields = _along(whole, _fields_of(value, form.name, confidence))
        if not isinstance(fields, exp.Expr) and _taken_around(whole, fields):
            continue
        written = _as_json(fields)
        written.meta[LABEL] = (whole.expression.name if isinstance(whole, exp.Dot) else word_).lower()
        whole.replace(written)
    return query


_Fields = exp.Expr | Mapping[str, "_Fields"] | Sequence["_Fields"]


def _fields_of(value: exp.Expr, form: str, confidence: Fraction) -> _Fields:
    """Return the fields of a report; one of APPROX_QUANTILES is a list."""
    listed = [_with_interval(part, form, confidence, "float_value") for part in equal_parts(value)]
    if form == "PROTO":
        return {"values": {"values": listed}} if listed else {"value": _with_interval(value, form, confidence, _NUMBER)}
    return {"result": listed or _with_interval(value, form, confidence, _NUMBER)}


def _with_interval(value: exp.Expr, form: str, confidence: Fraction, name: str) -> _Fields:
    low, high = (exp.Anonymous(this=f"dp_interval_{end}", expressions=[value.copy()]) for end in ("low", "high"))
    level = exp.Literal.number(str(float(confidence)))
    interval = {"confidence_level": level, "lower_bound": low, "upper_bound": high}
    return {"noise_confidence_interval": interval, name if form == "PROTO" else "value": value}


def _along(node: exp.Expr, fields: _Fields) -> tuple[exp.Expr, _Fields]:
    """Return the whole expression that names a part of `fields`, the value of `node`, and that part."""
    while True:
        whole, inner = node.parent, None
        if isinstance(whole, exp.Dot) and isinstance(fields, Mapping):
            inner = fields.get(whole.expression.name)
        elif isinstance(whole, exp.Bracket) and isinstance(fields, Sequence):
            number = whole.expressions[0]
            index = int(number.name) if isinstance(number, exp.Literal) and number.is_int else 0
            inner = fields[index - 1] if 1 <= index <= len(fields) else None
        elif isinstance(whole, exp.Anonymous) and str(whole.this).upper() in _UNCHANGED and len(whole.expressions) == 1:
            is_list = str(whole.this).upper() == "JSON_QUERY_ARRAY"
            inner = fields if isinstance(fields, Sequence if is_list else exp.Expr) else None
        if whole is None or inner is None:
            return node, fields
        node, fields = whole, inner


_UNCHANGED = ("JSON_QUERY_ARRAY", "DOUBLE", "FLOAT64", "INT64")
"""Functions that take a list or a number out of JSON."""


def _taken_around(whole: exp.Expr, fields: _Fields) -> bool:
    """Return whether the SELECT around takes single numbers of a report, a column of its subquery in FROM, alone; each is then a
    column of the subquery."""
    item = whole.parent
    inner = item.parent if isinstance(item, exp.Alias) else None
    if (
        not isinstance(item, exp.Alias)
        or not isinstance(inner, exp.Select)
        or not isinstance(inner.parent, exp.Subquery)
    ):
        return False
    around = inner.parent.parent_select
    if around is None or around.is_star or not isinstance(inner.parent.parent, (exp.From, exp.Join)):
        return False
    columns = [column for column in around.find_all(exp.Column) if column.name == item.alias]
    taken = [_along(column, fields) for column in columns if column.parent_select is around]
    numbers = [(node, part) for node, part in taken if isinstance(part, exp.Expr)]
    if not taken or len(numbers) < len(taken):
        return False
    items = inner.expressions
    index = next(number for number, each in enumerate(items) if each is item)
    clauses = [clause for name in ("group", "order") if (clause := inner.args.get(name)) is not None]
    if any(literal.name == str(index + 1) for clause in clauses for literal in clause.find_all(exp.Literal)):
        return False
    added = []
    for number, (node, part) in enumerate(numbers):
        name = f"{item.alias}#{number}"
        added.append(exp.alias_(part.copy(), name, quoted=True))
        column = exp.column(name, quoted=True)
        column.meta[LABEL] = node.expression.name.lower() if isinstance(node, exp.Dot) else "double"
        node.replace(column)
    # The others stay at their positions, which GROUP BY and ORDER BY may name.
    inner.set("expressions", [*items[:index], added[0], *items[index + 1 :], *added[1:]])
    return True


_NUMBER = "%_value"
"""Field of a number in a message of Protocol Buffers: int_value or float_value."""


def _as_json(fields: _Fields) -> exp.Expr:
    """Return the text of an object or a list; the value of anything else."""
    if isinstance(fields, exp.Expr):
        return fields.copy()
    pieces: list[exp.Expr] = []
    is_list = isinstance(fields, Sequence)
    for name, value in enumerate(fields) if isinstance(fields, Sequence) else fields.items():
        begun = ", " if pieces else "[" if is_list else "{"
        named: exp.Expr = exp.Literal.string(begun if is_list else f'{begun}"{name}": ')
        if not isinstance(value, exp.Expr):
            text = _as_json(value)
        else:
            json = exp.cast(exp.Anonymous(this="to_json", expressions=[value.copy()]), "VARCHAR", dialect="duckdb")
            text = exp.Coalesce(this=json, expressions=[exp.Literal.string("null")])
        if name == _NUMBER:
            kinds = [exp.Literal.string(named.name.replace("%", kind)) for kind in ("float", "int")]
            is_real = exp.Like(this=text.copy(), expression=exp.Literal.string("%.%"))
            named = exp.Case(ifs=[exp.If(this=is_real, true=kinds[0])], default=kinds[1])
        pieces += [named, text]
    pieces.append(exp.Literal.string("]" if is_list else "}"))
    joined = pieces[0]
    for piece in pieces[1:]:
        joined = exp.DPipe(this=joined, expression=piece)
    return exp.Paren(this=joined)


def option_place(sql: str, name: str) -> int | None:
    """Return the position (from 1) of an option in the text of SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (...)."""
    match = re.search(rf"(?is)\b(?:DIFFERENTIAL_PRIVACY|ANONYMIZATION)\s+OPTIONS\s*\(.*?\b({re.escape(name)})\s*=", sql)
    return None if match is None else match.start(1) + 1


def _privacy_options(tokens: list[Token]) -> tuple[list[Token], Options]:
    for index, token in enumerate(tokens[:-1]):
        if word(token) == "WITH" and word(tokens[index + 1]) == "DIFFERENTIAL_PRIVACY":
            break
    else:
        return tokens, ()
    if index == 0 or word(tokens[index - 1]) != "SELECT":
        hint = "write it behind the first SELECT: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.1) ..."
        raise refuse("syntax", detail="expected SELECT WITH DIFFERENTIAL_PRIVACY", hint=hint, position=token.start + 1)
    start = index + 3
    if [word(token) for token in tokens[index + 2 : start + 1]] != ["OPTIONS", "("]:
        return tokens[:index] + tokens[index + 2 :], ()
    end = start
    while end < len(tokens) and tokens[end].token_type is not TokenType.R_PAREN:
        end += 1
    options: list[tuple[str, str]] = []
    start += 1
    while start < end:
        comma = next((n for n in range(start, end) if tokens[n].token_type is TokenType.COMMA), end)
        name, equals, *value = part if len(part := tokens[start:comma]) >= 3 else [token] * 3
        signed = len(value) == 2 and value[0].token_type in (TokenType.DASH, TokenType.DOT)
        if equals.token_type is not TokenType.EQ or not (signed or len(value) == 1):
            raise refuse("syntax", detail="options are written name = value, ...", position=tokens[start].start + 1)
        if word(name) == _REPORT.upper():
            raise refuse("report_format", position=name.start + 1)
        if name.text.lower() in dict(options):
            raise refuse("syntax", detail=f"{name.text} stands twice among the options", position=name.start + 1)
        options.append((name.text.lower(), "".join(piece.text for piece in value)))
        start = comma + 1
    return tokens[:index] + tokens[end + 1 :], tuple(options)


def _clamped(tokens: list[Token], arrow: int) -> list[Token]:
    """Return the tokens with a call's first argument within a named argument's bounds. `arrow`: the index of =>."""
    name = tokens[arrow - 1]
    function = _FUNCTIONS.get(word(name))
    if word(name) == _REPORT.upper():
        return _reported(tokens, arrow)
    if function is None:
        raise refuse("named_argument", name=name.text, position=name.start + 1)
    begin, first, comma = _argument_before(tokens, arrow - 1)
    low, high, end = _bounds(tokens, arrow)
    clamp, open_, close = _call(function, tokens[begin])
    bounds = [tokens[comma], *low, tokens[comma], *high]
    rest = [*tokens[first:comma], *tokens[end + 1 :]]
    return [*tokens[:begin], clamp, open_, *tokens[begin:first], *bounds, close, *rest]


def _call(function: str, token: Token) -> list[Token]:
    """Return the tokens of `function`(), positioned at `token`, so that errors point at the value."""
    return [_like(token, kind, text) for kind, text in ((TokenType.VAR, function), (_OPEN, "("), (_CLOSE, ")"))]


def _reported(tokens: list[Token], arrow: int) -> list[Token]:
    """Return the tokens with `report_format => 'JSON'` removed and its call wrapped in one of REPORT, which has the format as a
    second argument. `arrow`: the index of =>. Refuses (report_format) other formats."""
    name = tokens[arrow - 1]
    begin, depth = arrow - 2, 0
    while begin > 0 and not (depth == 0 and tokens[begin].token_type is _OPEN):
        depth += (tokens[begin].token_type is _CLOSE) - (tokens[begin].token_type is _OPEN)
        begin -= 1
    form = tokens[arrow + 1].text.upper() if arrow + 2 < len(tokens) else ""
    if form not in ("JSON", "PROTO") or begin < 1 or tokens[arrow - 2].token_type is not TokenType.COMMA:
        raise refuse("report_format", position=name.start + 1)
    rest, end, depth = [*tokens[begin : arrow - 2], *tokens[arrow + 2 :]], 1, 1
    while depth and end < len(rest):
        depth += (rest[end].token_type is _OPEN) - (rest[end].token_type is _CLOSE)
        end += 1
    report, open_, close = _call(REPORT, tokens[begin - 1])
    form_ = [_like(name, TokenType.COMMA, ","), _like(name, TokenType.STRING, form)]
    return [*tokens[: begin - 1], report, open_, tokens[begin - 1], *rest[:end], *form_, close, *rest[end:]]


_OF_QUANTILES = ("PERCENTILE_CONT", "PERCENTILE_DISC", "APPROX_QUANTILES", "QUANTILE_CONT", "QUANTILE_DISC")


def _argument_before(tokens: list[Token], name: int) -> tuple[int, int, int]:
    """Return where the first argument of the call begins and ends that has a named one, and the comma before that. Refuses
    (named_argument_place) arguments between the two, except for the rank of a quantile."""
    commas, depth, begin = list[int](), 0, name
    while begin > 0:
        kind = tokens[begin - 1].token_type
        if depth == 0 and kind is _OPEN:
            break
        depth += (kind is _CLOSE) - (kind is _OPEN)
        begin -= 1
        if depth == 0 and kind is TokenType.COMMA:
            commas.insert(0, begin)
    quantile = begin > 1 and word(tokens[begin - 2]) in _OF_QUANTILES
    if not 1 <= len(commas) <= 1 + quantile or commas[-1] != name - 1 or commas[0] == begin:
        raise refuse("named_argument_place", name=tokens[name].text, position=tokens[name].start + 1)
    return begin, commas[0], commas[-1]


def _bounds(tokens: list[Token], arrow: int) -> tuple[list[Token], list[Token], int]:
    """Return both numbers' tokens of (low, high) after =>, and the closing bracket's index. Refuses (named_argument_place)."""
    kinds = [token.token_type for token in tokens[arrow + 1 : arrow + 8]]
    texts: list[list[Token]] = [[], []]
    place, side = arrow + 2, 0
    for kind, token in zip(kinds[1:], tokens[arrow + 2 : arrow + 8], strict=False):
        if kind is _CLOSE:
            break
        if kind is TokenType.COMMA and side == 0:
            side = 1
        else:
            texts[side].append(token)
        place += 1
    numbers = all(
        part[-1:] and part[-1].token_type is TokenType.NUMBER and all(t.token_type is TokenType.DASH for t in part[:-1])
        for part in texts
    )
    if kinds[:1] != [_OPEN] or place >= len(tokens) or tokens[place].token_type is not _CLOSE or not numbers:
        raise refuse("named_argument_place", name=tokens[arrow - 1].text, position=tokens[arrow - 1].start + 1)
    return texts[0], texts[1], place
