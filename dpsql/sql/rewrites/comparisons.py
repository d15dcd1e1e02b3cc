"""Comparisons with lists, of rows, and of texts with several patterns, rewritten as plain comparisons.

`x = ANY (list)` and `x <> ALL (list)`, as drivers write a list of values, are IN and NOT IN, also in three-valued logic: `= ANY`
and IN are both the OR of the comparisons with each item. With an empty list, which IN cannot express, the result is FALSE (ALL:
TRUE) even for NULL; with a list that is NULL, it is NULL.

`(a, b) = (1, 2)` is `a = 1 AND b = 2`, and IN is the OR of these, also where a value is NULL (PostgreSQL 16 documentation, 9.25.1
and 9.25.5); `(a, b) < (1, 2)` is `a < 1 OR a = 1 AND b < 2`. `(a, b) IN (SELECT x, y ...)` is `EXISTS (SELECT 1 FROM (SELECT x, y
...) AS q WHERE q.x = a AND q.y = b)` where only rows that satisfy it are kept; elsewhere the two differ, because EXISTS is FALSE
where IN is NULL. `x LIKE ANY ('a%', 'b%')` is `x LIKE 'a%' OR x LIKE 'b%'`; ALL becomes AND. `t::time < '22:00'`
is `t < date_trunc('day', t) + INTERVAL '79200 seconds'`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.sql.lexer import OWN_NAMES, place

# --- lists ------------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMERIC = (*exp.DataType.INTEGER_TYPES, *exp.DataType.FLOAT_TYPES, exp.DType.DECIMAL)

_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)


def lists_as_in(tree: exp.Query) -> exp.Query:
    """Replace each comparison with ANY or ALL of a list of literals: `= ANY` and `<> ALL` by IN and NOT IN, others by comparisons
    with each item. Return the tree."""
    for node in list(tree.find_all(exp.EQ, exp.NEQ, *_ORDERS)):
        for word, connector in (("SOME", exp.Or), ("ALL", exp.And)):
            items = _items(_listed(node.expression, word))
            if items is None:
                continue
            every = connector is exp.And
            if isinstance(node, exp.NEQ if every else exp.EQ):
                membership = _member(node.this, items)
                node.replace(exp.Paren(this=exp.Not(this=membership) if every else membership))
            elif isinstance(items, exp.Null):
                node.replace(exp.cast(exp.Null(), "boolean"))
            elif len(items) <= MOST_COMPARISONS:
                compared = [type(node)(this=node.this.copy(), expression=item) for item in items]
                node.replace(exp.Paren(this=joined(connector, compared)) if items else exp.Boolean(this=every))
    return tree


def _member(value: exp.Expr, items: list[exp.Expr] | exp.Null) -> exp.Expr:
    if isinstance(items, exp.Null):
        return exp.cast(exp.Null(), "boolean")
    if len(items) == 1:  # the same query as without a list, so the same stored answer
        return exp.EQ(this=value, expression=items[0])
    return exp.In(this=value, expressions=items) if items else exp.Boolean(this=False)


def _listed(node: exp.Expr, word: str) -> exp.Expr | None:
    """Return the argument of ANY, SOME or ALL (the parser reads the last two as functions); None for other nodes."""
    if isinstance(node, exp.Any):
        return node.this.unnest() if word == "SOME" else None
    named = isinstance(node, exp.Anonymous) and str(node.this).upper() == word and len(node.expressions) == 1
    return node.expressions[0].unnest() if named else None


def _items(node: exp.Expr | None) -> list[exp.Expr] | exp.Null | None:
    """Return the items of a list of literals (NULL for a list that is NULL); None for any other expression."""
    numeric = False
    while isinstance(node, exp.Cast) and node.to.is_type(exp.DType.ARRAY):
        numeric = any(inner.is_type(*_NUMERIC) for inner in node.to.expressions)
        node = node.this.unnest()
    if isinstance(node, exp.Null):
        return node
    if isinstance(node, exp.Array):
        items = list(node.expressions)
    elif isinstance(node, exp.Literal) and node.is_string and (texts := read_list(node.name)) is not None:
        items = [exp.Null() if text is None else exp.Literal.string(text) for text in texts]
    else:
        return None
    return [_number(item) for item in items] if numeric else items


def _number(item: exp.Expr) -> exp.Expr:
    """Return the number that a text in a list of numbers represents; any other item unchanged."""
    if not (isinstance(item, exp.Literal) and item.is_string and _NUMBER.fullmatch(item.name)):
        return item
    number = exp.Literal.number(item.name.lstrip("-"))
    return exp.Neg(this=number) if item.name.startswith("-") else number


_BARE = r"(?:[^\"\\{},\s]|\\.)+"
_ITEM = re.compile(rf"""\s*(?:"((?:[^"\\]|\\.)*)"|({_BARE}(?:\s+{_BARE})*))\s*(,|\}}$)""", re.DOTALL)
"""One item and what follows it. A text can be divided into these parts in only one way, so that a text that does not match is
rejected in linear time. (Possessive quantifiers would express this, but early releases of Python 3.11 match them wrongly.)"""


