"""Sentences about the public remainder of a query in its sandbox, and about releases."""

from __future__ import annotations

from dpsql.errors.exceptions import Fault, register

register(
    "sandbox_time",
    "57014",
    "what is computed from the released numbers took too long and was stopped",
    "ask for fewer rows or a simpler expression over the results",
)
register(
    "sandbox_memory",
    "53200",
    "what is computed from the released numbers needs too much memory",
    "ask for fewer rows, or leave out joins and windows over the results",
)
register("sandbox_rows", "54000", "the answer would have more than {most} rows", "add LIMIT, or group by fewer keys")
register(
    "sandbox_value",
    "22000",
    "an expression over the released numbers has no value: {category}",
    "guard it, for example x / nullif(y, 0) or TRY_CAST(x AS type)",
)
register(
    "sandbox_query",
    "42000",
    "the part of the query over the released numbers cannot be run ({category} error)",
    "check that the types on both sides of its operators, joins and set operations agree",
)
register(
    "sandbox_text",
    "42804",
    "{text} is used over the released numbers as what it is not: a number, a day or a truth value",
    "compare texts with texts, in quotes (x = '3'); or write TRY_CAST(x AS INTEGER), which is NULL for a text that is no number",
)
register("sandbox_broken", "58000", "the engine for released numbers failed and was started again", "ask again", Fault)
register(
    "interval_place",
    "0A000",
    "{function} cannot stand here",
    "over aggregated, joined or windowed results, make it an output column of its own, which ORDER BY does not name",
)
