"""`dpsql check`: problems of the policy with their lines, the structure of the source, the state of the ledger."""

from __future__ import annotations

import glob
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, time
from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.engine.query import matching
from dpsql.engine.served_tables import is_versioned
from dpsql.errors.exceptions import Error, Exit
from dpsql.frontends.admin.policy_text import scale_of
from dpsql.ledger import open_ledger
from dpsql.ledger.ledger import Ledger
from dpsql.policy import Policy, Table, load_policy, policy_problems
from dpsql.policy.check import policy_text
from dpsql.policy.reach import is_file
from dpsql.policy.source_kinds import outside_engine, scheme_of, source_kind
from dpsql.policy.types import DEFAULT_SCHEMAS, CsvDialect
from dpsql.policy.versions import changed
from dpsql.privacy.loss import plain_decimal
from dpsql.reuse.store import open_releases
from dpsql.session.budget import budget_of_everybody, question_price, windows_in_words
from dpsql.session.session import source_fingerprint
from dpsql.sql.binder.equal_keys import add_row_filter_problems
from dpsql.storage.records import dataclass, field

if TYPE_CHECKING:
    from dpsql.engine.contract import Broken, Engine


_BROKEN = {
    "wrong_width": "lines with more or fewer cells than the header, which are dropped",
    "too_long": "lines with more than 1 MiB, which are dropped",
    "open_quote": "lines with a quote that is never closed and ends with the line (if cells hold line breaks: csv: "
    "{multiline: true})",
    "inner_return": "carriage returns that end no line (after a first line feed, only line feeds end lines)",
    "not_text": "lines with bytes that are no UTF-8 text (if it is Windows-1252: csv: {encoding: windows-1252}); "
    "such cells count as NULL",
    "joined": "lines that continue a quoted cell; if cells have fewer, a stray quote hides other rows",
}
"""What is wrong with lines of a CSV file, by the field of `Broken` that counts them."""
_CSV_KEY = re.compile(r" \(if [^()]*: csv: \{(\w+): [^()]*\}\)")
_AS_READ = {
    "boolean": "yes and no are read as true, t, yes, y, 1 and false, f, no, n, 0",
    "integer": "whole numbers are read as 1234, or as 1.234 below csv: {decimal: ','}",
    "real": "numbers are read as 1234.5, or as 1.234,5 below csv: {decimal: ','}",
    "date": "days are read as 2024-01-31, or as 31.1.2024 below csv: {days: dmy}",
    "timestamp": "times are read as 2024-01-31 12:00:00, or as 31.1.2024 12:00:00 below csv: {days: dmy}",
}
"""How cells of CSV files are written that can be read as a type."""
_MISSING = "; texts that stand for no value: csv: {null: ['', NA]}"
_LIKE_A_VALUE = re.compile(r"[-+]?[0-9][0-9.,:/-]*")
_MOST_NAMED = 8
_MOST_REASON_LINES = 12
_NO_VERSION = (
    "no stored answer is given again, because nothing tells whether rows of a server have changed: every refresh of a "
    "dashboard is charged. `data_version: daily` keeps answers until midnight UTC (also hourly, weekly, monthly, or a name "
    "that you change)"
)
_STACK_FRAME = re.compile(r"(at )?[\w$./<>]+\([\w.: ]*\)?")
"""A line of a Java stack trace, which does not help the owner."""


class _Reasons(logging.Handler):
    """A log handler that collects the reasons of faults: the errors of the custodian's log. A report of `check` is for the owner,
    who may read both."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message of the log until the next error is noted."""
        self._messages.append(record.getMessage())

    def taken(self) -> list[str]:
        """Return the lines logged since the last error, without stack traces of Java and Python, and drop them."""
        text = "\n".join(message.partition(" Detail: Python exception: ")[0] for message in self._messages).splitlines()
        self._messages = []
        return [line for line in map(str.strip, text) if line and not _STACK_FRAME.fullmatch(line)][:_MOST_REASON_LINES]

    @contextmanager
    def listening(self, *, alone: bool = False) -> Iterator[None]:
        """Collect messages of the custodian's log in the context; `alone`: they reach no log, as a scan meets a value again."""
        logger = logging.getLogger("dpsql.custodian")
        handlers, propagate = logger.handlers, logger.propagate
        logger.handlers, logger.propagate = [*([] if alone else handlers), self], propagate and not alone
        try:
            yield
        finally:
            logger.handlers, logger.propagate = handlers, propagate


