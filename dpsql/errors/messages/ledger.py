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
    "mend `ledger:` in the policy",
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
    "put the newest copy back; what it had spent is not forgotten. The note of it is kept in {place}",
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
    "an older format: dpsql migrate; a newer one: the version of dpsql that wrote it",
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
    "losses to different units do not add up: begin another ledger, or say `dpsql check --change-unit` once",
    Fault,
)
register(
    "ledger_tampered",
    "XX001",
    "the ledger does not hold at entry {entry}: {problem}",
    "nothing is charged to it until its newest true copy is put back; `dpsql budget verify` tells more",
    IntegrityError,
)
register(
    "ledger_older",
    "XX001",
    "the ledger is older than its head: it ends before entry {entry}, which has been seen",
    "put the newest copy back; what it had spent is not forgotten",
    IntegrityError,
)
register("ledger_damaged", "XX001", "the ledger cannot be read: {problem}", "put its newest copy back", IntegrityError)
register(
    "ledger_key_missing",
    "58P01",
    "there is no usable ledger key at {place}",
    "put the key file back; without it no entry can be checked or written",
    Fault,
)
register(
    "ledger_key_open", "42501", "the ledger key {place} is open to others than its owner", "chmod 600 the file", Fault
)
register(
    "ledger_key_wrong",
    "28000",
    "the ledger key is not the one this ledger was made with",
    "put the key file back",
    Fault,
)
register(
    "ledger_head_missing",
    "58P01",
    "the head of the ledger is not in its second place",
    "the custodian's log names the place, put it back; on a new machine the owner adopts a ledger known to be the newest "
    "copy",
    Fault,
)
register(
    "ledger_head_not_written",
    "58030",
    "the charge was recorded, its head could not be written",
    "see that the state directory can be written",
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
    "see that its file and directory (or table) are writable",
    Fault,
)
register(
    "ledger_disk_full",
    "53100",
    "the disk of {what} is full or does not take the write",
    "make room and ask again",
    Fault,
)
register("ledger_unreachable", "08006", "the database of {what} cannot be reached", "try again", Fault)
register(
    "ledger_commit_unknown",
    "08007",
    "the ledger could not confirm the charge, which counts as spent if it was recorded",
    "see the room on its disk and the connection, then ask again",
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
    "name that ledger in the policy; or say why: dpsql check --create-ledger --second-budget 'REASON', which is recorded",
    Fault,
)
register(
    "backup_postgres",
    "0A000",
    "a ledger in PostgreSQL is not backed up by dpsql",
    "use the tools of the database (pg_dump), and keep the state directory, which has its key, by itself",
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
    "the ledger that is there has entry {last}, the backup ends with entry {entry}",
    "it knows more than the backup and is not replaced; move it away if it is damaged",
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
    "{place} can be changed by others than its owner",
    "chmod go-w: the ledger and its state directory are one user's own",
    Fault,
)
