"""Sentences about SQL text and statements, before names are looked up."""

from __future__ import annotations

from dpsql.errors.exceptions import InterfaceError, register

register("not_text", "22000", "a statement is a text, not {kind}", "", InterfaceError)
register(
    "too_long",
    "54000",
    "the statement is longer than {most} characters",
    "send a shorter one; values belong in parameters",
)
register(
    "bad_character", "22021", "the statement contains the character {code}, which SQL text cannot contain", "remove it"
)
register("empty", "42601", "there is no statement", "write one, for example SELECT COUNT(*) FROM a_table")
register("syntax", "42601", "this is not SQL that dpsql reads: {detail}", "`dpsql help sql` says what can be asked")
register("too_many_tokens", "54000", "the statement has more than {most} words", "split it")
register(
    "too_deep", "54001", "the statement is nested more than {most} levels deep", "name intermediate results with WITH"
)
register(
    "too_many_readings",
    "54001",
    "the statement can be read in too many ways",
    "give each JOIN its ON, use fewer calls within calls, and name intermediate results with WITH",
)
register("many_statements", "42601", "one statement at a time", "send them one by one, or use `dpsql run` for files")
register(
    "not_a_query",
    "42501",
    "{word} is not allowed: only questions are answered here",
    "write SELECT ..., EXPLAIN, SET, SHOW or DESCRIBE",
)
register("parameter_count", "07001", "values for parameters: {want} needed, {got} given", "", InterfaceError)
register("parameter_missing", "07001", "no value was given for parameter {name}", "", InterfaceError)
register(
    "parameter_value",
    "22023",
    "{kind} cannot be a parameter",
    "use numbers, text, booleans, dates or None",
    InterfaceError,
)
register(
    "named_argument",
    "0A000",
    "the named argument {name} does not exist here",
    "clamp values by contribution_bounds_per_row => (low, high), what one unit adds to each group by "
    "contribution_bounds_per_group => (low, high); error bars come with every answer",
)
register(
    "report_format",
    "0A000",
    "there is no report_format: answers are rows, not JSON or PROTO",
    "leave it out; DP_INTERVAL_LOW(COUNT(*)) and DP_INTERVAL_HIGH(COUNT(*)) are columns with the ends of the error bar",
)
register(
    "anonymization",
    "0A000",
    "{word} is the older spelling of differential privacy in GoogleSQL",
    "write {way}",
)
register(
    "pivot",
    "0A000",
    "this PIVOT is not understood: {reason}",
    "write FROM (SELECT k, x, g FROM t) PIVOT (SUM(x) FOR k IN ('a', 'b')), or PIVOT (SUM(x) FOR k IN ('a', 'b') GROUP BY g)",
)
register(
    "unpivot",
    "0A000",
    "this UNPIVOT is not understood: {reason}",
    "write FROM t UNPIVOT (v FOR k IN (a, b)), or FROM (UNPIVOT t ON a, b INTO NAME k VALUE v)",
)
register(
    "group_bounds",
    "0A000",
    "contribution_bounds_per_group is not understood here: {reason}",
    "{way}",
)
register(
    "named_argument_place",
    "42601",
    "{name} stands behind one argument and has two numbers",
    "write AVG(x, contribution_bounds_per_row => (0, 100))",
)
