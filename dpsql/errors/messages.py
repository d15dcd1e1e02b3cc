"""Every sentence of the register, by room. Importing this module fills `errors.REGISTER`."""

from __future__ import annotations

from dpsql.errors.exceptions import (
    BudgetRefusal,
    Fault,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    PolicyRefusal,
)
from dpsql.errors.exceptions import register as _

# --- policy ---------------------------------------------------------------------------------------------------------

_("policy_file", "58P01", "cannot read the policy {origin}: {problem}", "name a YAML file in UTF-8", PolicyRefusal)
_(
    "policy_invalid",
    "F0000",
    "the policy {origin} is not acceptable: {path} {sentence}{more}",
    "`dpsql check` lists every problem",
    PolicyRefusal,
)
_(
    "demo_missing",
    "58P01",
    "the demo's data is not installed",
    "install it with the extra: pip install 'dpsql[demo]'",
    Fault,
)
_("demo_write", "58030", "cannot write the demo at {place}: {problem}", "name a folder that can be written", Fault)

# --- ledger and budget ----------------------------------------------------------------------------------------------

_(
    "budget_exceeded",
    "53400",
    "the charge does not fit the budget: {short}",
    "ask a coarser question or use a smaller epsilon; the owner can raise the limit in the policy",
    BudgetRefusal,
)
_(
    "request_repeated",
    "ZP101",
    "a request with this id has been charged before (entry {entry})",
    "its answer, if there is one, is in the stored releases; a new attempt needs a new id",
)
_(
    "request_lost",
    "ZP102",
    "a request with this id has been charged before (entry {entry}), and its answer is not stored",
    "it may still be running; a new attempt needs a new id, and is charged",
)
_("ledger_request", "XX000", "a charge was not well formed: {problem}", "", InternalError)
_("ledger_shape", "XX000", "a charge in {left} cannot be compared with a limit in {right}", "", InternalError)
_("ledger_account", "XX000", "scope {scope} has no account in the ledger", "", InternalError)
_("ledger_resolved", "XX000", "entry {entry} has been resolved before", "", InternalError)
_(
    "ledger_url",
    "08001",
    "a ledger is named sqlite:///PATH or postgresql://USER@HOST/DATABASE",
    "mend `ledger:` in the policy",
    Fault,
)
_(
    "ledger_missing",
    "58P01",
    "there is no ledger at {address}",
    "`dpsql check --create-ledger` makes one for a data set that never had one",
    Fault,
)
_(
    "ledger_known",
    "58P01",
    "data set {dataset} has a ledger at {address}, and it is gone or empty",
    "put the newest copy back; what it had spent is not forgotten. The note of it is kept in {place}",
    Fault,
)
_(
    "ledger_foreign",
    "58P01",
    "what is at {address} is not the ledger of data set {dataset}",
    "give each data set a ledger of its own",
    Fault,
)
_(
    "ledger_format",
    "0A000",
    "the ledger has format {found}, this dpsql reads format {known}",
    "use the version of dpsql that wrote it",
    Fault,
)
_(
    "ledger_accountant",
    "55000",
    "scope {scope} is accounted in {found}, not in {asked}",
    "the accountant of a scope is fixed when its account is opened; put it back in the policy",
    Fault,
)
_(
    "ledger_unit",
    "55000",
    "the ledger has charges for the privacy unit {known}, and the policy is about {unit}",
    "losses to different units do not add up: begin another ledger, or say `dpsql check --change-unit` once",
    Fault,
)
_(
    "ledger_tampered",
    "XX001",
    "the ledger does not hold at entry {entry}: {problem}",
    "nothing is charged to it until its newest true copy is put back; `dpsql budget verify` tells more",
    IntegrityError,
)
_(
    "ledger_older",
    "XX001",
    "the ledger is older than its head: it ends before entry {entry}, which has been seen",
    "put the newest copy back; what it had spent is not forgotten",
    IntegrityError,
)
_("ledger_damaged", "XX001", "the ledger cannot be read: {problem}", "put its newest copy back", IntegrityError)
_(
    "ledger_key_missing",
    "58P01",
    "there is no usable ledger key at {place}",
    "put the key file back; without it no entry can be checked or written",
    Fault,
)
_("ledger_key_open", "42501", "the ledger key {place} is open to others than its owner", "chmod 600 the file", Fault)
_(
    "ledger_key_wrong",
    "28000",
    "the ledger key is not the one this ledger was made with",
    "put the key file back",
    Fault,
)
_(
    "ledger_head_missing",
    "58P01",
    "the head of the ledger is not in its second place",
    "the custodian's log names the place, put it back; on a new machine the owner adopts a ledger known to be the newest "
    "copy",
    Fault,
)
_(
    "ledger_head_not_written",
    "58030",
    "the charge was recorded, its head could not be written",
    "see that the state directory can be written",
    Fault,
)
_(
    "ledger_state",
    "58030",
    "cannot use {place}",
    "the state directory must be the owner's own and writable; DPSQL_STATE names another",
    Fault,
)
_(
    "ledger_state_busy",
    "53000",
    "the state directory of the ledger cannot be used now",
    "try again; the custodian's log has the reason (too many open files, or permissions that changed)",
    Fault,
)
_("ledger_locked", "55P03", "{what} was busy for {seconds} seconds", "try again", Fault)
_(
    "ledger_read_only",
    "25006",
    "{what} cannot be written",
    "see that its file and directory (or table) are writable",
    Fault,
)
_(
    "ledger_disk_full",
    "53100",
    "the disk of {what} is full or does not take the write",
    "make room and ask again",
    Fault,
)
_("ledger_unreachable", "08006", "the database of {what} cannot be reached", "try again", Fault)
_(
    "ledger_commit_unknown",
    "08007",
    "the ledger could not confirm the charge, which counts as spent if it was recorded",
    "see the room on its disk and the connection, then ask again",
    Fault,
)
_("ledger_format_unknown", "22023", "the ledger is exported as json or csv, not as {format}", "", InterfaceError)
_(
    "releases_damaged",
    "XX001",
    "the store of releases cannot be read",
    "the owner may delete it: only free repeats of answers are lost",
    Fault,
)
_(
    "release_unknown",
    "XX001",
    "the stored release of receipt {receipt} was written by another version of dpsql and cannot be read",
    "ask with the version that stored it, or the owner removes it from the store and it is measured again",
    Fault,
)
_("release_key", "XX000", "a stored release is named by 64 hexadecimal digits", "", InternalError)