@dataclass
class Findings:
    """`problems` and `notes` are lines of text; `status` is 0 only if there is no problem."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    status: Exit = Exit.DONE
    reasons: _Reasons = field(default_factory=_Reasons)

    def fail(self, error: Error) -> None:
        """Record an error as a problem, once, with its reason from the custodian's log."""
        lines = [error.message, *self.reasons.taken(), *filter(None, [error.hint])]
        if all(problem.partition("\n")[0] != error.message for problem in self.problems):
            self.problems.append("\n  ".join(lines))
        self.status = error.exit_status

    def refuse(self, *sentences: str) -> None:
        self.problems += sentences
        self.status = Exit.REFUSAL if sentences else self.status


def check_policy_file(
    file: Path,
    *,
    create_ledger: bool = False,
    change_unit: bool = False,
    second_budget: str | None = None,
    scan: bool = False,
) -> Findings:
    """Check a policy file, then the structure of its source, then its ledger, which is created if asked for and missing.

    `change_unit`: the owner accepts that a ledger with charges continues with another privacy unit, which is recorded.
    `second_budget`: the reason, also recorded, for another ledger with its own budget for a data set that has one elsewhere.

    Rows are read to count malformed lines and unreadable cells: all rows of CSV files, some of other local sources, and of these
    only columns that are stored as texts; with `scan` all rows, also to find values at which reading fails. Raises PolicyRefusal
    if the file cannot be read.
    """
    findings = Findings()
    wrong = policy_problems(policy_text(file), add_row_filter_problems)
    if wrong:
        findings.refuse(*(_located(file, path, sentence) for path, sentence in wrong))
        findings.refuse(f"{len(wrong)} problem{'s' if len(wrong) > 1 else ''} in {file}")
        return findings
    policy = load_policy(file)
    findings.notes.append(_summary(file, policy))
    findings.notes += [f"budget: {sentence}" for sentence in [windows_in_words(policy.budget)] if sentence]
    findings.notes += [*_dropped_rows(policy), *_limits_without_effect(policy), *_days_without_hours(policy)]
    findings.notes += [f"note: {sentence}" for sentence in policy.unprotected.values()]
    _check_limits(policy, findings)
    with findings.reasons.listening():
        _check_source(policy, findings, scan)
        _check_ledger(policy, create_ledger, change_unit, second_budget, findings)
    return findings


def _located(file: Path, path: str, sentence: str) -> str:
    """Format as FILE:LINE: PATH: SENTENCE, which editors understand."""
    line = re.match(r"line ([0-9]+): ", sentence)
    where = f"{file}:{line.group(1)}" if line else str(file)
    return f"{where}: {path}: {sentence[line.end() :] if line else sentence}"


def _summary(path: Path, policy: Policy) -> str:
    unit = policy.privacy_unit
    protected = sum(not table.public for table in policy.tables.values())
    return (
        f"{path}: data set {policy.dataset}, privacy unit {f'{unit.table}.{unit.column}' if unit else 'row'}, "
        f"{protected} protected and {len(policy.tables) - protected} public tables, "
        f"epsilon {float(policy.budget.epsilon):g} in {policy.budget.accountant}: the file is valid"
    )


def _check_limits(policy: Policy, findings: Findings) -> None:
    """Record accounts that allow no question at the price of the policy."""
    question = f"a question of epsilon {plain_decimal(policy.per_query.epsilon)} (per_query)"
    for count in budget_of_everybody(policy, {}).questions(question_price(policy)):
        if not count.in_all:
            allowed = f"epsilon {plain_decimal(count.scope.accountant.epsilon)} allows under {policy.budget.accountant}"
            findings.refuse(
                f"{count.scope.label} cannot ask one question: what {allowed} is less than {question} costs; raise the one, or "
                "lower the other"
            )


def _limits_without_effect(policy: Policy) -> list[str]:
    """Return notes on persons behind a login who may spend more than the login."""
    return [
        f"note: {person} behind the login {login} may spend epsilon {plain_decimal(limit.epsilon)}, but the login only "
        f"{plain_decimal(analyst.epsilon)}, which bounds all persons behind it"
        for login, analyst in policy.analysts.items()
        for person, limit in analyst.people.items()
        if limit.epsilon > analyst.epsilon
    ]


