"""Types that are visible in a question about the catalogs, and what PostgreSQL does because of them before it computes anything.

A literal in quotes takes the type of what it stands beside, conditions are truth values, and the branches of CASE, the elements
of an array and the rows of a UNION have one type. DuckDB would convert values instead, each as it comes. A type that is not
visible changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.catalog.shape import (
    INFORMATION_SCHEMA,
    PG_CATALOG,
    SQL_NAMES,
    called,
    column_types,
    internal_name,
    is_of,
    quoted,
    relations,
    type_names,
)
from dpsql.frontends.pgwire.catalog.sources import relation_of
from dpsql.frontends.pgwire.constants.tokens import NO_FUNCTION, said
from dpsql.sql.lexer import place

_LITERAL = "unknown"
"""The type of a literal in quotes, and of NULL."""
_NUMBERS = ("int2", "int4", "int8", "numeric", "float4", "float8")
"""The types of numbers, each before those that it is converted to."""
_TEXTS = frozenset({"text", "name", "varchar", "bpchar", "char"})
_WHOLE = {"int2": 1 << 15, "int4": 1 << 31, "int8": 1 << 63}
_WHOLE_TEXT = re.compile(r"\s*[+-]?[0-9]{1,30}\s*")
_NUMBER_TEXT = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?\s*")
_DOMAINS = {
    "sql_identifier": "name",
    "cardinal_number": "int4",
    "character_data": "varchar",
    "yes_or_no": "varchar",
    "time_stamp": "timestamptz",
}
_RESULTS = {
    **dict.fromkeys(("count", "row_number", "rank", "dense_rank", "pg_relation_size", "pg_table_size", "txid_current"), "int8"),
    **dict.fromkeys(("length", "char_length", "character_length", "octet_length", "ascii", "strpos", "position",
                     "array_length", "array_upper", "array_lower", "cardinality", "pg_backend_pid"), "int4"),
    **dict.fromkeys(("upper", "lower", "concat", "concat_ws", "replace", "left", "right", "trim", "btrim", "ltrim", "rtrim",
                     "substr", "substring", "split_part", "md5", "repeat", "reverse", "lpad", "rpad", "initcap", "chr", "to_char",
                     "version", "format_type", "pg_get_constraintdef", "pg_get_indexdef", "pg_get_expr", "obj_description",
                     "col_description", "current_setting", "quote_ident", "quote_literal", "array_to_string",
                     "string_agg"), "text"),
    **dict.fromkeys(("bool_and", "bool_or", "every", "starts_with"), "bool"),
    **dict.fromkeys(("current_user", "session_user", "current_role", "user", "current_database", "current_catalog",
                     "current_schema", "pg_get_userbyid", "pg_encoding_to_char"), "name"),
    **dict.fromkeys(("now", "current_timestamp", "clock_timestamp", "transaction_timestamp",
                     "statement_timestamp"), "timestamptz"),
    **dict.fromkeys(("json_build_object", "json_build_array", "json_agg", "to_json", "row_to_json", "json_object_agg"), "json"),
    **dict.fromkeys(("jsonb_build_object", "jsonb_build_array", "jsonb_agg", "to_jsonb", "jsonb_object_agg"), "jsonb"),
    **dict.fromkeys(("pi", "random", "sqrt"), "float8"), "gen_random_uuid": "uuid", "current_date": "date",
}  # fmt: skip
"""The types of functions' results."""
_TRUTHS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Exists,
           exp.Connector, exp.Not, exp.NullSafeEQ, exp.NullSafeNEQ, exp.RegexpLike, exp.RegexpILike)  # fmt: skip
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
SIGNS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
"""Arithmetic operators as they are written."""