# --- noise ----------------------------------------------------------------------------------------------------------

_(
    "noise_too_large",
    "ZP201",
    "the {mechanism} noise this question needs is beyond what is drawn exactly",
    "ask for a larger epsilon, or let each privacy unit touch fewer groups (max_groups)",
)
_(
    "noise_guard",
    "XX000",
    "the noise could not be drawn",
    "try again; if it stays, the custodian's log tells more",
    Fault,
)
_("noise_plan", "XX000", "the noise plan does not hold together: {problem}", "", InternalError)
_("noise_answer", "XX000", "the engine's answer does not have the shape that was asked for", "", Fault)
_(
    "selection_delta",
    "ZP202",
    "delta {delta} over {keys} keys is out of the range of partition selection",
    "give partition selection a larger delta, let each privacy unit touch fewer groups, or group by public keys",
)
_(
    "selection_epsilon",
    "ZP203",
    "epsilon {epsilon} for each key is too small for partition selection alone",
    "ask for a larger epsilon, release COUNT(*) in the same question, or group by public keys",
)
_(
    "loss_infinite",
    "ZP204",
    "under the accountant {accountant} this question has no finite price",
    "use the Laplace mechanism, or an accountant that knows this one",
)
_(
    "accountant_budget",
    "22023",
    "the accountant {accountant} cannot be opened: {problem}",
    "mend `budget:` in the policy",
    PolicyRefusal,
)

# --- sandbox and release --------------------------------------------------------------------------------------------

