"""Sentences of the PostgreSQL wire protocol."""

from __future__ import annotations

from dpsql.errors.exceptions import Fault, InterfaceError, OperationalError, register

register("wire_message", "08P01", "invalid message format (type {kind})", "", OperationalError)
register("wire_encoding", "22021", 'invalid byte sequence for encoding "UTF8"', "send text in UTF-8", InterfaceError)
register("wire_unknown", "08P01", "invalid frontend message type {kind}", "", OperationalError)
register("wire_length", "08P01", "invalid message length", "a message has at most {most} bytes here", OperationalError)
register("wire_protocol", "0A000", "unsupported frontend protocol {version}: server supports 3.0", "", OperationalError)
register("wire_state", "08P01", "unexpected protocol message in this state", "", OperationalError)
register(
    "wire_formats", "08P01", "bind message has {got} result formats but query has {want} columns", "", InterfaceError
)
register("wire_format", "22023", "a format is 0 (text) or 1 (binary)", "", InterfaceError)
register("wire_parameter", "22P02", "invalid input for parameter ${number} of type {type}", "", InterfaceError)
register(
    "wire_parameters",
    "08P01",
    "bind message supplies {got} parameters, but the statement requires {want}",
    "",
    InterfaceError,
)
register(
    "wire_range",
    "22003",
    "a value of the answer is out of the range of its column's type",
    "cast it: CAST(x AS double)",
    Fault,
)
register("wire_syntax", "42601", "syntax error in {word}", "")
register("parameter_none", "42P02", "there is no parameter ${number}", "prepare the statement and bind values to it")
register("wire_many", "42601", "cannot insert multiple commands into a prepared statement", "send them one by one")
register(
    "wire_limit",
    "54000",
    "more than {most} {what} at once",
    "send fewer, or end some: RESET, RELEASE, DEALLOCATE, CLOSE",
)
register(
    "memory_full",
    "53200",
    "{who} may hold {most} of answers and statements, and {held} are held: {more} more do not fit",
    "{advice}",
    OperationalError,
)
register("wire_cancelled", "57014", "canceling statement due to user request", "", OperationalError)
register("wire_timeout", "57014", "canceling statement due to statement timeout", "", OperationalError)
register(
    "wire_busy",
    "53300",
    "sorry, too many clients already",
    "try again, or ask the owner for more connections",
    OperationalError,
)
register("wire_busy_user", "53300", 'too many connections for role "{user}"', "close some", OperationalError)
register(
    "wire_shutdown",
    "57P01",
    "terminating connection due to administrator command",
    "connect again later",
    OperationalError,
)
register(
    "wire_prepare",
    "0A000",
    "{word} as a statement is not supported",
    "prepare through your driver, or send the query itself",
)
register("login_scram", "08P01", "malformed SCRAM message", "", OperationalError)
register(
    "login_failed",
    "28P01",
    'password authentication failed for user "{user}"',
    "the owner gives logins: dpsql user add",
    OperationalError,
)
register(
    "login_wait",
    "28P01",
    'too many failed logins of user "{user}" from this address',
    "try again in {seconds} seconds",
    OperationalError,
)
register(
    "owner_only",
    "58030",
    "something that only the owner sees cannot be used now (incident {incident})",
    "the owner finds the reason in the custodian's log under this id",
    Fault,
)
register("login_user", "28000", "no PostgreSQL user name specified in startup packet", "", OperationalError)
register(
    "login_database",
    "3D000",
    'database "{name}" does not exist',
    'the database of this server is "{dataset}"',
    OperationalError,
)
register(
    "login_tls",
    "28000",
    "no encryption: this server takes passwords over TLS only",
    "connect with sslmode=require",
    OperationalError,
)
register(
    "transaction_failed", "25P02", "current transaction is aborted, commands ignored until end of transaction block", ""
)
register("transaction_none", "25P01", "{what} can only be used in transaction blocks", "BEGIN first")
register("savepoint_unknown", "3B001", 'savepoint "{name}" does not exist', "")
register("statement_unknown", "26000", 'prepared statement "{name}" does not exist', "")
register("statement_known", "42P05", 'prepared statement "{name}" already exists', "")
register("portal_unknown", "34000", 'cursor "{name}" does not exist', "")
register("portal_known", "42P03", 'cursor "{name}" already exists', "")
register("portal_broken", "55000", "this portal has failed and is not run again", "bind it again, which may be charged")
register("cursor_forward", "55000", "cursor can only scan forward", "FETCH [FORWARD] n or ALL")
register("read_only", "25006", "cannot execute {word} in a read-only transaction", "only questions are answered here")
register("read_write", "25006", "transactions are read-only here", "")
register("role_fixed", "42501", 'permission denied to set role "{name}"', "log in as that analyst")
register(
    "setting_unknown",
    "42704",
    'unrecognized configuration parameter "{name}"',
    "SHOW ALL lists them; options of privacy start with dp.",
)
register("setting_fixed", "55P02", 'parameter "{name}" cannot be changed', "")
register(
    "option_function",
    "0A000",
    "{function}() does not change options of privacy",
    "write {way}",
)
register("setting_value", "22023", 'invalid value for parameter "{name}": "{value}"', "")
register(
    "copy_columns",
    "0A000",
    "COPY of some columns of a table is not read",
    "COPY (SELECT a, b FROM a_public_table) TO STDOUT",
)
register("copy_target", "0A000", "COPY writes to STDOUT only", "COPY (SELECT ...) TO STDOUT")
register(
    "copy_option",
    "0A000",
    "COPY option {option} is not supported",
    "FORMAT text, csv or binary; DELIMITER, NULL, HEADER",
)
register("catalog_mixed", "0A000", "a question is about the catalogs or about data, not both", "ask them one by one")
register("catalog_statement", "0A000", "this is not a question about the catalogs", "")
register("catalog_source", "0A000", "{name} cannot stand in FROM of a question about the catalogs", "")
register("catalog_function", "42883", "{name} does not exist", "")
register("catalog_type", "42704", 'type "{name}" does not exist', "")
register("catalog_operator", "42883", "operator {name} does not exist for these types", "cast one side, as x::integer")
register("catalog_ungrouped", "42803", '"{name}" must stand in GROUP BY or inside an aggregate', "")
register("catalog_value", "22000", "an expression over the catalogs has no value: a value does not fit its type", "")
register("catalog_query", "0A000", "this question about the catalogs is not understood", "")
register("user_name", "22023", "{name} is not an analyst of the policy", "known: {known}", InterfaceError)
register("user_password", "22023", "a password has at least {least} characters", "", InterfaceError)
register(
    "user_file",
    "58030",
    "cannot use the logins at {place}: {problem}",
    "the file is the owner's own (mode 600); dpsql user add writes it",
    Fault,
)
register("serve_address", "22023", "{address} is not HOST:PORT", "for example 127.0.0.1:5433", InterfaceError)
register("serve_listen", "58030", "cannot listen on {address}: {problem}", "name another with --listen", Fault)
register(
    "serve_tls", "58030", "cannot use the certificate: {problem}", "--tls-cert and --tls-key name PEM files", Fault
)
register(
    "serve_plain",
    "28000",
    "{address} is not this machine alone, and there is no TLS",
    "--tls-cert and --tls-key, --tls-self-signed, or --allow-plain when the network is safe",
    InterfaceError,
)
register(
    "serve_descriptors",
    "53000",
    "this process may hold {most} files and sockets, and this many connections need {wanted}",
    "allow fewer with --connections, or raise the limit (ulimit -n, LimitNOFILE)",
    InterfaceError,
)
register(
    "traces_missing",
    "58P01",
    "traces need the SDK of OpenTelemetry, which is not installed",
    "install it with the extra: pip install 'dpsql[otel]'",
    InterfaceError,
)
register("user_unknown", "22023", "{name} has no login", "logins: {known}; dpsql user add makes one", InterfaceError)
register(
    "policy_changed",
    "57P01",
    "terminating connection because the policy was changed",
    "connect again: what you may ask, or spend, is not what it was",
    OperationalError,
)
register(
    "login_ended",
    "28000",
    'role "{user}" is not permitted to log in any more',
    "the owner took the login away or disabled it",
    OperationalError,
)
