"""Spellings of PostgreSQL, and of tools that write for it, rewritten as the few that the binder and the sandbox know.

Intervals of several units are added one after the other, months before days before seconds, as PostgreSQL does (16 documentation,
9.9). Windows that a WINDOW clause names are written where they are used. `x = ANY (SELECT ...)` is IN, `x <> ALL (SELECT ...)` is
NOT IN, and both are plain comparisons with a subquery of one row (9.24). `x IN (a, 1)` with an item that is computed from a row
is the OR of the comparisons. Transactions do not exist, so all words for the present time mean the same. MATERIALIZED has no
effect, because a CTE is never computed twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.errors.exceptions import refuse
from dpsql.sql.lexer import place
from dpsql.sql.rewrites.comparisons import joined

# --- strings with escapes ---------------------------------------------------------------------------------------------

_ESCAPE = re.compile(
    r"''|\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-7]?[0-9A-Fa-f])(?![0-9A-Fa-f])|([^uUx0-7]))", re.DOTALL
)
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def escaped_strings(tokens: list[Token], sql: str) -> list[Token]:
    """Return the tokens with E'...' as plain strings. Refuses (syntax) an escape that PostgreSQL reads as a byte which is no
    character, and octal ones, which nobody writes."""
    byte_string = TokenType.BYTE_STRING
    if byte_string not in [token.token_type for token in tokens]:
        return tokens
    return [_plain(token, sql) if token.token_type is byte_string else token for token in tokens]


def _plain(token: Token, sql: str) -> Token:
    written = sql[token.start + 2 : token.end]
    rest = _ESCAPE.sub("", written)
    if "\\" in rest:
        detail = "this escape in a string E'...' is no character"
        raise refuse("syntax", detail=detail, position=token.start + 1)
    text = _ESCAPE.sub(_character, written)
    if re.search("[\0\ud800-\udfff]", text):
        raise refuse("syntax", detail="a string E'...' holds no such character", position=token.start + 1)
    return Token(TokenType.STRING, text, token.line, token.col, token.start, token.end, token.comments)


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is not None:
        return chr(int(code, 16)) if int(code, 16) < 0x110000 else "\0"
    return "'" if match[0] == "''" else _CONTROLS.get(match[4], match[4])


def interval_texts(tokens: list[Token]) -> list[Token]:
    """Return the tokens with INTERVAL 'text' as 'text'::INTERVAL, unless the text is a number: the parser keeps the first number
    and unit of a text and drops the rest, as in '1 day 02:00' and '3 days ago'."""
    plain: list[Token] = []
    if TokenType.INTERVAL not in [token.token_type for token in tokens]:
        return tokens
    for token in tokens:
        before = plain[-1] if plain else None
        text = token.token_type is TokenType.STRING and before is not None and before.token_type is TokenType.INTERVAL
        if before is None or not text or re.fullmatch(r"-?[0-9]+", token.text):
            plain.append(token)
            continue
        cast = Token(TokenType.DCOLON, "::", before.line, before.col, before.start, before.end)
        plain[-1:] = [token, cast, before]
    return plain


# --- clauses and words ------------------------------------------------------------------------------------------------

LABEL = "label"
"""Key of a node's `meta` under which stands the label that its column has without an alias."""
_CLOCKS = ("clock_timestamp", "statement_timestamp", "transaction_timestamp")


def in_own_words(tree: exp.Query) -> exp.Query:
    """Return the tree without WINDOW clauses, MATERIALIZED, and other names for the present time, for BOOL_AND and for MIN."""
    for select in tree.find_all(exp.Select):
        if select.args.get("windows"):
            _write_windows(select)
    for window in tree.find_all(exp.Window):
        _complete(window, {})
    for node in list(tree.find_all(exp.CTE, exp.Anonymous, exp.Localtimestamp, exp.Min, exp.Max)):
        if isinstance(node, exp.CTE):
            node.set("materialized", None)
        elif isinstance(node, exp.Anonymous):
            name = str(node.this).lower()
            if name == "every" and len(node.expressions) == 1:
                every = exp.LogicalAnd(this=node.expressions[0])
                every.meta[LABEL] = name
                node.replace(every)
            elif name in _CLOCKS and not node.expressions:
                node.replace(exp.CurrentTimestamp())
        elif isinstance(node, exp.Localtimestamp):
            if node.this is None or (isinstance(node.this, exp.Literal) and node.this.is_int):
                node.replace(exp.CurrentTimestamp())
        elif isinstance(node.this, exp.Distinct) and len(node.this.expressions) == 1:
            node.set("this", node.this.expressions[0])
    return tree


