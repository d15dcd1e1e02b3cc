"""The allow-list for queries on the catalogs: the one for released numbers, and what PostgreSQL's clients need in addition."""

from __future__ import annotations

from collections.abc import Container

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.catalog.engine_errors import absent_call
from dpsql.frontends.pgwire.catalog.naming import called
from dpsql.functions.values import MOST_TEXT
from dpsql.sql.binder.allow_list import NODES as RESULT_NODES
from dpsql.sql.binder.scope import sql_word
from dpsql.sql.lexer import place

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
