"""`dpsql run`: all statements of some files, priced as one set before any of them is charged, safe to run again."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from dpsql.errors.custodian_log import registering
from dpsql.errors.exceptions import BudgetRefusal, Error, Exit, refuse
from dpsql.frontends.batch.statements import (
    FileStatement,
    QuestionPlans,
    ResultNames,
    StatementReport,
    SummaryObject,
    asked_questions,
    error_object,
    statement_with_result,
    walk,
)
from dpsql.frontends.files import replace_file, writing
from dpsql.frontends.interruptible import ask, charge_text
from dpsql.frontends.rendering.formats import as_object, left_text, row_objects, write_file
from dpsql.frontends.rendering.terminal import Progress
from dpsql.ledger import DECIMALS
from dpsql.ledger.records import charge_id, readable_text
from dpsql.media.text import json_text
from dpsql.planning.planner import Planned
from dpsql.pricing.options import Options
from dpsql.pricing.workloads import Objective
from dpsql.privacy.loss import PrivacyLoss
from dpsql.session.session import Session
from dpsql.storage.files import open_lock, try_lock
from dpsql.storage.records import dataclass, field, replace

Units = dict[str, int]

_NO_MEANING = ("dp.on_behalf_of", "dp.bars")
"""Options that change nothing of what a statement of a file measures."""


@dataclass(frozen=True)
class Step:
    """One statement that returns rows. `state`: ask, done (by an earlier run), lost (charged, and the answer is gone).

    `cost`: the charge for asking it now, in units of the ledger; empty if it is free. `request`: the id of the answer in the
    folder; `receipt`: that of the charge that pays for it, its own or that of its whole plan. `planned`: the question with the
    blocks of its plan, if it is in one.
    """

    report: StatementReport
    options: Options
    request: str
    receipt: str
    state: str
    cost: Units
    planned: Planned | None = None


@dataclass
class Batch:
    """The statements of some files on one session, their results in one folder.

    `scripts`: files with their texts; `charge_again`: ask statements again whose answers an earlier run charged and lost;
    `keep_going`: answer the others when statements are refused; `bars`: results have NAME_low and NAME_high;
    `for_spreadsheet`: of `write_csv`; `keep_notes`: `reports` include the note of each result; `objective`: what joint
    measurement plans of the statements minimise (None: each statement is measured separately).
    """

    session: Session
    scripts: Sequence[tuple[Path, str]]
    out: Path
    format: str
    charge_again: bool = False
    keep_going: bool = False
    bars: bool = False
    for_spreadsheet: bool = False
    keep_notes: bool = False
    objective: Objective | None = None
    reports: list[StatementReport] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._refused = 0
        self._names = ResultNames()
        self._plans: QuestionPlans | None = None
        self._anew: dict[str, str] = {}
        self._price: str | None = None
        self._share: str | None = None
        self._left: Mapping[str, Mapping[str, str]] = {}
        self._used: set[str] = set()
        self._repeats: Counter[str] = Counter()

    def price(self, progress: Progress) -> int:
        """Show the price of the set; nothing is charged or written. Returns the exit status."""
        record = RunRecord(self.out, self.session.policy.dataset, create=False)
        steps = self._steps(record, progress)
        if steps is None:
            return Exit.REFUSAL
        self._tell(steps, progress)
        self._require_fit(steps)
        return Exit.REFUSAL if self._refused else Exit.DONE

    def summary(self, status: int, error: Error | None, *, dry_run: bool) -> SummaryObject:
        """Return the outcome of each statement, as an object for JSON. `error`: what ended the run as a whole."""
        summary = SummaryObject(
            dataset=self.session.policy.dataset, dry_run=dry_run, status=status, price=self._price, share=self._share,
            left={account: dict(amounts) for account, amounts in self._left.items()}, error=error_object(error),
            statements=[report.as_object() for report in self.reports],
        )  # fmt: skip
        if self._plans is not None:
            summary["workload"] = self._plans.objects()
        return summary

    def plan_lines(self) -> list[str]:
        """Return the measurement plans as lines of text; no lines for a run without plans."""
        return [] if self._plans is None else self._plans.lines()

    def run(self, progress: Progress) -> int:
        """Price the set, refuse it as a whole if it does not fit, then answer the statements without results.

        Returns the exit status. Raises BudgetRefusal (batch_budget), the error `stopped`, and faults of the folder.
        """
        record = RunRecord(self.out, self.session.policy.dataset, create=True)
        try:
            steps = self._steps(record, progress)
            if steps is None:
                return Exit.REFUSAL
            self._tell(steps, progress)
            self._require_fit(steps)
            record.save()
            return self._answer_all(record, steps, progress)
        finally:
            for report in self.reports if self.keep_notes else ():
                if report.result and report.state in ("answered", "earlier"):
                    report.note = record.note(report.result)
            record.close()

    # --- before anything is charged -----------------------------------------------------------------------------------

    def _steps(self, record: RunRecord, progress: Progress) -> list[Step] | None:
        """Return every statement that returns rows; None if one is refused (all refusals are shown).

        With `keep_going`, return those that can be answered, even if others are refused.
        """
        if self.objective is not None:
            questions = asked_questions(self.session, self.scripts, lambda *_: None, lambda *_: None)
            self._plans = QuestionPlans(self.session, questions, self.objective)
        steps: list[Step] = []

        def use(from_file: FileStatement) -> bool:
            step = self._step(record, from_file)
            if step is not None:
                steps.append(step)
                self.reports.append(step.report)
            return step is not None

        def refused(place: str, sql: str, error: Error) -> None:
            progress.say(f"{place}: {error.text()}")
            self._refused += 1
            self.reports.append(StatementReport(place, sql, "refused", error=error))

        def left_out(path: Path, line: int) -> None:
            progress.say(f"{path}: what follows is not asked, as it may depend on line {line}")

        walk(self.session, self.scripts, use, refused, left_out if self.keep_going else None)
        if not self._refused:
            return steps
        outcome = "the others are asked" if self.keep_going else "nothing was run"
        progress.say(f"{self._refused} of the statements cannot be answered; {outcome}")
        return steps if self.keep_going else None

    def _step(self, record: RunRecord, from_file: FileStatement) -> Step | None:
        """Return the step of one statement, None for SET and RESET, which affect the statements after them in the file."""
        session, piece = self.session, from_file.piece
        statement = statement_with_result(session, from_file, self._names)
        if statement is None:
            return None
        name = f"{from_file.stem}.{self.format}"
        options = session.options
        view = None if self._plans is None else self._plans.view(from_file.stem)
        meaning = {option: text for option, text in options.show().items() if option not in _NO_MEANING}
        facts: dict[str, Any] = {"sql": piece.sql, "options": meaning, "who": session.analyst}
        facts["policy"] = session.policy.version
        facts["data"] = session.data_version(statement)
        paid_by = facts if view is None else self._facts_of_plan(view)
        if view is not None:
            facts["paid by"] = record.request(paid_by)
        self._repeats[repr(facts)] += 1
        facts["time"] = self._repeats[repr(facts)]
        request = record.request(facts)
        report = StatementReport(from_file.place, piece.sql, "priced", name)
        step = Step(report, options, request, request, "ask", {}, view)
        if record.is_done(name, request, bars=self.bars, for_spreadsheet=self.for_spreadsheet):
            return replace(step, state="done")
        if statement.kind != "query":
            return step
        planned = session.plan(statement) if view is None else view
        cost, keys = self._blocks(planned)
        receipt = self._anew.get(repr(paid_by)) or record.request(paid_by)
        state = "ask"
        if cost and session.ledger.find(charge_id(session.analyst, receipt)) is not None:
            if self._is_kept(piece.sql if view is None else planned, receipt):
                cost = {}
            elif self.charge_again:
                receipt = self._anew[repr(paid_by)] = record.ask_anew(paid_by)
            else:
                state = "lost"
        if state == "ask":
            self._used.update(keys)
        else:
            cost = {}
        request = receipt if view is None else record.request({**facts, "paid by": receipt})
        return replace(step, request=request, receipt=receipt, state=state, cost=cost)

    def _facts_of_plan(self, planned: Planned) -> dict[str, Any]:
        """Return the facts that identify the charge of a measurement plan, which are the same for each of its questions."""
        session = self.session
        return {
            "plan": list(planned.keys),
            "who": session.analyst,
            "project": planned.options.project,
            "policy": session.policy.version,
            "data": session.measured_version(planned),
        }

    def _is_kept(self, question: str | Planned, request: str) -> bool:
        """Return whether a request that was charged before can be answered. A known request is never charged again."""
        try:
            if isinstance(question, Planned):
                self.session.answer(question, request)
            else:
                self.session.execute(question, request_id=request)
        except Error as error:
            if error.slug in ("request_lost", "request_repeated"):
                return False
            raise
        return True

    def _blocks(self, planned: Planned) -> tuple[Units, list[str]]:
        """Return the charge of a query now, and the keys of the releases that it stores for later statements.

        A block that is stored, or that an earlier statement of the set releases, is not charged again.
        """
        session = self.session
        stored = session.explain_planned(planned).stored
        reuse = planned.options.reuse
        loss, charged = PrivacyLoss.nothing(), False
        for priced, key in zip(planned.price.blocks, planned.keys, strict=True):
            if not (reuse and (priced.block.name in stored or key in self._used)):
                loss, charged = loss + priced.loss, True
        return session.planner.accountant.units(loss) if charged else {}, list(planned.keys) if reuse else []

    def _tell(self, steps: Sequence[Step], progress: Progress) -> None:
        for line in self.plan_lines() if steps else ["no statement of the files asks anything"]:
            progress.say(line)
        states = {"done": "earlier", "lost": "lost"}
        for step in steps:
            outcomes = {"done": "answered by an earlier run", "lost": "charged by an earlier run, its answer is lost"}
            price = charge_text(step.cost)
            progress.say(f"{step.report.place}  {step.report.result}  {outcomes.get(step.state) or price}")
            state = states.get(step.state, "priced")
            step.report.state, step.report.price = state, price if state == "priced" else None
        self._price = charge_text(_total(steps))
        part = self.session.budget().price(_total(steps))
        self._share = None if part is None else part.share
        self._left = self.session.budget().remaining
        share = f", {self._share}" if self._share else ""
        progress.say(f"the whole set: {self._price}{share}; left: {left_text(self.session)}")

    def _require_fit(self, steps: Sequence[Step]) -> None:
        """Raise BudgetRefusal if the set as a whole does not fit every scope."""
        cost = _total(steps)
        left = self.session.budget().remaining
        short = [
            f"{scope} has {dimension} {readable_text(amounts[dimension])} left"
            for scope, amounts in left.items()
            for dimension, amount in cost.items()
            if Fraction(amount, 10 ** DECIMALS[dimension]) > Fraction(amounts[dimension])
        ]
        if short:
            error = refuse("batch_budget", cost=charge_text(cost), short="; ".join(short))
            assert isinstance(error, BudgetRefusal)
            error.hint = f"left: {left_text(self.session)}; {error.hint}"
            error.remaining = {
                scope: ", ".join(f"{d} {a}" for d, a in amounts.items()) for scope, amounts in left.items()
            }
            raise error

    # --- answers ------------------------------------------------------------------------------------------------------

    def _answer_all(self, record: RunRecord, steps: Sequence[Step], progress: Progress) -> int:
        """Answer the open steps. After a refusal the run continues; a fault or an exhausted budget ends it."""
        open_steps = [step for step in steps if step.state == "ask"]
        status = int(Exit.REFUSAL if self._refused else Exit.DONE)
        progress.begin(len(open_steps))
        for step in open_steps:
            try:
                self._answer(record, step)
            except Error as error:
                if error.slug == "stopped":
                    raise
                progress.say(f"{step.report.place}: {error.text()}")
                step.report.state, step.report.error = "failed", error
                status = max(status, int(error.exit_status))
                if error.exit_status not in (Exit.REFUSAL, Exit.USAGE):
                    progress.say("the run ends here; run it again to go on")
                    return status
            progress.done(str(step.report.result))
        for step in steps:
            if step.state == "lost":
                progress.say(f"{step.report.place}: {refuse('batch_lost', receipt=step.receipt, charged=True).text()}")
                status = max(status, int(Exit.FAULT))
        self._left = self._still_left()
        progress.say(f"results are in {self.out}; left: {left_text(self.session)}")
        return status

    def _still_left(self) -> Mapping[str, Mapping[str, str]]:
        """Return the remaining budget of each scope, nothing if the ledger fails: the answers are paid for and written."""
        try:
            return self.session.budget().remaining
        except Error:
            return {}

    def _answer(self, record: RunRecord, step: Step) -> None:
        """Answer one step and write its result. Raises Error, and OSError (a closed output ends the command)."""
        self.session.options, report = step.options, step.report
        with registering(passing=OSError):
            release = ask(self.session, report.sql if step.planned is None else step.planned, request_id=step.receipt)
        with registering(charged=release.receipt.is_paid, passing=OSError):
            note = {
                "statement": report.sql,
                "place": report.place,
                "request": step.request,
                "options": step.options.show(),
                "dataset": self.session.policy.dataset,
                "policy_version": self.session.policy.version,
                "analyst": self.session.analyst,
                "bars": self.bars,
                "for_spreadsheet": self.for_spreadsheet,
                "rows": row_objects(release),
                **as_object(release),
            }
            write = partial(
                write_file, release, format=self.format, bars=self.bars, for_spreadsheet=self.for_spreadsheet
            )
            record.keep(str(report.result), write, note)
        report.state, report.receipt = "answered", release.receipt_id


def _total(steps: Sequence[Step]) -> Units:
    total: Counter[str] = Counter()
    for step in steps:
        total.update(step.cost)
    return dict(total)


# --- the record of a run, by which a second one in the same folder continues without a second charge ------------------


class RunRecord:
    """The folder of one run. With `create` it is created and locked against other runs until `close`; otherwise it is
    only read."""

    def __init__(self, folder: Path, dataset: str, *, create: bool) -> None:
        """Raise InterfaceError (batch_record, batch_running) and Fault (file_write)."""
        self.folder = folder
        self._dataset = dataset
        self._lock: int | None = None
        if create:
            self._hold()
        try:
            facts = self._read()
        except Error:
            self.close()
            raise
        self._run = str(facts["run"])
        self._attempts: dict[str, int] = dict(facts["attempts"])
        if create:
            self.save()

    def _hold(self) -> None:
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = open_lock(self.folder / ".run.lock")
            alone = try_lock(self._lock)
        if not alone:
            self.close()
            raise refuse("batch_running", place=str(self.folder))

    def _read(self) -> dict[str, Any]:
        try:
            text = (self.folder / "run.json").read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return {"run": secrets.token_hex(16), "dataset": self._dataset, "attempts": {}}
        try:
            facts: dict[str, Any] = json.loads(text)
            whole = isinstance(facts["run"], str) and isinstance(facts["attempts"], dict)
            if whole and facts["dataset"] == self._dataset:
                return facts
        except (ValueError, KeyError, TypeError):
            pass
        raise refuse("batch_record", place=str(self.folder / "run.json"), dataset=self._dataset)

    def save(self) -> None:
        """Write the record, durable before anything is charged under it."""
        facts = {"run": self._run, "dataset": self._dataset, "attempts": self._attempts}
        replace_file(
            self.folder / "run.json", lambda part: part.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        )

    def request(self, facts: dict[str, Any]) -> str:
        """Return the request id of a statement: 32 hexadecimal digits."""
        base = _digest([self._run, facts])
        return _digest([base, self._attempts.get(base, 0)])[:32]

    def ask_anew(self, facts: dict[str, Any]) -> str:
        """Return the request id of the next attempt at a statement whose answer is lost."""
        base = _digest([self._run, facts])
        self._attempts[base] = self._attempts.get(base, 0) + 1
        return self.request(facts)

    def is_done(self, name: str, request: str, *, bars: bool, for_spreadsheet: bool = False) -> bool:
        """Return whether `name` and its note exist, are complete, and answer this request in this style."""
        try:
            note = json.loads((self.folder / note_name(name)).read_text(encoding="utf-8"))
            digest = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()
        except (OSError, ValueError):
            return False
        if not isinstance(note, dict):
            return False
        if (note.get("bars", False), note.get("for_spreadsheet", False)) != (bars, for_spreadsheet):
            return False
        return note.get("request") == request and note.get("sha256") == digest

    def note(self, name: str) -> dict[str, Any] | None:
        """Return the note of a result that this run wrote, or that `is_done`; None if it is missing or was damaged since."""
        try:
            facts: dict[str, Any] = json.loads((self.folder / note_name(name)).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return facts if isinstance(facts, dict) and "rows" in facts else None

    def keep(self, name: str, write: Callable[[Path], object], note: dict[str, Any]) -> None:
        """Store a result, then the note that says it is done."""
        replace_file(self.folder / name, write)
        digest = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()
        text = json_text({**note, "result": name, "sha256": digest}, indent=1)
        replace_file(self.folder / note_name(name), lambda part: part.write_text(text + "\n", encoding="utf-8"))

    def close(self) -> None:
        """Unlock the folder for other runs."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def note_name(name: str) -> str:
    """Return the name of the note of a result: report-01.meta.json for report-01.csv."""
    return Path(name).stem + ".meta.json"


def _digest(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("ascii")).hexdigest()
