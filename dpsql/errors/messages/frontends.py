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

register(
    "connection_forked",
    "08003",
    "this connection belongs to the process that this one was forked from",
    "open a connection in each process (with gunicorn in post_worker_init, with multiprocessing in the worker, or start its "
    "processes with spawn)",
    InterfaceError,
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
    "the answer was not ready at the time at which this policy responds",
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
register(
    "batch_watch",
    "0A000",
    "a batch cannot compare with dp.threshold: what it costs depends on what is above",
    "use dpsql watch FILE --threshold T, or RESET dp.threshold",
)
register("command_unknown", "42601", "there is no command {word}", "", InterfaceError)
register("topic_unknown", "42704", "the documentation has no page {topic}", "", InterfaceError)
register("command_argument", "42601", "{command} {problem}", "\\? lists the commands", InterfaceError)
register("query_unknown", "42704", "no query is saved under the name {name}", "", InterfaceError)
register("file_read", "58P01", "cannot read {place}: {problem}", "name a text file in UTF-8", InterfaceError)
register("file_write", "58030", "cannot write {place}: {problem}", "name a place that can be written", Fault)
register(
    "scratch_database",
    "55000",
    "the scratch database {problem}",
    "name an empty database of its own (createdb scratch): tables are made in it and dropped at the end; what an audit that was "
    "killed left there are schemas dpsql_audit_..., which DROP SCHEMA ... CASCADE removes",
    InterfaceError,
)
register("text_unfinished", "42601", "the {what} that starts here does not end", "close it")
register(
    "batch_budget",
    "53400",
    "the whole set costs {cost}, which does not fit: {short}",
    "nothing was run; ask for less (SET dp.epsilon, fewer statements), or ask the owner for more",
    BudgetRefusal,
)
register(
    "batch_name",
    "42602",
    "the name {name} of this result {problem}",
    "write `-- name: NAME` before a statement, a name of letters, digits, _ and - that no other result has",
    InterfaceError,
)
register(
    "batch_weight",
    "22023",
    "the weight {weight} is no number from 1/{most} to {most}",
    "write `-- weight: 3` before a statement whose errors count three times in the measurement plan",
    InterfaceError,
)
register(
    "batch_lost",
    "55000",
    "it was charged before (receipt {receipt}) and its answer is lost",
    "`--charge-again` asks it again, which is charged again",
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
    "name a DuckDB, Parquet or CSV file, a glob such as 'visits-*.csv', or a folder of such files",
    InterfaceError,
)
register("init_unit", "42703", "--unit {unit}: {problem}", "{way}", InterfaceError)
register(
    "init_exists", "58P02", "{place} exists already", "name another file with --out, or move it away", InterfaceError
)
register(
    "init_answers",
    "22023",
    "{place} is no file of answers: {problem}",
    "`dpsql help first_hour` has an example",
    InterfaceError,
)
register(
    "init_answer",
    "22023",
    "{place}: the answer {answer} to {question} means nothing: {problem}",
    "`dpsql help first_hour` lists the questions",
    InterfaceError,
)
register(
    "init_unanswered",
    "22023",
    "{question} has no answer: {words}",
    "add it to the file of --answers, or run dpsql init at a terminal",
    InterfaceError,
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
register("risk_no_table", "42P01", "there is no table {table} in the policy", "", InterfaceError)
register("risk_no_column", "42703", "there is no column {column} in table {table}", "", InterfaceError)
register(
    "risk_public_table",
    "0A000",
    "table {table} is public: nobody is in it who could be recognised",
    "name a table whose rows belong to persons",
    InterfaceError,
)
register(
    "risk_columns",
    "22023",
    "between 1 and {most} columns are compared at a time",
    "--columns: name those that somebody is most likely to know of a person",
    InterfaceError,
)
register(
    "risk_combinations",
    "54000",
    "there are more than {most} ways to make these columns coarser together",
    "--columns: name fewer of them",
    InterfaceError,
)
register(
    "plot_missing",
    "58P01",
    "pictures need Altair, which is not installed",
    "install it with the extra: pip install 'dpsql[plot]'",
    InterfaceError,
)
register(
    "plot_ending",
    "22023",
    "{place} ends in none of {endings}",
    "its ending says how the picture is written",
    InterfaceError,
)
register(
    "plot_exact",
    "0A000",
    "this question has no exact numbers to draw: {problem}",
    "--exact draws what DuckDB answers to the same text over all rows, one row for each combination of keys",
    InterfaceError,
)
register(
    "plot_failed",
    "58000",
    "the picture could not be drawn: {problem}",
    "the answer itself is stored: asking again, for another format or without a picture, is free",
    Fault,
)
register(
    "plot_nothing",
    "0A000",
    "this answer cannot be drawn: a picture has noisy numbers over at most two columns of keys",
    "select one or two keys and the numbers of interest",
    InterfaceError,
)