_(
    "sandbox_time",
    "57014",
    "what is computed from the released numbers took too long and was stopped",
    "ask for fewer rows or a simpler expression over the results",
)
_(
    "sandbox_memory",
    "53200",
    "what is computed from the released numbers needs too much memory",
    "ask for fewer rows, or leave out joins and windows over the results",
)
_("sandbox_rows", "54000", "the answer would have more than {most} rows", "add LIMIT, or group by fewer keys")
_(
    "sandbox_value",
    "22000",
    "an expression over the released numbers has no value: {category}",
    "guard it, for example x / nullif(y, 0) or TRY_CAST(x AS type)",
)
_(
    "sandbox_query",
    "42000",
    "the part of the query over the released numbers cannot be run ({category} error)",
    "see that the types on both sides of its operators, joins and set operations agree",
)
_("sandbox_broken", "58000", "the engine for released numbers failed and was started again", "ask again", Fault)
_(
    "interval_place",
    "0A000",
    "{function} cannot stand here",
    "over aggregated, joined or windowed results it is an output column of its own, and ORDER BY does not name it",
)

# --- doors ----------------------------------------------------------------------------------------------------------

_("connection_closed", "08003", "this {thing} is closed", "open a new one", InterfaceError)
_(
    "no_result",
    "24000",
    "there is no answer to fetch from",
    "execute a question first; SET and the like return no rows",
    InterfaceError,
)
_(
    "executemany",
    "0A000",
    "executemany is refused: each set of values would be charged, and only the last answer kept",
    "call execute for each set of values",
    NotSupportedError,
)
_("stopped", "57014", "the question was stopped{charge}", "", OperationalError)
_(
    "answer_late",
    "57014",
    "the answer was not there at the time at which this policy answers",
    "ask for less at once, or ask the owner for a longer timing.constant_seconds; asking again is charged again",
    Fault,
)
_(
    "unexpected",
    "XX000",
    "dpsql met something it did not expect and stopped (incident {incident})",
    "the custodian's log has the details under this id; `dpsql budget history` tells what was charged",
    InternalError,
)
_("command_unknown", "42601", "there is no command {word}", "", InterfaceError)
_("file_read", "58P01", "cannot read {place}: {problem}", "name a text file in UTF-8", InterfaceError)
_("file_write", "58030", "cannot write {place}: {problem}", "name a place that can be written", Fault)
_("text_unfinished", "42601", "the {what} that starts here does not end", "close it")
_(
    "batch_budget",
    "53400",
    "the whole set costs {cost}, which does not fit: {short}",
    "nothing was run; ask for less (SET dp.epsilon, fewer statements), or ask the owner for more",
    BudgetRefusal,
)
_(
    "batch_lost",
    "55000",
    "it was charged before (receipt {receipt}) and its answer is lost",
    "`--charge-again` asks it anew, which is charged once more",
    Fault,
)
_(
    "batch_record",
    "55000",
    "{place} is not the record of a run of data set {dataset}",
    "name another folder for --out",
    InterfaceError,
)
_(
    "batch_running",
    "55006",
    "another `dpsql run` is at work in {place}",
    "wait, or name another folder for --out",
    InterfaceError,
)
_(
    "init_source",
    "58P01",
    "cannot read the structure of {place}: {problem}",
    "name a DuckDB, Parquet or CSV file",
    InterfaceError,
)
_("init_unit", "42703", "--unit {unit}: {problem}", "{way}", InterfaceError)
_("init_exists", "58P02", "{place} exists already", "name another file with --out, or move it away", InterfaceError)

# --- wire: BI tools ---------------------------------------------------------------------------------------------------

