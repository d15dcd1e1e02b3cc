"""`dpsql run`: all statements of some files, priced as one set before any of them is charged, safe to run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from dpsql.errors.exceptions import BudgetRefusal, Error, Exit, refuse
from dpsql.frontends.batch.checkpoint import RunRecord
from dpsql.frontends.interruptible import ask, charge_text
from dpsql.frontends.rendering.formats import as_object, left_text, paid, write_file
from dpsql.ledger import DECIMALS
from dpsql.ledger.records import charge_id
from dpsql.pricing.options import Options
from dpsql.privacy.loss import PrivacyLoss
from dpsql.session.session import Session
from dpsql.sql.parse import Statement
from dpsql.sql.split import Piece, split_file

Units = dict[str, int]


class Watcher(Protocol):
    """Who is told how a run goes."""

    def say(self, text: str) -> None:
        """One line or more for a person."""

    def begin(self, total: int) -> None:
        """So many statements will be answered."""

    def done(self, what: str) -> None:
        """One of them was."""


@dataclass(frozen=True)
class Step:
    """One statement that returns rows. `state`: ask, done (by an earlier run), lost (charged, and the answer is gone).

    `cost` is what asking it now is charged, in units of the ledger; empty when nothing is.
    """

    place: str
    sql: str
    name: str
    options: Options
    facts: dict[str, Any]
    request: str
    state: str
    cost: Units


class Batch:
    """The statements of some files on one session, their results in one folder."""

    def __init__(
        self,
        session: Session,
        scripts: Sequence[tuple[Path, str]],
        out: Path,
        format: str,
        *,
        charge_again: bool = False,
    ) -> None:
        """`scripts`: files with their texts; `charge_again`: ask anew what an earlier run charged and lost."""
        self._session = session
        self._scripts = scripts
        self._out = out
        self._format = format
        self._charge_again = charge_again
        self._used: set[str] = set()
        self._asked: Counter[str] = Counter()

    def price(self, watcher: Watcher) -> int:
        """Tell what the set would cost; nothing is charged or written. Returns the exit status."""
        record = RunRecord(self._out, self._session.policy.dataset, create=False)
        steps = self._steps(record, watcher)
        if steps is None:
            return Exit.REFUSAL
        self._tell(steps, watcher)
        self._require_fit(steps)
        return Exit.DONE

    def run(self, watcher: Watcher) -> int:
        """Price the set, refuse it whole when it does not fit, then answer what is not answered yet.

        Returns the exit status. Raises BudgetRefusal (batch_budget), the error `stopped`, and faults of the folder.
        """
        record = RunRecord(self._out, self._session.policy.dataset, create=True)
        try:
            steps = self._steps(record, watcher)
            if steps is None:
                return Exit.REFUSAL
            self._tell(steps, watcher)
            self._require_fit(steps)
            record.save()
            return self._answer_all(record, steps, watcher)
        finally:
            record.close()

    # --- before anything is charged -----------------------------------------------------------------------------------

    def _steps(self, record: RunRecord, watcher: Watcher) -> list[Step] | None:
        """Every statement that returns rows; None when one is refused (all refusals are told)."""
        start, refused = self._session.options, 0
        steps: list[Step] = []
        for path, text in self._scripts:
            self._session.options = start
            number = 0
            try:
                pieces = split_file(text)
            except Error as error:
                watcher.say(f"{path}: {error.text()}")
                refused += 1
                continue
            for piece in pieces:
                try:
                    step = self._step(record, path, piece, number + 1)
                except Error as error:
                    watcher.say(f"{path}:{piece.line}: {error.text()}")
                    refused += 1
                    continue
                if step is not None:
                    number += 1
                    steps.append(step)
        self._session.options = start
        if refused:
            watcher.say(f"{refused} of the statements cannot be answered; nothing was run")
        return None if refused else steps

    def _step(self, record: RunRecord, path: Path, piece: Piece, number: int) -> Step | None:
        """The step of one statement; SET and RESET take effect on those after it in the file, and are no steps."""
        session = self._session
        statement = session.planner.parse(piece.sql, None)
        if statement.kind in ("set", "reset", "transaction"):
            session.execute(piece.sql)
            return None
        name = f"{path.stem}-{number:02}.{self._format}"
        options = session.options
        facts: dict[str, Any] = {"sql": piece.sql, "options": options.show(), "who": session.analyst}
        facts["policy"] = session.policy.version
        facts["data"] = session.data_version(statement)
        self._asked[repr(facts)] += 1
        facts["time"] = self._asked[repr(facts)]
        request = record.request(facts)
        place = f"{path}:{piece.line}"
        if record.is_done(name, request):
            return Step(place, piece.sql, name, options, facts, request, "done", {})
        if statement.kind != "query":
            session.describe(piece.sql)
            return Step(place, piece.sql, name, options, facts, request, "ask", {})
        cost, keys = self._blocks(statement)
        state = "ask"
        if cost and session.ledger.find(charge_id(session.analyst, request)) is not None:
            if self._is_kept(piece.sql, request):
                cost = {}
            elif self._charge_again:
                request = record.ask_anew(facts)
            else:
                state = "lost"
        if state == "ask":
            self._used.update(keys)
        return Step(place, piece.sql, name, options, facts, request, state, cost if state == "ask" else {})

    def _is_kept(self, sql: str, request: str) -> bool:
        """Whether a request that was charged before can be answered. A known request is never charged again."""
        try:
            self._session.execute(sql, request_id=request)
        except Error as error:
            if error.slug in ("request_lost", "request_repeated"):
                return False
            raise
        return True

    def _blocks(self, statement: Statement) -> tuple[Units, list[str]]:
        """What a query is charged now, and the keys of the releases it leaves for later statements.

        A block that is stored, or that an earlier statement of the set releases, is not charged again.
        """
        session = self._session
        planned = session.plan(statement)
        stored = session.explain_planned(planned).stored
        reuse = planned.options.reuse
        loss, charged = PrivacyLoss.nothing(), False
        for priced, key in zip(planned.price.blocks, planned.keys, strict=True):
            if not (reuse and (priced.block.name in stored or key in self._used)):
                loss, charged = loss + priced.loss, True
        return session.planner.accountant.units(loss) if charged else {}, list(planned.keys) if reuse else []

    def _tell(self, steps: Sequence[Step], watcher: Watcher) -> None:
        for step in steps:
            what = {"done": "answered by an earlier run", "lost": "charged by an earlier run, its answer is lost"}
            watcher.say(f"{step.place}  {step.name}  {what.get(step.state) or charge_text(step.cost)}")
        watcher.say(f"the whole set: {charge_text(_total(steps))}; left: {left_text(self._session)}")

    def _require_fit(self, steps: Sequence[Step]) -> None:
        """Raise BudgetRefusal when the set as a whole does not fit every scope."""
        cost = _total(steps)
        left = self._session.budget().remaining
        short = [
            f"{scope} has {dimension} {amounts[dimension]} left"
            for scope, amounts in left.items()
            for dimension, amount in cost.items()
            if Fraction(amount, 10 ** DECIMALS[dimension]) > Fraction(amounts[dimension])
        ]
        if short:
            error = refuse("batch_budget", cost=charge_text(cost), short="; ".join(short))
            assert isinstance(error, BudgetRefusal)
            error.remaining = {scope: ", ".join(f"{d} {a}" for d, a in of.items()) for scope, of in left.items()}
            raise error

    # --- answers ------------------------------------------------------------------------------------------------------

    def _answer_all(self, record: RunRecord, steps: Sequence[Step], watcher: Watcher) -> int:
        """Answer what is to be asked. After a refusal the rest goes on; a fault or an empty budget ends the run."""
        asked = [step for step in steps if step.state == "ask"]
        status = int(Exit.DONE)
        watcher.begin(len(asked))
        for step in asked:
            try:
                self._answer(record, step)
            except Error as error:
                if error.slug == "stopped":
                    raise
                watcher.say(f"{step.place}: {error.text()}")
                status = status or error.exit_status
                if error.exit_status not in (Exit.REFUSAL, Exit.USAGE):
                    watcher.say("the run ends here; run it again to go on")
                    return status
            watcher.done(step.name)
        for step in steps:
            if step.state == "lost":
                watcher.say(f"{step.place}: {refuse('batch_lost', receipt=step.request, charged=True).text()}")
                status = status or Exit.FAULT
        watcher.say(f"results are in {self._out}; left: {left_text(self._session)}")
        return status

    def _answer(self, record: RunRecord, step: Step) -> None:
        self._session.options = step.options
        release = ask(self._session, step.sql, request_id=step.request)
        note = {
            "statement": step.sql,
            "place": step.place,
            "request": step.request,
            "options": step.options.show(),
            "dataset": self._session.policy.dataset,
            "policy_version": self._session.policy.version,
            "analyst": self._session.analyst,
            **as_object(release),
        }
        try:
            record.keep(step.name, partial(write_file, release, format=self._format, bars=False), note)
        except Error as error:
            error.charged = paid(release)
            raise


def _total(steps: Sequence[Step]) -> Units:
    total: Counter[str] = Counter()
    for step in steps:
        total.update(step.cost)
    return dict(total)