def _days_without_hours(policy: Policy) -> list[str]:
    """Return notes on timestamps whose upper bound is the first instant of a day, which leaves the rest of that day out."""
    return [
        f"note: {name}.{column} has upper: {end}, the first instant of that day: later times of it are out of bounds; say "
        f"{end:%Y-%m-%d} 23:59:59 if the whole day counts"
        for name, table in policy.tables.items()
        for column, about in table.columns.items()
        if isinstance(end := about.upper, datetime) and end.time() == time.min
    ]


def _dropped_rows(policy: Policy) -> list[str]:
    """Return notes on tables that keep one row of each privacy unit although the policy promises no single one."""
    notes = []
    for name, table in policy.tables.items():
        column = policy.unit_column(name)
        if column is None or policy.unit_joins(name) or table.bounds.max_rows != 1 or table.is_unique((column,)):
            continue
        notes.append(
            f"note: {name} has max_rows: 1, so that one row of each {column} counts and further ones are left out; if "
            f"{column} never repeats there, say primary_key: [{column}], else raise max_rows (dpsql fit measures what is lost)"
        )
    return notes


def _check_source(policy: Policy, findings: Findings, scan: bool) -> None:
    from dpsql.engine.registry import open_engine

    if policy.source is None and not any(table.source for table in policy.tables.values()):
        findings.notes.append("source: none in the policy; it is given to dpsql.connect")
        return
    try:
        findings.notes += _outside(policy)
        engine = open_engine(policy)
    except Error as error:
        findings.fail(error)
        return
    likely: dict[str, str] = {}
    try:
        for name in policy.tables:
            if wildcards := _wildcards(policy, name):
                findings.problems += wildcards
                continue
            columns = engine.columns(name)
            if columns is None:
                path = policy.tables[name].source
                looked_for = "" if path is None else f" (its source: {path})"
                findings.problems.append(f"table {name} of the policy is not in the source{looked_for}")
                continue
            _check_columns(policy.tables[name], columns, findings)
        if not findings.problems:
            _check_readable(policy, engine, findings)
        if not findings.problems:
            findings.notes += _doubts(policy, engine)
            _check_cells(policy, engine, findings, scan)
            likely = _likely_people(policy, engine, scan)
            if scan:
                _scan(policy, engine, findings)
        advice = [*engine.advice(), *([] if is_versioned(policy, engine) else [_NO_VERSION])]
    except Error as error:
        findings.fail(error)
        return
    finally:
        engine.close()
    _check_further_people(policy, likely, findings)
    if findings.problems:
        findings.status = Exit.REFUSAL if findings.status is Exit.REFUSAL else Exit.FAULT
    else:
        findings.notes += [f"note: {sentence}" for sentence in advice]
        findings.notes.append("source: every table and column is there")


def _outside(policy: Policy) -> list[str]:
    """Return a note on the distribution whose engine reads the source, if it is not dpsql's own."""
    outside = outside_engine(scheme_of(policy.source))
    if outside is None:
        return []
    return [
        f"note: {outside.kind.scheme}:// is read by the engine of {outside.distribution}, which is trusted code: it sees every "
        "row, and the guarantee rests on it as on dpsql itself"
    ]


def _wildcards(policy: Policy, name: str) -> list[str]:
    """Return a problem if the table's source is a pattern that matches no file, and the name of a file that is there."""
    source = policy.table_source(name)
    if not is_file(source) or matching(source) or not Path(source).exists():
        return []
    return [
        f"table {name}: {source} is there, but brackets, * and ? in names of files are wildcards: write {glob.escape(source)}"
    ]


def _check_readable(policy: Policy, engine: Engine, findings: Findings) -> None:
    """Record what a question would meet before its charge: columns of unsupported types, or that the role may not read."""
    for name in policy.tables:
        try:
            engine.check_readable((name,))
        except Error as error:
            findings.fail(error)  # tables on the way to the unit are checked with each table


def _doubts(policy: Policy, engine: Engine) -> list[str]:
    """Return a note on each part of a table at whose values reading may fail."""
    notes = []
    for table in policy.tables:
        for doubt in engine.doubts(table):
            notes.append(f"note: {f'{table}.{doubt.column}' if doubt.column else table} {doubt.kind}")
    if notes:
        notes.append(
            "note: if reading these fails at one value, questions fail, and analysts see that there is such a value (`dpsql help "
            "privacy`, section 9); `dpsql check --scan` reads every row and finds such values"
        )
    return notes


