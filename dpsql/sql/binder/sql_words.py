"""Names of the parts of a text in refusals: as SQL writes them, never the parser's names."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.sql.parse import dialect
from dpsql.sql.parser import WRITTEN_NAME

_WORDS: dict[type[exp.Expr], str] = {
    exp.Tuple: "a list in brackets", exp.Star: "*", exp.Placeholder: "a parameter", exp.Parameter: "a parameter",
    exp.SessionParameter: "a parameter", exp.Lambda: "x -> ...", exp.Kwarg: "name => value", exp.PropertyEQ: "name := value",
    exp.Bracket: "a subscript [...]", exp.Slice: "a slice [a:b]", exp.Dot: "a field of a value", exp.Struct: "a struct",
    exp.Array: "a list [...]", exp.Table: "a table", exp.Subquery: "a subquery", exp.Select: "SELECT", exp.Order: "ORDER BY",
    exp.Ordered: "ORDER BY", exp.Group: "GROUP BY", exp.Sort: "SORT BY", exp.Cluster: "CLUSTER BY",
    exp.Distribute: "DISTRIBUTE BY", exp.TableSample: "TABLESAMPLE", exp.WindowSpec: "a frame", exp.TableAlias: "an alias",
    exp.Alias: "an alias", exp.Identifier: "a name", exp.Column: "a column", exp.Literal: "a literal", exp.Paren: "brackets",
    exp.IgnoreNulls: "IGNORE NULLS", exp.RespectNulls: "RESPECT NULLS", exp.WithinGroup: "WITHIN GROUP",
    exp.AtTimeZone: "AT TIME ZONE", exp.HexString: "a hexadecimal literal", exp.BitString: "a bit string",
    exp.ByteString: "a string with escapes", exp.National: "a national string", exp.RawString: "a string in dollars",
    exp.Heredoc: "a string in dollars", exp.UnicodeString: "a string with escapes",
    exp.PositionalColumn: "#n", exp.DataType: "a type", exp.Cast: "CAST", exp.TryCast: "TRY_CAST", exp.Var: "a word",
    exp.CTE: "WITH", exp.HavingMax: "HAVING MAX", exp.SetOperation: "a set operation", exp.Escape: "ESCAPE",
    exp.Command: "a command", exp.Case: "CASE", exp.If: "CASE", exp.PivotAlias: "an alias", exp.Columns: "COLUMNS(...)",
    exp.LimitOptions: "LIMIT in percent", exp.Is: "IS", exp.In: "IN", exp.Between: "BETWEEN",
}  # fmt: skip
_SLOTS = {
    "expression": "a second argument", "count": "a second argument", "expressions": "more arguments", "pivots": "PIVOT",
    "sample": "TABLESAMPLE", "laterals": "LATERAL", "order": "ORDER BY", "sort": "SORT BY", "with": "WITH", "when": "a time",
    "except": "EXCLUDE", "replace": "REPLACE", "rename": "RENAME", "only": "ONLY", "ordinality": "ORDINALITY",
    "operation_modifiers": "such words", "into": "INTO", "locks": "FOR UPDATE", "connect": "CONNECT BY", "match": "MATCH",
    "alias": "an alias", "unit": "a unit", "recursive": "RECURSIVE", "changes": "CHANGES", "version": "a version",
    "kind": "such words", "materialized": "MATERIALIZED", "over": "OVER", "spec": "a frame", "exclude": "EXCLUDE",
    "nulls_first": "NULLS FIRST", "db": "a schema before its name", "catalog": "a database before its name",
    "method": "NATURAL and the like", "fill": "WITH FILL", "having": "HAVING", "group": "GROUP BY", "where": "WHERE",
}  # fmt: skip
"""Descriptions of the slots of nodes whose names are not words of SQL."""


_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Explode: "UNNEST", exp.GroupConcat: "STRING_AGG", exp.RegexpLike: "REGEXP_MATCHES", exp.TimeToUnix: "EPOCH",
    exp.ArraySize: "ARRAY_LENGTH", exp.ArrayContains: "LIST_CONTAINS", exp.BitwiseAndAgg: "BIT_AND",
    exp.BitwiseOrAgg: "BIT_OR", exp.BitwiseXorAgg: "BIT_XOR", exp.LogicalAnd: "BOOL_AND", exp.LogicalOr: "BOOL_OR",
    exp.UnixToTime: "TO_TIMESTAMP", exp.StrToTime: "STRPTIME", exp.Transform: "LIST_TRANSFORM", exp.SHA2: "SHA256",
    exp.Rand: "RANDOM", exp.CurrentVersion: "VERSION", exp.DateFromParts: "MAKE_DATE", exp.JSONObject: "JSON_OBJECT",
    exp.ApproxDistinct: "APPROX_COUNT_DISTINCT", exp.IsNan: "ISNAN", exp.DateBin: "TIME_BUCKET",
    exp.Getbit: "GET_BIT", exp.Array: "LIST_VALUE", exp.Struct: "STRUCT_PACK", exp.ArrayContainsAll: "LIST_HAS_ALL",
    exp.IsInf: "ISINF", exp.JarowinklerSimilarity: "JARO_WINKLER_SIMILARITY", exp.ParseJSON: "JSON",
    exp.JSONArray: "JSON_ARRAY", exp.JSONExtract: "JSON_EXTRACT", exp.JSONExtractScalar: "JSON_EXTRACT_STRING",
    exp.JSONBExtract: "JSONB_EXTRACT_PATH", exp.JSONBExtractScalar: "JSONB_EXTRACT_PATH_TEXT",
    exp.JSONObjectAgg: "JSON_OBJECT_AGG", exp.JSONBObjectAgg: "JSONB_OBJECT_AGG", exp.CosineDistance: "LIST_COSINE_DISTANCE",
    exp.EuclideanDistance: "LIST_DISTANCE", exp.ArrayOverlaps: "LIST_HAS_ANY", exp.ArrayMax: "LIST_MAX", exp.ArrayMin: "LIST_MIN",
    exp.TimeFromParts: "MAKE_TIME", exp.TimestampFromParts: "MAKE_TIMESTAMP", exp.SHA: "SHA1", exp.StPoint: "ST_POINT",
    exp.RegexpSplit: "STRING_SPLIT_REGEX", exp.ExplodingGenerateSeries: "GENERATE_SERIES",
    exp.FarmFingerprint: "FARMFINGERPRINT64",
    exp.YearOfWeek: "YEAROFWEEK", exp.YearOfWeekIso: "YEAROFWEEKISO", exp.TimestampTzFromParts: "TIMESTAMPTZFROMPARTS",
    exp.TimestampLtzFromParts: "TIMESTAMPLTZFROMPARTS",
}  # fmt: skip
"""SQL names of the functions whose names in the parser exist neither in DuckDB nor in PostgreSQL."""


WRITTEN = "written"
"""Key of a node's `meta` under which stands the analyst's own expression that the node takes the place of."""


def sql_text(node: exp.Expr) -> str:
    """Return the text of an expression for a message, with what the analyst wrote in place of what the binder put there."""
    return str(node.transform(lambda part: part.meta_get(WRITTEN, part)).sql("duckdb"))


def function_word(node: exp.Func) -> str:
    """Return the SQL name of a function: the written one if it is known, or one of several."""
    if (written := node.meta_get(WRITTEN_NAME)) is not None:
        return str(written)
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()
    if isinstance(node, exp.Pad):
        return "LPAD" if node.args.get("is_left") else "RPAD"
    return _FUNCTIONS.get(type(node), node.sql_name())


def sql_word(node: exp.Expr) -> str:
    """Return the word or sign of `node` in SQL, such as BETWEEN, LOG or &, or a description such as "a list in brackets"."""
    if isinstance(node, exp.LimitOptions) and node.args.get("with_ties"):
        return "WITH TIES"
    named = next((_WORDS[kind] for kind in type(node).__mro__ if kind in _WORDS), None)
    if named is not None:
        return named
    if isinstance(node, exp.Func):
        return function_word(node)
    sign = _sign(node) if isinstance(node, (exp.Binary, exp.Unary)) else ""
    return sign or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


def _sign(node: exp.Expr) -> str:
    """Return the sign of an operator, as written between or before its operands; empty if the dialect has none."""
    operands = {"this": exp.column("a")} | ({"expression": exp.column("b")} if isinstance(node, exp.Binary) else {})
    try:
        text = type(node)(**operands).sql(dialect())
    except (SqlglotError, ValueError):
        return ""
    return " ".join(word for word in text.split() if word not in ("a", "b")).rstrip("a")


def slot_word(name: str, value: object) -> str:
    """Return the SQL word or a description of the content of the slot `name` of a node."""
    name = name.strip("_")
    if name in _SLOTS:
        return _SLOTS[name]
    clause = isinstance(value, exp.Expr) and not isinstance(value, (exp.Condition, exp.Identifier))
    return sql_word(value) if clause and isinstance(value, exp.Expr) else name.upper().replace("_", " ")