def _write_windows(select: exp.Select) -> None:
    """Write each named window of a SELECT where its list, QUALIFY or ORDER BY names it. What nothing names is left for the
    binder, which looks up the columns in it. Refuses (syntax) missing names, and names of several windows."""
    named: dict[str, exp.Window] = {}
    for window in select.args["windows"]:
        name = window.this.name.lower()
        _complete(window, named)
        if name in named:
            raise refuse("syntax", detail=f"window {name} is defined twice", position=place(window.this))
        named[name] = window
    written = select.args["windows"]
    select.set("windows", None)
    used = set[str]()
    for window in list(select.find_all(exp.Window)):
        if window.args.get("alias") is not None and window.find_ancestor(exp.Select) is select:
            used.add(window.args["alias"].name.lower())
            _complete(window, named)
    unused = [window for window in written if window.this.name.lower() not in used]
    if any(next(window.find_all(exp.Column), None) is not None for window in unused):
        for window in unused:
            window.set("this", None)
        select.set("windows", unused)


def _complete(window: exp.Window, named: dict[str, exp.Window]) -> None:
    base = window.args.get("alias")
    if base is None:
        return
    definition = named.get(base.name.lower())
    if definition is None:
        raise refuse("syntax", detail=f"there is no window {base.name} in a WINDOW clause", position=place(base))
    for slot in ("partition_by", "order", "spec"):
        inherited = definition.args.get(slot)
        if not inherited:
            continue
        if window.args.get(slot):
            raise refuse("syntax", detail=f"window {base.name} has this clause already", position=place(base))
        copied = [part.copy() for part in inherited] if isinstance(inherited, list) else inherited.copy()
        window.set(slot, copied)
    window.set("alias", None)


# --- memberships ------------------------------------------------------------------------------------------------------


def with_memberships(tree: exp.Query) -> exp.Query:
    """Return the tree with ANY or ALL rows of a subquery as IN and NOT IN, and IN over computed items as equalities."""
    for node in list(tree.find_all(exp.In, exp.Any, exp.All)):
        compared = node.parent
        if isinstance(node, exp.In):
            _as_equalities(node)
        elif isinstance(node.this, exp.Query) and isinstance(compared, _COMPARED) and node is compared.expression:
            query = node.this if isinstance(node.this, exp.Subquery) else exp.Subquery(this=node.this)
            every = isinstance(node, exp.All)
            if _has_one_row(query.this):
                node.replace(query)
            elif isinstance(compared, exp.NEQ if every else exp.EQ):
                membership = exp.In(this=compared.this, query=query)
                compared.replace(exp.Paren(this=exp.Not(this=membership) if every else membership))
    return tree


_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def _has_one_row(query: exp.Expr) -> bool:
    """Return whether a query is an aggregate without GROUP BY, with whose one row ANY and ALL compare alike."""
    grouped = any(query.args.get(clause) for clause in ("group", "having", "qualify", "limit", "offset", "distinct"))
    items = query.expressions if isinstance(query, exp.Select) and not grouped else []
    return any(item.unalias().find(exp.AggFunc) and not item.find(exp.Window) for item in items)


def _as_equalities(node: exp.In) -> None:
    computed = [item for item in node.expressions if _reads_columns(item)]
    if not computed or len(computed) > MOST_EQUALITIES or node.this.find(exp.Subquery):
        return
    listed = [item for item in node.expressions if not _reads_columns(item)]
    comparisons: list[exp.Expr] = [exp.EQ(this=node.this.copy(), expression=item) for item in computed]
    comparisons += [exp.In(this=node.this.copy(), expressions=listed)] if listed else []
    node.replace(exp.Paren(this=joined(exp.Or, comparisons)))


def _reads_columns(item: exp.Expr) -> bool:
    return item.find(exp.Column) is not None and item.find(exp.Query) is None


MOST_EQUALITIES = 100

# --- intervals --------------------------------------------------------------------------------------------------------