def _scan(policy: Policy, engine: Engine, findings: Findings) -> None:
    """Read every row of every table, and record where that fails, with the engine's reason."""
    from dpsql.disclosure.scan import failures

    with findings.reasons.listening(alone=True):
        for failure in failures(policy, engine):
            findings.refuse("\n  ".join([str(failure), *findings.reasons.taken()[:1]]))
    if findings.status is Exit.DONE:
        findings.notes.append("scan: every value of every table can be read")


def _check_columns(table: Table, columns: Mapping[str, str], findings: Findings) -> None:
    """Record columns of the policy that the source lacks, and in one note those that it stores as texts."""
    folded = {column.lower(): type_ for column, type_ in columns.items()}
    texts: dict[str, list[str]] = {}
    for column in table.columns.values():
        engine_type = folded.get(column.source_name.lower())
        if engine_type is None:
            findings.problems.append(f"column {table.name}.{column.name} of the policy is not in the source")
        elif engine_type == "VARCHAR" and column.type != "text":
            texts.setdefault(column.type, []).append(column.name)
        elif column.scale is not None and (scale_of(engine_type) or 0) > column.scale:
            findings.notes.append(
                f"note: {table.name}.{column.name} is {engine_type} in the source: sums round it to the scale {column.scale}"
            )
    if table.csv is not None and len(columns) == 1 < len(table.columns):
        findings.problems.append(
            f"the header line of {table.name} is one cell: if another character than {table.csv.delimiter!r} parts its cells, "
            "say csv: {delimiter: ';'}"
        )
    values = [column.source_name for column in table.columns.values() if _LIKE_A_VALUE.fullmatch(column.source_name)]
    if values and table.csv is not None and table.csv.header is None:
        findings.notes.append(
            f"note: {table.name} has columns with the names {', '.join(values[:_MOST_NAMED])}: if the first line of its files is "
            "data, its values are shown to analysts as names; give the names as csv: {header: [...]}"
        )
    if texts:
        read = [
            f"{type_} ({', '.join([*names[:_MOST_NAMED], *(['...'] if len(names) > _MOST_NAMED else [])])})"
            for type_, names in texts.items()
        ]
        findings.notes.append(
            f"note: texts in {table.name} are read as {', '.join(read)}; what does not read so counts as NULL"
        )


_SAY_WHOM = (
    "if it names another person than the one whose row it is, say `unprotected: [{column}]` below {table}: that person may be in "
    "any number of rows, and nothing hides it there (`dpsql help privacy`, section 2); else say `unprotected: []`"
)


def _check_further_people(policy: Policy, likely: Mapping[str, str], findings: Findings) -> None:
    """Record columns that lead to a person by a foreign key of the source; note other `likely` ones. Nothing after problems."""
    if findings.problems:
        return
    try:
        further = _further_people(policy)
    except Error as error:
        findings.fail(error)
        return
    findings.notes += [sentence for column, sentence in likely.items() if column not in further]
    findings.refuse(*further.values())


def _further_people(policy: Policy) -> dict[str, str]:
    """Return a problem for each column from which a foreign key leads to a person, and of which the policy says nothing."""
    from dpsql.engine.registry import structure_of

    if scheme_of(policy.source) == "postgresql":
        structure = structure_of(policy.source or "")
    elif policy.source is not None and policy.source.startswith("duckdb:") and policy.privacy_unit is not None:
        structure = structure_of(Path(policy.source_path() or ""))
    else:
        return {}
    problems = {}
    names = {
        (about.source or (f"{about.schema}.{name}" if about.schema else name)): name
        for name, about in structure.items()
    }
    in_policy = {names.get(_without_default_schema(policy.table_source(table))): table for table in policy.tables}
    for in_source, table in in_policy.items():
        if in_source is None or not (undecided := _undecided(policy, table)):
            continue
        for column, (parent, _) in structure[in_source].foreign_keys.items():
            leads = in_policy.get(parent)
            if column in undecided and leads is not None and policy.is_protected(leads):
                way_out = _SAY_WHOM.format(column=column, table=table)
                sentence = f"{table}.{column} leads to {leads} by a foreign key of the source: {way_out}"
                problems[f"{table}.{column}"] = sentence
    return problems


def _without_default_schema(source: str) -> str:
    *above, name = source.split(".")[-2:]
    return name if above and above[0] in DEFAULT_SCHEMAS else ".".join((*above, name))