def read_list(text: str) -> list[str | None] | None:
    """Return the items of a list written as PostgreSQL's text, {a,"b c",NULL}; None for any other text.

    Source: PostgreSQL 16 documentation, section 8.15.2 (Array Value Input).
    """
    text = text.strip()
    if re.fullmatch(r"\{\s*\}", text):
        return []
    if not text.startswith("{"):
        return None
    items, position = list[str | None](), 1
    while (item := _ITEM.match(text, position)) is not None:
        quoted, bare, end = item.groups()
        null = quoted is None and bare.upper() == "NULL"
        items.append(None if null else re.sub(r"\\(.)", r"\1", bare if quoted is None else quoted, flags=re.DOTALL))
        if end == "}":
            return items
        position = item.end()
    return None


# --- rows and patterns ------------------------------------------------------------------------------------------------

MOST_COMPARISONS = 1_000
_MOST_ORDERED = 20
COLUMN = f"{OWN_NAMES}c"
"""Prefix of the column names of a subquery in IN that is compared with a row: no query can have such names."""
_Pattern = (exp.Like, exp.ILike)
_KEEPING = (exp.And, exp.Or, exp.Paren)


def with_plain_comparisons(tree: exp.Query) -> exp.Query:
    """Return the tree with comparisons of rows and of lists of patterns replaced by plain comparisons."""
    for between in list(tree.find_all(exp.Between)):
        if _row(between.this) is not None and between.args.get("symmetric") is None:
            ends: list[exp.Expr] = [exp.GTE(this=between.this.copy(), expression=between.args["low"])]
            ends.append(exp.LTE(this=between.this, expression=between.args["high"]))
            between.replace(exp.Paren(this=joined(exp.And, ends)))
    for node in list(tree.find_all(exp.In, exp.EQ, exp.NEQ, *_ORDERS, *_Pattern)):
        if isinstance(node, _Pattern):
            _replace_patterns(node)
        elif (row := _row(node.this)) is not None:
            _replace_rows(node, row)
    return tree


def _row(node: exp.Expr | None) -> list[exp.Expr] | None:
    """Return the values of a row of two or more, `(a, b)` or `ROW(a, b)`; None for any other expression."""
    bare = node.unnest() if node is not None else None
    written = isinstance(bare, exp.Tuple) or (isinstance(bare, exp.Anonymous) and str(bare.this).upper() == "ROW")
    return list(bare.expressions) if bare is not None and written and len(bare.expressions) > 1 else None


def _replace_rows(node: exp.Expr, row: list[exp.Expr]) -> None:
    if isinstance(node, (exp.EQ, exp.NEQ, *_ORDERS)):
        other = _row(node.expression)
        if other is not None and isinstance(node, _ORDERS):
            node.replace(exp.Paren(this=_ordered(node, row, other)))
        elif other is not None:
            equal = _equal(node, row, other)
            node.replace(exp.Paren(this=equal if isinstance(node, exp.EQ) else exp.Not(this=exp.Paren(this=equal))))
        return
    if node.args.get("query") is not None:
        _replace_subquery(node, row)
        return
    listed = node.expressions
    if len(listed) == 1 and isinstance(listed[0], exp.Values):
        listed = listed[0].expressions
    rows = [_row(item) for item in listed]
    if not rows or any(values is None for values in rows):
        return
    if len(rows) * len(row) > MOST_COMPARISONS:
        raise refuse("clause", what=f"IN with more than {MOST_COMPARISONS} values in its rows", position=place(node))
    alternatives = [_equal(node, row, values) for values in rows if values is not None]
    node.replace(exp.Paren(this=joined(exp.Or, alternatives)))