def visible_type(node: exp.Expr) -> str:
    """Return the name of the type that a value visibly has; "" if none is visible."""
    node = node.unnest() if isinstance(node, (exp.Paren, exp.Subquery)) else node
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        node = node.expression
    if isinstance(node, exp.Literal):
        return _LITERAL if node.is_string else _number_type(node.name)
    if isinstance(node, exp.Null):
        return _LITERAL
    if isinstance(node, exp.Column):
        types = column_types().get(node.name, {""})
        return next(iter(types)) if len(types) == 1 and is_of(node, types) else ""
    if isinstance(node, exp.Cast):
        text = node.to.sql("postgres", comments=False)
        return "_" * ("[" in text) + internal_name(node.to)
    if isinstance(node, (exp.Boolean, *_TRUTHS)):
        return "bool"
    if isinstance(node, (exp.Neg, exp.Alias)):
        return visible_type(node.this)
    if type(node) in SIGNS:
        return _common([node.this, node.expression], _NUMBERS)
    if isinstance(node, (exp.Max, exp.Min)):
        return visible_type(node.this)
    if isinstance(node, (exp.Case, exp.Coalesce, exp.Greatest, exp.Least)):
        return _common(_results(node), (*_NUMBERS, "bool", "text"))
    return _RESULTS.get(called(node), "")


def _number_type(text: str) -> str:
    if not text.isdecimal():
        return "numeric"
    return next((name for name in ("int4", "int8") if int(text[:20]) < _WHOLE[name]), "numeric")


def _common(nodes: Sequence[exp.Expr], ordered: Sequence[str]) -> str:
    """Return the common type of values, the last of theirs among `ordered`; "" if one has another or none."""
    types = {visible_type(node) for node in nodes} - {_LITERAL}
    return max(types, key=ordered.index) if types and types <= set(ordered) else ""


def _results(node: exp.Expr) -> list[exp.Expr]:
    """Return the values of which CASE, COALESCE and the like return one, or that an array or a list has."""
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        return [branch.args["true"] for branch in node.args["ifs"]] + ([] if default is None else [default])
    return ([] if isinstance(node, exp.Array) else [node.this]) + list(node.expressions)


def coerce(tree: exp.Expr) -> None:
    """Give literals the types of what they stand beside. Raises what PostgreSQL says of values and types that do not fit."""
    for node in list(tree.walk()):
        _check_aggregate(node)
        for condition, clause in _conditions(node):
            type_ = visible_type(condition)
            if type_ not in ("", "bool", _LITERAL):
                raise refuse("catalog_truth", clause=clause, type=sql_name(type_), position=place(condition))
        if type(node) in SIGNS:
            _operands(node)
        elif type(node) in _COMPARISONS:
            left, right = visible_type(node.this), visible_type(node.expression)
            if (left in _TEXTS and right in _NUMBERS) or (left in _NUMBERS and right in _TEXTS):
                name = f"{sql_name(left)} {_COMPARISONS[type(node)]} {sql_name(right)}"
                raise refuse("catalog_operator", name=name, position=place(node.this))
        elif isinstance(node, (exp.Case, exp.Coalesce, exp.Greatest, exp.Least, exp.Array, exp.In)):
            _matched(_results(node), called(node) or type(node).__name__)
        elif isinstance(node, exp.Anonymous) and called(node) == "pg_typeof":
            node.replace(_typed(node) or node)
        elif isinstance(node, exp.SetOperation):
            sides = [side.selects for side in (node.left, node.right) if isinstance(side, exp.Query)]
            if len(sides) == 2 and len(sides[0]) == len(sides[1]):
                for pair in zip(*sides, strict=True):
                    _matched([output.unalias() for output in pair], type(node).__name__)


def _check_aggregate(node: exp.Expr) -> None:
    """Raise 42883 for aggregates of truth values that the engine has and PostgreSQL has not."""
    if isinstance(node, (exp.Max, exp.Min, exp.Sum, exp.Avg)) and visible_type(node.this) == "bool":
        raise said("42883", f"function {called(node)}(boolean) does not exist", place(node), NO_FUNCTION)


