"""Sentences about sources, prepared copies and queries of an engine."""

from __future__ import annotations

from dpsql.errors.exceptions import Fault, register

register(
    "engine_failed",
    "58000",
    "the query could not be run on the data (incident {incident})",
    "the owner finds the reason under this id in the custodian's log; asking again is charged again",
    Fault,
)
register(
    "source_closed",
    "58030",
    "table {table} could not be read a moment ago",
    "ask again later: nothing is charged until the data can be read again or have changed; the custodian's log has the reason",
    Fault,
)
register(
    "source_missing",
    "58P01",
    "the data of this data set are not where the policy says ({source})",
    "correct `source:` in the policy",
    Fault,
)
register(
    "source_unreadable",
    "58030",
    "the data of this data set cannot be opened ({source})",
    "the custodian's log has the reason",
    Fault,
)
register(
    "source_table_missing",
    "42P01",
    "table {table} of the policy is not in the source",
    "correct the policy or the source",
    Fault,
)
register(
    "source_column_missing",
    "42703",
    "column {table}.{column} of the policy is not in the source",
    "correct the policy or the source",
    Fault,
)
register(
    "source_setting",
    "55000",
    "the connection to the data does not allow {name} = {value}",
    "RESET {name} before the configuration is locked, or give a connection that is not locked",
    Fault,
)
register(
    "source_function",
    "55000",
    "the connection to the data defines a function {name} that hides the engine's own",
    "rename that function, or give a connection without it",
    Fault,
)
register(
    "source_column_twice",
    "42701",
    "column {table}.{column} of the policy is twice in the header of the source",
    "correct the policy or the source",
    Fault,
)
register(
    "source_table_unreadable",
    "58030",
    "the files of table {table} cannot be read",
    "ask again when they are complete; the custodian's log has the reason",
    Fault,
)
register(
    "source_files_differ",
    "42804",
    "the files of table {table} differ in {what}",
    "give CSV files the same header line, and each Parquet file every column of the policy (on Spark in one type); the "
    "custodian's log names a file",
    Fault,
)
register(
    "source_multiline",
    "55000",
    "table {table} is read from CSV files whose cells hold line breaks, and these are not prepared",
    "the owner runs `dpsql prepare` once for each version of the files",
    Fault,
)
register(
    "promise_broken",
    "55000",
    "the data break a promise of the policy: more than {most} rows of {table} agree on ({columns})",
    "the owner corrects the data or the policy (primary_key, unique, max_multiplicity, foreign_keys)",
    Fault,
)
register(
    "source_unsupported",
    "0A000",
    "no engine reads a source of the kind {source}",
    "this version reads {known}, Parquet and CSV files",
    Fault,
)
register(
    "engine_literal",
    "22021",
    "{what} cannot occur in data of {engine}",
    "leave it out of the question",
)
register(
    "engine_function",
    "0A000",
    "{function} is not supported for data in {engine}: {reason}",
    "`dpsql help engines` lists what each engine computes exactly",
)

register(
    "index_folder",
    "58030",
    "cannot write in {place}",
    "make it writable, or name another place for prepared views in DPSQL_CACHE",
    Fault,
)
register(
    "index_not_written",
    "58030",
    "table {table} could not be prepared (incident {incident})",
    "the custodian's log has the reason under this id; questions are answered without the prepared copy, only slower",
    Fault,
)
register(
    "index_source_changed",
    "55000",
    "the source of table {table} changed while it was being prepared",
    "prepare it again when nobody writes to it",
    Fault,
)
register(
    "index_limit",
    "22023",
    "the engine does not accept these limits (memory {memory}, jobs {jobs})",
    "write memory like 4GB, and jobs as a number of at least 1",
    Fault,
)
register(
    "source_driver",
    "58000",
    "the driver for the server that holds the data is not installed",
    "pip install 'dpsql[{extra}]'",
    Fault,
)
register(
    "source_java",
    "58000",
    "Spark needs Java, and there is none {where}",
    "install a JDK (17 or later) where dpsql runs and set JAVA_HOME to its folder; `dpsql help spark` says what else is needed",
    Fault,
)
register(
    "source_spark",
    "08001",
    "Spark could not be started, or did not reach its master",
    "is the master up and named rightly, and does Spark find Java 17 or a later one that it supports? The reason is in the "
    "custodian's log, and the owner's `dpsql check` shows it",
    Fault,
)
register(
    "source_spark_ended",
    "08006",
    "the Spark application of this process has ended",
    "the owner starts dpsql again, or the session that was given to it; the custodian's log has the reason",
    Fault,
)
register(
    "source_connection",
    "08001",
    "the server that holds the data could not be reached, or did not let dpsql in",
    "is the server up, and are host, database, role and password right? The reason is in the custodian's log, and the owner's "
    "`dpsql check` shows it",
    Fault,
)
register(
    "source_locked",
    "55P03",
    "another session of the server has locked a table of this question for more than {seconds} seconds",
    "ask again when its load or change of the table is over",
    Fault,
)
register(
    "source_server",
    "0A000",
    "dpsql cannot read the server that holds the data: {what}",
    "`dpsql help engines` says what is needed",
    Fault,
)
register(
    "source_column_type",
    "42804",
    "column {table}.{column} is {given} in the source, which cannot be read as {wanted}",
    "declare that type in the policy, or read a view whose column is NULL where the cast fails (`dpsql help postgresql` and "
    "`dpsql help spark` have examples)",
    Fault,
)
register(
    "source_rights",
    "42501",
    "the role that reads the data may not read {place}",
    "the owner grants it: GRANT SELECT ON the table TO the role, and USAGE ON its schema",
    Fault,
)
register(
    "source_file_beside_server",
    "0A000",
    "table {table} is in files, and the other tables are on a server: one policy has one engine",
    "load the files into the server, or write a policy of their own for them",
    Fault,
)
register(
    "engine_cannot_run",
    "0A000",
    "{engine} cannot run this question (incident {incident})",
    "write it another way; this is a bug in dpsql: the owner finds the reason under this id in the custodian's log",
    Fault,
)