def _undecided(policy: Policy, table: str) -> list[str]:
    """Return the columns of a table that may name people of whom the policy says nothing; none if it says whom columns name."""
    about = policy.tables[table]
    if about.public or about.unprotected is not None or policy.privacy_unit is None:
        return []
    of_keys = {*about.foreign_keys, policy.unit_column(table) if not policy.unit_joins(table) else None}
    return [column for column in about.columns if column not in of_keys]


def _likely_people(policy: Policy, engine: Engine, scan: bool) -> dict[str, str]:
    """Return a note on each column all of whose values are keys of privacy units, and of which the policy says nothing."""
    from dpsql.disclosure.scan import names_units

    unit, notes = policy.privacy_unit, dict[str, str]()
    if unit is None or (source_kind(policy.source).is_server and not scan):
        return notes
    for table, about in policy.tables.items():
        for name in _undecided(policy, table):
            column = about.columns[name]
            is_other = about.is_unique((name,)) or column.lower is not None or column.domain is not None
            of_units = column.type == policy.tables[unit.table].columns[unit.column].type
            if of_units and not is_other and names_units(policy, engine, table, name):
                way_out = _SAY_WHOM.format(column=name, table=table)
                notes[f"{table}.{name}"] = (
                    f"note: all values of {table}.{name} are values of {unit.table}.{unit.column}: {way_out}"
                )
    return notes


def _check_cells(policy: Policy, engine: Engine, findings: Findings, scan: bool) -> None:
    """Count the lines and cells of each table that are dropped or count as NULL; if most of a file or of one of its columns is
    lost, that is a problem. The counts are exact, so they are for the owner alone."""
    from dpsql.disclosure.scan import cells, parts

    kept_elsewhere = source_kind(policy.source).is_server
    losses: list[tuple[str, bool]] = []
    with findings.reasons.listening(alone=True):
        for table, about in policy.tables.items():
            said: dict[str, list[Loss]] = {}
            types: dict[str, str] = {}
            for file, part in parts(engine, table) if scan or not kept_elsewhere else ():
                broken = part.broken(table)
                rows, counted = cells(policy, part, table, file, everything=scan)
                for fault, number, lost in _broken_lines(broken, rows, about.csv) if broken is not None else ():
                    said.setdefault(f"{table} has {fault}", []).append((lost, number, f"{number} in {file}"))
                for column in filter(lambda column: column.unreadable, counted):
                    type_ = about.columns[column.column].type
                    words = f"{column.unreadable} of {column.filled} in {file or 'the table'}"
                    fault = f"{table}.{column.column} has cells that cannot be read as {type_} and count as NULL"
                    types[fault] = type_
                    said.setdefault(fault, []).append((column.lost, column.unreadable, words))
                empty = [column.column for column in counted if rows and not column.filled]
                if empty:
                    said.setdefault(f"{table}.{' and '.join(empty)} has no filled cell", []).append(
                        (False, rows, f"in {file}")
                    )
            spellings = {fault: _AS_READ[type_] + _MISSING for fault, type_ in types.items() if about.csv is not None}
            losses += [_loss(sentence, of_files, spellings.get(sentence)) for sentence, of_files in said.items()]
            if (scan or not kept_elsewhere) and policy.unit_column(table) is not None:
                losses += _rows_left_out(policy, engine, table)
        findings.reasons.taken()
    findings.refuse(*(sentence for sentence, lost in losses if lost))
    findings.notes += [f"note: {sentence}" for sentence, lost in losses if not lost]
    if losses:
        findings.notes.append("note: these counts are exact, and for the custodian alone: do not pass them on")


def _rows_left_out(policy: Policy, engine: Engine, table: str) -> Iterator[tuple[str, bool]]:
    """Yield sentences on rows of a table that no question counts, and whether they are most of its rows."""
    from dpsql.disclosure.scan import rows_left_out

    counts, unit = rows_left_out(policy, engine, table), policy.privacy_unit
    if counts is None or unit is None:
        return
    if counts.of_nobody:
        words = (
            f"{table} has rows that belong to no {unit.table}.{unit.column} and are in no answer: {counts.of_nobody}"
        )
        yield f"{words} of {counts.rows}", 2 * counts.of_nobody > counts.rows
    if counts.beyond:
        most = policy.tables[table].bounds.max_rows
        yield (
            f"{table} has rows beyond max_rows: {most}, which are in no answer: {counts.beyond} of {counts.rows}",
            False,
        )