_("wire_message", "08P01", "invalid message format (type {kind})", "", OperationalError)
_("wire_encoding", "22021", 'invalid byte sequence for encoding "UTF8"', "send text in UTF-8", InterfaceError)
_("wire_unknown", "08P01", "invalid frontend message type {kind}", "", OperationalError)
_("wire_length", "08P01", "invalid message length", "a message has at most {most} bytes here", OperationalError)
_("wire_protocol", "0A000", "unsupported frontend protocol {version}: server supports 3.0", "", OperationalError)
_("wire_state", "08P01", "a message came that cannot come here", "", OperationalError)
_("wire_formats", "08P01", "bind message has {got} result formats but query has {want} columns", "", InterfaceError)
_("wire_format", "22023", "a format is 0 (text) or 1 (binary)", "", InterfaceError)
_("wire_parameter", "22P02", "invalid input for parameter ${number} of type {type}", "", InterfaceError)
_(
    "wire_parameters",
    "08P01",
    "bind message supplies {got} parameters, but the statement requires {want}",
    "",
    InterfaceError,
)
_(
    "wire_range",
    "22003",
    "a value of the answer is out of the range of its column's type",
    "cast it: CAST(x AS double)",
    Fault,
)
_("wire_syntax", "42601", "syntax error in {word}", "")
_("wire_many", "42601", "cannot insert multiple commands into a prepared statement", "send them one by one")
_("wire_limit", "54000", "more than {most} {what} at once", "close some")
_("wire_cancelled", "57014", "canceling statement due to user request", "", OperationalError)
_("wire_timeout", "57014", "canceling statement due to statement timeout", "", OperationalError)
_(
    "wire_busy",
    "53300",
    "sorry, too many clients already",
    "try again, or ask the owner for more connections",
    OperationalError,
)
_("wire_busy_user", "53300", 'too many connections for role "{user}"', "close some", OperationalError)
_(
    "wire_shutdown",
    "57P01",
    "terminating connection due to administrator command",
    "connect again later",
    OperationalError,
)
_(
    "wire_prepare",
    "0A000",
    "{word} as a statement is not supported",
    "prepare through your driver, or send the query itself",
)
_("login_scram", "08P01", "malformed SCRAM message", "", OperationalError)
_(
    "login_failed",
    "28P01",
    'password authentication failed for user "{user}"',
    "the owner gives logins: dpsql user add",
    OperationalError,
)
_("login_user", "28000", "no PostgreSQL user name specified in startup packet", "", OperationalError)
_(
    "login_database",
    "3D000",
    'database "{name}" does not exist',
    'the database of this server is "{dataset}"',
    OperationalError,
)
_(
    "login_tls",
    "28000",
    "no encryption: this server takes passwords over TLS only",
    "connect with sslmode=require",
    OperationalError,
)
_("transaction_failed", "25P02", "current transaction is aborted, commands ignored until end of transaction block", "")
_("transaction_none", "25P01", "{what} can only be used in transaction blocks", "BEGIN first")
_("savepoint_unknown", "3B001", 'savepoint "{name}" does not exist', "")
_("statement_unknown", "26000", 'prepared statement "{name}" does not exist', "")
_("statement_known", "42P05", 'prepared statement "{name}" already exists', "")
_("portal_unknown", "34000", 'cursor "{name}" does not exist', "")
_("portal_known", "42P03", 'cursor "{name}" already exists', "")
_("portal_broken", "55000", "this portal has failed and is not run again", "bind it anew, which may be charged")
_("cursor_forward", "55000", "cursor can only scan forward", "FETCH [FORWARD] n or ALL")
_("read_only", "25006", "cannot execute {word} in a read-only transaction", "only questions are answered here")
_("read_write", "25006", "transactions are read-only here", "")
_("role_fixed", "42501", 'permission denied to set role "{name}"', "log in as that analyst")
_(
    "setting_unknown",
    "42704",
    'unrecognized configuration parameter "{name}"',
    "SHOW ALL lists them; options of privacy start with dp.",
)
_("setting_fixed", "55P02", 'parameter "{name}" cannot be changed', "")
_("setting_value", "22023", 'invalid value for parameter "{name}": "{value}"', "")
_(
    "copy_table",
    "0A000",
    "COPY of a table would return protected rows as they are",
    "COPY (SELECT ... GROUP BY ...) TO STDOUT",
)
_("copy_target", "0A000", "COPY writes to STDOUT only", "COPY (SELECT ...) TO STDOUT")
_(
    "copy_option",
    "0A000",
    "COPY option {option} is not supported",
    "FORMAT text, csv or binary; DELIMITER, NULL, HEADER",
)
_("catalog_mixed", "0A000", "a question is about the catalogs or about data, not both", "ask them one by one")
_("catalog_statement", "0A000", "this is not a question about the catalogs", "")
_("catalog_source", "0A000", "{name} cannot stand in FROM of a question about the catalogs", "")
_("catalog_function", "42883", "{name} does not exist", "")
_("catalog_type", "42704", 'type "{name}" does not exist', "")
_("catalog_query", "0A000", "this question about the catalogs is not understood", "")
_("user_name", "22023", "{name} is not an analyst of the policy", "known: {known}", InterfaceError)
_("user_password", "22023", "a password has at least {least} characters", "", InterfaceError)
_(
    "user_file",
    "58030",
    "cannot use the logins at {place}: {problem}",
    "the file is the owner's own (mode 600); dpsql user add writes it",
    Fault,
)
_("serve_address", "22023", "{address} is not HOST:PORT", "for example 127.0.0.1:5433", InterfaceError)
_("serve_listen", "58030", "cannot listen on {address}: {problem}", "name another with --listen", Fault)
_("serve_tls", "58030", "cannot use the certificate: {problem}", "--tls-cert and --tls-key name PEM files", Fault)
_(
    "serve_plain",
    "28000",
    "{address} is not this machine alone, and there is no TLS",
    "--tls-cert and --tls-key, --tls-self-signed, or --allow-plain when the network is safe",
    InterfaceError,
)