def _replace_subquery(node: exp.Expr, row: list[exp.Expr]) -> None:
    query = node.args["query"]
    if not _keeps_rows(node):
        reason = "rows of several values are compared with it under NOT, or outside a condition"
        hint = "write NOT EXISTS (SELECT 1 FROM ... WHERE x = a AND y = b) in place of (a, b) NOT IN (SELECT x, y FROM ...)"
        raise refuse("semi_join", reason=reason, way=hint, position=place(node))
    selected = query.this.unnest().selects if isinstance(query, exp.Subquery) else []
    if not any(item.is_star for item in selected):
        _check_lengths(node, row, selected)
    names = [f"{COLUMN}{number}" for number in range(len(row))]
    compared = [
        exp.EQ(this=exp.column(exp.to_identifier(name, quoted=True)), expression=value.copy())
        for name, value in zip(names, row, strict=True)
    ]
    alias = exp.TableAlias(
        this=exp.to_identifier(f"listed rows {COLUMN}", quoted=True),
        columns=[exp.to_identifier(name, quoted=True) for name in names],
    )
    source = exp.Subquery(this=query.this, alias=alias)
    inner = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=source))
    inner.set("where", exp.Where(this=joined(exp.And, compared)))
    node.replace(exp.Exists(this=inner))


def _keeps_rows(node: exp.Expr) -> bool:
    """Return whether only rows that satisfy `node` are kept: in WHERE, HAVING or QUALIFY, inside only AND, OR and brackets."""
    above = node.parent
    while isinstance(above, _KEEPING):
        above = above.parent
    return isinstance(above, (exp.Where, exp.Having, exp.Qualify))


def _replace_patterns(node: exp.Expr) -> None:
    every = isinstance(node.expression, exp.All)
    if not isinstance(node.expression, (exp.Any, exp.All)):
        return
    listed = node.expression.this.unnest()
    patterns = listed.expressions if isinstance(listed, (exp.Tuple, exp.Array)) else [listed]
    if not patterns or len(patterns) > MOST_COMPARISONS or not all(isinstance(p, exp.Literal) for p in patterns):
        return
    negated = bool(node.args.get("negate"))
    plain = [type(node)(this=node.this.copy(), expression=pattern) for pattern in patterns]
    compared = [exp.Not(this=comparison) if negated else comparison for comparison in plain]
    node.replace(exp.Paren(this=joined(exp.And if every else exp.Or, compared)))


_UPWARD, _DOWNWARD = (exp.GT, exp.GTE), (exp.LT, exp.LTE)


def with_extremes(node: exp.Expr) -> exp.Expr:
    """Return a comparison with ANY or ALL rows of a subquery as comparisons with its smallest and largest value.

    `x > ALL (SELECT v ...)` is TRUE without rows, and otherwise `x > MAX(v)`, or NULL instead of TRUE if a v is NULL; ANY is its
    mirror image.
    """
    every, value = isinstance(node.expression, exp.All), exp.column(exp.to_identifier(COLUMN, quoted=True))
    names = exp.TableAlias(this=exp.to_identifier(f"rows {COLUMN}", quoted=True), columns=[value.this.copy()])
    rows = exp.Subquery(this=node.expression.this.unnest(), alias=names)

    def single(item: exp.Expr) -> exp.Expr:
        return exp.Subquery(this=exp.Select(expressions=[item], from_=exp.From(this=rows.copy())))

    def counts(comparison: type[exp.Binary], other: exp.Expr) -> exp.Expr:
        return comparison(this=exp.Count(this=exp.Star(), big_int=True), expression=other)

    largest, smallest = exp.Max(this=value.copy()), exp.Min(this=value.copy())
    ends = [largest, smallest]
    if isinstance(node, (*_UPWARD, *_DOWNWARD)):
        ends = [largest if isinstance(node, _UPWARD) is every else smallest]
    compared = [type(node)(this=node.this.copy(), expression=single(end)) for end in ends]
    branch = exp.If(this=counts(exp.EQ, exp.Count(this=value.copy(), big_int=True)), true=exp.Boolean(this=every))
    without_null = single(exp.cast(exp.Case(ifs=[branch]), "boolean"))
    some = single(exp.cast(exp.Paren(this=counts(exp.EQ if every else exp.GT, exp.Literal.number(0))), "boolean"))
    around, within = (exp.Or, exp.And) if every else (exp.And, exp.Or)
    return exp.Paren(this=around(this=some, expression=exp.Paren(this=joined(within, [*compared, without_null]))))


def _equal(node: exp.Expr, row: Sequence[exp.Expr], other: Sequence[exp.Expr]) -> exp.Expr:
    _check_lengths(node, row, other)
    return joined(exp.And, [exp.EQ(this=a.copy(), expression=b.copy()) for a, b in zip(row, other, strict=True)])