def _conditions(node: exp.Expr) -> list[tuple[exp.Expr, str]]:
    """Return the conditions directly under a node, with PostgreSQL's name for where they stand."""
    if isinstance(node, (exp.Where, exp.Having)):
        return [(node.this, type(node).__name__.upper())]
    if isinstance(node, exp.Not):
        return [(node.this, "NOT")]
    if isinstance(node, (exp.And, exp.Or)):
        return [(side, type(node).__name__.upper()) for side in (node.left, node.right)]
    if isinstance(node, exp.Case) and node.this is None:
        return [(branch.this, "CASE/WHEN") for branch in node.args["ifs"]]
    if isinstance(node, exp.Join) and node.args.get("on") is not None:
        return [(node.args["on"], "JOIN/ON")]
    return []


def _operands(node: exp.Expr) -> None:
    types = {side: visible_type(side) for side in (node.this, node.expression)}
    for side, other in ((node.this, node.expression), (node.expression, node.this)):
        if types[side] == _LITERAL and types[other] in _NUMBERS:
            _convert(side, types[other])
    if set(types.values()) == {_LITERAL}:
        raise refuse("catalog_ambiguous", name=f"unknown {SIGNS[type(node)]} unknown", position=place(node.this))
    if "bool" in types.values() and "" not in types.values():
        names = [sql_name(type_) for type_ in types.values()]
        raise refuse("catalog_operator", name=f"{names[0]} {SIGNS[type(node)]} {names[-1]}", position=place(node.this))


def _matched(values: Sequence[exp.Expr], construct: str) -> None:
    """Convert literals among values of one type. Raises catalog_mismatch if numbers stand beside texts."""
    numbers = [type_ for value in values if (type_ := visible_type(value)) in _NUMBERS]
    if not numbers:
        return
    for value in values:
        type_ = visible_type(value)
        if type_ in _TEXTS:
            first = sql_name(numbers[0])
            raise refuse(
                "catalog_mismatch", what=construct.upper(), first=first, second=sql_name(type_), position=place(value)
            )
        if type_ == _LITERAL:
            _convert(value, max(numbers, key=_NUMBERS.index))


def _convert(value: exp.Expr, type_: str) -> None:
    """Replace a literal in quotes by the number that it means. Raises catalog_text and catalog_range."""
    literal = value.unnest()
    if not isinstance(literal, exp.Literal):
        return
    text = literal.name
    is_whole = type_ in _WHOLE
    if not (_WHOLE_TEXT if is_whole else _NUMBER_TEXT).fullmatch(text):
        if text.strip().lower() in ("nan", "infinity", "-infinity") and not is_whole:
            return
        raise refuse("catalog_text", type=sql_name(type_), value=text, position=place(literal))
    if is_whole and not -_WHOLE[type_] <= int(text) < _WHOLE[type_]:
        raise refuse("catalog_range", type=sql_name(type_), position=place(literal))
    number: exp.Expr = exp.Literal.number(text.strip().lstrip("+-"))
    literal.replace(exp.Paren(this=exp.Neg(this=number)) if text.strip().startswith("-") else number)


def sql_name(type_: str) -> str:
    """Return the SQL name of a type: integer for int4."""
    if type_ in _DOMAINS:
        return f"information_schema.{type_}"
    return f"{SQL_NAMES.get(type_[1:], type_[1:])}[]" if type_.startswith("_") else SQL_NAMES.get(type_, type_)


def _typed(node: exp.Expr) -> exp.Expr | None:
    """Return pg_typeof(x), of a value whose type is visible and that is computed for each row, as the name of that type."""
    value = node.expressions[0] if len(node.expressions) == 1 else None
    if value is None or value.find(exp.AggFunc) or not (type_ := visible_type(value)):
        return None
    bare = type_.removeprefix("_")
    if type_ == _LITERAL or bare not in type_names():
        return None
    name = f"{INFORMATION_SCHEMA}.{type_}" if type_ in _DOMAINS else quoted(type_)
    return exp.cast(exp.Literal.string(name), exp.DataType.build("regtype", dialect="postgres", udt=True))


_SENT = frozenset(
    {
        "name",
        "char",
        "varchar",
        "bpchar",
        "json",
        "jsonb",
        "xid",
        "xml",
        "pg_node_tree",
        "_name",
        "_aclitem",
        "_char",
        "_varchar",
    }
)
"""Types that are texts or other numbers in the engine, and have an OID of their own beside their columns."""