# --- engines --------------------------------------------------------------------------------------------------------

_(
    "engine_failed",
    "58000",
    "the query could not be run on the data (incident {incident})",
    "the owner finds the reason under this id in the custodian's log; asking again is charged again",
    Fault,
)
_(
    "source_missing",
    "58P01",
    "the data of this data set are not where the policy says ({source})",
    "mend `source:` in the policy",
    Fault,
)
_(
    "source_unreadable",
    "58030",
    "the data of this data set cannot be opened ({source})",
    "the custodian's log has the reason",
    Fault,
)
_(
    "source_table_missing",
    "42P01",
    "table {table} of the policy is not in the source",
    "mend the policy or the source",
    Fault,
)
_(
    "source_column_missing",
    "42703",
    "column {table}.{column} of the policy is not in the source",
    "mend the policy or the source",
    Fault,
)
_(
    "source_setting",
    "55000",
    "the connection to the data does not let {name} be {value}",
    "RESET {name} before the configuration is locked, or give a connection that is not locked",
    Fault,
)
_(
    "source_function",
    "55000",
    "the connection to the data has a function of its own in the place of the engine's {name}",
    "give it another name, or a connection without it",
    Fault,
)
_(
    "source_column_twice",
    "42701",
    "column {table}.{column} of the policy is twice in the header of the source",
    "mend the policy or the source",
    Fault,
)
_(
    "source_table_unreadable",
    "58030",
    "the files of table {table} cannot be read",
    "ask again when they are whole; the custodian's log has the reason",
    Fault,
)
_(
    "source_files_differ",
    "42804",
    "the files of table {table} do not have the same columns",
    "give CSV files the same header line, and Parquet files the columns of the policy",
    Fault,
)
_(
    "source_multiline",
    "55000",
    "table {table} is read from CSV files whose cells hold line breaks, and these are not prepared",
    "the owner runs `dpsql prepare` once for each version of the files",
    Fault,
)
_(
    "promise_broken",
    "55000",
    "the data break a promise of the policy: more than {most} rows of {table} agree on ({columns})",
    "the owner mends the data or the policy (primary_key, unique, max_multiplicity, foreign_keys)",
    Fault,
)
_(
    "source_unsupported",
    "0A000",
    "no engine for source {source}",
    "this version reads duckdb:///file, Parquet and CSV",
    Fault,
)