def _ordered(node: exp.Expr, row: Sequence[exp.Expr], other: Sequence[exp.Expr]) -> exp.Expr:
    _check_lengths(node, row, other)
    if len(row) > _MOST_ORDERED:
        raise refuse("clause", what=f"an order of rows of more than {_MOST_ORDERED} values", position=place(node))
    strict = exp.LT if isinstance(node, _DOWNWARD) else exp.GT
    (left, right), *pairs = zip(reversed(row), reversed(other), strict=True)
    written: exp.Expr = type(node)(this=left.copy(), expression=right.copy())
    for sides in pairs:
        same, less = (kind(this=sides[0].copy(), expression=sides[1].copy()) for kind in (exp.EQ, strict))
        written = exp.Or(this=less, expression=exp.Paren(this=exp.And(this=same, expression=exp.Paren(this=written))))
    return written


def joined(connector: type[exp.Connector], parts: Sequence[exp.Expr]) -> exp.Expr:
    """Return the parts connected in halves, so that 1,000 of them are nested ten levels deep."""
    if len(parts) == 1:
        return parts[0]
    middle = (len(parts) + 1) // 2
    sides = [joined(connector, half) for half in (parts[:middle], parts[middle:])]
    left, right = (exp.Paren(this=side) if isinstance(side, exp.Connector) else side for side in sides)
    return connector(this=left, expression=right)


def _check_lengths(node: exp.Expr, row: Sequence[exp.Expr], other: Sequence[exp.Expr]) -> None:
    if len(row) != len(other):
        detail = f"a row of {len(row)} values is compared with one of {len(other)}"
        raise refuse("syntax", detail=detail, position=place(node))


# --- times of day -----------------------------------------------------------------------------------------------------

_COMPARED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ)
_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")


def with_times_of_day(tree: exp.Query) -> exp.Query:
    """Return the tree with comparisons of a moment's time of day with a text, `seen::time >= '22:00'`, BETWEEN too, as
    comparisons of the moment with that time on its own day."""
    for node in list(tree.find_all(*_COMPARED, exp.Between)):
        if isinstance(node, exp.Between):
            moment, ends = _moment(node.this), [_on_the_day(node, node.args[name]) for name in ("low", "high")]
            if moment is not None and None not in ends:
                node.replace(exp.Between(this=moment.copy(), low=ends[0], high=ends[1]))
            continue
        for side, other in (("this", "expression"), ("expression", "this")):
            moment, then = _moment(node.args[side]), _on_the_day(node, node.args[other], side)
            if moment is not None and then is not None:
                node.set(side, moment.copy())
                node.set(other, then)
                break
    return tree


def _moment(node: exp.Expr) -> exp.Expr | None:
    """Return the expression whose time of day a node is, None for other nodes and for literals."""
    bare = node.unnest()
    if not isinstance(bare, exp.Cast) or isinstance(bare, exp.TryCast) or not bare.to.is_type(exp.DType.TIME):
        return None
    return None if bare.to.expressions or isinstance(bare.this, exp.Literal) else bare.this


def _on_the_day(node: exp.Expr, time: exp.Expr, side: str = "this") -> exp.Expr | None:
    """Return the moment at a literal time on the day of the moment that stands at `side` of a comparison; None without both."""
    moment, text = _moment(node.args[side]), time.unnest()
    if isinstance(text, exp.Cast) and text.to.is_type(exp.DType.TIME):
        text = text.this
    written = _TIME.fullmatch(text.name) if isinstance(text, exp.Literal) and text.is_string else None
    if moment is None or written is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in written.groups())
    after = exp.Interval(
        this=exp.Literal.string(str(hours * 3600 + minutes * 60 + seconds)), unit=exp.Var(this="SECOND")
    )
    return exp.Add(this=exp.TimestampTrunc(this=moment.copy(), unit=exp.Var(this="DAY")), expression=after)


def with_negated_parts(tree: exp.Query) -> exp.Query:
    """Return the tree with NOT a AND NOT EXISTS (...) for NOT (a OR EXISTS (...)) in WHERE. Both are true, false or NULL
    together, and a whole part of WHERE is a semi-join."""
    for where in list(tree.find_all(exp.Where)):
        for negation in list(where.find_all(exp.Not)):
            _negate_parts(negation)
    return tree