def output_oids(tree: exp.Query) -> dict[int, int]:
    """Return the OIDs, by position, of outputs that visibly have a type which the engine does not tell."""
    if isinstance(tree, exp.SetOperation):
        sides = [output_oids(side) for side in (tree.left, tree.right) if isinstance(side, exp.Query)]
        return dict(sides[0].items() & sides[-1].items())
    oids: dict[int, int] = {}
    position = 0
    for output in tree.selects:
        types = _starred(tree, output) if output.is_star else [_output_type(output.unalias())]
        if types is None:
            break  # it stands for any number of columns
        for number, type_ in enumerate(types, position):
            if (base := _DOMAINS.get(type_, type_)) in _SENT:
                oids[number] = type_names()[base]
        position += len(types)
    return oids


def _output_type(node: exp.Expr) -> str:
    """Return the type that an output visibly has, also through an alias in a subquery; "" if none is visible."""
    inner = node.unnest()
    if isinstance(inner, exp.Select):
        return _output_type(inner.selects[0].unalias()) if inner.selects else ""
    if isinstance(inner, exp.Array) and inner.expressions and isinstance(inner.expressions[0].unnest(), exp.Select):
        inner = exp.ArrayAgg(this=inner.expressions[0].unnest().selects[0].unalias())
        inner.parent = node.parent
    if isinstance(inner, exp.ArrayAgg):
        value = inner.this
        while isinstance(value, (exp.Order, exp.Distinct)):
            value = value.this if isinstance(value, exp.Order) else value.expressions[0]
        type_ = _output_type(value)
        return f"_{_DOMAINS.get(type_, type_)}" if type_ else ""
    if isinstance(inner, (exp.JSONExtract, exp.JSONBExtract)):
        return _output_type(inner.this)
    if isinstance(inner, (exp.Max, exp.Min)):
        type_ = _output_type(inner.this)
        return "" if type_ == "name" else type_  # names have no such aggregate, they become texts
    if isinstance(inner, (exp.Case, exp.Coalesce)):
        types = {_output_type(value) for value in _results(inner)} - {_LITERAL}
        return types.pop() if len(types) == 1 else ""
    if isinstance(inner, exp.Column) and not visible_type(inner):
        source = relation_of(inner)
        columns = {} if source is None else relations()[source.db or PG_CATALOG, source.name].columns
        if inner.name in columns:
            return columns[inner.name][0]
        named = [alias.this for alias in inner.root().find_all(exp.Alias) if alias.alias == inner.name]
        if named and not any(column.name == inner.name for value in named for column in value.find_all(exp.Column)):
            types = {_output_type(value) for value in named}
            return types.pop() if len(types) == 1 else ""
    return visible_type(inner)


def _first_types(query: exp.Expr) -> list[str] | None:
    """Return the types of the columns of a question that WITH names, as its first SELECT has them; None if it has a star."""
    while isinstance(query, exp.SetOperation):
        query = query.left
    if not isinstance(query, exp.Select) or any(output.is_star for output in query.selects):
        return None
    return [_output_type(output.unalias()) for output in query.selects]


def _starred(tree: exp.Query, star: exp.Expr) -> list[str] | None:
    """Return the types of the columns of `*` or `x.*`, of relations of the catalogs; None of other sources."""
    first = tree.args.get("from_")
    joins = tree.args.get("joins") or []
    sources = [] if first is None else [first.this, *(join.this for join in joins)]
    label = star.table if isinstance(star, exp.Column) else ""
    if label:
        sources = [source for source in sources if source.alias_or_name == label]
    elif any(join.args.get("using") or join.method for join in joins):
        return None
    ctes = {cte.alias: cte.this for cte in tree.find_all(exp.CTE)}
    if len(sources) == 1 and sources[0].name in ctes:
        return _first_types(ctes[sources[0].name])
    keys = [(source.db or PG_CATALOG, source.name) if isinstance(source, exp.Table) else ("", "") for source in sources]
    if not keys or any(key not in relations() for key in keys):
        return None
    return [type_ for key in keys for type_, _ in relations()[key].columns.values()]