_(
    "index_folder",
    "58030",
    "cannot write in {place}",
    "make it writable, or name another place for prepared views in DPSQL_CACHE",
    Fault,
)
_(
    "index_not_written",
    "58030",
    "table {table} could not be prepared (incident {incident})",
    "the custodian's log has the reason under this id; questions are answered without it, slower",
    Fault,
)
_(
    "index_source_changed",
    "55000",
    "the source of table {table} changed while it was being prepared",
    "prepare it again when nobody writes to it",
    Fault,
)
_(
    "index_limit",
    "22023",
    "the engine takes no such limits (memory {memory}, jobs {jobs})",
    "memory is written like 4GB, jobs is a number from 1",
    Fault,
)

# --- parse: text and statements -------------------------------------------------------------------------------------

_("not_text", "22000", "a statement is a text, not {kind}", "", InterfaceError)
_(
    "too_long",
    "54000",
    "the statement is longer than {most} characters",
    "send a shorter one; values belong in parameters",
)
_("bad_character", "22021", "the statement holds the character {code}, which no SQL text may", "remove it")
_("empty", "42601", "there is no statement", "write one, for example SELECT COUNT(*) FROM a_table")
_("syntax", "42601", "this is not SQL that dpsql reads: {detail}", "see docs/sql.md for what can be asked")
_("too_many_tokens", "54000", "the statement has more than {most} words", "split it")
_("too_deep", "54001", "the statement is nested more than {most} levels deep", "name intermediate results with WITH")
_("many_statements", "42601", "one statement at a time", "send them one by one, or use `dpsql run` for files")
_(
    "not_a_query",
    "42501",
    "{word} is not allowed: only questions are answered here",
    "write SELECT ..., EXPLAIN, SET, SHOW or DESCRIBE",
)
_("parameter_count", "07001", "the statement has {want} parameters, {got} were given", "", InterfaceError)
_("parameter_missing", "07001", "no value was given for parameter {name}", "", InterfaceError)
_(
    "parameter_value",
    "22023",
    "{kind} cannot be a parameter",
    "use numbers, text, booleans, dates or None",
    InterfaceError,
)
_("option_unknown", "42704", "there is no option {name}", "")
_("option_value", "22023", "{value} is no value of {name}: {wanted}", "")
_(
    "clip_rows",
    "22023",
    "{name} clips what one privacy unit adds up to, and here every row is its own unit",
    "bound the values themselves: clamp(x, lower, upper)",
)
_(
    "tune_blocks",
    "0A000",
    "this question measures {count} private blocks; one is tuned at a time",
    "tune each aggregation over protected tables by itself",
)
_(
    "tune_rows",
    "0A000",
    "under row privacy every row is its own unit: there is no contribution bound to tune",
    "bound the values themselves: clamp(x, lower, upper)",
)
_(
    "tune_results",
    "0A000",
    "this question reads a released result in its aggregation, which is not tuned",
    "tune the aggregation without it: write a value in its place, or leave the condition out",
)
_(
    "tune_distinct",
    "0A000",
    "rows of SELECT DISTINCT belong to nobody: nothing says how many of them one privacy unit has",
    "bound the rows below: tune the question without DISTINCT",
)
_(
    "tune_nothing",
    "0A000",
    "one privacy unit has one row here: there is no contribution bound to tune",
    "",
)
_(
    "max_total_small",
    "22023",
    "max_total {total} is too small to be told from 0 beside {rows} rows of up to {most} that one unit may have",
    "ask for more, or clamp the values more closely: clamp(x, lower, upper)",
)
_("option_limit", "22023", "{name} = {value} is more than the owner allows ({limit})", "ask for less")
_(
    "option_floor",
    "22023",
    "{name} = {value} is less than one question must spend ({limit})",
    "ask with more epsilon; the owner sets per_query.min_epsilon, because the time of each answer tells a little for free",
)