def _negate_parts(negation: exp.Not) -> None:
    inner = negation.this.unnest()
    if not isinstance(inner, exp.Or) or inner.find(exp.Exists, exp.Query) is None:
        return
    sides = [exp.Not(this=exp.Paren(this=side.copy())) for side in (inner.this, inner.expression)]
    negation.replace(exp.Paren(this=exp.And(this=sides[0], expression=sides[1])))
    for side in sides:
        _negate_parts(side)


MOST_MERGED = 50


def with_merged_tests(tree: exp.Query) -> exp.Query:
    """Return the tree with one IN for `k IN (SELECT ... WHERE a) OR k IN (SELECT ... WHERE b)` and for IN of their UNION, and one
    EXISTS for two that OR connects, where both read the same rows. Subqueries that stay are in the order of their texts."""
    for union in reversed(list(tree.find_all(exp.Union))):
        around = union.parent
        while isinstance(around, (exp.Subquery, exp.Union)):
            around = around.parent
        if isinstance(around, exp.In) and not any(union.args.get(name) for name in _CLAUSES):
            rows = _merged(union.this.unnest(), union.expression.unnest(), listed=True)
            if rows is not None:
                union.replace(rows)
    for either in reversed(list(tree.find_all(exp.Or))):  # inner ones first, before those around them are copied
        parts = [] if isinstance(either.parent, exp.Or) else list(either.flatten())
        tests = [part for part in parts if _test(part) is not None]
        if not 1 < len(tests) <= MOST_MERGED:
            continue
        left = list[exp.Expr]()
        for test in tests:
            pairs = ((index, merged) for index, tested in enumerate(left) if (merged := _merged_test(tested, test)))
            index, either_test = next(pairs, (len(left), test))
            left[index : index + 1] = [either_test]
        plain = [part for part in parts if not any(part is test for test in tests)]
        either.replace(joined(exp.Or, [part.copy() for part in (*plain, *sorted(left, key=lambda test: test.sql()))]))
    return tree


_CLAUSES = ("with_", "order", "limit", "offset", "by_name", "on")


def _test(part: exp.Expr) -> exp.Query | None:
    """Return the subquery of IN or EXISTS; None for other conditions."""
    bare = part.unnest()
    query = bare.args.get("query") if isinstance(bare, exp.In) else bare.this if isinstance(bare, exp.Exists) else None
    inner = query.unnest() if isinstance(query, exp.Query) else None
    return inner if isinstance(inner, exp.Query) else None


def _merged_test(first: exp.Expr, second: exp.Expr) -> exp.Expr | None:
    """Return one IN or EXISTS for two connected by OR; None where they read different rows."""
    query, second_query, bare, second_bare = _test(first), _test(second), first.unnest(), second.unnest()
    if query is None or second_query is None or type(bare) is not type(second_bare):
        return None
    listed = isinstance(bare, exp.In)
    merged = _merged(query, second_query, listed) if not listed or bare.this == second_bare.this else None
    if merged is None:
        return None
    return exp.In(this=bare.this.copy(), query=exp.Subquery(this=merged)) if listed else exp.Exists(this=merged)


def _merged(first: exp.Expr, second: exp.Expr, listed: bool) -> exp.Select | None:
    """Return the SELECT that has the rows of two from the same source; None where they differ in more than WHERE."""
    clauses = {"expressions", "from_", "where"}
    for query in (first, second):
        if not isinstance(query, exp.Select) or {name for name, value in query.args.items() if value} - clauses:
            return None
    if first.args.get("from_") is None or first.args["from_"] != second.args.get("from_"):
        return None
    if any(item.find(exp.AggFunc, exp.Window) for query in (first, second) for item in query.expressions):
        return None
    if listed and first.expressions != second.expressions:
        return None
    conditions = [query.args["where"].this if query.args.get("where") else exp.true() for query in (first, second)]
    parts = [list(part.flatten()) if isinstance(part, exp.And) else [part] for part in conditions]
    common = [part for part in parts[0] if part in parts[1]]
    rests = [[part for part in each if part not in common] for each in parts]
    items = first.expressions if listed else [*first.expressions, *second.expressions]  # each of which is checked
    merged = exp.Select(expressions=[item.copy() for item in items], from_=first.args["from_"].copy())
    either = [exp.Paren(this=joined(exp.And, [part.copy() for part in rest])) for rest in rests if rest]
    tested = [part.copy() for part in common]
    if len(either) == 2:
        tested.append(exp.Paren(this=joined(exp.Or, sorted(either, key=lambda part: part.sql()))))
    if tested:
        merged.set("where", exp.Where(this=joined(exp.And, tested)))
    return merged
