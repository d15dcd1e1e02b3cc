"""Sentences about the ledger, charges and budgets."""

from __future__ import annotations

from dpsql.errors.exceptions import BudgetRefusal, Fault, IntegrityError, InterfaceError, InternalError, register

register(
    "budget_exceeded",
    "53400",
    "the charge does not fit the budget: {short}",
    "ask a coarser question or use a smaller epsilon; the owner can raise the limit in the policy",
    BudgetRefusal,
)
register(
    "window_closed",
    "55000",
    "the budget that began on {start} is closed: one that began on {latest} has been opened",
    "the owner sets this machine's clock; where it is right, one that was ahead (or an earlier `every` of the policy) opened "
    "the later budget, which holds from its day on",
    Fault,
)
register(
    "request_repeated",
    "ZP101",
    "a request with this id has been charged before (entry {entry})",
    "its answer, if there is one, is in the stored releases; a new attempt needs a new id",
)
register(
    "request_lost",
    "ZP102",
    "a request with this id has been charged before (entry {entry}), and its answer is not stored",
    "it may still be running; a new attempt needs a new id, and is charged",
)
register("ledger_request", "XX000", "a charge was not well formed: {problem}", "", InternalError)
register("ledger_shape", "XX000", "a charge in {left} cannot be compared with a limit in {right}", "", InternalError)
register("ledger_account", "XX000", "scope {scope} has no account in the ledger", "", InternalError)
register("ledger_resolved", "XX000", "entry {entry} has been resolved before", "", InternalError)
register(
    "ledger_url",
    "08001",
    "a ledger is named sqlite:///PATH or postgresql://USER@HOST/DATABASE",
    "correct `ledger:` in the policy",
    Fault,
)
register(
    "ledger_missing",
    "58P01",
    "there is no ledger at {address}",
    "`dpsql check --create-ledger` makes one for a data set that never had one",
    Fault,
)
register(
    "ledger_known",
    "58P01",
    "data set {dataset} has a ledger at {address}, and it is gone or empty",
    "restore its newest copy: what it had spent still counts, as recorded in {place}",
    Fault,
)
register(
    "ledger_foreign",
    "58P01",
    "what is at {address} is not the ledger of data set {dataset}",
    "give each data set a ledger of its own",
    Fault,
)
register(
    "ledger_format",
    "0A000",
    "the ledger has format {found}, this dpsql reads format {known}",
    "an older format: run `dpsql migrate`; a newer one: use the version of dpsql that wrote it",
    Fault,
)
register(
    "ledger_accountant",
    "55000",
    "scope {scope} is accounted in {found}, not in {asked}",
    "the accountant of a scope is fixed when its account is opened; put it back in the policy",
    Fault,
)
register(
    "ledger_unit",
    "55000",
    "the ledger has charges for the privacy unit {known}, and the policy is about {unit}",
    "losses to different units do not add up: start another ledger, or run `dpsql check --change-unit` once",
    Fault,
)
register(
    "ledger_tampered",
    "XX001",
    "the ledger does not hold at entry {entry}: {problem}",
    "nothing is charged to it until its newest intact copy is restored; `dpsql budget verify` says more",
    IntegrityError,
)
register(
    "ledger_older",
    "XX001",
    "the ledger is older than its head: it ends before entry {entry}, which has been seen",
    "restore its newest copy: what it had spent still counts",
    IntegrityError,
)
register(
    "witness_missing",
    "58P01",
    "the place of the policy's witness has no head of this ledger",
    "the owner writes it once: `dpsql budget witness`",
    Fault,
)
register(
    "witness_unreachable",
    "58030",
    "the witness on another machine cannot be used",
    "the custodian's log names it; nothing is charged without it",
    Fault,
)
register(
    "witness_not_written",
    "58030",
    "the charge was recorded, but the witness on another machine could not be written",
    "ask again once it can be reached",
    Fault,
)
register("ledger_damaged", "XX001", "the ledger cannot be read: {problem}", "restore its newest copy", IntegrityError)
register(
    "ledger_key_missing",
    "58P01",
    "there is no usable ledger key at {place}",
    "restore the key file; without it no entry can be checked or written",
    Fault,
)
register(
    "ledger_key_open",
    "42501",
    "the ledger key {place} is accessible to users other than its owner",
    "chmod 600 the file",
    Fault,
)
register(
    "ledger_key_wrong",
    "28000",
    "the ledger key is not the one this ledger was created with",
    "restore the key file",
    Fault,
)
register(
    "ledger_head_missing",
    "58P01",
    "the head of the ledger is missing from the state directory",
    "restore it (the custodian's log names the file); on a new machine the owner adopts a ledger known to be the newest "
    "copy",
    Fault,
)
register(
    "ledger_head_not_written",
    "58030",
    "the charge was recorded, but the head of the ledger could not be written",
    "make the state directory writable",
    Fault,
)
register(
    "ledger_state",
    "58030",
    "cannot use {place}",
    "the state directory must be the owner's own and writable; DPSQL_STATE names another",
    Fault,
)
register(
    "ledger_state_busy",
    "53000",
    "the state directory of the ledger cannot be used now",
    "try again; the custodian's log has the reason (too many open files, or permissions that changed)",
    Fault,
)
register("ledger_locked", "55P03", "{what} was busy for {seconds} seconds", "try again", Fault)
register(
    "ledger_read_only",
    "25006",
    "{what} cannot be written",
    "make its file and directory writable; on a server, grant the role its tables and their schema",
    Fault,
)
register(
    "ledger_disk_full",
    "53100",
    "the disk of {what} is full or does not take the write",
    "make room and ask again",
    Fault,
)
register(
    "ledger_unreachable",
    "08006",
    "the database of {what} cannot be reached",
    "try again; the reason is in the custodian's log, and the owner's `dpsql check` shows it",
    Fault,
)
register(
    "ledger_commit_unknown",
    "08007",
    "the ledger could not confirm the charge, which counts as spent if it was recorded",
    "check the space on its disk and the connection, then ask again",
    Fault,
)
register("ledger_format_unknown", "22023", "the ledger is exported as json or csv, not as {format}", "", InterfaceError)
register(
    "releases_damaged",
    "XX001",
    "the store of releases cannot be read",
    "the owner may delete it: only free repeats of answers are lost",
    Fault,
)
register(
    "release_unknown",
    "XX001",
    "the stored release of receipt {receipt} was written by another version of dpsql and cannot be read",
    "ask with the version that stored it, or the owner removes it from the store and it is measured again",
    Fault,
)
register("release_key", "XX000", "a stored release is named by 64 hexadecimal digits", "", InternalError)
register(
    "ledger_second",
    "55000",
    "data set {dataset} has a ledger at {address}: another one would be a second full budget over the same people",
    "name that ledger in the policy, or give a reason, which is recorded: dpsql check --create-ledger --second-budget 'REASON'",
    Fault,
)
register(
    "backup_postgres",
    "0A000",
    "a ledger in PostgreSQL is not backed up by dpsql",
    "use the tools of the database (pg_dump), and back up the state directory, which holds its key, separately",
    Fault,
)
register(
    "backup_folder",
    "58030",
    "cannot use {place} for a backup: {problem}",
    "a backup is a new folder, written by dpsql budget backup",
    Fault,
)
register(
    "backup_older",
    "55000",
    "the present ledger has entry {last}, and the backup ends with entry {entry}",
    "it has entries that the backup lacks, so it is not replaced; move it away if it is damaged",
    Fault,
)
register(
    "head_text",
    "22023",
    "a head is written as NUMBER DIGEST",
    "dpsql budget head prints it",
    InterfaceError,
)
register(
    "ledger_open",
    "42501",
    "{place} can be changed by users other than its owner",
    "chmod go-w: the ledger and its state directory are one user's own",
    Fault,
)
register(
    "ledger_linked",
    "42501",
    "{place} is a symbolic link, where a file of the ledger belongs",
    "find out who made it, and remove it: the ledger makes its files itself",
    Fault,
)