# --- bind: names, types and shapes ----------------------------------------------------------------------------------

_("clause", "0A000", "{what} is not allowed here", "see docs/sql.md for what can be asked")
_("unknown_table", "42P01", 'relation "{name}" does not exist', "")
_("unknown_column", "42703", 'column "{name}" does not exist', "")
_("ambiguous_column", "42702", 'column reference "{name}" is ambiguous', "write table.{name}")
_("duplicate_name", "42712", 'table name "{name}" specified more than once', "give one of them another alias")
_("alias_count", "42P10", "the alias names {got} columns, there are {want}", "name as many columns as there are")
_("table_function", "0A000", "functions cannot stand in FROM", "name a table of the policy (SHOW TABLES lists them)")
_(
    "raw_rows",
    "ZP001",
    "rows of people do not leave: this would return protected rows as they are",
    "ask for an aggregate, for example SELECT COUNT(*) ... or SELECT region, AVG(age) ... GROUP BY region",
)
_(
    "rows_clause",
    "ZP002",
    "{what} over protected rows would choose rows by looking at other people's",
    "aggregate first; {what} over the results is allowed",
)
_(
    "window_over_rows",
    "ZP003",
    "a window function over protected rows would show one person's row beside another's",
    "write PARTITION BY the privacy unit's key in a subquery (row_number, rank, dense_rank, lag, lead, first_value, count, "
    "sum, avg, min, max), or aggregate first: windows over the results are allowed, as SUM(COUNT(*)) OVER (ORDER BY ...)",
)
_(
    "subquery_in_rows",
    "ZP004",
    "this subquery cannot stand in a condition or expression over protected rows",
    "aggregate inside it, join the tables instead, or put IN and EXISTS between the ANDs of WHERE",
)
_(
    "correlated",
    "0A000",
    "this subquery depends on the row around it in a way that is not proven: {reason}",
    "compare with = in its WHERE, or group it in FROM and join the result",
)
_(
    "several_rows",
    "21000",
    "this subquery stands for one value and may return several rows",
    "aggregate without GROUP BY, or add LIMIT 1",
)
_(
    "untyped_column",
    "42804",
    "the type of column {name} of this subquery does not follow from its text",
    "write CAST(... AS type) in the subquery",
)
_(
    "nested_aggregate",
    "42803",
    "{function} cannot hold an aggregate here",
    "put the inner aggregate in a subquery in FROM",
)
_(
    "unknown_function",
    "42883",
    "function {name} does not exist or is not allowed here",
    "docs/sql.md lists the functions that can be used",
)
_(
    "unknown_expression",
    "0A000",
    "{what} is not allowed in expressions over protected rows",
    "docs/sql.md lists what can be used",
)
_("unknown_type", "42704", "type {type} is not allowed", "use integer, double, text, boolean, date or timestamp")
_("unknown_aggregate", "42883", "aggregate {function} is not answered yet", "docs/sql.md lists the aggregates that are")
_("row_list", "ZP005", "{function} returns rows of people as they are", "count or average them instead")
_("wrong_arguments", "42883", "{function} {reason}", "docs/sql.md shows how it is called")
_("not_boolean", "42804", "a condition must be boolean, this is {type}", "compare it with something")
_("bad_number", "22003", "the number {text} is out of range", "use a smaller number")
_(
    "bad_date",
    "22007",
    "'{text}' is not a {type}",
    "write dates as '2024-01-31' and timestamps as '2024-01-31 12:00:00'",
)
_(
    "bad_interval",
    "22007",
    "this interval is not one that can be added",
    "write INTERVAL 3 DAY (second to year, literal)",
)
_(
    "heavy_expression",
    "54001",
    "written out, this expression is too long",
    "compute its inner parts in a subquery in FROM",
)
_(
    "slow_expression",
    "54001",
    "a row could take longer than a millisecond here, so that one person's row could be told by the time of the answer",
    "{way}",
)
_("long_list", "54000", "the IN list has more than {most} entries", "use a range, or a public table to join with")
_(
    "sum_distinct",
    "ZP006",
    "{function}(DISTINCT ...) over pairs is not answered: DISTINCT is for aggregates of one value",
    "use {function} without DISTINCT, or over SELECT DISTINCT in FROM",
)
_("distinct_many", "0A000", "COUNT(DISTINCT ...) takes one column", "concatenate the columns into one expression")
_(
    "unbounded",
    "ZP007",
    "{function}({text}) has no bounds: one person could change it without limit",
    "clamp it yourself, for example {clamped}, or ask the owner to state lower and upper in the policy",
)
_(
    "not_grouped",
    "42803",
    'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function',
    "add it to GROUP BY, or aggregate it",
)
_("group_position", "42P10", "GROUP BY position {number} is not in the select list (1 to {most})", "name the column")
_("null_key", "42804", "NULL cannot be grouped by", "group by a column")
_(
    "unit_key",
    "ZP008",
    "grouping by the privacy unit would return one row for each person",
    "group by something many people share; per-person results may stand in FROM and be aggregated again",
)
_(
    "unit_expression",
    "ZP008",
    "GROUP BY something computed from the privacy unit's key: hardly any group would hold more than one person",
    "group by the key itself (in FROM, and aggregate again), or by what puts many keys together, such as key % 10; "
    "COUNT(DISTINCT key) counts people",
)
_(
    "unit_sets",
    "ZP008",
    "ROLLUP, CUBE and GROUPING SETS with the privacy unit's key would put totals of many people beside rows of one",
    "group by the key and columns alone in FROM; ROLLUP may stand in the SELECT around it",
)
_(
    "clamp_over_results",
    "42883",
    "clamp works on protected rows; over results it is not needed",
    "write least(greatest(x, lower), upper)",
)
_("join", "ZP009", "this join is not proven: {reason}", "{way}")
_("set_of_rows", "ZP010", "this set operation over protected rows is not proven: {reason}", "{way}")
_("semi_join", "ZP015", "this subquery is not proven: {reason}", "{way}")
_("many_blocks", "54000", "the statement has more than {most} private aggregations", "split it")
_("many_measures", "54000", "a SELECT has more than {most} different aggregates", "split it")
_("many_keys", "54000", "GROUP BY has more than {most} keys", "group by fewer")
_("many_columns", "54000", "more than {most} columns", "name the columns that you need")
_(
    "no_max_rows",
    "55000",
    "table {table} has no max_rows in the policy",
    "the owner states how many rows one unit may have",
)
_(
    "too_many_rows_per_unit",
    "ZP011",
    "one person could change {rows} rows here (at most {most})",
    "join fewer tables, or ask the owner for smaller max_rows",
)