_UNITS = {
    **dict.fromkeys(("microsecond", "us", "usec"), ("SECOND", Fraction(1, 10**6))),
    **dict.fromkeys(("millisecond", "ms", "msec"), ("SECOND", Fraction(1, 1000))),
    **dict.fromkeys(("second", "sec", "s"), ("SECOND", Fraction(1))),
    **dict.fromkeys(("minute", "min", "m"), ("SECOND", Fraction(60))),
    **dict.fromkeys(("hour", "hr", "h"), ("SECOND", Fraction(3600))),
    **dict.fromkeys(("day", "d"), ("DAY", Fraction(1))), **dict.fromkeys(("week", "w"), ("DAY", Fraction(7))),
    **dict.fromkeys(("month", "mon"), ("MONTH", Fraction(1))), "quarter": ("MONTH", Fraction(3)),
    **dict.fromkeys(("year", "yr", "y"), ("MONTH", Fraction(12))), "decade": ("MONTH", Fraction(120)),
    **dict.fromkeys(("century", "centurie"), ("MONTH", Fraction(1200))),
}  # fmt: skip
_ORDER = ("MONTH", "DAY", "SECOND")
_AMOUNT = r"([+-]?\d{1,9}(?:\.\d{1,9})?)\s*([A-Za-z]+)\s*"
_CLOCK = r"([+-]?)(\d{1,4}):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?"
_TEXT = re.compile(rf"\s*@?\s*((?:{_AMOUNT})*)(?:{_CLOCK})?\s*(ago)?\s*")


def interval_parts(text: str) -> dict[str, Fraction] | None:
    """Return the months, days and seconds of an interval as PostgreSQL writes it, in their order; None for another text."""
    whole = _TEXT.fullmatch(text)
    if whole is None or not text.strip(" @") or text.strip() == "ago":
        return None
    amounts = dict.fromkeys(_ORDER, Fraction(0))
    for number, name in re.findall(_AMOUNT, whole[1]):
        singular = name.lower() if name.lower() in _UNITS else name.lower().removesuffix("s")
        if singular not in _UNITS:
            return None
        unit, factor = _UNITS[singular]
        amounts[unit] += Fraction(number) * factor
    sign, hours, minutes, seconds, digits = whole.groups()[3:8]
    if hours is not None:
        clock = int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0) + Fraction(f"0.{digits or 0}")
        amounts["SECOND"] += -clock if sign == "-" else clock
    hours_of_days = amounts["DAY"] % 1
    amounts["DAY"] -= hours_of_days
    amounts["SECOND"] += hours_of_days * 86400
    return {unit: -amount if whole[9] else amount for unit, amount in amounts.items()}


_SLOTS = {
    "year": "YEAR", "month": "MONTH", "week": "WEEK", "day": "DAY", "hour": "HOUR", "minute": "MINUTE", "second": "SECOND",
}  # fmt: skip
_PLAIN_UNITS = (*_SLOTS.values(), "QUARTER")
_NAMED = {
    "years": "YEAR",
    "months": "MONTH",
    "weeks": "WEEK",
    "days": "DAY",
    "hours": "HOUR",
    "mins": "MINUTE",
    "secs": "SECOND",
}


def with_plain_intervals(tree: exp.Query) -> exp.Query:
    """Return the tree with intervals from casts, texts of several units and make_interval as INTERVAL n UNIT, several of which
    are added or subtracted one after the other."""
    for node in list(tree.find_all(exp.Add, exp.Sub)):
        if isinstance(node, exp.Add) and _parts(node.this) is not None and _parts(node.expression) is None:
            first = node.this
            node.set("this", node.expression)
            node.set("expression", first)
        parts = _parts(node.expression)
        if parts is None:
            continue
        kind, moved = type(node), node.this
        for part in parts:
            moved = kind(this=moved, expression=part)
        node.replace(moved)
    for interval in list(tree.find_all(exp.Cast, exp.Interval, exp.MakeInterval)):
        parts = _parts(interval)
        if parts is not None and len(parts) == 1:
            interval.replace(parts[0])
    return tree


