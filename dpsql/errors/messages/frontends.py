"""Sentences of the front ends: connections, files, scripts, the demo."""

from __future__ import annotations

from dpsql.errors.exceptions import (
    BudgetRefusal,
    Fault,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    register,
)

register("connection_closed", "08003", "this {thing} is closed", "open a new one", InterfaceError)
register(
    "no_result",
    "24000",
    "there is no answer to fetch from",
    "execute a question first; SET and the like return no rows",
    InterfaceError,
)
register(
    "executemany",
    "0A000",
    "executemany is refused: each set of values would be charged, and only the last answer kept",
    "call execute for each set of values",
    NotSupportedError,
)
register("stopped", "57014", "the question was stopped{charge}", "", OperationalError)
register(
    "answer_late",
    "57014",
    "the answer was not there at the time at which this policy answers",
    "ask for less at once, or ask the owner for a longer timing.constant_seconds; asking again is charged again",
    Fault,
)
register(
    "unexpected",
    "XX000",
    "dpsql met something it did not expect and stopped (incident {incident})",
    "the custodian's log has the details under this id; `dpsql budget history` tells what was charged",
    InternalError,
)
register("command_unknown", "42601", "there is no command {word}", "", InterfaceError)
register("command_argument", "42601", "{command} {problem}", "\\? lists the commands", InterfaceError)
register("query_unknown", "42704", "no query is kept under the name {name}", "", InterfaceError)
register("file_read", "58P01", "cannot read {place}: {problem}", "name a text file in UTF-8", InterfaceError)
register("file_write", "58030", "cannot write {place}: {problem}", "name a place that can be written", Fault)
register("text_unfinished", "42601", "the {what} that starts here does not end", "close it")
register(
    "batch_budget",
    "53400",
    "the whole set costs {cost}, which does not fit: {short}",
    "nothing was run; ask for less (SET dp.epsilon, fewer statements), or ask the owner for more",
    BudgetRefusal,
)
register(
    "batch_lost",
    "55000",
    "it was charged before (receipt {receipt}) and its answer is lost",
    "`--charge-again` asks it anew, which is charged once more",
    Fault,
)
register(
    "batch_record",
    "55000",
    "{place} is not the record of a run of data set {dataset}",
    "name another folder for --out",
    InterfaceError,
)
register(
    "batch_running",
    "55006",
    "another `dpsql run` is at work in {place}",
    "wait, or name another folder for --out",
    InterfaceError,
)
register(
    "init_source",
    "58P01",
    "cannot read the structure of {place}: {problem}",
    "name a DuckDB, Parquet or CSV file",
    InterfaceError,
)
register("init_unit", "42703", "--unit {unit}: {problem}", "{way}", InterfaceError)
register(
    "init_exists", "58P02", "{place} exists already", "name another file with --out, or move it away", InterfaceError
)
register(
    "demo_missing",
    "58P01",
    "the demo's data is not installed",
    "install it with the extra: pip install 'dpsql[demo]'",
    Fault,
)
register(
    "demo_write", "58030", "cannot write the demo at {place}: {problem}", "name a folder that can be written", Fault
)