# --- price ----------------------------------------------------------------------------------------------------------

_(
    "public_grid",
    "54000",
    "the public keys have {size} combinations (at most {most})",
    "group by fewer or coarser keys, for example date_trunc('month', day)",
)
_(
    "selection_needs_delta",
    "ZP013",
    "grouping by {keys} needs delta (partition selection), and none is allowed",
    "group by columns with a domain, or ask the owner for per_query.delta",
)
_(
    "mechanism_needs_delta",
    "ZP014",
    "the Gaussian mechanism needs delta under a pure accountant, and none is allowed",
    "SET dp.mechanism = 'laplace', or ask the owner for per_query.delta",
)
_("target_error", "22023", "dp.target_error cannot be reached: {reason}", "{way}")
_("analyst_unknown", "28000", "the policy names no analyst {name}", "the owner adds analysts to the policy")
_("project_unknown", "28000", "the policy names no project {name}", "the owner adds projects to the policy")
_("project_fixed", "42501", "this session was opened for project {name}", "open another session to ask for another one")
_(
    "price_disagrees",
    "XX000",
    "two computations of the price disagree; nothing was run",
    "report this as a bug",
    InternalError,
)
_("internal", "XX000", "dpsql found itself inconsistent and stopped ({what})", "report this as a bug", InternalError)