def _parts(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the intervals of one unit whose sum an interval is; None for any other expression and for a plain interval."""
    bare = node.unnest()
    if isinstance(bare, exp.MakeInterval):
        return _of_arguments(bare)
    if isinstance(bare, exp.Cast) and bare.to.is_type(exp.DType.INTERVAL):
        text = bare.this.unnest()
    elif isinstance(bare, exp.Interval):
        text = bare.this.unnest() if isinstance(bare.this, exp.Expr) else bare
        if isinstance(text, exp.Literal) and bare.args.get("unit") is not None:
            return _fractional(bare, text)
    else:
        return None
    if not isinstance(text, exp.Literal) or not text.is_string:
        return None
    plain = re.fullmatch(r"\s*(-?[0-9]{1,9})\s*([A-Za-z]+?)(s?)\s*", text.name)
    if plain is not None and plain[2].upper() in _PLAIN_UNITS:
        return [_interval(exp.Literal.string(plain[1]), plain[2].upper(), place(bare))]
    amounts = interval_parts(text.name)
    return None if amounts is None else _of_amounts(amounts, place(bare))


def _fractional(bare: exp.Interval, text: exp.Literal) -> list[exp.Expr] | None:
    """Return INTERVAL '1.5' HOUR, and units that only PostgreSQL abbreviates, in seconds, days and months; None for others."""
    name = bare.text("unit").lower()
    if re.fullmatch("-?[0-9]+", text.name) and name.removesuffix("s").upper() in _PLAIN_UNITS:
        return None
    amounts = interval_parts(f"{text.name} {name}")
    return None if amounts is None else _of_amounts(amounts, place(bare))


def _of_amounts(amounts: dict[str, Fraction], position: int | None) -> list[exp.Expr] | None:
    fraction = amounts["SECOND"] % 1 * 10**6
    amounts = {**amounts, "SECOND": amounts["SECOND"] - fraction / 10**6, "MICROSECOND": fraction}
    if any(amount.denominator != 1 for amount in amounts.values()):
        return None
    filled = [(unit, int(amount)) for unit, amount in amounts.items() if amount] or [("DAY", 0)]
    return [_interval(exp.Literal.string(str(amount)), unit, position) for unit, amount in filled]


def _interval(amount: exp.Expr, unit: str, position: int | None) -> exp.Interval:
    if position is not None:
        amount.meta["start"] = position - 1
    return exp.Interval(this=amount, unit=exp.Var(this=unit))


def _of_arguments(node: exp.MakeInterval) -> list[exp.Expr] | None:
    """Return make_interval(years, months, weeks, days, hours, mins, secs) as intervals of one unit, of a number or multiplied."""
    parts: list[exp.Expr] = []
    for slot, in_order in _SLOTS.items():
        argument = node.args.get(slot)
        if argument is None:
            continue
        named = isinstance(argument, exp.Kwarg)
        unit = _NAMED.get(argument.this.name.lower(), "") if named else in_order
        argument = argument.expression if named else argument
        if not unit:
            return None
        amount = argument.unnest()
        number = amount.this if isinstance(amount, exp.Neg) else amount
        if isinstance(number, exp.Literal) and re.fullmatch("[0-9]{1,9}", number.name):
            sign = "-" if isinstance(amount, exp.Neg) else ""
            if int(number.name):
                parts.append(_interval(exp.Literal.string(sign + number.name), unit, place(node)))
        else:
            parts.append(exp.Mul(this=_interval(exp.Literal.string("1"), unit, place(node)), expression=argument))
    return parts or [_interval(exp.Literal.string("0"), "DAY", place(node))]


# --- long conditions --------------------------------------------------------------------------------------------------


def flattened(tree: exp.Expr | None) -> exp.Expr | None:
    """Return the tree with each chain of more than a few ANDs or ORs connected in halves, which reads and is written the same, so
    that hundreds of conditions nest a few levels deep."""
    if tree is None:
        return None
    for node in list(tree.find_all(exp.And, exp.Or)):
        if type(node.parent) is type(node) or not isinstance(node.this, type(node)):
            continue
        parts = _chain(node)
        if len(parts) > FEW:
            left, right = _halves(type(node), parts)
            node.set("this", left)
            node.set("expression", right)
    return tree


FEW = 16


def _chain(node: exp.Connector) -> list[exp.Expr]:
    parts: list[exp.Expr] = []
    left: exp.Expr = node
    while isinstance(left, type(node)):
        parts.append(left.expression)
        left = left.this
    return [left, *reversed(parts)]


def _halves(kind: type[exp.Connector], parts: Sequence[exp.Expr]) -> tuple[exp.Expr, exp.Expr]:
    middle = (len(parts) + 1) // 2
    left, right = (
        half[0] if len(half) == 1 else kind(**dict(zip(("this", "expression"), _halves(kind, half), strict=True)))
        for half in (parts[:middle], parts[middle:])
    )
    return left, right