Loss = tuple[bool, int, str]
"""What is lost of a file: whether it is most of it, how many lines or cells, and the same in words with the name of the file."""


def _loss(sentence: str, losses: list[Loss], spelling: str | None) -> tuple[str, bool]:
    """Return a sentence with the files of its losses, the worst first, and how cells that can be read are spelled, and whether
    most of one file is lost."""
    worst = sorted(losses, key=lambda loss: (not loss[0], -loss[1], loss[2]))
    named, more = [words for *_, words in worst[:_MOST_NAMED]], len(worst) - _MOST_NAMED
    if more > 0:
        named.append(f"and in {more} more file{'s' if more > 1 else ''}")
    return f"{sentence}: {', '.join(named)}{f' ({spelling})' if spelling else ''}", worst[0][0]


def _broken_lines(broken: Broken, rows: int, dialect: CsvDialect | None) -> list[tuple[str, int, bool]]:
    """Return the kinds of malformed lines of a file of which `rows` lines are records, with their numbers, and whether most lines
    are lost by that; and that a file has no records. Keys of csv that the policy has are not proposed."""

    def proposed(match: re.Match[str]) -> str:
        return match[0] if getattr(dialect or CsvDialect(), match[1]) == getattr(CsvDialect(), match[1]) else ""

    dropped = broken.wrong_width + broken.too_long > rows
    is_lost = {
        "wrong_width": dropped, "too_long": dropped, "open_quote": 2 * broken.open_quote > rows,
        "inner_return": broken.inner_return > rows, "not_text": 2 * broken.not_text > rows, "joined": False,
    }  # fmt: skip
    kinds = [(_CSV_KEY.sub(proposed, words), getattr(broken, kind), is_lost[kind]) for kind, words in _BROKEN.items()]
    empty = [] if rows else [("files without a row that can be read", 1, False)]
    return [kind for kind in kinds if kind[1]] + empty


def _lost_releases(policy: Policy, ledger: Ledger) -> list[str]:
    """Return how many stored releases the present policy makes unusable, with the tables and columns that are not what they
    were when they were read. Measurements of `dpsql fit` read another policy, so that they are not lost."""
    releases = open_releases(ledger)
    try:
        read = [about.get("reads", {}) for about in releases.descriptions()]
    finally:
        releases.close()
    if not any(changed(policy, reads) for reads in read):
        return []
    from dpsql.tuning.policy_fit import name_in_policy, without_bounds

    fitted = without_bounds(policy)
    pairs = [(changed(policy, reads), changed(fitted, reads)) for reads in read]
    lost = [{name_in_policy(name) for name in min(pair, key=len)} for pair in pairs if all(pair)]
    named = ", ".join(
        f"{name} ({count})" for name, count in sorted(Counter(name for names in lost for name in names).items())
    )
    sentence = "stored releases read what the policy has changed since, and answer no question under it any more"
    return [f"note: {len(lost)} {sentence}: {named}"] if lost else []


def _check_ledger(
    policy: Policy, create: bool, change_unit: bool, second_budget: str | None, findings: Findings
) -> None:
    source = source_fingerprint(policy)
    try:
        with open_ledger(
            policy.ledger_url(), policy.dataset, create=create, source=source, first=True, second_budget=second_budget,
            witness=policy.witness,
        ) as ledger:  # fmt: skip
            ledger.hold_unit(policy.unit_words, change=change_unit)
            verdict, accounts = ledger.verify(), ledger.accounts()
            if not ledger.store.may_charge():
                findings.notes.append(
                    "note: the role may not write the tables of the ledger: no question can be charged"
                )
            findings.notes += _lost_releases(policy, ledger)
            budget = budget_of_everybody(policy, accounts)
    except Error as error:
        if error.slug != "ledger_missing":
            findings.fail(error)
            return
        findings.notes.append("ledger: there is none yet; `dpsql check --create-ledger` makes it, once")
        return
    if verdict.sound:
        left = budget.questions_text(question_price(policy), policy.per_query.epsilon)
        findings.notes += [f"left: {left}", f"ledger: holds, {verdict.entries} entries"]
    else:
        findings.problems.append(f"the ledger does not hold at entry {verdict.first_bad}: {verdict.problem}")
        findings.status = Exit.FAULT
